/* eml/expression_tidy.c - a shorter expression with the same values.
 *
 * Rules go over the nodes from the operands up, so that one walk is enough for most; walks are repeated until nothing
 * changes. Numbers stand in front of products and behind sums.
 */
#include <math.h>
#include <stdlib.h>

#include "eml/expression.h"

static bool is_number(const struct expression *e, uint32_t at, double v)
{
	return e->node[at].op == OP_NUMBER && e->node[at].number == v;
}

static bool constant(const struct expression *e, uint32_t at) { return e->node[at].op == OP_NUMBER; }

static bool whole(double v) { return v == rint(v); }

/* A function or operator of numbers, where the result is one. */
static bool compute(struct expression *e, enum operation op, uint32_t a, uint32_t b, uint32_t *out)
{
	const unsigned operands = operation_form[op].operands;
	struct expression small = { .n = 0 };

	if (!operands || !constant(e, a) || (operands == 2 && !constant(e, b)))
		return false;
	const double second = operands == 2 ? e->node[b].number : 0;
	const uint32_t m = expression_number(&small, e->node[a].number);
	const uint32_t n = expression_number(&small, second);
	expression_add(&small, op, m, n);
	const double complex v = small.failed ? NAN : expression_value(&small, NULL);
	expression_free(&small);
	if (!isfinite(creal(v)) || cimag(v) != 0)
		return false;
	/* 1/3 and sqrt(2) say more than their digits */
	if (whole(e->node[a].number) && whole(second) && !whole(creal(v)))
		return false;
	*out = expression_number(e, creal(v));
	return true;
}

static uint32_t make(struct expression *e, enum operation op, uint32_t a, uint32_t b);

static uint32_t make_sum(struct expression *e, uint32_t a, uint32_t b)
{
	const struct node m = e->node[a], n = e->node[b];

	if (is_number(e, a, 0))
		return b;
	if (is_number(e, b, 0))
		return a;
	if (n.op == OP_NUMBER && n.number < 0)
		return make(e, OP_SUB, a, expression_number(e, -n.number));
	if (m.op == OP_NUMBER && n.op != OP_NUMBER) /* numbers stand behind */
		return make(e, OP_ADD, b, a);
	if (n.op == OP_NEG)
		return make(e, OP_SUB, a, n.a);
	if (m.op == OP_NEG)
		return make(e, OP_SUB, b, m.a);
	if (n.op == OP_NUMBER && m.op == OP_ADD && constant(e, m.b))
		return make(e, OP_ADD, m.a, expression_number(e, e->node[m.b].number + n.number));
	if (n.op == OP_NUMBER && m.op == OP_SUB && constant(e, m.b))
		return make(e, OP_ADD, m.a, expression_number(e, n.number - e->node[m.b].number));
	if (expression_equal(e, a, e, b))
		return make(e, OP_MUL, expression_number(e, 2), a);
	return expression_add(e, OP_ADD, a, b);
}

static uint32_t make_difference(struct expression *e, uint32_t a, uint32_t b)
{
	const struct node m = e->node[a], n = e->node[b];

	if (is_number(e, b, 0))
		return a;
	if (is_number(e, a, 0))
		return make(e, OP_NEG, b, 0);
	if (n.op == OP_NUMBER && n.number < 0)
		return make(e, OP_ADD, a, expression_number(e, -n.number));
	if (n.op == OP_NEG)
		return make(e, OP_ADD, a, n.a);
	if (n.op == OP_NUMBER && m.op == OP_ADD && constant(e, m.b))
		return make(e, OP_ADD, m.a, expression_number(e, e->node[m.b].number - n.number));
	if (n.op == OP_NUMBER && m.op == OP_SUB && constant(e, m.b))
		return make(e, OP_SUB, m.a, expression_number(e, e->node[m.b].number + n.number));
	if (expression_equal(e, a, e, b))
		return expression_number(e, 0);
	return expression_add(e, OP_SUB, a, b);
}

