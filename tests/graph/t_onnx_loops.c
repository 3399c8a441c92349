/* tests/graph/t_onnx_loops.c - Loop and Scan of ONNX files, short ones and long ones, beside plain loops: their
 * numbers, and whether one loop of the graph stands for them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "loaders/onnx/onnx.h"
#include "tests/graph/onnx_writer.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, WIDE = 3, LONGEST = 20000 };

/* Imports a graph, which is freed; computes it, of up to two inputs, and says how many of its nodes are loops. */
static void compute(struct bytes *graph, const struct tensor *const in[], struct tensor *out, uint32_t *nodes,
                    uint32_t *loops)
{
	struct bytes model = { 0 };
	struct error err = { 0 };
	struct tensor_graph g;

	onnx_put_model(&model, graph, 18);
	struct onnx_file *f = onnx_open_bytes("m.onnx", model.p, model.n, NULL, &err);
	bytes_free(&model);
	if (!f || !onnx_import(f, NULL, &g, NULL, &err) || !tensor_graph_eval(&g, in, out, &err))
		fail_msg("%s", err.text);
	*nodes = g.nodes;
	*loops = 0;
	for (uint32_t i = 0; i < g.nodes; i++) {
		*loops += g.node[i].op == OP_scan;
		/* start, x or a count, and v: what is named twice is one operand */
		assert_true(g.node[i].op != OP_scan || g.node[i].operands <= 3);
	}
	tensor_graph_free(&g);
	onnx_close(f);
}

static void compare(const struct tensor *t, const float *expected, size_t n)
{
	assert_int_equal(shape_elements(&t->shape), n);
	assert_memory_equal(t->data, expected, n * sizeof *expected);
}

/* acc = acc * w + x, y = max(acc + v, v), of which w is a constant around the loop, and v an input. */
static void put_step(struct bytes *body)
{
	onnx_put_value(body, GRAPH_INPUT, "acc", FLOAT, NULL);
	onnx_put_value(body, GRAPH_INPUT, "x1", FLOAT, NULL);
	onnx_put_node(body, "", "Mul", "acc w", "scaled", NULL);
	onnx_put_node(body, "", "Add", "scaled x1", "sum", NULL);
	onnx_put_node(body, "", "Add", "sum v", "more", NULL);
	onnx_put_node(body, "", "Max", "more v", "y1", NULL);
	onnx_put_value(body, GRAPH_OUTPUT, "sum", FLOAT, NULL);
	onnx_put_value(body, GRAPH_OUTPUT, "y1", FLOAT, NULL);
}

static void put_scan(struct bytes *g, int64_t n, int64_t axis, int64_t back, int64_t out_axis, int64_t out_back)
{
	struct bytes body = { 0 }, a = { 0 };
	char dims[40];

	snprintf(dims, sizeof dims, axis ? "%d %d" : "%2$d %1$d", WIDE, (int)n);
	put_step(&body);
	onnx_put_value(g, GRAPH_INPUT, "x", FLOAT, dims);
	onnx_put_value(g, GRAPH_INPUT, "v", FLOAT, "3");
	onnx_put_floats(g, "w", (const float[]){ 0.5f }, 1);
	onnx_put_floats(g, "start", (const float[]){ 1, 2, 3 }, WIDE);
	attribute_graph(&a, "body", &body);
	attribute_int(&a, "num_scan_inputs", 1);
	attribute_ints(&a, "scan_input_axes", &axis, 1);
	attribute_ints(&a, "scan_input_directions", &back, 1);
	attribute_ints(&a, "scan_output_axes", &out_axis, 1);
	attribute_ints(&a, "scan_output_directions", &out_back, 1);
	onnx_put_node(g, "loop", "Scan", "start x", "last y", &a);
	onnx_put_value(g, GRAPH_OUTPUT, "last", FLOAT, NULL);
	onnx_put_value(g, GRAPH_OUTPUT, "y", FLOAT, NULL);
}

static void check_scan(size_t n, int axis, int back, int out_axis, int out_back)
{
	struct bytes g = { 0 };
	float *x = calloc(n * WIDE, sizeof *x), *y = calloc(n * WIDE, sizeof *y);
	float last[WIDE] = { 1, 2, 3 }, v[WIDE] = { 10, 20, 30 };
	const struct tensor in[2] = {
		{ .type = JIT_TYPE_F32,
		  .shape = { .rank = 2, .dim = { axis ? WIDE : n, axis ? n : WIDE } },
		  .data = x },
		{ .type = JIT_TYPE_F32, .shape = { .rank = 1, .dim = { WIDE } }, .data = v },
	};
	struct tensor out[2];
	uint32_t nodes, loops;

	assert_true(x && y);
	for (size_t i = 0; i < n * WIDE; i++)
		x[i] = (float)(i * 7 % 11) - 4;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < WIDE; k++) {
			const size_t at = back ? n - 1 - i : i, to = out_back ? n - 1 - i : i;
			last[k] = last[k] * 0.5f + x[axis ? k * n + at : at * WIDE + k];
			y[out_axis ? k * n + to : to * WIDE + k] = last[k] > 0 ? last[k] + v[k] : v[k];
		}
	put_scan(&g, (int64_t)n, axis, back, out_axis, out_back);
	compute(&g, (const struct tensor *[]){ &in[0], &in[1] }, out, &nodes, &loops);
	compare(&out[0], last, WIDE);
	compare(&out[1], y, n * WIDE);
	assert_int_equal(out[1].shape.dim[out_axis ? 1 : 0], n);
	assert_int_equal(loops, n > 8);
	for (unsigned i = 0; i < 2; i++)
		tensor_free(&out[i]);
	free(x);
	free(y);
}

