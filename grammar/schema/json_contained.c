/* grammar/schema/json_contained.c - whether an array that was begun can be ended, where "contains" counts items of a
 * kind.
 *
 * An item is of a class: the schemas for items that it fails. Which classes have values at all is asked of the groups
 * that want just that. Then a search goes over what the array can become by one more item of a class, to one that may
 * end. Arrays only grow in what is counted, so it comes to an end; where it takes long, there is taken to be a way.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"

enum { LOOKED_AT_MAX = 3000 };
enum { HOPE_UNKNOWN, HOPE_YES, HOPE_NO };

/* Arrays that were met in one search, and those whose ways on are still to be tried. */
struct looking {
	struct json_machine *m;
	struct interner met;
	uint32_t *todo;
	size_t n_todo, room;
	bool found, failed;
};

static bool may_end(struct json_machine *m, const struct frame *f)
{
	struct frame trial;

	frame_copy(&trial, f);
	return array_end(m, &trial).kind != DIES;
}

static void meet(struct looking *l, const struct frame *f)
{
	void *todo = l->todo;
	int made;
	const uint32_t number = interner_add(&l->met, f->w, f->n, &made);

	if (!number || !effort_array(&todo, &l->room, l->n_todo + 1, sizeof *l->todo)) {
		l->failed = true;
		return;
	}
	l->todo = todo;
	if (made)
		l->todo[l->n_todo++] = number;
}

/* The roots of the next item, of which at most GOAL_TABLE can be looked at. */
struct roots {
	struct request r[3 * GROUP_NODES];
	size_t n;
	uint32_t root[GOAL_TABLE], n_roots;
};

/* False: there are too many. */
static bool find_roots(struct json_machine *m, struct frame *f, struct roots *to)
{
	to->n = array_requests(m, f, to->r);
	const uint32_t child = group_child(m, f->w[1], &(struct facts){ .failed = frame_failed(f) }, to->r, to->n);

	if (!child || m->group[child].n_roots > GOAL_TABLE)
		return false;
	to->n_roots = m->group[child].n_roots;
	memcpy(to->root, m->group[child].node, to->n_roots * sizeof *to->root);
	return true;
}

/* Whether there are items that fail these roots, and no others. */
static bool has_class(struct json_machine *m, const struct roots *of, uint32_t set)
{
	uint32_t goal[(1 << GOAL_TABLE) / 32] = { 0 };

	set_bit(goal, set);
	const uint32_t group = group_make(m, of->root, of->n_roots, goal, bits_words(1u << of->n_roots));
	return group && group_begins(m, group);
}

/* The array with one more item of a class; false: it is dead. */
static bool with_item(struct json_machine *m, struct frame *f, const struct roots *of, uint32_t set)
{
	array_count(m, f, of->root, of->n_roots, &set);
	for (size_t i = 0; i < of->n; i++)
		for (uint32_t k = 0; k < of->n_roots; k++)
			if (set >> k & 1 && of->r[i].to == of->root[k] && of->r[i].from != UINT32_MAX)
				set_bit(frame_failed(f), of->r[i].from);
	return group_alive(m, frame_group(m, f), &(struct facts){ .failed = frame_failed(f) });
}

/* What the array can become by one more item; those without failures are tried first. */
static void go_on(struct looking *l, const struct frame *from)
{
	struct json_machine *m = l->m;
	struct roots *of = effort_malloc(sizeof *of);
	struct frame f, next;

	frame_copy(&f, from);
	if (!of) {
		l->failed = true;
		return;
	}
	array_fail_full(m, &f);
	if (group_alive(m, frame_group(m, &f), &(struct facts){ .failed = frame_failed(&f) })) {
		if (!find_roots(m, &f, of))
			l->found = true; /* nobody knows */
		for (uint32_t set = 1u << of->n_roots; set-- > 0 && !l->found && !effort_over();) {
			frame_copy(&next, &f);
			if (has_class(m, of, set) && with_item(m, &next, of, set))
				meet(l, &next);
		}
	}
	free(of);
}

static bool search(struct json_machine *m, const struct frame *from)
{
	struct looking l = { .m = m };
	struct frame f;

	meet(&l, from);
	while (l.n_todo && !l.found && !l.failed && !effort_over()) {
		const uint32_t *w = interner_get(&l.met, l.todo[--l.n_todo], &f.n);
		memcpy(f.w, w, f.n * sizeof *w);
		f.failed = false;
		l.found = l.met.n > LOOKED_AT_MAX || may_end(m, &f);
		if (!l.found)
			go_on(&l, &f);
	}
	interner_clear(&l.met);
	free(l.todo);
	m->machine.failed |= l.failed;
	return l.found;
}

bool array_can_end(struct json_machine *m, const struct frame *frame)
{
	struct contained *c = &m->contained;
	struct frame f;
	void *hope = c->hope;
	const size_t had = c->room;

	frame_copy(&f, frame);
	array_forget_position(m, &f);
	const uint32_t number = interner_add(&c->arrays, f.w, f.n, NULL);
	if (!number || !effort_array(&hope, &c->room, (size_t)number + 1, 1)) {
		m->machine.failed = true;
		return false;
	}
	c->hope = hope;
	if (c->room > had)
		memset(c->hope + had, HOPE_UNKNOWN, c->room - had);
	if (c->hope[number] == HOPE_UNKNOWN) {
		const bool can = search(m, &f);
		m->contained.hope[number] = can ? HOPE_YES : HOPE_NO;
	}
	return m->contained.hope[number] == HOPE_YES;
}

/* As group_child() asks it: whether an array whose next item fails these roots can be ended. */
bool array_leads(void *user, const uint32_t *failed, const uint32_t *root, size_t n_roots, const uint32_t *failed_roots)
{
	const struct array_with *a = user;
	struct frame f;

	frame_copy(&f, a->frame);
	memcpy(frame_failed(&f), failed, bits_words(frame_group(a->m, &f)->n) * sizeof *failed);
	array_count(a->m, &f, root, (uint32_t)n_roots, failed_roots);
	return group_alive(a->m, frame_group(a->m, &f), &(struct facts){ .failed = frame_failed(&f) }) &&
	       array_can_end(a->m, &f);
}

void contained_clear(struct contained *c)
{
	interner_clear(&c->arrays);
	free(c->hope);
}
