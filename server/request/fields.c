/* server/request/fields.c - the fields of a request's JSON. */
#include "server/request/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"

/* ---- the body */

/* Where something was found that no JSON has: "messages[0].content". */
struct position {
	char text[160];
	size_t n;
	bool name;          /* in a member's name */
	const char *number; /* NaN or its like; NULL: half of a surrogate pair */
};

static void step_into(struct position *p, const char *name, size_t index)
{
	const size_t room = sizeof p->text - p->n;
	const int n = name ? snprintf(p->text + p->n, room, "%s%.60s", p->n ? "." : "", name)
	                   : snprintf(p->text + p->n, room, "[%zu]", index);

	p->n += n > 0 && (size_t)n < room ? (size_t)n : 0;
}

static bool has_half(const json_t *v, struct position *p)
{
	const size_t before = p->n;
	const char *name;
	json_t *one;
	size_t i;

	if (json_not_finite(v))
		return (p->number = json_not_finite(v)) != NULL;
	if (json_is_string(v))
		return !json_is_text(v) && !json_digits(v);
	json_array_foreach(v, i, one)
	{
		step_into(p, NULL, i);
		if (has_half(one, p))
			return true;
		p->text[p->n = before] = 0;
	}
	json_object_foreach((json_t *)(uintptr_t)v, name, one)
	{
		if (!json_name_is_text(name))
			return p->name = true;
		step_into(p, name, 0);
		if (has_half(one, p))
			return true;
		p->text[p->n = before] = 0;
	}
	return false;
}

/* Such a text is no UTF-8, and jansson makes nothing of it: a client that cut a text between the two halves learns so,
 * wherever the text stands. */
bool fields_are_whole(const json_t *o, const char *name, struct refusal *r)
{
	struct position p = { .number = NULL };
	char field[80];

	if (name)
		step_into(&p, name, 0);
	if (!has_half(o, &p))
		return true;
	snprintf(field, sizeof field, "%.*s", (int)strcspn(p.text, ".["), p.text);
	if (p.number)
		return refuse(r, 400, field, "%s is %s, which JSON does not have%s", p.text, p.number,
		              p.number[0] == 'N' ? "" : ", or a number of more than 1.8e308");
	return refuse(r, 400, field[0] ? field : NULL,
	              "%s has half of a surrogate pair%s, expected text that is whole: \"\\ud83d\" stands for nothing "
	              "without the \"\\ude00\" behind it",
	              p.n ? p.text : "the body", p.name ? " in a member's name" : "");
}

json_t *fields_json(const void *p, size_t n, struct refusal *r)
{
	struct error e = { 0 };
	json_t *o = json_read_within(p, n, BODY_MEMORY, "the body", &e);

	if (!o)
		refuse(r, e.code == ERROR_MEMORY ? 503 : e.code == ERROR_UNSUPPORTED ? 413 : 400, NULL, "%s", e.text);
	return o;
}

json_t *fields_read(const void *p, size_t n, struct refusal *r)
{
	json_t *o = n ? fields_json(p, n, r) : NULL;

	if (!n) {
		refuse(r, 400, NULL, "the body is empty, expected a JSON object");
	} else if (!o) {
		return NULL;
	} else if (!json_is_object(o)) {
		refuse(r, 400, NULL, "the body is %s, expected an object", json_kind(o));
		json_decref(o);
		o = NULL;
	} else if (json_object_size(o) > BODY_MEMBERS) {
		refuse(r, 413, NULL, "the body has %zu members, expected at most %d", json_object_size(o),
		       BODY_MEMBERS);
		json_decref(o);
		o = NULL;
	} else if (!fields_are_whole(o, NULL, r)) {
		json_decref(o);
		o = NULL;
	}
	return o;
}

/* ---- a field */

bool field_fits(const char *name, size_t n, struct refusal *r)
{
	return n <= TEXT_BYTES ||
	       refuse(r, 413, name, "%s has a text of %zu bytes, expected at most %d", name, n, TEXT_BYTES);
}

json_t *field_value(const json_t *o, const char *name)
{
	json_t *v = json_object_get(o, name);

	return v && json_is_null(v) && !json_not_finite(v) ? NULL : v;
}

static bool wrong(const json_t *v, const char *name, const char *expected, struct refusal *r)
{
	return refuse(r, 400, name, "%s is %s, expected %s", name, json_kind(v), expected);
}

bool field_number(const json_t *o, const char *name, double low, double high, double *out, struct refusal *r)
{
	const json_t *v = field_value(o, name);

	if (!v)
		return true;
	if (json_not_finite(v) || !json_is_number(v))
		return wrong(v, name, "a number", r);
	double number = json_number_value(v);
	if (!(number >= low && number <= high))
		return refuse(r, 400, name, "%s is %g, expected a number from %g to %g", name, number, low, high);
	*out = number;
	return true;
}

bool field_integer(const json_t *o, const char *name, int64_t low, int64_t high, int64_t *out, struct refusal *r)
{
	const json_t *v = field_value(o, name);
	int64_t number;

	if (!v)
		return true;
	if (json_not_finite(v) || !json_is_number(v))
		return wrong(v, name, "an integer", r);
	double real = json_number_value(v);
	if (json_is_integer(v))
		number = json_integer_value(v);
	else if (real == floor(real) && fabs(real) <= 0x1p53)
		number = (int64_t)real;
	else
		return refuse(r, 400, name, "%s is %g, expected an integer", name, real);
	if (number < low || number > high)
		return refuse(r, 400, name, "%s is %lld, expected an integer from %lld to %lld", name,
		              (long long)number, (long long)low, (long long)high);
	*out = number;
	return true;
}

bool field_flag(const json_t *o, const char *name, bool *out, struct refusal *r)
{
	const json_t *v = field_value(o, name);

	if (!v)
		return true;
	if (json_not_finite(v) || !json_is_boolean(v))
		return wrong(v, name, "true or false", r);
	*out = json_is_true(v);
	return true;
}

bool field_text(const json_t *o, const char *name, const char **out, struct refusal *r)
{
	const json_t *v = field_value(o, name);

	if (!v)
		return true;
	if (!json_is_string(v) || !json_is_text(v))
		return wrong(v, name, "a string", r);
	if (strlen(json_string_value(v)) != json_string_length(v))
		return refuse(r, 400, name, "%s has a NUL character", name);
	*out = json_string_value(v);
	return true;
}

json_t *field_object(const json_t *o, const char *name, struct refusal *r)
{
	json_t *v = field_value(o, name);

	if (v && !json_is_object(v)) {
		wrong(v, name, "an object", r);
		return NULL;
	}
	return v;
}

json_t *field_array(const json_t *o, const char *name, struct refusal *r)
{
	json_t *v = field_value(o, name);

	if (v && !json_is_array(v)) {
		wrong(v, name, "an array", r);
		return NULL;
	}
	return v;
}
