/* tests/graph/t_graph_api.c - jitrun_graph.h as a program uses it: graphs read and built, what they say of themselves,
 * runs beside the interpreter, reports, and each thing that is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun_graph.h"
#include "tests/graph/specialise_checks.h"
#include "tests/support/shared.h"

static char folder[] = "/tmp/jitrun-graph-XXXXXX", path[200];
static jit_compute *compute;
static const char text[] =
	"graph line\n"
	"size n\n"
	"input x f32[n,3]\n"
	"w = constant f32[3,2] 1 2 3 4 5 6\n"
	"y = dot x w left=[1] right=[0]\n"
	"z = tanh y\n"
	"s, order = sort z z axis=0\n"
	"output z\n"
	"output s as sorted\n";

static void good(int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s", err->message);
}

static void refused(int status, const jit_error *err, int expected, const char *why)
{
	if (status != expected || !strstr(err->message, why))
		fail_msg("%d: \"%s\", expected %d: \"%s\"", status, err->message, expected, why);
}

static void must_be(const jit_tensor *t, const char *name, int rank, uint64_t first, uint64_t elements)
{
	assert_string_equal(t->name, name);
	assert_int_equal(t->type, JIT_TYPE_F32);
	assert_int_equal(t->rank, rank);
	assert_int_equal(t->dim[0], first);
	assert_int_equal(t->elements, elements);
	assert_int_equal(t->bytes, 4 * elements);
}

static void test_read(void **state)
{
	jit_error err = { 0 };
	jit_tensor t = JIT_TENSOR();
	float x[12], z[8], sorted[8], plain[8], plain_sorted[8];
	(void)state;

	jit_graph *g = jit_graph_open(&JIT_GRAPH_OPTIONS(.source = text, .sizes = "n=4"), &err);
	assert_non_null(g);
	assert_int_equal(jit_graph_inputs(g), 1);
	assert_int_equal(jit_graph_outputs(g), 2);
	good(jit_graph_input(g, 0, &t, &err), &err);
	must_be(&t, "x", 2, 4, 12);
	good(jit_graph_output(g, 1, &t, &err), &err);
	must_be(&t, "sorted", 2, 4, 8);
	refused(jit_graph_input(g, 1, &t, &err), &err, JIT_ERROR_ARGUMENT, "input 1 of a graph that has 1");
	refused(jit_graph_output(g, 2, &t, &err), &err, JIT_ERROR_ARGUMENT, "output 2 of a graph that has 2");
	refused(jit_graph_value(g, 99, &t, &err), &err, JIT_ERROR_ARGUMENT, "value is 99");
	for (int i = 0; i < 12; i++)
		x[i] = (float)((i * 7) % 11 - 5) / 8;
	const void *const in[] = { x };
	void *const out[] = { z, sorted }, *const interpreted[] = { plain, plain_sorted };
	good(jit_graph_interpret(g, in, 1, interpreted, 2, &err), &err);
	jit_executable *e = jit_executable_open(compute, g, &err);
	assert_non_null(e);
	jit_graph_close(g);
	good(jit_executable_run(e, in, 1, out, 2, &err), &err);
	assert_memory_equal(z, plain, sizeof z);
	assert_memory_equal(sorted, plain_sorted, sizeof sorted);
	refused(jit_executable_run(e, in, 0, out, 2, &err), &err, JIT_ERROR_ARGUMENT, "0 inputs, expected 1");
	refused(jit_executable_run(e, in, 1, out, 1, &err), &err, JIT_ERROR_ARGUMENT, "1 outputs, expected 2");
	refused(jit_executable_run(e, (const void *[]){ NULL }, 1, out, 2, &err), &err, JIT_ERROR_ARGUMENT,
	        "number 0 of the inputs is NULL");
	jit_executable_close(e);
}

/* A long chain of values shares memory; code that was made is found again. */
static void test_report(void **state)
{
	char source[4096], line[4096] = "";
	jit_error err = { 0 };
	jit_executable_report r = JIT_EXECUTABLE_REPORT(), again = JIT_EXECUTABLE_REPORT();
	size_t n = (size_t)sprintf(source, "input v0x f32[64]\ninput w u8[1,84]\nf = dequantise w format=Q2_K\n");
	float x[64] = { 1 }, y[64], f[256], w[21] = { 0 };
	(void)state;

	for (int i = 0; i < 12; i++)
		n += (size_t)sprintf(source + n, "v%dx = cumsum v%dx axis=0\n", i + 1, i);
	sprintf(source + n, "output v12x\noutput f\n");
	jit_graph *g = jit_graph_open(&JIT_GRAPH_OPTIONS(.source = source, .n = strlen(source)), &err);
	if (!g)
		fail_msg("%s", err.message);
	jit_executable *e = jit_executable_open(compute, g, &err);
	if (!e)
		fail_msg("%s", err.message);
	good(jit_executable_run(e, (const void *[]){ x, w }, 2, (void *[]){ y, f }, 2, &err), &err);
	good(jit_executable_get_report(e, &r, &err), &err);
	assert_int_equal(r.kernels, 12);
	assert_int_equal(r.on_host, 1);
	assert_int_equal(r.generated, 1); /* twelve are the same kernel */
	assert_int_equal(r.constant_bytes, 0);
	assert_int_equal(r.all_bytes, 13 * 256 + 128 + 1024);
	assert_in_range(r.bytes, 2 * 256 + 1024, 4 * 256 + 128 + 1024);
	assert_true(r.open_ns > 0 && r.last_ns > 0);
	good(jit_executable_write_report(e, path, 1, &err), &err);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	line[fread(line, 1, sizeof line - 1, file)] = 0;
	fclose(file);
	assert_non_null(strstr(line, "cumsum f32[64]: native, "));
	assert_non_null(strstr(line, "dequantise f32[1,256]: interpreted on the host"));
	assert_non_null(strstr(line, "kernel cumsum_(in f32 a0[64], out f32 o[64])"));
	refused(jit_executable_write_report(e, "/nowhere/at/all", 0, &err), &err, JIT_ERROR_IO, "/nowhere/at/all");
	jit_executable *second = jit_executable_open(compute, g, &err);
	assert_non_null(second);
	good(jit_executable_get_report(second, &again, &err), &err);
	assert_int_equal(again.generated, 0);
	jit_executable_close(second);
	jit_executable_close(e);
	jit_graph_close(g);
}

