/* jit/x86/scan.c - one look at the IR before selection: what is dead, and which values need no instruction of their
 * own.
 *
 * Folds a load into its one use, address additions into displacements, and bit casts into names. Folds the move that
 * ends a variable's update into the instruction that computed the value. Never changes the IR. Rule for editors: a
 * folded value is computed where it is used, so everything it depends on must be the same there as at its definition;
 * every new kind of fold must go through scan_still_valid() at each use.
 */
#include "jit/x86/select.h"

#include <stdlib.h>

struct scanner {
	struct scan *s;
	const struct ir *ir;
	const struct sel_rule *rules;
	bool broadcasts;
	uint32_t at, block, stores;
};

/* Backward: an instruction lives when it has an effect, writes a variable or has a live use. */
static void scan_live(struct scanner *c)
{
	const struct ir *ir = c->ir;
	for (size_t k = ir->n_ins; k-- > 0;) {
		const struct ir_ins *i = &ir->ins[k];
		if (!ir_stays(i->op) && !ir->is_var[i->dst] && !c->s->reg[i->dst].uses) {
			c->s->skip[k] = true;
			continue;
		}
		c->s->reg[i->a].uses++;
		c->s->reg[i->b].uses++;
		c->s->reg[i->c].uses++;
		c->s->reg[i->mask].uses++;
	}
}

/* Elements that are lanes as they are. */
static bool is_word(uint8_t type) { return type == IR_TYPE_f32 || type == IR_TYPE_i32; }

static enum scan_fold fold_kind(const struct scanner *c, const struct ir_ins *i)
{
	if (!i->dst || c->ir->is_var[i->dst])
		return SCAN_NO;
	switch (i->op) {
	case IR_const:
	case IR_lane:
	case IR_arg:
	case IR_begin:
	case IR_end: return SCAN_CONST;
	case IR_local:
	case IR_shared: return SCAN_ADDRESS;
	case IR_addi: return i->type == IR_TYPE_a && i->imm > -(1 << 30) && i->imm < 1 << 30 ? SCAN_ADDRESS : SCAN_NO;
	case IR_load:
		return is_word(i->type) && !i->mask && ir_x_lanes(i->imm, c->ir->lanes) == c->ir->lanes
		               ? SCAN_LOAD
		               : SCAN_NO;
	case IR_bcast: return is_word(i->type) && c->broadcasts ? SCAN_LOAD : SCAN_NO;
	case IR_bits: return SCAN_ALIAS;
	case IR_mov: return is_word(i->type) ? SCAN_ALIAS : SCAN_NO;
	default: return SCAN_NO;
	}
}

static bool scan_still_valid(const struct scanner *c, const struct scan_reg *r)
{
	return !r->root || (r->block == c->block && c->s->reg[r->root].version == r->root_version);
}

static bool is_local(const struct scanner *c, uint16_t reg)
{
	const struct ir_ins *i = &c->ir->ins[c->s->reg[reg].def];
	while (i->op == IR_addi && c->s->reg[i->a].fold == SCAN_ADDRESS)
		i = &c->ir->ins[c->s->reg[i->a].def];
	return ir_does(i->op, IR_FRAMES);
}

static bool is_broadcast(const struct scanner *c, const struct scan_reg *r)
{
	return c->ir->ins[r->def].op == IR_bcast;
}

/* Checks one use of a folded value; takes the fold back when the use cannot have it. Sets *taken for a load folded
 * here. */
static void scan_use(struct scanner *c, const struct ir_ins *i, uint16_t reg, unsigned slot, bool *taken)
{
	struct scan_reg *r = &c->s->reg[reg];
	bool ok = true;
	r->touched = c->at;
	if (r->root)
		c->s->reg[r->root].touched = c->at;
	switch (r->fold) {
	case SCAN_ADDRESS: {
		bool memory = ir_does(i->op, IR_READS | IR_WRITES | IR_HINTS),
		     address = (slot == LIR_A && (memory || i->op == IR_addi)) || i->op == IR_idots;
		if (is_local(c, reg))
			return;
		ok = address && scan_still_valid(c, r);
		break;
	}
	case SCAN_LOAD:
		ok = r->uses == 1 && (c->rules[ir_row(i)].fold & slot) && !*taken && r->block == c->block &&
		     r->stores == c->stores && scan_still_valid(c, r) &&
		     !(c->rules[ir_row(i)].whole && is_broadcast(c, r));
		*taken |= ok;
		break;
	case SCAN_ALIAS: ok = scan_still_valid(c, r); break;
	default: break;
	}
	if (!ok)
		r->fold = SCAN_NO;
}

