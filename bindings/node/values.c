/* values.c - values of JavaScript to those of C and back. */
#include "addon.h"

#include <stdlib.h>
#include <string.h>

bool arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t n)
{
	size_t given = n;
	if (napi_get_cb_info(env, info, &given, argv, NULL, NULL) == napi_ok && given >= n)
		return true;
	throw_argument(env, "arguments are missing");
	return false;
}

static bool is_nothing(napi_env env, napi_value value)
{
	napi_valuetype type = napi_undefined;
	napi_typeof(env, value, &type);
	return type == napi_undefined || type == napi_null;
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
			bool thrown = false;
			napi_is_exception_pending(env, &thrown);
			if (!thrown)
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

napi_value from_text(napi_env env, const char *text, size_t n)
{
	napi_value value = NULL;
	if (text)
		napi_create_string_utf8(env, text, n, &value);
	else
		napi_get_null(env, &value);
	return value;
}

static napi_value from_array(napi_env env, napi_typedarray_type type, const void *from, size_t n)
{
	void *data = NULL;
	napi_value buffer, value = NULL;
	if (napi_create_arraybuffer(env, n * 4, &data, &buffer) != napi_ok)
		return throw_argument(env, "not enough memory for an array");
	if (n)
		memcpy(data, from, n * 4);
	napi_create_typedarray(env, type, n, buffer, 0, &value);
	return value;
}

napi_value from_ids(napi_env env, const int32_t *ids, size_t n) { return from_array(env, napi_int32_array, ids, n); }

napi_value from_floats(napi_env env, const float *floats, size_t n)
{
	return from_array(env, napi_float32_array, floats, n);
}

napi_value from_int(napi_env env, int64_t n)
{
	napi_value value = NULL;
	napi_create_int64(env, n, &value);
	return value;
}

void set(napi_env env, napi_value object, const char *name, napi_value value)
{
	if (value)
		napi_set_named_property(env, object, name, value);
}

napi_value make_error(napi_env env, const jit_error *err)
{
	static const char *const codes[] = {
		"JIT_OK",
		"JIT_ERROR_IO",
		"JIT_ERROR_FORMAT",
		"JIT_ERROR_UNSUPPORTED",
		"JIT_ERROR_MEMORY",
		"JIT_ERROR_ARGUMENT",
		"JIT_ERROR_DEVICE",
		"JIT_ERROR_CONTEXT",
		"JIT_ERROR_CANCELLED",
		"JIT_ERROR_STALLED"
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

void release_box(struct box *b)
{
	while (b && --b->uses == 0) {
		struct box *parent = b->parent;
		if (b->kind == BOX_MODEL)
			jit_model_close(b->p);
		else if (b->kind == BOX_SESSION)
			jit_session_close(b->p);
		else
			jit_answer_close(b->p);
		free(b);
		b = parent;
	}
}

/* The garbage collector has no more use for it. close() of index.js may have come before, and keeps the memory. */
static void collected(napi_env env, void *data, void *hint)
{
	(void)env, (void)hint;
	struct box *b = *(struct box **)data;
	if (b)
		release_box(b);
	free(data);
}

napi_value make_box(napi_env env, enum box_kind kind, void *p, struct box *parent)
{
	struct box *b = calloc(1, sizeof *b), **slot = calloc(1, sizeof *slot);
	napi_value value = NULL;
	if (!b || !slot)
		abort(); /* a few bytes */
	*b = (struct box){ .kind = kind, .p = p, .parent = parent, .uses = 1 };
	if (parent)
		parent->uses++;
	*slot = b;
	napi_create_external(env, slot, collected, NULL, &value);
	return value;
}

struct box *take_box(napi_env env, napi_value value, enum box_kind kind)
{
	static const char *const names[] = { "the model is closed", "the session is closed", "the answer is closed" };
	struct box **slot = NULL;
	if (napi_get_value_external(env, value, (void **)&slot) != napi_ok || !slot || !*slot) {
		throw_argument(env, names[kind]);
		return NULL;
	}
	if ((*slot)->busy) {
		throw_argument(env, "the session computes: wait for the promise of the call before");
		return NULL;
	}
	return *slot;
}
