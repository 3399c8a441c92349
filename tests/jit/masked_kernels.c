/* tests/jit/masked_kernels.c - the masked rows of branch_kernels.h. */
#include "jit/ir/lanes.h"
#include "tests/jit/branch_kernels.h"

#include <string.h>

enum { DISP = 40, FLOATS = 0, BYTES = 1536 };

static bool stores(enum ir_op op) { return ir_facts[op].dst == IR_TYPE__; }

static bool indexed(enum ir_op op) { return ir_facts[op].effects & IR_INDEXED; }

/* The type of the lanes that are stored. */
static uint8_t stored(enum ir_op op) { return indexed(op) ? ir_facts[op].c : ir_facts[op].b; }

static int32_t bytes_of(enum ir_op op) { return ir_types[ir_facts[op].type].bytes; }

static bool strided(enum ir_op op) { return ir_facts[op].op == IR_load_strided || ir_facts[op].op == IR_store_strided; }

static int32_t step_of(enum ir_op op) { return strided(op) ? BRANCH_STRIDE : bytes_of(op); }

static ir_m mask_of(struct ir *b, enum branch_mask which, ir_s t)
{
	ir_i lane = ir_ilane(b), at = ir_isplat(b, t);

	switch (which) {
	case BRANCH_BEFORE: return ir_igt(b, lane, at);
	case BRANCH_BEHIND: return ir_mnot(b, ir_igt(b, lane, at));
	case BRANCH_NOWHERE: return ir_igt(b, lane, lane);
	default: return ir_ieq(b, ir_iand(b, ir_ishrv(b, at, lane), ir_iconst(b, 1)), ir_iconst(b, 1));
	}
}

/* Where lane 0 would touch memory, less DISP. */
static ir_a address_of(struct ir *b, enum ir_op op, enum branch_mask which, ir_s t)
{
	ir_a arg = ir_arg(b), pointer = ir_aload(b, arg, 16),
	     first = stores(op) ? ir_aload(b, arg, 8) : ir_aload(b, pointer, 0),
	     end = stores(op) ? ir_aaddi(b, first, BRANCH_STORED) : ir_aload(b, pointer, 56);
	ir_s back = ir_smuli(b, t, step_of(op)), none = ir_sconst(b, 0);

	switch (which) {
	case BRANCH_BEFORE: return ir_aaddi(b, ir_aadd(b, first, ir_ssub(b, none, back)), -step_of(op) - DISP);
	case BRANCH_BEHIND: return ir_aaddi(b, ir_aadd(b, end, ir_ssub(b, none, back)), -bytes_of(op) - DISP);
	case BRANCH_NOWHERE: return ir_aaddi(b, first, BRANCH_WILD);
	default: return ir_aaddi(b, first, -DISP);
	}
}

/* The destination of a gather is the variable of its offsets, which are wild where the mask is not set. */
static void build_gather(struct ir *b, ir_a at, ir_m mask)
{
	ir_i offset = ir_var_i(b, ir_isel(b, mask, ir_ishl(b, ir_ilane(b), 2), ir_iconst(b, BRANCH_WILD)));
	const ir_i loaded = ir_igather(b, at, offset, DISP);

	ir_where(b, mask);
	ir_set_i(b, offset, loaded);
	ir_fstore(b, ir_aload(b, ir_arg(b), 8), ir_fbits(b, offset), 0, 0);
}

static ir_i wild_index(struct ir *b, ir_m mask) { return ir_isel(b, mask, ir_ilane(b), ir_iconst(b, BRANCH_WILD)); }

static void store_loaded(struct ir *b, uint8_t type, uint16_t v)
{
	ir_a out = ir_aload(b, ir_arg(b), 8);

	if (type == IR_TYPE_f64)
		ir_dstore(b, out, (ir_d){ v }, 0, 0);
	else if (type == IR_TYPE_i64)
		ir_lstore(b, out, (ir_l){ v }, 0, 0);
	else
		ir_fstore(b, out, type == IR_TYPE_i32 ? ir_fbits(b, (ir_i){ v }) : (ir_f){ v }, 0, 0);
}

/* As with a gather, what is loaded goes where the index was, if it can. */
static void build_gather_at(struct ir *b, enum ir_op op, ir_a at, ir_m mask)
{
	const uint8_t type = ir_facts[op].dst;
	const ir_i index = ir_var_i(b, wild_index(b, mask));
	const uint16_t v = ir_emit(b, op, type == IR_TYPE_i32 ? index.r : 0, at.r, index.r, 0, DISP);

	ir_where(b, mask);
	store_loaded(b, type, v);
}

void branch_build_masked(struct ir *b, enum ir_op op, enum branch_mask which, unsigned n)
{
	ir_s t = ir_begin(b);
	ir_m mask = mask_of(b, which, t);
	ir_a at = address_of(b, op, which, t), in = ir_aload(b, ir_arg(b), 0);
	const int64_t imm = ir_x(DISP, n, strided(op) ? BRANCH_STRIDE : 0);

	if (ir_facts[op].op == IR_gather) {
		build_gather(b, at, mask);
	} else if (ir_facts[op].op == IR_gather_at) {
		build_gather_at(b, op, at, mask);
	} else if (stores(op)) {
		const uint16_t v = stored(op) == IR_TYPE_i32   ? ir_iload_s8(b, in, BYTES).r
		                   : stored(op) == IR_TYPE_f64 ? ir_dload(b, in, FLOATS, 0).r
		                   : stored(op) == IR_TYPE_i64 ? ir_lload(b, in, FLOATS, 0).r
		                                               : ir_fload(b, in, FLOATS, 0).r;
		const uint16_t index = indexed(op) ? wild_index(b, mask).r : 0;
		ir_emit(b, op, 0, at.r, index ? index : v, index ? v : 0, imm);
		ir_where(b, mask);
	} else {
		const uint16_t v = ir_emit(b, op, 0, at.r, 0, 0, imm);
		ir_where(b, mask);
		store_loaded(b, ir_facts[op].dst, v);
	}
}

