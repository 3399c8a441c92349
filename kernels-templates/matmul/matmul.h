/* kernels-templates/matmul/matmul.h - what the matmul kernels share: the totals they leave behind, and what is done to
 * a row's result.
 *
 * Owns: numerics.h rule 5 and the combining of spans (rule 3), once for all shapes of kernels. Internal to this room.
 */
#ifndef KERNELS_MATMUL_H
#define KERNELS_MATMUL_H

#include "kernels-templates/emit/build.h"
#include "kernels-templates/matmul/recipe.h"

struct weight_format;
struct weight_reader;
struct weight_visitor;

/* The totals of one row block and one column tile: f32 [span][matrix][column][32]. */
struct matmul_results {
	struct ir *b;
	const struct key *key;
	const struct matmul_recipe *recipe;
	ir_a arg, sums;
	unsigned spans, columns; /* columns of the totals, a tile's or more */
	ir_s expert;             /* of routes: the matrix that was used */
	ir_f from;               /* awaited, and RESIDUAL: what the row block's results are added to */
	ir_a scratch;            /* awaited, and QUANTISED_OUT: local */
};

static inline int64_t matmul_span_bytes(const struct matmul_results *r)
{
	return (int64_t)r->recipe->matrices * r->columns * 128;
}

/* What all engines write: a pointer among the arguments; so many bytes on, and n times so many; so far a variable moves
 * on; the beginning of a loop that is run once where thing < n, else not at all. */
static inline ir_a matmul_arg(struct ir *b, ir_a arg, unsigned slot) { return ir_aload(b, arg, (int32_t)(slot * 8)); }
static inline ir_a matmul_plus(struct ir *b, ir_a a, ir_s n, int64_t bytes)
{
	return ir_aadd(b, a, ir_smuli(b, n, bytes));
}
static inline void matmul_walk(struct ir *b, ir_a var, int64_t bytes)
{
	if (bytes)
		ir_set_a(b, var, ir_aaddi(b, var, bytes));
}
static inline void matmul_begin_below(struct ir *b, ir_s thing, ir_s n)
{
	ir_loop(b, ir_smin(b, ir_ssub(b, n, thing), ir_sconst(b, 1)));
}

/* KEY_BY_HEAD: how many heads there are, 1 of other kernels; row blocks of one head; the head of a row block; elements
 * from a column of inputs, or of results, to the next one. */
static inline unsigned matmul_heads(const struct key *key) { return key->flags & KEY_BY_HEAD ? key->heads : 1; }
static inline unsigned matmul_head_blocks(const struct key *key) { return (unsigned)numerics_pad(key->rows) / 32; }
static inline ir_s matmul_head(struct ir *b, const struct key *key, ir_s block)
{
	return ir_sdivi(b, block, matmul_head_blocks(key));
}
static inline uint64_t matmul_in_width(const struct key *key) { return numerics_pad(key->k) * matmul_heads(key); }
static inline uint64_t matmul_out_width(const struct key *key)
{
	return numerics_pad(key->flags & KEY_BY_HEAD ? (uint64_t)key->heads * key->head_dim : key->rows);
}

/* Combines the spans and writes the rows of `block` in the columns of `tile`; with KEY_EXPERTS in those from column
 * number `tile` on. */
void matmul_finish(const struct matmul_results *r, ir_s block, ir_s tile);

/* One column only, its number in the launch; r->sums are its tile's from this column on. */
void matmul_finish_column(const struct matmul_results *r, ir_s block, ir_s column);

/* So many columns from there on, whose loads are under way together; on targets with 32 lanes, not by head. */
enum { MATMUL_MAX_AT_ONCE = 16 };
void matmul_finish_several(const struct matmul_results *r, unsigned n, ir_s block, ir_s column);

/* A word of two BF16 a lane, of the 2 * W f32 at `from`: the even k in the low half. */
ir_i narrow_bf16_words(struct ir *b, ir_a from);

/* ---- weights chosen by data (KEY_EXPERTS; matmul_source.c) */

enum { MATMUL_EXPERTS_COLUMNS = 8 };
/* A slot, or a group of columns: its matrix, the columns it reads and writes, and how many. */
struct matmul_route {
	ir_s expert, in, out, columns; /* columns.r 0: one */
};
/* That of number `number`. routes: the argument. */
struct matmul_route matmul_route_load(struct ir *b, const struct key *key, ir_a routes, ir_s number);
/* From one matrix, or pair of them, to the next. */
int64_t matmul_expert_bytes(const struct key *key, int64_t block_bytes);
/* Begins a loop over the tiles of `width` columns that a group has: all it can of the widest, and one or none of each
 * below. */
