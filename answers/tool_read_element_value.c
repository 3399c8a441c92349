/* answers/tool_read_element_value.c - which values of elements are texts.
 *
 * Elements do not say that. By the schema of the function's parameters, a value is a text where nothing else is right;
 * else it is JSON where that is right, else Python's word for a JSON value that is, else a text. Where the schema is
 * not known, it is JSON where it can be read as such. call.h writes by the same rule. What is a text goes on as it
 * comes, and so does what may not be one. Of others nothing is said while they may still turn out to be either.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "answers/call_arguments.h"
#include "answers/tool_reader.h"

static const char cdata[] = "<![CDATA[";

static bool one_of_lines(const struct tool_reader *r) { return r->form == TOOLS_ELEMENTS; }

void tool_value_begin(struct tool_reader *r, const char *key, bool plain)
{
	struct read_elements *e = &r->elements;

	e->known = e->types && call_arguments_key(e->types, key);
	bool wanted = e->known && call_arguments_wants_text(e->types);
	/* Where the schema is silent about it, line ends are as in other forms. */
	e->loose = !plain && (!e->known || one_of_lines(r));
	e->may_be_text = !e->known || call_arguments_takes_text(e->types);
	e->plain = plain || wanted;
	e->value_is = VALUE_BEGINS;
	e->line = e->escaped = false;
	e->fresh = e->right = true;
	e->n_tried = 0;
	e->quote = 0;
	e->skip = 0;
	if (e->known)
		call_arguments_try(e->types);
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

static void put_raw(const struct read_elements *e, struct bytes *out)
{
	bytes_text(out, "\"");
	for (size_t i = 0; i < e->raw.n; i++)
		json_flow_escape((unsigned char)e->raw.p[i], out);
}

static void be_text(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;

	e->value_is = VALUE_TEXT;
	bytes_clear(&e->made);
	put_raw(e, &e->made);
	say(r, &e->made);
}

/* ---- what a value may be */

/* Whether this JSON text is a right value. What was tried before is forgotten. */
static bool fits(struct read_elements *e, const char *p, size_t n)
{
	call_arguments_try(e->types);
	return call_arguments_try_bytes(e->types, p, n) && call_arguments_try_ends(e->types);
}

static bool text_fits(struct read_elements *e)
{
	struct bytes text = { 0 };

	put_raw(e, &text);
	bytes_text(&text, "\"");
	bool right = !text.lost && fits(e, text.p, text.n);
	e->made.lost = e->made.lost || text.lost;
	bytes_free(&text);
	return right;
}

static const struct {
	const char *text, *json;
} words[] = { { "True", "true" }, { "False", "false" }, { "None", "null" }, { "Null", "null" } };
enum { WORDS = sizeof words / sizeof *words };

/* What was read, without space around it. */
static const char *word_of(const struct read_elements *e, size_t *n)
{
	const char *p = e->raw.n ? e->raw.p : "";

	for (*n = e->raw.n; *n && tool_is_space((unsigned char)*p); p++)
		--*n;
	while (*n && tool_is_space((unsigned char)p[*n - 1]))
		--*n;
	return p;
}

/* A word that stands for a right value; spelled as Python does, or with any letters small and large. NULL: none. */
static const char *right_word(struct read_elements *e, bool any)
{
	size_t n;
	const char *p = word_of(e, &n);

	for (size_t i = 0; i < (any ? WORDS : 3); i++)
		if (n == strlen(words[i].text) && (any ? strncasecmp : strncmp)(p, words[i].text, n) == 0 &&
		    fits(e, words[i].json, strlen(words[i].json)))
			return words[i].json;
	return NULL;
}

/* Whether what was read may become such a word. */
static bool may_be_word(struct read_elements *e)
{
	size_t n;
	const char *p = word_of(e, &n);

	for (size_t i = 0; i < WORDS && e->known; i++)
		if (n <= strlen(words[i].text) && strncasecmp(p, words[i].text, n) == 0 &&
		    fits(e, words[i].json, strlen(words[i].json)))
			return true;
	return false;
}

/* ---- bytes */

/* What of the value is JSON now is tried by the schema. */
static void judge(struct read_elements *e)
{
	if (e->known && e->right && e->made.n > e->n_tried)
		e->right = call_arguments_try_bytes(e->types, e->made.p + e->n_tried, e->made.n - e->n_tried);
	e->n_tried = e->made.n;
}

static void try_byte(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;
	bool first = e->flow.at == FLOW_AT_VALUE && e->flow.depth == 0;

	bytes_add(&e->raw, &byte, 1);
	bool wrong = e->flow.at == FLOW_AT_ERROR || json_flow_take(&e->flow, byte, &e->made) == FLOW_WRONG;
	if (!wrong)
		judge(e);
	if (first && (byte == '{' || byte == '[') && !e->may_be_text) {
		e->value_is = VALUE_JSON;
		say(r, &e->made);
	} else if (wrong || (!e->right && e->may_be_text)) {
		e->right = false;
		if (!may_be_word(e))
			be_text(r);
	}
}

