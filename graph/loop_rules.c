/* graph/loop_rules.c - derivatives and batches of scan: loops whose bodies are derivatives and batches of its body.
 *
 * Forwards, the tangents of what is carried are carried, too. Backwards, a loop goes the other way. It is given what
 * was carried into each iteration, which the loop forwards has as stacked results, and carries the cotangents of what
 * is carried, and the sums of those of what is shared.
 */
#include <stdio.h>
#include <string.h>

#include "graph/loop.h"
#include "graph/transform_rules.h"

/* A scan that is being drawn: its body, and the operands in the order of the body's inputs. */
struct drawn {
	struct transform *t;
	const struct tensor_node *n;
	struct loop of, l;         /* of: the node's */
	struct tensor_graph moved; /* the body, transformed */
	tensor_value operand[TENSOR_MAX_OPERANDS], in[3 * TENSOR_MAX_OPERANDS], out[3 * TENSOR_MAX_RESULTS];
	uint32_t operands;
	bool ok;
};

static bool open_drawn(struct drawn *d, struct transform *t, const struct tensor_node *n)
{
	*d = (struct drawn){ .t = t, .n = n, .ok = true };
	tensor_graph_init(&d->moved);
	tensor_graph_init(&d->l.body);
	if (!loop_of(&d->of, t->from, n, t->err))
		return false;
	d->l.length = d->of.length;
	d->l.reverse = d->of.reverse;
	return true;
}

static void close_drawn(struct drawn *d)
{
	tensor_graph_free(&d->moved);
	loop_close(&d->l);
	loop_close(&d->of);
}

static bool is_float(const struct tensor_graph *g, tensor_value v) { return tensor_is_float(g->value[v].type); }

/* An input of the body in the type and shape of a value of `like`, which is given an operand. */
static tensor_value add_input(struct drawn *d, const struct tensor_graph *like, tensor_value v, tensor_value operand)
{
	char name[24];

	if (d->operands == TENSOR_MAX_OPERANDS)
		d->ok = transform_refuse(d->t, d->n, "of so many operands");
	if (!d->ok || !operand)
		return d->ok = false, 0;
	snprintf(name, sizeof name, "i%u", d->operands);
	d->operand[d->operands++] = operand;
	const tensor_value w =
		tensor_graph_input(&d->l.body, name, like->value[v].type, &like->value[v].shape, d->t->err);
	d->ok = w != 0;
	return w;
}

static void add_output(struct drawn *d, tensor_value v)
{
	char name[24];

	snprintf(name, sizeof name, "o%u", d->l.body.outputs);
	d->ok = d->ok && v && tensor_graph_output(&d->l.body, name, v, d->t->err);
}

static tensor_value put_drawn(struct drawn *d)
{
	return d->ok ? graph_scan(d->t->to, &d->l, d->operand, d->operands, d->t->err) : 0;
}

/* ---- forwards, with what each iteration is given of what is carried */

tensor_value loop_put_saving(struct transform *t, const struct tensor_node *n, const tensor_value operand[])
{
	struct loop l;
	tensor_value v = 0;
	char name[24];

	if (!loop_of(&l, t->from, n, t->err))
		return 0;
	bool ok = l.body.outputs + l.carried <= TENSOR_MAX_RESULTS || transform_refuse(t, n, "of so many results");
	for (uint32_t i = 0; ok && i < l.carried; i++) {
		snprintf(name, sizeof name, "saved%u", i);
		ok = tensor_graph_output(&l.body, name, l.body.input[i], t->err);
	}
	if (ok)
		v = graph_scan(t->to, &l, operand, n->operands, t->err);
	loop_close(&l);
	return v;
}

/* ---- vjp */

/* Whether the gradient by operand i is wanted of each iteration: all that is carried, as what is stacked flows into it.
 */
static bool is_wanted(const struct drawn *d, uint32_t i)
{
	return (i < d->of.carried || vjp_wants(d->t, d->n, i)) && is_float(&d->of.body, d->of.body.input[i]);
}

static bool derive_body(struct drawn *d)
{
	tensor_value wrt[TENSOR_MAX_OPERANDS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->of.body.inputs; i++)
		if (is_wanted(d, i))
			wrt[n++] = d->of.body.input[i];
	return tensor_graph_vjp(&d->moved, &d->of.body, wrt, n, false, d->t->err);
}

static tensor_value cotangent_of(const struct drawn *d, uint32_t result)
{
	const tensor_value v = d->n->first + result;
	const struct tensor_value_info *info = &d->t->from->value[v];

	return d->t->d[v] ? d->t->d[v] : put_zeros(d->t, info->type, &info->shape);
}

