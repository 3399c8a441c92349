/* jit/ir/interp_index.c - memory by index as the interpreter does it: gathers, scatters and atomics.
 *
 * Owns: the meaning of these rows, and the check that the lanes of a scatter store to distinct elements. Several
 * threads may run a kernel's units at the same time, so atomics are atomics here, too.
 */
#include "jit/ir/interp_program.h"

static uint64_t get(const char *at, unsigned bytes)
{
	switch (bytes) {
	case 1: return (uint8_t)*at;
	case 2: return interp_get16(at);
	case 4: return interp_get32(at);
	default: return interp_get64(at);
	}
}

/* Elements of 8 bytes are lanes of 64 bits, others of 32. */
static uint64_t lane_of(const void *v, unsigned l, unsigned bytes)
{
	return bytes == 8 ? ((const uint64_t *)v)[l] : ((const uint32_t *)v)[l];
}

static void put(char *at, uint64_t value, unsigned bytes)
{
	const uint32_t word = (uint32_t)value;

	switch (bytes) {
	case 1: *at = (char)(word & 0xff); break;
	case 2: interp_put16(at, (uint16_t)(word & 0xffff)); break;
	case 4: interp_put32(at, word); break;
	default: memcpy(at, &value, 8); break;
	}
}

/* dst may be b: each lane reads its own index only. */
static void gather(const struct interp_ins *in, char *frame, const uint32_t *mask, unsigned lanes, unsigned bytes)
{
	const char *at = INTERP_ADDRESS(in->a);
	const uint32_t *index = INTERP_REG(in->b);
	void *d = INTERP_REG(in->dst);

	for (unsigned l = 0; l < lanes; l++) {
		const uint64_t v = !mask || mask[l] ? get(at + (size_t)index[l] * bytes, bytes) : 0;
		if (bytes == 8)
			((uint64_t *)d)[l] = v;
		else
			((uint32_t *)d)[l] = (uint32_t)v;
	}
}

static bool are_distinct(const uint32_t *index, const uint32_t *mask, unsigned lanes)
{
	for (unsigned l = 0; l < lanes; l++)
		for (unsigned k = 0; k < l; k++)
			if (index[k] == index[l] && (!mask || (mask[k] && mask[l])))
				return false;
	return true;
}

/* What there is, and what an update by v makes of it. */
static uint32_t updated(unsigned op, uint32_t old, uint32_t v)
{
	switch (op) {
	case IR_atomic_min: return (int32_t)old < (int32_t)v ? old : v;
	case IR_atomic_max: return (int32_t)old > (int32_t)v ? old : v;
	case IR_atomic_min_unsigned: return old < v ? old : v;
	case IR_atomic_max_unsigned: return old > v ? old : v;
	case IR_atomic_and: return old & v;
	case IR_atomic_or: return old | v;
	default: return old + v;
	}
}

static void update(unsigned op, char *at, uint64_t v, unsigned bytes)
{
	uint32_t *word = (uint32_t *)(void *)at, old;

	if (bytes == 8) {
		__atomic_fetch_add((uint64_t *)(void *)at, v, __ATOMIC_RELAXED);
		return;
	}
	old = __atomic_load_n(word, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(word, &old, updated(op, old, (uint32_t)v), true, __ATOMIC_RELAXED,
	                                    __ATOMIC_RELAXED))
		;
}

bool interp_index_row(const struct interp_ins *in, char *frame, unsigned lanes)
{
	const unsigned op = ir_facts[in->row].op, bytes = ir_types[ir_facts[in->row].type].bytes;
	const uint32_t *mask = in->mask ? INTERP_REG(in->mask) : NULL, *index = INTERP_REG(in->b);
	char *at = INTERP_ADDRESS(in->a);

	if (op == IR_gather_at) {
		gather(in, frame, mask, lanes, bytes);
		return true;
	}
	if (op == IR_scatter && !are_distinct(index, mask, lanes))
		return false;
	for (unsigned l = 0; l < lanes; l++) {
		const uint64_t v = lane_of(INTERP_REG(in->c), l, bytes);
		char *to;
		if (mask && !mask[l])
			continue;
		to = at + (size_t)index[l] * bytes;
		if (op == IR_scatter)
			put(to, v, bytes);
		else
			update(op, to, v, bytes);
	}
	return true;
}
