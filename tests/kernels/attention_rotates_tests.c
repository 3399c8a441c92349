/* tests/kernels/attention_rotates_tests.c - attention that norms and rotates its queries and stores the newest position
 * itself gives the bits of plain loops, and leaves the cache with that position and nothing else changed: whole and in
 * parts, around the borders of chunks. So does attention of several columns whose units have a few of them; it leaves
 * the cache as it was, and another op stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/attention_check.h"
#include "tests/support/shared.h"

enum { DIMS_MAX = 256 };

/* A variant: what norms there are, how long the window is (0: none). */
struct variant {
	struct shape s;
	uint32_t norms;
	uint64_t window;
};

/* What positions are made of, and what plain loops make of them. */
struct raw {
	unsigned columns, keys;                              /* keys: floats of a column's keys */
	float *q, *k, *v, *cos[2], *sin[2], *norm[2], *want; /* [0] of queries, [1] of keys; column by column */
	float eps, scale;
	struct plain_cache behind, octets_behind;
};

static float *some(uint64_t *seed, size_t n, float by)
{
	float *x = kernel_buffer(n * sizeof *x, 0);

	for (size_t i = 0; i < n; i++)
		x[i] = kernel_random(seed) * by;
	return x;
}

static struct plain_angles angles_of(const struct raw *r, const struct variant *v, unsigned dims, unsigned n,
                                     unsigned column)
{
	return (struct plain_angles){ r->cos[n] + column * (dims / 2), r->sin[n] + column * (dims / 2),
		                      v->norms & KEY_QK_NORM ? r->norm[n] : NULL, r->eps, v->norms & KEY_NORM_LAST };
}

static void store_column(struct raw *r, const struct scene *c, const struct variant *v, uint64_t position,
                         unsigned column)
{
	const unsigned dims = c->s.dims;
	const struct plain_angles a = angles_of(r, v, dims, 1, column);
	float rotated[DIMS_MAX], value[DIMS_MAX];

	for (unsigned h = 0; h < c->s.kv_heads; h++) {
		const float *x = r->v + column * r->keys + h * dims;
		float by = plain_norm_scale(x, dims, r->eps);
		plain_rotate(rotated, r->k + column * r->keys + h * dims, dims, &a);
		for (unsigned i = 0; i < dims; i++)
			value[i] = v->norms & KEY_VALUE_NORM ? x[i] * by : x[i];
		plain_store(&r->behind, h, position, rotated, value);
		plain_store(&r->octets_behind, h, position, rotated, value);
	}
}

/* The positions' own keys and values are in `behind` alone. */
static void make_raw(struct raw *r, struct scene *c, const struct variant *v, uint64_t position, unsigned columns)
{
	const unsigned dims = c->s.dims;
	float *q = kernel_buffer((size_t)c->padded * 4, 0);

	fill_columns(c, position);
	*r = (struct raw){
		.columns = columns, .keys = (unsigned)numerics_pad(c->s.kv_heads * dims), .eps = 1e-5f, .scale = 0.17f
	};
	r->q = some(&c->seed, (size_t)columns * c->padded, 0.5f);
	r->k = some(&c->seed, (size_t)columns * r->keys, 1.0f);
	r->v = some(&c->seed, (size_t)columns * r->keys, 1.0f);
	for (unsigned n = 0; n < 2; n++) {
		r->cos[n] = some(&c->seed, columns * (dims / 2), 0.6f);
		r->sin[n] = some(&c->seed, columns * (dims / 2), 0.6f);
		r->norm[n] = some(&c->seed, dims, 1.0f);
	}
	r->behind = clone_cache(&c->cache);
	r->octets_behind = clone_cache(&c->octets);
	for (unsigned i = 0; i < columns; i++)
		store_column(r, c, v, position + i, i);
	r->want = kernel_buffer((size_t)columns * c->padded * 4, 0);
	for (unsigned i = 0; i < columns; i++) {
		const struct plain_angles a = angles_of(r, v, dims, 0, i);
		for (unsigned h = 0; h < c->heads; h++) {
			plain_rotate(q + h * dims, r->q + i * c->padded + h * dims, dims, &a);
			for (unsigned d = 0; d < dims; d++)
				q[h * dims + d] *= r->scale;
		}
		plain_attention(r->want + i * c->padded, q, &r->behind, c->heads, position + i, v->window);
	}
	free(q);
}

