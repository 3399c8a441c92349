/* tests/runtime/made_encoder.h - an image encoder without a tower: pictures are decoded and planned, and cannot be
 * encoded. */
#ifndef MADE_ENCODER_H
#define MADE_ENCODER_H

#include <string.h>

#include "vision/parts.h"
#include "vision/seer.h"

/* A BMP file of one pixel. */
static const uint8_t dot[] = { 'B', 'M', 58, 0, 0, 0, 0, 0, 0,  0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0,
	                       0,   0,   1,  0, 0, 0, 1, 0, 24, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0, 0,
	                       0,   0,   0,  0, 0, 0, 0, 0, 0,  0, 0,  0, 0, 0, 7,  8, 9, 0 };

static struct tower made_tower;
static struct jit_image_encoder made_encoder = { .image_token = 1000000, .lock = PTHREAD_MUTEX_INITIALIZER };

static inline jit_image_encoder *encoder_make(jit_model *m)
{
	static const char text[] =
		"{\"image_processor_type\": \"CLIPImageProcessor\", \"size\": {\"shortest_edge\": 28}, "
		"\"crop_size\": {\"height\": 28, \"width\": 28}}",
			  config[] = "{\"vision_config\": {\"patch_size\": 14, \"image_size\": 28}}";
	const struct processor_files files = {
		.name = "made",
		.preprocessor = text,
		.n_preprocessor = strlen(text),
		.config = config,
		.n_config = strlen(config)
	};
	struct error err = { 0 };

	made_encoder.model = m;
	made_encoder.tower = &made_tower;

	return processor_read(&made_encoder.processor, &files, &err) ? &made_encoder : NULL;
}

#endif
