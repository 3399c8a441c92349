/* sim/race.c - unordered accesses of different workgroups to the same word, and loads that find stale caches.
 *
 * Owns: vector clocks. Every workgroup has one. An atomic joins it with the clock kept at the atomic's address, and
 * leaves it there. Loads from L2 and stores do the same at an address that atomics use. A word remembers its last
 * writer and the writer's time. A write or read of a word whose last write, by another workgroup, is not yet in the
 * accessor's clock traps. A load from a cache must also come after an invalidation of it (caches.c), later than the
 * moment its workgroup learnt of the write; so must one of an address that atomics use. Atomics of different workgroups
 * must meet in L2. Workgroups are the unit: waves of one workgroup are not compared.
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
	uint32_t alone; /* the workgroup, plus one, whose atomics did not reach L2 */
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
	x->syncs[h] = (struct sync){ key, clock, 0 };
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

/* The atomics of one workgroup stay in its compute unit, and another one has come. */
static bool apart(struct sim_wave *w, const struct sync *s, uint64_t addr)
{
	if (!s->alone || s->alone == w->group->linear + 1)
		return false;
	sim_trap(w, "an access to 0x%llx, where an atomic of workgroup %u had a scope that leaves others out",
	         (unsigned long long)addr, s->alone - 1);
	return true;
}

void sim_race_atomic(struct sim_wave *w, uint64_t addr, unsigned reach)
{
	struct sim_race *x = w->run->race;
	struct sync *s = find_sync(x, addr >> 2, true);
	if (!s) {
		sim_trap(w, "no memory to watch races");
		return;
	}
	if (apart(w, s, addr))
		return;
	if (w->run->dev->gen == 2 && reach != REACH_L2) {
		for (uint64_t i = 0; i < x->groups; i++)
			if (s->clock[i] && i != w->group->linear) {
				sim_trap(w, "an atomic's scope leaves out workgroup %llu, which has used 0x%llx too",
				         (unsigned long long)i, (unsigned long long)addr);
				return;
			}
		s->alone = w->group->linear + 1;
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

static const char *const reach_names[] = { "plain", "GL1", "L2", "scalar" };

/* What the cache that a load looks at first knows of; NULL: it looks into L2. */
static const uint32_t *freshness(const struct sim_group *g, unsigned reach)
{
	return reach == REACH_L0 ? g->l0 : reach == REACH_GL1 ? g->gl1 : reach == REACH_SCALAR ? g->scalar : NULL;
}

/* A load of a word that atomics use. In L2 it sees the last of them. */
static bool read_sync(struct sim_wave *w, const struct sync *s, uint64_t addr, unsigned reach)
{
	struct sim_race *x = w->run->race;
	struct sim_group *g = w->group;
	const uint32_t *fresh = freshness(g, reach);
	if (apart(w, s, addr))
		return false;
	for (uint64_t i = 0; fresh && i < x->groups; i++)
		if (i != g->linear && s->clock[i] > fresh[i]) {
			sim_trap(w,
			         "a %s load of 0x%llx, which an atomic of workgroup %llu may have changed since this "
			         "workgroup last invalidated the cache: it may see the old value for ever",
			         reach_names[reach], (unsigned long long)addr, (unsigned long long)i);
			return false;
		}
	if (!fresh)
		join(g->clock, s->clock, x->groups);
	return true;
}

static bool read_word(struct sim_wave *w, const struct word *d, uint64_t addr, unsigned reach)
{
	const struct sim_group *g = w->group;
	const uint32_t *fresh = freshness(g, reach);
	if (!d || !d->time || (d->writer == g->linear && reach != REACH_SCALAR))
		return true;
	if (d->writer != g->linear && d->time > g->clock[d->writer]) {
		report(w, "a read", addr, d);
		return false;
	}
	if (!fresh || d->time <= fresh[d->writer])
		return true;
	sim_trap(w, "a %s load of 0x%llx, which workgroup %u wrote after this workgroup last invalidated the cache",
	         reach_names[reach], (unsigned long long)addr, d->writer);
	return false;
}

void sim_race_read(struct sim_wave *w, uint64_t addr, uint64_t size, unsigned reach)
{
	struct sim_race *x = w->run->race;
	for (uint64_t a = addr & ~3ull; a < addr + size; a += 4) {
		const struct sync *s = find_sync(x, a >> 2, false);
		if (s ? !read_sync(w, s, a, reach) : !read_word(w, find_word(x, a >> 2, false), a, reach))
			return;
	}
}