static void drop_raw(struct raw *r)
{
	for (unsigned n = 0; n < 2; n++) {
		free(r->cos[n]);
		free(r->sin[n]);
		free(r->norm[n]);
	}
	free(r->q);
	free(r->k);
	free(r->v);
	free(r->want);
	drop_cache(&r->behind);
	drop_cache(&r->octets_behind);
}

/* Of one number of parts; 0: whole. */
struct ops {
	unsigned parts, apart; /* apart: columns of a unit, or 0 */
	bool quantised, given; /* attention or merge leaves int8 blocks, too; instead, for others to await */
	struct kernel attention, merge, store;
};

/* o->apart is set. */
static void open_ops(struct ops *o, const struct kernel_way *way, const struct scene *c, const struct variant *v,
                     unsigned parts, unsigned columns)
{
	struct key key = scene_key(c, v->window), merge = { .kind = KEY_MERGE };

	key.flags |= KEY_ROTATES | v->norms;
	key.tile_n = columns;
	if (columns > 1) {
		merge.tile_n = columns;
		merge.kv_heads = key.kv_heads;
	}
	key.rows = o->parts = parts;
	key.row_blocks = (uint8_t)o->apart;
	if (parts && (parts + v->norms + c->heads + columns) % 3) /* all that it reads is there already */
		key.flags |= KEY_AWAITED;
	merge.heads = key.heads;
	merge.head_dim = key.head_dim;
	merge.flags = key.flags & (KEY_WINDOW | KEY_SINKS | KEY_AWAITED);
	o->quantised = c->s.dims % 32 == 0 && (parts || columns == 1);
	o->given = o->quantised && merge.flags & KEY_AWAITED;
	if (o->quantised)
		*(parts ? &merge.flags : &key.flags) |= KEY_QUANTISED_OUT;
	kernel_open(&o->attention, way, &key);
	if (parts)
		kernel_open(&o->merge, way, &merge);
	const struct key store = { .kind = KEY_KV_STORE,
		                   .kv_heads = key.kv_heads,
		                   .head_dim = key.head_dim,
		                   .kv = key.kv,
		                   .flags = v->norms };
	if (o->apart)
		kernel_open(&o->store, way, &store);
}

static void close_ops(struct ops *o)
{
	kernel_close(&o->attention);
	if (o->parts)
		kernel_close(&o->merge);
	if (o->apart)
		kernel_close(&o->store);
}

static bool are_blocks_of(const float *x, unsigned blocks, const int8_t *q, const struct activation_block *s)
{
	int8_t *want_q = kernel_buffer(blocks * 32, 0);
	struct activation_block *want_s = kernel_buffer(blocks * sizeof *s, 0);

	plain_quantise(x, blocks, want_q, want_s);
	bool same = memcmp(q, want_q, blocks * 32) == 0 && memcmp(s, want_s, blocks * sizeof *s) == 0;
	free(want_q);
	free(want_s);
	return same;
}

