/* runtime/device/device.c - the table of drivers, and what host devices share. See device.h. */
#include "runtime/device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/system.h"
#include "runtime/plan/key_list.h"

static const struct device_driver *const drivers[] = { &device_cpu, &device_reference, &device_simulator,
	                                               &device_amd, &device_cuda,      &device_vulkan };
enum { DRIVERS = sizeof drivers / sizeof *drivers };

/* What stands behind a driver's name, if it is that driver's: "gfx1100" in "sim:gfx1100". NULL: it is not. */
static const char *which_of(const char *name, const struct device_driver *driver)
{
	size_t n = strlen(driver->name);

	if (strncmp(name, driver->name, n) != 0)
		return NULL;
	if (driver->name[n - 1] == ':' || !name[n])
		return name + n;
	return driver->has_several && name[n] == ':' && name[n + 1] ? name + n + 1 : NULL;
}

struct device *device_open(const char *name, const char *isa, struct error *err)
{
	char known[160] = "";

	for (size_t i = 0, at = 0; i < DRIVERS; i++) {
		const char *driver = drivers[i]->name, *which = which_of(name, drivers[i]);
		if (which) {
			struct device *d = drivers[i]->open(which, isa, err);
			if (d)
				snprintf(d->facts.name, sizeof d->facts.name, "%s", name);
			return d;
		}
		at += (size_t)snprintf(known + at, sizeof known - at, "%s%s%s", i ? ", " : "", driver,
		                       driver[strlen(driver) - 1] == ':' ? "..." : "");
	}
	error_set(err, ERROR_ARGUMENT, "device \"%.32s\" is unknown; known: %s; jitrun --devices lists them", name,
	          known);
	return NULL;
}

void device_close(struct device *d)
{
	if (d)
		d->close(d);
}

bool device_has_kernel(struct device *d, struct registry *r, const struct key *key, struct error *err)
{
	return registry_get(r, key, NULL, err) && (!d->ready || d->ready(d, r, key, err));
}

void device_load_programs(struct device *d, struct registry *r, const struct model_spec *spec,
                          const struct key_list_options *o)
{
	struct key *program = NULL;
	size_t n = 0;

	if (d->ready && key_list_programs(spec, o, &program, &n, NULL))
		for (size_t i = 0; i < n; i++)
			d->ready(d, r, &program[i], NULL);
	free(program);
}

void device_each(device_visit_fn visit, void *user)
{
	for (size_t i = 0; i < DRIVERS; i++)
		drivers[i]->each(visit, user);
}

#define MAX_PATIENCE 86400.0

bool device_patience(double usual, double *seconds, struct error *err)
{
	const char *text = getenv("JITRUN_CARD_PATIENCE");
	char *end;

	*seconds = usual;
	if (!text || !*text)
		return true;
	*seconds = strtod(text, &end);
	return (!*end && *seconds >= 1 && *seconds <= MAX_PATIENCE) ||
	       error_set(err, ERROR_ARGUMENT, "JITRUN_CARD_PATIENCE is \"%.32s\", expected seconds from 1 to %.0f",
	                 text, MAX_PATIENCE);
}

bool device_upload_addresses(struct device *d, void *to, uint8_t *const from[], size_t n, struct error *err)
{
	return d->upload_addresses ? d->upload_addresses(d, to, from, n, err)
	                           : d->upload(d, to, from, n * sizeof *from, err);
}

/* ---- what host devices share */

const struct target *device_host_target(const char *isa, bool must_run, struct error *err)
{
	const struct target_cpu cpu = target_this_cpu();
	char names[TARGET_LIST_MAX];
	const struct target *t = isa ? target_find(isa) : target_judge(&cpu, err);

	if (isa && !t)
		error_set(err, ERROR_ARGUMENT, "isa \"%.32s\" is unknown; known: %s", isa,
		          target_list(names, sizeof names, TARGETS_OF_CPUS, "", ", "));
	return t && must_run && !target_runs(&cpu, t, err) ? NULL : t;
}

void *device_host_alloc(struct device *d, size_t bytes, enum device_memory what, struct error *err)
{
	static const char *const name[] = {
		[DEVICE_WEIGHTS] = "the packed weights", [DEVICE_VECTORS] = "norms and biases",
		[DEVICE_CACHE] = "the KV cache",         [DEVICE_BUFFERS] = "the activations of a session",
		[DEVICE_SHARED] = "ids and logits",      [DEVICE_ARRAYS] = "the arrays of a kernel"
	};
	void *p = system_map(bytes);

	if (!p)
		error_set(err, ERROR_MEMORY, "%s need%s %zu bytes and the system refused them", name[what],
		          what == DEVICE_CACHE ? "s" : "", bytes);
	return p;
}

void device_host_release(struct device *d, void *p, size_t bytes) { system_unmap(p, bytes); }

bool device_host_copy(struct device *d, void *to, const void *from, size_t bytes, struct error *err)
{
	memcpy(to, from, bytes);
	return true;
}
