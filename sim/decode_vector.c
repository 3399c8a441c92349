/* sim/decode_vector.c - VOP1, VOP2, VOPC, VOP3, VOP3P and VOPD, with DPP and SDWA.
 *
 * Owns: the fields of those formats on every generation, the constant bus rule and VOPD's register rules.
 */
#include <string.h>

#include "sim/wave.h"

/* What a format says beside the operands. */
struct vector_fields {
	unsigned src[3], vdst, sdst;
	unsigned neg, abs, op_sel, op_sel_hi, neg_hi, clamp, omod;
	bool vop3, vop3p;
};

static bool is_16(char t) { return t == 'h' || t == 'e' || t == 'w' || t == 's' || t == 'H'; }
static bool is_float(char t) { return t == 'f' || t == 'h' || t == 'd' || t == 'F' || t == 'H' || t == 'Z'; }

static bool extra_word(struct decode *d, uint32_t *out)
{
	if (d->words >= d->n)
		return decode_fail(d, "its DPP or SDWA word lies beyond the end of the code");
	*out = d->w[d->words++];
	return true;
}

static bool take_dpp16(struct decode *d, struct vector_fields *f)
{
	struct sim_inst *in = d->in;
	uint32_t x = 0;
	if (!extra_word(d, &x))
		return false;
	in->dpp = DPP_16;
	f->src[0] = 256 + (x & 0xff);
	in->dpp_select = x >> 8 & 0x1ff;
	in->fetch_inactive = x >> 18 & 1;
	in->bound_ctrl = x >> 19 & 1;
	in->bank_mask = x >> 24 & 15;
	in->row_mask = (uint8_t)(x >> 28);
	if (!f->vop3) {
		f->neg |= (x >> 20 & 1) | (x >> 22 & 1) << 1;
		f->abs |= (x >> 21 & 1) | (x >> 23 & 1) << 1;
	}
	unsigned c = in->dpp_select;
	bool known = c <= 0xff || (c > 0x100 && c < 0x110) || (c > 0x110 && c < 0x120) || (c > 0x120 && c < 0x130) ||
	             c == 0x140 || c == 0x141 || (c >= 0x150 && c <= 0x16f);
	return known || decode_fail(d, "its DPP control names no permutation");
}

static bool take_sdwa(struct decode *d, struct vector_fields *f)
{
	struct sim_inst *in = d->in;
	uint32_t x = 0;
	if (!extra_word(d, &x))
		return false;
	in->dpp = SDWA;
	f->src[0] = (x >> 23 & 1 ? 0 : 256) + (x & 0xff);
	if (in->op->format != FMT_VOP1)
		f->src[1] = (x >> 31 ? 0 : 256) + (f->src[1] & 0xff);
	if (in->op->format == FMT_VOPC) {
		f->sdst = x >> 15 & 1 ? x >> 8 & 0x7f : REG_VCC;
	} else {
		in->dst_sel = x >> 8 & 7;
		in->dst_unused = x >> 11 & 3;
		f->clamp = x >> 13 & 1;
		f->omod = x >> 14 & 3;
	}
	in->src[0].sdwa = (uint8_t)(1 + (x >> 16 & 7));
	in->src[1].sdwa = (uint8_t)(1 + (x >> 24 & 7));
	in->src[0].mods = x >> 19 & 1 ? MOD_SEXT : 0;
	in->src[1].mods = x >> 27 & 1 ? MOD_SEXT : 0;
	f->neg |= (x >> 20 & 1) | (x >> 28 & 1) << 1;
	f->abs |= (x >> 21 & 1) | (x >> 29 & 1) << 1;
	return true;
}

static bool take_prefix(struct decode *d, struct vector_fields *f)
{
	struct sim_inst *in = d->in;
	unsigned enc = f->src[0];
	if (enc == 250)
		return take_dpp16(d, f);
	if (enc == 249)
		return d->dev->gen == 0 && !f->vop3 ? take_sdwa(d, f) : decode_fail(d, "SDWA exists on gfx10 only");
	if (enc == 233 || enc == 234) {
		uint32_t x = 0;
		if (!extra_word(d, &x))
			return false;
		in->dpp = DPP_8;
		f->src[0] = 256 + (x & 0xff);
		in->dpp_select = x >> 8;
		in->fetch_inactive = enc == 234;
		in->bound_ctrl = 1;
	}
	return true;
}

