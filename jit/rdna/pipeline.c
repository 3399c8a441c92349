/* jit/rdna/pipeline.c - the RDNA pipeline: IR -> instructions -> registers -> waits and hazards -> bytes.
 *
 * Owns the order of the passes and how many registers they are given. That every source finds its value where the
 * allocator put it is verified of every kernel; all else, and between the passes, where tests ask for it
 * (compile_options.verify_passes), to see which one it was: the encoder looks at each instruction anyway. Rule for
 * editors: what a pass does belongs in that pass's file; a pass is added here as one line.
 */
#include "jit/compile_pipeline.h"

#include <string.h>

#include "jit/rdna/machine.h"
#include "jit/rdna/program.h"

/* A SIMD's vector registers, for each lane, are shared by its waves (target->vector_file). Eight waves, which is two
 * groups to a compute unit, hide what one waits for; more would leave too few registers for tiles. */
enum { WAVES_PER_SIMD = 8 };

static unsigned at_most(unsigned wanted, unsigned max) { return wanted && wanted < max ? wanted : max; }

/* What is tried one after the other. What the scheduler placed together may need more registers than there are, when
 * in the order it was written the kernel still fits; rdna_emit may want scalar registers of its own: two pairs for each
 * open loop, one for far branches; and words of wide scalar loads that live on break up the file for the next ones. */
enum { ALL_SGPRS = RDNA_ABI_SGPRS - RDNA_ABI_FREE_SGPR };
struct attempt {
	bool sched;
	unsigned sgprs, scalar_words;
};
static const struct attempt attempts[] = {
	{ true, ALL_SGPRS, RDNA_SCALAR_WORDS },
	{ false, ALL_SGPRS, RDNA_SCALAR_WORDS },
	{ false, ALL_SGPRS - 12, RDNA_SCALAR_WORDS },
	{ false, ALL_SGPRS - 32, RDNA_SCALAR_WORDS },
	{ false, ALL_SGPRS - 12, 4 },
	{ false, ALL_SGPRS - 32, 2 }
};
enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

/* IR to instructions on machine registers. */
static bool allocate(struct rdna_lir *l, const struct compile_job *j, const struct attempt *a, struct error *err)
{
	const struct compile_options *o = j->options;
	unsigned vgprs = at_most(o->max_vector_regs, RDNA_ABI_VGPRS), sgprs = at_most(o->max_gprs, a->sgprs);
	struct rdna_regs used;
	bool ok = rdna_select(l, j->ir, j->target, a->scalar_words, err) &&
	          (!o->verify_passes || rdna_lir_verify(l, err)) &&
	          (!a->sched || (rdna_sched(l, at_most(vgprs, j->target->vector_file / WAVES_PER_SIMD), o->seed, err) &&
	                         (!o->verify_passes || rdna_lir_verify(l, err)))) &&
	          rdna_regalloc(l, vgprs, sgprs, o->seed, &used, err) &&
	          (o->verify_passes ? rdna_lir_verify(l, err) : rdna_lir_verify_registers(l, err));
	if (ok) {
		rdna_tidy(l);
		rdna_shorten(l);
	}
	return ok;
}

static uint32_t dual_pairs(const struct rdna_lir *l)
{
	uint32_t n = 0;
	for (size_t at = 0; at < l->n_ins; at++)
		n += l->ins[at].op == RDNA_LIR_DUAL;
	return n;
}

static void report(struct compile_stats *s, const struct compile_job *j, const struct object *o,
                   const struct rdna_lir *l, uint32_t instructions)
{
	if (s)
		*s = (struct compile_stats){
			.ir_instructions = (uint32_t)j->ir->n_ins,
			.machine_instructions = instructions,
			.vector_regs_used = o->vector_regs,
			.gpr_used = o->scalar_regs,
			.dual_pairs = dual_pairs(l),
		};
}

static bool compile_once(struct object *out, const struct compile_job *j, const struct attempt *a,
                         struct compile_stats *stats, struct error *err)
{
	uint32_t skip = j->options->skip;
	const struct rdna_hazard_options hazards = { .no_clauses = skip & COMPILE_SKIP_CLAUSES,
		                                     .no_delays = skip & COMPILE_SKIP_DELAYS };
	struct rdna_listing listing = { .out = j->options->dump_asm, .title = j->title };
	struct rdna_lir l;
	rdna_lir_init(&l, rdna_gen_of(j->target->name));
	bool ok = allocate(&l, j, a, err) && (skip & COMPILE_SKIP_VOPD || rdna_vopd(&l, err)) && rdna_wait(&l, err) &&
	          rdna_hazard(&l, &hazards, err) && rdna_emit_listed(out, &l, &listing, err);
	if (ok) {
		out->frame_bytes = l.local_bytes;
		out->shared_bytes = l.shared_bytes;
		out->cooperative = j->ir->cooperative;
		report(stats, j, out, &l, listing.instructions);
	}
	rdna_lir_free(&l);
	return ok;
}

static bool compile(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err)
{
	struct error e;
	for (unsigned k = j->options->skip & COMPILE_SKIP_SCHED ? 1 : 0; k < ATTEMPTS; k++) {
		e = (struct error){ .code = ERROR_NONE };
		if (compile_once(out, j, &attempts[k], stats, &e))
			return true;
		if (e.code != ERROR_UNSUPPORTED)
			break;
	}
	return error_set(err, e.code, "%s", e.text);
}

static unsigned round_up(unsigned n, unsigned granule) { return (n + granule - 1) / granule * granule; }

static unsigned resident(const struct target *t, unsigned units, unsigned vgprs, unsigned lds)
{
	unsigned waves = vgprs ? t->vector_file / round_up(vgprs, t->vector_granule) : TARGET_SIMD_WAVES;
	unsigned groups = (waves < TARGET_SIMD_WAVES ? waves : TARGET_SIMD_WAVES) * TARGET_UNIT_SIMDS / t->waves;
	unsigned by_lds = lds ? TARGET_UNIT_LDS / round_up(lds, TARGET_LDS_GRANULE) : groups;

	return units * (by_lds < groups ? by_lds : groups);
}

const struct backend backend_rdna = {
	.simulated = true,
	.name = "rdna",
	.codegen = &key_codegen_rdna,
	.compile = compile,
	.link = rdna_program_make,
	.resident = resident,
	.skippable = COMPILE_SKIP_SCHED | COMPILE_SKIP_VOPD | COMPILE_SKIP_CLAUSES | COMPILE_SKIP_DELAYS
};
