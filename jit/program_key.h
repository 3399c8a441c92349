/* jit/program_key.h - programs: several kernels in one text, which a card runs in one launch, and their keys.
 *
 * Owns: which kernels a key of kind KEY_PROGRAM stands for. A key has room for a hash of their list alone, so the code
 * that makes one passes the list in, and it is known until the process ends.
 */
#ifndef JIT_PROGRAM_KEY_H
#define JIT_PROGRAM_KEY_H

#include "base/error.h"
#include "jit/key.h"

enum { PROGRAM_KERNELS_MAX = 256 };
/* The key of a program of n kernels, 1 to PROGRAM_KERNELS_MAX, all of one target; those that stand there twice count
 * once, and their order is of no account. Thread-safe. False: err. */
bool program_key(struct key *out, const struct key *kernel, size_t n, struct error *err);
/* The kernels of such a key in the order of their numbers in it, which is that of their bytes; they live as long as the
 * process. NULL: nobody has handed that list in. Thread-safe. */
const struct key *program_kernels(const struct key *program, size_t *n);
/* Which number a kernel has there; n: none. */
size_t program_number(const struct key *list, size_t n, const struct key *kernel);

/* A program's text says in comments in front of it of which kernels it is made, so that who finds it in a cache can
 * make it anew. Writes them; false: err, and *o is freed. Reads them, and hands the list in; false: it is not that of
 * this key. */
struct object;
bool program_sign(struct object *o, const struct key *list, size_t n, struct error *err);
bool program_learn(const struct object *o, const struct key *program);

#endif
