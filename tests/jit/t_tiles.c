/* tests/jit/t_tiles.c - the matrix rows of ops.def: the interpreter against plain loops, and code for cards that have
 * them against the interpreter, byte for byte.
 *
 * Every row alone and with others around it, from global memory and from LDS, in variables and loops; on one card of
 * every generation that has matrix instructions, in all the simulator's memory modes. Others refuse, by a sentence. A
 * real NVIDIA card (JITRUN_TEST_CUDA) adds floats in its own order: there sums of floats are compared by their bound.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/interp.h"
#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/jit/ptx_call.h"
#include "tests/jit/rdna_call.h"

enum { N = IR_TILE, CELLS = N * N, TILE_BYTES = CELLS * 4, IN_BYTES = 16384, OUT_BYTES = 16384, WAVES = 8 };

struct memory {
	_Alignas(64) uint8_t in[IN_BYTES], out[OUT_BYTES];
	uint64_t arg[2];
};

static struct memory *fresh(uint32_t seed)
{
	struct memory *m = aligned_alloc(64, sizeof *m);
	assert_non_null(m);
	for (size_t k = 0; k < IN_BYTES; k++) {
		seed = seed * 1664525 + 1013904223;
		m->in[k] = (uint8_t)(seed >> 24);
	}
	for (size_t k = 1; k < IN_BYTES / 2;
	     k += 2) /* halves of everyday size, read as f16, bf16 or f32: no infinities, no NaN */
		m->in[k] = (uint8_t)((m->in[k] & 0x80) | (0x2c + (m->in[k] & 0x13)));
	memset(m->out, 0xa5, OUT_BYTES);
	m->arg[0] = (uint64_t)(uintptr_t)m->in;
	m->arg[1] = (uint64_t)(uintptr_t)m->out;
	return m;
}

static void begin(struct ir *b, unsigned waves)
{
	ir_init(b, 32);
	b->waves = waves;
}

static ir_a in_of(struct ir *b) { return ir_aload(b, ir_arg(b), 0); }
static ir_a out_of(struct ir *b) { return ir_aload(b, ir_arg(b), 8); }
static void store(struct ir *b, ir_t v, unsigned number)
{
	ir_tstore(b, out_of(b), v, (int32_t)(number * TILE_BYTES), N * 4, 4);
}

/* --- the meaning */

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
static uint16_t get16(const uint8_t *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return v;
}

/* Byte k of strip r of an operand. */
static const uint8_t *strip(const uint8_t *at, unsigned stride, unsigned blocks, unsigned r, unsigned k)
{
	return at + r * stride + (k < 16 ? k : blocks * 16 + k - 16);
}

static uint32_t plain_dot(enum ir_op op, const uint8_t *a, unsigned sa, unsigned pa, const uint8_t *b, unsigned sb,
                          unsigned pb, unsigned r, unsigned c, uint32_t from)
{
	double sum = bits_f32(from);
	uint32_t isum = from;

	for (unsigned k = 0; k < 32; k += op == IR_tdot_i8 ? 1 : 2) {
		const uint8_t *x = strip(a, sa, pa, r, k), *y = strip(b, sb, pb, c, k);
		if (op == IR_tdot_i8)
			isum += (uint32_t)((int8_t)*x * (int8_t)*y);
		else if (op == IR_tdot_f16)
			sum += (double)f16_f32(get16(x)) * (double)f16_f32(get16(y));
		else
			sum += (double)bits_f32((uint32_t)get16(x) << 16) * (double)bits_f32((uint32_t)get16(y) << 16);
	}
	return op == IR_tdot_i8 ? isum : f32_bits((float)sum);
}

enum {
	A_AT = 32,
	A_STRIDE = 112,
	A_VECTORS = 1,
	B_AT = 2048,
	B_STRIDE = 16,
	B_VECTORS = 32,
	C_AT = 4096,
	C_STRIDE = 132,
	C_STEP = 8
};

