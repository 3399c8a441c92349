/* tests/kernels/t_latent.c - the kernels of latent attention against plain loops: queries, the cache's rows, attention
 * over rows that are keys and values, and matrices by head. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/by_head_tests.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/support/shared.h"

static unsigned pad32(unsigned n) { return (n + 31) / 32 * 32; }

static uint64_t seed = 7;

static float *random_floats(size_t n)
{
	float *p = kernel_buffer(n * 4, 0);
	for (size_t i = 0; i < n; i++)
		p[i] = kernel_random(&seed);
	return p;
}

struct size {
	unsigned heads, latent, rest, rotating;
};
static const struct size sizes[] = { { 4, 32, 16, 16 },   { 3, 64, 24, 8 },    { 5, 96, 33, 2 },
	                             { 2, 512, 192, 64 }, { 7, 128, 128, 32 }, { 1, 256, 7, 26 } };
enum { SIZES = sizeof sizes / sizeof *sizes, COLUMNS = 18, HEADS_MAX = 1024 };

static int counter; /* simulated cards take turns, but for JITRUN_TEST_FULL */

/* ---- queries */

static void check_queries(const struct size *s, const struct kernel_way *way)
{
	const struct key key = { .kind = KEY_ROPE,
		                 .heads = s->heads,
		                 .head_dim = s->rotating,
		                 .k = s->rest,
		                 .rows = s->latent,
		                 .flags = KEY_LATENT };
	unsigned columns = test_quick() ? 3 : COLUMNS, in_dims = s->rest + s->rotating,
		 out_dims = s->latent + s->rotating, angles = s->rotating / 2 + 1, in_width = pad32(s->heads * in_dims),
		 out_width = pad32(s->heads * out_dims), rest_width = s->heads * pad32(s->rest);
	float *x = random_floats((size_t)columns * in_width), *cosines = random_floats((size_t)columns * angles),
	      *sines = random_floats((size_t)columns * angles), scale = 0.37f;
	size_t out_bytes = (size_t)columns * out_width * 4, rest_bytes = (size_t)columns * rest_width * 4;
	float *out = kernel_buffer(out_bytes, 0x55), *want = kernel_buffer(out_bytes, 0x55),
	      *rest = kernel_buffer(rest_bytes, 0x55), *want_rest = kernel_buffer(rest_bytes, 0);
	uint64_t arg[ROPE_ARGS] = { [ROPE_IN] = (uintptr_t)x,
		                    [ROPE_OUT] = (uintptr_t)out,
		                    [ROPE_COS] = (uintptr_t)cosines,
		                    [ROPE_SIN] = (uintptr_t)sines,
		                    [ROPE_REST] = (uintptr_t)rest };
	int64_t units = columns * s->heads, cut = units / 3;
	struct kernel k;

	memcpy(&arg[ROPE_SCALE], &scale, 4);
	for (unsigned c = 0; c < columns; c++)
		for (unsigned h = 0; h < s->heads; h++) {
			const float *from = x + c * in_width + h * in_dims;
			float *to = want + c * out_width + h * out_dims + s->latent,
			      *aside = want_rest + c * rest_width + h * pad32(s->rest);
			struct plain_angles a = { cosines + c * angles, sines + c * angles, NULL, 0, false };
			plain_rotate(to, from + s->rest, s->rotating, &a);
			for (unsigned i = 0; i < s->rotating; i++)
				to[i] *= scale;
			for (unsigned i = 0; i < s->rest; i++) {
				float transposed = from[i] * a.cos[angles - 1];
				aside[i] = transposed * scale;
			}
		}
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, cut, units);
	kernel_run(&k, arg, 0, cut);
	if (memcmp(out, want, out_bytes) != 0 || memcmp(rest, want_rest, rest_bytes) != 0)
		fail_msg("%s: %u queries of %u + %u for a latent vector of %u differ", way->name, s->heads, s->rest,
		         s->rotating, s->latent);
	kernel_close(&k);
	void *all[] = { x, cosines, sines, out, want, rest, want_rest };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void test_queries(void **state)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, ++counter);
	(void)state;
	for (unsigned i = 0; i < SIZES; i++)
		for (unsigned w = 0; w < ways; w++)
			check_queries(&sizes[i], &way[w]);
}

/* ---- the cache */

static const enum dtype types[] = { DTYPE_F16, DTYPE_F32, DTYPE_Q8_0 };

