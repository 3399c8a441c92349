/* kernels-templates/templates.h - the kernels of a forward pass, each written once as a template over the IR.
 *
 * Owns: template_build(), which writes the IR for a key; the numbers of every kernel's argument slots; weight packing.
 * Templates branch on target capabilities (lanes, registers), never on names. What they compute, to the bit, is
 * numerics.h. What each kind of kernel does with its slots, and what its work units are, is docs/kernels.md, which is
 * made from kinds/signature.def; signature.h is the same as data.
 */
#ifndef KERNELS_TEMPLATES_H
#define KERNELS_TEMPLATES_H

#include "base/dtype.h"
#include "jit/compile.h"
#include "kernels-templates/numerics.h"

/* What belongs to 32 int8 activations (numerics.h rule 4). The sums serve weights with an offset or a minimum. */
struct activation_block {
	float d;        /* the scale */
	float d_sum;    /* d * (sum of the 32 quants) */
	int32_t sum[2]; /* of the first and of the second 16 quants */
};

/* Slots of KEY_MATMUL. */
enum {
	MATMUL_W,
	MATMUL_X,
	MATMUL_XS,
	MATMUL_OUT,
	MATMUL_TILES,
	MATMUL_BIAS,
	MATMUL_W2,
	MATMUL_BIAS2,
	MATMUL_OUTQ,
	MATMUL_OUTS,
	MATMUL_ROUTES,
	MATMUL_NORM,
	MATMUL_EPS,
	MATMUL_FROM,
	MATMUL_GREATEST,
	MATMUL_COLUMNS,
	MATMUL_ARGS
};
enum {
	TEMPLATE_MAX_COLUMNS = 16 /* of any target */,
	TEMPLATE_MAX_WIDE = 24,
	TEMPLATE_MMA_COLUMNS = 32,
	TEMPLATE_MMA_SHARED = 64 /* of a tile whose operands a group's waves share */,
	TEMPLATE_MMA_WIDE = 128 /* the same, where they are copied ahead, and many rows share them */,
	TEMPLATE_MMA_LEAST = 16 /* a tile's */
};
/* The most columns of a tile: 8 on CPUs. */
unsigned template_tile_n(const struct target *target);
/* Of targets whose launches have parts: whether a matmul of several columns of floats has row blocks side by side. The
 * schedule of such keys is this bit and how many blocks a wave has: 1, 2 or 4, those of a pair's two matrices counted
 * apart. They have parts. */
enum { TEMPLATE_SIDE_BY_SIDE = 0x2000, TEMPLATE_SIDES = 7 /* the bits of that number */ };
bool template_floats(const struct target *target, const struct key *key);
/* How many columns a tile of such a matmul should have; *schedule: of its key. flags: KEY_PAIR, or not. 0: so many
 * tokens, or such weights, are better done otherwise. */
uint32_t template_floats_tile_n(const struct target *target, enum dtype weight, uint64_t rows, uint64_t k,
                                uint32_t flags, uint32_t tokens, uint32_t *schedule);
/* Whether the last tile of such a width may have fewer columns of its own. It begins earlier then, multiplies some that
 * the tile in front has, and keeps no results of these. There are as many columns as a tile has, at least. */
static inline bool template_floats_short(uint32_t width) { return width <= 8; }
/* Whether a matmul of so many columns should make the norm of its input itself (NORM_IN): where that costs every group
 * less than another stage does, and the result fits its shared bytes. */
bool template_norm_inside(const struct target *target, enum dtype activation, uint64_t k, unsigned columns);
/* Whether a matmul of one tile may await its input (AWAITED); the flag itself may be missing. */
bool template_matmul_awaits(const struct target *target, const struct key *key);
/* Whether a matmul of so many rows can keep the greatest of its results (GREATEST). */
bool template_greatest(const struct target *target, uint64_t rows);
/* Whether there are wide kernels for a weight format; from how many columns on they are the better ones (0: never); how
 * many columns their tiles should have where there are so many, at most; with which flags KEY_INTERLEAVE makes the
 * inputs of those with tiles of so many columns: KEY_UNSIGNED or none. */
bool template_wide_weights(const struct target *target, enum dtype weight);
unsigned template_wide_from(const struct target *target, enum dtype weight, enum dtype activation);
unsigned template_wide_tile_n(const struct target *target, enum dtype weight, enum dtype activation, unsigned columns);
/* Columns of its panels. */
unsigned template_wide_panel(const struct target *target, enum dtype weight, enum dtype activation, unsigned columns);
uint32_t template_wide_interleave(const struct target *target, enum dtype weight, enum dtype activation,
                                  unsigned columns);

