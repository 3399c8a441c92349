/* tests/runtime/plan_check_experts.c - what the kernels of a mixture of experts read and write, and whether that is
 * there: plan_check_kernels.c for the choice, the order of slots, the chosen matrices and the sums.
 *
 * A slot is a row of a buffer, token by token or, sorted, expert by expert: `flags` of what lies there says which. All
 * of these launches do whole passes. */
#include <string.h>

#include "tests/runtime/plan_checker.h"
#include "tests/support/widths.h"

static uint64_t slots_of(const struct checker *c) { return (uint64_t)c->p->tokens * c->s->spec.experts_used; }

static uint64_t groups_of(const struct checker *c)
{
	return slots_of(c) < c->s->spec.experts ? slots_of(c) : c->s->spec.experts;
}

/* Of slots: `flags` says whether they are sorted. */
static struct content of_slots(enum value value, uint32_t of, bool sorted)
{
	return (struct content){ .value = value, .of = of, .flags = sorted };
}

/* What of a token's the experts read. */
static enum value tokens_input(const struct checker *c)
{
	return c->s->spec.experts_beside ? EXPERTS_INPUT : FFN_INPUT;
}

static void check_units(struct checker *c, int64_t begin, int64_t end, uint64_t expected)
{
	plan_require(c, begin == 0 && (uint64_t)end == expected, "units");
}

static void check_slots(struct checker *c, const struct key *k)
{
	plan_require(c, k->heads == c->s->spec.experts_used, "slots of a token");
}

void do_route(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct model_spec *s = &c->s->spec;
	const uint32_t i = layer_of(c, arg[ROUTE_LOGITS], ROUTED);
	const struct weights_layer *l = &c->s->layer[i];
	const uint32_t normed = (s->router_normed ? KEY_NORMED : 0) | (s->router_share_eps ? KEY_SHARE_EPS : 0),
		       flags = s->router_sigmoid   ? KEY_SIGMOID | normed
	                       : !s->router_normed ? KEY_OF_ALL
	                                           : 0;

	check_slots(c, k);
	plan_require(c, k->rows == s->experts && k->kv_heads == s->expert_groups && k->k == s->expert_groups_used,
	             "experts or groups");
	plan_require(c, k->flags == (flags | (l->router_bias ? KEY_BIAS : 0) | (l->expert_scale ? KEY_SCALED : 0)),
	             "flags");
	plan_require(
		c, arg[ROUTE_BIAS] == plan_address(l->router_bias) && arg[ROUTE_TIMES] == plan_address(l->expert_scale),
		"bias or factors");
	plan_require(c, (uint32_t)arg[ROUTE_SCALE] == plan_bits_of(s->router_scale.given ? s->router_scale.value : 1),
	             "scale");
	check_units(c, begin, end, c->p->tokens);
	reads(c, ROUTE_LOGITS, ROUTED, i, 0);
	writes(c, ROUTE_CHOSEN, CHOSEN, i, 0);
	writes(c, ROUTE_SHARES, SHARES, i, 0);
}

void do_dispatch(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const uint32_t i = layer_of(c, arg[DISPATCH_CHOSEN], CHOSEN);

	check_slots(c, k);
	check_units(c, begin, end, 1);
	plan_require(c, k->rows == c->s->spec.experts && k->flags == 0, "experts or flags");
	plan_require(c, arg[DISPATCH_TOKENS] == c->p->tokens && arg[DISPATCH_GROUP_COUNT] == groups_of(c),
	             "tokens or groups");
	reads(c, DISPATCH_CHOSEN, CHOSEN, i, 0);
	writes(c, DISPATCH_POSITIONS, SLOTS, i, 0);
	writes(c, DISPATCH_GROUPS, GROUPS_OF_SLOTS, i, 0);
}

void do_scatter(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const bool int8 = k->activation == DTYPE_Q8_0 + 1;
	const uint32_t i = layer_of(c, arg[SCATTER_POSITIONS], SLOTS);

	check_slots(c, k);
	check_units(c, begin, end, c->p->tokens);
	plan_require(c, k->k == c->s->spec.hidden && k->flags == 0 && (int8 || k->activation == DTYPE_F32 + 1),
	             "length, format or flags");
	reads(c, SCATTER_POSITIONS, SLOTS, i, 0);
	reads(c, SCATTER_X, tokens_input(c), i, 0);
	touches(c, SCATTER_OUT, true, of_slots(SLOT_INPUT, i, true), 0, 0);
	if (!int8)
		return;
	reads(c, SCATTER_XS, tokens_input(c), i, 0);
	touches(c, SCATTER_OUTS, true, of_slots(SLOT_INPUT, i, true), 0, 0);
}

