/* runtime/plan/lower.c - the pass that makes ops of a graph's nodes (lower.h).
 *
 * Owns: what is decided by looking at more than one node: which sums their operands' kernels make, which norms the
 * matrices that read them make, of which values int8 blocks are wanted, and which nodes synchronise by dataflow. Then
 * each node's rule adds its ops, in the order of nodes.
 */
#include "runtime/plan/lower.h"

#include <assert.h>
#include <stdlib.h>

/* ---- sums: added by the kernel that makes the summand, where nothing else reads it */

static bool adds_itself(enum graph_kind kind)
{
	return kind == NODE_MATMUL || kind == NODE_NORM || kind == NODE_SCALE || kind == NODE_COMBINE ||
	       kind == NODE_SHOWN || kind == NODE_ADAPT_TOKENS;
}

/* Whether a node between two others reads the value. */
static bool read_between(const struct graph *g, graph_ref v, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		for (unsigned in = 0; in < GRAPH_INS; in++)
			if (g->node[i].in[in] == v)
				return true;
	return false;
}

void plan_find_sums(const struct graph *g, uint32_t *sum)
{
	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const struct graph_node *n = &g->node[i];
		if (n->kind != NODE_ADD)
			continue;
		const struct graph_value *y = graph_value(g, n->in[IN_W]);
		const struct graph_node *by = graph_producer(g, n->in[IN_W]);
		if (by && y->users == 1 && adds_itself((enum graph_kind)by->kind) && !by->groups &&
		    graph_value(g, n->in[IN_X])->producer < y->producer &&
		    !read_between(g, n->in[IN_X], y->producer, i))
			sum[y->producer] = i + 1;
	}
}

graph_ref plan_added_to(const struct plan_builder *b, const struct graph_node *n)
{
	const uint32_t sum = b->sum[n - b->g->node];

	return sum ? b->g->node[sum - 1].in[IN_X] : 0;
}

/* ---- int8 blocks, where a matrix reads them */

uint32_t plan_pair_of(const struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]), *w2 = graph_matrix_of(b->g, n->in[IN_W2]);

	return w2 && weights_gate_up_interleaved(w->type, w2->type) ? KEY_PAIR : 0;
}

static bool multiplies(const struct graph_node *n)
{
	return n->kind == NODE_MATMUL || n->kind == NODE_BY_HEAD || n->kind == NODE_EXPERTS;
}

static void find_int8(struct plan_builder *b)
{
	const struct graph *g = b->g;

	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const struct graph_node *n = &g->node[i];
		if (!multiplies(n))
			continue;
		const struct weights_matrix *w = graph_matrix_of(g, n->in[IN_W]),
					    *w2 = graph_matrix_of(g, n->in[IN_W2]);
		b->of[n->in[IN_X]].int8 |= plan_wants_int8(b, w) || (w2 && plan_wants_int8(b, w2));
	}
}

void plan_ready(struct plan_builder *b, graph_ref v)
{
	if (!b->of[v].int8 || b->of[v].inside || plan_has_int8(b, v))
		return;
	plan_quantise(b, plan_operand(b, v), graph_value(b->g, v)->width);
	plan_put_int8(b, v);
}

/* ---- norms that the matrices make which read them */

/* Notes which node writes over each value: a sum or a scale, in place. */
static void find_overwritten(struct plan_builder *b)
{
	const struct graph *g = b->g;

	for (uint32_t v = 0; v < g->n_values; v++)
		b->of[v].overwritten = UINT32_MAX;
	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const struct graph_node *n = &g->node[i];
		const uint32_t sum = b->sum[i];
		if (sum)
			b->of[g->node[sum - 1].in[IN_X]].overwritten = i;
		else if ((n->kind == NODE_SCALE || n->kind == NODE_ADD) && b->of[n->in[IN_X]].overwritten == UINT32_MAX)
			b->of[n->in[IN_X]].overwritten = i;
	}
}

/* Whether a norm may be no op: what it reads must be there as long as its result is read. */
static bool may_be_inside(const struct plan_builder *b, const struct graph_node *n)
{
	const struct graph_value *out = graph_value(b->g, n->out[0]);

	return n->kind == NODE_NORM && !n->kept && !n->groups && !n->in[IN_BIAS] && n->number == b->spec->norm_eps &&
	       out->users && out->last_user < b->of[n->in[IN_X]].overwritten;
}

