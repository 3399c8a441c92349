/* tests/vision/to_mmproj.h - writes the image encoder of a folder of safetensors as llama.cpp's converters do, by their
 * names, keys and orders. What it knows of both is its own: nothing of vision/ is asked.
 */
#ifndef TESTS_TO_MMPROJ_H
#define TESTS_TO_MMPROJ_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* What is to be other than in a right file; all 0: nothing. */
struct mmproj_edit {
	const char *without, *without_tensor, *more_tensor;
	const char *number; /* a key that has `value` in the place of its own, or as well */
	uint32_t value;
	const char *text, *content; /* the same of a string */
	const char *on, *off;       /* of switches */
	const char *list;           /* of an array of integers, values.. */
	uint32_t count, values[12];
	int swapped; /* as older converters named the matrices of the feed-forward layer */
};

/* The file's bytes, malloc'ed. folder: the whole path. Matrices become `type` (F32, F16, BF16, Q8_0), but patches and
 * positions, which stay floats, as does what is no matrix. */
uint8_t *to_mmproj(const char *folder, enum dtype type, const struct mmproj_edit *e, size_t *n);
/* The same as a file at `path`. */
void write_mmproj(const char *path, const char *folder, enum dtype type, const struct mmproj_edit *e);

#endif
