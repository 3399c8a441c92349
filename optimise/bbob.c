/* optimise/bbob.c - instances of the benchmark's functions: what is drawn for each. */
#include "optimise/bbob.h"

#include <math.h>
#include <stdlib.h>

#include "base/math_host.h"
#include "optimise/bbob_parts.h"

/* ---- the benchmark's generator: Park and Miller's, shuffled by a table of 32 */

static double advance(double seed)
{
	const double high = floor(seed / 127773);
	seed = 16807 * (seed - high * 127773) - 2836 * high;
	return seed < 0 ? seed + 2147483647 : seed;
}

static void uniform(double *out, int n, double seed)
{
	double table[32];

	seed = fmax(1, fabs(seed));
	for (int i = 39; i >= 0; i--) {
		seed = advance(seed);
		if (i < 32)
			table[i] = seed;
	}
	double last = table[0];
	for (int i = 0; i < n; i++) {
		seed = advance(seed);
		const int slot = (int)floor(last / 67108865);
		last = table[slot];
		table[slot] = seed;
		out[i] = last / 2147483647;
		if (out[i] == 0)
			out[i] = 1e-99;
	}
}

/* 2n numbers of work are behind out. */
static void normal(double *out, int n, double seed, double *work)
{
	uniform(work, 2 * n, seed);
	for (int i = 0; i < n; i++) {
		double s, c;
		math_host_sincos(2 * M_PI * work[n + i], &s, &c);
		/* 1e-99 is below what the logarithm takes as it is. */
		out[i] = sqrt(-2 * math_host_log(work[i])) * c;
		if (out[i] == 0)
			out[i] = 1e-99;
	}
}

/* Rows of normal numbers, made orthogonal from the first on. */
static void rotation(double *r, int n, double seed, double *work)
{
	normal(r, n * n, seed, work);
	for (int i = 0; i < n; i++) {
		double *row = r + i * n, length = 0;
		for (int j = 0; j < i; j++) {
			const double *other = r + j * n;
			double dot = 0;
			for (int k = 0; k < n; k++)
				dot += row[k] * other[k];
			for (int k = 0; k < n; k++)
				row[k] -= dot * other[k];
		}
		for (int k = 0; k < n; k++)
			length += row[k] * row[k];
		for (int k = 0; k < n; k++)
			row[k] /= sqrt(length);
	}
}

/* ---- what each function has */

const struct bbob_row bbob_rows[BBOB_FUNCTIONS + 1] = {
#define ROW(number, ...) [number] = { __VA_ARGS__ },
#include "optimise/bbob.def"
#undef ROW
};

/* base^(i / (n - 1)) */
static double graded(double base, int i, int n) { return math_host_pow(base, n > 1 ? (double)i / (n - 1) : 0); }

static double sign(double x) { return (x > 0) - (x < 0); }

/* Where the optimum is. */
static void draw_optimum(struct bbob *b, double *work)
{
	const struct bbob_row *row = b->row;
	const int n = b->n;

	if (row->optimum == OPTIMUM_SIGNS)
		normal(b->optimum, n, b->seed, work);
	else
		uniform(b->optimum, n, b->seed + (row->optimum == OPTIMUM_OTHER_SEED ? 1e6 : 0));
	for (int i = 0; i < n; i++) {
		double *x = &b->optimum[i];
		if (row->optimum == OPTIMUM_SIGNS) {
			*x = 0.5 * 2.5 * sign(*x);
			continue;
		}
		if (row->optimum == OPTIMUM_SCHWEFEL) {
			*x = 0.5 * sign(*x - 0.5) * 4.2096874633;
			continue;
		}
		*x = 8 * floor(1e4 * *x) / 1e4 - 4;
		if (*x == 0)
			*x = -1e-5;
		if (row->optimum == OPTIMUM_CORNER)
			*x = 5 * sign(*x);
		else if (row->optimum == OPTIMUM_NEAR)
			*x *= 0.75;
		else if (row->optimum == OPTIMUM_ODD_POSITIVE && i % 2 == 0)
			*x = fabs(*x);
	}
}

/* linear = turned diag(condition^(i / 2(n-1))) [rotation] */
static void draw_linear(struct bbob *b, double *work)
{
	const int n = b->n;
	double *first = work, *rest = work + n * n;

	rotation(first, n, b->seed, rest);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			first[i * n + j] *= graded(sqrt(b->row->condition), j, n);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;
			for (int k = 0; k < n; k++)
				sum += first[i * n + k] * b->rotation[k * n + j];
			b->linear[i * n + j] = b->row->linear == LINEAR_HALF ? first[i * n + j] : sum;
		}
}

/* The Rosenbrock functions' rotations, scaled; their optimum follows from them. */
static void draw_scaled_rotation(struct bbob *b, double *work)
{
	const int n = b->n;
	const double scale = fmax(1, sqrt(n) / 8);

	rotation(b->linear, n, b->seed, work);
	for (int i = 0; i < n; i++) {
		double sum = 0;
		for (int j = 0; j < n; j++) {
			b->linear[i * n + j] *= scale;
			sum += 0.5 * b->linear[i * n + j];
		}
		b->optimum[i] = sum / (scale * scale);
	}
}

