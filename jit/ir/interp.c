/* jit/ir/interp.c - the meaning of the IR, and the oracle of every backend.
 *
 * Owns: one case per op. Rows of ops.def that have an expression become a loop over the lanes (or one scalar statement)
 * around that very text; the rows written by hand are the cases below, and are their definition. Nothing here
 * optimises: an instruction is decoded once (registers to frame offsets, displacement, lane count and stride apart) and
 * executed as it stands. The lane count is a constant in each instance of the dispatcher so that the compiler
 * vectorises the lane loops; keep lanes free of branches.
 */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed" /* a build without optimisation vectorises nothing, rightly */
#elif defined(__SANITIZE_ADDRESS__)              /* with its checks, O3 takes minutes of this file */
#pragma GCC optimize("fp-contract=off")
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/interp_program.h"
#include "jit/ir/lanes.h"

void interp_free(struct interp_program *p) { free(p); }

/* A frame for each wave, each a multiple of 64 bytes, then the shared bytes. */
size_t interp_frame_bytes(const struct interp_program *p) { return p->waves * p->frame_bytes + p->shared_bytes; }

/* Memory is read and written a byte-exact element at a time: no alignment is assumed. */
static inline uint64_t get64(const char *p)
{
	uint64_t v;
	memcpy(&v, p, 8);
	return v;
}
static inline uint32_t get32(const char *p)
{
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}
static inline uint16_t get16(const char *p)
{
	uint16_t v;
	memcpy(&v, p, 2);
	return v;
}
static inline void put32(char *p, uint32_t v) { memcpy(p, &v, 4); }
static inline void put16(char *p, uint16_t v) { memcpy(p, &v, 2); }

/* The lane loops. dst may be a or b or c itself, lane for lane, never shifted: lanes are independent. */
#ifdef __clang__
#define EACH_LANE _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < W; l++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (unsigned l = 0; l < W; l++)
#endif

#define REG(offset) ((void *)(frame + (offset)))
#define SCALAR(offset) (*(int64_t *)(void *)(frame + (offset)))
#define POINTER(offset) ((void *)(intptr_t)SCALAR(offset))
#define ADDRESS(offset) ((char *)POINTER(offset) + in->imm)
#define UNUSED __attribute__((unused))

#define BITS_F(x) f32_bits(x)
#define BITS_I(x) ((uint32_t)(int32_t)(x))
#define BITS_M(x) ((x) ? 0xffffffffu : 0u)

#define LANES_OF(BITS, expression) \
	{ \
		uint32_t *d = REG(in->dst); \
		const uint32_t *a = REG(in->a), *b = REG(in->b), *c = REG(in->c); \
		const int64_t UNUSED as = SCALAR(in->a); \
		const int32_t UNUSED imm = (int32_t)in->imm; \
		EACH_LANE \
		{ \
			const uint32_t UNUSED au = a[l], bu = b[l], cu = c[l]; \
			const int32_t UNUSED ai = (int32_t)au, bi = (int32_t)bu, ci = (int32_t)cu; \
			const float UNUSED af = bits_f32(au), bf = bits_f32(bu), cf = bits_f32(cu); \
			const bool UNUSED am = au != 0, bm = bu != 0; \
			const int32_t UNUSED lane = (int32_t)l; \
			d[l] = BITS(expression); \
		} \
		break; \
	}
#define SCALAR_OF(expression) \
	{ \
		const int64_t UNUSED as = SCALAR(in->a), bs = SCALAR(in->b), imm = in->imm; \
		SCALAR(in->dst) = expression; \
		break; \
	}