/* What the loop backwards carries. */
static void add_carried(struct drawn *d, tensor_value sum[])
{
	const struct loop *of = &d->of;
	uint32_t ct = of->body.inputs;

	for (uint32_t i = 0; d->ok && i < of->carried; i++)
		if (is_wanted(d, i)) {
			d->in[ct++] = add_input(d, &of->body, of->body.input[i], cotangent_of(d, i));
			d->l.carried++;
		}
	for (uint32_t i = of->carried + of->stacked; d->ok && i < of->body.inputs; i++)
		if (is_wanted(d, i)) {
			const struct tensor_value_info *info = info_of(d->t, d->n, i);
			sum[i] = add_input(d, &of->body, of->body.input[i], put_zeros(d->t, info->type, &info->shape));
			d->l.carried++;
		}
}

/* What it has a slice of, and what its iterations share. */
static void add_others(struct drawn *d)
{
	const struct loop *of = &d->of;
	const tensor_value saved = d->t->is[d->n->first] + d->n->results;
	uint32_t ct = of->body.inputs;

	for (uint32_t i = 0; i < of->carried; i++)
		ct += is_wanted(d, i);
	for (uint32_t i = 0; d->ok && i < of->carried; i++)
		d->in[i] = add_input(d, &of->body, of->body.input[i], saved + i);
	for (uint32_t i = of->carried; d->ok && i < of->carried + of->stacked; i++)
		d->in[i] = add_input(d, &of->body, of->body.input[i], operand_of(d->t, d->n, i));
	for (uint32_t i = of->carried; d->ok && i < of->body.outputs; i++)
		if (is_float(&of->body, of->body.output[i]))
			d->in[ct++] = add_input(d, &of->body, of->body.output[i], cotangent_of(d, i));
	d->l.stacked = d->operands - d->l.carried;
	for (uint32_t i = of->carried + of->stacked; d->ok && i < of->body.inputs; i++)
		d->in[i] = add_input(d, &of->body, of->body.input[i], operand_of(d->t, d->n, i));
}

/* out: the gradients of one iteration. Those of what is carried, the sums, and then the slices. */
static void add_gradients(struct drawn *d, const tensor_value sum[])
{
	tensor_value grad[TENSOR_MAX_OPERANDS] = { 0 };
	const uint32_t shared = d->of.carried + d->of.stacked;

	for (uint32_t i = 0, k = 0; i < d->of.body.inputs; i++)
		grad[i] = is_wanted(d, i) ? d->out[k++] : 0;
	for (uint32_t i = 0; i < d->of.carried; i++)
		if (grad[i])
			add_output(d, grad[i]);
	for (uint32_t i = shared; i < d->of.body.inputs; i++)
		if (grad[i])
			add_output(d, graph_binary(&d->l.body, OP_add, sum[i], grad[i], d->t->err));
	for (uint32_t i = d->of.carried; i < shared; i++)
		if (grad[i])
			add_output(d, grad[i]);
}

static bool give_gradients(struct drawn *d, tensor_value v)
{
	const uint32_t shared = d->of.carried + d->of.stacked;
	bool ok = v != 0;

	for (uint32_t i = 0; ok && i < d->of.carried; i++)
		if (is_wanted(d, i)) {
			ok = !vjp_wants(d->t, d->n, i) || vjp_give(d->t, d->n, i, v);
			v++;
		}
	for (uint32_t i = shared; ok && i < d->of.body.inputs; i++)
		if (is_wanted(d, i))
			ok = vjp_give(d->t, d->n, i, v++);
	for (uint32_t i = d->of.carried; ok && i < shared; i++)
		if (is_wanted(d, i))
			ok = vjp_give(d->t, d->n, i, v++);
	return ok;
}

bool vjp_scan(struct transform *t, const struct tensor_node *n)
{
	tensor_value sum[TENSOR_MAX_OPERANDS];
	struct drawn d;

	if (!open_drawn(&d, t, n))
		return false;
	d.l.reverse = !d.of.reverse;
	d.ok = derive_body(&d);
	add_carried(&d, sum);
	add_others(&d);
	d.ok = d.ok && graph_inline(&d.l.body, &d.moved, d.in, d.out, t->err);
	if (d.ok)
		add_gradients(&d, sum);
	const bool ok = give_gradients(&d, put_drawn(&d));
	close_drawn(&d);
	return ok;
}

/* ---- jvp */

/* Whether operand i moves. */
static bool moves(const struct drawn *d, uint32_t i)
{
	return (i < d->of.carried || d->t->d[d->n->operand[i]]) && is_float(&d->of.body, d->of.body.input[i]);
}

static tensor_value tangent_of(const struct drawn *d, uint32_t i)
{
	const tensor_value v = d->t->d[d->n->operand[i]];
	const struct tensor_value_info *info = info_of(d->t, d->n, i);

	return v ? v : put_zeros(d->t, info->type, &info->shape);
}

