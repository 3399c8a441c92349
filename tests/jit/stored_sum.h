/* tests/jit/stored_sum.h - the checksum of jit/store/record.h, written down a second time. */
#ifndef TESTS_STORED_SUM_H
#define TESTS_STORED_SUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t stored_step(uint64_t h, uint64_t word)
{
	h ^= word;
	return (h << 29 | h >> 35) * 0x9e3779b97f4a7c15u;
}

static inline uint64_t stored_sum(const uint8_t *p, size_t n, uint64_t seed)
{
	const uint64_t a = 0x9e3779b97f4a7c15u, b = 0xc2b2ae3d27d4eb4fu;
	uint64_t h[4] = { seed ^ a, seed + b, seed - a, seed ^ n * b }, w;
	size_t at = 0;

	for (; n - at >= 32; at += 32)
		for (int i = 0; i < 4; i++) {
			memcpy(&w, p + at + 8 * i, 8);
			h[i] = stored_step(h[i], w);
		}
	uint64_t all = stored_step(stored_step(stored_step(h[0], h[1]), h[2]), h[3]);
	for (; n - at >= 8; at += 8) {
		memcpy(&w, p + at, 8);
		all = stored_step(all, w);
	}
	w = 0;
	memcpy(&w, p + at, n - at);
	all = stored_step(all, w);
	all = (all ^ all >> 32) * b;
	return all ^ all >> 29;
}

#endif
