/* encoders/amdgpu_parts.h - what the files that lay out a code object share: the growing buffer, and the note in it. */
#ifndef ENCODERS_AMDGPU_PARTS_H
#define ENCODERS_AMDGPU_PARTS_H

#include "encoders/amdgpu_object.h"

struct buffer {
	uint8_t *p;
	size_t size, capacity;
	bool failed;
};

/* --- amdgpu_bytes.c */

void amdgpu_put(struct buffer *b, const void *p, size_t n);
void amdgpu_put_le(struct buffer *b, uint64_t v, unsigned bytes);
void amdgpu_put_be(struct buffer *b, uint64_t v, unsigned bytes);
void amdgpu_put_zeros(struct buffer *b, size_t to);
void amdgpu_align(struct buffer *b, size_t n);
/* Replaces bytes already written. */
void amdgpu_patch_le(struct buffer *b, size_t at, uint64_t v, unsigned bytes);

/* --- amdgpu_note.c */

void amdgpu_put_note(struct buffer *b, const char *target, const struct amdgpu_kernel *k, size_t n);

#endif
