/* answers/tool_read_values.c - calls whose arguments are written in a language of their own.
 *
 * Calls as Python writes them, f(x=1, y='a'), stand one behind another with commas or lines between them, also in
 * brackets or behind three backquotes. Gemma 4 writes f{key:<|"|>text<|"|>,other:[1,true]}. A value that is none of
 * its language is a text as it stands, which is known at its end alone.
 */
#include <stdlib.h>
#include <string.h>

#include "answers/call_arguments.h"
#include "answers/tool_reader.h"

static const char quote_mark[] = "<|\"|>";
enum { QUOTE_BYTES = sizeof quote_mark - 1 };

static bool is_name(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       c == '.';
}

static bool is_among(unsigned char c, const char *bytes) { return c && strchr(bytes, c); }

/* A byte that has no place here: it goes on as it is. Two commas have no place in any JSON, so that whatever comes
 * behind them, the arguments are none. */
static enum tool_reading refuse(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	if (r->told) {
		bytes_text(&r->out, ",,");
		bytes_add(&r->out, v->key.p, v->key.n);
		bytes_add(&r->out, v->word.p, v->word.n);
		bytes_add(&r->out, v->mark.p, v->mark.n);
		bytes_add(&r->out, &byte, 1);
	}
	return tool_reader_wrong(r);
}

/* ---- objects and lists */

static enum tool_reading open_level(struct tool_reader *r, char close, unsigned char byte)
{
	struct read_values *v = &r->values;

	if (v->depth == VALUES_DEPTH)
		return refuse(r, byte);
	v->level[v->depth] = close;
	v->some[v->depth++] = false;
	bytes_text(&r->out, close == ']' ? "[" : "{");
	v->at = close == ']' ? VALUES_VALUE : VALUES_KEY;
	return READING;
}

static char level_of(const struct read_values *v) { return v->level[v->depth - 1]; }

/* A value is complete. */
static enum tool_reading behind_value(struct tool_reader *r)
{
	struct read_values *v = &r->values;

	tool_reader_say(r);
	v->at = level_of(v) == ']' ? VALUES_VALUE : VALUES_KEY;
	return READING;
}

static enum tool_reading close_level(struct tool_reader *r)
{
	struct read_values *v = &r->values;

	bytes_text(&r->out, level_of(v) == ']' ? "]" : "}");
	if (--v->depth)
		return behind_value(r);
	if (!r->told) { /* there are no arguments */
		bytes_add(&v->name, "", 1);
		tool_reader_tell(r, v->name.lost ? NULL : strdup(v->name.p));
	}
	tool_reader_call_ends(r, true);
	bytes_clear(&v->name);
	v->at = VALUES_SEEK;
	return r->row->body == BODY_BRACES ? READ_WHOLE : READING;
}

/* What stands before a value that has begun: with it the call is told. */
static void begin_value(struct tool_reader *r)
{
	struct read_values *v = &r->values;
	unsigned top = v->depth - 1;

	bytes_text(&r->out, v->some[top] ? "," : "");
	v->some[top] = true;
	if (level_of(v) != ']') {
		bytes_add(&r->out, v->key.p, v->key.n);
		bytes_text(&r->out, ":");
		bytes_clear(&v->argument);
		bytes_add(&v->argument, v->key.p, v->key.n);
		bytes_add(&v->argument, "", 1);
		v->argument.n -= !v->argument.lost;
		bytes_clear(&v->key);
	}
	if (r->told)
		return;
	bytes_add(&v->name, "", 1);
	tool_reader_tell(r, v->name.lost ? NULL : strdup(v->name.p));
}

/* ---- texts, keys and words */

static struct bytes *text_of(struct tool_reader *r) { return r->values.of_key ? &r->values.key : &r->out; }

static void begin_text(struct tool_reader *r, bool of_key, char quote)
{
	struct read_values *v = &r->values;

	if (!of_key)
		begin_value(r);
	v->of_key = of_key;
	v->quote = quote;
	v->escaped = false;
	v->at = quote ? VALUES_QUOTED : VALUES_MARKED;
	bytes_clear(&v->mark);
	bytes_text(text_of(r), "\"");
}

static enum tool_reading end_text(struct tool_reader *r)
{
	bytes_text(text_of(r), "\"");
	if (!r->values.of_key)
		return behind_value(r);
	r->values.at = VALUES_COLON;
	return READING;
}

/* Python's texts: 'a', "a", with the escapes that JSON has, too. */
static enum tool_reading in_quoted(struct tool_reader *r, unsigned char byte)
{
	static const char letters[] = "nrtbf", meant[] = "\n\r\t\b\f";
	struct read_values *v = &r->values;

