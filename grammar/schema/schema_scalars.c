/* grammar/schema/schema_scalars.c - keywords about numbers, strings, and values as a whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "grammar/machine/effort.h"
#include "grammar/machine/machine.h"
#include "grammar/regex/regex.h"
#include "grammar/schema/schema_parts.h"

static struct schema_node *node_of(const struct schema_reader *r, const struct filling *f)
{
	return &r->s->node[f->node];
}

static bool read_type(struct schema_reader *r, struct filling *f, const json_t *value)
{
	static const struct {
		const char *name;
		uint8_t kinds;
	} types[] = { { "null", JSON_IS_NULL },     { "boolean", JSON_IS_TRUE | JSON_IS_FALSE },
		      { "number", JSON_IS_NUMBER }, { "integer", JSON_IS_NUMBER },
		      { "string", JSON_IS_STRING }, { "array", JSON_IS_ARRAY },
		      { "object", JSON_IS_OBJECT }, { "any", JSON_IS_ANY /* draft 3 */ } };
	size_t n = json_is_array(value) ? json_array_size(value) : 1;
	uint8_t kinds = 0;
	bool whole = false, number = false;

	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_is_array(value) ? json_array_get(value, i) : value);
		size_t k = 0;
		while (k < sizeof types / sizeof *types && (!name || strcmp(name, types[k].name) != 0))
			k++;
		if (k == sizeof types / sizeof *types)
			return schema_fail(r, "a type that is not one of JSON's");
		kinds |= types[k].kinds;
		whole |= strcmp(name, "integer") == 0;
		number |= strcmp(name, "number") == 0;
	}
	node_of(r, f)->kinds &= kinds;
	node_of(r, f)->whole |= whole && !number;
	return true;
}

static bool read_values(struct schema_reader *r, struct filling *f, const json_t *const *value, size_t n)
{
	uint32_t one;

	return schema_values(r, value, n, &one) && schema_push(r, &f->all_of, one);
}

static bool read_enum(struct schema_reader *r, struct filling *f, const json_t *value)
{
	size_t n = json_array_size(value);
	const json_t **all = effort_malloc((n + 1) * sizeof *all);

	if (!all)
		return schema_no_memory(r);
	for (size_t i = 0; i < n; i++)
		all[i] = json_array_get(value, i);
	bool ok = json_is_array(value) ? read_values(r, f, all, n) : schema_fail(r, "an array was expected");
	free(all);
	return ok;
}

static bool read_const(struct schema_reader *r, struct filling *f, const json_t *value)
{
	return read_values(r, f, &value, 1);
}

bool schema_count(struct schema_reader *r, const json_t *value, uint32_t *count)
{
	const char *digits = json_digits(value); /* more than any count has */
	double v = digits ? strtod(digits, NULL) : json_number_value(value);

	if (!(digits || json_is_number(value)) || v < 0 || v != floor(v))
		return schema_fail(r, "a count was expected: 0 or more, without a fraction");
	*count = v < COUNT_ANY ? (uint32_t)v : COUNT_ANY;
	return true;
}

#define COUNT(name, field) \
	static bool name(struct schema_reader *r, struct filling *f, const json_t *value) \
	{ \
		return schema_count(r, value, &node_of(r, f)->field); \
	}
COUNT(read_min_length, length.min)
COUNT(read_max_length, length.max)

static bool read_number(struct schema_reader *r, const json_t *value, uint32_t *decimal)
{
	*decimal = schema_decimal(r, value);
	return *decimal != SCHEMA_NONE;
}

static bool read_minimum(struct schema_reader *r, struct filling *f, const json_t *value)
{
	uint32_t d;
	struct schema_node *n = node_of(r, f);

	if (!read_number(r, value, &d))
		return false;
	if (n->minimum == SCHEMA_NONE || decimal_compare(&r->s->decimal[d], &r->s->decimal[n->minimum]) > 0) {
		n->minimum = d;
		n->more_than_minimum = json_is_true(json_object_get(f->json, "exclusiveMinimum"));
	}
	return true;
}

static bool read_maximum(struct schema_reader *r, struct filling *f, const json_t *value)
{
	uint32_t d;
	struct schema_node *n = node_of(r, f);

	if (!read_number(r, value, &d))
		return false;
	if (n->maximum == SCHEMA_NONE || decimal_compare(&r->s->decimal[d], &r->s->decimal[n->maximum]) < 0) {
		n->maximum = d;
		n->less_than_maximum = json_is_true(json_object_get(f->json, "exclusiveMaximum"));
	}
	return true;
}

