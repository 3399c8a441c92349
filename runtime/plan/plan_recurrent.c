/* runtime/plan/plan_recurrent.c - rules of nodes that keep a state instead of keys and values.
 *
 * Owns: where these ops find the state before the pass, and leave the one behind it (plan_set_sequences()): a run reads
 * one and writes another, so that the one before stays for who goes back.
 */
#include <math.h>

#include "base/math_host.h"
#include "runtime/plan/lower.h"

/* An op's two slots of a state, which begins so far in that of all layers. */
static void state_slots(struct plan_builder *b, uint64_t *before, uint64_t *behind, uint64_t offset)
{
	plan_changing_slot(b, before, PLAN_STATE_BEFORE, offset);
	plan_changing_slot(b, behind, PLAN_STATE_BEHIND, offset);
}

/* Of a weight. */
static uint64_t vector(const struct plan_builder *b, graph_ref v) { return plan_address(graph_vector_of(b->g, v)); }

static uint64_t row_of(const float *rows, const struct plan_span *span, uint64_t width)
{
	return rows ? plan_address(rows + span->first * width) : 0;
}

static void convolve(struct plan_builder *b, const struct graph_node *n, const struct plan_span *span)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	const uint32_t channels = (uint32_t)graph_value(b->g, n->in[IN_X])->width;
	struct key key = plan_key(b, KEY_CONV);

	key.k = channels;
	key.rows = r->taps;
	key.flags = (n->in[IN_W] ? KEY_GATED : 0) | (n->in[IN_BIAS] ? KEY_BIAS : 0);
	key.act = n->act;
	uint64_t *a = plan_add_op(b, &key, 0, channels / 32);
	a[CONV_X] = row_of(plan_floats(b, n->in[IN_X]), span, channels);
	a[CONV_X2] = row_of(plan_floats(b, n->in[IN_W2]), span, channels);
	a[CONV_GATE] = row_of(plan_floats(b, n->in[IN_W]), span, channels);
	a[CONV_WEIGHT] = vector(b, n->in[IN_BIAS2]);
	a[CONV_OUT] = row_of(plan_floats(b, n->out[0]), span, channels);
	a[CONV_COLUMNS] = span->tokens;
	a[CONV_BIAS] = vector(b, n->in[IN_BIAS]);
	state_slots(b, &a[CONV_STATE_IN], &a[CONV_STATE_OUT],
	            plan_state_offset(b->spec, n->layer) + plan_conv_offset(b->spec, n->rows));
	plan_last_op(b)->serial = b->n == 1 && channels <= 4096;
}

void lower_conv(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_span *span;

	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		convolve(b, n, span);
}

static void add_delta(struct plan_builder *b, const struct graph_node *n, const struct plan_span *span)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	struct key key = plan_key(b, KEY_DELTA);

	key.heads = r->value_heads;
	key.kv_heads = r->key_heads;
	key.head_dim = r->key_dim;
	key.rows = r->value_dim;
	key.flags = (r->tiled ? KEY_TILED : 0) | (r->doubled ? KEY_SCALED : 0) | (n->in[IN_ADDED] ? KEY_SORTED : 0) |
	            (n->in[IN_BIAS] ? 0 : KEY_OF_ALL);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)r->value_heads * template_value_blocks(r->value_dim));
	a[DELTA_QKV] = row_of(plan_floats(b, n->in[IN_X]), span, graph_value(b->g, n->in[IN_X])->width);
	a[DELTA_K] = row_of(plan_floats(b, n->in[IN_ADDED]), span, (uint64_t)r->key_heads * r->key_dim);
	a[DELTA_V] = row_of(plan_floats(b, n->in[IN_ADDED2]), span, (uint64_t)r->value_heads * r->value_dim);
	a[DELTA_A] = plan_row_at(plan_floats(b, n->in[IN_W]), span->first, graph_value(b->g, n->in[IN_W])->width);
	a[DELTA_B] = plan_row_at(plan_floats(b, n->in[IN_W2]), span->first, r->value_heads);
	a[DELTA_DECAY] = vector(b, n->in[IN_BIAS]);
	a[DELTA_DT] = vector(b, n->in[IN_BIAS2]);
	a[DELTA_SCALE] = plan_f32_slot((float)(1.0 / math_host_sqrt((double)r->key_dim)));
	a[DELTA_OUT] = row_of(plan_floats(b, n->out[0]), span, (uint64_t)r->value_heads * r->value_dim);
	a[DELTA_COLUMNS] = span->tokens;
	state_slots(b, &a[DELTA_STATE_IN], &a[DELTA_STATE_OUT],
	            plan_state_offset(b->spec, n->layer) + plan_conv_bytes(b->spec));
}

