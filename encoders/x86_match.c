/* encoders/x86_match.c - the table of instructions, and which of its rows takes given operands.
 *
 * Owns: the choice of the row and the prefix, and the sentence said when none takes the operands. The rule: every
 * operand that cannot be encoded, or that the CPU would refuse, is refused here with the rule it breaks; nothing is
 * silently truncated.
 */
#include <string.h>

#include "encoders/x86_form.h"

#define LEG(pp, map, op, w, digit) X86_FACTS(op, X86_P_##pp, X86_MAP_##map, X86_W_##w, X86_L_L0, digit)
#define VEX(pp, map, op, w, l, digit) \
	(X86_FACTS(op, X86_P_##pp, X86_MAP_##map, X86_W_##w, X86_L_##l, digit) | X86_HAS_VEX)
#define NO_VEX(pp, map, op, l, digit) X86_FACTS(op, X86_P_##pp, X86_MAP_##map, X86_W_W0, X86_L_##l, digit)
#define EVEX(w, tuple) X86_EVEX_FACTS(X86_W_##w, X86_T_##tuple)
#define NO_EVEX 0u
#define NO_MASK (X86_NO_MASK >> 24) /* EVEX() moves it up together with the tuple */
#define EVEX_FIRST (X86_EVEX_FIRST >> 24)

const struct x86_row x86_rows[] = {
#define X86(id, name, form, sig, facts, evex) { X86_##id, X86_F_##form, sig, facts | evex },
#define X86_ALT(id, form, sig, facts, evex) { X86_##id, X86_F_##form, sig, facts | evex },
#include "encoders/x86.def"
#undef X86
#undef X86_ALT
};
const unsigned x86_row_count = sizeof x86_rows / sizeof x86_rows[0];

/* The index of each op's first row: the rows are numbered by an enum that names only the first ones. */
#define X86_PASTE2(a, b) a##b
#define X86_PASTE(a, b) X86_PASTE2(a, b)
enum {
#define X86(id, ...) X86_FIRST_##id,
#define X86_ALT(id, ...) X86_PASTE(X86_ALT_ROW_, __COUNTER__),
#include "encoders/x86.def"
#undef X86
#undef X86_ALT
};

static const struct {
	const char *name;
	uint16_t first;
} x86_ops[X86_OP_COUNT] = {
#define X86(id, name, ...) { name, X86_FIRST_##id },
#define X86_ALT(id, ...)
#include "encoders/x86.def"
#undef X86
#undef X86_ALT
};

/* Where a form puts each operand: index of the operand, or -1. */
static const struct {
	int8_t reg, vvvv, rm, is4, imm;
} x86_slots[] = {
	[X86_F_ZO] = { -1, -1, -1, -1, -1 }, [X86_F_O] = { -1, -1, 0, -1, -1 },   [X86_F_OI] = { -1, -1, 0, -1, 1 },
	[X86_F_AI] = { -1, -1, -1, -1, 1 },  [X86_F_M] = { -1, -1, 0, -1, -1 },   [X86_F_MI] = { -1, -1, 0, -1, 1 },
	[X86_F_MR] = { 1, -1, 0, -1, -1 },   [X86_F_RM] = { 0, -1, 1, -1, -1 },   [X86_F_RMI] = { 0, -1, 1, -1, 2 },
	[X86_F_MRI] = { 1, -1, 0, -1, 2 },   [X86_F_RVM] = { 0, 1, 2, -1, -1 },   [X86_F_RVMI] = { 0, 1, 2, -1, 3 },
	[X86_F_RVMR] = { 0, 1, 2, 3, -1 },   [X86_F_RMV] = { 0, 2, 1, -1, -1 },   [X86_F_MVR] = { 2, 1, 0, -1, -1 },
	[X86_F_VM] = { -1, 0, 1, -1, -1 },   [X86_F_VMI] = { -1, 0, 1, -1, 2 },   [X86_F_REL] = { -1, -1, -1, -1, 0 },
	[X86_F_R] = { 0, -1, -1, -1, -1 },   [X86_F_ZR] = { -1, -1, -1, -1, -1 },
};

/* --- does a row take these operands? NULL, or the rule that is broken */

static bool x86_is_vector(const struct x86_operand *o) { return o->cls >= X86_XMM && o->cls <= X86_ZMM; }

static const char *x86_check_register(const struct x86_operand *o)
{
	if (o->cls == X86_KREG)
		return o->reg > 7 ? "a mask register must be k0 to k7" : NULL;
	if (o->cls == X86_TMM)
		return o->reg > 7 ? "a tile register must be tmm0 to tmm7" : NULL;
	if (x86_is_vector(o))
		return o->reg > 31 ? "a vector register must be numbered 0 to 31" : NULL;
	return o->reg > 15 ? "a general register must be numbered 0 to 15" : NULL;
}

static const char *x86_check_memory(const struct x86_operand *o, bool vsib)
{
	if (o->label >= 0)
		return vsib ? "a gather or scatter address must have a vector index" : NULL;
	if (o->reg != X86_NO_BASE && o->reg > 15)
		return "a base must be a general register numbered 0 to 15";
	if (o->scale != 1 && o->scale != 2 && o->scale != 4 && o->scale != 8)
		return "a scale must be 1, 2, 4 or 8";
	if (vsib)
		return o->index == X86_NO_INDEX ? "a gather or scatter address must have a vector index"
		       : o->index > 31          ? "a vector register must be numbered 0 to 31"
		                                : NULL;
	if (o->index == X86_NO_INDEX)
		return o->reg == X86_NO_BASE ? "an address needs a base, an index or a label" : NULL;
	if (o->index == X86_RSP)
		return "rsp cannot be an index";
	return o->index > 15 ? "an index must be a general register numbered 0 to 15" : NULL;
}

static const char *x86_check_imm(char letter, int64_t v, bool wide)
{
	switch (letter) {
	case 'i': return v < -128 || v > 255 ? "the immediate must fit in one byte" : NULL;
	case 'j': return v < -128 || v > 127 ? "the immediate must fit in one signed byte" : NULL;
	case 'J':
		if (v < INT32_MIN || v > (wide ? (int64_t)INT32_MAX : (int64_t)UINT32_MAX))
			return wide ? "the immediate must fit in 32 bits, sign-extended"
			            : "the immediate must fit in 32 bits";
		return NULL;
	case '1': return v != 1 ? "the immediate must be 1" : NULL;
	default: return NULL;
	}
}

/* The register class that a letter stands for; X86_NONE when it stands for none. */
static enum x86_class x86_letter_class(char letter, const struct x86_match *m)
{
	unsigned l = m->l;

	switch (letter) {
	case 'v':
	case 'V': return X86_XMM + l;
	case 'h':
	case 'H': return X86_XMM + (l > 1 ? l - 1 : 0);
	case 'q':
	case 'Q':
	case 'e':
	case 'E':
	case 'x':
	case 'X': return X86_XMM;
	case 'w':
	case 'W':
	case 'A': return m->w ? X86_GPR64 : X86_GPR32;
	case 'd':
	case 'D':
	case 'b':
	case 'B':
	case 'u':
	case 'U': return X86_GPR32;
	case 'g':
	case 'G': return X86_GPR64;
	case 'k':
	case 'K': return X86_KREG;
	case 't': return X86_TMM;
	default: return X86_NONE;
	}
}

static const char *x86_class_rule(enum x86_class cls)
{
	switch (cls) {
	case X86_GPR32: return "the operand must be a 32-bit general register";
	case X86_GPR64: return "the operand must be a 64-bit general register";
	case X86_XMM: return "the operand must be an xmm register";
	case X86_YMM: return "the operand must be a ymm register";
	case X86_ZMM: return "the operand must be a zmm register";
	case X86_KREG: return "the operand must be a mask register";
	case X86_TMM: return "the operand must be a tile register";
	default: return "the operand must be in memory";
	}
}

static const char *x86_check_value(char letter, const struct x86_operand *o, struct x86_match *m)
{
	if (o->cls == X86_IMM)
		return x86_check_imm(letter, o->imm, m->w);
	if (o->cls == X86_MEM) {
		m->vsib = letter == 's';
		if (letter == 'p' && (o->label >= 0 || o->index == X86_NO_INDEX))
			return "the address of a tile must have an index, the pitch of its rows";
		return letter == 'l' ? NULL : x86_check_memory(o, m->vsib);
	}
	if (letter == 'A' && o->reg != X86_RAX)
		return "the operand must be the accumulator";
	if ((letter == 'b' || letter == 'B') && o->reg >= X86_RSP && o->reg <= X86_RDI)
		m->force_rex = true;
	return x86_check_register(o);
}

/* *depth counts the checks passed, the class and then the value of each operand. */
static const char *x86_check_operand(char letter, const struct x86_operand *o, struct x86_match *m, unsigned *depth)
{
	const char *why;

	if (o->cls == X86_NONE)
		return "an operand is missing";
	if (strchr("ijJo1", letter)) {
		if (o->cls != X86_IMM)
			return "the operand must be an immediate";
	} else if (letter == 'l') {
		if (o->cls != X86_MEM || o->label < 0)
			return "the operand must be a label";
	} else if (o->cls == X86_MEM) {
		if (letter != 'm' && letter != 's' && letter != 'p' && !(letter >= 'B' && letter <= 'Z'))
			return "the operand cannot be in memory";
	} else if (o->cls != x86_letter_class(letter, m)) {
		return x86_class_rule(x86_letter_class(letter, m));
	}
	++*depth;
	if ((why = x86_check_value(letter, o, m)))
		return why;
	++*depth;
	return NULL;
}

/* L and W follow the first register operand whose letter speaks of them. */
static const char *x86_find_lengths(struct x86_match *m, const struct x86_operand *o)
{
	uint32_t f = m->row->facts;
	enum x86_l l = x86_f_l(f);
	const char *sig = m->row->sig;

	m->l = l == X86_L_L1;
	if (l == X86_L_LV || l == X86_L_LY || l == X86_L_LZ) {
		for (int i = 0; sig[i]; i++) {
			if ((sig[i] != 'v' && sig[i] != 'V') || o[i].cls == X86_MEM)
				continue;
			if (!x86_is_vector(&o[i]))
				return o[i].cls == X86_NONE ? "an operand is missing"
				                            : "the operand must be a vector register";
			m->l = (uint8_t)(o[i].cls - X86_XMM);
			break;
		}
		if (l == X86_L_LY && m->l == 0)
			return "the instruction has no 128-bit form";
		if (l == X86_L_LZ && m->l < 2)
			return "the instruction has only a 512-bit form";
	}
	enum x86_w w = m->evex ? x86_f_evex_w(f) : x86_f_w(f);
	m->w = w == X86_W_W1;
	for (int i = 0; w == X86_W_WV && sig[i]; i++)
		if (strchr("wWA", sig[i]) && (o[i].cls == X86_GPR32 || o[i].cls == X86_GPR64)) {
			m->w = o[i].cls == X86_GPR64;
			break;
		}
	return NULL;
}

/* Whether these operands can only be said with EVEX. */
static bool x86_needs_evex(const struct x86 *x, const struct x86_operand *o, const char *sig)
{
	for (int i = 0; sig[i]; i++)
		if (o[i].cls == X86_ZMM || (x86_is_vector(&o[i]) && o[i].reg > 15) ||
		    (o[i].cls == X86_MEM && (o[i].broadcast || (sig[i] == 's' && o[i].label < 0 &&
		                                                o[i].index != X86_NO_INDEX && o[i].index > 15))))
			return true;
	return x->mask != 0 || x->zeroing;
}

static const char *x86_choose_prefix(const struct x86 *x, struct x86_match *m, const struct x86_operand *o)
{
	uint32_t f = m->row->facts;
	bool needs = x86_needs_evex(x, o, m->row->sig) || (!(f & X86_HAS_VEX) && (f & X86_HAS_EVEX));

	if (!x->evex && (needs || strpbrk(m->row->sig, "kK")))
		return "a zmm or mask register, a vector register above 15, a broadcast or an AVX-512 instruction "
		       "needs EVEX";
	if (needs && !(f & X86_HAS_EVEX))
		return "the instruction has no EVEX form: no zmm, no register above 15, no mask, no broadcast";
	m->evex = needs || (x->evex && (f & X86_EVEX_FIRST));
	return NULL;
}

static const char *x86_check_evex(const struct x86 *x, const struct x86_match *m, const struct x86_operand *o)
{
	uint32_t f = m->row->facts;
	enum x86_tuple t = x86_f_tuple(f);

	for (int i = 0; m->row->sig[i]; i++)
		if (o[i].cls == X86_MEM && o[i].broadcast && t != X86_T_FV && t != X86_T_FV64 && t != X86_T_HV)
			return "the instruction cannot broadcast its memory operand";
	if (x->mask > 7)
		return "a mask register must be k0 to k7";
	if (x->mask && (f & X86_NO_MASK))
		return "the instruction takes no mask";
	if (m->vsib && !x->mask)
		return "a gather or scatter needs a mask other than k0";
	if (!x->zeroing)
		return NULL;
	if (!x->mask)
		return "zeroing needs a mask other than k0";
	if (o[0].cls == X86_MEM || o[0].cls == X86_KREG || m->vsib)
		return "zeroing needs a vector register as destination and no gather";
	return NULL;
}

/* A gather whose registers coincide raises an invalid-opcode exception. */
static const char *x86_check_gather(const struct x86_match *m, const struct x86_operand *o)
{
	if (!m->vsib || o[0].cls == X86_MEM)
		return NULL;
	if (o[0].reg == o[1].index || (!m->evex && (o[0].reg == o[2].reg || o[2].reg == o[1].index)))
		return "the destination, index and mask of a gather must differ";
	return NULL;
}

/* So does a product of tiles two of which are the same. */
static const char *x86_check_tiles(const struct x86_match *m, const struct x86_operand *o)
{
	if (strcmp(m->row->sig, "ttt") == 0 && (o[0].reg == o[1].reg || o[0].reg == o[2].reg || o[1].reg == o[2].reg))
		return "the three tiles of a product must differ";
	return NULL;
}

static const char *x86_match_row(const struct x86 *x, const struct x86_row *row, const struct x86_operand *o,
                                 struct x86_match *m, unsigned *depth)
{
	unsigned n = (unsigned)strlen(row->sig);
	const char *why;

	*m = (struct x86_match){ .row = row };
	*depth = 0;
	why = x86_choose_prefix(x, m, o);
	const char *refused = why; /* said only if the operands fit otherwise: a wrong class is the better message */
	if ((why = x86_find_lengths(m, o)))
		return refused ? refused : why;
	for (unsigned i = 0; i < n; i++)
		if ((why = x86_check_operand(row->sig[i], &o[i], m, depth)))
			return why;
	if (n < 4 && o[n].cls != X86_NONE)
		return "there is an operand too many";
	++*depth;
	if (refused)
		return refused;
	if (m->evex ? (why = x86_check_evex(x, m, o)) != NULL : false)
		return why;
	return (why = x86_check_gather(m, o)) ? why : x86_check_tiles(m, o);
}

static const struct x86_operand *x86_operand_at(const struct x86_operand *o, int slot)
{
	return slot < 0 ? NULL : &o[slot];
}

const char *x86_match(const struct x86 *x, enum x86_op op, const struct x86_operand *o, struct x86_match *m)
{
	const char *best = NULL;
	unsigned best_depth = 0, depth;

	for (unsigned r = x86_ops[op].first; r < x86_row_count && x86_rows[r].op == op; r++) {
		const char *why = x86_match_row(x, &x86_rows[r], o, m, &depth);
		if (!why) {
			int form = x86_rows[r].form;
			m->reg = x86_operand_at(o, x86_slots[form].reg);
			m->vvvv = x86_operand_at(o, x86_slots[form].vvvv);
			m->rm = x86_operand_at(o, x86_slots[form].rm);
			m->is4 = x86_operand_at(o, x86_slots[form].is4);
			m->imm = x86_operand_at(o, x86_slots[form].imm);
			m->imm_letter = m->imm ? x86_rows[r].sig[x86_slots[form].imm] : 0;
			m->mask = x->mask;
			m->zeroing = x->zeroing;
			return NULL;
		}
		/* the row that got furthest speaks; among equals that failed on a value, the last, which is the
		 * widest */
		if (!best || depth > best_depth || (depth == best_depth && depth % 2)) {
			best = why;
			best_depth = depth;
		}
	}
	return best;
}

const char *x86_op_name(enum x86_op op) { return (unsigned)op < X86_OP_COUNT ? x86_ops[op].name : "none"; }
