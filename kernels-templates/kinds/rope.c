/* kernels-templates/kinds/rope.c - queries: optional norm per head, rotation, the attention scale.
 *
 * Owns: KEY_ROPE. A unit touches its own head only (the last head also the pad behind it), so in and out may be the
 * same buffer.
 */
#include "kernels-templates/emit/heads.h"

struct rope_out {
	ir_a at;
	ir_f scale;
};

static void rope_sink(struct ir *b, void *context, ir_f v, unsigned i, unsigned n)
{
	const struct rope_out *out = context;
	ir_fstore(b, out->at, ir_fmul(b, v, out->scale), (int32_t)(i * 4), n);
}

bool rope_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = heads_refusal(key->heads, key->head_dim);
	(void)target;
	if (refusal)
		return build_refuse(key, err, refusal);
	uint32_t width = key->heads * key->head_dim, column_bytes = (uint32_t)numerics_pad(width) * 4;
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_a in = ir_aload(b, arg, ROPE_IN * 8), to = ir_aload(b, arg, ROPE_OUT * 8);
	ir_a cos = ir_aload(b, arg, ROPE_COS * 8), sin = ir_aload(b, arg, ROPE_SIN * 8);
	struct heads_rotation r = {
		.dims = key->head_dim, .normed = key->flags & KEY_QK_NORM, .last = key->flags & KEY_NORM_LAST
	};
	struct rope_out out;

	if (r.normed)
		r.norm = ir_aload(b, arg, ROPE_NORM * 8);
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	struct heads_unit u = heads_unit(b, ir_sadd(b, begin, i), key->heads);
	ir_s angles = ir_smuli(b, u.column, key->head_dim / 2 * 4);
	r.x = heads_at(b, in, u, column_bytes, key->head_dim * 4);
	r.cos = ir_aadd(b, cos, angles);
	r.sin = ir_aadd(b, sin, angles);
	if (r.normed)
		r.eps = ir_fbcast(b, arg, ROPE_EPS * 8);
	out.at = heads_at(b, to, u, column_bytes, key->head_dim * 4);
	out.scale = ir_fbcast(b, arg, ROPE_SCALE * 8);
	heads_rotate(b, &r, rope_sink, &out);
	heads_zero_pad(b, ir_aadd(b, to, ir_smuli(b, u.column, column_bytes)), width, u.head, key->heads);
	ir_endloop(b);
	return true;
}
