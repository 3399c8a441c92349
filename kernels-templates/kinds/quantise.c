/* kernels-templates/kinds/quantise.c - f32 activations to int8 blocks of 32, alone or at the end of another kernel.
 *
 * Owns: numerics.h rule 4 as IR, written once. The result of any finite input lies in -127..127, which dot4 and
 * istore_8 rely on.
 */
#include <assert.h>

#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

/* The exact sums of the first and second 16 of 32 small whole numbers, in lane 0 at least. Any order gives the same. */
static void sum_halves(struct ir *b, const ir_f q[], ir_f sum[2])
{
	unsigned n = math_parts(b);

	sum[0] = n == 4 ? ir_fadd(b, q[0], q[1]) : q[0];
	sum[1] = n == 4 ? ir_fadd(b, q[2], q[3]) : n == 2 ? q[1] : ir_fxor(b, q[0], 16);
	for (unsigned i = b->lanes < 16 ? b->lanes / 2 : 8; i; i /= 2)
		for (unsigned half = 0; half < 2; half++)
			sum[half] = ir_fadd(b, sum[half], ir_fxor(b, sum[half], i));
}

static void store_sums(struct ir *b, const ir_f q[], ir_f d, ir_a s, int32_t disp)
{
	ir_f sum[2];

	sum_halves(b, q, sum);
	ir_fstore1(b, s, d, disp + (int32_t)offsetof(struct activation_block, d));
	ir_fstore1(b, s, ir_fmul(b, d, ir_fadd(b, sum[0], sum[1])),
	           disp + (int32_t)offsetof(struct activation_block, d_sum));
	for (unsigned half = 0; half < 2; half++)
		ir_fstore1(b, s, ir_fbits(b, ir_f2i(b, sum[half])),
		           disp + (int32_t)(offsetof(struct activation_block, sum) + half * 4));
}

void quantise_emit_scaled(struct ir *b, const ir_f x[], unsigned n, ir_f d, ir_i q[])
{
	ir_f zero = ir_fconst(b, 0.0f);
	ir_m some = ir_flt(b, zero, d);

	for (unsigned v = 0; v < n; v++) {
		ir_f scaled = ir_fmax(b, ir_fmin(b, ir_fdiv(b, x[v], d), ir_fconst(b, 127.0f)), ir_fconst(b, -127.0f));
		q[v] = ir_f2i(b, ir_fsel(b, some, scaled, zero));
	}
}

ir_f quantise_emit(struct ir *b, const ir_f x[], ir_i q[])
{
	unsigned n = math_parts(b);
	ir_f magnitude[MATH_MAX_PARTS];

	for (unsigned v = 0; v < n; v++)
		magnitude[v] = ir_fabs(b, x[v]);
	ir_f d = ir_fdiv(b, math_lane_max(b, magnitude), ir_fconst(b, 127.0f));
	quantise_emit_scaled(b, x, n, d, q);
	return d;
}

void quantise_emit_block(struct ir *b, const ir_f x[], ir_a q, int32_t q_disp, ir_a s, int32_t s_disp)
{
	ir_i rounded[MATH_MAX_PARTS];
	ir_f whole[MATH_MAX_PARTS] = { { 0 } }, d = quantise_emit(b, x, rounded);

	for (unsigned v = 0; v < math_parts(b); v++) {
		ir_istore_8(b, q, rounded[v], q_disp + (int32_t)(v * b->lanes));
		whole[v] = ir_i2f(b, rounded[v]);
	}
	store_sums(b, whole, d, s, s_disp);
}

void quantise_emit_several(struct ir *b, unsigned n, const ir_f x[], const ir_a q[], const ir_a s[])
{
	ir_f d[QUANTISE_SEVERAL], whole[QUANTISE_SEVERAL];
	ir_i rounded;

	assert(math_parts(b) == 1 && n <= QUANTISE_SEVERAL);
	for (unsigned i = 0; i < n; i++)
		d[i] = math_lane_max(b, (const ir_f[]){ ir_fabs(b, x[i]) });
	for (unsigned i = 0; i < n; i++)
		d[i] = ir_fdiv(b, d[i], ir_fconst(b, 127.0f));
	for (unsigned i = 0; i < n; i++) {
		quantise_emit_scaled(b, &x[i], 1, d[i], &rounded);
		ir_istore_8(b, q[i], rounded, 0);
		whole[i] = ir_i2f(b, rounded);
	}
	for (unsigned i = 0; i < n; i++)
		store_sums(b, &whole[i], d[i], s[i], 0);
}

void quantise_give_block(struct ir *b, ir_f x, ir_a q, ir_a s, ir_a scratch)
{
	enum { WORDS = sizeof(struct activation_block) / 4 };
	ir_i rounded, lane = ir_ilane(b);
	ir_f d = quantise_emit(b, &x, &rounded), whole = ir_i2f(b, rounded), sum[2];

	ir_istore_8(b, scratch, rounded, 0);
	ir_fgive(b, q, ir_fload(b, scratch, 0, 8), 0, 8);
	sum_halves(b, &whole, sum);
	ir_f of_all = ir_fmul(b, d, ir_fadd(b, sum[0], sum[1]));
	ir_f first = ir_fbits(b, ir_f2i(b, sum[0])), second = ir_fbits(b, ir_f2i(b, sum[1]));
	const ir_f word[WORDS] = { d, of_all, first, second };
	ir_f mine = word[0];
	for (int i = 1; i < WORDS; i++)
		mine = ir_fsel(b, ir_ieq(b, lane, ir_iconst(b, i)), word[i], mine);
	ir_fgive(b, s, mine, 0, WORDS);
}

bool quantise_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	unsigned n = math_parts(b);
	ir_f x[MATH_MAX_PARTS];
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s count = ir_ssub(b, ir_end(b), begin);
	ir_a in = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, QUANTISE_X * 8), ir_sshli(b, begin, 7)));
	ir_a q = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, QUANTISE_OUTQ * 8), ir_sshli(b, begin, 5)));
	ir_a s = ir_var_a(b, ir_aadd(b, ir_aload(b, arg, QUANTISE_OUTS * 8), ir_sshli(b, begin, 4)));

	ir_loop(b, count);
	for (unsigned v = 0; v < n; v++)
		x[v] = ir_fload(b, in, (int32_t)(v * b->lanes * 4), 0);
	quantise_emit_block(b, x, q, 0, s, 0);
	ir_set_a(b, in, ir_aaddi(b, in, 128));
	ir_set_a(b, q, ir_aaddi(b, q, 32));
	ir_set_a(b, s, ir_aaddi(b, s, sizeof(struct activation_block)));
	ir_endloop(b);
	return true;
}