	if (!v->escaped && byte == (unsigned char)v->quote)
		return end_text(r);
	if (!v->escaped && byte == '\\') {
		v->escaped = true;
		return READING;
	}
	const char *letter = v->escaped && byte ? strchr(letters, byte) : NULL;
	json_flow_escape((unsigned char)(letter ? meant[letter - letters] : (char)byte), text_of(r));
	v->escaped = false;
	tool_reader_say(r);
	return READING;
}

static enum tool_reading in_marked(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	bytes_add(&v->mark, &byte, 1);
	while (v->mark.n && memcmp(v->mark.p, quote_mark, v->mark.n) != 0) {
		json_flow_escape((unsigned char)v->mark.p[0], text_of(r));
		memmove(v->mark.p, v->mark.p + 1, --v->mark.n);
	}
	if (v->mark.n < QUOTE_BYTES) {
		tool_reader_say(r);
		return READING;
	}
	bytes_clear(&v->mark);
	return end_text(r);
}

/* Whether this JSON is no right value of the argument that the call is at, and a text may be one. */
static bool wants_text(struct tool_reader *r, const char *json, size_t n)
{
	const struct read_values *v = &r->values;
	struct bytes key = { 0 };
	bool wants = false;

	if (v->depth != 1 || !v->parameters || !v->argument.n)
		return false;
	json_flow_unescape(v->argument.p + 1, v->argument.n - 2, &key);
	bytes_add(&key, "", 1);
	struct call_arguments *a = key.lost ? NULL : call_arguments_of_key(v->parameters, key.p, &r->lost);
	if (a && call_arguments_key(a, v->argument.p)) {
		call_arguments_try(a);
		wants = !(call_arguments_try_bytes(a, json, n) && call_arguments_try_ends(a)) &&
		        call_arguments_takes_text(a);
		r->lost = r->lost || call_arguments_lost(a);
	}
	r->lost = r->lost || key.lost;
	call_arguments_close(a);
	bytes_free(&key);
	return wants;
}

/* True, None, numbers; else what stands there, as a text. */
static void put_word(struct tool_reader *r)
{
	static const struct {
		const char *text, *json;
	} words[] = { { "True", "true" },   { "true", "true" }, { "False", "false" },
		      { "false", "false" }, { "None", "null" }, { "null", "null" } };
	struct bytes *w = &r->values.word;
	struct json_flow f = { 0 };
	enum flow s = FLOW_MORE;
	struct bytes number = { 0 };

	while (w->n && tool_is_space((unsigned char)w->p[w->n - 1]))
		w->n--;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (w->n == strlen(words[i].text) && memcmp(w->p, words[i].text, w->n) == 0 &&
		    !wants_text(r, words[i].json, strlen(words[i].json))) {
			bytes_text(&r->out, words[i].json);
			bytes_clear(w);
			return;
		}
	for (size_t i = 0; i < w->n && s == FLOW_MORE; i++)
		s = json_flow_take(&f, (unsigned char)w->p[i], &number);
	if (s == FLOW_MORE && json_flow_end(&f, &number) == FLOW_DONE && f.depth == 0 && w->p[0] != '"' &&
	    !wants_text(r, number.p, number.n)) {
		bytes_add(&r->out, number.p, number.n);
	} else {
		bytes_text(&r->out, "\"");
		for (size_t i = 0; i < w->n; i++)
			json_flow_escape((unsigned char)w->p[i], &r->out);
		bytes_text(&r->out, "\"");
	}
	w->lost = w->lost || number.lost || f.held.lost;
	json_flow_free(&f);
	bytes_free(&number);
	bytes_clear(w);
}

static enum tool_reading between(struct tool_reader *r, unsigned char byte);

static enum tool_reading in_word(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	if (byte && !strchr(",)]}:", byte)) {
		bytes_add(&v->word, &byte, 1);
		return READING;
	}
	begin_value(r);
	put_word(r);
	behind_value(r);
	return between(r, byte);
}

/* ---- all */

static enum tool_reading first_of_value(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;
	bool python = r->row->body == BODY_PYTHON;

	if (python && (byte == '"' || byte == '\'')) {
		begin_text(r, false, (char)byte);
		tool_reader_say(r);
		return READING;
	}
	if (byte == '[' || byte == '{') {
		begin_value(r);
		enum tool_reading now = open_level(r, byte == '[' ? ']' : '}', byte);
		tool_reader_say(r);
		return now;
	}
	if (is_among(byte, ",)]}:") || byte == 0)
		return refuse(r, byte);
	v->at = VALUES_WORD;
	return in_word(r, byte);
}

