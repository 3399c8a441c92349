/* sim/decode_memory.c - DS, FLAT, GLOBAL, SCRATCH and the cache instructions.
 *
 * Owns: the fields of those formats on every generation. saddr of a decoded FLAT instruction: 0 FLAT, 1 GLOBAL, 2
 * SCRATCH; src[0] is the vector address, src[1] the data, src[2] the scalar address.
 */
#include <string.h>

#include "sim/wave.h"

static struct sim_src vector_src(unsigned reg, unsigned words)
{
	return (struct sim_src){
		.kind = SRC_VGPR, .type = 'x', .words = (uint8_t)words, .reg = (uint16_t)(REG_VGPR + reg)
	};
}

/* Loads into half a register keep the other half: the old value is read. */
static void load_destination(struct decode *d, unsigned vdst, unsigned words)
{
	struct sim_inst *in = d->in;
	in->dst = (uint16_t)(REG_VGPR + vdst);
	if (strpbrk(in->op->flags, "lh"))
		decode_use(d, in->dst, 1, true);
	decode_def(d, in->dst, words);
}

static bool decode_ds(struct decode *d)
{
	struct sim_inst *in = d->in;
	uint32_t w = d->w[0];
	if (d->n < 2)
		return decode_fail(d, "its second word lies beyond the end of the code");
	d->words = 2;
	uint32_t x = d->w[1];
	if (!decode_op(d, FMT_DS, w >> 18 & 0xff))
		return false;
	if (w >> 17 & 1)
		return decode_fail(d, "it addresses GDS");
	const struct sim_op *op = in->op;
	unsigned n = op->words;
	bool two = op->kind == MK_LOAD2 || op->kind == MK_STORE2, load = op->kind == MK_LOAD || op->kind == MK_LOAD2;
	in->imm = (int32_t)(w & 0xffff);
	in->rtn = strchr(op->flags, 'r') != NULL;
	if (op->kind != MK_SWIZZLE)
		in->src[0] = vector_src(x & 0xff, 1);
	else
		in->src[1] = vector_src(x & 0xff, 1);
	if (!load && op->kind != MK_SWIZZLE)
		in->src[1] = vector_src(x >> 8 & 0xff, n);
	if (op->kind == MK_STORE2 || strchr(op->flags, 'c'))
		in->src[2] = vector_src(x >> 16 & 0xff, n);
	for (unsigned k = 0; k < 3; k++)
		decode_use_src(d, &in->src[k]);
	if (load || in->rtn || op->kind >= MK_PERMUTE)
		load_destination(d, x >> 24, two ? 2 * n : n);
	return true;
}

static bool flat_address(struct decode *d, unsigned seg, unsigned saddr, unsigned vaddr, bool sve)
{
	struct sim_inst *in = d->in;
	unsigned gen = d->dev->gen, off = gen == 0 ? 0x7d : 0x7c;
	in->saddr = (uint8_t)seg;
	bool has_saddr = seg != 0 && saddr != off && !(gen == 0 && saddr == 0x7f);
	if (seg == 2) {
		bool vector = gen == 0 ? !has_saddr && saddr != 0x7f : sve;
		if (vector)
			in->src[0] = vector_src(vaddr, 1);
		if (has_saddr && !decode_src(d, saddr, 'u', &in->src[2]))
			return false;
	} else {
		in->src[0] = vector_src(vaddr, has_saddr ? 1 : 2);
		if (has_saddr && !decode_src(d, saddr, 'U', &in->src[2]))
			return false;
	}
	decode_use_src(d, &in->src[0]);
	decode_use_src(d, &in->src[2]);
	return true;
}

struct flat_fields {
	unsigned seg /* 0: flat, 1: global, 2: scratch */, code, saddr, vaddr, vdst, data;
	bool sve;
};

