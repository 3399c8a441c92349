/* runtime/kernels/compute.c - opening and closing of what kernels run on. See compute.h. */
#include "runtime/kernels/compute.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/execmem.h"
#include "jit/store/perf_gdb.h"
#include "kernels-templates/templates.h"
#include "runtime/device/generated.h"
#include "runtime/device/profile.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/model/sized.h"

/* What the registry and the reference device ask for is open, as kernel_open() and launches alone ask. Another kernel
 * of the same key may be found, which its owner could close meanwhile: not while the list is locked. */
static bool build(void *user, struct ir *ir, const struct key *key, const struct target *target, struct error *err)
{
	jit_compute *c = user;
	char text[KEY_TEXT_MAX];

	pthread_mutex_lock(&c->lock);
	const jit_kernel *k = c->kernels;
	while (k && !key_equal(&k->key, key))
		k = k->next;
	bool ok = k ? k->is.build(k->is.user, ir, target, err)
	            : error_set(err, ERROR_ARGUMENT, "the kernel %s is not open", key_text(key, text, sizeof text));
	pthread_mutex_unlock(&c->lock);
	return ok;
}

static void name_of(void *user, const struct key *key, char out[OBJECT_NAME])
{
	jit_compute *c = user;

	pthread_mutex_lock(&c->lock);
	for (const jit_kernel *k = c->kernels; k; k = k->next)
		if (key_equal(&k->key, key))
			snprintf(out, OBJECT_NAME, "%s", k->is.name);
	pthread_mutex_unlock(&c->lock);
}

static bool open_device(jit_compute *c, const jit_compute_options *o, struct error *err)
{
	if (!(c->device = device_open(o->device ? o->device : "cpu", o->isa, err)))
		return false;
	return c->device->facts.target->cards <= 1 ||
	       error_set(err, ERROR_UNSUPPORTED,
	                 "device \"%.32s\": a user's kernel runs on one card, not on %u together",
	                 c->device->facts.name, c->device->facts.target->cards);
}

static bool open_code(jit_compute *c, const jit_compute_options *o, struct error *err)
{
	const struct generated_options kept = {
		.device = c->device,
		.cache_dir = o->cache_dir,
		.cache_limit = o->cache_limit,
		.sealed = c->sealed,
		.dumps = o->dump_ir || o->dump_asm
	};

	if ((o->perf_map && !execmem_perf_map_open(err)) || !generated_dump(&c->dump_ir, o->dump_ir, err) ||
	    !generated_dump(&c->dump_asm, o->dump_asm, err) || !generated_cache(&c->cache, &kept, err) ||
	    ((o->jitdump || o->gdb) && !(c->perf_gdb = perf_gdb_open(o->jitdump, o->gdb != 0, err))))
		return false;
	c->perf_map = o->perf_map != 0;
	c->builder = (struct compile_builder){ .build = build, .name = name_of, .user = c };
	c->registry = registry_open(
		&(struct registry_options){
			.build = template_build,
			.users = &c->builder,
			.cache = c->cache,
			.perf_map = c->perf_map,
			.perf_gdb = c->perf_gdb,
			.sealed = c->sealed,
			.dump_ir = c->dump_ir,
			.dump_asm = c->dump_asm },
		err);
	return c->registry != NULL;
}

/* What was found out about kernels lies in the cache's first directory; without one it is known in this process alone.
 */
static bool open_tune(jit_compute *c, struct error *err)
{
	struct cache_source source = { 0 };

	for (unsigned i = 0;
	     c->cache && i < cache_source_count(c->cache) && (!source.path || source.kind != CACHE_DIRECTORY); i++)
		cache_source_get(c->cache, i, &source);
	return (c->tune = tune_open(source.kind == CACHE_DIRECTORY ? source.path : NULL, err)) != NULL;
}

/* Events are kept from here on, and written when somebody asks whether all was written, or at the end. */
static bool open_trace(jit_compute *c, const char *path, struct error *err)
{
	const struct device_facts *f = &c->device->facts;

	if (!path)
		return true;
	if (!generated_dump(&c->trace, path, err))
		return false;
	c->profile = f->host_runs ? profile_open(pool_threads(c->pool), NULL, true, err)
	                          : profile_open(1, f->name, true, err);
	c->stream->profile = c->profile;
	return c->profile != NULL;
}

static void write_trace(jit_compute *c)
{
	pthread_mutex_lock(&c->stream_lock);
	if (c->profile && !c->traced)
		profile_trace(c->profile, c->trace);
	c->traced = true;
	pthread_mutex_unlock(&c->stream_lock);
}

void compute_set_niceness(jit_compute *c, int niceness)
{
	pthread_mutex_lock(&c->stream_lock);
	pool_set_niceness(c->pool, niceness);
	pthread_mutex_unlock(&c->stream_lock);
}

bool compute_prepare(jit_compute *c, struct plan *p, const char *(*name)(const void *user, size_t kernel),
                     const void *user, struct error *err)
{
	pthread_mutex_lock(&c->stream_lock);
	const bool prepared = c->stream->prepare(c->stream, p, c->pool, err);
	if (prepared && c->profile && profile_add_plan(c->profile, p, err))
		for (size_t i = 0; i < p->n_kernels; i++)
			profile_name(c->profile, p, i, name(user, i));
	pthread_mutex_unlock(&c->stream_lock);
	return prepared;
}

static bool open_parts(jit_compute *c, const jit_compute_options *o, struct error *err)
{
	c->sealed = o->sealed != 0;
	c->cancel.from = o->cancel;
	if (!open_device(c, o, err) || !open_code(c, o, err) || !open_tune(c, err) ||
	    !(c->pool = pool_open(o->threads > 0 ? o->threads : system_default_threads(), err)))
		return false;
	/* a launch for each op: they are cancelled between two */
	const struct stream_options so = { .registry = c->registry, .launch = STREAM_LAUNCH_OP };
	if (!(c->stream = c->device->stream(c->device, &so, err)))
		return false;
	c->stream->cancel = &c->cancel;
	return open_trace(c, o->trace, err);
}

