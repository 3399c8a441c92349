/* programs/jitwarm/jitwarm_weights.c - packed weights that are kept between runs, as list and gc show and remove them:
 * those of the directory that was named, or of the usual one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "programs/jitwarm/jitwarm.h"
#include "runtime/model/weight_cache.h"

/* Whether there is a directory to look at. */
static bool directory(char *out, size_t cap)
{
	struct stat st;

	if (warm.cache)
		return snprintf(out, cap, "%s", warm.cache) < (int)cap && stat(out, &st) == 0 && S_ISDIR(st.st_mode);
	return weight_cache_default(out, cap) && stat(out, &st) == 0;
}

struct listing {
	const char *dir;
	json_t *entries;
	uint64_t n, bytes;
};

static void list_entry(const struct weight_cache_item *i, void *user)
{
	struct listing *l = user;
	char path[4200], quoted[4200], line[8600], day[32] = "?";
	struct tm t;

	l->n++;
	l->bytes += i->bytes;
	snprintf(path, sizeof path, "%s/%s", l->dir, i->name);
	if (l->entries) {
		json_array_append_new(l->entries, json_pack("{s:o, s:I, s:I}", "path", output_string(path), "bytes",
		                                            (json_int_t)i->bytes, "used", (json_int_t)i->used.tv_sec));
		return;
	}
	if (gmtime_r(&i->used.tv_sec, &t))
		strftime(day, sizeof day, "%Y-%m-%d", &t);
	snprintf(line, sizeof line, "%13.1f MiB  packed weights, last used %s  %s", (double)i->bytes / 0x1p20, day,
	         error_quote(quoted, sizeof quoted, path, strlen(path)));
	output_line(stdout, line, 19);
}

bool warm_list_weights(json_t **json, struct error *err)
{
	char dir[4096];
	struct listing l = { .dir = dir, .entries = json ? json_array() : NULL };

	if (json)
		*json = NULL;
	bool there = directory(dir, sizeof dir), ok = !there || weight_cache_each(dir, list_entry, &l, err);
	if (ok && l.n && !json && !warm.quiet)
		fprintf(stderr, "packed weights of %" PRIu64 " model%s; %.1f MiB\n", l.n, l.n == 1 ? "" : "s",
		        (double)l.bytes / 0x1p20);
	if (json && ok && l.n)
		*json = json_incref(l.entries);
	json_decref(l.entries);
	return ok;
}

bool warm_gc_weights(json_t **json, struct error *err)
{
	char dir[4096];
	struct weight_cache_gc g;
	uint64_t gib = (uint64_t)(warm.weights_limit < 0 ? WEIGHT_CACHE_DEFAULT_GIB : warm.weights_limit);

	*json = NULL;
	if (!directory(dir, sizeof dir))
		return true;
	if (!weight_cache_gc(dir, gib << 30, &g, err))
		return false;
	if (!g.entries && !g.removed)
		return true;
	if (warm.json)
		*json = json_pack("{s:I, s:I, s:I, s:I, s:I}", "entries", (json_int_t)g.entries, "bytes",
		                  (json_int_t)g.bytes, "removed", (json_int_t)g.removed, "removed_bytes",
		                  (json_int_t)g.removed_bytes, "in_use", (json_int_t)g.in_use);
	else if (!warm.quiet)
		fprintf(stderr,
		        "packed weights of %" PRIu64 " model%s, %.1f MiB, removed; of %" PRIu64
		        ", %.1f MiB, left, %" PRIu64 " of them in use\n",
		        g.removed, g.removed == 1 ? "" : "s", (double)g.removed_bytes / 0x1p20, g.entries,
		        (double)g.bytes / 0x1p20, g.in_use);
	return true;
}
