/* grammar/schema/schema_keywords.c - keywords about objects, arrays and other schemas, and a node put together. */
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/schema/schema_parts.h"

static struct schema_node *node_of(const struct schema_reader *r, const struct filling *f)
{
	return &r->s->node[f->node];
}

#define COUNT(name, field) \
	static bool name(struct schema_reader *r, struct filling *f, const json_t *value) \
	{ \
		return schema_count(r, value, &node_of(r, f)->field); \
	}
COUNT(read_min_items, length_of_array.min)
COUNT(read_max_items, length_of_array.max)
COUNT(read_min_contains, n_contained.min)
COUNT(read_max_contains, n_contained.max)
COUNT(read_min_members, members.min)
COUNT(read_max_members, members.max)

static bool child(struct schema_reader *r, const json_t *value, uint32_t *node)
{
	return schema_node_of(r, value, node);
}

static bool read_properties(struct schema_reader *r, struct filling *f, const json_t *value)
{
	struct schema *s = r->s;
	const char *key;
	json_t *member;
	uint32_t at = (uint32_t)s->n_members, n = 0, node, name;

	if (!json_is_object(value))
		return schema_fail(r, "an object was expected");
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		void *members = s->member;
		if (!child(r, member, &node) || (name = schema_name(r, key, strlen(key))) == SCHEMA_NONE)
			return false;
		if (!effort_array(&members, &s->member_room, s->n_members + 1, sizeof *s->member))
			return schema_no_memory(r);
		s->member = members;
		s->member[s->n_members++] = (struct schema_member){ name, node, n };
		n++;
	}
	node_of(r, f)->properties = (struct part){ at, n };
	schema_sort_members(s, node_of(r, f)->properties);
	return true;
}

static bool read_patterns(struct schema_reader *r, struct filling *f, const json_t *value)
{
	struct schema *s = r->s;
	const char *key;
	json_t *member;
	uint32_t at = (uint32_t)s->n_patterns, n = 0, node, automaton;

	if (!json_is_object(value))
		return schema_fail(r, "an object was expected");
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		void *all = s->pattern;
		if (!child(r, member, &node) || !schema_expression(r, key, strlen(key), true, &automaton))
			return false;
		if (!effort_array(&all, &s->pattern_room, s->n_patterns + 1, sizeof *s->pattern))
			return schema_no_memory(r);
		s->pattern = all;
		s->pattern[s->n_patterns++] = (struct schema_pattern){ automaton, node };
		n++;
	}
	node_of(r, f)->patterns = (struct part){ at, n };
	return true;
}

#define CHILD(name, field) \
	static bool name(struct schema_reader *r, struct filling *f, const json_t *value) \
	{ \
		uint32_t node; \
		if (!child(r, value, &node)) \
			return false; \
		node_of(r, f)->field = node; \
		return true; \
	}
CHILD(read_other, other)
CHILD(read_names, names)
CHILD(read_contains, contains)
CHILD(read_not, not_this)
CHILD(read_if, condition)
CHILD(read_then, then_this)
CHILD(read_else, else_this)

static bool nodes_of(struct schema_reader *r, const json_t *value, struct part *kept)
{
	struct numbers_list all = { 0 };
	bool ok = json_is_array(value) || schema_fail(r, "an array of schemas was expected");
	uint32_t node;

	for (size_t i = 0; ok && i < json_array_size(value); i++)
		ok = child(r, json_array_get(value, i), &node) && schema_push(r, &all, node);
	ok = ok && schema_keep(r, &all, kept);
	free(all.p);
	return ok;
}

static bool read_any_of(struct schema_reader *r, struct filling *f, const json_t *value)
{
	struct part kept;

	if (!nodes_of(r, value, &kept))
		return false;
	node_of(r, f)->any_of = kept;
	return true;
}

static bool read_one_of(struct schema_reader *r, struct filling *f, const json_t *value)
{
	struct part kept;

	if (!nodes_of(r, value, &kept))
		return false;
	node_of(r, f)->one_of = kept;
	return true;
}