static bool flat_fields_12(struct decode *d, struct flat_fields *f)
{
	struct sim_inst *in = d->in;
	uint32_t w = d->w[0], x = d->w[1];
	unsigned top = w >> 24;
	if (top != 0xec && top != 0xed && top != 0xee)
		return decode_fail(d, "its format is not one that the simulator knows");
	*f = (struct flat_fields){
		.seg = top == 0xec   ? 0
		       : top == 0xed ? 2
		                     : 1,
		.code = w >> 14 & 0xff,
		.saddr = w & 0x7f,
		.vdst = x & 0xff,
		.sve = x >> 17 & 1,
		.data = x >> 23 & 0xff,
		.vaddr = d->w[2] & 0xff
	};
	in->imm = (int32_t)d->w[2] >> 8;
	in->glc = (x >> 20 & 7) == 1;
	static const uint8_t reach[] = { REACH_L0, REACH_GL1, REACH_L2, REACH_L2 }; /* scopes: CU, SE, device, system */
	in->reach = reach[x >> 18 & 3];
	return true;
}

static bool flat_fields_10(struct decode *d, struct flat_fields *f)
{
	struct sim_inst *in = d->in;
	uint32_t w = d->w[0], x = d->w[1];
	unsigned gen = d->dev->gen, s = gen ? w >> 16 & 3 : w >> 14 & 3;
	if (s == 3)
		return decode_fail(d, "its segment field names none");
	*f = (struct flat_fields){
		.seg = s == 1   ? 2
		       : s == 2 ? 1
		                : 0,
		.code = w >> 18 & 0x7f,
		.saddr = x >> 16 & 0x7f,
		.vdst = x >> 24,
		.data = x >> 8 & 0xff,
		.vaddr = x & 0xff,
		.sve = gen && (x >> 23 & 1)
	};
	in->imm = gen ? (int32_t)(w << 19) >> 19 : (int32_t)(w << 20) >> 20;
	in->glc = gen ? w >> 14 & 1 : w >> 16 & 1;
	bool dlc = w >> 12 & 1;
	in->reach = !in->glc ? REACH_L0 : gen || dlc ? REACH_L2 : REACH_GL1;
	if (gen == 0 && (w >> 13 & 1))
		return decode_fail(d, "it loads into LDS");
	if (f->seg == 0 && in->imm < 0)
		return decode_fail(d, "a FLAT instruction has a negative offset");
	return true;
}

static bool decode_flat(struct decode *d)
{
	struct sim_inst *in = d->in;
	struct flat_fields f = { 0 };
	unsigned gen = d->dev->gen, need = gen == 2 ? 3u : 2u;
	if (d->n < need)
		return decode_fail(d, "its last word lies beyond the end of the code");
	d->words = need;
	if (!(gen == 2 ? flat_fields_12(d, &f) : flat_fields_10(d, &f)))
		return false;
	if (f.seg == 1 && d->dev->table[FMT_GLOBAL][f.code])
		return decode_op(d, FMT_GLOBAL, f.code);
	if (!decode_op(d, FMT_FLAT, f.code))
		return false;
	const struct sim_op *op = in->op;
	if (f.seg == 2 && op->kind == MK_ATOMIC)
		return decode_fail(d, "an atomic addresses scratch");
	if (!flat_address(d, f.seg, f.saddr, f.vaddr, f.sve))
		return false;
	if (op->kind != MK_LOAD) {
		in->src[1] = vector_src(f.data, op->words);
		decode_use_src(d, &in->src[1]);
	}
	in->rtn = op->kind == MK_ATOMIC && in->glc;
	unsigned result = op->kind == MK_ATOMIC ? op->size / 4u : op->words;
	if (op->kind == MK_LOAD || in->rtn)
		load_destination(d, f.vdst, result);
	return true;
}

bool decode_memory(struct decode *d)
{
	uint32_t w = d->w[0];
	if (w >> 26 == 0x36)
		return decode_ds(d);
	if (w >> 26 == 0x38) {
		if (d->n < 2)
			return decode_fail(d, "its second word lies beyond the end of the code");
		d->words = 2;
		return decode_op(d, FMT_MUBUF, w >> 18 & (d->dev->gen ? 0xffu : 0x7fu));
	}
	return decode_flat(d);
}
