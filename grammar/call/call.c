/* grammar/call/call.c - states of calls, and what stands around names and values. */
#include "grammar/call/call.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/call/call_free.h"
#include "grammar/call/call_parts.h"
#include "grammar/machine/effort.h"
#include "grammar/schema/schema.h"
#include "base/json_read.h"
#include "base/json_write.h"

enum { TEXT_MAX = 16 << 20 };

static struct call_machine *of(struct machine *m) { return (struct call_machine *)(void *)m; }

uint32_t call_feed(struct call_machine *m, uint32_t json, const char *bytes)
{
	for (; *bytes && json != MACHINE_DEAD; bytes++)
		json = machine_step(m->json, json, (uint8_t)*bytes);
	return json;
}

static void add_mark(struct call_machine *m, enum call_mark mark, uint32_t aux, uint32_t json)
{
	call_add(m, (struct thread){ THREAD_MARK + mark, 0, aux, json });
}

/* Another argument, or the end. */
static void add_next(struct call_machine *m, uint32_t json, bool first)
{
	add_mark(m, first ? MARK_FIRST_KEY : MARK_NEXT_KEY, 0, call_feed(m, json, first ? "\"" : ",\""));
	add_mark(m, MARK_END, 0, call_feed(m, json, "}}"));
}

static void arrive(struct call_machine *m, enum call_mark mark, uint32_t aux, uint32_t json)
{
	switch (mark) {
	case MARK_BEHIND_NAME:
		if (m->values == VALUES_JSON)
			call_add(m, (struct thread){ THREAD_JSON, 0, 0, json });
		else
			add_next(m, call_feed(m, json, "{"), true);
		break;
	case MARK_FIRST_KEY:
	case MARK_NEXT_KEY: call_add(m, (struct thread){ THREAD_KEY, 0, 0, json }); break;
	case MARK_BEHIND_KEY: call_value(m, json); break;
	case MARK_BEHIND_TEXT_KEY: call_add(m, (struct thread){ THREAD_TEXT, 0, 0, call_feed(m, json, "\"") }); break;
	case MARK_BEHIND_VALUE:
	case MARK_CDATA_END: add_next(m, json, false); break;
	case MARK_END: call_add(m, (struct thread){ THREAD_END, 0, 0, json }); break;
	case MARK_QUOTE: call_add(m, (struct thread){ THREAD_QUOTED, 0, aux, json }); break;
	case MARK_QUOTE_END: call_add(m, (struct thread){ THREAD_BRACES, '.', aux, json }); break;
	case MARK_CDATA: call_add(m, (struct thread){ THREAD_CDATA, 0, 0, json }); break;
	case CALL_MARKS: break;
	}
}

/* Whether something else than a text can stand here. */
static bool takes_other(struct call_machine *m, uint32_t json)
{
	static const char begins[] = "{[tfn-0123456789";
	bool takes = false;

	for (const char *p = begins; *p; p++)
		takes |= machine_step(m->json, json, (uint8_t)*p) != MACHINE_DEAD;
	return takes;
}

bool call_wants_text(struct machine *json, uint32_t state)
{
	struct call_machine m = { .json = json };

	return machine_step(json, state, '"') != MACHINE_DEAD && !takes_other(&m, state);
}

static void follow_key(struct call_machine *m, uint32_t json)
{
	uint32_t value = call_feed(m, json, "\":");

	if (value == MACHINE_DEAD)
		return;
	if (m->told && call_feed(m, value, "\"") != MACHINE_DEAD)
		add_mark(m, MARK_BEHIND_TEXT_KEY, 0, value);
	if (!m->told || takes_other(m, value))
		add_mark(m, MARK_BEHIND_KEY, 0, value);
}

void call_add(struct call_machine *m, struct thread t)
{
	if (t.inner == MACHINE_DEAD)
		return;
	if (t.mode >= THREAD_MARK && !m->mark[t.mode - THREAD_MARK][t.at]) {
		arrive(m, (enum call_mark)(t.mode - THREAD_MARK), t.aux, t.inner);
		return;
	}
	if (!threads_add(&m->threads, &t))
		return;
	if (t.mode >= THREAD_MARK && m->loose && m->mark[t.mode - THREAD_MARK][t.at] == '\n')
		call_add(m, (struct thread){ t.mode, t.at + 1, t.aux, t.inner });
	if (t.mode == THREAD_NAME && t.at)
		for (uint32_t i = 0; i == 0 || i <= m->n_gaps; i++)
			add_mark(m, MARK_BEHIND_NAME, i * GAP_BEGINS, call_feed(m, t.inner, "\",\"arguments\":"));
	else if (t.mode == THREAD_KEY && t.at)
		follow_key(m, t.inner);
	else
		call_value_follow(m, &t);
}

