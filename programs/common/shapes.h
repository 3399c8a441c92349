/* programs/common/shapes.h - the sizes of well-known models, and mixtures of weight formats.
 *
 * Owns: both tables. A shape and a mixture say everything about a model file except its numbers; synth.h makes those.
 */
#ifndef BENCH_SHAPES_H
#define BENCH_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"

enum { SHAPE_MAX_LAYERS = 512 };

struct model_shape {
	const char *name, *arch;
	uint32_t hidden, layers, heads, kv_heads, head_dim, ffn, vocab, context;
	double theta, eps;
	bool tied;          /* no matrix of its own for the output */
	double rope_factor; /* of Llama 3's frequency scaling; 0: none */
	uint32_t window;    /* of sliding attention; 0: none */
	/* Layers that keep a state: the taps of their convolution (0: there are none), and of the delta rule its heads
	 * and their sizes (0: the convolution stands alone). */
	uint32_t taps, key_heads, value_heads, key_dim, value_dim;
	uint64_t attends; /* bit i: layer i has attention all the same; 0: each fourth one */
	uint32_t rotates; /* elements of a head that rotate; 0: all */
	/* Of a mixture: how many experts, those of a token and their size, how many all tokens go to besides, and in
	 * how many layers there are none; 0 experts: it is none. */
	uint32_t experts, experts_used, expert_ffn, shared, dense;
	/* Of latent attention: the ranks of keys and values and of queries, and the size of a head's result; 0: none.
	 */
	uint32_t rank, query_rank, value;
	/* Of Gemma: the size of heads in layers without a window, where it differs; how many layers at the end read
	 * keys and values of others; numbers that each layer gets of a token's own. rope_factor: linear. */
	uint32_t global_dim, borrowing, layer_input;
};
/* For lists of values. */
#define SHAPE_NO_STATE 0, 0, 0, 0, 0, 0, 0, SHAPE_DENSE
#define SHAPE_DENSE 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
/* Whether a layer has attention. */
static inline bool shape_attends(const struct model_shape *s, uint32_t layer)
{
	return !s->taps || (s->attends ? s->attends >> layer % 64 & 1 : layer % 4 == 3);
}

/* How many layers read keys and values of others; none where the shape was cut to fewer layers than that. */
static inline uint32_t shape_borrowing(const struct model_shape *s)
{
	return s->borrowing < s->layers ? s->borrowing : 0;
}

struct mixture {
	int file_type;    /* general.file_type of GGUF files */
	const char *name; /* NULL: models are not made up of it */
	enum dtype matrices;
	enum dtype better; /* of attn_v and ffn_down in part of the layers */
	enum dtype output; /* of the output's matrix, which is the embedding's when tied */
};

/* The names, joined by '|', for an option table. */
#define SHAPE_NAMES \
	"qwen3-0.6b|qwen3-1.7b|qwen3-4b|qwen3-14b|llama-3.2-1b|llama-3.2-3b|llama-3.1-8b|llama-3.3-70b|mistral-7b|" \
	"lfm2-1.2b|qwen35-4b|qwen3-30b-a3b|qwen35-35b-a3b|gpt-oss-20b|glm-4.7-flash|gemma3-4b|gemma4-e4b|tiny|tiny-" \
	"moe"
extern const char mixture_names[]; /* a '|' in front of each */
#define MIXTURE_NAMES (mixture_names + 1)

const struct model_shape *shape_find(const char *name); /* NULL: unknown */
/* A shape as text: a name, or sizes such as
 * "arch=qwen3,hidden=1024,layers=28,heads=16,kv_heads=8,head_dim=128,ffn=3072,vocab=151936,tied=1". Left out, arch is
 * llama, kv_heads is heads, head_dim is hidden / heads, and the rest is 0. Whether such a model makes sense is the
 * loader's to judge. */
bool shape_parse(struct model_shape *out, const char *text, struct error *err);
const struct mixture *mixture_find(const char *name);
/* The type of attn_v and ffn_down of one layer. */
enum dtype mixture_layer(const struct mixture *m, uint32_t layer, uint32_t layers);

#endif