/* Operands from number `from` to `to`, and behind them their tangents. */
static void add_moving(struct drawn *d, uint32_t from, uint32_t to)
{
	const struct tensor_graph *b = &d->of.body;
	uint32_t tangent = b->inputs;

	for (uint32_t i = 0; i < from; i++)
		tangent += moves(d, i);
	for (uint32_t i = from; d->ok && i < to; i++)
		d->in[i] = add_input(d, b, b->input[i], operand_of(d->t, d->n, i));
	for (uint32_t i = from; d->ok && i < to; i++)
		if (moves(d, i))
			d->in[tangent++] = add_input(d, b, b->input[i], tangent_of(d, i));
}

/* Results from number `from` to `to`, and behind them how they move. */
static void add_moved(struct drawn *d, uint32_t from, uint32_t to)
{
	const struct tensor_graph *b = &d->of.body;
	uint32_t tangent = b->outputs;

	for (uint32_t i = 0; i < from; i++)
		tangent += is_float(b, b->output[i]);
	for (uint32_t i = from; i < to; i++)
		add_output(d, d->out[i]);
	for (uint32_t i = from; i < to; i++)
		if (is_float(b, b->output[i]))
			add_output(d, d->out[tangent++]);
}

/* The results of the loop that was drawn are those of the node, too: the one without tangents is not needed. */
static void take_moved(struct drawn *d, tensor_value *v, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		d->t->is[d->n->first + i] = (*v)++;
	for (uint32_t i = from; i < to; i++)
		if (is_float(&d->of.body, d->of.body.output[i]))
			d->t->d[d->n->first + i] = (*v)++;
}

bool jvp_scan(struct transform *t, const struct tensor_node *n)
{
	tensor_value wrt[TENSOR_MAX_OPERANDS], v = 0;
	struct drawn d;
	uint32_t count = 0;

	if (!open_drawn(&d, t, n))
		return false;
	const uint32_t carried = d.of.carried, shared = carried + d.of.stacked;
	for (uint32_t i = 0; i < d.of.body.inputs; i++)
		if (moves(&d, i))
			wrt[count++] = d.of.body.input[i];
	d.ok = tensor_graph_jvp(&d.moved, &d.of.body, wrt, count, true, t->err);
	add_moving(&d, 0, carried);
	d.l.carried = d.operands;
	add_moving(&d, carried, shared);
	d.l.stacked = d.operands - d.l.carried;
	add_moving(&d, shared, d.of.body.inputs);
	d.ok = d.ok && graph_inline(&d.l.body, &d.moved, d.in, d.out, t->err);
	if (d.ok) {
		add_moved(&d, 0, carried);
		add_moved(&d, carried, d.of.body.outputs);
		v = put_drawn(&d);
	}
	if (v) {
		tensor_value next = v;
		take_moved(&d, &next, 0, carried);
		take_moved(&d, &next, carried, d.of.body.outputs);
	}
	close_drawn(&d);
	return v != 0;
}

/* ---- vmap */

/* The first two dimensions in the other order: sets and iterations. */
static tensor_value put_transposed(struct transform *t, tensor_value v)
{
	unsigned order[TENSOR_MAX_RANK] = { 1, 0 };

	for (unsigned i = 2; i < TENSOR_MAX_RANK; i++)
		order[i] = i;
	return v ? graph_transpose(t->to, v, order, t->err) : 0;
}

bool vmap_scan(struct transform *t, const struct tensor_node *n)
{
	int axis[TENSOR_MAX_OPERANDS];
	struct drawn d;

	if (!open_drawn(&d, t, n))
		return false;
	const uint32_t carried = d.of.carried, shared = carried + d.of.stacked;
	for (uint32_t i = 0; i < n->operands; i++)
		axis[i] = i < carried || t->active[n->operand[i]] ? 0 : -1;
	d.ok = tensor_graph_vmap(&d.l.body, &d.of.body, t->size, axis, t->err);
	for (uint32_t i = 0; d.ok && i < n->operands; i++) {
		const bool active = t->active[n->operand[i]];
		tensor_value v = i < carried ? vmap_operand(t, n, i) : operand_of(t, n, i);
		if (i >= carried && i < shared && active)
			v = put_transposed(t, v);
		d.operand[d.operands++] = v;
		d.ok = v != 0;
	}
	d.l.carried = carried;
	d.l.stacked = d.of.stacked;
	const tensor_value v = put_drawn(&d);
	for (uint32_t i = 0; d.ok && v && i < n->results; i++) {
		const tensor_value w = i < carried ? v + i : put_transposed(t, v + i);
		t->is[n->first + i] = w;
		d.ok = w != 0;
	}
	const bool ok = d.ok && v;
	close_drawn(&d);
	return ok;
}
