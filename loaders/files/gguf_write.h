/* loaders/files/gguf_write.h - writes the header of a GGUF file, version 3, little endian.
 *
 * Owns: how keys, values and the list of tensors are put down, and where each tensor's bytes are to lie. All goes to a
 * stream that can seek, from its beginning; the owner of the stream asks at the end whether all was written. First the
 * keys, then the tensors, then gguf_put_end(); the tensors' bytes follow, each padded to the alignment.
 */
#ifndef LOADERS_GGUF_WRITE_H
#define LOADERS_GGUF_WRITE_H

#include <stdbool.h>
#include <stdio.h>

#include "loaders/files/gguf.h"

struct gguf_out {
	FILE *f;
	uint64_t alignment, keys, tensors;
	uint64_t data; /* of the tensors so far, padded */
};

/* The alignment is told to readers by the key general.alignment, which the caller writes where it is not 32. */
void gguf_put_begin(struct gguf_out *o, FILE *f, uint64_t alignment);
/* A key whose value follows, by gguf_put_raw() and gguf_put_text(). */
void gguf_put_key(struct gguf_out *o, const char *key, enum gguf_type type);
void gguf_put_array(struct gguf_out *o, const char *key, enum gguf_type item, uint64_t count);
void gguf_put_raw(struct gguf_out *o, const void *bytes, size_t n);
void gguf_put_text(struct gguf_out *o, const char *text, uint64_t n);
/* Key and value. */
void gguf_put_u32(struct gguf_out *o, const char *key, uint32_t value);
void gguf_put_f32(struct gguf_out *o, const char *key, float value);
void gguf_put_string(struct gguf_out *o, const char *key, const char *value);
/* As another file has it. */
void gguf_put_copy(struct gguf_out *o, const struct gguf_kv *kv);
/* ne: n_dims of them. */
void gguf_put_tensor(struct gguf_out *o, struct gguf_str name, enum dtype type, uint32_t n_dims, const uint64_t *ne);
/* Pads to where the tensors' bytes begin, and fills in the counts. False: the stream cannot seek; errno. */
bool gguf_put_end(struct gguf_out *o);
/* How many bytes follow n of them up to the next multiple of the alignment. */
uint64_t gguf_put_padding(const struct gguf_out *o, uint64_t n);

#endif
