/* sim/memory.c - regions of host memory, and when loads and stores complete.
 *
 * Owns: the map of registered memory and each wave's queues of outstanding accesses. An access is issued, completes
 * (takes effect) and is retired by a wait. Its completion lies at issue, at the wait or between, as options.memory
 * says; registers it will write may not be touched until it is retired, in every mode. A wave's own accesses to the
 * same memory keep their order.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/wave.h"

bool sim_map(struct sim_device *dev, void *base, size_t size, const char *name, bool writable, struct error *err)
{
	uint64_t b = (uint64_t)(uintptr_t)base;
	if (!size || b + size < b)
		return error_set(err, ERROR_ARGUMENT, "region %s has %zu bytes, expected at least 1", name, size);
	unsigned at = 0;
	while (at < dev->n_regions && dev->regions[at].base < b)
		at++;
	if ((at < dev->n_regions && dev->regions[at].base < b + size) ||
	    (at && dev->regions[at - 1].base + dev->regions[at - 1].size > b))
		return error_set(err, ERROR_ARGUMENT, "region %s at 0x%llx overlaps one that is registered", name,
		                 (unsigned long long)b);
	if (dev->n_regions == dev->cap_regions) {
		unsigned cap = dev->cap_regions ? 2 * dev->cap_regions : 16;
		struct sim_region *grown = realloc(dev->regions, cap * sizeof *grown);
		if (!grown)
			return error_set(err, ERROR_MEMORY, "no memory for %u regions", cap);
		dev->regions = grown;
		dev->cap_regions = cap;
	}
	memmove(dev->regions + at + 1, dev->regions + at, (dev->n_regions - at) * sizeof *dev->regions);
	dev->n_regions++;
	dev->regions[at] = (struct sim_region){ .base = b, .size = size, .writable = writable };
	strncpy(dev->regions[at].name, name, sizeof dev->regions[at].name - 1);
	return true;
}

void sim_unmap(struct sim_device *dev, void *base)
{
	for (unsigned i = 0; i < dev->n_regions; i++)
		if (dev->regions[i].base == (uint64_t)(uintptr_t)base) {
			memmove(dev->regions + i, dev->regions + i + 1,
			        (dev->n_regions - i - 1) * sizeof *dev->regions);
			dev->n_regions--;
			return;
		}
}

void sim_count_as(struct sim_device *dev, const void *base, unsigned tally)
{
	for (unsigned i = 0; i < dev->n_regions; i++)
		if (dev->regions[i].base == (uint64_t)(uintptr_t)base)
			dev->regions[i].tally = (uint8_t)(tally < SIM_TALLIES ? tally : 0);
}

static struct sim_region *region_below(struct sim_device *dev, uint64_t addr)
{
	unsigned lo = 0, hi = dev->n_regions;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (dev->regions[mid].base <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &dev->regions[lo - 1] : NULL;
}

static void fault_at(struct sim_wave *w, uint64_t addr, bool write)
{
	struct sim_trap *t = w->run->opt.trap;

	if (!t || t->fault)
		return;
	t->fault = true;
	t->write = write;
	t->address = addr;
}

uint8_t *sim_address(struct sim_wave *w, uint64_t addr, uint64_t size, bool write)
{
	struct sim_run *r = w->run;
	struct sim_region *g = r->last_region;
	if (!g || addr < g->base || addr - g->base >= g->size)
		g = region_below(r->dev, addr);
	if (!g || addr - g->base >= g->size || size > g->size - (addr - g->base)) {
		if (g && addr - g->base < g->size + 4096)
			sim_trap(w, "it %s %llu bytes at 0x%llx, %lld bytes into region %s of %llu",
			         write ? "writes" : "reads", (unsigned long long)size, (unsigned long long)addr,
			         (long long)(addr - g->base), g->name, (unsigned long long)g->size);
		else
			sim_trap(w, "it %s %llu bytes at 0x%llx, which lies in no region", write ? "writes" : "reads",
			         (unsigned long long)size, (unsigned long long)addr);
		fault_at(w, addr, write);
		return NULL;
	}
	if (write && !g->writable) {
		sim_trap(w, "it writes region %s, which is read-only", g->name);
		fault_at(w, addr, write);
		return NULL;
	}
	r->last_region = g;
	return (uint8_t *)(uintptr_t)addr;
}

/* --- queues */

static struct sim_access *entry(struct sim_queue *q, unsigned i) { return &q->item[(q->head + i) % q->cap]; }

