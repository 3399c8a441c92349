/* jit/rdna/regalloc.c - linear scan over structured loops, for tuples, without spilling.
 *
 * Owns: the choice of registers. A tuple takes all its words at its first write; each word is given back on its own
 * after its last use. Low numbers go first, for how many waves live at once hangs on the highest one. Rule for editors:
 * the result depends on the input alone (no addresses).
 *
 * gfx12: a write of a scalar register that vector instructions of any function read must be waited for (hazard.c). So
 * tuples that none reads stand apart while there is room, and all others never stand there.
 *
 * A kernel that does not fit is tried once more with tuples at the other end of the file, where single registers do not
 * break up the room; then refused.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "jit/rdna/hazard.h"
#include "jit/rdna/live.h"

enum { NOWHERE = UINT32_MAX };

struct ra_word {
	uint32_t next /* word that ends there, too */;
	uint32_t phys;
};

/* Machine registers have the encoder's numbers. */
enum { REGISTERS = RDNA_V0 + RDNA_ABI_VGPRS };

struct ra {
	struct rdna_lir *l;
	const struct rdna_live *live;
	uint32_t *ends; /* by instruction: the first word that ends there */
	struct ra_word *word;
	uint64_t busy[REGISTERS / 64 +
	              1]; /* a bit for each register, those below first_register being busy; behind them none */
	unsigned limit[RDNA_CLASSES]; /* registers below */
	unsigned used[RDNA_CLASSES];  /* highest + 1 */
	unsigned used_below;          /* the same of scalar ones that do not stand apart */
	bool *vector_reads;           /* by register: some vector instruction reads it; NULL: it does not matter */
	bool tuples_high;
	uint32_t random;
	uint32_t at;
	uint32_t failed; /* the virtual register that found no room; 0: all did */
};

static const unsigned first_register[RDNA_CLASSES] = {
	[RDNA_CLASS_SGPR] = RDNA_ABI_FREE_SGPR, [RDNA_CLASS_VGPR] = RDNA_V0
};
/* Where a class's registers begin, in words of `busy`. */
static const unsigned first_busy[RDNA_CLASSES] = { [RDNA_CLASS_SGPR] = 0, [RDNA_CLASS_VGPR] = RDNA_V0 / 64 };

static uint32_t draw(struct ra *ra)
{
	ra->random ^= ra->random << 13;
	ra->random ^= ra->random >> 17;
	ra->random ^= ra->random << 5;
	return ra->random;
}

/* --- a machine register */

/* Words that nothing names need no register, but the tuple's numbers must exist. */
static inline bool is_free(const struct ra *ra, unsigned phys, uint16_t words)
{
	const uint64_t *busy = ra->busy + phys / 64;
	uint64_t here = busy[0] >> phys % 64 | busy[1] << 1 << (63 - phys % 64);
	return !(here & words);
}

/* Machine registers below which a virtual one may stand. */
static inline unsigned limit_for(const struct ra *ra, uint32_t r)
{
	unsigned cls = ra->l->reg[r].cls, limit = ra->limit[cls];
	bool mixed = cls == RDNA_CLASS_SGPR && ra->vector_reads && ra->vector_reads[r];
	return mixed && limit > RDNA_ABI_APART ? RDNA_ABI_APART : limit;
}
static inline bool may_stand_apart(const struct ra *ra, uint32_t r)
{
	return ra->l->reg[r].cls == RDNA_CLASS_SGPR && ra->vector_reads && !ra->vector_reads[r];
}

static inline bool fits(const struct ra *ra, uint32_t r, unsigned phys)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	return phys >= first_register[g->cls] && phys + g->n <= limit_for(ra, r) && phys % g->align == 0 &&
	       is_free(ra, phys, ra->live->named[r]);
}

