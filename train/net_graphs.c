/* train/net_graphs.c - the executables of a model that learns: of each kind of layer forward and back, and the head. */
#include <stdlib.h>

#include "graph/draw.h"
#include "graph/passes.h"
#include "graph/transforms.h"
#include "train/net_parts.h"

static bool is_copied(enum layer_input_kind kind) { return kind <= LAYER_SEGMENT; }

/* Whether gradients are due for an input. */
static bool is_trained(const struct net *n, const struct layer_input *in)
{
	return n->o.full ? in->kind == LAYER_WEIGHT
	                 : in->kind == LAYER_A || in->kind == LAYER_B || in->kind == LAYER_MAGNITUDE;
}

/* ---- layers */

/* Its gradients, in two parts, of which the first is computed on the way forward. */
static bool open_halves(struct net *n, struct net_class *c, const struct tensor_graph *back, const bool bound[],
                        struct error *err)
{
	struct tensor_graph simple;
	struct split s;
	bool ok;

	tensor_graph_init(&simple);
	ok = passes_run(&simple, back, err);
	if (ok) {
		ok = split_graph(&s, &simple, c->graph.inputs, err);
		for (uint32_t k = 0; ok && k < s.n_kept; k++) {
			const struct tensor_value_info *v = &simple.value[s.kept[k]];
			c->kept[c->n_kept++] = c->kept_bytes;
			c->kept_bytes += (shape_elements(&v->shape) * tensor_type_bytes(v->type) + 63) / 64 * 64;
		}
		if (ok)
			c->keeping = executable_open_bound(n->compute, &s.front, bound, err);
		if (c->keeping)
			c->backward = executable_open_bound(n->compute, &s.back, bound, err);
		split_free(&s);
	}
	tensor_graph_free(&simple);
	return c->backward != NULL;
}

static bool open_layer(struct net *n, struct net_class *c, struct error *err)
{
	bool bound[LAYER_INPUTS_MAX + 1 + SPLIT_KEPT_MAX] = { false };
	tensor_value wrt[LAYER_INPUTS_MAX];
	struct tensor_graph back;
	uint32_t wanted = 0;

	wrt[wanted++] = c->graph.g.input[0];
	for (uint32_t i = 0; i < c->graph.inputs; i++) {
		bound[i] = !is_copied(c->graph.input[i].kind);
		if (is_trained(n, &c->graph.input[i]))
			wrt[wanted++] = c->graph.g.input[i];
	}
	tensor_graph_init(&back);
	c->forward = executable_open_bound(n->compute, &c->graph.g, bound, err);
	if (c->forward && tensor_graph_vjp(&back, &c->graph.g, wrt, wanted, n->o.keep, err)) {
		if (n->o.keep)
			open_halves(n, c, &back, bound, err);
		else
			c->backward = executable_open_bound(n->compute, &back, bound, err);
	}
	tensor_graph_free(&back);
	return c->backward != NULL;
}

/* ---- norms of DoRA: of each matrix with an adapter, 1 / the norm of each row of W + s B A */

static uint32_t find_input(const struct layer_graph *l, enum layer_input_kind kind, enum tensor_slot slot)
{
	uint32_t i = 0;

	while (i < l->inputs && (l->input[i].kind != kind || l->input[i].slot != slot))
		i++;
	return i;
}

static tensor_value norm_input(struct draw *d, struct net_class *c, enum layer_input_kind kind, enum tensor_slot slot)
{
	const uint32_t i = find_input(&c->graph, kind, slot);

	c->norm_input[c->norm_inputs++] = i;
	return tensor_graph_input(d->g, c->graph.g.value[c->graph.g.input[i]].name, JIT_TYPE_F32,
	                          &c->graph.input[i].shape, d->err);
}

static tensor_value norm_matrix(struct draw *d, const struct net *n, struct net_class *c, uint32_t layer,
                                enum tensor_slot slot)
{
	const struct model_tensor *t = train_tensor_of(n->m, layer, slot);
	const uint32_t i = find_input(&c->graph, LAYER_WEIGHT, slot);
	struct shape s;

	c->norm_input[c->norm_inputs++] = i;
	const tensor_value v =
		c->graph.input[i].packed
			? layer_matrix_input(d, c->graph.g.value[c->graph.g.input[i]].name, t, t->rows, &s)
			: tensor_graph_input(d->g, c->graph.g.value[c->graph.g.input[i]].name, JIT_TYPE_F32,
	                                     &c->graph.input[i].shape, d->err);
	return layer_unpacked(d, v, t);
}

