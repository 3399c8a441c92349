/* tests/runtime/plan_space.c - see plan_space.h. */
#include "tests/runtime/plan_space.h"

#include <assert.h>
#include <string.h>

#include "runtime/plan/arch.h"

/* Sizes that all differ. Inputs of 2048 are so long that fewer tokens are multiplied as matrices where gate and up are
 * one. */
enum { HIDDEN = 2048, FFN = 768, HEADS = 8, KV_HEADS = 2, HEAD_DIM = 32, VOCAB = 320, CHUNKS = 9 };

static void *area(struct plan_space *s, uint64_t bytes)
{
	assert(s->areas < PLAN_AREAS_MAX && bytes < 1ull << PLAN_AREA_BITS);
	s->bytes[s->areas++] = bytes;
	return (void *)(uintptr_t)((uint64_t)s->areas << PLAN_AREA_BITS);
}

static void *floats(struct plan_space *s, uint64_t tokens, uint64_t width)
{
	return area(s, tokens * numerics_pad(width) * sizeof(float));
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

	*b = (struct plan_buffers){
		.tokens = n,
		.logit_tokens = logit_tokens,
		.ids = area(s, n * sizeof *b->ids),
		.cos = area(s, n * HEAD_DIM / 2 * sizeof *b->cos),
		.sin = area(s, n * HEAD_DIM / 2 * sizeof *b->sin),
		.logits = floats(s, logit_tokens, VOCAB),
		.greatest = floats(s, 1, VOCAB / 32),
		.records = area(s, (uint64_t)n * HEADS * template_attention_record(HEAD_DIM)),
		.record_tokens = n
	};
}

static struct weights_matrix matrix(struct plan_space *s, enum dtype type, uint64_t rows, uint64_t k,
                                    enum weight_layout layout)
{
	return (struct weights_matrix){
		.type = type, .rows = rows, .k = k, .packed = area(s, weight_packed_bytes(type, layout, rows, k))
	};
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
	s->kv.page_bytes = (uint64_t)PLAN_LAYERS * 2 * KV_HEADS * NUMERICS_CHUNK * template_kv_row_bytes(kv, HEAD_DIM);
	s->pages = area(s, CHUNKS * s->kv.page_bytes);
	s->weights.embed = matrix(s, DTYPE_Q8_0, VOCAB, HIDDEN, layout);
	s->weights.lm_head = matrix(s, types->output, VOCAB, HIDDEN, layout);
	s->weights.final_norm = floats(s, 1, HIDDEN);
	s->weights.layer = s->layer;
	for (unsigned i = 0; i < PLAN_LAYERS; i++)
		open_layer(s, i, types->layer[i], layout);
}

/* ---- mixtures of experts */

enum { EXPERTS = 6, USED = 3, EXPERT_FFN = 256, SHARED_FFN = 512 };

static struct weights_matrix stack(struct plan_space *s, enum dtype type, uint64_t rows, uint64_t k,
                                   enum weight_layout layout)
{
	return matrix(s, type, rows * EXPERTS, k, layout);
}

static void mix_layer(struct plan_space *s, unsigned i, const enum dtype type[PLAN_MATRICES], enum weight_layout layout)
{
	struct weights_layer *l = &s->layer[i];
	const struct weights_matrix none = { 0 };

	l->gate = l->up = l->down = none;
	l->gate_bias = l->up_bias = l->down_bias = NULL;
	l->router = matrix(s, DTYPE_F32, EXPERTS, HIDDEN, layout);
	l->expert_gate = stack(s, type[4], EXPERT_FFN, HIDDEN, layout);
	l->expert_up = stack(s, type[5], EXPERT_FFN, HIDDEN, layout);
	l->expert_down = stack(s, type[6], HIDDEN, EXPERT_FFN, layout);
	l->expert_gate.rows = l->expert_up.rows = EXPERT_FFN;
	l->expert_down.rows = HIDDEN;
	if (weights_gate_up_interleaved(type[4], type[5]))
		l->expert_up.packed = l->expert_gate.packed + weight_block_bytes(type[4], layout, HIDDEN);
}

