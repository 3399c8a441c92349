/* grammar/schema/json_order.c - members in the order in which the schemas name them, for those who write.
 *
 * Models are taught to give their reasons before the answer, and readers of streams show members as they come: both
 * rest on the order of "properties". An optional member may be left out, and then its turn is over. One that has become
 * needed since may still come, so that no text ends where it would not without an order. Names that "properties" do not
 * have come behind all others.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_key_parts.h"

/* ---- ranks */

struct ranking {
	struct json_machine *m;
	struct group *g;
	bool *visited; /* [node] */
};

static void rank_node(struct ranking *r, uint32_t node);

static void rank_list(struct ranking *r, struct part p)
{
	for (uint32_t i = 0; i < p.n; i++)
		rank_node(r, r->m->schema->list[p.at + i]);
}

static void rank_properties(struct ranking *r, const struct schema_node *n)
{
	const struct schema *s = r->m->schema;

	for (uint32_t k = 0; k < n->properties.n; k++) {
		const struct schema_member *own = &s->member[n->properties.at];
		const uint32_t name = group_name(s, r->g, own[own[k].nth].name);
		if (r->g->rank[name] == RANK_NONE)
			r->g->rank[name] = r->g->n_ranked++;
	}
}

/* As the text of the schema has them: "properties" before what is applied beside, or behind it. */
static void rank_node(struct ranking *r, uint32_t node)
{
	const uint32_t at = node == SCHEMA_NONE ? UINT32_MAX : group_index(r->g, node);
	const struct schema_node *n = &r->m->schema->node[node == SCHEMA_NONE ? 0 : node];

	if (at == UINT32_MAX || r->visited[at] || !effort_take(4 + 8 * n->properties.n))
		return;
	r->visited[at] = true;
	if (!n->applied_first)
		rank_properties(r, n);
	rank_list(r, n->all_of);
	rank_list(r, n->any_of);
	rank_list(r, n->one_of);
	rank_node(r, n->condition);
	rank_node(r, n->then_this);
	rank_node(r, n->else_this);
	for (uint32_t k = 0; k < n->dependent.n; k++)
		rank_node(r, r->m->schema->dependency[n->dependent.at + k].node);
	rank_properties(r, n);
}

bool group_rank(struct json_machine *m, struct group *g)
{
	struct ranking r = { m, g, NULL };

	if (!m->ordered || !g->n_names)
		return true;
	g->rank = effort_malloc(g->n_names * sizeof *g->rank);
	r.visited = effort_calloc(g->n + 1, sizeof *r.visited);
	if (!g->rank || !r.visited) {
		free(r.visited);
		return false;
	}
	memset(g->rank, 0xff, g->n_names * sizeof *g->rank);
	for (uint32_t i = 0; i < g->n_roots; i++)
		rank_node(&r, g->node[i]);
	free(r.visited);
	return effort_grow(0, g->n_names * sizeof *g->rank);
}

/* ---- whose turn it is */

/* A node that fails when a member comes whose rank is larger: it needs one that has not come. */
struct need {
	uint32_t rank, node;
};
struct ordering {
	struct json_machine *m;
	const struct group *g;
	uint32_t group;
	const struct members_so_far *of;
	struct need need[GROUP_NODES];
	uint32_t n;
	uint32_t *wanted, *anytime; /* bits of names: that are needed, or may be, whatever their turn */
};

/* Name: an index of the group's. */
static void need_name(struct ordering *t, uint32_t name, uint32_t *min)
{
	if (bit(t->of->seen, name) || t->g->rank[name] == RANK_NONE)
		return;
	set_bit(t->wanted, name);
	*min = t->g->rank[name] < *min ? t->g->rank[name] : *min;
}

static int downwards(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x > y ? -1 : x < y;
}

