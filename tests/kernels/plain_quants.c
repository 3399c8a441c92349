/* tests/kernels/plain_quants.c - quantised weights one at a time, from the bytes of a file (plain_quants.h). */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels-templates/formats/codebooks.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/plain_quants.h"

static float half_at(const uint8_t *p) { return plain_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

static float bf16_at(const uint8_t *p)
{
	uint8_t bytes[4] = { 0, 0, p[0], p[1] };
	float f;

	memcpy(&f, bytes, 4);
	return f;
}

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

/* A row begins with the scale of all its blocks. Parts of 32 count steps of it, and name one of two lists, whose
 * levels are a number apart. */
static float float_at(const uint8_t *p)
{
	float f;

	memcpy(&f, p, 4);
	return f;
}

static void iq4_ks_block(struct plain_quant *w, const uint8_t *row, const uint8_t *p, uint32_t i)
{
	int step = p[i / 32];

	w->scale = float_at(row) * (float)(step - step % 2 - 127);
	w->q = iq4_level[nibble(p + 8 + i / 32 * 16, i % 32)] + step % 2 * 4;
}

static void iq5_ks_block(struct plain_quant *w, const uint8_t *row, const uint8_t *p, uint32_t i)
{
	static const int level[32] = {
		-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36, -30, -24, -18, -12, -6,
		-1,   5,    11,   17,  23,  29,  36,  43,  51,  59,  68,  77,  87,  97,  109, 121
	};
	int step = p[i / 32], nibbles = p[8 + i / 64 * 32 + i % 32], four = i % 64 < 32 ? nibbles % 16 : nibbles / 16;

	w->scale = float_at(row) * (float)(step - step % 2 - 127);
	w->q = level[four + 16 * (p[136 + i % 32] >> i / 32 & 1)] + step % 2 * 2;
}

static void iq2_ks_block(struct plain_quant *w, const uint8_t *row, const uint8_t *p, uint32_t i)
{
	static const int level[4] = { -31, -13, 1, 17 };
	uint32_t part = i / 32;
	int four = part % 2 ? p[2 + part / 2] / 16 : p[2 + part / 2] % 16;

	w->scale = half_at(row) * (float)(four + 16 * bit(p + 1, part) - 16);
	w->q = level[pair(p + 6, i)] + 5 * bit(p, part);
}

/* Number i of a point of eight. The list is the one thing that is not read a second time: t_weights knows its sum. */
static int digit(enum codebook_name name, uint32_t point, uint32_t i)
{
	return codebook(name)->digit[point * codebook(name)->width + i % codebook(name)->width];
}

/* The sign of number i of eight, of which seven have bits, and the eighth is a minus where it makes them even. */
static int even_sign(uint32_t seven, uint32_t i)
{
	uint32_t minuses = 0;

	for (uint32_t n = 0; n < 7; n++)
		minuses += seven >> n & 1;
	return (i < 7 ? seven >> i & 1 : minuses % 2) ? -1 : 1;
}

static uint32_t little(const uint8_t *p, int bytes)
{
	uint32_t n = 0;

	while (bytes--)
		n = n * 256 + p[bytes];
	return n;
}

static const int iq2_level[3] = { 8, 25, 43 }, iq3_level[8] = { 4, 12, 20, 28, 36, 44, 52, 62 };

static void iq2_xxs_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	const uint8_t *part = p + 2 + i / 32 * 8;
	uint32_t word = little(part + 4, 4);

	w->scale = half_at(p) * (0.5f + (float)(word >> 28)) / 4;
	w->q = iq2_level[digit(CODEBOOK_IQ2_XXS, part[i / 8 % 4], i)] * even_sign(word >> i / 8 % 4 * 7 & 127, i % 8);
}

