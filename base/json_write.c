/* base/json_write.c - JSON that is written. */
#include "base/json_write.h"

#include "base/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"

/* Something could not be put into what this thread is making. */
static _Thread_local bool lacking;

void json_put(json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value))
		lacking = true;
}

void json_add(json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		lacking = true;
}

json_t *json_text(const char *bytes, size_t n)
{
	json_t *o = n ? json_stringn(bytes, n) : json_string("");

	if (o)
		return o;
	char *out = malloc(3 * n + 1);
	size_t at = 0;
	uint32_t code;
	for (size_t i = 0; out && i < n;) {
		unsigned length = text_char(bytes + i, n - i, &code);
		memcpy(out + at, length ? bytes + i : "\xef\xbf\xbd", length ? length : 3);
		at += length ? length : 3;
		i += length ? length : 1;
	}
	o = out ? json_stringn(out, at) : NULL;
	free(out);
	return o;
}

json_t *json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *json_ids(const int32_t *ids, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_add(list, json_integer(ids[i]));
	return list;
}

json_t *json_bytes(const char *bytes, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_add(list, json_integer((unsigned char)bytes[i]));
	return list;
}

json_t *json_copied(const json_t *o, bool deep)
{
	json_t *from = (json_t *)(uintptr_t)o, *copy = deep ? json_deep_copy(from) : json_copy(from);

	if (json_equal(from, copy))
		return copy;
	json_decref(copy);
	return NULL;
}

bool json_lacks(void)
{
	bool was = lacking;

	lacking = false;
	return was;
}

static int take(const char *p, size_t n, void *user)
{
	struct bytes *b = user;

	bytes_add(b, p, n);
	return b->lost ? -1 : 0;
}

static bool has_digits(const json_t *o)
{
	const char *name;
	json_t *one;
	size_t i;

	json_array_foreach(o, i, one)
	{
		if (has_digits(one))
			return true;
	}
	json_object_foreach((json_t *)(uintptr_t)o, name, one)
	{
		if (has_digits(one))
			return true;
	}
	return json_digits(o) != NULL;
}

/* Where there are numbers of json_read_digits() the library spells the other parts alone, without line ends between. */
static void spell(const json_t *o, size_t flags, struct bytes *b)
{
	const char *comma = flags & JSON_COMPACT ? "," : ", ", *colon = flags & JSON_COMPACT ? ":" : ": ", *name;
	bool more = false;
	json_t *one;
	size_t i;

	if (json_digits(o)) {
		bytes_text(b, json_digits(o));
		return;
	}
	if (!json_is_array(o) && !json_is_object(o)) {
		b->lost |= json_dump_callback(o, take, b, flags) != 0;
		return;
	}
	bytes_text(b, json_is_array(o) ? "[" : "{");
	json_array_foreach(o, i, one)
	{
		bytes_text(b, i ? comma : "");
		spell(one, flags, b);
	}
	json_object_foreach((json_t *)(uintptr_t)o, name, one)
	{
		json_t *text = json_string(name);
		bytes_text(b, more ? comma : "");
		more = true;
		spell(text, flags, b);
		b->lost |= !text;
		json_decref(text);
		bytes_text(b, colon);
		spell(one, flags, b);
	}
	bytes_text(b, json_is_array(o) ? "]" : "}");
}

/* The library's own buffer loses the name of a member when there is no memory for it, and goes on. */
char *json_spell(const json_t *o, size_t flags)
{
	struct bytes b = { 0 };

	flags |= JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);
	if (has_digits(o))
		spell(o, flags, &b);
	else
		b.lost |= json_dump_callback(o, take, &b, flags) != 0;
	bytes_add(&b, "", 1);
	if (!b.lost)
		return b.p;
	bytes_free(&b);
	return NULL;
}

char *json_write(json_t *o)
{
	char *text = lacking ? NULL : json_spell(o, JSON_COMPACT);

	lacking = false;
	json_decref(o);
	return text;
}
