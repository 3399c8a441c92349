/* kernels-templates/templates.h - the kernels of a forward pass, each written once as a template over the IR.
 *
 * Owns: template_build(), which writes the IR for a key; the numbers of every kernel's argument slots; weight packing.
 * Invariant: templates branch on a target's capabilities (lanes, registers), never on its name.
 * Elsewhere: numerics.h fixes the results, to the bit. kinds/signature.def says what each kind of kernel does with its
 * slots, and what its work units are. docs/kernel-templates.md is that as text, signature.h as data.
 */
#ifndef KERNELS_TEMPLATES_H
#define KERNELS_TEMPLATES_H

#include "base/dtype.h"
#include "jit/compile.h"
#include "kernels-templates/numerics.h"

/* The scale and sums of a block of 32 int8 activations (numerics.h rule 4). Weights with an offset or a minimum need
 * the sums. */
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
	MATMUL_ADDED,
	MATMUL_ADDED2,
	MATMUL_ARGS
};
enum {
	TEMPLATE_MAX_COLUMNS = 16 /* of any target */,
	TEMPLATE_MAX_WIDE = 24,
	TEMPLATE_MMA_COLUMNS = 32,
	TEMPLATE_MMA_SHARED = 64 /* of a tile whose operands a group's waves share */,
	TEMPLATE_MMA_WIDE = 128 /* the same, where they are copied ahead, and many rows share them */,
	TEMPLATE_MMA_MIN = 16 /* a tile's */
};
/* A matmul of several float columns may compute several row blocks in one wave, on targets whose launches have parts.
 * The schedule of such a key is this bit plus the number of row blocks of a wave: 1, 2 or 4. The blocks of
 * a pair's two matrices count separately. The launches of such keys have parts. */
enum { TEMPLATE_SIDE_BY_SIDE = 0x2000, TEMPLATE_SIDES = 7 /* the bits of that number */ };
/* Which kernel a matmul becomes, and how wide tiles should be: matmul/recipe.h. */

/* Slots of KEY_INTERLEAVE. */
enum { INTERLEAVE_X, INTERLEAVE_XS, INTERLEAVE_OUT, INTERLEAVE_OUTS, INTERLEAVE_ARGS };

/* Slots of KEY_NORM. */
enum { NORM_X, NORM_WEIGHT, NORM_OUT, NORM_EPS, NORM_OUTQ, NORM_OUTS, NORM_BIAS, NORM_ARGS };

bool template_norm_awaits(const struct target *target, uint32_t k);

/* Slots of KEY_QUANTISE. */
enum { QUANTISE_X, QUANTISE_OUTQ, QUANTISE_OUTS, QUANTISE_ARGS };

/* Slots of KEY_SCALE. */
enum { SCALE_IN, SCALE_OUT, SCALE_BY, SCALE_ARGS };

/* Experts: a token is multiplied by `heads` of `rows` matrices of the same size. A token has a slot for each of them:
 * slot 0 has the first choice. */
enum { ROUTE_MAX = 32 /* slots of a token */, ROUTE_EXPERTS_MAX = 1024 };
struct route_group { /* the columns of one expert, which are adjacent */
	int32_t expert, first, columns, unused;
};

/* Slots of KEY_ROUTE. */
enum { ROUTE_LOGITS, ROUTE_CHOSEN, ROUTE_SHARES, ROUTE_SCALE, ROUTE_BIAS, ROUTE_TIMES, ROUTE_ARGS };

/* Slots of KEY_DISPATCH. */
enum { DISPATCH_CHOSEN, DISPATCH_TOKENS, DISPATCH_POSITIONS, DISPATCH_GROUPS, DISPATCH_GROUP_COUNT, DISPATCH_ARGS };
/* Slots of KEY_SCATTER. */
enum { SCATTER_X, SCATTER_XS, SCATTER_POSITIONS, SCATTER_OUT, SCATTER_OUTS, SCATTER_ARGS };
/* Slots of KEY_COMBINE. */
enum { COMBINE_IN, COMBINE_SHARES, COMBINE_POSITIONS, COMBINE_OUT, COMBINE_ARGS };

/* Low-rank adapters (numerics.h rule 19). A pass's columns are in tiles, each of one set: so many adapters with their
 * scales. An adapter has a number among a model's; of each matrix, tables by that number say what it has for it. */