/* What a rotation needs, and what the scene says of scores. */
static void set_rotation(uint64_t *arg, const struct raw *r, const struct scene *c)
{
	memcpy(&arg[ATTENTION_CAP], &c->cap, 4);
	arg[ATTENTION_BIAS] = (uintptr_t)c->slopes;
	arg[ATTENTION_Q] = (uintptr_t)r->q;
	arg[ATTENTION_K] = (uintptr_t)r->k;
	arg[ATTENTION_V] = (uintptr_t)r->v;
	arg[ATTENTION_COS] = (uintptr_t)r->cos[0];
	arg[ATTENTION_SIN] = (uintptr_t)r->sin[0];
	arg[ATTENTION_NORM] = (uintptr_t)r->norm[0];
	arg[ATTENTION_KEY_COS] = (uintptr_t)r->cos[1];
	arg[ATTENTION_KEY_SIN] = (uintptr_t)r->sin[1];
	arg[ATTENTION_KEY_NORM] = (uintptr_t)r->norm[1];
	memcpy(&arg[ATTENTION_EPS], &r->eps, 4);
	memcpy(&arg[ATTENTION_SCALE], &r->scale, 4);
}

/* All units, the later ones first. */
static void attend(const struct ops *o, const struct raw *r, const struct scene *c, const uint64_t *arg, unsigned cut)
{
	int64_t units = (int64_t)c->s.kv_heads * (o->parts ? o->parts : 1), at;

	if (o->apart)
		units *= (r->columns + o->apart - 1) / o->apart;
	at = units * cut / 8;
	kernel_run(&o->attention, arg, at, units);
	kernel_run(&o->attention, arg, 0, at);
}

/* Stores all columns, as attention's arguments say. */
static void store(const struct ops *o, const struct raw *r, const struct scene *c, const uint64_t *arg)
{
	const uint64_t store[KV_STORE_ARGS] = {
		[KV_STORE_K] = arg[ATTENTION_K],
		[KV_STORE_V] = arg[ATTENTION_V],
		[KV_STORE_KEYS] = arg[ATTENTION_KEYS],
		[KV_STORE_VALUES] = arg[ATTENTION_VALUES],
		[KV_STORE_COS] = arg[ATTENTION_KEY_COS],
		[KV_STORE_SIN] = arg[ATTENTION_KEY_SIN],
		[KV_STORE_NORM] = arg[ATTENTION_KEY_NORM],
		[KV_STORE_EPS] = arg[ATTENTION_EPS],
		[KV_STORE_POS0] = arg[ATTENTION_POS0],
		[KV_STORE_PAGES] = arg[ATTENTION_PAGES],
		[KV_STORE_COLUMNS] = r->columns
	};

	kernel_run(&o->store, store, 0, (int64_t)r->columns * c->s.kv_heads);
}

