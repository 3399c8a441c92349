/* tests/runtime/dense_folder.h - writes the folders of dense layers behind pooling, as sentence-transformers does. */
#ifndef TESTS_DENSE_FOLDER_H
#define TESTS_DENSE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

enum { DENSE_WIDEST = 300 };
struct layer {
	uint32_t in, out;
	const char *act; /* of torch.nn.modules */
	bool bias;
	float weight[DENSE_WIDEST * DENSE_WIDEST], bias_of[DENSE_WIDEST];
};

/* With pseudo-random numbers. */
void layer_fill(struct layer *l, uint32_t in, uint32_t out, const char *act, bool bias);
/* dir/folder/config.json and model.safetensors. */
void layer_write(const char *dir, const char *folder, const struct layer *l);
/* The weights alone: the matrix in this shape, and shape[0] numbers of a bias. */
void layer_write_weights(const char *dir, const char *folder, const struct layer *l, const uint64_t shape[2],
                         bool bias);

/* Of modules.json. */
#define MODULE(name, path) "{\"type\":\"sentence_transformers.models." name "\",\"path\":\"" path "\"}"
#define MODULES_BEGIN "[" MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling")

#endif
