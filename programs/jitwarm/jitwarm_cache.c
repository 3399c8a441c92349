/* programs/jitwarm/jitwarm_cache.c - list, verify, gc, export, import: the commands about a whole cache. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/store/container.h"
#include "jit/store/pack.h"
#include "kernels-templates/templates.h"
#include "programs/jitwarm/jitwarm.h"
#include "runtime/engine/report.h"

static void print_json(json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(o);
}

static bool this_version(const struct cache_item *i)
{
	return i->readable && (i->key.codegen == key_codegen(i->key.target) || driver_code_is(&i->key, NULL));
}

static const char *state_of(const struct cache_item *i)
{
	return i->trouble ? i->trouble : this_version(i) ? "good" : "of another version";
}

/* Temporary files that writers left, if there are any. */
static void say_leftovers(const struct cache_leftovers *left)
{
	if (left->abandoned)
		fprintf(stderr, "%" PRIu64 " temporary files of dead processes, which gc removes\n", left->abandoned);
	if (left->files > left->abandoned)
		fprintf(stderr, "%" PRIu64 " temporary files of other processes, in use now or a moment ago\n",
		        left->files - left->abandoned);
}

/* ---- list */

enum { INDENT = 19 /* of lines that go on: where keys stand */ };
struct listing {
	json_t *entries;
	struct cache *cache;
	uint64_t n, good, bad, code_bytes, stored_bytes;
};

/* What its text calls a user's kernel. */
static const char *name_of(struct cache *c, const struct cache_item *i, char name[OBJECT_NAME])
{
	struct object o = { 0 };

	name[0] = 0;
	if (i->readable && i->key.kind == KEY_USER && cache_read(c, i, &o, NULL) == RECORD_FOUND) {
		memcpy(name, o.name, OBJECT_NAME);
		object_free(&o);
	}
	return name;
}

static bool list_item(const struct cache_item *i, void *user)
{
	struct listing *l = user;
	char called[OBJECT_NAME];
	char text[KEY_TEXT_MAX] = "", name[TEMPLATE_SCHEDULE_NAME], gain[64] = "", path[4096], line[8192];
	char by[DRIVER_CODE_TEXT_MAX], note[WARM_DRIVER_NOTE_MAX];
	struct driver_code maker;
	bool made = i->readable && driver_code_is(&i->key, &maker);
	bool several = this_version(i) && !made && i->key.kind == KEY_MATMUL;
	double found = several ? warm_tuned_gain(&i->key) : 0;

	if (i->key.kind)
		key_text(&i->key, text, sizeof text);
	if (found > 0)
		snprintf(gain, sizeof gain, "; measured here: %.2f times as fast as the default", found);
	l->n++;
	l->good += this_version(i);
	l->bad += !i->readable;
	l->code_bytes += i->code_bytes;
	l->stored_bytes += i->stored_bytes;
	if (l->entries) {
		json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:o}", "key", text, "state", state_of(i), "code_bytes",
		                      (json_int_t)i->code_bytes, "stored_bytes", (json_int_t)i->stored_bytes, "path",
		                      output_string(i->path));
		if (made)
			json_object_set_new(o, "driver", json_string(driver_code_text(maker, by)));
		if (*name_of(l->cache, i, called))
			json_object_set_new(o, "name", output_string(called));
		if (several)
			report_schedule(o, &i->key);
		if (found > 0)
			json_object_set_new(o, "tuned_gain", output_real(found));
		json_array_append_new(l->entries, o);
	} else {
		bool chosen = several && (i->key.schedule || found > 0);
		bool good = this_version(i) && !i->trouble;
		name_of(l->cache, i, called);
		snprintf(line, sizeof line, "%8" PRIu32 " %8" PRIu64 "  %s%s%s%s%s%s%s  %s%s%s%s%s", i->code_bytes,
		         i->stored_bytes, *text ? text : "?", *called ? "  " : "", called,
		         warm_driver_note(&i->key, note), good ? "" : " (", good ? "" : state_of(i), good ? "" : ")",
		         error_quote(path, sizeof path, i->path, strlen(i->path)), chosen ? " (" : "",
		         chosen ? template_schedule_name(&i->key, name, sizeof name) : "", gain, chosen ? ")" : "");
		output_line(stdout, line, INDENT);
	}
	return true;
}