static bool read_all_of(struct schema_reader *r, struct filling *f, const json_t *value)
{
	uint32_t node;

	if (!json_is_array(value))
		return schema_fail(r, "an array of schemas was expected");
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!child(r, json_array_get(value, i), &node) || !schema_push(r, &f->all_of, node))
			return false;
	return true;
}

static bool read_first_items(struct schema_reader *r, struct filling *f, const json_t *value)
{
	struct part kept;

	if (!nodes_of(r, value, &kept))
		return false;
	node_of(r, f)->first_items = kept;
	return true;
}

/* An array of schemas was, up to draft 2019-09, what prefixItems is now, and additionalItems what items is. */
static bool read_items(struct schema_reader *r, struct filling *f, const json_t *value)
{
	const json_t *other = json_object_get(f->json, "additionalItems");
	uint32_t node;

	if (json_is_array(value)) {
		if (!read_first_items(r, f, value))
			return false;
		value = other;
	}
	if (value && !child(r, value, &node))
		return false;
	if (value)
		node_of(r, f)->items = node;
	return true;
}

static bool read_required(struct schema_reader *r, struct filling *f, const json_t *value)
{
	if (json_is_boolean(value)) /* draft 3: it says so of a member */
		return json_is_false(value) || schema_fail(r, "true, which is of draft 3");
	if (!json_is_array(value))
		return schema_fail(r, "an array of names was expected");
	for (size_t i = 0; i < json_array_size(value); i++) {
		const json_t *name = json_array_get(value, i);
		if (!json_is_string(name))
			return schema_fail(r, "an array of names was expected");
		if (!schema_push(r, &f->names, schema_name(r, json_string_value(name), json_string_length(name))))
			return false;
	}
	return true;
}

static bool add_dependency(struct schema_reader *r, struct schema_dependency d)
{
	struct schema *s = r->s;
	void *all = s->dependency;

	if (d.name == SCHEMA_NONE)
		return false;
	if (!effort_array(&all, &s->dependency_room, s->n_dependencies + 1, sizeof *s->dependency))
		return schema_no_memory(r);
	s->dependency = all;
	s->dependency[s->n_dependencies++] = d;
	return true;
}

/* dependentRequired, dependentSchemas, and dependencies, which was both. */
static bool read_dependent(struct schema_reader *r, struct filling *f, const json_t *value)
{
	const char *key;
	json_t *member;
	uint32_t node, needs;

	if (!json_is_object(value))
		return schema_fail(r, "an object was expected");
	struct part *kept = &node_of(r, f)->dependent;
	if (kept->n && kept->at + kept->n != r->s->n_dependencies)
		return schema_fail(r, "dependencies by several keywords");
	if (!kept->n)
		kept->at = (uint32_t)r->s->n_dependencies;
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		uint32_t name = schema_name(r, key, strlen(key));
		size_t n = json_is_array(member) ? json_array_size(member) : 1;
		for (size_t i = 0; i < n; i++) {
			const json_t *one = json_is_array(member) ? json_array_get(member, i) : member;
			needs = node = SCHEMA_NONE;
			if (json_is_string(one))
				needs = schema_name(r, json_string_value(one), json_string_length(one));
			else if (!child(r, one, &node))
				return false;
			if (!add_dependency(r, (struct schema_dependency){ name, needs, node }))
				return false;
			node_of(r, f)->dependent.n++;
		}
	}
	return true;
}

static bool read_reference(struct schema_reader *r, struct filling *f, const json_t *value)
{
	const json_t *to;
	uint32_t node;

	if (!json_is_string(value))
		return schema_fail(r, "a URI was expected");
	return schema_resolve(r, f->location, json_string_value(value), &to) && child(r, to, &node) &&
	       schema_push(r, &f->all_of, node);
}