static uint32_t make_product(struct expression *e, uint32_t a, uint32_t b)
{
	const struct node m = e->node[a], n = e->node[b];

	if (is_number(e, a, 1) || is_number(e, b, 0))
		return b;
	if (is_number(e, b, 1) || is_number(e, a, 0))
		return a;
	if (n.op == OP_NUMBER && m.op != OP_NUMBER) /* numbers stand in front */
		return make(e, OP_MUL, b, a);
	if (is_number(e, a, -1))
		return make(e, OP_NEG, b, 0);
	if (m.op == OP_NEG)
		return make(e, OP_NEG, make(e, OP_MUL, m.a, b), 0);
	if (n.op == OP_NEG)
		return m.op == OP_NUMBER ? make(e, OP_MUL, expression_number(e, -m.number), n.a)
		                         : make(e, OP_NEG, make(e, OP_MUL, a, n.a), 0);
	if (m.op == OP_NUMBER && n.op == OP_MUL && constant(e, n.a))
		return make(e, OP_MUL, expression_number(e, m.number * e->node[n.a].number), n.b);
	if (m.op == OP_MUL && constant(e, m.a))
		return make(e, OP_MUL, m.a, make(e, OP_MUL, m.b, b));
	if (n.op == OP_MUL && constant(e, n.a) && m.op != OP_NUMBER)
		return make(e, OP_MUL, n.a, make(e, OP_MUL, a, n.b));
	if (n.op == OP_DIV && (is_number(e, n.a, 1) || m.op == OP_NUMBER))
		return make(e, OP_DIV, make(e, OP_MUL, a, n.a), n.b);
	if (m.op == OP_DIV && (is_number(e, m.a, 1) || constant(e, m.b)))
		return make(e, OP_DIV, make(e, OP_MUL, m.a, b), m.b);
	if (expression_equal(e, a, e, b))
		return make(e, OP_POW, a, expression_number(e, 2));
	if (m.op == OP_POW && constant(e, m.b) && expression_equal(e, m.a, e, b))
		return make(e, OP_POW, b, expression_number(e, e->node[m.b].number + 1));
	if (n.op == OP_POW && constant(e, n.b) && expression_equal(e, n.a, e, a))
		return make(e, OP_POW, a, expression_number(e, e->node[n.b].number + 1));
	return expression_add(e, OP_MUL, a, b);
}

static uint32_t make_quotient(struct expression *e, uint32_t a, uint32_t b)
{
	const struct node m = e->node[a], n = e->node[b];

	if (is_number(e, b, 1))
		return a;
	if (is_number(e, a, 0) && !is_number(e, b, 0))
		return a;
	if (m.op == OP_NEG)
		return make(e, OP_NEG, make(e, OP_DIV, m.a, b), 0);
	if (n.op == OP_NEG)
		return make(e, OP_NEG, make(e, OP_DIV, a, n.a), 0);
	if (n.op == OP_DIV)
		return make(e, OP_DIV, make(e, OP_MUL, a, n.b), n.a);
	if (m.op == OP_DIV)
		return make(e, OP_DIV, m.a, make(e, OP_MUL, m.b, b));
	if (n.op == OP_MUL && constant(e, n.a) && m.op == OP_NUMBER && e->node[n.a].number != 0)
		return make(e, OP_DIV, expression_number(e, m.number / e->node[n.a].number), n.b);
	if (expression_equal(e, a, e, b))
		return expression_number(e, 1);
	return expression_add(e, OP_DIV, a, b);
}

/* exp(a + 0.3) is a factor and exp(a). */
static uint32_t make_exp(struct expression *e, uint32_t a)
{
	const struct node m = e->node[a];

	if (m.op == OP_LN)
		return m.a;
	if (m.op == OP_MUL && constant(e, m.a) && e->node[m.b].op == OP_LN)
		return make(e, OP_POW, e->node[m.b].a, m.a);
	if (m.op == OP_MUL && e->node[m.a].op == OP_LN && constant(e, e->node[m.a].a))
		return make(e, OP_POW, e->node[m.a].a, m.b);
	if (m.op == OP_NEG && e->node[m.a].op == OP_LN)
		return make(e, OP_DIV, expression_number(e, 1), e->node[m.a].a);
	if ((m.op == OP_ADD || m.op == OP_SUB) && constant(e, m.b) && !whole(e->node[m.b].number) &&
	    fabs(e->node[m.b].number) < 100) {
		const double c = e->node[m.b].number;
		return make(e, OP_MUL, expression_number(e, exp(m.op == OP_ADD ? c : -c)), make(e, OP_EXP, m.a, 0));
	}
	return expression_add(e, OP_EXP, a, 0);
}

