/* jit/registry.c - the table of kernels: lookups without a lock, single flight for the rest.
 *
 * Owns: the entries, for the registry's whole life. An entry is never removed or moved, only its state changes
 * (IDLE -> BUILDING -> READY, or back to IDLE when the attempt failed), so that a reader may probe the table while others add
 * to it. The kernel in an entry is written by the one thread that set BUILDING and read by others after READY only.
 */
#include "jit/registry.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jit/execmem.h"
#include "jit/observe.h"

enum entry_state { ENTRY_IDLE, ENTRY_BUILDING, ENTRY_READY };

struct entry {
	struct kernel kernel;             /* .key is set before the entry is in a table */
	_Atomic int state;                /* enum entry_state; changed with the lock held */
	uint64_t attempts;                /* finished ones; with the lock */
	struct error failure;             /* of the last failed attempt; with the lock */
	pthread_cond_t done;
};

struct table {
	struct table *older;              /* readers may still be probing it: kept to the end */
	size_t mask;
	_Atomic(struct entry *) slot[];
};

struct registry {
	struct registry_options opt;
	struct target_cpu cpu;
	struct execmem *pages;
	pthread_mutex_t lock;             /* adding to the table, entry states, attempts, failures */
	pthread_mutex_t dump_lock;        /* one kernel's dump at a time */
	pthread_mutex_t kept_lock;        /* the three below */
	struct key *kept; size_t n_kept, kept_capacity; bool kept_listed;      /* sealed: what the cache has, listed for the first refusal */
	_Atomic(struct table *) table;
	size_t entries;
	_Atomic uint64_t count[KERNEL_SOURCE_COUNT], generated_ns, from_disk_ns, code_bytes;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- the table */

static struct table *table_new(size_t slots, struct table *older)
{
	struct table *t = calloc(1, sizeof *t + slots * sizeof t->slot[0]);

	if (t) {
		t->older = older;
		t->mask = slots - 1;
	}
	return t;
}

static struct entry *table_find(struct table *t, const struct key *key, uint64_t hash)
{
	for (size_t i = hash & t->mask;; i = (i + 1) & t->mask) {
		struct entry *e = atomic_load_explicit(&t->slot[i], memory_order_acquire);
		if (!e || key_equal(&e->kernel.key, key))
			return e;
	}
}

static void table_put(struct table *t, struct entry *e)
{
	size_t i = key_hash(&e->kernel.key) & t->mask;

	while (atomic_load_explicit(&t->slot[i], memory_order_relaxed))
		i = (i + 1) & t->mask;
	atomic_store_explicit(&t->slot[i], e, memory_order_release);
}

/* With the lock: the entry of key, made when there is none. NULL: no memory. */
static struct entry *entry_claim(struct registry *r, const struct key *key, uint64_t hash)
{
	struct table *t = r->table;
	struct entry *e = table_find(t, key, hash);

	if (e)
		return e;
	if ((r->entries + 1) * 2 > t->mask + 1) {
		struct table *wider = table_new((t->mask + 1) * 2, t);
		if (!wider)
			return NULL;
		for (size_t i = 0; i <= t->mask; i++)
			if ((e = t->slot[i]))
				table_put(wider, e);
		atomic_store_explicit(&r->table, wider, memory_order_release);
		t = wider;
	}
	if (!(e = calloc(1, sizeof *e)))
		return NULL;
	e->kernel.key = *key;
	pthread_cond_init(&e->done, NULL);
	table_put(t, e);
	r->entries++;
	return e;
}

/* --- opening and closing */

struct registry *registry_open(const struct registry_options *opt, struct error *err)
{
	struct registry *r = calloc(1, sizeof *r);
	struct table *t = table_new(64, NULL);
	struct execmem *pages = execmem_open(NULL);

	if (!r || !t || !pages) {
		free(r);
		free(t);
		execmem_close(pages);
		error_set(err, ERROR_MEMORY, "no memory for the kernel registry");
		return NULL;
	}
	r->pages = pages;
	r->opt = *opt;
	r->cpu = target_this_cpu();
	r->table = t;
	pthread_mutex_init(&r->lock, NULL);
	pthread_mutex_init(&r->dump_lock, NULL);
	pthread_mutex_init(&r->kept_lock, NULL);
	return r;
}

void registry_close(struct registry *r)
{
	if (!r)
		return;
	struct table *t = r->table;
	for (size_t i = 0; i <= t->mask; i++) {
		struct entry *e = t->slot[i];
		if (!e)
			continue;
		assert(e->state != ENTRY_BUILDING);
		if (e->state == ENTRY_READY)
			object_free(&e->kernel.object);
		pthread_cond_destroy(&e->done);
		free(e);
	}
	for (struct table *older; t; t = older) {
		older = t->older;
		free(t);
	}
	execmem_close(r->pages);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->dump_lock);
	pthread_mutex_destroy(&r->kept_lock);
	free(r->kept);
	free(r);
}

