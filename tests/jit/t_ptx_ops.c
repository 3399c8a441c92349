/* tests/jit/t_ptx_ops.c - PTX for every row of ops.def against the interpreter, byte for byte, on a simulated card or,
 * with JITRUN_TEST_CUDA, on this machine's.
 *
 * Every operation alone on edge values, its operands vectors, broadcasts or constants, its destination on each operand;
 * memory of all kinds; loops; groups of waves; random kernels. What differs is told, and the rest is done all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "jit/target.h"
#include "tests/jit/op_kernels.h"
#include "tests/jit/ptx_call.h"
#include "tests/support/shared.h"

enum { V = 128 /* bytes of a vector */, WAVES = 8, SHOWN = 12 };
enum nans { NANS_EXACT, NANS_ALIKE };

static struct ptx_card *card;
static const struct target *target;
static unsigned failures, kernels;

static void tell(const char *what, const char *why)
{
	if (failures++ < SHOWN)
		printf("# %s, %s: %s\n", target->name, what, why);
}

static void compare(const struct ir *ir, const struct random_ir_buffers *want, const struct random_ir_buffers *got,
                    enum nans nans, const char *what)
{
	char text[100];

	for (size_t k = 0; k < sizeof want->out; k += 4) {
		uint32_t w, g;
		memcpy(&w, want->out + k, 4);
		memcpy(&g, got->out + k, 4);
		if (w == g || (nans == NANS_ALIKE && op_is_nan(w) && op_is_nan(g)))
			continue;
		snprintf(text, sizeof text, "output word %zu is %08x, the interpreter says %08x", k / 4, g, w);
		tell(what, text);
		if (getenv("JITRUN_SHOW"))
			ir_print(ir, stdout);
		return;
	}
}

static void check(const struct ir *ir, const void *in, size_t in_bytes, uint64_t seed, int64_t begin, int64_t end,
                  enum nans nans, uint32_t skip, const char *what)
{
	const struct compile_options o = { .skip = skip };
	struct error err = { 0 };
	struct object made;

	kernels++;
	if (!compile_ir(&made, ir, target, &o, NULL, &err)) {
		tell(what, err.text);
		return;
	}
	struct random_ir_buffers *want = random_ir_buffers_new(seed), *got = random_ir_buffers_new(seed);
	memcpy(want->in, in, in_bytes);
	memcpy(got->in, in, in_bytes);
	ir_interp(ir, want->arg, begin, end);
	if (ptx_call(card, &made, ir->cooperative ? ir->waves : 1, got, begin, end, &err))
		compare(ir, want, got, nans, what);
	else
		tell(what, err.text);
	free(want);
	free(got);
	object_free(&made);
}

static void begin_ir(struct ir *b)
{
	ir_init(b, 32);
	b->waves = WAVES;
}

/* --- op by op */

static bool makes_nans(enum ir_op op)
{
	return op == IR_fadd || op == IR_fsub || op == IR_fmul || op == IR_ffma || op == IR_fdiv || op == IR_fsqrt ||
	       op == IR_fhalf || op == IR_fround || op == IR_ffloor || op == IR_fceil || op == IR_ftrunc;
}

/* A driver takes its time to make code, so a card gets two forms of each. */
static void check_vector_op(enum ir_op op, int64_t imm)
{
	uint32_t in[OP_WORDS];
	char what[60];

	op_fill(in, op);
	for (unsigned forms = 0; forms < 64; forms++) {
		const struct ir_facts *f = &ir_facts[op];
		unsigned operands = 0u + (f->a != IR_TYPE__) + (f->b != IR_TYPE__) + (f->c != IR_TYPE__);
		if ((forms & 3) == 3 || (forms >> 2 & 3) == 3 || forms >> 4 == 3 || forms >> 2 * operands)
			continue;
		if (ptx_card_is_real(card) && forms && forms != 0x15u >> (6 - 2 * operands))
			continue;
		for (unsigned dst_on = 0; dst_on < (ptx_card_is_real(card) ? 1 : 4); dst_on++) {
			struct ir b;
			begin_ir(&b);
			snprintf(what, sizeof what, "%s #%lld, forms %x, on %u", f->name, (long long)imm, forms,
			         dst_on);
			if (op_build_vector(&b, op, imm, dst_on, forms, in))
				check(&b, in, sizeof in, 1, 0, 1, makes_nans(op) ? NANS_ALIKE : NANS_EXACT, 0, what);
			ir_free(&b);
		}
	}
}

