/* tests/pictures/png_texts.h - chunks of PNG whose texts are much longer than they are, as files have them that are
 * meant to fill a memory. */
#ifndef TESTS_PNG_TEXTS_H
#define TESTS_PNG_TEXTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bits {
	uint8_t *p;
	size_t n;
	unsigned used; /* bits of the last byte */
};

/* A code's first bit comes first. */
static inline void put_bits(struct bits *b, unsigned code, unsigned n)
{
	for (unsigned i = n; i-- > 0; b->used = (b->used + 1) % 8) {
		if (b->used == 0)
			b->p[b->n++] = 0;
		b->p[b->n - 1] |= (uint8_t)((code >> i & 1) << b->used);
	}
}

static inline uint32_t crc_of(const uint8_t *p, size_t n)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static inline void put_32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* A chunk with a text of n times "a", compressed: one "a", and copies of 258 of it. */
static inline size_t text_chunk(uint8_t *out, size_t copies)
{
	static const uint8_t key[] = { 'z', 'T', 'X', 't', 'k', 0, 0, 0x78, 0x9c };
	struct bits b = { out + 4 + sizeof key, 0, 0 };
	uint32_t low = 1, high = 0;

	memcpy(out + 4, key, sizeof key);
	put_bits(&b, 1, 1); /* the last block, with the codes that are agreed on */
	put_bits(&b, 2, 2); /* that number is 1, its lower bit first */
	put_bits(&b, 0x30 + 'a', 8);
	for (size_t i = 0; i < copies; i++)
		put_bits(&b, 0xc5 << 5, 13);
	put_bits(&b, 0, 7);
	for (size_t i = 0; i < 1 + 258 * copies; i++) { /* Adler's sum */
		low = (low + 'a') % 65521;
		high = (high + low) % 65521;
	}
	put_32(b.p + b.n, high << 16 | low);
	const size_t n = sizeof key - 4 + b.n + 4;
	put_32(out, (uint32_t)n);
	put_32(out + 8 + n, crc_of(out + 4, n + 4));
	return 12 + n;
}

#endif
