/* tests/graph/t_tensor_graph.c - graphs as text: what is read means what it says, is written as it is read, and refused
 * with the line and what was expected. What operations mean is shown by cases that are computed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/text.h"
#include "tests/graph/loop_checks.h"
#include "tests/support/shared.h"

static void read_graph(struct tensor_graph *g, const char *text, const struct graph_size *sizes, size_t n)
{
	struct error err = { 0 };

	if (!graph_text_read(g, "t", text, strlen(text), sizes, n, &err))
		fail_msg("%s\n%s", err.text, text);
}

static char *written(const struct tensor_graph *g, uint64_t max)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	assert_non_null(f);
	graph_text_write(g, f, max);
	fclose(f);
	return text;
}

/* Runs a graph without inputs, and compares the first output with numbers. */
static void must_give(const char *text, int type, const double *expected, size_t n)
{
	struct tensor_graph g;
	struct tensor out[4];
	struct error err = { 0 };

	read_graph(&g, text, NULL, 0);
	if (!tensor_graph_eval(&g, NULL, out, &err))
		fail_msg("%s\n%s", err.text, text);
	assert_int_equal(out[0].type, type);
	assert_int_equal(shape_elements(&out[0].shape), n);
	for (size_t i = 0; i < n; i++) {
		const union number x = tensor_convert(tensor_get(&out[0], i), tensor_wide_type(type), JIT_TYPE_F64);
		if (memcmp(&x.d, &expected[i], sizeof x.d) != 0)
			fail_msg("element %zu is %g, expected %g\n%s", i, x.d, expected[i], text);
	}
	for (uint32_t i = 0; i < g.outputs; i++)
		tensor_free(&out[i]);
	tensor_graph_free(&g);
}
#define GIVES(type, text, ...) \
	must_give(text, type, (const double[]){ __VA_ARGS__ }, sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))

