/* runtime/graph/partition_rows.c - see partition_rows.h. */
#include "runtime/graph/partition_rows.h"

#include <stdlib.h>
#include <string.h>

static const struct shape *shape_of(const struct row_view *v, tensor_value x) { return &v->g->value[x].shape; }

static bool is_reduction(const struct tensor_node *n)
{
	return n->op == OP_reduce_sum || n->op == OP_reduce_max || n->op == OP_reduce_min;
}

static bool is_float(const struct row_view *v, tensor_value x)
{
	const int type = v->g->value[x].type;

	return type == JIT_TYPE_F32 || type == JIT_TYPE_F64;
}

/* Whether an expression may have the value's node inside itself. */
static bool enters(const struct row_view *v, tensor_value x, bool is_row)
{
	const struct tensor_node *n = tensor_node_of(v->g, x);
	const uint8_t home = v->home[x];

	if (!n || n->op == OP_constant || v->product[x] || v->banned[x])
		return false;
	const bool fits =
		is_reduction(n) ? is_row && is_float(v, x)
				: tensor_op_is_elementwise(n->op) || n->op == OP_reshape || n->op == OP_broadcast;
	if (home == HOME_INLINE || !fits)
		return fits && home == HOME_INLINE;
	return v->needed && !v->needed[x] && (home == HOME_ALIAS || (home == HOME_STORED && is_float(v, x)));
}

/* Whether the last dimensions go, and are one row. */
static bool reduces_rows(const struct row_view *v, const struct row_trace *t, const struct tensor_node *n)
{
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);
	const struct shape *from = shape_of(v, n->operand[0]);
	uint64_t gone = 1;

	for (unsigned d = 0; d < from->rank; d++) {
		const bool goes = attribute_has(axes, d);
		if (from->dim[d] == 1)
			continue;
		if (!goes && gone > 1)
			return false;
		gone *= goes ? from->dim[d] : 1;
	}
	return gone == t->columns && shape_elements(from) == t->rows * t->columns;
}

/* Whether a broadcast repeats one number for each row. */
static bool repeats_rows(const struct row_view *v, const struct row_trace *t, const struct tensor_node *n)
{
	const struct attribute *axes = tensor_node_attribute(n, ATTRIBUTE_axes);
	const struct shape *from = shape_of(v, n->operand[0]), *to = shape_of(v, n->first);
	uint64_t rows = 1;
	unsigned d = 0, k = 0;

	/* Leading dimensions of the result up to a row, each of which the operand has at the same index. */
	while (d < to->rank && rows < t->rows)
		rows *= to->dim[d++];
	if (rows != t->rows || shape_elements(from) != t->rows)
		return false;
	for (unsigned i = 0; i < d; i++) {
		if (to->dim[i] == 1)
			continue;
		while (k < from->rank && from->dim[k] == 1)
			k++;
		if (k == from->rank || axes->whole[k] != (int64_t)i || from->dim[k] != to->dim[i])
			return false;
		k++;
	}
	return true;
}

/* Arrays that the expression of a value reads, which is no part of the trace. */
static uint32_t reads_of(const struct row_view *v, tensor_value x)
{
	return v->home[x] == HOME_INLINE ? (v->needed ? v->reads[x] : 0) : !partition_is_literal(v->g, x);
}

static bool visit(struct row_trace *t, const struct row_view *v, tensor_value x, bool is_row);

static bool visit_operands(struct row_trace *t, const struct row_view *v, const struct tensor_node *n, bool is_row)
{
	if (is_reduction(n))
		return visit(t, v, n->operand[0], false);
	if (n->op == OP_broadcast) {
		const bool same = shape_elements(shape_of(v, n->operand[0])) == shape_elements(shape_of(v, n->first));
		if (!is_row && !same && repeats_rows(v, t, n))
			return visit(t, v, n->operand[0], true);
		t->reads += reads_of(v, n->operand[0]);
		return true;
	}
	for (uint32_t k = 0; k < n->operands; k++)
		if (!visit(t, v, n->operand[k], is_row))
			return false;
	return true;
}

static bool visit(struct row_trace *t, const struct row_view *v, tensor_value x, bool is_row)
{
	const struct tensor_node *n = tensor_node_of(v->g, x);
	const bool is_end = t->nodes == 0;

	if (!is_end && (!enters(v, x, is_row) || (is_reduction(n) && !reduces_rows(v, t, n)))) {
		t->reads += reads_of(v, x);
		return true;
	}
	for (uint32_t i = 0; i < t->nodes; i++)
		if (t->node[i] == v->g->value[x].node) {
			t->used[i]++;
			return t->is_row[i] == is_row;
		}
	if (t->nodes == ROW_NODES_MAX)
		return false;
	t->is_row[t->nodes] = is_row;
	t->used[t->nodes] = 1;
	t->node[t->nodes++] = v->g->value[x].node;
	t->reductions += is_reduction(n);
	t->stored += !is_end && v->home[x] == HOME_STORED;
	return visit_operands(t, v, n, is_row);
}

static void sort(struct row_trace *t)
{
	for (uint32_t i = 1; i < t->nodes; i++)
		for (uint32_t k = i; k > 0 && t->node[k - 1] > t->node[k]; k--) {
			const uint32_t node = t->node[k], used = t->used[k];
			const bool is_row = t->is_row[k];
			t->node[k] = t->node[k - 1];
			t->used[k] = t->used[k - 1];
			t->is_row[k] = t->is_row[k - 1];
			t->node[k - 1] = node;
			t->used[k - 1] = used;
			t->is_row[k - 1] = is_row;
		}
}

