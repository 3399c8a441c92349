/* programs/jitwarm/jitwarm_make.c - generates the kernels of models for targets, into a pack or a directory.
 *
 * Owns: the list of kernels, where those that several models share stand once; generating them on all cores; writing.
 * A target that no code can be generated for is refused by name before anything is written.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/program_key.h"
#include "jit/store/pack.h"
#include "kernels-templates/templates.h"
#include "programs/jitwarm/jitwarm.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

struct wanted {
	const struct target *target[TARGET_COUNT];
	int n_targets;
	struct key *key;
	size_t n, kept; /* kept: of them, only a pack that is there already wants so many */
	json_t *models;
};

struct made {
	struct pack_item *item;
	size_t n, by_drivers, generated; /* by_drivers: of n, code that drivers made of others */
	uint64_t code_bytes, file_bytes;
	struct error unstored;
};

static bool add_model(const struct model *m, const char *name, void *user, struct error *err)
{
	struct wanted *w = user;

	for (int t = 0; t < w->n_targets; t++) {
		struct key *keys;
		size_t n;
		if (!warm_model_keys(m, w->target[t], &keys, &n, err))
			return false;
		struct key *more = realloc(w->key, (w->n + n) * sizeof *more);
		if (more) {
			memcpy(more + w->n, keys, n * sizeof *keys);
			w->key = more;
			w->n += n;
		}
		size_t by_drivers = driver_code_count(keys, n);
		free(keys);
		if (!more)
			return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", w->n + n);
		json_array_append_new(w->models,
		                      json_pack("{s:o, s:s, s:I}", "model", output_string(name), "target",
		                                w->target[t]->name, "kernels", (json_int_t)(n - by_drivers)));
	}
	return true;
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(struct key)); }

static void drop_repeated(struct wanted *w)
{
	size_t n = 0;

	if (w->n)
		qsort(w->key, w->n, sizeof *w->key, by_bytes);
	for (size_t i = 0; i < w->n; i++)
		if (n == 0 || !key_equal(&w->key[n - 1], &w->key[i]))
			w->key[n++] = w->key[i];
	w->n = n;
}

static int find_by_bytes(const void *a, const void *b) { return by_bytes(a, b); }

static bool can_make_again(const struct key *key, struct error *err)
{
	char text[DRIVER_CODE_TEXT_MAX];
	struct driver_code by;

	if (key->codegen == key_codegen(key->target) || driver_code_is_by(key, warm_linker()))
		return true;
	return driver_code_is(key, &by)
	               ? error_set(err, ERROR_ARGUMENT,
	                           "%s: holds what a card's driver made (%s), which that driver alone can make again "
	                           "(--device)",
	                           warm.out, driver_code_text(by, text))
	               : error_set(err, ERROR_ARGUMENT, "%s: was made by another version of jitrun", warm.out);
}

/* A pack that is there belongs to other models too: what is in it is made again, so that the file depends on its keys
 * alone and not on who wrote it before. */
static bool keep_pack(struct wanted *w, struct error *err)
{
	struct error e = { 0 };
	struct pack *p = pack_open(warm.out, &e);
	size_t wanted = w->n, n = p ? pack_count(p) : 0;
	struct key *all = p ? realloc(w->key, (w->n + n + 1) * sizeof *all) : NULL;
	struct pack_entry entry;

	w->key = all ? all : w->key;
	for (size_t i = 0; all && i < n && pack_get(p, i, &entry); i++) {
		if (!can_make_again(&entry.key, &e))
			break;
		struct object o = { 0 };
		if (entry.key.kind == KEY_PROGRAM && !driver_code_is(&entry.key, NULL) &&
		    pack_read(p, i, &o, NULL) == RECORD_FOUND)
			program_learn(&o, &entry.key);
		object_free(&o);
		if (!bsearch(&entry.key, w->key, wanted, sizeof *w->key, find_by_bytes))
			w->key[w->n++] = entry.key;
	}
	if (p && !all)
		error_set(&e, ERROR_MEMORY, "no memory for a list of %zu kernels", w->n + n);
	pack_close(p);
	w->kept = w->n - wanted;
	return !e.code || error_set(err, e.code, "%s; --replace makes it anew", e.text);
}

static void show_progress(size_t done, size_t total)
{
	static int last = -1;
	int percent = total ? (int)(done * 100 / total) : 100;

	if (warm.quiet || warm.json || percent == last || !isatty(STDERR_FILENO))
		return;
	last = percent;
	fprintf(stderr, "\rgenerating [%.*s%.*s] %3d%%", percent * 2 / 5, "########################################",
	        40 - percent * 2 / 5, "........................................", percent);
	if (percent == 100)
		fprintf(stderr, "\r%60s\r", "");
	fflush(stderr);
}