/* At most two scalar values reach a vector instruction: SGPRs, and the literal. */
static bool check_bus(struct decode *d)
{
	struct sim_inst *in = d->in;
	unsigned seen[4], n = 0;
	for (unsigned k = 0; k < 3; k++) {
		if (in->src[k].kind != SRC_SGPR && in->src[k].kind != SRC_SPECIAL)
			continue;
		bool known = false;
		for (unsigned i = 0; i < n; i++)
			known |= seen[i] == in->src[k].reg;
		if (!known)
			seen[n++] = in->src[k].reg;
	}
	bool wide_shift = in->id == OP_V_lshlrev_b64 || in->id == OP_V_lshrrev_b64 || in->id == OP_V_ashrrev_i64;
	return n + d->literal <= (wide_shift ? 1u : 2u) ||
	       decode_fail(d, "it reads more scalar values than the constant bus carries");
}

/* The modifiers of a source of a packed instruction; t: its type. */
static bool packed_modifiers(struct decode *d, const struct vector_fields *f, unsigned k, char t, unsigned enc)
{
	struct sim_src *s = &d->in->src[k];
	bool packed = t == 'P' || t == 'Q', mix = strchr(d->in->op->flags, 'X') != NULL;
	if (packed || mix) {
		if (f->op_sel >> k & 1)
			s->mods |= MOD_LO_HI;
		if (f->op_sel_hi >> k & 1)
			s->mods |= MOD_HI_HI;
		if (mix && (f->op_sel_hi >> k & 1))
			s->type = 'X';
		if (mix && s->kind == SRC_CONST && (f->op_sel_hi >> k & 1) && !decode_src(d, enc, 'h', s))
			return false;
		if (mix && (f->op_sel_hi >> k & 1)) {
			s->type = 'X';
			s->mods |= f->op_sel >> k & 1 ? MOD_LO_HI : 0;
		}
	}
	if (f->neg >> k & 1 && (packed || is_float(t)))
		s->mods |= MOD_NEG;
	if (f->neg_hi >> k & 1)
		s->mods |= mix ? MOD_ABS : packed ? MOD_NEG_HI : 0;
	return true;
}

/* The same of another; upper: it names the upper half of a register. */
static bool plain_modifiers(struct decode *d, const struct vector_fields *f, unsigned k, char t, bool upper)
{
	struct sim_src *s = &d->in->src[k];
	if (upper && is_16(t))
		s->mods |= MOD_LO_HI;
	bool masked = t == 'u' && d->in->id == OP_V_cndmask_b32;
	if (masked && ((f->neg | f->abs) >> k & 1))
		s->type = 'f';
	else if (((f->neg | f->abs) >> k & 1) && !is_float(t))
		return decode_fail(d, "it negates an integer operand");
	if (f->neg >> k & 1)
		s->mods |= MOD_NEG;
	if (f->abs >> k & 1)
		s->mods |= MOD_ABS;
	return true;
}

static bool one_source(struct decode *d, struct vector_fields *f, unsigned k, char t, bool true16)
{
	struct sim_inst *in = d->in;
	unsigned enc = f->src[k], hi = f->vop3 ? f->op_sel >> k & 1 : 0;
	uint8_t sdwa = in->src[k].sdwa, mods = in->src[k].mods;
	if (true16 && is_16(t) && enc >= 384) {
		enc -= 128;
		hi = 1;
	}
	if (t == 'M') {
		if (enc >= 256)
			return decode_fail(d, "its lane mask is not a scalar register");
		if (!decode_src(d, enc, 'u', &in->src[k]))
			return false;
		in->src[k].type = 'M';
		decode_use_src(d, &in->src[k]);
		return true;
	}
	if (t == 'S' && enc >= 256)
		return decode_fail(d, "its lane select is not a scalar register");
	if (!decode_src(d, enc, t == 'S' ? 'u' : t, &in->src[k]))
		return false;
	struct sim_src *s = &in->src[k];
	s->sdwa = sdwa == 7 ? 0 : sdwa;
	s->mods = mods;
	if (!(f->vop3p ? packed_modifiers(d, f, k, t, enc) : plain_modifiers(d, f, k, t, hi)))
		return false;
	decode_use(d, 0, 0, false);
	d->in->n_use--;
	if (s->kind == SRC_VGPR && k == 0 && (in->dpp == DPP_8 || in->dpp == DPP_16))
		decode_use(d, s->reg, s->words, true);
	else
		decode_use_src(d, s);
	return true;
}

