/* runtime/plan/live.c - live ranges of a graph's values, and the bytes that they get (live.h).
 *
 * A group is what lives and dies together: a value in all its forms with the values that are made in its place, or what
 * the matrices that read it have laid out anew. Groups that only one section touches are placed section by section, the
 * largest first, each at the lowest offset where nothing lies that may be there at the same time.
 */
#include "runtime/plan/live.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/plan/arch.h"
#include "runtime/plan/lower.h"

enum { ALIGN = 64 };
_Static_assert((int)CHOICE_GROUPS < (int)PLAN_FORMS, "a choice has as many forms as other values");

/* Nodes of a section, a bit each. */
typedef uint64_t *node_set;

struct group {
	uint32_t first, last; /* sections; first > last: nothing touches it */
	node_set touch[2];    /* what touches it in the first section, and in the last one if that is another */
	node_set before;      /* what is over in the first section before any of these begins */
};

/* One form of a group. */
struct block {
	uint32_t group, form, first, last;
	uint64_t at, bytes;
};

struct live {
	const struct graph *g;
	const struct plan_layout_options *o;
	struct plan_layout *l;
	uint32_t *sum;       /* as plan_find_sums() says */
	uint32_t *section;   /* by node */
	struct group *group; /* by value, two each: its forms, and those interleaved */
	uint32_t words;      /* of a set */
	uint64_t *sets;      /* two by node, then three by group */
};

/* ---- sets */

static void add(node_set s, uint32_t i) { s[i / 64] |= (uint64_t)1 << i % 64; }
static void unite(node_set s, const uint64_t *other, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++)
		s[i] |= other[i];
}
static void intersect(node_set s, const uint64_t *other, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++)
		s[i] &= other[i];
}
static bool has(const uint64_t *s, uint32_t i) { return s[i / 64] >> i % 64 & 1; }
static bool contains(const uint64_t *s, const uint64_t *other, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++)
		if (other[i] & ~s[i])
			return false;
	return true;
}

/* ---- what is over before a node begins */

/* The nodes of its section that a node needs, and itself; and those of them that are over before it begins. */
static node_set begun(const struct live *v, uint32_t node) { return v->sets + 2 * (size_t)node * v->words; }
static node_set over(const struct live *v, uint32_t node) { return begun(v, node) + v->words; }

/* Ops of these may be a chain, whose steps wait for no others, or one kernel. */
static bool is_chained(const struct graph_node *from, const struct graph_node *to)
{
	return to->kind == NODE_ATTEND && (from->kind == NODE_ROTATE || from->kind == NODE_STORE);
}

static void find_over(struct live *v)
{
	const struct graph *g = v->g;

	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const struct graph_node *n = &g->node[i];
		const uint32_t first = g->section[v->section[i]];
		for (unsigned in = 0; in < GRAPH_INS; in++) {
			const uint32_t by = g->value[n->in[in]].producer;
			if (!n->in[in] || by == (uint32_t)GRAPH_OUTSIDE || by < first)
				continue;
			unite(begun(v, i), begun(v, by), v->words);
			unite(over(v, i), is_chained(&g->node[by], n) ? over(v, by) : begun(v, by), v->words);
		}
		add(begun(v, i), i - first);
	}
}

/* ---- which values are made in the place of others */

static graph_ref made_in(const struct graph *g, const struct graph_node *n, uint32_t node)
{
	const graph_ref x = n->in[IN_X];

	switch (n->kind) {
	case NODE_ADD:
	case NODE_SCALE: return x;
	case NODE_BY_HEAD: return n->in[IN_INTO];
	case NODE_XIELU:
	case NODE_GATE: return graph_value(g, x)->last_user == node ? x : 0;
	default: return 0;
	}
}

static void find_same(struct live *v)
{
	const struct graph *g = v->g;

	for (graph_ref i = 0; i < g->n_values; i++)
		v->l->same[i] = i;
	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const graph_ref in = v->sum[i] ? 0 : made_in(g, &g->node[i], i);
		if (in)
			v->l->same[g->node[i].out[0]] = v->l->same[in];
	}
}

/* ---- sizes */

static void want(struct live *v, graph_ref ref, enum plan_form form, uint64_t bytes)
{
	uint64_t *room = &v->l->room[v->l->same[ref]][form];

	bytes *= v->o->tokens;
	*room = bytes > *room ? bytes : *room;
}

