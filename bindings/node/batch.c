/* batch.c - batches: passes over many sessions, and the tokens that are chosen of those that are ready. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

static void append_text(struct choice *c, int32_t id)
{
	size_t n = 0;
	jit_error err = { 0 };
	const char *text = jit_session_text(c->session->p, id, &n, &err);
	char *longer = text ? realloc(c->text, c->n_text + n + 1) : NULL;
	if (!longer) {
		c->err = err.code ? err
		                  : (jit_error){ .code = JIT_ERROR_MEMORY, .message = "not enough memory for a text" };
		return;
	}
	memcpy(longer + c->n_text, text, n);
	c->text = longer;
	c->n_text += n;
}

static void ask_logprobs(struct choice *c)
{
	size_t n = (size_t)c->likeliest;
	c->top = calloc(n + 1, sizeof *c->top);
	if (c->top)
		jit_session_logprobs(c->session->p, &c->chosen, c->top, n, &c->err);
	else
		c->err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "not enough memory for log probabilities" };
}

/* Chooses a token, says what ends with it, and gives the text that it completes. */
static void choose(struct choice *c)
{
	jit_session *s = c->session->p;
	int status = jit_session_next(s, &c->id, &c->err);

	if (status == JIT_OK && jit_model_is_end(model_of(c->session), c->id)) {
		c->reason = STOPPED;
		c->id = -1;
	} else if (status != JIT_OK) {
		c->id = -1;
		if (status == JIT_ERROR_CONTEXT)
			c->reason = TOO_LONG;
		else if (status == JIT_ERROR_ARGUMENT && jit_session_grammar_complete(s) == 1)
			c->reason = STOPPED;
		else
			return;
		c->err = (jit_error){ 0 };
	}
	if (c->id >= 0 && c->likeliest >= 0)
		ask_logprobs(c);
	if (c->id >= 0)
		append_text(c, c->id);
	if (jit_session_stopped(s) >= 0)
		c->reason = STOPPED;
	if (c->reason != GOES_ON || c->last)
		append_text(c, -1);
}

static void run_choices(struct job *j)
{
	for (size_t i = 0; i < j->n_choices; i++)
		choose(&j->choices[i]);
}

napi_value from_logprobs(napi_env env, float chosen, const jit_logprob *top, size_t n)
{
	napi_value out = NULL, list = NULL;
	napi_create_object(env, &out);
	napi_create_array(env, &list);
	for (size_t i = 0; i < n; i++) {
		napi_value one;
		napi_create_object(env, &one);
		set(env, one, "id", from_int(env, top[i].id));
		set(env, one, "logprob", from_double(env, top[i].logprob));
		napi_set_element(env, list, (uint32_t)i, one);
	}
	set(env, out, "logprob", from_double(env, chosen));
	set(env, out, "top", list);
	return out;
}

static napi_value chosen(napi_env env, const struct choice *c)
{
	napi_value out = NULL;
	napi_create_object(env, &out);
	if (c->err.code) {
		set(env, out, "error", make_error(env, &c->err));
		return out;
	}
	set(env, out, "id", from_int(env, c->id));
	set(env, out, "text", from_text(env, c->text ? c->text : "", c->n_text));
	set(env, out, "reason", from_int(env, c->reason));
	if (c->top)
		set(env, out, "logprobs", from_logprobs(env, c->chosen, c->top, (size_t)c->likeliest));
	return out;
}

static napi_value choices_made(napi_env env, struct job *j)
{
	napi_value list = NULL;
	napi_create_array(env, &list);
	for (size_t i = 0; i < j->n_choices; i++)
		napi_set_element(env, list, (uint32_t)i, chosen(env, &j->choices[i]));
	return list;
}

/* [session, last, likeliest] */
static bool take_choice(napi_env env, napi_value value, struct choice *c)
{
	napi_value session, last, likeliest;
	napi_get_element(env, value, 0, &session);
	napi_get_element(env, value, 1, &last);
	napi_get_element(env, value, 2, &likeliest);
	c->session = take_box(env, session, BOX_SESSION);
	c->last = take_int(env, last) != 0;
	c->likeliest = take_int(env, likeliest);
	c->id = -1;
	return c->session != NULL;
}

/* Takes the choices of a list, of which each session is open. */
static bool take_choices(napi_env env, napi_value list, struct job *j)
{
	uint32_t n = 0;
	napi_get_array_length(env, list, &n);
	j->choices = calloc((size_t)n + 1, sizeof *j->choices);
	if (!j->choices) {
		throw_argument(env, "not enough memory for tokens");
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		napi_value one;
		napi_get_element(env, list, i, &one);
		if (!take_choice(env, one, &j->choices[i]))
			return false;
	}
	j->n_choices = n;
	return true;
}

