/* runtime/model/classifier.c - scores by a classifier. Plain loops in double in a fixed order: a score's bits depend on
 * the row and the weights alone. */
#include "runtime/model/classifier.h"

#include <math.h>
#include <stdlib.h>

#include "base/math_host.h"

static double sum_of(const float *weights, const float *x, uint32_t n, const float *bias, uint32_t row)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)weights[(size_t)row * n + i] * (double)x[i];
	return bias ? sum + (double)bias[row] : sum;
}

/* The sign apart, so that exp stays within its range and tanh(-x) is -tanh(x). */
static double tanh_of(double x)
{
	const double e = math_host_exp(x < 0 ? 2 * x : -2 * x), size = (1 - e) / (1 + e);

	return x < 0 ? -size : size;
}

static double share_of_first(const struct model_classifier *c, uint32_t hidden, const float *x)
{
	const double first = sum_of(c->out, x, hidden, c->out_bias, 0);
	double all = 1;

	for (uint32_t k = 1; k < c->classes; k++)
		all += math_host_exp(sum_of(c->out, x, hidden, c->out_bias, k) - first);
	return c->classes == 1 ? first : 1 / all;
}

bool classifier_score(const struct model_classifier *c, uint32_t hidden, const float *row, float *score,
                      struct error *err)
{
	float *x = malloc(hidden * sizeof *x);

	if (!x)
		return error_set(err, ERROR_MEMORY, "no memory for %u numbers of a score", hidden);
	for (uint32_t i = 0; i < hidden; i++)
		x[i] = c->dense ? (float)tanh_of(sum_of(c->dense, row, hidden, c->dense_bias, i)) : row[i];
	*score = (float)share_of_first(c, hidden, x);
	free(x);
	return isfinite(*score) || error_set(err, ERROR_FORMAT,
	                                     "the score of a text is not finite; the classifier's weights lead to "
	                                     "numbers that are none");
}
