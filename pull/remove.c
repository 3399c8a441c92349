#include "pull/remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "pull/choose.h"

enum { DEEPEST = 32, PATH_BYTES = 4096 };

/* ---- what there is */

static bool add(struct removal *m, const char *path, const char *target, uint64_t size, struct error *err)
{
	struct removal_file f = { .path = strdup(path), .target = strdup(target), .size = size };

	if (f.path && f.target && array_grow((void **)&m->file, &m->room, m->n + 1, sizeof *m->file)) {
		m->file[m->n++] = f;
		return true;
	}
	free(f.path);
	free(f.target);
	return error_set(err, ERROR_MEMORY, "no memory for a list of %zu files", m->n + 1);
}

/* The name behind "../../blobs/"; "": it leads elsewhere. */
static const char *blob_of(const char *link)
{
	const char *at = link;

	while (strncmp(at, "../", 3) == 0)
		at += 3;
	return at > link && strncmp(at, "blobs/", 6) == 0 && etag_is_safe(at + 6) ? at + 6 : "";
}

static bool see(struct removal *m, int folder, const char *name, const char *path, const struct stat *st,
                struct error *err)
{
	char link[300];
	ssize_t n = S_ISLNK(st->st_mode) ? readlinkat(folder, name, link, sizeof link - 1) : 0;
	struct stat blob;

	link[n > 0 ? n : 0] = 0;
	bool whole = fstatat(folder, name, &blob, 0) == 0 && S_ISREG(blob.st_mode);
	return add(m, path, blob_of(link), whole ? (uint64_t)blob.st_size : 0, err);
}

static bool walk(struct removal *m, int folder, const char *above, unsigned deep, struct error *err)
{
	char path[PATH_BYTES];
	DIR *d = fdopendir(folder);
	bool ok = d != NULL;

	if (!d)
		close(folder);
	for (struct dirent *e; ok && (e = readdir(d));) {
		struct stat st;
		int n = snprintf(path, sizeof path, "%s%s%s", above, *above ? "/" : "", e->d_name);
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || n >= PATH_BYTES ||
		    fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (!S_ISDIR(st.st_mode)) {
			ok = see(m, folder, e->d_name, path, &st, err);
			continue;
		}
		int below = deep ? openat(folder, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
		ok = below < 0 || walk(m, below, path, deep - 1, err);
	}
	if (d)
		closedir(d);
	return ok;
}

/* ---- what is named */

static const char *file_of(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A file, or a part of the same model. */
static bool is_file(const char *file, const char *named)
{
	size_t prefix, other;
	unsigned part, of, other_part, other_of;

	return strcmp(file, named) == 0 ||
	       (path_is_shard(file, &prefix, &part, &of) && path_is_shard(named, &other, &other_part, &other_of) &&
	        prefix == other && of == other_of && strncmp(file, named, prefix) == 0);
}

static bool is_named(const struct removal_file *f, const struct reference *r, const char *commit)
{
	const char *file = file_of(f->path);
	size_t n = strlen(commit);

	if (n && (strncmp(f->path, commit, n) != 0 || (n == 40 && f->path[40] != '/')))
		return false;
	return *r->file ? is_file(file, r->file) : !*r->quant || path_has_quant(file, r->quant);
}

/* Whether a link that stays leads there, or one before it that goes has counted it. */
static bool is_needed(const struct removal *m, size_t i)
{
	for (size_t k = 0; k < m->n; k++)
		if (k != i && strcmp(m->file[k].target, m->file[i].target) == 0 && (!m->file[k].goes || k < i))
			return true;
	return false;
}

bool removal_find(struct removal *m, const struct hub_cache *c, const struct reference *r, struct error *err)
{
	char path[PATH_BYTES], commit[REFERENCE_REVISION] = "";

	*m = (struct removal){ 0 };
	snprintf(path, sizeof path, "%s/snapshots", c->folder);
	int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0 && errno != ENOENT)
		return error_set(err, ERROR_IO, "%.300s cannot be opened: %s", path, strerror(errno));
	if (top >= 0 && !walk(m, top, "", DEEPEST, err))
		return false;
	if (r->has_revision && !cache_read_ref(c, r->revision, commit))
		snprintf(commit, sizeof commit, "%s", r->revision);
	for (size_t i = 0; i < m->n; i++)
		m->goes += m->file[i].goes = is_named(&m->file[i], r, commit);
	for (size_t i = 0; i < m->n; i++)
		if (m->file[i].goes && !is_needed(m, i))
			m->bytes += m->file[i].size;
	m->all = m->goes == m->n;
	return true;
}

/* ---- removing it */

static bool failed(struct error *err, const char *path)
{
	return error_set(err, ERROR_IO, "%.400s cannot be removed: %s", path, strerror(errno));
}

/* The writer of a blob holds its lock. */
static bool is_being_written(const struct hub_cache *c, const char *blob)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/.locks/%s/%s.lock", c->root, strrchr(c->folder, '/') + 1, blob);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	return busy;
}

