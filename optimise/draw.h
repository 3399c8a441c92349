/* optimise/draw.h - random numbers by counter: number n of a stream is a function of the seed and n alone.
 *
 * So a run can be resumed anywhere, and no thread's order shows. The function is SplitMix64 (Steele, Lea, Flood 2014):
 * the state advances by an odd constant, and a finaliser mixes it.
 */
#ifndef OPTIMISE_DRAW_H
#define OPTIMISE_DRAW_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/math_host.h"

struct random_stream {
	uint64_t seed, drawn; /* drawn: how many numbers were taken */
};

static inline uint64_t draw_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}
static inline uint64_t draw_bits(struct random_stream *d)
{
	return draw_mix(draw_mix(d->seed) + ++d->drawn * 0x9e3779b97f4a7c15u);
}
/* In (0, 1), a multiple of 2^-53 plus 2^-54. */
static inline double draw_uniform(struct random_stream *d) { return ((double)(draw_bits(d) >> 11) + 0.5) * 0x1p-53; }
/* 0 to n - 1; n is far below 2^32. */
static inline size_t draw_below(struct random_stream *d, size_t n) { return (size_t)((draw_bits(d) >> 32) * n >> 32); }
/* Normal numbers, two for each pair of uniform ones (Box and Muller 1958). */
static inline void draw_normals(struct random_stream *d, double *out, size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		const double radius = sqrt(-2 * math_host_log(draw_uniform(d))), u = draw_uniform(d);
		double s, c;
		math_host_sincos(6.283185307179586476925 * u, &s, &c);
		out[i] = radius * c;
		if (i + 1 < n)
			out[i + 1] = radius * s;
	}
}

#endif
