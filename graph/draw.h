/* graph/draw.h - what graphs are often made of, drawn with the rows of ops.def.
 *
 * Owns: compositions: numpy's broadcasting, softmax, norms, functions of numbers, attention, steps of recurrent
 * layers. Each function adds nodes and returns the value that they make. Errors are sticky: 0 as an operand gives 0,
 * and the error says what went wrong first, so that the caller asks once, at the end.
 */
#ifndef GRAPH_DRAW_H
#define GRAPH_DRAW_H

#include "graph/graph.h"

struct draw {
	struct tensor_graph *g;
	struct error *err;
};

static inline int draw_type(const struct draw *d, tensor_value v) { return v ? d->g->value[v].type : JIT_TYPE_F32; }
/* Of 0: no dimensions. */
static inline struct shape draw_shape(const struct draw *d, tensor_value v)
{
	return v ? d->g->value[v].shape : (struct shape){ 0 };
}
static inline unsigned draw_rank(const struct draw *d, tensor_value v) { return v ? d->g->value[v].shape.rank : 0; }
static inline uint64_t draw_dim(const struct draw *d, tensor_value v, unsigned axis)
{
	return v ? d->g->value[v].shape.dim[axis] : 0;
}

/* ---- draw.c: single steps. Operands are broadcast to each other as numpy has it. */
tensor_value draw_unary(struct draw *d, enum tensor_op op, tensor_value x);
tensor_value draw_binary(struct draw *d, enum tensor_op op, tensor_value x, tensor_value y);
tensor_value draw_select(struct draw *d, tensor_value condition, tensor_value x, tensor_value y);
bool draw_common_shape(struct draw *d, const tensor_value *v, unsigned n, struct shape *s);
tensor_value draw_broadcast(struct draw *d, tensor_value x, const struct shape *s);
/* A scalar; an array of the type and shape of `like`. */
tensor_value draw_scalar(struct draw *d, double number, int type);
tensor_value draw_number(struct draw *d, double number, tensor_value like);
/* x op number, and number op x. */
tensor_value draw_with(struct draw *d, enum tensor_op op, tensor_value x, double number);
tensor_value draw_from(struct draw *d, enum tensor_op op, double number, tensor_value x);
tensor_value draw_convert(struct draw *d, tensor_value x, int type);
tensor_value draw_reshape(struct draw *d, tensor_value x, const struct shape *s);
tensor_value draw_dims(struct draw *d, tensor_value x, unsigned rank, const uint64_t *dim);
/* A dimension of 1 is put in, or taken out. */
tensor_value draw_expand(struct draw *d, tensor_value x, unsigned axis);
tensor_value draw_squeeze(struct draw *d, tensor_value x, unsigned axis);
tensor_value draw_transpose(struct draw *d, tensor_value x, const unsigned *axes);
tensor_value draw_swap(struct draw *d, tensor_value x, unsigned a, unsigned b);
/* Elements from..to-1 of one axis, in steps. */
tensor_value draw_slice(struct draw *d, tensor_value x, unsigned axis, uint64_t from, uint64_t to, uint64_t step);
tensor_value draw_concatenate(struct draw *d, const tensor_value *v, unsigned n, unsigned axis);
tensor_value draw_pad(struct draw *d, tensor_value x, tensor_value with, const int64_t *low, const int64_t *high);
tensor_value draw_reverse(struct draw *d, tensor_value x, unsigned axis);
tensor_value draw_iota(struct draw *d, int type, const struct shape *s, unsigned axis);
tensor_value draw_take(struct draw *d, tensor_value x, tensor_value indices, unsigned axis);
/* Axes are a set of bits; keep: reduced dimensions stay, with size 1. */
tensor_value draw_reduce(struct draw *d, enum tensor_op op, tensor_value x, unsigned axes, bool keep);
tensor_value draw_mean(struct draw *d, tensor_value x, unsigned axes, bool keep);
/* numpy.matmul */
tensor_value draw_matmul(struct draw *d, tensor_value x, tensor_value y);
/* Contracts the given axes; batches in front are common. */
tensor_value draw_dot(struct draw *d, tensor_value x, tensor_value y, unsigned left, unsigned right, unsigned batches);
/* The same with one batch, which may be any axis of each. */
tensor_value draw_dot_of(struct draw *d, tensor_value x, tensor_value y, int64_t left, int64_t right,
                         int64_t left_batch, int64_t right_batch);
tensor_value draw_with_mode(struct draw *d, enum tensor_op op, const tensor_value *v, int64_t axis, int64_t mode);

