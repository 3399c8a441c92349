/* programs/jitserve/jitserve.h - what the parts of the jitserve program share.
 *
 *   jitserve_main.c     one run: opens the socket and the first model, waits for the end
 *   jitserve_models.c   how models are opened, and their memory
 *   jitserve_adapters.c  the adapters of the command line
 *   jitserve_folder.c   the models of a folder
 *   jitserve_made.c     models that clients make of others
 *   jitserve_options.c  the command line
 *   jitserve_settings.c the same from a file and the environment; which models are named
 *   jitserve_fingerprint.c  what names a model
 *   jitserve_probe.c    whether a server is ready
 *   jitserve_failure.c  what becomes of a model whose device has failed
 *   jitserve_ranks.c    a model that several processes compute together
 *
 * Everything said to a person goes to stderr; stdout carries what --replay reproduces and nothing else.
 */
#ifndef PROGRAMS_JITSERVE_H
#define PROGRAMS_JITSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "programs/common/options.h"
#include "programs/common/sampling_args.h"
#include "include/jitrun_batch.h"
#include "programs/common/draft_model.h"
#include "server/engine/models.h"

/* Exit status: ended as asked; failed; a wrong command line; --on-device-failure exit. */
enum { SERVE_DONE, SERVE_FAILED, SERVE_USAGE, SERVE_NO_DEVICE };

enum { SERVE_MAX_MODELS = MODELS_MAX };

struct serve_arguments {
	const char *model[SERVE_MAX_MODELS];
	int n_models;
	const char *hf_repo, *hf_file; /* what jitpull fetches */
	const char *host, *api_key_file, *tls_cert, *tls_key, *device, *isa, *cache_dir;
	struct option_list allow_host, cors_origin, alias, api_key, more_models, lora, lora_scaled, lora_modules;
	const char *config;
	long port, connections, per_address, read_seconds, alive_seconds, stop_seconds, body_mib, unread_kib, threads,
		parallel, queue, context, pass_ms, kv_mib, memory_mib, predict, batch_tokens, check_bits, answers,
		client_answers, slot_files, slot_mib, models_max, reasoning_budget, responses, responses_mib,
		responses_seconds, lora_ranks, max_images, image_mp, image_mib;
	struct draft_arguments draft;
	struct sampling_args sampling; /* where a request says nothing */
	const char *models_dir, *presets_dir, *keep_alive, *lora_dir, *mmproj, *image_dir, *image_hosts, *image_with;
	double keep; /* seconds; below 0: for good */
	const char *slot_save, *template_file, *replay, *pooling, *reasoning, *reasoning_format, *reasoning_message,
		*kv_type, *numerics, *on_failure, *speculate, *pull_with, *ranks, *split;
	bool additional, offline, exit_on_failure, no_page, no_slots, verbose, spm_infill, no_replay, insecure, quiet,
		sealed, no_cache, probe, lora_unapplied, no_images;
};
extern struct serve_arguments serve;

int serve_usage(const char *text);
/* Options that are not on the command line. False: an error was printed. */
bool serve_settings(struct option_program *p);
/* Fills serve.model. 0, or the exit status after a sentence. */
int serve_find_models(const struct option_program *p);
/* --probe: asks whether a server is ready; the exit status. */
int serve_probe(void);
/* What main() runs once the command line is read. */
int serve_run(void);
/* The model's, with all weights read. False: err. */
bool serve_fingerprint(jit_model *m, uint64_t *out, struct error *err);
/* What the model is opened with; its device, and those that compute for it. */
jit_model_options serve_model_options(const struct served *m);
const char *serve_device_of(const struct served *m);
/* With --on-device-failure; what the options rule out, as a sentence; NULL: nothing. */
const char *serve_failure_refused(void);
/* Whether a model whose device has failed is opened again on the CPU. */
bool serve_moves(void);
/* jitserve_ranks.c, with --ranks. What the options rule out, as a sentence; NULL: nothing. */
const char *serve_ranks_refused(void);
/* Opens the model on all ranks, before this process has other threads. False: err, or this is another rank than 0,
 * which has done its work, and *status is its exit status. */