/* ---- the chosen matrices */

struct chosen {
	const struct weights_matrix *w, *w2;
	const float *bias, *bias2;
	enum value in, old, value; /* in: FFN_INPUT, which is a token's, until slots are sorted */
	uint32_t layer, epilogue;
};

static bool find_chosen(const struct plan_space *s, uint64_t w, struct chosen *out)
{
	for (uint32_t i = 0; i < PLAN_LAYERS; i++) {
		const struct weights_layer *l = &s->layer[i];
		bool one = weights_gate_up_interleaved(l->expert_gate.type, l->expert_up.type);
		const struct chosen list[] = {
			{ &l->expert_gate, one ? &l->expert_up : NULL, l->expert_gate_bias,
			  one ? l->expert_up_bias : NULL, FFN_INPUT, NOTHING, one ? SLOT_GATED : SLOT_GATE, i,
			  one ? KEY_PAIR : 0 },
			{ &l->expert_up, NULL, l->expert_up_bias, NULL, FFN_INPUT, SLOT_GATE, SLOT_GATED, i,
			  KEY_GATED },
			{ &l->expert_down, NULL, l->expert_down_bias, NULL, SLOT_GATED, NOTHING, SLOT_RESULT, i, 0 }
		};
		for (size_t m = 0; m < sizeof list / sizeof *list; m++)
			if (list[m].w->packed && plan_address(list[m].w->packed) == w && !(one && m == 1)) {
				*out = list[m];
				return true;
			}
	}
	return false;
}

static void check_chosen_key(struct checker *c, const struct key *k, const struct chosen *m, enum dtype act)
{
	const uint32_t flags = KEY_EXPERTS | m->epilogue | (m->bias ? KEY_BIAS : 0) | (m->bias2 ? KEY_BIAS2 : 0),
		       allowed = m->value == SLOT_GATED ? KEY_QUANTISED_OUT : 0, used = c->s->spec.experts_used;
	const bool sorted = k->tile_n > 1;

	plan_require(c, k->weight == m->w->type + 1 && k->rows == m->w->rows && k->k == m->w->k && k->row_blocks == 1,
	             "format or sizes");
	plan_require(c, (k->flags & ~allowed) == flags && k->numerics == NUMERICS_EXACT, "epilogue or numerics");
	plan_require(c, k->act == (m->epilogue ? act_of(c->s) : ACT_NONE), "activation function");
	plan_require(c, k->activation == act + 1, "format of activations");
	plan_require(c,
	             k->tile_n >= 1 && !(k->tile_n & (k->tile_n - 1)) && k->tile_n <= c->p->tokens &&
	                     k->tile_n <= widths_routes(c->opt->target) && (!c->opt->general || !sorted),
	             "columns of tiles");
	plan_require(c, k->heads == (sorted ? 0 : used), "slots of a token");
	plan_require(c, k->kv_heads == (sorted ? 0 : m->in == FFN_INPUT ? used : 1), "slots that share an input");
}

static void read_chosen_input(struct checker *c, const struct chosen *m, enum dtype act, bool sorted,
                              const uint64_t *arg)
{
	const bool int8 = act == DTYPE_Q8_0, own = sorted || m->in != FFN_INPUT;
	const struct content slots = of_slots(m->in == FFN_INPUT ? SLOT_INPUT : m->in, m->layer, sorted),
			     tokens = { .value = tokens_input(c), .of = m->layer };

	plan_require(c, int8 == (arg[MATMUL_XS] != 0), "scales");
	touches(c, MATMUL_X, false, own ? slots : tokens, 0, 0);
	if (int8)
		touches(c, MATMUL_XS, false, own ? slots : tokens, 0, 0);
}

