/* grammar/schema/schema_closed.c - objects that have no members but those that their schemas speak of, where these do
 * not say.
 *
 * By the standard an object of `properties` may have any other members; models then invent some. Who writes can have
 * such objects closed. What is written must stay right by the letter of the schema, whatever stands around: so nodes
 * are copied, and the copies are closed. Where a schema must fail (`not`, `if`), and where several are counted
 * (`oneOf`, `contains`), the letter stays.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/schema/schema_parts.h"

struct closing {
	struct schema_reader *r;
	uint32_t *copy; /* [node]; SCHEMA_NONE: not made so far */
	size_t n;       /* nodes that the text has */
	uint32_t *todo; /* pairs: a node and its copy */
	size_t n_todo, room;
};

static uint32_t copy_of(struct closing *c, uint32_t node)
{
	struct schema *s = c->r->s;
	void *todo = c->todo;

	if (node == SCHEMA_NONE || node <= SCHEMA_FALSE || node >= c->n)
		return node;
	if (c->copy[node] != SCHEMA_NONE)
		return c->copy[node];
	const uint32_t copy = schema_add_node(c->r);
	if (copy == SCHEMA_NONE || !effort_array(&todo, &c->room, c->n_todo + 2, sizeof *c->todo))
		return SCHEMA_NONE;
	c->todo = todo;
	s->node[copy] = s->node[node];
	c->todo[c->n_todo++] = node;
	c->todo[c->n_todo++] = copy;
	return c->copy[node] = copy;
}

static bool copy_list(struct closing *c, struct part from, struct part *to, uint32_t more)
{
	struct numbers_list all = { 0 };
	bool ok = true;

	for (uint32_t i = 0; ok && i < from.n; i++)
		ok = schema_push(c->r, &all, copy_of(c, c->r->s->list[from.at + i]));
	ok = ok && (more == SCHEMA_NONE || schema_push(c->r, &all, more)) && schema_keep(c->r, &all, to);
	free(all.p);
	return ok;
}

static bool copy_members(struct closing *c, const struct schema_node *of, uint32_t copy)
{
	struct schema *s = c->r->s;
	const struct part p = of->properties, q = of->patterns, d = of->dependent;
	void *members = s->member, *patterns = s->pattern, *dependencies = s->dependency;

	if (!effort_take(4 + 2 * p.n) ||
	    !effort_array(&members, &s->member_room, s->n_members + p.n, sizeof *s->member))
		return false;
	s->member = members;
	if (!effort_array(&patterns, &s->pattern_room, s->n_patterns + q.n, sizeof *s->pattern))
		return false;
	s->pattern = patterns;
	if (!effort_array(&dependencies, &s->dependency_room, s->n_dependencies + d.n, sizeof *s->dependency))
		return false;
	s->dependency = dependencies;
	const struct part to[] = {
		{ (uint32_t)s->n_members, p.n }, { (uint32_t)s->n_patterns, q.n }, { (uint32_t)s->n_dependencies, d.n }
	};
	for (uint32_t i = 0; i < p.n; i++)
		s->member[to[0].at + i] = s->member[p.at + i];
	for (uint32_t i = 0; i < q.n; i++)
		s->pattern[to[1].at + i] = s->pattern[q.at + i];
	for (uint32_t i = 0; i < d.n; i++)
		s->dependency[to[2].at + i] = s->dependency[d.at + i];
	s->n_members += p.n;
	s->n_patterns += q.n;
	s->n_dependencies += d.n;
	for (uint32_t i = 0; i < p.n; i++)
		s->member[to[0].at + i].node = copy_of(c, s->member[p.at + i].node);
	for (uint32_t i = 0; i < q.n; i++)
		s->pattern[to[1].at + i].node = copy_of(c, s->pattern[q.at + i].node);
	for (uint32_t i = 0; i < d.n; i++)
		s->dependency[to[2].at + i].node = copy_of(c, s->dependency[d.at + i].node);
	s->node[copy].properties = to[0];
	s->node[copy].patterns = to[1];
	s->node[copy].dependent = to[2];
	return true;
}

/* ---- schemas of which at most one can be right, so that closed ones can be counted, too */

static const json_t *text_of(const struct closing *c, uint32_t node, const struct schema_location **location)
{
	struct error ignored = { 0 }, *err = c->r->err;
	const json_t *to = NULL;

	*location = NULL;
	for (size_t i = 0; i < c->r->n_locations && !*location && effort_take(1); i++)
		*location = c->r->location[i].node == node ? &c->r->location[i] : NULL;
	const char *ref = *location ? json_string_value(json_object_get((*location)->json, "$ref")) : NULL;
	if (!ref)
		return *location ? (*location)->json : NULL;
	c->r->err = &ignored;
	to = schema_resolve(c->r, *location, ref, &to) ? to : NULL;
	c->r->err = err;
	return to;
}

static bool is_listed(const json_t *schema, const json_t *text)
{
	const json_t *one = json_object_get(schema, "const"), *all = json_object_get(schema, "enum");
	bool any = one && json_equal(one, text);

	for (size_t i = 0; i < json_array_size(all) && !any; i++)
		any = json_equal(json_array_get(all, i), text);
	return any;
}

