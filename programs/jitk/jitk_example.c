/* programs/jitk/jitk_example.c - the command example: a list of them, and runs with inputs that are made here.
 *
 * Owns: each example's constants and inputs, unless the command line says others, and its number of launches. Most
 * become a run of one launch; the others keep their arrays on the device from launch to launch.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs/jitk/jitk_example.h"

#define OPTIONS \
	{ "s", EXAMPLE_NUMBER, 0, 100 }, { "x", EXAMPLE_NUMBER, 0, 98 }, { "t", EXAMPLE_NUMBER, 0, 2 }, \
		{ "r", EXAMPLE_NUMBER, 0, 0.02 }, \
	{ \
		"v", EXAMPLE_NUMBER, 0, 5 \
	}

/* ---- bitonic_sort: for d = 1, 2, 4 ... one step with 2d - 1, then with d / 2, d / 4 ... 1 */

static long sort_steps(const struct jitk_arrays *a)
{
	long steps = 0;

	for (long d = 1, more = 1; (uint64_t)d < a->list[1].is.elements; d *= 2, more++)
		steps += more;
	return steps;
}

static bool sort_flip(jit_launch *l, long step, jit_error *err)
{
	long row = 0;

	for (; step > row; row++)
		step -= row + 1;
	return jit_launch_set_bits(l, 0, step ? UINT64_C(1) << (row - step) : (UINT64_C(2) << row) - 1, err) == JIT_OK;
}

static void print_sorted(const struct jitk_arrays *a, long steps) { jitk_array_print(&a->list[2]); }

/* ---- the list */

const struct example example_list[] = {
	{ .name = "binomial",
	  .line = "prices of put options by a tree of 64 steps",
	  .constants = { "n=131072" },
	  .values = { OPTIONS } },
	{ .name = "bitonic_sort",
	  .line = "a sorting network for any number of words, a launch for each of its steps",
	  .kernel = "step",
	  .constants = { "n=1000000" },
	  .values = { { "flip", EXAMPLE_NUMBER, 0, 1 }, { "x", EXAMPLE_WORDS, 0, 0 } },
	  .now = "x",
	  .next = "y",
	  .count_steps = sort_steps,
	  .before_step = sort_flip,
	  .print = print_sorted },
	{ .name = "black_scholes",
	  .line = "prices of call options by the formula of Black and Scholes",
	  .constants = { "n=131072" },
	  .values = { OPTIONS } },
	{ .name = "histogram",
	  .line = "how many words have each value of their upper 8 bits, with atomic additions",
	  .constants = { "n=1000000" },
	  .values = { { "x", EXAMPLE_WORDS, 0, 0 } } },
	{ .name = "layernorm",
	  .line = "rows moved to mean 0 and scaled to variance 1, then by weights",
	  .constants = { "rows=1000", "n=1000" },
	  .values = { { "x", EXAMPLE_UPPER, 16, -8 },
	              { "scale", EXAMPLE_LOWER, 1, 0.5 },
	              { "bias", EXAMPLE_UPPER, 1, 0 } } },
	{ .name = "mandelbrot",
	  .line = "how fast points of a plane leave a circle; lanes leave a loop one by one",
	  .constants = { "width=768", "height=512" } },
	{ .name = "matmul",
	  .line = "a product of matrices, each element a chain of fused products",
	  .constants = { "m=256", "n=256", "k=256" },
	  .values = { { "a", EXAMPLE_UPPER, 1, 0 }, { "b", EXAMPLE_LOWER, 1, 0 } } },
	{ .name = "noise",
	  .line = "Perlin's noise, 8 octaves; functions, and gathers by what other gathers give",
	  .constants = { "width=768", "height=768" },
	  .values = { { "perm", EXAMPLE_PERMUTATION, 0, 0 } } },
	{ .name = "prefix_sum",
	  .line = "sums of all words up to each",
	  .kernel = "prefix_sum",
	  .constants = { "n=1000000" },
	  .values = { { "x", EXAMPLE_WORDS, 0, 0 } } },
	{ .name = "saxpy",
	  .line = "y = a x + y, rounded once",
	  .constants = { "n=1000000" },
	  .values = { { "a", EXAMPLE_NUMBER, 0, 1.5 }, { "x", EXAMPLE_UPPER, 1, 0 }, { "y", EXAMPLE_LOWER, 1, 0 } } },
	{ .name = "silu",
	  .line = "x / (1 + exp(-x))",
	  .constants = { "n=1000000" },
	  .values = { { "x", EXAMPLE_UPPER, 16, -8 } } },
	{ .name = "snn",
	  .line = "a network of spiking neurons; sums over incoming edges in one order",
	  .constants = { "n=100000" },
	  .fill = example_fill_snn,
	  .now = "spiked",
	  .next = "next",
	  .third = "clear",
	  .steps = 200,
	  .print = example_print_snn },
	{ .name = "softmax",
	  .line = "rows of weights that add up to 1; reductions inside of an instance",
	  .constants = { "rows=1000", "n=1000" },
	  .values = { { "x", EXAMPLE_UPPER, 16, -8 } } },
	{ .name = "stencil",
	  .line = "a wave in a cube, a launch for each step in time",
	  .constants = { "n=64" },
	  .fill = example_fill_stencil,
	  .now = "a",
	  .next = "o",
	  .steps = 6 },
};
const size_t example_count = sizeof example_list / sizeof *example_list;

