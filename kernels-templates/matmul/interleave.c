/* kernels-templates/matmul/interleave.c - activations interleaved for wide matmuls: the columns of a tile side by side.
 *
 * Owns: KEY_INTERLEAVE. Moves bits, makes signed bytes unsigned where VNNI is to have them so, and words of two BF16 of
 * f32. Floats and words lie column by column for each k, or pair of k's; int8 for each block of 32, as one copy each,
 * since scattered words take ten times as long. A unit is read and written by nobody else.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"
#include "kernels-templates/matmul/matmul.h"

struct interleave {
	struct ir *b;
	bool int8, is_unsigned, words; /* words: of two BF16 */
	uint32_t blocks, panel;        /* blocks of 32 k's in a column; columns of a panel */
	ir_s tile, block;
	ir_a from, sums; /* the next column's */
};

enum { SUMS = sizeof(struct activation_block) };

/* 32 floats of one column go to every columns-th word from `to` on. */
static void interleave_floats(const struct interleave *t, ir_a to, uint32_t columns)
{
	struct ir *b = t->b;

	if (t->words) {
		ir_f pair = ir_fbits(b, narrow_bf16_words(b, t->from));
		if (columns > 1)
			ir_fstore_s(b, to, pair, 0, 0, columns * 4);
		else
			ir_fstore(b, to, pair, 0, 0);
		return;
	}
	for (unsigned v = 0; v < math_parts(b); v++)
		ir_fstore_s(b, to, ir_fload(b, t->from, (int32_t)(v * b->lanes * 4), 0),
		            (int32_t)(v * b->lanes * columns * 4), 0, columns * 4);
}

/* Where these 32 k's of a column begin that has `bytes` a block: column number `first` of the tile, in a panel of so
 * many columns. */
static ir_a panel_at(const struct interleave *t, ir_a arg, unsigned slot, uint32_t tile_columns, uint32_t first,
                     uint32_t columns, int64_t bytes)
{
	struct ir *b = t->b;
	ir_a at = ir_aadd(b, ir_aload(b, arg, (int32_t)(slot * 8)),
	                  ir_smuli(b, t->tile, bytes * t->blocks * tile_columns));
	return ir_var_a(b,
	                ir_aaddi(b, ir_aadd(b, at, ir_smuli(b, t->block, bytes * columns)), bytes * t->blocks * first));
}

/* `panels` panels of so many columns, from column number `first` of the tile on. */
static void interleave_float_panels(const struct interleave *t, ir_a arg, uint32_t tile_columns, uint32_t first,
                                    uint32_t columns, uint32_t panels)
{
	struct ir *b = t->b;
	int64_t bytes = t->words ? 64 : 128;
	ir_a to = panel_at(t, arg, INTERLEAVE_OUT, tile_columns, first, columns, bytes);

	ir_loop(b, ir_sconst(b, panels));
	ir_loop(b, ir_sconst(b, columns));
	interleave_floats(t, to, columns);
	ir_set_a(b, t->from, ir_aaddi(b, t->from, (int64_t)t->blocks * 128));
	ir_set_a(b, to, ir_aaddi(b, to, 4));
	ir_endloop(b);
	ir_set_a(b, to, ir_aaddi(b, to, bytes * t->blocks * columns - columns * 4));
	ir_endloop(b);
}

/* The same of int8 blocks. */
static void interleave_block_panels(const struct interleave *t, ir_a arg, uint32_t tile_columns, uint32_t first,
                                    uint32_t columns, uint32_t panels)
{
	struct ir *b = t->b;
	int32_t apart = (int32_t)t->blocks; /* blocks from a column to the next */
	ir_a to = panel_at(t, arg, INTERLEAVE_OUT, tile_columns, first, columns, 32),
	     to_sums = panel_at(t, arg, INTERLEAVE_OUTS, tile_columns, first, columns, SUMS);

	ir_loop(b, ir_sconst(b, panels));
	for (int32_t c = 0; c < (int32_t)columns; c++) {
		ir_f quants = ir_fload(b, t->from, c * apart * 32, 8);
		if (t->is_unsigned)
			quants = ir_fbits(b, ir_ixor(b, ir_ibits(b, quants), ir_iconst(b, (int32_t)0x80808080)));
		ir_fstore(b, to, quants, c * 32, 8);
		ir_fstore(b, to_sums, ir_fload(b, t->sums, c * apart * SUMS, 4), c * SUMS, 4);
	}
	ir_set_a(b, t->from, ir_aaddi(b, t->from, (int64_t)columns * t->blocks * 32));
	ir_set_a(b, t->sums, ir_aaddi(b, t->sums, (int64_t)columns * t->blocks * SUMS));
	ir_set_a(b, to, ir_aaddi(b, to, (int64_t)columns * t->blocks * 32));
	ir_set_a(b, to_sums, ir_aaddi(b, to_sums, (int64_t)columns * t->blocks * SUMS));
	ir_endloop(b);
}

static void interleave_unit(struct interleave *t, ir_a arg, ir_s unit, uint32_t columns)
{
	struct ir *b = t->b;
	int64_t bytes = t->int8 ? 32 : 128;

	t->tile = ir_sdivi(b, unit, t->blocks);
	t->block = ir_ssub(b, unit, ir_smuli(b, t->tile, t->blocks));
	ir_s first = ir_sadd(b, ir_smuli(b, t->tile, (int64_t)t->blocks * columns),
	                     t->block); /* the first column's block; the rest lie `blocks` apart */
	t->from = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, INTERLEAVE_X * 8), ir_smuli(b, first, bytes)));
	if (t->int8)
		t->sums = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, INTERLEAVE_XS * 8), ir_smuli(b, first, SUMS)));
	uint32_t panels = columns / t->panel, rest = columns % t->panel;
	(t->int8 ? interleave_block_panels : interleave_float_panels)(t, arg, columns, 0, t->panel, panels);
	if (rest)
		(t->int8 ? interleave_block_panels
		         : interleave_float_panels)(t, arg, columns, panels * t->panel, rest, 1);
}

bool interleave_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	uint32_t kp = (uint32_t)numerics_pad(key->k), columns = key->tile_n;
	struct interleave t = { .b = b,
		                .int8 = key->activation == key_type(DTYPE_Q8_0),
		                .is_unsigned = key->flags & KEY_UNSIGNED,
		                .words = key->activation == key_type(DTYPE_BF16) && target->has_dot2,
		                .blocks = kp / 32,
		                .panel = key->row_blocks };

	if (t.words != (key->numerics == NUMERICS_BOUNDED) ||
	    (!t.int8 && !t.words && key->activation != key_type(DTYPE_F32)))
		return build_refuse(key, err, "activations are F32 or Q8_0, or BF16 in the bounded class");
	if (key->k == 0 || columns == 0 || columns > TEMPLATE_MAX_WIDE || (int64_t)kp * 4 * columns > INT32_MAX / 2)
		return build_refuse(key, err, "k must be positive and fit, a wide tile has 1 to 24 columns");
	if (t.panel == 0 || t.panel > columns)
		return build_refuse(key, err, "a panel has 1 column to all of a tile's");
	ir_a arg = ir_arg(b);
	ir_s unit = ir_var_s(b, ir_begin(b));
	ir_s end = ir_end(b);
	ir_loop(b, ir_ssub(b, end, unit));
	interleave_unit(&t, arg, unit, columns);
	ir_set_s(b, unit, ir_saddi(b, unit, 1));
	ir_endloop(b);
	return true;
}
