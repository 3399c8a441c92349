/* kernels-templates/templates.h - the kernels of a forward pass, each written once as a template over the IR.
 *
 * Owns: template_build(), which writes the IR for a key; the meaning of every kernel's argument slots and work units;
 * weight packing. Templates branch on target capabilities (lanes, registers), never on names. What they compute, to the
 * bit, is numerics.h.
 *
 * Layouts shared by all kernels
 *   kp(n) = numerics_pad(n).  Columns are tokens. An f32 activation buffer of width n is [column][kp(n)], pads always
 *   +0. int8 activations of width n: q is int8 [column][kp(n)], s is struct activation_block [column][kp(n)/32]. All
 *   activation buffers are 64-byte aligned and have at least 256 readable (and ignorable) bytes after their end.
 *   Packed weights: blocks of 32 rows, one after another, each weight_block_bytes() long: lane = row; k runs in time.
 *   Missing rows of the last block are zero rows. What a block looks like inside is the target's: enum weight_layout.
 *   KV cache of one layer, element type F16, F32 or Q8_0, in pages of NUMERICS_CHUNK = 128 positions, which lie
 * anywhere: PAGES is a table of their addresses, by number of the page, with one readable entry more than there are
 * pages. A page holds several layers; a layer's keys lie KEYS bytes behind its address, and its values VALUES bytes.
 * There: A latent cache has K of one head alone. K: [kv_head][4][head_dim][32]   lane = position;   V:
 * [kv_head][128][head_dim]   lane = dimension; 256 readable bytes after each page. Q8_0: K: [kv_head][4] of, for each
 * 32 dimensions (the last ones may be fewer): [32] f32 scales, [dimensions/4 rounded up][32] words of four int8, the
 * lowest dimension in the low byte. V: [kv_head][128] of [head_dim/32 rounded up] f32 scales, [head_dim rounded up to
 * 4] int8.
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

/* KEY_MATMUL: out[column][row] = dot(W[row], x[column]) (+ epilogue). key: rows, k, columns (tile width
 * 1..TEMPLATE_MAX_COLUMNS), weight, activation (F32 or Q8_0), row_blocks (1 or 2: blocks of 32 rows per unit), flags
 * BIAS RESIDUAL SILU_MUL GATED BIAS2 QUANTISED_OUT. Unit u: row blocks u*row_blocks ...; the launch never asks for a
 * block past the last. QUANTISED_OUT needs no other unit's rows (a block is 32).
 * SILU_MUL: the blocks of its two matrices alternate in memory, so that both are one stream: block i of W lies at W +
 * 2*i*weight_block_bytes(), of W2 at W2 + 2*i*weight_block_bytes(), and W2 is W + weight_block_bytes(). Bias vectors
 * are f32 [kp(rows)], pads +0. GATED is the second half of SILU_MUL for matrices that are not alike: the first one's
 * results (its bias added) are what the destination holds.
 * BY_HEAD: key: heads, head_dim. A matrix of `rows` for each head, one behind the other, each of whole row blocks; X is
 * [column][heads][kp(k)], int8 likewise, XS [column][heads][kp(k)/32]; OUT is [column][kp(heads*head_dim)], of which
 * the first `rows` of each head_dim are written. No other flags. row_blocks is 1; unit: a row block, of all heads' in
 * turn. WIDE: for many columns: 1..TEMPLATE_MAX_WIDE in a tile, which KEY_INTERLEAVE has laid side by side in panels of
 * template_wide_panel() columns, of which a tile's last one may have fewer: X is [tile][panel][k][column], int8
 * [tile][panel][k/32][column] blocks of 32, XS [tile][panel][k/32][column]; row_blocks is 1.
 * EXPERTS: W holds matrices of one size one behind the other, and data says which are used; BIAS and BIAS2 hold vectors
 * in the same order. MATMUL_TILES is not read. tile_n 1: slots. key: heads, slots of a token (ROUTE_MOST at most);
 * kv_heads, slots that share a column of X. Unit: slot * row blocks + row block; ROUTES: int32 [token][ROUTE_MOST], the
 * matrix of each slot; OUT's column is the slot, X's is slot / kv_heads. tile_n > 1, a power of two: groups. Unit:
 * group
 * * row blocks + row block; ROUTES: struct route_group by group, whose columns are multiplied in tiles of tile_n and of
 * the powers of two below.
 * NORM_IN: for groups of waves, with plain tiles: X is f32 whatever the activations are, and what is multiplied is its
 * norm (NORM and EPS as of KEY_NORM; CENTRED), as int8 blocks where the activations are. Each group makes it for
 * itself, in shared bytes.
 * AWAITED: for groups of waves, one plain tile (template_matmul_awaits()): X, and XS of int8 activations, are awaited,
 * OUT is given. With NORM_IN X is f32 as ever. With QUANTISED_OUT OUTQ and OUTS are given instead of OUT. RESIDUAL: the
 * product is added to FROM, which is awaited too and is other memory than OUT. GREATEST: for groups of waves and whole
 * row blocks: the greatest result of each row block is at GREATEST; +inf if one of them is not finite. No other flags
 * but BIAS, AWAITED, MMA and NORM_IN (CENTRED). MMA: for 16, 32, 64 or 128 columns in a tile: int8 activations laid out
 * as ever with Q8_0 weights, or others where template_mma() says so; f16 or bf16 ones, [column][kp], as KEY_INTERLEAVE
 * made them, with weights of that type (numerics BOUNDED); row_blocks is 1. Without MMA, BF16 by BF16 are pairs
 * (template_dot2()), as KEY_INTERLEAVE made them of tiles as wide as WIDE's, else of single columns. */