void do_chosen(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const bool sorted = k->tile_n > 1;
	struct chosen m;

	if (!find_chosen(c->s, arg[MATMUL_W], &m)) {
		plan_complain(c, "multiplies by no experts of the model");
		return;
	}
	const enum dtype act = c->opt->f32_activations ? DTYPE_F32 : weight_default_activation(m.w->type);
	const uint64_t rp = numerics_pad(m.w->rows);

	check_chosen_key(c, k, &m, act);
	plan_require(c, arg[MATMUL_OUT] == plan_address(plan_space_product(c->s, m.w)), "destination");
	check_units(c, begin, end, rp / 32 * (sorted ? groups_of(c) : slots_of(c)));
	plan_require(c,
	             arg[MATMUL_BIAS] == plan_address(m.bias) && arg[MATMUL_BIAS2] == plan_address(m.bias2) &&
	                     arg[MATMUL_W2] == (m.w2 ? plan_address(m.w2->packed) : 0) && arg[MATMUL_TILES] == 1 &&
	                     arg[MATMUL_COLUMNS] == k->tile_n,
	             "bias, second matrix or tiles");
	if (c->wrong)
		return;
	const struct content value = of_slots(m.value, m.layer, sorted);
	reads(c, MATMUL_ROUTES, sorted ? GROUPS_OF_SLOTS : CHOSEN, m.layer, 0);
	read_chosen_input(c, &m, act, sorted, arg);
	if (m.old)
		touches(c, MATMUL_OUT, false, of_slots(m.old, m.layer, sorted), 0, 0);
	touches(c, MATMUL_OUT, true, value, 0, 0);
	if (k->flags & KEY_QUANTISED_OUT) {
		touches(c, MATMUL_OUTQ, true, value, 0, 0);
		touches(c, MATMUL_OUTS, true, value, 0, 0);
	}
}

/* ---- sums: of the slots, or the shared expert's with a gate */

void do_combine(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	const bool shared = k->flags & KEY_SIGMOID, sorted = k->flags & KEY_SORTED;
	const uint32_t i = layer_of(c, arg[COMBINE_IN], shared ? SHARED_RESULT : SLOT_RESULT), n = c->p->tokens;
	const uint64_t kp = numerics_pad(c->s->spec.hidden);
	const struct model_spec *spec = &c->s->spec;
	const bool normed = c->s->layer[i].ffn_post_norm && !spec->experts_beside,
		   direct = !spec->residual_scale.given && !spec->experts_beside && !normed,
		   last = shared || !c->s->layer[i].shared_up.packed, adds = direct || (normed && shared);
	const struct state half = { STREAM_HALF, i }, routed = { EXPERTS_RESULT, i },
			   old = normed   ? routed
	                         : shared ? half
	                                  : (struct state){ STREAM, 2 * i + 1 },
			   sum = { normed && last ? FFN_RESULT
		                   : shared       ? SHARED_SUM
		                                  : EXPERTS_RESULT,
		                   i },
			   value = !direct ? sum
	                           : last  ? behind_ffn(c->s, i)
	                                   : half;

	plan_require(c, k->heads == (shared ? 1 : spec->experts_used) && k->k == spec->hidden, "slots or length");
	plan_require(c,
	             (k->flags & ~(uint32_t)(KEY_SIGMOID | KEY_SORTED)) == (adds ? KEY_RESIDUAL : 0u) &&
	                     !(shared && sorted),
	             "flags");
	plan_require(c, !direct || arg[COMBINE_OUT] == plan_address(plan_space_stream(c->s)), "destination");
	check_units(c, begin, end, n * (kp / 32));
	if (shared) {
		reads(c, COMBINE_IN, SHARED_RESULT, i, 0);
		reads(c, COMBINE_SHARES, SHARED_LOGIT, i, 0);
	} else {
		touches(c, COMBINE_IN, false, of_slots(SLOT_RESULT, i, sorted), 0, 0);
		reads(c, COMBINE_SHARES, SHARES, i, 0);
	}
	plan_require(c, sorted == (arg[COMBINE_POSITIONS] != 0), "places");
	if (sorted)
		reads(c, COMBINE_POSITIONS, SLOTS, i, 0);
	if (adds)
		reads_wide(c, COMBINE_OUT, old.value, old.of, 0, kp * 4);
	writes_wide(c, COMBINE_OUT, value.value, value.of, 0, kp * 4);
}