/* phys: the first to look at, aligned for all. */
static uint32_t lowest_tuple(const struct ra *ra, const struct rdna_lir_reg *g, uint16_t named, unsigned phys,
                             unsigned limit)
{
	while (phys + g->n <= limit) {
		uint64_t here = ra->busy[phys / 64] >> phys % 64;
		if (g->align == 1 && here & 1 && named & 1)
			phys += here == UINT64_MAX ? 64 : (unsigned)__builtin_ctzll(~here);
		else if (is_free(ra, phys, named))
			return phys;
		else
			phys += g->align;
	}
	return NOWHERE;
}

static inline uint32_t lowest_single(const struct ra *ra, enum rdna_class cls, unsigned limit)
{
	unsigned k = first_busy[cls];
	while (ra->busy[k] == UINT64_MAX)
		k++;
	unsigned phys = 64 * k + (unsigned)__builtin_ctzll(~ra->busy[k]);
	return phys < limit ? phys : NOWHERE;
}

static uint32_t any_register(struct ra *ra, uint32_t r, bool down)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	unsigned low = first_register[g->cls], high = limit_for(ra, r);
	if (low + g->n > high)
		return NOWHERE;
	unsigned choices = high - g->n - low + 1, skip = ra->random ? draw(ra) % choices : 0;
	for (unsigned k = 0; k < choices; k++) {
		unsigned step = (k + skip) % choices, phys = down ? high - g->n - step : low + step;
		if (fits(ra, r, phys))
			return phys;
	}
	return NOWHERE;
}

static inline uint32_t find_register(struct ra *ra, uint32_t r)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	bool down = ra->tuples_high && g->n > 1;
	if (ra->random || down)
		return any_register(ra, r, down);
	unsigned limit = limit_for(ra, r);
	uint32_t phys =
		may_stand_apart(ra, r) ? lowest_tuple(ra, g, ra->live->named[r], RDNA_ABI_APART, limit) : NOWHERE;
	if (phys != NOWHERE)
		return phys;
	return g->n == 1 ? lowest_single(ra, (enum rdna_class)g->cls, limit)
	                 : lowest_tuple(ra, g, ra->live->named[r], first_register[g->cls], limit);
}

static inline void use_up_to(struct ra *ra, uint8_t cls, unsigned top)
{
	if (ra->used[cls] < top)
		ra->used[cls] = top;
	if (cls == RDNA_CLASS_SGPR && top <= RDNA_ABI_APART && ra->used_below < top)
		ra->used_below = top;
}

static void take_tuple(struct ra *ra, uint32_t r, unsigned phys)
{
	const struct rdna_lir_reg *g = &ra->l->reg[r];
	struct ra_word *word = &ra->word[ra->live->reg[r].first_word];
	uint64_t words = ra->live->named[r], *busy = ra->busy + phys / 64;
	for (unsigned k = 0; k < g->n; k++)
		word[k].phys = phys + k;
	busy[0] |= words << phys % 64;
	busy[1] |= words >> 1 >> (63 - phys % 64);
	use_up_to(ra, g->cls, phys + 64 - (unsigned)__builtin_clzll(words));
}

/* r is written, so something names at least one word of it. */
static inline void take(struct ra *ra, uint32_t r, unsigned phys)
{
	struct rdna_lir_reg *g = &ra->l->reg[r];
	g->phys = (uint16_t)phys;
	if (g->n > 1) {
		take_tuple(ra, r, phys);
		return;
	}
	ra->word[ra->live->reg[r].first_word].phys = phys;
	ra->busy[phys / 64] |= UINT64_C(1) << phys % 64;
	use_up_to(ra, g->cls, phys + 1);
}

static inline void mark(struct ra *ra, uint32_t word, bool busy)
{
	unsigned phys = ra->word[word].phys;
	uint64_t *at = &ra->busy[phys / 64], bit = UINT64_C(1) << phys % 64;
	assert(!(*at & bit) == busy);
	*at ^= bit;
}

/* --- one instruction */

/* The words that an operand names: n from `first` on. */
struct words {
	uint32_t first, n;
};
static inline struct words words_of(const struct ra *ra, const struct rdna_lir_operand *o)
{
	return o->kind == RDNA_LIR_VIRTUAL ? (struct words){ ra->live->reg[o->reg].first_word + o->sub, o->n }
	                                   : (struct words){ 0, 0 };
}
static inline bool is_among(uint32_t word, struct words w) { return word - w.first < w.n; }

