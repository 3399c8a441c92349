/* grammar/call/call_free.h - calls in a text that is free otherwise.
 *
 * Owns: a machine around that of a call (call.h). It takes any text; where the text opens a call, the call's machine
 * says what follows, up to its end and the mark that closes it, and then the text is free again.
 */
#ifndef GRAMMAR_CALL_FREE_H
#define GRAMMAR_CALL_FREE_H

#include <jansson.h>

#include "grammar/machine/machine.h"

/* o: the grammar's object, with "openings" and what belongs to them. call is taken over. NULL: err. */
struct machine *machine_of_free(const json_t *o, struct machine *call, struct error *err);
/* The texts of "openings" and "spelled", and "close", each behind a line's end, are appended to out, which has room for
 * call_free_marks_length(o) bytes more; returns its new end. */
size_t call_free_marks_length(const json_t *o);
char *call_free_marks(const json_t *o, char *out);

#endif
