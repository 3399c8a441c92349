/* grammar/schema/json_array.c - arrays: which schemas look at an item, how many there are, and how many "contains" has
 * met. */
#include <string.h>

#include "grammar/schema/json_parts.h"

/* Behind the head: the phase, white space, the items so far, where they must differ the list of those that the next one
 * is held against (json_unique.c), a count for each node with "contains". */
enum { PHASE, SPACE, ITEMS, DIFFER, CONTAINED };
enum phase { FIRST, ITEM, NEXT };

struct outcome array_begin(struct json_machine *m, struct frame *f, uint32_t space)
{
	const struct group *g = frame_group(m, f);

	f->w[0] = FRAME_ARRAY;
	for (uint32_t i = 0; i < CONTAINED + g->n_contains; i++)
		frame_push(f, i == SPACE ? space : 0);
	return stays(m, f);
}

static size_t plain_requests(const struct json_machine *m, struct frame *f, struct request *r)
{
	const struct group *g = frame_group(m, f);
	const struct schema *s = m->schema;
	uint32_t at = frame_rest(m, f)[ITEMS];
	size_t n = 0;

	effort_take(4 + g->n);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *node = &s->node[g->node[i]];
		if (bit(frame_failed(f), i))
			continue;
		if (at < node->first_items.n)
			r[n++] = (struct request){ i, s->list[node->first_items.at + at] };
		else if (node->items != SCHEMA_NONE)
			r[n++] = (struct request){ i, node->items };
		if (node->contains != SCHEMA_NONE)
			r[n++] = (struct request){ UINT32_MAX, node->contains };
	}
	return n;
}

/* And where items must differ, what those before leave. */
size_t array_requests(struct json_machine *m, struct frame *f, struct request *r)
{
	size_t n = plain_requests(m, f, r);

	if (!frame_group(m, f)->unique || !frame_rest(m, f)[DIFFER])
		return n;
	uint32_t child = group_child(m, f->w[1], &(struct facts){ .failed = frame_failed(f) }, r, n);
	uint32_t others = child ? items_others(m, frame_rest(m, f)[DIFFER], child) : SCHEMA_NONE;
	const struct group *g = frame_group(m, f);
	for (uint32_t i = 0; i < g->n && others != SCHEMA_NONE; i++)
		if (m->schema->node[g->node[i]].unique && !bit(frame_failed(f), i))
			r[n++] = (struct request){ i, others };
	return n;
}

void array_fail_full(const struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);

	for (uint32_t i = 0; i < g->n; i++)
		if (frame_rest(m, f)[ITEMS] >= m->schema->node[g->node[i]].length_of_array.max)
			set_bit(frame_failed(f), i);
}

/* Whether an end depends on which items there are, and not on how many: "contains", and what may fail by them. */
static bool items_count(const struct group *g) { return g->n_contains || (g->mixed && g->asks_items && !g->unique); }

/* What the next item is for; where items are counted, it is to leave a way to the end. */
static uint32_t child_of(struct json_machine *m, struct frame *f, const struct request *r, size_t n)
{
	const struct array_with with = { m, f };
	struct facts facts = { .failed = frame_failed(f) };

	if (items_count(frame_group(m, f))) {
		facts.leads = array_leads;
		facts.user = (void *)(uintptr_t)&with;
	}
	return group_child(m, f->w[1], &facts, r, n);
}

/* The group of the next item; 0: there can be none. */
static uint32_t item_group(struct json_machine *m, struct frame *f)
{
	struct request r[3 * GROUP_NODES];

	array_fail_full(m, f);
	if (!group_alive(m, frame_group(m, f), &(struct facts){ .failed = frame_failed(f) }))
		return 0;
	const size_t n = array_requests(m, f, r);
	uint32_t child = child_of(m, f, r, n);
	return child && group_begins(m, child) ? child : 0;
}

static struct outcome begin_item(struct json_machine *m, struct frame *f, bool again)
{
	uint32_t child = item_group(m, f);
	uint32_t *rest = frame_rest(m, f);

	if (!child)
		return dies();
	rest[PHASE] = ITEM;
	rest[SPACE] &= ~(uint32_t)SPACE_STATE;
	/* The first item's white space was read here. */
	const uint32_t space = rest[SPACE] | (again && m->writes ? SPACE_OF_MEMBER : 0);
	return (struct outcome){ PUSHES, again, frame_keep(m, f), start_frame(m, child, space), 0 };
}

struct outcome array_end(struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);
	const uint32_t *rest = frame_rest(m, f), *contained = rest + CONTAINED;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &m->schema->node[g->node[i]];
		bool ok = rest[ITEMS] >= n->length_of_array.min;
		if (n->contains != SCHEMA_NONE) {
			ok &= *contained >= n->n_contained.min && *contained <= n->n_contained.max;
			contained++;
		}
		if (!ok)
			set_bit(frame_failed(f), i);
	}
	return group_done(m, f, NULL);
}

