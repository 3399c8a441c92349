/* tests/pull/fake_hub.h - a hub on 127.0.0.1, and the second server that it redirects to, as wrong as a test wants.
 *
 * Its settings are changed between two runs of jitpull, not while one is asking.
 */
#ifndef TESTS_FAKE_HUB_H
#define TESTS_FAKE_HUB_H

#include <stdbool.h>
#include <stddef.h>

enum { HUB_FILES = 16, HUB_SEEN = 256 };

struct fake_file {
	const char *path;
	const char *bytes;
	size_t n;
	bool lfs; /* its bytes come from the second server */
};

struct fake_seen {
	char method[8], target[600], bearer[100], range[60], if_range[100];
	bool by_other; /* the second server was asked */
};

struct fake_hub {
	int port, other; /* of the hub, and of the second server */
	struct fake_file file[HUB_FILES];
	int n_files;

	/* What it does, 0: nothing of that kind. */
	const char *listing;      /* what it lists instead */
	const char *need;         /* the token without which status 401 comes */
	const char *error_code;   /* X-Error-Code of refusals */
	int status, status_times; /* so many answers have that status first */
	bool status_of_bytes;     /* of the second server's alone */
	const char *retry_after;
	size_t cut;     /* bodies of the second server end after so many bytes... */
	int cut_times;  /* ...so many times; -1: always */
	bool bare;      /* the listing says neither sizes nor hashes */
	bool no_ranges; /* Range is passed over */
	bool wrong_hash, wrong_length, too_long, other_range, other_etag, endless_list, endless_head, loop, no_etag;
	int slow_ms; /* before each KiB of a body */

	struct fake_seen seen[HUB_SEEN];
	int n_seen;
};

#define FAKE_COMMIT "0123456789abcdef0123456789abcdef01234567"
extern struct fake_hub hub;

/* Begins to listen, once. */
void fake_hub_start(void);
/* Everything as at the beginning, but with these files. */
void fake_hub_set(const struct fake_file *file, int n);
/* The name of its blob. */
void fake_hub_etag(const struct fake_file *f, char out[65]);
/* Requests of that method whose target holds the text. */
int fake_hub_count(const char *method, const char *text);

#endif
