/* server/engine/kept_text.h - the tokens that a session had, with the pictures among them: what is left of an answer.
 */
#ifndef SERVER_KEPT_TEXT_H
#define SERVER_KEPT_TEXT_H

#include <stdbool.h>

#include "include/jitrun_batch.h"

struct session_picture;

struct kept_text {
	int32_t *ids; /* n of them; NULL: nothing */
	size_t n;
	struct session_picture *shown; /* held */
	size_t n_shown;
};

/* The session's first n tokens. False: no memory, and *out is nothing. */
bool kept_text_take(struct kept_text *out, const jit_session *s, size_t n);
void kept_text_free(struct kept_text *t);
/* To a session of a batch, which has none. */
int kept_text_submit(const struct kept_text *t, jit_session *s, jit_error *err);
/* What the batch remembers of it. */
void kept_text_forget(const struct kept_text *t, jit_batch *batch);

#endif
