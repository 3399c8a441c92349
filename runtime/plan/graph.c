/* runtime/plan/graph.c - see graph.h. */
#include "runtime/plan/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool graph_open(struct graph *g, uint32_t nodes, uint32_t sections)
{
	const uint32_t values = 1 + nodes * (GRAPH_INS + GRAPH_OUTS);

	memset(g, 0, sizeof *g);
	g->value = malloc(values * sizeof *g->value + nodes * sizeof *g->node + (sections + 1) * sizeof *g->section);
	if (!g->value)
		return false;
	g->node = (struct graph_node *)(g->value + values);
	g->section = (uint32_t *)(g->node + nodes);
	g->values_max = values;
	g->nodes_max = nodes;
	g->sections_max = sections;
	g->value[0] = (struct graph_value){ .producer = (uint32_t)GRAPH_OUTSIDE };
	g->n_values = 1;
	return true;
}

void graph_close(struct graph *g)
{
	free(g->value); /* and all that lies behind */
	memset(g, 0, sizeof *g);
}

void graph_section(struct graph *g, uint32_t layer)
{
	assert(g->n_sections < g->sections_max);
	g->section[g->n_sections++] = g->n_nodes;
	g->layer = layer;
}

void graph_end(struct graph *g) { g->section[g->n_sections] = g->n_nodes; }

static graph_ref add_value(struct graph *g, const struct graph_value *v)
{
	assert(g->n_values < g->values_max);
	g->value[g->n_values] = *v;
	return g->n_values++;
}

graph_ref graph_matrix(struct graph *g, const struct weights_matrix *w)
{
	if (!w || !w->packed)
		return 0;
	return add_value(
		g,
		&(struct graph_value){
			.width = w->rows, .storage = GRAPH_WEIGHT, .matrix = w, .producer = (uint32_t)GRAPH_OUTSIDE });
}

graph_ref graph_vector(struct graph *g, const float *v, uint64_t width)
{
	if (!v)
		return 0;
	return add_value(
		g, &(struct graph_value){
			   .width = width, .storage = GRAPH_WEIGHT, .vector = v, .producer = (uint32_t)GRAPH_OUTSIDE });
}

graph_ref graph_kept(struct graph *g, enum graph_storage storage, uint32_t layer)
{
	return add_value(g, &(struct graph_value){
				    .storage = (uint8_t)storage, .layer = layer, .producer = (uint32_t)GRAPH_OUTSIDE });
}

graph_ref graph_result(struct graph *g, uint64_t width)
{
	struct graph_node *n = &g->node[g->n_nodes - 1];
	unsigned i = 0;

	while (n->out[i])
		i++;
	assert(i < GRAPH_OUTS);
	return n->out[i] = add_value(g, &(struct graph_value){ .width = width, .producer = g->n_nodes - 1 });
}

graph_ref graph_node(struct graph *g, const struct graph_node *n, uint64_t width)
{
	assert(g->n_nodes < g->nodes_max);
	struct graph_node *to = &g->node[g->n_nodes];
	*to = *n;
	to->layer = g->layer;
	for (unsigned i = 0; i < GRAPH_INS; i++) {
		assert(n->in[i] < g->n_values);
		if (!n->in[i])
			continue;
		g->value[n->in[i]].users++;
		g->value[n->in[i]].last_user = g->n_nodes;
	}
	g->n_nodes++;
	return graph_result(g, width);
}

graph_ref graph_keep(struct graph *g, graph_ref v)
{
	g->node[g->value[v].producer].kept = true;
	return v;
}

graph_ref graph_matmul(struct graph *g, graph_ref x, const struct weights_matrix *w, const float *bias)
{
	return graph_gated(g, x, &(struct graph_gate){ .up = w, .up_bias = bias });
}

