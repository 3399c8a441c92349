/* runtime/batch/batch.h - the inside of a jit_batch, shared by the files runtime/batch*.c.
 *
 *   batch.c         opening, closing, sessions, tokens submitted
 *   batch_memory.c  which session has memory, and which one makes room for another
 *   batch_kept.c    what is remembered of closed sessions, and beginnings that are taken over
 *   batch_turns.c   what stays for the next turn of a conversation
 *   batch_pages.c   the pages of a session: its own, and those it shares with others
 *   batch_step.c    a step: which sessions take part in a pass
 *   batch_pass.c    the pass itself, and what becomes of its logits
 *
 * A batch owns an engine, which its sessions share, and the memory that they keep their tokens in: a session has its
 * own only from its admission on, until it is closed or set back.
 */
#ifndef RUNTIME_BATCH_H
#define RUNTIME_BATCH_H

#include "runtime/batch/batch_costs.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_draft.h"
#include "runtime/batch/kv_pages.h"
#include "runtime/session/session_state.h"

/* Sessions of a pass, and rows of logits; a sealed model has kernels for fewer rows. */
enum { BATCH_CHUNKS_MAX = 64, BATCH_ROWS_MAX = 64 };
_Static_assert((int)BATCH_CHUNKS_MAX <= (int)ENGINE_SPANS_MAX, "each may have adapters of its own");

#define BATCH_NOT_TOLD SIZE_MAX

/* The pages of a text, from its first token on. */
struct batch_pages {
	struct kv_page **page;
	size_t n, capacity;
};

/* Where another text may part from this one: behind the tokens that it shares with a text that came before, and near
 * the end of its prompt, from where the next turn of a conversation goes on when the answer's reasoning is left out. */
enum batch_mark { MARK_FORK, MARK_TURN, BATCH_MARKS };

/* What a session is to its batch. */
struct batch_member {
	struct jit_batch *batch;
	jit_session *session;
	bool admitted;              /* it has memory */
	bool takes_part;            /* it waits for tokens, and has memory for all of them */
	struct batch_pages pages;   /* used; session->memory has their addresses */
	size_t published;           /* of them, from the first on */
	struct session_mark before; /* what it was before the tokens were submitted that are not all computed yet */
	size_t submitted;           /* where they end; 0: all that were are computed, or were once */
	size_t mark[BATCH_MARKS];   /* behind so many tokens; 0: nowhere */
	size_t told;                /* the length at which it was ready when that was told last, or BATCH_NOT_TOLD */
	struct error error;         /* its own, for who asks it; code 0: none */
	float *own_logits; /* a copy, made when another pass comes before somebody has read them; NULL until then */
};

/* What is remembered of a session that was closed or set back. */
struct batch_kept {
	struct session_memory memory; /* where it holds more than pages: of windows, or states */
	struct batch_pages pages;     /* remembered */
	int32_t *ids;
	size_t computed;
	uint64_t adapters; /* the key of those that it was computed with */
	uint64_t used;     /* when, in `clock` */
};

struct jit_batch {
	jit_model *model;
	struct engine engine;
	struct cancel cancel;
	jit_draft_options draft; /* of its sessions; model NULL: no draft model */
	uint32_t context;
	double max_pass_seconds;
	struct batch_member **member; /* by when they came */
	size_t n, capacity;
	struct batch_kept *kept;
	size_t n_kept, kept_capacity;
	struct kv_pages pages;
	uint64_t fixed_bytes, clock; /* fixed: what a session takes beside pages */
	struct batch_costs costs;    /* what passes took */
	double (*now)(void);         /* by which that is told: seconds */
	size_t next;                 /* who is first when not all that decode have room */
	bool showed;                 /* the last pass was one over pictures */
	bool passed_over;            /* prompts had no place in the last pass */
	jit_batch_stats stats;
};

/* ---- batch_memory.c */

/* The context of sessions where nobody says: bytes: as in jit_batch_options.kv_bytes. */
uint32_t batch_usual_context(const struct jit_batch *b, uint64_t bytes);
bool batch_memory_open(struct jit_batch *b, uint64_t bytes, struct error *err);
/* When all sessions are closed. */
void batch_memory_close(struct jit_batch *b);
/* Bytes that so many positions of one session take. */
uint64_t batch_bytes(const struct jit_batch *b, size_t positions);
/* Gives the member memory for so many positions, or more of it, at the cost of what is remembered. False with err->code
 * 0: there is no room. BATCH_TAKE_OVER: to a member without memory comes what others computed for its first tokens. */
enum batch_beginning { BATCH_COMPUTE_ALL, BATCH_TAKE_OVER };
bool batch_grant(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err);
/* Whether the member can have so many positions when younger ones are set back, which they are then. */
bool batch_make_room(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err);
/* The member's memory is given back: what it computed is remembered as long as nobody needs the room. */
void batch_release(struct batch_member *m);

/* ---- batch_pages.c */

