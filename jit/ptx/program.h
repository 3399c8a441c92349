/* jit/ptx/program.h - a list of kernels as one launch that walks over commands, where jit/ptx/ptx.h has a launch for
 * each: the text, the commands, and what the entry is handed.
 *
 * All blocks are there at once (a cooperative launch) and each walks over all commands, in their order. A command is
 * one call of one kernel by some of the blocks; the others go on to the next at once. Nothing orders what different
 * blocks do but words that a kernel waits for itself and grid barriers: the blocks arrive at one behind a command, and
 * a later command may wait for it. A block that has not to wait goes on, so several barriers may be open at a time, and
 * each has a counter of its own.
 */
#ifndef JIT_PTX_PROGRAM_H
#define JIT_PTX_PROGRAM_H

#include "jit/compile.h"

/* A kernel's argument slots are in the command itself, so it reads none beyond these. */
enum { PTX_COMMAND_SLOTS = 24 };
struct ptx_command {
	uint64_t arg[PTX_COMMAND_SLOTS];
	int64_t begin;
	uint32_t per, rest;     /* share i of `blocks` begins at begin + i * per + min(i, rest), as in struct
	                           ptx_launch; where the kernel is not cooperative, its wave w has share
	                           w * blocks + i */
	uint32_t function;      /* which kernel of the list */
	uint32_t reserved;      /* 0 */
	uint32_t first, blocks; /* so many blocks have shares, block `first` the first one, and then those behind
	                           it, with block 0 behind the last of all. first is below the number of all;
	                           blocks is at most that */
	uint32_t waits;         /* the barrier that is waited for, and with it all before it, before memory is
	                           touched that kernels store to; 0: none. Blocks arrive there behind an earlier
	                           command. */
	uint32_t arrives;       /* the barrier at which all blocks arrive behind this command; 0: none. Barriers
	                           have the numbers 1, 2, ... in the order of the commands */
	uint64_t unused[3];     /* 0 */
};
_Static_assert(sizeof(struct ptx_command) == 256, "a lane of a warp loads eight bytes of it");

/* Commands and counters are memory of the card; the host may write commands between two launches. */
#define PTX_PROGRAM_ENTRY "jitrun_program"
struct ptx_program_launch {
	uint64_t commands;    /* at a multiple of 16 */
	uint32_t n;           /* 1 or more */
	uint64_t sync;        /* u32, PTX_SYNC_BYTES apart: barrier b counts at sync + (b - 1) * PTX_SYNC_BYTES */
	uint32_t arrivals;    /* what each of these counters holds before the launch, which adds the number of blocks to
	                         each; wraps around */
	uint64_t empty;       /* at a multiple of 16: words which this launch fills with IR_EMPTY and no kernel uses */
	uint64_t empty_bytes; /* a multiple of 16, or 0 */
};
enum { PTX_SYNC_BYTES = 128 };

/* The text of one module with the entry above, for blocks of t->waves * 32 threads; kernel i is function i. *out's
 * shared_bytes are what a block needs for any of them (ptx_shared_bytes), its frame_bytes 0. False: err; the caller
 * frees *out with object_free(). A kernel that reads arguments beyond a command's is refused. */
bool ptx_program(struct object *out, const struct ir *const kernels[], size_t n, const struct target *t,
                 struct error *err);

#endif
