/* programs/jitrun/jitrun_meaning.c - what options mean for the library. See jitrun_parts.h. */
#include <stdlib.h>
#include <string.h>

#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/shared_rows.h"

static int tune_option(void)
{
	return strcmp(opt.tune, "off") == 0      ? JIT_TUNE_OFF
	       : strcmp(opt.tune, "cached") == 0 ? JIT_TUNE_CACHED
	                                         : JIT_TUNE_QUICK;
}

static int launch_option(void)
{
	return strcmp(opt.launch, "op") == 0      ? JIT_LAUNCH_OP
	       : strcmp(opt.launch, "layer") == 0 ? JIT_LAUNCH_LAYER
	                                          : JIT_LAUNCH_TOKEN;
}

jit_model_options jitrun_model_options(void)
{
	return JIT_MODEL_OPTIONS(.device = opt.device, .isa = opt.isa, .threads = (int)opt.threads,
	                         .cache_dir = opt.no_cache ? "" : opt.cache,
	                         .cache_limit = (uint64_t)opt.cache_limit << 20,
	                         .weight_cache = opt.cache_weights ? "" : NULL,
	                         .weight_cache_limit = (uint64_t)opt.cache_weights_limit << 30,
	                         .f32_activations = strcmp(opt.activations, "f32") == 0 || opt.imatrix_out,
	                         .bounded_numerics = numerics_option(opt.numerics), .perf_map = opt.perf_map,
	                         .jitdump = opt.jitdump, .gdb = opt.gdb, .sealed = opt.sealed,
	                         .copy_weights = opt.copy_weights, .tune = tune_option(), .dump_ir = opt.dump_ir,
	                         .dump_asm = opt.dump_asm, .ranks = opt.ranks, .split = opt.split);
}

jit_session_options jitrun_session_options(jit_sampling *sampling, jit_card_options *card)
{
	*sampling = sampling_args_make(&opt.sampling);
	*card = JIT_CARD_OPTIONS(.launch = launch_option(), .workgroups = (int)opt.workgroups, .units = (int)opt.units);
	return JIT_SESSION_OPTIONS(.context = (int)opt.context, .threads = (int)opt.threads,
	                           .kv = kv_type_option(opt.kv_type), .batch = (int)opt.batch,
	                           .speculate = speculate_option(opt.speculate),
	                           .profile = opt.trace                   ? JIT_PROFILE_EVENTS
	                                      : opt.report || opt.profile ? JIT_PROFILE_SUMS
	                                                                  : JIT_PROFILE_OFF,
	                           .sampling = sampling, .card = card);
}

jit_objects_options jitrun_objects_options(void)
{
	return JIT_OBJECTS_OPTIONS(.target = opt.target, .dir = opt.dump_objects, .kv = kv_type_option(opt.kv_type),
	                           .f32_activations = strcmp(opt.activations, "f32") == 0,
	                           .bounded_numerics = numerics_option(opt.numerics));
}
