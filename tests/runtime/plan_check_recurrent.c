/* tests/runtime/plan_check_recurrent.c - what the kernels of layers with a state read and write, and whether that is
 * there. The state itself is where each run says, so that its slots must be filled in for that. */
#include <math.h>

#include "tests/runtime/plan_checker.h"

static void check_all(struct checker *c, int64_t begin, int64_t end, int64_t units)
{
	plan_require(c, begin == 0 && end == units, "units");
}

/* One layer has a state, which begins with the inputs of its convolution. */
static void check_state(struct checker *c, const uint64_t *in, const uint64_t *out, bool behind)
{
	const struct model_recurrent *r = &c->s->spec.recurrent;
	const uint64_t offset = behind ? (uint64_t)r->channels * (r->taps - 1) * 4 : 0;

	check_changing(c, in, PLAN_STATE_BEFORE, offset);
	check_changing(c, out, PLAN_STATE_BEHIND, offset);
}

static uint64_t value_bytes(const struct checker *c)
{
	const struct model_recurrent *r = &c->s->spec.recurrent;
	return (uint64_t)r->value_heads * r->value_dim * 4;
}

void do_convolve(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_recurrent *r = &c->s->spec.recurrent;
	const uint32_t i = layer_of(c, arg[CONV_X], MIX_INPUT), n = c->p->tokens;
	const struct weights_layer *l = &c->s->layer[i];
	const bool gated = c->s->mixer[i] == MIXER_CONV;

	plan_require(c,
	             k->k == r->channels && k->rows == r->taps && k->act == (gated ? ACT_NONE : ACT_SILU) &&
	                     k->flags == ((gated ? KEY_GATED : 0u) | (l->taps_bias ? KEY_BIAS : 0u)),
	             "sizes, activation function or flags");
	plan_require(c,
	             arg[CONV_WEIGHT] == plan_address(l->taps) && arg[CONV_BIAS] == plan_address(l->taps_bias) &&
	                     arg[CONV_COLUMNS] == n,
	             "taps, bias or tokens");
	plan_require(c, gated == (arg[CONV_X2] != 0) && gated == (arg[CONV_GATE] != 0), "gate");
	check_all(c, begin, end, r->channels / 32);
	check_state(c, &arg[CONV_STATE_IN], &arg[CONV_STATE_OUT], false);
	reads(c, CONV_X, MIX_INPUT, i, 0);
	if (gated) {
		reads(c, CONV_X2, MIX_FACTOR, i, 0);
		reads(c, CONV_GATE, MIX_GATE, i, 0);
	}
	writes(c, CONV_OUT, gated ? ATTENDED : CONVOLVED, i, 0);
}

static void check_heads(struct checker *c, const struct key *k, uint32_t flags)
{
	const struct model_recurrent *r = &c->s->spec.recurrent;

	plan_require(c,
	             k->heads == r->value_heads && k->kv_heads == r->key_heads && k->head_dim == r->key_dim &&
	                     k->rows == r->value_dim && k->flags == flags,
	             "sizes or flags");
}

void do_delta(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_recurrent *r = &c->s->spec.recurrent;
	const uint32_t i = layer_of(c, arg[DELTA_QKV], CONVOLVED), n = c->p->tokens;
	const struct weights_layer *l = &c->s->layer[i];

	check_heads(c, k, r->tiled ? KEY_TILED : 0);
	plan_require(c,
	             arg[DELTA_DECAY] == plan_address(l->delta_decay) && arg[DELTA_DT] == plan_address(l->delta_dt) &&
	                     arg[DELTA_COLUMNS] == n,
	             "rates or tokens");
	plan_require(c, (uint32_t)arg[DELTA_SCALE] == plan_bits_of((float)(1 / sqrt((double)r->key_dim))), "scale");
	check_all(c, begin, end, (int64_t)r->value_heads * template_value_blocks(r->value_dim));
	check_state(c, &arg[DELTA_STATE_IN], &arg[DELTA_STATE_OUT], true);
	reads(c, DELTA_QKV, CONVOLVED, i, 0);
	reads(c, DELTA_A, RATE_A, i, 0);
	reads(c, DELTA_B, RATE_B, i, 0);
	writes(c, DELTA_OUT, MIXED, i, 0);
}

