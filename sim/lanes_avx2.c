/* sim/lanes_avx2.c - the lane kernels again, compiled for AVX2 and FMA; used only where sim_have_avx2() says so. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC optimize("O3")
#pragma GCC target("avx2,fma")
#endif
#include <immintrin.h>
#define LANES_TABLE sim_lanes_avx2
#define KIT sim_kit_avx2
#include <stdint.h>
static uint32_t pack(const uint32_t *m)
{
	uint32_t r = 0;
	for (unsigned l = 0; l < 32; l += 8)
		r |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(m + l))))
		     << l;
	return r;
}
#include "sim/lanes_body.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
#include "sim/wave.h"
const sim_lane_fn sim_lanes_avx2[OP_COUNT];
const struct sim_kit sim_kit_avx2;
#endif