struct sim_access *sim_issue(struct sim_wave *w, unsigned kind, const struct sim_inst *in)
{
	struct sim_queue *q = &w->q[kind];
	if (q->n == q->cap) {
		unsigned cap = q->cap ? 2 * q->cap : 8;
		struct sim_access *grown = malloc(cap * sizeof *grown);
		if (!grown) {
			sim_trap(w, "no memory for %u outstanding accesses", cap);
			return NULL;
		}
		for (unsigned i = 0; i < q->n; i++)
			grown[i] = *entry(q, i);
		free(q->item);
		q->item = grown;
		q->head = 0;
		q->cap = cap;
	}
	struct sim_access *a = entry(q, q->n);
	q->n++;
	w->n_pending++;
	a->in = in;
	a->exec = w->s[REG_EXEC];
	a->retired = false;
	a->space = SPACE_MEMORY;
	a->seq = w->seq++;
	a->issued = w->vector_seq;
	a->lo = a->hi = 0;
	return a;
}

static void poison(struct sim_wave *w, const struct sim_inst *in, uint32_t exec)
{
	const struct sim_use *d = &in->def[0];
	if (d->reg < REG_VGPR) {
		for (unsigned k = 0; k < d->n; k++)
			w->s[d->reg + k] = POISON;
		return;
	}
	if (in->n_use && in->use[in->n_use - 1].reg == d->reg)
		return; /* half a register: the other half stays */
	for (unsigned k = 0; k < d->n; k++)
		for (unsigned l = 0; l < LANES; l++)
			if (exec >> l & 1)
				sim_vgpr(w, d->reg + k)[l] = POISON;
}

void sim_issued(struct sim_wave *w, unsigned kind, struct sim_access *a)
{
	if (kind != COUNT_STORE && a->in->n_def)
		for (unsigned k = 0; k < a->in->def[0].n; k++)
			w->pend[a->in->def[0].reg + k]++;
	if (a->retired)
		return;
	if (w->run->opt.memory == SIM_MEMORY_NOW) {
		a->retired = true;
		sim_access_do(w, kind, a);
	} else if (kind != COUNT_STORE && a->in->n_def)
		poison(w, a->in, a->exec);
}

static void complete(struct sim_wave *w, unsigned kind, struct sim_access *a)
{
	if (a->retired)
		return;
	a->retired = true;
	if (kind == COUNT_LOAD || kind == COUNT_STORE)
		for (unsigned k = COUNT_LOAD; k <= COUNT_STORE; k++)
			for (unsigned i = 0; i < w->q[k].n; i++) {
				struct sim_access *b = entry(&w->q[k], i);
				if (b->seq >= a->seq)
					break;
				if (!b->retired && (k == COUNT_STORE || kind == COUNT_STORE) && b->lo < a->hi &&
				    a->lo < b->hi)
					complete(w, k, b);
			}
	if (!w->run->trapped)
		sim_access_do(w, kind, a);
}

static void retire(struct sim_wave *w, unsigned kind)
{
	struct sim_queue *q = &w->q[kind];
	struct sim_access *a = entry(q, 0);
	complete(w, kind, a);
	if (w->run->race)
		sim_caches_retired(w, kind, a);
	if (kind != COUNT_STORE && a->in->n_def)
		for (unsigned k = 0; k < a->in->def[0].n; k++)
			w->pend[a->in->def[0].reg + k]--;
	q->head = (q->head + 1) % q->cap;
	q->n--;
	w->n_pending--;
}

/* Waits until at most left accesses of a kind are outstanding. SMEM returns in any order: only 0 says anything. */
void sim_wait(struct sim_wave *w, unsigned kind, unsigned left)
{
	struct sim_queue *q = &w->q[kind];
	if (q->n <= left) {
		w->run->c.waits_empty += q->n == 0;
		return;
	}
	if (kind == COUNT_SMEM && left)
		return;
	if (entry(q, q->n - left - 1)->issued == w->vector_seq)
		w->run->c.waits_stalled++;
	while (q->n > left && !w->run->trapped)
		retire(w, kind);
}

/* gfx10 and gfx11 count LDS and SMEM together; with SMEM outstanding only 0 says anything. */
void sim_wait_lgkm(struct sim_wave *w, unsigned left)
{
	if (w->q[COUNT_SMEM].n == 0) {
		sim_wait(w, COUNT_LDS, left);
		return;
	}
	if (left)
		return;
	sim_wait(w, COUNT_LDS, 0);
	sim_wait(w, COUNT_SMEM, 0);
}

void sim_retire_random(struct sim_wave *w)
{
	uint64_t r = sim_random(w->run);
	if (r & 3)
		return;
	unsigned kind = (unsigned)(r >> 8) % COUNT_KINDS;
	struct sim_queue *q = &w->q[kind];
	for (unsigned i = 0; i < q->n; i++) {
		struct sim_access *a = entry(q, i);
		if (a->retired)
			continue;
		complete(w, kind, a);
		return;
	}
}

void sim_retire_all(struct sim_wave *w)
{
	for (unsigned k = 0; k < COUNT_KINDS; k++)
		while (w->q[k].n && !w->run->trapped)
			retire(w, k);
}

void sim_queue_free(struct sim_wave *w)
{
	for (unsigned k = 0; k < COUNT_KINDS; k++) {
		free(w->q[k].item);
		w->q[k] = (struct sim_queue){ .item = NULL };
	}
}
