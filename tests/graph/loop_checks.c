/* tests/graph/loop_checks.c - scan beside the same iterations written out, and solve beside LAPACK. */
#include "tests/graph/loop_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/text.h"
#include "tests/support/shared.h"

static void read_graph(struct tensor_graph *g, const char *text, const struct graph_size *sizes, size_t n)
{
	struct error err = { 0 };

	if (!graph_text_read(g, "t", text, strlen(text), sizes, n, &err))
		fail_msg("%s\n%s", err.text, text);
}

/* ---- loops beside the same iterations, written one behind the other */

static void random_numbers(struct tensor *t, const struct tensor_value_info *v, uint64_t *seed)
{
	struct error err = { 0 };

	assert_true(tensor_make(t, v->type, &v->shape, &err));
	for (uint64_t i = 0; i < shape_elements(&v->shape); i++) {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		const double x = (double)(*seed >> 40) / (1 << 23) - 1;
		tensor_put(t, i, tensor_convert((union number){ .d = x }, JIT_TYPE_F64, tensor_wide_type(v->type)));
	}
}

/* An iteration: the products of w and the sine of the slice are added to what is carried. */
static void write_iteration(FILE *f, unsigned i, unsigned at)
{
	fprintf(f, "b%u = slice x start=[%u,0] limit=[%u,3]\nx%u = reshape b%u shape=[3]\n", i, at, at + 1, i, i);
	fprintf(f, "s%u = sin x%u\nd%u = dot s%u w left=[0] right=[0]\nc%u = add c%u d%u\n", i, i, i, i, i + 1, i, i);
	fprintf(f, "r%u = reshape c%u shape=[1,3]\n", i, i);
}

static void check_loop(unsigned iterations, bool reverse)
{
	static const char head[] = "size n\ninput c0 f32[3]\ninput x f32[n,3]\ninput w f32[3,3]\n";
	char *text[2] = { NULL, NULL };
	size_t bytes;
	struct tensor in[3], out[2][2];
	struct error err = { 0 };
	uint64_t seed = iterations;

	for (int which = 0; which < 2; which++) {
		FILE *f = open_memstream(&text[which], &bytes);
		fputs(head, f);
		for (unsigned i = 0; which && i < iterations; i++)
			write_iteration(f, i, reverse ? iterations - 1 - i : i);
		if (which) {
			fputs("a = concatenate", f);
			for (unsigned i = 0; i < iterations; i++)
				fprintf(f, " r%u", reverse ? iterations - 1 - i : i);
			fprintf(f, " axis=0\noutput c%u\noutput a\n", iterations);
		} else {
			fprintf(f,
			        "e, a = scan c0 x w carried=1 stacked=1 length=n reverse=%d body=\"input c f32[3]\\n"
			        "input x f32[3]\\ninput w f32[3,3]\\ns = sin x\\nd = dot s w left=[0] right=[0]\\n"
			        "n = add c d\\noutput n\\noutput c\\n\"\noutput e\noutput a\n",
			        reverse);
		}
		fclose(f);
		struct tensor_graph g;
		read_graph(&g, text[which], &(struct graph_size){ "n", iterations }, 1);
		for (uint32_t i = 0; !which && i < 3; i++)
			random_numbers(&in[i], &g.value[g.input[i]], &seed);
		if (!tensor_graph_eval(&g, (const struct tensor *[]){ &in[0], &in[1], &in[2] }, out[which], &err))
			fail_msg("%s\n%s", err.text, text[which]);
		tensor_graph_free(&g);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(shape_equal(&out[0][i].shape, &out[1][i].shape));
		assert_memory_equal(out[0][i].data, out[1][i].data, (size_t)tensor_bytes(&out[0][i]));
		tensor_free(&out[0][i]);
		tensor_free(&out[1][i]);
		free(text[i]);
	}
	for (int i = 0; i < 3; i++)
		tensor_free(&in[i]);
}

void check_loops(void **state)
{
	static const unsigned iterations[] = { 1, 2, 7, 31 };
	(void)state;
	for (size_t i = 0; i < sizeof iterations / sizeof *iterations; i++) {
		check_loop(iterations[i], false);
		check_loop(iterations[i], true);
	}
}

/* ---- equations beside LAPACK */

typedef void solving(const int *n, const int *m, void *a, const int *lda, int *pivot, void *b, const int *ldb,
                     int *info);