#define ROW_F(expression) LANES_OF(BITS_F, expression)
#define ROW_I(expression) LANES_OF(BITS_I, expression)
#define ROW_M(expression) LANES_OF(BITS_M, expression)
#define ROW_T(expression) \
	{ \
		uint32_t *d = REG(in->dst); \
		const uint32_t *a = REG(in->a), *b = REG(in->b), *c = REG(in->c); \
		const int32_t UNUSED imm = (int32_t)in->imm; \
		for (unsigned l = 0; l < IR_TILE * IR_TILE; l++) { \
			const int32_t UNUSED ai = ir_facts[in->op].a ? (int32_t)a[l] : 0; \
			const float UNUSED af = bits_f32((uint32_t)ai), bf = bits_f32(ir_facts[in->op].b ? b[l] : 0), \
					   cf = bits_f32(ir_facts[in->op].c ? c[l] : 0); \
			d[l] = f32_bits(expression); \
		} \
		break; \
	}
#define ROW_S(expression) SCALAR_OF(expression)
#define ROW_A(expression) SCALAR_OF(expression)

/* The rows of memory. Lanes from in->lanes on load as zero and are not stored, and their memory is not touched. */
#define LOAD(expression) \
	{ \
		uint32_t *d = REG(in->dst); \
		const char *at = ADDRESS(in->a); \
		EACH_LANE d[l] = (expression); \
		break; \
	}
/* Nobody else runs meanwhile, so a word that is not there would never come. dst may be b. */
#define AWAIT(expression, wanted) \
	{ \
		uint32_t *d = REG(in->dst); \
		const char *at = ADDRESS(in->a); \
		EACH_LANE \
		{ \
			d[l] = (wanted) ? (expression) : 0; \
			if (d[l] == IR_EMPTY) \
				wave->unwritten = true; \
		} \
		if (wave->unwritten) \
			return; \
		break; \
	}
#define BROADCAST(expression) \
	{ \
		uint32_t *d = REG(in->dst); \
		const char *at = ADDRESS(in->a); \
		const uint32_t v = (expression); \
		EACH_LANE d[l] = v; \
		break; \
	}
#define STORE(lanes, statement) \
	{ \
		char *at = ADDRESS(in->a); \
		const uint32_t *v = REG(in->b); \
		for (size_t l = 0; l < (lanes); l++) \
			statement; \
		break; \
	}

/* --- matrices: tiles lie in the frame row by row, operands strip by strip */

static size_t rows_in_memory(const struct interp_ins *in)
{
	return in->op == IR_tstore_top || in->op == IR_tload_top || in->op == IR_oload_top ? IR_TILE / 2 : IR_TILE;
}

static void load_tile(uint32_t *d, const char *at, const struct interp_ins *in)
{
	const size_t rows = rows_in_memory(in);

	for (size_t r = 0; r < IR_TILE; r++)
		for (size_t c = 0; c < IR_TILE; c++) {
			const char *from = at + r % rows * in->stride + c * in->lanes;
			d[r * IR_TILE + c] = in->op == IR_tload_h ? f32_bits(f16_f32(get16(from))) : get32(from);
		}
}

static void store_tile(char *at, const uint32_t *v, const struct interp_ins *in)
{
	const size_t rows = rows_in_memory(in);

	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < IR_TILE; c++)
			put32(at + r * in->stride + c * in->lanes, v[r * IR_TILE + c]);
}

static void load_operand(char *d, const char *at, const struct interp_ins *in)
{
	const size_t rows = rows_in_memory(in);

	for (size_t r = 0; r < IR_TILE; r++, d += IR_STRIP_BYTES) {
		const char *from = at + r % rows * in->stride;
		memcpy(d, from, IR_PIECE_BYTES);
		memcpy(d + IR_PIECE_BYTES, from + (size_t)in->lanes * IR_PIECE_BYTES, IR_PIECE_BYTES);
	}
}

static void load_turned(char *d, const char *at, const struct interp_ins *in)
{
	for (size_t r = 0; r < IR_TILE; r++, at += IR_ROW_BYTES)
		for (size_t p = in->lanes; p < in->lanes + 2u; p++, d += IR_PIECE_BYTES)
			memcpy(d, at + (p ^ (r & 7)) * IR_PIECE_BYTES, IR_PIECE_BYTES);
}

