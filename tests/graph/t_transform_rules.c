/* tests/graph/t_transform_rules.c - what transforms of graphs promise in words: gradients where there is no derivative,
 * names and order of inputs and outputs, and what is refused with which sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text.h"
#include "graph/transforms.h"
#include "tests/graph/transform_checks.h"

static void read_graph(struct tensor_graph *g, const char *text)
{
	struct error err = { 0 };

	if (!graph_text_read(g, "t", text, strlen(text), NULL, 0, &err))
		fail_msg("%s\n%s", err.text, text);
}

/* ---- kinks */

static void put_numbers(struct tensor *t, const double *x)
{
	for (uint64_t i = 0; i < shape_elements(&t->shape); i++)
		tensor_put(t, i, (union number){ .d = x[i] });
}

/* Gradients of the sum of all outputs; inputs are f64, and one after the other in x and in expected. */
static void must_have(const char *text, const double *x, const double *expected)
{
	struct tensor_graph g, v;
	struct values in = { .n = 0 }, out = { .n = 0 };

	read_graph(&g, text);
	checks_gradient_of(&v, &g, text);
	checks_fill_from(&v, 0, &in);
	for (uint32_t i = 0; i < v.inputs; i++) {
		static const double ones[] = { 1, 1, 1, 1, 1, 1, 1, 1 };
		assert_true(shape_elements(&in.t[i].shape) <= 8);
		put_numbers(&in.t[i], i < g.inputs ? x : ones);
		x += i < g.inputs ? shape_elements(&in.t[i].shape) : 0;
	}
	checks_run(&v, &in, &out, text);
	for (uint32_t i = 0; i < g.inputs; i++)
		for (uint64_t k = 0; k < shape_elements(&in.t[i].shape); k++) {
			const double found = tensor_get(&out.t[g.outputs + i], k).d;
			if (!(fabs(found - *expected) <= 1e-15) && !(isnan(found) && isnan(*expected)))
				fail_msg("%s element %llu is %g, expected %g\n%s", v.output_name[g.outputs + i],
				         (unsigned long long)k, found, *expected, text);
			expected++;
		}
	checks_free_values(&in);
	checks_free_values(&out);
	tensor_graph_free(&g);
	tensor_graph_free(&v);
}
#define NUMBERS(...) ((const double[]){ __VA_ARGS__ })

