/* server/request/request_fields.h - which fields a request may have.
 *
 * Owns: the one table of all fields of all endpoints (request_fields.def), by which a field that binds the answer and
 * is not done is refused instead of being passed over. docs/request-fields.md shows it; tests/server/t_fields.c tries
 * it.
 */
#ifndef SERVER_REQUEST_FIELDS_H
#define SERVER_REQUEST_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "server/request/refusal.h"

/* Families of endpoints; those that only count a conversation's tokens, or show its prompt, take what their family
 * takes. */
enum request_kind {
	REQUEST_CHAT = 1,         /* /v1/chat/completions, /apply-template */
	REQUEST_TEXT = 2,         /* /v1/completions */
	REQUEST_NATIVE = 4,       /* /completion */
	REQUEST_MESSAGES = 8,     /* /v1/messages */
	REQUEST_RESPONSES = 16,   /* /v1/responses */
	REQUEST_EMBED = 32,       /* /v1/embeddings */
	REQUEST_RANK = 64,        /* /v1/rerank */
	REQUEST_TOKENIZE = 128,   /* /tokenize */
	REQUEST_DETOKENIZE = 256, /* /detokenize */
	REQUEST_SLOT = 512,       /* /slots/N */
	REQUEST_INFILL = 1024,    /* /infill; what no row says of it, rows of REQUEST_NATIVE do */
	REQUEST_SCORE = 2048,     /* /v1/score */
	/* Of ollama's API. What it has no field of that name for is what chat completions, or completions, have. */
	REQUEST_OLLAMA_CHAT = 1 << 16,   /* /api/chat */
	REQUEST_OLLAMA_TEXT = 1 << 17,   /* /api/generate */
	REQUEST_OLLAMA_EMBED = 1 << 18,  /* /api/embed, /api/embeddings */
	REQUEST_OLLAMA_OPTIONS = 1 << 19 /* the object "options" of these */
};

enum request_meaning { FIELD_DONE, FIELD_REFUSED, FIELD_PASSED };

/* Values with which a field that is refused asks for nothing; null always does. */
enum request_harmless {
	HARMLESS_NOTHING = 0,
	HARMLESS_FALSE = 1,
	HARMLESS_TRUE = 2,
	HARMLESS_ZERO = 4,
	HARMLESS_ONE = 8,
	HARMLESS_TWO = 16,
	HARMLESS_MINUS = 32,  /* below 0 */
	HARMLESS_EMPTY = 64,  /* a text, an array or an object with nothing in it, or false */
	HARMLESS_WORD = 128,  /* "none" or "auto" */
	HARMLESS_TEXTS = 256, /* ["text"] */
	HARMLESS_STRING = 512 /* any: it is of another endpoint */
};

struct request_field {
	unsigned kinds; /* of enum request_kind */
	const char *name;
	enum request_meaning meaning;
	unsigned harmless;
	const char *what; /* it does, or why it is refused or passed over */
};

extern const struct request_field request_fields[];
extern const size_t n_request_fields;

/* n bytes of a body of that kind as an object, to be given back. NULL: refused. */
json_t *request_read(const void *p, size_t n, enum request_kind kind, struct refusal *r);
/* The same of an object that was read: fields that ask for nothing, or are passed over, are taken out of it. False:
 * refused. */
bool request_take(json_t *o, enum request_kind kind, struct refusal *r);
/* The row of a field; NULL: none. */
const struct request_field *request_field_of(enum request_kind kind, const char *name);

#endif
