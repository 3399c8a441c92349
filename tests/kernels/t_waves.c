/* tests/kernels/t_waves.c - kernels that a group of waves runs together, and the loads that give a lane its own words:
 * interpreter and machine code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "jit/ir/ir_build.h"
#include "jit/ir/lanes.h"
#include "tests/support/guarded.h"
#include "tests/kernels/kernel_run.h"

enum { ROUNDS = 4 };

/* Every wave writes its place in shared memory, waits, reads its neighbour's, waits; end times. Locals stay each wave's
 * own. */
static void build_rounds(struct ir *b, unsigned lanes, unsigned waves)
{
	int32_t vector = (int32_t)lanes * 4;

	ir_init(b, lanes);
	b->waves = waves;
	ir_a out = ir_aload(b, ir_arg(b), 0), count = ir_local(b, vector),
	     shared = ir_shared(b, waves * (unsigned)vector);
	ir_s wave = ir_wave(b),
	     more = ir_sshri(b, ir_saddi(b, wave, 1 - (int64_t)waves), 63); /* -1; 0 for the last wave */
	ir_a own = ir_aadd(b, shared, ir_smuli(b, wave, vector));
	ir_a next = ir_aadd(b, shared,
	                    ir_smuli(b, ir_ssub(b, ir_sconst(b, 0), ir_smul(b, more, ir_saddi(b, wave, 1))), vector));
	ir_a to = ir_aadd(b, out, ir_smuli(b, wave, 2 * vector));

	ir_fstore(b, count, ir_fconst(b, 0.0f), 0, 0);
	ir_s i = ir_loop(b, ir_end(b));
	ir_i mark = ir_iadd(b, ir_isplat(b, ir_sadd(b, ir_smuli(b, wave, 1000), i)), ir_ilane(b));
	ir_fstore(b, own, ir_fbits(b, mark), 0, 0);
	ir_fstore(b, count, ir_fbits(b, ir_iadd(b, ir_iload(b, count, 0), ir_iconst(b, 1))), 0, 0);
	ir_barrier(b);
	ir_fstore(b, to, ir_fload(b, next, 0, 0), 0, 0);
	ir_barrier(b);
	ir_endloop(b);
	ir_fstore(b, to, ir_fload(b, count, 0, 0), vector, 0);
}

static void check_rounds(const struct kernel_way *way, unsigned waves)
{
	uint32_t out[IR_MAX_WAVES * 2 * 32];
	const uint64_t arg[] = { (uintptr_t)out };
	unsigned lanes = way->target.lanes;
	struct kernel k;
	struct ir b;

	build_rounds(&b, lanes, waves);
	assert_true(b.cooperative);
	kernel_open_ir(&k, way, &b);
	kernel_run(&k, arg, 0, ROUNDS);
	for (unsigned w = 0; w < waves; w++)
		for (unsigned l = 0; l < lanes; l++) {
			assert_int_equal(out[w * 2 * lanes + l], 1000 * ((w + 1) % waves) + ROUNDS - 1 + l);
			assert_int_equal(out[w * 2 * lanes + lanes + l], ROUNDS);
		}
	kernel_close(&k);
	ir_free(&b);
}

/* A CPU's group is one wave, which waits for no one. */
static void test_groups(void **unused)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways);

	for (unsigned i = 0; i < n; i++)
		for (unsigned waves = 1; waves <= (ways[i].native ? 1 : IR_MAX_WAVES); waves += 5)
			check_rounds(&ways[i], waves);
}

static void check_strided(const struct kernel_way *way, unsigned stride)
{
	unsigned lanes = way->target.lanes;
	struct guarded g = guarded_open(4096);
	uint8_t bytes[4096] = { 0 };
	uint32_t out[3 * 32];
	struct kernel k;
	struct ir b;

	for (unsigned l = 0; l < lanes; l++)
		memcpy(bytes + l * stride, &(uint32_t){ 0x3c00def0u + l * 77 }, 4);
	const uint64_t arg[] = { (uintptr_t)guarded_copy(&g, bytes, (lanes - 1) * stride + 4) + 12, (uintptr_t)out };
	ir_init(&b, lanes);
	ir_a p = ir_aload(&b, ir_arg(&b), 0), q = ir_aload(&b, ir_arg(&b), 8);
	ir_i word = ir_iload_s(&b, p, -12, stride);
	for (unsigned half = 0; half < 2; half++)
		ir_fstore(&b, q, ir_fhalf(&b, word, half), (int32_t)((1 + half) * lanes * 4), 0);
	ir_fstore(&b, q, ir_fbits(&b, word), 0, 0);
	kernel_open_ir(&k, way, &b);
	kernel_run(&k, arg, 0, 1);
	for (unsigned l = 0; l < lanes; l++) {
		uint32_t want = 0x3c00def0u + l * 77;
		float halves[2] = { f16_f32((uint16_t)want), f16_f32((uint16_t)(want >> 16)) };
		assert_int_equal(out[l], want);
		assert_memory_equal(&out[lanes + l], &halves[0], 4);
		assert_memory_equal(&out[2 * lanes + l], &halves[1], 4);
	}
	kernel_close(&k);
	ir_free(&b);
	guarded_close(&g);
}

/* A lane's own words, stride by stride, up to the end of memory. */
static void test_strided_loads(void **unused)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways);

	for (unsigned i = 0; i < n; i++)
		for (unsigned stride = 4; stride <= 128; stride = stride < 16 ? stride + 4 : stride * 2)
			check_strided(&ways[i], stride);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups), cmocka_unit_test(test_strided_loads) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