static void test_vector_ops(void **state)
{
	op_each_vector(32, check_vector_op);
	assert_int_equal(failures, 0);
}

static void check_scalar(const struct ir *b, const void *in, size_t in_bytes, unsigned round)
{
	if (ptx_card_is_real(card) ? round % 8 == 0 : !test_small_share() || round % 4 == 0)
		check(b, in, in_bytes, 1, 0, 1, NANS_EXACT, 0, "scalars");
}

static void test_scalars(void **state)
{
	static const int64_t by[] = { 1, 2, 3, 5, 7, 10, 32, 640, 641, 65535, 65537, 1000003, INT32_MAX };
	uint64_t in[OP_DIVIDENDS];

	op_each_scalar(begin_ir, check_scalar);
	for (unsigned k = 0; k < sizeof by / sizeof *by; k++) {
		struct ir b;
		begin_ir(&b);
		op_build_division(&b, by[k], in);
		check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, 0, "a quotient");
		ir_free(&b);
	}
	assert_int_equal(failures, 0);
}

/* --- memory, names, loops */

static void test_memory(void **state)
{
	uint32_t in[OP_WORDS];
	char what[40];

	op_fill(in, IR_f2i);
	for (unsigned n = 0; n <= 32; n += n < 3 || n > 29 ? 1 : 5) {
		struct ir b;
		begin_ir(&b);
		op_build_lane_counts(&b, n);
		snprintf(what, sizeof what, "memory of %u lanes", n);
		check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, COMPILE_SKIP_JOINS, what);
		ir_free(&b);
		begin_ir(&b);
		op_build_awaits(&b, n);
		snprintf(what, sizeof what, "memory of %u lanes", n);
		check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, COMPILE_SKIP_JOINS, what);
		ir_free(&b);
	}
	struct ir b;
	begin_ir(&b);
	op_build_names(&b);
	check(&b, in, sizeof in, 1, 0, 1, NANS_ALIKE, COMPILE_SKIP_JOINS, "names of variables");
	ir_free(&b);
	assert_int_equal(failures, 0);
}

static void test_loops(void **state)
{
	static const int64_t counts[] = { -3, 0, 1, 2, 7 };

	for (unsigned use = 0; use < 2; use++) {
		struct ir b;
		begin_ir(&b);
		op_build_loops(&b, use);
		for (unsigned n = 0; n < 5; n++)
			for (unsigned m = n + 1; m < 5; m++)
				check(&b, "", 0, 1, counts[n], counts[m], NANS_EXACT, 0, "loops");
		ir_free(&b);
	}
	assert_int_equal(failures, 0);
}

/* Words side by side, in every order, around what must keep them apart; the addresses are multiples of 16, which lets
 * them be joined. */
static void build_joins(struct ir *b)
{
	ir_a arg = ir_arg(b), src = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8), shared = ir_local(b, 4096),
	     p = ir_var_a(b, src);
	ir_i sum = ir_var_i(b, ir_ilane(b));

	for (int32_t k = 0; k < 4096; k += V)
		ir_fstore(b, shared, ir_fload(b, src, k, 0), k, 0);
	ir_loop(b, ir_sconst(b, 3));
	for (int32_t round = 0; round < 2; round++) {
		ir_i w[32];
		for (int32_t k = 0; k < 8; k++)
			w[k] = ir_iload_s(b, p, (k * 5 & 7) * 4, 32);
		for (int32_t k = 0; k < 16; k++)
			w[8 + k] = ir_ibcast(b, p, 400 + (k * 7 & 15) * 4 + (k & 8 ? 64 : 0));
		for (int32_t k = 0; k < 4; k++)
			w[24 + k] = ir_ibcast(b, shared, 208 + k * 4);
		ir_fstore1(b, shared, ir_fbits(b, sum), 212);
		w[28] = ir_ibcast(b, shared, 212);
		ir_fstore(b, out, ir_fbits(b, sum), 8192 + round * V, 0);
		w[29] = ir_iload_s(b, out, 8192, 4);
		w[30] = ir_iload_s(b, shared, 16, 16);
		w[31] = ir_iload_s(b, shared, 20, 16);
		for (unsigned k = 0; k < 32; k++)
			ir_set_i(b, sum, ir_iadd(b, ir_imul(b, sum, ir_iconst(b, 31)), w[k]));
		ir_set_a(b, p, ir_aaddi(b, p, 48));
	}
	ir_endloop(b);
	ir_fstore(b, out, ir_fbits(b, sum), 0, 0);
}

