/* sim/ptx_warp.h - a warp that runs, and what runs it. */
#ifndef SIM_PTX_WARP_H
#define SIM_PTX_WARP_H

#include "sim/ptx_text.h"

enum ptx_state { PTX_RUNS, PTX_AT_BARRIER, PTX_ENDED };
enum { PTX_RECENT = 1024 /* stores that are remembered */ };

struct ptx_warp {
	uint64_t *reg;     /* [register][lane] */
	uint32_t *defined; /* by register: lanes */
	size_t at;         /* the step */
	enum ptx_state state;
	uint32_t number, met; /* how often its lanes met, and 1 more */
	bool waited;
	struct {
		uint64_t word;
		uint32_t met, lane;
	} recent[PTX_RECENT];
};

/* A shared byte: by whom, and when, it was written and read; read_lanes: of the last reader, since its lanes met. */
struct ptx_byte {
	uint32_t written_turn, written_met, read_turn, readers, read_met, read_lanes;
	uint8_t writer, lane, is_written, reader;
};

struct ptx_region {
	uint8_t *base;
	size_t bytes;
};
struct ptx_memory {
	struct ptx_region *region;
	size_t n, capacity;
};

struct ptx_block {
	const struct ptx_text *t;
	const struct ptx_memory *memory;
	struct ptx_run *run;
	struct ptx_warp *warp;
	unsigned n_warps;
	uint32_t number, turn; /* turn: barriers so far, and 1 more */
	uint8_t *shared;
	struct ptx_byte *byte;
	size_t last_region; /* where the last address was */
	struct error *err;
};

/* A step is carried out by the lanes of mask. False: trapped. */
bool ptx_trap(const struct ptx_block *b, const struct ptx_warp *w, int lane, const char *why);
/* ptx_math.c; false: not one of its operations. */
bool ptx_compute(struct ptx_warp *w, const struct ptx_step *s, uint32_t mask);
/* ptx_matrix.c: by all lanes. */
void ptx_multiply(struct ptx_warp *w, const struct ptx_step *s, enum ptx_sums sums);
/* ptx_memory.c */
bool ptx_access(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask);
bool ptx_prefetch(struct ptx_block *b, struct ptx_warp *w, const struct ptx_step *s, uint32_t mask);
bool ptx_is_access(unsigned operation);

#endif
