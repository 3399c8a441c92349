/* tests/jit/rdna_build.h - short words for building RDNA kernels on machine registers. */
#ifndef TESTS_RDNA_BUILD_H
#define TESTS_RDNA_BUILD_H

#include "jit/rdna/lir.h"

typedef struct rdna_lir_operand operand;
#define NONE ((operand){ 0 })

static inline operand v(unsigned i) { return rdna_lir_fixed(RDNA_V0 + i, 1); }
static inline operand vn(unsigned i, unsigned n) { return rdna_lir_fixed(RDNA_V0 + i, n); }
static inline operand s(unsigned i) { return rdna_lir_fixed(i, 1); }
static inline operand sn(unsigned i, unsigned n) { return rdna_lir_fixed(i, n); }
static inline operand imm(uint32_t x) { return rdna_lir_imm(x); }

static inline struct rdna_lir_ins *put(struct rdna_lir *l, unsigned op, operand d, operand a, operand b, operand c)
{
	struct rdna_lir_ins *i = rdna_lir_add(l, op);
	i->d[0] = d;
	i->s[0] = a;
	i->s[1] = b;
	i->s[2] = c;
	return i;
}
static inline struct rdna_lir_ins *put_global(struct rdna_lir *l, unsigned op, operand data, unsigned address,
                                              unsigned base, int32_t offset)
{
	bool load = !(rdna_lir_facts(op) & RDNA_IS_STORE);
	struct rdna_lir_ins *i =
		load ? put(l, op, data, v(address), NONE, NONE) : put(l, op, NONE, v(address), data, NONE);
	i->saddr = sn(base, 2);
	i->offset = offset;
	return i;
}
static inline struct rdna_lir_ins *put_scalar(struct rdna_lir *l, unsigned op, operand d, unsigned base, int32_t offset,
                                              enum rdna_memory memory)
{
	struct rdna_lir_ins *i = put(l, op, d, sn(base, 2), NONE, NONE);
	i->offset = offset;
	i->memory = (uint8_t)memory;
	return i;
}
static inline struct rdna_lir_ins *put_lds(struct rdna_lir *l, unsigned op, operand data, unsigned address,
                                           int32_t offset)
{
	bool load = !(rdna_lir_facts(op) & RDNA_IS_STORE);
	struct rdna_lir_ins *i =
		load ? put(l, op, data, v(address), NONE, NONE) : put(l, op, NONE, v(address), data, NONE);
	i->offset = offset;
	return i;
}
static inline void put_barrier(struct rdna_lir *l)
{
	if (l->gen != RDNA_GFX12) {
		rdna_lir_add(l, RDNA_S_BARRIER);
		return;
	}
	put(l, RDNA_S_BARRIER_SIGNAL, NONE, imm(UINT32_MAX), NONE, NONE);
	put(l, RDNA_S_BARRIER_WAIT, NONE, imm(0xffff), NONE, NONE);
}

#endif
