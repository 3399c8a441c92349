/* loaders/files/gguf_index.h - what gguf.c and gguf_read.c share: the orders by name behind gguf.private. */
#ifndef LOADERS_GGUF_INDEX_H
#define LOADERS_GGUF_INDEX_H

#include "loaders/files/gguf.h"
#include "loaders/files/names.h"

struct gguf_index {
	struct names kv, tensor;
};

const char *gguf_type_name(enum gguf_type type);

#endif
