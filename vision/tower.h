/* vision/tower.h - the image part of a model: pixel values become features, which replace the image tokens.
 *
 * Owns: the encoder's and the projector's weights on a device, in the format that the file has, and the executables of
 * the pictures' sizes. A picture goes through alone, so its bits depend on nothing else; they are the same for any
 * device and number of threads.
 */
#ifndef VISION_TOWER_H
#define VISION_TOWER_H

#include "include/jitrun_kernel.h"
#include "vision/spec.h"

struct tower;

/* A picture as an image processor of transformers gives it, or as many of the same size (tiles). */
struct tower_pixels {
	const float *values; /* tiles * [channels][height][width]; of families with TOWER_ROWS tiles * [height * width]
	                        rows of tower_patch_numbers() */
	uint32_t tiles;
	uint32_t height, width; /* of a tile in pixels; with TOWER_ROWS in patches */
};

struct tower_features {
	float *values; /* [levels][tokens][width], malloc'ed. Level 0 replaces the tokens' embeddings; what level i has
	                  is added to the result of the text model's layer i - 1 */
	uint64_t tokens;
	uint32_t width, levels;
};

/* path: a folder or file of safetensors that has both parts of the model, or llama.cpp's file for --mmproj. compute is
 * borrowed, and closed later. NULL: err. */
struct tower *tower_open(const char *path, jit_compute *compute, struct error *err);
void tower_close(struct tower *t); /* t may be NULL */
const struct tower_spec *tower_spec_of(const struct tower *t);
/* What the file says of an image processor, where it is one for --mmproj. False: err. */
struct image_processor;
bool tower_read_processor(const struct tower *t, struct image_processor *p, struct error *err);

/* How many tokens such a picture becomes. False: err says why it cannot be encoded. */
bool tower_tokens(const struct tower_spec *s, const struct tower_pixels *p, uint64_t *tokens, struct error *err);
/* out->values is the caller's to free. From one thread at a time. */
bool tower_encode(struct tower *t, const struct tower_pixels *p, struct tower_features *out, struct error *err);

#endif
