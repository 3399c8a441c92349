/* graph/derivatives.c - derivatives of operations on single elements, which vjp and jvp share. */
#include "graph/transform_rules.h"

/* Of a function of one number: its derivative, times v. */
static tensor_value of_one(struct transform *t, enum tensor_op op, tensor_value x, tensor_value r, tensor_value v)
{
	switch (op) {
	case OP_neg: return put_one(t, OP_neg, v);
	case OP_abs: return put_two(t, OP_mul, v, put_one(t, OP_sign, x));
	case OP_exp: return put_two(t, OP_mul, v, r);
	case OP_log: return put_two(t, OP_div, v, x);
	case OP_sqrt: return put_two(t, OP_div, put_two(t, OP_mul, v, put_number(t, 0.5, v)), r);
	case OP_rsqrt:
		return put_two(t, OP_mul, put_two(t, OP_mul, v, put_number(t, -0.5, v)),
		               put_two(t, OP_mul, r, put_two(t, OP_mul, r, r)));
	case OP_sin: return put_two(t, OP_mul, v, put_one(t, OP_cos, x));
	case OP_cos: return put_two(t, OP_mul, v, put_one(t, OP_neg, put_one(t, OP_sin, x)));
	case OP_tanh: return put_two(t, OP_mul, v, put_two(t, OP_sub, put_number(t, 1, r), put_two(t, OP_mul, r, r)));
	case OP_logistic:
		return put_two(t, OP_mul, v, put_two(t, OP_mul, r, put_two(t, OP_sub, put_number(t, 1, r), r)));
	default: /* erf: 2 / sqrt(pi) * exp(-x * x) */
		return put_two(t, OP_mul, v,
		               put_two(t, OP_mul, put_number(t, 1.1283791670955125739, x),
		                       put_one(t, OP_exp, put_one(t, OP_neg, put_two(t, OP_mul, x, x)))));
	}
}

/* All to the greater one, or the less; half to each of two equal ones. A NaN is passed on by the second operand. */
static tensor_value of_choice(struct transform *t, enum tensor_op op, const tensor_value x[2], unsigned i,
                              tensor_value v)
{
	const tensor_value first = put_two(t, op == OP_max ? OP_gt : OP_lt, x[0], x[1]),
			   both = put_two(t, OP_eq, x[0], x[1]), zero = put_number(t, 0, v),
			   half = put_two(t, OP_mul, v, put_number(t, 0.5, v));

	return i == 0 ? put_select(t, first, v, put_select(t, both, half, zero))
	              : put_select(t, first, zero, put_select(t, both, half, v));
}

static tensor_value of_power(struct transform *t, const tensor_value x[2], tensor_value r, unsigned i, tensor_value v)
{
	const tensor_value zero = put_number(t, 0, v), one = put_number(t, 1, v);

	if (i == 0) { /* y * x^(y - 1), and x^1 where y is 0, so that nothing is infinite there */
		const tensor_value less =
			put_select(t, put_two(t, OP_eq, x[1], zero), one, put_two(t, OP_sub, x[1], one));
		return put_two(t, OP_mul, v, put_two(t, OP_mul, x[1], put_two(t, OP_pow, x[0], less)));
	}
	const tensor_value base = put_select(t, put_two(t, OP_eq, x[0], zero), one, x[0]);
	return put_two(t, OP_mul, v, put_two(t, OP_mul, put_one(t, OP_log, base), r));
}