static bool drop_blob(const struct hub_cache *c, const char *blob, struct error *err)
{
	char name[ETAG_MAX + 16];

	if (c->blobs < 0)
		return true;
	snprintf(name, sizeof name, "%s.incomplete", blob);
	unlinkat(c->blobs, name, 0);
	return unlinkat(c->blobs, blob, 0) == 0 || errno == ENOENT || failed(err, blob);
}

/* The folders of a snapshot that became empty, up to the snapshot. */
static void drop_folders(const struct hub_cache *c, const char *path)
{
	char folder[2 * PATH_BYTES];

	snprintf(folder, sizeof folder, "%s/snapshots/%s", c->folder, path);
	size_t min = strlen(c->folder) + strlen("/snapshots/");
	for (char *slash; (slash = strrchr(folder, '/')) && (size_t)(slash - folder) > min;) {
		*slash = 0;
		if (rmdir(folder) != 0)
			return;
	}
}

/* What a folder holds, and itself; links are removed and not followed. */
static bool drop_tree(int at, const char *name, unsigned deep)
{
	int folder = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = folder < 0 ? NULL : fdopendir(folder);

	if (!d)
		return folder < 0 && (errno == ENOENT || unlinkat(at, name, 0) == 0);
	for (struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlinkat(folder, e->d_name, 0) != 0 && deep)
			drop_tree(folder, e->d_name, deep - 1);
	closedir(d);
	return unlinkat(at, name, AT_REMOVEDIR) == 0;
}

static bool drop_all(const struct hub_cache *c, struct error *err)
{
	char locks[PATH_BYTES];
	const char *name = strrchr(c->folder, '/') + 1;
	int root = open(c->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = root >= 0 && drop_tree(root, name, DEEPEST);

	if (!ok)
		failed(err, c->folder);
	snprintf(locks, sizeof locks, "%s/.locks", c->root);
	int at = ok ? open(locks, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (at >= 0) {
		drop_tree(at, name, 1);
		close(at);
	}
	if (root >= 0)
		close(root);
	return ok;
}

bool removal_do(const struct removal *m, const struct hub_cache *c, struct error *err)
{
	char path[2 * PATH_BYTES];

	for (size_t i = 0; i < m->n; i++)
		if (m->file[i].goes && *m->file[i].target && is_being_written(c, m->file[i].target))
			return error_set(err, ERROR_IO, "another program fetches %.200s just now",
			                 file_of(m->file[i].path));
	for (size_t i = 0; i < m->n; i++) {
		const struct removal_file *f = &m->file[i];
		snprintf(path, sizeof path, "%s/snapshots/%s", c->folder, f->path);
		if (f->goes && unlink(path) != 0 && errno != ENOENT)
			return failed(err, path);
		if (f->goes && *f->target && !is_needed(m, i) && !drop_blob(c, f->target, err))
			return false;
		if (f->goes)
			drop_folders(c, f->path);
	}
	return !m->all || drop_all(c, err);
}

void removal_free(struct removal *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->file[i].path);
		free(m->file[i].target);
	}
	free(m->file);
	*m = (struct removal){ 0 };
}