/* What the workers of make_all share. */
struct making {
	const struct wanted *wanted;
	struct cache *cache; /* where some may be already; NULL: all are made */
	struct pack_item *item;
	_Atomic size_t next, generated;
	pthread_mutex_t lock; /* the two below */
	size_t failed;
	struct error failure;  /* the first in order of those that failed; no more are begun */
	struct error unstored; /* with the lock too: why one could not be stored */
};

static bool make_object(struct pack_item *it, struct error *err)
{
	return driver_code_is(&it->key, NULL)
	               ? driver_code_make(warm_linker(), &it->key, template_build, &it->object, err)
	               : compile_key(&it->object, &it->key, template_build, NULL, NULL, err);
}

/* False: why names the kernel or its target. */
static bool make_one(struct making *m, struct pack_item *it, struct error *why)
{
	char text[KEY_TEXT_MAX];
	struct error e = { 0 };

	if (m->cache && cache_load(m->cache, &it->key, &it->object, NULL, NULL) == RECORD_FOUND)
		return true;
	if (!make_object(it, &e)) {
		key_text(&it->key, text, sizeof text);
		return strstr(e.text, text) ? error_set(why, e.code, "%s", e.text)
		                            : error_set(why, e.code, "%s, needed for kernel %s", e.text, text);
	}
	atomic_fetch_add(&m->generated, 1);
	if (m->cache && !cache_store(m->cache, &it->key, &it->object, &e)) {
		pthread_mutex_lock(&m->lock);
		error_set(&m->unstored, e.code, "%s", e.text);
		pthread_mutex_unlock(&m->lock);
	}
	return true;
}

static void make_some(void *user, int worker, int workers)
{
	struct making *m = user;

	for (size_t i; (i = atomic_fetch_add(&m->next, 1)) < m->wanted->n;) {
		struct error why = { 0 };
		m->item[i].key = m->wanted->key[i];
		if (worker == 0)
			show_progress(i, m->wanted->n);
		if (make_one(m, &m->item[i], &why))
			continue;
		pthread_mutex_lock(&m->lock);
		if (i < m->failed) {
			m->failed = i;
			m->failure = why;
		}
		pthread_mutex_unlock(&m->lock);
		atomic_store(&m->next, m->wanted->n);
	}
}

static bool make_all(const struct wanted *w, struct cache *cache, struct made *made, struct error *err)
{
	struct pool *pool = pool_open(system_default_threads(), err);
	struct making m = { .wanted = w,
		            .cache = cache,
		            .item = calloc(w->n + 1, sizeof *m.item),
		            .lock = PTHREAD_MUTEX_INITIALIZER,
		            .failed = SIZE_MAX };

	made->item = m.item;
	made->n = m.item ? w->n : 0;
	if (!m.item)
		error_set(err, ERROR_MEMORY, "no memory for %zu kernels", w->n);
	if (pool && m.item)
		pool_run(pool, make_some, &m);
	pool_close(pool);
	if (!pool || !m.item)
		return false;
	show_progress(w->n, w->n);
	made->generated = m.generated;
	for (size_t i = 0; i < w->n; i++)
		made->code_bytes += m.item[i].object.code_bytes;
	made->by_drivers = driver_code_count(w->key, w->n);
	made->unstored = m.unstored;
	return m.failed == SIZE_MAX || error_set(err, m.failure.code, "%s", m.failure.text);
}

static void free_made(struct made *made)
{
	for (size_t i = 0; made->item && i < made->n; i++)
		object_free(&made->item[i].object);
	free(made->item);
}

static bool is_pack(const char *path)
{
	size_t n = strlen(path);
	return n > 4 && strcmp(path + n - 4, ".jkp") == 0;
}

/* The first kernel of every target, thrown away: a target without a code generator is refused before a directory is
 * touched. */
static bool try_targets(const struct wanted *w, struct error *err)
{
	for (int t = 0; t < w->n_targets; t++)
		for (size_t i = 0; i < w->n; i++) {
			struct object o;
			if (w->key[i].target != w->target[t]->id || driver_code_is(&w->key[i], NULL))
				continue;
			if (!compile_key(&o, &w->key[i], template_build, NULL, NULL, err))
				return false;
			object_free(&o);
			break;
		}
	return true;
}

