/* tests/graph/random_graph.c - graphs of random operations on random shapes, and inputs for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/graph/random_draw.h"

unsigned random_below(struct draw *d, unsigned n)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((d->state >> 33) % n);
}

/* ---- numbers */

static double special(struct draw *d)
{
	static const double numbers[] = { 0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e30, 1e-40, 65504, 1, -1 };

	return numbers[random_below(d, sizeof numbers / sizeof *numbers)];
}

void random_tensor(struct tensor *t, int type, const struct shape *s, uint64_t seed)
{
	struct draw d = { .state = seed * 2654435761u + 1 };
	struct error err = { 0 };

	if (!tensor_make(t, type, s, &err))
		fail_msg("%s", err.text);
	for (uint64_t i = 0; i < shape_elements(s); i++) {
		union number x = { .u = 0 };
		if (tensor_is_float(type)) {
			const double v =
				random_below(&d, 16) == 0 ? special(&d) : (random_below(&d, 4096) - 2048.0) / 512;
			x = tensor_convert((union number){ .d = v }, JIT_TYPE_F64, tensor_wide_type(type));
		} else if (type == JIT_TYPE_BOOL) {
			x.u = random_below(&d, 2);
		} else {
			x.i = (int64_t)random_below(&d, 12) - (tensor_is_signed(type) ? 4 : 0);
			if (random_below(&d, 16) == 0)
				x.u = UINT64_C(0x8000000000000000) >> (64 - 8 * tensor_type_bytes(type));
		}
		tensor_put(t, i, x);
	}
}

/* ---- nodes */

const struct tensor_value_info *random_info(const struct draw *d, tensor_value v) { return &d->g->value[v]; }

uint64_t random_size_of(struct draw *d)
{
	static const uint8_t sizes[] = { 1, 2, 3, 5, 7, 8, 13, 17, 33, 1, 4, 0 };

	if (d->smooth)
		return 1 + random_below(d, 3);
	return sizes[random_below(d, random_below(d, 12) ? 11 : 12)];
}

tensor_value random_any_value(struct draw *d)
{
	tensor_value v = 1 + random_below(d, d->g->values - 1);

	while (d->smooth && random_info(d, v)->type != JIT_TYPE_F64)
		v = 1 + random_below(d, d->g->values - 1);
	return v;
}

void random_constant(struct draw *d, struct tensor *t, int type, const struct shape *s)
{
	if (d->smooth)
		smooth_tensor(t, type, s, d->state);
	else
		random_tensor(t, type, s, d->state);
}

tensor_value random_add(struct draw *d, enum tensor_op op, const tensor_value *x, unsigned n, const struct attribute *a,
                        unsigned attributes)
{
	struct error err = { 0 };

	return tensor_graph_add(d->g, op, x, n, a, attributes, &err); /* 0: it does not fit, and is not drawn */
}

/* Some value in the type and shape of v: one that is there, or one that is made of v. */
tensor_value random_like(struct draw *d, tensor_value v)
{
	for (int tries = 0; tries < 8; tries++) {
		const tensor_value w = random_any_value(d);
		if (random_info(d, w)->type == random_info(d, v)->type &&
		    shape_equal(&random_info(d, w)->shape, &random_info(d, v)->shape))
			return w;
	}
	struct error err = { 0 };
	return random_below(d, 2) ? v
	                          : graph_full(d->g, random_below(d, 7) - 3.0, random_info(d, v)->type,
	                                       &random_info(d, v)->shape, &err);
}

static tensor_value draw_element(struct draw *d)
{
	const enum tensor_op op = (enum tensor_op)random_below(d, OP_bitcast + 1);
	tensor_value x[4] = { random_any_value(d) };
	int64_t type = random_below(d, TENSOR_TYPES);
	const struct attribute a = { ATTRIBUTE_type, 1, &type, 0 };

	for (unsigned i = 1; i < tensor_ops[op].min; i++)
		x[i] = random_like(d, x[0]);
	if (op == OP_select) { /* the condition is a comparison */
		x[1] = x[0];
		x[0] = random_add(d, OP_lt, (tensor_value[]){ x[1], x[2] }, 2, NULL, 0);
		if (!x[0])
			return 0;
	}
	/* Which bits a NaN has is the machine's affair. */
	if (op == OP_bitcast && tensor_is_float(random_info(d, x[0])->type))
		return 0;
	const bool has_type = op == OP_convert || op == OP_bitcast;
	return random_add(d, op, x, tensor_ops[op].min, has_type ? &a : NULL, has_type);
}

