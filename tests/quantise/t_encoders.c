/* tests/quantise/t_encoders.c - the encoders of weights: what they write is read by plain decoders that share no code
 * with them, over blocks of every content; errors beside those of ggml's own encoders; bits that never change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <ctype.h>
#include <math.h>

#include "base/number.h"
#include "quantise/quantise.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/plain_quants.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

enum { N = 256, BYTES = N * 4 };

/* Every type: how far off the root of the mean square may be, as a part of the largest number; whether its encoder
 * finds its own values again, as the search of two levels does not always; and the sum of the bits of test_bits. */
static const struct type_row {
	enum dtype type;
	double off;
	bool fixed;
	uint32_t sum;
} types[] = {
	{ DTYPE_F32, 0, true, 0x1def87ee },
	{ DTYPE_F16, 1.0 / 4096, true, 0x22317fcc },
	{ DTYPE_BF16, 1.0 / 512, true, 0xe90a0469 },
	{ DTYPE_Q4_0, 1.0 / 14, true, 0x69397025 },
	{ DTYPE_Q4_1, 1.0 / 14, true, 0xd72413a0 },
	{ DTYPE_Q5_0, 1.0 / 30, true, 0xe1957043 },
	{ DTYPE_Q5_1, 1.0 / 30, true, 0xb7dcebcd },
	{ DTYPE_Q8_0, 1.0 / 250, true, 0xb8bb1ff9 },
	{ DTYPE_IQ4_NL, 1.0 / 10, true, 0xb01c8949 },
	{ DTYPE_MXFP4, 1.0 / 6, true, 0x83e4c217 },
	{ DTYPE_Q2_K, 1.0 / 3, false, 0xc101b88d },
	{ DTYPE_Q3_K, 1.0 / 6, false, 0x6076289f },
	{ DTYPE_Q4_K, 1.0 / 14, false, 0x8dcb8f01 },
	{ DTYPE_Q5_K, 1.0 / 30, false, 0xdfd347c8 },
	{ DTYPE_Q6_K, 1.0 / 60, false, 0x11382f6b },
	{ DTYPE_IQ4_XS, 1.0 / 10, false, 0x0443f352 },
	{ DTYPE_NVFP4, 1.0 / 6, false, 0x2dcdc56f },
	{ DTYPE_TQ1_0, 1.0 / 2, true, 0x703d65d8 },
	{ DTYPE_TQ2_0, 1.0 / 2, true, 0x985fc86a },
	{ DTYPE_Q1_0, 1.0, true, 0xd90b05fd },
	{ DTYPE_Q2_0, 1.0 / 2, true, 0x6e165102 },
	{ DTYPE_IQ1_S, 1.0 / 2, false, 0x0bebc5c8 },
	{ DTYPE_IQ1_M, 1.0 / 2, false, 0x3fb80039 },
	{ DTYPE_IQ2_XXS, 1.0 / 2, false, 0x1b4873b8 },
	{ DTYPE_IQ2_XS, 1.0 / 2, false, 0x12ceec4c },
	{ DTYPE_IQ2_S, 1.0 / 2, false, 0xbff09925 },
	{ DTYPE_IQ3_XXS, 1.0 / 5, false, 0x5de2f249 },
	{ DTYPE_IQ3_S, 1.0 / 5, false, 0x7325b147 },
	{ DTYPE_IQ4_KS, 1.0 / 10, false, 0x7390b259 },
	{ DTYPE_IQ5_KS, 1.0 / 20, false, 0x5e895793 },
	{ DTYPE_IQ2_KS, 1.0 / 3, false, 0xd6926d87 },
};
enum { N_TYPES = sizeof types / sizeof *types };

static uint64_t state = 88172645463325252u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Near enough normal, by sums alone: the same on every machine. */
static float draw_normal(void)
{
	double sum = 0;

	for (int i = 0; i < 8; i++)
		sum += (double)(draw() >> 40) / (1 << 24) - 0.5;
	return (float)sum;
}

static void decode(enum dtype type, const uint8_t *row, float *x)
{
	uint16_t half;

	for (uint32_t k = 0; k < N; k++) {
		if (type == DTYPE_F32) {
			memcpy(&x[k], row + 4 * k, 4);
		} else if (type == DTYPE_F16 || type == DTYPE_BF16) {
			memcpy(&half, row + 2 * k, 2);
			uint32_t bits = (uint32_t)half << 16;
			memcpy(&x[k], &bits, 4);
			x[k] = type == DTYPE_F16 ? plain_f16_to_f32(half) : x[k];
		} else {
			struct plain_quant w = plain_quant(type, row, k);
			x[k] = w.scale * (float)w.q + (w.has_minimum ? w.minimum : 0);
		}
	}
}

