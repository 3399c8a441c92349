/* tests/runtime/plan_check_stream.c - what the kernels between the matrices read and write, and whether that is there:
 * embeddings, norms, scales, and what layers get of a token's own. Which of these a family has changes what the stream
 * is between them. */
#include <math.h>

#include "tests/runtime/plan_checker.h"

static const struct state nothing = { NOTHING, 0 };

uint32_t act_of(const struct plan_space *s) { return s->spec.act == MODEL_GELU ? ACT_GELU : ACT_SILU; }

struct state behind_input(const struct plan_space *s, uint32_t i)
{
	return s->layer[i].layer_scale ? (struct state){ STREAM_UNSCALED, i } : (struct state){ STREAM, 2 * i + 2 };
}

struct state behind_ffn(const struct plan_space *s, uint32_t i)
{
	return s->layer[i].input_gate.packed ? (struct state){ STREAM_BARE, i } : behind_input(s, i);
}

static void check_all(struct checker *c, int64_t begin, int64_t end, uint64_t units)
{
	plan_require(c, begin == 0 && (uint64_t)end == units, "units");
}

/* ---- embeddings */

void do_embed(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct plan_space *s = c->s;
	const bool own = s->spec.layer_input && arg[EMBED_W] == plan_address(s->weights.input_embed.packed);
	const struct weights_matrix *w = own ? &s->weights.input_embed : &s->weights.embed;

	plan_require(c,
	             k->weight == w->type + 1 && k->rows == w->rows && k->k == w->k &&
	                     arg[EMBED_W] == plan_address(w->packed),
	             "matrix");
	plan_require(c, begin == 0, "tokens");
	given(c, EMBED_IDS, s->buffers.ids, "tokens");
	plan_require(c,
	             arg[EMBED_OUT] ==
	                     plan_address(own ? plan_space_product(s, &s->weights.input_embed) : plan_space_stream(s)),
	             "destination");
	writes(c, EMBED_OUT, own ? INPUT_ROW : s->spec.embed_scale.given ? EMBEDDED : STREAM, 0, 0);
}

void do_layer_inputs(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct plan_space *s = c->s;
	const uint32_t n = c->p->tokens, each = s->spec.layer_input;
	const uint64_t bytes = numerics_pad(each) * 4;

	plan_require(c, each && k->k == each && k->rows == PLAN_LAYERS && k->flags == 0, "sizes or flags");
	plan_require(c,
	             arg[LAYER_INPUTS_WEIGHT] == plan_address(s->weights.input_norm) && arg[LAYER_INPUTS_COLUMNS] == n,
	             "norm or tokens");
	plan_require(c,
	             (uint32_t)arg[LAYER_INPUTS_EPS] == plan_bits_of(s->spec.norm_eps * (float)s->spec.hidden) &&
	                     (uint32_t)arg[LAYER_INPUTS_BY] == plan_bits_of((float)sqrt((double)each)),
	             "epsilon or scale");
	check_all(c, begin, end, (uint64_t)n * PLAN_LAYERS);
	reads(c, LAYER_INPUTS_X, INPUT_PRODUCT, 0, 0);
	reads(c, LAYER_INPUTS_E, INPUT_ROW, 0, 0);
	if (!c->wrong && range_of(c, LAYER_INPUTS_OUT, 0).bytes != PLAN_LAYERS * n * bytes)
		plan_complain(c, "wrong bytes of all layers");
	for (uint32_t i = 0; i < PLAN_LAYERS; i++) { /* each layer's are a value of their own */
		const uint64_t at = arg[LAYER_INPUTS_OUT] + i * n * bytes;
		touch(c, true, at, n * bytes, columns_at(LAYER_SHARES, i, PLAIN_FLOATS, bytes, at, 0));
	}
	judged(c, LAYER_INPUTS_OUT);
}

/* ---- norms */

/* The result, and its int8 blocks where they are asked for. */
static void leave_norm(struct checker *c, const struct key *k, uint32_t value, uint32_t of, uint64_t first)
{
	writes(c, NORM_OUT, value, of, first);
	if (!(k->flags & KEY_QUANTISED_OUT))
		return;
	writes(c, NORM_OUTQ, value, of, first);
	writes(c, NORM_OUTS, value, of, first);
}

/* Of queries of a low rank, whose norm has an epsilon of its own. */
static bool do_latent_norm(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const uint64_t n = c->p->tokens;
	uint32_t i = 0;

	while (i < PLAN_LAYERS &&
	       (!c->s->layer[i].q_a_norm || arg[NORM_WEIGHT] != plan_address(c->s->layer[i].q_a_norm)))
		i++;
	if (i == PLAN_LAYERS)
		return false;
	plan_require(c,
	             k->k == c->s->spec.latent.query_rank && (uint32_t)arg[NORM_EPS] == plan_bits_of(1e-6f) &&
	                     (k->flags & ~(uint32_t)KEY_QUANTISED_OUT) == 0 && begin == 0 && (uint64_t)end == n &&
	                     arg[NORM_OUT] == plan_address(plan_space_norm(c->s, arg[NORM_WEIGHT])),
	             "norm of queries");
	reads(c, NORM_X, LOW_QUERIES, i, 0);
	leave_norm(c, k, LOW_INPUT, i, 0);
	return true;
}

