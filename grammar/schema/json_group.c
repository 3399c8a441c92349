/* grammar/schema/json_group.c - the nodes that look at one value, and those that look at its parts. */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"

/* ---- making */

static bool has(const struct group *g, uint32_t node)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->node[i] == node)
			return true;
	return false;
}

static bool add(struct group *g, uint32_t node)
{
	if (node == SCHEMA_NONE || has(g, node))
		return true;
	if (!effort_take(4 + g->n / 2))
		return false;
	if (g->n == GROUP_NODES)
		return false;
	g->node[g->n++] = node;
	return true;
}

static bool add_list(struct group *g, const struct schema *s, struct part p)
{
	for (uint32_t i = 0; i < p.n; i++)
		if (!add(g, s->list[p.at + i]))
			return false;
	return true;
}

/* All nodes that are applied to the same value. */
static bool close_over(struct group *g, const struct schema *s)
{
	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		bool ok = add_list(g, s, n->all_of) && add_list(g, s, n->any_of) && add_list(g, s, n->one_of) &&
		          add(g, n->not_this) && add(g, n->condition);
		if (n->condition != SCHEMA_NONE)
			ok = ok && add(g, n->then_this) && add(g, n->else_this);
		for (uint32_t k = 0; k < n->dependent.n; k++)
			ok = ok && add(g, s->dependency[n->dependent.at + k].node);
		if (!ok)
			return false;
	}
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Indices in the order of the nodes' numbers: sorted together as pairs. */
static bool sort_indices(struct group *g)
{
	uint64_t *pair = effort_malloc((g->n + 1) * sizeof *pair);

	g->by_number = effort_malloc((g->n + 1) * sizeof *g->by_number);
	if (!pair || !g->by_number) {
		free(pair);
		return false;
	}
	for (uint32_t i = 0; i < g->n; i++) { /* by insertion: groups are small, or made once */
		uint32_t at = i;
		for (; at && pair[at - 1] >> 32 > g->node[i]; at--)
			pair[at] = pair[at - 1];
		pair[at] = (uint64_t)g->node[i] << 32 | i;
	}
	for (uint32_t i = 0; i < g->n; i++)
		g->by_number[i] = (uint32_t)pair[i];
	free(pair);
	return true;
}

