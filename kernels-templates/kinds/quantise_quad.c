/* kernels-templates/kinds/quantise_quad.c - four int8 blocks at once, of eight lanes each.
 *
 * Owns: numerics.h rule 4 for 128 neighbours of which lane l has elements 4l to 4l + 3, on targets with 32 lanes. That
 * takes a quarter of the divisions and of the steps across lanes that four blocks take one by one (quantise.c).
 */
#include <math.h>

#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

/* Of a number in 8 lanes, or in the 4 of a half block. */
static ir_f sum_of(struct ir *b, ir_f x, unsigned lanes)
{
	for (unsigned i = 1; i < lanes; i *= 2)
		x = ir_fadd(b, x, ir_fxor(b, x, i));
	return x;
}

static ir_f scale_of(struct ir *b, const ir_f x[4])
{
	ir_f max[4];

	for (unsigned i = 0; i < 4; i++)
		max[i] = ir_fabs(b, x[i]);
	ir_f low = ir_fmax(b, max[0], max[1]), high = ir_fmax(b, max[2], max[3]), all = ir_fmax(b, low, high);
	for (unsigned i = 1; i < 8; i *= 2)
		all = ir_fmax(b, all, ir_fxor(b, all, i));
	return ir_fdiv(b, all, ir_fconst(b, 127.0f));
}

/* x / d to int8, as quantise_emit_scaled() has it, by one reciprocal for all: where a reciprocal is correctly rounded
 * and a quotient off by less than a unit in its last place, the quotient and what is left over, times the reciprocal,
 * give the correctly rounded one (Markstein). The first correction makes it that close. d and x are scaled so that
 * nothing overflows, and what underflows is of a quotient that becomes 0 anyway. */
static void quotients(struct ir *b, const ir_f x[4], ir_f d, ir_i q[4])
{
	ir_f zero = ir_fconst(b, 0.0f), one = ir_fconst(b, 1.0f), max = ir_fconst(b, 127.0f),
	     min = ir_fconst(b, -127.0f);
	ir_m some = ir_flt(b, zero, d), is_small = ir_flt(b, d, ir_fconst(b, 0x1p-64f)),
	     is_large = ir_flt(b, ir_fconst(b, 0x1p64f), d), is_finite = ir_flt(b, d, ir_fconst(b, INFINITY));
	ir_f down = ir_fsel(b, is_large, ir_fconst(b, 0x1p-64f), one),
	     by = ir_fsel(b, is_small, ir_fconst(b, 0x1p64f), down), of = ir_fmul(b, d, by);
	ir_f reciprocal = ir_fdiv(b, one, of), less = ir_fneg(b, of);

	for (unsigned i = 0; i < 4; i++) {
		ir_f a = ir_fmul(b, x[i], by), y = ir_fmul(b, a, reciprocal);
		for (unsigned iteration = 0; iteration < 2; iteration++) {
			ir_f left = ir_ffma(b, less, y, a);
			y = ir_ffma(b, left, reciprocal, y);
		}
		y = ir_fsel(b, is_finite, y, ir_fsub(b, x[i], x[i])); /* by infinity */
		y = ir_fmax(b, ir_fmin(b, y, max), min);
		q[i] = ir_f2i(b, ir_fsel(b, some, y, zero));
	}
}

void quantise_emit_quad(struct ir *b, const ir_f x[4], ir_f *quants, ir_f *of_block)
{
	ir_f d = scale_of(b, x), whole[4];
	ir_i q[4], word = { 0 };

	quotients(b, x, d, q);
	for (unsigned i = 0; i < 4; i++) {
		ir_i byte = i < 3 ? ir_iand(b, q[i], ir_iconst(b, 255)) : q[i];
		whole[i] = ir_i2f(b, q[i]);
		word = i ? ir_ior(b, word, ir_ishl(b, byte, i * 8)) : byte;
	}
	*quants = ir_fbits(b, word);
	ir_f low = ir_fadd(b, whole[0], whole[1]), high = ir_fadd(b, whole[2], whole[3]),
	     half = sum_of(b, ir_fadd(b, low, high), 4), other = ir_fxor(b, half, 4),
	     all = ir_fmul(b, d, ir_fadd(b, half, other));
	ir_i which = ir_iand(b, ir_ilane(b), ir_iconst(b, 3));
	ir_m one = ir_ieq(b, which, ir_iconst(b, 1)), two = ir_ieq(b, which, ir_iconst(b, 2)),
	     three = ir_ieq(b, which, ir_iconst(b, 3));
	ir_f first = ir_fbits(b, ir_f2i(b, half)), second = ir_fbits(b, ir_f2i(b, other));
	ir_f v = ir_fsel(b, one, all, d);
	v = ir_fsel(b, two, first, v);
	*of_block = ir_fsel(b, three, second, v);
}

void quantise_give_quad(struct ir *b, const ir_f x[4], ir_a q, ir_a s, ir_a scratch)
{
	enum { BLOCKS = 4, WORDS = sizeof(struct activation_block) / 4 };
	ir_f quants, of_block;

	quantise_emit_quad(b, x, &quants, &of_block);
	ir_fgive(b, q, quants, 0, 0);
	ir_fstore(b, scratch, of_block, 0, 0);
	/* word l % 4 of block l / 4, which has eight lanes there */
	ir_i lane = ir_iand(b, ir_ilane(b), ir_iconst(b, BLOCKS * WORDS - 1)),
	     block = ir_ishl(b, ir_ishr(b, lane, 2), 5), word = ir_ishl(b, ir_iand(b, lane, ir_iconst(b, 3)), 2);
	ir_fgive(b, s, ir_fbits(b, ir_igather(b, scratch, ir_iadd(b, block, word), 0)), 0, BLOCKS * WORDS);
}
