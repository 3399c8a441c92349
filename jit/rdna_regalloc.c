/* jit/rdna_regalloc.c - linear scan over structured loops, for tuples, without spilling.
 *
 * Owns: the choice of registers. A tuple takes all its words at its first write; each word is given back on its own after its last use. Low numbers
 * go first, for how many waves live at once hangs on the highest one. Rule for editors: the result depends on the input alone (no addresses).
 *
 * A kernel that does not fit is tried once more with tuples at the other end of the file, where single registers do not break up the room; then refused.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/rdna_live.h"

enum { NOWHERE = UINT32_MAX };

/* Of a register, side by side, what taking and giving back words asks for. */
struct ra_reg {
	uint32_t base;                         /* its place less its first word: what makes a word's number a place */
	uint16_t named;                        /* a bit for each word that something names */
	uint8_t cls;
};
struct ra_word { uint32_t next /* word that ends there, too */, reg; };

struct ra {
	struct rdna_lir *l;
	const struct rdna_live *live;
	uint32_t *ends;                        /* by instruction: the first word that ends there */
	struct ra_word *word;
	struct ra_reg *reg;
	uint64_t busy[RDNA_CLASSES][256 / 64 + 1];     /* a bit for each number in the class, those below first_number being busy; behind them none */
	unsigned limit[RDNA_CLASSES];          /* numbers below */
	unsigned used[RDNA_CLASSES];           /* highest + 1 */
	bool tuples_high;
	uint32_t random;
	uint32_t at;
	uint32_t failed;                       /* the register that found no place; 0: all did */
};

static const unsigned first_number[RDNA_CLASSES] = { [RDNA_CLASS_SGPR] = RDNA_ABI_FREE_SGPR, [RDNA_CLASS_VGPR] = 0 };
static const unsigned encoder_number[RDNA_CLASSES] = { [RDNA_CLASS_SGPR] = 0, [RDNA_CLASS_VGPR] = RDNA_V0 };

static uint32_t draw(struct ra *ra)
{
	ra->random ^= ra->random << 13;
	ra->random ^= ra->random >> 17;
	ra->random ^= ra->random << 5;
	return ra->random;
}

static unsigned place_of(const struct ra *ra, uint32_t r) { return ra->l->reg[r].phys - encoder_number[ra->l->reg[r].cls]; }

/* --- a place */

/* Words that nothing names need no register, but the tuple's numbers must exist. */
static inline bool is_free(const struct ra *ra, enum rdna_class cls, unsigned place, uint16_t words)
{
	const uint64_t *busy = ra->busy[cls] + place / 64;
	uint64_t here = busy[0] >> place % 64 | busy[1] << 1 << (63 - place % 64);
	return !(here & words);
}

static inline bool fits(const struct ra *ra, uint32_t r, unsigned place)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	return place >= first_number[g->cls] && place + g->n <= ra->limit[g->cls] && place % g->align == 0 && is_free(ra, (enum rdna_class)g->cls, place, ra->reg[r].named);
}

static uint32_t lowest_tuple(const struct ra *ra, uint32_t r)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	uint16_t named = ra->reg[r].named;
	unsigned place = first_number[g->cls];                 /* aligned for all */
	while (place + g->n <= ra->limit[g->cls]) {
		uint64_t here = ra->busy[g->cls][place / 64] >> place % 64;
		if (g->align == 1 && here & 1 && named & 1)
			place += here == UINT64_MAX ? 64 : (unsigned)__builtin_ctzll(~here);
		else if (is_free(ra, (enum rdna_class)g->cls, place, named))
			return place;
		else
			place += g->align;
	}
	return NOWHERE;
}

static inline uint32_t lowest_place(const struct ra *ra, uint32_t r)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	if (g->n != 1 || !ra->reg[r].named)
		return lowest_tuple(ra, r);
	const uint64_t *busy = ra->busy[g->cls];
	unsigned k = 0;
	while (busy[k] == UINT64_MAX)
		k++;
	unsigned place = 64 * k + (unsigned)__builtin_ctzll(~busy[k]);
	return place < ra->limit[g->cls] ? place : NOWHERE;
}