/* The source whose register the destination would best take over: the addend, so that the short accumulating form does;
 * a copy's original; what a constant is added to. Others take the lowest register there is. */
static inline const struct rdna_lir_operand *heir_of(const struct rdna_lir_ins *i)
{
	static const struct rdna_lir_operand nobody;
	switch (i->op) {
	case RDNA_V_MOV_B32:
	case RDNA_S_MOV_B32:
	case RDNA_S_MOV_B64: return &i->s[0];
	case RDNA_S_ADD_CO_I32:
	case RDNA_S_MUL_I32: return i->s[1].kind == RDNA_LIR_CONST ? &i->s[0] : &nobody;
	default: return rdna_lir_facts(i->op) & RDNA_IS_VALU ? &i->s[2] : &nobody;
	}
}

/* Of the first destination. */
static inline uint32_t wanted_register(const struct ra *ra, const struct rdna_lir_ins *i)
{
	const struct rdna_lir_operand *o = heir_of(i), *to = &i->d[0];
	if (o->kind != RDNA_LIR_VIRTUAL || ra->random || ra->l->reg[o->reg].cls != ra->l->reg[to->reg].cls ||
	    o->n != to->n)
		return NOWHERE;
	unsigned from = ra->l->reg[o->reg].phys + o->sub;
	return from >= to->sub ? from - to->sub : NOWHERE;
}

static bool ends_here(const struct ra *ra, const struct rdna_lir_operand *o)
{
	for (unsigned k = 0; k < o->n; k++)
		if (ra->live->word[words_of(ra, o).first + k].end != ra->at)
			return false;
	return true;
}

static void mark_operand(struct ra *ra, const struct rdna_lir_operand *o, bool busy)
{
	for (unsigned k = 0; k < o->n; k++)
		mark(ra, words_of(ra, o).first + k, busy);
}

/* A matrix product's sum may lie exactly where its addend did, but not across it. */
static bool inherit_matrix(struct ra *ra, const struct rdna_lir_ins *i, uint32_t r)
{
	const struct rdna_lir_operand *c = &i->s[2];
	uint32_t phys = wanted_register(ra, i);
	if (!(rdna_lir_facts(i->op) & RDNA_IS_WMMA) || phys == NOWHERE || c->n != ra->l->reg[r].n || !ends_here(ra, c))
		return false;
	if (i->s[0].reg == c->reg || i->s[1].reg == c->reg)
		return false;
	mark_operand(ra, c, false);
	bool ok = fits(ra, r, phys);
	mark_operand(ra, c, true);
	if (ok) {
		mark_operand(ra, c, false);
		take(ra, r, phys);
	}
	return ok;
}

/* The words of a matrix product's addend that the sum has taken over: they are the sum's now. */
static struct words inherited(const struct ra *ra, const struct rdna_lir_ins *i)
{
	const struct rdna_lir_operand *c = &i->s[2];
	if (!(rdna_lir_facts(i->op) & RDNA_IS_WMMA) || c->kind != RDNA_LIR_VIRTUAL || i->d[0].reg == c->reg ||
	    ra->live->reg[i->d[0].reg].start != ra->at)
		return (struct words){ 0, 0 };
	bool same = ra->l->reg[i->d[0].reg].phys + i->d[0].sub == ra->l->reg[c->reg].phys + c->sub;
	return same ? (struct words){ ra->live->reg[c->reg].first_word, ra->l->reg[c->reg].n } : (struct words){ 0, 0 };
}

static inline void allocate_one(struct ra *ra, const struct rdna_lir_ins *i, unsigned d, bool early_clobber)
{
	uint32_t r = i->d[d].reg, phys = NOWHERE;
	if (early_clobber && !d && inherit_matrix(ra, i, r))
		return;
	if (!early_clobber && !d)
		phys = wanted_register(ra, i);
	if (phys == NOWHERE || !fits(ra, r, phys))
		phys = find_register(ra, r);
	if (phys == NOWHERE)
		ra->failed = r;
	else
		take(ra, r, phys);
}

