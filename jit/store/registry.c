/* jit/store/registry.c - the table of kernels: lookups without a lock, single flight for the rest.
 *
 * Owns: the entries, for the registry's whole life. An entry is never removed or moved, only its state changes (IDLE ->
 * BUILDING -> READY, or back to IDLE when the attempt failed or nothing was found), so that a reader may probe the
 * table while others add to it. The kernel in an entry is written by the one thread that set BUILDING and read by
 * others after READY only.
 */
#include "jit/store/registry.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jit/store/execmem.h"
#include "jit/store/perf_gdb.h"

enum entry_state { ENTRY_IDLE, ENTRY_BUILDING, ENTRY_READY };

struct entry {
	struct kernel kernel;     /* .key is set before the entry is in a table */
	_Atomic int state;        /* enum entry_state; changed with the lock held */
	enum record_answer known; /* ABSENT, DAMAGED: registry_load saw that, and the next attempt need not look;
	                             FAILED: nothing is known */
	uint64_t attempts;        /* finished ones; with the lock */
	struct error failure;     /* of the last failed attempt; with the lock */
	pthread_cond_t done;
};

struct table {
	struct table *older; /* readers may still be probing it: kept to the end */
	size_t mask;
	_Atomic(struct entry *) slot[];
};

struct registry {
	struct registry_options opt;
	struct target_cpu cpu;
	struct execmem *pages;
	pthread_mutex_t lock; /* adding to the table, entry states, attempts, failures, frozen */
	bool frozen;
	pthread_mutex_t dump_lock; /* one kernel's dump at a time */
	pthread_mutex_t kept_lock; /* the three below */
	struct key *kept;
	size_t n_kept;
	bool kept_listed; /* sealed: what the cache has, listed for the first refusal */
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

/* Code that is there is no code that can be dumped. */
static bool can_load(const struct registry *r) { return r->opt.cache && (r->opt.sealed || !registry_in_order(r)); }

static enum kernel_source source_of(const struct registry *r, unsigned number)
{
	struct cache_source s;

	cache_source_get(r->opt.cache, number, &s);
	return s.kind == CACHE_PACK ? KERNEL_FROM_PACK : KERNEL_FROM_DISK;
}

static enum record_answer load(struct registry *r, struct kernel *k, struct error *err)
{
	unsigned from;
	enum record_answer answer =
		can_load(r) ? cache_load(r->opt.cache, &k->key, &k->object, &from, err) : RECORD_ABSENT;

	if (answer == RECORD_FOUND)
		k->source = source_of(r, from);
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

/* Where its code is in memory now; NULL for targets this machine cannot run. */
static void place(struct registry *r, struct kernel *k, void *code)
{
	char name[KEY_TEXT_MAX];

	k->run = (kernel_fn)(uintptr_t)code;
	if (code && r->opt.perf_map)
		execmem_perf_map(code, k->object.code_bytes, key_text(&k->key, name, sizeof name));
	if (code && r->opt.observe)
		observe_code(r->opt.observe, code, k->object.code_bytes, key_text(&k->key, name, sizeof name));
}

static bool runs_here(const struct registry *r, const struct kernel *k)
{
	return target_runs(&r->cpu, &target_table[k->key.target], NULL);
}

static void count_kernel(struct registry *r, struct kernel *k, uint64_t nanoseconds)
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
	uint64_t start = now_ns();
	void *code = NULL;