static void test_scan(void **state)
{
	(void)state;
	static const size_t lengths[] = { 1, 2, 8, 9, 40 };

	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (int form = 0; form < 16; form++)
			check_scan(lengths[i], form & 1, form >> 1 & 1, form >> 2 & 1, form >> 3 & 1);
}

/* ---- Loop */

enum loop_form { FOR_EVER, STOPS_AT_12, GROWS, HOLDS_A_SCAN };

/* total += iteration, and the total is kept; or what the form says. */
static void put_loop_body(struct bytes *body, enum loop_form form)
{
	onnx_put_value(body, GRAPH_INPUT, "i", INT64, "");
	onnx_put_value(body, GRAPH_INPUT, "c", BOOL, "");
	onnx_put_value(body, GRAPH_INPUT, "total", FLOAT, NULL);
	struct bytes to = { 0 };
	attribute_int(&to, "to", FLOAT);
	onnx_put_node(body, "", "Cast", "i", "f", &to);
	if (form == STOPS_AT_12)
		onnx_put_node(body, "", "Less", "i eleven", "c1", NULL);
	else
		onnx_put_node(body, "", "Identity", "c", "c1", NULL);
	if (form == GROWS) {
		struct bytes axis = { 0 };
		attribute_int(&axis, "axis", 0);
		onnx_put_node(body, "", "Concat", "total one", "total1", &axis);
	} else if (form == HOLDS_A_SCAN) { /* adds the iteration to each of 20 numbers around, and sums these up */
		struct bytes inner = { 0 }, a = { 0 };
		onnx_put_value(&inner, GRAPH_INPUT, "acc", FLOAT, NULL);
		onnx_put_value(&inner, GRAPH_INPUT, "part", FLOAT, NULL);
		onnx_put_node(&inner, "", "Add", "part f", "more", NULL);
		onnx_put_node(&inner, "", "Add", "acc more", "acc1", NULL);
		onnx_put_node(&inner, "", "Mul", "acc1 one", "acc2", NULL);
		onnx_put_value(&inner, GRAPH_OUTPUT, "acc2", FLOAT, NULL);
		attribute_graph(&a, "body", &inner);
		attribute_int(&a, "num_scan_inputs", 1);
		onnx_put_node(body, "", "Scan", "total twenty", "total1", &a);
	} else {
		onnx_put_node(body, "", "Add", "total f", "total1", NULL);
	}
	onnx_put_value(body, GRAPH_OUTPUT, "c1", BOOL, NULL);
	onnx_put_value(body, GRAPH_OUTPUT, "total1", FLOAT, NULL);
	if (form != GROWS) {
		onnx_put_node(body, "", "Neg", "total1", "minus", NULL);
		onnx_put_value(body, GRAPH_OUTPUT, "minus", FLOAT, NULL);
	}
}

/* The result, and the kept ones; n: how often it runs at most. */
static void run_loop(enum loop_form form, int64_t n, struct tensor *out, uint32_t *nodes, uint32_t *loops)
{
	struct bytes g = { 0 }, body = { 0 }, a = { 0 };
	const float twenty[20] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 };
	const float start = 0.25f;
	const struct tensor in = {
		.type = JIT_TYPE_F32, .shape = { .rank = 1, .dim = { 1 } }, .data = (void *)(uintptr_t)&start
	};

	put_loop_body(&body, form);
	onnx_put_value(&g, GRAPH_INPUT, "start", FLOAT, "1");
	onnx_put_ints(&g, "n", &n, 1);
	onnx_put_ints(&g, "eleven", (const int64_t[]){ 11 }, 1);
	onnx_put_floats(&g, "one", (const float[]){ 1 }, 1);
	onnx_put_floats(&g, "twenty", twenty, 20);
	attribute_graph(&a, "body", &body);
	onnx_put_node(&g, "loop", "Loop", "n - start", form == GROWS ? "total2" : "total2 kept", &a);
	onnx_put_value(&g, GRAPH_OUTPUT, "total2", FLOAT, NULL);
	if (form != GROWS)
		onnx_put_value(&g, GRAPH_OUTPUT, "kept", FLOAT, NULL);
	compute(&g, (const struct tensor *[]){ &in }, out, nodes, loops);
}

