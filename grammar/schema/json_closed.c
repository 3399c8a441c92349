/* grammar/schema/json_closed.c - which names a closed object takes (schema_closed.c): those that its own schema speaks
 * of, and those that others do which are applied beside it. What is applied instead of it, as another schema of an
 * `anyOf`, has no say.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"

struct around {
	const struct schema *s;
	const struct group *g;
	bool leads[GROUP_NODES], visited[GROUP_NODES]; /* to the closed node */
	uint32_t *names;
};

/* The nodes that one applies to the same value, each in turn. */
struct applied {
	const struct schema_node *n;
	struct part list[3];
	unsigned k;
	uint32_t i;
};

static uint32_t next_applied(const struct schema *s, struct applied *a)
{
	const uint32_t single[] = { a->n->condition, a->n->then_this, a->n->else_this, a->n->not_this };

	for (; a->k < 3; a->k++, a->i = 0)
		if (a->i < a->list[a->k].n)
			return s->list[a->list[a->k].at + a->i++];
	for (; a->k < 7;)
		if (single[a->k++ - 3] != SCHEMA_NONE)
			return single[a->k - 4];
	while (a->k == 7 && a->i < a->n->dependent.n) {
		const uint32_t node = s->dependency[a->n->dependent.at + a->i++].node;
		if (node != SCHEMA_NONE)
			return node;
	}
	return SCHEMA_NONE;
}

static struct applied applied_by(const struct schema_node *n)
{
	return (struct applied){ .n = n, .list = { n->all_of, n->any_of, n->one_of } };
}

static void find_leading(struct around *a, uint32_t closed)
{
	a->leads[closed] = true;
	for (bool more = true; more && !effort_over();) {
		more = false;
		for (uint32_t i = 0; i < a->g->n && effort_take(2); i++) {
			struct applied of = applied_by(&a->s->node[a->g->node[i]]);
			for (uint32_t to;
			     !a->leads[i] && (to = next_applied(a->s, &of)) != SCHEMA_NONE && effort_take(1);)
				a->leads[i] = a->leads[group_index(a->g, to)];
			more |= a->leads[i] && !a->visited[i];
			a->visited[i] = a->leads[i];
		}
	}
	memset(a->visited, 0, sizeof a->visited);
}

static void take_name(struct around *a, uint32_t name) { set_bit(a->names, group_name(a->s, a->g, name)); }

static void take_names(struct around *a, const struct schema_node *n)
{
	for (uint32_t k = 0; k < n->properties.n; k++)
		take_name(a, a->s->member[n->properties.at + k].name);
	for (uint32_t k = 0; k < n->required.n; k++)
		take_name(a, a->s->list[n->required.at + k]);
	for (uint32_t k = 0; k < n->dependent.n; k++) {
		const struct schema_dependency *d = &a->s->dependency[n->dependent.at + k];
		take_name(a, d->name);
		if (d->needs != SCHEMA_NONE)
			take_name(a, d->needs);
	}
}

static void visit(struct around *a, uint32_t node);

/* Of several schemas, those that the closed one is part of, else all. */
static void visit_either(struct around *a, struct part p)
{
	bool some = false;

	for (uint32_t i = 0; i < p.n; i++)
		some |= a->leads[group_index(a->g, a->s->list[p.at + i])];
	for (uint32_t i = 0; i < p.n; i++)
		if (!some || a->leads[group_index(a->g, a->s->list[p.at + i])])
			visit(a, a->s->list[p.at + i]);
}

static void visit(struct around *a, uint32_t node)
{
	const uint32_t at = group_index(a->g, node);
	const struct schema_node *n = &a->s->node[node];

	if (at == UINT32_MAX || a->visited[at] || !effort_take(4 + 8 * (n->properties.n + n->required.n)))
		return;
	a->visited[at] = true;
	take_names(a, n);
	visit_either(a, n->any_of);
	if (!n->counts_letter)
		visit_either(a, n->one_of);
	struct applied of = applied_by(n);
	of.list[1] = of.list[2] = (struct part){ 0, 0 };
	for (uint32_t to; (to = next_applied(a->s, &of)) != SCHEMA_NONE;)
		visit(a, to);
}

/* Whether a root holds wherever one does that leads to the closed node. */
static bool holds_with(const struct around *a, uint32_t root)
{
	const struct group *g = a->g;
	uint32_t leading = 0;

	if (g->n_roots > GOAL_TABLE)
		return bit(g->goal, root);
	for (uint32_t i = 0; i < g->n_roots; i++)
		leading |= (uint32_t)a->leads[i] << i;
	for (uint32_t set = 0; set < 1u << g->n_roots; set++)
		if (bit(g->goal, set) && set >> root & 1 && (set & leading) != leading)
			return false;
	return true;
}

bool group_find_known(struct json_machine *m, struct group *g)
{
	const struct schema *s = m->schema;
	bool any = false, ok = true;

	for (uint32_t i = 0; i < g->n; i++)
		any |= s->node[g->node[i]].closes;
	if (!any)
		return true;
	struct around *a = effort_malloc(sizeof *a);
	g->known = effort_calloc(g->n, sizeof *g->known);
	for (uint32_t i = 0; i < g->n && a && g->known && ok; i++) {
		if (!s->node[g->node[i]].closes)
			continue;
		const size_t words = bits_words(g->n_names) + 1;
		ok = effort_grow(0, words * sizeof **g->known) &&
		     (g->known[i] = effort_calloc(words, sizeof **g->known));
		if (!ok)
			break;
		*a = (struct around){ .s = s, .g = g, .names = g->known[i] };
		find_leading(a, i);
		for (uint32_t root = 0; root < g->n_roots; root++)
			if (a->leads[root] || holds_with(a, root))
				visit(a, g->node[root]);
	}
	ok = ok && a && g->known;
	free(a);
	return ok;
}