/* --- building */

static bool generate(struct registry *r, struct kernel *k, struct error *err)
{
	const struct compile_options opt = { .dump_ir = r->opt.dump_ir, .dump_asm = r->opt.dump_asm };
	bool dumps = opt.dump_ir || opt.dump_asm;

	if (dumps)
		pthread_mutex_lock(&r->dump_lock);
	bool good = compile_key(&k->object, &k->key, r->opt.build, &opt, NULL, err);
	if (dumps)
		pthread_mutex_unlock(&r->dump_lock);
	assert(!good || (k->object.code && k->object.code_bytes));
	return good;
}

const char *kernel_source_name(enum kernel_source source)
{
	static const char *const name[KERNEL_SOURCE_COUNT] = { "generated", "memory", "disk", "pack" };

	return name[source];
}

static bool load(struct registry *r, struct kernel *k)
{
	struct cache_source s;
	unsigned from;

	if (((r->opt.dump_ir || r->opt.dump_asm) && !r->opt.sealed) || !r->opt.cache || !cache_load(r->opt.cache, &k->key, &k->object, &from))
		return false;
	cache_source_get(r->opt.cache, from, &s);
	k->source = s.kind == CACHE_PACK ? KERNEL_FROM_PACK : KERNEL_FROM_DISK;
	return true;
}

/* --- sealed: what is kept is all there is */

static bool keep_key(const struct cache_item *item, void *user)
{
	struct registry *r = user;

	if (!item->readable)
		return true;
	if (r->n_kept == r->kept_capacity) {
		size_t want = r->kept_capacity ? 2 * r->kept_capacity : 512;
		struct key *more = realloc(r->kept, want * sizeof *more);
		if (!more)
			return false;
		r->kept = more;
		r->kept_capacity = want;
	}
	r->kept[r->n_kept++] = item->key;
	return true;
}

static bool refuse(struct registry *r, const struct key *key, struct error *err)
{
	char text[KEY_TEXT_MAX], near[KEY_TEXT_MAX], differences[KEY_DIFFERENCES_MAX];
	struct error ignored = { 0 };

	pthread_mutex_lock(&r->kept_lock);
	if (!r->kept_listed && r->opt.cache)
		cache_each(r->opt.cache, keep_key, r, &ignored);
	r->kept_listed = true;
	pthread_mutex_unlock(&r->kept_lock);
	const struct key *nearest = key_nearest(key, r->kept, r->n_kept);
	key_text(key, text, sizeof text);
	if (!nearest)
		return error_set(err, ERROR_UNSUPPORTED, "kernel %s is not kept and none is generated; no kernel at all is kept", text);
	if (key_equal(nearest, key))
		return error_set(err, ERROR_UNSUPPORTED, "kernel %s is kept but damaged, and none is generated", text);
	return error_set(err, ERROR_UNSUPPORTED, "kernel %s is not kept and none is generated; in the nearest kept, %s, %s", text,
	                 key_text(nearest, near, sizeof near), key_differences(key, nearest, differences, sizeof differences));
}

/* Fills the kernel of an entry this thread set BUILDING. Runs without the lock. */
static bool build_kernel(struct registry *r, struct kernel *k, struct error *err)
{
	uint64_t start = now_ns();
	char name[KEY_TEXT_MAX];

	k->object = (struct object){ 0 };
	k->run = NULL;
	if (!load(r, k)) {
		k->source = KERNEL_GENERATED;
		if (r->opt.sealed ? !refuse(r, &k->key, err) : !generate(r, k, err))
			return false;
	}
	if (target_runs(&r->cpu, &target_table[k->key.target], NULL)) {
		void *code = execmem_put(r->pages, k->object.code, k->object.code_bytes, err);
		if (!code) {
			object_free(&k->object);
			return false;
		}
		k->run = (kernel_fn)(uintptr_t)code;
		if (r->opt.perf_map)
			execmem_perf_map(code, k->object.code_bytes, key_text(&k->key, name, sizeof name));
		if (r->opt.observe)
			observe_code(r->opt.observe, code, k->object.code_bytes, key_text(&k->key, name, sizeof name));
	}
	k->nanoseconds = now_ns() - start;
	r->count[k->source]++;
	*(k->source == KERNEL_GENERATED ? &r->generated_ns : &r->from_disk_ns) += k->nanoseconds;
	r->code_bytes += k->object.code_bytes;
	return true;
}

