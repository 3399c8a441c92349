/* jit/rdna/scan.c - one look at the IR before RDNA selection: what is dead, which values need no instruction of their
 * own, which loads go together.
 *
 * Folds sums of addresses into displacements, casts into names, and signs into operands' modifiers. Folds widenings of
 * halves into the sums of products that read them, and an operation into its one user where an instruction does both.
 * Groups loads of neighbouring words inside a straight run. Never changes the IR. Rule for editors: a folded value is
 * computed where it is used, so everything it depends on must be the same there as at its definition; every new kind of
 * fold must go through rscan_still_valid() at each use.
 */
#include "jit/ir/rows.h"
#include "jit/rdna/select.h"

#include <stdlib.h>
#include <string.h>

struct rscanner {
	struct rscan *s;
	const struct ir *ir;
	enum rdna_gen gen;
	uint32_t at, block;
	bool *uniform; /* by register: the same in all lanes, and known to lie in scalar registers */
	uint32_t *address;
	size_t n_addresses; /* the instructions that make addresses */
};

/* Nothing is asked for ahead here: the many waves of a card hide what memory takes. An address is moved from another
 * one, or it begins in LDS, or else in global memory. */
#define HAS(effects, some) (((effects) & (some)) != 0)
#define IS_ADDRESS(type) ((unsigned)(type) == (unsigned)IR_TYPE_a)
#define MOVES(dst, a, effects) (IS_ADDRESS(dst) && IS_ADDRESS(a) && HAS(effects, IR_PURE))
#define LOADS_WORDS(op, type) \
	((op) == IR_uload || (op) == IR_load_strided || \
	 ((op) == IR_bcast && ((type) == IR_TYPE_f32 || (type) == IR_TYPE_i32)))
