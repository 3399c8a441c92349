/* eml/terms.c - formulas with numbers inside of functions, and sums of functions. */
#include "eml/regress_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums of terms: what a formula leaves is the next target */

/* y = a f + c g + b, with f a formula's own scale: two lines, one after the other until they settle. */
static void add_sum(struct regression *w, const struct expression *f, const struct expression *g)
{
	const struct dataset *d = w->data;
	double *u = malloc(d->rows * sizeof *u), *v = malloc(d->rows * sizeof *v);
	double s[3][4] = { { 0 } };
	struct expression e = { .n = 0 };

	if (u && v) {
		regression_values(w, f, u);
		regression_values(w, g, v);
		for (size_t r = 0; r < d->rows; r++) {
			const double row[4] = { u[r], v[r], 1, d->y[r] };
			for (unsigned i = 0; i < 3; i++)
				for (unsigned j = 0; j < 4; j++)
					s[i][j] += row[i] * row[j];
		}
		for (unsigned i = 0; i < 3; i++) /* elimination: the matrix is positive */
			for (unsigned k = 0; k < 3; k++) {
				const double by = k == i ? 0 : s[k][i] / s[i][i];
				for (unsigned j = 0; j < 4; j++)
					s[k][j] -= by * s[i][j];
			}
		const double a = s[0][3] / s[0][0], c = s[1][3] / s[1][1], b = s[2][3] / s[2][2];
		uint32_t at = expression_copy(&e, f, expression_root(f), NULL);
		at = expression_add(&e, OP_MUL, expression_number(&e, a), at);
		uint32_t other = expression_copy(&e, g, expression_root(g), NULL);
		other = expression_add(&e, OP_MUL, expression_number(&e, c), other);
		at = expression_add(&e, OP_ADD, at, other);
		expression_add(&e, OP_ADD, at, expression_number(&e, fabs(b) < 1e-10 * fabs(a * u[0]) ? 0 : b));
		if (!e.failed && isfinite(a) && isfinite(b) && isfinite(c))
			front_add(w->front, &e);
		w->report->fitted++;
	}
	expression_free(&e);
	free(u);
	free(v);
}

bool regression_term(struct regression *w)
{
	const struct dataset *d = w->data;
	struct expression base[TARGETS];
	double t[TARGETS * ROWS], *left = malloc(d->rows * sizeof *left);
	unsigned n = 0;
	bool more = true, fine = left != NULL;

	for (unsigned i = w->front->n; i-- > 0 && n < TARGETS && left;) {
		const struct formula *f = &w->front->formula[i];
		if (f->size > 40)
			continue;
		base[n] = (struct expression){ .n = 0 };
		expression_copy(&base[n], &f->e, expression_root(&f->e), NULL);
		regression_values(w, &base[n], left);
		for (size_t r = 0; r < d->rows; r++)
			left[r] = d->y[r] - left[r];
		regression_normalise(w, left, t + n++ * ROWS);
	}
	free(left);
	struct functions *f =
		fine && n ? regression_functions(w, regression_codes(w), t, n, w->options->examined / 4) : NULL;
	while (f && fine && more && !regression_is_enough(w)) {
		fine = functions_next(f, &more, w->err);
		const struct function_size *s = &f->size[f->largest];
		for (unsigned i = 0; fine && more && i < s->n_best; i++) {
			struct expression g = { .n = 0 };
			functions_expression(f, s->best[i].made, &g);
			if (!g.failed)
				add_sum(w, &base[s->best[i].target], &g);
			expression_free(&g);
		}
	}
	fine = fine && (f || !n);
	w->report->examined += f ? f->examined : 0;
	functions_close(f);
	for (unsigned i = 0; i < n; i++)
		expression_free(&base[i]);
	return fine;
}

/* ---- constants inside */

/* Functions that numbers beside their operand change in another way than beside themselves. */
static bool bends(const struct expression *e, const struct node *n)
{
	return n->op == OP_EXP || n->op == OP_LN || n->op == OP_SQRT || n->op == OP_SIN || n->op == OP_COS ||
	       n->op == OP_TANH || (n->op == OP_POW && e->node[n->b].op == OP_NUMBER);
}

/* A copy in which operands u of those are c u + d, divisors u + d, and the whole is a u + b. */
static uint32_t with_numbers(struct expression *out, const struct expression *e, uint32_t at, double scale)
{
	const struct node n = e->node[at];
	const unsigned operands = operation_form[n.op].operands;

	if (!operands)
		return expression_copy(out, e, at, NULL);
	uint32_t a = with_numbers(out, e, n.a, scale), b = operands == 2 ? with_numbers(out, e, n.b, scale) : 0;
	if (bends(e, &n)) {
		if (n.op != OP_SQRT && n.op != OP_LN && n.op != OP_POW) /* there, a factor comes out */
			a = expression_add(out, OP_MUL, expression_number(out, scale), a);
		if (n.op != OP_EXP)
			a = expression_add(out, OP_ADD, a, expression_number(out, 1e-3));
	} else if (n.op == OP_DIV && e->node[n.b].op != OP_NUMBER) {
		b = expression_add(out, OP_ADD, b, expression_number(out, scale));
	}
	return expression_add(out, n.op, a, b);
}

bool regression_constants(struct regression *w)
{
	static const double scale[] = { 1, 0.3, 3, -1 };

	for (unsigned i = 0; i < w->n_started && !regression_is_enough(w); i++)
		for (unsigned k = 0; k < sizeof scale / sizeof *scale && !regression_is_enough(w); k++) {
			struct expression e = { .n = 0 };
			jit_error err = { 0 };
			double a, b;
			if (jit_cancel_get(w->options->cancel))
				return regression_fail(w->err, JIT_ERROR_CANCELLED, "interrupted");
			with_numbers(&e, &w->started[i], expression_root(&w->started[i]), scale[k]);
			bool inside = false;
			for (size_t m = 0; m < e.n; m++)
				inside |= e.node[m].op == OP_NUMBER && e.node[m].number != rint(e.node[m].number);
			if (!e.failed && (inside || k == 0)) {
				regression_values(w, &e, w->value);
				regression_line(w->value, w->data->y, w->data->rows, false, &a, &b);
				uint32_t at = expression_root(&e);
				at = expression_add(&e, OP_MUL, expression_number(&e, isfinite(a) ? a : 1), at);
				expression_add(&e, OP_ADD, at, expression_number(&e, isfinite(b) ? b : 0));
				/* what graphs lack, and what has no value at all rows, is passed over */
				if (constants_fit(w->compute, w->data, &e, 60, &err))
					front_add(w->front, &e);
				w->report->fitted++;
			}
			expression_free(&e);
		}
	return true;
}
