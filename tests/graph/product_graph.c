/* tests/graph/product_graph.c - see product_graph.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/graph/product_graph.h"
#include "tests/graph/random_draw.h"

#define PICK(d, ...) \
	((const uint64_t[]){ __VA_ARGS__ }[random_below(d, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))])

static const int types[] = { JIT_TYPE_F32, JIT_TYPE_F32,  JIT_TYPE_F32, JIT_TYPE_F64,
	                     JIT_TYPE_F16, JIT_TYPE_BF16, JIT_TYPE_I32, JIT_TYPE_I8 };

static tensor_value operand(struct draw *d, const char *name, int type, const struct shape *s)
{
	struct error err = { 0 };
	tensor_value v;

	if (random_below(d, 2)) {
		struct tensor t;
		smooth_tensor(&t, type, s, d->state);
		v = tensor_graph_constant(d->g, &t, &err);
		tensor_free(&t);
	} else {
		v = tensor_graph_input(d->g, name, type, s, &err);
		v = v && random_below(d, 2) ? graph_unary(d->g, OP_neg, v, &err) : v;
	}
	assert_int_not_equal(v, 0);
	return v;
}

/* Dimensions in any order; at[i]: where number i is. */
static struct shape shuffled(struct draw *d, const uint64_t *dim, unsigned n, int64_t *at)
{
	struct shape s = { .rank = n };

	for (unsigned i = 0; i < n; i++)
		at[i] = i;
	for (unsigned i = n; i-- > 1;) {
		const unsigned k = random_below(d, i + 1);
		const int64_t swap = at[i];
		at[i] = at[k];
		at[k] = swap;
	}
	for (unsigned i = 0; i < n; i++)
		s.dim[at[i]] = dim[i];
	return s;
}

/* A vector along an axis, something of the same shape, a function: any of them, or none. */
static tensor_value finished(struct draw *d, tensor_value v, unsigned axis)
{
	const struct tensor_value_info i = *random_info(d, v);
	struct error err = { 0 };

	if (random_below(d, 2)) {
		const struct shape one = { .rank = 1, .dim = { i.shape.dim[axis] } };
		const tensor_value bias = operand(d, "bias", i.type, &one);
		v = graph_binary(d->g, OP_add, v, graph_broadcast(d->g, bias, &i.shape, &axis, &err), &err);
	}
	if (random_below(d, 2))
		v = graph_binary(d->g, OP_max, v, graph_full(d->g, 0, i.type, &i.shape, &err), &err);
	if (random_below(d, 3) == 0)
		v = graph_binary(d->g, random_below(d, 2) ? OP_add : OP_sub, operand(d, "more", i.type, &i.shape), v,
		                 &err);
	if (random_below(d, 6) == 0)
		v = graph_binary(d->g, OP_mul, v, v, &err);
	if (random_below(d, 6) == 0 && tensor_is_float(i.type))
		v = graph_unary(d->g, OP_tanh, v, &err);
	if (random_below(d, 6) == 0 && i.shape.rank > 1) {
		const unsigned swapped[TENSOR_MAX_RANK] = { 1, 0, 2, 3, 4, 5, 6, 7 };
		v = graph_transpose(d->g, v, swapped, &err);
	}
	assert_int_not_equal(v, 0);
	return v;
}

static void end(struct draw *d, tensor_value v)
{
	struct error err = { 0 };

	assert_true(tensor_graph_output(d->g, "y", v, &err));
}

