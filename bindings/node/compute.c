/* compute.c - what a session computes: prompts, logits, scores, embeddings, and the tokens that are chosen. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

static void run_feed(struct job *j) { jit_session_feed(j->box->p, j->ids, j->n_ids, &j->err); }

static void run_feed_text(struct job *j) { jit_session_feed_text(j->box->p, j->text, j->n_text, j->flag, &j->err); }

/* Room for rows of floats, each as wide as the model's vocabulary or its hidden states, or of one. */
static bool room_for(struct job *j, size_t rows, size_t width, const char *what)
{
	j->n_floats = rows * width;
	if (width && j->n_floats / width == rows)
		j->floats = calloc(j->n_floats + 1, sizeof *j->floats);
	return !lacks_memory(j, j->floats, what);
}

static bool about(struct job *j, jit_model_info *out)
{
	*out = JIT_MODEL_INFO();
	return jit_model_get_info(model_of(j->box), out, &j->err) == JIT_OK;
}

static void run_score(struct job *j)
{
	if (room_for(j, j->n_ids, 1, "scores"))
		jit_session_score(j->box->p, j->ids, j->n_ids, j->floats, &j->err);
}

static void run_feed_logits(struct job *j)
{
	jit_model_info m;
	if (about(j, &m) && room_for(j, j->n_ids, (size_t)m.vocab, "the logits of all tokens"))
		jit_session_feed_logits(j->box->p, j->ids, j->n_ids, j->floats, j->n_floats, &j->err);
}

static void run_embed(struct job *j)
{
	jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = j->number, .normalise = j->flag);
	jit_model_info m;
	if (about(j, &m) && room_for(j, j->number == JIT_POOL_NONE ? j->n_ids : 1,
	                             j->number == JIT_POOL_RANK   ? 1
	                             : j->number == JIT_POOL_NONE ? (size_t)m.hidden
	                                                          : (size_t)m.embedding,
	                             "an embedding"))
		jit_session_embed(j->box->p, j->ids, j->n_ids, &o, j->floats, j->n_floats, &j->err);
}

static void run_logits(struct job *j)
{
	jit_model_info m;
	const float *logits = about(j, &m) ? jit_session_logits(j->box->p, &j->err) : NULL;
	if (logits && room_for(j, 1, (size_t)m.vocab, "logits"))
		memcpy(j->floats, logits, j->n_floats * sizeof *logits);
}

/* Of a function(session, ids, number, flag), of which the last two may be missing. */
static napi_value with_ids(napi_env env, napi_callback_info info, size_t n, void (*run)(struct job *),
                           napi_value (*result)(napi_env, struct job *))
{
	napi_value argv[4];
	struct job *j = job_of(env, info, argv, n, BOX_SESSION, run, result);
	if (!j)
		return NULL;
	j->ids = take_ids(env, argv[1], &j->n_ids);
	j->number = n > 2 ? take_int(env, argv[2]) : 0;
	j->flag = n > 3 ? take_int(env, argv[3]) : 0;
	return start_job(env, j, j->ids != NULL);
}

static napi_value feed(napi_env env, napi_callback_info info) { return with_ids(env, info, 2, run_feed, no_result); }

static napi_value score(napi_env env, napi_callback_info info)
{
	return with_ids(env, info, 2, run_score, floats_result);
}

static napi_value feed_logits(napi_env env, napi_callback_info info)
{
	return with_ids(env, info, 2, run_feed_logits, floats_result);
}

/* embed(session, ids, pooling, normalise) */
static napi_value embed(napi_env env, napi_callback_info info)
{
	return with_ids(env, info, 4, run_embed, floats_result);
}

static napi_value logits(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct job *j = job_of(env, info, argv, 1, BOX_SESSION, run_logits, floats_result);
	return j ? start_job(env, j, true) : NULL;
}

