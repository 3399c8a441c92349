#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eml/regress.h"

/* ---- how well a formula fits */

double front_error(const struct dataset *d, const struct expression *e)
{
	double complex x[EXPRESSION_VARIABLES];
	double left = 0, sum = 0, squares = 0;

	for (size_t r = 0; r < d->rows; r++) {
		for (unsigned v = 0; v < d->variables; v++)
			x[v] = d->x[v * d->rows + r];
		const double complex value = expression_value(e, x);
		const double apart = creal(value) - d->y[r];
		if (!isfinite(apart) || fabs(cimag(value)) > 1e-9 * fabs(creal(value)))
			return INFINITY;
		left += apart * apart;
		sum += d->y[r];
	}
	const double mean = sum / (double)d->rows;
	for (size_t r = 0; r < d->rows; r++)
		squares += (d->y[r] - mean) * (d->y[r] - mean);
	return squares > 0 ? sqrt(left / squares) : left > 0 ? INFINITY : 0;
}

/* ---- the front */

static void take_out(struct front *f, unsigned at)
{
	expression_free(&f->formula[at].e);
	f->n--;
	memmove(f->formula + at, f->formula + at + 1, (f->n - at) * sizeof *f->formula);
}

/* Below it errors are those of rounding, and say nothing. */
static double judged(double error) { return error < 1e-13 ? 1e-13 : error; }

bool front_add(struct front *f, const struct expression *from)
{
	struct expression e = { .n = 0 };

	expression_copy(&e, from, expression_root(from), NULL);
	if (!e.failed)
		expression_tidy(&e);
	const double error = e.failed ? INFINITY : front_error(f->data, &e);
	const size_t size = e.failed ? 0 : expression_size(&e, expression_root(&e));
	unsigned at = 0;
	while (at < f->n && f->formula[at].size < size)
		at++;
	const bool worse = (at > 0 && judged(f->formula[at - 1].error) <= judged(error)) ||
	                   (at < f->n && f->formula[at].size == size && f->formula[at].error <= error);
	if (!isfinite(error) || worse) {
		expression_free(&e);
		return false;
	}
	while (at < f->n && judged(f->formula[at].error) >= judged(error))
		take_out(f, at);
	if (f->n == FRONT_MAX)
		take_out(f, FRONT_MAX - 1);
	memmove(f->formula + at + 1, f->formula + at, (f->n - at) * sizeof *f->formula);
	f->formula[at] = (struct formula){ e, size, error };
	f->n++;
	return true;
}

void front_free(struct front *f)
{
	for (unsigned i = 0; i < f->n; i++)
		expression_free(&f->formula[i].e);
	f->n = 0;
}

/* ---- short numbers */

/* The quotient with the least divisor, at most 64, that is within 1e-7 of v. */
static bool as_quotient(double v, long *p, long *q)
{
	for (*q = 1; *q <= 64; ++*q) {
		const double whole = round(v * (double)*q);
		if (whole != 0 && fabs(whole) < 1e6 && fabs(v * (double)*q - whole) <= 1e-7 * fabs(whole)) {
			*p = (long)whole;
			return true;
		}
	}
	return false;
}

/* The shortest decimal number, of at most six digits behind the point, that is within 1e-7 of v. False: no such number
 * exists, or v is already one. */
static bool as_decimal(double v, double *is)
{
	for (double by = 10; by <= 1e6; by *= 10) {
		const double whole = round(v * by);
		if (whole != 0 && fabs(whole) < 1e7 && fabs(v * by - whole) <= 1e-7 * fabs(whole)) {
			*is = whole / by;
			return *is != v;
		}
	}
	return false;
}

/* v as p/q times what `factor` says, or as a short decimal; returns its node. */
static bool write_short(struct expression *out, double v, uint32_t *at)
{
	static const struct {
		double value;
		const char *text;
	} factor[] = { { 1, "" },
		       { 3.14159265358979323846, "pi" },
		       { 0.31830988618379067154, "1/pi" },
		       { 9.86960440108935861883, "pi^2" },
		       { 1.41421356237309504880, "sqrt(2)" },
		       { 1.77245385090551602730, "sqrt(pi)" },
		       { 0.56418958354775628695, "1/sqrt(pi)" },
		       { 2.50662827463100050242, "sqrt(2*pi)" },
		       { 0.39894228040143267794, "1/sqrt(2*pi)" },
		       { 2.71828182845904523536, "e" },
		       { 0.69314718055994530942, "ln(2)" } };

	if (fabs(v) < 1e-9) {
		*at = expression_number(out, 0);
		return true;
	}
	for (unsigned k = 0; k < sizeof factor / sizeof *factor; k++) {
		struct expression part;
		struct error err = { 0 };
		long p, q;
		if (!as_quotient(v / factor[k].value, &p, &q) || (k > 0 && (labs(p) > 64 || q > 16)))
			continue;
		*at = expression_number(out, (double)p);
		if (k > 0) {
			if (!expression_read(&part, "", factor[k].text, NULL, 0, &err))
				return false;
			const uint32_t of = expression_copy(out, &part, expression_root(&part), NULL);
			*at = expression_add(out, OP_MUL, *at, of);
			expression_free(&part);
		}
		if (q > 1)
			*at = expression_add(out, OP_DIV, *at, expression_number(out, (double)q));
		return true;
	}
	double decimal;
	if (!as_decimal(v, &decimal))
		return false;
	*at = expression_number(out, decimal);
	return true;
}

/* A copy in which constant number `which` has fewer digits. done: there is such a constant, and it had more. */
static uint32_t copy_short(struct expression *out, const struct expression *e, uint32_t at, unsigned *which, bool *done)
{
	const struct node n = e->node[at];
	const unsigned operands = operation_form[n.op].operands;
	uint32_t made;

	if (n.op == OP_NUMBER && n.number != rint(n.number) && (*which)-- == 0) {
		*done = write_short(out, n.number, &made);
		if (*done)
			return made;
	}
	if (!operands)
		return expression_copy(out, e, at, NULL);
	const uint32_t a = copy_short(out, e, n.a, which, done);
	const uint32_t b = operands == 2 ? copy_short(out, e, n.b, which, done) : 0;

	return expression_add(out, n.op, a, b);
}

static void shorten(struct front *f, struct formula *v)
{
	unsigned numbers = 0;

	for (size_t i = 0; i < v->e.n; i++)
		numbers += v->e.node[i].op == OP_NUMBER;
	for (unsigned i = 0; i < numbers;) {
		struct expression e = { .n = 0 };
		unsigned which = i;
		bool done = false;
		copy_short(&e, &v->e, expression_root(&v->e), &which, &done);
		const double error = done && !e.failed ? front_error(f->data, &e) : INFINITY;
		if (error <= fmax(1e-9, 1.0001 * v->error)) {
			expression_free(&v->e); /* the next one has its place */
			v->e = e;
			v->error = error;
		} else {
			expression_free(&e);
			i++;
		}
	}
}

void front_shorten(struct front *f)
{
	struct front was = *f;

	f->n = 0;
	for (unsigned i = 0; i < was.n; i++)
		shorten(&was, &was.formula[i]);
	for (unsigned i = 0; i < was.n; i++)
		front_add(f, &was.formula[i].e);
	front_free(&was);
}
