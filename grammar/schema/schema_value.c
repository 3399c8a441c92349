/* grammar/schema/schema_value.c - "enum" and "const": values, each as the node that nothing else fits. */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "grammar/machine/effort.h"
#include "grammar/schema/schema_parts.h"

static bool add_text(struct schema_reader *r, struct expression *x, uint32_t *all, const json_t *text)
{
	uint32_t one = expression_text(x, json_string_value(text), json_string_length(text));

	*all = *all == SCHEMA_NONE ? one : expression_either(x, one, *all);
	return !x->failed || schema_fail(r, "too many texts, or too long ones");
}

/* Values without parts, all in one node. */
static bool scalars(struct schema_reader *r, const json_t *const *value, size_t n, uint32_t node)
{
	static const uint8_t kind_of[] = { JSON_IS_OBJECT, JSON_IS_ARRAY, JSON_IS_STRING, JSON_IS_NUMBER,
		                           JSON_IS_NUMBER, JSON_IS_TRUE,  JSON_IS_FALSE,  JSON_IS_NULL };
	struct expression x = { 0 };
	struct numbers_list decimals = { 0 }, automata = { 0 };
	uint32_t texts = SCHEMA_NONE;
	uint8_t kinds = 0;
	bool ok = true;

	for (size_t i = 0; i < n && ok; i++) {
		if (json_is_object(value[i]) || json_is_array(value[i]))
			continue;
		const bool number = json_is_number(value[i]) || json_digits(value[i]);
		kinds |= number ? JSON_IS_NUMBER : kind_of[json_typeof(value[i])];
		if (!number && json_is_string(value[i]))
			ok = add_text(r, &x, &texts, value[i]);
		else if (number)
			ok = schema_push(r, &decimals, schema_decimal(r, value[i]));
	}
	if (ok && texts != SCHEMA_NONE)
		ok = schema_push(r, &automata, schema_add_automaton(r, automaton_open(&x, texts, false, r->err)));
	expression_clear(&x);
	r->s->node[node].kinds = kinds;
	ok = ok && schema_keep(r, &decimals, &r->s->node[node].numbers) &&
	     schema_keep(r, &automata, &r->s->node[node].texts);
	free(decimals.p);
	free(automata.p);
	return ok;
}

static bool array_value(struct schema_reader *r, const json_t *value, uint32_t node)
{
	struct numbers_list items = { 0 };
	bool ok = true;

	for (size_t i = 0; i < json_array_size(value) && ok; i++) {
		const json_t *item = json_array_get(value, i);
		uint32_t one;
		ok = schema_values(r, &item, 1, &one) && schema_push(r, &items, one);
	}
	uint32_t n = (uint32_t)json_array_size(value);
	ok = ok && schema_keep(r, &items, &r->s->node[node].first_items);
	r->s->node[node].kinds = JSON_IS_ARRAY;
	r->s->node[node].items = SCHEMA_FALSE;
	r->s->node[node].length_of_array = (struct bounds){ n, n };
	free(items.p);
	return ok;
}

static bool object_value(struct schema_reader *r, const json_t *value, uint32_t node)
{
	struct schema *s = r->s;
	struct numbers_list names = { 0 }, nodes = { 0 };
	const char *key;
	json_t *member;
	bool ok = true;

	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		const json_t *one = member;
		uint32_t child;
		ok = ok && schema_push(r, &names, schema_name(r, key, strlen(key))) &&
		     schema_values(r, &one, 1, &child) && schema_push(r, &nodes, child);
	}
	void *members = s->member;
	ok = ok && effort_array(&members, &s->member_room, s->n_members + names.n, sizeof *s->member);
	s->member = members;
	if (ok) {
		s->node[node].properties = (struct part){ (uint32_t)s->n_members, (uint32_t)names.n };
		for (size_t i = 0; i < names.n; i++)
			s->member[s->n_members++] = (struct schema_member){ names.p[i], nodes.p[i], (uint32_t)i };
		schema_sort_members(s, s->node[node].properties);
		s->node[node].kinds = JSON_IS_OBJECT;
		s->node[node].other = SCHEMA_FALSE;
		ok = schema_keep(r, &names, &s->node[node].required);
	}
	free(names.p);
	free(nodes.p);
	return ok || schema_no_memory(r);
}

bool schema_values(struct schema_reader *r, const json_t *const *value, size_t n, uint32_t *node)
{
	struct numbers_list any = { 0 };
	bool ok = (*node = schema_add_node(r)) != SCHEMA_NONE && scalars(r, value, n, *node);

	if (ok && n == 1 && json_is_object(value[0]))
		return object_value(r, value[0], *node);
	if (ok && n == 1 && json_is_array(value[0]))
		return array_value(r, value[0], *node);
	for (size_t i = 0; i < n && ok; i++) {
		uint32_t one;
		if (json_is_object(value[i]) || json_is_array(value[i]))
			ok = schema_values(r, &value[i], 1, &one) && schema_push(r, &any, one);
	}
	if (ok && any.n) {
		uint32_t outer = schema_add_node(r);
		ok = outer != SCHEMA_NONE && schema_push(r, &any, *node) &&
		     schema_keep(r, &any, &r->s->node[outer].any_of);
		*node = outer;
	}
	free(any.p);
	return ok;
}
