/* tests/kernels/t_norm.c - norms against plain loops: widths, columns, pads, int8 blocks, extreme values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/lanes.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/support/shared.h"

enum { COLUMNS = 9 };

struct norm_data {
	unsigned k, padded;
	float *x, *weight, *bias, *want, *out; /* bias: with KEY_BIAS */
	struct activation_block *want_s, *out_s;
	int8_t *want_q, *out_q;
	float eps;
	uint32_t flags; /* of every kernel */
};

static void expect(struct norm_data *d)
{
	for (unsigned c = 0; c < COLUMNS && d->flags & KEY_BIAS; c++)
		plain_norm_bias(d->want + c * d->padded, d->want_q + c * d->padded, d->want_s + c * d->padded / 32,
		                d->x + c * d->padded, d->weight, d->bias, d->k, d->eps);
	for (unsigned c = 0; c < COLUMNS && !(d->flags & KEY_BIAS); c++)
		plain_norm(d->want + c * d->padded, d->want_q + c * d->padded, d->want_s + c * d->padded / 32,
		           d->x + c * d->padded, d->weight, d->k, d->eps, d->flags & KEY_CENTRED);
}

static void make(struct norm_data *d, unsigned k, uint64_t seed, uint32_t flags)
{
	d->k = k;
	d->flags = flags;
	d->padded = (k + 31) / 32 * 32;
	d->eps = 1e-5f;
	size_t n = (size_t)d->padded * COLUMNS;
	d->x = kernel_buffer(n * 4, 0);
	d->weight = kernel_buffer(d->padded * 4, 0);
	d->bias = kernel_buffer(d->padded * 4, 0);
	d->want = kernel_buffer(n * 4, 0);
	d->out = kernel_buffer(n * 4, 0);
	d->want_s = kernel_buffer(n / 2, 0);
	d->out_s = kernel_buffer(n / 2, 0);
	d->want_q = kernel_buffer(n, 0);
	d->out_q = kernel_buffer(n, 0);
	for (unsigned i = 0; i < d->padded; i++) /* nothing comes of what lies in pads */
		d->weight[i] = i < k ? kernel_random(&seed) : NAN;
	for (unsigned i = 0; i < d->padded; i++)
		d->bias[i] = i < k ? kernel_random(&seed) : NAN;
	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned i = 0; i < k; i++)
			d->x[c * d->padded + i] = c == 3 ? 0.0f : kernel_random(&seed) * (c == 5 ? 1e-22f : 1.0f);
	expect(d);
}

static void drop(struct norm_data *d)
{
	free(d->x);
	free(d->weight);
	free(d->bias);
	free(d->want);
	free(d->out);
	free(d->want_s);
	free(d->out_s);
	free(d->want_q);
	free(d->out_q);
}

/* Added to what is there. */
static void check_added(struct norm_data *d, const struct kernel_way *way)
{
	struct key key = { .kind = KEY_NORM, .k = d->k, .flags = d->flags | KEY_RESIDUAL };
	size_t n = (size_t)d->padded * COLUMNS;
	float *want = kernel_buffer(n * 4, 0);
	uint64_t arg[NORM_ARGS] = { [NORM_X] = (uintptr_t)d->x,
		                    [NORM_WEIGHT] = (uintptr_t)d->weight,
		                    [NORM_OUT] = (uintptr_t)d->out,
		                    [NORM_BIAS] = (uintptr_t)d->bias };
	uint64_t seed = 77;
	struct kernel k;

	memcpy(&arg[NORM_EPS], &d->eps, 4);
	for (size_t i = 0; i < n; i++) {
		d->out[i] = i % d->padded < d->k ? kernel_random(&seed) : 0.0f;
		want[i] = d->out[i] + d->want[i];
	}
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, 4, COLUMNS);
	kernel_run(&k, arg, 0, 4);
	kernel_close(&k);
	if (memcmp(d->out, want, n * 4) != 0)
		fail_msg("%s: norm over %u, added, differs", way->name, d->k);
	free(want);
}