/* choose(session, [[session, last, likeliest]]), chooseAll(batch, [[session, last, likeliest], ...]): one token each */
static napi_value choose_on(napi_env env, napi_callback_info info, enum box_kind kind)
{
	napi_value argv[2];
	struct job *j = job_of(env, info, argv, 2, kind, run_choices, choices_made);
	return j ? start_job(env, j, take_choices(env, argv[1], j)) : NULL;
}

static napi_value choose_one(napi_env env, napi_callback_info info) { return choose_on(env, info, BOX_SESSION); }

static napi_value choose_all(napi_env env, napi_callback_info info) { return choose_on(env, info, BOX_BATCH); }

static void run_step(struct job *j)
{
	size_t most = j->n_ready;
	j->n_ready = 0;
	jit_batch_step(j->box->p, j->ready, most, &j->n_ready, &j->err);
}

/* The numbers of the sessions that are ready. */
static napi_value stepped(napi_env env, struct job *j)
{
	napi_value list = NULL;
	uint32_t n = 0;
	napi_create_array(env, &list);
	for (size_t i = 0; i < j->n_ready; i++)
		for (const struct box *s = j->box->sessions; s; s = s->sibling)
			if (s->p == j->ready[i])
				napi_set_element(env, list, n++, from_int(env, s->number));
	return list;
}

static napi_value step(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct job *j = job_of(env, info, argv, 1, BOX_BATCH, run_step, stepped);
	if (!j)
		return NULL;
	for (const struct box *s = j->box->sessions; s; s = s->sibling)
		j->n_ready++;
	j->ready = calloc(j->n_ready + 1, sizeof *j->ready);
	if (!j->ready)
		throw_argument(env, "not enough memory for a step");
	return start_job(env, j, j->ready != NULL);
}

/* batchSession(batch, sampling, number) */
static napi_value batch_session(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	struct sampling_given given = { 0 };
	jit_sampling p;
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 3, BOX_BATCH);
	if (!b)
		return NULL;
	jit_session *s = NULL;
	if (take_sampling(env, argv[1], &given) && sampling_of(model_of(b), &given, &p, &err))
		s = jit_batch_session(b->p, &p, &err);
	free_sampling(&given);
	if (!s)
		return is_pending(env) ? NULL : throw_error(env, &err);
	napi_value out = make_box(env, BOX_SESSION, s, b, NULL);
	if (out)
		b->sessions->number = take_int(env, argv[2]);
	return out;
}

/* submit(session, ids): how many of them need not be computed */
static napi_value submit(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	size_t n = 0, reused = 0;
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 2, BOX_SESSION);
	int32_t *ids = b ? take_ids(env, argv[1], &n) : NULL;
	if (!ids)
		return NULL;
	int status = jit_session_submit(b->p, ids, n, &reused, &err);
	free(ids);
	return status ? throw_error(env, &err) : from_uint(env, reused);
}

static napi_value pending(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = first_box(env, info, argv, 1, BOX_BATCH);
	return b ? from_uint(env, jit_batch_pending(b->p)) : NULL;
}

/* forget(batch, ids) */
static napi_value forget(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	size_t n = 0;
	struct box *b = first_box(env, info, argv, 2, BOX_BATCH);
	int32_t *ids = b ? take_ids(env, argv[1], &n) : NULL;
	if (!ids)
		return NULL;
	napi_value out = from_uint(env, jit_batch_forget(b->p, ids, n));
	free(ids);
	return out;
}

static napi_value stats(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	jit_error err = { 0 };
	jit_batch_stats s = JIT_BATCH_STATS();
	struct box *b = first_box(env, info, argv, 1, BOX_BATCH);
	if (!b)
		return NULL;
	return jit_batch_get_stats(b->p, &s, &err) ? throw_error(env, &err) : batch_stats(env, &s);
}

void export_batch(napi_env env, napi_value exports)
{
	export_function(env, exports, "choose", choose_one);
	export_function(env, exports, "chooseAll", choose_all);
	export_function(env, exports, "step", step);
	export_function(env, exports, "batchSession", batch_session);
	export_function(env, exports, "submit", submit);
	export_function(env, exports, "pending", pending);
	export_function(env, exports, "forget", forget);
	export_function(env, exports, "batchStats", stats);
}