void lower_delta(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_span *span;

	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		add_delta(b, n, span);
}

static void add_scan(struct plan_builder *b, const struct graph_node *n, const struct plan_span *span)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	struct key key = plan_key(b, KEY_SCAN);

	key.heads = r->value_heads;
	key.kv_heads = r->key_heads;
	key.head_dim = r->key_dim;
	key.rows = r->value_dim;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)r->value_heads * template_value_blocks(r->value_dim));
	a[SCAN_XBC] = row_of(plan_floats(b, n->in[IN_X]), span, r->channels);
	a[SCAN_DT] = plan_row_at(plan_floats(b, n->in[IN_W]), span->first, r->value_heads);
	a[SCAN_DT_BIAS] = vector(b, n->in[IN_BIAS]);
	a[SCAN_DECAY] = vector(b, n->in[IN_W2]);
	a[SCAN_SKIP] = vector(b, n->in[IN_BIAS2]);
	a[SCAN_FLOOR] = plan_f32_slot(r->floor);
	a[SCAN_CEILING] = plan_f32_slot(r->ceiling != 0 ? r->ceiling : INFINITY);
	a[SCAN_OUT] = row_of(plan_floats(b, n->out[0]), span, (uint64_t)r->value_heads * r->value_dim);
	a[SCAN_COLUMNS] = span->tokens;
	state_slots(b, &a[SCAN_STATE_IN], &a[SCAN_STATE_OUT],
	            plan_state_offset(b->spec, n->layer) + plan_conv_bytes(b->spec));
}

static void add_channel(struct plan_builder *b, const struct graph_node *n, const struct plan_span *span)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	const uint64_t width = graph_value(b->g, n->out[0])->width;
	struct key key = plan_key(b, KEY_CHANNEL);

	key.k = (uint32_t)width;
	key.rows = r->key_dim;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(width / 32));
	a[CHANNEL_X] = row_of(plan_floats(b, n->in[IN_X]), span, width);
	a[CHANNEL_DT] = row_of(plan_floats(b, n->in[IN_W]), span, width);
	a[CHANNEL_DT_BIAS] = vector(b, n->in[IN_BIAS]);
	a[CHANNEL_B] = plan_row_at(plan_floats(b, n->in[IN_W2]), span->first, r->key_dim);
	a[CHANNEL_C] = plan_row_at(plan_floats(b, n->in[IN_ADDED]), span->first, r->key_dim);
	a[CHANNEL_DECAY] = vector(b, n->in[IN_BIAS2]);
	a[CHANNEL_SKIP] = vector(b, n->in[IN_ADDED2]);
	a[CHANNEL_OUT] = row_of(plan_floats(b, n->out[0]), span, width);
	a[CHANNEL_COLUMNS] = span->tokens;
	state_slots(b, &a[CHANNEL_STATE_IN], &a[CHANNEL_STATE_OUT],
	            plan_state_offset(b->spec, n->layer) + plan_conv_bytes(b->spec));
}

void lower_channel(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_span *span;

	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		add_channel(b, n, span);
}

void lower_scan(struct plan_builder *b, const struct graph_node *n)
{
	const struct plan_span *span;

	for (uint32_t i = 0; (span = plan_span_at(b, i)); i++)
		add_scan(b, n, span);
}
