/* kernels-templates/formats/wf_iq4.c - weights of four bits that name entries of a table: IQ4_NL and IQ4_XS (16 uneven
 * levels), MXFP4 and NVFP4 (FP4 numbers).
 *
 * Files: nibbles as in Q4_0 everywhere but in NVFP4. IQ4_NL: d, nibbles for 32 k; weight d * level. IQ4_XS, 256 k: d,
 * 16 high bits and 4 bytes of low nibbles of eight 6-bit scales, nibbles; weight d * (scale - 32) * level. MXFP4: a
 * byte e, nibbles for 32 k; weight 2^(e - 127) * number, as half of that times twice the number. NVFP4, 64 k: four
 * bytes, FP8 numbers without a sign (E4M3; the largest means 0), each the scale of 16 k; then eight bytes for 16 k, the
 * first eight low. Packed, per 32 k: IQ4_NL 32 f16 d, MXFP4 32 bytes e, NVFP4 two times 32 bytes, IQ4_XS 32 bytes
 * (scale
 * - 32), then four words a row as in the file. IQ4_XS has heads of 32 f16 d. As many bytes as in the file but for
 * IQ4_XS: 138 for 136.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum {
	NL_QUANTS = 64,
	BYTE_QUANTS = 32,
	QUANT_BYTES = 512,
	XS_HEAD = 64,
	XS_UNIT = BYTE_QUANTS + QUANT_BYTES,
	XS_FILE = 136,
	FP4_OFFSET = 12,
	NV_QUANTS = 64,
	NV_FILE = 36
};

static ir_i nl_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return ir_ilut16(b, weight_nibbles(b, w, unit_disp + NL_QUANTS, v, g), LANES_TABLE_IQ4);
}

static ir_i xs_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return ir_ilut16(b, weight_nibbles(b, w, unit_disp + BYTE_QUANTS, v, g), LANES_TABLE_IQ4);
}

static ir_i fp4_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	return ir_ilut16(b, weight_nibbles(b, w, unit_disp + BYTE_QUANTS, v, g), LANES_TABLE_FP4);
}

static ir_i nv_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i word = weight_word(b, w, unit_disp + NV_QUANTS, v, g / 4 * 2 + g % 2);
	return ir_ilut16(b, weight_bits(b, word, g % 4 < 2 ? 0 : 4, 15), LANES_TABLE_FP4);
}

static void nl_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                     ir_f out[2])
{
	out[0] = weight_half(b, w, unit_disp, v);
}

static void xs_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                     ir_f out[2])
{
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), weight_s8(b, w, unit_disp, v));
}

/* 2^(e - 128): the exponent e - 1, or, for e of 0 and 1, a denormal. */
static void fp4_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                      ir_f out[2])
{
	ir_i e = weight_byte(b, w, unit_disp, v);
	ir_i normal = ir_ishl(b, ir_isub(b, e, ir_iconst(b, 1)), 23), denormal = ir_ishlv(b, ir_iconst(b, 1 << 21), e);
	out[0] = ir_fbits(b, ir_isel(b, ir_igt(b, e, ir_iconst(b, 1)), normal, denormal));
}

/* The bits of an f32 whose exponent is 120 too small: denormal where the byte's number is. The 120th power is halved,
 * since the quants are doubled. */
static void nv_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                     ir_f out[2])
{
	ir_i byte = weight_byte(b, w, unit_disp + (int32_t)half * 32, v);
	out[0] = ir_fmul(b, ir_fbits(b, ir_ishl(b, byte, 20)), ir_fconst(b, 0x1p119f));
}

static void nl_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * (NL_QUANTS + QUANT_BYTES);
		const uint8_t *d[32], *quants[32];
		for (unsigned r = 0; r < 32; r++) {
			d[r] = (const uint8_t *)row[r] + n * 18;
			quants[r] = d[r] + 2;
		}
		weight_transpose_scales(out, d);
		weight_transpose_words((uint32_t *)(out + NL_QUANTS), quants, 4);
	}
}

static void fp4_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * (BYTE_QUANTS + QUANT_BYTES);
		const uint8_t *quants[32];
		for (unsigned r = 0; r < 32; r++) {
			out[r] = ((const uint8_t *)row[r])[n * 17];
			quants[r] = (const uint8_t *)row[r] + n * 17 + 1;
		}
		weight_transpose_words((uint32_t *)(out + BYTE_QUANTS), quants, 4);
	}
}

/* The scale's bits without a sign, all of them 0 where it is none. */
static uint8_t nv_step(const uint8_t *block, uint64_t sixteen)
{
	return block[sixteen] == 0x7f ? 0 : block[sixteen] & 0x7f;
}