static double error_of(const float *x, const float *y, const float *w)
{
	double sum = 0;

	for (int i = 0; i < N; i++)
		sum += (w ? (double)w[i] : 1) * ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
	return sum / N;
}

static double largest(const float *x, int n)
{
	double max = 0;

	for (int i = 0; i < n; i++)
		max = fabs((double)x[i]) > max ? fabs((double)x[i]) : max;
	return max;
}

/* ---- contents of blocks */

enum { CONTENTS = 12 };

static void fill(float *x, int content, float size)
{
	for (int i = 0; i < N; i++)
		switch (content) {
		case 0: x[i] = 0; break;
		case 1: x[i] = size; break;
		case 2: x[i] = -size; break;
		case 3: x[i] = i == 77 ? -size : 0; break;
		case 4: x[i] = i == 200 ? size : size * 1e-4f * draw_normal(); break;
		case 5: x[i] = size * (float)(i % 2 ? 1 : -1); break;
		case 6: x[i] = size * fabsf(draw_normal()) / 4; break;
		case 7: x[i] = -size * fabsf(draw_normal()) / 4; break;
		case 8: x[i] = size * (1 + 0.01f * draw_normal()) / 1.04f; break;
		case 9: x[i] = i < 128 ? 0 : size * draw_normal() / 4; break;
		case 10: x[i] = size * draw_normal() / 4 * (float)(1 + i / 16) / 16; break;
		default: x[i] = size * draw_normal() / 4; break;
		}
}

static void check_block(const struct type_row *t, const float *x, const char *what)
{
	uint8_t row[BYTES];
	float y[N];
	double max = largest(x, N);

	quantise_row(t->type, x, NULL, N, row);
	decode(t->type, row, y);
	for (int i = 0; i < N; i++)
		if (!isfinite(y[i]))
			fail_msg("%s, %s: number %d became %g", dtype_table[t->type].name, what, i, (double)y[i]);
	/* halves have no scale below 2^-24, and bfloat16 nothing below 2^-133 */
	double allowed = t->off * max + (t->type == DTYPE_F32     ? 0
	                                 : t->type == DTYPE_BF16  ? 1e-40
	                                 : t->type == DTYPE_NVFP4 ? 0x1p-10 /* its scales begin at 2^-9 */
	                                                          : 2e-6),
	       off = sqrt(error_of(x, y, NULL));
	if (!(off <= allowed))
		fail_msg("%s, %s: off by %g, allowed %g", dtype_table[t->type].name, what, off, allowed);
}

static void test_contents(void **unused)
{
	static const float sizes[] = { 1, 1e-3f, 1e-30f, 1e-40f, 1e-45f, 60000, 3e38f };
	char what[100];
	float x[N];

	for (int t = 0; t < N_TYPES; t++)
		for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
			for (int c = 0; c < CONTENTS; c++) {
				float size =
					sizes[s] < quantise_max(types[t].type) ? sizes[s] : quantise_max(types[t].type);
				snprintf(what, sizeof what, "content %d of size %g", c, (double)size);
				fill(x, c, size);
				if (largest(x, N) <= quantise_max(types[t].type))
					check_block(&types[t], x, what);
			}
}

static void test_zeros_stay(void **unused)
{
	float x[N] = { 0 }, y[N];
	uint8_t row[BYTES];

	for (int t = 0; t < N_TYPES; t++) {
		quantise_row(types[t].type, x, NULL, N, row);
		decode(types[t].type, row, y);
		for (int i = 0; i < N; i++)
			assert_true(y[i] == 0);
	}
}

/* What a type can hold exactly stays as it is. */
static void test_fixed_point(void **unused)
{
	uint8_t row[BYTES], again[BYTES];
	float x[N], y[N], z[N];
	int rounds = test_quick() ? 20 : 200;

	for (int t = 0; t < N_TYPES; t++)
		for (int r = 0; r < rounds; r++) {
			fill(x, 11, 1);
			quantise_row(types[t].type, x, NULL, N, row);
			decode(types[t].type, row, y);
			quantise_row(types[t].type, y, NULL, N, again);
			decode(types[t].type, again, z);
			if (types[t].fixed && memcmp(y, z, sizeof y) != 0)
				fail_msg("%s: values of its own changed", dtype_table[types[t].type].name);
			assert_true(error_of(y, z, NULL) <= 0.25 * error_of(x, y, NULL));
		}
}

/* ---- importances */

