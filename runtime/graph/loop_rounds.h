/* runtime/graph/loop_rounds.h - iterations of a scan as rounds of one run of the host's threads.
 *
 * Owns: where what the body gives is made. A slice of a result is made in the result. What is carried is made in its
 * result and in spare memory in turns, so that it is where it belongs behind the last iteration; where it is a slice
 * of a result, too, the next iteration reads it there.
 */
#ifndef RUNTIME_GRAPH_LOOP_ROUNDS_H
#define RUNTIME_GRAPH_LOOP_ROUNDS_H

#include "graph/loop.h"
#include "runtime/graph/executable_state.h"

enum { LOOP_CONSTANT = UINT32_MAX };

/* Bytes that move on the device, where the host does not reach them. */
struct mover {
	jit_kernel *kernel;
	jit_launch *launch;
	uint64_t bytes;
};

struct location {
	jit_buffer *buffer;
	uint64_t at;
};

struct rounds {
	struct launch_list *list; /* NULL: the body is run anew for each iteration */
	uint32_t n;
	jit_buffer *spare;
	uint64_t spare_at[TENSOR_MAX_OPERANDS];
	tensor_value root[TENSOR_MAX_RESULTS]; /* of the body's outputs, in its executable */
	uint32_t same[TENSOR_MAX_OPERANDS];    /* the output at whose location is what is carried */
	/* Of operands and results, when all rounds were last bound. */
	struct location seen[TENSOR_MAX_OPERANDS + TENSOR_MAX_RESULTS];
};

struct looping {
	struct executable *around; /* borrowed, as the node is */
	const struct tensor_node *n;
	struct loop of;                      /* with a body whose constants are its own */
	uint32_t input[TENSOR_MAX_OPERANDS]; /* the body's, of each operand; LOOP_CONSTANT: it is a constant there */
	struct executable *body;
	struct mover *mover; /* one for each output of the body */
	struct rounds rounds;
};

/* ---- loop_run.c */
struct location looping_location(const struct executable *x, tensor_value v);
bool looping_move(struct looping *l, struct mover *m, struct location from, struct location to, uint64_t bytes,
                  struct error *err);
/* Of a value of the body. */
uint64_t looping_bytes(const struct looping *l, tensor_value v);

/* ---- loop_rounds.c */

/* Leaves rounds.list NULL where it cannot be. False: err. */
bool loop_rounds_open(struct looping *l, struct error *err);
void loop_rounds_close(struct looping *l);
/* All iterations, of which there is at least one. */
bool loop_rounds_run(struct looping *l, struct error *err);

#endif