enum {
	MATMUL_W,
	MATMUL_X,
	MATMUL_XS,
	MATMUL_OUT,
	MATMUL_TILES /* column tiles, each key.columns wide */,
	MATMUL_BIAS,
	MATMUL_W2,
	MATMUL_BIAS2,
	MATMUL_OUTQ,
	MATMUL_OUTS,
	MATMUL_ROUTES,
	MATMUL_NORM, /* f32 [kp(k)] */
	MATMUL_EPS,  /* f32 bits in the low half */
	MATMUL_FROM, /* with AWAITED and RESIDUAL: what the product is added to */
	MATMUL_GREATEST /* f32 [column][row block] */,
	MATMUL_COLUMNS, /* of all tiles; read where the last one may have fewer (template_floats_short()) */
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

/* KEY_INTERLEAVE: activations for wide matmuls. key: k, activation, columns (of a tile), row_blocks (columns of a
 * panel). X and XS as quantise and norm write them, OUT and OUTS as WIDE reads them, tile after tile; UNSIGNED: int8
 * with 128 added, as unsigned bytes. Unit: 32 k's of one tile, numbered tile * kp(k)/32 + block. Of activation F16 or
 * BF16 (numerics BOUNDED): f32 of X rounded to 16 bits at OUT. Where pairs are multiplied, a pair of k's is a word, and
 * words are turned as f32 are, of a tile of 1 column or more; else they lie [column][kp], a unit is 32 k's, numbered
 * column * kp(k)/32 + block, and key has no k. */
enum { INTERLEAVE_X, INTERLEAVE_XS, INTERLEAVE_OUT, INTERLEAVE_OUTS, INTERLEAVE_ARGS };

/* KEY_NORM: RMS norm over k. Unit: a column. X and OUT are different memory. QUANTISED_OUT also writes outq/outs;
 * RESIDUAL adds to OUT; CENTRED subtracts the mean first. key: heads (0 or more): a token is so many columns without
 * pads between them, each with weights of its own, which lie likewise, or all with the same ones (kv_heads 1); k is a
 * multiple of 16 then, and all columns of a token one of 32. AWAITED, with QUANTISED_OUT, for
 * groups of waves: X is awaited, OUTQ and OUTS are given instead of OUT (template_norm_awaits()). */
enum {
	NORM_X,
	NORM_WEIGHT /* f32 [kp(k)] */,
	NORM_OUT,
	NORM_EPS /* f32 bits in the low half */,
	NORM_OUTQ,
	NORM_OUTS,
	NORM_ARGS
};

bool template_norm_awaits(const struct target *target, uint32_t k);

/* KEY_QUANTISE: f32 to int8 blocks. Unit: one block of 32, numbered column * kp(k)/32 + block (the layouts make that
 * contiguous). key: nothing but kind, target. */
enum { QUANTISE_X, QUANTISE_OUTQ, QUANTISE_OUTS, QUANTISE_ARGS };

/* KEY_SCALE: f32 times a number, to OUT, which may be IN; RESIDUAL: added to OUT; CAP: bounded by the number instead.
 * PAIR: BY is where as many numbers lie; GATED: where the one number lies.
 * Unit: 32 elements in a row of memory. key: nothing but kind, target and flags. */
enum { SCALE_IN, SCALE_OUT, SCALE_BY /* f32 bits */, SCALE_ARGS };

/* Experts: a token is multiplied by `heads` of `rows` matrices of one size, which its slots are for: slot 0 has the
 * first choice. */
enum { ROUTE_MOST = 32 /* slots of a token */, ROUTE_EXPERTS_MOST = 1024 };
struct route_group { /* columns that are multiplied by the same matrix lie side by side */
	int32_t expert, first, columns, unused;
};

/* KEY_ROUTE: chooses them (numerics.h rule 14). key: rows, heads, flags SIGMOID NORMED MILLIONTH OF_ALL BIAS. LOGITS:
 * f32 [column][kp(rows)]; CHOSEN: int32 [column][ROUTE_MOST]; SHARES: f32 likewise, pads of both 0. Unit: a column.
 * kv_heads: groups of experts, ROUTE_MOST at most, of which k are chosen first; 0: there are none. */
enum {
	ROUTE_LOGITS,
	ROUTE_CHOSEN,
	ROUTE_SHARES,
	ROUTE_SCALE /* f32 bits, which all shares are multiplied by */,
	ROUTE_BIAS /* f32 [kp(rows)], for the choice alone */,
	ROUTE_TIMES /* SCALED: f32 [kp(rows)], which each expert's share is multiplied by */,
	ROUTE_ARGS
};

/* KEY_DISPATCH: sorts the slots of a pass by expert, and by token among equals. key: rows, heads. CHOSEN as ROUTE
 * writes it, of TOKENS tokens; PLACES: int32 [token][ROUTE_MOST], where a slot's column lies; GROUPS: struct
 * route_group, of those experts that have columns, in ascending order, then empty ones up to GROUP_COUNT, with one more
 * that may be written. Unit: the pass. */
enum { DISPATCH_CHOSEN, DISPATCH_TOKENS, DISPATCH_PLACES, DISPATCH_GROUPS, DISPATCH_GROUP_COUNT, DISPATCH_ARGS };
/* KEY_SCATTER: copies a token's activation to the columns of its slots. key: k, heads, activation. Unit: a token. */
enum { SCATTER_X, SCATTER_XS, SCATTER_PLACES, SCATTER_OUT, SCATTER_OUTS, SCATTER_ARGS };
/* KEY_COMBINE: the weighted sum of a token's slots (numerics.h rule 14). key: k, heads, flags SORTED, SIGMOID, RESIDUAL
 * (added to OUT). IN: f32 [slot][kp(k)], slot token * heads + number, or with SORTED as PLACES says. Unit: 32 elements,
 * numbered token * kp(k)/32 + block. */
enum { COMBINE_IN, COMBINE_SHARES, COMBINE_PLACES, COMBINE_OUT, COMBINE_ARGS };
/* The most columns of a tile of EXPERTS. */
static inline unsigned template_experts_tile_n(const struct target *t) { return t->lane_bytes ? 4 : 8; }

/* KEY_LAYER_INPUTS: numerics.h rule 11, for all layers. key: k (of one layer), rows (layers). X and E: [column][kp(rows
 * * k)], layers k apart; OUT: [layer][column][kp(k)], pads +0. Unit: column*rows + layer. */
enum {
	LAYER_INPUTS_X,
	LAYER_INPUTS_E,
	LAYER_INPUTS_WEIGHT /* f32 [kp(k)] */,
	LAYER_INPUTS_OUT,
	LAYER_INPUTS_EPS /* f32 bits */,
	LAYER_INPUTS_BY /* f32 bits: of E */,
	LAYER_INPUTS_COLUMNS /* of the launch */,
	LAYER_INPUTS_ARGS
};
enum { TEMPLATE_MAX_LAYER_INPUTS = 1024 };

/* KEY_ROPE: queries: optional norm per head (QK_NORM), rotation, scale. key: heads, head_dim. In and out are
 * [column][kp(heads*head_dim)]; heads lie head_dim apart. Unit: column*heads + head. cos/sin: f32
 * [column][head_dim/2].
 * LATENT: key: heads, k (dimensions of a head that do not rotate), head_dim (those behind them that do), rows
 * (dimensions of a latent vector). IN: [column][kp(heads*(k+head_dim))]; OUT: [column][kp(heads*(rows+head_dim))], of
 * which a head's last head_dim are written; REST: [column][heads][kp(k)]. cos/sin: f32 [column][head_dim/2 + 1]: the
 * last pair is what does not rotate. */
enum {
	ROPE_IN,
	ROPE_OUT,
	ROPE_COS,
	ROPE_SIN,
	ROPE_NORM /* f32 [kp(head_dim)] */,
	ROPE_EPS,
	ROPE_SCALE /* f32 bits */,
	ROPE_REST /* LATENT */,
	ROPE_ARGS
};

/* KEY_KV_STORE: keys get optional norm and rotation, values an optional norm (VALUE_NORM), then both go into the cache
 * at position POS0 + column. V may be K. key: kv_heads, head_dim, kv. Unit: group*kv_heads + head, of
 * template_kv_store_tokens() columns; the last group may be smaller.
 * LATENT: key: kv_heads 1, k (dimensions of the latent vector), head_dim (those, and what rotates behind them), kv. K:
 * [column][kp(head_dim)]; NORM: [k], of the latent vector; no values. cos/sin as of KEY_ROPE. */
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
	KV_STORE_COLUMNS /* of the launch; read where groups have several */,
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

/* KEY_ATTENTION: column c at position p = POS0 + c sees positions max(0, p+1-window)..p (WINDOW) or 0..p. key: heads,
 * kv_heads, head_dim, kv. Unit: column*kv_heads + kv head; does all heads/kv_heads query heads of it. Q and OUT:
 * [column][kp(heads*head_dim)].
 * key.columns > 1 (a power of two): tiles of columns at positions n * key.columns ...; unit: tile*kv_heads + kv head,
 * tile 0 the one with position POS0. Tiles past the last column may be asked for.
 * key.rows (a power of two; one column): the context's chunks are cut into so many parts of neighbours, and OUT is
 * records of chunks for KEY_MERGE: [chunk][heads], each template_attention_record() bytes. Unit: part*kv_heads + kv
 * head. A chunk's number is its position's, windows or not; chunks that are not visible have no records. With ROTATES
 * there may be key.columns columns, 1 to 16, at positions POS0 .. POS0 + columns - 1, in one unit together
 * (template_attention_columns()): records are [chunk][kv head][column][heads/kv_heads], and of chunks that a column
 * does not see they mean nothing.
 * key.row_blocks (with several columns; template_attention_apart()): a unit has so many of the columns, the
 * last one what is left: (its number * kv_heads + kv head) * parts + part. Nothing is stored: KEY_KV_STORE has to do
 * that behind all units.
 * ROTATES (groups of waves, one column, or in parts): Q is what KEY_ROPE reads as IN, K and V what KEY_KV_STORE reads,
 * and what these two do is done here; QK_NORM, NORM_LAST and VALUE_NORM are as theirs.
 * QUANTISED_OUT, with ROTATES, in one part, of whole blocks of 32: also writes the result as int8 blocks.
 * AWAITED, with ROTATES, in parts: Q, K and V are awaited, records are given.
 * LATENT: key: heads, kv_heads, head_dim, k, kv. A cache of one head of head_dim as KEY_KV_STORE's LATENT writes it, at
 * KEYS: the first k dimensions of keys are the values. kv_heads: units of a column, each of heads/kv_heads queries.
 * OUT: [column][kp(heads*k)]. */
enum {
	ATTENTION_Q,
	ATTENTION_KEYS,
	ATTENTION_VALUES,
	ATTENTION_OUT,
	ATTENTION_POS0,
	ATTENTION_PAGES,
	ATTENTION_SLIDING /* window length */,
	ATTENTION_COLUMNS /* of the launch; read by tiles of several */,
	ATTENTION_CAP /* with CAP: what bounds the scores, f32 bits */,
	ATTENTION_SINKS /* with SINKS: f32 [heads] */,
	ATTENTION_K /* from here on with ROTATES */,
	ATTENTION_V,
	ATTENTION_COS,
	ATTENTION_SIN,
	ATTENTION_NORM /* of queries: f32 [kp(head_dim)] */,
	ATTENTION_SCALE /* f32 bits */,
	ATTENTION_KEY_COS,
	ATTENTION_KEY_SIN,
	ATTENTION_KEY_NORM,
	ATTENTION_EPS,
	ATTENTION_OUTQ /* with QUANTISED_OUT */,
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

/* KEY_MERGE: attention's result from the records of its chunks. key: heads, head_dim, flags WINDOW, SINKS. RECORDS as
 * KEY_ATTENTION left them; OUT: [kp(heads*head_dim)]. Unit: 32 dimensions of a head, or all where heads are no multiple
 * of that: head * template_merge_units() + number. Of several columns (key.columns; kv_heads): OUT is [column], POS0
 * the first one's position, and a unit's head column * heads + head. AWAITED: records are awaited, OUT is given.
 * QUANTISED_OUT (head_dim a multiple of 32): also writes the result as int8 blocks; with AWAITED these are given
 * instead of OUT. */
enum {
	MERGE_RECORDS,
	MERGE_OUT,
	MERGE_POS0,
	MERGE_SLIDING /* window length */,
	MERGE_SINKS /* with SINKS: f32 [heads] */,
	MERGE_OUTQ /* with QUANTISED_OUT */,
	MERGE_OUTS,
	MERGE_ARGS
};
static inline unsigned template_merge_units(uint32_t head_dim) { return head_dim % 32 ? 1 : head_dim / 32; }

/* How many units should share the heads of a column of latent attention, in a pass over `columns` columns. */
unsigned template_latent_units(uint32_t heads, uint32_t columns);

/* KEY_CONV: a causal convolution over time, channel by channel; X, OUT: f32 [column][k], k a multiple of 32. key: k
 * (channels), rows (taps), act (of the sums; none). GATED: its input is X * X2, and the result is times GATE. BIAS: f32
 * [k], added to the sums. WEIGHT: f32 [k][taps], the oldest input's first. STATE: f32 [taps - 1][k], the inputs before
 * the first column and before the one behind the last, the oldest first; IN and OUT are different memory. Unit: 32
 * channels, in all columns. */
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
/* KEY_DELTA: the gated delta rule. key: heads (of values), kv_heads (of keys and queries), head_dim (of a key), rows
 * (of a value); both multiples of 16, heads * rows one of 32. QKV: f32 [column], queries, keys, values, head after
 * head. A, B: f32 [column][kp(heads)]; DECAY, DT: f32 [kp(heads)]. SCALE: of queries, f32 bits. OUT: f32 [column][heads
 * * rows]. STATE: f32 [head][blocks][head_dim][32], blocks of template_value_blocks(rows), of a short one 16 numbers in
 * 32 and +0 behind; IN and OUT are different memory. TILED: value head h has key head h % kv_heads, else h / (heads /
 * kv_heads). Unit: head * blocks + block of 32 values, in all columns. */
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

/* KEY_SCAN: the selective scan. key: heads, kv_heads (groups of heads, which have keys and queries in common), head_dim
 * (rows of a head's state, which are elements of a key; a multiple of 16), rows (values of a head; a multiple of 16,
 * heads * rows one of 32). XBC: f32 [column], values, head after head, then keys and queries, group after group. DT:
 * f32 [column][kp(heads)]; DT_BIAS, DECAY, SKIP: f32 [kp(heads)]. FLOOR, CEILING: the least and the greatest step, f32
 * bits. OUT: f32 [column][heads * rows]. STATE, units: as of KEY_DELTA. */
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

/* KEY_GATE: OUT = X * act(GATE), f32; OUT may be either. key: act. Unit: 32 elements in a row of memory. */
enum { GATE_X, GATE_GATE, GATE_OUT, GATE_ARGS };

/* KEY_EMBED: out[column] = row ids[column] of packed W as f32 (quantised: dw * (float)q). key: rows, k, weight. Unit:
 * column. Ids are checked by the caller. AWAITED (groups of waves): OUT is given. */
enum { EMBED_W, EMBED_IDS /* int32 */, EMBED_OUT, EMBED_ARGS };

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
