/* tests/kernels/t_rope.c - queries and keys before attention: norm per head, rotation, scale, and the cache's two
 * layouts, against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/support/shared.h"

enum { COLUMNS = 19 /* a group of the cache's columns and some */, CAPACITY = 256 };

static const unsigned head_dims[] = { 2, 6, 32, 40, 48, 64, 66, 80, 96, 128, 256, 512 };
enum { DIMS_COUNT = sizeof head_dims / sizeof head_dims[0] };

struct heads_data {
	unsigned heads, dims, width, padded;
	float *x, *v, *cos, *sin, *norm, eps;
};

static void make(struct heads_data *d, unsigned heads, unsigned dims, uint64_t seed)
{
	d->heads = heads;
	d->dims = dims;
	d->width = heads * dims;
	d->padded = (d->width + 31) / 32 * 32;
	d->eps = 1e-6f;
	d->x = kernel_buffer((size_t)d->padded * COLUMNS * 4, 0);
	d->v = kernel_buffer((size_t)d->padded * COLUMNS * 4, 0);
	d->cos = kernel_buffer((size_t)dims / 2 * COLUMNS * 4, 0xff);
	d->sin = kernel_buffer((size_t)dims / 2 * COLUMNS * 4, 0xff);
	d->norm = kernel_buffer((size_t)(dims + 31) / 32 * 32 * 4, 0);
	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned i = 0; i < d->width; i++) {
			d->x[c * d->padded + i] = kernel_random(&seed);
			d->v[c * d->padded + i] = kernel_random(&seed);
		}
	for (unsigned i = 0; i < dims / 2 * COLUMNS; i++) {
		double angle = kernel_random(&seed);
		d->cos[i] = (float)cos(angle);
		d->sin[i] = (float)sin(angle);
	}
	for (unsigned i = 0; i < dims; i++)
		d->norm[i] = kernel_random(&seed);
}

static void drop(struct heads_data *d)
{
	free(d->x);
	free(d->v);
	free(d->cos);
	free(d->sin);
	free(d->norm);
}

/* The flags of a key that decide about norms of queries and keys. */
static const uint32_t norms[] = { 0, KEY_QK_NORM, KEY_QK_NORM | KEY_NORM_LAST };
enum { NORMS = sizeof norms / sizeof *norms };

static void plain_head(float *out, const struct heads_data *d, unsigned column, unsigned head, uint32_t flags)
{
	struct plain_angles a = { d->cos + column * d->dims / 2, d->sin + column * d->dims / 2, flags ? d->norm : NULL,
		                  d->eps, flags & KEY_NORM_LAST };
	plain_rotate(out, d->x + column * d->padded + head * d->dims, d->dims, &a);
}

static void check_queries(const struct heads_data *d, const struct kernel_way *way, uint32_t flags)
{
	struct key key = { .kind = KEY_ROPE, .heads = d->heads, .head_dim = d->dims, .flags = flags };
	size_t bytes = (size_t)d->padded * COLUMNS * 4;
	float *want = kernel_buffer(bytes, 0), *out = kernel_buffer(bytes, 0xff), *same = kernel_buffer(bytes, 0);
	float scale = (float)(1.0 / sqrt(d->dims));
	uint64_t arg[ROPE_ARGS] = { [ROPE_IN] = (uintptr_t)d->x,
		                    [ROPE_OUT] = (uintptr_t)out,
		                    [ROPE_COS] = (uintptr_t)d->cos,
		                    [ROPE_SIN] = (uintptr_t)d->sin,
		                    [ROPE_NORM] = (uintptr_t)d->norm };
	int64_t units = COLUMNS * d->heads, cut = units / 3;
	struct kernel k;

	memcpy(&arg[ROPE_EPS], &d->eps, 4);
	memcpy(&arg[ROPE_SCALE], &scale, 4);
	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned h = 0; h < d->heads; h++) {
			float *to = want + c * d->padded + h * d->dims;
			plain_head(to, d, c, h, flags);
			for (unsigned i = 0; i < d->dims; i++)
				to[i] *= scale;
		}
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, cut, units);
	kernel_run(&k, arg, 0, cut);
	if (memcmp(out, want, bytes) != 0)
		fail_msg("%s: rotation of %u heads of %u differs", way->name, d->heads, d->dims);
	memcpy(same, d->x, bytes);
	arg[ROPE_IN] = arg[ROPE_OUT] = (uintptr_t)same;
	kernel_run(&k, arg, 0, units);
	if (memcmp(same, want, bytes) != 0)
		fail_msg("%s: rotation of %u heads of %u in place differs", way->name, d->heads, d->dims);
	kernel_close(&k);
	free(want);
	free(out);
	free(same);
}

static struct plain_cache make_cache(const struct heads_data *d, enum dtype type, uint64_t chunk, bool octets)
{
	return (struct plain_cache){
		.k = kernel_buffer(CAPACITY / 128 * chunk, 0xff),
		.v = kernel_buffer(CAPACITY / 128 * chunk, 0xff),
		.type = type,
		.kv_heads = d->heads,
		.dims = d->dims,
		.chunk_bytes = chunk,
		.octets = octets,
		.pages = CAPACITY / 128
	};
}

