/* kernels-templates/formats/weight_format.h - what a weight format must say for matmul, embed and packing to do it.
 *
 * Owns: the interface of the wf_*.c files. To add a format: one file that fills a struct weight_format, and its name
 * in the list below; nothing else in this room knows a format.
 *
 * The packed form of 32 rows is a run of units, each unit_k long in k and unit_bytes in size. Inside a unit lies one or
 * more arrays indexed by row (the lane), each with lanes of 1, 2 or 4 bytes, so row vector v of an array with lanes of
 * n bytes lies v * W * n bytes after its start. Formats whose blocks are larger than what one iteration of a loop
 * should do put what belongs to head_units units into a head before them, in arrays with lanes of 2 bytes: [head][unit]
 * ... [unit][head][unit] ...
 */
#ifndef KERNELS_WEIGHT_FORMAT_H
#define KERNELS_WEIGHT_FORMAT_H

#include "jit/ir/ir_build.h"
#include "kernels-templates/templates.h"

/* Where the current unit of 32 rows lies, seen from arrays with lanes of 1, 2 and 4 bytes: a kernel that starts at row
 * r has added r * 1, r * 2 and r * 4. at[] of a lane size the format does not have need not be set. */
enum { WEIGHT_LANE_1, WEIGHT_LANE_2, WEIGHT_LANE_4, WEIGHT_LANES };
struct weight_stream {
	ir_a at[WEIGHT_LANES], head; /* of the current unit; with lanes of 2 bytes */
	unsigned vectors; /* of a row block, where there are two side by side: vectors from there on are of the second
	                     one, */
	int32_t second_offset;                  /* ... which lies so many bytes after the first; 0: there is one */
	const struct weight_head *in_registers; /* not NULL: what the head says, already loaded */
	bool chooses;                      /* the target chooses bits in one instruction; so do all that read vectors */
	struct weight_vectors *contiguous; /* not NULL: the packing is by vectors, and what an iteration needs is in
	                                 registers (weight_vectors.h) */
};

enum { WEIGHT_MAX_ACC = 32, WEIGHT_MAX_STEP = 4 };

/* The f16 of a head, as f32, where registers hold them for all its units. */
enum { WEIGHT_HEAD_HALVES = 2, WEIGHT_HEAD_VECTORS = 4 };
struct weight_head {
	ir_f half[WEIGHT_HEAD_HALVES][WEIGHT_HEAD_VECTORS];
};

/* A tile of dot products: row vectors first_vector, ... (`vectors` of them) by `columns` columns of activations. */
struct weight_tile {
	unsigned vectors, first_vector, columns;
	unsigned sums; /* integer sums that registers may hold beside the accumulators, at least `columns` */
	bool has_vnni; /* the target's: dot4u beats dot4 */
	bool by_pairs; /* of groups: there are registers for that, and instructions that choose bits */
	bool dot2;     /* elements are words of two bf16 */
	struct weight_stream w;
	ir_a x, xs;                  /* first column at the current k: elements; with int8 also scales */
	int32_t x_column, xs_column; /* bytes from a column to the next */
	int32_t x_step,
		xs_step; /* bytes from a k to the next, with int8 from four k's to the next; from a unit to the next */
	ir_f acc[WEIGHT_MAX_ACC]; /* variables */
	ir_a parked;
	const int32_t *parked_at; /* not NULL: acc[i] waits in memory instead, so many bytes after `parked` */
};
/* Element (int8: group of four) number n of column c, and member of the block of unit n, behind x and xs. */
static inline int32_t weight_input_disp(const struct weight_tile *t, unsigned c, unsigned n)
{
	return (int32_t)c * t->x_column + (int32_t)n * t->x_step;
}
static inline int32_t weight_block_disp(const struct weight_tile *t, unsigned c, unsigned n, size_t member)
{
	return (int32_t)c * t->xs_column + (int32_t)n * t->xs_step + (int32_t)member;
}
/* Row vectors whose integer sums registers hold at once: all, and weights are then read in their order, which memory
 * rewards; else one, or `sums` of single columns. */
