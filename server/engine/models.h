/* server/engine/models.h - the models that a server has.
 *
 * Owns: their names, and which one a request means.
 */
#ifndef SERVER_MODELS_H
#define SERVER_MODELS_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "answers/tool_forms.h"
#include "base/error.h"
#include "runtime/session/answer_marks.h"
#include "include/jitrun.h"
#include "server/request/readers.h"
#include "server/request/refusal.h"
#include "server/engine/served_adapters.h"

struct batcher;
struct sight;

/* Bytes of the sentence that says how a device failed. */
enum { LOST_MAX = sizeof((jit_error *)0)->message };

/* Whether templates are told that the model shall reason. */
enum reasoning { REASONING_TEMPLATE, REASONING_ON, REASONING_OFF };

struct served {
	const char *path;
	char name[200];   /* an alias, or the file's */
	char file[200];   /* the file's or what it was asked for by, which is understood as well */
	long created;     /* seconds since 1970 */
	atomic_bool gone; /* its file is not there any more: it is neither listed nor found */
	bool made;        /* by a client, of another model (models_made.c) */
	unsigned left;    /* the readers' epoch in which such a model was taken away */
	/* While it is in memory, and of the last time that it was: who reads this holds it (loader.h). */
	jit_model *model;                 /* NULL: it is not */
	struct batcher *batcher;          /* NULL: it is not */
	struct sight *sight;              /* its image encoder; NULL: it cannot see */
	struct served_adapters *adapters; /* NULL: it has none, and none can be loaded */
	bool sees;                        /* it has a sight, or had one when it was last in memory */
	const char *device;               /* what computes it, as --device names it */
	uint64_t bytes;                   /* of weights, and of what all its answers may keep of their tokens */
	uint64_t fingerprint;             /* of weights and all else that decides bits; 0: not known */
	const char *numerics, *kv;        /* their names */
	int pooling;                      /* of embeddings: JIT_POOL_LAST and so on */
	int tools;                        /* how its template writes calls: enum tools_form */
	/* Of conversations, for its template (history.h), without tools and with: without repairs what was said is
	 * lost, and without rescues it is refused. */
	unsigned repairs[2], rescues[2];
	bool writes_documents;     /* its template does */
	struct answer_marks marks; /* tokens that are marks of calls */
	/* What is kept with it: a system message for conversations that have none, messages before theirs, and texts
	 * that end an answer where a request says none. NULL, 0: nothing is. */
	const char *system, *const *stop, *own_template;
	const json_t *begins;
	unsigned n_stop;
	const char *template_text; /* instead of the model's own; NULL */
	enum reasoning reasoning;
	bool has_budget;            /* of reasoning, in tokens, where a request does not say */
	int64_t budget;             /* it is */
	const char *budget_message; /* that then stands at its end; NULL */
	bool verbose;               /* answers say how they were generated */
	bool suffix_first;          /* around a gap, whatever the model's family was taught */
	bool keeps_reasoning;       /* in the answer's text, where a request does not say */
	char lost[LOST_MAX];        /* how its first device failed, for loader_move(); "": it has not */
	jit_model_info info;
	char description[200]; /* what info points to */
	jit_sampling sampling; /* for what a request does not say; what it points to lives as long as the model */
	bool additional;       /* objects of schemas may have other members (JIT_GRAMMAR_ADDITIONAL) */
	bool has_seed;         /* the seed in it is for every request; else each draws its own */
	long max;              /* tokens of an answer that does not say how many; -1: as many as the context holds */
};

enum { MODELS_MAX = 128 };

struct loader;
struct models;

/* Who makes models of others, for clients, and keeps them. */
struct model_maker {
	/* A model of that name; another one that was made goes. said: an object with system, template, messages,
	 * license and parameters, each of which takes the place of what is kept with `from`. False: refused. */
	bool (*make)(struct models *all, const char *name, struct served *from, const json_t *said, struct refusal *r);
	/* False: refused. */
	bool (*remove)(struct models *all, struct served *m, struct refusal *r);
	/* The same object of one that was made, and its parent's name; to be given back. NULL: there is no memory, or
	 * it has just been taken away. */
	json_t *(*told)(const struct served *m);
};