/* Names are made of what all forms can write. */
static bool is_name(const struct call_machine *m, uint8_t byte)
{
	bool plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
	             byte == '_' || byte == '-' || byte == '.';

	return plain || (m->values == VALUES_PLAIN && byte >= ' ' && !strchr("<>\"\\", byte));
}

static bool goes_on(const struct call_machine *m, uint8_t b)
{
	const bool digit = b >= '0' && b <= '9';

	if (m->goes_on != GAP_WORDS)
		return m->goes_on == GAP_NUMBER && digit;
	return digit || (b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z') || (b && strchr(" <|>_-", b));
}

/* What else can stand between the name and its mark. Whether the mark may stand here. */
static bool step_gap(struct call_machine *m, struct thread t, uint8_t byte)
{
	const uint32_t which = t.aux / GAP_BEGINS, at = t.aux % GAP_BEGINS;

	if (t.at || !which)
		return true;
	const char *begins = m->gap[which - 1];
	const size_t n = strlen(begins);
	if (at < GAP_MAX && (at < n ? (uint8_t)begins[at] == byte : goes_on(m, byte)))
		call_add(m, (struct thread){ t.mode, 0, t.aux + 1, t.inner });
	return at >= n + (m->goes_on == GAP_NUMBER);
}

static void step_thread(struct call_machine *m, struct thread t, uint8_t byte)
{
	if (t.mode == THREAD_MARK + MARK_BEHIND_NAME && !step_gap(m, t, byte))
		return;
	if (t.mode >= THREAD_MARK) {
		if ((uint8_t)m->mark[t.mode - THREAD_MARK][t.at] == byte)
			call_add(m, (struct thread){ t.mode, t.at + 1, t.aux, t.inner });
	} else if (t.mode == THREAD_NAME || t.mode == THREAD_KEY) {
		if (is_name(m, byte))
			call_add(m, (struct thread){ t.mode, 1, 0, machine_step(m->json, t.inner, byte) });
	} else if (t.mode != THREAD_END) {
		call_value_step(m, t, byte);
	}
}

static uint32_t settle(struct call_machine *m)
{
	m->threads.failed |= m->machine.failed || m->json->failed;
	const uint32_t state = threads_settle(&m->threads);
	m->machine.failed |= m->threads.failed;
	return state;
}

static uint32_t step(struct machine *machine, uint32_t state, uint8_t byte)
{
	struct call_machine *m = of(machine);
	uint32_t next;

	if (state == MACHINE_DEAD || machine->failed)
		return MACHINE_DEAD;
	if (threads_recall(&m->threads, state, byte, &next))
		return next;
	size_t n;
	const struct thread *t = threads_of(&m->threads, state, &n);
	for (size_t i = 0; i < n; i++)
		step_thread(m, t[i], byte);
	next = settle(m);
	if (!machine->failed)
		threads_note(&m->threads, state, byte, next);
	return next;
}

static bool ends(struct machine *machine, uint32_t state)
{
	size_t n;
	const struct thread *t = threads_of(&of(machine)->threads, state, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= t[i].mode == THREAD_END;
	return any;
}

static uint32_t top(const struct machine *m, uint32_t state)
{
	(void)m;
	return state;
}
static uint32_t alone(struct machine *m, uint32_t state) { return top(m, state); }

static uint32_t easy(struct machine *machine, uint32_t state, enum easy class)
{
	size_t n;
	const struct thread *t = threads_of(&of(machine)->threads, state, &n);
	uint32_t max = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t here = call_value_easy(of(machine), &t[i], class);
		max = here > max ? here : max;
	}
	return max;
}

static size_t bytes(const struct machine *machine)
{
	const struct call_machine *m = (const struct call_machine *)(const void *)machine;

	return threads_bytes(&m->threads) + machine_bytes(m->json);
}

static void close_machine(struct machine *machine)
{
	struct call_machine *m = of(machine);

	for (unsigned i = 0; i < CALL_MARKS; i++)
		free(m->mark[i]);
	for (unsigned i = 0; i < m->n_gaps; i++)
		free(m->gap[i]);
	machine_close(m->json);
	threads_clear(&m->threads);
	free(m);
}

static const struct machine_kind call_kind = { step, ends, top, alone, easy, bytes, close_machine, NULL };

/* ---- reading */

static const char *const mark_names[CALL_MARKS] = {
	[MARK_BEHIND_NAME] = "behind_name",
	[MARK_FIRST_KEY] = "first_key",
	[MARK_NEXT_KEY] = "next_key",
	[MARK_BEHIND_KEY] = "behind_key",
	[MARK_BEHIND_TEXT_KEY] = "behind_text_key",
	[MARK_BEHIND_VALUE] = "behind_value",
	[MARK_END] = "end",
};
static const char *const values_names[] = {
	[VALUES_PLAIN] = "plain", [VALUES_PYTHON] = "python", [VALUES_BRACES] = "braces", [VALUES_JSON] = "json"
};
static const char quote[] = "<|\"|>";

static bool read_gaps(struct call_machine *m, const json_t *list, struct error *err)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *text = json_string_value(one);
		if (!text || m->n_gaps == GAPS_MAX)
			return error_set(err, ERROR_ARGUMENT, "the call's gaps are no list of %d texts or fewer",
			                 GAPS_MAX);
		if (!(m->gap[m->n_gaps] = effort_malloc(strlen(text) + 1)))
			return error_set(err, ERROR_MEMORY, "no memory for a grammar");
		strcpy(m->gap[m->n_gaps++], text);
	}
	return true;
}

