/* runtime/plan/cut_bits.h - sets of bytes of a plan's memory, four at a time, as bits (cut_rows.c). */
#ifndef RUNTIME_PLAN_CUT_BITS_H
#define RUNTIME_PLAN_CUT_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits first .. first + n - 1 of a word, where they are all in it. */
static inline uint64_t cut_bits_mask(uint64_t first, uint64_t n)
{
	return (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1) << first;
}

/* How many of n bits from bit `at` on are in the first word. */
static inline uint64_t cut_bits_first(uint64_t at, uint64_t n) { return n < 64 - at % 64 ? n : 64 - at % 64; }

static inline void cut_bits_set(uint64_t *bits, uint64_t at, uint64_t n)
{
	for (uint64_t k; n; at += k, n -= k) {
		k = cut_bits_first(at, n);
		bits[at / 64] |= cut_bits_mask(at % 64, k);
	}
}

static inline void cut_bits_clear(uint64_t *bits, uint64_t at, uint64_t n)
{
	for (uint64_t k; n; at += k, n -= k) {
		k = cut_bits_first(at, n);
		bits[at / 64] &= ~cut_bits_mask(at % 64, k);
	}
}

static inline bool cut_bits_all(const uint64_t *bits, uint64_t at, uint64_t n)
{
	for (uint64_t k; n; at += k, n -= k) {
		k = cut_bits_first(at, n);
		if (~bits[at / 64] & cut_bits_mask(at % 64, k))
			return false;
	}
	return true;
}

/* Sets in `to` those that are not in `bits`. Whether there are any. */
static inline bool cut_bits_add_missing(uint64_t *to, const uint64_t *bits, uint64_t at, uint64_t n)
{
	uint64_t any = 0;

	for (uint64_t k; n; at += k, n -= k) {
		k = cut_bits_first(at, n);
		const uint64_t missing = ~bits[at / 64] & cut_bits_mask(at % 64, k);
		to[at / 64] |= missing;
		any |= missing;
	}
	return any != 0;
}

#endif
