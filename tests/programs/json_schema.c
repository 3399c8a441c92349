#include "tests/programs/json_schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool refuse(char why[200], const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(char why[200], const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, 200, format, ap);
	va_end(ap);
	return false;
}

static bool has_type(const json_t *v, const char *type)
{
	return strcmp(type, "object") == 0    ? json_is_object(v)
	       : strcmp(type, "array") == 0   ? json_is_array(v)
	       : strcmp(type, "string") == 0  ? json_is_string(v)
	       : strcmp(type, "integer") == 0 ? json_is_integer(v)
	       : strcmp(type, "number") == 0  ? json_is_number(v)
	       : strcmp(type, "null") == 0    ? json_is_null(v)
	                                      : false;
}

static bool check_type(const json_t *want, const json_t *v, char why[200])
{
	const json_t *one;
	size_t i;

	if (json_is_string(want))
		return has_type(v, json_string_value(want)) || refuse(why, "is no %s", json_string_value(want));
	json_array_foreach(want, i, one)
	{
		if (has_type(v, json_string_value(one)))
			return true;
	}
	return refuse(why, "is of none of the types");
}

static bool check_among(const json_t *list, const json_t *v, char why[200])
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (json_equal(one, v))
			return true;
	}
	return refuse(why, "is no value of the enum");
}

static bool check_required(const json_t *names, const json_t *v, char why[200])
{
	const json_t *one;
	size_t i;

	json_array_foreach(names, i, one)
	{
		if (!json_object_get(v, json_string_value(one)))
			return refuse(why, "has no %s", json_string_value(one));
	}
	return true;
}

static bool check_members(const json_t *schema, json_t *v, char why[200])
{
	const json_t *known = json_object_get(schema, "properties"),
		     *more = json_object_get(schema, "additionalProperties");
	const char *name;
	json_t *member;

	json_object_foreach(v, name, member)
	{
		const json_t *its = json_object_get(known, name);
		char inner[200];
		if (!its && json_is_false(more))
			return refuse(why, "has the unknown member %s", name);
		if (its && !json_schema_check(its, member, inner))
			return refuse(why, "%.40s: %.150s", name, inner);
	}
	return true;
}

static bool check_items(const json_t *schema, const json_t *v, char why[200])
{
	json_t *one;
	size_t i;

	json_array_foreach(v, i, one)
	{
		if (!json_schema_check(schema, one, why))
			return false;
	}
	return true;
}

static bool check_one_of(const json_t *list, json_t *v, char why[200])
{
	char inner[200], nearest[200] = "";
	const json_t *one;
	size_t i, n = 0;

	json_array_foreach(list, i, one)
	{
		if (json_schema_check(one, v, inner))
			n++;
		else if (!strstr(inner, "const"))
			memcpy(nearest, inner, sizeof nearest);
	}
	return n == 1 || refuse(why, "matches %zu of the forms: %.150s", n, nearest);
}

/* One keyword. Those that are not known here fail, so that nothing of a schema goes unchecked. */
static bool check_keyword(const json_t *schema, const char *word, const json_t *argument, json_t *v, char why[200])
{
	if (word[0] == '$' || strcmp(word, "title") == 0 || strcmp(word, "additionalProperties") == 0)
		return true;
	if (strcmp(word, "type") == 0)
		return check_type(argument, v, why);
	if (strcmp(word, "const") == 0)
		return json_equal(argument, v) || refuse(why, "is not the const");
	if (strcmp(word, "enum") == 0)
		return check_among(argument, v, why);
	if (strcmp(word, "minimum") == 0)
		return json_number_value(v) >= json_number_value(argument) || refuse(why, "is below the minimum");
	if (strcmp(word, "maximum") == 0)
		return json_number_value(v) <= json_number_value(argument) || refuse(why, "is above the maximum");
	if (strcmp(word, "required") == 0)
		return check_required(argument, v, why);
	if (strcmp(word, "properties") == 0)
		return check_members(schema, v, why);
	if (strcmp(word, "items") == 0)
		return check_items(argument, v, why);
	if (strcmp(word, "oneOf") == 0)
		return check_one_of(argument, v, why);
	return refuse(why, "the schema has the keyword %s, which is not known here", word);
}

bool json_schema_check(const json_t *schema, json_t *v, char why[200])
{
	static const char *const first = "type"; /* the others look at values of that type */
	const json_t *type = json_object_get(schema, first), *argument;
	const char *word;

	if (type && !check_keyword(schema, first, type, v, why))
		return false;
	json_object_foreach((json_t *)(uintptr_t)schema, word, argument)
	{
		if (strcmp(word, first) != 0 && !check_keyword(schema, word, argument, v, why))
			return false;
	}
	return true;
}