static bool destination(struct decode *d, struct vector_fields *f, bool true16)
{
	struct sim_inst *in = d->in;
	char t = in->dtype;
	if (t == '_')
		return true;
	if (t == 'S')
		return decode_sdst(d, f->vdst & 0x7f, 1, &in->dst);
	if (t == 'm') {
		bool cmpx = in->id >= OP_CMP_f_f16 && !strncmp(in->op->name, "v_cmpx", 6);
		return decode_sdst(d, cmpx ? REG_EXEC : f->sdst, 1, &in->sdst);
	}
	unsigned vdst = f->vdst;
	if (true16 && is_16(t) && vdst >= 128) {
		vdst -= 128;
		in->dst_hi = 1;
	}
	if (f->vop3 && !f->vop3p && is_16(t) && (f->op_sel & 8))
		in->dst_hi = 1;
	if (in->id == OP_V_fma_mixhi_f16)
		in->dst_hi = 1;
	in->dst = (uint16_t)(REG_VGPR + vdst);
	if (t == 'k' || t == 'K') {
		if (!decode_sdst(d, f->sdst, 1, &in->sdst))
			return false;
	}
	decode_def(d, in->dst, type_words(t));
	return true;
}

static bool finish_vector(struct decode *d, struct vector_fields *f)
{
	struct sim_inst *in = d->in;
	const struct sim_op *op = in->op;
	bool true16 = d->dev->gen >= 1 && !f->vop3;
	if (!take_prefix(d, f))
		return false;
	for (unsigned k = 0; k < 3; k++)
		if (op->types[k + 1] != '_' && !one_source(d, f, k, op->types[k + 1], true16))
			return false;
	if (!destination(d, f, true16))
		return false;
	if (in->id == OP_V_div_fmas_f32 || in->id == OP_V_div_fmas_f64)
		decode_use(d, REG_VCC, 1, false);
	if (in->id == OP_X_writelane_b32 || in->id == OP_X_swap_b32)
		decode_use(d, in->dst, 1, true);
	in->clamp = (uint8_t)f->clamp;
	in->omod = (uint8_t)f->omod;
	char t = in->dtype;
	bool float_result = t == 'f' || t == 'h' || t == 'e' || t == 'd' || t == 'P',
	     int_clamp = strchr(op->flags, 'C') != NULL;
	if (f->omod && !(t == 'f' || t == 'h' || t == 'e' || t == 'd'))
		return decode_fail(d, "it has an output modifier that its type does not take");
	if (f->clamp && !float_result && !int_clamp && t != 'm')
		return decode_fail(d, "it clamps a result of a type for which that is not modelled");
	if (f->clamp && t == 'm')
		return decode_fail(d, "it is a comparison with clamp");
	in->par = (uint16_t)((f->neg & 7) | (f->clamp ? 256u : 0));
	if (strchr(op->flags, 'T'))
		in->class = SIM_CLASS_TRANS;
	if (strchr(op->flags, 'O'))
		in->class = SIM_CLASS_DOT;
	for (unsigned k = 0; k < 3; k++)
		in->slow |= in->src[k].mods || in->src[k].sdwa || in->src[k].type == 'X';
	in->slow |= in->dpp || in->clamp || in->omod || strchr(op->flags, 'P');
	return check_bus(d);
}

/* fmac reads its destination; fmamk and fmaak a constant. */
static bool third_source(struct decode *d, struct vector_fields *f)
{
	const char *flags = d->in->op->flags;
	if (strchr(flags, 'D'))
		f->src[2] = 256 + f->vdst;
	else if (strchr(flags, 'L')) {
		f->src[2] = 255;
		if (d->in->id == OP_V_fmamk_f32 || d->in->id == OP_V_fmamk_f16) {
			f->src[2] = f->src[1];
			f->src[1] = 255;
		}
	} else if (d->in->op->types[3] == 'M')
		f->src[2] = REG_VCC;
	return true;
}

static bool decode_vop12c(struct decode *d)
{
	uint32_t w = d->w[0];
	struct vector_fields f = {
		.src = { w & 0x1ff, 256 + (w >> 9 & 0xff), 0 }, .vdst = w >> 17 & 0xff, .sdst = REG_VCC
	};
	if (w >> 25 == 0x3f) {
		if (!decode_op(d, FMT_VOP1, w >> 9 & 0xff))
			return false;
		f.src[1] = 0;
	} else if (w >> 25 == 0x3e) {
		if (!decode_op(d, FMT_VOPC, w >> 17 & 0xff))
			return false;
	} else if (!decode_op(d, FMT_VOP2, w >> 25))
		return false;
	third_source(d, &f);
	return finish_vector(d, &f);
}

