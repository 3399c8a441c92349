/* kernels-templates/matmul/matmul_source.c - where weights and inputs of a tile lie in memory, or in the shared bytes
 * where the group has put them; and matmuls whose weights are chosen by data: which matrix, which columns.
 *
 * Owns: these addresses, for cards; how a kernel reads its routes (docs/kernel-templates.md, EXPERTS), for all targets.
 * A column's dot is that of any other matmul: which columns share a tile changes nothing. How inputs come to shared
 * bytes is matmul_await.c, matmul_stage.c and kinds/norm.c; how weights come ahead is matmul_ahead.c.
 */
#include <stddef.h>

#include "kernels-templates/formats/weight_vectors.h"
#include "kernels-templates/matmul/matmul.h"

/* ---- weights and inputs of a group's job */

ir_a matmul_group_weights(const struct matmul_group *g, const struct matmul_job *j)
{
	struct ir *b = g->b;
	const int64_t bytes = g->recipe->block_bytes;
	ir_s at = ir_smuli(b, j->number, bytes);

	if (g->recipe->source == MATMUL_FROM_ROUTES)
		at = ir_sadd(b, at, ir_smuli(b, j->expert, matmul_expert_bytes(g->key, bytes)));
	return ir_aadd(b, matmul_group_arg(g, MATMUL_W), at);
}

void matmul_group_heads(const struct matmul_group *g, const struct matmul_job *j, ir_a weights, struct weight_reader *r)
{
	const struct weight_format *f = g->recipe->format;

	if (!f->head_bytes)
		return;
	r->heads = ir_aaddi(g->b, weights, (int64_t)g->span_units * g->recipe->spans * weight_vectors_unit(f));
	r->first = ir_smuli(g->b, j->span, g->span_units);
}

/* The column tile's beginning, plus the head's and the span's; column_bytes: of one head. */
ir_a matmul_group_input(const struct matmul_group *g, const struct matmul_job *j, unsigned slot, int64_t column_bytes)
{
	struct ir *b = g->b;
	const struct matmul_recipe *r = g->recipe;
	if (matmul_makes_input(r)) /* whose tile is there already */
		return ir_aadd(b, slot == MATMUL_X ? g->in : g->ins,
		               ir_smuli(b, j->span, column_bytes / g->recipe->spans));
	unsigned heads = matmul_heads(g->key), columns = r->source == MATMUL_FROM_ROUTES ? 1 : g->key->tile_n;
	ir_a column = ir_aadd(b, matmul_group_arg(g, slot), ir_smuli(b, j->tile, columns * column_bytes * heads));
	if (r->source == MATMUL_FROM_HEADS)
		column = ir_aadd(b, column, ir_smuli(b, matmul_head(b, g->key, j->number), column_bytes));
	return ir_aadd(b, column, ir_smuli(b, j->span, column_bytes / g->recipe->spans));
}

ir_s matmul_group_first(const struct matmul_group *g, ir_s tile)
{
	struct ir *b = g->b;
	const unsigned n = g->recipe->source == MATMUL_FROM_ROUTES ? 1 : g->key->tile_n;
	ir_s first = n > 1 ? ir_smuli(b, tile, n) : tile;

	if (g->recipe->short_last) {
		ir_s columns = ir_sload64(b, g->arg, MATMUL_COLUMNS * 8);
		first = ir_smin(b, first, ir_saddi(b, columns, -(int64_t)n));
	}
	return first;
}

/* ---- routes */

int64_t matmul_expert_bytes(const struct key *key, int64_t block_bytes)
{
	return (int64_t)(numerics_pad(key->rows) / 32) * block_bytes * (key->flags & KEY_PAIR ? 2 : 1);
}

static struct matmul_route load_slot(struct ir *b, const struct key *key, ir_a routes, ir_s slot)
{
	ir_s token = ir_sdivi(b, slot, key->heads);
	/* From the first slot of its token. */
	ir_s within = ir_ssub(b, slot, ir_smuli(b, token, key->heads));
	ir_s at = ir_sadd(b, ir_smuli(b, token, ROUTE_MAX * 4), ir_sshli(b, within, 2));

	return (struct matmul_route){ .expert = ir_sload32(b, ir_aadd(b, routes, at), 0),
		                      .in = key->kv_heads == key->heads ? token
		                            : key->kv_heads == 1        ? slot
		                                                        : ir_sdivi(b, slot, key->kv_heads),
		                      .out = slot };
}

struct matmul_route matmul_route_load(struct ir *b, const struct key *key, ir_a routes, ir_s number)
{
	if (key->tile_n == 1)
		return load_slot(b, key, routes, number);
	ir_a group = ir_aadd(b, routes, ir_smuli(b, number, sizeof(struct route_group)));
	ir_s first = ir_sload32(b, group, offsetof(struct route_group, first));
	ir_s expert = ir_sload32(b, group, offsetof(struct route_group, expert));
	return (struct matmul_route){ expert, first, first,
		                      ir_sload32(b, group, offsetof(struct route_group, columns)) };
}

void matmul_route_tiles(struct ir *b, const struct key *key, const struct matmul_route *r, unsigned width)
{
	ir_s tiles = ir_sshri(b, r->columns, __builtin_ctz(width));

	ir_loop(b, width == key->tile_n ? tiles : ir_sandi(b, tiles, 1));
}
