/* base/math_host.h - exp, log, pow, sin and cos in double precision, ours.
 *
 * Owns: the functions behind rotary tables, sampling and log probabilities. Plain IEEE + - * / on doubles and nothing
 * else, so that every machine and every C library gives the same bits; libm must never be used where a result reaches a
 * logit or a choice. Accuracy, for the argument ranges stated: exp within 1.2 units in the last place of a double, log
 * within 3, sin and cos within 1e-15; tests/runtime/t_runtime.c measures it.
 */
#ifndef BASE_MATH_HOST_H
#define BASE_MATH_HOST_H

#include <stddef.h>

double math_host_exp(double x); /* any x; 0 below -745, inf above 709.78 */
/* exp(x[0] - most) + exp(x[1] - most) + ..., most being the greatest: so it is 1 at least, and terms below e^-700 make
 * no difference. Each within 1.2 units. */
double math_host_sum_exp(const float *x, size_t n, float max);
/* e[i] = exp(x[i] - max) as a float, max being the greatest; what equals it gives 1, infinite or not, and what lies
 * far below it gives 0. */
void math_host_exp_below(float *e, const float *x, size_t n, float max);
/* Each x becomes math_host_exp(x), bit by bit; several are computed side by side. */
void math_host_exps(double *x, size_t n);
double math_host_log(double x);                        /* x > 0, finite, normal */
double math_host_pow(double x, double y);              /* x > 0: exp(y log x) */
double math_host_sqrt(double x);                       /* IEEE */
void math_host_sincos(double x, double *s, double *c); /* |x| up to 2^30 */
/* A vector of n numbers becomes one of length 1, by a sum in double; of zeros, it stays. */
void math_host_normalise(float *row, size_t n);

#endif
