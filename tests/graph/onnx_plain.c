/* tests/graph/onnx_plain.c - see onnx_plain.h. */
#include "tests/graph/onnx_plain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "loaders/onnx/onnx.h"
#include "tests/graph/onnx_writer.h"

enum { FLOAT = 1, UINT8 = 2, INT8 = 3, INT64 = 7, UINT4 = 21, INT4 = 22, E4M3FN = 17, UINT2 = 25 };

static uint64_t seed = 1;

unsigned plain_below(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((seed >> 33) % n);
}

static float number(void) { return (float)((int)plain_below(4001) - 2000) / 500; }

void plain_numbers(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = number();
}

/* Puts floats as an initializer of a shape. */
void plain_put(struct bytes *g, const char *name, const float *x, const int64_t *dim, unsigned rank)
{
	size_t n = 1;

	for (unsigned i = 0; i < rank; i++)
		n *= (size_t)dim[i];
	onnx_put_tensor(g, GRAPH_INITIALIZER, name, FLOAT, dim, rank, x, n * sizeof *x);
}

/* The only output of a graph without inputs; NULL: it is refused with that sentence somewhere. */
static void run(struct bytes *g, int64_t opset, struct tensor *out, const char *refused)
{
	struct bytes model = { 0 };
	struct tensor_graph graph;
	struct error err = { 0 };

	onnx_put_value(g, GRAPH_OUTPUT, "y", FLOAT, NULL);
	onnx_put_model(&model, g, opset);
	struct onnx_file *f = onnx_open_bytes("m.onnx", model.p, model.n, NULL, &err);
	if (!f)
		fail_msg("%s", err.text);
	const bool ok = onnx_import(f, NULL, &graph, NULL, &err);
	if (refused) {
		assert_false(ok);
		if (!strstr(err.text, refused))
			fail_msg("%s\nexpected: %s", err.text, refused);
	} else if (!ok || !tensor_graph_eval(&graph, NULL, out, &err)) {
		fail_msg("%s", err.text);
	}
	if (ok)
		tensor_graph_free(&graph);
	onnx_close(f);
	bytes_free(&model);
}

void plain_expect(struct bytes *g, int64_t opset, const double *want, size_t n, double bound, const char *what)
{
	struct tensor out;

	run(g, opset, &out, NULL);
	assert_int_equal(shape_elements(&out.shape), n);
	for (size_t i = 0; i < n; i++) {
		const double found = tensor_convert(tensor_get(&out, i), tensor_wide_type(out.type), JIT_TYPE_F64).d;
		if (!(fabs(found - want[i]) <= bound * (1 + fabs(want[i]))) && !(isnan(found) && isnan(want[i])))
			fail_msg("%s: element %zu is %.9g, expected %.9g", what, i, found, want[i]);
	}
	tensor_free(&out);
}

/* ---- trees */

enum { TREES = 3, NODES = 40, FEATURES = 4, ROWS = 9, TARGETS = 2 };
static const char *const modes[] = { "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ" };

struct trees {
	int64_t tree[TREES * NODES], node[TREES * NODES], feature[TREES * NODES], yes[TREES * NODES], no[TREES * NODES],
		track[TREES * NODES], target[TREES * NODES], leaf[TREES * NODES], leaf_tree[TREES * NODES];
	float split[TREES * NODES], weight[TREES * NODES];
	int mode[TREES * NODES]; /* -1: a leaf */
	unsigned n, leaves;
};

/* A tree's nodes from `at` down, in an order of their own; returns the node's number. */
static int64_t grow(struct trees *t, int64_t tree, int64_t *next, unsigned depth)
{
	const unsigned i = t->n++;
	const int64_t own = (*next)++;

	t->tree[i] = tree;
	t->node[i] = own * 3 + 1;
	t->track[i] = plain_below(2);
	t->feature[i] = t->yes[i] = t->no[i] = 0;
	t->split[i] = (float)((int)plain_below(9) - 4) / 2;
	t->mode[i] = depth == 0 || (depth < 4 && plain_below(4) == 0) ? -1 : (int)plain_below(6);
	if (t->mode[i] >= 0) {
		t->feature[i] = plain_below(FEATURES);
		t->yes[i] = grow(t, tree, next, depth - 1);
		t->no[i] = grow(t, tree, next, depth - 1);
	} else {
		t->leaf_tree[t->leaves] = tree;
		t->leaf[t->leaves] = t->node[i];
		t->target[t->leaves] = plain_below(TARGETS);
		t->weight[t->leaves++] = number();
	}
	return t->node[i];
}

static unsigned find_node(const struct trees *t, int64_t tree, int64_t node)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->tree[i] == tree && t->node[i] == node)
			return i;
	fail_msg("no node %d", (int)node);
	return 0;
}

static bool goes_first(const struct trees *t, unsigned i, float x)
{
	if (isnan(x) && t->track[i])
		return true;
	switch (t->mode[i]) {
	case 0: return x <= t->split[i];
	case 1: return x < t->split[i];
	case 2: return x >= t->split[i];
	case 3: return x > t->split[i];
	case 4: return x == t->split[i];
	default: return x != t->split[i];
	}
}

