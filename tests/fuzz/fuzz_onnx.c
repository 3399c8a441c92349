/* tests/fuzz/fuzz_onnx.c - arbitrary bytes as an ONNX file: what opens is imported for small sizes, and what is
 * imported and small is computed: shapes that were found are those of the results. */
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "loaders/onnx/onnx.h"
#include "tests/fuzz/fuzz.h"
#include "tests/graph/onnx_writer.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

enum { INPUTS = 8, OUTPUTS = 8, NODES = 64, ELEMENTS = 64 };

static bool is_small(const struct tensor_graph *g)
{
	if (g->nodes > NODES || g->inputs > INPUTS || g->outputs > OUTPUTS)
		return false;
	for (tensor_value v = 1; v < g->values; v++)
		if (shape_elements(&g->value[v].shape) > ELEMENTS)
			return false;
	return true;
}

static void compute(const struct tensor_graph *g)
{
	struct tensor in[INPUTS], out[OUTPUTS];
	const struct tensor *inputs[INPUTS];
	struct error err = { 0 };

	for (uint32_t i = 0; i < g->inputs; i++) {
		const struct tensor_value_info *v = tensor_value_of(g, g->input[i]);
		need(tensor_make(&in[i], v->type, &v->shape, &err));
		inputs[i] = &in[i];
	}
	need(tensor_graph_eval(g, inputs, out, &err));
	for (uint32_t i = 0; i < g->outputs; i++) {
		need(shape_equal(&out[i].shape, &tensor_value_of(g, g->output[i])->shape));
		tensor_free(&out[i]);
	}
	for (uint32_t i = 0; i < g->inputs; i++)
		tensor_free(&in[i]);
}

/* An input that a shape depends on becomes a constant: small numbers, of which some are 0. False: it is one already,
 * or too large. */
static bool give_value(const struct onnx_about *a, struct onnx_sizes *sizes, struct onnx_bind *bind, const char *name,
                       const struct graph_size *size)
{
	struct shape s = { 0 };
	struct error err = { 0 };
	uint32_t k = 0;
	size_t i = 0;

	while (k < a->inputs && strcmp(a->input[k].name, name) != 0)
		k++;
	if (k == a->inputs || a->input[k].type < 0)
		return false;
	s.rank = a->input[k].rank;
	for (unsigned d = 0; d < s.rank; d++)
		s.dim[d] = a->input[k].dim[d].is_fixed ? a->input[k].dim[d].size : size ? 3 : 0;
	while (i < sizes->binds && strcmp(bind[i].input, name) != 0)
		i++;
	if (i == INPUTS || (i < sizes->binds && bind[i].value) || !shape_fits(a->input[k].type, &s, &err) ||
	    shape_elements(&s) > ELEMENTS)
		return false;
	struct tensor *t = malloc(sizeof *t);
	need(t && tensor_make(t, a->input[k].type, &s, &err));
	for (uint64_t e = 0; e < shape_elements(&s); e++)
		tensor_put(t, e,
		           tensor_convert((union number){ .d = (double)(e % 5) }, JIT_TYPE_F64,
		                          tensor_wide_type(t->type)));
	bind[i] = (struct onnx_bind){ a->input[k].name, NULL, t };
	sizes->binds += i == sizes->binds;
	return true;
}

static void forget_value(const struct tensor *t)
{
	tensor_free((struct tensor *)(uintptr_t)t);
	free((struct tensor *)(uintptr_t)t);
}

