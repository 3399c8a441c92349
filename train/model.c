/* train/model.c - which models can be trained, and their weights as floats. */
#include "train/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/formats/weight_format.h"
#include "loaders/model/model_adapter.h"

#define MATRIX(name, ...) [SLOT_##name] = MATRIX_##name,
#define NO_MATRIX(name, ...) [SLOT_##name] = -1,
const int8_t train_matrix_of[TENSOR_SLOTS] = { TENSOR_SLOTS_EACH(MATRIX, NO_MATRIX) };
#define VECTOR(name, ...) [SLOT_##name] = VECTOR_##name,
const int8_t train_vector_of[TENSOR_SLOTS] = { TENSOR_SLOTS_EACH(NO_MATRIX, VECTOR) };

const char *train_slot_name(enum tensor_slot slot)
{
	static const char *const names[TENSOR_SLOTS] = {
#define X(name, gguf, hf, ...) [SLOT_##name] = hf,
		TENSOR_SLOTS_EACH(X, X)
#undef X
	};

	return names[slot];
}

const struct model_tensor *train_tensor_of(const struct model *m, uint32_t layer, enum tensor_slot slot)
{
	const struct model_layer *l = &m->spec.layer[layer];
	const struct model_tensor *t =
		train_slot_is_matrix(slot) ? &l->matrix[train_matrix_of[slot]] : &l->vector[train_vector_of[slot]];

	return t->bytes ? t : NULL;
}

/* ---- what can be trained */

/* What a layer may have. */
static const bool is_known[TENSOR_SLOTS] = {
	[SLOT_attn_norm] = true,
	[SLOT_q] = true,
	[SLOT_k] = true,
	[SLOT_v] = true,
	[SLOT_o] = true,
	[SLOT_ffn_norm] = true,
	[SLOT_gate] = true,
	[SLOT_up] = true,
	[SLOT_down] = true,
	[SLOT_q_bias] = true,
	[SLOT_k_bias] = true,
	[SLOT_v_bias] = true,
	[SLOT_o_bias] = true,
	[SLOT_gate_bias] = true,
	[SLOT_up_bias] = true,
	[SLOT_down_bias] = true,
	[SLOT_q_norm] = true,
	[SLOT_k_norm] = true,
	[SLOT_q_gate] = true,
	[SLOT_q_gate_bias] = true,
	[SLOT_sinks] = true,
	[SLOT_router] = true,
	[SLOT_router_bias] = true,
	[SLOT_logit_bias] = true,
	[SLOT_expert_gate] = true,
	[SLOT_expert_up] = true,
	[SLOT_expert_down] = true,
	[SLOT_expert_gate_bias] = true,
	[SLOT_expert_up_bias] = true,
	[SLOT_expert_down_bias] = true,
	[SLOT_shared_router] = true,
	[SLOT_shared_gate] = true,
	[SLOT_shared_up] = true,
	[SLOT_shared_down] = true,
	[SLOT_delta_qkv] = true,
	[SLOT_delta_z] = true,
	[SLOT_delta_b] = true,
	[SLOT_delta_a] = true,
	[SLOT_delta_out] = true,
	[SLOT_delta_norm] = true,
	[SLOT_delta_decay] = true,
	[SLOT_delta_dt] = true,
	[SLOT_scan_z] = true,
	[SLOT_scan_xbc] = true,
	[SLOT_scan_dt] = true,
	[SLOT_scan_out] = true,
	[SLOT_scan_norm] = true,
	[SLOT_scan_decay] = true,
	[SLOT_scan_dt_bias] = true,
	[SLOT_scan_skip] = true,
	[SLOT_channel_x] = true,
	[SLOT_channel_z] = true,
	[SLOT_channel_dt] = true,
	[SLOT_channel_b] = true,
	[SLOT_channel_c] = true,
	[SLOT_channel_steps] = true,
	[SLOT_channel_out] = true,
	[SLOT_channel_bias] = true,
	[SLOT_channel_decay] = true,
	[SLOT_channel_skip] = true,
	[SLOT_channel_dt_norm] = true,
	[SLOT_channel_b_norm] = true,
	[SLOT_channel_c_norm] = true,
	[SLOT_taps_bias] = true,
	[SLOT_taps] = true,
	[SLOT_q_row_norm] = true,
	[SLOT_k_row_norm] = true,
	[SLOT_attn_norm_bias] = true,
	[SLOT_ffn_norm_bias] = true,
	[SLOT_attn_post_norm] = true,
	[SLOT_ffn_post_norm] = true
};