tensor_value random_broadcast(struct draw *d, tensor_value x)
{
	const struct shape *s = &random_info(d, x)->shape;
	int64_t shape[TENSOR_MAX_RANK], axes[TENSOR_MAX_RANK];
	unsigned rank = 0;

	for (unsigned i = 0; i < s->rank; i++) {
		if (random_below(d, 3) == 0 && rank + s->rank - i < 5)
			shape[rank++] = (int64_t)random_size_of(d);
		axes[i] = rank;
		shape[rank++] = s->dim[i] == 1 && random_below(d, 2) ? (int64_t)random_size_of(d) : (int64_t)s->dim[i];
	}
	if (rank == 0)
		shape[rank++] = (int64_t)random_size_of(d);
	const struct attribute a[] = { { ATTRIBUTE_shape, rank, shape, 0 }, { ATTRIBUTE_axes, s->rank, axes, 0 } };
	return random_add(d, OP_broadcast, &x, 1, a, 2);
}

tensor_value random_reshape(struct draw *d, tensor_value x)
{
	const struct shape *s = &random_info(d, x)->shape;
	int64_t shape[TENSOR_MAX_RANK];
	unsigned rank = 0;

	for (unsigned i = 0; i < s->rank; i++) {
		if (rank && random_below(d, 2)) {
			shape[rank - 1] *= (int64_t)s->dim[i];
		} else {
			shape[rank++] = (int64_t)s->dim[i];
			if (s->dim[i] % 2 == 0 && s->dim[i] && rank < 5 && random_below(d, 2)) {
				shape[rank - 1] /= 2;
				shape[rank++] = 2;
			}
		}
	}
	return random_add(d, OP_reshape, &x, 1, &(struct attribute){ ATTRIBUTE_shape, rank, shape, 0 }, 1);
}

tensor_value random_by_axes(struct draw *d, enum tensor_op op, tensor_value x)
{
	const unsigned rank = random_info(d, x)->shape.rank;
	int64_t axes[TENSOR_MAX_RANK];
	unsigned n = 0;

	for (unsigned i = 0; i < rank; i++)
		axes[i] = i;
	for (unsigned i = rank; i > 1; i--) {
		const unsigned k = random_below(d, i);
		const int64_t swap = axes[k];
		axes[k] = axes[i - 1];
		axes[i - 1] = swap;
	}
	n = op == OP_transpose ? rank : random_below(d, rank + 1);
	return random_add(d, op, &x, 1, &(struct attribute){ ATTRIBUTE_axes, n, axes, 0 }, 1);
}

tensor_value random_slice(struct draw *d, tensor_value x)
{
	const struct shape *s = &random_info(d, x)->shape;
	int64_t start[TENSOR_MAX_RANK], limit[TENSOR_MAX_RANK], strides[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < s->rank; i++) {
		start[i] = random_below(d, (unsigned)s->dim[i] + 1);
		limit[i] = start[i] + random_below(d, (unsigned)s->dim[i] - (unsigned)start[i] + 1);
		if (random_below(d, 2)) {
			start[i] = 0;
			limit[i] = (int64_t)s->dim[i];
		}
		strides[i] = 1 + random_below(d, 3);
	}
	const struct attribute a[] = { { ATTRIBUTE_start, s->rank, start, 0 },
		                       { ATTRIBUTE_limit, s->rank, limit, 0 },
		                       { ATTRIBUTE_strides, s->rank, strides, 0 } };
	return random_add(d, OP_slice, &x, 1, a, 2 + random_below(d, 2));
}

tensor_value random_pad(struct draw *d, tensor_value x)
{
	const struct shape *s = &random_info(d, x)->shape;
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK], interior[TENSOR_MAX_RANK];
	struct error err = { 0 };
	tensor_value in[] = { x, graph_full(d->g, 3, random_info(d, x)->type, &(struct shape){ 0 }, &err) };

	for (unsigned i = 0; i < s->rank; i++) {
		low[i] = (int64_t)random_below(d, 4) - 1;
		high[i] = (int64_t)random_below(d, 4) - 1;
		interior[i] = random_below(d, 3) ? 0 : 1;
	}
	const struct attribute a[] = { { ATTRIBUTE_low, s->rank, low, 0 },
		                       { ATTRIBUTE_high, s->rank, high, 0 },
		                       { ATTRIBUTE_interior, s->rank, interior, 0 } };
	return random_add(d, OP_pad, in, 2, a, 2 + random_below(d, 2));
}