static uint32_t find_place(struct ra *ra, uint32_t r)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	unsigned low = first_number[g->cls], high = ra->limit[g->cls];
	bool down = ra->tuples_high && g->n > 1;
	if (low + g->n > high)
		return NOWHERE;
	if (!ra->random && !down)
		return lowest_place(ra, r);
	unsigned choices = high - g->n - low + 1, skip = ra->random ? draw(ra) % choices : 0;
	for (unsigned k = 0; k < choices; k++) {
		unsigned step = (k + skip) % choices, place = down ? high - g->n - step : low + step;
		if (fits(ra, r, place))
			return place;
	}
	return NOWHERE;
}

static void take(struct ra *ra, uint32_t r, unsigned place)
{
	struct rdna_lir_reg *g = &ra->l->reg[r];
	uint64_t words = ra->reg[r].named, *busy = ra->busy[g->cls] + place / 64;
	g->phys = (uint16_t)(encoder_number[g->cls] + place);
	ra->reg[r].base = place - ra->live->first_word[r];
	if (!words)
		return;
	unsigned top = place + 64 - (unsigned)__builtin_clzll(words);
	busy[0] |= words << place % 64;
	busy[1] |= words >> 1 >> (63 - place % 64);
	if (ra->used[g->cls] < top)
		ra->used[g->cls] = top;
}

static inline void mark(struct ra *ra, uint32_t word, bool busy)
{
	const struct ra_reg *g = &ra->reg[ra->word[word].reg];
	unsigned place = g->base + word;
	uint64_t *at = &ra->busy[g->cls][place / 64], bit = UINT64_C(1) << place % 64;
	assert(!(*at & bit) == busy);
	*at ^= bit;
}

/* --- one instruction */

static inline bool writes_word(const struct ra *ra, const struct rdna_lir_ins *i, uint32_t word)
{
	uint32_t r = ra->word[word].reg, sub = word - ra->live->first_word[r];
	for (unsigned k = 0; k < 2; k++)
		if (i->d[k].reg == r && i->d[k].kind == RDNA_LIR_VIRTUAL && sub >= i->d[k].sub && sub < (unsigned)i->d[k].sub + i->d[k].n)
			return true;
	return false;
}

/* The source whose register the destination would best take over: the addend, so that the short accumulating form does; a copy's original; what a constant
 * is added to. Others take the lowest register there is. */
static const struct rdna_lir_operand *heir_of(const struct rdna_lir_ins *i)
{
	static const struct rdna_lir_operand nobody;
	switch (i->op) {
	case RDNA_V_MOV_B32: case RDNA_S_MOV_B32: case RDNA_S_MOV_B64: return &i->s[0];
	case RDNA_S_ADD_CO_I32: case RDNA_S_MUL_I32: return i->s[1].kind == RDNA_LIR_CONST ? &i->s[0] : &nobody;
	default: return rdna_lir_facts(i->op) & RDNA_IS_VALU ? &i->s[2] : &nobody;
	}
}

static uint32_t wanted_place(const struct ra *ra, const struct rdna_lir_ins *i, unsigned d)
{
	const struct rdna_lir_operand *o = heir_of(i), *to = &i->d[d];
	if (d || ra->random || o->kind != RDNA_LIR_VIRTUAL || ra->l->reg[o->reg].cls != ra->l->reg[to->reg].cls || o->n != to->n)
		return NOWHERE;
	unsigned from = place_of(ra, o->reg) + o->sub;
	return from >= to->sub ? from - to->sub : NOWHERE;
}

static bool ends_here(const struct ra *ra, const struct rdna_lir_operand *o)
{
	for (unsigned k = 0; k < o->n; k++)
		if (ra->live->end[ra->live->first_word[o->reg] + o->sub + k] != ra->at)
			return false;
	return true;
}

static void mark_operand(struct ra *ra, const struct rdna_lir_operand *o, bool busy)
{
	for (unsigned k = 0; k < o->n; k++)
		mark(ra, ra->live->first_word[o->reg] + o->sub + k, busy);
}

