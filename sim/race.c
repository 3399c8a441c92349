/* sim/race.c - unordered accesses of different workgroups to the same word, and stale caches.
 *
 * Owns: vector clocks. Every workgroup has one; an atomic joins it with the clock kept at the atomic's address and
 * leaves it there, and so do plain loads and stores of an address that atomics use. A word remembers its last writer
 * and the writer's time. A write or read of a word whose last write, by another workgroup, is not yet in the accessor's
 * clock traps. A plain load must also come after an invalidation of the cache it goes through, later than the moment
 * its workgroup learnt of the write. Workgroups are the unit: waves of one workgroup are not compared.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/wave.h"

struct word {
	uint64_t key;
	uint32_t writer, time;
};
struct sync {
	uint64_t key;
	uint32_t *clock;
};
struct sim_race {
	struct word *words;
	size_t n_words, cap_words;
	struct sync *syncs;
	size_t n_syncs, cap_syncs;
	uint64_t groups;
};

static size_t hash(uint64_t key, size_t cap) { return (size_t)(key * 0x9e3779b97f4a7c15ull >> 20) & (cap - 1); }

bool sim_race_open(struct sim_run *r)
{
	struct sim_race *x = calloc(1, sizeof *x);
	if (!x)
		return false;
	x->cap_words = 1 << 16;
	x->cap_syncs = 1 << 8;
	x->words = calloc(x->cap_words, sizeof *x->words);
	x->syncs = calloc(x->cap_syncs, sizeof *x->syncs);
	x->groups = r->n_groups;
	r->race = x;
	return x->words && x->syncs;
}

void sim_race_close(struct sim_run *r)
{
	struct sim_race *x = r->race;
	if (!x)
		return;
	for (size_t i = 0; x->syncs && i < x->cap_syncs; i++)
		free(x->syncs[i].clock);
	free(x->words);
	free(x->syncs);
	free(x);
	r->race = NULL;
}

bool sim_race_group(struct sim_run *r, struct sim_group *g)
{
	size_t n = (size_t)r->n_groups;
	uint32_t *c = realloc(g->clock, 3 * n * sizeof *c);
	if (!c)
		return false;
	memset(c, 0, 3 * n * sizeof *c);
	g->clock = c;
	g->fresh = c + n;
	g->scalar_fresh = c + 2 * n;
	g->clock[g->linear] = 1;
	return true;
}

static bool grow_words(struct sim_race *x)
{
	size_t cap = 2 * x->cap_words;
	struct word *t = calloc(cap, sizeof *t);
	if (!t)
		return false;
	for (size_t i = 0; i < x->cap_words; i++) {
		if (!x->words[i].key)
			continue;
		size_t h = hash(x->words[i].key, cap);
		while (t[h].key)
			h = (h + 1) & (cap - 1);
		t[h] = x->words[i];
	}
	free(x->words);
	x->words = t;
	x->cap_words = cap;
	return true;
}

static struct word *find_word(struct sim_race *x, uint64_t key, bool make)
{
	if (make && 2 * x->n_words >= x->cap_words && !grow_words(x))
		return NULL;
	size_t h = hash(key, x->cap_words);
	while (x->words[h].key && x->words[h].key != key)
		h = (h + 1) & (x->cap_words - 1);
	if (x->words[h].key)
		return &x->words[h];
	if (!make)
		return NULL;
	x->words[h].key = key;
	x->n_words++;
	return &x->words[h];
}

static struct sync *find_sync(struct sim_race *x, uint64_t key, bool make)
{
	size_t h = hash(key, x->cap_syncs);
	while (x->syncs[h].key && x->syncs[h].key != key)
		h = (h + 1) & (x->cap_syncs - 1);
	if (x->syncs[h].key)
		return &x->syncs[h];
	if (!make)
		return NULL;
	if (2 * x->n_syncs >= x->cap_syncs) {
		size_t cap = 2 * x->cap_syncs;
		struct sync *t = calloc(cap, sizeof *t);
		if (!t)
			return NULL;
		for (size_t i = 0; i < x->cap_syncs; i++) {
			if (!x->syncs[i].key)
				continue;
			size_t k = hash(x->syncs[i].key, cap);
			while (t[k].key)
				k = (k + 1) & (cap - 1);
			t[k] = x->syncs[i];
		}
		free(x->syncs);
		x->syncs = t;
		x->cap_syncs = cap;
		return find_sync(x, key, true);
	}
	uint32_t *clock = calloc(x->groups, sizeof *clock);
	if (!clock)
		return NULL;
	x->syncs[h] = (struct sync){ key, clock };
	x->n_syncs++;
	return &x->syncs[h];
}

static void join(uint32_t *a, const uint32_t *b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (b[i] > a[i])
			a[i] = b[i];
}

static void release(struct sim_race *x, struct sim_group *g, struct sync *s)
{
	join(s->clock, g->clock, x->groups);
	g->clock[g->linear]++;
}

void sim_race_atomic(struct sim_wave *w, uint64_t addr)
{
	struct sim_race *x = w->run->race;
	struct sync *s = find_sync(x, addr >> 2, true);
	if (!s) {
		sim_trap(w, "no memory to watch races");
		return;
	}
	join(w->group->clock, s->clock, x->groups);
	release(x, w->group, s);
}

static void report(struct sim_wave *w, const char *what, uint64_t addr, const struct word *d)
{
	sim_trap(w, "%s of 0x%llx, which workgroup %u wrote and nothing ordered before", what, (unsigned long long)addr,
	         d->writer);
}

void sim_race_write(struct sim_wave *w, uint64_t addr, uint64_t size)
{
	struct sim_race *x = w->run->race;
	struct sim_group *g = w->group;
	for (uint64_t a = addr & ~3ull; a < addr + size; a += 4) {
		struct sync *s = find_sync(x, a >> 2, false);
		if (s) {
			release(x, g, s);
			continue;
		}
		struct word *d = find_word(x, a >> 2, true);
		if (!d) {
			sim_trap(w, "no memory to watch races");
			return;
		}
		if (d->time && d->writer != g->linear && d->time > g->clock[d->writer] && size >= 4) {
			report(w, "a write", a, d);
			return;
		}
		d->writer = g->linear;
		d->time = g->clock[g->linear];
	}
}

void sim_race_read(struct sim_wave *w, uint64_t addr, uint64_t size, int how)
{
	struct sim_race *x = w->run->race;
	struct sim_group *g = w->group;
	for (uint64_t a = addr & ~3ull; a < addr + size; a += 4) {
		struct sync *s = find_sync(x, a >> 2, false);
		if (s) {
			join(g->clock, s->clock, x->groups);
			continue;
		}
		const struct word *d = find_word(x, a >> 2, false);
		if (!d || !d->time || (d->writer == g->linear && how != RACE_SCALAR))
			continue;
		if (d->writer != g->linear && d->time > g->clock[d->writer]) {
			report(w, "a read", a, d);
			return;
		}
		const uint32_t *fresh = how == RACE_SCALAR ? g->scalar_fresh : g->fresh;
		if (how != RACE_COHERENT && d->time > fresh[d->writer]) {
			sim_trap(w,
			         "a %s load of 0x%llx, which workgroup %u wrote after this workgroup last invalidated "
			         "the cache",
			         how == RACE_SCALAR ? "scalar" : "plain", (unsigned long long)a, d->writer);
			return;
		}
	}
}

void sim_race_invalidate(struct sim_wave *w, bool vector, bool scalar)
{
	size_t n = (size_t)w->run->race->groups * sizeof(uint32_t);
	if (vector)
		memcpy(w->group->fresh, w->group->clock, n);
	if (scalar)
		memcpy(w->group->scalar_fresh, w->group->clock, n);
}
