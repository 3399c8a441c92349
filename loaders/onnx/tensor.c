/* loaders/onnx/tensor.c - tensors of ONNX files: element types, and where the elements lie. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/file.h"
#include "loaders/onnx/file.h"

static const struct {
	const char *name;
	int type;
} types[] = {
	{ "undefined", -1 },
	{ "float", JIT_TYPE_F32 },
	{ "uint8", JIT_TYPE_U8 },
	{ "int8", JIT_TYPE_I8 },
	{ "uint16", JIT_TYPE_U16 },
	{ "int16", JIT_TYPE_I16 },
	{ "int32", JIT_TYPE_I32 },
	{ "int64", JIT_TYPE_I64 },
	{ "string", -1 },
	{ "bool", JIT_TYPE_BOOL },
	{ "float16", JIT_TYPE_F16 },
	{ "double", JIT_TYPE_F64 },
	{ "uint32", JIT_TYPE_U32 },
	{ "uint64", JIT_TYPE_U64 },
	{ "complex64", -1 },
	{ "complex128", -1 },
	{ "bfloat16", JIT_TYPE_BF16 },
	{ "float8e4m3fn", -1 },
	{ "float8e4m3fnuz", -1 },
	{ "float8e5m2", -1 },
	{ "float8e5m2fnuz", -1 },
	{ "uint4", -1 },
	{ "int4", -1 },
	{ "float4e2m1", -1 },
	{ "float8e8m0", -1 },
	{ "uint2", -1 },
	{ "int2", -1 }
};
_Static_assert(sizeof types / sizeof *types == ONNX_LAST_TYPE + 1, "a row for each type");

int onnx_type(int64_t number) { return number < 0 || number > ONNX_LAST_TYPE ? -1 : types[number].type; }
const char *onnx_type_name(int64_t number)
{
	return number < 0 || number > ONNX_LAST_TYPE ? "unknown" : types[number].name;
}

/* ---- elements that lie in fields of their type */

/* How many the field has that a type's elements lie in; 0: the type has none. */
static size_t count_of(const struct onnx_tensor *t, int type)
{
	switch (type) {
	case JIT_TYPE_F32: return t->n_floats;
	case JIT_TYPE_F64: return t->n_doubles;
	case JIT_TYPE_I64: return t->n_int64s;
	case JIT_TYPE_U32:
	case JIT_TYPE_U64: return t->n_uint64s;
	default: return t->n_int32s;
	}
}

static void copy_fields(const struct onnx_tensor *t, struct tensor *out)
{
	const uint64_t n = shape_elements(&out->shape);

	for (uint64_t i = 0; i < n; i++) {
		union number x = { .u = 0 };
		switch (out->type) {
		case JIT_TYPE_F32: x.f = t->floats[i]; break;
		case JIT_TYPE_F64: x.d = t->doubles[i]; break;
		case JIT_TYPE_I64: x.i = t->int64s[i]; break;
		case JIT_TYPE_U32:
		case JIT_TYPE_U64: x.u = t->uint64s[i]; break;
		case JIT_TYPE_F16:
		case JIT_TYPE_BF16: /* their bits */ ((uint16_t *)out->data)[i] = (uint16_t)t->int32s[i]; continue;
		default: x.i = t->int32s[i]; break;
		}
		tensor_put(out, i, x);
	}
}

/* Element i of a narrow type, of which several lie in a byte, the first one in its low bits. */
static void put_narrow(int64_t type, uint64_t i, unsigned byte, struct tensor *out)
{
	const unsigned bits = onnx_narrow_bits(type), each = 8 / bits;

	tensor_put(out, i, onnx_narrow_value(type, byte >> (unsigned)(i % each) * bits & ((1U << bits) - 1)));
}

static void unpack(int64_t type, const uint8_t *packed, struct tensor *out)
{
	const uint64_t n = shape_elements(&out->shape), each = 8 / onnx_narrow_bits(type);

	for (uint64_t i = 0; i < n; i++)
		put_narrow(type, i, packed[i / each], out);
}

/* The same of bytes that are integers of 32 bits each. */
static void unpack_ints(int64_t type, const int32_t *packed, struct tensor *out)
{
	const uint64_t n = shape_elements(&out->shape), each = 8 / onnx_narrow_bits(type);

	for (uint64_t i = 0; i < n; i++)
		put_narrow(type, i, (uint8_t)packed[i / each], out);
}