static void mix_shared(struct plan_space *s, unsigned i, const enum dtype type[PLAN_MATRICES],
                       enum weight_layout layout)
{
	struct weights_layer *l = &s->layer[i];

	l->shared_gate = matrix(s, type[4], SHARED_FFN, HIDDEN, layout);
	l->shared_up = matrix(s, type[5], SHARED_FFN, HIDDEN, layout);
	l->shared_down = matrix(s, type[6], HIDDEN, SHARED_FFN, layout);
	if (weights_gate_up_interleaved(type[4], type[5]))
		l->shared_up.packed = l->shared_gate.packed + weight_block_bytes(type[4], layout, HIDDEN);
	if (i)
		l->shared_router = matrix(s, DTYPE_F32, 1, HIDDEN, layout);
}

void plan_space_mix(struct plan_space *s, const struct plan_types *types, const struct target *target, uint32_t tokens,
                    bool sigmoid)
{
	const enum weight_layout layout = weight_layout_of(target);

	s->spec.experts = EXPERTS;
	s->spec.experts_used = USED;
	s->spec.expert_ffn = EXPERT_FFN;
	s->spec.shared_ffn = SHARED_FFN;
	s->spec.router_sigmoid = sigmoid;
	s->spec.router_normed = sigmoid;
	s->spec.router_scale = (struct model_scale){ sigmoid, sigmoid ? 2.5f : 0 };
	s->spec.expert_groups = sigmoid ? 3 : 0;
	s->spec.expert_groups_used = sigmoid ? 2 : 0;
	for (unsigned i = 0; i < PLAN_LAYERS; i++) {
		struct weights_layer *l = &s->layer[i];
		mix_layer(s, i, types->layer[i], layout);
		if (sigmoid)
			l->router_bias = floats(s, 1, EXPERTS);
		if (sigmoid || i)
			mix_shared(s, i, types->layer[i], layout);
		if (sigmoid || !i)
			continue;
		l->logit_bias = floats(s, 1, EXPERTS);
		l->expert_gate_bias = floats(s, EXPERTS, EXPERT_FFN);
		l->expert_up_bias = floats(s, EXPERTS, EXPERT_FFN);
		l->expert_down_bias = floats(s, EXPERTS, HIDDEN);
	}
}

/* ---- latent attention */

enum { RANK = 256, QUERY_RANK = 512, REST = 32, ROTATING = 16, VALUE = 64 };

static void latent_layer(struct plan_space *s, unsigned i, const enum dtype type[PLAN_MATRICES], bool low,
                         enum weight_layout layout)
{
	const enum dtype short_rows = dtype_table[type[1]].block > 32 ? DTYPE_Q8_0 : type[1];
	const uint64_t q = HEADS * (REST + ROTATING);
	const struct weights_matrix none = { 0 };
	struct weights_layer *l = &s->layer[i];

	l->q = l->k = l->v = none;
	l->q_bias = l->k_bias = l->v_bias = l->o_bias = l->q_norm = l->k_norm = l->sinks = NULL;
	if (low) {
		l->q_a = matrix(s, type[0], QUERY_RANK, HIDDEN, layout);
		l->q_a_norm = floats(s, 1, QUERY_RANK);
		l->q_b = matrix(s, type[2], q, QUERY_RANK, layout);
	} else {
		l->q = matrix(s, type[0], q, HIDDEN, layout);
	}
	l->kv_a = matrix(s, type[1], RANK + ROTATING, HIDDEN, layout);
	l->kv_a_norm = floats(s, 1, RANK);
	l->k_b = matrix(s, short_rows, HEADS * RANK, REST, layout);
	l->v_b = matrix(s, type[2], HEADS * VALUE, RANK, layout);
	l->o = matrix(s, type[3], HIDDEN, HEADS * VALUE, layout);
}

