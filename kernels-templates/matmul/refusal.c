/* kernels-templates/matmul/refusal.c - which matmuls there are no kernels for, and why, in one sentence.
 *
 * Owns: the rules, and their order: of several that a key breaks the first one is told. They are asked once, by
 * matmul_recipe(); schedules have rules of their own (matmul_schedule.c). Writes no IR.
 */
#include "kernels-templates/matmul/matmul_dot.h"
#include "kernels-templates/matmul/recipe.h"

/* What a rule looks at. */
struct question {
	const struct key *key;
	const struct target *target;
	const struct matmul_recipe *r;
};

static bool has(const struct question *q, uint32_t flags) { return q->key->flags & flags; }
static bool by_waves(const struct question *q) { return q->target->lane_bytes && q->target->waves > 1; }
static bool by_products(const struct question *q) { return q->r->engine == MATMUL_PRODUCTS; }

/* ---- totals and inputs in shared bytes */

/* Totals of so many jobs, each of all columns. */
static uint64_t totals_bytes(const struct question *q, unsigned jobs, unsigned columns)
{
	return (uint64_t)(jobs < q->target->waves ? q->target->waves : jobs) * columns * 128;
}

static unsigned jobs_of(const struct question *q) { return numerics_spans(q->key->k) * (has(q, KEY_PAIR) ? 2 : 1); }

static uint64_t made_bytes(const struct matmul_recipe *r) { return r->floats_bytes + r->in_bytes + r->scales_bytes; }

static const char *refuse_staged(const struct question *q)
{
	/* Products of matrices have what copies ahead leave, which are of so many bytes of each wave at least. */
	enum { COPIES_MIN = 3 << 10, MAX_K = 1 << 16 };
	const struct target *t = q->target;
	const bool products = q->r->awaited && by_products(q);
	uint64_t totals = totals_bytes(q, jobs_of(q), q->r->columns), own = products ? ir_local_size(q->r->own) : 0;
	const uint64_t max = products ? t->block_bytes - t->waves * COPIES_MIN : matmul_shared(t);

	/* More of those that have several row blocks side by side. */
	if (!q->r->int8 && t->has_parts && !q->r->awaited)
		totals = totals_bytes(q, t->waves * MATMUL_SIDES, q->key->tile_n);
	if (q->r->source != MATMUL_STAGED || q->key->tile_n > TEMPLATE_MAX_COLUMNS)
		return "inputs of several columns are staged by groups of waves with many shared bytes";
	return q->key->k <= MAX_K && made_bytes(q->r) + totals + t->waves * own <= max
	               ? NULL
	               : "what is staged does not fit the shared bytes of a group";
}

static const char *refuse_normed(const struct question *q)
{
	if (!has(q, KEY_NORM_IN))
		return has(q, KEY_CENTRED) ? "without a norm there is no mean to subtract" : NULL;
	if (has(q, KEY_AWAITED))
		return NULL; /* which does it its own way */
	if (!by_waves(q) || has(q, KEY_ENGINE | KEY_BY_HEAD | KEY_EXPERTS))
		return "norms are made inside by groups of waves, for plain tiles";
	if (q->r->source == MATMUL_STAGED)
		return refuse_staged(q);
	/* Beside the totals of as many jobs as there may be. */
	const uint64_t totals = totals_bytes(q, 2 * numerics_spans(q->key->k), q->key->tile_n);
	return q->key->activation && q->key->k <= TARGET_SHARED_BYTES &&
	                       made_bytes(q->r) + totals <= TARGET_SHARED_BYTES
	               ? NULL
	               : "the norm of a tile does not fit the shared bytes of a group";
}

static const char *refuse_awaited(const struct question *q)
{
	const uint32_t known = KEY_AWAITED | KEY_NORM_IN | KEY_CENTRED | KEY_MMA |
	                       (KEY_EPILOGUE & ~(uint32_t)(KEY_GATED | KEY_ADDED | KEY_SCALED));
	const struct key *key = q->key;

	if (!has(q, KEY_AWAITED))
		return NULL;
	if (!by_waves(q) || has(q, ~known))
		return "inputs are awaited by groups of waves, for plain tiles";
	if (by_products(q) && (!q->target->local_operands || q->r->normed || !q->r->int8 || key->k % MATMUL_PADDED_K ||
	                       key->tile_n > IR_TILE))
		return "of products of matrices, 16 columns at most of int8 blocks are awaited, k a multiple of 256";
	if (key->tile_n != 1 || by_products(q))
		return refuse_staged(q);
	if (q->r->int8 && key->k % 32)
		return "int8 blocks that are awaited are whole";
	/* Norms have all words in registers; others come in batches. */
	return (!q->r->normed || key->k <= matmul_await_max(q->target)) &&
	                       made_bytes(q->r) + totals_bytes(q, jobs_of(q), 1) <= matmul_shared(q->target)
	               ? NULL
	               : "what is awaited does not fit the shared bytes of a group";
}