static void store_operand(char *at, const char *v, const struct interp_ins *in)
{
	for (size_t r = 0; r < IR_TILE; r++, v += IR_STRIP_BYTES) {
		memcpy(at + r * in->stride, v, IR_PIECE_BYTES);
		memcpy(at + r * in->stride + (size_t)in->lanes * IR_PIECE_BYTES, v + IR_PIECE_BYTES, IR_PIECE_BYTES);
	}
}

static uint32_t dot_strips_i8(const char *a, const char *b, uint32_t c)
{
	for (unsigned k = 0; k < IR_STRIP_BYTES; k++)
		c += (uint32_t)((int8_t)a[k] * (int8_t)b[k]);
	return c;
}

/* An element of a strip, whose type the op names. */
static double strip_element(const char *s, unsigned k, unsigned op)
{
	uint16_t h = get16(s + 2 * k);
	return (double)(op == IR_tdot_f16 ? f16_f32(h) : bits_f32((uint32_t)h << 16));
}

static uint32_t dot_strips_float(const char *a, const char *b, uint32_t c, unsigned op)
{
	double sum = (double)bits_f32(c);

	for (unsigned k = 0; k < IR_STRIP_BYTES / 2; k++)
		sum += strip_element(a, k, op) * strip_element(b, k, op);
	return f32_bits((float)sum);
}

/* d may be c. */
static void dot_tile(uint32_t *d, const char *a, const char *b, const uint32_t *c, unsigned op)
{
	for (unsigned r = 0; r < IR_TILE; r++)
		for (unsigned n = 0; n < IR_TILE; n++) {
			const char *x = a + r * IR_STRIP_BYTES, *y = b + n * IR_STRIP_BYTES;
			uint32_t from = c[r * IR_TILE + n];
			d[r * IR_TILE + n] =
				op == IR_tdot_i8 ? dot_strips_i8(x, y, from) : dot_strips_float(x, y, from, op);
		}
}

/* Sums to `at`, which no factor overlaps. */
static void dot_rows(char *at, const int8_t *x, const int8_t *w, unsigned rows)
{
	for (unsigned r = 0; r < rows; r++)
		for (unsigned l = 0; l < IR_DOTS_ROW / 4; l++) {
			int32_t sum = 0;
			for (unsigned i = 0; i < IR_DOTS_STRIP; i++)
				sum += x[r * IR_DOTS_STRIP + i] * w[i / 4 * IR_DOTS_ROW + l * 4 + i % 4];
			put32(at + r * IR_DOTS_ROW + l * 4, (uint32_t)sum);
		}
}

static void matrix_row(const struct interp_ins *in, char *frame)
{
	switch ((enum ir_op)in->op) {
	case IR_tload:
	case IR_tload_top:
	case IR_tload_h: load_tile(REG(in->dst), ADDRESS(in->a), in); break;
	case IR_tstore:
	case IR_tstore_top: store_tile(ADDRESS(in->a), REG(in->b), in); break;
	case IR_oload:
	case IR_oload_top: load_operand(REG(in->dst), ADDRESS(in->a), in); break;
	case IR_oload_turned: load_turned(REG(in->dst), ADDRESS(in->a), in); break;
	case IR_ostore: store_operand(ADDRESS(in->a), REG(in->b), in); break;
	case IR_tdot_i8:
	case IR_tdot_f16:
	case IR_tdot_bf16: dot_tile(REG(in->dst), REG(in->a), REG(in->b), REG(in->c), in->op); break;
	case IR_idots: dot_rows(ADDRESS(in->a), POINTER(in->b), POINTER(in->c), in->lanes); break;
	default: assert(false && "an op of ops.def");
	}
}

/* --- rows that take more than an expression. Each is a part of the dispatcher, where the number of lanes is a
 * constant. */

#define PART static inline __attribute__((always_inline))