tensor_value random_take(struct draw *d, tensor_value x)
{
	const struct shape *s = &random_info(d, x)->shape;
	static const int types[] = { JIT_TYPE_I64, JIT_TYPE_I32, JIT_TYPE_U8, JIT_TYPE_I8 };
	struct shape at = { .rank = random_below(d, 3) };
	const bool along = random_below(d, 2) && s->rank;
	struct tensor t;
	struct error err = { 0 };
	int64_t axis = s->rank ? random_below(d, s->rank) : 0;

	for (unsigned i = 0; i < at.rank; i++)
		at.dim[i] = random_size_of(d);
	if (along) {
		at = *s;
		at.dim[axis] = random_size_of(d);
	}
	random_tensor(&t, types[random_below(d, 4)], &at, d->state);
	const tensor_value by = tensor_graph_constant(d->g, &t, &err);
	tensor_free(&t);
	return random_add(d, along ? OP_take_along : OP_take, (tensor_value[]){ x, by }, 2,
	                  &(struct attribute){ ATTRIBUTE_axis, 1, &axis, 0 }, 1);
}

static tensor_value draw_along(struct draw *d, tensor_value x)
{
	static const enum tensor_op ops[] = { OP_argmax, OP_argmin, OP_cumsum, OP_cumprod, OP_sort };
	const enum tensor_op op = ops[random_below(d, 5)];
	const unsigned rank = random_info(d, x)->shape.rank;
	int64_t axis = rank ? random_below(d, rank) : 0, first = random_below(d, 2), second = random_below(d, 2);
	const bool is_scan = op == OP_cumsum || op == OP_cumprod;
	const struct attribute a[] = { { ATTRIBUTE_axis, 1, &axis, 0 },
		                       { is_scan         ? ATTRIBUTE_reverse
		                         : op == OP_sort ? ATTRIBUTE_descending
		                                         : ATTRIBUTE_last,
		                         1, &first, 0 },
		                       { ATTRIBUTE_exclusive, 1, &second, 0 } };

	return random_add(d, op, &x, 1, a, is_scan ? 3 : 2);
}

/* A second operand is made for the first one's last dimension. */
tensor_value random_dot(struct draw *d, tensor_value x)
{
	const struct shape *s = &random_info(d, x)->shape;
	const unsigned batches = s->rank > 1 ? random_below(d, s->rank) : 0;
	struct shape other = { 0 };
	int64_t left[1], right[1], batch[TENSOR_MAX_RANK];
	struct tensor t;
	struct error err = { 0 };

	if (s->rank == 0 || s->rank > 4)
		return 0;
	left[0] = batches + random_below(d, s->rank - batches);
	for (unsigned i = 0; i < batches; i++) {
		batch[i] = i;
		other.dim[other.rank++] = s->dim[i];
	}
	if (random_below(d, 2))
		other.dim[other.rank++] = random_size_of(d);
	right[0] = other.rank;
	other.dim[other.rank++] = s->dim[left[0]];
	if (random_below(d, 2))
		other.dim[other.rank++] = random_size_of(d);
	random_constant(d, &t, random_info(d, x)->type, &other);
	const tensor_value y = tensor_graph_constant(d->g, &t, &err);
	tensor_free(&t);
	const struct attribute a[] = { { ATTRIBUTE_left, 1, left, 0 },
		                       { ATTRIBUTE_right, 1, right, 0 },
		                       { ATTRIBUTE_left_batch, batches, batch, 0 },
		                       { ATTRIBUTE_right_batch, batches, batch, 0 } };
	return random_add(d, OP_dot, (tensor_value[]){ x, y }, 2, a, batches ? 4 : 2);
}

