/* jit/store/registry.c - the table of kernels: lookups without a lock, single flight for the rest.
 *
 * Owns: the entries, for the registry's whole life. An entry is never removed or moved, so that a reader may probe the
 * table while others add to it. Only its state changes: IDLE -> BUILDING -> READY, or back to IDLE when the attempt
 * failed or nothing was found. The kernel in an entry is written by the one thread that set BUILDING and read by others
 * after READY only.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/store/driver_code.h"
#include "jit/store/perf_gdb.h"
#include "jit/store/registry_state.h"

uint64_t registry_now_ns(void)
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

struct entry *registry_entry_claim(struct registry *r, const struct key *key, uint64_t hash)
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
	e->known = RECORD_FAILED;
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

static bool is_users(const struct registry *r, const struct key *key) { return key->kind == KEY_USER && r->opt.users; }

bool registry_build(const struct registry *r, struct ir *ir, const struct key *key, const struct target *target,
                    struct error *err)
{
	return is_users(r, key) ? r->opt.users->build(r->opt.users->user, ir, key, target, err)
	                        : r->opt.build(ir, key, target, err);
}

static bool generate(struct registry *r, struct kernel *k, struct error *err)
{
	const struct compile_options opt = { .dump_ir = r->opt.dump_ir, .dump_asm = r->opt.dump_asm };
	bool dumps = opt.dump_ir || opt.dump_asm;

	if (dumps)
		pthread_mutex_lock(&r->dump_lock);
	bool good = is_users(r, &k->key) ? compile_user_key(&k->object, &k->key, r->opt.users, &opt, NULL, err)
	                                 : compile_key(&k->object, &k->key, r->opt.build, &opt, NULL, err);
	if (dumps)
		pthread_mutex_unlock(&r->dump_lock);
	assert(!good || (k->object.code && k->object.code_bytes));
	if (good && is_users(r, &k->key) && r->opt.users->name)
		r->opt.users->name(r->opt.users->user, &k->key, k->object.name);
	return good;
}

const char *kernel_source_name(enum kernel_source source)
{
	static const char *const name[KERNEL_SOURCE_COUNT] = { "generated", "memory", "disk", "pack" };

	return name[source];
}

bool registry_is_sealed(const struct registry *r) { return r->opt.sealed; }

bool registry_can_load(const struct registry *r) { return r->opt.cache && (r->opt.sealed || !registry_in_order(r)); }

enum kernel_source registry_source_of(const struct registry *r, unsigned number)
{
	struct cache_source s;

	cache_source_get(r->opt.cache, number, &s);
	return s.kind == CACHE_PACK ? KERNEL_FROM_PACK : KERNEL_FROM_DISK;
}

static enum record_answer load(struct registry *r, struct kernel *k, struct error *err)
{
	unsigned from;
	enum record_answer answer =
		registry_can_load(r) ? cache_load(r->opt.cache, &k->key, &k->object, &from, err) : RECORD_ABSENT;

	if (answer == RECORD_FOUND)
		k->source = registry_source_of(r, from);
	return answer;
}

/* --- sealed: what is kept is all there is */

/* False: it is not known what is kept, and why says why not. */
static bool list_kept(struct registry *r, struct error *why)
{
	pthread_mutex_lock(&r->kept_lock);
	if (!r->kept_listed && r->opt.cache) {
		free(r->kept);
		r->kept = NULL;
		r->kept_listed = cache_keys(r->opt.cache, &r->kept, &r->n_kept, why);
		r->n_kept = driver_code_drop(r->kept, r->n_kept);
	}
	bool listed = r->kept_listed || !r->opt.cache;
	pthread_mutex_unlock(&r->kept_lock);
	return listed;
}

/* answer: what the cache said of it. Never loads. */
static bool refuse(struct registry *r, const struct key *key, enum record_answer answer, struct error *err)
{
	char text[KEY_TEXT_MAX], near[KEY_TEXT_MAX], differences[KEY_DIFFERENCES_MAX];
	struct error why = { 0 };

	key_text(key, text, sizeof text);
	if (answer == RECORD_DAMAGED)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "kernel %s is in the cache but damaged or not to be trusted, and --sealed forbids "
		                 "generating it",
		                 text);
	if (!list_kept(r, &why))
		return error_set(err, why.code,
		                 "kernel %s is not in the cache, and --sealed forbids generating it; the cache cannot "
		                 "be listed: %s",
		                 text, why.text);
	const struct key *nearest = key_nearest(key, r->kept, r->n_kept);
	if (nearest && key->kind == KEY_USER && !key_same_user(key, nearest)) /* the digits of others say nothing */
		return error_set(err, ERROR_UNSUPPORTED,
		                 "kernel %s is not in the cache, and --sealed forbids generating it; the cache has it "
		                 "for no target",
		                 text);
	if (!nearest)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "kernel %s is not in the cache, and --sealed forbids generating it; the cache has no "
		                 "kernels at all",
		                 text);
	if (key_equal(nearest, key))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "kernel %s was not in the cache when it could be loaded, and --sealed forbids "
		                 "generating it; it is there now",
		                 text);
	return error_set(
		err, ERROR_UNSUPPORTED,
		"kernel %s is not in the cache, and --sealed forbids generating it; in the nearest one there, %s, %s",
		text, key_text(nearest, near, sizeof near),
		key_differences(key, nearest, differences, sizeof differences));
}

