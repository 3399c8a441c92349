/* loaders/onnx/op_attention.c - attention with its masks, and rotation. Of f16 and bf16 it is computed in f32. */
#include <inttypes.h>
#include <math.h>

#include "loaders/onnx/operators.h"

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_KEY, IN_PAST_VALUE, IN_LENGTHS };
enum { GIVES_PRODUCT, GIVES_CAPPED, GIVES_BIASED, GIVES_SHARES };

struct attention {
	tensor_value q, k, v; /* [batch,heads,positions,size] */
	uint64_t batch, heads, queries, keys;
	tensor_value lengths; /* valid keys of each batch, [batch,1,1,1] of i64, or 0 */
	tensor_value bias;    /* what is added to the products; 0: nothing */
	int type;
};

/* [batch,positions,heads*size] as [batch,heads,positions,size] */
static tensor_value split_heads(struct op *o, tensor_value x, const char *attribute)
{
	const struct shape s = draw_shape(&o->d, x);
	const uint64_t heads = (uint64_t)op_int(o, attribute, 0);

	if (s.rank == 4)
		return x;
	if (s.rank != 3 || heads == 0 || s.dim[2] % heads) {
		op_refuse(o, "an input has %u dimensions, or attribute %s does not divide it", s.rank, attribute);
		return 0;
	}
	const uint64_t dim[] = { s.dim[0], s.dim[1], heads, s.dim[2] / heads };
	return draw_swap(&o->d, draw_dims(&o->d, x, 4, dim), 1, 2);
}

/* Each head of keys or values serves several of queries, side by side. */
static tensor_value repeat_heads(struct op *o, tensor_value x, uint64_t heads)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, x);
	struct shape wide = { .rank = 5, .dim = { s.dim[0], s.dim[1], 1, s.dim[2], s.dim[3] } };

	if (s.dim[1] == heads)
		return x;
	if (s.dim[1] == 0 || heads % s.dim[1]) {
		op_refuse(o, "%" PRIu64 " heads of queries are no multiple of %" PRIu64, heads, s.dim[1]);
		return 0;
	}
	x = draw_reshape(d, x, &wide);
	wide.dim[2] = heads / s.dim[1];
	return draw_dims(d, draw_broadcast(d, x, &wide), 4, (const uint64_t[]){ s.dim[0], heads, s.dim[2], s.dim[3] });
}

static bool read_operands(struct op *o, struct attention *a)
{
	struct draw *d = &o->d;

	a->type = draw_type(d, o->in[IN_Q]);
	a->q = split_heads(o, o->in[IN_Q], "q_num_heads");
	a->k = split_heads(o, o->in[IN_K], "kv_num_heads");
	a->v = split_heads(o, o->in[IN_V], "kv_num_heads");
	if (!op_in(o, IN_PAST_KEY) != !op_in(o, IN_PAST_VALUE))
		op_refuse(o, "past_key and past_value are expected together");
	if (op_failed(o))
		return false;
	if (op_in(o, IN_PAST_KEY)) {
		a->k = draw_concatenate(d, (tensor_value[]){ o->in[IN_PAST_KEY], a->k }, 2, 2);
		a->v = draw_concatenate(d, (tensor_value[]){ o->in[IN_PAST_VALUE], a->v }, 2, 2);
	}
	const struct shape q = draw_shape(d, a->q), k = draw_shape(d, a->k);
	if (q.rank != 4 || k.rank != 4) {
		op_refuse(o, "queries and keys have %u and %u dimensions", q.rank, k.rank);
		return false;
	}
	if (o->outputs > 1)
		o->out[1] = a->k;
	if (o->outputs > 2)
		o->out[2] = a->v;
	a->batch = q.dim[0];
	a->heads = q.dim[1];
	a->queries = q.dim[2];
	a->keys = k.dim[2];
	a->k = repeat_heads(o, op_widen(o, a->k), a->heads);
	a->v = repeat_heads(o, op_widen(o, a->v), a->heads);
	a->q = op_widen(o, a->q);
	if (op_in(o, IN_LENGTHS))
		a->lengths = draw_dims(d, draw_convert(d, o->in[IN_LENGTHS], JIT_TYPE_I64), 4,
		                       (const uint64_t[]){ a->batch, 1, 1, 1 });
	return !op_failed(o);
}

/* ---- masks */

