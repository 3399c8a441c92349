/* loaders/files/gguf.h - the GGUF container, versions 2 and 3, little endian.
 *
 * Owns: the index of one GGUF file: metadata keys with typed values, tensor infos with checked extents. Strings and
 * arrays are views into the file's copied header (loaders/file), which must outlive the index; strings are (pointer,
 * length), not 0-terminated.
 * Never: trusts a count or a length before comparing it with the bytes that are left.
 */
#ifndef LOADERS_GGUF_H
#define LOADERS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "loaders/files/file.h"

enum gguf_type {
	GGUF_U8,
	GGUF_I8,
	GGUF_U16,
	GGUF_I16,
	GGUF_U32,
	GGUF_I32,
	GGUF_F32,
	GGUF_BOOL,
	GGUF_STRING,
	GGUF_ARRAY,
	GGUF_U64,
	GGUF_I64,
	GGUF_F64,
	GGUF_TYPE_COUNT
};

struct gguf_str {
	const char *p;
	uint64_t n;
};

struct gguf_kv {
	struct gguf_str key;
	enum gguf_type type, item; /* item: element type of an array (arrays of arrays are walked but not indexed) */
	uint64_t count;            /* elements of an array, else 1 */
	const uint8_t *data;       /* first byte of the value (of an array: of its first element), unaligned */
	uint64_t bytes;            /* bytes the value (elements) takes */
};

struct gguf_tensor {
	struct gguf_str name;
	enum dtype type;
	uint32_t n_dims;
	uint64_t ne[4];         /* ne[0] is the fastest: K */
	uint64_t offset, bytes; /* from the start of the file; inside it unless header_only */
};

struct gguf {
	uint64_t size;
	const char *path;
	uint32_t version;
	uint64_t alignment;
	uint64_t n_kv, n_tensors, data_start;
	uint64_t header_bytes; /* all that was parsed */
	struct gguf_kv *kv;
	struct gguf_tensor *tensor;
	void *private; /* hash indexes */
};

/* Copies the file's header and parses it; the file must stay where it is (its label is kept by pointer). */
bool gguf_open(struct gguf *g, struct file *f, bool header_only, struct error *err);
/* The same of n bytes in memory, which the index looks into; path only names them in messages (kept by pointer). */
bool gguf_parse(struct gguf *g, const uint8_t *base, uint64_t n, const char *path, bool header_only, struct error *err);
void gguf_free(struct gguf *g);

const struct gguf_kv *gguf_find(const struct gguf *g, const char *key);
const struct gguf_tensor *gguf_find_tensor(const struct gguf *g, const char *name);

/* Typed reads. `found` false when the key is absent; wrong type or range is an error with key, type and value. Any
 * integer type that holds the value is accepted for integers, F32/F64 for floats. */
bool gguf_u64(const struct gguf *g, const char *key, uint64_t *out, bool *found, struct error *err);
bool gguf_f64(const struct gguf *g, const char *key, double *out, bool *found, struct error *err);
bool gguf_bool(const struct gguf *g, const char *key, bool *out, bool *found, struct error *err);
bool gguf_string(const struct gguf *g, const char *key, struct gguf_str *out, bool *found, struct error *err);
/* An array of strings: fills malloc'ed *out with count views. */
bool gguf_strings(const struct gguf *g, const char *key, struct gguf_str **out, uint64_t *count, bool *found,
                  struct error *err);
/* Element i of an integer / float array (caller checked i < count). */
int64_t gguf_item_int(const struct gguf_kv *a, uint64_t i);
double gguf_item_float(const struct gguf_kv *a, uint64_t i);

#endif
