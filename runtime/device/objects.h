/* runtime/device/objects.h - writes code objects, or PTX, of a model's kernels to files, for a card that this machine
 * need not have.
 *
 * Owns: which files there are, and their names. Reads only the model's header. The same model gives the same files
 * everywhere.
 */
#ifndef RUNTIME_OBJECTS_H
#define RUNTIME_OBJECTS_H

#include "jit/target.h"
#include "loaders/model/model.h"
#include "runtime/plan/plan.h"

struct objects_count {
	size_t kernels, programs;
	uint64_t bytes;
};

/* Into dir, which is made when it is missing: "KEY.co", the driver and one function, for each kernel of the passes over
 * 1, 4, 8 and 16 tokens; "pass-cN.TARGET.co", the driver and all functions of a pass over N tokens. For NVIDIA
 * cards "KEY.ptx" alone: the text of each kernel. The target is a card's. */
bool objects_write(const struct model_spec *spec, const struct plan_options *opt, enum dtype kv, const char *dir,
                   struct objects_count *count, struct error *err);

#endif
