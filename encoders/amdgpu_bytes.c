/* encoders/amdgpu_bytes.c - a growing buffer of little-endian numbers. */
#include <stdlib.h>
#include <string.h>

#include "encoders/amdgpu_parts.h"

void amdgpu_put(struct buffer *b, const void *p, size_t n)
{
	if (b->failed || !n)
		return;
	if (b->capacity - b->size < n) {
		size_t capacity = 2 * b->capacity + n + 4096;
		uint8_t *grown = realloc(b->p, capacity);
		if (!grown) {
			b->failed = true;
			return;
		}
		b->p = grown;
		b->capacity = capacity;
	}
	memcpy(b->p + b->size, p, n);
	b->size += n;
}

void amdgpu_put_le(struct buffer *b, uint64_t v, unsigned bytes)
{
	uint8_t t[8];

	for (unsigned i = 0; i < bytes; i++)
		t[i] = (uint8_t)(v >> 8 * i);
	amdgpu_put(b, t, bytes);
}

void amdgpu_put_be(struct buffer *b, uint64_t v, unsigned bytes)
{
	while (bytes--)
		amdgpu_put_le(b, v >> 8 * bytes & 0xff, 1);
}

void amdgpu_put_zeros(struct buffer *b, size_t to)
{
	static const uint8_t zeros[64];

	while (!b->failed && b->size < to)
		amdgpu_put(b, zeros, to - b->size < sizeof zeros ? to - b->size : sizeof zeros);
}

void amdgpu_align(struct buffer *b, size_t n) { amdgpu_put_zeros(b, (b->size + n - 1) / n * n); }

void amdgpu_patch_le(struct buffer *b, size_t at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes && !b->failed; i++)
		b->p[at + i] = (uint8_t)(v >> 8 * i);
}
