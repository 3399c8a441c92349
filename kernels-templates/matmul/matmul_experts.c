/* kernels-templates/matmul/matmul_experts.c - matmuls whose weights are chosen by data: which matrix, which columns.
 *
 * Owns: how a kernel reads its routes (docs/kernel-templates.md, EXPERTS), and what such a key must satisfy. A column's
 * dot is that of any other matmul: which columns share a tile changes nothing.
 */
#include <stddef.h>

#include "kernels-templates/matmul/matmul.h"

int64_t matmul_expert_bytes(const struct key *key, int64_t block_bytes)
{
	return (int64_t)(numerics_pad(key->rows) / 32) * block_bytes * (key->flags & KEY_PAIR ? 2 : 1);
}

static struct matmul_route load_slot(struct ir *b, const struct key *key, ir_a routes, ir_s slot)
{
	ir_s token = ir_sdivi(b, slot, key->heads);
	/* From the first slot of its token. */
	ir_s within = ir_ssub(b, slot, ir_smuli(b, token, key->heads));
	ir_s at = ir_sadd(b, ir_smuli(b, token, ROUTE_MOST * 4), ir_sshli(b, within, 2));

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
