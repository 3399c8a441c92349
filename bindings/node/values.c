/* values.c - values of JavaScript to those of C and back. */
#include <stdlib.h>
#include <string.h>

#include "addon.h"

bool arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t n)
{
	size_t given = n;
	if (napi_get_cb_info(env, info, &given, argv, NULL, NULL) == napi_ok && given >= n)
		return true;
	throw_argument(env, "arguments are missing");
	return false;
}

bool is_nothing(napi_env env, napi_value value)
{
	napi_valuetype type = napi_undefined;
	napi_typeof(env, value, &type);
	return type == napi_undefined || type == napi_null;
}

bool is_pending(napi_env env)
{
	bool thrown = false;
	napi_is_exception_pending(env, &thrown);
	return thrown;
}

char *take_text(napi_env env, napi_value value, size_t *n)
{
	if (is_nothing(env, value))
		return NULL;
	size_t length = 0;
	if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) {
		throw_argument(env, "a string was expected");
		return NULL;
	}
	char *text = malloc(length + 1);
	if (!text) {
		throw_argument(env, "not enough memory for a text");
		return NULL;
	}
	napi_get_value_string_utf8(env, value, text, length + 1, &length);
	if (n)
		*n = length;
	else if (strlen(text) != length) {
		free(text);
		throw_argument(env, "a text has a zero byte: one without was expected");
		return NULL;
	}
	return text;
}

char *take_bytes(napi_env env, napi_value value, size_t *n)
{
	bool is_array = false;
	napi_typedarray_type type = napi_int8_array;
	void *data = NULL;
	napi_is_typedarray(env, value, &is_array);
	if (!is_array)
		return take_text(env, value, n);
	napi_get_typedarray_info(env, value, &type, n, &data, NULL, NULL);
	char *bytes = type == napi_uint8_array ? malloc(*n + 1) : NULL;
	if (!bytes) {
		throw_argument(env, type == napi_uint8_array ? "not enough memory for bytes"
		                                             : "a string or a Uint8Array was expected");
		return NULL;
	}
	if (*n)
		memcpy(bytes, data, *n);
	return bytes;
}

bool take_texts(napi_env env, napi_value value, struct texts *out)
{
	uint32_t n = 0;
	*out = (struct texts){ 0 };
	if (napi_get_array_length(env, value, &n) != napi_ok) {
		throw_argument(env, "an array of strings was expected");
		return false;
	}
	out->list = calloc(n + 1, sizeof *out->list);
	if (!out->list) {
		throw_argument(env, "not enough memory for texts");
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		napi_value one;
		napi_get_element(env, value, i, &one);
		char *text = take_text(env, one, NULL);
		if (!text) {
			free_texts(out);
			if (!is_pending(env))
				throw_argument(env, "an array of strings was expected");
			return false;
		}
		out->list[out->n++] = text;
	}
	return true;
}

void free_texts(struct texts *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->list[i]);
	free(t->list);
	*t = (struct texts){ 0 };
}

int32_t *take_ids(napi_env env, napi_value value, size_t *n)
{
	bool is_array = false;
	napi_typedarray_type type = napi_int8_array;
	void *data = NULL;
	napi_is_typedarray(env, value, &is_array);
	if (is_array)
		napi_get_typedarray_info(env, value, &type, n, &data, NULL, NULL);
	if (type != napi_int32_array) {
		throw_argument(env, "an Int32Array was expected");
		return NULL;
	}
	int32_t *ids = malloc((*n + 1) * sizeof *ids);
	if (!ids) {
		throw_argument(env, "not enough memory for tokens");
		return NULL;
	}
	if (*n)
		memcpy(ids, data, *n * sizeof *ids);
	return ids;
}

int take_int(napi_env env, napi_value value)
{
	int32_t n = 0;
	bool flag = false;
	if (napi_get_value_bool(env, value, &flag) == napi_ok)
		return flag;
	napi_get_value_int32(env, value, &n);
	return n;
}

napi_value named(napi_env env, napi_value object, const char *name)
{
	napi_value value = NULL;
	return napi_get_named_property(env, object, name, &value) == napi_ok ? value : nothing(env);
}

napi_value nothing(napi_env env)
{
	napi_value value = NULL;
	napi_get_undefined(env, &value);
	return value;
}

napi_value from_text(napi_env env, const char *text, size_t n)
{
	napi_value value = NULL;
	if (text)
		napi_create_string_utf8(env, text, n, &value);
	else
		napi_get_null(env, &value);
	return value;
}

