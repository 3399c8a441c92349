/* programs/jitwarm/jitwarm_look.c - jitwarm show prints a kernel; jitwarm explain lists which of a model's kernels the
 * cache has. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memfile.h"
#include "kernels-templates/templates.h"
#include "programs/jitwarm/jitwarm.h"
#include "runtime/engine/report.h"

/* ---- show */

struct shown {
	struct key key;
	char text[KEY_TEXT_MAX];
	struct object fresh, stored;
	struct compile_stats stats;
	char *ir, *listing;
	size_t ir_bytes, listing_bytes;
	bool kept;
	char path[4096];
	enum record_answer answer;
	struct error why; /* of the cache, which need not be there */
	double gain;      /* of its schedule, where this machine was tuned; 0: not known */
	json_t *drivers;  /* what drivers made of it: by whom, how large, where */
};

static bool make_shown(struct shown *s, struct error *err)
{
	struct memfile ir, listing;
	bool open = memfile_open(&ir);
	bool ok = memfile_open(&listing) && open;
	struct compile_options o = { .dump_ir = ir.out, .dump_asm = listing.out };

	ok = ok && compile_key(&s->fresh, &s->key, template_build, &o, &s->stats, err);
	s->ir = memfile_take(&ir, &s->ir_bytes);
	s->listing = memfile_take(&listing, &s->listing_bytes);
	return ok && s->ir && s->listing ? true : error_set(err, ERROR_MEMORY, "no memory for a listing");
}

static bool note_driver(const struct cache_item *i, void *user)
{
	struct shown *s = user;
	struct driver_code by;
	struct key text = i->key;
	char name[DRIVER_CODE_TEXT_MAX];

	text.codegen = s->key.codegen;
	if (i->readable && driver_code_is(&i->key, &by) && key_equal(&text, &s->key))
		json_array_append_new(s->drivers,
		                      json_pack("{s:s, s:I, s:o}", "driver", driver_code_text(by, name), "code_bytes",
		                                (json_int_t)i->code_bytes, "path", output_string(i->path)));
	return true;
}

/* No cache is no reason not to show what would be made. */
static void look_up(struct shown *s)
{
	struct cache *c = warm_open_cache(true, &s->why);
	unsigned source;

	s->answer = c ? cache_load(c, &s->key, &s->stored, &source, &s->why) : RECORD_FAILED;
	if (s->answer == RECORD_FOUND) {
		struct cache_source from;
		cache_source_get(c, source, &from);
		snprintf(s->path, sizeof s->path, "%s", from.path);
		s->kept = true;
	}
	if (c)
		cache_each(c, note_driver, s, &s->why);
	cache_close(c);
	s->gain = warm_tuned_gain(&s->key);
}

/* Every line a comment to an assembler. */
static void print_comments(const char *text)
{
	for (const char *at = text; *at;) {
		size_t n = strcspn(at, "\n");
		printf("# %.*s\n", (int)n, at);
		at += n + (at[n] == '\n');
	}
}

static void print_shown(const struct shown *s, bool same)
{
	const struct object *o = &s->fresh;
	char name[TEMPLATE_SCHEDULE_NAME], path[4096];
	json_t *d;
	size_t i;

	printf("# %s\n# %s", s->text, template_schedule_name(&s->key, name, sizeof name));
	if (s->gain > 0)
		printf("; measured here: %.2f times as fast as the default", s->gain);
	printf("\n# %" PRIu32 " bytes, %" PRIu32 " of them constants; frame %" PRIu32 " bytes", o->code_bytes,
	       o->code_bytes - o->pool_offset, o->frame_bytes);
	if (o->shared_bytes)
		printf(", shared %" PRIu32 " bytes", o->shared_bytes);
	printf("\n# registers: %u vector, %u scalar, %u mask; %" PRIu32 " spills, %" PRIu32 " in inner loops\n",
	       o->vector_regs, o->scalar_regs, o->mask_regs, s->stats.spills, s->stats.spills_in_inner_loops);
	printf("# %" PRIu32 " IR instructions, %" PRIu32 " machine instructions\n", s->stats.ir_instructions,
	       s->stats.machine_instructions);
	if (s->kept)
		printf("# in the cache, %s: %s\n", error_quote(path, sizeof path, s->path, strlen(s->path)),
		       same ? "the same code" : "NOT the same code");
	else if (s->answer == RECORD_FAILED)
		printf("# whether it is in the cache is not known: %s\n", s->why.text);
	else
		printf("# %s\n", s->answer == RECORD_DAMAGED ? "in the cache, but damaged" : "not in the cache");
	json_array_foreach(s->drivers, i, d)
		printf("# a driver's code of it (%s), %lld bytes, is in the cache\n",
	               json_string_value(json_object_get(d, "driver")),
	               (long long)json_integer_value(json_object_get(d, "code_bytes")));
	printf("#\n");
	print_comments(s->ir);
	fwrite(s->listing, 1, s->listing_bytes, stdout);
}