static void build_dots(struct ir *b)
{
	begin(b, 1);
	ir_a in = in_of(b);
	ir_o x = ir_oload(b, in, A_AT, A_STRIDE, A_VECTORS), y = ir_oload(b, in, B_AT, B_STRIDE, B_VECTORS);
	ir_t c = ir_tload(b, in, C_AT, C_STRIDE, C_STEP);
	store(b, ir_tdot_i8(b, x, y, c), 0);
	store(b, ir_tdot_f16(b, x, y, c), 1);
	store(b, ir_tdot_bf16(b, x, y, c), 2);
	store(b, ir_tdot_i8(b, x, y, ir_tconst(b, 0)), 3);
	store(b, ir_tdot_f16(b, y, x, ir_tconst(b, 0.1f)), 4);
	store(b, ir_tdot_bf16(b, x, x, ir_tconst(b, 1)), 5);
}

static void test_meaning_of_dots(void **unused)
{
	struct memory *m = fresh(1);
	struct ir b;

	build_dots(&b);
	assert_true(ir_verify(&b, NULL));
	ir_interp(&b, m->arg, 0, 1);
	for (unsigned r = 0; r < N; r++)
		for (unsigned c = 0; c < N; c++) {
			const uint8_t *x = m->in + A_AT, *y = m->in + B_AT, *at = m->out + (r * N + c) * 4;
			uint32_t from = get32(m->in + C_AT + r * C_STRIDE + c * C_STEP);
			assert_int_equal(get32(at), plain_dot(IR_tdot_i8, x, A_STRIDE, 1, y, 16, 32, r, c, from));
			assert_int_equal(get32(at + TILE_BYTES),
			                 plain_dot(IR_tdot_f16, x, A_STRIDE, 1, y, 16, 32, r, c, from));
			assert_int_equal(get32(at + 2 * TILE_BYTES),
			                 plain_dot(IR_tdot_bf16, x, A_STRIDE, 1, y, 16, 32, r, c, from));
			assert_int_equal(get32(at + 3 * TILE_BYTES),
			                 plain_dot(IR_tdot_i8, x, A_STRIDE, 1, y, 16, 32, r, c, 0));
			assert_int_equal(get32(at + 4 * TILE_BYTES),
			                 plain_dot(IR_tdot_f16, y, 16, 32, x, A_STRIDE, 1, r, c, f32_bits(0.1f)));
			assert_int_equal(get32(at + 5 * TILE_BYTES),
			                 plain_dot(IR_tdot_bf16, x, A_STRIDE, 1, x, A_STRIDE, 1, r, c, f32_bits(1)));
		}
	ir_free(&b);
	free(m);
}

static void build_elements(struct ir *b)
{
	begin(b, 1);
	ir_a in = in_of(b);
	ir_t full = ir_tload(b, in, C_AT, C_STRIDE, C_STEP), rows = ir_tload(b, in, 100, 64, 0),
	     columns = ir_tload_h(b, in, 8, 0, 16), halves = ir_tload_h(b, in, 2, 34, 2);
	ir_t words = ir_tload(b, in, IN_BYTES / 2, 64, 4), acc = ir_var_t(b, full),
	     alike = ir_tmul(b, columns, ir_tconst(b, 3));
	store(b, ir_tmul(b, rows, columns), 0);
	store(b, ir_tfma(b, halves, full, rows), 1);
	store(b, ir_ti2f(b, words), 2);
	ir_set_t(b, acc, ir_tfma(b, alike, rows, acc));
	store(b, acc, 3);
	store(b, alike, 4);
	store(b, ir_tconst(b, 7), 5);
	ir_emit(b, IR_tmov, acc.r, columns.r, 0, 0, 0);
	store(b, acc, 6);
	ir_emit(b, IR_tconst, acc.r, 0, 0, 0, 0x40490fdb);
	ir_tstore(b, out_of(b), acc, 7 * TILE_BYTES, 4, 68);
}

