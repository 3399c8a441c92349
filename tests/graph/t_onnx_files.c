/* tests/graph/t_onnx_files.c - what an ONNX file says of itself, imports for sizes and values, and refusals: each names
 * the node, its operator, and what was found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/eval.h"
#include "loaders/onnx/onnx.h"
#include "tests/graph/onnx_plain.h"
#include "tests/graph/onnx_writer.h"

enum { FLOAT = 1, INT64 = 7, STRING = 8, BOOL = 9 };

static struct onnx_file *open_graph(struct bytes *graph)
{
	struct bytes model = { 0 };
	struct error err = { 0 };

	onnx_put_model(&model, graph, 18);
	struct onnx_file *f = onnx_open_bytes("m.onnx", model.p, model.n, NULL, &err);
	if (!f)
		fail_msg("%s", err.text);
	bytes_free(&model);
	return f;
}

/* The sentence of an import that is refused. */
static void must_refuse(struct bytes *graph, const struct onnx_sizes *sizes, const char *expected)
{
	struct onnx_file *f = open_graph(graph);
	struct tensor_graph g;
	struct error err = { 0 };

	if (onnx_import(f, sizes, &g, NULL, &err))
		fail_msg("imported, expected: %s", expected);
	if (strcmp(err.text, expected) != 0)
		fail_msg("%s\nexpected: %s", err.text, expected);
	onnx_close(f);
}

/* Computes the only output of a graph without inputs, or with one of f32, and compares it. */
static void must_give(struct onnx_file *f, const struct onnx_sizes *sizes, const float *in, const float *expected,
                      uint64_t n)
{
	struct tensor x = { .data = NULL }, out[2];
	const struct tensor *inputs[] = { &x };
	struct tensor_graph g;
	struct error err = { 0 };

	if (!onnx_import(f, sizes, &g, NULL, &err))
		fail_msg("%s", err.text);
	assert_int_equal(g.inputs, in != NULL);
	if (in) {
		assert_true(tensor_make(&x, JIT_TYPE_F32, &g.value[g.input[0]].shape, &err));
		memcpy(x.data, in, tensor_bytes(&x));
	}
	assert_true(tensor_graph_eval(&g, inputs, out, &err));
	assert_int_equal(tensor_bytes(&out[0]), n * sizeof *expected);
	assert_memory_equal(out[0].data, expected, n * sizeof *expected);
	for (uint32_t i = 0; i < g.outputs; i++)
		tensor_free(&out[i]);
	tensor_free(&x);
	tensor_graph_free(&g);
}
#define SOME(...) \
	(const float[]) { __VA_ARGS__ }

static void test_about(void **state)
{
	(void)state;
	struct bytes g = { 0 }, model = { 0 }, entry = { 0 };
	struct error err = { 0 };
	const char *key, *value;

	onnx_put_text(&g, 2, "small");
	onnx_put_value(&g, GRAPH_INPUT, "x", FLOAT, "n 4 ?");
	onnx_put_value(&g, GRAPH_INPUT, "w", FLOAT, "1");
	onnx_put_value(&g, GRAPH_INPUT, "s", STRING, NULL);
	onnx_put_floats(&g, "w", SOME(2), 1);
	onnx_put_node(&g, "double", "Mul", "x w", "y", NULL);
	onnx_put_value(&g, GRAPH_OUTPUT, "y", FLOAT, "n 4 ?");
	onnx_put_model(&model, &g, 18);
	onnx_put_text(&model, 3, "1.5");
	onnx_put_text(&entry, 1, "license");
	onnx_put_text(&entry, 2, "MIT");
	onnx_put_message(&model, 14, &entry);
	struct onnx_file *f = onnx_open_bytes("m.onnx", model.p, model.n, NULL, &err);
	assert_non_null(f);
	const struct onnx_about *a = onnx_about(f);
	assert_string_equal(a->graph, "small");
	assert_string_equal(a->producer, "writer");
	assert_string_equal(a->producer_version, "1.5");
	assert_int_equal(a->ir_version, 8);
	assert_int_equal(a->opset, 18);
	assert_int_equal(a->nodes, 1);
	assert_int_equal(a->weights, 1);
	assert_int_equal(a->inputs, 2); /* w has an initializer */
	assert_int_equal(a->outputs, 1);
	assert_int_equal(a->metadata, 1);
	onnx_metadata(f, 0, &key, &value);
	assert_string_equal(key, "license");
	assert_string_equal(value, "MIT");
	const struct onnx_slot *x = &a->input[0];
	assert_string_equal(x->name, "x");
	assert_int_equal(x->type, JIT_TYPE_F32);
	assert_true(x->has_shape && x->rank == 3);
	assert_string_equal(x->dim[0].name, "n");
	assert_true(!x->dim[0].is_fixed && x->dim[1].is_fixed && x->dim[1].size == 4 && !x->dim[1].name);
	assert_true(!x->dim[2].is_fixed && !x->dim[2].name && x->dim[2].size == 0);
	assert_int_equal(a->input[1].type, -1);
	assert_false(a->input[1].has_shape);
	assert_string_equal(a->output[0].name, "y");
	onnx_close(f);
	bytes_free(&model);
}

