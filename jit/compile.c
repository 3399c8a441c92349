/* jit/compile.c - IR or a key to a code object: the dump of the IR, its verifier, the choice of pipeline.
 *
 * Owns what both pipelines share. Their passes are a backend's (backend.h): jit/x86/pipeline.c and jit/rdna/pipeline.c,
 * each on one screen.
 */
#include "jit/compile_pipeline.h"

#include <stdlib.h>

static bool acceptable(const struct ir *ir, const struct target *t, struct error *err)
{
	if (!t->backend)
		return error_set(err, ERROR_UNSUPPORTED, "target %s has no code generator", t->name);
	if (ir->lanes != t->lanes)
		return error_set(err, ERROR_ARGUMENT, "the kernel is written for %u lanes, target %s has %u", ir->lanes,
		                 t->name, t->lanes);
	for (size_t k = 0; k < ir->n_ins; k++) {
		if (ir_is_matrix(ir->ins[k].op) ? !t->has_mma : ir->ins[k].op == IR_idots && !t->has_tiles)
			return error_set(
				err, ERROR_UNSUPPORTED,
				"the kernel has the matrix operation %s, for which target %s has no instruction",
				ir_facts[ir->ins[k].op].name, t->name);
		if (ir->ins[k].op == IR_ostore && !t->local_operands)
			return error_set(err, ERROR_UNSUPPORTED,
			                 "target %s has operands of matrix products from global memory alone", t->name);
		if ((ir->ins[k].op == IR_part || ir->ins[k].op == IR_parts) && !t->has_parts)
			return error_set(err, ERROR_UNSUPPORTED, "target %s does no units in parts", t->name);
	}
	return true;
}

static bool compile_titled(struct object *out, const struct ir *ir, const struct target *target, const char *title,
                           const struct compile_options *opt, struct compile_stats *stats, struct error *err)
{
	static const struct compile_options none = { 0 };
	const struct compile_job job = { .ir = ir, .target = target, .title = title, .options = opt ? opt : &none };

	*out = (struct object){ 0 };
	if (stats)
		*stats = (struct compile_stats){ 0 };
	if (job.options->dump_ir) {
		fprintf(job.options->dump_ir, "# %s\n", title);
		ir_print(ir, job.options->dump_ir);
	}
	if (!ir_verify(ir, err) || !acceptable(ir, target, err))
		return false;
	return target->backend->compile(out, &job, stats, err);
}

bool compile_ir(struct object *out, const struct ir *ir, const struct target *target, const struct compile_options *opt,
                struct compile_stats *stats, struct error *err)
{
	return compile_titled(out, ir, target, "kernel", opt, stats, err);
}

bool compile_key(struct object *out, const struct key *key, compile_build_fn build, const struct compile_options *opt,
                 struct compile_stats *stats, struct error *err)
{
	char title[KEY_TEXT_MAX] = "";
	*out = (struct object){ 0 };
	if (key->target <= TARGET_NONE || key->target >= TARGET_COUNT)
		return error_set(err, ERROR_ARGUMENT, "the key names target %u, there are targets 1 to %d", key->target,
		                 TARGET_COUNT - 1);
	const struct target *target = &target_table[key->target];
	struct ir ir;
	ir_init(&ir, target->lanes);
	ir.waves = target->waves;
	if (opt && (opt->dump_ir || opt->dump_asm)) /* nobody else reads it */
		key_text(key, title, sizeof title);
	bool ok = build(&ir, key, target, err) && compile_titled(out, &ir, target, title, opt, stats, err);
	ir_free(&ir);
	return ok;
}

void object_free(struct object *o)
{
	free(o->code);
	*o = (struct object){ 0 };
}
