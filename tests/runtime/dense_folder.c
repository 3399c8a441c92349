#include "tests/runtime/dense_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/loaders/st_writer.h"
#include "tests/runtime/tiny_model.h"

static uint32_t seed = 11;
static float next(float max)
{
	seed = seed * 1664525 + 1013904223;
	return (float)((int32_t)(seed >> 8) % 10000) / 10000 * max;
}

void layer_fill(struct layer *l, uint32_t in, uint32_t out, const char *act, bool bias)
{
	*l = (struct layer){ .in = in, .out = out, .act = act, .bias = bias };
	for (uint32_t i = 0; i < in * out; i++)
		l->weight[i] = next(0.2f);
	for (uint32_t i = 0; i < out; i++)
		l->bias_of[i] = next(1);
}

void layer_write_weights(const char *dir, const char *folder, const struct layer *l, const uint64_t shape[2], bool bias)
{
	struct st_writer w;
	char name[60];
	size_t n;

	st_writer_start(&w);
	st_write_tensor(&w, "linear.weight", DTYPE_F32, 2, shape, l->weight, shape[0] * shape[1] * sizeof(float));
	if (bias)
		st_write_tensor(&w, "linear.bias", DTYPE_F32, 1, shape, l->bias_of, shape[0] * sizeof(float));
	uint8_t *bytes = st_writer_finish(&w, 8, &n);
	snprintf(name, sizeof name, "%s/model.safetensors", folder);
	tiny_write(dir, name, bytes, n);
	free(bytes);
}

void layer_write(const char *dir, const char *folder, const struct layer *l)
{
	char text[400], name[60];

	snprintf(text, sizeof text,
	         "{\"in_features\": %u, \"out_features\": %u, \"bias\": %s, \"activation_function\": "
	         "\"torch.nn.modules.%s\", \"module_input_name\": \"sentence_embedding\"}",
	         l->in, l->out, l->bias ? "true" : "false", l->act);
	snprintf(name, sizeof name, "%s/config.json", folder);
	tiny_write(dir, name, text, strlen(text));
	layer_write_weights(dir, folder, l, (const uint64_t[2]){ l->out, l->in }, l->bias);
}
