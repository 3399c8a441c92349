#include "eml/regress_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool regression_fail(jit_error *err, int code, const char *sentence)
{
	err->code = code;
	snprintf(err->message, sizeof err->message, "%s", sentence);
	return false;
}

bool regression_is_enough(const struct regression *w)
{
	return w->front->n && w->front->formula[w->front->n - 1].error <= w->options->enough;
}

/* ---- targets: functions of y that a x + b may be fitted to */

static double done_to(enum undone u, double y)
{
	switch (u) {
	case RECIPROCAL: return 1 / y;
	case SQUARE: return y * y;
	case LOGARITHM: return log(y);
	case EXPONENTIAL: return exp(y);
	case ROOT: return sqrt(y);
	default: return y;
	}
}

static bool all_negative(const struct dataset *d)
{
	for (size_t r = 0; r < d->rows; r++)
		if (d->y[r] > 0)
			return false;
	return true;
}

/* y of an expression for what was done to it. */
uint32_t regression_undo(const struct regression *w, struct expression *e, enum undone u, uint32_t a)
{
	uint32_t at = a;

	switch (u) {
	case RECIPROCAL: return expression_add(e, OP_DIV, expression_number(e, 1), a);
	case SQUARE:
		at = expression_add(e, OP_SQRT, a, 0);
		return all_negative(w->data) ? expression_add(e, OP_NEG, at, 0) : at;
	case LOGARITHM: return expression_add(e, OP_EXP, a, 0);
	case EXPONENTIAL: return expression_add(e, OP_LN, a, 0);
	case ROOT: return expression_add(e, OP_POW, a, expression_number(e, 2));
	default: return at;
	}
}

static bool add_target(struct regression *w, enum undone u)
{
	const struct dataset *d = w->data;
	double *v = malloc(d->rows * sizeof *v);
	bool above = false, below = false, fine = v != NULL;

	for (size_t r = 0; fine && r < d->rows; r++) {
		v[r] = done_to(u, d->y[r]);
		above |= d->y[r] > 0;
		below |= d->y[r] < 0;
		fine = isfinite(v[r]) && fabs(v[r]) < 1e50;
	}
	if (!v)
		return regression_fail(w->err, JIT_ERROR_MEMORY, "there is no memory for a column of data");
	if (!fine || (u == SQUARE && above && below)) { /* it says nothing of the sign */
		free(v);
		return true;
	}
	w->target[w->targets++] = (struct target){ u, v };
	return true;
}

/* The rows at which functions are compared, less the mean and with length 1. */
void regression_normalise(const struct regression *w, const double *value, double *t)
{
	double mean = 0, length = 0;

	for (unsigned r = 0; r < ROWS; r++)
		mean += value[w->row[r]] / ROWS;
	for (unsigned r = 0; r < ROWS; r++) {
		t[r] = value[w->row[r]] - mean;
		length += t[r] * t[r];
	}
	for (unsigned r = 0; r < ROWS; r++)
		t[r] /= length > 0 ? sqrt(length) : 1;
}

/* ---- a function of the data becomes formulas */

void regression_values(const struct regression *w, const struct expression *e, double *out)
{
	double complex x[EXPRESSION_VARIABLES];

	for (size_t r = 0; r < w->data->rows; r++) {
		for (unsigned v = 0; v < w->data->variables; v++)
			x[v] = w->data->x[v * w->data->rows + r];
		const double complex z = expression_value(e, x);
		out[r] = fabs(cimag(z)) <= 1e-9 * fabs(creal(z)) ? creal(z) : NAN;
	}
}

/* T = a v + b, of least squares; whole: b is 0. */
void regression_line(const double *v, const double *t, size_t n, bool whole, double *a, double *b)
{
	double mean_v = 0, mean_t = 0, squares = 0, products = 0;

	for (size_t r = 0; r < n && !whole; r++) {
		mean_v += v[r] / (double)n;
		mean_t += t[r] / (double)n;
	}
	for (size_t r = 0; r < n; r++) {
		squares += (v[r] - mean_v) * (v[r] - mean_v);
		products += (v[r] - mean_v) * (t[r] - mean_t);
	}
	*a = squares > 0 ? products / squares : 0;
	*b = mean_t - *a * mean_v;
}

static void add_line(struct regression *w, const struct expression *f, double a, double b, const struct target *t)
{
	struct expression e = { .n = 0 };
	uint32_t at = expression_copy(&e, f, expression_root(f), NULL);

	if (a != 1)
		at = expression_add(&e, OP_MUL, expression_number(&e, a), at);
	if (b != 0)
		at = expression_add(&e, OP_ADD, at, expression_number(&e, b));
	regression_undo(w, &e, t->undone, at);
	if (!e.failed && isfinite(a) && isfinite(b))
		front_add(w->front, &e);
	expression_free(&e);
}

/* A function that explains a target. */
static void add_function(struct regression *w, const struct expression *f, const struct target *t)
{
	double a, b;

	regression_values(w, f, w->value);
	regression_line(w->value, t->value, w->data->rows, false, &a, &b);
	add_line(w, f, a, b, t);
	if (fabs(a - 1) < 1e-6)
		add_line(w, f, 1, b, t);
	regression_line(w->value, t->value, w->data->rows, true, &a, &b);
	add_line(w, f, a, 0, t);
	if (fabs(a - 1) < 1e-6)
		add_line(w, f, 1, 0, t);
	w->report->fitted++;
}

static void start(struct regression *w, const struct expression *f)
{
	struct expression *e = &w->started[w->n_started];

	if (w->n_started == STARTED)
		return;
	*e = (struct expression){ .n = 0 };
	expression_copy(e, f, expression_root(f), NULL);
	w->n_started += !e->failed;
	if (e->failed)
		expression_free(e);
}

