/* runtime/graph/source_attention.c - the kernel of attention, an instance of which has a block of queries.
 *
 * Owns: its text. Lanes are keys while scores are made, the keys of one query while they become shares, and elements
 * of a value in the end. Each sum is the chain that a product by itself has. Where the last block has fewer queries,
 * the last one is computed again, and stored once: subscripts beside an array write nothing.
 */
#include <inttypes.h>

#include "runtime/graph/partition_attention.h"
#include "runtime/graph/source_rows.h"

struct attending {
	struct attention a;
	const char *type, *query[SOURCE_ROWS_MAX]; /* the number of each of a block's queries, as a text */
};

/* Where an operand has [batch][sum][own], so that lanes read neighbours: the operand, or a copy. */
struct lines {
	const char *array, *at; /* element n of line k of batch b: array[at + n] */
};

static struct lines find_lines(struct source *s, tensor_value v, const struct side *side)
{
	const uint64_t own = shape_elements(&side->own.shape), sums = shape_elements(&side->sum.shape);
	uint64_t stride, line;

	if (through_is_straight(&side->own, &stride) && (stride == 1 || own == 1) &&
	    through_is_straight(&side->sum, &line))
		return (struct lines){ source_array(s, v), source_text(s, "%s + k * %" PRIu64,
			                                               through_distance(s, &side->batch, "b"), line) };
	return (struct lines){ prepare_lines(s, v, side),
		               source_text(s, "b * %" PRIu64 " + k * %" PRIu64, sums * own, own) };
}

/* The sums of a block for the lane n: x[r] with each line. */
static void put_sums(struct source *s, const struct attending *t, const struct lines *y, const char *const x[],
                     uint64_t lines)
{
	for (unsigned r = 0; r < t->a.block; r++)
		source_line(s, "%s s%u = 0;", t->type, r);
	source_line(s, "for (k in 0..%" PRIu64 ")%s {", lines, s->lanes ? " unroll(4)" : "");
	source_line(s, "%s y = %s[%s + n];", t->type, y->array, y->at);
	for (unsigned r = 0; r < t->a.block; r++)
		source_line(s, "s%u = fma(%s, y, s%u);", r, x[r], r);
	source_line(s, "}");
}

static void put_queries(struct source *s, struct attending *t)
{
	const bool whole = t->a.queries % t->a.block == 0;

	for (unsigned r = 0; r < t->a.block; r++) {
		const char *at = source_text(s, "m * %u + %u", t->a.block, r);
		t->query[r] = source_local(s, "i32",
		                           whole ? at : source_text(s, "min(%s, %" PRIu64 ")", at, t->a.queries - 1));
	}
}

/* Scores, and what is computed of each by itself. */
static void put_scores(struct source *s, const struct attending *t)
{
	const struct attention *a = &t->a;
	const struct side *q = &a->key[0];
	const struct lines keys = find_lines(s, a->by_keys->operand[1], &a->key[1]);
	const char *array = source_array(s, a->by_keys->operand[0]), *x[SOURCE_ROWS_MAX],
		   *step = through_distance(s, &q->sum, "k");

	for (unsigned r = 0; r < a->block; r++) {
		const char *first = source_local(s, "i32",
		                                 source_text(s, "%s + %s", through_distance(s, &q->batch, "b"),
		                                             through_distance(s, &q->own, t->query[r])));
		x[r] = source_text(s, "%s[%s + %s]", array, first, step);
	}
	source_line(s, "each (n in 0..%" PRIu64 ") {", a->keys);
	put_sums(s, t, &keys, x, a->depth);
	source_forget(s);
	for (unsigned r = 0; r < a->block; r++) {
		s->row[s->rows++] = (struct source_row){ a->by_keys->first, source_text(s, "s%u", r) };
		const char *score = source_element(s, a->scores, product_position(s, a->key, "b", t->query[r], "n"));
		s->rows--;
		source_line(s, "c[%u][n] = %s;", r, score);
	}
	source_line(s, "}");
	source_line(s, "sync;");
	source_forget(s);
}

/* Softmax of the scores, in place. */
static void put_shares(struct source *s, const struct attending *t)
{
	const struct attention *a = &t->a;
	const unsigned rows = s->rows;
	const char *query = source_text(s, "m * %u + r", a->block);

	if (a->queries % a->block)
		query = source_text(s, "min(%s, %" PRIu64 ")", query, a->queries - 1);
	source_line(s, "for (r in 0..%u) {", a->block);
	source_line(s, "i32 i = b * %" PRIu64 " + %s;", a->queries, query);
	s->row[s->rows++] = (struct source_row){ a->read, "c[r][j]" };
	source_row(s, &a->rows, "c[r][j]");
	source_line(s, "sync;");
	source_line(s, "}");
	s->rows = rows;
	source_forget(s);
}

static void put_values(struct source *s, const struct attending *t)
{
	const struct attention *a = &t->a;
	const struct lines values = find_lines(s, a->by_values->operand[1], &a->value[1]);
	const char *x[SOURCE_ROWS_MAX];

	for (unsigned r = 0; r < a->block; r++)
		x[r] = source_text(s, "c[%u][k]", r);
	source_line(s, "each (n in 0..%" PRIu64 ") {", a->width);
	put_sums(s, t, &values, x, a->keys);
	for (unsigned r = 0; r < a->block; r++) {
		const char *sum = source_text(s, "s%u", r);
		if (s->end != a->by_values)
			sum = source_finished(s, sum, product_position(s, a->value, "b", t->query[r], "n"));
		source_line(s, "scatter_distinct(o[b][m * %u + %u][n], %s);", a->block, r, sum);
	}
	source_line(s, "}");
}

void source_attention(struct source *s, const struct tensor_node *n, const struct group *group)
{
	struct attending t = { .type = tensor_type_name(s->g->value[n->first].type) };
	const struct attention *a = &t.a;

	if (!partition_attention_again(s->p, s->g, group, s->lanes, &t.a)) {
		s->lost = true;
		return;
	}
	bytes_print(&s->head, "b in %" PRIu64 ", m in %" PRIu64, a->batches, (a->queries + a->block - 1) / a->block);
	source_line(s, "tile %s c[%u][%" PRIu64 "];", t.type, a->block, a->keys);
	source_row_tiles(s, &a->rows);
	put_queries(s, &t);
	put_scores(s, &t);
	put_shares(s, &t);
	put_values(s, &t);
	s->out = source_text(s, "[%" PRIu64 "][%" PRIu64 "][%" PRIu64 "]", a->batches, a->queries, a->width);
}
