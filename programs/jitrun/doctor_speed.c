/* programs/jitrun/doctor_speed.c - jitrun doctor --report: how long launches, barriers and passes take, beside what is
 * predicted.
 */
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/doctor_report.h"
#include "programs/common/output.h"
#include "runtime/device/amd/amd.h"
#include "runtime/host/system.h"
#include "runtime/model/model.h"
#include "runtime/session/session_state.h"

#define SMALL "arch=qwen3,hidden=256,layers=2,heads=4,kv_heads=2,head_dim=64,ffn=512,vocab=320,tied=1"
#define LARGE "arch=llama,hidden=2048,layers=4,heads=16,kv_heads=8,head_dim=128,ffn=8192,vocab=32000,tied=1"

/* A small pass that takes so long runs on no card: the larger model would take hours. */
#define SLOW_SECONDS 0.005

#define SMALL_NAME "small_model"
enum { RUNS = 41 };

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of several runs, fewer where they are slow. False: err. */
static bool time_runs(jit_session *s, struct plan *p, double *seconds, struct error *err)
{
	struct stream *stream = s->engine->stream;
	double took[RUNS], begin = system_seconds();
	int n = 0;

	if (!stream->run(stream, p, s->engine->pool, err)) /* the first one warms up */
		return false;
	for (; n < RUNS && (n < 3 || system_seconds() - begin < 1); n++) {
		double start = system_seconds();
		if (!stream->run(stream, p, s->engine->pool, err))
			return false;
		took[n] = system_seconds() - start;
	}
	qsort(took, (size_t)n, sizeof *took, by_size);
	*seconds = took[n / 2];
	return true;
}

/* A plan of one unit of each op: of the first op alone, of all without a barrier, of all with a barrier behind each.
 * What they compute means nothing. */
enum bare { BARE_ONE, BARE_TOGETHER, BARE_APART };

static bool time_bare(jit_session *s, const struct plan *p, enum bare how, double *seconds, struct error *err)
{
	struct stream *stream = s->engine->stream;
	size_t n = how == BARE_ONE ? 1 : p->n_ops, stages = how == BARE_APART ? n : 1;
	struct plan_op *op = malloc(n * sizeof *op);
	uint32_t *stage = malloc((n + 1) * sizeof *stage), section[2] = { 0, (uint32_t)n };
	struct plan bare = *p;
	bool ok = (op && stage) || error_set(err, ERROR_MEMORY, "no memory for a plan of %zu ops", n);

	for (size_t i = 0; ok && i < n; i++) {
		op[i] = p->op[i];
		op[i].end = op[i].begin + 1;
		op[i].barrier = how == BARE_APART;
		op[i].fused_units = 0;
		stage[i] = (uint32_t)i;
	}
	if (ok)
		stage[stages] = (uint32_t)n;
	bare.op = op;
	bare.n_ops = n;
	bare.stage = stage;
	bare.n_stages = stages;
	bare.section = section;
	bare.n_sections = 1;
	bare.prepared = NULL;
	ok = ok && stream->prepare(stream, &bare, s->engine->pool, err) && time_runs(s, &bare, seconds, err);
	free(op);
	free(stage);
	return ok;
}

static bool time_launches(struct report *r, jit_session *s, const struct plan *p, struct error *err)
{
	double one, together, apart;

	if (!time_bare(s, p, BARE_ONE, &one, err) || !time_bare(s, p, BARE_TOGETHER, &together, err) ||
	    !time_bare(s, p, BARE_APART, &apart, err))
		return false;
	double barrier = apart > together && p->n_ops > 1 ? (apart - together) / (double)(p->n_ops - 1) : 0;
	report_line("launch", "%.1f us with next to nothing to do; %.2f us more for each barrier in it", one * 1e6,
	            barrier * 1e6);
	json_object_set_new(r->object, "launch_seconds", output_real(one));
	json_object_set_new(r->object, "barrier_seconds", output_real(barrier));
	return true;
}

/* What the device expects of a pass; 0: it expects nothing. */
static double predicted(const struct report *r, const jit_session *s, const struct plan *p)
{
	double sum = 0;

	if (strncmp(r->device, "amd", 3) != 0)
		return 0;
	const struct amd *d = (const struct amd *)s->model->device;
	for (size_t i = 0; i < p->n_ops; i++)
		sum += amd_predict(&d->card, p, i);
	return sum;
}

