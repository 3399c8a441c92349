/* jit/rdna_scan.c - one look at the IR before RDNA selection: what is dead, which values need no instruction of their own, which loads go together.
 *
 * Folds sums of addresses into displacements, casts into names, signs into operands' modifiers, widenings of halves into the sums of products that
 * read them, and an operation into its one user where an instruction does both. Groups loads of neighbouring words inside a straight run. Never changes
 * the IR. Rule for editors: a folded value is computed where it is used, so everything it depends on must be the same there as at its definition;
 * every new kind of fold must go through rscan_still_valid() at each use.
 */
#include "jit/rdna_select.h"

#include <stdlib.h>
#include <string.h>

struct rscanner {
	struct rscan *s;
	const struct ir *ir;
	enum rdna_gen gen;
	uint32_t at, block;
	bool *uniform;               /* by register: the same in all lanes, and known to lie in scalar registers */
};

/* Nothing is asked for ahead here: the many waves of a card hide what memory takes. */
#define IS(name, other) (IR_##name == IR_##other)
#define NOTHING(name) (IS(name, prefetch) || IS(name, prefetch2))
const uint8_t rscan_row[IR_OP_COUNT] = {
#define OP(name, dst, a, b, c, imm, expression, meaning) [IR_##name] = \
	(NOTHING(name) ? RSCAN_IS_NOTHING : 0) | (!NOTHING(name) && (IR_KIND_##dst == IR_KIND__ || IS(name, loop)) ? RSCAN_HAS_EFFECT : 0) | \
	(!NOTHING(name) && IR_KIND_##dst == IR_KIND__ && IR_KIND_##a == IR_KIND_A ? RSCAN_STORES : 0) | \
	(IR_KIND_##dst != IR_KIND__ && (sizeof #expression > 1 || IS(name, fxor)) ? RSCAN_IS_FUNCTION : 0) | \
	(IS(name, aadd) || IS(name, aaddi) || IS(name, amov) ? RSCAN_MOVES_ADDRESS : 0) | (IS(name, local) || IS(name, shared) ? RSCAN_IS_LDS : 0) | \
	(IS(name, aload) || IS(name, arg) ? RSCAN_IS_GLOBAL : 0) | (IS(name, loop) || IS(name, endloop) ? RSCAN_ENDS_RUN : 0),
#include "jit/ops.def"
#undef OP
};
#undef NOTHING
#undef IS

/* Backward: an instruction lives when it has an effect, writes a variable or has a live use. */
static void rscan_live(struct rscanner *c)
{
	const struct ir *ir = c->ir;

	for (size_t k = ir->n_ins; k-- > 0;) {
		const struct ir_ins *i = &ir->ins[k];
		uint8_t row = rscan_row[i->op];
		if (!(row & RSCAN_HAS_EFFECT) && (row & RSCAN_IS_NOTHING || (!ir->is_var[i->dst] && !c->s->reg[i->dst].uses))) {
			c->s->skip[k] = true;
			continue;
		}
		c->s->reg[i->a].uses++;
		c->s->reg[i->b].uses++;
		c->s->reg[i->c].uses++;
	}
}

/* Which addresses are of LDS. Variables may get theirs from variables that are written later, so until nothing changes. */
static bool rscan_lds(struct rscanner *c, struct error *err)
{
	struct rscan_reg *reg = c->s->reg;

	for (bool changed = true; changed;) {
		changed = false;
		for (size_t k = 0; k < c->ir->n_ins; k++) {
			const struct ir_ins *i = &c->ir->ins[k];
			uint8_t row = rscan_row[i->op];
			if (!(row & (RSCAN_IS_LDS | RSCAN_MOVES_ADDRESS)) || reg[i->dst].lds || !(row & RSCAN_IS_LDS || reg[i->a].lds))
				continue;
			changed |= c->ir->is_var[i->dst];      /* who reads another comes behind it */
			reg[i->dst].lds = true;
		}
	}
	for (size_t k = 0; k < c->ir->n_ins; k++) {
		const struct ir_ins *i = &c->ir->ins[k];
		uint8_t row = rscan_row[i->op];
		if (row & (RSCAN_IS_GLOBAL | RSCAN_MOVES_ADDRESS) && (row & RSCAN_IS_GLOBAL || !reg[i->a].lds) && reg[i->dst].lds)
			return error_set(err, ERROR_UNSUPPORTED, "the address %%%u is of global memory and of LDS at different times", i->dst);
	}
	return true;
}

bool rscan_takes_sign(uint8_t op, unsigned slot)
{
	switch (op) {
	case IR_fadd: case IR_fsub: case IR_fmul: case IR_ffma: case IR_flt: case IR_fle: case IR_fmin: case IR_fmax: case IR_f2i: case IR_fneg: case IR_fabs:
		return true;
	case IR_fsel:
		return slot > 0;
	default:
		return false;
	}
}

unsigned rscan_uniform_op(uint8_t op)
{
	switch (op) {
	case IR_iadd: return RDNA_S_ADD_CO_U32;
	case IR_isub: return RDNA_S_SUB_CO_U32;
	case IR_imul: return RDNA_S_MUL_I32;
	case IR_iand: return RDNA_S_AND_B32;
	case IR_ior: return RDNA_S_OR_B32;
	case IR_ixor: return RDNA_S_XOR_B32;
	case IR_ishl: return RDNA_S_LSHL_B32;
	case IR_ishr: return RDNA_S_LSHR_B32;
	case IR_isar: return RDNA_S_ASHR_I32;
	case IR_imin: return RDNA_S_MIN_I32;
	case IR_imax: return RDNA_S_MAX_I32;
	default: return 0;
	}
}

static const struct ir_ins *definition(const struct rscanner *c, uint16_t r)
{
	return &c->ir->ins[c->s->reg[r].def];
}

/* The integer constant that r is. */
static bool constant_of(const struct rscanner *c, uint16_t r, uint32_t *value)
{
	if (c->s->reg[r].fold != RSCAN_CONST || definition(c, r)->op != IR_iconst)
		return false;
	*value = (uint32_t)definition(c, r)->imm;
	return true;
}

/* Whether rscan_fused_op has anything for it. */
static inline bool takes_over(uint8_t op)
{
	return op == IR_iadd || op == IR_ior || op == IR_ixor || op == IR_isar || op == IR_ishr || op == IR_iand || op == IR_i2f;
}

unsigned rscan_fused_op(const struct ir *ir, const struct ir_ins *i, const struct ir_ins *inner, unsigned slot)
{
	(void)ir;
	switch (i->op) {
	case IR_iadd:
		return inner->op == IR_ishl ? RDNA_V_LSHL_ADD_U32 : inner->op == IR_iadd ? RDNA_V_ADD3_U32 : 0;
	case IR_ior:
		return inner->op == IR_iand ? RDNA_V_AND_OR_B32 : inner->op == IR_ishl ? RDNA_V_LSHL_OR_B32 : inner->op == IR_ior ? RDNA_V_OR3_B32 : 0;
	case IR_ixor:
		return inner->op == IR_ixor ? RDNA_V_XOR3_B32 : 0;
	case IR_isar:
		return inner->op == IR_ishl && i->imm >= inner->imm && i->imm > 0 ? RDNA_V_BFE_I32 : 0;
	case IR_ishr:
		return inner->op == IR_ishl && i->imm >= inner->imm && i->imm > 0 ? RDNA_V_BFE_U32 : 0;
	case IR_iand:
		return inner->op == IR_ishr && slot == 0 ? RDNA_V_BFE_U32 : 0;
	case IR_i2f:                    /* a byte of its operand; which, the shift behind it says */
		return inner->op == IR_iand ? RDNA_V_CVT_F32_UBYTE0 : inner->op == IR_ishr && inner->imm == 24 ? RDNA_V_CVT_F32_UBYTE3 : 0;
	default:
		return 0;
	}
}

/* Fusions that hold for some constants only. */
static bool fused_constants_fit(const struct rscanner *c, const struct ir_ins *i, const struct ir_ins *inner)
{
	uint32_t mask = 0;

	if (i->op == IR_iand)           /* a mask of low bits, that the shift leaves something under */
		return constant_of(c, i->b, &mask) && mask && mask != UINT32_MAX && !(mask & (mask + 1)) && inner->imm + __builtin_popcount(mask) <= 32;
	if (i->op == IR_i2f && inner->op == IR_iand)
		return constant_of(c, inner->b, &mask) && mask == 255;
	return true;
}

/* A value that is the same wherever it is in scope. */
static bool is_stable(const struct rscanner *c, uint16_t r)
{
	return !r || (!c->ir->is_var[r] && (c->s->reg[r].fold == RSCAN_NO || !c->s->reg[r].root) && c->s->reg[r].fold != RSCAN_FUSED
	              && c->s->reg[r].fold != RSCAN_SIGN && c->s->reg[r].fold != RSCAN_HALF);
}

/* A number made of a byte that a fused shift has brought down. */
static bool is_byte(const struct rscanner *c, const struct ir_ins *i, const struct ir_ins *inner)
{
	const struct ir_ins *shift = definition(c, inner->a);

	return i->op == IR_i2f && inner->op == IR_iand && c->s->reg[inner->a].fold == RSCAN_FUSED && (shift->imm == 8 || shift->imm == 16);
}

static bool may_fuse(const struct rscanner *c, const struct ir_ins *i, uint16_t r)
{
	const struct rscan_reg *d = &c->s->reg[r];
	const struct ir_ins *inner = definition(c, r);

	if (c->ir->is_var[r] || d->uses != 1 || d->fold != RSCAN_NO || d->block != c->block || c->uniform[r])
		return false;
	return is_stable(c, inner->b) && (is_stable(c, inner->a) || is_byte(c, i, inner));
}

/* Notes a use, also of what a folded value is made of. */
static void rscan_touch(struct rscanner *c, uint16_t reg)
{
	struct rscan_reg *r = &c->s->reg[reg];

	r->last = r->block == c->block ? c->at : UINT32_MAX;
	if (r->fold == RSCAN_NO || r->fold == RSCAN_CONST)
		return;
	const struct ir_ins *i = definition(c, reg);
	if (i->a)
		rscan_touch(c, i->a);
	if (i->b)
		rscan_touch(c, i->b);
}

/* Lets i do the work of one of its operands. Operand b first: sums are mostly written with the new part last. */
static inline void rscan_fuse(struct rscanner *c, const struct ir_ins *i)
{
	const uint16_t operand[2] = { i->a, i->b };

	if (!takes_over(i->op))
		return;
	for (unsigned slot = 2; slot-- > 0;) {
		uint16_t r = operand[slot];
		if (!r || !may_fuse(c, i, r) || !rscan_fused_op(c->ir, i, definition(c, r), slot) || !fused_constants_fit(c, i, definition(c, r)))
			continue;
		c->s->reg[r].fold = RSCAN_FUSED;
		rscan_touch(c, r);
		return;
	}
}

static enum rscan_fold fold_kind(const struct rscanner *c, const struct ir_ins *i)
{
	const struct rscan_reg *reg = c->s->reg;

	if (!i->dst || c->ir->is_var[i->dst])
		return RSCAN_NO;
	switch (i->op) {
	case IR_fconst: case IR_iconst: case IR_tconst: case IR_ilane: case IR_sconst: case IR_arg: case IR_begin: case IR_end: case IR_wave:
		return RSCAN_CONST;
	case IR_local: case IR_shared:
		return RSCAN_ADDRESS;
	case IR_aaddi:
		return i->imm > -(1 << 30) && i->imm < 1 << 30 ? RSCAN_ADDRESS : RSCAN_NO;
	case IR_fbits: case IR_ibits: case IR_fmov: case IR_imov: case IR_isplat:
		return RSCAN_NAME;
	case IR_fneg: case IR_fabs:
		return RSCAN_SIGN;
	case IR_fhalf: case IR_fload_h:      /* from gfx11 on dual instructions make up for a widening that many share */
		return c->gen == RDNA_GFX10_3 || reg[i->dst].uses <= 2 ? RSCAN_HALF : RSCAN_NO;
	default:
		return RSCAN_NO;
	}
}

/* A variable must be what it was, here and whenever a loop comes back here. */
static bool rscan_still_valid(const struct rscanner *c, const struct rscan_reg *r)
{
	return !r->root || (r->block == c->block && c->s->reg[r->root].version == r->root_version);
}

/* Checks one use of a folded value; takes the fold back when the use cannot have it. */
static void rscan_use_folded(struct rscanner *c, const struct ir_ins *i, uint16_t reg, unsigned slot)
{
	struct rscan_reg *r = &c->s->reg[reg];
	bool ok = rscan_still_valid(c, r);

	if (r->fold == RSCAN_ADDRESS && !r->lds)
		ok = ok && slot == 0 && ir_facts[i->op].a == IR_KIND_A && i->op != IR_aadd && i->op != IR_amov;
	else if (r->fold == RSCAN_SIGN)
		ok = ok && rscan_takes_sign(i->op, slot);
	else if (r->fold == RSCAN_HALF)
		ok = ok && (i->op == IR_ffma || i->op == IR_fmul);
	if (!ok && r->fold != RSCAN_FUSED)
		r->fold = RSCAN_NO;
	rscan_touch(c, reg);
}

/* Constants depend on nothing. */
static inline void rscan_use(struct rscanner *c, const struct ir_ins *i, uint16_t reg, unsigned slot)
{
	struct rscan_reg *r = &c->s->reg[reg];

	if (r->fold == RSCAN_NO || r->fold == RSCAN_CONST)
		r->last = r->block == c->block ? c->at : UINT32_MAX;
	else
		rscan_use_folded(c, i, reg, slot);
}

static bool is_uniform(const struct rscanner *c, const struct ir_ins *i)
{
	const bool *u = c->uniform;

	if (!i->dst || c->ir->is_var[i->dst])
		return false;
	switch (i->op) {
	case IR_fconst: case IR_iconst: case IR_isplat:
		return true;
	case IR_fbcast: case IR_ibcast:
		return !c->s->reg[i->a].lds;
	case IR_fbits: case IR_ibits: case IR_fmov: case IR_imov:
		return u[i->a];
	default:
		return rscan_uniform_op(i->op) && u[i->a] && (!i->b || u[i->b]);
	}
}

static void rscan_define(struct rscanner *c, const struct ir_ins *i)
{
	struct rscan *s = c->s;
	struct rscan_reg *r = &s->reg[i->dst];

	r->version++;
	r->def = c->at;
	r->last = c->at;
	r->block = c->block;
	r->fold = (uint8_t)fold_kind(c, i);
	r->root = 0;
	c->uniform[i->dst] = is_uniform(c, i);
	if (i->a && i->op != IR_fload_h) {      /* what was loaded stays as it is */
		const struct rscan_reg *a = &s->reg[i->a];
		r->root = c->ir->is_var[i->a] ? i->a : a->fold != RSCAN_NO ? a->root : 0;
		r->root_version = s->reg[r->root].version;
	}
}

static void rscan_forward(struct rscanner *c)
{
	const struct ir *ir = c->ir;
	uint32_t local = 0, shared = 0;

	for (c->at = 0; c->at < ir->n_ins; c->at++) {
		const struct ir_ins *i = &ir->ins[c->at];
		uint8_t row = rscan_row[i->op];
		if (row & RSCAN_IS_LDS) {
			uint32_t *at = i->op == IR_local ? &local : &shared;
			c->s->reg[i->dst].offset = *at;
			*at += ir_local_size(i->imm);
		}
		if (c->s->skip[c->at])
			continue;
		if (i->a)
			rscan_use(c, i, i->a, 0);
		if (i->b)
			rscan_use(c, i, i->b, 1);
		if (i->c)
			rscan_use(c, i, i->c, 2);
		c->block += (row & RSCAN_ENDS_RUN) != 0;
		if (i->dst) {
			rscan_define(c, i);
			if (!c->uniform[i->dst])
				rscan_fuse(c, i);
		}
	}
}

uint16_t rscan_root(const struct rscan *s, const struct ir *ir, uint16_t r, int64_t *disp)
{
	while (s->reg[r].fold == RSCAN_ADDRESS && ir->ins[s->reg[r].def].op == IR_aaddi) {
		const struct ir_ins *i = &ir->ins[s->reg[r].def];
		*disp += i->imm;
		r = i->a;
	}
	return r;
}

bool rscan_ir(struct rscan *s, const struct ir *ir, enum rdna_gen gen, struct error *err)
{
	struct rscanner c = { .s = s, .ir = ir, .gen = gen };
	bool ok = false;

	*s = (struct rscan){ 0 };
	s->reg = calloc(ir->n_regs + 1, sizeof *s->reg);
	s->skip = calloc(ir->n_ins + 1, sizeof *s->skip);
	s->group = calloc(ir->n_ins + 1, sizeof *s->group);
	s->word = calloc(ir->n_ins + 1, sizeof *s->word);
	c.uniform = calloc(ir->n_regs + 1, sizeof *c.uniform);
	if (!s->reg || !s->skip || !s->group || !s->word || !c.uniform) {
		error_set(err, ERROR_MEMORY, "no memory to select instructions for a kernel of %zu operations", ir->n_ins);
	} else {
		rscan_live(&c);
		ok = rscan_lds(&c, err);
		if (ok)
			rscan_forward(&c);
		if (ok && !rscan_group_loads(s, ir, gen))
			ok = error_set(err, ERROR_MEMORY, "no memory to group the loads of a kernel of %zu operations", ir->n_ins);
	}
	free(c.uniform);
	if (!ok)
		rscan_free(s);
	return ok;
}

void rscan_free(struct rscan *s)
{
	free(s->reg);
	free(s->skip);
	free(s->group);
	free(s->word);
	free(s->groups);
	*s = (struct rscan){ 0 };
}
