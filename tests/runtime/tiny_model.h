/* tests/runtime/tiny_model.h - writes small safetensors models of any accepted shape, with pseudo-random weights. */
#ifndef TESTS_TINY_MODEL_H
#define TESTS_TINY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

struct tiny_model {
	const char *arch; /* model_type */
	uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
	enum dtype type; /* of the matrices: F32, F16 or BF16 */
	bool tied, attention_bias, mlp_bias;
	const char *extra; /* more members of config.json, each with a comma before it, or NULL */
	const char *skip;  /* the tensor of this name is left out, or NULL */
	unsigned align;    /* of the data; 0: 8 */
	const char *add;   /* one tensor more, of this name and 1 element, or NULL */
	enum {
		HEAD_AS_TIED,
		HEAD_EQUAL,
		HEAD_OTHER
	} head; /* lm_head.weight in the file although it is tied: the embedding's bytes, or others */
};

/* The smallest one there is: llama, 1 layer. */
extern const struct tiny_model tiny_min;

char *tiny_config(const struct tiny_model *t);                    /* malloc'ed text of config.json */
uint8_t *tiny_safetensors(const struct tiny_model *t, size_t *n); /* malloc'ed file */
/* The same as GGUF, weights of the given type; NULL and err when the loaders refuse the model. */
uint8_t *tiny_gguf(const struct tiny_model *t, enum dtype type, size_t *n, struct error *err);

/* dir/name */
void tiny_write(const char *dir, const char *name, const void *p, size_t n);
/* Writes config.json and model.safetensors into an existing directory. */
void tiny_write_hf(const char *dir, const struct tiny_model *t);

#endif
