/* tests/loaders/st_writer.h - builds safetensors files in memory. */
#ifndef TESTS_ST_WRITER_H
#define TESTS_ST_WRITER_H

#include "base/dtype.h"
#include "tests/loaders/gguf_writer.h"

struct st_writer {
	struct bytes header, data;
};

void st_writer_start(struct st_writer *w);
/* shape slowest first; data may be NULL for zeros */
void st_write_tensor(struct st_writer *w, const char *name, enum dtype type, unsigned rank, const uint64_t *shape,
                     const void *data, size_t bytes);
/* The whole file, malloc'ed; frees the writer. The header is padded with spaces so that the data begin at a multiple of
 * align. */
uint8_t *st_writer_finish(struct st_writer *w, unsigned align, size_t *n);
/* A file of this header text and this much data, in a malloc'ed buffer. */
uint8_t *st_from_text(const char *header, size_t header_bytes, size_t data_bytes, size_t *n);

#endif
