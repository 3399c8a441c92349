/* jitrun_draft.h - a draft model: a small model of the same vocabulary that proposes the tokens to come.
 *
 * Everything here follows jitrun.h: ERRORS, and STRUCTS AND VERSIONS.
 */
#ifndef JITRUN_DRAFT_H
#define JITRUN_DRAFT_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* DRAFT MODELS. With jit_session_options.draft or jit_batch_options.draft, passes of several tokens may begin with
 * tokens that the draft model proposes, where the text itself proposes none that are as good (jitrun.h, SPECULATION).
 * The session's own model still chooses each token from its own logits: neither tokens nor logits change, with sampling
 * or without. The draft model draws with the session's parameters and random numbers, so that it agrees more often.
 * With JIT_SPECULATE_AUTO it is asked only while, from what was measured in this session, that gains time;
 * JIT_SPECULATE_OFF: never; 4, 8, 16: whenever the text has nothing better. jit_session_get_draft_stats says what came
 * of it. */
typedef struct jit_draft_options {
	size_t size;
	jit_model *model; /* on any device; borrowed, and open until the session or batch is closed */
	int kv;           /* KV cache of the draft model: as jit_session_options.kv */
	int context;      /* its positions; 0: as many as the session has and the model was trained for */
	int max;          /* tokens it proposes for one pass at most, 1 to 15, half of its context; 0: 15 */
	int min;          /* where it proposes fewer than this, none are used; at most `max`; 0: 1 */
	float min_p;      /* 0 to 1: it stops before a token that it holds less likely than this */
	int reserved;     /* 0 */
} jit_draft_options;
#define JIT_DRAFT_OPTIONS(...) JIT_STRUCT(jit_draft_options, __VA_ARGS__)

/* What came of a draft model; used and accepted tokens are part of `drafted` and `accepted` of jit_session_stats. */
typedef struct jit_draft_stats {
	size_t size;
	uint64_t requests, proposed; /* passes for which it was asked; tokens that it proposed */
	uint64_t used, accepted;     /* of them, those that passes computed, and those the choice equalled */
	double seconds;              /* that it took, reading included */
	double gain;                 /* tokens a second where it was asked, over those without; 0: not measured */
	const char *trouble;         /* why it is asked no more; lives as long as the session; NULL: nothing is wrong */
} jit_draft_stats;
#define JIT_DRAFT_STATS() JIT_STRUCT(jit_draft_stats, )
/* All 0 where the session has no draft model. */
int jit_session_get_draft_stats(const jit_session *s, jit_draft_stats *out, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif
