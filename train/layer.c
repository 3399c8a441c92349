/* train/layer.c - a layer of a model as a graph of tensors: the form of Llama, and what differs from it by which
 * tensors there are, by scales, bounds and windows. */
#include "train/layer_parts.h"

#include <stdio.h>
#include <string.h>

#include "graph/draw.h"

/* ---- inputs */

/* Elements that are numbers by themselves are loaded as such, which is faster than byte by byte. */
static int frozen_type(enum dtype type)
{
	switch (type) {
	case DTYPE_F32: return JIT_TYPE_F32;
	case DTYPE_F16: return JIT_TYPE_F16;
	case DTYPE_BF16: return JIT_TYPE_BF16;
	default: return JIT_TYPE_U8;
	}
}

tensor_value layer_matrix_input(struct draw *d, const char *name, const struct model_tensor *t, uint64_t rows,
                                struct shape *s)
{
	const int type = frozen_type(t->type);

	*s = (struct shape){ 2, { rows, type == JIT_TYPE_U8 ? t->row_bytes : t->cols } };
	if (t->experts)
		*s = (struct shape){ 3, { t->experts, rows, s->dim[1] } };
	return tensor_graph_input(d->g, name, type, s, d->err);
}

tensor_value layer_unpacked(struct draw *d, tensor_value v, const struct model_tensor *t)
{
	int64_t format = (int64_t)t->type;
	const struct attribute a = { ATTRIBUTE_format, 1, &format, 0 };

	if (!v || draw_type(d, v) == JIT_TYPE_F32)
		return v;
	return draw_type(d, v) == JIT_TYPE_U8 ? tensor_graph_add(d->g, OP_dequantise, &v, 1, &a, 1, d->err)
	                                      : draw_convert(d, v, JIT_TYPE_F32);
}

static tensor_value put_input(struct drawing *w, enum layer_input_kind kind, enum tensor_slot slot, const char *suffix,
                              int type, const struct shape *s)
{
	static const char *const plain[] = { "x", "cos", "sin", "segment" };
	char name[96];

	if (w->l->inputs == LAYER_INPUTS_MAX) {
		error_set(w->d.err, ERROR_UNSUPPORTED, "a layer has more than %d tensors", LAYER_INPUTS_MAX);
		return 0;
	}
	if (kind <= LAYER_SEGMENT)
		snprintf(name, sizeof name, "%s", plain[kind]);
	else
		snprintf(name, sizeof name, "%s%s", train_slot_name(slot), suffix);
	w->l->input[w->l->inputs++] = (struct layer_input){ .kind = kind, .slot = slot, .shape = *s };
	return tensor_graph_input(w->d.g, name, type, s, w->d.err);
}

/* A matrix that is not trained. */
static tensor_value frozen(struct drawing *w, enum tensor_slot slot, const struct model_tensor *t)
{
	struct shape s;

	if (w->l->inputs == LAYER_INPUTS_MAX)
		return put_input(w, LAYER_WEIGHT, slot, "", JIT_TYPE_U8, &s);
	const tensor_value v = layer_matrix_input(&w->d, train_slot_name(slot), t, t->rows, &s);
	w->l->input[w->l->inputs++] = (struct layer_input){ LAYER_WEIGHT, slot, t->type != DTYPE_F32, s };
	return t->experts ? v : layer_unpacked(&w->d, v, t);
}

const struct model_tensor *layer_tensor(const struct drawing *w, enum tensor_slot slot)
{
	if (slot == TENSOR_SLOTS)
		return NULL;
	return train_tensor_of(w->m, w->layer, slot);
}

