/* encoders/rdna.h - AMD RDNA instructions (RDNA2, RDNA3, RDNA3.5, RDNA4; wave32) to bytes.
 *
 * Owns: the table of instructions (rdna.def, one row each with the opcode of every generation), the operands and what
 * each instruction takes. Knows no IR, no policy, no hazards, no registers' roles; usable alone. An operation is named
 * as the newest generation names it (RDNA_S_LOAD_B32, RDNA_V_MIN_NUM_F32); what a generation lacks is refused. Errors
 * are sticky: an operand or a form that the instruction cannot take sets r->error to a sentence naming the rule, and
 * later calls do nothing; the caller asks once, at the end.
 */
#ifndef ENCODERS_RDNA_H
#define ENCODERS_RDNA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum rdna_op {
#define RDNA(id, ...) RDNA_##id,
#define RDNA_DUAL(...)
#include "encoders/rdna.def"
#undef RDNA
#undef RDNA_DUAL
	RDNA_OP_COUNT
};

/* Targets of one generation share every byte but the ELF flags. */
enum rdna_gen { RDNA_GFX10_3, RDNA_GFX11, RDNA_GFX11_5, RDNA_GFX12, RDNA_GEN_COUNT };

/* "gfx1030" .. "gfx1036", "gfx1100" .. "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201"; RDNA_GEN_COUNT for any
 * other. */
enum rdna_gen rdna_gen_of(const char *target);

/* --- operands: one space of 512 sources. 0..105 s0..s105, 106..127 below, 256..511 v0..v255 */
enum {
	RDNA_VCC_LO = 106,
	RDNA_VCC_HI,
	RDNA_TTMP0,
	RDNA_NULL = 124,
	RDNA_M0,
	RDNA_EXEC_LO,
	RDNA_EXEC_HI,
	RDNA_SCC = 253,
	RDNA_V0 = 256
	/* null and m0 have gfx11's numbers here; on gfx10, which has them the other way round, the encoder swaps
	 * them */
};

enum rdna_kind {
	RDNA_NONE,
	RDNA_REG,     /* reg, n registers from there on */
	RDNA_CONST,   /* value: inline where the instruction can say it so, else a literal */
	RDNA_LITERAL, /* value, always as a literal */
	RDNA_LABEL    /* value: a branch's target; in a scalar source: the 32-bit distance from label `reg` to it */
};
enum { RDNA_NEG = 1, RDNA_ABS = 2, RDNA_HIGH = 4, RDNA_FLIP = 8 };

struct rdna_operand {
	uint8_t kind, n, mods; /* n: 32-bit registers in the tuple */
	uint16_t reg;
	uint32_t value;
};

static inline struct rdna_operand rdna_reg(unsigned reg, unsigned n)
{
	return (struct rdna_operand){ .kind = RDNA_REG, .n = (uint8_t)n, .reg = (uint16_t)reg };
}
static inline struct rdna_operand rdna_s(unsigned i) { return rdna_reg(i, 1); }
static inline struct rdna_operand rdna_sn(unsigned i, unsigned n) { return rdna_reg(i, n); }
static inline struct rdna_operand rdna_v(unsigned i) { return rdna_reg(RDNA_V0 + i, 1); }
static inline struct rdna_operand rdna_vn(unsigned i, unsigned n) { return rdna_reg(RDNA_V0 + i, n); }
static inline struct rdna_operand rdna_imm(int64_t v) /* -2^31 .. 2^32-1; a 16-bit operand takes the low half */
{
	return (struct rdna_operand){
		.kind = RDNA_CONST, .n = (uint8_t)(v < INT32_MIN || v > UINT32_MAX), .value = (uint32_t)v
	};
}
static inline struct rdna_operand rdna_float(float f)
{
	struct rdna_operand o = { .kind = RDNA_CONST };

	memcpy(&o.value, &f, 4);
	return o;
}
static inline struct rdna_operand rdna_literal(uint32_t v)
{
	return (struct rdna_operand){ .kind = RDNA_LITERAL, .value = v };
}
static inline struct rdna_operand rdna_to(int label)
{
	return (struct rdna_operand){ .kind = RDNA_LABEL, .n = 1, .value = (uint32_t)label };
}
/* to - from in bytes, for s_add after s_getpc (from: bound right behind the s_getpc); scalar 32-bit sources only */
static inline struct rdna_operand rdna_distance(int to, int from)
{
	return (struct rdna_operand){ .kind = RDNA_LABEL, .n = 2, .reg = (uint16_t)from, .value = (uint32_t)to };
}
/* Modifiers of vector operands, where the row's facts allow them. In packed instructions (VOP3P) neg is neg_lo, abs is
 * neg_hi (of the integer dot products and WMMA neg says "signed"). high: op_sel, the upper 16 bits (also of a
 * destination;
 * v_permlane16: of operand 0 fetch-inactive, of 1 bound-control). flip: the opposite of op_sel_hi's default, which is 1
 * (the upper result reads the upper half) and for v_fma_mix 0 (the source is an f32; flipped: an f16). */
