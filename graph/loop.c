/* graph/loop.c - scan: types and shapes, meaning, and how it is drawn. See loop.h. */
#include "graph/loop.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval_rules.h"
#include "graph/infer.h"
#include "graph/text.h"
#include "graph/users.h"

static struct shape slice_of(const struct shape *s)
{
	struct shape slice = { .rank = s->rank - 1 };

	memcpy(slice.dim, s->dim + 1, slice.rank * sizeof *slice.dim);
	return slice;
}

/* ---- what a node says */

static bool find_numbers(struct loop *l, const struct tensor_node *n, const struct shape *const shape[],
                         struct error *err)
{
	const int64_t carried = tensor_node_whole(n, ATTRIBUTE_carried, 0, 0),
		      stacked = tensor_node_whole(n, ATTRIBUTE_stacked, 0, 0),
		      given = tensor_node_whole(n, ATTRIBUTE_length, 0, -1);
	const bool has_length = tensor_node_attribute(n, ATTRIBUTE_length) != NULL;

	if (carried < 0 || stacked < 0 || carried > n->operands || stacked > n->operands - carried)
		return error_set(err, ERROR_ARGUMENT,
		                 "scan of %u operands has %" PRId64 " carried and %" PRId64 " stacked ones",
		                 n->operands, carried, stacked);
	if (has_length ? given < 0 || (uint64_t)given > TENSOR_MAX_BYTES : stacked == 0)
		return error_set(err, ERROR_ARGUMENT,
		                 has_length ? "length of scan is %" PRId64 ", expected 0 to 2^46"
		                            : "scan without stacked operands lacks the attribute length",
		                 given);
	l->carried = (uint32_t)carried;
	l->stacked = (uint32_t)stacked;
	l->length = (uint64_t)given;
	l->reverse = tensor_node_whole(n, ATTRIBUTE_reverse, 0, 0) != 0;
	for (uint32_t i = l->carried; i < l->carried + l->stacked; i++) {
		if (!shape[i]->rank)
			return error_set(err, ERROR_ARGUMENT, "stacked operand %u of scan has no dimension", i + 1);
		if (!has_length && i == l->carried)
			l->length = shape[i]->dim[0];
		if (shape[i]->dim[0] != l->length)
			return error_set(err, ERROR_ARGUMENT,
			                 "stacked operand %u of scan has %" PRIu64 " slices, expected %" PRIu64, i + 1,
			                 shape[i]->dim[0], l->length);
	}
	return true;
}

bool loop_open(struct loop *l, const struct tensor_node *n, const struct shape *const shape[], struct error *err)
{
	const char *text = attribute_text(n, ATTRIBUTE_body);

	*l = (struct loop){ .carried = 0 };
	return find_numbers(l, n, shape, err) && graph_text_read(&l->body, "body", text, strlen(text), NULL, 0, err);
}

bool loop_of(struct loop *l, const struct tensor_graph *g, const struct tensor_node *n, struct error *err)
{
	const struct shape *shape[TENSOR_MAX_OPERANDS];

	for (uint32_t i = 0; i < n->operands; i++)
		shape[i] = &g->value[n->operand[i]].shape;
	return loop_open(l, n, shape, err);
}

void loop_close(struct loop *l) { tensor_graph_free(&l->body); }

/* ---- types and shapes */

static bool check_value(struct inference *x, const struct loop *l, tensor_value v, const char *what, uint32_t i)
{
	const struct tensor_value_info *found = &l->body.value[v];
	const bool slice = i >= l->carried && i < l->carried + l->stacked;
	const struct shape s = slice ? slice_of(x->shape[i]) : *x->shape[i];
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

	return (found->type == x->type[i] && shape_equal(&found->shape, &s)) ||
	       error_set(x->err, ERROR_ARGUMENT, "%s %u of the body of scan is %s, expected %s", what, i + 1,
	                 shape_text(found->type, &found->shape, a), shape_text(x->type[i], &s, b));
}

static bool check_body(struct inference *x, const struct loop *l)
{
	const struct tensor_graph *b = &l->body;

	if (b->inputs != x->n->operands)
		return error_set(x->err, ERROR_ARGUMENT, "the body of scan has %u inputs, expected %u", b->inputs,
		                 x->n->operands);
	if (b->outputs < l->carried || b->outputs > TENSOR_MAX_RESULTS)
		return error_set(x->err, ERROR_ARGUMENT, "the body of scan has %u outputs, expected %u to %d",
		                 b->outputs, l->carried, TENSOR_MAX_RESULTS);
	for (uint32_t i = 0; i < b->inputs; i++)
		if (!check_value(x, l, b->input[i], "input", i))
			return false;
	for (uint32_t i = 0; i < l->carried; i++)
		if (!check_value(x, l, b->output[i], "output", i))
			return false;
	return true;
}

bool infer_loop(struct inference *x)
{
	struct loop l;

	if (!loop_open(&l, x->n, x->shape, x->err))
		return false;
	bool ok = check_body(x, &l);
	for (uint32_t i = 0; ok && i < l.body.outputs; i++) {
		const struct tensor_value_info *v = &l.body.value[l.body.output[i]];
		struct shape s = v->shape;
		if (i >= l.carried && s.rank == TENSOR_MAX_RANK)
			ok = error_set(x->err, ERROR_ARGUMENT,
			               "output %u of the body of scan has %d dimensions already", i + 1,
			               TENSOR_MAX_RANK);
		else if (i >= l.carried) {
			memmove(s.dim + 1, s.dim, s.rank * sizeof *s.dim);
			s.dim[0] = l.length;
			s.rank++;
		}
		x->out->type[i] = v->type;
		x->out->shape[i] = s;
	}
	x->out->results = l.body.outputs;
	loop_close(&l);
	return ok;
}

