/* tests/fake_kfd/dispatch.c - one launch, run by the simulator from the memory that the card has mapped.
 *
 * Before that: does its code lie where the card may execute it, are its arguments there, and do as many workgroups live
 * at once as it needs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fake_kfd/fake.h"

/* A launch that changes no memory for so many instructions is a barrier that cannot complete. */
enum { STALLED = 200000000, OLD_CODE = 256 };

/* Code that ran at an address which has been given away since: the card may still have it in a cache. */
static struct old_code {
	uint64_t address, sum;
} old[OLD_CODE];
static unsigned n_old;

static bool wrong(uint64_t index, const char *what)
{
	object_to("packet %" PRIu64 ": %s", index, what);
	return false;
}

static uint64_t sum_of(const struct bo *b)
{
	const uint64_t *p = (const uint64_t *)(uintptr_t)b->address;
	uint64_t s = b->size;

	for (uint64_t i = 0; i < b->size / 8; i++)
		s = (s ^ p[i]) * 0x9e3779b97f4a7c15;
	return s;
}

static void look_at_age(uint64_t index, uint64_t descriptor, uint64_t sum)
{
	for (unsigned i = 0; i < n_old; i++)
		if (old[i].address == descriptor) {
			if (old[i].sum != sum)
				wrong(index, "other code ran at its kernel's address before: the card may have that in "
				             "a cache");
			old[i].sum = sum;
			return;
		}
	old[n_old++ % OLD_CODE] = (struct old_code){ descriptor, sum };
}

/* For a look at what runs. */
static void keep_code(const struct bo *b)
{
	const char *prefix = getenv("FAKE_KFD_CODE");
	static unsigned n;
	char path[600];

	snprintf(path, sizeof path, "%s.%u", prefix ? prefix : "", n++);
	FILE *f = prefix ? fopen(path, "wb") : NULL;
	if (f) {
		fwrite((const void *)(uintptr_t)b->address, 1, b->size, f);
		fclose(f);
	}
}

static const struct sim_kernel *find_kernel(struct card *c, uint64_t index, uint64_t descriptor)
{
	struct bo *b = memory_at(c, descriptor, 64);
	struct error err = { .code = ERROR_NONE };
	char name[32];

	if (!b || !(b->flags & MEM_EXECUTABLE)) {
		wrong(index, b ? "its kernel lies in memory that is not executable"
		               : "its kernel lies in no memory that the card has mapped");
		event_fault(c, descriptor, false, b != NULL, b != NULL);
		return NULL;
	}
	if (b->flags & MEM_USERPTR)
		wrong(index, "its kernel lies in the host's own memory");
	uint64_t sum = sum_of(b);
	if (b->code && (b->sum != sum || (uintptr_t)b->descriptor != descriptor)) {
		sim_unload(b->code);
		b->code = NULL;
	}
	if (!b->code) {
		b->code = sim_adopt(c->sim, (void *)(uintptr_t)b->address, b->size, (const void *)(uintptr_t)descriptor,
		                    &err);
		keep_code(b);
		b->sum = sum;
		b->descriptor = (const void *)(uintptr_t)descriptor;
		if (!b->code) {
			wrong(index, err.text);
			return NULL;
		}
		look_at_age(index, descriptor, sum);
	}
	snprintf(name, sizeof name, "at 0x%" PRIx64, descriptor);
	return sim_find(b->code, name);
}

static bool arguments_are_right(struct card *c, uint64_t index, const struct aql_dispatch *p,
                                const struct sim_kernel *k)
{
	const struct bo *b = memory_at(c, p->kernarg, k->kernarg_size);

	if (p->lds_size < k->lds_size || p->lds_size > 65536)
		return wrong(index, "its group segment is not what the kernel's descriptor asks for");
	if (k->scratch_size)
		return wrong(index, "its kernel needs scratch memory, of which there is none");
	if (!k->kernarg_size)
		return true;
	if (p->kernarg & 15)
		return wrong(index, "its arguments do not lie at a multiple of 16");
	if (!b) {
		wrong(index, "its arguments lie in no memory that the card has mapped");
		event_fault(c, p->kernarg, false, false, false);
		return false;
	}
	return true;
}

static bool failed(struct queue *q, uint64_t index, const struct sim_trap *trap, const struct error *err, bool injected)
{
	if (injected) {
		queue_stop(q, "an injected wedge");
		return false;
	}
	wrong(index, err->text);
	if (trap->fault)
		event_fault(q->card, trap->address, trap->write, memory_at(q->card, trap->address, 1) != NULL, false);
	queue_stop(q, "its kernel");
	return false;
}

bool dispatch_run(struct queue *q, uint64_t index, const struct aql_dispatch *p, bool more)
{
	struct card *c = q->card;
	uint32_t groups[3], size[3];
	struct sim_trap trap = { .trapped = false };
	struct error err = { .code = ERROR_NONE };
	bool wedged = fake.packets == fake.inject.wedge;

	if (!c->reached) {
		memory_reach(c, true);
		memory_look_for_flush(c, true);
	}
	atomic_store(&fake.running, true);
	const struct sim_kernel *k = find_kernel(c, index, p->kernel);
	uint8_t *before = wrong_before(c);
	bool ok = k && arguments_are_right(c, index, p, k);
	if (ok && account_begin(c))
		wrong(index, "another process has a launch on this card: each may wait for room that the other has");
	for (unsigned i = 0; i < 3; i++) {
		groups[i] = p->grid_size[i] / p->group_size[i];
		size[i] = p->group_size[i];
	}
	if (ok && !sim_dispatch(c->sim, k, (const void *)(uintptr_t)p->kernarg, k->kernarg_size, groups, size,
	                        &(struct sim_options){ .seed = index,
	                                               .resident = card_resident(c, k->vgprs, p->lds_size),
	                                               .stall_limit = STALLED,
	                                               .max_instructions = wedged ? fake.inject.wedge_after : 0,
	                                               .trap = &trap },
	                        &err))
		ok = failed(q, index, &trap, &err, wedged && !trap.fault);
	account_end(c);
	wrong_after(c, before);
	atomic_store(&fake.running, false);
	if (!ok || !more) {
		memory_look_for_flush(c, false);
		memory_reach(c, false);
	}
	return ok;
}