/* False, with err set: the values have no known form, or there is no memory. */
static bool read_marks(struct call_machine *m, const json_t *o, struct error *err)
{
	const char *stop, *values = json_string_value(json_object_get(o, "values"));
	bool known = false, cdata = json_is_true(json_object_get(o, "cdata"));

	for (unsigned i = 0; i < sizeof values_names / sizeof *values_names; i++)
		if (values && strcmp(values, values_names[i]) == 0) {
			m->values = (enum call_values)i;
			known = true;
		}
	for (unsigned i = 0; i < CALL_MARKS; i++) {
		const char *text = mark_names[i] ? json_string_value(json_object_get(o, mark_names[i])) : NULL;
		if (i == MARK_QUOTE || i == MARK_QUOTE_END)
			text = quote;
		else if (cdata && (i == MARK_CDATA || i == MARK_CDATA_END))
			text = i == MARK_CDATA ? "<![CDATA[" : "]]>";
		const char *rest = i == MARK_CDATA_END && cdata ? m->mark[MARK_BEHIND_VALUE] : "";
		size_t n = text ? strlen(text) : 0, n_rest = strlen(rest);
		if (!(m->mark[i] = effort_malloc(n + n_rest + 1)))
			return error_set(err, ERROR_MEMORY, "no memory for a grammar");
		memcpy(m->mark[i], text ? text : "", n);
		memcpy(m->mark[i] + n, rest, n_rest + 1);
	}
	m->loose = json_is_true(json_object_get(o, "loose"));
	const char *goes_on = json_string_value(json_object_get(o, "gap_goes_on"));
	m->goes_on = !goes_on ? GAP_ENDS : strcmp(goes_on, "number") == 0 ? GAP_NUMBER : GAP_WORDS;
	if (!read_gaps(m, json_object_get(o, "gaps"), err))
		return false;
	m->told = m->mark[MARK_BEHIND_TEXT_KEY][0] != 0;
	stop = m->values == VALUES_BRACES ? quote : strchr(m->mark[MARK_BEHIND_VALUE], '<');
	size_t n = stop ? strlen(stop) : 0;
	m->stop = stop;
	for (size_t i = 1, k = 0; i < n && n <= STOP_MAX; i++) {
		while (k && stop[i] != stop[k])
			k = m->fallback[k - 1];
		k += stop[i] == stop[k];
		m->fallback[i] = (uint8_t)k;
	}
	return (known && n <= STOP_MAX && (n || m->values == VALUES_PYTHON || m->values == VALUES_JSON)) ||
	       error_set(err, ERROR_ARGUMENT, "the call's values have no known form");
}

/* Parameters are written as a schema by themselves: what they refer to is looked for in them first. */
static bool mark_arguments(json_t *schema, unsigned depth)
{
	static const char *const names[] = { "arguments", "parameters" }, *const several[] = {
		"anyOf", "oneOf", "items"
	};
	json_t *properties = json_object_get(schema, "properties"), *one;
	bool ok = true;
	size_t i, k;

	for (i = 0; i < 2; i++) {
		one = json_object_get(properties, names[i]);
		if (json_is_object(one) && !json_object_get(one, SCHEMA_DOCUMENT))
			ok = ok && json_object_set_new(one, SCHEMA_DOCUMENT, json_string("first")) == 0;
	}
	for (i = 0; i < 3 && depth < 3; i++) {
		json_t *all = json_object_get(schema, several[i]);
		ok = ok && (!json_is_object(all) || mark_arguments(all, depth + 1));
		json_array_foreach(all, k, one) ok = ok && mark_arguments(one, depth + 1);
	}
	return ok;
}

