/* runtime/model/adapter_open.h - the inside of a model's adapters; private to runtime/model/adapter*.c. */
#ifndef RUNTIME_ADAPTER_OPEN_H
#define RUNTIME_ADAPTER_OPEN_H

#include <pthread.h>

#include "runtime/model/adapters.h"

struct adapters {
	pthread_mutex_t lock; /* of what follows */
	struct weights_site *site;
	uint8_t *tables; /* of all sites, on the device */
	size_t tables_bytes;
	uint32_t ranks;
	jit_adapter *of[ADAPTERS_MOST]; /* by number; NULL: free */
	_Atomic uint64_t version;
};

struct jit_adapter {
	jit_model *model;
	unsigned number;
	_Atomic unsigned holders; /* sessions that have it, and its handle */
	uint32_t rank, ranks;     /* the greatest; the same as a multiple of ADAPT_RANKS */
	uint32_t matrices;
	bool scaled;                          /* it has magnitudes or biases */
	const struct weights_matrix **matrix; /* that it adds to */
	uint8_t *memory;
	size_t bytes;
	struct {            /* of the embedding */
		float *row; /* [tokens][ranks]; NULL: nothing */
		uint32_t ranks, tokens;
		float scale;
	} embed;
	uint64_t key;        /* of its numbers and scales */
	int32_t *invocation; /* tokens from which on alone it is meant to count */
	size_t n_invocation; /* 0: it always counts */
};

/* ranks 0: as many as there are, or the usual number. */
bool adapters_enable(jit_model *m, uint32_t ranks, struct error *err);
void adapter_release(jit_adapter *a); /* by one who held it */
void adapter_free(jit_adapter *a);

#endif
