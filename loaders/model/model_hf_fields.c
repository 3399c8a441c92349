/* loaders/model/model_hf_fields.c - typed reads of config.json's fields. See model_hf_fields.h. */
#include "loaders/model/model_hf_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *hf_get(struct hf_reader *r, const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	if (v && r->read)
		json_object_set_new(object == r->root ? r->read : r->read_within, key, json_true());
	return json_is_null(v) ? NULL : v;
}

bool hf_wrong_kind(struct hf_reader *r, const char *key, const json_t *v, const char *expected)
{
	return error_set(r->err, ERROR_FORMAT, "%s: %s is %s, expected %s", r->label, key, json_kind(v), expected);
}

bool hf_get_f64(struct hf_reader *r, const json_t *object, const char *key, double *out)
{
	const json_t *v = hf_get(r, object, key);

	if (!v)
		return true;
	if (!json_is_number(v))
		return hf_wrong_kind(r, key, v, "a number");
	*out = json_number_value(v);
	return isfinite(*out) ||
	       error_set(r->err, ERROR_FORMAT, "%s: %s is %g, expected a finite number", r->label, key, *out);
}

bool hf_get_u32(struct hf_reader *r, const json_t *object, const char *key, enum presence presence, uint32_t max,
                uint32_t *out)
{
	const json_t *v = hf_get(r, object, key);
	double value = 0;

	if (!v)
		return presence == OPTIONAL || error_set(r->err, ERROR_FORMAT, "%s: %s is missing", r->label, key);
	if (!json_is_number(v))
		return hf_wrong_kind(r, key, v, "an integer");
	value = json_number_value(v);
	if (!hparam_range(r->label, key, value, 0, max, r->err))
		return false;
	if (value != floor(value))
		return error_set(r->err, ERROR_FORMAT, "%s: %s is %.9g, expected an integer", r->label, key, value);
	*out = (uint32_t)value;
	return true;
}

bool hf_get_bool(struct hf_reader *r, const json_t *object, const char *key, bool *out)
{
	const json_t *v = hf_get(r, object, key);

	if (!v)
		return true;
	if (!json_is_boolean(v))
		return hf_wrong_kind(r, key, v, "true or false");
	*out = json_is_true(v);
	return true;
}

bool hf_get_bool_or_none(struct hf_reader *r, const char *key, bool *out)
{
	if (json_is_null(json_object_get(r->root, key)))
		*out = false;
	return hf_get_bool(r, r->root, key, out);
}

bool hf_get_string(struct hf_reader *r, const json_t *object, const char *key, const char **out)
{
	const json_t *v = hf_get(r, object, key);

	if (!v)
		return true;
	if (!json_is_text(v))
		return hf_wrong_kind(r, key, v, "a string");
	*out = json_string_value(v);
	return true;
}

bool hf_unsupported(struct hf_reader *r, const char *key, const char *value, const char *expected)
{
	char text[60];

	return error_set(r->err, ERROR_UNSUPPORTED, "%s: %s is \"%s\", expected %s", r->label, key,
	                 error_quote(text, sizeof text, value, strlen(value)), expected);
}

/* The number that all elements of a list are, or the value itself. */
static json_t *one_of_all(json_t *v)
{
	json_t *first = json_is_array(v) ? json_array_get(v, 0) : NULL;

	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_number(first) || !json_equal(json_array_get(v, i), first))
			return v;
	return first ? first : v;
}

/* Members of an object of the row's become fields, where there are none of these names. */
static bool take_inner(struct hf_reader *r)
{
	json_t *o = r->row->inner ? json_object_get(r->root, r->row->inner) : NULL, *v;
	const char *name;

	if (!o || json_is_null(o))
		return true;
	if (!json_is_object(o))
		return hf_wrong_kind(r, r->row->inner, o, "an object");
	json_object_foreach(o, name, v)
	{
		if (!json_object_get(r->root, name) && json_object_set(r->root, name, v) != 0)
			return error_set(r->err, ERROR_MEMORY, "%s: no memory for its fields", r->label);
	}
	json_object_del(r->root, r->row->inner);
	return true;
}

bool hf_rename_fields(struct hf_reader *r)
{
	const char *p = r->row->renames ? r->row->renames : "";
	char theirs[60], usual[60];
	int n;

	if (!take_inner(r))
		return false;
	for (; sscanf(p, " %59[^=]=%59s%n", theirs, usual, &n) == 2; p += n) {
		json_t *v = one_of_all(json_object_get(r->root, theirs));
		if (*usual == '=') {
			memmove(usual, usual + 1, strlen(usual));
			json_object_del(r->root, usual);
		}
		const bool same = strcmp(theirs, usual) == 0;
		if (!v || json_is_null(v))
			continue;
		if ((same || !json_object_get(r->root, usual)) && json_object_set(r->root, usual, v) != 0)
			return error_set(r->err, ERROR_MEMORY, "%s: no memory for its fields", r->label);
		if (!same)
			json_object_del(r->root, theirs);
	}
	return true;
}

/* Whether a value says that nothing is to be done. */
static bool is_neutral(const json_t *v)
{
	return json_is_null(v) || json_is_false(v) || (json_is_number(v) && json_number_value(v) == 0) ||
	       (json_is_string(v) && !*json_string_value(v)) ||
	       ((json_is_array(v) || json_is_object(v)) && json_array_size(v) + json_object_size(v) == 0);
}

static bool field_passes(struct hf_reader *r, const char *key, const json_t *v)
{
	const struct arch_off *off = arch_hf_off(key);

	if (off)
		return json_is_null(v) ||
		       (json_is_number(v) ? json_number_value(v) == off->off
		                          : json_is_boolean(v) && (double)json_is_true(v) == off->off);
	return arch_hf_field_harmless(r->row, key) || is_neutral(v);
}

bool hf_check_unread(struct hf_reader *r, json_t *object, const json_t *read, const char *within, const char *dot)
{
	char text[100], shown[60];
	const char *key;
	json_t *v;

	json_object_foreach(object, key, v)
	{
		if (json_object_get(read, key) || field_passes(r, key, v))
			continue;
		char *value = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
		error_quote(text, sizeof text, key, strlen(key));
		const char *found = value ? value : json_kind(v);
		error_quote(shown, sizeof shown, found, strlen(found));
		free(value);
		return error_set(r->err, ERROR_UNSUPPORTED,
		                 "%s: the field %s%s%s is %s; it is not known and might change what the model computes",
		                 r->label, within, dot, text, shown);
	}
	return true;
}