static void check_sums(enum loop_form form, int64_t n, int64_t runs, bool is_loop, uint32_t *nodes)
{
	struct tensor out[2];
	float *kept = calloc((size_t)runs, sizeof *kept), total = 0.25f;
	uint32_t loops;

	assert_non_null(kept);
	for (int64_t i = 0; i < runs; i++) {
		for (int k = 1; form == HOLDS_A_SCAN && k <= 20; k++)
			total += (float)k + (float)i;
		total += form == HOLDS_A_SCAN ? 0 : (float)i;
		kept[i] = -total;
	}
	run_loop(form, n, out, nodes, &loops);
	compare(&out[0], &total, 1);
	compare(&out[1], kept, (size_t)runs);
	assert_int_equal(out[1].shape.dim[0], runs);
	assert_int_equal(loops != 0, is_loop);
	for (unsigned i = 0; i < 2; i++)
		tensor_free(&out[i]);
	free(kept);
}

static void test_loop(void **state)
{
	(void)state;
	uint32_t nine, longer;

	check_sums(FOR_EVER, 3, 3, false, &nine);
	check_sums(FOR_EVER, 8, 8, false, &nine);
	check_sums(FOR_EVER, 9, 9, true, &nine);
	check_sums(FOR_EVER, LONGEST, LONGEST, true, &longer);
	assert_int_equal(nine, longer); /* of nodes */
	check_sums(HOLDS_A_SCAN, 9, 9, true, &nine);
	check_sums(HOLDS_A_SCAN, 300, 300, true, &longer);
	assert_int_equal(nine, longer);
}

/* What is not alike in all iterations is drawn as often as it runs. */
static void test_unlike(void **state)
{
	(void)state;
	const float grown[11] = { 0.25f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	struct tensor out[2];
	uint32_t nodes, loops;

	check_sums(STOPS_AT_12, 10, 10, false, &nodes);
	check_sums(STOPS_AT_12, 100, 12, false, &nodes);
	run_loop(GROWS, 10, out, &nodes, &loops);
	compare(&out[0], grown, 11);
	assert_int_equal(loops, 0);
	tensor_free(&out[0]);
}

/* ---- a shape that a loop computes when the file is imported */

static bool import_shape(int64_t n, struct tensor_graph *g, struct error *err)
{
	struct bytes graph = { 0 }, body = { 0 }, a = { 0 }, model = { 0 };

	onnx_put_value(&body, GRAPH_INPUT, "i", INT64, "");
	onnx_put_value(&body, GRAPH_INPUT, "c", BOOL, "");
	onnx_put_value(&body, GRAPH_INPUT, "total", INT64, NULL);
	onnx_put_node(&body, "", "Identity", "c", "c1", NULL);
	onnx_put_node(&body, "", "Add", "total two", "total1", NULL);
	onnx_put_value(&body, GRAPH_OUTPUT, "c1", BOOL, NULL);
	onnx_put_value(&body, GRAPH_OUTPUT, "total1", INT64, NULL);
	onnx_put_ints(&graph, "n", &n, 1);
	onnx_put_ints(&graph, "start", (const int64_t[]){ 1 }, 1);
	onnx_put_ints(&graph, "two", (const int64_t[]){ 2 }, 1);
	attribute_graph(&a, "body", &body);
	onnx_put_node(&graph, "loop", "Loop", "n - start", "shape", &a);
	onnx_put_node(&graph, "zeroes", "ConstantOfShape", "shape", "y", NULL);
	onnx_put_value(&graph, GRAPH_OUTPUT, "y", FLOAT, NULL);
	onnx_put_model(&model, &graph, 18);
	struct onnx_file *f = onnx_open_bytes("m.onnx", model.p, model.n, NULL, err);
	bytes_free(&model);
	assert_non_null(f);
	const bool ok = onnx_import(f, NULL, g, NULL, err);
	onnx_close(f);
	return ok;
}

static void test_shape(void **state)
{
	(void)state;
	struct error err = { 0 };
	struct tensor_graph g;

	assert_true(import_shape(1000, &g, &err));
	assert_int_equal(g.value[g.output[0]].shape.dim[0], 2001);
	tensor_graph_free(&g);
	assert_false(import_shape(INT64_C(1) << 40, &g, &err));
	assert_string_equal(err.text, "m.onnx: node zeroes (ConstantOfShape): input 1, shape, must be known when the "
	                              "graph is drawn, and it takes too long to compute it");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scan), cmocka_unit_test(test_loop),
		                            cmocka_unit_test(test_unlike), cmocka_unit_test(test_shape) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