static const struct example *this_example;

static bool fill(struct jitk_array *a, bool *done, struct error *err)
{
	return example_fill(this_example, a, done, err);
}

static int list(void)
{
	for (size_t i = 0; i < example_count; i++)
		printf("%-14s %s\n", example_list[i].name, example_list[i].line);
	return JITK_DONE;
}

/* ---- examples of several launches */

struct stepped {
	jit_compute *compute;
	jit_kernel *kernel;
	jit_launch *launch;
	struct jitk_arrays arrays;
	jit_buffer **buffer; /* by parameter; NULL: kernels work on the arrays themselves */
	size_t rotating[3];  /* numbers of the parameters that are exchanged: now, next, third */
	size_t n_rotating;   /* how many those are */
	long steps;
	double seconds;
};

static void stepped_close(struct stepped *s)
{
	jit_launch_close(s->launch);
	for (size_t i = 0; s->buffer && i < s->arrays.n; i++)
		jit_buffer_close(s->buffer[i]);
	free(s->buffer);
	jitk_arrays_close(&s->arrays);
	jit_kernel_close(s->kernel);
	jit_compute_close(s->compute);
}

/* Array `from` becomes the argument of a parameter. */
static bool give(struct stepped *s, size_t parameter, size_t from, jit_error *err)
{
	const struct jitk_array *a = &s->arrays.list[from];

	if (a->is.access == JIT_SCALAR)
		return jitk_arrays_give_scalar(&s->arrays, from, s->launch, err);
	return (s->buffer ? jit_launch_set_buffer(s->launch, parameter, s->buffer[from], 0, err)
	                  : jit_launch_set_memory(s->launch, parameter, a->data, a->is.bytes, err)) == JIT_OK;
}

static bool copy_there(struct stepped *s, jit_error *err)
{
	jit_compute_info info = JIT_COMPUTE_INFO();
	bool ok = jit_compute_get_info(s->compute, &info, err) == JIT_OK;

	if (!ok || info.in_place)
		return ok;
	s->buffer = calloc(s->arrays.n, sizeof *s->buffer);
	for (size_t i = 0; s->buffer && ok && i < s->arrays.n; i++) {
		const struct jitk_array *a = &s->arrays.list[i];
		if (a->is.access != JIT_SCALAR)
			ok = (s->buffer[i] = jit_buffer_open(s->compute, a->is.bytes, err)) &&
			     jit_buffer_write(s->buffer[i], 0, a->data, a->is.bytes, err) == JIT_OK;
	}
	return ok && s->buffer;
}

static bool copy_back(struct stepped *s, jit_error *err)
{
	bool ok = true;

	for (size_t i = 0; s->buffer && ok && i < s->arrays.n; i++) {
		const struct jitk_array *a = &s->arrays.list[i];
		if (jitk_is_written(a) || i == s->rotating[0])
			ok = jit_buffer_read(s->buffer[i], 0, a->data, a->is.bytes, err) == JIT_OK;
	}
	return ok;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool run_steps(struct stepped *s, const struct example *x, jit_error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < s->arrays.n; i++)
		ok = give(s, i, i, err);
	const double begin = now();
	for (long step = 0; ok && step < s->steps; step++) {
		for (size_t k = 0; ok && k < s->n_rotating; k++)
			ok = give(s, s->rotating[k], s->rotating[(k + (size_t)step) % s->n_rotating], err);
		ok = ok && (!x->before_step || x->before_step(s->launch, step, err)) &&
		     jit_launch_run(s->launch, err) == JIT_OK;
	}
	s->seconds = now() - begin;
	return ok;
}

/* The array that the last step wrote is printed as `next`, and that before as `now`. */
static void print_steps(struct stepped *s, const struct example *x)
{
	struct jitk_array *list = s->arrays.list;

	const size_t now = s->rotating[0], next = s->rotating[1];

	if (s->n_rotating == 2 && s->steps % 2 == 0) {
		uint8_t *data = list[now].data;
		list[now].data = list[next].data;
		list[next].data = data;
	}
	if (x->print) {
		x->print(&s->arrays, s->steps);
		return;
	}
	jitk_array_print(&list[now]);
	jitk_array_print(&list[next]);
}