static void iq2_xs_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t both = little(p + 2 + i / 8 * 2, 2);

	w->halves = true;
	w->scale = half_at(p) * (0.5f + (float)(i / 16 % 2 ? p[66 + i / 32] / 16 : p[66 + i / 32] % 16)) / 4;
	w->q = iq2_level[digit(CODEBOOK_IQ2_XS, both % 512, i)] * even_sign(both / 512, i % 8);
}

static void iq2_s_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t point = p[2 + i / 8] + 256u * (p[66 + i / 32] >> i / 8 % 4 * 2 & 3);

	w->halves = true;
	w->scale = half_at(p) * (0.5f + (float)(i / 16 % 2 ? p[74 + i / 32] / 16 : p[74 + i / 32] % 16)) / 4;
	w->q = iq2_level[digit(CODEBOOK_IQ2_S, point, i)] * (bit(p + 34, i) ? -1 : 1);
}

static void iq3_xxs_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t word = little(p + 66 + i / 32 * 4, 4);

	w->scale = half_at(p) * (0.5f + (float)(word >> 28)) / 2;
	w->q = iq3_level[digit(CODEBOOK_IQ3_XXS, p[2 + i / 4], i)] * even_sign(word >> i / 8 % 4 * 7 & 127, i % 8);
}

static void iq3_s_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t point = p[2 + i / 4] + 256u * (uint32_t)bit(p + 66, i / 4), scales = p[106 + i / 64];

	w->scale = half_at(p) * (float)(1 + 2 * (i / 32 % 2 ? scales / 16 : scales % 16));
	w->q = (2 * digit(CODEBOOK_IQ3_S, point, i) + 1) * (bit(p + 74, i) ? -1 : 1);
}

/* A digit from -1 to 1 and an eighth. The minimum is that of digit -1, and q counts from there. */
static void iq1_s_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t upper = little(p + 34 + i / 32 * 2, 2), point = p[2 + i / 8] + 256 * (upper >> i / 8 % 4 * 3 & 7);

	w->scale = half_at(p) * (float)(2 * (upper >> 12 & 7) + 1);
	w->minimum = w->scale * (upper >> 15 ? -1.125f : -0.875f);
	w->has_minimum = true;
	w->q = digit(CODEBOOK_IQ1, point, i);
}

static void iq1_m_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	uint32_t upper = p[32 + i / 16] >> i / 8 % 2 * 4, point = p[i / 8] + 256 * (upper & 7), d = 0;

	for (int n = 3; n >= 0; n--)
		d = d * 16 + p[48 + 2 * n + 1] / 16;
	w->halves = true;
	w->scale = plain_f16_to_f32((uint16_t)d) *
	           (float)(2 * (little(p + 48 + i / 64 * 2, 2) >> i / 16 % 4 * 3 & 7) + 1) / 8;
	w->q = (digit(CODEBOOK_IQ1, point, i) - 1) * 8 + (upper & 8 ? -1 : 1);
}

/* Five digits of base three, the first one the highest, are a byte as parts of 243 are of 256, rounded up. */
static int tq1_q(const uint8_t *p, uint32_t i)
{
	uint32_t n = i < 160 ? i / 32 : i < 240 ? (i - 160) / 16 : (i - 240) / 4;
	uint32_t byte = p[i < 160 ? i % 32 : i < 240 ? 32 + (i - 160) % 16 : 48 + (i - 240) % 4];

	while (n--)
		byte = byte * 3 % 256;
	return (int)(byte * 3 / 256) - 1;
}

/* FP8 without a sign, E4M3: its largest number means 0. Halved, since numbers are doubled. */
static void nvfp4_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	int e = p[i / 16] / 8 % 16, m = p[i / 16] % 8, byte = p[4 + i / 16 * 8 + i % 8];

	w->halves = true;
	w->scale = p[i / 16] == 0x7f ? 0 : ldexpf(e ? (float)(8 + m) : (float)m, (e ? e : 1) - 7 - 3 - 1);
	w->q = fp4_doubled[i % 16 < 8 ? byte % 16 : byte / 16];
}

