/* loaders/model/model_floats.c - rows of a file's weights as floats, type by type: first of a block's numbers, each of
 * which is its level times a scale, less a minimum where the type has one. */
#include "loaders/model/model_floats.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/number.h"

static float half_at(const uint8_t *p) { return number_from_half((uint16_t)(p[0] | p[1] << 8)); }

static void of_f32(const uint8_t *p, float *x) { memcpy(x, p, sizeof *x); }
static void of_f16(const uint8_t *p, float *x) { *x = half_at(p); }
static void of_bf16(const uint8_t *p, float *x) { *x = number_from_bf16((uint16_t)(p[0] | p[1] << 8)); }

/* ---- blocks of 32: low nibbles are the first 16 */

static void of_q8_0(const uint8_t *p, float *x)
{
	const float d = half_at(p);

	for (int i = 0; i < 32; i++)
		x[i] = d * (float)(int8_t)p[2 + i];
}

static void nibbles(const uint8_t *p, int level[32])
{
	for (int i = 0; i < 16; i++) {
		level[i] = p[i] & 15;
		level[i + 16] = p[i] >> 4;
	}
}

static void fifth_bits(const uint8_t *p, int level[32])
{
	for (int i = 0; i < 32; i++)
		level[i] |= (p[i / 8] >> (i % 8) & 1) << 4;
}

static void scale(const int level[32], int less, float d, float minimum, float *x)
{
	for (int i = 0; i < 32; i++)
		x[i] = d * (float)(level[i] - less) + minimum;
}

static void of_q4_0(const uint8_t *p, float *x)
{
	int level[32];

	nibbles(p + 2, level);
	scale(level, 8, half_at(p), 0, x);
}

static void of_q4_1(const uint8_t *p, float *x)
{
	int level[32];

	nibbles(p + 4, level);
	scale(level, 0, half_at(p), half_at(p + 2), x);
}

static void of_q5_0(const uint8_t *p, float *x)
{
	int level[32];

	nibbles(p + 6, level);
	fifth_bits(p + 2, level);
	scale(level, 16, half_at(p), 0, x);
}

static void of_q5_1(const uint8_t *p, float *x)
{
	int level[32];

	nibbles(p + 8, level);
	fifth_bits(p + 4, level);
	scale(level, 0, half_at(p), half_at(p + 2), x);
}

/* ---- blocks of 256 */

/* Eight scales and eight minima of six bits in twelve bytes: the last four have their upper two bits in the first. */
static void six_bits(const uint8_t *p, int part, int *high, int *low)
{
	const uint8_t *first = p + part % 4, *second = first + 4, *third = first + 8;

	*high = part < 4 ? *first & 63 : (*third & 15) | (*first >> 6) << 4;
	*low = part < 4 ? *second & 63 : *third >> 4 | (*second >> 6) << 4;
}

/* fifth: bit `part` of 32 bytes is that of a part's numbers; NULL: there is none. */
static void of_parts(const uint8_t *p, const uint8_t *fifth, const uint8_t *quants, float *x)
{
	for (int part = 0; part < 8; part++) {
		int high, low;
		six_bits(p + 4, part, &high, &low);
		const float d = half_at(p) * (float)high, minimum = half_at(p + 2) * (float)low;
		for (int i = 0; i < 32; i++) {
			int level = quants[part / 2 * 32 + i] >> part % 2 * 4 & 15;
			level += fifth ? (fifth[i] >> part & 1) * 16 : 0;
			x[part * 32 + i] = d * (float)level - minimum;
		}
	}
}

static void of_q4_k(const uint8_t *p, float *x) { of_parts(p, NULL, p + 16, x); }
static void of_q5_k(const uint8_t *p, float *x) { of_parts(p, p + 16, p + 48, x); }

/* Two bits of each number: those of four that are 32 apart share a byte. */
static int two_bits(const uint8_t *p, int i) { return p[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3; }

static void of_q2_k(const uint8_t *p, float *x)
{
	const float d = half_at(p + 80), min = half_at(p + 82);

	for (int i = 0; i < 256; i++)
		x[i] = d * (float)(p[i / 16] & 15) * (float)two_bits(p + 16, i) - min * (float)(p[i / 16] >> 4);
}

static void of_q3_k(const uint8_t *p, float *x)
{
	const float d = half_at(p + 108);

	for (int i = 0; i < 256; i++) {
		int part = i / 16, by = p[96 + part % 8] >> part / 8 * 4 & 15;
		by |= (p[104 + part % 4] >> part / 4 * 2 & 3) << 4;
		x[i] = d * (float)(by - 32) * (float)(two_bits(p + 32, i) - (p[i % 32] >> i / 32 & 1 ? 0 : 4));
	}
}

static void of_q6_k(const uint8_t *p, float *x)
{
	const float d = half_at(p + 208);

	for (int i = 0; i < 256; i++) {
		int at = i / 128 * 64 + i % 64, four = p[at] >> (i % 128 < 64 ? 0 : 4) & 15;
		x[i] = d * (float)(int8_t)p[192 + i / 16] * (float)((four | two_bits(p + 128, i) << 4) - 32);
	}
}

static const struct {
	enum dtype type;
	void (*block)(const uint8_t *p, float *x);
} known[] = { { DTYPE_F32, of_f32 },   { DTYPE_F16, of_f16 },   { DTYPE_BF16, of_bf16 }, { DTYPE_Q8_0, of_q8_0 },
	      { DTYPE_Q4_0, of_q4_0 }, { DTYPE_Q4_1, of_q4_1 }, { DTYPE_Q5_0, of_q5_0 }, { DTYPE_Q5_1, of_q5_1 },
	      { DTYPE_Q2_K, of_q2_k }, { DTYPE_Q3_K, of_q3_k }, { DTYPE_Q4_K, of_q4_k }, { DTYPE_Q5_K, of_q5_k },
	      { DTYPE_Q6_K, of_q6_k } };
enum { KNOWN = sizeof known / sizeof *known };

static int row_of(enum dtype type)
{
	int k = 0;

	while (k < KNOWN && known[k].type != type)
		k++;
	return k;
}

bool model_floats_known(enum dtype type) { return row_of(type) < KNOWN; }

void model_floats(enum dtype type, const uint8_t *bytes, uint64_t n, float *out)
{
	const int k = row_of(type);
	const struct dtype_facts *f = &dtype_table[type];

	assert(k < KNOWN && n % f->block == 0);
	for (uint64_t i = 0; i < n; i += f->block, bytes += f->bytes)
		known[k].block(bytes, out + i);
}
