/* server/engine/choice_encode.c - embeddings and scores by a model that encodes: its texts whole, and several at once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "include/jitrun_texts.h"
#include "runtime/host/system.h"
#include "server/engine/choice.h"

enum { TOKENS_FIRST = 512, TEXTS_MAX = 256 };

/* The texts from c->text on whose tokens are to be computed at once: one at least. */
static size_t take(const struct choice *c, jit_embedding_text *list, size_t *tokens)
{
	size_t n = 0;

	*tokens = 0;
	for (size_t i = c->text; i < task_texts(c->task) && n < TEXTS_MAX; i++) {
		const struct task_text t = task_text(c->task, i);
		if (n > 0 && *tokens + t.n > c->part)
			break;
		list[n++] = (jit_embedding_text){ t.ids, t.types, t.n };
		*tokens += t.n;
	}
	return n;
}

static void put(struct choice *c, const void *bytes, size_t n)
{
	const struct answer_event r = {
		.kind = EVENT_TOKEN, .choice = c->number + (unsigned)c->text, .id = -1, .n_text = (uint32_t)n
	};

	stream_put(c->task->stream, &r, NULL, bytes);
}

/* Floats of a text's record. */
static size_t floats_of(const struct choice *c, const jit_model_info *info, const jit_embedding_text *t)
{
	return c->task->ranks                      ? 1
	       : c->task->pooling == JIT_POOL_NONE ? t->n * (size_t)info->hidden
	                                           : (size_t)info->embedding;
}

static void put_all(struct choice *c, const jit_model_info *info, const float *rows, const jit_embedding_text *list,
                    size_t n)
{
	for (size_t i = 0; i < n; i++, c->text++) {
		const size_t floats = floats_of(c, info, &list[i]);
		if (c->task->ranks)
			put(c, &(double){ (double)*rows }, sizeof(double));
		else
			put(c, rows, floats * sizeof *rows);
		rows += floats;
	}
}

static bool compute(struct choice *c, jit_session *alone, const jit_model *model, const jit_embedding_text *list,
                    size_t n, jit_error *err)
{
	const bool ranks = c->task->ranks;
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = ranks ? JIT_POOL_RANK : c->task->pooling,
	                                                      .normalise = !ranks && c->task->pooling != JIT_POOL_NONE);
	jit_model_info info = JIT_MODEL_INFO();
	size_t floats = 0;

	if (jit_model_get_info(model, &info, err) != JIT_OK)
		return false;
	for (size_t i = 0; i < n; i++)
		floats += floats_of(c, &info, &list[i]);
	float *rows = malloc(floats * sizeof *rows);
	bool ok = rows != NULL;
	if (!rows)
		*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "There is no memory for this request." };
	ok = ok && jit_session_embed_texts(alone, list, n, &o, rows, floats, err) == JIT_OK;
	if (ok)
		put_all(c, &info, rows, list, n);
	free(rows);
	return ok;
}

bool choice_encode(struct choice *c, jit_session *alone, const jit_model *model, double seconds)
{
	jit_embedding_text list[TEXTS_MAX];
	jit_error err = { 0 };
	const double start = system_seconds();
	size_t tokens;

	if (c->text == 0) {
		c->begun = start;
		c->part = TOKENS_FIRST;
		for (size_t i = 0; i < task_texts(c->task); i++)
			c->numbers.prompt += task_text(c->task, i).n;
	}
	const size_t n = take(c, list, &tokens);
	if (!compute(c, alone, model, list, n, &err)) {
		choice_fail(c, choice_status(err.code), err.message);
		return false;
	}
	const double took = system_seconds() - start, times = took > 0 ? seconds / took : 2;
	c->part = (size_t)((double)tokens * (times > 2 ? 2 : times));
	if (c->part < TOKENS_FIRST)
		c->part = TOKENS_FIRST;
	if (c->text == task_texts(c->task))
		choice_end(c, END_LENGTH);
	return true;
}

jit_session *choice_open_alone(jit_model *model, const jit_batch_options *o, int *context, jit_error *err)
{
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_session *s = jit_session_open(
		model, &JIT_SESSION_OPTIONS(.context = *context, .threads = o->threads, .kv = o->kv), err);

	if (s && jit_session_get_stats(s, &stats, NULL) == JIT_OK)
		*context = stats.context;
	return s;
}

bool choice_fits(struct choice *c, int context, bool all)
{
	char why[160];

	for (size_t i = c->text; i < (all ? task_texts(c->task) : c->text + 1); i++) {
		const size_t n = task_text(c->task, i).n;
		if (n <= (size_t)context)
			continue;
		snprintf(why, sizeof why, "the text has %zu tokens, and the context has room for %d", n, context);
		choice_fail(c, 400, why);
		return false;
	}
	return true;
}

void choice_refuse_to_generate(struct refusal *r)
{
	refuse(r, 501, "model",
	       "The model encodes texts and generates none: /v1/embeddings and /v1/rerank give what it makes of them.");
}