/* The tensor in a slot; 0: the layer has none. */
tensor_value layer_weight(struct drawing *w, enum tensor_slot slot)
{
	if (slot == TENSOR_SLOTS)
		return 0;
	const struct model_tensor *t = layer_tensor(w, slot);
	struct shape s = { 0 };

	if (!t)
		return 0;
	if (train_slot_is_matrix(slot) && w->adapters)
		return frozen(w, slot, t);
	if (t->experts)
		s.dim[s.rank++] = t->experts;
	if (train_slot_is_matrix(slot))
		s.dim[s.rank++] = t->rows;
	s.dim[s.rank++] = t->cols;
	tensor_value v = put_input(w, LAYER_WEIGHT, slot, "", JIT_TYPE_F32, &s);
	return t->plus_one ? draw_with(&w->d, OP_add, v, 1) : v;
}

/* ---- products */

/* Rows of B for a slot, of all those of the file's tensor. */
static tensor_value rows_of(struct drawing *w, enum tensor_slot slot, tensor_value all)
{
	const uint64_t rows = layer_tensor(w, slot)->rows;
	struct shape s = { 1, { rows } };
	struct tensor index;

	if (!all || !tensor_make(&index, JIT_TYPE_I32, &s, w->d.err))
		return 0;
	for (uint64_t r = 0; r < rows; r++)
		((int32_t *)index.data)[r] = (int32_t)train_group_row(w->m, w->layer, slot, r);
	const tensor_value v = tensor_graph_constant(w->d.g, &index, w->d.err);
	tensor_free(&index);
	return v ? draw_take(&w->d, all, v, 0) : 0;
}

/* s * B (A x), in the shape of W x. Matrices that lie in one tensor have one A. */
static tensor_value low_rank(struct drawing *w, const struct train_group *group, enum tensor_slot slot, tensor_value x,
                             const struct model_tensor *t)
{
	const struct layer_adapters *a = w->adapters;
	const enum tensor_slot first = group->first;
	const struct shape down = { 2, { a->rank, t->cols } }, up = { 2, { group->rows, a->rank } },
			   mask = { 2, { w->tokens, t->cols } };

	if (!w->up[first]) {
		if (a->dropout)
			x = draw_binary(&w->d, OP_mul, x,
			                put_input(w, LAYER_DROPOUT, first, ".dropout", JIT_TYPE_F32, &mask));
		const tensor_value matrix = put_input(w, LAYER_A, first, ".lora_a", JIT_TYPE_F32, &down);
		w->up[first] = put_input(w, LAYER_B, first, ".lora_b", JIT_TYPE_F32, &up);
		w->down[first] = draw_dot(&w->d, x, matrix, 1, 1, 0);
	}
	const tensor_value b = group->by_file ? rows_of(w, slot, w->up[first]) : w->up[first];
	return draw_with(&w->d, OP_mul, draw_dot(&w->d, w->down[first], b, 1, 1, 0), (double)a->scale);
}

/* DoRA: each row's result times its magnitude over the norm of the whole row. */
static tensor_value weighed(struct drawing *w, enum tensor_slot slot, tensor_value y, const struct model_tensor *t)
{
	const struct shape s = { 1, { t->rows } };
	const tensor_value magnitude = put_input(w, LAYER_MAGNITUDE, slot, ".magnitude", JIT_TYPE_F32, &s),
			   norm = put_input(w, LAYER_NORM, slot, ".norm", JIT_TYPE_F32, &s);

	return draw_binary(&w->d, OP_mul, y, draw_binary(&w->d, OP_mul, magnitude, norm));
}

tensor_value layer_product(struct drawing *w, enum tensor_slot slot, enum tensor_slot bias, tensor_value x)
{
	const struct model_tensor *t = layer_tensor(w, slot);
	const struct train_group group = train_group_of(w->m, w->layer, slot);
	tensor_value y = draw_dot(&w->d, x, layer_weight(w, slot), 1, 1, 0);

	if (w->adapters && train_group_on(&group, w->adapters->on)) {
		if (w->adapters->dora && group.by_file) {
			error_set(w->d.err, ERROR_UNSUPPORTED,
			          "DoRA of %.100s, which is several matrices, is not there yet", t->name);
			return 0;
		}
		y = draw_binary(&w->d, OP_add, y, low_rank(w, &group, slot, x, t));
		if (w->adapters->dora)
			y = weighed(w, slot, y, t);
	}
	return layer_tensor(w, bias) ? draw_binary(&w->d, OP_add, y, layer_weight(w, bias)) : y;
}