static void test_kinks(void **state)
{
	(void)state;
	must_have("input x f64[4]\ny = abs x\noutput y\n", NUMBERS(0, -0.0, 2, -3), NUMBERS(0, 0, 1, -1));
	must_have("input x f64[3]\na = sign x\nb = floor x\nc = ceil x\nd = round x\ne = trunc x\n"
	          "output a\noutput b\noutput c\noutput d\noutput e\n",
	          NUMBERS(0, 1, 1.5), NUMBERS(0, 0, 0));
	must_have("input x f64[4]\ninput z f64[4]\ny = max x z\noutput y\n", NUMBERS(1, 2, 3, NAN, 1, 3, 2, 1),
	          NUMBERS(0.5, 0, 1, 0, 0.5, 1, 0, 1));
	must_have("input x f64[4]\ninput z f64[4]\ny = min x z\noutput y\n", NUMBERS(1, 2, 3, NAN, 1, 3, 2, 1),
	          NUMBERS(0.5, 1, 0, 0, 0.5, 0, 1, 1));
	/* 0.9 / 0.5 is 2; 2.6 / 0.5 is 5, which is cut to 2, and -1.9 / 0.5 -4, which is cut to -3. */
	must_have("input x f64[4]\ninput s f64[4]\na = constant f64[4] -3 -3 -3 -3\nb = constant f64[4] 2 2 2 2\n"
	          "y = fake_quantise x s a b\noutput y\n",
	          NUMBERS(0.9, 2.6, -1.9, -1.5, 0.5, 0.5, 0.5, 0.5), NUMBERS(1, 0, 0, 1, 0, 0, 0, 0));
	/* A user's gradient: of x^2 w by x and w, where i and the second result, of integers, have none. */
	must_have(
		"input x f64[2]\ninput w f64[2]\ni = constant i32[2] 1 2\ny, k = kernel x i w kernel=\"f\" "
		"gradient=\"g\" "
		"source=\"const i64 n = 2; kernel f(in f64 x[n], in i32 i[n], in f64 w[n], out f64 y[n], out i32 k[n]) "
		"over (j in n) { y[j] = x[j] * x[j] * w[j]; k[j] = i[j]; }\\n"
		"kernel g(in f64 x[n], in i32 i[n], in f64 w[n], in f64 ct[n], out f64 dx[n], out f64 dw[n]) "
		"over (j in n) { dx[j] = 2 * x[j] * w[j] * ct[j]; dw[j] = x[j] * x[j] * ct[j]; }\"\noutput y\n",
		NUMBERS(3, -0.5, 4, 8), NUMBERS(24, -8, 9, 0.25));
	must_have("input x f64[4]\ny = reduce_max x axes=[0]\noutput y\n", NUMBERS(2, 1, 2, 2),
	          NUMBERS(1.0 / 3, 0, 1.0 / 3, 1.0 / 3));
	must_have("input x f64[4]\ny = reduce_min x axes=[0]\noutput y\n", NUMBERS(2, 1, 2, 1),
	          NUMBERS(0, 0.5, 0, 0.5));
	must_have("input x f64[0,2]\ny = reduce_max x axes=[0]\noutput y\n", NUMBERS(0), NUMBERS(0));
	must_have("input x f64[1,1,4]\ny = window_max x window=[3]\noutput y\n", NUMBERS(1, 5, 5, 2),
	          NUMBERS(0, 2, 0, 0));
	must_have("input x f64[4]\ninput z f64[4]\ny = pow x z\noutput y\n", NUMBERS(0, 0, 2, 0, 0, 2, 0, 1),
	          NUMBERS(0, 0, 0, 1, 0, 0, 0.69314718055994530942, 0));
	must_have("input x f64[2]\ninput z f64[2]\ny = rem x z\noutput y\n", NUMBERS(7, -7, 2, 2),
	          NUMBERS(1, 1, -3, 3));
	must_have("input x f64[3]\nw = constant f64[3] 10 20 30\ns = sort x axis=0\ny = mul s w\noutput y\n",
	          NUMBERS(2, 1, 2), NUMBERS(20, 10, 30));
}

/* Where numbers are 0, products of the others are what counts. */
static void test_zeros(void **state)
{
	(void)state;
	must_have("input x f64[3]\ny = reduce_product x axes=[0]\noutput y\n", NUMBERS(0, 3, 4), NUMBERS(12, 0, 0));
	must_have("input x f64[3]\ny = reduce_product x axes=[0]\noutput y\n", NUMBERS(0, 0, 4), NUMBERS(0, 0, 0));
	must_have("input x f64[3]\ny = cumprod x axis=0\noutput y\n", NUMBERS(2, 0, 3), NUMBERS(1, 8, 0));
	must_have("input x f64[3]\ni = constant i64[3] 2 2 5\ny = take x i axis=0\noutput y\n", NUMBERS(1, 2, 3),
	          NUMBERS(0, 0, 2));
	must_have("input x f64[3]\ninput z f64[1]\ni = constant i64[1,1] 1\ny = scatter_nd x i z\noutput y\n",
	          NUMBERS(1, 2, 3, 4), NUMBERS(1, 0, 1, 1));
}

/* ---- names, order and options */

static const char example[] = "graph example\ninput x f32[3]\ninput i i32[3]\ninput ct.y f32[3]\ny = mul x ct.y\n"
			      "k = add i i\noutput y\noutput k\noutput y as again\n";

static void must_read_again(const struct tensor_graph *g)
{
	char *text[2];
	size_t n[2];
	struct tensor_graph again = { 0 };

	for (int i = 0; i < 2; i++) {
		FILE *f = open_memstream(&text[i], &n[i]);
		assert_non_null(f);
		graph_text_write(i ? &again : g, f, 0);
		fclose(f);
		if (i == 0)
			read_graph(&again, text[0]);
	}
	assert_string_equal(text[0], text[1]);
	free(text[0]);
	free(text[1]);
	tensor_graph_free(&again);
}

