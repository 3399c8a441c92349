/* graph/pass_sort.c - sort as merges that have kernels, and scatters by plain rows. Sorting is a loop over the widths
 * of what is merged, whose iterations make an order of indices, and then elements that are taken by that order. Each
 * element of an iteration's order is found by itself: how many of the elements before it are of the left half, by
 * halving. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/loop.h"
#include "graph/passes_state.h"
#include "graph/users.h"

/* before: whether y comes before x, of elements x and y. */
static const char merge[] =
	"const i64 n; const i64 total;\n"
	"kernel merge(in i32 order[total], in i32 width[1], in %s key[total], out i32 next[total]) over (p in total) "
	"{\n"
	"i32 i = i32(p); i32 m = i32(n); i32 k = i %% m; i32 row = i - k; i32 w = width[0];\n"
	"i32 first = k - k %% (2 * w); i32 left = min(w, m - first);\n"
	"i32 right = min(w, m - first - left); i32 d = k - first;\n"
	"i32 low = max(d - right, 0); i32 high = min(d, left); i32 l = row + first; i32 r = l + left;\n"
	"while (low < high) at most 32 {\n"
	"i32 middle = (low + high) / 2;\n"
	"%s x = key[row + order[l + middle]]; %s y = key[row + order[r + d - 1 - middle]];\n"
	"if (%s) { high = middle; } else { low = middle + 1; }\n"
	"}\n"
	"i32 b = d - low;\n"
	"%s x = key[row + order[min(l + low, row + m - 1)]]; %s y = key[row + order[min(r + b, row + m - 1)]];\n"
	"bool takes = low < left && (b >= right || !(%s));\n"
	"next[p] = order[select(takes, l + low, min(r + b, row + m - 1))];\n"
	"}\n";

static const char *before(int type, bool down)
{
	if (!tensor_is_float(type))
		return down ? "y > x" : "y < x";
	/* NaNs are greater than all. */
	return down ? "x == x && (y != y || y > x)" : "y == y && (x != x || y < x)";
}

/* The body of an iteration: a node of that kernel. */
static tensor_value put_merge(struct tensor_graph *g, const tensor_value in[3], int type, bool down, uint64_t n,
                              uint64_t total, struct error *err)
{
	const char *wide = tensor_type_name(tensor_wide_type(type)), *rule = before(type, down);
	char source[sizeof merge + 200], constants[80];
	int64_t whole = 1;
	struct attribute a[] = {
		{ ATTRIBUTE_source, 0, NULL, 0 }, { ATTRIBUTE_constants, 0, NULL, 0 }, { ATTRIBUTE_whole, 1, &whole, 0 }
	};
	tensor_value v = 0;

	snprintf(source, sizeof source, merge, tensor_type_name(type), wide, wide, rule, wide, wide, rule);
	snprintf(constants, sizeof constants, "n=%" PRIu64 " total=%" PRIu64, n, total);
	if (attribute_make_text(&a[0], ATTRIBUTE_source, source, strlen(source), err) &&
	    attribute_make_text(&a[1], ATTRIBUTE_constants, constants, strlen(constants), err))
		v = tensor_graph_add(g, OP_kernel, in, 3, a, 3, err);
	free(a[0].whole);
	free(a[1].whole);
	return v;
}

/* Widths of the iterations: 1, 2, 4 and so on. */
static tensor_value put_widths(struct tensor_graph *g, uint64_t iterations, struct error *err)
{
	const struct shape s = { .rank = 1, .dim = { iterations } };
	struct tensor t;
	tensor_value v = 0;

	if (!tensor_make(&t, JIT_TYPE_I32, &s, err))
		return 0;
	for (uint64_t i = 0; i < iterations; i++)
		tensor_put(&t, i, (union number){ .i = INT64_C(1) << i });
	v = tensor_graph_constant(g, &t, err);
	tensor_free(&t);
	return v;
}

