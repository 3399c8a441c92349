/* kernels-templates/matmul/recipe.c - which kernel a matmul becomes: recipe.h. What is refused is refusal.c. */
#include "kernels-templates/matmul/recipe.h"

#include "kernels-templates/formats/weight_vectors.h"
#include "kernels-templates/matmul/matmul_dot.h"

static bool has(const struct key *key, uint32_t flag) { return key->flags & flag; }

/* ---- who multiplies */

/* Floats of several columns, on targets whose launches have parts: the schedule says so. */
static bool side_by_side(const struct key *key, const struct target *target)
{
	const enum dtype type = key->weight ? key_dtype(key->weight) : DTYPE_COUNT;
	const unsigned sides = key->schedule & TEMPLATE_SIDES, matrices = has(key, KEY_PAIR) ? 2 : 1;

	return target->has_parts && key->schedule == (TEMPLATE_SIDE_BY_SIDE | sides) &&
	       (sides == 1 || sides == 2 || sides == 4) && sides >= matrices && key->tile_n > 1 &&
	       key->activation == key_type(DTYPE_F32) &&
	       (type == DTYPE_F32 || type == DTYPE_F16 || type == DTYPE_BF16) &&
	       !has(key, KEY_EXPERTS | KEY_BY_HEAD | KEY_AWAITED | KEY_ENGINE);
}

static enum matmul_engine engine_of(const struct key *key, const struct target *target)
{
	if (key->kind != KEY_MATMUL)
		return MATMUL_NO_ENGINE;
	if (has(key, KEY_MMA))
		return MATMUL_PRODUCTS;
	if (has(key, KEY_WIDE))
		return MATMUL_LANES_WIDE;
	if (side_by_side(key, target))
		return MATMUL_SIDE_BY_SIDE;
	return target->lane_bytes ? MATMUL_WAVES : MATMUL_LANES;
}

/* ---- weights */

/* Lanes that own rows read words of two BF16 by activations of that type, where the target multiplies them. */
static const struct weight_format *format_of(const struct key *key, const struct target *target,
                                             enum matmul_engine engine)
{
	const enum dtype activation = key_dtype(key->activation);
	const bool lanes = engine == MATMUL_LANES || engine == MATMUL_LANES_WIDE;

	if (!key->weight)
		return NULL;
	if (!lanes)
		return weight_format_find(key_dtype(key->weight));
	return activation != DTYPE_BF16 || target->has_dot2 ? weight_format_for(key_dtype(key->weight), activation)
	                                                    : NULL;
}

static void set_weights(struct matmul_recipe *r, const struct key *key, const struct target *target)
{
	const uint64_t kp = numerics_pad(key->k);
	const bool lanes = r->engine == MATMUL_LANES || r->engine == MATMUL_LANES_WIDE;

	r->matrices = has(key, KEY_PAIR) ? 2 : 1;
	r->format = format_of(key, target, r->engine);
	if (!r->format)
		return;
	r->block_bytes =
		(int64_t)(lanes ? weight_run_bytes(r->format, kp / weight_element_k(key_dtype(key->activation)))
	                        : weight_vectors_bytes(r->format, (uint32_t)kp));
	r->unpacks = r->engine == MATMUL_PRODUCTS && r->int8 && (r->format->type != DTYPE_Q8_0 || r->awaited) &&
	             matmul_mma_may_unpack(target, r->format);
}

/* ---- inputs */

static enum matmul_source source_of(const struct key *key, const struct target *target)
{
	const bool several = key->tile_n > 1 || (has(key, KEY_AWAITED) && has(key, KEY_MMA)),
		   stages = several && target->lane_bytes && target->waves > 1 &&
	                    target->shared_bytes > TARGET_SHARED_BYTES;

	if (has(key, KEY_AWAITED))
		return stages ? MATMUL_STAGED : MATMUL_AWAITED;
	if (has(key, KEY_NORM_IN))
		return stages ? MATMUL_STAGED : MATMUL_NORMED;
	if (has(key, KEY_WIDE))
		return MATMUL_FROM_PANELS;
	if (has(key, KEY_EXPERTS))
		return MATMUL_FROM_ROUTES;
	return has(key, KEY_BY_HEAD) ? MATMUL_FROM_HEADS : MATMUL_FROM_MEMORY;
}

/* Elements from a column to the next: what a group makes itself of int8 blocks has whole quads of 128. */
static uint64_t column_of(const struct matmul_recipe *r, const struct key *key)
{
	enum { QUAD = 128 };
	const uint64_t kp = numerics_pad(key->k);

	if (r->source == MATMUL_FROM_HEADS)
		return kp * key->heads;
	if (r->source != MATMUL_STAGED)
		return kp;
	if (r->awaited && r->engine == MATMUL_PRODUCTS)
		return kp + MATMUL_COLUMN_PAD;
	return r->int8 && !r->blocks ? (kp + QUAD - 1) / QUAD * QUAD : kp;
}

