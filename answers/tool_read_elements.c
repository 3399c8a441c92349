/* answers/tool_read_elements.c - calls that are written as elements.
 *
 * What closes a value may also stand in a text: it closes where what follows goes on the call. A value whose closing
 * mark was left out ends where a line begins with the next parameter of the function, or with the end of the call. What
 * is no part of any argument is a text behind the call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/call_arguments.h"
#include "answers/tool_reader.h"
#include "base/json_write.h"

static const char function_ends[] = "</function>";

void tool_begin_elements(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	const char *word = r->row->name;

	if (r->row->body == BODY_FUNCTIONS) {
		e->at = SEEK_NAME;
		strcpy(e->open, "<parameter=");
		strcpy(e->behind_key, ">");
		strcpy(e->close, "</parameter>");
	} else if (r->row->body == BODY_KEYS) {
		e->at = IN_NAME;
		snprintf(e->open, sizeof e->open, "<arg_key%s>", word ? word : "");
		snprintf(e->behind_key, sizeof e->behind_key, "</arg_key%s>", word ? word : "");
		snprintf(e->value, sizeof e->value, "<arg_value%s>", word ? word : "");
		snprintf(e->close, sizeof e->close, "</arg_value%s>", word ? word : "");
	} else {
		e->at = IN_NAME;
		snprintf(e->open, sizeof e->open, "<%s name=\"", word);
		strcpy(e->behind_key, "\"");
		strcpy(e->value, ">");
		snprintf(e->close, sizeof e->close, "</%s>", word);
	}
}

/* Whether the part so far ends with the mark, which is taken off it. */
static bool ends_with(struct bytes *part, const char *mark)
{
	size_t n = strlen(mark);

	if (part->n < n || n == 0 || memcmp(part->p + part->n - n, mark, n) != 0)
		return false;
	part->n -= n;
	return true;
}

/* ---- names */

/* A name without space in it; trimmed: but around it. NULL: it is none, or lost. */
static char *name_in(const struct bytes *part, bool trimmed, bool *lost)
{
	size_t from = 0, to = part->n;

	while (trimmed && from < to && tool_is_space((unsigned char)part->p[from]))
		from++;
	while (trimmed && to > from && tool_is_space((unsigned char)part->p[to - 1]))
		to--;
	for (size_t i = from; i < to; i++)
		if (tool_is_space((unsigned char)part->p[i]) || strchr("<>\"", part->p[i]))
			return NULL;
	char *name = to > from ? strndup(part->p + from, to - from) : NULL;
	*lost = *lost || (to > from && !name);
	return name;
}

/* Texts of JSON, malloc'ed. */
static char *spell(const char *p, size_t n)
{
	struct bytes text = { 0 };

	bytes_text(&text, "\"");
	for (size_t i = 0; i < n; i++)
		json_flow_escape((unsigned char)p[i], &text);
	bytes_add(&text, "\"", 2);
	if (!text.lost)
		return text.p;
	bytes_free(&text);
	return NULL;
}

/* What stands between the parts of calls is a text, but for space and brackets. */
static void say_rest(struct tool_reader *r)
{
	struct bytes *b = &r->elements.rest;
	const size_t to = b->n;
	size_t from = 0;

	while (from < to && b->p[from] && strchr("`}]) \t\r\n,;", b->p[from]))
		from++;
	tool_events_text(r->events, to > from ? b->p + from : "", to - from);
	bytes_clear(b);
}

static void take_rest(struct read_elements *e)
{
	bytes_add(&e->rest, e->part.p, e->part.n);
	bytes_clear(&e->part);
}

/* What is known of the function's parameters. */
static void know(struct tool_reader *r, const json_t *function)
{
	struct read_elements *e = &r->elements;
	const json_t *parameters = json_object_get(function, "parameters"),
		     *properties = json_object_get(parameters, "properties");
	char *text = json_is_object(parameters) ? json_spell(parameters, JSON_COMPACT) : NULL;

	r->lost = r->lost || (e->types && call_arguments_lost(e->types)) || (json_is_object(parameters) && !text);
	call_arguments_close(e->types);
	e->types = text ? call_arguments_open(text, &r->lost) : NULL;
	e->parameters = parameters;
	free(text);
	json_decref(e->declared);
	e->declared = json_is_object(properties) ? json_copied(properties, false) : NULL;
	r->lost = r->lost || (json_is_object(properties) && !e->declared);
}

static enum tool_reading begin_call(struct tool_reader *r, bool trimmed)
{
	struct read_elements *e = &r->elements;
	char *name = name_in(&e->part, trimmed, &r->lost);
	const json_t *function = NULL;