/* ---- norms */

tensor_value layer_normed(struct draw *d, const struct model_spec *s, tensor_value x, tensor_value by, float eps)
{
	const unsigned last = 1u << (draw_rank(d, x) - 1);

	if (!x)
		return 0;
	const tensor_value y =
		s->centred ? draw_standardize(d, x, last, (double)eps, NULL, NULL) : draw_rms(d, x, last, (double)eps);
	return draw_binary(d, OP_mul, y, by);
}

/* Behind the norm in a slot, where the layer has one. */
static tensor_value norm(struct drawing *w, enum tensor_slot slot, tensor_value x, float eps)
{
	return layer_tensor(w, slot) ? layer_normed(&w->d, w->s, x, layer_weight(w, slot), eps) : x;
}

/* The same with a bias, where the layer has that. */
static tensor_value biased_norm(struct drawing *w, enum tensor_slot slot, enum tensor_slot bias, tensor_value x)
{
	x = norm(w, slot, x, w->s->norm_eps);
	return layer_tensor(w, bias) ? draw_binary(&w->d, OP_add, x, layer_weight(w, bias)) : x;
}

static float head_eps(const struct model_spec *s) { return s->head_eps != 0 ? s->head_eps : s->norm_eps; }

/* ---- attention */

/* Which token sees which: f32-like bool[queries, keys]. */
static tensor_value seen(struct drawing *w, tensor_value segment, uint32_t window)
{
	const struct shape square = { 2, { w->tokens, w->tokens } };
	const tensor_value query = draw_iota(&w->d, JIT_TYPE_I32, &square, 0),
			   key = draw_iota(&w->d, JIT_TYPE_I32, &square, 1);
	tensor_value sees = draw_binary(&w->d, OP_le, key, query);

	sees = draw_binary(&w->d, OP_and, sees,
	                   draw_binary(&w->d, OP_eq, draw_expand(&w->d, segment, 1), draw_expand(&w->d, segment, 0)));
	if (window)
		sees = draw_binary(&w->d, OP_and, sees,
		                   draw_with(&w->d, OP_lt, draw_binary(&w->d, OP_sub, query, key), window));
	return sees;
}

static uint32_t window_of(const struct model_spec *s, uint32_t layer)
{
	return s->layer_is_sliding && !s->layer_is_sliding[layer] ? 0 : s->sliding_window;
}

static enum model_rotation rotation_of(const struct model_spec *s, uint32_t layer)
{
	return s->layer_rotation ? (enum model_rotation)s->layer_rotation[layer] : ROTATION_MAIN;
}

/* x: [tokens, heads, head_dim], of which element i rotates with that half a head behind it. */
static tensor_value rotated(struct drawing *w, tensor_value x)
{
	const uint64_t dim = w->s->head_dim, half = dim / 2;

	if (rotation_of(w->s, w->layer) == ROTATION_NONE)
		return x;
	const tensor_value a = draw_slice(&w->d, x, 2, 0, half, 1), b = draw_slice(&w->d, x, 2, half, dim, 1);
	const tensor_value part[] = {
		draw_binary(&w->d, OP_sub, draw_binary(&w->d, OP_mul, a, w->cosine),
		            draw_binary(&w->d, OP_mul, b, w->sine)),
		draw_binary(&w->d, OP_add, draw_binary(&w->d, OP_mul, b, w->cosine),
		            draw_binary(&w->d, OP_mul, a, w->sine)),
	};
	return draw_concatenate(&w->d, part, 2, 2);
}

