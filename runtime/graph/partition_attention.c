/* runtime/graph/partition_attention.c - see partition_attention.h. */
#include "runtime/graph/partition_attention.h"

static const struct shape *shape_of(const struct row_view *v, tensor_value x) { return &v->g->value[x].shape; }

/* The product whose sums a value's elements are, or are computed of; NULL: there is none. */
static const struct tensor_node *product_of(const struct row_view *v, tensor_value x)
{
	const struct tensor_node *n = tensor_node_of(v->g, x);

	if (n && v->product[x])
		n = &v->g->node[v->product[x] - 1];
	return n && n->op == OP_dot ? n : NULL;
}

/* The value whose bytes are those of x. */
static tensor_value root_of(const struct row_view *v, tensor_value x)
{
	while (v->home[x] == HOME_ALIAS)
		x = tensor_node_of(v->g, x)->operand[0];
	return x;
}

static bool is_in(const struct row_trace *t, uint32_t node)
{
	for (uint32_t i = 0; i < t->nodes; i++)
		if (t->node[i] == node)
			return true;
	return false;
}

/* How often an element of a row is an operand of the same element of another value of it. */
static uint32_t uses_of(const struct row_view *v, const struct row_trace *t, tensor_value x)
{
	uint32_t uses = 0;

	for (uint32_t i = 0; i < t->nodes; i++) {
		const struct tensor_node *n = &v->g->node[t->node[i]];
		for (uint32_t k = 0; n->op != OP_broadcast && k < n->operands; k++)
			uses += n->operand[k] == x;
	}
	return uses;
}

/* Whether dimensions are one after the other, so many elements apart. */
static bool lies(const struct through *t, uint64_t apart)
{
	uint64_t stride;

	return through_is_straight(t, &stride) && (shape_elements(&t->shape) == 1 || stride == apart);
}

/* What both products agree in. */
static bool measure(struct attention *a)
{
	const struct side *q = &a->key[0], *k = &a->key[1], *p = &a->value[0], *v = &a->value[1];

	a->batches = shape_elements(&p->batch.shape);
	a->queries = shape_elements(&p->own.shape);
	a->keys = shape_elements(&p->sum.shape);
	a->depth = shape_elements(&q->sum.shape);
	a->width = shape_elements(&v->own.shape);
	return a->batches && a->depth && a->width && shape_elements(&q->batch.shape) == a->batches &&
	       shape_elements(&q->own.shape) == a->queries && shape_elements(&k->own.shape) == a->keys &&
	       a->rows.columns == a->keys && a->rows.rows == a->batches * a->queries && lies(&p->sum, 1) &&
	       lies(&p->own, a->keys) && lies(&p->batch, a->queries * a->keys);
}

/* As many queries as sums fit into registers, and scores into a part of the second cache. The last block is filled up
 * with queries that are computed again. On a card one warp has a block: with many keys the scores leave room for few
 * warps, and products by themselves are faster. */
static bool choose_block(struct attention *a, const struct tensor_graph *g, unsigned lanes)
{
	enum { CARDS = 4, CARD_KEYS = 256, MIN = 4, CHAINS = 8, BYTES = 256 << 10 };
	const uint64_t bytes = tensor_type_bytes(g->value[a->scores].type),
		       max = (lanes == 0    ? CARDS
	                      : lanes >= 16 ? 14
	                                    : 12) *
	                     4 / (lanes ? bytes : 4);
	uint64_t min = UINT64_MAX;
	uint32_t tiles;
	const uint64_t row = partition_rows_tile_bytes(g, &a->rows, &tiles),
		       max_bytes = lanes ? BYTES : CARD_TILE_BYTES;

	a->block = 0;
	if (!lanes && a->keys > CARD_KEYS)
		return false;
	for (uint64_t r = MIN < max ? MIN : max; r <= max && r <= a->queries; r++) {
		const uint64_t cost = (a->queries + r - 1) / r * (r < CHAINS && lanes ? CHAINS + 2 : r + 2);
		if (r * a->keys * bytes + row > max_bytes || cost > min)
			continue;
		min = cost;
		a->block = (unsigned)r;
	}
	return a->block != 0;
}

/* Everything of a product by shares but whether others read what it makes. */
static bool describe(const struct row_view *v, struct attention *a, unsigned lanes)
{
	const int type = v->g->value[a->scores].type;

	a->by_keys = product_of(v, a->scores);
	if (!a->by_keys || (type != JIT_TYPE_F32 && type != JIT_TYPE_F64))
		return false;
	if (v->g->value[a->by_keys->first].type != type || v->g->value[a->read].type != type ||
	    v->g->value[a->shares].type != type || v->g->value[a->by_values->first].type != type)
		return false;
	if (shape_elements(shape_of(v, a->scores)) != shape_elements(shape_of(v, a->by_keys->first)))
		return false;
	for (unsigned k = 0; k < 2; k++) {
		a->key[k] = product_side(v->g, a->by_keys, k);
		a->value[k] = product_side(v->g, a->by_values, k);
	}
	return measure(a) && choose_block(a, v->g, lanes);
}

