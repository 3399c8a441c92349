/* programs/jitwarm/jitwarm_explain.c - jitwarm explain: which kernels of models, or of texts that users wrote, a cache
 * has, and why it lacks the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/kernel_file.h"
#include "programs/jitwarm/jitwarm.h"

struct explanation {
	struct cache *cache;
	const struct target *target[TARGET_COUNT];
	int n_targets;
	struct key *kept;
	size_t n_kept;    /* of every readable entry */
	const char *user; /* the user's kernel that a key is of, by its name in the text; or NULL */
	json_t *models;
	uint64_t missing; /* or damaged */
};
struct found {
	size_t hits, missing, damaged;
};

/* ---- why a key is not served from the cache */

static bool has_name(struct cache *c, const struct key *key, const char *name)
{
	struct object o = { 0 };
	struct error e = { 0 };
	unsigned source;
	const bool found = cache_load(c, key, &o, &source, &e) == RECORD_FOUND,
		   same = found && strncmp(o.name, name, sizeof o.name) == 0;

	object_free(&o);
	return same;
}

/* A user's kernel is known by a hash, of which nothing can be near. */
static void say_why_user(const struct explanation *x, const struct key *key, char *why, size_t cap)
{
	const struct key *other = NULL;
	char text[KEY_TEXT_MAX];

	for (size_t i = 0; i < x->n_kept; i++) {
		if (key_same_user(&x->kept[i], key)) {
			snprintf(why, cap, "the cache has it for %s", target_table[x->kept[i].target].name);
			return;
		}
		if (!other && x->kept[i].kind == KEY_USER && has_name(x->cache, &x->kept[i], x->user))
			other = &x->kept[i];
	}
	if (other)
		snprintf(why, cap,
		         "the cache has a kernel of this name with another text, other constants or --check, %s",
		         key_text(other, text, sizeof text));
	else
		snprintf(why, cap, "the cache has no kernel of this name");
}

static void say_why(const struct explanation *x, const struct key *key, enum record_answer answer, char *why,
                    size_t cap)
{
	const struct key *nearest = key_nearest(key, x->kept, x->n_kept);
	char text[KEY_TEXT_MAX], differences[KEY_DIFFERENCES_MAX];

	if (answer == RECORD_DAMAGED)
		snprintf(why, cap, "'jitwarm verify' says how");
	else if (key->kind == KEY_USER)
		say_why_user(x, key, why, cap);
	else if (driver_code_is(key, NULL))
		snprintf(why, cap, "'jitwarm MODEL --device %s --out CACHE' makes it", warm.device);
	else if (!nearest || key_equal(nearest, key))
		snprintf(why, cap, "the cache has no kernels");
	else
		snprintf(why, cap, "nearest %s: %s", key_text(nearest, text, sizeof text),
		         key_differences(key, nearest, differences, sizeof differences));
}

/* ---- keys. NULL: err */

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
		if (x->user)
			json_object_set_new(k, "name", output_string(x->user));
		return k;
	}
	snprintf(line, sizeof line, "%s  %s%s  %s%s%s", words[answer], text, warm_driver_note(key, note),
	         x->user ? x->user : "", x->user ? "  " : "",
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

/* What was found of a model or a file. */
static void conclude(struct explanation *x, const char *what, const char *name, int target, size_t n,
                     const struct found *found, json_t *list)
{
	x->missing += n - found->hits;
	json_array_append_new(x->models, json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:o}", what, output_string(name),
	                                           "target", x->target[target]->name, "kernels", (json_int_t)n, "hits",
	                                           (json_int_t)found->hits, "misses", (json_int_t)found->missing,
	                                           "damaged", (json_int_t)found->damaged, "list", list));
	if (!warm.json && !warm.quiet)
		say_found(name, x->target[target]->name, n, found);
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
		conclude(x, "model", name, t, n, &found, list);
	}
	return true;
}

/* ---- texts of users' kernels */

static bool explain_kernel(struct explanation *x, struct kernel_file *f, size_t i, int target, struct found *found,
                           json_t *list, struct error *err)
{
	struct jk_kernel *k = kernel_file_bind(f, jk_kernel_name(f->file, i), &warm.constants, err);
	uint8_t id[KEY_USER_BYTES];
	struct key key;

	if (!k)
		return false;
	key_user_id(id, jk_id(k, false));
	key_user(&key, id, x->target[target]->id);
	x->user = jk_kernel_name(f->file, i);
	const bool ok = explain_keys(x, &key, 1, found, list, err);
	x->user = NULL;
	jk_kernel_close(k);
	return ok;
}

static bool explain_text(struct explanation *x, const char *path, struct error *err)
{
	struct kernel_file f;
	bool ok = kernel_file_open(&f, path, NULL, 0, err);

	for (int t = 0; ok && t < x->n_targets; t++) {
		struct found found = { 0 };
		json_t *list = json_array();
		for (size_t i = 0; ok && i < jk_kernels(f.file); i++)
			ok = explain_kernel(x, &f, i, t, &found, list, err);
		if (ok)
			conclude(x, "file", path, t, jk_kernels(f.file), &found, list);
		else
			json_decref(list);
	}
	kernel_file_close(&f);
	return ok;
}

static bool is_text(const char *path)
{
	const size_t n = strlen(path);

	return n > 3 && strcmp(path + n - 3, ".jk") == 0;
}

static int text_count(void)
{
	int n = 0;

	for (int i = 0; i < warm.n_operands; i++)
		n += is_text(warm.operand[i]);
	return n;
}

/* Texts are taken out of the operands, so that those that stay are models. */
static bool explain_texts(struct explanation *x, struct error *err)
{
	bool ok = true;
	int models = 0;

	for (int i = 0; ok && i < warm.n_operands; i++)
		if (is_text(warm.operand[i]))
			ok = explain_text(x, warm.operand[i], err);
		else
			warm.operand[models++] = warm.operand[i];
	warm.n_operands = models;
	return ok;
}

int warm_explain(void)
{
	struct error e = { 0 };
	struct explanation x = { .missing = 0 };

	if (warm_model_count() == 0)
		return warm_usage("which model? Give a file, a directory or --shape; or a file of kernels (.jk)");
	if (warm.constants.n && !text_count())
		return warm_usage("--const goes with files of kernels (.jk)");
	x.models = json_array();
	x.cache = warm_open_cache(true, &e);
	bool ok = x.cache && (x.n_targets = warm_targets(x.target, &e)) > 0 && list_texts(&x, &e) &&
	          explain_texts(&x, &e) && (!warm_model_count() || warm_each_model(explain_model, &x, &e));
	if (ok && warm.json) {
		json_dumpf(x.models, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
		putchar('\n');
	}
	cache_close(x.cache);
	free(x.kept);
	json_decref(x.models);
	return !ok ? warm_fail(&e) : x.missing ? WARM_NO : WARM_DONE;
}
