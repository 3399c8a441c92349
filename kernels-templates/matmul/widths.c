/* kernels-templates/matmul/widths.c - how wide tiles of a matmul should be, and which widths there are:
 * matmul_widths().
 *
 * Owns: the choice on cards, by what was measured there. How wide tiles of CPUs are cut is matmul_wide_shape.c, which
 * says the width, too. Writes no IR.
 */
#include "kernels-templates/formats/weight_vectors.h"
#include "kernels-templates/matmul/matmul_dot.h"
#include "kernels-templates/matmul/matmul_mma_piped.h"
#include "kernels-templates/matmul/matmul_mma_shared.h"

static unsigned matrices_of(uint32_t flags) { return flags & KEY_PAIR ? 2 : 1; }

/* ---- products of matrices: which there are */

bool matmul_mma_may_unpack(const struct target *target, const struct weight_format *f)
{
	return target->local_operands && f && f->quants && !f->quants->is_wide;
}

bool matmul_mma_pipes(const struct target *target, const struct weight_format *f, uint64_t k)
{
	const unsigned spans = numerics_spans(k), units = (unsigned)(numerics_pad(k) / spans / VECTORS_UNIT_K);

	if (!f || !target->local_operands || target->shared_bytes <= TARGET_SHARED_BYTES * 4 || spans < 2)
		return false;
	return f->type == DTYPE_Q8_0 ? units % PIPED_STEP_UNITS == 0
	                             : (f->type == DTYPE_F16 || f->type == DTYPE_BF16) && units % 2 == 0;
}

bool matmul_mma_shares(const struct weight_format *f, uint64_t k)
{
	const unsigned spans = numerics_spans(k);
	const bool as_they_lie = f && (f->type == DTYPE_Q8_0 || f->type == DTYPE_F16 || f->type == DTYPE_BF16);

	return spans >= MMA_HALVES &&
	       (as_they_lie || mma_may_load(f, (unsigned)(numerics_pad(k) / spans / VECTORS_UNIT_K)));
}

/* ---- and which are used

What a launch of 512 tokens takes on a card with 132 multiprocessors, as many iterations as fill it: from so many row
 * blocks on it has enough tiles of 128 rows and 64 columns. */
enum { MULTIPROCESSORS = 132, TOKENS = 512, MANY_BLOCKS = 64 };

static uint64_t rounds(uint64_t blocks, unsigned columns)
{
	return ((blocks + 3) / 4 * (TOKENS / columns) + MULTIPROCESSORS - 1) / MULTIPROCESSORS;
}

/* Of a card's share. */
static uint64_t row_blocks_of(const struct target *target, uint64_t rows, uint32_t flags)
{
	return numerics_pad(rows) / PRODUCT_ROWS * matrices_of(flags) / target->cards;
}

static bool widens(const struct target *target, const struct weight_format *f, uint64_t rows, uint64_t k,
                   uint32_t flags)
{
	const uint64_t blocks = row_blocks_of(target, rows, flags);

	return matmul_mma_pipes(target, f, k) && blocks >= MANY_BLOCKS &&
	       2 * rounds(blocks, TEMPLATE_MMA_WIDE) <= rounds(blocks, TEMPLATE_MMA_SHARED);
}

bool matmul_mma_many_rows(const struct target *target, const struct key *key)
{
	return row_blocks_of(target, key->rows, key->flags) >= MANY_BLOCKS;
}

/* Totals of all columns lie in shared bytes. */
unsigned matmul_mma_narrow_n(uint64_t k, uint32_t flags)
{
	unsigned jobs = numerics_spans(k) * matrices_of(flags), columns = TEMPLATE_MMA_COLUMNS;
	while (columns > IR_TILE && jobs * columns * PRODUCT_ROWS * 4 > TARGET_SHARED_BYTES)
		columns /= 2;
	return columns;
}

/* Floats are rounded to the weights' type, in the bounded class. */
static bool multiplies(const struct key *key, const struct target *target, const struct weight_format *f)
{
	if (key->activation == key_type(DTYPE_F32))
		return key->numerics == NUMERICS_BOUNDED && (f == &wf_f16 || f == &wf_bf16);
	return key->activation == key_type(DTYPE_Q8_0) && (f == &wf_q8_0 || matmul_mma_may_unpack(target, f));
}

/* Of shared operands two waves have half of the spans each. */
static void set_products(struct matmul_widths *w, const struct key *key, const struct target *target)
{
	const struct weight_format *f = weight_format_find(key_dtype(key->weight));

	if (!multiplies(key, target, f))
		return;
	w->narrow = w->products = matmul_mma_narrow_n(key->k, key->flags);
	if (widens(target, f, key->rows, key->k, key->flags))
		w->products = TEMPLATE_MMA_WIDE;
	else if (target->local_operands && matmul_mma_shares(f, key->k))
		w->products = TEMPLATE_MMA_SHARED;
}

/* ---- row blocks side by side */

static unsigned sides_of(const struct key *key) { return key->schedule & TEMPLATE_SIDES; }

