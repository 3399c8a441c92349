/* tests/kernels/t_weights.c - weight formats: floats as the reference vectors have them, packed bytes where the
 * formats' files say they lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/formats/codebooks.h"
#include "kernels-templates/formats/weight_vectors.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

/* The vectors' files have the type's name in small letters, but for the K. */
static void vector_path(char out[1024], enum dtype type, const char *suffix)
{
	char name[32], relative[64];

	weight_type_name(name, type);
	if (strlen(name) > 2 && strcmp(name + strlen(name) - 2, "_k") == 0)
		name[strlen(name) - 1] = 'K';
	snprintf(relative, sizeof relative, "data/quant-vectors/%s.%s", name, suffix);
	if (shared_path(out, relative))
		return;
	snprintf(relative, sizeof relative, "data/quant-vectors/more/%s.%s", name, suffix);
	if (!shared_path(out, relative))
		fail_msg("%s: the type has no vectors", dtype_table[type].name);
}

static void check_vectors(enum dtype type)
{
	char path[1024];
	size_t q_n, f_n;

	vector_path(path, type, "q");
	uint8_t *q = file_bytes(path, &q_n);
	vector_path(path, type, "f32");
	uint8_t *f = file_bytes(path, &f_n);
	uint64_t n = f_n / 4, row_bytes = dtype_row_bytes(type, 256u);
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
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types);
	char path[1024];

	assert_true(n >= 28); /* the formats that there are; the lists of other tests follow from this one */
	if (!shared_path(path, "data/quant-vectors"))
		skip();
	for (unsigned i = 0; i < n; i++)
		if (types[i] != DTYPE_F32 && !dtype_table[types[i]].row)
			check_vectors(types[i]);
}

/* Types of rows that begin with a scale: sums over the bytes of the floats that ik_llama.cpp's decoders make of 16 rows
 * of 1024 numbers, whose bytes a rule gives. */
static void test_row_scales(void **unused)
{
	enum { K = 1024, ROWS = 16 };
	static const struct {
		enum dtype type;
		uint64_t sum;
	} published[] = {
		{ DTYPE_IQ4_KS, 0x038c0b7fb70d351e },
		{ DTYPE_IQ5_KS, 0x32798ac18b774882 },
		{ DTYPE_IQ2_KS, 0xdc46eb3f0bd7b409 },
	};
	unsigned found = 0;

	for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
		const enum dtype type = published[i].type;
		uint64_t sum = 0xcbf29ce484222325, drawn = 1; /* FNV-1a */
		uint8_t row[K];
		float out[K];
		for (unsigned r = 0; r < ROWS; r++) {
			float d = (float)((r % 2 ? 1e-5 : -1e-5) * (r + 1));
			uint16_t half = (uint16_t)((r % 2 ? 0 : 0x8000) | 0x1000 | r * 37);
			for (uint64_t j = 0; j < dtype_row_bytes(type, K); j++) {
				drawn = drawn * 6364136223846793005u + 1442695040888963407u;
				row[j] = (uint8_t)(drawn >> 40);
			}
			memcpy(row, dtype_table[type].row == 4 ? (const void *)&d : &half, dtype_table[type].row);
			weight_to_f32(type, out, row, K);
			for (unsigned j = 0; j < sizeof out; j++)
				sum = (sum ^ ((const uint8_t *)out)[j]) * 0x100000001b3;
		}
		if (sum != published[i].sum)
			fail_msg("%s: the sum is 0x%016" PRIx64, dtype_table[type].name, sum);
	}
	for (int t = 0; t < DTYPE_COUNT; t++)
		found += dtype_table[t].row > 0;
	assert_int_equal(found, sizeof published / sizeof *published);
}

/* Every point of every codebook, as sums over the levels' bytes in order: of the lists that ggml publishes. */
static void test_codebooks(void **unused)
{
	static const struct {
		uint16_t points;
		uint64_t sum;
	} published[CODEBOOKS] = {
		[CODEBOOK_IQ2_XXS] = { 256, 0xbb4ee025b5ac6e8e }, [CODEBOOK_IQ2_XS] = { 512, 0xc9b1ee61e79909bd },
		[CODEBOOK_IQ2_S] = { 1024, 0x123edd38a3b62b90 },  [CODEBOOK_IQ3_XXS] = { 256, 0xdfa5dc83d6a155d5 },
		[CODEBOOK_IQ3_S] = { 512, 0xfa37020c25b44829 },   [CODEBOOK_IQ1] = { 2048, 0x6703ed863501ae2e },
	};

	for (int name = 0; name < CODEBOOKS; name++) {
		const struct codebook *c = codebook((enum codebook_name)name);
		uint64_t sum = 0xcbf29ce484222325; /* FNV-1a */
		for (unsigned i = 0; i < (unsigned)c->points * c->width; i++)
			sum = (sum ^ (uint8_t)c->level[c->digit[i]]) * 0x100000001b3;
		assert_int_equal(c->points, published[name].points);
		assert_int_equal(sum, published[name].sum);
	}
	assert_int_equal(codebook_even_signs(0x00), 0x00);
	assert_int_equal(codebook_even_signs(0x01), 0x81);
	assert_int_equal(codebook_even_signs(0xff), 0xff);
}