/* ---- draw_functions.c: functions of numbers, for f32, f64 and what is computed as f32 */
tensor_value draw_reciprocal(struct draw *d, tensor_value x);
tensor_value draw_log1p(struct draw *d, tensor_value x);
tensor_value draw_expm1(struct draw *d, tensor_value x);
tensor_value draw_tan(struct draw *d, tensor_value x);
tensor_value draw_atan(struct draw *d, tensor_value x);
tensor_value draw_asin(struct draw *d, tensor_value x);
tensor_value draw_acos(struct draw *d, tensor_value x);
tensor_value draw_sinh(struct draw *d, tensor_value x);
tensor_value draw_cosh(struct draw *d, tensor_value x);
tensor_value draw_asinh(struct draw *d, tensor_value x);
tensor_value draw_acosh(struct draw *d, tensor_value x);
tensor_value draw_atanh(struct draw *d, tensor_value x);
tensor_value draw_softplus(struct draw *d, tensor_value x);
tensor_value draw_relu(struct draw *d, tensor_value x); /* of NaN: NaN */
tensor_value draw_gelu(struct draw *d, tensor_value x, bool by_tanh);
tensor_value draw_is_nan(struct draw *d, tensor_value x);
tensor_value draw_is_infinite(struct draw *d, tensor_value x, bool positive, bool negative);

/* ---- draw_norms.c */
tensor_value draw_softmax(struct draw *d, tensor_value x, unsigned axes);
tensor_value draw_log_softmax(struct draw *d, tensor_value x, unsigned axes);
tensor_value draw_log_sum_exp(struct draw *d, tensor_value x, unsigned axes, bool keep);
/* (x - mean) / sqrt(variance + epsilon); mean and scale (1 / sqrt(..)) may be NULL */
tensor_value draw_standardize(struct draw *d, tensor_value x, unsigned axes, double epsilon, tensor_value *mean,
                              tensor_value *scale);
tensor_value draw_rms(struct draw *d, tensor_value x, unsigned axes, double epsilon);

/* ---- draw_recurrent.c: steps of recurrent layers, gates side by side in the last dimension */
enum draw_activation_kind {
	ACTIVATE_SIGMOID,
	ACTIVATE_TANH,
	ACTIVATE_RELU,
	ACTIVATE_AFFINE,
	ACTIVATE_LEAKY_RELU,
	ACTIVATE_SCALED_TANH,
	ACTIVATE_HARD_SIGMOID,
	ACTIVATE_ELU,
	ACTIVATE_SOFTSIGN,
	ACTIVATE_SOFTPLUS,
	ACTIVATE_KINDS
};
struct draw_activation {
	enum draw_activation_kind kind;
	double alpha, beta, clip; /* clip: 0: none; else what goes in is cut to -clip..clip */
};
tensor_value draw_activate(struct draw *d, const struct draw_activation *a, tensor_value x);
enum { CELL_VALUES = 7 };
/* What a layer's steps share. */
struct draw_cell {
	/* r: rows of [gates * hidden, hidden] that are one product: of GRU those of the first two gates, and those of
	 * the third one; else all. bias: of a product with r, or 0. peep: of LSTM's input, output and forget gate, or
	 * 0. */
	tensor_value r[2], bias[2], peep[3];
	struct draw_activation f[3];
	uint64_t hidden;
	bool linear_before_reset; /* of GRU: the reset gate scales the product, not the state */
	bool input_forget;        /* of LSTM: the forget gate is 1 less the input gate */
};
/* Sets r, bias and peep: parts of r [gates * hidden, hidden], bias [gates * hidden] or 0, and peep [3 * hidden] or 0.
 */
void draw_cell_parts(struct draw *d, struct draw_cell *c, unsigned gates, tensor_value r, tensor_value bias,
                     tensor_value peep);
/* x: [batch, gates * hidden], with its biases. h: [batch, hidden], and so is the result. */
tensor_value draw_rnn_step(struct draw *d, const struct draw_cell *c, tensor_value x, tensor_value h);
/* Gates: update, reset, hidden. */
tensor_value draw_gru_step(struct draw *d, const struct draw_cell *c, tensor_value x, tensor_value h);
/* Gates: input, output, forget, cell. *state: the cell's, which becomes the next one. */
tensor_value draw_lstm_step(struct draw *d, const struct draw_cell *c, tensor_value x, tensor_value h,
                            tensor_value *state);

#endif