enum {
	ADAPTERS_MOST = 64 /* of a model */,
	ADAPTERS_TOGETHER = 8 /* of a set */,
	ADAPT_SETS = 65 /* of a pass; number 0 is empty */,
	ADAPT_TILE = 8 /* columns, at most */,
	ADAPT_RANKS = 4 /* ranks come in whole ones of these */,
	ADAPT_PARTS = 4 /* units of a tile of KEY_ADAPT_DOWN */
};
struct adapt_tile {
	int32_t first, columns, set, unused;
};
struct adapt_set {
	int32_t n, unused[3];
	struct {
		int32_t adapter;
		float scale;
	} of[ADAPTERS_TOGETHER];
};
/* What an adapter has for a matrix. */
enum adapt_type { ADAPT_F32, ADAPT_F16, ADAPT_BF16, ADAPT_TYPES };
struct adapt_fact {
	int32_t rank; /* a multiple of ADAPT_RANKS; 0: nothing */
	float scale;
	int32_t type, extras; /* extras: bits, of what lies behind its second matrix; for kernels that are SCALED */
};
/* Vectors of f32, of a row block one after the other. With ADAPT_DORA a row's magnitude, and what its squared norm is
 * at scale u: the first + u * (the second + u * the third). With ADAPT_BIAS what is added to the row, times the scale.
 */
enum { ADAPT_DORA = 1, ADAPT_BIAS = 2 };
enum { ADAPT_MAGNITUDE, ADAPT_NORM, ADAPT_NORM_BY, ADAPT_NORM_SQUARE, ADAPT_BIASES, ADAPT_EXTRAS };

/* Slots of KEY_ADAPT_DOWN, and the same of KEY_ADAPT_UP. */
#define ADAPT_SLOTS(kind) \
	kind##_IN, kind##_OUT, kind##_TILES, kind##_SET, kind##_FACTS, kind##_TABLE, kind##_MATRIX, kind##_COLUMNS, \
		kind##_CHOSEN, kind##_POSITIONS
enum { ADAPT_SLOTS(ADAPT), ADAPT_ARGS };
enum { ADAPT_SLOTS(ADAPT_DOWN) };
enum { ADAPT_SLOTS(ADAPT_UP) };

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
/* Columns of a unit. A CPU stores several columns of one head in iteration: neighbouring positions of a key share cache
 * lines, and the keys of all heads at one position do not fit the L1 cache. */
static inline unsigned template_kv_store_tokens(const struct target *t) { return t->lane_bytes ? 1 : 16; }
static inline int64_t template_kv_store_units(const struct target *t, uint32_t kv_heads, uint64_t columns)
{
	unsigned group = template_kv_store_tokens(t);
	return (int64_t)((columns + group - 1) / group * kv_heads);
}

/* True if a target stores such a cache as vectors of 16 bytes for each lane. The size is the same.
 * K: [kv_head][4][head_dim/8][32 positions][8 dimensions]
 * V: [kv_head][16][head_dim/32][32 dimensions][8 positions] */
static inline bool template_kv_octets(const struct target *t, enum dtype kv, uint32_t head_dim)
{
	return t->lane_bytes && kv == DTYPE_F16 && head_dim % 32 == 0;
}
/* Bytes of one head's keys, or values, at one position of a cache of this type; 0: there is no cache of this type. */
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
	ATTENTION_BIAS,
	ATTENTION_REACH,
	ATTENTION_ARGS
};
/* True if attention of one column can have the flag ROTATES. */
bool template_attention_rotates(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim);
/* True if attention in parts with the flag ROTATES can have so many columns. */
bool template_attention_columns(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                uint32_t columns);
enum { TEMPLATE_MAX_QUERIES = 16 };
/* The best number of columns for a unit of such attention; 0: all. The key must be complete but for that number and the
 * number of parts. */
unsigned template_attention_apart(const struct target *target, const struct key *key);
/* The best tile width of attention in a pass over `columns` columns. */
unsigned template_attention_tile_n(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                   uint32_t columns);

/* The number of parts that a long context of one column should be split into if there are more workers than heads. 0:
 * it cannot be split. */
unsigned template_attention_parts(const struct target *target, uint32_t kv_heads);
enum { TEMPLATE_MAX_PARTS = 64 };
/* Bytes of a record, the partial result of a row in a chunk: o in whole vectors of 32 f32, then max and sum of rule 9,
 * then padding. */
static inline uint32_t template_attention_record(uint32_t dims) { return (dims + 31) / 32 * 128 + 32; }

/* Slots of KEY_MERGE. */
enum { MERGE_RECORDS, MERGE_OUT, MERGE_POS0, MERGE_SLIDING, MERGE_SINKS, MERGE_OUTQ, MERGE_OUTS, MERGE_ARGS };
static inline unsigned template_merge_units(uint32_t head_dim) { return head_dim % 32 ? 1 : head_dim / 32; }

/* The number of units that should share the heads of a column of latent attention, in a pass over `columns` columns. */
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

/* Blocks of 32 values of a head. The last one has 16 if the head's size is not a multiple of 32. */
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
	DELTA_K,
	DELTA_V,
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