/* A matrix product's sum may lie exactly where its addend did, but not across it. */
static bool inherit_matrix(struct ra *ra, const struct rdna_lir_ins *i, uint32_t r)
{
	const struct rdna_lir_operand *c = &i->s[2];
	uint32_t place = wanted_place(ra, i, 0);
	if (!(rdna_lir_facts(i->op) & RDNA_IS_WMMA) || place == NOWHERE || c->n != ra->l->reg[r].n || !ends_here(ra, c))
		return false;
	if (i->s[0].reg == c->reg || i->s[1].reg == c->reg)
		return false;
	mark_operand(ra, c, false);
	bool ok = fits(ra, r, place);
	mark_operand(ra, c, true);
	if (ok) {
		mark_operand(ra, c, false);
		take(ra, r, place);
	}
	return ok;
}

/* A matrix product whose addend's words the sum has taken over: they are the sum's now. */
static bool inherited(const struct ra *ra, const struct rdna_lir_ins *i, uint32_t word)
{
	const struct rdna_lir_operand *c = &i->s[2];
	if (!(rdna_lir_facts(i->op) & RDNA_IS_WMMA) || c->kind != RDNA_LIR_VIRTUAL || i->d[0].reg == c->reg || ra->word[word].reg != c->reg)
		return false;
	return ra->l->reg[i->d[0].reg].phys + i->d[0].sub == ra->l->reg[c->reg].phys + c->sub && ra->live->start[i->d[0].reg] == ra->at;
}

static void allocate(struct ra *ra, const struct rdna_lir_ins *i, bool apart)
{
	for (unsigned d = 0; d < 2 && !ra->failed; d++) {
		if (i->d[d].kind != RDNA_LIR_VIRTUAL)
			continue;
		uint32_t r = i->d[d].reg;
		if (!r || ra->live->start[r] != ra->at || (d && i->d[0].kind == RDNA_LIR_VIRTUAL && i->d[0].reg == r))
			continue;
		if (apart && !d && inherit_matrix(ra, i, r))
			continue;
		uint32_t place = apart ? NOWHERE : wanted_place(ra, i, d);
		if (place == NOWHERE || !fits(ra, r, place))
			place = find_place(ra, r);
		if (place == NOWHERE)
			ra->failed = r;
		else
			take(ra, r, place);
	}
}

/* Words that end here are free for the results, but not for those that are written before all is read (rdna_lir_apart); what is written here and never read ends last. */
static void step(struct ra *ra, const struct rdna_lir_ins *i)
{
	bool apart = rdna_lir_apart(i), unread = apart;
	uint32_t first = ra->ends[ra->at];
	for (uint32_t word = apart ? NOWHERE : first; word != NOWHERE; word = ra->word[word].next) {
		if (writes_word(ra, i, word))
			unread = true;
		else
			mark(ra, word, false);
	}
	allocate(ra, i, apart);
	if (!unread || ra->failed)
		return;
	for (uint32_t word = first; word != NOWHERE; word = ra->word[word].next)
		if (writes_word(ra, i, word) || (apart && !inherited(ra, i, word)))
			mark(ra, word, false);
}

/* --- the pass */

static bool prepare(struct ra *ra)
{
	const struct rdna_lir *l = ra->l;
	const struct rdna_live *v = ra->live;
	ra->word = malloc((v->n_words + 1) * sizeof *ra->word + l->n_regs * sizeof *ra->reg + (l->n_ins + 1) * sizeof *ra->ends);
	if (!ra->word)
		return false;
	ra->reg = (struct ra_reg *)(ra->word + v->n_words + 1);
	ra->ends = (uint32_t *)(ra->reg + l->n_regs);
	memset(ra->ends, 0xff, (l->n_ins + 1) * sizeof *ra->ends);
	for (uint32_t r = 0; r < l->n_regs; r++) {
		unsigned named = 0;
		for (uint32_t first = v->first_word[r], word = first; word < v->first_word[r + 1]; word++) {
			uint32_t end = v->end[word];
			if (end == RDNA_LIVE_NEVER)
				continue;
			named |= 1u << (word - first);
			ra->word[word] = (struct ra_word){ ra->ends[end], r };
			ra->ends[end] = word;
		}
		ra->reg[r] = (struct ra_reg){ .named = (uint16_t)named, .cls = l->reg[r].cls };
	}
	return true;
}

