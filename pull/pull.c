#include "pull/pull.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pull/digest.h"

enum { READ_BYTES = 1 << 16 };

bool pull_is_offline(void)
{
	static const char *const on[] = { "1", "ON", "YES", "TRUE" };
	const char *value = getenv("HF_HUB_OFFLINE");

	for (size_t i = 0; value && i < sizeof on / sizeof *on; i++)
		if (strcasecmp(value, on[i]) == 0)
			return true;
	return false;
}

/* ---- one file */

/* One that is being written. */
struct download {
	struct pull *pull;
	const struct listing_file *file;
	struct digest digest;
	int fd;
	uint64_t at;       /* bytes that are there, and in the digest */
	bool began, moved; /* of this try: its first bytes came; some were new */
	char etag[300];    /* of the server that has the bytes; "": not known */
	struct error *err;
};

static bool start_over(struct download *d)
{
	d->pull->all_done -= d->at;
	d->at = 0;
	digest_begin(&d->digest, d->file->etag, d->file->size);
	if (ftruncate(d->fd, 0) == 0 && lseek(d->fd, 0, SEEK_SET) == 0)
		return true;
	return error_set(d->err, ERROR_IO, "the cache cannot be written: %s", strerror(errno));
}

static bool says_other_file(const struct download *d, const struct http_answer *a)
{
	const char *want = d->file->etag;

	/* The hub's own name for the bytes. A plain ETag may be that of another server. */
	return *a->linked_etag && strcmp(a->linked_etag, want) != 0;
}

/* Judges the head of an answer with the file in it. */
static bool begin_body(struct download *d, const struct http_answer *a)
{
	uint64_t size = d->file->size;

	d->began = true;
	if (says_other_file(d, a))
		return error_set(d->err, ERROR_FORMAT,
		                 "\"%.200s\" became another file on the hub meanwhile: start again", d->file->path);
	if (a->status == 206 && (a->range_from != d->at || a->range_total != size))
		return error_set(d->err, ERROR_FORMAT,
		                 "the server sends another part of \"%.200s\" than it was asked for", d->file->path);
	if (a->status == 200 && d->at && !start_over(d))
		return false;
	if (a->length != HTTP_UNKNOWN && a->length != size - d->at)
		return error_set(d->err, ERROR_FORMAT,
		                 "the server sends %llu bytes of \"%.200s\", of which %llu are missing",
		                 (unsigned long long)a->length, d->file->path, (unsigned long long)(size - d->at));
	snprintf(d->etag, sizeof d->etag, "%s", a->weak ? "" : a->etag);
	return true;
}

