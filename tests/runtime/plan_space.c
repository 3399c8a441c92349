/* tests/runtime/plan_space.c - see plan_space.h. */
#include "tests/runtime/plan_space.h"

#include <assert.h>
#include <string.h>

/* Sizes that all differ. Inputs of 2048 are so long that fewer tokens are multiplied as matrices where gate and up are
 * one. */
enum { HIDDEN = 2048, FFN = 768, HEADS = 8, KV_HEADS = 2, HEAD_DIM = 32, VOCAB = 300, CHUNKS = 9 };

static void *area(struct plan_space *s, uint64_t bytes)
{
	assert(s->areas < PLAN_AREAS_MOST && bytes < 1ull << PLAN_AREA_BITS);
	s->bytes[s->areas++] = bytes;
	return (void *)(uintptr_t)((uint64_t)s->areas << PLAN_AREA_BITS);
}

static void *floats(struct plan_space *s, uint64_t tokens, uint64_t width)
{
	return area(s, tokens * numerics_pad(width) * sizeof(float));
}
static void *bytes(struct plan_space *s, uint64_t tokens, uint64_t width)
{
	return area(s, tokens * numerics_pad(width));
}
static void *blocks(struct plan_space *s, uint64_t tokens, uint64_t width)
{
	return area(s, tokens * numerics_pad(width) / 32 * sizeof(struct activation_block));
}

static void open_spec(struct model_spec *m, uint8_t sliding[PLAN_LAYERS])
{
	sliding[PLAN_LAYERS - 1] = 1;
	*m = (struct model_spec){
		.layers = PLAN_LAYERS,
		.hidden = HIDDEN,
		.ffn = FFN,
		.heads = HEADS,
		.kv_heads = KV_HEADS,
		.head_dim = HEAD_DIM,
		.vocab = VOCAB,
		.sliding_window = 100,
		.layer_is_sliding = sliding,
		.norm_eps = 1e-5f
	};
}

static void open_buffers(struct plan_space *s, uint32_t n, uint32_t logit_tokens)
{
	struct plan_buffers *b = &s->buffers;
	const uint64_t q = HEADS * HEAD_DIM, k = KV_HEADS * HEAD_DIM;

	*b = (struct plan_buffers){
		.tokens = n,
		.logit_tokens = logit_tokens,
		.ids = area(s, n * sizeof *b->ids),
		.cos = area(s, n * HEAD_DIM / 2 * sizeof *b->cos),
		.sin = area(s, n * HEAD_DIM / 2 * sizeof *b->sin),
		.x = floats(s, n, HIDDEN),
		.xn = floats(s, n, HIDDEN),
		.q = floats(s, n, q),
		.qr = floats(s, n, q),
		.k = floats(s, n, k),
		.v = floats(s, n, k),
		.ao = floats(s, n, q),
		.h = floats(s, n, FFN),
		.logits = floats(s, logit_tokens, VOCAB),
		.xnq = bytes(s, n, HIDDEN),
		.aoq = bytes(s, n, q),
		.hq = bytes(s, n, FFN),
		.xns = blocks(s, n, HIDDEN),
		.aos = blocks(s, n, q),
		.hs = blocks(s, n, FFN),
		.turned = floats(s, n, HIDDEN),
		.turned_q = bytes(s, n, HIDDEN),
		.turned_s = blocks(s, n, HIDDEN)
	};
}

static struct weights_matrix matrix(struct plan_space *s, enum dtype type, uint64_t rows, uint64_t k,
                                    enum weight_layout layout)
{
	return (struct weights_matrix){ type, rows, k, area(s, weight_packed_bytes(type, layout, rows, k)) };
}

static void open_layer(struct plan_space *s, unsigned i, const enum dtype type[PLAN_MATRICES],
                       enum weight_layout layout)
{
	const uint64_t q = HEADS * HEAD_DIM, k = KV_HEADS * HEAD_DIM;
	struct weights_layer *l = &s->layer[i];

	*l = (struct weights_layer){
		.q = matrix(s, type[0], q, HIDDEN, layout),
		.k = matrix(s, type[1], k, HIDDEN, layout),
		.v = matrix(s, type[2], k, HIDDEN, layout),
		.o = matrix(s, type[3], HIDDEN, q, layout),
		.gate = matrix(s, type[4], FFN, HIDDEN, layout),
		.up = matrix(s, type[5], FFN, HIDDEN, layout),
		.down = matrix(s, type[6], HIDDEN, FFN, layout),
		.attn_norm = floats(s, 1, HIDDEN),
		.ffn_norm = floats(s, 1, HIDDEN)
	};
	if (weights_gate_up_interleaved(type[4], type[5]))
		l->up.packed = l->gate.packed + weight_block_bytes(type[4], layout, HIDDEN);
	if (i == 0)
		return;
	l->q_bias = floats(s, 1, q);
	l->k_bias = floats(s, 1, k);
	l->v_bias = floats(s, 1, k);
	l->o_bias = l->down_bias = floats(s, 1, HIDDEN);
	l->gate_bias = floats(s, 1, FFN);
	l->up_bias = floats(s, 1, FFN);
	l->q_norm = floats(s, 1, HEAD_DIM);
	l->k_norm = floats(s, 1, HEAD_DIM);
	l->sinks = floats(s, 1, HEADS);
}

void plan_space_open(struct plan_space *s, const struct plan_types *types, const struct target *target, enum dtype kv,
                     uint32_t tokens, uint32_t logit_tokens)
{
	enum weight_layout layout = weight_layout_of(target);

	memset(s, 0, sizeof *s);
	open_spec(&s->spec, s->sliding);
	open_buffers(s, tokens, logit_tokens);
	s->kv = (struct plan_cache){ .type = kv };
	s->kv.chunk_bytes = (uint64_t)PLAN_LAYERS * 2 * KV_HEADS * NUMERICS_CHUNK * template_kv_row_bytes(kv, HEAD_DIM);
	s->kv.base = area(s, CHUNKS * s->kv.chunk_bytes);
	s->weights.embed = matrix(s, DTYPE_Q8_0, VOCAB, HIDDEN, layout);
	s->weights.lm_head = matrix(s, types->output, VOCAB, HIDDEN, layout);
	s->weights.final_norm = floats(s, 1, HIDDEN);
	s->weights.layer = s->layer;
	for (unsigned i = 0; i < PLAN_LAYERS; i++)
		open_layer(s, i, types->layer[i], layout);
}