static void put_doubling(struct bytes *g, const char *dims)
{
	onnx_put_value(g, GRAPH_INPUT, "x", FLOAT, dims);
	onnx_put_node(g, "double", "Add", "x x", "y", NULL);
	onnx_put_value(g, GRAPH_OUTPUT, "y", FLOAT, dims);
}

/* One file, imported again for other sizes. */
static void test_sizes(void **state)
{
	(void)state;
	struct bytes g = { 0 };
	const struct shape three = { .rank = 1, .dim = { 3 } }, wide = { .rank = 2, .dim = { 2, 2 } },
			   other = { .rank = 2, .dim = { 2, 3 } };

	put_doubling(&g, "n");
	struct onnx_file *f = open_graph(&g);
	must_give(f, &(struct onnx_sizes){ &(struct graph_size){ "n", 2 }, 1, NULL, 0 }, SOME(1, 2), SOME(2, 4), 2);
	must_give(f, &(struct onnx_sizes){ NULL, 0, &(struct onnx_bind){ "x", &three, NULL }, 1 }, SOME(1, 2, 3),
	          SOME(2, 4, 6), 3);
	onnx_close(f);
	put_doubling(&g, "n");
	must_refuse(&g, NULL, "m.onnx: dimension 0 of the input x has no size: expected one for n");
	put_doubling(&g, "n 2");
	must_refuse(&g, &(struct onnx_sizes){ NULL, 0, &(struct onnx_bind){ "x", &three, NULL }, 1 },
	            "m.onnx: the input x is given as f32[3], expected 2 dimensions");
	put_doubling(&g, "n 2");
	must_refuse(&g, &(struct onnx_sizes){ NULL, 0, &(struct onnx_bind){ "x", &other, NULL }, 1 },
	            "m.onnx: the input x is given as f32[2,3], expected dimension 1 to be 2");
	put_doubling(&g, NULL);
	must_refuse(&g, NULL, "m.onnx: the input x has no shape: expected one for it");
	put_doubling(&g, "n 2");
	f = open_graph(&g);
	must_give(f, &(struct onnx_sizes){ NULL, 0, &(struct onnx_bind){ "x", &wide, NULL }, 1 }, SOME(1, 2, 3, 4),
	          SOME(2, 4, 6, 8), 4);
	onnx_close(f);
}

