/* runtime/device/cuda/cuda_simulated.h - what the parts of the simulated library share: cuda_simulated.c the cards,
 * memory and kernels, cuda_simulated_cards.c memory of several cards, cuda_simulated_queue.c launches, queues and
 * graphs. */
#ifndef RUNTIME_CUDA_SIMULATED_H
#define RUNTIME_CUDA_SIMULATED_H

#include <pthread.h>

#include "jit/ptx/ptx.h"
#include "runtime/device/cuda/cuda.h"
#include "sim/ptx.h"

enum {
	CUDA_SIMULATED_INVALID = 1,
	CUDA_SIMULATED_NOT_RECORDED = 400,
	CUDA_SIMULATED_LAUNCH_FAILED = 719,
	CUDA_SIMULATED_TOO_MANY = 720, /* blocks that are to live at once */
	CUDA_SIMULATED_CAPTURE_WRONG = 901,
	CUDA_SIMULATED_NOT_JOINED = 904
};

struct cuda_simulated_block {
	struct cuda_simulated_block *next;
	void *p;
	size_t bytes;
	bool hidden;
	bool apart; /* its addresses are not its own (cuda_simulated_cards.c) */
};

struct cuda_simulated_module {
	struct ptx_text *text;
	uint32_t shared_max;
	char entry[32];
};

extern struct cuda_simulated {
	pthread_mutex_t lock;
	struct ptx_memory *memory;
	struct cuda_simulated_block *blocks;
	struct cuda_simulated_copy *copies; /* that the driver has taken, and not yet done */
	size_t copies_bytes;
	size_t used;
	uint64_t seed;
	uint32_t units;     /* multiprocessors of a card; tests change it */
	enum ptx_sums sums; /* how matrices of floats are multiplied; tests change it */
	char trap[512];     /* the last one's sentence */
	bool lost;          /* nothing works any more, as with a real card that met such a trap; tests may end that */
} cuda_simulation;
extern _Thread_local unsigned cuda_simulated_capability; /* of this thread's card, */
extern _Thread_local int cuda_simulated_card;            /* and its number */

/* The first card of capability 9.0, and how many of them there are. */
enum { CUDA_SIMULATED_FIRST_90 = 1, CUDA_SIMULATED_CARDS_90 = 8, CUDA_SIMULATED_MEMORY = 1 << 30 };

/* What is between them is done by one thread, and may touch the cards' memory. */
void cuda_simulated_begin(void);
int cuda_simulated_end(int result);

/* Does the copies that were left for later, a card's or all: queues do not wait for them, so that is behind the next
 * thing that a queue does, unless somebody waits. Within cuda_simulated_begin(), as the next one. */
enum { CUDA_SIMULATED_ALL = -1 };
void cuda_simulated_copy_now(int card);
/* Where copies are left to do there, a card traps. */
void cuda_simulated_forget_copies(const uint8_t *to, size_t bytes);

/* cuda_simulated_cards.c: as the library has them. */
int sim_peer_reached(int *can, int device, int peer);
int sim_addresses_take(uint64_t *address, size_t bytes, size_t alignment, uint64_t wanted, unsigned long long flags);
int sim_addresses_leave(uint64_t address, size_t bytes);
int sim_granule_bytes(size_t *bytes, const struct cuda_memory *m, int option);
int sim_memory_create(uint64_t *handle, size_t bytes, const struct cuda_memory *m, unsigned long long flags);
int sim_memory_release(uint64_t handle);
int sim_memory_map(uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int sim_memory_unmap(uint64_t address, size_t bytes);
int sim_memory_reach(uint64_t address, size_t bytes, const struct cuda_reach *r, size_t n);

/* cuda_simulated_queue.c: as the library has them. */
int sim_copy_to_later(uint64_t to, const void *from, size_t bytes, void *stream);
int sim_copy_from_later(void *to, uint64_t from, size_t bytes, void *stream);
int sim_set_words_later(uint64_t to, uint32_t value, size_t n, void *stream);
int sim_launch(const struct cuda_launch_config *c, void *function, void **params, void **extra);
int sim_stream_create(void **stream, uint32_t flags);
int sim_stream_wait(void *stream);
int sim_stream_query(void *stream);
int sim_stream_wait_event(void *stream, void *event, uint32_t flags);
int sim_stream_destroy(void *stream);
int sim_event_create(void **event, uint32_t flags);
int sim_event_destroy(void *event);
int sim_event_record(void *event, void *stream, uint32_t flags);
int sim_event_elapsed(float *milliseconds, void *start, void *end);
int sim_capture_begin(void *stream, int mode);
int sim_capture_end(void *stream, void **graph);
int sim_graph_instantiate(void **exec, void *graph, unsigned long long flags);
int sim_graph_launch(void *exec, void *stream);
int sim_graph_destroy(void *graph);
int sim_graph_exec_destroy(void *exec);

#endif