/* dst may be a: a lane's partner must be read before it is written. */
PART void exchange_lanes(uint32_t *d, const uint32_t *a, unsigned mask, const unsigned W)
{
	uint32_t old[32];

	memcpy(old, a, W * 4);
	for (unsigned l = 0; l < W; l++)
		d[l] = old[l ^ mask];
}

PART void load_lanes(char *d, const char *at, unsigned lanes, const unsigned W)
{
	memset(d, 0, W * 4);
	memcpy(d, at, lanes * 4u);
}

/* dst may be b: each lane reads its own offset only. */
PART void gather(uint32_t *d, const char *at, const int32_t *b, const unsigned W)
{
	for (unsigned l = 0; l < W; l++)
		d[l] = get32(at + b[l]);
}

PART void copy_lanes(char *to, const char *from, const char *c, size_t bytes, const unsigned W)
{
	for (unsigned l = 0; l < W; l++)
		memcpy(to + l * bytes, from + get32(c + 4 * l), bytes);
}

/* Both return the instruction in front of the next one. */
PART const struct interp_ins *enter_loop(const struct interp_program *p, const struct interp_ins *in, char *frame,
                                         int64_t *count)
{
	count[in->c] = SCALAR(in->a);
	SCALAR(in->dst) = 0;
	return count[in->c] <= 0 ? p->ins + in->imm - 1 : in;
}

PART const struct interp_ins *end_loop(const struct interp_program *p, const struct interp_ins *in, char *frame,
                                       const int64_t *count)
{
	return ++SCALAR(in->dst) < count[in->c] ? p->ins + in->imm - 1 : in;
}

/* A test that compiles this file once more looks at each instruction here, before it is run (tests/kernels/watched.c).
 */
#ifndef INTERP_OP
#define INTERP_OP(in, frame, lanes) ((enum ir_op)(in)->op)
#endif

PART void interp_go(const struct interp_program *p, char *frame, const struct interp_call *call,
                    struct interp_wave *wave, const unsigned W)
{
	const struct interp_ins *in = wave->in, *const stop = p->ins + p->n_ins;
	int64_t *const count = wave->count;