int warm_list(void)
{
	struct error e = { 0 };
	struct listing l = { .entries = warm.json ? json_array() : NULL };
	struct cache_leftovers left;
	uint64_t bytes, entries;
	bool packed = warm.cache && container_is(warm.cache);
	json_t *sections = packed && warm.json ? json_array() : NULL;
	json_t *weights = NULL;
	struct cache *c = packed && !warm_list_packed(warm.cache, sections, &e) ? NULL : warm_open_cache(true, &e);
	l.cache = c;
	bool ok = c && cache_each(c, list_item, &l, &e) && cache_size(c, false, &bytes, &entries, &left, &e) &&
	          warm_list_weights(warm.json ? &weights : NULL, &e);

	cache_close(c);
	if (ok && warm.json)
		print_json(json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:O, s:o*, s:o*}", "entries", (json_int_t)l.n,
		                     "good", (json_int_t)l.good, "unusable", (json_int_t)l.bad, "code_bytes",
		                     (json_int_t)l.code_bytes, "stored_bytes", (json_int_t)l.stored_bytes,
		                     "abandoned_files", (json_int_t)left.abandoned, "list", l.entries, "sections",
		                     sections, "weights", weights));
	else if (ok && !warm.quiet) {
		fprintf(stderr, "%" PRIu64 " entries, %" PRIu64 " of this version", l.n, l.good);
		if (l.bad)
			fprintf(stderr, ", %" PRIu64 " that cannot be used", l.bad);
		fprintf(stderr, "; %.2f MiB of code in %.2f MiB\n", (double)l.code_bytes / 0x1p20,
		        (double)l.stored_bytes / 0x1p20);
		say_leftovers(&left);
	}
	json_decref(l.entries);
	return ok ? WARM_DONE : warm_fail(&e);
}

/* ---- verify */

struct verification {
	struct cache *cache;
	json_t *wrong;
	uint64_t same, different, damaged, other_version, other_driver, users, removed;
	struct error *err;
	bool failed;
};

static void say_wrong(struct verification *v, const struct cache_item *i, const char *what)
{
	char text[KEY_TEXT_MAX] = "", path[4096], file[140];

	if (i->key.kind)
		key_text(&i->key, text, sizeof text);
	if (v->wrong)
		json_array_append_new(v->wrong, json_pack("{s:s, s:s, s:o}", "key", text, "what", what, "path",
		                                          output_string(i->path)));
	else
		printf("%s: %s%s%s\n", error_quote(path, sizeof path, i->path, strlen(i->path)),
		       *text ? text : error_quote(file, sizeof file, i->file, strlen(i->file)),
		       *text || *i->file ? " " : "", what);
}

/* NULL: the stored object is the same as the one generated now. Also NULL, with err set: that one could not be
 * generated, so nothing is known of the stored one. */
static const char *differs(struct cache *c, const struct cache_item *i, const struct object *stored, struct error *err)
{
	struct object fresh = { 0 };
	struct error why = { 0 };

	if (i->key.kind == KEY_PROGRAM)
		warm_learn_program(c, &i->key);
	if (!(driver_code_is(&i->key, NULL) ? driver_code_make(warm_linker(), &i->key, template_build, &fresh, &why)
	                                    : compile_key(&fresh, &i->key, template_build, NULL, NULL, &why))) {
		error_set(err, why.code, "%s%s%s cannot be generated again to compare: %s", i->path,
		          *i->file ? "/" : "", i->file, why.text);
		return NULL;
	}
	bool same = record_same(stored, &fresh);
	object_free(&fresh);
	return same ? NULL : "differs from the code generated now";
}

/* *wrong: what is wrong with a stored object, or NULL; *damaged: it is not intact. False: it cannot be read now. */
static bool judge_item(struct verification *v, const struct cache_item *i, const char **wrong, bool *damaged,
                       char *room, size_t cap)
{
	struct object stored = { 0 };
	enum record_answer answer = i->trouble ? RECORD_DAMAGED : cache_read(v->cache, i, &stored, v->err);

	*damaged = answer == RECORD_DAMAGED;
	*wrong = NULL;
	if (answer == RECORD_DAMAGED) {
		snprintf(room, cap, "is %s", i->trouble ? i->trouble : "damaged");
		*wrong = room;
	} else if (answer == RECORD_FOUND && i->key.kind == KEY_USER) {
		v->users++;                  /* intact; its source is not here, to make it anew */
	} else if (answer == RECORD_FOUND) { /* absent: gone since it was listed */
		*wrong = differs(v->cache, i, &stored, v->err);
		v->same += !*wrong && !v->err->code;
	}
	object_free(&stored);
	return answer != RECORD_FAILED && !v->err->code;
}

static bool verify_item(const struct cache_item *i, void *user)
{
	struct verification *v = user;
	struct cache_source source;
	const char *wrong;
	bool damaged;
	char room[600];

	if (i->readable && !this_version(i)) {
		v->other_version++;
		return true;
	}
	if (i->readable && !i->trouble && driver_code_is(&i->key, NULL) && !driver_code_is_by(&i->key, warm_linker())) {
		v->other_driver++;
		return true;
	}
	if (!judge_item(v, i, &wrong, &damaged, room, sizeof room))
		return !(v->failed = true);
	if (!wrong)
		return true;
	++*(damaged ? &v->damaged : &v->different);
	say_wrong(v, i, wrong);
	cache_source_get(v->cache, i->source, &source);
	if (warm.remove && source.writable && !i->failed) {
		v->failed = !cache_remove_item(v->cache, i, v->err);
		v->removed += !v->failed;
	}
	return !v->failed;
}

