/* loaders/onnx/op_features.c - operators of ai.onnx.ml on rows of features, but for trees: of numbers, not of strings.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/onnx/operators.h"

/* Columns of the last dimension; of one dimension, the result has a row. */
void op_array_feature(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]), k = draw_shape(d, o->in[1]);
	const uint64_t n = shape_elements(&k);

	if (s.rank == 0) {
		op_refuse(o, "input 1 has no dimension");
		return;
	}
	const tensor_value y = draw_take(d, o->in[0], draw_dims(d, o->in[1], 1, &n), s.rank - 1);
	o->out[0] = s.rank == 1 ? draw_expand(d, y, 0) : y;
}

void op_binarizer(struct op *o)
{
	const tensor_value above = draw_with(&o->d, OP_gt, o->in[0], op_float(o, "threshold", 0));

	o->out[0] = draw_convert(&o->d, above, draw_type(&o->d, o->in[0]));
}

/* Floats of an attribute, one for all or one for each of n columns; 0: err. Without the attribute all are `usual`. */
static tensor_value floats_of(struct op *o, const char *name, uint64_t n, float usual)
{
	const struct onnx_attribute *a = op_attribute(o, name);
	const size_t given = a ? a->n_floats : 1;
	double *x = given == 1 || given == n ? calloc(given + 1, sizeof *x) : NULL;

	if (!x) {
		op_refuse(o, "attribute %s has %zu numbers, expected 1 or %" PRIu64, name, given, n);
		return 0;
	}
	for (size_t i = 0; i < given; i++)
		x[i] = (double)(a ? a->floats[i] : usual);
	const tensor_value v = op_constant_reals(o, x, given, JIT_TYPE_F32);
	free(x);
	return v;
}

void op_scaler(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const uint64_t n = s.rank ? s.dim[s.rank - 1] : 1;
	const tensor_value x = draw_convert(d, o->in[0], JIT_TYPE_F32);

	o->out[0] = draw_binary(d, OP_mul, draw_binary(d, OP_sub, x, floats_of(o, "offset", n, 0)),
	                        floats_of(o, "scale", n, 1));
}

/* Rows by the greatest of their absolute values, by the sum of these, or by their length. Rows of zeros stay. */
void op_normalizer(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value x = draw_convert(d, o->in[0], JIT_TYPE_F32), size = draw_unary(d, OP_abs, x);
	const unsigned rank = draw_rank(d, x), last = rank ? 1U << (rank - 1) : 0;
	tensor_value by = 0;

	if (rank < 1 || rank > 2)
		op_refuse(o, "input 1 has %u dimensions, expected 1 or 2", rank);
	else if (op_is(o, "norm", "MAX", "MAX"))
		by = draw_reduce(d, OP_reduce_max, size, last, true);
	else if (op_is(o, "norm", "MAX", "L1"))
		by = draw_reduce(d, OP_reduce_sum, size, last, true);
	else if (op_is(o, "norm", "MAX", "L2"))
		by = draw_unary(d, OP_sqrt, draw_reduce(d, OP_reduce_sum, draw_binary(d, OP_mul, x, x), last, true));
	else
		op_refuse(o, "attribute norm is none of MAX, L1 and L2");
	const tensor_value none = draw_with(d, OP_eq, by, 0);
	o->out[0] = draw_binary(d, OP_div, x, draw_select(d, none, draw_number(d, 1, by), by));
}

tensor_value op_post_transform(struct op *o, tensor_value y)
{
	struct draw *d = &o->d;
	const unsigned rank = draw_rank(d, y);

	if (op_is(o, "post_transform", "NONE", "NONE"))
		return y;
	if (op_is(o, "post_transform", "NONE", "LOGISTIC"))
		return draw_unary(d, OP_logistic, y);
	if (op_is(o, "post_transform", "NONE", "SOFTMAX"))
		return draw_softmax(d, y, rank ? 1U << (rank - 1) : 0);
	op_refuse(o, "attribute post_transform is none of NONE, LOGISTIC and SOFTMAX");
	return 0;
}

