/* tests/jit/random_ir_parts.h - the generator of random kernels, for its files. */
#ifndef TESTS_JIT_RANDOM_IR_PARTS_H
#define TESTS_JIT_RANDOM_IR_PARTS_H

#include "jit/ir/ir_build_numbers.h"

enum { POOL_MAX = 8192, MAX_LOOPS = 4, MAX_DEPTH = 8 /* of loops and ifs */ };
enum region { REGION_IN, REGION_OUT, REGION_LOCAL };

/* tame: a float of either size within 2^20 in magnitude, not NaN; a scalar within 31 bits and a sign. An address lies
 * between lo and hi bytes into its region of `bytes` bytes, a multiple of 8. */
struct value {
	uint16_t r;
	uint8_t kind;
	bool tame, var;
	uint8_t region;
	int32_t bytes, lo, hi;
};

struct generator {
	struct ir *ir;
	uint64_t state;
	struct value pool[POOL_MAX];
	size_t n;
	size_t mark[MAX_DEPTH]; /* of each loop and if that is open: how many values there were before it */
	unsigned depth;
	ir_f low, high;
	ir_a out;
};

unsigned random_below(struct generator *g, unsigned n);
void random_keep(struct generator *g, struct value v);
/* A value in scope: half of the time a recent one, else any, so that some live long. */
struct value *random_pick(struct generator *g, uint8_t kind, bool tame, bool var);
ir_f random_tame_f(struct generator *g);
ir_m random_any_m(struct generator *g);
ir_i random_any_i(struct generator *g);
ir_s random_any_s(struct generator *g);
void random_result_f(struct generator *g, ir_f v);
void random_result_d(struct generator *g, ir_d v);
void random_result_i(struct generator *g, ir_i v);
void random_result_s(struct generator *g, ir_s v);
void random_load(struct generator *g, enum ir_op op);
void random_store(struct generator *g, enum ir_op op);
void random_gather(struct generator *g, enum ir_op op);
void random_indexed(struct generator *g, enum ir_op op);
/* Restricts the instruction just emitted to the lanes of a mask, now and then. */
void random_where(struct generator *g);
/* A new address from one in scope: moved by a constant or by a masked scalar. */
void random_address(struct generator *g, enum ir_op op);
/* A local or shared bytes, and their first contents: whole vectors, then the rest by lanes. */
void random_local(struct generator *g, enum ir_op op);

#endif
