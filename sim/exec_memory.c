/* sim/exec_memory.c - loads and stores at issue: addresses, bounds, alignment, counts.
 *
 * Owns: address arithmetic, bounds and alignment, LDS contents, scratch. When an access completes is memory.c's
 * decision, what it does then retire_memory.c's.
 */
#include <string.h>

#include "sim/access.h"

static void count_flat(struct sim_wave *w, const struct sim_inst *in, unsigned space, unsigned lanes)
{
	struct sim_counters *c = &w->run->c;
	uint64_t bytes = (uint64_t)access_bytes(in->op) * lanes;
	if (space == SPACE_SCRATCH)
		c->scratch_bytes += bytes;
	else if (in->op->kind == MK_ATOMIC)
		c->atomic_bytes += bytes;
	else if (in->op->kind == MK_STORE)
		c->store_bytes += bytes;
	else {
		c->load_bytes += bytes;
		if (in->op->words == 4)
			c->load128_bytes += bytes;
	}
}

/* Accesses to memory, by region; the last one that was looked at is the lanes'. */
static void count_region(struct sim_wave *w, const struct sim_inst *in, unsigned lanes)
{
	struct sim_tally *t = &w->run->c.tally[w->run->last_region->tally];
	uint64_t bytes = (uint64_t)access_bytes(in->op) * lanes;
	if (in->op->kind == MK_STORE)
		t->store_bytes += bytes;
	else if (in->op->kind == MK_LOAD) {
		t->load_bytes += bytes;
		if (in->op->words == 4)
			t->load128_bytes += bytes;
	}
}

/* Every active lane's address of a FLAT, GLOBAL or SCRATCH instruction, as it was computed. Other lanes repeat an
 * active one's. */
static struct sim_span flat_addresses(struct sim_wave *w, const struct sim_inst *in, uint64_t *addr)
{
	uint64_t base = (uint64_t)(int64_t)in->imm;
	if (in->src[2].kind)
		base += in->src[2].words == 2 ? sim_scalar64(w, &in->src[2]) : sim_scalar(w, &in->src[2]);
	if (in->src[0].kind == SRC_VGPR)
		return w->run->dev->kit->span(base, sim_vgpr(w, in->src[0].reg), in->src[0].words == 2, w->s[REG_EXEC],
		                              addr);
	for (unsigned l = 0; l < LANES; l++)
		addr[l] = base;
	return (struct sim_span){ base, base, base };
}

/* A FLAT address may lie in the apertures of LDS and scratch. */
static bool flat_space(struct sim_wave *w, struct sim_access *a, struct sim_span *span)
{
	const struct sim_inst *in = a->in;
	if (in->saddr == 2) {
		a->space = SPACE_SCRATCH;
		return true;
	}
	if (in->saddr == 1 || !a->exec)
		return true;
	uint64_t aperture = span->lo >> 32 << 32;
	if (aperture != SHARED_APERTURE && aperture != PRIVATE_APERTURE)
		return true;
	for (unsigned l = 0; l < LANES; l++) {
		if (!(a->exec >> l & 1))
			continue;
		if (a->addr[l] >> 32 << 32 != aperture) {
			sim_trap(w, "its lanes address different apertures, which is not modelled");
			return false;
		}
		a->addr[l] &= 0xffffffffu;
	}
	span->lo &= 0xffffffffu;
	span->hi &= 0xffffffffu;
	a->space = aperture == SHARED_APERTURE ? SPACE_LDS : SPACE_SCRATCH;
	return true;
}

static bool check_aligned(struct sim_wave *w, uint64_t addr, unsigned size)
{
	unsigned align = size < 4 ? size : size == 8 && w->run->now->op->kind == MK_ATOMIC ? 8 : 4;
	if (!(addr & (align - 1)))
		return true;
	sim_trap(w, "it addresses 0x%llx, which is not aligned to %u bytes", (unsigned long long)addr, align);
	return false;
}

