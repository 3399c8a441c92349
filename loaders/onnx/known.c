/* loaders/onnx/known.c - values that depend on no input, computed while a graph is drawn, each once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/loop.h"
#include "loaders/onnx/import.h"

#define MAX_BYTES (UINT64_C(1) << 30)

static bool make_room(struct import *im, struct error *err)
{
	struct known *k = &im->known;

	if (k->values >= im->g->values)
		return true;
	struct tensor **p = realloc(k->value, im->g->values * sizeof(struct tensor *) * 2);
	if (!p)
		return error_set(err, ERROR_MEMORY, "there is no memory");
	memset(p + k->values, 0, (im->g->values * 2 - k->values) * sizeof(struct tensor *));
	k->value = p;
	k->values = im->g->values * 2;
	return true;
}

enum { STEPS_OF_NODE = 64 }; /* beside its elements, in a loop */

static uint64_t work_of(const struct tensor_graph *g, const struct tensor_node *n);

/* All iterations: the nodes of the body, and what each is given. */
static uint64_t work_of_loop(const struct tensor_graph *g, const struct tensor_node *n)
{
	struct error err = { 0 };
	struct loop l;
	uint64_t each = 1;

	if (!loop_of(&l, g, n, &err))
		return IMPORT_MAX_WORK + 1;
	for (uint32_t i = 0; i < l.body.inputs && each <= IMPORT_MAX_WORK; i++)
		each += shape_elements(&l.body.value[l.body.input[i]].shape);
	for (uint32_t i = 0; i < l.body.nodes && each <= IMPORT_MAX_WORK; i++)
		each += STEPS_OF_NODE + work_of(&l.body, &l.body.node[i]);
	const bool fits = each <= IMPORT_MAX_WORK && l.length <= IMPORT_MAX_WORK / each;
	const uint64_t work = fits ? each * l.length : IMPORT_MAX_WORK + 1;
	loop_close(&l);
	return work;
}

/* How many steps a node takes: no less than the elements that it reads and writes. */
static uint64_t work_of(const struct tensor_graph *g, const struct tensor_node *n)
{
	uint64_t out = 0, in = 0, each = 1;

	if (n->op == OP_scan)
		return work_of_loop(g, n);
	for (uint32_t i = 0; i < n->results; i++)
		out += shape_elements(&g->value[n->first + i].shape);
	for (uint32_t i = 0; i < n->operands; i++)
		in += shape_elements(&g->value[n->operand[i]].shape);
	if (n->op == OP_conv || n->op == OP_window_max || n->op == OP_window_sum)
		each = n->op == OP_conv ? shape_elements(&g->value[n->operand[1]].shape) : 64;
	if (n->op == OP_dot)
		each = shape_elements(&g->value[n->operand[0]].shape);
	return in > IMPORT_MAX_WORK || out > IMPORT_MAX_WORK || each > IMPORT_MAX_WORK
	               ? IMPORT_MAX_WORK + 1
	               : in + out * each;
}

static void keep(struct known *k, tensor_value v, const struct tensor *t)
{
	k->value[v] = malloc(sizeof **k->value);
	if (k->value[v])
		*k->value[v] = *t;
	else
		tensor_free((struct tensor *)(uintptr_t)t);
}

static bool compute(struct import *im, const struct tensor_node *n, struct error *err)
{
	const struct tensor *in[TENSOR_MAX_OPERANDS];
	struct tensor out[TENSOR_MAX_RESULTS];
	const uint64_t work = work_of(im->g, n);
	struct known *k = &im->known;

	for (uint32_t i = 0; i < n->results; i++) {
		const struct tensor_value_info *v = &im->g->value[n->first + i];
		if (shape_elements(&v->shape) * tensor_type_bytes(v->type) > MAX_BYTES)
			return error_set(err, ERROR_UNSUPPORTED, "it takes too much memory to compute it");
	}
	if (work > k->work)
		return error_set(err, ERROR_UNSUPPORTED, "it takes too long to compute it");
	k->work -= work;
	for (uint32_t i = 0; i < n->operands; i++)
		in[i] = k->value[n->operand[i]];
	if (!tensor_node_eval(im->g, n, in, out, err))
		return false;
	for (uint32_t i = 0; i < n->results; i++)
		keep(k, n->first + i, &out[i]);
	return k->value[n->first] || error_set(err, ERROR_MEMORY, "there is no memory");
}

/* The input of the graph that a node's operand is; 0: none is one. */
static tensor_value outside(const struct tensor_graph *g, const struct tensor_node *n)
{
	for (uint32_t i = 0; i < n->operands; i++)
		if (g->value[n->operand[i]].node == (uint32_t)VALUE_OUTSIDE)
			return n->operand[i];
	return 0;
}

static bool depends(struct import *im, tensor_value input, struct error *err)
{
	const char *name = im->g->value[input].name;
	const struct onnx_about *a = &im->file->about;

	for (uint32_t i = 0; im->why && i < a->inputs; i++)
		if (name && strcmp(a->input[i].name, name) == 0)
			im->why->input = a->input[i].name;
	return error_set(err, ERROR_UNSUPPORTED, "depends on the graph's input %s", name ? name : "without a name");
}

static bool is_there(const struct known *k, const struct tensor_node *n)
{
	for (uint32_t i = 0; i < n->operands; i++)
		if (!k->value[n->operand[i]])
			return false;
	return true;
}

/* Walks up from a value, and computes nodes when their operands are there. stack: of nodes that are not computed yet.
 */
static bool walk(struct import *im, uint32_t *stack, size_t room, struct error *err)
{
	struct known *k = &im->known;
	size_t n = 1;

	while (n) {
		const struct tensor_node *node = &im->g->node[stack[n - 1]];
		const tensor_value input = outside(im->g, node);
		if (input)
			return depends(im, input, err);
		if (k->value[node->first] || is_there(k, node)) {
			if (!k->value[node->first] && !compute(im, node, err))
				return false;
			n--;
			continue;
		}
		for (uint32_t i = 0; i < node->operands && n < room; i++)
			if (!k->value[node->operand[i]]) {
				stack[n++] = im->g->value[node->operand[i]].node;
				break;
			}
	}
	return true;
}

const struct tensor *import_known(struct import *im, tensor_value v, struct error *err)
{
	if (!make_room(im, err))
		return NULL;
	if (im->known.value[v])
		return im->known.value[v];
	if (im->g->value[v].node == (uint32_t)VALUE_OUTSIDE) {
		depends(im, v, err);
		return NULL;
	}
	uint32_t *stack = malloc((im->g->nodes + (size_t)2) * sizeof *stack);
	if (!stack) {
		error_set(err, ERROR_MEMORY, "there is no memory");
		return NULL;
	}
	stack[0] = im->g->value[v].node;
	const bool ok = walk(im, stack, im->g->nodes + (size_t)1, err);
	free(stack);
	return ok ? im->known.value[v] : NULL;
}

bool import_is_known(struct import *im, tensor_value v)
{
	struct onnx_refusal *why = im->why;
	struct error err = { 0 };

	im->why = NULL;
	const bool known = v && import_known(im, v, &err);
	im->why = why;
	return known;
}

void import_forget(struct import *im)
{
	struct known *k = &im->known;

	for (uint32_t v = 0; v < k->values; v++)
		if (k->value[v]) {
			tensor_free(k->value[v]);
			free(k->value[v]);
		}
	free(k->value);
}
