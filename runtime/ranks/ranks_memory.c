/* runtime/ranks/ranks_memory.c - the memory of sessions, which each rank has once, and rank 0's device, through which
 * all of it is allocated (ranks.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/ranks/ranks.h"

/* An address: the number of its memory, and behind that the offset. */
enum { OFFSET_BITS = 44 };

ranks_address ranks_address_of(const struct ranks *r, const void *at)
{
	const uintptr_t p = (uintptr_t)at;

	for (size_t i = 0; i < r->n_memory; i++) {
		const struct ranks_memory *m = &r->memory[i];
		if (p >= (uintptr_t)m->at && p - (uintptr_t)m->at < m->bytes)
			return (uint64_t)m->number << OFFSET_BITS | (p - (uintptr_t)m->at);
	}
	return 0;
}

uint8_t *ranks_at(const struct ranks *r, ranks_address address)
{
	const uint64_t offset = address & (((uint64_t)1 << OFFSET_BITS) - 1);

	for (size_t i = 0; i < r->n_memory; i++)
		if (r->memory[i].number == address >> OFFSET_BITS && offset < r->memory[i].bytes)
			return r->memory[i].at + offset;
	return NULL;
}

static bool enter(struct ranks *r, uint8_t *at, size_t bytes, uint32_t number, struct error *err)
{
	if (r->n_memory == r->memory_room) {
		const size_t room = r->memory_room ? 2 * r->memory_room : 16;
		struct ranks_memory *more = realloc(r->memory, room * sizeof *more);
		if (!more)
			return error_set(err, ERROR_MEMORY, "no memory for a list of %zu caches", room);
		r->memory = more;
		r->memory_room = room;
	}
	r->memory[r->n_memory++] = (struct ranks_memory){ at, bytes, number };
	return true;
}

/* Takes it off the list and returns it; number 0: it was not there. */
static struct ranks_memory leave(struct ranks *r, const uint8_t *at, uint32_t number)
{
	for (size_t i = 0; i < r->n_memory; i++) {
		const struct ranks_memory m = r->memory[i];
		if (m.at == at || m.number == number) {
			r->memory[i] = r->memory[--r->n_memory];
			return m;
		}
	}
	return (struct ranks_memory){ 0 };
}

bool ranks_take_memory(struct ranks *r, struct device *d, const struct ranks_command *c, struct error *err)
{
	uint8_t *at = d->alloc(d, (size_t)c->bytes, DEVICE_CACHE, err);

	if (!at || enter(r, at, (size_t)c->bytes, c->number, err))
		return at != NULL;
	d->release(d, at, (size_t)c->bytes);
	return false;
}

void ranks_drop_memory(struct ranks *r, struct device *d, uint32_t number)
{
	const struct ranks_memory m = leave(r, NULL, number);

	if (m.number)
		d->release(d, m.at, m.bytes);
}

/* ---- rank 0's device */

struct ranks_device {
	struct device device;
	struct device *of;
	struct ranks *ranks;
};

static struct ranks_device *own(struct device *d) { return (struct ranks_device *)d; }

static bool tell_memory(struct ranks *r, uint8_t *at, size_t bytes, struct error *err)
{
	const uint32_t number = ++r->last_number;
	const struct ranks_command c = { .what = RANKS_MEMORY, .number = number, .bytes = bytes };

	return ranks_tell(r, &c, NULL, err) && ranks_replies(r, err) && enter(r, at, bytes, number, err);
}

static void *ranks_alloc(struct device *d, size_t bytes, enum device_memory what, struct error *err)
{
	struct device *of = own(d)->of;
	struct ranks *r = own(d)->ranks;
	uint8_t *at = of->alloc(of, bytes, what, err);

	if (!at || what != DEVICE_CACHE)
		return at;
	ranks_begin(r);
	const bool ok = tell_memory(r, at, bytes, err);
	ranks_end(r);
	if (ok)
		return at;
	of->release(of, at, bytes);
	return NULL;
}

static void ranks_release(struct device *d, void *p, size_t bytes)
{
	struct device *of = own(d)->of;
	struct ranks *r = own(d)->ranks;

	if (p) {
		ranks_begin(r);
		const struct ranks_memory m = leave(r, p, 0);
		if (m.number)
			ranks_tell(r, &(struct ranks_command){ .what = RANKS_MEMORY_CLOSE, .number = m.number }, NULL,
			           NULL);
		ranks_end(r);
	}
	of->release(of, p, bytes);
}

/* Each rank copies what its layers keep there; of the others' there is nothing. */
static bool ranks_copy(struct device *d, void *to, const void *from, size_t bytes, struct error *err)
{
	struct ranks *r = own(d)->ranks;

	memmove(to, from, bytes);
	ranks_begin(r);
	const struct ranks_command c = {
		.what = RANKS_COPY, .bytes = bytes, .to = ranks_address_of(r, to), .from = ranks_address_of(r, from)
	};
	const bool ok = ranks_tell(r, &c, NULL, err);
	ranks_end(r);
	return ok;
}

static bool ranks_alive(struct device *d, struct error *err) { return carrier_alive(own(d)->ranks->carrier, err); }

static void ranks_device_close(struct device *d)
{
	device_close(own(d)->of);
	free(d);
}

struct device *ranks_device(struct ranks *r, struct device *of, struct error *err)
{
	struct ranks_device *d = calloc(1, sizeof *d);

	if (!d) {
		error_set(err, ERROR_MEMORY, "no memory for a device of ranks");
		return NULL;
	}
	d->device = *of;
	d->device.alloc = ranks_alloc;
	d->device.release = ranks_release;
	d->device.copy = ranks_copy;
	d->device.alive = ranks_alive;
	d->device.close = ranks_device_close;
	d->of = of;
	d->ranks = r;
	return &d->device;
}