void matmul_route_tiles(struct ir *b, const struct key *key, const struct matmul_route *r, unsigned width);

/* ---- inputs that are awaited (KEY_AWAITED; matmul_await.c) */

/* Bytes from a struct activation_block to the next, in shared bytes, of int8 blocks that a group makes itself. */
enum { MATMUL_MADE_BLOCK = 32 };
/* Products of matrices that are awaited (KEY_MMA): bytes behind each column of int8 blocks and of their scales, so that
 * columns begin in other banks; k is a multiple of this, so that a vector of words has one column. */
enum { MATMUL_COLUMN_PAD = 16, MATMUL_PADDED_K = 256, MATMUL_HALF_TILE = 8 };
/* That a group may have. */
static inline uint64_t matmul_shared(const struct target *t)
{
	return t->shared_bytes ? t->shared_bytes : TARGET_SHARED_BYTES;
}

/* What a wave does alone: one span of one matrix of one row block, with all columns of a tile. */
struct matmul_job {
	ir_s number; /* of the row block in W; those of two matrices alternate */
	ir_s span, tile;
	ir_s expert; /* KEY_EXPERTS; tile then is a column */
	ir_a sums;   /* for its totals: f32 [column][32] */
};
struct matmul_group {
	struct ir *b;
	const struct key *key;
	const struct matmul_recipe *recipe;
	unsigned waves;
	uint32_t kp;                                            /* k, padded */
	unsigned span_units;                                    /* of 32 k's */
	void (*job)(void *context, const struct matmul_job *j); /* writes the job, once; with KEY_EXPERTS once for each
	                                                           width of a tile */
	void (*narrow)(void *context, unsigned columns);        /* KEY_EXPERTS: which the next job has */
	/* Instead of jobs, where it is there: all waves leave the totals of `blocks` row blocks from `base` on, of 1 to
	 * recipe->together, in the shared bytes, which are theirs until then. The caller says in `room` how many bytes
	 * it works in. */
	void (*tile)(void *context, ir_s base, ir_s blocks, ir_s tile);
	int64_t room;
	void *context;
	/* matmul_group_build() fills these in. */
	unsigned jobs;              /* of a row block */
	void (*ask)(void *context); /* AWAITED, may be NULL: in front of the staging */
	ir_a arg, sums;
	ir_a scratch; /* awaited, and QUANTISED_OUT: local */
	ir_a in, ins; /* matmul_makes_input(): the tile's inputs and their scales, in shared bytes, */
	ir_a floats;  /* and the floats that they are made of */
	ir_s wave;
	struct matmul_route route; /* of routes */
};
/* A group that knows its key and recipe; the caller adds what it does. */
struct matmul_group matmul_group_of(struct ir *b, const struct key *key, const struct target *target,
                                    const struct matmul_recipe *r, void *context);
void matmul_group_build(struct matmul_group *g);
/* The row blocks of this call, the first in a variable; number `job` of the jobs of those from `base` on. */
void matmul_group_blocks(const struct matmul_group *g, ir_s *base, ir_s *end);
/* A tile's first column. */
ir_s matmul_group_first(const struct matmul_group *g, ir_s tile);
struct matmul_job matmul_group_job(const struct matmul_group *g, ir_s base, ir_s tile, ir_s job);
/* Awaited, one column: stages the input, and has the group meet; what the results of this wave's of the row
 * blocks from `base` on are added to. */
void matmul_await_stage(struct matmul_group *g);
bool matmul_awaits_early(const struct matmul_group *g); /* those are one for each wave */
ir_f matmul_await_from(const struct matmul_group *g, ir_s base, ir_s blocks);
ir_f matmul_await_column(const struct matmul_group *g, ir_s block, ir_s column); /* one of several columns */
/* Awaits int8 blocks into g->in and g->ins, where they lie as in memory; all columns. */
void matmul_await_blocks(const struct matmul_group *g);
/* The int8 blocks of quad `number` of g->in and g->ins, of which lane l has elements 4l to 4l + 3. Scales and sums are
 * MATMUL_MADE_BLOCK bytes a block. */
void matmul_quantise_quad(const struct matmul_group *g, ir_s number, const ir_f x[4]);
/* The most k's of one column that awaits a norm. */
uint32_t matmul_await_max(const struct target *target);
/* Zeroes for the columns that a tile lacks to as many as an operand has strips. */
void matmul_stage_no_columns(const struct matmul_group *g);
/* Fills the shared bytes with the input of a tile of several columns, and has the group meet. */
void matmul_stage_tile(const struct matmul_group *g, ir_s tile);
/* For jobs: a pointer among the arguments; the row block's weights; their heads, for a reader of the job's span; where
 * the job's share of an input begins that has column_bytes a column. */
