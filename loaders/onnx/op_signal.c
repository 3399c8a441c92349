/* loaders/onnx/op_signal.c - windows of signals, and discrete Fourier transforms as products with their matrix. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "loaders/onnx/operators.h"

#define TAU 6.283185307179586

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n); n is one less where the window is to be symmetric. */
void op_signal_window(struct op *o)
{
	static const double terms[][3] = { [WINDOW_HANN] = { 0.5, 0.5, 0 },
		                           [WINDOW_HAMMING] = { 25.0 / 46, 21.0 / 46, 0 },
		                           [WINDOW_BLACKMAN] = { 0.42, 0.5, 0.08 } };
	const double *a = terms[o->row->user];
	const int64_t size = op_known_int(o, 0, 0), number = op_int(o, "output_datatype", 1);
	const bool periodic = op_int(o, "periodic", 1) != 0;
	const int type = onnx_type(number);

	if (type < 0)
		op_refuse(o, "attribute output_datatype is %s", onnx_type_name(number));
	else if (size < 0 || size > 1 << 24)
		op_refuse(o, "the size is %" PRId64, size);
	double *w = op_failed(o) ? NULL : calloc((size_t)size + 1, sizeof *w);
	if (!w) {
		op_refuse(o, "there is no memory");
		return;
	}
	const double n = (double)(periodic ? size : size - 1);
	for (int64_t i = 0; i < size; i++) {
		const double at = n > 0 ? TAU * (double)i / n : 0;
		w[i] = a[0] - a[1] * cos(at) + a[2] * cos(2 * at);
	}
	o->out[0] = op_constant_reals(o, w, (uint64_t)size, type);
	free(w);
}

/* ---- Fourier transforms */

struct transform {
	uint64_t n, in, out; /* length; elements that are there, and that are wanted */
	bool inverse, onesided;
};

/* cos or sin of 2 pi i k / n, [in,out]; of an inverse from one side, those between count twice. */
static tensor_value matrix(struct op *o, const struct transform *t, bool sine, int type)
{
	double *m = t->in && t->out < (1 << 24) / t->in ? calloc(t->in * t->out + 1, sizeof *m) : NULL;
	const bool halves = t->inverse && t->onesided;

	if (!m) {
		op_refuse(o, "a transform of %" PRIu64 " to %" PRIu64 " elements", t->in, t->out);
		return 0;
	}
	for (uint64_t i = 0; i < t->in; i++)
		for (uint64_t k = 0; k < t->out; k++) {
			const double at = TAU * (double)(i * k % t->n) / (double)t->n;
			const double twice = halves && i && 2 * i != t->n ? 2 : 1;
			m[i * t->out + k] = twice * (sine ? sin(at) : cos(at)) / (t->inverse ? (double)t->n : 1);
		}
	const tensor_value v =
		draw_dims(&o->d, op_constant_reals(o, m, t->in * t->out, type), 2, (const uint64_t[]){ t->in, t->out });
	free(m);
	return v;
}

/* Of x with real and imaginary parts in the last dimension (imaginary: 0: none), along an axis that comes to be the
 * last one. */
static tensor_value fourier(struct op *o, const struct transform *t, tensor_value real, tensor_value imaginary,
                            unsigned axis)
{
	struct draw *d = &o->d;
	const int type = draw_type(d, real);
	const tensor_value c = matrix(o, t, false, type), s = matrix(o, t, true, type);
	const unsigned last = draw_rank(d, real) ? draw_rank(d, real) - 1 : 0;
	tensor_value part[2] = { draw_dot(d, real, c, axis, 0, 0), draw_dot(d, real, s, axis, 0, 0) };

	if (!t->inverse)
		part[1] = draw_unary(d, OP_neg, part[1]);
	if (imaginary) { /* (a + bi) (cos + i sin), with the sign that the direction has */
		const tensor_value x = draw_dot(d, imaginary, s, axis, 0, 0), y = draw_dot(d, imaginary, c, axis, 0, 0);
		part[0] = draw_binary(d, t->inverse ? OP_sub : OP_add, part[0], x);
		part[1] = draw_binary(d, OP_add, part[1], y);
	}
	for (unsigned i = 0; i < 2; i++) { /* the product has the new axis last */
		unsigned order[TENSOR_MAX_RANK];
		for (unsigned k = 0; k <= last; k++)
			order[k] = k < axis ? k : k == axis ? last : k - 1;
		part[i] = draw_expand(d, draw_transpose(d, part[i], order), last + 1);
	}
	return t->inverse && t->onesided ? part[0] : draw_concatenate(d, part, 2, last + 1);
}

/* The first n elements of the axis, with zeros behind them if there are less. */
static tensor_value fit(struct op *o, tensor_value x, unsigned axis, uint64_t n)
{
	const uint64_t has = draw_dim(&o->d, x, axis);
	int64_t low[TENSOR_MAX_RANK] = { 0 }, high[TENSOR_MAX_RANK] = { 0 };

	if (has >= n)
		return draw_slice(&o->d, x, axis, 0, n, 1);
	high[axis] = (int64_t)(n - has);
	return draw_pad(&o->d, x, draw_scalar(&o->d, 0, draw_type(&o->d, x)), low, high);
}

void op_dft(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]);
	const int64_t given = o->opset < 20 ? op_int(o, "axis", 1) : op_known_int(o, 2, -2);
	const unsigned axis = op_axis(o, given, s.rank), last = s.rank ? s.rank - 1 : 0;
	struct transform t = { .inverse = op_int(o, "inverse", 0) != 0, .onesided = op_int(o, "onesided", 0) != 0 };

	if (s.rank < 2 || axis == last || (s.dim[last] != 1 && s.dim[last] != 2))
		op_refuse(o, "the last dimension is expected to be 1 or 2, and not the axis");
	if (op_failed(o))
		return;
	const bool halves = t.inverse && t.onesided;
	const uint64_t has = s.dim[axis], usual = halves ? 2 * (has ? has - 1 : 0) : has;
	t.n = (uint64_t)op_known_int(o, 1, (int64_t)usual);
	if (t.n == 0 || t.n > 1 << 24)
		op_refuse(o, "input 2, dft_length, is %" PRIu64, t.n);
	t.in = halves ? t.n / 2 + 1 : t.n;
	t.out = t.onesided && !t.inverse ? t.n / 2 + 1 : t.n;
	if (op_failed(o))
		return;
	const int type = draw_type(d, o->in[0]);
	const tensor_value x = fit(o, op_widen(o, o->in[0]), axis, t.in),
			   real = draw_squeeze(d, draw_slice(d, x, last, 0, 1, 1), last),
			   imaginary = s.dim[last] == 2 ? draw_squeeze(d, draw_slice(d, x, last, 1, 2, 1), last) : 0;
	o->out[0] = draw_convert(d, fourier(o, &t, real, imaginary, axis), type);
}
