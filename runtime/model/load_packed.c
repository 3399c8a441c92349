#include "runtime/model/load_packed.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/load_weights.h"
#include "runtime/host/system.h"

/* A worker copies so many chunks in a row: two that write to one huge page at the same time would both clear it. */
enum { TOGETHER = 8 };

struct copying {
	const struct container *container;
	const struct container_section *section;
	struct weights *weights;
	_Atomic uint64_t next, done;
	_Atomic int stop;
	atomic_flag failed; /* the first who fails writes err */
	struct error err;
	int (*progress)(void *, uint64_t, uint64_t);
	void *user;
};

static uint64_t chunk_count(const struct copying *c)
{
	return (c->section->bytes + CONTAINER_CHUNK - 1) / CONTAINER_CHUNK;
}

static bool copy_chunk(const struct copying *c, uint64_t chunk, uint8_t *buffer, struct error *err)
{
	struct device *d = c->weights->device;
	uint8_t *to = c->weights->arena + chunk * CONTAINER_CHUNK;
	size_t n;

	if (d->facts.host_reaches)
		return container_load_chunk(c->container, c->section, chunk, to, &n, err);
	return container_load_chunk(c->container, c->section, chunk, buffer, &n, err) &&
	       d->upload(d, to, buffer, n, err);
}

static void copy_failed(struct copying *c, const struct error *why)
{
	if (!atomic_flag_test_and_set(&c->failed))
		c->err = *why;
	atomic_store(&c->stop, 1);
}

static void copy_worker(void *user, int worker, int workers)
{
	struct copying *c = user;
	struct error err = { 0 };
	uint8_t *buffer = malloc(CONTAINER_CHUNK);
	(void)workers;

	if (!buffer) {
		error_set(&err, ERROR_MEMORY, "no memory for %d bytes of weights on their way", CONTAINER_CHUNK);
		copy_failed(c, &err);
	}
	while (!atomic_load(&c->stop)) {
		uint64_t i = atomic_fetch_add(&c->next, TOGETHER), total = chunk_count(c);
		uint64_t end = i + TOGETHER < total ? i + TOGETHER : total;
		if (i >= total)
			break;
		for (; i < end && copy_chunk(c, i, buffer, &err); i++)
			continue;
		if (i < end)
			copy_failed(c, &err);
		uint64_t done = atomic_fetch_add(&c->done, TOGETHER) + TOGETHER;
		if (worker == 0 && c->progress &&
		    c->progress(c->user, (done < total ? done : total) * CONTAINER_CHUNK, total * CONTAINER_CHUNK))
			atomic_store(&c->stop, 1);
	}
	free(buffer);
}

static bool copy_matrices(struct weights *w, const struct model_spec *s, enum weight_layout layout, struct copying *c,
                          struct pool *pool, struct error *err)
{
	if (!(w->arena = weights_arena(w->device, s, layout, w->arena_bytes, err)))
		return false;
	pool_run(pool, copy_worker, c);
	if (c->err.code != ERROR_NONE)
		return error_set(err, c->err.code, "%s", c->err.text);
	/* Where other workers had all the chunks, it is told here for the first time. */
	uint64_t bytes = chunk_count(c) * CONTAINER_CHUNK;
	if (!atomic_load(&c->stop) && c->progress && c->progress(c->user, bytes, bytes))
		atomic_store(&c->stop, 1);
	return !atomic_load(&c->stop) || error_set(err, ERROR_ARGUMENT, "loading was stopped by the progress function");
}

static void release_vectors(struct weights *w) { w->device->release(w->device, w->vectors, w->vectors_bytes); }

static void release_copied(struct weights *w)
{
	w->device->release(w->device, w->arena, w->arena_bytes);
	release_vectors(w);
}

static void release_mapped(struct weights *w)
{
	if (w->arena)
		system_unmap(w->arena, w->arena_bytes);
	release_vectors(w);
}

