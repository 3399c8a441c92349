/* runtime/device/host/cpu.c - the CPU as a device: kernels are functions in executable pages, handed out by the
 * registry. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/host/system.h"

struct cpu_stream {
	struct stream stream;
	struct registry *registry;
};

static bool cpu_prepare(struct stream *s, struct plan *p, struct pool *pool, struct error *err)
{
	struct registry *registry = ((struct cpu_stream *)s)->registry;

	if (!device_make_plan(registry, p, pool, err))
		return false;
	for (size_t i = 0; i < p->n_kernels; i++) {
		const struct kernel *k = registry_get(registry, &p->kernel[i].key, NULL, err);
		if (!k)
			return false;
		if (!k->run) {
			char text[192];
			return error_set(err, ERROR_DEVICE, "kernel %s cannot run on this CPU",
			                 key_text(&p->kernel[i].key, text, sizeof text));
		}
		memcpy(&p->kernel[i].handle, &k->run, sizeof k->run);
	}
	return true;
}

static void cpu_call(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	kernel_fn run;
	memcpy(&run, &handle, sizeof run);
	run(arg, begin, end);
}

static void cpu_close_stream(struct stream *s) { free(s); }

static struct stream *cpu_stream(struct device *d, const struct stream_options *o, struct error *err)
{
	struct cpu_stream *s = calloc(1, sizeof *s);

	if (!s) {
		error_set(err, ERROR_MEMORY, "no memory for a session's kernels");
		return NULL;
	}
	s->stream = (struct stream){ .device = d,
		                     .prepare = cpu_prepare,
		                     .run = host_schedule_run,
		                     .call = cpu_call,
		                     .close = cpu_close_stream };
	s->registry = o->registry;
	return &s->stream;
}

static void cpu_close(struct device *d) { free(d); }

static struct device *cpu_open(const char *which, const char *isa, struct error *err)
{
	const struct target *t = device_host_target(isa, true, err);
	struct device *d = t ? calloc(1, sizeof *d) : NULL;

	if (t && !d)
		error_set(err, ERROR_MEMORY, "no memory for the cpu device");
	if (d)
		*d = (struct device){
			.facts = { .target = t,
			           .host_runs = true,
			           .host_reaches = true,
			           .keeps_code = true,
			           .tunes = true },
			.alloc = device_host_alloc,
			.release = device_host_release,
			.upload = device_host_copy,
			.read = device_host_copy,
			.stream = cpu_stream,
			.close = cpu_close
		};
	return d;
}

static void cpu_each(device_visit_fn visit, void *user)
{
	struct device_entry e = { .name = "cpu" };
	char name[64];
	const struct target *t = target_native(&e.why_not);

	if (t)
		snprintf(e.about, sizeof e.about, "%s, code for %s, %d threads", target_cpu_name(name, sizeof name),
		         t->name, system_default_threads());
	else
		snprintf(e.about, sizeof e.about, "%s", target_cpu_name(name, sizeof name));
	visit(user, &e);
}

const struct device_driver device_cpu = { .name = "cpu", .open = cpu_open, .each = cpu_each };
