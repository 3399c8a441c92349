/* jit/rdna/lir_verify.c - is this a kernel that the next pass may trust?
 *
 * Owns: the rules of rdna_lir.h, before and after registers are assigned. It believes neither the allocator nor its
 * intervals: with registers assigned it follows the contents of every machine register, word by word, through the
 * loops. What the encoder refuses (constant bus, offsets, modifiers) is its own.
 */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memfile.h"
#include "jit/rdna/live.h"

enum { MAX_DEPTH = 64, MACHINE = 512, SPECIALS = 4, OUTSIDE = 1 };

struct check {
	const struct rdna_lir *l;
	struct error *err;
	size_t at;
	uint32_t *first_word; /* by register */
	uint32_t *open; /* by word, specials behind them: 1 + serial number of the loop it was first written in; 0: not
	                   written */
	uint32_t n_words;
	uint32_t holds[MACHINE]; /* by machine register: content() of the word in it; 0: nothing known */
	uint32_t stack[MAX_DEPTH], serial;
	unsigned depth;
	bool ok;
};

static bool fail(struct check *c, const char *what)
{
	struct memfile f;
	struct rdna_lir one = *c->l;
	struct rdna_lir_ins copy = c->l->ins[c->at];
	one.ins = &copy;
	one.n_ins = 1;
	if (memfile_open(&f))
		rdna_lir_print(&one, f.out);
	char *text = memfile_take(&f, NULL);
	size_t n = text ? strcspn(text, "\n") : 0;
	error_set(c->err, ERROR_ARGUMENT, "machine instruction %zu (%.*s): %s", c->at, (int)n, text ? text : "", what);
	free(text);
	return c->ok = false;
}

/* --- letters */

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

/* The letters read; kept in one word, so that whoever makes it first gives it to all. */
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
		return fail(c, "an operand names words that its register does not have");
	const struct rdna_lir_reg *g = &l->reg[o->reg];
	if (g->cls == RDNA_CLASS_SGPR && o->sub % rdna_lir_alignment(RDNA_CLASS_SGPR, o->n))
		return fail(c, "a scalar operand of several words begins at a word where none may");
	if (!l->allocated)
		return true;
	unsigned low = g->cls == RDNA_CLASS_VGPR ? RDNA_V0 : RDNA_ABI_FREE_SGPR,
		 high = g->cls == RDNA_CLASS_VGPR ? MACHINE : RDNA_ABI_SGPRS;
	if (g->phys < low || g->phys + g->n > high || (g->cls == RDNA_CLASS_SGPR && g->phys % g->align))
		return fail(c, "an operand's machine register is not one for such a tuple");
	return true;
}

/* Before allocation only registers with a role may be named. */
static bool check_fixed(struct check *c, const struct rdna_lir_operand *o)
{
	bool allocatable = (o->reg >= RDNA_ABI_FREE_SGPR && o->reg < RDNA_ABI_SGPRS) || o->reg >= RDNA_V0;
	if (o->reg + o->n > MACHINE || (allocatable && !c->l->allocated))
		return fail(c, "an operand fixes a machine register that belongs to the allocator");
	if (o->reg < RDNA_ABI_WAVE)
		return fail(c, "an operand is a register of the driver");
	return true;
}

static bool check_operand(struct check *c, const struct rdna_lir_operand *o, unsigned k)
{
	unsigned cls;
	switch (o->kind) {
	case RDNA_LIR_CONST: return k & CONSTANT || fail(c, "a constant where the instruction takes none");
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
	default: return fail(c, "an operand is missing");
	}
	if (!(k & cls))
		return fail(c, "an operand of the wrong class");
	return o->n == (k & WORDS) || fail(c, "an operand of a wrong number of words");
}

