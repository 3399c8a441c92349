/* session.c - the state of sessions, and what is asked of them without computing. */
#include <stdlib.h>

#include "addon.h"

static napi_value ids(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = first_box(env, info, argv, 1, BOX_SESSION);
	return b ? from_ids(env, jit_session_ids(b->p), jit_session_length(b->p)) : NULL;
}

static napi_value rewind_to(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 2, BOX_SESSION);
	if (!b)
		return NULL;
	int n = take_int(env, argv[1]);
	if (n < 0)
		return throw_argument(env, "a position below 0 was given: 0 to the session's length was expected");
	return jit_session_rewind(b->p, (size_t)n, &err) ? throw_error(env, &err) : NULL;
}

/* sampling(session, sampling) */
static napi_value sampling(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct sampling_given given = { 0 };
	jit_error err = { 0 };
	jit_sampling p;
	struct box *b = first_box(env, info, argv, 2, BOX_SESSION);
	if (!b)
		return NULL;
	bool ok = take_sampling(env, argv[1], &given) && sampling_of(model_of(b), &given, &p, &err) &&
	          !jit_session_set_sampling(b->p, &p, &err);
	free_sampling(&given);
	return ok || is_pending(env) ? NULL : throw_error(env, &err);
}

/* stop(session, [text, ...]) */
static napi_value stop(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct texts t;
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 2, BOX_SESSION);
	if (!b || !take_texts(env, argv[1], &t))
		return NULL;
	int status = jit_session_set_stop(b->p, (const char *const *)t.list, t.n, &err);
	free_texts(&t);
	return status ? throw_error(env, &err) : NULL;
}

static napi_value stopped(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = first_box(env, info, argv, 1, BOX_SESSION);
	return b ? from_int(env, jit_session_stopped(b->p)) : NULL;
}

static napi_value grammar_complete(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = first_box(env, info, argv, 1, BOX_SESSION);
	return b ? from_int(env, jit_session_grammar_complete(b->p)) : NULL;
}

/* text(session, id, as_bytes) */
static napi_value text(napi_env env, napi_callback_info info)
{
	napi_value argv[3];
	size_t n = 0;
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 3, BOX_SESSION);
	if (!b)
		return NULL;
	const char *out = jit_session_text(b->p, take_int(env, argv[1]), &n, &err);
	if (!out)
		return throw_error(env, &err);
	return take_int(env, argv[2]) ? from_bytes(env, out, n) : from_text(env, out, n);
}

/* logprobs(session, n, sampled): how likely the last token was held, and the n likeliest */
static napi_value logprobs(napi_env env, napi_callback_info info)
{
	napi_value argv[3], out = NULL;
	float chosen = 0;
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 3, BOX_SESSION);
	if (!b)
		return NULL;
	size_t n = (size_t)take_int(env, argv[1]), n_top = n;
	jit_logprob *top = calloc(n + 1, sizeof *top);
	if (!top)
		return throw_argument(env, "not enough memory for log probabilities");
	int status = take_int(env, argv[2]) ? jit_session_sampled_logprobs(b->p, &chosen, top, n, &n_top, &err)
	                                    : jit_session_logprobs(b->p, &chosen, top, n, &err);
	out = status ? throw_error(env, &err) : from_logprobs(env, chosen, top, n_top < n ? n_top : n);
	free(top);
	return out;
}

static napi_value stats(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	jit_error err = { 0 };
	jit_session_stats s = JIT_SESSION_STATS();
	struct box *b = first_box(env, info, argv, 1, BOX_SESSION);
	if (!b)
		return NULL;
	return jit_session_get_stats(b->p, &s, &err) ? throw_error(env, &err) : session_stats(env, &s);
}

static napi_value counted(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	jit_error err = { 0 };
	jit_card_stats s = JIT_CARD_STATS();
	struct box *b = first_box(env, info, argv, 1, BOX_SESSION);
	if (!b)
		return NULL;
	return jit_session_get_card_stats(b->p, &s, &err) ? throw_error(env, &err) : card_stats(env, &s);
}

void export_session(napi_env env, napi_value exports)
{
	export_function(env, exports, "ids", ids);
	export_function(env, exports, "rewind", rewind_to);
	export_function(env, exports, "sampling", sampling);
	export_function(env, exports, "stop", stop);
	export_function(env, exports, "stopped", stopped);
	export_function(env, exports, "grammarComplete", grammar_complete);
	export_function(env, exports, "text", text);
	export_function(env, exports, "logprobs", logprobs);
	export_function(env, exports, "stats", stats);
	export_function(env, exports, "cardStats", counted);
}
