/* graph/vmap_rules.c - operations with a new dimension in front of operands and results. */
#include <string.h>

#include "graph/transform_rules.h"

/* A node's attributes, which a rule changes. */
struct changed {
	struct attribute a[8];
	int64_t number[8][TENSOR_MAX_RANK];
	unsigned n;
};

static void load(struct changed *c, const struct tensor_node *n)
{
	c->n = n->attributes < 8 ? n->attributes : 8; /* no operation has more */
	for (unsigned i = 0; i < c->n; i++) {
		c->a[i] = n->attribute[i];
		if (c->a[i].n)
			memcpy(c->number[i], c->a[i].whole, c->a[i].n * sizeof *c->a[i].whole);
		c->a[i].whole = c->number[i];
	}
}

static struct attribute *find(struct changed *c, enum tensor_attribute name)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->a[i].name == name)
			return &c->a[i];
	return NULL;
}

/* Axes are one further. */
static void shift(struct changed *c, enum tensor_attribute name)
{
	struct attribute *a = find(c, name);

	for (uint32_t i = 0; a && i < a->n; i++)
		a->whole[i]++;
}

/* A list has a number for the new dimension. Operands have at most 7 dimensions here. */
static void prepend(struct changed *c, enum tensor_attribute name, int64_t number)
{
	struct attribute *a = find(c, name);

	if (!a)
		return;
	memmove(a->whole + 1, a->whole, a->n * sizeof *a->whole);
	a->whole[0] = number;
	a->n++;
}

static bool set(struct transform *t, const struct tensor_node *n, tensor_value v)
{
	for (uint32_t k = 0; v && k < n->results; k++)
		t->is[n->first + k] = v + k;
	return v != 0;
}

/* All operands with the new dimension. */
static bool set_all(struct transform *t, const struct tensor_node *n, const struct changed *c)
{
	tensor_value x[TENSOR_MAX_OPERANDS];

	for (uint32_t i = 0; i < n->operands; i++)
		x[i] = vmap_operand(t, n, i);
	return set(t, n, put_node(t, n->op, x, n->operands, c->a, c->n));
}

static bool is_batched(const struct transform *t, const struct tensor_node *n, unsigned i)
{
	return t->active[n->operand[i]];
}

bool vmap_elements(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	return set_all(t, n, &c);
}

bool vmap_axis(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	shift(&c, ATTRIBUTE_axis);
	return set_all(t, n, &c);
}

bool vmap_axes(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	shift(&c, ATTRIBUTE_axes);
	return set_all(t, n, &c);
}

bool vmap_broadcast(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	shift(&c, ATTRIBUTE_axes);
	prepend(&c, ATTRIBUTE_axes, 0);
	prepend(&c, ATTRIBUTE_shape, (int64_t)t->size);
	return set_all(t, n, &c);
}

bool vmap_reshape(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	prepend(&c, ATTRIBUTE_shape, (int64_t)t->size);
	return set_all(t, n, &c);
}

bool vmap_transpose(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	shift(&c, ATTRIBUTE_axes);
	prepend(&c, ATTRIBUTE_axes, 0);
	return set_all(t, n, &c);
}

bool vmap_slice(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	prepend(&c, ATTRIBUTE_start, 0);
	prepend(&c, ATTRIBUTE_limit, (int64_t)t->size);
	prepend(&c, ATTRIBUTE_strides, 1);
	return set_all(t, n, &c);
}

/* Where each set has its own number, that is chosen beside what is inside. */
bool vmap_pad(struct transform *t, const struct tensor_node *n)
{
	const struct shape *to = &t->from->value[n->first].shape;
	struct changed c;
	struct shape of = { .rank = info_of(t, n, 0)->shape.rank + 1, .dim = { t->size } };

	load(&c, n);
	prepend(&c, ATTRIBUTE_low, 0);
	prepend(&c, ATTRIBUTE_high, 0);
	prepend(&c, ATTRIBUTE_interior, 0);
	if (!is_batched(t, n, 1)) {
		const tensor_value x[] = { vmap_operand(t, n, 0), operand_of(t, n, 1) };
		return set(t, n, put_node(t, OP_pad, x, 2, c.a, c.n));
	}
	memcpy(of.dim + 1, info_of(t, n, 0)->shape.dim, (of.rank - 1) * sizeof *of.dim);
	const struct attribute *interior = find(&c, ATTRIBUTE_interior);
	const tensor_value inside = put_is_inside(t, &of, find(&c, ATTRIBUTE_low)->whole,
	                                          find(&c, ATTRIBUTE_high)->whole, interior ? interior->whole : NULL);
	const tensor_value x[] = { vmap_operand(t, n, 0),
		                   graph_full(t->to, 0, info_of(t, n, 0)->type, &(struct shape){ 0 }, t->err) };
	const tensor_value padded = put_node(t, OP_pad, x, 2, c.a, c.n);
	of.rank = to->rank + 1;
	memcpy(of.dim + 1, to->dim, to->rank * sizeof *of.dim);
	return set(t, n,
	           put_select(t, inside, padded,
	                      graph_broadcast(t->to, operand_of(t, n, 1), &of, (unsigned[]){ 0 }, t->err)));
}

