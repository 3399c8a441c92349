/* tests/kernels/t_attention.c - attention against plain loops: head shapes, positions, windows, columns, caches full of
 * NaN, units in any split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/support/shared.h"
#include "tests/kernels/attention_check.h"

/* cut: units are done as cut..end, then 0..cut. */
static void check(const struct scene *c, const struct work *w, const struct kernel *k, const struct kernel_way *way,
                  unsigned cut)
{
	const struct plain_cache *cache =
		template_kv_octets(&way->target, c->s.type, c->s.dims) ? &c->octets : &c->cache;
	size_t bytes = (size_t)c->padded * w->columns * 4;
	float *out = kernel_buffer(bytes, 0xff);
	unsigned tiles = c->tile > 1 ? (w->columns + 2 * c->tile - 2) / c->tile : w->columns;
	int64_t units = (int64_t)tiles * c->s.kv_heads, at = units * cut / 8;
	uint64_t *pages = plain_pages(cache, cache->pages);
	kernel_know(pages, (cache->pages + 1) * sizeof *pages);
	uint64_t arg[ATTENTION_ARGS] = {
		[ATTENTION_Q] = (uintptr_t)w->q,
		[ATTENTION_KEYS] = PLAIN_KEYS,
		[ATTENTION_VALUES] = plain_values(cache),
		[ATTENTION_OUT] = (uintptr_t)out,
		[ATTENTION_POS0] = w->pos0,
		[ATTENTION_PAGES] = (uintptr_t)pages,
		[ATTENTION_SLIDING] = w->window,
		[ATTENTION_COLUMNS] = w->columns,
		[ATTENTION_SINKS] = (uintptr_t)c->sinks,
		[ATTENTION_BIAS] = (uintptr_t)(w->both ? w->bias : c->slopes),
		[ATTENTION_REACH] = w->reach
	};

	memcpy(&arg[ATTENTION_CAP], &c->cap, 4);

	kernel_run(k, arg, at, units);
	/* Other units than the launch's are left alone; tiles' units lie in several columns. */
	for (int64_t u = 0; c->tile <= 1 && u < at; u++) {
		const uint8_t *first = (const uint8_t *)(out + u / c->s.kv_heads * c->padded +
		                                         u % c->s.kv_heads * c->s.group * c->s.dims);
		if (*first != 0xff || memcmp(first, first + 1, c->s.group * c->s.dims * 4 - 1) != 0)
			fail_msg("%s: attention of %u heads writes unit %lld, which is not in %lld..%lld", way->name,
			         c->s.kv_heads, (long long)u, (long long)at, (long long)units);
	}
	kernel_run(k, arg, 0, at);
	if (memcmp(out, w->want, bytes) != 0)
		fail_msg(
			"%s: attention of %u x %u heads of %u, %s cache, %u columns by %u at %llu, window %llu differs",
			way->name, c->s.kv_heads, c->s.group, c->s.dims, dtype_table[c->s.type].name, w->columns,
			c->tile, (unsigned long long)w->pos0, (unsigned long long)w->window);
	free(pages);
	free(out);
}

static int counter; /* simulated cards take turns, but for JITRUN_TEST_FULL: kernels opened together run on one */

static void open_ways_with(struct kernel k[], const struct scene *c, bool window, uint32_t flags)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, ++counter);
	struct key key = scene_key(c, window);
	key.flags |= flags;
	for (unsigned i = 0; i < ways; i++)
		kernel_open(&k[i], &way[i], &key);
}

static void open_ways(struct kernel k[], const struct scene *c, bool window) { open_ways_with(k, c, window, 0); }

static void check_ways(struct kernel k[], const struct scene *c, const struct work *w, unsigned cut)
{
	static unsigned works;
	const struct kernel_way *way;
	if (!test_mine_of_many(works++))
		return;
	expect_work(w, c);
	unsigned ways = kernel_ways_and_cards(&way, counter);
	for (unsigned i = 0; i < ways; i++)
		check(c, w, &k[i], &way[i], cut);
}

static void close_ways(struct kernel k[])
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, counter);
	for (unsigned i = 0; i < ways; i++)
		kernel_close(&k[i]);
}

/* The cache is filled no further than the last visible position: what lies behind it is NaN. */
static void check_shape(struct shape s)
{
	static const uint64_t position[] = { 0, 1, 31, 32, 33, 63, 64, 127, 128, 129, 300 };
	struct scene c;
	struct kernel k[KERNEL_MAX_WAYS];

	open_scene(&c, s, 384);
	open_ways(k, &c, false);
	for (unsigned i = 0; i < sizeof position / sizeof position[0]; i++) {
		struct work w;
		if (test_quick() && i % 3 != 0)
			continue;
		make_work(&w, &c, 1, position[i], 0);
		check_ways(k, &c, &w, i % 8);
		drop_work(&w);
	}
	close_ways(k);
	close_scene(&c);
}