/* Whether such weights and activations are multiplied as matrices where a pass has TEMPLATE_MMA_LEAST columns; bounded:
 * the user wants that class. How many columns a tile of such a matmul should have where there are enough; and where
 * there are fewer: TEMPLATE_MMA_LEAST, or twice as many. */
bool template_mma(const struct target *target, enum dtype weight, enum dtype activation, bool bounded);
unsigned template_mma_tile_n(const struct target *target, enum dtype weight, uint64_t rows, uint64_t k, uint32_t flags);
unsigned template_mma_narrow_n(uint64_t k, uint32_t flags);
/* Whether such weights are multiplied by activations of their type, BF16, in pairs of k's; the bounded class. */
bool template_dot2(const struct target *target, enum dtype weight);

/* Whether such a matmul deals its column tiles out to the parts of a launch (target->has_parts); how many row blocks a
 * group of so many waves does at once. */
bool template_matmul_parts(const struct target *target, const struct key *key);
unsigned template_matmul_together(const struct target *target, const struct key *key);

/* Slots of KEY_INTERLEAVE. */
enum { INTERLEAVE_X, INTERLEAVE_XS, INTERLEAVE_OUT, INTERLEAVE_OUTS, INTERLEAVE_ARGS };

/* Slots of KEY_NORM. */
enum { NORM_X, NORM_WEIGHT, NORM_OUT, NORM_EPS, NORM_OUTQ, NORM_OUTS, NORM_ARGS };

bool template_norm_awaits(const struct target *target, uint32_t k);

/* Slots of KEY_QUANTISE. */
enum { QUANTISE_X, QUANTISE_OUTQ, QUANTISE_OUTS, QUANTISE_ARGS };

/* Slots of KEY_SCALE. */
enum { SCALE_IN, SCALE_OUT, SCALE_BY, SCALE_ARGS };

/* Experts: a token is multiplied by `heads` of `rows` matrices of one size, which its slots are for: slot 0 has the
 * first choice. */
enum { ROUTE_MOST = 32 /* slots of a token */, ROUTE_EXPERTS_MOST = 1024 };
struct route_group { /* columns that are multiplied by the same matrix lie side by side */
	int32_t expert, first, columns, unused;
};

/* Slots of KEY_ROUTE. */
enum { ROUTE_LOGITS, ROUTE_CHOSEN, ROUTE_SHARES, ROUTE_SCALE, ROUTE_BIAS, ROUTE_TIMES, ROUTE_ARGS };

/* Slots of KEY_DISPATCH. */
enum { DISPATCH_CHOSEN, DISPATCH_TOKENS, DISPATCH_PLACES, DISPATCH_GROUPS, DISPATCH_GROUP_COUNT, DISPATCH_ARGS };
/* Slots of KEY_SCATTER. */
enum { SCATTER_X, SCATTER_XS, SCATTER_PLACES, SCATTER_OUT, SCATTER_OUTS, SCATTER_ARGS };
/* Slots of KEY_COMBINE. */
enum { COMBINE_IN, COMBINE_SHARES, COMBINE_PLACES, COMBINE_OUT, COMBINE_ARGS };
/* The most columns of a tile of EXPERTS. */
static inline unsigned template_experts_tile_n(const struct target *t) { return t->lane_bytes ? 4 : 8; }

/* Slots of KEY_LAYER_INPUTS. */
enum {
	LAYER_INPUTS_X,
	LAYER_INPUTS_E,
	LAYER_INPUTS_WEIGHT,
	LAYER_INPUTS_OUT,
	LAYER_INPUTS_EPS,
	LAYER_INPUTS_BY,
	LAYER_INPUTS_COLUMNS,
	LAYER_INPUTS_ARGS
};
enum { TEMPLATE_MAX_LAYER_INPUTS = 1024 };

/* Slots of KEY_ROPE. */
enum { ROPE_IN, ROPE_OUT, ROPE_COS, ROPE_SIN, ROPE_NORM, ROPE_EPS, ROPE_SCALE, ROPE_REST, ROPE_ARGS };

/* Slots of KEY_KV_STORE. */
enum {
	KV_STORE_K,
	KV_STORE_V,
	KV_STORE_KEYS,
	KV_STORE_VALUES,
	KV_STORE_COS,
	KV_STORE_SIN,
	KV_STORE_NORM,
	KV_STORE_EPS,
	KV_STORE_POS0,
	KV_STORE_PAGES,
	KV_STORE_COLUMNS,
	KV_STORE_ARGS
};
/* A CPU stays with a head for some columns: neighbouring positions of a key share their cache lines, and the keys of
 * all heads at one position are more lines than the first level has. */