/* A shape that is an input: it is asked for by name, and then known. */
static void test_values(void **state)
{
	(void)state;
	struct bytes g = { 0 };
	struct error err = { 0 };
	struct tensor_graph graph;
	struct onnx_refusal why;
	struct tensor shape;

	onnx_put_value(&g, GRAPH_INPUT, "x", FLOAT, "4");
	onnx_put_value(&g, GRAPH_INPUT, "shape", INT64, "2");
	onnx_put_node(&g, "fold", "Reshape", "x shape", "y", NULL);
	onnx_put_value(&g, GRAPH_OUTPUT, "y", FLOAT, NULL);
	struct onnx_file *f = open_graph(&g);
	assert_false(onnx_import(f, NULL, &graph, &why, &err));
	assert_string_equal(why.input, "shape");
	assert_string_equal(err.text, "m.onnx: node fold (Reshape): input 2, shape, must be known when the graph is "
	                              "drawn, and depends on the graph's input shape");
	memset(&err, 0, sizeof err);
	assert_true(tensor_make(&shape, JIT_TYPE_I64, &(struct shape){ .rank = 1, .dim = { 2 } }, &err));
	memcpy(shape.data, (const int64_t[]){ 2, 2 }, 16);
	const struct onnx_sizes sizes = { NULL, 0, &(struct onnx_bind){ "shape", NULL, &shape }, 1 };
	must_give(f, &sizes, SOME(1, 2, 3, 4), SOME(1, 2, 3, 4), 4);
	shape.type = JIT_TYPE_F64;
	assert_false(onnx_import(f, &sizes, &graph, &why, &err));
	assert_null(why.input);
	assert_string_equal(err.text, "m.onnx: the input shape is given as f64, expected i64");
	tensor_free(&shape);
	onnx_close(f);
}

/* A function whose attribute is one of the call, or what the function has in its place. */
static void test_functions(void **state)
{
	(void)state;

	for (int given = 0; given < 2; given++) {
		struct bytes g = { 0 }, f = { 0 }, a = { 0 }, set = { 0 }, model = { 0 }, usual = { 0 };
		struct error err = { 0 };
		attribute_refers(&a, "axis", 2, "which");
		onnx_put_text(&f, 1, "Piece");
		onnx_put_text(&f, 4, "a");
		onnx_put_text(&f, 5, "b");
		struct bytes node = { 0 };
		onnx_put_text(&node, 1, "a");
		onnx_put_text(&node, 2, "b");
		onnx_put_text(&node, 4, "Flatten");
		bytes_add(&node, a.p, a.n);
		onnx_put_message(&f, 7, &node);
		onnx_put_int(&set, 2, 18);
		onnx_put_message(&f, 9, &set);
		onnx_put_text(&f, 10, "mine");
		onnx_put_text(&usual, 1, "which");
		onnx_put_int(&usual, 3, 2);
		onnx_put_int(&usual, 20, 2);
		onnx_put_message(&f, 11, &usual);
		bytes_free(&a);
		a = (struct bytes){ 0 };
		if (given)
			attribute_int(&a, "which", 1);
		onnx_put_text(&a, 7, "mine");
		onnx_put_value(&g, GRAPH_INPUT, "x", FLOAT, "2 3 1");
		onnx_put_node(&g, "call", "Piece", "x", "y", &a);
		onnx_put_value(&g, GRAPH_OUTPUT, "y", FLOAT, NULL);
		onnx_put_model(&model, &g, 18);
		onnx_put_message(&model, 25, &f);
		struct onnx_file *file = onnx_open_bytes("m.onnx", model.p, model.n, NULL, &err);
		struct tensor_graph graph;
		if (!file || !onnx_import(file, NULL, &graph, NULL, &err))
			fail_msg("%s", err.text);
		assert_int_equal(graph.value[graph.output[0]].shape.dim[0], given ? 2 : 6);
		tensor_graph_free(&graph);
		onnx_close(file);
		bytes_free(&model);
	}
}

/* ---- external data */

