/* runtime/engine/engine_ranks.h - passes that several ranks compute together, each its layers.
 *
 * Owns: the form of what rank 0 tells the others of an engine and of a pass. A pass goes from rank to rank: rank 0
 * begins with the embeddings and its layers, and has the values back for the logits. Each rank has plans of the whole
 * model, of which it runs a part, so that values lie in the same places everywhere; what is sent is cut_carried(). A
 * pass without logits has no way back: rank 0 goes on with the next one meanwhile. Split by rows, all ranks run each
 * pass together, and exchange what plan/cut_rows.h says.
 */
#ifndef RUNTIME_ENGINE_RANKS_H
#define RUNTIME_ENGINE_RANKS_H

#include "runtime/engine/engine.h"
#include "runtime/ranks/ranks.h"

/* Numbers of an engine, by which another rank opens its own. */
struct engine_numbers {
	struct plan_cache kv;
	uint32_t context, batch, tokens, rows, drafts, speculate, exact, adapted;
	int64_t threads;
};

/* What is told of a pass: this; a span for each sequence; then the addresses of their pages, as many as each span says,
 * and again those of layers with a window, where the engine has such pages; then sets of adapters. */
struct engine_pass {
	uint32_t tokens, logits, kind, spans, joint, normed;
	uint64_t position;
	uint32_t sets, reserved; /* 0: it has no adapters */
};
struct engine_span {
	struct plan_span span;
	uint32_t pages;
	uint32_t set, reserved; /* its adapters */
	uint64_t position;
	ranks_address before, behind;
};

/* A piece of a session's cache, which is a layer's keys and its values behind them, or a state of all layers. */
struct engine_kept {
	ranks_address at;
	uint64_t bytes;
	uint32_t layer; /* as many as there are: a state */
	uint32_t reserved;
};
/* Rank 0. RANKS_COLLECT: it has all of these pieces then, as one process would; RANKS_SPREAD: the others have their
 * parts of what it has. False: err. */
bool engine_move_kept(const jit_model *m, enum ranks_what what, struct engine_kept *kept, size_t n, struct error *err);
/* On other ranks: one of these two. False: err. */
bool engine_kept_follow(const jit_model *m, const struct ranks_command *c, struct error *err);

/* Rank 0: the others open and close theirs. False: err. */
bool engine_tell_open(struct engine *e, int threads, struct error *err);
void engine_tell_close(struct engine *e);
/* A pass, whose sequences are set; rank 0's side. False: err. */
bool engine_run_ranks(struct engine *e, struct plan *p, const struct plan_sequence *at, enum profile_pass kind,
                      struct error *err);

/* engine_rows.c: a plan that all ranks compute together, by rows; between ranks_begin() and ranks_end(), each rank at
 * the same time. False: err. */
bool engine_run_rows(struct engine *e, struct plan *p, struct error *err);
/* The part of a plan that a rank other than 0 has, between what it receives and what it sends. False: err. */
bool engine_run_share(struct engine *e, struct plan *p, struct error *err);

#endif