/* --- in plain C */

static bool is_set(enum branch_mask which, unsigned lane, int64_t t)
{
	return which == BRANCH_BEFORE   ? lane > t
	       : which == BRANCH_BEHIND ? lane <= t
	                                : which == BRANCH_BETWEEN && (uint64_t)t >> lane & 1;
}

/* Of a lane that takes part, from the first byte of what is loaded or stored. */
static int64_t offset_of(enum ir_op op, enum branch_mask which, unsigned lane, int64_t t, int64_t end)
{
	const int64_t to = (int64_t)lane * step_of(op);

	return which == BRANCH_BEFORE   ? to - (t + 1) * step_of(op)
	       : which == BRANCH_BEHIND ? end - t * step_of(op) - bytes_of(op) + to
	                                : to;
}

static uint64_t element(enum ir_op op, const uint8_t *at)
{
	uint64_t u = 0;

	memcpy(&u, at, (size_t)bytes_of(op));
	switch (ir_facts[op].type) {
	case IR_TYPE_f16: return f32_bits(f16_f32((uint16_t)u));
	case IR_TYPE_i8: return (uint32_t)(u < 128 ? u : u - 256);
	default: return u;
	}
}

static void update_element(enum ir_op op, const struct random_ir_buffers *x, unsigned lane, uint8_t *to)
{
	const uint32_t v = (uint32_t)(int8_t)x->in[BYTES + lane];
	uint32_t old, new;
	uint64_t sum, more;

	if (op == IR_latomic_add) {
		memcpy(&sum, to, 8);
		memcpy(&more, x->in + FLOATS + 8 * lane, 8);
		sum += more;
		memcpy(to, &sum, 8);
		return;
	}
	memcpy(&old, to, 4);
	switch ((unsigned)op) {
	case IR_iatomic_add: new = old + v; break;
	case IR_iatomic_and: new = old &v; break;
	case IR_iatomic_or: new = old | v; break;
	case IR_iatomic_min: new = (int32_t)v < (int32_t)old ? v : old; break;
	case IR_iatomic_max: new = (int32_t)v > (int32_t)old ? v : old; break;
	case IR_uatomic_min: new = v < old ? v : old; break;
	default: new = v > old ? v : old; break;
	}
	memcpy(to, &new, 4);
}

static void store_element(enum ir_op op, const struct random_ir_buffers *x, unsigned lane, uint8_t *to)
{
	float f;

	memcpy(&f, x->in + FLOATS + 4 * lane, 4);
	if (ir_facts[op].effects & IR_READS)
		update_element(op, x, lane, to);
	else if (bytes_of(op) == 8)
		memcpy(to, x->in + FLOATS + 8 * lane, 8);
	else if (bytes_of(op) == 1)
		*to = x->in[BYTES + lane];
	else if (stored(op) == IR_TYPE_i32)
		memcpy(to, &(uint32_t){ (uint32_t)(int8_t)x->in[BYTES + lane] }, (size_t)bytes_of(op));
	else if (bytes_of(op) == 2)
		memcpy(to, &(uint16_t){ f32_f16(f) }, 2);
	else
		memcpy(to, &f, 4);
}

void branch_expect_masked(const struct random_ir_buffers *x, enum ir_op op, enum branch_mask which, unsigned n,
                          unsigned lanes, int64_t t, uint8_t *out)
{
	const int64_t end = stores(op) ? BRANCH_STORED : (int64_t)(x->pointer[7] - x->arg[0]);

	for (unsigned l = 0; l < lanes; l++) {
		const bool takes_part = is_set(which, l, t) && (!n || l < n);
		const int64_t at = offset_of(op, which, l, t, end);
		const size_t bytes = bytes_of(op) == 8 ? 8 : 4;
		uint64_t v = 0;

		if (stores(op) && takes_part)
			store_element(op, x, l, out + at);
		if (stores(op))
			continue;
		if (takes_part)
			v = element(op, x->in + at);
		memcpy(out + bytes * l, &v, bytes);
	}
}

void branch_each_masked(unsigned lanes, void (*fn)(void *user, enum ir_op op, enum branch_mask which, unsigned n),
                        void *user)
{
	const unsigned counts[] = { 0, 5, lanes - 1 };

	for (enum ir_op op = 0; op < IR_ROWS; op++)
		for (enum branch_mask which = 0; which < BRANCH_MASKS; which++)
			for (unsigned k = 0; k < 3; k++) {
				const bool counted = ir_facts[op].imm == IR_IMM_x && ir_facts[op].op != IR_load_strided;
				if (ir_is_row(op) && ir_facts[op].effects & IR_MASKABLE && (counted || !k))
					fn(user, op, which, counts[k]);
			}
}