tensor_value random_windows(struct draw *d, tensor_value x)
{
	const struct shape *s = &random_info(d, x)->shape;
	const bool is_conv = random_below(d, 2);
	int64_t list[5][TENSOR_MAX_RANK], groups = 1;
	struct shape by = *s;
	struct tensor t;
	struct error err = { 0 };
	tensor_value in[] = { x, 0 };

	if (s->rank < 3)
		return 0;
	for (unsigned i = 0; i < s->rank - 2; i++) {
		list[0][i] = 1 + random_below(d, 3);
		list[1][i] = random_below(d, 3);
		list[2][i] = (int64_t)random_below(d, 4) - 1;
		list[3][i] = 1 + random_below(d, 2);
		list[4][i] = 1 + random_below(d, 3); /* the window, or the input's dilation */
		by.dim[2 + i] = 1 + random_below(d, 3);
	}
	const struct attribute a[] = {
		{ ATTRIBUTE_strides, s->rank - 2, list[0], 0 },
		{ ATTRIBUTE_low, s->rank - 2, list[1], 0 },
		{ ATTRIBUTE_high, s->rank - 2, list[2], 0 },
		{ ATTRIBUTE_dilation, s->rank - 2, list[3], 0 },
		{ is_conv ? ATTRIBUTE_input_dilation : ATTRIBUTE_window, s->rank - 2, list[4], 0 },
		{ ATTRIBUTE_groups, 1, &groups, 0 }
	};
	if (!is_conv)
		return random_add(d, random_below(d, 2) ? OP_window_max : OP_window_sum, in, 1, a, 5);
	if (s->dim[1] && s->dim[1] % 2 == 0 && random_below(d, 2))
		groups = 2;
	by.dim[0] = (uint64_t)groups * (1 + random_below(d, 9));
	by.dim[1] = s->dim[1] / (uint64_t)groups;
	random_constant(d, &t, random_info(d, x)->type, &by);
	in[1] = tensor_graph_constant(d->g, &t, &err);
	tensor_free(&t);
	return random_add(d, OP_conv, in, 2, a, 6);
}

tensor_value random_node(struct draw *d)
{
	static const enum tensor_op reductions[] = { OP_reduce_sum, OP_reduce_product, OP_reduce_max,
		                                     OP_reduce_min, OP_reduce_any,     OP_reduce_all };
	const tensor_value x = random_any_value(d), y = random_like(d, x);
	int64_t axis = random_info(d, x)->shape.rank ? random_below(d, random_info(d, x)->shape.rank) : 0;

	switch (random_below(d, 24)) {
	case 0: return random_broadcast(d, x);
	case 1: return random_reshape(d, x);
	case 2: return random_by_axes(d, random_below(d, 2) ? OP_transpose : OP_reverse, x);
	case 3: return random_slice(d, x);
	case 4: return random_pad(d, x);
	case 5:
		return random_add(d, OP_concatenate, (tensor_value[]){ x, y, x }, 1 + random_below(d, 3),
		                  &(struct attribute){ ATTRIBUTE_axis, 1, &axis, 0 }, 1);
	case 6: return random_take(d, x);
	case 7:
	case 8:
	case 9: return random_by_axes(d, reductions[random_below(d, 6)], x);
	case 10: return draw_along(d, x);
	case 11: return random_dot(d, x);
	case 12: return random_windows(d, x);
	case 13: return random_scan(d);
	case 14: return random_solve(d, x);
	case 15: return random_scatter(d, x);
	default: return draw_element(d);
	}
}

void random_graph(struct tensor_graph *g, uint64_t seed, unsigned nodes)
{
	static const int types[] = { JIT_TYPE_F32, JIT_TYPE_F32,  JIT_TYPE_F64, JIT_TYPE_I32,
		                     JIT_TYPE_I64, JIT_TYPE_F16,  JIT_TYPE_U8,  JIT_TYPE_BOOL,
		                     JIT_TYPE_U32, JIT_TYPE_BF16, JIT_TYPE_U64, JIT_TYPE_I16 };
	struct draw d = { .state = seed * 0x9e3779b97f4a7c15u + 7, .g = g };
	struct error err = { 0 };

	tensor_graph_init(g);
	for (unsigned i = 0; i < 3; i++) {
		struct shape s = { .rank = random_below(&d, 5) };
		char name[8] = { 'x', (char)('0' + i), 0 };
		for (unsigned k = 0; k < s.rank; k++)
			s.dim[k] = random_size_of(&d);
		tensor_graph_input(g, name, types[random_below(&d, 12)], &s, &err);
	}
	for (unsigned tries = 0; g->nodes < nodes && tries < 50 * nodes; tries++) {
		const tensor_value v = random_node(&d);
		/* Larger values take too long to interpret. */
		if (v && shape_elements(&g->value[v].shape) > 20000)
			break;
	}
	for (unsigned i = 0; i < 3; i++) {
		char name[8] = { 'y', (char)('0' + i), 0 };
		tensor_value v = g->values - 1 - random_below(&d, g->values < 8 ? g->values - 1 : 7);
		for (uint32_t k = 0; i == 0 && k < g->nodes; k++) /* a loop or equations, if there are some */
			if (g->node[k].op == OP_scan || g->node[k].op == OP_solve)
				v = g->node[k].first + random_below(&d, g->node[k].results);
		assert_true(tensor_graph_output(g, name, v, &err));
	}
}
