/* encoders/rdna_form.h - what passes between the parts of the RDNA encoder: a row of the table, and an instruction
 * checked.
 *
 * Owns: how rdna.def's facts are packed. Only encoders/rdna*.c and the encoder's tests may include it.
 */
#ifndef ENCODERS_RDNA_FORM_H
#define ENCODERS_RDNA_FORM_H

#include "encoders/rdna.h"

enum rdna_enc {
	RDNA_E_SOP1,
	RDNA_E_SOP2,
	RDNA_E_SOPC,
	RDNA_E_SOPK,
	RDNA_E_SOPP,
	RDNA_E_SMEM,
	RDNA_E_VOP1,
	RDNA_E_VOP2,
	RDNA_E_VOPC,
	RDNA_E_VOP3,
	RDNA_E_VOP3P,
	RDNA_E_DS,
	RDNA_E_GLOBAL,
	RDNA_E_FLAT,
	RDNA_E_SCRATCH,
	RDNA_E_MUBUF
};

/* facts: bits 0-2 sources that take neg, 3-5 abs, 6-9 op_sel (9: the destination), then flags */
#define RDNA_F_NEG(mask) (mask)
#define RDNA_F_ABS(mask) ((mask) << 3)
#define RDNA_F_SEL(mask) ((mask) << 6)
enum {
	RDNA_F_CLAMP = 1 << 10,
	RDNA_F_OMOD = 1 << 11,
	RDNA_F_DPP = 1 << 12,
	RDNA_F_SHORT = 1 << 13,
	RDNA_F_MIX = 1 << 14,
	RDNA_F_READS_VCC = 1 << 15,
	RDNA_F_BUS_1 = 1 << 16,
	RDNA_F_TWO = 1 << 17,
	RDNA_F_FROM_11_5 = 1 << 18
};
enum { RDNA_NO_OPCODE = 0xffff };

struct rdna_row {
	const char *names, *sig;
	uint32_t facts;
	uint16_t opcode[3];
	uint8_t enc;
};
extern const struct rdna_row rdna_rows[RDNA_OP_COUNT];

/* A row's letters read, in one word, so that the first reader of a row shares it with all. reaches: one bears on the
 * length of the encoding (masks, 16 bits). */
#define RDNA_LETTERS \
	char dst[2], src[4]; \
	uint8_t n_dst : 4, reaches : 1, n_src
struct rdna_read {
	RDNA_LETTERS;
};

/* An instruction whose operands have been checked and turned into the numbers of its generation. */
struct rdna_match {
	const struct rdna_row *row;
	const struct rdna_ins *ins;
	enum rdna_gen gen;
	enum rdna_op op;
	unsigned opcode;
	union {
		struct rdna_read letters;
		struct {
			RDNA_LETTERS;
		};
	};
	uint16_t d[2], s[4]; /* field values; s: a source's 9 bits, an immediate's 16 */
	uint16_t saddr;
	uint8_t neg, abs, sel, flip; /* by source; sel bit 3: the destination */
	bool has_literal;
	uint32_t literal;
	bool long_form; /* VOP1, VOP2, VOPC as VOP3 */
	int32_t branch; /* label of the branch, or -1 */
	bool distance;
	int32_t to, from; /* the literal is to - from */
};

/* RDNA_NO_OPCODE: the generation lacks it. */
unsigned rdna_opcode(enum rdna_op op, enum rdna_gen gen);
/* The number of an inline float of 32 or 16 bits, or -1. */
int rdna_inline_float(uint32_t v, bool half);
/* Appends one instruction by rdna_check alone, plain or not. */
void rdna_put_checked(struct rdna *r, const struct rdna_ins *ins);
/* The row's letters in this generation. */
void rdna_letters(struct rdna_match *m);
/* NULL, or the rule that is broken. */
const char *rdna_check(struct rdna_match *m);
/* m has passed rdna_check; h's opcode is set by who knows it. */
void rdna_find_half(struct rdna_half *h, const struct rdna_match *m);
const char *rdna_check_dual(const struct rdna_half *x, const struct rdna_half *y);

/* Lays the instruction out, little-endian words; returns how many (1..4). */
unsigned rdna_encode(const struct rdna_match *m, uint32_t out[4]);
unsigned rdna_encode_dual(const struct rdna_half *x, const struct rdna_half *y, uint32_t out[4]);
/* The same of a plain instruction that nobody has checked; 0: it takes a closer look. */
unsigned rdna_encode_plain(enum rdna_op op, enum rdna_gen gen, const struct rdna_plain *p, uint32_t out[4]);
/* An instruction with one immediate of 16 bits; 0: it takes a closer look. */
uint32_t rdna_encode_immediate(enum rdna_op op, enum rdna_gen gen, int64_t v);
/* False: it is none. */
bool rdna_plain_of(struct rdna_plain *p, const struct rdna_ins *ins);

static inline bool rdna_is_vector(enum rdna_enc e) { return e >= RDNA_E_VOP1 && e <= RDNA_E_VOP3P; }
static inline bool rdna_is_flat(enum rdna_enc e) { return e >= RDNA_E_GLOBAL && e <= RDNA_E_SCRATCH; }
/* The number of 32-bit registers a letter stands for. */
unsigned rdna_letter_size(const struct rdna_match *m, char letter);

/* What stands for a letter in a row: how many 32-bit registers (0: as many as the destination has), and what else
 * may. */
enum {
	LETTER_IMMEDIATE = 1,
	LETTER_LITERAL = 2,
	LETTER_CONSTANT = 4,
	LETTER_SCALAR = 8 /* and nothing else */,
	LETTER_LOW = 16 /* short encodings reach v0-v127 from gfx11 on */,
	LETTER_PLAIN_V = 32,
	LETTER_PLAIN_S = 64,
	LETTER_PLAIN_CONSTANT = 128 /* any vector register, any of s0-s105, -16 to 64 will do: rdna_plain */
};

/* --- rdna_operand.c */

bool rdna_letter_is(char letter, unsigned what);
/* NULL and *field when a register may stand for the letter. */
const char *rdna_take_register(const struct rdna_match *m, char letter, const struct rdna_operand *o, uint16_t *field);
/* Most operands: a register that any may be, an integer that needs no literal. False says nothing: rdna_take knows; a
 * field that no operand fills stays 0. */
bool rdna_plain(char letter, const struct rdna_operand *o, uint16_t *field);
const char *rdna_take(struct rdna_match *m, char letter, const struct rdna_operand *o, uint16_t *field);
const char *rdna_check_range(int32_t offset, int32_t low, int32_t high);
const char *rdna_take_address(struct rdna_match *m, char letter);

#endif
