/* loaders/onnx/op_ngrams.c - how often runs of numbers from a list stand in rows, as TfIdfVectorizer counts them. */
#include <inttypes.h>
#include <string.h>

#include "loaders/onnx/operators.h"

struct grams {
	const struct onnx_attribute *pool, *counts, *columns;
	uint64_t rows, positions; /* of the input */
	int64_t min, max, skips;
	int64_t width; /* columns of the result */
};

static const struct onnx_attribute *list_of(struct op *o, const char *name)
{
	const struct onnx_attribute *a = op_attribute(o, name);

	if (!a)
		op_refuse(o, "there is no attribute %s", name);
	return a;
}

static bool read_grams(struct op *o, struct grams *g)
{
	const struct shape s = draw_shape(&o->d, o->in[0]);
	const int type = draw_type(&o->d, o->in[0]);

	*g = (struct grams){ .pool = list_of(o, "pool_int64s"),
		             .counts = list_of(o, "ngram_counts"),
		             .columns = list_of(o, "ngram_indexes"),
		             .min = op_int(o, "min_gram_length", 1),
		             .max = op_int(o, "max_gram_length", 1),
		             .skips = op_int(o, "max_skip_count", 0) };
	if (op_failed(o))
		return false;
	if (s.rank < 1 || s.rank > 2 || (type != JIT_TYPE_I32 && type != JIT_TYPE_I64))
		op_refuse(o, "the input has %u dimensions of %s, expected 1 or 2 of int32 or int64", s.rank,
		          tensor_type_name(type));
	else if (g->min < 1 || g->max < g->min || g->max > 64 || g->skips < 0 || g->skips > 1 << 10)
		op_refuse(o, "runs of %" PRId64 " to %" PRId64 " numbers, %" PRId64 " apart", g->min, g->max, g->skips);
	for (size_t i = 0; i < g->columns->n_ints && !op_failed(o); i++)
		if (g->columns->ints[i] < 0 || g->columns->ints[i] >= 1 << 24)
			op_refuse(o, "attribute ngram_indexes has the number %" PRId64, g->columns->ints[i]);
		else if (g->columns->ints[i] >= g->width)
			g->width = g->columns->ints[i] + 1;
	g->rows = s.rank == 2 ? s.dim[0] : 1;
	g->positions = s.rank ? s.dim[s.rank - 1] : 0;
	return !op_failed(o);
}

/* The numbers of the pool that runs of n numbers are made of: *first.. of them; false: err. */
static bool part_of(struct op *o, const struct grams *g, int64_t n, uint64_t *first, uint64_t *numbers)
{
	const size_t i = (size_t)n - 1;

	*first = *numbers = 0;
	if (i >= g->counts->n_ints)
		return true;
	const int64_t from = g->counts->ints[i],
		      to = i + 1 < g->counts->n_ints ? g->counts->ints[i + 1] : (int64_t)g->pool->n_ints;
	if (from < 0 || to < from || to > (int64_t)g->pool->n_ints || (to - from) % n) {
		op_refuse(o,
		          "attribute ngram_counts gives runs of %" PRId64 " numbers the positions %" PRId64
		          " to %" PRId64,
		          n, from, to);
		return false;
	}
	*first = (uint64_t)from;
	*numbers = (uint64_t)(to - from);
	return true;
}

/* How often each of the runs stands in each row, its numbers `apart`: [rows,runs]. x: [rows,positions] of i64, pool:
 * [n,runs,1]; 0: they do not fit in a row. */
static tensor_value count_runs(struct op *o, const struct grams *g, tensor_value x, tensor_value pool, uint64_t n,
                               uint64_t apart)
{
	struct draw *d = &o->d;
	tensor_value all = 0;

	if (apart * (n - 1) >= g->positions)
		return 0;
	const uint64_t starts = g->positions - apart * (n - 1);
	for (uint64_t k = 0; k < n; k++) {
		const tensor_value seen = draw_expand(d, draw_slice(d, x, 1, apart * k, apart * k + starts, 1), 1),
				   run = draw_squeeze(d, draw_slice(d, pool, 0, k, k + 1, 1), 0);
		const tensor_value same = draw_binary(d, OP_eq, seen, run);
		all = all ? draw_binary(d, OP_and, all, same) : same;
	}
	return draw_reduce(d, OP_reduce_sum, draw_convert(d, all, JIT_TYPE_F32), 4, false);
}

