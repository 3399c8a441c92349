/* programs/common/array.h - arrays that programs read, fill, print and write: the elements of a kernel's or a graph's
 * arrays, in files and on the command line.
 *
 * Owns: how an element of each type is written as text, what random:SEED, iota and numbers give an element, and the
 * sentences about files that do not fit. Files are .npy (npy.h), or their bytes alone.
 */
#ifndef PROGRAMS_ARRAY_H
#define PROGRAMS_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "programs/common/npy.h"

/* type: JIT_TYPE_F32 and so on. data: `bytes` of them, the caller's. */
enum { ARRAY_MAX_DIMS = 8 };
struct array {
	const char *name;
	int type;
	unsigned dims;
	uint64_t extent[ARRAY_MAX_DIMS], elements, bytes;
	uint8_t *data;
};

const char *array_type_name(int type); /* "f32" */
const char *array_npy_type(int type);  /* "f4", as numpy has it; of bf16 "u2" */
unsigned array_type_bytes(int type);
bool array_type_is_float(int type);
double array_number(int type, const uint8_t *p); /* the element at p */
/* The type of a .npy file's elements, by what numpy calls it: "f4". -1: none has that name. */
int array_type_of_npy(const char *npy);
/* An element as text; returns out. */
enum { ARRAY_ELEMENT_MAX = 40 };
char *array_element(int type, const uint8_t *data, uint64_t i, char out[ARRAY_ELEMENT_MAX]);

/* A number in a text: its value, and whether it is a whole one. False: it is none. */
bool array_read_number(const char *text, double *v, int64_t *integer, bool *whole);
/* Element i has high bits of a word that depends on seed and i alone; floats are in 0 to 1, without 1. */
void array_fill_random(struct array *a, uint64_t seed);
/* By what an option says of it: FILE.npy, raw:FILE, random:SEED, iota, zeros (data is zeros before), or a number for
 * all elements. option: "--in", for sentences. False: err. */
bool array_fill(struct array *a, const char *option, const char *spec, struct error *err);
/* Whether a file's elements are those of the array. False: err. */
bool array_fits(const struct array *a, const char *path, const char *type, unsigned dims, const uint64_t *extent,
                struct error *err);
/* As .npy; raw: the bytes alone. False: err. */
bool array_write(const struct array *a, const char *path, bool raw, struct error *err);
/* A line: name, type, shape, hash of the bytes (FNV-1a of 64 bits), sum, and first elements. */
void array_print(const struct array *a);

/* What stands behind "name=" in a list of n texts; NULL: nothing. */
const char *array_given(const char *const *list, int n, const char *name);
/* Writes the name in front of the '=' into out. False, err: there is none, or it does not fit. */
enum { ARRAY_NAME_MAX = 128 };
bool array_option_name(const char *option, const char *entry, char out[ARRAY_NAME_MAX], struct error *err);

#endif
