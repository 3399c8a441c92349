#include <stdlib.h>
#include <string.h>

#include "optimise/cma_parts.h"
#include "optimise/eigen.h"

/* ---- opening */

bool cma_allocate(struct cma *c, bool bounded, struct error *err)
{
	const size_t n = (size_t)c->n, lambda = (size_t)c->lambda, square = c->separable ? n : n * n;
	struct {
		double **at;
		size_t count;
	} all[] = {
		{ &c->weights, lambda },
		{ &c->mean, n },
		{ &c->p_sigma, n },
		{ &c->p_c, n },
		{ &c->c, square },
		{ &c->vectors, c->separable ? 1 : square },
		{ &c->lengths, n },
		{ &c->best, n },
		{ &c->best_history, CMA_HISTORY },
		{ &c->median_history, CMA_HISTORY },
		{ &c->steps, lambda * n },
		{ &c->whitened, lambda },
		{ &c->candidates, lambda * n },
		{ &c->values, lambda },
		{ &c->shown_mean, n },
		{ &c->work, 3 * n + 64 + square },
		{ &c->lower, bounded ? n : 0 },
		{ &c->upper, bounded ? n : 0 },
		{ &c->penalty, c->bounds == CMA_PENALTY ? n : 0 },
		{ &c->spread, c->bounds == CMA_PENALTY ? 20 + 3 * n / lambda : 0 },
	};

	if (lambda * n > (size_t)1 << 28)
		return error_set(err, ERROR_MEMORY, "a population of %d in %d dimensions: more than 2^28 numbers",
		                 c->lambda, c->n);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].count && !(*all[i].at = calloc(all[i].count, sizeof(double))))
			return error_set(err, ERROR_MEMORY, "out of memory for %zu numbers of CMA-ES in %d dimensions",
			                 all[i].count, c->n);
	if (!(c->order = calloc(2 * lambda, sizeof *c->order)))
		return error_set(err, ERROR_MEMORY, "out of memory for a population of %d", c->lambda);
	return true;
}

void cma_close(struct cma *c)
{
	if (!c)
		return;
	double *all[] = { c->weights,      c->mean,           c->p_sigma, c->p_c,      c->c,
		          c->vectors,      c->lengths,        c->best,    c->whitened, c->steps,
		          c->best_history, c->median_history, c->values,  c->work,     c->candidates,
		          c->shown_mean,   c->lower,          c->upper,   c->penalty,  c->spread };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
	free(c->order);
	free(c);
}

/* Weights of the ranks: logarithmic, positive ones of sum 1; negative ones as large as keeps the matrix positive. */
static void set_weights(struct cma *c)
{
	const double n = c->n;
	double sum = 0, squares = 0, under = 0, under_squares = 0;

	for (int i = 0; i < c->lambda; i++) {
		double *w = &c->weights[i];
		*w = math_host_log((c->lambda + 1) / 2.0) - math_host_log(i + 1);
		if (i < c->mu) {
			sum += *w;
			squares += *w * *w;
		} else {
			under -= *w;
			under_squares += *w * *w;
		}
	}
	c->mu_eff = sum * sum / squares;
	c->c_1 = 2 / ((n + 1.3) * (n + 1.3) + c->mu_eff) * fmin(1, c->lambda / 6.0);
	c->c_mu = 2 * (c->mu_eff + 1 / c->mu_eff - 2 + 0.25) / ((n + 2) * (n + 2) + c->mu_eff);
	if (c->separable) {
		c->c_1 *= (n + 1.5) / 3;
		c->c_mu *= (n + 1.5) / 3;
	}
	c->c_1 = fmin(1, c->c_1);
	c->c_mu = fmin(1 - c->c_1, c->c_mu);
	double negative = 0;
	if (!c->passive && under > 0 && c->c_mu > 0) {
		const double under_eff = under * under / under_squares;
		negative = fmin(1 + c->c_1 / c->c_mu, 1 + 2 * under_eff / (c->mu_eff + 2));
		negative = fmin(negative, (1 - c->c_1 - c->c_mu) / (n * c->c_mu));
		negative /= under;
	}
	for (int i = 0; i < c->lambda; i++)
		c->weights[i] *= i < c->mu ? 1 / sum : negative;
}

