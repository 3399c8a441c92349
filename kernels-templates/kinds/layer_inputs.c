/* kernels-templates/kinds/layer_inputs.c - what layers get of each token's own: a product of its embedding, normed, and
 * a row of a second embedding.
 *
 * Owns: KEY_LAYER_INPUTS, which is numerics.h rule 11. A unit is one layer's share of one token.
 */
#include "kernels-templates/emit/heads.h"

struct share {
	struct ir *b;
	uint32_t k, padded;
	ir_a x, e, weight, out;
	ir_f scale, by;
};

/* Elements i ..., of which those past k are +0. */
static ir_f share_of(const struct share *s, unsigned i)
{
	struct ir *b = s->b;
	unsigned left = s->k > i ? s->k - i : 0, n = left < b->lanes ? left : b->lanes;
	int32_t at = (int32_t)(i * 4);

	if (!left)
		return ir_fconst(b, 0.0f);
	ir_f normed = ir_fmul(b, ir_fmul(b, ir_fload(b, s->x, at, n), s->scale), ir_fload(b, s->weight, at, n));
	ir_f own = ir_fmul(b, ir_fload(b, s->e, at, n), s->by);
	ir_f y = ir_fmul(b, ir_fadd(b, normed, own), ir_fconst(b, NUMERICS_HALF_ROOT));
	return n == b->lanes ? y : ir_fsel(b, ir_igt(b, ir_iconst(b, (int32_t)n), ir_ilane(b)), y, ir_fconst(b, 0.0f));
}

bool layer_inputs_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	(void)target;
	if (key->k == 0 || key->k > TEMPLATE_MAX_LAYER_INPUTS || key->rows == 0 || key->rows > 1u << 16)
		return build_refuse(key, err, "a layer gets 1 to 1024 numbers, and there are up to 65536 layers");
	uint32_t padded = (uint32_t)numerics_pad(key->k), column = (uint32_t)numerics_pad((uint64_t)key->rows * key->k);
	struct share s = { .b = b, .k = key->k, .padded = padded };
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);

	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	struct heads_unit u = heads_unit(b, ir_sadd(b, begin, i), key->rows);
	s.x = heads_at(b, ir_aload(b, arg, LAYER_INPUTS_X * 8), u, column * 4, key->k * 4);
	s.e = heads_at(b, ir_aload(b, arg, LAYER_INPUTS_E * 8), u, column * 4, key->k * 4);
	s.weight = ir_aload(b, arg, LAYER_INPUTS_WEIGHT * 8);
	ir_s position = ir_sadd(b, ir_smul(b, u.head, ir_sload64(b, arg, LAYER_INPUTS_COLUMNS * 8)), u.column);
	s.out = ir_aadd(b, ir_aload(b, arg, LAYER_INPUTS_OUT * 8), ir_smuli(b, position, padded * 4));
	s.scale = heads_scale(b, s.x, key->k, ir_fbcast(b, arg, LAYER_INPUTS_EPS * 8));
	s.by = ir_fbcast(b, arg, LAYER_INPUTS_BY * 8);
	for (unsigned at = 0; at < padded; at += b->lanes)
		ir_fstore(b, s.out, share_of(&s, at), (int32_t)(at * 4), 0);
	ir_endloop(b);
	return true;
}
