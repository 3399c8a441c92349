/* loaders/files/safetensors.h - the safetensors container: a JSON header, then the tensors' bytes without gaps.
 *
 * Owns: the index of one file. Every extent has been checked against shape, type and file size, and the tensors tile
 * the data exactly, as the format demands. A tensor may begin at any byte: the format promises no alignment. Names are
 * views into the file's copied header (loaders/file), or into one buffer of their own when they are written with
 * escapes.
 */
#ifndef LOADERS_SAFETENSORS_H
#define LOADERS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "loaders/files/file.h"
#include "loaders/files/names.h"

enum { SAFETENSORS_MAX_RANK = 8, SAFETENSORS_MAX_HEADER = 100000000 };

struct safetensors_tensor {
	struct name_ref name;
	enum dtype type;
	uint32_t rank;
	uint64_t dim[SAFETENSORS_MAX_RANK]; /* slowest first, as in the file; 1 beyond the rank */
	uint64_t offset, bytes;             /* from the start of the file */
};

struct safetensors {
	uint64_t size;
	const char *path;
	uint64_t data_start;
	uint32_t n_tensors;
	struct safetensors_tensor *tensor;
	char *strings; /* names that needed unescaping */
};

/* Copies the file's header and parses it; the file must stay where it is (its label is kept by pointer). header_only:
 * the data may be missing or cut. */
bool safetensors_open(struct safetensors *s, struct file *f, bool header_only, struct error *err);
/* The same of n bytes in memory, which the index looks into; path only names them in messages (kept by pointer). */
bool safetensors_parse(struct safetensors *s, const uint8_t *base, uint64_t n, const char *path, bool header_only,
                       struct error *err);
void safetensors_free(struct safetensors *s);

#endif
