/* programs/jitwarm/jitwarm.h - what the parts of the jitwarm program share.
 *
 *   jitwarm_main.c     models, targets and the cache of an invocation
 *   jitwarm_options.c  the command line
 *   jitwarm_make.c     generates kernels into a pack or a directory
 *   jitwarm_device.c   the card whose driver makes code of kernels
 *   jitwarm_cache.c    list, verify, gc, export, import: commands about a whole cache
 *   jitwarm_weights.c  packed weights in list and gc
 *   jitwarm_pack.c     packed models: pack-model, and what there is to see in them
 *   jitwarm_look.c     show: one kernel
 *   jitwarm_explain.c  explain: all that a model needs, or that a text of kernels has
 *   jitwarm_tune.c     measures which schedules are fastest on this processor
 *
 * stdout carries what was asked for (tables, listings, one JSON line) and nothing else; everything said to a person on
 * the way goes to stderr.
 */
#ifndef PROGRAMS_JITWARM_H
#define PROGRAMS_JITWARM_H

#include <jansson.h>

#include "jit/store/cache.h"
#include "jit/store/driver_code.h"
#include "jit/store/tune.h"
#include "loaders/model/model.h"
#include "programs/common/options.h"
#include "programs/common/output.h"
#include "runtime/plan/key_list.h"

/* Exit status: done; failed; a wrong command line; or the answer is no, because something is missing, damaged or
 * differs. */
enum { WARM_DONE, WARM_FAILED, WARM_USAGE, WARM_NO };

enum { WARM_MAX_OPERANDS = 256 };

struct warm_arguments {
	const char *operand[WARM_MAX_OPERANDS];
	int n_operands; /* without the command */
	struct option_list targets, shapes, constants;
	const char *out, *weights, *activations, *numerics, *kv_type, *cache, *device;
	long batch, limit, weights_limit, seconds;
	bool json, quiet, remove, replace, tuned, unverified;
};
extern struct warm_arguments warm;

/* Fills warm and runs the command; the exit status. */
int warm_run(int argc, char **argv);

/* One sentence on stderr. */
int warm_fail(const struct error *e);
int warm_usage(const char *text);

/* Before anything is computed for it. */
bool warm_can_write(const char *path, struct error *err);
/* The targets asked for, in that order and each once, and that of --device; native when none is. Returns how many; 0:
 * err. */
int warm_targets(const struct target *out[TARGET_COUNT], struct error *err);
/* Opens the headers of all models asked for, files and shapes, one after the other. visit returns false to stop, with
 * err set. */
bool warm_each_model(bool (*visit)(const struct model *m, const char *name, void *user, struct error *err), void *user,
                     struct error *err);
int warm_model_count(void);
/* With those of what the driver of --device makes for its target, programs among them. */
bool warm_model_keys(const struct model *m, const struct target *t, struct key **keys, size_t *n, struct error *err);
/* The card of --device: its driver and its target, NULL without one. False: err. */
bool warm_open_device(struct error *err);
void warm_close_device(void);
const struct driver_linker *warm_linker(void);
const struct target *warm_device_target(void);
bool warm_device_awaits(const struct target *t); /* it is of that target, and device_facts.awaits */
/* Adds the programs (jit/program_key.h) of a model to its keys. False: err. */
bool warm_add_programs(const struct model_spec *spec, const struct key_list_options *o, struct key **keys, size_t *n,
                       struct error *err);
/* If the cache has the text of that program, it is known from now on of which kernels it is made. */
void warm_learn_program(struct cache *c, const struct key *key);
/* " (a driver's: compute capability 9.0, CUDA 13.0)" of a key of such code, else ""; returns out. */
enum { WARM_DRIVER_NOTE_MAX = DRIVER_CODE_TEXT_MAX + 16 };
const char *warm_driver_note(const struct key *key, char out[WARM_DRIVER_NOTE_MAX]);
/* The cache asked for; read_only: nothing is made or written. */
struct cache *warm_open_cache(bool read_only, struct error *err);
/* What was found out about this processor, from the cache's first directory. NULL: err. */
struct tune *warm_open_tune(bool read_only, struct error *err);
/* How many times as fast as the usual way a key's schedule was found to be; 0: nothing is known, or of another
 * schedule. */
double warm_tuned_gain(const struct key *key);

/* The bytes of a pack of all kernels that a model can need on these targets, malloc'ed. NULL: err. */
uint8_t *warm_model_pack(const struct model *m, const struct target *const *target, int n_targets, size_t *kernels,
                         size_t *bytes, struct error *err);
/* Of a packed model: its sections on stdout, or in o; whether all of them fit their checksums, *wrong says which does
 * not. False: err. */
bool warm_list_packed(const char *path, json_t *o, struct error *err);
bool warm_verify_packed(const char *path, char *wrong, size_t cap, struct error *err);

int warm_make(void);
int warm_pack_model(void);
int warm_list(void);
int warm_verify(void);
int warm_gc(void);
int warm_export(void);
int warm_import(void);
int warm_show(void);
int warm_explain(void);
int warm_tune(void);

/* jitwarm_weights.c: of the directory given, or the usual one. json: receives what there is, or NULL; in list, json
 * NULL prints it. False: err. */
bool warm_list_weights(json_t **json, struct error *err);
bool warm_gc_weights(json_t **json, struct error *err);

#endif