static void must_be_called(const struct tensor_graph *g, const char *const inputs[], uint32_t n,
                           const char *const outputs[], uint32_t m)
{
	assert_int_equal(g->inputs, n);
	assert_int_equal(g->outputs, m);
	for (uint32_t i = 0; i < n; i++)
		assert_string_equal(g->value[g->input[i]].name, inputs[i]);
	for (uint32_t i = 0; i < m; i++)
		assert_string_equal(g->output_name[i], outputs[i]);
	must_read_again(g);
}
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void test_names(void **state)
{
	static const char *const of_vjp[] = { "x", "i", "ct.y", "ct.ct.y", "ct.again" };
	static const char *const of_jvp[] = { "x", "i", "ct.y", "t.ct.y" };
	static const char *const all[] = { "y", "k", "again", "grad.x", "grad.ct.y" };
	static const char *const moved[] = { "t.y", "t.again" };
	static const char *const old[] = { "y", "k", "again" };
	struct tensor_graph g, to;
	struct error err = { 0 };
	(void)state;

	read_graph(&g, example);
	const tensor_value x = tensor_graph_find(&g, "x"), ct = tensor_graph_find(&g, "ct.y");
	for (unsigned with = 0; with < 2; with++) {
		tensor_graph_init(&to);
		assert_true(tensor_graph_vjp(&to, &g, (tensor_value[]){ x, ct }, 2, with != 0, &err));
		must_be_called(&to, of_vjp, COUNT(of_vjp), with ? all : all + 3, with ? 5 : 2);
		tensor_graph_free(&to);
	}
	tensor_graph_init(&to);
	assert_true(tensor_graph_jvp(&to, &g, &ct, 1, false, &err));
	must_be_called(&to, of_jvp, COUNT(of_jvp), moved, COUNT(moved));
	assert_true(tensor_graph_find(&to, "t.x") == 0);
	tensor_graph_free(&to);
	tensor_graph_init(&to);
	assert_true(tensor_graph_jvp(&to, &g, &ct, 1, true, &err));
	assert_int_equal(to.outputs, 5);
	assert_string_equal(to.output_name[0], "y");
	assert_string_equal(to.output_name[3], "t.y");
	tensor_graph_free(&to);
	tensor_graph_init(&to);
	assert_true(tensor_graph_vmap(&to, &g, 7, (int[]){ 1, -1, 0 }, &err));
	must_be_called(&to, of_vjp, 3, old, COUNT(old));
	assert_int_equal(to.value[to.input[0]].shape.dim[1], 7);
	assert_int_equal(to.value[to.input[1]].shape.rank, 1);
	assert_int_equal(to.value[to.input[2]].shape.dim[0], 7);
	assert_int_equal(to.value[to.output[1]].shape.dim[0], 7); /* which all sets share */
	tensor_graph_free(&to);
	tensor_graph_free(&g);
}

/* ---- refusals */

