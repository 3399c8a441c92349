/* runtime/ranks/ranks.h - a model that several processes compute together: who they are, what each has, and what rank 0
 * tells the others.
 *
 * Owns: the handshake, the commands, and the memory of sessions, which each rank has once: rank 0 allocates, and the
 * others have as much under the same number, so that an address is a number and an offset. Each rank touches only what
 * its layers keep there, and untouched pages cost nothing. Who computes what of a pass, the engine knows
 * (runtime/engine/engine_ranks.c).
 *
 * Rank 0's side may be used by several sessions at once, one after the other: between ranks_begin() and ranks_end() the
 * carrier is the caller's alone.
 */
#ifndef RUNTIME_RANKS_H
#define RUNTIME_RANKS_H

#include <pthread.h>

#include "runtime/device/device.h"
#include "runtime/ranks/carrier.h"
#include "runtime/ranks/split.h"

/* In the memory of sessions, for all ranks; 0: none. */
typedef uint64_t ranks_address;

struct ranks_memory {
	uint8_t *at;
	size_t bytes;
	uint32_t number;
};

struct ranks {
	struct carrier *carrier;
	bool by_rows;             /* all have a part of each layer, by `shares`; else each has layers, by `range` */
	struct cut_shares shares; /* `own` of it is this rank's number */
	struct split_range range[CARRIER_RANKS_MAX];
	char about[1024]; /* one line: which rank has what */
	pthread_mutex_t lock;
	struct ranks_memory *memory;
	size_t n_memory, memory_room;
	uint32_t last_number; /* of memory and of engines */
};

/* Makes the ranks; returns in each of them. NULL: err. */
struct ranks *ranks_open(const char *carrier, struct error *err);
/* On rank 0 it ends the others. NULL is fine. */
void ranks_close(struct ranks *r);
static inline struct split_range ranks_own(const struct ranks *r) { return r->range[r->carrier->rank]; }

/* ---- the handshake */

/* What must be the same on all ranks. Texts are cut. */
struct ranks_greeting {
	char version[32], split[128], numerics[32];
	uint64_t model; /* ranks_model_hash() */
	uint32_t layers, kv;
};
/* Of the model's description, and of the first bytes of each of its tensors. False: err. */
bool ranks_model_hash(const struct model *m, bool packed, uint64_t *out, struct error *err);
/* Waits for all ranks. False: err, on every rank: which of them has what else than rank 0. */
bool ranks_greet(struct ranks *r, const struct ranks_greeting *own, struct error *err);
/* Sets what each rank has. False: err. */
bool ranks_split(struct ranks *r, const struct model_spec *s, const char *split, struct error *err);
/* Returns when all have called it: they are ready. False: err. */
bool ranks_meet(struct ranks *r, struct error *err);

/* ---- commands: rank 0 to all others */

enum ranks_what {
	RANKS_END,
	RANKS_ENGINE,        /* numbers of it behind the command */
	RANKS_ENGINE_CLOSE,  /* number */
	RANKS_MEMORY,        /* number, bytes */
	RANKS_MEMORY_CLOSE,  /* number */
	RANKS_COPY,          /* bytes, from one address to another */
	RANKS_PASS,          /* number of the engine; bytes behind the command say which */
	RANKS_ADAPTERS,      /* number: ranks that adapters may have together */
	RANKS_ADAPTER,       /* number; bytes behind the command say which */
	RANKS_ADAPTER_CLOSE, /* number */
	RANKS_FINGERPRINT,   /* all go through their weights together */
	RANKS_COLLECT,       /* bytes behind the command say of which memory the others send rank 0 what they keep */
	RANKS_SPREAD         /* the same, and they get it */
};
struct ranks_command {
	uint32_t what, number;
	uint64_t bytes;
	ranks_address to, from;
};

void ranks_begin(struct ranks *r);
void ranks_end(struct ranks *r);
/* The command, and as many bytes behind it as it says. */
bool ranks_tell(struct ranks *r, const struct ranks_command *c, void *behind, struct error *err);
/* For commands that can be refused: what each rank made of it. False: err. */
bool ranks_replies(struct ranks *r, struct error *err);
bool ranks_reply(struct ranks *r, const struct error *e, struct error *err);

/* ---- the memory of sessions */

/* 0: it is no address in it. */
ranks_address ranks_address_of(const struct ranks *r, const void *at);
/* NULL: there is no such memory. */
uint8_t *ranks_at(const struct ranks *r, ranks_address address);
/* On other ranks than 0: as it was told. False: err. */
bool ranks_take_memory(struct ranks *r, struct device *d, const struct ranks_command *c, struct error *err);
void ranks_drop_memory(struct ranks *r, struct device *d, uint32_t number);

/* A device on rank 0, which takes over `of`: what it allocates for caches, the other ranks have, too. NULL: err. */
struct device *ranks_device(struct ranks *r, struct device *of, struct error *err);

#endif