enum { LAUNCH = 5800000 /* picoseconds */ };

/* The time that a matmul of key's tiles takes a card, in picoseconds. A block takes so long for a weight of its waves'
 * spans and once more for each column, and as many blocks as there are multiprocessors as long as one. The weights come
 * from memory once; further tiles find them in the L2 cache. Of both times the longer counts, and a part of the other.
 * The numbers are fitted to 900 launches of 13 matrices in BF16 on an H100, and choose tiles whose launches and passes
 * are within 3 % of the best. */
static uint64_t cost(const struct target *target, const struct key *key, uint32_t tokens)
{
	enum { UNITS = 132, BYTES_A_US = 2500000, AGAIN = 11 /* in how many tiles */, PART = 4 };
	static const uint16_t of_weight[MATMUL_SIDES + 1] = { [1] = 3700, [2] = 7600, [4] = 16200 };
	static const uint16_t of_column[MATMUL_SIDES + 1] = { [1] = 4500, [2] = 5200, [4] = 7600 };
	const unsigned sides = sides_of(key);
	const uint64_t spans = numerics_spans(key->k), span = numerics_pad(key->k) / spans,
		       together = matmul_recipe(key, target).together, row_blocks = numerics_pad(key->rows) / 32,
		       tiles = (tokens + key->tile_n - 1) / key->tile_n,
		       blocks = (row_blocks + together - 1) / together * tiles,
		       bytes = template_reads(key, row_blocks, 0, tokens).weights,
		       computing = (blocks + UNITS - 1) / UNITS * span *
	                           (of_weight[sides] + of_column[sides] * key->tile_n),
		       reading = bytes * 1000 / BYTES_A_US * 1000 * (AGAIN + tiles - 1) / AGAIN;

	return computing > reading ? computing + reading / PART : reading + computing / PART;
}

/* The sides of least cost, of which fewer are chosen where they are as good. */
static uint64_t best_sides(const struct target *target, struct key *key, uint32_t tokens)
{
	uint64_t min = UINT64_MAX;
	uint32_t best = 0;

	for (unsigned sides = matrices_of(key->flags); sides <= MATMUL_SIDES; sides *= 2) {
		key->schedule = TEMPLATE_SIDE_BY_SIDE | sides;
		const uint64_t c = cost(target, key, tokens);
		best = c < min ? key->schedule : best;
		min = c < min ? c : min;
	}
	key->schedule = best;
	return min;
}

static void set_floats(struct matmul_widths *w, const struct key *of, const struct target *target, uint32_t tokens)
{
	/* Fewer than 4 tokens are better off with one row block, whose wave has more weights on their way. Tiles of
	 * many tokens are few sorts, which prompts of all lengths share; a rest of wide ones is cut once more. */
	static const uint8_t small[] = { 2, 3, 4, 5, 6 }, some[] = { 4, 5, 6, 8 }, many[] = { 8, TEMPLATE_MAX_COLUMNS };
	enum { SMALL = 4, SOME = 17, MANY = 33 };
	const uint8_t *widths = tokens < SOME ? small : tokens < MANY ? some : many;
	const unsigned n = tokens < SOME ? sizeof small : tokens < MANY ? sizeof some : sizeof many;
	struct key key = { .kind = KEY_MATMUL,
		           .target = (uint8_t)target->id,
		           .weight = of->weight,
		           .activation = of->activation,
		           .rows = of->rows,
		           .k = of->k,
		           .tile_n = TEMPLATE_MAX_COLUMNS,
		           .flags = of->flags & KEY_PAIR,
		           .schedule = TEMPLATE_SIDE_BY_SIDE | MATMUL_SIDES };
	uint64_t min = UINT64_MAX;

	if (tokens < SMALL || matmul_recipe(&key, target).engine != MATMUL_SIDE_BY_SIDE)
		return;
	for (unsigned i = 0; i < n && widths[i] <= tokens; i++) {
		key.tile_n = widths[i];
		const uint32_t rest = matmul_recipe(&key, target).short_last ? 0 : tokens % key.tile_n;
		const uint64_t c = best_sides(target, &key, tokens) + (rest ? LAUNCH : 0);
		if (c < min) {
			min = c;
			w->side_by_side = key.tile_n;
			w->schedule = key.schedule;
		}
	}
}

/* ---- all engines */

struct matmul_widths matmul_widths(const struct key *key, const struct target *target, uint32_t columns)
{
	struct matmul_widths w = { .plain = target->lane_bytes ? TEMPLATE_MAX_COLUMNS : MATMUL_MAX_COLUMNS,
		                   .routes = target->lane_bytes ? MATMUL_EXPERTS_COLUMNS / 2 : MATMUL_EXPERTS_COLUMNS };

	if (!target->lane_bytes)
		matmul_wide_widths(key, target, columns, &w);
	if (target->has_mma)
		set_products(&w, key, target);
	if (target->has_parts)
		set_floats(&w, key, target, columns);
	return w;
}
