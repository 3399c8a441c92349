/* kernels-templates/formats/weight_vectors.h - weights packed so that a lane loads 16 bytes of its own row at a time,
 * and how a template reads them.
 *
 * Owns: the layout WEIGHT_LANE_CONTIGUOUS, as a permutation of the packing that CPUs read, and the loads of it. Knows
 * no format but through the arrays it declares. An editor keeps the two in step: weight_vectors_offset() is the one
 * function that says where a byte lies.
 *
 * A row block of 32 rows: the periods of its spans, one after another, then its heads. A period is 256 k's counted from
 * the start of a span, or the rest of the span. What a lane (a row) has in a period are its bytes of all the period's
 * arrays, array after array, the last array of the format first; that stream is cut into vectors of 16 bytes, then one
 * of 8, 4, 2, 1 as the rest has these bits; a vector lies as [32 lanes][its bytes]. Heads: [head][32 lanes] [2, 4 or 16
 * bytes], since spans need not begin with one.
 *
 * Heads of 16 bytes: a word of d and, where there is one, of -dmin; then the head's 8 pairs of numbers of six bits, A
 * and B: a word of the low four bits of A, of units 0..3 in the lower halves of its bytes, of units 4..7 in the upper
 * ones; the same of B; a word of the upper two bits, byte u from its low end: of A of unit u, of A of unit u + 4, of B
 * of unit u, of B of unit u + 4. Three operations make four bytes of them.
 */
#ifndef KERNELS_WEIGHT_VECTORS_H
#define KERNELS_WEIGHT_VECTORS_H

#include "kernels-templates/formats/weight_format.h"

enum {
	VECTORS_UNIT_K = 32,
	VECTORS_PERIOD_UNITS = NUMERICS_SEGMENT / VECTORS_UNIT_K,
	VECTORS_SIZES = 5 /* 1, 2, 4, 8, 16 */,
	VECTORS_MAX_WORDS = 72
};

/* A row's bytes of 32 k's, heads apart; those of 32 rows; a row's bytes of a head. */
static inline uint32_t weight_vectors_lane(const struct weight_format *f)
{
	return VECTORS_UNIT_K / f->unit_k * f->unit_bytes / 32 - (f->six ? 2 : 0);
}
static inline uint32_t weight_vectors_unit(const struct weight_format *f) { return weight_vectors_lane(f) * 32; }
static inline uint32_t weight_vectors_head(const struct weight_format *f) { return f->six ? 16 : f->head_bytes / 32; }
/* Of k (padded) elements of 32 rows. */
uint64_t weight_vectors_bytes(const struct weight_format *f, uint64_t k);

/* Where byte `at` of a lane's stream of `bytes` bytes lies in its period. */
uint64_t weight_vectors_offset(uint32_t bytes, uint32_t at, unsigned lane);
/* Where array `number` begins in a lane's stream of `units` units. */
uint32_t weight_vectors_stream(const struct weight_format *f, unsigned number, unsigned units);
/* Packs as weight_pack_block() does. */
void weight_vectors_pack(const struct weight_format *f, void *dst, const void *const row[32], uint64_t k);

/* ---- reading */

/* What registers hold of a step, which is some units of a period. The helpers of weight_format.h look here. */
struct weight_vectors {
	const struct weight_format *format;
	unsigned unit; /* of the step: the one that is read now */
	/* The step's bytes of each array, from byte `skip` of the first word on. */
	struct {
		unsigned skip, n;
		ir_i word[VECTORS_MAX_WORDS];
	} array[WEIGHT_MAX_ARRAYS];
	ir_i head;     /* the unit's */
	ir_f scale[2]; /* of the unit or its half, once made: as weight_quants' scale() gives it */
};

ir_i weight_vectors_word(const struct weight_vectors *p, int32_t disp);
ir_f weight_vectors_half(struct ir *b, const struct weight_vectors *p, int32_t disp);
ir_i weight_vectors_upper(struct ir *b, const struct weight_vectors *p, int32_t disp); /* of 16 bits, moved up */
ir_i weight_vectors_byte(struct ir *b, const struct weight_vectors *p, int32_t disp, bool is_signed);
ir_f weight_vectors_head_half(struct ir *b, const struct weight_vectors *p, int32_t disp);

/* One span of one row block, read from front to back. The caller's part: what to do at a period's start and end, with
 * each unit, and after a step. */
struct weight_visitor {
	void *context;
	void (*begin)(void *context), (*end)(void *context);                        /* of a period; may be NULL */
	void (*unit)(void *context, const struct weight_stream *w, unsigned index); /* index: within its step */
	void (*walk)(void *context, unsigned units); /* a step of so many units is done */
};

struct weight_reader {
	struct ir *b;
	const struct weight_format *format;
	uint32_t row_units, span_units;
	unsigned max_units; /* of a step */
	bool at_once;    /* all that a period has is loaded at its start, but where a shorter one goes through the same
	                    code; weight_vectors_fit() must be all of it */
	bool rest_apart; /* a shorter last period has code of its own, and leaves more scalar registers */
	/* May be NULL: in front of the loads of each chunk of units, to say where it lies, and behind them. */
	void (*take)(void *context, struct weight_reader *r), (*done)(void *context);
	void *chunks;
	unsigned chunk_units;
	ir_a at[VECTORS_SIZES]; /* variables: the period, for a reader of vectors of 1, 2, 4, 8, 16 bytes; they may be
	                          one variable */
	ir_a heads;             /* the row block's heads, for the lane; in use when the format has them */
	ir_s first;             /* number of the span's first unit; the same */
};

/* The most units of a step whose bytes fit the registers kept for them. */
unsigned weight_vectors_fit(const struct weight_format *f);
/* Units that lie side by side and are loaded together, in front of the next ones, where a span is made of such chunks;
 * else 0. */
unsigned weight_vectors_chunk(struct weight_reader *r);
/* Leaves the addresses behind the span, unless chunks are taken. */
void weight_vectors_read(struct weight_reader *r, const struct weight_visitor *v);

#endif