static bool decode_vop3(struct decode *d)
{
	uint32_t w = d->w[0];
	struct sim_inst *in = d->in;
	if (d->n < 2)
		return decode_fail(d, "its second word lies beyond the end of the code");
	d->words = 2;
	uint32_t x = d->w[1];
	if (!decode_op(d, FMT_VOP3, w >> 16 & 0x3ff))
		return false;
	bool b = in->dtype == 'k' || in->dtype == 'K';
	struct vector_fields f = {
		.src = { x & 0x1ff, x >> 9 & 0x1ff, x >> 18 & 0x1ff },
		.vdst = w & 0xff,
		.sdst = b ? w >> 8 & 0x7f : w & 0x7f,
		.neg = x >> 29,
		.abs = b ? 0 : w >> 8 & 7,
		.op_sel = b ? 0 : w >> 11 & 15,
		.clamp = w >> 15 & 1,
		.omod = x >> 27 & 3,
		.vop3 = true
	};
	if (strchr(in->op->flags, 'D'))
		f.src[2] = 256 + f.vdst;
	if (strchr(in->op->flags, 'L'))
		return decode_fail(d, "its opcode has no VOP3 form");
	if (in->id == OP_X_permlane16_b32 || in->id == OP_X_permlanex16_b32) {
		in->fetch_inactive = f.op_sel & 1;
		in->bound_ctrl = f.op_sel >> 1 & 1;
		f.op_sel = 0;
	}
	return finish_vector(d, &f);
}

static bool wmma_operands(struct decode *d, struct vector_fields *f)
{
	struct sim_inst *in = d->in;
	bool old = d->dev->gen == 1,
	     f16 = in->id == OP_X_wmma_f32_16x16x16_f16 || in->id == OP_X_wmma_f32_16x16x16_bf16;
	unsigned ab = f16 ? (old ? 8 : 4) : in->id == OP_X_wmma_i32_16x16x16_iu8 ? (old ? 4 : 2) : old ? 2 : 1;
	if (d->dev->gen == 0)
		return decode_fail(d, "its opcode is not one of this generation");
	if (f->src[0] < 256 || f->src[1] < 256)
		return decode_fail(d, "a matrix operand is not a vector register");
	if ((f16 && (f->neg & 3)) || f->neg_hi || (!f16 && (f->neg & 4)) || f->op_sel)
		return decode_fail(d, "it modifies a matrix operand in a way that is not modelled");
	for (unsigned k = 0; k < 3; k++) {
		if (!decode_src(d, f->src[k], f16 ? 'f' : 'u', &in->src[k]))
			return false;
		if (in->src[k].kind == SRC_SGPR)
			return decode_fail(d, "a matrix operand is a scalar register");
		in->src[k].words = (uint8_t)(k < 2 ? ab : 8);
		decode_use_src(d, &in->src[k]);
	}
	if (f16 && (f->neg & 4))
		in->src[2].mods = MOD_NEG;
	in->dst = (uint16_t)(REG_VGPR + f->vdst);
	decode_def(d, in->dst, 8);
	in->clamp = (uint8_t)f->clamp;
	in->par = (uint16_t)(f->neg & 3);
	return true;
}

static bool decode_vop3p(struct decode *d)
{
	uint32_t w = d->w[0];
	if (d->n < 2)
		return decode_fail(d, "its second word lies beyond the end of the code");
	d->words = 2;
	uint32_t x = d->w[1];
	if (!decode_op(d, FMT_VOP3P, w >> 16 & 0x7f))
		return false;
	struct vector_fields f = {
		.src = { x & 0x1ff, x >> 9 & 0x1ff, x >> 18 & 0x1ff },
		.vdst = w & 0xff,
		.neg_hi = w >> 8 & 7,
		.op_sel = w >> 11 & 7,
		.op_sel_hi = (x >> 27 & 3) | (w >> 14 & 1) << 2,
		.neg = x >> 29,
		.clamp = w >> 15 & 1,
		.vop3 = true,
		.vop3p = true
	};
	if (d->in->class == SIM_CLASS_WMMA)
		return wmma_operands(d, &f);
	return finish_vector(d, &f);
}