static void test_built(void **state)
{
	static const int64_t three = 3;
	jit_error err = { 0 };
	jit_tensor t = JIT_TENSOR();
	uint32_t x, c, y, both[2], s = 0;
	int64_t in[] = { 5, 6, 7 }, out[1] = { 0 };
	jit_graph *g = jit_graph_open(NULL, &err);
	(void)state;

	assert_non_null(g);
	good(jit_graph_add_input(g, "x", JIT_TYPE_I64, (const uint64_t[]){ 3 }, 1, &x, &err), &err);
	good(jit_graph_add_constant(g, JIT_TYPE_I64, NULL, 0, &three, &c, &err), &err);
	good(jit_graph_add_node(g, "broadcast shape=[3] axes=[]", &c, 1, &both[1], &err), &err);
	both[0] = x;
	good(jit_graph_add_node(g, "mul", both, 2, &y, &err), &err);
	good(jit_graph_add_node(g, "reduce_sum axes=[0]", &y, 1, &s, &err), &err);
	good(jit_graph_value(g, s, &t, &err), &err);
	assert_int_equal(t.rank, 0);
	assert_int_equal(t.type, JIT_TYPE_I64);
	assert_null(t.name);
	good(jit_graph_add_output(g, "sum", s, &err), &err);
	/* What is refused leaves it as it was. */
	const uint32_t before = s;
	refused(jit_graph_add_node(g, "frob", &x, 1, &s, &err), &err, JIT_ERROR_ARGUMENT, "operation \"frob\"");
	refused(jit_graph_add_node(g, "neg x", &x, 1, &s, &err), &err, JIT_ERROR_ARGUMENT,
	        "names a value, expected attributes alone");
	refused(jit_graph_add_node(g, "exp", &x, 1, &s, &err), &err, JIT_ERROR_ARGUMENT, "exp of i64, expected floats");
	refused(jit_graph_add_node(g, "add", &x, 1, &s, &err), &err, JIT_ERROR_ARGUMENT, "add has 1 operands");
	refused(jit_graph_add_node(g, "neg", (uint32_t[]){ 77 }, 1, &s, &err), &err, JIT_ERROR_ARGUMENT,
	        "operand 1 of neg is no value");
	refused(jit_graph_add_node(g, "concatenate axis=0", both, 65, &s, &err), &err, JIT_ERROR_ARGUMENT,
	        "65 operands");
	refused(jit_graph_add_input(g, "z", 99, NULL, 0, &s, &err), &err, JIT_ERROR_ARGUMENT, "type is 99");
	refused(jit_graph_add_input(g, "z", 1, NULL, 9, &s, &err), &err, JIT_ERROR_ARGUMENT, "rank is 9");
	refused(jit_graph_add_input(g, "z", 1, (const uint64_t[]){ UINT64_C(1) << 60 }, 1, &s, &err), &err,
	        JIT_ERROR_MEMORY, "more than 2^46 bytes");
	refused(jit_graph_add_output(g, "z", 0, &err), &err, JIT_ERROR_ARGUMENT, "value is 0");
	assert_int_equal(s, before);
	good(jit_graph_interpret(g, (const void *[]){ in }, 1, (void *[]){ out }, 1, &err), &err);
	assert_int_equal(out[0], 54);
	good(jit_graph_write(g, path, &err), &err);
	jit_graph_close(g);
	/* The file is the same graph. */
	g = jit_graph_open(&JIT_GRAPH_OPTIONS(.path = path), &err);
	if (!g)
		fail_msg("%s", err.message);
	jit_executable *e = jit_executable_open(compute, g, &err);
	assert_non_null(e);
	out[0] = 0;
	good(jit_executable_run(e, (const void *[]){ in }, 1, (void *[]){ out }, 1, &err), &err);
	assert_int_equal(out[0], 54);
	jit_executable_close(e);
	jit_graph_close(g);
}

