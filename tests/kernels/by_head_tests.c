/* tests/kernels/by_head_tests.c - matrices by head against plain loops, with every type of weights. */
#include "tests/kernels/by_head_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

static unsigned pad32(unsigned n) { return (n + 31) / 32 * 32; }

static uint64_t seed = 11;
static int counter; /* simulated cards take turns, but for JITRUN_TEST_FULL */

static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 40) % n;
}

struct by_head {
	struct key key;
	unsigned columns, in_width, out_width;
	uint8_t *rows, *packed[2];
	float *x, *want;
	int8_t *q;
	struct activation_block *s;
};

static void expect_by_head(struct by_head *d, uint64_t row_bytes)
{
	const struct key *key = &d->key;
	unsigned kp = pad32(key->k), rp = pad32(key->rows);
	bool int8 = key->activation == key_type(DTYPE_Q8_0);

	for (unsigned h = 0; h < key->heads; h++)
		for (unsigned c = 0; c < d->columns; c++) {
			float out[1024];
			size_t at = (size_t)c * d->in_width + h * kp;
			assert_true(rp <= 1024);
			plain_matmul(&(struct plain_matmul){
				.w = { key_dtype(key->weight), key->rows, key->k, d->rows + h * key->rows * row_bytes },
				.columns = 1,
				.x = int8 ? NULL : d->x + at,
				.q = d->q + at,
				.s = d->s + at / 32,
				.out = out });
			memcpy(d->want + (size_t)c * d->out_width + h * key->head_dim, out, key->rows * 4);
		}
}

static void make_by_head(struct by_head *d, const struct key *key, unsigned tiles)
{
	enum dtype type = key_dtype(key->weight);
	uint64_t row_bytes = dtype_row_bytes(type, key->k);
	unsigned kp = pad32(key->k), blocks = pad32(key->rows) / 32;

	*d = (struct by_head){ .key = *key,
		               .columns = key->tile_n * tiles,
		               .in_width = key->heads * kp,
		               .out_width = pad32(key->heads * key->head_dim) };
	d->rows = malloc(row_bytes * key->rows * key->heads);
	assert_non_null(d->rows);
	if (type == DTYPE_F32)
		for (uint64_t i = 0; i < (uint64_t)key->k * key->rows * key->heads; i++)
			((float *)(void *)d->rows)[i] = kernel_random(&seed);
	else if (dtype_table[type].block == 1)
		for (uint64_t i = 0; i < (uint64_t)key->k * key->rows * key->heads; i++)
			((uint16_t *)(void *)d->rows)[i] = (uint16_t)(draw(2) << 15 | (draw(0x300) + 0x3900));
	else {
		for (uint64_t i = 0; i < row_bytes * key->rows * key->heads; i++)
			d->rows[i] = (uint8_t)draw(256);
		plain_random_rows(d->rows, type, key->rows * key->heads, key->k, draw);
	}
	for (int l = WEIGHT_BY_VECTOR; l <= WEIGHT_LANE_CONTIGUOUS; l++) {
		uint64_t one = weight_block_bytes(type, (enum weight_layout)l, key->k),
			 bytes = one * blocks * key->heads + 512;
		d->packed[l] = kernel_buffer(bytes, 0);
		for (unsigned b = 0; b < blocks * key->heads; b++) {
			const void *row[32];
			for (unsigned r = 0; r < 32; r++) {
				unsigned in_head = b % blocks * 32 + r;
				row[r] = in_head < key->rows ? d->rows + (b / blocks * key->rows + in_head) * row_bytes
				                             : NULL;
			}
			weight_pack_block(type, (enum weight_layout)l, d->packed[l] + b * one, row, key->k);
		}
	}
	size_t n = (size_t)d->columns * d->in_width;
	d->x = kernel_buffer(n * 4, 0);
	for (size_t i = 0; i < n; i++)
		d->x[i] = i % kp < key->k ? kernel_random(&seed) : 0;
	d->q = kernel_buffer(n, 0);
	d->s = kernel_buffer(n / 2, 0);
	plain_quantise(d->x, n / 32, d->q, d->s);
	d->want = kernel_buffer((size_t)d->columns * d->out_width * 4, 0x55);
	expect_by_head(d, row_bytes);
}

static void check_by_head(const struct key *key, unsigned tiles)
{
	const struct kernel_way *way;
	unsigned ways = kernel_ways_and_cards(&way, ++counter);
	struct by_head d;

	make_by_head(&d, key, tiles);
	size_t bytes = (size_t)d.columns * d.out_width * 4;
	for (unsigned w = 0; w < ways; w++) {
		float *out = kernel_buffer(bytes, 0x55);
		uint64_t arg[MATMUL_ARGS] = { [MATMUL_W] = (uintptr_t)d.packed[weight_layout_of(&way[w].target)],
			                      [MATMUL_X] = (uintptr_t)d.x,
			                      [MATMUL_OUT] = (uintptr_t)out,
			                      [MATMUL_TILES] = tiles };
		int64_t units = (int64_t)key->heads * (pad32(key->rows) / 32), cut = units * 2 / 5;
		struct kernel k;
		if (key->activation == key_type(DTYPE_Q8_0)) {
			arg[MATMUL_X] = (uintptr_t)d.q;
			arg[MATMUL_XS] = (uintptr_t)d.s;
		}
		kernel_open(&k, &way[w], key);
		kernel_run(&k, arg, cut, units);
		kernel_run(&k, arg, 0, cut);
		if (memcmp(out, d.want, bytes) != 0)
			fail_msg("%s: %u matrices by head of %s, %u x %u to every %u, %u columns, differ", way[w].name,
			         key->heads, dtype_table[key_dtype(key->weight)].name, key->rows, key->k, key->head_dim,
			         d.columns);
		kernel_close(&k);
		free(out);
	}
	void *all[] = { d.rows, d.packed[0], d.packed[1], d.x, d.q, d.s, d.want };
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		free(all[i]);
}

static void test_by_head(void **state)
{
	static const struct {
		unsigned heads, rows, k, apart, columns, tiles;
	} shapes[] = { { 4, 32, 16, 48, 1, 1 },  { 3, 16, 64, 16, 3, 2 },    { 5, 64, 24, 72, 2, 1 },
		       { 2, 40, 96, 40, 1, 3 },  { 3, 512, 192, 576, 1, 1 }, { 2, 256, 512, 256, 4, 1 },
		       { 7, 72, 256, 73, 8, 1 }, { 2, 5, 32, 9, 5, 1 } };
	enum dtype all[DTYPE_COUNT];
	unsigned n = weight_types(all), tried = 0;
	(void)state;

	for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (unsigned t = 0; t < 2 * n; t++) {
			enum dtype type = all[t / 2], act = t % 2 ? weight_default_activation(type) : DTYPE_F32;
			if (shapes[i].k % dtype_table[type].block || (t % 2 && act == DTYPE_F32) ||
			    (!test_full() && (i + t) % (test_quick() ? 7 : 3) != 0 && type != DTYPE_BF16))
				continue;
			const struct key key = {
				.kind = KEY_MATMUL,
				.weight = key_type(type),
				.activation = key_type(act),
				.rows = shapes[i].rows,
				.k = shapes[i].k,
				.heads = shapes[i].heads,
				.head_dim = shapes[i].apart,
				.tile_n = shapes[i].columns,
				.row_blocks = 1,
				.flags = KEY_BY_HEAD
			};
			check_by_head(&key, shapes[i].tiles);
			tried++;
		}
	assert_true(tried > 10);
}

int by_head_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_head) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