/* Dimensions of the left operand: batch, own, own, summed; of the right one: batch, own, summed. */
void product_graph(struct tensor_graph *g, uint64_t seed)
{
	struct draw d = { .state = seed * 2 + 1, .g = g };
	const int type = types[random_below(&d, sizeof types / sizeof *types)];
	const uint64_t b = PICK(&d, 1, 1, 2, 3), m = PICK(&d, 1, 2, 3, 5, 6, 7, 13, 14, 15, 29),
		       extra = PICK(&d, 1, 1, 3), n = PICK(&d, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 70),
		       k = PICK(&d, 1, 2, 3, 17, 64, 512);
	int64_t x[4], y[3];
	const bool wide = m * n * k * b * extra > 60000;

	tensor_graph_init(g);
	const struct shape left = shuffled(&d, (uint64_t[]){ b, m, wide ? 1 : extra, k }, 4, x),
			   right = shuffled(&d, (uint64_t[]){ b, n, k }, 3, y);
	struct attribute a[] = { { ATTRIBUTE_left, 1, &x[3], 0 },
		                 { ATTRIBUTE_right, 1, &y[2], 0 },
		                 { ATTRIBUTE_left_batch, 1, &x[0], 0 },
		                 { ATTRIBUTE_right_batch, 1, &y[0], 0 } };
	const tensor_value l = operand(&d, "l", type, &left), r = operand(&d, "r", type, &right);
	const tensor_value v = random_add(&d, OP_dot, (tensor_value[]){ l, r }, 2, a, 4);
	assert_int_not_equal(v, 0);
	end(&d, finished(&d, v, 3));
}

void conv_graph(struct tensor_graph *g, uint64_t seed)
{
	struct draw d = { .state = seed * 2 + 1, .g = g };
	const int type = types[random_below(&d, sizeof types / sizeof *types)];
	const unsigned dims = 1 + (random_below(&d, 3) > 0);
	const bool apart = random_below(&d, 4) == 0; /* channels have sums of their own */
	const uint64_t groups = apart ? PICK(&d, 2, 3, 7) : PICK(&d, 1, 1, 1, 2, 5), in = apart ? 1 : PICK(&d, 1, 2, 3),
		       each = apart ? 1 : PICK(&d, 1, 1, 2, 3, 8, 15, 16, 33, 50);
	int64_t list[5][2], group = (int64_t)groups;
	struct shape x = { .rank = 2 + dims, .dim = { PICK(&d, 1, 1, 2), groups * in } },
		     w = { .rank = 2 + dims, .dim = { groups * each, in } };

	tensor_graph_init(g);
	for (unsigned i = 0; i < dims; i++) {
		w.dim[2 + i] = PICK(&d, 1, 1, 2, 3, 3, 4);
		x.dim[2 + i] = PICK(&d, 5, 7, 8, 14, 16, 17, 20) + (dims == 1 ? random_below(&d, 60) : 0);
		list[0][i] = (int64_t)PICK(&d, 1, 1, 2, 3);
		list[1][i] = (int64_t)random_below(&d, 3) - (random_below(&d, 4) == 0);
		list[2][i] = (int64_t)random_below(&d, 3) - (random_below(&d, 4) == 0);
		list[3][i] = (int64_t)PICK(&d, 1, 1, 1, 2);
		x.dim[2 + i] += (w.dim[2 + i] - 1) * (uint64_t)list[3][i];
		list[4][i] = (int64_t)PICK(&d, 1, 1, 1, 2);
	}
	if (dims == 2 && random_below(&d, 5) == 0) { /* few lines, which are cut */
		x.dim[2] = (w.dim[2] - 1) * (uint64_t)list[3][0] + 3;
		x.dim[3] = PICK(&d, 127, 150, 280);
	}
	struct attribute a[] = {
		{ ATTRIBUTE_strides, dims, list[0], 0 },        { ATTRIBUTE_low, dims, list[1], 0 },
		{ ATTRIBUTE_high, dims, list[2], 0 },           { ATTRIBUTE_dilation, dims, list[3], 0 },
		{ ATTRIBUTE_input_dilation, dims, list[4], 0 }, { ATTRIBUTE_groups, 1, &group, 0 }
	};
	const tensor_value in_value = operand(&d, "x", type, &x), by = operand(&d, "w", type, &w);
	const tensor_value v = random_add(&d, OP_conv, (tensor_value[]){ in_value, by }, 2, a, 6);
	assert_int_not_equal(v, 0);
	end(&d, finished(&d, v, 1));
}
