/* eml/meet.c - formulas of two functions that were enumerated: for each one, the other is looked up. */
#include "eml/regress_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values up to a factor and an addend: 0 at the first row, 1 where they are furthest from that. */
static uint64_t affine_hash(const double v[ROWS])
{
	double shifted[ROWS], high = 0, size = fabs(v[0]);
	unsigned far = 0;

	for (unsigned r = 1; r < ROWS; r++) {
		const double apart = fabs(v[r] - v[0]);
		size = fmax(size, fabs(v[r]));
		if (!(apart < 1e100))
			return 0;
		/* of two that are as far but for rounding, the first one */
		far = apart > high * (1 + 1e-9) ? r : far;
		high = fmax(high, apart);
	}
	if (high < 1e-6 * size)
		return 0;
	for (unsigned r = 0; r < ROWS; r++)
		shifted[r] = (v[r] - v[0]) / (v[far] - v[0]);
	return functions_hash(shifted);
}

static void meet(struct regression *w, const struct functions *f, uint32_t known, uint32_t other, unsigned how,
                 const struct target *t)
{
	static const enum operation op[4] = { OP_ADD, OP_MUL, OP_DIV, OP_DIV };
	struct expression g = { .n = 0 }, e = { .n = 0 };
	const size_t rows = w->data->rows;
	double *have = malloc(rows * sizeof *have), *want = malloc(rows * sizeof *want), a, b;

	functions_expression(f, f->made[known], &g);
	if (have && want && !g.failed) {
		regression_values(w, &g, have);
		for (size_t r = 0; r < rows; r++)
			want[r] = how == 0   ? t->value[r] - have[r]
			          : how == 1 ? t->value[r] / have[r]
			          : how == 2 ? t->value[r] * have[r]
			                     : have[r] / t->value[r];
		expression_free(&g);
		functions_expression(f, f->made[other], &g);
		regression_values(w, &g, w->value);
		regression_line(w->value, want, rows, false, &a, &b);
		double scale = 0;
		for (size_t r = 0; r < rows; r++)
			scale = fmax(scale, fabs(want[r]));
		a = fabs(a - 1) < 1e-9 ? 1 : a;
		b = fabs(b) < 1e-9 * scale ? 0 : b;
		uint32_t at = expression_copy(&e, &g, expression_root(&g), NULL);
		at = expression_add(&e, OP_MUL, expression_number(&e, a), at);
		at = expression_add(&e, OP_ADD, at, expression_number(&e, b));
		const uint32_t first = functions_expression(f, f->made[known], &e);
		at = expression_add(&e, op[how], how == 3 ? first : at, how == 3 ? at : first);
		regression_undo(w, &e, t->undone, at);
		if (!e.failed && isfinite(a) && isfinite(b))
			front_add(w->front, &e);
		w->report->fitted++;
	}
	expression_free(&g);
	expression_free(&e);
	free(have);
	free(want);
}

static bool number_exists(const struct functions *f, uint32_t number)
{
	for (unsigned s = 1; s <= f->kept; s++)
		if (number >= f->size[s].first && number < f->size[s].first + f->size[s].count)
			return true;
	return false;
}

static void gather(const struct functions *f, uint32_t number, double out[ROWS])
{
	const double *v = functions_values(f, number);

	for (unsigned r = 0; r < ROWS; r++)
		out[r] = v[r * WIDTH];
}

bool regression_meet(struct regression *w, const struct functions *f)
{
	struct seen table = { .slots = 0 };
	double v[ROWS], q[ROWS];
	unsigned met = 0;

	if (!seen_reserve(&table, (size_t)f->next + 1))
		return regression_fail(w->err, JIT_ERROR_MEMORY, "there is no memory for the functions' table");
	for (uint32_t i = 0; i < f->next; i++) {
		if (!number_exists(f, i))
			continue;
		gather(f, i, v);
		const uint64_t hash = affine_hash(v);
		if (hash)
			seen_put(&table, hash, i);
	}
	for (uint32_t i = 0; i < f->next && met < 400; i++) {
		if (!number_exists(f, i) || jit_cancel_get(w->options->cancel))
			continue;
		gather(f, i, v);
		for (unsigned k = 0; k < w->targets; k++)
			for (unsigned how = 0; how < 4; how++) {
				for (unsigned r = 0; r < ROWS; r++) {
					const double t = w->target[k].value[w->row[r]];
					q[r] = how == 0   ? t - v[r]
					       : how == 1 ? t / v[r]
					       : how == 2 ? t * v[r]
					                  : v[r] / t;
				}
				const uint64_t hash = affine_hash(q);
				const uint32_t other = hash ? seen_find(&table, hash) : SEEN_NONE;
				if (other == SEEN_NONE)
					continue;
				meet(w, f, i, other, how, &w->target[k]);
				met++;
			}
	}
	seen_free(&table);
	return true;
}
