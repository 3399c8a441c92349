/* tests/graph/smooth_graph.c - random graphs of operations that have derivatives, away from where they have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/graph/random_draw.h"

enum { ELEMENTS_MAX = 400 };

void smooth_tensor(struct tensor *t, int type, const struct shape *s, uint64_t seed)
{
	struct draw d = { .state = seed * 2654435761u + 1 };
	struct error err = { 0 };

	if (!tensor_make(t, type, s, &err))
		fail_msg("%s", err.text);
	for (uint64_t i = 0; i < shape_elements(s); i++) {
		union number x = { .u = 0 };
		if (tensor_is_float(type)) {
			const double v =
				(random_below(&d, 1 << 20) + random_below(&d, 1 << 20) / 1048576.0) / 0x1p18 - 2;
			x = tensor_convert((union number){ .d = v }, JIT_TYPE_F64, tensor_wide_type(type));
		} else {
			x.i = (int64_t)random_below(&d, 6) - (tensor_is_signed(type) ? 1 : 0);
		}
		tensor_put(t, i, x);
	}
}

static tensor_value number(struct draw *d, tensor_value like, double value)
{
	struct error err = { 0 };
	const struct shape s = random_info(d, like)->shape;

	return graph_full(d->g, value, JIT_TYPE_F64, &s, &err);
}

static tensor_value one(struct draw *d, enum tensor_op op, tensor_value x) { return random_add(d, op, &x, 1, NULL, 0); }

static tensor_value two(struct draw *d, enum tensor_op op, tensor_value x, tensor_value y)
{
	return random_add(d, op, (tensor_value[]){ x, y }, 2, NULL, 0);
}

static tensor_value tame(struct draw *d, tensor_value x) { return one(d, random_below(d, 2) ? OP_tanh : OP_sin, x); }
tensor_value smooth_tame(struct draw *d, tensor_value x) { return tame(d, x); }

/* Not below a half. */
static tensor_value positive(struct draw *d, tensor_value x)
{
	x = tame(d, x);
	return two(d, OP_add, two(d, OP_mul, x, x), number(d, x, 0.5));
}

static tensor_value draw_element(struct draw *d, tensor_value x)
{
	static const enum tensor_op ops[] = {
		OP_neg,  OP_abs, OP_exp,      OP_log, OP_sqrt,   OP_rsqrt, OP_sin, OP_cos,
		OP_tanh, OP_erf, OP_logistic, OP_add, OP_sub,    OP_mul,   OP_div, OP_rem,
		OP_max,  OP_min, OP_pow,      OP_fma, OP_select, OP_floor, OP_add, OP_mul
	};
	const enum tensor_op op = ops[random_below(d, sizeof ops / sizeof *ops)];
	tensor_value y = random_like(d, x);

	switch (op) {
	case OP_exp: return one(d, op, tame(d, x));
	case OP_log:
	case OP_sqrt:
	case OP_rsqrt: return one(d, op, positive(d, x));
	case OP_mul: return two(d, op, x, tame(d, y));
	case OP_div:
	case OP_rem: return two(d, op, x, positive(d, y));
	case OP_pow: return two(d, op, positive(d, x), tame(d, y));
	case OP_fma: return random_add(d, op, (tensor_value[]){ tame(d, x), y, random_like(d, x) }, 3, NULL, 0);
	case OP_select:
		return random_add(d, op, (tensor_value[]){ two(d, OP_lt, x, y), y, random_like(d, x) }, 3, NULL, 0);
	case OP_floor: /* alone it would end what flows */
		return two(d, OP_sub, x, two(d, OP_mul, one(d, op, y), number(d, y, 0.25)));
	default: return tensor_ops[op].min == 1 ? one(d, op, x) : two(d, op, x, y);
	}
}

static tensor_value draw_along(struct draw *d, tensor_value x)
{
	static const enum tensor_op ops[] = { OP_cumsum, OP_cumprod, OP_sort };
	const enum tensor_op op = ops[random_below(d, 3)];
	const unsigned rank = random_info(d, x)->shape.rank;
	int64_t axis = rank ? random_below(d, rank) : 0, first = random_below(d, 2), second = random_below(d, 2);
	const struct attribute a[] = { { ATTRIBUTE_axis, 1, &axis, 0 },
		                       { op == OP_sort ? ATTRIBUTE_descending : ATTRIBUTE_reverse, 1, &first, 0 },
		                       { ATTRIBUTE_exclusive, 1, &second, 0 } };

	x = op == OP_cumprod ? tame(d, x) : x;
	return random_add(d, op, (tensor_value[]){ x, random_like(d, x) }, op == OP_sort ? 2 : 1, a,
	                  op == OP_sort ? 2 : 3);
}

