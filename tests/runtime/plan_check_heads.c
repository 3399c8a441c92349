/* tests/runtime/plan_check_heads.c - what the kernels of attention read and write, and whether that is there. */
#include <string.h>

#include "tests/runtime/plan_memory.h"
#include "tests/runtime/plan_checker.h"

/* Units are heads of tokens; the steps of a chain are some heads of the only token. */

/* The bytes of units [begin, end) where a token has so many heads; the last head takes the padding along. */
struct part {
	uint64_t at, bytes;
};
static struct part part_of(struct checker *c, uint64_t base, uint64_t heads, uint64_t head_bytes, uint64_t stride,
                           uint64_t tokens, uint64_t begin, uint64_t end)
{
	if (begin == 0 && end == heads * tokens)
		return (struct part){ base, stride * tokens };
	plan_require(c, tokens == 1 && begin < end && end <= heads, "units");
	return (struct part){ base + begin * head_bytes,
		              (end == heads ? stride : end * head_bytes) - begin * head_bytes };
}

static void touch_heads(struct checker *c, bool write, uint32_t value, uint32_t of, uint64_t base, uint64_t heads,
                        uint64_t begin, uint64_t end)
{
	uint64_t head_bytes = c->s->spec.head_dim * 4, stride = numerics_pad(heads * c->s->spec.head_dim) * 4;
	struct part part = part_of(c, base, heads, head_bytes, stride, c->p->tokens, begin, end);

	touch(c, write, part.at, part.bytes, columns_at(value, of, PLAIN_FLOATS, stride, base, 0));
}

static void check_rotation(struct checker *c, const struct key *k, uint64_t cos, uint64_t sin, uint64_t norm,
                           uint64_t eps, const float *weight)
{
	plan_require(c, cos == plan_address(c->s->buffers.cos) && sin == plan_address(c->s->buffers.sin), "angles");
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

void do_rope(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	/* Heads in front of these may have been rotated where they lie. */
	const struct segment *in = plan_memory_at(&c->memory, arg[ROPE_IN] + (uint64_t)begin * s->head_dim * 4);
	const uint32_t i = in && in->content.value == QUERIES ? in->content.of : 0;

	plan_require(c, in && in->content.value == QUERIES, "input");
	check_rotation(c, k, arg[ROPE_COS], arg[ROPE_SIN], arg[ROPE_NORM], arg[ROPE_EPS], c->s->layer[i].q_norm);
	check_scale(c, &arg[ROPE_SCALE]);
	plan_require(c, k->heads == s->heads, "heads");
	touch_heads(c, false, QUERIES, i, arg[ROPE_IN], s->heads, (uint64_t)begin, (uint64_t)end);
	touch_heads(c, true, ROTATED, i, arg[ROPE_OUT], s->heads, (uint64_t)begin, (uint64_t)end);
}

void check_changing(struct checker *c, const uint64_t *slot, enum plan_change what, uint64_t offset)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->p->n_changing; i++)
		n += c->p->changing[i].slot == slot && c->p->changing[i].what == what &&
		     c->p->changing[i].offset == offset;
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

void do_kv_store(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	uint32_t i = layer_of(c, arg[KV_STORE_K], KEYS), group = template_kv_store_tokens(c->opt->target),
		 n = c->p->tokens;
	uint64_t units = (uint64_t)(n + group - 1) / group * s->kv_heads, all = (uint64_t)n * s->kv_heads;
	bool whole = begin == 0 && (uint64_t)end == units;

	plan_require(c, whole || n == 1, "units");
	uint64_t first = whole ? 0 : (uint64_t)begin, last = whole ? all : (uint64_t)end;
	check_rotation(c, k, arg[KV_STORE_COS], arg[KV_STORE_SIN], arg[KV_STORE_NORM], arg[KV_STORE_EPS],
	               c->s->layer[i].k_norm);
	plan_require(c, k->kv_heads == s->kv_heads && k->kv == c->s->kv.type + 1 && arg[KV_STORE_COLUMNS] == n,
	             "heads, cache or tokens");
	check_position(c, &arg[KV_STORE_POS0]);
	check_changing(c, &arg[KV_STORE_PAGES], PLAN_PAGES, 0);
	touch_heads(c, false, KEYS, i, arg[KV_STORE_K], s->kv_heads, first, last);
	touch_heads(c, false, VALUES, i, arg[KV_STORE_V], s->kv_heads, first, last);
	touch_cache(c, true, i, arg[KV_STORE_KEYS], arg[KV_STORE_VALUES], whole ? 0 : first,
	            whole ? s->kv_heads : last);
}

