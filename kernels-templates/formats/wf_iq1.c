/* kernels-templates/formats/wf_iq1.c - IQ1_S and IQ1_M weights: blocks of 256, eight weights named by a point of a
 * codebook of -1, 0 and 1, all moved by an eighth up or down.
 *
 * Files, IQ1_S: f16 d; 32 bytes, lower eight bits of points; a half for 32 k: four times the points' upper three bits,
 * three bits of scale, and a bit that says down. Weight d * (2 * scale + 1) * (digit +- 1/8). IQ1_M: 32 bytes of
 * points' lower bits; half a byte for eight k: the points' upper bits, and a bit that says down; 4 halves of scales:
 * each four times three bits, for 16 k, and four bits of d, the lowest in the first. Packed, heads: 32 f16 d; units of
 * 32 k: scales; 2 words a row of digits + 1, as weight_join_pairs() makes them. Scales of IQ1_S: 32 signed bytes, 2 *
 * scale + 1, negative for down. A weight is scale * (digit + 1) + minimum. Of IQ1_M: two times 32 bytes, one for each
 * 16 k: 2 * scale + 1, and above it two bits that say up. A weight is an eighth of the scale times a number from -9
 * to 9. 74 bytes for 50 of IQ1_S, 82 for 56 of IQ1_M.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/codebooks.h"
#include "kernels-templates/formats/weight_format.h"

enum { HEAD = 64, PAIR_BYTES = 256, S_UNIT = 32 + PAIR_BYTES, M_UNIT = 64 + PAIR_BYTES, PARTS = 8 };
enum { S_FILE = 50, S_UPPER = 34, M_FILE = 56, M_UPPER = 32, M_SCALES = 48, M_UP = 4, M_OFFSET = 9 };

static ir_i pairs(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned g)
{
	return weight_bits(b, weight_word(b, w, disp, v, g / 4), (int)(g % 4) * 2, 3);
}

static ir_i s_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return pairs(b, w, unit_disp + 32, v, g);
}

/* Eight times the digit + 1, and 2 more where the weight is moved up. */
static ir_i m_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i word = weight_word(b, w, unit_disp + 64, v, g / 4),
	     scales = weight_byte(b, w, unit_disp + (int32_t)(g / 4) * 32, v);
	ir_i up = ir_isar(b, ir_ishl(b, scales, 31 - M_UP - (int)(g / 2 % 2)), 31);
	return ir_ior(b, weight_bits(b, word, (int)(g % 4) * 2 - 3, 0x18), ir_iand(b, up, ir_iconst(b, 0x02020202)));
}

static void s_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                    ir_f out[2])
{
	ir_f d = weight_head_half(b, w, 0, v), steps = weight_s8(b, w, unit_disp, v);
	out[0] = ir_fmul(b, d, ir_fabs(b, steps));
	out[1] = ir_ffma(b, ir_fmul(b, d, steps), ir_fconst(b, 0.125f), ir_fneg(b, out[0]));
}

static void m_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                    ir_f out[2])
{
	ir_i odd = ir_iand(b, weight_byte(b, w, unit_disp + (int32_t)half * 32, v), ir_iconst(b, 15));
	ir_f eighth = ir_fmul(b, ir_i2f(b, odd), ir_fconst(b, 0.125f));
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), eighth);
}

/* ---- files */

static void put_point(uint32_t out[2], unsigned point) { memcpy(out, codebook(CODEBOOK_IQ1)->digit + point * 8, 8); }

static unsigned s_upper(const uint8_t *block, unsigned part)
{
	return block[S_UPPER + part * 2] | (unsigned)block[S_UPPER + part * 2 + 1] << 8;
}

static int s_steps(const uint8_t *block, unsigned part)
{
	unsigned upper = s_upper(block, part);
	int odd = (int)(2 * (upper >> 12 & 7) + 1);
	return upper >> 15 ? -odd : odd;
}

static void s_weights(uint32_t out[8], const uint8_t *block, unsigned part)
{
	for (unsigned i = 0; i < 4; i++)
		put_point(out + 2 * i, block[2 + part * 4 + i] | (s_upper(block, part) >> 3 * i & 7) << 8);
}

static unsigned m_upper(const uint8_t *block, unsigned eight)
{
	return block[M_UPPER + eight / 2] >> eight % 2 * 4 & 15;
}

static void m_weights(uint32_t out[8], const uint8_t *block, unsigned part)
{
	for (unsigned i = 0; i < 4; i++)
		put_point(out + 2 * i, block[part * 4 + i] | (m_upper(block, part * 4 + i) & 7) << 8);
}

static unsigned m_half(const uint8_t *block, unsigned n)
{
	return block[M_SCALES + n * 2] | (unsigned)block[M_SCALES + n * 2 + 1] << 8;
}

