/* jit/x86/regalloc.c - linear scan with whole-value spilling over structured loops and ifs.
 *
 * Owns: the intervals, the choice of registers, the choice of spills; spill.c writes their code. Knows of an
 * instruction only what the table of forms says. Rule for editors: the result must depend on nothing but the input (no
 * addresses, no hash order); and a register made by a spill (RA_TINY) lives for one instruction and is never spilled
 * again, which is why the rounds end.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "jit/x86/regalloc_state.h"

/* --- intervals */

static bool ra_find_loops(struct ra *ra)
{
	struct lir *l = ra->l;
	uint32_t open[IR_LOWERED_DEPTH];
	unsigned depth = 0;
	if (!array_grow((void **)&ra->loop_end, &ra->loop_end_capacity, l->n_ins, sizeof *ra->loop_end))
		return ra_no_memory(ra);
	for (uint32_t k = 0; k < l->n_ins; k++)
		if (l->ins[k].form == LIR_LOOP)
			open[depth++] = k;
		else if (l->ins[k].form == LIR_ENDLOOP)
			ra->loop_end[open[--depth]] = k;
	return true;
}

static float ra_frequency(const struct ra *ra)
{
	static const float by_depth[] = { 1, 8, 64, 512, 4096, 32768, 262144 };
	return by_depth[ra->loops < 6 ? ra->loops : 6];
}

/* A read at k: if the latest sure definition lies before an open loop, the value goes round that loop. */
static void ra_read(struct ra *ra, uint32_t v, uint32_t k)
{
	struct ra_reg *r = &ra->reg[v];
	r->weight += ra_frequency(ra);
	if (r->end < k)
		r->end = k;
	for (unsigned d = 0; d < ra->depth; d++)
		if (ra->block[d].loop && ra->block[d].start > r->dominating) {
			if (r->end < ra->block[d].end)
				r->end = ra->block[d].end;
			break;
		}
}

static bool ra_write(struct ra *ra, uint32_t v, uint32_t k)
{
	struct ra_reg *r = &ra->reg[v];
	r->weight += ra_frequency(ra);
	if (r->start == RA_NONE)
		r->start = k;
	else
		r->flags |= RA_MANY_DEFS;
	if (ra->depth && (r->dominating == RA_NONE || r->dominating < ra->block[ra->depth - 1].start)) {
		if (!array_grow((void **)&ra->undo, &ra->undo_capacity, ra->n_undo + 1, sizeof *ra->undo))
			return ra_no_memory(ra);
		ra->undo[ra->n_undo].reg = v;
		ra->undo[ra->n_undo++].dominating = r->dominating;
	}
	r->dominating = k;
	if (r->end == RA_NONE || r->end < k)
		r->end = k;
	return true;
}

static void ra_enter(struct ra *ra, uint32_t k, bool loop)
{
	assert(ra->depth < IR_LOWERED_DEPTH);
	struct ra_block *b = &ra->block[ra->depth++];
	*b = (struct ra_block){ .start = k, .undo = (uint32_t)ra->n_undo, .loop = loop };
	if (loop)
		b->end = ra->loop_end[k];
	ra->loops += loop;
}

/* Definitions in the innermost block are not sure behind it: it may not have run. */
static void ra_undo(struct ra *ra)
{
	for (uint32_t first = ra->block[ra->depth - 1].undo; ra->n_undo > first; ra->n_undo--)
		ra->reg[ra->undo[ra->n_undo - 1].reg].dominating = ra->undo[ra->n_undo - 1].dominating;
}

/* A break's way goes forward, to where all that it needs lives on. */
static void ra_structure(struct ra *ra, uint32_t k)
{
	switch (ra->l->ins[k].form) {
	case LIR_LOOP: ra_enter(ra, k, true); break;
	case LIR_IF: ra_enter(ra, k, false); break;
	case LIR_ELSE:
		ra_undo(ra);
		ra->block[ra->depth - 1].start = k;
		break;
	case LIR_ENDLOOP:
	case LIR_ENDIF:
		ra_undo(ra);
		ra->loops -= ra->block[--ra->depth].loop;
		break;
	default: break;
	}
}