static void test_head_dims(void **state)
{
	static const unsigned dims[] = { 2, 6, 32, 40, 48, 64, 66, 80, 96, 128, 256, 512 };
	(void)state;
	for (unsigned i = 0; i < sizeof dims / sizeof dims[0]; i++) {
		check_shape((struct shape){ 2, 1 + i % 4, dims[i], DTYPE_F16 });
		check_shape((struct shape){ 1, 1 + (i + 2) % 4, dims[i], DTYPE_F32 });
		check_shape((struct shape){ 2, 1 + (i + 1) % 4, dims[i], DTYPE_Q8_0 });
	}
}

static void test_groups(void **state)
{
	static const unsigned group[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 20, 32, 71, 128 };
	static const enum dtype types[] = { DTYPE_F32, DTYPE_F16, DTYPE_Q8_0 };
	(void)state;
	for (unsigned i = 0; i < sizeof group / sizeof group[0]; i++)
		for (unsigned t = 0; t < 3; t++)
			if (test_full() || i % 3 == t)
				check_shape((struct shape){ 1 + i % 2, group[i], i % 2 ? 64 : 40, types[t] });
}

/* More heads than go through the cache together, in launches that end in the middle of what does. */
static void test_runs(void **state)
{
	static const struct shape shapes[] = { { 5, 1, 256, DTYPE_F16 },  { 3, 2, 256, DTYPE_F32 },
		                               { 9, 1, 256, DTYPE_Q8_0 }, { 18, 1, 64, DTYPE_F16 },
		                               { 6, 8, 256, DTYPE_F16 },  { 3, 32, 256, DTYPE_F16 } };
	static const uint64_t pos0[] = { 0, 126, 290 };
	(void)state;

	for (unsigned i = 0; i < 2 * sizeof shapes / sizeof shapes[0]; i++) {
		struct scene c;
		struct kernel k[KERNEL_MAX_WAYS];
		bool window = i % 2;
		open_scene(&c, shapes[i / 2], 384);
		open_ways(k, &c, window);
		for (unsigned j = 0; j < 3; j++)
			for (unsigned cut = test_quick() ? (i + 3 * j) % 8 : 0; cut < 8; cut += test_quick() ? 8 : 1) {
				struct work w;
				make_work(&w, &c, 1 + (j + cut) % 3, pos0[j], window ? 140 : 0);
				check_ways(k, &c, &w, cut);
				drop_work(&w);
			}
		close_ways(k);
		close_scene(&c);
	}
	/* Not so many that they have no room. */
	struct kernel k[KERNEL_MAX_WAYS];
	struct scene many = { .s = { 64, 64, 6, DTYPE_F16 }, .heads = 4096 };
	open_ways(k, &many, false);
	close_ways(k);
}

static void test_columns(void **state)
{
	static const uint64_t pos0[] = { 0, 29, 124, 250 };
	struct scene c;
	struct kernel k[KERNEL_MAX_WAYS];
	(void)state;

	open_scene(&c, (struct shape){ 3, 3, 40, DTYPE_F16 }, 384);
	open_ways(k, &c, false);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned columns = 1; columns <= 9; columns++) {
			struct work w;
			make_work(&w, &c, columns, pos0[i], 0);
			check_ways(k, &c, &w, columns % 8);
			drop_work(&w);
		}
	close_ways(k);
	close_scene(&c);
}

/* Tiles of several columns, wherever the launch begins and ends in them; at the quick size from half of the positions,
 * the next tile from the others. */