static uint16_t m_d(const uint8_t *block)
{
	unsigned d = 0;
	for (unsigned n = 0; n < 4; n++)
		d |= m_half(block, n) >> 12 << 4 * n;
	return (uint16_t)d;
}

/* Of 16 k, as it is packed. */
static uint8_t m_steps(const uint8_t *block, unsigned sixteen)
{
	unsigned scale = m_half(block, sixteen / 4) >> sixteen % 4 * 3 & 7, up = 0;
	for (unsigned i = 0; i < 2; i++)
		up |= (m_upper(block, sixteen * 2 + i) < 8 ? 1u : 0) << i;
	return (uint8_t)(2 * scale + 1 + (up << M_UP));
}

static void transpose_pairs(void *dst, const uint8_t *const block[32], unsigned part,
                            void (*weights)(uint32_t out[8], const uint8_t *block, unsigned part))
{
	uint32_t own[8], all[8 * 32];

	for (unsigned r = 0; r < 32; r++) {
		weights(own, block[r], part);
		for (unsigned g = 0; g < 8; g++)
			all[g * 32 + r] = own[g];
	}
	weight_join_pairs(dst, all, 0);
}

static void s_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (HEAD + PARTS * S_UNIT);
		const uint8_t *block[32];
		for (unsigned r = 0; r < 32; r++)
			block[r] = (const uint8_t *)row[r] + n * S_FILE;
		weight_transpose_scales(head, block);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = head + HEAD + p * S_UNIT;
			for (unsigned r = 0; r < 32; r++)
				unit[r] = (uint8_t)s_steps(block[r], p);
			transpose_pairs(unit + 32, block, p, s_weights);
		}
	}
}

static void m_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (HEAD + PARTS * M_UNIT);
		const uint8_t *block[32];
		for (unsigned r = 0; r < 32; r++) {
			block[r] = (const uint8_t *)row[r] + n * M_FILE;
			uint16_t d = m_d(block[r]);
			memcpy(head + r * 2, &d, 2);
		}
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *unit = head + HEAD + p * M_UNIT;
			for (unsigned r = 0; r < 64; r++)
				unit[r] = m_steps(block[r % 32], 2 * p + r / 32);
			transpose_pairs(unit + 64, block, p, m_weights);
		}
	}
}

static void s_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		const uint8_t *block = (const uint8_t *)row + n / 8 * S_FILE;
		int steps = s_steps(block, n % 8);
		uint32_t words[8];
		uint8_t digit[32];
		uint16_t d;
		memcpy(&d, block, 2);
		s_weights(words, block, n % 8);
		memcpy(digit, words, 32);
		for (unsigned i = 0; i < 32; i++)
			out[n * 32 + i] = f16_f32(d) * (float)(steps < 0 ? -steps : steps) *
			                  ((float)(digit[i] - 1) + (steps < 0 ? -0.125f : 0.125f));
	}
}

static void m_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		const uint8_t *block = (const uint8_t *)row + n / 8 * M_FILE;
		uint32_t words[8];
		uint8_t digit[32];
		m_weights(words, block, n % 8);
		memcpy(digit, words, 32);
		for (unsigned i = 0; i < 32; i++) {
			unsigned steps = m_steps(block, (unsigned)(n % 8 * 2 + i / 16)),
				 up = steps >> (M_UP + i / 8 % 2) & 1;
			out[n * 32 + i] = f16_f32(m_d(block)) * ((float)(steps & 15) * 0.125f) *
			                  (float)(8 * digit[i] + (int)(2 * up) - M_OFFSET);
		}
	}
}

static const struct weight_quants s_quants = {
	.max = 2, .minimum = true, .registers = 6, .bytes = s_bytes, .scale = s_scale
};
static const struct weight_quants m_quants = {
	.max = 18, .offset = M_OFFSET, .halves = true, .registers = 8, .bytes = m_bytes, .scale = m_scale
};

const struct weight_format wf_iq1_s = {
	.type = DTYPE_IQ1_S,
	.unit_k = 32,
	.unit_bytes = S_UNIT,
	.array = { { 0, 1, 1 }, { 32, 4, 2 } },
	.head_units = PARTS,
	.head_bytes = HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &s_quants,
	.pack = s_pack,
	.to_f32 = s_to_f32,
};
const struct weight_format wf_iq1_m = {
	.type = DTYPE_IQ1_M,
	.unit_k = 32,
	.unit_bytes = M_UNIT,
	.array = { { 0, 1, 2 }, { 64, 4, 2 } },
	.head_units = PARTS,
	.head_bytes = HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &m_quants,
	.pack = m_pack,
	.to_f32 = m_to_f32,
};
