/* jit/rdna/lir_text.c - RDNA machine instructions as lines of text; lir_parse.c reads them back.
 *
 * Owns: the notation. An instruction is written as the assembler would: name, destinations, sources, then a scalar
 * address or "off" where the instruction may have one, then its attributes. Virtual registers are "%v12", "%s3:2"
 * (whole, of so many words), "%v12[1]", "%v12[2:3]" (words); once registers are assigned they are printed as machine
 * registers. A modifier stands around the operand: -x, |x|, x.h (upper half), x.f (flipped); of constants -x is x.n.
 * Rule for editors: what print writes, parse reads back to the same instruction.
 */
#include <inttypes.h>

#include "jit/rdna/lir_text.h"

static uint32_t get_attribute(const struct rdna_lir_ins *i, enum attribute a)
{
	switch (a) {
	case A_OFFSET: return (uint32_t)i->offset;
	case A_OFFSET1: return (uint32_t)i->offset1;
	case A_EXEC: return i->exec;
	case A_CACHE: return i->cache;
	case A_SCOPE: return i->scope;
	case A_TH: return i->th;
	case A_OMOD: return i->omod;
	case A_DPP16: return i->dpp.ctrl;
	case A_DPP8: return i->dpp.lanes;
	case A_ROW_MASK: return i->dpp.row_mask;
	case A_BANK_MASK: return i->dpp.bank_mask;
	case A_MEMORY: return i->memory;
	default: return i->ir;
	}
}

void rdna_set_attribute(struct rdna_lir_ins *i, enum attribute a, uint32_t v)
{
	switch (a) {
	case A_OFFSET: i->offset = (int32_t)v; break;
	case A_OFFSET1: i->offset1 = (int32_t)v; break;
	case A_EXEC: i->exec = v; break;
	case A_CACHE: i->cache = (uint8_t)v; break;
	case A_SCOPE: i->scope = (uint8_t)v; break;
	case A_TH: i->th = (uint8_t)v; break;
	case A_OMOD: i->omod = (uint8_t)v; break;
	case A_DPP16: i->dpp = rdna_dpp16(v); break;
	case A_DPP8: i->dpp = (struct rdna_dpp){ .kind = RDNA_DPP8, .lanes = v }; break;
	case A_ROW_MASK: i->dpp.row_mask = (uint8_t)v; break;
	case A_BANK_MASK: i->dpp.bank_mask = (uint8_t)v; break;
	case A_MEMORY: i->memory = (uint8_t)v; break;
	default: i->ir = v; break;
	}
}

static bool has_attribute(const struct rdna_lir_ins *i, enum attribute a, const struct rdna_lir_ins *plain)
{
	bool dpp16 = i->dpp.kind == RDNA_DPP16;
	switch (a) {
	case A_DPP16: return dpp16;
	case A_DPP8: return i->dpp.kind == RDNA_DPP8;
	case A_ROW_MASK: return dpp16 && i->dpp.row_mask != 15;
	case A_BANK_MASK: return dpp16 && i->dpp.bank_mask != 15;
	case A_MEMORY: return i->memory != plain->memory;
	case A_IR: return false;
	default: return get_attribute(i, a) != 0;
	}
}

/* --- print */

static void print_machine(unsigned reg, unsigned n, FILE *out)
{
	for (unsigned k = 0; k < SPECIALS; k++)
		if (specials[k].reg == reg && specials[k].n == n) {
			fputs(specials[k].name, out);
			return;
		}
	char file = reg >= RDNA_V0 ? 'v' : 's';
	reg -= reg >= RDNA_V0 ? RDNA_V0 : 0;
	if (n == 1)
		fprintf(out, "%c%u", file, reg);
	else
		fprintf(out, "%c[%u:%u]", file, reg, reg + n - 1);
}

static void print_virtual(const struct rdna_lir *l, const struct rdna_lir_operand *o, FILE *out)
{
	struct rdna_lir_reg g = o->reg < l->n_regs ? l->reg[o->reg] : (struct rdna_lir_reg){ 0 };
	if (l->allocated) {
		print_machine(g.phys + o->sub, o->n, out);
		return;
	}
	fprintf(out, "%%%c%u", g.cls == RDNA_CLASS_VGPR ? 'v' : 's', (unsigned)o->reg);
	if (o->sub == 0 && o->n == g.n) {
		if (o->n > 1)
			fprintf(out, ":%u", o->n);
	} else if (o->n == 1) {
		fprintf(out, "[%u]", o->sub);
	} else {
		fprintf(out, "[%u:%u]", o->sub, o->sub + o->n - 1U);
	}
}