static bool makes_norm(const struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]), *w2 = graph_matrix_of(b->g, n->in[IN_W2]);
	const uint32_t pair = plan_pair_of(b, n);

	const bool awaited = plan_node_of(b, n)->awaited;

	return n->kind == NODE_MATMUL && plan_norm_inside(b, w, pair, b->n, awaited) &&
	       (!w2 || plan_norm_inside(b, w2, pair, b->n, awaited));
}

static void find_norms(struct plan_builder *b)
{
	const struct graph *g = b->g;

	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const struct graph_node *n = &g->node[i];
		b->of[n->out[0]].inside = may_be_inside(b, n);
		if (plan_is_idle(b, n))
			continue;
		for (unsigned in = 0; in < GRAPH_INS; in++)
			if (b->of[n->in[in]].inside && !(in == IN_X && makes_norm(b, n)))
				b->of[n->in[in]].inside = false;
	}
}

/* ---- dataflow nodes, and attention in parts */

static void find_ways(struct plan_builder *b)
{
	const bool awaited = plan_hands(b), parts = awaited || plan_is_small(b);

	for (uint32_t i = 0; i < b->g->n_nodes; i++)
		b->node[i] = (struct plan_node){ .awaited = awaited, .parts = parts };
}

/* ---- nodes */

static void (*const lower_node[NODE_KINDS])(struct plan_builder *, const struct graph_node *) = {
	[NODE_EMBED] = lower_embed,       [NODE_SHOWN] = lower_shown,
	[NODE_NORM] = lower_norm,         [NODE_MATMUL] = lower_matmul,
	[NODE_BY_HEAD] = lower_by_head,   [NODE_ADD] = lower_add,
	[NODE_SCALE] = lower_scale,       [NODE_GATE] = lower_gate,
	[NODE_XIELU] = lower_xielu,       [NODE_LAYER_INPUTS] = lower_layer_inputs,
	[NODE_ROTATE] = lower_rotate,     [NODE_STORE] = lower_store,
	[NODE_ATTEND] = lower_attend,     [NODE_CONV] = lower_conv,
	[NODE_DELTA] = lower_delta,       [NODE_SCAN] = lower_scan,
	[NODE_CHANNEL] = lower_channel,   [NODE_ROUTE] = lower_route,
	[NODE_EXPERTS] = lower_experts,   [NODE_COMBINE] = lower_combine,
	[NODE_HEAD] = lower_head,         [NODE_ADAPT_DOWN] = lower_adapt_down,
	[NODE_ADAPT_UP] = lower_adapt_up, [NODE_ADAPT_TOKENS] = lower_adapt_tokens
};

bool plan_is_summed(const struct plan_builder *b, const struct graph_node *n)
{
	const struct graph_node *by = graph_producer(b->g, n->in[IN_W]);

	return n->kind == NODE_ADD && by && b->sum[by - b->g->node] == (uint32_t)(n - b->g->node) + 1;
}

/* Whether the node's own result comes to be: not a summand alone, nor a norm that others make, nor a sum that was made
 * with its summand. */
static bool is_made(const struct plan_builder *b, uint32_t node)
{
	const struct graph_node *n = &b->g->node[node];

	return !b->sum[node] && !b->of[n->out[0]].inside && !plan_is_summed(b, n);
}

static void lower_section(struct plan_builder *b, uint32_t section)
{
	const struct graph *g = b->g;

	for (uint32_t i = g->section[section]; i < g->section[section + 1]; i++) {
		const struct graph_node *n = &g->node[i];
		if (b->sum[i])
			plan_put(b, g->node[b->sum[i] - 1].out[0], b->sum[i] - 1);
		for (unsigned out = 0; is_made(b, i) && out < GRAPH_OUTS && n->out[out]; out++)
			plan_put(b, n->out[out], i);
		lower_node[n->kind](b, n);
	}
}

bool plan_lower(struct plan_builder *b, const struct graph *g)
{
	struct plan *p = b->p;

	b->of = calloc(g->n_values, sizeof *b->of);
	b->node = calloc(g->n_nodes, sizeof *b->node);
	b->sum = calloc(g->n_nodes, sizeof *b->sum);
	if (!b->of || !b->node || !b->sum)
		return false;
	b->g = g;
	find_ways(b);
	plan_find_sums(g, b->sum);
	find_int8(b);
	find_overwritten(b);
	find_norms(b);
	for (uint32_t i = 0; i < g->n_sections; i++) {
		const bool head = i + 1 == g->n_sections;
		if (head && p->logits == PLAN_NO_LOGITS)
			break;
		p->section[p->n_sections++] = (uint32_t)p->n_ops;
		lower_section(b, i);
	}
	if (p->logits == PLAN_NO_LOGITS)
		plan_store_behind(b);
	return true;
}