void do_scan(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_recurrent *r = &c->s->spec.recurrent;
	const uint32_t i = layer_of(c, arg[SCAN_XBC], CONVOLVED), n = c->p->tokens;
	const struct weights_layer *l = &c->s->layer[i];

	check_heads(c, k, 0);
	plan_require(c,
	             arg[SCAN_DT_BIAS] == plan_address(l->scan_dt_bias) &&
	                     arg[SCAN_DECAY] == plan_address(l->scan_decay) &&
	                     arg[SCAN_SKIP] == plan_address(l->scan_skip) && arg[SCAN_COLUMNS] == n &&
	                     (uint32_t)arg[SCAN_FLOOR] == plan_bits_of(r->floor) &&
	                     (uint32_t)arg[SCAN_CEILING] == plan_bits_of(r->ceiling != 0 ? r->ceiling : INFINITY),
	             "rates, floor, ceiling or tokens");
	check_all(c, begin, end, (int64_t)r->value_heads * template_value_blocks(r->value_dim));
	check_state(c, &arg[SCAN_STATE_IN], &arg[SCAN_STATE_OUT], true);
	reads(c, SCAN_XBC, CONVOLVED, i, 0);
	reads(c, SCAN_DT, RATE_A, i, 0);
	writes(c, SCAN_OUT, MIXED, i, 0);
}

/* Of the delta rule's result behind its norm, or of the scan's before it; or of attention's. */
void do_gate(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	if (find(c, arg[GATE_X], PLAIN_FLOATS).content.value == UNGATED) {
		do_attention_gate(c, k, arg, begin, end);
		return;
	}
	const bool scan = c->s->spec.recurrent.floor > 0;
	const uint32_t value = scan ? MIXED : NORMED_MIX, i = layer_of(c, arg[GATE_X], value), n = c->p->tokens;

	plan_require(c, k->act == ACT_SILU && k->flags == 0, "activation function or flags");
	check_all(c, begin, end, (int64_t)(n * value_bytes(c) / 128));
	reads_wide(c, GATE_X, value, i, 0, value_bytes(c));
	reads_wide(c, GATE_GATE, MIX_GATE, i, 0, value_bytes(c));
	writes_wide(c, GATE_OUT, scan ? GATED_MIX : ATTENDED, i, 0, value_bytes(c));
}

bool do_mixer_norm(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_recurrent *r = &c->s->spec.recurrent;
	const uint32_t n = c->p->tokens;
	bool scan = false;
	uint32_t i = 0;

	for (; i < PLAN_LAYERS; i++) {
		const struct weights_layer *l = &c->s->layer[i];
		scan = l->scan_norm && arg[NORM_WEIGHT] == plan_address(l->scan_norm);
		if (scan || (l->delta_norm && arg[NORM_WEIGHT] == plan_address(l->delta_norm)))
			break;
	}
	if (i == PLAN_LAYERS)
		return false;
	plan_require(c,
	             k->k == (scan ? value_bytes(c) / 4 : r->value_dim) && k->flags == 0 && k->heads == 0 &&
	                     (uint32_t)arg[NORM_EPS] == plan_bits_of(c->s->spec.norm_eps),
	             "norm of the mixer's result");
	check_all(c, begin, end, scan ? n : (int64_t)n * r->value_heads);
	/* columns are heads, and a token has all of them */
	reads_wide(c, NORM_X, scan ? GATED_MIX : MIXED, i, 0, value_bytes(c));
	writes_wide(c, NORM_OUT, scan ? ATTENDED : NORMED_MIX, i, 0, value_bytes(c));
	return true;
}
