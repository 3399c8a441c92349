/* runtime/graph/graph_made.c - of jitrun_graph.h: graphs made of graphs, which are derivatives and batches, and users'
 * kernels as operations. */
#include <stdlib.h>
#include <string.h>

#include "graph/transforms.h"
#include "graph/users.h"
#include "runtime/graph/graph_api.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

/* An empty graph with the sizes of another one. NULL: err. */
static jit_graph *begin(const jit_graph *from, struct error *err)
{
	jit_graph *g = calloc(1, sizeof *g);

	if (g)
		tensor_graph_init(&g->g);
	if (g && (g->sizes = malloc(sizeof *g->sizes))) {
		*g->sizes = *from->sizes;
		/* Names are in its own text. */
		for (size_t i = 0; i < g->sizes->n; i++)
			g->sizes->size[i].name = g->sizes->text + (from->sizes->size[i].name - from->sizes->text);
		return g;
	}
	free(g);
	error_set(err, ERROR_MEMORY, "no memory for a graph");
	return NULL;
}

static jit_graph *finish(jit_graph *g, const struct error *e, jit_error *err)
{
	model_report(err, e);
	if (e->code == ERROR_NONE)
		return g;
	jit_graph_close(g);
	return NULL;
}

typedef bool derive(struct tensor_graph *to, const struct tensor_graph *from, const tensor_value wrt[], uint32_t n,
                    bool with_outputs, struct error *err);

static bool derived(jit_graph *to, const jit_graph *from, const size_t *inputs, size_t n, bool with_outputs,
                    derive *function, struct error *err)
{
	const struct tensor_graph *g = &from->g;
	tensor_value *wrt = malloc((g->inputs + n + 1) * sizeof *wrt);
	uint32_t count = 0;
	bool ok = wrt || error_set(err, ERROR_MEMORY, "no memory for a graph");

	for (size_t i = 0; ok && i < n; i++) {
		if (inputs[i] >= g->inputs)
			ok = error_set(err, ERROR_ARGUMENT, "input %zu of a graph that has %u", inputs[i], g->inputs);
		else
			wrt[count++] = g->input[inputs[i]];
	}
	for (uint32_t i = 0; ok && n == 0 && i < g->inputs; i++)
		if (tensor_is_float(g->value[g->input[i]].type))
			wrt[count++] = g->input[i];
	ok = ok && function(&to->g, g, wrt, count, with_outputs, err);
	free(wrt);
	return ok;
}

jit_graph *jit_graph_vjp(const jit_graph *g, const size_t *inputs, size_t n, int with_outputs, jit_error *err)
{
	struct error e = { 0 };
	jit_graph *made = NEEDED(g, &e) && NEEDED_LIST(inputs, n, &e) ? begin(g, &e) : NULL;

	if (made)
		derived(made, g, inputs, n, with_outputs != 0, tensor_graph_vjp, &e);
	return finish(made, &e, err);
}

jit_graph *jit_graph_jvp(const jit_graph *g, const size_t *inputs, size_t n, int with_outputs, jit_error *err)
{
	struct error e = { 0 };
	jit_graph *made = NEEDED(g, &e) && NEEDED_LIST(inputs, n, &e) ? begin(g, &e) : NULL;

	if (made)
		derived(made, g, inputs, n, with_outputs != 0, tensor_graph_jvp, &e);
	return finish(made, &e, err);
}

jit_graph *jit_graph_vmap(const jit_graph *g, uint64_t size, const int *axes, size_t n, jit_error *err)
{
	struct error e = { 0 };
	jit_graph *made = NEEDED(g, &e) && NEEDED_LIST(axes, n, &e) ? begin(g, &e) : NULL;

	if (made && n != g->g.inputs)
		error_set(&e, ERROR_ARGUMENT, "%zu axes, expected one for each of the %u inputs", n, g->g.inputs);
	else if (made)
		tensor_graph_vmap(&made->g, &g->g, size, axes, &e);
	return finish(made, &e, err);
}

/* ---- users' kernels */

static void add_text(struct attribute *a, uint32_t *n, enum tensor_attribute name, const char *text, size_t bytes,
                     struct error *err)
{
	if (text && err->code == ERROR_NONE && attribute_make_text(&a[*n], name, text, bytes, err))
		++*n;
}

static tensor_value add_kernel(struct tensor_graph *g, const jit_kernel_options *o, const char *gradient,
                               const uint32_t *operands, size_t n, struct error *err)
{
	struct attribute a[4];
	uint32_t attributes = 0;
	tensor_value v = 0;
	size_t bytes = o->source && !o->n ? strlen(o->source) : o->n;
	char *file = o->source ? NULL : graph_read_file(o->path, &bytes, err);

	add_text(a, &attributes, ATTRIBUTE_source, o->source ? o->source : file, bytes, err);
	add_text(a, &attributes, ATTRIBUTE_kernel, o->kernel, o->kernel ? strlen(o->kernel) : 0, err);
	add_text(a, &attributes, ATTRIBUTE_constants, o->constants, o->constants ? strlen(o->constants) : 0, err);
	add_text(a, &attributes, ATTRIBUTE_gradient, gradient, gradient ? strlen(gradient) : 0, err);
	if (err->code == ERROR_NONE)
		v = tensor_graph_add(g, OP_kernel, operands, (uint32_t)n, a, attributes, err);
	while (attributes)
		free(a[--attributes].whole);
	free(file);
	return v;
}

int jit_graph_add_kernel(jit_graph *g, const jit_kernel_options *kernel, const char *gradient, const uint32_t *operands,
                         size_t n, uint32_t *value, jit_error *err)
{
	struct error e = { 0 };
	jit_kernel_options o = JIT_KERNEL_OPTIONS();
	tensor_value v = 0;

	if (NEEDED(g, &e) && NEEDED(kernel, &e) && NEEDED_LIST(operands, n, &e) && NEEDED(value, &e) &&
	    SIZED_READ(jit_kernel_options, &o, kernel, &e)) {
		if (!o.source && !o.path)
			error_set(&e, ERROR_ARGUMENT, "kernel has neither source nor path");
		else if (n > TENSOR_MAX_OPERANDS)
			error_set(&e, ERROR_ARGUMENT, "%zu operands, expected at most %d", n, TENSOR_MAX_OPERANDS);
		else if ((v = add_kernel(&g->g, &o, gradient, operands, n, &e)))
			*value = v;
	}
	return model_report(err, &e);
}