static void put_external(struct bytes *model, const char *location, const char *offset, const char *length)
{
	struct bytes g = { 0 }, t = { 0 }, entry = { 0 };
	const char *const pairs[] = { "location", location, "offset", offset, "length", length };

	onnx_put_int(&t, 1, 2);
	onnx_put_int(&t, 2, FLOAT);
	onnx_put_text(&t, 8, "w");
	for (size_t i = 0; i < 6; i += 2) {
		onnx_put_text(&entry, 1, pairs[i]);
		onnx_put_text(&entry, 2, pairs[i + 1]);
		onnx_put_message(&t, 13, &entry);
	}
	onnx_put_int(&t, 14, 1);
	onnx_put_message(&g, GRAPH_INITIALIZER, &t);
	onnx_put_node(&g, "double", "Add", "w w", "y", NULL);
	onnx_put_value(&g, GRAPH_OUTPUT, "y", FLOAT, NULL);
	onnx_put_model(model, &g, 18);
}

static void write_file(const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void external_case(const char *folder, const char *location, const char *offset, const char *length,
                          const char *expected)
{
	struct bytes model = { 0 };
	struct error err = { 0 };
	struct tensor_graph g;
	char path[200];

	put_external(&model, location, offset, length);
	snprintf(path, sizeof path, "%s/m.onnx", folder);
	write_file(path, model.p, model.n);
	bytes_free(&model);
	struct onnx_file *f = onnx_open(path, &err);
	assert_non_null(f);
	if (!expected) {
		must_give(f, NULL, NULL, SOME(4, 6), 2);
	} else {
		assert_false(onnx_import(f, NULL, &g, NULL, &err));
		if (!strstr(err.text, expected))
			fail_msg("%s\nexpected: %s", err.text, expected);
	}
	onnx_close(f);
	unlink(path);
}

static void test_external(void **state)
{
	(void)state;
	char folder[] = "/tmp/jitrun-onnx-XXXXXX", path[200], inner[210], link_path[230];

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/w.bin", folder);
	write_file(path, SOME(1, 2, 3), 12);
	external_case(folder, "w.bin", "4", "8", NULL);
	external_case(folder, "w.bin", "8", "8", "its external data is 8 bytes at 8, and");
	external_case(folder, "w.bin", "18446744073709551615", "8", "offset of its external data is");
	external_case(folder, "w.bin", "4", "4", "its external data has 4 bytes, expected 8");
	external_case(folder, "none.bin", "0", "8", "is not there, or a link leads out of the model's folder");
	external_case(folder, "../w.bin", "0", "8", "expected a file of the model's folder");
	external_case(folder, "/etc/passwd", "0", "8", "expected a file of the model's folder");
	external_case(folder, "a/../../w.bin", "0", "8", "expected a file of the model's folder");
	external_case(folder, "", "0", "8", "expected a file of the model's folder");
	snprintf(inner, sizeof inner, "%s/inner", folder);
	assert_int_equal(mkdir(inner, 0700), 0);
	snprintf(link_path, sizeof link_path, "%s/link.bin", inner);
	assert_int_equal(symlink(path, link_path), 0);
	external_case(inner, "link.bin", "0", "8", "a link leads out of the model's folder");
	unlink(link_path);
	rmdir(inner);
	unlink(path);
	rmdir(folder);
}

/* ---- refusals */

static void one_node(struct bytes *g, const char *op, const char *in, struct bytes *a)
{
	onnx_put_value(g, GRAPH_INPUT, "x", FLOAT, "2 3");
	onnx_put_node(g, "here", op, in, "y", a);
	onnx_put_value(g, GRAPH_OUTPUT, "y", FLOAT, NULL);
}

static void test_refusals(void **state)
{
	(void)state;
	struct bytes g = { 0 }, a = { 0 };
	static const int64_t many[] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };

	one_node(&g, "Frobnicate", "x", NULL);
	must_refuse(&g, NULL, "m.onnx: node here (Frobnicate): the operator is not imported");
	one_node(&g, "Add", "x", NULL);
	must_refuse(&g, NULL, "m.onnx: node here (Add): there are 1 inputs, expected 2 to 2");
	one_node(&g, "Add", "- x", NULL);
	must_refuse(&g, NULL, "m.onnx: node here (Add): input 1 is left out");
	one_node(&g, "Add", "x y", NULL);
	must_refuse(&g, NULL, "m.onnx: node here (Add): y is used before it is made");
	one_node(&g, "Add", "x z", NULL);
	must_refuse(&g, NULL, "m.onnx: node here (Add): no value is called z");
	attribute_int(&a, "colour", 3);
	one_node(&g, "Relu", "x", &a);
	must_refuse(&g, NULL, "m.onnx: node here (Relu): there is an attribute colour, which is not known");
	attribute_of_text(&a, "axis", "up");
	one_node(&g, "Softmax", "x", &a);
	must_refuse(&g, NULL, "m.onnx: node here (Softmax): attribute axis has another type than an integer");
	attribute_int(&a, "axis", 2);
	one_node(&g, "Softmax", "x", &a);
	must_refuse(&g, NULL, "m.onnx: node here (Softmax): axis is 2, expected one of 2 dimensions");
	attribute_int(&a, "to", STRING);
	one_node(&g, "Cast", "x", &a);
	must_refuse(&g, NULL, "m.onnx: node here (Cast): attribute to is the type string, which graphs do not have");
	attribute_ints(&a, "perm", many, 2);
	one_node(&g, "Transpose", "x", &a);
	must_refuse(&g, NULL, "m.onnx: node here (Transpose): axis 1 is named twice");
	onnx_put_ints(&g, "shape", many, 9);
	one_node(&g, "Expand", "x shape", NULL);
	must_refuse(&g, NULL,
	            "m.onnx: node here (Expand): input 2 has 9 elements, expected at most 8 in one dimension");
	onnx_put_value(&g, GRAPH_INPUT, "s", STRING, "1");
	one_node(&g, "Relu", "x", NULL);
	must_refuse(&g, NULL, "m.onnx: the input s has elements that graphs do not have, or is no array");
	onnx_put_floats(&g, "w", SOME(1, 2), 2);
	one_node(&g, "MatMul", "x w", NULL);
	must_refuse(&g, NULL, "m.onnx: node here (MatMul): dot of dimensions of 3 and 2");
	onnx_put_tensor(&g, GRAPH_INITIALIZER, "w", FLOAT, (const int64_t[]){ 1 << 30 }, 1, SOME(1), 4);
	one_node(&g, "MatMul", "x w", NULL);
	must_refuse(&g, NULL,
	            "m.onnx: node here (MatMul): m.onnx: initializer w has 4 bytes or elements, expected 1073741824");
	onnx_put_floats(&g, "x", SOME(1), 1);
	onnx_put_floats(&g, "x", SOME(1), 1);
	one_node(&g, "Relu", "x", NULL);
	must_refuse(&g, NULL, "m.onnx: two values are called x");
}

