/* sim/lanes_base.c - the lane kernels for any x86-64 or other host. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#define LANES_TABLE sim_lanes_base
#define KIT sim_kit_base
#include <stdint.h>
static uint32_t pack(const uint32_t *m)
{
	uint32_t r = 0;
	for (unsigned l = 0; l < 32; l++)
		r |= (m[l] & 1u) << l;
	return r;
}
#include "sim/lanes_body.h"

bool sim_have_avx2(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
	return false;
#endif
}
