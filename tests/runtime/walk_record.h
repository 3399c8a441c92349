/* tests/runtime/walk_record.h - what a walk of a session saw, to be compared with that of another walk. */
#ifndef TESTS_RUNTIME_WALK_RECORD_H
#define TESTS_RUNTIME_WALK_RECORD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_draft.h"

enum { RECORD = 1 << 16 };

/* All that a walk saw. */
struct record {
	size_t n;
	uint8_t bytes[RECORD];
	jit_session_stats stats;
	jit_draft_stats draft;
};

static inline void note(struct record *r, const void *p, size_t n)
{
	assert_true(r->n + n <= RECORD);
	memcpy(r->bytes + r->n, p, n);
	r->n += n;
}

static inline void note_logits(struct record *r, jit_session *s, uint32_t vocab)
{
	jit_error err = { 0 };
	const float *l = jit_session_logits(s, &err);
	uint64_t h = 0xcbf29ce484222325ull;

	for (uint32_t i = 0; l && i < vocab; i++) {
		uint32_t bits;
		memcpy(&bits, l + i, sizeof bits);
		h = (h ^ bits) * 0x100000001b3ull;
	}
	note(r, &h, sizeof h);
	note(r, &err.code, sizeof err.code);
}

static inline void note_logprobs(struct record *r, jit_session *s)
{
	jit_error err = { 0 };
	float chosen = 0;
	jit_logprob top[3] = { 0 };
	size_t n = 0;

	assert_int_equal(jit_session_logprobs(s, &chosen, top, 3, &err), JIT_OK);
	note(r, &chosen, sizeof chosen);
	note(r, top, sizeof top);
	assert_int_equal(jit_session_sampled_logprobs(s, &chosen, top, 1, &n, &err), JIT_OK);
	note(r, &chosen, sizeof chosen);
	note(r, &top[0], sizeof top[0]);
}

static inline void note_text(struct record *r, jit_session *s, int32_t id)
{
	jit_error err = { 0 };
	size_t n = 0;
	const char *text = jit_session_text(s, id, &n, &err);

	assert_non_null(text);
	note(r, text, n);
	const int stopped = jit_session_stopped(s);
	note(r, &stopped, sizeof stopped);
}

#endif