/* What attention of a context in parts leaves: all units of a kv head write some of its rows' records. */
static void touch_records(struct checker *c, bool write, uint32_t layer, uint64_t base)
{
	const struct model_spec *s = &c->s->spec;
	uint64_t bytes = (uint64_t)c->p->tokens * s->heads * template_attention_record(s->head_dim);

	touch(c, write, base, bytes,
	      (struct content){
		      .value = CHUNK_RECORDS, .of = layer, .form = RECORDED, .stride = bytes, .origin = base });
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
static bool is_few(const struct checker *c)
{
	const struct model_spec *s = &c->s->spec;
	const uint32_t n = c->p->tokens;
	bool all = n > 1 && n <= PLAN_HANDED_MOST && c->opt->context != PLAN_WHOLE && !c->opt->general &&
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
	const bool wanted = n == 1 ? c->opt->context == PLAN_PARTS : is_few(c);

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

	return (c->p->tokens == 1 || (is_few(c) && !is_short(c, layer))) && !l->q_norm == !l->k_norm &&
	       template_attention_rotates(c->opt->target, s->heads, s->kv_heads, s->head_dim);
}

/* The int8 blocks beside them, where these are asked for. */
static void write_blocks(struct checker *c, const struct key *k, uint32_t layer, uint64_t out, uint64_t q, uint64_t s)
{
	const struct weights_layer *l = &c->s->layer[layer];
	uint64_t kp = numerics_pad((uint64_t)c->s->spec.heads * c->s->spec.head_dim);
	bool wanted = should_rotate(c, layer) && !l->q_gate.packed && c->s->spec.head_dim % 32 == 0 &&
	              !c->opt->f32_activations && weight_default_activation(l->o.type) == DTYPE_Q8_0;

	plan_require(c, !(k->flags & KEY_QUANTISED_OUT) == !wanted, "int8 beside its result");
	if (!wanted)
		return;
	plan_require(c, out == plan_address(c->s->buffers.ao), "floats beside int8, which nobody need read");
	write_plain(c, ATTENDED, layer, PLAIN_BYTES, kp, q, 0, c->p->tokens);
	write_plain(c, ATTENDED, layer, PLAIN_SCALES, kp / 2, s, 0, c->p->tokens);
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
	touch_records(c, false, i, arg[MERGE_RECORDS]);
	touch_heads(c, true, c->s->layer[i].q_gate.packed ? UNGATED : ATTENDED, i, arg[MERGE_OUT], s->heads, 0, rows);
	write_blocks(c, k, i, arg[MERGE_OUT], arg[MERGE_OUTQ], arg[MERGE_OUTS]);
}

/* What it then reads and writes beside all else, for heads first .. last - 1 of the cache. The newest position is what
 * it writes; where what it reads lies is checked by that. */
static void touch_rotation(struct checker *c, const struct key *k, const uint64_t *arg, uint32_t i, uint64_t first,
                           uint64_t last)
{
	const struct model_spec *s = &c->s->spec;
	const struct weights_layer *l = &c->s->layer[i];
	const uint64_t each = s->heads / s->kv_heads;

	check_rotation(c, k, arg[ATTENTION_COS], arg[ATTENTION_SIN], arg[ATTENTION_NORM], arg[ATTENTION_EPS],
	               l->q_norm);
	check_rotation(c, k, arg[ATTENTION_KEY_COS], arg[ATTENTION_KEY_SIN], arg[ATTENTION_KEY_NORM],
	               arg[ATTENTION_EPS], l->k_norm);
	check_scale(c, &arg[ATTENTION_SCALE]);
	plan_require(c, !(k->flags & KEY_VALUE_NORM) == !s->value_norms, "norm of values");
	plan_require(c, !(k->flags & KEY_NORM_LAST) == !(l->q_norm && s->norms_rotated), "norm's place");
	const uint64_t n = c->p->tokens;
	touch_heads(c, false, QUERIES, i, arg[ATTENTION_Q], s->heads, first * each, last * each * n);
	touch_heads(c, false, KEYS, i, arg[ATTENTION_K], s->kv_heads, first, last * n);
	touch_heads(c, false, VALUES, i, arg[ATTENTION_V], s->kv_heads, first, last * n);
	if (!k->row_blocks) /* else an op of its own stores them */
		touch_cache(c, true, i, arg[ATTENTION_KEYS], arg[ATTENTION_VALUES], first, last);
}

void do_attention(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	bool rotates = k->flags & KEY_ROTATES;
	uint32_t i = layer_of(c, arg[ATTENTION_Q], rotates ? QUERIES : ROTATED), n = c->p->tokens,
		 each = s->heads / s->kv_heads;
	/* Wherever the pass begins, the last of them covers the last token. */
	uint64_t tiles = k->tile_n > 1 ? (k->tile_n - 1 + n + k->tile_n - 1) / k->tile_n : n;
	uint32_t parts, units = wanted_units(c, i, &parts);
	bool whole = begin == 0 && (uint64_t)end >= tiles * s->kv_heads;

	plan_require(c, whole || parts || n == 1, "units");
	plan_require(c, k->rows == parts && (!parts || (begin == 0 && end == (int64_t)units * s->kv_heads)), "parts");
	plan_require(c, k->row_blocks == (parts && n > 1 ? columns_apart(c) : 0), "columns of a unit");
	whole |= parts != 0;
	uint64_t first = whole ? 0 : (uint64_t)begin, last = whole ? s->kv_heads : (uint64_t)end;
	plan_require(c,
	             k->heads == s->heads && k->kv_heads == s->kv_heads && k->head_dim == s->head_dim &&
	                     k->kv == c->s->kv.type + 1,
	             "heads or cache");
	plan_require(c, parts ? k->tile_n == n : k->tile_n && !(k->tile_n & (k->tile_n - 1)), "tokens of tiles");
	plan_require(c, !c->opt->general || k->tile_n == 1, "tokens of tiles");
	check_window(c, k, i, arg[ATTENTION_SLIDING], arg[ATTENTION_SINKS]);
	plan_require(c, !(k->flags & KEY_CAP) == !s->score_cap.given, "bound of scores");
	plan_require(c, (uint32_t)arg[ATTENTION_CAP] == plan_bits_of(s->score_cap.value), "bound of scores");
	plan_require(c, arg[ATTENTION_COLUMNS] == n, "tokens");
	check_position(c, &arg[ATTENTION_POS0]);
	check_changing(c, &arg[ATTENTION_PAGES], PLAN_PAGES, 0);
	plan_require(c, rotates == should_rotate(c, i), "rotation: inside, or by an op of its own");
	if (rotates) {
		touch_rotation(c, k, arg, i, first, last);
	} else {
		touch_heads(c, false, ROTATED, i, arg[ATTENTION_Q], s->heads, first * each,
		            whole ? (uint64_t)n * s->heads : last * each);
		touch_cache(c, false, i, arg[ATTENTION_KEYS], arg[ATTENTION_VALUES], first, last);
	}
	uint32_t attended = c->s->layer[i].q_gate.packed ? UNGATED : ATTENDED;
	if (parts) {
		touch_records(c, true, i, arg[ATTENTION_OUT]);
		plan_require(c, !(k->flags & KEY_QUANTISED_OUT), "int8 beside records");
		return;
	}
	write_blocks(c, k, i, arg[ATTENTION_OUT], arg[ATTENTION_OUTQ], arg[ATTENTION_OUTS]);
	touch_heads(c, true, attended, i, arg[ATTENTION_OUT], s->heads, first * each,
	            whole ? (uint64_t)n * s->heads : last * each);
}
