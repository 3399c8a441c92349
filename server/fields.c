/* server/fields.c - the fields of a request's JSON. */
#include "server/fields.h"

#include <math.h>
#include <string.h>

#include "loaders/json_read.h"

json_t *fields_read(const void *p, size_t n, struct refusal *r)
{
	struct error e = { 0 };
	json_t *o = n ? json_read(p, n, n, "the body", &e) : NULL;

	if (!n) {
		refuse(r, 400, NULL, "the body is empty, expected a JSON object");
	} else if (!o) {
		refuse(r, e.code == ERROR_MEMORY ? 503 : 400, NULL, "%s", e.text);
	} else if (!json_is_object(o)) {
		refuse(r, 400, NULL, "the body is %s, expected an object", json_kind(o));
		json_decref(o);
		o = NULL;
	}
	return o;
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