static void test_joins(void **state)
{
	static const char *const wide[] = { "ld.global.v4.b32", "ld.shared.v4.b32", "ld.shared.v2.b32" };
	uint32_t in[1024];
	struct error err = { 0 };
	struct object o;
	struct ir b;

	for (unsigned k = 0; k < 1024; k++)
		in[k] = k * 2654435761u;
	begin_ir(&b);
	build_joins(&b);
	assert_true(compile_ir(&o, &b, target, NULL, NULL, &err));
	for (unsigned k = 0; k < 3; k++)
		assert_non_null(memmem(o.code, o.code_bytes, wide[k], strlen(wide[k])));
	object_free(&o);
	check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, 0, "joined loads");
	check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, COMPILE_SKIP_JOINS, "loads apart");
	ir_free(&b);
	assert_int_equal(failures, 0);
}

/* Locals are each wave's own, shared bytes the group's. */
static void test_waves(void **state)
{
	uint32_t in[1024];
	struct ir b;

	for (unsigned k = 0; k < 1024; k++)
		in[k] = (k * 2654435761u & 0x3f7fffff) | 0x20000000;
	begin_ir(&b);
	ir_a arg = ir_arg(&b), src = ir_aload(&b, arg, 0), out = ir_aload(&b, arg, 8);
	ir_a own = ir_local(&b, 2 * V), first = ir_shared(&b, 100), all = ir_shared(&b, WAVES * V);
	ir_s wave = ir_wave(&b), next = ir_sandi(&b, ir_saddi(&b, wave, 3), WAVES - 1);
	ir_a mine = ir_aadd(&b, all, ir_smuli(&b, wave, V)), theirs = ir_aadd(&b, all, ir_smuli(&b, next, V)),
	     to = ir_aadd(&b, out, ir_smuli(&b, wave, 4 * V));
	ir_f v = ir_fload(&b, ir_aadd(&b, src, ir_sshli(&b, wave, 7)), 0, 0);
	ir_fstore(&b, own, v, V, 0);
	ir_loop(&b, ir_ssub(&b, ir_sconst(&b, 1), ir_smin(&b, wave, ir_sconst(&b, 1)))); /* wave 0 */
	ir_fstore1(&b, first, v, 96);
	ir_endloop(&b);
	ir_s round = ir_loop(&b, ir_sconst(&b, 3));
	ir_fstore(&b, mine, ir_fadd(&b, v, ir_i2f(&b, ir_isplat(&b, round))), 0, 0);
	ir_barrier(&b);
	ir_fstore(&b, ir_aadd(&b, to, ir_sshli(&b, round, 7)),
	          ir_fadd(&b, ir_fload(&b, theirs, 0, 0), ir_fbcast(&b, theirs, 64)), 0, 0);
	ir_barrier(&b);
	ir_endloop(&b);
	ir_fstore(&b, to, ir_fadd(&b, ir_fload(&b, own, V, 0), ir_fbcast(&b, first, 96)), 3 * V, 0);
	ir_barrier_all(&b);
	ir_f left = ir_fload(&b, ir_aadd(&b, out, ir_smuli(&b, next, 4 * V)), 3 * V, 0); /* another wave's */
	ir_barrier_all(&b);
	ir_fstore(&b, to, ir_fmul(&b, left, ir_fload(&b, to, 2 * V, 0)), 3 * V, 0);
	check(&b, in, sizeof in, 1, 5, 6, NANS_EXACT, 0, "a group of waves");
	ir_free(&b);
	assert_int_equal(failures, 0);
}

/* Chunks of so many bytes, three of them on their way; `but` of these are not waited for. All lanes read what one has
 * copied, too. */
