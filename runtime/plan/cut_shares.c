/* runtime/plan/cut_shares.c - see cut_shares.h. */
#include "runtime/plan/cut_shares.h"

uint64_t cut_share_begin(const struct cut_shares *c, unsigned rank, uint64_t n)
{
	uint64_t before = 0, all = 0;

	for (unsigned r = 0; r < c->ranks; r++) {
		before += r < rank ? c->share[r] : 0;
		all += c->share[r];
	}
	return (n * before + all / 2) / all;
}

static uint64_t blocks_of(const struct model_tensor *t) { return t->rows / 32 + (t->rows % 32 != 0); }

/* Heads of keys by which its rows lie; 0: by none. */
static uint64_t heads_of(const struct model_spec *s, const struct model_tensor *t)
{
	for (uint32_t i = 0; i < s->layers && !s->latent.rank; i++) {
		const struct model_layer *l = &s->layer[i];
		const uint64_t heads = model_sizes_of(s, i).kv_heads;
		if ((t == &l->q || t == &l->q_gate || t == &l->k || t == &l->v) && heads && t->rows % heads == 0)
			return heads;
	}
	return 0;
}

/* Kernels may do two blocks at once. */
static struct cut_blocks in_pairs(uint64_t first, uint64_t end, uint64_t blocks)
{
	first = first / 2 * 2;
	end = (end + 1) / 2 * 2;
	return (struct cut_blocks){ first, end < blocks ? end : blocks };
}

struct cut_blocks cut_share_blocks(const struct cut_shares *c, const struct model_spec *s, const struct model_tensor *t,
                                   unsigned rank)
{
	const uint64_t blocks = blocks_of(t), heads = heads_of(s, t), per = heads ? t->rows / heads : 0;

	if (!heads) {
		const uint64_t pairs = (blocks + 1) / 2, first = 2 * cut_share_begin(c, rank, pairs),
			       end = 2 * cut_share_begin(c, rank + 1, pairs);
		return (struct cut_blocks){ first, end < blocks ? end : blocks };
	}
	const uint64_t first = cut_share_begin(c, rank, heads), end = cut_share_begin(c, rank + 1, heads);
	if (first == end)
		return (struct cut_blocks){ 0, 0 };
	return in_pairs(first * per / 32, (end * per + 31) / 32, blocks);
}

struct cut_blocks cut_share_kept(const struct cut_shares *c, const struct model_spec *s, const struct model_tensor *t,
                                 unsigned rank)
{
	const bool rows = t == &s->embed || t == &s->input_embed || t == &s->pos_embed || t == &s->type_embed;

	if (rows && rank == 0)
		return (struct cut_blocks){ 0, blocks_of(t) };
	if (rows && (t != &s->embed || !s->tied))
		return (struct cut_blocks){ 0, 0 };
	return cut_share_blocks(c, s, t, rank);
}
