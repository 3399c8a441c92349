/* server/engine/batcher.h - the thread that computes for all requests of one model.
 *
 * Owns: the model's batch and all its sessions, the queue before it, and the rule that what happens to one request
 * touches no other. Clients take turns (fairness.h); at most so many choices are computed together.
 */
#ifndef SERVER_BATCHER_H
#define SERVER_BATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "include/jitrun_batch.h"
#include "server/engine/task.h"

struct batcher_options {
	jit_model *model;
	struct served_adapters *adapters; /* the model's; NULL: it has none */
	jit_batch_options batch;
	unsigned parallel;  /* choices computed together */
	unsigned queue;     /* choices that may wait beyond */
	unsigned of_client; /* of one client, choices that may wait or be computed */
	unsigned check;     /* of so many choices one is computed again (bits.h); 0: none */
	/* Told once, from the batcher's thread, that the device computes no more; NULL: nobody wants to know. */
	void (*device_failed)(void *user, const char *why);
	void *user;
};

/* What was done since the batcher was opened, and what it is at. */
struct batcher_numbers {
	unsigned running, waiting;
	uint64_t started, ended, failed, cancelled, dropped, refused; /* choices */
	uint64_t lost; /* of those that failed: the device failed under them */
	uint64_t prompt_tokens, reused_tokens, generated_tokens, drafted, accepted;
	uint64_t draft_requests, draft_proposed, draft_accepted;
	double prompt_seconds, decode_seconds, draft_seconds; /* summed over choices */
	jit_batch_stats batch;
	/* of the model, since it was opened; awaited: by a pass */
	uint64_t kernels_generated, kernels_cached, kernels_packed, kernels_awaited, code_bytes;
	uint64_t bits_checked, bits_wrong; /* choices */
};

struct batcher;

/* NULL: err. */
struct batcher *batcher_open(const struct batcher_options *o, jit_error *err);
/* What still runs or waits fails, and so does what comes. */
void batcher_stop(struct batcher *e);
/* When nobody asks any more. */
void batcher_close(struct batcher *e);
/* Hands over all choices of the task, whose stream must be open; holds it as long as it needs. False: refused, as the
 * queue is full. */
bool batcher_take(struct batcher *e, struct task *t, struct refusal *r);
/* Whether the model's device has failed for good, and why: nothing is computed any more. */
bool batcher_failed(struct batcher *e, jit_error *why);
void batcher_get_numbers(struct batcher *e, struct batcher_numbers *out);
/* A choice that has come to its end. */
struct choice;
void batcher_numbers_count(struct batcher_numbers *n, const struct choice *c);
/* What a batcher that is closed has counted, to what another has: nothing of what is at the moment. */
void batcher_numbers_add(struct batcher_numbers *to, const struct batcher_numbers *past);
/* Positions of a session, and choices computed together. */
int batcher_context(const struct batcher *e);
unsigned batcher_parallel(const struct batcher *e);

#endif
