/* kernels-templates/formats/wf_iq_ks.c - weights whose rows begin with a scale, and whose parts of 32 name one of two
 * lists of levels: IQ4_KS, IQ5_KS, IQ2_KS.
 *
 * Files, 256 k behind the row's scale d. IQ4_KS, d is f32: eight bytes of steps, nibbles for 32 k each as in Q4_0.
 * IQ5_KS, d is f32: eight bytes of steps, 128 bytes of nibbles and 32 of fifth bits as in Q5_K. Of a byte of steps the
 * upper seven bits, doubled, less 127 are the step, and the lowest says which list. IQ2_KS, d is f16: eight bits of
 * lists, the fifth bits of the eight steps, four bytes of their nibbles, two bits for each k as in Q2_K; steps are 32
 * numbers from -16 on. Weight d * step * level, the first product rounded. The second list of IQ4_KS is the first plus
 * 4; of IQ5_KS plus 2; of IQ2_KS plus 5.
 * Packed: heads of 32 d, an f32 as two halves; units of 32 k: 32 bytes, the number of the step with the list's above
 * it, [a word a row of fifth bits], nibbles as in Q4_0, or two words a row of pairs of bits. 140 bytes for the file's
 * 136, 172 for 168, 74 for 70.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum {
	FLOAT_HEAD = 128,
	HALF_HEAD = 64,
	STEPS = 0,
	QUANTS = 32,
	LIST = 0x80, /* of a packed step: the second list */
	NIBBLE_BYTES = 512,
	BIT_BYTES = 128,
	PAIR_BYTES = 256,
	PARTS = 8
};
enum { IQ4_UNIT = QUANTS + NIBBLE_BYTES, IQ5_UNIT = QUANTS + BIT_BYTES + NIBBLE_BYTES, IQ2_UNIT = QUANTS + PAIR_BYTES };
enum { IQ4_FILE = 136, IQ5_FILE = 168, IQ5_FILE_BITS = 136, IQ2_FILE = 70, FILE_QUANTS = 8, IQ2_FILE_QUANTS = 6 };
enum { IQ4_APART = 4, IQ5_APART = 2, IQ2_OFFSET = 31, RAISED = 128 };

/* ---- in a template */

/* `number` in each byte where the row's list is the second one. */
static ir_i in_second_list(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned number)
{
	ir_i second = ir_isar(b, ir_ishl(b, weight_byte(b, w, unit_disp + STEPS, v), 24), 31);
	return ir_iand(b, second, ir_iconst(b, (int32_t)(number * 0x01010101u)));
}

/* Levels are raised so that no byte of the sum carries into the next. */
static ir_i level_bytes(struct ir *b, ir_i raised, ir_i apart)
{
	return ir_ixor(b, ir_iadd(b, raised, apart), ir_iconst(b, (int32_t)0x80808080));
}

static ir_i iq4_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i raised = ir_ilut16(b, weight_nibbles(b, w, unit_disp + QUANTS, v, g), LANES_TABLE_IQ4_RAISED);
	return level_bytes(b, raised, in_second_list(b, w, unit_disp, v, IQ4_APART));
}

static ir_i iq5_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i nibbles = weight_nibbles(b, w, unit_disp + QUANTS + BIT_BYTES, v, g),
	     fifth = weight_bits(b, weight_word(b, w, unit_disp + QUANTS, v, 0), (int)weight_bit_of(g), 1),
	     upper = ir_isub(b, ir_ishl(b, fifth, 8), fifth); /* 255 times */
	ir_i raised = ir_ibsel(b, upper, ir_ilut16(b, nibbles, LANES_TABLE_IQ5_UPPER),
	                       ir_ilut16(b, nibbles, LANES_TABLE_IQ5_LOWER));
	/* By the constant that takes the fifth bits: one register less. */
	return level_bytes(b, raised, ir_ishl(b, in_second_list(b, w, unit_disp, v, 1), IQ5_APART / 2));
}

static ir_i iq2_bytes(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g)
{
	ir_i pairs = weight_bits(b, weight_word(b, w, unit_disp + QUANTS, v, g / 4), (int)(g % 4) * 2, 3);
	return ir_ilut16(b, ir_ior(b, pairs, in_second_list(b, w, unit_disp, v, 4)), LANES_TABLE_IQ2_KS);
}

static ir_i step_number(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v)
{
	return ir_iand(b, weight_byte(b, w, unit_disp + STEPS, v), ir_iconst(b, LIST - 1));
}

