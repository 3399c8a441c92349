/* jit/compile.c - the pipeline: IR -> machine instructions -> registers -> bytes, a verifier between passes.
 *
 * Owns the order of the passes and nothing else. Rule for editors: what a pass does belongs in that pass's file; a pass is
 * added here as one line, with the verifier of its output behind it.
 */
#include "jit/compile.h"

#include <stdlib.h>
#include <string.h>

#include "jit/regalloc.h"
#include "jit/x86_select.h"

static const uint8_t vector_order[32] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};

static const uint8_t mask_order[7] = { 1, 2, 3, 4, 5, 6, 7 };

static unsigned limit(unsigned wanted, unsigned least, unsigned most)
{
	return !wanted || wanted > most ? most : wanted < least ? least : wanted;
}

static bool allocate(struct lir *l, const struct target *t, const struct compile_options *o, struct regalloc_result *r, struct error *err)
{
	struct regalloc_rules rules = { .seed = o->seed };
	rules.order[LIR_VEC] = vector_order;
	rules.order[LIR_GPR] = x86_gpr_order;
	rules.order[LIR_MASK] = mask_order;
	rules.count[LIR_VEC] = limit(o->max_vector_regs, REGALLOC_MIN_VEC, t->vector_regs);
	rules.count[LIR_GPR] = limit(o->max_gprs, REGALLOC_MIN_GPR, sizeof x86_gpr_order);
	rules.count[LIR_MASK] = t->mask_regs ? limit(o->max_mask_regs, REGALLOC_MIN_MASK, t->mask_regs) : 0;
	return regalloc(l, &rules, r, err);
}

static void report(struct compile_stats *s, const struct ir *ir, const struct regalloc_result *r, uint32_t instructions)
{
	if (s)
		*s = (struct compile_stats){
			.ir_instructions = (uint32_t)ir->n_ins, .machine_instructions = instructions,
			.vector_regs_used = (uint32_t)__builtin_popcount(r->used[LIR_VEC]),
			.mask_regs_used = (uint32_t)__builtin_popcount(r->used[LIR_MASK]),
			.gpr_used = (uint32_t)__builtin_popcount(r->used[LIR_GPR]),
			.spills = r->spills, .spills_in_loops = r->spills_in_loops,
		};
}

static bool acceptable(const struct ir *ir, const struct target *t, struct error *err)
{
	if (t->backend != BACKEND_X86 || t->lanes != (t->mask_regs ? 16 : 8))
		return error_set(err, ERROR_UNSUPPORTED, "target %s has no code generator: one exists for x86 with 8 lanes, or 16 and mask registers, not for %u lanes and %u mask registers",
		                 t->name, t->lanes, t->mask_regs);
	if (ir->lanes != t->lanes)
		return error_set(err, ERROR_ARGUMENT, "the kernel is written for %u lanes, target %s has %u", ir->lanes, t->name, t->lanes);
	return true;
}

static bool compile_titled(struct object *out, const struct ir *ir, const struct target *target, const char *title,
                           const struct compile_options *opt, struct compile_stats *stats, struct error *err)
{
	static const struct compile_options none = {0};
	const struct compile_options *o = opt ? opt : &none;
	struct lir l = {0};
	struct regalloc_result regs = {0};
	struct emit_options listing = { .dump_asm = o->dump_asm, .title = title, .ir = ir };
	uint32_t instructions = 0;

	*out = (struct object){0};
	if (o->dump_ir) {
		fprintf(o->dump_ir, "# %s\n", title);
		ir_print(ir, o->dump_ir);
	}
	bool ok = ir_verify(ir, err)
	          && acceptable(ir, target, err)
	          && x86_select(&l, ir, target, err)
	          && lir_verify(&l, err)
	          && allocate(&l, target, o, &regs, err)
	          && lir_verify(&l, err)
	          && x86_emit(out, &l, &listing, &instructions, err);
	report(stats, ir, &regs, instructions);
	out->vector_regs = (uint16_t)__builtin_popcount(regs.used[LIR_VEC]);
	out->mask_regs = (uint16_t)__builtin_popcount(regs.used[LIR_MASK]);
	out->scalar_regs = (uint16_t)__builtin_popcount(regs.used[LIR_GPR]);
	lir_free(&l);
	return ok;
}

bool compile_ir(struct object *out, const struct ir *ir, const struct target *target,
                const struct compile_options *opt, struct compile_stats *stats, struct error *err)
{
	return compile_titled(out, ir, target, "kernel", opt, stats, err);
}

bool compile_key(struct object *out, const struct key *key, compile_build_fn build,
                 const struct compile_options *opt, struct compile_stats *stats, struct error *err)
{
	char title[KEY_TEXT_MAX];
	*out = (struct object){0};
	if (key->target <= TARGET_NONE || key->target >= TARGET_COUNT)
		return error_set(err, ERROR_ARGUMENT, "the key names target %u, there are targets 1 to %d", key->target, TARGET_COUNT - 1);
	const struct target *target = &target_table[key->target];
	struct ir ir;
	ir_init(&ir, target->lanes);
	ir.waves = target->waves;
	bool ok = build(&ir, key, target, err)
	          && compile_titled(out, &ir, target, key_text(key, title, sizeof title), opt, stats, err);
	ir_free(&ir);
	return ok;
}

void object_free(struct object *o)
{
	free(o->code);
	*o = (struct object){0};
}
