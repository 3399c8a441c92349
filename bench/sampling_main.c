/* bench/sampling_main.c - how long it takes to choose a token with each sampler, beside what reading the logits takes.
 *
 * build/bench/sampling [--vocab N] [--runs N]: the median of the runs, in microseconds, for logits as models give them.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs/common/options.h"
#include "programs/common/output.h"
#include "include/jitrun.h"
#include "runtime/sampling/sampling.h"

enum { CONTEXT = 4096, TEXT = 2000 };

static struct {
	long vocab, runs;
	struct option_about about;
} opt = { .vocab = 152000, .runs = 50 };

static const struct option_row rows[] = {
	{ .name = "vocab",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "tokens (152000)",
	  .low = 2,
	  .high = 1 << 24,
	  .target = &opt.vocab },
	{ .name = "runs",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "tokens chosen, of which the median is printed (50)",
	  .low = 1,
	  .high = 100000,
	  .target = &opt.runs },
	OPTION_ABOUT(opt.about),
};

#define USUAL .temperature = 0.8f, .seed = 1
static const struct {
	const char *name;
	jit_sampling p;
} tests[] = {
	{ "greedy", { .temperature = 0 } },
	{ "temperature alone", { USUAL } },
	{ "top-k 40, top-p, min-p, without a chain", { USUAL, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f } },
	{ "usual chain: top-k 40, top-p, min-p",
	  { USUAL, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .min_keep = 1 } },
	{ "the same with all penalties and DRY",
	  { USUAL, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .repeat_penalty = 1.1f, .presence_penalty = 0.1f,
	    .frequency_penalty = 0.1f, .dry_multiplier = 0.8f, .dry_window = -1 } },
	{ "temperature by a chain", { USUAL, .samplers = "temperature" } },
	{ "top-p 0.95 alone", { USUAL, .top_p = 0.95f, .min_keep = 1 } },
	{ "min-p 0.05 alone", { USUAL, .min_p = 0.05f, .min_keep = 1 } },
	{ "typical 0.9 alone", { USUAL, .typical_p = 0.9f } },
	{ "top-n-sigma 1 alone", { USUAL, .top_n_sigma = 1 } },
	{ "XTC alone", { USUAL, .xtc_probability = 1 } },
	{ "mirostat 2", { USUAL, .mirostat = 2 } },
	{ "adaptive-p", { USUAL, .adaptive_target = 0.3f } },
};

static uint64_t seed = 1;
static double unit(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 40) * 0x1p-24;
}

/* A bell of deviation 2.5, and a few that stand out. */
static void make_logits(float *logits, long n)
{
	for (long i = 0; i < n; i++)
		logits[i] = (float)(2.5 * sqrt(-2 * log(unit() + 1e-9)) * cos(6.283185307179586 * unit()));
	for (int i = 0; i < 20; i++)
		logits[(long)(unit() * (double)n)] = (float)(10 + 8 * unit());
}

static double microseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static bool time_one(size_t test, const float *logits, const int32_t *text, double *took, struct error *err)
{
	struct sampling s = { 0 };
	bool ok = sampling_open(&s, (int32_t)opt.vocab);

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for %ld tokens", opt.vocab);
	ok = ok && sampling_set(&s, &tests[test].p, CONTEXT, err);
	for (long i = 0; ok && i < opt.runs; i++) {
		double began = microseconds();
		sampling_choose(&s, logits, text, (size_t)(TEXT + i % TEXT));
		took[i] = microseconds() - began;
	}
	if (ok) {
		qsort(took, (size_t)opt.runs, sizeof *took, by_size);
		printf("%10.1f  %s\n", took[opt.runs / 2], tests[test].name);
	}
	sampling_close(&s);
	return ok;
}

static int run(int argc, char **argv)
{
	struct option_program program = { .name = "sampling",
		                          .usage = "[options]",
		                          .purpose = "time the choice of tokens",
		                          .row = rows,
		                          .n_rows = sizeof rows / sizeof *rows };
	struct error err = { 0 };
	int status = 2;

	if (!options_parse(&program, argc, argv) || options_about(&program, &opt.about, jit_version(), &status))
		return status;
	float *logits = malloc((size_t)opt.vocab * sizeof *logits);
	int32_t *text = malloc(2 * TEXT * sizeof *text);
	double *took = malloc((size_t)opt.runs * sizeof *took);
	bool ok = (logits && text && took) || error_set(&err, ERROR_MEMORY, "no memory for %ld logits", opt.vocab);
	if (ok) {
		make_logits(logits, opt.vocab);
		for (int i = 0; i < 2 * TEXT; i++)
			text[i] = (int32_t)(unit() * (double)(opt.vocab < 500 ? opt.vocab : 500));
		printf("microseconds a token, %ld tokens\n", opt.vocab);
	}
	for (size_t i = 0; ok && i < sizeof tests / sizeof *tests; i++)
		ok = time_one(i, logits, text, took, &err);
	free(logits);
	free(text);
	free(took);
	if (!ok)
		fprintf(stderr, "sampling: %s.\n", err.text);
	return !ok;
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("sampling", run(argc, argv), 1);
}