void plan_space_latent(struct plan_space *s, const struct plan_types *types, const struct target *target,
                       uint32_t tokens, bool low)
{
	struct plan_buffers *b = &s->buffers;

	s->spec.form = FORM_LATENT;
	s->spec.kv_heads = 1;
	s->spec.head_dim = REST + ROTATING;
	s->spec.attention_scale = model_scale_of(0.125f);
	s->spec.sliding_window = 0;
	s->spec.layer_is_sliding = NULL;
	s->spec.latent = (struct model_latent){ RANK, low ? QUERY_RANK : 0, REST, ROTATING, VALUE };
	b->cos = area(s, tokens * (ROTATING / 2 + 1) * sizeof *b->cos);
	b->sin = area(s, tokens * (ROTATING / 2 + 1) * sizeof *b->sin);
	s->kv.page_bytes = (uint64_t)PLAN_LAYERS * NUMERICS_CHUNK * template_kv_row_bytes(s->kv.type, RANK + ROTATING);
	s->pages = area(s, CHUNKS * s->kv.page_bytes);
	for (unsigned i = 0; i < PLAN_LAYERS; i++)
		latent_layer(s, i, types->layer[i], low, weight_layout_of(target));
}

/* ---- layers with a state */

enum { TAPS = 4, KEY_HEADS = 2, KEY_DIM = 32, VALUE_HEADS = 8, VALUE_DIM = 64, MIX_VALUES = VALUE_HEADS * VALUE_DIM };

/* What attention has, and its biases. */
static void take_attention(struct weights_layer *l)
{
	const struct weights_matrix none = { 0 };

	l->q = l->k = l->v = l->o = none;
	l->q_bias = l->k_bias = l->v_bias = l->o_bias = l->q_norm = l->k_norm = l->sinks = NULL;
}

static void recurrent_layer(struct plan_space *s, const enum dtype type[PLAN_MATRICES], enum model_mixer mixer,
                            enum weight_layout layout)
{
	struct weights_layer *l = &s->layer[PLAN_LAYERS - 1];
	const uint64_t channels = s->spec.recurrent.channels;

	take_attention(l);
	l->taps = floats(s, TAPS, channels);
	if (mixer == MIXER_CONV) {
		l->conv_b = matrix(s, type[0], HIDDEN, HIDDEN, layout);
		l->conv_c = matrix(s, type[1], HIDDEN, HIDDEN, layout);
		l->conv_x = matrix(s, type[0], HIDDEN, HIDDEN, layout);
		l->conv_out = matrix(s, type[3], HIDDEN, HIDDEN, layout);
	} else if (mixer == MIXER_DELTA) {
		l->delta_qkv = matrix(s, type[0], channels, HIDDEN, layout);
		l->delta_z = matrix(s, type[1], MIX_VALUES, HIDDEN, layout);
		l->delta_a = matrix(s, type[0], VALUE_HEADS, HIDDEN, layout);
		l->delta_b = matrix(s, type[1], VALUE_HEADS, HIDDEN, layout);
		l->delta_out = matrix(s, type[3], HIDDEN, MIX_VALUES, layout);
		l->delta_decay = floats(s, 1, VALUE_HEADS);
		l->delta_dt = floats(s, 1, VALUE_HEADS);
		l->delta_norm = floats(s, 1, VALUE_DIM);
	} else {
		l->scan_xbc = matrix(s, type[0], channels, HIDDEN, layout);
		l->scan_z = matrix(s, type[1], MIX_VALUES, HIDDEN, layout);
		l->scan_dt = matrix(s, type[0], VALUE_HEADS, HIDDEN, layout);
		l->scan_out = matrix(s, type[3], HIDDEN, MIX_VALUES, layout);
		l->taps_bias = floats(s, 1, channels);
		l->scan_dt_bias = floats(s, 1, VALUE_HEADS);
		l->scan_decay = floats(s, 1, VALUE_HEADS);
		l->scan_skip = floats(s, 1, VALUE_HEADS);
		l->scan_norm = floats(s, 1, MIX_VALUES);
	}
}