jit_compute *jit_compute_open(const jit_compute_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_compute *c = calloc(1, sizeof *c);
	jit_compute_options own;

	if (!c) {
		error_set(&e, ERROR_MEMORY, "no memory for a device of kernels");
	} else {
		pthread_mutex_init(&c->stream_lock, NULL);
		pthread_mutex_init(&c->lock, NULL);
		if (options_compute(&own, options, &e))
			open_parts(c, &own, &e);
	}
	model_report(err, &e);
	if (e.code == ERROR_NONE)
		return c;
	jit_compute_close(c);
	return NULL;
}

int jit_compute_written(jit_compute *c, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(c, &e))
		return model_report(err, &e);
	write_trace(c);
	if (generated_dump_written(c->trace, "the timeline", &e) && generated_dump_written(c->dump_ir, "IR", &e) &&
	    generated_dump_written(c->dump_asm, "machine code", &e) && c->perf_gdb)
		perf_gdb_written(c->perf_gdb, &e);
	if (c->perf_map && !execmem_perf_map_written())
		error_set(&e, ERROR_IO, "/tmp/perf-%ld.map: could not be written whole", (long)getpid());
	return model_report(err, &e);
}

void jit_compute_close(jit_compute *c)
{
	if (!c)
		return;
	if (c->trace) {
		write_trace(c);
		if (c->trace != stdout)
			fclose(c->trace);
	}
	if (c->stream)
		c->stream->close(c->stream);
	profile_close(c->profile);
	pool_close(c->pool);
	perf_gdb_close(c->perf_gdb);
	if (c->registry)
		registry_close(c->registry);
	if (c->cache)
		cache_close(c->cache);
	tune_close(c->tune);
	device_close(c->device);
	if (c->dump_ir && c->dump_ir != stdout)
		fclose(c->dump_ir);
	if (c->dump_asm && c->dump_asm != stdout)
		fclose(c->dump_asm);
	pthread_mutex_destroy(&c->stream_lock);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int jit_compute_get_info(const jit_compute *c, jit_compute_info *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(c, &e)) {
		struct registry_counters count;
		registry_count(c->registry, &count);
		const jit_compute_info info = {
			.device = c->device->facts.name,
			.target = c->device->facts.target->name,
			.threads = pool_threads(c->pool),
			.in_place = compute_host_runs(c),
			.generated = count.generated,
			.from_disk = count.from_disk,
			.from_pack = count.from_pack,
			.generated_ns = count.generated_ns,
			.from_disk_ns = count.from_disk_ns,
			.code_bytes = count.code_bytes
		};
		SIZED_WRITE(jit_compute_info, out, &info, &e);
	}
	return model_report(err, &e);
}

/* ---- buffers */

jit_buffer *jit_buffer_open(jit_compute *c, uint64_t bytes, jit_error *err)
{
	struct error e = { 0 };
	jit_buffer *b = NEEDED(c, &e) ? calloc(1, sizeof *b) : NULL;

	if (c && !b) {
		error_set(&e, ERROR_MEMORY, "no memory for a buffer");
	} else if (b && bytes > SIZE_MAX / 2) {
		error_set(&e, ERROR_ARGUMENT, "a buffer of %llu bytes, expected at most %zu", (unsigned long long)bytes,
		          SIZE_MAX / 2);
	} else if (b) {
		*b = (jit_buffer){ .compute = c, .bytes = bytes };
		b->at = c->device->alloc(c->device, bytes ? (size_t)bytes : 1, DEVICE_ARRAYS, &e);
	}
	model_report(err, &e);
	if (b && b->at)
		return b;
	free(b);
	return NULL;
}

void jit_buffer_close(jit_buffer *b)
{
	if (!b)
		return;
	struct device *d = b->compute->device;
	d->release(d, b->at, b->bytes ? (size_t)b->bytes : 1);
	free(b);
}

uint64_t jit_buffer_bytes(const jit_buffer *b) { return b ? b->bytes : 0; }

static bool within(const jit_buffer *b, uint64_t at, uint64_t bytes, struct error *err)
{
	return (at <= b->bytes && bytes <= b->bytes - at) ||
	       error_set(err, ERROR_ARGUMENT, "%llu bytes from byte %llu of a buffer, which has %llu bytes",
	                 (unsigned long long)bytes, (unsigned long long)at, (unsigned long long)b->bytes);
}

int jit_buffer_write(jit_buffer *b, uint64_t at, const void *from, uint64_t bytes, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(b, &e) && NEEDED_LIST(from, bytes, &e) && within(b, at, bytes, &e) && bytes) {
		struct device *d = b->compute->device;
		pthread_mutex_lock(&b->compute->stream_lock);
		d->upload(d, b->at + at, from, (size_t)bytes, &e);
		pthread_mutex_unlock(&b->compute->stream_lock);
	}
	return model_report(err, &e);
}

int jit_buffer_read(const jit_buffer *b, uint64_t at, void *to, uint64_t bytes, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(b, &e) && NEEDED_LIST(to, bytes, &e) && within(b, at, bytes, &e) && bytes) {
		struct device *d = b->compute->device;
		pthread_mutex_lock(&b->compute->stream_lock);
		d->read(d, to, b->at + at, (size_t)bytes, &e);
		pthread_mutex_unlock(&b->compute->stream_lock);
	}
	return model_report(err, &e);
}

void *jit_buffer_memory(jit_buffer *b) { return b && b->compute->device->facts.host_reaches ? b->at : NULL; }
