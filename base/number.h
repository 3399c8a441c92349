/* base/number.h - floats as their bits: halves, bfloat16 and powers of two, by integer arithmetic and exact
 * products alone, so that every machine and compiler gives the same bits.
 *
 * Rounding is to nearest, halves to even. Callers make sure that values are finite.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>
#include <string.h>

static inline uint32_t number_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline float number_of_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* 2^e for -1022 <= e <= 1023. */
static inline double number_power(int e)
{
	uint64_t bits = (uint64_t)(e + 1023) << 52;
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* e with 2^e <= |x| < 2^(e + 1); x is finite and not 0. */
static inline int number_exponent(float x)
{
	uint32_t magnitude = number_bits(x) & 0x7fffffff;
	return magnitude >> 23 ? (int)(magnitude >> 23) - 127 : 31 - __builtin_clz(magnitude) - 149;
}

static inline float number_from_half(uint16_t h)
{
	uint32_t exponent = h >> 10 & 31, fraction = h & 1023, sign = (uint32_t)(h & 0x8000) << 16;
	float tiny = (float)fraction * number_of_bits(0x33800000); /* 2^-24 */

	if (exponent == 31)
		return number_of_bits(sign | 0x7f800000 | fraction << 13);
	if (exponent == 0)
		return sign ? -tiny : tiny;
	return number_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

/* What is beyond the range becomes the largest half, and so stays finite. */
static inline uint16_t number_to_half(float x)
{
	uint32_t bits = number_bits(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;

	if (magnitude >= 0x477fe000) /* 65504 */
		return (uint16_t)(sign | 0x7bff);
	if (magnitude < 0x38800000) { /* below 2^-14: a multiple of 2^-24, which adding 0.5 rounds to */
		float sum = number_of_bits(magnitude) + 0.5f;
		return (uint16_t)(sign | (number_bits(sum) - 0x3f000000));
	}
	uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
	return (uint16_t)(sign | (rounded - 0x38000000) >> 13);
}

static inline float number_from_bf16(uint16_t b) { return number_of_bits((uint32_t)b << 16); }

/* Finite values alone may come, and what would round to infinity becomes the largest. */
static inline uint16_t number_to_bf16(float x)
{
	uint32_t bits = number_bits(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

	return (uint16_t)((rounded & 0x7fff) < 0x7f80 ? rounded : rounded - 1);
}

#endif