static inline ir_a matmul_group_arg(const struct matmul_group *g, unsigned slot)
{
	return matmul_arg(g->b, g->arg, slot);
}
ir_a matmul_group_weights(const struct matmul_group *g, const struct matmul_job *j);
void matmul_group_heads(const struct matmul_group *g, const struct matmul_job *j, ir_a weights,
                        struct weight_reader *r);
ir_a matmul_group_input(const struct matmul_group *g, const struct matmul_job *j, unsigned slot, int64_t column_bytes);

/* ---- weights that are copied to local bytes ahead of their use (matmul_ahead.c) */

/* A wave's chunks are those of its jobs, one after another, each of the same units of a span. */
struct matmul_ahead {
	struct ir *b;
	const struct matmul_group *g;
	const struct weight_format *format;
	int64_t block_bytes;
	unsigned span_units, chunk_units;
	bool copies;           /* else they are not */
	uint32_t chunk, heads; /* bytes of a chunk, of its heads */
	ir_a at;               /* the chunk, then its heads */
	ir_s first;            /* row block */
	ir_s total, requested; /* chunks; requested: a variable */
};
/* As a reader of the group's weights goes through them: whether chunks are copied beside what else the kernel has
 * shared and local, and which. If so, asks for the first one. block_bytes: of a row block. */
void matmul_ahead_open(struct matmul_ahead *a, const struct matmul_group *g, int64_t block_bytes,
                       const struct target *target, struct weight_reader *r);
/* Points r at the job's span. If all of it is one copy, waits for the copy and points r at that. matmul_ahead_read()
 * then consumes the span and issues the next copy. */
void matmul_ahead_set(struct matmul_ahead *a, struct weight_reader *r);
void matmul_ahead_read(struct matmul_ahead *a, struct weight_reader *r, const struct weight_visitor *v);

/* ---- engines: of a recipe that is not refused (matmul_build_by()) */

void matmul_build_by(struct ir *b, const struct key *key, const struct target *target, const struct matmul_recipe *r);
typedef void matmul_engine_build(struct ir *b, const struct key *key, const struct target *target,
                                 const struct matmul_recipe *r);
matmul_engine_build matmul_lanes_build, matmul_wide_build, matmul_wave_build, matmul_floats_build, matmul_mma_build;
/* Products of matrices with shared operands, and with those in a ring; matmul_mma_build() hands them over. */
matmul_engine_build matmul_mma_shared_build, matmul_mma_piped_build;

/* ---- what the recipe asks engines */

/* NULL, or why there is no such kernel, of all that recipe.h says but the schedule (refusal.c). */
const char *matmul_refusal(const struct key *key, const struct target *target, const struct matmul_recipe *r);
/* Row blocks that a wave has side by side at most, those of a pair's two matrices counted apart. */
enum { MATMUL_SIDES = 4 };
/* Whether the quants of such weights are made signed bytes of a wave's own; in how many bytes. f may be NULL. */
bool matmul_mma_may_unpack(const struct target *target, const struct weight_format *f);
uint32_t matmul_mma_own_bytes(const struct weight_format *f);
/* Columns of a tile of matrices where there are few; whether operands of such weights are shared; are copied while the
 * group multiplies; whether rows are many, of which a tile has more then (widths.c). */
unsigned matmul_mma_narrow_n(uint64_t k, uint32_t flags);
bool matmul_mma_shares(const struct weight_format *f, uint64_t k);
bool matmul_mma_pipes(const struct target *target, const struct weight_format *f, uint64_t k);
bool matmul_mma_many_rows(const struct target *target, const struct key *key);
/* What a wide kernel comes to when nobody chooses, with stretches of so many bytes at most; the panels that it reads,
 * and whether their int8 are unsigned. */
struct matmul_wide_shape {
	unsigned part_columns, segment /* k's of a stretch */;
	bool whole /* row blocks are unpacked before their first tile */;
};
struct matmul_wide_shape matmul_wide_shape(const struct key *key, const struct target *target, uint32_t stretch);
void matmul_wide_inputs(const struct key *key, const struct target *target, unsigned *panel, bool *offset);
/* What they say in matmul_widths(). */
void matmul_wide_widths(const struct key *key, const struct target *target, uint32_t columns, struct matmul_widths *w);

#endif
