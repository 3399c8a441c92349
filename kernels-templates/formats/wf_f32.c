/* kernels-templates/formats/wf_f32.c - F32 weights. Packed: [k][32 rows] f32. */
#include "kernels-templates/formats/weight_format.h"

static void load(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index, ir_f out[])
{
	out[0] = weight_float(b, w, unit_disp, v);
}

static void pack(void *dst, const void *const row[32], uint64_t k)
{
	weight_transpose_rows(dst, row, k * 4, numerics_pad(k) * 4, false);
}

static void to_f32(float *out, const void *row, uint64_t k) { memcpy(out, row, k * 4); }

const struct weight_format wf_f32 = {
	.type = DTYPE_F32,
	.unit_k = 1,
	.unit_bytes = 128,
	.lane_sizes = 1 << WEIGHT_LANE_4,
	.array = { { 0, 4, 32 } },
	.step = 1,
	.load = load,
	.pack = pack,
	.to_f32 = to_f32,
};