static void check(const struct ops *o, const struct kernel_way *way, const struct scene *c, const struct variant *v,
                  const struct raw *r, uint64_t position, unsigned cut)
{
	bool octets = template_kv_octets(&way->target, c->s.type, c->s.dims);
	const struct plain_cache *from = octets ? &c->octets : &c->cache,
				 *want = octets ? &r->octets_behind : &r->behind;
	struct plain_cache cache = clone_cache(from);
	size_t bytes = (size_t)r->columns * c->padded * 4;
	float *out = kernel_buffer(bytes, 0xff);
	uint8_t *records = kernel_buffer(
		((position + r->columns - 1) / 128 + 1) * r->columns * c->heads * template_attention_record(c->s.dims),
		0xff);
	uint64_t *pages = plain_pages(&cache, cache.pages);
	const unsigned blocks = r->columns * c->padded / 32;
	int8_t *q = kernel_buffer(blocks * 32, 0);
	struct activation_block *s = kernel_buffer(blocks * sizeof *s, 0);
	uint64_t arg[ATTENTION_ARGS] = {
		[ATTENTION_KEYS] = PLAIN_KEYS,
		[ATTENTION_VALUES] = plain_values(&cache),
		[ATTENTION_OUT] = (uintptr_t)(o->parts ? (void *)records : (void *)out),
		[ATTENTION_POS0] = position,
		[ATTENTION_PAGES] = (uintptr_t)pages,
		[ATTENTION_SLIDING] = v->window,
		[ATTENTION_COLUMNS] = r->columns,
		[ATTENTION_SINKS] = (uintptr_t)c->sinks,
		[ATTENTION_OUTQ] = (uintptr_t)q,
		[ATTENTION_OUTS] = (uintptr_t)s
	};
	const uint64_t merge[MERGE_ARGS] = {
		[MERGE_RECORDS] = (uintptr_t)records, [MERGE_OUT] = (uintptr_t)out,        [MERGE_POS0] = position,
		[MERGE_SLIDING] = v->window,          [MERGE_SINKS] = (uintptr_t)c->sinks, [MERGE_OUTQ] = (uintptr_t)q,
		[MERGE_OUTS] = (uintptr_t)s
	};

	set_rotation(arg, r, c);
	kernel_know(pages, (cache.pages + 1) * sizeof *pages);
	attend(o, r, c, arg, cut);
	if (o->parts)
		kernel_run(&o->merge, merge, 0, (int64_t)r->columns * c->heads * template_merge_units(c->s.dims));
	bool same = (o->given || memcmp(out, r->want, bytes) == 0) &&
	            (!o->quantised || are_blocks_of(r->want, blocks, q, s));
	bool stored = !o->apart || same_caches(&cache, from);
	if (o->apart)
		store(o, r, c, arg);
	stored = stored && same_caches(&cache, want);
	if (!same || !stored)
		fail_msg("%s: attention of %u columns, %u a unit, %u x %u heads of %u that rotates, %s cache, norms "
		         "%x, in %u parts at %llu, window %llu: %s",
		         way->name, r->columns, o->apart, c->s.kv_heads, c->s.group, c->s.dims,
		         dtype_table[c->s.type].name, v->norms, o->parts, (unsigned long long)position,
		         (unsigned long long)v->window, stored ? "the result differs" : "the cache differs");
	free(pages);
	free(records);
	free(out);
	free(q);
	free(s);
	drop_cache(&cache);
}

/* Every position whole and in every number of parts. */
static void check_variant(const struct variant *v, int round)
{
	static const unsigned counts[] = { 0, 1, 2, 4, 8, 16, 32, 64 };
	static const uint64_t position[] = { 0, 1, 31, 32, 127, 128, 129, 255, 256, 511, 640 };
	enum { COUNTS = sizeof counts / sizeof *counts, POSITIONS = sizeof position / sizeof *position };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, round), step = test_quick() ? 3 : 1;
	struct scene c;

	open_scene(&c, v->s, 768);
	for (unsigned n = 0; n < COUNTS; n++)
		for (unsigned i = 0; i < ways; i++) {
			struct ops o = { 0 };
			if (way[i].target.waves < 2 || (n && (n + (unsigned)round) % step))
				continue;
			close_scene(&c); /* to fill it anew, position by position */
			open_scene(&c, v->s, 768);
			open_ops(&o, &way[i], &c, v, counts[n], 1);
			for (unsigned at = 0; at < POSITIONS; at++) {
				struct raw r;
				if (test_quick() && (at + n + i) % 3)
					continue;
				make_raw(&r, &c, v, position[at], 1);
				check(&o, &way[i], &c, v, &r, position[at], (at + n) % 8);
				drop_raw(&r);
			}
			close_ops(&o);
		}
	close_scene(&c);
}

/* Several columns, in parts: alone in a chunk, over its border, and over that of a part. */
static void check_columns(const struct variant *v, int round)
{
	static const uint64_t position[] = { 0, 1, 120, 125, 127, 128, 250, 255, 300, 511, 640 };
	enum { POSITIONS = sizeof position / sizeof *position };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS), step = test_quick() ? 5 : 1, at = 0;
	struct scene c;

	open_scene(&c, v->s, 768);
	for (unsigned columns = 2; columns <= TEMPLATE_MAX_QUERIES; columns++)
		for (unsigned i = 0; i < ways; i++) {
			const unsigned parts = 1u << (columns + (unsigned)round) % 6;
			struct ops o = { 0 };
			if (!template_attention_columns(&way[i].target, c.heads, c.s.kv_heads, c.s.dims, columns) ||
			    (columns + (unsigned)round) % step)
				continue;
			close_scene(&c);
			open_scene(&c, v->s, 768);
			open_ops(&o, &way[i], &c, v, parts, columns);
			for (unsigned n = 0; n < POSITIONS; n++) {
				struct raw r;
				if (at++ % (step + 1))
					continue;
				make_raw(&r, &c, v, position[n], columns);
				check(&o, &way[i], &c, v, &r, position[n], (n + columns) % 8);
				drop_raw(&r);
			}
			close_ops(&o);
		}
	close_scene(&c);
}

