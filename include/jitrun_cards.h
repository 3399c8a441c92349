/* jitrun_cards.h - what only graphics cards have: how a session runs on one, what a simulated one counted, whether one
 * still computes, and a model's machine code as files.
 *
 * Everything here follows jitrun.h: ERRORS, and STRUCTS AND VERSIONS.
 */
#ifndef JITRUN_CARDS_H
#define JITRUN_CARDS_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ---- sessions */

enum { JIT_LAUNCH_TOKEN, JIT_LAUNCH_LAYER, JIT_LAUNCH_OP };

/* For jit_session_options.card. Values are checked on every device, and mean nothing where it is no card. */
struct jit_card_options {
	size_t size;
	int launch;     /* what one launch does: JIT_LAUNCH_TOKEN all of a pass, JIT_LAUNCH_LAYER a layer, JIT_LAUNCH_OP
	                   an operation */
	int workgroups; /* of 8 waves, that run at the same time; 0: as many as the card has room for, more than that
	                   are refused */
	int units;      /* simulated cards: compute units; 0: 2 */
	int reserved;   /* 0 */
};
#define JIT_CARD_OPTIONS(...) JIT_STRUCT(jit_card_options, __VA_ARGS__)

/* What a session launched and moved on a card; on a real one all but launches, barriers and commands are 0.
 * load128_bytes: the part of load_bytes that each lane loaded 16 bytes at a time. weight_bytes, cache_bytes: what was
 * loaded of weights and of the KV cache, by whatever loads. commands: ops of passes that are one launch on an NVIDIA
 * card. */
typedef struct jit_card_stats {
	size_t size;
	uint64_t launches, barriers, instructions, load_bytes, load128_bytes, store_bytes, scalar_bytes, weight_bytes,
		cache_bytes, commands;
} jit_card_stats;
#define JIT_CARD_STATS() JIT_STRUCT(jit_card_stats, )
/* JIT_ERROR_UNSUPPORTED on a device that does not count. */
int jit_session_get_card_stats(const jit_session *s, jit_card_stats *out, jit_error *err);

/* ---- models */

/* JIT_OK while the model's device computes. JIT_ERROR_DEVICE once it has failed for good, with the sentence that says
 * how: it met a fault, or did not answer in time. Nothing is computed with the model any more then; it can be closed.
 * From any thread. */
int jit_model_alive(const jit_model *m, jit_error *err);

/* ---- code objects */

typedef struct jit_objects_options {
	size_t size;
	const char *target;                    /* a card, "gfx1101" */
	const char *dir;                       /* made when it is missing */
	int kv;                                /* as of jit_session_options */
	int f32_activations, bounded_numerics; /* as of jit_model_options; nothing is measured */
	int reserved;                          /* 0 */
} jit_objects_options;
#define JIT_OBJECTS_OPTIONS(...) JIT_STRUCT(jit_objects_options, __VA_ARGS__)

typedef struct jit_objects {
	size_t size;
	size_t kernels, programs;
	uint64_t bytes;
} jit_objects;
#define JIT_OBJECTS() JIT_STRUCT(jit_objects, )

/* Writes the machine code of a model's passes over 1, 4, 8 and 16 tokens as AMDGPU code objects: each kernel by itself,
 * and each pass as one program; for NVIDIA cards each kernel as PTX. Reads the model's header alone, which the file may
 * end behind; no card is needed. out may be NULL. */
int jit_write_objects(const char *path, const jit_objects_options *options, jit_objects *out, jit_error *err);

#ifdef __cplusplus
}
#endif
#endif
