/* runtime/plan/plan_steps.c - rules of norms, scales, sums, gates and logits (lower.h). */
#include <assert.h>

#include "runtime/plan/lower.h"

bool plan_wants_int8(const struct plan_builder *b, const struct weights_matrix *w)
{
	return plan_activation(b->opt, w->type) == DTYPE_Q8_0;
}

uint64_t *plan_norm(struct plan_builder *b, const float *x, const float *weight, float *out, uint32_t k, uint32_t flags,
                    uint32_t tokens)
{
	struct key key = plan_key(b, KEY_NORM);

	key.k = k;
	key.flags = flags | (b->spec->centred ? KEY_CENTRED : 0);
	uint64_t *a = plan_add_op(b, &key, 0, tokens);
	a[NORM_X] = plan_address(x);
	a[NORM_WEIGHT] = plan_address(weight);
	a[NORM_OUT] = plan_address(out);
	a[NORM_EPS] = plan_f32_slot(b->spec->norm_eps);
	plan_last_op(b)->serial = tokens == 1;
	return a;
}

uint64_t *plan_biased_norm(struct plan_builder *b, const float *x, const float *weight, const float *bias, float *out,
                           uint32_t k, uint32_t flags, uint32_t tokens)
{
	uint64_t *a = plan_norm(b, x, weight, out, k, flags | (bias ? KEY_BIAS : 0), tokens);

	a[NORM_BIAS] = plan_address(bias);
	return a;
}

void plan_scale(struct plan_builder *b, const float *in, float *out, uint32_t n, uint64_t k, uint64_t by,
                uint32_t flags)
{
	struct key key = plan_key(b, KEY_SCALE);

	key.flags = flags;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(n * (numerics_pad(k) / 32)));
	a[SCALE_IN] = plan_address(in);
	a[SCALE_OUT] = plan_address(out);
	a[SCALE_BY] = by;
	plan_last_op(b)->serial = n * k <= 1 << 14;
}

void plan_quantise(struct plan_builder *b, struct activations a, uint64_t k)
{
	struct key key = plan_key(b, KEY_QUANTISE);
	uint64_t *arg = plan_add_op(b, &key, 0, (int64_t)(b->n * (numerics_pad(k) / 32)));
	arg[QUANTISE_X] = plan_address(a.x);
	arg[QUANTISE_OUTQ] = plan_address(a.q);
	arg[QUANTISE_OUTS] = plan_address(a.s);
	plan_last_op(b)->serial = b->n == 1;
}

/* ---- rules */

/* A norm of `groups` columns of a token, each with weights of its own, or all with the same. */
static void norm_groups(struct plan_builder *b, const struct graph_node *n)
{
	const uint32_t groups = n->groups, k = (uint32_t)(graph_value(b->g, n->out[0])->width / groups);
	const float *weight = graph_vector_of(b->g, n->in[IN_W]);

	if (n->shared && k % 32 == 0) { /* then columns have no pads, and are as good as tokens */
		plan_norm(b, plan_floats(b, n->in[IN_X]), weight, plan_floats(b, n->out[0]), k, 0,
		          b->n * groups)[NORM_EPS] = plan_f32_slot(n->number);
		return;
	}
	struct key key = plan_key(b, KEY_NORM);
	key.k = k;
	key.heads = groups > 1 ? groups : 0;
	key.kv_heads = n->shared;
	key.flags = b->spec->centred ? KEY_CENTRED : 0;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)b->n * groups);
	a[NORM_X] = plan_address(plan_floats(b, n->in[IN_X]));
	a[NORM_WEIGHT] = plan_address(weight);
	a[NORM_OUT] = plan_address(plan_floats(b, n->out[0]));
	a[NORM_EPS] = plan_f32_slot(n->number);
	plan_last_op(b)->serial = b->n == 1 && groups == 1;
}

/* Of a norm that makes int8 blocks; one token's has no form that awaits. */
static uint32_t blocks_flags(const struct plan_builder *b, const struct graph_node *n)
{
	return KEY_QUANTISED_OUT | (b->n > 1 && plan_node_of(b, n)->awaited ? KEY_AWAITED : 0);
}

