/* tests/server/field_kinds.h - for the tests of fields: a request of each family of endpoints, servers that answer
 * them, and what of two answers must be the same.
 *
 * Behind cmocka.h.
 */
#ifndef TESTS_SERVER_FIELD_KINDS_H
#define TESTS_SERVER_FIELD_KINDS_H

#include <stdint.h>
#include <stdio.h>

#include "server/request/request_fields.h"
#include "tests/server/client.h"
#include "tests/support/shared.h"

#define CHAT REQUEST_CHAT
#define TEXT REQUEST_TEXT
#define NATIVE REQUEST_NATIVE
#define MESSAGES REQUEST_MESSAGES
#define RESPONSES REQUEST_RESPONSES
#define EMBED REQUEST_EMBED
#define RANK REQUEST_RANK
#define TOKENIZE REQUEST_TOKENIZE
#define DETOKENIZE REQUEST_DETOKENIZE
#define SLOT REQUEST_SLOT
#define OLLAMA_CHAT REQUEST_OLLAMA_CHAT
#define OLLAMA_TEXT REQUEST_OLLAMA_TEXT
#define OLLAMA_EMBED REQUEST_OLLAMA_EMBED
#define OLLAMA_OPTIONS REQUEST_OLLAMA_OPTIONS
#define OLLAMA (OLLAMA_CHAT | OLLAMA_TEXT)
#define INFILL REQUEST_INFILL
#define SCORE REQUEST_SCORE
#define GENERATE (CHAT | TEXT | NATIVE | MESSAGES | RESPONSES)
#define TALK (CHAT | MESSAGES | RESPONSES)
#define SEVERAL (GENERATE | EMBED | RANK | SCORE | TOKENIZE | DETOKENIZE)

/* One that answers all families, and one with two models, where a name can be wrong. */
extern struct child fields_server, fields_two;

#define FIELDS_USER "{\"role\":\"user\",\"content\":\"A tale of a king.\"}"

struct kind {
	enum request_kind kind;
	const char *name, *path, *base; /* base: the members of a request, or of options in it */
};
enum { KINDS = 16 };
extern const struct kind kinds[KINDS];

int fields_start(void **state);
int fields_stop(void **state);
/* With more members, and one more by its name (NULL: none): what stands twice counts the last time. */
struct answer fields_ask(const struct child *c, const struct kind *k, const char *with, const char *name,
                         const char *value);

/* All that is wrong is told, one line each, before a test fails. */
extern unsigned fields_wrong;
#define COMPLAIN(...) (printf("        " __VA_ARGS__), printf("\n"), fields_wrong++)
void fields_must_be_right(void);

/* The answer without names, times and counts that differ from one request to the next; NULL: it is none. a is freed. */
json_t *fields_told(struct answer *a, const char *what);
/* A refusal with this field; a is freed. */
void fields_check_refused(struct answer *a, const char *name, const char *what);
/* A value with which a field that is refused asks for nothing. */
const char *fields_harmless(unsigned harmless);

#endif
