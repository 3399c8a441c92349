/* loaders/onnx/op_products.c - matrix products, Einstein sums and determinants. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/elimination.h"
#include "graph/loop.h"
#include "loaders/onnx/operators.h"

void op_matmul(struct op *o) { o->out[0] = draw_matmul(&o->d, o->in[0], o->in[1]); }

/* alpha * A' * B' + beta * C */
void op_gemm(struct op *o)
{
	struct draw *d = &o->d;
	const double alpha = op_float(o, "alpha", 1), beta = op_float(o, "beta", 1);
	const bool left = op_int(o, "transA", 0) != 0, right = op_int(o, "transB", 0) != 0;

	if (draw_rank(d, o->in[0]) != 2 || draw_rank(d, o->in[1]) != 2) {
		op_refuse(o, "the operands have %u and %u dimensions, expected 2", draw_rank(d, o->in[0]),
		          draw_rank(d, o->in[1]));
		return;
	}
	tensor_value y = draw_dot(d, o->in[0], o->in[1], left ? 0 : 1, right ? 1 : 0, 0);
	if (alpha != 1)
		y = draw_with(d, OP_mul, y, alpha);
	if (op_in(o, 2) && beta != 0) {
		const tensor_value c = beta == 1 ? o->in[2] : draw_with(d, OP_mul, o->in[2], beta);
		const struct shape s = draw_shape(d, y);
		y = draw_binary(d, OP_add, y, draw_broadcast(d, c, &s));
	}
	o->out[0] = y;
}

/* ---- einsum: a value whose dimensions have letters. Dimensions of "..." have capital letters behind 'Z'. */

struct labelled {
	tensor_value v;
	unsigned n;
	char label[TENSOR_MAX_RANK];
};
enum { FIRST_DOT = 1 }; /* labels of the dimensions that "..." stands for, from the last one on */

static int index_of(const struct labelled *x, char label)
{
	for (unsigned i = 0; i < x->n; i++)
		if (x->label[i] == label)
			return (int)i;
	return -1;
}