static void import(struct onnx_file *f)
{
	const struct onnx_about *a = onnx_about(f);
	struct graph_size size[INPUTS * TENSOR_MAX_RANK];
	struct onnx_bind bind[INPUTS];
	struct onnx_sizes sizes = { .size = size, .bind = bind };
	const struct shape scalar = { 0 };
	struct onnx_refusal why;
	struct tensor_graph g;
	struct error err = { 0 };

	for (uint32_t i = 0; i < a->inputs && i < INPUTS; i++) {
		if (!a->input[i].has_shape)
			bind[sizes.binds++] = (struct onnx_bind){ a->input[i].name, &scalar, NULL };
		for (unsigned k = 0; k < a->input[i].rank; k++)
			if (a->input[i].dim[k].name)
				size[sizes.sizes++] = (struct graph_size){ a->input[i].dim[k].name, 3 };
	}
	bool ok = onnx_import(f, &sizes, &g, &why, &err);
	while (!ok && why.input && give_value(a, &sizes, bind, why.input, size)) {
		err = (struct error){ 0 };
		ok = onnx_import(f, &sizes, &g, &why, &err);
	}
	for (size_t i = 0; i < sizes.binds; i++)
		if (bind[i].value)
			forget_value(bind[i].value);
	if (!ok) {
		need(err.text[0] != 0);
		return;
	}
	need(g.outputs <= a->outputs);
	if (is_small(&g))
		compute(&g);
	tensor_graph_free(&g);
}

void fuzz_onnx(const uint8_t *p, size_t n)
{
	struct error err = { 0 };
	const char *key, *value;
	struct onnx_file *f = onnx_open_bytes("fuzz.onnx", p, n, NULL, &err);

	if (!f) {
		need(err.text[0] != 0);
		return;
	}
	for (uint32_t i = 0; i < onnx_about(f)->metadata; i++)
		onnx_metadata(f, i, &key, &value);
	import(f);
	onnx_close(f);
}

/* ---- seeds */

struct seeds {
	void (*take)(void *user, const uint8_t *p, size_t n);
	void *user;
};

static void give(const struct seeds *s, struct bytes *graph)
{
	struct bytes model = { 0 };

	onnx_put_model(&model, graph, 18);
	s->take(s->user, (const uint8_t *)model.p, model.n);
	bytes_free(&model);
}

/* One node with up to three inputs of 2 by 3, or of the given dimensions. */
static void give_node(const struct seeds *s, const char *op, const char *in, int type, const char *dims,
                      struct bytes *attributes)
{
	struct bytes g = { 0 };
	char name[2] = "a";
	static const int64_t ints[] = { 1, 0 };
	static const float floats[] = { 0.5F, -1, 2 };

	for (; strchr(in, name[0]) && name[0] < 'd'; name[0]++)
		onnx_put_value(&g, GRAPH_INPUT, name, type, dims);
	onnx_put_ints(&g, "i", ints, 2);
	onnx_put_ints(&g, "one", ints, 1);
	onnx_put_floats(&g, "f", floats, 3);
	onnx_put_node(&g, "n", op, in, "y", attributes);
	onnx_put_value(&g, GRAPH_OUTPUT, "y", type, NULL);
	give(s, &g);
}

static void give_operators(const struct seeds *s)
{
	static const struct {
		const char *op, *in, *dims;
	} nodes[] = {
		{ "Add", "a b", "2 n" },
		{ "MatMul", "a f", "2 3" },
		{ "Transpose", "a", "2 3 4" },
		{ "Reshape", "a i", "2 3" },
		{ "Slice", "a one i", "2 3" },
		{ "Gather", "a i", "2 3" },
		{ "ScatterND", "a i f", "2 3" },
		{ "Pad", "a i", "n" },
		{ "ReduceSum", "a one", "2 3" },
		{ "Softmax", "a", "2 3" },
		{ "NonMaxSuppression", "a b c", "1 3 4" },
		{ "MaxRoiPool", "a b", "1 2 3 5" },
		{ "STFT", "a one", "1 4 1" },
		{ "Det", "a", "2 3 3" },
		{ "Col2Im", "a i one", "1 4 3" },
		{ "DeformConv", "a b c", "1 1 3 3" },
		{ "TfIdfVectorizer", "i", "2" },
		{ "OptionalHasElement", "a", "2" },
		{ "TopK", "a one", "2 3" },
		{ "Conv", "a b", "1 2 4" },
		{ "Conv", "a b", "1 1 3 3" },
		{ "LSTM", "a b c", "1 2 4" },
		{ "Attention", "a b c", "1 1 2 3" },
		{ "LayerNormalization", "a f", "2 3" },
		{ "Expand", "a i", "2 3" },
		{ "Tile", "a i", "2 3" },
		{ "Range", "one one one", "1" },
		{ "ConstantOfShape", "i", "1" },
		{ "Concat", "a b", "2 3" },
		{ "Clip", "a", "2 3" },
		{ "Dropout", "a", "2 3" },
		{ "GatherElements", "a i", "2" }
	};

	for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
		struct bytes a = { 0 };
		if (strcmp(nodes[k].op, "Concat") == 0)
			attribute_int(&a, "axis", -1);
		give_node(s, nodes[k].op, nodes[k].in, 1, nodes[k].dims, &a);
	}
}