static void add_bias(struct op *o, struct attention *a, tensor_value more)
{
	a->bias = a->bias ? draw_binary(&o->d, OP_add, a->bias, more) : more;
}

/* 0 where it is true, else -inf */
static tensor_value bias_of(struct op *o, const struct attention *a, tensor_value allowed)
{
	const int type = draw_type(&o->d, a->q);

	return draw_select(&o->d, allowed, draw_scalar(&o->d, 0, type), draw_scalar(&o->d, -(double)INFINITY, type));
}

/* A mask may end before the keys: the rest is not attended. */
static void read_mask(struct op *o, struct attention *a)
{
	struct draw *d = &o->d;
	tensor_value m = op_in(o, IN_MASK);
	const struct shape s = draw_shape(d, m);
	int64_t low[TENSOR_MAX_RANK] = { 0 }, high[TENSOR_MAX_RANK] = { 0 };

	if (!m)
		return;
	if (s.rank == 0 || s.rank > 4 || s.dim[s.rank - 1] > a->keys) {
		op_refuse(o, "input 4, attn_mask, has %u dimensions, or more than %" PRIu64 " keys", s.rank, a->keys);
		return;
	}
	m = draw_type(d, m) == JIT_TYPE_BOOL ? bias_of(o, a, m) : draw_convert(d, op_widen(o, m), draw_type(d, a->q));
	if (s.dim[s.rank - 1] != 1 || a->keys == 1)
		high[s.rank - 1] = (int64_t)(a->keys - s.dim[s.rank - 1]);
	add_bias(o, a, draw_pad(d, m, draw_scalar(d, -(double)INFINITY, draw_type(d, m)), low, high));
}

/* Where queries stand among the keys: what they see on both sides is bounded by windows, and by the causal rule. */
static void read_windows(struct op *o, struct attention *a)
{
	struct draw *d = &o->d;
	const struct shape s = { .rank = 4, .dim = { 1, 1, a->queries, a->keys } };
	const int64_t left = op_int(o, "left_window_size", -1), right = op_int(o, "right_window_size", -1);
	const bool causal = op_int(o, "is_causal", 0) != 0;

	if (left < -1 || right < -1 || left > INT64_C(1) << 46 || right > INT64_C(1) << 46)
		op_refuse(o, "attributes left_window_size and right_window_size are %" PRId64 " and %" PRId64, left,
		          right);
	if (op_failed(o) || (left < 0 && right < 0 && !causal))
		return;
	tensor_value at = draw_iota(d, JIT_TYPE_I64, &s, 2);
	const tensor_value key = draw_iota(d, JIT_TYPE_I64, &s, 3);
	if (op_in(o, IN_PAST_KEY))
		at = draw_with(d, OP_add, at, (double)draw_dim(d, o->in[IN_PAST_KEY], 2));
	else if (a->lengths)
		at = draw_binary(d, OP_add, at, draw_with(d, OP_sub, a->lengths, (double)a->queries));
	const tensor_value ahead = draw_binary(d, OP_sub, key, at);
	if (causal)
		add_bias(o, a, bias_of(o, a, draw_with(d, OP_le, ahead, 0)));
	if (left >= 0)
		add_bias(o, a, bias_of(o, a, draw_with(d, OP_ge, ahead, -(double)left)));
	if (right >= 0)
		add_bias(o, a, bias_of(o, a, draw_with(d, OP_le, ahead, (double)right)));
}

static void read_lengths(struct op *o, struct attention *a)
{
	const struct shape s = { .rank = 4, .dim = { 1, 1, 1, a->keys } };

	if (a->lengths)
		add_bias(o, a,
		         bias_of(o, a, draw_binary(&o->d, OP_lt, draw_iota(&o->d, JIT_TYPE_I64, &s, 3), a->lengths)));
}

/* ---- shares of the values */