static void print_operand(const struct rdna_lir *l, const struct rdna_lir_operand *o, FILE *out)
{
	bool constant = o->kind == RDNA_LIR_CONST, neg = o->mods & RDNA_NEG;
	fprintf(out, "%s%s", neg && !constant ? "-" : "", o->mods & RDNA_ABS ? "|" : "");
	if (o->kind == RDNA_LIR_VIRTUAL)
		print_virtual(l, o, out);
	else if (o->kind == RDNA_LIR_FIXED)
		print_machine(o->reg, o->n, out);
	else if (o->kind == RDNA_LIR_NONE)
		fputs("off", out);
	else if ((int32_t)o->value >= -0x8000 && (int32_t)o->value <= 0xffff)
		fprintf(out, "%" PRId32, (int32_t)o->value);
	else
		fprintf(out, "0x%08" PRIx32, o->value);
	fprintf(out, "%s%s%s%s", o->mods & RDNA_ABS ? "|" : "", neg && constant ? ".n" : "",
	        o->mods & RDNA_HIGH ? ".h" : "", o->mods & RDNA_FLIP ? ".f" : "");
}

bool rdna_may_have_saddr(unsigned op)
{
	unsigned form = op < RDNA_OP_COUNT ? rdna_lir_address_form(op) : RDNA_ADDRESS_NONE;
	return form == RDNA_ADDRESS_GLOBAL || form == RDNA_ADDRESS_SCRATCH;
}

static void print_attributes(const struct rdna_lir_ins *i, FILE *out)
{
	struct rdna_lir_ins plain;
	rdna_lir_set_usual(&plain, i->op < RDNA_LIR_OPS ? i->op : RDNA_LIR_DUAL);
	for (enum attribute a = 0; a < A_COUNT; a++) {
		if (!has_attribute(i, a, &plain))
			continue;
		if (a == A_MEMORY)
			fprintf(out, " memory:%s", memory_names[i->memory & 3]);
		else if (a <= A_OFFSET1)
			fprintf(out, " %s:%" PRId32, attribute_names[a], (int32_t)get_attribute(i, a));
		else
			fprintf(out, " %s:0x%" PRIx32, attribute_names[a], get_attribute(i, a));
	}
	fprintf(out, "%s%s%s%s", i->clamp ? " clamp" : "", i->e64 ? " e64" : "", i->dpp.bound_zero ? " bound_ctrl" : "",
	        i->dpp.fetch_inactive ? " fi" : "");
}

static void print_one(const struct rdna_lir *l, const struct rdna_lir_ins *i, FILE *out)
{
	static const char *const pseudo[] = { "loop", "endloop", "break", "if", "else", "endif", "dual" };
	const char *comma = " ";
	fputs(i->op < RDNA_OP_COUNT  ? rdna_op_name((enum rdna_op)i->op, l->gen)
	      : i->op < RDNA_LIR_OPS ? pseudo[i->op - RDNA_OP_COUNT]
	                             : "?",
	      out);
	bool address = rdna_may_have_saddr(i->op);
	static const struct rdna_lir_operand none;
	const bool masked = rdna_lir_is_masked(i);
	const struct rdna_lir_operand *all[7] = {
		&i->d[0], &i->d[1], &i->s[0], &i->s[1], &i->s[2], masked ? &none : &i->s[3], &i->saddr
	};
	bool has_address = address && i->op < RDNA_OP_COUNT && strchr(rdna_lir_letters(i->op, l->gen), '@');
	for (unsigned k = 0; k < 7; k++) {
		bool off = (k == 6 || (k == 2 && i->s[0].kind == RDNA_LIR_NONE)) && has_address;
		if (!all[k]->kind && !off)
			continue;
		fputs(comma, out);
		print_operand(l, all[k], out);
		comma = ", ";
	}
	if (masked) {
		fputs(" lanes:", out);
		print_operand(l, &i->s[3], out);
	}
	print_attributes(i, out);
	fputc('\n', out);
}

void rdna_lir_print(const struct rdna_lir *l, FILE *out)
{
	unsigned depth = 0;
	for (size_t k = 0; k < l->n_ins; k++) {
		unsigned op = l->ins[k].op;
		if ((op == RDNA_LIR_ENDLOOP || op == RDNA_LIR_ELSE || op == RDNA_LIR_ENDIF) && depth)
			depth--;
		for (unsigned d = 0; d < depth; d++)
			fputs("  ", out);
		print_one(l, &l->ins[k], out);
		depth += op == RDNA_LIR_LOOP || op == RDNA_LIR_IF || op == RDNA_LIR_ELSE;
	}
}