void cma_constants(struct cma *c)
{
	const double n = c->n;

	c->mu = c->lambda / 2;
	set_weights(c);
	c->c_sigma = (c->mu_eff + 2) / (n + c->mu_eff + 3);
	c->d_sigma = 1 + 2 * fmax(0, sqrt((c->mu_eff - 1) / (n + 1)) - 1) + c->c_sigma;
	c->c_c = (4 + c->mu_eff / n) / (n + 4 + 2 * c->mu_eff / n);
	c->chi_n = sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
	c->lazy = c->separable ? 0 : (uint64_t)(0.5 * n * c->lambda / ((c->c_1 + c->c_mu) * n * n));
}

static bool check(const struct cma_options *o, int lambda, struct error *err)
{
	const int max = o->separable ? CMA_SEPARABLE_MAX : CMA_DIMENSION_MAX;

	if (o->n < 1 || o->n > max)
		return error_set(err, ERROR_ARGUMENT, "dimension %d: expected 1 to %d%s", o->n, max,
		                 o->separable ? "" : "; the separable form takes more");
	if (lambda < 4 || lambda > CMA_POPULATION_MAX)
		return error_set(err, ERROR_ARGUMENT, "population %d: expected 4 to %d", lambda, CMA_POPULATION_MAX);
	if (!(o->sigma > 0) || !isfinite(o->sigma))
		return error_set(err, ERROR_ARGUMENT, "first step size %g: expected a number above 0", o->sigma);
	if (!o->lower != !o->upper || !o->lower != (o->bounds == CMA_FREE))
		return error_set(err, ERROR_ARGUMENT, "bounds: expected both of lower and upper, or neither");
	for (int i = 0; i < o->n; i++) {
		if (!isfinite(o->start[i]))
			return error_set(err, ERROR_ARGUMENT, "start: coordinate %d is %g", i, o->start[i]);
		if (o->lower && !(o->lower[i] < o->upper[i]))
			return error_set(err, ERROR_ARGUMENT, "bounds of coordinate %d: %g is not below %g", i,
			                 o->lower[i], o->upper[i]);
		if (o->lower && !(o->start[i] >= o->lower[i] && o->start[i] <= o->upper[i]))
			return error_set(err, ERROR_ARGUMENT, "start: coordinate %d is %g, outside of %g to %g", i,
			                 o->start[i], o->lower[i], o->upper[i]);
	}
	return true;
}

struct cma *cma_open(const struct cma_options *o, struct error *err)
{
	const int lambda = o->population ? o->population : 4 + (int)(3 * math_host_log(o->n > 0 ? o->n : 1));
	struct cma *c;

	if (!check(o, lambda, err))
		return NULL;
	if (!(c = calloc(1, sizeof *c))) {
		error_set(err, ERROR_MEMORY, "out of memory for CMA-ES");
		return NULL;
	}
	c->n = o->n;
	c->lambda = lambda;
	c->separable = o->separable;
	c->passive = o->passive;
	c->bounds = o->bounds;
	if (!cma_allocate(c, o->bounds != CMA_FREE, err)) {
		cma_close(c);
		return NULL;
	}
	cma_constants(c);
	c->draw.seed = o->seed;
	c->sigma = c->sigma0 = o->sigma;
	c->best_value = (double)INFINITY;
	memcpy(c->best, o->start, (size_t)c->n * sizeof(double));
	for (int i = 0; i < c->n; i++) {
		c->lengths[i] = c->c[c->separable ? i : i * c->n + i] = 1;
		if (!c->separable)
			c->vectors[i * c->n + i] = 1;
		if (o->lower) {
			c->lower[i] = o->lower[i];
			c->upper[i] = o->upper[i];
		}
		c->mean[i] = c->bounds == CMA_BOX ? cma_bounds_unfold(c, i, o->start[i]) : o->start[i];
	}
	return c;
}

/* ---- drawing */

int cma_dimension(const struct cma *c) { return c->n; }
int cma_population(const struct cma *c) { return c->lambda; }
double cma_variance(const struct cma *c, int i) { return c->c[c->separable ? i : i * c->n + i]; }

