#include "runtime/model/weight_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "jit/store/record.h"
#include "jit/store/safefile.h"
#include "runtime/model/packed.h"
#include "runtime/plan/weights.h"

enum { SAMPLE_BYTES = 4096, NAME_BYTES = 32, PART_NUMBERS = 6 };

bool weight_cache_default(char *out, size_t cap)
{
	const char *dir = getenv("JITRUN_WEIGHT_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n = -1;

	if (dir && *dir)
		n = snprintf(out, cap, "%s", dir);
	else if (base && *base == '/')
		n = snprintf(out, cap, "%s/jitrun-weights", base);
	else if (home && *home == '/')
		n = snprintf(out, cap, "%s/.cache/jitrun-weights", home);
	return n > 0 && (size_t)n < cap;
}

/* --- which entry is these files' */

/* What tells one set of files and one layout from others. */
struct origin {
	uint8_t *bytes;
	size_t n;
	char name[NAME_BYTES]; /* of the entry */
};

static void put(struct origin *o, uint64_t v)
{
	record_put64(o->bytes + o->n, v);
	o->n += 8;
}

static bool sample(const struct model *m, const struct model_tensor *t, uint64_t *sum, struct error *err)
{
	uint8_t bytes[SAMPLE_BYTES];
	size_t n = t->bytes < sizeof bytes ? t->bytes : sizeof bytes;

	if (!n)
		return true;
	if (!model_read(m, t, (t->bytes - n) / 2, n, bytes, err))
		return false;
	*sum = record_checksum(bytes, n, *sum);
	return true;
}

/* The middle of each tensor: models that were trained on differ everywhere. */
static bool sample_all(const struct model *m, uint64_t *sum, struct error *err)
{
	const struct model_spec *s = &m->spec;
	bool ok = sample(m, &s->embed, sum, err) && sample(m, &s->final_norm, sum, err) &&
	          sample(m, &s->lm_head, sum, err) && sample(m, &s->input_embed, sum, err) &&
	          sample(m, &s->input_proj, sum, err) && sample(m, &s->input_norm, sum, err) &&
	          sample(m, &s->pos_embed, sum, err) && sample(m, &s->type_embed, sum, err) &&
	          sample(m, &s->embed_norm, sum, err) && sample(m, &s->embed_norm_bias, sum, err) &&
	          sample(m, &s->final_norm_bias, sum, err) && sample(m, &s->head_bias, sum, err) &&
	          sample(m, &s->score_bias, sum, err);

	for (uint32_t i = 0; i < s->layers; i++) {
		for (int k = 0; k < MATRIX_SLOTS && ok; k++)
			ok = sample(m, &s->layer[i].matrix[k], sum, err);
		for (int v = 0; v < VECTOR_SLOTS && ok; v++)
			ok = sample(m, &s->layer[i].vector[v], sum, err);
	}
	return ok;
}

static bool make_origin(struct origin *o, const struct model *m, const struct target *t, struct error *err)
{
	uint32_t parts = model_part_count(m);
	struct weights_layout layout;
	uint64_t sum = 0;

	*o = (struct origin){ .bytes = malloc(8 * (2 + (size_t)parts * PART_NUMBERS)) };
	if (!o->bytes)
		return error_set(err, ERROR_MEMORY, "no memory to name a model of %u files", parts);
	if (!weights_layout(&m->spec, weight_layout_of(t), &layout, err) || !sample_all(m, &sum, err))
		return false;
	put(o, layout.id);
	put(o, sum);
	for (uint32_t i = 0; i < parts; i++) {
		struct model_part_facts f = model_part_facts(m, i);
		put(o, f.bytes);
		put(o, (uint64_t)f.written.tv_sec);
		put(o, (uint64_t)f.written.tv_nsec);
		put(o, f.device);
		put(o, f.inode);
		put(o, record_checksum(f.header, f.header_bytes, 0));
	}
	snprintf(o->name, sizeof o->name, "%016llx.jkm",
	         (unsigned long long)record_checksum(o->bytes, o->n, CONTAINER_VERSION));
	return true;
}

/* --- the directory */

static bool make_directory(const char *dir)
{
	char path[PATH_MAX];

	if (strlen(dir) >= sizeof path) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(path, dir);
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(path, 0700);
			*p = '/';
		}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* -1 and why: it cannot be had; -1 and err: it is dangerous. */
static int open_directory(const struct weight_cache_options *o, struct error *why, struct error *err)
{
	char name[256];
	struct stat st;

	error_quote(name, sizeof name, o->dir, strlen(o->dir));
	if (!o->read_only)
		make_directory(o->dir);
	int fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		error_set(why, ERROR_IO, "the directory of packed weights %s cannot be opened: %s", name,
		          strerror(errno));
	} else if (safefile_trusted(&st, "the directory of packed weights", name, err)) {
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Those that a living process uses are locked by it. */
static bool in_use(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool used = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;

	if (fd >= 0)
		close(fd);
	return used;
}

struct entry {
	char name[NAME_BYTES];
	uint64_t bytes;
	struct timespec used;
};

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return (x->used.tv_nsec > y->used.tv_nsec) - (x->used.tv_nsec < y->used.tv_nsec);
}

static bool is_entry(const char *name)
{
	return strspn(name, "0123456789abcdef") == 16 && strcmp(name + 16, ".jkm") == 0;
}

static bool is_leftover(int dir, const char *name, const struct stat *st)
{
	size_t n = strlen(name), m = strlen(safefile_temporary);

	return name[0] == '.' && n > m && strcmp(name + n - m, safefile_temporary) == 0 &&
	       safefile_abandoned(dir, name, st);
}

/* The entries; what dead writers left is removed when that is asked for. NULL: errno. */
static struct entry *list_entries(int dir, bool tidy, size_t *n)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct entry *list = NULL;
	size_t room = 0;
	struct stat st;
	bool ok = d != NULL && array_grow((void **)&list, &room, 1, sizeof *list);

	*n = 0;
	for (struct dirent *e; ok && (e = readdir(d));) {
		if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (tidy && is_leftover(dir, e->d_name, &st))
			unlinkat(dir, e->d_name, 0);
		if (!is_entry(e->d_name) || !(ok = array_grow((void **)&list, &room, *n + 1, sizeof *list)))
			continue;
		list[*n] = (struct entry){ .bytes = (uint64_t)st.st_size, .used = st.st_atim };
		strcpy(list[(*n)++].name, e->d_name);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	if (ok)
		return list;
	free(list);
	return NULL;
}

/* Removes what was used longest ago until `bytes` more fit. */
static bool make_room(int dir, uint64_t bytes, uint64_t limit, struct error *why)
{
	uint64_t there = 0;
	size_t n;
	struct entry *list = list_entries(dir, true, &n);

	if (!list)
		return error_set(why, ERROR_IO, "the directory of packed weights cannot be listed: %s",
		                 strerror(errno));
	qsort(list, n, sizeof *list, by_use);
	for (size_t i = 0; i < n; i++)
		there += list[i].bytes;
	for (size_t i = 0; i < n && (there > limit || bytes > limit - there); i++)
		if (!in_use(dir, list[i].name) && unlinkat(dir, list[i].name, 0) == 0)
			there -= list[i].bytes;
	free(list);
	if (there <= limit && bytes <= limit - there)
		return true;
	return error_set(why, ERROR_IO,
	                 "packed weights of %llu MiB do not fit beside %llu MiB that are in use, with a limit of %llu "
	                 "MiB",
	                 (unsigned long long)(bytes >> 20), (unsigned long long)(there >> 20),
	                 (unsigned long long)(limit >> 20));
}

/* --- an entry */

/* One that is damaged, or another's with the same hash, counts as none and is made anew. */
static struct container *open_entry(const char *path, const struct origin *o)
{
	struct container *c = container_open(path, NULL);
	const struct container_section *s = c ? container_find(c, CONTAINER_ORIGIN, 0) : NULL;
	uint8_t *bytes = s && s->bytes == o->n ? container_load(c, s, NULL) : NULL;
	bool same = bytes && memcmp(bytes, o->bytes, o->n) == 0 && container_trusted(c, NULL);

	free(bytes);
	if (same) {
		const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
		flock(container_fd(c), LOCK_SH | LOCK_NB); /* in use from now on */
		futimens(container_fd(c), now);
		return c;
	}
	container_close(c);
	return NULL;
}

/* By one process at a time: who comes second finds what the first has made. */
static int lock_directory(int dir)
{
	int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX) && errno == EINTR)
		continue;
	return fd;
}

