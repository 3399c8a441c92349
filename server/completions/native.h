/* server/completions/native.h - the parts of an answer in the form of llama.cpp's server.
 *
 * Owns: what the last piece of a text says of how it was generated, which answers in other forms can have, too.
 */
#ifndef SERVER_NATIVE_H
#define SERVER_NATIVE_H

#include "server/engine/models.h"
#include "server/engine/stream.h"
#include "server/engine/task.h"

struct native_end {
	enum end_reason reason;
	int stop; /* END_STOP_TEXT: which */
	const struct run_numbers *numbers;
	const char *text; /* the whole answer's, n bytes */
	size_t n;
};

/* The fields are put into j. */
void native_put_end(json_t *j, const struct served *m, const struct task *t, const struct native_end *e);
/* Beside an answer in another form: all of it again in this one. */
json_t *native_whole(const struct served *m, const struct task *t, const struct native_end *e);

struct exchange;
struct prompts;
/* native.c: an answer for each prompt. infill: they have gaps, which answers fill (infill.h). False: refused. */
bool native_begin(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p, bool infill);

#endif
