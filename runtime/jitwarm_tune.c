/* runtime/jitwarm_tune.c - the thorough search for schedules: what a session's first tokens find out in passing, with more passes and everything anew.
 *
 * Owns: the table of results. Trying and judging are runtime/tuner.c's, in a session that decodes as any other does; keeping is jit/tune.c's.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/templates.h"
#include "runtime/jitwarm.h"
#include "runtime/model.h"
#include "runtime/system.h"
#include "runtime/tuner.h"

enum { PROMPT = 8, LOOKED_AT = 4 /* tokens, to see how long one takes */, PASSES_MOST = 16 * TUNER_THOROUGH };

/* The directory where sessions will look. */
static struct tune *open_kept(struct error *err)
{
	struct cache *c = warm_open_cache(false, err);
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

static bool failed(const jit_error *e, struct error *err) { return error_set(err, ERROR_IO, "%s", e->message); }

/* A session that decodes; seconds for each token after the first, less than 0: err. */
static double decode(jit_model *m, unsigned tokens, struct error *err)
{
	jit_session_options so = { .context = (int)(PROMPT + tokens + 1), .speculate = JIT_SPECULATE_OFF, .kv_f32 = strcmp(warm.kv_type, "f32") == 0,
		.kv = strcmp(warm.kv_type, "q8_0") == 0 ? JIT_KV_Q8_0 : strcmp(warm.kv_type, "f32") == 0 ? JIT_KV_F32 : JIT_KV_F16 };
	jit_error e = { 0 };
	int32_t ids[PROMPT], id;
	jit_session *s = jit_session_open(m, &so, &e);
	double start = 0;

	for (int i = 0; i < PROMPT; i++)
		ids[i] = (int32_t)((unsigned)(i + 1) % m->file.spec.vocab);
	bool ok = s && jit_session_feed(s, ids, PROMPT, &e) == JIT_OK;
	for (unsigned i = 0; ok && i <= tokens; i++) {          /* the first choice needs no pass */
		ok = jit_session_next(s, &id, &e) == JIT_OK;
		if (i == 1)
			start = system_seconds();
	}
	double seconds = (system_seconds() - start) / (tokens > 1 ? tokens - 1 : 1);
	jit_session_close(s);
	return ok ? seconds : failed(&e, err) ? 0 : -1;
}

/* Finds out everything anew, in memory. */
static bool search(jit_model *m, struct error *err)
{
	unsigned passes = TUNER_THOROUGH;

	if (!(m->tune = tune_open(NULL, err)))
		return false;
	if (warm.seconds > 0) {
		double each = decode(m, LOOKED_AT, err);
		if (each < 0)
			return false;
		double fit = each > 0 ? (double)warm.seconds / each : PASSES_MOST;
		passes = fit > PASSES_MOST ? PASSES_MOST : fit < TUNER_QUICK ? TUNER_QUICK : (unsigned)fit;
	}
	if (!warm.quiet)
		fprintf(stderr, "trying schedules in %u passes\n", passes);
	m->tune_passes = passes;
	return decode(m, passes + 2, err) >= 0;
}

struct table { struct tune *kept; json_t *rows; int n; };

static void keep_result(const struct tune_result *r, void *user)
{
	struct table *t = user;
	char key[KEY_TEXT_MAX];

	tune_set(t->kept, r);
	key_text(&r->key, key, sizeof key);
	if (warm.json)
		json_array_append_new(t->rows, json_pack("{s:s, s:i, s:s, s:f, s:i}", "key", key, "schedule", (int)r->key.schedule, "name", template_schedule_name(&r->key), "gain", r->gain,
			"samples", (int)r->samples));
	else
		printf("%s%-58s %5.2f %7u  %s\n", t->n ? "" : "kernel                                                      gain samples  schedule\n", key, r->gain, r->samples, template_schedule_name(&r->key));
	t->n++;
}

static bool tune_model(const char *path, const char *isa, struct tune *kept, struct error *err)
{
	const jit_model_options o = { .isa = isa, .cache_dir = warm.cache, .f32_activations = strcmp(warm.activations, "f32") == 0, .tune = JIT_TUNE_OFF };
	struct table t = { .kept = kept, .rows = json_array() };
	jit_error e = { 0 };
	jit_model *m = jit_model_open(path, &o, &e);
	bool ok = m ? search(m, err) : failed(&e, err);

	if (ok) {
		tune_each(m->tune, keep_result, &t);
		if (warm.json) {
			json_t *line = json_pack("{s:s, s:s, s:O}", "model", path, "target", m->target->name, "kernels", t.rows);
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
	if (n > 1 || (n == 1 && target[0]->backend != BACKEND_X86))
		return warm_usage("tune is for one instruction set of this processor");
	struct tune *kept = n ? open_kept(&err) : NULL;
	bool ok = kept && tune_model(warm.operand[0], target[0]->name, kept, &err);
	tune_close(kept);
	return ok ? WARM_DONE : warm_fail(&err);
}
