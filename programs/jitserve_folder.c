/* programs/jitserve_folder.c - --models-dir: the models of a folder, which come and go while the server runs; and how
 * long they stay open.
 *
 * A file that cannot be read yet, such as one that is being copied, is looked at again the next time.
 */
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/jitserve.h"
#include "programs/model_facts.h"
#include "programs/model_names.h"
#include "programs/model_search.h"
#include "server/ollama_time.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool full_told; /* that there are too many */

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

static void add(struct models *all, const struct model_place *p)
{
	struct error ignored = { 0 };

	if (is_known(all, p->path) || !is_model(p->path))
		return;
	if (all->n == SERVE_MOST_MODELS) {
		if (!full_told)
			fprintf(stderr, "jitserve: --models-dir has more than %d models; the others are not served.\n",
			        SERVE_MOST_MODELS);
		full_told = true;
		return;
	}
	char *path = strdup(p->path), *name = strdup(p->name); /* for as long as the program runs */
	if (name)
		name[model_name_stem(name)] = 0;
	if (!path || !name || !models_add(all, path, name, NULL, &ignored))
		free(path); /* one of that name is there */
	free(name);
}

/* A model that is open stays so without its file, and is no longer found. */
static void see_who_has_gone(struct models *all)
{
	for (size_t i = (size_t)serve.n_models; i < all->n; i++)
		if (!all->list[i].made)
			all->list[i].gone = access(all->list[i].path, F_OK) != 0;
}

static void look(struct models *all)
{
	struct model_search s;
	struct error ignored = { 0 };

	pthread_mutex_lock(&lock);
	if (model_search_folder(&s, serve.models_dir, &ignored))
		for (size_t i = 0; i < s.n; i++)
			add(all, &s.found[i]);
	model_search_free(&s);
	see_who_has_gone(all);
	pthread_mutex_unlock(&lock);
}

bool serve_folder_open(struct models *all, struct error *err)
{
	struct stat st;

	if (!serve.models_dir)
		return true;
	if (stat(serve.models_dir, &st) != 0 || !S_ISDIR(st.st_mode) || access(serve.models_dir, R_OK | X_OK) != 0)
		return error_set(err, ERROR_IO, "--models-dir is %s, which is no folder that can be read",
		                 serve.models_dir);
	all->by_name = true;
	all->look = look;
	look(all);
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
