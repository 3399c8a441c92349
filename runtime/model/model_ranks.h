/* runtime/model/model_ranks.h - a model that several processes compute together, while it is opened (ranks/ranks.h).
 *
 * Owns: what of the options ranks can do, and who returns from jit_model_open().
 */
#ifndef RUNTIME_MODEL_RANKS_H
#define RUNTIME_MODEL_RANKS_H

#include "runtime/model/model.h"
#include "runtime/ranks/ranks.h"

/* Where the options name a carrier, there are several processes from here on, and *o is each one's own. False: err. */
bool model_ranks_open(jit_model *m, jit_model_options *o, struct error *err);
/* Of an open device, whether ranks can have it; rank 0's then allocates for all. False: err. */
bool model_ranks_device(jit_model *m, struct error *err);
/* Of an open file: whether all ranks are about to compute the same, and which layers each has. False: err. */
bool model_ranks_greet(jit_model *m, const jit_model_options *o, struct error *err);
/* At the end, whether or not there was an error: on rank 0 it returns true when all are ready, or *err says why they
 * are not. On other ranks it does what rank 0 says until that ends. Then processes that the carrier has made end;
 * others return false, without an error where there was none. */
bool model_ranks_ready(jit_model *m, struct error *err);
/* What this rank computes with. */
struct weights_part model_part(const jit_model *m);

#endif