/* Where a value, or a key, can begin with the mark around texts. */
static enum tool_reading maybe_mark(struct tool_reader *r, unsigned char byte, bool of_key)
{
	struct read_values *v = &r->values;

	bytes_add(&v->mark, &byte, 1);
	if (v->mark.lost)
		return READ_NONE;
	if (memcmp(v->mark.p, quote_mark, v->mark.n) == 0) {
		if (v->mark.n == QUOTE_BYTES) {
			begin_text(r, of_key, 0);
			tool_reader_say(r);
		}
		return READING;
	}
	if (of_key) {
		v->mark.n--;
		return refuse(r, byte);
	}
	/* a word begins so */
	bytes_add(&v->word, v->mark.p, v->mark.n - 1);
	bytes_clear(&v->mark);
	v->at = VALUES_WORD;
	return in_word(r, byte);
}

static enum tool_reading at_key(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	if (v->mark.n || byte == '<')
		return maybe_mark(r, byte, true);
	if (is_among(byte, " \t\r\n,"))
		return READING;
	if (byte == (unsigned char)level_of(v))
		return close_level(r);
	if (byte == '"' || byte == '\'') {
		begin_text(r, true, (char)byte);
		return READING;
	}
	if (!is_name(byte))
		return refuse(r, byte);
	v->of_key = true;
	v->at = VALUES_IN_KEY;
	bytes_text(&v->key, "\"");
	bytes_add(&v->key, &byte, 1);
	return READING;
}

/* Behind a key comes = in the arguments of Python, else a colon. */
static enum tool_reading at_colon(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	if (tool_is_space(byte))
		return READING;
	if (byte != (level_of(v) == ')' ? '=' : ':'))
		return refuse(r, byte);
	v->at = VALUES_VALUE;
	return READING;
}

static enum tool_reading between(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	switch (v->at) {
	case VALUES_KEY: return at_key(r, byte);
	case VALUES_COLON: return at_colon(r, byte);
	case VALUES_VALUE:
		if (v->mark.n || byte == '<')
			return maybe_mark(r, byte, false);
		if (tool_is_space(byte) || (byte == ',' && level_of(v) == ']'))
			return READING;
		if (level_of(v) == ']' && byte == ']')
			return close_level(r);
		return first_of_value(r, byte);
	default: return refuse(r, byte);
	}
}

static enum tool_reading seek(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	if (r->row->body == BODY_PYTHON && is_among(byte, " \t\r\n,[]`")) {
		r->kept = r->kept ? r->taken : 0;
		return READING;
	}
	if (!is_name(byte))
		return READ_NONE;
	bytes_clear(&v->name);
	bytes_add(&v->name, &byte, 1);
	v->at = VALUES_NAME;
	return READING;
}

static enum tool_reading in_name(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;
	bool python = r->row->body == BODY_PYTHON;

	if (is_name(byte)) {
		bytes_add(&v->name, &byte, 1);
		return READING;
	}
	if (python && byte == '\n' && v->name.n == 6 && memcmp(v->name.p, "python", 6) == 0) {
		v->at = VALUES_SEEK; /* a fence's language */
		return READING;
	}
	const json_t *function;
	char *name = v->name.lost ? NULL : strndup(v->name.p, v->name.n);
	bool known = name && tool_reader_knows(r, name, &function);
	r->lost = r->lost || (!name && !v->name.lost);
	free(name);
	if (byte != (python ? '(' : '{') || !known)
		return READ_NONE;
	v->parameters = json_object_get(function, "parameters");
	bytes_clear(&v->key);
	bytes_clear(&v->word);
	bytes_clear(&v->mark);
	bytes_clear(&r->out);
	return open_level(r, python ? ')' : '}', byte);
}

enum tool_reading tool_read_values(struct tool_reader *r, unsigned char byte)
{
	struct read_values *v = &r->values;

	switch (v->at) {
	case VALUES_SEEK: return seek(r, byte);
	case VALUES_NAME: return in_name(r, byte);
	case VALUES_IN_KEY:
		if (is_name(byte)) {
			bytes_add(&v->key, &byte, 1);
			return READING;
		}
		bytes_text(&v->key, "\"");
		v->at = VALUES_COLON;
		return at_colon(r, byte);
	case VALUES_QUOTED: return in_quoted(r, byte);
	case VALUES_MARKED: return in_marked(r, byte);
	case VALUES_WORD: return in_word(r, byte);
	case VALUES_KEY:
	case VALUES_COLON:
	case VALUES_VALUE: break;
	}
	return between(r, byte);
}
