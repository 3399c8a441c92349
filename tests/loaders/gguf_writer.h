/* tests/loaders/gguf_writer.h - builds GGUF files in memory, right or wrong, and remembers where each field lies.
 *
 * Values are written as they are given: a test may state any type, count or offset. `field` lists every length, count,
 * type and offset in the finished file, so that a test can falsify each of them.
 */
#ifndef TESTS_GGUF_WRITER_H
#define TESTS_GGUF_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "loaders/files/gguf.h"

struct bytes {
	uint8_t *p;
	size_t n, cap;
};

void bytes_put(struct bytes *b, const void *p, size_t n);
void bytes_forget(struct bytes *b);

struct gguf_field {
	size_t at;      /* in the finished file */
	unsigned bytes; /* 4 or 8 */
	char what[48];  /* "array length" or the like, or the key whose value it is */
};

struct gguf_writer {
	uint32_t version, alignment;
	uint64_t n_kv, n_tensors;
	struct bytes kv, info, data;
	struct gguf_field *field;
	size_t n_fields, first_info_field;
};

/* Writes general.alignment when it is not 32. All keys before the first tensor. */
void gguf_writer_start(struct gguf_writer *w, uint32_t version, uint32_t alignment);
void gguf_write_scalar(struct gguf_writer *w, const char *key, enum gguf_type type, const void *value);
void gguf_write_u32(struct gguf_writer *w, const char *key, uint32_t value);
void gguf_write_f32(struct gguf_writer *w, const char *key, float value);
void gguf_write_bool(struct gguf_writer *w, const char *key, bool value);
void gguf_write_string(struct gguf_writer *w, const char *key, const char *value);
void gguf_write_strings(struct gguf_writer *w, const char *key, const char *const *value, uint64_t count);
void gguf_write_array(struct gguf_writer *w, const char *key, enum gguf_type item, uint64_t count, const void *items,
                      size_t bytes);
/* An array of `outer` arrays of `inner` U8 zeros, `depth` arrays deep in all. */
void gguf_write_nested(struct gguf_writer *w, const char *key, unsigned depth, uint64_t outer, uint64_t inner);
void gguf_write_tensor(struct gguf_writer *w, const char *name, enum dtype type, unsigned n_dims, const uint64_t *ne,
                       const void *data, size_t bytes);
/* The whole file, malloc'ed. The writer may be freed afterwards. */
uint8_t *gguf_writer_finish(struct gguf_writer *w, size_t *n);
void gguf_writer_free(struct gguf_writer *w);

#endif
