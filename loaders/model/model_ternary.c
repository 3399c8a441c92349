/* loaders/model/model_ternary.c - packed weights of -1, 0 and 1 as blocks of TQ2_0: what model_affine_read.c needs of
 * their bits. */
#include <string.h>

#include "loaders/model/model_affine.h"

bool ternary_scale(uint32_t f32, uint32_t *f16)
{
	const int exponent = (int)(f32 >> 23 & 255) - 127;

	if (f32 & 0x1fff || exponent < -14 || exponent > 15)
		return false;
	*f16 = (f32 >> 16 & 0x8000) | (uint32_t)(exponent + 15) << 10 | (f32 >> 13 & 0x3ff);
	return true;
}

void ternary_put(uint8_t *out, const uint8_t quant[256], uint32_t scale)
{
	for (unsigned i = 0; i < 64; i++) {
		const uint8_t *q = quant + i / 32 * 128 + i % 32;
		out[i] = (uint8_t)(q[0] | q[32] << 2 | q[64] << 4 | q[96] << 6);
	}
	memcpy(out + 64, &scale, 2);
}
