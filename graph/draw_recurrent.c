/* graph/draw_recurrent.c - steps of RNN, GRU and LSTM layers. */
#include "graph/draw.h"

#include <math.h>

tensor_value draw_activate(struct draw *d, const struct draw_activation *a, tensor_value x)
{
	if (a->clip > 0)
		x = draw_from(d, OP_min, a->clip, draw_from(d, OP_max, -a->clip, x));
	switch (a->kind) {
	case ACTIVATE_SIGMOID: return draw_unary(d, OP_logistic, x);
	case ACTIVATE_TANH: return draw_unary(d, OP_tanh, x);
	case ACTIVATE_RELU: return draw_relu(d, x);
	case ACTIVATE_AFFINE: return draw_with(d, OP_add, draw_with(d, OP_mul, x, a->alpha), a->beta);
	case ACTIVATE_LEAKY_RELU:
		return draw_select(d, draw_with(d, OP_lt, x, 0), draw_with(d, OP_mul, x, a->alpha), x);
	case ACTIVATE_SCALED_TANH:
		return draw_with(d, OP_mul, draw_unary(d, OP_tanh, draw_with(d, OP_mul, x, a->beta)), a->alpha);
	case ACTIVATE_HARD_SIGMOID: {
		const tensor_value line = draw_with(d, OP_add, draw_with(d, OP_mul, x, a->alpha), a->beta);
		return draw_from(d, OP_max, 0, draw_from(d, OP_min, 1, line));
	}
	case ACTIVATE_ELU:
		return draw_select(d, draw_with(d, OP_lt, x, 0), draw_with(d, OP_mul, draw_expm1(d, x), a->alpha), x);
	case ACTIVATE_SOFTSIGN: return draw_binary(d, OP_div, x, draw_with(d, OP_add, draw_unary(d, OP_abs, x), 1));
	default: return draw_softplus(d, x);
	}
}

/* Columns of gate i of x, and rows of it of the matrix. */
static tensor_value gate(struct draw *d, const struct draw_cell *c, tensor_value x, unsigned i)
{
	return draw_slice(d, x, 1, i * c->hidden, (i + 1) * c->hidden, 1);
}

static tensor_value rows(struct draw *d, const struct draw_cell *c, tensor_value x, unsigned from, unsigned to)
{
	return x ? draw_slice(d, x, 0, from * c->hidden, to * c->hidden, 1) : 0;
}

void draw_cell_parts(struct draw *d, struct draw_cell *c, unsigned gates, tensor_value r, tensor_value bias,
                     tensor_value peep)
{
	const unsigned first = gates == 3 ? 2 : gates;

	c->r[0] = rows(d, c, r, 0, first);
	c->bias[0] = rows(d, c, bias, 0, first);
	c->r[1] = gates == 3 ? rows(d, c, r, 2, 3) : 0;
	c->bias[1] = gates == 3 ? rows(d, c, bias, 2, 3) : 0;
	for (unsigned i = 0; i < 3; i++)
		c->peep[i] = rows(d, c, peep, i, i + 1);
}

/* h times the transposed rows of a part, with their bias. */
static tensor_value times(struct draw *d, const struct draw_cell *c, tensor_value h, unsigned part)
{
	const tensor_value y = draw_dot(d, h, c->r[part], 1, 1, 0);

	return c->bias[part] ? draw_binary(d, OP_add, y, c->bias[part]) : y;
}

tensor_value draw_rnn_step(struct draw *d, const struct draw_cell *c, tensor_value x, tensor_value h)
{
	return draw_activate(d, &c->f[0], draw_binary(d, OP_add, x, times(d, c, h, 0)));
}

tensor_value draw_gru_step(struct draw *d, const struct draw_cell *c, tensor_value x, tensor_value h)
{
	const tensor_value both = draw_slice(d, x, 1, 0, 2 * c->hidden, 1);
	const tensor_value gates = draw_activate(d, &c->f[0], draw_binary(d, OP_add, both, times(d, c, h, 0)));
	const tensor_value update = gate(d, c, gates, 0), reset = gate(d, c, gates, 1);
	const tensor_value product = c->linear_before_reset ? draw_binary(d, OP_mul, reset, times(d, c, h, 1))
	                                                    : times(d, c, draw_binary(d, OP_mul, reset, h), 1);
	const tensor_value next = draw_activate(d, &c->f[1], draw_binary(d, OP_add, gate(d, c, x, 2), product));

	return draw_binary(d, OP_add, draw_binary(d, OP_mul, draw_from(d, OP_sub, 1, update), next),
	                   draw_binary(d, OP_mul, update, h));
}

/* A gate that also sees the cell's state, through weight i. */
static tensor_value peeping(struct draw *d, const struct draw_cell *c, tensor_value x, tensor_value state, unsigned i)
{
	return c->peep[i] ? draw_binary(d, OP_add, x, draw_binary(d, OP_mul, state, c->peep[i])) : x;
}

tensor_value draw_lstm_step(struct draw *d, const struct draw_cell *c, tensor_value x, tensor_value h,
                            tensor_value *state)
{
	const tensor_value gates = draw_binary(d, OP_add, x, times(d, c, h, 0));
	const tensor_value in = draw_activate(d, &c->f[0], peeping(d, c, gate(d, c, gates, 0), *state, 0));
	const tensor_value forget =
		c->input_forget ? draw_from(d, OP_sub, 1, in)
				: draw_activate(d, &c->f[0], peeping(d, c, gate(d, c, gates, 2), *state, 2));
	const tensor_value cell = draw_activate(d, &c->f[1], gate(d, c, gates, 3));

	*state = draw_binary(d, OP_add, draw_binary(d, OP_mul, forget, *state), draw_binary(d, OP_mul, in, cell));
	const tensor_value out = draw_activate(d, &c->f[0], peeping(d, c, gate(d, c, gates, 1), *state, 1));
	struct draw_activation last = c->f[2];
	last.clip = 0;
	return draw_binary(d, OP_mul, out, draw_activate(d, &last, *state));
}
