/* sim/decode_scalar.c - SOP1, SOP2, SOPC, SOPK, SOPP and SMEM.
 *
 * Owns: the fields of those formats on every generation, and which scalar registers an instruction reads and writes
 * besides its operands (SCC, EXEC, VCC).
 */
#include <string.h>

#include "sim/wave.h"

static bool scalar_sources(struct decode *d, unsigned s0, unsigned s1)
{
	struct sim_inst *in = d->in;
	const unsigned enc[2] = { s0, s1 };
	for (unsigned k = 0; k < 2; k++) {
		char t = in->op->types[k + 1];
		if (t == '_')
			continue;
		if (t == 'r') {
			in->src[k] = (struct sim_src){ .kind = SRC_SGPR, .words = 1, .type = 'u', .reg = in->dst };
			decode_use(d, in->dst, 1, false);
		} else if (t == 'k' || t == 'z') {
			in->src[k] = (struct sim_src){
				.kind = SRC_CONST,
				.words = 1,
				.type = t,
				.lo = t == 'k' ? (uint32_t)(int32_t)(int16_t)in->imm : (uint32_t)in->imm & 0xffff
			};
		} else {
			if (!decode_src(d, enc[k], t, &in->src[k]))
				return false;
			decode_use_src(d, &in->src[k]);
		}
	}
	return true;
}

/* SCC, as the row's letter says; saveexec also touches EXEC. */
static void scalar_scc(struct decode *d)
{
	struct sim_inst *in = d->in;
	char scc = in->op->flags[0];
	bool adc = in->id == OP_S_add_co_ci_u32 || in->id == OP_S_sub_co_ci_u32;
	if (in->fn == NULL)
		return;
	if ((scc == 'R' && in->id != OP_S_fmac_f32) || adc)
		decode_use(d, REG_SCC, 1, false);
	if (scc == 'Z' || scc == 'K')
		decode_def(d, REG_SCC, 1);
	if (strstr(in->op->name, "exec_b32")) {
		decode_use(d, REG_EXEC, 1, false);
		decode_def(d, REG_EXEC, 1);
	}
	if (in->id == OP_S_fmac_f32)
		decode_use(d, in->dst, 1, false);
}

static bool decode_sop1(struct decode *d)
{
	uint32_t w = d->w[0];
	struct sim_inst *in = d->in;
	if (!decode_op(d, FMT_SOP1, w >> 8 & 0xff))
		return false;
	char t = in->dtype;
	if (t != '_' && !decode_sdst(d, w >> 16 & 0x7f, type_words(t), &in->dst))
		return false;
	if (!scalar_sources(d, w & 0xff, 0))
		return false;
	scalar_scc(d);
	return true;
}

static bool decode_sop2(struct decode *d)
{
	uint32_t w = d->w[0];
	struct sim_inst *in = d->in;
	if (!decode_op(d, FMT_SOP2, w >> 23 & 0x7f))
		return false;
	if (!decode_sdst(d, w >> 16 & 0x7f, type_words(in->dtype), &in->dst))
		return false;
	if (!scalar_sources(d, w & 0xff, w >> 8 & 0xff))
		return false;
	if (in->id == OP_S_fmaak_f32 || in->id == OP_S_fmamk_f32) {
		if (!decode_literal(d))
			return false;
		in->src[2].lo = d->literal_value;
	}
	scalar_scc(d);
	return true;
}

static bool decode_sopc(struct decode *d)
{
	uint32_t w = d->w[0];
	if (!decode_op(d, FMT_SOPC, w >> 16 & 0x7f) || !scalar_sources(d, w & 0xff, w >> 8 & 0xff))
		return false;
	scalar_scc(d);
	return true;
}

static bool decode_sopk(struct decode *d)
{
	uint32_t w = d->w[0];
	struct sim_inst *in = d->in;
	if (!decode_op(d, FMT_SOPK, w >> 23 & 0x1f))
		return false;
	in->imm = (int32_t)(w & 0xffff);
	unsigned enc = w >> 16 & 0x7f;
	if (in->dtype != '_') {
		if (!decode_sdst(d, enc, 1, &in->dst))
			return false;
	} else
		in->dst = (uint16_t)enc;
	if (!scalar_sources(d, 0, 0))
		return false;
	if (in->id == OP_X_setreg_imm32_b32) {
		if (!decode_literal(d))
			return false;
		in->src[0] = (struct sim_src){ .kind = SRC_CONST, .words = 1, .type = 'u', .lo = d->literal_value };
	}
	if (in->class == SIM_CLASS_WAIT && enc != (d->dev->gen ? 124u : 125u))
		return decode_fail(d, "a wait for a counter given by a register is not modelled");
	scalar_scc(d);
	return true;
}

static bool decode_sopp(struct decode *d)
{
	uint32_t w = d->w[0];
	struct sim_inst *in = d->in;
	if (!decode_op(d, FMT_SOPP, w >> 16 & 0x7f))
		return false;
	in->imm = (int32_t)(w & 0xffff);
	if (in->id == OP_X_cbranch_scc0 || in->id == OP_X_cbranch_scc1)
		decode_use(d, REG_SCC, 1, false);
	if (in->id == OP_X_cbranch_vccz || in->id == OP_X_cbranch_vccnz)
		decode_use(d, REG_VCC, 1, false);
	return true;
}

static bool decode_smem(struct decode *d)
{
	struct sim_inst *in = d->in;
	uint32_t w = d->w[0];
	unsigned gen = d->dev->gen;
	if (d->n < 2)
		return decode_fail(d, "its second word lies beyond the end of the code");
	d->words = 2;
	uint32_t x = d->w[1];
	if (!decode_op(d, FMT_SMEM, gen == 2 ? w >> 13 & 0x3f : w >> 18 & 0xff))
		return false;
	unsigned n = in->op->words, sdst = w >> 6 & 0x7f, base = (w & 0x3f) << 1;
	bool prefetch = in->id == OP_M_s_prefetch_inst;
	if (in->op->kind == MK_CACHE && !prefetch) {
		in->fn = exec_cache;
		return true;
	}
	if (prefetch) {
		in->fn = exec_prefetch_inst;
		in->dst = (uint16_t)((sdst & 31) + 1); /* lines */
	} else if (n == 3) {
		if (sdst & 3)
			return decode_fail(d, "a scalar destination of several registers is not aligned to four");
		in->dst = (uint16_t)sdst;
		decode_def(d, sdst, 3);
	} else if (!decode_sdst(d, sdst, n, &in->dst))
		return false;
	in->imm = gen == 2 ? (int32_t)(x << 8) >> 8 : (int32_t)(x << 11) >> 11;
	if (!decode_src(d, base, 'U', &in->src[0]) || !decode_src(d, x >> 25, 'u', &in->src[1]))
		return false;
	decode_use_src(d, &in->src[0]);
	decode_use_src(d, &in->src[1]);
	return true;
}

bool decode_scalar(struct decode *d)
{
	uint32_t w = d->w[0];
	if (w >> 26 == 0x3d)
		return decode_smem(d);
	if (w >> 23 == 0x17d)
		return decode_sop1(d);
	if (w >> 23 == 0x17e)
		return decode_sopc(d);
	if (w >> 23 == 0x17f)
		return decode_sopp(d);
	if (w >> 28 == 0xb)
		return decode_sopk(d);
	return decode_sop2(d);
}
