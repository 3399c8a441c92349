/* sim/decode.c - words to struct sim_inst: what all formats share.
 *
 * Owns: which format a first word belongs to, operand fields, literals, the lists of registers an instruction reads
 * and writes. Every word pattern that it does not know is refused with a reason; an editor must keep it so, since the
 * simulator's worth is that it never guesses.
 */
#include <stdio.h>
#include <string.h>

#include "sim/wave.h"

bool decode_fail(struct decode *d, const char *why)
{
	if (!d->why)
		d->why = why;
	return false;
}

unsigned type_words(char t) { return t == 'd' || t == 'U' || t == 'I' || t == 'Z' || t == 'K' ? 2 : t == '_' ? 0 : 1; }

void decode_use(struct decode *d, unsigned reg, unsigned n, bool any)
{
	struct sim_inst *in = d->in;
	if (in->n_use >= sizeof in->use / sizeof in->use[0]) {
		decode_fail(d, "it reads more operands than an instruction can");
		return;
	}
	in->use[in->n_use++] = (struct sim_use){ (uint16_t)reg, (uint8_t)n, any };
	if (reg >= REG_VGPR && reg - REG_VGPR + n - 1 > in->vmax)
		in->vmax = (uint8_t)(reg - REG_VGPR + n - 1);
	if (reg >= REG_VGPR && reg + n > REG_COUNT)
		decode_fail(d, "a register tuple ends beyond v255");
}

void decode_def(struct decode *d, unsigned reg, unsigned n)
{
	struct sim_inst *in = d->in;
	if (in->n_def >= sizeof in->def / sizeof in->def[0]) {
		decode_fail(d, "it writes more operands than an instruction can");
		return;
	}
	in->def[in->n_def++] = (struct sim_use){ (uint16_t)reg, (uint8_t)n, false };
	if (reg >= REG_VGPR && reg - REG_VGPR + n - 1 > in->vmax)
		in->vmax = (uint8_t)(reg - REG_VGPR + n - 1);
	if (reg >= REG_VGPR && reg + n > REG_COUNT)
		decode_fail(d, "a register tuple ends beyond v255");
}

void decode_use_src(struct decode *d, const struct sim_src *s)
{
	if (s->kind == SRC_VGPR || s->kind == SRC_SGPR)
		decode_use(d, s->reg, s->words, false);
	else if (s->kind == SRC_SPECIAL)
		decode_use(d, s->reg, 1, false);
}

/* The literal follows the instruction's own words; all operands share it. */
bool decode_literal(struct decode *d)
{
	if (d->literal)
		return true;
	if (d->words >= d->n)
		return decode_fail(d, "its literal constant lies beyond the end of the code");
	d->literal = true;
	d->literal_value = d->w[d->words];
	return true;
}

static unsigned null_code(const struct decode *d) { return d->dev->gen == 0 ? 125 : 124; }

/* Inline constants: the integers and nine floats, whose bits depend on the operand's type. */
static void inline_constant(unsigned enc, char type, struct sim_src *out)
{
	static const uint32_t f32[9] = { 0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
		                         0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983 };
	static const uint16_t f16[9] = { 0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118 };
	static const uint32_t f64[9] = { 0x3fe00000, 0xbfe00000, 0x3ff00000, 0xbff00000, 0x40000000,
		                         0xc0000000, 0x40100000, 0xc0100000, 0x3fc45f30 };
	out->kind = SRC_CONST;
	if (enc <= 208) {
		int32_t v = enc <= 192 ? (int32_t)enc - 128 : 192 - (int32_t)enc;
		out->lo = (uint32_t)v;
		out->hi = v < 0 ? ~0u : 0;
		return;
	}
	unsigned k = enc - 240;
	out->hi = 0;
	if (type == 'd' || type == 'Z' || type == 'U' || type == 'I') {
		out->hi = f64[k];
		out->lo = k == 8 ? 0x6dc9c882u : 0;
	} else if (type == 'h' || type == 'H' || type == 'P' || type == 'w' || type == 's')
		out->lo = f16[k];
	else
		out->lo = f32[k];
}

/* A source that is neither a register nor an inline constant. */
static bool special_source(struct decode *d, unsigned enc, char type, struct sim_src *out)
{
	switch (enc) {
	case 235:
		out->kind = SRC_CONST;
		out->hi = (uint32_t)(SHARED_APERTURE >> 32);
		if (out->words == 1)
			out->lo = out->hi;
		return true;
	case 237:
		out->kind = SRC_CONST;
		out->hi = (uint32_t)(PRIVATE_APERTURE >> 32);
		if (out->words == 1)
			out->lo = out->hi;
		return true;
	case 236:
	case 238:
		out->kind = SRC_CONST;
		out->lo = ~0u;
		out->hi = (uint32_t)(SHARED_APERTURE >> 32);
		return true;
	case 251:
	case 252:
	case 253:
		out->kind = SRC_SPECIAL;
		out->reg = enc == 253 ? REG_SCC : enc == 252 ? REG_EXEC : REG_VCC;
		out->lo = enc;
		return true;
	case 255:
		if (!decode_literal(d))
			return false;
		out->kind = SRC_CONST;
		out->lo = d->literal_value;
		out->hi = type == 'I' && (int32_t)out->lo < 0 ? ~0u : 0;
		if (type == 'd' || type == 'Z') {
			out->hi = out->lo;
			out->lo = 0;
		}
		return true;
	}
	return decode_fail(d, "an operand field names nothing");
}

bool decode_src(struct decode *d, unsigned enc, char type, struct sim_src *out)
{
	unsigned words = type_words(type);
	*out = (struct sim_src){ .type = type, .words = (uint8_t)words };
	if (enc >= 256) {
		out->kind = SRC_VGPR;
		out->reg = (uint16_t)enc;
		return true;
	}
	if (enc <= 127) {
		if (enc == null_code(d)) {
			out->kind = SRC_CONST;
			return true;
		}
		if (words == 2 && (enc & 1))
			return decode_fail(d, "a 64-bit scalar operand begins at an odd register");
		out->kind = SRC_SGPR;
		out->reg = (uint16_t)enc;
		if (d->dev->gen == 0 && enc == 124)
			out->reg = 125; /* M0 is kept in s[125] on every generation */
		return true;
	}
	if (enc <= 208 || (enc >= 240 && enc <= 248)) {
		inline_constant(enc, type, out);
		return true;
	}
	return special_source(d, enc, type, out);
}

bool decode_sdst(struct decode *d, unsigned enc, unsigned n, uint16_t *out)
{
	if (n > 1 && (enc & 1) && enc < 124)
		return decode_fail(d, "a scalar destination of several registers begins at an odd one");
	if (n > 2 && (enc & 3))
		return decode_fail(d, "a scalar destination of several registers is not aligned to four");
	if (enc + n > 128)
		return decode_fail(d, "a scalar destination lies beyond EXEC");
	*out = (uint16_t)enc;
	if (enc == null_code(d))
		*out = 124; /* NULL is 124 and M0 is 125 inside */
	else if (d->dev->gen == 0 && enc == 124)
		*out = 125;
	if (*out != 124)
		decode_def(d, *out, n);
	return true;
}

bool decode_op(struct decode *d, unsigned format, unsigned code)
{
	unsigned id = d->dev->table[format][code];
	if (!id)
		return decode_fail(d, "its opcode is not one that the simulator knows");
	d->in->id = (uint16_t)id;
	d->in->op = &sim_ops[id];
	d->in->fn = sim_ops[id].exec;
	d->in->class = sim_ops[id].class;
	d->in->lane = d->dev->lanes[id];
	d->in->dtype = sim_ops[id].types[0];
	return true;
}