static tensor_value indices(struct draw *d, const struct shape *s)
{
	struct tensor t;
	struct error err = { 0 };

	smooth_tensor(&t, random_below(d, 2) ? JIT_TYPE_I64 : JIT_TYPE_I32, s, d->state);
	const tensor_value v = tensor_graph_constant(d->g, &t, &err);
	tensor_free(&t);
	return v;
}

/* gather_nd, and what adds the gathered elements somewhere else. */
static tensor_value draw_scatter(struct draw *d, tensor_value x)
{
	const struct shape s = random_info(d, x)->shape;
	const struct shape at = { 2, { 1 + random_below(d, 3), s.rank ? 1 + random_below(d, s.rank) : 0 } };
	int64_t axis = 0, mode = SCATTER_ADD;
	struct attribute a[] = { { ATTRIBUTE_mode, 1, &mode, 0 }, { ATTRIBUTE_axis, 1, &axis, 0 } };

	if (s.rank == 0)
		return 0;
	if (random_below(d, 2)) {
		const tensor_value updates = random_like(d, x);
		return random_add(d, OP_scatter_along, (tensor_value[]){ x, indices(d, &s), updates }, 3, a, 2);
	}
	const tensor_value gathered = two(d, OP_gather_nd, x, indices(d, &at));
	if (!gathered || random_below(d, 2))
		return gathered;
	return random_add(d, OP_scatter_nd, (tensor_value[]){ random_like(d, x), indices(d, &at), gathered }, 3, a, 1);
}

tensor_value smooth_node(struct draw *d)
{
	static const enum tensor_op reductions[] = { OP_reduce_sum, OP_reduce_product, OP_reduce_max, OP_reduce_min };
	const tensor_value x = random_any_value(d), y = random_like(d, x);
	const uint64_t elements = shape_elements(&random_info(d, x)->shape);
	int64_t axis = random_info(d, x)->shape.rank ? random_below(d, random_info(d, x)->shape.rank) : 0;

	switch (random_below(d, d->loops ? 26 : 24)) {
	case 0:
	case 1: return elements > 30 ? 0 : random_broadcast(d, x);
	case 2: return random_reshape(d, x);
	case 3: return random_by_axes(d, random_below(d, 2) ? OP_transpose : OP_reverse, x);
	case 4: return random_slice(d, x);
	case 5: return elements > 30 ? 0 : random_pad(d, x);
	case 6:
		return random_add(d, OP_concatenate, (tensor_value[]){ x, y, x }, 1 + random_below(d, 3),
		                  &(struct attribute){ ATTRIBUTE_axis, 1, &axis, 0 }, 1);
	case 7: return random_take(d, x);
	case 8:
	case 9: return random_by_axes(d, reductions[random_below(d, 4)], tame(d, x));
	case 10: return draw_along(d, x);
	case 11:
	case 12: return random_dot(d, tame(d, x));
	case 13:
	case 14: return random_windows(d, tame(d, x));
	case 15: return draw_scatter(d, x);
	case 16: return tame(d, x);
	case 24:
	case 25: return random_scan(d);
	default: return draw_element(d, x);
	}
}

void smooth_graph(struct tensor_graph *g, uint64_t seed, unsigned nodes, bool loops)
{
	struct draw d = { .state = seed * 0x9e3779b97f4a7c15u + 7, .g = g, .smooth = true, .loops = loops };
	struct error err = { 0 };

	tensor_graph_init(g);
	for (unsigned i = 0; i < 3; i++) {
		struct shape s = { .rank = random_below(&d, 5) };
		char name[8] = { 'x', (char)('0' + i), 0 };
		for (unsigned k = 0; k < s.rank; k++)
			s.dim[k] = random_below(&d, 30) ? random_size_of(&d) : 0;
		tensor_graph_input(g, name, JIT_TYPE_F64, &s, &err);
	}
	for (unsigned tries = 0; g->nodes < nodes && tries < 50 * nodes; tries++) {
		const tensor_value v = smooth_node(&d);
		if (v && shape_elements(&g->value[v].shape) > ELEMENTS_MAX)
			break;
	}
	for (unsigned i = 0, tries = 0; i < 6; tries++) {
		char name[8] = { 'y', (char)('0' + i), 0 };
		const tensor_value v =
			g->values - 1 - random_below(&d, g->values < 9 || tries > 50 ? g->values - 1 : 8);
		if (g->value[v].type != JIT_TYPE_F64)
			continue;
		assert_true(tensor_graph_output(g, name, v, &err));
		i++;
	}
}
