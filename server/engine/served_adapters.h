/* server/engine/served_adapters.h - the adapters of one of the server's models.
 *
 * Owns: their names and numbers, which of them count for a request that says nothing, and how long each stays in
 * memory: until it was unloaded and no request has it any more. They come and go while the model computes.
 */
#ifndef SERVER_SERVED_ADAPTERS_H
#define SERVER_SERVED_ADAPTERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "include/jitrun_adapters.h"
#include "server/request/refusal.h"

enum { ADAPTER_NAME = 200, ADAPTER_PATH = 4096 };

struct served_adapters;
struct loaded_adapter;

/* What a request has: held until it is dropped. All 0: nothing. */
struct used_adapters {
	unsigned n;
	struct used_adapter {
		struct loaded_adapter *adapter;
		float scale;
	} of[JIT_ADAPTERS_TOGETHER];
};

/* ---- a model's list */

/* NULL: no memory. */
struct served_adapters *served_adapters_open(void);
void served_adapters_close(struct served_adapters *all);
/* Adds one that is opened with the model. name: requests that have it as "model" get it alone; NULL: it has none. own:
 * its scale then. usual: its scale in requests that say nothing. False: err. */
bool served_adapters_add(struct served_adapters *all, const char *name, const char *path, float own, float usual,
                         struct error *err);
/* The model was opened, and so are they; or it is to be closed. False: err, which names the first that cannot be
 * opened; one that came by a request only fails those that want it. */
bool served_adapters_enter(struct served_adapters *all, jit_model *m, jit_error *err);
void served_adapters_leave(struct served_adapters *all);
/* How many there are. */
unsigned served_adapters_count(struct served_adapters *all);
/* None is left; for a list that becomes another model's. */
void served_adapters_clear(struct served_adapters *all);
uint64_t served_adapters_bytes(const struct served_adapters *all);

/* ---- requests */

/* Opens one for a model that is in memory. shown: its path, as clients read it. False: refused. */
bool served_adapters_load(struct served_adapters *all, jit_model *m, const char *name, const char *path,
                          const char *shown, struct refusal *r);
/* False: refused, as there is none of that name. */
bool served_adapters_unload(struct served_adapters *all, const char *name, struct refusal *r);
bool served_adapters_has(struct served_adapters *all, const char *name);
/* Whether any has a name, or had one before it was unloaded: who still asks for it does not mean the model alone. */
bool served_adapters_are_named(struct served_adapters *all);
/* The one of that name; NULL: those of `list`, which is an array of objects with id and scale; both NULL: the usual
 * ones. False: refused. */
bool served_adapters_choose(struct served_adapters *all, const char *name, const json_t *list,
                            struct used_adapters *out, struct refusal *r);
/* The scales that count from now on for requests that say nothing, in the same form. False: refused. */
bool served_adapters_set(struct served_adapters *all, const json_t *list, struct refusal *r);
/* The adapters of a replayed answer as such a list, by fingerprint: "0123456789abcdef:0.5,...". NULL: err. */
json_t *served_adapters_of_replay(struct served_adapters *all, const char *text, struct error *err);

/* As llama.cpp's server lists them. */
json_t *served_adapters_json(struct served_adapters *all);
/* One that has a name, for lists of models; also how many answers it was in. The texts are those of an entry that may
 * go at any moment, so they are copies. */
struct served_adapter_told {
	char name[ADAPTER_NAME], path[ADAPTER_PATH];
	long created;
	uint64_t answers;
};
/* Calls tell for each. */
void served_adapters_each(struct served_adapters *all, void (*tell)(void *user, const struct served_adapter_told *a),
                          void *user);

/* ---- what a request has */

/* A copy, which is held too. */
void used_adapters_copy(struct used_adapters *to, const struct used_adapters *from);
void used_adapters_drop(struct used_adapters *u);
/* Gives them to a session, from where the prompt says that they begin. False: err. */
bool used_adapters_set(const struct used_adapters *u, jit_session *s, const int32_t *prompt, size_t n, jit_error *err);
/* Whether where they begin depends on a prompt. */
bool used_adapters_begin(const struct used_adapters *u);
/* So many more answers have them. */
void used_adapters_count(const struct used_adapters *u, unsigned answers);
/* "0123456789abcdef:0.5,...": their fingerprints and scales; empty: none. False: it does not fit. */
bool used_adapters_text(const struct used_adapters *u, char *out, size_t room);

/* Which they are, without holding them. */
struct noted_adapters {
	unsigned n;
	struct {
		unsigned id;
		float scale;
	} of[JIT_ADAPTERS_TOGETHER];
};
struct noted_adapters used_adapters_note(const struct used_adapters *u);
/* Those again. False: one of them was unloaded. */
bool served_adapters_find(struct served_adapters *all, const struct noted_adapters *noted, struct used_adapters *out);

#endif