/* Queries or keys of all heads: norms and rotation, in the model's order. */
static tensor_value heads_of(struct drawing *w, tensor_value x, uint64_t heads, enum tensor_slot row,
                             enum tensor_slot head)
{
	x = norm(w, row, x, head_eps(w->s));
	x = draw_dims(&w->d, x, 3, (uint64_t[]){ w->tokens, heads, w->s->head_dim });
	if (!w->s->norms_rotated)
		x = norm(w, head, x, head_eps(w->s));
	x = rotated(w, x);
	return w->s->norms_rotated ? norm(w, head, x, head_eps(w->s)) : x;
}

/* A softmax over the last axis. Its greatest number is rounded up, so that no derivative is due for it. sink: one more
 * score, whose share goes nowhere; 0: there is none. */
static tensor_value softmax(struct draw *d, tensor_value x, tensor_value sink)
{
	const unsigned last = 1u << (draw_rank(d, x) - 1);

	if (!x)
		return 0;
	tensor_value max = draw_reduce(d, OP_reduce_max, x, last, true);
	if (sink)
		max = draw_binary(d, OP_max, max, sink);
	max = draw_unary(d, OP_ceil, max);
	const tensor_value e = draw_unary(d, OP_exp, draw_binary(d, OP_sub, x, max));
	tensor_value sum = draw_reduce(d, OP_reduce_sum, e, last, true);
	if (sink)
		sum = draw_binary(d, OP_add, sum, draw_unary(d, OP_exp, draw_binary(d, OP_sub, sink, max)));
	return draw_binary(d, OP_div, e, sum);
}

tensor_value layer_bounded(struct draw *d, tensor_value x, const struct model_scale *cap)
{
	if (!cap->given)
		return x;
	const double max = (double)cap->value;
	return draw_with(d, OP_mul, draw_unary(d, OP_tanh, draw_with(d, OP_mul, x, 1 / max)), max);
}

/* What is not seen scores so little that its share is 0. */
#define NOT_SEEN (-1e30)

static tensor_value attention(struct drawing *w, tensor_value in)
{
	const struct model_sizes z = model_sizes_of(w->s, w->layer);
	const uint64_t dim = z.head_dim, groups = z.kv_heads, each = w->s->heads / groups;
	const double scale =
		w->s->attention_scale.given ? (double)w->s->attention_scale.value : 1 / __builtin_sqrt((double)dim);
	struct draw *d = &w->d;
	tensor_value q = layer_product(w, SLOT_q, SLOT_q_bias, in), k = layer_product(w, SLOT_k, SLOT_k_bias, in),
		     v = layer_product(w, SLOT_v, SLOT_v_bias, in);

	q = heads_of(w, q, w->s->heads, SLOT_q_row_norm, SLOT_q_norm);
	k = heads_of(w, k, groups, SLOT_k_row_norm, SLOT_k_norm);
	v = draw_dims(d, v, 3, (uint64_t[]){ w->tokens, groups, dim });
	q = draw_dims(d, q, 4, (uint64_t[]){ w->tokens, groups, each, dim });
	/* [groups, tokens, each, keys] */
	tensor_value scores = draw_with(d, OP_mul, draw_dot_of(d, q, k, 3, 2, 1, 1), scale);
	scores = layer_bounded(d, scores, &w->s->score_cap);
	scores = draw_select(d, draw_expand(d, w->sees, 1), scores, draw_number(d, NOT_SEEN, scores));
	const tensor_value sink =
		layer_tensor(w, SLOT_sinks)
			? draw_dims(d, layer_weight(w, SLOT_sinks), 4, (uint64_t[]){ groups, 1, each, 1 })
			: 0;
	tensor_value out = draw_dot_of(d, softmax(d, scores, sink), v, 3, 0, 0, 1); /* [groups, tokens, each, dim] */
	out = draw_transpose(d, out, (unsigned[]){ 1, 0, 2, 3 });
	out = draw_dims(d, out, 2, (uint64_t[]){ w->tokens, w->s->heads * dim });
	if (!layer_tensor(w, SLOT_q_gate))
		return out;
	const tensor_value gate = layer_product(w, SLOT_q_gate, SLOT_q_gate_bias, in);
	return draw_binary(d, OP_mul, out, draw_unary(d, OP_logistic, gate));
}