bool array_possible(struct json_machine *m, struct frame *f)
{
	enum { ITEMS_LOOKED_AT = 64 };
	struct frame trial;

	if (array_begin(m, f, 0).kind == DIES)
		return false;
	if (items_count(frame_group(m, f)))
		return array_can_end(m, f) || m->machine.failed;
	for (uint32_t n = 0; n <= frame_group(m, f)->items_max + 1; n++) {
		if (n == ITEMS_LOOKED_AT)
			return true;
		memcpy(trial.w, f->w, f->n * sizeof *f->w);
		trial.n = f->n;
		trial.failed = f->failed;
		frame_rest(m, &trial)[ITEMS] = n;
		if (array_end(m, &trial).kind != DIES)
			return true;
		memcpy(trial.w, f->w, f->n * sizeof *f->w);
		frame_rest(m, &trial)[ITEMS] = n;
		if (!item_group(m, &trial))
			return m->machine.failed;
	}
	/* Where items must not differ, some may be the same. */
	return (frame_group(m, f)->mixed && frame_group(m, f)->unique) || m->machine.failed;
}

/* A line that was ended is that of an item, or behind one that of the bracket, for those who write. */
static bool line_may_end(struct json_machine *m, const struct frame *f)
{
	struct frame trial;

	if (!m->writes)
		return true;
	frame_copy(&trial, f);
	return frame_rest(m, &trial)[PHASE] == FIRST ? item_group(m, &trial) != 0 : array_end(m, &trial).kind != DIES;
}

struct outcome array_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	uint32_t *rest = frame_rest(m, f);
	const bool first = rest[PHASE] == FIRST, spaced = m->writes && rest[SPACE] & SPACE_STATE;
	const unsigned where = first                          ? SPACE_LINE | SPACE_FIRST
	                       : rest[SPACE] & SPACE_IN_LINES ? SPACE_LINE | SPACE_CLOSES
	                                                      : 0;

	if (is_space(byte))
		return space_step(m, &rest[SPACE], byte, where) && line_may_end(m, f) ? stays(m, f) : dies();
	if (byte == ']')
		return first ? (spaced ? dies() : array_end(m, f))
		             : (space_ends(m, &rest[SPACE], where) ? array_end(m, f) : dies());
	if (first)
		return space_ends(m, &rest[SPACE], where) ? begin_item(m, f, true) : dies();
	return byte == ',' && !spaced ? begin_item(m, f, false) : dies();
}

void array_forget_position(const struct json_machine *m, struct frame *f)
{
	frame_rest(m, f)[PHASE] = frame_rest(m, f)[SPACE] = 0;
}

/* Counts go up to one more than anybody asks for. */
void array_count(const struct json_machine *m, struct frame *f, const uint32_t *root, uint32_t n_roots,
                 const uint32_t *failed_roots)
{
	const struct group *g = frame_group(m, f);
	uint32_t *contained = frame_rest(m, f) + CONTAINED;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &m->schema->node[g->node[i]];
		bool failed = false;
		if (n->contains == SCHEMA_NONE)
			continue;
		for (uint32_t k = 0; k < n_roots; k++)
			failed |= root[k] == n->contains && bit(failed_roots, k);
		uint32_t enough = n->n_contained.max == COUNT_ANY ? n->n_contained.min : n->n_contained.max + 1;
		*contained += !failed && !bit(frame_failed(f), i) && *contained < enough;
		contained++;
	}
	frame_rest(m, f)[ITEMS] += frame_rest(m, f)[ITEMS] < g->items_max;
}

/* Whether the next item is to be held against a value. The schemas for items are known where nothing can fail and all
 * positions are alike. */
static bool is_held(struct json_machine *m, struct frame *f, uint32_t value)
{
	const struct group *g = frame_group(m, f);
	struct request r[3 * GROUP_NODES];

	if (g->n > 1 || m->schema->node[g->node[0]].first_items.n)
		return true;
	const size_t n = plain_requests(m, f, r);
	const uint32_t child = group_child(m, f->w[1], &(struct facts){ .failed = frame_failed(f) }, r, n);
	return !child || items_hold(m, child, value);
}

/* False: the item cannot be compared. */
static bool take_value(struct json_machine *m, struct frame *f, uint32_t value, bool again)
{
	if (!value || m->machine.failed)
		return false;
	if (!again && is_held(m, f, value))
		frame_rest(m, f)[DIFFER] = items_with(m, frame_rest(m, f)[DIFFER], value);
	const struct group *g = frame_group(m, f);
	for (uint32_t i = 0; i < g->n && again; i++)
		if (m->schema->node[g->node[i]].unique)
			set_bit(frame_failed(f), i);
	return true;
}

uint32_t array_resume(struct json_machine *m, struct frame *f, const uint32_t *result, uint32_t value, bool again)
{
	struct request r[3 * GROUP_NODES];
	size_t n = array_requests(m, f, r);
	uint32_t child = child_of(m, f, r, n), *rest = frame_rest(m, f);

	if (!child || (frame_group(m, f)->unique && !take_value(m, f, value, again)))
		return 0;
	array_count(m, f, m->group[child].node, m->group[child].n_roots, result);
	group_child_failed(m, child, result, r, n, frame_failed(f));
	rest[PHASE] = NEXT;
	return group_alive(m, frame_group(m, f), &(struct facts){ .failed = frame_failed(f) }) ? frame_keep(m, f) : 0;
}
