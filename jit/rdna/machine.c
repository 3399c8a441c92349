/* jit/rdna/machine.c - allocated instructions as the encoder sees them, insertion: see machine.h.
 *
 * Rule for editors: a short form must mean the same for every input; one that does so only when the allocator was lucky
 * checks that here.
 */
#include "jit/rdna/machine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memfile.h"

/* --- operands */

/* into: zeroed, which is no operand. */
static void operand(const struct rdna_lir_operand *o, struct rdna_operand *into)
{
	if (o->kind == RDNA_LIR_NONE)
		return;
	into->mods = o->mods;
	if (o->kind == RDNA_LIR_CONST) {
		into->kind = RDNA_CONST;
		into->value = o->value;
		return;
	}
	into->kind = RDNA_REG;
	into->n = o->n;
	into->reg = (uint16_t)o->reg;
}

void rdna_machine_ins(const struct rdna_lir_ins *i, struct rdna_ins *out)
{
	static const struct rdna_ins empty;
	*out = empty;
	out->op = (enum rdna_op)i->op;
	out->offset = i->offset;
	out->offset1 = i->offset1;
	out->cache = i->cache;
	out->scope = i->scope;
	out->th = i->th;
	out->clamp = i->clamp;
	out->omod = i->omod;
	out->e64 = i->e64;
	if (i->dpp.kind)
		out->dpp = i->dpp;
	operand(&i->saddr, &out->saddr);
	for (unsigned k = 0; k < 2; k++)
		operand(&i->d[k], &out->d[k]);
	for (unsigned k = 0; k < 3; k++)
		operand(&i->s[k], &out->s[k]);
	if (!rdna_lir_is_masked(i)) /* which is rdna_emit's affair */
		operand(&i->s[3], &out->s[3]);
}

/* What stands there, one bit; its number goes into *at. */
static inline uint64_t glance(struct rdna_plain *p, unsigned to_machine, const struct rdna_lir_operand *o)
{
	if (o->kind == RDNA_LIR_FIXED)
		return rdna_plain_register(p, to_machine, o->reg, o->n);
	return o->kind == RDNA_LIR_NONE ? rdna_plain_nothing(p, to_machine)
	                                : rdna_plain_constant(p, to_machine, o->value);
}

bool rdna_machine_plain(const struct rdna_lir_ins *i, struct rdna_plain *p)
{
	const struct rdna_lir_operand *last = i->saddr.kind ? &i->saddr : &i->s[2];
	if (i->forms | i->dpp.kind | (uint32_t)i->offset1 | i->d[1].kind | i->s[3].kind ||
	    (i->saddr.kind && i->s[2].kind))
		return false;
	p->offset = i->offset;
	p->mods = 0;
	if (i->d[0].mods | i->s[0].mods | i->s[1].mods | last->mods)
		p->mods = (uint16_t)((i->d[0].mods & 15u) | (i->s[0].mods & 15u) << 4 | (i->s[1].mods & 15u) << 8 |
		                     (last->mods & 15u) << 12);
	p->is = glance(p, 0, &i->d[0]) | glance(p, 1, &i->s[0]) | glance(p, 2, &i->s[1]) | glance(p, 3, last);
	return true;
}

void rdna_machine_half(enum rdna_gen gen, const struct rdna_lir_ins *i, struct rdna_half *h)
{
	struct rdna_plain p;
	struct rdna_ins x;
	if (rdna_machine_plain(i, &p) && rdna_plain_half(h, (enum rdna_op)i->op, gen, &p))
		return;
	rdna_machine_ins(i, &x);
	rdna_half_of(h, gen, &x);
}

/* --- short forms */

static bool is_vgpr(const struct rdna_lir_operand *o) { return o->kind == RDNA_LIR_FIXED && o->reg >= RDNA_V0; }

static bool same(const struct rdna_lir_operand *a, const struct rdna_lir_operand *b)
{
	return a->kind == RDNA_LIR_FIXED && b->kind == RDNA_LIR_FIXED && a->reg == b->reg && a->n == b->n;
}

static bool is_literal(const struct rdna_lir_operand *o)
{
	static const uint32_t inline_floats[] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
		                                  0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983 };
	if (o->kind != RDNA_LIR_CONST || ((int32_t)o->value >= -16 && (int32_t)o->value <= 64))
		return false;
	for (unsigned k = 0; k < sizeof inline_floats / sizeof *inline_floats; k++)
		if (o->value == inline_floats[k])
			return false;
	return true;
}

