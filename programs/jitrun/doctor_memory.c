/* programs/jitrun/doctor_memory.c - jitrun doctor --report: memory of a device. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/doctor_report.h"
#include "programs/common/output.h"
#include "runtime/device/device.h"
#include "runtime/host/system.h"

enum { LARGE = 16 << 20, KINDS = DEVICE_SHARED + 1 };

static const char *const kind_name[KINDS] = {
	[DEVICE_WEIGHTS] = "weights",
	[DEVICE_VECTORS] = "vectors",
	[DEVICE_CACHE] = "cache",
	[DEVICE_BUFFERS] = "buffers",
	[DEVICE_SHARED] = "shared"
};

struct trial {
	struct report *report;
	struct device *device;
	uint8_t *to, *from; /* LARGE bytes of the host */
	double up, down;    /* bytes a second */
	json_t *wrong;
	struct error err;
};

/* Bytes that no other place has. */
static void fill(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

static void compare(struct trial *t, enum device_memory kind, size_t bytes, const char *what, const uint8_t *want)
{
	for (size_t i = 0; i < bytes; i++)
		if (t->from[i] != want[i]) {
			json_array_append_new(t->wrong,
			                      json_pack("{s:s, s:s, s:I, s:I, s:i, s:i}", "memory", kind_name[kind],
			                                "trial", what, "bytes", (json_int_t)bytes, "first",
			                                (json_int_t)i, "found", t->from[i], "expected", want[i]));
			t->report->differences++;
			return;
		}
}

/* What is at an address, in the host's memory. Shared memory the host reads in place. */
static bool fetch(struct trial *t, enum device_memory kind, const uint8_t *at, size_t bytes)
{
	if (kind != DEVICE_SHARED)
		return t->device->read(t->device, t->from, at, bytes, &t->err);
	memcpy(t->from, at, bytes);
	return true;
}

static bool send(struct trial *t, enum device_memory kind, uint8_t *at, const uint8_t *from, size_t bytes)
{
	if (kind != DEVICE_SHARED)
		return t->device->upload(t->device, at, from, bytes, &t->err);
	memcpy(at, from, bytes);
	return true;
}

/* Zeroes first, then a pattern whose ends lie anywhere in a word, and a part of it written over. */
static bool try_block(struct trial *t, enum device_memory kind, size_t bytes)
{
	uint8_t *p = t->device->alloc(t->device, bytes, kind, &t->err);
	size_t skip = bytes > 16 ? 3 : 0, middle = bytes / 3;

	if (!p)
		return false;
	memset(t->to, 0, bytes);
	memset(t->from, 1, bytes);
	bool ok = fetch(t, kind, p, bytes);
	if (ok)
		compare(t, kind, bytes, "zeroed", t->to);
	fill(t->to + skip, bytes - skip, (uint32_t)bytes);
	double start = system_seconds();
	ok = ok && send(t, kind, p + skip, t->to + skip, bytes - skip);
	double sent = system_seconds();
	ok = ok && fetch(t, kind, p, bytes);
	double fetched = system_seconds();
	if (ok)
		compare(t, kind, bytes, "copied", t->to);
	fill(t->to + middle, middle, 99);
	ok = ok && send(t, kind, p + middle, t->to + middle, middle) && fetch(t, kind, p, bytes);
	if (ok)
		compare(t, kind, bytes, "copied in part", t->to);
	if (bytes == LARGE && kind == DEVICE_WEIGHTS) {
		t->up = (double)bytes / (sent - start);
		t->down = (double)bytes / (fetched - sent);
	}
	t->device->release(t->device, p, bytes);
	return ok;
}

static bool try_all(struct trial *t)
{
	static const size_t sizes[] = { 1, 63, 4096, 4097, 1 << 20, LARGE };
	size_t n = sizeof sizes / sizeof *sizes - (report_is_quick() ? 2 : 0);

	for (int kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < n; i++)
			if (!try_block(t, (enum device_memory)kind, sizes[i]))
				return false;
	return true;
}

/* Its target, and by which way a real card is used: AMD's library, or calls of the driver alone. */
static void tell_device(struct report *r, const struct device_facts *f)
{
	json_object_set_new(r->object, "target", json_string(f->target->name));
	if (!f->memory_by)
		return;
	json_object_set_new(r->object, "memory_by", json_string(f->memory_by));
	json_object_set_new(r->object, "queues_by", json_string(f->queues_by));
	bool library = strcmp(f->memory_by, "hsakmt") == 0, queues = strcmp(f->queues_by, "hsakmt") == 0;
	report_line(
		"used by", "%s",
		!library ? "calls of the driver (ioctl) alone"
		: queues ? "AMD's library libhsakmt"
			 : "AMD's library libhsakmt; queues by calls of the driver, for the library's are too small");
}

bool report_memory(struct report *r)
{
	struct trial t = { .report = r, .to = malloc(LARGE), .from = malloc(LARGE), .wrong = json_array() };
	bool ok = t.to && t.from ? (t.device = device_open(r->device, NULL, &t.err)) != NULL
	                         : error_set(&t.err, ERROR_MEMORY, "no memory for a trial of memory");

	if (ok)
		tell_device(r, &t.device->facts);
	ok = ok && try_all(&t);
	if (ok) {
		size_t wrong = json_array_size(t.wrong);
		if (wrong)
			report_line("memory", "%zu blocks do not hold what was written", wrong);
		else
			report_line("memory", "every kind of it holds what is written");
		if (t.up > 0)
			report_line("copies", "%.2f GB/s to the device, %.2f GB/s back", t.up / 1e9, t.down / 1e9);
	}
	json_object_set_new(r->object, "memory",
	                    json_pack("{s:b, s:O, s:o, s:o}", "done", ok, "wrong", t.wrong, "to_device",
	                              output_real(t.up), "from_device", output_real(t.down)));
	json_decref(t.wrong);
	device_close(t.device);
	free(t.to);
	free(t.from);
	return ok || report_stop(r, "memory was tried", &t.err);
}
