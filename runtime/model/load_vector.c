/* runtime/model/load_vector.c - how numbers of vectors differ from those in their files. */
#include "runtime/model/load_weights.h"

#include <string.h>

#include "base/math_host.h"
#include "kernels-templates/templates.h"

/* Numbers of each channel, in blocks of 32 channels of which each number's lie side by side. */
static void put_by_channel(float *x, uint64_t n, uint32_t each)
{
	float block[32 * CHANNEL_MAX_STATE];

	for (uint64_t at = 0; at < n; at += 32 * (uint64_t)each) {
		memcpy(block, x + at, 32 * (size_t)each * sizeof *block);
		for (uint32_t c = 0; c < 32; c++)
			for (uint32_t i = 0; i < each; i++)
				x[at + i * 32 + c] = block[c * each + i];
	}
}

void load_change_vector(float *out, const struct model_tensor *t)
{
	for (uint64_t i = 0; t->plus_one && i < t->cols; i++)
		out[i] += 1.0f;
	for (uint64_t i = 0; t->times != 0 && i < t->cols; i++)
		out[i] *= t->times;
	for (uint64_t i = 0; t->each_times && i < t->cols; i++)
		out[i] *= t->each_times[i];
	for (uint64_t i = 0; t->minus_exp && i < t->cols; i++)
		out[i] = (float)-math_host_exp((double)out[i]);
	if (t->by_channel)
		put_by_channel(out, t->cols, t->by_channel);
}
