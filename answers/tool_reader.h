/* answers/tool_reader.h - what stands behind the mark that opens a call, byte by byte.
 *
 * Owns: when a call is one, and what of its arguments is known. Nothing is said of a call before its name is, and the
 * first of its arguments has begun as its form wants it; from then on it is a call whatever follows. Of a value that
 * the form does not tell from a text nothing is said until that is known. When what follows cannot be read, the
 * arguments go on as they were written: they are then no JSON whatever comes behind, and never look complete. Where the
 * functions are known that a request may call, a call of another one is none.
 */
#ifndef ANSWERS_TOOL_READER_H
#define ANSWERS_TOOL_READER_H

#include <jansson.h>

#include "answers/json_flow.h"
#include "answers/tool_events.h"
#include "answers/tool_forms.h"

enum tool_reading {
	READING,
	READ_WHOLE, /* the last call is complete: nothing that follows is part of it */
	READ_NONE   /* what stands from `kept` on is no call */
};

/* How its text is read. */
enum tool_way { WAY_UNKNOWN, WAY_JSON, WAY_NAMED, WAY_ELEMENTS, WAY_VALUES };

/* tool_read_json.c: {"name": ..., "arguments": {...}}, or a list of these. */
struct read_json {
	struct json_flow flow, inner; /* inner: of arguments that are the JSON text of an object */
	bool list;
	enum { MEMBER_NONE, MEMBER_NAME, MEMBER_ARGUMENTS, MEMBER_OTHER } member;
	bool in_name, in_text, in_object; /* of the value of `member` */
	bool begun, done;                 /* this call's arguments */
	bool named, ended;                /* this call */
	bool others;                      /* it has members that no call has */
	struct bytes key, name;           /* as they are written */
	struct bytes made;                /* of the last byte */
};

/* tool_read_elements.c */
struct read_elements {
	enum { SEEK_NAME, IN_NAME, BEHIND_NAME, SEEK_KEY, IN_KEY, SEEK_VALUE, IN_VALUE, BEHIND_VALUE } at;
	struct bytes part;                                   /* what may become a mark; of names and keys, all of it */
	char open[64], value[64], close[64], behind_key[64]; /* marks: before a key, before a value, behind a value */
	struct call_arguments *types;                        /* NULL: nothing is known of values */
	json_t *declared;         /* the keys of the function's schema that had no value yet */
	const json_t *parameters; /* that schema */
	bool of_key;              /* `types` are of one argument alone */
	struct bytes rest;        /* what is no part of any argument: a text behind the call */
	bool alone;               /* nothing belongs to it behind the call */
	bool some, known, loose;  /* some: arguments so far; known, loose: of the value */
	enum { VALUE_BEGINS, VALUE_TRIED, VALUE_TEXT, VALUE_JSON } value_is;
	bool may_be_text, plain;
	bool fresh;     /* what comes begins a line of the value */
	bool right;     /* so far the value is right as JSON */
	size_t n_tried; /* bytes of `made` that were tried */
	char quote;     /* Python's, inside of JSON; 0: none */
	bool escaped;
	unsigned skip;               /* letters of Python's None that are still to come */
	struct bytes key, raw, made; /* of a value that is not told yet: as it stands, and as JSON */
	bool line;                   /* a line's end that may be the value's last byte */
	struct json_flow flow;
};

/* tool_read_values.c: Python and Gemma's braces. */
enum { VALUES_DEPTH = 52 };
struct read_values {
	enum {
		VALUES_SEEK, /* a name */
		VALUES_NAME,
		VALUES_KEY, /* or what closes the object */
		VALUES_IN_KEY,
		VALUES_COLON,
		VALUES_VALUE, /* in a list: or its end */
		VALUES_QUOTED,
		VALUES_MARKED,
		VALUES_WORD
	} at;
	const json_t *parameters; /* the schema of the arguments; NULL: not known */
	bool of_key;              /* VALUES_QUOTED, VALUES_MARKED */
	char quote;               /* VALUES_QUOTED */
	bool escaped;             /* the same */
	char level[VALUES_DEPTH]; /* what closes the values around */
	bool some[VALUES_DEPTH];  /* there is something in them */
	unsigned depth;
	struct bytes name, key, word; /* key: a text of JSON, without its last quote while it is read */
	struct bytes argument;        /* the last key that was told, with a 0 behind it */
	struct bytes mark;            /* what may become the mark around a text */
};

struct tool_reader {
	enum tools_form form;
	const struct tools_row *row;
	const json_t *functions; /* [{"name": NAME, "parameters": SCHEMA}]; NULL: not known */
	struct tool_events *events;
	enum tool_way way;
	size_t taken, kept; /* bytes so far; how many of them are no text whatever follows */
	bool told;          /* of the call that is being read */
	bool broken;        /* what follows of it cannot be read */
	bool lost;          /* there was no memory to find out what was read */
	struct bytes head;  /* before it is known how to read */
	struct bytes out;   /* arguments that are known, and were not said yet */
	struct read_json json;
	struct read_elements elements;
	struct read_values values;
};

void tool_reader_begin(struct tool_reader *r, enum tools_form form, const json_t *functions,
                       struct tool_events *events);
/* Of elements, one call alone is to be read: no mark stands around it. */
void tool_reader_alone(struct tool_reader *r);
enum tool_reading tool_reader_take(struct tool_reader *r, unsigned char byte);
/* Whether the next byte stands where marks are none. */
bool tool_reader_quoted(const struct tool_reader *r);
/* Nothing more comes. closed: by a mark, or because the model has said all; else the text was cut. READ_NONE as above;
 * a call that was told and is not complete has ended. */
enum tool_reading tool_reader_end(struct tool_reader *r, bool closed);
void tool_reader_free(struct tool_reader *r);
/* There was no memory: what was told since may be wrong. */
bool tool_reader_lost(const struct tool_reader *r);

/* ---- for its files */

/* The call is told; name is taken over. */
void tool_reader_tell(struct tool_reader *r, char *name);
/* What is in r->out goes on, where the call is told. */
void tool_reader_say(struct tool_reader *r);
void tool_reader_call_ends(struct tool_reader *r, bool whole);
/* Whether a function of this name may be called; *function: it, NULL where functions are not known. */
bool tool_reader_knows(const struct tool_reader *r, const char *name, const json_t **function);
/* What was taken cannot be read. */
enum tool_reading tool_reader_wrong(struct tool_reader *r);

enum tool_reading tool_read_json(struct tool_reader *r, unsigned char byte);
enum tool_reading tool_read_named(struct tool_reader *r, unsigned char byte);
enum tool_reading tool_read_elements(struct tool_reader *r, unsigned char byte);
enum tool_reading tool_read_values(struct tool_reader *r, unsigned char byte);
enum tool_reading tool_end_elements(struct tool_reader *r, bool closed);
/* tool_read_element_value.c: the value of a key, which is a JSON text; plain: the form says that it is a text. Bytes
 * that are no part of its closing mark: what stands around the value is taken off. Its end: READING behind it. */
void tool_value_begin(struct tool_reader *r, const char *key, bool plain);
void tool_value_byte(struct tool_reader *r, unsigned char byte);
enum tool_reading tool_value_end(struct tool_reader *r);
bool tool_value_unclosed(const struct tool_reader *r);
void tool_begin_elements(struct tool_reader *r);

static inline bool tool_is_space(unsigned char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

#endif