/* Where the document has the anchor once, it is what a $ref leads to; else it depends on the way to here. */
static bool read_dynamic(struct schema_reader *r, struct filling *f, const json_t *value)
{
	size_t anchors = 0;
	const char *ref = json_string_value(value), *hash = ref ? strchr(ref, '#') : NULL;

	for (size_t i = 0; i < r->n_locations && hash; i++) {
		const char *name = json_string_value(json_object_get(r->location[i].json, "$dynamicAnchor"));
		anchors += name && strcmp(name, hash + 1) == 0 && r->location[i].document == f->location->document;
	}
	if (anchors > 1)
		return schema_fail(r, "a reference that depends on the way to it, which is not supported");
	return read_reference(r, f, value);
}

static bool read_unique(struct schema_reader *r, struct filling *f, const json_t *value)
{
	if (!json_is_boolean(value))
		return schema_fail(r, "true or false was expected");
	node_of(r, f)->unique = json_is_true(value);
	return true;
}

/* They see what other keywords have seen, in schemas applied to the same value, too. */
static bool is_alone(const struct filling *f)
{
	static const char *const others[] = { "allOf",        "anyOf",        "oneOf",
		                              "not",          "if",           "$ref",
		                              "$dynamicRef",  "contains",     "dependentSchemas",
		                              "dependencies", "$recursiveRef" };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (json_object_get(f->json, others[i]))
			return false;
	return true;
}

static bool read_unevaluated(struct schema_reader *r, struct filling *f, const json_t *value, bool members)
{
	uint32_t node;

	if (json_is_true(value))
		return true;
	if (!is_alone(f))
		return schema_fail(r, "beside other applied schemas it is not supported");
	if (json_object_get(f->json, members ? "additionalProperties" : "items"))
		return true;
	if (!child(r, value, &node))
		return false;
	*(members ? &node_of(r, f)->other : &node_of(r, f)->items) = node;
	return true;
}

static bool read_unevaluated_members(struct schema_reader *r, struct filling *f, const json_t *value)
{
	return read_unevaluated(r, f, value, true);
}

static bool read_unevaluated_items(struct schema_reader *r, struct filling *f, const json_t *value)
{
	return read_unevaluated(r, f, value, false);
}

static bool refuse(struct schema_reader *r, struct filling *f, const json_t *value)
{
	(void)f;
	(void)value;
	return schema_fail(r, "this keyword is not supported");
}

static const struct schema_keyword keywords[] = {
	{ "properties", read_properties },
	{ "patternProperties", read_patterns },
	{ "additionalProperties", read_other },
	{ "propertyNames", read_names },
	{ "minProperties", read_min_members },
	{ "maxProperties", read_max_members },
	{ "required", read_required },
	{ "dependentRequired", read_dependent },
	{ "dependentSchemas", read_dependent },
	{ "dependencies", read_dependent },
	{ "prefixItems", read_first_items },
	{ "items", read_items },
	{ "contains", read_contains },
	{ "minContains", read_min_contains },
	{ "maxContains", read_max_contains },
	{ "minItems", read_min_items },
	{ "maxItems", read_max_items },
	{ "uniqueItems", read_unique },
	{ "allOf", read_all_of },
	{ "anyOf", read_any_of },
	{ "oneOf", read_one_of },
	{ "not", read_not },
	{ "if", read_if },
	{ "then", read_then },
	{ "else", read_else },
	{ "$ref", read_reference },
	{ "$dynamicRef", read_dynamic },
	{ "$recursiveRef", refuse },
	{ "unevaluatedProperties", read_unevaluated_members },
	{ "unevaluatedItems", read_unevaluated_items },
	{ "extends", refuse },
	{ "disallow", refuse },
	{ NULL, NULL },
};

static bool is_reference_alone(const struct schema_reader *r, const struct filling *f)
{
	return r->document[f->location->document].old && json_object_get(f->json, "$ref");
}

static bool read_keywords(struct schema_reader *r, struct filling *f, const struct schema_keyword *k)
{
	const bool reference_alone = is_reference_alone(r, f);

	for (; k->name; k++) {
		const json_t *value = json_object_get(f->json, k->name);
		r->key = k->name;
		if (!value || (reference_alone && strcmp(k->name, "$ref") != 0))
			continue;
		if (!k->read(r, f, value))
			return r->err->code != ERROR_NONE ? false : schema_no_memory(r);
	}
	r->key = NULL;
	return true;
}