static inline struct rdna_operand rdna_mod(struct rdna_operand o, unsigned mods)
{
	o.mods ^= (uint8_t)mods;
	return o;
}
static inline struct rdna_operand rdna_neg(struct rdna_operand o) { return rdna_mod(o, RDNA_NEG); }
static inline struct rdna_operand rdna_abs(struct rdna_operand o) { return rdna_mod(o, RDNA_ABS); }
static inline struct rdna_operand rdna_high(struct rdna_operand o) { return rdna_mod(o, RDNA_HIGH); }
static inline struct rdna_operand rdna_flip(struct rdna_operand o) { return rdna_mod(o, RDNA_FLIP); }

/* --- lanes moved on the way into source 0 */
enum rdna_dpp_kind { RDNA_DPP_NONE, RDNA_DPP16, RDNA_DPP8 };
struct rdna_dpp {
	uint8_t kind;
	uint16_t ctrl;               /* DPP16: RDNA_QUAD_PERM and so on */
	uint8_t row_mask, bank_mask; /* DPP16: 15 for all */
	bool bound_zero;             /* DPP16: lanes outside read 0; else the destination keeps its value there */
	bool fetch_inactive;
	uint32_t lanes; /* DPP8: 3 bits a lane, the lowest first */
};
#define RDNA_QUAD_PERM(a, b, c, d) ((a) | (b) << 2 | (c) << 4 | (d) << 6)
#define RDNA_ROW_SHL(n) (0x100 + (n)) /* 1..15 */
#define RDNA_ROW_SHR(n) (0x110 + (n))
#define RDNA_ROW_ROR(n) (0x120 + (n))
#define RDNA_ROW_MIRROR 0x140
#define RDNA_ROW_HALF_MIRROR 0x141
#define RDNA_ROW_SHARE(n) (0x150 + (n)) /* 0..15 */
#define RDNA_ROW_XMASK(n) (0x160 + (n))
static inline struct rdna_dpp rdna_dpp16(unsigned ctrl)
{
	return (struct rdna_dpp){ .kind = RDNA_DPP16, .ctrl = (uint16_t)ctrl, .row_mask = 15, .bank_mask = 15 };
}

/* --- cache policy: bits on gfx10 and gfx11, a scope and a temporal hint on gfx12 */
enum { RDNA_GLC = 1, RDNA_SLC = 2, RDNA_DLC = 4 };
enum { RDNA_SCOPE_CU, RDNA_SCOPE_SE, RDNA_SCOPE_DEV, RDNA_SCOPE_SYS };
enum { RDNA_TH_RT, RDNA_TH_NT, RDNA_TH_HT, RDNA_TH_LU, RDNA_TH_NT_RT, RDNA_TH_RT_NT, RDNA_TH_NT_HT };
/* loads: LU is last use; stores: 3 is write-back; both: with system scope 3 bypasses the caches. Atomics: only
 * non-temporal */
enum { RDNA_TH_ATOMIC_NT = 2, RDNA_TH_ATOMIC_CASCADE_NT = 6 };

