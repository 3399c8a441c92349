/* sim/exec_salu.c - what scalar arithmetic does: one function per row of salu.def.
 *
 * Owns: reading and writing scalar operands. The float rows of gfx12 use the host's float arithmetic in the default
 * mode.
 */
#include "sim/lanes.h"
#include "sim/wave.h"

uint32_t sim_scalar(const struct sim_wave *w, const struct sim_src *s)
{
	switch (s->kind) {
	case SRC_SGPR: return w->s[s->reg];
	case SRC_SPECIAL: return s->reg == REG_SCC ? w->s[REG_SCC] : w->s[s->reg] == 0;
	case SRC_VGPR: return 0;
	}
	return s->lo;
}

uint64_t sim_scalar64(const struct sim_wave *w, const struct sim_src *s)
{
	if (s->kind == SRC_SGPR)
		return (uint64_t)w->s[s->reg + 1] << 32 | w->s[s->reg];
	if (s->kind == SRC_CONST)
		return (uint64_t)s->hi << 32 | s->lo;
	return sim_scalar(w, s);
}

void sim_set_sgpr(struct sim_wave *w, unsigned reg, uint32_t v)
{
	if (reg != 124)
		w->s[reg] = v; /* 124 is NULL inside */
}

#define EX (w->s[REG_EXEC])
#define TYPE_u uint32_t
#define TYPE_i int32_t
#define TYPE_U uint64_t
#define TYPE_I int64_t
#define TYPE_f float
#define TYPE_k int32_t
#define TYPE_z uint32_t
#define TYPE_r uint32_t
#define TYPE__ int
#define GET_u(s) sim_scalar(w, s)
#define GET_i(s) ((int32_t)sim_scalar(w, s))
#define GET_U(s) sim_scalar64(w, s)
#define GET_I(s) ((int64_t)sim_scalar64(w, s))
#define GET_f(s) bits_f(sim_scalar(w, s))
#define GET_k(s) ((int32_t)(s)->lo)
#define GET_z(s) ((s)->lo)
#define GET_r(s) sim_scalar(w, s)
#define GET__(s) 0
#define PUT_u(v) sim_set_sgpr(w, in->dst, v)
#define PUT_i(v) sim_set_sgpr(w, in->dst, (uint32_t)(v))
#define PUT_f(v) sim_set_sgpr(w, in->dst, f_bits(v))
#define PUT_U(v) put64(w, in->dst, v)
#define PUT_I(v) put64(w, in->dst, (uint64_t)(v))
#define PUT__(v) (void)(v)
#define RESULT_u uint32_t
#define RESULT_i int32_t
#define RESULT_U uint64_t
#define RESULT_I int64_t
#define RESULT_f float
#define RESULT__ uint32_t
#define SCC_Z w->s[REG_SCC] = r != 0
#define SCC_K w->s[REG_SCC] = cc & 1
#define SCC__ (void)cc
#define SCC_R (void)cc

static inline void put64(struct sim_wave *w, unsigned reg, uint64_t v)
{
	if (reg == 124)
		return;
	w->s[reg] = (uint32_t)v;
	w->s[reg + 1] = (uint32_t)(v >> 32);
}

LANE uint32_t carry_add(uint32_t a, uint32_t b, uint32_t *cc)
{
	uint64_t r = (uint64_t)a + b + *cc;
	*cc = (uint32_t)(r >> 32);
	return (uint32_t)r;
}
LANE uint32_t carry_sub(uint32_t a, uint32_t b, uint32_t *cc)
{
	uint64_t r = (uint64_t)a - b - *cc;
	*cc = (uint32_t)(r >> 32) & 1;
	return (uint32_t)r;
}
LANE uint32_t shl_add(uint32_t a, uint32_t b, unsigned n, uint32_t *cc)
{
	uint64_t r = ((uint64_t)a << n) + b;
	*cc = r >> 32 != 0;
	return (uint32_t)r;
}
/* Scalar fields: offset in bits 4..0 (5..0 for 64 bits), width in bits 22..16. */
LANE uint32_t bfe_s(uint32_t a, uint32_t b, bool sign)
{
	uint32_t off = b & 31, n = b >> 16 & 0x7f;
	if (n == 0)
		return 0;
	if (n > 32 - off)
		n = 32 - off;
	return sign ? (uint32_t)((int32_t)(a << (32 - off - n)) >> (32 - n)) : a >> off & (0xffffffffu >> (32 - n));
}
LANE uint64_t bfe_s64(uint64_t a, uint32_t b, bool sign)
{
	uint32_t off = b & 63, n = b >> 16 & 0x7f;
	if (n == 0)
		return 0;
	if (n > 64 - off)
		n = 64 - off;
	return sign ? (uint64_t)((int64_t)(a << (64 - off - n)) >> (64 - n)) : a >> off & (~0ull >> (64 - n));
}
LANE uint32_t save_exec(struct sim_wave *w, uint32_t v, uint32_t *cc)
{
	uint32_t old = EX;
	EX = v;
	*cc = v != 0;
	return old;
}

#define SALU(fmt, name, g10, g11, g12, D, A, B, scc, expr) \
	void exec_s_##name(struct sim_wave *w, const struct sim_inst *in) \
	{ \
		TYPE_##A a = GET_##A(&in->src[0]); \
		TYPE_##B b = GET_##B(&in->src[1]); \
		uint32_t cc = w->s[REG_SCC]; \
		(void)a; \
		(void)b; \
		(void)cc; \
		RESULT_##D r = (expr); \
		PUT_##D(r); \
		SCC_##scc; \
	}
#include "sim/salu.def"