static void walk(const struct trees *t, const float *x, const int64_t *root, double *y)
{
	for (int k = 0; k < TREES; k++) {
		unsigned i = find_node(t, k * 5, root[k]);
		while (t->mode[i] >= 0)
			i = find_node(t, k * 5, goes_first(t, i, x[t->feature[i]]) ? t->yes[i] : t->no[i]);
		for (unsigned l = 0; l < t->leaves; l++)
			if (t->leaf_tree[l] == k * 5 && t->leaf[l] == t->node[i])
				y[t->target[l]] += (double)t->weight[l];
	}
}

static void put_trees(struct bytes *a, const struct trees *t, const char *aggregate)
{
	char words[TREES * NODES * 12] = "";

	for (unsigned i = 0; i < t->n; i++) {
		strcat(words, i ? " " : "");
		strcat(words, t->mode[i] < 0 ? "LEAF" : modes[t->mode[i]]);
	}
	attribute_int(a, "n_targets", TARGETS);
	attribute_of_text(a, "aggregate_function", aggregate);
	attribute_ints(a, "nodes_treeids", t->tree, t->n);
	attribute_ints(a, "nodes_nodeids", t->node, t->n);
	attribute_ints(a, "nodes_featureids", t->feature, t->n);
	attribute_ints(a, "nodes_truenodeids", t->yes, t->n);
	attribute_ints(a, "nodes_falsenodeids", t->no, t->n);
	attribute_ints(a, "nodes_missing_value_tracks_true", t->track, t->n);
	attribute_words(a, "nodes_modes", words);
	attribute_floats(a, "nodes_values", t->split, t->n);
	attribute_ints(a, "target_treeids", t->leaf_tree, t->leaves);
	attribute_ints(a, "target_nodeids", t->leaf, t->leaves);
	attribute_ints(a, "target_ids", t->target, t->leaves);
	attribute_floats(a, "target_weights", t->weight, t->leaves);
	attribute_floats(a, "base_values", FLOATS(0.5F, -1), TARGETS);
}

static void check_ensemble(bool averages)
{
	static struct trees t;
	struct bytes g = { 0 }, a = { 0 };
	float x[ROWS * FEATURES];
	double y[ROWS * TARGETS];
	int64_t root[TREES];

	memset(&t, 0, sizeof t);
	for (int k = 0; k < TREES; k++) {
		int64_t next = 0;
		root[k] = grow(&t, k * 5, &next, 4);
	}
	for (size_t i = 0; i < ROWS * FEATURES; i++)
		x[i] = plain_below(12) ? (float)((int)plain_below(9) - 4) / 2 : NAN;
	for (size_t r = 0; r < ROWS; r++) {
		double sum[TARGETS] = { 0 };
		walk(&t, x + r * FEATURES, root, sum);
		for (size_t k = 0; k < TARGETS; k++)
			y[r * TARGETS + k] = sum[k] / (averages ? TREES : 1) + (k ? -1 : 0.5);
	}
	plain_put(&g, "x", x, INTS(ROWS, FEATURES), 2);
	put_trees(&a, &t, averages ? "AVERAGE" : "SUM");
	onnx_put_node_of(&g, "ai.onnx.ml", "n", "TreeEnsembleRegressor", "x", "y", &a);
	plain_expect(&g, 18, y, ROWS * TARGETS, 1e-6, "trees");
}

/* A tree that has no end, and a child that is not there. */
static void refuse_tree(const int64_t *yes, const char *expected)
{
	struct bytes g = { 0 }, a = { 0 };

	plain_put(&g, "x", FLOATS(1, 2), INTS(1, 2), 2);
	attribute_ints(&a, "nodes_treeids", INTS(0, 0, 0), 3);
	attribute_ints(&a, "nodes_nodeids", INTS(0, 1, 2), 3);
	attribute_ints(&a, "nodes_featureids", INTS(0, 1, 0), 3);
	attribute_ints(&a, "nodes_truenodeids", yes, 3);
	attribute_ints(&a, "nodes_falsenodeids", INTS(2, 2, 2), 3);
	attribute_words(&a, "nodes_modes", "BRANCH_LEQ BRANCH_LEQ LEAF");
	attribute_floats(&a, "nodes_values", FLOATS(0, 0, 0), 3);
	attribute_ints(&a, "target_treeids", INTS(0), 1);
	attribute_ints(&a, "target_nodeids", INTS(2), 1);
	attribute_ints(&a, "target_ids", INTS(0), 1);
	attribute_floats(&a, "target_weights", FLOATS(1), 1);
	onnx_put_node_of(&g, "ai.onnx.ml", "n", "TreeEnsembleRegressor", "x", "y", &a);
	run(&g, 18, NULL, expected);
}

void check_trees(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++)
		check_ensemble(i % 2);
	refuse_tree(INTS(1, 1, 0), "a tree has more than 256 levels, or no end");
	refuse_tree(INTS(1, 0, 0), "0 nodes have no parent, and there are 1 trees");
	refuse_tree(INTS(1, 7, 0), "tree 0 has no node 7");
}