static bool ra_intervals(struct ra *ra)
{
	struct lir *l = ra->l;
	for (size_t v = 0; v < l->n_regs; v++) {
		struct ra_reg *r = &ra->reg[v];
		*r = (struct ra_reg){
			.start = RA_NONE, .end = 0, .dominating = RA_NONE, .flags = r->flags & RA_TINY, .slot = r->slot
		};
	}
	ra->n_undo = 0;
	ra->depth = ra->loops = 0;
	for (uint32_t k = 0; k < l->n_ins; k++) {
		uint32_t reads[MAX_OPERANDS];
		unsigned n = ra_reads(&l->ins[k], reads);
		for (unsigned j = 0; j < n; j++)
			ra_read(ra, reads[j], k);
		if (l->ins[k].dst && !ra_write(ra, l->ins[k].dst, k))
			return false;
		ra_structure(ra, k);
	}
	if (!array_grow((void **)&ra->ends, &ra->ends_capacity, l->n_ins + 1, sizeof *ra->ends))
		return ra_no_memory(ra);
	memset(ra->ends, 0, (l->n_ins + 1) * sizeof *ra->ends);
	for (uint32_t v = LIR_FIRST; v < l->n_regs; v++)
		if (ra->reg[v].start != RA_NONE) {
			ra->reg[v].next = ra->ends[ra->reg[v].end];
			ra->ends[ra->reg[v].end] = v;
		}
	return true;
}

/* --- the scan */

static uint32_t ra_random(struct ra *ra)
{
	ra->random ^= ra->random << 13;
	ra->random ^= ra->random >> 17;
	ra->random ^= ra->random << 5;
	return ra->random;
}

static void ra_take(struct ra *ra, uint32_t v, enum lir_class cls, unsigned position)
{
	ra->holder[cls][position] = v;
	ra->free[cls] &= ~(UINT32_C(1) << position);
	ra->l->phys[v] = ra->rules->order[cls][position];
	ra->result->used[cls] |= UINT32_C(1) << ra->l->phys[v];
}

static void ra_release(struct ra *ra, uint32_t v)
{
	enum lir_class cls = (enum lir_class)ra->l->cls[v];
	unsigned position = ra->position[cls][ra->l->phys[v]];
	if (ra->reg[v].flags & RA_SPILLED || ra->holder[cls][position] != v)
		return;
	ra->holder[cls][position] = 0;
	ra->free[cls] |= UINT32_C(1) << position;
}

bool ra_made_again(const struct ra *ra, uint32_t v)
{
	const struct ra_reg *r = &ra->reg[v];
	uint8_t form = ra->l->ins[r->start].form;
	return !(r->flags & RA_MANY_DEFS) && (form == LIR_CONST || form == LIR_IDIOM || form == LIR_SCONST ||
	                                      form == LIR_LEA || form == LIR_MCONST || form == LIR_MIDIOM);
}

/* What spilling v would cost per instruction of room it gives. */
static float ra_price(const struct ra *ra, uint32_t v)
{
	const struct ra_reg *r = &ra->reg[v];
	return r->weight * (ra_made_again(ra, v) ? 0.5f : 1.0f) / (float)(r->end - r->start + 1);
}

/* No register is free for v: the cheapest of v and the present holders goes to memory. */
static void ra_evict(struct ra *ra, uint32_t v, enum lir_class cls)
{
	uint32_t cheapest = ra->reg[v].flags & RA_TINY ? 0 : v;
	for (unsigned p = 0; p < ra->rules->count[cls]; p++) {
		uint32_t u = ra->holder[cls][p];
		if (!u || ra->reg[u].flags & RA_TINY)
			continue;
		if (!cheapest || (ra->rules->seed ? ra_random(ra) % 3 == 0 : ra_price(ra, u) < ra_price(ra, cheapest)))
			cheapest = u;
	}
	assert(cheapest && "one instruction names more registers than there are");
	ra->reg[cheapest].flags |= RA_SPILLED;
	ra->spilled = true;
	if (cheapest != v)
		ra_take(ra, v, cls, ra->position[cls][ra->l->phys[cheapest]]);
	else
		ra->l->phys[v] = ra->rules->order[cls][0];
}

static uint32_t operand_named(const struct lir_ins *i, char name)
{
	return name == 'a' ? i->a : name == 'b' ? i->b : i->c;
}