	k->object = (struct object){ 0 };
	enum record_answer answer = e->known != RECORD_FAILED ? e->known : load(r, k, r->opt.sealed ? err : NULL);
	if (answer != RECORD_FOUND) {
		k->source = KERNEL_GENERATED;
		if (r->opt.sealed ? answer == RECORD_FAILED || !refuse(r, &k->key, answer, err) : !generate(r, k, err))
			return false;
	}
	if (runs_here(r, k) && !(code = execmem_put(r->pages, k->object.code, k->object.code_bytes, err))) {
		object_free(&k->object);
		return false;
	}
	place(r, k, code);
	count_kernel(r, k, now_ns() - start);
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

static bool key_is_usable(const struct key *key, struct error *err)
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
	struct entry *e = frozen ? table_find(r->table, key, hash) : entry_claim(r, key, hash);
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
		if (!key_is_usable(key, err))
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

/* --- many from the cache */

/* Entries this thread set BUILDING, and what was found of them. */
struct batch {
	struct entry **entry;
	const struct key **key;
	struct object *object;
	enum record_answer *answer;
	unsigned *source;
	struct execmem_piece *piece;
	size_t n;
};

static bool batch_open(struct batch *b, size_t n)
{
	*b = (struct batch){ .entry = malloc(n * sizeof *b->entry),
		             .key = malloc(n * sizeof *b->key),
		             .object = malloc(n * sizeof *b->object),
		             .answer = malloc(n * sizeof *b->answer),
		             .source = malloc(n * sizeof *b->source),
		             .piece = malloc(n * sizeof *b->piece) };
	return b->entry && b->key && b->object && b->answer && b->source && b->piece;
}

static void batch_close(struct batch *b)
{
	free(b->entry);
	free(b->key);
	free(b->object);
	free(b->answer);
	free(b->source);
	free(b->piece);
}

static void batch_claim(struct batch *b, struct registry *r, const struct key *key, size_t n)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < n && !r->frozen; i++) {
		struct entry *e = key_is_usable(&key[i], NULL) ? entry_claim(r, &key[i], key_hash(&key[i])) : NULL;
		if (!e || e->state != ENTRY_IDLE)
			continue;
		atomic_store_explicit(&e->state, ENTRY_BUILDING, memory_order_relaxed);
		b->key[b->n] = &e->kernel.key;
		b->entry[b->n++] = e;
	}
	pthread_mutex_unlock(&r->lock);
}

/* Loads, and makes executable in one go. Returns the number loaded; when pages are not to be had, none is, and whoever
 * asks for a kernel is told. */
static size_t batch_load(struct batch *b, struct registry *r)
{
	uint64_t start = now_ns();
	size_t pieces = 0, found = 0, at = 0;

	cache_load_all(r->opt.cache, b->key, b->n, b->object, b->answer, b->source);
	for (size_t i = 0; i < b->n; i++) {
		found += b->object[i].code != NULL;
		if (b->object[i].code && runs_here(r, &b->entry[i]->kernel))
			b->piece[pieces++] =
				(struct execmem_piece){ .code = b->object[i].code, .n = b->object[i].code_bytes };
	}
	bool mapped = execmem_put_all(r->pages, b->piece, pieces, NULL);
	uint64_t each = found ? (now_ns() - start) / found : 0;
	for (size_t i = 0; i < b->n; i++) {
		struct kernel *k = &b->entry[i]->kernel;
		b->entry[i]->known = b->object[i].code ? RECORD_FAILED : b->answer[i];
		if (!mapped)
			object_free(&b->object[i]);
		if (!b->object[i].code)
			continue;
		k->object = b->object[i];
		k->source = source_of(r, b->source[i]);
		place(r, k, runs_here(r, k) ? b->piece[at++].at : NULL);
		count_kernel(r, k, each);
	}
	return mapped ? found : 0;
}

static void batch_publish(struct batch *b, struct registry *r)
{
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < b->n; i++) {
		atomic_store_explicit(&b->entry[i]->state, b->object[i].code ? ENTRY_READY : ENTRY_IDLE,
		                      memory_order_release);
		pthread_cond_broadcast(&b->entry[i]->done);
	}
	pthread_mutex_unlock(&r->lock);
}

size_t registry_load(struct registry *r, const struct key *key, size_t n)
{
	struct batch b;
	size_t loaded = 0;

	if (!can_load(r) || n == 0)
		return 0;
	if (batch_open(&b, n)) {
		batch_claim(&b, r, key, n);
		loaded = batch_load(&b, r);
		batch_publish(&b, r);
	}
	batch_close(&b);
	return loaded;
}

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
