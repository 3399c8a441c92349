/* graph/eval_rules.h - the loops behind eval.h, a function for each kind of operation. */
#ifndef GRAPH_EVAL_RULES_H
#define GRAPH_EVAL_RULES_H

#include "graph/eval.h"

/* A node, its operands, and its results, whose memory is there and zeroed. */
struct evaluation {
	const struct tensor_node *n;
	const struct tensor *const *in;
	struct tensor *out;
	struct error *err;
};
typedef bool eval_rule(struct evaluation *e);

eval_rule eval_elements, eval_convert, eval_bitcast;
eval_rule eval_constant, eval_iota, eval_broadcast, eval_reshape, eval_transpose, eval_slice, eval_pad,
	eval_concatenate, eval_reverse;
eval_rule eval_take, eval_take_along, eval_gather_nd, eval_scatter_nd, eval_scatter_along;
eval_rule eval_reduce, eval_arg, eval_scan, eval_sort, eval_dot, eval_conv, eval_window, eval_dequantise, eval_random,
	eval_solve, eval_loop, eval_kernel;

/* x op y for add, mul, min, max, and, or, as elements of a wide type (tensor_wide_type()). */
union number eval_pair(enum tensor_op op, int wide, union number x, union number y);
/* What op leaves unchanged: 0, 1, infinities. */
union number eval_neutral(enum tensor_op op, int wide);
/* a * b + c: rounded once; integers wrap. */
union number eval_fused(int wide, union number a, union number b, union number c);
bool eval_less(int wide, union number x, union number y);

/* The element at a position. */
static inline uint64_t eval_at(const uint64_t stride[], const uint64_t at[], unsigned rank)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < rank; i++)
		n += stride[i] * at[i];
	return n;
}

#endif
