/* pull/remove.h - takes a model out of the cache.
 *
 * Owns: what of it nothing else refers to. Links of other revisions keep the blobs that they lead to, and nothing
 * outside of the model's folder is touched.
 */
#ifndef PULL_REMOVE_H
#define PULL_REMOVE_H

#include "pull/cache.h"

struct removal {
	struct removal_file {
		char *path;   /* of a snapshot: COMMIT/FILE */
		char *target; /* the blob's name; "": it is no link to one */
		uint64_t size;
		bool goes;
	} * file;
	size_t n, room, goes;
	uint64_t bytes; /* that become free */
	bool all;       /* nothing of the model stays */
};

/* Looks what there is, and marks what the reference names: a file with its parts, a type of weights, a revision, or
 * all. removal_free is due in any case. False: err. */
bool removal_find(struct removal *m, const struct hub_cache *c, const struct reference *r, struct error *err);
/* False: err; what could be removed by then is. */
bool removal_do(const struct removal *m, const struct hub_cache *c, struct error *err);
void removal_free(struct removal *m);

#endif