/* One instruction. Operands in the order of the assembly text: destinations first, then sources; the row's letters say
 * how many of each. Left-out fields are zero.
 *
 * Vector: v_cndmask and the carry instructions name their mask as the last source (RDNA_VCC_LO gives the short
 * encoding).
 * Memory: s[0] is the address. GLOBAL: rdna_vn(i, 2), or rdna_v(i) as a 32-bit offset with saddr = rdna_sn(j, 2).
 *   FLAT: rdna_vn(i, 2). SCRATCH: rdna_v(i), or none, with or without saddr = rdna_s(j). LDS: rdna_v(i).
 *   SMEM: rdna_sn(i, 2) (descriptor: 4) and a register offset in saddr. Then data. An atomic returns the old value if
 * d[0] is set. VOP1, VOP2 and VOPC take their short encoding when they can. */
struct rdna_ins {
	enum rdna_op op;
	struct rdna_operand d[2], s[4];
	struct rdna_operand saddr;
	int32_t offset; /* bytes; DS with two addresses: in elements, 0..255, and offset1 */
	int32_t offset1;
	uint8_t cache;     /* RDNA_GLC ... */
	uint8_t scope, th; /* gfx12 */
	bool clamp;
	uint8_t omod; /* 1: times 2, 2: times 4, 3: halved */
	bool e64;     /* the long (VOP3) encoding even where the short one would do */
	struct rdna_dpp dpp;
};

struct rdna {
	uint8_t *code;
	size_t size, capacity; /* grows by realloc; the caller frees with rdna_free */
	enum rdna_gen gen;
	const char *error;     /* NULL, or the rule that was broken (static text) */
	enum rdna_op error_op; /* RDNA_OP_COUNT when no instruction broke it */
	int64_t *label;
	size_t n_labels; /* offset of each bound label, or -1 */
	struct rdna_fixup *fixup;
	size_t n_fixups;
};

void rdna_init(struct rdna *r, enum rdna_gen gen);
void rdna_free(struct rdna *r);

/* A plain instruction, in the fewest words: what its operands are at a glance, one bit of 16 for each of four places,
 * and the numbers in their fields. Who has many instructions writes them so; whatever rdna_put_plain does not take,
 * because it is wrong or because it is rare, rdna_put decides. Places: the destination, sources 0, 1 and 2, of which
 * the last is saddr where memory is accessed. Neither a second destination, a fourth source, a label, DPP nor anything
 * else that struct rdna_ins has beside operands and an offset. */
enum {
	RDNA_AT_NOTHING = 1,
	RDNA_AT_V1 = 2,
	RDNA_AT_V2 = 4,
	RDNA_AT_V3 = 8,
	RDNA_AT_V4 = 16,
	RDNA_AT_V8 = 32, /* vector registers, so many */
	RDNA_AT_S1 = 64,
	RDNA_AT_S2 = 128,
	RDNA_AT_S4 = 256,
	RDNA_AT_S8 = 512,
	RDNA_AT_S16 = 1024, /* of s0..s105, where so many may begin */
	RDNA_AT_INTEGER = 2048,
	RDNA_AT_FLOAT = 4096,
	RDNA_AT_LITERAL = 8192,  /* constants: -16..64, the inline floats of 32 bits, all others */
	RDNA_AT_SPECIAL = 16384, /* one half of vcc or exec */
	RDNA_AT_OTHER = 32768
};
#define RDNA_AT_LITERALS (UINT64_C(0x0001000100010001) * RDNA_AT_LITERAL)
struct rdna_plain {
	uint64_t is;
	uint16_t at[4], mods /* 4 bits a slot */;
	int32_t offset;
	uint32_t literal;
};

enum { RDNA_TUPLES = 17 };
extern const struct rdna_tuple {
	uint16_t vector, scalar;
	uint8_t align;
} rdna_tuples[RDNA_TUPLES];

