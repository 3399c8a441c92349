/* runtime/plan/plan_adapt.c - rules of adapters: what a pass's tokens add to the products of matrices, each by its own
 * adapters (numerics.h rule 19).
 *
 * Owns: the cut of a pass into tiles, each of columns of one sequence. A plan has its tiles from its spans; which set
 * of adapters each sequence has, the host says before each run.
 */
#include <stdlib.h>

#include "runtime/plan/lower.h"

static bool has_users(const struct weights_matrix *w) { return w && w->site && atomic_load(&w->site->users); }

bool plan_adapts(const struct plan_builder *b, const struct weights_matrix *w)
{
	return b->opt->adapts && has_users(w);
}

/* A pair's two matrices are both adapted or none is, so that one kernel does both. */
static bool node_adapts(const struct plan_builder *b, const struct graph_node *n)
{
	return plan_adapts(b, graph_matrix_of(b->g, n->in[IN_W])) ||
	       (plan_pair_of(b, n) && plan_adapts(b, graph_matrix_of(b->g, n->in[IN_W2])));
}

static bool is_scaled(const struct plan_builder *b, graph_ref matrix)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, matrix);

	return plan_adapts(b, w) && atomic_load(&w->site->scaled);
}

bool plan_scales(const struct plan_builder *b, const struct graph_node *n, unsigned in)
{
	if (plan_pair_of(b, n))
		return is_scaled(b, n->in[IN_W]) || is_scaled(b, n->in[IN_W2]);
	return is_scaled(b, n->in[in]);
}

/* The node of a product that adds what this node makes, or what is made of it. */
static const struct graph_node *product_of(const struct plan_builder *b, const struct graph_node *n)
{
	const struct graph_node *user = &b->g->node[graph_value(b->g, n->out[0])->last_user];

	return n->kind == NODE_ADAPT_DOWN ? product_of(b, user) : user;
}

/* Whether tokens may have rows of their own in place of that embedding's. */
static bool has_whole(const struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]);

	return b->opt->adapts && w->site && atomic_load(&w->site->whole);
}

bool plan_is_idle(const struct plan_builder *b, const struct graph_node *n)
{
	if (n->kind == NODE_ADAPT_TOKENS)
		return b->opt->shows || (!plan_adapts(b, graph_matrix_of(b->g, n->in[IN_W])) && !has_whole(b, n));
	if (n->kind != NODE_ADAPT_DOWN && n->kind != NODE_ADAPT_UP)
		return false;
	const struct graph_node *product = product_of(b, n);

	return plan_pair_of(b, product) ? !node_adapts(b, product)
	                                : !plan_adapts(b, graph_matrix_of(b->g, n->in[IN_W]));
}

const float *plan_added(const struct plan_builder *b, const struct graph_node *n, unsigned in)
{
	const struct graph_node *by = graph_producer(b->g, n->in[in]);

	return n->in[in] && by && !plan_is_idle(b, by) ? plan_floats(b, n->in[in]) : NULL;
}

/* ---- tiles */

static uint32_t tiles_for(uint32_t columns) { return (columns + ADAPT_TILE - 1) / ADAPT_TILE; }

/* Of the pass's tokens; of the rows of logits that are wanted, which come behind those. */
static uint32_t tiles_of(const struct plan_builder *b, bool rows)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->spans; i++)
		n += tiles_for(rows ? b->span[i].rows : b->span[i].tokens);
	return n;
}

static void cut(struct plan *p, uint32_t first, uint32_t n, uint32_t sequence)
{
	for (uint32_t at = 0; at < n; at += ADAPT_TILE) {
		const uint32_t left = n - at;
		p->adapt_tile[p->n_adapt_tiles++] =
			(struct adapt_tile){ .first = (int32_t)(first + at),
			                     .columns = (int32_t)(left < ADAPT_TILE ? left : ADAPT_TILE),
			                     .set = (int32_t)sequence };
	}
}

bool plan_cut_adapted(const struct plan_builder *b)
{
	struct plan *p = b->p;
	uint32_t row = 0;

	p->adapt_tile = malloc((tiles_of(b, false) + tiles_of(b, true)) * sizeof *p->adapt_tile);
	if (!p->adapt_tile)
		return false;
	for (uint32_t i = 0; i < b->spans; i++)
		cut(p, b->span[i].first, b->span[i].tokens, i);
	for (uint32_t i = 0; i < b->spans; row += b->span[i++].rows)
		cut(p, row, b->span[i].rows, i);
	return true;
}

/* ---- rules */

static void set_tables(const struct plan_builder *b, uint64_t *a, const struct weights_site *site, const uint8_t *table)
{
	a[ADAPT_TILES] = plan_address(b->buf->adapt_tiles);
	a[ADAPT_SET] = plan_address(b->buf->adapt_sets);
	a[ADAPT_FACTS] = plan_address(site->facts);
	a[ADAPT_TABLE] = plan_address(table);
	a[ADAPT_COLUMNS] = b->n;
}

/* Of experts: whose matrices each slot has, and where its column is. by_slots: the input is of slots. */
static void set_experts(const struct plan_builder *b, struct key *key, const struct graph_node *n, bool by_slots)
{
	if (!n->in[IN_INTO])
		return;
	key->flags |= KEY_EXPERTS | (plan_sorts_slots(b) ? KEY_SORTED : 0);
	key->heads = b->spec->experts_used;
	key->kv_heads = by_slots ? 1 : key->heads;
}

static void set_slots(const struct plan_builder *b, uint64_t *a, const struct graph_node *n)
{
	if (!n->in[IN_INTO])
		return;
	a[ADAPT_COLUMNS] = (uint64_t)b->n * b->spec->experts_used;
	a[ADAPT_CHOSEN] = plan_address(plan_at(b, n->in[IN_INTO], CHOICE_CHOSEN));
	a[ADAPT_POSITIONS] = plan_sorts_slots(b) ? plan_address(plan_at(b, n->in[IN_INTO], CHOICE_POSITIONS)) : 0;
}

void lower_adapt_down(struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]);
	struct key key = plan_key(b, KEY_ADAPT_DOWN);

	if (plan_is_idle(b, n))
		return;
	const struct graph_node *by = graph_producer(b->g, n->in[IN_X]);
	key.k = (uint32_t)w->k;
	key.rows = w->site->ranks;
	set_experts(b, &key, n, by && by->kind == NODE_EXPERTS);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)tiles_of(b, false) * ADAPT_PARTS);
	a[ADAPT_IN] = plan_address(plan_floats(b, n->in[IN_X]));
	a[ADAPT_OUT] = plan_address(plan_floats(b, n->out[0]));
	set_tables(b, a, w->site, w->site->down);
	set_slots(b, a, n);
}

void lower_adapt_up(struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]);
	struct key key = plan_key(b, KEY_ADAPT_UP);

	if (plan_is_idle(b, n))
		return;
	const struct graph_node *product = product_of(b, n);
	key.k = w->site->ranks;
	key.rows = (uint32_t)w->rows;
	key.flags = plan_scales(b, product, product->in[IN_W2] == n->in[IN_W] ? IN_W2 : IN_W) ? KEY_SCALED : 0;
	set_experts(b, &key, n, true);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(tiles_of(b, false) * (numerics_pad(w->rows) / 32)));
	a[ADAPT_IN] = plan_address(plan_floats(b, n->in[IN_X]));
	a[ADAPT_OUT] = plan_address(plan_floats(b, n->out[0]));
	set_tables(b, a, w->site, w->site->up);
	set_slots(b, a, n);
}

/* The products are those of a row of the first matrix, which the host reads. */
static void add_products(struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]);
	struct key key = plan_key(b, KEY_ADAPT_UP);

	key.k = w->site->ranks;
	key.rows = (uint32_t)w->k;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(tiles_of(b, false) * (numerics_pad(w->k) / 32)));
	a[ADAPT_IN] = plan_address(b->buf->adapt_tokens);
	a[ADAPT_OUT] = plan_address(plan_floats(b, n->out[1]));
	set_tables(b, a, w->site, w->site->up);
	plan_scale(b, plan_floats(b, n->out[1]), plan_floats(b, plan_added_to(b, n)), b->n, w->k, plan_f32_slot(1),
	           KEY_RESIDUAL);
}

void lower_adapt_tokens(struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]);

	if (plan_is_idle(b, n))
		return;
	if (has_whole(b, n)) {
		float *to = plan_floats(b, plan_added_to(b, n));
		plan_scale(b, to, to, b->n, w->k, plan_address(b->buf->adapt_factors), KEY_PAIR);
		plan_scale(b, b->buf->adapt_whole, to, b->n, w->k, plan_f32_slot(1), KEY_RESIDUAL);
	}
	if (plan_adapts(b, w))
		add_products(b, n);
}

static void set_rows(const struct plan_builder *b, uint64_t *a, uint32_t rows)
{
	a[ADAPT_TILES] = plan_address(b->buf->adapt_tiles) + tiles_of(b, false) * sizeof(struct adapt_tile);
	a[ADAPT_COLUMNS] = rows;
}

void plan_adapt_logits(struct plan_builder *b, const struct graph_node *node, uint32_t rows)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, node->in[IN_W]);
	struct key key = plan_key(b, KEY_ADAPT_DOWN);

	key.k = (uint32_t)w->k;
	key.rows = w->site->ranks;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)tiles_of(b, true) * ADAPT_PARTS);
	a[ADAPT_IN] = plan_address(plan_floats(b, node->out[1]));
	a[ADAPT_OUT] = plan_address(plan_floats(b, node->out[2]));
	set_tables(b, a, w->site, w->site->down);
	set_rows(b, a, rows);
	key = plan_key(b, KEY_ADAPT_UP);
	key.k = w->site->ranks;
	key.rows = (uint32_t)w->rows;
	a = plan_add_op(b, &key, 0, (int64_t)(tiles_of(b, true) * (numerics_pad(w->rows) / 32)));
	a[ADAPT_IN] = plan_address(plan_floats(b, node->out[2]));
	a[ADAPT_OUT] = plan_address(b->buf->logits);
	set_tables(b, a, w->site, w->site->up);
	set_rows(b, a, rows);
}

bool plan_replaces_head(const struct plan_builder *b) { return plan_adapts(b, &b->w->head_whole); }

void plan_replace_logits(struct plan_builder *b, const struct graph_node *node, uint32_t rows)
{
	const struct weights_matrix *w = &b->w->head_whole;
	struct key key = plan_key(b, KEY_ADAPT_DOWN);

	key.k = (uint32_t)w->k;
	key.rows = (uint32_t)(w->rows + ADAPT_RANKS - 1) / ADAPT_RANKS * ADAPT_RANKS;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)tiles_of(b, true) * ADAPT_PARTS);
	a[ADAPT_IN] = plan_address(plan_floats(b, node->out[1]));
	a[ADAPT_OUT] = plan_address(b->buf->logits);
	set_tables(b, a, w->site, w->site->down);
	set_rows(b, a, rows);
}