static void scan(struct ra *ra)
{
	memset(ra->busy, 0, sizeof ra->busy);
	memset(ra->used, 0, sizeof ra->used);
	for (unsigned c = 0; c < RDNA_CLASSES; c++)
		ra->busy[c][0] = (UINT64_C(1) << first_number[c]) - 1;
	ra->failed = 0;
	for (ra->at = 0; ra->at < ra->l->n_ins && !ra->failed; ra->at++)
		step(ra, &ra->l->ins[ra->at]);
}

static bool refuse(const struct ra *ra, struct error *err)
{
	const struct rdna_lir_reg *g = &ra->l->reg[ra->failed];
	unsigned taken = 0;
	for (unsigned k = 0; k < sizeof ra->busy[0] / sizeof ra->busy[0][0]; k++)
		taken += (unsigned)__builtin_popcountll(ra->busy[g->cls][k]);
	return error_set(err, ERROR_UNSUPPORTED,
	                 "the kernel does not fit in %u %s registers: at instruction %u of %zu %u are taken and a tuple of %u finds no place",
	                 ra->limit[g->cls] - first_number[g->cls], g->cls == RDNA_CLASS_VGPR ? "vector" : "scalar", (unsigned)ra->at - 1, ra->l->n_ins,
	                 taken - first_number[g->cls], g->n);
}

static unsigned limit_of(unsigned wanted, enum rdna_class cls)
{
	unsigned all = (cls == RDNA_CLASS_VGPR ? RDNA_ABI_VGPRS : RDNA_ABI_SGPRS) - first_number[cls];
	return first_number[cls] + (!wanted || wanted > all ? all : wanted);
}

/* ra: its limits and the seed. */
static bool place_all(struct ra *ra, struct rdna_regs *used, struct error *err)
{
	struct rdna_lir *l = ra->l;
	bool ok = prepare(ra) || error_set(err, ERROR_MEMORY, "no memory to allocate the registers of a kernel");
	if (ok)
		scan(ra);
	if (ok && ra->failed) {
		ra->tuples_high = true;
		scan(ra);
	}
	if (ok && ra->failed)
		ok = refuse(ra, err);
	l->allocated = ok;
	*used = (struct rdna_regs){ .vgprs = (uint16_t)ra->used[RDNA_CLASS_VGPR],
	                            .sgprs = (uint16_t)(ra->used[RDNA_CLASS_SGPR] > RDNA_ABI_FREE_SGPR ? ra->used[RDNA_CLASS_SGPR] : RDNA_ABI_FREE_SGPR) };
	free(ra->word);
	return ok;
}

bool rdna_regalloc_known(struct rdna_lir *l, const struct rdna_live *live, struct rdna_regs *used, struct error *err)
{
	struct ra ra = { .l = l, .live = live, .limit = { [RDNA_CLASS_SGPR] = RDNA_ABI_SGPRS, [RDNA_CLASS_VGPR] = RDNA_ABI_VGPRS } };
	return place_all(&ra, used, err);
}

bool rdna_regalloc(struct rdna_lir *l, unsigned max_vgprs, unsigned max_sgprs, uint32_t seed, struct rdna_regs *used, struct error *err)
{
	struct rdna_live live;
	struct ra ra = { .l = l, .live = &live, .random = seed };
	ra.limit[RDNA_CLASS_VGPR] = limit_of(max_vgprs, RDNA_CLASS_VGPR);
	ra.limit[RDNA_CLASS_SGPR] = limit_of(max_sgprs, RDNA_CLASS_SGPR);
	bool tried = l->tried && !seed && ra.limit[RDNA_CLASS_VGPR] == RDNA_ABI_VGPRS && ra.limit[RDNA_CLASS_SGPR] == RDNA_ABI_SGPRS;
	l->tried = l->allocated = false;
	*used = (struct rdna_regs){0};
	if (tried) {
		l->allocated = true;
		*used = l->used;
		return true;
	}
	if (l->failed || !rdna_live_find(&live, l))
		return error_set(err, ERROR_MEMORY, "no memory to allocate the registers of a kernel");
	bool ok = place_all(&ra, used, err);
	rdna_live_free(&live);
	return ok;
}