/* t = op ...; nothing touches v; v = t, the only use of t: let op write v. */
static void scan_retarget(struct scanner *c, const struct ir_ins *i)
{
	struct scan *s = c->s;
	if ((i->op != IR_mov && i->op != IR_bits) || !c->ir->is_var[i->dst])
		return;
	const struct scan_reg *t = &s->reg[i->a];
	uint16_t source = i->a;
	while (t->fold == SCAN_ALIAS && t->uses == 1) {
		source = c->ir->ins[t->def].a;
		t = &s->reg[source];
	}
	if (c->ir->is_var[source] || t->uses != 1 || t->fold != SCAN_NO || t->block != c->block ||
	    c->ir->ins[t->def].op == IR_loop || s->reg[i->dst].touched > t->def)
		return;
	s->into[t->def] = i->dst;
	s->skip[c->at] = true;
}

static void scan_define(struct scanner *c, const struct ir_ins *i)
{
	struct scan *s = c->s;
	struct scan_reg *r = &s->reg[i->dst];
	r->version++;
	r->def = r->touched = c->at;
	r->block = c->block;
	r->stores = c->stores;
	r->fold = (uint8_t)fold_kind(c, i);
	r->root = 0;
	if (ir_does(i->op, IR_FRAMES)) {
		r->offset = s->local_bytes;
		s->local_bytes = r->offset + ir_local_size(i->imm);
	} else if (i->a) {
		const struct scan_reg *a = &s->reg[i->a];
		r->root = c->ir->is_var[i->a] ? i->a : a->fold == SCAN_ADDRESS || a->fold == SCAN_ALIAS ? a->root : 0;
		r->root_version = s->reg[r->root].version;
	}
}

static void scan_forward(struct scanner *c)
{
	const struct ir *ir = c->ir;
	for (c->at = 0; c->at < ir->n_ins; c->at++) {
		const struct ir_ins *i = &ir->ins[c->at];
		if (c->s->skip[c->at])
			continue;
		bool taken = false;
		if (i->b)
			scan_use(c, i, i->b, LIR_B, &taken);
		if (i->c)
			scan_use(c, i, i->c, LIR_C, &taken);
		if (i->a)
			scan_use(c, i, i->a, LIR_A, &taken);
		if (i->mask)
			scan_use(c, i, i->mask, 0, &taken);
		scan_retarget(c, i);
		c->stores += ir_does(i->op, IR_WRITES);
		c->block += ir_does(i->op, IR_BRANCHES);
		if (i->dst)
			scan_define(c, i);
	}
}

bool scan_ir(struct scan *s, const struct ir *ir, const struct sel_rule *rules, bool broadcasts, struct error *err)
{
	*s = (struct scan){ 0 };
	s->reg = calloc(ir->n_regs + 1, sizeof *s->reg);
	s->into = calloc(ir->n_ins + 1, sizeof *s->into);
	s->skip = calloc(ir->n_ins + 1, sizeof *s->skip);
	if (!s->reg || !s->into || !s->skip) {
		scan_free(s);
		return error_set(err, ERROR_MEMORY, "no memory to select instructions for a kernel of %zu operations",
		                 ir->n_ins);
	}
	struct scanner c = { .s = s, .ir = ir, .rules = rules, .broadcasts = broadcasts };
	scan_live(&c);
	scan_forward(&c);
	return true;
}

void scan_free(struct scan *s)
{
	free(s->reg);
	free(s->into);
	free(s->skip);
	*s = (struct scan){ 0 };
}