	bytes_clear(&e->part);
	if (!name || !tool_reader_knows(r, name, &function)) {
		free(name);
		return READ_NONE;
	}
	know(r, function);
	say_rest(r);
	e->at = SEEK_KEY;
	e->some = false;
	bytes_text(&r->out, "{");
	tool_reader_tell(r, name);
	return READING;
}

static enum tool_reading end_call(struct tool_reader *r)
{
	bytes_text(&r->out, "}");
	tool_reader_call_ends(r, true);
	take_rest(&r->elements);
	say_rest(r);
	r->elements.at = SEEK_NAME;
	return r->elements.alone ? READ_WHOLE : READING;
}

/* ---- where values end */

enum ends { GOES_ON, MAY_END, ENDS, ENDS_UNCLOSED };

static enum ends like(const struct bytes *part, size_t from, const char *mark)
{
	size_t n = mark ? strlen(mark) : 0, left = part->n - from, same = left < n ? left : n;

	if (n == 0 || memcmp(part->p + from, mark, same) != 0)
		return GOES_ON;
	return same == n ? ENDS : MAY_END;
}

static size_t behind_space(const struct bytes *part, size_t from)
{
	while (from < part->n && tool_is_space((unsigned char)part->p[from]))
		from++;
	return from;
}

/* The next parameter's element, whose key the function has and which had no value yet. */
static enum ends like_next(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	size_t n = strlen(e->open);
	enum ends now = e->declared ? like(&e->part, 0, e->open) : GOES_ON;

	if (now != ENDS)
		return now;
	const char *key = e->part.p + n, *end = memmem(key, e->part.n - n, e->behind_key, strlen(e->behind_key));
	if (!end)
		return e->part.n - n > 200 || memchr(key, '\n', e->part.n - n) ? GOES_ON : MAY_END;
	char *name = strndup(key, (size_t)(end - key));
	bool declared = name && json_object_get(e->declared, name);
	r->lost = r->lost || !name;
	free(name);
	return declared ? ENDS_UNCLOSED : GOES_ON;
}

/* Whether what is held ends the function, but for what closes the value: it does where the call ends behind it. */
bool tool_value_unclosed(const struct tool_reader *r)
{
	const struct read_elements *e = &r->elements;

	return e->at == IN_VALUE && e->fresh && r->functions && r->row->body == BODY_FUNCTIONS && e->part.n &&
	       like(&e->part, 0, function_ends) == ENDS &&
	       behind_space(&e->part, sizeof function_ends - 1) == e->part.n;
}

/* What the part begins with. */
static enum ends value_ends(struct tool_reader *r)
{
	const struct read_elements *e = &r->elements;
	enum ends now = like(&e->part, 0, e->close), other;

	if (now == ENDS || !e->fresh || !r->functions)
		return now;
	if ((other = like_next(r)) != GOES_ON)
		return other;
	const bool functions = r->row->body == BODY_FUNCTIONS;
	return (functions && like(&e->part, 0, function_ends) == MAY_END) || tool_value_unclosed(r) ? MAY_END : now;
}

/* What was held is read from where the reader is now. */
static enum tool_reading read_again(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	struct bytes part = e->part;
	enum tool_reading now = READING;

	e->part = (struct bytes){ 0 };
	for (size_t i = 0; i < part.n && now == READING; i++) {
		unsigned char byte = (unsigned char)part.p[i];
		if (r->broken)
			bytes_add(&r->out, &byte, 1);
		else
			now = tool_read_elements(r, byte);
	}
	if (r->broken)
		tool_reader_say(r);
	e->part.lost = e->part.lost || part.lost;
	bytes_free(&part);
	return now;
}

/* Bytes go to the value as soon as they cannot be the beginning of what ends it. */
static enum tool_reading in_value(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;

	bytes_add(&e->part, &byte, 1);
	while (e->part.n && !r->broken) {
		enum ends now = value_ends(r);
		if (now == MAY_END)
			return READING;
		if (now == ENDS_UNCLOSED)
			return tool_value_end(r) == READING ? read_again(r) : READ_NONE;
		if (now == ENDS) {
			bytes_clear(&e->part);
			if (!e->may_be_text && e->value_is != VALUE_TEXT)
				return tool_value_end(r);
			e->at = BEHIND_VALUE;
			return READING;
		}
		tool_value_byte(r, (unsigned char)e->part.p[0]);
		memmove(e->part.p, e->part.p + 1, --e->part.n);
	}
	if (r->broken) {
		bytes_add(&r->out, e->part.p, e->part.n);
		bytes_clear(&e->part);
		tool_reader_say(r);
	}
	return READING;
}