static void check(struct norm_data *d, const struct kernel_way *way, bool quantised)
{
	struct key key = { .kind = KEY_NORM, .k = d->k, .flags = d->flags | (quantised ? KEY_QUANTISED_OUT : 0) };
	size_t n = (size_t)d->padded * COLUMNS;
	uint64_t arg[NORM_ARGS] = { [NORM_X] = (uintptr_t)d->x,        [NORM_WEIGHT] = (uintptr_t)d->weight,
		                    [NORM_OUT] = (uintptr_t)d->out,    [NORM_OUTQ] = (uintptr_t)d->out_q,
		                    [NORM_OUTS] = (uintptr_t)d->out_s, [NORM_BIAS] = (uintptr_t)d->bias };
	struct kernel k;

	memcpy(&arg[NORM_EPS], &d->eps, 4);
	kernel_open(&k, way, &key);
	assert_int_equal(k.stats.spills_in_inner_loops, 0);
	for (unsigned first = 0; first <= COLUMNS; first += 4) { /* all at once, then in two calls */
		memset(d->out, 0xff, n * 4);
		memset(d->out_q, 0x55, n);
		memset(d->out_s, 0xff, n / 2);
		kernel_run(&k, arg, first, COLUMNS);
		kernel_run(&k, arg, 0, first);
		if (memcmp(d->out, d->want, n * 4) != 0)
			fail_msg("%s: norm over %u differs", way->name, d->k);
		if (quantised && (memcmp(d->out_q, d->want_q, n) != 0 || memcmp(d->out_s, d->want_s, n / 2) != 0))
			fail_msg("%s: int8 blocks of the norm over %u differ", way->name, d->k);
		if (!quantised && d->out_q[0] != 0x55)
			fail_msg("%s: a plain norm wrote int8 blocks", way->name);
	}
	kernel_close(&k);
}

/* Awaited, of which int8 blocks alone are given. */
static void check_awaited(struct norm_data *d, const struct kernel_way *way)
{
	const struct key key = { .kind = KEY_NORM, .k = d->k, .flags = d->flags | KEY_QUANTISED_OUT | KEY_AWAITED };
	size_t n = (size_t)d->padded * COLUMNS;
	uint64_t arg[NORM_ARGS] = { [NORM_X] = (uintptr_t)d->x,
		                    [NORM_WEIGHT] = (uintptr_t)d->weight,
		                    [NORM_OUTQ] = (uintptr_t)d->out_q,
		                    [NORM_OUTS] = (uintptr_t)d->out_s };
	struct kernel k;

	if (!template_norm_awaits(&way->target, d->k) || d->flags & KEY_BIAS)
		return;
	memcpy(&arg[NORM_EPS], &d->eps, 4);
	memset(d->out_q, 0x55, n);
	memset(d->out_s, 0xff, n / 2);
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, 5, COLUMNS);
	kernel_run(&k, arg, 0, 5);
	kernel_close(&k);
	if (memcmp(d->out_q, d->want_q, n) != 0 || memcmp(d->out_s, d->want_s, n / 2) != 0)
		fail_msg("%s: int8 blocks of the awaited norm over %u differ", way->name, d->k);
}

