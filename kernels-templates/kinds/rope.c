/* kernels-templates/kinds/rope.c - queries: optional norm per head, rotation, the attention scale.
 *
 * Owns: KEY_ROPE. A unit touches its own head only (the last head also the pad behind it), so in and out may be the
 * same buffer. With KEY_LATENT a head's last dimensions rotate and go where attention wants them, behind those that a
 * matrix of the head will make of its other ones (numerics.h rule 9a); these go elsewhere.
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

/* The dimensions of a head that do not rotate, with pads. */
static void scale_rest(struct ir *b, ir_a from, ir_a to, unsigned dims, ir_f by, ir_f scale)
{
	unsigned padded = (unsigned)numerics_pad(dims);

	for (unsigned i = 0; i < padded; i += b->lanes) {
		unsigned n = dims <= i ? 0 : dims - i < b->lanes ? dims - i : b->lanes;
		ir_f zero = ir_fconst(b, 0.0f), y = zero;
		if (n)
			y = ir_fmul(b, ir_fmul(b, ir_fload(b, from, (int32_t)(i * 4), n < b->lanes ? n : 0), by),
			            scale);
		if (n && n < b->lanes)
			y = ir_fsel(b, ir_igt(b, ir_iconst(b, (int32_t)n), ir_ilane(b)), y, zero);
		ir_fstore(b, to, y, (int32_t)(i * 4), 0);
	}
}

static bool latent_build(struct ir *b, const struct key *key, struct error *err)
{
	const uint32_t rest = key->k, dims = key->head_dim, out_dims = key->rows + dims;
	const uint32_t in_bytes = (uint32_t)numerics_pad(key->heads * (rest + dims)) * 4,
		       out_bytes = (uint32_t)numerics_pad(key->heads * out_dims) * 4,
		       rest_bytes = (uint32_t)numerics_pad(rest) * 4;
	const char *refusal = heads_latent_refusal(key->rows, dims);

	if (key->heads == 0 || key->heads > 4096 || rest == 0 || rest > HEADS_MAX_DIM)
		refusal = "there are 1 to 4096 heads, of 1 to 256 dimensions that do not rotate";
	if (refusal || key->flags != KEY_LATENT)
		return build_refuse(key, err, refusal ? refusal : "these flags do not go together");
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_a in = ir_aload(b, arg, ROPE_IN * 8), to = ir_aload(b, arg, ROPE_OUT * 8);
	struct heads_rotation r = { .dims = dims };
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	struct heads_unit u = heads_unit(b, ir_sadd(b, begin, i), key->heads);
	ir_s angles = ir_smuli(b, u.column, (dims / 2 + 1) * 4);
	ir_a x = heads_at(b, in, u, in_bytes, (rest + dims) * 4);
	r.x = ir_aaddi(b, x, rest * 4);
	r.cos = ir_aadd(b, ir_aload(b, arg, ROPE_COS * 8), angles);
	r.sin = ir_aadd(b, ir_aload(b, arg, ROPE_SIN * 8), angles);
	struct rope_out out = { ir_aaddi(b, heads_at(b, to, u, out_bytes, out_dims * 4), key->rows * 4),
		                ir_fbcast(b, arg, ROPE_SCALE * 8) };
	scale_rest(b, x, heads_at(b, ir_aload(b, arg, ROPE_REST * 8), u, key->heads * rest_bytes, rest_bytes), rest,
	           ir_fbcast(b, r.cos, (int32_t)(dims / 2 * 4)), out.scale);
	heads_rotate(b, &r, rope_sink, &out);
	ir_endloop(b);
	return true;
}

bool rope_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = heads_refusal(key->heads, key->head_dim);
	(void)target;
	if (key->flags & KEY_LATENT)
		return latent_build(b, key, err);
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
