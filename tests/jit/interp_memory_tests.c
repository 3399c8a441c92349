/* tests/jit/interp_memory_tests.c - the memory operations of the interpreter: lanes, gathers, conversions of every
 * value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "jit/ir/interp.h"
#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/jit/run_ir.h"
#include "tests/jit/interp_check.h"

/* Two pages after which nothing may be touched, and before which neither. */
struct guarded {
	char *low, *high;
	size_t page;
	char *base;
};

static void guard_open(struct guarded *g)
{
	g->page = (size_t)sysconf(_SC_PAGESIZE);
	g->base = mmap(NULL, 4 * g->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->base != MAP_FAILED);
	assert_int_equal(mprotect(g->base + g->page, 2 * g->page, PROT_READ | PROT_WRITE), 0);
	g->low = g->base + g->page;
	g->high = g->base + 3 * g->page;
}

static void guard_close(struct guarded *g) { munmap(g->base, 4 * g->page); }

static void test_load_lanes(void **unused)
{
	struct guarded g;
	uint32_t out[32];

	guard_open(&g);
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2)
		for (unsigned n = 0; n <= lanes; n++) {
			const unsigned touched = n ? n : lanes;
			uint32_t *from = (uint32_t *)(void *)(g.high - 4 * touched);
			struct ir b;

			for (unsigned l = 0; l < touched; l++)
				from[l] = 0x7f800001u + l; /* a load moves bits, also those of a signalling NaN */
			ir_init(&b, lanes);
			ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
			ir_fstore(&b, q, ir_fload(&b, p, 1000, n), 0, 0);
			memset(out, 0xee, sizeof out);
			run_here(&b, (char *)from - 1000, out);
			for (unsigned l = 0; l < 32; l++)
				assert_int_equal(out[l], l < touched ? 0x7f800001u + l : l < lanes ? 0 : 0xeeeeeeee);
		}
	guard_close(&g);
}

/* The rows that load a whole vector of elements of some size, right up to the guard; and the broadcasts. */
static void test_load_rows(void **unused)
{
	static const struct {
		enum ir_op op;
		unsigned size;
		bool one;
	} rows[] = {
		{ IR_fload_h, 2, false },  { IR_iload, 4, false },     { IR_iload_u8, 1, false },
		{ IR_iload_s8, 1, false }, { IR_iload_u16, 2, false }, { IR_fbcast, 4, true },
		{ IR_fbcast_h, 2, true },  { IR_ibcast, 4, true },
	};
	static const uint16_t halves[] = { 0x3c00, 0xc000, 0x0001, 0x8400, 0x7bff, 0x7c00, 0x0000, 0x8000 };
	static const uint32_t widened[] = { 0x3f800000, 0xc0000000, 0x33800000, 0xb8800000,
		                            0x477fe000, 0x7f800000, 0,          0x80000000 };
	struct guarded g;
	uint32_t out[32];

	guard_open(&g);
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
			const enum ir_op op = rows[r].op;
			const bool half = op == IR_fload_h || op == IR_fbcast_h;
			const unsigned bytes = rows[r].one ? rows[r].size : rows[r].size * lanes;
			unsigned char *from = (unsigned char *)g.high - bytes;
			struct ir b;

			for (unsigned k = 0; k < bytes; k++)
				from[k] = half ? (unsigned char)(halves[k / 2 % 8] >> 8 * (k % 2))
				               : (unsigned char)(0x7d + 37 * k);
			ir_init(&b, lanes);
			ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
			uint16_t v = ir_emit(&b, op, 0, p.r, 0, 0, rows[r].one ? -24 : ir_x(-24, 0, 0));
			if (ir_facts[op].dst == IR_TYPE_i32)
				v = ir_fbits(&b, (ir_i){ v }).r;
			ir_fstore(&b, q, (ir_f){ v }, 0, 0);
			run_here(&b, from + 24, out);
			for (unsigned l = 0; l < lanes; l++) {
				const unsigned char *at = from + (rows[r].one ? 0 : l * rows[r].size);
				uint32_t want = 0;

				for (unsigned k = 0; k < rows[r].size; k++)
					want |= (uint32_t)at[k] << 8 * k;
				if (half)
					want = widened[rows[r].one ? 0 : l % 8];
				if (op == IR_iload_s8 && want > 127)
					want -= 256;
				if (out[l] != want)
					fail_msg("%s, lane %u: found %08x, expected %08x", ir_facts[op].name, l, out[l],
					         want);
			}
		}
	guard_close(&g);
}