static inline unsigned weight_vectors_at_once(const struct weight_tile *t)
{
	return t->vectors * t->columns <= t->sums ? t->vectors : t->columns > 1 ? 1 : t->sums;
}
static inline ir_f weight_product(struct ir *b, const struct weight_tile *t, ir_f x, ir_f y, ir_f sum)
{
	return t->dot2 ? ir_fdot2(b, x, y, sum) : ir_ffma(b, x, y, sum);
}
/* Adds x * y to the accumulator of row vector v of the tile and column c. */
static inline void weight_add_product(struct ir *b, const struct weight_tile *t, unsigned v, unsigned c, ir_f x, ir_f y)
{
	unsigned i = v * t->columns + c;

	if (t->parked_at)
		ir_fstore(b, t->parked, weight_product(b, t, x, y, ir_fload(b, t->parked, t->parked_at[i], 0)),
		          t->parked_at[i], 0);
	else
		ir_set_f(b, t->acc[i], weight_product(b, t, x, y, t->acc[i]));
}

/* Quantised weights as bytes and scales: what the formats with 32 k's in a unit say instead of load() and dot_int8().
 * Group g (0..7) is k's 4g..4g+3 of the unit; groups 0..3 are its first half. A weight is scale * (quant - offset), or
 * scale * quant + minimum. */
struct weight_quants {
	uint8_t max, offset; /* quants are 0..most, most at most 63 */
	bool is_signed;      /* quants are -127..127 instead, offset 0 */
	bool is_wide;        /* quants are 0..255 instead, offset 0 */
	bool halves;         /* each half has its own scale and minimum */
	bool minimum;
	bool as_they_lie;  /* signed, and words of memory: nothing is gained by writing them down elsewhere */
	uint8_t registers; /* vector registers that a product takes with a target of few, beside the sums */
	/* The four quants of group g, a byte each, the lowest k in the low byte. */
	ir_i (*bytes)(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g);
	/* Groups g and g + 4 (g below 4) of formats whose words hold both, as bytes() gives them but for this: the
	 * quants of out[1] are left where they lie, `placed` bits to the left, nothing below them. NULL: there is
	 * nothing to gain. */
	void (*pair)(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned g,
	             ir_i out[2]);
	uint8_t placed;
	/* out[0]: the scale, exact in f32; out[1]: the minimum, as it is added. half is 0 but where halves have their
	 * own. */
	void (*scale)(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned half,
	              ir_f out[2]);
};

/* Arrays of 32 k's: `count` vectors of 32 lanes of `lane` bytes, from byte disp on. Ascending; the last one is the
 * longest. */
enum { WEIGHT_MAX_ARRAYS = 3 };
struct weight_array {
	uint16_t disp;
	uint8_t lane, count;
};

struct weight_format {
	enum dtype type;
	uint32_t unit_k, unit_bytes;
	uint32_t head_units, head_bytes; /* 0: no heads */
	uint8_t lane_sizes;              /* bit WEIGHT_LANE_n: the format has arrays with such lanes */
	struct weight_array array[WEIGHT_MAX_ARRAYS];
	/* Heads of 8 units: the two bytes a unit of array[0] are numbers of six bits once six_bias is added, and by
	 * vectors they are kept as such, in the head. */
	bool six;
	uint8_t six_bias;
	bool float_head; /* heads are the 32 bits of an f32, as two arrays: the lower halves, then the upper ones */

	/* f32 activations: load() yields the next `step` (at most WEIGHT_MAX_STEP) k's of row vector v as f32, from
	 * number `index` (k / step) of the unit unit_disp after w. step divides unit_k. NULL: quants says it, step is
	 * 4. */
	unsigned step;
	void (*load)(struct ir *b, const struct weight_stream *w, int32_t unit_disp, unsigned v, unsigned index,
	             ir_f out[]);

