/* pictures/processor.h - a picture becomes what a model's image tower takes.
 *
 * Owns: the fields of preprocessor_config.json, processor_config.json and clip.* keys, and what the image processors of
 * transformers make of a picture by them: its size, its tiles, its numbers in their order, and the tokens that stand
 * for it in a prompt. Sizes are those of Python's arithmetic, resizing is Pillow's (pictures/resize.h), and a byte
 * becomes a number as in transformers' torchvision backend, which is its default.
 *
 * A picture is one or more parts: itself, or tiles with the whole picture in small behind them. The tower encodes each
 * part by itself and gives `tokens` features for it.
 *
 * Never: knows weights, tokenizers' ids, sessions or devices; reads a picture's file (pictures/picture.h does).
 */
#ifndef PICTURES_PROCESSOR_H
#define PICTURES_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pictures/picture.h"
#include "pictures/resize.h"

/* Which rules: a class of image processors in transformers. */
enum processor_kind {
	PROCESSOR_QWEN2_VL, /* Qwen2-VL, Qwen2.5-VL, Qwen3-VL, Qwen3.5: one part of any size, in windows of patches */
	PROCESSOR_GEMMA3,   /* one size. Pan and scan is off, as Gemma3Processor has it unless a call asks for it */
	PROCESSOR_GEMMA4,   /* one part of any size, in patches */
	PROCESSOR_IDEFICS3, /* Idefics 3, SmolVLM: tiles of one size, the small whole picture last */
	PROCESSOR_GOT_OCR2, /* InternVL: tiles of one size, the small whole picture last */
	PROCESSOR_CLIP,     /* LLaVA: shortest edge, centre crop; SigLIP without a crop */
	PROCESSOR_PIXTRAL,  /* Pixtral, Mistral Small 3.x, Ministral 3: one part of any size */
	PROCESSOR_LFM2_VL,  /* LFM2-VL: one part of any size, or tiles and the small whole picture last; in patches */
	PROCESSOR_KINDS
};

/* How a part's numbers lie. */
enum image_layout {
	/* [3][height][width]: planes of red, green and blue */
	IMAGE_PLANES,
	/* [rows * columns][patch][patch][3]: patches by rows; in each its pixels by rows */
	IMAGE_PATCHES,
	/* [rows * columns][3][frames][patch][patch]: patches by windows of merge x merge (windows by rows, and in each
	 * its patches by rows). A picture is a film of `frames` equal frames. */
	IMAGE_WINDOWS
};

/* What the tower encodes at once. */
struct image_part {
	float *values; /* into struct processed_image, n_values of them */
	size_t n_values;
	uint32_t width, height; /* pixels, multiples of the patch but with IMAGE_PLANES */
	uint32_t columns, rows; /* patches: width / patch, height / patch. transformers' grid is (1, rows, columns) */
	uint32_t tokens;        /* features that the tower gives for it, after pooling or merging */
	uint32_t token_columns; /* of these, in a row of the picture; in rows from the top; a class token is before them
	                         */
	uint32_t tile_row, tile_column; /* of a tile, from 0 */
	bool is_tile;                   /* a segment of the picture, not all of it */
};

/* What stands for a picture in a prompt, in order: texts, whose special tokens count as such, and places for features.
 * A model's template writes `placeholder` once for each picture; these segments take its place. */
struct prompt_segment {
	char text[64]; /* "" where features are */
	uint32_t part, first,
		n; /* features first .. first + n - 1 of this part; each takes the place of one image token */
};

struct processed_image {
	enum image_layout layout;
	uint32_t patch, merge, frames; /* pixels of a patch's side; patches of a window's side; equal frames. merge and
	                                * frames are 1 but with IMAGE_WINDOWS */
	uint32_t n_parts;
	struct image_part *parts;
	float *values; /* of all parts in order: transformers' pixel_values without padding */
	size_t n_values;
	uint32_t tile_rows, tile_columns; /* 0: not cut into tiles */
	uint32_t width, height;           /* of the picture before anything was done */
	uint32_t tokens;                  /* features of all parts together */
	uint32_t n_segments;
	struct prompt_segment *segments;
};

enum { PROCESSOR_TEXT = 40 };

/* What the files say, with each class's own defaults for what they leave out. */
struct image_processor {
	enum processor_kind kind;
	bool do_resize, do_rescale, do_normalize, do_center_crop;
	bool split; /* into tiles, where a picture is large enough */
	enum resample resample;
	double rescale;             /* factor of a byte: 1 / 255 */
	double mean[3], std[3];     /* of red, green, blue */
	uint32_t height, width;     /* of a part, where all have one size: tiles, too */
	uint32_t shortest, longest; /* edges in pixels that a picture is resized to; 0: not by an edge */
	uint64_t min_pixels, max_pixels;
	uint32_t crop_height, crop_width;
	uint32_t patch, merge,
		frames; /* pixels of a patch's side; patches of a side that become one token; equal frames */
	uint32_t min_tiles, max_tiles;   /* of a picture that is cut; the whole one in small is not counted */
	bool thumbnail;                  /* the whole picture in small behind the tiles */
	uint32_t min_tokens, max_tokens; /* of a part: LFM2-VL has both, Gemma 4 the latter */
	double tolerance;                /* LFM2-VL: a picture of more than this times max_tokens is cut into tiles */
	bool class_token;                /* LLaVA: the tower's class token is one of the features */
	/* what the prompt has: the template's placeholder, and the texts before and behind a picture's features */
	char placeholder[PROCESSOR_TEXT], begin[PROCESSOR_TEXT], end[PROCESSOR_TEXT];
	char row_break[PROCESSOR_TEXT]; /* Pixtral: behind each row of features but the last */
};

/* The texts of a folder's files; NULL for one that is not there. name is the folder's. */
struct processor_files {
	const char *name;
	const char *preprocessor; /* preprocessor_config.json */
	size_t n_preprocessor;
	const char *processor; /* processor_config.json, which may hold the other one's fields in "image_processor" */
	size_t n_processor;
	const char *config; /* config.json: sizes of the tower, from which a part's tokens follow */
	size_t n_config;
};
/* False with err set: one sentence with the file, the field, its value and what was expected. */
bool processor_read(struct image_processor *p, const struct processor_files *files, struct error *err);
/* The same of the files in a folder. */
bool processor_read_folder(struct image_processor *p, const char *folder, struct error *err);
struct gguf; /* loaders/files/gguf.h */
/* The same from the keys of llama.cpp's --mmproj files. */
bool processor_read_gguf(struct image_processor *p, const struct gguf *g, struct error *err);

/* Everything but the numbers for a picture of this size: parts with sizes and tokens, segments. values stay NULL. */
bool processor_plan(const struct image_processor *p, uint32_t width, uint32_t height, struct processed_image *out,
                    struct error *err);
/* The same with the numbers. False with err set: *out is all 0. */
bool processor_run(const struct image_processor *p, const struct picture *picture, struct processed_image *out,
                   struct error *err);
void processed_image_free(struct processed_image *image);

#endif