static tensor_value of_two(struct transform *t, enum tensor_op op, const tensor_value x[2], tensor_value r, unsigned i,
                           tensor_value v)
{
	switch (op) {
	case OP_add: return v;
	case OP_sub: return i == 0 ? v : put_one(t, OP_neg, v);
	case OP_mul: return put_two(t, OP_mul, v, x[1 - i]);
	case OP_div:
		if (i == 0)
			return put_two(t, OP_div, v, x[1]);
		return put_one(t, OP_neg, put_two(t, OP_div, put_two(t, OP_mul, v, r), x[1]));
	case OP_rem: { /* x - q * y, where q is whole, but (x - r) / y is rounded */
		if (i == 0)
			return v;
		const tensor_value q = put_one(t, OP_round, put_two(t, OP_div, put_two(t, OP_sub, x[0], r), x[1]));
		return put_two(t, OP_mul, v, put_one(t, OP_neg, q));
	}
	case OP_max:
	case OP_min: return of_choice(t, op, x, i, v);
	default: return of_power(t, x, r, i, v);
	}
}

/* As if it were x itself, where it is not cut. */
static tensor_value of_quantised(struct transform *t, const tensor_value x[4], unsigned i, tensor_value v)
{
	const tensor_value zero = put_number(t, 0, v);

	if (i > 0)
		return zero;
	const tensor_value q = put_one(t, OP_round, put_two(t, OP_div, x[0], x[1]));
	return put_select(t, put_two(t, OP_and, put_two(t, OP_ge, q, x[2]), put_two(t, OP_le, q, x[3])), v, zero);
}

tensor_value derivative_of(struct transform *t, const struct tensor_node *n, unsigned i, tensor_value v)
{
	const tensor_value x[4] = { operand_of(t, n, 0), n->operands > 1 ? operand_of(t, n, 1) : 0,
		                    n->operands > 2 ? operand_of(t, n, 2) : 0,
		                    n->operands > 3 ? operand_of(t, n, 3) : 0 };
	const tensor_value r = t->is[n->first];

	if (n->op == OP_select)
		return i == 1 ? put_select(t, x[0], v, put_number(t, 0, v))
		              : put_select(t, x[0], put_number(t, 0, v), v);
	if (n->op == OP_fake_quantise)
		return of_quantised(t, x, i, v);
	if (n->op == OP_fma)
		return i == 2 ? v : put_two(t, OP_mul, v, x[1 - i]);
	return n->operands == 1 ? of_one(t, n->op, x[0], r, v) : of_two(t, n->op, x, r, i, v);
}

/* ---- reductions */

static void reduced_axes(const struct transform *t, const struct tensor_node *n, bool marked[TENSOR_MAX_RANK],
                         uint64_t *count)
{
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);

	*count = 1;
	for (unsigned i = 0; i < TENSOR_MAX_RANK; i++)
		marked[i] = false;
	for (uint32_t i = 0; i < axes->n; i++) {
		marked[axes->whole[i]] = true;
		*count *= info_of(t, n, 0)->shape.dim[axes->whole[i]];
	}
}

tensor_value put_spread(struct transform *t, const struct tensor_node *n, tensor_value v)
{
	const struct shape *s = &info_of(t, n, 0)->shape;
	bool marked[TENSOR_MAX_RANK];
	unsigned kept[TENSOR_MAX_RANK], rank = 0;
	uint64_t count;

	reduced_axes(t, n, marked, &count);
	for (unsigned i = 0; i < s->rank; i++)
		if (!marked[i])
			kept[rank++] = i;
	return graph_broadcast(t->to, v, s, kept, t->err);
}

tensor_value put_parts(struct transform *t, const struct tensor_node *n)
{
	const tensor_value x = operand_of(t, n, 0), same = put_two(t, OP_eq, x, put_spread(t, n, t->is[n->first])),
			   ones = graph_convert(t->to, same, info_of(t, n, 0)->type, t->err);
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);

	return put_two(t, OP_div, ones, put_spread(t, n, put_axes(t, OP_reduce_sum, ones, axes->whole, axes->n)));
}

