/* vision/draw.c - an image encoder and its projector as one graph of tensors, of pictures of so many patches. */
#include "graph/draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/math_host.h"
#include "runtime/device/device.h"
#include "runtime/kernels/compute.h"
#include "vision/parts.h"

enum { NO_LAYER = 0 };

struct drawing {
	struct draw d;
	struct tower *t;
	const struct tower_spec *s;
	struct tower_graph *to;
	uint32_t patches, rows; /* rows of the stream: those of the patches, and that of the class */
	tensor_value input[TOWER_INPUTS];
	struct windows windows; /* n 0: a row sees all */
};

/* ---- inputs */

static bool put_input(struct drawing *w, enum tower_input which, const char *name, int type, uint64_t rows,
                      uint64_t columns)
{
	const struct shape s = { columns ? 2 : 1, { rows, columns } };

	w->to->has[which] = true;
	w->to->copied++;
	w->input[which] = tensor_graph_input(w->d.g, name, type, &s, w->d.err);
	return w->input[which] != 0;
}

static bool put_inputs(struct drawing *w)
{
	const struct tower_spec *s = w->s;
	const uint64_t pairs = s->hidden / s->heads / 2, positions = (uint64_t)w->windows.n * w->windows.each;

	return put_input(w, INPUT_PATCHES, "patches", JIT_TYPE_F32, w->patches, tower_patch_numbers(s)) &&
	       (!s->row->positions || put_input(w, INPUT_POSITIONS, "places", JIT_TYPE_F32, w->rows, s->hidden)) &&
	       (!s->row->rotation || (put_input(w, INPUT_COSINE, "cosine", JIT_TYPE_F32, w->patches, pairs) &&
	                              put_input(w, INPUT_SINE, "sine", JIT_TYPE_F32, w->patches, pairs))) &&
	       (!w->windows.n || (put_input(w, INPUT_WINDOW, "window", JIT_TYPE_I32, positions, 0) &&
	                          put_input(w, INPUT_BACK, "back", JIT_TYPE_I32, w->patches, 0) &&
	                          (positions == w->patches ||
	                           put_input(w, INPUT_INSIDE, "inside", JIT_TYPE_I32, w->windows.n, w->windows.each))));
}

/* A tensor as the file has it, made floats where it is used. */
static tensor_value weight_input(struct drawing *w, uint32_t number)
{
	const struct tower_weight *t = &w->t->weight[number];
	const struct dtype_facts *f = &dtype_table[t->type];
	struct shape s = t->shape;
	int64_t format = t->type;
	int type = t->type == DTYPE_F32    ? JIT_TYPE_F32
	           : t->type == DTYPE_F16  ? JIT_TYPE_F16
	           : t->type == DTYPE_BF16 ? JIT_TYPE_BF16
	                                   : JIT_TYPE_U8;
	char name[40];

	if (!array_grow((void **)&w->to->weight, &w->to->weight_room, w->to->weights + 1, sizeof *w->to->weight)) {
		error_set(w->d.err, ERROR_MEMORY, "there is no memory for an image encoder");
		return 0;
	}
	w->to->weight[w->to->weights++] = number;
	if (type == JIT_TYPE_U8)
		s.dim[s.rank - 1] = s.dim[s.rank - 1] / f->block * f->bytes;
	snprintf(name, sizeof name, "w%u", (unsigned)number);
	const tensor_value v = tensor_graph_input(w->d.g, name, type, &s, w->d.err);
	if (type != JIT_TYPE_U8)
		return draw_convert(&w->d, v, JIT_TYPE_F32);
	const struct attribute a = { ATTRIBUTE_format, 1, &format, 0 };
	return v ? tensor_graph_add(w->d.g, OP_dequantise, &v, 1, &a, 1, w->d.err) : 0;
}

static tensor_value weight(struct drawing *w, enum tower_slot slot, uint32_t layer, bool bias, uint64_t rows,
                           uint64_t columns)
{
	const struct shape s = bias || slot == TOWER_CLASS || (rows == 1 && columns)
	                               ? (struct shape){ 1, { columns } }
	                               : (struct shape){ 2, { rows, columns } };
	const int64_t number = w->d.err->code ? -1 : tower_weight_of(w->t, slot, layer, bias, &s, w->d.err);

	return number < 0 ? 0 : weight_input(w, (uint32_t)number);
}