/* What of a model's description training has no graph for; NULL: nothing. */
static const char *missing(const struct model *m)
{
	const struct model_spec *s = &m->spec;

	if (s->encodes)
		return "it encodes texts";
	if (s->latent.rank)
		return "it has latent attention";
	if (s->form != FORM_LLAMA)
		return "its layers have another form";
	if (s->expert_groups)
		return "its experts are in groups";
	if (s->experts_beside)
		return "its experts are beside a feed-forward layer";
	if (s->layer_input || s->value_norms)
		return "its layers have inputs or norms of their own";
	if (s->router_near != 0)
		return "its experts count among those near the best";
	if (s->head_weights)
		return "each head's norm has weights of its own";
	if (s->act == MODEL_XIELU)
		return "its activation function has numbers of each layer";
	if (s->shared_scale.given)
		return "its experts count by halves";
	if (s->alibi != 0)
		return "its scores are biased by distance";
	if (s->window_chunks || s->experts_scaled)
		return "its windows are chunks of the text, or its experts' inputs are scaled";
	if (s->query_scale != 0)
		return "its queries are scaled by position";
	if (m->classifier.classes)
		return "it scores texts";
	if (s->final_norm.ones || s->embed_norm.bytes)
		return "its final norm has no weights, or its embeddings have a norm";
	if (s->head_bias.bytes)
		return "its logits have biases";
	for (uint32_t i = 0; i < s->layers; i++) {
		const struct model_sizes z = model_sizes_of(s, i);
		if (!s->router_sigmoid && s->layer[i].router_bias.bytes)
			return "its experts are chosen by a bias beside a softmax";
		if (s->layer[i].delta_q.bytes)
			return "its delta rule has matrices of its own for queries, keys and values";
		switch (model_layer_mixer(s, i)) {
		case MIXER_ATTENTION:
		case MIXER_DELTA:
		case MIXER_CHANNEL:
		case MIXER_SCAN:
		case MIXER_NONE: break;
		default: return "it has layers of short convolutions";
		}
		if (s->layer[i].head_gate.bytes || s->layer_heads)
			return "a head's result is multiplied by one number, or its layers differ in heads";
		if (z.kv_layer != i || z.head_dim != s->head_dim)
			return "its layers differ in heads, or share keys and values";
	}
	return NULL;
}

static bool check_tensor(const struct model_tensor *t, struct error *err)
{
	return weight_format_find(t->type) ||
	       error_set(err, ERROR_UNSUPPORTED, "tensor %.100s: no weights are of type %s", t->name,
	                 dtype_table[t->type].name);
}

/* ---- matrices that lie in one tensor of the file */

static bool is_in(const struct model *m, uint32_t layer, const struct model_tensor *t, enum tensor_slot slot)
{
	const struct model_tensor *u = train_tensor_of(m, layer, slot);

	return u && !u->ones && strcmp(t->name, u->name) == 0;
}

/* Where the slot's rows begin in the tensor of the file, in bytes of a file that has it row by row. */
static uint64_t begin_of(const struct model_tensor *t)
{
	return t->offset + (t->own_apart && !t->experts ? t->own_first * t->row_bytes : 0);
}

/* Rows of a matrix, elements of a vector; and their bytes in the file. */
static uint64_t units_of(const struct model_tensor *t, enum tensor_slot slot)
{
	return train_slot_is_matrix(slot) ? t->rows : t->cols;
}

static uint64_t unit_bytes(const struct model_tensor *t, enum tensor_slot slot)
{
	return train_slot_is_matrix(slot) ? t->row_bytes : dtype_table[t->type].bytes;
}

struct train_group train_group_of(const struct model *m, uint32_t layer, enum tensor_slot slot)
{
	const struct model_tensor *t = train_tensor_of(m, layer, slot);
	struct train_group g = { .first = slot, .offset = begin_of(t), .by_file = t->by_key || t->head_rows };
	bool any = false;

	for (int i = 0; i < TENSOR_SLOTS; i++) {
		if (!is_in(m, layer, t, (enum tensor_slot)i))
			continue;
		const struct model_tensor *u = train_tensor_of(m, layer, (enum tensor_slot)i);
		g.first = any ? g.first : (enum tensor_slot)i;
		g.apart = g.apart || begin_of(u) != begin_of(t);
		g.offset = begin_of(u) < g.offset ? begin_of(u) : g.offset;
		g.rows += units_of(u, (enum tensor_slot)i);
		g.has[i] = true;
		g.by_file = g.by_file || any;
		any = true;
	}
	return g;
}