/* Bytes with a minimum, nibbles with a zero point; numbers are f16 or bf16. */
static void affine_block(struct plain_quant *w, enum dtype type, const uint8_t *p, uint32_t i)
{
	bool half = type == DTYPE_MLX8_F16 || type == DTYPE_AWQ4, bytes = type == DTYPE_MLX8 || type == DTYPE_MLX8_F16;

	w->scale = half ? half_at(p) : bf16_at(p);
	w->has_minimum = true;
	w->minimum = !bytes ? -(w->scale * (float)p[2]) : half ? half_at(p + 2) : bf16_at(p + 2);
	w->q = bytes ? p[4 + i] : nibble(p + 3, i);
}

/* As whole numbers, 512 times as large. */
static void fp8_block(struct plain_quant *w, const uint8_t *p, uint32_t i)
{
	int e = p[4 + i] / 8 % 16, m = p[4 + i] % 8;

	memcpy(&w->scale, p, 4);
	w->scale /= 512;
	w->q = e ? (8 + m) << (e - 1) : m;
	if (p[4 + i] & 128) /* of 0, too */
		w->scale = -w->scale;
}

struct plain_quant plain_quant(enum dtype type, const uint8_t *row, uint32_t k)
{
	const struct dtype_facts *f = &dtype_table[type];
	const uint8_t *p = row + f->row + (uint64_t)(k / f->block) * f->bytes;
	struct plain_quant w = { 0 };
	uint32_t i = k % f->block;

	switch (type) {
	case DTYPE_IQ2_XXS: iq2_xxs_block(&w, p, i); break;
	case DTYPE_IQ2_XS: iq2_xs_block(&w, p, i); break;
	case DTYPE_IQ2_S: iq2_s_block(&w, p, i); break;
	case DTYPE_IQ3_XXS: iq3_xxs_block(&w, p, i); break;
	case DTYPE_IQ3_S: iq3_s_block(&w, p, i); break;
	case DTYPE_IQ1_S: iq1_s_block(&w, p, i); break;
	case DTYPE_IQ1_M: iq1_m_block(&w, p, i); break;
	case DTYPE_NVFP4: nvfp4_block(&w, p, i); break;
	case DTYPE_MLX4:
		w = (struct plain_quant){
			.scale = bf16_at(p), .minimum = bf16_at(p + 2), .has_minimum = true, .q = nibble(p + 4, i)
		};
		break;
	case DTYPE_MLX8:
	case DTYPE_MLX8_F16:
	case DTYPE_AWQ4:
	case DTYPE_AWQ4_BF16: affine_block(&w, type, p, i); break;
	case DTYPE_FP8: fp8_block(&w, p, i); break;
	case DTYPE_TQ1_0: w = (struct plain_quant){ .scale = half_at(p + 52), .q = tq1_q(p, i) }; break;
	case DTYPE_Q1_0: w = (struct plain_quant){ .scale = half_at(p), .q = 2 * bit(p + 2, i) - 1 }; break;
	case DTYPE_Q2_0:
		w = (struct plain_quant){ .scale = half_at(p), .q = 2 * bit(p + 2, 2 * i + 1) + bit(p + 2, 2 * i) - 1 };
		break;
	case DTYPE_TQ2_0: w = (struct plain_quant){ .scale = half_at(p + 64), .q = pair(p, i) - 1 }; break;
	case DTYPE_Q2_K: q2_k_block(&w, p, i); break;
	case DTYPE_Q3_K: q3_k_block(&w, p, i); break;
	case DTYPE_Q4_K: q4_k_block(&w, p, i, false); break;
	case DTYPE_Q5_K: q4_k_block(&w, p, i, true); break;
	case DTYPE_Q6_K: q6_k_block(&w, p, i); break;
	case DTYPE_IQ4_XS: iq4_xs_block(&w, p, i); break;
	case DTYPE_IQ4_KS: iq4_ks_block(&w, row, p, i); break;
	case DTYPE_IQ5_KS: iq5_ks_block(&w, row, p, i); break;
	case DTYPE_IQ2_KS: iq2_ks_block(&w, row, p, i); break;
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
		{ DTYPE_Q8_0, { 1, 1 } },    { DTYPE_Q4_0, { 1, 1 } },     { DTYPE_Q4_1, { 1, 3 } },
		{ DTYPE_Q5_0, { 1, 1 } },    { DTYPE_Q5_1, { 1, 3 } },     { DTYPE_IQ4_NL, { 1, 1 } },
		{ DTYPE_IQ4_XS, { 1, 1 } },  { DTYPE_Q2_K, { 81, 83 } },   { DTYPE_Q3_K, { 109, 109 } },
		{ DTYPE_Q4_K, { 1, 3 } },    { DTYPE_Q5_K, { 1, 3 } },     { DTYPE_Q6_K, { 209, 209 } },
		{ DTYPE_TQ2_0, { 65, 65 } }, { DTYPE_TQ1_0, { 53, 53 } },  { DTYPE_IQ2_XXS, { 1, 1 } },
		{ DTYPE_IQ2_XS, { 1, 1 } },  { DTYPE_IQ2_S, { 1, 1 } },    { DTYPE_IQ3_XXS, { 1, 1 } },
		{ DTYPE_IQ3_S, { 1, 1 } },   { DTYPE_IQ1_S, { 1, 1 } },    { DTYPE_Q1_0, { 1, 1 } },
		{ DTYPE_Q2_0, { 1, 1 } },    { DTYPE_MLX8_F16, { 1, 3 } }, { DTYPE_AWQ4, { 1, 1 } },
	};
	const struct dtype_facts *f = &dtype_table[type];
	uint64_t blocks = k / f->block;
	uint8_t *row = p;

