/* kernels-templates/kinds/norm_awaited.c - the norm of a column whose floats are awaited, given as int8 blocks.
 *
 * Owns: KEY_NORM with AWAITED, for passes over several tokens that hand over: a group has a column, which it brings to
 * shared bytes. Every wave makes the sum of squares for itself (norm.c), and has scaled and made int8 blocks of what it
 * brought, which it still has in registers.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

enum { AT_ONCE = 16 /* blocks of a wave whose loads stand side by side */, SCRATCH = 64 };

struct column {
	struct ir *b;
	uint32_t k, blocks;
	unsigned waves, turns; /* turns: blocks that every wave has, and one more that some have */
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
	return numerics_pad(key->k) / 32 <= (uint64_t)AT_ONCE * target->waves
	               ? NULL
	               : "a column that is awaited does not fit the registers of a group";
}

/* This wave's block i, or the last one where it has none. */
static ir_s block_of(const struct column *c, unsigned i)
{
	struct ir *b = c->b;
	ir_s n = ir_saddi(b, c->wave, (int64_t)i * c->waves);

	return (i + 1) * c->waves <= c->blocks ? n : ir_smin(b, n, ir_sconst(b, c->blocks - 1));
}

/* Begins a loop that has a turn where this wave has a block i. */
static void begin_there(const struct column *c, unsigned i)
{
	struct ir *b = c->b;
	ir_s left = ir_ssub(b, ir_sconst(b, (int64_t)c->blocks - (int64_t)i * c->waves), c->wave);

	ir_loop(b, ir_smin(b, left, ir_sconst(b, 1)));
}

static bool all_have(const struct column *c, unsigned i) { return (i + 1) * c->waves <= c->blocks; }

static ir_f scaled(const struct column *c, ir_f x, ir_f mean, ir_f scale, ir_f weight, bool centred, unsigned i)
{
	struct ir *b = c->b;
	uint32_t real = c->k % 32;
	ir_f y = ir_fmul(b, ir_fmul(b, centred ? ir_fsub(b, x, mean) : x, scale), weight);

	if (!real || (i + 1) * c->waves < c->blocks)
		return y;
	ir_s first = ir_sshli(b, block_of(c, i), 5); /* pads of the last block become +0 */
	ir_m there = ir_igt(b, ir_isub(b, ir_iconst(b, (int32_t)c->k), ir_isplat(b, first)), ir_ilane(b));
	return ir_fsel(b, there, y, ir_fconst(b, 0.0f));
}

static void emit_column(const struct column *c, ir_f eps, bool centred)
{
	struct ir *b = c->b;
	ir_f x[AT_ONCE], weight[AT_ONCE], mean = { 0 };

	for (unsigned i = 0; i < c->turns; i++)
		weight[i] = ir_fload(b, ir_aadd(b, c->weight, ir_sshli(b, block_of(c, i), 7)), 0, 0);
	for (unsigned i = 0; i < c->turns; i++)
		x[i] = ir_fawait(b, ir_aadd(b, c->x, ir_sshli(b, block_of(c, i), 7)), 0, 0);
	for (unsigned i = 0; i < c->turns; i++) {
		if (!all_have(c, i))
			begin_there(c, i);
		ir_a to = ir_aadd(b, c->raw, ir_sshli(b, ir_saddi(b, c->wave, (int64_t)i * c->waves), 7));
		ir_fstore(b, to, x[i], 0, 0);
		if (!all_have(c, i))
			ir_endloop(b);
	}
	ir_barrier(b);
	ir_f scale = norm_emit_scale(
		b, &(struct norm_columns){ .k = c->k, .centred = centred, .waves = c->waves, .x = c->raw, .eps = eps },
		&mean);
	for (unsigned i = 0; i < c->turns; i++) {
		ir_f y = scaled(c, x[i], mean, scale, weight[i], centred, i);
		ir_s number = ir_saddi(b, c->wave, (int64_t)i * c->waves);
		if (!all_have(c, i))
			begin_there(c, i);
		ir_a q = ir_aadd(b, c->outq, ir_sshli(b, number, 5)), s = ir_aadd(b, c->outs, ir_sshli(b, number, 4));
		quantise_give_block(b, y, q, s, ir_aaddi(b, c->scratch, (i & 3) * SCRATCH));
		if (!all_have(c, i))
			ir_endloop(b);
	}
}

void norm_awaited_build(struct ir *b, const struct key *key, const struct target *target)
{
	struct column c = {
		.b = b, .k = key->k, .blocks = (uint32_t)numerics_pad(key->k) / 32, .waves = target->waves
	};
	ir_a arg = ir_arg(b);

	c.turns = (c.blocks + c.waves - 1) / c.waves;
	c.raw = ir_shared(b, (int64_t)c.blocks * 128);
	c.scratch = ir_local(b, 4 * SCRATCH);
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