static void float_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                        ir_f out[2])
{
	ir_i step = ir_isub(b, ir_ishl(b, step_number(b, w, unit_disp, v), 1), ir_iconst(b, 127));
	out[0] = ir_fmul(b, weight_head_float(b, w, v), ir_i2f(b, step));
}

static void half_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                       ir_f out[2])
{
	ir_i step = ir_isub(b, step_number(b, w, unit_disp, v), ir_iconst(b, 16));
	out[0] = ir_fmul(b, weight_head_half(b, w, 0, v), ir_i2f(b, step));
}

/* ---- packing */

/* The 32 rows' blocks number n, and their scales. */
static void blocks_at(const void *const row[32], uint64_t n, unsigned head, unsigned file_bytes,
                      const uint8_t *block[32])
{
	for (unsigned r = 0; r < 32; r++)
		block[r] = (const uint8_t *)row[r] + head + n * file_bytes;
}

static void put_float_head(uint8_t *out, const void *const row[32])
{
	for (unsigned r = 0; r < 32; r++) {
		memcpy(out + r * 2, row[r], 2);
		memcpy(out + FLOAT_HEAD / 2 + r * 2, (const uint8_t *)row[r] + 2, 2);
	}
}

/* The list's number from the lowest bit to the highest. */
static uint8_t packed_step(uint8_t step) { return (uint8_t)(step >> 1 | (step & 1 ? LIST : 0)); }

static void iq4_pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (FLOAT_HEAD + PARTS * IQ4_UNIT);
		const uint8_t *block[32], *quants[32];
		blocks_at(row, n, sizeof(float), IQ4_FILE, block);
		put_float_head(head, row);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *out = head + FLOAT_HEAD + p * IQ4_UNIT;
			for (unsigned r = 0; r < 32; r++) {
				out[r] = packed_step(block[r][p]);
				quants[r] = block[r] + FILE_QUANTS + p * 16;
			}
			weight_transpose_words((uint32_t *)(out + QUANTS), quants, 4);
		}
	}
}

static void iq5_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[32 * 32], bits[8 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (FLOAT_HEAD + PARTS * IQ5_UNIT);
		const uint8_t *block[32], *quants[32], *fifth[32];
		blocks_at(row, n, sizeof(float), IQ5_FILE, block);
		put_float_head(head, row);
		for (unsigned r = 0; r < 32; r++) {
			quants[r] = block[r] + FILE_QUANTS;
			fifth[r] = block[r] + IQ5_FILE_BITS;
		}
		weight_transpose_words(words, quants, 32);
		weight_transpose_words(bits, fifth, 8);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *out = head + FLOAT_HEAD + p * IQ5_UNIT;
			for (unsigned r = 0; r < 32; r++)
				out[r] = packed_step(block[r][p]);
			weight_join_bits((uint32_t *)(out + QUANTS), bits, p);
			weight_join_nibbles((uint32_t *)(out + QUANTS + BIT_BYTES), words + p / 2 * 8 * 32, p % 2 * 4);
		}
	}
}

/* A part's step, from 0 on, and the list's number above it. */
static uint8_t iq2_step(const uint8_t *block, unsigned part)
{
	unsigned low = block[2 + part / 2] >> part % 2 * 4 & 15, fifth = block[1] >> part & 1;
	return (uint8_t)(low | fifth << 4 | (block[0] >> part & 1 ? LIST : 0));
}

static void iq2_pack(void *dst, const void *const row[32], uint64_t k)
{
	uint32_t words[16 * 32];

	for (uint64_t n = 0; n < k / 256; n++) {
		uint8_t *head = (uint8_t *)dst + n * (HALF_HEAD + PARTS * IQ2_UNIT);
		const uint8_t *block[32], *quants[32], *d[32];
		blocks_at(row, n, sizeof(uint16_t), IQ2_FILE, block);
		for (unsigned r = 0; r < 32; r++) {
			d[r] = row[r];
			quants[r] = block[r] + IQ2_FILE_QUANTS;
		}
		weight_transpose_scales(head, d);
		weight_transpose_words(words, quants, 16);
		for (unsigned p = 0; p < PARTS; p++) {
			uint8_t *out = head + HALF_HEAD + p * IQ2_UNIT;
			for (unsigned r = 0; r < 32; r++)
				out[r] = iq2_step(block[r], p);
			weight_join_pairs((uint32_t *)(out + QUANTS), words + p / 4 * 8 * 32, p % 4 * 2);
		}
	}
}