static void test_importance(void **unused)
{
	uint8_t row[BYTES], plain[BYTES];
	float x[N], y[N], w[N], same[N];

	for (int t = 0; t < N_TYPES; t++) {
		double with = 0, without = 0;
		for (int r = 0; r < 20; r++) {
			fill(x, 11, 1);
			for (int i = 0; i < N; i++) {
				w[i] = draw_normal() * draw_normal() * (i % 7 ? 0.1f : 30);
				w[i] = fabsf(w[i]);
				same[i] = 3.25f;
			}
			quantise_row(types[t].type, x, NULL, N, plain);
			quantise_row(types[t].type, x, same, N, row);
			assert_memory_equal(plain, row, dtype_row_bytes(types[t].type, N));
			decode(types[t].type, plain, y);
			without += error_of(x, y, w);
			quantise_row(types[t].type, x, w, N, row);
			decode(types[t].type, row, y);
			with += error_of(x, y, w);
		}
		if (types[t].type == DTYPE_Q8_0 || t < 3)
			assert_true(with == without);
		else if (!(with < (types[t].off > 0.4 ? 1 : 0.95) * without)) /* one scale can do little */
			fail_msg("%s: %g with importances, %g without", dtype_table[types[t].type].name, with, without);
	}
	memset(w, 0, sizeof w); /* of nothing at all: as if there were none */
	quantise_row(DTYPE_Q4_K, x, w, N, row);
	quantise_row(DTYPE_Q4_K, x, NULL, N, plain);
	assert_memory_equal(plain, row, 144);
}

/* ---- witnesses */

/* FNV-1a over rows of many contents: the same whatever compiled this, on whatever machine. */
static uint32_t sum_of_type(enum dtype type)
{
	uint32_t sum = 2166136261u, bytes = (uint32_t)dtype_row_bytes(type, N);
	uint8_t row[BYTES];
	float x[N], w[N];

	state = 88172645463325252u;
	for (int r = 0; r < 48; r++) {
		fill(x, r % CONTENTS, r % 3 ? 0.05f : 3);
		for (int i = 0; i < N; i++)
			w[i] = fabsf(draw_normal());
		quantise_row(type, x, r % 2 ? w : NULL, N, row);
		for (uint32_t i = 0; i < bytes; i++)
			sum = (sum ^ row[i]) * 16777619u;
	}
	return sum;
}

static void test_bits(void **unused)
{
	bool same = true;

	for (int t = 0; t < N_TYPES; t++) {
		uint32_t sum = sum_of_type(types[t].type);
		if (sum != types[t].sum)
			printf("# %s: the bits' sum is 0x%08x, expected 0x%08x\n", dtype_table[types[t].type].name, sum,
			       types[t].sum);
		same = same && sum == types[t].sum;
	}
	assert_true(same);
}

/* The same of types whose rows begin with a scale: the sums of the rows' mean squares of errors that ik_llama.cpp's
 * encoders leave of these numbers. */
static void check_row_errors(const float *source, size_t rows)
{
	static const struct {
		enum dtype type;
		double theirs;
	} published[] = {
		{ DTYPE_IQ4_KS, 0.0010552954719965542 },
		{ DTYPE_IQ5_KS, 0.00025275043590091973 },
		{ DTYPE_IQ2_KS, 0.02179601206113539 },
	};

	for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
		double ours = 0;
		uint8_t row[BYTES];
		float y[N];
		for (size_t r = 0; r < rows; r++) {
			quantise_row(published[i].type, source + r * N, NULL, N, row);
			decode(published[i].type, row, y);
			ours += error_of(source + r * N, y, NULL);
		}
		if (ours > published[i].theirs)
			fail_msg("%s: sum of errors %g, ik_llama.cpp's %g", dtype_table[published[i].type].name, ours,
			         published[i].theirs);
	}
}

/* ggml encoded the same numbers: our errors are not above its, and where the type leaves no choice the bytes are its.
 */
static void test_vectors(void **unused)
{
	char path[1024], relative[100], name[32];
	uint8_t row[BYTES];
	float y[N];
	size_t n;

	if (!shared_path(path, "data/quant-vectors/source.f32"))
		skip();
	float *source = (float *)file_bytes(path, &n);
	size_t rows = n / sizeof(float) / N;
	for (int t = 1; t < N_TYPES; t++) {
		enum dtype type = types[t].type;
		if (dtype_table[type].row)
			continue;
		size_t bytes = dtype_row_bytes(type, N);
		double ours = 0, theirs = 0;
		weight_type_name(name, type);
		if (strlen(name) == 4 && name[3] == 'k') /* "q4_K" */
			name[3] = 'K';
		snprintf(relative, sizeof relative, "data/quant-vectors/%s.q", name);
		if (!shared_path(path, relative)) {
			snprintf(relative, sizeof relative, "data/quant-vectors/more/%s.q", name);
			assert_non_null(shared_path(path, relative));
		}
		uint8_t *blocks = file_bytes(path, &n);
		assert_int_equal(n, rows * bytes);
		for (size_t r = 0; r < rows; r++) {
			quantise_row(type, source + r * N, NULL, N, row);
			decode(type, row, y);
			ours += error_of(source + r * N, y, NULL);
			if (type == DTYPE_Q8_0 || t < 3)
				assert_memory_equal(row, blocks + r * bytes, bytes);
			decode(type, blocks + r * bytes, y);
			theirs += error_of(source + r * N, y, NULL);
		}
		if (ours > theirs)
			fail_msg("%s: mean square of errors %g, ggml's %g", name, ours / (double)rows,
			         theirs / (double)rows);
		free(blocks);
	}
	check_row_errors(source, rows);
	free(source);
}

