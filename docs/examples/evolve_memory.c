/* docs/examples/evolve_memory.c - evolves a working memory of 250 000 spiking neurons, on the CPU or a card.
 *   ./a.out memory_steps.jk [DEVICE [SECONDS [POPULATION [SEED [NEURONS]]]]]
 *
 * The task and its value are those of working_memory.jk; memory_steps.jk has the kernels. It ends when the value is
 * 0.03 or less, or after SECONDS. A line is printed for each generation. In the end evolved.x has the six numbers of
 * the best network, and evolved.txt its spikes a second: a line for each millisecond, with the groups A, B and the
 * inhibitory one without a cue, with cue A and with cue B. The same POPULATION, SEED and NEURONS give the same lines on
 * every device, but for the seconds. */
#include <jitrun_kernel.h>
#include <jitrun_optimise.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N = 6, STEPS = 600, TRIALS = 3, GROUPS = 3, WEIGH = 0, MOVE, JUDGE, KERNELS };
static const double lower[N] = { 0 }, upper[N] = { 1.5, 2, 1, 4, 4, 1 };

struct array {
	const char *name;
	uint64_t bytes; /* of a candidate */
	jit_buffer *buffer;
};
enum { X, SPIKES, TRACE, COUNTED, GETS, SEEN, V, REST, F, ARRAYS };

struct memory {
	jit_compute *compute;
	jit_kernel *kernel[KERNELS];
	jit_launch *launch[KERNELS];
	struct array array[ARRAYS];
	size_t count;
	long neurons;
	jit_error err;
	double best;
	int32_t *seen; /* of the best candidate: trials, steps + 1, groups */
};

static double seconds(void)
{
	struct timespec t;

	timespec_get(&t, TIME_UTC);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int open_launch(struct memory *m, int k, const char *path, const char *name, const char *constants)
{
	const jit_kernel_options o = JIT_KERNEL_OPTIONS(.path = path, .kernel = name, .constants = constants);

	m->kernel[k] = jit_kernel_open(m->compute, &o, &m->err);
	m->launch[k] = m->kernel[k] ? jit_launch_open(m->kernel[k], &m->err) : NULL;
	for (int i = 0; m->launch[k] && i < ARRAYS; i++) {
		const int at = jit_kernel_find(m->kernel[k], m->array[i].name);
		if (at >= 0 &&
		    jit_launch_set_buffer(m->launch[k], (size_t)at, m->array[i].buffer, 0, &m->err) != JIT_OK)
			return 0;
	}
	return m->launch[k] != NULL;
}

static int open_memory(struct memory *m, const char *path, const char *device)
{
	static const char *const names[] = { "weigh", "move", "judge" };
	const uint64_t n = (uint64_t)m->neurons;
	const struct array arrays[ARRAYS] = {
		{ "x", N * sizeof(double), NULL },      { "spikes", TRIALS * GROUPS * 4, NULL },
		{ "trace", TRIALS * GROUPS * 4, NULL }, { "counted", TRIALS * 2 * 4, NULL },
		{ "gets", TRIALS * GROUPS * 4, NULL },  { "seen", TRIALS * (STEPS + 1) * GROUPS * 4, NULL },
		{ "v", TRIALS * n * 4, NULL },          { "rest", TRIALS * n, NULL },
		{ "f", sizeof(double), NULL }
	};
	char constants[80];

	m->compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = device), &m->err);
	snprintf(constants, sizeof constants, "count=%zu neurons=%ld", m->count, m->neurons);
	for (int i = 0; m->compute && i < ARRAYS; i++) {
		m->array[i] = arrays[i];
		m->array[i].buffer = jit_buffer_open(m->compute, arrays[i].bytes * m->count, &m->err);
		if (!m->array[i].buffer)
			return 0;
	}
	for (int k = 0; m->compute && k < KERNELS; k++)
		if (!open_launch(m, k, path, names[k], constants))
			return 0;
	m->seen = malloc(m->array[SEEN].bytes);
	return m->compute && m->seen;
}

static int run_at(struct memory *m, int k, int t)
{
	const int at = jit_kernel_find(m->kernel[k], "t");

	return (at < 0 || jit_launch_set_integer(m->launch[k], (size_t)at, t, &m->err) == JIT_OK) &&
	       jit_launch_run(m->launch[k], &m->err) == JIT_OK;
}

