/* loaders/onnx/op_linear.c - linear attention, step by step, and causal convolutions with a state. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "loaders/onnx/operators.h"

enum { IN_QUERY, IN_KEY, IN_VALUE, IN_STATE, IN_DECAY, IN_BETA, MAX_STEPS = 4096 };

struct recurrence {
	tensor_value q, k, v, decay, beta; /* [batch,heads,time,size] of f32 */
	tensor_value state;                /* [batch,heads,keys,values] */
	uint64_t time, group;
	double scale;
};

static tensor_value unpack(struct op *o, unsigned input, uint64_t heads)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[input]);

	if (s.rank != 3 || heads == 0 || s.dim[2] % heads) {
		op_refuse(o, "input %u has %u dimensions, or its last one is no multiple of %" PRIu64, input + 1,
		          s.rank, heads);
		return 0;
	}
	const tensor_value x = draw_convert(d, o->in[input], JIT_TYPE_F32);
	return draw_swap(d, draw_dims(d, x, 4, (const uint64_t[]){ s.dim[0], s.dim[1], heads, s.dim[2] / heads }), 1,
	                 2);
}

/* Element t of the time, which goes. */
static tensor_value at_time(struct op *o, tensor_value x, uint64_t t)
{
	return draw_squeeze(&o->d, draw_slice(&o->d, x, 2, t, t + 1, 1), 2);
}

/* The state times the decay, plus the outer product of key and value; then what the queries read of it. */
static tensor_value step(struct op *o, struct recurrence *r, uint64_t t)
{
	struct draw *d = &o->d;
	const tensor_value q = at_time(o, r->q, t), k = at_time(o, r->k, t);
	tensor_value v = at_time(o, r->v, t);

	if (r->decay) {
		const tensor_value g = draw_unary(d, OP_exp, at_time(o, r->decay, t));
		r->state = draw_binary(d, OP_mul, r->state, draw_expand(d, g, 3));
	}
	if (r->beta) {
		const tensor_value known = draw_dot(d, r->state, k, 2, 2, 2);
		v = draw_binary(d, OP_mul, at_time(o, r->beta, t), draw_binary(d, OP_sub, v, known));
	}
	r->state = draw_binary(d, OP_add, r->state, draw_binary(d, OP_mul, draw_expand(d, k, 3), draw_expand(d, v, 2)));
	const struct shape s = draw_shape(d, q);
	const uint64_t heads = r->group ? s.dim[1] / r->group : 0;
	const tensor_value grouped = draw_dims(d, q, 4, (const uint64_t[]){ s.dim[0], heads, r->group, s.dim[2] });
	const tensor_value y = draw_dot(d, grouped, r->state, 3, 2, 2); /* [batch,heads,group,values] */
	return draw_with(d, OP_mul, y, r->scale);
}

static bool read_rule(struct op *o)
{
	const bool linear = op_is(o, "update_rule", "gated_delta", "linear"),
		   gated = op_is(o, "update_rule", "gated_delta", "gated"),
		   delta = op_is(o, "update_rule", "gated_delta", "delta"),
		   both = op_is(o, "update_rule", "gated_delta", "gated_delta");

	if (!linear && !gated && !delta && !both)
		op_refuse(o, "attribute update_rule is none of linear, gated, delta and gated_delta");
	else if ((gated || both) != (op_in(o, IN_DECAY) != 0) || (delta || both) != (op_in(o, IN_BETA) != 0))
		op_refuse(o, "attribute update_rule does not fit the inputs decay and beta");
	return !op_failed(o);
}