/* Of a row of queries, or of keys, over all heads. Where the result goes is checked by what reads it. */
static bool do_row_norm(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	const uint64_t n = c->p->tokens;

	for (uint32_t i = 0; i < PLAN_LAYERS; i++) {
		const struct weights_layer *l = &c->s->layer[i];
		const bool queries = l->q_row_norm && arg[NORM_WEIGHT] == plan_address(l->q_row_norm);
		if (!queries && (!l->k_row_norm || arg[NORM_WEIGHT] != plan_address(l->k_row_norm)))
			continue;
		const uint32_t width = (queries ? s->heads : s->kv_heads) * s->head_dim;
		plan_require(c,
		             k->k == width && (uint32_t)arg[NORM_EPS] == plan_bits_of(s->norm_eps) && !k->flags &&
		                     begin == 0 && (uint64_t)end == n,
		             "norm of rows");
		reads(c, NORM_X, queries ? BARE_QUERIES : BARE_KEYS, i, 0);
		writes(c, NORM_OUT, queries ? QUERIES : KEYS, i, 0);
		return true;
	}
	return false;
}

/* What a norm is to do: of which value; old: what it is added to. */
struct norm {
	const float *weight;
	struct state in, old, value;
	bool beside_int8; /* it may leave int8, too */
};

static bool norm_of_layer(const struct plan_space *s, uint32_t i, uint64_t weight, struct norm *out)
{
	const struct weights_layer *l = &s->layer[i];
	const struct state first = { STREAM, 2 * i }, half = { STREAM, 2 * i + 1 }, end = behind_ffn(s, i),
			   bare = { STREAM_BARE, i }, dense = { DENSE_ALONE, i };
	const bool beside = s->spec.experts_beside;
	const struct norm list[] = {
		{ l->attn_norm, first, nothing, { ATTENTION_INPUT, i }, true },
		{ l->ffn_norm, half, nothing, { FFN_INPUT, i }, true },
		{ l->attn_post_norm, { MIXER_RESULT, i }, first, half, false },
		{ l->ffn_post_norm, { beside ? BOTH_RESULTS : FFN_RESULT, i }, half, end, false },
		{ l->input_post_norm, { INPUT_RESULT, i }, bare, behind_input(s, i), false },
		{ l->dense_post_norm, { DENSE_RESULT, i }, nothing, dense, false },
		{ l->router_scale, half, nothing, { ROUTER_INPUT, i }, true },
		{ l->expert_norm, half, nothing, { EXPERTS_INPUT, i }, true },
		{ l->expert_post_norm, { EXPERTS_RESULT, i }, dense, { BOTH_RESULTS, i }, false }
	};

	for (size_t m = 0; m < sizeof list / sizeof *list; m++)
		if (list[m].weight && plan_address(list[m].weight) == weight) {
			*out = list[m];
			return true;
		}
	return false;
}

static bool find_norm(const struct plan_space *s, uint64_t weight, struct norm *out)
{
	for (uint32_t i = 0; i < PLAN_LAYERS; i++)
		if (norm_of_layer(s, i, weight, out))
			return true;
	*out = (struct norm){ s->weights.final_norm, { STREAM, 2 * PLAN_LAYERS }, nothing, { OUTPUT_INPUT, 0 }, true };
	return weight == plan_address(s->weights.final_norm);
}

void do_norm(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *spec = &c->s->spec;
	struct norm norm;

	if (do_latent_norm(c, k, arg, begin, end) || do_mixer_norm(c, k, arg, begin, end) ||
	    do_row_norm(c, k, arg, begin, end))
		return;
	struct found in = find(c, arg[NORM_X], PLAIN_FLOATS);
	if (!find_norm(c->s, arg[NORM_WEIGHT], &norm)) {
		plan_complain(c, "wrong norm");
		return;
	}
	const uint32_t flags = (norm.old.value != NOTHING ? KEY_RESIDUAL : 0u) | (spec->centred ? KEY_CENTRED : 0u);
	plan_require(c, k->k == spec->hidden && (uint32_t)arg[NORM_EPS] == plan_bits_of(spec->norm_eps), "norm");
	plan_require(c, (k->flags & ~(norm.beside_int8 ? (uint32_t)KEY_QUANTISED_OUT : 0)) == flags, "flags");
	plan_require(c, begin == 0 && end > 0, "units");
	plan_require(c, arg[NORM_OUT] == plan_address(plan_space_norm(c->s, arg[NORM_WEIGHT])), "destination");
	reads(c, NORM_X, norm.in.value, norm.in.of, in.token);
	if (norm.old.value != NOTHING)
		reads(c, NORM_OUT, norm.old.value, norm.old.of, in.token);
	leave_norm(c, k, norm.value.value, norm.value.of, in.token);
}

/* ---- scales */

/* What is scaled by what, and where it goes. old: what it is added to. */
struct scaling {
	float by;
	const float *from; /* where the number lies, or as many of them as are scaled (pair) */
	const float *out;
	uint32_t flags;
	struct state old, value;
};