/* bf16 is the upper half of an f32: every one of them, as templates read it. */
static void test_bf16_every_value(void **unused)
{
	uint16_t *in = malloc(65536 * 2);
	uint32_t *out = malloc(65536 * 4);
	const uint64_t arg[] = { (uintptr_t)in, (uintptr_t)out };
	struct ir b;

	assert_non_null(in);
	assert_non_null(out);
	for (unsigned k = 0; k < 65536; k++)
		in[k] = (uint16_t)k;
	ir_init(&b, 16);
	ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
	ir_s i = ir_loop(&b, ir_end(&b));
	ir_f v = ir_fbits(&b, ir_ishl(&b, ir_iload_u16(&b, ir_aadd(&b, p, ir_smuli(&b, i, 32)), 0), 16));
	ir_fstore(&b, ir_aadd(&b, q, ir_smuli(&b, i, 64)), v, 0, 0);
	ir_endloop(&b);
	assert_true(ir_verify(&b, NULL));
	ir_interp(&b, arg, 0, 4096);
	for (unsigned k = 0; k < 65536; k++)
		assert_int_equal(out[k], k * 65536);
	ir_free(&b);
	free(in);
	free(out);
}

static void test_gather(void **unused)
{
	struct guarded g;
	uint32_t out[32];

	guard_open(&g);
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
		uint32_t *table = (uint32_t *)(void *)(g.high - 400);
		struct ir b;

		for (unsigned k = 0; k < 100; k++)
			table[k] = 0xabc00000u + k;
		ir_init(&b, lanes);
		ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
		/* lane l: word 99 - 3l; the destination is the variable that holds the offsets */
		ir_i offset =
			ir_var_i(&b, ir_isub(&b, ir_iconst(&b, 4 * 99), ir_imul(&b, ir_ilane(&b), ir_iconst(&b, 12))));
		ir_set_i(&b, offset, ir_igather(&b, p, offset, 16));
		ir_fstore(&b, q, ir_fbits(&b, offset), 0, 0);
		run_here(&b, (char *)table - 16, out);
		for (unsigned l = 0; l < lanes; l++)
			assert_int_equal(out[l], 0xabc00000u + 99 - 3 * l);
	}
	guard_close(&g);
}

/* Stores of n lanes at the end of the last page: what they must not touch faults, or is seen to have changed. */
static void store_case(struct guarded *g, enum ir_op op, unsigned lanes, unsigned n, unsigned stride)
{
	const unsigned size = op == IR_istore_8 ? 1 : op == IR_fstore_h || op == IR_fstore_hs ? 2 : 4;
	const unsigned touched = op == IR_fstore1 ? 1 : n ? n : lanes, step = stride ? stride : size;
	unsigned char want[32 * 64 + 64], *to = (unsigned char *)g->high - ((touched - 1) * step + size);
	uint32_t source[32];
	struct ir b;

	for (unsigned l = 0; l < lanes; l++)
		source[l] = op == IR_istore_8 ? (uint32_t)((int)l * 7 - 100) : as_bits(0.5f + (float)l);
	memset(g->high - sizeof want, 0x77, sizeof want);
	memset(want, 0x77, sizeof want);
	for (unsigned l = 0; l < touched; l++) {
		/* 0.5, 1.5, 2.5 ... as half */
		const uint32_t v = size == 2 ? (source[l] >> 13) - (112u << 10) : source[l];

		for (unsigned k = 0; k < size; k++)
			want[sizeof want - (size_t)((unsigned char *)g->high - to) + l * step + k] =
				(unsigned char)(v >> 8 * k);
	}
	ir_init(&b, lanes);
	ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
	const uint16_t v = op == IR_istore_8 ? ir_iload(&b, p, 0).r : ir_fload(&b, p, 0, 0).r;
	ir_emit(&b, op, 0, q.r, v, 0, ir_facts[op].imm == IR_IMM_x ? ir_x(-40, n, stride) : -40);
	run_here(&b, source, to + 40);
	if (memcmp(want, g->high - sizeof want, sizeof want))
		fail_msg("%s of %u in %u lanes, stride %u", ir_facts[op].name, touched, lanes, stride);
}

static void test_store_rows(void **unused)
{
	struct guarded g;

	guard_open(&g);
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
		store_case(&g, IR_istore_8, lanes, 0, 0);
		store_case(&g, IR_fstore1, lanes, 0, 0);
		for (unsigned n = 0; n <= lanes; n++) {
			store_case(&g, IR_fstore, lanes, n, 0);
			store_case(&g, IR_fstore_h, lanes, n, 0);
			for (unsigned stride = 4; stride <= 64; stride += 20) {
				store_case(&g, IR_fstore_s, lanes, n, stride);
				store_case(&g, IR_fstore_hs, lanes, n, stride - 2);
			}
		}
	}
	guard_close(&g);
}

