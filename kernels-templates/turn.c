/* kernels-templates/turn.c - activations turned for wide matmuls: the columns of a tile side by side.
 *
 * Owns: KEY_TURN. Moves bits, and makes signed bytes unsigned where VNNI is to have them so. A unit is read and written by nobody else.
 */
#include "kernels-templates/build.h"
#include "kernels-templates/math.h"

/* 32 k's of one column at `from` go to every columns-th word from `to` on. */
static void turn_column(struct ir *b, ir_a from, ir_a to, bool int8, bool is_unsigned, uint32_t columns)
{
	if (int8) {
		ir_f words = ir_fload(b, from, 0, 8);
		if (is_unsigned)
			words = ir_fbits(b, ir_ixor(b, ir_ibits(b, words), ir_iconst(b, (int32_t)0x80808080)));
		ir_fstore_s(b, to, words, 0, 8, columns * 4);
		return;
	}
	for (unsigned v = 0; v < math_parts(b); v++)
		ir_fstore_s(b, to, ir_fload(b, from, (int32_t)(v * b->lanes * 4), 0), (int32_t)(v * b->lanes * columns * 4), 0, columns * 4);
}

bool turn_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	bool int8 = key->activation == DTYPE_Q8_0 + 1;
	uint32_t kp = (uint32_t)numerics_pad(key->k), blocks = kp / 32, columns = key->columns, block_bytes = int8 ? 32 : 128;
	enum { SUMS = sizeof(struct activation_block) };

	(void)target;
	if (!int8 && key->activation != DTYPE_F32 + 1)
		return build_refuse(key, err, "activations are F32 or Q8_0");
	if (key->k == 0 || columns == 0 || columns > TEMPLATE_MAX_WIDE || (int64_t)kp * 4 * columns > INT32_MAX / 2)
		return build_refuse(key, err, "k must be positive and fit, a wide tile has 1 to 48 columns");
	ir_a arg = ir_arg(b);
	ir_s unit = ir_var_s(b, ir_begin(b));
	ir_loop(b, ir_ssub(b, ir_end(b), ir_begin(b)));
	ir_s tile = ir_sdivi(b, unit, blocks), block = ir_ssub(b, unit, ir_smuli(b, tile, blocks));
	ir_s first = ir_sadd(b, ir_smuli(b, tile, (int64_t)blocks * columns), block);        /* the first column's block; the rest lie `blocks` apart */
	ir_a from = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, TURN_X * 8), ir_smuli(b, first, block_bytes)));
	ir_a to = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, TURN_OUT * 8), ir_smuli(b, unit, (int64_t)block_bytes * columns)));
	ir_a sums = { 0 }, to_sums = { 0 };
	if (int8) {
		sums = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, TURN_XS * 8), ir_smuli(b, first, SUMS)));
		to_sums = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, TURN_OUTS * 8), ir_smuli(b, unit, (int64_t)SUMS * columns)));
	}
	ir_loop(b, ir_sconst(b, columns));
	turn_column(b, from, to, int8, key->flags & KEY_UNSIGNED, columns);
	ir_set_a(b, from, ir_aaddi(b, from, (int64_t)blocks * block_bytes));
	ir_set_a(b, to, ir_aaddi(b, to, 4));
	if (int8) {
		ir_fstore(b, to_sums, ir_fload(b, sums, 0, 4), 0, 4);
		ir_set_a(b, sums, ir_aaddi(b, sums, (int64_t)blocks * SUMS));
		ir_set_a(b, to_sums, ir_aaddi(b, to_sums, SUMS));
	}
	ir_endloop(b);
	ir_set_s(b, unit, ir_saddi(b, unit, 1));
	ir_endloop(b);
	return true;
}
