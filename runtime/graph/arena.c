/* runtime/graph/arena.c - live ranges, and first fit. */
#include "runtime/graph/arena.h"

#include <stdlib.h>

/* A value is live from the step that makes it to the last one that reads it, both included: what a step writes may not
 * overlap what it reads. Inputs are there before the first step (0), outputs behind the last one. */
struct range {
	uint32_t from, to;
	uint64_t bytes;
	tensor_value v;
};

struct ranging {
	const struct tensor_graph *g;
	const struct partition *p;
	struct range *of; /* each value */
	uint32_t step;
};

/* Everything that is read for an element of v. */
static void reads(struct ranging *r, tensor_value v)
{
	const struct tensor_node *n = tensor_node_of(r->g, v);

	if (r->p->home[v] == HOME_INLINE || r->p->home[v] == HOME_ALIAS)
		for (uint32_t k = 0; k < n->operands; k++)
			reads(r, n->operand[k]);
	else if (r->of[v].to < r->step)
		r->of[v].to = r->step;
}

static void find_ranges(struct ranging *r)
{
	for (uint32_t i = 0; i < r->p->groups; i++) {
		const struct tensor_node *n = &r->g->node[r->p->group[i].node];
		r->step = i + 1;
		for (uint32_t k = 0; k < n->results; k++)
			r->of[n->first + k].from = r->of[n->first + k].to = r->step;
		for (uint32_t k = 0; k < n->operands; k++)
			reads(r, n->operand[k]);
	}
	r->step = r->p->groups + 1;
	for (uint32_t i = 0; i < r->g->outputs; i++)
		reads(r, r->g->output[i]);
}

/* What has parts is there from the first of them on, as long as any is read. */
static void join_ranges(struct ranging *r)
{
	for (tensor_value v = 1; v < r->g->values; v++) {
		const tensor_value all = r->p->part_of[v];
		if (!all)
			continue;
		if (r->of[all].from == 0 || r->of[v].from < r->of[all].from)
			r->of[all].from = r->of[v].from;
		if (r->of[v].to > r->of[all].to)
			r->of[all].to = r->of[v].to;
	}
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->v > y->v) - (x->v < y->v);
}

/* The lowest offset that is free as long as r is live. */
static uint64_t first_fit(const struct range *all, uint32_t n, const struct range *r, const uint64_t *at)
{
	uint64_t offset = 0;
	bool moved = true;

	while (moved) {
		moved = false;
		for (uint32_t i = 0; i < n; i++) {
			const struct range *o = &all[i];
			if (o->to < r->from || o->bytes == 0 || at[o->v] + o->bytes <= offset ||
			    offset + r->bytes <= at[o->v])
				continue;
			offset = at[o->v] + o->bytes;
			moved = true;
		}
	}
	return offset;
}

static uint64_t rounded_bytes(const struct tensor_graph *g, tensor_value v)
{
	const uint64_t n = shape_elements(&g->value[v].shape) * tensor_type_bytes(g->value[v].type);

	return (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* What products read has bytes behind it. */
static void add_behind(struct ranging *r)
{
	for (uint32_t i = 0; i < r->g->nodes; i++) {
		const struct tensor_node *n = &r->g->node[i];
		for (uint32_t k = 0; (n->op == OP_dot || n->op == OP_conv) && k < n->operands; k++)
			r->of[partition_root(r->p, r->g, n->operand[k])].bytes = ARENA_BEHIND;
	}
}

bool arena_make(struct arena *a, const struct tensor_graph *g, const struct partition *p, const bool *outside,
                struct error *err)
{
	struct ranging r = { .g = g, .p = p, .of = calloc(g->values, sizeof *r.of) };
	struct range *all = calloc(g->values, sizeof *all);
	uint32_t n = 0;

	*a = (struct arena){ .at = calloc(g->values, sizeof *a->at) };
	const bool ok = (r.of && all && a->at) || error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	if (ok) {
		find_ranges(&r);
		join_ranges(&r);
		add_behind(&r);
		for (tensor_value v = 1; v < g->values; v++) {
			const struct tensor_node *by = tensor_node_of(g, v);
			if (p->home[v] != HOME_STORED || (by && by->op == OP_constant) || (outside && outside[v]) ||
			    p->part_of[v])
				continue;
			all[n] = r.of[v];
			all[n].v = v;
			all[n].bytes += rounded_bytes(g, v);
			a->all_bytes += all[n++].bytes;
		}
		qsort(all, n, sizeof *all, by_start);
		for (uint32_t i = 0; i < n; i++) {
			a->at[all[i].v] = first_fit(all, i, &all[i], a->at);
			if (a->at[all[i].v] + all[i].bytes > a->bytes)
				a->bytes = a->at[all[i].v] + all[i].bytes;
		}
		for (tensor_value v = 1; v < g->values; v++)
			if (p->part_of[v])
				a->at[v] = a->at[p->part_of[v]] + p->part_at[v];
	}
	free(r.of);
	free(all);
	if (!ok)
		arena_free(a);
	return ok;
}

void arena_free(struct arena *a)
{
	free(a->at);
	*a = (struct arena){ 0 };
}
