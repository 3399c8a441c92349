/* tests/kernels/plain_quants.c - quantised weights one at a time, from the bytes of a file (plain_quants.h). */
#include <assert.h>
#include <math.h>

#include "tests/kernels/plain_attention.h"
#include "tests/kernels/plain_quants.h"

static float half_at(const uint8_t *p) { return plain_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

static int bit(const uint8_t *p, uint32_t n) { return p[n / 8] >> n % 8 & 1; }

/* 32 nibbles in 16 bytes: low ones first. */
static int nibble(const uint8_t *p, uint32_t i) { return i < 16 ? p[i] % 16 : p[i - 16] / 16; }

static const int iq4_level[16] = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 };
static const int fp4_doubled[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

/* Blocks of 32. */
static void small_block(struct plain_quant *w, enum dtype type, const uint8_t *p, uint32_t i)
{
	w->scale = type == DTYPE_MXFP4 ? ldexpf(1.0f, p[0] - 128) : half_at(p);
	switch (type) {
	case DTYPE_Q8_0: w->q = (int8_t)p[2 + i]; break;
	case DTYPE_Q4_0: w->q = nibble(p + 2, i) - 8; break;
	case DTYPE_Q4_1: w->q = nibble(p + 4, i); break;
	case DTYPE_Q5_0: w->q = nibble(p + 6, i) + 16 * bit(p + 2, i) - 16; break;
	case DTYPE_Q5_1: w->q = nibble(p + 8, i) + 16 * bit(p + 4, i); break;
	case DTYPE_IQ4_NL: w->q = iq4_level[nibble(p + 2, i)]; break;
	default: w->q = fp4_doubled[nibble(p + 1, i)]; break;
	}
	if (type == DTYPE_Q4_1 || type == DTYPE_Q5_1) {
		w->has_minimum = true;
		w->minimum = half_at(p + 2);
	}
}

/* The 6-bit scale and minimum of one of eight parts, bit by bit. */
static void six_bits(const uint8_t *s, uint32_t part, int *scale, int *minimum)
{
	if (part < 4) {
		*scale = s[part] % 64;
		*minimum = s[part + 4] % 64;
	} else {
		*scale = s[part + 4] % 16 + s[part - 4] / 64 * 16;
		*minimum = s[part + 4] / 16 + s[part] / 64 * 16;
	}
}

static void q4_k_block(struct plain_quant *w, const uint8_t *p, uint32_t i, bool five)
{
	int scale, minimum;
	uint32_t part = i / 32;
	const uint8_t *quants = p + (five ? 48 : 16) + part / 2 * 32;

	six_bits(p + 4, part, &scale, &minimum);
	w->scale = half_at(p) * (float)scale;
	w->minimum = -(half_at(p + 2) * (float)minimum);
	w->has_minimum = true;
	w->q = (part % 2 ? quants[i % 32] / 16 : quants[i % 32] % 16) + (five ? 16 * (p[16 + i % 32] >> part & 1) : 0);
}

/* Two bits of 256 numbers: four numbers 32 apart share a byte. */
static int pair(const uint8_t *p, uint32_t i) { return p[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3; }

static void q2_k_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	w->scale = half_at(p + 80) * (float)(p[i / 16] % 16);
	w->minimum = -(half_at(p + 82) * (float)(p[i / 16] / 16));
	w->has_minimum = w->halves = true;
	w->q = pair(p + 16, i);
}

static void q3_k_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t part = i / 16;
	int low = part < 8 ? p[96 + part] % 16 : p[96 + part - 8] / 16, high = p[104 + part % 4] >> (part / 4 * 2) & 3;

	w->scale = half_at(p + 108) * (float)(low + high * 16 - 32);
	w->halves = true;
	w->q = pair(p + 32, i) + 4 * (p[i % 32] >> (i / 32) & 1) - 4;
}

static void q6_k_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t half = i / 128, quarter = i % 128 / 32, at = i % 32;
	int byte = p[half * 64 + quarter % 2 * 32 + at], nibble = quarter < 2 ? byte % 16 : byte / 16;

	w->scale = half_at(p + 208) * (float)(int8_t)p[192 + i / 16];
	w->halves = true;
	w->q = nibble + 16 * (p[128 + half * 32 + at] >> quarter * 2 & 3) - 32;
}

static void iq4_xs_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t part = i / 32;
	int low = part % 2 ? p[4 + part / 2] / 16 : p[4 + part / 2] % 16, high = p[2 + part / 4] >> (part % 4 * 2) & 3;

	w->scale = half_at(p) * (float)(low + 16 * high - 32);
	w->q = iq4_level[nibble(p + 8 + part * 16, i % 32)];
}

struct plain_quant plain_quant(enum dtype type, const uint8_t *row, uint32_t k)
{
	const struct dtype_facts *f = &dtype_table[type];
	const uint8_t *p = row + (uint64_t)(k / f->block) * f->bytes;
	struct plain_quant w = { 0 };
	uint32_t i = k % f->block;

	switch (type) {
	case DTYPE_TQ2_0: w = (struct plain_quant){ .scale = half_at(p + 64), .q = pair(p, i) - 1 }; break;
	case DTYPE_Q2_K: q2_k_block(&w, p, i); break;
	case DTYPE_Q3_K: q3_k_block(&w, p, i); break;
	case DTYPE_Q4_K: q4_k_block(&w, p, i, false); break;
	case DTYPE_Q5_K: q4_k_block(&w, p, i, true); break;
	case DTYPE_Q6_K: q6_k_block(&w, p, i); break;
	case DTYPE_IQ4_XS: iq4_xs_block(&w, p, i); break;
	default: assert(f->block == 32); small_block(&w, type, p, i);
	}
	return w;
}

uint8_t *plain_random_row(uint8_t *p, enum dtype type, uint32_t k, uint32_t (*draw)(uint32_t n))
{
	/* Where a block has its f16 scales: their upper bytes are kept small. */
	static const struct {
		enum dtype type;
		uint8_t at[2];
	} scales[] = {
		{ DTYPE_Q8_0, { 1, 1 } },    { DTYPE_Q4_0, { 1, 1 } },   { DTYPE_Q4_1, { 1, 3 } },
		{ DTYPE_Q5_0, { 1, 1 } },    { DTYPE_Q5_1, { 1, 3 } },   { DTYPE_IQ4_NL, { 1, 1 } },
		{ DTYPE_IQ4_XS, { 1, 1 } },  { DTYPE_Q2_K, { 81, 83 } }, { DTYPE_Q3_K, { 109, 109 } },
		{ DTYPE_Q4_K, { 1, 3 } },    { DTYPE_Q5_K, { 1, 3 } },   { DTYPE_Q6_K, { 209, 209 } },
		{ DTYPE_TQ2_0, { 65, 65 } },
	};
	const struct dtype_facts *f = &dtype_table[type];
	uint64_t blocks = k / f->block;

	for (uint64_t i = 0; i < blocks * f->bytes; i++)
		p[i] = (uint8_t)draw(256);
	for (uint64_t n = 0; n < blocks; n++) {
		for (unsigned s = 0; s < sizeof scales / sizeof scales[0]; s++)
			for (unsigned j = 0; scales[s].type == type && j < 2; j++)
				p[n * f->bytes + scales[s].at[j]] = (uint8_t)(draw(2) << 7 | draw(0x2c));
		if (type == DTYPE_MXFP4)
			p[n * f->bytes] = (uint8_t)(draw(8) ? 110 + draw(25) : draw(3));
	}
	return p;
}
