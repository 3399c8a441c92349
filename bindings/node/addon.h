/* addon.h - what the files of the Node addon share: handles, values of JavaScript, options, and jobs of other threads.
 *
 * index.js and the files beside it are its only callers, and give what these functions expect. */
#ifndef ADDON_H
#define ADDON_H

#define NAPI_VERSION 8
#include <node_api.h>
#include <stdbool.h>

#include "jitrun.h"
#include "jitrun_answers.h"
#include "jitrun_batch.h"
#include "jitrun_cards.h"
#include "jitrun_grammar.h"
#include "jitrun_logits.h"
#include "jitrun_options.h"
#include "jitrun_tokens.h"

struct hook;

/* An object of the library. It is closed when it was asked for and no job and no child uses it: a model outlives its
 * sessions, in whatever order the garbage collector finds them. Belongs to the thread of the environment. */
struct box {
	enum box_kind { BOX_MODEL, BOX_SESSION, BOX_ANSWER, BOX_BATCH, BOX_REQUEST } kind;
	void *p;
	struct box *parent;  /* what it is on: the model, or of a batch's session the batch */
	struct box *request; /* a jit_cancel that it was opened with, or NULL */
	struct hook *hook;   /* of a session: its functions of JavaScript, or NULL */
	/* Of a batch: its sessions, and those to be closed when it does not compute any more. */
	struct box *sessions, *ended;
	struct box *sibling; /* the next in one of these lists */
	int uses;
	int number; /* of a batch's session, by which JavaScript knows it */
	bool busy;
	bool aborted; /* of a session: what computes is to end, and its request is withdrawn then */
	bool sticky;  /* of a request: it stays */
};

struct texts {
	char **list;
	size_t n;
};

/* Sampling as index.js gives it: names and values, and the lists that have no name. */
struct sampling_given {
	struct texts fields, breakers;
	bool has_breakers;
	jit_logit_bias *bias;
	size_t n_bias;
};

struct session_given {
	struct texts fields, card;
	struct sampling_given sampling;
};

/* What session_options() points into. */
struct session_options {
	jit_session_options o;
	jit_sampling sampling;
	jit_card_options card;
};

enum { MESSAGES, TOOLS, VARIABLES, TEMPLATE, TEMPLATE_NAME, FUNCTION, OPENED, OPENING, CALL_ID, N_TEXTS };

/* What functions of conversations are given: a model, or undefined, and an object with texts and numbers. */
struct given {
	struct box *model;
	napi_value object;
	char *t[N_TEXTS];
	char *prompt; /* n_prompt bytes, zero bytes among them */
	size_t n_prompt;
	int one_call, keep_reasoning, cut;
};

/* One token that is chosen, and what becomes of it. */
struct choice {
	struct box *session;
	bool last;     /* what is held back of the text is to be given, since no other step follows */
	int likeliest; /* how many log probabilities; -1: none, not even the chosen token's */
	int32_t id;    /* the token, or -1 */
	int reason;    /* GOES_ON and so on */
	char *text;    /* n_text bytes that it completes */
	size_t n_text;
	float chosen;
	jit_logprob *top;
	jit_error err;
};
enum { GOES_ON, STOPPED, TOO_LONG };

/* One call of the library on a thread of libuv's pool, whose result a promise gets. */
struct job {
	napi_async_work work;
	napi_deferred deferred;
	struct box *box, *request;
	void (*run)(struct job *j);
	napi_value (*result)(napi_env env, struct job *j);
	struct job *before, *behind; /* in the list of those that run */
	struct texts texts;
	struct session_given session;
	struct given given;
	struct hook *hook; /* of progress */
	char *text;
	size_t n_text;
	int32_t *ids;
	size_t n_ids;
	float *floats;
	size_t n_floats;
	struct choice *choices;
	size_t n_choices;
	jit_session **ready;
	size_t n_ready;
	void *made;
	jit_needs needs;
	jit_objects objects;
	int number, flag;
	jit_error err;
};