/* ---- by indices */

/* `count` dimensions from `from` on stand from `to` on. */
static tensor_value moved(struct transform *t, tensor_value v, unsigned from, unsigned to, unsigned count)
{
	unsigned order[TENSOR_MAX_RANK], at = 0;

	if (!v)
		return 0;
	for (unsigned i = 0; i < shape_of_value(t, v)->rank; i++) {
		if (i >= to && i < to + count) {
			order[i] = from + i - to;
			continue;
		}
		while (at >= from && at < from + count)
			at++;
		order[i] = at++;
	}
	return graph_transpose(t->to, v, order, t->err);
}

/* Both batched: positions of one number in each batch, along the axis that is moved to the front. */
static tensor_value take_of_both(struct transform *t, const struct tensor_node *n, unsigned axis)
{
	int64_t batch = 1;
	const unsigned rank = info_of(t, n, 1)->shape.rank;
	const tensor_value x = moved(t, operand_of(t, n, 0), axis + 1, 1, 1);
	struct shape s = { 0 };
	tensor_value at = operand_of(t, n, 1);

	s = *shape_of_value(t, at);
	if (s.rank == TENSOR_MAX_RANK)
		return transform_refuse(t, n, "by indices of 7 dimensions");
	s.dim[s.rank++] = 1;
	at = graph_reshape(t->to, at, &s, t->err);
	const tensor_value v = put_node(t, OP_gather_nd, (tensor_value[]){ x, at }, 2,
	                                &(struct attribute){ ATTRIBUTE_batch, 1, &batch, 0 }, 1);
	return moved(t, v, 1, axis + 1, rank);
}

bool vmap_take(struct transform *t, const struct tensor_node *n)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);

	if (!is_batched(t, n, 1))
		return set(t, n, put_axis(t, OP_take, operand_of(t, n, 0), operand_of(t, n, 1), axis + 1));
	if (is_batched(t, n, 0))
		return set(t, n, take_of_both(t, n, axis));
	return set(t, n, moved(t, put_axis(t, OP_take, operand_of(t, n, 0), operand_of(t, n, 1), axis), axis, 0, 1));
}

bool vmap_gather_nd(struct transform *t, const struct tensor_node *n)
{
	int64_t batch = tensor_node_whole(n, ATTRIBUTE_batch, 0, 0) + 1;

	if (!is_batched(t, n, 0) && batch == 1) /* more positions in the same operand */
		return set(t, n, put_two(t, OP_gather_nd, operand_of(t, n, 0), operand_of(t, n, 1)));
	const tensor_value x[] = { vmap_operand(t, n, 0), vmap_operand(t, n, 1) };
	return set(t, n, put_node(t, OP_gather_nd, x, 2, &(struct attribute){ ATTRIBUTE_batch, 1, &batch, 0 }, 1));
}

bool vmap_scatter_nd(struct transform *t, const struct tensor_node *n)
{
	const enum scatter_mode mode = (enum scatter_mode)tensor_node_whole(n, ATTRIBUTE_mode, 0, SCATTER_SET);
	const tensor_value at = put_positions(t, vmap_operand(t, n, 1), 1);

	return set(t, n, put_scatter(t, OP_scatter_nd, vmap_operand(t, n, 0), at, vmap_operand(t, n, 2), 0, mode));
}

/* ---- products and windows */

static unsigned count_of(const struct tensor_node *n, enum tensor_attribute name)
{
	const struct attribute *a = tensor_node_attribute(n, name);

	return a ? a->n : 0;
}

