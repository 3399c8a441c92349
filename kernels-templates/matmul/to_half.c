/* kernels-templates/matmul/to_half.c - activations rounded to f16 or bf16, for products of matrices of the BOUNDED
 * class.
 *
 * Owns: the rounding (numerics.h rule 13). The result is [column][kp] of 16 bits, the inputs' layout otherwise. A unit
 * is read and written by nobody else.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/matmul/matmul.h"

/* To nearest even; a NaN stays one. Result in the low half. */
static ir_i to_bf16(struct ir *b, ir_i bits)
{
	ir_i size = ir_iand(b, bits, ir_iconst(b, 0x7fffffff)), odd = ir_iand(b, ir_ishr(b, bits, 16), ir_iconst(b, 1));
	ir_i rounded = ir_iadd(b, ir_iadd(b, bits, ir_iconst(b, 0x7fff)), odd),
	     quiet = ir_ior(b, bits, ir_iconst(b, 0x400000));
	return ir_ishr(b, ir_isel(b, ir_igt(b, size, ir_iconst(b, 0x7f800000)), quiet, rounded), 16);
}

ir_i narrow_bf16_words(struct ir *b, ir_a from)
{
	ir_i even = to_bf16(b, ir_iload_s(b, from, 0, 8)), odd = to_bf16(b, ir_iload_s(b, from, 4, 8));

	return ir_ior(b, even, ir_ishl(b, odd, 16));
}

/* Words are stored; half the lanes have something to do. */
static void narrow_bf16(struct ir *b, ir_a from, ir_a to)
{
	ir_fstore(b, to, ir_fbits(b, narrow_bf16_words(b, from)), 0, NUMERICS_BLOCK / 2);
}

/* Beyond the largest f16 to that; what fmin and fmax give is b where either is a NaN. */
static void narrow_f16(struct ir *b, ir_a from, ir_a to)
{
	ir_f x = ir_fload(b, from, 0, 0), max = ir_fconst(b, NUMERICS_F16_MAX), min = ir_fconst(b, -NUMERICS_F16_MAX);
	ir_fstore_h(b, to, ir_fmax(b, min, ir_fmin(b, max, x)), 0, 0);
}

bool to_half_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	bool f16 = key->activation == key_type(DTYPE_F16);

	if (!target->has_mma || b->lanes != NUMERICS_BLOCK)
		return build_refuse(key, err, "this target has no products of matrices");
	if ((!f16 && key->activation != key_type(DTYPE_BF16)) || key->numerics != NUMERICS_BOUNDED)
		return build_refuse(key, err, "activations are rounded to F16 or BF16, in the bounded class");
	ir_a arg = ir_arg(b);
	ir_s unit = ir_begin(b);
	ir_a from = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, INTERLEAVE_X * 8), ir_smuli(b, unit, NUMERICS_BLOCK * 4)));
	ir_a to = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, INTERLEAVE_OUT * 8), ir_smuli(b, unit, NUMERICS_BLOCK * 2)));
	ir_loop(b, ir_ssub(b, ir_end(b), unit));
	if (f16)
		narrow_f16(b, from, to);
	else
		narrow_bf16(b, from, to);
	ir_set_a(b, from, ir_aaddi(b, from, NUMERICS_BLOCK * 4));
	ir_set_a(b, to, ir_aaddi(b, to, NUMERICS_BLOCK * 2));
	ir_endloop(b);
	return true;
}
