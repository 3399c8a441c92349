/* loaders/onnx/op_iterate.c - Loop and Scan as one loop of the graph, where all iterations are alike.
 *
 * The body is drawn once, into a graph of its own. What it names of the graphs around it becomes an operand of the
 * loop; small values that are known are constants there, as shapes may depend on them. Where that fails, say because a
 * shape changes from iteration to iteration, the caller draws the body as often as it runs.
 */
#include <stdio.h>
#include <string.h>

#include "graph/loop.h"
#include "loaders/onnx/operators.h"

enum { CONSTANT_MAX = 64 }; /* elements of what is made a constant of the body */

struct import_body {
	tensor_value operand[TENSOR_MAX_OPERANDS]; /* of the graph around */
	tensor_value input[TENSOR_MAX_OPERANDS];   /* of the body */
	uint32_t n, own;                           /* the first `own` are no captures */
};

static tensor_value add_input(struct import *im, tensor_value operand, bool slice, struct error *err)
{
	struct import_body *b = im->body;
	const struct tensor_value_info *v = &im->outer->g->value[operand];
	struct shape s = v->shape;
	char name[16];

	if (b->n == TENSOR_MAX_OPERANDS) {
		error_set(err, ERROR_UNSUPPORTED, "a loop has more than %d operands", TENSOR_MAX_OPERANDS);
		return 0;
	}
	if (slice)
		memmove(s.dim, s.dim + 1, --s.rank * sizeof *s.dim);
	snprintf(name, sizeof name, "i%u", b->n);
	const tensor_value in = tensor_graph_input(im->g, name, v->type, &s, err);
	if (in) {
		b->operand[b->n] = operand;
		b->input[b->n++] = in;
	}
	return in;
}

tensor_value import_capture(struct import *im, const struct import *owner, tensor_value v, struct error *err)
{
	const struct import_body *b = im->body;

	if (!v || im == owner)
		return v;
	if (im->outer != owner && !(v = import_capture(im->outer, owner, v, err)))
		return 0;
	if (shape_elements(&im->outer->g->value[v].shape) <= CONSTANT_MAX && import_is_known(im->outer, v))
		return tensor_graph_constant(im->g, import_known(im->outer, v, err), err);
	for (uint32_t i = b->own; i < b->n; i++)
		if (b->operand[i] == v)
			return b->input[i];
	return add_input(im, v, false, err);
}

/* Whether the body always goes on: its first output is a condition. */
static bool goes_on(struct op *o, tensor_value condition)
{
	const struct tensor *t = import_known(o->im, condition, o->err);

	return t && ((shape_elements(&t->shape) == 1 && number_of(t, 0) != 0) ||
	             error_set(o->err, ERROR_UNSUPPORTED, "the condition of a loop changes"));
}

/* The body's inputs are drawn: carried values, then slices. */
static bool draw_body(struct op *o, const struct iteration *x, struct loop *l)
{
	const uint32_t front = x->counts ? 2 : 0, back = x->counts ? 1 : 0;
	const uint32_t n_in = front + x->n_carried + x->n_stacked, n_out = back + x->n_carried + x->n_results;
	const struct import_body *b = o->im->body;
	tensor_value in[TENSOR_MAX_OPERANDS + 2], out[TENSOR_MAX_RESULTS + 1];

	if (n_out > TENSOR_MAX_RESULTS)
		return error_set(o->err, ERROR_UNSUPPORTED, "a loop has more than %d results", TENSOR_MAX_RESULTS);
	for (uint32_t i = 0; i < b->n - back; i++)
		in[front + i] = b->input[back + i];
	if (x->counts) {
		in[0] = b->input[0];
		in[1] = draw_scalar(&o->d, 1, JIT_TYPE_BOOL);
	}
	if (op_failed(o) || !import_subgraph(o, x->body, in, n_in, out, n_out) || (x->counts && !goes_on(o, out[0])))
		return false;
	if (x->counts)
		out[0] = draw_with(&o->d, OP_add, in[0], 1);
	for (uint32_t i = 0; i < n_out && !op_failed(o); i++) {
		char name[16];
		snprintf(name, sizeof name, "o%u", i);
		tensor_graph_output(&l->body, name, out[i], o->err);
	}
	return !op_failed(o);
}

static bool add_inputs(struct op *o, const struct iteration *x, tensor_value count)
{
	bool ok = !x->counts || add_input(o->im, count, false, o->err);

	for (uint32_t i = 0; ok && i < x->n_carried; i++)
		ok = add_input(o->im, x->carried[i], false, o->err) != 0;
	for (uint32_t i = 0; ok && i < x->n_stacked; i++)
		ok = add_input(o->im, x->stacked[i], true, o->err) != 0;
	o->im->body->own = o->im->body->n;
	return ok;
}

bool op_iterate(struct op *o, const struct iteration *x, tensor_value *out)
{
	const int64_t none = 0;
	const uint32_t back = x->counts ? 1 : 0;
	const tensor_value count = x->counts ? op_constant_shaped(o, &none, &(struct shape){ 0 }) : 0;
	struct loop l = { .carried = back + x->n_carried, .stacked = x->n_stacked, .length = x->length };
	struct import_body body = { .n = 0 };
	struct error err = { 0 };
	struct import im = { .file = o->im->file,
		             .g = &l.body,
		             .sizes = o->im->sizes,
		             .known.work = o->im->known.work,
		             .nodes = o->im->nodes,
		             .depth = o->im->depth,
		             .outer = o->im,
		             .body = &body };
	struct op inner = *o;
	tensor_value v = 0;

	tensor_graph_init(&l.body);
	inner.d = (struct draw){ &l.body, &err };
	inner.err = &err;
	inner.im = &im;
	if (!op_failed(o) && add_inputs(&inner, x, count) && draw_body(&inner, x, &l))
		v = graph_scan(o->im->g, &l, body.operand, body.n, &err);
	o->im->nodes = im.nodes;
	o->im->known.work = im.known.work;
	import_forget(&im);
	tensor_graph_free(&l.body);
	for (uint32_t i = 0; v && i < x->n_carried + x->n_results; i++)
		out[i] = v + back + i;
	return v != 0;
}