void registry_freeze(struct registry *r)
{
	assert(r->opt.sealed);
	pthread_mutex_lock(&r->lock);
	r->frozen = true;
	struct table *t = r->table;
	for (size_t i = 0; i <= t->mask; i++) /* nothing is added any more: the table stays */
		for (struct entry *e = t->slot[i]; e && e->state == ENTRY_BUILDING;)
			pthread_cond_wait(&e->done, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

/* --- making */

void registry_set_code(struct registry *r, struct kernel *k, void *code)
{
	char key[KEY_TEXT_MAX], name[KEY_TEXT_MAX + OBJECT_NAME + 1];

	k->run = (kernel_fn)(uintptr_t)code;
	if (!code || (!r->opt.perf_map && !r->opt.perf_gdb))
		return;
	snprintf(name, sizeof name, "%s%s%s", k->object.name, k->object.name[0] ? "." : "",
	         key_text(&k->key, key, sizeof key));
	if (r->opt.perf_map)
		execmem_perf_map(code, k->object.code_bytes, name);
	if (r->opt.perf_gdb)
		perf_gdb_code(r->opt.perf_gdb, code, k->object.code_bytes, name);
}

bool registry_runs_here(const struct registry *r, const struct kernel *k)
{
	return target_runs(&r->cpu, &target_table[k->key.target], NULL);
}

void registry_count_kernel(struct registry *r, struct kernel *k, uint64_t nanoseconds)
{
	k->nanoseconds = nanoseconds;
	r->count[k->source]++;
	*(k->source == KERNEL_GENERATED ? &r->generated_ns : &r->from_disk_ns) += nanoseconds;
	r->code_bytes += k->object.code_bytes;
}

/* Fills the kernel of an entry this thread set BUILDING. Runs without the lock. */
static bool build_kernel(struct registry *r, struct entry *e, struct error *err)
{
	struct kernel *k = &e->kernel;
	uint64_t start = registry_now_ns();
	void *code = NULL;

	k->object = (struct object){ 0 };
	enum record_answer answer = e->known != RECORD_FAILED ? e->known : load(r, k, r->opt.sealed ? err : NULL);
	if (answer != RECORD_FOUND) {
		k->source = KERNEL_GENERATED;
		if (r->opt.sealed ? answer == RECORD_FAILED || !refuse(r, &k->key, answer, err) : !generate(r, k, err))
			return false;
	}
	if (registry_runs_here(r, k) && !(code = execmem_put(r->pages, k->object.code, k->object.code_bytes, err))) {
		object_free(&k->object);
		return false;
	}
	registry_set_code(r, k, code);
	registry_count_kernel(r, k, registry_now_ns() - start);
	return true;
}

/* Builds outside the lock, which is held on entry and on return. */
static bool build_entry(struct registry *r, struct entry *e, struct error *err)
{
	struct error failure = { 0 };

	atomic_store_explicit(&e->state, ENTRY_BUILDING, memory_order_relaxed);
	pthread_mutex_unlock(&r->lock);
	bool good = build_kernel(r, e, &failure);
	pthread_mutex_lock(&r->lock);
	e->known = RECORD_FAILED; /* by the next attempt somebody may have stored it */
	e->attempts++;
	if (!good) {
		if (failure.code == ERROR_NONE)
			error_set(&failure, ERROR_UNSUPPORTED,
			          "the kernel cannot be generated, and no reason was given");
		e->failure = failure;
		error_set(err, failure.code, "%s", failure.text);
	}
	atomic_store_explicit(&e->state, good ? ENTRY_READY : ENTRY_IDLE, memory_order_release);
	pthread_cond_broadcast(&e->done);
	return good;
}

/* What comes of an entry that is not READY: waits for an attempt in flight, else makes one. *built: by this thread.
 * False: that failed, and err says why. Frozen: the last attempt was the last; without one, err stays as it is. */
static bool finish_entry(struct registry *r, struct entry *e, bool *built, struct error *err)
{
	uint64_t before = e->attempts;

	while (e->state == ENTRY_BUILDING && e->attempts == before)
		pthread_cond_wait(&e->done, &r->lock);
	if (e->state == ENTRY_READY)
		return true;
	if (e->attempts != before || (r->frozen && before))
		return error_set(err, e->failure.code, "%s", e->failure.text);
	return r->frozen ? false : (*built = build_entry(r, e, err));
}

bool registry_key_is_usable(const struct key *key, struct error *err)
{
	char name[KEY_TEXT_MAX];

	if (key->codegen != key_codegen(key->target))
		return error_set(err, ERROR_ARGUMENT, "the key %s carries code-generator id %016llx, expected %016llx",
		                 key_text(key, name, sizeof name), (unsigned long long)key->codegen,
		                 (unsigned long long)key_codegen(key->target));
	if (key->kind == KEY_NONE || key->kind >= KEY_KIND_COUNT || key->target == TARGET_NONE ||
	    key->target >= TARGET_COUNT)
		return error_set(err, ERROR_ARGUMENT,
		                 "the key %s names kind %u and target %u, expected a known one of each",
		                 key_text(key, name, sizeof name), (unsigned)key->kind, (unsigned)key->target);
	return true;
}

/* The entry of key when it is READY now, or came to be by this. NULL: err. */
static struct entry *finished_entry(struct registry *r, const struct key *key, uint64_t hash, bool *built,
                                    struct error *err)
{
	struct error why = { 0 };
	bool good = false;

	pthread_mutex_lock(&r->lock);
	bool frozen = r->frozen;
	struct entry *e = frozen ? table_find(r->table, key, hash) : registry_entry_claim(r, key, hash);
	if (e)
		good = finish_entry(r, e, built, &why);
	else if (!frozen)
		error_set(&why, ERROR_MEMORY, "no memory for another kernel");
	pthread_mutex_unlock(&r->lock);
	if (!good && why.code != ERROR_NONE)
		error_set(err, why.code, "%s", why.text);
	else if (!good)
		refuse(r, key, RECORD_ABSENT, err);
	return good ? e : NULL;
}

const struct kernel *registry_get(struct registry *r, const struct key *key, enum kernel_source *from,
                                  struct error *err)
{
	uint64_t hash = key_hash(key);
	enum kernel_source source = KERNEL_FROM_MEMORY;
	struct entry *e = table_find(atomic_load_explicit(&r->table, memory_order_acquire), key, hash);
	bool good = e && atomic_load_explicit(&e->state, memory_order_acquire) == ENTRY_READY, built = false;

	if (!good) {
		if (!registry_key_is_usable(key, err))
			return NULL;
		if (!(e = finished_entry(r, key, hash, &built, err)))
			return NULL;
	}
	if (built) {
		source = e->kernel.source;
		/* after the waiters went on: a slow disk delays nobody else */
		if (source == KERNEL_GENERATED && r->opt.cache)
			cache_store(r->opt.cache, key, &e->kernel.object, NULL);
	} else {
		atomic_fetch_add_explicit(&r->count[KERNEL_FROM_MEMORY], 1, memory_order_relaxed);
	}
	if (from)
		*from = source;
	return &e->kernel;
}

struct cache *registry_cache(const struct registry *r) { return r->opt.cache; }

bool registry_in_order(const struct registry *r) { return r->opt.dump_ir || r->opt.dump_asm; }

bool registry_ready(struct registry *r, const struct key *key)
{
	struct entry *e = table_find(atomic_load_explicit(&r->table, memory_order_acquire), key, key_hash(key));

	return e && atomic_load_explicit(&e->state, memory_order_acquire) == ENTRY_READY;
}

/* --- looking at it */

void registry_count(struct registry *r, struct registry_counters *out)
{
	*out = (struct registry_counters){
		.generated = r->count[KERNEL_GENERATED],
		.from_disk = r->count[KERNEL_FROM_DISK],
		.from_pack = r->count[KERNEL_FROM_PACK],
		.from_memory = r->count[KERNEL_FROM_MEMORY],
		.generated_ns = r->generated_ns,
		.from_disk_ns = r->from_disk_ns,
		.code_bytes = r->code_bytes,
	};
}

struct listed {
	const struct kernel *kernel;
	char text[KEY_TEXT_MAX];
};

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
