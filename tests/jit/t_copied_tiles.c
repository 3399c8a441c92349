/* tests/jit/t_copied_tiles.c - operands of products of matrices that the waves of a group copy for each other, on
 * simulated NVIDIA cards, or a real one: the interpreter's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "jit/compile.h"
#include "jit/ir/ir_build.h"
#include "tests/jit/ptx_call.h"

enum { N = IR_TILE, TILE_BYTES = N * N * 4, WAVES = 8, IN_BYTES = 4096, OUT_BYTES = WAVES * TILE_BYTES };

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
	memset(m->out, 0xa5, OUT_BYTES);
	m->arg[0] = (uint64_t)(uintptr_t)m->in;
	m->arg[1] = (uint64_t)(uintptr_t)m->out;
	return m;
}

/* Rows of 128 bytes that waves copy for each other, turned, in two groups, of which each wave first takes the older
 * one; all four pairs of pieces of them, as first and as second factors. mixed: one factor comes from elsewhere, so
 * that the others are not loaded as matrices. */
static void build_copied(struct ir *b, bool mixed)
{
	ir_init(b, 32);
	b->waves = WAVES;
	ir_a all = ir_shared(b, 2 * WAVES * N * IR_ROW_BYTES), in = ir_aload(b, ir_arg(b), 0),
	     out = ir_aload(b, ir_arg(b), 8);
	ir_s wave = ir_wave(b), next = ir_sandi(b, ir_saddi(b, wave, 3), WAVES - 1);
	ir_i lane = ir_ilane(b), row = ir_ishr(b, lane, 3), slot = ir_iand(b, lane, ir_iconst(b, 7));
	ir_t sum = ir_tconst(b, 0);

	for (unsigned group = 0; group < 2; group++) {
		ir_a to = ir_aadd(b, ir_aaddi(b, all, group * WAVES * N * IR_ROW_BYTES),
		                  ir_smuli(b, wave, N * IR_ROW_BYTES));
		for (unsigned i = 0; i < N; i += 4) {
			ir_i r = ir_iadd(b, row, ir_iconst(b, (int32_t)i)),
			     vector = ir_ixor(b, slot, ir_iand(b, r, ir_iconst(b, 7)));
			ir_i at = ir_iadd(b, ir_imul(b, r, ir_iconst(b, 144)), ir_ishl(b, vector, 4));
			ir_copy_at(b, ir_aaddi(b, to, i * IR_ROW_BYTES),
			           ir_aaddi(b, ir_aadd(b, in, ir_sshli(b, wave, 5)), group * 64), at, 16);
		}
		ir_copies(b);
	}
	for (unsigned group = 0; group < 2; group++) {
		ir_copied(b, 1 - group);
		ir_barrier(b);
		ir_a from = ir_aaddi(b, all, group * WAVES * N * IR_ROW_BYTES),
		     mine = ir_aadd(b, from, ir_smuli(b, wave, N * IR_ROW_BYTES)),
		     theirs = ir_aadd(b, from, ir_smuli(b, next, N * IR_ROW_BYTES));
		for (unsigned vector = 0; vector < 8; vector += 2)
			sum = ir_tdot_i8(b, ir_oload_swizzled(b, mine, 0, vector),
			                 ir_oload_swizzled(b, theirs, 0, vector ^ group * 2), sum);
	}
	if (mixed)
		sum = ir_tdot_i8(b, ir_oload(b, in, 32, 48, 1), ir_oload_swizzled(b, all, 0, 4), sum);
	ir_tstore(b, ir_aadd(b, out, ir_smuli(b, wave, TILE_BYTES)), sum, 0, 64, 4);
}

static void check(const struct ir *ir, uint32_t capability, uint32_t seed)
{
	struct memory *want = fresh(seed), *got = fresh(seed);
	const struct ptx_block_of block = { got, sizeof *got, got->arg, 2, 0 };
	struct error err = { 0 };
	struct ptx_card *card = ptx_card_open(capability, &err);
	struct object o;

	ir_interp(ir, want->arg, 0, 1);
	if (!card || !compile_ir(&o, ir, target_find(capability < 90 ? "sm80" : "sm90"), NULL, NULL, &err) ||
	    !ptx_call_block(card, &o, WAVES, &block, 1, &err))
		fail_msg("sm%u: %s", capability, err.text);
	assert_memory_equal(want->out, got->out, OUT_BYTES);
	object_free(&o);
	ptx_card_close(card);
	free(want);
	free(got);
}

static void test_copied_operands(void **unused)
{
	struct error err = { 0 };

	for (unsigned mixed = 0; mixed < 2; mixed++) {
		struct ir b;
		build_copied(&b, mixed);
		if (!ir_verify(&b, &err))
			fail_msg("%s", err.text);
		for (uint32_t seed = 1; seed < 4; seed++) {
			check(&b, 80, seed);
			check(&b, 90, seed);
		}
		ir_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_copied_operands) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