bool train_group_on(const struct train_group *g, const bool on[])
{
	for (int i = 0; i < TENSOR_SLOTS; i++)
		if (g->has[i] && on[i])
			return true;
	return false;
}

uint64_t train_group_row(const struct model *m, uint32_t layer, enum tensor_slot slot, uint64_t row)
{
	const struct model_tensor *t = train_tensor_of(m, layer, slot);
	const struct train_group g = train_group_of(m, layer, slot);

	return (begin_of(t) - g.offset) / unit_bytes(t, slot) + model_source_row(t, m->spec.head_dim, row);
}

/* Whether files of safetensors have all matrices of a group in one tensor, too, and its rows in the same order. */
static bool same_in_hf(const struct model *m, uint32_t layer, enum tensor_slot slot, const struct train_group *g)
{
	struct model_location own, hf, other;

	if (!model_location_of(m, false, layer, slot, &hf))
		return false;
	for (int i = 0; i < TENSOR_SLOTS; i++) {
		if (!g->has[i])
			continue;
		if (!model_location_of(m, true, layer, (enum tensor_slot)i, &own) ||
		    !model_location_of(m, false, layer, (enum tensor_slot)i, &other) ||
		    strcmp(other.name, hf.name) != 0 || other.all_rows != g->rows || own.all_rows != g->rows)
			return false;
		for (uint64_t r = 0; r < own.order.rows; r++)
			if (own.first_row + model_source_row(&own.order, own.head_dim, r) !=
			    other.first_row + model_source_row(&other.order, other.head_dim, r))
				return false;
	}
	return true;
}

/* A file of GGUF, or of MLX, may have other matrices in one tensor than safetensors, for which no adapter has a name.
 */
static bool check_apart(const struct model *m, const char *path, uint32_t layer, struct error *err)
{
	for (int i = 0; i < TENSOR_SLOTS; i++) {
		const struct model_tensor *t =
			train_slot_is_matrix((enum tensor_slot)i) ? train_tensor_of(m, layer, (enum tensor_slot)i)
								  : NULL;
		if (!t || t->experts || !(strncmp(t->name, "blk.", 4) == 0 || t->quants))
			continue;
		const struct train_group g = train_group_of(m, layer, (enum tensor_slot)i);
		if (g.apart && (t->quants || !same_in_hf(m, layer, (enum tensor_slot)i, &g)))
			return error_set(err, ERROR_UNSUPPORTED,
			                 "%.200s: a model of %s cannot be trained yet: %.100s is several matrices",
			                 path, m->spec.arch_name, t->name);
	}
	return true;
}

bool train_model_whole(const struct model *m, const char *path, struct error *err)
{
	for (uint32_t l = 0; l < m->spec.layers; l++)
		for (int i = 0; i < TENSOR_SLOTS; i++) {
			const struct model_tensor *t = train_tensor_of(m, l, (enum tensor_slot)i);
			if (t && (t->ones || t->each_times))
				return error_set(err, ERROR_UNSUPPORTED,
				                 "%.200s: all weights cannot be trained yet, as it has norms without "
				                 "weights or factors of its own; an adapter can",
				                 path);
			if (t && t->experts && !strstr(t->name, ".experts.0."))
				return error_set(err, ERROR_UNSUPPORTED,
				                 "%.200s: all weights cannot be trained yet, as %.100s is the matrices "
				                 "of all experts; an adapter can",
				                 path, t->name);
		}
	return true;
}

static bool check(const struct model *m, const char *path, struct error *err)
{
	const struct model_spec *s = &m->spec;
	const char *why = missing(m);

	if (why)
		return error_set(err, ERROR_UNSUPPORTED, "%.200s: a model of %s cannot be trained yet: %s", path,
		                 s->arch_name, why);
	for (uint32_t i = 0; i < s->layers; i++) {
		if (!check_apart(m, path, i, err))
			return false;
		for (int slot = 0; slot < TENSOR_SLOTS; slot++) {
			const struct model_tensor *t = train_tensor_of(m, i, (enum tensor_slot)slot);
			if (t && !is_known[slot])
				return error_set(
					err, ERROR_UNSUPPORTED,
					"%.200s: a model of %s cannot be trained yet: it has the tensor %.100s", path,
					s->arch_name, t->name);
			if (t && !check_tensor(t, err))
				return false;
		}
	}
	return check_tensor(&s->embed, err) && check_tensor(&s->lm_head, err) && check_tensor(&s->final_norm, err) &&
	       (!s->pos_embed.bytes || check_tensor(&s->pos_embed, err));
}

