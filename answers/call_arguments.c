#include "answers/call_arguments.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/call/call.h"

struct call_arguments {
	struct machine *machine;
	uint32_t state, tried; /* tried: behind the value that is tried */
	bool some;
};

static void feed_bytes(struct call_arguments *a, const char *text, size_t n)
{
	for (size_t i = 0; i < n && a->state != MACHINE_DEAD; i++)
		a->state = machine_step(a->machine, a->state, (uint8_t)text[i]);
}

static void feed(struct call_arguments *a, const char *text) { feed_bytes(a, text, strlen(text)); }

struct call_arguments *call_arguments_open(const char *parameters, bool *lost)
{
	struct error err = { 0 };
	struct call_arguments *a = calloc(1, sizeof *a);

	if (a && (a->machine = machine_of_schema(parameters, strlen(parameters), true, &err))) {
		a->state = a->machine->start;
		feed(a, "{");
		return a;
	}
	*lost = *lost || !a || err.code == ERROR_MEMORY;
	free(a);
	return NULL;
}

struct call_arguments *call_arguments_of_key(const json_t *parameters, const char *key, bool *lost)
{
	static const char *const kept[] = { "$schema", "$defs", "definitions" };
	json_t *one = json_object_get(json_object_get(parameters, "properties"), key), *value;
	json_t *o = one ? json_pack("{s:{s:O}}", "properties", key, one) : NULL;
	bool ok = o != NULL;

	for (size_t i = 0; o && i < sizeof kept / sizeof *kept; i++)
		if ((value = json_object_get(parameters, kept[i])))
			ok = ok && json_object_set(o, kept[i], value) == 0;
	char *text = ok ? json_dumps(o, JSON_COMPACT) : NULL;
	struct call_arguments *a = text ? call_arguments_open(text, lost) : NULL;
	*lost = *lost || (one && !text);
	json_decref(o);
	free(text);
	return a;
}

bool call_arguments_lost(const struct call_arguments *a) { return a->machine->failed && !a->machine->limited; }

void call_arguments_close(struct call_arguments *a)
{
	if (!a)
		return;
	machine_close(a->machine);
	free(a);
}

bool call_arguments_key(struct call_arguments *a, const char *key)
{
	feed(a, a->some ? "," : "");
	feed(a, key);
	feed(a, ":");
	a->some = true;
	return a->state != MACHINE_DEAD;
}

bool call_arguments_wants_text(struct call_arguments *a)
{
	return a->state != MACHINE_DEAD && call_wants_text(a->machine, a->state);
}

bool call_arguments_takes_text(struct call_arguments *a)
{
	return a->state != MACHINE_DEAD && machine_step(a->machine, a->state, '"') != MACHINE_DEAD;
}

void call_arguments_try(struct call_arguments *a) { a->tried = a->state; }

bool call_arguments_try_bytes(struct call_arguments *a, const char *value, size_t n)
{
	for (size_t i = 0; i < n && a->tried != MACHINE_DEAD; i++)
		a->tried = machine_step(a->machine, a->tried, (uint8_t)value[i]);
	return a->tried != MACHINE_DEAD;
}

bool call_arguments_try_ends(struct call_arguments *a)
{
	return a->tried != MACHINE_DEAD && (machine_step(a->machine, a->tried, ',') != MACHINE_DEAD ||
	                                    machine_step(a->machine, a->tried, '}') != MACHINE_DEAD);
}

void call_arguments_value(struct call_arguments *a, const char *value, size_t n) { feed_bytes(a, value, n); }