/* Of the stream's parts, before they are added. */
static bool scaling_of_part(const struct plan_space *s, struct content in, struct scaling *out)
{
	const uint32_t i = in.of;
	const bool mixes = s->layer[i].router.packed, shares = s->layer[i].shared_up.packed;
	const struct state half = { STREAM, 2 * i + 1 }, of_shared = { STREAM_HALF, i }, end = behind_ffn(s, i);

	*out = (struct scaling){
		.by = s->spec.residual_scale.value, .out = plan_space_stream(s), .flags = KEY_RESIDUAL
	};
	switch (in.value) {
	case MIXER_RESULT: out->old = (struct state){ STREAM, 2 * i }, out->value = half; return true;
	case FFN_RESULT: out->old = mixes ? of_shared : half, out->value = end; return true;
	case EXPERTS_RESULT: out->old = half, out->value = shares ? of_shared : end; return true;
	case SHARED_SUM: out->old = of_shared, out->value = end; return true;
	case INPUT_RESULT: out->old = (struct state){ STREAM_BARE, i }, out->value = behind_input(s, i); return true;
	default: return false;
	}
}

static bool find_scaling(const struct checker *c, struct content in, struct scaling *out)
{
	const struct plan_space *s = c->s;
	const uint64_t share = (uint64_t)c->p->tokens * numerics_pad(s->spec.layer_input);

	if (in.of < PLAN_LAYERS && scaling_of_part(s, in, out))
		return s->spec.residual_scale.given;
	*out = (struct scaling){ 0 };
	switch (in.value) {
	case EMBEDDED:
		*out = (struct scaling){
			.by = s->spec.embed_scale.value, .out = plan_space_stream(s), .value = { STREAM, 0 }
		};
		return true;
	case LOGITS_UNSCALED:
		*out = (struct scaling){ .by = s->spec.logit_scale.value,
			                 .out = s->buffers.logits,
			                 .value = { s->spec.logit_cap.given ? LOGITS_UNBOUNDED : LOGITS, 0 } };
		return true;
	case LOGITS_UNBOUNDED:
		*out = (struct scaling){ .by = s->spec.logit_cap.value,
			                 .out = s->buffers.logits,
			                 .flags = KEY_CAP,
			                 .value = { LOGITS, 0 } };
		return true;
	case INPUT_GATE:
		*out = (struct scaling){ .from = plan_space_made(s, NODE_LAYER_INPUTS, 0) + in.of * share,
			                 .out = plan_space_product(s, &s->layer[in.of].input_gate),
			                 .flags = KEY_PAIR,
			                 .value = { INPUT_GATED, in.of } };
		return true;
	case STREAM_UNSCALED:
		*out = (struct scaling){ .from = s->layer[in.of].layer_scale,
			                 .out = plan_space_stream(s),
			                 .flags = KEY_GATED,
			                 .value = { STREAM, 2 * in.of + 2 } };
		return true;
	default: return false;
	}
}

void do_scale(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct found in = find(c, arg[SCALE_IN], PLAIN_FLOATS);
	const uint64_t stride = in.content.stride;
	const uint32_t value = in.content.value;
	const bool logits = value == LOGITS_UNSCALED || value == LOGITS_UNBOUNDED;
	struct scaling x;

	if (c->wrong || !find_scaling(c, in.content, &x)) {
		plan_complain(c, "scales what is not scaled");
		return;
	}
	check_all(c, begin, end, (logits ? logit_rows(c->p) : c->p->tokens) * stride / 128);
	plan_require(c, k->flags == x.flags && k->act == ACT_NONE, "flags");
	plan_require(c, x.from ? arg[SCALE_BY] == plan_address(x.from) : (uint32_t)arg[SCALE_BY] == plan_bits_of(x.by),
	             "factor");
	plan_require(c, arg[SCALE_OUT] == plan_address(x.out), "destination");
	reads_wide(c, SCALE_IN, value, in.content.of, in.token, stride);
	if (x.flags & KEY_PAIR)
		reads_wide(c, SCALE_BY, LAYER_SHARES, in.content.of, in.token, stride);
	if (x.old.value != NOTHING)
		reads_wide(c, SCALE_OUT, x.old.value, x.old.of, in.token, stride);
	writes_wide(c, SCALE_OUT, x.value.value, x.value.of, in.token, stride);
}

/* ---- a gate of attention */

void do_attention_gate(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const uint32_t i = layer_of(c, arg[GATE_X], UNGATED), n = c->p->tokens;
	const uint64_t stride = numerics_pad(c->s->spec.heads * c->s->spec.head_dim) * 4;

	plan_require(c, k->act == ACT_SIGMOID && k->flags == 0, "activation function or flags");
	check_all(c, begin, end, n * stride / 128);
	reads_wide(c, GATE_X, UNGATED, i, 0, stride);
	reads_wide(c, GATE_GATE, GATE_OF_QUERIES, i, 0, stride);
	writes_wide(c, GATE_OUT, ATTENDED, i, 0, stride);
}