enum { CHUNKS = 5, SETUPS = 3, COPIED_MAX = 800 };

static ir_a address_of(struct ir *b, ir_a setups, ir_s n, int64_t bytes)
{
	ir_s round = ir_smuli(b, ir_sdivi(b, n, SETUPS), SETUPS);

	return ir_aadd(b, setups, ir_smuli(b, ir_ssub(b, n, round), bytes));
}

static void build_copies(struct ir *b, int64_t bytes, uint32_t but)
{
	ir_a arg = ir_arg(b), src = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8),
	     setups = ir_local(b, SETUPS * bytes);
	ir_s wave = ir_wave(b), requested = ir_var_s(b, ir_sconst(b, 0)), taken = { 0 };
	ir_i sum = ir_var_i(b, ir_ilane(b));

	out = ir_aadd(b, out, ir_smuli(b, wave, V));
	for (unsigned part = 0; part < 2; part++) {
		ir_s round = ir_loop(b, ir_sconst(b, part ? CHUNKS : SETUPS));
		if (part) {
			taken = round;
			ir_copied(b, but);
			ir_a at = address_of(b, setups, taken, bytes);
			for (int64_t k = 0; k + V <= bytes; k += V)
				ir_set_i(b, sum,
				         ir_iadd(b, ir_imul(b, sum, ir_iconst(b, 31)), ir_iload(b, at, (int32_t)k)));
			ir_set_i(b, sum, ir_iadd(b, sum, ir_ibcast(b, at, (int32_t)bytes - 4)));
		}
		ir_s number = ir_smin(b, requested, ir_sconst(b, CHUNKS - 1)); /* the last one more than once */
		ir_a to = address_of(b, setups, requested, bytes), from = ir_aadd(b, src, ir_smuli(b, number, bytes));
		ir_copy(b, to, from, (uint32_t)bytes);
		ir_set_s(b, requested, ir_saddi(b, requested, 1));
		ir_endloop(b);
	}
	ir_fstore(b, out, ir_fbits(b, sum), 0, 0);
}

/* The same of so many bytes a lane, from places that go the other way, into the group's shared bytes; each chunk is two
 * rows of copy_at, and the neighbouring wave's is read behind a barrier. */
static void build_scattered(struct ir *b, int64_t bytes, uint32_t but)
{
	const int64_t half = 32 * bytes, chunk = 2 * half;
	ir_a arg = ir_arg(b), src = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8),
	     all = ir_shared(b, SETUPS * chunk * b->waves);
	ir_s wave = ir_wave(b), next = ir_sandi(b, ir_saddi(b, wave, 1), b->waves - 1);
	ir_i sum = ir_var_i(b, ir_ilane(b)), lane = ir_ilane(b),
	     back = ir_imul(b, ir_isub(b, ir_iconst(b, 31), lane), ir_iconst(b, (int32_t)bytes));
	ir_a mine = ir_aadd(b, all, ir_smuli(b, wave, SETUPS * chunk)),
	     theirs = ir_aadd(b, all, ir_smuli(b, next, SETUPS * chunk));

	src = ir_aadd(b, src, ir_smuli(b, wave, 16));
	for (int64_t k = 0; k < SETUPS; k++) {
		for (int64_t i = 0; i < 2; i++)
			ir_copy_at(b, ir_aaddi(b, mine, k * chunk + i * half),
			           ir_aaddi(b, src, k * 64 + (1 - i) * half), back, (unsigned)bytes);
		ir_copies(b);
	}
	for (int64_t k = 0; k < SETUPS; k++) {
		const uint32_t later = (uint32_t)(SETUPS - 1 - k);
		ir_copied(b, but == SETUPS ? SETUPS : but < later ? but : later);
		ir_barrier(b);
		for (int64_t at = 0; at < chunk; at += V)
			ir_set_i(b, sum,
			         ir_iadd(b, ir_imul(b, sum, ir_iconst(b, 31)),
			                 ir_iload(b, theirs, (int32_t)(k * chunk + at))));
	}
	ir_fstore(b, ir_aadd(b, out, ir_smuli(b, wave, V)), ir_fbits(b, sum), 0, 0);
}