static bool load_vectors(struct weights *w, const struct model *m, const struct container *c,
                         const struct container_section *s, struct error *err)
{
	struct device *d = w->device;

	w->vectors_bytes = s->bytes + WEIGHTS_VECTORS_SLACK;
	if (!(w->vectors = d->alloc(d, w->vectors_bytes, DEVICE_VECTORS, err)))
		return false;
	weights_point_vectors(w, &m->spec, w->vectors);
	uint8_t *bytes = container_load(c, s, err);
	bool ok = bytes && d->upload(d, w->vectors, bytes, (size_t)s->bytes, err);
	free(bytes);
	return ok;
}

static bool point(struct weights *w, const struct model *m, enum weight_layout layout, struct error *err)
{
	struct weights_entry *e = calloc((size_t)m->spec.layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *e);

	if (!e)
		return error_set(err, ERROR_MEMORY, "no memory for the list of %u layers' matrices", m->spec.layers);
	size_t n = weights_list(e, &m->spec, w);
	w->packed_bytes = weights_lay(e, n, layout);
	weights_point(w, &m->spec, e, n, w->arena);
	free(e);
	return true;
}

/* Whether the file holds what this device reads, in the way it is read now. */
static bool find_sections(const struct container *c, const struct model *m, const struct target *t,
                          const struct container_section **matrices, const struct container_section **vectors,
                          struct error *err)
{
	const enum weight_layout layout = weight_layout_of(t);
	struct weights_layout now;

	*matrices = container_find(c, CONTAINER_WEIGHTS, layout);
	*vectors = container_find(c, CONTAINER_VECTORS, 0);
	if (!*matrices)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the packed model %s holds no weights in the layout of %s, only those of other "
		                 "targets: pack it with --target %s",
		                 container_name(c), t->name, t->name);
	if (!*vectors)
		return error_set(err, ERROR_FORMAT, "the packed model %s holds no norms", container_name(c));
	if (!weights_layout(&m->spec, layout, &now, err))
		return false;
	if ((*matrices)->layout != now.id)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the weights of the packed model %s lie in layout %016llx, expected %016llx: it was "
		                 "made by another version of jitrun; pack it again",
		                 container_name(c), (unsigned long long)(*matrices)->layout,
		                 (unsigned long long)now.id);
	if (now.matrix_bytes > UINT64_MAX - WEIGHTS_SLACK || (*matrices)->bytes != now.matrix_bytes + WEIGHTS_SLACK ||
	    (*vectors)->bytes != now.vector_bytes)
		return error_set(err, ERROR_FORMAT,
		                 "the packed model %s is damaged: it has %llu bytes of matrices and %llu of norms and "
		                 "biases, expected %llu and %llu",
		                 container_name(c), (unsigned long long)(*matrices)->bytes,
		                 (unsigned long long)(*vectors)->bytes,
		                 (unsigned long long)now.matrix_bytes + WEIGHTS_SLACK,
		                 (unsigned long long)now.vector_bytes);
	return true;
}

static bool reach_matrices(struct weights *w, const struct model_spec *s, enum weight_layout layout, bool copy,
                           struct copying *c, struct pool *pool, struct error *err)
{
	w->arena_bytes = (size_t)c->section->bytes;
	w->release = copy ? release_copied : release_mapped;
	if (copy)
		return copy_matrices(w, s, layout, c, pool, err);
	w->arena = (uint8_t *)(uintptr_t)container_map(c->container, c->section, err); /* kernels read it alone */
	return w->arena != NULL;
}

bool weights_open_packed(struct weights *w, const struct model *m, const struct container *c, struct device *device,
                         bool copy, struct pool *pool, int (*progress)(void *, uint64_t, uint64_t), void *user,
                         struct error *err)
{
	const struct target *t = device->facts.target;
	struct copying copying = {
		.container = c, .weights = w, .failed = ATOMIC_FLAG_INIT, .progress = progress, .user = user
	};
	const struct container_section *vectors;

	memset(w, 0, sizeof *w);
	if (!find_sections(c, m, t, &copying.section, &vectors, err))
		return false;
	bool ok = weights_allocate(w, &m->spec, err);
	w->device = device;
	ok = ok &&
	     reach_matrices(w, &m->spec, weight_layout_of(t), copy || !device->facts.host_runs, &copying, pool, err) &&
	     load_vectors(w, m, c, vectors, err) && point(w, m, weight_layout_of(t), err) && container_same(c, err);
	if (!ok)
		weights_close(w);
	return ok;
}