void lower_norm(struct plan_builder *b, const struct graph_node *n)
{
	const graph_ref to = plan_added_to(b, n), v = to ? to : n->out[0];
	const uint32_t k = (uint32_t)graph_value(b->g, n->out[0])->width;
	const bool int8 = !to && b->of[v].int8;

	if (b->of[v].inside)
		return;
	if (n->groups) {
		norm_groups(b, n);
		return;
	}
	const struct activations out = plan_operand(b, v);
	uint64_t *a = plan_biased_norm(b, plan_floats(b, n->in[IN_X]), graph_vector_of(b->g, n->in[IN_W]),
	                               graph_vector_of(b->g, n->in[IN_BIAS]), out.x, k,
	                               (to ? KEY_RESIDUAL : 0) | (int8 ? blocks_flags(b, n) : 0), b->n);
	a[NORM_EPS] = plan_f32_slot(n->number);
	if (int8) {
		a[NORM_OUTQ] = plan_address(out.q);
		a[NORM_OUTS] = plan_address(out.s);
		plan_put_int8(b, v);
	}
}

void lower_scale(struct plan_builder *b, const struct graph_node *n)
{
	const graph_ref to = plan_added_to(b, n), by = n->in[IN_W];
	const struct graph_value *x = graph_value(b->g, n->in[IN_X]);
	const float *one = graph_vector_of(b->g, by);
	const float *each = by && !one ? plan_floats(b, by) + (uint64_t)n->layer * b->n * numerics_pad(x->width) : NULL;

	plan_scale(b, plan_floats(b, n->in[IN_X]), plan_floats(b, to ? to : n->out[0]), b->n, x->width,
	           one  ? plan_address(one)
	           : by ? plan_address(each)
	                : plan_f32_slot(plan_is_shown(b, n->in[IN_X]) ? 1 : n->number),
	           (one  ? KEY_GATED
	            : by ? KEY_PAIR
	                 : 0) |
	                   (to ? KEY_RESIDUAL : 0));
}

/* A sum that no kernel makes with its summand: that, times 1. */
void lower_add(struct plan_builder *b, const struct graph_node *n)
{
	if (!plan_is_summed(b, n))
		plan_scale(b, plan_floats(b, n->in[IN_W]), plan_floats(b, n->out[0]), b->n,
		           graph_value(b->g, n->in[IN_W])->width, plan_f32_slot(1), KEY_RESIDUAL);
}

void lower_gate(struct plan_builder *b, const struct graph_node *n)
{
	const uint64_t width = graph_value(b->g, n->in[IN_X])->width;
	struct key key = plan_key(b, KEY_GATE);

	key.act = n->act;
	if (n->groups) {
		key.flags = KEY_BY_HEAD;
		key.heads = n->groups;
		key.head_dim = (uint32_t)(width / n->groups);
	}
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(b->n * (numerics_pad(width) / 32)));
	a[GATE_X] = plan_address(plan_floats(b, n->in[IN_X]));
	a[GATE_GATE] = plan_address(plan_floats(b, n->in[IN_W]));
	a[GATE_OUT] = plan_address(plan_floats(b, n->out[0]));
	plan_last_op(b)->serial = b->n * width <= 1 << 13;
}

void lower_xielu(struct plan_builder *b, const struct graph_node *n)
{
	const uint64_t width = graph_value(b->g, n->in[IN_X])->width;
	struct key key = plan_key(b, KEY_GATE);

	key.flags = KEY_SCALED;
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(b->n * (numerics_pad(width) / 32)));
	a[GATE_X] = plan_address(plan_floats(b, n->in[IN_X]));
	a[GATE_GATE] = plan_address(graph_vector_of(b->g, n->in[IN_W]));
	a[GATE_OUT] = plan_address(plan_floats(b, n->out[0]));
	plan_last_op(b)->serial = b->n * width <= 1 << 13;
}

/* ---- logits */

/* The rows that are wanted, those that stand side by side in the stream together: a run from span *i on, which is set
 * to the next span. Returns how many rows it has. */
static uint32_t next_rows(const struct plan_builder *b, uint32_t *i, uint32_t *first)
{
	const struct plan_span *s = &b->span[*i];
	uint32_t n = s->rows;

	*first = s->first + s->tokens - s->rows;
	for (; n && *i + 1 < b->spans && s[1].rows == s[1].tokens; s++, ++*i)
		n += s[1].rows;
	++*i;
	return n;
}

/* The final norm of the rows that are wanted, one behind the other; returns how many. Those that stand side by side in
 * the stream are one op. */
