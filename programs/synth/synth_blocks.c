/* programs/synth/synth_blocks.c - random blocks of each weight format. A row of the table says where a block's scales
 * lie and what stands there. */
#include "programs/synth/synth_blocks.h"

#include <immintrin.h>
#include <string.h>

/* For weights of mean about 0 and deviation about 0.02: f16 numbers in a block and their values; bytes of scales, each
 * `min` or up to `more` (a power of two less one) above it. Everything else is random. */
static const struct {
	enum dtype type;
	struct {
		uint16_t at;
		double value; /* 0: there is none */
	} half[2];
	struct {
		uint16_t at, count;
		uint8_t min, more;
	} byte;
} scales[] = {
	{ .type = DTYPE_Q8_0, .half = { { 0, 2.7e-4 } } },
	{ .type = DTYPE_Q4_0, .half = { { 0, 4.3e-3 } } },
	{ .type = DTYPE_Q4_1, .half = { { 0, 4.3e-3 }, { 2, -7.5 * 4.3e-3 } } },
	{ .type = DTYPE_Q5_0, .half = { { 0, 2.2e-3 } } },
	{ .type = DTYPE_Q5_1, .half = { { 0, 2.2e-3 }, { 2, -15.5 * 2.2e-3 } } },
	{ .type = DTYPE_Q2_K, .half = { { 80, 2.4e-3 }, { 82, 1.5 * 2.4e-3 } } },
	{ .type = DTYPE_Q3_K, .half = { { 108, 4.8e-4 } } },
	{ .type = DTYPE_Q4_K, .half = { { 0, 1.4e-4 }, { 2, 7.5 * 1.4e-4 } } },
	{ .type = DTYPE_Q5_K, .half = { { 0, 6.8e-5 }, { 2, 15.5 * 6.8e-5 } } },
	{ .type = DTYPE_Q6_K, .half = { { 208, 1e-4 } }, .byte = { 192, 16, 8, 7 } },
	{ .type = DTYPE_IQ4_NL, .half = { { 0, 2.9e-4 } } },
	{ .type = DTYPE_IQ4_XS, .half = { { 0, 1.6e-5 } } },
	{ .type = DTYPE_MXFP4, .byte = { 0, 1, 120, 0 } },
	{ .type = DTYPE_NVFP4, .byte = { 0, 4, 2, 3 } },
	{ .type = DTYPE_IQ1_S, .half = { { 0, 2.5e-3 } } },
	{ .type = DTYPE_IQ2_XXS, .half = { { 0, 3.2e-4 } } },
	{ .type = DTYPE_IQ2_XS, .half = { { 0, 3.2e-4 } } },
	{ .type = DTYPE_IQ2_S, .half = { { 0, 3.2e-4 } } },
	{ .type = DTYPE_IQ3_XXS, .half = { { 0, 1.2e-4 } } },
	{ .type = DTYPE_IQ3_S, .half = { { 0, 1.2e-4 } } },
	{ .type = DTYPE_Q1_0, .half = { { 0, 2e-2 } } },
	{ .type = DTYPE_Q2_0, .half = { { 0, 1.5e-2 } } },
	{ .type = DTYPE_TQ1_0, .half = { { 52, 2.4e-2 } } },
	{ .type = DTYPE_TQ2_0, .half = { { 64, 1.8e-2 } } },
};

/* What rows begin with. */
static const struct {
	enum dtype type;
	float value;
} row_scales[] = {
	{ DTYPE_IQ4_KS, 4e-6f },
	{ DTYPE_IQ5_KS, 4e-6f },
	{ DTYPE_IQ2_KS, 1e-4f },
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

__attribute__((target("f16c"))) static uint16_t to_f16(float x)
{
	return (uint16_t)_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), 0), 0);
}

/* IQ1_M has four bits of its scale at the upper end of each of four halves. */
static void put_quarters(uint8_t *p, double value)
{
	unsigned h = to_f16((float)value);
	for (unsigned n = 0; n < 4; n++)
		p[2 * n + 1] = (uint8_t)((p[2 * n + 1] & 15) | (h >> 4 * n & 15) << 4);
}

static void put_half(uint8_t *p, double value)
{
	uint16_t h = to_f16((float)value);
	memcpy(p, &h, sizeof h);
}

/* Uniform between -0.035 and 0.035. */
static void fill_floats(enum dtype type, uint8_t *out, uint64_t n, uint64_t *state)
{
	for (uint64_t i = 0; i < n; i++) {
		float x = (float)((double)(next(state) >> 40) / (1 << 24) - 0.5) * 0.07f;
		uint32_t bits;
		uint16_t half = to_f16(x), high;
		memcpy(&bits, &x, sizeof bits);
		high = (uint16_t)(bits >> 16);
		if (type == DTYPE_F32)
			memcpy(out + 4 * i, &x, 4);
		else
			memcpy(out + 2 * i, type == DTYPE_F16 ? &half : &high, 2);
	}
}

static void set_scales(enum dtype type, uint8_t *block, uint64_t *state)
{
	if (type == DTYPE_IQ1_M)
		put_quarters(block + 48, 2.5e-3);
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
		if (scales[i].type != type)
			continue;
		for (int h = 0; h < 2; h++)
			if (scales[i].half[h].value != 0)
				put_half(block + scales[i].half[h].at, scales[i].half[h].value);
		for (int n = 0; n < scales[i].byte.count; n++)
			block[scales[i].byte.at + n] =
				(uint8_t)(scales[i].byte.min + (next(state) & scales[i].byte.more));
	}
}

void synth_row_head(enum dtype type, uint8_t *out)
{
	for (size_t i = 0; i < sizeof row_scales / sizeof *row_scales; i++) {
		if (row_scales[i].type != type)
			continue;
		if (dtype_table[type].row == 2)
			put_half(out, row_scales[i].value);
		else
			memcpy(out, &row_scales[i].value, 4);
	}
}

void synth_fill(enum dtype type, uint8_t *out, uint64_t blocks)
{
	uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)type, bytes = blocks * dtype_table[type].bytes;

	if (type == DTYPE_F32 || type == DTYPE_F16 || type == DTYPE_BF16) {
		fill_floats(type, out, blocks, &state);
		return;
	}
	for (uint64_t i = 0; i < bytes; i += 8) {
		uint64_t word = next(&state);
		memcpy(out + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
	for (uint64_t i = 0; i < blocks; i++)
		set_scales(type, out + i * dtype_table[type].bytes, &state);
}
