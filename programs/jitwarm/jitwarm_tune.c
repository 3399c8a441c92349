/* programs/jitwarm/jitwarm_tune.c - jitwarm tune: the thorough search for the fastest schedules. A session tries a few
 * during its first tokens; this command tries many, with more passes, and ignores earlier results.
 *
 * Owns: the table of results. programs/jitwarm/search.c runs and judges the schedules in an ordinary session;
 * jit/store/tune.c stores the results.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/templates.h"
#include "programs/jitwarm/jitwarm.h"
#include "runtime/model/model.h"
#include "runtime/engine/report.h"
#include "programs/jitwarm/search.h"
#include "programs/common/shared_rows.h"

enum { PROMPT = SEARCH_CONTEXT / 8 };

/* The directory where sessions will look. */
struct tune *warm_open_tune(bool read_only, struct error *err)
{
	struct cache *c = warm_open_cache(read_only, err);
	struct cache_source s = { 0 };
	struct tune *t = NULL;

	if (!c)
		return NULL;
	for (unsigned i = 0; i < cache_source_count(c) && (!s.path || s.kind != CACHE_DIRECTORY); i++)
		cache_source_get(c, i, &s);
	if (s.path && s.kind == CACHE_DIRECTORY)
		t = tune_open(s.path, err);
	else
		error_set(err, ERROR_ARGUMENT, "the cache has no directory, and schedules are kept in one");
	cache_close(c);
	return t;
}

static struct tune *known;

static void forget(void) { tune_close(known); }

double warm_tuned_gain(const struct key *key)
{
	struct tune_result r;
	struct error ignored = { 0 };

	if (!known && (known = warm_open_tune(true, &ignored)))
		atexit(forget);
	return known && tune_find(known, key, &r) && r.key.schedule == key->schedule ? r.gain : 0;
}

static bool failed(const jit_error *e, struct error *err) { return error_set(err, ERROR_IO, "%s", e->message); }

static void show_progress(void *user, const struct search_progress *p)
{
	fprintf(stderr, "%s%u tokens: %u kernels, %u of them have better schedules; %u passes in %.1f s%s\n",
	        p->prompt ? "prompt of " : "", p->tokens, p->kernels, p->better, p->passes, p->seconds,
	        p->cut ? ", stopped by the time limit" : "");
}

/* Finds out everything anew, in memory. */
static bool search(jit_model *m, struct error *err)
{
	const jit_session_options so =
		JIT_SESSION_OPTIONS(.context = PROMPT + SEARCH_CONTEXT + 1, .speculate = JIT_SPECULATE_OFF,
	                            .kv = kv_type_option(warm.kv_type));
	const struct search_options o = { .seconds = (double)warm.seconds,
		                          .progress = warm.quiet ? NULL : show_progress };
	int32_t ids[PROMPT];
	jit_error e = { 0 };

	for (int i = 0; i < PROMPT; i++)
		ids[i] = (int32_t)((unsigned)(i + 1) % m->file.spec.vocab);
	jit_session *s = jit_session_open(m, &so, &e);
	bool ok = s && jit_session_feed(s, ids, PROMPT, &e) == JIT_OK ? true : failed(&e, err);
	ok = ok && (m->tune = tune_open(NULL, err)) && search_schedules(s, m->tune, &o, err);
	jit_session_close(s);
	return ok;
}

struct table {
	struct tune *kept;
	json_t *rows;
	int n;
};

static void keep_result(const struct tune_result *r, void *user)
{
	struct table *t = user;
	char key[KEY_TEXT_MAX], name[TEMPLATE_SCHEDULE_NAME];

	tune_set(t->kept, r);
	key_text(&r->key, key, sizeof key);
	if (warm.json) {
		json_t *row = json_pack("{s:s, s:o, s:i}", "key", key, "gain", output_real(r->gain), "samples",
		                        (int)r->samples);
		report_schedule(row, &r->key);
		json_array_append_new(t->rows, row);
	} else {
		printf("%s%-62s %5.2f %7u  %s\n",
		       t->n ? ""
		            : "kernel                                                          gain samples  "
		              "schedule\n",
		       key, r->gain, r->samples, template_schedule_name(&r->key, name, sizeof name));
	}
	t->n++;
}

static bool tune_model(const char *path, const char *isa, struct tune *kept, struct error *err)
{
	const jit_model_options o =
		JIT_MODEL_OPTIONS(.isa = isa, .cache_dir = warm.cache,
	                          .f32_activations = strcmp(warm.activations, "f32") == 0, .tune = JIT_TUNE_OFF);
	struct table t = { .kept = kept, .rows = json_array() };
	jit_error e = { 0 };
	jit_model *m = jit_model_open(path, &o, &e);
	bool ok = m ? search(m, err) : failed(&e, err);

	if (ok) {
		tune_each(m->tune, keep_result, &t);
		if (warm.json) {
			json_t *line = json_pack("{s:s, s:s, s:O}", "model", path, "target", m->target->name, "kernels",
			                         t.rows);
			json_dumpf(line, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
			putchar('\n');
			json_decref(line);
		} else if (t.n == 0 && !warm.quiet) {
			fprintf(stderr, "%s has no kernel with more than one schedule\n", path);
		}
	}
	json_decref(t.rows);
	jit_model_close(m);
	return ok && tune_save(kept, err);
}

int warm_tune(void)
{
	const struct target *target[TARGET_COUNT];
	struct error err = { 0 };

	if (warm.shapes.n)
		return warm_usage("tune takes a model's file, with its weights");
	int n = warm_targets(target, &err);
	if (n > 1 || (n == 1 && !target[0]->backend->host_runs))
		return warm_usage("tune is for one instruction set of this processor");
	struct tune *kept = n ? warm_open_tune(false, &err) : NULL;
	bool ok = kept && tune_model(warm.operand[0], target[0]->name, kept, &err);
	tune_close(kept);
	return ok ? WARM_DONE : warm_fail(&err);
}