static void test_tiles(void **state)
{
	static const struct {
		struct shape s;
		unsigned tile;
	} cases[] = {
		{ { 3, 3, 40, DTYPE_F16 }, 2 },   { { 2, 4, 64, DTYPE_F16 }, 4 },  { { 2, 2, 128, DTYPE_F16 }, 8 },
		{ { 1, 1, 64, DTYPE_F32 }, 16 },  { { 2, 7, 80, DTYPE_F16 }, 2 },  { { 1, 5, 6, DTYPE_F16 }, 4 },
		{ { 3, 1, 96, DTYPE_F16 }, 8 },   { { 1, 2, 256, DTYPE_F32 }, 4 }, { { 1, 2, 512, DTYPE_F16 }, 8 },
		{ { 2, 4, 512, DTYPE_Q8_0 }, 2 }, { { 1, 8, 32, DTYPE_F16 }, 16 }, { { 2, 4, 64, DTYPE_Q8_0 }, 4 },
		{ { 1, 5, 6, DTYPE_Q8_0 }, 2 },   { { 2, 2, 80, DTYPE_Q8_0 }, 8 }, { { 2, 2, 128, DTYPE_F16 }, 16 },
		{ { 1, 3, 40, DTYPE_F16 }, 8 },   { { 2, 4, 64, DTYPE_Q8_0 }, 8 }, { { 1, 8, 96, DTYPE_F16 }, 8 },
		{ { 1, 5, 6, DTYPE_F32 }, 8 },
	};
	static const uint64_t pos0[] = { 0, 5, 113, 120, 128, 250 };
	static const unsigned counts[] = { 1, 2, 3, 8, 9, 17, 21 };
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene c;
		struct kernel k[KERNEL_MAX_WAYS];
		open_scene(&c, cases[i].s, 384);
		c.tile = cases[i].tile;
		open_ways(k, &c, false);
		for (unsigned j = test_quick() ? i % 2 : 0; j < 6; j += test_quick() ? 2 : 1)
			for (unsigned n = test_quick() ? (i + j) % 5 : 0; n < 7; n += test_quick() ? 5 : 1) {
				struct work w;
				make_work(&w, &c, counts[n], pos0[j], 0);
				check_ways(k, &c, &w, (n + j) % 8);
				drop_work(&w);
			}
		close_ways(k);
		close_scene(&c);
	}
}

/* Columns that see what is behind them, too: all of it, or a window to both sides; with biases by distance, and
 * without. What lies behind the last column is NaN. */
static void check_both(struct shape s, unsigned tile, bool window, bool biased)
{
	static const unsigned counts[] = { 1, 2, 7, 16, 33, 64, 127, 128, 129, 150, 260 };
	static const uint64_t sides[] = { 1, 8, 13, 64, 200 };
	enum { COUNTS = sizeof counts / sizeof counts[0], REACH = 260 + 160 };
	struct kernel k[KERNEL_MAX_WAYS];
	struct scene c;

	open_scene(&c, s, 384);
	drop_slopes(&c);
	c.tile = tile;
	float *bias = kernel_buffer((size_t)c.heads * 2 * REACH * sizeof *bias, 0);
	for (size_t i = 0; i < (size_t)c.heads * 2 * REACH; i++)
		bias[i] = kernel_random(&c.seed);
	open_ways_with(k, &c, window, KEY_BOTH | (biased ? KEY_BIAS : 0));
	for (unsigned i = test_quick() ? (s.dims + tile) % 4 : 0; i < COUNTS; i += test_quick() ? 4 : 1)
		for (unsigned j = 0; j < (window ? 5 : 1); j += test_quick() ? 2 : 1) {
			struct work w;
			make_work_both(&w, &c, counts[i], window ? sides[j] : 1024 + i, window ? 2 * sides[j] + 1 : 0);
			w.bias = biased ? bias : NULL;
			w.reach = biased ? REACH : 0;
			check_ways(k, &c, &w, (i + j) % 8);
			drop_work(&w);
		}
	close_ways(k);
	close_scene(&c);
	free(bias);
}

static void test_both_sides(void **state)
{
	static const struct {
		struct shape s;
		unsigned tile;
	} cases[] = {
		{ { 3, 1, 32, DTYPE_F32 }, 16 }, { { 2, 1, 64, DTYPE_F32 }, 8 },  { { 2, 2, 40, DTYPE_F16 }, 4 },
		{ { 1, 3, 16, DTYPE_F32 }, 2 },  { { 2, 1, 64, DTYPE_F32 }, 0 },  { { 3, 2, 80, DTYPE_Q8_0 }, 0 },
		{ { 1, 2, 32, DTYPE_Q8_0 }, 8 }, { { 2, 1, 64, DTYPE_F16 }, 16 }, { { 5, 1, 256, DTYPE_F16 }, 0 }
	};
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (unsigned how = test_quick() ? i % 2 : 0; how < 4; how += test_quick() ? 2 : 1)
			check_both(cases[i].s, cases[i].tile, how & 1, how & 2);
}

/* The cache before the window is NaN as well. */
static void forget(struct scene *c, uint64_t end)
{
	for (uint64_t p = 0; p < end; p++)
		for (unsigned h = 0; h < c->s.kv_heads; h++) {
			plain_spoil(&c->cache, h, p);
			plain_spoil(&c->octets, h, p);
		}
}

