/* tests/kernels/t_math.c - exp and the lane reductions: the contract's bits in every way of running, and exp's distance
 * from the true one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/emit/math.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/support/shared.h"

enum { ARG_IN, ARG_OUT, ARGS };

/* out[i] = exp(in[i]); a unit is 32 elements. */
static void build_exp(struct ir *b)
{
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), ir_begin(b)));
	ir_s bytes = ir_sshli(b, ir_sadd(b, i, ir_begin(b)), 7);
	ir_a in = ir_aadd(b, ir_aload(b, ir_arg(b), ARG_IN * 8), bytes),
	     out = ir_aadd(b, ir_aload(b, ir_arg(b), ARG_OUT * 8), bytes);
	for (unsigned v = 0; v < 32; v += b->lanes)
		ir_fstore(b, out, math_exp(b, ir_fload(b, in, (int32_t)(v * 4), 0)), (int32_t)(v * 4), 0);
	ir_endloop(b);
}

/* 32 partials in; their sum and their maximum, all lanes, out. */
static void build_reduce(struct ir *b)
{
	ir_a in = ir_aload(b, ir_arg(b), ARG_IN * 8), out = ir_aload(b, ir_arg(b), ARG_OUT * 8);
	ir_f part[MATH_MAX_PARTS];
	for (unsigned v = 0; v < math_parts(b); v++)
		part[v] = ir_fload(b, in, (int32_t)(v * b->lanes * 4), 0);
	ir_fstore(b, out, math_lane_sum(b, part), 0, 0);
	ir_fstore(b, out, math_lane_max(b, part), 128, 0);
}

static void open_ir(struct kernel *k, const struct kernel_way *way, void (*build)(struct ir *))
{
	struct ir ir;
	ir_init(&ir, way->target.lanes);
	build(&ir);
	kernel_open_ir(k, way, &ir);
	ir_free(&ir);
}

enum { BATCH = 1 << 15 };

/* Every step'th float from first (as bits) while it stays at or below last. */
struct sweep {
	float *in, *out, *want;
	double worst;
};

static void check_batch(struct sweep *s, const struct kernel *k, unsigned ways)
{
	const struct kernel_way *way;
	uint64_t arg[ARGS] = { [ARG_IN] = (uintptr_t)s->in, [ARG_OUT] = (uintptr_t)s->out };

	kernel_ways(&way);
	for (unsigned i = 0; i < BATCH; i++) {
		s->want[i] = plain_exp(s->in[i]);
		if (s->in[i] < -87.0f || s->in[i] > 88.0f)
			continue;
		double truth = exp((double)s->in[i]);
		int e;
		frexp(truth, &e);
		double off = fabs((double)s->want[i] - truth) / ldexp(1.0, e - 24);
		s->worst = off > s->worst ? off : s->worst;
	}
	for (unsigned w = 0; w < ways; w++) {
		kernel_run(&k[w], arg, 0, BATCH / 32);
		if (memcmp(s->out, s->want, BATCH * 4) != 0)
			fail_msg("%s: exp differs in the batch from %a", way[w].name, (double)s->in[0]);
	}
}

static void test_exp_over_floats(void **state)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways(&way);
	uint32_t step = test_quick() ? 20011 : 503;
	struct kernel k[KERNEL_MAX_WAYS];
	struct sweep s = { kernel_buffer(BATCH * 4, 0), kernel_buffer(BATCH * 4, 0), kernel_buffer(BATCH * 4, 0), 0 };
	(void)state;

	for (unsigned w = 0; w < ways; w++)
		open_ir(&k[w], &way[w], build_exp);
	for (uint32_t bits = 0; bits < 0x7f800000u;) {
		for (unsigned i = 0; i < BATCH; i += 2) {
			memcpy(&s.in[i], &bits, 4);
			s.in[i + 1] = -s.in[i];
			bits = bits + step < 0x7f800000u ? bits + step : 0x7f800000u;
		}
		check_batch(&s, k, ways);
	}
	/* The bound numerics.h states, in units in the last place. */
	assert_true(s.worst < 0.9);
	for (unsigned w = 0; w < ways; w++)
		kernel_close(&k[w]);
	free(s.in);
	free(s.out);
	free(s.want);
}

static void test_exp_at_edges(void **state)
{
	static const float edge[] = { 0.0f,  -0.0f,          1e-45f,   -1e-45f,   -87.0f, -0x1.5c0002p+6f,
		                      88.0f, 0x1.600002p+6f, INFINITY, -INFINITY, 3e38f,  -3e38f };
	const struct kernel_way *way;
	unsigned ways = kernel_ways(&way);
	_Alignas(64) float in[32] = { 0 }, out[32];
	uint64_t arg[ARGS] = { [ARG_IN] = (uintptr_t)in, [ARG_OUT] = (uintptr_t)out };
	(void)state;

	memcpy(in, edge, sizeof edge);
	for (unsigned w = 0; w < ways; w++) {
		struct kernel k;
		open_ir(&k, &way[w], build_exp);
		kernel_run(&k, arg, 0, 1);
		for (unsigned i = 0; i < 32; i++) {
			float want = plain_exp(in[i]);
			assert_memory_equal(&out[i], &want, 4);
		}
		for (unsigned i = 0; i < 4; i++)
			assert_true(out[i] == 1.0f);
		assert_true(out[4] > 0.0f && out[5] == 0.0f && out[9] == 0.0f && out[11] == 0.0f);
		assert_true(out[6] == out[7] && out[6] == out[8] && out[6] == out[10] && out[6] < INFINITY);
		kernel_close(&k);
	}
}

static void test_reductions(void **state)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways(&way);
	uint64_t seed = 7;
	(void)state;

	for (unsigned w = 0; w < ways; w++) {
		struct kernel k;
		open_ir(&k, &way[w], build_reduce);
		for (unsigned round = 0; round < 200; round++) {
			_Alignas(64) float in[32], out[64], p[32], t[32], max = -INFINITY;
			uint64_t arg[ARGS] = { [ARG_IN] = (uintptr_t)in, [ARG_OUT] = (uintptr_t)out };
			for (unsigned i = 0; i < 32; i++) {
				p[i] = in[i] = kernel_random(&seed);
				max = in[i] > max ? in[i] : max;
			}
			for (unsigned stride = 16; stride; stride /= 2, memcpy(p, t, sizeof p))
				for (unsigned i = 0; i < 32; i++)
					t[i] = p[i] + p[i ^ stride];
			kernel_run(&k, arg, 0, 1);
			for (unsigned i = 0; i < way[w].target.lanes; i++) {
				assert_memory_equal(&out[i], &p[i], 4);
				assert_true(out[32 + i] == max);
			}
		}
		kernel_close(&k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exp_at_edges),
		cmocka_unit_test(test_exp_over_floats),
		cmocka_unit_test(test_reductions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
