/* eml/constants.c - the numbers of a formula, by derivatives of a graph of tensors.
 *
 * Owns: the graph that a formula is, and the steps of Levenberg and Marquardt, whose matrix is made of the graph's
 * derivatives in the direction of each number.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eml/regress.h"

enum { NUMBERS = 12 };

struct fit {
	const struct dataset *data;
	struct expression *e;
	uint32_t at[NUMBERS]; /* nodes that are numbers to fit */
	unsigned n;
	jit_executable *x;
	double *value, *along; /* [rows]; [n][rows] */
	const void **in;
};

static bool fail(jit_error *err, int code, const char *sentence)
{
	err->code = code;
	snprintf(err->message, sizeof err->message, "%s", sentence);
	return false;
}

/* ---- a formula as the text of a graph */

/* Whole exponents stay as they are: a power with another one has no value where its base is below 0. */
static bool is_exponent(const struct expression *e, uint32_t at)
{
	for (size_t i = 0; i < e->n; i++)
		if (e->node[i].op == OP_POW && e->node[i].b == at)
			return e->node[at].number == rint(e->node[at].number);
	return false;
}

static void write_full(FILE *f, size_t at, double v, size_t rows)
{
	fprintf(f, "s%zu = constant f64[] %.17g\nv%zu = broadcast s%zu shape=[%zu] axes=[]\n", at, v, at, at, rows);
}

/* What a node is called. */
static const char *name_of(const struct expression *e, uint32_t at, char out[24])
{
	if (e->node[at].op == OP_VARIABLE)
		snprintf(out, 24, "x%u", e->node[at].a);
	else
		snprintf(out, 24, "v%u", at);
	return out;
}

static void write_power(FILE *f, const struct expression *e, size_t at, size_t rows)
{
	const struct node *n = &e->node[at], *exponent = &e->node[n->b];
	const double whole = exponent->number;
	char a[24], b[24];

	name_of(e, n->a, a);
	if (exponent->op != OP_NUMBER || whole != rint(whole) || fabs(whole) > 8 || whole == 0) {
		fprintf(f, "v%zu = pow %s %s\n", at, a, name_of(e, n->b, b));
		return;
	}
	write_full(f, at, 1, rows);
	for (int k = 0; k < (int)fabs(whole); k++)
		fprintf(f, "v%zu = %s v%zu %s\n", at, whole < 0 ? "div" : "mul", at, a);
}

static bool write_node(FILE *f, const struct expression *e, size_t at, size_t rows)
{
	static const char *const name[OPERATIONS] = {
		[OP_NEG] = "neg", [OP_EXP] = "exp", [OP_LN] = "log",    [OP_SQRT] = "sqrt",
		[OP_SIN] = "sin", [OP_COS] = "cos", [OP_TANH] = "tanh", [OP_ADD] = "add",
		[OP_SUB] = "sub", [OP_MUL] = "mul", [OP_DIV] = "div"
	};
	const struct node *n = &e->node[at];
	char a[24];

	switch (n->op) {
	case OP_NUMBER: write_full(f, at, n->number, rows); return true;
	case OP_PI: write_full(f, at, acos(-1), rows); return true;
	case OP_E: write_full(f, at, exp(1), rows); return true;
	case OP_VARIABLE: return true; /* an input */
	case OP_POW: write_power(f, e, at, rows); return true;
	case OP_TAN:
		name_of(e, n->a, a);
		fprintf(f, "s%zu = sin %s\nt%zu = cos %s\nv%zu = div s%zu t%zu\n", at, a, at, a, at, at, at);
		return true;
	default: break;
	}
	if (!name[n->op])
		return false;
	fprintf(f, "v%zu = %s %s", at, name[n->op], name_of(e, n->a, a));
	if (operation_form[n->op].operands == 2)
		fprintf(f, " %s", name_of(e, n->b, a));
	fputc('\n', f);
	return true;
}

/* Inputs: the variables, then the numbers. NULL: err, or an operation that graphs lack. */
static char *graph_text(const struct fit *t, jit_error *err)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	bool fine = f != NULL;

	if (!f) {
		fail(err, JIT_ERROR_MEMORY, "there is no memory for a formula's graph");
		return NULL;
	}
	for (unsigned v = 0; v < t->data->variables; v++)
		fprintf(f, "input x%u f64[%zu]\n", v, t->data->rows);
	for (unsigned k = 0; k < t->n; k++)
		fprintf(f, "input c%u f64[]\n", k);
	for (size_t i = 0; fine && i < t->e->n; i++) {
		unsigned k = 0;
		while (k < t->n && t->at[k] != i)
			k++;
		if (k < t->n)
			fprintf(f, "v%zu = broadcast c%u shape=[%zu] axes=[]\n", i, k, t->data->rows);
		else
			fine = write_node(f, t->e, i, t->data->rows);
	}
	fprintf(f, "output v%zu as y\n", t->e->n - 1);
	if (fclose(f) == 0 && fine)
		return text;
	free(text);
	fail(err, JIT_ERROR_UNSUPPORTED, "a formula has an operation that graphs lack");
	return NULL;
}

