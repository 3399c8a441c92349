/* runtime/device/cuda/cuda_pass.h - a session's plans on NVIDIA cards, as cuda_stream.c, cuda_inputs.c and
 * cuda_launches.c share them. See cuda.h. */
#ifndef RUNTIME_CUDA_PASS_H
#define RUNTIME_CUDA_PASS_H

#include "jit/ptx/ptx.h"
#include "runtime/device/cuda/cuda.h"

/* Ids and angles, which the host writes; `at` in the copies. */
struct cuda_input {
	const void *from;
	size_t at, bytes;
};
/* Logits, which the host reads: where several cards leave them, and where they go. */
struct cuda_output {
	void *to;
	size_t at, bytes;
};
enum { CUDA_INPUTS = 16, CUDA_OUTPUTS = 64 };

/* What a card has of a plan. */
struct cuda_side {
	uint64_t *args, on_card;   /* the host's copy of arguments, inputs and commands, and where the card has them */
	struct ptx_launch *launch; /* by op */
	uint32_t *blocks, *parts;  /* of its grid; blocks 0: the card has no units of the op */
};

struct cuda_plan {
	struct cuda_plan *next;
	const struct plan *plan;
	void *args, *on_cards;          /* of all sides; of each card */
	size_t bytes, inputs, commands; /* of a side; where in it the inputs begin, and behind them the commands */
	struct cuda_side side[CUDA_CARDS_MAX];
	struct cuda_input input[CUDA_INPUTS];
	unsigned n_inputs;
	struct cuda_output output[CUDA_OUTPUTS]; /* of one card there are none: it writes to the host's memory */
	unsigned n_outputs;
	void *outputs;
	size_t outputs_bytes;
	unsigned passes;              /* that it has run before its program was begun */
	void *graph;                  /* NULL: launches are not recorded */
	struct cuda_program *program; /* NULL: it is not one launch */
	struct cuda_times *times;     /* of the first card; NULL: nobody asks for them */
};

struct cuda_stream {
	struct stream stream;
	struct registry *registry;
	enum stream_launch launch;
	uint32_t max_blocks;                                 /* of a launch; 0: as many as live at once */
	void *queue[CUDA_CARDS_MAX], *event[CUDA_CARDS_MAX]; /* of each card; of one card there is no event */
	struct cuda_plan *plans;
	struct cuda_dataflow dataflow[2]; /* of plans of one token, and of several */
	unsigned several;                 /* programs of several tokens that were begun */
	struct stream_counters counters;
};

static inline struct cuda *cuda_card_of(const struct cuda_stream *s) { return (struct cuda *)s->stream.device; }

/* cuda_inputs.c: finds what the plan's ops read of the host's memory, for which there is room behind the arguments
 * (c->inputs .. c->bytes then). */
void cuda_find_inputs(const struct cuda_stream *s, struct cuda_plan *c);
/* What they write there, where there are several cards. False: err. */
bool cuda_find_outputs(const struct cuda_stream *s, struct cuda_plan *c, struct error *err);
/* The arguments of each side, when there is memory for them. */
void cuda_set_args(const struct cuda_stream *s, struct cuda_plan *c);
/* What the host has written, and what the plan says of this run. */
void cuda_take_inputs(struct cuda_plan *c);

/* cuda_launches.c; the library's results. The arrays by op: false: no memory. */
bool cuda_partition_units(const struct cuda_stream *s, struct cuda_plan *c);
/* Bytes begin..end-1 of what the host has written, to all cards. */
int cuda_send(const struct cuda_stream *s, const struct cuda_plan *c, size_t begin, size_t end);
/* What the first card has of the outputs, to the host, when all cards are done. */
int cuda_fetch(const struct cuda_stream *s, const struct cuda_plan *c);
/* All launches as a graph. False: err. */
bool cuda_record(struct cuda_stream *s, struct cuda_plan *c, struct error *err);
/* Op i on all cards, beside each other. */
int cuda_launch_op(const struct cuda_stream *s, struct cuda_plan *c, size_t i);
/* No card's queue goes on before all have come to this point. */
int cuda_meet(const struct cuda_stream *s);

#endif
