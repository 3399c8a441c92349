/* server/api/prompts.h - the forms in which requests give the texts that go on.
 *
 * Owns: one text, one list of tokens and texts, or a list of these.
 */
#ifndef SERVER_PROMPTS_H
#define SERVER_PROMPTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/jitrun.h"
#include "server/request/refusal.h"

/* Texts that are continued at once, and texts that are embedded or ranked one after the other. */
enum { PROMPTS_MAX = 256, PROMPTS_TEXTS_MAX = 2048 };

struct prompts {
	struct prompt {
		int32_t *ids; /* malloc'ed; the taker puts NULL here */
		size_t n;
		const json_t *text; /* it was given as a text alone: borrowed; NULL */
	} * list;
	size_t n, capacity;
	size_t max;       /* of texts; 0: PROMPTS_MAX */
	size_t context;   /* tokens that a text may have; 0: any number */
	const char *more; /* what to do for longer ones, behind "raise"; NULL: --context */
};

/* What is marked as special in texts is read as such: a client that gives a raw prompt means it. name: of the field.
 * False: refused. */
bool prompts_read(struct prompts *p, const char *name, const json_t *v, const jit_model *model, struct refusal *r);
void prompts_free(struct prompts *p);

#endif