bool partition_rows_trace(struct row_trace *t, const struct row_view *v, uint32_t end, uint64_t columns)
{
	const struct tensor_node *n = &v->g->node[end];
	const struct shape *s = shape_of(v, n->first);

	*t = (struct row_trace){ 0 };
	if (!columns || !shape_elements(s) || shape_elements(s) % columns)
		return false;
	t->columns = columns;
	t->rows = shape_elements(s) / columns;
	if (!visit(t, v, n->first, false) || t->reads > ROW_READS_MAX)
		return false;
	sort(t);
	return true;
}

bool partition_rows_again(const struct partition *p, const struct tensor_graph *g, uint32_t end, uint64_t columns,
                          struct row_trace *t)
{
	const struct row_view v = { .g = g, .home = p->home, .product = p->product, .banned = p->none };

	return partition_rows_trace(t, &v, end, columns);
}

bool partition_rows_tile(const struct tensor_graph *g, const struct row_trace *t, uint32_t i)
{
	const struct tensor_node *n = &g->node[t->node[i]];

	if (t->is_row[i] || t->used[i] < 2 || i + 1 == t->nodes)
		return false;
	switch (n->op) {
	case OP_exp:
	case OP_log:
	case OP_sin:
	case OP_cos:
	case OP_tanh:
	case OP_erf:
	case OP_pow:
	case OP_logistic:
	case OP_div:
	case OP_sqrt:
	case OP_rsqrt: return true;
	default: return false;
	}
}

uint64_t partition_rows_tile_bytes(const struct tensor_graph *g, const struct row_trace *t, uint32_t *tiles)
{
	uint64_t bytes = 0;

	*tiles = 0;
	for (uint32_t i = 0; i < t->nodes; i++)
		if (partition_rows_tile(g, t, i)) {
			bytes += t->columns * tensor_type_bytes(g->value[g->node[t->node[i]].first].type);
			++*tiles;
		}
	return bytes;
}

/* Bans what others read, too. False: nothing was. */
static bool ban(const struct row_view *v, const struct row_trace *t)
{
	bool bad[ROW_NODES_MAX] = { false }, any = false;

	for (uint32_t i = t->nodes - 1; i-- > 0;) {
		const tensor_value x = v->g->node[t->node[i]].first;
		uint32_t seen = 0;
		for (uint32_t u = i + 1; u < t->nodes; u++) {
			const struct tensor_node *user = &v->g->node[t->node[u]];
			for (uint32_t k = 0; k < user->operands; k++)
				if (user->operand[k] == x) {
					seen++;
					bad[i] = bad[i] || bad[u];
				}
		}
		bad[i] = bad[i] || seen != v->users[x];
		if (bad[i] && v->home[x] != HOME_INLINE)
			any = v->banned[x] = true;
	}
	return any;
}

static bool is_worth(const struct row_view *v, const struct row_trace *t, unsigned lanes)
{
	enum { ROWS = 16, SMALL = 1 << 14, NARROW = 8, TILES = 2 };
	enum { WIDE = 1 << 16, WIDE_TILES = 8192, WIDE_ON_CARDS = 4096 };
	uint32_t tiles;
	const uint64_t bytes = partition_rows_tile_bytes(v->g, t, &tiles),
		       max = lanes == 0 ? WIDE_ON_CARDS
	                     : tiles    ? WIDE_TILES
	                                : WIDE;

	if (lanes == 0 && tiles > 1 && bytes > CARD_TILE_BYTES)
		return false;
	return t->reductions && t->stored && tiles <= TILES && t->columns >= NARROW && t->columns <= max &&
	       (t->rows >= ROWS || t->rows * t->columns <= SMALL);
}

static bool find(const struct row_view *v, uint8_t *home, uint32_t end, uint64_t columns, unsigned lanes)
{
	struct row_trace t;

	do {
		if (!partition_rows_trace(&t, v, end, columns))
			return false;
	} while (ban(v, &t));
	if (!is_worth(v, &t, lanes))
		return false;
	for (uint32_t i = 0; i + 1 < t.nodes; i++) {
		const struct tensor_node *n = &v->g->node[t.node[i]];
		if (home[n->first] == HOME_STORED ||
		    (home[n->first] == HOME_ALIAS && home[n->operand[0]] == HOME_INLINE))
			home[n->first] = HOME_INLINE;
	}
	return true;
}

/* The elements of a row of the nearest reduction in front of a node whose operand has as many elements as the node's
 * result, and whose rows do not have `other` elements; 0: there is none. */
static uint64_t columns_before(const struct row_view *v, uint32_t end, uint64_t other)
{
	const uint64_t all = shape_elements(shape_of(v, v->g->node[end].first));

	for (uint32_t i = end; i-- > 0 && end - i < ROW_NODES_MAX;) {
		const struct tensor_node *n = &v->g->node[i];
		if (!is_reduction(n) || shape_elements(shape_of(v, n->operand[0])) != all || !all)
			continue;
		const uint64_t columns = all / shape_elements(shape_of(v, n->first));
		if (columns != other)
			return columns;
	}
	return 0;
}

void partition_rows_find(const struct row_view *v, uint8_t *home, uint64_t *ends, unsigned lanes)
{
	for (uint32_t i = v->g->nodes; i-- > 0;) {
		const struct tensor_node *n = &v->g->node[i];
		if (n->results != 1 || home[n->first] != HOME_STORED || v->product[n->first] ||
		    !tensor_op_is_elementwise(n->op))
			continue;
		const struct shape *s = shape_of(v, n->first);
		uint64_t columns = s->rank ? s->dim[s->rank - 1] : 0;
		for (int k = 0; k < 2 && columns && !ends[i]; k++) { /* rows of the last dimension, or of several */
			memset(v->banned, 0, v->g->values * sizeof *v->banned);
			if (find(v, home, i, columns, lanes))
				ends[i] = columns;
			columns = columns_before(v, i, columns);
		}
	}
}
