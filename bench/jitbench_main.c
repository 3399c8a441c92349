/* bench/jitbench_main.c - the jitbench program: how fast a model runs here, and what share of this machine's limits
 * that is.
 *
 * Owns: the options and the order of the tests; the files beside it measure and print. Performance is judged here and
 * nowhere else: no test has a time limit. Exit status: 0 done, 1 something failed (one sentence on stderr), 2 a wrong
 * command line, 3 a number was too noisy to print, 4 compare found something slower.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/codegen_time.h"
#include "bench/predict.h"
#include "bench/print.h"
#include "bench/regimes.h"
#include "bench/reports.h"
#include "bench/schedules.h"
#include "bench/startup.h"
#include "bench/suite.h"
#include "programs/synth.h"
#include "bench/throughput.h"
#include "loaders/model_load.h"
#include "programs/allocator.h"
#include "runtime/model.h"
#include "programs/options.h"
#include "programs/output.h"
#include "runtime/host/system.h"

enum {
	EXIT_USAGE = 2,
	EXIT_NOISY = 3,
	EXIT_SLOWER = 4,
	OPERANDS_MOST = 3,
	ROUNDS = 4 /* of regimes, for each repetition */,
	MAX_LIST = 16,
	MAX_TOKENS = 1 << 20,
	PEAK_READINGS = 5,
	START_MOST = 3
};

static struct {
	const char *model, *prompt, *generate, *depth, *small, *threads, *isa, *kv_type, *activations, *format, *cache,
		*shape, *weights, *write, *device;
	long repetitions, batch;
	double noise, threshold;
	bool all_small, no_start, no_cache, force, predict, kernels;
	struct option_about about;
} opt = { .prompt = "512",
	  .generate = "128",
	  .depth = "0",
	  .small = "0",
	  .threads = "0",
	  .repetitions = 5,
	  .noise = 10,
	  .threshold = 10,
	  .kv_type = "f16",
	  .activations = "auto",
	  .format = "markdown",
	  .device = "cpu" };

/* Read off the table of targets before the command line is. */
static char isa_choices[TARGET_LIST_MAX], device_choices[TARGET_LIST_MAX] = "cpu|";

static void list_targets(void)
{
	size_t n = strlen(device_choices);

	target_list(isa_choices, sizeof isa_choices, TARGETS_OF_CPUS, "", "|");
	target_list(device_choices + n, sizeof device_choices - n, TARGETS_OF_CARDS, "sim:", "|");
}

