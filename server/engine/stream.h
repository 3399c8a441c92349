/* server/engine/stream.h - what the batcher has for one request, on its way to the thread that answers the client.
 *
 * Owns: the events of all choices of the request, and the rule that nobody waits for a slow reader: a request whose
 * events lie unread beyond a limit is dropped. The batcher's thread puts events; the HTTP library's threads take
 * them, and ask to be woken when there are none. Both hold a reference.
 */
#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/jitrun.h"

enum answer_event_kind {
	EVENT_STARTED, /* the batcher has begun with this choice */
	EVENT_SCORED,  /* a token of its prompt, and how likely it was there */
	EVENT_PROMPT,  /* part of its prompt was computed */
	EVENT_TOKEN,   /* a token, and the text that it completes */
	EVENT_ENDED,   /* nothing more comes of this choice */
	EVENT_FAILED,  /* the same; text is the name of a field, n_param bytes, and why; status is HTTP's */
	EVENT_IDLE     /* nothing for some time: the connection must be kept alive */
};
enum end_reason { END_TOKEN, END_STOP_TEXT, END_LENGTH, END_GRAMMAR, END_CANCELLED };

/* What a choice has cost so far. */
struct run_numbers {
	unsigned slot;                                         /* its place (slots.h) */
	uint64_t prompt, reused, generated, drafted, accepted; /* tokens */
	/* Of a draft model: passes for which it was requested, tokens that it proposed, and those that were right. */
	uint64_t draft_requests, draft_proposed, draft_accepted;
	double draft_seconds, draft_gain; /* as jit_draft_stats has them */
	double queued_seconds, prompt_seconds, decode_seconds;
	double told; /* when these were counted, as system_seconds() has it */
};

struct answer_event {
	enum answer_event_kind kind;
	enum end_reason reason; /* ENDED */
	unsigned choice;
	int status;    /* FAILED */
	int stop;      /* END_STOP_TEXT: which text */
	int32_t id;    /* TOKEN; -1: text that was held back */
	float logprob; /* of the token; NaN: of the first one of a text, before which there is nothing */
	uint32_t n_text, n_top, n_param;
	struct run_numbers numbers; /* STARTED, PROMPT, ENDED; TOKEN, where the task wants it */
	uint64_t done;              /* PROMPT: tokens that need not be computed any more */
};

struct answer_stream;

/* choices: how many must end. whole: the reader wants nothing before all of them have. NULL: no memory. */
struct answer_stream *stream_open(unsigned choices, size_t max_unread, bool whole);
void stream_hold(struct answer_stream *s);
void stream_release(struct answer_stream *s);

/* Nobody is there who puts a last event when it is cancelled: the reader is woken by that itself. */
void stream_wakes_when_cancelled(struct answer_stream *s);

/* ---- the batcher's side */

/* Behind the event: n_top entries and n_text bytes. False: nobody wants them any more. */
bool stream_put(struct answer_stream *s, const struct answer_event *r, const jit_logprob *top, const char *text);
/* Whether the client has gone, or was dropped. */
bool stream_is_cancelled(const struct answer_stream *s);

/* ---- from any thread */

void stream_cancel(struct answer_stream *s);
/* Something that belongs into it was lost: its client is dropped. */
void stream_drop(struct answer_stream *s);
/* Puts an IDLE event when none was put for so many seconds. */
void stream_keep_alive(struct answer_stream *s, double now, double seconds);

/* ---- the reader's side */

/* The next event; what it points to holds until the next call. False: none has come yet, or all are taken. */
bool stream_take(struct answer_stream *s, struct answer_event *r, const jit_logprob **top, const char **text);
/* Whether all choices have ended and every event was taken. */
bool stream_is_over(struct answer_stream *s);
bool stream_is_dropped(struct answer_stream *s);
/* How long ago all choices ended; 0: they have not. */
double stream_over_for(struct answer_stream *s, double now);
/* When there is nothing to take yet: calls sleep, then later, once, wake, from another thread. False: there is
 * something already, and nothing was called. */
bool stream_wait(struct answer_stream *s, void (*sleep)(void *user), void (*wake)(void *user), void *user);
/* The client was answered, or has gone: nobody is woken any more. */
void stream_leave(struct answer_stream *s);

#endif
