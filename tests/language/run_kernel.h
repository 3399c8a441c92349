/* tests/language/run_kernel.h - a kernel of the language on every machine: the interpreter with 8, 16 and 32 lanes, the
 * targets that this CPU runs, and simulated cards. All must leave the same bytes.
 */
#ifndef TESTS_LANGUAGE_RUN_KERNEL_H
#define TESTS_LANGUAGE_RUN_KERNEL_H

#include "language/jk.h"

struct run {
	struct jk_file *file;
	struct jk_kernel *kernel;
	uint8_t *memory; /* the kernel's arrays, with bytes between them that nobody may write */
	size_t bytes;
	uint64_t arg[JK_MAX_PARAMETERS + 1]; /* of arrays: offsets in memory; of scalars: their bits */
};

enum run_machines { RUN_CPUS, RUN_CARDS /* these, too */ };

/* constants: "n=5 m=7", or "". Fails the test with the messages. Arrays are 0. */
void run_open(struct run *r, const char *text, const char *kernel, const char *constants);
/* The same of a file of docs/examples/kernels, "saxpy". */
void run_open_example(struct run *r, const char *example, const char *kernel, const char *constants);
void run_close(struct run *r);
void *run_array(const struct run *r, const char *name);
void run_set_f32(struct run *r, const char *name, float value);
void run_set_bits(struct run *r, const char *name, uint64_t bits);
/* Runs it everywhere from what memory holds, and leaves there what all machines left. */
void run_everywhere(struct run *r, enum run_machines machines);
uint64_t run_hash(const void *bytes, size_t n); /* FNV-1a of 64 bits */
/* The first message of a kernel that is refused; fails the test where it is not. */
const char *run_refused(const char *text, const char *constants, struct jk_messages *m);

#endif
