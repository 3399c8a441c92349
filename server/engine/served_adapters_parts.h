/* server/engine/served_adapters_parts.h - the inside of a model's adapters in a server; private to served_adapters*.c.
 *
 *   served_adapters.c        the list, and what is in memory
 *   served_adapters_asked.c  what requests ask of it, and what they have
 */
#ifndef SERVER_SERVED_ADAPTERS_PARTS_H
#define SERVER_SERVED_ADAPTERS_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/engine/served_adapters.h"

struct loaded_adapter {
	atomic_uint holders; /* its row, and requests */
	jit_adapter *adapter;
	uint64_t bytes, fingerprint;
	bool begins; /* it has invocation tokens */
	unsigned id;
	atomic_uint_least64_t answers;
};

struct adapter_row {
	char *name, *path, *shown; /* name NULL: it has none */
	unsigned id;
	float own, usual;
	long created;
	bool by_request;
	uint64_t answers;              /* of the times that it was in memory before */
	struct loaded_adapter *loaded; /* NULL: it is not in memory */
	char why[300];                 /* it cannot be opened */
};

struct served_adapters {
	pthread_mutex_t lock;    /* of all that follows */
	pthread_mutex_t loading; /* one is opened at a time, without the lock */
	struct adapter_row row[JIT_ADAPTERS_MOST];
	unsigned n, next_id;
	bool were_named; /* one has a name, or had one before it was unloaded */
};

struct loaded_adapter *loaded_adapter_hold(struct loaded_adapter *l);
/* NULL: nothing happens. */
void loaded_adapter_drop(struct loaded_adapter *l);
/* Under the lock. NULL: there is none. */
struct adapter_row *adapter_row_named(struct served_adapters *all, const char *name);
struct adapter_row *adapter_row_of(struct served_adapters *all, int64_t id);

#endif