static bool check_lanes(struct sim_wave *w, struct sim_access *a, const struct sim_span *span)
{
	unsigned bytes = access_bytes(a->in->op);
	uint64_t lo = span->lo, hi = span->hi, limit = a->space == SPACE_LDS ? w->group->lds_size : w->scratch_stride;
	if (!a->exec)
		return true;
	if (span->bits & 7)
		for (unsigned l = 0; l < LANES; l++)
			if ((a->exec >> l & 1) && !check_aligned(w, a->addr[l], a->in->op->size))
				return false;
	a->lo = lo;
	a->hi = hi + bytes;
	if (a->space != SPACE_MEMORY) {
		if (hi + bytes <= limit)
			return true;
		sim_trap(w, "it addresses byte %llu of %s, which has %llu", (unsigned long long)(hi + bytes - 1),
		         a->space == SPACE_LDS ? "LDS" : "scratch", (unsigned long long)limit);
		return false;
	}
	bool write = a->in->op->kind != MK_LOAD;
	struct sim_region *g = w->run->last_region;
	if (g && lo >= g->base && hi + bytes - g->base <= g->size && (g->writable || !write)) {
		count_region(w, a->in, (unsigned)__builtin_popcount(a->exec));
		return true;
	}
	for (unsigned l = 0; l < LANES; l++)
		if (a->exec >> l & 1) {
			if (!sim_address(w, a->addr[l], bytes, write))
				return false;
			count_region(w, a->in, 1);
		}
	return true;
}

/* Whether no two lanes store to the same byte: a card would keep either. Most stores go upwards. */
static bool check_apart(struct sim_wave *w, const struct sim_access *a)
{
	const unsigned bytes = access_bytes(a->in->op);
	bool upwards = true;
	uint64_t end = 0;

	for (uint32_t m = a->exec; m; m &= m - 1) {
		const uint64_t at = a->addr[__builtin_ctz(m)];
		upwards &= at >= end;
		end = at + bytes;
	}
	for (uint32_t m = upwards ? 0 : a->exec; m; m &= m - 1)
		for (uint32_t n = m & (m - 1); n; n &= n - 1) {
			const uint64_t x = a->addr[__builtin_ctz(m)], y = a->addr[__builtin_ctz(n)];
			if (x < y + bytes && y < x + bytes) {
				sim_trap(w, "two lanes of a store have the same place, 0x%llx", (unsigned long long)y);
				return false;
			}
		}
	return true;
}

static void take_data(struct sim_wave *w, struct sim_access *a, unsigned k, unsigned at)
{
	const struct sim_src *s = &a->in->src[k];
	if (s->kind == SRC_VGPR)
		memcpy(a->data[at], sim_vgpr(w, s->reg), (size_t)s->words * LANES * 4);
}

void exec_flat(struct sim_wave *w, const struct sim_inst *in)
{
	const struct sim_op *op = in->op;
	unsigned kind = op->kind == MK_LOAD || in->rtn ? COUNT_LOAD : COUNT_STORE;
	struct sim_access *a = sim_issue(w, kind, in);
	if (!a)
		return;
	struct sim_span span = flat_addresses(w, in, a->addr);
	if (!flat_space(w, a, &span) || !check_lanes(w, a, &span))
		return;
	if (op->kind == MK_STORE && a->space != SPACE_SCRATCH && !check_apart(w, a))
		return;
	if (op->kind == MK_ATOMIC && a->space == SPACE_SCRATCH) {
		sim_trap(w, "an atomic addresses scratch");
		return;
	}
	if (op->kind != MK_LOAD)
		take_data(w, a, 1, 0);
	count_flat(w, in, a->space, (unsigned)__builtin_popcount(a->exec));
	sim_issued(w, kind, a);
	if (in->saddr == 0 && !w->run->trapped) { /* FLAT counts with LDS too */
		struct sim_access *b = sim_issue(w, COUNT_LDS, in);
		if (!b)
			return;
		b->retired = true;
		sim_issued(w, COUNT_LDS, b);
	}
}

