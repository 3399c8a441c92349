/* runtime/graph/executable_state.h - what an executable has, for the files that open, run and describe it. */
#ifndef RUNTIME_GRAPH_EXECUTABLE_STATE_H
#define RUNTIME_GRAPH_EXECUTABLE_STATE_H

#include "runtime/graph/arena.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/loop_run.h"
#include "runtime/graph/source.h"
#include "runtime/kernels/launch_list.h"

/* A kernel with its arguments. */
struct part {
	jit_kernel *kernel; /* borrowed */
	jit_launch *launch;
};
struct opened {
	const char *text, *name, *constants; /* of a user's text; else NULL */
	uint64_t hash;
	jit_kernel *kernel;
};

struct step {
	const struct group *group;
	struct source source; /* of its kernels; none where there is nothing to compute */
	struct part main, prepare[PREPARED_MAX];
	jit_buffer *made[PREPARED_MAX]; /* what was prepared of constants, when the executable was opened */
	bool borrowed[PREPARED_MAX];    /* by an earlier step */
	struct looping *loop;           /* of a scan, which has no kernel of its own */
	struct launch_list *list; /* of this step and of those behind it, up to `behind`; NULL: it is run by itself */
	uint32_t behind;
};

/* A value that is somewhere else. */
struct binding {
	bool is;
	jit_buffer *buffer; /* NULL: nobody has said where, yet */
	uint64_t at;
};

struct executable {
	jit_compute *compute;
	struct tensor_graph g;
	struct partition p;
	struct arena arena;
	struct step *step;
	struct opened *opened;
	size_t n_opened, opened_room;
	jit_buffer *memory, *constants;
	bool is_lent;                                    /* memory is */
	bool aside;                                      /* opened by one thread */
	uint64_t *constant_at;                           /* of each value, in `constants` */
	struct binding *binding;                         /* of each value */
	bool *constant_needed;                           /* as it is, by a kernel, the host, or the caller */
	uint64_t scratch_at[PREPARED_MAX], memory_bytes; /* in `memory`, behind the arena: operands in another order */
	uint64_t constant_bytes, generated, code_ns, last_ns;
};

/* ---- executable.c */

/* Where a value's bytes are. */
jit_buffer *executable_locate(const struct executable *x, tensor_value v, uint64_t *at);
uint64_t executable_bytes_of(const struct executable *x, tensor_value v);
/* Sets *err where a call of the interface has failed. */
bool executable_took(int status, const jit_error *from, struct error *err);
/* From now on v, which is stored, is in that buffer. */
bool executable_bind_value(struct executable *x, tensor_value v, jit_buffer *b, uint64_t at, struct error *err);
/* A kernel's argument is where the value is; what has no memory yet stays as it is. */
bool executable_set_value(struct executable *x, struct part *p, unsigned parameter, tensor_value v, struct error *err);

/* ---- executable_kernels.c */

/* The kernel of a text, which lives as long as the executable. users: whose kernel and constants it has; NULL: it has
 * one, and none. */
jit_kernel *executable_kernel(struct executable *x, const char *text, const struct source *users, struct error *err);
/* Compiles those of all steps on the threads of the device. What fails is left to executable_kernel(). */
void executable_make_kernels(struct executable *x);

/* ---- executable_run.c */

/* Neighbouring steps that the host's threads run without a look at what is between them become lists. */
bool executable_list_steps(struct executable *x, struct error *err);
/* Whether one list has all steps. */
bool executable_is_one_list(const struct executable *x);
/* Those of such an executable, at most *rounds times in a row, which becomes less where that needs much memory. The
 * caller closes it. NULL: err. */
struct launch_list *executable_list_rounds(const struct executable *x, uint32_t *rounds, struct error *err);

#endif