static inline unsigned template_kv_store_tokens(const struct target *t) { return t->lane_bytes ? 1 : 16; }
static inline int64_t template_kv_store_units(const struct target *t, uint32_t kv_heads, uint64_t columns)
{
	unsigned group = template_kv_store_tokens(t);
	return (int64_t)((columns + group - 1) / group * kv_heads);
}

/* Whether a target keeps such a cache by pieces of 16 bytes a lane: K: [kv_head][4][head_dim/8][32 positions][8
 * dimensions], V: [kv_head][16][head_dim/32] [32 dimensions][8 positions], in as many bytes. */
static inline bool template_kv_pieces(const struct target *t, enum dtype kv, uint32_t head_dim)
{
	return t->lane_bytes && kv == DTYPE_F16 && head_dim % 32 == 0;
}
/* Bytes of one head's keys, or values, at one position of a cache of this type; 0: no cache is kept in it. */
uint32_t template_kv_row_bytes(enum dtype kv, uint32_t head_dim);

/* Slots of KEY_ATTENTION. */
enum {
	ATTENTION_Q,
	ATTENTION_KEYS,
	ATTENTION_VALUES,
	ATTENTION_OUT,
	ATTENTION_POS0,
	ATTENTION_PAGES,
	ATTENTION_SLIDING,
	ATTENTION_COLUMNS,
	ATTENTION_CAP,
	ATTENTION_SINKS,
	ATTENTION_K,
	ATTENTION_V,
	ATTENTION_COS,
	ATTENTION_SIN,
	ATTENTION_NORM,
	ATTENTION_SCALE,
	ATTENTION_KEY_COS,
	ATTENTION_KEY_SIN,
	ATTENTION_KEY_NORM,
	ATTENTION_EPS,
	ATTENTION_OUTQ,
	ATTENTION_OUTS,
	ATTENTION_ARGS
};
/* Whether attention of one column can be one that ROTATES. */
bool template_attention_rotates(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim);
/* Whether attention in parts that ROTATES can be that of so many columns. */
bool template_attention_columns(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                uint32_t columns);
enum { TEMPLATE_MAX_QUERIES = 16 };
/* How many columns a unit of such attention should have, whose key says all but that and how many parts; 0: all, which
 * may be few. */
unsigned template_attention_apart(const struct target *target, const struct key *key);
/* How many columns a tile of attention should have in a pass over `columns` columns. */
unsigned template_attention_tile_n(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                   uint32_t columns);

/* Into how many parts a column's context should be cut where it is long and there are more workers than heads. 0: it
 * cannot be. */
unsigned template_attention_parts(const struct target *target, uint32_t kv_heads);
enum { TEMPLATE_MAX_PARTS = 64 };
/* A row's record of a chunk: o in whole vectors of 32 f32, then max and sum of rule 9, then pads. */
static inline uint32_t template_attention_record(uint32_t dims) { return (dims + 31) / 32 * 128 + 32; }

/* Slots of KEY_MERGE. */
enum { MERGE_RECORDS, MERGE_OUT, MERGE_POS0, MERGE_SLIDING, MERGE_SINKS, MERGE_OUTQ, MERGE_OUTS, MERGE_ARGS };
static inline unsigned template_merge_units(uint32_t head_dim) { return head_dim % 32 ? 1 : head_dim / 32; }

/* How many units should share the heads of a column of latent attention, in a pass over `columns` columns. */
unsigned template_latent_units(uint32_t heads, uint32_t columns);

/* Slots of KEY_CONV. */
enum {
	CONV_X,
	CONV_X2,
	CONV_WEIGHT,
	CONV_GATE,
	CONV_OUT,
	CONV_STATE_IN,
	CONV_STATE_OUT,
	CONV_COLUMNS,
	CONV_BIAS,
	CONV_ARGS
};
enum { CONV_MAX_TAPS = 8 };

/* Blocks of 32 values that a head has; the last one of 16 where its size is no multiple of 32. */
static inline uint32_t template_value_blocks(uint32_t value_dim) { return (value_dim + 31) / 32; }
/* Slots of KEY_DELTA. */
enum {
	DELTA_QKV,
	DELTA_A,
	DELTA_B,
	DELTA_DECAY,
	DELTA_DT,
	DELTA_SCALE,
	DELTA_OUT,
	DELTA_STATE_IN,
	DELTA_STATE_OUT,
	DELTA_COLUMNS,
	DELTA_ARGS
};
enum { DELTA_MAX_DIM = 256 };