/* Sizes that would take all memory are refused before they are taken. */
static void test_large(void **state)
{
	(void)state;
	struct bytes g = { 0 }, a = { 0 };
	static const int64_t large[] = { 1 << 20, 1 << 20 }, huge[] = { INT64_MAX, 2 }, pads[] = { 0, 0, 0, 268000000 };

	onnx_put_ints(&g, "shape", large, 2);
	one_node(&g, "ConstantOfShape", "shape", NULL);
	onnx_put_node(&g, "sum", "ReduceSum", "y", "z", NULL);
	onnx_put_node(&g, "wide", "Expand", "x z", "w", NULL);
	must_refuse(&g, NULL,
	            "m.onnx: node wide (Expand): input 2, z, must be known when the graph is drawn, and it takes too "
	            "much memory to compute it");
	/* Indices that a reflection would need */
	onnx_put_ints(&g, "pads", pads, 4);
	attribute_of_text(&a, "mode", "reflect");
	one_node(&g, "Pad", "x pads", &a);
	must_refuse(&g, NULL,
	            "m.onnx: node here (Pad): pads of 0 and 268000000 to a dimension of 3, expected at most 16777216 "
	            "in all");
	onnx_put_ints(&g, "size", (const int64_t[]){ 1 << 25 }, 1);
	one_node(&g, "HannWindow", "size", NULL);
	must_refuse(&g, NULL, "m.onnx: node here (HannWindow): the size is 33554432");
	onnx_put_ints(&g, "shape", huge, 2);
	one_node(&g, "ConstantOfShape", "shape", NULL);
	must_refuse(&g, NULL,
	            "m.onnx: node here (ConstantOfShape): f32[9223372036854775807,2] has more than 2^46 bytes");
}

