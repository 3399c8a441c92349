/* tests/fuzz/make_seeds.c - writes the first inputs of the fuzzers: make_seeds DIR fills DIR/gguf, DIR/safetensors and DIR/pack, which must exist. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/pack.h"
#include "tests/gguf_writer.h"
#include "tests/tiny_model.h"

static const struct tiny_model models[] = {
	{ "llama", 1, 4, 6, 2, 1, 2, 5, DTYPE_F32, .tied = true },
	{ "llama", 2, 4, 6, 2, 2, 2, 5, DTYPE_BF16, .attention_bias = true, .mlp_bias = true,
	  .extra = ",\"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}" },
	{ "mistral", 1, 4, 6, 2, 1, 2, 5, DTYPE_F16, .tied = true, .extra = ",\"sliding_window\": 3, \"rope_theta\": 1e6" },
	{ "qwen2", 1, 4, 6, 2, 1, 2, 5, DTYPE_F32, .tied = true, .extra = ",\"use_sliding_window\": true, \"sliding_window\": 4, \"max_window_layers\": 0" },
	{ "qwen3", 1, 4, 6, 2, 1, 2, 5, DTYPE_BF16, .tied = true,
	  .extra = ",\"layer_types\": [\"full_attention\"], \"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 4, \"rope_theta\": 1e6, \"mscale\": 1, \"mscale_all_dim\": 1}" },
	{ "qwen3", 1, 32, 32, 2, 1, 2, 5, DTYPE_BF16, .tied = true, .extra = ",\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}" },
};

static void write_hf(const char *dir, size_t i)
{
	size_t n;
	uint8_t *weights = tiny_safetensors(&models[i], &n);
	char *config = tiny_config(&models[i]), name[40];
	uint16_t length = (uint16_t)strlen(config);
	struct bytes all = { 0 };

	bytes_put(&all, &length, sizeof length);
	bytes_put(&all, config, length);
	bytes_put(&all, weights, n);
	snprintf(name, sizeof name, "safetensors/model-%zu", i);
	tiny_write(dir, name, all.p, all.n);
	bytes_free(&all);
	free(config);
	free(weights);
}

static void write_gguf(const char *dir, size_t i, enum dtype type)
{
	char name[40];
	size_t n;
	uint8_t *p = tiny_gguf(&models[i], type, &n, NULL);

	if (!p)
		return;
	snprintf(name, sizeof name, "gguf/model-%zu-%s", i, dtype_table[type].name);
	tiny_write(dir, name, p, n);
	free(p);
}

/* Every value type, a nested array, another alignment. */
static void write_values(const char *dir)
{
	static const uint64_t value = 0x4045000000000000;     /* small as an integer of every width, 42.0 as a double */
	struct gguf_writer w;
	char key[8];
	size_t n;

	gguf_writer_start(&w, 2, 64);
	for (int t = 0; t < GGUF_TYPE_COUNT; t++) {
		snprintf(key, sizeof key, "k%d", t);
		if (t != GGUF_STRING && t != GGUF_ARRAY)
			gguf_write_scalar(&w, key, (enum gguf_type)t, &value);
	}
	gguf_write_strings(&w, "tokenizer.ggml.tokens", (const char *const[]){ "a", "", "<0x41>" }, 3);
	gguf_write_string(&w, "tokenizer.ggml.model", "llama");
	gguf_write_array(&w, "tokenizer.ggml.scores", GGUF_F32, 3, NULL, 12);
	gguf_write_nested(&w, "nested", 4, 2, 3);
	gguf_write_tensor(&w, "t", DTYPE_Q4_K, 3, (const uint64_t[]){ 256, 1, 2 }, NULL, 288);
	uint8_t *p = gguf_writer_finish(&w, &n);
	tiny_write(dir, "gguf/values", p, n);
	free(p);
	gguf_writer_free(&w);
}

static void write_packs(const char *dir)
{
	uint8_t code[300];
	struct pack_item item[5];
	char name[40];

	for (size_t i = 0; i < sizeof code; i++)
		code[i] = (uint8_t)(i * i >> 3);
	memset(item, 0, sizeof item);
	for (uint32_t i = 0; i < 5; i++) {
		item[i].key = (struct key){ .kind = KEY_NORM, .target = TARGET_AVX2, .k = i + 1 };
		item[i].object = (struct object){ .code = code, .code_bytes = 60 * (i + 1), .pool_offset = 8 };
	}
	for (size_t n = 0; n <= 5; n++) {
		size_t bytes;
		uint8_t *p = pack_bytes(item, n, &bytes, NULL);
		snprintf(name, sizeof name, "pack/%zu", n);
		if (p)
			tiny_write(dir, name, p, bytes);
		free(p);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_seeds DIR\n");
		return 2;
	}
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		write_hf(argv[1], i);
		write_gguf(argv[1], i, DTYPE_F32);
		write_gguf(argv[1], i, DTYPE_Q8_0);
	}
	write_values(argv[1]);
	write_packs(argv[1]);
	return 0;
}