static void test_shapes(void **state)
{
	enum { QK = KEY_QK_NORM, LAST = KEY_QK_NORM | KEY_NORM_LAST, V = KEY_VALUE_NORM };
	static const struct variant variants[] = {
		{ { 2, 2, 128, DTYPE_F16 }, QK, 0 },         { { 2, 4, 64, DTYPE_F16 }, 0, 0 },
		{ { 1, 3, 80, DTYPE_F16 }, LAST, 0 },        { { 1, 8, 64, DTYPE_Q8_0 }, QK | V, 0 },
		{ { 2, 1, 66, DTYPE_F32 }, V, 0 },           { { 1, 5, 256, DTYPE_F16 }, QK | V, 0 },
		{ { 1, 16, 128, DTYPE_F16 }, QK, 0 },        { { 1, 11, 40, DTYPE_Q8_0 }, LAST | V, 0 },
		{ { 1, 8, 256, DTYPE_F16 }, QK, 0 },         { { 3, 2, 128, DTYPE_Q8_0 }, 0, 0 },
		{ { 1, 7, 96, DTYPE_F32 }, QK, 0 },          { { 2, 2, 64, DTYPE_F16 }, QK, 1 },
		{ { 2, 2, 128, DTYPE_F16 }, LAST | V, 300 }, { { 1, 7, 80, DTYPE_F32 }, 0, 129 },
		{ { 2, 2, 96, DTYPE_Q8_0 }, QK, 200 },       { { 1, 6, 128, DTYPE_F16 }, 0, 128 },
	};
	(void)state;

	for (unsigned i = 0; i < sizeof variants / sizeof *variants; i++)
		if (test_mine_of_many(i)) {
			check_variant(&variants[i], (int)i);
			check_columns(&variants[i], (int)i);
		}
}

/* Where keys and values are copied before the queries are there: blocks, vectors and members of a team in all numbers,
 * and windows that end in a chunk. */
static void test_copies(void **state)
{
	enum { QK = KEY_QK_NORM, LAST = KEY_QK_NORM | KEY_NORM_LAST, V = KEY_VALUE_NORM, SM90 = 4 /* of the cards */ };
	static const struct variant variants[] = {
		{ { 2, 2, 128, DTYPE_F16 }, QK, 0 },  { { 2, 4, 64, DTYPE_F16 }, 0, 0 },
		{ { 1, 1, 32, DTYPE_F16 }, V, 0 },    { { 1, 3, 96, DTYPE_F16 }, LAST, 0 },
		{ { 1, 5, 160, DTYPE_F16 }, 0, 0 },   { { 2, 2, 128, DTYPE_F16 }, LAST | V, 300 },
		{ { 1, 6, 128, DTYPE_F16 }, 0, 128 },
	};
	(void)state;

	for (unsigned i = 0; i < sizeof variants / sizeof *variants; i++)
		if (test_mine(i))
			check_variant(&variants[i], SM90);
}

/* Columns apart, so many a unit: few chunks and many parts, many chunks and few parts, over borders of chunks, of parts
 * and of units. */
