/* jit/rdna/lir_verify_shape.c - does an instruction have the operands that its row of the encoder's table asks for? */
#include <assert.h>

#include "jit/rdna/lir_verify.h"

/* What an operand may be, in a byte: how many words, and of what. */
enum { WORDS = 31, VGPR = 32, SGPR = 64, CONSTANT = 128, LABEL = 30, ADDRESS = 31 /* these two are no operands */ };

static unsigned kind_of(char letter, char dst)
{
	switch (letter) {
	case '1':
	case 'h': return VGPR | 1;
	case '2':
	case '3':
	case '4':
	case '8': return VGPR | (unsigned)(letter - '0');
	case 'a':
	case 'b':
	case 'f':
	case 'p':
	case 'P':
	case 'm': return VGPR | SGPR | CONSTANT | 1;
	case 'A': return VGPR | SGPR | CONSTANT | 2;
	case 'W': return VGPR | CONSTANT | (unsigned)(dst - '0');
	case 's':
	case 'u':
	case 'l':
	case 'B': return SGPR | CONSTANT | 1;
	case 'S': return SGPR | CONSTANT | 2;
	case 'c':
	case 'N': return SGPR | 1;
	case 'r': return SGPR | 2;
	case 't': return SGPR | 3;
	case 'q':
	case '#': return SGPR | 4;
	case 'o': return SGPR | 8;
	case 'x': return SGPR | 16;
	case 'K':
	case 'k':
	case 'i':
	case 'w':
	case 'H':
	case 'I': return CONSTANT | 1;
	case '@': return ADDRESS;
	default: return LABEL;
	}
}

/* The letters read; kept in one word, so that the first thread shares it with all. */
struct shape {
	uint8_t d[2], s[4], optional, known;
};

static struct shape make_shape(unsigned op, enum rdna_gen gen)
{
	const char *p = rdna_lir_letters(op, gen);
	struct shape shape = { .optional = *p == '?', .known = 1 };
	p += shape.optional;
	char dst = *p;
	for (unsigned d = 0; *p != '='; p++)
		shape.d[d++] = (uint8_t)kind_of(*p, dst);
	p++;
	for (unsigned s = 0; *p && *p != '/'; p++)
		shape.s[s++] = (uint8_t)kind_of(*p, dst);
	return shape;
}

static struct shape shape_of(unsigned op, enum rdna_gen gen)
{
	static _Atomic uint64_t known[2][RDNA_OP_COUNT];
	_Atomic uint64_t *at = &known[gen == RDNA_GFX12][op];
	uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
	struct shape shape;
	static_assert(sizeof shape == sizeof word, "a shape fills a word");
	if (!word) {
		shape = make_shape(op, gen);
		memcpy(&word, &shape, sizeof word);
		atomic_store_explicit(at, word, memory_order_relaxed);
	}
	memcpy(&shape, &word, sizeof shape);
	return shape;
}

static bool check_register(struct check *c, const struct rdna_lir_operand *o)
{
	const struct rdna_lir *l = c->l;
	if (!o->reg || o->reg >= l->n_regs || !o->n || o->sub + o->n > l->reg[o->reg].n)
		return rdna_verify_fail(c, "an operand names words that its register does not have");
	const struct rdna_lir_reg *g = &l->reg[o->reg];
	if (g->cls == RDNA_CLASS_SGPR && o->sub % rdna_lir_alignment(RDNA_CLASS_SGPR, o->n))
		return rdna_verify_fail(c, "a scalar operand of several words begins at a word where none may");
	if (!l->allocated)
		return true;
	unsigned low = g->cls == RDNA_CLASS_VGPR ? RDNA_V0 : RDNA_ABI_FREE_SGPR,
		 high = g->cls == RDNA_CLASS_VGPR ? MACHINE : RDNA_ABI_SGPRS;
	if (g->phys < low || g->phys + g->n > high || (g->cls == RDNA_CLASS_SGPR && g->phys % g->align))
		return rdna_verify_fail(c, "an operand's machine register is not one for such a tuple");
	return true;
}

/* Before allocation only registers with a role may be named. */
static bool check_fixed(struct check *c, const struct rdna_lir_operand *o)
{
	bool allocatable = (o->reg >= RDNA_ABI_FREE_SGPR && o->reg < RDNA_ABI_SGPRS) || o->reg >= RDNA_V0;
	if (o->reg + o->n > MACHINE || (allocatable && !c->l->allocated))
		return rdna_verify_fail(c, "an operand fixes a machine register that belongs to the allocator");
	if (o->reg < RDNA_ABI_WAVE || o->reg == RDNA_M0)
		return rdna_verify_fail(c, "an operand is a register of the driver");
	return true;
}