	/* int8 activations: adds one unit, unit_disp after the tile's addresses, to the tile's accumulators; unit
	 * number `index` of x and xs. NULL: quants says it, or the format is not multiplied with int8. */
	void (*dot_int8)(struct ir *b, const struct weight_tile *t, int32_t unit_disp, unsigned index);

	const struct weight_quants *quants;

	/* Files to packed units, and to floats. Rows are as the file has them; no alignment, no padding. No row is
	 * NULL; k elements of each. Where rows begin with a number for all their blocks, they do so here. */
	void (*pack)(void *dst, const void *const row[32], uint64_t k);
	void (*to_f32)(float *out, const void *row, uint64_t k);
};

/* All formats, in the order in which they are looked for. */
/* clang-format off */
#define WEIGHT_FORMATS(X) \
	X(f32) X(f16) X(bf16) X(q8_0) X(q4_0) X(q4_1) X(q5_0) X(q5_1) X(q2_k) X(q3_k) X(q4_k) X(q5_k) \
	X(q6_k) X(iq4_nl) X(iq4_xs) X(mxfp4) X(mlx4) X(nvfp4) X(iq1_s) X(iq1_m) X(iq2_xxs) X(iq2_xs) \
	X(iq2_s) X(iq3_xxs) X(iq3_s) X(tq1_0) X(tq2_0) X(q1_0) X(q2_0) X(mlx8) X(mlx8_f16) X(awq4) \
	X(awq4_bf16) X(fp8) X(iq4_ks) X(iq5_ks) X(iq2_ks)
/* clang-format on */
#define X(name) extern const struct weight_format wf_##name;
WEIGHT_FORMATS(X)
#undef X

/* BF16 as words of two k's, each of which counts as one. */
extern const struct weight_format wf_bf16_dot2;

/* NULL: not supported. */
const struct weight_format *weight_format_find(enum dtype t);
/* As what matmul reads them for activations of a type: of BF16 by BF16, without products of matrices, that is
 * wf_bf16_dot2. */
const struct weight_format *weight_format_for(enum dtype t, enum dtype activation);
/* K's that one element of such a format stands for. */
static inline unsigned weight_element_k(enum dtype activation) { return activation == DTYPE_BF16 ? 2 : 1; }

/* ---- reading weights in a template, whichever way the format says it */

uint64_t weight_run_bytes(const struct weight_format *f,
                          uint64_t k); /* of k (padded) elements of 32 rows, by vectors */
bool weight_has_int8(const struct weight_format *f);
/* Registers a tile's int8 part needs beside accumulators and one integer sum each. */
unsigned weight_int8_registers(const struct weight_format *f);
/* Whether single columns may be multiplied by_pairs. */
bool weight_has_pairs(const struct weight_format *f);
void weight_load(const struct weight_format *f, struct ir *b, const struct weight_stream *w, int32_t unit_disp,
                 unsigned v, unsigned index, ir_f out[]);
void weight_dot_int8(const struct weight_format *f, struct ir *b, const struct weight_tile *t, int32_t unit_disp,
                     unsigned index);

/* ---- vectors of weight_quants */

/* Array of words at `disp` in the unit: word `n` of row vector v. */
ir_i weight_word(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned n);
/* Nibbles as weight_join_nibbles() laid them down. */
ir_i weight_nibbles(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned g);
/* The two nibbles' groups as weight_quants.pair wants them, placed NIBBLES_PLACED bits to the left; and the same of
 * numbers of five bits, as weight_part_fives() laid them down. */