/* Indices along the axis in their new order, of keys[rows * n] that lie along it. */
static tensor_value put_order(struct tensor_graph *g, tensor_value keys, bool down, uint64_t n, struct error *err)
{
	const int type = g->value[keys].type;
	const struct shape flat = g->value[keys].shape, none = { 0 };
	const uint64_t total = flat.dim[0];
	int64_t of = JIT_TYPE_I32, shape[] = { (int64_t)(total / n), (int64_t)n }, axis = 1;
	const struct attribute iota[] = {
		{ ATTRIBUTE_type, 1, &of, 0 }, { ATTRIBUTE_shape, 2, shape, 0 }, { ATTRIBUTE_axis, 1, &axis, 0 }
	};
	struct loop l = { .carried = 1, .stacked = 1 };
	tensor_value in[3], v;

	while (UINT64_C(1) << l.length < n)
		l.length++;
	const tensor_value first = graph_reshape(g, tensor_graph_add(g, OP_iota, NULL, 0, iota, 3, err), &flat, err);
	const tensor_value widths = put_widths(g, l.length, err);
	tensor_graph_init(&l.body);
	in[0] = tensor_graph_input(&l.body, "order", JIT_TYPE_I32, &flat, err);
	const tensor_value width = tensor_graph_input(&l.body, "width", JIT_TYPE_I32, &none, err);
	in[2] = tensor_graph_input(&l.body, "key", type, &flat, err);
	in[1] = graph_reshape(&l.body, width, &(struct shape){ .rank = 1, .dim = { 1 } }, err);
	v = first && widths && in[0] && in[1] && in[2] ? put_merge(&l.body, in, type, down, n, total, err) : 0;
	v = v && tensor_graph_output(&l.body, "next", v, err)
	            ? graph_scan(g, &l, (tensor_value[]){ first, widths, keys }, 3, err)
	            : 0;
	loop_close(&l);
	return v;
}

bool passes_put_sort(struct copying *c, const struct tensor_node *n, tensor_value out[])
{
	const struct shape s = c->to->value[n->operand[0]].shape;
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0), last = s.rank - 1;
	const bool down = tensor_node_whole(n, ATTRIBUTE_descending, 0, 0) != 0;
	const int type = c->to->value[n->operand[0]].type;
	unsigned order[TENSOR_MAX_RANK];
	struct shape transposed = s;
	int64_t along = axis;
	const struct attribute a = { ATTRIBUTE_axis, 1, &along, 0 };

	if (s.dim[axis] < 2 || shape_elements(&s) == 0 || shape_elements(&s) > INT32_MAX / 2) {
		memcpy(out, n->operand, n->operands * sizeof *out);
		return s.dim[axis] < 2 || shape_elements(&s) == 0;
	}
	for (unsigned i = 0; i < s.rank; i++)
		order[i] = i == axis ? last : i == last ? axis : i;
	transposed.dim[axis] = s.dim[last];
	transposed.dim[last] = s.dim[axis];
	const struct shape flat = { .rank = 1, .dim = { shape_elements(&s) } };
	const tensor_value key =
		type == JIT_TYPE_BOOL ? graph_convert(c->to, n->operand[0], JIT_TYPE_U8, c->err) : n->operand[0];
	const tensor_value keys = graph_reshape(c->to, graph_transpose(c->to, key, order, c->err), &flat, c->err);
	tensor_value by = keys ? put_order(c->to, keys, down, s.dim[axis], c->err) : 0;
	by = graph_transpose(c->to, graph_reshape(c->to, by, &transposed, c->err), order, c->err);
	for (uint32_t k = 0; by && k < n->operands; k++)
		if (!(out[k] = tensor_graph_add(c->to, OP_take_along, (tensor_value[]){ n->operand[k], by }, 2, &a, 1,
		                                c->err)))
			by = 0;
	return by != 0;
}

/* ---- indices of scatters: kernels find rows by one i32 each, which is -1 where an index is out of range */

struct indices {
	struct tensor_graph *g;
	struct shape rows; /* of positions, or of single indices */
	struct error *err;
};

static tensor_value put_full(struct indices *x, double number, int type)
{
	return graph_full(x->g, number, type, &x->rows, x->err);
}

/* row * extent + index, and whether all indices are in range. */
static void add_index(struct indices *x, tensor_value index, uint64_t extent, tensor_value *row, tensor_value *inside)
{
	const int type = index ? x->g->value[index].type : 0;
	const tensor_value max = graph_binary(x->g, OP_min, index, put_full(x, INT32_MAX, JIT_TYPE_I64), x->err);
	const tensor_value i = graph_binary(x->g, OP_max, max, put_full(x, -1, type), x->err);
	const tensor_value here =
		graph_binary(x->g, OP_and, graph_binary(x->g, OP_ge, i, put_full(x, 0, type), x->err),
	                     graph_binary(x->g, OP_lt, i, put_full(x, (double)extent, type), x->err), x->err);
	const tensor_value before = graph_binary(x->g, OP_mul, *row, put_full(x, (double)extent, type), x->err);

	*row = graph_binary(x->g, OP_add, before, i, x->err);
	*inside = graph_binary(x->g, OP_and, *inside, here, x->err);
}