/* ---- features */

static void one(const char *op, struct bytes *a, const float *x, const int64_t *dim, const double *want, size_t n)
{
	struct bytes g = { 0 };

	plain_put(&g, "x", x, dim, 2);
	onnx_put_node_of(&g, "ai.onnx.ml", "n", op, "x", "y", a);
	plain_expect(&g, 18, want, n, 1e-6, op);
}

void check_features(void **state)
{
	static const float x[] = { 1, -2, 2, 0, 0, 0 };
	struct bytes a = { 0 }, g = { 0 };
	(void)state;

	attribute_floats(&a, "offset", FLOATS(1, 0, 2), 3);
	attribute_floats(&a, "scale", FLOATS(2), 1);
	one("Scaler", &a, x, INTS(2, 3), (const double[]){ 0, -4, 0, -2, 0, -4 }, 6);
	attribute_of_text(&a, "norm", "L1");
	one("Normalizer", &a, x, INTS(2, 3), (const double[]){ 0.2, -0.4, 0.4, 0, 0, 0 }, 6);
	attribute_of_text(&a, "norm", "L2");
	one("Normalizer", &a, x, INTS(2, 3), (const double[]){ 1.0 / 3, -2.0 / 3, 2.0 / 3, 0, 0, 0 }, 6);
	one("Normalizer", &a, x, INTS(2, 3), (const double[]){ 0.5, -1, 1, 0, 0, 0 }, 6);
	attribute_int(&a, "targets", 2);
	attribute_floats(&a, "coefficients", FLOATS(1, 2, 3, -1, 0, 1), 6);
	attribute_floats(&a, "intercepts", FLOATS(0.5F, -1), 2);
	one("LinearRegressor", &a, x, INTS(2, 3), (const double[]){ 3.5, 0, 0.5, -1 }, 4);
	attribute_floats(&a, "coefficients", FLOATS(1, 0, 0), 3);
	attribute_of_text(&a, "post_transform", "LOGISTIC");
	one("LinearRegressor", &a, x, INTS(2, 3), (const double[]){ 1 / (1 + exp(-1)), 0.5 }, 2);
	attribute_floats(&a, "keys_floats", FLOATS(1, -2, NAN), 3);
	attribute_ints(&a, "values_int64s", INTS(7, 8, 9), 3);
	attribute_int(&a, "default_int64", -5);
	one("LabelEncoder", &a, FLOATS(1, NAN, -2, 3), INTS(2, 2), (const double[]){ 7, 9, 8, -5 }, 4);
	plain_put(&g, "x", x, INTS(2, 3), 2);
	onnx_put_node_of(&g, "ai.onnx.ml", "n", "ZipMap", "x", "y", NULL);
	run(&g, 18, NULL, "the operator of ai.onnx.ml is not imported");
}

/* ---- integers of 4 and 2 bits, floats of 8 */

void check_narrow(void **state)
{
	static const uint8_t four[] = { 0x21, 0xf8, 0x07 }, two[] = { 0xe4, 0x02 },
			     eight[] = { 0x38, 0xb8, 0x7e, 1, 0x7f };
	struct bytes g = { 0 };
	(void)state;

	/* 1 2 -8 -1 7, less their zero point of -1, times 0.5 */
	onnx_put_tensor(&g, GRAPH_INITIALIZER, "x", INT4, INTS(5), 1, four, 3);
	onnx_put_tensor(&g, GRAPH_INITIALIZER, "z", INT4, NULL, 0, (const uint8_t[]){ 0x0f }, 1);
	plain_put(&g, "s", FLOATS(0.5F), NULL, 0);
	onnx_put_node(&g, "n", "DequantizeLinear", "x s z", "y", NULL);
	plain_expect(&g, 23, (const double[]){ 1, 1.5, -3.5, 0, 4 }, 5, 0, "int4");
	/* Rows of them keep their type when they are turned, and so does what is like them. */
	onnx_put_tensor(&g, GRAPH_INITIALIZER, "t", UINT2, INTS(5, 1), 2, two, 2);
	onnx_put_node(&g, "n", "Transpose", "t", "u", NULL);
	plain_put(&g, "x", FLOATS(1, 5, -1, 3.7F), INTS(4), 1);
	onnx_put_node(&g, "m", "CastLike", "x u", "y", NULL);
	plain_expect(&g, 23, (const double[]){ 1, 1, 3, 3 }, 4, 0, "uint2");
	onnx_put_tensor(&g, GRAPH_INITIALIZER, "x", E4M3FN, INTS(5), 1, eight, 5);
	onnx_put_node(&g, "n", "Identity", "x", "y", NULL);
	plain_expect(&g, 23, (const double[]){ 1, -1, 448, 0x1p-9, NAN }, 5, 0, "float8e4m3fn");
	onnx_put_tensor(&g, GRAPH_INITIALIZER, "x", UINT4, INTS(5), 1, four, 2);
	onnx_put_node(&g, "n", "Identity", "x", "y", NULL);
	run(&g, 23, NULL, "initializer x has 2 bytes, expected 3");
}
