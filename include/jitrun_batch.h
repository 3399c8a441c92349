/* jitrun_batch.h - many sessions of one model, computed together.
 *
 * Everything here follows jitrun.h: ERRORS, STRUCTS AND VERSIONS, and what a session is.
 */
#ifndef JITRUN_BATCH_H
#define JITRUN_BATCH_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* BATCHES. A jit_batch computes many sessions of one model together: one pass holds tokens of any number of them -
 * tokens being decoded, pieces of prompts, draft tokens - so that weights are read once for all. A session's logits,
 * tokens and texts are the same, bit for bit, as if it were alone, whatever else the batch computes, whatever it shares
 * with others and whether it was set back. Its sessions are opened by jit_batch_session instead of jit_session_open,
 * have no threads of their own, and are used with the functions of jitrun.h and jitrun_grammar.h; only what computes
 * differs:
 *
 *     jit_session_submit(s, ids, n, NULL, &err);        appends tokens, computes nothing
 *     while (jit_batch_step(b, ready, MOST, &n, &err) == JIT_OK)
 *             for (size_t i = 0; i < n; i++)
 *                     jit_session_next(ready[i], &id, &err);   chooses, computes nothing: the next step computes
 *                                                              the token that was chosen
 *
 * jit_session_next, _logits and _logprobs of a session whose tokens are not all computed are JIT_ERROR_ARGUMENT.
 * jit_session_feed, _score and _embed compute at once, alone, and let the others wait. Logits are valid until the next
 * step, or the next call on their session.
 *
 * A batch and its sessions belong to one thread at a time, but for jit_session_cancel(). */
typedef struct jit_batch jit_batch;

typedef struct jit_batch_options {
	size_t size;
	int threads;     /* 0: one per core this process may use */
	int tokens;      /* most tokens of a pass, at most 1024; 0: 264, on NVIDIA cards 512 */
	int context;     /* most positions of a session; 0: as jit_session_options.context, as far as kv_bytes go */
	int kv;          /* as jit_session_options.kv */
	int speculate;   /* as jit_session_options.speculate, for every session; AUTO drafts only for a session that is
	                    decoded alone */
	int max_pass_ms; /* a pass with parts of prompts is cut so that it should take no longer; 0: 200. A picture
	                    whose tokens see each other, as those of Gemma 3 do, is not cut */
	uint64_t kv_bytes;  /* memory for what all sessions keep of their tokens; 0: half of what is free */
	jit_cancel *cancel; /* ends jit_batch_open, and a step that computes; borrowed; NULL */
	const struct jit_draft_options *draft; /* as jit_session_options.draft; asked while one session decodes */
} jit_batch_options;
#define JIT_BATCH_OPTIONS(...) JIT_STRUCT(jit_batch_options, __VA_ARGS__)

/* options NULL: all defaults. NULL: err. */
jit_batch *jit_batch_open(jit_model *m, const jit_batch_options *options, jit_error *err);
/* After its sessions. */
void jit_batch_close(jit_batch *b);

/* A new session. It takes memory when it has tokens. sampling: NULL: greedy; copied. NULL: err. */
jit_session *jit_batch_session(jit_batch *b, const jit_sampling *sampling, jit_error *err);

/* Appends tokens, which the steps to come compute. Where another session of the batch, or one that was closed and is
 * still remembered, begins with the same tokens, what it computed is taken over: *reused (may be NULL) says how many of
 * these tokens need not be computed. JIT_ERROR_CONTEXT: they are too many; JIT_ERROR_MEMORY: the batch's memory could
 * not hold the session even alone. */
int jit_session_submit(jit_session *s, const int32_t *ids, size_t n, size_t *reused, jit_error *err);

/* At most one pass over what is pending: tokens being decoded first, then prompts, the one that came first before
 * others; where those being decoded fill a pass, prompts come first in the next one. JIT_ERROR_STALLED: tokens are due,
 * and none was computed. ready[0] to ready[*n - 1], at most `most`: sessions whose tokens are all computed by now, each
 * told once; *n 0: there is more to compute, or nothing is pending (jit_batch_pending). Sessions for which memory has
 * no room wait for it, or are set back and computed again later, the last that came first. An error that belongs to one
 * session (it was cancelled, its logits are not finite) makes it ready, and is told by whatever asks it for logits or a
 * token; what is returned here concerns the whole batch. Tokens that were submitted since the session was ready last
 * are taken back then; all others stay, and a rewind by one and its token, submitted again, have it go on. */
int jit_batch_step(jit_batch *b, jit_session **ready, size_t most, size_t *n, jit_error *err);
/* How many sessions have tokens to compute, or are ready and were not told yet. */
size_t jit_batch_pending(const jit_batch *b);

/* Forgets what is remembered of closed sessions that begin with these n tokens, or are no more than a beginning of
 * them; n 0: of all. How many sessions these were. Nothing changes but what is computed anew. */
size_t jit_batch_forget(jit_batch *b, const int32_t *ids, size_t n);

typedef struct jit_batch_stats {
	size_t size;
	uint64_t passes, tokens;               /* of steps; tokens: all that were computed, draft tokens included */
	uint64_t prompt_tokens, decode_tokens; /* of them, those submitted, and those chosen */
	uint64_t reused_tokens;                /* that need not be computed */
	uint64_t set_back;                     /* how often a session made room and was computed again */
	/* Pages of 128 positions of one session: what kv_bytes has room for; used, remembered ones included; of them,
	 * those remembered for closed sessions. */
	uint64_t pages, pages_used, pages_kept;
	uint64_t kv_bytes;     /* of what all of them may take */
	double seconds;        /* of all passes */
	uint64_t width[16];    /* passes by number of sessions: 1, 2, 3-4, 5-8, ... */
	uint64_t pages_shared; /* of those used: what several sessions have, remembered ones included */
	uint64_t context;      /* most positions of a session */
} jit_batch_stats;
#define JIT_BATCH_STATS() JIT_STRUCT(jit_batch_stats, )
int jit_batch_get_stats(const jit_batch *b, jit_batch_stats *out, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif
