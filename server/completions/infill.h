/* server/completions/infill.h - texts that are filled in between two others.
 *
 * Owns: the prompt that a model trained for it is asked with, by the tokens that its files name, and the tokens that
 * end what it fills in.
 */
#ifndef SERVER_INFILL_H
#define SERVER_INFILL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/engine/models.h"
#include "server/request/refusal.h"
#include "server/engine/task.h"

enum infill_mark { INFILL_PREFIX, INFILL_SUFFIX, INFILL_MIDDLE, INFILL_REPO, INFILL_SEP, INFILL_PAD, INFILL_MARKS };
/* The order of the texts, each behind its token; what fills the gap is the middle, or follows the prefix. */
enum infill_order { INFILL_PREFIX_SUFFIX_MIDDLE, INFILL_SUFFIX_PREFIX_MIDDLE, INFILL_SUFFIX_PREFIX };
struct infill_marks {
	int32_t id[INFILL_MARKS]; /* -1: there is no such token */
	enum infill_order order;
};
/* Of a model; false: it lacks one that it needs. */
bool infill_find(const jit_model *model, struct infill_marks *m);
/* By the text of its token for what stands before a gap, n bytes, and by its name. */
enum infill_order infill_order_of(const char *token, size_t n, const char *name);

/* Whether the model has the tokens for it. */
bool infill_is_known(const jit_model *model);
/* What is asked for. */
struct infill {
	const int32_t *prefix, *suffix,
		*middle; /* tokens before the gap, behind it, and those that begin what fills it */
	size_t n_prefix, n_suffix, n_middle;
	const json_t *extra; /* array of {"filename", "text"}: other files; NULL: none */
	size_t max; /* tokens of the prompt; of what is more, files go first, then the ends that are farthest away */
};
/* The prompt, malloc'ed. field: to which a refusal belongs. False: refused. */
bool infill_make(const struct infill *o, const struct served *m, const char *field, int32_t **ids, size_t *n,
                 struct refusal *r);
/* ---- by a template in Go's language (gap_template.c) */

struct infill_text {
	int32_t *ids;
	char *text;
	size_t n_ids, n_text;
};
/* Whether the template writes a gap: it looks at .Suffix. NULL: it does not. */
bool infill_in_template(const char *template_text);
/* What this template makes of messages and of variables, which are taken over. False: refused. */
bool infill_render(const char *template_text, const char *messages, json_t *variables, const struct served *m,
                   int64_t now, struct infill_text *out, struct refusal *r);
/* By the model's own template. Both texts have something in them. */
bool infill_by_template(const struct served *m, const char *prompt, const char *suffix, int64_t now,
                        struct infill_text *out, struct refusal *r);
/* Its answer ends where a token of another gap or file begins. False: refused. */
bool infill_end(struct task *t, const jit_model *model, struct refusal *r);

#endif