/* The objective of the optimiser: non-zero ends the run. */
static int values_of(void *user, const double *x, size_t count, double *values)
{
	struct memory *m = user;
	int ok = count == m->count && jit_buffer_write(m->array[X].buffer, 0, x, count * N * 8, &m->err) == JIT_OK;

	for (int t = 0; ok && t <= STEPS; t++)
		ok = run_at(m, WEIGH, t) && (t == STEPS || run_at(m, MOVE, t));
	ok = ok && run_at(m, JUDGE, 0) && jit_buffer_read(m->array[F].buffer, 0, values, count * 8, &m->err) == JIT_OK;
	for (size_t i = 0; ok && i < count; i++) {
		if (!(values[i] < m->best))
			continue;
		m->best = values[i];
		ok = jit_buffer_read(m->array[SEEN].buffer, i * m->array[SEEN].bytes, m->seen, m->array[SEEN].bytes,
		                     &m->err) == JIT_OK;
	}
	return !ok;
}

static void write_result(const struct memory *m, const double x[N])
{
	const long group[GROUPS] = { m->neurons * 2 / 5, m->neurons * 4 / 5 - m->neurons * 2 / 5,
		                     m->neurons - m->neurons * 4 / 5 };
	FILE *numbers = fopen("evolved.x", "wb"), *rates = fopen("evolved.txt", "w");

	if (!numbers || !rates || fwrite(x, sizeof *x, N, numbers) != N)
		perror("evolved");
	for (int t = 1; rates && t <= STEPS; t++)
		for (int i = 0; i < TRIALS * GROUPS; i++)
			fprintf(rates, "%.2f%c",
			        1000.0 * m->seen[(i / GROUPS * (STEPS + 1) + t) * GROUPS + i % GROUPS] /
			                (double)group[i % GROUPS],
			        i + 1 < TRIALS * GROUPS ? ' ' : '\n');
	if (numbers)
		fclose(numbers);
	if (rates)
		fclose(rates);
}

static void evolve(struct memory *m, jit_optimiser *o, double limit)
{
	const double begun = seconds(), target = 0.03;
	jit_optimise_state s = JIT_OPTIMISE_STATE();
	double *x = malloc(m->count * N * sizeof *x), *values = malloc(m->count * sizeof *values), best[N];

	while (x && values && jit_optimiser_get_state(o, &s, &m->err) == JIT_OK && !s.over &&
	       !(s.best_value <= target) && seconds() - begun < limit) {
		if (jit_optimiser_ask(o, x, &m->err) != JIT_OK || values_of(m, x, m->count, values) ||
		    jit_optimiser_tell(o, values, &m->err) != JIT_OK)
			break;
		jit_optimiser_get_state(o, &s, &m->err);
		printf("%llu evaluations, run %d: %.17g, step size %.3g, %.1f s\n", (unsigned long long)s.evaluations,
		       s.run, s.best_value, s.sigma, seconds() - begun);
		fflush(stdout);
	}
	if (jit_optimiser_best(o, best, NULL, &m->err) == JIT_OK) {
		printf("%s %ld neurons: %.17g after %llu evaluations, %.3f s each\nx",
		       s.best_value <= target ? "found," : "best,", m->neurons, s.best_value,
		       (unsigned long long)s.evaluations,
		       (seconds() - begun) / (double)(s.evaluations ? s.evaluations : 1));
		for (int i = 0; i < N; i++)
			printf(" %.17g", best[i]);
		printf("\n");
		write_result(m, best);
	}
	free(x);
	free(values);
}

int main(int argc, char **argv)
{
	struct memory m = { .count = argc > 4 ? strtoul(argv[4], NULL, 10) : 16,
		            .neurons = argc > 6 ? strtol(argv[6], NULL, 10) : 250000,
		            .best = (double)INFINITY };
	const jit_optimise_options o =
		JIT_OPTIMISE_OPTIONS(.dimension = N, .lower = lower, .upper = upper, .start_low = lower,
	                             .start_high = upper, .sigma = 0.5, .population = (int)m.count,
	                             .restarts = JIT_RESTARTS_SAME, .seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 3);
	jit_optimiser *opt = argc > 1 ? jit_optimiser_open(&o, &m.err) : NULL;

	if (argc < 2)
		fprintf(stderr,
		        "usage: evolve_memory memory_steps.jk [DEVICE [SECONDS [POPULATION [SEED [NEURONS]]]]]\n");
	if (opt && open_memory(&m, argv[1], argc > 2 ? argv[2] : "cpu"))
		evolve(&m, opt, argc > 3 ? strtod(argv[3], NULL) : 100);
	if (m.err.code)
		fprintf(stderr, "%s\n", m.err.message);
	for (int k = 0; k < KERNELS; k++) {
		jit_launch_close(m.launch[k]);
		jit_kernel_close(m.kernel[k]);
	}
	for (int i = 0; i < ARRAYS; i++)
		jit_buffer_close(m.array[i].buffer);
	jit_compute_close(m.compute);
	jit_optimiser_close(opt);
	free(m.seen);
	return argc < 2 ? 2 : m.err.code ? 1 : 0;
}