/* Where the next pass over the session's tokens begins: with a state, behind the last one that is kept. */
uint64_t batch_begins_at(const jit_session *s);
/* The first `chunks` pages of a text become the member's as well, which has none. False: err. */
bool batch_pages_adopt(struct batch_member *m, const struct batch_pages *from, size_t chunks, struct error *err);
/* Bytes of pages that the member lacks to write its next tokens up to so many chunks. */
uint64_t batch_pages_wanted(const struct batch_member *m, size_t chunks);
/* It gets them, each of its own to write: copied, where others have what it holds. Where room is wanted, what is
 * remembered goes. False: err, or with err->code 0 there is no room. */
bool batch_pages_fill(struct batch_member *m, size_t chunks, struct error *err);
/* Others find the full pages that the member has computed, and it has theirs instead of its own where they are alike.
 */
void batch_pages_publish(struct batch_member *m);
/* The member goes on behind full pages that others have computed meanwhile for its next tokens, but for the last one.
 */
void batch_pages_take_over(struct batch_member *m, struct error *err);
/* No more than so many stay. */
void batch_pages_keep(struct batch_member *m, size_t chunks);
/* Whether the pages of these tokens are the member's alone, so that it may write them; all others are a fault of ours.
 */
bool batch_pages_writable(const struct batch_member *m, uint64_t position, uint32_t tokens, struct error *err);

/* ---- batch_kept.c */

/* What was computed for a text's first tokens: memory NULL: there is none. */
struct batch_found {
	const struct session_memory *memory;
	const struct batch_pages *pages;
	size_t tokens, computed, kept; /* kept: its number; SIZE_MAX: another session's */
	size_t same;                   /* tokens that some text has alike, whether or not all is there for them */
};
struct batch_found batch_find_beginning(const struct batch_member *m);
/* The member's pages are remembered from now on, and its memory where that is more. False: there is none for that. */
bool batch_keep(struct batch_member *m);
void batch_forget(struct jit_batch *b, size_t kept);
/* Gives up a part of what was not asked for the longest; spared: the number of one that stays, which may change. False:
 * there is nothing. */
bool batch_forget_some(struct jit_batch *b, size_t *spared);
/* Bytes beside pages that all of it takes. */
uint64_t batch_kept_fixed(const struct jit_batch *b);

/* What was remembered is the batch's now, with all that it holds. False: there is no memory for the list. */
bool batch_remember(struct jit_batch *b, const struct batch_kept *k);

/* ---- batch_turns.c */

/* n tokens were submitted: where the next turn may go on. */
void batch_mark_turn(struct batch_member *m, size_t n);
/* The member is admitted behind what was found, and others may begin as it does. */
void batch_mark_fork(struct batch_member *m, const struct batch_found *from);
/* Of n tokens of a prompt, those up to the first mark, where the model's layers keep states. */
uint32_t batch_cut_at_mark(const struct batch_member *m, uint64_t position, uint32_t n);
/* Before a pass by which windows slide: what they hold at a mark is remembered if they are about to lose it, and there
 * is room. */
void batch_keep_marks(struct batch_member *m, uint64_t position, uint32_t tokens);

/* ---- batch_step.c */

/* It waits for tokens to be computed. */
bool batch_is_pending(const struct batch_member *m);
/* Memory for all that a session waits for; where there is none, it waits for that as well. */
bool batch_has_room(struct batch_member *m);
/* What became of a session's tokens: those submitted since it was ready are taken back, and callers that ask are told.
 */
void batch_fail(struct batch_member *m, const struct error *e);
/* Tokens of prompts that a pass has time for beside so many others. */
uint32_t batch_prompt_room(const struct jit_batch *b, uint32_t beside);

/* ---- batch_shown.c */

/* Its next passes are those over a picture's tokens, or what stands before them. */
bool batch_waits_for_pictures(const struct batch_member *m);
/* Passes over a picture's tokens have no others: one pass of a session is computed, over these or over what stands
 * before them. False: there is none. */
bool batch_compute_pictures(struct jit_batch *b);
/* Pictures take turns with what else is to be computed: whether it is theirs. */
bool batch_pictures_are_next(struct jit_batch *b);

/* ---- batch_pass.c */

/* A step that computed nothing; false always. */
bool batch_refuse_stall(const struct jit_batch *b, struct error *err);
/* Before a pass, which overwrites them: logits of draft tokens count no more, and those that nobody has read are
 * copied. Both, or each. */
bool batch_keep_logits(struct jit_batch *b, struct error *err);
void batch_drop_windows(struct jit_batch *b);
bool batch_copy_logits(struct jit_batch *b, struct error *err);

/* Tokens of a session in a pass, from a position on: the text's, of which the last `drafts` are draft tokens instead
 * (speculate.window). rows: of the last so many logits are wanted. */
struct batch_chunk {
	struct batch_member *member;
	uint64_t position;
	uint32_t tokens, drafts, rows;
	bool window; /* speculate.window is of this pass */
};
/* Computes them in one pass, or in several where that cannot be. The rows' logits are the sessions' then. */
bool batch_run(struct jit_batch *b, const struct batch_chunk *chunk, uint32_t n, struct error *err);

#endif
