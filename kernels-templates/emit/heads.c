/* kernels-templates/emit/heads.c - norm and rotation of one head, and the arithmetic of units over heads, as IR.
 *
 * Owns: the one translation of numerics.h rules 7 and 8 for heads. A head's whole norm is read before its first element
 * is stored, and a pair is read before either half is: in and out may be the same memory. An editor keeps that.
 */
#include "kernels-templates/emit/heads.h"

const char *heads_refusal(uint32_t heads, uint32_t head_dim)
{
	if (heads == 0 || heads > 4096)
		return "the number of heads must lie in 1..4096";
	if (head_dim == 0 || head_dim % 2 != 0 || head_dim > HEADS_MAX_DIM)
		return "head_dim must be even and lie in 2..512";
	return NULL;
}

const char *heads_latent_refusal(uint32_t latent, uint32_t rotating)
{
	if (latent == 0 || latent % 32 || latent > HEADS_MAX_LATENT)
		return "a latent vector has a multiple of 32 dimensions, and 512 at most";
	if (rotating == 0 || rotating % 2 || rotating > HEADS_MAX_DIM)
		return "behind a latent vector 2 to 256 dimensions rotate, an even number";
	return NULL;
}

unsigned heads_kv_bytes(const struct key *key)
{
	return key->kv == key_type(DTYPE_F16)    ? 2
	       : key->kv == key_type(DTYPE_F32)  ? 4
	       : key->kv == key_type(DTYPE_Q8_0) ? 1
	                                         : 0;
}

uint32_t template_kv_row_bytes(enum dtype kv, uint32_t head_dim)
{
	switch (kv) {
	case DTYPE_F16: return head_dim * 2;
	case DTYPE_F32: return head_dim * 4;
	case DTYPE_Q8_0: return (head_dim + 31) / 32 * 4 + (head_dim + 3) / 4 * 4;
	default: return 0;
	}
}

uint32_t heads_kv_row_bytes(const struct key *key)
{
	return key->kv ? template_kv_row_bytes(key_dtype(key->kv), key->head_dim) : 0;
}

struct heads_unit heads_unit(struct ir *b, ir_s unit, uint32_t heads)
{
	struct heads_unit u;
	u.column = ir_sdivi(b, unit, heads);
	u.head = ir_ssub(b, unit, ir_smuli(b, u.column, heads));
	return u;
}

ir_a heads_at(struct ir *b, ir_a base, struct heads_unit u, uint32_t column_bytes, uint32_t head_bytes)
{
	return ir_aadd(b, base, ir_sadd(b, ir_smuli(b, u.column, column_bytes), ir_smuli(b, u.head, head_bytes)));
}

static void pad(struct ir *b, ir_a column, uint32_t width, ir_s head, uint32_t heads, bool gives)
{
	uint32_t padded = (uint32_t)numerics_pad(width);
	if (padded == width)
		return;
	ir_loop(b, ir_sdivi(b, ir_saddi(b, head, 1), heads));
	for (uint32_t i = width; i < padded; i += b->lanes) {
		unsigned lanes = padded - i < b->lanes ? padded - i : 0;
		ir_f zero = ir_fconst(b, 0.0f);
		if (gives)
			ir_fgive(b, column, zero, (int32_t)(i * 4), lanes);
		else
			ir_fstore(b, column, zero, (int32_t)(i * 4), lanes);
	}
	ir_endloop(b);
}

void heads_zero_pad(struct ir *b, ir_a column, uint32_t width, ir_s head, uint32_t heads)
{
	pad(b, column, width, head, heads, false);
}

void heads_give_pad(struct ir *b, ir_a column, uint32_t width, ir_s head, uint32_t heads)
{
	pad(b, column, width, head, heads, true);
}

static unsigned lanes_left(const struct ir *b, unsigned total, unsigned i)
{
	return total - i < b->lanes ? total - i : b->lanes;
}

static ir_f load_lanes(struct ir *b, bool awaited, ir_a at, unsigned i, unsigned n)
{
	return awaited ? ir_fawait(b, at, (int32_t)(i * 4), n) : ir_fload(b, at, (int32_t)(i * 4), n);
}

