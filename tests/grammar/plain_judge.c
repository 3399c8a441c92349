#define PCRE2_CODE_UNIT_WIDTH 8
#include "tests/grammar/plain_judge.h"

#include <math.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_whole(const json_t *v)
{
	return json_is_integer(v) || (json_is_real(v) && floor(json_real_value(v)) == json_real_value(v));
}

static bool is_type(const char *type, const json_t *v)
{
	return (strcmp(type, "null") == 0 && json_is_null(v)) || (strcmp(type, "boolean") == 0 && json_is_boolean(v)) ||
	       (strcmp(type, "string") == 0 && json_is_string(v)) || (strcmp(type, "array") == 0 && json_is_array(v)) ||
	       (strcmp(type, "object") == 0 && json_is_object(v)) ||
	       (strcmp(type, "number") == 0 && json_is_number(v)) || (strcmp(type, "integer") == 0 && is_whole(v));
}

static bool equal(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && json_is_number(b))
		return json_number_value(a) == json_number_value(b);
	if (json_is_array(a) && json_is_array(b)) {
		bool same = json_array_size(a) == json_array_size(b);
		for (size_t i = 0; same && i < json_array_size(a); i++)
			same = equal(json_array_get(a, i), json_array_get(b, i));
		return same;
	}
	if (json_is_object(a) && json_is_object(b)) {
		bool same = json_object_size(a) == json_object_size(b);
		const char *name;
		json_t *one;
		json_object_foreach((json_t *)(uintptr_t)a, name, one) same =
			same && json_object_get(b, name) && equal(one, json_object_get(b, name));
		return same;
	}
	return json_equal(a, b);
}

