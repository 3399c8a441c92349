/* pictures/processor.h - a picture becomes what a model's image tower takes.
 *
 * Owns: the fields of preprocessor_config.json, processor_config.json and clip.* keys, and what the image processors of
 * transformers make of a picture by them: its size, its tiles, its numbers in their order, and the tokens that stand
 * for it in a prompt. Sizes are those of Python's arithmetic, and resizing is Pillow's (pictures/resize.h).
 *
 * A picture is one or more parts: whole, cut into tiles with a small whole picture behind them, or whole with crops
 * behind it. The tower encodes each part by itself and gives `tokens` features for it.
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
	PROCESSOR_GEMMA3,   /* one size; with pan and scan, crops behind it */
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
	uint32_t token_columns; /* of these, in a row of the picture; tokens / token_columns rows */
	uint32_t tile_row, tile_column; /* of a tile or crop, from 0 */
	bool is_tile;                   /* a piece of the picture, not all of it */
};

/* What stands for a picture in a prompt, in order: texts, whose special tokens count as such, and places for features.
 * A model's template writes `placeholder` once for each picture; these pieces take its place. */
struct image_piece {
	char text[48]; /* "" where features are */
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
	uint32_t n_pieces;
	struct image_piece *pieces;
};

enum { PROCESSOR_TEXT = 40 };

/* What the files say, with each class's own defaults for what they leave out. */
struct image_processor {
	enum processor_kind kind;
	/* steps that are left out or done */
	bool do_resize, do_rescale, do_normalize, do_center_crop, do_split, do_pan_and_scan;
	enum resample resample;
	double rescale; /* factor of a byte: 1 / 255 */
	double mean[3], std[3];
	uint32_t height, width;     /* one size, or that of a tile */
	uint32_t shortest, longest; /* edges in pixels */
	uint64_t min_pixels, max_pixels;
	uint32_t crop_height, crop_width;
	uint32_t patch, merge, frames; /* patch: pixels of a side; merge: patches of a side that become one token */
	uint32_t min_tiles, max_tiles;
	bool thumbnail;                  /* the small whole picture behind tiles */
	uint32_t min_tokens, max_tokens; /* of a part: LFM2-VL; Gemma 4 has the latter */
	double tolerance; /* LFM2-VL: a picture with this many times the pixels of max_tokens is cut into tiles */
	uint32_t crop_min, crop_max; /* pan and scan: pixels of a crop's side, number of crops */
	double crop_ratio;           /* and the ratio of sides from which there are any */
	uint32_t part_tokens;        /* features of a part where all parts have the same number, else 0 */
	/* what the prompt has: the template's placeholder, and the texts before and behind a picture's features */
	char placeholder[PROCESSOR_TEXT], begin[PROCESSOR_TEXT], end[PROCESSOR_TEXT];
	char row_break[PROCESSOR_TEXT]; /* Pixtral: behind each row of features but the last */
};

/* The texts of a folder's files, without a byte order mark; NULL for one that is not there. name is the folder's. */
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

/* Everything but the numbers for a picture of this size: parts with sizes and tokens, pieces. values stay NULL. */
bool processor_plan(const struct image_processor *p, uint32_t width, uint32_t height, struct processed_image *out,
                    struct error *err);
/* The same with the numbers. False with err set: *out is all 0. */
bool processor_run(const struct image_processor *p, const struct picture *picture, struct processed_image *out,
                   struct error *err);
void processed_image_free(struct processed_image *image);

#endif
