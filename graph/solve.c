/* graph/solve.c - solve: a x = b by elimination with partial pivoting, in one fixed order.
 *
 * Owns: the order. Step k takes as its pivot the first row from k on whose element of column k has the greatest
 * absolute value, and exchanges it with row k; a NaN counts as the greatest. Of each row i below it, l = a[i][k] /
 * a[k][k], and every element to the right of column k, of a and of b, becomes fma(-l, element of row k, element). Then,
 * from the last row up, x[k] = b[k] / a[k][k], and every b[i] above becomes fma(-a[i][k], x[k], b[i]). Elements of 16
 * bits are computed in f32. A singular matrix gives infinities or NaNs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval_rules.h"
#include "graph/infer.h"
#include "graph/transform_rules.h"

/* ---- types and shapes */

bool infer_solve(struct inference *x)
{
	const struct shape *a = x->shape[0], *b = x->shape[1];
	char found[SHAPE_TEXT_MAX], other[SHAPE_TEXT_MAX];
	bool fits = tensor_is_float(x->type[0]) && x->type[0] == x->type[1] && a->rank >= 2 && a->rank == b->rank &&
	            a->dim[a->rank - 1] == a->dim[a->rank - 2];

	for (unsigned i = 0; fits && i + 1 < a->rank; i++)
		fits = a->dim[i] == b->dim[i];
	return fits ? infer_result(x, x->type[1], b)
	            : error_set(x->err, ERROR_ARGUMENT,
	                        "solve of %s and %s, expected equal types of floats, [..,n,n] and [..,n,m]",
	                        shape_text(x->type[0], a, found), shape_text(x->type[1], b, other));
}

/* ---- meaning */

#define ELIMINATION(T, name, absolute, fused) \
	static uint64_t name##_pivot(const T *a, uint64_t n, uint64_t k) \
	{ \
		uint64_t best = k; \
		for (uint64_t i = k + 1; i < n; i++) { \
			const T x = absolute(a[best * n + k]), y = absolute(a[i * n + k]); \
			if (!isnan(x) && (isnan(y) || x < y)) \
				best = i; \
		} \
		return best; \
	} \
	static void name##_exchange(T *a, uint64_t m, uint64_t i, uint64_t k) \
	{ \
		for (uint64_t j = 0; j < m && i != k; j++) { \
			const T x = a[i * m + j]; \
			a[i * m + j] = a[k * m + j]; \
			a[k * m + j] = x; \
		} \
	} \
	static void name(T *a, T *b, uint64_t n, uint64_t m) \
	{ \
		for (uint64_t k = 0; k < n; k++) { \
			const uint64_t p = name##_pivot(a, n, k); \
			name##_exchange(a, n, p, k); \
			name##_exchange(b, m, p, k); \
			for (uint64_t i = k + 1; i < n; i++) { \
				const T l = a[i * n + k] / a[k * n + k]; \
				for (uint64_t j = k + 1; j < n; j++) \
					a[i * n + j] = fused(-l, a[k * n + j], a[i * n + j]); \
				for (uint64_t j = 0; j < m; j++) \
					b[i * m + j] = fused(-l, b[k * m + j], b[i * m + j]); \
			} \
		} \
		for (uint64_t k = n; k-- > 0;) \
			for (uint64_t j = 0; j < m; j++) { \
				const T x = b[k * m + j] / a[k * n + k]; \
				b[k * m + j] = x; \
				for (uint64_t i = 0; i < k; i++) \
					b[i * m + j] = fused(-a[i * n + k], x, b[i * m + j]); \
			} \
	}
ELIMINATION(float, solve_f32, fabsf, fmaf)
ELIMINATION(double, solve_f64, fabs, fma)

static void load(void *to, int wide, const struct tensor *t, uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (wide == JIT_TYPE_F32)
			((float *)to)[i] = tensor_get(t, first + i).f;
		else
			((double *)to)[i] = tensor_get(t, first + i).d;
}