static void ra_allocate(struct ra *ra, const struct lir_ins *i)
{
	uint32_t v = i->dst;
	enum lir_class cls = (enum lir_class)ra->l->cls[v];
	uint32_t free = ra->free[cls];
	if (i->form == LIR_ENTRY) {
		unsigned position = ra->position[cls][i->imm];
		assert(free >> position & 1);
		ra_take(ra, v, cls, position);
		return;
	}
	for (const char *h = lir_facts[i->form].shares; *h && *h != '!'; h++) {
		uint32_t u = operand_named(i, *h);
		if (u < LIR_FIRST || ra->l->cls[u] != cls)
			continue;
		unsigned position = ra->position[cls][ra->l->phys[u]];
		if (!(ra->reg[u].flags & RA_SPILLED) && free >> position & 1) {
			ra_take(ra, v, cls, position);
			return;
		}
	}
	if (!free) {
		ra_evict(ra, v, cls);
		return;
	}
	unsigned skip = ra->rules->seed ? ra_random(ra) % (unsigned)__builtin_popcount(free) : 0;
	while (skip--)
		free &= free - 1;
	ra_take(ra, v, cls, (unsigned)__builtin_ctz(free));
}

/* Gives back the registers of values that end at k, but not `keep`. */
static void ra_expire(struct ra *ra, uint32_t k, uint32_t keep)
{
	for (uint32_t v = ra->ends[k]; v; v = ra->reg[v].next)
		if (v != keep)
			ra_release(ra, v);
}

/* The same before an instruction whose destination may take the register of no operand but those named before the
 * '!'. */
static void ra_expire_shared(struct ra *ra, uint32_t k, const struct lir_ins *i)
{
	for (const char *h = lir_facts[i->form].shares; *h != '!'; h++) {
		uint32_t v = operand_named(i, *h);
		if (v >= LIR_FIRST && v != i->dst && ra->reg[v].end == k)
			ra_release(ra, v);
	}
}

static void ra_scan(struct ra *ra)
{
	struct lir *l = ra->l;
	memset(ra->holder, 0, sizeof ra->holder);
	memset(ra->result->used, 0, sizeof ra->result->used);
	for (unsigned c = LIR_VEC; c < LIR_CLASSES; c++)
		ra->free[c] = ra->rules->count[c] == 32 ? UINT32_MAX : (UINT32_C(1) << ra->rules->count[c]) - 1;
	ra->spilled = false;
	for (uint32_t k = 0; k < l->n_ins; k++) {
		const struct lir_ins *i = &l->ins[k];
		bool apart = strchr(lir_facts[i->form].shares, '!');
		if (apart)
			ra_expire_shared(ra, k, i);
		else
			ra_expire(ra, k, i->dst);
		if (i->dst && ra->reg[i->dst].start == k)
			ra_allocate(ra, i);
		if (apart)
			ra_expire(ra, k, i->dst);
		if (i->dst && ra->reg[i->dst].end == k)
			ra_release(ra, i->dst);
	}
}

/* --- the pass */

static bool ra_room(struct ra *ra)
{
	struct lir *l = ra->l;
	size_t had = ra->n_reg;
	if (!array_grow((void **)&ra->reg, &ra->reg_capacity, l->n_regs, sizeof *ra->reg))
		return ra_no_memory(ra);
	if (!had)
		for (size_t v = 0; v < l->n_regs; v++)
			ra->reg[v] = (struct ra_reg){ .slot = RA_NONE };
	ra->n_reg = l->n_regs;
	uint8_t *phys = realloc(l->phys, l->n_regs);
	if (!phys)
		return ra_no_memory(ra);
	l->phys = phys;
	memset(phys, 0, l->n_regs);
	return true;
}

static void ra_free(struct ra *ra)
{
	free(ra->reg);
	free(ra->ends);
	free(ra->loop_end);
	free(ra->undo);
	free(ra->out);
}

bool regalloc(struct lir *l, const struct regalloc_rules *rules, struct regalloc_result *result, struct error *err)
{
	struct ra ra = { .l = l, .rules = rules, .result = result, .random = rules->seed };
	*result = (struct regalloc_result){ 0 };
	assert(rules->count[LIR_VEC] >= REGALLOC_MIN_VEC && rules->count[LIR_GPR] >= REGALLOC_MIN_GPR &&
	       (!rules->count[LIR_MASK] || rules->count[LIR_MASK] >= REGALLOC_MIN_MASK));
	for (unsigned c = LIR_VEC; c < LIR_CLASSES; c++)
		for (unsigned p = 0; p < rules->count[c]; p++)
			ra.position[c][rules->order[c][p]] = (uint8_t)p;
	bool ok = true;
	do {
		ok = ra_room(&ra) && ra_find_loops(&ra) && ra_intervals(&ra);
		if (ok)
			ra_scan(&ra);
		result->rounds++;
	} while (ok && ra.spilled && ra_rewrite(&ra));
	ra_free(&ra);
	return !l->failed || error_set(err, ERROR_MEMORY, "no memory to allocate the registers of a kernel");
}