uint32_t group_index(const struct group *g, uint32_t node)
{
	uint32_t low = 0, high = g->n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (g->node[g->by_number[middle]] < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low < g->n && g->node[g->by_number[low]] == node ? g->by_number[low] : UINT32_MAX;
}

static void raise_to(uint32_t *max, uint32_t value)
{
	if (value != COUNT_ANY && value > *max)
		*max = value;
}

static int compare_names(const struct schema *s, uint32_t a, uint32_t b)
{
	size_t x = s->name_bytes[a], y = s->name_bytes[b];
	int c = memcmp(s->name[a], s->name[b], x < y ? x : y);

	return c ? c : x < y ? -1 : x > y;
}

/* Where the name is, or would be. */
static uint32_t name_index(const struct group *g, const struct schema *s, uint32_t name)
{
	uint32_t low = 0, high = g->n_names;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (compare_names(s, g->name[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t group_name(const struct schema *s, const struct group *g, uint32_t name) { return name_index(g, s, name); }

static int by_name(const void *a, const void *b, void *user)
{
	return compare_names(user, *(const uint32_t *)a, *(const uint32_t *)b);
}

/* Names in order, each once. */
static bool sort_names(struct group *g, const struct schema *s)
{
	uint32_t kept = 0;

	if (!effort_take(g->n_names / 4))
		return false;
	if (g->n_names)
		qsort_r(g->name, g->n_names, sizeof *g->name, by_name, (void *)(uintptr_t)s);
	for (uint32_t i = 0; i < g->n_names; i++)
		if (!kept || g->name[kept - 1] != g->name[i])
			g->name[kept++] = g->name[i];
	g->n_names = kept;
	return true;
}

/* Names in any order: what is collected is sorted when it has doubled, and at last. */
struct names {
	size_t room;
	uint32_t n_sorted;
};

static bool add_name(struct group *g, const struct schema *s, uint32_t name, struct names *in)
{
	void *names = g->name;

	if (!effort_take(20))
		return false;
	if (g->n_names >= 2 * in->n_sorted + 64) {
		if (!sort_names(g, s))
			return false;
		in->n_sorted = g->n_names;
	}
	if (!effort_array(&names, &in->room, g->n_names + 1, sizeof *g->name))
		return false;
	g->name = names;
	g->name[g->n_names++] = name;
	return true;
}

static bool collect_names(struct group *g, const struct schema *s, const struct schema_node *n, struct names *in)
{
	bool ok = true;

	for (uint32_t k = 0; k < n->properties.n && ok; k++)
		ok = add_name(g, s, s->member[n->properties.at + k].name, in);
	for (uint32_t k = 0; k < n->required.n && ok; k++)
		ok = add_name(g, s, s->list[n->required.at + k], in);
	for (uint32_t k = 0; k < n->dependent.n && ok; k++) {
		const struct schema_dependency *d = &s->dependency[n->dependent.at + k];
		ok = add_name(g, s, d->name, in) && (d->needs == SCHEMA_NONE || add_name(g, s, d->needs, in));
	}
	return ok;
}

/* What all nodes together look at. */
static bool sum_up(struct group *g, const struct schema *s)
{
	struct names in = { 0 };
	bool ok = true, values = false;

	for (uint32_t i = 0; i < g->n && ok; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		raise_to(&g->length_max, n->length.min);
		if (n->length.max != COUNT_ANY)
			raise_to(&g->length_max, n->length.max + 1);
		g->automata += n->texts.n;
		g->unique |= n->unique;
		g->wholes |= n->whole;
		values |= n->unlike.n || n->numbers.n || n->minimum != SCHEMA_NONE || n->maximum != SCHEMA_NONE ||
		          n->multiple_of != SCHEMA_NONE;
		g->n_patterns += n->patterns.n;
		/* One member is there, or none, however often its name comes. */
		g->counts |= n->members.min > 1 || (n->members.max != COUNT_ANY && n->members.max > 0);
		raise_to(&g->members_max, n->members.min);
		if (n->members.max != COUNT_ANY)
			raise_to(&g->members_max, n->members.max + 1);
		raise_to(&g->items_max, n->first_items.n);
		raise_to(&g->items_max, n->length_of_array.min);
		if (n->length_of_array.max != COUNT_ANY)
			raise_to(&g->items_max, n->length_of_array.max + 1);
		g->n_contains += n->contains != SCHEMA_NONE;
		g->asks_items |= n->first_items.n || n->items != SCHEMA_NONE;
		ok = collect_names(g, s, n, &in);
	}
	g->numbers = g->wholes || values;
	g->wholes = g->wholes && !values;
	return ok && sort_names(g, s);
}

/* Whether a set of failed roots may be right, and a part of it not. */
static bool wants_failures(const struct group *g)
{
	if (g->n_roots > GOAL_TABLE)
		return false;
	for (uint32_t set = 0; set < 1u << g->n_roots; set++)
		for (uint32_t i = 0; i < g->n_roots && bit(g->goal, set); i++)
			if (set >> i & 1 && !bit(g->goal, set & ~(1u << i)))
				return true;
	return false;
}

/* Whether a string or a number must be looked at by all nodes together. */
static void find_joint(struct group *g, const struct schema *s)
{
	unsigned texts = 0, numbers = 0;

	g->mixed = wants_failures(g);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		texts += n->texts.n + (n->length.min > 0 || n->length.max != COUNT_ANY);
		numbers += n->whole + (n->numbers.n > 0) + (n->minimum != SCHEMA_NONE) + (n->maximum != SCHEMA_NONE) +
		           (n->multiple_of != SCHEMA_NONE) + (n->unlike.n > 0);
		g->mixed |= n->one_of.n || n->not_this != SCHEMA_NONE || n->condition != SCHEMA_NONE;
		if (n->length.min > n->length.max)
			texts++;
	}
	g->joint = texts > 1 || (texts && g->mixed);
	g->joint_numbers = numbers > 1 || (numbers && g->mixed);
}

/* Names that no value is right for: they must not even be begun. */
static bool find_closed(struct json_machine *m, struct group *g)
{
	const struct schema *s = m->schema;
	uint32_t failed[GROUP_NODES / 32];

	if (!(g->closed = effort_calloc(g->n_names + 1, sizeof *g->closed)))
		return false;
	for (uint32_t k = 0; k < g->n_names; k++) {
		bool any = false;
		memset(failed, 0, sizeof failed);
		effort_take(4 + 4 * g->n);
		for (uint32_t i = 0; i < g->n; i++)
			if (schema_property(s, &s->node[g->node[i]], g->name[k]) == SCHEMA_FALSE) {
				set_bit(failed, i);
				any = true;
			}
		g->closed[k] = any && !group_alive(m, g, &(struct facts){ .failed = failed });
	}
	return true;
}

static bool fill(struct json_machine *m, struct group *g, const uint32_t *roots, size_t n, const uint32_t *goal,
                 size_t goal_words)
{
	*g = (struct group){ .node = effort_malloc(GROUP_NODES * sizeof *g->node),
		             .goal = effort_malloc((goal_words + 1) * sizeof *g->goal),
		             .n = (uint32_t)n,
		             .n_roots = (uint32_t)n,
		             .perilous = -1,
		             .begins = -1 };
	m->machine.limited = m->machine.limited || n > GROUP_NODES;
	if (!g->node || !g->goal || n > GROUP_NODES)
		return false;
	memcpy(g->node, roots, n * sizeof *roots);
	memcpy(g->goal, goal, goal_words * sizeof *goal);
	if (!close_over(g, m->schema)) {
		m->machine.limited = true;
		return false;
	}
	uint32_t *node = effort_realloc(g->node, g->n * sizeof *node + 1);
	g->node = node ? node : g->node;
	if (!effort_take(100) || !effort_grow(0, 512 + 3 * g->n * sizeof *node) || !sort_indices(g) ||
	    !sum_up(g, m->schema) || !effort_grow(0, g->n_names * (sizeof *g->name + 1)))
		return false;
	find_joint(g, m->schema);
	if (!group_rank(m, g) || !group_find_known(m, g) || !find_closed(m, g))
		return false;
	g->limits_names = group_limits_names(m, g);
	return true;
}

uint32_t group_make(struct json_machine *m, const uint32_t *roots, size_t n, const uint32_t *goal, size_t goal_words)
{
	uint32_t words[GROUP_NODES + 1 + (1 << GOAL_TABLE) / 32 + GROUP_NODES / 32];
	void *groups = m->group;
	size_t had = m->group_room;
	int made;

	words[0] = (uint32_t)n;
	memcpy(words + 1, roots, n * sizeof *roots);
	memcpy(words + 1 + n, goal, goal_words * sizeof *goal);
	uint32_t number = interner_add(&m->groups_by_words, words, 1 + n + goal_words, &made);
	if (!number || !effort_array(&groups, &m->group_room, number + 1, sizeof *m->group)) {
		m->machine.failed = true;
		return 0;
	}
	m->group = groups;
	if (m->group_room > had)
		memset(m->group + had, 0, (m->group_room - had) * sizeof *m->group);
	if (made && !fill(m, &m->group[number], roots, n, goal, goal_words))
		m->machine.failed = true;
	return m->machine.failed ? 0 : number;
}

void group_clear(struct group *g)
{
	free(g->node);
	free(g->by_number);
	free(g->goal);
	free(g->name);
	free(g->closed);
	free(g->rank);
	for (uint32_t i = 0; g->known && i < g->n; i++)
		free(g->known[i]);
	free(g->known);
	free(g->class_of);
}

/* ---- children */

static size_t roots_of(const struct request *r, size_t n, uint32_t *root)
{
	size_t k = 0;

	for (size_t i = 0; i < n && k < GROUP_NODES; i++) {
		effort_take(1 + k / 2);
		bool known = r[i].to == SCHEMA_TRUE;
		for (size_t j = 0; j < k; j++)
			known |= root[j] == r[i].to;
		if (!known)
			root[k++] = r[i].to;
	}
	qsort(root, k, sizeof *root, by_value);
	return k;
}

static void fail_by(const struct request *r, size_t n, uint32_t node, uint32_t *failed)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].to == node && r[i].from != UINT32_MAX)
			set_bit(failed, r[i].from);
}

uint32_t group_child(struct json_machine *m, uint32_t group, const struct facts *f, const struct request *r, size_t n)
{
	const struct group *g = &m->group[group];
	uint32_t root[GROUP_NODES], failed[GROUP_NODES / 32],
		goal[(1 << GOAL_TABLE) / 32 + GROUP_NODES / 32 + 1] = { 0 };
	size_t k = roots_of(r, n, root), words = k <= GOAL_TABLE ? bits_words(1u << k) : bits_words(k) + 1;
	bool table = k <= GOAL_TABLE;

	for (uint32_t set = 0; set < (table ? 1u << k : k + 1); set++) {
		memcpy(failed, f->failed, bits_words(g->n) * sizeof *failed);
		for (size_t i = 0; i < k; i++)
			if (table ? set >> i & 1 : set == k || set == i)
				fail_by(r, n, root[i], failed);
		uint32_t failed_roots[GROUP_NODES / 32] = { 0 };
		for (size_t i = 0; i < k && f->leads; i++)
			if (table ? set >> i & 1 : set == i)
				set_bit(failed_roots, i);
		bool alive = f->leads ? f->leads(f->user, failed, root, k, failed_roots)
		                      : group_alive(m, g, &(struct facts){ .failed = failed, .seen = f->seen });
		g = &m->group[group]; /* which may have been moved */
		if (table && alive)
			set_bit(goal, set);
		else if (!table && set < k && !alive)
			set_bit(goal, set);
		else if (!table && set == k)
			goal[words - 1] = alive;
	}
	return group_make(m, root, k, goal, words);
}

void group_child_failed(const struct json_machine *m, uint32_t child, const uint32_t *result, const struct request *r,
                        size_t n, uint32_t *failed)
{
	const struct group *c = &m->group[child];

	for (uint32_t i = 0; i < c->n_roots; i++)
		if (bit(result, i))
			fail_by(r, n, c->node[i], failed);
}