static struct plain_cache make_cache(const struct size *s, enum dtype type, unsigned chunks, bool octets)
{
	unsigned dims = s->latent + s->rotating;
	uint64_t chunk = plain_cache_row(type, dims) * 128 + 192;
	return (struct plain_cache){
		.k = kernel_buffer(chunks * chunk, 0xff),
		.v = kernel_buffer(chunks * chunk, 0xff),
		.type = type,
		.kv_heads = 1,
		.dims = dims,
		.chunk_bytes = chunk,
		.octets = octets,
		.pages = chunks
	};
}

static void check_store(const struct size *s, enum dtype type, uint64_t pos0, const struct kernel_way *way)
{
	unsigned dims = s->latent + s->rotating, width = pad32(dims), angles = s->rotating / 2 + 1,
		 group = template_kv_store_tokens(&way->target), columns = test_quick() ? group + 2 : COLUMNS;
	const struct key key = { .kind = KEY_KV_STORE,
		                 .kv_heads = 1,
		                 .head_dim = dims,
		                 .k = s->latent,
		                 .kv = key_type(type),
		                 .flags = KEY_LATENT };
	float *x = random_floats((size_t)columns * width), *cosines = random_floats((size_t)columns * angles),
	      *sines = random_floats((size_t)columns * angles), *norm = random_floats(s->latent), eps = 1e-6f;
	bool octets = template_kv_octets(&way->target, type, dims);
	struct plain_cache got = make_cache(s, type, 2, octets), want = make_cache(s, type, 2, octets);
	uint64_t *pages_of = plain_pages(&got, 2);
	kernel_know(pages_of, 3 * sizeof *pages_of);
	uint64_t arg[KV_STORE_ARGS] = {
		[KV_STORE_K] = (uintptr_t)x,
		[KV_STORE_KEYS] = PLAIN_KEYS,
		[KV_STORE_COS] = (uintptr_t)cosines,
		[KV_STORE_SIN] = (uintptr_t)sines,
		[KV_STORE_NORM] = (uintptr_t)norm,
		[KV_STORE_POS0] = pos0,
		[KV_STORE_PAGES] = (uintptr_t)pages_of,
		[KV_STORE_COLUMNS] = columns
	};
	int64_t units = template_kv_store_units(&way->target, 1, columns);
	struct kernel k;

	memcpy(&arg[KV_STORE_EPS], &eps, 4);
	for (unsigned c = 0; c < columns; c++) {
		float row[HEADS_MAX];
		struct plain_angles a = { cosines + c * angles, sines + c * angles, NULL, 0, false };
		plain_norm(row, NULL, NULL, x + c * width, norm, s->latent, eps, false);
		plain_rotate(row + s->latent, x + c * width + s->latent, s->rotating, &a);
		plain_store(&want, 0, pos0 + c, row, row);
	}
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, units / 2, units);
	kernel_run(&k, arg, 0, units / 2);
	if (memcmp(got.k, want.k, 2 * got.chunk_bytes) != 0)
		fail_msg("%s: rows of %u + %u from position %llu in a cache of %s differ", way->name, s->latent,
		         s->rotating, (unsigned long long)pos0, dtype_table[type].name);
	kernel_close(&k);
	void *all[] = { x, cosines, sines, norm, pages_of, got.k, got.v, want.k, want.v };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void test_store(void **state)
{
	static const uint64_t pos0[] = { 0, 30, 125 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, ++counter);
	(void)state;
	for (unsigned i = 0; i < SIZES; i++)
		for (unsigned t = 0; t < 3; t++)
			for (unsigned w = 0; w < ways; w++)
				check_store(&sizes[i], types[t], pos0[(i + t) % 3], &way[w]);
}

/* ---- attention */

static float sum_lanes(const float partial[32])
{
	float p[32], t[32];
	memcpy(p, partial, sizeof p);
	for (unsigned stride = 16; stride; stride /= 2) {
		for (unsigned l = 0; l < 32; l++)
			t[l] = p[l] + p[l ^ stride];
		memcpy(p, t, sizeof p);
	}
	return p[0];
}

/* What a cache of the type makes of a row. */
static void round_row(float *out, const float *x, unsigned dims, enum dtype type)
{
	for (unsigned first = 0; first < dims; first += 32) {
		unsigned end = first + 32 < dims ? first + 32 : dims;
		float amax = 0;
		for (unsigned d = first; d < end; d++)
			amax = fabsf(x[d]) > amax ? fabsf(x[d]) : amax;
		float scale = amax / 127.0f;
		for (unsigned d = first; d < end; d++) {
			float q = scale == 0 ? 0 : nearbyintf(fmaxf(-127.0f, fminf(127.0f, x[d] / scale)));
			out[d] = type == DTYPE_F32   ? x[d]
			         : type == DTYPE_F16 ? plain_f16_to_f32(plain_f32_to_f16(x[d]))
			                             : scale * q;
		}
	}
}

