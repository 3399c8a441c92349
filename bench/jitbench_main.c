/* bench/jitbench_main.c - the jitbench program: how fast a model runs here, and what share of this machine's limits
 * that is.
 *
 * Owns: the commands and the order of the tests; the files beside it measure and print. Performance is judged by this
 * program alone: nothing in tests/ has a time limit. Exit status: 0 done, 1 something failed (one sentence on stderr),
 * 2 a wrong command line, 3 a number is noisy, 4 compare found something slower.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/codegen_time.h"
#include "bench/header.h"
#include "bench/jitbench_options.h"
#include "bench/passes.h"
#include "bench/predict.h"
#include "bench/predict_ranks.h"
#include "bench/print.h"
#include "bench/reports.h"
#include "bench/sequences.h"
#include "bench/schedules.h"
#include "bench/startup.h"
#include "bench/suite.h"
#include "bench/throughput.h"
#include "loaders/model/model_load.h"
#include "programs/common/allocator.h"
#include "programs/common/model_names.h"
#include "programs/common/shared_rows.h"
#include "programs/common/output.h"
#include "programs/common/progress.h"
#include "programs/synth/synth.h"
#include "runtime/host/system.h"
#include "runtime/model/model.h"

enum {
	ROUNDS = 4, /* of passes and schedules, for each repetition */
	START_MAX = 3
};

static int fail(const char *message)
{
	char quoted[1024];

	fprintf(stderr, "jitbench: %s.\n", error_quote(quoted, sizeof quoted, message, strlen(message)));
	return 1;
}

static long greatest(const struct list *l)
{
	long max = 0;
	for (int i = 0; i < l->n; i++)
		max = l->value[i] > max ? l->value[i] : max;
	return max;
}

/* ---- the model */

static void show_written(void *user, uint64_t done, uint64_t total) { progress_show(user, done, total); }

/* Makes one up where --shape asks for it; *fd stays open as long as the file is needed. */
static bool make_model(char *path, size_t size, int *fd, struct error *err)
{
	const struct model_shape *s = shape_find(opt.shape);
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
	struct progress bar;

	progress_begin(&bar, "writing", NULL, true);
	bool ok = synth_write(*fd, opt.write ? opt.write : "the temporary file", s, m, show_written, &bar, err);
	progress_end(&bar);
	if (!ok)
		return false;
	if (opt.write)
		fprintf(stderr, "%s is written, %.1f MiB\n", opt.write, (double)bytes / 0x1p20);
	return true;
}

/* ---- the tests */

enum { NOISE_TOLD = 16 };
static int noisy_rows;
static char noise[NOISE_TOLD][200];

static void show(struct printer *p, const struct row *r)
{
	print_row(p, r);
	if (r->noisy[0] && noisy_rows++ < NOISE_TOLD)
		snprintf(noise[noisy_rows - 1], sizeof *noise, "%s is noisy: %s", r->test, r->noisy);
}

