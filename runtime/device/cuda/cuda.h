/* runtime/device/cuda/cuda.h - an NVIDIA card as a device, through its driver's library alone: what its files share.
 *
 * Owns: the struct, and who does what. cuda.c opens cards, cuda_memory.c has their memory, and cuda_cards.c that of
 * several which compute together; cuda_code.c makes kernels of text functions of the card. cuda_stream.c runs a
 * session's plans (cuda_pass.h): cuda_inputs.c has what they take from the host and give it, cuda_launches.c makes them
 * graphs of launches, cuda_program.c makes a few tokens' plan one launch, and cuda_partition.c distributes its units.
 * cuda_watch.c waits for cards and cuda_times.c times them. cuda_api.c finds the library, cuda_simulated.c is one that
 * simulates cards.
 */
#ifndef RUNTIME_CUDA_H
#define RUNTIME_CUDA_H

#include <pthread.h>

#include "runtime/device/cuda/cuda_api.h"
#include "runtime/device/device.h"
#include "runtime/plan/cut.h"

enum { CUDA_CARDS_MAX = 8 };

/* A kernel in the memory of each card. */
struct cuda_kernel {
	struct cuda_kernel *next;
	struct key key;
	void *module[CUDA_CARDS_MAX], *function[CUDA_CARDS_MAX];
	uint32_t shared_bytes, resident; /* of a block; blocks that live at once on the card */
	uint32_t waves;                  /* of a block */
	bool cooperative;
};

/* Memory that the host shares. */
struct cuda_region {
	struct cuda_region *next;
	void *p;
	size_t bytes;
};

/* How passes are launched (JITRUN_CUDA_LAUNCH): a pass is a graph of launches, or an op is one; or a token's pass is
 * one launch, as soon as that is made, or from the first one on. */
enum cuda_launch { CUDA_GRAPH, CUDA_BY_OP, CUDA_BESIDE, CUDA_ONE };

struct cuda {
	struct device device;
	struct driver_linker linker;
	const struct cuda_api *_Atomic api; /* cuda_nothing(): the card was given up */
	double patience;                    /* seconds before that */
	enum cuda_launch launch;
	struct cuda_card {
		int number; /* as the driver has it */
		void *context;
	} card[CUDA_CARDS_MAX]; /* alike; with more than one, see cuda_cards.c */
	unsigned cards;
	uint64_t base;  /* of the addresses that several cards have; 0: they are the driver's */
	size_t granule; /* bytes that memory is given in there, and a multiple of them */
	char name[64];
	uint32_t units, capability, driver; /* of a card: multiprocessors; 90; 13000 */
	uint64_t bytes, cache;              /* of its memory, and of its L2 cache */
	pthread_mutex_t lock;               /* of what follows */
	bool unsettled;                     /* memory was set or copied to since somebody waited for that */
	struct cuda_kernel *kernels;
	struct cuda_region *shared;
	struct cuda_mapped *mapped;
	struct error dead; /* code not 0: nothing is launched any more */
};

/* A card of the library's, as a device, or several that compute together. NULL: err. */
struct device *cuda_open(const struct cuda_api *api, int ordinal, struct error *err);
struct device *cuda_open_cards(const struct cuda_api *api, const int ordinal[], unsigned n, struct error *err);
/* This thread's calls are for the first card, or for that one. */
bool cuda_enter(struct cuda *d, struct error *err);
bool cuda_enter_card(struct cuda *d, unsigned card, struct error *err);
/* False, and a sentence about what did not succeed. */
bool cuda_failed(struct cuda *d, int result, const char *what, struct error *err);
/* The same of what the card was at; and nothing will succeed any more. */
bool cuda_died(struct cuda *d, int result, const char *what, struct error *err);
bool cuda_is_alive(struct cuda *d, struct error *err);
/* As device.h has it. */
bool cuda_alive(struct device *device, struct error *err);

/* cuda_memory.c: the device's functions that have to do with memory. */
void cuda_set_memory(struct cuda *d);
/* Waits for all that was copied to the cards' memory, or set there, by the functions above: the driver returns from
 * that before it is done, and queues do not wait for it. The library's result. */
int cuda_settle(struct cuda *d);
/* The same whether or not anything is known to be under way. */
int cuda_finish_copies(struct cuda *d);
/* Bytes from p on of memory that the host shares; 0: p is not there. */
size_t cuda_shared_bytes(struct cuda *d, const void *p);

/* cuda_cards.c: memory that each of several cards has, at addresses that differ by the number of the card. */
bool cuda_cards_open(struct cuda *d, struct error *err);
void cuda_cards_close(struct cuda *d);
/* The library's result; where the first card has it, zeroed on all. Cards have their shares of what is shared. */
int cuda_cards_alloc(struct cuda *d, size_t bytes, const struct cut_share *share, size_t n, uint64_t *address);
void cuda_cards_release(struct cuda *d, uint64_t address);
/* The bytes that a card needs for that, at most. */
uint64_t cuda_cards_bytes(const struct cuda *d, size_t bytes, const struct cut_share *share, size_t n);
/* To all cards that have a byte; from one that has it. The library's result. */
int cuda_cards_copy_to(struct cuda *d, uint64_t to, const uint8_t *from, size_t bytes);
int cuda_cards_copy_from(struct cuda *d, uint8_t *to, uint64_t from, size_t bytes);
/* Where a card has what the first one has there; other numbers, and addresses of the host, are the same. */
uint64_t cuda_on_card(const struct cuda *d, unsigned card, uint64_t address);