/* How long the character at text is, of at most n bytes; 0: it is none of UTF-8. */
static size_t character(const unsigned char *text, size_t n)
{
	static const struct {
		unsigned char first, last, low, high; /* of the first byte, and of the second */
		size_t bytes;
	} forms[] = { { 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		      { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		      { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 } };
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if (text[0] < forms[i].first || text[0] > forms[i].last)
			continue;
		bool ok = forms[i].bytes <= n;
		for (size_t at = 1; ok && at < forms[i].bytes; at++)
			ok = text[at] >= (at == 1 ? forms[i].low : 0x80) &&
			     text[at] <= (at == 1 ? forms[i].high : 0xbf);
		return ok ? forms[i].bytes : 0;
	}
	return 0;
}

napi_value from_text_or_bytes(napi_env env, const char *text, size_t n)
{
	for (size_t at = 0, length; at < n; at += length)
		if (!(length = character((const unsigned char *)text + at, n - at)))
			return from_bytes(env, text, n);
	return from_text(env, text, n);
}

static napi_value from_array(napi_env env, napi_typedarray_type type, const void *from, size_t n, size_t width)
{
	void *data = NULL;
	napi_value buffer, value = NULL;
	if (napi_create_arraybuffer(env, n * width, &data, &buffer) != napi_ok)
		return throw_argument(env, "not enough memory for an array");
	if (n)
		memcpy(data, from, n * width);
	napi_create_typedarray(env, type, n, buffer, 0, &value);
	return value;
}

napi_value from_bytes(napi_env env, const char *bytes, size_t n)
{
	return from_array(env, napi_uint8_array, bytes, n, sizeof *bytes);
}

napi_value from_ids(napi_env env, const int32_t *ids, size_t n)
{
	return from_array(env, napi_int32_array, ids, n, sizeof *ids);
}

napi_value from_floats(napi_env env, const float *floats, size_t n)
{
	return from_array(env, napi_float32_array, floats, n, sizeof *floats);
}

napi_value from_int(napi_env env, int64_t n)
{
	napi_value value = NULL;
	napi_create_int64(env, n, &value);
	return value;
}

napi_value from_uint(napi_env env, uint64_t n)
{
	napi_value value = NULL;
	if (n <= (uint64_t)1 << 53)
		return from_int(env, (int64_t)n);
	napi_create_bigint_uint64(env, n, &value);
	return value;
}

napi_value from_double(napi_env env, double x)
{
	napi_value value = NULL;
	napi_create_double(env, x, &value);
	return value;
}

napi_value from_flag(napi_env env, int flag)
{
	napi_value value = NULL;
	napi_get_boolean(env, flag != 0, &value);
	return value;
}

void set(napi_env env, napi_value object, const char *name, napi_value value)
{
	if (value)
		napi_set_named_property(env, object, name, value);
}

napi_value make_error(napi_env env, const jit_error *err)
{
#define CODE(name) [name] = #name
	static const char *const codes[] = {
		CODE(JIT_OK),
		CODE(JIT_ERROR_IO),
		CODE(JIT_ERROR_FORMAT),
		CODE(JIT_ERROR_UNSUPPORTED),
		CODE(JIT_ERROR_MEMORY),
		CODE(JIT_ERROR_ARGUMENT),
		CODE(JIT_ERROR_DEVICE),
		CODE(JIT_ERROR_CONTEXT),
		CODE(JIT_ERROR_CANCELLED),
		CODE(JIT_ERROR_STALLED)
	};
	size_t n = sizeof codes / sizeof *codes;
	const char *code = err->code > 0 && (size_t)err->code < n ? codes[err->code] : "JIT_ERROR";
	napi_value error = NULL;
	napi_create_error(env, from_text(env, code, NAPI_AUTO_LENGTH), from_text(env, err->message, NAPI_AUTO_LENGTH),
	                  &error);
	return error;
}

napi_value throw_error(napi_env env, const jit_error *err)
{
	napi_throw(env, make_error(env, err));
	return NULL;
}

napi_value throw_argument(napi_env env, const char *sentence)
{
	napi_throw_error(env, "JIT_ERROR_ARGUMENT", sentence);
	return NULL;
}

void export_function(napi_env env, napi_value exports, const char *name, napi_callback function)
{
	napi_value value = NULL;
	napi_create_function(env, name, NAPI_AUTO_LENGTH, function, NULL, &value);
	set(env, exports, name, value);
}
