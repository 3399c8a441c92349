/* runtime/jitwarm_cache.c - list, verify, gc, export, import: the commands about a cache as a whole. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "jit/array.h"
#include "jit/pack.h"
#include "kernels-templates/templates.h"
#include "runtime/jitwarm.h"
#include "runtime/report.h"

static void print_json(json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(o);
}

static bool this_version(const struct cache_item *i) { return i->readable && i->key.codegen == key_codegen(i->key.target); }

static const char *state_of(const struct cache_item *i)
{
	return !i->readable ? "unreadable" : i->key.codegen == key_codegen(i->key.target) ? "good" : "of another version";
}

/* ---- list */

struct listing { json_t *entries; uint64_t n, good, code_bytes, stored_bytes; };

static bool list_item(const struct cache_item *i, void *user)
{
	struct listing *l = user;
	char text[KEY_TEXT_MAX] = "", name[TEMPLATE_SCHEDULE_NAME], gain[64] = "";
	bool several = this_version(i) && i->key.kind == KEY_MATMUL;
	double found = several ? warm_tuned_gain(&i->key) : 0;

	if (i->readable)
		key_text(&i->key, text, sizeof text);
	if (found > 0)
		snprintf(gain, sizeof gain, "; here %.2f times as fast as the usual way", found);
	l->n++;
	l->good += this_version(i);
	l->code_bytes += i->code_bytes;
	l->stored_bytes += i->stored_bytes;
	if (l->entries) {
		json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:s}", "key", text, "state", state_of(i), "code_bytes", (json_int_t)i->code_bytes, "stored_bytes", (json_int_t)i->stored_bytes, "path", i->path);
		if (several)
			report_schedule(o, &i->key);
		if (found > 0)
			json_object_set_new(o, "tuned_gain", json_real(found));
		json_array_append_new(l->entries, o);
	} else {
		bool chosen = several && (i->key.schedule || found > 0);
		printf("%8" PRIu32 " %8" PRIu64 "  %s%s%s%s  %s%s%s%s%s\n", i->code_bytes, i->stored_bytes, *text ? text : "?", this_version(i) ? "" : " (", this_version(i) ? "" : state_of(i),
		       this_version(i) ? "" : ")", i->path, chosen ? " (" : "", chosen ? template_schedule_name(&i->key, name, sizeof name) : "", gain, chosen ? ")" : "");
	}
	return true;
}

int warm_list(void)
{
	struct error e = { 0 };
	struct listing l = { .entries = warm.json ? json_array() : NULL };
	struct cache *c = warm_open_cache(true, &e);
	bool ok = c && cache_each(c, list_item, &l, &e);

	cache_close(c);
	if (ok && warm.json)
		print_json(json_pack("{s:I, s:I, s:I, s:I, s:O}", "entries", (json_int_t)l.n, "good", (json_int_t)l.good, "code_bytes", (json_int_t)l.code_bytes,
			"stored_bytes", (json_int_t)l.stored_bytes, "list", l.entries));
	else if (ok && !warm.quiet)
		fprintf(stderr, "%" PRIu64 " entries, %" PRIu64 " of this version; %.2f MiB of code in %.2f MiB\n", l.n, l.good, (double)l.code_bytes / 0x1p20, (double)l.stored_bytes / 0x1p20);
	json_decref(l.entries);
	return ok ? WARM_DONE : warm_fail(&e);
}

/* ---- verify: source by source, because a cache answers with the first that has a key */

struct verification {
	struct cache_item *item; size_t n, capacity;
	json_t *wrong;
	uint64_t same, different, damaged, other_version, removed;
};

static bool keep_item(const struct cache_item *i, void *user)
{
	struct verification *v = user;

	if (!array_grow((void **)&v->item, &v->capacity, v->n + 1, sizeof *v->item))
		return false;
	v->item[v->n++] = *i;
	return true;
}

static void say_wrong(struct verification *v, const struct cache_item *i, const char *what)
{
	char text[KEY_TEXT_MAX] = "";

	if (i->key.kind)
		key_text(&i->key, text, sizeof text);
	if (v->wrong)
		json_array_append_new(v->wrong, json_pack("{s:s, s:s, s:s}", "key", text, "what", what, "path", i->path));
	else
		printf("%s: %s%s%s\n", i->path, text, *text ? " " : "", what);
}

static void verify_item(struct verification *v, struct cache *c, const struct cache_item *i)
{
	struct object stored = { 0 }, fresh = { 0 };
	struct error why = { 0 };
	unsigned removed = 0;
	char what[600];

	if (i->readable && i->key.codegen != key_codegen(i->key.target)) {
		v->other_version++;
		return;
	}
	if (!i->readable || !cache_load(c, &i->key, &stored, NULL)) {
		v->damaged++;
		say_wrong(v, i, "is damaged");
	} else if (!compile_key(&fresh, &i->key, template_build, NULL, NULL, &why)) {
		v->different++;
		snprintf(what, sizeof what, "cannot be made: %s", why.text);
		say_wrong(v, i, what);
	} else if (!warm_object_same(&stored, &fresh)) {
		v->different++;
		say_wrong(v, i, "differs from what is made now");
		if (warm.remove && cache_remove(c, &i->key, &removed, NULL))
			v->removed += removed;
	} else {
		v->same++;
	}
	object_free(&stored);
	object_free(&fresh);
}

