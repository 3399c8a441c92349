/* jit/compile_rdna.c - the RDNA pipeline: IR -> instructions -> registers -> waits and hazards -> bytes, a verifier between passes.
 *
 * Owns the order of the passes and how many registers they are given. Rule for editors: what a pass does belongs in that pass's file; a pass is
 * added here as one line, with the verifier of its output behind it.
 */
#include "jit/compile_pipeline.h"

#include <string.h>

#include "jit/rdna_machine.h"

static unsigned at_most(unsigned wanted, unsigned most) { return wanted && wanted < most ? wanted : most; }

/* IR to instructions on machine registers. */
static bool allocate(struct rdna_lir *l, const struct compile_job *j, struct error *err)
{
	const struct compile_options *o = j->options;
	struct rdna_regs used;
	rdna_lir_init(l, rdna_gen_of(j->target->name));
	return rdna_select(l, j->ir, j->target, err)
	       && rdna_lir_verify(l, err)
	       && rdna_regalloc(l, at_most(o->max_vector_regs, RDNA_ABI_VGPRS), at_most(o->max_gprs, RDNA_ABI_SGPRS), o->seed, &used, err)
	       && rdna_lir_verify(l, err);
}

static uint32_t dual_pairs(const struct rdna_lir *l)
{
	uint32_t n = 0;
	for (size_t at = 0; at < l->n_ins; at++)
		n += l->ins[at].op == RDNA_LIR_DUAL;
	return n;
}

bool compile_rdna(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err)
{
	uint32_t skip = j->options->skip;
	const struct rdna_hazard_options hazards = { .no_clauses = skip & COMPILE_SKIP_CLAUSES, .no_delays = skip & COMPILE_SKIP_DELAYS };
	struct rdna_listing listing = { .out = j->options->dump_asm, .title = j->title };
	struct rdna_lir l = {0};
	bool ok = allocate(&l, j, err)
	          && (skip & COMPILE_SKIP_VOPD || rdna_vopd(&l, err))
	          && rdna_wait(&l, err)
	          && rdna_hazard(&l, &hazards, err)
	          && rdna_emit_listed(out, &l, &listing, err);
	if (ok) {
		out->frame_bytes = l.local_bytes;
		out->shared_bytes = l.shared_bytes;
		out->cooperative = j->ir->cooperative;
	}
	if (ok && stats)
		*stats = (struct compile_stats){
			.ir_instructions = (uint32_t)j->ir->n_ins, .machine_instructions = listing.instructions,
			.vector_regs_used = out->vector_regs, .gpr_used = out->scalar_regs, .dual_pairs = dual_pairs(&l),
		};
	rdna_lir_free(&l);
	return ok;
}
