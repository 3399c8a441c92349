/* jit/ir/interp.h - a kernel decoded once for many interpreted calls.
 *
 * ir_interp() (ir.h) decodes and runs in one call; callers that run a kernel often keep the program. A program
 * is read-only once made: any number of threads may run it at the same time.
 */
#ifndef JIT_INTERP_H
#define JIT_INTERP_H

#include "jit/ir/ir.h"

struct interp_program;

/* ir must verify. NULL: out of memory. */
struct interp_program *interp_compile(const struct ir *ir);
/* For tests: from now on p runs the instance that needs nothing beyond the base instruction set, also where the host
 * has more. */
void interp_use_portable(struct interp_program *p);
void interp_free(struct interp_program *p);

/* Bytes of working memory one run needs: registers and locals. */
size_t interp_frame_bytes(const struct interp_program *p);

/* frame: interp_frame_bytes(p) bytes, 64-byte aligned, contents irrelevant, of this run alone; NULL: allocated for this
 * run. UNWRITTEN: it awaited a word that still was IR_EMPTY, and ended there. SAME_ELEMENT: lanes of a scatter had the
 * same element, and it ended there. */
enum interp_end { INTERP_DONE, INTERP_NO_MEMORY /* only with NULL */, INTERP_UNWRITTEN, INTERP_SAME_ELEMENT };
enum interp_end interp_run(const struct interp_program *p, void *frame, const uint64_t *arg, int64_t begin,
                           int64_t end);
/* Why a run ended, as what follows the kernel's name in a sentence. */
const char *interp_why(enum interp_end end);

#endif
