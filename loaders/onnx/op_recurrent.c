/* loaders/onnx/op_recurrent.c - RNN, GRU and LSTM layers, drawn as loops over their steps. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/loop.h"
#include "loaders/onnx/operators.h"

/* A layer in one direction. Values have time first: x [time,batch,in]. */
struct layer {
	struct draw_cell cell;
	unsigned gates;
	uint64_t time, batch, hidden, directions;
	tensor_value x, lengths; /* lengths: [batch] of i64, or 0 */
	tensor_value h, c;
};

/* ---- attributes */

static const struct {
	const char *name;
	double alpha, beta;
} activations[ACTIVATE_KINDS] = {
	[ACTIVATE_SIGMOID] = { "Sigmoid", 0, 0 },
	[ACTIVATE_TANH] = { "Tanh", 0, 0 },
	[ACTIVATE_RELU] = { "Relu", 0, 0 },
	[ACTIVATE_AFFINE] = { "Affine", 1, 0 },
	[ACTIVATE_LEAKY_RELU] = { "LeakyRelu", 0.01, 0 },
	[ACTIVATE_SCALED_TANH] = { "ScaledTanh", 1, 1 },
	[ACTIVATE_HARD_SIGMOID] = { "HardSigmoid", 0.2, 0.5 },
	[ACTIVATE_ELU] = { "Elu", 1, 0 },
	[ACTIVATE_SOFTSIGN] = { "Softsign", 0, 0 },
	[ACTIVATE_SOFTPLUS] = { "Softplus", 0, 0 }
};

static bool takes_alpha(enum draw_activation_kind k) { return k >= ACTIVATE_AFFINE && k <= ACTIVATE_ELU; }
static bool takes_beta(enum draw_activation_kind k)
{
	return k == ACTIVATE_AFFINE || k == ACTIVATE_SCALED_TANH || k == ACTIVATE_HARD_SIGMOID;
}

static enum draw_activation_kind kind_of(struct op *o, const ProtobufCBinaryData *word)
{
	for (int i = 0; i < ACTIVATE_KINDS; i++)
		if (word->len == strlen(activations[i].name) && memcmp(word->data, activations[i].name, word->len) == 0)
			return (enum draw_activation_kind)i;
	op_refuse(o, "attribute activations has %.*s, which is not imported", (int)(word->len > 40 ? 40 : word->len),
	          word->data ? (const char *)word->data : "");
	return ACTIVATE_TANH;
}

/* Those of direction `at`; alpha and beta are given to the activations that take one, in their order. */
static void read_activations(struct op *o, struct layer *l, unsigned each, unsigned at)
{
	const struct onnx_attribute *a = op_attribute(o, "activations"), *alpha = op_attribute(o, "activation_alpha"),
				    *beta = op_attribute(o, "activation_beta");
	const double clip = op_float(o, "clip", 0);
	size_t alphas = 0, betas = 0;

	if (a && a->n_strings != each * l->directions)
		op_refuse(o, "attribute activations has %zu words, expected %" PRIu64, a->n_strings,
		          each * l->directions);
	for (unsigned i = 0; i < each * l->directions && !op_failed(o); i++) {
		const enum draw_activation_kind k =
			a                           ? kind_of(o, &a->strings[i])
			: i % each || l->gates == 1 ? ACTIVATE_TANH
						    : ACTIVATE_SIGMOID;
		struct draw_activation f = { k, activations[k].alpha, activations[k].beta, clip };
		if (takes_alpha(k) && alpha && alphas < alpha->n_floats)
			f.alpha = (double)alpha->floats[alphas++];
		if (takes_beta(k) && beta && betas < beta->n_floats)
			f.beta = (double)beta->floats[betas++];
		if (i / each == at)
			l->cell.f[i % each] = f;
	}
}

/* ---- inputs */

/* Part `at` of the first dimension, which goes. */
static tensor_value part(struct op *o, tensor_value x, uint64_t at)
{
	return x ? draw_squeeze(&o->d, draw_slice(&o->d, x, 0, at, at + 1, 1), 0) : 0;
}

static bool has_shape(struct op *o, unsigned input, const char *name, unsigned rank, const uint64_t *dim)
{
	const struct shape s = draw_shape(&o->d, op_in(o, input)), want = { .rank = rank };
	struct shape expected = want;
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

	memcpy(expected.dim, dim, rank * sizeof *dim);
	if (op_in(o, input) && !shape_equal(&s, &expected))
		op_refuse(o, "input %u, %s, is %s, expected %s", input + 1, name,
		          shape_text(draw_type(&o->d, o->in[input]), &s, a),
		          shape_text(draw_type(&o->d, o->in[0]), &expected, b));
	return !op_failed(o);
}

