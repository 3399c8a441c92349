/* answers/tool_reader.c - what stands behind the mark that opens a call: how it is read, and names before JSON. */
#include "answers/tool_reader.h"

#include <stdlib.h>
#include <string.h>

#include "answers/call_arguments.h"

void tool_reader_begin(struct tool_reader *r, enum tools_form form, const json_t *functions, struct tool_events *events)
{
	tool_reader_free(r);
	r->form = form;
	r->row = &tools_rows[form];
	r->functions = functions;
	r->events = events;
	switch (r->row->body) {
	case BODY_JSON: r->way = WAY_JSON; break;
	case BODY_NAMED: r->way = WAY_NAMED; break;
	case BODY_INVOKE: r->way = WAY_ELEMENTS; break;
	case BODY_BRACES: r->way = WAY_VALUES; break;
	case BODY_FUNCTIONS:
	case BODY_KEYS:
	case BODY_PYTHON: break; /* what follows says it */
	}
	if (r->row->body == BODY_FUNCTIONS || r->row->body == BODY_KEYS || r->row->body == BODY_INVOKE)
		tool_begin_elements(r);
}

void tool_reader_alone(struct tool_reader *r)
{
	r->way = WAY_ELEMENTS;
	r->elements.alone = true;
}

void tool_reader_free(struct tool_reader *r)
{
	struct bytes *all[] = { &r->head,         &r->out,           &r->json.key,       &r->json.name,
		                &r->json.made,    &r->elements.part, &r->elements.raw,   &r->elements.made,
		                &r->elements.key, &r->values.name,   &r->values.key,     &r->values.word,
		                &r->values.mark,  &r->elements.rest, &r->values.argument };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		bytes_free(all[i]);
	json_flow_free(&r->json.flow);
	json_flow_free(&r->json.inner);
	json_flow_free(&r->elements.flow);
	call_arguments_close(r->elements.types);
	json_decref(r->elements.declared);
	*r = (struct tool_reader){ 0 };
}

bool tool_reader_lost(const struct tool_reader *r)
{
	const struct call_arguments *types = r->elements.types;

	return r->lost || (types && call_arguments_lost(types)) || r->head.lost || r->out.lost || r->json.key.lost ||
	       r->json.name.lost || r->json.made.lost || r->elements.part.lost || r->elements.raw.lost ||
	       r->elements.key.lost || r->elements.made.lost || r->elements.rest.lost || r->values.name.lost ||
	       r->values.key.lost || r->values.word.lost || r->values.argument.lost || r->values.mark.lost ||
	       r->json.flow.held.lost || r->json.inner.held.lost || r->elements.flow.held.lost ||
	       (r->events && r->events->lost);
}

/* ---- what becomes known */

bool tool_reader_knows(const struct tool_reader *r, const char *name, const json_t **function)
{
	const json_t *one;
	size_t i;

	*function = NULL;
	json_array_foreach(r->functions, i, one)
	{
		const char *own = json_string_value(json_object_get(one, "name"));
		if (own && strcmp(own, name) == 0) {
			*function = one;
			return true;
		}
	}
	return !r->functions;
}

void tool_reader_tell(struct tool_reader *r, char *name)
{
	tool_events_begin(r->events, name);
	r->told = true;
	tool_reader_say(r);
}

void tool_reader_say(struct tool_reader *r)
{
	if (!r->told)
		return;
	tool_events_put(r->events, r->out.p, r->out.n);
	bytes_clear(&r->out);
}

void tool_reader_call_ends(struct tool_reader *r, bool whole)
{
	tool_reader_say(r);
	tool_events_end(r->events, whole);
	r->told = r->broken = false;
	if (whole)
		r->kept = r->taken;
}

enum tool_reading tool_reader_wrong(struct tool_reader *r)
{
	r->broken = r->told;
	tool_reader_say(r);
	return r->told ? READING : READ_NONE;
}

/* ---- a name, a mark and JSON */

/* The name alone: functions.NAME:NUMBER is how some write it. */
static char *bare_name(const char *p, size_t n, bool *lost)
{
	size_t digits = 0, word = 0;

	while (n && tool_is_space((unsigned char)*p)) {
		p++;
		n--;
	}
	while (word < n && !tool_is_space((unsigned char)p[word]) && p[word] != '<')
		word++;
	size_t behind = word;
	while (behind < n && tool_is_space((unsigned char)p[behind]))
		behind++;
	n = behind < n && p[behind] == '<' ? word : n; /* what else is told of it */
	while (n && tool_is_space((unsigned char)p[n - 1]))
		n--;
	while (digits < n && p[n - 1 - digits] >= '0' && p[n - 1 - digits] <= '9')
		digits++;
	if (digits && digits < n && p[n - 1 - digits] == ':')
		n -= digits + 1;
	if (n > 10 && memcmp(p, "functions.", 10) == 0) {
		p += 10;
		n -= 10;
	}
	char *name = n && !memchr(p, 0, n) ? strndup(p, n) : NULL;
	*lost = *lost || (n && !memchr(p, 0, n) && !name);
	return name;
}

