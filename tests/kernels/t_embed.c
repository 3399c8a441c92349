/* tests/kernels/t_embed.c - the embed template against the plain loop: every format, first and last rows of blocks,
 * padded lengths. Bytes must be equal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/weight_types.h"
#include "tests/support/shared.h"

enum { ROWS = 77, COLUMNS = 9 };
static const int32_t ids[COLUMNS] = { 0, 31, 32, 63, 64, 76, 5, 5, 40 };

static uint32_t draw(uint32_t n)
{
	static uint64_t state = 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 40) % n;
}

static void pack(enum dtype type, enum weight_layout layout, uint8_t *packed, const uint8_t *rows, uint32_t k)
{
	uint64_t row_bytes = dtype_row_bytes(type, k);

	for (uint32_t block = 0; block * 32 < ROWS; block++) {
		const void *row[32];
		for (uint32_t r = 0; r < 32; r++)
			row[r] = block * 32 + r < ROWS ? rows + (block * 32 + r) * row_bytes : NULL;
		weight_pack_block(type, layout, packed + block * weight_block_bytes(type, layout, k), row, k);
	}
}

static void check(enum dtype type, uint32_t k)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways_and_cards(&ways, KERNEL_ALL_CARDS);
	uint64_t kp = numerics_pad(k), row_bytes = dtype_row_bytes(type, k);
	uint8_t *rows = malloc(ROWS * row_bytes),
		*packed = malloc(weight_packed_bytes(type, WEIGHT_BY_VECTOR, ROWS, k));
	float *out = kernel_buffer(COLUMNS * kp * 4, 0), *expected = kernel_buffer(COLUMNS * kp * 4, 0);
	const struct plain_matrix w = { type, ROWS, k, rows };
	const struct key key = { .kind = KEY_EMBED, .weight = (uint8_t)(type + 1), .rows = ROWS, .k = k };
	const uint64_t arg[EMBED_ARGS] = { (uintptr_t)packed, (uintptr_t)ids, (uintptr_t)out };

	assert_true(rows && packed);
	kernel_know(packed, weight_packed_bytes(type, WEIGHT_BY_VECTOR, ROWS, k));
	kernel_know(ids, sizeof ids);
	/* Any bytes are a weight, but a NaN's payload is nobody's business: the top exponent bit of what may hold one
	 * stays clear. */
	for (uint64_t i = 0; i < ROWS * row_bytes; i++)
		rows[i] = (uint8_t)draw(256) & 0xbf;
	if (dtype_table[type].block > 1)
		plain_random_rows(rows, type, ROWS, k, draw);
	plain_embed(&w, ids, COLUMNS, expected);
	for (unsigned i = 0; i < n; i++) {
		struct kernel kernel;
		memset(out, 0x55, COLUMNS * kp * 4);
		pack(type, weight_layout_of(&ways[i].target), packed, rows, k);
		struct key gives = key;
		gives.flags = ways[i].target.lane_bytes && k % 64 ? KEY_AWAITED : 0;
		kernel_open(&kernel, &ways[i], &gives);
		assert_int_equal(kernel.stats.spills_in_inner_loops, 0);
		kernel_run(&kernel, arg, 4, COLUMNS);
		kernel_run(&kernel, arg, 0, 4);
		kernel_close(&kernel);
		assert_memory_equal(out, expected, COLUMNS * kp * 4);
	}
	free(rows);
	free(packed);
	free(out);
	free(expected);
}

static void test_rows(void **unused)
{
	static const uint32_t lengths[] = { 1, 31, 32, 33, 64, 256, 300, 768, 1024 };
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types_all(types);

	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < sizeof lengths / sizeof lengths[0]; j++)
			if (lengths[j] % dtype_table[types[i]].block == 0 && (!test_quick() || (i + j) % 3 == 0))
				check(types[i], lengths[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
