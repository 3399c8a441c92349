/* runtime/model/model.h - the inside of a jit_model, shared by model.c and the session*.c. */
#ifndef RUNTIME_MODEL_H
#define RUNTIME_MODEL_H

#include "jit/store/perf_gdb.h"
#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "loaders/model/model.h"
#include "loaders/tokenizer/tokenizer.h"
#include "runtime/device/device.h"
#include "include/jitrun.h"
#include "runtime/model/packed.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/weights.h"

struct jit_model {
	struct packed *packed;          /* NULL: the model is no packed one */
	struct container *kept_weights; /* in the cache of weights; NULL: not there */
	struct error kept_trouble;      /* why not */
	struct model file;
	struct weights weights;
	struct cache *cache;
	struct registry *registry;
	struct perf_gdb *perf_gdb; /* told of new code; or NULL */
	struct tune *tune;         /* NULL: kernels have their usual schedules */
	unsigned tune_passes;      /* that a session may spend on finding out more */
	struct ranks *ranks;       /* that compute it together (ranks/ranks.h); NULL: this process alone */
	struct device *device;
	const struct target *target; /* the device's */
	bool f32_activations, bounded;
	bool values_apart;   /* sessions keep all that a pass computes (live.h), for who compares it afterwards */
	double bounded_gain; /* of pairs of BF16 over floats, as measured; 0: it was not asked for */
	bool sealed;         /* kernels are loaded, never generated */
	bool has_all;        /* sealed: every one that any session can need */
	FILE *dump_ir, *dump_asm;
	bool perf_map;
	_Atomic uint32_t shown; /* levels of features that pictures for it have; 0: it takes none */
	char description[256];
	double load_seconds;
	uint64_t token_bytes;
	struct adapters *_Atomic adapters;        /* NULL: none was opened yet (adapters.h) */
	_Atomic uint64_t fingerprint;             /* 0: nobody asked (fingerprint.h) */
	struct vocabulary *_Atomic vocabulary;    /* NULL: no session had a grammar yet (session_grammar.c) */
	struct marked_vocabulary *_Atomic marked; /* the same, with control tokens that are marks of calls */
};

/* Fills the public error from the internal one; returns the status. */
int model_report(jit_error *out, const struct error *e);
/* Whether the model has a tokenizer, and whether each of n ids is one of its tokens. False: err. */
bool model_needs_tokenizer(const jit_model *m, struct error *err);
bool model_check_ids(const jit_model *m, const int32_t *ids, size_t n, struct error *err);
/* jit_model_info.bounded */
static inline int model_bounded(const jit_model *m)
{
	return m->bounded && m->target->has_dot2  ? JIT_BOUNDED_ALL
	       : m->bounded && m->target->has_mma ? JIT_BOUNDED_PROMPTS
	                                          : JIT_BOUNDED_NONE;
}
/* Before the weights are loaded: whether the device has room for them and for the session that o->session describes.
 * False: err. Of session_open.c. */
bool session_fits(jit_model *m, const jit_model_options *o, struct error *err);

/* model_text.c: tokens of a text that stands behind others, as some tokenizers put a space before the first one.
 * special: control tokens of their names. False: err. */
bool model_go_on(const jit_model *m, const char *text, bool special, int32_t **ids, size_t *n, struct error *err);
/* The same of a text of which some bytes are plain (tokenizer.h); plain NULL: special says. */
bool model_go_on_marked(const jit_model *m, const char *text, size_t length, const uint8_t *plain, bool special,
                        int32_t **ids, size_t *n, struct error *err);

/* model_ranks.c: whether this process is rank 0 of several. */
bool model_leads(const jit_model *m);
/* False where there are several ranks: err says that they cannot do so yet. */
bool model_is_alone(const jit_model *m, const char *what, struct error *err);
/* engine_follow.c: does what rank 0 says, on another rank, until that says no more. False: err. */
bool model_follow(jit_model *m, struct error *err);

/* session_grammar.c: gives back what all sessions of a model share for grammars. */
void session_grammar_forget(jit_model *m);

#endif