static const struct option_row rows[] = {
	{ "Model", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "model", 'm', OPTION_FILE, "FILE", "the model, instead of MODEL", 0, 0, &opt.model },
	{ "shape", 0, OPTION_CHOICE, SHAPE_NAMES,
	  "make up a model of this shape, with random weights, instead of reading one", 0, 0, &opt.shape },
	{ "weights", 0, OPTION_CHOICE, MIXTURE_NAMES,
	  "the format of the weights made up; formats of less than six bits have Q6_K where the logits are made (q8_0)",
	  0, 0, &opt.weights },
	{ "write", 0, OPTION_FILE, "FILE",
	  "keep the model made up as a GGUF file, for others to read; otherwise it goes away, from $TMPDIR or, without "
	  "that, from memory",
	  0, 0, &opt.write },
	{ "Tests", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "prompt", 'p', OPTION_TEXT, "N,...", "time prompts of N tokens, 0: none (512)", 0, 0, &opt.prompt },
	{ "generate", 'n', OPTION_TEXT, "N,...", "time N tokens generated one by one, 0: none (128)", 0, 0,
	  &opt.generate },
	{ "depth", 'd', OPTION_TEXT, "N,...", "with so many positions in the context already (0)", 0, 0, &opt.depth },
	{ "small-batches", 'b', OPTION_TEXT, "N,...", "time batches of N tokens with logits for each, 0: none (0)", 0,
	  0, &opt.small },
	{ "small", 0, OPTION_FLAG, 0, "the same as --small-batches 2,4,8,16,32", 0, 0, &opt.all_small },
	{ "no-start", 0, OPTION_FLAG, 0, "leave out loading, time to the first token, code generation and memory", 0, 0,
	  &opt.no_start },
	{ "predict", 0, OPTION_FLAG, 0,
	  "measure nothing: say how long a token, or a pass over the first of --small-batches (at most 16), should "
	  "take on the card of --device sim:..., at the first depth, from what its simulator counts and its data "
	  "sheet; of a model made up, a few layers are simulated",
	  0, 0, &opt.predict },
	{ "kernels", 0, OPTION_FLAG, 0,
	  "time the kernels alone, for which a header is enough: all generated, opened from a cache directory and from "
	  "a pack, those of a token opened, one looked up, those of one pass generated, by one thread and by all, and "
	  "its layers' by all; for a card also linked",
	  0, 0, &opt.kernels },
	{ "Measuring", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "repetitions", 'r', OPTION_INT, "N", "repeat each test N times, starts at most 3 (5)", 1, MAX_REPETITIONS,
	  &opt.repetitions },
	{ "noise", 0, OPTION_FLOAT, "PERCENT",
	  "refuse a number when the quartiles of its repetitions, or of the limit measured around them, lie further "
	  "apart (10)",
	  0.001, 1000, &opt.noise },
	{ "threshold", 0, OPTION_FLOAT, "PERCENT", "compare: what differs by less is the same (10)", 0.001, 99,
	  &opt.threshold },
	{ "force", 0, OPTION_FLAG, 0, "print noisy numbers too", 0, 0, &opt.force },
	{ "output", 'o', OPTION_CHOICE, "markdown|md|csv|json|jsonl", "how to print (markdown)", 0, 0, &opt.format },
	{ "Machine", 0, OPTION_GROUP, 0, 0, 0, 0, 0 },
	{ "threads", 't', OPTION_TEXT, "N,...", "worker threads; 0: one per core this process may use (0)", 0, 0,
	  &opt.threads },
	{ "batch", 0, OPTION_INT, "N", "most prompt tokens computed in one pass; 0: the session's choice (0)", 0, 1024,
	  &opt.batch },
	{ "device", 0, OPTION_CHOICE, device_choices,
	  "cpu; a simulated card for --predict and --kernels, as time means nothing in a simulator (cpu)", 0, 0,
	  &opt.device },
	{ "isa", 0, OPTION_CHOICE, isa_choices, "instruction set to generate for (the best this CPU has)", 0, 0,
	  &opt.isa },
	{ "kv-type", 0, OPTION_CHOICE, "f16|f32|q8_0", "type of the KV cache (f16)", 0, 0, &opt.kv_type },
	{ "activations", 0, OPTION_CHOICE, "auto|f32",
	  "auto: int8 blocks against quantised weights; f32: always f32, slower (auto)", 0, 0, &opt.activations },
	{ "cache", 0, OPTION_FILE, "PATH",
	  "directories and pack files (.jkp) of generated code, separated by colons and asked in order ($JITRUN_CACHE, "
	  "or $XDG_CACHE_HOME/jitrun)",
	  0, 0, &opt.cache },
	{ "no-cache", 0, OPTION_FLAG, 0, "neither read nor write generated code on disk", 0, 0, &opt.no_cache },
	OPTION_ABOUT(opt.about),
};

static const struct option_command commands[] = {
	{ "", "MODEL", "time a model" },
	{ "suite", "[TEXT]",
	  "time matrices and attention of well-known models one by one on made-up data, those whose row has TEXT in "
	  "it; -o json makes a report" },
	{ "compare", "A.json B.json", "print the ratios of two reports of suite, row by row" },
	{ "regimes", "",
	  "time a layer of --shape (qwen3-0.6b) over few tokens and many, near and far, and print what kernels made "
	  "for each gain" },
	{ "schedules", "",
	  "time a layer of --shape (qwen3-0.6b) with its matmuls going through the weights in each of the ways that "
	  "jitwarm tune tries, one change at a time" },
};

struct list {
	long value[MAX_LIST];
	int n;
};
static struct {
	struct list prompt, generate, depth, small, threads;
} lists;

static int usage(const char *text)
{
	fprintf(stderr, "jitbench: %s\nTry 'jitbench --help'.\n", text);
	return EXIT_USAGE;
}

static int fail(const char *message)
{
	char quoted[1024];

	fprintf(stderr, "jitbench: %s.\n", error_quote(quoted, sizeof quoted, message, strlen(message)));
	return 1;
}

