/* tests/runtime/latent_model.h - small models with latent attention and random weights: their files, and their logits
 * by plain loops in double precision. */
#ifndef TESTS_LATENT_MODEL_H
#define TESTS_LATENT_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

enum { LATENT_HIDDEN = 64, LATENT_FFN = 96, LATENT_LAYERS = 2, LATENT_VOCAB = 101 };

struct latent_model {
	unsigned heads, rank, query_rank, rest, rotating, value;
	bool yarn;
	uint32_t seed;
	unsigned later,
		said; /* layers behind the model's own that predict further tokens, and how many files say there are */
	const char *key; /* another one of a GGUF file, and its value */
	unsigned key_value;
	const char *skip, *longer; /* a key or tensor that a file lacks; a tensor that has a row more */
};

/* config.json and model.safetensors, of F32. */
void latent_write_hf(const struct latent_model *m, const char *folder);
/* The same as GGUF; Q8_0: all matrices but the embedding. */
void latent_write_gguf(const struct latent_model *m, const char *path, enum dtype type);
/* Behind these tokens. */
void latent_logits(const struct latent_model *m, const int *ids, int n, double out[LATENT_VOCAB]);

#endif