/* --- LDS */

/* The most distinct words that one bank must give to the lanes first..last: counted the long way. */
static unsigned bank_worst(const uint64_t *addr, uint32_t exec, unsigned words)
{
	unsigned worst = 0;
	for (unsigned bank = 0; bank < 32; bank++) {
		uint64_t seen[LANES];
		unsigned n = 0;
		for (uint32_t m = exec; m; m &= m - 1) {
			uint64_t first = addr[__builtin_ctz(m)] >> 2, word = first + ((bank - first) & 31);
			unsigned i = 0;
			if (word - first >= words)
				continue;
			while (i < n && seen[i] != word)
				i++;
			if (i == n)
				seen[n++] = word;
		}
		if (n > worst)
			worst = n;
	}
	return worst;
}

/* Cycles beyond the first. Lanes are served 32 at a time, 16 for two words each and 8 for four. */
static unsigned bank_conflicts(const uint64_t *addr, uint32_t exec, unsigned words)
{
	unsigned lanes = words >= 4 ? 8 : words >= 2 ? 16 : 32, extra = 0;
	for (unsigned first = 0; first < LANES; first += lanes) {
		uint64_t seen[32];
		uint32_t used = 0, part = exec & (lanes == 32 ? ~0u : ((1u << lanes) - 1) << first), clash = 0;
		for (uint32_t m = part; m; m &= m - 1) {
			uint64_t word = addr[__builtin_ctz(m)] >> 2;
			for (unsigned k = 0; k < words; k++, word++) {
				unsigned bank = word & 31;
				clash |= (used >> bank & 1) && seen[bank] != word;
				used |= 1u << bank;
				seen[bank] = word;
			}
		}
		if (clash)
			extra += bank_worst(addr, part, words) - 1;
	}
	return extra;
}

void sim_lds_written(struct sim_wave *w, uint64_t addr, unsigned bytes)
{
	struct sim_group *g = w->group;
	if (!g->lds_undefined)
		return;
	for (uint64_t d = addr >> 2; d <= (addr + bytes - 1) >> 2; d++) {
		if (!(g->lds_def[d >> 5] >> (d & 31) & 1))
			g->lds_undefined--;
		g->lds_def[d >> 5] |= 1u << (d & 31);
	}
}

bool sim_lds_defined(struct sim_wave *w, uint64_t addr, unsigned bytes)
{
	if (!w->group->lds_undefined || w->run->opt.allow_undefined)
		return true;
	for (uint64_t d = addr >> 2; d <= (addr + bytes - 1) >> 2; d++)
		if (!(w->group->lds_def[d >> 5] >> (d & 31) & 1)) {
			sim_trap(w, "it reads byte %llu of LDS, which nothing wrote", (unsigned long long)addr);
			return false;
		}
	return true;
}

static bool lds_address(struct sim_wave *w, struct sim_access *a, uint64_t *addr, unsigned offset)
{
	const struct sim_op *op = a->in->op;
	const uint32_t *v = sim_vgpr(w, a->in->src[0].reg);
	unsigned bytes = access_bytes(op), words = op->size >= 4 ? bytes / 4 : 1;
	if (!a->exec)
		return true;
	struct sim_span span = w->run->dev->kit->span(offset, v, false, a->exec, addr);
	if (span.hi + bytes > w->group->lds_size) {
		sim_trap(w, "it addresses byte %llu of LDS, which has %u", (unsigned long long)span.hi + bytes - 1,
		         w->group->lds_size);
		return false;
	}
	if (span.bits & 7)
		for (unsigned l = 0; l < LANES; l++)
			if ((a->exec >> l & 1) && !check_aligned(w, addr[l], op->size))
				return false;
	if ((span.hi >> 2) - (span.lo >> 2) + words <= 32)
		return true; /* no bank has two words of so short a stretch */
	w->run->c.lds_conflicts += bank_conflicts(addr, a->exec, words);
	return true;
}