static int run_stepped(const struct example *x)
{
	struct stepped s = { .steps = 0 };
	jit_error err = { 0 };
	struct error e = { 0 };
	int status = JITK_DONE;

	s.compute = jitk_compute_open(NULL, NULL, (int)jitk.threads, &err);
	s.kernel = s.compute ? jitk_kernel_open(s.compute, &err) : NULL;
	s.launch = s.kernel ? jit_launch_open(s.kernel, &err) : NULL;
	if (!s.launch) {
		status = jitk_fail_error(&err);
	} else if (!jitk_arrays_open(&s.arrays, s.kernel, &e)) {
		status = jitk_fail(e.text);
	} else {
		s.rotating[0] = (size_t)jit_kernel_find(s.kernel, x->now);
		s.rotating[1] = (size_t)jit_kernel_find(s.kernel, x->next);
		s.rotating[2] = x->third ? (size_t)jit_kernel_find(s.kernel, x->third) : 0;
		s.n_rotating = x->third ? 3 : 2;
		s.steps = x->count_steps ? x->count_steps(&s.arrays) : jitk.steps >= 0 ? jitk.steps : x->steps;
		if (!copy_there(&s, &err) || !run_steps(&s, x, &err) || !copy_back(&s, &err) ||
		    jit_compute_written(s.compute, &err) != JIT_OK) {
			status = jitk_fail_error(&err);
		} else {
			print_steps(&s, x);
			if (!jitk.quiet)
				fprintf(stderr, "jitk: %ld launches in %.3f ms, %.4f ms each\n", s.steps,
				        s.seconds * 1e3, s.steps ? s.seconds * 1e3 / (double)s.steps : 0);
		}
	}
	stepped_close(&s);
	return status;
}

/* ---- the command */

static bool has_constant(const char *assignment)
{
	const size_t n = strcspn(assignment, "=") + 1;

	for (int i = 0; i < jitk.constants.n; i++)
		if (strncmp(jitk.constants.value[i], assignment, n) == 0)
			return true;
	return false;
}

static bool add_constant(const char *assignment)
{
	if (has_constant(assignment))
		return true;
	if (jitk.constants.n == OPTION_LIST_MAX)
		return false;
	jitk.constants.value[jitk.constants.n++] = assignment;
	return true;
}

/* What the command line leaves open. A sentence: it asks for what this example has not. */
static const char *complete(const struct example *x)
{
	static char n[32], file[64];

	if (jitk.kernel)
		return "--kernel: an example has its own one";
	if (jitk.steps >= 0 && (!x->now || x->count_steps))
		return "--steps: this example has no steps that can be chosen";
	if (x->now && (jitk.out.n || jitk.tune))
		return "--out and --tune are of examples with one launch";
	snprintf(n, sizeof n, "n=%ld", jitk.n);
	if (jitk.n >= 0 && has_constant(n))
		return "--n and --const n= say the same; give one of them";
	bool ok = jitk.n < 0 || add_constant(n);
	for (size_t i = 0; ok && i < EXAMPLE_CONSTANTS && x->constants[i]; i++)
		ok = add_constant(x->constants[i]);
	snprintf(file, sizeof file, "%s.jk", x->name);
	jitk.file = file;
	jitk.kernel = x->kernel;
	jitk.fill = fill;
	return ok ? NULL : "too many constants";
}

static const struct example *find(const char *name)
{
	for (size_t i = 0; i < example_count; i++)
		if (strcmp(example_list[i].name, name) == 0)
			return &example_list[i];
	return NULL;
}

int jitk_example(void)
{
	char sentence[200], quoted[80];
	int status;

	if (!jitk.file)
		return list();
	if (!(this_example = find(jitk.file))) {
		snprintf(sentence, sizeof sentence, "there is no example %s; \"jitk example\" lists them",
		         error_quote(quoted, sizeof quoted, jitk.file, strlen(jitk.file)));
		return jitk_wrong(sentence);
	}
	const char *wrong = complete(this_example);
	if (wrong)
		return jitk_wrong(wrong);
	for (const struct example_text *t = example_texts; t->name; t++)
		if (strcmp(t->name, this_example->name) == 0) {
			jitk.text = (const char *)t->text;
			jitk.text_bytes = t->bytes;
		}
	if (!jitk_choose_device(&status))
		return status;
	return this_example->now ? run_stepped(this_example) : jitk_run();
}
