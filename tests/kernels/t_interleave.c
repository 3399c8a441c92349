/* tests/kernels/t_interleave.c - turning activations for wide matmuls against the plain loop. Bytes must be equal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/support/widths.h"

enum { TILES = 3 };

static uint8_t *random_bytes(uint64_t n, uint64_t *state)
{
	uint8_t *p = kernel_buffer(n, 0);
	for (uint64_t i = 0; i < n; i++) {
		*state = *state * 6364136223846793005u + 1442695040888963407u;
		p[i] = (uint8_t)(*state >> 56);
	}
	return p;
}

/* Items of `size` bytes, [tile][column][n], as [tile][panel][n][column]. */
static uint8_t *plain_interleave(const uint8_t *from, uint32_t columns, uint32_t panel, uint64_t n, size_t size)
{
	uint8_t *to = kernel_buffer(TILES * columns * n * size, 0);
	for (uint64_t tile = 0; tile < TILES; tile++)
		for (uint64_t c = 0; c < columns; c++)
			for (uint64_t i = 0, first = c / panel * panel,
			              width = first + panel > columns ? columns - first : panel;
			     i < n; i++)
				memcpy(to + ((tile * columns + first) * n + i * width + c - first) * size,
				       from + ((tile * columns + c) * n + i) * size, size);
	return to;
}

static void check(uint32_t k, uint32_t columns, uint32_t panel, bool int8, uint32_t flags)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways_and_cards(&ways, KERNEL_ALL_CARDS);
	uint64_t kp = numerics_pad(k), bytes = TILES * columns * kp * (int8 ? 1 : 4),
		 s_bytes = TILES * columns * kp / 2, state = k + columns;
	uint8_t *x = random_bytes(bytes, &state), *s = random_bytes(s_bytes, &state), *out = kernel_buffer(bytes, 0),
		*outs = kernel_buffer(s_bytes, 0);
	uint8_t *expected = int8 ? plain_interleave(x, columns, panel, kp / 32, 32)
	                         : plain_interleave(x, columns, panel, kp, 4),
		*expected_s = plain_interleave(s, columns, panel, kp / 32, 16);
	const struct key key = { .kind = KEY_INTERLEAVE,
		                 .k = k,
		                 .tile_n = columns,
		                 .row_blocks = (uint8_t)panel,
		                 .activation = (int8 ? DTYPE_Q8_0 : DTYPE_F32) + 1,
		                 .flags = flags };
	const uint64_t arg[INTERLEAVE_ARGS] = { (uintptr_t)x, (uintptr_t)s, (uintptr_t)out, (uintptr_t)outs };
	int64_t units = (int64_t)(TILES * kp / 32);
	for (uint64_t i = 0; flags & KEY_UNSIGNED && i < bytes; i++)
		expected[i] ^= 0x80; /* 128 more, as unsigned bytes */

	for (unsigned i = 0; i < n; i++) {
		struct kernel kernel;
		memset(out, 0x55, bytes);
		memset(outs, 0x55, s_bytes);
		kernel_open(&kernel, &ways[i], &key);
		kernel_run(&kernel, arg, units / 2, units);
		kernel_run(&kernel, arg, 0, units / 2);
		kernel_close(&kernel);
		assert_memory_equal(out, expected, bytes);
		if (int8)
			assert_memory_equal(outs, expected_s, s_bytes);
	}
	free(x);
	free(s);
	free(out);
	free(outs);
	free(expected);
	free(expected_s);
}

/* Floats of any bits, as words of two BF16. */
static void check_dot2(uint32_t k, uint32_t columns, uint32_t panel)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways), tried = 0;
	uint64_t kp = numerics_pad(k), floats = TILES * columns * kp, state = k + columns;
	uint8_t *x = random_bytes(floats * 4, &state), *out = kernel_buffer(floats * 2, 0);
	uint32_t *words = kernel_buffer(floats * 2, 0);

	for (uint64_t i = 0; i < floats; i++) {
		float f;
		if (i % 5 == 0) /* half-way, or nearly so */
			memcpy(x + i * 4, (const uint8_t[]){ (uint8_t)(i % 3), 0x80 }, 2);
		memcpy(&f, x + i * 4, 4);
		words[i / 2] |= i % 2 ? plain_to_bf16(f) : plain_to_bf16(f) >> 16;
	}
	uint8_t *expected = plain_interleave((const uint8_t *)words, columns, panel, kp / 2, 4);
	const struct key key = { .kind = KEY_INTERLEAVE,
		                 .k = k,
		                 .tile_n = columns,
		                 .row_blocks = (uint8_t)panel,
		                 .activation = DTYPE_BF16 + 1,
		                 .numerics = NUMERICS_BOUNDED };
	const uint64_t arg[INTERLEAVE_ARGS] = { [INTERLEAVE_X] = (uintptr_t)x, [INTERLEAVE_OUT] = (uintptr_t)out };
	int64_t units = (int64_t)(TILES * kp / 32);

	for (unsigned i = 0; i < n; i++) {
		struct kernel kernel;
		if (!widths_dot2(&ways[i].target, DTYPE_BF16))
			continue;
		memset(out, 0x55, floats * 2);
		kernel_open(&kernel, &ways[i], &key);
		kernel_run(&kernel, arg, units / 2, units);
		kernel_run(&kernel, arg, 0, units / 2);
		kernel_close(&kernel);
		assert_memory_equal(out, expected, floats * 2);
		tried++;
	}
	assert_true(tried > 0);
	free(x);
	free(out);
	free(words);
	free(expected);
}

static void test_share_of(void **unused)
{
	static const uint32_t lengths[] = { 32, 33, 256, 1056 };
	for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (uint32_t columns = 1; columns <= TEMPLATE_MAX_WIDE; columns += i ? 5 : 1) {
			check(lengths[i], columns, columns, false, 0);
			check(lengths[i], columns, (columns + 2) / 3, true, 0);
			check(lengths[i], columns, columns < 6 ? columns : 6, true, KEY_UNSIGNED);
			check(lengths[i], columns, columns < 12 ? columns : 12, true, 0);
			check_dot2(lengths[i], columns, (columns + 1) / 2);
		}
}

static void test_refusals(void **unused)
{
	const struct key bad[] = {
		{ .k = 32, .tile_n = 1, .row_blocks = 1 },
		{ .tile_n = 1, .row_blocks = 1, .activation = DTYPE_F32 + 1 },
		{ .k = 32, .row_blocks = 1, .activation = DTYPE_F32 + 1 },
		{ .k = 32, .tile_n = TEMPLATE_MAX_WIDE + 1, .row_blocks = 1, .activation = DTYPE_F32 + 1 },
		{ .k = 32, .tile_n = 1, .row_blocks = 1, .activation = DTYPE_F16 + 1 },
		{ .k = 32, .tile_n = 1, .activation = DTYPE_F32 + 1 },
		{ .k = 32, .tile_n = 2, .row_blocks = 3, .activation = DTYPE_F32 + 1 }
	};

	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct key key = bad[i];
		key.kind = KEY_INTERLEAVE;
		kernel_refused(&key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_share_of), cmocka_unit_test(test_refusals) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
