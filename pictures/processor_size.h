/* pictures/processor_size.h - sizes that image processors resize pictures to, and grids of tiles.
 *
 * Owns: the formulas of transformers' image processors in Python's arithmetic: quotients are doubles, round() goes to
 * the even neighbour, int() cuts off. A size without pixels, or beyond what a picture may have, sets the error.
 */
#ifndef PICTURES_PROCESSOR_SIZE_H
#define PICTURES_PROCESSOR_SIZE_H

#include "pictures/processor.h"

struct size {
	uint32_t width, height;
};

/* Each as the class of its name has it, for a picture of size s. */
bool size_qwen2_vl(const struct image_processor *p, struct size s, struct size *out, struct error *err);
bool size_gemma4(const struct image_processor *p, struct size s, struct size *out, struct error *err);
bool size_pixtral(const struct image_processor *p, struct size s, struct size *out, struct error *err);
bool size_clip(const struct image_processor *p, struct size s, struct size *out, struct error *err);
bool size_lfm2_vl(const struct image_processor *p, struct size s, struct size *out, struct error *err);
/* Idefics 3: the longest edge becomes p->longest; then sides become multiples of a tile's. */
bool size_idefics3(const struct image_processor *p, struct size s, struct size *out, struct error *err);
bool size_idefics3_tiles(const struct image_processor *p, struct size s, struct size *out, struct error *err);

/* Whether LFM2-VL cuts a picture of this size into tiles. */
bool size_is_large(const struct image_processor *p, struct size s);
/* The grid of tiles, from min_tiles to max_tiles, whose ratio of sides is nearest to the picture's: of two that are
 * equally near the later one where the picture has more than half of its pixels. */
struct size size_grid(const struct image_processor *p, struct size s);

#endif