static void want_floats(struct live *v, graph_ref ref)
{
	want(v, ref, FORM_FLOATS, numerics_pad(graph_value(v->g, ref)->width) * sizeof(float));
}

static bool reads_int8(const struct live *v, const struct weights_matrix *w)
{
	const struct plan_options opt = { .f32_activations = v->o->f32_activations };

	return plan_activation(&opt, w->type) == DTYPE_Q8_0;
}

/* What a matrix reads of a value; interleaved: it may want that laid out anew. */
static void want_for(struct live *v, graph_ref ref, const struct weights_matrix *w, bool interleaved)
{
	const uint64_t width = w ? numerics_pad(graph_value(v->g, ref)->width) : 0;

	if (w && reads_int8(v, w)) {
		want(v, ref, FORM_INT8, width);
		want(v, ref, FORM_SCALES, width / 32 * sizeof(struct activation_block));
	}
	if (!w || !interleaved)
		return;
	if (reads_int8(v, w)) {
		want(v, ref, FORM_INTERLEAVED_INT8, width);
		want(v, ref, FORM_INTERLEAVED_SCALES, width / 32 * sizeof(struct activation_block));
	} else {
		want(v, ref, FORM_INTERLEAVED, width * sizeof(float));
	}
}

static bool is_choice(const struct graph *g, graph_ref v)
{
	const struct graph_node *by = graph_producer(g, v);

	return by && by->kind == NODE_ROUTE;
}

static void want_choice(struct live *v, graph_ref choice)
{
	const uint64_t used = graph_value(v->g, choice)->width;

	want(v, choice, (enum plan_form)CHOICE_CHOSEN, ROUTE_MAX * sizeof(int32_t));
	want(v, choice, (enum plan_form)CHOICE_SHARES, ROUTE_MAX * sizeof(float));
	want(v, choice, (enum plan_form)CHOICE_POSITIONS, ROUTE_MAX * sizeof(int32_t));
	want(v, choice, (enum plan_form)CHOICE_GROUPS, (used + 1) * sizeof(struct route_group));
}

static void find_room(struct live *v)
{
	const struct graph *g = v->g;

	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const struct graph_node *n = &g->node[i];
		const struct weights_matrix *w = graph_matrix_of(g, n->in[IN_W]),
					    *w2 = graph_matrix_of(g, n->in[IN_W2]);
		if (n->kind == NODE_ROUTE)
			want_choice(v, n->out[0]);
		else if (n->kind != NODE_HEAD && !v->sum[i])
			want_floats(v, n->out[0]);
		for (unsigned out = 1; out < GRAPH_OUTS && n->out[out]; out++)
			want_floats(v, n->out[out]);
		if (n->kind == NODE_HEAD && n->out[1])
			want_for(v, n->out[1], w, true);
		else if (n->kind == NODE_MATMUL || n->kind == NODE_BY_HEAD || n->kind == NODE_EXPERTS)
			for (unsigned second = 0; second < 2; second++) {
				const struct weights_matrix *m = second ? w2 : w;
				want_for(v, n->in[IN_X], m, n->kind == NODE_MATMUL);
				if (n->kind == NODE_EXPERTS && n->out[1])
					want_for(v, n->out[1], m, false);
			}
	}
}

/* ---- live ranges */

/* Nodes come in the order of sections. */
static void touch(struct live *v, graph_ref ref, bool interleaved, uint32_t node)
{
	const uint32_t section = v->section[node], bit = node - v->g->section[section];
	struct group *p = &v->group[2 * v->l->same[ref] + interleaved];

	if (p->first > p->last)
		p->first = section;
	else if (section != p->last)
		memset(p->touch[1], 0, v->words * sizeof *p->touch[1]);
	p->last = section;
	add(p->touch[section != p->first], bit);
}

/* What reads a norm may make it, and then reads what that is of. So may attention read queries, keys and values. */
static void touch_through(struct live *v, graph_ref ref, uint32_t node)
{
	const struct graph_node *by = graph_producer(v->g, ref), *n = &v->g->node[node];

	if (by && by->kind == NODE_NORM && !by->kept && !by->groups)
		touch(v, by->in[IN_X], false, node);
	if (by && is_chained(by, n)) {
		touch(v, by->in[IN_X], false, node);
		if (by->kind == NODE_STORE && by->in[IN_W2])
			touch(v, by->in[IN_W2], false, node);
	}
}