static void check_store(const struct heads_data *d, const struct kernel_way *way, uint32_t flags, enum dtype type,
                        uint64_t pos0)
{
	struct key key = { .kind = KEY_KV_STORE,
		           .kv_heads = d->heads,
		           .head_dim = d->dims,
		           .kv = (uint8_t)(type + 1),
		           .flags = flags };
	uint64_t chunk = d->heads * plain_cache_row(type, d->dims) * 128 + 192;
	size_t bytes = CAPACITY / 128 * chunk;
	bool octets = template_kv_octets(&way->target, type, d->dims);
	struct plain_cache want = make_cache(d, type, chunk, octets), out = make_cache(d, type, chunk, octets);
	uint64_t *pages = plain_pages(&out, CAPACITY / 128);
	kernel_know(pages, (CAPACITY / 128 + 1) * sizeof *pages);
	uint64_t arg[KV_STORE_ARGS] = { [KV_STORE_K] = (uintptr_t)d->x,       [KV_STORE_V] = (uintptr_t)d->v,
		                        [KV_STORE_KEYS] = PLAIN_KEYS,         [KV_STORE_VALUES] = plain_values(&out),
		                        [KV_STORE_COS] = (uintptr_t)d->cos,   [KV_STORE_SIN] = (uintptr_t)d->sin,
		                        [KV_STORE_NORM] = (uintptr_t)d->norm, [KV_STORE_POS0] = pos0,
		                        [KV_STORE_PAGES] = (uintptr_t)pages,  [KV_STORE_COLUMNS] = COLUMNS };
	int64_t units = template_kv_store_units(&way->target, d->heads, COLUMNS), cut = units / 2;
	struct kernel k;

	memcpy(&arg[KV_STORE_EPS], &d->eps, 4);
	for (unsigned c = 0; c < COLUMNS; c++)
		for (unsigned h = 0; h < d->heads; h++) {
			float rotated[512], value[512];
			const float *v = d->v + c * d->padded + h * d->dims;
			float r = plain_norm_scale(v, d->dims, d->eps);
			plain_head(rotated, d, c, h, flags & ~(uint32_t)KEY_VALUE_NORM);
			for (unsigned i = 0; i < d->dims; i++)
				value[i] = flags & KEY_VALUE_NORM ? v[i] * r : v[i];
			plain_store(&want, h, pos0 + c, rotated, value);
		}
	assert_int_equal(template_traffic(&key, (uint64_t)units, pos0, COLUMNS),
	                 COLUMNS * d->heads * 2 * (4 * d->dims + plain_cache_row(type, d->dims)));
	kernel_open(&k, way, &key);
	kernel_run(&k, arg, cut, units);
	kernel_run(&k, arg, 0, cut);
	/* The whole cache is compared: what is nobody's position stays as it was. */
	if (memcmp(out.k, want.k, bytes) != 0 || memcmp(out.v, want.v, bytes) != 0)
		fail_msg("%s: %s cache of %u heads of %u differs at %llu", way->name, dtype_table[type].name, d->heads,
		         d->dims, (unsigned long long)pos0);
	kernel_close(&k);
	free(want.k);
	free(pages);
	free(want.v);
	free(out.k);
	free(out.v);
}

static void test_queries(void **state)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	(void)state;

	for (unsigned i = 0; i < DIMS_COUNT; i++)
		for (unsigned heads = 1; heads <= 5; heads += 2) {
			struct heads_data d;
			make(&d, heads, head_dims[i], heads + i);
			for (unsigned w = 0; w < ways; w++)
				for (unsigned j = 0; j < NORMS; j++)
					check_queries(&d, &way[w], norms[j]);
			drop(&d);
		}
}

static void test_cache(void **state)
{
	static const uint64_t pos0[] = { 0, 30, 127, 200 };
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, KERNEL_ALL_CARDS);
	(void)state;

	for (unsigned i = 0; i < DIMS_COUNT; i++) {
		struct heads_data d;
		make(&d, 1 + i % 4, head_dims[i], i);
		for (unsigned w = 0; w < ways; w++)
			for (unsigned j = 0; j < 4; j++) {
				check_store(&d, &way[w], norms[j % NORMS] | (j % 2 ? KEY_VALUE_NORM : 0), DTYPE_F16,
				            pos0[j]);
				check_store(&d, &way[w], norms[(j + 1) % NORMS] | KEY_VALUE_NORM, DTYPE_F32, pos0[j]);
				check_store(&d, &way[w], norms[(j + 2) % NORMS] | (j / 2 ? KEY_VALUE_NORM : 0),
				            DTYPE_Q8_0, pos0[j]);
			}
		drop(&d);
	}
}

static void test_refusals(void **state)
{
	static const struct key bad[] = {
		{ .kind = KEY_ROPE, .heads = 0, .head_dim = 64 },
		{ .kind = KEY_ROPE, .heads = 2, .head_dim = 63 },
		{ .kind = KEY_ROPE, .heads = 2, .head_dim = 514 },
		{ .kind = KEY_KV_STORE, .kv_heads = 2, .head_dim = 64, .kv = DTYPE_BF16 + 1 },
		{ .kind = KEY_KV_STORE, .kv_heads = 2, .head_dim = 64 },
	};
	(void)state;

	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
		kernel_refused(&bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_queries), cmocka_unit_test(test_cache),
		                            cmocka_unit_test(test_refusals) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
