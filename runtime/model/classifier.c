/* runtime/model/classifier.c - scores by a classifier. Plain loops in double in a fixed order: a score's bits depend on
 * the row and the weights alone. */
#include "runtime/model/classifier.h"

#include <math.h>
#include <stdlib.h>

#include "base/math_host.h"
#include "runtime/model/host_row.h"

static double share_of_first(const struct model_classifier *c, uint32_t hidden, const float *x)
{
	const double first = host_sum(c->out, x, hidden, c->out_bias, 0);
	double all = 1;

	for (uint32_t k = 1; k < c->classes; k++)
		all += math_host_exp(host_sum(c->out, x, hidden, c->out_bias, k) - first);
	return c->classes == 1 ? first : 1 / all;
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
		x[i] = c->dense ? (float)host_act_of(c->act, host_sum(c->dense, row, hidden, c->dense_bias, i))
		                : row[i];
	if (c->norm)
		norm_of(c->norm, s->norm_eps, hidden, x);
	*score = (float)share_of_first(c, hidden, x);
	free(x);
	return isfinite(*score) || error_set(err, ERROR_FORMAT,
	                                     "the score of a text is not finite; the classifier's weights lead to "
	                                     "numbers that are none");
}
