/* tests/kernel_run.h - one kernel in every way it can run here, for tests that compare bytes.
 *
 * A way is the interpreter at 8, 16 or 32 lanes, also with groups of waves, or machine code on this machine. kernel_open() fails the test when a template or the
 * compiler refuses; a way this machine cannot run is not in the list that kernel_ways() gives.
 */
#ifndef TESTS_KERNEL_RUN_H
#define TESTS_KERNEL_RUN_H

#include "jit/compile.h"
#include "jit/interp.h"
#include "kernels-templates/templates.h"

struct kernel_way { const char *name; struct target target; bool native; };

/* Returns how many, KERNEL_MAX_WAYS at most; they stay valid. */
enum { KERNEL_MAX_WAYS = 6 + TARGET_COUNT };
unsigned kernel_ways(const struct kernel_way **ways);

struct kernel {
	struct interp_program *program;
	void *code; size_t code_bytes;
	struct compile_stats stats;           /* native only */
};
/* key->target is ignored. */
void kernel_open(struct kernel *k, const struct kernel_way *way, const struct key *key);
/* For IR that is no template's; ir stays the caller's and has the way's lanes. */
void kernel_open_ir(struct kernel *k, const struct kernel_way *way, const struct ir *ir);
void kernel_run(const struct kernel *k, const uint64_t *arg, int64_t begin, int64_t end);
void kernel_close(struct kernel *k);

/* n bytes, 64-byte aligned, filled with fill, 256 readable bytes behind them. free() it. */
void *kernel_buffer(size_t n, int fill);
/* A reproducible float in about -2..2; every so often a large, a tiny or a zero one. */
float kernel_random(uint64_t *state);

#endif
