/* jit/compile.c - IR or a key to a code object: the dump of the IR, its verifier, the choice of pipeline.
 *
 * Owns what both pipelines share. Their passes are a backend's (backend.h): jit/x86/pipeline.c and jit/rdna/pipeline.c,
 * each on one screen.
 */
#include "jit/compile_pipeline.h"

#include <stdlib.h>

#include "jit/program_key.h"

/* What ops.def's rows need of a target, and how one is refused that lacks it: by the operation that it has no
 * instruction for, or by what it does not do. */
static const struct {
	uint8_t need;
	const char *operation, *does_not;
} lacks[] = {
	{ IR_NEEDS_mma, "matrix operation", NULL },
	{ IR_NEEDS_tiles, "matrix operation", NULL },
	{ IR_NEEDS_dot2, "operation", NULL },
	{ IR_NEEDS_local_operands, NULL, "has operands of matrix products from global memory alone, and whole tiles" },
	{ IR_NEEDS_parts, NULL, "does no units in parts" },
	{ IR_NEEDS_copies, NULL, "has no asynchronous copies" },
};

static unsigned needs_met(const struct target *t)
{
	return (t->has_mma ? IR_NEEDS_mma : 0) | (t->has_tiles ? IR_NEEDS_tiles : 0) |
	       (t->has_dot2 ? IR_NEEDS_dot2 : 0) | (t->local_operands ? IR_NEEDS_local_operands : 0) |
	       (t->has_parts ? IR_NEEDS_parts : 0) | (t->block_bytes ? IR_NEEDS_copies : 0);
}

static bool refuse_row(const struct target *t, const struct ir_facts *row, struct error *err)
{
	const unsigned missing = row->needs & ~needs_met(t);
	unsigned k = 0;

	while (!(missing & lacks[k].need))
		k++;
	return lacks[k].operation ? error_set(err, ERROR_UNSUPPORTED,
	                                      "the kernel has the %s %s, for which target %s has no instruction",
	                                      lacks[k].operation, row->name, t->name)
	                          : error_set(err, ERROR_UNSUPPORTED, "target %s %s", t->name, lacks[k].does_not);
}

static bool acceptable(const struct ir *ir, const struct target *t, struct error *err)
{
	if (!t->backend)
		return error_set(err, ERROR_UNSUPPORTED, "target %s has no code generator", t->name);
	if (ir->lanes != t->lanes)
		return error_set(err, ERROR_ARGUMENT, "the kernel is written for %u lanes, target %s has %u", ir->lanes,
		                 t->name, t->lanes);
	const unsigned met = needs_met(t);
	for (size_t k = 0; k < ir->n_ins; k++)
		if (ir_facts_of(&ir->ins[k])->needs & ~met)
			return refuse_row(t, ir_facts_of(&ir->ins[k]), err);
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

/* ir: n empty ones. */
static bool build_all(struct ir *ir, const struct ir **each, const struct key *key, size_t n, compile_build_fn build,
                      const struct target *target, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		ir[i].waves = target->waves;
		each[i] = &ir[i];
		if (!build(&ir[i], &key[i], target, err) || !ir_verify(&ir[i], err) || !acceptable(&ir[i], target, err))
			return false;
	}
	return true;
}

static bool compile_program(struct object *out, const struct key *program, compile_build_fn build,
                            const struct target *target, struct error *err)
{
	size_t n;
	const struct key *key = program_kernels(program, &n);
	const struct ir **each = calloc(n + 1, sizeof *each);
	struct ir *ir = calloc(n + 1, sizeof *ir);
	bool ok = true;

	if (!key)
		ok = error_set(err, ERROR_UNSUPPORTED, "it is not known of which kernels this program is made");
	else if (!target->backend || !target->backend->program)
		ok = error_set(err, ERROR_UNSUPPORTED, "target %s has no programs", target->name);
	else if (!each || !ir)
		ok = error_set(err, ERROR_MEMORY, "no memory for a program of %zu kernels", n);
	for (size_t i = 0; ok && i < n; i++)
		ir_init(&ir[i], target->lanes);
	ok = ok && build_all(ir, each, key, n, build, target, err) &&
	     target->backend->program(out, each, n, target, err) && program_sign(out, key, n, err);
	for (size_t i = 0; ir && i < n; i++)
		ir_free(&ir[i]);
	free(ir);
	free(each);
	return ok;
}

/* The target that a key names. NULL: err. */
static const struct target *target_of(const struct key *key, struct error *err)
{
	if (key->target > TARGET_NONE && key->target < TARGET_COUNT)
		return &target_table[key->target];
	error_set(err, ERROR_ARGUMENT, "the key names target %u, there are targets 1 to %d", key->target,
	          TARGET_COUNT - 1);
	return NULL;
}

bool compile_user_key(struct object *out, const struct key *key, const struct compile_builder *builder,
                      const struct compile_options *opt, struct compile_stats *stats, struct error *err)
{
	char title[KEY_TEXT_MAX] = "";
	const struct target *target = target_of(key, err);
	struct ir ir;

	*out = (struct object){ 0 };
	if (!target)
		return false;
	ir_init(&ir, target->lanes);
	ir.waves = target->waves;
	if (opt && (opt->dump_ir || opt->dump_asm)) /* nobody else reads it */
		key_text(key, title, sizeof title);
	bool ok = builder->build(builder->user, &ir, key, target, err) &&
	          compile_titled(out, &ir, target, title, opt, stats, err);
	ir_free(&ir);
	return ok;
}

static bool build_by_function(void *user, struct ir *ir, const struct key *key, const struct target *target,
                              struct error *err)
{
	return (*(const compile_build_fn *)user)(ir, key, target, err);
}

bool compile_key(struct object *out, const struct key *key, compile_build_fn build, const struct compile_options *opt,
                 struct compile_stats *stats, struct error *err)
{
	const struct compile_builder builder = { .build = build_by_function, .user = &build };

	if (key->kind != KEY_PROGRAM)
		return compile_user_key(out, key, &builder, opt, stats, err);
	*out = (struct object){ 0 };
	const struct target *target = target_of(key, err);
	return target && compile_program(out, key, build, target, err);
}

void object_free(struct object *o)
{
	free(o->code);
	*o = (struct object){ 0 };
}