/* Nothing that is not waited for may be read. */
static void refuse_early(const struct ir *ir)
{
	struct random_ir_buffers *x = random_ir_buffers_new(1);
	struct error err = { 0 };
	struct object made;

	assert_true(compile_ir(&made, ir, target, NULL, NULL, &err));
	assert_false(ptx_call(card, &made, ir->waves, x, 0, 1, &err));
	assert_non_null(strstr(err.text, "nothing wrote"));
	object_free(&made);
	free(x);
}

/* Where there are no copies, and of other sizes. */
static void refuse_copies(void)
{
	struct error err = { 0 };
	struct object made;
	struct ir b;

	begin_ir(&b);
	build_copies(&b, 512, 0);
	assert_false(compile_ir(&made, &b, target_find("gfx1100"), NULL, NULL, &err));
	assert_string_equal(err.text, "target gfx1100 has no asynchronous copies");
	ir_free(&b);
	begin_ir(&b);
	build_copies(&b, 520, 0);
	err = (struct error){ 0 };
	assert_false(ir_verify(&b, &err));
	assert_non_null(strstr(err.text, "immediate is 520, expected a multiple of 16"));
	ir_free(&b);
}

static void test_copies(void **state)
{
	static const int64_t sizes[] = { 16, 128, 496, 512, 528, COPIED_MAX };
	uint32_t in[CHUNKS * COPIED_MAX / 4];
	char what[40];

	refuse_copies();
	for (unsigned k = 0; k < sizeof in / sizeof *in; k++)
		in[k] = k * 2654435761u;
	for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (uint32_t but = 0; but <= SETUPS; but++) {
			struct ir b;
			begin_ir(&b);
			build_copies(&b, sizes[k], but);
			snprintf(what, sizeof what, "copies of %d bytes", (int)sizes[k]);
			if (but < SETUPS)
				check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, 0, what);
			else if (!ptx_card_is_real(card))
				refuse_early(&b);
			ir_free(&b);
		}
	for (int64_t bytes = 4; bytes <= 16; bytes *= 2)
		for (uint32_t but = 0; but <= SETUPS; but++) {
			struct ir b;
			begin_ir(&b);
			build_scattered(&b, bytes, but);
			snprintf(what, sizeof what, "copies of %d bytes a lane", (int)bytes);
			if (but < SETUPS)
				check(&b, in, sizeof in, 1, 0, 1, NANS_EXACT, 0, what);
			else if (!ptx_card_is_real(card))
				refuse_early(&b);
			ir_free(&b);
		}
	assert_int_equal(failures, 0);
}

static void test_random(void **state)
{
	unsigned n = ptx_card_is_real(card) ? 24 : test_quick() ? 40 : 200;
	char what[40];

	for (unsigned seed = 1; seed <= n; seed++) {
		if (!test_mine(seed))
			continue;
		struct random_ir_buffers *in = random_ir_buffers_new(seed);
		struct ir b;
		random_ir(&b, 32, seed, 40 + seed % 160);
		snprintf(what, sizeof what, "random kernel %u", seed);
		check(&b, in->in, sizeof in->in, seed, (int64_t)seed % 5, (int64_t)seed % 5 + 1 + seed % 3, NANS_EXACT,
		      COMPILE_SKIP_JOINS, what);
		ir_free(&b);
		free(in);
	}
	assert_int_equal(failures, 0);
}

static int begin_test(void **state)
{
	failures = kernels = 0;
	return 0;
}

static int end_test(void **state)
{
	printf("# %u kernels, %u failed\n", kernels, failures);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	static const char *const targets[] = { "sm80", "sm90" };
	const struct CMUnitTest tests[] = { TEST(test_vector_ops), TEST(test_scalars), TEST(test_memory),
		                            TEST(test_loops),      TEST(test_joins),   TEST(test_waves),
		                            TEST(test_copies),     TEST(test_random) };
	int failed = 0;

	for (unsigned t = 0; t < 2; t++) {
		struct error err = { 0 };
		target = target_find(targets[t]);
		card = ptx_card_open(t ? 90 : 80, &err);
		if (!card) {
			printf("# %s\n", err.text);
			return 1;
		}
		failed += cmocka_run_group_tests_name(targets[t], tests, NULL, NULL);
		ptx_card_close(card);
	}
	return failed;
}