/* In draft 4 these are true or false, and say how minimum and maximum are meant. */
static bool read_above(struct schema_reader *r, struct filling *f, const json_t *value)
{
	uint32_t d;
	struct schema_node *n = node_of(r, f);

	if (json_is_boolean(value))
		return true;
	if (!read_number(r, value, &d))
		return false;
	if (n->minimum == SCHEMA_NONE || decimal_compare(&r->s->decimal[d], &r->s->decimal[n->minimum]) >= 0) {
		n->minimum = d;
		n->more_than_minimum = true;
	}
	return true;
}

static bool read_below(struct schema_reader *r, struct filling *f, const json_t *value)
{
	uint32_t d;
	struct schema_node *n = node_of(r, f);

	if (json_is_boolean(value))
		return true;
	if (!read_number(r, value, &d))
		return false;
	if (n->maximum == SCHEMA_NONE || decimal_compare(&r->s->decimal[d], &r->s->decimal[n->maximum]) <= 0) {
		n->maximum = d;
		n->less_than_maximum = true;
	}
	return true;
}

static bool read_multiple(struct schema_reader *r, struct filling *f, const json_t *value)
{
	uint32_t d;

	if (!read_number(r, value, &d))
		return false;
	if (!r->s->decimal[d].n || r->s->decimal[d].negative || r->s->decimal[d].n > 18)
		return schema_fail(r, "expected a number above 0, of 18 digits at most");
	node_of(r, f)->multiple_of = d;
	return true;
}

bool schema_expression(struct schema_reader *r, const char *text, size_t n, bool anywhere, uint32_t *automaton)
{
	struct error e = { 0 };
	char why[sizeof e.text];

	*automaton = schema_add_automaton(r, regex_automaton(text, n, anywhere, &e));
	if (*automaton != SCHEMA_NONE)
		return true;
	memcpy(why, e.text, sizeof why);
	return e.code == ERROR_NONE || e.code == ERROR_MEMORY
	               ? schema_fail(r, why[0] ? why : "no memory")
	               : schema_fail(r, why);
}

static bool read_pattern(struct schema_reader *r, struct filling *f, const json_t *value)
{
	uint32_t a;

	if (!json_is_string(value))
		return schema_fail(r, "an expression was expected");
	return schema_expression(r, json_string_value(value), json_string_length(value), true, &a) &&
	       schema_push(r, &f->texts, a);
}

/* Its text is a context-free one, which is read where it stands. */
static bool read_lark(struct schema_reader *r, struct filling *f, const json_t *value)
{
	struct error e = { 0 };
	uint32_t a;

	if (!json_is_string(value))
		return schema_fail(r, "a grammar was expected");
	struct machine *m = machine_of_lark(json_string_value(value), json_string_length(value), &e);
	a = m ? schema_add_automaton(r, automaton_of_machine(m, &e)) : SCHEMA_NONE;
	if (a == SCHEMA_NONE)
		return e.code == ERROR_MEMORY ? schema_no_memory(r) : schema_fail(r, e.code ? e.text : "no memory");
	return schema_push(r, &f->texts, a);
}

static bool read_format(struct schema_reader *r, struct filling *f, const json_t *value)
{
	const char *name = json_string_value(value), *text = r->formats && name ? schema_format(name) : NULL;
	uint32_t a;

	if (r->formats && name && !text && schema_format_known(name))
		return schema_fail(r, "this format is not supported");
	return !text || (schema_expression(r, text, strlen(text), false, &a) && schema_push(r, &f->texts, a));
}

const struct schema_keyword schema_scalars[] = {
	{ "type", read_type },
	{ "enum", read_enum },
	{ "const", read_const },
	{ "minLength", read_min_length },
	{ "maxLength", read_max_length },
	{ "pattern", read_pattern },
	{ "format", read_format },
	{ SCHEMA_LARK, read_lark },
	{ "minimum", read_minimum },
	{ "maximum", read_maximum },
	{ "exclusiveMinimum", read_above },
	{ "exclusiveMaximum", read_below },
	{ "multipleOf", read_multiple },
	{ "divisibleBy", read_multiple },
	{ NULL, NULL },
};