/* ---- items that must differ, and too few values for them */

enum { MANY = 1 << 20 };

static unsigned values_of_type(const json_t *type)
{
	const char *name = json_string_value(type);
	const json_t *one;
	unsigned sum = 0;
	size_t i;

	json_array_foreach(type, i, one) sum += sum < MANY ? values_of_type(one) : 0;
	if (json_is_array(type))
		return sum;
	return !name ? MANY : strcmp(name, "boolean") == 0 ? 2 : strcmp(name, "null") == 0 ? 1 : MANY;
}

static unsigned whole_numbers(const json_t *schema)
{
	const json_t *min = json_object_get(schema, "minimum"), *max = json_object_get(schema, "maximum");
	const char *type = json_string_value(json_object_get(schema, "type"));

	if (!type || strcmp(type, "integer") != 0 || !json_is_integer(min) || !json_is_integer(max))
		return MANY;
	const double n = (double)json_integer_value(max) - (double)json_integer_value(min) + 1;
	return n < 0 ? 0 : n < MANY ? (unsigned)n : MANY;
}

/* Values that are right by a schema: so many at most. */
static unsigned max_values(const json_t *schema)
{
	const json_t *all = json_object_get(schema, "enum"), *type = json_object_get(schema, "type");
	unsigned n = json_is_false(schema) ? 0 : MANY, some = 0;

	if (json_object_get(schema, "$ref")) /* which may be all that counts */
		return MANY;
	if (json_object_get(schema, "const"))
		n = 1;
	for (size_t i = 0; i < json_array_size(all); i++) {
		size_t k = 0;
		if (!effort_take(1 + i / 2))
			return MANY;
		while (k < i && !json_equal(json_array_get(all, i), json_array_get(all, k)))
			k++;
		some += k == i;
	}
	n = all && some < n ? some : n;
	some = type ? values_of_type(type) : MANY;
	n = some < n ? some : n;
	some = whole_numbers(schema);
	return some < n ? some : n;
}

/* No array is right: one that is long enough has an item twice. */
static bool cannot_all_differ(const struct schema_node *n, const json_t *schema)
{
	return n->unique && !json_object_get(schema, "prefixItems") &&
	       json_is_object(json_object_get(schema, "items")) &&
	       max_values(json_object_get(schema, "items")) < n->length_of_array.min;
}

static bool applied_first(const json_t *schema)
{
	static const char *const applied[] = { "allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "if" };
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)schema, key, value)
	{
		for (size_t i = 0; i < sizeof applied / sizeof *applied; i++)
			if (strcmp(key, applied[i]) == 0)
				return true;
		if (strcmp(key, "properties") == 0)
			return false;
	}
	return false;
}

static bool fill(struct schema_reader *r, struct filling *f)
{
	if (!read_keywords(r, f, schema_scalars) || !read_keywords(r, f, keywords))
		return false;
	struct schema_node *n = node_of(r, f);
	n->applied_first = applied_first(f->json);
	n->names_members =
		!is_reference_alone(r, f) && json_is_object(json_object_get(f->json, "properties")) &&
		!json_object_get(f->json, "additionalProperties") && !json_object_get(f->json, "unevaluatedProperties");
	if (cannot_all_differ(n, f->json))
		n->kinds &= (uint8_t)~JSON_IS_ARRAY;
	return schema_keep(r, &f->texts, &n->texts) && schema_keep(r, &f->all_of, &n->all_of) &&
	       schema_keep(r, &f->names, &n->required);
}

bool schema_fill(struct schema_reader *r, const struct schema_location *p)
{
	struct filling f = { .node = p->node, .json = p->json, .location = p };
	bool ok = fill(r, &f);

	free(f.texts.p);
	free(f.all_of.p);
	free(f.names.p);
	return ok;
}
