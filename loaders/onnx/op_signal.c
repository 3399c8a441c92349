/* loaders/onnx/op_signal.c - windows of signals, discrete Fourier transforms as products with their matrix, and bands
 * of hearing. */
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

/* ---- short-time transforms */

/* A number that must be known. */
static double known_number(struct op *o, unsigned input)
{
	const struct tensor *t = op_known(o, input);

	if (t && shape_elements(&t->shape) == 1)
		return number_of(t, 0);
	op_refuse(o, "input %u is expected to be one number", input + 1);
	return 0;
}

/* Frames of n samples, each `step` behind the one before. */
static tensor_value frames_of(struct op *o, tensor_value x, uint64_t n, uint64_t step, uint64_t frames)
{
	int64_t *index = frames <= (1 << 24) / n ? calloc(frames * n + 1, sizeof *index) : NULL;

	if (!index) {
		op_refuse(o, "there are %" PRIu64 " frames of %" PRIu64 " samples", frames, n);
		return 0;
	}
	for (uint64_t i = 0; i < frames * n; i++)
		index[i] = (int64_t)(i / n * step + i % n);
	const tensor_value at = op_constant_shaped(o, index, &(struct shape){ .rank = 2, .dim = { frames, n } });
	free(index);
	return draw_take(&o->d, x, at, 1);
}

void op_stft(struct op *o)
{
	struct draw *d = &o->d;
	const struct shape s = draw_shape(d, o->in[0]), w = draw_shape(d, op_in(o, 2));
	const int64_t step = op_known_int(o, 1, 0),
		      length = op_known_int(o, 3,
	                                    op_in(o, 2)  ? (int64_t)w.dim[0]
	                                    : s.rank > 1 ? (int64_t)s.dim[1]
	                                                 : 0);
	struct transform t = { .onesided = op_int(o, "onesided", 1) != 0 };

	if (s.rank != 3 || (s.dim[2] != 1 && s.dim[2] != 2))
		op_refuse(o, "input 1 is expected to be [batches,samples,1] or [batches,samples,2]");
	else if (step < 1 || length < 1 || (uint64_t)length > s.dim[1])
		op_refuse(o, "frames of %" PRId64 " samples in steps of %" PRId64 " do not fit %" PRIu64, length, step,
		          s.dim[1]);
	else if (op_in(o, 2) && (w.rank != 1 || w.dim[0] != (uint64_t)length))
		op_refuse(o, "input 3, window, does not have %" PRId64 " elements", length);
	else if (t.onesided && s.dim[2] == 2)
		op_refuse(o, "attribute onesided is expected to be 0 for complex samples");
	if (op_failed(o))
		return;
	t.n = t.in = (uint64_t)length;
	t.out = t.onesided ? t.n / 2 + 1 : t.n;
	const int type = draw_type(d, o->in[0]);
	tensor_value x =
		frames_of(o, op_widen(o, o->in[0]), t.n, (uint64_t)step, (s.dim[1] - t.n) / (uint64_t)step + 1);
	if (op_in(o, 2))
		x = draw_binary(d, OP_mul, x,
		                draw_expand(d, draw_convert(d, op_widen(o, o->in[2]), draw_type(d, x)), 1));
	const tensor_value real = draw_squeeze(d, draw_slice(d, x, 3, 0, 1, 1), 3),
			   imaginary = s.dim[2] == 2 ? draw_squeeze(d, draw_slice(d, x, 3, 1, 2, 1), 3) : 0;
	o->out[0] = draw_convert(d, fourier(o, &t, real, imaginary, 2), type);
}

/* ---- bands of equal width to the ear */

static double mel_of(double hertz) { return 2595 * log10(1 + hertz / 700); }

/* m: [bins,bands]. Each band rises from the edge before it, and falls to the one behind it. */
static void fill_bands(double *m, uint64_t bins, uint64_t bands, const int64_t *edge)
{
	for (uint64_t i = 0; i < bands; i++) {
		const int64_t low = edge[i], centre = edge[i + 1], high = edge[i + 2];
		for (int64_t k = low; k <= centre && k < (int64_t)bins; k++)
			m[(uint64_t)k * bands + i] = low == centre ? 1 : (double)(k - low) / (double)(centre - low);
		for (int64_t k = centre; k < high && k < (int64_t)bins; k++)
			m[(uint64_t)k * bands + i] = (double)(high - k) / (double)(high - centre);
	}
}

void op_mel_weights(struct op *o)
{
	const int64_t bands = op_known_int(o, 0, 0), length = op_known_int(o, 1, 0), rate = op_known_int(o, 2, 0),
		      number = op_int(o, "output_datatype", 1);
	const double low = known_number(o, 3), high = known_number(o, 4);

	if (!op_failed(o) && (bands < 1 || length < 1 || rate < 1 || bands > 1 << 16 || length > 1 << 24 ||
	                      !(low >= 0) || !(high >= low) || !(high <= (double)rate)))
		op_refuse(o, "%" PRId64 " bands from %g to %g Hz, of a transform of %" PRId64 " at %" PRId64 " Hz",
		          bands, low, high, length, rate);
	if (onnx_type(number) < 0)
		op_refuse(o, "attribute output_datatype is %s", onnx_type_name(number));
	if (op_failed(o))
		return;
	const uint64_t bins = (uint64_t)length / 2 + 1;
	double *m = bins <= (UINT64_C(1) << 24) / (uint64_t)bands ? calloc(bins * (uint64_t)bands, sizeof *m) : NULL;
	int64_t *edge = calloc((size_t)bands + 2, sizeof *edge);
	if (m && edge) {
		const double first = mel_of(low), step = (mel_of(high) - first) / (double)(bands + 2);
		for (int64_t i = 0; i < bands + 2; i++) {
			const double hertz = 700 * (pow(10, (first + step * (double)i) / 2595) - 1);
			edge[i] = (int64_t)floor((double)(length + 1) * hertz / (double)rate);
		}
		fill_bands(m, bins, (uint64_t)bands, edge);
		o->out[0] = draw_dims(&o->d, op_constant_reals(o, m, bins * (uint64_t)bands, onnx_type(number)), 2,
		                      (const uint64_t[]){ bins, (uint64_t)bands });
	} else {
		op_refuse(o, "there is no memory for %" PRIu64 " bins of %" PRId64 " bands", bins, bands);
	}
	free(m);
	free(edge);
}