static void test_windows(void **state)
{
	static const uint64_t window[] = { 1, 5, 32, 64, 128, 200, 10000 },
			      position[] = { 0, 4, 31, 64, 127, 128, 200, 260, 383, 500 };
	(void)state;
	for (unsigned shape = 0; shape < 5; shape++) {
		static const struct shape shapes[] = {
			{ 2, 1, 64, DTYPE_F16 },
			{ 1, 3, 80, DTYPE_F32 },
			{ 2, 4, 32, DTYPE_F16 },
			{ 1, 7, 64, DTYPE_F16 },
			{ 2, 2, 96, DTYPE_Q8_0 }
		};
		struct kernel k[KERNEL_MAX_WAYS];
		struct scene c;
		for (unsigned i = 0; i < 7; i++) {
			open_scene(&c, shapes[shape], 512);
			if (i == 0)
				open_ways(k, &c, true);
			for (unsigned j = test_quick() ? 1 : 0; j < 10; j += test_quick() ? 4 : 1) {
				struct work w;
				unsigned columns = 1 + j % 3;
				make_work(&w, &c, columns, position[j], window[i]);
				if (position[j] + 1 > window[i])
					forget(&c, position[j] + 1 - window[i]);
				check_ways(k, &c, &w, j % 8);
				drop_work(&w);
			}
			close_scene(&c);
		}
		close_ways(k);
	}
}

/* Tiles with windows shorter than a tile, than a chunk, just a chunk and longer ones, at any place; what no column of
 * the launch sees is NaN. */
static void test_window_tiles(void **state)
{
	static const struct {
		struct shape s;
		unsigned tile;
	} cases[] = {
		{ { 2, 2, 64, DTYPE_F16 }, 8 },  { { 1, 1, 40, DTYPE_F16 }, 16 }, { { 2, 3, 32, DTYPE_F32 }, 4 },
		{ { 1, 8, 64, DTYPE_F16 }, 2 },  { { 1, 7, 128, DTYPE_F16 }, 2 }, { { 2, 4, 64, DTYPE_Q8_0 }, 4 },
		{ { 2, 2, 64, DTYPE_F16 }, 16 }, { { 1, 4, 32, DTYPE_F16 }, 8 },
	};
	static const uint64_t window[] = { 1, 3, 8, 17, 100, 127, 128, 129, 200, 1000 },
			      pos0[] = { 0, 7, 121, 126, 250, 261 };
	static const unsigned counts[] = { 1, 2, 5, 16, 21, 40 };
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct kernel k[KERNEL_MAX_WAYS];
		struct scene c;
		for (unsigned n = 0; n < 10 * 6; n += test_quick() ? 7 : 1) {
			uint64_t length = window[n / 6], first = pos0[n % 6];
			struct work w;
			open_scene(&c, cases[i].s, 384);
			c.tile = cases[i].tile;
			if (n == 0)
				open_ways(k, &c, true);
			make_work(&w, &c, counts[(n + n / 6) % 6], first, length);
			if (first + 1 > length)
				forget(&c, first + 1 - length);
			check_ways(k, &c, &w, n % 8);
			drop_work(&w);
			close_scene(&c);
		}
		close_ways(k);
	}
}

/* Windows that all begin at multiples of a length: of less than a tile, of a chunk, and of others. */
static void test_periods(void **state)
{
	static const struct {
		struct shape s;
		unsigned tile;
		uint32_t period;
	} cases[] = { { { 2, 2, 64, DTYPE_F16 }, 8, 5 },     { { 1, 3, 40, DTYPE_F16 }, 0, 32 },
		      { { 1, 1, 40, DTYPE_F16 }, 16, 100 },  { { 2, 3, 32, DTYPE_F32 }, 4, 128 },
		      { { 2, 4, 64, DTYPE_Q8_0 }, 0, 200 },  { { 2, 2, 64, DTYPE_F16 }, 16, 3 },
		      { { 1, 7, 128, DTYPE_F16 }, 2, 1000 }, { { 1, 4, 32, DTYPE_F16 }, 8, 129 } };
	static const uint64_t pos0[] = { 0, 31, 121, 126, 199, 250, 261 };
	static const unsigned counts[] = { 1, 2, 5, 16, 21, 40 };
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct kernel k[KERNEL_MAX_WAYS];
		struct scene c;
		for (unsigned n = 0; n < 7; n += test_quick() ? 3 : 1) {
			struct work w;
			open_scene(&c, cases[i].s, 384);
			c.tile = cases[i].tile;
			c.period = cases[i].period;
			if (n == 0)
				open_ways(k, &c, true);
			make_work(&w, &c, counts[(n + i) % 6], pos0[n], cases[i].period);
			forget(&c, pos0[n] / c.period * c.period);
			check_ways(k, &c, &w, n);
			drop_work(&w);
			close_scene(&c);
		}
		close_ways(k);
	}
}

