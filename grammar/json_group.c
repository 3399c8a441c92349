/* grammar/json_group.c - the nodes that look at one value, and what follows when some of them fail. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "grammar/json_parts.h"

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
	uint64_t *pair = malloc((g->n + 1) * sizeof *pair);

	g->by_number = malloc((g->n + 1) * sizeof *g->by_number);
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

static void raise_to(uint32_t *most, uint32_t value)
{
	if (value != COUNT_ANY && value > *most)
		*most = value;
}

static int compare_names(const struct schema *s, uint32_t a, uint32_t b)
{
	size_t x = s->name_bytes[a], y = s->name_bytes[b];
	int c = memcmp(s->name[a], s->name[b], x < y ? x : y);

	return c ? c : x < y ? -1 : x > y;
}

static bool add_name(struct group *g, const struct schema *s, uint32_t name, size_t *room)
{
	uint32_t low = 0, high = g->n_names;
	void *names = g->name;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (compare_names(s, g->name[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < g->n_names && g->name[low] == name)
		return true;
	if (!array_grow(&names, room, g->n_names + 1, sizeof *g->name))
		return false;
	g->name = names;
	memmove(g->name + low + 1, g->name + low, (g->n_names - low) * sizeof *g->name);
	g->name[low] = name;
	g->n_names++;
	return true;
}

static bool collect_names(struct group *g, const struct schema *s, const struct schema_node *n, size_t *room)
{
	bool ok = true;

	for (uint32_t k = 0; k < n->properties.n && ok; k++)
		ok = add_name(g, s, s->member[n->properties.at + k].name, room);
	for (uint32_t k = 0; k < n->required.n && ok; k++)
		ok = add_name(g, s, s->list[n->required.at + k], room);
	for (uint32_t k = 0; k < n->dependent.n && ok; k++) {
		const struct schema_dependency *d = &s->dependency[n->dependent.at + k];
		ok = add_name(g, s, d->name, room) && (d->needs == SCHEMA_NONE || add_name(g, s, d->needs, room));
	}
	return ok;
}

/* What all nodes together look at. */
static bool sum_up(struct group *g, const struct schema *s)
{
	size_t room = 0;
	bool ok = true;

	for (uint32_t i = 0; i < g->n && ok; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		raise_to(&g->length_most, n->length.least);
		if (n->length.most != COUNT_ANY)
			raise_to(&g->length_most, n->length.most + 1);
		g->automata += n->texts.n;
		g->numbers |= n->whole || n->numbers.n || n->minimum != SCHEMA_NONE || n->maximum != SCHEMA_NONE ||
		              n->multiple_of != SCHEMA_NONE;
		g->n_patterns += n->patterns.n;
		g->counts |= n->members.least > 0 || n->members.most != COUNT_ANY;
		raise_to(&g->members_most, n->members.least);
		if (n->members.most != COUNT_ANY)
			raise_to(&g->members_most, n->members.most + 1);
		raise_to(&g->items_most, n->first_items.n);
		raise_to(&g->items_most, n->length_of_array.least);
		if (n->length_of_array.most != COUNT_ANY)
			raise_to(&g->items_most, n->length_of_array.most + 1);
		g->n_contains += n->contains != SCHEMA_NONE;
		ok = collect_names(g, s, n, &room);
	}
	return ok;
}

/* Names that no value is right for: they must not even be begun. */
static bool find_closed(struct json_machine *m, struct group *g)
{
	const struct schema *s = m->schema;
	uint32_t failed[GROUP_NODES / 32];

	if (!(g->closed = calloc(g->n_names + 1, sizeof *g->closed)))
		return false;
	for (uint32_t k = 0; k < g->n_names; k++) {
		bool any = false;
		memset(failed, 0, sizeof failed);
		for (uint32_t i = 0; i < g->n; i++) {
			struct part p = s->node[g->node[i]].properties;
			for (uint32_t j = 0; j < p.n; j++)
				if (s->member[p.at + j].name == g->name[k] &&
				    s->member[p.at + j].node == SCHEMA_FALSE) {
					set_bit(failed, i);
					any = true;
				}
		}
		g->closed[k] = any && !group_alive(m, g, &(struct facts){ .failed = failed });
	}
	return true;
}

