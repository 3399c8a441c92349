/* tokens.c - what a model says of itself: texts and tokens, its vocabulary, its metadata; and devices. */
#include <stdlib.h>

#include "addon.h"

static napi_value model_info(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	jit_error err = { 0 };
	jit_model_info i = JIT_MODEL_INFO();
	struct box *b = first_box(env, info, argv, 1, BOX_MODEL);
	if (!b)
		return NULL;
	return jit_model_get_info(b->p, &i, &err) ? throw_error(env, &err) : info_of(env, &i);
}

static napi_value defaults(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	jit_error err = { 0 };
	jit_sampling p = JIT_SAMPLING();
	struct box *b = first_box(env, info, argv, 1, BOX_MODEL);
	if (!b)
		return NULL;
	return jit_model_sampling_defaults(b->p, &p, &err) ? throw_error(env, &err) : sampling_numbers(env, &p);
}

/* Of a function(model) that only answers whether all is well. */
static napi_value ask(napi_env env, napi_callback_info info, int (*written)(jit_model *, jit_error *),
                      int (*alive)(const jit_model *, jit_error *))
{
	napi_value argv[1];
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 1, BOX_MODEL);
	if (!b)
		return NULL;
	return (written ? written(b->p, &err) : alive(b->p, &err)) ? throw_error(env, &err) : NULL;
}

static napi_value written(napi_env env, napi_callback_info info) { return ask(env, info, jit_model_written, NULL); }

static napi_value alive(napi_env env, napi_callback_info info) { return ask(env, info, NULL, jit_model_alive); }

/* tokenize(model, text, add_special, parse_special) */
static napi_value tokenize(napi_env env, napi_callback_info info)
{
	napi_value argv[4];
	size_t n = 0, n_ids = 0;
	int32_t *ids = NULL;
	jit_error err = { 0 };
	struct box *b = first_box(env, info, argv, 4, BOX_MODEL);
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
	struct box *b = first_box(env, info, argv, 2, BOX_MODEL);
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
	napi_value argv[2];
	struct box *b = first_box(env, info, argv, 2, BOX_MODEL);
	return b ? from_flag(env, jit_model_is_end(b->p, take_int(env, argv[1]))) : NULL;
}

/* token(model, id) */
static napi_value token(napi_env env, napi_callback_info info)
{
	napi_value argv[2], out = NULL;
	char some[64], *bytes = some;
	jit_error err = { 0 };
	jit_token t = JIT_TOKEN();
	struct box *b = first_box(env, info, argv, 2, BOX_MODEL);
	if (!b)
		return NULL;
	int32_t id = take_int(env, argv[1]);
	int status = jit_model_token(b->p, id, &t, bytes, sizeof some, &err);
	if (!status && t.n_bytes > sizeof some) {
		bytes = malloc(t.n_bytes);
		if (!bytes)
			return throw_argument(env, "not enough memory for a token");
		status = jit_model_token(b->p, id, &t, bytes, t.n_bytes, &err);
	}
	if (status) {
		throw_error(env, &err);
	} else {
		napi_create_object(env, &out);
		set(env, out, "id", from_int(env, id));
		set(env, out, "spelling", t.text ? from_bytes(env, t.text, t.n_text) : from_text(env, NULL, 0));
		set(env, out, "bytes", from_bytes(env, bytes, t.n_bytes));
		set(env, out, "kind", from_int(env, t.kind));
		set(env, out, "isEnd", from_flag(env, t.is_end));
	}
	if (bytes != some)
		free(bytes);
	return out;
}

/* findToken(model, spelling): -1 where no token has it */
static napi_value find_token(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	size_t n = 0;
	struct box *b = first_box(env, info, argv, 2, BOX_MODEL);
	char *text = b ? take_bytes(env, argv[1], &n) : NULL;
	if (!text)
		return NULL;
	napi_value out = from_int(env, jit_model_find_token(b->p, text, n));
	free(text);
	return out;
}

/* roles(model): the token for each task, by the name of the task; -1 where the model has no such token */
static napi_value roles(napi_env env, napi_callback_info info)
{
	napi_value argv[1], out = NULL;
	jit_error err = { 0 };
	int32_t id = -1;
	struct box *b = first_box(env, info, argv, 1, BOX_MODEL);
	if (!b)
		return NULL;
	napi_create_object(env, &out);
	for (size_t i = 0; jit_token_role(i); i++) {
		if (jit_model_role(b->p, jit_token_role(i), &id, &err))
			return throw_error(env, &err);
		set(env, out, jit_token_role(i), from_int(env, id));
	}
	return out;
}

static napi_value stop_texts(napi_env env, napi_callback_info info)
{
	napi_value argv[1], out = NULL;
	struct box *b = first_box(env, info, argv, 1, BOX_MODEL);
	if (!b)
		return NULL;
	napi_create_array(env, &out);
	for (size_t i = 0; jit_model_stop(b->p, i); i++)
		napi_set_element(env, out, (uint32_t)i, from_text(env, jit_model_stop(b->p, i), NAPI_AUTO_LENGTH));
	return out;
}

