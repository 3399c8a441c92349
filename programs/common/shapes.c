#include "programs/common/shapes.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct model_shape shapes[] = {
	/*                          hidden layers heads kv  dim  ffn    vocab   context theta eps   tied  factor
	 * window */
	{ "qwen3-0.6b", "qwen3", 1024, 28, 16, 8, 128, 3072, 151936, 40960, 1e6, 1e-6, true, 0, 0, SHAPE_NO_STATE },
	{ "qwen3-1.7b", "qwen3", 2048, 28, 16, 8, 128, 6144, 151936, 40960, 1e6, 1e-6, true, 0, 0, SHAPE_NO_STATE },
	{ "qwen3-4b", "qwen3", 2560, 36, 32, 8, 128, 9728, 151936, 40960, 1e6, 1e-6, true, 0, 0, SHAPE_NO_STATE },
	{ "qwen3-14b", "qwen3", 5120, 40, 40, 8, 128, 17408, 151936, 40960, 1e6, 1e-6, false, 0, 0, SHAPE_NO_STATE },
	{ "llama-3.2-1b", "llama", 2048, 16, 32, 8, 64, 8192, 128256, 131072, 5e5, 1e-5, true, 32, 0, SHAPE_NO_STATE },
	{ "llama-3.2-3b", "llama", 3072, 28, 24, 8, 128, 8192, 128256, 131072, 5e5, 1e-5, true, 32, 0, SHAPE_NO_STATE },
	{ "llama-3.1-8b", "llama", 4096, 32, 32, 8, 128, 14336, 128256, 131072, 5e5, 1e-5, false, 8, 0,
	  SHAPE_NO_STATE },
	{ "llama-3.3-70b", "llama", 8192, 80, 64, 8, 128, 28672, 128256, 131072, 5e5, 1e-5, false, 8, 0,
	  SHAPE_NO_STATE },
	{ "mistral-7b", "llama", 4096, 32, 32, 8, 128, 14336, 32768, 32768, 1e6, 1e-5, false, 0, 0, SHAPE_NO_STATE },
	{ .name = "lfm2-1.2b",
	  .arch = "lfm2",
	  .hidden = 2048,
	  .layers = 16,
	  .heads = 32,
	  .kv_heads = 8,
	  .head_dim = 64,
	  .ffn = 8192,
	  .vocab = 65536,
	  .context = 128000,
	  .theta = 1e6,
	  .eps = 1e-5,
	  .tied = true,
	  .taps = 3,
	  .attends = 1 << 2 | 1 << 5 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 14 },
	{ .name = "qwen35-4b",
	  .arch = "qwen35",
	  .hidden = 2560,
	  .layers = 32,
	  .heads = 16,
	  .kv_heads = 4,
	  .head_dim = 256,
	  .ffn = 9216,
	  .vocab = 248320,
	  .context = 262144,
	  .theta = 1e7,
	  .eps = 1e-6,
	  .tied = true,
	  .taps = 4,
	  .key_heads = 16,
	  .value_heads = 32,
	  .key_dim = 128,
	  .value_dim = 128,
	  .rotates = 64 },
	{ .name = "qwen35-35b-a3b",
	  .arch = "qwen35moe",
	  .hidden = 2048,
	  .layers = 40,
	  .heads = 16,
	  .kv_heads = 2,
	  .head_dim = 256,
	  .vocab = 248320,
	  .context = 262144,
	  .theta = 1e7,
	  .eps = 1e-6,
	  .taps = 4,
	  .key_heads = 16,
	  .value_heads = 32,
	  .key_dim = 128,
	  .value_dim = 128,
	  .rotates = 64,
	  .experts = 256,
	  .experts_used = 8,
	  .expert_ffn = 512,
	  .shared = 1 },
	{ .name = "qwen3-30b-a3b",
	  .arch = "qwen3moe",
	  .hidden = 2048,
	  .layers = 48,
	  .heads = 32,
	  .kv_heads = 4,
	  .head_dim = 128,
	  .ffn = 6144,
	  .vocab = 151936,
	  .context = 40960,
	  .theta = 1e6,
	  .eps = 1e-6,
	  .experts = 128,
	  .experts_used = 8,
	  .expert_ffn = 768 },
	{ .name = "gpt-oss-20b",
	  .arch = "gpt-oss",
	  .hidden = 2880,
	  .layers = 24,
	  .heads = 64,
	  .kv_heads = 8,
	  .head_dim = 64,
	  .ffn = 2880,
	  .vocab = 201088,
	  .context = 131072,
	  .theta = 150000,
	  .eps = 1e-5,
	  .window = 128,
	  .experts = 32,
	  .experts_used = 4,
	  .expert_ffn = 2880 },
	{ .name = "glm-4.7-flash",
	  .arch = "deepseek2",
	  .hidden = 2048,
	  .layers = 47,
	  .heads = 20,
	  .kv_heads = 1,
	  .head_dim = 256,
	  .ffn = 10240,
	  .vocab = 154880,
	  .context = 202752,
	  .theta = 1e6,
	  .eps = 1e-5,
	  .rotates = 64,
	  .experts = 64,
	  .experts_used = 4,
	  .expert_ffn = 1536,
	  .shared = 1,
	  .dense = 1,
	  .rank = 512,
	  .query_rank = 768,
	  .value = 256 },
	{ .name = "gemma3-4b",
	  .arch = "gemma3",
	  .hidden = 2560,
	  .layers = 34,
	  .heads = 8,
	  .kv_heads = 4,
	  .head_dim = 256,
	  .ffn = 10240,
	  .vocab = 262208,
	  .context = 131072,
	  .theta = 1e6,
	  .eps = 1e-6,
	  .tied = true,
	  .rope_factor = 8,
	  .window = 1024 },
	{ .name = "gemma4-e4b",
	  .arch = "gemma4",
	  .hidden = 2560,
	  .layers = 42,
	  .heads = 8,
	  .kv_heads = 2,
	  .head_dim = 256,
	  .ffn = 10240,
	  .vocab = 262144,
	  .context = 131072,
	  .theta = 1e6,
	  .eps = 1e-6,
	  .tied = true,
	  .window = 512,
	  .global_dim = 512,
	  .borrowing = 18,
	  .layer_input = 256 },
	{ .name = "tiny-moe",
	  .arch = "qwen3moe",
	  .hidden = 256,
	  .layers = 2,
	  .heads = 4,
	  .kv_heads = 2,
	  .head_dim = 64,
	  .ffn = 512,
	  .vocab = 512,
	  .context = 2048,
	  .theta = 1e4,
	  .eps = 1e-6,
	  .tied = true,
	  .experts = 8,
	  .experts_used = 2,
	  .expert_ffn = 256 },
	{ "tiny", "llama", 256, 2, 4, 2, 64, 512, 512, 2048, 1e4, 1e-5, true, 0, 0, SHAPE_NO_STATE },
};

