/* graph/vjp_products.c - gradients of products and convolutions, which are such themselves. */
#include "graph/transform_rules.h"

/* ---- dot */

/* How a side of a dot is written: its operand, and its attributes. */
struct side {
	unsigned operand;
	const struct attribute *sums, *batches;
	int64_t own[TENSOR_MAX_RANK]; /* axes that are in the result */
	unsigned owns, first;         /* first: where they are there */
};

static bool is_in(const struct attribute *a, unsigned axis)
{
	for (uint32_t i = 0; a && i < a->n; i++)
		if (a->whole[i] == (int64_t)axis)
			return true;
	return false;
}

static struct side side_of(const struct transform *t, const struct tensor_node *n, unsigned operand)
{
	struct side s = { .operand = operand };

	s.sums = tensor_node_attribute(n, operand ? ATTRIBUTE_right : ATTRIBUTE_left);
	s.batches = tensor_node_attribute(n, operand ? ATTRIBUTE_right_batch : ATTRIBUTE_left_batch);
	for (unsigned i = 0; i < info_of(t, n, operand)->shape.rank; i++)
		if (!is_in(s.sums, i) && !is_in(s.batches, i))
			s.own[s.owns++] = i;
	return s;
}

/* The product of the cotangent and the other operand, along the other's own axes: it has batches, own axes, and the
 * summed ones in the order that they have in the other operand. */
static tensor_value product_with(struct transform *t, const struct tensor_node *n, const struct side *me,
                                 const struct side *other)
{
	const unsigned batches = me->batches ? me->batches->n : 0;
	int64_t along[TENSOR_MAX_RANK], in_front[TENSOR_MAX_RANK];
	unsigned back[TENSOR_MAX_RANK], at = 0;

	for (unsigned i = 0; i < other->owns; i++)
		along[i] = other->first + i;
	for (unsigned i = 0; i < batches; i++) {
		in_front[i] = i;
		back[me->batches->whole[i]] = at++;
	}
	for (unsigned i = 0; i < me->owns; i++)
		back[me->own[i]] = at++;
	for (unsigned d = 0; d < info_of(t, n, other->operand)->shape.rank; d++)
		for (uint32_t i = 0; i < other->sums->n; i++)
			if (other->sums->whole[i] == (int64_t)d)
				back[me->sums->whole[i]] = at++;
	const struct attribute a[] = {
		{ ATTRIBUTE_left, other->owns, along, 0 },
		{ ATTRIBUTE_right, other->owns, (int64_t *)(uintptr_t)other->own, 0 },
		{ ATTRIBUTE_left_batch, batches, in_front, 0 },
		{ ATTRIBUTE_right_batch, batches, batches ? other->batches->whole : in_front, 0 }
	};
	const tensor_value v = put_node(t, OP_dot, (tensor_value[]){ t->d[n->first], operand_of(t, n, other->operand) },
	                                2, a, batches ? 4 : 2);
	return graph_transpose(t->to, v, back, t->err);
}

bool vjp_dot(struct transform *t, const struct tensor_node *n)
{
	struct side side[] = { side_of(t, n, 0), side_of(t, n, 1) };

	side[0].first = side[0].batches ? side[0].batches->n : 0;
	side[1].first = side[0].first + side[0].owns;
	for (unsigned i = 0; i < 2; i++)
		if (vjp_wants(t, n, i) && !vjp_give(t, n, i, product_with(t, n, &side[i], &side[1 - i])))
			return false;
	return true;
}

/* ---- conv: result q, element p and tap k meet where p * input_dilation = q * stride - low + k * dilation */

struct conv {
	unsigned n; /* dimensions behind the first two */
	int64_t strides[TENSOR_MAX_RANK], low[TENSOR_MAX_RANK], dilation[TENSOR_MAX_RANK], input[TENSOR_MAX_RANK];
	int64_t x[TENSOR_MAX_RANK], taps[TENSOR_MAX_RANK], y[TENSOR_MAX_RANK];
	uint64_t groups;
};

static struct conv conv_of(const struct transform *t, const struct tensor_node *n)
{
	const struct shape *x = &info_of(t, n, 0)->shape, *w = &info_of(t, n, 1)->shape,
			   *y = &t->from->value[n->first].shape;
	struct conv c = { .n = x->rank - 2, .groups = (uint64_t)tensor_node_whole(n, ATTRIBUTE_groups, 0, 1) };

	for (unsigned i = 0; i < c.n; i++) {
		c.strides[i] = tensor_node_whole(n, ATTRIBUTE_strides, i, 1);
		c.low[i] = tensor_node_whole(n, ATTRIBUTE_low, i, 0);
		c.dilation[i] = tensor_node_whole(n, ATTRIBUTE_dilation, i, 1);
		c.input[i] = tensor_node_whole(n, ATTRIBUTE_input_dilation, i, 1);
		c.x[i] = (int64_t)x->dim[2 + i];
		c.taps[i] = (int64_t)w->dim[2 + i];
		c.y[i] = (int64_t)y->dim[2 + i];
	}
	return c;
}

/* How far `count` elements reach that lie `step` apart. */
static int64_t extent(int64_t count, int64_t step) { return count ? (count - 1) * step + 1 : 0; }