static bool decode_any(struct decode *d)
{
	uint32_t w = d->w[0];
	unsigned top = w >> 26;
	bool gen12 = d->dev->gen == 2;
	if (!(w >> 31))
		return decode_vector(d);
	if (w >> 30 == 2)
		return decode_scalar(d);
	switch (top) {
	case 0x35:
	case 0x33: return decode_vector(d); /* VOP3, VOP3P */
	case 0x32: return d->dev->gen ? decode_vector(d) : decode_fail(d, "its format is not one of this generation");
	case 0x3d: return decode_scalar(d); /* SMEM */
	case 0x36: return decode_memory(d); /* DS */
	case 0x37:
	case 0x38: return gen12 ? decode_fail(d, "its format is not one of this generation") : decode_memory(d);
	case 0x3b: return gen12 ? decode_memory(d) : decode_fail(d, "its format is not one of this generation");
	}
	return decode_fail(d, "its format is not one that the simulator knows");
}

/* Registers that the run loop must find written, one by one. */
static void list_uses(struct sim_inst *in, const struct sim_inst *from)
{
	for (unsigned i = 0; i < from->n_use; i++)
		for (unsigned k = 0; k < from->use[i].n && !from->use[i].any; k++) {
			unsigned reg = from->use[i].reg + k;
			if (reg >= REG_VGPR && in->n_vuse < sizeof in->vuse)
				in->vuse[in->n_vuse++] = (uint8_t)(reg - REG_VGPR);
			else if (reg < REG_VGPR && in->n_suse < sizeof in->suse)
				in->suse[in->n_suse++] = (uint8_t)reg;
		}
}

/* What the run loop wants to know at a glance. */
static void digest(const struct decode *d)
{
	struct sim_inst *in = d->in;
	list_uses(in, in);
	if (in->other)
		list_uses(in, in->other);
	bool sgprs = in->n_suse > 0;
	for (unsigned i = 0; i < in->n_def; i++)
		sgprs |= in->def[i].reg < 124;
	in->hazard = in->class == SIM_CLASS_TRANS || in->class == SIM_CLASS_WMMA || in->class == SIM_CLASS_ATOMIC ||
	             in->id == OP_X_clause || (in->dtype == 'm' && in->sdst == REG_EXEC) ||
	             (d->dev->gen == 2 && (sgprs || in->id == OP_X_wait_alu || in->class == SIM_CLASS_SMEM ||
	                                   in->class == SIM_CLASS_LOAD || in->class == SIM_CLASS_STORE));
	bool one_word = in->dtype == 'f' || in->dtype == 'u' || in->dtype == 'i' || in->dtype == 'x';
	if (in->fn == exec_valu && one_word && !in->slow && in->class != SIM_CLASS_TRANS && in->id != OP_V_div_fmas_f32)
		in->fn = exec_valu_plain;
}

bool sim_decode(const struct sim_device *dev, const uint32_t *words, unsigned n, struct sim_inst *in,
                struct sim_inst *half, const char **why)
{
	struct decode d = { .dev = dev, .w = words, .n = n, .in = in, .half = half, .words = 1 };
	uint32_t index = in->index;
	memset(in, 0, sizeof *in);
	in->index = index;
	in->row_mask = in->bank_mask = 15;
	bool ok = n > 0 && decode_any(&d) && !d.why;
	in->words = (uint8_t)(d.words + d.literal);
	if (why)
		*why = ok ? NULL : d.why ? d.why : "no word is left";
	if (ok)
		digest(&d);
	else {
		in->fn = sim_undecodable;
		in->n_use = in->n_def = 0;
		in->vmax = 0;
		in->words = 1;
	}
	return ok;
}

const char *sim_decode_name(const struct sim_device *dev, const uint32_t *words, unsigned n, unsigned *length)
{
	static _Thread_local char name[64];
	struct sim_inst in = { .index = 0 }, half;
	if (!sim_decode(dev, words, n, &in, &half, NULL))
		return NULL;
	if (length)
		*length = in.words;
	const char *s = in.op->name, *prefix = "";
	if (in.op->format == FMT_FLAT)
		prefix = in.saddr == 2 ? "scratch_" : in.saddr == 1 ? "global_" : "flat_";
	if (!strncmp(s, "s_s_", 4))
		s += 2;
	if (in.other)
		snprintf(name, sizeof name, "%s :: %s", in.op->name, in.other->op->name);
	else
		snprintf(name, sizeof name, "%s%s", prefix, s);
	return name;
}