/* Whether two schemas list texts, and none of them both. */
static bool list_others(const json_t *a, const json_t *b)
{
	const json_t *one = json_object_get(a, "const"), *all = json_object_get(a, "enum");
	bool ok = json_is_string(one) || (!one && json_array_size(all) > 0);

	if (!json_object_get(b, "const") && !json_object_get(b, "enum"))
		return false;
	if (one)
		return ok && !is_listed(b, one);
	for (size_t i = 0; i < json_array_size(all) && ok && effort_take(4); i++)
		ok = json_is_string(json_array_get(all, i)) && !is_listed(b, json_array_get(all, i));
	return ok;
}

static bool requires(const json_t *schema, const char *name)
{
	const json_t *all = json_object_get(schema, "required");
	bool any = false;

	for (size_t i = 0; i < json_array_size(all) && !any && effort_take(2); i++) {
		const char *one = json_string_value(json_array_get(all, i));
		any = one && strcmp(one, name) == 0;
	}
	return any;
}

static bool is_object(const json_t *schema)
{
	const char *type = json_string_value(json_object_get(schema, "type"));

	return type && strcmp(type, "object") == 0;
}

/* A member that both require tells them apart. */
static bool tells_apart(const json_t *a, const json_t *b)
{
	const char *name;
	json_t *one;

	if (!is_object(a) || !is_object(b))
		return false;
	json_object_foreach(json_object_get(a, "properties"), name, one)
	{
		const json_t *other = json_object_get(json_object_get(b, "properties"), name);
		if (other && effort_take(8) && requires(a, name) && requires(b, name) && list_others(one, other))
			return true;
	}
	return false;
}

static bool is_exclusive(const struct closing *c, struct part p)
{
	const struct schema *s = c->r->s;
	const struct schema_location *ignored;
	bool ok = true;

	for (uint32_t i = 0; i < p.n && ok; i++)
		for (uint32_t k = 0; k < i && ok; k++) {
			const uint32_t a = s->list[p.at + i], b = s->list[p.at + k];
			const json_t *x = text_of(c, a, &ignored), *y = text_of(c, b, &ignored);
			ok = !(s->node[a].kinds & s->node[b].kinds) || (x && y && tells_apart(x, y));
		}
	return ok;
}

/* ---- all */

/* At least one of the schemas that are counted is right as a closed one, too. */
static uint32_t one_of_closed(struct closing *c, struct part p)
{
	struct part kept = { 0 };
	const uint32_t node = schema_add_node(c->r);

	if (node == SCHEMA_NONE || !copy_list(c, p, &kept, SCHEMA_NONE))
		return SCHEMA_NONE;
	c->r->s->node[node].any_of = kept;
	return node;
}

static bool fill_copy(struct closing *c, uint32_t from, uint32_t copy)
{
	const struct schema_node of = c->r->s->node[from];
	const bool counted = of.one_of.n && !is_exclusive(c, of.one_of);
	const uint32_t more = counted ? one_of_closed(c, of.one_of) : SCHEMA_NONE;
	struct part all, any, one = of.one_of, first;

	if (counted && more == SCHEMA_NONE)
		return false;
	if (!copy_members(c, &of, copy) || !copy_list(c, of.all_of, &all, more) ||
	    !copy_list(c, of.any_of, &any, SCHEMA_NONE) || !copy_list(c, of.first_items, &first, SCHEMA_NONE) ||
	    (!counted && !copy_list(c, of.one_of, &one, SCHEMA_NONE)))
		return false;
	const uint32_t other = copy_of(c, of.other), items = copy_of(c, of.items), yes = copy_of(c, of.then_this),
		       no = copy_of(c, of.else_this);
	struct schema_node *n = &c->r->s->node[copy];
	n->all_of = all;
	n->any_of = any;
	n->one_of = one;
	n->first_items = first;
	n->other = other;
	n->items = items;
	n->then_this = yes;
	n->else_this = no;
	n->closes = of.names_members;
	n->counts_letter = counted;
	return !effort_over();
}

bool schema_close_objects(struct schema_reader *r)
{
	struct closing c = { .r = r, .n = r->s->n_nodes };
	bool ok = true, any = false;

	for (size_t i = 0; i < c.n; i++)
		any |= r->s->node[i].names_members;
	if (!any)
		return true;
	ok = (c.copy = effort_malloc(c.n * sizeof *c.copy)) != NULL;
	if (ok)
		memset(c.copy, 0xff, c.n * sizeof *c.copy);
	const uint32_t root = ok ? copy_of(&c, r->s->root) : SCHEMA_NONE;
	ok = ok && root != SCHEMA_NONE;
	for (size_t i = 0; ok && i < c.n_todo; i += 2)
		ok = fill_copy(&c, c.todo[i], c.todo[i + 1]);
	if (ok)
		r->s->root = root;
	free(c.copy);
	free(c.todo);
	return ok || schema_no_memory(r);
}