struct making {
	const struct weight_cache_options *options;
	bool stopped;
};

static int note_stop(void *user, uint64_t done, uint64_t total)
{
	struct making *m = user;
	const struct weight_cache_options *o = m->options;

	m->stopped = o->progress && o->progress(o->user, done, total);
	return m->stopped;
}

static bool make_entry(const struct weight_cache_options *o, int dir, const char *path, const struct origin *origin,
                       const struct model *m, const struct target *t, struct pool *pool, struct error *why,
                       struct error *err)
{
	struct making making = { .options = o };
	const struct packed_options po = {
		.target = &t,
		.n_targets = 1,
		.weights_only = true,
		.origin = origin->bytes,
		.origin_bytes = origin->n,
		.mode = 0600,
		.progress = note_stop,
		.user = &making
	};
	uint64_t limit = o->limit_bytes ? o->limit_bytes : (uint64_t)WEIGHT_CACHE_DEFAULT_GIB << 30, bytes;
	struct weights_layout layout;

	if (!weights_layout(&m->spec, weight_layout_of(t), &layout, err) ||
	    !make_room(dir, layout.matrix_bytes + layout.vector_bytes, limit, why))
		return false;
	struct error failed = { 0 };
	if (packed_write(path, m, &po, pool, &bytes, &failed))
		return true;
	return error_set(making.stopped ? err : why, failed.code, "%s", failed.text);
}

