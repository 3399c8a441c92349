/* pull/pull.h - downloads a model of Hugging Face's hub into the cache.
 *
 * Owns: the order of things: which files, whether there is room, each file whole and compared with its hash before it
 * gets its name, the links of the snapshot, and at the end the note of which commit a revision is. What was interrupted
 * goes on where it stood.
 */
#ifndef PULL_PULL_H
#define PULL_PULL_H

#include "pull/cache.h"
#include "pull/choose.h"
#include "pull/hub.h"

struct pull_events {
	void (*begin)(void *user, const struct listing *l, const char *model); /* which files are chosen */
	/* done: of the file; all_done, all: of those that were not here whole. */
	void (*progress)(void *user, const struct listing_file *f, uint64_t done, uint64_t all_done, uint64_t all);
	void (*checked)(void *user, const struct listing_file *f);
	void *user;
};

struct pull {
	struct hub hub; /* filled but for http, endpoint and token */
	struct pull_events events;
	const char *agent, *cache, *file; /* cache, file: NULL: the usual one */
	bool dry_run, offline, or_cached, mmproj;

	struct reference reference;
	struct hub_cache store;
	struct listing listing;
	const struct listing_file *model;
	uint64_t all, all_done;
	bool from_cache;
};

/* name: as people write it. *path: where the model is then, malloc'ed; with dry_run where it would be. False: err. */
bool pull_model(struct pull *p, const char *name, char **path, struct error *err);
/* Whether HF_HUB_OFFLINE says that nobody is to be asked. */
bool pull_is_offline(void);

#endif
