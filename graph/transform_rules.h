/* graph/transform_rules.h - what the rules of transforms share: the graph that is drawn, and how nodes are put into it.
 */
#ifndef GRAPH_TRANSFORM_RULES_H
#define GRAPH_TRANSFORM_RULES_H

#include "graph/transforms.h"

struct transform {
	const char *name; /* "vjp" */
	struct tensor_graph *to;
	const struct tensor_graph *from;
	tensor_value *is; /* what a value of `from` is in `to` */
	tensor_value *d;  /* its cotangent (vjp) or tangent (jvp) there; 0: none */
	bool *active;     /* it depends on an input to derive by; vmap: it has the new dimension, in front */
	uint64_t size;    /* vmap: the new dimension */
	bool saves;       /* vjp: loops keep what they carry (loop_put_saving) */
	struct error *err;
};

/* A rule is given a node of `from`, of which an operand is active.
 * vjp: a result has a cotangent; the rule gives the operands theirs by vjp_give().
 * jvp: an operand has a tangent; the rule sets d of the results, or leaves it 0.
 * vmap: an operand has the new dimension; the rule sets `is` of the results, which have it, too. */
typedef bool transform_rule(struct transform *t, const struct tensor_node *n);
struct transform_row {
	transform_rule *vjp, *jvp, *vmap;
};
extern const struct transform_row transform_rules[TENSOR_OPS];

transform_rule transform_zero;
transform_rule vjp_elements, vjp_convert, vjp_broadcast, vjp_reshape, vjp_transpose, vjp_slice, vjp_pad,
	vjp_concatenate, vjp_reverse;
transform_rule vjp_take, vjp_take_along, vjp_gather_nd, vjp_scatter_nd, vjp_scatter_along;
transform_rule vjp_reduce_sum, vjp_reduce_product, vjp_reduce_max, vjp_cumsum, vjp_cumprod, vjp_sort;
transform_rule vjp_kernel, vmap_kernel;
transform_rule vjp_solve, jvp_solve, vmap_solve, vjp_scan, jvp_scan, vmap_scan;
transform_rule vjp_dot, vjp_conv, vjp_window_max, vjp_window_sum;
transform_rule jvp_elements, jvp_linear, jvp_scatter, jvp_bilinear;
transform_rule jvp_reduce_product, jvp_reduce_max, jvp_cumprod, jvp_sort, jvp_window_max;
transform_rule vmap_elements, vmap_broadcast, vmap_reshape, vmap_transpose, vmap_slice, vmap_pad, vmap_axis, vmap_axes,
	vmap_take, vmap_gather_nd, vmap_scatter_nd, vmap_dot, vmap_conv, vmap_window;

/* ---- the driver's parts (transforms.c) */

bool transform_open(struct transform *t); /* room for is, d and active */
void transform_close(struct transform *t);
/* A copy of a node whose operands are all in `to`. */
bool transform_copy(struct transform *t, const struct tensor_node *n);
/* Inputs and nodes of `from`, as they are. New inputs come between them, as in text. */
bool transform_copy_inputs(struct transform *t);
bool transform_copy_nodes(struct transform *t);
/* Marks what depends on the inputs wrt; false, err: one is no input of floats, or an operation has no rule. rule: which
 * one of a row. */
bool transform_mark(struct transform *t, const tensor_value wrt[], uint32_t n,
                    transform_rule *(*rule)(enum tensor_op op));
/* An input "PREFIX.NAME" in the type and shape of v. */
tensor_value transform_input(struct transform *t, const char *prefix, const char *name, tensor_value v);
bool transform_output(struct transform *t, const char *prefix, const char *name, tensor_value v);
bool transform_outputs(struct transform *t); /* those of `from` */
const char *transform_input_name(const struct tensor_graph *g, tensor_value v);
bool transform_refuse(struct transform *t, const struct tensor_node *n, const char *why);

/* ---- what rules draw with: values of `to`; 0 as an operand gives 0 */

static inline const struct shape *shape_of_value(const struct transform *t, tensor_value v)
{
	return &t->to->value[v].shape;
}
static inline tensor_value operand_of(const struct transform *t, const struct tensor_node *n, unsigned i)
{
	return t->is[n->operand[i]];
}
static inline const struct tensor_value_info *info_of(const struct transform *t, const struct tensor_node *n,
                                                      unsigned i)
{
	return &t->from->value[n->operand[i]];
}
tensor_value put_node(struct transform *t, enum tensor_op op, const tensor_value *x, unsigned n,
                      const struct attribute *a, unsigned attributes);
