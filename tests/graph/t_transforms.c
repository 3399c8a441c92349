/* tests/graph/t_transforms.c - gradients, derivatives and batches of graphs. A graph for each operation, and random
 * ones: gradients beside central differences in f64, derivatives beside gradients, derivatives of gradients beside
 * differences of gradients, and batches beside each set alone, bit for bit. What is compiled has the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/eval.h"
#include "graph/text.h"
#include "graph/transforms.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/transform_cases.h"
#include "tests/graph/transform_checks.h"
#include "tests/support/shared.h"

static jit_compute *computes[3]; /* the CPU with one thread and three, and interpreted kernels */

static int open_all(void **state)
{
	static const struct {
		const char *device;
		int threads;
	} setups[] = { { "cpu", 1 }, { "cpu", 3 }, { "ref", 1 } };
	(void)state;

	for (unsigned i = 0; i < 3; i++) {
		jit_error e = { 0 };
		computes[i] = jit_compute_open(
			&JIT_COMPUTE_OPTIONS(.device = setups[i].device, .threads = setups[i].threads), &e);
		if (!computes[i]) {
			printf("%s: %s\n", setups[i].device, e.message);
			return -1;
		}
	}
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		jit_compute_close(computes[i]);
	return 0;
}

static void read_graph(struct tensor_graph *g, const char *text, uint64_t n)
{
	const struct graph_size size = { "n", n };
	struct error err = { 0 };

	if (!graph_text_read(g, "case", text, strlen(text), &size, strncmp(text, "size", 4) == 0, &err))
		fail_msg("%s\n%s", err.text, text);
}

/* ---- a graph for each operation */

static void check_derivatives(const struct tensor_graph *g, const char *what)
{
	struct witnessed seen = { 0 };
	struct tensor_graph v;
	struct values in = { .n = 0 };

	checks_gradient_of(&v, g, what);
	checks_fill_from(&v, 0, &in);
	checks_beside_differences(g, &v, &in, &seen, what);
	checks_beside_each_other(g, &v, &in, what);
	checks_beside_moved(&v, &in, what);
	assert_true(checks_beside_loop(&v, BATCH, what));
	checks_batched_gradient(g, &seen, what);
	assert_true(seen.kinks * 20 <= seen.elements);
	checks_free_values(&in);
	tensor_graph_free(&v);
}

static void test_operations(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 3, 7 };
	bool seen[TENSOR_OPS] = { false };
	(void)state;

	for (size_t i = 0; i < n_transform_cases; i++)
		for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
			const struct transform_case *c = &transform_cases[i];
			struct tensor_graph g;
			char what[40];
			if (sizes[k] < c->min)
				continue;
			checks_seed(i * 1000 + k + 1);
			snprintf(what, sizeof what, "case %zu, n=%llu", i, (unsigned long long)sizes[k]);
			read_graph(&g, c->text, sizes[k]);
			for (uint32_t node = 0; node < g.nodes; node++)
				seen[g.node[node].op] = true;
			for (uint64_t size = 0; size < BATCH; size++)
				assert_true(checks_beside_loop(&g, size, what));
			for (int again = 0; again < 4; again++)
				assert_true(checks_beside_loop(&g, BATCH, what));
			if (!c->only_vmap)
				check_derivatives(&g, what);
			tensor_graph_free(&g);
		}
	for (int op = 0; op < TENSOR_OPS; op++)
		if (!seen[op])
			fail_msg("no case has the operation %s", tensor_ops[op].name);
}

/* ---- compiled */

/* The text with its floats in another type. */
static char *retyped(const char *text, const char *type)
{
	char *copy = malloc(2 * strlen(text) + 1), *to = copy;

	assert_non_null(copy);
	while (*text)
		if (strncmp(text, "f64", 3) == 0) {
			to += sprintf(to, "%s", type);
			text += 3;
		} else {
			*to++ = *text++;
		}
	*to = 0;
	return copy;
}

static void compile_transformed(const struct tensor_graph *g, jit_compute *c, const char *what)
{
	struct tensor_graph made[3];
	struct values in = { .n = 0 };
	struct error err = { 0 };
	tensor_value wrt[MAX];
	int axis[MAX];

	checks_gradient_of(&made[0], g, what);
	tensor_graph_init(&made[1]);
	checks_must(tensor_graph_jvp(&made[1], g, wrt, checks_floats_of(g, wrt, 0), true, &err), g, what, &err);
	for (uint32_t i = 0; i < made[0].inputs; i++)
		axis[i] = i % 3 ? 0 : -1;
	tensor_graph_init(&made[2]);
	checks_must(tensor_graph_vmap(&made[2], &made[0], BATCH, axis, &err), g, what, &err);
	for (unsigned k = 0; k < 3; k++) {
		checks_fill_from(&made[k], 0, &in);
		checks_beside_compiled(&made[k], &in, c, what);
		checks_free_values(&in);
		tensor_graph_free(&made[k]);
	}
}

