/* tests/t_weights.c - weight formats: floats as the reference vectors have them, packed bytes where the formats' files say they lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/templates.h"
#include "tests/shared.h"

static uint8_t *read_all(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	uint8_t *p = malloc(*n + 1);
	assert_non_null(p);
	assert_int_equal(fread(p, 1, *n, f), *n);
	fclose(f);
	return p;
}

static void check_vectors(const char *name, enum dtype type)
{
	char relative[64], path[1024];
	size_t q_n, f_n;

	snprintf(relative, sizeof relative, "data/quant-vectors/%s.q", name);
	if (!shared_path(path, relative))
		return;
	uint8_t *q = read_all(path, &q_n);
	snprintf(relative, sizeof relative, "data/quant-vectors/%s.f32", name);
	assert_non_null(shared_path(path, relative));
	uint8_t *f = read_all(path, &f_n);
	uint64_t n = f_n / 4, row_bytes = 256 / dtype_table[type].block * dtype_table[type].bytes;
	assert_int_equal(n % 256, 0);
	assert_int_equal(q_n, n / 256 * row_bytes);
	for (uint64_t r = 0; r < n / 256; r++) {
		float out[256];
		weight_to_f32(type, out, q + r * row_bytes, 256);
		assert_memory_equal(out, f + r * 1024, 1024);
	}
	free(q);
	free(f);
}

static void test_vectors(void **unused)
{
	check_vectors("f16", DTYPE_F16);
	check_vectors("bf16", DTYPE_BF16);
	check_vectors("q8_0", DTYPE_Q8_0);
	check_vectors("q4_0", DTYPE_Q4_0);
	check_vectors("q4_1", DTYPE_Q4_1);
	check_vectors("q5_0", DTYPE_Q5_0);
	check_vectors("q5_1", DTYPE_Q5_1);
	check_vectors("q2_K", DTYPE_Q2_K);
	check_vectors("q3_K", DTYPE_Q3_K);
	check_vectors("q4_K", DTYPE_Q4_K);
	check_vectors("q5_K", DTYPE_Q5_K);
	check_vectors("q6_K", DTYPE_Q6_K);
	check_vectors("iq4_nl", DTYPE_IQ4_NL);
	check_vectors("iq4_xs", DTYPE_IQ4_XS);
	check_vectors("mxfp4", DTYPE_MXFP4);
}

/* Where element k of row r of a packed block lies, read off the formats' descriptions: a row's byte for byte of the file. */
static const uint8_t *packed_at(enum dtype type, const uint8_t *p, unsigned r, uint64_t k)
{
	switch (type) {
	case DTYPE_F32:  return p + (k * 32 + r) * 4;
	case DTYPE_F16:  return p + (k * 32 + r) * 2;
	case DTYPE_BF16: return p + (k / 2 * 32 + r) * 4 + k % 2 * 2;
	default:         return p + k / 32 * 1088 + 64 + (k % 32 / 4 * 32 + r) * 4 + k % 4;
	}
}

static void check_element(enum dtype type, const uint8_t *packed, const uint8_t *row, unsigned r, uint64_t k, uint64_t length)
{
	static const uint8_t zeros[4];
	unsigned bytes = type == DTYPE_Q8_0 ? 1 : dtype_table[type].bytes;
	const uint8_t *want = !row || k >= length ? zeros : type == DTYPE_Q8_0 ? row + k / 32 * 34 + 2 + k % 32 : row + k * bytes;

	assert_memory_equal(packed_at(type, packed, r, k), want, bytes);
	if (type == DTYPE_Q8_0)
		assert_memory_equal(packed + k / 32 * 1088 + r * 2, row ? row + k / 32 * 34 : zeros, 2);
}

/* Rows of exactly their bytes, at odd addresses; some missing. */
static void check_packing(enum dtype type, uint64_t k, unsigned missing_from)
{
	uint64_t row_bytes = k / dtype_table[type].block * dtype_table[type].bytes, block_bytes = weight_block_bytes(type, k);
	uint8_t *own[32], *packed = malloc(block_bytes + 64);
	const void *row[32];

	assert_non_null(packed);
	memset(packed, 0x55, block_bytes + 64);
	for (unsigned r = 0; r < 32; r++) {
		own[r] = malloc(row_bytes + 1);
		assert_non_null(own[r]);
		for (uint64_t i = 0; i < row_bytes; i++)
			own[r][1 + i] = (uint8_t)((r * 151 + i * 7 + i / 256 * 13) % 255 + 1);
		row[r] = r < missing_from || r == 31 ? own[r] + 1 : NULL;
	}
	weight_pack_block(type, packed, row, k);
	for (unsigned r = 0; r < 32; r++)
		for (uint64_t i = 0; i < numerics_pad(k); i++)
			check_element(type, packed, row[r], r, i, k);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(packed[block_bytes + i], 0x55);
	for (unsigned r = 0; r < 32; r++)
		free(own[r]);
	free(packed);
}

static void test_packing(void **unused)
{
	static const enum dtype types[] = { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_Q8_0 };
	static const uint64_t lengths[] = { 1, 2, 15, 31, 32, 33, 48, 64, 255, 256, 1000, 2048, 2080, 4100, 6144 };

	for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++)
		for (unsigned j = 0; j < sizeof lengths / sizeof lengths[0]; j++)
			if (lengths[j] % dtype_table[types[i]].block == 0) {
				check_packing(types[i], lengths[j], 32);
				check_packing(types[i], lengths[j], 3);
			}
}

static void test_sizes(void **unused)
{
	for (unsigned t = 0; t < DTYPE_COUNT; t++)
		if (weight_supported((enum dtype)t)) {
			uint64_t file = 32 * 2048 / dtype_table[t].block * dtype_table[t].bytes, packed = weight_block_bytes((enum dtype)t, 2048);
			assert_in_range(packed, file, file * 105 / 100);
			assert_in_range(weight_block_bytes((enum dtype)t, 768) * 8, packed * 3, packed * 3);
		}
	assert_int_equal(weight_block_bytes(DTYPE_Q4_K, 512), 2 * 148 * 32);
	assert_true(weight_supported(DTYPE_Q6_K));
	assert_false(weight_supported(DTYPE_IQ2_XS));
	assert_int_equal(weight_default_activation(DTYPE_IQ4_NL), DTYPE_Q8_0);
	assert_int_equal(weight_block_bytes(DTYPE_F32, 33), 64 * 128);
	assert_int_equal(weight_block_bytes(DTYPE_F16, 64), 64 * 64);
	assert_int_equal(weight_block_bytes(DTYPE_BF16, 1), 32 * 64);
	assert_int_equal(weight_block_bytes(DTYPE_Q8_0, 96), 96 * 34);
	assert_true(weight_packed_bytes(DTYPE_Q8_0, 33, 96) >= 2 * 96 * 34);
	assert_true(weight_supported(DTYPE_Q8_0));
	assert_false(weight_supported(DTYPE_I64));
	assert_int_equal(weight_default_activation(DTYPE_Q8_0), DTYPE_Q8_0);
	assert_int_equal(weight_default_activation(DTYPE_BF16), DTYPE_F32);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors), cmocka_unit_test(test_packing), cmocka_unit_test(test_sizes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
