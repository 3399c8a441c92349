/* tests/loaders/model_gguf_keys.h - the changes of a GGUF file. */
#ifndef TESTS_LOADERS_MODEL_GGUF_KEYS_H
#define TESTS_LOADERS_MODEL_GGUF_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/loaders/model_to_gguf.h"

typedef void edit_fn(struct gguf_writer *w);

/* Divisors that are taken. */
void gguf_freqs_ok(struct gguf_writer *w);
/* error NULL: opens, with these values */
struct gguf_key_change {
	edit_fn *edit;
	const char *error;
	enum rope_scaling scaling;
	double factor, attention;
	uint32_t window;
};
extern const struct gguf_key_change gguf_key_changes[];
extern const size_t gguf_key_changes_n;

#endif