/* Each notes the number in its field and returns what p->is has of the place. */
static inline uint64_t rdna_plain_is(struct rdna_plain *p, unsigned slot, unsigned what, unsigned number)
{
	p->at[slot] = (uint16_t)number;
	return (uint64_t)what << 16 * slot;
}
static inline uint64_t rdna_plain_nothing(struct rdna_plain *p, unsigned slot)
{
	return rdna_plain_is(p, slot, RDNA_AT_NOTHING, 0);
}
static inline uint64_t rdna_plain_register(struct rdna_plain *p, unsigned slot, unsigned reg, unsigned n)
{
	const struct rdna_tuple *t = &rdna_tuples[n < RDNA_TUPLES ? n : 0];
	bool vector = reg & RDNA_V0,
	     good = reg + n <= (vector ? RDNA_V0 + 256u : 106u) && (vector || !(reg & t->align));
	bool special =
		n == 1 && (reg == RDNA_VCC_LO || reg == RDNA_VCC_HI || reg == RDNA_EXEC_LO || reg == RDNA_EXEC_HI);
	return rdna_plain_is(p, slot,
	                     !good    ? special ? RDNA_AT_SPECIAL : RDNA_AT_OTHER
	                     : vector ? t->vector
	                              : t->scalar,
	                     reg);
}
uint64_t rdna_plain_rare_constant(struct rdna_plain *p, unsigned slot, uint32_t value); /* those beyond -16..64 */
static inline uint64_t rdna_plain_constant(struct rdna_plain *p, unsigned slot, uint32_t value)
{
	unsigned up = value + 16;
	return up <= 80 ? rdna_plain_is(p, slot, RDNA_AT_INTEGER, up >= 16 ? 112 + up : 208 - up)
	                : rdna_plain_rare_constant(p, slot, value);
}

void rdna_put(struct rdna *r, const struct rdna_ins *ins); /* appends one instruction */
bool rdna_put_plain(struct rdna *r, enum rdna_op op,
                    const struct rdna_plain *p); /* false: nothing was done, rdna_put knows */
void rdna_put_dual(struct rdna *r, const struct rdna_ins *x,
                   const struct rdna_ins *y); /* VOPD: both halves as their plain instructions */

/* An instruction as half of a dual one: all that decides with which other it can be one, so that many pairs can be
 * tried and each instruction checked once. */
struct rdna_half {
	const char *error; /* NULL, or why it can be neither half */
	bool second_only, is_move, has_literal;
	uint8_t opcode, n_scalars;
	uint16_t dst, vgpr[3]; /* by source: a vector register, 0 for none */
	uint16_t first;
	uint8_t second;     /* its sources' fields */
	uint16_t scalar[3]; /* the different ones */
	uint32_t literal;
	enum rdna_gen gen;
};
void rdna_half_of(struct rdna_half *h, enum rdna_gen gen, const struct rdna_ins *ins);
bool rdna_plain_half(struct rdna_half *h, enum rdna_op op, enum rdna_gen gen,
                     const struct rdna_plain *p); /* false says nothing: rdna_half_of knows */
/* NULL when rdna_put_dual takes the two, x first; or why it does not. */
const char *rdna_halves_refused(const struct rdna_half *x, const struct rdna_half *y);
bool rdna_put_halves(struct rdna *r, const struct rdna_half *x,
                     const struct rdna_half *y); /* false: they are refused, and nothing was done */

/* The common shapes. */
static inline void rdna_put0(struct rdna *r, enum rdna_op op) { rdna_put(r, &(struct rdna_ins){ .op = op }); }
void rdna_put_imm(struct rdna *r, enum rdna_op op, int64_t v); /* SOPP: waits, s_nop, s_delay_alu ... */
static inline void rdna_put_branch(struct rdna *r, enum rdna_op op, int label)
{
	rdna_put(r, &(struct rdna_ins){ .op = op, .s = { rdna_to(label) } });
}
static inline void rdna_put1(struct rdna *r, enum rdna_op op, struct rdna_operand d, struct rdna_operand a)
{
	rdna_put(r, &(struct rdna_ins){ .op = op, .d = { d }, .s = { a } });
}
static inline void rdna_put2(struct rdna *r, enum rdna_op op, struct rdna_operand d, struct rdna_operand a,
                             struct rdna_operand b)
{
	rdna_put(r, &(struct rdna_ins){ .op = op, .d = { d }, .s = { a, b } });
}
static inline void rdna_put3(struct rdna *r, enum rdna_op op, struct rdna_operand d, struct rdna_operand a,
                             struct rdna_operand b, struct rdna_operand c)
{
	rdna_put(r, &(struct rdna_ins){ .op = op, .d = { d }, .s = { a, b, c } });
}