static bool write_all(struct download *d, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(d->fd, bytes, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_set(
				d->err, ERROR_IO,
				errno == ENOSPC || errno == EDQUOT
					? "the disk is full: %llu bytes of \"%.200s\" are kept, and the same "
					  "command goes on from there (%s)"
					: "%llu bytes of \"%.200s\" are kept, and the next cannot be written: %s",
				(unsigned long long)d->at, d->file->path, strerror(errno));
		digest_add(&d->digest, bytes, (size_t)done);
		d->at += (uint64_t)done;
		d->pull->all_done += (uint64_t)done;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

static bool take_body(void *user, const struct http_answer *a, const void *bytes, size_t n)
{
	struct download *d = user;

	if (!d->began && !begin_body(d, a))
		return false;
	if (n > d->file->size - d->at)
		return error_set(d->err, ERROR_FORMAT, "the server sends more of \"%.200s\" than its %llu bytes",
		                 d->file->path, (unsigned long long)d->file->size);
	d->moved |= n > 0;
	if (!write_all(d, bytes, n))
		return false;
	d->pull->events.progress(d->pull->events.user, d->file, d->at, d->pull->all_done, d->pull->all);
	return true;
}

/* What an earlier run left, into the digest. */
static bool take_left(struct download *d, uint64_t have)
{
	char bytes[READ_BYTES];
	ssize_t n = 1;

	digest_begin(&d->digest, d->file->etag, d->file->size);
	d->at = 0;
	if (have > d->file->size)
		return start_over(d);
	while (d->at < have && n > 0 && !*d->pull->hub.interrupted) {
		n = read(d->fd, bytes, sizeof bytes);
		if (n > 0) {
			digest_add(&d->digest, bytes, (size_t)n);
			d->at += (uint64_t)n;
			d->pull->all_done += (uint64_t)n;
		}
	}
	if (*d->pull->hub.interrupted)
		return error_set(d->err, ERROR_CANCELLED, "interrupted");
	return n > 0 ? lseek(d->fd, (off_t)d->at, SEEK_SET) >= 0 || start_over(d) : start_over(d);
}

/* Whether there is an answer to judge further: true, with *again for another try. False: err. */
static bool judge_try(struct download *d, enum http_end end, const struct http_answer *a, bool *again)
{
	bool whole = d->at == d->file->size;

	*again = false;
	if (d->err->code && end != HTTP_BROKEN)
		return false;
	if (end == HTTP_STOPPED)
		return error_set(d->err, ERROR_CANCELLED, "interrupted");
	if (end == HTTP_ANSWERED && a->status == 416 && d->at)
		return *again = start_over(d);
	if (end == HTTP_ANSWERED && a->status != 200 && a->status != 206) {
		hub_refused(&d->pull->hub, &d->pull->reference, d->file->path, a, d->err);
		return *again = hub_is_passing(a->status);
	}
	if (end == HTTP_ANSWERED && !d->began && !whole && !begin_body(d, a))
		return false;
	if (d->at == d->file->size) {
		*d->err = (struct error){ 0 };
		return true;
	}
	const struct error why = *d->err;
	*d->err = (struct error){ 0 };
	error_set(d->err, ERROR_IO, "%llu of %llu bytes of \"%.150s\" came%s%.200s", (unsigned long long)d->at,
	          (unsigned long long)d->file->size, d->file->path, why.code ? ": " : "", why.text);
	return *again = true;
}

static bool get_bytes(struct download *d)
{
	struct pull *p = d->pull;
	struct http_answer a;

	for (int tried = 0; d->at < d->file->size || d->file->size == 0;) {
		const struct http_request how = {
			.from = d->at, .if_range = *d->etag ? d->etag : NULL, .body = take_body, .user = d
		};
		bool again;
		d->began = d->moved = false;
		enum http_end end = hub_get(&p->hub, &p->reference, p->listing.commit, d->file, &how, &a, d->err);
		if (!judge_try(d, end, &a, &again))
			return false;
		if (!again)
			return true;
		tried = d->moved ? 1 : tried + 1;
		if (d->err->code ? !hub_wait(&p->hub, tried, &a, d->err)
		                 : tried >= p->hub.tries &&
		                           !error_set(d->err, ERROR_FORMAT, "the server refuses \"%.200s\" from byte 0",
		                                      d->file->path))
			return false;
	}
	return true;
}

/* Whether the bytes are what the hub has. Ends the digest. */
static bool is_right(struct download *d, char is[65])
{
	digest_end(&d->digest, is);
	return !*is || strcmp(is, d->file->etag) == 0;
}

/* Under the lock. */
static bool get_file(struct pull *p, const struct listing_file *f, struct error *err)
{
	struct download d = { .pull = p, .file = f, .err = err };
	uint64_t have = 0, before = p->all_done;
	char is[65];
	bool left;

	d.fd = cache_begin_blob(&p->store, f->etag, &have, err);
	if (d.fd < 0)
		return false;
	left = have > 0;
	bool ok = take_left(&d, have) && get_bytes(&d), right = ok && is_right(&d, is);
	if (ok && !right && left) { /* the part that was here may be at fault */
		p->hub.say(p->hub.user, "what was here of it was damaged; all of it is fetched again");
		d.etag[0] = 0;
		ok = start_over(&d) && get_bytes(&d);
		right = ok && is_right(&d, is);
	}
	if (ok && !right) {
		cache_drop_blob(&p->store, f->etag);
		ok = error_set(err, ERROR_FORMAT,
		               "\"%.150s\" has the hash %.12s... and should have %.12s...: what came "
		               "was thrown away",
		               f->path, is, f->etag);
	}
	if (!ok) {
		close(d.fd);
		return false;
	}
	p->all_done = before + f->size;
	p->events.checked(p->events.user, f);
	return cache_end_blob(&p->store, f->etag, d.fd, err);
}

static void say_waiting(void *user)
{
	struct pull *p = user;

	p->hub.say(p->hub.user, "another program fetches this file; waiting for it");
}

static bool fetch_file(struct pull *p, const struct listing_file *f, struct error *err)
{
	if (!cache_has_blob(&p->store, f)) {
		int lock = cache_lock(&p->store, f->etag, say_waiting, p, p->hub.interrupted, err);
		if (lock < 0)
			return false;
		bool theirs = cache_has_blob(&p->store, f), ok = theirs || get_file(p, f, err);
		if (theirs)
			p->all_done += f->size;
		cache_unlock(lock);
		if (!ok)
			return false;
	}
	return cache_link(&p->store, p->listing.commit, f, err);
}

/* ---- the model */

static bool look_up(struct pull *p, struct error *err)
{
	struct listing *l = &p->listing;

	for (size_t i = 0; i < l->n; i++)
		if (l->file[i].chosen && (!l->file[i].has_size || !*l->file[i].etag || !*l->commit) &&
		    !hub_look_up(&p->hub, &p->reference, &l->file[i], l->commit, err))
			return false;
	return *l->commit ||
	       error_set(err, ERROR_FORMAT, "the hub does not say which commit \"%.100s\" is", p->reference.revision);
}

/* Adds up what is to come. */
static bool add_up(struct pull *p, struct error *err)
{
	const struct listing *l = &p->listing;
	uint64_t total = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!l->file[i].chosen)
			continue;
		total += l->file[i].size;
		if (total > PULL_SIZE_MAX)
			return error_set(err, ERROR_FORMAT, "the hub says more bytes than a model can have: over %llu",
			                 (unsigned long long)PULL_SIZE_MAX);
		p->all += cache_has_blob(&p->store, &l->file[i]) ? 0 : l->file[i].size;
	}
	return true;
}

