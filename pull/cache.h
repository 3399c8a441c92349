/* pull/cache.h - the cache that Hugging Face's tools and llama.cpp share.
 *
 * Owns: its layout on this machine. models--OWNER--NAME/ has blobs/ with the files by their hashes,
 * snapshots/COMMIT/FILE with links to them, and refs/REVISION with a commit; a file on its way is
 * blobs/HASH.incomplete, and who writes it holds a lock on .locks/models--OWNER--NAME/HASH.lock, as huggingface_hub
 * does.
 *
 * Never: follows a link below a snapshot, or writes outside of the model's folder.
 */
#ifndef PULL_CACHE_H
#define PULL_CACHE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pull/listing.h"
#include "pull/reference.h"

struct hub_cache {
	char *root, *folder; /* folder: of the model, below root */
	int blobs;           /* descriptor of blobs/; -1: none */
};

/* The folder of all models: given, or as $HF_HUB_CACHE, $HF_HOME and others say. malloc'ed; NULL: err. */
char *cache_root(const char *given, struct error *err);
/* make: with its folders. Without, a model that is not there is one that has no files. hub_cache_close is due in any
 * case.
 */
bool hub_cache_open(struct hub_cache *c, const char *root, const struct reference *r, bool make, struct error *err);
void hub_cache_close(struct hub_cache *c);

/* Waits for the process that writes the blob; waiting, unless it is NULL, is called once before that. Its descriptor;
 * -1: err.
 */
int cache_lock(const struct hub_cache *c, const char *etag, void (*waiting)(void *user), void *user,
               const volatile sig_atomic_t *interrupted, struct error *err);
void cache_unlock(int lock);
/* Whether it is there, with that many bytes. */
bool cache_has_blob(const struct hub_cache *c, const struct listing_file *f);
/* Bytes that came of it so far. */
uint64_t cache_left(const struct hub_cache *c, const struct listing_file *f);
/* What came of it so far, to go on with. -1: err. */
int cache_begin_blob(const struct hub_cache *c, const char *etag, uint64_t *have, struct error *err);
/* It is whole: it gets its name. Closes fd. */
bool cache_end_blob(const struct hub_cache *c, const char *etag, int fd, struct error *err);
/* What came of it is of no use. */
void cache_drop_blob(const struct hub_cache *c, const char *etag);

/* Puts the file into the snapshot of a commit. */
bool cache_link(const struct hub_cache *c, const char *commit, const struct listing_file *f, struct error *err);
bool cache_write_ref(const struct hub_cache *c, const char *revision, const char *commit, struct error *err);
/* False: there is none. */
bool cache_read_ref(const struct hub_cache *c, const char *revision, char commit[41]);
/* The files of a commit that are here whole. */
bool cache_list(const struct hub_cache *c, const char *commit, struct listing *l, struct error *err);
/* The path of a file of a snapshot, or of the snapshot; malloc'ed. NULL: err. */
char *cache_path(const struct hub_cache *c, const char *commit, const char *file, struct error *err);
/* Bytes that can be written there. False: nobody knows. */
bool cache_room(const struct hub_cache *c, uint64_t *room);

#endif
