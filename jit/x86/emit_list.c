/* jit/x86/emit_list.c - the listing: each instruction's bytes and text beside the machine instruction it was made of.
 */
#include "jit/x86/emit.h"

static void list_bytes(const struct emitter *e, size_t from, size_t to, FILE *out)
{
	fprintf(out, "\t.byte ");
	for (size_t k = from; k < to; k++)
		fprintf(out, "%s0x%02x", k > from ? "," : "", e->x.code[k]);
}

static void list_origin(const struct emitter *e, const struct lir_ins *i, FILE *out)
{
	if (i->ir != UINT32_MAX && e->opt->ir && i->ir < e->opt->ir->n_ins) {
		const struct ir_ins *o = &e->opt->ir->ins[i->ir];
		fprintf(out, "\t# ");
		if (o->dst)
			fprintf(out, "%%%u = ", o->dst);
		fprintf(out, "%s", ir_facts_of(o)->name);
		if (o->a)
			fprintf(out, " %%%u", o->a);
		if (o->b)
			fprintf(out, " %%%u", o->b);
		if (o->c)
			fprintf(out, " %%%u", o->c);
	} else {
		fprintf(out, "\t# constant");
	}
}

void x86_list(const struct emitter *e, uint32_t code_end)
{
	FILE *out = e->opt->dump_asm;
	const char *title = e->opt->title ? e->opt->title : "kernel";
	fprintf(out, "# %s\n\t.text\n%s:\n", title,
	        title); /* a key's text is a symbol, so one file may hold many kernels */
	for (size_t k = 0; k < e->n_notes; k++) {
		const struct note *n = &e->note[k];
		size_t to = k + 1 < e->n_notes ? e->note[k + 1].offset : code_end;
		if (to == n->offset)
			continue;
		list_bytes(e, n->offset, to, out);
		if (n->ins < e->l->n_ins)
			list_origin(e, &e->l->ins[n->ins], out);
		fprintf(out, "\n");
	}
	fprintf(out, "\t.section .rodata\n%s.constants:\n", title);
	for (size_t k = code_end; k < e->x.size; k += 16) {
		list_bytes(e, k, k + 16 < e->x.size ? k + 16 : e->x.size, out);
		fprintf(out, "\n");
	}
}
