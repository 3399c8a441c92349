/* tests/support/rank_model.h - the model that comes with the sources, with a classifier that ranks texts behind it, as
 * llama.cpp's conversion of Qwen3-Reranker writes one; behind cmocka.h. */
#ifndef TESTS_RANK_MODEL_H
#define TESTS_RANK_MODEL_H

#include <stdint.h>

#include "base/dtype.h"

/* A tensor more; NULL name: none. Elements are written as they are given. */
struct rank_tensor {
	const char *name;
	enum dtype type;
	unsigned n_dims;
	uint64_t ne[2];
	const void *data;
};
struct rank_model {
	struct rank_tensor tensor[4];
	int pooling;               /* pooling_type */
	const char *labels[4];     /* NULL behind the last; none: no such key */
	const char *template_text; /* tokenizer.chat_template.rerank; NULL */
	uint32_t sizes[4];         /* dense_2_feat_in, dense_2_feat_out, and of dense_3; 0: no such key */
};
/* The file of that path. */
void rank_model_write(const char *path, const struct rank_model *m);

#endif
