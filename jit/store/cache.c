/* jit/store/cache.c - the search path: sources in order, their counters, and what is done to all of them.
 *
 * Owns: which source is asked and which receives. What is in a directory is jit/store/cache_dir.c's, what is in a pack
 * jit/store/pack.c's.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "jit/store/cache_dir.h"
#include "jit/store/cache_state.h"
#include "jit/store/pack.h"

/* --- opening */

bool cache_default_path(char *out, size_t cap)
{
	const char *path = getenv("JITRUN_CACHE"), *base = getenv("XDG_CACHE_HOME"), *rest = "/jitrun";

	if (path && path[0]) {
		base = path;
		rest = "";
	} else if (!base || base[0] != '/') { /* a relative one counts as unset */
		base = getenv("HOME");
		rest = "/.cache/jitrun";
	}
	if (!base || (base != path && base[0] != '/')) /* nothing is made below whatever directory this runs in */
		return false;
	int n = snprintf(out, cap, "%s%s", base, rest);
	return n > 0 && (size_t)n < cap;
}

static bool is_pack(const char *path)
{
	static const char suffix[] = ".jkp";
	size_t n = strlen(path), s = sizeof suffix - 1;
	struct stat st;

	if (stat(path, &st) == 0)
		return S_ISREG(st.st_mode);
	return n > s && strcmp(path + n - s, suffix) == 0;
}

static bool open_source(struct cache *c, const char *path, size_t n, const struct cache_options *opt, struct error *err)
{
	if (n == 0)
		return error_set(err, ERROR_ARGUMENT,
		                 "a source of the cache is empty: between two colons, or at an end, stands nothing");
	if (c->n == CACHE_MAX_SOURCES)
		return error_set(err, ERROR_ARGUMENT, "the cache has more than %d sources", CACHE_MAX_SOURCES);
	struct source *s = &c->source[c->n];
	if (!(s->path = strndup(path, n)))
		return error_set(err, ERROR_MEMORY, "no memory for the cache");
	c->n++;
	if (is_pack(s->path))
		return (s->pack = pack_open(s->path, err)) != NULL;
	if (!(s->dir = cache_dir_open(s->path, opt, err)))
		return false;
	if (!c->sink && cache_dir_writable(s->dir))
		c->sink = s;
	return true;
}

struct cache *cache_open(const char *path, const struct cache_options *opt, struct error *err)
{
	static const struct cache_options defaults;
	struct cache *c = calloc(1, sizeof *c);
	bool good = c != NULL;

	if (!c)
		error_set(err, ERROR_MEMORY, "no memory for the cache");
	if (good && opt && opt->first)
		good = open_source(c, opt->first, strlen(opt->first), opt, err);
	for (const char *s = path, *end; good && s; s = end + 1) {
		end = strchrnul(s, ':');
		good = open_source(c, s, (size_t)(end - s), opt ? opt : &defaults, err);
		if (!*end)
			break;
	}
	if (good)
		return c;
	cache_close(c);
	return NULL;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->n; i++) {
		cache_dir_close(c->source[i].dir);
		pack_close(c->source[i].pack);
		free(c->source[i].path);
	}
	free(c);
}

/* --- kernels */

enum { HOLD_AT_ONCE = 128 };

static enum record_answer source_load(struct source *s, const struct key *key, struct object *out, uint64_t *file,
                                      struct error *err)
{
	enum record_answer answer =
		s->dir ? cache_dir_load(s->dir, key, out, file, err) : pack_find(s->pack, key, out, err);

	++*(answer == RECORD_FOUND ? &s->hits : &s->misses);
	s->damaged += answer == RECORD_DAMAGED;
	s->failed += answer == RECORD_FAILED;
	return answer;
}

/* What is missing yet, from one source. Returns how much that was. */
static size_t source_load_all(struct source *s, unsigned number, const struct key *const *key, size_t n,
                              struct object *out, enum record_answer *answer, unsigned *source, struct error *err)
{
	uint64_t file[HOLD_AT_ONCE];
	size_t held = 0, found = 0;

	for (size_t i = 0; i < n; i++) {
		if (answer[i] == RECORD_FOUND)
			continue;
		enum record_answer here = source_load(s, key[i], &out[i], &file[held], err);
		answer[i] = here > answer[i] ? here : answer[i];
		if (here != RECORD_FOUND)
			continue;
		source[i] = number;
		found++;
		if (s->dir && ++held == HOLD_AT_ONCE) {
			cache_dir_hold(s->dir, file, held);
			held = 0;
		}
	}
	if (s->dir)
		cache_dir_hold(s->dir, file, held);
	return found;
}

static void load_all(struct cache *c, const struct key *const *key, size_t n, struct object *out,
                     enum record_answer *answer, unsigned *source, struct error *err)
{
	size_t found = 0;

	memset(out, 0, n * sizeof *out);
	for (size_t i = 0; i < n; i++)
		answer[i] = RECORD_ABSENT;
	for (unsigned i = 0; i < c->n && found < n; i++)
		found += source_load_all(&c->source[i], i, key, n, out, answer, source, err);
	c->hits += found;
	c->misses += n - found;
}