/* Rows of base/mixtures.def of which models are made up. */
/* clang-format off */
static const struct mixture mixtures[] = {
#define MADE(name, matrices, better, output) #name, DTYPE_##matrices, DTYPE_##better, DTYPE_##output
#define NOT_MADE NULL, DTYPE_F32, DTYPE_F32, DTYPE_F32
#define MIXTURE(name, number, main, experts, ends, instead, made, ...) { number, made },
#define NAMED(name, number)
#include "base/mixtures.def"
#undef MIXTURE
#undef NOT_MADE
#undef MADE
};
const char mixture_names[] =
#define MADE(name, ...) "|" #name
#define NOT_MADE ""
#define MIXTURE(name, number, main, experts, ends, instead, made, ...) made
#include "base/mixtures.def"
	;
#undef NAMED
#undef MIXTURE
#undef NOT_MADE
#undef MADE
/* clang-format on */

const struct model_shape *shape_find(const char *name)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (strcmp(shapes[i].name, name) == 0)
			return &shapes[i];
	return NULL;
}

static const char *const archs[] = { "llama", "qwen2", "qwen3" };

/* The sizes that a text may give. */
static const struct {
	const char *name;
	size_t offset;
	bool required;
} sizes[] = {
#define SIZE(name, required) \
	{ \
#name, offsetof(struct model_shape, name), required \
	}
	SIZE(hidden, true), SIZE(layers, true),    SIZE(heads, true),     SIZE(ffn, true),
	SIZE(vocab, true),  SIZE(kv_heads, false), SIZE(head_dim, false), SIZE(window, false),
#undef SIZE
};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static bool read_arch(struct model_shape *s, const char *value, size_t n, struct error *err)
{
	for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
		if (strlen(archs[i]) == n && memcmp(archs[i], value, n) == 0) {
			s->arch = archs[i];
			return true;
		}
	return error_set(err, ERROR_ARGUMENT, "the shape's arch is \"%.*s\", expected llama, qwen2 or qwen3",
	                 n < 40 ? (int)n : 40, value);
}

