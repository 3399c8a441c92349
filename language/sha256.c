/* language/sha256.c - SHA-256 (FIPS 180-4) of a few runs of bytes, one behind the other. */
#include <string.h>

#include "language/kernel.h"

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

struct sha256 {
	uint32_t h[8];
	uint8_t block[64];
	size_t used;
	uint64_t bytes;
};

static uint32_t rotated(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

static void one_block(struct sha256 *s)
{
	uint32_t w[64], v[8];

	for (unsigned k = 0; k < 16; k++)
		w[k] = (uint32_t)s->block[4 * k] << 24 | (uint32_t)s->block[4 * k + 1] << 16 |
		       (uint32_t)s->block[4 * k + 2] << 8 | s->block[4 * k + 3];
	for (unsigned k = 16; k < 64; k++) {
		const uint32_t a = w[k - 15], b = w[k - 2];
		w[k] = w[k - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) + w[k - 7] +
		       (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
	}
	memcpy(v, s->h, sizeof v);
	for (unsigned k = 0; k < 64; k++) {
		const uint32_t e = v[4], a = v[0];
		const uint32_t t = v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) +
		                   ((e & v[5]) ^ (~e & v[6])) + constants[k] + w[k];
		const uint32_t u =
			(rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += t;
		v[0] = t + u;
	}
	for (unsigned k = 0; k < 8; k++)
		s->h[k] += v[k];
	s->used = 0;
}

static void add(struct sha256 *s, const uint8_t *p, size_t n)
{
	s->bytes += n;
	while (n) {
		const size_t room = sizeof s->block - s->used, part = n < room ? n : room;
		memcpy(s->block + s->used, p, part);
		s->used += part;
		p += part;
		n -= part;
		if (s->used == sizeof s->block)
			one_block(s);
	}
}

void jk_sha256(const void *const *bytes, const size_t *n, size_t count, uint8_t out[32])
{
	struct sha256 s = { .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
		                   0x5be0cd19 } };
	uint8_t end[8];

	for (size_t k = 0; k < count; k++)
		add(&s, bytes[k], n[k]);
	const uint64_t bits = s.bytes * 8;
	for (unsigned k = 0; k < 8; k++)
		end[k] = (uint8_t)(bits >> (56 - 8 * k));
	add(&s, (const uint8_t[]){ 0x80 }, 1);
	while (s.used != 56)
		add(&s, (const uint8_t[]){ 0 }, 1);
	add(&s, end, 8);
	for (unsigned k = 0; k < 32; k++)
		out[k] = (uint8_t)(s.h[k / 4] >> (24 - 8 * (k % 4)));
}
