/* tests/graph/t_draw.c - drawn functions of numbers beside the C library's, in f64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "graph/draw.h"
#include "graph/eval.h"

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

static const struct {
	const char *name;
	tensor_value (*draw)(struct draw *d, tensor_value x);
	double (*libm)(double x);
	double from, to;
} functions[] = { { "log1p", draw_log1p, log1p, -0.99, 50 },   { "expm1", draw_expm1, expm1, -20, 20 },
	          { "tan", draw_tan, tan, -1.5, 1.5 },         { "atan", draw_atan, atan, -60, 60 },
	          { "asin", draw_asin, asin, -1, 1 },          { "acos", draw_acos, acos, -0.999, 1 },
	          { "sinh", draw_sinh, sinh, -12, 12 },        { "cosh", draw_cosh, cosh, -12, 12 },
	          { "asinh", draw_asinh, asinh, -90, 90 },     { "acosh", draw_acosh, acosh, 1, 90 },
	          { "atanh", draw_atanh, atanh, -0.99, 0.99 }, { "softplus", draw_softplus, softplus, -30, 30 } };

/* Positions are dense around 0, where differences would lose digits. */
static double position(double from, double to, unsigned i, unsigned n)
{
	const double part = (double)i / (n - 1);
	const double x = from + (to - from) * part;

	return i % 3 == 1 && from < 0 ? x * 1e-3 : i % 3 == 2 && from < 0 ? x * 1e-7 : x;
}

static void test_functions(void **state)
{
	(void)state;
	enum { N = 601 };

	for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
		const struct shape s = { .rank = 1, .dim = { N } };
		struct error err = { 0 };
		struct tensor_graph g;
		struct tensor in, out;
		const struct tensor *inputs[] = { &in };
		double worst = 0, where = 0;
		tensor_graph_init(&g);
		struct draw d = { &g, &err };
		const tensor_value y = functions[k].draw(&d, tensor_graph_input(&g, "x", JIT_TYPE_F64, &s, &err));
		assert_true(y && tensor_graph_output(&g, "y", y, &err) && tensor_make(&in, JIT_TYPE_F64, &s, &err));
		for (unsigned i = 0; i < N; i++)
			((double *)in.data)[i] = position(functions[k].from, functions[k].to, i, N);
		assert_true(tensor_graph_eval(&g, inputs, &out, &err));
		for (unsigned i = 0; i < N; i++) {
			const double x = ((double *)in.data)[i], expected = functions[k].libm(x),
				     got = ((double *)out.data)[i];
			const double off = fabs(got - expected) / fmax(fabs(expected), 1e-300);
			if (!(off <= worst) && got != expected) {
				worst = off;
				where = x;
			}
		}
		print_message("%s: %.3g relative at %.9g\n", functions[k].name, worst, where);
		assert_true(worst < 4e-15);
		tensor_free(&in);
		tensor_free(&out);
		tensor_graph_free(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_functions) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