static void test_widths(void **state)
{
	static const unsigned width[] = { 1,   31,  32,  33,  64,   100,  127,  128,  129, 160,
		                          200, 288, 576, 896, 1000, 1184, 2048, 2560, 4096 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	(void)state;

	for (unsigned i = 0; i < sizeof width / sizeof width[0]; i++) {
		for (unsigned how = 0; how < 3; how++) {
			static const uint32_t flags[] = { 0, KEY_CENTRED, KEY_CENTRED | KEY_BIAS };
			struct norm_data d;
			make(&d, width[i], i + 1, flags[how]);
			for (unsigned w = 0; w < ways; w++) {
				check(&d, &way[w], false);
				check(&d, &way[w], true);
				check_added(&d, &way[w]);
				check_awaited(&d, &way[w]);
			}
			drop(&d);
		}
	}
}

/* As wide as a group's registers hold; quads that all waves have or a few alone, and blocks behind them, of which the
 * last may have pads. */
static void test_wide_awaited(void **state)
{
	static const unsigned width[] = { 4128, 4224, 5120, 6100, 8192, 8287 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	(void)state;

	assert_false(template_norm_awaits(&target_table[TARGET_SM90], 8289));
	for (unsigned i = 0; i < sizeof width / sizeof width[0]; i++) {
		struct norm_data d;
		make(&d, width[i], i + 1, i % 2 ? KEY_CENTRED : 0);
		assert_true(template_norm_awaits(&target_table[TARGET_SM90], width[i]));
		for (unsigned w = 0; w < ways; w++)
			check_awaited(&d, &way[w]);
		drop(&d);
	}
}

/* Four quotients that are the bytes of a word which is still to be given, as far as quotients can be. */
static void test_empty_words(void **state)
{
	enum { K = 256 };
	const uint32_t empty = IR_EMPTY;
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	int8_t byte[4];
	struct norm_data d;
	(void)state;

	memcpy(byte, &empty, 4);
	make(&d, K, 1, 0);
	for (unsigned i = 0; i < K; i++)
		d.weight[i] = i % 32 == 31 ? 127.0f : byte[i % 4] < -127 ? -127.0f : (float)byte[i % 4];
	for (unsigned i = 0; i < K * COLUMNS; i++)
		d.x[i] = (float)(i / K + 1);
	expect(&d);
	for (unsigned i = 0; i < K; i++)
		assert_int_equal(d.want_q[i], (int)d.weight[i]);
	for (unsigned w = 0; w < ways; w++)
		check_awaited(&d, &way[w]);
	drop(&d);
}

/* Several columns make a token, without pads between them; each has weights of its own, or all have the same. */
struct group_case {
	unsigned k, groups;
	bool shared, centred;
};

static void expect_groups(const struct group_case *g, unsigned columns, float eps, const float *x, const float *weight,
                          float *want)
{
	enum { MAX = 96 };
	float padded[MAX] = { 0 }, scales[MAX] = { 0 }, out[MAX];
	int8_t q[MAX];
	struct activation_block s[MAX / 32];

	for (unsigned c = 0; c < columns; c++) {
		memcpy(padded, x + c * g->k, g->k * 4);
		memcpy(scales, weight + (g->shared ? 0 : c % g->groups * g->k), g->k * 4);
		plain_norm(out, q, s, padded, scales, g->k, eps, g->centred);
		memcpy(want + c * g->k, out, g->k * 4);
	}
}

static void check_groups(const struct group_case *g)
{
	enum { TOKENS = 4 };
	const unsigned columns = TOKENS * g->groups, n = columns * g->k;
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	float *x = kernel_buffer(n * 4, 0), *weight = kernel_buffer(g->groups * g->k * 4, 0),
	      *want = kernel_buffer(n * 4, 0), *out = kernel_buffer(n * 4, 0), eps = 1e-5f;
	uint64_t seed = 8, arg[NORM_ARGS] = {
		[NORM_X] = (uintptr_t)x, [NORM_WEIGHT] = (uintptr_t)weight, [NORM_OUT] = (uintptr_t)out
	};

	memcpy(&arg[NORM_EPS], &eps, 4);
	for (unsigned i = 0; i < n; i++)
		x[i] = kernel_random(&seed);
	for (unsigned i = 0; i < g->groups * g->k; i++)
		weight[i] = kernel_random(&seed);
	expect_groups(g, columns, eps, x, weight, want);
	for (unsigned w = 0; w < ways; w++) {
		struct key key = { .kind = KEY_NORM, .k = g->k, .heads = g->groups, .kv_heads = g->shared };
		key.flags = g->centred ? KEY_CENTRED : 0;
		struct kernel k;
		memset(out, 0xff, n * 4);
		kernel_open(&k, &way[w], &key);
		kernel_run(&k, arg, 5, columns);
		kernel_run(&k, arg, 0, 5);
		kernel_close(&k);
		if (memcmp(out, want, n * 4) != 0)
			fail_msg("%s: norms of groups of %u differ", way[w].name, g->k);
	}
	free(x);
	free(weight);
	free(want);
	free(out);
}

static void test_groups(void **state)
{
	static const struct group_case cases[] = {
		{ 96, 3, false, false }, { 48, 4, false, false }, { 16, 6, true, false },
		{ 80, 2, true, false },  { 64, 3, true, false },  { 96, 3, false, true },
		{ 48, 4, false, true },  { 16, 6, false, true },  { 80, 2, true, true }
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check_groups(&cases[i]);
}

/* A column of zeros and no eps makes an infinite scale: the pads stay +0 all the same. */
static void test_pads(void **state)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	(void)state;

	for (unsigned w = 0; w < ways; w++) {
		struct norm_data d;
		struct key key = { .kind = KEY_NORM, .k = 41 };
		struct kernel k;
		static const float zero[23];
		make(&d, 41, 3, 0);
		uint64_t arg[NORM_ARGS] = { [NORM_X] = (uintptr_t)(d.x + 3 * 64),
			                    [NORM_WEIGHT] = (uintptr_t)d.weight,
			                    [NORM_OUT] = (uintptr_t)d.out };
		memset(d.out, 0xff, 64 * 4);
		kernel_open(&k, &way[w], &key);
		kernel_run(&k, arg, 0, 1);
		assert_true(d.out[40] != d.out[40]);
		assert_memory_equal(d.out + 41, zero, sizeof zero);
		kernel_close(&k);
		drop(&d);
	}
}

static void test_refusals(void **state)
{
	(void)state;

	kernel_refused(&(struct key){ .kind = KEY_NORM });
	kernel_refused(&(struct key){ .kind = KEY_NORM, .k = 48, .heads = 2, .flags = KEY_CENTRED | KEY_RESIDUAL });
	kernel_refused(&(struct key){ .kind = KEY_NORM, .k = 32, .flags = KEY_RESIDUAL | KEY_QUANTISED_OUT });
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_widths),      cmocka_unit_test(test_wide_awaited),
		                            cmocka_unit_test(test_empty_words), cmocka_unit_test(test_groups),
		                            cmocka_unit_test(test_pads),        cmocka_unit_test(test_refusals) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