static uint32_t norm_rows_wanted(struct plan_builder *b, const struct graph_node *node, bool int8)
{
	const float *weight = graph_vector_of(b->g, node->in[IN_BIAS]), *x = plan_floats(b, node->in[IN_X]),
		    *bias = graph_vector_of(b->g, node->in[IN_BIAS2]);
	const struct activations out = plan_operand(b, node->out[1]);
	uint64_t hidden = numerics_pad(b->spec->hidden);
	uint32_t rows = 0, first;

	for (uint32_t i = 0, n; i < b->spans; rows += n) {
		if (!(n = next_rows(b, &i, &first)))
			continue;
		uint64_t *a = plan_biased_norm(b, x + first * hidden, weight, bias, out.x + rows * hidden,
		                               b->spec->hidden, int8 ? blocks_flags(b, node) : 0, n);
		if (int8) {
			a[NORM_OUTQ] = plan_address(out.q + rows * hidden);
			a[NORM_OUTS] = plan_address(out.s + rows * (hidden / 32));
		}
	}
	plan_store_behind(b); /* blocks that have no norm to make have nothing else to do */
	return rows;
}

/* The product that makes logits of so many rows, from row `first` on. */
static void add_logits(struct plan_builder *b, const struct graph_node *node, struct activations in, uint32_t first,
                       uint32_t rows)
{
	const uint64_t vocab = numerics_pad(b->spec->vocab);
	const float *bias = graph_vector_of(b->g, node->in[IN_W2]);
	const bool adapts = plan_adapts(b, graph_matrix_of(b->g, node->in[IN_W])),
		   lacks = adapts || plan_replaces_head(b),
		   keeps = !lacks && plan_keeps_greatest(b->spec, b->opt->target);

	b->p->lacks_greatest = lacks;
	plan_multiply(b, &(struct matmul){
				 .w = graph_matrix_of(b->g, node->in[IN_W]),
				 .awaited = plan_node_of(b, node)->awaited,
				 .in = in,
				 .out = b->buf->logits + first * vocab,
				 .bias = bias,
				 .greatest = b->buf->greatest ? b->buf->greatest + first * (vocab / 32) : NULL,
				 .flags = keeps    ? KEY_GREATEST
	                                  : adapts ? KEY_RESIDUAL
	                                           : 0,
				 .tokens = rows });
}

/* The logits of all rows that are wanted, with the norm inside; 0: that is not to be done. Rows that stand apart would
 * have the matrix read several times, which a general pass does anyway. */
static uint32_t logits_with_norm(struct plan_builder *b, const struct graph_node *node)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, node->in[IN_W]);
	const float *norm = graph_vector_of(b->g, node->in[IN_BIAS]);
	float *x = plan_floats(b, node->in[IN_X]);
	uint64_t hidden = numerics_pad(b->spec->hidden);
	uint32_t rows = 0, runs = 0, first;

	for (uint32_t i = 0, n; i<b->spans; rows += n, runs += n> 0)
		n = next_rows(b, &i, &first);
	if (!rows || (runs > 1 && !b->opt->general) || !plan_norm_inside(b, w, 0, rows, plan_node_of(b, node)->awaited))
		return 0;
	rows = 0;
	for (uint32_t i = 0, n; i < b->spans; rows += n) {
		if (!(n = next_rows(b, &i, &first)))
			continue;
		add_logits(b, node, (struct activations){ .x = x + first * hidden, .norm = norm }, rows, n);
	}
	return rows;
}

void lower_head(struct plan_builder *b, const struct graph_node *node)
{
	const struct plan_buffers *f = b->buf;
	const struct weights_matrix *w = graph_matrix_of(b->g, node->in[IN_W]);
	const bool all_normed = b->p->logits == PLAN_ALL_NORMED, adapts = plan_adapts(b, w);
	const bool replaces = plan_replaces_head(b);
	uint32_t n = all_normed || adapts || replaces || node->in[IN_BIAS2] ? 0 : logits_with_norm(b, node);

	if (!n) {
		/* The same kernel whether or not the output matrix follows, so that no list of kernels grows by it. */
		n = norm_rows_wanted(b, node, plan_wants_int8(b, w));
		if (all_normed)
			return;
		if (adapts && n)
			plan_adapt_logits(b, node, n);
		add_logits(b, node, plan_operand(b, node->out[1]), 0, n);
		if (replaces && n)
			plan_replace_logits(b, node, n);
	}
	assert(n <= f->logit_tokens);
	const struct model_scale by[] = { b->spec->logit_scale, b->spec->logit_cap };
	for (int i = 0; i < 2; i++)
		if (by[i].given)
			plan_scale(b, f->logits, f->logits, n, b->spec->vocab, plan_f32_slot(by[i].value),
			           i ? KEY_CAP : 0);
}