/* ---- floats */

static float step_scale(float d, uint8_t step) { return d * (float)((packed_step(step) & (LIST - 1)) * 2 - 127); }

static int raised(unsigned table, unsigned entry) { return (uint8_t)lanes_table[table][entry] - RAISED; }

static void iq4_to_f32(float *out, const void *row, uint64_t k)
{
	float d;

	memcpy(&d, row, sizeof d);
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + sizeof d + i / 256 * IQ4_FILE;
		unsigned p = (unsigned)(i % 256 / 32);
		int level =
			raised(LANES_TABLE_IQ4_RAISED, (unsigned)weight_nibble(block + FILE_QUANTS + p * 16, i % 32));
		out[i] = step_scale(d, block[p]) * (float)(level + (block[p] & 1) * IQ4_APART);
	}
}

static void iq5_to_f32(float *out, const void *row, uint64_t k)
{
	float d;

	memcpy(&d, row, sizeof d);
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + sizeof d + i / 256 * IQ5_FILE;
		unsigned p = (unsigned)(i % 256 / 32), at = (unsigned)(i % 32);
		unsigned nibble = block[FILE_QUANTS + p / 2 * 32 + at] >> p % 2 * 4 & 15;
		bool upper = block[IQ5_FILE_BITS + at] >> p & 1;
		int level = raised(upper ? LANES_TABLE_IQ5_UPPER : LANES_TABLE_IQ5_LOWER, nibble);
		out[i] = step_scale(d, block[p]) * (float)(level + (block[p] & 1) * IQ5_APART);
	}
}

static void iq2_to_f32(float *out, const void *row, uint64_t k)
{
	uint16_t d;

	memcpy(&d, row, sizeof d);
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + sizeof d + i / 256 * IQ2_FILE;
		unsigned p = (unsigned)(i % 256 / 32), step = iq2_step(block, p),
			 pair = block[IQ2_FILE_QUANTS + p / 4 * 32 + i % 32] >> p % 4 * 2 & 3;
		int level = lanes_table[LANES_TABLE_IQ2_KS][pair | (step & LIST ? 4 : 0)] - IQ2_OFFSET;
		out[i] = f16_f32(d) * (float)((int)(step & (LIST - 1)) - 16) * (float)level;
	}
}

static const struct weight_quants iq4_quants = {
	.is_signed = true, .registers = 10, .bytes = iq4_bytes, .scale = float_scale
};
static const struct weight_quants iq5_quants = {
	.is_signed = true, .registers = 11, .bytes = iq5_bytes, .scale = float_scale
};
static const struct weight_quants iq2_quants = {
	.max = 53, .offset = IQ2_OFFSET, .registers = 8, .bytes = iq2_bytes, .scale = half_scale
};

const struct weight_format wf_iq4_ks = {
	.type = DTYPE_IQ4_KS,
	.unit_k = 32,
	.unit_bytes = IQ4_UNIT,
	.array = { { STEPS, 1, 1 }, { QUANTS, 4, 4 } },
	.head_units = PARTS,
	.head_bytes = FLOAT_HEAD,
	.float_head = true,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &iq4_quants,
	.pack = iq4_pack,
	.to_f32 = iq4_to_f32,
};
const struct weight_format wf_iq5_ks = {
	.type = DTYPE_IQ5_KS,
	.unit_k = 32,
	.unit_bytes = IQ5_UNIT,
	.array = { { STEPS, 1, 1 }, { QUANTS, 4, 1 }, { QUANTS + BIT_BYTES, 4, 4 } },
	.head_units = PARTS,
	.head_bytes = FLOAT_HEAD,
	.float_head = true,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &iq5_quants,
	.pack = iq5_pack,
	.to_f32 = iq5_to_f32,
};
const struct weight_format wf_iq2_ks = {
	.type = DTYPE_IQ2_KS,
	.unit_k = 32,
	.unit_bytes = IQ2_UNIT,
	.array = { { STEPS, 1, 1 }, { QUANTS, 4, 2 } },
	.head_units = PARTS,
	.head_bytes = HALF_HEAD,
	.lane_sizes = 1 << WEIGHT_LANE_1 | 1 << WEIGHT_LANE_4,
	.step = 4,
	.quants = &iq2_quants,
	.pack = iq2_pack,
	.to_f32 = iq2_to_f32,
};
