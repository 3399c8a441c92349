/* tests/loaders/model_check.h - small models of both containers, opened from memory. */
#ifndef TESTS_LOADERS_MODEL_CHECK_H
#define TESTS_LOADERS_MODEL_CHECK_H

#include <stdint.h>

#include "loaders/model/model_load.h"
#include "tests/runtime/tiny_model.h"

struct opened {
	struct model m;
	uint8_t *weights;
	char *config;
	bool ok;
	struct error err;
};

struct opened open_hf(const struct tiny_model *t);
void close_it(struct opened *o);

/* The tests of the other files of the program: the number that failed. */
int model_config_tests(void);

#endif