static void test_meaning_of_elements(void **unused)
{
	struct memory *m = fresh(2);
	struct ir b;

	build_elements(&b);
	assert_true(ir_verify(&b, NULL));
	ir_interp(&b, m->arg, 0, 1);
	for (unsigned r = 0; r < N; r++)
		for (unsigned c = 0; c < N; c++) {
			const uint8_t *at = m->out + (r * N + c) * 4;
			float full = bits_f32(get32(m->in + C_AT + r * C_STRIDE + c * C_STEP)),
			      row = bits_f32(get32(m->in + 100 + r * 64));
			float column = f16_f32(get16(m->in + 8 + c * 16)),
			      half = f16_f32(get16(m->in + 2 + r * 34 + c * 2)), alike = column * 3;
			assert_int_equal(get32(at), f32_bits(row * column));
			assert_int_equal(get32(at + TILE_BYTES), f32_bits(fmaf(half, full, row)));
			assert_int_equal(get32(at + 2 * TILE_BYTES),
			                 f32_bits((float)(int32_t)get32(m->in + IN_BYTES / 2 + r * 64 + c * 4)));
			assert_int_equal(get32(at + 3 * TILE_BYTES), f32_bits(fmaf(alike, row, full)));
			assert_int_equal(get32(at + 4 * TILE_BYTES), f32_bits(alike));
			assert_int_equal(get32(at + 5 * TILE_BYTES), f32_bits(7));
			assert_int_equal(get32(at + 6 * TILE_BYTES), f32_bits(column));
			assert_int_equal(get32(m->out + 7 * TILE_BYTES + r * 4 + c * 68), 0x40490fdb);
		}
	ir_free(&b);
	free(m);
}

/* --- cards */

static const enum rdna_gen gens[] = { RDNA_GFX11, RDNA_GFX11_5, RDNA_GFX12 };
static const struct sim_options modes[] = {
	{ .memory = SIM_MEMORY_NOW },
	{ .memory = SIM_MEMORY_AT_WAIT, .perturb = 1 },
	{ .memory = SIM_MEMORY_RANDOM, .seed = 1, .perturb = 77 },
};

static void check_card(const struct ir *ir, enum rdna_gen gen, uint32_t seed, int64_t end)
{
	for (unsigned k = 0; k < sizeof modes / sizeof *modes; k++) {
		struct memory *want = fresh(seed), *got = fresh(seed);
		struct compile_options opt = {
			.seed = k == 2 ? 5 : 0, .skip = k == 1 ? COMPILE_SKIP_SCHED : 0, .verify_passes = true
		};
		struct object o;
		struct error err = { 0 };
		ir_interp(ir, want->arg, 0, end);
		if (!compile_ir(&o, ir, target_find(rdna_call_targets[gen]), &opt, NULL, &err))
			fail_msg("%s: %s", rdna_call_targets[gen], err.text);
		const struct rdna_call c = {
			.object = &o,
			.gen = gen,
			.waves = ir->cooperative ? ir->waves : 1,
			.arg = got->arg,
			.n_args = 2,
			.end = end,
			.memory = { { got->in, IN_BYTES, false }, { got->out, OUT_BYTES, true } }
		};
		if (!rdna_call(&c, &modes[k], &err))
			fail_msg("%s, mode %u: %s", rdna_call_targets[gen], k, err.text);
		for (size_t at = 0; at < OUT_BYTES; at += 4)
			if (memcmp(want->out + at, got->out + at, 4))
				fail_msg("%s, mode %u: word %zu is %08x, the interpreter says %08x",
				         rdna_call_targets[gen], k, at / 4, get32(got->out + at),
				         get32(want->out + at));
		object_free(&o);
		free(want);
		free(got);
	}
}

/* Whether these are sums of everyday numbers, no further apart than a hundred terms below 2 may make them. Whole
 * numbers are tiny floats, or none. */
static bool is_near(uint32_t a, uint32_t b)
{
	float x = bits_f32(a), y = bits_f32(b);
	return fmaxf(fabsf(x), fabsf(y)) > 0x1p-60f && fabsf(x - y) <= 100 * 2 * 0x1p-22f;
}

