/* jit/store/cache_pack.c - kernels of a cache to a pack, and those of a pack into a cache. */
#include <stdlib.h>
#include <string.h>

#include "jit/store/cache_state.h"
#include "jit/program_key.h"
#include "jit/store/driver_code.h"
#include "jit/store/pack.h"

/* --- to a pack and back */

struct export
{
	struct cache *cache;
	bool (*keep)(const struct key *, void *);
	void *user;
	struct pack_item *item;
	size_t n, room;
	bool failed;
	struct error *err;
};

static bool exported_already(const struct export *e, const struct key *key)
{
	for (size_t i = 0; i < e->n; i++)
		if (key_equal(&e->item[i].key, key))
			return true;
	return false;
}

static bool export_item(const struct cache_item *item, void *user)
{
	struct export *e = user;
	struct object object;

	if (item->failed) {
		e->failed = true;
		return error_set(e->err, ERROR_IO,
		                 "%s%s%s: what is kept there could not be read, and the pack would lack it", item->path,
		                 *item->file ? "/" : "", item->file);
	}
	if (item->trouble ||
	    (e->keep ? !e->keep(&item->key, e->user)
	             : item->key.codegen != key_codegen(item->key.target) && !driver_code_is(&item->key, NULL)) ||
	    exported_already(e, &item->key))
		return true;
	enum record_answer answer = cache_read(e->cache, item, &object, e->err);
	if (answer != RECORD_FOUND) { /* gone since it was listed, or not to be read */
		e->failed = answer == RECORD_FAILED;
		return !e->failed;
	}
	if (e->n == e->room) {
		struct pack_item *wider = realloc(e->item, (e->room = 2 * e->room + 64) * sizeof *wider);
		if (!wider) {
			object_free(&object);
			e->failed = true;
			return error_set(e->err, ERROR_MEMORY, "no memory for a pack of %zu objects", e->n);
		}
		e->item = wider;
	}
	e->item[e->n].key = item->key;
	e->item[e->n++].object = object;
	return true;
}

bool cache_export(struct cache *c, const char *pack, bool (*keep)(const struct key *, void *), void *user, uint64_t *n,
                  struct error *err)
{
	struct export e = { .cache = c, .keep = keep, .user = user, .err = err };
	bool good = cache_each(c, export_item, &e, err) && !e.failed && pack_write(pack, e.item, e.n, err);

	*n = e.n;
	for (size_t i = 0; i < e.n; i++)
		object_free(&e.item[i].object);
	free(e.item);
	return good;
}

/* --- from a pack: first all of it is read and judged, then what was judged is stored */

/* Whether an object is what is made for its key now. */
static bool is_genuine(const struct key *key, const struct object *o, const char *pack, const struct cache_maker *maker,
                       struct error *err)
{
	const bool driver = driver_code_is(key, NULL);
	char text[KEY_TEXT_MAX];
	struct object fresh = { 0 };
	struct error why = { 0 };

	key_text(key, text, sizeof text);
	if (!driver && (!key_codegen(key->target) || key->codegen != key_codegen(key->target)))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the code of %s in the pack %s was made by another version of jitrun, so it cannot be "
		                 "made anew and compared",
		                 text, pack);
	if (!(driver ? driver_code_make(maker->linker, key, maker->build, &fresh, &why)
	             : compile_key(&fresh, key, maker->build, NULL, NULL, &why)))
		return error_set(err, why.code == ERROR_MEMORY ? ERROR_MEMORY : ERROR_FORMAT,
		                 "the code of %s in the pack %s cannot be made anew to be compared: %s", text, pack,
		                 why.text);
	bool same = record_same(&fresh, o);
	object_free(&fresh);
	return same || error_set(err, ERROR_FORMAT,
	                         "the code of %s in the pack %s is not what is made for this key: it was altered, or "
	                         "made by other means",
	                         text, pack);
}

static bool read_import(const struct pack *p, size_t i, struct pack_item *out, const char *pack,
                        const struct cache_maker *maker, struct error *err)
{
	char text[KEY_TEXT_MAX];
	struct pack_entry e;

	pack_get(p, i, &e);
	out->key = e.key;
	switch (pack_read(p, i, &out->object, err)) {
	case RECORD_FOUND: return !maker || is_genuine(&e.key, &out->object, pack, maker, err);
	case RECORD_FAILED: return false;
	default:
		return error_set(err, ERROR_FORMAT, "the code of %s in the pack %s is damaged",
		                 key_text(&e.key, text, sizeof text), pack);
	}
}

/* A program's key alone does not say what it is made of. */
static void learn_programs(const struct pack *p)
{
	struct pack_entry e;

	for (size_t i = 0; i < pack_count(p) && pack_get(p, i, &e); i++) {
		struct object o = { 0 };
		if (e.key.kind == KEY_PROGRAM && !driver_code_is(&e.key, NULL) &&
		    pack_read(p, i, &o, NULL) == RECORD_FOUND)
			program_learn(&o, &e.key);
		object_free(&o);
	}
}

bool cache_import(struct cache *c, const char *pack, const struct cache_maker *maker, uint64_t *n, struct error *err)
{
	char name[256];

	*n = 0;
	if (!c->sink)
		return error_set(err, ERROR_ARGUMENT,
		                 "the cache has no directory that can be written, so nothing can be imported into it");
	struct pack *p = pack_open(pack, err);
	if (!p)
		return false;
	size_t all = pack_count(p);
	struct pack_item *item = calloc(all + 1, sizeof *item);
	bool good = item ? true : error_set(err, ERROR_MEMORY, "no memory for a list of %zu entries", all);
	error_quote(name, sizeof name, pack, strlen(pack));
	if (maker)
		learn_programs(p);
	for (size_t i = 0; good && i < all; i++)
		good = read_import(p, i, &item[i], name, maker, err);
	for (size_t i = 0; good && i < all; i++)
		*n += good = cache_store(c, &item[i].key, &item[i].object, err);
	for (size_t i = 0; item && i < all; i++)
		object_free(&item[i].object);
	free(item);
	pack_close(p);
	return good;
}
