#include "bench/codegen_time.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/cache.h"
#include "jit/store/driver_code.h"
#include "jit/store/pack.h"
#include "jit/rdna/program.h"
#include "jit/store/registry.h"
#include "kernels-templates/templates.h"
#include "loaders/model/model.h"
#include "runtime/device/device.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

enum { LOOKUPS = 1000000 };
static const char pack_name[] = "kernels.jkp";

struct keys {
	struct key *key;
	size_t n;
};
struct sets {
	struct keys all, token, pass, layer;
};

/* Gets every key from a cache at path, or without one (NULL). What this took, from opening the cache on, into *seconds;
 * what one lookup takes into *lookup, unless NULL. */
static bool get_all(const struct keys *k, const char *path, enum kernel_source expected, double *seconds,
                    double *lookup, struct error *err)
{
	double start = system_seconds();
	struct cache *c = path ? cache_open(path, NULL, err) : NULL;
	struct registry *r =
		path && !c ? NULL
			   : registry_open(&(struct registry_options){ .build = template_build, .cache = c }, err);
	bool ok = r != NULL;

	if (ok)
		registry_load(r, k->key, k->n);
	for (size_t i = 0; ok && i < k->n; i++) {
		const struct kernel *kernel = registry_get(r, &k->key[i], NULL, err);
		ok = kernel != NULL;
		if (ok && kernel->source != expected)
			ok = error_set(err, ERROR_IO, "kernel %zu was not found where it had been stored, but %s", i,
			               kernel->source == KERNEL_GENERATED ? "generated" : "elsewhere");
	}
	*seconds = system_seconds() - start;
	if (ok && lookup) {
		start = system_seconds();
		for (size_t i = 0; i < LOOKUPS; i++)
			registry_get(r, &k->key[i % k->n], NULL, NULL);
		*lookup = (system_seconds() - start) / LOOKUPS;
	}
	registry_close(r);
	cache_close(c);
	return ok;
}

/* The pass's kernels from IR to code objects, one after the other, and for a card from these to one program. */
static bool generate_pass(const struct keys *k, const struct target *target, double *generate, double *link,
                          struct error *err)
{
	struct object *object = calloc(k->n, sizeof *object);
	const struct object **each = calloc(k->n, sizeof *each);
	uint64_t *offset = calloc(k->n, sizeof *offset);
	bool ok =
		(object && each && offset) || error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", k->n);
	uint8_t *bytes = NULL;
	size_t size, n = 0;
	double start = system_seconds();

	for (; ok && n < k->n; n++) {
		ok = compile_key(&object[n], &k->key[n], template_build, NULL, NULL, err);
		each[n] = &object[n];
	}
	*generate = system_seconds() - start;
	start = system_seconds();
	if (ok && target->backend->link)
		ok = target->backend->link(&bytes, &size, target, each, n, offset, err);
	*link = system_seconds() - start;
	while (n)
		object_free(&object[--n]);
	free(bytes);
	free(object);
	free(each);
	free(offset);
	return ok;
}

/* The same by all of the pool's threads, as sessions make what their caches do not have. */
static bool generate_together(const struct keys *k, struct pool *pool, double *seconds, struct error *err)
{
	struct registry *r = registry_open(&(struct registry_options){ .build = template_build }, err);
	bool ok = r != NULL;
	double start = system_seconds();

	if (ok)
		device_make_kernels(r, k->key, k->n, pool);
	*seconds = system_seconds() - start;
	for (size_t i = 0; ok && i < k->n; i++)
		ok = registry_get(r, &k->key[i], NULL, err) != NULL;
	registry_close(r);
	return ok;
}

static bool fill_cache(const struct keys *k, const char *dir, const char *pack, struct error *err)
{
	double ignored;
	uint64_t n;

	if (!get_all(k, dir, KERNEL_GENERATED, &ignored, NULL, err))
		return false;
	struct cache *c = cache_open(dir, NULL, err);
	bool ok = c && cache_export(c, pack, NULL, NULL, &n, err);
	cache_close(c);
	return ok;
}