static jit_graph *must(jit_graph *g, const jit_error *err)
{
	if (!g)
		fail_msg("%s", err->message);
	return g;
}

/* A graph built of statements and calls, whose sizes are given when it is opened. */
static void test_statements(void **state)
{
	jit_error err = { 0 };
	jit_tensor t = JIT_TENSOR();
	float x[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, y[8] = { 0 };
	uint32_t r = 0;
	jit_graph *g = must(jit_graph_open(&JIT_GRAPH_OPTIONS(.sizes = "n=4"), &err), &err);
	(void)state;

	good(jit_graph_add_text(g, "input x f32[n,2]\nh = neg x # a comment\n", &err), &err);
	good(jit_graph_input(g, 0, &t, &err), &err);
	assert_int_equal(t.dim[0], 4);
	assert_int_equal(t.reserved, 0);
	good(jit_graph_add_node(g, "reshape shape=[2*n]", &t.value, 1, &r, &err), &err);
	assert_int_equal(r, 3);
	good(jit_graph_add_text(g, "r = reshape h shape=[2*n]\noutput r", &err), &err);
	refused(jit_graph_add_text(g, "a = neg h\noutput a\ninput z f32[n]\nb = frob a", &err), &err, JIT_ERROR_FORMAT,
	        "text:4: ");
	refused(jit_graph_add_text(g, "size m", &err), &err, JIT_ERROR_ARGUMENT, "text:1: size m has no value");
	refused(jit_graph_add_node(g, "reshape shape=[m]", &t.value, 1, &r, &err), &err, JIT_ERROR_FORMAT,
	        "a size that a line");
	/* It is as it was. */
	assert_int_equal(jit_graph_inputs(g), 1);
	assert_int_equal(jit_graph_outputs(g), 1);
	refused(jit_graph_add_text(g, "output a", &err), &err, JIT_ERROR_FORMAT, "a value that a line above gives");
	good(jit_graph_output(g, 0, &t, &err), &err);
	assert_int_equal(t.rank, 1);
	assert_int_equal(t.value, 4);
	good(jit_graph_interpret(g, (const void *[]){ x }, 1, (void *[]){ y }, 1, &err), &err);
	for (int i = 0; i < 8; i++)
		assert_true(y[i] == -x[i]);
	jit_graph_close(g);
}

/* z = sum(x^3 w), so that dz/dx = 3 x^2 w, and dz/dw = x^3. All numbers are exact. */
static const char cubes[] = "size n\ninput x f64[n]\ninput w f64[n]\nxx = mul x x\nxxx = mul xx x\n"
			    "p = mul xxx w\nz = reduce_sum p axes=[0]\noutput z\n";
static double cube_x[] = { 1, 2, -3 }, cube_w[] = { 0.5, 4, -1 }, direction[] = { 1, -2, 0.25 };
static const double cube_z = 0.5 + 32 + 27;
enum { N = 3 };

static double slope_at(int i) { return 3 * cube_x[i] * cube_x[i] * cube_w[i]; }

static jit_graph *open_cubes(void)
{
	jit_error err = { 0 };

	return must(jit_graph_open(&JIT_GRAPH_OPTIONS(.source = cubes, .sizes = "n=3"), &err), &err);
}

static void test_gradients(void **state)
{
	jit_error err = { 0 };
	jit_tensor t = JIT_TENSOR();
	double one = 1, z = 0, dx[N], dw[N], next[N];
	jit_graph *g = open_cubes(), *d = must(jit_graph_vjp(g, NULL, 0, 1, &err), &err);
	(void)state;

	assert_int_equal(jit_graph_inputs(d), 3);
	good(jit_graph_input(d, 2, &t, &err), &err);
	assert_string_equal(t.name, "ct.z");
	good(jit_graph_output(d, 2, &t, &err), &err);
	assert_string_equal(t.name, "grad.w");
	/* A step of training, by statements that name what was made. */
	good(jit_graph_add_text(d,
	                        "half = constant f64[] 0.5\nb = broadcast half shape=[n] axes=[]\n"
	                        "part = mul b grad.w\nnext = sub w part\noutput next\n",
	                        &err),
	     &err);
	good(jit_graph_interpret(d, (const void *[]){ cube_x, cube_w, &one }, 3, (void *[]){ &z, dx, dw, next }, 4,
	                         &err),
	     &err);
	assert_true(z == cube_z);
	for (int i = 0; i < N; i++) {
		assert_true(dx[i] == slope_at(i));
		assert_true(dw[i] == cube_x[i] * cube_x[i] * cube_x[i]);
		assert_true(next[i] == cube_w[i] - 0.5 * dw[i]);
	}
	jit_graph_close(d);
	/* By one input, without the graph's own outputs. */
	d = must(jit_graph_vjp(g, &(size_t){ 1 }, 1, 0, &err), &err);
	assert_int_equal(jit_graph_outputs(d), 1);
	jit_graph_close(d);
	assert_null(jit_graph_vjp(g, &(size_t){ 2 }, 1, 0, &err));
	refused(err.code, &err, JIT_ERROR_ARGUMENT, "input 2 of a graph that has 2");
	assert_null(jit_graph_vjp(g, (const size_t[]){ 1, 1 }, 2, 0, &err));
	refused(err.code, &err, JIT_ERROR_ARGUMENT, "input w is named twice");
	jit_graph_close(g);
	g = must(jit_graph_open(&JIT_GRAPH_OPTIONS(.source = "input x f32[2]\ni = bitcast x type=i32\n"
	                                                     "y = bitcast i type=f32\noutput y\n"),
	                        &err),
	         &err);
	assert_null(jit_graph_vjp(g, NULL, 0, 0, &err));
	refused(err.code, &err, JIT_ERROR_UNSUPPORTED, "bitcast");
	jit_graph_close(g);
}

static void test_directions(void **state)
{
	jit_error err = { 0 };
	double one = 1, z = 0, slope = 0, expected = 0, product[N];
	jit_graph *g = open_cubes(), *d = must(jit_graph_jvp(g, &(size_t){ 0 }, 1, 1, &err), &err);
	(void)state;

	good(jit_graph_interpret(d, (const void *[]){ cube_x, cube_w, direction }, 3, (void *[]){ &z, &slope }, 2,
	                         &err),
	     &err);
	for (int i = 0; i < N; i++)
		expected += slope_at(i) * direction[i];
	assert_true(z == cube_z && slope == expected);
	jit_graph_close(d);
	/* The second derivatives by x are 6 x w on the diagonal. */
	jit_graph *v = must(jit_graph_vjp(g, &(size_t){ 0 }, 1, 0, &err), &err);
	d = must(jit_graph_jvp(v, &(size_t){ 0 }, 1, 0, &err), &err);
	good(jit_graph_interpret(d, (const void *[]){ cube_x, cube_w, &one, direction }, 4, (void *[]){ product }, 1,
	                         &err),
	     &err);
	for (int i = 0; i < N; i++)
		assert_true(product[i] == 6 * cube_x[i] * cube_w[i] * direction[i]);
	jit_graph_close(v);
	jit_graph_close(d);
	jit_graph_close(g);
}

/* A user's kernel from a file, with its gradient: y = x^2, and so 2 x ct. */
static void test_kernel(void **state)
{
	static const char file[] =
		"const i64 n;\n"
		"kernel square(in f64 x[n], out f64 y[n]) over (i in n) { y[i] = x[i] * x[i]; }\n"
		"kernel slope(in f64 x[n], in f64 ct[n], out f64 d[n]) over (i in n) { d[i] = 2 * x[i] * ct[i]; }\n";
	jit_error err = { 0 };
	jit_tensor t = JIT_TENSOR();
	double ct[N] = { 1, 1, 2 }, y[N] = { 0 }, d[N] = { 0 };
	uint32_t v = 0;
	jit_graph *g = must(jit_graph_open(NULL, &err), &err);
	const jit_kernel_options o = JIT_KERNEL_OPTIONS(.path = path, .kernel = "square", .constants = "n=3");
	FILE *f = fopen(path, "w");
	(void)state;

	assert_non_null(f);
	fputs(file, f);
	fclose(f);
	good(jit_graph_add_text(g, "input x f64[3]", &err), &err);
	good(jit_graph_input(g, 0, &t, &err), &err);
	good(jit_graph_add_kernel(g, &o, "slope", &t.value, 1, &v, &err), &err);
	good(jit_graph_add_output(g, "y", v, &err), &err);
	jit_graph *of_it = must(jit_graph_vjp(g, NULL, 0, 1, &err), &err);
	jit_executable *e = jit_executable_open(compute, of_it, &err);
	assert_non_null(e);
	good(jit_executable_run(e, (const void *[]){ cube_x, ct }, 2, (void *[]){ y, d }, 2, &err), &err);
	for (int i = 0; i < N; i++)
		assert_true(y[i] == cube_x[i] * cube_x[i] && d[i] == 2 * cube_x[i] * ct[i]);
	jit_executable_close(e);
	/* The gradient has none itself, and there is no forward derivative. */
	assert_null(jit_graph_vjp(of_it, NULL, 0, 0, &err));
	refused(err.code, &err, JIT_ERROR_UNSUPPORTED, "kernel without a gradient has no rule for vjp");
	assert_null(jit_graph_jvp(g, NULL, 0, 0, &err));
	refused(err.code, &err, JIT_ERROR_UNSUPPORTED, "kernel has no rule for jvp");
	jit_graph_close(of_it);
	refused(jit_graph_add_kernel(g, &o, NULL, &t.value, 0, &v, &err), &err, JIT_ERROR_ARGUMENT,
	        "kernel has 0 operands");
	refused(jit_graph_add_kernel(g, &JIT_KERNEL_OPTIONS(), NULL, &t.value, 1, &v, &err), &err, JIT_ERROR_ARGUMENT,
	        "neither source nor path");
	refused(jit_graph_add_kernel(g, &JIT_KERNEL_OPTIONS(.path = "/nowhere.jk"), NULL, &t.value, 1, &v, &err), &err,
	        JIT_ERROR_IO, "/nowhere.jk");
	refused(jit_graph_add_kernel(g, &JIT_KERNEL_OPTIONS(.path = path, .constants = "n=3"), NULL, &t.value, 1, &v,
	                             &err),
	        &err, JIT_ERROR_FORMAT, "square");
	good(jit_graph_add_kernel(g, &o, "square", &t.value, 1, &v, &err), &err);
	good(jit_graph_add_output(g, "z", v, &err), &err);
	assert_null(jit_graph_vjp(g, NULL, 0, 0, &err)); /* that kernel is no gradient */
	refused(err.code, &err, JIT_ERROR_ARGUMENT, "kernel has 2 operands, expected the 1 arrays");
	jit_graph_close(g);
}

static void test_batches(void **state)
{
	enum { SETS = 2 };
	jit_error err = { 0 };
	double many[SETS * N] = { 1, 2, -3, 7, 0, 5 }, sums[SETS];
	jit_graph *g = open_cubes(), *d = must(jit_graph_vmap(g, SETS, (const int[]){ 0, -1 }, 2, &err), &err);
	(void)state;

	good(jit_graph_interpret(d, (const void *[]){ many, cube_w }, 2, (void *[]){ sums }, 1, &err), &err);
	assert_true(sums[0] == cube_z && sums[1] == 343 * 0.5 - 125);
	jit_executable *e = jit_executable_open(compute, d, &err);
	jit_graph_close(d);
	assert_non_null(e);
	sums[0] = sums[1] = 0;
	good(jit_executable_run(e, (const void *[]){ many, cube_w }, 2, (void *[]){ sums }, 1, &err), &err);
	assert_true(sums[0] == cube_z && sums[1] == 343 * 0.5 - 125);
	jit_executable_close(e);
	assert_null(jit_graph_vmap(g, 2, (const int[]){ 0 }, 1, &err));
	refused(err.code, &err, JIT_ERROR_ARGUMENT, "1 axes, expected one for each of the 2 inputs");
	assert_null(jit_graph_vmap(g, 2, (const int[]){ 0, 2 }, 2, &err));
	refused(err.code, &err, JIT_ERROR_ARGUMENT, "axis");
	jit_graph_close(g);
}

static void not_opened(const jit_graph_options *o, int expected, const char *why)
{
	jit_error err = { 0 };

	assert_null(jit_graph_open(o, &err));
	refused(err.code, &err, expected, why);
}

static void test_refusals(void **state)
{
	(void)state;
	not_opened(&JIT_GRAPH_OPTIONS(.source = text), JIT_ERROR_ARGUMENT, "graph:2: size n has no value");
	not_opened(&JIT_GRAPH_OPTIONS(.source = text, .path = "f.jg", .sizes = "n=4 m=3"), JIT_ERROR_ARGUMENT,
	           "f.jg has no size m");
	not_opened(&JIT_GRAPH_OPTIONS(.source = text, .sizes = "n=x"), JIT_ERROR_ARGUMENT, "sizes: \"n=x\"");
	not_opened(&JIT_GRAPH_OPTIONS(.source = text, .sizes = "n=-1"), JIT_ERROR_ARGUMENT, "sizes: \"n=-1\"");
	not_opened(&JIT_GRAPH_OPTIONS(.source = text, .sizes = "=1"), JIT_ERROR_ARGUMENT, "sizes: \"=1\"");
	not_opened(&JIT_GRAPH_OPTIONS(.source = text, .sizes = "n=1,n=2"), JIT_ERROR_ARGUMENT,
	           "sizes: n has two values");
	not_opened(&JIT_GRAPH_OPTIONS(.source = text, .sizes = "n=99999999999999999999"), JIT_ERROR_ARGUMENT,
	           "sizes: \"n=9");
	not_opened(&JIT_GRAPH_OPTIONS(.source = text, .sizes = "n=4", .n = 34), JIT_ERROR_FORMAT,
	           "graph has no output");
	not_opened(&JIT_GRAPH_OPTIONS(.path = "/nowhere/x.jg"), JIT_ERROR_IO, "/nowhere/x.jg");
}

/* An ONNX file by its path, whose first dimension is a size; and one that is cut short. */
static void test_onnx(void **state)
{
	char file[1024];
	jit_error err = { 0 };
	jit_tensor t = JIT_TENSOR();
	size_t n;
	(void)state;

	if (!shared_path(file, "data/onnx/models/perceptron/model-script.onnx"))
		skip();
	jit_graph *g = jit_graph_open(&JIT_GRAPH_OPTIONS(.path = file), &err);
	if (!g && strstr(err.message, "protobuf")) {
		printf("# skipped: %s\n", err.message);
		skip();
	}
	if (!g)
		fail_msg("%s", err.message);
	assert_int_equal(jit_graph_outputs(g), 1);
	good(jit_graph_output(g, 0, &t, &err), &err);
	float *x = calloc(1, 1 << 20), *y = calloc(1, (size_t)t.bytes), *z = calloc(1, (size_t)t.bytes);
	good(jit_graph_input(g, 0, &t, &err), &err);
	assert_true(t.bytes <= 1 << 20);
	for (uint64_t i = 0; i < t.elements; i++)
		x[i] = (float)(i % 17) / 8 - 1;
	jit_executable *e = jit_executable_open(compute, g, &err);
	assert_non_null(e);
	good(jit_graph_output(g, 0, &t, &err), &err);
	good(jit_executable_run(e, (const void *[]){ x }, 1, (void *[]){ y }, 1, &err), &err);
	good(jit_graph_interpret(g, (const void *[]){ x }, 1, (void *[]){ z }, 1, &err), &err);
	assert_memory_equal(y, z, (size_t)t.bytes);
	assert_true(y[0] != 0);
	jit_executable_close(e);
	jit_graph_close(g);
	char *bytes = (char *)file_bytes(file, &n);
	not_opened(&JIT_GRAPH_OPTIONS(.source = bytes, .n = n / 2, .path = "cut.onnx"), JIT_ERROR_FORMAT, "cut.onnx");
	free(bytes);
	free(x);
	free(y);
	free(z);
}

static int open_all(void **state)
{
	jit_error err = { 0 };
	(void)state;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/file", folder);
	compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.threads = 2, .cache_dir = ""), &err);
	return compute ? 0 : -1;
}

static int close_all(void **state)
{
	(void)state;
	jit_compute_close(compute);
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),          cmocka_unit_test(test_report),
		cmocka_unit_test(test_statements),    cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_directions),    cmocka_unit_test(test_batches),
		cmocka_unit_test(test_kernel),        cmocka_unit_test(test_built),
		cmocka_unit_test(test_refusals),      cmocka_unit_test(test_onnx),
		cmocka_unit_test(test_changing_sizes)
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