static void run_grammar(struct job *j)
{
	const struct given *g = &j->given;
	const jit_grammar_options o =
		JIT_GRAMMAR_OPTIONS(.kind = j->number, .text = j->text, .n = j->n_text, .behind_reasoning = j->flag,
	                            .prompt = g->prompt, .n_prompt = g->n_prompt, .tools = g->t[TOOLS],
	                            .template_text = g->t[TEMPLATE], .template_name = g->t[TEMPLATE_NAME],
	                            .opening = g->t[OPENING]);
	if (j->flag)
		jit_session_begin_grammar(j->box->p, &o, &j->err);
	else
		jit_session_set_grammar(j->box->p, j->number, j->text, j->n_text, &j->err);
}

static void run_save(struct job *j) { jit_session_save(j->box->p, j->text, &j->err); }

static void run_restore(struct job *j) { jit_session_restore(j->box->p, j->text, &j->err); }

static void run_trace(struct job *j) { jit_session_trace(j->box->p, j->text, &j->err); }

/* Of a function(session, text, number); zero: whether the text may have a zero byte. */
static napi_value with_text(napi_env env, napi_callback_info info, size_t n, bool zero, void (*run)(struct job *))
{
	napi_value argv[3];
	struct job *j = job_of(env, info, argv, n, BOX_SESSION, run, no_result);
	if (!j)
		return NULL;
	j->text = take_text(env, argv[1], zero ? &j->n_text : NULL);
	j->number = j->flag = n > 2 ? take_int(env, argv[2]) : 0;
	return start_job(env, j, j->text != NULL);
}

/* feedText(session, text, parse_special) */
static napi_value feed_text(napi_env env, napi_callback_info info)
{
	return with_text(env, info, 3, true, run_feed_text);
}

/* grammar(session, text, kind, undefined or {prompt, tools, template, templateName, opening}): the object, where the
 * answer may reason before the grammar's part of it */
static napi_value grammar(napi_env env, napi_callback_info info)
{
	napi_value argv[4];
	struct job *j = job_of(env, info, argv, 4, BOX_SESSION, run_grammar, no_result);
	if (!j)
		return NULL;
	j->text = take_text(env, argv[1], &j->n_text);
	j->number = take_int(env, argv[2]);
	j->flag = !is_nothing(env, argv[3]);
	bool ready = j->text && (!j->flag || take_given(env, nothing(env), argv[3], &j->given));
	return start_job(env, j, ready);
}

static napi_value save(napi_env env, napi_callback_info info) { return with_text(env, info, 2, false, run_save); }

static napi_value restore(napi_env env, napi_callback_info info) { return with_text(env, info, 2, false, run_restore); }

static napi_value trace(napi_env env, napi_callback_info info) { return with_text(env, info, 2, false, run_trace); }

static void run_report(struct job *j)
{
	j->text = jit_session_report(j->box->p, j->flag, &j->err);
	j->n_text = j->text ? strlen(j->text) : 0;
}

static napi_value report_result(napi_env env, struct job *j)
{
	napi_value out = text_result(env, j);
	jit_free(j->text);
	j->text = NULL;
	return out;
}

/* report(session, json) */
static napi_value report(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct job *j = job_of(env, info, argv, 2, BOX_SESSION, run_report, report_result);
	if (!j)
		return NULL;
	j->flag = take_int(env, argv[1]);
	return start_job(env, j, true);
}

static void run_next(struct job *j) { jit_session_next(j->box->p, &j->number, &j->err); }

static napi_value next_result(napi_env env, struct job *j) { return from_int(env, j->number); }

/* next(session): chooses a token, and says nothing of its text */
static napi_value next(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct job *j = job_of(env, info, argv, 1, BOX_SESSION, run_next, next_result);
	return j ? start_job(env, j, true) : NULL;
}

void export_computing(napi_env env, napi_value exports)
{
	export_function(env, exports, "feed", feed);
	export_function(env, exports, "feedText", feed_text);
	export_function(env, exports, "feedLogits", feed_logits);
	export_function(env, exports, "score", score);
	export_function(env, exports, "embed", embed);
	export_function(env, exports, "logits", logits);
	export_function(env, exports, "grammar", grammar);
	export_function(env, exports, "save", save);
	export_function(env, exports, "restore", restore);
	export_function(env, exports, "trace", trace);
	export_function(env, exports, "report", report);
	export_function(env, exports, "next", next);
}