static tensor_value put_cumprod(struct transform *t, tensor_value x, unsigned axis, bool reverse, bool exclusive)
{
	int64_t number[] = { axis, reverse, exclusive };
	const struct attribute a[] = { { ATTRIBUTE_axis, 1, &number[0], 0 },
		                       { ATTRIBUTE_reverse, 1, &number[1], 0 },
		                       { ATTRIBUTE_exclusive, 1, &number[2], 0 } };

	return put_node(t, OP_cumprod, &x, 1, a, 3);
}

/* The reduced axes become one at the end; on both sides of an element stand products that do not have it. */
tensor_value put_others(struct transform *t, const struct tensor_node *n)
{
	const struct shape *s = &info_of(t, n, 0)->shape;
	bool marked[TENSOR_MAX_RANK];
	unsigned order[TENSOR_MAX_RANK], back[TENSOR_MAX_RANK], rank = 0;
	struct shape moved = { .rank = s->rank }, flat = { 0 };
	uint64_t count;

	reduced_axes(t, n, marked, &count);
	for (unsigned last = 0; last < 2; last++)
		for (unsigned i = 0; i < s->rank; i++)
			if (marked[i] == (last == 1))
				order[rank++] = i;
	for (unsigned i = 0; i < s->rank; i++) {
		moved.dim[i] = s->dim[order[i]];
		back[order[i]] = i;
		if (!marked[order[i]])
			flat.dim[flat.rank++] = moved.dim[i];
	}
	if (flat.rank == s->rank) /* a product of one */
		return put_number(t, 1, operand_of(t, n, 0));
	flat.dim[flat.rank++] = count;
	const tensor_value x =
		graph_reshape(t->to, graph_transpose(t->to, operand_of(t, n, 0), order, t->err), &flat, t->err);
	const tensor_value others = put_two(t, OP_mul, put_cumprod(t, x, flat.rank - 1, false, true),
	                                    put_cumprod(t, x, flat.rank - 1, true, true));
	return graph_transpose(t->to, graph_reshape(t->to, others, &moved, t->err), back, t->err);
}

/* ---- along one axis */

/* A square of the axis: element i, k is x[k], or 1 where k is i; products along k are those without x[i]. It needs
 * memory for the square, and is right where elements are 0. */
tensor_value put_cumprod_derivative(struct transform *t, const struct tensor_node *n)
{
	const struct shape *s = &info_of(t, n, 0)->shape;
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const bool reverse = tensor_node_whole(n, ATTRIBUTE_reverse, 0, 0) != 0,
		   exclusive = tensor_node_whole(n, ATTRIBUTE_exclusive, 0, 0) != 0;
	struct shape square = { .rank = s->rank + 1 };
	unsigned to[TENSOR_MAX_RANK];

	if (square.rank > TENSOR_MAX_RANK)
		return transform_refuse(t, n, "of 8 dimensions");
	for (unsigned i = 0; i < square.rank; i++)
		square.dim[i] = s->dim[i <= axis ? i : i - 1];
	for (unsigned i = 0; i < s->rank; i++)
		to[i] = i < axis ? i : i + 1;
	const tensor_value i = put_iota(t, JIT_TYPE_I64, &square, axis),
			   k = put_iota(t, JIT_TYPE_I64, &square, axis + 1);
	const tensor_value x = graph_broadcast(t->to, operand_of(t, n, 0), &square, to, t->err);
	const tensor_value product = put_cumprod(t, put_select(t, put_two(t, OP_eq, i, k), put_number(t, 1, x), x),
	                                         axis + 1, reverse, exclusive);
	const enum tensor_op in = reverse ? exclusive ? OP_gt : OP_ge : exclusive ? OP_lt : OP_le;
	return put_select(t, put_two(t, in, i, k), product, put_number(t, 0, product));
}

tensor_value put_permutation(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const tensor_value x[] = { operand_of(t, n, 0), put_iota(t, JIT_TYPE_I64, &info_of(t, n, 0)->shape, axis) };
	const tensor_value v = put_node(t, OP_sort, x, 2, n->attribute, n->attributes);

	return v ? v + 1 : 0;
}