static void nv_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *out = (uint8_t *)dst + n * (NV_QUANTS + QUANT_BYTES);
		const uint8_t *quants[32];
		for (unsigned r = 0; r < 32; r++) {
			const uint8_t *block = (const uint8_t *)row[r] + n / 2 * NV_FILE;
			out[r] = nv_step(block, n % 2 * 2);
			out[32 + r] = nv_step(block, n % 2 * 2 + 1);
			quants[r] = block + 4 + n % 2 * 16;
		}
		weight_transpose_words((uint32_t *)(out + NV_QUANTS), quants, 4);
	}
}

static int xs_step(const uint8_t *block, unsigned n)
{
	int low = block[4 + n / 2] >> n % 2 * 4 & 15, high = (block[2] | block[3] << 8) >> 2 * n & 3;
	return (low | high << 4) - 32;
}

static void xs_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (XS_HEAD + 8 * XS_UNIT);
		const uint8_t *d[32], *quants[32];
		for (unsigned r = 0; r < 32; r++)
			d[r] = (const uint8_t *)row[r] + n * XS_FILE;
		weight_transpose_scales(head, d);
		for (unsigned i = 0; i < 8; i++) {
			uint8_t *out = head + XS_HEAD + i * XS_UNIT;
			for (unsigned r = 0; r < 32; r++) {
				out[r] = (uint8_t)xs_step(d[r], i);
				quants[r] = d[r] + 8 + i * 16;
			}
			weight_transpose_words((uint32_t *)(out + BYTE_QUANTS), quants, 4);
		}
	}
}

static void nl_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * 18;
		uint16_t d;
		memcpy(&d, block, 2);
		out[i] = f16_f32(d) * (float)lanes_table[LANES_TABLE_IQ4][weight_nibble(block + 2, i % 32)];
	}
}

static void xs_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 256 * XS_FILE;
		unsigned n = (unsigned)(i % 256 / 32);
		uint16_t d;
		memcpy(&d, block, 2);
		out[i] = f16_f32(d) * (float)xs_step(block, n) *
		         (float)lanes_table[LANES_TABLE_IQ4][weight_nibble(block + 8 + n * 16, i % 32)];
	}
}

static void fp4_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * 17;
		uint32_t e = block[0];
		float scale = bits_f32(e > 1 ? (e - 1) << 23 : UINT32_C(1) << (21 + e));
		out[i] = scale * (float)(lanes_table[LANES_TABLE_FP4][weight_nibble(block + 1, i % 32)] - FP4_OFFSET);
	}
}

static void nv_to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 64 * NV_FILE;
		uint64_t sixteen = i % 64 / 16;
		float scale = bits_f32((uint32_t)nv_step(block, sixteen) << 20) * 0x1p119f;
		unsigned number = block[4 + sixteen * 8 + i % 8] >> i % 16 / 8 * 4 & 15;
		out[i] = scale * (float)(lanes_table[LANES_TABLE_FP4][number] - FP4_OFFSET);
	}
}

static const struct weight_quants nl_quants = {
	.is_signed = true, .registers = 7, .bytes = nl_bytes, .scale = nl_scale
};
static const struct weight_quants xs_quants = {
	.is_signed = true, .registers = 7, .bytes = xs_bytes, .scale = xs_scale
};
static const struct weight_quants fp4_quants = {
	.max = 24, .offset = FP4_OFFSET, .registers = 8, .bytes = fp4_bytes, .scale = fp4_scale
};
static const struct weight_quants nv_quants = {
	.max = 24, .offset = FP4_OFFSET, .halves = true, .registers = 8, .bytes = nv_bytes, .scale = nv_scale
};

const struct weight_format wf_iq4_nl = {
	.type = DTYPE_IQ4_NL,
	.unit_k = 32,
	.unit_bytes = NL_QUANTS + QUANT_BYTES,
	.array = { { 0, 2, 1 }, { NL_QUANTS, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &nl_quants,
	.pack = nl_pack,
	.to_f32 = nl_to_f32,
};
const struct weight_format wf_iq4_xs = {
	.type = DTYPE_IQ4_XS,
	.unit_k = 32,
	.unit_bytes = XS_UNIT,
	.array = { { 0, 1, 1 }, { BYTE_QUANTS, 4, 4 } },
	.head_units = 8,
	.head_bytes = XS_HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &xs_quants,
	.pack = xs_pack,
	.to_f32 = xs_to_f32,
};
const struct weight_format wf_mxfp4 = {
	.type = DTYPE_MXFP4,
	.unit_k = 32,
	.unit_bytes = BYTE_QUANTS + QUANT_BYTES,
	.array = { { 0, 1, 1 }, { BYTE_QUANTS, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &fp4_quants,
	.pack = fp4_pack,
	.to_f32 = fp4_to_f32,
};
const struct weight_format wf_nvfp4 = {
	.type = DTYPE_NVFP4,
	.unit_k = 32,
	.unit_bytes = NV_QUANTS + QUANT_BYTES,
	.array = { { 0, 1, 2 }, { NV_QUANTS, 4, 4 } },
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &nv_quants,
	.pack = nv_pack,
	.to_f32 = nv_to_f32,
};
