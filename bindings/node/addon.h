/* addon.h - what the files of the Node addon share: handles, values of JavaScript, and jobs of other threads.
 *
 * index.js is its only caller, and gives what these functions expect. */
#ifndef ADDON_H
#define ADDON_H

#define NAPI_VERSION 8
#include <node_api.h>
#include <stdbool.h>

#include "jitrun.h"
#include "jitrun_answers.h"
#include "jitrun_grammar.h"
#include "jitrun_options.h"
#include "jitrun_tokens.h"

enum { MOST_ARGUMENTS = 8 };

/* An object of the library. It is closed when it was asked for and no job and no child uses it: a model outlives its
 * sessions, in whatever order the garbage collector finds them. Belongs to the thread of the environment. */
struct box {
	enum box_kind { BOX_MODEL, BOX_SESSION, BOX_ANSWER } kind;
	void *p;
	struct box *parent;
	int uses;
	bool closed, busy;
};

struct texts {
	char **list;
	size_t n;
};

/* One call of the library on a thread of libuv's pool, whose result a promise gets. */
struct job {
	napi_async_work work;
	napi_deferred deferred;
	struct box *box;
	void (*run)(struct job *j);
	napi_value (*result)(napi_env env, struct job *j);
	struct texts texts, sampling;
	char *text;
	size_t n_text;
	int32_t *ids;
	size_t n_ids;
	float *floats;
	size_t n_floats;
	void *made;
	int32_t id;
	int number, flag;
	jit_error err;
};

/* values.c. A function that fails throws, and returns NULL or false. */
bool arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t n);
char *take_text(napi_env env, napi_value value, size_t *n); /* NULL without an exception: undefined or null */
bool take_texts(napi_env env, napi_value value, struct texts *out);
void free_texts(struct texts *t);
int32_t *take_ids(napi_env env, napi_value value, size_t *n);
int take_int(napi_env env, napi_value value);
napi_value from_text(napi_env env, const char *text, size_t n);
napi_value from_ids(napi_env env, const int32_t *ids, size_t n);
napi_value from_floats(napi_env env, const float *floats, size_t n);
napi_value from_int(napi_env env, int64_t n);
void set(napi_env env, napi_value object, const char *name, napi_value value);
napi_value make_error(napi_env env, const jit_error *err);
napi_value throw_error(napi_env env, const jit_error *err);
napi_value throw_argument(napi_env env, const char *sentence);
napi_value make_box(napi_env env, enum box_kind kind, void *p, struct box *parent);
void release_box(struct box *b);
struct box *take_box(napi_env env, napi_value value, enum box_kind kind);

/* jobs.c */
struct job *new_job(napi_env env, struct box *box);
napi_value start_job(napi_env env, struct job *j);
void free_job(struct job *j);
bool sampling_of(const jit_model *m, const struct texts *t, jit_sampling *out, jit_error *err);
void export_jobs(napi_env env, napi_value exports);

/* chat.c */
void export_chat(napi_env env, napi_value exports);

void export_function(napi_env env, napi_value exports, const char *name, napi_callback function);

#endif