static void print_shown_json(const struct shown *s, bool same)
{
	const struct object *o = &s->fresh;
	json_t *j = json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:{s:i, s:i, s:i}, s:I, s:I, s:I, s:I, s:o, s:b, s:s%, s:s%}", "key",
		s->text, "code_bytes", (json_int_t)o->code_bytes, "constant_bytes",
		(json_int_t)(o->code_bytes - o->pool_offset), "frame_bytes", (json_int_t)o->frame_bytes, "shared_bytes",
		(json_int_t)o->shared_bytes, "registers", "vector", o->vector_regs, "scalar", o->scalar_regs, "mask",
		o->mask_regs, "spills", (json_int_t)s->stats.spills, "spills_in_inner_loops",
		(json_int_t)s->stats.spills_in_inner_loops, "ir_instructions", (json_int_t)s->stats.ir_instructions,
		"machine_instructions", (json_int_t)s->stats.machine_instructions, "path",
		s->kept ? output_string(s->path) : json_null(), "same", same, "ir", s->ir, s->ir_bytes, "listing",
		s->listing, s->listing_bytes);
	report_schedule(j, &s->key);
	if (json_array_size(s->drivers))
		json_object_set(j, "drivers", s->drivers);
	if (s->gain > 0)
		json_object_set_new(j, "tuned_gain", output_real(s->gain));
	json_dumpf(j, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

int warm_show(void)
{
	struct error e = { 0 };
	struct shown s = { .kept = false, .drivers = NULL };

	if (!key_parse(&s.key, warm.operand[0]) || !s.key.target) {
		fprintf(stderr,
		        "jitwarm: \"%.180s\" is not the key of a kernel, such as norm.k1024.q8out.avx2; 'jitwarm list' "
		        "and 'jitwarm explain' print keys\nTry 'jitwarm --help'.\n",
		        warm.operand[0]);
		return WARM_USAGE;
	}
	s.drivers = json_array();
	key_text(&s.key, s.text, sizeof s.text);
	bool ok = make_shown(&s, &e), same = false;
	if (ok) {
		look_up(&s);
		same = s.kept && record_same(&s.fresh, &s.stored);
		(warm.json ? print_shown_json : print_shown)(&s, same);
	}
	object_free(&s.fresh);
	object_free(&s.stored);
	free(s.ir);
	free(s.listing);
	json_decref(s.drivers);
	return !ok ? warm_fail(&e) : (s.kept && !same) || s.answer == RECORD_DAMAGED ? WARM_NO : WARM_DONE;
}

/* ---- explain */

struct explanation {
	struct cache *cache;
	const struct target *target[TARGET_COUNT];
	int n_targets;
	struct key *kept;
	size_t n_kept; /* of every readable entry */
	json_t *models;
	uint64_t missing; /* or damaged */
};
struct found {
	size_t hits, missing, damaged;
};

/* Why a key is not served from the cache. */
static void say_why(const struct explanation *x, const struct key *key, enum record_answer answer, char *why,
                    size_t cap)
{
	const struct key *nearest = key_nearest(key, x->kept, x->n_kept);
	char text[KEY_TEXT_MAX], differences[KEY_DIFFERENCES_MAX];

	if (answer == RECORD_DAMAGED)
		snprintf(why, cap, "'jitwarm verify' says how");
	else if (driver_code_is(key, NULL))
		snprintf(why, cap, "'jitwarm MODEL --device %s --out CACHE' makes it", warm.device);
	else if (!nearest || key_equal(nearest, key))
		snprintf(why, cap, "the cache has no kernels");
	else
		snprintf(why, cap, "nearest %s: %s", key_text(nearest, text, sizeof text),
		         key_differences(key, nearest, differences, sizeof differences));
}

/* NULL: err. */
static json_t *explain_key(struct explanation *x, const struct key *key, struct found *found, struct error *err)
{
	static const char *const words[] = {
		[RECORD_FOUND] = "hit ", [RECORD_ABSENT] = "miss", [RECORD_DAMAGED] = "damaged"
	};
	char text[KEY_TEXT_MAX], why[KEY_TEXT_MAX + KEY_DIFFERENCES_MAX + 64], path[4096], line[8192];
	char note[WARM_DRIVER_NOTE_MAX];
	struct object o = { 0 };
	struct cache_source from;
	unsigned source;
	enum record_answer answer = cache_load(x->cache, key, &o, &source, err);
	bool hit = answer == RECORD_FOUND;

	if (answer == RECORD_FAILED)
		return NULL;
	key_text(key, text, sizeof text);
	object_free(&o);
	++*(hit ? &found->hits : answer == RECORD_ABSENT ? &found->missing : &found->damaged);
	if (hit)
		cache_source_get(x->cache, source, &from);
	else
		say_why(x, key, answer, why, sizeof why);
	if (warm.json) {
		json_t *k =
			json_pack("{s:s, s:b, s:b, s:o}", "key", text, "hit", hit, "damaged", answer == RECORD_DAMAGED,
		                  hit ? "path" : "why", output_string(hit ? from.path : why));
		if (driver_code_is(key, NULL))
			json_object_set_new(k, "by_driver", json_true());
		return k;
	}
	snprintf(line, sizeof line, "%s  %s%s  %s", words[answer], text, warm_driver_note(key, note),
	         hit ? error_quote(path, sizeof path, from.path, strlen(from.path)) : why);
	output_line(stdout, line, 6);
	return json_null();
}

static bool explain_keys(struct explanation *x, const struct key *keys, size_t n, struct found *found, json_t *list,
                         struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		json_t *k = explain_key(x, &keys[i], found, err);
		if (!k)
			return false;
		json_array_append_new(list, k);
	}
	return true;
}

