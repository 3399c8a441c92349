/* tests/support/lora_folder.h - writes adapters as PEFT saves them, of random numbers; behind cmocka.h. */
#ifndef TESTS_LORA_FOLDER_H
#define TESTS_LORA_FOLDER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A module and its matrix's sizes; of embed_tokens, `in` is how many tokens there are. With ".weight" behind its path
 * it is there whole. */
struct lora_module {
	const char *path;
	unsigned out, in;
};

/* Those of a layer of models/tale-q8_0.gguf. */
#define LORA_OF(i, name, out, in) \
	{ \
		"model.layers." #i "." name, out, in \
	}
#define LORA_TALE_LAYER(i) \
	LORA_OF(i, "self_attn.q_proj", 256, 256), LORA_OF(i, "self_attn.k_proj", 128, 256), \
		LORA_OF(i, "self_attn.v_proj", 128, 256), LORA_OF(i, "self_attn.o_proj", 256, 256), \
		LORA_OF(i, "mlp.gate_proj", 768, 256), LORA_OF(i, "mlp.up_proj", 768, 256), \
		LORA_OF(i, "mlp.down_proj", 256, 768)
static const struct lora_module lora_tale[] = {
	LORA_TALE_LAYER(0),
	LORA_TALE_LAYER(1),
	LORA_TALE_LAYER(2),
	LORA_TALE_LAYER(3),
	LORA_TALE_LAYER(4),
	LORA_TALE_LAYER(5),
	{ "model.embed_tokens", 256, 4096 },
	{ "lm_head", 4096, 256 }
};
/* Those of layers; with the embedding and the output, too. */
enum { LORA_TALE_ALL = sizeof lora_tale / sizeof *lora_tale, LORA_TALE = LORA_TALE_ALL - 2 };

struct lora_written {
	const struct lora_module *module;
	size_t n;
	unsigned rank;
	float size; /* of its numbers */
	uint64_t seed;
	const char *config; /* of adapter_config.json, behind peft_type and r: ", \"lora_alpha\": 8" */
	const char *row;    /* a third tensor of each module, of a number for each row: ".lora_B.bias"; NULL: none */
};

static inline void lora_put(const char *dir, const char *name, const char *bytes, size_t n)
{
	char path[1200];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Into a folder that is there. */
static inline void lora_folder(const char *dir, const struct lora_written *w)
{
	char config[4096], *header = malloc(600 * w->n + 64), *all;
	size_t data = 0, at = 8 + (size_t)sprintf(header + 8, "{");
	uint64_t state = w->seed;

	for (size_t i = 0; i < w->n; i++)
		for (int b = 0; b < (w->row ? 3 : 2); b++) {
			const struct lora_module *m = &w->module[i];
			const bool whole = strlen(m->path) > 7 && strcmp(m->path + strlen(m->path) - 7, ".weight") == 0;
			if (whole && b)
				continue;
			const size_t rows = b || whole ? m->out : w->rank,
				     cols = b == 2 ? 1
			                    : b    ? w->rank
			                           : m->in,
				     bytes = rows * cols * 4;
			static const char *const
				ends[2][2] = { { ".lora_A.weight", ".lora_B.weight" },
				               { ".lora_embedding_A", ".lora_embedding_B" } },
				form[] = "%s\"base_model.model.%s%s\":{\"dtype\":\"F32\",\"shape\":[%zu%s%.0zu],"
					 "\"data_offsets\":[%zu,%zu]}";
			at += (size_t)sprintf(header + at, form, i || b ? "," : "", m->path,
			                      whole    ? ""
			                      : b == 2 ? w->row
			                               : ends[strstr(m->path, "embed_tokens") != NULL][b],
			                      rows, b == 2 ? "" : ",", b == 2 ? 0 : cols, data, data + bytes);
			data += bytes;
		}
	header[at++] = '}';
	while (at % 8)
		header[at++] = ' ';
	const uint64_t length = at - 8;
	memcpy(header, &length, 8);
	all = malloc(at + data);
	assert_non_null(all);
	memcpy(all, header, at);
	for (size_t i = 0; i < data; i += 4) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		const float f = ((float)(state >> 40) / (1 << 23) - 1) * w->size;
		memcpy(all + at + i, &f, 4);
	}
	lora_put(dir, "adapter_model.safetensors", all, at + data);
	const int n = snprintf(config, sizeof config, "{\"peft_type\": \"LORA\", \"r\": %u%s}", w->rank,
	                       w->config ? w->config : "");
	lora_put(dir, "adapter_config.json", config, (size_t)n);
	free(header);
	free(all);
}

#endif