static void test_depth(void **state)
{
	struct scene c;
	struct kernel k[KERNEL_MAX_WAYS];
	(void)state;

	open_scene(&c, (struct shape){ 2, 4, 64, DTYPE_F16 }, 1152);
	open_ways(k, &c, false);
	for (uint64_t p = 1000; p < 1152; p += 151) {
		struct work w;
		make_work(&w, &c, 1, p, 0);
		check_ways(k, &c, &w, 4);
		drop_work(&w);
	}
	close_ways(k);
	close_scene(&c);
}

/* Scores far apart: later chunks with a larger maximum, with a much smaller one, all p but one exactly zero. */
static void test_wide_scores(void **state)
{
	struct scene c;
	struct kernel k[KERNEL_MAX_WAYS];
	struct work w;
	(void)state;

	open_scene(&c, (struct shape){ 1, 2, 32, DTYPE_F32 }, 512);
	fill_columns(&c, 500);
	for (uint64_t p = 0; p < 500; p++) {
		float key[32] = { 0 }, value[32];
		key[0] = p == 200 ? 150.0f : p == 450 ? 145.0f : p < 128 ? -90.0f : (float)(p % 7);
		for (unsigned i = 0; i < 32; i++)
			value[i] = kernel_random(&c.seed);
		store_cache(&c, 0, p, key, value);
	}
	open_ways(k, &c, false);
	for (uint64_t p = 100; p < 500; p += 57) {
		make_work(&w, &c, 1, p, 0);
		for (unsigned i = 0; i < c.width; i++)
			w.q[i] = i % 32 == 0 ? 1.0f : 0.5f;
		check_ways(k, &c, &w, 0);
		drop_work(&w);
	}
	close_ways(k);
	close_scene(&c);
}

/* ---- what memory is asked for ahead */

static void test_refusals(void **state)
{
	static const struct key bad[] = {
		{ .kind = KEY_ATTENTION, .heads = 4, .kv_heads = 3, .head_dim = 64, .kv = DTYPE_F16 + 1 },
		{ .kind = KEY_ATTENTION, .heads = 4, .kv_heads = 0, .head_dim = 64, .kv = DTYPE_F16 + 1 },
		{ .kind = KEY_ATTENTION, .heads = 129, .kv_heads = 1, .head_dim = 64, .kv = DTYPE_F16 + 1 },
		{ .kind = KEY_ATTENTION, .heads = 4, .kv_heads = 2, .head_dim = 65, .kv = DTYPE_F16 + 1 },
		{ .kind = KEY_ATTENTION, .heads = 4, .kv_heads = 2, .head_dim = 64, .kv = DTYPE_BF16 + 1 },
		{ .kind = KEY_ATTENTION, .heads = 4, .kv_heads = 2, .head_dim = 64, .kv = DTYPE_F16 + 1, .tile_n = 3 },
		{ .kind = KEY_ATTENTION, .heads = 4, .kv_heads = 2, .head_dim = 64, .kv = DTYPE_F16 + 1, .tile_n = 32 },
		{ .kind = KEY_ATTENTION,
		  .heads = 16,
		  .kv_heads = 1,
		  .head_dim = 64,
		  .kv = DTYPE_F16 + 1,
		  .tile_n = 16 },
		{ .kind = KEY_ATTENTION,
		  .heads = 4,
		  .kv_heads = 2,
		  .head_dim = 64,
		  .kv = DTYPE_F16 + 1,
		  .rows = 4,
		  .flags = KEY_BOTH },
		{ .kind = KEY_ATTENTION,
		  .heads = 4,
		  .kv_heads = 2,
		  .head_dim = 64,
		  .kv = DTYPE_F16 + 1,
		  .flags = KEY_BIAS | KEY_LATENT },
	};
	(void)state;

	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		kernel_refused(&bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head_dims),    cmocka_unit_test(test_groups),     cmocka_unit_test(test_runs),
		cmocka_unit_test(test_columns),      cmocka_unit_test(test_tiles),      cmocka_unit_test(test_windows),
		cmocka_unit_test(test_window_tiles), cmocka_unit_test(test_periods),    cmocka_unit_test(test_depth),
		cmocka_unit_test(test_wide_scores),  cmocka_unit_test(test_both_sides), cmocka_unit_test(test_refusals),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += attention_code_tests();
	failed += attention_parts_tests();
	failed += attention_rotates_tests();
	return failed;
}
