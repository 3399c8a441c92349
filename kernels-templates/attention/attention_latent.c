/* kernels-templates/attention/attention_latent.c - values that are the keys' first dimensions, for CPUs.
 *
 * Owns: numerics.h rule 9a of a chunk's o. The cache holds a row once, with a position in every lane, as keys lie. So a
 * dimension's sum over the positions is one across lanes: partial sums of each lane, then the tree of rule 6. A unit is
 * one column, whose rows all see the same positions. What lies behind the last of them is read, in whole blocks, but
 * replaced by +0.
 */
#include "kernels-templates/attention/attention_parts.h"

enum { BLOCK = 32, BLOCKS = NUMERICS_CHUNK / BLOCK, WORD = 4, GROUP_BYTES = BLOCK * 4 + BLOCK * BLOCK };

/* A few rows against the chunk: p of row h lies h * SCORE_BYTES behind p; its o goes to o, as far as rows lie apart. */
struct latent {
	unsigned rows;
	bool whole;            /* all of the chunk is visible; else only some blocks are, the last of them in part */
	ir_a p, o, at, scales; /* at: variable: the dimension, or word of four, in the first block; scales: int8 */
};

const char *attention_latent_refusal(const struct key *key)
{
	if (key->heads == 0 || key->heads > 4096)
		return "the number of heads must lie in 1..4096";
	if (key->tile_n > 1 || key->flags & (KEY_WINDOW | KEY_CAP))
		return "latent attention takes one column at a time, without windows and bounds";
	return heads_latent_refusal(key->k, key->head_dim > key->k ? key->head_dim - key->k : 0);
}

/* Number `dim` from l->at on, of positions in lanes of part `part` of the block at `at`; int8: byte `dim` of a word. */
static ir_f load_dim(const struct attention *t, ir_a at, ir_a scales, int32_t block, unsigned dim, unsigned part)
{
	struct ir *b = t->b;
	int32_t lanes = (int32_t)(part * t->w * (t->int8 ? 4 : t->element));

	if (t->int8) {
		ir_i word = ir_iload(b, at, block + lanes);
		ir_i quant = ir_isar(b, dim < 3 ? ir_ishl(b, word, 24 - 8 * dim) : word, 24);
		return ir_fmul(b, ir_fload(b, scales, block + lanes, 0), ir_i2f(b, quant));
	}
	int32_t disp = block + (int32_t)(dim * BLOCK * t->element) + lanes;
	return t->element == 2 ? ir_fload_h(b, at, disp) : ir_fload(b, at, disp, 0);
}

/* The chain of every lane over four whole blocks. */
static void sum_whole(const struct attention *t, const struct latent *l, unsigned dim, ir_f sum[])
{
	struct ir *b = t->b;

	for (unsigned i = 0; i < BLOCKS; i++)
		for (unsigned part = 0; part < t->parts; part++) {
			ir_f v = load_dim(t, l->at, l->scales, (int32_t)(i * BLOCK * t->row_bytes), dim, part);
			for (unsigned h = 0; h < l->rows; h++) {
				ir_f *acc = &sum[h * t->parts + part];
				ir_f p = ir_fload(
					b, l->p,
					(int32_t)(h * SCORE_BYTES + i * BLOCK * 4) + attention_lanes_bytes(t, part), 0);
				*acc = i ? ir_ffma(b, p, v, *acc) : ir_fmul(b, p, v);
			}
		}
}