static void test_compiled(void **state)
{
	static const char *const types[] = { "f32", "f64", "f16" };
	(void)state;

	for (size_t i = 0; i < n_transform_cases; i++)
		for (unsigned k = 0; k < 3; k++) {
			struct tensor_graph g;
			char what[60];
			char *text = retyped(transform_cases[i].text, types[k]);
			if (transform_cases[i].only_vmap || (test_quick() && (i + k) % 5)) {
				free(text);
				continue;
			}
			checks_seed(i * 7 + k);
			snprintf(what, sizeof what, "case %zu in %s, compiled", i, types[k]);
			read_graph(&g, text, 7);
			compile_transformed(&g, computes[(i + k) % 3], what);
			tensor_graph_free(&g);
			free(text);
		}
}

/* ---- random graphs */

/* Whether differences can be taken: numbers are finite, and not so large that rounding is all that is seen. */
static bool is_small(const struct values *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		for (uint64_t k = 0; tensor_is_float(v->t[i].type) && k < shape_elements(&v->t[i].shape); k++)
			if (!(fabs(tensor_get(&v->t[i], k).d) < 1e4))
				return false;
	return true;
}

static unsigned batches, loops; /* batches: that have at most 8 dimensions */

static bool check_random(unsigned seed, struct witnessed *seen)
{
	struct tensor_graph g, v, twice;
	struct values in = { .n = 0 }, out = { .n = 0 };
	char what[60];

	snprintf(what, sizeof what, "JITRUN_TEST_SEED=%u", seed);
	smooth_graph(&g, seed, 3 + seed % 38, true);
	for (uint32_t i = 0; i < g.nodes; i++)
		loops += g.node[i].op == OP_scan;
	checks_seed(seed);
	checks_gradient_of(&v, &g, what);
	checks_fill_from(&v, 0, &in);
	checks_run(&v, &in, &out, what);
	const bool is_good = is_small(&out);
	if (is_good) {
		checks_beside_differences(&g, &v, &in, seen, what);
		checks_beside_each_other(&g, &v, &in, what);
		batches += checks_beside_loop(&v, BATCH, what);
		checks_beside_compiled(&v, &in, computes[seed % 3], what);
	}
	if (is_good && g.nodes < 15) { /* the gradient's own gradient */
		checks_free_values(&in);
		checks_gradient_of(&twice, &v, what);
		checks_fill_from(&twice, 0, &in);
		checks_beside_each_other(&v, &twice, &in, what);
		tensor_graph_free(&twice);
	}
	checks_free_values(&in);
	checks_free_values(&out);
	tensor_graph_free(&g);
	tensor_graph_free(&v);
	return is_good;
}

static void test_random(void **state)
{
	const char *seed = getenv("JITRUN_TEST_SEED");
	const unsigned first = seed ? (unsigned)atoi(seed) : 0,
		       n = seed           ? 1
	                   : test_full()  ? 3000
	                   : test_quick() ? 40
	                                  : 300;
	struct witnessed seen = { 0 };
	unsigned good = 0;
	(void)state;

	batches = loops = 0;

	for (unsigned i = first; i < first + n; i++)
		good += check_random(i, &seen);
	printf("# %u of %u graphs are small, %llu elements of gradients, %llu not 0, %llu at kinks\n", good, n,
	       (unsigned long long)seen.elements, (unsigned long long)seen.moving, (unsigned long long)seen.kinks);
	printf("# %u loops, %u batches\n", loops, batches);
	assert_true(seed || (good * 2 > n && loops * 4 > n && batches * 20 > good * 19 &&
	                     seen.kinks * 50 < seen.elements && seen.moving * 4 > seen.elements));
}

/* ---- graphs of all operations and types */

/* Gradients are made, or refused by the operation's name; what is made runs, and has the same bits compiled. */
static bool check_any_gradient(const struct tensor_graph *g, jit_compute *c, const char *what)
{
	struct tensor_graph v, j;
	struct values in = { .n = 0 };
	struct error err = { 0 };
	tensor_value wrt[MAX];
	const uint32_t n = checks_floats_of(g, wrt, 0);

	tensor_graph_init(&v);
	tensor_graph_init(&j);
	const bool made = tensor_graph_vjp(&v, g, wrt, n, true, &err);
	if (!made && !strstr(err.text, "bitcast has no rule for vjp") &&
	    !strstr(err.text, "with another mode than set and add has no rule for vjp"))
		checks_say(g, what, err.text);
	assert_int_equal(tensor_graph_jvp(&j, g, wrt, n, true, &err), made);
	for (unsigned k = 0; made && k < 2; k++) {
		checks_fill_from(k ? &j : &v, 0, &in);
		checks_beside_compiled(k ? &j : &v, &in, c, what);
		checks_free_values(&in);
	}
	tensor_graph_free(&v);
	tensor_graph_free(&j);
	return made;
}

