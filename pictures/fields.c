/* pictures/fields.c - fields of JSON files, one by one. */
#include "pictures/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

bool field_refuse(const struct fields *f, const char *name, const json_t *v, const char *expected)
{
	char value[80] = "";
	char *text = v && !json_not_finite(v) && json_is_text(v) == json_is_string(v)
	                     ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT)
	                     : NULL;
	if (text)
		error_quote(value, sizeof value, text, strlen(text));
	free(text);
	*f->ok = false;
	return error_set(f->err, ERROR_FORMAT, "%s: %s%s is %s; %s", f->file, f->in, name,
	                 value[0] ? value
	                 : v      ? json_kind(v)
	                          : "not there",
	                 expected);
}

const json_t *field(const struct fields *f, const char *name)
{
	const json_t *v = f->o && *f->ok ? json_object_get(f->o, name) : NULL;
	return v && !json_is_null(v) ? v : NULL;
}

struct fields fields_object(const struct fields *f, const char *name, const char *in)
{
	struct fields inner = { .o = field(f, name), .file = f->file, .in = in, .ok = f->ok, .err = f->err };
	if (inner.o && !json_is_object(inner.o)) {
		field_refuse(f, name, inner.o, "an object is expected");
		inner.o = NULL;
	}
	return inner;
}

bool field_bool(const struct fields *f, const char *name, bool *out)
{
	const json_t *v = field(f, name);
	if (!v)
		return false;
	if (!json_is_boolean(v))
		return field_refuse(f, name, v, "true or false is expected");
	*out = json_is_true(v);
	return true;
}

static bool count_of(const struct fields *f, const char *name, const json_t *v, uint64_t min, uint64_t max,
                     uint64_t *out)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) < min ||
	    (uint64_t)json_integer_value(v) > max) {
		char expected[100];
		snprintf(expected, sizeof expected, "an integer from %llu to %llu is expected", (unsigned long long)min,
		         (unsigned long long)max);
		return field_refuse(f, name, v, expected);
	}
	*out = (uint64_t)json_integer_value(v);
	return true;
}

bool field_count(const struct fields *f, const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
	const json_t *v = field(f, name);
	return v && count_of(f, name, v, min, max, out);
}

bool field_u32(const struct fields *f, const char *name, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t wide = 0;
	if (!field_count(f, name, min, max, &wide))
		return false;
	*out = (uint32_t)wide;
	return true;
}

static bool real_of(const struct fields *f, const char *name, const json_t *v, double min, double max, double *out)
{
	double x = json_is_number(v) ? json_number_value(v) : NAN;
	if (!(x >= min && x <= max)) {
		char expected[100];
		snprintf(expected, sizeof expected, "a number from %g to %g is expected", min, max);
		return field_refuse(f, name, v, expected);
	}
	*out = x;
	return true;
}

bool field_real(const struct fields *f, const char *name, double min, double max, double *out)
{
	const json_t *v = field(f, name);
	return v && real_of(f, name, v, min, max, out);
}

bool field_three(const struct fields *f, const char *name, double min, double max, double out[3])
{
	const json_t *v = field(f, name);
	size_t n = v && json_is_array(v) ? json_array_size(v) : 0;
	if (!v)
		return false;
	if (json_is_array(v) && n != 1 && n != 3)
		return field_refuse(f, name, v, "a number, or an array of three, is expected");
	for (size_t k = 0; k < 3; k++)
		if (!real_of(f, name, n ? json_array_get(v, n == 3 ? k : 0) : v, min, max, &out[k]))
			return false;
	return true;
}

bool field_side(const struct fields *f, const char *name, uint32_t max, uint32_t *height, uint32_t *width)
{
	const json_t *v = field(f, name);
	uint64_t h = 0, w = 0;
	if (!v)
		return false;
	if (json_is_object(v)) {
		struct fields inner = fields_object(f, name, "");
		if (!field(&inner, "height") || !field(&inner, "width"))
			return field_refuse(f, name, v, "height and width are expected in it");
		if (!count_of(f, name, field(&inner, "height"), 1, max, &h) ||
		    !count_of(f, name, field(&inner, "width"), 1, max, &w))
			return false;
	} else if (json_is_array(v)) {
		if (json_array_size(v) != 2)
			return field_refuse(f, name, v, "an array of height and width is expected");
		if (!count_of(f, name, json_array_get(v, 0), 1, max, &h) ||
		    !count_of(f, name, json_array_get(v, 1), 1, max, &w))
			return false;
	} else if (!count_of(f, name, v, 1, max, &h)) {
		return false;
	} else {
		w = h;
	}
	*height = (uint32_t)h;
	*width = (uint32_t)w;
	return true;
}

bool fields_text(const struct fields *f, const char *name, char *out, size_t cap)
{
	const json_t *v = field(f, name);
	if (!v)
		return false;
	if (!json_is_string(v) || !json_is_text(v) || json_string_length(v) >= cap ||
	    strlen(json_string_value(v)) != json_string_length(v)) {
		char expected[60];
		snprintf(expected, sizeof expected, "a text of fewer than %zu bytes is expected", cap);
		return field_refuse(f, name, v, expected);
	}
	memcpy(out, json_string_value(v), json_string_length(v) + 1);
	return true;
}
