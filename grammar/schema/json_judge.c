/* grammar/schema/json_judge.c - what follows for a group when some of its nodes have failed: logic with three values.
 */
#include <string.h>

#include "grammar/schema/json_parts.h"

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
		uint32_t at;
		if (d->node == SCHEMA_NONE || !j->f->seen)
			continue;
		at = group_name(j->s, j->g, d->name);
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
	    n->members.min || n->members.max != COUNT_ANY || n->dependent.n)
		return false;
	effort_take(n->required.n);
	for (uint32_t k = 0; k < n->required.n; k++) {
		const uint32_t at = group_name(j->s, j->g, j->s->list[n->required.at + k]);
		if (!bit(j->f->seen, at))
			return false;
	}
	return true;
}

static bool asks_nothing(const struct schema_node *n, unsigned kind)
{
	switch (kind) {
	case JSON_IS_STRING: return !n->texts.n && n->length.min == 0 && n->length.max == COUNT_ANY;
	case JSON_IS_NUMBER:
		return !n->whole && !n->numbers.n && !n->unlike.n && n->minimum == SCHEMA_NONE &&
		       n->maximum == SCHEMA_NONE && n->multiple_of == SCHEMA_NONE;
	case JSON_IS_ARRAY:
		return !n->first_items.n && n->items == SCHEMA_NONE && n->contains == SCHEMA_NONE && !n->unique &&
		       n->length_of_array.min == 0 && n->length_of_array.max == COUNT_ANY;
	case JSON_IS_OBJECT:
		return !n->properties.n && !n->patterns.n && n->other == SCHEMA_NONE && n->names == SCHEMA_NONE &&
		       !n->required.n && !n->dependent.n && n->members.min == 0 && n->members.max == COUNT_ANY;
	}
	return kind != 0;
}

static enum verdict judge_now(struct judge *j, uint32_t index)
{
	const struct schema_node *n = &j->s->node[j->g->node[index]];
	enum verdict v = bit(j->f->failed, index) ? FAILED
	                 : j->f->final || has_passed(j, n) || asks_nothing(n, j->f->kind)
	                         ? PASSED
	                         : OPEN;

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

static void judge_roots(struct judge *j, uint32_t *failed_roots)
{
	effort_take(4 + 2 * j->g->n);
	memset(failed_roots, 0, bits_words(j->g->n_roots) * sizeof *failed_roots);
	for (uint32_t i = 0; i < j->g->n_roots; i++)
		if (judge(j, j->g->node[i]) == FAILED)
			set_bit(failed_roots, i);
}

void group_judge(const struct json_machine *m, const struct group *g, const struct facts *f, uint32_t *failed_roots)
{
	struct judge j = { .s = m->schema, .g = g, .f = f };

	judge_roots(&j, failed_roots);
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

/* Whether roots that are open still can fail so that the goal is met. */
static bool goal_may_have(const struct judge *j, uint32_t failed_roots)
{
	const struct group *g = j->g;
	uint32_t passed = 0;

	if (j->f->final || g->n_roots > GOAL_TABLE || !g->mixed)
		return false;
	for (uint32_t i = 0; i < g->n_roots; i++)
		passed |= (uint32_t)(j->known[i] == 1 + PASSED) << i;
	for (uint32_t set = 0; set < 1u << g->n_roots; set++)
		if ((set & failed_roots) == failed_roots && !(set & passed) && bit(g->goal, set))
			return true;
	return false;
}

bool group_alive(const struct json_machine *m, const struct group *g, const struct facts *f)
{
	uint32_t failed_roots[GROUP_NODES / 32 + 1] = { 0 };
	struct judge j = { .s = m->schema, .g = g, .f = f };

	judge_roots(&j, failed_roots);
	return goal_has(g, failed_roots) || goal_may_have(&j, failed_roots[0]);
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
