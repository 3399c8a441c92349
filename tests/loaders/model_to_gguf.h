/* tests/loaders/model_to_gguf.h - writes an opened model as a GGUF file, for tests that run one model from both
 * containers. */
#ifndef TESTS_MODEL_TO_GGUF_H
#define TESTS_MODEL_TO_GGUF_H

#include "loaders/model/model.h"
#include "tests/loaders/gguf_writer.h"

/* Weights become `type` (F32, F16, BF16 or Q8_0; rows that are no multiple of 32 stay F32), vectors F32. Q and K get
 * the order of rows that GGUF has for the architecture (model_arch.h). False for what GGUF cannot say (a window in some
 * layers only). No tokenizer is written. The caller finishes and frees the writer. */
bool model_to_gguf(struct gguf_writer *w, const struct model *m, enum dtype type, struct error *err);

/* A tensor's bytes, malloc'ed; NULL when the model has none of it. */
uint8_t *model_tensor_bytes(const struct model *m, const struct model_tensor *t);

float half_to_float(uint16_t h);
uint16_t float_to_half(float f);

#endif