static void find_touched(struct live *v)
{
	const struct graph *g = v->g;

	for (uint32_t i = 0; i < g->n_nodes; i++) {
		const struct graph_node *n = &g->node[i];
		for (unsigned in = 0; in < GRAPH_INS; in++) {
			if (!n->in[in])
				continue;
			touch(v, n->in[in], false, i);
			touch_through(v, n->in[in], i);
		}
		for (unsigned out = 0; out < GRAPH_OUTS && n->out[out]; out++)
			touch(v, n->out[out], false, i);
		if (v->sum[i])
			touch(v, g->node[v->sum[i] - 1].out[0], false, i);
		if (n->kind == NODE_MATMUL)
			touch(v, n->in[IN_X], true, i);
		if (n->kind == NODE_HEAD && n->out[1])
			touch(v, n->out[1], true, i);
	}
}

static void find_before(struct live *v)
{
	for (uint32_t i = 0; i < 2 * v->g->n_values; i++) {
		const struct group *p = &v->group[i];
		const uint32_t first = v->g->section[p->first],
			       end = p->first <= p->last ? v->g->section[p->first + 1] : 0;
		memset(p->before, 0xff, v->words * sizeof *p->before);
		for (uint32_t n = first; n < end; n++)
			if (has(p->touch[0], n - first))
				intersect(p->before, over(v, n), v->words);
	}
}

/* Whether p is over before q begins; where they meet, it is in one section, the last of p and the first of q. */
static bool is_over(const struct live *v, const struct group *p, const struct group *q)
{
	return p->last == q->first && contains(q->before, p->touch[p->first != p->last], v->words);
}

static bool meet(const struct live *v, uint32_t one, uint32_t other)
{
	const struct group *p = &v->group[one], *q = &v->group[other];

	if (p->last < q->first || q->last < p->first)
		return false;
	return p == q || (!is_over(v, p, q) && !is_over(v, q, p));
}

/* ---- offsets */

static int by_offset(const void *a, const void *b)
{
	const struct block *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Those of several sections first, then section by section, the largest first. */
static int by_node(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	const bool one = x->first == x->last, other = y->first == y->last;

	if (one != other)
		return one - other;
	if (one && x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->group != y->group ? (x->group > y->group) - (x->group < y->group)
	                            : (x->form > y->form) - (x->form < y->form);
}

/* The lowest offset for a block beside those n, which are in the order of their offsets. */
static uint64_t lowest(const struct live *v, const struct block *b, const struct block *other, uint32_t n)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct block *p = &other[i];
		if (p->at < at + b->bytes && p->at + p->bytes > at && meet(v, b->group, p->group))
			at = p->at + p->bytes;
	}
	return at;
}

/* Blocks of other sections than a block's own meet it only if they have several. placed: room for all. */
static void assign(struct live *v, struct block *block, uint32_t n, struct block *placed)
{
	struct plan_layout *l = v->l;
	uint32_t several = 0, n_placed = 0;

	while (several < n && block[several].first != block[several].last)
		several++;
	for (uint32_t i = 0; i < n; i++) {
		struct block *b = &block[i];
		if (i >= several && (i == several || b->first != b[-1].first)) {
			memcpy(placed, block, several * sizeof *placed);
			n_placed = several;
		}
		qsort(placed, n_placed, sizeof *placed, by_offset);
		b->at = v->o->apart ? l->bytes : lowest(v, b, placed, n_placed);
		placed[n_placed++] = *b;
		l->at[b->group / 2][b->form] = b->at;
		l->bytes = b->at + b->bytes > l->bytes ? b->at + b->bytes : l->bytes;
	}
}

static uint32_t list_blocks(const struct live *v, struct block *out)
{
	const struct plan_layout *l = v->l;
	uint32_t n = 0;

	for (graph_ref i = 1; i < l->n_values; i++)
		for (uint32_t form = 0; form < PLAN_FORMS; form++) {
			const bool interleaved =
				form >= FORM_INTERLEAVED && form <= FORM_INTERLEAVED_SCALES && !is_choice(v->g, i);
			const struct group *p = &v->group[2 * i + interleaved];
			if (l->room[i][form] && out)
				out[n] = (struct block){ .group = 2 * i + interleaved,
					                 .form = form,
					                 .first = p->first,
					                 .last = p->last,
					                 .bytes = (l->room[i][form] + ALIGN - 1) / ALIGN * ALIGN };
			n += l->room[i][form] != 0;
		}
	return n;
}