bool eval_solve(struct evaluation *e)
{
	const struct shape *s = &e->in[1]->shape;
	const int wide = tensor_wide_type(e->in[0]->type);
	const uint64_t n = s->dim[s->rank - 2], m = s->dim[s->rank - 1], sets = shape_part(s, 0, s->rank - 2);
	const size_t size = wide == JIT_TYPE_F32 ? sizeof(float) : sizeof(double);
	char *a = calloc((size_t)(n * n + n * m) + 1, size), *b = a ? a + (size_t)(n * n) * size : NULL;

	if (!a)
		return error_set(e->err, ERROR_MEMORY, "there is no memory to solve equations");
	for (uint64_t set = 0; set < sets; set++) {
		load(a, wide, e->in[0], set * n * n, n * n);
		load(b, wide, e->in[1], set * n * m, n * m);
		if (wide == JIT_TYPE_F32)
			solve_f32((float *)(void *)a, (float *)(void *)b, n, m);
		else
			solve_f64((double *)(void *)a, (double *)(void *)b, n, m);
		for (uint64_t i = 0; i < n * m; i++) {
			union number x = { .u = 0 };
			if (wide == JIT_TYPE_F32)
				x.f = ((const float *)(const void *)b)[i];
			else
				x.d = ((const double *)(const void *)b)[i];
			tensor_put(&e->out[0], set * n * m + i, x);
		}
	}
	free(a);
	return true;
}

/* ---- derivatives and batches */

static tensor_value put_product(struct transform *t, tensor_value a, int64_t sum_a, tensor_value b, int64_t sum_b)
{
	int64_t batch[TENSOR_MAX_RANK];
	const uint32_t rank = a ? shape_of_value(t, a)->rank : 2;
	const struct attribute at[] = { { ATTRIBUTE_left, 1, &sum_a, 0 },
		                        { ATTRIBUTE_right, 1, &sum_b, 0 },
		                        { ATTRIBUTE_left_batch, rank - 2, batch, 0 },
		                        { ATTRIBUTE_right_batch, rank - 2, batch, 0 } };

	for (uint32_t i = 0; i + 2 < rank; i++)
		batch[i] = i;
	return put_node(t, OP_dot, (tensor_value[]){ a, b }, 2, at, 4);
}

/* By b it is the solution g of the transposed equations; by a, -g x'. */
bool vjp_solve(struct transform *t, const struct tensor_node *n)
{
	const tensor_value a = operand_of(t, n, 0);
	const unsigned rank = shape_of_value(t, a)->rank;
	unsigned order[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < rank; i++)
		order[i] = i + 2 < rank ? i : 2 * rank - 3 - i;
	const tensor_value g = put_two(t, OP_solve, graph_transpose(t->to, a, order, t->err), t->d[n->first]);
	if (!g || (vjp_wants(t, n, 1) && !vjp_give(t, n, 1, g)))
		return false;
	return !vjp_wants(t, n, 0) ||
	       vjp_give(t, n, 0, put_one(t, OP_neg, put_product(t, g, rank - 1, t->is[n->first], rank - 1)));
}

/* a dx = db - da x */
bool jvp_solve(struct transform *t, const struct tensor_node *n)
{
	const tensor_value da = t->d[n->operand[0]], db = t->d[n->operand[1]], a = operand_of(t, n, 0);
	const unsigned rank = shape_of_value(t, a)->rank;
	tensor_value right = db;

	if (da) {
		const tensor_value p = put_product(t, da, rank - 1, t->is[n->first], rank - 2);
		right = db ? put_two(t, OP_sub, db, p) : put_one(t, OP_neg, p);
	}
	t->d[n->first] = put_two(t, OP_solve, a, right);
	return t->d[n->first] != 0;
}

bool vmap_solve(struct transform *t, const struct tensor_node *n)
{
	t->is[n->first] = put_two(t, OP_solve, vmap_operand(t, n, 0), vmap_operand(t, n, 1));
	return t->is[n->first] != 0;
}
