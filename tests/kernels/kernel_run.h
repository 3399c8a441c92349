/* tests/kernels/kernel_run.h - one kernel in every way it can run here, for tests that compare bytes.
 *
 * A way is the interpreter at 8, 16 or 32 lanes, also with groups of waves, machine code on this machine, RDNA machine
 * code in the simulator, behind the driver that calls it on a card, or PTX on an NVIDIA card, a simulated one unless
 * JITRUN_TEST_CUDA is in the environment. kernel_open() fails the test when a
 * template or the compiler refuses; a way this machine cannot run is not in the list that kernel_ways() gives.
 *
 * Simulated kernels may touch what their arguments point into, as far as it came from kernel_buffer() or was told to
 * kernel_know(), to the byte. Each run takes another number of workgroups, moment for loads to arrive and order of
 * waves; each opening another seed for the compiler and other passes left out. After kernel_all_modes(), and everywhere
 * with JITRUN_TEST_FULL, nothing takes turns: a run is many, of two codes, in which loads arrive at all three moments,
 * and all must leave the same bytes.
 */
#ifndef TESTS_KERNEL_RUN_H
#define TESTS_KERNEL_RUN_H

#include "jit/compile.h"
#include "jit/ir/interp.h"
#include "kernels-templates/templates.h"

struct kernel_way {
	const char *name;
	struct target target;
	bool native, simulated;
};

/* Returns how many, KERNEL_MAX_WAYS at most; they stay valid. */
enum { KERNEL_CARDS = 5 /* one of each generation of each maker */, KERNEL_MAX_WAYS = 7 + TARGET_COUNT + KERNEL_CARDS };
unsigned kernel_ways(const struct kernel_way **ways);
/* Those and simulated cards: number turn % KERNEL_CARDS of them, or KERNEL_ALL_CARDS, as any turn is with
 * JITRUN_TEST_FULL; of all, builds that take turns (test_mine) have some. Only kernels of templates run on these. At
 * the quick size each turn has every other way of this machine (test_share_of), so that the turns of a loop have all.
 */
enum { KERNEL_ALL_CARDS = -1 };
unsigned kernel_ways_and_cards(const struct kernel_way **ways, int round);
/* For tests that are short all the same. JITRUN_TEST_QUICK wins. */
void kernel_all_modes(void);

struct kernel_card;
struct kernel_ptx;
struct kernel {
	struct interp_program *program;
	void *code;
	size_t code_bytes;
	struct kernel_card *card;   /* a Radeon card's */
	struct kernel_ptx *ptx;     /* an NVIDIA card's */
	struct compile_stats stats; /* native and simulated */
};
/* key->target is ignored. */
void kernel_open(struct kernel *k, const struct kernel_way *way, const struct key *key);
/* No template builds this for anything that runs here; the test fails when one does. */
void kernel_refused(const struct key *key);
/* For IR that is no template's; ir stays the caller's and has the way's lanes. */
void kernel_open_ir(struct kernel *k, const struct kernel_way *way, const struct ir *ir);
void kernel_run(const struct kernel *k, const uint64_t *arg, int64_t begin, int64_t end);
void kernel_close(struct kernel *k);

/* n bytes, 64-byte aligned, filled with fill, 256 readable bytes behind them. free() it. */
void *kernel_buffer(size_t n, int fill);
/* Memory from elsewhere that kernels may touch. Forgotten when new memory overlaps it. */
void kernel_know(const void *base, size_t n);
/* A reproducible float in about -2..2; every so often a large, a tiny or a zero one. */
float kernel_random(uint64_t *state);

/* kernel_card.c: what kernel_open() and the rest call for Radeon cards; kernel_ptx.h has the same of NVIDIA's. */
void kernel_card_open(struct kernel *k, const struct kernel_way *way, const struct key *key, const struct ir *ir);
void kernel_card_run(struct kernel_card *c, const uint64_t *arg, int64_t begin, int64_t end);
void kernel_card_close(struct kernel_card *c);

#endif
