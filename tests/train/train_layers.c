/* tests/train/train_layers.c - gradients of layers beside central differences: the same graph in float64, interpreted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/text.h"
#include "graph/transforms.h"
#include "tests/support/shared.h"
#include "tests/train/train_tests.h"
#include "train/layer.h"
#include "train/net.h"

enum { TOKENS = 7, DRAWS = 3 };

/* The graph with f64 in the place of f32, in bodies of loops, too. */
static void in_double(const struct tensor_graph *g, struct tensor_graph *to)
{
	struct error err = { 0 };
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	graph_text_write(g, f, UINT64_MAX);
	assert_int_equal(fclose(f), 0);
	for (char *at = text; (at = strstr(at, "f32"));)
		memcpy(at, "f64", 3);
	if (!graph_text_read(to, "layer", text, n, NULL, 0, &err))
		fail_msg("%s", err.text);
	free(text);
}

static double drawn(uint64_t tensor, uint64_t i) { return net_uniform(3, tensor, i); }

/* Weights of some size, angles that are some, and two texts. */
static void fill(struct tensor *x, const struct layer_input *in, uint32_t number)
{
	const uint64_t n = shape_elements(&(x)->shape);

	for (uint64_t i = 0; i < n; i++) {
		const double u = drawn(number, i), angle = drawn(99, i) * 3;
		if (in->kind == LAYER_SEGMENT)
			((int32_t *)x->data)[i] = i >= 4;
		else
			((double *)x->data)[i] =
				in->kind == LAYER_COS   ? cos(angle)
				: in->kind == LAYER_SIN ? sin(angle)
				: in->shape.rank > 1    ? u / 3
							: u * 0.8 + 0.3;
	}
}

/* The sum of the outputs, each element by a number of its own. */
static double value_of(const struct tensor_graph *g, const struct tensor *const in[])
{
	struct error err = { 0 };
	struct tensor out;
	double sum = 0;

	if (!tensor_graph_eval(g, in, &out, &err))
		fail_msg("%s", err.text);
	for (uint64_t i = 0; i < shape_elements(&(&out)->shape); i++)
		sum += ((const double *)out.data)[i] * drawn(77, i);
	tensor_free(&out);
	return sum;
}

static double greatest(const struct tensor *x)
{
	double max = 0;

	for (uint64_t i = 0; i < shape_elements(&(x)->shape); i++)
		max = fmax(max, fabs(((const double *)x->data)[i]));
	return max;
}

/* min: what is compared with at least, as a gradient may be 0: that of keys' biases is, where nothing rotates. */
static double compare(const struct tensor_graph *g, struct tensor *x, const struct tensor *gradient, double min,
                      const struct tensor *const in[], uint32_t number)
{
	const uint64_t n = shape_elements(&(x)->shape);
	const double scale = fmax(min, greatest(gradient));
	double worst = 0;

	for (unsigned k = 0; k < DRAWS; k++) {
		const uint64_t i = (uint64_t)((drawn(number + 500, k) + 1) / 2 * (double)n) % n;
		double *at = (double *)x->data + i;
		const double was = *at, step = 1e-5;
		*at = was + step;
		const double above = value_of(g, in);
		*at = was - step;
		const double below = value_of(g, in);
		*at = was;
		worst = fmax(worst, fabs((above - below) / (2 * step) - ((const double *)gradient->data)[i]) / scale);
	}
	return worst;
}

static void check_layer(const struct model *m, uint32_t layer, const char *name, const struct layer_adapters *a)
{
	struct layer_graph l;
	struct tensor_graph g, back;
	struct error err = { 0 };
	struct tensor in[LAYER_INPUTS_MAX + 1], out[LAYER_INPUTS_MAX];
	const struct tensor *at[LAYER_INPUTS_MAX + 1];
	tensor_value wrt[LAYER_INPUTS_MAX];
	uint32_t n = 0, which[LAYER_INPUTS_MAX];
	double worst = 0, all = 0;

	if (!layer_draw(&l, m, layer, TOKENS, a, &err))
		fail_msg("%s: %s", name, err.text);
	in_double(&l.g, &g);
	for (uint32_t i = 0; i < g.inputs; i++) {
		assert_true(tensor_make(&in[i], g.value[g.input[i]].type, &g.value[g.input[i]].shape, &err));
		fill(&in[i], &l.input[i], i);
		at[i] = &in[i];
		if (tensor_is_float(in[i].type) && l.input[i].kind != LAYER_COS && l.input[i].kind != LAYER_SIN) {
			which[n] = i;
			wrt[n++] = g.input[i];
		}
	}
	tensor_graph_init(&back);
	if (!tensor_graph_vjp(&back, &g, wrt, n, false, &err))
		fail_msg("%s: %s", name, err.text);
	struct tensor *ct = &in[g.inputs];
	assert_true(tensor_make(ct, JIT_TYPE_F64, &g.value[g.output[0]].shape, &err));
	for (uint64_t i = 0; i < shape_elements(&(ct)->shape); i++)
		((double *)ct->data)[i] = drawn(77, i);
	at[g.inputs] = ct;
	if (!tensor_graph_eval(&back, at, out, &err))
		fail_msg("%s: %s", name, err.text);
	for (uint32_t k = 0; k < n; k++)
		all = fmax(all, greatest(&out[k]));
	for (uint32_t k = 0; k < n; k++) {
		const double far = compare(&g, &in[which[k]], &out[k], all * 1e-4, at, which[k]);
		if (!(far < 1e-6))
			fail_msg("%s, layer %u: the gradient by %s is %g of the greatest from the difference", name,
			         layer, g.value[g.input[which[k]]].name, far);
		worst = fmax(worst, far);
		tensor_free(&out[k]);
	}
	printf("# %s, layer %u%s: %u gradients, at most %.1e from central differences\n", name, layer,
	       a ? " with adapters" : "", n, worst);
	for (uint32_t i = 0; i <= g.inputs; i++)
		tensor_free(&in[i]);
	tensor_graph_free(&g);
	tensor_graph_free(&back);
	layer_graph_free(&l);
}

/* Every tensor of a layer of each form: mixtures, sinks, windows, the delta rule, matrices in one tensor, norms. */
void test_differences(void **state)
{
	static const struct {
		const char *path;
		uint32_t layer;
	} layers[] = { { "golden/qwen35-a", 0 },        { "golden/qwen35-a", 3 },      { "golden/gptoss-a", 0 },
		       { "golden/mixtral-a", 1 },       { "golden/glm4moe-a", 1 },     { "golden/qwen2moe-a", 1 },
		       { "golden/qwen3next-a", 0 },     { "golden/phi3-a", 0 },        { "golden/gemma2-a", 0 },
		       { "golden/cohere2-a", 0 },       { "golden-next/mamba2-a", 0 }, { "golden-next/mamba-a", 1 },
		       { "golden-next/jamba-a", 0 },    { "golden-next/bamba-a", 0 },  { "golden-next/falconh1-a", 1 },
		       { "golden/granitehybrid-a", 0 }, { "golden/nemotronh-a", 0 },   { "golden-next/gpt2-a", 1 },
		       { "golden-next/gptneox-a", 0 } };
	(void)state;

	for (unsigned i = 0; i < sizeof layers / sizeof *layers; i++) {
		struct model m;
		struct error err = { 0 };
		char path[1024];
		if (!shared_path(path, layers[i].path))
			return;
		if (test_quick() && i > 0)
			continue;
		if (!train_model_open(&m, path, &err))
			fail_msg("%s", err.text);
		check_layer(&m, layers[i].layer, layers[i].path, NULL);
		model_close(&m);
	}
}
