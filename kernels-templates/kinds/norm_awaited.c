/* kernels-templates/kinds/norm_awaited.c - the norm of a column whose floats are awaited, given as int8 blocks.
 *
 * Owns: KEY_NORM with AWAITED, for dataflow passes over several tokens: a group has a column, which it stages in
 * shared bytes. Every wave makes the sum of squares for itself (norm.c), and has scaled and made int8 blocks of what it
 * staged: quads of four blocks, and what is left behind them block by block.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

enum {
	QUADS = 8 /* of a wave, whose loads stand side by side */,
	SCRATCH = 128,
	SCRATCHES = 4,
	QUAD = 128 /* elements */
};

struct column {
	struct ir *b;
	uint32_t k, blocks, quads, rest; /* quads have no pads; rest: blocks behind them, 4 at most */
	unsigned waves, iterations;      /* iterations: quads that every wave has, or all but some */
	ir_s wave;
	ir_a x, weight, outq, outs, raw, scratch;
};

const char *norm_refuse_awaited(const struct key *key, const struct target *target)
{
	if (!(key->flags & KEY_AWAITED))
		return NULL;
	if (!target->lane_bytes || target->waves < 2 || target->lanes != 32)
		return "norms are awaited by groups of waves";
	if (key->heads || !(key->flags & KEY_QUANTISED_OUT) || key->flags & KEY_RESIDUAL)
		return "a norm that is awaited is one of whole columns, and gives int8 blocks";
	return numerics_pad(key->k) / QUAD <= (uint64_t)QUADS * target->waves
	               ? NULL
	               : "a column that is awaited does not fit the registers of a group";
}

/* This wave's quad i, or the last one where it has none; its block behind the quads likewise. */
static ir_s quad_of(const struct column *c, unsigned i)
{
	struct ir *b = c->b;
	ir_s n = ir_saddi(b, c->wave, (int64_t)i * c->waves);

	return (i + 1) * c->waves <= c->quads ? n : ir_smin(b, n, ir_sconst(b, c->quads - 1));
}

static ir_s rest_of(const struct column *c)
{
	return ir_saddi(c->b, ir_smin(c->b, c->wave, ir_sconst(c->b, c->rest - 1)), c->quads * 4);
}

/* Begins a loop that has an iteration for waves below n. */
static void begin_some(const struct column *c, int64_t n)
{
	struct ir *b = c->b;

	ir_loop(b, ir_smin(b, ir_ssub(b, ir_sconst(b, n), c->wave), ir_sconst(b, 1)));
}

/* The same where this wave has a quad i. */
static bool all_have(const struct column *c, unsigned i) { return (i + 1) * c->waves <= c->quads; }
static void begin_there(const struct column *c, unsigned i)
{
	begin_some(c, (int64_t)c->quads - (int64_t)i * c->waves);
}

/* Four neighbours a lane. */
static void load_vectors(const struct column *c, ir_a from, ir_s quad, ir_f out[4])
{
	struct ir *b = c->b;
	ir_a at = ir_aadd(b, from, ir_smuli(b, quad, QUAD * 4));

	for (int i = 0; i < 4; i++)
		out[i] = ir_fbits(b, ir_iload_s(b, at, i * 4, 16));
}

/* The last block's pads become +0. */
static void give_rest(const struct column *c, const struct norm_scale *s, ir_f x, ir_f weight)
{
	struct ir *b = c->b;

	begin_some(c, c->rest);
	ir_s number = rest_of(c);
	ir_f y = norm_emit_element(b, s, x, weight);
	ir_m there =
		ir_igt(b, ir_isub(b, ir_iconst(b, (int32_t)c->k), ir_isplat(b, ir_sshli(b, number, 5))), ir_ilane(b));
	if (c->k % 32)
		y = ir_fsel(b, there, y, ir_fconst(b, 0.0f));
	ir_a q = ir_aadd(b, c->outq, ir_sshli(b, number, 5)), to = ir_aadd(b, c->outs, ir_sshli(b, number, 4));
	quantise_give_block(b, y, q, to, c->scratch);
	ir_endloop(b);
}