static void test_any(void **state)
{
	const char *seed = getenv("JITRUN_TEST_SEED");
	const unsigned first = seed ? (unsigned)atoi(seed) : 0,
		       n = seed           ? 1
	                   : test_full()  ? 5000
	                   : test_quick() ? 30
	                                  : 400;
	unsigned made = 0;
	(void)state;

	batches = 0;

	for (unsigned i = first; i < first + n; i++) {
		struct tensor_graph g;
		char what[60];
		snprintf(what, sizeof what, "any, JITRUN_TEST_SEED=%u", i);
		random_graph(&g, i, 3 + i % 16);
		checks_seed(i);
		batches += checks_beside_loop(&g, i % 4, what);
		made += check_any_gradient(&g, computes[i % 3], what);
		tensor_graph_free(&g);
	}
	printf("# %u of %u graphs have gradients\n", made, n);
	assert_true(seed || (made * 2 > n && batches * 20 > n * 19));
}

/* ---- beside PyTorch: tests/graph/beside_torch.py computes the same graphs */

static void put_numbers(FILE *f, const struct tensor *t)
{
	char number[40];

	for (uint64_t i = 0; i < shape_elements(&t->shape); i++) {
		graph_text_number(number, t->type, tensor_get(t, i));
		fprintf(f, " %s", number);
	}
	fputc('\n', f);
}

/* Whether it is put there: numbers must be small. */
static bool put_graph(FILE *f, const struct tensor_graph *g, const char *what)
{
	struct tensor_graph v;
	struct values in = { .n = 0 }, out = { .n = 0 };
	char shape[SHAPE_TEXT_MAX];

	checks_gradient_of(&v, g, what);
	checks_fill_from(&v, 0, &in);
	checks_run(&v, &in, &out, what);
	const bool is_good = is_small(&out);
	if (is_good) {
		fprintf(f, "=== %s\n", what);
		graph_text_write(g, f, 0);
		for (uint32_t i = 0; i < v.inputs; i++) {
			const struct tensor_value_info *info = &v.value[v.input[i]];
			if (i < g->inputs)
				fprintf(f, "@in %s %s", info->name, shape_text(info->type, &info->shape, shape));
			else
				fprintf(f, "@ct %s", info->name + strlen("ct."));
			put_numbers(f, &in.t[i]);
		}
		for (uint32_t i = g->outputs; i < v.outputs; i++) {
			fprintf(f, "@grad %s", v.output_name[i] + strlen("grad."));
			put_numbers(f, &out.t[i]);
		}
	}
	checks_free_values(&in);
	checks_free_values(&out);
	tensor_graph_free(&v);
	return is_good;
}

static int beside_torch(const char *python, const char *file)
{
	char script[400];
	const char *dir = getenv("srcdir");
	int status = 0;

	snprintf(script, sizeof script, "%s/tests/graph/beside_torch.py", dir ? dir : ".");
	fflush(stdout);
	const pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execlp(python, python, script, file, (char *)NULL);
		_exit(77);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_torch(void **state)
{
	const unsigned n = test_full() ? 2000 : test_quick() ? 20 : 200;
	char file[] = "/tmp/t_transforms.XXXXXX", what[60];
	const int fd = mkstemp(file);
	FILE *f = fdopen(fd, "w");
	struct tensor_graph g;
	(void)state;

	assert_non_null(f);
	for (size_t i = 0; i < n_transform_cases; i++) {
		if (transform_cases[i].only_vmap)
			continue;
		checks_seed(i);
		snprintf(what, sizeof what, "case %zu", i);
		read_graph(&g, transform_cases[i].text, 7);
		assert_true(put_graph(f, &g, what));
		tensor_graph_free(&g);
	}
	for (unsigned i = 0, done = 0; done < n; i++) {
		checks_seed(i);
		snprintf(what, sizeof what, "seed %u", i);
		smooth_graph(&g, i, 3 + i % 38, false);
		done += put_graph(f, &g, what);
		tensor_graph_free(&g);
	}
	assert_int_equal(fclose(f), 0);
	int status = beside_torch("python3", file);
	if (status == 77) /* python3 may be one that is not the system's */
		status = beside_torch("/usr/bin/python3", file);
	unlink(file);
	if (status == 77) {
		printf("# skipped: there is no PyTorch (apt install python3-torch)\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_operations), cmocka_unit_test(test_compiled),
		                            cmocka_unit_test(test_random), cmocka_unit_test(test_any),
		                            cmocka_unit_test(test_torch) };

	return cmocka_run_group_tests(tests, open_all, close_all);
}