static bool check_operand(struct check *c, const struct rdna_lir_operand *o, unsigned k)
{
	unsigned cls;
	switch (o->kind) {
	case RDNA_LIR_CONST: return k & CONSTANT || rdna_verify_fail(c, "a constant where the instruction takes none");
	case RDNA_LIR_VIRTUAL:
		if (!check_register(c, o))
			return false;
		cls = c->l->reg[o->reg].cls == RDNA_CLASS_VGPR ? VGPR : SGPR;
		break;
	case RDNA_LIR_FIXED:
		if (!check_fixed(c, o))
			return false;
		if (o->reg == RDNA_NULL && k & SGPR)
			return true;
		cls = o->reg >= RDNA_V0 ? VGPR : SGPR;
		break;
	default: return rdna_verify_fail(c, "an operand is missing");
	}
	if (!(k & cls))
		return rdna_verify_fail(c, "an operand of the wrong class");
	return o->n == (k & WORDS) || rdna_verify_fail(c, "an operand of a wrong number of words");
}

static bool check_address(struct check *c, const struct rdna_lir_ins *i)
{
	bool both = i->saddr.kind != RDNA_LIR_NONE;
	switch (rdna_lir_address_form(i->op)) {
	case RDNA_ADDRESS_SCALAR:
		return check_operand(c, &i->s[0], SGPR | 2) && (!both || check_operand(c, &i->saddr, SGPR | 1));
	case RDNA_ADDRESS_LDS:
		return check_operand(c, &i->s[0], VGPR | 1) &&
		       (!both || rdna_verify_fail(c, "a scalar address in LDS"));
	case RDNA_ADDRESS_SCRATCH:
		return (!i->s[0].kind || check_operand(c, &i->s[0], VGPR | 1)) &&
		       (!both || check_operand(c, &i->saddr, SGPR | 1));
	default:
		return check_operand(c, &i->s[0], VGPR | (both ? 1 : 2)) &&
		       (!both || check_operand(c, &i->saddr, SGPR | 2));
	}
}

static bool check_source(struct check *c, const struct rdna_lir_ins *i, unsigned s, unsigned kind)
{
	if (kind == ADDRESS)
		return check_address(c, i);
	return kind == LABEL ? rdna_verify_fail(c, "a branch: loops and ifs are the only control flow")
	                     : check_operand(c, &i->s[s], kind);
}

/* Classes and sizes as the instruction takes them. */
static bool check_shape(struct check *c, const struct rdna_lir_ins *i)
{
	const struct shape shape = shape_of(i->op, c->l->gen);
	for (unsigned d = 0; d < 2; d++) {
		if (!shape.d[d] ? !i->d[d].kind : shape.optional && !i->d[d].kind)
			continue;
		if (!shape.d[d])
			return rdna_verify_fail(c, "too many destinations");
		if (!check_operand(c, &i->d[d], shape.d[d]))
			return false;
	}
	for (unsigned s = 0; s < 4; s++) {
		if (!shape.s[s] && !i->s[s].kind)
			continue;
		if (s == 3 && rdna_lir_is_masked(i)) {
			if (!check_operand(c, &i->s[3], SGPR | 1))
				return false;
			continue;
		}
		if (!shape.s[s])
			return rdna_verify_fail(c, "too many sources");
		if (!check_source(c, i, s, shape.s[s]))
			return false;
	}
	return true;
}

static bool check_loop_shape(struct check *c, const struct rdna_lir_ins *i)
{
	if (i->op == RDNA_LIR_LOOP)
		return (!i->d[0].kind || check_operand(c, &i->d[0], SGPR | 1)) &&
		       check_operand(c, &i->s[0], SGPR | CONSTANT | 1);
	if (i->op == RDNA_LIR_IF || i->op == RDNA_LIR_BREAK)
		return check_operand(c, &i->s[0], SGPR | 1);
	return true;
}

static bool check_memory(struct check *c, const struct rdna_lir_ins *i, unsigned facts)
{
	bool memory = facts & (RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS);
	if (i->exec && rdna_lir_is_masked(i))
		return rdna_verify_fail(c, "lanes said twice");
	if ((i->exec && !(facts & (RDNA_IS_VMEM | RDNA_IS_LDS))) || (i->memory && !memory))
		return rdna_verify_fail(c, "what only memory instructions have: lanes or memory");
	if (memory && i->stores != !!(facts & RDNA_IS_STORE))
		return rdna_verify_fail(c, "a store that does not say so, or the other way round");
	return true;
}

bool rdna_verify_check_instruction(struct check *c)
{
	const struct rdna_lir_ins *i = &c->l->ins[c->at];
	if (i->op >= RDNA_LIR_OPS)
		return rdna_verify_fail(c, "no such instruction");
	if (i->op >= RDNA_OP_COUNT)
		return check_loop_shape(c, i);
	if (!rdna_has((enum rdna_op)i->op, c->l->gen))
		return rdna_verify_fail(c, "an instruction that the generation lacks");
	if (i->op == RDNA_V_SWAP_B32 || i->op == RDNA_V_SWAPREL_B32)
		return rdna_verify_fail(c, "an instruction that writes its source");
	return check_shape(c, i) && check_memory(c, i, rdna_lir_facts(i->op));
}