void cache_load_all(struct cache *c, const struct key *const *key, size_t n, struct object *out,
                    enum record_answer *answer, unsigned *source)
{
	load_all(c, key, n, out, answer, source, NULL);
}

enum record_answer cache_load(struct cache *c, const struct key *key, struct object *out, unsigned *source,
                              struct error *err)
{
	enum record_answer answer;
	struct error why = { 0 };
	unsigned number;

	load_all(c, &key, 1, out, &answer, &number, &why);
	if (source && answer == RECORD_FOUND)
		*source = number;
	if (answer == RECORD_FAILED)
		error_set(err, why.code, "%s", why.text);
	return answer;
}

static bool store(struct cache *c, const struct key *key, const struct object *o, struct error *err)
{
	struct source *s = c->sink;
	uint64_t evicted = 0;

	if (!s) {
		c->unstored++;
		return error_set(err, ERROR_ARGUMENT, "the cache has no directory that can be written");
	}
	bool good = cache_dir_store(s->dir, key, o, &evicted, err);
	++*(good ? &s->stored : &s->store_failed);
	s->evicted += evicted;
	return good;
}

bool cache_store(struct cache *c, const struct key *key, const struct object *o, struct error *err)
{
	struct error why = { 0 };

	if (store(c, key, o, &why))
		return true;
	if (!atomic_flag_test_and_set(&c->store_failing)) {
		c->store_trouble = why;
		c->has_trouble = true;
	}
	return error_set(err, why.code, "%s", why.text);
}

const char *cache_store_trouble(const struct cache *c) { return c->has_trouble ? c->store_trouble.text : NULL; }

const char *cache_directory(const struct cache *c) { return c->sink ? c->sink->path : NULL; }

unsigned cache_source_count(const struct cache *c) { return c->n; }

void cache_source_get(const struct cache *c, unsigned i, struct cache_source *out)
{
	const struct source *s = &c->source[i];

	assert(i < c->n);
	*out = (struct cache_source){
		.path = s->path,
		.kind = s->dir ? CACHE_DIRECTORY : CACHE_PACK,
		.writable = s->dir && cache_dir_writable(s->dir),
		.count = { .hits = s->hits,
		           .misses = s->misses,
		           .damaged = s->damaged,
		           .failed = s->failed,
		           .stored = s->stored,
		           .store_failed = s->store_failed,
		           .evicted = s->evicted }
	};
}

void cache_count(const struct cache *c, struct cache_counters *out)
{
	struct cache_source s;

	*out = (struct cache_counters){ .hits = c->hits, .misses = c->misses, .store_failed = c->unstored };
	for (unsigned i = 0; i < c->n; i++) {
		cache_source_get(c, i, &s);
		out->damaged += s.count.damaged;
		out->failed += s.count.failed;
		out->stored += s.count.stored;
		out->store_failed += s.count.store_failed;
		out->evicted += s.count.evicted;
	}
}

/* --- all of it */

struct list {
	struct cache_item *item;
	size_t n;
};

static bool list_pack(struct source *s, struct list *list, struct error *err)
{
	list->n = pack_count(s->pack);
	if (!(list->item = calloc(list->n + 1, sizeof *list->item)))
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu entries", list->n);
	for (size_t i = 0; i < list->n; i++) {
		struct cache_item *item = &list->item[i];
		struct error why = { 0 };
		struct pack_entry e;
		struct object object;
		pack_get(s->pack, i, &e);
		*item = (struct cache_item){
			.key = e.key, .code_bytes = e.object.code_bytes, .stored_bytes = e.stored_bytes, .path = s->path
		};
		enum record_answer answer = pack_read(s->pack, i, &object, &why);
		item->readable = answer == RECORD_FOUND;
		item->failed = answer == RECORD_FAILED;
		if (why.code == ERROR_MEMORY)
			return error_set(err, why.code, "%s", why.text);
		if (item->readable)
			object_free(&object);
		else
			item->trouble = item->failed ? "unreadable" : "damaged";
	}
	return true;
}

struct named {
	const struct cache_item *item;
	char text[KEY_TEXT_MAX];
};

static int named_order(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = x->item->readable != y->item->readable ? (x->item->readable ? -1 : 1) : strcmp(x->text, y->text);

	if (order == 0)
		order = memcmp(&x->item->key, &y->item->key, sizeof x->item->key);
	return order ? order : strcmp(x->item->file, y->item->file);
}

static bool visit_list(const struct list *list, bool (*visit)(const struct cache_item *, void *), void *user,
                       bool *stopped, struct error *err)
{
	struct named *named = malloc((list->n + 1) * sizeof *named);

	if (!named)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu entries", list->n);
	for (size_t i = 0; i < list->n; i++) {
		named[i].item = &list->item[i];
		key_text(&list->item[i].key, named[i].text, sizeof named[i].text);
	}
	qsort(named, list->n, sizeof *named, named_order);
	for (size_t i = 0; i < list->n && !*stopped; i++)
		*stopped = !visit(named[i].item, user);
	free(named);
	return true;
}

