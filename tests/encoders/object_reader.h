/* tests/encoders/object_reader.h - a reader of AMDGPU objects that shares nothing with their writer. */
#ifndef TESTS_ENCODERS_OBJECT_READER_H
#define TESTS_ENCODERS_OBJECT_READER_H

#include <stddef.h>
#include <stdint.h>

#include <stdio.h>

#include "encoders/amdgpu_object.h"

static const char *const targets[] = { "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034",
	                               "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102",
	                               "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201" };
enum { TARGETS = sizeof targets / sizeof targets[0] };

struct image {
	const uint8_t *p;
	size_t size;
	const uint8_t *symbols, *strings, *hash; /* by the dynamic table */
	uint32_t n_symbols;
	const uint8_t *note;
	uint32_t note_size;
};

struct reader {
	const uint8_t *p, *end;
	FILE *out;
};

static const struct amdgpu_arg some_args[] = { { "out", 0, 8, AMDGPU_ARG_BUFFER },
	                                       { "in", 8, 8, AMDGPU_ARG_BUFFER },
	                                       { "rows", 16, 4, AMDGPU_ARG_VALUE },
	                                       { NULL, 20, 4, AMDGPU_ARG_VALUE } };

enum { KERNELS = 4 };

uint64_t little_endian(const uint8_t *p, unsigned n);
const uint8_t *object_header(const struct image *o, unsigned i);
/* What lies at an address; `n` bytes of it must be inside one loaded segment. */
const uint8_t *object_at(const struct image *o, uint64_t address, uint64_t n);
void open_image(struct image *o, const uint8_t *p, size_t size);
/* A dynamic symbol through the hash table. */
const uint8_t *object_symbol(const struct image *o, const char *name);
const uint8_t *object_descriptor(const struct image *o, const char *kernel);
/* The whole metadata as text; the caller frees. */
char *object_metadata(const struct image *o);
size_t make_code(const char *target, unsigned words, uint8_t **code);
void make_kernels(const char *target, struct amdgpu_kernel k[KERNELS]);
void free_kernels(struct amdgpu_kernel k[KERNELS]);
struct amdgpu_object make_object(const char *target, const struct amdgpu_kernel *k, size_t n);
void check_code(const struct image *o, const struct amdgpu_kernel *k);

/* The tests of the other files of the program: the number that failed. */
int object_tool_tests(void);

#endif
