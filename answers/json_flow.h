/* answers/json_flow.h - JSON that comes byte by byte, and goes on as it comes.
 *
 * Owns: what may follow in such a text, and how it is spelled on its way: without space between its parts, with control
 * characters in strings as escapes, and with U+FFFD for a half of a surrogate pair that is alone. Numbers, words and
 * escapes go on when they are complete, so that what was passed on is never the beginning of another one. The value is
 * the same as that of the text. Nothing recurses, and no string is kept.
 */
#ifndef ANSWERS_JSON_FLOW_H
#define ANSWERS_JSON_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum flow { FLOW_MORE, FLOW_DONE, FLOW_WRONG };
/* What the last byte was, beside others. */
enum flow_event {
	FLOW_NOTHING,
	FLOW_OPENS,  /* an object or an array */
	FLOW_CLOSES, /* the same */
	FLOW_STRING, /* the quote before a value that is one */
	FLOW_SCALAR, /* the first byte of another value */
	FLOW_KEY_ENDS,
	FLOW_STRING_ENDS
};

enum flow_position {
	FLOW_AT_VALUE,
	FLOW_AT_ITEM, /* or the end of the array */
	FLOW_AT_KEY,
	FLOW_AT_MEMBER, /* or the end of the object */
	FLOW_AT_COLON,
	FLOW_AT_MORE,
	FLOW_IN_STRING,
	FLOW_IN_ESCAPE,
	FLOW_IN_WORD,
	FLOW_AT_END,
	FLOW_AT_ERROR
};

enum { FLOW_DEPTH = 60 };

struct json_flow {
	enum flow_position at;
	enum flow_event event;
	uint64_t objects; /* a bit for each value around, the innermost lowest: it is an object */
	unsigned depth;
	bool key;          /* the string is one */
	struct bytes held; /* a number, word or escape that is not complete */
};

/* A zeroed struct is before the beginning. What goes on is appended to out. FLOW_DONE: the value is complete; only
 * space can follow. FLOW_WRONG: no JSON begins so, and never will; out has got what was held and this byte, too, so
 * that it holds all of the text. */
enum flow json_flow_take(struct json_flow *f, unsigned char byte, struct bytes *out);
/* The text ends here: FLOW_DONE or FLOW_WRONG. */
enum flow json_flow_end(struct json_flow *f, struct bytes *out);
/* Inside of a string. */
bool json_flow_quoted(const struct json_flow *f);
void json_flow_clear(struct json_flow *f); /* before the beginning again */
void json_flow_free(struct json_flow *f);

/* A byte of a text, as it stands between the quotes of a JSON string. */
void json_flow_escape(unsigned char byte, struct bytes *out);
/* What a part of a JSON string that json_flow_take let go on stands for: whole escapes and other bytes. */
void json_flow_unescape(const char *p, size_t n, struct bytes *out);

#endif