enum { WEIGHT_NIBBLES_PLACED = 4, WEIGHT_FIVES_PLACED = 3, WEIGHT_FIVES_BITS = 128 /* bytes of bits */ };
void weight_nibble_pair(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v, unsigned g, ir_i out[2]);
ir_i weight_five_bytes(struct ir *b, const struct weight_stream *w, int32_t bits, unsigned v, unsigned g);
void weight_five_pair(struct ir *b, const struct weight_stream *w, int32_t bits, unsigned v, unsigned g, ir_i out[2]);
/* Where weight_join_bits() puts the bit of a group. */
static inline unsigned weight_bit_of(unsigned group) { return group < 4 ? 2 * group + 1 : 2 * (group - 4); }
/* The same word shifted right by `by` (left when negative), and masked in each byte. */
ir_i weight_bits(struct ir *b, ir_i word, int by, uint8_t mask);
/* Arrays of f16 in the unit and in the head; of unsigned and signed bytes in the unit, as f32. */
ir_f weight_float(struct ir *b, const struct weight_stream *w, int32_t disp,
                  unsigned v); /* an array of f32 in the unit */
/* The same of numbers that are the upper halves of f32. */
ir_f weight_upper_half(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v);
ir_f weight_half(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v);
ir_f weight_head_half(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v);
ir_f weight_head_float(struct ir *b, const struct weight_stream *w, unsigned v); /* of formats with float_head */
ir_i weight_byte(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v); /* unsigned, not converted */
ir_f weight_u8(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v);
ir_f weight_s8(struct ir *b, const struct weight_stream *w, int32_t disp, unsigned v);

/* ---- packing, shared by the formats. Files are little-endian and so is the host. */

/* Elements from..from + n - 1 of each row, as pack() reads them; a row that is NULL is zeros. Where rows begin with a
 * number for all their blocks, copies of them go to `copies`, 32 * WEIGHT_PART_BYTES, and n is at most 256. */
enum { WEIGHT_PART_BYTES = 256 };
void weight_part(const struct weight_format *f, const void *const row[32], uint64_t from, uint64_t n, uint8_t *copies,
                 const void *part[32]);
/* Takes n 32-bit words (a multiple of 4) from each of 32 rows: dst[word * 32 + row]. */
/* Quant i of 32 whose byte j holds quant j low and quant 16 + j high. */
static inline int weight_nibble(const uint8_t *quants, uint64_t i)
{
	return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}
void weight_transpose_words(uint32_t *dst, const uint8_t *const row[32], unsigned n);
/* The same for 16-bit halves; n is a multiple of 8. */
void weight_transpose_halves(uint16_t *dst, const uint8_t *const row[32], unsigned n);
/* 32 small numbers of each of 32 rows come as bytes of 8 words: src[word * 32 + row], the number in the low bits after
 * a shift right. They are laid down as words again, group g of four numbers in src word g:
 * nibbles: 4 words, group g in the low nibbles of word g and group g + 4 in the high ones; pairs of bits: 2 words,
 * group g at bits 2 * (g % 4) of the bytes of word g / 4; single bits: one word, group g at bit weight_bit_of(g) of
 * each byte: beside that of the group which shares its nibbles. */
void weight_join_nibbles(uint32_t *dst, const uint32_t *src, unsigned shift);
void weight_join_pairs(uint32_t *dst, const uint32_t *src, unsigned shift);
void weight_join_bits(uint32_t *dst, const uint32_t *src, unsigned shift);
/* Nibbles and, behind 128 bytes of fifth bits, as these make numbers of five bits: of the groups in the high nibbles
 * the lowest bit goes to the fifth ones, and the upper four are the nibble. So weight_five_bytes() and
 * weight_five_pair() want them. */
void weight_part_fives(uint32_t *bits);
/* 32 bits of each row, bit k for number k, as weight_join_bits() would lay them down. */
void weight_transpose_bits(uint32_t *dst, const uint8_t *const row[32]);
/* An f16 of each of 32 rows. */
void weight_transpose_scales(void *dst, const uint8_t *const row[32]);
/* The same, with the sign flipped. */
void weight_transpose_minima(void *dst, const uint8_t *const row[32]);
/* Transposes whole rows of `bytes` bytes in tiles of a cache line, adding zeros up to padded_bytes (a multiple of 64).
 */
void weight_transpose_rows(void *dst, const void *const row[32], uint64_t bytes, uint64_t padded_bytes, bool halves);

#endif