void plan_space_recurrent(struct plan_space *s, const struct plan_types *types, const struct target *target,
                          uint32_t tokens, enum model_mixer mixer)
{
	const uint32_t channels = mixer == MIXER_CONV ? HIDDEN : MIX_VALUES + 2 * KEY_HEADS * KEY_DIM;

	s->mixer[PLAN_LAYERS - 1] = (uint8_t)mixer;
	s->spec.layer_mixer = s->mixer;
	s->spec.recurrent = (struct model_recurrent){ .taps = TAPS, .channels = channels };
	if (mixer != MIXER_CONV) {
		s->spec.recurrent.key_heads = KEY_HEADS;
		s->spec.recurrent.key_dim = KEY_DIM;
		s->spec.recurrent.value_heads = VALUE_HEADS;
		s->spec.recurrent.value_dim = VALUE_DIM;
		s->spec.recurrent.tiled = mixer == MIXER_DELTA;
		s->spec.recurrent.floor = mixer == MIXER_SCAN ? 0.001f : 0;
	}
	recurrent_layer(s, types->layer[PLAN_LAYERS - 1], mixer, weight_layout_of(target));
}

/* ---- what some families have besides */

enum { LAYER_INPUT = 256 };

static void add_scales(struct plan_space *s)
{
	s->spec.embed_scale = model_scale_of(45.25f);
	s->spec.residual_scale = model_scale_of(0.22f);
	s->spec.attention_scale = model_scale_of(0.015625f);
	s->spec.score_cap = model_scale_of(50);
	s->spec.logit_scale = model_scale_of(0.125f);
	s->spec.logit_cap = model_scale_of(30);
}

static void add_inputs(struct plan_space *s, const struct plan_types *types, uint32_t n, enum weight_layout layout)
{
	const uint64_t all = PLAN_LAYERS * LAYER_INPUT;

	s->spec.layer_input = LAYER_INPUT;
	s->spec.act = MODEL_GELU;
	s->spec.centred = true;
	s->weights.input_embed = matrix(s, DTYPE_Q8_0, VOCAB, all, layout);
	s->weights.input_proj = matrix(s, types->layer[0][0], all, HIDDEN, layout);
	s->weights.input_norm = floats(s, 1, LAYER_INPUT);
	for (unsigned i = 0; i < PLAN_LAYERS; i++) {
		s->layer[i].input_gate = matrix(s, types->layer[i][4], LAYER_INPUT, HIDDEN, layout);
		s->layer[i].input_out = matrix(s, types->layer[i][6], HIDDEN, LAYER_INPUT, layout);
	}
	s->layer[PLAN_LAYERS - 1].input_post_norm = floats(s, 1, HIDDEN);
	s->layer[PLAN_LAYERS - 1].layer_scale = floats(s, 1, 1);
}

static void add_dense_beside(struct plan_space *s, unsigned i, const enum dtype type[PLAN_MATRICES],
                             enum weight_layout layout)
{
	struct weights_layer *l = &s->layer[i];
	const struct weights_matrix none = { 0 };

	l->shared_gate = l->shared_up = l->shared_down = l->shared_router = none;
	l->gate = matrix(s, type[4], FFN, HIDDEN, layout);
	l->up = matrix(s, type[5], FFN, HIDDEN, layout);
	l->down = matrix(s, type[6], HIDDEN, FFN, layout);
	if (weights_gate_up_interleaved(type[4], type[5]))
		l->up.packed = l->gate.packed + weight_block_bytes(type[4], layout, HIDDEN);
	l->dense_post_norm = floats(s, 1, HIDDEN);
	l->router_scale = floats(s, 1, HIDDEN);
	l->expert_norm = floats(s, 1, HIDDEN);
	l->expert_post_norm = floats(s, 1, HIDDEN);
	l->ffn_post_norm = floats(s, 1, HIDDEN);
	l->expert_scale = floats(s, 1, EXPERTS);
}

