/* runtime/model/classifier.c - scores by a classifier. Plain loops in double in a fixed order: a score's bits depend on
 * the row and the weights alone. */
#include "runtime/model/classifier.h"

#include <math.h>
#include <stdlib.h>

#include "base/math_host.h"
#include "kernels-templates/numerics.h"

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

/* x times the share of the normal distribution below it (numerics.h, gelu_erf). */
static double gelu_of(double x)
{
	static const float c[] = { NUMERICS_ERF_C6, NUMERICS_ERF_C5, NUMERICS_ERF_C4, NUMERICS_ERF_C3,
		                   NUMERICS_ERF_C2, NUMERICS_ERF_C1, NUMERICS_ERF_C0 };
	const double a = x < 0 ? -x : x, t = 1 / (a * (double)NUMERICS_ERF_SLOPE + 1);
	double p = (double)NUMERICS_ERF_C7;

	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		p = p * t + (double)c[i];
	return (x > 0 ? x : 0) - a * t * p * math_host_exp(-a * a / 2);
}

static double act_of(enum classifier_act act, double x)
{
	return act == CLASSIFIER_GELU ? gelu_of(x) : act == CLASSIFIER_RELU ? (x > 0 ? x : 0) : tanh_of(x);
}

/* Less their mean, to the length of their number, times the weights. */
static void norm_of(const float *weight, float eps, uint32_t n, float *x)
{
	double mean = 0, squares = 0;

	for (uint32_t i = 0; i < n; i++)
		mean += (double)x[i];
	mean /= n;
	for (uint32_t i = 0; i < n; i++)
		squares += ((double)x[i] - mean) * ((double)x[i] - mean);
	const double by = 1 / math_host_sqrt(squares / n + (double)eps);
	for (uint32_t i = 0; i < n; i++)
		x[i] = (float)(((double)x[i] - mean) * by * (double)weight[i]);
}

bool classifier_score(const struct model_classifier *c, const struct model_spec *s, const float *row, float *score,
                      struct error *err)
{
	const uint32_t hidden = s->hidden;
	float *x = malloc(hidden * sizeof *x);

	if (!x)
		return error_set(err, ERROR_MEMORY, "no memory for %u numbers of a score", hidden);
	for (uint32_t i = 0; i < hidden; i++)
		x[i] = c->dense ? (float)act_of(c->act, sum_of(c->dense, row, hidden, c->dense_bias, i)) : row[i];
	if (c->norm)
		norm_of(c->norm, s->norm_eps, hidden, x);
	*score = (float)share_of_first(c, hidden, x);
	free(x);
	return isfinite(*score) || error_set(err, ERROR_FORMAT,
	                                     "the score of a text is not finite; the classifier's weights lead to "
	                                     "numbers that are none");
}
