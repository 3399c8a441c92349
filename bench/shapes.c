#include "bench/shapes.h"

#include <stddef.h>
#include <string.h>

static const struct shape shapes[] = {
	/*                          hidden layers heads kv  dim  ffn    vocab   context theta eps   tied  factor */
	{ "qwen3-0.6b", "qwen3",    1024, 28, 16, 8, 128, 3072,  151936, 40960,  1e6, 1e-6, true,  0 },
	{ "qwen3-1.7b", "qwen3",    2048, 28, 16, 8, 128, 6144,  151936, 40960,  1e6, 1e-6, true,  0 },
	{ "qwen3-4b", "qwen3",      2560, 36, 32, 8, 128, 9728,  151936, 40960,  1e6, 1e-6, true,  0 },
	{ "llama-3.2-1b", "llama",  2048, 16, 32, 8, 64,  8192,  128256, 131072, 5e5, 1e-5, true,  32 },
	{ "llama-3.2-3b", "llama",  3072, 28, 24, 8, 128, 8192,  128256, 131072, 5e5, 1e-5, true,  32 },
	{ "llama-3.1-8b", "llama",  4096, 32, 32, 8, 128, 14336, 128256, 131072, 5e5, 1e-5, false, 8 },
	{ "mistral-7b", "llama",    4096, 32, 32, 8, 128, 14336, 32768,  32768,  1e6, 1e-5, false, 0 },
	{ "tiny", "llama",          256,  2,  4,  2, 64,  512,   512,    2048,   1e4, 1e-5, true,  0 },
};

#define SAME(id) DTYPE_##id, DTYPE_##id
static const struct mixture mixtures[] = {
	{ "f32", 0, SAME(F32), DTYPE_F32 },       { "f16", 1, SAME(F16), DTYPE_F16 },       { "bf16", 32, SAME(BF16), DTYPE_BF16 },
	{ "q8_0", 7, SAME(Q8_0), DTYPE_Q8_0 },    { "q4_0", 2, SAME(Q4_0), DTYPE_Q6_K },    { "q4_1", 3, SAME(Q4_1), DTYPE_Q6_K },
	{ "q5_0", 8, SAME(Q5_0), DTYPE_Q6_K },    { "q5_1", 9, SAME(Q5_1), DTYPE_Q6_K },    { "q2_k", 10, SAME(Q2_K), DTYPE_Q6_K },
	{ "q3_k", 11, SAME(Q3_K), DTYPE_Q6_K },   { "q4_k", 14, SAME(Q4_K), DTYPE_Q6_K },   { "q4_k_m", 15, DTYPE_Q4_K, DTYPE_Q6_K, DTYPE_Q6_K },
	{ "q5_k", 16, SAME(Q5_K), DTYPE_Q6_K },   { "q5_k_m", 17, DTYPE_Q5_K, DTYPE_Q6_K, DTYPE_Q6_K }, { "q6_k", 18, SAME(Q6_K), DTYPE_Q6_K },
	{ "iq4_nl", 25, SAME(IQ4_NL), DTYPE_Q6_K }, { "iq4_xs", 30, SAME(IQ4_XS), DTYPE_Q6_K },
};

const struct shape *shape_find(const char *name)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (strcmp(shapes[i].name, name) == 0)
			return &shapes[i];
	return NULL;
}

const struct mixture *mixture_find(const char *name)
{
	for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
		if (strcmp(mixtures[i].name, name) == 0)
			return &mixtures[i];
	return NULL;
}

/* The first and the last eighth, and every third layer between them: the rule of llama.cpp's files of these names. */
enum dtype mixture_layer(const struct mixture *m, uint32_t layer, uint32_t layers)
{
	uint32_t eighth = layers / 8;
	bool chosen = layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
	return chosen ? m->better : m->matrices;
}