static bool parse_list(const char *name, const char *text, long most, struct list *out)
{
	const char *at = text;

	for (out->n = 0;;) {
		char *end;
		errno = 0;
		long v = strtol(at, &end, 10);
		if (end == at || (*end && *end != ',') || errno || v < 0 || v > most || out->n == MAX_LIST) {
			char quoted[80];
			fprintf(stderr,
			        "jitbench: --%s: \"%s\" is not a list of at most %d whole numbers from 0 to %ld, such "
			        "as 1,2,3\nTry 'jitbench --help'.\n",
			        name, error_quote(quoted, sizeof quoted, text, strlen(text)), MAX_LIST, most);
			return false;
		}
		out->value[out->n++] = v;
		if (!*end)
			return true;
		at = end + 1;
	}
}

static bool parse_lists(void)
{
	return parse_list("prompt", opt.prompt, MAX_TOKENS, &lists.prompt) &&
	       parse_list("generate", opt.generate, MAX_TOKENS, &lists.generate) &&
	       parse_list("depth", opt.depth, MAX_TOKENS, &lists.depth) &&
	       parse_list("threads", opt.threads, 1024, &lists.threads) &&
	       parse_list("small-batches", opt.all_small ? "2,4,8,16,32" : opt.small, 32, &lists.small);
}

static long greatest(const struct list *l)
{
	long most = 0;
	for (int i = 0; i < l->n; i++)
		most = l->value[i] > most ? l->value[i] : most;
	return most;
}

/* ---- the model */

