/* grammar/schema/json_unique.c - items that must differ: those that an array has, and a schema for the next one. A
 * state has all of them (json_told.c), a frame those that such a schema is about.
 *
 * An item is compared when it is complete. That alone could lead where nothing can follow: into a text that can only
 * become one that is there already. So the next item is asked, as by one more schema, to be none of the words, numbers
 * and texts before it, where those cannot always be continued, and to be no empty object or array behind another one.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"
#include "grammar/schema/schema_parts.h"

/* Items that the next one is held against from its first byte on; with more, when it is complete. */
enum { HELD_MAX = 64 };
/* Where the bytes of a text begin in a value's form. */
enum { TEXT_AT = 5 };

/* Which of the items before are to be looked at. */
struct looks {
	bool numbers;
	uint32_t min_characters; /* texts of so many and more; 0: all, COUNT_ANY: none */
};

bool items_have(const struct json_machine *m, uint32_t list, uint32_t value)
{
	for (; list && effort_take(1); list = interner_get(&m->values.lists, list, NULL)[0])
		if (interner_get(&m->values.lists, list, NULL)[1] == value)
			return true;
	return false;
}

uint32_t items_with(struct json_machine *m, uint32_t list, uint32_t value)
{
	const uint32_t w[] = { list, value };
	uint32_t next = interner_add(&m->values.lists, w, 2, NULL);

	m->machine.failed |= next == 0;
	return next;
}

/* A number without bounds can always go on, and so can a text without patterns that is shorter than the longest one.
 * That matters: texts that the next item is held against make it another automaton, whose masks are found anew. */
static struct looks looks_of(const struct json_machine *m, uint32_t group)
{
	const struct group *g = &m->group[group];
	struct looks l = { .numbers = g->numbers, .min_characters = COUNT_ANY };

	for (uint32_t i = 0; i < g->n; i++) {
		const uint32_t max = m->schema->node[g->node[i]].length.max;
		l.min_characters = max < l.min_characters ? max : l.min_characters;
	}
	if (g->automata || g->mixed)
		l.min_characters = 0;
	return l;
}

static size_t characters(const uint8_t *p, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += (p[i] & 0xc0) != 0x80;
	return count;
}

/* The value that value_form() gives. */
static bool is_held(const uint8_t *bytes, size_t n, const struct looks *l)
{
	enum { BRACKETS = 2 };
	const uint8_t form = bytes[0];

	switch (form) {
	case '{':
	case '[': return n == BRACKETS;
	case 'z':
	case 'f':
	case 't': return true;
	case 's': return characters(bytes + TEXT_AT, n - TEXT_AT) >= l->min_characters;
	case 'n':
	case 'm': return l->numbers;
	}
	return false;
}

bool items_hold(const struct json_machine *m, uint32_t group, uint32_t value)
{
	const struct looks l = looks_of(m, group);
	const uint8_t *bytes;
	size_t n;

	value_form(m, value, &bytes, &n);
	return is_held(bytes, n, &l);
}

struct others {
	struct schema_reader *r;
	struct expression x;
	uint32_t texts;
	struct numbers_list numbers;
	uint8_t kinds;
	bool empty_object, empty_array;
	unsigned n;
};

static bool add_other(const struct json_machine *m, struct others *o, uint32_t value, const struct looks *l)
{
	const uint8_t *bytes;
	struct decimal d = { .negative = 0 };
	size_t n;
	uint8_t form = value_form(m, value, &bytes, &n);

	if (!is_held(bytes, n, l))
		return true;
	o->empty_object |= form == '{';
	o->empty_array |= form == '[';
	if (form == 'z' || form == 'f' || form == 't')
		o->kinds &= (uint8_t) ~(form == 'z' ? JSON_IS_NULL : form == 'f' ? JSON_IS_FALSE : JSON_IS_TRUE);
	if (form == 's' && o->n++ < HELD_MAX) {
		uint32_t one = expression_text(&o->x, (const char *)bytes + TEXT_AT, n - TEXT_AT);
		o->texts = o->texts == SCHEMA_NONE ? one : expression_either(&o->x, one, o->texts);
	}
	if ((form == 'n' || form == 'm') && o->n++ < HELD_MAX) {
		d.negative = form == 'm';
		memcpy(&d.exponent, bytes + 1, sizeof d.exponent);
		d.n = bytes[5];
		memcpy(d.digit, bytes + 6, d.n);
		return schema_push(o->r, &o->numbers, schema_keep_decimal(o->r, &d));
	}
	return true;
}

/* Any text but these: none of them stands from the beginning to the end. */
static bool other_texts(struct others *o, struct part *kept)
{
	static const struct character_range all = { 0, CODE_POINT_MAX };
	struct numbers_list automata = { 0 };
	struct expression *x = &o->x;

	if (o->texts == SCHEMA_NONE)
		return true;
	uint32_t whole = expression_join(x, o->texts, expression_edge(x, EXPRESSION_END));
	uint32_t any = expression_repeat(x, expression_set(x, &all, 1), 0, REPEAT_ANY);
	uint32_t node = expression_join(x, expression_ahead(x, whole, true), any);
	bool ok = schema_push(o->r, &automata, schema_add_automaton(o->r, automaton_open(x, node, false, o->r->err))) &&
	          schema_keep(o->r, &automata, kept);
	free(automata.p);
	return ok;
}

static uint32_t make(struct json_machine *m, uint32_t list, const struct looks *l)
{
	struct error err = { 0 };
	struct schema_reader r = { .s = m->schema, .err = &err };
	struct others o = { .r = &r, .texts = SCHEMA_NONE, .kinds = JSON_IS_ANY };
	struct part texts = { 0 }, numbers = { 0 };
	bool ok = true;

	for (; list && ok && effort_take(4); list = interner_get(&m->values.lists, list, NULL)[0])
		ok = add_other(m, &o, interner_get(&m->values.lists, list, NULL)[1], l);
	bool some = o.kinds != JSON_IS_ANY || o.n || o.empty_object || o.empty_array;
	ok = ok && other_texts(&o, &texts) && schema_keep(&r, &o.numbers, &numbers);
	uint32_t node = !ok ? SCHEMA_NONE : some ? schema_add_node(&r) : SCHEMA_TRUE;
	if (node != SCHEMA_NONE && some) {
		m->schema->node[node].kinds = o.kinds;
		m->schema->node[node].texts = texts;
		m->schema->node[node].unlike = numbers;
		m->schema->node[node].members.min = o.empty_object;
		m->schema->node[node].length_of_array.min = o.empty_array;
	}
	expression_clear(&o.x);
	free(o.numbers.p);
	m->machine.failed |= node == SCHEMA_NONE;
	return node;
}

uint32_t items_others(struct json_machine *m, uint32_t list, uint32_t group)
{
	const struct looks l = looks_of(m, group);
	const uint32_t w[] = { list, l.numbers, l.min_characters };
	struct values *v = &m->values;
	void *node = v->node;
	int made;

	if (!list)
		return SCHEMA_TRUE;
	uint32_t number = interner_add(&v->others, w, 3, &made);
	if (!number || !effort_array(&node, &v->node_room, (size_t)number + 1, sizeof *v->node)) {
		m->machine.failed = true;
		return SCHEMA_NONE;
	}
	v->node = node;
	if (made)
		v->node[number] = make(m, list, &l);
	return v->node[number];
}