/* One query over rows[0..position], as numerics.h rule 9a has it. */
static void plain_latent(float *out, const float *q, const float *rows, const struct size *s, uint64_t position)
{
	unsigned dims = s->latent + s->rotating;
	float max = -INFINITY, total = 0, o[HEADS_MAX] = { 0 };

	for (uint64_t first = 0; first <= position; first += NUMERICS_CHUNK) {
		uint64_t end = first + NUMERICS_CHUNK <= position ? first + NUMERICS_CHUNK : position + 1;
		float p[NUMERICS_CHUNK], m = -INFINITY, partial[32] = { 0 };
		for (uint64_t j = first; j < end; j++) {
			float acc = 0;
			for (unsigned d = 0; d < dims; d++)
				acc = fmaf(rows[j * dims + d], q[d], acc);
			p[j - first] = acc;
			m = acc > m ? acc : m;
		}
		for (uint64_t j = first; j < end; j++) {
			p[j - first] = plain_exp(p[j - first] - m);
			partial[j % 32] += p[j - first];
		}
		float now = m > max ? m : max, a = plain_exp(max - now), b = plain_exp(m - now);
		float lb = sum_lanes(partial) * b;
		total = fmaf(total, a, lb);
		for (unsigned d = 0; d < s->latent; d++) {
			memset(partial, 0, sizeof partial);
			for (uint64_t j = first; j < end; j++)
				partial[j % 32] = fmaf(p[j - first], rows[j * dims + d], partial[j % 32]);
			float ob = (sum_lanes(partial) + 0.0f) * b;
			o[d] = fmaf(o[d], a, ob);
		}
		max = now;
	}
	for (unsigned d = 0; d < s->latent; d++)
		out[d] = o[d] / total;
}

/* Rows of a cache behind position `filled` are NaN. */
struct scene {
	const struct size *s;
	struct plain_cache cache, octets;
	float *rows;
	uint64_t filled;
};

static void fill_to(struct scene *c, uint64_t end)
{
	unsigned dims = c->s->latent + c->s->rotating;

	for (; c->filled < end; c->filled++) {
		float row[HEADS_MAX];
		for (unsigned d = 0; d < dims; d++)
			row[d] = kernel_random(&seed);
		plain_store(&c->cache, 0, c->filled, row, row);
		plain_store(&c->octets, 0, c->filled, row, row);
		round_row(c->rows + c->filled * dims, row, dims, c->cache.type);
	}
}

static void check_attention(struct scene *c, const struct kernel k[], const struct kernel_way *way, unsigned ways,
                            unsigned splits, unsigned columns, uint64_t pos0)
{
	const struct size *s = c->s;
	unsigned dims = s->latent + s->rotating, q_width = pad32(s->heads * dims), width = s->heads * s->latent;
	size_t bytes = (size_t)columns * width * 4;
	float *q = random_floats((size_t)columns * q_width), *want = kernel_buffer(bytes, 0);

	fill_to(c, pos0 + columns);
	for (unsigned i = 0; i < columns * s->heads; i++)
		plain_latent(want + i / s->heads * width + i % s->heads * s->latent,
		             q + i / s->heads * q_width + i % s->heads * dims, c->rows, s, pos0 + i / s->heads);
	for (unsigned w = 0; w < ways; w++) {
		float *out = kernel_buffer(bytes, 0xff);
		bool octets = template_kv_octets(&way[w].target, c->cache.type, dims);
		uint64_t *table = plain_pages(octets ? &c->octets : &c->cache, c->cache.pages);
		kernel_know(table, (c->cache.pages + 1) * sizeof *table);
		uint64_t arg[ATTENTION_ARGS] = { [ATTENTION_Q] = (uintptr_t)q,         [ATTENTION_KEYS] = PLAIN_KEYS,
			                         [ATTENTION_OUT] = (uintptr_t)out,     [ATTENTION_POS0] = pos0,
			                         [ATTENTION_PAGES] = (uintptr_t)table, [ATTENTION_COLUMNS] = columns };
		int64_t units = columns * splits, cut = units * 3 / 8;
		kernel_run(&k[w], arg, cut, units);
		kernel_run(&k[w], arg, 0, cut);
		if (memcmp(out, want, bytes) != 0)
			fail_msg("%s: latent attention of %u heads of %u + %u in %u units, %s cache, %u columns at "
			         "%llu differs",
			         way[w].name, s->heads, s->latent, s->rotating, splits, dtype_table[c->cache.type].name,
			         columns, (unsigned long long)pos0);
		free(table);
		free(out);
	}
	free(q);
	free(want);
}