/* x: the head's vectors in their order; NULL: they are loaded here. */
static ir_f scale_of(struct ir *b, bool awaited, ir_a at, const ir_f x[], uint32_t dims, ir_f eps)
{
	unsigned parts = math_parts(b);
	ir_f part[MATH_MAX_PARTS];
	bool begun[MATH_MAX_PARTS] = { false };

	for (unsigned v = 0; v < parts; v++)
		part[v] = ir_fconst(b, 0.0f);
	for (unsigned i = 0, v = 0; i < dims; i += b->lanes, v = (v + 1) % parts) {
		ir_f e = x ? x[i / b->lanes] : load_lanes(b, awaited, at, i, lanes_left(b, dims, i));
		/* fma(x, x, +0) rounds as the product does, and a square is never -0. */
		part[v] = begun[v] ? ir_ffma(b, e, e, part[v]) : ir_fmul(b, e, e);
		begun[v] = true;
	}
	return math_rms_scale(b, math_lane_sum(b, part), dims, eps);
}

ir_f heads_scale(struct ir *b, ir_a at, uint32_t dims, ir_f eps) { return scale_of(b, false, at, NULL, dims, eps); }

ir_f heads_scale_of(struct ir *b, bool awaited, ir_a at, uint32_t dims, ir_f eps)
{
	return scale_of(b, awaited, at, NULL, dims, eps);
}

/* The pair of vectors that begin with elements i and i + dims / 2, and what they are multiplied by. */
struct pair {
	ir_f x[2], norm[2], cos, sin;
};

static void load_pair(struct ir *b, const struct heads_rotation *r, unsigned i, struct pair *p)
{
	unsigned half = r->dims / 2, n = lanes_left(b, half, i);
	int32_t at[2] = { (int32_t)(i * 4), (int32_t)((i + half) * 4) };

	for (unsigned k = 0; k < 2; k++) {
		p->x[k] = load_lanes(b, r->awaited, r->x, i + k * half, n);
		if (r->normed)
			p->norm[k] = ir_fload(b, r->norm, at[k], n);
	}
	p->cos = ir_fload(b, r->cos, at[0], n);
	p->sin = ir_fload(b, r->sin, at[0], n);
}

static void rotate_pair(struct ir *b, const struct heads_rotation *r, ir_f scale, const struct pair *p, ir_f out[2])
{
	ir_f a = p->x[0], c = p->x[1];

	if (r->normed && !r->last) {
		a = ir_fmul(b, ir_fmul(b, a, scale), p->norm[0]);
		c = ir_fmul(b, ir_fmul(b, c, scale), p->norm[1]);
	}
	out[0] = ir_ffma(b, a, p->cos, ir_fneg(b, ir_fmul(b, c, p->sin)));
	out[1] = ir_ffma(b, c, p->cos, ir_fmul(b, a, p->sin));
	for (unsigned k = 0; r->last && k < 2; k++)
		out[k] = ir_fmul(b, ir_fmul(b, out[k], scale), p->norm[k]);
}

static void sink_pair(struct ir *b, const struct heads_rotation *r, heads_sink sink, void *context, unsigned i,
                      const ir_f v[2])
{
	unsigned half = r->dims / 2, n = lanes_left(b, half, i);

	sink(b, context, v[0], i, n);
	sink(b, context, v[1], i + half, n);
}

/* There loads cannot pass stores and there are registers for a head: all is asked for at once. */
static void rotate_in_groups(struct ir *b, const struct heads_rotation *r, heads_sink sink, void *context)
{
	enum { PAIRS = HEADS_MAX_DIM / 2 / 32 };
	unsigned half = r->dims / 2, n = (half + b->lanes - 1) / b->lanes;
	struct pair p[PAIRS];
	ir_f scale = { 0 }, x[2 * PAIRS], v[PAIRS][2];

	for (unsigned k = 0; k < n; k++)
		load_pair(b, r, k * b->lanes, &p[k]);
	for (unsigned k = 0; k < 2 * n; k++)
		x[k] = p[k % n].x[k / n];
	if (r->normed)
		scale = scale_of(b, r->awaited, r->x, half % b->lanes ? NULL : x, r->dims, r->eps);
	for (unsigned k = 0; k < n; k++)
		rotate_pair(b, r, scale, &p[k], v[k]);
	for (unsigned k = 0; k < n; k++)
		sink_pair(b, r, sink, context, k * b->lanes, v[k]);
}

void heads_rotate(struct ir *b, const struct heads_rotation *r, heads_sink sink, void *context)
{
	ir_f scale = { 0 }, v[2];
	struct pair p;

	if (b->waves > 1) {
		rotate_in_groups(b, r, sink, context);
		return;
	}
	if (r->normed)
		scale = heads_scale(b, r->x, r->dims, r->eps);
	for (unsigned i = 0; i < r->dims / 2; i += b->lanes) {
		load_pair(b, r, i, &p);
		rotate_pair(b, r, scale, &p, v);
		sink_pair(b, r, sink, context, i, v);
	}
}
