/* tests/runtime/mixed_model.h - a small random model whose matrices have any formats, as a GGUF file. */
#ifndef TESTS_MIXED_MODEL_H
#define TESTS_MIXED_MODEL_H

#include <stdint.h>

#include "base/dtype.h"

enum { MIXED_LAYERS = 2, MIXED_VOCAB = 64 };

/* The formats of matrices, a row for each layer. */
enum mixed_matrix { MIXED_Q, MIXED_K, MIXED_V, MIXED_O, MIXED_GATE, MIXED_UP, MIXED_DOWN, MIXED_MATRICES };
struct mixed_types {
	enum dtype layer[MIXED_LAYERS][MIXED_MATRICES];
};

/* Two formats side by side wherever matrices share an input; the second layer has them the other way round. */
struct mixed_types mixed_pair(enum dtype one, enum dtype other);
/* Writes the model to a file that goes away with its descriptor, which it returns; path names it. Fails the test when
 * it cannot. */
int mixed_model(char path[64], const struct mixed_types *types);

#endif
