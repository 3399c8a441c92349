/* server/engine/served_adapters.c - the adapters of one of the server's models (served_adapters.h). */
#include "server/engine/served_adapters_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* ---- one in memory */

static struct loaded_adapter *load(jit_model *m, const char *path, unsigned id, jit_error *err)
{
	struct loaded_adapter *l = calloc(1, sizeof *l);
	jit_adapter_info info = JIT_ADAPTER_INFO();

	if (!l) {
		*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "no memory for an adapter" };
		return NULL;
	}
	if (!(l->adapter = jit_adapter_open(m, path, err))) {
		free(l);
		return NULL;
	}
	jit_adapter_get_info(l->adapter, &info, NULL);
	l->holders = 1;
	l->bytes = info.bytes;
	l->fingerprint = info.fingerprint;
	l->begins = info.invocation > 0;
	l->id = id;
	return l;
}

struct loaded_adapter *loaded_adapter_hold(struct loaded_adapter *l)
{
	atomic_fetch_add(&l->holders, 1);
	return l;
}

void loaded_adapter_drop(struct loaded_adapter *l)
{
	if (!l || atomic_fetch_sub(&l->holders, 1) != 1)
		return;
	jit_adapter_close(l->adapter);
	free(l);
}

/* ---- rows, under the lock */

/* As ollama's clients write names, ":latest" may stand behind. */
static bool is_called(const struct adapter_row *w, const char *name)
{
	const size_t n = w->name ? strlen(w->name) : 0;

	return n && strncmp(w->name, name, n) == 0 && (!name[n] || strcmp(name + n, ":latest") == 0);
}

struct adapter_row *adapter_row_named(struct served_adapters *all, const char *name)
{
	for (unsigned i = 0; i < all->n; i++)
		if (is_called(&all->row[i], name))
			return &all->row[i];
	return NULL;
}

struct adapter_row *adapter_row_of(struct served_adapters *all, int64_t id)
{
	for (unsigned i = 0; i < all->n; i++)
		if (all->row[i].id == id)
			return &all->row[i];
	return NULL;
}

static void free_row(struct adapter_row *w)
{
	free(w->name);
	free(w->path);
	free(w->shown);
	loaded_adapter_drop(w->loaded);
}

/* NULL: no memory. */
static struct adapter_row *add_row(struct served_adapters *all, const char *name, const char *path, const char *shown)
{
	struct adapter_row *w = &all->row[all->n];

	*w = (struct adapter_row){
		.path = strdup(path), .shown = strdup(shown), .id = all->next_id, .created = (long)time(NULL)
	};
	if (name)
		w->name = strdup(name);
	if (!w->path || !w->shown || (name && !w->name)) {
		free_row(w);
		return NULL;
	}
	all->next_id++;
	all->n++;
	all->were_named |= name != NULL;
	return w;
}

/* ---- a model's list */

struct served_adapters *served_adapters_open(void)
{
	struct served_adapters *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	pthread_mutex_init(&all->lock, NULL);
	pthread_mutex_init(&all->loading, NULL);
	return all;
}

void served_adapters_close(struct served_adapters *all)
{
	if (!all)
		return;
	for (unsigned i = 0; i < all->n; i++)
		free_row(&all->row[i]);
	pthread_mutex_destroy(&all->lock);
	pthread_mutex_destroy(&all->loading);
	free(all);
}

bool served_adapters_add(struct served_adapters *all, const char *name, const char *path, float own, float usual,
                         struct error *err)
{
	if (all->n == JIT_ADAPTERS_MOST)
		return error_set(err, ERROR_ARGUMENT, "%s is one adapter too many, expected at most %d of a model",
		                 path, JIT_ADAPTERS_MOST);
	if (name && adapter_row_named(all, name))
		return error_set(err, ERROR_ARGUMENT, "two adapters are called %s", name);
	struct adapter_row *w = add_row(all, name, path, path);
	if (!w)
		return error_set(err, ERROR_MEMORY, "no memory for the list of adapters");
	w->own = own;
	w->usual = usual;
	return true;
}

