/* jit/ir/interp.c - the meaning of the IR, and the oracle of every backend.
 *
 * Owns: one case per row. Rows of ops.def that have an expression become a loop over the lanes (or one scalar
 * statement) around that very text; the rows written by hand are the cases below, and are their definition. Nothing
 * here optimises: an instruction is decoded once (registers to frame offsets, displacement, lane count and stride
 * apart) and executed as it stands. The lane count is a constant in each instance of the dispatcher so that the
 * compiler vectorises the lane loops; keep lanes free of branches.
 */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed" /* a build without optimisation vectorises nothing, rightly */
#elif defined(__SANITIZE_ADDRESS__)              /* with its checks, vectorising takes minutes of this file */
#pragma GCC optimize("fp-contract=off")
#else /* O3 takes four times as long, for copies of loops that vectors leave nothing to do */
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "fp-contract=off")
#endif

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/interp_program.h"
#include "jit/ir/interp_wide.h"
#include "jit/ir/lanes.h"
#include "jit/ir/rows.h"

void interp_free(struct interp_program *p) { free(p); }

/* A frame for each wave, each a multiple of 64 bytes, then the shared bytes. */
size_t interp_frame_bytes(const struct interp_program *p) { return p->waves * p->frame_bytes + p->shared_bytes; }

/* clang's undefined-behaviour checks of an address: at each access of each row six times over, they take two minutes of
 * this file. AddressSanitizer looks at the same accesses. INTERP_EVERY_CHECK keeps them (check.sh --usual and --full).
 */
#if defined(__clang__) && !defined(INTERP_EVERY_CHECK)
#define PARTLY_CHECKED __attribute__((no_sanitize("alignment", "null", "pointer-overflow", "object-size")))
#else
#define PARTLY_CHECKED
#endif

/* The lane loops. dst may be a or b or c itself, lane for lane, never shifted: lanes are independent. */
#ifdef __clang__
#define EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < W; l++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned l = 0; l < W; l++)
#endif

#define UNUSED __attribute__((unused))

/* What an expression gives, as a lane's bits: by the letter of its row's dst and the lanes' type. */
#define BITS_I32(x) ((uint32_t)(int32_t)(x))
#define BITS_MASK(x) ((x) ? 0xffffffffu : 0u)
#define BITS_v_f32(x) f32_bits(x)
#define BITS_w_f32(x) BITS_I32(x)
#define BITS_q_f32(x) BITS_MASK(x)
#define BITS_v_i32(x) BITS_I32(x)
#define BITS_q_i32(x) BITS_MASK(x)
#define BITS_v_m(x) BITS_MASK(x)
#define FROM_F32(bits) bits_f32(bits)
#define FROM_I32(bits) (int32_t)(bits)
#define FROM_MASK(bits) (bits) != 0

/* Rows of lanes: T is their C type, FROM makes one of its bits. */
#define LANES_OF(BITS, T, FROM, expression) \
	{ \
		uint32_t *d = INTERP_REG(in->dst); \
		const uint32_t *pa = INTERP_REG(in->a), *pb = INTERP_REG(in->b), *pc = INTERP_REG(in->c); \
		const int64_t UNUSED as = INTERP_SCALAR(in->a); \
		const int32_t UNUSED imm = (int32_t)in->imm; \
		const T UNUSED k = FROM((uint32_t)in->imm); \
		typedef T UNUSED lane_type; \
		EACH_LANE \
		{ \
			const uint32_t UNUSED au = pa[l], bu = pb[l], cu = pc[l]; \
			const int32_t UNUSED ai = (int32_t)au, bi = (int32_t)bu, ci = (int32_t)cu; \
			const T UNUSED a = FROM(au), b = FROM(bu), c = FROM(cu); \
			const bool UNUSED am = au != 0; \
			const int32_t UNUSED lane = (int32_t)l; \
			d[l] = BITS(expression); \
		} \
		break; \
	}
#define SCALAR_OF(expression) \
	{ \
		const int64_t UNUSED a = INTERP_SCALAR(in->a), b = INTERP_SCALAR(in->b), c = INTERP_SCALAR(in->c); \
		const int64_t UNUSED imm = in->imm, k = imm; \
		const bool UNUSED am = a != 0; \
		INTERP_SCALAR(in->dst) = expression; \
		break; \
	}