/* What a group makes for itself, or awaits, lies in its shared bytes. */
static void set_room(struct matmul_recipe *r, const struct key *key)
{
	const uint64_t kp = numerics_pad(key->k), all = r->columns * r->column;
	const bool pads = r->awaited && r->engine == MATMUL_PRODUCTS;

	if (!matmul_makes_input(r))
		return;
	if (r->source == MATMUL_NORMED) { /* floats stay where they are until they are normed */
		r->in_bytes = all * (r->int8 ? 1 : 4);
		r->scales_bytes = r->int8 ? all / 32 * r->scales : 0;
		return;
	}
	if (!r->blocks)
		r->floats_bytes = all * 4;
	if (!r->int8)
		return;
	r->in_bytes = all;
	r->scales_bytes =
		r->blocks ? r->columns * (kp / 32 * r->scales + (pads ? MATMUL_COLUMN_PAD : 0)) : all / 32 * r->scales;
}

static void set_inputs(struct matmul_recipe *r, const struct key *key, const struct target *target)
{
	r->source = source_of(key, target);
	r->int8 = key->activation == key_type(DTYPE_Q8_0);
	r->normed = has(key, KEY_NORM_IN);
	r->centred = has(key, KEY_CENTRED);
	r->awaited = has(key, KEY_AWAITED);
	r->blocks = r->awaited && !r->normed && r->int8;
	r->column = column_of(r, key);
	r->scales = (r->source == MATMUL_STAGED || r->source == MATMUL_AWAITED) && !r->blocks
	                    ? MATMUL_MADE_BLOCK
	                    : sizeof(struct activation_block);
	/* An awaited product leaves totals of half an operand's columns, or of all. */
	r->columns = key->tile_n;
	if (r->awaited && r->engine == MATMUL_PRODUCTS)
		r->columns = key->tile_n <= MATMUL_HALF_TILE ? MATMUL_HALF_TILE : 2 * MATMUL_HALF_TILE;
	set_room(r, key);
}

/* ---- a tile */

/* Of products whose tiles all waves share: in a ring where the target copies and the weights lie as operands do. */
static void set_operands(struct matmul_recipe *r, const struct key *key, const struct target *target)
{
	if (r->engine != MATMUL_PRODUCTS || key->tile_n < TEMPLATE_MMA_SHARED || !r->format)
		return;
	r->operands = MATMUL_SHARED;
	r->sides = 2;
	r->spans = 2;
	if (!matmul_mma_pipes(target, r->format, key->k))
		return;
	const bool wide = key->tile_n == TEMPLATE_MMA_WIDE;
	r->operands = MATMUL_RING;
	if (wide || matmul_mma_many_rows(target, key)) {
		r->sides = 4;
		r->spans = 1;
	}
	r->stages = !wide ? 4 : r->format->type == DTYPE_Q8_0 ? 2 : 3;
}

static unsigned together_of(const struct matmul_recipe *r, const struct key *key, const struct target *target)
{
	const unsigned spans = numerics_spans(key->k), jobs = spans * r->matrices;

	if (r->source == MATMUL_FROM_ROUTES)
		return 1;
	if (r->engine == MATMUL_SIDE_BY_SIDE)
		return r->sides / r->matrices * (target->waves / spans);
	if (r->operands != MATMUL_DIRECT)
		return r->sides / r->matrices;
	return jobs < target->waves ? target->waves / jobs : 1;
}

static void set_tile(struct matmul_recipe *r, const struct key *key, const struct target *target)
{
	enum { NARROW = 8 };
	const bool side = r->engine == MATMUL_SIDE_BY_SIDE;

	r->sides = side ? key->schedule & TEMPLATE_SIDES : 1;
	r->spans = numerics_spans(key->k);
	set_operands(r, key, target);
	r->own = r->unpacks && r->operands == MATMUL_DIRECT ? matmul_mma_own_bytes(r->format) : 0;
	r->together = together_of(r, key, target);
	/* A small number of columns is one tile, but of floats. */
	r->parts = side || (target->has_parts && key->tile_n > NARROW && !matmul_makes_input(r) &&
	                    r->source != MATMUL_FROM_ROUTES);
	r->short_last = side && key->tile_n <= NARROW;
}

/* ---- all of it */

struct matmul_recipe matmul_recipe(const struct key *key, const struct target *target)
{
	struct matmul_recipe r = { .engine = engine_of(key, target), .epilogue = key->flags & KEY_EPILOGUE };

	if (!r.engine) {
		r.refusal = "this is no matmul";
		return r;
	}
	set_inputs(&r, key, target);
	if (key->weight) {
		set_weights(&r, key, target);
		set_tile(&r, key, target);
	}
	r.refusal = matmul_refusal(key, target, &r);
	if (r.refusal || (r.engine != MATMUL_LANES && r.engine != MATMUL_LANES_WIDE))
		return r;
	r.refusal = matmul_schedule(key, target, &r.schedule);
	if (!r.refusal && r.engine == MATMUL_LANES_WIDE)
		matmul_wide_inputs(key, target, &r.panel, &r.offset);
	return r;
}