tensor_value put_one(struct transform *t, enum tensor_op op, tensor_value x);
tensor_value put_two(struct transform *t, enum tensor_op op, tensor_value x, tensor_value y);
/* condition ? x : y */
tensor_value put_select(struct transform *t, tensor_value condition, tensor_value x, tensor_value y);
/* A number in the type and shape of `like`. */
tensor_value put_number(struct transform *t, double number, tensor_value like);
tensor_value put_zeros(struct transform *t, int type, const struct shape *s);
/* With one attribute of one number, or of `count` ones. */
tensor_value put_axis(struct transform *t, enum tensor_op op, tensor_value x, tensor_value y, unsigned axis);
tensor_value put_axes(struct transform *t, enum tensor_op op, tensor_value x, const int64_t *axes, unsigned count);
tensor_value put_iota(struct transform *t, int type, const struct shape *s, unsigned axis);
tensor_value put_pad(struct transform *t, tensor_value x, tensor_value number, const int64_t *low, const int64_t *high,
                     const int64_t *interior);
tensor_value put_slice(struct transform *t, tensor_value x, const int64_t *start, const int64_t *limit,
                       const int64_t *strides);
tensor_value put_scatter(struct transform *t, enum tensor_op op, tensor_value x, tensor_value at, tensor_value updates,
                         unsigned axis, enum scatter_mode mode);
/* Indices as i64, with positions along the first `batches` dimensions in front of each. */
tensor_value put_positions(struct transform *t, tensor_value at, unsigned batches);
/* Whether an element is one of x, where x is padded as by n: bool. */
tensor_value put_is_inside(struct transform *t, const struct shape *x, const int64_t *low, const int64_t *high,
                           const int64_t *interior);
/* The same operation, with its attributes, on other operands. */
tensor_value put_again(struct transform *t, const struct tensor_node *n, const tensor_value *x);

/* ---- vjp */

static inline bool vjp_wants(const struct transform *t, const struct tensor_node *n, unsigned i)
{
	return t->active[n->operand[i]];
}
/* Adds v to operand i's cotangent; false: v is 0. */
bool vjp_give(struct transform *t, const struct tensor_node *n, unsigned i, tensor_value v);

/* A scan that is copied: behind its own results it has, stacked, what is carried into each iteration. */
tensor_value loop_put_saving(struct transform *t, const struct tensor_node *n, const tensor_value operand[]);

/* ---- vmap */

/* Operand i with the new dimension; one that all sets share is repeated. 0: it would have too many dimensions. */
tensor_value vmap_operand(struct transform *t, const struct tensor_node *n, unsigned i);

/* ---- derivatives that vjp and jvp share */

/* The derivative of an operation on single elements by operand i, times v (derivatives.c). */
tensor_value derivative_of(struct transform *t, const struct tensor_node *n, unsigned i, tensor_value v);
/* Of a reduction: the result, or what has its shape, in the operand's shape again. */
tensor_value put_spread(struct transform *t, const struct tensor_node *n, tensor_value v);
/* reduce_product: of each element, the product of all others. */
tensor_value put_others(struct transform *t, const struct tensor_node *n);
/* reduce_max and reduce_min: the part that each element has in the result: 1, or less where several are equal. */
tensor_value put_parts(struct transform *t, const struct tensor_node *n);
/* cumprod: the derivative of element k by element i, with i along the axis, and k behind it. */
tensor_value put_cumprod_derivative(struct transform *t, const struct tensor_node *n);
/* sort: where each element of the result was along the axis. */
tensor_value put_permutation(struct transform *t, const struct tensor_node *n);

/* window_max: x's windows, each an axis of its elements behind the others, padded with `number`. */
struct patches {
	unsigned n; /* dimensions that windows have */
	int64_t low[TENSOR_MAX_RANK], high[TENSOR_MAX_RANK];
	tensor_value index[TENSOR_MAX_RANK];
	struct shape padded, apart, together; /* [n,c,o1,w1,..], and [n,c,o1,..,w1*..] */
	int64_t order[TENSOR_MAX_RANK];       /* [n,c,o1,..,w1,..] of the one that is apart */
};
bool find_patches(struct transform *t, const struct tensor_node *n, struct patches *p);
tensor_value put_patches(struct transform *t, const struct patches *p, tensor_value x, double number);
/* bool, in the shape `together`: the element is its window's greatest, and the first one. */
tensor_value put_greatest(struct transform *t, const struct tensor_node *n, const struct patches *p);
/* The other way: sums of what each element of x has in all windows. */
tensor_value put_unpatched(struct transform *t, const struct patches *p, tensor_value v);
/* take, the other way: sums of v's slices where the indices say, in a dimension of `size` at the axis. */
tensor_value put_untake(struct transform *t, tensor_value v, tensor_value at, unsigned axis, uint64_t size);

#endif
