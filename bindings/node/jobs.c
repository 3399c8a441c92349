/* jobs.c - what computes, on threads of libuv's pool: the event loop goes on meanwhile. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

struct job *new_job(napi_env env, struct box *box)
{
	struct job *j = calloc(1, sizeof *j);
	if (!j) {
		throw_argument(env, "not enough memory for a call");
		return NULL;
	}
	j->box = box;
	return j;
}

void free_job(struct job *j)
{
	free_texts(&j->texts);
	free_texts(&j->sampling);
	free(j->text);
	free(j->ids);
	free(j->floats);
	free(j);
}

static void execute(napi_env env, void *data)
{
	(void)env;
	struct job *j = data;
	j->run(j);
}

static void complete(napi_env env, napi_status status, void *data)
{
	struct job *j = data;
	if (j->box)
		j->box->busy = false;
	if (status != napi_ok && !j->err.code)
		j->err = (jit_error){ .code = JIT_ERROR_CANCELLED, .message = "the call was cancelled" };
	napi_value value = NULL;
	if (!j->err.code)
		value = j->result(env, j);
	if (value)
		napi_resolve_deferred(env, j->deferred, value);
	else
		napi_reject_deferred(env, j->deferred, make_error(env, &j->err));
	napi_delete_async_work(env, j->work);
	release_box(j->box);
	free_job(j);
}

/* A session computes for one call at a time; a model opens any number of sessions. */
napi_value start_job(napi_env env, struct job *j)
{
	napi_value promise = NULL, name = from_text(env, "jitrun", NAPI_AUTO_LENGTH);
	napi_create_promise(env, &j->deferred, &promise);
	napi_create_async_work(env, NULL, name, execute, complete, j, &j->work);
	if (j->box) {
		j->box->uses++;
		j->box->busy = j->box->kind == BOX_SESSION;
	}
	napi_queue_async_work(env, j->work);
	return promise;
}

static napi_value nothing(napi_env env, struct job *j)
{
	(void)j;
	napi_value value = NULL;
	napi_get_undefined(env, &value);
	return value;
}

static void run_open(struct job *j)
{
	jit_model_options o = JIT_MODEL_OPTIONS();
	for (size_t i = 0; i + 1 < j->texts.n; i += 2)
		if (jit_model_options_set(&o, j->texts.list[i], j->texts.list[i + 1], &j->err))
			return;
	j->made = jit_model_open(j->text, &o, &j->err);
}

static napi_value opened(napi_env env, struct job *j) { return make_box(env, BOX_MODEL, j->made, NULL); }

/* open(path, [name, value, ...]) */
static napi_value open_model(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct job *j = arguments(env, info, argv, 2) ? new_job(env, NULL) : NULL;
	if (!j)
		return NULL;
	j->run = run_open, j->result = opened;
	j->text = take_text(env, argv[0], NULL);
	if (j->text && take_texts(env, argv[1], &j->texts))
		return start_job(env, j);
	free_job(j);
	return NULL;
}

/* The sampling of the model's makers, and what the texts say of it. */
bool sampling_of(const jit_model *m, const struct texts *t, jit_sampling *out, jit_error *err)
{
	*out = JIT_SAMPLING();
	if (jit_model_sampling_defaults(m, out, err))
		return false;
	for (size_t i = 0; i + 1 < t->n; i += 2)
		if (jit_sampling_set(out, t->list[i], t->list[i + 1], err))
			return false;
	return true;
}

static void run_session(struct job *j)
{
	jit_session_options o = JIT_SESSION_OPTIONS();
	jit_sampling p;
	for (size_t i = 0; i + 1 < j->texts.n; i += 2)
		if (jit_session_options_set(&o, j->texts.list[i], j->texts.list[i + 1], &j->err))
			return;
	if (!sampling_of(j->box->p, &j->sampling, &p, &j->err))
		return;
	o.sampling = &p;
	j->made = jit_session_open(j->box->p, &o, &j->err);
}

static napi_value session_opened(napi_env env, struct job *j) { return make_box(env, BOX_SESSION, j->made, j->box); }

/* session(model, [name, value, ...], [name, value, ...] of sampling) */
static napi_value open_session(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct box *b = arguments(env, info, argv, 3) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	struct job *j = b ? new_job(env, b) : NULL;
	if (!j)
		return NULL;
	j->run = run_session, j->result = session_opened;
	if (take_texts(env, argv[1], &j->texts) && take_texts(env, argv[2], &j->sampling))
		return start_job(env, j);
	free_job(j);
	return NULL;
}

static void run_feed(struct job *j) { jit_session_feed(j->box->p, j->ids, j->n_ids, &j->err); }

static void run_score(struct job *j)
{
	j->n_floats = j->n_ids;
	j->floats = calloc(j->n_ids + 1, sizeof *j->floats);
	if (j->floats)
		jit_session_score(j->box->p, j->ids, j->n_ids, j->floats, &j->err);
	else
		j->err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "not enough memory for scores" };
}

static void run_embed(struct job *j)
{
	jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = j->number, .normalise = j->flag);
	jit_model_info about = JIT_MODEL_INFO();
	if (jit_model_get_info(j->box->parent->p, &about, &j->err))
		return;
	size_t rows = j->number == JIT_POOL_NONE ? j->n_ids : 1;
	j->n_floats = j->number == JIT_POOL_RANK ? 1 : rows * (size_t)about.hidden;
	j->floats = calloc(j->n_floats + 1, sizeof *j->floats);
	if (j->floats)
		jit_session_embed(j->box->p, j->ids, j->n_ids, &o, j->floats, j->n_floats, &j->err);
	else
		j->err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "not enough memory for an embedding" };
}

