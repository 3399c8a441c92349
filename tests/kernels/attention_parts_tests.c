/* tests/kernels/attention_parts_tests.c - a context in parts, whose records are merged, gives the bits of plain loops:
 * any number of parts, any units together, at every depth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/attention_check.h"
#include "tests/support/shared.h"

/* Of one number of parts. */
struct parts {
	unsigned n;
	struct kernel part, merge, awaiting;
};

static void open_parts(struct parts *p, const struct kernel_way *way, const struct scene *c, unsigned n, bool window)
{
	struct key key = scene_key(c, window),
		   merge = { .kind = KEY_MERGE,
		             .heads = key.heads,
		             .head_dim = key.head_dim,
		             .k = key.k,
		             .flags = key.flags & (KEY_WINDOW | KEY_SINKS) };

	p->n = key.rows = n;
	kernel_open(&p->part, way, &key);
	kernel_open(&p->merge, way, &merge);
	merge.flags |= KEY_AWAITED;
	kernel_open(&p->awaiting, way, &merge);
}

static void close_parts(struct parts *p)
{
	kernel_close(&p->part);
	kernel_close(&p->merge);
	kernel_close(&p->awaiting);
}

/* Units in two calls, the later ones first. */
static void run_cut(const struct kernel *k, const uint64_t *arg, int64_t units, unsigned cut)
{
	int64_t at = units * cut / 8;

	kernel_run(k, arg, at, units);
	kernel_run(k, arg, 0, at);
}

static void check(const struct parts *p, const struct kernel_way *way, const struct scene *c, const struct work *w,
                  unsigned cut)
{
	const struct plain_cache *cache =
		template_kv_octets(&way->target, c->s.type, c->s.dims) ? &c->octets : &c->cache;
	size_t bytes = (size_t)c->padded * 4, chunks = w->pos0 / 128 + 1;
	float *out = kernel_buffer(bytes, 0xff);
	uint8_t *records = kernel_buffer(chunks * c->heads * template_attention_record(c->s.dims), 0xff);
	uint64_t *pages = plain_pages(cache, cache->pages);
	uint64_t part[ATTENTION_ARGS] = {
		[ATTENTION_Q] = (uintptr_t)w->q,
		[ATTENTION_KEYS] = PLAIN_KEYS,
		[ATTENTION_VALUES] = plain_values(cache),
		[ATTENTION_OUT] = (uintptr_t)records,
		[ATTENTION_POS0] = w->pos0,
		[ATTENTION_PAGES] = (uintptr_t)pages,
		[ATTENTION_SLIDING] = w->window,
		[ATTENTION_COLUMNS] = 1,
		[ATTENTION_SINKS] = (uintptr_t)c->sinks,
		[ATTENTION_BIAS] = (uintptr_t)c->slopes
	};
	const uint64_t merge[MERGE_ARGS] = { [MERGE_RECORDS] = (uintptr_t)records,
		                             [MERGE_OUT] = (uintptr_t)out,
		                             [MERGE_POS0] = w->pos0,
		                             [MERGE_SLIDING] = w->window,
		                             [MERGE_SINKS] = (uintptr_t)c->sinks };

	memcpy(&part[ATTENTION_CAP], &c->cap, 4);
	kernel_know(pages, (cache->pages + 1) * sizeof *pages);
	run_cut(&p->part, part, (int64_t)p->n * c->s.kv_heads, cut);
	run_cut(cut % 2 ? &p->merge : &p->awaiting, merge, (int64_t)c->heads * template_merge_units(c->s.dims),
	        (cut + 3) % 8);
	if (memcmp(out, w->want, bytes) != 0)
		fail_msg("%s: attention of %u x %u heads of %u, %s cache, in %u parts at %llu, window %llu differs",
		         way->name, c->s.kv_heads, c->s.group, c->s.dims, dtype_table[c->s.type].name, p->n,
		         (unsigned long long)w->pos0, (unsigned long long)w->window);
	free(pages);
	free(records);
	free(out);
}

