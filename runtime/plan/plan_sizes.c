/* runtime/plan/plan_sizes.c - how much memory passes take: a session's buffers, records, pages and states.
 *
 * Owns: the sizes. Where a kernel decides how something lies, its signature says how large it is
 * (kernels-templates/signature.h); tests/runtime/t_plan_room.c holds what ops touch against the sizes here.
 */
#include "kernels-templates/signature.h"
#include "runtime/plan/graph.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/rope.h"

/* Bytes up to where the last of `units` units ends in this slot; arg: the slots' values. */
static uint64_t room(const struct key *key, const uint64_t *arg, unsigned slot, uint64_t units)
{
	return units ? kernel_extent(key, arg, slot, (int64_t)units - 1, (int64_t)units).end : 0;
}

static const uint64_t no_values[PLAN_ARGS_MAX];

uint64_t plan_cache_keys(enum dtype type, const struct model_spec *s, uint32_t layer)
{
	const struct key key = { .kind = KEY_KV_STORE,
		                 .kv_heads = model_sizes_of(s, layer).kv_heads,
		                 .head_dim = model_cache_dim(s, layer),
		                 .kv = key_type(type) };

	return plan_layer_keeps(s, layer) ? (room(&key, no_values, KV_STORE_KEYS, key.kv_heads) + 63) / 64 * 64 : 0;
}

uint64_t plan_cache_bytes(enum dtype type, const struct model_spec *s, uint32_t layer)
{
	return plan_cache_keys(type, s, layer) * (s->latent.rank ? 1 : 2);
}

uint64_t plan_cache_offset(const struct plan_cache *kv, const struct model_spec *s, uint32_t layer)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < layer && !s->encodes; i++)
		if (!kv->window_page_bytes || plan_layer_slides(s, i) == plan_layer_slides(s, layer))
			at += plan_cache_bytes(kv->type, s, i);
	return at;
}

/* Of a layer's convolution, and of its delta rule or scan, whose states are alike. */
uint64_t plan_conv_bytes(const struct model_spec *s)
{
	const struct key key = { .kind = KEY_CONV, .k = s->recurrent.channels, .rows = s->recurrent.taps };

	return room(&key, no_values, CONV_STATE_IN, key.k / 32);
}

uint64_t plan_conv_offset(const struct model_spec *s, uint64_t channel)
{
	return channel * (s->recurrent.taps - 1) * sizeof(float);
}

static uint64_t rule_bytes(const struct model_spec *s)
{
	const struct model_recurrent *r = &s->recurrent;
	const struct key key = {
		.kind = KEY_DELTA, .heads = r->value_heads, .head_dim = r->key_dim, .rows = r->value_dim
	};

	return room(&key, no_values, DELTA_STATE_IN, key.heads * template_value_blocks(key.rows));
}

static uint64_t layer_state_bytes(const struct model_spec *s, uint32_t layer)
{
	switch (model_layer_mixer(s, layer)) {
#define X(id, name, rule) \
	case MIXER_##id: return plan_conv_bytes(s) + (rule ? rule_bytes(s) : 0);
		MODEL_MIXERS(X)
#undef X
	default: return 0;
	}
}

uint64_t plan_state_offset(const struct model_spec *s, uint32_t layer)
{
	uint64_t at = 0;

	for (uint32_t i = 0; s->layer_mixer && i < layer; i++)
		at += layer_state_bytes(s, i);
	return at;
}

uint64_t plan_state_bytes(const struct model_spec *s) { return plan_state_offset(s, s->layers); }

uint64_t plan_ids_bytes(uint32_t tokens) { return (uint64_t)GRAPH_IDS * tokens * sizeof(int32_t); }

void plan_fill_positions(const struct plan_buffers *buf, const struct model_spec *s, uint32_t first, uint64_t position,
                         uint32_t n)
{
	for (uint32_t i = 0; s->pos_embed.bytes && i < n; i++)
		buf->ids[(size_t)IDS_POSITIONS * buf->tokens + first + i] = (int32_t)(s->positions_from + position + i);
}

uint64_t plan_angles_bytes(const struct model_spec *s, uint32_t tokens)
{
	return (uint64_t)tokens * rope_tables(s) * rope_half(s) * sizeof(float);
}

uint64_t plan_record_bytes(const struct model_spec *s, uint64_t context)
{
	const uint64_t arg[PLAN_ARGS_MAX] = { [ATTENTION_POS0] = context - 1, [ATTENTION_COLUMNS] = 1 };
	uint64_t max = 0;

	for (uint32_t i = 0; i < s->layers && context; i++) {
		const struct model_sizes z = model_sizes_of(s, i);
		const struct key key = { .kind = KEY_ATTENTION,
			                 .heads = model_heads_of(s, i),
			                 .kv_heads = z.kv_heads,
			                 .head_dim = z.head_dim,
			                 .rows = 1 };
		const uint64_t one = room(&key, arg, ATTENTION_OUT, z.kv_heads);
		max = one > max ? one : max;
	}
	return max;
}

uint32_t plan_record_tokens(const struct model_spec *s, uint64_t context, uint32_t tokens)
{
	enum { MAX = 128 << 20 };
	const uint64_t one = plan_record_bytes(s, context), fit = one ? MAX / one : 0;
	uint32_t n = tokens < PLAN_DATAFLOW_MAX ? tokens : PLAN_DATAFLOW_MAX;

	n = n < fit ? n : (uint32_t)fit;
	return n ? n : 1;
}