static void check_apart(const struct variant *v, unsigned columns, unsigned of_unit, unsigned round)
{
	static const uint64_t position[] = { 0, 1, 16, 27, 31, 118, 121, 125, 127, 128, 250, 255, 300, 383, 511, 640 };
	enum { POSITIONS = sizeof position / sizeof *position, SM90 = 4 /* of the cards */ };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, SM90), tried = 0;
	struct scene c;

	for (unsigned i = 0; i < ways; i++) {
		const unsigned parts = 1u << (round + i) % 5;
		struct ops o = { .apart = of_unit };
		/* That card alone has room for copies of so many columns. */
		if (way[i].target.block_bytes < target_table[TARGET_SM90].block_bytes)
			continue;
		tried++;
		open_scene(&c, v->s, 768);
		open_ops(&o, &way[i], &c, v, parts, columns);
		for (unsigned n = 0; n < POSITIONS; n++) {
			struct raw r;
			if ((n + round) % (way[i].simulated ? 6 : test_full() ? 1 : 2))
				continue;
			make_raw(&r, &c, v, position[n], columns);
			check(&o, &way[i], &c, v, &r, position[n], (n + columns) % 8);
			drop_raw(&r);
		}
		close_ops(&o);
		close_scene(&c);
	}
	/* One share of many may have targets alone that read no blocks. */
	assert_true(tried > 0 || (test_share()->of > 1 && test_share()->first == test_share()->last));
}

static void test_apart(void **state)
{
	enum { QK = KEY_QK_NORM, LAST = KEY_QK_NORM | KEY_NORM_LAST, V = KEY_VALUE_NORM };
	static const struct variant variants[] = {
		{ { 2, 2, 128, DTYPE_F16 }, QK, 0 },      { { 2, 4, 64, DTYPE_F16 }, 0, 0 },
		{ { 1, 1, 32, DTYPE_F16 }, V, 0 },        { { 1, 8, 64, DTYPE_F16 }, LAST, 0 },
		{ { 1, 3, 96, DTYPE_F16 }, LAST | V, 0 }, { { 2, 2, 128, DTYPE_F16 }, LAST | V, 300 },
		{ { 1, 1, 128, DTYPE_F16 }, QK, 129 },    { { 3, 2, 64, DTYPE_F16 }, 0, 3 },
	};
	enum { VARIANTS = sizeof variants / sizeof *variants };
	(void)state;

	for (unsigned i = 0; i < VARIANTS; i++)
		for (unsigned columns = 2; columns <= TEMPLATE_MAX_QUERIES; columns++) {
			const unsigned max = variants[i].s.group < 4 ? 4 / variants[i].s.group : 1;
			const unsigned round = i * 5 + columns;
			if (!test_mine(round) || (test_quick() && round % 5))
				continue;
			/* as plans have it, and fewer or more */
			check_apart(&variants[i], columns, max < columns ? max : columns, round);
			if (round % 3 == 0)
				check_apart(&variants[i], columns, 1 + round % (8 / variants[i].s.group) % columns,
				            round);
		}
}

/* Norms without rotation, columns, latent vectors, queries too many for shared bytes; and CPUs do not rotate. */
static void test_refusals(void **state)
{
	const struct key good = { .kind = KEY_ATTENTION,
		                  .heads = 4,
		                  .kv_heads = 2,
		                  .head_dim = 64,
		                  .kv = DTYPE_F16 + 1,
		                  .flags = KEY_ROTATES };
	struct key norms = good, columns = good, many = good;
	(void)state;

	norms.flags = KEY_QK_NORM;
	columns.tile_n = 2;
	many.heads = 32;
	many.kv_heads = 1;
	many.head_dim = 128;
	kernel_refused(&norms);
	kernel_refused(&columns);
	kernel_refused(&many);
	assert_false(template_attention_rotates(&target_table[TARGET_AVX2], 16, 8, 128));
	assert_true(template_attention_rotates(&target_table[TARGET_SM90], 16, 8, 128));
	assert_true(template_attention_rotates(&target_table[TARGET_GFX1101], 64, 4, 128));
	assert_false(template_attention_rotates(&target_table[TARGET_GFX1101], 32, 2, 256));
}

int attention_rotates_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("attention_rotates_tests", tests, NULL, NULL);
}
