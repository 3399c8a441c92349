/* sim/exec_memory.c - loads and stores: addresses at issue, effects when they land.
 *
 * Owns: address arithmetic, bounds and alignment, LDS contents, swizzles and permutes through LDS, scratch. When an
 * access lands is memory.c's decision; what an atomic computes is exec_atomic.c's.
 */
#include <string.h>

#include "sim/lanes.h"
#include "sim/wave.h"

static unsigned access_bytes(const struct sim_op *op)
{
	return op->kind == MK_ATOMIC ? op->size : (unsigned)op->size * op->words;
}

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
		b->landed = true;
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

static void lds_written(struct sim_wave *w, uint64_t addr, unsigned bytes)
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

static bool lds_defined(struct sim_wave *w, uint64_t addr, unsigned bytes)
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

void exec_smem(struct sim_wave *w, const struct sim_inst *in)
{
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

void exec_cache(struct sim_wave *w, const struct sim_inst *in)
{
	if (!w->run->race)
		return;
	bool all = in->id == OP_M_global_inv || in->id == OP_M_global_wbinv;
	sim_race_invalidate(w, all || in->id == OP_M_buffer_gl0_inv, all || in->id == OP_M_s_dcache_inv);
}

/* --- landing */

static uint32_t extend(const struct sim_op *op, uint32_t v)
{
	bool sign = strchr(op->flags, 's') != NULL;
	if (op->size == 1)
		return sign ? (uint32_t)sx8(v) : v & 0xff;
	return sign ? (uint32_t)sx16(v) : v & 0xffff;
}

static void put_small(const struct sim_op *op, uint32_t *dst, uint32_t v)
{
	v = extend(op, v);
	if (strchr(op->flags, 'l'))
		*dst = (*dst & 0xffff0000u) | (v & 0xffffu);
	else if (strchr(op->flags, 'h'))
		*dst = (*dst & 0xffffu) | v << 16;
	else
		*dst = v;
}

/* Lane l's address is base + l * step + addr[l]. */
struct place {
	uint8_t *base;
	size_t step;
};
static struct place place_of(struct sim_wave *w, const struct sim_access *a)
{
	if (a->space == SPACE_LDS)
		return (struct place){ w->group->lds, 0 };
	if (a->space == SPACE_SCRATCH)
		return (struct place){ w->scratch, w->scratch_stride };
	return (struct place){ NULL, 0 };
}
static inline uint8_t *at(struct place p, uint64_t addr, unsigned l)
{
	return (uint8_t *)((uintptr_t)p.base + l * p.step + (uintptr_t)addr);
}

static bool before_load(struct sim_wave *w, struct sim_access *a, const uint64_t *addr, unsigned bytes)
{
	bool race = w->run->race && a->space == SPACE_MEMORY, lds = a->space == SPACE_LDS && w->group->lds_undefined;
	if (!race && !lds)
		return true;
	for (uint32_t m = a->exec; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		if (race)
			sim_race_read(w, addr[l], bytes, a->in->coherent ? RACE_COHERENT : RACE_LOAD);
		if (lds && !lds_defined(w, addr[l], bytes))
			return false;
	}
	return !w->run->trapped;
}

static void land_load(struct sim_wave *w, struct sim_access *a, const uint64_t *addr, unsigned first)
{
	const struct sim_op *op = a->in->op;
	uint32_t *dst = sim_vgpr(w, a->in->dst + first);
	struct place p = place_of(w, a);
	if (!before_load(w, a, addr, access_bytes(op)))
		return;
	if (op->size == 4 && op->words == 1) {
		for (uint32_t m = a->exec; m; m &= m - 1) {
			unsigned l = (unsigned)__builtin_ctz(m);
			memcpy(&dst[l], at(p, addr[l], l), 4);
		}
		return;
	}
	for (uint32_t m = a->exec; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		const uint8_t *from = at(p, addr[l], l);
		if (op->size < 4) {
			uint32_t v = from[0];
			if (op->size == 2)
				v |= (uint32_t)from[1] << 8;
			put_small(op, &dst[l], v);
			continue;
		}
		for (unsigned k = 0; k < op->words; k++)
			memcpy(&dst[k * LANES + l], from + 4 * k, 4);
	}
}

static void land_store(struct sim_wave *w, struct sim_access *a, const uint64_t *addr, unsigned row)
{
	const struct sim_op *op = a->in->op;
	unsigned bytes = access_bytes(op), shift = strchr(op->flags, 'h') ? 16 : 0, piece = op->size < 4 ? op->size : 4;
	bool race = w->run->race && a->space == SPACE_MEMORY;
	uint32_t changed = 0;
	struct place p = place_of(w, a);
	for (uint32_t m = a->exec; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		uint8_t *to = at(p, addr[l], l);
		if (race)
			sim_race_write(w, addr[l], bytes);
		if (a->space == SPACE_LDS)
			lds_written(w, addr[l], bytes);
		for (unsigned k = 0; k < op->words; k++) {
			uint32_t v = a->data[row + k][l] >> shift, old = v;
			if (piece == 4) {
				memcpy(&old, to + 4 * k, 4);
				memcpy(to + 4 * k, &v, 4);
			} else {
				memcpy(&old, to, piece);
				memcpy(to, &v, piece);
			}
			changed |= old ^ v;
		}
	}
	if (changed)
		w->run->progress = w->run->steps;
}

static void land_atomic(struct sim_wave *w, struct sim_access *a)
{
	const struct sim_inst *in = a->in;
	unsigned size = in->op->size;
	struct place where = place_of(w, a);
	bool ds = in->op->format == FMT_DS, compare = strchr(in->op->flags, 'c') != NULL;
	for (unsigned l = 0; l < LANES; l++) {
		if (!(a->exec >> l & 1))
			continue;
		uint8_t *p = at(where, a->addr[l], l);
		if (w->run->race && a->space == SPACE_MEMORY)
			sim_race_atomic(w, a->addr[l]);
		if (a->space == SPACE_LDS && !lds_defined(w, a->addr[l], size))
			return;
		uint64_t old = 0, data = a->data[0][l], other = 0;
		if (size == 8)
			data |= (uint64_t)a->data[1][l] << 32;
		if (compare)
			other = ds          ? a->data[4][l]
			        : size == 4 ? a->data[1][l]
			                    : (uint64_t)a->data[3][l] << 32 | a->data[2][l];
		if (ds && compare && w->run->dev->gen == 0) {
			uint64_t t = data;
			data = other;
			other = t;
		}
		bool write = true;
		memcpy(&old, p, size);
		uint64_t new = sim_atomic(in, old, data, other, &write);
		if (write && new != old)
			w->run->progress = w->run->steps;
		if (write)
			memcpy(p, &new, size);
		if (!in->rtn)
			continue;
		sim_vgpr(w, in->dst)[l] = (uint32_t)old;
		if (size == 8)
			sim_vgpr(w, in->dst + 1u)[l] = (uint32_t)(old >> 32);
	}
}

static unsigned swizzle_lane(unsigned imm, unsigned l)
{
	if (imm >> 15)
		return (l & 28) | (imm >> 2 * (l & 3) & 3);
	return (((l & 31) & (imm & 31)) | (imm >> 5 & 31)) ^ (imm >> 10 & 31);
}

/* ds_swizzle, ds_permute and ds_bpermute move data between lanes through LDS hardware. Inactive lanes give 0. */
static void land_permute(struct sim_wave *w, struct sim_access *a)
{
	const struct sim_inst *in = a->in;
	uint32_t out[LANES] = { 0 }, *dst = sim_vgpr(w, in->dst);
	for (unsigned l = 0; l < LANES; l++) {
		unsigned other = in->op->kind == MK_SWIZZLE ? swizzle_lane((unsigned)in->imm, l)
		                                            : ((a->data[1][l] + (unsigned)in->imm) >> 2) & 31;
		if (in->op->kind == MK_PERMUTE) {
			if (a->exec >> l & 1)
				out[other] = a->data[0][l];
		} else
			out[l] = a->exec >> other & 1 ? a->data[0][other] : 0;
	}
	sim_write_masked(dst, out, a->exec);
}

static void land_scalar(struct sim_wave *w, struct sim_access *a)
{
	const struct sim_op *op = a->in->op;
	const uint8_t *p = (const uint8_t *)(uintptr_t)a->addr[0];
	if (w->run->race)
		sim_race_read(w, a->addr[0], access_bytes(op), RACE_SCALAR);
	uint32_t v = 0;
	if (op->size < 4) {
		memcpy(&v, p, op->size);
		sim_set_sgpr(w, a->in->dst, extend(op, v));
		return;
	}
	for (unsigned k = 0; k < op->words; k++) {
		memcpy(&v, p + 4 * k, 4);
		sim_set_sgpr(w, a->in->dst == 124 ? 124u : a->in->dst + k, v);
	}
}

void sim_access_do(struct sim_wave *w, unsigned kind, struct sim_access *a)
{
	const struct sim_op *op = a->in->op;
	if (kind == COUNT_SMEM) {
		land_scalar(w, a);
		return;
	}
	switch (op->kind) {
	case MK_LOAD: land_load(w, a, a->addr, 0); break;
	case MK_STORE: land_store(w, a, a->addr, 0); break;
	case MK_LOAD2:
		land_load(w, a, a->addr, 0);
		land_load(w, a, a->addr2, op->words);
		break;
	case MK_STORE2:
		land_store(w, a, a->addr, 0);
		land_store(w, a, a->addr2, 4);
		break;
	case MK_ATOMIC: land_atomic(w, a); break;
	default: land_permute(w, a); break;
	}
}
