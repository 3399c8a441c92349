#include "bench/throughput.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/go_back.h"
#include "programs/jitrun/profile_table.h"
#include "runtime/model/model.h"
#include "runtime/host/system.h"
#include "runtime/session/session_state.h"

enum { STEP = 256, MAX_PASSES = 1000 };
static const double min_seconds = 0.05; /* of a repetition: short passes are repeated within it */

/* Of experts, so many. */
static double elements(const struct model_tensor *t, uint32_t experts)
{
	return (t->experts ? experts : 1) * (double)t->rows * (double)t->cols;
}

/* Of the layers' matrices, and so many experts' in each. */
static double layer_parameters(const struct model_spec *s, uint32_t experts)
{
	double sum = 0;
	for (uint32_t i = 0; i < s->layers; i++)
		for (int k = 0; k < MATRIX_SLOTS; k++)
			sum += elements(&s->layer[i].matrix[k], experts);
	return sum;
}

double test_parameters(const jit_model *m)
{
	const struct model_spec *s = &m->file.spec;
	return layer_parameters(s, s->experts) + elements(&s->embed, 0) + (s->tied ? 0 : elements(&s->lm_head, 0));
}

enum peak_operands test_operands(const jit_model *m)
{
	const struct model_layer *l = &m->file.spec.layer[0];
	enum dtype t = l->up.bytes ? l->up.type : l->expert_up.type;

	if (l->up.bytes && m->bounded && t == DTYPE_BF16)
		return PEAK_DOT2;
	return !m->f32_activations && t != DTYPE_F32 && t != DTYPE_F16 && t != DTYPE_BF16 ? PEAK_INT8 : PEAK_FLOATS;
}

static int32_t token(long i, int vocab) { return (int32_t)((uint64_t)(i + 1) * 2654435761u % (uint32_t)vocab); }

static bool feed(const struct test_machine *t, long n, int vocab, long step, jit_error *err)
{
	int32_t ids[STEP];
	for (long i = 0; i < n;) {
		long k = 0;
		for (; k < step && i + k < n; k++)
			ids[k] = token(i + k, vocab);
		if (jit_session_feed(t->session, ids, (size_t)k, err) != JIT_OK)
			return false;
		i += k;
	}
	return true;
}

/* A prompt in one feed, as a program would give it: the session cuts it as suits it. */
static bool feed_at_once(const struct test_machine *t, long n, int vocab, bool all_logits, jit_error *err)
{
	int32_t *ids = malloc((size_t)n * sizeof *ids);
	if (!ids) {
		snprintf(err->message, sizeof err->message, "no memory for a prompt of %ld tokens", n);
		return false;
	}
	for (long i = 0; i < n; i++)
		ids[i] = token(i, vocab);
	int status = all_logits ? jit_session_score(t->session, ids, (size_t)n, NULL, err)
	                        : jit_session_feed(t->session, ids, (size_t)n, err);
	free(ids);
	return status == JIT_OK;
}

struct plan_of_test {
	enum test_kind kind;
	long n, base;
	int vocab;
};

static bool run_pass(const struct test_machine *t, const struct plan_of_test *p, jit_error *err)
{
	return p->kind == TEST_GENERATE ? feed(t, p->n, p->vocab, 1, err)
	                                : feed_at_once(t, p->n, p->vocab, p->kind == TEST_SMALL, err);
}

/* Passes one after the other; seconds, less than 0: err. Going back to the base is part of none. */
static double time_passes(const struct test_machine *t, const struct plan_of_test *p, long passes, jit_error *err)
{
	double seconds = 0;
	for (long i = 0; i < passes; i++) {
		if (!go_back(t->session, (size_t)p->base, err))
			return -1;
		double start = system_seconds();
		if (!run_pass(t, p, err))
			return -1;
		seconds += system_seconds() - start;
	}
	return seconds;
}

static enum limit_kind limit_of(enum test_kind kind) { return kind == TEST_PROMPT ? LIMIT_ARITHMETIC : LIMIT_MEMORY; }

static bool repeat(const struct test_machine *t, const struct plan_of_test *p, struct series *out, jit_error *err)
{
	double seconds = time_passes(t, p, 1, err); /* a warm-up: pages, kernels, plans */
	if (seconds >= 0)
		seconds = time_passes(t, p, 1, err);
	if (seconds < 0)
		return false;
	double wanted = seconds > 0 ? min_seconds / seconds + 1 : MAX_PASSES;
	long passes = wanted > MAX_PASSES ? MAX_PASSES : (long)wanted;
	double before = limits_read(t->limits, limit_of(p->kind), err);
	for (out->n = 0; before >= 0 && out->n < t->repetitions; out->n++) {
		if ((seconds = time_passes(t, p, passes, err)) < 0)
			return false;
		double after = limits_read(t->limits, limit_of(p->kind), err);
		out->value[out->n] = (double)(p->n * passes) / seconds;
		out->limit[out->n] = after > before ? after : before;
		before = after;
	}
	return before >= 0;
}