/* values.c. A function that fails throws, and returns NULL or false. */
bool arguments(napi_env env, napi_callback_info info, napi_value *argv, size_t n);
bool is_nothing(napi_env env, napi_value value);
bool is_pending(napi_env env);                               /* an exception */
char *take_text(napi_env env, napi_value value, size_t *n);  /* NULL without an exception: undefined or null */
char *take_bytes(napi_env env, napi_value value, size_t *n); /* the same; of a Uint8Array as well */
bool take_texts(napi_env env, napi_value value, struct texts *out);
void free_texts(struct texts *t);
int32_t *take_ids(napi_env env, napi_value value, size_t *n);
int take_int(napi_env env, napi_value value);
napi_value named(napi_env env, napi_value object, const char *name);
napi_value from_text(napi_env env, const char *text, size_t n);
napi_value from_bytes(napi_env env, const char *bytes, size_t n);
napi_value from_text_or_bytes(napi_env env, const char *text, size_t n); /* a string where the bytes are UTF-8 */
napi_value from_ids(napi_env env, const int32_t *ids, size_t n);
napi_value from_floats(napi_env env, const float *floats, size_t n);
napi_value from_int(napi_env env, int64_t n);
napi_value from_uint(napi_env env, uint64_t n); /* a BigInt where a number would not be exact */
napi_value from_double(napi_env env, double x);
napi_value from_flag(napi_env env, int flag);
napi_value nothing(napi_env env);
void set(napi_env env, napi_value object, const char *name, napi_value value);
napi_value throw_error(napi_env env, const jit_error *err);
napi_value throw_argument(napi_env env, const char *sentence);
napi_value make_error(napi_env env, const jit_error *err);
void export_function(napi_env env, napi_value exports, const char *name, napi_callback function);

/* boxes.c */
napi_value make_box(napi_env env, enum box_kind kind, void *p, struct box *parent, struct box *request);
void release_box(struct box *b);
void not_busy(struct box *b);
struct box *peek_box(napi_env env, napi_value value); /* NULL, and nothing is thrown: it is closed */
struct box *take_box(napi_env env, napi_value value, enum box_kind kind);
struct box *first_box(napi_env env, napi_callback_info info, napi_value *argv, size_t n, enum box_kind kind);
jit_model *model_of(const struct box *b);
bool *busy_of(struct box *b);
void export_boxes(napi_env env, napi_value exports);

/* options.c */
bool take_sampling(napi_env env, napi_value value, struct sampling_given *out);
bool take_session(napi_env env, napi_value value, struct session_given *out);
void free_sampling(struct sampling_given *s);
void free_session(struct session_given *s);
bool sampling_of(const jit_model *m, const struct sampling_given *given, jit_sampling *out, jit_error *err);
bool session_options(const jit_model *m, const struct session_given *given, struct session_options *out,
                     jit_error *err);

/* numbers.c */
napi_value info_of(napi_env env, const jit_model_info *i);
napi_value sampling_numbers(napi_env env, const jit_sampling *p);
napi_value session_stats(napi_env env, const jit_session_stats *s);
napi_value card_stats(napi_env env, const jit_card_stats *s);
napi_value batch_stats(napi_env env, const jit_batch_stats *s);
napi_value needs_of(napi_env env, const jit_needs *n);
napi_value objects_of(napi_env env, const jit_objects *o);
void export_constants(napi_env env, napi_value exports);

/* hooks.c. Functions of JavaScript that the library calls on a thread of the pool, which waits meanwhile. */
struct hook *new_hook(napi_env env, napi_value function);
void drop_hook(struct hook *h); /* NULL: nothing happens */
void leave_hooks(void *environment);
int on_progress(void *hook, uint64_t done, uint64_t total);
void export_hooks(napi_env env, napi_value exports);

/* jobs.c */
struct job *new_job(napi_env env, struct box *box, void (*run)(struct job *),
                    napi_value (*result)(napi_env, struct job *));
napi_value start_job(napi_env env, struct job *j, bool ready); /* not ready: thrown, and it is freed */
struct job *job_of(napi_env env, napi_callback_info info, napi_value *argv, size_t n, enum box_kind kind,
                   void (*run)(struct job *), napi_value (*result)(napi_env, struct job *));
bool lacks_memory(struct job *j, const void *p, const char *what);
napi_value no_result(napi_env env, struct job *j);
napi_value text_result(napi_env env, struct job *j);
napi_value floats_result(napi_env env, struct job *j);
bool start_jobs(napi_env env, napi_value exports);

/* open.c, compute.c, batch.c, chat.c, tokens.c, session.c */
void export_opening(napi_env env, napi_value exports);
void export_computing(napi_env env, napi_value exports);
napi_value from_logprobs(napi_env env, float chosen, const jit_logprob *top, size_t n);
void export_batch(napi_env env, napi_value exports);
bool take_given(napi_env env, napi_value model, napi_value object, struct given *g);
void free_given(struct given *g);
void export_chat(napi_env env, napi_value exports);
void export_tokens(napi_env env, napi_value exports);
void export_session(napi_env env, napi_value exports);

#endif