static void say_found(const char *name, const char *target, size_t n, const struct found *found)
{
	fprintf(stderr, "%s for %s: %zu kernels, %zu in the cache, %zu missing", name, target, n, found->hits,
	        found->missing);
	if (found->damaged)
		fprintf(stderr, ", %zu damaged", found->damaged);
	fprintf(stderr, "\n");
}

/* Why text is missing, what a driver made of other text does not say. */
static bool list_texts(struct explanation *x, struct error *err)
{
	if (!cache_keys(x->cache, &x->kept, &x->n_kept, err))
		return false;
	x->n_kept = driver_code_drop(x->kept, x->n_kept);
	return true;
}

static bool explain_model(const struct model *m, const char *name, void *user, struct error *err)
{
	struct explanation *x = user;

	for (int t = 0; t < x->n_targets; t++) {
		struct found found = { 0 };
		struct key *keys = NULL;
		size_t n;
		json_t *list = json_array();
		bool ok =
			warm_model_keys(m, x->target[t], &keys, &n, err) && explain_keys(x, keys, n, &found, list, err);
		free(keys);
		if (!ok) {
			json_decref(list);
			return false;
		}
		x->missing += n - found.hits;
		json_array_append_new(x->models,
		                      json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:o}", "model", output_string(name),
		                                "target", x->target[t]->name, "kernels", (json_int_t)n, "hits",
		                                (json_int_t)found.hits, "misses", (json_int_t)found.missing, "damaged",
		                                (json_int_t)found.damaged, "list", list));
		if (!warm.json && !warm.quiet)
			say_found(name, x->target[t]->name, n, &found);
	}
	return true;
}

int warm_explain(void)
{
	struct error e = { 0 };
	struct explanation x = { .missing = 0 };

	if (warm_model_count() == 0)
		return warm_usage("which model? Give a file, a directory or --shape");
	x.models = json_array();
	x.cache = warm_open_cache(true, &e);
	bool ok = x.cache && (x.n_targets = warm_targets(x.target, &e)) > 0 && list_texts(&x, &e) &&
	          warm_each_model(explain_model, &x, &e);
	if (ok && warm.json) {
		json_dumpf(x.models, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
		putchar('\n');
	}
	cache_close(x.cache);
	free(x.kept);
	json_decref(x.models);
	return !ok ? warm_fail(&e) : x.missing ? WARM_NO : WARM_DONE;
}