/* Nothing but space, or the word for a language and space behind a fence. */
static bool leads_to_json(const char *p, size_t n, bool fenced)
{
	size_t i = 0;

	while (fenced && i < n && !tool_is_space((unsigned char)p[i]))
		i++;
	while (i < n && tool_is_space((unsigned char)p[i]))
		i++;
	return i == n;
}

/* The name in what stands before the JSON. Some write what they call where the name is, and the name behind the mark,
 * before a fence of three backquotes. NULL: it is no call, or lost. */
static char *name_of(struct tool_reader *r)
{
	const struct tools_row *row = r->row;
	const char *p = r->head.p, *end = p + r->head.n,
		   *split = memmem(p, r->head.n, row->mark[2], strlen(row->mark[2]));
	const char *rest = split ? split + strlen(row->mark[2]) : end;
	const char *fence = split ? memmem(rest, (size_t)(end - rest), "```", 3) : NULL;
	const char *from = fence ? rest : p, *to = fence ? fence : split, *json = fence ? fence + 3 : rest;

	if (!split || !leads_to_json(json, (size_t)(end - json), fence != NULL))
		return NULL;
	const char *more = row->mark[3] ? memmem(from, (size_t)(to - from), row->mark[3], strlen(row->mark[3])) : NULL;
	to = more ? more : to;
	const char *before =
		row->before_name ? memmem(from, (size_t)(to - from), row->before_name, strlen(row->before_name)) : NULL;
	from = before ? before + strlen(row->before_name) : from;
	return bare_name(from, (size_t)(to - from), &r->lost);
}

enum tool_reading tool_read_named(struct tool_reader *r, unsigned char byte)
{
	struct json_flow *f = &r->json.flow;
	bool before = f->depth == 0;

	if (before && byte != '{') {
		bytes_add(&r->head, &byte, 1);
		return READING;
	}
	if (before) {
		const json_t *function;
		char *name = r->head.n && !r->head.lost ? name_of(r) : NULL;
		bool known = name && tool_reader_knows(r, name, &function);
		free(name);
		if (!known)
			return READ_NONE;
	}
	enum flow s = json_flow_take(f, byte, &r->out);
	if (s == FLOW_WRONG)
		return tool_reader_wrong(r);
	if (!r->told && r->out.n >= 2)
		tool_reader_tell(r, name_of(r));
	tool_reader_say(r);
	if (s == FLOW_MORE)
		return READING;
	tool_reader_call_ends(r, true);
	return READ_WHOLE;
}

/* ---- all */

static enum tool_reading take(struct tool_reader *r, unsigned char byte)
{
	switch (r->way) {
	case WAY_JSON: return tool_read_json(r, byte);
	case WAY_NAMED: return tool_read_named(r, byte);
	case WAY_ELEMENTS: return tool_read_elements(r, byte);
	case WAY_VALUES: return tool_read_values(r, byte);
	case WAY_UNKNOWN: break;
	}
	return READING;
}

/* What the first bytes say; Python's calls may stand in brackets, too. */
static enum tool_way way_of(const struct tool_reader *r, unsigned char byte)
{
	bool python = r->row->body == BODY_PYTHON, bracket = r->head.n && memchr(r->head.p, '[', r->head.n);

	if (tool_is_space(byte) || (python && byte == '[' && !bracket))
		return WAY_UNKNOWN;
	if (python)
		return bracket && byte == '{' ? WAY_JSON : WAY_VALUES;
	return byte == '{' || byte == '[' ? WAY_JSON : WAY_ELEMENTS;
}

enum tool_reading tool_reader_take(struct tool_reader *r, unsigned char byte)
{
	enum tool_reading now = READING;

	r->taken++;
	if (r->broken) {
		bytes_add(&r->out, &byte, 1);
		tool_reader_say(r);
		return READING;
	}
	if (r->way != WAY_UNKNOWN)
		return take(r, byte);
	r->way = way_of(r, byte);
	bytes_add(&r->head, &byte, 1);
	if (r->way == WAY_UNKNOWN)
		return READING;
	for (size_t i = 0; i < r->head.n && now == READING; i++)
		now = take(r, (unsigned char)r->head.p[i]);
	return now;
}

bool tool_reader_quoted(const struct tool_reader *r)
{
	const struct read_values *v = &r->values;

	if (r->broken)
		return false;
	switch (r->way) {
	case WAY_JSON:
	case WAY_NAMED: return json_flow_quoted(&r->json.flow);
	case WAY_ELEMENTS: return r->elements.at == IN_VALUE && !tool_value_unclosed(r);
	case WAY_VALUES: return v->at == VALUES_QUOTED || v->at == VALUES_MARKED;
	case WAY_UNKNOWN: break;
	}
	return false;
}

enum tool_reading tool_reader_end(struct tool_reader *r, bool closed)
{
	if (r->way == WAY_ELEMENTS && !r->broken)
		return tool_end_elements(r, closed);
	if (r->told) {
		tool_reader_call_ends(r, false);
		return READ_WHOLE;
	}
	return r->json.ended || (r->kept && r->kept == r->taken) ? READ_WHOLE : READ_NONE;
}
