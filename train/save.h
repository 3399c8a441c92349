/* train/save.h - what the files that save share. */
#ifndef TRAIN_SAVE_H
#define TRAIN_SAVE_H

#include "loaders/model/model_arch.h"
#include "train/file.h"
#include "train/train.h"

/* Whether the model came as GGUF, whose tensors have names of their own. */
bool train_is_gguf(const jit_train *t);
const struct arch_row *train_arch(const jit_train *t);
/* Which row of such a file a row of queries or keys is; of other tensors it is the same. */
uint64_t train_row_in_file(const jit_train *t, const struct net_tensor *x, bool pairs, uint64_t row);
/* A copy of what was trained, its rows in the order of files: pairs: elements that rotate together are neighbours. To
 * be freed. NULL: err. */
float *train_ordered(const jit_train *t, const struct net_tensor *x, bool pairs, struct error *err);

/* Copies the texts beside a model's weights: its configuration, its tokenizer, its chat template. */
bool train_copy_texts(const char *from, const char *to, struct error *err);

#endif