static void test_meaning(void **state)
{
	(void)state;
	GIVES(JIT_TYPE_F32, "x = constant f32[2,2] 1 2 3 4\ny = dot x x left=[1] right=[0]\noutput y\n", 7, 10, 15, 22);
	GIVES(JIT_TYPE_I32,
	      "x = constant i32[3] 7 -7 -2147483648\ny = constant i32[3] -2 0 -1\nz = div x y\noutput z\n", -3, -1,
	      -2147483648.0);
	/* The known answer of Philox's authors: counter and key 0. */
	GIVES(JIT_TYPE_U32, "k = constant u32[4] 0 0 0 0\ny = random_bits k shape=[2,2]\noutput y\n", 0x6627e8d5,
	      0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
	GIVES(JIT_TYPE_F32,
	      "x = constant f32[5] 0.9 2.6 -1.9 0.25 nan\ns = constant f32[5] 0.5 0.5 0.5 0.5 0.5\n"
	      "a = constant f32[5] -3 -3 -3 -3 -3\nb = constant f32[5] 2 2 2 2 2\ny = fake_quantise x s a b\n"
	      "z = slice y start=[0] limit=[4]\noutput z\n",
	      1, 1, -1.5, 0);
	GIVES(JIT_TYPE_I32,
	      "c = constant i32[2] 3 -4\ny = scan c carried=1 length=0 body=\"input c i32[2]\\nd = add c c\\noutput "
	      "d\\n\"\noutput y\n",
	      3, -4);
	GIVES(JIT_TYPE_I32,
	      "c = constant i32[2] 3 -4\ny = scan c carried=1 length=10 body=\"input c i32[2]\\nd = add c c\\noutput "
	      "d\\n\"\noutput y\n",
	      3072, -4096);
	GIVES(JIT_TYPE_U8, "x = constant u8[2] 200 100\ny = add x x\noutput y\n", 144, 200);
	GIVES(JIT_TYPE_I64, "x = constant f32[4] 1 nan 3 nan\ny = argmax x axis=0 last=1\noutput y\n", 3);
	GIVES(JIT_TYPE_F16, "x = constant f16[2] 65504 1\ny = add x x\noutput y\n", (double)INFINITY, 2);
	GIVES(JIT_TYPE_F32,
	      "x = constant f32[4] 3 1 2 1\ni = iota type=i32 shape=[4] axis=0\n"
	      "a, b = sort x i axis=0\nc = convert b type=f32\noutput c\n",
	      1, 3, 2, 0);
	GIVES(JIT_TYPE_F32,
	      "x = constant f32[3] 1 2 3\nz = constant f32[] 9\n"
	      "y = pad x z low=[-1] high=[1] interior=[1]\noutput y\n",
	      9, 2, 9, 3, 9);
	GIVES(JIT_TYPE_F32,
	      "x = constant f32[1,1,4] 1 2 3 4\nw = constant f32[1,1,2] 1 10\n"
	      "y = conv x w strides=[2] low=[1] high=[1]\noutput y\n",
	      10, 32, 4);
	/* Steps that leave some elements over. */
	GIVES(JIT_TYPE_F32,
	      "x = constant f32[1,1,7] 1 2 3 4 5 6 7\ny = window_sum x window=[2] strides=[3]\noutput y\n", 3, 9);
	GIVES(JIT_TYPE_F32, "x = constant f32[3] 1 2 3\ni = constant i64[3] 2 -1 3\ny = take x i axis=0\noutput y\n", 3,
	      0, 0);
	GIVES(JIT_TYPE_F32,
	      "x = constant f32[3] 1 2 3\ni = constant i64[3,1] 2 0 2\nu = constant f32[3] 5 6 7\n"
	      "y = scatter_nd x i u mode=add\noutput y\n",
	      7, 2, 15);
}

static const char example[] =
	"graph perceptron\n"
	"size n\n"
	"input x f32[n,4] # rows\n"
	"input w f32[4,2]\n"
	"h = dot x w left=[1] right=[0]\n"
	"half = constant f32[] 0.5\n"
	"b = broadcast half shape=[n,1*2] axes=[]\n"
	"h = mul h b\n"
	"t = constant f64[3] 0.1 -inf nan\n"
	"m, k = sort t t axis=0 descending=1\n"
	"u = kernel t source=\"kernel k(in f64 x[3], out f64 y[3]) over (i in 3)\\n{ y[i] = x[i]; }\\t// \\\"#\\\" "
	"\\\\\" "
	"kernel=\"k\" # not of the text\n"
	"output h\n"
	"output u\n"
	"e, f = scan h x carried=1 stacked=1 body=\"size n # the same\\ninput h f32[n,2]\\ninput x f32[4]\\n"
	"y = add h h\\noutput y\\noutput x\\n\"\n"
	"output e\n"
	"output k as last\n";

/* What is written is read as the same graph, which is written with the same bytes. */
static void test_written(void **state)
{
	const struct graph_size n = { "n", 3 };
	struct tensor_graph g, again;
	(void)state;

	read_graph(&g, example, &n, 1);
	char *first = written(&g, 0), *little = written(&g, 2);
	assert_non_null(strstr(first, "h = mul v3 b # f32[3,2]\n")); /* its operand has lost the name */
	assert_non_null(strstr(first, "output k as last\n"));
	assert_non_null(strstr(little, "t = constant f64[3] 0.10000000000000001 -inf ...\n"));
	read_graph(&again, first, NULL, 0);
	char *second = written(&again, 0);
	assert_string_equal(first, second);
	free(first);
	free(second);
	free(little);
	tensor_graph_free(&g);
	tensor_graph_free(&again);
}

static void test_sizes(void **state)
{
	const char *name[4];
	size_t length[4];
	(void)state;

	assert_int_equal(graph_text_sizes(example, sizeof example - 1, name, length, 4), 1);
	assert_int_equal(length[0], 1);
	assert_memory_equal(name[0], "n", 1);
}

static const struct {
	const char *text, *why;
} refusals[] = {
	{ "", "t has no output" },
	{ "input x f32[2]\nx = frob x\n", "t:2: found \"frob\", expected an operation such as add" },
	{ "input x f32[2\n", "t:1: the line ends, expected , or ]" },
	{ "input x f33[2]\n", "t:1: found \"f33[2]\", expected a type such as f32[2,3]" },
	{ "input x f32[-1]\n", "t:1: dimension 1 is below 0" },
	{ "input x f32[m]\n", "t:1: found \"m]\", expected a size that a line such as \"size n\" declares" },
	{ "size n\n", "t:1: size n has no value" },
	{ "input x f32[9223372036854775807,3]\n", "t:1: f32[9223372036854775807,3] has more than 2^46 bytes" },
	{ "input x f32[4294967296*4294967296]\n", "expected a product below 2^63" },
	{ "input x f32[2]\ny = add x z\n", "t:2: found \"z\", expected a value that a line above gives" },
	{ "input x f32[2]\ny = add x\n", "t:2: add has 1 operands, expected 2" },
	{ "input x f32[2]\ny = add x x axis=1\n", "t:2: add has no attribute axis" },
	{ "input x f32[2]\ny = reverse x\n", "t:2: reverse lacks the attribute axes" },
	{ "input x f32[2]\ny = reverse x axes=[0,0]\n", "t:2: axes of reverse names 0 twice" },
	{ "input x f32[2]\ny = reverse x axes=[1]\n", "t:2: axes of reverse is 1, expected 0 to 0" },
	{ "input x f32[2]\ny = exp x frob=1\n", "t:2: no operation has an attribute frob" },
	{ "input x f32[2]\ninput y f32[3]\nz = add x y\n",
	  "t:3: add has operands of f32[2] and f32[3], expected equal" },
	{ "input x i32[2]\ny = exp x\n", "t:2: exp of i32, expected floats" },
	{ "input x bool[2]\ny = add x x\n", "t:2: add of bool, expected numbers" },
	{ "input x f32[2]\ny = and x x\n", "t:2: and of f32, expected integers or bool" },
	{ "input x f32[6]\ny = reshape x shape=[2,2]\n",
	  "t:2: reshape of f32[6] to f32[2,2], which has other elements" },
	{ "input x f32[2]\ny = broadcast x shape=[3] axes=[0]\n", "broadcast of a dimension of 2 to 3" },
	{ "input x f32[2]\ny = slice x start=[1] limit=[3]\n", "slice from 1 to 3 in steps of 1 of a dimension of 2" },
	{ "input x f32[2,3]\ninput y f32[2,4]\nz = concatenate x y axis=0\n",
	  "t:3: concatenate of f32[2,3] and f32[2,4] along axis 0" },
	{ "input x f32[2]\ny, z = exp x\n", "t:2: 2 names, but the operation has 1 results" },
	{ "x = constant f32[3] 1 2\noutput x\n", "t:1: the line ends, expected as many numbers" },
	{ "x = constant u8[1] 256\noutput x\n", "t:1: found \"256\", expected a number of the constant's type" },
	{ "x = constant u8[1] -1\noutput x\n", "t:1: found \"-1\", expected a number of the constant's type" },
	{ "x = constant f32[1000000000]\n", "expected as many numbers as the constant has elements" },
	{ "input x f32[2]\noutput x y\n", "t:2: expected output VALUE as NAME" },
	{ "input x f32[2]\noutput x as y z\n", "t:2: found \"z\", expected the end of the line" },
	{ "input x u8[3,35]\ny = dequantise x format=Q8_0\n",
	  "rows of dequantise have 35 bytes, expected blocks of Q8_0" },
	{ "input x u8[3,34]\ny = dequantise x format=Q9\n", "found \"Q9\", expected a format of weights such as Q4_K" },
	{ "input x u8[3,34]\ny = dequantise x format=I8\n", "expected a format of weights" },
	{ "input x i8[3,34]\ny = dequantise x format=q8_0\n", "t:2: dequantise of i8[2 dimensions], expected u8" },
	{ "input x u8[]\ny = dequantise x format=q8_0\n", "dequantise of u8[0 dimensions]" },
	{ "input x i32[4]\ny = random_bits x shape=[2]\n", "t:2: the key of random_bits is no u32[..,4]" },
	{ "input x u32[3]\ny = random_bits x shape=[2]\n", "the key of random_bits is no u32[..,4]" },
	{ "input x u32[1,1,4]\ny = random_bits x shape=[1,1,1,1,1,1,1]\n", "random_bits of 9 dimensions" },
	{ "input x f32[2]\ninput y f64[2]\nz = fake_quantise x x x y\n", "t:3: fake_quantise has operands of f32[2]" },
	{ "input x i32[2]\nz = fake_quantise x x x x\n", "fake_quantise of i32, expected floats" },
	{ "input x f32[2]\ny = kernel x source=\"kernel k(in f32 x[3], out f32 y[3]) over (i in 3) { y[i] = x[i]; "
	  "}\"\n",
	  "t:2: operand 1 of kernel is f32[2], expected f32[3] for x" },
	{ "y = kernel source=\"kernel k(in f32 x[3], out f32 y[3]) over (i in 3) { y[i] = x[i]; }\"\n",
	  "t:1: kernel has 0 operands, expected the 1 arrays that it reads" },
	{ "y = kernel source=\"kernel k(f32 x, out f32 y[3]) over (i in 3) { y[i] = x; }\"\n",
	  "t:1: x of the kernel is a scalar, expected arrays that are in or out" },
	{ "y = kernel source=\"kernel k(inout f32 y[3]) over (i in 3) { y[i] = 1; }\"\n", "y of the kernel is inout" },
	{ "y = kernel source=\"kernel k(in f32 y[3]) over (i in 3) { }\"\n", "t:1: kernel" },
	{ "y = kernel source=\"kernel k(out f32 y[3]) over (i in 3) { y[i] = z; }\"\n", "t:1: kernel:1:" },
	{ "y = kernel source=\"const i64 n; kernel k(out f32 y[n]) over (i in n) { y[i] = 1; }\" constants=\"n\"\n",
	  "constants of kernel: \"n\", expected name=value" },
	{ "y = kernel source=kernel\n", "t:1: found \"kernel\", expected a text in quotes" },
	{ "y = kernel source=\"kernel # \n", "t:1: the line ends, expected a quote at the end of the text" },
	{ "y = kernel\n", "t:1: kernel lacks the attribute source" },
#define BODY " body=\"input c f32[2]\\ninput x f32[3]\\noutput c\\noutput x\\n\"\n"
	{ "input c f32[2]\ninput x f32[5,3]\ny, z = scan c x carried=2 stacked=1" BODY,
	  "t:3: scan of 2 operands has 2 carried and 1 stacked ones" },
	{ "input c f32[2]\ninput x f32[5,3]\ny, z = scan c x carried=-1" BODY, "scan of 2 operands has -1 carried" },
	{ "input c f32[2]\ninput x f32[3]\ny, z = scan c x carried=1" BODY,
	  "t:3: scan without stacked operands lacks the attribute length" },
	{ "input c f32[2]\ninput x f32[3]\ny, z = scan c x carried=1 length=-2" BODY,
	  "length of scan is -2, expected 0 to 2^46" },
	{ "input c f32[2]\ninput x f32[]\ny, z = scan c x carried=1 stacked=1" BODY,
	  "stacked operand 2 of scan has no dimension" },
	{ "input c f32[2]\ninput x f32[5,3]\ny, z = scan c x carried=1 stacked=1 length=4" BODY,
	  "stacked operand 2 of scan has 5 slices, expected 4" },
	{ "input c f32[2]\ninput x f32[5,3]\ny, z = scan c x c carried=1 stacked=1" BODY,
	  "the body of scan has 2 inputs, expected 3" },
	{ "input c f32[2]\ninput x f32[5,4]\ny, z = scan c x carried=1 stacked=1" BODY,
	  "input 2 of the body of scan is f32[3], expected f32[4]" },
	{ "input c f32[2]\ninput x f32[5,3]\ny = scan c x carried=1 stacked=1 body=\"input c f32[2]\\ninput x f32[3]\\n"
	  "output x\\n\"\n",
	  "output 1 of the body of scan is f32[3], expected f32[2]" },
	{ "input c f32[2]\ny = scan c c carried=2 length=1 body=\"input c f32[2]\\ninput d f32[2]\\noutput d\\n\"\n",
	  "the body of scan has 1 outputs, expected 2 to 64" },
	{ "input x f32[1,1,1,1,1,1,1,1]\ny = scan x length=1 body=\"input x f32[1,1,1,1,1,1,1,1]\\noutput x\\n\"\n",
	  "output 1 of the body of scan has 8 dimensions already" },
	{ "input x f32[2]\ny = scan x length=1 body=\"input x f32[2]\\ny = frob x\\noutput y\\n\"\n",
	  "t:2: body:2: found \"frob\"" },
	{ "input x f32[2]\ny = scan x length=1 body=\"size n\\ninput x f32[n]\\noutput x\\n\"\n",
	  "body:1: size n has no value" },
	{ "input x f32[2]\ny = scan x length=1\n", "scan lacks the attribute body" },
	{ "input a f32[2,3]\ny = solve a a\n",
	  "solve of f32[2,3] and f32[2,3], expected equal types of floats, [..,n,n] and [..,n,m]" },
	{ "input a f32[3,3]\ninput b f32[3]\ny = solve a b\n", "solve of f32[3,3] and f32[3]" },
	{ "input a f32[2,3,3]\ninput b f32[4,3,1]\ny = solve a b\n", "solve of f32[2,3,3]" },
	{ "input a i32[3,3]\ny = solve a a\n", "solve of i32[3,3]" },
	{ "frobnicate\n", "t:1: found \"frobnicate\", expected graph, size, input, output or NAME = OPERATION" },
};

static void test_refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct tensor_graph g;
		struct error err = { 0 };
		if (graph_text_read(&g, "t", refusals[i].text, strlen(refusals[i].text), NULL, 0, &err))
			fail_msg("read: %s", refusals[i].text);
		if (!strstr(err.text, refusals[i].why))
			fail_msg("\"%s\", expected \"%s\" for\n%s", err.text, refusals[i].why, refusals[i].text);
	}
	struct tensor_graph g;
	struct error err = { 0 };
	assert_false(
		graph_text_read(&g, "t", "input x f32[1]\noutput x\n", 24, &(struct graph_size){ "m", 2 }, 1, &err));
	assert_string_equal(err.text, "t has no size m");
}

