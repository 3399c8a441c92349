/* programs/jitserve/jitserve_folder.c - models that come and go while the server runs: those of --models-dir, and with
 * --pull-with those of the cache into which clients have them fetched; and how long they stay open.
 *
 * A file that cannot be read yet, such as one that is being copied, is looked at again the next time.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/jitserve/jitserve.h"
#include "programs/common/model_facts.h"
#include "programs/common/model_names.h"
#include "programs/common/model_search.h"
#include "server/control/fetch.h"
#include "server/engine/model_events.h"
#include "server/ollama/ollama_time.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool full_told; /* that there are too many */
static struct {
	char *name;
	struct served *model;
} fetched_as[SERVE_MAX_MODELS]; /* names by which models were fetched */
static size_t n_fetched;
static struct found_model found[SERVE_MAX_MODELS]; /* of those found in folders, what is known; name NULL: another */

static bool is_known(const struct models *all, const char *path)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->list[i].made && strcmp(all->list[i].path, path) == 0)
			return true;
	return false;
}

/* What sees pictures for another model is none. */
static bool is_model(const char *path)
{
	struct error ignored = { 0 };
	struct model_facts f;
	size_t n = strlen(path);

	return (n > 4 && strcmp(path + n - 4, ".jkm") == 0) ||
	       (model_facts_read(&f, path, &ignored) && strcmp(f.architecture, "clip") != 0);
}

/* An entry of the list keeps the name by which it was found: what people write for it is judged by that. */
static void keep_name(struct models *all, const struct found_model *p)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->list[i].made && strcmp(all->list[i].path, p->path) == 0) {
			char *name = found[i].name ? NULL : strdup(p->name);
			if (!name)
				return;
			found[i] = (struct found_model){ .source = p->source,
				                         .name = name,
				                         .path = (char *)(uintptr_t)all->list[i].path,
				                         .order = p->order,
				                         .old_revision = p->old_revision };
		}
}

/* Whether it is new. name: what it is called. */
static bool add_one(struct models *all, const char *model_path, const char *called, size_t n)
{
	struct error ignored = { 0 };

	if (is_known(all, model_path) || !is_model(model_path))
		return false;
	if (all->n == SERVE_MAX_MODELS) {
		if (!full_told)
			fprintf(stderr, "jitserve: there are more than %d models; the others are not served.\n",
			        SERVE_MAX_MODELS);
		full_told = true;
		return false;
	}
	char *path = strdup(model_path), *name = strndup(called, n); /* for as long as the program runs */
	bool ok = path && name && models_add(all, path, name, NULL, &ignored);
	if (!ok)
		free(path); /* one of that name is there */
	free(name);
	return ok;
}

static bool add(struct models *all, const struct model_search *s)
{
	bool any = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct found_model *p = &s->found[i];
		if (!p->path || p->trouble)
			continue;
		any |= add_one(all, p->path, p->name, model_name_stem(p->name));
		keep_name(all, p);
	}
	return any;
}

/* A model that is open stays so without its file, and is no longer found. */
static bool see_who_has_gone(struct models *all)
{
	bool any = false;

	for (size_t i = (size_t)serve.n_models; i < all->n; i++) {
		if (all->list[i].made)
			continue;
		const bool gone = access(all->list[i].path, F_OK) != 0;
		any |= gone != all->list[i].gone;
		all->list[i].gone = gone;
	}
	return any;
}

static bool refresh_locked(struct models *all)
{
	struct model_search s;
	struct error ignored = { 0 };
	bool any = false;

	if (serve.models_dir) {
		if (model_search_folder(&s, serve.models_dir, &ignored))
			any |= add(all, &s);
		model_search_free(&s);
	}
	if (serve.pull_with) {
		if (model_search_hub(&s, &ignored))
			any |= add(all, &s);
		model_search_free(&s);
	}
	return see_who_has_gone(all) || any;
}

static void refresh(struct models *all)
{
	pthread_mutex_lock(&lock);
	const bool changed = refresh_locked(all);
	pthread_mutex_unlock(&lock);
	if (changed)
		model_events_list_changed();
}

/* "hf.co/OWNER/NAME:QUANT", and what else people write for a file in a repository. */
static struct served *guess(struct models *all, const char *name)
{
	struct served *m = NULL;
	struct found_model served[SERVE_MAX_MODELS];
	size_t at[SERVE_MAX_MODELS], n = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < all->n; i++)
		if (found[i].name && !all->list[i].gone) {
			served[n] = found[i];
			at[n++] = i;
		}
	const size_t which = model_name_among(name, served, n);
	if (which < n)
		m = &all->list[at[which]];
	for (size_t i = 0; i < n_fetched && !m; i++)
		if (fetch_is_same(fetched_as[i].name, name) && !fetched_as[i].model->gone)
			m = fetched_as[i].model;
	pthread_mutex_unlock(&lock);
	return m;
}

/* A name may fit several files, of which this one was fetched. */
static void keep_fetched(struct models *all, const char *name, const char *path)
{
	size_t at = 0;

	while (at < n_fetched && !fetch_is_same(fetched_as[at].name, name))
		at++;
	for (size_t i = 0; i < all->n && at < SERVE_MAX_MODELS; i++)
		if (!all->list[i].made && strcmp(all->list[i].path, path) == 0) {
			char *copy = at < n_fetched ? fetched_as[at].name : strdup(name);
			if (!copy)
				return;
			fetched_as[at].name = copy;
			fetched_as[at].model = &all->list[i];
			n_fetched += at == n_fetched;
		}
}

/* Where it is none of those that are found in folders, it is served from where it lies. */
static void fetched(struct models *all, const char *name, const char *path)
{
	pthread_mutex_lock(&lock);
	bool changed = refresh_locked(all);
	if (path && *path == '/') {
		changed |= add_one(all, path, name, strlen(name));
		keep_fetched(all, name, path);
	}
	pthread_mutex_unlock(&lock);
	if (changed)
		model_events_list_changed();
}

static bool is_folder(struct error *err)
{
	struct stat st;

	return (stat(serve.models_dir, &st) == 0 && S_ISDIR(st.st_mode) &&
	        access(serve.models_dir, R_OK | X_OK) == 0) ||
	       error_set(err, ERROR_IO, "--models-dir is %s, which is no folder that can be read", serve.models_dir);
}

bool serve_folder_open(struct models *all, struct error *err)
{
	if (!serve.models_dir && !serve.pull_with)
		return true;
	if (serve.models_dir && !is_folder(err))
		return false;
	all->by_name = true;
	all->refresh = refresh;
	all->guess = guess;
	all->fetched = fetched;
	refresh(all);
	return true;
}

bool serve_read_keep(const char *text, double *seconds)
{
	struct refusal refusal = { 0 };
	char *end;

	*seconds = serve_has_more() ? 300 : -1;
	if (!text)
		return true;
	double n = strtod(text, &end);
	if (end != text && !*end && n > -1e9 && n < 1e9) {
		*seconds = n < 0 ? -1 : n;
		return true;
	}
	json_t *v = json_string(text);
	bool ok = v && ollama_duration(v, "--keep-alive", seconds, &refusal);
	json_decref(v);
	return ok;
}