void op_linear_regressor(struct op *o)
{
	struct draw *d = &o->d;
	const struct onnx_attribute *w = op_attribute(o, "coefficients");
	const int64_t targets = op_int(o, "targets", 1);
	tensor_value x = draw_convert(d, o->in[0], JIT_TYPE_F32);

	if (draw_rank(d, x) == 1)
		x = draw_expand(d, x, 0);
	const uint64_t n = draw_rank(d, x) == 2 ? draw_dim(d, x, 1) : 0;
	if (targets < 1 || targets > 1 << 24 || !w || w->n_floats != n * (uint64_t)targets)
		op_refuse(o,
		          "attribute coefficients has %zu numbers, expected %" PRIu64 " for each of %" PRId64
		          " targets",
		          w ? w->n_floats : 0, n, targets);
	if (op_failed(o))
		return;
	const tensor_value matrix = draw_dims(d, floats_of(o, "coefficients", w->n_floats, 0), 2,
	                                      (const uint64_t[]){ (uint64_t)targets, n });
	const tensor_value y = draw_binary(d, OP_add, draw_dot(d, x, matrix, 1, 1, 0),
	                                   floats_of(o, "intercepts", (uint64_t)targets, 0));
	o->out[0] = op_post_transform(o, y);
}

/* ---- LabelEncoder: numbers for numbers */

/* Keys, values or what is usual, as integers, floats or a tensor; 0: there are none. */
static tensor_value labels(struct op *o, const char *ints, const char *floats, const char *tensor)
{
	const struct onnx_attribute *a = op_attribute(o, ints), *b = op_attribute(o, floats),
				    *c = op_attribute(o, tensor);
	struct tensor t;

	if (a)
		return op_constant_ints(o, a->ints, a->n_ints);
	if (b)
		return floats_of(o, floats, b->n_floats, 0);
	if (!c || !c->t || !onnx_tensor_of(c->t, tensor, NULL, &t, o->err))
		return 0;
	const tensor_value v = tensor_graph_constant(o->d.g, &t, o->err);
	tensor_free(&t);
	return v;
}

/* Where one of n keys is what x is, its value. A NaN is one key. */
void op_label_encoder(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value keys = labels(o, "keys_int64s", "keys_floats", "keys_tensor"),
			   values = labels(o, "values_int64s", "values_floats", "values_tensor");
	const struct shape k = draw_shape(d, keys), v = draw_shape(d, values), s = draw_shape(d, o->in[0]);
	const int type = draw_type(d, values);

	if (!keys || !values || k.rank != 1 || v.rank != 1 || k.dim[0] != v.dim[0] || k.dim[0] == 0 ||
	    draw_type(d, keys) != draw_type(d, o->in[0]))
		op_refuse(o, "expected keys of the type of input 1, and as many values, all of them numbers");
	else if (s.rank == TENSOR_MAX_RANK)
		op_refuse(o, "input 1 has %u dimensions", s.rank);
	if (op_failed(o))
		return;
	const tensor_value usual =
		op_attribute(o, "default_tensor")
			? draw_convert(d, draw_dims(d, labels(o, "", "", "default_tensor"), 0, NULL), type)
		: tensor_is_float(type) ? draw_scalar(d, op_float(o, "default_float", -0.0), type)
					: draw_scalar(d, (double)op_int(o, "default_int64", -1), type);
	const tensor_value x = draw_expand(d, o->in[0], s.rank);
	tensor_value same = draw_binary(d, OP_eq, x, keys);
	if (tensor_is_float(draw_type(d, keys)))
		same = draw_binary(d, OP_or, same, draw_binary(d, OP_and, draw_is_nan(d, x), draw_is_nan(d, keys)));
	int64_t axis = s.rank;
	const tensor_value mask = draw_convert(d, same, JIT_TYPE_I32),
			   at = mask ? tensor_graph_add(d->g, OP_argmax, &mask, 1,
	                                                &(struct attribute){ ATTRIBUTE_axis, 1, &axis, 0 }, 1, o->err)
	                             : 0;
	const tensor_value found = draw_reduce(d, OP_reduce_any, same, 1U << s.rank, false);
	o->out[0] = draw_select(d, found, draw_take(d, values, at, 0), usual);
}