int rdna_label(struct rdna *r);                  /* a new, unbound label */
void rdna_bind(struct rdna *r, int label);       /* here */
void rdna_align(struct rdna *r, unsigned bytes); /* pads with s_code_end: never fall into it */
void rdna_bytes(struct rdna *r, const void *p, size_t n);
bool rdna_finish(struct rdna *r); /* resolves labels, once; false if an error is set */

/* The table, for who wants to look an instruction up. */
const char *rdna_op_name(enum rdna_op op, enum rdna_gen gen); /* the mnemonic that the generation uses */
bool rdna_has(enum rdna_op op, enum rdna_gen gen);
extern const bool rdna_dual_rows[RDNA_OP_COUNT]; /* whether it is half of a dual instruction in any generation */
int rdna_dual_opcode(enum rdna_op op, enum rdna_gen gen, bool *second_only); /* -1: no half of a dual instruction */

/* --- immediates */

/* s_waitcnt of gfx10 and gfx11: how many loads, exports, LDS and scalar loads may be outstanding; -1: any number. */
uint16_t rdna_waitcnt(enum rdna_gen gen, int vm, int exp, int lgkm);
/* s_wait_loadcnt_dscnt, s_wait_storecnt_dscnt of gfx12 */
#define RDNA_WAIT_PAIR(load_or_store, ds) ((load_or_store) << 8 | (ds))
/* s_waitcnt_depctr and s_wait_alu: all ones, with the fields to wait for lowered */
#define RDNA_DEPCTR_ANY 0xffff
#define RDNA_DEPCTR_SA_SDST(n) (0xfffe | (n))
#define RDNA_DEPCTR_VA_VCC(n) (0xfffd | (n) << 1)
#define RDNA_DEPCTR_VM_VSRC(n) (0xffe3 | (n) << 2)
#define RDNA_DEPCTR_VA_SSRC(n) (0xfeff | (n) << 8)
#define RDNA_DEPCTR_VA_SDST(n) (0xf1ff | (n) << 9)
#define RDNA_DEPCTR_VA_VDST(n) (0x0fff | (n) << 12)
/* s_delay_alu: the next instruction waits for instid0, the one `skip` (0 the same, 1 the next, up to 5) after it for
 * instid1 */
enum {
	RDNA_DELAY_NONE,
	RDNA_DELAY_VALU_1,
	RDNA_DELAY_VALU_2,
	RDNA_DELAY_VALU_3,
	RDNA_DELAY_VALU_4,
	RDNA_DELAY_TRANS_1,
	RDNA_DELAY_TRANS_2,
	RDNA_DELAY_TRANS_3,
	RDNA_DELAY_FMA_ACCUM_1,
	RDNA_DELAY_SALU_1,
	RDNA_DELAY_SALU_2,
	RDNA_DELAY_SALU_3
};
#define RDNA_DELAY(instid0, skip, instid1) ((instid0) | (skip) << 4 | (instid1) << 7)
/* s_getreg, s_setreg: `bits` bits from `offset` on of a hardware register */
enum { RDNA_HW_MODE = 1, RDNA_HW_STATUS = 2, RDNA_HW_GPR_ALLOC = 5, RDNA_HW_LDS_ALLOC = 6, RDNA_HW_SHADER_CYCLES = 29 };
#define RDNA_HWREG(id, offset, bits) ((id) | (offset) << 6 | ((bits)-1) << 11)
/* s_sendmsg */
enum { RDNA_MSG_INTERRUPT = 1, RDNA_MSG_DEALLOC_VGPRS = 3, RDNA_MSG_RTN_GET_REALTIME = 0x83 };
/* the offset of ds_swizzle_b32 that exchanges lanes within 32: lane = ((lane & and) | or) ^ xor */
#define RDNA_SWIZZLE(and_, or_, xor_) ((and_) | (or_) << 5 | (xor_) << 10)

#endif