bool served_adapters_enter(struct served_adapters *all, jit_model *m, jit_error *err)
{
	for (unsigned i = 0; i < all->n; i++) {
		struct adapter_row *w = &all->row[i];
		jit_error why = { 0 };
		w->loaded = load(m, w->path, w->id, &why);
		snprintf(w->why, sizeof w->why, "%.*s", (int)sizeof w->why - 1, why.message);
		if (w->loaded || w->by_request)
			continue;
		*err = why;
		served_adapters_leave(all);
		return false;
	}
	return true;
}

void served_adapters_leave(struct served_adapters *all)
{
	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->n; i++) {
		struct adapter_row *w = &all->row[i];
		w->answers += w->loaded ? atomic_load(&w->loaded->answers) : 0;
		loaded_adapter_drop(w->loaded);
		w->loaded = NULL;
	}
	pthread_mutex_unlock(&all->lock);
}

unsigned served_adapters_count(struct served_adapters *all)
{
	pthread_mutex_lock(&all->lock);
	const unsigned n = all->n;
	pthread_mutex_unlock(&all->lock);
	return n;
}

void served_adapters_clear(struct served_adapters *all)
{
	pthread_mutex_lock(&all->lock);
	while (all->n)
		free_row(&all->row[--all->n]);
	all->were_named = false;
	pthread_mutex_unlock(&all->lock);
}

uint64_t served_adapters_bytes(const struct served_adapters *all)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < all->n; i++)
		n += all->row[i].loaded ? all->row[i].loaded->bytes : 0;
	return n;
}

/* ---- come and go by request */

static bool is_new(struct served_adapters *all, const char *name, struct refusal *r)
{
	pthread_mutex_lock(&all->lock);
	const bool there = adapter_row_named(all, name), full = all->n == JIT_ADAPTERS_MOST;
	pthread_mutex_unlock(&all->lock);
	if (there)
		return refuse(r, 400, "lora_name", "The lora adapter '%.199s' has already been loaded.", name);
	return !full ||
	       refuse(r, 400, "lora_name", "The model has %d adapters, which is all it can have; unload one first.",
	              JIT_ADAPTERS_MOST);
}

static bool refuse_file(struct refusal *r, jit_error *err, const char *path)
{
	refusal_hide_paths(err->message, path);
	return refuse(r, err->code == JIT_ERROR_MEMORY ? 503 : 400, "lora_path", "%s", err->message);
}

static bool take_in(struct served_adapters *all, struct loaded_adapter *l, const char *name, const char *path,
                    const char *shown)
{
	pthread_mutex_lock(&all->lock);
	struct adapter_row *w = add_row(all, name, path, shown);
	if (w) {
		w->own = 1;
		w->by_request = true;
		w->loaded = l;
		l->id = w->id;
	}
	pthread_mutex_unlock(&all->lock);
	return w != NULL;
}

bool served_adapters_load(struct served_adapters *all, jit_model *m, const char *name, const char *path,
                          const char *shown, struct refusal *r)
{
	struct loaded_adapter *l = NULL;
	jit_error err = { 0 };

	pthread_mutex_lock(&all->loading);
	bool ok = is_new(all, name, r);
	if (ok && !(l = load(m, path, 0, &err)))
		ok = refuse_file(r, &err, path);
	if (ok && !take_in(all, l, name, path, shown)) {
		loaded_adapter_drop(l);
		ok = no_memory(r);
	}
	pthread_mutex_unlock(&all->loading);
	return ok;
}

bool served_adapters_unload(struct served_adapters *all, const char *name, struct refusal *r)
{
	struct adapter_row gone = { 0 };

	pthread_mutex_lock(&all->lock);
	struct adapter_row *w = adapter_row_named(all, name);
	if (w) {
		gone = *w;
		memmove(w, w + 1, (size_t)(&all->row[--all->n] - w) * sizeof *w);
	}
	pthread_mutex_unlock(&all->lock);
	if (!w)
		return refuse(r, 404, "lora_name", "The lora adapter '%.199s' cannot be found.", name);
	free_row(&gone); /* requests that have it go on with it */
	return true;
}

bool served_adapters_has(struct served_adapters *all, const char *name)
{
	pthread_mutex_lock(&all->lock);
	const bool has = adapter_row_named(all, name);
	pthread_mutex_unlock(&all->lock);
	return has;
}

bool served_adapters_are_named(struct served_adapters *all)
{
	pthread_mutex_lock(&all->lock);
	const bool named = all->were_named;
	pthread_mutex_unlock(&all->lock);
	return named;
}