static bool fill(struct json_machine *m, struct group *g, const uint32_t *roots, size_t n, const uint32_t *goal,
                 size_t goal_words)
{
	*g = (struct group){ .node = malloc(GROUP_NODES * sizeof *g->node),
		             .goal = malloc((goal_words + 1) * sizeof *g->goal),
		             .n = (uint32_t)n,
		             .n_roots = (uint32_t)n,
		             .begins = -1 };
	if (!g->node || !g->goal || n > GROUP_NODES)
		return false;
	memcpy(g->node, roots, n * sizeof *roots);
	memcpy(g->goal, goal, goal_words * sizeof *goal);
	return close_over(g, m->schema) && sort_indices(g) && sum_up(g, m->schema) && find_closed(m, g);
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
	if (!number || !array_grow(&groups, &m->group_room, number + 1, sizeof *m->group)) {
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
}

/* ---- judging */

struct judge {
	const struct schema *s;
	const struct group *g;
	const struct facts *f;
	uint8_t known[GROUP_NODES]; /* 0, or 1 + its verdict */
};

static enum verdict judge(struct judge *j, uint32_t node);

static enum verdict both(enum verdict a, enum verdict b)
{
	return a == FAILED || b == FAILED ? FAILED : a == OPEN || b == OPEN ? OPEN : PASSED;
}

static enum verdict opposite(enum verdict v) { return v == OPEN ? OPEN : v == FAILED ? PASSED : FAILED; }

static enum verdict judge_some(struct judge *j, struct part p, bool one_only)
{
	uint32_t passed = 0, open = 0;

	for (uint32_t i = 0; i < p.n; i++) {
		enum verdict v = judge(j, j->s->list[p.at + i]);
		passed += v == PASSED;
		open += v == OPEN;
	}
	if (one_only && passed > 1)
		return FAILED;
	if (passed && (!one_only || !open))
		return PASSED;
	return open ? OPEN : FAILED;
}

static enum verdict judge_condition(struct judge *j, const struct schema_node *n)
{
	enum verdict yes = n->then_this == SCHEMA_NONE ? PASSED : judge(j, n->then_this),
		     no = n->else_this == SCHEMA_NONE ? PASSED : judge(j, n->else_this),
		     condition = judge(j, n->condition);

	if (condition == OPEN)
		return yes == no ? yes : OPEN;
	return condition == PASSED ? yes : no;
}

/* Schemas for objects that have a certain member: who has it not yet may get it. */
static enum verdict judge_dependent(struct judge *j, const struct schema_node *n)
{
	enum verdict v = PASSED;

	for (uint32_t k = 0; k < n->dependent.n; k++) {
		const struct schema_dependency *d = &j->s->dependency[n->dependent.at + k];
		uint32_t at = 0;
		if (d->node == SCHEMA_NONE || !j->f->seen)
			continue;
		while (j->g->name[at] != d->name)
			at++;
		if (bit(j->f->seen, at))
			v = both(v, judge(j, d->node));
		else if (!j->f->final)
			v = both(v, OPEN);
	}
	return v;
}

/* Of an object it asks for members alone, and they are all there: nothing that comes can change that. */
static bool has_passed(const struct judge *j, const struct schema_node *n)
{
	if (!j->f->seen || n->properties.n || n->patterns.n || n->other != SCHEMA_NONE || n->names != SCHEMA_NONE ||
	    n->members.least || n->members.most != COUNT_ANY || n->dependent.n)
		return false;
	for (uint32_t k = 0; k < n->required.n; k++) {
		uint32_t at = 0;
		while (j->g->name[at] != j->s->list[n->required.at + k])
			at++;
		if (!bit(j->f->seen, at))
			return false;
	}
	return true;
}

static enum verdict judge_now(struct judge *j, uint32_t index)
{
	const struct schema_node *n = &j->s->node[j->g->node[index]];
	enum verdict v = bit(j->f->failed, index) ? FAILED : j->f->final || has_passed(j, n) ? PASSED : OPEN;

	for (uint32_t i = 0; i < n->all_of.n && v != FAILED; i++)
		v = both(v, judge(j, j->s->list[n->all_of.at + i]));
	if (v != FAILED && n->any_of.n)
		v = both(v, judge_some(j, n->any_of, false));
	if (v != FAILED && n->one_of.n)
		v = both(v, judge_some(j, n->one_of, true));
	if (v != FAILED && n->not_this != SCHEMA_NONE)
		v = both(v, opposite(judge(j, n->not_this)));
	if (v != FAILED && n->condition != SCHEMA_NONE)
		v = both(v, judge_condition(j, n));
	if (v != FAILED && n->dependent.n)
		v = both(v, judge_dependent(j, n));
	return v;
}

static enum verdict judge(struct judge *j, uint32_t node)
{
	uint32_t index = group_index(j->g, node);

	if (!j->known[index]) {
		j->known[index] = 1 + OPEN; /* a schema that refers to itself asks for nothing new */
		j->known[index] = (uint8_t)(1 + judge_now(j, index));
	}
	return j->known[index] - 1;
}

void group_judge(const struct json_machine *m, const struct group *g, const struct facts *f, uint32_t *failed_roots)
{
	struct judge j = { .s = m->schema, .g = g, .f = f };

	memset(failed_roots, 0, bits_words(g->n_roots) * sizeof *failed_roots);
	for (uint32_t i = 0; i < g->n_roots; i++)
		if (judge(&j, g->node[i]) == FAILED)
			set_bit(failed_roots, i);
}

static bool goal_has(const struct group *g, const uint32_t *failed_roots)
{
	size_t words = bits_words(g->n_roots);
	bool some_left = false;

	if (g->n_roots <= GOAL_TABLE)
		return bit(g->goal, g->n_roots ? failed_roots[0] : 0);
	for (size_t i = 0; i < words; i++)
		if (failed_roots[i] & g->goal[i])
			return false;
	for (uint32_t i = 0; i < g->n_roots; i++)
		some_left |= !bit(failed_roots, i);
	return some_left || g->goal[words];
}

bool group_alive(const struct json_machine *m, const struct group *g, const struct facts *f)
{
	uint32_t failed_roots[GROUP_NODES / 32 + 1] = { 0 };

	group_judge(m, g, f, failed_roots);
	return goal_has(g, failed_roots);
}

bool group_begins(struct json_machine *m, uint32_t group)
{
	struct group *g = &m->group[group];
	uint32_t failed[GROUP_NODES / 32];

	for (unsigned kind = 1; kind <= JSON_IS_OBJECT && g->begins != 1; kind *= 2) {
		if (g->begins == 0)
			break;
		memset(failed, 0, sizeof failed);
		for (uint32_t i = 0; i < g->n; i++)
			if (!(m->schema->node[g->node[i]].kinds & kind))
				set_bit(failed, i);
		if (group_alive(m, g, &(struct facts){ .failed = failed }))
			g->begins = 1;
	}
	if (g->begins < 0)
		g->begins = 0;
	return g->begins == 1;
}

/* ---- children */

static size_t roots_of(const struct request *r, size_t n, uint32_t *root)
{
	size_t k = 0;

	for (size_t i = 0; i < n && k < GROUP_NODES; i++) {
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
		bool alive = group_alive(m, g, &(struct facts){ .failed = failed, .seen = f->seen });
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

struct outcome group_done(struct json_machine *m, struct frame *f, const uint32_t *seen)
{
	const struct group *g = frame_group(m, f);
	uint32_t failed_roots[GROUP_NODES / 32 + 1] = { 0 };

	group_judge(m, g, &(struct facts){ .failed = frame_failed(f), .seen = seen, .final = true }, failed_roots);
	if (!goal_has(g, failed_roots))
		return dies();
	return pops(m, failed_roots, bits_words(g->n_roots) + !g->n_roots);
}
