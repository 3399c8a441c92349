/* programs/jitk/jitk.h - what the parts of jitk share: its command line, and a kernel with its arrays. */
#ifndef PROGRAMS_JITK_H
#define PROGRAMS_JITK_H

#include "base/error.h"
#include "language/jk.h"
#include "programs/common/array.h"
#include "programs/common/options.h"
#include "include/jitrun_kernel.h"

enum { JITK_DONE, JITK_FAILED, JITK_USAGE, JITK_INTERRUPTED = 130 };

struct jitk_array;
struct jitk_arguments {
	const char *command, *file;
	const char *kernel, *device, *isa, *cache, *jitdump, *dump_ir, *dump_asm, *dump_objects, *trace;
	struct option_list constants, in, out;
	long threads, times, n, steps; /* n and steps, of example: -1 where they are not given */
	const char *text;              /* that of an example, instead of the file's */
	size_t text_bytes;
	/* Values of an array or scalar that --in does not name; *done: it had some. NULL: nothing does. False: err. */
	bool (*fill)(struct jitk_array *a, bool *done, struct error *err);
	bool check, no_cache, sealed, perf_map, gdb, quiet, all_devices, tune;
};
extern struct jitk_arguments jitk;
extern jit_cancel *jitk_cancel; /* set by a signal */

/* Prints the sentence and a newline on standard error; returns JITK_FAILED, or JITK_INTERRUPTED where that was why. */
int jitk_fail(const char *sentence);
int jitk_fail_error(const jit_error *err);
/* The same behind a hint to --help; JITK_USAGE. */
int jitk_wrong(const char *sentence);

/* "n=1000 m=4", of --const. False: err. */
enum { JITK_CONSTANTS_MAX = 4096 };
bool jitk_constants(char out[JITK_CONSTANTS_MAX], struct error *err);

/* ---- jitk_arrays.c */

struct jitk_array {
	jit_parameter is;
	char name[128];
	uint8_t *data; /* of an array */
	double number; /* of a scalar */
	bool whole;    /* the number is `integer` */
	int64_t integer;
};
struct jitk_arrays {
	struct jitk_array *list;
	size_t n;
};
/* Those of a kernel, with the values that --in gives. False: err. */
bool jitk_arrays_open(struct jitk_arrays *a, const jit_kernel *k, struct error *err);
void jitk_arrays_close(struct jitk_arrays *a);
/* Gives them to a launch; data: in place of each array's own; NULL: that. False: err. */
bool jitk_arrays_give(const struct jitk_arrays *a, jit_launch *l, uint8_t *const *data, jit_error *err);
bool jitk_arrays_give_scalar(const struct jitk_arrays *a, size_t i, jit_launch *l, jit_error *err);
/* Writes what --out asks for, and prints a line for each array that the kernel wrote. False: err. */
bool jitk_arrays_out(const struct jitk_arrays *a, struct error *err);
/* The line of one array: type, shape, hash, sum and first elements. */
void jitk_array_print(const struct jitk_array *a);
static inline bool jitk_is_written(const struct jitk_array *a)
{
	return a->is.access == JIT_OUT || a->is.access == JIT_INOUT;
}
/* An element as text; returns out. */
enum { JITK_ELEMENT_MAX = ARRAY_ELEMENT_MAX };
char *jitk_element(const struct jitk_array *a, const uint8_t *data, uint64_t i, char out[JITK_ELEMENT_MAX]);

/* ---- what is opened */

/* --device auto becomes the name of one. False: an error was printed. */
bool jitk_choose_device(int *status);

/* On a device; device NULL: --device, isa NULL: --isa. NULL: an error was printed. */
jit_compute *jitk_compute_open(const char *device, const char *isa, int threads, jit_error *err);
/* The file's kernel, with its constants and --check. All messages about its text are printed. */
jit_kernel *jitk_kernel_open(jit_compute *c, jit_error *err);

/* ---- commands: the exit status */

int jitk_run(void);
int jitk_check(void);
int jitk_emit_ir(void);
int jitk_disassemble(void);
int jitk_report(void);
int jitk_test(void);
int jitk_bench(void);
int jitk_example(void);

#endif