static tensor_value put_conv(struct transform *t, tensor_value x, tensor_value w, const struct conv *c,
                             const int64_t *high)
{
	int64_t groups = (int64_t)c->groups;
	const struct attribute a[] = { { ATTRIBUTE_strides, c->n, (int64_t *)(uintptr_t)c->strides, 0 },
		                       { ATTRIBUTE_low, c->n, (int64_t *)(uintptr_t)c->low, 0 },
		                       { ATTRIBUTE_high, c->n, (int64_t *)(uintptr_t)high, 0 },
		                       { ATTRIBUTE_dilation, c->n, (int64_t *)(uintptr_t)c->dilation, 0 },
		                       { ATTRIBUTE_input_dilation, c->n, (int64_t *)(uintptr_t)c->input, 0 },
		                       { ATTRIBUTE_groups, 1, &groups, 0 } };

	return put_node(t, OP_conv, (tensor_value[]){ x, w }, 2, a, 6);
}

/* [groups * a, b, ..] becomes [groups * b, a, ..]; with `outer`, [a, groups * b, ..] becomes [b, groups * a, ..]. */
static tensor_value swapped(struct transform *t, tensor_value v, uint64_t groups, bool outer)
{
	if (!v)
		return 0;
	const struct shape s = *shape_of_value(t, v);
	const unsigned extra = groups > 1;
	struct shape split = { .rank = s.rank + 1 }, out = s;
	unsigned order[TENSOR_MAX_RANK + 1];

	for (unsigned i = 0; i < s.rank + extra; i++)
		order[i] = i;
	if (!extra) {
		order[0] = 1;
		order[1] = 0;
		return graph_transpose(t->to, v, order, t->err);
	}
	for (unsigned i = 2; i < s.rank; i++)
		split.dim[i + 1] = s.dim[i];
	split.dim[0] = outer ? s.dim[0] : groups;
	split.dim[1] = outer ? groups : s.dim[0] / groups;
	split.dim[2] = outer ? s.dim[1] / groups : s.dim[1];
	out.dim[0] = outer ? s.dim[1] / groups : s.dim[1] * groups;
	out.dim[1] = outer ? s.dim[0] * groups : s.dim[0] / groups;
	order[0] = outer ? 2 : 0;
	order[1] = outer ? 1 : 2;
	order[2] = outer ? 0 : 1;
	return graph_reshape(t->to, graph_transpose(t->to, graph_reshape(t->to, v, &split, t->err), order, t->err),
	                     &out, t->err);
}

/* By the operand: the cotangent, with strides as gaps, meets the taps from the last to the first. */
static tensor_value conv_by_operand(struct transform *t, const struct tensor_node *n, const struct conv *c)
{
	int64_t high[TENSOR_MAX_RANK], axes[TENSOR_MAX_RANK];
	struct conv by = { .n = c->n, .groups = c->groups };

	for (unsigned i = 0; i < c->n; i++) {
		const int64_t reach = (c->taps[i] - 1) * c->dilation[i];
		axes[i] = 2 + i;
		by.strides[i] = c->input[i];
		by.input[i] = c->strides[i];
		by.dilation[i] = c->dilation[i];
		by.low[i] = reach - c->low[i];
		high[i] = (c->x[i] - 1) * c->input[i] + reach + 1 - extent(c->y[i], c->strides[i]) - by.low[i];
	}
	const tensor_value w = put_axes(t, OP_reverse, swapped(t, operand_of(t, n, 1), c->groups, false), axes, c->n);
	return put_conv(t, t->d[n->first], w, &by, high);
}

/* By the weights: samples are summed as channels, and the cotangent is what slides, with strides as its dilation. */
static tensor_value conv_by_weights(struct transform *t, const struct tensor_node *n, const struct conv *c)
{
	int64_t high[TENSOR_MAX_RANK];
	struct conv by = { .n = c->n, .groups = c->groups };

	for (unsigned i = 0; i < c->n; i++) {
		by.strides[i] = c->dilation[i];
		by.dilation[i] = c->strides[i];
		by.input[i] = c->input[i];
		by.low[i] = c->low[i];
		high[i] = (c->taps[i] - 1) * c->dilation[i] + extent(c->y[i], c->strides[i]) -
		          extent(c->x[i], c->input[i]) - c->low[i];
	}
	const tensor_value x = swapped(t, operand_of(t, n, 0), c->groups, true),
			   d = swapped(t, t->d[n->first], 1, false);
	return swapped(t, put_conv(t, x, d, &by, high), 1, false);
}

bool vjp_conv(struct transform *t, const struct tensor_node *n)
{
	const struct conv c = conv_of(t, n);
	const bool is_empty =
		shape_elements(&info_of(t, n, 0)->shape) == 0 || shape_elements(&info_of(t, n, 1)->shape) == 0 ||
		shape_elements(&t->from->value[n->first].shape) == 0;

	if (c.groups > 1 && c.n + 3 > TENSOR_MAX_RANK)
		return transform_refuse(t, n, "of 8 dimensions in groups");
	for (unsigned i = 0; i < 2; i++) {
		if (!vjp_wants(t, n, i))
			continue;
		const tensor_value v = is_empty ? put_zeros(t, info_of(t, n, i)->type, &info_of(t, n, i)->shape)
		                       : i == 0 ? conv_by_operand(t, n, &c)
		                                : conv_by_weights(t, n, &c);
		if (!vjp_give(t, n, i, v))
			return false;
	}
	return true;
}