/* A file that is cut at any byte opens or is refused, in a sentence. */
static void test_cut(void **state)
{
	(void)state;
	struct bytes g = { 0 }, model = { 0 };
	unsigned refused = 0;

	put_doubling(&g, "n 4");
	onnx_put_model(&model, &g, 18);
	for (size_t n = 0; n < model.n; n++) {
		struct error err = { 0 };
		struct onnx_file *f = onnx_open_bytes("cut.onnx", model.p, n, NULL, &err);
		refused += !f;
		assert_true(f || strncmp(err.text, "cut.onnx: ", 10) == 0);
		onnx_close(f);
	}
	assert_int_equal(refused, model.n);
	bytes_free(&model);
}

/* Graphs in attributes of nodes of graphs: the decoder would take a stack frame for each. */
static void test_deep(void **state)
{
	(void)state;
	struct error err = { 0 };
	struct bytes g = { 0 }, model = { 0 };

	for (int i = 0; i < 1000; i++) {
		struct bytes a = { 0 }, outer = { 0 };
		attribute_graph(&a, "then_branch", &g);
		onnx_put_node(&outer, "", "If", "c", "y", &a);
		g = outer;
	}
	onnx_put_model(&model, &g, 18);
	assert_null(onnx_open_bytes("deep.onnx", model.p, model.n, NULL, &err));
	assert_string_equal(err.text, "deep.onnx: messages lie in messages more than 48 times");
	bytes_free(&model);
}

/* A layer that adds up its input: as many nodes for 5000 steps as for two. */
static void test_steps(void **state)
{
	(void)state;
	struct bytes g = { 0 }, a = { 0 };
	struct error err = { 0 };
	struct tensor_graph graph;
	uint32_t nodes[2];
	float x[5000];

	for (size_t i = 0; i < 5000; i++)
		x[i] = (float)(i % 3);
	onnx_put_value(&g, GRAPH_INPUT, "x", FLOAT, "n 1 1");
	onnx_put_tensor(&g, GRAPH_INITIALIZER, "w", FLOAT, (const int64_t[]){ 1, 1, 1 }, 3, (const float[]){ 1 }, 4);
	attribute_int(&a, "hidden_size", 1);
	attribute_words(&a, "activations", "Relu");
	onnx_put_node(&g, "sums", "RNN", "x w w", "all last", &a);
	onnx_put_value(&g, GRAPH_OUTPUT, "last", FLOAT, NULL);
	struct onnx_file *f = open_graph(&g);
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t n = i ? 5000 : 2;
		const struct onnx_sizes sizes = { &(struct graph_size){ "n", n }, 1, NULL, 0 };
		must_give(f, &sizes, x, SOME(i ? 4999 : 1), 1);
		assert_true(onnx_import(f, &sizes, &graph, NULL, &err));
		nodes[i] = graph.nodes;
		tensor_graph_free(&graph);
	}
	assert_int_equal(nodes[0], nodes[1]);
	onnx_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_about),      cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_values),     cmocka_unit_test(test_functions),
		cmocka_unit_test(test_external),   cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_large),      cmocka_unit_test(test_cut),
		cmocka_unit_test(test_deep),       cmocka_unit_test(check_trees),
		cmocka_unit_test(check_features),  cmocka_unit_test(check_roi_pool),
		cmocka_unit_test(check_roi_align), cmocka_unit_test(check_deform_conv),
		cmocka_unit_test(check_narrow),    cmocka_unit_test(test_steps)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
