/* sim/ptx_warp.h - a warp that runs, and what runs it. */
#ifndef SIM_PTX_WARP_H
#define SIM_PTX_WARP_H

#include "sim/ptx_order.h"

enum ptx_state { PTX_RUNS, PTX_POLLS, PTX_AT_BARRIER, PTX_ENDED };
enum { PTX_RECENT = 1024 /* stores that are remembered */, PTX_WATCHED = 1 << 16 };

/* Copies to shared memory that were started and not yet waited for: see ptx_copies.c. */
struct ptx_copies {
	struct ptx_copy *copy;
	size_t n, capacity;
	uint32_t group;
};

struct ptx_warp {
	uint64_t *reg;     /* [register][lane] */
	uint32_t *defined; /* by register: lanes */
	size_t at;         /* the step */
	enum ptx_state state;
	size_t back[PTX_DEPTH]; /* the calls it is within */
	unsigned depth;
	uint32_t number, met; /* how often its lanes met, and 1 more */
	bool waited;
	struct ptx_copies copies;
	/* A loop that does nothing but read words others may write, twice the same: see ptx_polls.c. */
	struct {
		size_t branch, load; /* where it goes back, and its last load */
		uint64_t hash, last_hash, version;
		bool loads, disturbed;
	} poll;
	struct {
		uint64_t word;
		uint32_t met, lane;
	} recent[PTX_RECENT];
};

/* A shared byte: by whom, and when, it was written and read; read_lanes: of the last reader, since its lanes met. */
struct ptx_byte {
	union {
		struct {
			uint32_t written_epoch, written_met, read_epoch, readers, read_met, read_lanes;
			uint8_t writer, lane, is_written, reader;
			uint8_t by_atomics; /* all that wrote it since the barrier */
			uint8_t unused[3];
		};
		uint64_t word[4]; /* the same, to be compared */
	};
};

struct ptx_region {
	uint8_t *base;
	size_t bytes;
	int card; /* whose memory it is; -1: anybody's */
};
struct ptx_memory {
	struct ptx_region *region;
	size_t n, capacity;
};

/* What the blocks of a cooperative launch share, all of which are alive. */
struct ptx_together {
	struct ptx_block *block;
	uint32_t n;
	struct ptx_order *order;
	uint64_t version;      /* how often a word was written that somebody polled */
	uint64_t last_change;  /* when something was last written, in instructions */
	struct ptx_seen *seen; /* while it is told what a warp polls */
	uint64_t watched[PTX_WATCHED / 64];
};

struct ptx_block {
	const struct ptx_text *t;
	const struct ptx_function *entry;
	const struct ptx_memory *memory;
	struct ptx_run *run;
	struct ptx_warp *warp;
	unsigned n_warps;
	uint32_t number, epoch; /* epoch: barriers so far, and 1 more */
	uint32_t card;          /* which of the launch's cards */
	uint8_t *shared;
	struct ptx_byte *byte;
	size_t touched;                /* shared bytes from here on were neither read nor written */
	size_t last_region;            /* where the last address was */
	struct ptx_together *together; /* NULL: the block is alone */
	struct error *err;
};

/* A step is carried out by the lanes of mask. False: trapped. */
bool ptx_trap(const struct ptx_block *b, const struct ptx_warp *w, int lane, const char *why);
/* ptx_math.c; false: not one of its operations. */
bool ptx_compute(struct ptx_warp *w, const struct ptx_step *s, uint32_t mask);
/* ptx_doubles.c; false: not one of its operations. o: the sources. */
bool ptx_compute_doubles(const struct ptx_step *s, uint64_t *d, const uint64_t *const o[3], uint32_t mask);
/* ptx_matrix.c: by all lanes. */
void ptx_multiply(struct ptx_warp *w, const struct ptx_step *s, enum ptx_sums sums);
/* ptx_memory.c */
bool ptx_access(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask);
/* ldmatrix: by all lanes. */
bool ptx_load_matrix(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s);
bool ptx_prefetch(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask);
bool ptx_is_access(unsigned operation);
/* Where a lane's bytes are. NULL: trapped. */
uint8_t *ptx_reach(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, unsigned lane, uint64_t at,
                   size_t bytes, bool store);
/* Whether nothing races with that access of global memory in a cooperative launch; kind: PTX_WRITES and so on. */
bool ptx_is_ordered(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, unsigned lane, uint64_t at,
                    size_t bytes, unsigned kind, bool loads);
/* ptx_copies.c; but: so many groups may still be on their way. */
bool ptx_copy(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask);
void ptx_copies_wait(struct ptx_block *b, struct ptx_warp *w, uint64_t but);
/* ptx_run.c: up to that many steps, while the warp runs; *slice: those left over. */
bool ptx_run_slice(struct ptx_block *b, struct ptx_warp *w, uint64_t *epoch);
/* ptx_polls.c; in cooperative launches. A strong load, and one of another kind or a store: of one lane. */
void ptx_poll_load(struct ptx_block *b, struct ptx_warp *w, uint64_t at, size_t bytes, const uint8_t *value);
void ptx_poll_other(struct ptx_block *b, struct ptx_warp *w, uint64_t at, size_t bytes, bool changes);
/* At a branch backwards. */
void ptx_poll_branch(struct ptx_block *b, struct ptx_warp *w);
/* Says who polls what, and traps. */
bool ptx_poll_hangs(struct ptx_together *all);

#endif
