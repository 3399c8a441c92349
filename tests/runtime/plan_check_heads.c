/* tests/runtime/plan_check_heads.c - what the kernels of attention read and write, and whether that is there. */
#include <string.h>

#include "tests/runtime/plan_memory.h"
#include "tests/runtime/plan_checker.h"

/* Units are heads of tokens; the steps of a chain are some heads of the only token. */

static void check_rotation(struct checker *c, const struct key *k, unsigned cos, unsigned sin, uint64_t norm,
                           uint64_t eps, const float *weight)
{
	given(c, cos, c->s->buffers.cos, "angles");
	given(c, sin, c->s->buffers.sin, "angles");
	plan_require(c,
	             norm == plan_address(weight) && !(k->flags & KEY_QK_NORM) == !weight &&
	                     (uint32_t)eps == plan_bits_of(c->s->spec.norm_eps),
	             "norm of heads");
	plan_require(c, k->head_dim == c->s->spec.head_dim, "head size");
}

static void check_scale(struct checker *c, const uint64_t *slot)
{
	const struct model_spec *s = &c->s->spec;
	float scale;

	memcpy(&scale, slot, sizeof scale);
	double one = (double)scale * (double)scale * s->head_dim;
	plan_require(c,
	             s->attention_scale.given ? scale == s->attention_scale.value
	                                      : scale > 0 && one > 0.999999 && one < 1.000001,
	             "scale");
}

/* All heads of all tokens, or some of the only one's. */
static void check_units(struct checker *c, int64_t begin, int64_t end, uint64_t heads)
{
	plan_require(c,
	             (begin == 0 && (uint64_t)end == heads * c->p->tokens) ||
	                     (c->p->tokens == 1 && begin < end && (uint64_t)end <= heads),
	             "units");
}

void do_rope(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	/* Heads in front of these may have been rotated where they lie. */
	const struct segment *in = plan_memory_at(&c->memory, arg[ROPE_IN] + (uint64_t)begin * s->head_dim * 4);
	const uint32_t i = in && in->content.value == QUERIES ? in->content.of : 0;

	plan_require(c, in && in->content.value == QUERIES, "input");
	check_rotation(c, k, ROPE_COS, ROPE_SIN, arg[ROPE_NORM], arg[ROPE_EPS], c->s->layer[i].q_norm);
	check_scale(c, &arg[ROPE_SCALE]);
	plan_require(c, k->heads == s->heads, "heads");
	check_units(c, begin, end, s->heads);
	reads(c, ROPE_IN, QUERIES, i, 0);
	writes(c, ROPE_OUT, ROTATED, i, 0);
}

void check_changing(struct checker *c, const uint64_t *slot, enum plan_change what, uint64_t offset)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->p->n_changing; i++)
		n += c->p->changing[i].slot == slot && c->p->changing[i].what == what &&
		     c->p->changing[i].offset == offset;
	judged(c, (unsigned)(slot - c->op->arg));
	plan_require(c, n == 1, "position or cache: its slot is not filled in, or twice");
}

static void check_position(struct checker *c, const uint64_t *slot) { check_changing(c, slot, PLAN_POSITION, 0); }

void touch_cache(struct checker *c, bool write, uint32_t layer, uint64_t keys, uint64_t values, uint64_t begin,
                 uint64_t end)
{
	uint64_t k_bytes = c->s->kv.page_bytes / PLAN_LAYERS / 2, base = layer * 2 * k_bytes,
		 head = k_bytes / c->s->spec.kv_heads, page = plan_address(c->s->pages);

	plan_require(c, keys == base && values == base + k_bytes, "cache");
	touch(c, write, page + keys + begin * head, (end - begin) * head,
	      (struct content){ .value = CACHED_KEYS, .of = layer, .form = CACHED, .origin = page + keys });
	touch(c, write, page + values + begin * head, (end - begin) * head,
	      (struct content){ .value = CACHED_VALUES, .of = layer, .form = CACHED, .origin = page + values });
}