/* Makes one up where --shape asks for it; *fd stays open as long as the file is needed. */
static bool make_model(char *path, size_t size, int *fd, struct error *err)
{
	const struct shape *s = shape_find(opt.shape);
	const struct mixture *m = mixture_find(opt.weights ? opt.weights : "q8_0");
	uint64_t bytes = synth_bytes(s, m), available = system_available_memory();

	if (!opt.write && !getenv("TMPDIR") && bytes > available / 2)
		return error_set(err, ERROR_MEMORY,
		                 "%s: takes %.1f GiB twice in memory, and %.1f GiB are available; name a file with "
		                 "--write, or a directory with $TMPDIR",
		                 s->name, (double)bytes / 0x1p30, (double)available / 0x1p30);
	if (opt.write) {
		snprintf(path, size, "%s", opt.write);
		*fd = open(opt.write, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (*fd < 0)
			return error_set(err, ERROR_IO, "%s: could not be made: %s", opt.write, strerror(errno));
	} else if ((*fd = synth_temporary(path, size, err)) < 0) {
		return false;
	}
	return synth_write(*fd, opt.write ? opt.write : "the temporary file", s, m, err);
}

/* ---- the tests */

static int noisy_rows;

static void show(struct printer *p, const struct row *r)
{
	print_row(p, r);
	if (r->noisy[0]) {
		fprintf(stderr, "jitbench: %s is noisy: %s.\n", r->test, r->noisy);
		noisy_rows++;
	}
}

/* Every peak this CPU has, once: whoever reads a share may want to know of the others. */
static void print_limits(const struct test_machine *t)
{
	printf("\nread bandwidth %.1f GB/s (%s)", bandwidth_sample(t->bandwidth, PEAK_READINGS) / 1e9,
	       bandwidth_pattern(t->bandwidth));
	for (int k = 0; k < PEAK_COUNT; k++)
		if (peak_possible((enum peak_kind)k))
			printf("; %s %.0f Gop/s", peak_name((enum peak_kind)k),
			       peak_sample(t->peak, (enum peak_kind)k, PEAK_READINGS) / 1e9);
	putchar('\n');
}

static bool run_list(const struct test_machine *t, struct printer *p, enum test_kind kind, const struct list *l,
                     long depth, jit_error *err)
{
	struct row r;

	for (int i = 0; i < l->n; i++) {
		if (l->value[i] == 0)
			continue;
		if (!test_run(t, kind, l->value[i], depth, &r, err))
			return false;
		show(p, &r);
	}
	return true;
}

static int kv_option(void)
{
	return strcmp(opt.kv_type, "f32") == 0    ? JIT_KV_F32
	       : strcmp(opt.kv_type, "q8_0") == 0 ? JIT_KV_Q8_0
	                                          : JIT_KV_F16;
}

static enum print_format print_format(void)
{
	return strcmp(opt.format, "csv") == 0     ? PRINT_CSV
	       : strcmp(opt.format, "json") == 0  ? PRINT_JSON
	       : strcmp(opt.format, "jsonl") == 0 ? PRINT_JSONL
	                                          : PRINT_MARKDOWN;
}

/* All tests with one number of threads. */
static bool run_tests(jit_model *m, struct printer *p, long threads, bool last, jit_error *err)
{
	long most = greatest(&lists.prompt) > greatest(&lists.generate)
	                    ? greatest(&lists.prompt)
	                    : greatest(&lists.generate);
	most = greatest(&lists.small) > most ? greatest(&lists.small) : most;
	if (most == 0)
		return true;
	jit_session_options so = { .context = (int)(greatest(&lists.depth) + most + 2),
		                   .threads = (int)threads,
		                   .batch = (int)opt.batch,
		                   .kv = kv_option() };
	struct test_machine t = {
		.model = m, .repetitions = opt.repetitions, .noise = opt.force ? 0 : opt.noise / 100
	};
	jit_session_stats stats;
	bool ok = (t.session = jit_session_open(m, &so, err)) != NULL;

	if (ok) {
		jit_session_get_stats(t.session, &stats);
		t.bandwidth = bandwidth_open(stats.threads);
		t.peak = peak_open(stats.threads);
		t.peak_kind = peak_of(m->target->name, test_uses_int8(m));
		ok = t.bandwidth && t.peak;
		if (!ok)
			snprintf(err->message, sizeof err->message, "no memory to measure the machine with");
	}
	for (int i = 0; ok && i < lists.depth.n; i++)
		ok = run_list(&t, p, TEST_PROMPT, &lists.prompt, lists.depth.value[i], err) &&
		     run_list(&t, p, TEST_SMALL, &lists.small, lists.depth.value[i], err) &&
		     run_list(&t, p, TEST_GENERATE, &lists.generate, lists.depth.value[i], err);
	if (ok && last && p->format == PRINT_MARKDOWN)
		print_limits(&t);
	peak_close(t.peak);
	bandwidth_close(t.bandwidth);
	jit_session_close(t.session);
	return ok;
}

static bool run(const char *path, const char *name, jit_error *err)
{
	jit_model_options mo = { .isa = opt.isa,
		                 .threads = (int)lists.threads.value[0],
		                 .f32_activations = strcmp(opt.activations, "f32") == 0,
		                 .cache_dir = opt.no_cache ? "" : opt.cache };
	jit_session_options so = { .threads = mo.threads, .batch = (int)opt.batch, .kv = kv_option() };
	struct printer p = { .filename = name, .isa = "", .type_kv = opt.kv_type, .format = print_format() };
	struct row start[START_ROWS];
	jit_model_info info;

	if (!opt.no_start && !start_measure(path, &mo, &so, opt.repetitions < START_MOST ? opt.repetitions : START_MOST,
	                                    opt.force ? 0 : opt.noise / 100, start, err))
		return false;
	jit_model *m = jit_model_open(path, &mo, err);
	if (!m)
		return false;
	jit_model_get_info(m, &info);
	p.type = info.description;
	p.size = info.weight_bytes;
	p.parameters = test_parameters(m);
	p.isa = m->target->name;
	print_begin(&p);
	for (int i = 0; i < START_ROWS && !opt.no_start; i++)
		show(&p, &start[i]);
	bool ok = true;
	for (int i = 0; ok && i < lists.threads.n; i++)
		ok = run_tests(m, &p, lists.threads.value[i], i + 1 == lists.threads.n, err);
	print_end(&p);
	jit_model_close(m);
	return ok;
}

/* The model's path into `path`; 0, or the exit status. */
static int choose_model(const char *operand, char *path, size_t size, int *fd)
{
	struct error err = { 0 };

	if ((operand != NULL) + (opt.model != NULL) + (opt.shape != NULL) != 1)
		return usage("which model? Give one of MODEL, --model and --shape");
	if (!opt.shape && (opt.weights || opt.write))
		return usage("--weights and --write belong to a model made up, with --shape");
	if (!opt.shape) {
		snprintf(path, size, "%s", operand ? operand : opt.model);
		return 0;
	}
	return make_model(path, size, fd, &err) ? 0 : fail(err.text);
}

/* *header is borrowed by the model, and to be freed after it. */
static bool open_header(struct model *m, const char *path, uint8_t **header, struct error *err)
{
	size_t n;

	if (!opt.shape)
		return model_open(m, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
	*header = synth_header(&n, shape_find(opt.shape), mixture_find(opt.weights ? opt.weights : "q8_0"), err);
	return *header && model_open_memory(m, *header, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
}

static int run_kernels(const char *operand)
{
	static const enum dtype kv[] = {
		[JIT_KV_F16] = DTYPE_F16, [JIT_KV_F32] = DTYPE_F32, [JIT_KV_Q8_0] = DTYPE_Q8_0
	};
	const bool card = strncmp(opt.device, "sim:", 4) == 0;
	const char *path = operand ? operand : opt.model;
	struct printer p = { .filename = path ? path : opt.shape, .format = print_format(), .type_kv = opt.kv_type };
	struct row row[KERNEL_ROWS];
	uint8_t *header = NULL;
	struct error err = { 0 };
	char text[256];
	size_t n_rows;
	struct model m;

	if (card && opt.isa)
		return usage("--isa is for the cpu: --device sim:... names the target");
	if ((path != NULL) + (opt.shape != NULL) != 1)
		return usage("which model? Give one of MODEL, --model and --shape");
	const struct warm_options o = {
		.target = card      ? target_find(opt.device + 4)
		          : opt.isa ? target_find(opt.isa)
		                    : target_native(&err),
		.kv = warm_kv(kv[kv_option()]),
		.activations = strcmp(opt.activations, "f32") == 0 ? WARM_F32_ACTIVATIONS : WARM_INT8_ACTIVATIONS
	};
	if (!o.target || !open_header(&m, path, &header, &err))
		return fail(err.text);
	model_describe(&m, text, sizeof text);
	p.type = text;
	p.isa = o.target->name;
	bool ok = kernels_measure(&m.spec, &o, kv[kv_option()], opt.repetitions, opt.force ? 0 : opt.noise / 100, row,
	                          &n_rows, &err);
	model_close(&m);
	free(header);
	if (!ok)
		return fail(err.text);
	print_begin(&p);
	for (size_t i = 0; i < n_rows; i++)
		show(&p, &row[i]);
	print_end(&p);
	return noisy_rows ? EXIT_NOISY : 0;
}

static int run_predict(const char *operand)
{
	struct predict_options o = {
		.target = opt.device + strlen("sim:"),
		.path = operand ? operand : opt.model,
		.depth = (uint32_t)lists.depth.value[0],
		.tokens = lists.small.n && lists.small.value[0] ? (uint32_t)lists.small.value[0] : 1,
		.kv_f32 = strcmp(opt.kv_type, "f32") == 0,
		.f32_activations = strcmp(opt.activations, "f32") == 0,
		.mixture = mixture_find(opt.weights ? opt.weights : "q8_0")
	};
	struct error err = { 0 };

	if ((o.path != NULL) + (opt.shape != NULL) != 1)
		return usage("which model? Give one of MODEL, --model and --shape");
	if (opt.shape)
		o.shape = shape_find(opt.shape);
	return predict(&o, stdout, &err) ? 0 : fail(err.text);
}

/* ---- kernels by themselves */

static const struct target *suite_target(struct error *err)
{
	const struct target_cpu cpu = target_this_cpu();
	const struct target *t = opt.isa ? target_find(opt.isa) : target_judge(&cpu, err);

	return t && (!opt.isa || target_runs(&cpu, t, err)) ? t : NULL;
}

static int run_suite(const char *only)
{
	struct error err = { 0 };
	struct suite_options o = { .target = suite_target(&err),
		                   .threads = (int)lists.threads.value[0],
		                   .repetitions = opt.repetitions,
		                   .noise = opt.force ? 0 : opt.noise / 100,
		                   .only = only,
		                   .json = strcmp(opt.format, "json") == 0 };
	int noisy = 0;

	if (!o.json && strcmp(opt.format, "markdown") != 0 && strcmp(opt.format, "md") != 0)
		return usage("suite prints markdown or json");
	return o.target && suite_run(&o, stdout, &noisy, &err) ? noisy ? EXIT_NOISY : 0 : fail(err.text);
}

static int run_compare(const char *a, const char *b)
{
	struct error err = { 0 };
	int slower = 0;

	return reports_compare(a, b, opt.threshold / 100, strcmp(opt.format, "json") == 0, stdout, &slower, &err)
	               ? slower ? EXIT_SLOWER : 0
	               : fail(err.text);
}

static int run_regimes(void)
{
	struct error err = { 0 };
	struct regimes_options o = { .target = suite_target(&err),
		                     .shape = shape_find(opt.shape ? opt.shape : "qwen3-0.6b"),
		                     .mixture = opt.weights ? mixture_find(opt.weights) : NULL,
		                     .threads = (int)lists.threads.value[0],
		                     .rounds = ROUNDS * opt.repetitions };

	return o.target && regimes_run(&o, stdout, &err) ? 0 : fail(err.text);
}

static int run_schedules(void)
{
	struct error err = { 0 };
	struct schedules_options o = { .target = suite_target(&err),
		                       .shape = shape_find(opt.shape ? opt.shape : "qwen3-0.6b"),
		                       .mixture = opt.weights ? mixture_find(opt.weights) : NULL,
		                       .threads = (int)lists.threads.value[0],
		                       .rounds = ROUNDS * opt.repetitions };

	return o.target && schedules_run(&o, stdout, &err) ? 0 : fail(err.text);
}

/* Whether the operands are a command; its exit status. */
static bool run_command(const char *const operand[], int n, int *status)
{
	if (n && strcmp(operand[0], "suite") == 0)
		*status = n > 2 ? usage("suite takes one text at most") : run_suite(n > 1 ? operand[1] : NULL);
	else if (n && strcmp(operand[0], "compare") == 0)
		*status = n != 3 ? usage("compare takes two reports") : run_compare(operand[1], operand[2]);
	else if (n && strcmp(operand[0], "regimes") == 0)
		*status = n > 1 ? usage("regimes takes no operands") : run_regimes();
	else if (n && strcmp(operand[0], "schedules") == 0)
		*status = n > 1 ? usage("schedules takes no operands") : run_schedules();
	else if (n > 1)
		*status = usage("more than one model was given");
	else
		return false;
	return true;
}

static int run_program(int argc, char **argv)
{
	const char *operands[OPERANDS_MOST] = { NULL }, *operand;
	char path[4096], name[128];
	int fd = -1;
	struct option_program program = {
		.name = "jitbench",
		.usage = "[COMMAND] MODEL [options]",
		.purpose = "measure how fast a model runs, as a share of what the machine can do",
		.description =
			"jitbench times prompts, generation, small batches and starts. Around every repetition it "
			"measures, in the same process, how fast memory is read or "
			"how fast the cores multiply, and prints the share of that a test reached: of the arithmetic "
			"peak for prompts (pp), of the bandwidth for generation (tg) and small "
			"batches. A number whose repetitions differ too much is printed as \"noisy\", and the exit "
			"status is 3. From a single repetition nothing is judged. The exit status of compare is 4 "
			"when something is slower: its share of the peak measured beside it fell by more than "
			"--threshold.",
		.examples = "jitbench model.gguf\njitbench model.gguf -p 128,512 -n 64 -d 0,2048 -t 1,2 -o "
			    "csv\njitbench --shape qwen3-0.6b --weights q4_k_m --write random.gguf\n"
			    "jitbench suite -o json > before.json\njitbench compare before.json after.json",
		.row = rows,
		.n_rows = sizeof rows / sizeof rows[0],
		.command = commands,
		.n_commands = sizeof commands / sizeof *commands,
		.operand = operands,
		.max_operands = OPERANDS_MOST
	};
	jit_error err = { 0 };

	allocator_begin();
	system_file_limit_is_error();
	list_targets();
	if (!options_parse(&program, argc, argv))
		return EXIT_USAGE;
	int rc;
	if (options_about(&program, &opt.about, jit_version(), &rc))
		return rc;
	if (!parse_lists())
		return EXIT_USAGE;
	if (run_command(operands, program.n_operands, &rc))
		return rc;
	operand = operands[0];
	if (opt.predict && strcmp(opt.device, "cpu") == 0)
		return usage("--predict needs --device sim:...");
	if (strcmp(opt.device, "cpu") != 0 && !opt.predict && !opt.kernels)
		return usage("--device sim:... belongs to --predict or --kernels");
	if (opt.predict)
		return run_predict(operand);
	if (opt.kernels)
		return run_kernels(operand);
	rc = choose_model(operand, path, sizeof path, &fd);
	if (rc)
		return rc;
	snprintf(name, sizeof name, "random %s %s", opt.shape ? opt.shape : "", opt.weights ? opt.weights : "q8_0");
	if (!run(path, opt.shape && !opt.write ? name : path, &err))
		rc = fail(err.message);
	if (fd >= 0)
		close(fd);
	return rc ? rc : noisy_rows ? EXIT_NOISY : 0;
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("jitbench", run_program(argc, argv), 1);
}