/* What adapters add to the product; 0: there can be none. */
static graph_ref adapted(struct graph *g, graph_ref x, const struct weights_matrix *w)
{
	if (!g->adapted || !w || !w->site)
		return 0;
	const graph_ref matrix = graph_matrix(g, w);
	const struct graph_node down = { .kind = NODE_ADAPT_DOWN, .in = { [IN_X] = x, [IN_W] = matrix } };
	const graph_ref narrow = graph_node(g, &down, w->site->ranks);
	const struct graph_node up = { .kind = NODE_ADAPT_UP, .in = { [IN_X] = narrow, [IN_W] = matrix } };

	return graph_node(g, &up, 2 * numerics_pad(w->rows)); /* with factors, where there are some */
}

graph_ref graph_adapted_slots(struct graph *g, graph_ref x, const struct weights_matrix *w, graph_ref choice,
                              uint32_t slots)
{
	if (!g->adapted || !w || !w->site)
		return 0;
	const graph_ref matrix = graph_matrix(g, w);
	const struct graph_node down = { .kind = NODE_ADAPT_DOWN,
		                         .in = { [IN_X] = x, [IN_W] = matrix, [IN_INTO] = choice } };
	const graph_ref narrow = graph_node(g, &down, slots * numerics_pad(w->site->ranks));
	const struct graph_node up = { .kind = NODE_ADAPT_UP,
		                       .in = { [IN_X] = narrow, [IN_W] = matrix, [IN_INTO] = choice } };

	return graph_node(g, &up, slots * numerics_pad(w->rows));
}

graph_ref graph_gated(struct graph *g, graph_ref x, const struct graph_gate *m)
{
	const bool pair = m->gate && m->gate->packed;
	const struct weights_matrix *w = pair ? m->gate : m->up;
	struct graph_node n = { .kind = NODE_MATMUL, .act = (uint8_t)m->act };

	n.in[IN_X] = x;
	n.in[IN_W] = graph_matrix(g, w);
	n.in[IN_BIAS] = graph_vector(g, pair ? m->gate_bias : m->up_bias, w->rows);
	n.in[IN_ADDED] = adapted(g, x, w);
	if (pair) {
		n.in[IN_W2] = graph_matrix(g, m->up);
		n.in[IN_BIAS2] = graph_vector(g, m->up_bias, w->rows);
		n.in[IN_ADDED2] = adapted(g, x, m->up);
	}
	return graph_node(g, &n, w->rows);
}

graph_ref graph_norm(struct graph *g, graph_ref x, const float *weight, float eps)
{
	return graph_biased_norm(g, x, weight, NULL, eps);
}

graph_ref graph_biased_norm(struct graph *g, graph_ref x, const float *weight, const float *bias, float eps)
{
	const uint64_t width = g->value[x].width;
	const struct graph_node n = {
		.kind = NODE_NORM,
		.number = eps,
		.in = { [IN_X] = x, [IN_W] = graph_vector(g, weight, width), [IN_BIAS] = graph_vector(g, bias, width) }
	};

	return graph_node(g, &n, width);
}

graph_ref graph_add(struct graph *g, graph_ref x, graph_ref y)
{
	return graph_node(g, &(struct graph_node){ .kind = NODE_ADD, .in = { [IN_X] = x, [IN_W] = y } },
	                  g->value[x].width);
}

graph_ref graph_scale(struct graph *g, graph_ref x, float number)
{
	return graph_node(g, &(struct graph_node){ .kind = NODE_SCALE, .number = number, .in = { [IN_X] = x } },
	                  g->value[x].width);
}

graph_ref graph_times(struct graph *g, graph_ref x, graph_ref by)
{
	return graph_node(g, &(struct graph_node){ .kind = NODE_SCALE, .in = { [IN_X] = x, [IN_W] = by } },
	                  g->value[x].width);
}

graph_ref graph_multiply(struct graph *g, graph_ref x, graph_ref gate, enum key_act act)
{
	const struct graph_node n = { .kind = NODE_GATE, .act = (uint8_t)act, .in = { [IN_X] = x, [IN_W] = gate } };

	return graph_node(g, &n, g->value[x].width);
}