/* Rows of which nothing may be attended have shares of 0. */
static tensor_value shares(struct op *o, const struct attention *a, tensor_value x)
{
	struct draw *d = &o->d;
	const int64_t number = op_int(o, "softmax_precision", 0);
	const int type = draw_type(d, x);

	if (number && onnx_type(number) != JIT_TYPE_F32 && onnx_type(number) != JIT_TYPE_F64 &&
	    onnx_type(number) != JIT_TYPE_F16 && onnx_type(number) != JIT_TYPE_BF16) {
		op_refuse(o, "attribute softmax_precision is %s", onnx_type_name(number));
		return 0;
	}
	if (onnx_type(number) == JIT_TYPE_F64) /* less than f32 is not computed with */
		x = draw_convert(d, x, JIT_TYPE_F64);
	tensor_value y = draw_convert(d, draw_softmax(d, x, 8), type);
	if (a->bias) {
		const struct shape s = draw_shape(d, x);
		const tensor_value bias = draw_broadcast(d, a->bias, &s);
		const tensor_value max = draw_reduce(d, OP_reduce_max, bias, 8, true);
		y = draw_select(d, draw_with(d, OP_eq, max, -(double)INFINITY), draw_scalar(d, 0, type), y);
	}
	return y;
}

static tensor_value softcap(struct op *o, tensor_value x)
{
	struct draw *d = &o->d;
	const double cap = op_float(o, "softcap", 0);

	return cap == 0 ? x : draw_with(d, OP_mul, draw_unary(d, OP_tanh, draw_with(d, OP_div, x, cap)), cap);
}

void op_attention(struct op *o)
{
	struct draw *d = &o->d;
	struct attention a = { 0 };
	tensor_value stage[4];

	if (!read_operands(o, &a))
		return;
	read_mask(o, &a);
	read_windows(o, &a);
	read_lengths(o, &a);
	const double scale = op_float(o, "scale", 1 / sqrt((double)draw_dim(d, a.q, 3))), root = sqrt(scale);
	const int64_t mode = op_int(o, "qk_matmul_output_mode", 0);
	if (mode < 0 || mode > GIVES_SHARES || !(scale >= 0))
		op_refuse(o, "attribute qk_matmul_output_mode is %" PRId64 ", or scale is %g", mode, scale);
	if (op_failed(o))
		return;
	stage[GIVES_PRODUCT] = draw_dot(d, draw_with(d, OP_mul, a.q, root), draw_with(d, OP_mul, a.k, root), 3, 3, 2);
	stage[GIVES_CAPPED] = softcap(o, stage[GIVES_PRODUCT]);
	stage[GIVES_BIASED] = a.bias ? draw_binary(d, OP_add, stage[GIVES_CAPPED], a.bias) : stage[GIVES_CAPPED];
	stage[GIVES_SHARES] = shares(o, &a, stage[GIVES_BIASED]);
	tensor_value y = draw_dot(d, stage[GIVES_SHARES], a.v, 3, 2, 2);
	if (draw_rank(d, o->in[IN_Q]) == 3)
		y = draw_dims(d, draw_swap(d, y, 1, 2), 3,
		              (const uint64_t[]){ a.batch, a.queries, a.heads * draw_dim(d, y, 3) });
	o->out[0] = draw_convert(d, y, a.type);
	if (op_wants(o, 3))
		o->out[3] = draw_convert(d, stage[mode], a.type);
}

/* ---- attention whose scores and shares are changed by graphs of the file */

/* What the graph of that name makes of x; x without one. */
static tensor_value changed_by(struct op *o, const char *name, tensor_value x)
{
	const struct onnx_attribute *a = op_attribute(o, name);
	const struct shape s = draw_shape(&o->d, x);
	tensor_value y = 0;

	if (!a || op_failed(o))
		return x;
	if (!a->g) {
		op_refuse(o, "attribute %s is no graph", name);
		return 0;
	}
	if (!import_subgraph(o, a->g, &x, 1, &y, 1))
		return 0;
	const struct shape now = draw_shape(&o->d, y);
	if (!shape_equal(&s, &now) || draw_type(&o->d, x) != draw_type(&o->d, y))
		op_refuse(o, "the graph %s changes the shape or the type of its input", name);
	return y;
}

