/* jit/x86/pipeline.c - the x86 pipeline: IR -> machine instructions -> registers -> bytes, a verifier between passes.
 *
 * Owns the order of the passes and the register files they are given. Rule for editors: what a pass does belongs in
 * that pass's file; a pass is added here as one line, with the verifier of its output behind it.
 */
#include "jit/compile_pipeline.h"

#include "jit/x86/regalloc.h"
#include "jit/x86/select.h"

static const uint8_t vector_order[32] = {
	0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
	16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
};

static const uint8_t mask_order[7] = { 1, 2, 3, 4, 5, 6, 7 };

static unsigned limit(unsigned wanted, unsigned min, unsigned max)
{
	return !wanted || wanted > max ? max : wanted < min ? min : wanted;
}

static bool allocate(struct lir *l, const struct target *t, const struct compile_options *o, struct regalloc_result *r,
                     struct error *err)
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
			.ir_instructions = (uint32_t)ir->n_ins,
			.machine_instructions = instructions,
			.vector_regs_used = (uint32_t)__builtin_popcount(r->used[LIR_VEC]),
			.mask_regs_used = (uint32_t)__builtin_popcount(r->used[LIR_MASK]),
			.gpr_used = (uint32_t)__builtin_popcount(r->used[LIR_GPR]),
			.spills = r->spills,
			.spills_in_inner_loops = r->spills_in_inner_loops,
		};
}

static bool compile(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err)
{
	const struct target *t = j->target;
	struct lir l = { 0 };
	struct regalloc_result regs = { 0 };
	struct emit_options listing = { .dump_asm = j->options->dump_asm, .title = j->title, .ir = j->ir };
	uint32_t instructions = 0;

	if (t->lanes != (t->mask_regs ? 16 : 8))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "target %s has no code generator: one exists for x86 with 8 lanes, or 16 and mask "
		                 "registers, not for %u lanes and %u mask registers",
		                 t->name, t->lanes, t->mask_regs);
	bool ok = x86_select(&l, j->ir, t, err) && lir_verify(&l, err) && allocate(&l, t, j->options, &regs, err) &&
	          lir_verify(&l, err) && x86_emit(out, &l, &listing, &instructions, err);
	report(stats, j->ir, &regs, instructions);
	out->vector_regs = (uint16_t)__builtin_popcount(regs.used[LIR_VEC]);
	out->mask_regs = (uint16_t)__builtin_popcount(regs.used[LIR_MASK]);
	out->scalar_regs = (uint16_t)__builtin_popcount(regs.used[LIR_GPR]);
	lir_free(&l);
	return ok;
}

const struct backend backend_x86 = {
	.name = "x86", .codegen = &key_codegen_x86, .host_runs = true, .compile = compile
};
