/* runtime/graph/executable_kernels.c - the kernels of an executable: each text is opened once, and on the host's
 * threads several are compiled at a time. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "runtime/graph/executable_state.h"
#include "runtime/host/pool.h"

static uint64_t hash_of(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return h;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* Where the text has its kernel, which may be NULL so far. NULL: there is no memory. */
static struct opened *find(struct executable *x, const char *text, const struct source *users)
{
	const struct opened new = { text, users ? users->kernel : NULL, users ? users->constants : NULL, hash_of(text),
		                    NULL };

	for (size_t i = 0; i < x->n_opened; i++)
		if (x->opened[i].hash == new.hash && strcmp(x->opened[i].text, text) == 0 &&
		    same_text(x->opened[i].name, new.name) && same_text(x->opened[i].constants, new.constants))
			return &x->opened[i];
	if (!array_grow((void **)&x->opened, &x->opened_room, x->n_opened + 1, sizeof *x->opened))
		return NULL;
	x->opened[x->n_opened] = new;
	return &x->opened[x->n_opened++];
}

static void open_one(const struct executable *x, struct opened *o, jit_error *err)
{
	o->kernel = jit_kernel_open(
		x->compute,
		&JIT_KERNEL_OPTIONS(.source = o->text, .path = "graph", .kernel = o->name, .constants = o->constants),
		err);
}

jit_kernel *executable_kernel(struct executable *x, const char *text, const struct source *users, struct error *err)
{
	struct opened *o = find(x, text, users);
	jit_error e = { 0 };

	if (!o) {
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
		return NULL;
	}
	if (!o->kernel)
		open_one(x, o, &e);
	if (!o->kernel)
		error_set(err, ERROR_DEVICE, "%.400s", e.message);
	return o->kernel;
}

struct making {
	struct executable *x;
	_Atomic size_t next;
};

static void make_some(void *user, int worker, int workers)
{
	struct making *m = user;
	size_t i;

	(void)worker, (void)workers;
	while ((i = atomic_fetch_add(&m->next, 1)) < m->x->n_opened)
		open_one(m->x, &m->x->opened[i], NULL);
}

void executable_make_kernels(struct executable *x)
{
	struct making m = { .x = x };
	bool ok = true;

	if (!compute_host_runs(x->compute) || pool_threads(x->compute->pool) < 2 ||
	    registry_in_order(x->compute->registry))
		return;
	for (uint32_t i = 0; ok && i < x->p.groups; i++) {
		const struct source *s = &x->step[i].source;
		ok = !s->text.n || find(x, s->text.p, s->is_users ? s : NULL);
		for (unsigned k = 0; ok && k < s->n_prepared; k++)
			ok = find(x, s->prepared[k].text, NULL);
	}
	pthread_mutex_lock(&x->compute->stream_lock);
	pool_run(x->compute->pool, make_some, &m);
	pthread_mutex_unlock(&x->compute->stream_lock);
}