static inline bool begins_here(const struct ra *ra, const struct rdna_lir_operand *o)
{
	return o->kind == RDNA_LIR_VIRTUAL && o->reg && ra->live->reg[o->reg].start == ra->at;
}

static inline void allocate(struct ra *ra, const struct rdna_lir_ins *i, bool early_clobber)
{
	bool first = begins_here(ra, &i->d[0]), second = begins_here(ra, &i->d[1]);
	if (first)
		allocate_one(ra, i, 0, early_clobber);
	if (second && !ra->failed && !(first && i->d[0].reg == i->d[1].reg))
		allocate_one(ra, i, 1, early_clobber);
}

/* Its operands' words are free when all is read, its results' where they are never read when they are written. */
static inline void step(struct ra *ra, const struct rdna_lir_ins *i)
{
	bool unread = false;
	struct words d[2] = { words_of(ra, &i->d[0]), words_of(ra, &i->d[1]) };
	for (uint32_t word = ra->ends[ra->at]; word != NOWHERE; word = ra->word[word].next) {
		if (is_among(word, d[0]) || is_among(word, d[1]))
			unread = true;
		else
			mark(ra, word, false);
	}
	allocate(ra, i, false);
	if (!unread || ra->failed)
		return;
	for (uint32_t word = ra->ends[ra->at]; word != NOWHERE; word = ra->word[word].next)
		if (is_among(word, d[0]) || is_among(word, d[1]))
			mark(ra, word, false);
}

/* One that writes results before it has read all (rdna_lir_early_clobber): all words that end here do so behind it. */
static void step_early_clobber(struct ra *ra, const struct rdna_lir_ins *i)
{
	allocate(ra, i, true);
	if (ra->failed)
		return;
	struct words d[2] = { words_of(ra, &i->d[0]), words_of(ra, &i->d[1]) }, kept = inherited(ra, i);
	for (uint32_t word = ra->ends[ra->at]; word != NOWHERE; word = ra->word[word].next)
		if (is_among(word, d[0]) || is_among(word, d[1]) || !is_among(word, kept))
			mark(ra, word, false);
}

/* --- the pass */

static bool find_vector_reads(struct ra *ra)
{
	const struct rdna_lir *l = ra->l;
	if (l->gen != RDNA_GFX12)
		return true;
	if (!(ra->vector_reads = calloc(l->n_regs, sizeof *ra->vector_reads)))
		return false;
	for (size_t k = 0; k < l->n_ins; k++)
		for (unsigned s = 0; s < 4 && is_vector(facts_of(&l->ins[k])); s++)
			if (l->ins[k].s[s].kind == RDNA_LIR_VIRTUAL)
				ra->vector_reads[l->ins[k].s[s].reg] = true;
	return true;
}

/* Those that stand apart would have been placed on top of the others. */
static unsigned scalars_needed(const struct ra *ra)
{
	unsigned used = ra->used[RDNA_CLASS_SGPR];
	if (!ra->vector_reads || used <= RDNA_ABI_APART)
		return used;
	return ra->used_below + used - RDNA_ABI_APART;
}

static bool prepare(struct ra *ra)
{
	if (!find_vector_reads(ra))
		return false;
	const struct rdna_live *v = ra->live;
	size_t n_ins = ra->l->n_ins;
	ra->word = malloc((v->n_words + 1) * sizeof *ra->word + (n_ins + 1) * sizeof *ra->ends);
	if (!ra->word)
		return false;
	ra->ends = (uint32_t *)(ra->word + v->n_words + 1);
	memset(ra->ends, 0xff, (n_ins + 1) * sizeof *ra->ends);
	for (uint32_t word = 0; word < v->n_words; word++) {
		uint32_t end = v->word[word].end;
		if (end == RDNA_LIVE_NEVER)
			continue;
		ra->word[word].next = ra->ends[end];
		ra->ends[end] = word;
	}
	return true;
}