static bool has_room(const struct pull *p, struct error *err)
{
	uint64_t room, missing = p->all;

	for (size_t i = 0; i < p->listing.n; i++)
		if (p->listing.file[i].chosen && !cache_has_blob(&p->store, &p->listing.file[i]))
			missing -= cache_left(&p->store, &p->listing.file[i]);
	if (!cache_room(&p->store, &room) || missing <= room)
		return true;
	return error_set(err, ERROR_IO, "the disk of %.200s has room for %.1f MB, and %.1f MB are to come",
	                 p->store.root, (double)room / 1e6, (double)missing / 1e6);
}

static bool choose(struct pull *p, struct error *err)
{
	struct error why = { 0 };

	if (choose_files(&p->listing, &p->reference, p->mmproj, &p->model, &why))
		return true;
	return error_set(err, why.code, "%s/%s: %s", p->reference.owner, p->reference.name, why.text);
}

static bool from_cache(struct pull *p, const char *root, struct error *err)
{
	const struct reference *r = &p->reference;
	char commit[41];

	if (!hub_cache_open(&p->store, root, r, false, err))
		return false;
	if (is_commit(r->revision))
		memcpy(commit, r->revision, sizeof commit);
	else if (!cache_read_ref(&p->store, r->revision, commit))
		return error_set(err, ERROR_IO, "%s/%s is not in %.200s, and nothing is fetched offline", r->owner,
		                 r->name, root);
	p->from_cache = true;
	return cache_list(&p->store, commit, &p->listing, err) && choose(p, err);
}

/* Where the cache will do, the hub is not waited for. */
static bool list(struct pull *p, const char *root, struct error *err)
{
	struct hub_cache c;
	char commit[41];
	int tries = p->hub.tries;

	if (p->or_cached && hub_cache_open(&c, root, &p->reference, false, &(struct error){ 0 }) && tries > 2 &&
	    cache_read_ref(&c, p->reference.revision, commit))
		p->hub.tries = 2;
	if (p->or_cached)
		hub_cache_close(&c);
	bool ok = hub_list(&p->hub, &p->reference, &p->listing, err);
	p->hub.tries = tries;
	return ok;
}

static bool from_hub(struct pull *p, const char *root, struct error *err)
{
	const struct reference *r = &p->reference;

	if (!list(p, root, err) || !choose(p, err) || !look_up(p, err) ||
	    !hub_cache_open(&p->store, root, r, !p->dry_run, err) || !add_up(p, err))
		return false;
	p->events.begin(p->events.user, &p->listing, p->model ? p->model->path : NULL);
	if (p->dry_run)
		return true;
	if (!has_room(p, err))
		return false;
	for (size_t i = 0; i < p->listing.n; i++)
		if (p->listing.file[i].chosen && !fetch_file(p, &p->listing.file[i], err))
			return false;
	return is_commit(r->revision) || cache_write_ref(&p->store, r->revision, p->listing.commit, err);
}

/* The hub cannot be reached, and what is here will do. */
static bool fall_back(struct pull *p, const char *root, struct error *err)
{
	struct error other = { 0 };
	char sentence[700];

	hub_cache_close(&p->store);
	listing_free(&p->listing);
	if (!from_cache(p, root, &other))
		return false;
	snprintf(sentence, sizeof sentence, "%s; what is in the cache is used", err->text);
	p->hub.say(p->hub.user, sentence);
	*err = (struct error){ 0 };
	return true;
}

bool pull_model(struct pull *p, const char *name, char **path, struct error *err)
{
	char *root = cache_root(p->cache, err);
	bool ok = root && hub_open(&p->hub, p->agent, err) && reference_read(&p->reference, name, p->hub.endpoint, err);

	p->store.blobs = -1;
	if (ok && p->file) {
		const char *why = path_trouble(p->file);
		ok = !why || error_set(err, ERROR_ARGUMENT, "the file's name cannot be used: %s", why);
		snprintf(p->reference.file, sizeof p->reference.file, "%s", ok ? p->file : "");
	}
	if (ok && p->offline)
		ok = from_cache(p, root, err);
	else if (ok)
		ok = from_hub(p, root, err) || (p->or_cached && err->code == ERROR_IO && fall_back(p, root, err));
	*path = ok ? cache_path(&p->store, p->listing.commit, p->model ? p->model->path : NULL, err) : NULL;
	listing_free(&p->listing);
	hub_cache_close(&p->store);
	hub_close(&p->hub);
	free(root);
	return *path != NULL;
}