/* LAPACK's solution, as numbers in rows; its matrices have their columns one behind the other. */
static void lapack(solving *solve, int type, const struct tensor *a, const struct tensor *b, double *x)
{
	const int n = (int)b->shape.dim[0], m = (int)b->shape.dim[1];
	struct tensor at = *a, bt = *b;
	int *pivot = calloc((size_t)n, sizeof *pivot), info = 0;

	at.data = calloc((size_t)n * (size_t)n, 8);
	bt.data = calloc((size_t)n * (size_t)m, 8);
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++)
			tensor_put(&at, (uint64_t)(j * n + i), tensor_get(a, (uint64_t)(i * n + j)));
		for (int j = 0; j < m; j++)
			tensor_put(&bt, (uint64_t)(j * n + i), tensor_get(b, (uint64_t)(i * m + j)));
	}
	solve(&n, &m, at.data, &n, pivot, bt.data, &n, &info);
	assert_int_equal(info, 0);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < m; j++)
			x[i * m + j] = tensor_convert(tensor_get(&bt, (uint64_t)(j * n + i)), type, JIT_TYPE_F64).d;
	free(at.data);
	free(bt.data);
	free(pivot);
}

/* The greatest difference from x, relative to the greatest number of x. */
static double apart(const double *x, const double *y, int n)
{
	double max = 0, greatest = 1e-300;

	for (int i = 0; i < n; i++) {
		max = fmax(max, fabs(x[i] - y[i]));
		greatest = fmax(greatest, fabs(x[i]));
	}
	return max / greatest;
}

/* Numbers that f32 has, too. Without exchanges of rows, the first corner would spoil the solution. */
static void check_equations(solving *of_f64, solving *of_f32, int n, int m)
{
	const struct shape square = { .rank = 2, .dim = { (uint64_t)n, (uint64_t)n } },
			   right = { .rank = 2, .dim = { (uint64_t)n, (uint64_t)m } };
	const size_t count = (size_t)n * (size_t)m;
	double *x = calloc(4 * count, sizeof *x);

	for (unsigned k = 0; k < 2; k++) {
		const int type = k ? JIT_TYPE_F32 : JIT_TYPE_F64;
		const struct tensor_value_info of_a = { NULL, type, square, 0 }, of_b = { NULL, type, right, 0 };
		struct tensor_graph g;
		struct tensor a, b, out;
		struct error err = { 0 };
		uint64_t seed = (uint64_t)n * 100 + (uint64_t)m;
		char text[200];
		random_numbers(&a, &of_a, &seed);
		random_numbers(&b, &of_b, &seed);
		tensor_put(&a, 0, tensor_convert((union number){ .d = n > 1 ? 1e-30f : 1 }, JIT_TYPE_F64, type));
		snprintf(text, sizeof text, "input a %s[%d,%d]\ninput b %s[%d,%d]\nx = solve a b\noutput x\n",
		         tensor_type_name(type), n, n, tensor_type_name(type), n, m);
		read_graph(&g, text, NULL, 0);
		assert_true(tensor_graph_eval(&g, (const struct tensor *[]){ &a, &b }, &out, &err));
		for (size_t i = 0; i < count; i++)
			x[2 * k * count + i] = tensor_convert(tensor_get(&out, i), type, JIT_TYPE_F64).d;
		lapack(k ? of_f32 : of_f64, type, &a, &b, x + (2 * k + 1) * count);
		tensor_free(&a);
		tensor_free(&b);
		tensor_free(&out);
		tensor_graph_free(&g);
	}
	/* Beside LAPACK in f64; in f32 as near to f64 as LAPACK's own, but for a factor. */
	if (apart(x + count, x, (int)count) > 1e-10)
		fail_msg("%d equations: %g from LAPACK", n, apart(x + count, x, (int)count));
	const double own = apart(x + count, x + 3 * count, (int)count),
		     ours = apart(x + count, x + 2 * count, (int)count);
	if (ours > 8 * own + 1e-6)
		fail_msg("%d equations in f32: %g off, LAPACK %g", n, ours, own);
	free(x);
}

void check_all_equations(void **state)
{
	void *library = dlopen("liblapack.so.3", RTLD_NOW);
	solving *solve[2] = { NULL, NULL };
	(void)state;

	if (library) {
		*(void **)&solve[0] = dlsym(library, "dgesv_");
		*(void **)&solve[1] = dlsym(library, "sgesv_");
	}
	if (!solve[0] || !solve[1]) {
		printf("# skipped: there is no LAPACK (apt install liblapack3)\n");
		skip();
	}
	for (int n = 1; n <= (test_quick() ? 24 : 90); n++)
		check_equations(solve[0], solve[1], n, n % 5 + 1);
	dlclose(library);
}