static bool modified(const struct rdna_lir_ins *x)
{
	return x->clamp | x->omod | x->e64 | x->dpp.kind | x->d[0].mods | x->s[0].mods | x->s[1].mods | x->s[2].mods;
}

static void swap_sources(struct rdna_lir_ins *x)
{
	struct rdna_lir_operand t = x->s[0];
	x->s[0] = x->s[1];
	x->s[1] = t;
}

static void drop_source(struct rdna_lir_ins *x, unsigned k)
{
	x->s[k] = (struct rdna_lir_operand){ .kind = RDNA_LIR_NONE };
}

/* The short encodings want source 1 in a vector register. */
static bool vector_second(struct rdna_lir_ins *x)
{
	if (!is_vgpr(&x->s[1]) && is_vgpr(&x->s[0]))
		swap_sources(x);
	return is_vgpr(&x->s[1]);
}

/* To `op`, which adds to its destination. */
static void accumulate(struct rdna_lir_ins *x, enum rdna_op op)
{
	if (!same(&x->d[0], &x->s[2]) || !vector_second(x))
		return;
	x->op = (uint16_t)op;
	drop_source(x, 2);
}

static void shorten_fma(struct rdna_lir_ins *x)
{
	if (same(&x->d[0], &x->s[2])) {
		accumulate(x, RDNA_V_FMAC_F32);
	} else if (is_literal(&x->s[2])) {
		if (vector_second(x) && !is_literal(&x->s[0]))
			x->op = RDNA_V_FMAAK_F32;
	} else if (is_vgpr(&x->s[2])) {
		if (is_literal(&x->s[0]))
			swap_sources(x);
		if (is_literal(&x->s[1]) && !is_literal(&x->s[0]))
			x->op = RDNA_V_FMAMK_F32;
	}
}

/* a op b where b is no vector register: b op a. NaNs' payloads are not kept apart (ops.def): adding and multiplying
 * commute. */
static void shorten_to(struct rdna_lir_ins *x, enum rdna_op reversed)
{
	if (is_vgpr(&x->s[1]) || !is_vgpr(&x->s[0]))
		return;
	x->op = (uint16_t)reversed;
	swap_sources(x);
}

static void shorten_scalar(struct rdna_lir_ins *x, enum rdna_op op, unsigned k)
{
	int32_t v = (int32_t)x->s[k].value;
	if (!is_literal(&x->s[k]) || v < INT16_MIN || v > INT16_MAX || (k && !same(&x->d[0], &x->s[0])))
		return;
	x->op = (uint16_t)op;
	x->s[0] = x->s[k];
	drop_source(x, 1);
}

static void shorten(struct rdna_lir_ins *x)
{
	switch (x->op) {
	case RDNA_V_FMA_F32: shorten_fma(x); break;
	case RDNA_V_DOT4_I32_I8: accumulate(x, RDNA_V_DOT4C_I32_I8); break;
	case RDNA_S_MOV_B32: shorten_scalar(x, RDNA_S_MOVK_I32, 0); break;
	case RDNA_S_ADD_CO_I32: shorten_scalar(x, RDNA_S_ADDK_CO_I32, 1); break;
	case RDNA_S_MUL_I32: shorten_scalar(x, RDNA_S_MULK_I32, 1); break;
	case RDNA_V_ADD_F32:
	case RDNA_V_MUL_F32:
	case RDNA_V_ADD_NC_U32:
	case RDNA_V_AND_B32:
	case RDNA_V_OR_B32:
	case RDNA_V_XOR_B32:
	case RDNA_V_MIN_I32:
	case RDNA_V_MAX_I32:
	case RDNA_V_MUL_I32_I24:
	case RDNA_V_MUL_U32_U24: shorten_to(x, (enum rdna_op)x->op); break;
	case RDNA_V_SUB_F32: shorten_to(x, RDNA_V_SUBREV_F32); break;
	case RDNA_V_SUBREV_F32: shorten_to(x, RDNA_V_SUB_F32); break;
	case RDNA_V_SUB_NC_U32: shorten_to(x, RDNA_V_SUBREV_NC_U32); break;
	case RDNA_V_SUBREV_NC_U32: shorten_to(x, RDNA_V_SUB_NC_U32); break;
	default: break;
	}
}

void rdna_shorten(struct rdna_lir *l)
{
	for (size_t at = 0; at < l->n_ins; at++)
		if (!modified(&l->ins[at]))
			shorten(&l->ins[at]);
}