static void add_best(struct regression *w, const struct functions *f, const struct function_size *s, unsigned size,
                     bool first)
{
	for (unsigned i = 0; i < s->n_best; i++) {
		struct expression e = { .n = 0 };
		functions_expression(f, s->best[i].made, &e);
		if (!e.failed)
			add_function(w, &e, &w->target[s->best[i].target]);
		if (!e.failed && first && (size <= 4 || i < 6))
			start(w, &e);
		expression_free(&e);
	}
}

/* ---- an enumeration */

/* Sets of operations, by codes: few of them reach larger sizes. */
enum {
	ARITHMETIC = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 14,
	EXP_LN = 1 << 8 | 1 << 9,
	ROOTS = 1 << 10,
	SIN = 1 << 11,
	COS = 1 << 12,
	USUAL = 0xff3f /* all but powers */
};
static const struct {
	uint32_t codes;
	unsigned part; /* of the functions that are to be examined */
} stage[] = {
	{ UINT32_MAX, 20 },
	{ ARITHMETIC, 3 },
	{ ARITHMETIC | EXP_LN, 3 },
	{ ARITHMETIC | SIN | COS, 3 },
	{ ARITHMETIC | ROOTS | COS, 3 },
	{ UINT32_MAX, 1 },
};
enum { STAGES = sizeof stage / sizeof *stage };

struct functions *regression_functions(struct regression *w, uint32_t codes, const double *t, unsigned targets,
                                       uint64_t examined)
{
	return functions_open(
		&(struct functions_options){
			.variables = w->data->variables,
			.targets = targets,
			.x = w->x,
			.t = t,
			.codes = codes,
			.max_examined = examined,
			.device = w->options->device,
			.cache = w->options->cache,
			.threads = w->options->threads,
			.cancel = w->options->cancel },
		w->err);
}

static bool enumerate(struct regression *w, uint32_t codes, uint64_t examined, bool first)
{
	double t[TARGETS * ROWS];
	bool more = true, fine = true;

	for (unsigned k = 0; k < w->targets; k++)
		regression_normalise(w, w->target[k].value, t + k * ROWS);
	struct functions *f = regression_functions(w, codes, t, w->targets, examined);
	if (!f)
		return false;
	for (uint32_t i = 0; first && i < f->size[1].count; i++) {
		struct expression e = { .n = 0 };
		functions_expression(f, f->made[i], &e);
		for (unsigned k = 0; !e.failed && k < w->targets; k++)
			add_function(w, &e, &w->target[k]);
		start(w, &e);
		expression_free(&e);
	}
	while (fine && more && !regression_is_enough(w)) {
		fine = functions_next(f, &more, w->err);
		if (fine && more)
			add_best(w, f, &f->size[f->largest], f->largest, first);
	}
	if (fine && !regression_is_enough(w))
		fine = regression_meet(w, f);
	w->report->examined += f->examined;
	w->report->kept += f->next;
	functions_close(f);
	return fine;
}

uint32_t regression_codes(const struct regression *w) { return w->options->codes ? w->options->codes : USUAL; }

static bool enumerate_stages(struct regression *w)
{
	bool fine = true;

	for (unsigned i = 0; fine && i < STAGES && !regression_is_enough(w); i++) {
		const uint32_t codes = stage[i].codes & regression_codes(w);
		bool other = codes != 0;
		for (unsigned k = 1; k < i; k++)
			other &= codes != (stage[k].codes & regression_codes(w));
		if (other)
			fine = enumerate(w, codes, w->options->examined / stage[i].part, i == 0);
	}
	return fine;
}

/* ---- all of it */

static bool prepare(struct regression *w)
{
	const struct dataset *d = w->data;

	w->value = malloc(d->rows * sizeof *w->value);
	w->x = malloc((d->variables ? d->variables : 1) * ROWS * sizeof *w->x);
	w->started = malloc(STARTED * sizeof *w->started);
	if (!w->value || !w->x || !w->started)
		return regression_fail(w->err, JIT_ERROR_MEMORY, "there is no memory for the data");
	for (unsigned r = 0; r < ROWS; r++) {
		w->row[r] = d->rows >= ROWS ? (size_t)r * d->rows / ROWS : r % d->rows;
		for (unsigned v = 0; v < d->variables; v++)
			w->x[v * ROWS + r] = d->x[v * d->rows + w->row[r]];
	}
	for (enum undone u = AS_IT_IS; u <= ROOT; u++)
		if (!add_target(w, u))
			return false;
	w->compute =
		jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = w->options->device, .cache_dir = w->options->cache,
	                                              .threads = w->options->threads, .cancel = w->options->cancel),
	                         w->err);
	return w->compute != NULL;
}

bool regress(const struct dataset *d, const struct regress_options *o, struct front *front,
             struct regress_report *report, jit_error *err)
{
	struct regression w = { .data = d, .options = o, .front = front, .report = report, .err = err };
	const unsigned terms = o->terms ? o->terms : 3;

	*report = (struct regress_report){ .examined = 0 };
	*front = (struct front){ .data = d };
	bool fine = prepare(&w) && enumerate_stages(&w);
	if (fine)
		front_shorten(front);
	if (fine && !regression_is_enough(&w) && !o->no_constants)
		fine = regression_constants(&w);
	for (unsigned k = 1; fine && k < terms && !regression_is_enough(&w); k++)
		fine = regression_term(&w);
	if (fine)
		front_shorten(front);
	for (unsigned i = 0; i < w.n_started; i++)
		expression_free(&w.started[i]);
	for (unsigned k = 0; k < w.targets; k++)
		free(w.target[k].value);
	jit_compute_close(w.compute);
	free(w.value);
	free(w.x);
	free(w.started);
	if (!fine)
		front_free(front);
	return fine;
}