/* Whether nothing but this product reads the shares. */
static bool has_them_alone(const struct row_view *v, const struct attention *a)
{
	for (tensor_value x = a->by_values->operand[0]; v->users[x] == 1; x = tensor_node_of(v->g, x)->operand[0])
		if (x == a->shares)
			return true;
	return false;
}

/* Arrays that the kernel reads: those of the rows, of what scores are made of, and of what becomes of the result. */
static bool has_room_for_reads(const struct row_view *v, const struct attention *a)
{
	enum { OPERANDS = 4 };
	uint32_t max = 0, reads = OPERANDS + v->reads[a->scores];

	for (uint32_t i = 0; i < a->rows.nodes; i++) {
		const struct tensor_node *n = &v->g->node[a->rows.node[i]];
		for (uint32_t k = 0; k < n->operands; k++)
			reads += v->home[n->operand[k]] == HOME_INLINE ? v->reads[n->operand[k]] : 1;
	}
	for (tensor_value x = 1; x < v->g->values; x++)
		if (v->product[x] == v->g->value[a->by_values->first].node + 1 && v->reads[x] > max)
			max = v->reads[x];
	return reads + max <= SOURCE_ARRAYS_MAX;
}

/* Whether nothing but the rows reads the scores, as they are or in another shape. */
static bool have_them_alone(const struct row_view *v, const struct attention *a)
{
	if (uses_of(v, &a->rows, a->read) != v->users[a->read])
		return false;
	for (tensor_value x = a->read; x != a->scores;)
		if (v->users[x = tensor_node_of(v->g, x)->operand[0]] != 1)
			return false;
	return true;
}

/* is_new: they are looked for; else a->scores says which they are. */
static bool find_scores(const struct row_view *v, struct attention *a, unsigned lanes, bool is_new)
{
	const tensor_value known = a->scores;

	for (uint32_t i = 0; i < a->rows.nodes; i++) {
		const struct tensor_node *n = &v->g->node[a->rows.node[i]];
		for (uint32_t k = 0; n->op != OP_broadcast && k < n->operands; k++) {
			a->read = n->operand[k];
			a->scores = root_of(v, a->read);
			if (is_in(&a->rows, v->g->value[a->read].node) || !product_of(v, a->scores))
				continue;
			if (is_new ? v->home[a->scores] == HOME_STORED && have_them_alone(v, a) &&
			                     describe(v, a, lanes) && has_room_for_reads(v, a)
			           : a->scores == known && describe(v, a, lanes))
				return true;
		}
	}
	return false;
}

static void find(const struct row_view *v, uint8_t *home, const uint64_t *rows, uint32_t i, tensor_value *scores,
                 unsigned lanes)
{
	struct attention a = { .by_values = &v->g->node[i] };

	a.shares = root_of(v, a.by_values->operand[0]);
	const uint32_t end = v->g->value[a.shares].node;
	if (home[a.shares] != HOME_STORED || end == VALUE_OUTSIDE || !rows[end] || !has_them_alone(v, &a) ||
	    !partition_rows_trace(&a.rows, v, end, rows[end]) || !find_scores(v, &a, lanes, true))
		return;
	home[a.shares] = home[a.scores] = home[a.by_keys->first] = HOME_INLINE;
	scores[i] = a.scores;
}

void partition_attention_find(const struct row_view *v, uint8_t *home, const uint64_t *rows, tensor_value *scores,
                              unsigned lanes)
{
	for (uint32_t i = 0; i < v->g->nodes; i++) {
		const struct tensor_node *n = &v->g->node[i];
		if (n->op == OP_dot &&
		    (home[n->first] == HOME_STORED || (home[n->first] == HOME_INLINE && v->product[n->first])))
			find(v, home, rows, i, scores, lanes);
	}
}

bool partition_attention_again(const struct partition *p, const struct tensor_graph *g, const struct group *group,
                               unsigned lanes, struct attention *a)
{
	const struct row_view v = { .g = g, .home = p->home, .product = p->product, .banned = p->none };

	*a = (struct attention){ .by_values = &g->node[group->product], .scores = group->scores };
	a->shares = root_of(&v, a->by_values->operand[0]);
	const struct side shares = product_side(g, a->by_values, 0);
	return partition_rows_trace(&a->rows, &v, g->value[a->shares].node, shape_elements(&shares.sum.shape)) &&
	       find_scores(&v, a, lanes, false);
}
