/* bench/jitbench_main.c - the jitbench program: how fast a model runs here, and what share of the memory bandwidth that is.
 *
 * Every repetition stands between two readings of the bandwidth in the same process and is compared with the faster of them, so that a
 * neighbour who slows the machine slows both; the median of the shares is printed. One line per test, as a table or as JSON lines. Performance is judged here and nowhere else: no test has a time limit.
 */
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/bandwidth.h"
#include "runtime/jitrun.h"
#include "runtime/options.h"
#include "runtime/system.h"

enum { MAX_REPETITIONS = 100, BANDWIDTH_READINGS = 3, BANDWIDTH_BYTES = 1 << 28 };

static struct {
	long threads, prompt, generate, depth, repetitions, batch;
	const char *isa, *kv_type, *activations, *format;
	bool help;
} opt = { .prompt = 512, .generate = 64, .repetitions = 5, .kv_type = "f16", .activations = "auto", .format = "table" };

static const struct option_row rows[] = {
	{ "prompt", 'p', OPTION_INT, "N", "time a prompt of N tokens, 0: not (512)", 0, 1 << 20, &opt.prompt },
	{ "generate", 'n', OPTION_INT, "N", "time N tokens generated one by one, 0: not (64)", 0, 1 << 20, &opt.generate },
	{ "depth", 'd', OPTION_INT, "N", "positions already in the context when generation starts (0)", 0, 1 << 20, &opt.depth },
	{ "repetitions", 'r', OPTION_INT, "N", "repeat each test N times (5)", 1, MAX_REPETITIONS, &opt.repetitions },
	{ "threads", 't', OPTION_INT, "N", "worker threads; 0: one per core this process may use (0)", 0, 1024, &opt.threads },
	{ "batch", 'b', OPTION_INT, "N", "most prompt tokens in one pass; 0: 240 (0)", 0, 1024, &opt.batch },
	{ "isa", 0, OPTION_CHOICE, "avx2|avx2vnni|avx512|avx512vnni", "instruction set to generate for (the best this CPU has)", 0, 0, &opt.isa },
	{ "kv-type", 0, OPTION_CHOICE, "f16|f32", "type of the KV cache (f16)", 0, 0, &opt.kv_type },
	{ "activations", 0, OPTION_CHOICE, "auto|f32", "int8 blocks against quantised weights, or always f32 (auto)", 0, 0, &opt.activations },
	{ "format", 'o', OPTION_CHOICE, "table|jsonl", "how to print (table)", 0, 0, &opt.format },
	{ "help", 'h', OPTION_FLAG, 0, "print this help", 0, 0, &opt.help },
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Of the repetitions: tokens per second, the bandwidth around each, and the share of it. */
struct rate { double best, median, worst, bandwidth, share; };
struct sample { double rate[MAX_REPETITIONS], bandwidth[MAX_REPETITIONS], share[MAX_REPETITIONS]; };

static double middle(double *v, long n)
{
	qsort(v, (size_t)n, sizeof *v, compare);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static struct rate summarise(struct sample *s, long n)
{
	struct rate r = { .median = middle(s->rate, n), .bandwidth = middle(s->bandwidth, n), .share = middle(s->share, n) };
	r.worst = s->rate[0];                /* sorted by now */
	r.best = s->rate[n - 1];
	return r;
}

static int32_t token(long i, int vocab) { return (int32_t)((uint64_t)(i + 1) * 2654435761u % (uint32_t)vocab); }

static bool feed(jit_session *s, long n, int vocab, jit_error *err)
{
	int32_t ids[256];
	for (long i = 0; i < n;) {
		long k = 0;
		for (; k < 256 && i + k < n; k++)
			ids[k] = token(i + k, vocab);
		if (jit_session_feed(s, ids, (size_t)k, err) != JIT_OK)
			return false;
		i += k;
	}
	return true;
}

static bool time_prompt(jit_session *s, int vocab, struct rate *out, jit_error *err)
{
	struct sample v = { 0 };

	for (long r = -1; r < opt.repetitions; r++) {      /* the first is a warm-up: pages, kernels, plans */
		if (jit_session_rewind(s, 0, err) != JIT_OK)
			return false;
		double t = system_seconds();
		if (!feed(s, opt.prompt, vocab, err))
			return false;
		if (r >= 0)
			v.rate[r] = (double)opt.prompt / (system_seconds() - t);
	}
	*out = summarise(&v, opt.repetitions);
	return true;
}

/* Tokens are forced, not chosen, so that every run computes the same thing. */
static bool time_decode(jit_session *s, int vocab, double bytes_per_token, struct bandwidth *bw, struct rate *out, jit_error *err)
{
	struct sample v = { 0 };
	long depth = opt.depth > 0 ? opt.depth : 1;

	if (jit_session_rewind(s, 0, err) != JIT_OK || !feed(s, depth, vocab, err))
		return false;
	double before = bandwidth_sample(bw, BANDWIDTH_READINGS);
	for (long r = -1; r < opt.repetitions; r++) {
		if (jit_session_rewind(s, (size_t)depth, err) != JIT_OK)
			return false;
		double t = system_seconds();
		for (long i = 0; i < opt.generate; i++) {
			int32_t id = token(i, vocab);
			if (jit_session_feed(s, &id, 1, err) != JIT_OK)
				return false;
		}
		double rate = (double)opt.generate / (system_seconds() - t), after = bandwidth_sample(bw, BANDWIDTH_READINGS);
		if (r >= 0) {
			v.rate[r] = rate;
			v.bandwidth[r] = after > before ? after : before;
			v.share[r] = rate * bytes_per_token / v.bandwidth[r];
		}
		before = after;
	}
	*out = summarise(&v, opt.repetitions);
	return true;
}

static void print_row(const char *test, struct rate r, double bytes_per_token, const char *pattern, const char *model, int threads)
{
	if (strcmp(opt.format, "jsonl") == 0) {
		json_t *o = json_pack("{s:s,s:s,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:s}", "model", model, "test", test, "threads", threads, "tokens_per_second", r.median,
			"best", r.best, "worst", r.worst, "bytes_per_token", bytes_per_token, "bandwidth", r.bandwidth, "share", r.share, "pattern", pattern);
		char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
		puts(text ? text : "{}");
		free(text);
		json_decref(o);
		return;
	}
	printf("%-12s %3d  %10.2f  %10.2f  %10.2f", test, threads, r.median, r.best, r.worst);
	if (bytes_per_token > 0)
		printf("  %8.2f  %8.2f  %5.1f %%", r.median * bytes_per_token / 1e9, r.bandwidth / 1e9, 100 * r.share);
	putchar('\n');
	fflush(stdout);
}

static int run(jit_model *m, jit_session *s, struct bandwidth *bw, jit_error *err)
{
	jit_model_info info;
	jit_session_stats stats;
	struct rusage usage;
	struct rate r;
	char name[64];

	jit_model_get_info(m, &info);
	jit_session_get_stats(s, &stats);
	bool table = strcmp(opt.format, "table") == 0;
	if (table) {
		printf("%s; load %.3f s\n", info.description, info.load_seconds);
		printf("%-12s %3s  %10s  %10s  %10s  %8s  %8s  %7s\n", "test", "thr", "tokens/s", "best", "worst", "GB/s", "of GB/s", "share");
	}
	if (opt.prompt) {
		if (!time_prompt(s, info.vocab, &r, err))
			return 1;
		snprintf(name, sizeof name, "pp%ld", opt.prompt);
		print_row(name, r, 0, bandwidth_pattern(bw), info.description, stats.threads);
	}
	if (opt.generate) {
		double kv = opt.depth > 0 ? (double)stats.kv_bytes / stats.context * ((double)opt.depth + (double)opt.generate / 2) : 0;
		if (!time_decode(s, info.vocab, (double)info.token_bytes + kv, bw, &r, err))
			return 1;
		snprintf(name, sizeof name, opt.depth ? "tg%ld@%ld" : "tg%ld", opt.generate, opt.depth);
		print_row(name, r, (double)info.token_bytes + kv, bandwidth_pattern(bw), info.description, stats.threads);
	}
	if (table) {
		getrusage(RUSAGE_SELF, &usage);
		jit_session_get_stats(s, &stats);
		printf("read bandwidth: %s; %llu kernels, %llu generated in %.2f ms; peak RSS %.0f MiB, %d of it for reading bandwidth\n", bandwidth_pattern(bw), (unsigned long long)stats.kernels,
		       (unsigned long long)stats.kernels_generated, 1e3 * stats.generate_seconds, (double)usage.ru_maxrss / 1024, BANDWIDTH_BYTES >> 20);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *path = NULL;
	struct option_program program = { .name = "jitbench", .usage = "MODEL [options]", .purpose = "measure how fast a model runs, as a share of the memory bandwidth measured beside it",
		.row = rows, .n_rows = sizeof rows / sizeof rows[0], .operand = &path, .max_operands = 1 };
	jit_error err = { 0 };

	if (!options_parse(&program, argc, argv))
		return 2;
	if (opt.help) {
		options_help(&program, stdout);
		return 0;
	}
	if (!path) {
		fprintf(stderr, "jitbench: which model?\nTry 'jitbench --help'.\n");
		return 2;
	}
	long context = opt.prompt > opt.depth + opt.generate + 1 ? opt.prompt : opt.depth + opt.generate + 1;
	jit_model_options mo = { .isa = opt.isa, .threads = (int)opt.threads, .f32_activations = strcmp(opt.activations, "f32") == 0 };
	jit_session_options so = { .context = (int)context, .threads = (int)opt.threads, .batch = (int)opt.batch, .kv_f32 = strcmp(opt.kv_type, "f32") == 0 };
	jit_model *m = jit_model_open(path, &mo, &err);
	jit_session *s = m ? jit_session_open(m, &so, &err) : NULL;
	jit_session_stats stats = { 0 };
	if (s)
		jit_session_get_stats(s, &stats);
	struct bandwidth *bw = s ? bandwidth_open(stats.threads, BANDWIDTH_BYTES) : NULL;
	if (s && !bw)
		snprintf(err.message, sizeof err.message, "no memory to measure the bandwidth with");
	int rc = bw ? run(m, s, bw, &err) : 1;
	if (rc)
		fprintf(stderr, "jitbench: %s.\n", err.message);
	bandwidth_close(bw);
	jit_session_close(s);
	jit_model_close(m);
	return rc;
}