static tensor_value clipped(struct drawing *w, tensor_value x, const double bounds[2])
{
	x = isinf(bounds[0]) ? x : draw_with(&w->d, OP_max, x, bounds[0]);
	return isinf(bounds[1]) ? x : draw_with(&w->d, OP_min, x, bounds[1]);
}

/* rows 0: as many as the file has. */
static tensor_value product(struct drawing *w, enum tower_slot slot, uint32_t layer, tensor_value x, uint64_t rows,
                            bool bias)
{
	const bool has_bounds = w->s->flags & TOWER_CLIPPED && slot >= TOWER_Q && slot <= TOWER_DOWN;
	double bounds[4] = { -HUGE_VAL, HUGE_VAL, -HUGE_VAL, HUGE_VAL };

	if (has_bounds && !w->d.err->code && !tower_bounds(w->t, slot, layer, bounds, w->d.err))
		return 0;
	x = clipped(w, x, bounds);
	tensor_value y =
		draw_dot(&w->d, x, weight(w, slot, layer, false, rows, draw_dim(&w->d, x, draw_rank(&w->d, x) - 1)), 1,
	                 1, 0);
	y = clipped(w, y, bounds + 2);
	return bias ? draw_binary(&w->d, OP_add, y, weight(w, slot, layer, true, 1, draw_dim(&w->d, y, 1))) : y;
}

/* ---- steps */

static tensor_value normed(struct drawing *w, enum tower_slot slot, uint32_t layer, tensor_value x, double eps,
                           bool centred, bool one)
{
	const uint64_t n = draw_dim(&w->d, x, 1);
	tensor_value by = weight(w, slot, layer, false, 1, n);

	x = centred ? draw_standardize(&w->d, x, 2, eps, NULL, NULL) : draw_rms(&w->d, x, 2, eps);
	x = draw_binary(&w->d, OP_mul, x, one ? draw_with(&w->d, OP_add, by, 1) : by);
	return centred ? draw_binary(&w->d, OP_add, x, weight(w, slot, layer, true, 1, n)) : x;
}

static tensor_value norm(struct drawing *w, enum tower_slot slot, uint32_t layer, tensor_value x)
{
	return normed(w, slot, layer, x, w->s->eps, !(w->s->flags & TOWER_RMS), false);
}

static tensor_value activated(struct draw *d, enum tower_act act, tensor_value x)
{
	switch (act) {
	case TOWER_GELU: return draw_gelu(d, x, false);
	case TOWER_GELU_TANH: return draw_gelu(d, x, true);
	case TOWER_GELU_QUICK:
		return draw_binary(d, OP_mul, x, draw_unary(d, OP_logistic, draw_with(d, OP_mul, x, 1.702)));
	default: return draw_binary(d, OP_mul, x, draw_unary(d, OP_logistic, x));
	}
}

/* Element i of an axis rotates with that half of it behind. cosine, sine: without the axis of heads. */
static tensor_value rotated_part(struct drawing *w, tensor_value x, unsigned axis, tensor_value cosine,
                                 tensor_value sine)
{
	struct draw *d = &w->d;
	const uint64_t n = draw_dim(d, x, axis);
	const tensor_value a = draw_slice(d, x, axis, 0, n / 2, 1), b = draw_slice(d, x, axis, n / 2, n, 1),
			   c = draw_expand(d, cosine, 1), s = draw_expand(d, sine, 1);
	const tensor_value part[] = {
		draw_binary(d, OP_sub, draw_binary(d, OP_mul, a, c), draw_binary(d, OP_mul, b, s)),
		draw_binary(d, OP_add, draw_binary(d, OP_mul, b, c), draw_binary(d, OP_mul, a, s)),
	};
	return draw_concatenate(d, part, 2, axis);
}