/* Where one side has it, the new dimension is the first of its own ones, and is moved to the front of the result. */
bool vmap_dot(struct transform *t, const struct tensor_node *n)
{
	const unsigned batches = count_of(n, ATTRIBUTE_left_batch);
	const bool left = is_batched(t, n, 0), right = is_batched(t, n, 1);
	const tensor_value x[] = { operand_of(t, n, 0), operand_of(t, n, 1) };
	struct changed c;

	load(&c, n);
	if (left && right && !find(&c, ATTRIBUTE_left_batch)) {
		c.a[c.n] = (struct attribute){ ATTRIBUTE_left_batch, 0, c.number[c.n], 0 };
		c.n++;
	}
	if (left && right && !find(&c, ATTRIBUTE_right_batch)) {
		c.a[c.n] = (struct attribute){ ATTRIBUTE_right_batch, 0, c.number[c.n], 0 };
		c.n++;
	}
	for (unsigned side = 0; side < 2; side++) {
		if (!(side ? right : left))
			continue;
		shift(&c, side ? ATTRIBUTE_right : ATTRIBUTE_left);
		shift(&c, side ? ATTRIBUTE_right_batch : ATTRIBUTE_left_batch);
		if (left && right)
			prepend(&c, side ? ATTRIBUTE_right_batch : ATTRIBUTE_left_batch, 0);
	}
	const unsigned own = info_of(t, n, 0)->shape.rank - batches - count_of(n, ATTRIBUTE_left);
	const tensor_value v = put_node(t, OP_dot, x, 2, c.a, c.n);
	return set(t, n, left && right ? v : moved(t, v, left ? batches : batches + own, 0, 1));
}

/* [a, b, ..] as [a * b, ..], or [a / parts, parts, ..] at the dimension. */
static tensor_value merged(struct transform *t, tensor_value v, unsigned at)
{
	if (!v)
		return 0;
	struct shape s = *shape_of_value(t, v);

	s.dim[at] *= s.dim[at + 1];
	s.rank--;
	memmove(s.dim + at + 1, s.dim + at + 2, (s.rank - at - 1) * sizeof *s.dim);
	return graph_reshape(t->to, v, &s, t->err);
}

static tensor_value parted(struct transform *t, tensor_value v, unsigned at, uint64_t first)
{
	if (!v)
		return 0;
	struct shape s = *shape_of_value(t, v);

	if (s.rank == TENSOR_MAX_RANK) {
		error_set(t->err, ERROR_UNSUPPORTED, "%s to more than %d dimensions", t->name, TENSOR_MAX_RANK);
		return 0;
	}
	memmove(s.dim + at + 1, s.dim + at, (s.rank - at) * sizeof *s.dim);
	s.dim[at] = first;
	s.dim[at + 1] /= first;
	s.rank++;
	return graph_reshape(t->to, v, &s, t->err);
}

/* Each set's channels are groups of their own. */
static bool conv_of_both(struct transform *t, const struct tensor_node *n, struct changed *c)
{
	struct attribute *groups = find(c, ATTRIBUTE_groups);

	if (!groups) {
		groups = &c->a[c->n];
		*groups = (struct attribute){ ATTRIBUTE_groups, 1, c->number[c->n], 0 };
		groups->whole[0] = 1;
		c->n++;
	}
	groups->whole[0] *= (int64_t)t->size;
	const tensor_value x[] = { merged(t, moved(t, operand_of(t, n, 0), 0, 1, 1), 1),
		                   merged(t, operand_of(t, n, 1), 0) };
	const tensor_value v = put_node(t, OP_conv, x, 2, c->a, c->n);
	return set(t, n, moved(t, parted(t, v, 1, t->size), 1, 0, 1));
}

/* Each set's filters stand beside the others' in the groups. */
static bool conv_of_weights(struct transform *t, const struct tensor_node *n, const struct changed *c)
{
	const uint64_t groups = (uint64_t)tensor_node_whole(n, ATTRIBUTE_groups, 0, 1);
	tensor_value w = operand_of(t, n, 1), v;

	if (groups > 1) /* [size, groups, out, ..] as [groups, size, out, ..] */
		w = merged(t, moved(t, parted(t, w, 1, groups), 0, 1, 1), 0);
	w = merged(t, w, 0);
	v = put_node(t, OP_conv, (tensor_value[]){ operand_of(t, n, 0), w }, 2, c->a, c->n);
	if (groups == 1)
		return set(t, n, moved(t, parted(t, v, 1, t->size), 1, 0, 1));
	v = parted(t, parted(t, v, 1, groups), 2, t->size); /* [n, groups, size, out, ..] */
	return set(t, n, merged(t, moved(t, v, 2, 0, 1), 2));
}

bool vmap_conv(struct transform *t, const struct tensor_node *n)
{
	struct changed c;

	load(&c, n);
	if (is_batched(t, n, 0) && is_batched(t, n, 1))
		return conv_of_both(t, n, &c);
	if (is_batched(t, n, 1))
		return conv_of_weights(t, n, &c);
	const tensor_value x[] = { merged(t, operand_of(t, n, 0), 0), operand_of(t, n, 1) };
	const tensor_value v = put_node(t, OP_conv, x, 2, c.a, c.n);
	return set(t, n, parted(t, v, 0, t->size));
}

bool vmap_window(struct transform *t, const struct tensor_node *n)
{
	const tensor_value x = merged(t, operand_of(t, n, 0), 0);

	return set(t, n, parted(t, put_again(t, n, &x), 0, t->size));
}