/* One repetition: what each row took, in seconds. */
static bool measure_once(const struct sets *k, const struct target *target, const char *dir, const char *pack,
                         struct pool *pool, double v[KERNEL_ROWS], struct error *err)
{
	return get_all(&k->all, NULL, KERNEL_GENERATED, &v[KERNELS_GENERATE], NULL, err) &&
	       get_all(&k->all, dir, KERNEL_FROM_DISK, &v[KERNELS_DIRECTORY], NULL, err) &&
	       get_all(&k->all, pack, KERNEL_FROM_PACK, &v[KERNELS_PACK], &v[KERNELS_LOOKUP], err) &&
	       get_all(&k->token, NULL, KERNEL_GENERATED, &v[KERNELS_TOKEN_GENERATE], NULL, err) &&
	       get_all(&k->token, dir, KERNEL_FROM_DISK, &v[KERNELS_TOKEN_DIRECTORY], NULL, err) &&
	       get_all(&k->token, pack, KERNEL_FROM_PACK, &v[KERNELS_TOKEN_PACK], NULL, err) &&
	       generate_pass(&k->pass, target, &v[KERNELS_PASS_GENERATE], &v[KERNELS_PASS_LINK], err) &&
	       generate_together(&k->pass, pool, &v[KERNELS_PASS_TOGETHER], err) &&
	       generate_together(&k->layer, pool, &v[KERNELS_LAYER_TOGETHER], err);
}

/* By row: the row of generating that it is a share of. */
static const uint8_t share_of[KERNEL_ROWS] = {
	[KERNELS_TOKEN_GENERATE] = KERNELS_TOKEN_GENERATE, [KERNELS_TOKEN_DIRECTORY] = KERNELS_TOKEN_GENERATE,
	[KERNELS_TOKEN_PACK] = KERNELS_TOKEN_GENERATE,     [KERNELS_PASS_GENERATE] = KERNELS_PASS_GENERATE,
	[KERNELS_PASS_TOGETHER] = KERNELS_PASS_GENERATE,   [KERNELS_LAYER_TOGETHER] = KERNELS_PASS_GENERATE,
	[KERNELS_PASS_LINK] = KERNELS_PASS_GENERATE,
};

static bool measure(const struct sets *k, const struct target *target, const char *dir, struct pool *pool,
                    long repetitions, struct series s[KERNEL_ROWS], struct error *err)
{
	char pack[300];
	bool ok;

	snprintf(pack, sizeof pack, "%s/%s", dir, pack_name);
	ok = fill_cache(&k->all, dir, pack, err);
	for (long i = 0; ok && i < repetitions; i++) {
		double v[KERNEL_ROWS];
		ok = measure_once(k, target, dir, pack, pool, v, err);
		for (int r = 0; ok && r < KERNEL_ROWS; r++) {
			s[r].limit[s[r].n] = v[share_of[r]] / (r == KERNELS_LOOKUP ? (double)k->all.n : 1);
			s[r].value[s[r].n++] = v[r] * (r == KERNELS_LOOKUP ? 1e9 : 1e3);
		}
	}
	return ok;
}

static void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

/* In the order of their first use, with the usual schedules. */
static bool pass_keys(const struct model_spec *spec, const struct key_list_options *o, enum dtype kv, struct keys *out,
                      struct error *err)
{
	const struct plan_options plan = { .target = o->target,
		                           .f32_activations = o->activations == KEY_LIST_F32_ACTIVATIONS,
		                           .bounded = o->numerics == KEY_LIST_BOUNDED };
	struct key_list_passes *passes = key_list_passes_open(spec, err);
	bool ok = passes && key_list_of_pass(passes, kv, 1, PLAN_LAST_LOGITS, &plan, false, &out->key, &out->n, err);

	key_list_passes_close(passes);
	return ok;
}

