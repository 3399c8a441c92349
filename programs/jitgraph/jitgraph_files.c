/* programs/jitgraph/jitgraph_files.c - arrays in files: .npy, safetensors, GGUF, and ONNX's TensorProto. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "loaders/files/gguf.h"
#include "loaders/files/safetensors.h"
#include "loaders/onnx/onnx.h"
#include "programs/jitgraph/jitgraph.h"

/* Types that both files and graphs have. */
static const struct {
	enum dtype file;
	int type;
} types[] = { { DTYPE_F32, JIT_TYPE_F32 },   { DTYPE_F64, JIT_TYPE_F64 }, { DTYPE_F16, JIT_TYPE_F16 },
	      { DTYPE_BF16, JIT_TYPE_BF16 }, { DTYPE_I8, JIT_TYPE_I8 },   { DTYPE_I16, JIT_TYPE_I16 },
	      { DTYPE_I32, JIT_TYPE_I32 },   { DTYPE_I64, JIT_TYPE_I64 }, { DTYPE_U8, JIT_TYPE_U8 },
	      { DTYPE_U16, JIT_TYPE_U16 },   { DTYPE_U32, JIT_TYPE_U32 }, { DTYPE_U64, JIT_TYPE_U64 },
	      { DTYPE_BOOL, JIT_TYPE_BOOL } };
enum { TYPES = sizeof types / sizeof *types };

static bool ends(const char *text, size_t n, const char *with)
{
	const size_t m = strlen(with);

	return n > m && memcmp(text + n - m, with, m) == 0;
}

/* Where the file's name ends: at a colon behind its ending, or at the end. 0: it is no such file. */
static size_t path_length(const char *text, const char *ending)
{
	const char *colon = strrchr(text, ':');

	if (ends(text, strlen(text), ending))
		return strlen(text);
	return colon && ends(text, (size_t)(colon - text), ending) ? (size_t)(colon - text) : 0;
}

bool jitgraph_is_container(const char *text) { return path_length(text, ".safetensors") || path_length(text, ".gguf"); }

/* ---- one array */

/* Counts elements and bytes, and sets memory aside. */
static bool make(struct array *a, struct error *err)
{
	a->elements = 1;
	for (unsigned d = 0; d < a->dims; d++)
		if (__builtin_mul_overflow(a->elements, a->extent[d], &a->elements))
			return error_set(err, ERROR_FORMAT, "%.100s: more elements than memory can have", a->name);
	a->bytes = a->elements * array_type_bytes(a->type);
	a->data = a->bytes < SIZE_MAX / 2 ? malloc(a->bytes ? (size_t)a->bytes : 1) : NULL;
	return a->data ||
	       error_set(err, ERROR_MEMORY, "no memory for the %" PRIu64 " bytes of %.100s", a->bytes, a->name);
}

static bool read_at(const struct file *f, uint64_t at, struct array *a, struct error *err)
{
	bool ok = make(a, err) && (a->bytes == 0 || file_read(f, at, (size_t)a->bytes, a->data, err)) &&
	          file_same(f, err);

	if (!ok) {
		free(a->data);
		a->data = NULL;
	}
	return ok;
}

static bool read_npy(struct array *out, const char *path, struct error *err)
{
	struct file f = { 0 };
	struct npy header;

	if (!file_open(&f, path, err))
		return false;
	const uint64_t head = f.size < 1 << 17 ? f.size : 1 << 17;
	bool ok = file_reach(&f, head, err) && npy_read_header(&header, path, f.base, (size_t)head, err);
	if (ok && header.dims > ARRAY_MAX_DIMS)
		ok = error_set(err, ERROR_UNSUPPORTED, "%.200s: %u dimensions, expected at most %d", path, header.dims,
		               ARRAY_MAX_DIMS);
	if (ok && header.bytes != f.size - header.data)
		ok = error_set(err, ERROR_FORMAT,
		               "%.200s: %" PRIu64 " bytes behind the header, expected the %" PRIu64 " of its shape",
		               path, f.size - header.data, header.bytes);
	if (ok) {
		out->dims = header.dims;
		memcpy(out->extent, header.extent, sizeof out->extent);
		for (unsigned i = 0; i < TYPES; i++)
			if (types[i].type != JIT_TYPE_BF16 && strcmp(array_npy_type(types[i].type), header.type) == 0)
				out->type = types[i].type;
		ok = read_at(&f, header.data, out, err);
	}
	file_close(&f);
	return ok;
}

static bool read_pb(struct array *out, const char *path, struct error *err)
{
	struct file f = { 0 };
	struct tensor t = { .data = NULL };
	bool ok = file_open(&f, path, err) && file_reach(&f, f.size, err) &&
	          onnx_read_tensor(path, f.base, (size_t)f.size, &t, err);

	if (ok) {
		out->type = t.type;
		out->dims = t.shape.rank;
		memcpy(out->extent, t.shape.dim, sizeof t.shape.dim);
		ok = make(out, err);
		if (ok && t.data)
			memcpy(out->data, t.data, (size_t)out->bytes);
		tensor_free(&t);
	}
	file_close(&f);
	return ok;
}

/* ---- containers */

static bool no_tensor(const char *path, const char *name, bool *missing, struct error *err)
{
	if (!missing)
		return error_set(err, ERROR_ARGUMENT, "%.200s: there is no tensor %.100s", path, name);
	*missing = true;
	return true;
}

