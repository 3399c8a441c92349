/* runtime/batch.h - the inside of a jit_batch, shared by the files runtime/batch*.c.
 *
 *   batch.c         opening, closing, sessions, tokens submitted
 *   batch_memory.c  which session has memory, what is remembered of closed ones, and beginnings that are taken over
 *   batch_step.c    a step: which sessions take part in a pass
 *   batch_pass.c    the pass itself, and what becomes of its logits
 *
 * A batch owns an engine, which its sessions share, and the memory that they keep their tokens in: a session has its
 * own only from its admission on, until it is closed or set back.
 */
#ifndef RUNTIME_BATCH_H
#define RUNTIME_BATCH_H

#include "runtime/batch_costs.h"
#include "runtime/jitrun_batch.h"
#include "runtime/session_state.h"

/* Sessions of a pass, and rows of logits; a sealed model has kernels for fewer rows. */
enum { BATCH_PIECES_MOST = 64, BATCH_ROWS_MOST = 64 };

#define BATCH_NOT_TOLD SIZE_MAX

/* What a session is to its batch. */
struct batch_member {
	struct jit_batch *batch;
	jit_session *session;
	bool admitted;              /* it has memory */
	bool takes_part;            /* it waits for tokens, and has memory for all of them */
	uint64_t bytes;             /* granted to it */
	struct session_mark before; /* what it was before the tokens were submitted that are not all computed yet */
	size_t submitted;           /* where they end */
	size_t told;                /* the length at which it was ready when that was told last, or BATCH_NOT_TOLD */
	struct error error;         /* its own, for who asks it; code 0: none */
	float *own_logits; /* a copy, made when another pass comes before somebody has read them; NULL until then */
};

/* What is remembered of a closed session. */
struct batch_kept {
	struct session_memory memory;
	int32_t *ids;
	size_t computed;
	uint64_t bytes, used; /* used: when, in `clock` */
};

struct jit_batch {
	jit_model *model;
	struct engine engine;
	struct cancel cancel;
	uint32_t context;
	double max_pass_seconds;
	struct batch_member **member; /* by when they came */
	size_t n, capacity;
	struct batch_kept *kept;
	size_t n_kept, kept_capacity;
	uint64_t page_bytes, fixed_bytes, budget, used, clock;
	struct batch_costs costs; /* what passes took */
	double (*now)(void);      /* by which that is told: seconds */
	size_t turn;              /* who is first when not all that decode have room */
	jit_batch_stats stats;
};

/* ---- batch_memory.c */

bool batch_memory_open(struct jit_batch *b, uint64_t bytes, struct error *err);
void batch_memory_close(struct jit_batch *b);
/* Bytes that so many positions of one session take. */
uint64_t batch_bytes(const struct jit_batch *b, size_t positions);
/* Gives the member memory for so many positions, or more of it, at the cost of what is remembered. False with err->code
 * 0: there is no room. BATCH_TAKE_OVER: to a member without memory comes what others computed for its first tokens. */
enum batch_beginning { BATCH_COMPUTE_ALL, BATCH_TAKE_OVER };
bool batch_grant(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err);
/* Whether the member can have so many positions when younger ones are set back, which they are then. */
bool batch_make_room(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err);
/* The member's memory is given back: remembered, or free at once. */
void batch_release(struct batch_member *m, bool remember);

/* ---- batch_pass.c */

/* Logits that nobody has read are copied: a pass is about to overwrite them. */
bool batch_keep_logits(struct jit_batch *b, struct error *err);

/* Tokens of a session in a pass, from a position on: the text's, of which the last `drafts` are draft tokens instead
 * (speculate.window). rows: of the last so many logits are wanted. */
struct batch_piece {
	struct batch_member *member;
	uint64_t position;
	uint32_t tokens, drafts, rows;
	bool window; /* speculate.window is of this pass */
};
/* Computes them in one pass, or in several where that cannot be. The rows' logits are the sessions' then. */
bool batch_run(struct jit_batch *b, const struct batch_piece *piece, uint32_t n, struct error *err);

#endif