static bool open_norms(struct net *n, struct net_class *c, uint32_t layer, struct error *err)
{
	struct tensor_graph g;
	struct draw d = { .g = &g, .err = err };
	bool bound[LAYER_INPUTS_MAX], ok = true;

	tensor_graph_init(&g);
	for (uint32_t i = 0; ok && i < c->graph.inputs; i++) {
		const struct layer_input *in = &c->graph.input[i];
		if (in->kind != LAYER_NORM)
			continue;
		const tensor_value w = norm_matrix(&d, n, c, layer, in->slot), a = norm_input(&d, c, LAYER_A, in->slot),
				   b = norm_input(&d, c, LAYER_B, in->slot);
		const tensor_value ba = draw_dot(&d, b, a, 1, 0, 0);
		const tensor_value all =
			draw_binary(&d, OP_add, w, draw_with(&d, OP_mul, ba, (double)n->o.adapters.scale));
		const tensor_value y =
			draw_unary(&d, OP_rsqrt,
		                   draw_reduce(&d, OP_reduce_sum, draw_binary(&d, OP_mul, all, all), 2, false));
		c->norm_of[c->norm_outputs++] = i;
		ok = y && tensor_graph_output(&g, c->graph.g.value[c->graph.g.input[i]].name, y, err);
	}
	for (uint32_t i = 0; i < c->norm_inputs; i++)
		bound[i] = true;
	if (ok)
		c->norms = executable_open_bound(n->compute, &g, bound, err);
	tensor_graph_free(&g);
	return c->norms != NULL;
}

/* ---- the head */

static bool open_head(struct net *n, struct error *err)
{
	bool bound[HEAD_MATRIX + HEAD_CHUNKS_MAX + 1] = { [HEAD_NORM] = true, [HEAD_NORM_BIAS] = true }, ok;
	tensor_value wrt[HEAD_MATRIX + HEAD_CHUNKS_MAX];
	struct tensor_graph g, back;

	n->cut = head_cut_of(n->m, n->o.chunk ? n->o.chunk : NET_CHUNK);
	for (uint32_t i = 0; i < n->cut.chunks; i++)
		bound[HEAD_MATRIX + i] = true;

	n->head_rows = NET_LOGITS / n->m->spec.vocab / NET_HEAD_ROWS * NET_HEAD_ROWS;
	if (n->head_rows > (n->o.tokens + NET_HEAD_ROWS - 1) / NET_HEAD_ROWS * NET_HEAD_ROWS)
		n->head_rows = (n->o.tokens + NET_HEAD_ROWS - 1) / NET_HEAD_ROWS * NET_HEAD_ROWS;
	if (n->head_rows < NET_HEAD_ROWS)
		n->head_rows = NET_HEAD_ROWS;
	ok = head_draw(&g, n->m, &n->cut, n->head_rows, net_head_is_packed(n), err);

	tensor_graph_init(&back);
	if (ok) {
		uint32_t wanted = 0;
		wrt[wanted++] = g.input[HEAD_X];
		for (uint32_t i = HEAD_NORM; n->o.full && i < HEAD_MATRIX + n->cut.chunks; i++)
			wrt[wanted++] = g.input[i];
		ok = tensor_graph_vjp(&back, &g, wrt, wanted, true, err);
	}
	if (ok)
		n->head_loss = executable_open_bound(n->compute, &g, bound, err);
	if (n->head_loss)
		n->head_back = executable_open_bound(n->compute, &back, bound, err);
	tensor_graph_free(&g);
	tensor_graph_free(&back);
	return n->head_back != NULL;
}

/* Of each kind of layer four, and two of the head. */
static struct executable *executable_number(const struct net *n, uint32_t i)
{
	const struct net_class *c = i / 4 < n->n_classes ? &n->classes[i / 4] : NULL;

	if (!c)
		return i == 4 * n->n_classes ? n->head_loss : n->head_back;
	return i % 4 == 0 ? c->forward : i % 4 == 1 ? c->backward : i % 4 == 2 ? c->keeping : c->norms;
}

static bool share_memory(struct net *n, struct error *err)
{
	const uint32_t all = 4 * n->n_classes + 2;
	uint64_t max = 0;
	jit_error e = { 0 };
	bool ok = true;

	for (uint32_t i = 0; i < all; i++) {
		const struct executable *x = executable_number(n, i);
		if (x && executable_memory_bytes(x) > max)
			max = executable_memory_bytes(x);
	}
	n->memory = jit_buffer_open(n->compute, max + !max, &e);
	if (!n->memory)
		return error_set(err, ERROR_MEMORY, "%s", e.message);
	for (uint32_t i = 0; ok && i < all; i++) {
		struct executable *x = executable_number(n, i);
		ok = !x || executable_lend(x, n->memory, err);
	}
	return ok;
}

bool net_draw_all(struct net *n, struct error *err)
{
	const struct layer_adapters *adapters = n->o.full ? NULL : &n->o.adapters;

	n->classes = calloc(n->m->spec.layers, sizeof *n->classes);
	n->class_of = calloc(n->m->spec.layers, sizeof *n->class_of);
	if (!n->classes || !n->class_of)
		return error_set(err, ERROR_MEMORY, "there is no memory for %u layers", n->m->spec.layers);
	for (uint32_t l = 0; l < n->m->spec.layers; l++) {
		uint32_t like = 0;
		while (like < l && !layer_is_like(n->m, l, like))
			like++;
		if (like < l) {
			n->class_of[l] = n->class_of[like];
			continue;
		}
		struct net_class *c = &n->classes[n->class_of[l] = n->n_classes++];
		if (!layer_draw(&c->graph, n->m, l, n->o.tokens, adapters, err) || !open_layer(n, c, err) ||
		    (adapters && adapters->dora && !open_norms(n, c, l, err)))
			return false;
	}
	return open_head(n, err) && share_memory(n, err);
}
