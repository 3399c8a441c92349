/* runtime/plan/key_list.h - every kernel a model can need, without running it.
 *
 * Owns: the list of keys. It is found by building the very plans a session builds, on weights that have types and sizes
 * but no numbers. That is done for every number of tokens and every kind of logits a session can ask for. So an editor
 * of plans has nothing to do here unless plan_options grows. Never compiles, never reads tensor data, never looks at
 * this machine.
 */
#ifndef RUNTIME_KEY_LIST_H
#define RUNTIME_KEY_LIST_H

#include "jit/key.h"
#include "jit/target.h"
#include "loaders/model/model.h"
#include "runtime/plan/plan.h"

/* What sessions may ask for: sets, to be or-ed. */
enum { KEY_LIST_INT8_ACTIVATIONS = 1, KEY_LIST_F32_ACTIVATIONS = 2, KEY_LIST_ANY_ACTIVATIONS = 3 };
enum { KEY_LIST_KV_F16 = 1, KEY_LIST_KV_F32 = 2, KEY_LIST_KV_Q8_0 = 4, KEY_LIST_KV_ANY = 7 };
enum { KEY_LIST_EXACT = 1 << NUMERICS_EXACT, KEY_LIST_BOUNDED = 1 << NUMERICS_BOUNDED, KEY_LIST_ANY_NUMERICS = 3 };

unsigned key_list_kv(enum dtype type); /* the set of one */

struct key_list_options {
	const struct target *target;
	unsigned activations, kv;
	unsigned numerics; /* 0: KEY_LIST_EXACT */
	uint32_t tokens;   /* of the widest pass over a prompt; 0: the widest there is */
	bool dataflow;     /* passes of a few tokens are dataflow passes (device_facts.awaits) */
	bool usual;        /* usual schedules alone; otherwise also those that sessions try in passing */
	struct tune *tune; /* and those that these results name; NULL: none */
};

/* The distinct keys, in order of their text; *keys is malloc'ed. Works on a model opened with MODEL_HEADER_ONLY. */
bool key_list_kernels(const struct model_spec *spec, const struct key_list_options *opt, struct key **keys, size_t *n,
                      struct error *err);

/* The programs into which the passes of one token can be made, where the target's device does that (jit/program_key.h):
 * *keys is malloc'ed, *n may be 0. A session whose program is not there, or cannot be made, does without. */
bool key_list_programs(const struct model_spec *spec, const struct key_list_options *opt, struct key **keys, size_t *n,
                       struct error *err);

/* One pass at a time, for a session that is about to make it. */
struct key_list_passes;
struct key_list_passes *key_list_passes_open(const struct model_spec *spec, struct error *err);
void key_list_passes_close(struct key_list_passes *m);
/* The distinct keys, in the order of their first use; *keys is malloc'ed. schedules: all schedules of the kernels that
 * opt->tune has no result for. */
bool key_list_of_pass(const struct key_list_passes *m, enum dtype kv, uint32_t tokens, enum plan_logits logits,
                      const struct plan_options *opt, bool schedules, struct key **keys, size_t *n, struct error *err);

#endif
