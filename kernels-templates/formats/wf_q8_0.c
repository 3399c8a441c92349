/* kernels-templates/formats/wf_q8_0.c - Q8_0 weights: blocks of 32 int8 with an f16 scale.
 *
 * Packed, per block of 32 k: 32 f16 scales, one a row; then 8 groups of 4 k: [group][32 rows] words of 4 int8. 1088
 * bytes, as in the file.
 */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

enum {
	FILE_BYTES = 34,
	GROUPS = 8,
	QUANTS = 64 /* offset in the unit */,
	UNIT = QUANTS + GROUPS * 128,
	AT_ONCE = 4 /* row vectors whose weights are in registers */
};

static ir_f load_scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v)
{
	return weight_half(b, w, unit_disp, v);
}

static ir_i load_quants(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned group)
{
	return weight_word(b, w, unit_disp + QUANTS, v, group);
}

static void load(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index, ir_f out[])
{
	ir_f scale = load_scale(b, w, unit_disp, v);
	ir_i q = load_quants(b, w, unit_disp, v, index);
	for (unsigned i = 0; i < 4; i++) {
		ir_i byte = ir_isar(b, i < 3 ? ir_ishl(b, q, 24 - 8 * i) : q, 24);
		out[i] = ir_fmul(b, scale, ir_i2f(b, byte));
	}
}

/* What a column's integer sums begin with. With VNNI weights count as unsigned, 128 too large: the sum of the inputs
 * tells by how much that is wrong. */
static ir_i first_sum(struct ir *b, const struct weight_tile *t, unsigned c, unsigned index)
{
	int32_t at = weight_block_disp(t, c, index, offsetof(struct activation_block, sum));
	if (!t->has_vnni)
		return ir_iconst(b, 0);
	return ir_ishl(b, ir_isub(b, ir_isub(b, ir_iconst(b, 0), ir_ibcast(b, t->xs, at)), ir_ibcast(b, t->xs, at + 4)),
	               7);
}

/* Adds a group of 4 k. */
static ir_i add_group(struct ir *b, const struct weight_tile *t, ir_i q, ir_i x, ir_i sum)
{
	return t->has_vnni ? ir_dot4u(b, q, x, sum) : ir_dot4(b, q, x, sum);
}

/* A group of n row vectors from `first` of the tile on, into their sums. */
static void add_vectors(struct ir *b, const struct weight_tile *t, int32_t unit_disp, unsigned index, unsigned g,
                        unsigned first, unsigned n, ir_i sum[])
{
	ir_i q[AT_ONCE];

	for (unsigned v = 0; v < n; v++) {
		q[v] = load_quants(b, &t->w, unit_disp, t->first_vector + first + v, g);
		if (t->has_vnni)
			q[v] = ir_ixor(b, q[v], ir_iconst(b, (int32_t)0x80808080));
	}
	for (unsigned c = 0; c < t->columns; c++) {
		ir_i x = ir_ibcast(b, t->x, weight_input_disp(t, c, index * GROUPS + g));
		for (unsigned v = 0; v < n; v++)
			sum[v * t->columns + c] = add_group(b, t, q[v], x, sum[v * t->columns + c]);
	}
}

/* The row vectors' integer sums side by side when registers hold them all: weights are then read in their order, which
 * memory rewards, and an input serves every vector. Else vector by vector. Columns innermost: what a lowering derives
 * from the weights is made once. */
static void dot_int8(struct ir *b, const struct weight_tile *t, int32_t unit_disp, unsigned index)
{
	unsigned n = weight_vectors_at_once(t);

	for (unsigned first = 0; first < t->vectors; first += n) {
		ir_i sum[WEIGHT_MAX_ACC];
		for (unsigned i = 0; i < n * t->columns; i++)
			sum[i] = i < t->columns ? first_sum(b, t, i, index) : sum[i - t->columns];
		for (unsigned g = 0; g < GROUPS; g++)
			for (unsigned v = 0; v < n; v += AT_ONCE)
				add_vectors(b, t, unit_disp, index, g, first + v, n - v < AT_ONCE ? n - v : AT_ONCE,
				            sum + v * t->columns);
		for (unsigned v = 0; v < n; v++) {
			ir_f scale = load_scale(b, &t->w, unit_disp, t->first_vector + first + v);
			for (unsigned c = 0; c < t->columns; c++) {
				ir_f both = ir_fmul(b, scale,
				                    ir_fbcast(b, t->xs,
				                              weight_block_disp(t, c, index,
				                                                offsetof(struct activation_block, d))));
				weight_add_product(b, t, first + v, c, both, ir_i2f(b, sum[v * t->columns + c]));
			}
		}
	}
}

static void pack(void *dst, const void *const row[32], uint64_t k)
{
	for (uint64_t n = 0; n < k / 32; n++) {
		uint8_t *unit = (uint8_t *)dst + n * UNIT;
		const uint8_t *quants[32];
		for (unsigned r = 0; r < 32; r++) {
			const uint8_t *block = (const uint8_t *)row[r] + n * FILE_BYTES;
			memcpy(unit + r * 2, block, 2);
			quants[r] = block + 2;
		}
		weight_transpose_words((uint32_t *)(unit + QUANTS), quants, GROUPS);
	}
}

static void to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		const uint8_t *block = (const uint8_t *)row + i / 32 * FILE_BYTES;
		uint16_t scale;
		memcpy(&scale, block, 2);
		out[i] = f16_f32(scale) * (float)(int8_t)block[2 + i % 32];
	}
}

static void scale(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
                  ir_f out[2])
{
	out[0] = load_scale(b, w, unit_disp, v);
}

/* For those who take bytes as they are: a target with dot4. */
static const struct weight_quants quants = {
	.is_signed = true, .as_they_lie = true, .registers = 4, .bytes = load_quants, .scale = scale
};

const struct weight_format wf_q8_0 = {
	.type = DTYPE_Q8_0,
	.unit_k = 32,
	.unit_bytes = UNIT,
	.lane_sizes = 1 << WEIGHT_LANE_2 | 1 << WEIGHT_LANE_4,
	.array = { { 0, 2, 1 }, { QUANTS, 4, GROUPS } },
	.step = 4,
	.load = load,
	.dot_int8 = dot_int8,
	.quants = &quants,
	.pack = pack,
	.to_f32 = to_f32,
};
