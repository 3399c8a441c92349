/* jit/lanes.h - the arithmetic of one lane that C has no operator for: bit casts, f16, f32 to integer, dot4.
 *
 * Owns: the helpers the expressions of ops.def name, in plain C whose results do not depend on the host. Nothing here looks
 * at a kernel. Every function is a chain of selects without a branch or a loop that depends on its input, so that a loop over
 * lanes vectorises; keep it so.
 */
#ifndef JIT_LANES_H
#define JIT_LANES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float bits_f32(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static inline uint32_t f32_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }

/* Round to nearest even; f must lie in [-2^30, 2^30]. */
static inline int32_t f32_to_i32_rne(float f) { return (int32_t)rintf(f); }

/* Exact. A NaN becomes quiet and keeps its sign and payload, as the F16C instructions do it. */
static inline float f16_f32(uint16_t h)
{
	const uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
	/* as if normal: move the fields and rebias; infinity and NaN rebias twice, to the largest exponent */
	const uint32_t normal = (magnitude << 13) + (112u << 23);
	const uint32_t special = ((magnitude << 13) + (224u << 23)) | (magnitude > 0x7c00u ? 0x400000u : 0u);
	/* a denormal is its 10 bits times 2^-24: put them below the leading one of 2^-14, then take that one away */
	const uint32_t denormal = f32_bits(bits_f32((magnitude << 13) + (113u << 23)) - bits_f32(113u << 23));
	const uint32_t bits = magnitude >= 0x7c00u ? special : magnitude >= 0x0400u ? normal : denormal;

	return bits_f32(bits | sign);
}

/* Round to nearest even; beyond the range to infinity. A NaN becomes quiet and keeps its sign and upper payload. */
static inline uint16_t f32_f16(float f)
{
	const uint32_t bits = f32_bits(f), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
	/* adding just under half a unit, and one more when the last kept bit is odd, rounds by carry */
	const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
	/* 0.5 has the unit 2^-24, so the sum rounds a small magnitude to a whole number of f16 denormal units */
	const uint32_t denormal = f32_bits(bits_f32(magnitude) + 0.5f) - 0x3f000000u;
	const uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
	const uint32_t half = magnitude > 0x7f800000u ? nan : magnitude >= 0x47800000u ? 0x7c00u
	                    : magnitude >= 0x38800000u ? normal : denormal;

	return (uint16_t)(half | sign);
}

/* c plus the sum over the four bytes of signed a times signed b, wrapping. */
static inline int32_t dot4_i8(int32_t a, int32_t b, int32_t c)
{
	const int32_t p0 = (int8_t)(a & 0xff) * (int8_t)(b & 0xff), p1 = (int8_t)(a >> 8 & 0xff) * (int8_t)(b >> 8 & 0xff);
	const int32_t p2 = (int8_t)(a >> 16 & 0xff) * (int8_t)(b >> 16 & 0xff), p3 = (int8_t)(a >> 24 & 0xff) * (int8_t)(b >> 24 & 0xff);

	return (int32_t)((uint32_t)c + (uint32_t)(p0 + p1 + p2 + p3));
}

#endif