/* x: [patches, heads, dim] */
static tensor_value rotated(struct drawing *w, tensor_value x)
{
	const uint64_t dim = w->s->hidden / w->s->heads;
	struct draw *d = &w->d;

	if (!w->s->row->rotation)
		return x;
	if (w->s->row->rotation != ROTATES_SEPARATELY)
		return rotated_part(w, x, 2, w->input[INPUT_COSINE], w->input[INPUT_SINE]);
	const uint64_t rows = draw_dim(d, x, 0), parts[] = { rows, w->s->heads, 2, dim / 2 },
		       angle_shape[] = { rows, 2, dim / 4 };
	x = rotated_part(w, draw_dims(d, x, 4, parts), 3, draw_dims(d, w->input[INPUT_COSINE], 3, angle_shape),
	                 draw_dims(d, w->input[INPUT_SINE], 3, angle_shape));
	return draw_dims(d, x, 3, (uint64_t[]){ rows, w->s->heads, dim });
}

/* A norm of each head's numbers; slot TOWER_SLOTS: without weights. */
static tensor_value head_norm(struct drawing *w, tensor_value x, enum tower_slot slot, uint32_t layer)
{
	const uint64_t dim = w->s->hidden / w->s->heads;

	if (!(w->s->flags & TOWER_HEAD_NORMS))
		return x;
	x = draw_rms(&w->d, x, 4, w->s->eps);
	return slot == TOWER_SLOTS ? x : draw_binary(&w->d, OP_mul, x, weight(w, slot, layer, false, 1, dim));
}

static tensor_value scaled(struct drawing *w, tensor_value scores)
{
	const double by = 1 / math_host_sqrt((double)(w->s->hidden / w->s->heads));

	return w->s->flags & TOWER_HEAD_NORMS ? scores : draw_with(&w->d, OP_mul, scores, by);
}

/* Attention of queries first .. end - 1: [queries, heads, dim]. */
static tensor_value attend(struct drawing *w, const tensor_value qkv[3], uint64_t first, uint64_t end)
{
	struct draw *d = &w->d;
	const tensor_value q = first == 0 && end == w->rows ? qkv[0] : draw_slice(d, qkv[0], 0, first, end, 1);
	const tensor_value scores = scaled(w, draw_dot_of(d, q, qkv[1], 2, 2, 1, 1));

	return draw_transpose(d, draw_dot_of(d, draw_softmax(d, scores, 4), qkv[2], 2, 0, 0, 1),
	                      (unsigned[]){ 1, 0, 2 });
}

/* Scores that are computed at a time, where there are more patches: so much memory they take at most. A card with free
 * memory computes more, as each part lays out all keys and values. */
static uint64_t scores_max(const jit_compute *c)
{
	enum { MIN = 1 << 26, MAX = 1 << 28, SHARE = 16 /* of the memory, for scores and for their shares */ };
	struct device *d = c->device;
	uint64_t max = MIN, bytes;

	if (!d->available || !d->available(d, &bytes))
		return MIN;
	while (max < MAX && 2 * max * sizeof(float) <= bytes / SHARE)
		max *= 2;
	return max;
}

/* Of all, in so many parts that their scores take no more memory than is meant for them: [rows, hidden]. Parts are
 * joined along their first axis, as they are then made where they belong. */
static tensor_value attend_all(struct drawing *w, const tensor_value qkv[3])
{
	struct draw *d = &w->d;
	tensor_value part[TOWER_PARTS];
	uint64_t at_once = scores_max(w->t->compute) / ((uint64_t)w->rows * w->s->heads), n = 0;

	const uint64_t min = (w->rows + TOWER_PARTS - 1) / TOWER_PARTS;

	at_once = at_once < min ? min : at_once;
	for (uint64_t first = 0; first < w->rows; first += at_once)
		part[n++] = attend(w, qkv, first, first + at_once < w->rows ? first + at_once : w->rows);
	const tensor_value y = n > 1 ? draw_concatenate(d, part, (unsigned)n, 0) : part[0];
	return draw_dims(d, y, 2, (uint64_t[]){ w->rows, w->s->hidden });
}