/* step = B D z. */
static void stretch(const struct cma *c, const double *z, double *step)
{
	const int n = c->n;

	if (c->separable) {
		for (int i = 0; i < n; i++)
			step[i] = c->lengths[i] * z[i];
		return;
	}
	memset(step, 0, (size_t)n * sizeof *step);
	for (int k = 0; k < n; k++) {
		const double along = c->lengths[k] * z[k];
		for (int i = 0; i < n; i++)
			step[i] += along * c->vectors[k * n + i];
	}
}

const double *cma_ask(struct cma *c)
{
	const int n = c->n;

	for (int k = 0; k < c->lambda; k++) {
		double *z = c->work, *x = c->work + n, *step = c->steps + (size_t)k * (size_t)n;
		draw_normals(&c->draw, z, (size_t)n);
		stretch(c, z, step);
		c->whitened[k] = 0;
		for (int i = 0; i < n; i++) {
			c->whitened[k] += z[i] * z[i];
			x[i] = c->mean[i] + c->sigma * step[i];
		}
		double *candidate = c->candidates + (size_t)k * (size_t)n;
		if (c->bounds == CMA_BOX)
			cma_bounds_fold(c, x, candidate);
		else if (c->bounds == CMA_PENALTY)
			cma_bounds_nearest(c, x, candidate);
		else
			memcpy(candidate, x, (size_t)n * sizeof *x);
	}
	return c->candidates;
}

/* ---- learning */

/* By value, then by number: an order that no sort's choice shows in. */
static int by_value(const struct cma *c, int a, int b)
{
	return c->values[a] < c->values[b] || (!(c->values[b] < c->values[a]) && a < b);
}

static void sort_order(const struct cma *c, int *order, int *other, int n)
{
	if (n < 2)
		return;
	const int half = n / 2;
	sort_order(c, order, other, half);
	sort_order(c, order + half, other, n - half);
	memcpy(other, order, (size_t)half * sizeof *other);
	for (int i = 0, j = half, k = 0; i < half; k++)
		order[k] = j < n && by_value(c, order[j], other[i]) ? order[j++] : other[i++];
}

/* From the best value to the worst. */
static void cma_sort(struct cma *c)
{
	for (int k = 0; k < c->lambda; k++)
		c->order[k] = k;
	sort_order(c, c->order, c->order + c->lambda, c->lambda);
}

/* z = C^-1/2 y. */
static void whiten(const struct cma *c, const double *y, double *z)
{
	const int n = c->n;

	if (c->separable) {
		for (int i = 0; i < n; i++)
			z[i] = y[i] / c->lengths[i];
		return;
	}
	memset(z, 0, (size_t)n * sizeof *z);
	for (int k = 0; k < n; k++) {
		const double *axis = c->vectors + k * n;
		double along = 0;
		for (int i = 0; i < n; i++)
			along += axis[i] * y[i];
		along /= c->lengths[k];
		for (int i = 0; i < n; i++)
			z[i] += along * axis[i];
	}
}

/* The matrix learns from both paths: rank one, and rank mu with all weights. */
static void learn_matrix(struct cma *c, bool stalled)
{
	const int n = c->n;
	double sum = 0;

	for (int i = 0; i < c->lambda; i++)
		sum += c->weights[i];
	const double keep = 1 - c->c_1 - c->c_mu * sum + (stalled ? c->c_1 * c->c_c * (2 - c->c_c) : 0);
	const int rows = c->separable ? 1 : n;
	for (int r = 0; r < rows; r++)
		for (int i = 0; i < (c->separable ? n : r + 1); i++)
			c->c[r * n + i] = keep * c->c[r * n + i] + c->c_1 * c->p_c[c->separable ? i : r] * c->p_c[i];
	for (int k = 0; k < c->lambda; k++) {
		const double *y = c->steps + (size_t)c->order[k] * (size_t)n;
		double w = c->c_mu * c->weights[k];
		if (w < 0)
			w *= n / fmax(c->whitened[c->order[k]], 1e-300);
		if (w == 0)
			continue;
		for (int r = 0; r < rows; r++) {
			const double first = w * y[r];
			for (int i = 0; i < (c->separable ? n : r + 1); i++)
				c->c[r * n + i] += (c->separable ? w * y[i] : first) * y[i];
		}
	}
}

