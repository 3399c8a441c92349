/* tests/loaders/model_defaults.h - what is expected of configurations that leave fields out (model_defaults.c). */
#ifndef TESTS_LOADERS_MODEL_DEFAULTS_H
#define TESTS_LOADERS_MODEL_DEFAULTS_H

#include <stddef.h>

struct default_case {
	const char *type;
	const char
		*fields; /* of config.json, beside its sizes: with commas between them; -NAME: that one is not there */
	const char *means; /* words NAME=NUMBER, or kinds=LETTERS; a scale that is not given is -1 */
};
const struct default_case *default_cases(size_t *n);

/* The same of GGUF keys, by their names behind the architecture's (gguf_defaults.c). */
struct default_keys {
	const char *arch;
	const char *keys;     /* words NAME=VALUE */
	const char *means;    /* as above */
	const char *sentence; /* or a part of the one that refuses them */
};
const struct default_keys *default_keys(size_t *n);

struct default_sentence {
	const char *type, *fields, *part; /* of the sentence that refuses it */
};
const struct default_sentence *default_sentences(size_t *n);

#endif