/* A row of several blocks has one scale, which its largest part decides: errors stay small beside each part's largest
 * number, where parts are at most 30 times apart. */
static void test_rows(void **unused)
{
	enum { BLOCKS = 5, PART = 32 };
	static float x[BLOCKS * N], y[BLOCKS * N];
	static uint8_t row[BLOCKS * BYTES];

	for (int t = 0; t < N_TYPES; t++) {
		const enum dtype type = types[t].type;
		if (!dtype_table[type].row)
			continue;
		for (int i = 0; i < BLOCKS * N; i++)
			x[i] = draw_normal() * (float)(1 + i / PART * 7 % 30);
		memset(row, 0x55, sizeof row);
		quantise_row(type, x, NULL, BLOCKS * N, row);
		assert_int_equal(row[dtype_row_bytes(type, BLOCKS * N)], 0x55);
		for (uint32_t k = 0; k < BLOCKS * N; k++) {
			struct plain_quant w = plain_quant(type, row, k);
			y[k] = w.scale * (float)w.q;
		}
		for (int p = 0; p < BLOCKS * N / PART; p++) {
			double sum = 0, max = largest(x + p * PART, PART);
			for (int i = p * PART; i < (p + 1) * PART; i++)
				sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
			/* Steps of IQ2_KS are few. */
			if (sqrt(sum / PART) > types[t].off * max * (type == DTYPE_IQ2_KS ? 2 : 1))
				fail_msg("%s: part %d is off by %g of %g", dtype_table[type].name, p, sqrt(sum / PART),
				         max);
		}
	}
}

static void test_all_formats(void **unused)
{
	for (int type = 0; type < DTYPE_COUNT; type++) {
		bool listed = false;
		for (int t = 0; t < N_TYPES; t++)
			listed = listed || (int)types[t].type == type;
		assert_int_equal(quantise_supported((enum dtype)type), listed);
		assert_int_equal(quantise_max((enum dtype)type) > 0, listed);
		if (weight_supported((enum dtype)type) && dtype_table[type].gguf >= 0 && !listed)
			fail_msg("%s can be multiplied but not made", dtype_table[type].name);
	}
}

/* ---- halves */

static void test_halves(void **unused)
{
	for (uint32_t h = 0; h < 65536; h++) {
		float x = number_from_half((uint16_t)h);
		if ((h & 0x7c00) == 0x7c00)
			continue;
		assert_true(x == plain_f16_to_f32((uint16_t)h));
		assert_int_equal(number_to_half(x), h);
	}
	for (int i = 0; i < 200000; i++) {
		uint32_t bits = (uint32_t)draw();
		float x;
		if (i % 2) /* near what halves can tell apart */
			bits = (bits & 0x83ffffff) + 0x33000000 + (uint32_t)(draw() % 28) * 0x800000;
		if (i % 4 == 3)
			bits &= 0xfffff000;
		memcpy(&x, &bits, 4);
		if (!isfinite(x) || fabsf(x) >= 65504)
			continue;
		assert_int_equal(number_to_half(x), plain_f32_to_f16(x));
	}
	assert_int_equal(number_to_half(1e30f), 0x7bff);
	assert_int_equal(number_to_half(-65505.0f), 0xfbff);
	assert_int_equal(number_to_bf16(number_of_bits(0x7f7fffff)), 0x7f7f);
	assert_int_equal(number_to_bf16(number_of_bits(0x3f808000)), 0x3f80); /* a half goes to the even one */
	assert_int_equal(number_to_bf16(number_of_bits(0x3f818000)), 0x3f82);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_formats), cmocka_unit_test(test_contents),
		cmocka_unit_test(test_zeros_stay),  cmocka_unit_test(test_fixed_point),
		cmocka_unit_test(test_importance),  cmocka_unit_test(test_bits),
		cmocka_unit_test(test_vectors),     cmocka_unit_test(test_halves),
		cmocka_unit_test(test_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
