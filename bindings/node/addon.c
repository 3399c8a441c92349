/* addon.c - what does not compute: models, tokens, and the state of sessions. */
#include "addon.h"

#include <stdlib.h>

void export_function(napi_env env, napi_value exports, const char *name, napi_callback function)
{
	napi_value value = NULL;
	napi_create_function(env, name, NAPI_AUTO_LENGTH, function, NULL, &value);
	set(env, exports, name, value);
}

static napi_value version(napi_env env, napi_callback_info info)
{
	(void)info;
	return from_text(env, jit_version(), NAPI_AUTO_LENGTH);
}

static napi_value model_info(napi_env env, napi_callback_info info)
{
	napi_value argv[1], out = NULL;
	jit_error err = { 0 };
	jit_model_info i = JIT_MODEL_INFO();
	struct box *b = arguments(env, info, argv, 1) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	if (!b)
		return NULL;
	if (jit_model_get_info(b->p, &i, &err))
		return throw_error(env, &err);
	napi_create_object(env, &out);
	set(env, out, "description", from_text(env, i.description, NAPI_AUTO_LENGTH));
	set(env, out, "vocab", from_int(env, i.vocab));
	set(env, out, "layers", from_int(env, i.layers));
	set(env, out, "hidden", from_int(env, i.hidden));
	set(env, out, "contextTrained", from_int(env, i.context_trained));
	set(env, out, "weightBytes", from_int(env, (int64_t)i.weight_bytes));
	set(env, out, "tokenBytes", from_int(env, (int64_t)i.token_bytes));
	napi_value flag;
	napi_get_boolean(env, i.has_tokenizer, &flag);
	set(env, out, "hasTokenizer", flag);
	napi_get_boolean(env, i.has_chat_template, &flag);
	set(env, out, "hasChatTemplate", flag);
	napi_get_boolean(env, i.has_sampling, &flag);
	set(env, out, "hasSampling", flag);
	return out;
}

/* tokenize(model, text, add_special, parse_special) */
static napi_value tokenize(napi_env env, napi_callback_info info)
{
	napi_value argv[4];
	size_t n = 0, n_ids = 0;
	int32_t *ids = NULL;
	jit_error err = { 0 };
	struct box *b = arguments(env, info, argv, 4) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	char *text = b ? take_text(env, argv[1], &n) : NULL;
	if (!text)
		return NULL;
	int status =
		jit_model_tokenize(b->p, text, n, take_int(env, argv[2]), take_int(env, argv[3]), &ids, &n_ids, &err);
	free(text);
	if (status)
		return throw_error(env, &err);
	napi_value out = from_ids(env, ids, n_ids);
	jit_free(ids);
	return out;
}

static napi_value detokenize(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	size_t n = 0, n_text = 0;
	jit_error err = { 0 };
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	int32_t *ids = b ? take_ids(env, argv[1], &n) : NULL;
	if (!ids)
		return NULL;
	char *text = jit_model_detokenize(b->p, ids, n, &n_text, &err);
	free(ids);
	if (!text)
		return throw_error(env, &err);
	napi_value out = from_text(env, text, n_text);
	jit_free(text);
	return out;
}

static napi_value is_end(napi_env env, napi_callback_info info)
{
	napi_value argv[2], out = NULL;
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_MODEL) : NULL;
	if (b)
		napi_get_boolean(env, jit_model_is_end(b->p, take_int(env, argv[1])), &out);
	return out;
}

static napi_value ids(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = arguments(env, info, argv, 1) ? take_box(env, argv[0], BOX_SESSION) : NULL;
	return b ? from_ids(env, jit_session_ids(b->p), jit_session_length(b->p)) : NULL;
}

static napi_value rewind_to(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	jit_error err = { 0 };
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_SESSION) : NULL;
	if (!b)
		return NULL;
	int n = take_int(env, argv[1]);
	if (n < 0)
		return throw_argument(env, "a position below 0 was given: 0 to the session's length was expected");
	return jit_session_rewind(b->p, (size_t)n, &err) ? throw_error(env, &err) : NULL;
}

/* sampling(session, [name, value, ...]) */
static napi_value sampling(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct texts t;
	jit_error err = { 0 };
	jit_sampling p;
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_SESSION) : NULL;
	if (!b || !take_texts(env, argv[1], &t))
		return NULL;
	bool ok = sampling_of(b->parent->p, &t, &p, &err) && !jit_session_set_sampling(b->p, &p, &err);
	free_texts(&t);
	return ok ? NULL : throw_error(env, &err);
}

/* stop(session, [text, ...]) */
static napi_value stop(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct texts t;
	jit_error err = { 0 };
	struct box *b = arguments(env, info, argv, 2) ? take_box(env, argv[0], BOX_SESSION) : NULL;
	if (!b || !take_texts(env, argv[1], &t))
		return NULL;
	int status = jit_session_set_stop(b->p, (const char *const *)t.list, t.n, &err);
	free_texts(&t);
	return status ? throw_error(env, &err) : NULL;
}

/* While the session computes, too: that is what it is for. */
static napi_value cancel(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box **slot = NULL;
	if (arguments(env, info, argv, 1) && napi_get_value_external(env, argv[0], (void **)&slot) == napi_ok && *slot)
		jit_session_cancel((*slot)->p);
	return NULL;
}

/* Closes it now, or when what computes with it has ended. */
static napi_value close_box(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box **slot = NULL;
	if (arguments(env, info, argv, 1) && napi_get_value_external(env, argv[0], (void **)&slot) == napi_ok &&
	    *slot) {
		release_box(*slot);
		*slot = NULL;
	}
	return NULL;
}

int32_t node_api_module_get_api_version_v1(void); /* the macro defines it, and declares it nowhere */

NAPI_MODULE_INIT()
{
	export_function(env, exports, "version", version);
	export_function(env, exports, "info", model_info);
	export_function(env, exports, "tokenize", tokenize);
	export_function(env, exports, "detokenize", detokenize);
	export_function(env, exports, "isEnd", is_end);
	export_function(env, exports, "ids", ids);
	export_function(env, exports, "rewind", rewind_to);
	export_function(env, exports, "sampling", sampling);
	export_function(env, exports, "stop", stop);
	export_function(env, exports, "cancel", cancel);
	export_function(env, exports, "close", close_box);
	export_jobs(env, exports);
	export_chat(env, exports);
	return exports;
}