/* Behind the table, so that its rows stay together. */
static void say_noise(void)
{
	for (int i = 0; i < noisy_rows && i < NOISE_TOLD; i++)
		fprintf(stderr, "jitbench: %s.\n", noise[i]);
	if (noisy_rows > NOISE_TOLD)
		fprintf(stderr, "jitbench: %d more are noisy.\n", noisy_rows - NOISE_TOLD);
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

/* The tokens of --generate, of several sequences at once. */
static bool run_sequences(const struct test_machine *t, struct printer *p, const jit_batch_options *o, long depth,
                          jit_error *err)
{
	const struct list *l = &opt.list.sequences, *g = &opt.list.generate;
	struct row r;

	for (int i = 0; i < l->n * g->n; i++) {
		long sequences = l->value[i / g->n], n = g->value[i % g->n];
		if (sequences == 0 || n == 0)
			continue;
		if (!sequences_run(t, o, sequences, n, depth, &r, err))
			return false;
		show(p, &r);
	}
	return true;
}

static bool profile_list(const struct test_machine *t, const jit_session_options *so, enum test_kind kind,
                         const struct list *l, long depth, jit_error *err)
{
	for (int i = 0; i < l->n; i++)
		if (l->value[i] && !test_profile(t, so, kind, l->value[i], depth, stderr, err))
			return false;
	return true;
}

/* Behind the rows, whose sessions take no times: that would cost some. */
static bool profile_tests(const struct test_machine *t, const jit_session_options *so, jit_error *err)
{
	bool ok = true;

	fflush(stdout);
	for (int i = 0; ok && i < opt.list.depth.n; i++)
		ok = profile_list(t, so, TEST_PROMPT, &opt.list.prompt, opt.list.depth.value[i], err) &&
		     profile_list(t, so, TEST_SMALL, &opt.list.small, opt.list.depth.value[i], err) &&
		     profile_list(t, so, TEST_GENERATE, &opt.list.generate, opt.list.depth.value[i], err);
	return ok;
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
	long max = greatest(&opt.list.prompt) > greatest(&opt.list.generate)
	                   ? greatest(&opt.list.prompt)
	                   : greatest(&opt.list.generate);
	max = greatest(&opt.list.small) > max ? greatest(&opt.list.small) : max;
	if (max == 0)
		return true;
	jit_session_options so =
		JIT_SESSION_OPTIONS(.context = (int)(greatest(&opt.list.depth) + max + 2), .threads = (int)threads,
	                            .batch = (int)opt.batch, .kv = kv_type_option(opt.kv_type));
	struct limits limits = { 0 };
	struct test_machine t = {
		.model = m, .limits = &limits, .repetitions = opt.repetitions, .noise = opt.force ? 0 : opt.noise / 100
	};
	const jit_batch_options bo = JIT_BATCH_OPTIONS(.context = so.context, .threads = so.threads, .tokens = so.batch,
	                                               .kv = so.kv, .speculate = JIT_SPECULATE_OFF);
	jit_session_stats stats = JIT_SESSION_STATS();
	bool ok = (t.session = jit_session_open(m, &so, err)) != NULL;

	if (ok) {
		jit_session_get_stats(t.session, &stats, NULL);
		ok = limits_open(&limits, m, stats.threads, err);
	}
	for (int i = 0; ok && i < opt.list.depth.n; i++)
		ok = run_list(&t, p, TEST_PROMPT, &opt.list.prompt, opt.list.depth.value[i], err) &&
		     run_list(&t, p, TEST_SMALL, &opt.list.small, opt.list.depth.value[i], err) &&
		     run_list(&t, p, TEST_GENERATE, &opt.list.generate, opt.list.depth.value[i], err) &&
		     run_sequences(&t, p, &bo, opt.list.depth.value[i], err);
	if (ok && last && p->format == PRINT_MARKDOWN)
		ok = limits_print(&limits, err);
	if (ok && opt.profile)
		ok = profile_tests(&t, &so, err);
	limits_close(&limits);
	jit_session_close(t.session);
	return ok;
}

static bool run(const char *path, const char *name, jit_error *err)
{
	jit_model_options mo =
		JIT_MODEL_OPTIONS(.device = opt.device, .isa = opt.isa, .threads = (int)opt.list.threads.value[0],
	                          .f32_activations = strcmp(opt.activations, "f32") == 0,
	                          .bounded_numerics = numerics_option(opt.numerics),
	                          .cache_dir = opt.no_cache ? "" : opt.cache, .ranks = opt.ranks, .split = opt.split);
	jit_session_options so =
		JIT_SESSION_OPTIONS(.threads = mo.threads, .batch = (int)opt.batch, .kv = kv_type_option(opt.kv_type));
	struct printer p = { .filename = name,
		             .isa = "",
		             .type_kv = opt.kv_type,
		             .numerics = numerics_class(opt.numerics),
		             .format = print_format() };
	struct row start[START_ROWS];
	jit_model_info info = JIT_MODEL_INFO();

	/* Processes that MPI started open the model once. */
	opt.no_start |= opt.ranks && strcmp(opt.ranks, "mpi") == 0;
	if (!opt.no_start && !start_measure(path, &mo, &so, opt.repetitions < START_MAX ? opt.repetitions : START_MAX,
	                                    opt.force ? 0 : opt.noise / 100, start, err))
		return false;
	jit_model *m = jit_model_open(path, &mo, err);
	if (!m)
		return false;
	jit_model_get_info(m, &info, NULL);
	if (numerics_stay_exact(opt.numerics, &info)) {
		numerics_note("jitbench", &info);
		p.numerics = "exact";
	}
	p.type = info.description;
	p.size = info.weight_bytes;
	p.parameters = test_parameters(m);
	p.isa = m->target->name;
	print_begin(&p);
	for (int i = 0; i < START_ROWS && !opt.no_start; i++)
		if (start[i].test[0])
			show(&p, &start[i]);
	bool ok = true;
	for (int i = 0; ok && i < opt.list.threads.n; i++)
		ok = run_tests(m, &p, opt.list.threads.value[i], i + 1 == opt.list.threads.n, err);
	print_end(&p);
	say_noise();
	jit_model_close(m);
	return ok;
}

/* The model's path into `path`; 0, or the exit status. */
static int choose_model(const char *operand, char *path, size_t size, int *fd)
{
	struct error err = { 0 };

	if ((operand != NULL) + (opt.model != NULL) + (opt.shape != NULL) != 1)
		return jitbench_usage("which model? Give one of MODEL, --model and --shape");
	if (!opt.shape && (opt.weights || opt.write))
		return jitbench_usage("--weights and --write belong to a model made up, with --shape");
	if (!opt.shape) {
		snprintf(path, size, "%s", operand ? operand : opt.model);
		return 0;
	}
	return make_model(path, size, fd, &err) ? 0 : fail(err.text);
}

static int run_kernels(const char *operand)
{
	static const enum dtype kv[] = {
		[JIT_KV_F16] = DTYPE_F16, [JIT_KV_F32] = DTYPE_F32, [JIT_KV_Q8_0] = DTYPE_Q8_0
	};
	const bool card = strncmp(opt.device, "sim:", 4) == 0;
	const char *path = operand ? operand : opt.model;
	struct printer p = { .filename = path ? path : opt.shape,
		             .format = print_format(),
		             .type_kv = opt.kv_type,
		             .numerics = numerics_class(opt.numerics) };
	struct row row[KERNEL_ROWS];
	struct packed *packed = NULL;
	uint8_t *header = NULL;
	struct error err = { 0 };
	char text[256];
	size_t n_rows;
	struct model m;

	if (card && opt.isa)
		return jitbench_usage("--isa is for the cpu: --device sim:... names the target");
	if ((path != NULL) + (opt.shape != NULL) != 1)
		return jitbench_usage("which model? Give one of MODEL, --model and --shape");
	const struct key_list_options o = {
		.target = card      ? target_find(opt.device + 4)
		          : opt.isa ? target_find(opt.isa)
		                    : target_native(&err),
		.kv = key_list_kv(kv[kv_type_option(opt.kv_type)]),
		.activations =
			strcmp(opt.activations, "f32") == 0 ? KEY_LIST_F32_ACTIVATIONS : KEY_LIST_INT8_ACTIVATIONS,
		.numerics = strcmp(opt.numerics, "exact") == 0 ? KEY_LIST_EXACT : KEY_LIST_BOUNDED
	};
	if (!o.target || !bench_open_header(&m, &packed, path, &header, &err))
		return fail(err.text);
	model_describe(&m, text, sizeof text);
	p.type = text;
	p.isa = o.target->name;
	bool ok = kernels_measure(&m.spec, &o, kv[kv_type_option(opt.kv_type)], opt.repetitions,
	                          opt.force ? 0 : opt.noise / 100, row, &n_rows, &err);
	model_close(&m);
	packed_close(packed);
	free(header);
	if (!ok)
		return fail(err.text);
	print_begin(&p);
	for (size_t i = 0; i < n_rows; i++)
		show(&p, &row[i]);
	print_end(&p);
	say_noise();
	return noisy_rows ? EXIT_NOISY : 0;
}

/* Of machines, not of cards. */
static int run_predict_ranks(const char *operand)
{
	const char *path = operand ? operand : opt.model;
	struct packed *packed = NULL;
	uint8_t *header = NULL;
	struct error err = { 0 };
	struct model m;

	if ((path != NULL) + (opt.shape != NULL) != 1)
		return jitbench_usage("which model? Give one of MODEL, --model and --shape");
	const struct target *t = opt.isa ? target_find(opt.isa) : target_native(&err);
	if (!t || !bench_open_header(&m, &packed, path, &header, &err))
		return fail(err.text);
	const bool ok = predict_ranks(&m, t, opt.ranks, opt.read_gb * 1e9, stdout, &err);
	model_close(&m);
	packed_close(packed);
	free(header);
	return ok ? 0 : fail(err.text);
}

static int run_predict(const char *operand)
{
	struct predict_options o = {
		.target = opt.device + strlen("sim:"),
		.path = operand ? operand : opt.model,
		.depth = (uint32_t)opt.list.depth.value[0],
		.tokens = opt.list.small.n && opt.list.small.value[0] ? (uint32_t)opt.list.small.value[0] : 1,
		.kv = kv_type_option(opt.kv_type),
		.f32_activations = strcmp(opt.activations, "f32") == 0,
		.mixture = mixture_find(opt.weights ? opt.weights : "q8_0"),
		.report = opt.report
	};
	struct error err = { 0 };

	if ((o.path != NULL) + (opt.shape != NULL) != 1)
		return jitbench_usage("which model? Give one of MODEL, --model and --shape");
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
		                   .threads = (int)opt.list.threads.value[0],
		                   .repetitions = opt.repetitions,
		                   .noise = opt.force ? 0 : opt.noise / 100,
		                   .only = only,
		                   .json = strcmp(opt.format, "json") == 0 };
	int noisy = 0;

	if (!o.json && strcmp(opt.format, "markdown") != 0 && strcmp(opt.format, "md") != 0)
		return jitbench_usage("suite prints markdown or json");
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

static int run_passes(void)
{
	struct error err = { 0 };
	struct passes_options o = { .target = suite_target(&err),
		                    .shape = shape_find(opt.shape ? opt.shape : "qwen3-0.6b"),
		                    .mixture = opt.weights ? mixture_find(opt.weights) : NULL,
		                    .threads = (int)opt.list.threads.value[0],
		                    .rounds = ROUNDS * opt.repetitions };

	return o.target && passes_run(&o, stdout, &err) ? 0 : fail(err.text);
}

static int run_schedules(void)
{
	struct error err = { 0 };
	struct schedules_options o = { .target = suite_target(&err),
		                       .shape = shape_find(opt.shape ? opt.shape : "qwen3-0.6b"),
		                       .mixture = opt.weights ? mixture_find(opt.weights) : NULL,
		                       .threads = (int)opt.list.threads.value[0],
		                       .rounds = ROUNDS * opt.repetitions };

	return o.target && schedules_run(&o, stdout, &err) ? 0 : fail(err.text);
}

/* Whether the operands are a command; its exit status. */
static bool run_command(const char *const operand[], int n, int *status)
{
	if (n && strcmp(operand[0], "suite") == 0)
		*status = n > 2 ? jitbench_usage("suite takes one text at most") : run_suite(n > 1 ? operand[1] : NULL);
	else if (n && strcmp(operand[0], "compare") == 0)
		*status = n != 3 ? jitbench_usage("compare takes two reports") : run_compare(operand[1], operand[2]);
	else if (n && strcmp(operand[0], "passes") == 0)
		*status = n > 1 ? jitbench_usage("passes takes no operands") : run_passes();
	else if (n && strcmp(operand[0], "schedules") == 0)
		*status = n > 1 ? jitbench_usage("schedules takes no operands") : run_schedules();
	else if (n > 1)
		*status = jitbench_usage("more than one model was given");
	else
		return false;
	return true;
}

/* Times a model: the program without a command. */
static int run_model(const char *operand)
{
	char path[4096], name[128];
	jit_error err = { 0 };
	int fd = -1, rc = choose_model(operand, path, sizeof path, &fd);

	if (rc)
		return rc;
	snprintf(name, sizeof name, "random %s %s", opt.shape ? opt.shape : "", opt.weights ? opt.weights : "q8_0");
	if (!run(path, opt.shape && !opt.write ? name : path, &err))
		rc = opt.ranks && !err.message[0] ? err.code != JIT_OK : fail(err.message); /* rank 0 says why */
	if (fd >= 0)
		close(fd);
	return rc ? rc : noisy_rows ? EXIT_NOISY : 0;
}

static int run_program(int argc, char **argv)
{
	int rc;

	allocator_begin();
	system_file_limit_is_error();
	system_lost_pages_are_error("jitbench");
	if (!jitbench_parse_options(argc, argv, &rc))
		return rc;
	if (run_command(opt.operand, opt.n_operands, &rc))
		return rc;
	if (opt.predict && !opt.ranks && strncmp(opt.device, "sim:", 4) != 0)
		return jitbench_usage("--predict needs --device sim:... or --ranks fork:N");
	if (opt.report && !opt.predict)
		return jitbench_usage("--report belongs to --predict");
	struct error err = { 0 };
	if ((opt.n_operands && !model_path(&opt.operand[0], &err)) || (opt.model && !model_path(&opt.model, &err)))
		return fail(err.text);
	if (opt.predict && opt.ranks)
		return run_predict_ranks(opt.operand[0]);
	return opt.predict   ? run_predict(opt.operand[0])
	       : opt.kernels ? run_kernels(opt.operand[0])
	                     : run_model(opt.operand[0]);
}

int main(int argc, char **argv)
{
	output_begin();
	return output_end("jitbench", run_program(argc, argv), 1);
}