void op_flex_attention(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape q = draw_shape(d, o->in[0]), k = draw_shape(d, o->in[1]), v = draw_shape(d, o->in[2]);
	const double root = sqrt(op_float(o, "scale", 1 / sqrt((double)(q.rank == 4 ? q.dim[3] : 1))));
	const int64_t number = op_int(o, "softmax_precision", 0);
	int type = draw_type(d, op_widen(o, o->in[0]));

	if (q.rank != 4 || k.rank != 4 || v.rank != 4)
		op_refuse(o, "queries have %u dimensions, keys %u and values %u, expected 4", q.rank, k.rank, v.rank);
	else if (k.dim[1] != v.dim[1] || k.dim[2] != v.dim[2])
		op_refuse(o, "keys and values differ in heads or positions");
	if (!(root >= 0))
		op_refuse(o, "attribute scale is less than 0");
	if (onnx_type(number) == JIT_TYPE_F64)
		type = JIT_TYPE_F64;
	else if (number && !tensor_is_float(onnx_type(number)))
		op_refuse(o, "attribute softmax_precision is %s", onnx_type_name(number));
	if (op_failed(o))
		return;
	const tensor_value wide_q = op_widen(o, o->in[0]), keys = repeat_heads(o, op_widen(o, o->in[1]), q.dim[1]),
			   values = repeat_heads(o, op_widen(o, o->in[2]), q.dim[1]);
	const tensor_value product =
		draw_dot(d, draw_with(d, OP_mul, wide_q, root), draw_with(d, OP_mul, keys, root), 3, 3, 2);
	const tensor_value scores = changed_by(o, "score_mod", draw_convert(d, product, type));
	const tensor_value shared = changed_by(o, "prob_mod", draw_softmax(d, scores, 8));
	const tensor_value y = draw_dot(d, shared, draw_convert(d, values, type), 3, 2, 2);
	o->out[0] = draw_convert(d, y, draw_type(d, o->in[2]));
}

/* ---- rotation */

/* Pairs (x, y) become (cos x - sin y, sin x + cos y): halves, or neighbours if they are interleaved. */
static tensor_value rotate(struct op *o, tensor_value x, tensor_value cosine, tensor_value sine, bool interleaved)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, x);
	const uint64_t n = s.dim[3], half = n / 2;
	const tensor_value a = interleaved ? draw_slice(d, x, 3, 0, n, 2) : draw_slice(d, x, 3, 0, half, 1),
			   b = interleaved ? draw_slice(d, x, 3, 1, n, 2) : draw_slice(d, x, 3, half, n, 1);
	tensor_value y[2] = {
		draw_binary(d, OP_sub, draw_binary(d, OP_mul, cosine, a), draw_binary(d, OP_mul, sine, b)),
		draw_binary(d, OP_add, draw_binary(d, OP_mul, sine, a), draw_binary(d, OP_mul, cosine, b))
	};

	if (!interleaved)
		return draw_concatenate(d, y, 2, 3);
	for (unsigned i = 0; i < 2; i++)
		y[i] = draw_expand(d, y[i], 4);
	return draw_reshape(d, draw_concatenate(d, y, 2, 4), &s);
}

void op_rotary_embedding(struct op *o)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, o->in[0]);
	const bool wide = draw_rank(d, o->in[0]) == 4;
	const tensor_value x = op_widen(o, split_heads(o, o->in[0], "num_heads"));
	const struct shape s = draw_shape(d, x);
	uint64_t n = (uint64_t)op_int(o, "rotary_embedding_dim", 0);
	tensor_value cache[2];

	if (op_failed(o))
		return;
	n = n ? n : s.dim[3];
	for (unsigned i = 0; i < 2; i++) { /* [positions,n/2] by ids, or [batch,positions,n/2] */
		cache[i] = op_widen(o, o->in[1 + i]);
		if (op_in(o, 3))
			cache[i] = draw_take(d, cache[i], op_wrap(o, o->in[3], draw_dim(d, cache[i], 0)), 0);
		const unsigned rank = draw_rank(d, cache[i]);
		if (rank != 3 || n % 2 || n > s.dim[3] || draw_dim(d, cache[i], 2) != n / 2) {
			op_refuse(o, "caches have %u dimensions, or rows that are not %" PRIu64 " / 2", rank, n);
			return;
		}
		cache[i] = draw_expand(d, cache[i], 1);
	}
	tensor_value y[2] = {
		rotate(o, draw_slice(d, x, 3, 0, n, 1), cache[0], cache[1], op_int(o, "interleaved", 0) != 0), 0
	};
	if (n < s.dim[3])
		y[1] = draw_slice(d, x, 3, n, s.dim[3], 1);
	tensor_value all = n < s.dim[3] ? draw_concatenate(d, y, 2, 3) : y[0];
	const struct shape of = draw_shape(d, o->in[0]);
	if (!wide)
		all = draw_reshape(d, draw_swap(d, all, 1, 2), &of);
	o->out[0] = draw_convert(d, all, type);
}