/* ---- meaning */

/* An iteration: in[] is what the body is given, of which the carried values are replaced. */
static bool iteration(const struct loop *l, const struct evaluation *e, struct tensor *in, uint64_t index)
{
	const struct tensor *operand[TENSOR_MAX_OPERANDS];
	struct tensor out[TENSOR_MAX_RESULTS];

	for (uint32_t i = 0; i < l->body.inputs; i++) {
		operand[i] = &in[i];
		if (i >= l->carried && i < l->carried + l->stacked && tensor_bytes(&in[i]))
			memcpy(in[i].data, (const char *)e->in[i]->data + index * tensor_bytes(&in[i]),
			       (size_t)tensor_bytes(&in[i]));
	}
	if (!tensor_graph_eval(&l->body, operand, out, e->err))
		return false;
	for (uint32_t i = 0; i < l->body.outputs; i++) {
		const size_t bytes = (size_t)tensor_bytes(&out[i]);
		if (i < l->carried && bytes)
			memcpy(in[i].data, out[i].data, bytes);
		else if (bytes)
			memcpy((char *)e->out[i].data + index * bytes, out[i].data, bytes);
		tensor_free(&out[i]);
	}
	return true;
}

static bool run(const struct loop *l, const struct evaluation *e)
{
	struct tensor in[TENSOR_MAX_OPERANDS];
	uint32_t made = 0;
	bool ok = true;

	for (; ok && made < l->body.inputs; made += ok) {
		const struct tensor_value_info *v = &l->body.value[l->body.input[made]];
		ok = tensor_make(&in[made], v->type, &v->shape, e->err);
		const bool slice = made >= l->carried && made < l->carried + l->stacked;
		if (ok && !slice && tensor_bytes(&in[made]))
			memcpy(in[made].data, e->in[made]->data, (size_t)tensor_bytes(&in[made]));
	}
	for (uint64_t i = 0; ok && i < l->length; i++)
		ok = iteration(l, e, in, loop_index(l, i));
	for (uint32_t i = 0; ok && i < l->carried; i++)
		if (tensor_bytes(&in[i]))
			memcpy(e->out[i].data, in[i].data, (size_t)tensor_bytes(&in[i]));
	for (uint32_t i = 0; i < made; i++)
		tensor_free(&in[i]);
	return ok;
}

bool eval_loop(struct evaluation *e)
{
	const struct shape *shape[TENSOR_MAX_OPERANDS];
	struct loop l;

	for (uint32_t i = 0; i < e->n->operands; i++)
		shape[i] = &e->in[i]->shape;
	if (!loop_open(&l, e->n, shape, e->err))
		return false;
	const bool ok = run(&l, e);
	loop_close(&l);
	return ok;
}

/* ---- how it is drawn */

bool graph_inline(struct tensor_graph *to, const struct tensor_graph *from, const tensor_value in[], tensor_value out[],
                  struct error *err)
{
	tensor_value operand[TENSOR_MAX_OPERANDS], *is = calloc(from->values, sizeof *is);
	bool ok = is || error_set(err, ERROR_MEMORY, "there is no memory for a graph");

	for (uint32_t i = 0; ok && i < from->inputs; i++)
		is[from->input[i]] = in[i];
	for (uint32_t i = 0; ok && i < from->nodes; i++) {
		const struct tensor_node *n = &from->node[i];
		for (uint32_t k = 0; k < n->operands; k++)
			operand[k] = is[n->operand[k]];
		const tensor_value v =
			n->op == OP_constant
				? tensor_graph_constant(to, n->constant, err)
				: tensor_graph_add(to, n->op, operand, n->operands, n->attribute, n->attributes, err);
		for (uint32_t k = 0; v && k < n->results; k++)
			is[n->first + k] = v + k;
		ok = v != 0;
	}
	for (uint32_t i = 0; ok && i < from->outputs; i++)
		out[i] = is[from->output[i]];
	free(is);
	return ok;
}

tensor_value graph_scan(struct tensor_graph *g, const struct loop *l, const tensor_value operand[], uint32_t operands,
                        struct error *err)
{
	int64_t number[] = { l->carried, l->stacked, (int64_t)l->length, l->reverse };
	struct attribute a[5] = { { ATTRIBUTE_body, 0, NULL, 0 },
		                  { ATTRIBUTE_carried, 1, &number[0], 0 },
		                  { ATTRIBUTE_stacked, 1, &number[1], 0 },
		                  { ATTRIBUTE_length, 1, &number[2], 0 },
		                  { ATTRIBUTE_reverse, 1, &number[3], 0 } };
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	bool ok = f != NULL;
	tensor_value v = 0;

	if (f) {
		graph_text_write(&l->body, f, 0);
		ok = fclose(f) == 0 && text;
	}
	if (!ok)
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	else if (attribute_make_text(&a[0], ATTRIBUTE_body, text, bytes, err))
		v = tensor_graph_add(g, OP_scan, operand, operands, a, 5, err);
	free(a[0].whole);
	free(text);
	return v;
}