static void check_ptx(const struct ir *ir, uint32_t capability, uint32_t seed, int64_t end)
{
	const char *name = capability < 90 ? "sm80" : "sm90";
	struct memory *want = fresh(seed), *got = fresh(seed);
	const struct ptx_block_of block = { got, sizeof *got, got->arg, 2, 0 };
	struct error err = { 0 };
	struct ptx_card *card = ptx_card_open(capability, &err);
	struct object o;

	ir_interp(ir, want->arg, 0, end);
	if (!card || !compile_ir(&o, ir, target_find(name), NULL, NULL, &err) ||
	    !ptx_call_block(card, &o, ir->cooperative ? ir->waves : 1, &block, end, &err))
		fail_msg("%s: %s", name, err.text);
	for (size_t at = 0; at < OUT_BYTES; at += 4)
		if (memcmp(want->out + at, got->out + at, 4) &&
		    !(ptx_card_is_real(card) && is_near(get32(want->out + at), get32(got->out + at))))
			fail_msg("%s: word %zu is %08x, the interpreter says %08x", name, at / 4, get32(got->out + at),
			         get32(want->out + at));
	object_free(&o);
	ptx_card_close(card);
	free(want);
	free(got);
}

static void check_on(struct ir *ir, int64_t end, unsigned n_gens)
{
	struct error err = { 0 };

	if (!ir_verify(ir, &err))
		fail_msg("%s", err.text);
	for (uint32_t seed = 1; seed < 4; seed++) {
		check_ptx(ir, 80, seed, end);
		check_ptx(ir, 90, seed, end);
	}
	for (unsigned g = 0; g < n_gens; g++)
		for (uint32_t seed = 1; seed < 4; seed++)
			check_card(ir, gens[g], seed, end);
	ir_free(ir);
}
static void check(struct ir *ir, int64_t end) { check_on(ir, end, sizeof gens / sizeof *gens); }

static void test_dots_on_cards(void **unused)
{
	struct ir b;
	build_dots(&b);
	check(&b, 1);
}

static void test_elements_on_cards(void **unused)
{
	struct ir b;
	build_elements(&b);
	check(&b, 1);
}

/* Sums in variables through a loop of several products, as a matmul does them; rows so far apart that one displacement
 * does not reach them. */
static void test_sums_in_loops(void **unused)
{
	struct ir b;
	begin(&b, 1);
	ir_a x = ir_var_a(&b, in_of(&b)), y = ir_var_a(&b, ir_aaddi(&b, in_of(&b), 512)), out = out_of(&b);
	ir_t sum = ir_var_t(&b, ir_tconst(&b, 0)), floats = ir_var_t(&b, ir_tconst(&b, 0)),
	     far = ir_tload(&b, in_of(&b), -4 + 8, 1000, 0);
	ir_loop(&b, ir_end(&b));
	ir_o p = ir_oload(&b, x, 0, 64, 1), q = ir_oload(&b, y, 0, 16, 16), r = ir_oload(&b, y, 256, 16, 16);
	ir_t whole = ir_tdot_i8(&b, p, q, ir_tconst(&b, 0)), second = ir_tdot_i8(&b, p, r, ir_tconst(&b, 0));
	ir_set_t(&b, floats,
	         ir_tfma(&b, ir_tmul(&b, ir_tload(&b, x, 0, 48, 0), ir_tload_h(&b, y, 0, 0, 2)), ir_ti2f(&b, whole),
	                 floats));
	ir_set_t(&b, sum, ir_tdot_bf16(&b, q, p, sum));
	ir_set_t(&b, sum, ir_tdot_f16(&b, r, p, sum));
	ir_tstore(&b, out, second, 2 * TILE_BYTES, 64, 4);
	ir_set_a(&b, x, ir_aaddi(&b, x, 32));
	ir_set_a(&b, y, ir_aaddi(&b, y, 48));
	ir_endloop(&b);
	store(&b, sum, 0);
	store(&b, floats, 1);
	store(&b, far, 3);
	ir_tstore(&b, out, ir_tmul(&b, far, ir_tconst(&b, 2)), 4 * TILE_BYTES, 600, 4);
	check(&b, 5);
}