static bool make_directory(const struct wanted *w, struct made *made, struct error *err)
{
	struct cache_counters c;
	struct cache *cache = try_targets(w, err) ? cache_open(warm.out, NULL, err) : NULL;

	if (!cache)
		return false;
	bool ok = make_all(w, cache, made, err);
	cache_count(cache, &c);
	if (ok && c.stored < made->generated)
		ok = error_set(err, ERROR_IO, "%zu of %zu kernels could not be stored: %s",
		               made->generated - (size_t)c.stored, made->generated, made->unstored.text);
	uint64_t entries;
	ok = ok && cache_size(cache, true, &made->file_bytes, &entries, NULL, err);
	cache_close(cache);
	return ok;
}

static bool make_pack(const struct wanted *w, struct made *made, struct error *err)
{
	if (!make_all(w, NULL, made, err))
		return false;
	size_t bytes;
	uint8_t *p = pack_bytes(made->item, made->n, &bytes, err);
	free(p);
	made->file_bytes = bytes;
	return p && pack_write(warm.out, made->item, made->n, err);
}

uint8_t *warm_model_pack(const struct model *m, const struct target *const *target, int n_targets, size_t *kernels,
                         size_t *bytes, struct error *err)
{
	struct wanted w = { .n_targets = n_targets, .models = json_array() };
	struct made made = { 0 };
	uint8_t *p = NULL;

	memcpy(w.target, target, (size_t)n_targets * sizeof *target);
	if (add_model(m, "", &w, err)) {
		drop_repeated(&w);
		if (make_all(&w, NULL, &made, err))
			p = pack_bytes(made.item, made.n, bytes, err);
	}
	*kernels = made.n - made.by_drivers;
	free_made(&made);
	free(w.key);
	json_decref(w.models);
	return p;
}

static void report(const struct wanted *w, const struct made *made, double seconds)
{
	if (warm.json) {
		json_t *o = json_pack("{s:o, s:O, s:I, s:I, s:I, s:I, s:I, s:f}", "out", output_string(warm.out),
		                      "models", w->models, "kernels", (json_int_t)(made->n - made->by_drivers), "kept",
		                      (json_int_t)w->kept, "generated", (json_int_t)made->generated, "code_bytes",
		                      (json_int_t)made->code_bytes, "bytes", (json_int_t)made->file_bytes, "seconds",
		                      seconds);
		if (made->by_drivers)
			json_object_set_new(o, "by_drivers", json_integer((json_int_t)made->by_drivers));
		json_dumpf(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
		putchar('\n');
		json_decref(o);
	} else if (!warm.quiet) {
		fprintf(stderr, "%s: %zu kernels for", warm.out, made->n - made->by_drivers);
		for (int t = 0; t < w->n_targets; t++)
			fprintf(stderr, "%s %s", t ? "," : "", w->target[t]->name);
		if (made->by_drivers)
			fprintf(stderr, ", and what drivers make of %zu", made->by_drivers);
		if (w->kept)
			fprintf(stderr, "; %zu of them were there before", w->kept);
		fprintf(stderr, "; %zu generated, %zu already in the cache; %.2f MiB of code in %.2f MiB; %.2f s\n",
		        made->generated, made->n - made->generated, (double)made->code_bytes / 0x1p20,
		        (double)made->file_bytes / 0x1p20, seconds);
	}
}

int warm_make(void)
{
	struct error e = { 0 };
	struct wanted w = { .n = 0 };
	struct made made = { 0 };
	double start = system_seconds();

	if (warm_model_count() == 0)
		return warm_usage("which model? Give a file, a directory or --shape");
	if (!warm.out || !*warm.out)
		return warm_usage("where to? Give --out FILE.jkp or --out DIRECTORY");
	w.models = json_array();
	bool ok = (w.n_targets = warm_targets(w.target, &e)) > 0 && warm_each_model(add_model, &w, &e);
	drop_repeated(&w);
	if (ok && is_pack(warm.out)) {
		ok = warm_can_write(warm.out, &e) && (warm.replace || access(warm.out, F_OK) != 0 || keep_pack(&w, &e));
		drop_repeated(&w);
	}
	ok = ok && (is_pack(warm.out) ? make_pack : make_directory)(&w, &made, &e);
	if (ok)
		report(&w, &made, system_seconds() - start);
	free_made(&made);
	free(w.key);
	json_decref(w.models);
	return ok ? WARM_DONE : warm_fail(&e);
}
