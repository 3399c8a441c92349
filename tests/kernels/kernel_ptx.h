/* tests/kernels/kernel_ptx.h - templates' kernels on NVIDIA cards, for kernel_run.c; and what these take from
 * kernel_card.c.
 */
#ifndef TESTS_KERNEL_PTX_H
#define TESTS_KERNEL_PTX_H

#include "jit/compile.h"
#include "sim/ptx.h"

struct kernel_ptx;
/* Whatever is refused or traps fails the test. name: of the way. */
struct kernel_ptx *kernel_ptx_open(const char *name, const struct target *t, const struct key *key, const struct ir *ir,
                                   struct compile_stats *stats);
void kernel_ptx_run(struct kernel_ptx *k, const uint64_t *arg, int64_t begin, int64_t end);
void kernel_ptx_close(struct kernel_ptx *k);
/* How simulated cards add from here on. */
void kernel_ptx_sums(enum ptx_sums sums);

/* kernel_card.c: the region that kernel_buffer() or kernel_know() had there. */
bool kernel_known(uint64_t address, void **base, size_t *n);
/* Whether nothing takes turns. */
bool kernel_everything(void);

#endif