/* As large as sums of bytes' products become, as floats. */
static void test_greatest_sums(void **unused)
{
	static const uint32_t bytes[] = { 0x80808080, 0x7f7f7f7f };
	struct ir b;
	begin(&b, 1);
	ir_a at[2] = { ir_aaddi(&b, out_of(&b), 8 * TILE_BYTES), ir_aaddi(&b, out_of(&b), 9 * TILE_BYTES) };
	for (unsigned k = 0; k < 2; k++) {
		ir_t v = { ir_emit(&b, IR_tconst, 0, 0, 0, 0, bytes[k]) };
		ir_tstore(&b, at[k], v, 0, 64, 4);
	}
	for (unsigned k = 0; k < 3; k++) {
		ir_o x = ir_oload(&b, at[k / 2], 0, 32, 1), y = ir_oload(&b, at[k > 0], 0, 32, 1);
		store(&b, ir_ti2f(&b, ir_tdot_i8(&b, x, y, ir_tconst(&b, 0))), k);
	}
	check(&b, 1);
}

/* Tiles that waves leave for each other in shared bytes, and in their own local ones. */
static void test_tiles_in_lds(void **unused)
{
	struct ir b;
	begin(&b, WAVES);
	ir_a in = in_of(&b), own = ir_local(&b, TILE_BYTES), all = ir_shared(&b, WAVES * TILE_BYTES);
	ir_s wave = ir_wave(&b), next = ir_sandi(&b, ir_saddi(&b, wave, 3), WAVES - 1);
	ir_t v = ir_tload(&b, ir_aadd(&b, in, ir_sshli(&b, wave, 6)), 64, 128, 4);
	ir_tstore(&b, own, v, 0, 4, 64);
	ir_tstore(&b, ir_aadd(&b, all, ir_smuli(&b, wave, TILE_BYTES)), v, 0, 64, 4);
	ir_barrier(&b);
	ir_t theirs = ir_tload(&b, ir_aadd(&b, all, ir_smuli(&b, next, TILE_BYTES)), 0, 64, 4),
	     reversed = ir_tload(&b, own, 0, 64, 4);
	ir_tstore(&b, ir_aadd(&b, out_of(&b), ir_smuli(&b, wave, TILE_BYTES)),
	          ir_tfma(&b, theirs, reversed, ir_tload_h(&b, all, 6, 0, 64)), 0, 64, 4);
	check(&b, 1);
}

/* Operands that waves leave for each other, on targets that take them from there. */
static void test_operands_in_shared(void **unused)
{
	struct error err = { 0 };
	struct object o;
	struct ir b;
	begin(&b, WAVES);
	ir_a all = ir_shared(&b, WAVES * 1088);
	ir_s wave = ir_wave(&b), next = ir_sandi(&b, ir_saddi(&b, wave, 3), WAVES - 1);
	ir_o v = ir_oload(&b, ir_aadd(&b, in_of(&b), ir_sshli(&b, wave, 5)), 32, 48, 1);
	ir_a mine = ir_aadd(&b, all, ir_smuli(&b, wave, 1088)), theirs = ir_aadd(&b, all, ir_smuli(&b, next, 1088));
	ir_ostore(&b, mine, v, 0, 16, 18);
	ir_barrier(&b);
	ir_o w = ir_oload(&b, theirs, 0, 16, 18);
	ir_barrier(&b);
	ir_ostore(&b, mine, w, 16, 64, 1);
	ir_t sum = ir_tdot_i8(&b, v, ir_oload(&b, mine, 16, 64, 1), ir_tconst(&b, 0));
	ir_tstore(&b, ir_aadd(&b, out_of(&b), ir_smuli(&b, wave, TILE_BYTES)), sum, 0, 64, 4);
	assert_false(compile_ir(&o, &b, target_find("gfx1100"), NULL, NULL, &err));
	assert_non_null(strstr(err.text, "target gfx1100 has operands of matrix products from global memory alone"));
	check_on(&b, 1, 0);
}