/* The sum of the counts at all distances. Single numbers have none. */
static tensor_value count_all(struct op *o, const struct grams *g, tensor_value x, uint64_t n, uint64_t first,
                              uint64_t runs)
{
	struct draw *d = &o->d;
	const tensor_value pool =
		draw_expand(d,
	                    draw_swap(d,
	                              draw_dims(d, op_constant_ints(o, g->pool->ints + first, runs * n), 2,
	                                        (const uint64_t[]){ runs, n }),
	                              0, 1),
	                    2);
	tensor_value sum =
		graph_full(d->g, 0, JIT_TYPE_F32, &(struct shape){ .rank = 2, .dim = { g->rows, runs } }, o->err);

	for (uint64_t apart = 1; apart <= (n == 1 ? 1 : (uint64_t)g->skips + 1) && !op_failed(o); apart++) {
		const tensor_value more = count_runs(o, g, x, pool, n, apart);
		if (more)
			sum = draw_binary(d, OP_add, sum, more);
	}
	return sum;
}

/* Counts go to the columns that the attribute says, and are weighted there. */
static tensor_value weigh(struct op *o, const struct grams *g, tensor_value y)
{
	struct draw *d = &o->d;
	const struct onnx_attribute *w = op_attribute(o, "weights");
	const struct shape row = { .rank = 1, .dim = { (uint64_t)g->width } };
	struct tensor t;

	if (op_is(o, "mode", "", "TF"))
		return y;
	const bool both = op_is(o, "mode", "", "TFIDF");
	if (!both && !op_is(o, "mode", "", "IDF")) {
		op_refuse(o, "attribute mode is none of TF, IDF and TFIDF");
		return 0;
	}
	if (w && w->n_floats != (size_t)g->width) {
		op_refuse(o, "attribute weights has %zu numbers, expected %" PRId64, w->n_floats, g->width);
		return 0;
	}
	if (!tensor_make(&t, JIT_TYPE_F32, &row, o->err))
		return 0;
	for (int64_t i = 0; i < g->width; i++)
		((float *)t.data)[i] = w ? w->floats[i] : 1;
	const tensor_value weights = tensor_graph_constant(d->g, &t, o->err);
	tensor_free(&t);
	return both ? draw_binary(d, OP_mul, y, weights)
	            : draw_select(d, draw_with(d, OP_gt, y, 0), weights, draw_scalar(d, 0, JIT_TYPE_F32));
}

void op_tf_idf(struct op *o)
{
	struct draw *d = &o->d;
	uint64_t id = 0, first, numbers;
	struct grams g;

	if (!read_grams(o, &g))
		return;
	const tensor_value x =
		draw_dims(d, draw_convert(d, o->in[0], JIT_TYPE_I64), 2, (const uint64_t[]){ g.rows, g.positions });
	const uint64_t width = (uint64_t)g.width;
	tensor_value y =
		graph_full(d->g, 0, JIT_TYPE_F32, &(struct shape){ .rank = 2, .dim = { g.rows, width } }, o->err);
	for (int64_t k = 1; k <= g.max && !op_failed(o); k++) {
		if (!part_of(o, &g, k, &first, &numbers))
			return;
		const uint64_t runs = numbers / (uint64_t)k;
		if (id + runs > g.columns->n_ints) {
			op_refuse(o, "attribute ngram_indexes has %zu numbers, and there are more runs",
			          g.columns->n_ints);
		} else if (runs && k >= g.min) {
			const struct shape part = { .rank = 2, .dim = { g.rows, runs } };
			const tensor_value to = draw_broadcast(d, op_constant_ints(o, g.columns->ints + id, runs),
			                                       &part),
					   n = count_all(o, &g, x, (uint64_t)k, first, runs);
			y = draw_with_mode(d, OP_scatter_along, (const tensor_value[]){ y, to, n }, 1, SCATTER_ADD);
		}
		id += runs;
	}
	y = weigh(o, &g, y);
	o->out[0] = draw_rank(d, o->in[0]) == 1 ? draw_dims(d, y, 1, &width) : y;
}
