#include "base/floats.h"

#include <string.h>

#include "base/number.h"

void floats_read(float *out, const void *from, enum dtype type, uint64_t n)
{
	const uint8_t *p = from;
	uint16_t half;

	if (type == DTYPE_F32) {
		memcpy(out, p, n * sizeof *out);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&half, p + 2 * i, sizeof half);
		out[i] = type == DTYPE_F16 ? number_from_half(half) : number_from_bf16(half);
	}
}

void floats_write(void *out, enum dtype type, const float *x, uint64_t n)
{
	uint8_t *p = out;

	if (type == DTYPE_F32) {
		memcpy(p, x, n * sizeof *x);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		const uint16_t half = type == DTYPE_F16 ? number_to_half(x[i]) : number_to_bf16(x[i]);
		memcpy(p + 2 * i, &half, sizeof half);
	}
}