static bool verify_source(struct verification *v, const char *path, struct error *err)
{
	struct cache *c = cache_open(path, &(struct cache_options){ .read_only = !warm.remove }, err);
	uint64_t sound, bad;

	v->n = 0;
	bool ok = c && cache_each(c, keep_item, v, err);
	for (size_t i = 0; ok && i < v->n; i++)
		verify_item(v, c, &v->item[i]);
	if (ok && warm.remove && (ok = cache_verify(c, true, NULL, NULL, &sound, &bad, err)))
		v->removed += bad;
	cache_close(c);
	return ok;
}

int warm_verify(void)
{
	struct error e = { 0 };
	struct verification v = { .wrong = warm.json ? json_array() : NULL };
	struct cache *c = warm_open_cache(true, &e);
	bool ok = c != NULL;

	for (unsigned i = 0; ok && i < cache_source_count(c); i++) {
		struct cache_source s;
		cache_source_get(c, i, &s);
		ok = verify_source(&v, s.path, &e);
	}
	cache_close(c);
	if (ok && warm.json)
		print_json(json_pack("{s:I, s:I, s:I, s:I, s:I, s:O}", "same", (json_int_t)v.same, "different", (json_int_t)v.different, "damaged", (json_int_t)v.damaged,
			"other_version", (json_int_t)v.other_version, "removed", (json_int_t)v.removed, "wrong", v.wrong));
	else if (ok && !warm.quiet)
		fprintf(stderr, "%" PRIu64 " are what is made now, %" PRIu64 " differ, %" PRIu64 " are damaged, %" PRIu64 " are of another version; %" PRIu64 " removed\n", v.same, v.different,
		        v.damaged, v.other_version, v.removed);
	json_decref(v.wrong);
	free(v.item);
	return !ok ? warm_fail(&e) : v.different || v.damaged ? WARM_NO : WARM_DONE;
}

/* ---- gc, export, import */

int warm_gc(void)
{
	struct error e = { 0 };
	struct cache_gc g;
	struct cache *c = warm_open_cache(false, &e);
	bool ok = c && cache_gc(c, (uint64_t)(warm.limit < 0 ? CACHE_DEFAULT_LIMIT_MIB : warm.limit) << 20, &g, &e);

	cache_close(c);
	if (!ok)
		return warm_fail(&e);
	if (warm.json)
		print_json(json_pack("{s:I, s:I, s:I, s:I, s:I}", "entries", (json_int_t)g.entries, "bytes", (json_int_t)g.bytes, "removed", (json_int_t)g.removed,
			"removed_bytes", (json_int_t)g.removed_bytes, "in_use", (json_int_t)g.in_use));
	else if (!warm.quiet)
		fprintf(stderr, "%" PRIu64 " entries of %.2f MiB removed, %" PRIu64 " of %.2f MiB left, %" PRIu64 " of them in use\n", g.removed, (double)g.removed_bytes / 0x1p20,
		        g.entries, (double)g.bytes / 0x1p20, g.in_use);
	return WARM_DONE;
}

struct choice { const struct target *target[TARGET_COUNT]; int n; };

static bool is_chosen(const struct key *k, void *user)
{
	const struct choice *c = user;

	for (int i = 0; i < c->n; i++)
		if (c->target[i]->id == k->target)
			return k->codegen == key_codegen(k->target);
	return false;
}

static int moved(bool ok, uint64_t n, const struct error *e, const char *what)
{
	if (!ok)
		return warm_fail(e);
	if (warm.json)
		print_json(json_pack("{s:I}", what, (json_int_t)n));
	else if (!warm.quiet)
		fprintf(stderr, "%" PRIu64 " entries %s\n", n, what);
	return WARM_DONE;
}

int warm_export(void)
{
	struct error e = { 0 };
	struct choice choice = { .n = 0 };
	uint64_t n = 0;
	bool ok = warm.targets.n == 0 || (choice.n = warm_targets(choice.target, &e)) > 0;
	struct cache *c = ok ? warm_open_cache(true, &e) : NULL;

	ok = c && cache_export(c, warm.operand[0], choice.n ? is_chosen : NULL, &choice, &n, &e);
	cache_close(c);
	return moved(ok, n, &e, "exported");
}

int warm_import(void)
{
	struct error e = { 0 };
	uint64_t n = 0;
	struct cache *c = warm_open_cache(false, &e);
	bool ok = c && cache_import(c, warm.operand[0], &n, &e);

	cache_close(c);
	return moved(ok, n, &e, "imported");
}
