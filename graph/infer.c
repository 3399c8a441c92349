/* graph/infer.c - the table of rules, and those of operations on single elements. */
#include "graph/infer.h"

#include <inttypes.h>
#include <string.h>

static infer_rule *const rules[] = {
	[KIND_NUMBERS] = infer_elements,
	[KIND_FLOATS] = infer_elements,
	[KIND_BITS] = infer_elements,
	[KIND_INTEGERS] = infer_elements,
	[KIND_COMPARE] = infer_elements,
	[KIND_SELECT] = infer_select,
	[KIND_CONVERT] = infer_convert,
	[KIND_BITCAST] = infer_bitcast,
	[KIND_CONSTANT] = NULL,
	[KIND_IOTA] = infer_iota,
	[KIND_BROADCAST] = infer_broadcast,
	[KIND_RESHAPE] = infer_reshape,
	[KIND_TRANSPOSE] = infer_transpose,
	[KIND_SLICE] = infer_slice,
	[KIND_PAD] = infer_pad,
	[KIND_CONCATENATE] = infer_concatenate,
	[KIND_REVERSE] = infer_reverse,
	[KIND_TAKE] = infer_take,
	[KIND_TAKE_ALONG] = infer_take_along,
	[KIND_GATHER_ND] = infer_gather_nd,
	[KIND_SCATTER_ND] = infer_scatter_nd,
	[KIND_SCATTER_ALONG] = infer_scatter_along,
	[KIND_REDUCE] = infer_reduce,
	[KIND_REDUCE_BOOL] = infer_reduce,
	[KIND_ARG] = infer_arg,
	[KIND_SCAN] = infer_scan,
	[KIND_SORT] = infer_sort,
	[KIND_DOT] = infer_dot,
	[KIND_CONV] = infer_conv,
	[KIND_WINDOW] = infer_window,
	[KIND_DEQUANTISE] = infer_dequantise,
	[KIND_RANDOM] = infer_random,
	[KIND_SOLVE] = infer_solve,
	[KIND_LOOP] = infer_loop,
	[KIND_KERNEL] = infer_kernel
};

bool tensor_infer(const struct tensor_graph *g, const struct tensor_node *n, struct inferred *out, struct error *err)
{
	struct inference x = { .n = n, .op = tensor_ops[n->op].name, .out = out, .err = err };

	for (uint32_t i = 0; i < n->operands; i++) {
		x.type[i] = g->value[n->operand[i]].type;
		x.shape[i] = &g->value[n->operand[i]].shape;
	}
	return rules[tensor_ops[n->op].kind](&x);
}

bool infer_result(struct inference *x, int type, const struct shape *s)
{
	x->out->type[0] = type;
	x->out->shape[0] = *s;
	x->out->results = 1;
	return true;
}

bool infer_list(struct inference *x, enum tensor_attribute name, unsigned rank, const struct attribute **out)
{
	*out = tensor_node_attribute(x->n, name);
	if (!*out || (*out)->n == rank)
		return true;
	return error_set(x->err, ERROR_ARGUMENT, "%s of %s has %u numbers, expected %u", tensor_attributes[name].name,
	                 x->op, (*out)->n, rank);
}

static bool is_axis(struct inference *x, enum tensor_attribute name, unsigned rank, int64_t axis)
{
	return (axis >= 0 && axis < (int64_t)rank) ||
	       error_set(x->err, ERROR_ARGUMENT, "%s of %s is %" PRId64 ", expected 0 to %d",
	                 tensor_attributes[name].name, x->op, axis, (int)rank - 1);
}

bool infer_axis(struct inference *x, enum tensor_attribute name, unsigned rank, unsigned *axis)
{
	const int64_t a = tensor_node_whole(x->n, name, 0, 0);

	*axis = (unsigned)a;
	return is_axis(x, name, rank, a);
}

bool infer_axes(struct inference *x, enum tensor_attribute name, unsigned rank, bool marked[TENSOR_MAX_RANK])
{
	const struct attribute *a = tensor_node_attribute(x->n, name);

	memset(marked, 0, TENSOR_MAX_RANK * sizeof *marked);
	for (uint32_t i = 0; a && i < a->n; i++) {
		if (!is_axis(x, name, rank, a->whole[i]))
			return false;
		if (marked[a->whole[i]])
			return error_set(x->err, ERROR_ARGUMENT, "%s of %s names %" PRId64 " twice",
			                 tensor_attributes[name].name, x->op, a->whole[i]);
		marked[a->whole[i]] = true;
	}
	return true;
}

/* ---- single elements */

static bool same_operands(struct inference *x, unsigned from)
{
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

	for (unsigned i = from + 1; i < x->n->operands; i++)
		if (x->type[i] != x->type[from] || !shape_equal(x->shape[i], x->shape[from]))
			return error_set(x->err, ERROR_ARGUMENT, "%s has operands of %s and %s, expected equal ones",
			                 x->op, shape_text(x->type[from], x->shape[from], a),
			                 shape_text(x->type[i], x->shape[i], b));
	return true;
}

bool infer_elements(struct inference *x)
{
	static const char *const wanted[] = { [KIND_NUMBERS] = "numbers",
		                              [KIND_FLOATS] = "floats",
		                              [KIND_BITS] = "integers or bool",
		                              [KIND_INTEGERS] = "integers" };
	const uint8_t kind = tensor_ops[x->n->op].kind;
	const int t = x->type[0];
	const bool fits = kind == KIND_NUMBERS    ? t != JIT_TYPE_BOOL
	                  : kind == KIND_FLOATS   ? tensor_is_float(t)
	                  : kind == KIND_BITS     ? !tensor_is_float(t)
	                  : kind == KIND_INTEGERS ? tensor_is_integer(t)
	                                          : true;

	if (!fits)
		return error_set(x->err, ERROR_ARGUMENT, "%s of %s, expected %s", x->op, tensor_type_name(t),
		                 wanted[kind]);
	if (!same_operands(x, 0))
		return false;
	return infer_result(x, kind == KIND_COMPARE ? JIT_TYPE_BOOL : t, x->shape[0]);
}