static bool check_inputs(struct op *o, struct layer *l, bool batch_first)
{
	const struct shape x = draw_shape(&o->d, o->in[0]), w = draw_shape(&o->d, o->in[1]);
	const uint64_t dirs = l->directions, h = l->hidden, rows = l->gates * h;

	if (x.rank != 3 || w.rank != 3) {
		op_refuse(o, "X and W have %u and %u dimensions, expected 3", x.rank, w.rank);
		return false;
	}
	l->time = x.dim[batch_first ? 1 : 0];
	l->batch = x.dim[batch_first ? 0 : 1];
	const uint64_t state[] = { batch_first ? l->batch : dirs, batch_first ? dirs : l->batch, h };
	return has_shape(o, 1, "W", 3, (const uint64_t[]){ dirs, rows, x.dim[2] }) &&
	       has_shape(o, 2, "R", 3, (const uint64_t[]){ dirs, rows, h }) &&
	       has_shape(o, 3, "B", 2, (const uint64_t[]){ dirs, 2 * rows }) &&
	       has_shape(o, 4, "sequence_lens", 1, &l->batch) && has_shape(o, 5, "initial_h", 3, state) &&
	       (l->gates != 4 ||
	        (has_shape(o, 6, "initial_c", 3, state) && has_shape(o, 7, "P", 2, (const uint64_t[]){ dirs, 3 * h })));
}

/* The steps of each row of a batch in reverse, up to its length. */
static tensor_value reversed(struct op *o, const struct layer *l, tensor_value x)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, x);
	const unsigned batch = 1;

	if (!l->lengths)
		return draw_reverse(d, x, 0);
	const tensor_value n = graph_broadcast(d->g, l->lengths, &s, &batch, o->err),
			   at = draw_iota(d, JIT_TYPE_I64, &s, 0);
	const tensor_value from = draw_select(d, draw_binary(d, OP_lt, at, n),
	                                      draw_with(d, OP_sub, draw_binary(d, OP_sub, n, at), 1), at);
	return draw_with_mode(d, OP_take_along, (tensor_value[]){ x, from }, 0, -1);
}

static tensor_value initial(struct op *o, const struct layer *l, unsigned input, unsigned direction, bool batch_first)
{
	tensor_value v = op_in(o, input);
	const struct shape s = { .rank = 2, .dim = { l->batch, l->hidden } };

	if (!v)
		return draw_broadcast(&o->d, draw_scalar(&o->d, 0, draw_type(&o->d, l->x)), &s);
	return part(o, batch_first ? draw_swap(&o->d, v, 0, 1) : v, direction);
}

/* ---- steps */

/* The body of the loop over the steps, with the values around it that its inputs stand for. */
struct steps {
	struct op *o;
	const struct layer *l;
	struct loop loop;
	struct draw d; /* draws the body */
	tensor_value operand[4 + CELL_VALUES];
	uint32_t operands;
};

/* The next input of the body. stacked: a step has a slice of v. 0 of 0. */
static tensor_value step_input(struct steps *s, tensor_value v, bool stacked)
{
	const struct tensor_value_info around = s->o->d.g->value[v];
	struct shape shape = around.shape;
	char name[16];

	if (!v || op_failed(s->o))
		return 0;
	if (stacked) {
		shape.rank--;
		memmove(shape.dim, shape.dim + 1, shape.rank * sizeof *shape.dim);
	}
	snprintf(name, sizeof name, "i%u", s->operands);
	s->operand[s->operands++] = v;
	return tensor_graph_input(&s->loop.body, name, around.type, &shape, s->o->err);
}

/* Beyond a row's length the state stays, and the output is 0. runs: of each row, or 0. */
static tensor_value hold(struct steps *s, tensor_value runs, tensor_value next, tensor_value was)
{
	return runs ? draw_select(&s->d, draw_expand(&s->d, runs, 1), next, was) : next;
}

static void step_output(struct steps *s, const char *name, tensor_value v)
{
	if (!op_failed(s->o))
		tensor_graph_output(&s->loop.body, name, v, s->o->err);
}

/* [time,batch]: whether a row is that long. 0: all are. */
static tensor_value running(struct op *o, const struct layer *l)
{
	const struct shape s = { .rank = 2, .dim = { l->time, l->batch } };

	return l->lengths ? draw_binary(&o->d, OP_lt, draw_iota(&o->d, JIT_TYPE_I64, &s, 0),
	                                draw_expand(&o->d, l->lengths, 0))
	                  : 0;
}

static void draw_step(struct steps *s, tensor_value x)
{
	const struct layer *l = s->l;
	struct draw *d = &s->d;
	struct draw_cell cell = l->cell;
	const tensor_value was = step_input(s, l->h, false), state = step_input(s, l->c, false);
	tensor_value c = state, h;

	s->loop.carried = s->operands;
	const tensor_value now = step_input(s, x, true), runs = step_input(s, running(s->o, l), true);
	s->loop.stacked = s->operands - s->loop.carried;
	for (unsigned i = 0; i < 2; i++) {
		cell.r[i] = step_input(s, cell.r[i], false);
		cell.bias[i] = step_input(s, cell.bias[i], false);
	}
	for (unsigned i = 0; i < 3; i++)
		cell.peep[i] = step_input(s, cell.peep[i], false);
	if (l->gates == 4)
		h = draw_lstm_step(d, &cell, now, was, &c);
	else
		h = l->gates == 3 ? draw_gru_step(d, &cell, now, was) : draw_rnn_step(d, &cell, now, was);
	step_output(s, "h", hold(s, runs, h, was));
	if (l->c)
		step_output(s, "c", hold(s, runs, c, state));
	step_output(s, "y", hold(s, runs, h, draw_number(d, 0, h)));
}

