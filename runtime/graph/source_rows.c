/* runtime/graph/source_rows.c - a kernel of which each instance computes a row, with the reductions that it needs. */
#include <inttypes.h>
#include <string.h>

#include "runtime/graph/source_rows.h"

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

/* The element j of the row, in the shape of v. */
static struct position in_row(struct source *s, const struct row_trace *t, tensor_value v)
{
	const struct shape *shape = &info(s, v)->shape;
	struct position at = { .flat = source_text(s, "(i * %" PRIu64 " + j)", t->columns) }, row = { .flat = "i" };

	struct position own = { .flat = "j" };
	struct shape lead = { .rank = shape->rank }, rest = { 0 };

	while (lead.rank && shape_part(shape, lead.rank, shape->rank) < t->columns)
		lead.rank--;
	if (shape_part(shape, lead.rank, shape->rank) != t->columns || shape_elements(shape) != t->rows * t->columns)
		return at;
	memcpy(lead.dim, shape->dim, lead.rank * sizeof *lead.dim);
	rest.rank = shape->rank - lead.rank;
	memcpy(rest.dim, shape->dim + lead.rank, rest.rank * sizeof *rest.dim);
	position_dims(s, &lead, &row);
	position_dims(s, &rest, &own);
	memcpy(at.dim, row.dim, lead.rank * sizeof *at.dim);
	memcpy(at.dim + lead.rank, own.dim, rest.rank * sizeof *at.dim);
	at.has_dims = true;
	return at;
}

static void put_reduction(struct source *s, const struct row_trace *t, const struct tensor_node *n, const char *name)
{
	const char *word = n->op == OP_reduce_sum ? "sum" : n->op == OP_reduce_max ? "max" : "min";

	s->inlines = true;
	const char *x = source_element(s, n->operand[0], in_row(s, t, n->operand[0]));
	s->inlines = false;
	source_line(s, "%s %s = %s(j in 0..%" PRIu64 ": %s);", tensor_type_name(info(s, n->first)->type), name, word,
	            t->columns, x);
}

/* Each element of the row goes into an array, whose subscript of it that is. */
static void put_each(struct source *s, const struct row_trace *t, const struct tensor_node *n, const char *to)
{
	const size_t seen = s->n_seen;

	source_line(s, "each (j in 0..%" PRIu64 ") {", t->columns);
	const struct position at = in_row(s, t, n->first);
	source_line(s, "%s = %s;", to, source_stored(s, info(s, n->first)->type, source_computed(s, n, at)));
	source_line(s, "}");
	s->n_seen = seen;
}

static void put_node(struct source *s, const struct row_trace *t, uint32_t i, bool has_tiles)
{
	const struct tensor_node *n = &s->g->node[t->node[i]];
	const char *name = source_text(s, "r%u", i);

	if (has_tiles && partition_rows_tile(s->g, t, i)) {
		name = source_text(s, "%s[j]", name);
		put_each(s, t, n, name);
		source_line(s, "sync;");
	} else if (t->is_row[i] && tensor_ops[n->op].kind == KIND_REDUCE) {
		put_reduction(s, t, n, name);
	} else if (t->is_row[i] && tensor_op_is_elementwise(n->op)) {
		name = source_local(s, tensor_type_name(tensor_wide_type(info(s, n->first)->type)),
		                    source_computed(s, n, (struct position){ .flat = "i" }));
	} else {
		return;
	}
	s->row[s->rows++] = (struct source_row){ n->first, name };
}

void source_row_tiles(struct source *s, const struct row_trace *t)
{
	for (uint32_t i = 0; i + 1 < t->nodes; i++)
		if (partition_rows_tile(s->g, t, i))
			source_line(s, "tile %s r%u[%" PRIu64 "];",
			            source_type(info(s, s->g->node[t->node[i]].first)->type), i, t->columns);
}

static void put_row(struct source *s, const struct row_trace *t, const char *to, bool has_tiles)
{
	for (uint32_t i = 0; i + 1 < t->nodes; i++)
		put_node(s, t, i, has_tiles);
	put_each(s, t, &s->g->node[t->node[t->nodes - 1]], to);
}

void source_row(struct source *s, const struct row_trace *t, const char *to) { put_row(s, t, to, true); }

/* A kernel with a tile keeps no rows (language/lower_kept.c). Without one, what is dear is written twice, and computed
 * once. */
static bool needs_tiles(const struct source *s, const struct row_trace *t)
{
	uint32_t tiles;
	const uint64_t bytes = partition_rows_tile_bytes(s->g, t, &tiles);

	return s->lanes || tiles > 1 || (!s->keeps_rows && bytes <= CARD_TILE_BYTES);
}

void source_rows(struct source *s, const struct tensor_node *n, uint64_t columns)
{
	struct row_trace t;

	if (!partition_rows_again(s->p, s->g, s->g->value[n->first].node, columns, &t)) {
		s->lost = true;
		return;
	}
	bytes_print(&s->head, "i in %" PRIu64, t.rows);
	const bool has_tiles = needs_tiles(s, &t);
	if (has_tiles)
		source_row_tiles(s, &t);
	put_row(s, &t, source_text(s, "o[i * %" PRIu64 " + j]", t.columns), has_tiles);
}
