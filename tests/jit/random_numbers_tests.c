/* tests/jit/random_numbers_tests.c - random numbers by counter on every kind of target, and in the interpreter against
 * published numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir_random.h"
#include "tests/jit/every_target.h"
#include "tests/jit/wide_rows_tests.h"

/* Counter and key of Random123's own vectors, and what comes of them. */
static const uint32_t known[][10] = {
	{ 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
	{ 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
	  0x6d5451fd },
	{ 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
	  0x24126ea1 },
};

/* The first words of what goes in are counter and key of all lanes; then the same with the lane's number added to the
 * counter, and splitmix64 of the lane's number and what is behind these words. */
static void build(struct ir *b, const void *user)
{
	const int32_t V = 4 * (int32_t)b->lanes;
	ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	struct ir_philox counter, same, other;
	ir_i key0 = ir_ibcast(b, in, 16), key1 = ir_ibcast(b, in, 20), lane = ir_ilane(b);

	for (int32_t k = 0; k < 4; k++)
		counter.word[k] = ir_ibcast(b, in, 4 * k);
	same = ir_philox(b, counter, key0, key1);
	counter.word[0] = ir_iadd(b, counter.word[0], lane);
	other = ir_philox(b, counter, key0, key1);
	for (int32_t k = 0; k < 4; k++) {
		ir_fstore(b, out, ir_fbits(b, same.word[k]), k * V, 0);
		ir_fstore(b, out, ir_fbits(b, other.word[k]), (4 + k) * V, 0);
	}
	ir_lstore(b, out, ir_splitmix64(b, ir_u2l(b, lane)), 8 * V, 0);
	ir_lstore(b, out, ir_splitmix64(b, ir_lload(b, in, 24, 0)), 10 * V, 0);
}

static uint64_t splitmix64(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void check_known(const uint32_t in[64], const uint32_t want[4], unsigned lanes)
{
	struct random_ir_buffers *x = random_ir_buffers_new(1);
	struct error err = { 0 };
	uint32_t word;
	uint64_t wide;
	struct ir b;

	ir_init(&b, lanes);
	build(&b, NULL);
	assert_true(ir_verify(&b, &err));
	memcpy(x->in, in, 256);
	ir_interp(&b, x->arg, 0, 1);
	for (unsigned l = 0; l < lanes; l++) {
		for (unsigned k = 0; k < 4; k++) {
			memcpy(&word, x->out + 4 * (k * lanes + l), 4);
			assert_int_equal(word, want[k]);
		}
		memcpy(&wide, x->out + 4 * 8 * lanes + 8 * l, 8);
		assert_true(wide == splitmix64(l) && splitmix64(0) == UINT64_C(0xe220a8397b1dcdaf));
	}
	ir_free(&b);
	free(x);
}

static void test_by_counter(void **unused)
{
	for (unsigned k = 0; k < sizeof known / sizeof *known; k++) {
		uint32_t in[72];
		for (unsigned n = 0; n < 72; n++)
			in[n] = n < 6 ? known[k][n] : n * 2654435761u;
		for (unsigned lanes = 8; lanes <= 32; lanes *= 2)
			check_known(in, known[k] + 6, lanes);
		every_target_check(build, NULL, in, sizeof in, 1, EVERY_EXACT, "random numbers");
	}
}

/* The upper words of the first 1 000 000, by their hash (FNV-1a of 64 bits). */
enum { NUMBERS = 1000000, AT_ONCE = 1000 };

static void build_many(struct ir *b, const void *user)
{
	ir_a out = ir_var_a(b, ir_aload(b, ir_arg(b), 8));
	ir_s first = ir_smuli(b, ir_begin(b), AT_ONCE), round = ir_loop(b, ir_sconst(b, AT_ONCE / 8));
	ir_l x = ir_ladd(b, ir_lsplat(b, ir_sadd(b, first, ir_sshli(b, round, 3))), ir_u2l(b, ir_ilane(b)));

	ir_fstore(b, out, ir_fbits(b, ir_l2i(b, ir_lshr(b, ir_splitmix64(b, x), 32))), 0, 0);
	ir_set_a(b, out, ir_aaddi(b, out, 32));
	ir_endloop(b);
}

static void test_million(void **unused)
{
	struct random_ir_buffers *x = random_ir_buffers_new(1);
	uint64_t hash = UINT64_C(14695981039346656037);
	struct ir b;

	ir_init(&b, 8);
	build_many(&b, NULL);
	for (int64_t k = 0; k < NUMBERS / AT_ONCE; k++) {
		ir_interp(&b, x->arg, k, k + 1);
		for (size_t n = 0; n < 4 * AT_ONCE; n++)
			hash = (hash ^ x->out[n]) * UINT64_C(1099511628211);
	}
	assert_true(hash == UINT64_C(0xe5c0944ea5696e86));
	ir_free(&b);
	free(x);
}

static int open_all(void **state)
{
	every_target_open();
	return 0;
}

static int close_all(void **state)
{
	every_target_close();
	return 0;
}

int random_numbers_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_counter), cmocka_unit_test(test_million) };

	return cmocka_run_group_tests_name("random numbers", tests, open_all, close_all);
}