/* The same of rows in windows: they are put there, and back. */
static tensor_value attend_windows(struct drawing *w, const tensor_value qkv[3])
{
	struct draw *d = &w->d;
	const uint64_t dim = w->s->hidden / w->s->heads, n = w->windows.n, each = w->windows.each, heads = w->s->heads;
	tensor_value z[3];

	for (int i = 0; i < 3; i++) {
		z[i] = draw_take(d, qkv[i], w->input[INPUT_WINDOW], 0);
		z[i] = draw_dims(d, z[i], 4, (uint64_t[]){ n, each, heads, dim });
		z[i] = draw_transpose(d, z[i], (unsigned[]){ 0, 2, 1, 3 });
		z[i] = draw_dims(d, z[i], 3, (uint64_t[]){ n * heads, each, dim });
	}
	tensor_value scores = scaled(w, draw_dot(d, z[0], z[1], 2, 2, 1));
	if (w->input[INPUT_INSIDE]) {
		const tensor_value is = draw_with(d, OP_ne, w->input[INPUT_INSIDE], 0);
		scores = draw_dims(d, scores, 4, (uint64_t[]){ n, heads, each, each });
		scores =
			draw_select(d, draw_expand(d, draw_expand(d, is, 1), 1), scores, draw_number(d, -1e30, scores));
		scores = draw_dims(d, scores, 3, (uint64_t[]){ n * heads, each, each });
	}
	tensor_value y = draw_dot(d, draw_softmax(d, scores, 4), z[2], 2, 1, 1);
	y = draw_dims(d, y, 4, (uint64_t[]){ n, heads, each, dim });
	y = draw_transpose(d, y, (unsigned[]){ 0, 2, 1, 3 });
	return draw_take(d, draw_dims(d, y, 2, (uint64_t[]){ n * each, w->s->hidden }), w->input[INPUT_BACK], 0);
}

static tensor_value attention(struct drawing *w, tensor_value x, uint32_t layer)
{
	struct draw *d = &w->d;
	const struct tower_spec *s = w->s;
	const uint64_t hidden = s->hidden, dim = hidden / s->heads;
	const bool bias = s->flags & TOWER_QKV_BIAS, windowed = w->windows.n && !s->sees_all[layer];
	const tensor_value all = s->flags & TOWER_FUSED ? product(w, TOWER_QKV, layer, x, 3 * hidden, bias) : 0;
	tensor_value qkv[3];

	for (unsigned i = 0; i < 3; i++) {
		qkv[i] = s->flags & TOWER_FUSED ? draw_slice(d, all, 1, i * hidden, (i + 1) * hidden, 1)
		                                : product(w, (enum tower_slot)(TOWER_Q + i), layer, x, hidden, bias);
		qkv[i] = draw_dims(d, qkv[i], 3, (uint64_t[]){ w->rows, s->heads, dim });
		qkv[i] = head_norm(w, qkv[i], i < 2 ? (enum tower_slot)(TOWER_Q_NORM + i) : TOWER_SLOTS, layer);
		qkv[i] = i < 2 ? rotated(w, qkv[i]) : qkv[i];
	}
	const tensor_value y = windowed ? attend_windows(w, qkv) : attend_all(w, qkv);
	return product(w, TOWER_O, layer, y, hidden, s->flags & TOWER_O_BIAS);
}

static tensor_value feed_forward(struct drawing *w, tensor_value x, uint32_t layer)
{
	const struct tower_spec *s = w->s;
	const bool bias = s->flags & TOWER_MLP_BIAS;
	tensor_value y = product(w, s->flags & TOWER_GATED ? TOWER_GATE : TOWER_UP, layer, x, s->ffn, bias);

	y = activated(&w->d, s->act, y);
	if (s->flags & TOWER_GATED)
		y = draw_binary(&w->d, OP_mul, y, product(w, TOWER_UP, layer, x, s->ffn, bias));
	return product(w, TOWER_DOWN, layer, y, s->hidden, bias);
}

