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

enum { ADAPTER_WHOLE_ROWS = 1, ADAPTER_WHOLE_HEAD = 2, ADAPTER_WHOLE_BIASES = 4 };

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
	uint64_t key;         /* of its numbers and scales */
	unsigned whole;       /* ADAPTER_WHOLE_ROWS, _HEAD and _BIASES: what it has in place of the model's */
	struct {              /* the embedding that it has in place of the model's */
		uint8_t *row; /* [tokens][width] of a type of floats; NULL: none */
		enum dtype type;
		uint32_t tokens, width;
	} rows;
	int32_t *invocation; /* tokens from which on alone it is meant to count */
	size_t n_invocation; /* 0: it always counts */
};

/* ranks 0: as many as there are, or the usual number. */
bool adapters_enable(jit_model *m, uint32_t ranks, struct error *err);
/* Its files, under that number, or the first free one: ADAPTERS_MOST. Sessions may have it, and adapter_release() is
 * due. The ranks of other processes are told. NULL: err. */
jit_adapter *adapter_load(jit_model *m, const char *path, unsigned number, struct error *err);
/* adapter_rows.c: what it has of the embedding whole. False: err. */
struct adapter_file;
struct adapter_part;
bool adapter_rows_open(jit_adapter *a, const struct adapter_file *f, const struct adapter_part *p, struct error *err);
/* Of a token. False: it has none. */
bool adapter_rows_get(const jit_adapter *a, int32_t id, float *out);
void adapter_release(jit_adapter *a); /* by one who held it */
void adapter_free(jit_adapter *a);

#endif
