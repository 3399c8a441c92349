/* jit/rdna/select_entry.c - values made once, at the kernel's entry; sums of addresses that a block may use again. */
#include <stdlib.h>

#include "jit/rdna/select.h"

/* --- the entry: instructions in front of all others, each value made once */

static struct rdna_lir_ins *rsel_first(struct rsel *s, unsigned op, uint32_t reg)
{
	if (s->n_first == s->first_capacity) {
		size_t capacity = 2 * s->first_capacity + 16;
		struct rdna_lir_ins *grown = realloc(s->first, capacity * sizeof *grown);
		if (!grown) {
			s->l->failed = true;
			return rdna_lir_add(s->l, op);
		}
		s->first = grown;
		s->first_capacity = capacity;
	}
	struct rdna_lir_ins *n = &s->first[s->n_first++];
	*n = (struct rdna_lir_ins){ .op = (uint16_t)op, .ir = UINT32_MAX };
	n->d[0] = rdna_lir_r(s->l, reg);
	return n;
}

static void first2(struct rsel *s, unsigned op, uint32_t reg, rsel_op a, rsel_op b)
{
	struct rdna_lir_ins *n = rsel_first(s, op, reg);

	n->s[0] = a;
	n->s[1] = b;
}

static void make_lanes(struct rsel *s, uint32_t reg, uint32_t by)
{
	if (by == 0)
		first2(s, RDNA_V_MOV_B32, reg, rdna_lir_imm(0), rsel_none());
	else if (by == 1)
		first2(s, RDNA_V_MBCNT_LO_U32_B32, reg, rdna_lir_imm(UINT32_MAX), rdna_lir_imm(0));
	else if (!(by & (by - 1)))
		first2(s, RDNA_V_LSHLREV_B32, reg, rdna_lir_imm((uint32_t)__builtin_ctz(by)),
		       rsel_at_entry(s, RSEL_LANES, 1));
	else
		first2(s, RDNA_V_MUL_U32_U24, reg, rdna_lir_imm(by), rsel_at_entry(s, RSEL_LANES, 1));
}

/* The locals of a group's waves lie behind the bytes they share. */
static void make_locals(struct rsel *s, uint32_t reg)
{
	uint32_t shared = ir_local_size(s->ir->shared_bytes);

	first2(s, RDNA_S_MUL_I32, reg, rdna_lir_fixed(RDNA_ABI_WAVE, 1), rdna_lir_imm(s->ir->local_bytes));
	if (shared)
		first2(s, RDNA_S_ADD_CO_U32, reg, rdna_lir_r(s->l, reg), rdna_lir_imm(shared));
}

static void make_local_lanes(struct rsel *s, uint32_t reg, uint32_t by)
{
	rsel_op locals = rsel_at_entry(s, RSEL_LOCALS, 0);

	if (by)
		first2(s, RDNA_V_ADD_NC_U32, reg, locals, rsel_at_entry(s, RSEL_LANES, by));
	else
		first2(s, RDNA_V_MOV_B32, reg, locals, rsel_none());
}

static void make_tile_lanes(struct rsel *s, uint32_t reg, uint32_t by_column, uint32_t by_half)
{
	rsel_op lane = rsel_at_entry(s, RSEL_LANES, 1), o = rdna_lir_r(s->l, reg),
		half = rdna_lir_r(s->l, rdna_lir_new(s->l, RDNA_CLASS_VGPR, 1));

	first2(s, RDNA_V_AND_B32, reg, rdna_lir_imm(15), lane);
	first2(s, RDNA_V_MUL_U32_U24, reg, rdna_lir_imm(by_column), o);
	if (!by_half)
		return;
	first2(s, RDNA_V_LSHRREV_B32, half.reg, rdna_lir_imm(4), lane);
	first2(s, RDNA_V_MUL_U32_U24, half.reg, rdna_lir_imm(by_half), half);
	first2(s, RDNA_V_ADD_NC_U32, reg, half, o);
}

static rsel_op at_entry(struct rsel *s, enum rsel_entry_kind kind, uint32_t value, uint32_t half)
{
	for (size_t k = 0; k < s->n_entries; k++)
		if (s->entry[k].kind == kind && s->entry[k].value == value && s->entry[k].half == half)
			return rdna_lir_r(s->l, s->entry[k].reg);
	uint32_t reg =
		rdna_lir_new(s->l, kind == RSEL_LOCALS || kind == RSEL_CONSTANT ? RDNA_CLASS_SGPR : RDNA_CLASS_VGPR, 1);
	if (kind == RSEL_LANES)
		make_lanes(s, reg, value);
	else if (kind == RSEL_LOCALS)
		make_locals(s, reg);
	else if (kind == RSEL_LOCAL_LANES)
		make_local_lanes(s, reg, value);
	else if (kind == RSEL_TILE_LANES)
		make_tile_lanes(s, reg, value, half);
	else
		first2(s, RDNA_S_MOV_B32, reg, rdna_lir_imm(value), rsel_none());
	if (s->n_entries == s->entries_capacity) {
		size_t capacity = 2 * s->entries_capacity + 16;
		struct rsel_entry *grown = realloc(s->entry, capacity * sizeof *grown);
		if (!grown) {
			s->l->failed = true;
			return rdna_lir_r(s->l, reg);
		}
		s->entry = grown;
		s->entries_capacity = capacity;
	}
	s->entry[s->n_entries++] = (struct rsel_entry){ (uint8_t)kind, value, half, reg };
	return rdna_lir_r(s->l, reg);
}

rsel_op rsel_at_entry(struct rsel *s, enum rsel_entry_kind kind, uint32_t value) { return at_entry(s, kind, value, 0); }

rsel_op rsel_tile_lanes(struct rsel *s, uint32_t by_column, uint32_t by_half)
{
	return at_entry(s, RSEL_TILE_LANES, by_column, by_half);
}

void rsel_put_first(struct rsel *s)
{
	if (s->l->failed || !s->n_first || !rdna_lir_insert(s->l, 0, s->n_first))
		return;
	memcpy(s->l->ins, s->first, s->n_first * sizeof *s->first);
}

/* --- sums of addresses, remembered inside a block */

uint32_t rsel_remembered(const struct rsel *s, const struct rsel_pointer *p, uint32_t stride, int64_t offset)
{
	for (unsigned k = 0; k < s->n_memo && k < RSEL_MEMO; k++) {
		const struct rsel_memo *m = &s->memo[k];
		if (m->lds == p->lds && m->of == p->of && m->version == p->version && m->stride == stride &&
		    m->offset == offset)
			return m->reg;
	}
	return 0;
}

void rsel_remember(struct rsel *s, const struct rsel_pointer *p, uint32_t stride, int64_t offset, uint32_t reg)
{
	s->memo[s->n_memo++ % RSEL_MEMO] = (struct rsel_memo){ p->lds, p->of, p->version, stride, offset, reg };
}
