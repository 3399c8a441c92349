/* tests/graph/onnx_models.h - arrays that numpy wrote beside exported models. */
#ifndef TESTS_ONNX_MODELS_H
#define TESTS_ONNX_MODELS_H

#include "graph/tensor.h"

/* Array NAME.npy of an uncompressed .npz file; false: it has none. Fails the test if it cannot be read. */
bool npz_read(const char *path, const char *name, struct tensor *out);

#endif