#define TILE_OF(expression) \
	{ \
		const struct ir_facts *facts = &ir_facts[in->row]; \
		uint32_t *d = INTERP_REG(in->dst); \
		const uint32_t *pa = INTERP_REG(in->a), *pb = INTERP_REG(in->b), *pc = INTERP_REG(in->c); \
		const float UNUSED k = bits_f32((uint32_t)in->imm); \
		typedef float UNUSED lane_type; \
		for (unsigned l = 0; l < IR_TILE * IR_TILE; l++) { \
			const uint32_t au = facts->a ? pa[l] : 0, bu = facts->b ? pb[l] : 0, \
				       cu = facts->c ? pc[l] : 0; \
			const int32_t UNUSED ai = (int32_t)au; \
			const float UNUSED a = bits_f32(au), b = bits_f32(bu), c = bits_f32(cu); \
			d[l] = f32_bits(expression); \
		} \
		break; \
	}
#define ROW_f64(dst, a, b, c, expression) \
	WIDE_LANES_OF(GIVE_##dst##_f64, WIDE_##a, WIDE_##b, WIDE_##c, double, FROM_F64, expression)
#define ROW_i64(dst, a, b, c, expression) \
	WIDE_LANES_OF(GIVE_##dst##_i64, WIDE_##a, WIDE_##b, WIDE_##c, int64_t, FROM_I64, expression)
#define ROW_f32(dst, a, b, c, expression) LANES_OF(BITS_##dst##_f32, float, FROM_F32, expression)
#define ROW_i32(dst, a, b, c, expression) LANES_OF(BITS_##dst##_i32, int32_t, FROM_I32, expression)
#define ROW_m(dst, a, b, c, expression) LANES_OF(BITS_##dst##_m, bool, FROM_MASK, expression)
#define ROW_s(dst, a, b, c, expression) SCALAR_OF(expression)
#define ROW_a(dst, a, b, c, expression) SCALAR_OF(expression)
#define ROW_c(dst, a, b, c, expression) SCALAR_OF(expression)
#define ROW_t(dst, a, b, c, expression) TILE_OF(expression)
/* What elements in memory are as lanes. */
#define ROW_f16 ROW_f32
#define ROW_bf16 ROW_f32
#define ROW_i8 ROW_i32
#define ROW_u8 ROW_i32
#define ROW_i16 ROW_i32
/* x: dst, a, b, c and the expression. */
#define CASE(x, row, type) CASE_WITH(row, type, IR_EACH_BARE x)
#define CASE_WITH(row, type, ...) CASE_APART(row, type, __VA_ARGS__)
#define CASE_APART(row, type, dst, a, b, c, ...) \
	case IR_##row: ROW_##type(dst, a, b, c, (__VA_ARGS__))

/* The rows of memory. Lanes from in->lanes on, and those that the mask is not set for, load as zero and are not stored,
 * and their memory is not touched. Most rows have all lanes. */
static const uint32_t every_lane[32] = { [0 ... 31] = 0xffffffffu };
#define MASK_OF(in) ((const uint32_t *)((in)->mask ? INTERP_REG((in)->mask) : every_lane))
#define LOAD(expression) \
	{ \
		uint32_t *d = INTERP_REG(in->dst); \
		const char *at = INTERP_ADDRESS(in->a); \
		if (!in->mask && in->lanes == W) \
			EACH_LANE d[l] = (expression); \
		else \
			for (unsigned l = 0; l < W; l++) \
				d[l] = l < in->lanes && MASK_OF(in)[l] ? (expression) : 0; \
		break; \
	}
/* Nobody else runs meanwhile, so a word that is not there would never come. dst may be b. */
#define AWAIT(expression, wanted) \
	{ \
		uint32_t *d = INTERP_REG(in->dst); \
		const char *at = INTERP_ADDRESS(in->a); \
		EACH_LANE \
		{ \
			d[l] = (wanted) ? (expression) : 0; \
			if (d[l] == IR_EMPTY) \
				wave->end = INTERP_UNWRITTEN; \
		} \
		if (wave->end != INTERP_DONE) \
			return; \
		break; \
	}
#define BROADCAST(expression) \
	{ \
		uint32_t *d = INTERP_REG(in->dst); \
		const char *at = INTERP_ADDRESS(in->a); \
		const uint32_t v = (expression); \
		EACH_LANE d[l] = v; \
		break; \
	}
#define STORE(lanes, statement) \
	{ \
		char *at = INTERP_ADDRESS(in->a); \
		const uint32_t *v = INTERP_REG(in->b), *m = MASK_OF(in); \
		if (!in->mask) \
			for (size_t l = 0; l < (lanes); l++) \
				statement; \
		else \
			for (size_t l = 0; l < (lanes); l++) \
				if (m[l]) \
					statement; \
		break; \
	}

/* --- rows that are uniform, or move whole lanes, or branch */

static void copy_lanes(char *to, const char *from, const char *c, size_t bytes, unsigned lanes)
{
	for (unsigned l = 0; l < lanes; l++)
		memcpy(to + l * bytes, from + interp_get32(c + 4 * l), bytes);
}

static bool is_set(const uint32_t *mask, unsigned lanes, bool everywhere)
{
	for (unsigned l = 0; l < lanes; l++)
		if (!mask[l] == everywhere)
			return !everywhere;
	return everywhere;
}

/* These return the instruction in front of the next one. */
static const struct interp_ins *go_to(const struct interp_program *p, const struct interp_ins *in)
{
	return p->ins + in->imm - 1;
}

static const struct interp_ins *branch(const struct interp_program *p, const struct interp_ins *in, char *frame,
                                       int64_t *count)
{
	switch ((enum ir_op)in->row) {
	case IR_loop:
		count[in->c] = INTERP_SCALAR(in->a);
		INTERP_SCALAR(in->dst) = 0;
		return count[in->c] <= 0 ? go_to(p, in) : in;
	case IR_endloop: return ++INTERP_SCALAR(in->dst) < count[in->c] ? go_to(p, in) : in;
	case IR_if: return INTERP_SCALAR(in->a) ? in : go_to(p, in);
	case IR_break: return INTERP_SCALAR(in->a) ? go_to(p, in) : in;
	case IR_else: return go_to(p, in);
	default: return in; /* endif */
	}
}

static __attribute__((noinline)) const struct interp_ins *other_row(
	const struct interp_program *p, const struct interp_ins *in, char *frame, const struct interp_call *call,
	int64_t *count, unsigned lanes)
{
	const unsigned op = ir_facts[in->row].op;
	int64_t *to = &INTERP_SCALAR(in->dst);

	switch ((enum ir_op)in->row) {
	case IR_copy: memcpy(INTERP_POINTER(in->a), INTERP_POINTER(in->b), (size_t)in->imm); break;
	case IR_copy_at:
		copy_lanes(INTERP_POINTER(in->a), INTERP_POINTER(in->b), INTERP_REG(in->c), (size_t)in->imm, lanes);
		break;
	case IR_sload32: *to = interp_get32(INTERP_ADDRESS(in->a)); break;
	case IR_sload64:
	case IR_aload: *to = (int64_t)interp_get64(INTERP_ADDRESS(in->a)); break;
	case IR_any: *to = is_set(INTERP_REG(in->a), lanes, false); break;
	case IR_all: *to = is_set(INTERP_REG(in->a), lanes, true); break;
	case IR_local: *to = (intptr_t)(frame + p->locals + in->imm); break;
	case IR_arg: *to = (intptr_t)call->arg; break;
	case IR_begin: *to = call->begin; break;
	case IR_end: *to = call->end; break;
	case IR_wave: *to = call->wave; break;
	case IR_part: *to = 0; break;
	case IR_parts: *to = 1; break;
	case IR_shared: *to = (intptr_t)(call->shared + in->imm); break;
	default:
		if (ir_does(op, IR_BRANCHES))
			return branch(p, in, frame, count);
		if (!ir_does(op, IR_COPIES | IR_HINTS))
			interp_matrix_row(in, frame);
	}
	return in;
}

/* --- rows that take more than an expression. Each is a part of the dispatcher, where the number of lanes is a
 * constant. */

#define PART static inline PARTLY_CHECKED __attribute__((always_inline))

/* dst may be a: a lane's partner must be read before it is written. */
PART void exchange_lanes(uint32_t *d, const uint32_t *a, unsigned mask, const unsigned W)
{
	uint32_t old[32];

	memcpy(old, a, W * 4);
	for (unsigned l = 0; l < W; l++)
		d[l] = old[l ^ mask];
}

PART void load_words(uint32_t *d, const char *at, unsigned lanes, const uint32_t *mask, const unsigned W)
{
	if (!mask) {
		memset(d, 0, W * 4);
		memcpy(d, at, lanes * 4u);
		return;
	}
	for (unsigned l = 0; l < W; l++)
		d[l] = l < lanes && mask[l] ? interp_get32(at + 4 * l) : 0;
}

PART void exchange_wide(uint64_t *d, const uint64_t *a, unsigned mask, const unsigned W)
{
	uint64_t old[32];

	memcpy(old, a, W * 8);
	for (unsigned l = 0; l < W; l++)
		d[l] = old[l ^ mask];
}

PART void load_wide(uint64_t *d, const char *at, unsigned lanes, const uint32_t *mask, const unsigned W)
{
	for (unsigned l = 0; l < W; l++)
		d[l] = l < lanes && mask[l] ? interp_get64(at + 8 * l) : 0;
}

PART void broadcast_wide(uint64_t *d, uint64_t value, const unsigned W)
{
	for (unsigned l = 0; l < W; l++)
		d[l] = value;
}

PART void store_wide(char *at, const uint64_t *v, unsigned lanes, const uint32_t *mask)
{
	for (size_t l = 0; l < lanes; l++)
		if (mask[l])
			memcpy(at + 8 * l, &v[l], 8);
}

/* dst may be b: each lane reads its own offset only. */
PART void gather(uint32_t *d, const char *at, const int32_t *b, const uint32_t *mask, const unsigned W)
{
	for (unsigned l = 0; l < W; l++)
		d[l] = mask[l] ? interp_get32(at + b[l]) : 0;
}

/* A test that compiles this file once more looks at each instruction here, before it is run (tests/kernels/watched.c).
 */
#ifndef INTERP_ROW
#define INTERP_ROW(in, frame, lanes) ((enum ir_op)(in)->row)
#endif

PART void interp_go(const struct interp_program *p, char *frame, const struct interp_call *call,
                    struct interp_wave *wave, const unsigned W)
{
	const struct interp_ins *in = wave->in, *const stop = p->ins + p->n_ins;
	int64_t *const count = wave->count;

	wave->in = NULL;
	for (; in < stop; in++)
		switch (INTERP_ROW(in, frame, W)) {
#define OPS(name, dst, a, b, c, imm, effects, needs, expression, meaning, ...) \
	IR_EACH(CASE, (dst, a, b, c, expression), __VA_ARGS__)
#define OP_BY_HAND(name, ...)
#define OPS_BY_HAND(name, ...)
#include "jit/ir/ops.def"
#undef OPS
		case IR_fxor: exchange_lanes(INTERP_REG(in->dst), INTERP_REG(in->a), (unsigned)in->imm, W); break;
		case IR_dxor: exchange_wide(INTERP_REG(in->dst), INTERP_REG(in->a), (unsigned)in->imm, W); break;
		case IR_dload:
		case IR_lload: load_wide(INTERP_REG(in->dst), INTERP_ADDRESS(in->a), in->lanes, MASK_OF(in), W); break;
		case IR_dbcast:
		case IR_lbcast: broadcast_wide(INTERP_REG(in->dst), interp_get64(INTERP_ADDRESS(in->a)), W); break;
		case IR_dstore:
		case IR_lstore: store_wide(INTERP_ADDRESS(in->a), INTERP_REG(in->b), in->lanes, MASK_OF(in)); break;
		case IR_fload:
		case IR_iload:
			load_words(INTERP_REG(in->dst), INTERP_ADDRESS(in->a), in->lanes,
			           in->mask ? INTERP_REG(in->mask) : NULL, W);
			break;
		case IR_fawait: AWAIT(interp_get32(at + (size_t)l * in->stride), l < in->lanes)
		case IR_fawait_at: AWAIT(interp_get32(at + ((const int32_t *)(const void *)INTERP_REG(in->b))[l]), true)
		case IR_fload_h: LOAD(f32_bits(f16_f32(interp_get16(at + 2 * l))))
		case IR_iload_u8: LOAD((uint8_t)at[l])
		case IR_iload_s8: LOAD((uint32_t)(int32_t)(int8_t)at[l])
		case IR_iload_s: LOAD(interp_get32(at + (size_t)l * in->stride))
		case IR_iload_u16: LOAD(interp_get16(at + 2 * l))
		case IR_fbcast:
		case IR_ibcast: BROADCAST(interp_get32(at))
		case IR_fbcast_h: BROADCAST(f32_bits(f16_f32(interp_get16(at))))
		case IR_igather:
			gather(INTERP_REG(in->dst), INTERP_ADDRESS(in->a), INTERP_REG(in->b), MASK_OF(in), W);
			break;
		case IR_fgive:
		case IR_fstore: STORE(in->lanes, interp_put32(at + 4 * l, v[l]))
		case IR_fstore_h: STORE(in->lanes, interp_put16(at + 2 * l, f32_f16(bits_f32(v[l]))))
		case IR_istore_8: STORE(in->lanes, at[l] = (char)(v[l] & 0xff))
		case IR_istore_16: STORE(in->lanes, interp_put16(at + 2 * l, (uint16_t)(v[l] & 0xffff)))
		case IR_fstore_s: STORE(in->lanes, interp_put32(at + l * in->stride, v[l]))
		case IR_fstore_hs: STORE(in->lanes, interp_put16(at + l * in->stride, f32_f16(bits_f32(v[l]))))
		case IR_fstore1: STORE(1, interp_put32(at + 4 * l, v[l]))
		case IR_barrier_all:
		case IR_barrier: wave->in = in + 1; return;
		default:
			if (!ir_does(in->row, IR_INDEXED)) {
				in = other_row(p, in, frame, call, count, W);
			} else if (!interp_index_row(in, frame, W)) {
				wave->end = INTERP_SAME_ELEMENT;
				return;
			}
		}
}

/* One instance per width, and again for hosts with AVX2 and FMA: the same C, where fmaf is an instruction and not a
 * call. */
#define INSTANCE(name, attribute, W) \
	static PARTLY_CHECKED attribute void name(const struct interp_program *p, char *frame, \
	                                          const struct interp_call *call, struct interp_wave *wave) \
	{ \
		interp_go(p, frame, call, wave, W); \
	}
#define PLAIN
INSTANCE(interp_8, PLAIN, 8)
INSTANCE(interp_16, PLAIN, 16)
INSTANCE(interp_32, PLAIN, 32)
#ifdef __x86_64__
#define FMA __attribute__((target("avx2,fma")))
INSTANCE(interp_8_fma, FMA, 8)
INSTANCE(interp_16_fma, FMA, 16)
INSTANCE(interp_32_fma, FMA, 32)
#endif

void interp_use_portable(struct interp_program *p)
{
	p->go = p->lanes == 8 ? interp_8 : p->lanes == 16 ? interp_16 : interp_32;
}

static void interp_choose(struct interp_program *p)
{
	interp_use_portable(p);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		p->go = p->lanes == 8 ? interp_8_fma : p->lanes == 16 ? interp_16_fma : interp_32_fma;
#endif
}

struct interp_program *interp_compile(const struct ir *ir)
{
	struct interp_layout l;
	struct interp_program *p = NULL;

	assert(!ir->error);
	if (!interp_lay_out(&l, ir))
		return NULL;
	assert(l.bytes <= UINT32_MAX);
	p = malloc(sizeof *p + ir->n_ins * sizeof *p->ins);
	if (p) {
		p->n_ins = ir->n_ins;
		p->lanes = ir->lanes;
		p->waves = ir->cooperative ? ir->waves : 1;
		p->shared_bytes = (ir->shared_bytes + 63) & ~(size_t)63;
		p->frame_bytes = (l.bytes + 63) & ~(size_t)63;
		p->locals = (uint32_t)l.locals;
		interp_decode(p, ir, &l);
		interp_choose(p);
	}
	free(l.offset);
	return p;
}

/* Every wave runs to the next barrier, or its end, then the next wave: what one wrote before a barrier all find behind
 * it. */
static enum interp_end interp_group(const struct interp_program *p, char *frame, struct interp_call *call)
{
	struct interp_wave wave[IR_MAX_WAVES];

	call->shared = frame + p->waves * p->frame_bytes;
	wave[0].in = p->ins;
	wave[0].end = INTERP_DONE;
	for (unsigned w = 1; w < p->waves; w++) {
		wave[w].in = p->ins;
		wave[w].end = INTERP_DONE;
	}
	while (wave[0].in) /* all end together */
		for (call->wave = 0; call->wave < p->waves; call->wave++) {
			assert(wave[call->wave].in);
			p->go(p, frame + call->wave * p->frame_bytes, call, &wave[call->wave]);
			if (wave[call->wave].end != INTERP_DONE)
				return wave[call->wave].end;
		}
	return INTERP_DONE;
}

enum interp_end interp_run(const struct interp_program *p, void *frame, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct interp_call call = { .arg = arg, .begin = begin, .end = end };
	char *own = NULL;

	if (!frame && !(frame = own = aligned_alloc(64, (interp_frame_bytes(p) + 63) & ~(size_t)63)))
		return INTERP_NO_MEMORY;
	assert((uintptr_t)frame % 64 == 0);
	enum interp_end how = interp_group(p, frame, &call);
	free(own);
	return how;
}

const char *interp_why(enum interp_end end)
{
	switch (end) {
	case INTERP_NO_MEMORY: return "found no memory to run in";
	case INTERP_UNWRITTEN: return "awaited what nobody had given";
	case INTERP_SAME_ELEMENT: return "has a scatter of which two lanes store to the same element";
	default: return "ended";
	}
}

void ir_interp(const struct ir *ir, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct interp_program *p = interp_compile(ir);

	/* the oracle has no way to report: a kernel is a few hundred kilobytes */
	if (!p || interp_run(p, NULL, arg, begin, end) != INTERP_DONE)
		abort();
	interp_free(p);
}