/* What one token costs, in bytes read or in operations. */
static double work_of(const struct test_machine *t, enum test_kind kind, long n, long depth)
{
	const struct model_spec *s = &t->model->file.spec;
	jit_session_stats stats = JIT_SESSION_STATS();
	jit_model_info info = JIT_MODEL_INFO();
	double kv, read;

	if (kind == TEST_PROMPT)
		return 2 * (layer_parameters(s, s->experts_used) +
		            elements(s->tied ? &s->embed : &s->lm_head, 0) / (double)n);
	jit_model_get_info(t->model, &info, NULL);
	jit_session_get_stats(t->session, &stats, NULL);
	const struct session_states *states = &t->session->memory.states;
	kv = (double)(stats.kv_bytes - states->slots * states->bytes) / stats.context;
	read = (double)info.token_bytes + (double)states->bytes;
	if (kind == TEST_GENERATE)
		return read + (depth ? kv * ((double)depth + (double)n / 2) : 0);
	return (read + kv * (double)depth) / (double)n;
}

static void describe(const struct test_machine *t, enum test_kind kind, long n, long depth, struct row *r)
{
	static const char *const form[] = {
		[TEST_PROMPT] = "pp%ld", [TEST_GENERATE] = "tg%ld", [TEST_SMALL] = "pp%ld, all logits"
	};
	char at[24] = "", name[24];

	if (depth)
		snprintf(at, sizeof at, " @ d%ld", depth);
	snprintf(name, sizeof name, form[kind], n);
	*r = (struct row){ .unit = "t/s",
		           .depth = depth,
		           .n_prompt = kind == TEST_GENERATE ? 0 : n,
		           .n_gen = kind == TEST_GENERATE ? n : 0,
		           .work = limits_have(t->limits, limit_of(kind)) ? work_of(t, kind, n, depth) : 0,
		           .limit_name = limits_name(t->limits, limit_of(kind)),
		           .limit_unit = kind == TEST_PROMPT ? "op/s" : "B/s" };
	snprintf(r->test, sizeof r->test, "%s%s", name, at);
}

static struct plan_of_test plan_of(const struct test_machine *t, enum test_kind kind, long n, long depth)
{
	return (struct plan_of_test){ kind, n, kind == TEST_GENERATE && !depth ? 1 : depth,
		                      (int)t->model->file.spec.vocab };
}

bool test_run(const struct test_machine *t, enum test_kind kind, long n, long depth, struct row *out, jit_error *err)
{
	struct plan_of_test p = plan_of(t, kind, n, depth);
	struct series s = { 0 };
	jit_session_stats stats = JIT_SESSION_STATS();

	describe(t, kind, n, depth, out);
	if (jit_session_rewind(t->session, 0, err) != JIT_OK || !feed(t, p.base, p.vocab, STEP, err) ||
	    !repeat(t, &p, &s, err))
		return false;
	jit_session_get_stats(t->session, &stats, NULL);
	out->threads = stats.threads;
	row_fill(out, &s, t->noise);
	return true;
}

bool test_profile(const struct test_machine *t, const jit_session_options *options, enum test_kind kind, long n,
                  long depth, FILE *out, jit_error *err)
{
	const struct plan_of_test p = plan_of(t, kind, n, depth);
	struct test_machine timed = *t;
	jit_session_options o = *options;
	struct row r;

	o.profile = JIT_PROFILE_SUMS;
	if (!(timed.session = jit_session_open(t->model, &o, err)))
		return false;
	describe(&timed, kind, n, depth, &r);
	struct profile_table table = { .of = r.test };
	json_t *before = NULL;
	bool ok = feed(&timed, p.base, p.vocab, STEP, err) && time_passes(&timed, &p, 1, err) >= 0 &&
	          (table.bandwidth = limits_read(t->limits, LIMIT_MEMORY, err)) >= 0 &&
	          go_back(timed.session, (size_t)p.base, err) && (before = profile_table_mark(timed.session, err)) &&
	          run_pass(&timed, &p, err);
	table.since = before;
	ok = ok && fputs("\n", out) >= 0 && profile_table_print(out, timed.session, &table, err);
	json_decref(before);
	jit_session_close(timed.session);
	return ok;
}
