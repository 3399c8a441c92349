/* kernels-templates/formats/wf_f16.c - F16 weights. Packed: [k][32 rows] f16. */
#include "jit/ir/lanes.h"
#include "kernels-templates/formats/weight_format.h"

static void load(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index, ir_f out[])
{
	out[0] = weight_half(b, w, unit_disp, v);
}

static void pack(void *dst, const void *const row[32], uint64_t k)
{
	weight_transpose_rows(dst, row, k * 2, numerics_pad(k) * 2, true);
}

static void to_f32(float *out, const void *row, uint64_t k)
{
	for (uint64_t i = 0; i < k; i++) {
		uint16_t h;
		memcpy(&h, (const uint8_t *)row + i * 2, 2);
		out[i] = f16_f32(h);
	}
}

const struct weight_format wf_f16 = {
	.type = DTYPE_F16,
	.unit_k = 1,
	.unit_bytes = 64,
	.lane_sizes = 1 << WEIGHT_LANE_2,
	.array = { { 0, 2, 32 } },
	.step = 1,
	.load = load,
	.pack = pack,
	.to_f32 = to_f32,
};
