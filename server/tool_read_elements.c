/* server/tool_read_elements.c - calls that are written as elements, and which of their values are texts.
 *
 * Elements do not say that: by the schema of a call, {"name": NAME, "arguments": {...}}, a value is a text where
 * nothing else is right; else it is JSON where it can be read as such, as without a schema. call.h writes by the same
 * rule. What is a text goes on as it comes, and so does what may not be one. Of others nothing is said while they may
 * still turn out to be either.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/call_arguments.h"
#include "server/tool_reader.h"

static const char cdata[] = "<![CDATA[";

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

static enum tool_reading begin_call(struct tool_reader *r, bool trimmed)
{
	struct read_elements *e = &r->elements;
	char *name = name_in(&e->part, trimmed, &r->lost),
	     *text = name && r->schemas ? spell(name, strlen(name)) : NULL;

	bytes_clear(&e->part);
	if (!name)
		return READ_NONE;
	r->lost = r->lost || (e->types && call_arguments_lost(e->types));
	call_arguments_close(e->types);
	e->types = text ? call_arguments_open(r->schemas, text, &r->lost) : NULL;
	r->lost = r->lost || (r->schemas && !text);
	free(text);
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
	bytes_clear(&r->elements.part);
	r->elements.at = SEEK_NAME;
	return READING;
}

/* ---- values */

static bool one_of_lines(const struct tool_reader *r) { return r->form == TOOLS_ELEMENTS; }

/* Its key is the part. plain: the form says that it is a text. */
static void begin_value(struct tool_reader *r, const char *key, bool plain)
{
	struct read_elements *e = &r->elements;

	e->known = e->types && call_arguments_key(e->types, key);
	bool wanted = e->known && call_arguments_wants_text(e->types);
	/* Where the schema is silent about it, line ends are as in other forms. */
	e->loose = !plain && (!e->known || one_of_lines(r));
	e->may_be_text = !e->known || call_arguments_takes_text(e->types);
	e->plain = plain || wanted;
	e->value_is = VALUE_BEGINS;
	e->line = false;
	bytes_clear(&e->raw);
	bytes_clear(&e->made);
	json_flow_clear(&e->flow);
	bytes_text(&r->out, e->some ? "," : "");
	bytes_text(&r->out, key);
	bytes_text(&r->out, ":");
	e->some = true;
	e->at = IN_VALUE;
}

/* What has become known of the value goes on, to the machine of the schema, too. */
static void say(struct tool_reader *r, struct bytes *what)
{
	struct read_elements *e = &r->elements;

	if (e->known)
		call_arguments_value(e->types, what->p ? what->p : "", what->n);
	bytes_add(&r->out, what->p, what->n);
	bytes_clear(what);
	tool_reader_say(r);
}

static void be_text(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;

	e->value_is = VALUE_TEXT;
	bytes_clear(&e->made);
	bytes_text(&e->made, "\"");
	for (size_t i = 0; i < e->raw.n; i++)
		json_flow_escape((unsigned char)e->raw.p[i], &e->made);
	say(r, &e->made);
}

static void try_byte(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;
	bool first = e->flow.at == FLOW_AT_VALUE && e->flow.depth == 0;

	bytes_add(&e->raw, &byte, 1);
	enum flow s = json_flow_take(&e->flow, byte, &e->made);
	if (s == FLOW_WRONG) {
		be_text(r);
	} else if (first && (byte == '{' || byte == '[') && !e->may_be_text) {
		e->value_is = VALUE_JSON;
		say(r, &e->made);
	}
}

static void put(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;
	const bool whole = e->flow.at == FLOW_AT_END;

	switch (e->value_is) {
	case VALUE_BEGINS:
	case VALUE_TRIED: try_byte(r, byte); break;
	case VALUE_TEXT:
		json_flow_escape(byte, &e->made);
		say(r, &e->made);
		break;
	case VALUE_JSON:
		if (r->broken) {
			bytes_add(&r->out, &byte, 1);
		} else if (json_flow_take(&e->flow, byte, &e->made) == FLOW_WRONG) {
			/* Behind a whole value it could go on the arguments: two commas are no JSON anywhere. */
			bytes_text(&r->out, whole ? ",," : "");
			bytes_add(&r->out, e->made.p, e->made.n);
			tool_reader_wrong(r);
		} else {
			say(r, &e->made);
		}
		break;
	}
}