static void test_store_half_rounds(void **unused)
{
	static const uint32_t in[8] = { 0x3f801000, 0x3f803000, 0x477ff000, 0x33000000,
		                        0x33000001, 0xff800000, 0x80000000, 0x387fffff };
	static const uint16_t want[8] = { 0x3c00, 0x3c02, 0x7c00, 0x0000, 0x0001, 0xfc00, 0x8000, 0x0400 };
	uint16_t out[8];
	struct ir b;

	ir_init(&b, 8);
	ir_fstore_h(&b, ir_aload(&b, ir_arg(&b), 8), ir_fload(&b, ir_aload(&b, ir_arg(&b), 0), 0, 0), 0, 0);
	run_here(&b, in, out);
	assert_memory_equal(out, want, sizeof want);
}

static void test_exchange(void **unused)
{
	for (unsigned lanes = 8; lanes <= 32; lanes *= 2)
		for (unsigned by = 1; by < lanes; by *= 2) {
			uint32_t in[32], out[32];
			struct ir b;

			for (unsigned l = 0; l < lanes; l++)
				in[l] = 1000 + l;
			ir_init(&b, lanes);
			ir_fstore(&b, ir_aload(&b, ir_arg(&b), 8),
			          ir_fxor(&b, ir_fload(&b, ir_aload(&b, ir_arg(&b), 0), 0, 0), by), 0, 0);
			run_here(&b, in, out);
			for (unsigned l = 0; l < lanes; l++)
				assert_int_equal(out[l], 1000 + (l / by % 2 ? l - by : l + by));
		}
}

/* A word that nobody gave ends the run where it is looked at; lanes behind the last one are not looked at. */
static void test_await(void **unused)
{
	uint32_t in[64], out[32];
	const uint64_t arg[] = { (uintptr_t)in, (uintptr_t)out };

	for (unsigned way = 0; way < 3; way++)
		for (unsigned empty = 0; empty <= 64; empty++) { /* 64: none */
			const unsigned n = way == 0 ? 11 : 0;
			struct ir b;
			for (unsigned k = 0; k < 64; k++)
				in[k] = k == empty ? IR_EMPTY : IR_EMPTY + 1 + k;
			memset(out, 0x77, sizeof out);
			ir_init(&b, 16);
			ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
			ir_i offset = ir_ishl(&b, ir_ilane(&b), 3);
			ir_f v = way == 0   ? ir_fawait(&b, p, 4, n)
			         : way == 1 ? ir_fawait_s(&b, p, 4, 12)
			                    : ir_fawait_at(&b, p, offset, 8);
			ir_fstore(&b, q, v, 0, 0);
			ir_fgive(&b, q, ir_fbits(&b, ir_iconst(&b, IR_EMPTY)), 64, 3);
			struct interp_program *program = interp_compile(&b);
			assert_non_null(program);
			bool waits = way == 0   ? empty >= 1 && empty < 12
			             : way == 1 ? empty % 3 == 1 && empty < 49
			                        : empty % 2 == 0 && empty >= 2 && empty < 34;
			assert_int_equal(interp_run(program, NULL, arg, 0, 1), waits ? INTERP_UNWRITTEN : INTERP_DONE);
			for (unsigned l = 0; l < 32; l++) {
				unsigned from = way == 0 ? 1 + l : way == 1 ? 1 + 3 * l : 2 + 2 * l;
				uint32_t want = waits || l >= 19     ? 0x77777777
				                : l >= 16            ? IR_EMPTY_GIVEN
				                : way == 0 && l > 10 ? 0
				                                     : IR_EMPTY + 1 + from;
				assert_int_equal(out[l], want);
			}
			interp_free(program);
			ir_free(&b);
		}
}

int interp_memory_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_lanes),       cmocka_unit_test(test_load_rows),
		cmocka_unit_test(test_bf16_every_value), cmocka_unit_test(test_gather),
		cmocka_unit_test(test_store_rows),       cmocka_unit_test(test_store_half_rounds),
		cmocka_unit_test(test_exchange),         cmocka_unit_test(test_await),
	};

	return cmocka_run_group_tests_name("interp_memory_tests", tests, NULL, NULL);
}