	p += f->row;
	for (uint64_t i = 0; i < blocks * f->bytes; i++)
		p[i] = (uint8_t)draw(256);
	for (uint64_t n = 0; n < blocks; n++) {
		for (unsigned s = 0; s < sizeof scales / sizeof scales[0]; s++)
			for (unsigned j = 0; scales[s].type == type && j < 2; j++)
				p[n * f->bytes + scales[s].at[j]] = (uint8_t)(draw(2) << 7 | draw(0x2c));
		/* The upper two of the four bits that the scale has at each of four places. */
		if (type == DTYPE_IQ1_M)
			p[n * f->bytes + 55] = (uint8_t)(p[n * f->bytes + 55] % 16 | draw(2) << 7 | draw(3) << 4);
		for (unsigned j = 1; (type == DTYPE_MLX4 || type == DTYPE_MLX8) && j < 4; j += 2)
			p[n * f->bytes + j] = (uint8_t)(draw(2) << 7 | (0x38 + draw(6)));
		if (type == DTYPE_AWQ4_BF16 || type == DTYPE_FP8)
			p[n * f->bytes + (type == DTYPE_FP8 ? 3 : 1)] = (uint8_t)(draw(2) << 7 | (0x38 + draw(6)));
		if (type == DTYPE_MXFP4)
			p[n * f->bytes] = (uint8_t)(draw(8) ? 110 + draw(25) : draw(3));
	}
	for (unsigned i = 0; i < f->row; i++)
		row[i] = (uint8_t)draw(256);
	if (f->row) /* f16 of two bytes, f32 of four */
		row[f->row - 1] = (uint8_t)(draw(2) << 7 | (f->row == 2 ? draw(0x2c) : 0x34 + draw(6)));
	return row;
}

void plain_random_rows(uint8_t *p, enum dtype type, uint32_t rows, uint32_t k, uint32_t (*draw)(uint32_t n))
{
	for (uint32_t r = 0; r < rows; r++)
		plain_random_row(p + r * dtype_row_bytes(type, k), type, k, draw);
}
