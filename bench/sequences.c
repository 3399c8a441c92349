/* bench/sequences.c - see sequences.h. */
#include "bench/sequences.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/host/system.h"

struct together {
	jit_batch *batch;
	jit_session **session, **ready;
	size_t sequences;
	int vocab;
	long at; /* how many tokens each has */
};

static int32_t token(size_t sequence, long i, int vocab)
{
	return (int32_t)((uint64_t)(i + 1) * (2654435761u + 2 * sequence) % (uint32_t)vocab);
}

/* Until all sequences have what they were given. */
static bool compute(struct together *t, jit_error *err)
{
	size_t done = 0, n;

	while (done < t->sequences) {
		if (jit_batch_step(t->batch, t->ready, t->sequences, &n, err) != JIT_OK)
			return false;
		done += n;
	}
	return true;
}

/* So many more tokens of each, by so many in a step. */
static bool feed(struct together *t, long n, long by, jit_error *err)
{
	int32_t ids[64];

	for (long end = t->at + n; t->at < end;) {
		long k = end - t->at < by ? end - t->at : by;
		for (size_t i = 0; i < t->sequences; i++) {
			for (long j = 0; j < k; j++)
				ids[j] = token(i, t->at + j, t->vocab);
			if (jit_session_submit(t->session[i], ids, (size_t)k, NULL, err) != JIT_OK)
				return false;
		}
		if (!compute(t, err))
			return false;
		t->at += k;
	}
	return true;
}

/* With the last token of each fed again, as go_back() does it. */
static bool all_go_back(struct together *t, long n, jit_error *err)
{
	t->at = n > 0 ? n - 1 : 0;
	for (size_t i = 0; i < t->sequences; i++)
		if (jit_session_rewind(t->session[i], (size_t)t->at, err) != JIT_OK)
			return false;
	return feed(t, n - t->at, 1, err);
}

/* n tokens of each behind `depth`; seconds, less than 0: err. */
static double time_once(struct together *t, long n, long depth, jit_error *err)
{
	if (!all_go_back(t, depth, err))
		return -1;
	double start = system_seconds();
	return feed(t, n, 1, err) ? system_seconds() - start : -1;
}

static bool repeat(const struct test_machine *m, struct together *t, long n, long depth, struct series *out,
                   jit_error *err)
{
	if (!feed(t, depth, 64, err) || time_once(t, n, depth, err) < 0)
		return false;
	double before = limits_read(m->limits, LIMIT_MEMORY, err);
	for (out->n = 0; before >= 0 && out->n < m->repetitions; out->n++) {
		double seconds = time_once(t, n, depth, err);
		if (seconds < 0)
			return false;
		double after = limits_read(m->limits, LIMIT_MEMORY, err);
		out->value[out->n] = (double)n * (double)t->sequences / seconds;
		out->limit[out->n] = after > before ? after : before;
		before = after;
	}
	return before >= 0;
}

static bool open_together(struct together *t, const struct test_machine *m, const jit_batch_options *options,
                          jit_error *err)
{
	t->session = calloc(t->sequences, sizeof *t->session);
	t->ready = calloc(t->sequences, sizeof *t->ready);
	if (!t->session || !t->ready) {
		snprintf(err->message, sizeof err->message, "no memory for %zu sequences", t->sequences);
		return false;
	}
	t->batch = jit_batch_open(m->model, options, err);
	for (size_t i = 0; t->batch && i < t->sequences; i++)
		if (!(t->session[i] = jit_batch_session(t->batch, NULL, err)))
			return false;
	return t->batch != NULL;
}

static void close_together(struct together *t)
{
	for (size_t i = 0; t->session && i < t->sequences; i++)
		if (t->session[i])
			jit_session_close(t->session[i]);
	jit_batch_close(t->batch);
	free(t->session);
	free(t->ready);
}

bool sequences_run(const struct test_machine *m, const jit_batch_options *options, long sequences, long n, long depth,
                   struct row *out, jit_error *err)
{
	struct series s = { 0 };
	struct together t = { .sequences = (size_t)sequences };
	jit_model_info info = JIT_MODEL_INFO();

	jit_model_get_info(m->model, &info, NULL);
	t.vocab = info.vocab;
	bool ok = open_together(&t, m, options, err) && repeat(m, &t, n, depth, &s, err);
	close_together(&t);
	*out = (struct row){
		.unit = "t/s",
		.depth = depth,
		.n_gen = n,
		.threads = options->threads ? options->threads : system_default_threads(),
		.work = limits_have(m->limits, LIMIT_MEMORY) ? (double)info.token_bytes / (double)sequences : 0,
		.limit_name = limits_name(m->limits, LIMIT_MEMORY),
		.limit_unit = "B/s"
	};
	int at = snprintf(out->test, sizeof out->test, "%ld x tg%ld", sequences, n);
	if (depth)
		snprintf(out->test + at, sizeof out->test - (size_t)at, " @ d%ld", depth);
	if (ok)
		row_fill(out, &s, m->noise);
	return ok;
}