static struct container *get(const struct weight_cache_options *o, int dir, const struct model *m,
                             const struct target *t, struct pool *pool, const struct origin *origin, struct error *why,
                             struct error *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof path, "%s/%s", o->dir, origin->name) >= (int)sizeof path) {
		error_set(why, ERROR_ARGUMENT, "the name of the directory of packed weights is too long");
		return NULL;
	}
	struct container *c = open_entry(path, origin);
	if (c || o->read_only)
		return c;
	int lock = lock_directory(dir);
	if (lock < 0) {
		error_set(why, ERROR_IO, "the directory of packed weights cannot be written: %s", strerror(errno));
		return NULL;
	}
	c = open_entry(path, origin);
	if (!c && make_entry(o, dir, path, origin, m, t, pool, why, err)) {
		c = open_entry(path, origin);
		if (!c)
			error_set(why, ERROR_IO, "packed weights that were just written cannot be opened");
	}
	close(lock);
	return c;
}

struct container *weight_cache_get(const struct weight_cache_options *o, const struct model *m, const struct target *t,
                                   struct pool *pool, struct error *why, struct error *err)
{
	struct origin origin = { 0 };
	struct container *c = NULL;
	int dir = open_directory(o, why, err);

	if (dir >= 0 && make_origin(&origin, m, t, err))
		c = get(o, dir, m, t, pool, &origin, why, err);
	if (dir >= 0)
		close(dir);
	free(origin.bytes);
	return c;
}

/* --- looking after a directory */

/* -1 and err.code 0: there is none. */
static int open_existing(const char *dir, struct error *err)
{
	const struct weight_cache_options o = { .dir = dir, .read_only = true };
	struct error why = { 0 };
	int fd = -1;

	if (access(dir, F_OK) == 0 || errno != ENOENT) {
		fd = open_directory(&o, &why, err);
		if (fd < 0 && !err->code)
			error_set(err, why.code, "%s", why.text);
	}
	return fd;
}

bool weight_cache_each(const char *dir, void (*visit)(const struct weight_cache_item *i, void *user), void *user,
                       struct error *err)
{
	struct entry *list = NULL;
	int fd = open_existing(dir, err);
	size_t n = 0;

	if (fd < 0)
		return !err->code;
	if (!(list = list_entries(fd, false, &n)))
		error_set(err, ERROR_IO, "the directory of packed weights cannot be listed: %s", strerror(errno));
	else
		qsort(list, n, sizeof *list, by_use);
	for (size_t i = 0; i < n; i++)
		visit(&(struct weight_cache_item){ list[i].name, list[i].bytes, list[i].used }, user);
	free(list);
	close(fd);
	return !err->code;
}

static bool can_open(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct container *c =
		snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path ? container_open(path, NULL) : NULL;

	container_close(c);
	return c != NULL;
}

static void collect(const char *dir, int fd, const struct entry *list, size_t n, uint64_t limit,
                    struct weight_cache_gc *out)
{
	for (size_t i = 0; i < n; i++)
		out->bytes += list[i].bytes;
	for (size_t i = 0; i < n; i++) {
		bool used = in_use(fd, list[i].name), wanted = out->bytes <= limit && can_open(dir, list[i].name);
		out->in_use += used;
		if (used || wanted || unlinkat(fd, list[i].name, 0) != 0) {
			out->entries++;
			continue;
		}
		out->removed++;
		out->removed_bytes += list[i].bytes;
		out->bytes -= list[i].bytes;
	}
}

bool weight_cache_gc(const char *dir, uint64_t limit, struct weight_cache_gc *out, struct error *err)
{
	int fd = open_existing(dir, err), lock = fd < 0 ? -1 : lock_directory(fd);
	struct entry *list = NULL;
	size_t n;

	*out = (struct weight_cache_gc){ 0 };
	if (fd >= 0 && lock < 0)
		error_set(err, ERROR_IO, "the directory of packed weights cannot be written: %s", strerror(errno));
	else if (fd >= 0 && !(list = list_entries(fd, true, &n)))
		error_set(err, ERROR_IO, "the directory of packed weights cannot be listed: %s", strerror(errno));
	if (list) {
		qsort(list, n, sizeof *list, by_use);
		collect(dir, fd, list, n, limit, out);
	}
	free(list);
	if (lock >= 0)
		close(lock);
	if (fd >= 0)
		close(fd);
	return !err->code;
}