/* All steps' outputs [time,batch,hidden]; l->h and l->c become the states behind the last step. */
static tensor_value run_steps(struct op *o, struct layer *l, tensor_value x)
{
	struct steps s = { .o = o, .l = l, .loop.length = l->time };
	tensor_value last = 0;

	tensor_graph_init(&s.loop.body);
	s.d = (struct draw){ &s.loop.body, o->err };
	if (!op_failed(o))
		draw_step(&s, x);
	if (!op_failed(o))
		last = graph_scan(o->d.g, &s.loop, s.operand, s.operands, o->err);
	tensor_graph_free(&s.loop.body);
	if (!last)
		return 0;
	l->h = last;
	l->c = l->c ? last + 1 : 0;
	return last + s.loop.carried;
}

/* One direction: all steps' outputs [time,batch,hidden], and the last states in l->h and l->c. */
static tensor_value direction(struct op *o, struct layer *l, unsigned at, bool back, bool batch_first)
{
	struct draw *d = &o->d;
	const uint64_t rows = l->gates * l->hidden;
	const tensor_value bias = part(o, op_in(o, 3), at);
	tensor_value x = draw_dot(d, back ? reversed(o, l, l->x) : l->x, part(o, o->in[1], at), 2, 1, 0);

	draw_cell_parts(d, &l->cell, l->gates, part(o, o->in[2], at),
	                bias ? draw_slice(d, bias, 0, rows, 2 * rows, 1) : 0,
	                l->gates == 4 ? part(o, op_in(o, 7), at) : 0);
	if (bias)
		x = draw_binary(d, OP_add, x, draw_slice(d, bias, 0, 0, rows, 1));
	l->h = initial(o, l, 5, at, batch_first);
	l->c = l->gates == 4 ? initial(o, l, 6, at, batch_first) : 0;
	const tensor_value y = run_steps(o, l, x);
	return back ? reversed(o, l, y) : y;
}

static void give(struct op *o, struct layer *l, bool batch_first)
{
	struct draw *d = &o->d;
	const bool both = op_is(o, "direction", "forward", "bidirectional"),
		   back = op_is(o, "direction", "forward", "reverse");
	tensor_value y[2], h[2], c[2];
	const unsigned n = both ? 2 : 1;

	for (unsigned i = 0; i < n; i++) {
		read_activations(o, l, l->gates == 4 ? 3 : l->gates == 3 ? 2 : 1, i);
		y[i] = draw_expand(d, direction(o, l, i, back || i, batch_first), 1);
		h[i] = draw_expand(d, l->h, 0);
		c[i] = l->c ? draw_expand(d, l->c, 0) : 0;
	}
	if (op_failed(o))
		return;
	const tensor_value all = draw_concatenate(d, y, n, 1), last = draw_concatenate(d, h, n, 0);
	o->out[0] = batch_first ? draw_transpose(d, all, (const unsigned[]){ 2, 0, 1, 3 }) : all;
	if (o->outputs > 1)
		o->out[1] = batch_first ? draw_swap(d, last, 0, 1) : last;
	if (o->outputs > 2 && l->gates == 4) {
		const tensor_value state = draw_concatenate(d, c, n, 0);
		o->out[2] = batch_first ? draw_swap(d, state, 0, 1) : state;
	}
}

void op_recurrent(struct op *o)
{
	struct layer l = { .gates = (unsigned)o->row->user,
		           .directions = op_is(o, "direction", "forward", "bidirectional") ? 2 : 1 };
	const bool batch_first = op_int(o, "layout", 0) != 0;
	const struct shape r = draw_shape(&o->d, o->in[2]);
	const int64_t hidden = op_int(o, "hidden_size", r.rank == 3 ? (int64_t)r.dim[2] : 0);

	if (!op_is(o, "direction", "forward", "forward") && !op_is(o, "direction", "forward", "reverse") &&
	    l.directions == 1)
		op_refuse(o, "attribute direction is none of forward, reverse and bidirectional");
	if (hidden < 1 || hidden > 1 << 24)
		op_refuse(o, "attribute hidden_size is %" PRId64, hidden);
	if (op_int(o, "output_sequence", 1) == 0 && op_wants(o, 0))
		op_refuse(o, "attribute output_sequence is 0, and output 1 is wanted");
	l.hidden = l.cell.hidden = (uint64_t)hidden;
	l.cell.linear_before_reset = op_int(o, "linear_before_reset", 0) != 0;
	l.cell.input_forget = op_int(o, "input_forget", 0) != 0;
	if (op_failed(o) || !check_inputs(o, &l, batch_first))
		return;
	l.x = batch_first ? draw_swap(&o->d, o->in[0], 0, 1) : o->in[0];
	l.lengths = op_in(o, 4) ? draw_convert(&o->d, o->in[4], JIT_TYPE_I64) : 0;
	give(o, &l, batch_first);
}