static tensor_value added(struct drawing *w, tensor_value x, tensor_value y, enum tower_slot scale, uint32_t layer)
{
	if (w->s->flags & TOWER_BEHIND)
		y = norm(w, scale == TOWER_SCALE1 ? TOWER_BEHIND1 : TOWER_BEHIND2, layer, y);
	if (w->s->flags & TOWER_SCALED)
		y = draw_binary(&w->d, OP_mul, y, weight(w, scale, layer, false, 1, w->s->hidden));
	return draw_binary(&w->d, OP_add, x, y);
}

static tensor_value draw_layer(struct drawing *w, tensor_value x, uint32_t layer)
{
	x = added(w, x, attention(w, norm(w, TOWER_NORM1, layer, x), layer), TOWER_SCALE1, layer);
	return added(w, x, feed_forward(w, norm(w, TOWER_NORM2, layer, x), layer), TOWER_SCALE2, layer);
}

static tensor_value draw_stream(struct drawing *w)
{
	struct draw *d = &w->d;
	const struct tower_spec *s = w->s;
	tensor_value x = w->input[INPUT_PATCHES];

	if (s->flags & TOWER_SIGNED)
		x = draw_with(d, OP_mul, draw_with(d, OP_sub, x, 0.5), 2);
	x = product(w, TOWER_PATCH, NO_LAYER, x, s->hidden, s->flags & TOWER_PATCH_BIAS);
	if (s->flags & TOWER_HAS_CLASS) {
		const tensor_value row = draw_dims(d, weight(w, TOWER_CLASS, NO_LAYER, false, 1, s->hidden), 2,
		                                   (uint64_t[]){ 1, s->hidden });
		x = draw_concatenate(d, (tensor_value[]){ row, x }, 2, 0);
	}
	if (s->row->positions)
		x = draw_binary(d, OP_add, x, w->input[INPUT_POSITIONS]);
	return s->flags & TOWER_HAS_PRE_NORM ? norm(w, TOWER_PRE_NORM, NO_LAYER, x) : x;
}

/* ---- the projector */

/* Rows of a block of patches, one behind the other in one row. */
static tensor_value blocks(struct drawing *w, tensor_value x)
{
	const uint64_t each = (uint64_t)w->s->merge * w->s->merge;

	return draw_dims(&w->d, x, 2, (uint64_t[]){ w->patches / each, each * w->s->hidden });
}

/* The same, but the numbers of all of them at a position are neighbours. */
static tensor_value channels(struct drawing *w, tensor_value x)
{
	const uint64_t each = (uint64_t)w->s->merge * w->s->merge, hidden = w->s->hidden;

	x = draw_dims(&w->d, x, 3, (uint64_t[]){ w->patches / each, each, hidden });
	x = draw_transpose(&w->d, x, (unsigned[]){ 0, 2, 1 });
	return draw_dims(&w->d, x, 2, (uint64_t[]){ w->patches / each, each * hidden });
}

static tensor_value pooled(struct drawing *w, tensor_value x)
{
	const uint64_t each = (uint64_t)w->s->merge * w->s->merge, hidden = w->s->hidden;

	x = draw_dims(&w->d, x, 3, (uint64_t[]){ w->patches / each, each, hidden });
	return draw_mean(&w->d, x, 2, false);
}

static tensor_value mlp(struct drawing *w, tensor_value x, enum tower_slot first, uint32_t layer)
{
	const bool bias = w->s->flags & TOWER_OUT_BIAS;

	x = product(w, first, layer, x, 0, bias);
	return w->s->flags & TOWER_ONE_OUT
	               ? x
	               : product(w, first + 1, layer, activated(&w->d, w->s->out_act, x), w->s->out, bias);
}

static tensor_value out_norm(struct drawing *w, tensor_value x)
{
	const uint32_t f = w->s->flags;
	const bool centred = !(f & (TOWER_RMS | TOWER_OUT_RMS));

	return f & TOWER_NO_OUT_NORM
	               ? x
	               : normed(w, TOWER_OUT_NORM, NO_LAYER, x, w->s->out_eps, centred, f & TOWER_OUT_NORM_ONE);
}