static void check_scene(const struct size *s, enum dtype type, unsigned splits, int which)
{
	static const uint64_t pos0[] = { 0, 1, 30, 31, 32, 63, 95, 127, 128, 140, 255, 256, 300 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, ++counter);
	const struct key key = { .kind = KEY_ATTENTION,
		                 .heads = s->heads,
		                 .kv_heads = splits,
		                 .head_dim = s->latent + s->rotating,
		                 .k = s->latent,
		                 .kv = key_type(type),
		                 .flags = KEY_LATENT };
	struct kernel k[KERNEL_MAX_WAYS];
	struct scene c = { .s = s,
		           .cache = make_cache(s, type, 3, false),
		           .octets = make_cache(s, type, 3, type == DTYPE_F16 && key.head_dim % 32 == 0),
		           .rows = malloc((size_t)key.head_dim * 384 * 4) };

	assert_non_null(c.rows);
	for (unsigned w = 0; w < ways; w++)
		kernel_open(&k[w], &way[w], &key);
	for (unsigned i = 0; i < sizeof pos0 / sizeof *pos0; i++)
		if (!test_quick() || (i + (unsigned)which) % 5 == 0)
			check_attention(&c, k, way, ways, splits, 1 + i % 3, pos0[i]);
	for (unsigned w = 0; w < ways; w++)
		kernel_close(&k[w]);
	void *all[] = { c.cache.k, c.cache.v, c.octets.k, c.octets.v, c.rows };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void test_attention(void **state)
{
	static const struct size shapes[] = { { 4, 32, 16, 16 },  { 12, 64, 24, 8 },   { 5, 96, 32, 34 },
		                              { 20, 64, 32, 32 }, { 2, 512, 192, 64 }, { 35, 32, 32, 2 } };
	(void)state;

	for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (unsigned t = 0; t < 3; t++) {
			unsigned heads = shapes[i].heads;
			if (test_full() || i < 2 || (i + t) % 3 == 0)
				check_scene(&shapes[i], types[t], (i + t) % 2 ? 1 : template_latent_units(heads, 1),
				            (int)(i + t));
		}
}

/* Every number of heads is cut into units of few heads each, as many as there ought to be where it can be. */
static void test_units(void **state)
{
	(void)state;
	for (uint32_t heads = 1; heads <= 256; heads++) {
		uint32_t one = template_latent_units(heads, 1), many = template_latent_units(heads, 2);
		assert_true(heads % one == 0 && heads / one <= 8);
		assert_true(heads % many == 0 && heads / many <= 32);
		assert_true(one >= 8 || one == heads);
	}
	assert_int_equal(template_latent_units(20, 1), 10);
	assert_int_equal(template_latent_units(128, 1), 16);
	assert_int_equal(template_latent_units(20, 5), 1);
	assert_int_equal(template_latent_units(128, 5), 4);
}

static void test_refusals(void **state)
{
	const struct key good = { .kind = KEY_ATTENTION,
		                  .heads = 4,
		                  .kv_heads = 2,
		                  .head_dim = 48,
		                  .k = 32,
		                  .kv = key_type(DTYPE_F16),
		                  .flags = KEY_LATENT },
			 store = { .kind = KEY_KV_STORE,
		                   .kv_heads = 1,
		                   .head_dim = 48,
		                   .k = 32,
		                   .kv = key_type(DTYPE_F16),
		                   .flags = KEY_LATENT },
			 product = { .kind = KEY_MATMUL,
		                     .weight = key_type(DTYPE_F16),
		                     .activation = key_type(DTYPE_F32),
		                     .rows = 32,
		                     .k = 32,
		                     .heads = 2,
		                     .head_dim = 32,
		                     .tile_n = 1,
		                     .row_blocks = 1,
		                     .flags = KEY_BY_HEAD };
	struct key bad[12];
	unsigned n = 0;
	(void)state;

#define BAD(of, change) (bad[n] = of, bad[n].change, n++)
	BAD(good, k = 16);
	BAD(good, k = 48);
	BAD(good, head_dim = 49);
	BAD(good, tile_n = 2);
	BAD(good, flags |= KEY_WINDOW);
	BAD(good, kv = key_type(DTYPE_BF16));
	BAD(store, kv_heads = 2);
	BAD(store, k = 40);
	BAD(product, head_dim = 31);
	BAD(product, heads = 0);
	BAD(product, flags |= KEY_RESIDUAL);
	BAD(product, row_blocks = 2);
#undef BAD
	for (unsigned i = 0; i < n; i++)
		kernel_refused(&bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queries), cmocka_unit_test(test_store),    cmocka_unit_test(test_attention),
		cmocka_unit_test(test_units),   cmocka_unit_test(test_refusals),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += by_head_tests();
	return failed;
}
