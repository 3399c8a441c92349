/* tests/runtime/jina_model.h - a small encoder of the form of Jina's second embeddings, with random weights: as a
 * folder in the form of its makers, as GGUF files, and computed by plain loops. Its weights are numbers that F16 and
 * BF16 have.
 */
#ifndef TESTS_JINA_MODEL_H
#define TESTS_JINA_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

enum { JINA_HIDDEN = 96, JINA_VOCAB = 40, JINA_CONTEXT = 200 };

/* config.json and model.safetensors. feeds: the field feed_forward_type, or NULL: it is left out. */
void jina_write_folder(const char *dir, const char *feeds);
/* fused: one matrix has the gate's rows, then the other ones. */
void jina_write_gguf(const char *path, enum dtype type, bool fused);
/* n rows of hidden states. types: 0 or 1 of each token. */
void jina_plain(const int32_t *ids, const int32_t *types, size_t n, double *rows);

/* Folders and files of all types beside the plain loops, and what is refused. */
void jina_check(void **state);

#endif
