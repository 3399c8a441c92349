/* runtime/model/host_row.h - what the host computes of a row that kernels made: sums and activation functions in
 * double, so that a result's bits depend on the row and the weights alone.
 */
#ifndef RUNTIME_HOST_ROW_H
#define RUNTIME_HOST_ROW_H

#include "loaders/model/model.h"

/* Row `row` of a matrix of n columns times x, from the first element to the last, and then its bias; NULL: none. */
double host_sum(const float *weights, const float *x, uint32_t n, const float *bias, uint32_t row);
/* tanh and sigmoid by base/math_host.h's exp; GELU with erf as numerics.h has it (gelu_erf). */
double host_act_of(enum host_act act, double x);

#endif
