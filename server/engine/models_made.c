/* server/engine/models_made.c - entries of models that clients make and take away while the server runs.
 *
 * An entry is filled while it is not found, and found from then on until its model is taken away. It is used again when
 * no request is left that may have found it, and the model is not in memory.
 */
#include <stdio.h>
#include <unistd.h>

#include "server/engine/loader.h"
#include "server/engine/model_events.h"
#include "server/engine/models.h"

enum { PATIENCE_MS = 200 };

/* One that no request reads any more. NULL: none. */
static struct served *find_free(struct models *all)
{
	const unsigned epoch = readers_advance(&all->readers);

	for (size_t i = 0; i < all->n; i++) {
		struct served *m = &all->list[i];
		if (m->made && m->gone && epoch - m->left >= 2 && (!all->loader || loader_forget(all->loader, m)))
			return m;
	}
	if (all->n == MODELS_MAX)
		return NULL;
	struct served *m = &all->list[all->n];
	m->made = true;
	m->gone = true;
	m->left = epoch - 2;
	all->n++;
	return m;
}

static bool any_left(const struct models *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].made && all->list[i].gone)
			return true;
	return false;
}

struct served *models_entry(struct models *all, const char *path, const char *name, long created)
{
	struct served *m;

	models_lock();
	/* The request that took the last one away may still be sending its answer. */
	for (int i = 0; !(m = find_free(all)) && any_left(all) && i < PATIENCE_MS; i++) {
		models_unlock();
		usleep(1000);
		models_lock();
	}
	if (m) {
		m->path = path;
		m->created = created;
		m->description[0] = 0;
		m->info = JIT_MODEL_INFO();
		m->fingerprint = 0;
		m->lost[0] = 0;
		if (m->adapters)
			served_adapters_clear(m->adapters);
		snprintf(m->name, sizeof m->name, "%s", name);
		snprintf(m->file, sizeof m->file, "%s", name);
	}
	models_unlock();
	return m;
}

void models_show(struct models *all, struct served *m, struct served *old)
{
	models_lock();
	m->gone = false;
	if (old)
		models_take_away(all, old);
	models_unlock();
	model_events_list_changed();
}

void models_take_away(struct models *all, struct served *m)
{
	m->left = atomic_load(&all->readers.epoch);
	m->gone = true;
	readers_advance(&all->readers);
	if (all->loader)
		loader_unload(all->loader, m, false);
}

bool models_remove(struct models *all, struct served *m, struct refusal *r)
{
	if (!all->maker->remove(all, m, r))
		return false;
	model_events_tell(m->name, "model_remove");
	return true;
}