static void run_logits(struct job *j)
{
	jit_model_info about = JIT_MODEL_INFO();
	if (jit_model_get_info(j->box->parent->p, &about, &j->err))
		return;
	const float *logits = jit_session_logits(j->box->p, &j->err);
	if (!logits)
		return;
	j->n_floats = (size_t)about.vocab;
	j->floats = malloc(j->n_floats * sizeof *j->floats);
	if (j->floats)
		memcpy(j->floats, logits, j->n_floats * sizeof *j->floats);
	else
		j->err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "not enough memory for logits" };
}

static void run_grammar(struct job *j) { jit_session_set_grammar(j->box->p, j->number, j->text, j->n_text, &j->err); }

static napi_value floats(napi_env env, struct job *j) { return from_floats(env, j->floats, j->n_floats); }

/* feed(session, ids), score(session, ids), embed(session, ids, pooling, normalise) */
static napi_value with_ids(napi_env env, napi_value *argv, void (*run)(struct job *),
                           napi_value (*result)(napi_env, struct job *))
{
	struct box *b = take_box(env, argv[0], BOX_SESSION);
	struct job *j = b ? new_job(env, b) : NULL;
	if (!j)
		return NULL;
	j->run = run, j->result = result;
	j->ids = take_ids(env, argv[1], &j->n_ids);
	if (!j->ids) {
		free_job(j);
		return NULL;
	}
	if (run == run_embed) {
		j->number = take_int(env, argv[2]);
		j->flag = take_int(env, argv[3]);
	}
	return start_job(env, j);
}

static napi_value feed(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	return arguments(env, info, argv, 2) ? with_ids(env, argv, run_feed, nothing) : NULL;
}

static napi_value score(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	return arguments(env, info, argv, 2) ? with_ids(env, argv, run_score, floats) : NULL;
}

static napi_value embed(napi_env env, napi_callback_info info)
{
	napi_value argv[4];
	return arguments(env, info, argv, 4) ? with_ids(env, argv, run_embed, floats) : NULL;
}

static napi_value logits(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = arguments(env, info, argv, 1) ? take_box(env, argv[0], BOX_SESSION) : NULL;
	struct job *j = b ? new_job(env, b) : NULL;
	if (!j)
		return NULL;
	j->run = run_logits, j->result = floats;
	return start_job(env, j);
}

/* grammar(session, kind, text) */
static napi_value grammar(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct box *b = arguments(env, info, argv, 3) ? take_box(env, argv[0], BOX_SESSION) : NULL;
	struct job *j = b ? new_job(env, b) : NULL;
	if (!j)
		return NULL;
	j->run = run_grammar, j->result = nothing;
	j->number = take_int(env, argv[1]);
	j->text = take_text(env, argv[2], &j->n_text);
	if (j->text)
		return start_job(env, j);
	free_job(j);
	return NULL;
}

enum { GOES_ON, STOPPED, TOO_LONG };

static void append_text(struct job *j, int32_t id)
{
	size_t n = 0;
	jit_error err = { 0 };
	const char *text = jit_session_text(j->box->p, id, &n, &err);
	char *longer = text ? realloc(j->text, j->n_text + n + 1) : NULL;
	if (!longer) {
		j->err = err.code ? err
		                  : (jit_error){ .code = JIT_ERROR_MEMORY, .message = "not enough memory for a text" };
		return;
	}
	memcpy(longer + j->n_text, text, n);
	j->text = longer, j->n_text += n;
}

/* Chooses a token. j->id: the token, or -1; j->number: whether the answer ends with it. */
static void run_step(struct job *j)
{
	jit_session *s = j->box->p;
	j->id = -1;
	int status = jit_session_next(s, &j->id, &j->err);
	if (status == JIT_OK) {
		if (jit_model_is_end(j->box->parent->p, j->id))
			j->number = STOPPED, j->id = -1;
	} else {
		j->id = -1;
		if (status == JIT_ERROR_CONTEXT)
			j->number = TOO_LONG;
		else if (status == JIT_ERROR_ARGUMENT && jit_session_grammar_complete(s) == 1)
			j->number = STOPPED;
		else
			return;
		j->err = (jit_error){ 0 };
	}
	if (j->id >= 0)
		append_text(j, j->id);
	if (jit_session_stopped(s) >= 0)
		j->number = STOPPED;
	if (j->number != GOES_ON || j->flag)
		append_text(j, -1);
}

static napi_value stepped(napi_env env, struct job *j)
{
	napi_value out = NULL;
	napi_create_object(env, &out);
	set(env, out, "id", from_int(env, j->id));
	set(env, out, "text", from_text(env, j->text ? j->text : "", j->n_text));
	set(env, out, "reason", from_int(env, j->number));
	return out;
}

/* step(session, last): last: what is held back is to be given, since no other step follows */
static napi_value step(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_SESSION) : NULL;
	struct job *j = b ? new_job(env, b) : NULL;
	if (!j)
		return NULL;
	j->run = run_step, j->result = stepped;
	j->flag = take_int(env, argv[1]);
	return start_job(env, j);
}

void export_jobs(napi_env env, napi_value exports)
{
	export_function(env, exports, "open", open_model);
	export_function(env, exports, "session", open_session);
	export_function(env, exports, "feed", feed);
	export_function(env, exports, "score", score);
	export_function(env, exports, "embed", embed);
	export_function(env, exports, "step", step);
	export_function(env, exports, "logits", logits);
	export_function(env, exports, "grammar", grammar);
}