static json_t *pass_member(struct report *r, jit_session *s, const struct plan *p, double seconds)
{
	double expected = predicted(r, s, p), bytes = (double)s->model->weights.token_bytes;

	return json_pack("{s:i, s:o, s:o, s:I, s:o}", "tokens", (int)p->tokens, "seconds", output_real(seconds),
	                 "predicted_seconds", expected > 0 ? output_real(expected) : json_null(), "weight_bytes",
	                 (json_int_t)bytes, "bytes_per_second", output_real(seconds > 0 ? bytes / seconds : 0));
}

/* A pass of one token and of 16, over one model. */
static bool time_passes(struct report *r, const char *name, jit_session *s, double *one, struct error *err)
{
	static const uint32_t widths[] = { 1, 16 };
	json_t *list = json_array();
	bool ok = true;

	for (size_t i = 0; ok && i < 2; i++) {
		double seconds = 0;
		struct plan *p = engine_find_plan(s->engine, widths[i], 0, PLAN_LAST_LOGITS, PROFILE_PROMPT, err);
		ok = p && session_pass(s, p, err) && time_runs(s, p, &seconds, err);
		if (!ok)
			break;
		json_array_append_new(list, pass_member(r, s, p, seconds));
		if (!i)
			*one = seconds;
	}
	json_object_set_new(r->object, name, list);
	return ok;
}

static void say_speed(const struct report *r, jit_session *s, double seconds)
{
	struct error ignored = { 0 };
	const struct plan *p = engine_find_plan(s->engine, 1, 0, PLAN_LAST_LOGITS, PROFILE_PROMPT, &ignored);
	double expected = p ? predicted(r, s, p) : 0, rate = (double)s->model->weights.token_bytes / seconds;

	if (expected > 0)
		report_line("speed", "a token of %.0f MB of weights takes %.2f ms, predicted were %.2f",
		            (double)s->model->weights.token_bytes / 1e6, seconds * 1e3, expected * 1e3);
	else
		report_line("speed",
		            "a token of %.0f MB of weights takes %.2f ms; there is no prediction for this device",
		            (double)s->model->weights.token_bytes / 1e6, seconds * 1e3);
	if (r->bandwidth)
		report_line("reading", "weights are read at %.1f GB/s, of %.1f that the card's data say", rate / 1e9,
		            (double)r->bandwidth / 1e9);
	else
		report_line("reading", "weights are read at %.1f GB/s", rate / 1e9);
}

/* name: of the member that the passes' times get; NULL: launches are timed. */
static bool with_model(struct report *r, const char *shape, const char *name, double *one, struct error *err)
{
	struct trial_model t;
	jit_error e = { 0 };
	jit_session *s = trial_open(&t, shape, "q8_0", r->device, NULL, &e) ? trial_session(&t, JIT_KV_F16, &e) : NULL;
	bool ok = s || error_set(err, ERROR_DEVICE, "%s", e.message);

	if (s)
		session_rest(s);
	if (ok && name) {
		ok = time_passes(r, name, s, one, err);
	} else if (ok && !s->model->device->alloc_shares) { /* several cards have each their units of an op alone */
		double ignored;
		const int32_t id = 1; /* a pass, so that its arguments are in place */
		ok = session_compute_pass(s, &id, 1, PLAN_LAST_LOGITS, PROFILE_PROMPT, &ignored, err);
		const struct plan *p =
			ok ? engine_find_plan(s->engine, 1, 0, PLAN_LAST_LOGITS, PROFILE_PROMPT, err) : NULL;
		ok = p && time_launches(r, s, p, err);
	}
	if (ok && name && strcmp(name, SMALL_NAME) != 0)
		say_speed(r, s, *one);
	jit_session_close(s);
	trial_close(&t);
	return ok;
}

/* Ops without what they wait for must not wait for it. */
static bool with_launches(struct report *r, struct error *err)
{
	char *usual = trial_launch_graphs();
	bool ok = with_model(r, SMALL, NULL, NULL, err);

	trial_launch(usual);
	return ok;
}

bool report_speed(struct report *r)
{
	struct error err = { 0 };
	double seconds = 0;

	if (!with_model(r, SMALL, SMALL_NAME, &seconds, &err) || !with_launches(r, &err))
		return report_stop(r, "launches were timed", &err);
	if (report_is_quick())
		return true;
	if (seconds > SLOW_SECONDS) {
		report_line("speed", "not measured: a token of a tiny model takes %.0f ms, as in a simulation",
		            seconds * 1e3);
		return true;
	}
	return with_model(r, LARGE, "large_model", &seconds, &err) || report_stop(r, "a larger model was timed", &err);
}
