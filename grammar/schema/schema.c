#include "grammar/schema/schema.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/schema/schema_parts.h"
#include "base/json_read.h"

/* Nodes, names and the like: published schemas have some thousands. */
enum { TABLE_MAX = 1 << 20, TEXT_MAX = 1 << 24 };

bool schema_fail(struct schema_reader *r, const char *why)
{
	char quoted[256];
	const char *at = r->at ? r->at : "";

	return error_set(r->err, ERROR_UNSUPPORTED, "the schema at #%s%s%s: %s",
	                 error_quote(quoted, sizeof quoted, at, strlen(at)), r->key ? "/" : "", r->key ? r->key : "",
	                 why);
}

bool schema_no_memory(struct schema_reader *r) { return error_set(r->err, ERROR_MEMORY, "no memory for a schema"); }

static bool grow(struct schema_reader *r, void *array, size_t *room, size_t n, size_t size)
{
	void *p;

	memcpy(&p, array, sizeof p);
	const size_t had = *room;
	if (n > TABLE_MAX)
		return schema_fail(r, "the schema is too large");
	if (!effort_take(3) || !effort_array(&p, room, n, size))
		return schema_no_memory(r);
	memcpy(array, &p, sizeof p);
	return effort_grow(had * size, *room * size) || schema_no_memory(r);
}

static const struct schema_node anything = {
	.kinds = JSON_IS_ANY,
	.length = { 0, COUNT_ANY },
	.minimum = SCHEMA_NONE,
	.maximum = SCHEMA_NONE,
	.multiple_of = SCHEMA_NONE,
	.other = SCHEMA_NONE,
	.names = SCHEMA_NONE,
	.members = { 0, COUNT_ANY },
	.items = SCHEMA_NONE,
	.contains = SCHEMA_NONE,
	.length_of_array = { 0, COUNT_ANY },
	.n_contained = { 1, COUNT_ANY },
	.not_this = SCHEMA_NONE,
	.condition = SCHEMA_NONE,
	.then_this = SCHEMA_NONE,
	.else_this = SCHEMA_NONE,
};

uint32_t schema_add_node(struct schema_reader *r)
{
	struct schema *s = r->s;

	if (!grow(r, &s->node, &s->node_room, s->n_nodes + 1, sizeof *s->node))
		return SCHEMA_NONE;
	s->node[s->n_nodes] = anything;
	return (uint32_t)s->n_nodes++;
}

bool schema_push(struct schema_reader *r, struct numbers_list *l, uint32_t number)
{
	if (number == SCHEMA_NONE || !grow(r, &l->p, &l->room, l->n + 1, sizeof *l->p))
		return false;
	l->p[l->n++] = number;
	return true;
}

bool schema_keep(struct schema_reader *r, struct numbers_list *l, struct part *kept)
{
	struct schema *s = r->s;
	bool ok = l->n == 0 || grow(r, &s->list, &s->list_room, s->n_list + l->n, sizeof *s->list);

	if (ok) {
		*kept = (struct part){ (uint32_t)s->n_list, (uint32_t)l->n };
		if (l->n)
			memcpy(s->list + s->n_list, l->p, l->n * sizeof *l->p);
		s->n_list += l->n;
	}
	free(l->p);
	*l = (struct numbers_list){ 0 };
	return ok;
}

uint32_t schema_add_automaton(struct schema_reader *r, struct automaton *a)
{
	struct schema *s = r->s;

	if (!a || !grow(r, &s->automaton, &s->automaton_room, s->n_automata + 1, sizeof *s->automaton)) {
		automaton_close(a);
		return SCHEMA_NONE;
	}
	s->automaton[s->n_automata] = a;
	return (uint32_t)s->n_automata++;
}

/* The words of a name: how many bytes, and they. */
static uint32_t number_of_name(struct schema *s, const char *name, size_t n, int *made)
{
	const size_t words = 1 + (n + 3) / 4;
	uint32_t *w = effort_calloc(words, sizeof *w), number = 0;

	if (w) {
		w[0] = (uint32_t)n;
		memcpy(w + 1, name, n);
		number = interner_add(&s->names, w, words, made);
	}
	free(w);
	return number;
}

uint32_t schema_name(struct schema_reader *r, const char *name, size_t n)
{
	struct schema *s = r->s;
	int made = 0;

	if (!grow(r, &s->name, &s->name_room, s->n_names + 1, sizeof *s->name) ||
	    !grow(r, &s->name_bytes, &s->name_bytes_room, s->n_names + 1, sizeof *s->name_bytes))
		return SCHEMA_NONE;
	const uint32_t number = number_of_name(s, name, n, &made);
	if (number && !made)
		return number - 1;
	if (!number || !(s->name[s->n_names] = effort_malloc(n + 1))) {
		schema_no_memory(r);
		return SCHEMA_NONE;
	}
	memcpy(s->name[s->n_names], name, n);
	s->name[s->n_names][n] = 0;
	s->name_bytes[s->n_names] = n;
	return (uint32_t)s->n_names++;
}

static int by_name(const void *a, const void *b)
{
	const uint32_t x = ((const struct schema_member *)a)->name, y = ((const struct schema_member *)b)->name;

	return x < y ? -1 : x > y;
}