/* Slots of KEY_CHANNEL. */
enum {
	CHANNEL_X,
	CHANNEL_DT,
	CHANNEL_DT_BIAS,
	CHANNEL_B,
	CHANNEL_C,
	CHANNEL_DECAY,
	CHANNEL_SKIP,
	CHANNEL_OUT,
	CHANNEL_STATE_IN,
	CHANNEL_STATE_OUT,
	CHANNEL_COLUMNS,
	CHANNEL_ARGS
};
enum { CHANNEL_MAX_STATE = 256 };

/* Slots of KEY_GATE. */
enum { GATE_X, GATE_GATE, GATE_OUT, GATE_ARGS };

/* Slots of KEY_EMBED. */
enum { EMBED_W, EMBED_IDS, EMBED_OUT, EMBED_ARGS };

/* Schedules: variants of a kernel that compute the same bits at different speeds. key.schedule 0 is the default
 * (matmul_schedule.h). */
enum { TEMPLATE_SCHEDULES_MAX = 16 /* in a list */, TEMPLATE_SCHEDULE_FIELDS = 6, TEMPLATE_SCHEDULE_NAME = 256 };
/* NULL, or why the key cannot have its schedule. The functions below take only keys of plans. */
const char *template_schedule_refusal(const struct key *key);
/* The short list that online tuning tries; out[0] is 0. Packs contain these. */
unsigned template_schedules(const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MAX]);
/* All that differ from the key's own in one field. A change of level also changes the distance if that has no meaning
 * at the new level. */
unsigned template_schedules_near(const struct key *key, unsigned field, uint32_t out[TEMPLATE_SCHEDULES_MAX - 1]);
/* Untuned kernels follow the kernel of one column, which is tuned online. This returns its key, without a schedule. */
struct key template_tuned_like(const struct key *key);
/* The schedule of such a kernel that corresponds to the one-column kernel's. */
uint32_t template_schedule_follow(const struct key *key, const struct key *one);
/* Writes the schedule in words; returns out. */
char *template_schedule_name(const struct key *key, char *out, size_t cap);
/* The name of a field, and its value in the key's schedule; NULL: the key has no schedules. */
const char *template_schedule_field(const struct key *key, unsigned field, uint32_t *value);

/* Bytes that a launch of `units` units is expected to move. position: of the pass's first token; columns: of the
 * launch. */
uint64_t template_traffic(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
/* The part of these that must be read: weights, and cached keys and values. */
struct template_reads {
	uint64_t weights, cache;
};
struct template_reads template_reads(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);

/* The number of argument slots of a launch; the enums above name them. */
unsigned template_args(const struct key *key);
/* The approximate cost of generating a kernel, in quarters of a plain matmul's, from counted instructions of the code
 * generators. It only orders the work of compiling threads. So it ignores columns, which all kernels of a pass share,
 * and formats, whose matmuls are adjacent in that order anyway. */
unsigned template_effort(const struct key *key);

/* The compile_build_fn of this project. */
bool template_build(struct ir *ir, const struct key *key, const struct target *target, struct error *err);

/* ---- weight formats: a file for each family (wf_*.c), with packing and how a template reads the next k of its row */
bool weight_supported(enum dtype t); /* as a matrix of a matmul */
/* The layout of a block. WEIGHT_BY_VECTOR: neighbouring lanes load neighbouring elements (CPUs).
 * WEIGHT_LANE_CONTIGUOUS: each lane loads 16 bytes of its own row. */
enum weight_layout { WEIGHT_BY_VECTOR, WEIGHT_LANE_CONTIGUOUS };
static inline enum weight_layout weight_layout_of(const struct target *t)
{
	return t->lane_bytes ? WEIGHT_LANE_CONTIGUOUS : WEIGHT_BY_VECTOR;
}
uint64_t weight_block_bytes(enum dtype t, enum weight_layout layout, uint64_t k); /* one block of 32 rows */
uint64_t weight_packed_bytes(enum dtype t, enum weight_layout layout, uint64_t rows,
                             uint64_t k); /* all blocks, and 512 bytes of slack after them that kernels may read */
/* Packs 32 rows into dst, which has weight_block_bytes(). row[i] points to a row's bytes in the file; NULL: a row of
 * zeros. */
void weight_pack_block(enum dtype t, enum weight_layout layout, void *dst, const void *const row[32], uint64_t k);
/* Converts one row of a file to f32, as the format defines it (tests, vectors, host code). */
void weight_to_f32(enum dtype t, float *out, const void *row, uint64_t k);
/* The default activation format of a weight type: Q8_0 for quantised weights, else F32. */
enum dtype weight_default_activation(enum dtype t);

#endif
