/* jit/store/container_layout.h - where things lie in a packed model's file, for jit/store/container*.c alone. */
#ifndef JIT_CONTAINER_LAYOUT_H
#define JIT_CONTAINER_LAYOUT_H

#include "jit/store/container.h"

enum {
	CONTAINER_HEADER = 64,
	CONTAINER_RECORD = 64,
	CONTAINER_AT_VERSION = 8,
	CONTAINER_AT_SECTIONS = 12,
	CONTAINER_AT_BYTES = 16,
	CONTAINER_AT_INDEX = 24,
	CONTAINER_AT_INDEX_SUM = 32,
	CONTAINER_AT_SUM = 56,
	CONTAINER_PAGE = 4096,
	CONTAINER_LARGE = 2 << 20
};
static const char container_magic[8] = "jitr\njkm";

/* Where a section of so many bytes begins, behind what ends at `end`; 0 bytes: the index. */
uint64_t container_offset(uint64_t end, uint64_t bytes);
/* How many checksums it has. */
uint64_t container_chunks(uint64_t bytes);

#endif
