/* tests/mutate/gguf_image.h - a GGUF file as lists of keys and tensors, which mutate_gguf.c changes. */
#ifndef TESTS_MUTATE_GGUF_IMAGE_H
#define TESTS_MUTATE_GGUF_IMAGE_H

#include "tests/mutate/mutate.h"

/* The format's numbers, written down once more. */
enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, TYPES };

enum { MAX_KEYS = 64, MAX_TENSORS = 64 };

struct item {
	char name[96];
	size_t name_bytes; /* as it is written; the length that is stated is another matter */
	uint64_t name_length;
	uint32_t type, element; /* of a key; of a tensor type alone */
	uint64_t count;         /* of an array, as stated */
	struct bytes value; /* of a key: as it is written, an array's from its first element; of a tensor its data */
	uint32_t n_dims;
	uint64_t dim[6], offset;
};

struct image {
	uint32_t version, alignment;
	uint64_t n_keys_stated, n_tensors_stated; /* added to what is there */
	struct item key[MAX_KEYS], tensor[MAX_TENSORS];
	size_t keys, tensors;
	bool keep_offsets; /* as they were changed; else they follow from the order */
	struct dice *dice;
};

extern const uint8_t width_of[TYPES];
struct item *image_add(struct item *list, size_t *n, size_t max, const char *name);
struct item *add_key(struct image *g, const char *name, uint32_t type, const void *value, size_t n);
void add_u32(struct image *g, const char *name, uint32_t v);
void put_text(struct bytes *b, const void *p, uint64_t n);
void add_text(struct image *g, const char *name, const char *v);
void image_build(struct image *g, struct dice *d);
void image_free(struct image *g);
void lay_out(struct image *g);
void image_write(struct image *g, struct bytes *out);

#endif