/* A layer's keys and values of these units. Attention that stores the newest position reads all of them, too, of which
 * there need be none before. */
static void do_cache(struct checker *c, bool write, uint32_t layer, unsigned keys, unsigned values)
{
	const uint64_t k_bytes = c->s->kv.page_bytes / PLAN_LAYERS / 2, base = layer * 2 * k_bytes,
		       page = plan_address(c->s->pages);
	const unsigned slot[] = { keys, values };

	plan_require(c, c->op->arg[keys] == base && c->op->arg[values] == base + k_bytes, "cache");
	for (unsigned i = 0; i < 2 && !c->wrong; i++) {
		const struct range at = range_of(c, slot[i], 0);
		touch(c, write, page + at.at, at.bytes,
		      (struct content){ .value = i ? CACHED_VALUES : CACHED_KEYS,
		                        .of = layer,
		                        .form = CACHED,
		                        .origin = page + c->op->arg[slot[i]] });
		judged(c, slot[i]);
	}
}

void do_kv_store(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	uint32_t i = layer_of(c, arg[KV_STORE_K], KEYS), group = template_kv_store_tokens(c->opt->target),
		 n = c->p->tokens;
	uint64_t units = (uint64_t)(n + group - 1) / group * s->kv_heads;

	plan_require(c,
	             (begin == 0 && (uint64_t)end == units) || (n == 1 && begin < end && (uint64_t)end <= s->kv_heads),
	             "units");
	check_rotation(c, k, KV_STORE_COS, KV_STORE_SIN, arg[KV_STORE_NORM], arg[KV_STORE_EPS], c->s->layer[i].k_norm);
	plan_require(c, k->kv_heads == s->kv_heads && k->kv == c->s->kv.type + 1 && arg[KV_STORE_COLUMNS] == n,
	             "heads, cache or tokens");
	check_position(c, &arg[KV_STORE_POS0]);
	check_changing(c, &arg[KV_STORE_PAGES], PLAN_PAGES, 0);
	reads(c, KV_STORE_K, KEYS, i, 0);
	reads(c, KV_STORE_V, VALUES, i, 0);
	do_cache(c, true, i, KV_STORE_KEYS, KV_STORE_VALUES);
}

static void check_window(struct checker *c, const struct key *k, uint32_t layer, uint64_t window, uint64_t sinks)
{
	plan_require(c, !(k->flags & KEY_WINDOW) == !c->s->sliding[layer] && window == c->s->spec.sliding_window,
	             "window");
	plan_require(c, !(k->flags & KEY_SINKS) == !c->s->layer[layer].sinks, "sinks");
	plan_require(c, sinks == (uint64_t)(uintptr_t)c->s->layer[layer].sinks, "sinks");
}

static bool is_short(const struct checker *c, uint32_t layer)
{
	return c->s->sliding[layer] && c->s->spec.sliding_window <= 1024;
}

/* How many columns a unit of several tokens in parts has; 0: all. */
static unsigned columns_apart(const struct checker *c)
{
	const struct model_spec *s = &c->s->spec;
	const struct key like = {
		.kind = KEY_ATTENTION,
		.codegen = key_codegen(c->opt->target->id),
		.target = (uint8_t)c->opt->target->id,
		.heads = s->heads,
		.kv_heads = s->kv_heads,
		.head_dim = s->head_dim,
		.kv = (uint8_t)(c->s->kv.type + 1),
		.tile_n = c->p->tokens,
		.rows = 1,
		.flags = KEY_ROTATES
	};

	return template_attention_apart(c->opt->target, &like);
}

/* Whether a pass of a few tokens should have its context in parts, where a layer's window is not short. */
static bool is_small_batch(const struct checker *c)
{
	const struct model_spec *s = &c->s->spec;
	const uint32_t n = c->p->tokens;
	bool all = n > 1 && n <= PLAN_DATAFLOW_MAX && c->opt->context != PLAN_WHOLE && !c->opt->general &&
	           c->opt->target->lane_bytes && !s->latent.rank;

	for (uint32_t i = 0; i < PLAN_LAYERS; i++) {
		const struct weights_layer *l = &c->s->layer[i];
		if (is_short(c, i) || !plan_layer_attends(s, i))
			continue;
		all = all && !l->q_norm == !l->k_norm &&
		      template_attention_columns(c->opt->target, s->heads, s->kv_heads, s->head_dim, n) &&
		      (columns_apart(c) || n * s->heads / s->kv_heads <= 12);
	}
	return all;
}

