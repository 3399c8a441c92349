/* runtime/model/model_objects.c - jit_write_objects: a model's machine code as files, without a card. */
#include "runtime/device/objects.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/model/sized.h"

static bool write_objects(const char *path, const jit_objects_options *o, jit_objects *out, struct error *err)
{
	const struct plan_options po = { .target = o->target ? target_find(o->target) : NULL,
		                         .f32_activations = o->f32_activations != 0,
		                         .bounded = o->bounded_numerics != 0 };
	struct objects_count count;
	struct packed *packed;
	struct model file;
	char names[256];

	if (!po.target || po.target->backend->host_runs)
		return error_set(err, ERROR_ARGUMENT, "target \"%.32s\" is no card; known: %s",
		                 o->target ? o->target : "",
		                 target_list(names, sizeof names, TARGETS_OF_CARDS, "", ", "));
	if (!packed_or_files(&file, &packed, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err))
		return false;
	bool ok = objects_write(&file.spec, &po, options_kv_type(o->kv), o->dir, &count, err);
	model_close(&file);
	packed_close(packed);
	const jit_objects made = { .kernels = count.kernels, .programs = count.programs, .bytes = count.bytes };
	return ok && (!out || SIZED_WRITE(jit_objects, out, &made, err));
}

int jit_write_objects(const char *path, const jit_objects_options *options, jit_objects *out, jit_error *err)
{
	struct error e = { 0 };
	jit_objects_options own;

	if (NEEDED(path, &e) && NEEDED(options, &e) && options_objects(&own, options, &e) &&
	    (!out || SIZED_WRITE(jit_objects, out, &(jit_objects){ 0 }, &e))) {
		if (!*path || !own.dir || !*own.dir)
			error_set(&e, ERROR_ARGUMENT, "code objects need a model's path and a directory to write to");
		else
			write_objects(path, &own, out, &e);
	}
	return model_report(err, &e);
}
