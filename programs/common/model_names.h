/* programs/common/model_names.h - which model a word of a command line means.
 *
 * Owns: names of models, and what other programs' users may write for them. A path that exists always wins. A name is
 * what `jitrun list` prints, or a part of it that people use: without its tag, its owner or its ending, or a repository
 * of Hugging Face with a quantisation behind a colon. What fits best decides; where several fit as well, they are
 * listed and none is taken.
 */
#ifndef PROGRAMS_MODEL_NAMES_H
#define PROGRAMS_MODEL_NAMES_H

#include <stdbool.h>

#include "base/error.h"
#include "programs/common/model_search.h"

/* What a word means. */
struct model_named {
	char *path;     /* as jitrun takes it; it need not exist */
	char *name;     /* as `jitrun list` has it; NULL: the word is a path */
	char *manifest; /* ollama's, whose layers belong to the model; NULL: none */
	char *near;     /* where no model is called so: a name that is nearly the word; NULL: none is */
};

/* False: err, one sentence, with what may have been meant. model_named_free() is due in any case. */
bool model_named(struct model_named *out, const char *word, struct error *err);
void model_named_free(struct model_named *m);
/* The number of the place of which the word is a name; n: none, or several. */
size_t model_name_among(const char *word, const struct found_model *p, size_t n);
/* The path alone, which lives as long as the program. False: err. */
bool model_path(const char **word, struct error *err);
/* Whether the word can be no name: there is such a file, or it is spelled as paths are. */
bool model_is_path(const char *word);

/* The length of a model's name without the ending of its file, and without the number of its part. */
size_t model_name_stem(const char *name);
/* Gives places of one name, sorted by source and order, others, so that each can be asked for: the path to those behind
 * the first of their source, and the source in front where there are several. False: no memory. */
bool model_names_unique(struct found_model *p, size_t n);

#endif