static bool read_inputs(struct op *o, struct recurrence *r, uint64_t heads, uint64_t queries)
{
	struct draw *d = &o->d;

	r->q = unpack(o, IN_QUERY, queries);
	r->k = unpack(o, IN_KEY, heads);
	r->v = unpack(o, IN_VALUE, heads);
	if (op_in(o, IN_DECAY))
		r->decay = unpack(o, IN_DECAY, heads);
	if (op_in(o, IN_BETA))
		r->beta = unpack(o, IN_BETA, draw_dim(d, o->in[IN_BETA], 2) == 1 ? 1 : heads);
	if (op_failed(o))
		return false;
	const struct shape k = draw_shape(d, r->k),
			   s = { .rank = 4, .dim = { k.dim[0], heads, k.dim[3], draw_dim(d, r->v, 3) } };
	r->state = op_in(o, IN_STATE) ? draw_convert(d, o->in[IN_STATE], JIT_TYPE_F32)
	                              : draw_broadcast(d, draw_scalar(d, 0, JIT_TYPE_F32), &s);
	r->time = k.dim[2];
	r->scale = op_float(o, "scale", 0);
	if (r->scale == 0)
		r->scale = 1 / sqrt((double)k.dim[3]);
	if (r->time == 0 || r->time > MAX_STEPS)
		op_refuse(o, "there are %" PRIu64 " steps, expected 1 to %d", r->time, MAX_STEPS);
	return !op_failed(o);
}

void op_linear_attention(struct op *o)
{
	struct draw *d = &o->d;
	const int64_t queries = op_int(o, "q_num_heads", 0), heads = op_int(o, "kv_num_heads", 0);
	struct recurrence r = { 0 };

	if (heads < 1 || queries < 1 || queries % heads)
		op_refuse(o, "attribute q_num_heads is %" PRId64 ", no multiple of kv_num_heads, %" PRId64, queries,
		          heads);
	if (op_failed(o) || !read_rule(o) || !read_inputs(o, &r, (uint64_t)heads, (uint64_t)queries))
		return;
	r.group = (uint64_t)(queries / heads);
	tensor_value *y = calloc(r.time, sizeof *y);
	if (!y) {
		op_refuse(o, "there is no memory");
		return;
	}
	for (uint64_t t = 0; t < r.time; t++) { /* [batch,1,queries * values] */
		const tensor_value now = step(o, &r, t);
		const struct shape s = draw_shape(d, now);
		y[t] = draw_dims(d, now, 3, (const uint64_t[]){ s.dim[0], 1, s.dim[1] * s.dim[2] * s.dim[3] });
	}
	o->out[0] = draw_convert(d, draw_concatenate(d, y, (unsigned)r.time, 1), draw_type(d, o->in[0]));
	if (o->outputs > 1)
		o->out[1] = draw_convert(d, r.state, draw_type(d, op_in(o, IN_STATE) ? o->in[IN_STATE] : o->in[0]));
	free(y);
}

void op_causal_conv(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	const struct shape s = draw_shape(d, o->in[0]), k = draw_shape(d, o->in[1]);
	const bool silu = op_is(o, "activation", "none", "silu") || op_is(o, "activation", "none", "swish");
	tensor_value x = o->in[0];

	if (!silu && !op_is(o, "activation", "none", "none"))
		op_refuse(o, "attribute activation is none of silu, swish and none");
	if (s.rank != 3 || k.rank != 3 || k.dim[2] == 0 || k.dim[2] > 1 << 20)
		op_refuse(o, "input and weight have %u and %u dimensions, expected 3", s.rank, k.rank);
	if (op_failed(o))
		return;
	const uint64_t before = k.dim[2] - 1;
	const struct shape none = { .rank = 3, .dim = { s.dim[0], s.dim[1], before } };
	const tensor_value past = op_in(o, 3) ? o->in[3] : draw_broadcast(d, draw_scalar(d, 0, type), &none);
	x = draw_concatenate(d, (tensor_value[]){ past, x }, 2, 2);
	const struct windows w = { .n = 1, .stride = { 1 }, .dilation = { 1 }, .size = { (int64_t)k.dim[2] } };
	tensor_value y = op_convolve(o, op_widen(o, x), op_widen(o, o->in[1]), &w, NULL, (int64_t)s.dim[1]);
	if (op_in(o, 2)) {
		const struct shape of = draw_shape(d, y);
		const unsigned axis = 1;
		y = draw_binary(d, OP_add, y, y ? graph_broadcast(d->g, op_widen(o, o->in[2]), &of, &axis, o->err) : 0);
	}
	if (silu)
		y = draw_binary(d, OP_mul, y, draw_unary(d, OP_logistic, y));
	o->out[0] = draw_convert(d, y, type);
	if (o->outputs > 1)
		o->out[1] = draw_slice(d, x, 2, draw_dim(d, x, 2) - before, draw_dim(d, x, 2), 1);
}