char *rdna_machine_text(const struct rdna_lir *l, const struct rdna_lir_ins *i)
{
	struct rdna_lir one = *l;
	struct memfile f;
	struct rdna_lir_ins copy = *i;
	size_t size;
	one.ins = &copy;
	one.n_ins = 1;
	if (memfile_open(&f))
		rdna_lir_print(&one, f.out);
	char *text = memfile_take(&f, &size);
	if (!text)
		return NULL;
	while (size && (text[size - 1] == '\n' || text[size - 1] == ' '))
		text[--size] = 0;
	size_t blank = strspn(text, " \t");
	memmove(text, text + blank, size + 1 - blank);
	return text;
}

/* --- insertion */

/* Room for one more in front of `at`; NULL: memory ran out. */
static struct rdna_lir_ins *patch_room(struct rdna_patch *p, size_t at)
{
	assert(!p->n || p->at[p->n - 1] <= at);
	if (p->n == p->capacity && !p->failed) {
		size_t capacity = p->capacity ? 2 * p->capacity : 128;
		struct rdna_lir_ins *ins = realloc(p->ins, capacity * sizeof *ins);
		size_t *where = realloc(p->at, capacity * sizeof *where);
		p->ins = ins ? ins : p->ins;
		p->at = where ? where : p->at;
		p->failed = !ins || !where;
		p->capacity = capacity;
	}
	if (p->failed)
		return NULL;
	p->at[p->n] = at;
	return &p->ins[p->n++];
}

void rdna_patch_add(struct rdna_patch *p, size_t at, const struct rdna_lir_ins *i)
{
	struct rdna_lir_ins *to = patch_room(p, at);
	if (to)
		*to = *i;
}

void rdna_patch_op(struct rdna_patch *p, size_t at, unsigned op, uint32_t imm)
{
	struct rdna_lir_ins *to = patch_room(p, at);
	if (!to)
		return;
	memset(to, 0, sizeof *to);
	to->op = (uint16_t)op;
	to->s[0] = rdna_lir_imm(imm);
	to->ir = UINT32_MAX;
}

/* In place, from the end: what is still to move is never written over. */
static bool merge(struct rdna_lir *l, const struct rdna_patch *p)
{
	size_t n = l->n_ins, end = n, to = n + p->n;
	if (!array_grow((void **)&l->ins, &l->ins_capacity, to, sizeof *l->ins))
		return false;
	l->n_ins = to;
	for (size_t k = p->n; k-- > 0;) {
		size_t at = p->at[k];
		uint32_t ir = n ? l->ins[at < n ? at : at - 1].ir : UINT32_MAX;
		to -= end - at;
		memmove(l->ins + to, l->ins + at, (end - at) * sizeof *l->ins);
		end = at;
		l->ins[--to] = p->ins[k];
		if (p->ins[k].ir == UINT32_MAX)
			l->ins[to].ir = ir;
	}
	return true;
}

bool rdna_patch_apply(struct rdna_lir *l, struct rdna_patch *p, struct error *err)
{
	bool ok = !p->failed && (!p->n || merge(l, p));
	free(p->ins);
	free(p->at);
	*p = (struct rdna_patch){ 0 };
	return ok || error_set(err, ERROR_MEMORY, "no memory for a kernel of %zu instructions", l->n_ins);
}

/* --- tidying */

static inline void to_machine(const struct rdna_lir *l, struct rdna_lir_operand *o)
{
	if (o->kind != RDNA_LIR_VIRTUAL)
		return;
	o->reg = (uint32_t)l->reg[o->reg].phys + o->sub;
	o->kind = RDNA_LIR_FIXED;
	o->sub = 0;
}

static bool onto_itself(const struct rdna_lir_ins *i)
{
	bool move = i->op == RDNA_V_MOV_B32 || i->op == RDNA_S_MOV_B32 || i->op == RDNA_S_MOV_B64;
	return move && same(&i->d[0], &i->s[0]) && !i->dpp.kind && !i->omod && !i->clamp && !i->d[0].mods &&
	       !i->s[0].mods;
}

void rdna_tidy(struct rdna_lir *l)
{
	size_t to = 0;
	for (size_t at = 0; at < l->n_ins; at++) {
		struct rdna_lir_ins *i = &l->ins[to];
		if (to != at)
			*i = l->ins[at];
		for (unsigned k = 0; k < 2; k++)
			to_machine(l, &i->d[k]);
		for (unsigned k = 0; k < 4; k++)
			to_machine(l, &i->s[k]);
		to_machine(l, &i->saddr);
		to += !onto_itself(i);
	}
	l->n_ins = to;
}