static json_t *verified(const struct verification *v, const struct cache_leftovers *left)
{
	json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "same", (json_int_t)v->same, "different",
	                      (json_int_t)v->different, "damaged", (json_int_t)v->damaged, "other_version",
	                      (json_int_t)v->other_version, "removed", (json_int_t)v->removed, "abandoned_files",
	                      (json_int_t)left->abandoned, "wrong", v->wrong);

	if (v->users)
		json_object_set_new(o, "users", json_integer((json_int_t)v->users));
	if (v->other_driver)
		json_object_set_new(o, "other_driver", json_integer((json_int_t)v->other_driver));
	return o;
}

/* --remove makes no directory either, so the cache is first opened as it is. */
static struct cache *open_verified(struct error *err)
{
	struct cache *c = warm_open_cache(true, err);

	if (!c || !warm.remove)
		return c;
	cache_close(c);
	return warm_open_cache(false, err);
}

int warm_verify(void)
{
	struct error e = { 0 };
	struct cache_leftovers left;
	uint64_t bytes, entries;
	struct verification v = { .wrong = warm.json ? json_array() : NULL, .err = &e };
	char wrong[512] = "";

	if (warm.cache && container_is(warm.cache) && !warm_verify_packed(warm.cache, wrong, sizeof wrong, &e))
		return warm_fail(&e);
	if (*wrong) {
		fprintf(stderr, "jitwarm: %s.\n", wrong);
		return WARM_NO;
	}
	v.cache = open_verified(&e);
	bool ok = v.cache && cache_each(v.cache, verify_item, &v, &e) && !v.failed &&
	          cache_size(v.cache, false, &bytes, &entries, &left, &e);

	cache_close(v.cache);
	if (ok && warm.json)
		print_json(verified(&v, &left));
	else if (ok && !warm.quiet) {
		fprintf(stderr,
		        "%" PRIu64 " the same, %" PRIu64 " different, %" PRIu64 " damaged, %" PRIu64
		        " of another version; %" PRIu64 " removed\n",
		        v.same, v.different, v.damaged, v.other_version, v.removed);
		if (v.other_driver)
			fprintf(stderr,
			        "%" PRIu64 " were made by a card's driver and not compared: only that driver can make "
			        "them again (--device)\n",
			        v.other_driver);
		if (v.users)
			fprintf(stderr,
			        "%" PRIu64 " of users' kernels are intact and were not compared: their source is not "
			        "here (jitk test)\n",
			        v.users);
		say_leftovers(&left);
	}
	json_decref(v.wrong);
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
	json_t *weights;
	if (!warm_gc_weights(&weights, &e))
		return warm_fail(&e);
	if (warm.json)
		print_json(json_pack("{s:I, s:I, s:I, s:I, s:I, s:o*}", "entries", (json_int_t)g.entries, "bytes",
		                     (json_int_t)g.bytes, "removed", (json_int_t)g.removed, "removed_bytes",
		                     (json_int_t)g.removed_bytes, "in_use", (json_int_t)g.in_use, "weights", weights));
	else if (!warm.quiet)
		fprintf(stderr,
		        "%" PRIu64 " entries of %.2f MiB removed, %" PRIu64 " of %.2f MiB left, %" PRIu64
		        " of them in use\n",
		        g.removed, (double)g.removed_bytes / 0x1p20, g.entries, (double)g.bytes / 0x1p20, g.in_use);
	return WARM_DONE;
}

struct choice {
	const struct target *target[TARGET_COUNT];
	int n;
};

static bool is_chosen(const struct key *k, void *user)
{
	const struct choice *c = user;

	for (int i = 0; i < c->n; i++)
		if (c->target[i]->id == k->target)
			return k->codegen == key_codegen(k->target) || driver_code_is(k, NULL);
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
	bool ok = (warm.replace || access(warm.operand[0], F_OK) != 0 ||
	           error_set(&e, ERROR_ARGUMENT, "%s: is there already; --replace writes it anew", warm.operand[0])) &&
	          warm_can_write(warm.operand[0], &e) &&
	          (warm.targets.n == 0 || (choice.n = warm_targets(choice.target, &e)) > 0);
	struct cache *c = ok ? warm_open_cache(true, &e) : NULL;

	ok = c && cache_export(c, warm.operand[0], choice.n ? is_chosen : NULL, &choice, &n, &e);
	cache_close(c);
	return moved(ok, n, &e, "exported");
}

int warm_import(void)
{
	const struct cache_maker maker = { .build = template_build, .linker = warm_linker() };
	struct error e = { 0 };
	uint64_t n = 0;
	struct cache *c = warm_open_cache(false, &e);
	bool ok = c && cache_import(c, warm.operand[0], warm.unverified ? NULL : &maker, &n, &e);

	cache_close(c);
	return moved(ok, n, &e, warm.unverified ? "imported unverified" : "imported");
}
