/* programs/synth_blocks.c - random blocks of each weight format. A row of the table says where a block's scales lie and
 * what stands there. */
#include "programs/synth_blocks.h"

#include <immintrin.h>
#include <string.h>

/* f16 numbers in a block and their values, for weights of mean about 0 and deviation about 0.02. */
static const struct {
	enum dtype type;
	struct {
		int at;
		double value;
	} half[2];
} scales[] = {
	{ DTYPE_Q8_0, { { 0, 2.7e-4 }, { -1, 0 } } },
	{ DTYPE_Q4_0, { { 0, 4.3e-3 }, { -1, 0 } } },
	{ DTYPE_Q4_1, { { 0, 4.3e-3 }, { 2, -7.5 * 4.3e-3 } } },
	{ DTYPE_Q5_0, { { 0, 2.2e-3 }, { -1, 0 } } },
	{ DTYPE_Q5_1, { { 0, 2.2e-3 }, { 2, -15.5 * 2.2e-3 } } },
	{ DTYPE_Q2_K, { { 80, 2.4e-3 }, { 82, 1.5 * 2.4e-3 } } },
	{ DTYPE_Q3_K, { { 108, 4.8e-4 }, { -1, 0 } } },
	{ DTYPE_Q4_K, { { 0, 1.4e-4 }, { 2, 7.5 * 1.4e-4 } } },
	{ DTYPE_Q5_K, { { 0, 6.8e-5 }, { 2, 15.5 * 6.8e-5 } } },
	{ DTYPE_Q6_K, { { 208, 1e-4 }, { -1, 0 } } },
	{ DTYPE_IQ4_NL, { { 0, 2.9e-4 }, { -1, 0 } } },
	{ DTYPE_IQ4_XS, { { 0, 1.6e-5 }, { -1, 0 } } },
};
enum { Q6_K_SCALES = 192, Q6_K_PARTS = 16 };

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
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
		if (scales[i].type == type)
			for (int h = 0; h < 2; h++)
				if (scales[i].half[h].at >= 0)
					put_half(block + scales[i].half[h].at, scales[i].half[h].value);
	for (int i = 0; type == DTYPE_Q6_K && i < Q6_K_PARTS; i++)
		block[Q6_K_SCALES + i] = (uint8_t)(8 + (next(state) & 7));
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
