/* runtime/dev_cpu.c - the CPU as a device: kernels are functions in executable pages, handed out by the registry. */
#include <stdlib.h>
#include <string.h>

#include "runtime/dev.h"

struct dev_cpu { struct device device; struct registry *registry; };

static bool cpu_prepare(struct device *d, struct plan *p, struct pool *pool, struct error *err)
{
	struct dev_cpu *c = (struct dev_cpu *)d;

	if (!dev_make_plan(c->registry, p, pool, err))
		return false;
	for (size_t i = 0; i < p->n_kernels; i++) {
		const struct kernel *k = registry_get(c->registry, &p->kernel[i].key, NULL, err);
		if (!k)
			return false;
		if (!k->run) {
			char text[192];
			return error_set(err, ERROR_DEVICE, "kernel %s cannot run on this CPU", key_text(&p->kernel[i].key, text, sizeof text));
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

static void cpu_close(struct device *d) { free(d); }

struct device *dev_cpu_open(struct registry *r, struct error *err)
{
	struct dev_cpu *c = calloc(1, sizeof *c);

	if (!c) {
		error_set(err, ERROR_MEMORY, "no memory for the cpu device");
		return NULL;
	}
	c->device = (struct device){ .name = "cpu", .prepare = cpu_prepare, .run = dev_run, .call = cpu_call, .close = cpu_close };
	c->registry = r;
	return &c->device;
}