	wave->in = NULL;
	for (; in < stop; in++)
		switch (INTERP_OP(in, frame, W)) {
#define OP(name, dst, a, b, c, imm, effects, needs, expression, meaning) \
	case IR_##name: \
		ROW_##dst(expression)
#define OP_BY_HAND(name, ...)
#include "jit/ir/ops.def"
#undef OP
		case IR_fxor: exchange_lanes(REG(in->dst), REG(in->a), (unsigned)in->imm, W); break;
		case IR_fload: load_lanes(REG(in->dst), ADDRESS(in->a), in->lanes, W); break;
		case IR_iload: memcpy(REG(in->dst), ADDRESS(in->a), W * 4); break;
		case IR_fawait: AWAIT(get32(at + (size_t)l * in->stride), l < in->lanes)
		case IR_fawait_at: AWAIT(get32(at + ((const int32_t *)(const void *)REG(in->b))[l]), true)
		case IR_fload_h: LOAD(f32_bits(f16_f32(get16(at + 2 * l))))
		case IR_iload_u8: LOAD((uint8_t)at[l])
		case IR_iload_s8: LOAD((uint32_t)(int32_t)(int8_t)at[l])
		case IR_iload_s: LOAD(get32(at + (size_t)l * in->stride))
		case IR_iload_u16: LOAD(get16(at + 2 * l))
		case IR_fbcast:
		case IR_ibcast: BROADCAST(get32(at))
		case IR_fbcast_h: BROADCAST(f32_bits(f16_f32(get16(at))))
		case IR_igather: gather(REG(in->dst), ADDRESS(in->a), REG(in->b), W); break;
		case IR_fgive:
		case IR_fstore: STORE(in->lanes, put32(at + 4 * l, v[l]))
		case IR_fstore_h: STORE(in->lanes, put16(at + 2 * l, f32_f16(bits_f32(v[l]))))
		case IR_istore_8: STORE(W, at[l] = (char)(v[l] & 0xff))
		case IR_fstore_s: STORE(in->lanes, put32(at + l * in->stride, v[l]))
		case IR_fstore_hs: STORE(in->lanes, put16(at + l * in->stride, f32_f16(bits_f32(v[l]))))
		case IR_fstore1: STORE(1, put32(at + 4 * l, v[l]))
		case IR_copy: memcpy(POINTER(in->a), POINTER(in->b), (size_t)in->imm); break;
		case IR_copy_at: copy_lanes(POINTER(in->a), POINTER(in->b), REG(in->c), (size_t)in->imm, W); break;
		case IR_copies:
		case IR_copied:
		case IR_prefetch:
		case IR_prefetch2: break;
		case IR_sload32: SCALAR(in->dst) = get32(ADDRESS(in->a)); break;
		case IR_sload64:
		case IR_aload: SCALAR(in->dst) = (int64_t)get64(ADDRESS(in->a)); break;
		case IR_loop: in = enter_loop(p, in, frame, count); break;
		case IR_endloop: in = end_loop(p, in, frame, count); break;
		case IR_local: SCALAR(in->dst) = (intptr_t)(frame + p->locals + in->imm); break;
		case IR_arg: SCALAR(in->dst) = (intptr_t)call->arg; break;
		case IR_begin: SCALAR(in->dst) = call->begin; break;
		case IR_end: SCALAR(in->dst) = call->end; break;
		case IR_wave: SCALAR(in->dst) = call->wave; break;
		case IR_part: SCALAR(in->dst) = 0; break;
		case IR_parts: SCALAR(in->dst) = 1; break;
		case IR_shared: SCALAR(in->dst) = (intptr_t)(call->shared + in->imm); break;
		case IR_barrier_all:
		case IR_barrier: wave->in = in + 1; return;
		default: matrix_row(in, frame);
		}
}

/* One instance per width, and again for hosts with AVX2 and FMA: the same C, where fmaf is an instruction and not a
 * call. */
#define INSTANCE(name, attribute, W) \
	static attribute void name(const struct interp_program *p, char *frame, const struct interp_call *call, \
	                           struct interp_wave *wave) \
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
static bool interp_group(const struct interp_program *p, char *frame, struct interp_call *call)
{
	struct interp_wave wave[IR_MAX_WAVES];

	call->shared = frame + p->waves * p->frame_bytes;
	wave[0].in = p->ins;
	wave[0].unwritten = false;
	for (unsigned w = 1; w < p->waves; w++) {
		wave[w].in = p->ins;
		wave[w].unwritten = false;
	}
	while (wave[0].in) /* all end together */
		for (call->wave = 0; call->wave < p->waves; call->wave++) {
			assert(wave[call->wave].in);
			p->go(p, frame + call->wave * p->frame_bytes, call, &wave[call->wave]);
			if (wave[call->wave].unwritten)
				return false;
		}
	return true;
}

enum interp_end interp_run(const struct interp_program *p, void *frame, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct interp_call call = { .arg = arg, .begin = begin, .end = end };
	char *own = NULL;

	if (!frame && !(frame = own = aligned_alloc(64, (interp_frame_bytes(p) + 63) & ~(size_t)63)))
		return INTERP_NO_MEMORY;
	assert((uintptr_t)frame % 64 == 0);
	bool done = interp_group(p, frame, &call);
	free(own);
	return done ? INTERP_DONE : INTERP_UNWRITTEN;
}

void ir_interp(const struct ir *ir, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct interp_program *p = interp_compile(ir);

	/* the oracle has no way to report: a kernel is a few hundred kilobytes */
	if (!p || interp_run(p, NULL, arg, begin, end) != INTERP_DONE)
		abort();
	interp_free(p);
}