/* ---- Gallagher's peaks */

/* The permutation that sorts n numbers. */
static void permutation(int *order, int n, double seed, double *keys)
{
	uniform(keys, n, seed);
	for (int i = 0; i < n; i++) {
		int at = i;
		for (; at > 0 && keys[order[at - 1]] > keys[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static void draw_peaks(struct bbob *b, double *work)
{
	const struct bbob_row *row = b->row;
	const int n = b->n, peaks = row->peaks;
	int order[BBOB_DIMENSION_MAX];

	rotation(b->rotation, n, b->seed, work);
	permutation(order, peaks - 1, b->seed, work);
	for (int p = 0; p < peaks; p++) {
		b->heights[p] = p ? 1.1 + 8.0 * (p - 1) / (peaks - 2) : 10;
		b->scales[p * n] = p ? graded(1000, order[p - 1], peaks - 1) : row->condition;
	}
	for (int p = 0; p < peaks; p++) {
		const double condition = b->scales[p * n];
		permutation(order, n, b->seed + 1000.0 * p, work);
		for (int i = 0; i < n; i++)
			b->scales[p * n + i] = graded(condition, order[i], n) / sqrt(condition);
	}
	uniform(work, n * peaks, b->seed);
	for (int p = 0; p < peaks; p++)
		for (int j = 0; j < n; j++) {
			double sum = 0;
			for (int i = 0; i < n; i++)
				sum += row->spread * (10 * work[p * n + i] - 5) * b->rotation[i * n + j];
			b->peaks[p * n + j] = p ? sum : 0.8 * sum;
		}
	for (int i = 0; i < n; i++) {
		b->optimum[i] = 0;
		for (int j = 0; j < n; j++)
			b->optimum[i] += b->peaks[j] * b->rotation[i * n + j];
	}
}

/* ---- opening */

static void draw_instance(struct bbob *b, int instance, double *work)
{
	const int n = b->n;
	double offset[2];

	b->seed = b->row->seed + 1e4 * instance;
	normal(&offset[0], 1, b->seed, work);
	normal(&offset[1], 1, b->seed + 1, work);
	b->min = fmin(1000, fmax(-1000, rint(100 * 100 * offset[0] / offset[1]) / 100));
	if (b->row->peaks) {
		draw_peaks(b, work);
		return;
	}
	draw_optimum(b, work);
	if (b->row->linear == LINEAR_SCALED) {
		draw_scaled_rotation(b, work);
		return;
	}
	if (b->row->rotated)
		rotation(b->rotation, n, b->seed + 1e6, work);
	if (b->row->linear != LINEAR_NONE)
		draw_linear(b, work);
	for (int i = 0; i < n; i++) /* the same for all instances; a table, as powers take long */
		b->graded[i] = graded(b->row->scale, i, n);
}

struct bbob *bbob_open(int function, int dimension, int instance, struct error *err)
{
	if (function < 1 || function > BBOB_FUNCTIONS) {
		error_set(err, ERROR_ARGUMENT, "function %d: expected 1 to %d", function, BBOB_FUNCTIONS);
		return NULL;
	}
	if (dimension < 2 || dimension > BBOB_DIMENSION_MAX) {
		error_set(err, ERROR_ARGUMENT, "dimension %d: expected 2 to %d", dimension, BBOB_DIMENSION_MAX);
		return NULL;
	}
	if (instance < 0 || instance > BBOB_INSTANCE_MAX) {
		error_set(err, ERROR_ARGUMENT, "instance %d: expected 0 to %d", instance, BBOB_INSTANCE_MAX);
		return NULL;
	}
	const struct bbob_row *row = &bbob_rows[function];
	const size_t n = (size_t)dimension, peaks = (size_t)row->peaks, draws = 3 * n * n + n * peaks + 300;
	struct bbob *b = calloc(1, sizeof *b);
	double *all = calloc(2 * n * n + 2 * n + 2 * n * peaks + peaks, sizeof *all);
	double *work = calloc(draws, sizeof *work);
	if (!b || !all || !work) {
		error_set(err, ERROR_MEMORY, "out of memory for function %d in %d dimensions", function, dimension);
		free(b);
		b = NULL;
		free(all);
	} else {
		*b = (struct bbob){ .row = row, .n = dimension, .optimum = all, .graded = all + n };
		b->rotation = all + 2 * n;
		b->linear = b->rotation + n * n;
		b->peaks = b->linear + n * n;
		b->scales = b->peaks + n * peaks;
		b->heights = b->scales + n * peaks;
		draw_instance(b, instance, work);
	}
	free(work);
	return b;
}

void bbob_close(struct bbob *b)
{
	if (b)
		free(b->optimum);
	free(b);
}

const char *bbob_name(int function) { return bbob_rows[function].name; }
double bbob_min(const struct bbob *b) { return b->min; }
const double *bbob_optimum(const struct bbob *b) { return b->optimum; }