static uint32_t make_power(struct expression *e, uint32_t a, uint32_t b)
{
	const struct node m = e->node[a];

	if (is_number(e, b, 1))
		return a;
	if (is_number(e, b, -1) && m.op != OP_EXP)
		return make(e, OP_DIV, expression_number(e, 1), a);
	if (m.op == OP_SQRT && is_number(e, b, 2))
		return m.a;
	if (m.op == OP_EXP && constant(e, b))
		return make(e, OP_EXP, make(e, OP_MUL, b, m.a), 0);
	return is_number(e, b, 0.5) ? expression_add(e, OP_SQRT, a, 0) : expression_add(e, OP_POW, a, b);
}

static uint32_t make(struct expression *e, enum operation op, uint32_t a, uint32_t b)
{
	uint32_t v;

	if (e->failed)
		return 0;
	if (compute(e, op, a, b, &v))
		return v;
	const struct node m = operation_form[op].operands ? e->node[a] : (struct node){ .op = OP_NUMBER };
	switch (op) {
	case OP_ADD: return make_sum(e, a, b);
	case OP_SUB: return make_difference(e, a, b);
	case OP_MUL: return make_product(e, a, b);
	case OP_DIV: return make_quotient(e, a, b);
	case OP_NEG:
		if (m.op == OP_SUB)
			return make(e, OP_SUB, m.b, m.a);
		return m.op == OP_NEG ? m.a : expression_add(e, op, a, 0);
	case OP_LN: return m.op == OP_EXP && e->node[m.a].op == OP_VARIABLE ? m.a : expression_add(e, op, a, 0);
	case OP_EXP: return make_exp(e, a);
	case OP_POW: return make_power(e, a, b);
	default: return expression_add(e, op, a, b);
	}
}

static uint32_t rebuilt(struct expression *out, const struct expression *e, uint32_t at)
{
	const struct node n = e->node[at];
	const unsigned operands = operation_form[n.op].operands;

	if (!operands)
		return expression_copy(out, e, at, NULL);
	const uint32_t a = rebuilt(out, e, n.a), b = operands == 2 ? rebuilt(out, e, n.b) : 0;

	return make(out, n.op, a, b);
}

static uint32_t flat(struct expression *out, const struct expression *e, uint32_t at);

/* left op right, where right is a sum or a product itself: a + (b - c) is (a + b) - c, and a (b / c) is (a b) / c. */
static uint32_t append(struct expression *out, enum operation op, uint32_t left, const struct expression *e,
                       uint32_t right)
{
	const struct node r = e->node[right];

	if (r.op == op) {
		const uint32_t first = append(out, op, left, e, r.a);
		return append(out, op, first, e, r.b);
	}
	if (r.op == (op == OP_ADD ? OP_SUB : OP_DIV)) {
		const uint32_t first = append(out, op, left, e, r.a);
		return expression_add(out, r.op, first, flat(out, e, r.b));
	}
	return expression_add(out, op, left, flat(out, e, right));
}

/* A copy that needs few parentheses. */
static uint32_t flat(struct expression *out, const struct expression *e, uint32_t at)
{
	const struct node n = e->node[at];
	const unsigned operands = operation_form[n.op].operands;

	if (!operands)
		return expression_copy(out, e, at, NULL);
	const uint32_t a = flat(out, e, n.a);
	if (n.op == OP_ADD || n.op == OP_MUL)
		return append(out, n.op, a, e, n.b);
	return expression_add(out, n.op, a, operands == 2 ? flat(out, e, n.b) : 0);
}

void expression_tidy(struct expression *e)
{
	for (unsigned walk = 0; walk < 8; walk++) {
		struct expression made = { .n = 0 }, tidy = { .n = 0 };
		const uint32_t root = rebuilt(&made, e, expression_root(e));
		if (!made.failed)
			flat(&tidy, &made, root); /* without what is not used any more */
		const bool failed = made.failed || tidy.failed;
		expression_free(&made);
		if (failed || expression_equal(e, expression_root(e), &tidy, expression_root(&tidy))) {
			expression_free(&tidy);
			return;
		}
		expression_free(e);
		*e = tidy;
	}
}