/* ---- flags */

static const char *refuse_epilogue(const struct question *q)
{
	const uint32_t flags = q->key->flags,
		       beside_greatest = KEY_GREATEST | KEY_BIAS | KEY_AWAITED | KEY_NORM_IN | KEY_CENTRED | KEY_MMA;

	if (has(q, KEY_GREATEST) && (flags & ~beside_greatest || q->key->act))
		return "the greatest results are those of whole row blocks";
	if (has(q, KEY_EXPERTS) && has(q, KEY_ENGINE | KEY_RESIDUAL | KEY_BY_HEAD))
		return "weights chosen by data have plain tiles";
	if (flags & ~(uint32_t)(KEY_EPILOGUE | KEY_SOURCE | KEY_ENGINE) || (has(q, KEY_BIAS2) && !has(q, KEY_PAIR)) ||
	    (has(q, KEY_SCALED) && !has(q, KEY_ADDED)) ||
	    has(q, KEY_PAIR) + has(q, KEY_RESIDUAL) + has(q, KEY_GATED) > 1)
		return "these flags do not go together";
	if (q->key->act >= KEY_ACT_COUNT || (!q->key->act && has(q, KEY_PAIR | KEY_GATED)))
		return "gates have an activation function";
	if (q->key->act && has(q, KEY_RESIDUAL))
		return "what is added has no activation function";
	return NULL;
}

static const char *refuse_experts(const struct question *q)
{
	const struct key *key = q->key;

	if (!has(q, KEY_EXPERTS))
		return (key->heads && !has(q, KEY_BY_HEAD)) || key->kv_heads
		               ? "only weights chosen by data have slots"
		               : NULL;
	if (key->tile_n & (key->tile_n - 1) || key->tile_n > MATMUL_EXPERTS_COLUMNS || key->row_blocks != 1)
		return "weights chosen by data have tiles of a power of two, and a row block";
	if (key->tile_n == 1 ? key->heads == 0 || key->heads > ROUTE_MAX || key->kv_heads == 0 ||
	                               key->kv_heads > key->heads || key->heads % key->kv_heads
	                     : key->heads || key->kv_heads)
		return "slots are those of whole columns, and only tiles of one column have them";
	if (matmul_expert_bytes(key, q->r->block_bytes) > INT32_MAX)
		return "a matrix is too large";
	return NULL;
}

/* ---- lanes that own a row each: formats, shapes, and sizes that 32-bit displacements hold */

static const char *refuse_formats(const struct question *q)
{
	const struct weight_format *f = q->r->format;
	const bool pairs = f == &wf_bf16_dot2;

	if (!f)
		return "this weight format is not computed with";
	if (q->key->activation != key_type(DTYPE_F32) && !pairs && !(q->r->int8 && weight_has_int8(f)))
		return "this activation format is not computed with";
	if (pairs != (q->key->numerics == NUMERICS_BOUNDED))
		return "pairs of BF16 are of the bounded class, and alone are";
	if (pairs && has(q, KEY_EXPERTS | KEY_BY_HEAD))
		return "experts and matrices by head take no pairs of BF16";
	return NULL;
}

static bool heads_fit(const struct key *key, unsigned columns)
{
	return key->flags == KEY_BY_HEAD && !key->act && key->row_blocks == 1 && key->heads > 0 && key->heads <= 4096 &&
	       key->head_dim >= key->rows && matmul_in_width(key) * 4 * columns <= INT32_MAX / 2 &&
	       (uint64_t)key->heads * key->head_dim * 4 * columns <= INT32_MAX / 2;
}

/* columns, row_blocks: as many as the engine does. */
static const char *refuse_shape(const struct question *q, unsigned columns, unsigned row_blocks)
{
	const struct key *key = q->key;

	if (key->rows == 0 || key->k == 0 || key->k % dtype_table[q->r->format->type].block != 0)
		return "rows and k must be positive, k a multiple of the weights' block";
	if (key->tile_n == 0 || key->tile_n > columns)
		return "tile_n must be 1 or more, and no more columns than the engine has in a tile";
	if (key->row_blocks == 0 || key->row_blocks > row_blocks)
		return "row_blocks must be 1 or more, and no more than the engine does at once";
	if (q->r->block_bytes > INT32_MAX / 2 || numerics_pad(key->k) * 4 * columns > INT32_MAX / 2)
		return "k is too large";
	if (numerics_pad(key->rows) * 4 * columns > INT32_MAX)
		return "there are too many rows";
	if (has(q, KEY_BY_HEAD) && !heads_fit(key, columns))
		return "matrices by head have 1 to 4096 heads, results no closer than rows, and nothing else is done";
	return NULL;
}