bool kernels_measure(const struct model_spec *spec, const struct key_list_options *options, enum dtype kv,
                     long repetitions, double noise, struct row out[KERNEL_ROWS], size_t *n_rows, struct error *err)
{
	static const char *const name[KERNEL_ROWS] = {
		"generate", "open directory", "open pack",     "token generate", "token directory", "token pack",
		"lookup",   "pass generate",  "pass together", "layer together", "pass link"
	};
	const char *tmp = getenv("TMPDIR");
	struct key_list_options one = *options;
	struct sets k = { 0 };
	const struct keys *const of[KERNEL_ROWS] = { &k.all, &k.all,  &k.all,  &k.token, &k.token, &k.token,
		                                     &k.all, &k.pass, &k.pass, &k.layer, &k.pass };
	struct series s[KERNEL_ROWS] = { 0 };
	char dir[256];

	one.tokens = 1;
	*n_rows = options->target->backend->link ? KERNEL_ROWS : KERNELS_PASS_LINK;
	snprintf(dir, sizeof dir, "%.200s/jitbench-XXXXXX", tmp ? tmp : "/tmp");
	struct pool *pool = pool_open(system_default_threads(), err);
	bool ok = pool && key_list_kernels(spec, options, &k.all.key, &k.all.n, err) &&
	          key_list_kernels(spec, &one, &k.token.key, &k.token.n, err) &&
	          pass_keys(spec, options, kv, &k.pass, err);
	if (ok)
		k.layer = (struct keys){ k.pass.key + 1,
			                 k.pass.n - 2 }; /* a pass begins with the embedding and ends with the logits */
	if (ok && !mkdtemp(dir)) {
		ok = error_set(err, ERROR_IO, "no temporary directory %s could be made: %s", dir, strerror(errno));
	} else if (ok) {
		ok = measure(&k, options->target, dir, pool, repetitions, s, err);
		remove_dir(dir);
	}
	for (size_t r = 0; ok && r < *n_rows; r++) {
		out[r] = (struct row){
			.unit = r == KERNELS_LOOKUP ? "ns" : "ms",
			.threads = r == KERNELS_PASS_TOGETHER || r == KERNELS_LAYER_TOGETHER ? pool_threads(pool) : 1,
			.count = (long)of[r]->n
		};
		if (share_of[r] != r) {
			out[r].work = r == KERNELS_LOOKUP ? 1e-9 : 1e-3; /* seconds of one of the unit */
			out[r].limit_name = r == KERNELS_LOOKUP ? "generating one" : "generating";
			out[r].limit_unit = "s";
		}
		snprintf(out[r].test, sizeof out[r].test, "%s", name[r]);
		row_fill(&out[r], &s[r], noise);
	}
	pool_close(pool);
	free(k.all.key);
	free(k.token.key);
	free(k.pass.key);
	return ok;
}

/* What the threads that fill a pack share. */
struct filling {
	const struct keys *keys;
	const struct driver_linker *linker;
	struct pack_item *item; /* of each key its code, and behind all of them what the driver made of each */
	size_t n;
	_Atomic size_t next;
	pthread_mutex_t lock; /* of the error */
	struct error failure;
};

static void fill_some(void *user, int worker, int workers)
{
	struct filling *f = user;

	for (size_t i; (i = atomic_fetch_add_explicit(&f->next, 1, memory_order_relaxed)) < f->n;) {
		const struct key *key = &f->keys->key[i % f->keys->n];
		struct pack_item *it = &f->item[i];
		struct error err = { 0 };
		it->key = i < f->keys->n ? *key : driver_code_key(key, f->linker->by);
		if (i < f->keys->n ? compile_key(&it->object, key, template_build, NULL, NULL, &err)
		                   : driver_code_make(f->linker, &it->key, template_build, &it->object, &err))
			continue;
		pthread_mutex_lock(&f->lock);
		error_set(&f->failure, err.code, "%s", err.text);
		pthread_mutex_unlock(&f->lock);
	}
}

bool kernels_write_pack(const char *model, const struct key_list_options *options, const struct driver_linker *linker,
                        const char *pack, struct error *err)
{
	struct keys keys = { 0 };
	struct filling f = { .keys = &keys, .linker = linker, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct pool *pool = NULL;
	struct model m;

	if (!model_open(&m, model, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err))
		return false;
	bool ok = key_list_kernels(&m.spec, options, &keys.key, &keys.n, err) &&
	          (pool = pool_open(system_default_threads(), err)) != NULL;
	f.n = keys.n * (linker ? 2 : 1);
	f.item = ok ? calloc(f.n, sizeof *f.item) : NULL;
	if (ok && !f.item)
		ok = error_set(err, ERROR_MEMORY, "no memory for a pack of %zu kernels", f.n);
	if (ok)
		pool_run(pool, fill_some, &f);
	if (ok && f.failure.code)
		ok = error_set(err, f.failure.code, "%s", f.failure.text);
	ok = ok && pack_write(pack, f.item, f.n, err);
	for (size_t i = 0; f.item && i < f.n; i++)
		object_free(&f.item[i].object);
	free(f.item);
	pool_close(pool);
	pthread_mutex_destroy(&f.lock);
	free(keys.key);
	model_close(&m);
	return ok;
}