static void scan(struct ra *ra)
{
	memset(ra->busy, 0, sizeof ra->busy);
	for (unsigned c = 0; c < RDNA_CLASSES; c++) {
		ra->busy[first_register[c] / 64] = (UINT64_C(1) << first_register[c] % 64) - 1;
		ra->used[c] = first_register[c];
	}
	ra->used_below = first_register[RDNA_CLASS_SGPR];
	ra->failed = 0;
	const struct rdna_lir_ins *i = ra->l->ins;
	for (ra->at = 0; ra->at < ra->l->n_ins && !ra->failed; ra->at++, i++)
		if (rdna_lir_early_clobber(i))
			step_early_clobber(ra, i);
		else
			step(ra, i);
}

static bool refuse(const struct ra *ra, struct error *err)
{
	const struct rdna_lir_reg *g = &ra->l->reg[ra->failed];
	unsigned taken = 0;
	for (unsigned phys = first_register[g->cls]; phys < ra->limit[g->cls]; phys++)
		taken += ra->busy[phys / 64] >> phys % 64 & 1;
	return error_set(err, ERROR_UNSUPPORTED,
	                 "the kernel does not fit in %u %s registers: at instruction %u of %zu %u are taken and a "
	                 "tuple of %u finds no room",
	                 ra->limit[g->cls] - first_register[g->cls], g->cls == RDNA_CLASS_VGPR ? "vector" : "scalar",
	                 (unsigned)ra->at - 1, ra->l->n_ins, taken, g->n);
}

static unsigned limit_of(unsigned wanted, enum rdna_class cls)
{
	unsigned all = cls == RDNA_CLASS_VGPR ? RDNA_ABI_VGPRS : RDNA_ABI_SGPRS - RDNA_ABI_FREE_SGPR;
	return first_register[cls] + (!wanted || wanted > all ? all : wanted);
}

/* ra: its limits and the seed. */
static bool allocate_all(struct ra *ra, struct rdna_regs *used, struct error *err)
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
	*used = (struct rdna_regs){ .vgprs = (uint16_t)(ra->used[RDNA_CLASS_VGPR] - RDNA_V0),
		                    .sgprs = (uint16_t)ra->used[RDNA_CLASS_SGPR],
		                    .sgprs_needed = (uint16_t)scalars_needed(ra) };
	free(ra->vector_reads);
	free(ra->word);
	return ok;
}

bool rdna_regalloc_known(struct rdna_lir *l, const struct rdna_live *live, struct rdna_regs *used, struct error *err)
{
	struct ra ra = {
		.l = l, .live = live, .limit = { [RDNA_CLASS_SGPR] = RDNA_ABI_SGPRS, [RDNA_CLASS_VGPR] = REGISTERS }
	};
	return allocate_all(&ra, used, err);
}

bool rdna_regalloc(struct rdna_lir *l, unsigned max_vgprs, unsigned max_sgprs, uint32_t seed, struct rdna_regs *used,
                   struct error *err)
{
	struct rdna_live live;
	struct ra ra = { .l = l, .live = &live, .random = seed };
	ra.limit[RDNA_CLASS_VGPR] = limit_of(max_vgprs, RDNA_CLASS_VGPR);
	ra.limit[RDNA_CLASS_SGPR] = limit_of(max_sgprs, RDNA_CLASS_SGPR);
	bool tried = l->tried && !seed && ra.limit[RDNA_CLASS_VGPR] == REGISTERS &&
	             ra.limit[RDNA_CLASS_SGPR] == RDNA_ABI_SGPRS;
	l->tried = l->allocated = false;
	*used = (struct rdna_regs){ 0 };
	if (tried) {
		l->allocated = true;
		*used = l->used;
		return true;
	}
	if (l->failed || !rdna_live_find(&live, l))
		return error_set(err, ERROR_MEMORY, "no memory to allocate the registers of a kernel");
	bool ok = allocate_all(&ra, used, err);
	rdna_live_free(&live);
	return ok;
}