static uint64_t drawn = 1;

static uint32_t draw(uint32_t n)
{
	drawn = drawn * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(drawn >> 40) % n;
}

/* Random blocks, whatever an encoder would make: each number as it is read off the format's description. */
static void test_plain(void **unused)
{
	enum { K = 4096 };
	static uint8_t row[K * 4];
	static float out[K];
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types_all(types);

	for (unsigned i = 0; i < n; i++) {
		if (dtype_table[types[i]].block == 1)
			continue;
		plain_random_row(row, types[i], K, draw);
		weight_to_f32(types[i], out, row, K);
		for (uint32_t k = 0; k < K; k++) {
			struct plain_quant w = plain_quant(types[i], row, k);
			float want = w.has_minimum ? fmaf(w.scale, (float)w.q, w.minimum) : w.scale * (float)w.q;
			if (!(out[k] == want))
				fail_msg("%s: number %u is %g, expected %g", dtype_table[types[i]].name, k,
				         (double)out[k], (double)want);
		}
	}
}

/* Where element k of row r of a packed block lies, read off the formats' descriptions: a row's byte for byte of the
 * file. */
static const uint8_t *packed_at(enum dtype type, const uint8_t *p, unsigned r, uint64_t k)
{
	switch (type) {
	case DTYPE_F32: return p + (k * 32 + r) * 4;
	case DTYPE_F16: return p + (k * 32 + r) * 2;
	case DTYPE_BF16: return p + (k / 2 * 32 + r) * 4 + k % 2 * 2;
	default: return p + k / 32 * 1088 + 64 + (k % 32 / 4 * 32 + r) * 4 + k % 4;
	}
}

static void check_element(enum dtype type, const uint8_t *packed, const uint8_t *row, unsigned r, uint64_t k,
                          uint64_t length)
{
	static const uint8_t zeros[4];
	unsigned bytes = type == DTYPE_Q8_0 ? 1 : dtype_table[type].bytes;
	const uint8_t *want = !row || k >= length  ? zeros
	                      : type == DTYPE_Q8_0 ? row + k / 32 * 34 + 2 + k % 32
	                                           : row + k * bytes;

	assert_memory_equal(packed_at(type, packed, r, k), want, bytes);
	if (type == DTYPE_Q8_0)
		assert_memory_equal(packed + k / 32 * 1088 + r * 2, row ? row + k / 32 * 34 : zeros, 2);
}