struct models {
	struct served *list;
	atomic_size_t n; /* it only grows: an entry is whole before it counts */
	bool by_name;    /* requests must name a model that is there, even where there is only one */
	void (*refresh)(struct models *all); /* for models that have come or gone since; NULL: none do */
	/* The one that a name means which is none of theirs as it stands; NULL: none is guessed. */
	struct served *(*guess)(struct models *all, const char *name);
	/* A model was fetched by that name; path: where it is, as far as that was said. NULL: nobody wants to know. */
	void (*fetched)(struct models *all, const char *name, const char *path);
	bool hides_slots; /* /slots is not answered */
	struct loader *loader;
	struct readers readers;          /* of the list: requests */
	const struct model_maker *maker; /* NULL: no models are made */
};

/* Adds one; it is called by its file's name, or by the alias when that is not NULL. also: another name that is
 * understood, instead of the file's; NULL: the file's. False: there is one of that name. */
bool models_add(struct models *all, const char *path, const char *alias, const char *also, struct error *err);
/* Who adds models, or takes some away: one at a time. models_add() does this itself. */
void models_lock(void);
void models_unlock(void);
/* models_made.c: an entry that is not found yet, for a model that is made; path: for as long as the entry is another's.
 * NULL: all entries are in use. */
struct served *models_entry(struct models *all, const char *path, const char *name, long created);
/* From now on it is found, and `old` is not; NULL: the name is new. */
void models_show(struct models *all, struct served *m, struct served *old);
/* Under the lock: one that was made is no longer found, and leaves memory. */
void models_take_away(struct models *all, struct served *m);
/* One that was made, for good. False: refused. */
bool models_remove(struct models *all, struct served *m, struct refusal *r);
/* Looks for models that have come or gone: before lists, and where a name is not known. */
void models_refresh(struct models *all);
/* NULL: none is called so. */
struct served *models_named(struct models *all, const char *name);
/* The model that has an adapter of that name. NULL: none has. */
struct served *models_of_adapter(struct models *all, const char *name);
/* Under their locks: an adapter may have that name. False: a model or another adapter has it. */
bool models_may_name(struct models *all, const char *name, struct error *err);
/* No model is called so; false always. */
bool models_refuse(const struct models *all, const char *name, int status, struct refusal *r);
/* name NULL: the first. With one model any name will do, unless by_name, as clients send those that they know. NULL:
 * refused. */
struct served *models_find(struct models *all, const char *name, struct refusal *r);
/* The bytes of a token as it stands in the middle of others: some tokenizers take a space away from the first one. They
 * may be a part of a character. special: of control tokens their names, else nothing. Borrowed, or in scratch. */
const char *models_bytes(const jit_model *model, int32_t id, bool special, char scratch[256], size_t *n);
/* The text of tokens, special ones with their names. malloc'ed; NULL: no memory. */
char *models_text(const jit_model *model, const int32_t *ids, size_t n_ids, size_t *n);
/* The token that begins every text of the model; -1: there is none. */
int32_t models_first_token(const struct served *m);
/* Tokens of a text that stands behind others: some tokenizers put a space before the first one. False: err. */
bool models_go_on(const jit_model *model, const char *text, bool special, int32_t **ids, size_t *n, jit_error *err);
/* Tokens of a text of which some bytes are plain, that is no control token's (tokenizer.h). False: err. */
bool models_encode(const jit_model *model, const char *text, size_t n, const uint8_t *plain, int32_t **ids,
                   size_t *n_ids, jit_error *err);
/* The text of the model's chat template of that name, 0-terminated. NULL: it has none. */
const char *models_template(const jit_model *model, const char *name);
/* Once its form of calls is known: which of its tokens are marks. */
void models_find_marks(struct served *m);
/* The mark that this token is; "": it is none. */
const char *models_mark(const struct served *m, int32_t id);
/* What lists of models have, and whether each is in memory. NULL: no memory. */
json_t *model_json(const struct models *all, const struct served *m);
json_t *models_json(const struct models *all);
/* The same of an adapter of the model. */
json_t *model_adapter_json(const struct models *all, const struct served *m, const struct served_adapter_told *a);
/* What is known of one that is open: the sizes of its parts. */
json_t *model_meta_json(const jit_model_info *info, int context);

#endif