static bool check_address(struct check *c, const struct rdna_lir_ins *i)
{
	bool both = i->saddr.kind != RDNA_LIR_NONE;
	switch (rdna_lir_address_form(i->op)) {
	case RDNA_ADDRESS_SCALAR:
		return check_operand(c, &i->s[0], SGPR | 2) && (!both || check_operand(c, &i->saddr, SGPR | 1));
	case RDNA_ADDRESS_LDS:
		return check_operand(c, &i->s[0], VGPR | 1) && (!both || fail(c, "a scalar address in LDS"));
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
	return kind == LABEL ? fail(c, "a branch: loops are the only control flow") : check_operand(c, &i->s[s], kind);
}

/* Classes and sizes as the instruction takes them. */
static bool check_shape(struct check *c, const struct rdna_lir_ins *i)
{
	const struct shape shape = shape_of(i->op, c->l->gen);
	for (unsigned d = 0; d < 2; d++) {
		if (!shape.d[d] ? !i->d[d].kind : shape.optional && !i->d[d].kind)
			continue;
		if (!shape.d[d])
			return fail(c, "too many destinations");
		if (!check_operand(c, &i->d[d], shape.d[d]))
			return false;
	}
	for (unsigned s = 0; s < 4; s++) {
		if (!shape.s[s] && !i->s[s].kind)
			continue;
		if (!shape.s[s])
			return fail(c, "too many sources");
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
	return true;
}

static bool check_memory(struct check *c, const struct rdna_lir_ins *i, unsigned facts)
{
	bool memory = facts & (RDNA_IS_SMEM | RDNA_IS_VMEM | RDNA_IS_LDS);
	if ((i->exec && !(facts & (RDNA_IS_VMEM | RDNA_IS_LDS))) || (i->memory && !memory))
		return fail(c, "what only memory instructions have: lanes or memory");
	if (memory && i->stores != !!(facts & RDNA_IS_STORE))
		return fail(c, "a store that does not say so, or the other way round");
	return true;
}

static bool check_instruction(struct check *c)
{
	const struct rdna_lir_ins *i = &c->l->ins[c->at];
	if (i->op >= RDNA_LIR_OPS)
		return fail(c, "no such instruction");
	if (i->op >= RDNA_OP_COUNT)
		return check_loop_shape(c, i);
	if (!rdna_has((enum rdna_op)i->op, c->l->gen))
		return fail(c, "an instruction that the generation lacks");
	if (i->op == RDNA_V_SWAP_B32 || i->op == RDNA_V_SWAPREL_B32)
		return fail(c, "an instruction that writes its source");
	return check_shape(c, i) && check_memory(c, i, rdna_lir_facts(i->op));
}

/* The name of an operand's first word; those of the others follow it. */
static uint32_t content(const struct rdna_lir_operand *o) { return 1 + (o->reg << 4) + o->sub; }

/* --- definition on every path, contents of machine registers */

/* vcc_lo, vcc_hi, m0 and scc are words too, behind the registers'. */
static uint32_t special(const struct check *c, unsigned reg)
{
	switch (reg) {
	case RDNA_VCC_LO:
	case RDNA_VCC_HI: return c->n_words + reg - RDNA_VCC_LO;
	case RDNA_M0: return c->n_words + 2;
	case RDNA_SCC: return c->n_words + 3;
	default: return UINT32_MAX;
	}
}

static bool is_open(const struct check *c, uint32_t word)
{
	uint32_t serial = c->open[word];
	if (serial == OUTSIDE)
		return true;
	for (unsigned k = c->depth; k-- > 0;)
		if (c->stack[k] == serial)
			return true;
	return false;
}

static void set_open(struct check *c, uint32_t word)
{
	if (!is_open(c, word))
		c->open[word] = c->depth ? c->stack[c->depth - 1] : OUTSIDE;
}

static void read_fixed(struct check *c, const struct rdna_lir_operand *o)
{
	for (unsigned k = 0; k < o->n; k++)
		if (special(c, o->reg + k) != UINT32_MAX && !is_open(c, special(c, o->reg + k)))
			fail(c, "vcc, m0 or scc is read before it is written on every path");
}

static inline void read_operand(struct check *c, const struct rdna_lir_operand *o)
{
	if (o->kind == RDNA_LIR_FIXED)
		read_fixed(c, o);
	if (o->kind != RDNA_LIR_VIRTUAL || !c->ok)
		return;
	uint32_t word = c->first_word[o->reg] + o->sub;
	unsigned place = c->l->reg[o->reg].phys + o->sub;
	for (unsigned k = 0; k < o->n; k++) {
		if (!is_open(c, word + k))
			fail(c, "a word is read before it is written on every path");
		else if (c->l->allocated && c->holds[place + k] != content(o) + k)
			fail(c, "a source's machine register holds another value");
	}
}

static void write_fixed(struct check *c, const struct rdna_lir_operand *o)
{
	bool role = o->reg == RDNA_VCC_LO || o->reg == RDNA_VCC_HI || o->reg == RDNA_M0 || o->reg == RDNA_NULL;
	bool allocatable = (o->reg >= RDNA_ABI_FREE_SGPR && o->reg < RDNA_ABI_SGPRS) || o->reg >= RDNA_V0;
	if (!role && !allocatable)
		fail(c, "a kernel may not write this register");
	for (unsigned k = 0; c->ok && k < o->n; k++) {
		if (special(c, o->reg + k) != UINT32_MAX)
			set_open(c, special(c, o->reg + k));
		c->holds[o->reg + k] = 0;
	}
}

static inline void write_operand(struct check *c, const struct rdna_lir_operand *o)
{
	if (!c->ok)
		return;
	if (o->kind == RDNA_LIR_FIXED)
		write_fixed(c, o);
	for (unsigned k = 0; o->kind == RDNA_LIR_VIRTUAL && k < o->n; k++) {
		uint32_t word = c->first_word[o->reg] + o->sub + k;
		set_open(c, word);
		if (c->l->allocated)
			c->holds[c->l->reg[o->reg].phys + o->sub + k] = content(o) + k;
	}
}

static void write_operands(struct check *c, const struct rdna_lir_ins *i)
{
	write_operand(c, &i->d[0]);
	write_operand(c, &i->d[1]);
}

static bool place(const struct rdna_lir *l, const struct rdna_lir_operand *o, unsigned *reg)
{
	*reg = o->kind == RDNA_LIR_VIRTUAL ? l->reg[o->reg].phys + o->sub : o->reg;
	return o->kind == RDNA_LIR_VIRTUAL || o->kind == RDNA_LIR_FIXED;
}

static bool overlap(const struct rdna_lir *l, const struct rdna_lir_operand *a, const struct rdna_lir_operand *b)
{
	unsigned x, y;
	return place(l, a, &x) && place(l, b, &y) && x < y + b->n && y < x + a->n;
}

/* Two destinations in one place; a destination that is written before all sources are read. */
static bool check_early_clobber(struct check *c, const struct rdna_lir_ins *i)
{
	unsigned d, s;
	bool matrix = rdna_lir_facts(i->op) & RDNA_IS_WMMA;
	if (overlap(c->l, &i->d[0], &i->d[1]) && i->d[0].reg != RDNA_NULL)
		return fail(c, "both destinations in one register");
	if (!rdna_lir_early_clobber(i))
		return true;
	for (unsigned k = 0; k < 4; k++) {
		if (!overlap(c->l, &i->d[0], &i->s[k]))
			continue;
		if (!(matrix && k == 2 && place(c->l, &i->d[0], &d) && place(c->l, &i->s[2], &s) && d == s))
			return fail(c, "the destination overlaps a source that is read later");
	}
	return true;
}

static bool reads(struct check *c, const struct rdna_lir_ins *i)
{
	unsigned facts = rdna_lir_facts(i->op);
	for (unsigned k = 0; k < 4; k++)
		read_operand(c, &i->s[k]);
	read_operand(c, &i->saddr);
	if (c->ok && rdna_lir_reads_dst(i))
		read_operand(c, &i->d[0]);
	if (c->ok && facts & RDNA_READS_SCC && !is_open(c, special(c, RDNA_SCC)))
		fail(c, "scc is read before it is written");
	if (c->ok && facts & RDNA_READS_VCC && !is_open(c, special(c, RDNA_VCC_LO)))
		fail(c, "vcc is read before it is written on every path");
	return c->ok;
}

static bool writes(struct check *c, const struct rdna_lir_ins *i)
{
	unsigned d, s;
	bool same = i->op == RDNA_V_MOV_B32 && i->d[0].kind == RDNA_LIR_FIXED && place(c->l, &i->s[0], &s) &&
	            place(c->l, &i->d[0], &d) && s == d;
	if (!same)
		write_operands(c, i);
	if (c->ok && rdna_lir_facts(i->op) & RDNA_WRITES_SCC)
		set_open(c, special(c, RDNA_SCC));
	return c->ok;
}

/* --- structure */

/* At a loop's head a machine register holds for sure only what no instruction of the body replaces by something
 * else. */
static void forget_operand(struct check *c, const struct rdna_lir_operand *o)
{
	bool virtual = o->kind == RDNA_LIR_VIRTUAL;
	uint32_t *held = &c->holds[virtual ? c->l->reg[o->reg].phys + o->sub : o->reg], word = virtual ? content(o) : 0;
	for (unsigned k = 0; k < o->n; k++)
		held[k] = virtual && held[k] == word + k ? held[k] : 0;
}

static void forget(struct check *c)
{
	unsigned depth = 0;
	for (size_t k = c->at; k < c->l->n_ins; k++) {
		const struct rdna_lir_ins *i = &c->l->ins[k];
		depth += i->op == RDNA_LIR_LOOP;
		if (i->d[0].kind)
			forget_operand(c, &i->d[0]);
		if (i->d[1].kind)
			forget_operand(c, &i->d[1]);
		if (i->op == RDNA_LIR_ENDLOOP && !--depth)
			break;
	}
}

static bool check_structure(struct check *c)
{
	const struct rdna_lir_ins *i = &c->l->ins[c->at];
	if (i->op == RDNA_LIR_LOOP) {
		if (c->depth == MAX_DEPTH)
			return fail(c, "loops nested deeper than 64");
		c->stack[c->depth++] = ++c->serial;
		if (c->l->allocated)
			forget(c);
	} else if (i->op == RDNA_LIR_ENDLOOP) {
		if (!c->depth)
			return fail(c, "end of a loop that is not open");
		c->depth--;
	}
	if (i->op == RDNA_LIR_LOOP || i->op == RDNA_LIR_ENDLOOP)
		c->open[special(c, RDNA_SCC)] = 0; /* counting goes through it */
	return true;
}

static bool check_one(struct check *c)
{
	const struct rdna_lir_ins *i = &c->l->ins[c->at];
	bool loop = i->op == RDNA_LIR_LOOP || i->op == RDNA_LIR_ENDLOOP;
	if (!check_instruction(c) || !reads(c, i) || !check_structure(c))
		return false;
	if (c->l->allocated && !check_early_clobber(c, i))
		return false;
	if (loop)
		write_operands(c, i);
	return loop ? c->ok : writes(c, i);
}

/* The halves of a dual instruction both read before either writes. */
static bool check_dual(struct check *c)
{
	const struct rdna_lir_ins *i = &c->l->ins[c->at];
	if (c->at + 2 >= c->l->n_ins || !c->l->allocated)
		return fail(c, "a dual instruction without halves");
	for (unsigned k = 1; k <= 2; k++) {
		c->at++;
		if (i[k].op >= RDNA_OP_COUNT || !check_instruction(c) || !reads(c, &i[k]))
			return c->ok && fail(c, "half of a dual instruction that can be none");
	}
	if (overlap(c->l, &i[1].d[0], &i[2].d[0]))
		return fail(c, "both halves of a dual instruction write one register");
	return writes(c, &i[1]) && writes(c, &i[2]);
}

static bool prepare(struct check *c)
{
	const struct rdna_lir *l = c->l;
	c->first_word = calloc(l->n_regs + 1, sizeof *c->first_word);
	for (size_t r = 0; c->first_word && r < l->n_regs; r++)
		c->first_word[r + 1] = c->first_word[r] + l->reg[r].n;
	if (!c->first_word)
		return false;
	c->n_words = c->first_word[l->n_regs];
	c->open = calloc(c->n_words + SPECIALS, sizeof *c->open);
	return c->open;
}

bool rdna_lir_verify(const struct rdna_lir *l, struct error *err)
{
	struct check c = { .l = l, .err = err, .ok = true, .serial = OUTSIDE };
	bool ok = !l->failed && prepare(&c);
	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for the machine instructions of a kernel");
	for (c.at = 0; ok && c.at < l->n_ins; c.at++)
		ok = l->ins[c.at].op == RDNA_LIR_DUAL ? check_dual(&c) : check_one(&c);
	if (ok && c.depth) {
		c.at--;
		ok = fail(&c, "a loop stays open");
	}
	free(c.first_word);
	free(c.open);
	return ok;
}

/* --- places alone: what an allocator can get wrong. That the kernel was a good one before is taken for granted, and
 * that the encoder looks at every operand. */

/* A machine register. Positions are instruction numbers, plus one; those of loops are their LOOPs'. */
struct place {
	uint32_t word;    /* content() of what it holds, 0: nothing known */
	uint32_t written; /* the latest write */
	uint32_t needed;  /* the outermost loop that read this word before writing it, so that it must be there again in
	                     the next turn; what is not open does not count */
};

struct places {
	struct check *c;
	struct place at[MACHINE];
	uint32_t begun; /* the innermost open loop; 0: none */
};

static bool in_loop(const struct check *c, uint32_t loop)
{
	for (unsigned d = 0; d < c->depth; d++)
		if (c->stack[d] == loop)
			return true;
	return false;
}

static void need_through_loops(const struct check *c, struct place *x)
{
	unsigned d = 0;
	while (c->stack[d] <= x->written)
		d++;
	if (c->stack[d] < x->needed || !in_loop(c, x->needed))
		x->needed = c->stack[d];
}

static inline void read_place(struct places *p, const struct rdna_lir_operand *o)
{
	if (o->kind != RDNA_LIR_VIRTUAL)
		return;
	struct place *x = &p->at[p->c->l->reg[o->reg].phys + o->sub];
	uint32_t word = content(o), end = word + o->n;
	for (; word < end; word++, x++) {
		if (x->word != word)
			fail(p->c, "a source's machine register holds another value");
		else if (x->written < p->begun)
			need_through_loops(p->c, x);
	}
}

static inline void write_place(struct places *p, const struct rdna_lir_operand *o)
{
	bool virtual = o->kind == RDNA_LIR_VIRTUAL;
	unsigned reg = virtual ? p->c->l->reg[o->reg].phys + o->sub : o->reg;
	uint32_t word = virtual ? content(o) : 0;
	if (reg < RDNA_ABI_FREE_SGPR || reg + o->n > MACHINE) {
		fail(p->c, "a destination's machine register is not one for a kernel to write");
		return;
	}
	for (struct place *x = &p->at[reg], *end = x + o->n; x < end; x++, word += virtual) {
		if (x->word != word && x->needed && in_loop(p->c, x->needed))
			fail(p->c, "it replaces what a loop that it is in reads again in its next turn");
		*x = (struct place){
			.word = word, .written = (uint32_t)p->c->at + 1, .needed = x->word == word ? x->needed : 0
		};
	}
}

static void enter_or_leave(struct places *p, unsigned op)
{
	struct check *c = p->c;
	if (op == RDNA_LIR_LOOP && c->depth == MAX_DEPTH)
		fail(c, "loops nested deeper than 64");
	else if (op == RDNA_LIR_LOOP)
		c->stack[c->depth++] = (uint32_t)c->at + 1;
	else if (op == RDNA_LIR_ENDLOOP && c->depth)
		c->depth--;
	p->begun = c->depth ? c->stack[c->depth - 1] : 0;
}

static inline void check_places(struct places *p, const struct rdna_lir_ins *i)
{
	for (unsigned k = 0; k < 4; k++)
		read_place(p, &i->s[k]);
	read_place(p, &i->saddr);
	if (rdna_lir_reads_dst(i))
		read_place(p, &i->d[0]);
	if (i->d[1].kind || rdna_lir_early_clobber(i))
		check_early_clobber(p->c, i);
	if (i->op >= RDNA_OP_COUNT)
		enter_or_leave(p, i->op);
	if (i->d[0].kind)
		write_place(p, &i->d[0]);
	if (i->d[1].kind)
		write_place(p, &i->d[1]);
}

bool rdna_lir_verify_places(const struct rdna_lir *l, struct error *err)
{
	struct check c = { .l = l, .err = err, .ok = true };
	struct places p = { .c = &c };
	assert(l->allocated);
	for (size_t r = 1; r < l->n_regs; r++)
		if (l->reg[r].phys + l->reg[r].n > MACHINE)
			return error_set(err, ERROR_ARGUMENT, "machine register %u is not one for a tuple of %u words",
			                 (unsigned)l->reg[r].phys, (unsigned)l->reg[r].n);
	for (const struct rdna_lir_ins *i = l->ins; c.ok && c.at < l->n_ins; c.at++, i++)
		check_places(&p, i);
	return c.ok;
}