/* One "name=value". */
static bool read_pair(struct model_shape *s, const char *pair, size_t n, unsigned *given, struct error *err)
{
	size_t name = strcspn(pair, "="), digits = name + 1 < n ? strspn(pair + name + 1, "0123456789") : 0;
	int shown = n < 60 ? (int)n : 60;

	if (name + 1 < n && name == 4 && memcmp(pair, "arch", 4) == 0)
		return read_arch(s, pair + 5, n - 5, err);
	uint64_t v = digits && digits < 10 && name + 1 + digits == n ? strtoull(pair + name + 1, NULL, 10) : UINT64_MAX;
	if (v == UINT64_MAX)
		return error_set(err, ERROR_ARGUMENT,
		                 "\"%.*s\" in the shape is neither a known shape nor a size such as hidden=1024", shown,
		                 pair);
	if (name == 4 && memcmp(pair, "tied", 4) == 0) {
		s->tied = v != 0;
		return true;
	}
	for (int i = 0; i < N_SIZES; i++)
		if (strlen(sizes[i].name) == name && memcmp(sizes[i].name, pair, name) == 0) {
			*(uint32_t *)((char *)s + sizes[i].offset) = (uint32_t)v;
			*given |= 1u << i;
			return true;
		}
	return error_set(err, ERROR_ARGUMENT,
	                 "\"%.*s\" in the shape names no size of a model, expected arch, hidden, layers, heads, "
	                 "kv_heads, head_dim, ffn, vocab, window or tied",
	                 shown, pair);
}

bool shape_parse(struct model_shape *out, const char *text, struct error *err)
{
	const struct model_shape *known = shape_find(text);
	unsigned given = 0;

	if (known) {
		*out = *known;
		return true;
	}
	*out = (struct model_shape){ .name = "shape", .arch = archs[0], .context = 4096, .theta = 1e6, .eps = 1e-6 };
	for (const char *at = text; *at; at += strcspn(at, ","), at += *at == ',')
		if (!read_pair(out, at, strcspn(at, ","), &given, err))
			return false;
	for (int i = 0; i < N_SIZES; i++)
		if (sizes[i].required && !(given >> i & 1))
			return error_set(err, ERROR_ARGUMENT, "the shape \"%.100s\" does not say %s=", text,
			                 sizes[i].name);
	if (out->layers < 1 || out->layers > SHAPE_MAX_LAYERS || out->heads < 1)
		return error_set(err, ERROR_ARGUMENT,
		                 "the shape has %u layers of %u heads, expected 1 to %d layers and at least a head",
		                 out->layers, out->heads, SHAPE_MAX_LAYERS);
	out->kv_heads = out->kv_heads ? out->kv_heads : out->heads;
	out->head_dim = out->head_dim ? out->head_dim : out->hidden / out->heads;
	return true;
}

const struct mixture *mixture_find(const char *name)
{
	for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++)
		if (mixtures[i].name && strcmp(mixtures[i].name, name) == 0)
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