/* Builds outside the lock, which is held on entry and on return. */
static bool build_entry(struct registry *r, struct entry *e, struct error *err)
{
	struct error failure = { 0 };

	atomic_store_explicit(&e->state, ENTRY_BUILDING, memory_order_relaxed);
	pthread_mutex_unlock(&r->lock);
	bool good = build_kernel(r, &e->kernel, &failure);
	pthread_mutex_lock(&r->lock);
	e->attempts++;
	if (!good) {
		if (failure.code == ERROR_NONE)
			error_set(&failure, ERROR_UNSUPPORTED, "the kernel cannot be generated, and no reason was given");
		e->failure = failure;
		error_set(err, failure.code, "%s", failure.text);
	}
	atomic_store_explicit(&e->state, good ? ENTRY_READY : ENTRY_IDLE, memory_order_release);
	pthread_cond_broadcast(&e->done);
	return good;
}

/* Waits for the attempt in flight. False: it failed, and err says why. */
static bool wait_entry(struct registry *r, struct entry *e, struct error *err)
{
	uint64_t before = e->attempts;

	while (e->attempts == before)
		pthread_cond_wait(&e->done, &r->lock);
	if (e->state == ENTRY_READY)
		return true;
	return error_set(err, e->failure.code, "%s", e->failure.text);
}

static bool key_is_usable(const struct key *key, struct error *err)
{
	char name[KEY_TEXT_MAX];

	if (key->codegen != key_codegen(key->target))
		return error_set(err, ERROR_ARGUMENT, "the key %s carries code-generator id %016llx, expected %016llx", key_text(key, name, sizeof name),
		                 (unsigned long long)key->codegen, (unsigned long long)key_codegen(key->target));
	if (key->kind == KEY_NONE || key->kind >= KEY_KIND_COUNT || key->target == TARGET_NONE || key->target >= TARGET_COUNT)
		return error_set(err, ERROR_ARGUMENT, "the key %s names kind %u and target %u, expected a known one of each",
		                 key_text(key, name, sizeof name), (unsigned)key->kind, (unsigned)key->target);
	return true;
}

const struct kernel *registry_get(struct registry *r, const struct key *key, enum kernel_source *from, struct error *err)
{
	uint64_t hash = key_hash(key);
	enum kernel_source source = KERNEL_FROM_MEMORY;
	struct entry *e = table_find(atomic_load_explicit(&r->table, memory_order_acquire), key, hash);
	bool good = e && atomic_load_explicit(&e->state, memory_order_acquire) == ENTRY_READY, built = false;

	if (!good) {
		if (!key_is_usable(key, err))
			return NULL;
		pthread_mutex_lock(&r->lock);
		if (!(e = entry_claim(r, key, hash)))
			error_set(err, ERROR_MEMORY, "no memory for another kernel");
		else if (e->state == ENTRY_READY)
			good = true;
		else if (e->state == ENTRY_BUILDING)
			good = wait_entry(r, e, err);
		else
			good = built = build_entry(r, e, err);
		pthread_mutex_unlock(&r->lock);
	}
	if (!good)
		return NULL;
	if (built) {
		source = e->kernel.source;
		/* after the waiters went on: a slow disk delays nobody else */
		if (source == KERNEL_GENERATED && r->opt.cache)
			cache_store(r->opt.cache, key, &e->kernel.object);
	} else {
		atomic_fetch_add_explicit(&r->count[KERNEL_FROM_MEMORY], 1, memory_order_relaxed);
	}
	if (from)
		*from = source;
	return &e->kernel;
}

bool registry_ready(struct registry *r, const struct key *key)
{
	struct entry *e = table_find(atomic_load_explicit(&r->table, memory_order_acquire), key, key_hash(key));

	return e && atomic_load_explicit(&e->state, memory_order_acquire) == ENTRY_READY;
}

/* --- looking at it */

void registry_count(struct registry *r, struct registry_counters *out)
{
	*out = (struct registry_counters){
		.generated = r->count[KERNEL_GENERATED], .from_disk = r->count[KERNEL_FROM_DISK], .from_pack = r->count[KERNEL_FROM_PACK],
		.from_memory = r->count[KERNEL_FROM_MEMORY],
		.generated_ns = r->generated_ns, .from_disk_ns = r->from_disk_ns, .code_bytes = r->code_bytes,
	};
}

struct listed { const struct kernel *kernel; char text[KEY_TEXT_MAX]; };

static int listed_order(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->text, ((const struct listed *)b)->text);
}

void registry_each(struct registry *r, void (*visit)(const struct kernel *, void *), void *user)
{
	pthread_mutex_lock(&r->lock);
	struct table *t = r->table;
	struct listed *list = malloc((r->entries + 1) * sizeof *list);
	size_t n = 0;
	for (size_t i = 0; list && i <= t->mask; i++) {
		struct entry *e = t->slot[i];
		if (!e || e->state != ENTRY_READY)
			continue;
		list[n].kernel = &e->kernel;
		key_text(&e->kernel.key, list[n++].text, sizeof list->text);
	}
	pthread_mutex_unlock(&r->lock);
	if (!list)
		return;
	qsort(list, n, sizeof *list, listed_order);
	for (size_t i = 0; i < n; i++)
		visit(list[i].kernel, user);
	free(list);
}
