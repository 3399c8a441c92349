/* tests/support/widths.h - what recipes and widths of matmuls (kernels-templates/matmul/recipe.h) say of weights and
 * activations alone, as tests ask for it. */
#ifndef TESTS_WIDTHS_H
#define TESTS_WIDTHS_H

#include "kernels-templates/matmul/recipe.h"

static inline struct key widths_key(enum dtype weight, enum dtype activation, uint64_t rows, uint64_t k, uint32_t flags)
{
	return (struct key){ .kind = KEY_MATMUL,
		             .weight = key_type(weight),
		             .activation = key_type(activation),
		             .numerics = activation == DTYPE_BF16 ? NUMERICS_BOUNDED : NUMERICS_EXACT,
		             .row_blocks = 1,
		             .tile_n = 1,
		             .rows = (uint32_t)rows,
		             .k = (uint32_t)k,
		             .act = flags & KEY_PAIR ? ACT_SILU : ACT_NONE,
		             .flags = flags };
}

static inline struct matmul_widths widths_of(const struct target *target, enum dtype weight, enum dtype activation,
                                             uint32_t columns)
{
	const struct key key = widths_key(weight, activation, 32, NUMERICS_SEGMENT, 0);
	return matmul_widths(&key, target, columns);
}

static inline unsigned widths_plain(const struct target *t) { return widths_of(t, DTYPE_F32, DTYPE_F32, 1).plain; }
static inline unsigned widths_routes(const struct target *t) { return widths_of(t, DTYPE_F32, DTYPE_F32, 1).routes; }
static inline bool widths_has_wide(const struct target *t, enum dtype weight)
{
	return widths_of(t, weight, DTYPE_F32, 1).wide > 0;
}

/* Of a wide matmul: what its inputs are. */
static inline struct matmul_recipe widths_recipe(const struct target *t, enum dtype weight, enum dtype activation,
                                                 unsigned columns)
{
	struct key key = widths_key(weight, activation, 32, NUMERICS_SEGMENT, KEY_WIDE);
	key.tile_n = columns;
	return matmul_recipe(&key, t);
}
static inline unsigned widths_panel(const struct target *t, enum dtype weight, enum dtype activation, unsigned columns)
{
	return widths_recipe(t, weight, activation, columns).panel;
}
static inline uint32_t widths_interleave(const struct target *t, enum dtype weight, enum dtype activation,
                                         unsigned columns)
{
	return widths_recipe(t, weight, activation, columns).offset ? KEY_UNSIGNED : 0;
}

/* Whether matrices are multiplied; columns of tiles where there are many, and few. */
static inline struct matmul_widths widths_products(const struct target *t, enum dtype weight, enum dtype activation,
                                                   uint64_t rows, uint64_t k, uint32_t flags, bool bounded)
{
	struct key key = widths_key(weight, activation, rows, k, flags);
	key.numerics = bounded ? NUMERICS_BOUNDED : NUMERICS_EXACT;
	return matmul_widths(&key, t, TEMPLATE_MMA_WIDE);
}
static inline bool widths_mma(const struct target *t, enum dtype weight, enum dtype activation, bool bounded)
{
	return widths_products(t, weight, activation, 32, NUMERICS_SEGMENT, 0, bounded).products > 0;
}
static inline unsigned widths_mma_tile_n(const struct target *t, enum dtype weight, uint64_t rows, uint64_t k,
                                         uint32_t flags)
{
	return widths_products(t, weight, weight_default_activation(weight), rows, k, flags, true).products;
}
static inline unsigned widths_mma_narrow_n(uint64_t k, uint32_t flags)
{
	return widths_products(&target_table[TARGET_SM90], DTYPE_Q8_0, DTYPE_Q8_0, 32, k, flags, false).narrow;
}

/* Whether BF16 are multiplied in pairs. */
static inline bool widths_dot2(const struct target *t, enum dtype weight)
{
	const struct key key = widths_key(weight, DTYPE_BF16, 32, NUMERICS_SEGMENT, 0);
	return !matmul_recipe(&key, t).refusal;
}

#endif