/* How many bytes a file has of the elements. */
static uint64_t bytes_of(int64_t type, const struct tensor *t)
{
	const unsigned bits = onnx_narrow_bits(type);

	return bits ? (shape_elements(&t->shape) * bits + 7) / 8 : tensor_bytes(t);
}

/* Any byte but 0 is true; elements of graphs are 0 or 1. */
static void tidy_bools(struct tensor *t)
{
	const uint64_t n = t->type == JIT_TYPE_BOOL ? tensor_bytes(t) : 0;
	uint8_t *p = t->data;

	for (uint64_t i = 0; i < n; i++)
		p[i] = p[i] != 0;
}

/* ---- elements that lie in another file */

static bool read_number(const char *text, uint64_t *out)
{
	uint64_t n = 0;

	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || n > UINT64_MAX / 16)
			return false;
		n = n * 10 + (uint64_t)(*p - '0');
	}
	*out = n;
	return *text != 0;
}

/* Whether the path stays in the folder: it is relative, and no part is "..". */
static bool stays_inside(const char *path)
{
	if (!*path || *path == '/')
		return false;
	for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/')
		if (strncmp(p, "..", 2) == 0 && (p[2] == 0 || p[2] == '/'))
			return false;
	return true;
}

/* A link may lead out of the folder. */
static bool is_really_inside(const char *folder, const char *path)
{
	char *real_folder = realpath(folder, NULL), *real = realpath(path, NULL);
	const size_t n = real_folder ? strlen(real_folder) : 0;
	const bool ok = real_folder && real && strncmp(real, real_folder, n) == 0 &&
	                (real[n] == '/' || (n && real_folder[n - 1] == '/'));

	free(real_folder);
	free(real);
	return ok;
}

/* Memory is asked for when the file is known to have as much. */
static bool read_part(const char *what, const char *path, uint64_t offset, struct tensor *out, struct error *err)
{
	const uint64_t bytes = tensor_bytes(out);
	struct file f;

	if (!file_open(&f, path, err))
		return false;
	bool ok = (offset <= f.size && bytes <= f.size - offset) ||
	          error_set(err, ERROR_FORMAT,
	                    "%s: its external data is %" PRIu64 " bytes at %" PRIu64 ", and %s has %" PRIu64, what,
	                    bytes, offset, f.label, f.size);
	ok = ok && tensor_make_unset(out, out->type, &out->shape, err);
	if (ok && !((bytes == 0 || file_read(&f, offset, (size_t)bytes, out->data, err)) && file_same(&f, err))) {
		tensor_free(out);
		ok = false;
	}
	file_close(&f);
	return ok;
}

static bool read_external(const struct onnx_tensor *t, const char *what, const char *folder, struct tensor *out,
                          struct error *err)
{
	const char *location = "";
	const uint64_t expected = bytes_of(t->type, out);
	uint64_t offset = 0, length = expected;
	struct tensor packed = { .type = JIT_TYPE_U8, .shape = { .rank = 1, .dim = { expected } } };
	char path[4096];

	for (size_t i = 0; i < t->n_external; i++) {
		const char *key = t->external[i]->key, *value = t->external[i]->value;
		if (!key || !value)
			continue;
		if (strcmp(key, "location") == 0)
			location = value;
		else if ((strcmp(key, "offset") == 0 && !read_number(value, &offset)) ||
		         (strcmp(key, "length") == 0 && !read_number(value, &length)))
			return error_set(err, ERROR_FORMAT, "%s: %s of its external data is %s, expected a number",
			                 what, key, value);
	}
	if (length != expected)
		return error_set(err, ERROR_FORMAT, "%s: its external data has %" PRIu64 " bytes, expected %" PRIu64,
		                 what, length, expected);
	if (!folder)
		return error_set(err, ERROR_FORMAT, "%s has external data, and the model lies in no folder", what);
	if (!stays_inside(location) || (size_t)snprintf(path, sizeof path, "%s/%s", folder, location) >= sizeof path)
		return error_set(err, ERROR_FORMAT,
		                 "%s: its external data lies in %s, expected a file of the model's folder", what,
		                 *location ? location : "no file");
	if (!is_really_inside(folder, path))
		return error_set(err, ERROR_FORMAT,
		                 "%s: its external data, %s, is not there, or a link leads out of the model's folder",
		                 what, location);
	if (!onnx_narrow_bits(t->type))
		return read_part(what, path, offset, out, err);
	if (!read_part(what, path, offset, &packed, err))
		return false;
	const bool ok = tensor_make(out, out->type, &out->shape, err);
	if (ok)
		unpack(t->type, packed.data, out);
	tensor_free(&packed);
	return ok;
}