bool train_model_open(struct model *m, const char *path, struct error *err)
{
	if (!model_open(m, path, 0, err))
		return false;
	if (check(m, path, err))
		return true;
	model_close(m);
	return false;
}

/* ---- reading */

/* So many rows of n numbers. */
static bool read_some(const struct model *m, const struct model_tensor *t, uint64_t offset, uint64_t rows, uint64_t n,
                      uint8_t *raw, float *out, struct error *err)
{
	const uint64_t row_bytes = dtype_row_bytes(t->type, n);

	if (!model_read(m, t, offset, rows * row_bytes, raw, err))
		return false;
	for (uint64_t r = 0; r < rows; r++)
		weight_format_find(t->type)->to_f32(out + r * n, raw + r * row_bytes, n);
	return true;
}

bool train_read_row(const struct model *m, const struct model_tensor *t, uint64_t row, float *out, struct error *err)
{
	uint8_t *raw = malloc(t->row_bytes + (size_t)1);
	const bool ok = raw ? read_some(m, t, model_source_row(t, m->spec.head_dim, row) * t->row_bytes, 1, t->cols,
	                                raw, out, err)
	                    : error_set(err, ERROR_MEMORY, "there is no memory for a row of %.100s", t->name);

	free(raw);
	return ok;
}

/* Elements of a vector of one head, or of a row of heads, in the order of the kernels. */
static bool read_vector(const struct model *m, const struct model_tensor *t, float *out, struct error *err)
{
	uint64_t n = t->cols; /* of the file's tensor, whose elements may be those of several vectors in turn */

	for (uint64_t i = 0; i < t->cols; i++)
		n = model_source_row(t, m->spec.head_dim, i) >= n ? model_source_row(t, m->spec.head_dim, i) + 1 : n;
	float *own = malloc((n + 1) * sizeof *own);
	uint8_t *raw = malloc(n * dtype_table[t->type].bytes + (size_t)1);
	const bool ok = (own && raw) || error_set(err, ERROR_MEMORY, "there is no memory for %.100s", t->name);
	const bool read = ok && (t->ones || read_some(m, t, 0, 1, n, raw, own, err));

	for (uint64_t i = 0; read && i < t->cols; i++)
		out[i] = t->ones ? 1 : own[model_source_row(t, m->spec.head_dim, i)];
	for (uint64_t i = 0; read && t->each_times && i < t->cols; i++)
		out[i] *= t->each_times[i];
	free(own);
	free(raw);
	return read;
}

bool train_read(const struct model *m, const struct model_tensor *t, float *out, struct error *err)
{
	const uint64_t rows_at_once = t->rope_dims || t->head_rows || t->by_key ? 1 : 64;
	uint8_t *raw;
	bool ok;

	if (t->rows == 1 && !t->heads && !t->experts)
		return read_vector(m, t, out, err);
	raw = malloc(rows_at_once * t->row_bytes + (size_t)1);
	ok = raw || error_set(err, ERROR_MEMORY, "there is no memory for rows of %.100s", t->name);
	for (uint64_t r = 0; ok && r < train_rows(t); r += rows_at_once) {
		const uint64_t n = train_rows(t) - r < rows_at_once ? train_rows(t) - r : rows_at_once;
		ok = read_some(m, t, model_source_row(t, m->spec.head_dim, r) * t->row_bytes, n, t->cols, raw,
		               out + r * t->cols, err);
	}
	free(raw);
	return ok;
}

bool train_read_packed(const struct model *m, const struct model_tensor *t, uint8_t *out, struct error *err)
{
	const uint64_t rows_at_once = t->rope_dims || t->head_rows || t->by_key ? 1 : 64;
	bool ok = true;

	for (uint64_t r = 0; ok && r < train_rows(t); r += rows_at_once) {
		const uint64_t n = train_rows(t) - r < rows_at_once ? train_rows(t) - r : rows_at_once;
		ok = model_read(m, t, model_source_row(t, m->spec.head_dim, r) * t->row_bytes, n * t->row_bytes,
		                out + r * t->row_bytes, err);
	}
	return ok;
}
