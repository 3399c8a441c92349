/* programs/common/npy.h - arrays in files as numpy writes them (.npy), read and written.
 *
 * Owns: the format's versions 1.0 to 3.0, and the sentences about a file that is not one. Elements are little-endian
 * and in C's order; others are refused by name. Every byte of a file is checked before it is used.
 */
#ifndef PROGRAMS_NPY_H
#define PROGRAMS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { NPY_MAX_DIMS = 32 };
struct npy {
	char type[8]; /* "f4", "i8", "u2", "b1": a letter, and how many bytes an element has */
	unsigned dims;
	uint64_t extent[NPY_MAX_DIMS];
	uint64_t elements, bytes; /* of all elements */
	size_t data;              /* where they begin in the file */
};

/* What a file's first n bytes say; name: for sentences. False: err. */
bool npy_read_header(struct npy *out, const char *name, const uint8_t *file, size_t n, struct error *err);
/* "(3, 4)" as numpy writes it; returns out. */
enum { NPY_SHAPE_MAX = 22 * NPY_MAX_DIMS + 4 };
char *npy_shape(const struct npy *a, char out[NPY_SHAPE_MAX]);
/* A header for type, dims and extent of *a. False: it could not be written. */
bool npy_write_header(const struct npy *a, FILE *out);

#endif