/* undefined: the library does not give its items. */
static napi_value plain(napi_env env, const jit_metadata *m)
{
	switch (m->kind) {
	case JIT_METADATA_STRING: return from_text_or_bytes(env, m->text, m->n);
	case JIT_METADATA_INTEGER: {
		napi_value big = NULL;
		if (m->integer >= -((int64_t)1 << 53) && m->integer <= (int64_t)1 << 53)
			return from_int(env, m->integer);
		napi_create_bigint_int64(env, m->integer, &big);
		return big;
	}
	case JIT_METADATA_REAL: return from_double(env, m->real);
	case JIT_METADATA_BOOL: return from_flag(env, m->integer != 0);
	case JIT_METADATA_NULL: return from_text(env, NULL, 0);
	}
	return nothing(env);
}

static napi_value value_of(napi_env env, const jit_model *model, size_t number, const jit_metadata *m)
{
	napi_value list = NULL;
	jit_error err = { 0 };
	if (m->kind != JIT_METADATA_ARRAY)
		return plain(env, m);
	napi_create_array_with_length(env, m->n, &list);
	for (size_t i = 0; i < m->n; i++) {
		jit_metadata item = JIT_METADATA();
		napi_handle_scope scope;
		if (jit_model_metadata_item(model, number, i, &item, &err))
			return throw_error(env, &err);
		napi_open_handle_scope(env, &scope);
		napi_set_element(env, list, (uint32_t)i, plain(env, &item));
		napi_close_handle_scope(env, scope);
	}
	return list;
}

/* metadata(model, number): [key, value], or undefined: there are no more */
static napi_value metadata(napi_env env, napi_callback_info info)
{
	napi_value argv[2], out = NULL;
	jit_error err = { 0 };
	jit_metadata m = JIT_METADATA();
	struct box *b = first_box(env, info, argv, 2, BOX_MODEL);
	if (!b)
		return NULL;
	int number = take_int(env, argv[1]);
	if (number < 0 || (size_t)number >= jit_model_metadata_count(b->p))
		return NULL;
	if (jit_model_metadata(b->p, (size_t)number, &m, &err))
		return throw_error(env, &err);
	napi_value value = value_of(env, b->p, (size_t)number, &m);
	if (!value)
		return NULL;
	napi_create_array(env, &out);
	napi_set_element(env, out, 0, from_text(env, m.key, NAPI_AUTO_LENGTH));
	napi_set_element(env, out, 1, value);
	return out;
}

static napi_value metadata_count(napi_env env, napi_callback_info info)
{
	napi_value argv[1];
	struct box *b = first_box(env, info, argv, 1, BOX_MODEL);
	return b ? from_uint(env, jit_model_metadata_count(b->p)) : NULL;
}

/* metadataFind(model, key): its number, or -1 */
static napi_value metadata_find(napi_env env, napi_callback_info info)
{
	napi_value argv[2];
	struct box *b = first_box(env, info, argv, 2, BOX_MODEL);
	char *key = b ? take_text(env, argv[1], NULL) : NULL;
	if (!key)
		return NULL;
	napi_value out = from_int(env, jit_model_metadata_find(b->p, key));
	free(key);
	return out;
}

static napi_value devices(napi_env env, napi_callback_info info)
{
	napi_value list = NULL;
	jit_error err = { 0 };
	(void)info;
	napi_create_array(env, &list);
	for (size_t i = 0; i < jit_device_count(); i++) {
		napi_value one;
		jit_device_info d = JIT_DEVICE_INFO();
		if (jit_device_get_info(i, &d, &err))
			return throw_error(env, &err);
		napi_create_object(env, &one);
		set(env, one, "name", from_text(env, d.name, NAPI_AUTO_LENGTH));
		set(env, one, "about", from_text(env, d.about, NAPI_AUTO_LENGTH));
		set(env, one, "whyNot", from_text(env, *d.why_not ? d.why_not : NULL, NAPI_AUTO_LENGTH));
		napi_set_element(env, list, (uint32_t)i, one);
	}
	return list;
}

void export_tokens(napi_env env, napi_value exports)
{
	export_function(env, exports, "info", model_info);
	export_function(env, exports, "defaults", defaults);
	export_function(env, exports, "written", written);
	export_function(env, exports, "alive", alive);
	export_function(env, exports, "tokenize", tokenize);
	export_function(env, exports, "detokenize", detokenize);
	export_function(env, exports, "isEnd", is_end);
	export_function(env, exports, "token", token);
	export_function(env, exports, "findToken", find_token);
	export_function(env, exports, "roles", roles);
	export_function(env, exports, "stopTexts", stop_texts);
	export_function(env, exports, "metadata", metadata);
	export_function(env, exports, "metadataCount", metadata_count);
	export_function(env, exports, "metadataFind", metadata_find);
	export_function(env, exports, "devices", devices);
}