#define AXES8 "input x f32[1,1,1,1,1,1,1,1]\n"
static const struct {
	const char *text, *why, *name; /* name: of the value that is asked for; of vmap none */
	char transform;                /* v, j or m */
	int axis;
} refusals[] = {
	{ "input x f32[3]\ny = bitcast x type=i32\nz = convert y type=f32\noutput z\n", "bitcast has no rule for vjp",
	  "x", 'v', 0 },
	{ "input x f32[3]\ny = bitcast x type=i32\nz = convert y type=f32\noutput z\n", "bitcast has no rule for jvp",
	  "x", 'j', 0 },
	{ "input x f32[3]\ni = constant i64[1,1] 1\nu = constant f32[1] 2\ny = scatter_nd x i u mode=mul\noutput y\n",
	  "scatter_nd with another mode than set and add has no rule for vjp", "x", 'v', 0 },
	{ "input x f32[3]\ni = constant i64[3] 1 1 1\nu = constant f32[3] 2 2 2\n"
	  "y = scatter_along u i x axis=0 mode=max\noutput y\n",
	  "scatter_along with another mode than set and add has no rule for jvp", "x", 'j', 0 },
	{ "input x i32[3]\noutput x\n", "input x is i32[3], expected floats for vjp", "x", 'v', 0 },
	{ "input x f32[3]\ny = neg x\noutput y\n", "value 2 is no input of the graph, expected one for jvp", "y", 'j',
	  0 },
	{ AXES8 "y = cumprod x axis=0\noutput y\n", "cumprod of 8 dimensions has no rule for vjp", "x", 'v', 0 },
	{ AXES8 "y = cumprod x axis=0\noutput y\n", "cumprod of 8 dimensions has no rule for jvp", "x", 'j', 0 },
	{ "input x f32[1,1,1,1,1,1]\ny = window_max x window=[1,1,1,1]\noutput y\n",
	  "window_max along more than 3 dimensions has no rule for vjp", "x", 'v', 0 },
	{ "input x f32[1,2,1,1,1,1,1,1]\nw = constant f32[2,1,1,1,1,1,1,1] 1 2\ny = conv x w groups=2\noutput y\n",
	  "conv of 8 dimensions in groups has no rule for vjp", "x", 'v', 0 },
	{ "input x f32[3]\ny = neg x\noutput y\n",
	  "vmap of input x, f32[3], along axis 2, expected 0 to 1, and at most 7 dimensions", NULL, 'm', 2 },
	{ AXES8 "output x\n", "along axis 0, expected 0 to 8, and at most 7 dimensions", NULL, 'm', 0 },
	{ AXES8 "output x\n", "vmap of 8 dimensions, expected at most 7", NULL, 'm', -1 },
	{ "input x f32[3]\ny = broadcast x shape=[1,1,1,1,1,1,1,3] axes=[7]\noutput y\n",
	  "vmap of broadcast to 9 dimensions, expected at most 8", NULL, 'm', 0 },
};

static void test_refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refusals); i++) {
		struct tensor_graph g, to;
		struct error err = { 0 };
		read_graph(&g, refusals[i].text);
		tensor_graph_init(&to);
		const tensor_value v = refusals[i].name ? tensor_graph_find(&g, refusals[i].name) : 0;
		const bool made =
			refusals[i].transform == 'v'   ? tensor_graph_vjp(&to, &g, &v, 1, true, &err)
			: refusals[i].transform == 'j' ? tensor_graph_jvp(&to, &g, &v, 1, true, &err)
						       : tensor_graph_vmap(&to, &g, 3, &refusals[i].axis, &err);
		if (made || !strstr(err.text, refusals[i].why))
			fail_msg("%s: \"%s\", expected \"%s\"\n%s", made ? "made" : "refused", err.text,
			         refusals[i].why, refusals[i].text);
		tensor_graph_free(&to);
		tensor_graph_free(&g);
	}
	struct tensor_graph g, to;
	struct error err = { 0 };
	read_graph(&g, "input x f32[3]\noutput x\n");
	tensor_graph_init(&to);
	assert_false(tensor_graph_vjp(&to, &g, (tensor_value[]){ 1, 1 }, 2, true, &err));
	assert_string_equal(err.text, "input x is named twice for vjp");
	tensor_graph_free(&to);
	tensor_graph_free(&g);
}

/* What has no rule is no matter where nothing flows through it. */
static void test_beside(void **state)
{
	static const char *const texts[] = {
		"input x f32[3]\ninput z f32[3]\nb = bitcast z type=i32\nf = convert b type=f32\ny = mul x f\noutput "
		"y\n",
		"input x f32[3]\nb = bitcast x type=i32\ny = neg x\noutput y\noutput b\n",
		"input x f32[3]\ni = constant i64[1,1] 1\nu = constant f32[1] 2\nb = floor x\n"
		"s = scatter_nd b i u mode=mul\ny = mul x s\noutput y\n",
	};
	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct tensor_graph g, to;
		struct error err = { 0 };
		read_graph(&g, texts[i]);
		const tensor_value x = tensor_graph_find(&g, "x");
		tensor_graph_init(&to);
		checks_must(tensor_graph_vjp(&to, &g, &x, 1, true, &err), &g, texts[i], &err);
		tensor_graph_free(&to);
		tensor_graph_init(&to);
		checks_must(tensor_graph_jvp(&to, &g, &x, 1, true, &err), &g, texts[i], &err);
		tensor_graph_free(&to);
		tensor_graph_free(&g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kinks), cmocka_unit_test(test_zeros),
		                            cmocka_unit_test(test_names), cmocka_unit_test(test_refusals),
		                            cmocka_unit_test(test_beside) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
