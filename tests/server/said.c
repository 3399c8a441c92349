/* tests/server/said.c - all that an answer says that must be the same every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/server/crowd.h"

enum { CHOICES = 8 };

/* Names and places that one answer has, times, and how much of a prompt was already computed. */
static bool is_of_one_answer(const char *key, const json_t *value)
{
	static const char *const keys[] = { "created", "created_at", "completed_at", "timings",
		                            "usage",   "item_id",    "id_slot",      "tokens_cached" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return strcmp(key, "id") == 0 && json_is_string(value);
}

static void strip(json_t *v)
{
	const char *key;
	json_t *one;
	void *next;
	size_t i;

	json_object_foreach_safe(v, next, key, one)
	{
		if (is_of_one_answer(key, one))
			json_object_del(v, key);
		else
			strip(one);
	}
	json_array_foreach(v, i, one) strip(one);
}

static char *stripped(const char *text, size_t n, size_t *choice)
{
	json_t *o = json_loadb(text, n, JSON_DECODE_ANY, NULL);

	if (!o)
		return NULL;
	strip(o);
	json_int_t index =
		json_integer_value(json_object_get(json_array_get(json_object_get(o, "choices"), 0), "index"));
	*choice = index > 0 && index < CHOICES ? (size_t)index : 0;
	char *out = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	json_decref(o);
	return out;
}

static char *append(char *to, const char *text)
{
	size_t n = to ? strlen(to) : 0, more = strlen(text);
	char *p = realloc(to, n + more + 2);

	assert_non_null(p);
	memcpy(p + n, text, more);
	memcpy(p + n + more, "\n", 2);
	return p;
}

/* Events of several choices may come in any order; those of one may not. */
static char *said_in_events(const struct answer *a)
{
	char *of[CHOICES] = { 0 }, *all = strdup("");
	bool done = false;

	for (const char *at = a->body; (at = strstr(at, "data: "));) {
		const char *from = at + 6, *end = strstr(from, "\n\n");
		size_t choice = 0;
		if (!end)
			break;
		char *text = *from == '{' ? stripped(from, (size_t)(end - from), &choice) : NULL;
		if (text)
			of[choice] = append(of[choice], text);
		/* the last event of each family of endpoints */
		done = done || strncmp(from, "[DONE]", 6) == 0 || (text && strstr(text, "\"message_stop\"")) ||
		       (text && (strstr(text, "\"response.completed\"") || strstr(text, "\"response.incomplete\""))) ||
		       (text && strstr(text, "\"stop\":true"));
		free(text);
		at = end;
	}
	for (size_t i = 0; i < CHOICES; i++)
		if (of[i])
			all = append(all, of[i]);
	for (size_t i = 0; i < CHOICES; i++)
		free(of[i]);
	if (done)
		return all;
	free(all);
	return NULL;
}

char *said_in(const struct answer *a)
{
	const char *type = a->head ? answer_field(a, "Content-Type") : NULL;
	size_t choice;

	if (type && strncmp(type, "text/event-stream", 17) == 0)
		return said_in_events(a);
	return stripped(a->body, a->n_body, &choice);
}