static json_t *read_text(const char *text, size_t n, struct error *err)
{
	json_t *o = json_read_digits(text, n, TEXT_MAX, "the call", err);

	if (o && json_is_object(o) && mark_arguments(json_object_get(o, "schema"), 0))
		return o;
	if (o && json_is_object(o))
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
	json_decref(o);
	error_set(err, ERROR_ARGUMENT, "the call is no JSON object");
	return NULL;
}

static char *spell_schema(const json_t *o, struct error *err)
{
	const json_t *schema = json_object_get(o, "schema");
	char *text = schema ? json_spell(schema, JSON_COMPACT) : NULL;

	if (!schema)
		error_set(err, ERROR_ARGUMENT, "the call has no schema");
	else if (!text)
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
	return text;
}

/* The schema's own machine, from behind the bytes that stand there already. */
static struct machine *machine_of_begun(const json_t *o, const char *begun, unsigned how, struct error *err)
{
	char *schema = spell_schema(o, err);
	struct machine *m = schema ? machine_to_write_schema(schema, strlen(schema), how, err) : NULL;

	free(schema);
	for (; m && *begun && m->start != MACHINE_DEAD; begun++)
		m->start = machine_step(m, m->start, (uint8_t)*begun);
	if (!m || m->start != MACHINE_DEAD)
		return m;
	machine_refuse(m, "the call's schema allows nothing that begins as this one", err);
	machine_close(m);
	return NULL;
}

static struct machine *machine_of_form(const json_t *o, unsigned how, struct error *err)
{
	struct call_machine *m = effort_calloc(1, sizeof *m);
	char *schema = m ? spell_schema(o, err) : NULL;

	if (m) {
		m->machine.kind = &call_kind;
		m->json = schema && read_marks(m, o, err) ? machine_to_write_schema(schema, strlen(schema), how, err)
		                                          : NULL;
	}
	free(schema);
	if (m && m->json) {
		uint32_t json = call_feed(m, m->json->start, "{\"name\":\"");
		call_add(m, (struct thread){ THREAD_NAME, 0, 0, json });
		m->machine.start = settle(m);
		if (m->machine.start != MACHINE_DEAD)
			return &m->machine;
		machine_refuse(m->json, "the call's schema allows no object with a name", err);
	}
	error_set(err, ERROR_MEMORY, "no memory for a grammar");
	if (m)
		close_machine(&m->machine);
	return NULL;
}

struct machine *machine_of_call(const char *text, size_t n, unsigned how, struct error *err)
{
	json_t *o = read_text(text, n, err);
	const char *begun = json_string_value(json_object_get(o, "begun"));
	struct machine *m = !o ? NULL : begun ? machine_of_begun(o, begun, how, err) : machine_of_form(o, how, err);

	if (m && json_object_get(o, "openings"))
		m = machine_of_free(o, m, err);
	json_decref(o);
	return m;
}

char *call_marks(const char *text, size_t n)
{
	struct error ignored = { 0 };
	json_t *o = read_text(text, n, &ignored);
	size_t length = sizeof quote + 1 + call_free_marks_length(o);

	for (unsigned i = 0; i < CALL_MARKS; i++)
		length += mark_names[i] ? json_string_length(json_object_get(o, mark_names[i])) + 1 : 0;
	char *all = o ? effort_malloc(length + 1) : NULL, *p = all;
	for (unsigned i = 0; i < CALL_MARKS && all; i++) {
		const json_t *mark = mark_names[i] ? json_object_get(o, mark_names[i]) : NULL;
		size_t bytes = json_string_length(mark);
		*p++ = '\n';
		memcpy(p, bytes ? json_string_value(mark) : "", bytes);
		p += bytes;
	}
	const char *values = json_string_value(json_object_get(o, "values"));
	if (all) {
		p = call_free_marks(o, p);
		*p = 0;
		if (values && strcmp(values, values_names[VALUES_BRACES]) == 0)
			strcpy(p, quote);
	}
	json_decref(o);
	return all;
}