void plan_space_add(struct plan_space *s, const struct plan_types *types, const struct target *target, uint32_t tokens,
                    unsigned what)
{
	const enum weight_layout layout = weight_layout_of(target);
	struct weights_layer *last = &s->layer[PLAN_LAYERS - 1];
	const uint64_t attended = HEADS * HEAD_DIM;

	if (what & PLAN_GATE) {
		last->q_gate = matrix(s, types->layer[1][0], attended, HIDDEN, layout);
	}
	if (what & PLAN_POST_NORMS) {
		s->layer[0].attn_post_norm = floats(s, 1, HIDDEN);
		last->attn_post_norm = floats(s, 1, HIDDEN);
		last->ffn_post_norm = floats(s, 1, HIDDEN);
	}
	if (what & PLAN_ROW_NORMS) {
		s->layer[0].q_row_norm = floats(s, 1, attended);
		s->layer[0].k_row_norm = floats(s, 1, KV_HEADS * HEAD_DIM);
	}
	if (what & PLAN_SLOPES) {
		s->spec.alibi = 8;
		s->weights.score_bias = floats(s, 1, HEADS);
	}
	if (what & PLAN_SCALES)
		add_scales(s);
	if (what & PLAN_INPUTS_OWN)
		add_inputs(s, types, tokens, layout);
	s->spec.experts_beside = what & PLAN_DENSE_BESIDE;
	for (unsigned i = 0; i < PLAN_LAYERS && what & PLAN_DENSE_BESIDE; i++)
		add_dense_beside(s, i, types->layer[i], layout);
}

/* ---- values */

bool plan_space_settle(struct plan_space *s, const struct plan_options *opt)
{
	static struct graph graph; /* of the space that was settled last */
	static struct plan_layout layout;
	struct error err = { 0 };
	const struct plan_layout_options o = { .tokens = s->buffers.tokens, .f32_activations = opt->f32_activations };

	graph_close(&graph);
	plan_layout_close(&layout);
	if (!arch_graph(&graph, &s->spec, &s->weights, false, 0, &err) || !plan_layout_of(&layout, &graph, &o, &err))
		return false;
	if (!s->buffers.values)
		s->buffers.values = area(s, 0);
	s->bytes[((uint64_t)(uintptr_t)s->buffers.values >> PLAN_AREA_BITS) - 1] = layout.bytes;
	s->buffers.layout = &layout;
	s->graph = &graph;
	return true;
}

const float *plan_space_at(const struct plan_space *s, graph_ref v)
{
	return (const float *)(const void *)(s->buffers.values + s->buffers.layout->at[v][FORM_FLOATS]);
}

/* What the node makes, or the sum that its result is a part of. */
static const float *made_by(const struct plan_space *s, const struct graph_node *n)
{
	const struct graph_value *v = graph_value(s->graph, n->out[0]);
	const struct graph_node *sum = &s->graph->node[v->last_user];

	if (s->buffers.layout->at[n->out[0]][FORM_FLOATS] != PLAN_NOWHERE)
		return plan_space_at(s, n->out[0]);
	return sum->kind == NODE_ADD && v->users ? plan_space_at(s, sum->out[0]) : NULL;
}

const float *plan_space_product(const struct plan_space *s, const struct weights_matrix *w)
{
	for (uint32_t i = 0; i < s->graph->n_nodes; i++)
		for (unsigned second = 0; second < 2; second++) {
			const struct graph_node *n = &s->graph->node[i];
			const struct weights_matrix *of = graph_matrix_of(s->graph, n->in[second ? IN_W2 : IN_W]);
			if (of && of->packed == w->packed)
				return made_by(s, n);
		}
	return NULL;
}

const float *plan_space_norm(const struct plan_space *s, uint64_t weight)
{
	for (uint32_t i = 0; i < s->graph->n_nodes; i++) {
		const struct graph_node *n = &s->graph->node[i];
		const float *of = graph_vector_of(s->graph, n->in[n->kind == NODE_HEAD ? IN_BIAS : IN_W]);
		if ((n->kind == NODE_NORM || n->kind == NODE_HEAD) && (uint64_t)(uintptr_t)of == weight)
			return n->kind == NODE_HEAD ? plan_space_at(s, n->out[1]) : made_by(s, n);
	}
	return NULL;
}

const float *plan_space_made(const struct plan_space *s, enum graph_kind kind, uint32_t layer)
{
	for (uint32_t i = 0; i < s->graph->n_nodes; i++)
		if (s->graph->node[i].kind == kind && s->graph->node[i].layer == layer)
			return made_by(s, &s->graph->node[i]);
	return NULL;
}

const float *plan_space_stream(const struct plan_space *s) { return plan_space_at(s, s->buffers.layout->stream); }
