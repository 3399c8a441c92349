/* kernels-templates/matmul/recipe.h - which kernel a matmul becomes.
 *
 * Owns: the decision. A key and a target have one recipe, a pure function of the two, and every reader asks for it: the
 * engines, which write the IR; schedules, which are values of it; plans, which ask whether there is such a kernel and
 * what it reads; devices, which distribute row blocks and tiles. No reader looks at the key's source and engine flags
 * again. To add an engine, or a source of inputs: a row here, what makes a key one of it in recipe.c, what it refuses
 * in refusal.c, and a key in tests/kernels/t_recipe.c that shows what each field does.
 */
#ifndef KERNELS_MATMUL_RECIPE_H
#define KERNELS_MATMUL_RECIPE_H

#include "kernels-templates/matmul/matmul_schedule.h"
#include "kernels-templates/templates.h"

/* Who multiplies. */
enum matmul_engine {
	MATMUL_NO_ENGINE,    /* the key is no matmul */
	MATMUL_LANES,        /* CPUs: a lane owns an output row (matmul.c) */
	MATMUL_LANES_WIDE,   /* the same for many columns, also by int8 matrices in memory (matmul_wide.c) */
	MATMUL_WAVES,        /* cards: a wave has a span of a row block (matmul_wave.c) */
	MATMUL_SIDE_BY_SIDE, /* cards: several columns of floats, row blocks side by side (matmul_floats.c) */
	MATMUL_PRODUCTS      /* cards: products of matrices (matmul_mma*.c) */
};

/* Where the input comes from. */
enum matmul_source {
	MATMUL_FROM_MEMORY,
	MATMUL_FROM_PANELS, /* as KEY_INTERLEAVE lays it */
	MATMUL_FROM_ROUTES, /* columns that data choose, and a matrix for each */
	MATMUL_FROM_HEADS,  /* a head's part of each column */
	MATMUL_NORMED,      /* the norm of a tile, in shared bytes (kinds/norm.c) */
	MATMUL_STAGED,      /* several columns, awaited or normed, in shared bytes (matmul_stage.c) */
	MATMUL_AWAITED      /* one column that is awaited, in shared bytes (matmul_await.c) */
};

/* Where products of matrices find their operands. */
enum matmul_operands {
	MATMUL_DIRECT, /* each wave loads its own */
	MATMUL_SHARED, /* in shared bytes, staged by all waves (matmul_mma_shared.c) */
	MATMUL_RING    /* the same, copied ahead in a ring of stages (matmul_mma_piped.c) */
};

/*     type, name, what it says. Where a recipe is refused, engine and source alone mean anything. */
#define MATMUL_RECIPE(X) \
	X(const char *, refusal, "NULL: there is such a kernel") \
	X(enum matmul_engine, engine, "") \
	X(enum matmul_source, source, "") \
	X(enum matmul_operands, operands, "") \
	X(uint32_t, epilogue, "KEY_EPILOGUE of the key's flags") \
	/* weights */ \
	X(const struct weight_format *, format, "what they are read as") \
	X(int64_t, block_bytes, "of 32 packed rows") \
	X(unsigned, matrices, "2: those of a pair") \
	X(bool, unpacks, "products of matrices: quants become signed bytes that a wave leaves for itself") \
	X(uint32_t, own, "in so many bytes of each wave") \
	/* inputs */ \
	X(bool, int8, "int8 blocks") \
	X(bool, offset, "which panels hold as unsigned bytes, 128 larger") \
	X(unsigned, panel, "columns of a panel") \
	X(bool, normed, "their norm is made inside") \
	X(bool, centred, "and subtracts the mean") \
	X(bool, awaited, "word by word; and so results are given") \
	X(bool, blocks, "int8 blocks are awaited as such, not made of floats") \
	X(uint64_t, column, "elements from a column to the next one") \
	X(uint32_t, scales, "bytes from the scales of a block to those of the next one") \
	X(uint64_t, floats_bytes, "shared bytes of a tile that the group makes for itself: of floats as they come") \
	X(uint64_t, in_bytes, "of what is multiplied, where that is not these floats") \
	X(uint64_t, scales_bytes, "of its scales") \
	/* a tile */ \
	X(unsigned, columns, "of the totals that waves leave: a tile's or more") \
	X(unsigned, sides, "row blocks side by side, of both matrices: of a wave, or of a tile with shared operands") \
	X(unsigned, spans, "parts of k that are done at once, each with totals of its own") \
	X(unsigned, stages, "of the ring") \
	X(unsigned, together, "row blocks that a group of waves does at once") \
	X(bool, parts, "column tiles are dealt out to the parts of a launch") \
	X(bool, short_last, "the last tile may lack columns: it begins earlier, and does some that its neighbour has") \
	X(struct matmul_schedule, schedule, "how lanes go through the weights")

struct matmul_recipe {
#define X(type, name, meaning) type name;
	MATMUL_RECIPE(X)
#undef X
};

struct matmul_recipe matmul_recipe(const struct key *key, const struct target *target);

/* How a pass should cut the columns of a matmul into tiles. */
struct matmul_widths {
	unsigned plain;        /* columns of a tile of the usual engine, at most */
	unsigned routes;       /* the same of experts' */
	unsigned wide_from;    /* from so many columns on KEY_WIDE is faster (0: never), */
	unsigned wide;         /* with tiles of so many, of which there may be fewer; 0: there are no such kernels */
	unsigned products;     /* of KEY_MMA where there are enough columns; 0: there are no such kernels */
	unsigned narrow;       /* and where there are fewer: TEMPLATE_MMA_MIN, or twice that */
	unsigned side_by_side; /* of row blocks side by side, with this schedule; 0: others are faster */
	uint32_t schedule;
};

/* Of a pass of so many columns. key: weights, shape, F32 or int8 activations, KEY_PAIR; numerics BOUNDED: that class is
 * allowed. Its tile, engine and schedule do not count. */
struct matmul_widths matmul_widths(const struct key *key, const struct target *target, uint32_t columns);

/* Whether a tile's input lies in shared bytes, where the group has put it. */
static inline bool matmul_makes_input(const struct matmul_recipe *r) { return r->source >= MATMUL_NORMED; }

#endif