static const char *refuse_lanes(const struct question *q, unsigned columns, unsigned row_blocks)
{
	const char *why = refuse_formats(q);

	why = why ? why : refuse_shape(q, columns, row_blocks);
	return why ? why : refuse_epilogue(q);
}

/* ---- products of matrices */

static bool has_columns(const struct question *q)
{
	const struct key *key = q->key;
	const struct matmul_recipe *r = q->r;
	const unsigned n = key->tile_n;

	if (n >= TEMPLATE_MMA_SHARED)
		return (n == TEMPLATE_MMA_WIDE && r->operands == MATMUL_RING) ||
		       (n == TEMPLATE_MMA_SHARED && q->target->local_operands && matmul_mma_shares(r->format, key->k));
	return n == IR_TILE || (n == 2 * IR_TILE && n <= matmul_mma_narrow_n(key->k, key->flags));
}

static const char *refuse_operands(const struct question *q)
{
	const struct key *key = q->key;
	const bool same = key->weight == key->activation,
		   floats = same && (key->weight == key_type(DTYPE_F16) || key->weight == key_type(DTYPE_BF16));

	if (!q->r->format || !key->activation)
		return "this weight format is not computed with";
	if (!q->target->has_mma || !q->target->lane_bytes)
		return "this target has no products of matrices";
	if (!(q->r->int8 && (same || q->r->unpacks)) && !floats)
		return "matrices of these formats are not multiplied";
	if (floats != (key->numerics == NUMERICS_BOUNDED))
		return floats ? "products of float matrices are of the bounded class"
		              : "products of integer matrices are of the exact class";
	return NULL;
}

static const char *refuse_products(const struct question *q)
{
	const struct key *key = q->key;
	const uint64_t kp = numerics_pad(key->k);
	const char *why = refuse_operands(q);

	if (why)
		return why;
	if (key->rows == 0 || key->k == 0 || key->k % dtype_table[q->r->format->type].block != 0)
		return "rows and k must be positive, k a multiple of the weights' block";
	if (!q->r->awaited && !has_columns(q))
		return "a tile has 16 columns, or 32 where their totals fit, or 64 or 128 where operands may be shared";
	if (key->tile_n == 0)
		return "a tile has columns";
	if (key->row_blocks != 1)
		return "a unit has 1 row block";
	if (q->r->block_bytes > INT32_MAX / 2 || kp * 2 * TEMPLATE_MMA_COLUMNS > INT32_MAX / 2 || kp * 2 >= 1u << 24)
		return "k is too large";
	if ((int64_t)numerics_pad(key->rows) * 4 * TEMPLATE_MMA_COLUMNS > INT32_MAX)
		return "there are too many rows";
	return refuse_epilogue(q);
}

/* ---- all of it */

static const char *refuse_engine(const struct question *q)
{
	const char *why;

	switch (q->r->engine) {
	case MATMUL_PRODUCTS: return refuse_products(q);
	case MATMUL_LANES_WIDE:
		return q->target->lane_bytes ? "this target has no wide tiles" : refuse_lanes(q, TEMPLATE_MAX_WIDE, 1);
	case MATMUL_SIDE_BY_SIDE: return refuse_lanes(q, TEMPLATE_MAX_COLUMNS, 2);
	case MATMUL_WAVES: why = refuse_lanes(q, TEMPLATE_MAX_COLUMNS, 2); break;
	default: why = refuse_lanes(q, MATMUL_MAX_COLUMNS, 2); break;
	}
	return why ? why : refuse_experts(q);
}

const char *matmul_refusal(const struct key *key, const struct target *target, const struct matmul_recipe *r)
{
	const struct question q = { key, target, r };
	const char *why;

	if ((has(&q, KEY_MMA | KEY_BY_HEAD) || target->lane_bytes) && key->schedule && r->engine != MATMUL_SIDE_BY_SIDE)
		return "there is one schedule for such kernels of cards, and for matrices by head";
	if (has(&q, KEY_BY_HEAD) && has(&q, KEY_ENGINE))
		return "these flags do not go together";
	if ((why = refuse_normed(&q)) || (why = refuse_awaited(&q)))
		return why;
	if (has(&q, KEY_GREATEST) && !(by_waves(&q) && key->rows % 32 == 0))
		return "groups of waves alone keep the greatest results, of whole row blocks";
	return refuse_engine(&q);
}
