#include "bench/kernels.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/cache.h"
#include "jit/pack.h"
#include "jit/registry.h"
#include "kernels-templates/templates.h"
#include "loaders/model.h"
#include "runtime/system.h"

enum { LOOKUPS = 1000000 };
static const char pack_name[] = "kernels.jkp";

struct keys { struct key *key; size_t n; };

/* Gets every key from a cache at path, or without one (NULL). What this took, from opening the cache on, into *seconds; what one lookup takes into *lookup, unless NULL. */
static bool get_all(const struct keys *k, const char *path, enum kernel_source expected, double *seconds, double *lookup, struct error *err)
{
	double start = system_seconds();
	struct cache *c = path ? cache_open(path, NULL, err) : NULL;
	struct registry *r = path && !c ? NULL : registry_open(&(struct registry_options){ .build = template_build, .cache = c }, err);
	bool ok = r != NULL;

	if (ok)
		registry_load(r, k->key, k->n);
	for (size_t i = 0; ok && i < k->n; i++) {
		const struct kernel *kernel = registry_get(r, &k->key[i], NULL, err);
		ok = kernel != NULL;
		if (ok && kernel->source != expected)
			ok = error_set(err, ERROR_IO, "kernel %zu was not found where it had been stored, but %s", i, kernel->source == KERNEL_GENERATED ? "generated" : "elsewhere");
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

/* In the order of the rows. */
enum { GENERATE, DIRECTORY, PACK, TOKEN_GENERATE, TOKEN_DIRECTORY, TOKEN_PACK, LOOKUP };

/* One repetition: what each row took, in seconds. */
static bool measure_once(const struct keys *all, const struct keys *token, const char *dir, const char *pack, double v[KERNEL_ROWS], struct error *err)
{
	return get_all(all, NULL, KERNEL_GENERATED, &v[GENERATE], NULL, err) && get_all(all, dir, KERNEL_FROM_DISK, &v[DIRECTORY], NULL, err) &&
	       get_all(all, pack, KERNEL_FROM_PACK, &v[PACK], &v[LOOKUP], err) && get_all(token, NULL, KERNEL_GENERATED, &v[TOKEN_GENERATE], NULL, err) &&
	       get_all(token, dir, KERNEL_FROM_DISK, &v[TOKEN_DIRECTORY], NULL, err) && get_all(token, pack, KERNEL_FROM_PACK, &v[TOKEN_PACK], NULL, err);
}

static bool measure(const struct keys *all, const struct keys *token, const char *dir, long repetitions, struct series s[KERNEL_ROWS], struct error *err)
{
	char pack[300];
	bool ok;

	snprintf(pack, sizeof pack, "%s/%s", dir, pack_name);
	ok = fill_cache(all, dir, pack, err);
	for (long i = 0; ok && i < repetitions; i++) {
		double v[KERNEL_ROWS];
		ok = measure_once(all, token, dir, pack, v, err);
		for (int r = 0; ok && r < KERNEL_ROWS; r++) {
			s[r].limit[s[r].n] = r == LOOKUP ? v[GENERATE] / (double)all->n : v[r < TOKEN_GENERATE ? GENERATE : TOKEN_GENERATE];
			s[r].value[s[r].n++] = v[r] * (r == LOOKUP ? 1e9 : 1e3);
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

bool kernels_measure(const struct model_spec *spec, const struct warm_options *options, long repetitions, double noise, struct row out[KERNEL_ROWS], struct error *err)
{
	static const char *const name[KERNEL_ROWS] = { "generate", "open directory", "open pack", "token generate", "token directory", "token pack", "lookup" };
	const char *tmp = getenv("TMPDIR");
	struct warm_options one = *options;
	struct keys all = { 0 }, token = { 0 };
	struct series s[KERNEL_ROWS] = { 0 };
	char dir[256];

	one.columns = 1;
	snprintf(dir, sizeof dir, "%.200s/jitbench-XXXXXX", tmp ? tmp : "/tmp");
	bool ok = warm_keys(spec, options, &all.key, &all.n, err) && warm_keys(spec, &one, &token.key, &token.n, err);
	if (ok && !mkdtemp(dir)) {
		ok = error_set(err, ERROR_IO, "no temporary directory %s could be made: %s", dir, strerror(errno));
	} else if (ok) {
		ok = measure(&all, &token, dir, repetitions, s, err);
		remove_dir(dir);
	}
	for (int r = 0; ok && r < KERNEL_ROWS; r++) {
		out[r] = (struct row){ .unit = r == LOOKUP ? "ns" : "ms", .threads = 1, .count = (long)(r >= TOKEN_GENERATE && r < LOOKUP ? token.n : all.n) };
		if (r != GENERATE && r != TOKEN_GENERATE) {
			out[r].work = r == LOOKUP ? 1e-9 : 1e-3;         /* seconds of one of the unit */
			out[r].limit_name = r == LOOKUP ? "generating one" : "generating";
			out[r].limit_unit = "s";
		}
		snprintf(out[r].test, sizeof out[r].test, "%s", name[r]);
		row_fill(&out[r], &s[r], noise);
	}
	free(all.key);
	free(token.key);
	return ok;
}

bool kernels_write_pack(const char *model, const struct warm_options *options, const char *pack, struct error *err)
{
	struct keys keys = { 0 };
	struct model m;

	if (!model_open(&m, model, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err))
		return false;
	bool ok = warm_keys(&m.spec, options, &keys.key, &keys.n, err);
	struct pack_item *item = ok ? calloc(keys.n, sizeof *item) : NULL;
	if (ok && !item)
		ok = error_set(err, ERROR_MEMORY, "no memory for a pack of %zu kernels", keys.n);
	for (size_t i = 0; ok && i < keys.n; i++) {
		item[i].key = keys.key[i];
		ok = compile_key(&item[i].object, &keys.key[i], template_build, NULL, NULL, err);
	}
	ok = ok && pack_write(pack, item, keys.n, err);
	for (size_t i = 0; item && i < keys.n; i++)
		object_free(&item[i].object);
	free(item);
	free(keys.key);
	model_close(&m);
	return ok;
}
