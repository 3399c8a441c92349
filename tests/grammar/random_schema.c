#include "tests/grammar/random_schema.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed;
static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 11) % below);
}
static bool chance(uint32_t percent) { return draw(100) < percent; }

static json_t *schema(unsigned depth);

static void set(json_t *o, const char *key, json_t *value) { json_object_set_new(o, key, value); }
static void set_number(json_t *o, const char *key, json_int_t value) { set(o, key, json_integer(value)); }

static json_t *one_of_texts(const char *const *texts, size_t n) { return json_string(texts[draw((uint32_t)n)]); }
#define SOME(texts) one_of_texts(texts, sizeof(texts) / sizeof *(texts))

static json_t *read(const char *text) { return json_loads(text, JSON_DECODE_ANY, NULL); }

static json_t *value(void)
{
	static const char *const values[] = { "1",    "0",   "\"a\"", "\"b\"",     "null",   "true", "false",
		                              "2.5",  "[1]", "-3",    "{\"a\":1}", "\"xy\"", "100",  "[\"a\",2]",
		                              "-0.5", "[]",  "{}",    "[[1]]",     "1e21" };

	return read(values[draw(sizeof values / sizeof *values)]);
}

static json_t *number(void)
{
	static const char *const
		min[] = { "-5", "0", "1", "3.5", "1000", "1e308", "-1e308", "0.1", "100000000000000000" },
		*const above[] = { "0", "1", "2", "100", "100000" }, *const multiples[] = { "1",    "2", "0.5",
		                                                                            "0.01", "7", "3" };
	json_t *o = json_object(), *from = NULL;

	set(o, "type", json_string(draw(2) ? "integer" : "number"));
	if (chance(60))
		set(o, "minimum", from = read(min[draw(9)]));
	if (chance(50)) {
		json_t *more = read(above[draw(5)]);
		set(o, chance(80) ? "maximum" : "exclusiveMaximum",
		    json_is_real(from) ? json_real(json_real_value(from) + json_number_value(more))
		                       : json_integer(json_integer_value(from) + json_integer_value(more)));
		json_decref(more);
	}
	if (chance(30))
		set(o, "multipleOf", read(multiples[draw(6)]));
	return o;
}

static json_t *text(void)
{
	static const char *const patterns[] = { "^a", "b$", "^[a-z]+$", "[0-9]{2}", "^(x|y){1,3}$", "^.{2}$" };
	json_t *o = json_object();
	json_int_t min = 0;

	set(o, "type", json_string("string"));
	if (chance(40))
		set_number(o, "minLength", min = draw(6));
	if (chance(40))
		set_number(o, "maxLength", min + draw(7));
	if (chance(30))
		set(o, "pattern", SOME(patterns));
	return o;
}

static json_t *several(unsigned depth, unsigned n)
{
	json_t *all = json_array();

	while (n--)
		json_array_append_new(all, schema(depth));
	return all;
}

static json_t *array(unsigned depth)
{
	json_t *o = json_object();
	json_int_t min = 0;

	set(o, "type", json_string("array"));
	if (chance(80))
		set(o, "items", schema(depth));
	if (chance(50))
		set_number(o, "minItems", min = draw(4));
	if (chance(50))
		set_number(o, "maxItems", min + draw(4));
	min = 1;
	if (chance(40)) {
		set(o, "contains", schema(depth));
		if (chance(50))
			set_number(o, "minContains", min = draw(4));
		if (chance(40))
			set_number(o, "maxContains", (min ? min : 1) + draw(2));
	}
	if (chance(20))
		set(o, "uniqueItems", json_true());
	if (chance(20))
		set(o, "prefixItems", several(depth, 1 + draw(2)));
	return o;
}

static const char *const names[] = { "a", "b", "ab", "ba", "c", "aab", "z" };
enum { N_NAMES = sizeof names / sizeof *names };

static json_t *some_names(unsigned n)
{
	json_t *all = json_array();

	while (n--)
		json_array_append_new(all, json_string(names[draw(N_NAMES)]));
	return all;
}

static void add_members(json_t *o, unsigned depth)
{
	static const char *const patterns[] = { "^a", "b$", "^[a-c]", ".", "^x", "^[xy]$", "^[0-9]{1,2}$" },
				 *const of_names[] = { "^a", "^[a-z]{1,2}$" };
	json_t *members = json_object();

	if (chance(80)) {
		for (uint32_t i = draw(5); i; i--)
			set(members, names[draw(N_NAMES)], schema(depth));
		set(o, "properties", json_incref(members));
	}
	json_decref(members);
	if (chance(35)) {
		members = json_object();
		for (uint32_t i = 1 + draw(2); i; i--)
			set(members, patterns[draw(7)], schema(depth));
		set(o, "patternProperties", members);
	}
	if (chance(20))
		set(o, "propertyNames", json_pack("{s:s}", "pattern", of_names[draw(2)]));
}

static json_t *object(unsigned depth)
{
	json_t *o = json_object();
	json_int_t min = 0;

	set(o, "type", json_string("object"));
	add_members(o, depth);
	if (chance(50))
		set(o, "required", some_names(draw(3)));
	if (chance(50))
		set(o, "additionalProperties",
		    chance(50)   ? json_false()
		    : chance(50) ? json_true()
		                 : json_pack("{s:s}", "type", "integer"));
	if (chance(30))
		set_number(o, "minProperties", min = draw(5));
	if (chance(30))
		set_number(o, "maxProperties", min + draw(3));
	else if (chance(20))
		set(o, "dependentRequired", json_pack("{s:o}", names[draw(N_NAMES)], some_names(1)));
	return o;
}

static json_t *applied(unsigned depth)
{
	static const char *const three[] = { "anyOf", "oneOf", "allOf" }, *const types[] = {
		"integer", "string", "object"
	};
	json_t *o = json_object();

	switch (draw(5)) {
	case 0:
		set(o, "not", schema(depth));
		set(o, "type", SOME(types));
		return o;
	case 1:
		set(o, "if", schema(depth));
		set(o, "then", schema(depth));
		set(o, "else", schema(depth));
		return o;
	default: set(o, three[draw(3)], several(depth, 2)); return o;
	}
}

static json_t *schema(unsigned depth)
{
	static const char *const types[] = { "[\"string\",\"null\"]", "[\"integer\",\"boolean\"]", "\"boolean\"",
		                             "\"null\"" };
	const uint32_t x = draw(100);
	json_t *all;

	if (depth == 0 || x < 26)
		return draw(2) ? number() : text();
	if (x < 36) {
		all = json_array();
		for (uint32_t i = 1 + draw(4); i; i--)
			json_array_append_new(all, value());
		return json_pack("{s:o}", "enum", all);
	}
	if (x < 40)
		return json_pack("{s:o}", "const", value());
	if (x < 45)
		return json_pack("{s:o}", "type", read(types[draw(4)]));
	return x < 61 ? applied(depth - 1) : x < 79 ? array(depth - 1) : object(depth - 1);
}

json_t *random_schema(uint64_t of, unsigned depth)
{
	seed = of * 0x9e3779b97f4a7c15u + 88172645463325252u;
	draw(2);
	return schema(depth);
}