/* Where a node lists its names and wants so many: the rank behind which too few are left. */
static void need_count(struct ordering *t, uint32_t i, uint32_t *min)
{
	const struct schema *s = t->m->schema;
	const struct schema_node *n = &s->node[t->g->node[i]];
	const struct part all = n->properties; /* nodes may be moved below, and groups */
	const uint32_t missing = n->members.min > t->of->members ? n->members.min - t->of->members : 0;
	uint32_t found = 0, *rank;

	if (!missing || !key_lists(t->m, t->g, i))
		return;
	for (uint32_t k = 0; n->patterns.n && k < all.n && effort_take(8); k++)
		set_bit(t->anytime,
		        group_name(s, t->g, s->member[all.at + k].name)); /* of the others there may be few */
	if (n->patterns.n)
		return;
	if (!(rank = effort_malloc((all.n + 1) * sizeof *rank))) {
		t->m->machine.failed = true;
		return;
	}
	for (uint32_t k = 0; k < all.n && effort_take(8); k++) {
		const uint32_t name = group_name(s, t->g, s->member[all.at + k].name);
		const bool begins =
			!bit(t->of->seen, name) && !t->g->closed[name] && member_begins(t->m, t->group, i, name);
		t->g = &t->m->group[t->group];
		if (!begins)
			continue;
		if (t->g->rank[name] < t->of->order)
			set_bit(t->wanted, name); /* its turn is over, but there may be too few others */
		else
			rank[found++] = t->g->rank[name];
	}
	qsort(rank, found, sizeof *rank, downwards);
	if (found < missing)
		*min = 0;
	else if (rank[missing - 1] < *min)
		*min = rank[missing - 1];
	free(rank);
}

static void find_needs(struct ordering *t)
{
	const struct schema *s = t->m->schema;

	for (uint32_t i = 0; i < t->g->n; i++) {
		const struct schema_node *n = &s->node[t->g->node[i]];
		uint32_t min = RANK_NONE;
		if (bit(t->of->failed, i) || !effort_take(1 + 8 * n->required.n))
			continue;
		for (uint32_t k = 0; k < n->required.n; k++)
			need_name(t, group_name(s, t->g, s->list[n->required.at + k]), &min);
		for (uint32_t k = 0; k < n->dependent.n; k++) {
			const struct schema_dependency *d = &s->dependency[n->dependent.at + k];
			if (d->needs != SCHEMA_NONE && bit(t->of->seen, group_name(s, t->g, d->name)))
				need_name(t, group_name(s, t->g, d->needs), &min);
		}
		need_count(t, i, &min);
		if (min != RANK_NONE)
			t->need[t->n++] = (struct need){ min, i };
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct need *x = a, *y = b;

	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Up to which rank members may come next. */
static uint32_t last_position(struct ordering *t)
{
	uint32_t failed[GROUP_NODES / 32];

	memcpy(failed, t->of->failed, bits_words(t->g->n) * sizeof *failed);
	qsort(t->need, t->n, sizeof *t->need, by_rank);
	for (uint32_t i = 0; i < t->n;) {
		const uint32_t rank = t->need[i].rank;
		for (; i < t->n && t->need[i].rank == rank; i++)
			set_bit(failed, t->need[i].node);
		if (!group_alive(t->m, t->g, &(struct facts){ .failed = failed, .seen = t->of->seen }))
			return rank;
	}
	return RANK_NONE;
}

bool order_shut(struct json_machine *m, uint32_t group, const struct members_so_far *of, uint32_t *shut)
{
	const struct group *g = &m->group[group];
	uint32_t wanted[FRAME_WORDS] = { 0 }, anytime[FRAME_WORDS] = { 0 };

	if (!m->ordered || !g->n_ranked)
		return true;
	struct ordering *t = effort_malloc(sizeof *t);
	if (!t) {
		m->machine.failed = true;
		return false;
	}
	*t = (struct ordering){ .m = m, .g = g, .group = group, .of = of, .wanted = wanted, .anytime = anytime };
	find_needs(t);
	g = t->g = &m->group[group];
	const uint32_t last = last_position(t);
	free(t);
	effort_take(g->n_names / 4);
	for (uint32_t i = 0; i < g->n_names; i++) {
		const uint32_t rank = g->rank[i];
		const bool late = rank < of->order, needed = (last < of->order && bit(wanted, i)) || bit(anytime, i);
		if (late ? !needed : rank == RANK_NONE ? last != RANK_NONE : rank > last)
			set_bit(shut, i);
	}
	return last == RANK_NONE;
}
