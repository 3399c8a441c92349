/* runtime/device/host/reference.c - the reference device: interprets each kernel's IR at the width of the target that
 * would run it. Slow and exact: what every other device must equal, bit for bit. */
#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "jit/ir/interp.h"
#include "jit/ir/lanes.h"
#include "runtime/device/device.h"

struct ref_kernel {
	struct ref_stream *stream;
	struct key key;
	struct ir ir;
	struct interp_program *program;
};

struct ref_stream {
	struct stream stream;
	const struct target *target;
	const struct registry *registry; /* borrowed: who builds its kernels */
	struct ref_kernel **kernel;
	size_t n, capacity;
	/* Working memory for as many calls at once as there are threads: a call has no way to say that there is
	 * none. */
	pthread_mutex_t lock;
	void **frame;
	int frames, frames_left;
	size_t frame_bytes;
	const struct ref_kernel *stopped; /* which did not run to its end */
	enum interp_end why;
};

static struct ref_kernel *ref_find(struct ref_stream *r, const struct key *key)
{
	for (size_t i = 0; i < r->n; i++)
		if (key_equal(&r->kernel[i]->key, key))
			return r->kernel[i];
	return NULL;
}

static void kernel_free(struct ref_kernel *k)
{
	interp_free(k->program);
	ir_free(&k->ir);
	free(k);
}

static struct ref_kernel *ref_build(struct ref_stream *r, const struct key *key, struct error *err)
{
	struct ref_kernel *k = array_grow((void **)&r->kernel, &r->capacity, r->n + 1, sizeof *r->kernel)
	                               ? calloc(1, sizeof *k)
	                               : NULL;
	if (!k) {
		error_set(err, ERROR_MEMORY, "no memory for a kernel");
		return NULL;
	}
	k->stream = r;
	k->key = *key;
	ir_init(&k->ir, r->target->lanes);
	k->ir.waves = r->target->waves;
	if (!registry_build(r->registry, &k->ir, key, r->target, err) || !ir_verify(&k->ir, err) ||
	    (!(k->program = interp_compile(&k->ir)) && !error_set(err, ERROR_MEMORY, "no memory for a kernel"))) {
		kernel_free(k);
		return NULL;
	}
	return r->kernel[r->n++] = k;
}

static void frames_free(struct ref_stream *r)
{
	for (int i = 0; i < r->frames; i++)
		free(r->frame[i]);
	free(r->frame);
	r->frame = NULL;
	r->frames = r->frames_left = 0;
	r->frame_bytes = 0;
}

/* Between runs: frames for so many threads, in which every kernel has room. */
static bool make_frames(struct ref_stream *r, int threads, struct error *err)
{
	size_t bytes = 64;

	for (size_t i = 0; i < r->n; i++) {
		size_t needed = (interp_frame_bytes(r->kernel[i]->program) + 63) & ~(size_t)63;
		bytes = needed > bytes ? needed : bytes;
	}
	if (bytes <= r->frame_bytes && threads <= r->frames)
		return true;
	frames_free(r);
	if (!(r->frame = calloc((size_t)threads, sizeof *r->frame)))
		return error_set(err, ERROR_MEMORY, "no memory for the reference device");
	for (; r->frames < threads; r->frames++)
		if (!(r->frame[r->frames] = aligned_alloc(64, bytes)))
			return error_set(err, ERROR_MEMORY, "no memory for %d kernels that run at once, %zu bytes each",
			                 threads, bytes);
	r->frames_left = r->frames;
	r->frame_bytes = bytes;
	return true;
}

static bool ref_prepare(struct stream *s, struct plan *p, struct pool *pool, struct error *err)
{
	struct ref_stream *r = (struct ref_stream *)s;

	for (size_t i = 0; i < p->n_kernels; i++) {
		struct ref_kernel *k = ref_find(r, &p->kernel[i].key);
		if (!k && !(k = ref_build(r, &p->kernel[i].key, err)))
			return false;
		p->kernel[i].handle = k;
	}
	return make_frames(r, pool_threads(pool), err);
}

static void ref_call(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct ref_kernel *k = handle;
	struct ref_stream *r = k->stream;

	pthread_mutex_lock(&r->lock);
	void *frame = r->frame[--r->frames_left];
	pthread_mutex_unlock(&r->lock);
	enum interp_end how = interp_run(k->program, frame, arg, begin, end);
	pthread_mutex_lock(&r->lock);
	if (how != INTERP_DONE) {
		r->stopped = k;
		r->why = how;
	}
	r->frame[r->frames_left++] = frame;
	pthread_mutex_unlock(&r->lock);
}

/* What nobody has given yet. */
static void empty(const struct plan *p)
{
	uint32_t *word = (uint32_t *)(uintptr_t)p->dataflow;

	for (uint64_t i = 0; i < p->dataflow_bytes / sizeof *word; i++)
		word[i] = IR_EMPTY;
}

static bool ref_run(struct stream *s, struct plan *p, struct pool *pool, struct error *err)
{
	struct ref_stream *r = (struct ref_stream *)s;
	char text[KEY_TEXT_MAX];

	r->stopped = NULL;
	empty(p);
	if (!host_schedule_run(s, p, pool, err))
		return false;
	return !r->stopped || error_set(err, ERROR_DEVICE, "the kernel %s %s",
	                                key_text(&r->stopped->key, text, sizeof text), interp_why(r->why));
}

static void ref_close_stream(struct stream *s)
{
	struct ref_stream *r = (struct ref_stream *)s;

	for (size_t i = 0; i < r->n; i++)
		kernel_free(r->kernel[i]);
	free(r->kernel);
	frames_free(r);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static struct stream *ref_stream(struct device *d, const struct stream_options *o, struct error *err)
{
	struct ref_stream *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for the reference device");
		return NULL;
	}
	r->stream = (struct stream){
		.device = d, .prepare = ref_prepare, .run = ref_run, .call = ref_call, .close = ref_close_stream
	};
	r->target = d->facts.target;
	r->registry = o->registry;
	pthread_mutex_init(&r->lock, NULL);
	return &r->stream;
}

static void ref_close(struct device *d) { free(d); }

static struct device *ref_open(const char *which, const char *isa, struct error *err)
{
	const struct target *t = device_host_target(isa, false, err);
	struct device *d = t ? calloc(1, sizeof *d) : NULL;

	if (t && !d)
		error_set(err, ERROR_MEMORY, "no memory for the reference device");
	if (d)
		*d = (struct device){
			.facts = { .target = t,
			           .host_runs = true,
			           .host_reaches = true,
			           .interprets = true,
			           /* of a card's kernels, as a card has them */
			           .overlaps = t->lane_bytes != 0,
			           .awaits = t->lane_bytes != 0 },
			.alloc = device_host_alloc,
			.release = device_host_release,
			.upload = device_host_copy,
			.read = device_host_copy,
			.stream = ref_stream,
			.close = ref_close
		};
	return d;
}

static void ref_each(device_visit_fn visit, void *user)
{
	struct device_entry e = { .name = "ref",
		                  .about = "interprets the kernels of any CPU's instruction set (--isa), slowly: what "
		                           "every other device must equal" };

	target_native(&e.why_not);
	visit(user, &e);
}

const struct device_driver device_reference = { .name = "ref", .open = ref_open, .each = ref_each };