void exec_lds(struct sim_wave *w, const struct sim_inst *in)
{
	const struct sim_op *op = in->op;
	struct sim_access *a = sim_issue(w, COUNT_LDS, in);
	if (!a)
		return;
	a->space = SPACE_LDS;
	unsigned n = (unsigned)__builtin_popcount(a->exec),
		 twice = op->kind == MK_LOAD2 || op->kind == MK_STORE2 ? 2 : 1;
	if (op->kind == MK_PERMUTE || op->kind == MK_BPERMUTE || op->kind == MK_SWIZZLE) {
		take_data(w, a, 1, 0);
		if (op->kind != MK_SWIZZLE)
			memcpy(a->data[1], sim_vgpr(w, in->src[0].reg), LANES * 4);
	} else {
		unsigned unit = access_bytes(op) * (strchr(op->flags, '6') ? 64 : 1);
		if (twice == 2) {
			if (!lds_address(w, a, a->addr, (in->imm & 0xff) * unit) ||
			    !lds_address(w, a, a->addr2, (unsigned)(in->imm >> 8 & 0xff) * unit))
				return;
		} else if (!lds_address(w, a, a->addr, (unsigned)in->imm))
			return;
		if (op->kind == MK_STORE && !check_apart(w, a))
			return;
		take_data(w, a, 1, 0);
		take_data(w, a, 2, 4);
		uint64_t bytes = (uint64_t)access_bytes(op) * n * twice;
		if (op->kind == MK_LOAD || op->kind == MK_LOAD2)
			w->run->c.lds_load_bytes += bytes;
		else
			w->run->c.lds_store_bytes += bytes;
	}
	sim_issued(w, COUNT_LDS, a);
}

/* --- SMEM */

/* Scalar instructions end in any order: such a load may find what was to be thrown away. */
static bool invalidates(const struct sim_wave *w)
{
	const struct sim_queue *q = &w->q[COUNT_SMEM];
	for (unsigned i = 0; i < q->n; i++)
		if (q->item[(q->head + i) % q->cap].in->id == OP_M_s_dcache_inv)
			return true;
	return false;
}

void exec_smem(struct sim_wave *w, const struct sim_inst *in)
{
	if (invalidates(w)) {
		sim_trap(w, "a scalar load while an invalidation of the scalar cache is outstanding");
		return;
	}
	struct sim_access *a = sim_issue(w, COUNT_SMEM, in);
	if (!a)
		return;
	uint64_t addr = sim_scalar64(w, &in->src[0]) + (uint64_t)(int64_t)in->imm + sim_scalar(w, &in->src[1]);
	unsigned bytes = access_bytes(in->op);
	a->addr[0] = addr;
	a->lo = addr;
	a->hi = addr + bytes;
	if (!check_aligned(w, addr, in->op->size) || !sim_address(w, addr, bytes, false))
		return;
	w->run->c.scalar_bytes += bytes;
	w->run->c.tally[w->run->last_region->tally].scalar_bytes += bytes;
	sim_issued(w, COUNT_SMEM, a);
}

/* Invalidations are waited for as loads are, but those of gfx10 and gfx11, which nothing counts. */
void exec_cache(struct sim_wave *w, const struct sim_inst *in)
{
	bool counted = in->id != OP_M_buffer_gl0_inv && in->id != OP_M_buffer_gl1_inv;
	unsigned kind = in->op->format == FMT_SMEM ? COUNT_SMEM : in->id == OP_M_global_inv ? COUNT_LOAD : COUNT_STORE;
	struct sim_access *a = NULL;
	if (counted && !(a = sim_issue(w, kind, in)))
		return;
	if (w->run->race)
		sim_caches_invalidate(w, in, a ? a->seq : w->seq);
	if (a)
		sim_issued(w, kind, a);
}
