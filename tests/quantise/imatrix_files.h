/* tests/quantise/imatrix_files.h - importance matrices in memory, in both forms that are read. */
#ifndef TESTS_IMATRIX_FILES_H
#define TESTS_IMATRIX_FILES_H

#include "tests/loaders/gguf_writer.h"

struct imatrix_part {
	const char *name;
	uint64_t columns, rows;
	const float *sums;  /* rows * columns */
	const float *calls; /* of each row */
};

/* The GGUF form, malloc'ed. */
static inline uint8_t *imatrix_gguf(const struct imatrix_part *part, size_t parts, uint32_t chunks, size_t *n)
{
	struct gguf_writer w;
	char name[100];

	gguf_writer_start(&w, 3, 32);
	gguf_write_string(&w, "general.type", "imatrix");
	gguf_write_u32(&w, "imatrix.chunk_count", chunks);
	for (size_t i = 0; i < parts; i++) {
		const struct imatrix_part *p = &part[i];
		snprintf(name, sizeof name, "%s.in_sum2", p->name);
		gguf_write_tensor(&w, name, DTYPE_F32, 2, (const uint64_t[]){ p->columns, p->rows }, p->sums,
		                  p->columns * p->rows * sizeof(float));
		snprintf(name, sizeof name, "%s.counts", p->name);
		gguf_write_tensor(&w, name, DTYPE_F32, 2, (const uint64_t[]){ 1, p->rows }, p->calls,
		                  p->rows * sizeof(float));
	}
	uint8_t *bytes = gguf_writer_finish(&w, n);
	gguf_writer_free(&w);
	return bytes;
}

/* The older form: sums, and how many calls they are of; rows stand one behind the other. */
static inline uint8_t *imatrix_old(const struct imatrix_part *part, size_t parts, uint32_t chunks, size_t *n)
{
	struct bytes b = { 0 };
	uint32_t v = (uint32_t)parts;

	bytes_put(&b, &v, sizeof v);
	for (size_t i = 0; i < parts; i++) {
		v = (uint32_t)strlen(part[i].name);
		bytes_put(&b, &v, sizeof v);
		bytes_put(&b, part[i].name, v);
		v = (uint32_t)part[i].calls[0];
		bytes_put(&b, &v, sizeof v);
		v = (uint32_t)(part[i].columns * part[i].rows);
		bytes_put(&b, &v, sizeof v);
		bytes_put(&b, part[i].sums, v * sizeof(float));
	}
	bytes_put(&b, &chunks, sizeof chunks);
	*n = b.n;
	return b.p;
}

#endif
