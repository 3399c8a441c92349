/* programs/common/shared_rows.h - rows of the tables of options (options.h) that several programs have: a macro each,
 * for its order and groups are each program's own; and what their values are for the library. Where programs mean
 * different things by an option, they give its help.
 */
#ifndef PROGRAMS_SHARED_ROWS_H
#define PROGRAMS_SHARED_ROWS_H

#include <stdlib.h>
#include <string.h>

#include "programs/common/numerics.h"
#include "programs/common/options.h"

#define ROW_MODEL(to) \
	{ \
		.name = "model", .letter = 'm', .kind = OPTION_FILE, .value = "FILE", \
		.help = "the model, in the place of MODEL", .target = &(to) \
	}
#define ROW_HF_FILE(to) \
	{ \
		.name = "hf-file", .kind = OPTION_TEXT, .value = "FILE", .help = "that file of --hf-repo; also -hff", \
		.target = &(to) \
	}
#define ROW_OFFLINE(to) \
	{ \
		.name = "offline", .kind = OPTION_FLAG, .help = "ask no hub: --hf-repo is what is here of it", \
		.target = &(to) \
	}
#define ROW_QUIET(to) \
	{ \
		.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "no progress bar and no summary", \
		.target = &(to) \
	}

/* choices: made of the table of targets (target_list()) before the command line is read. */
#define ROW_ISA(choices, to) \
	{ \
		.name = "isa", .kind = OPTION_CHOICE, .value = choices, \
		.help = "instruction set to generate for (the best this CPU has)", .target = &(to) \
	}
#define ROW_THREADS(to) \
	{ \
		.name = "threads", .letter = 't', .kind = OPTION_INT, .value = "N", \
		.help = "worker threads; 0: one per core this process may use (0)", .high = 1024, .target = &(to) \
	}
#define ROW_RANKS(to) \
	{ \
		.name = "ranks", .kind = OPTION_TEXT, .value = "CARRIER", \
		.help = "several processes compute the model together, each a part of it, with the same bits; " \
			"fork:N: N processes of this machine; mpi: those that mpirun started; delay:US:fork:N: " \
			"messages " \
			"arrive so many microseconds later, to try a slow network (docs/cluster.md)", \
		.target = &(to) \
	}
#define ROW_SPLIT(to) \
	{ \
		.name = "split", .kind = OPTION_TEXT, .value = "SPLIT", \
		.help = "with --ranks, what each has; pipeline: layers, by the bytes that a token reads; " \
			"pipeline:12,16: so many layers for each; rows: the same share of all matrices' rows; " \
			"rows:1,7: in that proportion; auto: measures messages and memory, and says why (pipeline)", \
		.target = &(to) \
	}
#define ROW_BATCH(help_, to) \
	{ \
		.name = "batch", .kind = OPTION_INT, .value = "N", .help = help_, .high = 1024, .target = &(to) \
	}
#define BATCH_HELP "most prompt tokens computed in one pass; 0: 264, on NVIDIA cards 512 (0)"
#define ROW_SPECULATE(to) \
	{ \
		.name = "speculate", .kind = OPTION_CHOICE, .value = "off|auto|4|8|16", \
		.help = "speculative decoding by prompt lookup: where the text has occurred before, draft tokens are " \
			"copied from there and checked in passes of 4, 8 or 16 tokens; auto: when and as many as " \
			"measurements say it pays; the text stays the same (auto)", \
		.target = &(to) \
	}
#define ROW_KV_TYPE(to) \
	{ \
		.name = "kv-type", .kind = OPTION_CHOICE, .value = "f16|f32|q8_0", \
		.help = "type of the KV cache; q8_0: int8, half the memory (f16)", .target = &(to) \
	}
#define ROW_ACTIVATIONS(to) \
	{ \
		.name = "activations", .kind = OPTION_CHOICE, .value = "auto|f32", \
		.help = "auto: int8 blocks against quantised weights; f32: always f32, slower (auto)", .target = &(to) \
	}
#define ROW_NUMERICS(help_, to) \
	{ \
		.name = "numerics", .kind = OPTION_CHOICE, .value = NUMERICS_VALUES, .help = help_, .target = &(to) \
	}
#define ROW_CACHE(to) \
	{ \
		.name = "cache", .kind = OPTION_FILE, .value = "PATH", \
		.help = "directories and pack files (.jkp) of generated code, separated by colons and searched in " \
			"order; new code goes to the first directory that can be written. This code is executed " \
			"as it is: the checksums detect damage, not forgery, so what counts is who may write the " \
			"files. Files of anybody but you and root, and files that others may write, are refused " \
			"($JITRUN_CACHE, or $XDG_CACHE_HOME/jitrun)", \
		.target = &(to) \
	}
#define ROW_NO_CACHE(to) \
	{ \
		.name = "no-cache", .kind = OPTION_FLAG, .help = "neither read nor write a cache of generated code", \
		.target = &(to) \
	}
#define ROW_SEALED(to) \
	{ \
		.name = "sealed", .kind = OPTION_FLAG, \
		.help = "generate no code: use only kernels that jitwarm compiled ahead of time. The cache is only " \
			"read; a missing kernel is an error that names it", \
		.target = &(to) \
	}

static inline int kv_type_option(const char *value)
{
	return strcmp(value, "f32") == 0 ? JIT_KV_F32 : strcmp(value, "q8_0") == 0 ? JIT_KV_Q8_0 : JIT_KV_F16;
}

static inline int speculate_option(const char *value)
{
	return strcmp(value, "off") == 0    ? JIT_SPECULATE_OFF
	       : strcmp(value, "auto") == 0 ? JIT_SPECULATE_AUTO
	                                    : atoi(value);
}

#endif
