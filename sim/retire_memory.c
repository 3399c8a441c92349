/* sim/retire_memory.c - the effects of loads and stores, when they complete.
 *
 * Owns: what reaches registers and memory, swizzles and permutes through LDS. What an atomic computes is
 * exec_atomic.c's.
 */
#include <string.h>

#include "sim/access.h"
#include "sim/lanes.h"

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
struct storage {
	uint8_t *base;
	size_t step;
};
static struct storage storage_of(struct sim_wave *w, const struct sim_access *a)
{
	if (a->space == SPACE_LDS)
		return (struct storage){ w->group->lds, 0 };
	if (a->space == SPACE_SCRATCH)
		return (struct storage){ w->scratch, w->scratch_stride };
	return (struct storage){ NULL, 0 };
}
static inline uint8_t *at(struct storage p, uint64_t addr, unsigned l)
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
			sim_race_read(w, addr[l], bytes, a->in->reach);
		if (lds && !sim_lds_defined(w, addr[l], bytes))
			return false;
	}
	return !w->run->trapped;
}

static void retire_load(struct sim_wave *w, struct sim_access *a, const uint64_t *addr, unsigned first)
{
	const struct sim_op *op = a->in->op;
	uint32_t *dst = sim_vgpr(w, a->in->dst + first);
	struct storage p = storage_of(w, a);
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

static void retire_store(struct sim_wave *w, struct sim_access *a, const uint64_t *addr, unsigned row)
{
	const struct sim_op *op = a->in->op;
	unsigned bytes = access_bytes(op), shift = strchr(op->flags, 'h') ? 16 : 0, width = op->size < 4 ? op->size : 4;
	bool race = w->run->race && a->space == SPACE_MEMORY;
	uint32_t changed = 0;
	struct storage p = storage_of(w, a);
	for (uint32_t m = a->exec; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		uint8_t *to = at(p, addr[l], l);
		if (race)
			sim_race_write(w, addr[l], bytes);
		if (a->space == SPACE_LDS)
			sim_lds_written(w, addr[l], bytes);
		for (unsigned k = 0; k < op->words; k++) {
			uint32_t v = a->data[row + k][l] >> shift, old = v;
			if (width == 4) {
				memcpy(&old, to + 4 * k, 4);
				memcpy(to + 4 * k, &v, 4);
			} else {
				memcpy(&old, to, width);
				memcpy(to, &v, width);
			}
			changed |= old ^ v;
		}
	}
	if (changed)
		w->run->progress = w->run->steps;
}

static void retire_atomic(struct sim_wave *w, struct sim_access *a)
{
	const struct sim_inst *in = a->in;
	unsigned size = in->op->size;
	struct storage where = storage_of(w, a);
	bool ds = in->op->format == FMT_DS, compare = strchr(in->op->flags, 'c') != NULL;
	for (unsigned l = 0; l < LANES; l++) {
		if (!(a->exec >> l & 1))
			continue;
		uint8_t *p = at(where, a->addr[l], l);
		if (w->run->race && a->space == SPACE_MEMORY)
			sim_race_atomic(w, a->addr[l], in->reach);
		if (a->space == SPACE_LDS && !sim_lds_defined(w, a->addr[l], size))
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
static void retire_permute(struct sim_wave *w, struct sim_access *a)
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

static void retire_scalar(struct sim_wave *w, struct sim_access *a)
{
	const struct sim_op *op = a->in->op;
	const uint8_t *p = (const uint8_t *)(uintptr_t)a->addr[0];
	if (w->run->race)
		sim_race_read(w, a->addr[0], access_bytes(op), REACH_SCALAR);
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
	if (op->kind == MK_CACHE)
		return;
	if (kind == COUNT_SMEM) {
		retire_scalar(w, a);
		return;
	}
	switch (op->kind) {
	case MK_LOAD: retire_load(w, a, a->addr, 0); break;
	case MK_STORE: retire_store(w, a, a->addr, 0); break;
	case MK_LOAD2:
		retire_load(w, a, a->addr, 0);
		retire_load(w, a, a->addr2, op->words);
		break;
	case MK_STORE2:
		retire_store(w, a, a->addr, 0);
		retire_store(w, a, a->addr2, 4);
		break;
	case MK_ATOMIC: retire_atomic(w, a); break;
	default: retire_permute(w, a); break;
	}
}