bool cache_each(struct cache *c, bool (*visit)(const struct cache_item *, void *), void *user, struct error *err)
{
	bool good = true, stopped = false;

	for (unsigned i = 0; i < c->n && good && !stopped; i++) {
		struct source *s = &c->source[i];
		struct list list = { 0 };
		good = s->dir ? cache_dir_list(s->dir, &list.item, &list.n, err) : list_pack(s, &list, err);
		for (size_t k = 0; good && k < list.n; k++)
			list.item[k].source = i;
		good = good && visit_list(&list, visit, user, &stopped, err);
		free(list.item);
	}
	return good;
}

struct keys {
	struct key *key;
	size_t n, capacity;
	bool full;
};

static bool keep_key(const struct cache_item *item, void *user)
{
	struct keys *k = user;

	if (!item->readable)
		return true;
	k->full = !array_grow((void **)&k->key, &k->capacity, k->n + 1, sizeof *k->key);
	if (!k->full)
		k->key[k->n++] = item->key;
	return !k->full;
}

bool cache_keys(struct cache *c, struct key **keys, size_t *n, struct error *err)
{
	struct keys k = { 0 };
	bool good = cache_each(c, keep_key, &k, err);

	*keys = k.key;
	*n = k.n;
	return good && (!k.full || error_set(err, ERROR_MEMORY, "no memory for a list of %zu keys", k.n + 1));
}

struct verification {
	struct cache *cache;
	bool remove_bad, failed;
	void (*report)(const struct cache_item *, void *);
	void *user;
	uint64_t *sound, *bad;
	struct error *err;
};

enum record_answer cache_read(struct cache *c, const struct cache_item *item, struct object *out, struct error *err)
{
	struct source *s = &c->source[item->source];

	return s->dir ? cache_dir_read(s->dir, item, out, err) : pack_find(s->pack, &item->key, out, err);
}

static bool verify_item(const struct cache_item *seen, void *user)
{
	struct verification *v = user;
	struct source *s = &v->cache->source[seen->source];
	struct cache_item item = *seen;
	struct object object;

	if (!item.trouble && s->dir) { /* those of packs were unpacked to be listed */
		enum record_answer answer = cache_dir_read(s->dir, &item, &object, v->err);
		if (answer == RECORD_FAILED)
			return !(v->failed = true);
		if (answer == RECORD_FOUND)
			object_free(&object);
		else
			item.trouble = "damaged";
	}
	++*(item.trouble ? v->bad : v->sound);
	if (!item.trouble)
		return true;
	if (v->report)
		v->report(&item, v->user);
	if (v->remove_bad && !item.failed && s->dir && cache_dir_writable(s->dir))
		v->failed = !cache_dir_remove(s->dir, &item, v->err);
	return !v->failed;
}

bool cache_verify(struct cache *c, bool remove_bad, void (*report)(const struct cache_item *, void *), void *user,
                  uint64_t *sound, uint64_t *bad, struct error *err)
{
	struct verification v = { .cache = c,
		                  .remove_bad = remove_bad,
		                  .report = report,
		                  .user = user,
		                  .sound = sound,
		                  .bad = bad,
		                  .err = err };

	*sound = *bad = 0;
	return cache_each(c, verify_item, &v, err) && !v.failed;
}

bool cache_remove_item(struct cache *c, const struct cache_item *item, struct error *err)
{
	struct cache_dir *d = c->source[item->source].dir;

	return d && cache_dir_writable(d)
	               ? cache_dir_remove(d, item, err)
	               : error_set(err, ERROR_ARGUMENT, "nothing can be removed from %s", item->path);
}

bool cache_remove(struct cache *c, const struct key *key, unsigned *removed, struct error *err)
{
	*removed = 0;
	for (unsigned i = 0; i < c->n; i++) {
		struct cache_dir *d = c->source[i].dir;
		bool was_there = false;
		if (!d || !cache_dir_writable(d))
			continue;
		if (!cache_dir_remove_key(d, key, &was_there, err))
			return false;
		*removed += was_there;
	}
	return true;
}

bool cache_size(struct cache *c, bool writable, uint64_t *bytes, uint64_t *entries, struct cache_leftovers *left,
                struct error *err)
{
	struct cache_leftovers all = { 0 };

	*bytes = *entries = 0;
	for (unsigned i = 0; i < c->n; i++)
		if (c->source[i].dir && (!writable || cache_dir_writable(c->source[i].dir)) &&
		    !cache_dir_size(c->source[i].dir, bytes, entries, &all, err))
			return false;
	if (left)
		*left = all;
	return true;
}

bool cache_gc(struct cache *c, uint64_t limit_bytes, struct cache_gc *out, struct error *err)
{
	*out = (struct cache_gc){ 0 };
	for (unsigned i = 0; i < c->n; i++)
		if (c->source[i].dir && cache_dir_writable(c->source[i].dir) &&
		    !cache_dir_gc(c->source[i].dir, limit_bytes, out, err))
			return false;
	return true;
}
