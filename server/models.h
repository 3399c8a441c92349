/* server/models.h - the models that a server has.
 *
 * Owns: their names, and which one a request means.
 */
#ifndef SERVER_MODELS_H
#define SERVER_MODELS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/jitrun.h"
#include "server/refusal.h"

struct batcher;

struct served {
	const char *path;
	char name[200]; /* the file's, or an alias */
	jit_model *model;
	struct batcher *batcher;
	uint64_t fingerprint;      /* of weights and all else that decides bits; 0: not known */
	const char *numerics, *kv; /* their names */
	int pooling;               /* of embeddings: JIT_POOL_LAST and so on */
	int tools;                 /* how its template writes calls: enum tools_form */
	const char *template_text; /* instead of the model's own; NULL */
	jit_model_info info;
	jit_sampling sampling; /* for what a request does not say; what it points to lives as long as the model */
	bool has_seed;         /* the seed in it is for every request; else each draws its own */
	long most;             /* tokens of an answer that does not say how many; -1: as many as the context holds */
	long created;          /* seconds since 1970 */
};

enum { MODELS_MOST = 16 };

struct models {
	struct served *list;
	size_t n;
};

/* Fills in the name from the path, or the alias when it is not NULL. */
void served_name(struct served *m, const char *path, const char *alias);
/* name NULL: the first. With one model any name will do, as clients send those that they know. NULL: refused. */
struct served *models_find(struct models *all, const char *name, struct refusal *r);
/* A token's text as it stands in the middle of others: some tokenizers take a space away from the first one. malloc'ed;
 * NULL: no memory. */
char *models_piece(const jit_model *model, int32_t id, size_t *n);
/* What lists of models have. NULL: no memory. */
json_t *model_json(const struct served *m);
json_t *models_json(const struct models *all);

#endif