static tensor_value mlp_of_pool(struct drawing *w, tensor_value x)
{
	const uint64_t hidden = w->s->hidden;

	if (w->s->flags & TOWER_STANDARD) {
		x = draw_binary(&w->d, OP_sub, x, weight(w, TOWER_STD_BIAS, NO_LAYER, false, 1, hidden));
		x = draw_binary(&w->d, OP_mul, x, weight(w, TOWER_STD_SCALE, NO_LAYER, false, 1, hidden));
	}
	return product(w, TOWER_OUT_1, NO_LAYER, draw_rms(&w->d, x, 2, w->s->out_eps), 0, false);
}

static tensor_value project(struct drawing *w, tensor_value x)
{
	struct draw *d = &w->d;

	switch (w->s->end) {
	case END_MLP: return mlp(w, out_norm(w, x), TOWER_OUT_1, NO_LAYER);
	case END_SHUFFLE: return mlp(w, out_norm(w, blocks(w, x)), TOWER_OUT_1, NO_LAYER);
	case END_MERGER: return mlp(w, blocks(w, out_norm(w, x)), TOWER_OUT_1, NO_LAYER);
	case END_CHANNELS:
		x = product(w, TOWER_OUT_MERGE, NO_LAYER, channels(w, out_norm(w, x)), w->s->hidden, false);
		return mlp(w, x, TOWER_OUT_1, NO_LAYER);
	case END_ROOT_POOL: return mlp_of_pool(w, draw_with(d, OP_mul, pooled(w, x), math_host_sqrt(w->s->hidden)));
	default:
		return draw_dot(d, out_norm(w, pooled(w, x)), weight(w, TOWER_OUT_1, NO_LAYER, false, w->s->hidden, 0),
		                1, 0, 0);
	}
}

/* What goes to the text model's layer beside: a merger of its own, whose norm goes over a block. */
static tensor_value project_deep(struct drawing *w, tensor_value x, uint32_t number)
{
	x = normed(w, TOWER_DEEP_NORM, number, blocks(w, x), w->s->out_eps, true, false);
	return mlp(w, x, TOWER_DEEP_1, number);
}

static bool draw_all(struct drawing *w)
{
	struct draw *d = &w->d;
	const struct tower_spec *s = w->s;
	tensor_value deep[TOWER_MAX_DEEP] = { 0 }, x = draw_stream(w);
	char name[20];

	for (uint32_t l = 0; x && l < s->layers; l++) {
		x = draw_layer(w, x, l);
		for (uint32_t k = 0; k < s->n_deep; k++)
			if (s->deep[k] == l)
				deep[k] = project_deep(w, x, k);
	}
	if (s->flags & TOWER_HAS_POST_NORM)
		x = norm(w, TOWER_POST_NORM, NO_LAYER, x);
	if (s->flags & TOWER_HAS_CLASS)
		x = draw_slice(d, x, 0, 1, w->rows, 1);
	x = project(w, x);
	bool ok = x && tensor_graph_output(d->g, "features", x, d->err);
	for (uint32_t k = 0; ok && k < s->n_deep; k++) {
		snprintf(name, sizeof name, "deep%u", k);
		ok = deep[k] && tensor_graph_output(d->g, name, deep[k], d->err);
	}
	return ok;
}

bool tower_draw(struct tower_graph *to, struct tower *t, uint32_t height, uint32_t width, struct error *err)
{
	const uint32_t patches = height * width;
	struct drawing w = { .d = { .g = &to->g, .err = err },
		             .t = t,
		             .s = &t->spec,
		             .to = to,
		             .patches = patches,
		             .rows = patches + !!(t->spec.flags & TOWER_HAS_CLASS) };

	*to = (struct tower_graph){ 0 };
	if (t->spec.window)
		w.windows = windows_of(&t->spec, height, width);
	if (w.windows.n == 1) /* which all see */
		w.windows.n = 0;
	tensor_graph_init(&to->g);
	return put_inputs(&w) && draw_all(&w);
}

void tower_graph_free(struct tower_graph *g)
{
	tensor_graph_free(&g->g);
	free(g->weight);
	*g = (struct tower_graph){ 0 };
}
