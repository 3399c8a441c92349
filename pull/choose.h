/* pull/choose.h - which of a repository's files a model needs.
 *
 * Owns: the meaning of :QUANT, the order in which types of weights are preferred where none is named (llama.cpp's, so
 * that both take the same file), the shards of a model, and what belongs to it.
 */
#ifndef PULL_CHOOSE_H
#define PULL_CHOOSE_H

#include <stdbool.h>

#include "pull/listing.h"
#include "pull/reference.h"

/* Marks the files. *model: the one that is opened, or NULL for the folder they lie in. False: err. */
bool choose_files(struct listing *l, const struct reference *r, bool mmproj, const struct listing_file **model,
                  struct error *err);
/* Whether the path of a GGUF file says that its weights have that type. */
bool path_has_quant(const char *path, const char *quant);
/* "...-00002-of-00003.gguf": bytes before that part, which number it has and how many there are. False: no shard. */
bool path_is_shard(const char *path, size_t *prefix, unsigned *part, unsigned *of);

#endif
