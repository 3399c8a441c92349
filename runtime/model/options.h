/* runtime/model/options.h - what callers of jitrun.h ask for, copied and checked.
 *
 * Owns: the range of every number in a struct of options, and the sentence about one outside of it. What only a file or
 * a device can tell is checked there.
 */
#ifndef RUNTIME_OPTIONS_H
#define RUNTIME_OPTIONS_H

#include "base/dtype.h"
#include "base/error.h"
#include "include/jitrun.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_cards.h"
#include "include/jitrun_draft.h"
#include "include/jitrun_kernel.h"

/* Each copies the caller's struct (NULL: all defaults), whatever its size; false: err, and *own is not to be used. */
bool options_model(jit_model_options *own, const jit_model_options *from, struct error *err);
bool options_sampling(jit_sampling *own, const jit_sampling *from, struct error *err);
bool options_embedding(jit_embedding_options *own, const jit_embedding_options *from, struct error *err);
bool options_card(jit_card_options *own, const jit_card_options *from, struct error *err);
bool options_draft(jit_draft_options *own, const jit_draft_options *from, struct error *err);
bool options_objects(jit_objects_options *own, const jit_objects_options *from, struct error *err);
bool options_batch(jit_batch_options *own, const jit_batch_options *from, struct error *err);
bool options_compute(jit_compute_options *own, const jit_compute_options *from, struct error *err);
bool options_kernel(jit_kernel_options *own, const jit_kernel_options *from, struct error *err);
/* own->sampling, own->card and own->draft are still the caller's, here and of a batch. */
bool options_session(jit_session_options *own, const jit_session_options *from, struct error *err);

/* The KV cache of a JIT_KV_ value that was checked. */
enum dtype options_kv_type(int kv);

#endif