bool infer_select(struct inference *x)
{
	if (x->type[0] != JIT_TYPE_BOOL || !shape_equal(x->shape[0], x->shape[1]))
		return error_set(x->err, ERROR_ARGUMENT, "the condition of select is no bool of the same shape");
	return same_operands(x, 1) && infer_result(x, x->type[1], x->shape[1]);
}

static bool type_of(struct inference *x, int *type)
{
	const int64_t t = tensor_node_whole(x->n, ATTRIBUTE_type, 0, -1);

	*type = (int)t;
	return (t >= 0 && t < TENSOR_TYPES) ||
	       error_set(x->err, ERROR_ARGUMENT, "type of %s is %" PRId64 ", which is no type", x->op, t);
}

bool infer_convert(struct inference *x)
{
	int type;

	return type_of(x, &type) && infer_result(x, type, x->shape[0]);
}

bool infer_bitcast(struct inference *x)
{
	int type;

	if (!type_of(x, &type))
		return false;
	if (tensor_type_bytes(type) != tensor_type_bytes(x->type[0]) ||
	    (type == JIT_TYPE_BOOL) != (x->type[0] == JIT_TYPE_BOOL))
		return error_set(x->err, ERROR_ARGUMENT, "bitcast of %s to %s, which has other bits",
		                 tensor_type_name(x->type[0]), tensor_type_name(type));
	return infer_result(x, type, x->shape[0]);
}

/* ---- from attributes alone */

static bool shape_of(struct inference *x, struct shape *s)
{
	const struct attribute *a = tensor_node_attribute(x->n, ATTRIBUTE_shape);

	if (a->n > TENSOR_MAX_RANK)
		return error_set(x->err, ERROR_ARGUMENT, "%s to %u dimensions, expected at most %d", x->op, a->n,
		                 TENSOR_MAX_RANK);
	*s = (struct shape){ .rank = a->n };
	for (uint32_t i = 0; i < a->n; i++) {
		if (a->whole[i] < 0)
			return error_set(x->err, ERROR_ARGUMENT, "%s to a dimension of %" PRId64, x->op, a->whole[i]);
		s->dim[i] = (uint64_t)a->whole[i];
	}
	return true;
}

bool infer_iota(struct inference *x)
{
	struct shape s;
	unsigned axis;
	int type;

	if (!type_of(x, &type) || !shape_of(x, &s) || !infer_axis(x, ATTRIBUTE_axis, s.rank, &axis))
		return false;
	if (type == JIT_TYPE_BOOL)
		return error_set(x->err, ERROR_ARGUMENT, "iota of bool, expected numbers");
	return infer_result(x, type, &s);
}

bool infer_random(struct inference *x)
{
	const struct shape *key = x->shape[0];
	struct shape own, s = { .rank = key->rank ? key->rank - 1 : 0 };

	if (x->type[0] != JIT_TYPE_U32 || key->rank == 0 || key->dim[key->rank - 1] != 4)
		return error_set(x->err, ERROR_ARGUMENT, "the key of random_bits is no u32[..,4]");
	if (!shape_of(x, &own))
		return false;
	if (s.rank + own.rank > TENSOR_MAX_RANK)
		return error_set(x->err, ERROR_ARGUMENT, "random_bits of %u dimensions, expected at most %d",
		                 s.rank + own.rank, TENSOR_MAX_RANK);
	memcpy(s.dim, key->dim, s.rank * sizeof *s.dim);
	memcpy(s.dim + s.rank, own.dim, own.rank * sizeof *s.dim);
	s.rank += own.rank;
	return infer_result(x, JIT_TYPE_U32, &s);
}

bool infer_broadcast(struct inference *x)
{
	const struct attribute *axes;
	bool marked[TENSOR_MAX_RANK];
	struct shape s;

	if (!shape_of(x, &s) || !infer_list(x, ATTRIBUTE_axes, x->shape[0]->rank, &axes) ||
	    !infer_axes(x, ATTRIBUTE_axes, s.rank, marked))
		return false;
	for (unsigned i = 0; i < x->shape[0]->rank; i++) {
		const uint64_t from = x->shape[0]->dim[i], to = s.dim[axes->whole[i]];
		if (from != to && from != 1)
			return error_set(x->err, ERROR_ARGUMENT,
			                 "broadcast of a dimension of %" PRIu64 " to %" PRIu64
			                 ", expected 1 or equal ones",
			                 from, to);
		if (i && axes->whole[i] < axes->whole[i - 1])
			return error_set(x->err, ERROR_ARGUMENT, "axes of broadcast are not in ascending order");
	}
	return infer_result(x, x->type[0], &s);
}

bool infer_reshape(struct inference *x)
{
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
	struct shape s;

	if (!shape_of(x, &s) || !shape_fits(x->type[0], &s, x->err))
		return false;
	if (shape_elements(&s) != shape_elements(x->shape[0]))
		return error_set(x->err, ERROR_ARGUMENT, "reshape of %s to %s, which has other elements",
		                 shape_text(x->type[0], x->shape[0], a), shape_text(x->type[0], &s, b));
	return infer_result(x, x->type[0], &s);
}