/* cuda_code.c: all kernels of a plan, those that are missing made on the pool's threads. False: err. */
bool cuda_make_plan(struct cuda *d, struct registry *r, struct plan *p, struct pool *pool, struct error *err);
/* The device's `ready`: the card has that kernel. */
bool cuda_ready(struct device *d, struct registry *r, const struct key *key, struct error *err);
/* The linker's `link`; user: the struct cuda. */
bool cuda_link(void *user, const struct key *key, const struct object *text, struct object *out, struct error *err);
/* A kernel, or a program (jit/program_key.h), made where it is missing; it stays as long as the device. NULL: err. */
struct cuda_kernel *cuda_get_kernel(struct cuda *d, struct registry *r, const struct key *key, struct error *err);
struct cuda_kernel *cuda_find_kernel(struct cuda *d, const struct key *key); /* NULL: it is not there */
void cuda_forget_kernels(struct cuda *d);

/* cuda_stream.c */
struct stream *cuda_stream(struct device *d, const struct stream_options *o, struct error *err);

/* cuda_program.c: a plan of one token as one launch on each card. Its commands lie behind the inputs in the plan's
 * arguments, here and on the cards. */
struct cuda_program;
struct ptx_command;
struct cuda_program_memory {
	const uint64_t *args; /* the values of all of the plan's slots, as the card has them */
	struct ptx_command *here;
	uint64_t on_card;
};
/* Memory of a stream's dataflow plans, two regions that alternate: the session's and one of its own. used: so many
 * bytes in front may hold something, all behind them hold IR_EMPTY. */
struct cuda_dataflow {
	void *own;
	size_t bytes;
	uint64_t region[2];
	unsigned next; /* the next launch's */
	uint64_t used[2];
};
bool cuda_dataflow_open(struct cuda_dataflow *h, struct cuda *d, const struct plan *p, struct error *err);
void cuda_dataflow_close(struct cuda_dataflow *h, struct cuda *d);
/* How many commands the plan has; 0: it cannot be one launch. */
size_t cuda_program_commands(const struct plan *p);
/* Has it made, if it must be: beside what goes on, now, or when cuda_program_begin() says so. The plan's kernels have
 * their handles; handed is the stream's. NULL: err. */
enum cuda_program_when { CUDA_PROGRAM_BESIDE, CUDA_PROGRAM_NOW, CUDA_PROGRAM_LATER };
struct cuda_program *cuda_program_open(struct cuda *d, struct registry *r, const struct plan *p,
                                       const struct cuda_program_memory at[], struct cuda_dataflow *dataflow,
                                       enum cuda_program_when when, struct error *err);
void cuda_program_begin(struct cuda_program *p);
void cuda_program_close(struct cuda_program *p); /* NULL is fine */
bool cuda_program_is_ready(const struct cuda_program *p);
uint32_t cuda_program_barriers(const struct cuda_program *p);
/* Takes over from the plan what differs from run to run. */
void cuda_program_change(struct cuda_program *p);
/* Whether the region of the next launch is empty; if not, that must be emptied on all cards before any of them
 * is launched. Into the card's queue; the library's result. */
bool cuda_program_is_clean(const struct cuda_program *p);
int cuda_program_clean(struct cuda_program *p, unsigned card, void *queue);
/* Into the card's queue, behind the commands; the library's result. Behind the launches on all cards: they are done. */
int cuda_program_launch(struct cuda_program *p, unsigned card, void *queue);
void cuda_program_launched(struct cuda_program *p);

/* cuda_watch.c: waits for all that a queue was given. The library's result, or CUDA_GIVEN_UP after the user's patience:
 * cuda_died() then makes the driver one that is asked nothing. */
int cuda_wait(struct cuda *d, void *queue);
const struct cuda_api *cuda_nothing(void);

/* cuda_times.c: events around the launches of a plan. NULL: err, nobody asks for times. */
struct cuda_times;
struct cuda_times *cuda_times_open(struct cuda *d, const struct plan *p, struct error *err);
void cuda_times_close(struct cuda_times *t); /* NULL is fine */
/* The event behind so many ops of the plan, into the queue; NULL: none. The library's result. */
int cuda_times_mark(const struct cuda_times *t, size_t ops, void *queue, bool recording);
/* From one such event to a later one, both over. */
int cuda_times_between(const struct cuda_times *t, size_t ops, size_t more, uint64_t *nanoseconds);
/* Of a pass that is over: it began and ended then by the host's clock. blocks: by op; 0: it was not launched. */
int cuda_times_tell(struct cuda_times *t, const struct plan *p, const uint32_t *blocks, struct profile *to,
                    uint64_t began, uint64_t end);

/* cuda_simulated.c: a library whose cards are simulated; their numbers. */
enum { CUDA_SIMULATED_80, CUDA_SIMULATED_90 };
const struct cuda_api *cuda_simulated(void);

#endif