static void give_attributes(const struct seeds *s)
{
	static const int64_t two[] = { 2, 2 };
	struct bytes a = { 0 };

	attribute_ints(&a, "kernel_shape", two, 2);
	attribute_ints(&a, "strides", two, 2);
	attribute_int(&a, "ceil_mode", 1);
	give_node(s, "MaxPool", "a", 1, "1 1 5 5", &a);
	attribute_ints(&a, "kernel_shape", two, 2);
	attribute_of_text(&a, "auto_pad", "SAME_LOWER");
	give_node(s, "AveragePool", "a", 1, "1 2 3 5", &a);
	attribute_of_text(&a, "equation", "ij,jk->ik");
	give_node(s, "Einsum", "a b", 1, "3 3", &a);
	attribute_of_text(&a, "equation", "...ii->...i");
	give_node(s, "Einsum", "a", 1, "2 3 3", &a);
	attribute_of_text(&a, "mode", "reflect");
	give_node(s, "Pad", "a i", 1, "3", &a);
	attribute_int(&a, "to", 7);
	give_node(s, "Cast", "a", 1, "2", &a);
}

/* A branch in each of two ways, and a loop of three rounds. */
static void give_graphs(const struct seeds *s)
{
	struct bytes a = { 0 }, g = { 0 }, body = { 0 };
	static const int64_t three = 3;

	for (unsigned i = 0; i < 2; i++) {
		onnx_put_node(&body, "", i ? "Neg" : "Abs", "a", "z", NULL);
		onnx_put_value(&body, GRAPH_OUTPUT, "z", 1, "2");
		attribute_graph(&a, i ? "else_branch" : "then_branch", &body);
	}
	onnx_put_value(&g, GRAPH_INPUT, "a", 1, "2");
	onnx_put_value(&g, GRAPH_INPUT, "c", 9, "");
	onnx_put_node(&g, "branch", "If", "c", "y", &a);
	onnx_put_value(&g, GRAPH_OUTPUT, "y", 1, NULL);
	give(s, &g);

	onnx_put_value(&body, GRAPH_INPUT, "i", 7, "");
	onnx_put_value(&body, GRAPH_INPUT, "goes", 9, "");
	onnx_put_value(&body, GRAPH_INPUT, "x", 1, "2");
	onnx_put_node(&body, "", "Identity", "goes", "on", NULL);
	onnx_put_node(&body, "", "Add", "x x", "z", NULL);
	onnx_put_value(&body, GRAPH_OUTPUT, "on", 9, "");
	onnx_put_value(&body, GRAPH_OUTPUT, "z", 1, "2");
	onnx_put_value(&body, GRAPH_OUTPUT, "x", 1, "2");
	attribute_graph(&a, "body", &body);
	onnx_put_value(&g, GRAPH_INPUT, "a", 1, "2");
	onnx_put_ints(&g, "three", &three, 1);
	onnx_put_node(&g, "loop", "Loop", "three - a", "y all", &a);
	onnx_put_value(&g, GRAPH_OUTPUT, "y", 1, NULL);
	onnx_put_value(&g, GRAPH_OUTPUT, "all", 1, NULL);
	give(s, &g);
}

void fuzz_onnx_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	const struct seeds s = { take, user };

	give_operators(&s);
	give_attributes(&s);
	give_graphs(&s);
}