static bool open_graph(struct fit *t, jit_compute *compute, jit_error *err)
{
	char *text = graph_text(t, err);
	size_t numbers[NUMBERS];

	if (!text)
		return false;
	for (unsigned k = 0; k < t->n; k++)
		numbers[k] = t->data->variables + k;
	jit_graph *g = jit_graph_open(&JIT_GRAPH_OPTIONS(.source = text, .path = "formula"), err);
	jit_graph *d = g ? jit_graph_jvp(g, numbers, t->n, 1, err) : NULL;
	t->x = d ? jit_executable_open(compute, d, err) : NULL;
	jit_graph_close(d);
	jit_graph_close(g);
	free(text);
	return t->x != NULL;
}

/* ---- steps */

/* The values and, of each number, how they move with it. */
static bool derivatives(struct fit *t, const double *c, jit_error *err)
{
	const struct dataset *d = t->data;
	static const double zero = 0, one = 1;

	for (unsigned v = 0; v < d->variables; v++)
		t->in[v] = d->x + v * d->rows;
	for (unsigned k = 0; k < t->n; k++)
		t->in[d->variables + k] = &c[k];
	for (unsigned k = 0; k < t->n; k++) {
		void *out[2] = { t->value, t->along + k * d->rows };
		for (unsigned i = 0; i < t->n; i++)
			t->in[d->variables + t->n + i] = i == k ? &one : &zero;
		if (jit_executable_run(t->x, t->in, d->variables + 2 * t->n, out, 2, err) != JIT_OK)
			return false;
	}
	return true;
}

static double squares_left(const struct fit *t)
{
	double sum = 0;

	for (size_t r = 0; r < t->data->rows; r++)
		sum += (t->value[r] - t->data->y[r]) * (t->value[r] - t->data->y[r]);
	return isfinite(sum) ? sum : INFINITY;
}

/* m x = v, m symmetric: Cholesky's factors. False: m is not positive. */
static bool solve(double m[NUMBERS][NUMBERS], double *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j <= i; j++) {
			double s = m[i][j];
			for (unsigned k = 0; k < j; k++)
				s -= m[i][k] * m[j][k];
			if (i == j && !(s > 0))
				return false;
			m[i][j] = i == j ? sqrt(s) : s / m[j][j];
		}
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < i; k++)
			v[i] -= m[i][k] * v[k];
		v[i] /= m[i][i];
	}
	for (unsigned i = n; i-- > 0;) {
		for (unsigned k = i + 1; k < n; k++)
			v[i] -= m[k][i] * v[k];
		v[i] /= m[i][i];
	}
	return true;
}

/* A step from c, of which the derivatives are there. */
static bool step_from(const struct fit *t, const double *c, double damping, double *next)
{
	double m[NUMBERS][NUMBERS], v[NUMBERS];
	const size_t rows = t->data->rows;

	for (unsigned i = 0; i < t->n; i++) {
		for (unsigned j = 0; j <= i; j++) {
			m[i][j] = 0;
			for (size_t r = 0; r < rows; r++)
				m[i][j] += t->along[i * rows + r] * t->along[j * rows + r];
		}
		v[i] = 0;
		for (size_t r = 0; r < rows; r++)
			v[i] += t->along[i * rows + r] * (t->data->y[r] - t->value[r]);
		m[i][i] += damping * m[i][i] + DBL_MIN;
		if (!isfinite(m[i][i]) || !isfinite(v[i]))
			return false;
	}
	if (!solve(m, v, t->n))
		return false;
	for (unsigned i = 0; i < t->n; i++)
		next[i] = c[i] + v[i];
	return true;
}

static bool go(struct fit *t, unsigned steps, jit_error *err)
{
	double c[NUMBERS], next[NUMBERS], damping = 1e-2;

	for (unsigned k = 0; k < t->n; k++)
		c[k] = t->e->node[t->at[k]].number;
	if (!derivatives(t, c, err))
		return false;
	double left = squares_left(t);
	for (unsigned s = 0; s < steps && left > 0 && damping < 1e10; s++) {
		if (!step_from(t, c, damping, next)) {
			damping *= 10;
			continue;
		}
		if (!derivatives(t, next, err))
			return false;
		const double now = squares_left(t);
		if (now < left) {
			const bool done = now > left * (1 - 1e-12);
			memcpy(c, next, sizeof c);
			left = now;
			damping = fmax(damping / 10, 1e-12);
			if (done)
				break;
		} else {
			damping *= 10;
			if (!derivatives(t, c, err))
				return false;
		}
	}
	for (unsigned k = 0; k < t->n; k++)
		t->e->node[t->at[k]].number = c[k];
	return true;
}

bool constants_fit(jit_compute *compute, const struct dataset *d, struct expression *e, unsigned steps, jit_error *err)
{
	struct fit t = { .data = d, .e = e };
	bool fine;

	for (size_t i = 0; i < e->n && t.n < NUMBERS; i++)
		if (e->node[i].op == OP_NUMBER && !is_exponent(e, (uint32_t)i))
			t.at[t.n++] = (uint32_t)i;
	if (t.n == 0)
		return true;
	t.value = malloc(d->rows * sizeof *t.value);
	t.along = malloc(t.n * d->rows * sizeof *t.along);
	t.in = malloc((d->variables + 2 * t.n) * sizeof *t.in);
	if (!t.value || !t.along || !t.in)
		fine = fail(err, JIT_ERROR_MEMORY, "there is no memory for a formula's derivatives");
	else
		fine = open_graph(&t, compute, err) && go(&t, steps, err);
	jit_executable_close(t.x);
	free(t.value);
	free(t.along);
	free(t.in);
	return fine;
}