/* Into how many units a head's context should be cut; *parts: and in how many of these it is not of other tokens. */
static uint32_t wanted_units(const struct checker *c, uint32_t layer, uint32_t *parts)
{
	const uint32_t apart = columns_apart(c), n = c->p->tokens, of_tokens = apart ? (n + apart - 1) / apart : 1;
	const bool wanted = n == 1 ? c->opt->context == PLAN_PARTS : is_small_batch(c);

	*parts = wanted && !is_short(c, layer) ? template_attention_parts(c->opt->target, c->s->spec.kv_heads) : 0;
	for (uint32_t units = 1; n > 1 && units<of_tokens && * parts> 1; units *= 2)
		*parts /= 2;
	return *parts * of_tokens;
}

/* Whether the layer's attention should make its own queries, and store. */
static bool should_rotate(const struct checker *c, uint32_t layer)
{
	const struct model_spec *s = &c->s->spec;
	const struct weights_layer *l = &c->s->layer[layer];

	return (c->p->tokens == 1 || (is_small_batch(c) && !is_short(c, layer))) && !l->q_norm == !l->k_norm &&
	       template_attention_rotates(c->opt->target, s->heads, s->kv_heads, s->head_dim);
}

/* The int8 blocks beside them, where these are asked for. */
static void write_blocks(struct checker *c, const struct key *k, uint32_t layer, uint64_t out, unsigned q, unsigned s)
{
	const struct weights_layer *l = &c->s->layer[layer];
	bool wanted = should_rotate(c, layer) && !l->q_gate.packed && c->s->spec.head_dim % 32 == 0 &&
	              !c->opt->f32_activations && weight_default_activation(l->o.type) == DTYPE_Q8_0;

	plan_require(c, !(k->flags & KEY_QUANTISED_OUT) == !wanted, "int8 beside its result");
	if (!wanted)
		return;
	plan_require(c, out == plan_address(plan_space_made(c->s, NODE_ATTEND, layer)),
	             "floats beside int8, which nobody need read");
	writes(c, q, ATTENDED, layer, 0);
	writes(c, s, ATTENDED, layer, 0);
}

void do_merge(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	uint32_t i = find(c, arg[MERGE_RECORDS], RECORDED).content.of;

	const uint64_t rows = (uint64_t)c->p->tokens * s->heads;

	plan_require(c, begin == 0 && (uint64_t)end == rows * template_merge_units(s->head_dim), "units");
	plan_require(c, k->heads == s->heads && k->head_dim == s->head_dim, "heads");
	check_window(c, k, i, arg[MERGE_SLIDING], arg[MERGE_SINKS]);
	check_position(c, &arg[MERGE_POS0]);
	reads(c, MERGE_RECORDS, CHUNK_RECORDS, i, 0);
	writes(c, MERGE_OUT, c->s->layer[i].q_gate.packed ? UNGATED : ATTENDED, i, 0);
	write_blocks(c, k, i, arg[MERGE_OUT], MERGE_OUTQ, MERGE_OUTS);
}

/* What it then reads and writes beside all else. The newest position is what it writes; where what it reads lies is
 * checked by that. */