/* The upper half of a tile, row by row and turned; what lies where the lower half would be stays. */
static void test_upper_halves(void **unused)
{
	struct error err = { 0 };
	struct object o;
	struct ir b;
	begin(&b, 1);
	ir_t v = ir_tload(&b, in_of(&b), 32, 128, 4), w = ir_tload_h(&b, in_of(&b), 6, 96, 2);
	store(&b, w, 0);
	ir_tstore_top(&b, out_of(&b), v, 0, 64, 4);
	ir_tstore_top(&b, out_of(&b), ir_tfma(&b, v, w, w), TILE_BYTES, 4, 68);
	ir_tstore_top(&b, ir_aaddi(&b, out_of(&b), 4 * TILE_BYTES), v, 8, 76, 4);
	ir_t twice = ir_tload_top(&b, in_of(&b), 16, 48, 0), other = ir_tload_top(&b, in_of(&b), 8, 64, 4);
	store(&b, ir_tfma(&b, twice, v, other), 5);
	ir_o x = ir_oload_top(&b, in_of(&b), 0, 48, 1), y = ir_oload(&b, in_of(&b), 64, 32, 1);
	store(&b, ir_ti2f(&b, ir_tdot_i8(&b, x, y, ir_tconst(&b, 0))), 6);
	assert_false(compile_ir(&o, &b, target_find("gfx1100"), NULL, NULL, &err));
	assert_non_null(strstr(err.text, "memory alone, and whole tiles"));
	check_on(&b, 1, 0);
}

/* Factors that all come from shared bytes are loaded as matrices: of half the strips as well. */
static void test_upper_strips_in_shared(void **unused)
{
	struct ir b;
	begin(&b, 1);
	ir_a all = ir_shared(&b, 4 * TILE_BYTES);
	for (int i = 0; i < 4 * TILE_BYTES / 128; i++)
		ir_fstore(&b, all, ir_fload(&b, in_of(&b), i * 128, 0), i * 128, 0);
	ir_barrier(&b);
	ir_o x = ir_oload_top(&b, all, 32, 80, 2), y = ir_oload(&b, all, 16, 48, 1);
	store(&b, ir_ti2f(&b, ir_tdot_i8(&b, x, y, ir_tconst(&b, 0))), 0);
	store(&b, ir_tload_top(&b, all, 12, 72, 0), 1);
	check_on(&b, 1, 0);
}

static void test_refusals(void **unused)
{
	static const char *const without[] = { "gfx1030", "avx2", "avx512" };

	for (unsigned k = 0; k < 3; k++) {
		const struct target *t = target_find(without[k]);
		struct error err = { 0 };
		struct object o;
		struct ir b;
		ir_init(&b, t->lanes);
		ir_tstore(&b, ir_aload(&b, ir_arg(&b), 0), ir_tconst(&b, 1), 0, 64, 4);
		assert_false(compile_ir(&o, &b, t, NULL, NULL, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		assert_non_null(strstr(err.text, "matrix operation tconst"));
		assert_non_null(strstr(err.text, without[k]));
		ir_free(&b);
	}
}

static void test_text_and_back(void **unused)
{
	char *text = NULL, *again = NULL;
	size_t n;
	struct error err = { 0 };
	struct ir b, c;

	build_elements(&b);
	for (unsigned k = 0; k < 2; k++) {
		FILE *f = open_memstream(k ? &again : &text, &n);
		assert_non_null(f);
		ir_print(k ? &c : &b, f);
		fclose(f);
		if (!k && !ir_parse(&c, text, &err))
			fail_msg("%s", err.text);
	}
	assert_true(strcmp(text, again) == 0 && ir_verify(&c, NULL));
	free(text);
	free(again);
	ir_free(&b);
	ir_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meaning_of_dots), cmocka_unit_test(test_meaning_of_elements),
		cmocka_unit_test(test_dots_on_cards),   cmocka_unit_test(test_elements_on_cards),
		cmocka_unit_test(test_upper_halves),    cmocka_unit_test(test_upper_strips_in_shared),
		cmocka_unit_test(test_greatest_sums),   cmocka_unit_test(test_sums_in_loops),
		cmocka_unit_test(test_tiles_in_lds),    cmocka_unit_test(test_operands_in_shared),
		cmocka_unit_test(test_refusals),        cmocka_unit_test(test_text_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