static void give_quads(const struct column *c, const struct norm_scale *s, ir_f weight[QUADS][4])
{
	struct ir *b = c->b;

	for (unsigned i = 0; i < c->iterations; i++) {
		ir_s number = ir_saddi(b, c->wave, (int64_t)i * c->waves);
		ir_f x[4];
		if (!all_have(c, i))
			begin_there(c, i);
		load_vectors(c, c->raw, number, x);
		for (unsigned j = 0; j < 4; j++)
			x[j] = norm_emit_element(b, s, x[j], weight[i][j]);
		ir_a q = ir_aadd(b, c->outq, ir_sshli(b, number, 7)), to = ir_aadd(b, c->outs, ir_sshli(b, number, 6));
		quantise_give_quad(b, x, q, to, ir_aaddi(b, c->scratch, i % SCRATCHES * SCRATCH));
		if (!all_have(c, i))
			ir_endloop(b);
	}
}

static void emit_column(const struct column *c, ir_f eps, bool centred)
{
	struct ir *b = c->b;
	ir_f x[QUADS][4], weight[QUADS][4], left = { 0 }, left_weight = { 0 };

	for (unsigned i = 0; i < c->iterations; i++)
		load_vectors(c, c->weight, quad_of(c, i), weight[i]);
	if (c->rest)
		left_weight = ir_fload(b, ir_aadd(b, c->weight, ir_sshli(b, rest_of(c), 7)), 0, 0);
	for (unsigned i = 0; i < c->iterations; i++) {
		ir_a at = ir_aadd(b, c->x, ir_smuli(b, quad_of(c, i), QUAD * 4));
		for (int j = 0; j < 4; j++)
			x[i][j] = ir_fawait(b, at, j * 128, 0);
	}
	if (c->rest)
		left = ir_fawait(b, ir_aadd(b, c->x, ir_sshli(b, rest_of(c), 7)), 0, 0);
	for (unsigned i = 0; i < c->iterations; i++) {
		if (!all_have(c, i))
			begin_there(c, i);
		ir_a to = ir_aadd(b, c->raw, ir_smuli(b, ir_saddi(b, c->wave, (int64_t)i * c->waves), QUAD * 4));
		for (int j = 0; j < 4; j++)
			ir_fstore(b, to, x[i][j], j * 128, 0);
		if (!all_have(c, i))
			ir_endloop(b);
	}
	if (c->rest) {
		begin_some(c, c->rest);
		ir_fstore(b, ir_aadd(b, c->raw, ir_sshli(b, rest_of(c), 7)), left, 0, 0);
		ir_endloop(b);
	}
	ir_barrier(b);
	const struct norm_scale s = norm_emit_scale(
		b, &(struct norm_columns){ .k = c->k, .centred = centred, .waves = c->waves, .x = c->raw, .eps = eps });
	give_quads(c, &s, weight);
	if (c->rest)
		give_rest(c, &s, left, left_weight);
}

void norm_awaited_build(struct ir *b, const struct key *key, const struct target *target)
{
	struct column c = {
		.b = b, .k = key->k, .blocks = (uint32_t)numerics_pad(key->k) / 32, .waves = target->waves
	};
	ir_a arg = ir_arg(b);

	c.quads = c.k / 32 / 4;
	c.rest = c.blocks - c.quads * 4;
	c.iterations = (c.quads + c.waves - 1) / c.waves;
	c.raw = ir_shared(b, (int64_t)c.blocks * 128);
	c.scratch = ir_local(b, SCRATCHES * SCRATCH);
	c.wave = ir_wave(b);
	c.weight = ir_aload(b, arg, NORM_WEIGHT * 8);
	ir_f eps = ir_fbcast(b, arg, NORM_EPS * 8);
	ir_s begin = ir_begin(b), column = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin))),
	     first = ir_smuli(b, column, c.blocks);
	c.x = ir_aadd(b, ir_aload(b, arg, NORM_X * 8), ir_sshli(b, first, 7));
	c.outq = ir_aadd(b, ir_aload(b, arg, NORM_OUTQ * 8), ir_sshli(b, first, 5));
	c.outs = ir_aadd(b, ir_aload(b, arg, NORM_OUTS * 8), ir_sshli(b, first, 4));
	emit_column(&c, eps, key->flags & KEY_CENTRED);
	ir_barrier(b); /* before another column's floats come */
	ir_endloop(b);
}

bool template_norm_awaits(const struct target *target, uint32_t k)
{
	const struct key key = { .kind = KEY_NORM, .k = k, .flags = KEY_AWAITED | KEY_QUANTISED_OUT };

	return !norm_refuse_awaited(&key, target);
}