static void decompose(struct cma *c)
{
	const int n = c->n;

	if (c->separable) {
		for (int i = 0; i < n; i++) {
			if (!(c->c[i] > 0) || !isfinite(c->c[i]))
				c->stop = CMA_STOP_NUMBERS;
			c->lengths[i] = sqrt(c->c[i]);
		}
		return;
	}
	if (c->evaluations < c->decomposed + c->lazy)
		return;
	double *a = c->work + 3 * n + 64;
	for (int r = 0; r < n; r++)
		for (int i = 0; i <= r; i++)
			a[r * n + i] = a[i * n + r] = c->c[r * n + i];
	if (!eigen_symmetric(n, a, c->vectors, c->lengths, c->work)) {
		c->stop = CMA_STOP_NUMBERS;
		return;
	}
	for (int i = 0; i < n; i++) {
		if (!(c->lengths[i] > 0))
			c->stop = CMA_STOP_CONDITION;
		c->lengths[i] = sqrt(fmax(c->lengths[i], 1e-300));
	}
	c->decomposed = c->evaluations;
}

/* The mean, both paths and the step size. */
static bool move(struct cma *c)
{
	const int n = c->n;
	double *y = c->work, *z = c->work + n, length = 0;

	memset(y, 0, (size_t)n * sizeof *y);
	for (int k = 0; k < c->mu; k++) {
		const double *step = c->steps + (size_t)c->order[k] * (size_t)n;
		for (int i = 0; i < n; i++)
			y[i] += c->weights[k] * step[i];
	}
	whiten(c, y, z);
	const double gain = sqrt(c->c_sigma * (2 - c->c_sigma) * c->mu_eff);
	for (int i = 0; i < n; i++) {
		c->mean[i] += c->sigma * y[i];
		c->p_sigma[i] = (1 - c->c_sigma) * c->p_sigma[i] + gain * z[i];
		length += c->p_sigma[i] * c->p_sigma[i];
	}
	/* 1 - (1 - c_sigma)^(2 generation): how much of its stationary length the path can have by now. */
	const double grown = 1 - math_host_exp(2 * (double)(c->generation + 1) * math_host_log(1 - c->c_sigma));
	const bool stalled = length / n / grown >= 2 + 4.0 / (n + 1);
	const double along = stalled ? 0 : sqrt(c->c_c * (2 - c->c_c) * c->mu_eff);
	for (int i = 0; i < n; i++)
		c->p_c[i] = (1 - c->c_c) * c->p_c[i] + along * y[i];
	c->sigma *= math_host_exp(fmin(1, c->c_sigma / c->d_sigma * (sqrt(length) / c->chi_n - 1)));
	/* A quarter of the population has one value: a plateau, which larger steps leave. */
	if (c->values[c->order[0]] == c->values[c->order[(int)(0.1 + c->lambda / 4.0)]])
		c->sigma *= math_host_exp(0.2 + c->c_sigma / c->d_sigma);
	return stalled;
}

void cma_tell(struct cma *c, const double *values)
{
	const size_t n = (size_t)c->n;

	for (int k = 0; k < c->lambda; k++) {
		const double value = isnan(values[k]) ? (double)INFINITY : values[k];
		c->values[k] = value;
		if (value < c->best_value) {
			c->best_value = value;
			memcpy(c->best, c->candidates + (size_t)k * n, n * sizeof(double));
		}
	}
	cma_sort(c);
	if (c->bounds == CMA_PENALTY) {
		cma_bounds_penalise(c);
		cma_sort(c);
	}
	cma_stop_note(c);
	c->evaluations += (uint64_t)c->lambda;
	learn_matrix(c, move(c));
	c->generation++;
	if (c->stop == CMA_RUNS)
		decompose(c);
	if (c->stop == CMA_RUNS)
		c->stop = cma_stop_now(c);
}