/* ---- feed-forward */

static tensor_value activated(struct draw *d, enum model_act act, tensor_value x)
{
	switch (act) {
	case MODEL_GELU: return draw_gelu(d, x, true);
	case MODEL_GELU_ERF: return draw_gelu(d, x, false);
	case MODEL_RELU2: {
		const tensor_value r = draw_relu(d, x);
		return draw_binary(d, OP_mul, r, r);
	}
	case MODEL_RELU: return draw_relu(d, x);
	default: return layer_silu(d, x);
	}
}

/* gpt-oss: both are cut, the gate's sigmoid is steeper, and 1 is added to what is up. */
static tensor_value gated_and_cut(struct draw *d, tensor_value gate, tensor_value up)
{
	enum { MAX = 7 };
	const double steep = 1.702;

	gate = draw_with(d, OP_min, gate, MAX);
	up = draw_with(d, OP_max, draw_with(d, OP_min, up, MAX), -MAX);
	gate = draw_binary(d, OP_mul, gate, draw_unary(d, OP_logistic, draw_with(d, OP_mul, gate, steep)));
	return draw_binary(d, OP_mul, gate, draw_with(d, OP_add, up, 1));
}

tensor_value layer_gated(struct draw *d, enum model_act act, tensor_value gate, tensor_value up)
{
	if (!gate)
		return activated(d, act, up);
	return act == MODEL_SWIGLU_OAI ? gated_and_cut(d, gate, up)
	                               : draw_binary(d, OP_mul, activated(d, act, gate), up);
}

static tensor_value times_factor(struct drawing *w, tensor_value x, float factor)
{
	return factor != 0 ? draw_with(&w->d, OP_mul, x, (double)factor) : x;
}

static tensor_value feed_forward(struct drawing *w, tensor_value in)
{
	if (model_layer_routes(w->s, w->layer))
		return layer_experts(w, in);
	const struct model_factors *f = &w->s->factors;
	const tensor_value gate = layer_tensor(w, SLOT_gate)
	                                  ? times_factor(w, layer_product(w, SLOT_gate, SLOT_gate_bias, in),
	                                                 f->ffn_gate)
	                                  : 0,
			   up = layer_product(w, SLOT_up, SLOT_up_bias, in);
	const tensor_value y = layer_product(w, SLOT_down, SLOT_down_bias, layer_gated(&w->d, w->s->act, gate, up));

	return times_factor(w, y, f->ffn);
}

/* ---- a layer */

static tensor_value added(struct drawing *w, tensor_value stream, tensor_value x, enum tensor_slot post)
{
	if (layer_tensor(w, post))
		x = norm(w, post, x, w->s->norm_eps);
	else if (w->s->residual_scale.given)
		x = draw_with(&w->d, OP_mul, x, (double)w->s->residual_scale.value);
	return draw_binary(&w->d, OP_add, stream, x);
}

/* What a layer takes of other tokens. */
static tensor_value mixed(struct drawing *w, tensor_value in)
{
	switch (model_layer_mixer(w->s, w->layer)) {
	case MIXER_DELTA: return layer_product(w, SLOT_delta_out, TENSOR_SLOTS, layer_delta(w, in));
	case MIXER_SCAN: return layer_product(w, SLOT_scan_out, TENSOR_SLOTS, layer_scan(w, in));
	case MIXER_CHANNEL: return layer_product(w, SLOT_channel_out, TENSOR_SLOTS, layer_channel(w, in));
	default: return layer_product(w, SLOT_o, SLOT_o_bias, attention(w, in));
	}
}