/* A part of a graph that depends on no input can be known before it runs. */
static void test_known(void **state)
{
	struct tensor_graph g;
	struct tensor t;
	struct error err = { 0 };
	(void)state;

	read_graph(&g,
	           "input x f32[2]\na = constant i64[2] 1 2\nb = add a a\nc = convert x type=i64\nd = add b c\n"
	           "output d\n",
	           NULL, 0);
	assert_true(tensor_graph_known(&g, tensor_graph_find(&g, "b"), &t, &err));
	assert_int_equal(tensor_get(&t, 1).i, 4);
	tensor_free(&t);
	assert_false(tensor_graph_known(&g, tensor_graph_find(&g, "d"), &t, &err));
	assert_string_equal(err.text, "the value depends on an input");
	tensor_graph_free(&g);
}

/* docs/graphs.md has a row for each operation, with its attributes. */
static void test_docs(void **state)
{
	char path[1024], row[400], attributes[300];
	size_t n;
	char *page = (char *)file_bytes(source_path(path, "docs/graphs.md"), &n);
	(void)state;

	page = realloc(page, n + 1);
	assert_non_null(page);
	page[n] = 0;
	for (int op = 0; op < TENSOR_OPS; op++) {
		size_t m = 0;
		attributes[0] = 0;
		for (const char *p = tensor_ops[op].attributes; *p; p += *p == ' ') {
			const size_t length = strcspn(p, " ");
			m += (size_t)snprintf(attributes + m, sizeof attributes - m, "%s`%.*s`", m ? " " : "",
			                      (int)length, p);
			p += length;
		}
		snprintf(row, sizeof row, "| `%s` | %u%s | %s |", tensor_ops[op].name, tensor_ops[op].min,
		         tensor_ops[op].max == TENSOR_MANY ? " or more" : "", attributes);
		if (!strstr(page, row))
			fail_msg("docs/graphs.md has no row that begins \"%s\"", row);
	}
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meaning),  cmocka_unit_test(test_written),       cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_known),         cmocka_unit_test(test_docs),
		cmocka_unit_test(check_loops),   cmocka_unit_test(check_all_equations)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