/* Slots of KEY_SCAN. */
enum {
	SCAN_XBC,
	SCAN_DT,
	SCAN_DT_BIAS,
	SCAN_DECAY,
	SCAN_SKIP,
	SCAN_FLOOR,
	SCAN_CEILING,
	SCAN_OUT,
	SCAN_STATE_IN,
	SCAN_STATE_OUT,
	SCAN_COLUMNS,
	SCAN_ARGS
};
enum { SCAN_MAX_STATE = 1024, SCAN_MAX_VALUES = 1024 };

/* Slots of KEY_GATE. */
enum { GATE_X, GATE_GATE, GATE_OUT, GATE_ARGS };

/* Slots of KEY_EMBED. */
enum { EMBED_W, EMBED_IDS, EMBED_OUT, EMBED_ARGS };

/* Schedules: ways of computing the same bits, of which machines like one or the other better; key.schedule 0 is the
 * usual one (matmul_schedule.h). */
enum { TEMPLATE_SCHEDULES_MOST = 16 /* in a list */, TEMPLATE_SCHEDULE_FIELDS = 6, TEMPLATE_SCHEDULE_NAME = 256 };
/* NULL, or why there is no such schedule. What follows is of keys that plans have. */
const char *template_schedule_refusal(const struct key *key);
/* The few worth trying in passing; out[0] is 0. Packs have these. */
unsigned template_schedules(const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MOST]);
/* All that differ from the key's own in one field (in level, also in the distance when it has no meaning there). */
unsigned template_schedules_near(const struct key *key, unsigned field, uint32_t out[TEMPLATE_SCHEDULES_MOST - 1]);
/* Kernels of which nothing is known follow that of one column, which is tuned in passing: its key, without a schedule;
 * what its schedule means for them. */
struct key template_tuned_like(const struct key *key);
uint32_t template_schedule_follow(const struct key *key, const struct key *one);
/* In words; returns out. */
char *template_schedule_name(const struct key *key, char *out, size_t cap);
/* The name of a field, and what the key's schedule has there; NULL: no schedules. */
const char *template_schedule_field(const struct key *key, unsigned field, uint32_t *value);

/* Bytes that a launch of `units` units is expected to move, with a pass's first token at `position`; columns: what the
 * launch works on. */
uint64_t template_traffic(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
/* Of those, the weights and the cached keys and values that it must read. */
struct template_reads {
	uint64_t weights, cache;
};
struct template_reads template_reads(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);

/* Argument slots of a launch, which the enums above name. */
unsigned template_args(const struct key *key);
/* What it takes to make a kernel, roughly, in quarters of a plain matmul's: for the order alone in which threads make
 * them. So columns, which the kernels of a pass have in common, and formats, whose matmuls stand together anyway, are
 * left out. Found by counting the code generators' instructions. */
unsigned template_effort(const struct key *key);

/* The compile_build_fn of this project. */
bool template_build(struct ir *ir, const struct key *key, const struct target *target, struct error *err);

/* ---- weight formats: one file each (wf_*.c): packing, and how a template reads the next k of its row */
bool weight_supported(enum dtype t); /* as a matrix */
/* How a block is laid out: BY_VECTOR for loads of neighbouring lanes (CPUs), BY_PIECES for lanes that each load 16
 * bytes of their own row. */
enum weight_layout { WEIGHT_BY_VECTOR, WEIGHT_LANE_CONTIGUOUS };
static inline enum weight_layout weight_layout_of(const struct target *t)
{
	return t->lane_bytes ? WEIGHT_LANE_CONTIGUOUS : WEIGHT_BY_VECTOR;
}
uint64_t weight_block_bytes(enum dtype t, enum weight_layout layout, uint64_t k); /* one block of 32 rows */
uint64_t weight_packed_bytes(enum dtype t, enum weight_layout layout, uint64_t rows,
                             uint64_t k); /* all blocks, and slack behind them that kernels may read (512 bytes) */
/* Packs 32 rows given by pointer to each row's file bytes (NULL: a zero row) into dst, weight_block_bytes() long. */
void weight_pack_block(enum dtype t, enum weight_layout layout, void *dst, const void *const row[32], uint64_t k);
/* One row of file bytes to f32, as the format defines it (tests, vectors, host use). */
void weight_to_f32(enum dtype t, float *out, const void *row, uint64_t k);
/* The activation format a weight type is multiplied with by default: Q8_0 for quantised weights, F32 otherwise. */
enum dtype weight_default_activation(enum dtype t);

#endif
