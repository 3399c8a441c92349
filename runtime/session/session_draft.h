/* runtime/session/session_draft.h - a session's draft model: a session of its own that follows this one's text.
 *
 * Owns: that session, and which of the text's tokens it has read. It reads the end of the text only, as much of it as
 * speculation has saved time for, behind the token that begins a text; what it says never counts by itself, so that
 * nothing of it changes a token.
 */
#ifndef RUNTIME_SESSION_DRAFT_H
#define RUNTIME_SESSION_DRAFT_H

#include "include/jitrun_draft.h"
#include "runtime/session/session_state.h"

/* Whether the draft model can follow texts of the model, of at most so many tokens; what stands for each 0 of *o is
 * filled in. False: err. */
bool session_draft_check(const jit_model *m, jit_draft_options *o, uint32_t context, struct error *err);
struct ask_options session_draft_asks(const jit_draft_options *o);
/* The session's draft model follows it from now on, in `own`, which is the session's then. False: err, and own is
 * closed. */
bool session_draft_open(jit_session *s, jit_session *own, struct error *err);
/* Both, and its session opened: of session_open.c. */
bool session_draft_start(jit_session *s, const jit_draft_options *o, const jit_sampling *sampling, jit_cancel *cancel,
                         struct error *err);
void session_draft_close(struct session_draft *d);
/* Where speculation wants it, the draft model proposes tokens for the pass to come. */
void session_draft(jit_session *s, uint32_t room);
/* It draws by these, as the session does. */
void session_draft_sampling(jit_session *s, const jit_sampling *p);
/* Why it is asked no more; NULL: it is. */
const char *session_draft_trouble(const struct session_draft *d);

#endif