/* Index k of each position. */
static tensor_value put_index(struct indices *x, tensor_value at, uint64_t k)
{
	const struct shape s = x->g->value[at].shape;
	int64_t start[TENSOR_MAX_RANK] = { 0 }, limit[TENSOR_MAX_RANK];
	const struct attribute a[] = { { ATTRIBUTE_start, s.rank, start, 0 }, { ATTRIBUTE_limit, s.rank, limit, 0 } };

	for (unsigned d = 0; d < s.rank; d++)
		limit[d] = (int64_t)s.dim[d];
	start[s.rank - 1] = (int64_t)k;
	limit[s.rank - 1] = (int64_t)k + 1;
	return graph_reshape(x->g, tensor_graph_add(x->g, OP_slice, &at, 1, a, 2, x->err), &x->rows, x->err);
}

/* Signed integers of 64 bits; what u64 alone has is out of range. */
static tensor_value put_wide(struct copying *c, tensor_value at)
{
	const struct tensor_value_info of = c->to->value[at];

	if (of.type == JIT_TYPE_U64)
		at = graph_binary(c->to, OP_min, at, graph_full(c->to, INT32_MAX, of.type, &of.shape, c->err), c->err);
	return graph_convert(c->to, at, JIT_TYPE_I64, c->err);
}

static tensor_value put_rows(struct indices *x, tensor_value at, const struct shape *of, unsigned first,
                             uint64_t length, bool nd)
{
	tensor_value row = put_full(x, 0, JIT_TYPE_I64), inside = put_full(x, 1, JIT_TYPE_BOOL);

	for (uint64_t k = 0; k < length; k++)
		add_index(x, nd ? put_index(x, at, k) : at, of->dim[first + k], &row, &inside);
	const tensor_value rows = graph_convert(x->g, row, JIT_TYPE_I32, x->err), none = put_full(x, -1, JIT_TYPE_I32);
	return inside && rows && none
	               ? tensor_graph_add(x->g, OP_select, (tensor_value[]){ inside, rows, none }, 3, NULL, 0, x->err)
	               : 0;
}

tensor_value passes_put_scatter(struct copying *c, const struct tensor_node *n)
{
	const struct tensor_value_info of = c->to->value[n->operand[0]], at = c->to->value[n->operand[1]];
	const bool nd = n->op == OP_scatter_nd;
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const uint64_t length = nd ? at.shape.dim[at.shape.rank - 1] : 1,
		       updates = shape_part(&at.shape, 0, at.shape.rank - 1);
	struct indices x = { .g = c->to, .rows = at.shape, .err = c->err };

	if (!shape_elements(&of.shape) || shape_elements(&of.shape) > INT32_MAX ||
	    (at.type == JIT_TYPE_I32 && (!nd || (length == 1 && at.shape.rank == 2))))
		return 0;
	x.rows.rank -= nd;
	const tensor_value wide = put_wide(c, n->operand[1]);
	tensor_value rows = wide ? put_rows(&x, wide, &of.shape, axis, length, nd) : 0;
	tensor_value to = n->operand[0], from = n->operand[2];
	if (nd) {
		const uint64_t inner = shape_part(&of.shape, (unsigned)length, of.shape.rank);
		rows = graph_reshape(c->to, rows, &(struct shape){ .rank = 2, .dim = { updates, 1 } }, c->err);
		from = graph_reshape(c->to, from, &(struct shape){ .rank = 2, .dim = { updates, inner } }, c->err);
		to = graph_reshape(c->to, to,
		                   &(struct shape){ .rank = 2, .dim = { shape_elements(&of.shape) / inner, inner } },
		                   c->err);
	}
	const tensor_value v = rows && from && to ? tensor_graph_add(c->to, n->op, (tensor_value[]){ to, rows, from },
	                                                             3, n->attribute, n->attributes, c->err)
	                                          : 0;
	return graph_reshape(c->to, v, &of.shape, c->err);
}