/* JSON with Python's words and quotes in it, which have no place in JSON. n bytes for one. */
static size_t as_json(struct read_elements *e, unsigned char byte, char out[8])
{
	const char *made = NULL;

	out[0] = (char)byte;
	if (e->skip) {
		e->skip -= byte == (unsigned char)"one"[3 - e->skip] ? 1 : e->skip;
		return byte == 'o' || byte == 'n' || byte == 'e' ? 0 : 1;
	}
	if (e->quote && e->escaped) {
		e->escaped = false;
		out[0] = '\\';
		out[1] = (char)byte;
		if (byte != '\'')
			return 2;
		made = "'";
	} else if (e->quote && byte == '\\') {
		e->escaped = true;
		made = "";
	} else if (e->quote) {
		made = byte == '"' ? "\\\"" : byte == '\'' ? "\"" : NULL;
		e->quote = byte == '\'' ? 0 : e->quote;
	} else if (!json_flow_quoted(&e->flow)) {
		made = byte == '\'' ? "\"" : byte == 'T' ? "t" : byte == 'F' ? "f" : byte == 'N' ? "null" : NULL;
		e->quote = byte == '\'' ? '\'' : 0;
		e->skip = byte == 'N' ? 3 : 0;
	}
	if (!made)
		return 1;
	strcpy(out, made);
	return strlen(made);
}

static void put_json(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;
	const bool whole = e->flow.at == FLOW_AT_END;
	char made[8];

	if (r->broken) {
		bytes_add(&r->out, &byte, 1);
		return;
	}
	size_t n = as_json(e, byte, made);
	for (size_t i = 0; i < n; i++) {
		if (json_flow_take(&e->flow, (unsigned char)made[i], &e->made) != FLOW_WRONG)
			continue;
		/* Behind a whole value it could go on the arguments: two commas are no JSON anywhere. */
		bytes_text(&r->out, whole ? ",," : "");
		bytes_add(&r->out, e->made.p, e->made.n);
		tool_reader_wrong(r);
		return;
	}
	say(r, &e->made);
}

static void put(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;

	switch (e->value_is) {
	case VALUE_BEGINS:
	case VALUE_TRIED: try_byte(r, byte); break;
	case VALUE_TEXT:
		json_flow_escape(byte, &e->made);
		say(r, &e->made);
		break;
	case VALUE_JSON: put_json(r, byte); break;
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

void tool_value_byte(struct tool_reader *r, unsigned char byte)
{
	struct read_elements *e = &r->elements;

	e->fresh = byte == '\n';
	if (e->value_is == VALUE_BEGINS && begins_value(r, byte))
		return;
	/* One line's end before the mark is not the value's. */
	if (e->line)
		put(r, '\n');
	e->line = e->loose && byte == '\n';
	if (!e->line)
		put(r, byte);
}

/* All of the value is there: it is JSON, with its text in `made`; else a text. */
static bool is_json(struct read_elements *e)
{
	if (e->plain)
		return false;
	bool whole = e->flow.at != FLOW_AT_ERROR && json_flow_end(&e->flow, &e->made) == FLOW_DONE;
	if (whole)
		judge(e);
	if (!e->known || (whole && e->right && call_arguments_try_ends(e->types)))
		return whole;
	const char *word = right_word(e, false);
	if (!word && e->may_be_text && text_fits(e))
		return false;
	if (!word)
		word = right_word(e, true);
	if (word) {
		bytes_clear(&e->made);
		bytes_text(&e->made, word);
		return true;
	}
	/* Nothing of it is right: it is of a kind that may stand here, if it is of any. */
	call_arguments_try(e->types);
	return whole && (!e->may_be_text || (e->made.n && call_arguments_try_bytes(e->types, e->made.p, 1)));
}

enum tool_reading tool_value_end(struct tool_reader *r)
{
	struct read_elements *e = &r->elements;
	bool tried = e->value_is == VALUE_BEGINS || e->value_is == VALUE_TRIED;

	if (tried && is_json(e)) {
		say(r, &e->made);
		e->value_is = VALUE_JSON;
	} else {
		if (tried)
			be_text(r);
		if (e->value_is == VALUE_TEXT) {
			bytes_text(&e->made, "\"");
			say(r, &e->made);
		} else if (json_flow_end(&e->flow, &e->made) != FLOW_DONE) {
			bytes_text(&r->out, e->close);
			return tool_reader_wrong(r);
		}
	}
	if (r->row->body == BODY_INVOKE)
		snprintf(e->close, sizeof e->close, "</%s>", r->row->name);
	if (e->of_key) {
		r->lost = r->lost || call_arguments_lost(e->types);
		call_arguments_close(e->types);
		e->types = NULL;
		e->of_key = false;
	}
	e->at = SEEK_KEY;
	return READING;
}
