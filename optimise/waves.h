/* optimise/waves.h - sine and cosine one by one, as test functions need them; the same bits on every machine. */
#ifndef OPTIMISE_WAVES_H
#define OPTIMISE_WAVES_H

#include "base/math_host.h"

/* |x| up to 2^30. */
static inline double wave_sine(double x)
{
	double s, c;
	math_host_sincos(x, &s, &c);
	return s;
}
static inline double wave_cosine(double x)
{
	double s, c;
	math_host_sincos(x, &s, &c);
	return c;
}

#endif