bool serve_ranks_open(const char *path, int *status, struct error *err);
/* The model that was opened so, which is the caller's now. NULL: err; it was taken before. */
jit_model *serve_ranks_take(jit_error *err);
/* Whether all ranks are there; false: err says which one is not. */
bool serve_ranks_alive(struct error *err);
/* Closes it, unless it was taken. */
void serve_ranks_close(void);
/* From any thread: a model's device has failed for good. */
void serve_device_failed(void *user, const char *why);
/* jitserve_draft.c: the draft model of the first model, with --draft. What the options rule out, as a sentence; NULL:
 * nothing. */
const char *serve_draft_refused(void);
/* Opens it for the batch of a model that it is for. False: err. */
bool serve_draft_enter(const struct served *m, const struct models *all, jit_cancel *c, jit_batch_options *o,
                       jit_error *err);
/* The model's batch is closed. */
void serve_draft_leave(const struct served *m);
/* What its weights take; 0: it is not for this model. */
uint64_t serve_draft_bytes(const struct served *m);
struct server;
/* The loader of the server's models, which have their names; c ends the opening of one. False: err. */
bool serve_models_open(struct server *s, jit_cancel *c, struct error *err);
void serve_models_close(void);
/* jitserve_folder.c: what is in --models-dir, and with --pull-with what is in the cache that models are fetched into,
 * goes into the server's models, now and whenever they are looked at. False: err. */
bool serve_folder_open(struct models *all, struct error *err);
/* jitserve_sight.c: a model that was opened, and its batcher; that is stopped before the model leaves. False: err. */
bool serve_sight_enter(struct served *m, jit_error *err);
bool serve_sight_start(struct served *m, jit_error *err);
void serve_sight_leave(struct served *m);
/* jitserve_adapters.c: the adapters of the command line go into the models' lists; clients may load more with
 * --lora-dir. False: err. */
bool serve_adapters_open(struct models *all, struct error *err);
/* The model was opened, and so are its adapters. False: err. */
bool serve_adapters_enter(struct served *m, jit_error *err);
void serve_adapters_close(struct models *all);
/* jitserve_made.c: what is kept in --presets-dir goes into the server's models, and clients may make more. False: err.
 */
bool serve_made_open(struct models *all, struct error *err);
/* Whether there may be models beside those of the command line. */
static inline bool serve_has_more(void) { return serve.models_dir || serve.presets_dir || serve.pull_with; }
/* A folder of an option that must be there, and be writable where it says so. False: err. */
bool serve_is_folder(const char *option, const char *path, bool writes, struct error *err);
/* A duration of --keep-alive; NULL: what is usual. */
bool serve_read_keep(const char *text, double *seconds);
/* Whether the command line, the environment or the configuration had the option. */
bool serve_given(const char *name);
/* jitserve_preset.c: what is kept with a model, which is the server's number i, comes from ollama's manifest or from a
 * file of its own; NULL: neither. */
void serve_preset_from(size_t i, const char *manifest, const char *file);
/* Reads it. False: err; preset_free() is due in any case. */
struct preset;
bool serve_preset_read(const struct served *m, size_t i, struct preset *p, struct error *err);
/* Whether its settings can be used, as far as that is seen without a model. False: err. */
bool serve_preset_check(const struct preset *p, struct error *err);
/* The adapters that it names are in the model's list. */
void serve_preset_laid(size_t i);
/* Reads it when the model is opened, and fills in of *m and of its sampling what the options do not say. *context: 0:
 * it says none. False: err. */
bool serve_preset_use(struct served *m, size_t i, struct sampling_args *a, long *context, jit_error *err);
/* Reads the command line and runs. */
int serve_begin(int argc, char **argv);

#endif
