/* runtime/model/dense.c - layers behind pooling. Several rows of a matrix go on at once, for their sums do not wait for
 * each other; each sum has its own order, which dense.h states. */
#include "runtime/model/dense.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/host_row.h"

enum { AT_ONCE = 8 };

static void sums_at_once(const float *weights, const float *x, uint32_t n, double sum[AT_ONCE])
{
	for (int k = 0; k < AT_ONCE; k++)
		sum[k] = 0;
	for (uint32_t i = 0; i < n; i++)
		for (int k = 0; k < AT_ONCE; k++)
			sum[k] += (double)weights[(size_t)k * n + i] * (double)x[i];
}

static void apply(const struct model_dense *d, const float *x, float *y)
{
	uint32_t row = 0;
	double sum[AT_ONCE];

	for (; row + AT_ONCE <= d->out; row += AT_ONCE) {
		sums_at_once(d->weight + (size_t)row * d->in, x, d->in, sum);
		for (uint32_t k = 0; k < AT_ONCE; k++)
			y[row + k] = (float)host_act_of(d->act, d->bias ? sum[k] + (double)d->bias[row + k] : sum[k]);
	}
	for (; row < d->out; row++)
		y[row] = (float)host_act_of(d->act, host_sum(d->weight, x, d->in, d->bias, row));
}

bool dense_apply(const struct model *m, const float *row, float *out, struct error *err)
{
	uint32_t max = m->spec.hidden;
	bool finite = true;

	for (uint32_t i = 0; i < m->n_dense; i++)
		max = m->dense[i].out > max ? m->dense[i].out : max;
	float *x = malloc(2 * (size_t)max * sizeof *x), *y = x ? x + max : NULL;
	if (!x)
		return error_set(err, ERROR_MEMORY, "no memory for %u numbers of an embedding", max);
	float *const all = x;
	memcpy(x, row, m->spec.hidden * sizeof *x);
	for (uint32_t i = 0; i < m->n_dense; i++) {
		apply(&m->dense[i], x, y);
		float *last = x;
		x = y;
		y = last;
	}
	const uint32_t n = model_embedding(m);
	memcpy(out, x, n * sizeof *out);
	for (uint32_t i = 0; i < n; i++)
		finite &= isfinite(x[i]) != 0;
	free(all);
	return finite || error_set(err, ERROR_FORMAT,
	                           "the embedding of a text is not finite; the weights of the dense layers behind "
	                           "pooling lead to numbers that are none");
}
