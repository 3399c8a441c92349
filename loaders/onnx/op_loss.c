/* loaders/onnx/op_loss.c - losses of classes: negative log likelihood, and softmax cross entropy. */
#include <inttypes.h>

#include "loaders/onnx/operators.h"

enum { REDUCTION_NONE, REDUCTION_SUM, REDUCTION_MEAN };

static int reduction_of(struct op *o)
{
	static const char *const words[] = { "none", "sum", "mean" };

	for (int i = 0; i < 3; i++)
		if (op_is(o, "reduction", "mean", words[i]))
			return i;
	op_refuse(o, "attribute reduction is none of none, sum and mean");
	return REDUCTION_NONE;
}

/* Of log probabilities [n,classes,..] and targets [n,..]. A target that is ignored has loss and weight 0. */
static tensor_value loss_of(struct op *o, tensor_value x)
{
	struct draw *d = &o->d;
	const int reduction = reduction_of(o);
	const struct shape s = draw_shape(d, x);
	const tensor_value target = draw_convert(d, o->in[1], JIT_TYPE_I64);
	const unsigned all = draw_rank(d, target) ? (1U << draw_rank(d, target)) - 1 : 0;

	if (s.rank < 2 || draw_rank(d, target) + 1 != s.rank) {
		op_refuse(o, "scores have %u dimensions, and targets %u", s.rank, draw_rank(d, target));
		return 0;
	}
	const bool ignores = op_attribute(o, "ignore_index") != NULL;
	const tensor_value skip = ignores ? draw_with(d, OP_eq, target, (double)op_int(o, "ignore_index", 0)) : 0;
	const tensor_value index = skip ? draw_select(d, skip, draw_number(d, 0, target), target) : target;
	tensor_value picked = draw_squeeze(
		d, draw_with_mode(d, OP_take_along, (tensor_value[]){ x, draw_expand(d, index, 1) }, 1, -1), 1);
	tensor_value weight = op_in(o, 2) ? draw_take(d, draw_convert(d, o->in[2], draw_type(d, x)), index, 0)
	                                  : draw_number(d, 1, picked);
	if (skip)
		weight = draw_select(d, skip, draw_number(d, 0, weight), weight);
	const tensor_value loss = draw_binary(d, OP_mul, draw_unary(d, OP_neg, picked), weight);
	if (reduction == REDUCTION_NONE)
		return loss;
	const tensor_value sum = draw_reduce(d, OP_reduce_sum, loss, all, false);
	return reduction == REDUCTION_SUM
	               ? sum
	               : draw_binary(d, OP_div, sum, draw_reduce(d, OP_reduce_sum, weight, all, false));
}

void op_nll_loss(struct op *o)
{
	o->out[0] = draw_convert(&o->d, loss_of(o, op_widen(o, o->in[0])), draw_type(&o->d, o->in[0]));
}

void op_cross_entropy(struct op *o)
{
	const int type = draw_type(&o->d, o->in[0]);
	const tensor_value x = draw_log_softmax(&o->d, op_widen(o, o->in[0]), 2);

	o->out[0] = draw_convert(&o->d, loss_of(o, x), type);
	if (op_wants(o, 1))
		o->out[1] = draw_convert(&o->d, x, type);
}
