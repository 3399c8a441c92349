/* vision/arrange.c - tensors of mmproj files in the order in which they are computed with, which is that of folders of
 * safetensors: then both forms of a model give the same bits.
 */
#include <string.h>

#include "vision/parts.h"

bool arrange_due(const struct tower_spec *s, enum tower_slot slot)
{
	return slot == TOWER_PATCH                  ? s->flags & (TOWER_FILE_FRAMES | TOWER_FILE_PLANES)
	       : slot == TOWER_Q || slot == TOWER_K ? s->flags & TOWER_FILE_PAIRS
	                                            : false;
}

/* [rows][channels][square] of a frame are a part of [rows][channels][frames][square]. */
static void put_frame(const struct tower_spec *s, uint32_t frame, const uint8_t *in, uint64_t bytes, uint8_t *out)
{
	const uint64_t planes = (uint64_t)s->hidden * s->channels, each = bytes / planes;

	for (uint64_t i = 0; i < planes; i++)
		memcpy(out + (i * s->frames + frame) * each, in + i * each, each);
}

/* [rows][channels][square] becomes [rows][square][channels]. */
static void put_pixels(const struct tower_spec *s, const uint8_t *in, uint64_t bytes, uint8_t *out)
{
	const uint64_t square = (uint64_t)s->patch * s->patch, size = bytes / (s->hidden * square * s->channels);

	for (uint64_t row = 0; row < s->hidden; row++)
		for (uint64_t c = 0; c < s->channels; c++)
			for (uint64_t i = 0; i < square; i++, in += size)
				memcpy(out + ((row * square + i) * s->channels + c) * size, in, size);
}

/* Of each head, rows 2i and 2i + 1 become rows i and half + i. */
static void put_halves(const struct tower_spec *s, const uint8_t *in, uint64_t bytes, uint8_t *out)
{
	const uint64_t dim = s->hidden / s->heads, each = bytes / s->hidden;

	for (uint64_t row = 0; row < s->hidden; row++) {
		const uint64_t first = row / dim * dim, i = row % dim;
		memcpy(out + (first + i % 2 * (dim / 2) + i / 2) * each, in + row * each, each);
	}
}

void arrange(const struct tower_spec *s, enum tower_slot slot, uint32_t frame, const uint8_t *in, uint64_t bytes,
             uint8_t *out)
{
	if (slot != TOWER_PATCH)
		put_halves(s, in, bytes, out);
	else if (s->flags & TOWER_FILE_FRAMES)
		put_frame(s, frame, in, bytes, out);
	else
		put_pixels(s, in, bytes, out);
}