/* Every position with every number of parts; what no position sees is NaN. */
static void check_scene(struct scene *c, const uint64_t *position, unsigned positions, uint64_t window, int round)
{
	static const unsigned counts[] = { 1, 2, 4, 16, 64 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, round), step = test_quick() ? 3 : 1;

	for (unsigned n = (unsigned)round % step; n < 5; n += step)
		for (unsigned i = 0; i < ways; i++) {
			struct parts p;
			open_parts(&p, &way[i], c, counts[n], window);
			for (unsigned at = 0; at < positions; at++) {
				struct work w;
				if (test_quick() && (at + n + i) % 2)
					continue;
				make_work(&w, c, 1, position[at], window);
				expect_work(&w, c);
				check(&p, &way[i], c, &w, (at + n) % 8);
				drop_work(&w);
			}
			close_parts(&p);
		}
}

static void test_parts(void **state)
{
	static const struct shape shapes[] = {
		{ 2, 2, 128, DTYPE_F16 }, { 2, 4, 64, DTYPE_F16 },  { 1, 3, 80, DTYPE_F16 },  { 1, 8, 64, DTYPE_Q8_0 },
		{ 2, 1, 66, DTYPE_F32 },  { 1, 5, 256, DTYPE_F16 }, { 1, 16, 32, DTYPE_F16 }, { 1, 11, 40, DTYPE_Q8_0 },
		{ 1, 2, 512, DTYPE_F16 }, { 3, 2, 128, DTYPE_Q8_0 }
	};
	static const uint64_t position[] = { 0, 31, 70, 127, 128, 300, 511, 640, 1151 };
	(void)state;

	for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct scene c;
		if (!test_mine_of_many(i))
			continue;
		open_scene(&c, shapes[i], 1152);
		check_scene(&c, position, sizeof position / sizeof position[0], 0, (int)i);
		close_scene(&c);
	}
}

static void test_windows(void **state)
{
	static const struct {
		struct shape s;
		uint64_t window;
		uint32_t period;
	} cases[] = { { { 2, 2, 64, DTYPE_F16 }, 1, 0 },
		      { { 1, 4, 64, DTYPE_F16 }, 150, 150 },
		      { { 2, 2, 128, DTYPE_F16 }, 300, 0 },
		      { { 1, 7, 80, DTYPE_F32 }, 129, 0 },
		      { { 2, 2, 96, DTYPE_Q8_0 }, 200, 0 } };
	static const uint64_t position[] = { 0, 127, 128, 255, 260, 500, 700 };
	(void)state;

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct scene c;
		if (!test_mine(i))
			continue;
		open_scene(&c, cases[i].s, 704);
		c.period = cases[i].period;
		check_scene(&c, position, sizeof position / sizeof position[0], cases[i].window, (int)i);
		close_scene(&c);
	}
}

/* As many chunks as a merge takes in several turns of every width; chunks whose maxima rise, fall and stay. */
static void test_many_chunks(void **state)
{
	static const uint64_t position[] = { 128 * 33 + 5, 128 * 70 - 1 };
	struct scene c;
	float key[32], value[32];
	(void)state;

	open_scene(&c, (struct shape){ 1, 2, 32, DTYPE_F32 }, 128 * 70);
	for (; c.filled < 128 * 70; c.filled++) {
		for (unsigned i = 0; i < 32; i++) {
			key[i] = kernel_random(&c.seed) * (float)(c.filled / 128 * 37 % 11);
			value[i] = kernel_random(&c.seed);
		}
		store_cache(&c, 0, c.filled, key, value);
	}
	check_scene(&c, position, 2, 0, 2);
	close_scene(&c);
}

static void test_refusals(void **state)
{
	const struct key whole = {
		.kind = KEY_ATTENTION, .heads = 4, .kv_heads = 2, .head_dim = 64, .kv = DTYPE_F16 + 1
	};
	struct key three = whole, many = whole, columns = whole,
		   merge = { .kind = KEY_MERGE, .heads = 4, .head_dim = 65 };
	(void)state;

	three.rows = 3;
	many.rows = 128;
	columns.rows = columns.tile_n = 2;
	kernel_refused(&three);
	kernel_refused(&many);
	kernel_refused(&columns);
	kernel_refused(&merge);
}

int attention_parts_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_many_chunks),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("attention_parts_tests", tests, NULL, NULL);
}