/* The first bytes; true: that was all to be done with this one. */
static bool begins_value(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;
	const size_t n = e->raw.n;

	if (r->form == TOOLS_PARAM && byte == (unsigned char)cdata[n]) {
		bytes_add(&e->raw, &byte, 1);
		if (n + 2 < sizeof cdata)
			return true;
		bytes_clear(&e->raw);
		snprintf(e->close, sizeof e->close, "]]></%s>", r->row->name);
		e->loose = false;
		be_text(r);
		return true;
	}
	e->value_is = VALUE_TRIED;
	if (n || e->plain) /* what might have become CDATA begins no JSON */
		be_text(r);
	return n == 0 && e->loose && byte == '\n';
}

/* Bytes of the value that are no part of its closing mark: what stands around it is taken off. */
static void value_byte(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;

	if (e->value_is == VALUE_BEGINS && begins_value(r, byte))
		return;
	/* One line's end before the mark is not the value's. */
	if (e->line)
		put(r, '\n');
	e->line = e->loose && byte == '\n';
	if (!e->line)
		put(r, byte);
}

static enum tool_reading end_value(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;

	if (e->value_is == VALUE_BEGINS || e->value_is == VALUE_TRIED) {
		if (!e->plain && json_flow_end(&e->flow, &e->made) == FLOW_DONE) {
			say(r, &e->made);
			e->value_is = VALUE_JSON;
		} else {
			be_text(r);
		}
	}
	if (e->value_is == VALUE_TEXT) {
		bytes_text(&e->made, "\"");
		say(r, &e->made);
	} else if (json_flow_end(&e->flow, &e->made) != FLOW_DONE) {
		bytes_text(&r->out, e->close);
		return tool_reader_wrong(r);
	}
	if (r->row->body == BODY_INVOKE)
		snprintf(e->close, sizeof e->close, "</%s>", r->row->name);
	e->at = SEEK_KEY;
	return READING;
}

/* Bytes go to the value as soon as they cannot be the beginning of its closing mark. */
static enum tool_reading in_value(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;

	bytes_add(&e->part, &byte, 1);
	while (e->part.n && !r->broken) {
		size_t n = strlen(e->close), same = e->part.n < n ? e->part.n : n;
		if (memcmp(e->part.p, e->close, same) != 0) {
			value_byte(r, (unsigned char)e->part.p[0]);
			memmove(e->part.p, e->part.p + 1, --e->part.n);
			continue;
		}
		if (same < n)
			return READING;
		bytes_clear(&e->part);
		return end_value(r);
	}
	if (r->broken) {
		bytes_add(&r->out, e->part.p, e->part.n);
		bytes_clear(&e->part);
		tool_reader_say(r);
	}
	return READING;
}

/* ---- all */

/* The value's mark, or the rest of the element before it. */
static enum tool_reading behind_key(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	bool plain = memmem(e->part.p ? e->part.p : "", e->part.n, "string=\"true\"", 13) != NULL;

	bytes_clear(&e->part);
	begin_value(r, e->key.n ? e->key.p : "\"\"", plain);
	return READING;
}

static enum tool_reading end_key(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	char *key = spell(e->part.p ? e->part.p : "", e->part.n);

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
			bytes_clear(&e->part);
			e->at = IN_NAME;
		}
		return READING;
	case IN_NAME: return in_name(r);
	case SEEK_KEY:
		if (r->row->body == BODY_FUNCTIONS && ends_with(&e->part, "</function>"))
			return end_call(r);
		if (ends_with(&e->part, e->open)) {
			bytes_clear(&e->part);
			e->at = IN_KEY;
		}
		return READING;
	case IN_KEY: return ends_with(&e->part, e->behind_key) ? end_key(r) : READING;
	case SEEK_VALUE: return ends_with(&e->part, e->value) ? behind_key(r) : READING;
	case BEHIND_NAME:
	case IN_VALUE: break;
	}
	return READING;
}

enum tool_reading tool_end_elements(struct tool_reader *r, bool closed)
{
	struct read_elements *e = &r->elements;

	if (!r->told && r->row->body == BODY_KEYS && e->at == IN_NAME && closed && begin_call(r, true) == READ_NONE)
		return READ_NONE;
	if (!r->told)
		return r->kept ? READ_WHOLE : READ_NONE;
	if (!closed || e->at == IN_VALUE)
		tool_reader_call_ends(r, false);
	else
		end_call(r);
	return READ_WHOLE;
}