/* The same over as many blocks as have a visible position. */
static void sum_some(const struct attention *t, const struct latent *l, unsigned dim, ir_f sum[])
{
	struct ir *b = t->b;
	ir_f zero = ir_fconst(b, 0.0f);
	ir_i end = ir_var_i(b, ir_isplat(b, attention_chunk_end(t)));
	ir_a at = ir_var_a(b, l->at), scales = t->int8 ? ir_var_a(b, l->scales) : at, p = ir_var_a(b, l->p);

	for (unsigned i = 0; i < l->rows * t->parts; i++)
		sum[i] = ir_var_f(b, zero);
	ir_loop(b, ir_sshri(b, ir_saddi(b, attention_chunk_end(t), BLOCK - 1), 5));
	for (unsigned part = 0; part < t->parts; part++) {
		ir_m seen = ir_igt(b, end, ir_iadd(b, ir_ilane(b), ir_iconst(b, (int32_t)(part * t->w))));
		ir_f v = ir_fsel(b, seen, load_dim(t, at, scales, 0, dim, part), zero);
		for (unsigned h = 0; h < l->rows; h++) {
			ir_f w = ir_fload(b, p, (int32_t)(h * SCORE_BYTES) + attention_lanes_bytes(t, part), 0);
			ir_f *acc = &sum[h * t->parts + part];
			ir_set_f(b, *acc, ir_ffma(b, w, v, *acc));
		}
	}
	ir_set_i(b, end, ir_isub(b, end, ir_iconst(b, BLOCK)));
	ir_set_a(b, at, ir_aaddi(b, at, BLOCK * t->row_bytes));
	if (t->int8)
		ir_set_a(b, scales, ir_aaddi(b, scales, BLOCK * t->row_bytes));
	ir_set_a(b, p, ir_aaddi(b, p, BLOCK * 4));
	ir_endloop(b);
}

/* Four dimensions at l->at, and on to the next. */
static void four_dims(const struct attention *t, struct latent *l)
{
	struct ir *b = t->b;
	ir_f sum[MAX_SUMS];

	for (unsigned dim = 0; dim < WORD; dim++) {
		(l->whole ? sum_whole : sum_some)(t, l, dim, sum);
		for (unsigned h = 0; h < l->rows; h++)
			ir_fstore1(b, l->o, ir_fadd(b, math_lane_sum(b, sum + h * t->parts), ir_fconst(b, 0.0f)),
			           attention_lanes_bytes(t, h * t->vectors) + (int32_t)(dim * 4));
	}
	ir_set_a(b, l->o, ir_aaddi(b, l->o, WORD * 4));
	ir_set_a(b, l->at, ir_aaddi(b, l->at, t->int8 ? BLOCK * 4 : WORD * BLOCK * t->element));
}

static void all_dims(const struct attention *t, struct latent *l)
{
	struct ir *b = t->b;

	l->o = ir_var_a(b, l->o);
	l->at = ir_var_a(b, t->keys);
	if (!t->int8) {
		ir_loop(b, ir_sconst(b, t->out_dims / WORD));
		four_dims(t, l);
		ir_endloop(b);
		return;
	}
	l->scales = ir_var_a(b, t->keys);
	ir_loop(b, ir_sconst(b, t->out_dims / BLOCK));
	ir_set_a(b, l->at, ir_aaddi(b, l->at, BLOCK * 4)); /* behind the scales */
	ir_loop(b, ir_sconst(b, BLOCK / WORD));
	four_dims(t, l);
	ir_endloop(b);
	ir_set_a(b, l->scales, ir_aaddi(b, l->scales, GROUP_BYTES));
	ir_endloop(b);
}

static void some_rows(const struct attention *t, const struct tile_range *rows, const void *context)
{
	struct ir *b = t->b;
	const bool *whole = context;
	struct latent l = { .rows = rows->size, .whole = *whole };

	l.p = attention_at(t, t->scores, rows, SCORE_BYTES);
	l.o = attention_at(t, t->chunk_o, rows, (unsigned)attention_lanes_bytes(t, t->vectors));
	ir_s full = ir_sshri(b, attention_chunk_end(t), 7); /* 1 or 0 */
	ir_loop(b, l.whole ? full : ir_ssub(b, ir_sconst(b, 1), full));
	all_dims(t, &l);
	ir_endloop(b);
}

void attention_latent_values(const struct attention *t)
{
	unsigned max = (t->regs >= MAX_REGS ? 16u : 8u) / t->parts;

	for (int whole = 0; whole < 2; whole++) {
		bool which = whole;
		attention_each_tile(t, t->rows, max, false, some_rows, &which);
	}
}