/* A mark that closes a text: it is part of that unless the call goes on behind it. */
static enum tool_reading behind_value(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;
	const bool functions = r->row->body == BODY_FUNCTIONS;
	const char *const marks[] = { e->open,
		                      r->row->mark[0],
		                      r->row->mark[1],
		                      r->row->mark[5],
		                      functions ? function_ends : NULL,
		                      functions ? "<function=" : NULL };
	bool may = false;

	bytes_add(&e->part, &byte, 1);
	size_t at = behind_space(&e->part, 0);
	for (size_t i = 0; i < sizeof marks / sizeof *marks && at < e->part.n; i++) {
		enum ends now = like(&e->part, at, marks[i]);
		if (now == ENDS)
			return tool_value_end(r) == READING ? read_again(r) : READ_NONE;
		may = may || now == MAY_END;
	}
	if (may || at == e->part.n)
		return READING;
	e->at = IN_VALUE;
	for (const char *p = e->close; *p; p++)
		tool_value_byte(r, (unsigned char)*p);
	return read_again(r);
}

/* ---- all */

/* The value's mark, or the rest of the element before it. */
static enum tool_reading behind_key(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	bool plain = memmem(e->part.p ? e->part.p : "", e->part.n, "string=\"true\"", 13) != NULL;

	bytes_clear(&e->part);
	tool_value_begin(r, e->key.n ? e->key.p : "\"\"", plain);
	return READING;
}

static enum tool_reading end_key(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	char *key = spell(e->part.p ? e->part.p : "", e->part.n),
	     *name = strndup(e->part.n ? e->part.p : "", e->part.n);

	if (name && e->declared)
		json_object_del(e->declared, name);
	if (name && !e->types) {
		e->types = call_arguments_of_key(e->parameters, name, &r->lost);
		e->of_key = e->types != NULL;
	}
	e->key.lost = e->key.lost || !name;
	free(name);
	bytes_clear(&e->part);
	bytes_clear(&e->key);
	bytes_take(&e->key, key);
	bytes_add(&e->key, "", 1);
	if (e->key.lost)
		return READ_NONE;
	e->at = SEEK_VALUE;
	return e->value[0] ? READING : behind_key(r);
}

static enum tool_reading in_name(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;

	if (r->row->body == BODY_KEYS) {
		if (r->form == TOOLS_HY && ends_with(&e->part, "<tool_sep:opensource>"))
			return begin_call(r, true);
		if (!ends_with(&e->part, e->open))
			return READING;
		enum tool_reading now = begin_call(r, true);
		e->at = now == READING ? IN_KEY : e->at;
		return now;
	}
	if (!ends_with(&e->part, r->row->body == BODY_INVOKE ? "\"" : ">"))
		return READING;
	if (r->row->body == BODY_FUNCTIONS)
		return begin_call(r, false);
	e->at = BEHIND_NAME;
	return READING;
}

enum tool_reading tool_read_elements(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;

	if (e->at == IN_VALUE)
		return in_value(r, byte);
	if (e->at == BEHIND_VALUE)
		return behind_value(r, byte);
	if (e->at == BEHIND_NAME) { /* the element ends here, or it is none; part is the name */
		if (tool_is_space(byte))
			return READING;
		return byte == '>' ? begin_call(r, false) : READ_NONE;
	}
	bytes_add(&e->part, &byte, 1);
	if (e->part.lost)
		return READ_NONE;
	switch (e->at) {
	case SEEK_NAME:
		if (ends_with(&e->part, "<function=")) {
			take_rest(e);
			e->at = IN_NAME;
		}
		return READING;
	case IN_NAME: return in_name(r);
	case SEEK_KEY:
		if (r->row->body == BODY_FUNCTIONS && ends_with(&e->part, function_ends))
			return end_call(r);
		if (ends_with(&e->part, e->open)) {
			take_rest(e);
			e->at = IN_KEY;
		}
		return READING;
	case IN_KEY: return ends_with(&e->part, e->behind_key) ? end_key(r) : READING;
	case SEEK_VALUE: return ends_with(&e->part, e->value) ? behind_key(r) : READING;
	case BEHIND_NAME:
	case IN_VALUE:
	case BEHIND_VALUE: break;
	}
	return READING;
}

enum tool_reading tool_end_elements(struct tool_reader *r, bool closed)
{
	struct read_elements *e = &r->elements;

	if (!r->told && r->row->body == BODY_KEYS && e->at == IN_NAME && closed && begin_call(r, true) == READ_NONE)
		return READ_NONE;
	if (!r->told) {
		if (r->kept && e->at == SEEK_NAME) {
			take_rest(e);
			say_rest(r);
		}
		return r->kept && e->at == SEEK_NAME ? READ_WHOLE : READ_NONE;
	}
	bool unclosed = closed && tool_value_unclosed(r);
	if (((e->at == BEHIND_VALUE && closed) || unclosed) && tool_value_end(r) == READING)
		bytes_clear(&e->part);
	if (!closed || e->at == IN_VALUE || r->broken)
		tool_reader_call_ends(r, false);
	else
		end_call(r);
	return READ_WHOLE;
}