static bool dual_half(struct decode *d, unsigned code, bool y, unsigned src0, unsigned src1, unsigned vdst)
{
	struct sim_inst *in = d->in;
	unsigned id = code < 32 ? d->dev->vopd[y][code] : 0;
	if (!id)
		return decode_fail(d, "a half of it has an opcode that the simulator does not know");
	if (src0 == 249 || src0 == 250 || src0 == 233 || src0 == 234)
		return decode_fail(d, "a half of it has a DPP operand");
	in->id = (uint16_t)id;
	in->op = &sim_ops[id];
	in->lane = d->dev->lanes[id];
	in->dtype = sim_ops[id].types[0];
	in->class = SIM_CLASS_VOPD;
	struct vector_fields f = { .src = { src0, 256 + src1, 0 }, .vdst = vdst, .sdst = REG_VCC, .vop3 = true };
	if (id == OP_V_mov_b32)
		f.src[1] = 0;
	third_source(d, &f);
	return finish_vector(d, &f);
}

static bool same_bank(const struct sim_src *a, const struct sim_src *b, unsigned banks, bool same_ok)
{
	if (a->kind != SRC_VGPR || b->kind != SRC_VGPR)
		return false;
	if (same_ok && a->reg == b->reg)
		return false;
	return a->reg % banks == b->reg % banks;
}

/* Which source is the third read port's: the addend of fmamk and the destination of fmac. */
static bool check_dual(struct decode *d, const struct sim_inst *x, const struct sim_inst *y)
{
	bool same_ok = d->dev->gen == 2;
	if (((x->dst ^ y->dst) & 1) == 0)
		return decode_fail(d, "both halves write registers of the same parity");
	if (same_bank(&x->src[0], &y->src[0], 4, same_ok))
		return decode_fail(d, "the first sources of both halves lie in the same bank");
	const struct sim_src *x1 = &x->src[x->id == OP_V_fmamk_f32 ? 2 : 1],
			     *y1 = &y->src[y->id == OP_V_fmamk_f32 ? 2 : 1];
	if (same_bank(x1, y1, 4, same_ok))
		return decode_fail(d, "the second sources of both halves lie in the same bank");
	bool fx = strchr(x->op->flags, 'D') != NULL, fy = strchr(y->op->flags, 'D') != NULL;
	if (fx && fy && same_bank(&x->src[2], &y->src[2], 2, same_ok))
		return decode_fail(d, "the third sources of both halves have the same parity");
	unsigned seen[6], n = 0;
	for (unsigned h = 0; h < 2; h++)
		for (unsigned k = 0; k < 3; k++) {
			const struct sim_src *s = &(h ? y : x)->src[k];
			if (s->kind != SRC_SGPR)
				continue;
			bool known = false;
			for (unsigned i = 0; i < n; i++)
				known |= seen[i] == s->reg;
			if (!known)
				seen[n++] = s->reg;
		}
	return n + d->literal <= 2 ||
	       decode_fail(d, "both halves together read more scalar values than the constant bus carries");
}

static bool decode_vopd(struct decode *d)
{
	uint32_t w = d->w[0];
	if (d->n < 2)
		return decode_fail(d, "its second word lies beyond the end of the code");
	d->words = 2;
	uint32_t v = d->w[1];
	struct sim_inst *x = d->in, *y = d->half;
	unsigned xdst = v >> 24, ydst = (v >> 17 & 0x7f) << 1 | (~xdst & 1);
	if (!dual_half(d, w >> 22 & 15, false, w & 0x1ff, w >> 9 & 0xff, xdst))
		return false;
	uint32_t index = x->index;
	memset(y, 0, sizeof *y);
	y->row_mask = y->bank_mask = 15;
	y->index = index;
	d->in = y;
	bool ok = dual_half(d, w >> 17 & 31, true, v & 0x1ff, v >> 9 & 0xff, ydst);
	d->in = x;
	if (!ok || !check_dual(d, x, y))
		return false;
	x->other = y;
	x->fn = exec_vopd;
	if (y->vmax > x->vmax)
		x->vmax = y->vmax;
	return true;
}

bool decode_vector(struct decode *d)
{
	uint32_t w = d->w[0];
	if (!(w >> 31))
		return decode_vop12c(d);
	if (w >> 26 == 0x35)
		return decode_vop3(d);
	if (w >> 26 == 0x32)
		return decode_vopd(d);
	return decode_vop3p(d);
}