/* The stream behind what a layer takes of other tokens; in Falcon H1 attention and the scan read the same input. */
static tensor_value mixed_into(struct drawing *w, tensor_value x, tensor_value in)
{
	if (w->s->attends_beside) {
		const struct model_factors *f = &w->s->factors;
		const tensor_value scan = layer_product(w, SLOT_scan_out, TENSOR_SLOTS, layer_scan(w, in)),
				   attended = layer_product(w, SLOT_o, SLOT_o_bias, attention(w, in));
		x = draw_binary(&w->d, OP_add, x, times_factor(w, scan, f->scan));
		return draw_binary(&w->d, OP_add, x, times_factor(w, attended, f->attention));
	}
	return added(w, x, mixed(w, in), SLOT_attn_post_norm);
}

static tensor_value draw_stream(struct drawing *w)
{
	const struct shape stream = { 2, { w->tokens, w->s->hidden } }, tokens = { 1, { w->tokens } },
			   pairs = { 2, { w->tokens, w->s->head_dim / 2 } };
	const enum model_mixer mixer = model_layer_mixer(w->s, w->layer);
	tensor_value x = put_input(w, LAYER_STREAM, 0, "", JIT_TYPE_F32, &stream), in = 0, beside = 0;

	w->cosine = draw_expand(&w->d, put_input(w, LAYER_COS, 0, "", JIT_TYPE_F32, &pairs), 1);
	w->sine = draw_expand(&w->d, put_input(w, LAYER_SIN, 0, "", JIT_TYPE_F32, &pairs), 1);
	w->segment = put_input(w, LAYER_SEGMENT, 0, "", JIT_TYPE_I32, &tokens);
	w->sees = seen(w, w->segment, window_of(w->s, w->layer));
	if (w->s->parallel && layer_tensor(w, SLOT_ffn_norm))
		beside = biased_norm(w, SLOT_ffn_norm, SLOT_ffn_norm_bias, x);
	if (mixer != MIXER_NONE) {
		in = biased_norm(w, SLOT_attn_norm, SLOT_attn_norm_bias, x);
		x = mixed_into(w, x, in);
	}
	if (w->s->one_part && mixer != MIXER_NONE)
		return x;
	if (!w->s->parallel)
		in = biased_norm(w, SLOT_ffn_norm, SLOT_ffn_norm_bias, x);
	else if (beside)
		in = beside;
	return added(w, x, feed_forward(w, in), SLOT_ffn_post_norm);
}

bool layer_draw(struct layer_graph *l, const struct model *m, uint32_t layer, uint32_t tokens,
                const struct layer_adapters *adapters, struct error *err)
{
	struct drawing w = { .d = { .g = &l->g, .err = err },
		             .l = l,
		             .m = m,
		             .s = &m->spec,
		             .layer = layer,
		             .tokens = tokens,
		             .adapters = adapters };

	tensor_graph_init(&l->g);
	l->inputs = 0;
	const tensor_value y = draw_stream(&w);
	return y && tensor_graph_output(&l->g, "y", y, err);
}

void layer_graph_free(struct layer_graph *l) { tensor_graph_free(&l->g); }

bool layer_is_like(const struct model *m, uint32_t a, uint32_t b)
{
	const struct model_sizes x = model_sizes_of(&m->spec, a), y = model_sizes_of(&m->spec, b);

	if (model_layer_mixer(&m->spec, a) != model_layer_mixer(&m->spec, b) ||
	    model_layer_routes(&m->spec, a) != model_layer_routes(&m->spec, b))
		return false;
	if (x.kv_heads != y.kv_heads || x.ffn != y.ffn || window_of(&m->spec, a) != window_of(&m->spec, b) ||
	    (rotation_of(&m->spec, a) == ROTATION_NONE) != (rotation_of(&m->spec, b) == ROTATION_NONE))
		return false;
	for (int slot = 0; slot < TENSOR_SLOTS; slot++) {
		const struct model_tensor *t = train_tensor_of(m, a, (enum tensor_slot)slot),
					  *u = train_tensor_of(m, b, (enum tensor_slot)slot);
		if (!t != !u || (t && (t->rows != u->rows || t->cols != u->cols || t->type != u->type ||
		                       t->minus_exp != u->minus_exp || t->plus_one != u->plus_one)))
			return false;
	}
	return true;
}