static bool matches(const char *pattern, const char *text, size_t n)
{
	int code;
	PCRE2_SIZE at;
	pcre2_code *re =
		pcre2_compile((PCRE2_SPTR)pattern, strlen(pattern), PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
	pcre2_match_data *md = re ? pcre2_match_data_create_from_pattern(re, NULL) : NULL;

	if (!md) {
		fprintf(stderr, "the pattern %s cannot be read\n", pattern);
		abort();
	}
	const bool match = pcre2_match(re, (PCRE2_SPTR)text, n, 0, 0, md, NULL) >= 0;
	pcre2_match_data_free(md);
	pcre2_code_free(re);
	return match;
}

static size_t characters(const json_t *text)
{
	size_t n = 0;

	for (size_t i = 0; i < json_string_length(text); i++)
		n += (json_string_value(text)[i] & 0xc0) != 0x80;
	return n;
}

static size_t passing(const json_t *root, const json_t *schemas, const json_t *v)
{
	size_t n = 0, i;
	json_t *one;

	json_array_foreach(schemas, i, one) n += judge_value(root, one, v);
	return n;
}

static bool judge_array(const json_t *root, const json_t *schema, const char *key, const json_t *k, const json_t *v)
{
	const json_t *prefix = json_object_get(schema, "prefixItems"), *min = json_object_get(schema, "minContains"),
		     *max = json_object_get(schema, "maxContains");
	const size_t size = json_array_size(v), n_prefix = json_array_size(prefix);
	bool ok = true;

	if (strcmp(key, "minItems") == 0)
		return (json_int_t)size >= json_integer_value(k);
	if (strcmp(key, "maxItems") == 0)
		return (json_int_t)size <= json_integer_value(k);
	if (strcmp(key, "contains") == 0) {
		json_int_t n = 0;
		for (size_t i = 0; i < size; i++)
			n += judge_value(root, k, json_array_get(v, i));
		return n >= (min ? json_integer_value(min) : 1) && (!max || n <= json_integer_value(max));
	}
	for (size_t i = 0; i < size && ok; i++) {
		if (strcmp(key, "prefixItems") == 0)
			ok = i >= n_prefix || judge_value(root, json_array_get(k, i), json_array_get(v, i));
		else if (strcmp(key, "items") == 0)
			ok = i < n_prefix || judge_value(root, k, json_array_get(v, i));
		for (size_t j = 0; j < i && strcmp(key, "uniqueItems") == 0 && json_is_true(k); j++)
			ok = ok && !equal(json_array_get(v, i), json_array_get(v, j));
	}
	return ok;
}

static bool is_named(const json_t *schema, const char *name)
{
	const char *pattern;
	json_t *one;

	if (json_object_get(json_object_get(schema, "properties"), name))
		return true;
	json_object_foreach(json_object_get(schema, "patternProperties"), pattern,
	                    one) if (matches(pattern, name, strlen(name))) return true;
	return false;
}

static bool judge_object(const json_t *root, const json_t *schema, const char *key, const json_t *k, const json_t *v)
{
	const char *name, *pattern;
	json_t *one, *of;
	size_t i;
	bool ok = true;

	if (strcmp(key, "minProperties") == 0)
		return (json_int_t)json_object_size(v) >= json_integer_value(k);
	if (strcmp(key, "maxProperties") == 0)
		return (json_int_t)json_object_size(v) <= json_integer_value(k);
	if (strcmp(key, "required") == 0)
		json_array_foreach(k, i, one) ok = ok && json_object_get(v, json_string_value(one));
	if (strcmp(key, "dependentRequired") == 0)
		json_object_foreach((json_t *)(uintptr_t)k, name, of) if (json_object_get(v, name))
			json_array_foreach(of, i, one) ok = ok && json_object_get(v, json_string_value(one));
	json_object_foreach((json_t *)(uintptr_t)v, name, one)
	{
		if (strcmp(key, "properties") == 0 && (of = json_object_get(k, name)))
			ok = ok && judge_value(root, of, one);
		if (strcmp(key, "patternProperties") == 0)
			json_object_foreach((json_t *)(uintptr_t)k, pattern, of) ok =
				ok && (!matches(pattern, name, strlen(name)) || judge_value(root, of, one));
		if (strcmp(key, "additionalProperties") == 0 && !is_named(schema, name))
			ok = ok && judge_value(root, k, one);
		if (strcmp(key, "propertyNames") == 0) {
			json_t *text = json_string(name);
			ok = ok && judge_value(root, k, text);
			json_decref(text);
		}
	}
	return ok;
}

/* The shortest decimal that reads as x: digits times a power of ten. */
static void as_decimal(double x, uint64_t *digits, int *power)
{
	char text[40];
	int n = 1;

	do
		snprintf(text, sizeof text, "%.*e", n - 1, fabs(x));
	while (strtod(text, NULL) != fabs(x) && n++ < 17);
	*digits = 0;
	for (const char *p = text; *p != 'e'; p++)
		if (*p != '.')
			*digits = *digits * 10 + (uint64_t)(*p - '0');
	*power = atoi(strchr(text, 'e') + 1) - (n - 1);
}

/* Exactly, as those decimals. */
static bool is_multiple(double x, double of)
{
	uint64_t a, b;
	int a_power, b_power;

	as_decimal(x, &a, &a_power);
	as_decimal(of, &b, &b_power);
	for (; a && a_power < b_power && a % 10 == 0; a_power++)
		a /= 10;
	for (; b_power > a_power && b < UINT64_MAX / 10; b_power--)
		b *= 10;
	if (a == 0 || b_power > a_power)
		return a == 0;
	unsigned __int128 rest = a % b;
	for (; a_power > b_power; a_power--)
		rest = rest * 10 % b;
	return rest == 0;
}

static bool judge_number(const char *key, const json_t *k, const json_t *v)
{
	const double x = json_number_value(v), b = json_number_value(k);

	if (strcmp(key, "minimum") == 0)
		return x >= b;
	if (strcmp(key, "maximum") == 0)
		return x <= b;
	if (strcmp(key, "exclusiveMinimum") == 0)
		return x > b;
	if (strcmp(key, "exclusiveMaximum") == 0)
		return x < b;
	if (json_is_integer(v) && json_is_integer(k))
		return json_integer_value(v) % json_integer_value(k) == 0;
	return is_multiple(x, b);
}

static bool judge_text(const char *key, const json_t *k, const json_t *v)
{
	if (strcmp(key, "pattern") == 0)
		return matches(json_string_value(k), json_string_value(v), json_string_length(v));
	return strcmp(key, "minLength") == 0 ? (json_int_t)characters(v) >= json_integer_value(k)
	                                     : (json_int_t)characters(v) <= json_integer_value(k);
}

static bool judge_any(const json_t *root, const json_t *schema, const char *key, const json_t *k, const json_t *v)
{
	size_t i;
	json_t *one;
	bool ok = false;

	if (strcmp(key, "type") == 0 && json_is_string(k))
		return is_type(json_string_value(k), v);
	if (strcmp(key, "type") == 0 || strcmp(key, "enum") == 0) {
		json_array_foreach(k, i, one) ok |= *key == 't' ? is_type(json_string_value(one), v) : equal(one, v);
		return ok;
	}
	if (strcmp(key, "const") == 0)
		return equal(k, v);
	if (strcmp(key, "allOf") == 0)
		return passing(root, k, v) == json_array_size(k);
	if (strcmp(key, "anyOf") == 0)
		return passing(root, k, v) > 0;
	if (strcmp(key, "oneOf") == 0)
		return passing(root, k, v) == 1;
	if (strcmp(key, "not") == 0)
		return !judge_value(root, k, v);
	if (strcmp(key, "if") == 0) {
		const json_t *then = json_object_get(schema, judge_value(root, k, v) ? "then" : "else");
		return !then || judge_value(root, then, v);
	}
	fprintf(stderr, "the keyword %s is not known here\n", key);
	abort();
}

static bool is_among(const char *key, const char *list)
{
	const char *at = strstr(list, key);

	return at && at[-1] == ' ' && at[strlen(key)] == ' ';
}

bool judge_value(const json_t *root, const json_t *schema, const json_t *v)
{
	const char *key;
	json_t *k;
	bool ok = !json_is_false(schema);

	json_object_foreach((json_t *)(uintptr_t)schema, key, k)
	{
		if (!ok || is_among(key, " then else minContains maxContains $schema "))
			continue;
		if (is_among(key, " minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "))
			ok = !json_is_number(v) || judge_number(key, k, v);
		else if (is_among(key, " minLength maxLength pattern "))
			ok = !json_is_string(v) || judge_text(key, k, v);
		else if (is_among(key, " minItems maxItems contains prefixItems items uniqueItems "))
			ok = !json_is_array(v) || judge_array(root, schema, key, k, v);
		else if (is_among(key, " minProperties maxProperties required properties patternProperties "
		                       "additionalProperties propertyNames dependentRequired "))
			ok = !json_is_object(v) || judge_object(root, schema, key, k, v);
		else
			ok = judge_any(root, schema, key, k, v);
	}
	return ok;
}