#define ROW_OF(row, op, type, dst, a, effects) \
	[IR_##row] = HAS(effects, IR_HINTS) * RSCAN_IS_NOTHING + \
	             HAS(effects, IR_WRITES | IR_COPIES | IR_BRANCHES | IR_MEETS) * RSCAN_HAS_EFFECT + \
	             HAS(effects, IR_WRITES) * RSCAN_STORES + HAS(effects, IR_PURE) * RSCAN_IS_FUNCTION + \
	             MOVES(dst, a, effects) * RSCAN_MOVES_ADDRESS + HAS(effects, IR_FRAMES) * RSCAN_IS_LDS + \
	             (IS_ADDRESS(dst) && !MOVES(dst, a, effects) && !HAS(effects, IR_FRAMES)) * RSCAN_IS_GLOBAL + \
	             HAS(effects, IR_BRANCHES) * RSCAN_ENDS_RUN + LOADS_WORDS(op, type) * RSCAN_LOADS_WORDS + \
	             HAS(effects, IR_MEETS) * RSCAN_WAITS,
#define EACH(x, row, type) EACH_WITH(row, type, IR_EACH_BARE x)
#define EACH_WITH(row, type, ...) EACH_APART(row, type, __VA_ARGS__)
#define EACH_APART(row, type, name, dst, a, effects) \
	ROW_OF(row, IR_##name, IR_TYPE_##type, IR_OF_##dst(type), IR_OF_##a(type), effects)
const uint16_t rscan_rows[IR_ROWS] = {
#define OP(name, dst, a, b, c, imm, effects, ...) EACH_APART(name, _, name, dst, a, effects)
#define OPS(name, dst, a, b, c, imm, effects, needs, expression, meaning, ...) \
	IR_EACH(EACH, (name, dst, a, effects), __VA_ARGS__)
#include "jit/ir/ops.def"
#undef OP
#undef OPS
};
#undef EACH_APART
#undef EACH_WITH
#undef EACH
#undef ROW_OF
#undef LOADS_WORDS
#undef MOVES
#undef IS_ADDRESS
#undef HAS

/* Backward: an instruction lives when it has an effect, writes a variable or has a live use. Lists, from its end on,
 * what later looks are for. */
static void rscan_live(struct rscanner *c)
{
	enum {
		ADDRESS = RSCAN_IS_LDS | RSCAN_IS_GLOBAL | RSCAN_MOVES_ADDRESS,
		MOMENT = RSCAN_LOADS_WORDS | RSCAN_STORES | RSCAN_ENDS_RUN | RSCAN_WAITS
	};
	struct rscan_reg *const reg = c->s->reg;
	const bool *const is_var = c->ir->is_var;
	uint32_t *address = c->address + c->ir->n_ins, *moment = c->s->moment + c->ir->n_ins;

	for (size_t k = c->ir->n_ins; k-- > 0;) {
		const struct ir_ins *i = &c->ir->ins[k];
		unsigned row = rscan_row(i);
		if (row & ADDRESS)
			*--address = (uint32_t)k;
		if (row & MOMENT || (row & ADDRESS && is_var[i->dst]))
			*--moment = (uint32_t)k;
		bool dead =
			!(row & RSCAN_HAS_EFFECT) && (row & RSCAN_IS_NOTHING || (!is_var[i->dst] && !reg[i->dst].uses));
		c->s->skip[k] = dead;
		if (dead)
			continue;
		reg[i->a].uses++;
		reg[i->b].uses++;
		reg[i->c].uses++;
		reg[i->mask].uses++;
	}
	c->n_addresses = c->ir->n_ins - (size_t)(address - c->address);
	c->address = address;
	c->s->n_moments = c->ir->n_ins - (size_t)(moment - c->s->moment);
	c->s->moment = moment;
}

/* Which addresses are of LDS. Variables may get theirs from variables that are written later, so until nothing
 * changes. */
static bool rscan_lds(struct rscanner *c, struct error *err)
{
	struct rscan_reg *reg = c->s->reg;

	for (bool changed = true; changed;) {
		changed = false;
		for (size_t k = 0; k < c->n_addresses; k++) {
			const struct ir_ins *i = &c->ir->ins[c->address[k]];
			unsigned row = rscan_row(i);
			if (row & RSCAN_IS_GLOBAL || reg[i->dst].lds || !(row & RSCAN_IS_LDS || reg[i->a].lds))
				continue;
			changed |= c->ir->is_var[i->dst]; /* who reads another comes behind it */
			reg[i->dst].lds = true;
		}
	}
	for (size_t k = 0; k < c->n_addresses; k++) {
		const struct ir_ins *i = &c->ir->ins[c->address[k]];
		unsigned row = rscan_row(i);
		if (row & (RSCAN_IS_GLOBAL | RSCAN_MOVES_ADDRESS) && (row & RSCAN_IS_GLOBAL || !reg[i->a].lds) &&
		    reg[i->dst].lds)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "the address %%%u is of global memory and of LDS at different times", i->dst);
	}
	return true;
}

bool rscan_takes_sign(const struct ir_ins *i, unsigned slot)
{
	switch (i->op) {
	case IR_add:
	case IR_sub:
	case IR_mul:
	case IR_fma:
	case IR_lt:
	case IR_le:
	case IR_eq:
	case IR_ne:
	case IR_round:
	case IR_floor:
	case IR_ceil:
	case IR_trunc:
	case IR_to_int_cut:
	case IR_to_unsigned_cut:
	case IR_min:
	case IR_max:
	case IR_to_int:
	case IR_neg:
	case IR_abs: return i->type == IR_TYPE_f32;
	case IR_sel: return i->type == IR_TYPE_f32 && slot > 0;
	default: return false;
	}
}

const uint16_t rscan_uniform_op[IR_ROWS] = {
	[IR_iadd] = RDNA_S_ADD_CO_U32, [IR_isub] = RDNA_S_SUB_CO_U32, [IR_imul] = RDNA_S_MUL_I32,
	[IR_iand] = RDNA_S_AND_B32,    [IR_ior] = RDNA_S_OR_B32,      [IR_ixor] = RDNA_S_XOR_B32,
	[IR_ishl] = RDNA_S_LSHL_B32,   [IR_ishr] = RDNA_S_LSHR_B32,   [IR_isar] = RDNA_S_ASHR_I32,
	[IR_imin] = RDNA_S_MIN_I32,    [IR_imax] = RDNA_S_MAX_I32,
};

static const struct ir_ins *definition(const struct rscanner *c, uint16_t r) { return &c->ir->ins[c->s->reg[r].def]; }

/* The integer constant that r is. */
static bool constant_of(const struct rscanner *c, uint16_t r, uint32_t *value)
{
	if (c->s->reg[r].fold != RSCAN_CONST || ir_row(definition(c, r)) != IR_iconst)
		return false;
	*value = (uint32_t)definition(c, r)->imm;
	return true;
}

/* Whether rscan_fused_op has anything for it. */
static inline bool takes_over(const struct ir_ins *i)
{
	switch (ir_row(i)) {
	case IR_iadd:
	case IR_ior:
	case IR_ixor:
	case IR_isar:
	case IR_ishr:
	case IR_iand:
	case IR_i2f: return true;
	default: return false;
	}
}

unsigned rscan_fused_op(const struct ir *ir, const struct ir_ins *i, const struct ir_ins *inner, unsigned slot)
{
	const unsigned with = ir_row(inner);
	const bool shifts_up = with == IR_ishl && i->imm >= inner->imm && i->imm > 0;

	switch (ir_row(i)) {
	case IR_iadd: return with == IR_ishl ? RDNA_V_LSHL_ADD_U32 : with == IR_iadd ? RDNA_V_ADD3_U32 : 0;
	case IR_ior:
		return with == IR_iand   ? RDNA_V_AND_OR_B32
		       : with == IR_ishl ? RDNA_V_LSHL_OR_B32
		       : with == IR_ior  ? RDNA_V_OR3_B32
		                         : 0;
	case IR_ixor: return with == IR_ixor ? RDNA_V_XOR3_B32 : 0;
	case IR_isar: return shifts_up ? RDNA_V_BFE_I32 : 0;
	case IR_ishr: return shifts_up ? RDNA_V_BFE_U32 : 0;
	case IR_iand: return with == IR_ishr && slot == 0 ? RDNA_V_BFE_U32 : 0;
	case IR_i2f: /* a byte of its operand; which, the shift behind it says */
		return with == IR_iand                       ? RDNA_V_CVT_F32_UBYTE0
		       : with == IR_ishr && inner->imm == 24 ? RDNA_V_CVT_F32_UBYTE3
		                                             : 0;
	default: return 0;
	}
}

/* Fusions that hold for some constants only. */
static bool fused_constants_fit(const struct rscanner *c, const struct ir_ins *i, const struct ir_ins *inner)
{
	uint32_t mask = 0;

	if (ir_row(i) == IR_iand) /* a mask of low bits, that the shift leaves something under */
		return constant_of(c, i->b, &mask) && mask && mask != UINT32_MAX && !(mask & (mask + 1)) &&
		       inner->imm + __builtin_popcount(mask) <= 32;
	if (ir_row(i) == IR_i2f && ir_row(inner) == IR_iand)
		return constant_of(c, inner->b, &mask) && mask == 255;
	return true;
}

/* A value that is the same wherever it is in scope. */
static bool is_stable(const struct rscanner *c, uint16_t r)
{
	return !r ||
	       (!c->ir->is_var[r] && (c->s->reg[r].fold == RSCAN_NO || !c->s->reg[r].root) &&
	        c->s->reg[r].fold != RSCAN_FUSED && c->s->reg[r].fold != RSCAN_SIGN && c->s->reg[r].fold != RSCAN_HALF);
}

/* A number made of a byte that a fused shift has moved down. */
static bool is_byte(const struct rscanner *c, const struct ir_ins *i, const struct ir_ins *inner)
{
	const struct ir_ins *shift = definition(c, inner->a);

	return ir_row(i) == IR_i2f && ir_row(inner) == IR_iand && c->s->reg[inner->a].fold == RSCAN_FUSED &&
	       (shift->imm == 8 || shift->imm == 16);
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

/* Lets i, which may take over others', do the work of one of its operands. Operand b first: sums are mostly written
 * with the new part last. */
static inline void rscan_fuse(struct rscanner *c, const struct ir_ins *i)
{
	const uint16_t operand[2] = { i->a, i->b };

	for (unsigned slot = 2; slot-- > 0;) {
		uint16_t r = operand[slot];
		if (!r || !may_fuse(c, i, r) || !rscan_fused_op(c->ir, i, definition(c, r), slot) ||
		    !fused_constants_fit(c, i, definition(c, r)))
			continue;
		c->s->reg[r].fold = RSCAN_FUSED;
		rscan_touch(c, r);
		return;
	}
}

/* How results are folded, unless fold_kind() knows better. */
static const uint8_t usual_fold[IR_ROWS] = {
	[IR_fconst] = RSCAN_CONST, [IR_iconst] = RSCAN_CONST,  [IR_tconst] = RSCAN_CONST,   [IR_ilane] = RSCAN_CONST,
	[IR_sconst] = RSCAN_CONST, [IR_arg] = RSCAN_CONST,     [IR_begin] = RSCAN_CONST,    [IR_end] = RSCAN_CONST,
	[IR_wave] = RSCAN_CONST,   [IR_local] = RSCAN_ADDRESS, [IR_shared] = RSCAN_ADDRESS, [IR_aaddi] = RSCAN_ADDRESS,
	[IR_fbits] = RSCAN_NAME,   [IR_ibits] = RSCAN_NAME,    [IR_fmov] = RSCAN_NAME,      [IR_imov] = RSCAN_NAME,
	[IR_isplat] = RSCAN_NAME,  [IR_fneg] = RSCAN_SIGN,     [IR_fabs] = RSCAN_SIGN,      [IR_fhalf] = RSCAN_HALF,
	[IR_fload_h] = RSCAN_HALF,
};

/* i's result is no variable. */
static inline unsigned fold_kind(const struct rscanner *c, const struct ir_ins *i, const struct rscan_reg *r)
{
	unsigned fold = usual_fold[ir_row(i)];

	if (fold == RSCAN_HALF) /* from gfx11 on dual instructions make up for a widening that many share */
		return c->gen == RDNA_GFX10_3 || r->uses <= 2 ? fold : RSCAN_NO;
	if (i->op == IR_addi)
		return i->imm > -(1 << 30) && i->imm < 1 << 30 ? fold : RSCAN_NO;
	return fold;
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
		ok = ok && slot == 0 && (i->op == IR_addi || !ir_does(i->op, IR_PURE));
	else if (r->fold == RSCAN_SIGN)
		ok = ok && rscan_takes_sign(i, slot);
	else if (r->fold == RSCAN_HALF)
		ok = ok && (ir_row(i) == IR_ffma || ir_row(i) == IR_fmul);
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

/* i's result is no variable. */
static inline bool is_uniform(const struct rscanner *c, const struct ir_ins *i)
{
	const bool *u = c->uniform;

	switch (ir_row(i)) {
	case IR_fconst:
	case IR_iconst:
	case IR_isplat: return true;
	case IR_fbcast:
	case IR_ibcast: return !c->s->reg[i->a].lds;
	case IR_fbits:
	case IR_ibits:
	case IR_fmov:
	case IR_imov: return u[i->a];
	default: return rscan_uniform_op[ir_row(i)] && u[i->a] && (!i->b || u[i->b]);
	}
}

static inline void rscan_define(struct rscanner *c, const struct ir_ins *i, uint32_t at)
{
	struct rscan_reg *const reg = c->s->reg, *r = &reg[i->dst];
	bool is_var = c->ir->is_var[i->dst];

	r->version++;
	r->def = r->last = at;
	r->block = c->block;
	r->fold = (uint8_t)(is_var ? RSCAN_NO : fold_kind(c, i, r));
	r->root = 0;
	c->uniform[i->dst] = !is_var && is_uniform(c, i);
	if (i->a && i->op != IR_load) { /* what was loaded stays as it is */
		const struct rscan_reg *a = &reg[i->a];
		r->root = c->ir->is_var[i->a] ? i->a : a->fold != RSCAN_NO ? a->root : 0;
		r->root_version = reg[r->root].version;
	}
}

static void rscan_forward(struct rscanner *c)
{
	const struct ir *ir = c->ir;
	const struct ir_ins *i = ir->ins;
	const bool *skip = c->s->skip;
	uint32_t local = 0, shared = 0;

	for (uint32_t at = 0; at < ir->n_ins; at++, i++) {
		unsigned row = rscan_row(i);
		if (row & RSCAN_IS_LDS) {
			uint32_t *next = i->op == IR_local ? &local : &shared;
			c->s->reg[i->dst].offset = *next;
			*next += ir_local_size(i->imm);
		}
		if (skip[at])
			continue;
		c->at = at;
		if (i->a)
			rscan_use(c, i, i->a, 0);
		if (i->b)
			rscan_use(c, i, i->b, 1);
		if (i->c)
			rscan_use(c, i, i->c, 2);
		if (i->mask)
			rscan_use(c, i, i->mask, 3);
		if (row & RSCAN_ENDS_RUN)
			c->block++;
		if (i->dst) {
			rscan_define(c, i, at);
			if (takes_over(i) && !c->uniform[i->dst])
				rscan_fuse(c, i);
		}
	}
}

uint16_t rscan_root(const struct rscan *s, const struct ir *ir, uint16_t r, int64_t *disp)
{
	while (s->reg[r].fold == RSCAN_ADDRESS && ir->ins[s->reg[r].def].op == IR_addi) {
		const struct ir_ins *i = &ir->ins[s->reg[r].def];
		*disp += i->imm;
		r = i->a;
	}
	return r;
}

/* All that goes by register or instruction in one allocation. Zeroed: what goes by register. */
static bool rscan_room(struct rscanner *c)
{
	struct rscan *s = c->s;
	size_t regs = c->ir->n_regs + 1, ins = c->ir->n_ins + 1, by_reg = regs * (sizeof *s->reg + sizeof *c->uniform);
	uint8_t *at = malloc(by_reg + ins * (4 * sizeof(uint32_t) + sizeof *s->skip) + sizeof(uint32_t));

	if (!at)
		return false;
	memset(at, 0, by_reg);
	s->reg = (struct rscan_reg *)at;
	c->uniform = (bool *)(s->reg + regs);
	s->group = (uint32_t *)(at + (by_reg + sizeof(uint32_t) - 1) / sizeof(uint32_t) * sizeof(uint32_t));
	s->word = s->group + ins;
	s->moment = s->word + ins;
	c->address = s->moment + ins;
	s->skip = (bool *)(c->address + ins);
	return true;
}

bool rscan_ir(struct rscan *s, const struct ir *ir, enum rdna_gen gen, unsigned scalar_words, struct error *err)
{
	struct rscanner c = { .s = s, .ir = ir, .gen = gen };

	*s = (struct rscan){ 0 };
	if (!rscan_room(&c))
		return error_set(err, ERROR_MEMORY, "no memory to select instructions for a kernel of %zu operations",
		                 ir->n_ins);
	rscan_live(&c);
	bool ok = rscan_lds(&c, err);
	if (ok)
		rscan_forward(&c);
	if (ok && !rscan_group_loads(s, ir, gen, scalar_words))
		ok = error_set(err, ERROR_MEMORY, "no memory to group the loads of a kernel of %zu operations",
		               ir->n_ins);
	if (!ok)
		rscan_free(s);
	return ok;
}

void rscan_free(struct rscan *s)
{
	free(s->reg);
	free(s->groups);
	*s = (struct rscan){ 0 };
}
