/* runtime/model/packed_write.c - makes packed models.
 *
 * Owns: the order of their sections, and a device whose memory is the file. So weights are packed by the one code there
 * is for that (load_weights.h), a few rows at a time, and a model need not fit into memory.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels-templates/templates.h"
#include "runtime/model/load_weights.h"
#include "runtime/model/packed.h"

struct file_device {
	struct device device;
	struct container_writer *writer;
	const struct packed_options *options;
	struct weights_layout layout;
	uint8_t *vectors, *matrices; /* matrices: addresses for places in the file, with no memory behind them */
	bool first;
};

static bool add(struct container_writer *w, enum container_kind kind, uint32_t number, uint64_t layout, uint64_t bytes,
                const char *name, const void *content, struct error *err)
{
	struct container_section s = { .kind = kind, .number = number, .layout = layout, .bytes = bytes };

	snprintf(s.name, sizeof s.name, "%s", name);
	return container_add(w, &s, content, err);
}

/* Vectors come before matrices, and the same with every layout. */
static bool add_vectors_and_kernels(struct file_device *d, struct error *err)
{
	const struct packed_options *o = d->options;

	return add(d->writer, CONTAINER_VECTORS, 0, 0, d->layout.vector_bytes, "vectors", d->vectors, err) &&
	       (!o->kernels || add(d->writer, CONTAINER_KERNELS, 0, 0, o->kernel_bytes, "kernels", o->kernels, err));
}

static const char *const layout_name[] = {
	[WEIGHT_BY_VECTOR] = "weights-cpu", [WEIGHT_LANE_CONTIGUOUS] = "weights-card"
};

static void *alloc_matrices(struct file_device *d, size_t bytes, struct error *err)
{
	const enum weight_layout layout = weight_layout_of(d->device.facts.target);

	if (d->first && !add_vectors_and_kernels(d, err))
		return NULL;
	if (!add(d->writer, CONTAINER_WEIGHTS, layout, d->layout.id, bytes, layout_name[layout], NULL, err))
		return NULL;
	void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		error_set(err, ERROR_MEMORY, "no addresses for %zu bytes of weights", bytes);
		return NULL;
	}
	return d->matrices = p;
}

static void *file_alloc(struct device *device, size_t bytes, enum device_memory what, struct error *err)
{
	struct file_device *d = (struct file_device *)device;

	if (what == DEVICE_WEIGHTS)
		return alloc_matrices(d, bytes, err);
	if (!(d->vectors = calloc(1, bytes)))
		error_set(err, ERROR_MEMORY, "no memory for %zu bytes of norms and biases", bytes);
	return d->vectors;
}

static void file_release(struct device *device, void *p, size_t bytes)
{
	struct file_device *d = (struct file_device *)device;

	if (p && p == d->matrices)
		munmap(p, bytes);
	else
		free(p);
}

static bool file_upload(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	struct file_device *d = (struct file_device *)device;

	if (d->matrices)
		return container_write(d->writer, (uint64_t)((uint8_t *)to - d->matrices), from, bytes, err);
	memcpy(to, from, bytes);
	return true;
}

/* The weights of a target's layout; first: with what stands before them. */
static bool write_weights(struct container_writer *w, const struct model *m, const struct packed_options *o,
                          const struct target *t, bool first, struct pool *pool, struct error *err)
{
	struct file_device d = { .device = { .facts = { .target = t },
		                             .alloc = file_alloc,
		                             .release = file_release,
		                             .upload = file_upload },
		                 .writer = w,
		                 .options = o,
		                 .first = first };
	struct weights weights;

	if (!weights_layout(&m->spec, weight_layout_of(t), &d.layout, err) ||
	    !weights_open(&weights, m, NULL, &d.device, pool, o->progress, o->user, err))
		return false;
	weights_close(&weights);
	return true;
}

static bool write_sources(struct container_writer *w, const struct model *m, struct error *err)
{
	size_t n;
	struct model_source *s = model_sources(m, &n, err);
	bool ok = s != NULL;

	for (size_t i = 0; ok && i < n; i++)
		ok = add(w, CONTAINER_SOURCE, s[i].role, 0, s[i].n, model_source_name(s[i].role), s[i].bytes, err);
	free(s);
	return ok;
}

static bool write_sections(struct container_writer *w, const struct model *m, const struct packed_options *o,
                           struct pool *pool, struct error *err)
{
	bool done[WEIGHT_LANE_CONTIGUOUS + 1] = { false }, first = true;

	if ((!o->weights_only && !write_sources(w, m, err)) ||
	    (o->origin && !add(w, CONTAINER_ORIGIN, 0, 0, o->origin_bytes, "origin", o->origin, err)))
		return false;
	/* in the order of layouts, whatever the targets' is */
	for (int layout = 0; layout <= WEIGHT_LANE_CONTIGUOUS; layout++)
		for (int t = 0; t < o->n_targets; t++) {
			if (done[layout] || (int)weight_layout_of(o->target[t]) != layout)
				continue;
			if (!write_weights(w, m, o, o->target[t], first, pool, err))
				return false;
			done[layout] = true;
			first = false;
		}
	return true;
}

bool packed_write(const char *path, const struct model *m, const struct packed_options *o, struct pool *pool,
                  uint64_t *bytes, struct error *err)
{
	struct container_writer *w = container_begin(path, o->mode, err);

	if (!w)
		return false;
	if (write_sections(w, m, o, pool, err))
		return container_commit(w, bytes, err);
	container_abandon(w);
	return false;
}
