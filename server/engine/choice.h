/* server/engine/choice.h - one sequence that the batcher computes: one of the choices of a request.
 *
 * Owns: what becomes of a session from its first token to its end, and the records that say so. Used by the batcher's
 * thread alone, but for opening and closing.
 */
#ifndef SERVER_CHOICE_H
#define SERVER_CHOICE_H

#include "include/jitrun_batch.h"
#include "include/jitrun_draft.h"
#include "server/engine/kept_text.h"
#include "server/engine/masks.h"
#include "server/engine/task.h"

enum choice_outcome { CHOICE_RUNNING, CHOICE_ENDED, CHOICE_FAILED, CHOICE_CANCELLED, CHOICE_DROPPED };

struct choice {
	struct choice *next; /* in the queue */
	struct task *task;
	unsigned number;
	jit_session *session; /* NULL: not begun, or over */
	enum choice_outcome outcome;
	struct run_numbers numbers;
	bool placed; /* it has a slot */
	bool parked; /* it has begun, and others are computed now (fairness.h); due: meanwhile its token could be chosen
	              */
	bool due;
	struct mask_work *mask; /* its grammar is lent to a thread that looks for what may come next; NULL: it is not */
	bool checked;           /* bits is the sum of its logits (bits.h) */
	uint64_t bits;
	struct kept_text kept;       /* what it computed, once it is over */
	size_t text;                 /* choice_embed.c: of its texts, the one that is computed */
	uint64_t served;             /* when it had a text computed last, as the batcher counts */
	size_t done, part;           /* of it: tokens computed, and to be computed at once */
	double *sum;                 /* of their rows; NULL: it is not wanted */
	uint64_t told;               /* of its prompt, as the reader knows it */
	double queued, begun, first; /* when; first: of its first token, 0: none yet */
};

/* All of a task, which they hold, as a list; *end: where the next one would be linked. False: no memory. */
bool choices_open(struct task *t, struct choice **list, struct choice ***end);
/* c and those behind it; their sessions are closed. NULL may be given. */
void choices_close(struct choice *c);

/* Opens its session and hands over the prompt. */
void choice_begin(struct choice *c, jit_batch *batch);
/* Instead: the next part of the prompt's embedding, as much as takes about so many seconds, in a session that is nobody
 * else's; behind the last one the choice ends. False: the session is of no use any more. */
bool choice_embed(struct choice *c, jit_session *alone, const jit_model *model, double seconds);
/* The same by a model that encodes, of whole texts. */
bool choice_encode(struct choice *c, jit_session *alone, const jit_model *model, double seconds);
/* That session, with *context positions, or as many as are usual: then that is put there. NULL: err. */
jit_session *choice_open_alone(jit_model *model, const jit_batch_options *o, int *context, jit_error *err);
/* Whether the context has room for its text, or for all that are left; else it fails. */
bool choice_fits(struct choice *c, int context, bool all);
void choice_refuse_to_generate(struct refusal *r);
/* Whether it needs that session: for all it does, or for what comes before its beginning. */
bool choice_is_alone(const struct choice *c);
/* Of n choices those that need it, so many: the one in the middle of a text, else the one whose turn it is. NULL: none.
 */
struct choice *choices_alone(struct choice *const *running, unsigned n, unsigned *alone);
/* Whether another choice of its task comes first. */
bool choice_waits(const struct choice *c);
/* Its tokens are computed: chooses the next one, or has a thread look first for what its grammar allows. */
void choice_advance(struct choice *c, const jit_model *model, struct masks_of_all *masks);
/* Chooses it once that is found, unless others are computed now. */
void choice_collect(struct choice *c, const jit_model *model);
/* A pass is over: tells how far the prompt is, if that is wanted and new. */
void choice_progress(struct choice *c);
/* Whether its client is still there. */
void choice_poll(struct choice *c);
void choice_fail(struct choice *c, int status, const char *why);
/* The same for a field of the request. */
void choice_refuse(struct choice *c, int status, const char *param, const char *why);
void choice_end(struct choice *c, enum end_reason reason);
/* HTTP's status for an error of the library. */
int choice_status(int code);

#endif
