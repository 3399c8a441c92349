/* tests/kernels/watched.h - a kernel in the interpreter that tells of every load and store before it happens.
 *
 * What a row of jit/ir/ops.def touches is said here once more, from the row's words: the interpreter does not tell.
 */
#ifndef TESTS_WATCHED_H
#define TESTS_WATCHED_H

#include "jit/ir/interp.h"

struct watched_access {
	uint64_t at, bytes;
	bool write, dataflow; /* dataflow: it awaits, or gives */
};
/* False: the kernel is not to go on. Private, shared and constant bytes of the kernel itself are not told of. */
typedef bool watched_see(void *context, const struct watched_access *a);

/* False: see() said so. arg: n_args slots, which count as memory. */
bool watched_run(const struct ir *ir, const uint64_t *arg, int64_t begin, int64_t end, watched_see *see, void *context);

#endif