/* Rows of exactly their bytes, at odd addresses; some missing. */
static void check_packing(enum dtype type, uint64_t k, unsigned missing_from)
{
	uint64_t row_bytes = dtype_row_bytes(type, k), block_bytes = weight_block_bytes(type, WEIGHT_BY_VECTOR, k);
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
	weight_pack_block(type, WEIGHT_BY_VECTOR, packed, row, k);
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

/* Where byte `at` of `bytes` lies, by walking over the pieces one by one. */
static uint64_t walk_vectors(uint32_t bytes, uint32_t at, unsigned lane)
{
	uint64_t base = 0;
	for (uint32_t size = 16;; size = bytes >= size ? size : size / 2)
		if (bytes >= size) {
			if (at < size)
				return base + lane * size + at;
			base += 32 * size;
			at -= size;
			bytes -= size;
		}
}

static void test_positions(void **unused)
{
	for (uint32_t bytes = 1; bytes <= 272; bytes++)
		for (uint32_t at = 0; at < bytes; at++)
			for (unsigned lane = 0; lane < 32; lane += 31)
				assert_int_equal(weight_vectors_offset(bytes, at, lane), walk_vectors(bytes, at, lane));
}

/* The arrays of a format cover its units without gaps. */
static void check_arrays(const struct weight_format *f)
{
	uint32_t at = 0;
	for (unsigned i = 0; i < WEIGHT_MAX_ARRAYS && f->array[i].count; i++) {
		assert_int_equal(f->array[i].disp, at);
		at += f->array[i].lane * f->array[i].count * 32u;
	}
	assert_int_equal(at, weight_vectors_unit(f) + (f->six ? f->array[0].lane * f->array[0].count * 32u : 0));
	assert_int_equal(f->head_bytes ? f->head_units * 32 : 0, f->head_bytes ? NUMERICS_SEGMENT : 0);
}

/* By pieces, a row block has the bytes it has by vectors, but for numbers of six bits: each lane's in its own places.
 * Lanes are told apart by packing one row at a time. */
static void check_vector_counts(enum dtype type, uint64_t k, unsigned lane)
{
	const struct weight_format *f = weight_format_find(type);
	uint64_t bytes = weight_block_bytes(type, WEIGHT_LANE_CONTIGUOUS, k), row_bytes = dtype_row_bytes(type, k),
		 count[2][256] = { 0 };
	uint64_t max = weight_block_bytes(type, WEIGHT_BY_VECTOR, k);
	uint64_t units = numerics_pad(k) / 32, span_units = units / numerics_spans(k),
		 lane_bytes = weight_vectors_lane(f);
	uint8_t *one = malloc(row_bytes), *packed[2] = { malloc(max + 64), malloc(max + 64) }, *none = malloc(bytes);
	const void *row[32] = { 0 };

	assert_true(one && packed[0] && packed[1] && none);
	weight_pack_block(type, WEIGHT_LANE_CONTIGUOUS, none, row, k);
	for (uint64_t i = 0; i < row_bytes; i++)
		one[i] = (uint8_t)(i * 7 + i / 256 * 13 + 1);
	row[lane] = one;
	for (int layout = WEIGHT_BY_VECTOR; layout <= WEIGHT_LANE_CONTIGUOUS; layout++) {
		uint64_t n = weight_block_bytes(type, (enum weight_layout)layout, k);
		memset(packed[layout], 0x55, max + 64);
		weight_pack_block(type, (enum weight_layout)layout, packed[layout], row, k);
		for (uint64_t i = 0; i < n; i++)
			count[layout][packed[layout][i]]++;
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(packed[layout][n + i], 0x55);
	}
	if (f->six)
		assert_true(bytes < max);
	else
		assert_memory_equal(count[0], count[1], sizeof count[0]);
	/* What lies in the lane's own places is made as if it had no row; then nothing of the row may be left. */
	for (uint64_t u = 0; u < units; u += u % span_units + 8 < span_units ? 8 : span_units - u % span_units) {
		uint64_t n = span_units - u % span_units < 8 ? span_units - u % span_units : 8;
		for (uint32_t at = 0; at < n * lane_bytes; at++) {
			uint64_t position = u * weight_vectors_unit(f) +
			                    weight_vectors_offset((uint32_t)(n * lane_bytes), at, lane);
			packed[1][position] = none[position];
		}
	}
	for (uint64_t h = 0; f->head_bytes && h < units / 8; h++) {
		uint64_t position = units * weight_vectors_unit(f) + (h * 32 + lane) * weight_vectors_head(f);
		memcpy(packed[1] + position, none + position, weight_vectors_head(f));
	}
	assert_memory_equal(packed[1], none, bytes);
	free(none);
	free(one);
	free(packed[0]);
	free(packed[1]);
}

static void test_vector_counts(void **unused)
{
	static const uint64_t lengths[] = { 1, 31, 32, 33, 96, 224, 256, 288, 320, 768, 1000, 1280, 2560, 2816 };

	for (unsigned t = 0; t < DTYPE_COUNT; t++)
		if (weight_supported((enum dtype)t)) {
			check_arrays(weight_format_find((enum dtype)t));
			for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
				for (unsigned lane = 0; lane < 32; lane += 1 + lane % 3 * 9)
					if (lengths[i] % dtype_table[t].block == 0)
						check_vector_counts((enum dtype)t, lengths[i], lane);
		}
}

/* Of a whole period's bytes with their heads, at least these many in a hundred come 16 at a time; of other types 90. */
static void test_shares(void **unused)
{
	static const struct {
		enum dtype type;
		unsigned min;
	} shares[] = {
		{ DTYPE_F32, 100 },    { DTYPE_F16, 100 },  { DTYPE_BF16, 100 }, { DTYPE_Q8_0, 100 },
		{ DTYPE_Q4_0, 100 },   { DTYPE_Q4_1, 100 }, { DTYPE_Q5_0, 100 }, { DTYPE_Q5_1, 100 },
		{ DTYPE_IQ4_NL, 100 }, { DTYPE_Q2_K, 95 },  { DTYPE_Q3_K, 100 }, { DTYPE_Q4_K, 100 },
		{ DTYPE_Q5_K, 100 },   { DTYPE_Q6_K, 99 },  { DTYPE_IQ1_S, 86 }, { DTYPE_IQ2_KS, 86 },
	};

	for (unsigned t = 0; t < DTYPE_COUNT; t++) {
		const struct weight_format *f = weight_format_find((enum dtype)t);
		unsigned min = 90;
		for (unsigned i = 0; i < sizeof shares / sizeof shares[0]; i++) {
			min = shares[i].type == t ? shares[i].min : min;
			assert_non_null(weight_format_find(shares[i].type));
		}
		if (!f)
			continue;
		unsigned all = 8 * weight_vectors_lane(f) + weight_vectors_head(f),
			 whole = 8 * weight_vectors_lane(f) / 16 * 16 + weight_vectors_head(f) / 16 * 16;
		if (whole * 100 < min * all)
			fail_msg("%s: %u of %u bytes", dtype_table[t].name, whole, all);
	}
}

/* Bytes of a block as it is packed by vector, where that is more than one in twenty above the file's: points of a
 * codebook and digits of base three are taken apart when a model is loaded, and what a row has once each block gets. */
static unsigned larger_block(enum dtype type)
{
	switch (type) {
	case DTYPE_IQ1_S: return 74;
	case DTYPE_IQ1_M: return 82;
	case DTYPE_IQ2_XXS:
	case DTYPE_IQ2_XS:
	case DTYPE_IQ2_S: return 106;
	case DTYPE_IQ3_XXS:
	case DTYPE_IQ3_S: return 138;
	case DTYPE_TQ1_0: return 66;
	case DTYPE_Q1_0: return 24;
	case DTYPE_Q2_0: return 20;
	case DTYPE_IQ4_KS: return 140;
	case DTYPE_IQ5_KS: return 172;
	case DTYPE_IQ2_KS: return 74;
	default: return 0;
	}
}

static void test_sizes(void **unused)
{
	for (unsigned t = 0; t < DTYPE_COUNT; t++)
		if (weight_supported((enum dtype)t)) {
			unsigned larger = larger_block((enum dtype)t);
			uint64_t file = 32 * 2048u / dtype_table[t].block * (larger ? larger : dtype_table[t].bytes),
				 packed = weight_block_bytes((enum dtype)t, WEIGHT_BY_VECTOR, 2048);
			assert_in_range(packed, file, larger ? file : file * 105 / 100);
			assert_int_equal(weight_block_bytes((enum dtype)t, WEIGHT_BY_VECTOR, 768) * 8, packed * 3);
			packed = weight_block_bytes((enum dtype)t, WEIGHT_LANE_CONTIGUOUS, 2048);
			assert_in_range(packed, file, file * 102 / 100);
			assert_int_equal(weight_block_bytes((enum dtype)t, WEIGHT_LANE_CONTIGUOUS, 768) * 8,
			                 packed * 3);
		}
	assert_int_equal(weight_block_bytes(DTYPE_Q4_K, WEIGHT_BY_VECTOR, 512), 2 * 148 * 32);
	assert_int_equal(weight_block_bytes(DTYPE_Q4_K, WEIGHT_LANE_CONTIGUOUS, 512), 2 * 144 * 32);
	assert_true(weight_supported(DTYPE_Q6_K));
	assert_false(weight_supported(DTYPE_Q8_K));
	assert_int_equal(weight_default_activation(DTYPE_IQ4_NL), DTYPE_Q8_0);
	assert_int_equal(weight_block_bytes(DTYPE_F32, WEIGHT_BY_VECTOR, 33), 64 * 128);
	assert_int_equal(weight_block_bytes(DTYPE_F16, WEIGHT_BY_VECTOR, 64), 64 * 64);
	assert_int_equal(weight_block_bytes(DTYPE_BF16, WEIGHT_BY_VECTOR, 1), 32 * 64);
	assert_int_equal(weight_block_bytes(DTYPE_Q8_0, WEIGHT_BY_VECTOR, 96), 96 * 34);
	assert_true(weight_packed_bytes(DTYPE_Q8_0, WEIGHT_BY_VECTOR, 33, 96) >= 2 * 96 * 34);
	assert_true(weight_supported(DTYPE_Q8_0));
	assert_false(weight_supported(DTYPE_I64));
	assert_int_equal(weight_default_activation(DTYPE_Q8_0), DTYPE_Q8_0);
	assert_int_equal(weight_default_activation(DTYPE_BF16), DTYPE_F32);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors),   cmocka_unit_test(test_row_scales),
		                            cmocka_unit_test(test_codebooks), cmocka_unit_test(test_plain),
		                            cmocka_unit_test(test_packing),   cmocka_unit_test(test_sizes),
		                            cmocka_unit_test(test_positions), cmocka_unit_test(test_vector_counts),
		                            cmocka_unit_test(test_shares) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