static void touch_rotation(struct checker *c, const struct key *k, const uint64_t *arg, uint32_t i)
{
	const struct model_spec *s = &c->s->spec;
	const struct weights_layer *l = &c->s->layer[i];

	check_rotation(c, k, ATTENTION_COS, ATTENTION_SIN, arg[ATTENTION_NORM], arg[ATTENTION_EPS], l->q_norm);
	check_rotation(c, k, ATTENTION_KEY_COS, ATTENTION_KEY_SIN, arg[ATTENTION_KEY_NORM], arg[ATTENTION_EPS],
	               l->k_norm);
	check_scale(c, &arg[ATTENTION_SCALE]);
	plan_require(c, !(k->flags & KEY_VALUE_NORM) == !s->value_norms, "norm of values");
	plan_require(c, !(k->flags & KEY_NORM_LAST) == !(l->q_norm && s->norms_rotated), "norm's place");
	reads(c, ATTENTION_Q, QUERIES, i, 0);
	reads(c, ATTENTION_K, KEYS, i, 0);
	reads(c, ATTENTION_V, VALUES, i, 0);
	if (!k->row_blocks) /* else an op of its own stores them, behind it */
		do_cache(c, true, i, ATTENTION_KEYS, ATTENTION_VALUES);
	judged(c, ATTENTION_KEYS);
	judged(c, ATTENTION_VALUES);
}

void do_attention(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	bool rotates = k->flags & KEY_ROTATES;
	uint32_t i = layer_of(c, arg[ATTENTION_Q], rotates ? QUERIES : ROTATED), n = c->p->tokens;
	/* Wherever the pass begins, the last of them covers the last token. */
	uint64_t tiles = k->tile_n > 1 ? (k->tile_n - 1 + n + k->tile_n - 1) / k->tile_n : n;
	uint32_t parts, units = wanted_units(c, i, &parts);
	bool whole = begin == 0 && (uint64_t)end >= tiles * s->kv_heads;

	plan_require(c, whole || parts || n == 1, "units");
	plan_require(c, k->rows == parts && (!parts || (begin == 0 && end == (int64_t)units * s->kv_heads)), "parts");
	plan_require(c, k->row_blocks == (parts && n > 1 ? columns_apart(c) : 0), "columns of a unit");
	plan_require(c,
	             k->heads == s->heads && k->kv_heads == s->kv_heads && k->head_dim == s->head_dim &&
	                     k->kv == c->s->kv.type + 1,
	             "heads or cache");
	plan_require(c, parts ? k->tile_n == n : k->tile_n && !(k->tile_n & (k->tile_n - 1)), "tokens of tiles");
	plan_require(c, !c->opt->general || k->tile_n == 1, "tokens of tiles");
	check_window(c, k, i, arg[ATTENTION_SLIDING], arg[ATTENTION_SINKS]);
	plan_require(c, !(k->flags & KEY_BIAS) == !c->s->weights.score_bias, "bias by distance");
	plan_require(c, arg[ATTENTION_BIAS] == plan_address(c->s->weights.score_bias), "bias by distance");
	plan_require(c, !(k->flags & KEY_CAP) == !s->score_cap.given, "bound of scores");
	plan_require(c, (uint32_t)arg[ATTENTION_CAP] == plan_bits_of(s->score_cap.value), "bound of scores");
	plan_require(c, arg[ATTENTION_COLUMNS] == n, "tokens");
	check_position(c, &arg[ATTENTION_POS0]);
	check_changing(c, &arg[ATTENTION_PAGES], PLAN_PAGES, 0);
	plan_require(c, rotates == should_rotate(c, i), "rotation: inside, or by an op of its own");
	if (rotates) {
		touch_rotation(c, k, arg, i);
	} else {
		reads(c, ATTENTION_Q, ROTATED, i, 0);
		do_cache(c, false, i, ATTENTION_KEYS, ATTENTION_VALUES);
	}
	uint32_t attended = c->s->layer[i].q_gate.packed ? UNGATED : ATTENDED;
	if (parts) {
		writes(c, ATTENTION_OUT, CHUNK_RECORDS, i, 0);
		plan_require(c, !(k->flags & KEY_QUANTISED_OUT), "int8 beside records");
		return;
	}
	write_blocks(c, k, i, arg[ATTENTION_OUT], ATTENTION_OUTQ, ATTENTION_OUTS);
	writes(c, ATTENTION_OUT, attended, i, 0);
}