/* The labels of a term, as "...ij"; dots: how many dimensions "..." has. */
static bool read_term(struct op *o, const char *p, const char *end, unsigned dots, struct labelled *x)
{
	x->n = 0;
	while (p < end) {
		if (*p == ' ') {
			p++;
		} else if (end - p >= 3 && memcmp(p, "...", 3) == 0) {
			for (unsigned i = 0; i < dots && x->n < TENSOR_MAX_RANK; i++)
				x->label[x->n++] = (char)(FIRST_DOT + dots - 1 - i);
			p += 3;
		} else if (((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z')) && x->n < TENSOR_MAX_RANK) {
			x->label[x->n++] = *p++;
		} else {
			op_refuse(o, "attribute equation has a term that is not letters, or too many of them");
			return false;
		}
	}
	return true;
}

static void drop(struct labelled *x, unsigned at)
{
	memmove(x->label + at, x->label + at + 1, x->n - at - 1);
	x->n--;
}

/* A letter that a term has twice: the diagonal. The second of its dimensions goes. */
static void take_diagonals(struct op *o, struct labelled *x)
{
	struct draw *d = &o->d;

	for (unsigned i = 0; i < x->n; i++)
		for (unsigned k = i + 1; k < x->n; k++) {
			if (x->label[k] != x->label[i])
				continue;
			const struct shape s = draw_shape(d, x->v);
			if (s.dim[i] != s.dim[k]) {
				op_refuse(o, "attribute equation has a letter for %" PRIu64 " and %" PRIu64, s.dim[i],
				          s.dim[k]);
				return;
			}
			struct shape one = s;
			one.dim[k] = 1;
			const tensor_value at = draw_iota(d, JIT_TYPE_I64, &one, i);
			x->v = draw_squeeze(d, draw_with_mode(d, OP_take_along, (tensor_value[]){ x->v, at }, k, -1),
			                    k);
			drop(x, k--);
		}
}

/* Sums dimensions that no later term and not the result has. */
static void sum_alone(struct op *o, struct labelled *x, const struct labelled *other, const struct labelled *out)
{
	for (unsigned i = 0; i < x->n;) {
		if ((other && index_of(other, x->label[i]) >= 0) || index_of(out, x->label[i]) >= 0) {
			i++;
			continue;
		}
		x->v = draw_reduce(&o->d, OP_reduce_sum, x->v, 1U << i, false);
		drop(x, i);
	}
}

/* Dimensions of 1 that "..." has in one term and not in the other are repeated. */
static void broadcast_dots(struct op *o, struct labelled *x, const struct labelled *y)
{
	struct shape s = draw_shape(&o->d, x->v);

	for (unsigned i = 0; i < x->n; i++) {
		const int k = index_of(y, x->label[i]);
		if (k >= 0 && s.dim[i] == 1)
			s.dim[i] = draw_dim(&o->d, y->v, (unsigned)k);
	}
	x->v = draw_broadcast(&o->d, x->v, &s);
}

/* The product of two, summed over letters that `out` does not have. */
static void multiply(struct op *o, struct labelled *x, struct labelled *y, const struct labelled *out)
{
	int64_t left[TENSOR_MAX_RANK], right[TENSOR_MAX_RANK], lb[TENSOR_MAX_RANK], rb[TENSOR_MAX_RANK];
	uint32_t sums = 0, batches = 0;
	struct labelled z = { 0 };

	broadcast_dots(o, x, y);
	broadcast_dots(o, y, x);
	for (unsigned i = 0; i < x->n; i++) {
		const int k = index_of(y, x->label[i]);
		if (k < 0)
			continue;
		if (index_of(out, x->label[i]) >= 0) {
			z.label[z.n++] = x->label[i];
			lb[batches] = i;
			rb[batches++] = k;
		} else {
			left[sums] = i;
			right[sums++] = k;
		}
	}
	for (unsigned i = 0; i < x->n + y->n; i++) {
		const struct labelled *from = i < x->n ? x : y;
		const char label = i < x->n ? x->label[i] : y->label[i - x->n];
		if (index_of(from == x ? y : x, label) < 0 && z.n < TENSOR_MAX_RANK)
			z.label[z.n++] = label;
	}
	const struct attribute a[] = { { ATTRIBUTE_left, sums, left, 0 },
		                       { ATTRIBUTE_right, sums, right, 0 },
		                       { ATTRIBUTE_left_batch, batches, lb, 0 },
		                       { ATTRIBUTE_right_batch, batches, rb, 0 } };
	z.v = x->v && y->v ? tensor_graph_add(o->d.g, OP_dot, (tensor_value[]){ x->v, y->v }, 2, a, 4, o->err) : 0;
	*x = z;
}

/* Without "->": letters that occur once, in the order of the alphabet, behind those of "...". */
static void usual_result(const char *text, unsigned dots, struct labelled *out)
{
	out->n = 0;
	for (unsigned i = 0; i < dots; i++)
		out->label[out->n++] = (char)(FIRST_DOT + dots - 1 - i);
	for (int c = 'A'; c <= 'z'; c++) {
		const char *first = strchr(text, c);
		if (first && !strchr(first + 1, c) && ((c >= 'a') || c <= 'Z') && out->n < TENSOR_MAX_RANK)
			out->label[out->n++] = (char)c;
	}
}

/* Dimensions of the result in its order. */
static void arrange(struct op *o, struct labelled *x, const struct labelled *out)
{
	unsigned axes[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < out->n; i++) {
		const int k = index_of(x, out->label[i]);
		if (k < 0 || x->n != out->n) {
			op_refuse(o, "attribute equation has a result with letters that no term has");
			return;
		}
		axes[i] = (unsigned)k;
	}
	o->out[0] = draw_transpose(&o->d, x->v, axes);
}

/* How many dimensions "..." stands for: those that letters leave, in the term where they are most. */
static unsigned dots_of(struct op *o, const char *text)
{
	unsigned max = 0;
	const char *p = text;

	for (uint32_t i = 0; i < o->inputs; i++, p += *p == ',') {
		const size_t length = strcspn(p, ",-");
		unsigned letters = 0;
		bool dots = false;
		for (size_t k = 0; k < length; k++) {
			letters += p[k] != ' ' && p[k] != '.';
			dots = dots || p[k] == '.';
		}
		const unsigned rank = draw_rank(&o->d, o->in[i]);
		if (dots && rank > letters && rank - letters > max)
			max = rank - letters;
		p += length;
	}
	return max;
}

static void drop_missing_dots(struct labelled *x, unsigned rank, unsigned dots)
{
	for (unsigned i = 0; i < x->n && x->n > rank;)
		if (x->label[i] < FIRST_DOT + (char)dots && x->label[i] >= FIRST_DOT)
			drop(x, i);
		else
			i++;
}

static bool read_operand(struct op *o, uint32_t i, const char **p, unsigned dots, struct labelled *x)
{
	const size_t length = strcspn(*p, ",-");

	if (!read_term(o, *p, *p + length, dots, x))
		return false;
	drop_missing_dots(x, draw_rank(&o->d, o->in[i]), dots);
	*p += length + ((*p)[length] == ',');
	x->v = o->in[i];
	if (x->n != draw_rank(&o->d, x->v))
		op_refuse(o, "attribute equation has %u letters for input %u of %u dimensions", x->n, i + 1,
		          draw_rank(&o->d, x->v));
	else
		take_diagonals(o, x);
	return !op_failed(o);
}

/* From the left to the right: letters that are still needed, by the result or by a later term, are kept. */
void op_einsum(struct op *o)
{
	const struct onnx_attribute *a = op_attribute(o, "equation");
	char text[200];
	struct labelled out, x = { 0 }, y, needed;

	if (!a || !a->s.len || a->s.len >= sizeof text || memchr(a->s.data, 0, a->s.len)) {
		op_refuse(o, "there is no attribute equation, or it is too long");
		return;
	}
	memcpy(text, a->s.data, a->s.len);
	text[a->s.len] = 0;
	const char *arrow = strstr(text, "->"), *p = text;
	const unsigned dots = dots_of(o, text);
	if (!arrow)
		usual_result(text, dots, &out);
	else if (!read_term(o, arrow + 2, text + a->s.len, dots, &out))
		return;
	for (uint32_t i = 0; i < o->inputs; i++) {
		if (!read_operand(o, i, &p, dots, &y))
			return;
		needed = out;
		for (const char *rest = p; rest < (arrow ? arrow : text + strlen(text)); rest++)
			if (*rest > ' ' && *rest != '.' && *rest != ',' && needed.n < TENSOR_MAX_RANK &&
			    index_of(&needed, *rest) < 0)
				needed.label[needed.n++] = *rest;
		if (i == 0) {
			x = y;
			sum_alone(o, &x, NULL, &needed);
			continue;
		}
		sum_alone(o, &y, &x, &needed);
		multiply(o, &x, &y, &needed);
	}
	sum_alone(o, &x, NULL, &out);
	if (!op_failed(o))
		arrange(o, &x, &out);
}

/* ---- determinants */

/* Step k of an elimination with partial pivoting, as solve does it. Its second output is the pivot, with the sign that
 * exchanging rows has. */
static const char eliminate[] = GRAPH_ELIMINATION
	"k_each = broadcast k shape=[b] axes=[]\nstays = eq at k_each\nother = neg corner\n"
	"factor = select stays corner other\noutput factor\n";

/* The product of all pivots. Behind a pivot of 0, which ends an elimination, there is nothing but 0 and NaN. */
void op_det(struct op *o)
{
	struct draw *d = &o->d;
	const tensor_value x = op_widen(o, o->in[0]);
	const struct shape s = draw_shape(d, x);
	const uint64_t n = s.rank < 2 ? 0 : s.dim[s.rank - 1], sets = s.rank < 2 ? 0 : shape_part(&s, 0, s.rank - 2);
	const struct graph_size size[] = { { "b", sets }, { "n", n }, { "w", n } };
	struct loop l = { .carried = 1, .stacked = 1, .length = n };
	struct shape out = s;
	char text[2000];

	if (s.rank < 2 || s.dim[s.rank - 2] != n || n > INT32_MAX || !tensor_is_float(draw_type(d, x))) {
		op_refuse(o, "expected square matrices of floats");
		return;
	}
	out.rank -= 2;
	if (shape_elements(&s) == 0) {
		o->out[0] = graph_full(d->g, 1, draw_type(d, o->in[0]), &out, o->err);
		return;
	}
	snprintf(text, sizeof text, eliminate, tensor_type_name(draw_type(d, x)));
	if (!graph_text_read(&l.body, "Det", text, strlen(text), size, 3, o->err))
		return;
	const tensor_value matrices = draw_dims(d, x, 3, (const uint64_t[]){ sets, n, n }),
			   step = draw_iota(d, JIT_TYPE_I32, &(struct shape){ .rank = 1, .dim = { n } }, 0),
			   done = matrices && step
	                                  ? graph_scan(d->g, &l, (const tensor_value[]){ matrices, step }, 2, o->err)
	                                  : 0;
	loop_close(&l);
	const tensor_value factors = done ? done + 1 : 0; /* [n,sets] */
	const tensor_value zero = draw_reduce(d, OP_reduce_any, draw_with(d, OP_eq, factors, 0), 1, false),
			   product = draw_reduce(d, OP_reduce_product, factors, 1, false);
	const tensor_value y = draw_select(d, zero, draw_scalar(d, 0, draw_type(d, product)), product);
	o->out[0] = draw_convert(d, draw_reshape(d, y, &out), draw_type(d, o->in[0]));
}