/* From the position of each member to the member at each position: inverts the permutation, a cycle at a time.
 */
static void reverse_order(struct schema_member *m, uint32_t n)
{
	const uint32_t DONE = 1u << 31;

	for (uint32_t first = 0; first < n; first++) {
		uint32_t before = first, at = m[first].nth;
		while (!(m[first].nth & DONE) && at != first) {
			const uint32_t next = m[at].nth;
			m[at].nth = before | DONE;
			before = at;
			at = next;
		}
		if (!(m[first].nth & DONE))
			m[first].nth = before | DONE;
	}
	for (uint32_t i = 0; i < n; i++)
		m[i].nth &= ~DONE;
}

void schema_sort_members(struct schema *s, struct part p)
{
	if (!p.n)
		return;
	qsort(s->member + p.at, p.n, sizeof *s->member, by_name);
	reverse_order(s->member + p.at, p.n);
}

uint32_t schema_property(const struct schema *s, const struct schema_node *n, uint32_t name)
{
	const struct schema_member key = { .name = name },
				   *m = n->properties.n ? bsearch(&key, s->member + n->properties.at, n->properties.n,
	                                                          sizeof key, by_name)
	                                                : NULL;

	return m ? m->node : SCHEMA_NONE;
}

uint32_t schema_decimal(struct schema_reader *r, const json_t *number)
{
	struct schema *s = r->s;
	char spelled[32];

	if (!grow(r, &s->decimal, &s->decimal_room, s->n_decimals + 1, sizeof *s->decimal))
		return SCHEMA_NONE;
	struct decimal *d = &s->decimal[s->n_decimals];
	const char *text = json_digits(number);
	if (!text && json_is_integer(number)) {
		snprintf(spelled, sizeof spelled, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
		text = spelled;
	}
	if (!(text ? decimal_read(d, text, strlen(text))
	           : json_is_real(number) && decimal_from_real(d, json_real_value(number)))) {
		schema_fail(r, "a number was expected");
		return SCHEMA_NONE;
	}
	return (uint32_t)s->n_decimals++;
}

uint32_t schema_keep_decimal(struct schema_reader *r, const struct decimal *d)
{
	struct schema *s = r->s;

	if (!grow(r, &s->decimal, &s->decimal_room, s->n_decimals + 1, sizeof *s->decimal))
		return SCHEMA_NONE;
	s->decimal[s->n_decimals] = *d;
	return (uint32_t)s->n_decimals++;
}

bool schema_node_of(struct schema_reader *r, const json_t *json, uint32_t *node)
{
	if (json_is_boolean(json)) {
		*node = json_is_true(json) ? SCHEMA_TRUE : SCHEMA_FALSE;
		return true;
	}
	struct schema_location *p = json_is_object(json) ? schema_location(r, json) : NULL;
	if (!p)
		return schema_fail(r, "a schema was expected: an object, true or false");
	if (p->node == SCHEMA_NONE) {
		if (!grow(r, &r->queue, &r->queue_room, r->n_queue + 1, sizeof *r->queue) ||
		    (p->node = schema_add_node(r)) == SCHEMA_NONE)
			return false;
		r->queue[r->n_queue++] = (uint32_t)(p - r->location);
	}
	*node = p->node;
	return true;
}

static bool read_all(struct schema_reader *r)
{
	if (schema_add_node(r) != SCHEMA_TRUE || schema_add_node(r) != SCHEMA_FALSE || !schema_find_locations(r) ||
	    !schema_node_of(r, r->root, &r->s->root))
		return false;
	r->s->node[SCHEMA_FALSE].kinds = 0;
	for (size_t i = 0; i < r->n_queue; i++) {
		const struct schema_location *p = &r->location[r->queue[i]];
		r->at = p->pointer;
		if (!schema_fill(r, p))
			return false;
	}
	return true;
}

struct schema *schema_open(const char *text, size_t n, unsigned flags, struct error *err)
{
	struct schema_reader r = { .s = effort_calloc(1, sizeof *r.s), .formats = flags & SCHEMA_FORMATS, .err = err };

	if (!r.s)
		schema_no_memory(&r);
	r.root = r.s ? json_read_digits(text, n, TEXT_MAX, "the schema", err) : NULL;
	if (r.root)
		r.s->compact =
			json_is_false(json_object_get(json_object_get(r.root, "x-guidance"), "whitespace_flexible"));
	if (!r.root || !read_all(&r) || (flags & SCHEMA_CLOSED && !schema_close_objects(&r))) {
		schema_close(r.s);
		r.s = NULL;
	}
	for (size_t i = 0; i < r.n_locations; i++)
		free(r.location[i].pointer);
	for (size_t i = 0; i < r.n_bases; i++)
		free(r.base[i]);
	free(r.location);
	free(r.document);
	free(r.base);
	free(r.queue);
	json_decref(r.root);
	return r.s;
}

void schema_close(struct schema *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_names; i++)
		free(s->name[i]);
	for (size_t i = 0; i < s->n_automata; i++)
		automaton_close(s->automaton[i]);
	free(s->node);
	free(s->list);
	free(s->member);
	free(s->pattern);
	free(s->dependency);
	free(s->name);
	free(s->name_bytes);
	interner_clear(&s->names);
	free(s->decimal);
	free(s->automaton);
	free(s);
}
