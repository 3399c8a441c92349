/* encoders/x86_form.h - between x86.c and x86_form.c: a matched row, ready to become bytes.
 *
 * Owns: the packing of a row's facts and the shape of a matched instruction. Not for users of the encoder.
 */
#ifndef ENCODERS_X86_FORM_H
#define ENCODERS_X86_FORM_H

#include "encoders/x86.h"

enum x86_prefix { X86_P_NP, X86_P_66, X86_P_F3, X86_P_F2 };         /* VEX.pp */
enum x86_map { X86_MAP_1, X86_MAP_0F, X86_MAP_0F38, X86_MAP_0F3A }; /* VEX.mmmmm; 1: the one-byte opcodes */
enum x86_w { X86_W_W0, X86_W_W1, X86_W_WV };
enum x86_l { X86_L_L0, X86_L_L1, X86_L_LV, X86_L_LY, X86_L_LZ };

/* What a byte of EVEX disp8 counts in: a share of the vector, or a fixed number of bytes. */
enum x86_tuple {
	X86_T_NONE,
	X86_T_FV,
	X86_T_FV64,
	X86_T_HV,
	X86_T_FVM,
	X86_T_HVM,
	X86_T_QVM,
	X86_T_OVM,
	X86_T_N1,
	X86_T_N2,
	X86_T_N4,
	X86_T_N8,
	X86_T_N16,
	X86_T_N32
};

enum x86_form_id {
	X86_F_ZO,
	X86_F_O,
	X86_F_OI,
	X86_F_AI,
	X86_F_M,
	X86_F_MI,
	X86_F_MR,
	X86_F_RM,
	X86_F_RMI,
	X86_F_MRI,
	X86_F_RVM,
	X86_F_RVMI,
	X86_F_RVMR,
	X86_F_RMV,
	X86_F_MVR,
	X86_F_VM,
	X86_F_VMI,
	X86_F_R,
	X86_F_ZR,
	X86_F_REL
};

/* The facts of an opcode, one word: opcode 0-7, prefix 8-9, map 10-11, W 12-13, L 14-16, digit 17-19, VEX 20, EVEX 21,
 * EVEX.W 22-23, tuple 24-27, no mask 28, EVEX first 29. */
#define X86_FACTS(op, pp, map, w, l, digit) \
	((uint32_t)(op) | (uint32_t)(pp) << 8 | (uint32_t)(map) << 10 | (uint32_t)(w) << 12 | (uint32_t)(l) << 14 | \
	 (uint32_t)(digit) << 17)
#define X86_HAS_VEX (1u << 20)
#define X86_HAS_EVEX (1u << 21)
#define X86_EVEX_FACTS(w, t) (X86_HAS_EVEX | (uint32_t)(w) << 22 | (uint32_t)(t) << 24)
#define X86_NO_MASK (1u << 28)
#define X86_EVEX_FIRST (1u << 29)

static inline unsigned x86_f_opcode(uint32_t f) { return f & 0xff; }
static inline enum x86_prefix x86_f_prefix(uint32_t f) { return f >> 8 & 3; }
static inline enum x86_map x86_f_map(uint32_t f) { return f >> 10 & 3; }
static inline enum x86_w x86_f_w(uint32_t f) { return f >> 12 & 3; }
static inline enum x86_l x86_f_l(uint32_t f) { return f >> 14 & 7; }
static inline unsigned x86_f_digit(uint32_t f) { return f >> 17 & 7; }
static inline enum x86_w x86_f_evex_w(uint32_t f) { return f >> 22 & 3; }
static inline enum x86_tuple x86_f_tuple(uint32_t f) { return f >> 24 & 15; }

struct x86_row {
	uint16_t op;  /* enum x86_op; the rows of one op stand together */
	uint8_t form; /* enum x86_form_id */
	char sig[5];  /* one letter per operand, see x86.def */
	uint32_t facts;
};

extern const struct x86_row x86_rows[];
extern const unsigned x86_row_count;

/* A row whose operands fit, with its operands in their places. NULL: the form has no such place. */
struct x86_match {
	const struct x86_row *row;
	const struct x86_operand *reg, *vvvv, *rm, *is4, *imm;
	char imm_letter; /* i j J o 1 l, or 0 */
	bool vsib;
	bool force_rex; /* spl bpl sil dil */
	bool evex;
	uint8_t w; /* 0, 1: the W bit of a WV row */
	uint8_t l; /* 0 128, 1 256, 2 512 bits */
	uint8_t mask;
	bool zeroing;
};

/* The longest instruction is 15 bytes. */
struct x86_code {
	uint8_t byte[16];
	unsigned n;
	int label_at; /* where 4 bytes wait for a label's distance, or -1 */
	int32_t label, addend;
};

void x86_form_encode(const struct x86_match *m, struct x86_code *out);

/* --- x86_match.c */

const char *x86_match(const struct x86 *x, enum x86_op op, const struct x86_operand *o, struct x86_match *m);

#endif