static bool set_type(struct array *out, enum dtype type, const char *path, struct error *err)
{
	for (unsigned i = 0; i < TYPES; i++)
		if (types[i].file == type) {
			out->type = types[i].type;
			return true;
		}
	return error_set(err, ERROR_UNSUPPORTED, "%.200s: tensor %.100s has the type %s, which graphs do not have",
	                 path, out->name, dtype_table[type].name);
}

static bool read_safetensors(struct array *out, const char *path, const char *name, bool *missing, struct error *err)
{
	struct file f = { 0 };
	struct safetensors s = { 0 };
	const struct safetensors_tensor *t = NULL;
	bool ok = file_open(&f, path, err) && safetensors_open(&s, &f, false, err);

	for (uint32_t i = 0; ok && i < s.n_tensors && !t; i++)
		if (s.tensor[i].name.n == strlen(name) && memcmp(s.tensor[i].name.p, name, strlen(name)) == 0)
			t = &s.tensor[i];
	if (ok && !t)
		ok = no_tensor(path, name, missing, err);
	if (t) {
		out->dims = t->rank;
		memcpy(out->extent, t->dim, sizeof t->dim);
		ok = set_type(out, t->type, path, err) && read_at(&f, t->offset, out, err);
	}
	safetensors_free(&s);
	file_close(&f);
	return ok;
}

/* Dimensions are the slowest first here, and packed weights are the bytes of their rows. */
static bool read_gguf(struct array *out, const char *path, const char *name, bool *missing, struct error *err)
{
	struct file f = { 0 };
	struct gguf g = { 0 };
	bool ok = file_open(&f, path, err) && gguf_open(&g, &f, false, err);
	const struct gguf_tensor *t = ok ? gguf_find_tensor(&g, name) : NULL;

	if (ok && !t)
		ok = no_tensor(path, name, missing, err);
	if (t) {
		const struct dtype_facts *facts = &dtype_table[t->type];
		out->dims = t->n_dims;
		for (uint32_t d = 0; d < t->n_dims; d++)
			out->extent[t->n_dims - 1 - d] = t->ne[d];
		out->type = JIT_TYPE_U8;
		if (facts->block > 1 && t->n_dims)
			out->extent[t->n_dims - 1] = dtype_row_bytes(t->type, t->ne[0]);
		ok = (facts->block > 1 || set_type(out, t->type, path, err)) && read_at(&f, t->offset, out, err);
	}
	gguf_free(&g);
	file_close(&f);
	return ok;
}

bool jitgraph_read(struct array *out, const char *spec, const char *name, bool *missing, struct error *err)
{
	const size_t safetensors = path_length(spec, ".safetensors"), gguf = path_length(spec, ".gguf"),
		     n = safetensors ? safetensors
	                 : gguf      ? gguf
	                             : strlen(spec);
	const char *tensor = spec[n] ? spec + n + 1 : name;
	char *path = strndup(spec, n);
	bool ok = path || error_set(err, ERROR_MEMORY, "no memory for the name of a file");

	*out = (struct array){ .name = name, .type = JIT_TYPE_U8 };
	if (ok && safetensors)
		ok = read_safetensors(out, path, tensor, missing, err);
	else if (ok && gguf)
		ok = read_gguf(out, path, tensor, missing, err);
	else if (ok && ends(path, n, ".pb"))
		ok = read_pb(out, path, err);
	else if (ok)
		ok = read_npy(out, path, err);
	free(path);
	return ok;
}

/* ---- writing */

/* The header, malloc'ed, with blanks behind it so that data begin at a multiple of 8 bytes. NULL: there is no memory.
 */
static char *header_of(const struct array *list, size_t n)
{
	json_t *root = json_object();
	json_int_t at = 0;
	bool ok = root != NULL;

	for (size_t i = 0; ok && i < n; i++) {
		const char *type = "";
		json_t *shape = json_array();
		for (unsigned k = 0; k < TYPES; k++)
			if (types[k].type == list[i].type)
				type = dtype_table[types[k].file].name;
		for (unsigned d = 0; d < list[i].dims; d++)
			json_array_append_new(shape, json_integer((json_int_t)list[i].extent[d]));
		const json_int_t end = at + (json_int_t)list[i].bytes;
		ok = json_object_set_new(root, list[i].name,
		                         json_pack("{s:s, s:o, s:[I, I]}", "dtype", type, "shape", shape,
		                                   "data_offsets", at, end)) == 0;
		at = end;
	}
	char *text = ok ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	const size_t length = text ? strlen(text) : 0, whole = (length + 7) / 8 * 8;
	char *padded = text ? realloc(text, whole + 1) : NULL;
	if (!padded) {
		free(text);
		return NULL;
	}
	memset(padded + length, ' ', whole - length);
	padded[whole] = 0;
	return padded;
}

bool jitgraph_write_all(const char *path, const struct array *list, size_t n, struct error *err)
{
	char *header = header_of(list, n);
	FILE *f = header ? fopen(path, "wb") : NULL;

	if (!header)
		return error_set(err, ERROR_MEMORY, "%.200s: no memory for its header, or a name that is no UTF-8",
		                 path);
	if (!f) {
		free(header);
		return error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
	}
	const uint64_t length = strlen(header);
	bool ok = fwrite(&length, sizeof length, 1, f) == 1 && fwrite(header, 1, length, f) == length;
	for (size_t i = 0; ok && i < n; i++)
		ok = fwrite(list[i].data, 1, (size_t)list[i].bytes, f) == list[i].bytes;
	ok = fclose(f) == 0 && ok;
	free(header);
	return ok || error_set(err, ERROR_IO, "%.300s: cannot be written whole: %s", path, strerror(errno));
}