/* ---- all of them */

static bool shape_of(const struct onnx_tensor *t, const char *what, struct shape *s, struct error *err)
{
	if (t->n_dims > TENSOR_MAX_RANK)
		return error_set(err, ERROR_UNSUPPORTED, "%s has %zu dimensions, expected at most %d", what, t->n_dims,
		                 TENSOR_MAX_RANK);
	*s = (struct shape){ .rank = (unsigned)t->n_dims };
	for (unsigned i = 0; i < s->rank; i++) {
		if (t->dims[i] < 0)
			return error_set(err, ERROR_FORMAT, "%s has a dimension of %" PRId64, what, t->dims[i]);
		s->dim[i] = (uint64_t)t->dims[i];
	}
	return true;
}

static bool fill(const struct onnx_tensor *t, const char *what, struct tensor *out, struct error *err)
{
	const uint64_t bytes = bytes_of(t->type, out), n = shape_elements(&out->shape);
	const bool narrow = onnx_narrow_bits(t->type) != 0;

	if (t->has_raw && (t->raw.len || n == 0)) {
		if (t->raw.len != bytes)
			return error_set(err, ERROR_FORMAT, "%s has %zu bytes, expected %" PRIu64, what, t->raw.len,
			                 bytes);
		if (narrow)
			unpack(t->type, t->raw.data, out);
		else if (bytes)
			memcpy(out->data, t->raw.data, (size_t)bytes);
		return true;
	}
	if (narrow && t->n_int32s != bytes)
		return error_set(err, ERROR_FORMAT, "%s has %zu bytes, expected %" PRIu64, what, t->n_int32s, bytes);
	if (narrow) {
		unpack_ints(t->type, t->int32s, out);
		return true;
	}
	if (count_of(t, out->type) != n)
		return error_set(err, ERROR_FORMAT, "%s has %zu elements, expected %" PRIu64, what,
		                 count_of(t, out->type), n);
	copy_fields(t, out);
	return true;
}

/* The elements must be there before memory for them is: a few bytes can claim any size. */
static bool can_be_there(const struct onnx_tensor *t, uint64_t elements, const char *what, struct error *err)
{
	const size_t n = t->raw.len + t->n_floats + t->n_doubles + t->n_int32s + t->n_int64s + t->n_uint64s;
	const unsigned bits = onnx_narrow_bits(t->type);

	return elements <= n || (bits && elements / (8 / bits) <= n) ||
	       error_set(err, ERROR_FORMAT, "%s has %zu bytes or elements, expected %" PRIu64, what, n, elements);
}

bool onnx_tensor_of(const struct onnx_tensor *t, const char *what, const char *folder, struct tensor *out,
                    struct error *err)
{
	const int type = onnx_held_type(t->type);
	struct shape s;

	if (type < 0 || t->has_segment)
		return error_set(err, ERROR_UNSUPPORTED, "%s has elements of type %s%s", what, onnx_type_name(t->type),
		                 t->has_segment ? " in segments" : "");
	if (!shape_of(t, what, &s, err) || !shape_fits(type, &s, err))
		return false;
	*out = (struct tensor){ .type = type, .shape = s };
	bool ok;
	if (t->location) {
		ok = read_external(t, what, folder, out, err);
	} else {
		const bool raw = t->raw.len && !onnx_narrow_bits(t->type);
		ok = can_be_there(t, shape_elements(&s), what, err) &&
		     (raw ? tensor_make_unset : tensor_make)(out, type, &s, err);
		if (ok && !fill(t, what, out, err)) {
			tensor_free(out);
			ok = false;
		}
	}
	if (ok)
		tidy_bools(out);
	return ok;
}

bool onnx_read_tensor(const char *name, const void *bytes, size_t n, struct tensor *out, struct error *err)
{
	struct onnx_tensor *t = proto_decode_tensor(name, bytes, n, err);
	const bool ok = t && onnx_tensor_of(t, name, NULL, out, err);

	proto_free_tensor(t);
	return ok;
}
