/* runtime/math_host.h - exp, log, pow, sin and cos in double precision, ours.
 *
 * Owns: the functions behind rotary tables and sampling. Plain IEEE + - * / on doubles and nothing else, so that every
 * machine and every C library gives the same bits; libm must never be used where a result reaches a logit or a choice.
 * Accuracy: a few units in the last place of a double, for the argument ranges stated.
 */
#ifndef RUNTIME_MATH_HOST_H
#define RUNTIME_MATH_HOST_H

double math_host_exp(double x);                 /* any x; 0 below -745, inf above 709.78 */
double math_host_log(double x);                 /* x > 0, finite, normal */
double math_host_pow(double x, double y);       /* x > 0: exp(y log x) */
double math_host_sqrt(double x);                /* IEEE */
void math_host_sincos(double x, double *s, double *c);   /* |x| up to 2^30 */

#endif