static bool assign_all(struct live *v)
{
	struct plan_layout *l = v->l;
	const uint32_t n = list_blocks(v, NULL);
	struct block *block = malloc((2 * (size_t)n + 1) * sizeof *block);

	if (!block)
		return false;
	list_blocks(v, block);
	qsort(block, n, sizeof *block, by_node);
	assign(v, block, n, block + n);
	free(block);
	for (graph_ref i = 1; i < l->n_values; i++) {
		memcpy(l->at[i], l->at[l->same[i]], sizeof l->at[i]);
		memcpy(l->room[i], l->room[l->same[i]], sizeof l->room[i]);
	}
	return true;
}

/* ---- the whole */

static void hand_out_sets(struct live *v)
{
	uint64_t *at = v->sets + 2 * (size_t)v->g->n_nodes * v->words;

	for (uint32_t i = 0; i < 2 * v->g->n_values; i++) {
		v->group[i] = (struct group){ .first = 1, .touch = { at, at + v->words }, .before = at + 2 * v->words };
		at += 3 * v->words;
	}
}

static bool open_live(struct live *v)
{
	const struct graph *g = v->g;
	const size_t nodes = g->n_nodes, values = g->n_values;
	uint32_t max = 0;

	v->section = malloc(nodes * sizeof *v->section);
	v->sum = calloc(nodes, sizeof *v->sum);
	v->group = malloc(2 * values * sizeof *v->group);
	for (uint32_t i = 0; i < g->n_sections && v->section; i++) {
		const uint32_t n = g->section[i + 1] - g->section[i];
		max = n > max ? n : max;
		for (uint32_t node = g->section[i]; node < g->section[i + 1]; node++)
			v->section[node] = i;
	}
	v->words = max / 64 + 1;
	v->sets = calloc((2 * nodes + 6 * values) * v->words, sizeof *v->sets);
	if (!v->section || !v->sum || !v->group || !v->sets)
		return false;
	hand_out_sets(v);
	return true;
}

static void close_live(struct live *v)
{
	free(v->section);
	free(v->sum);
	free(v->group);
	free(v->sets);
}

static bool open_layout(struct plan_layout *l, uint32_t values, uint32_t tokens)
{
	*l = (struct plan_layout){ .tokens = tokens, .n_values = values };
	l->at = malloc(values * sizeof *l->at);
	l->room = calloc(values, sizeof *l->room);
	l->same = calloc(values, sizeof *l->same);
	if (l->at)
		memset(l->at, 0xff, values * sizeof *l->at);
	return l->at && l->room && l->same;
}

bool plan_layout_of(struct plan_layout *l, const struct graph *g, const struct plan_layout_options *o,
                    struct error *err)
{
	const struct graph_node *last = &g->node[g->n_nodes - 1];
	struct live v = { .g = g, .o = o, .l = l };
	bool ok = open_layout(l, g->n_values, o->tokens) && open_live(&v);

	if (ok) {
		plan_find_sums(g, v.sum);
		find_over(&v);
		find_same(&v);
		find_room(&v);
		find_touched(&v);
		find_before(&v);
		ok = assign_all(&v);
	}
	close_live(&v);
	if (!ok) {
		plan_layout_close(l);
		return error_set(err, ERROR_MEMORY, "no memory to lay out %u values", g->n_values);
	}
	if (last->kind == NODE_HEAD) {
		l->stream = last->in[IN_X];
		l->normed = last->out[1];
	}
	return true;
}

bool plan_layout_open(struct plan_layout *l, const struct model_spec *s, const struct weights *w,
                      const struct plan_layout_options *o, struct error *err)
{
	struct graph g;

	*l = (struct plan_layout){ 0 };
	if (!arch_graph(&g, s, w, o->adapted, o->shown, err))
		return false;
	const bool ok = plan_layout_of(l, &g, o, err);
	l->adapted = o->adapted;
	l->shown = o->shown;
	graph_close(&g);
	return ok;
}

void plan_layout_close(struct plan_layout *l)
{
	free(l->at);
	free(l->room);
	free(l->same);
	*l = (struct plan_layout){ 0 };
}

const float *plan_normed(const struct plan_buffers *b)
{
	return (const float *)(const void *)(b->values + b->layout->at[b->layout->normed][FORM_FLOATS]);
}
