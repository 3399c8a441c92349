/* jit/cache.c - code objects on disk: the layout of an entry, and what makes one trustworthy.
 *
 * Owns: one directory. An entry is read whole, its checksum compared before a field is believed, its key compared whole before
 * its code is unpacked. Never reports a bad entry as an error. Whoever changes the layout raises CACHE_VERSION.
 *
 *   0 magic (8)  8 version  12 key bytes  16 code bytes  20 pool offset  24 frame bytes  28 body bytes  32 shared bytes
 *   36 vector, scalar, mask registers, cooperative (2 each)  44 0  48 key  96 body (zstd)
 *   then a 64-bit checksum of everything before it; numbers are little-endian.
 */
#include "jit/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

enum {
	CACHE_VERSION = 2,
	KEY_AT = 48,
	HEADER_BYTES = KEY_AT + sizeof(struct key),
	CHECKSUM_BYTES = 8,
	MAX_CODE_BYTES = 16 << 20,
	MAX_BODY_BYTES = 17 << 20,
	STALE_SECONDS = 3600,            /* a temporary file this old has lost its writer */
	ZSTD_LEVEL = 3,
};
static const char cache_magic[8] = "jitr\nko";
static const char temporary_suffix[] = ".tmp";

struct cache {
	int dir;
	_Atomic uint64_t hits, misses, damaged, stored, store_failed, temporaries;
};

static void put32(uint8_t *p, uint32_t v) { for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i); }
static void put64(uint8_t *p, uint64_t v) { put32(p, (uint32_t)v); put32(p + 4, (uint32_t)(v >> 32)); }
static uint32_t get32(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }
static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint64_t get64(const uint8_t *p) { return get32(p) | (uint64_t)get32(p + 4) << 32; }

static uint64_t checksum(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;     /* each step is one-to-one: no changed byte can go unseen */
	return h;
}

static void entry_name(const struct key *key, char out[24])
{
	snprintf(out, 24, "%016llx.jko", (unsigned long long)key_hash(key));
}

/* --- the directory */

bool cache_default_dir(char *out, size_t cap)
{
	const char *base = getenv("XDG_CACHE_HOME"), *middle = "";

	if (!base || base[0] != '/') {           /* a relative one counts as unset */
		base = getenv("HOME");
		middle = "/.cache";
	}
	if (!base || !base[0])
		return false;
	int n = snprintf(out, cap, "%s%s/jitrun", base, middle);
	return n > 0 && (size_t)n < cap;
}

/* Opens dir, making it and its parents when they are not there. -1: errno. */
static int open_or_make(const char *dir)
{
	char path[PATH_MAX];
	size_t n = strlen(dir);
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (n >= sizeof path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(path, dir, n + 1);
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		path[i] = 0;
		if (mkdir(path, 0700) && errno != EEXIST && access(path, F_OK))
			return -1;
		path[i] = dir[i];
	}
	return open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Removes what writers that died left behind. */
static void sweep(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	time_t now = time(NULL);
	struct stat st;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d));) {
		size_t n = strlen(e->d_name), s = sizeof temporary_suffix - 1;
		if (n > s && strcmp(e->d_name + n - s, temporary_suffix) == 0 && fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && now - st.st_mtime > STALE_SECONDS)
			unlinkat(dir, e->d_name, 0);
	}
	closedir(d);
}

struct cache *cache_open(const char *dir, struct error *err)
{
	char name[256];
	struct stat st;
	int fd = open_or_make(dir);
	struct cache *c = NULL;

	error_quote(name, sizeof name, dir, strlen(dir));
	if (fd < 0 || fstat(fd, &st))
		error_set(err, ERROR_IO, "cannot open or make the cache directory %s: %s", name, strerror(errno));
	else if (st.st_uid != geteuid())
		error_set(err, ERROR_IO, "the cache directory %s belongs to user %lu, not to user %lu who runs this", name,
		          (unsigned long)st.st_uid, (unsigned long)geteuid());
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		error_set(err, ERROR_IO, "the cache directory %s has mode %04o, which lets others write it; expected none of 0022", name,
		          (unsigned)st.st_mode & 07777);
	else if (!(c = calloc(1, sizeof *c)))
		error_set(err, ERROR_MEMORY, "no memory for the cache directory %s", name);
	if (!c) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	c->dir = fd;
	sweep(fd);
	return c;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	close(c->dir);
	free(c);
}

void cache_count(const struct cache *c, struct cache_counters *out)
{
	out->hits = c->hits;
	out->misses = c->misses;
	out->damaged = c->damaged;
	out->stored = c->stored;
	out->store_failed = c->store_failed;
}

/* --- reading */

static bool read_all(int fd, uint8_t *p, size_t n)
{
	while (n) {
		ssize_t r = read(fd, p, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		p += r;
		n -= (size_t)r;
	}
	return true;
}

/* A whole entry into memory. NULL: *there says whether something unreadable stands in its place. */
static uint8_t *read_entry(const struct cache *c, const char *name, size_t *n, bool *there)
{
	uint8_t *bytes = NULL;
	struct stat st;
	int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	*there = fd >= 0 || errno != ENOENT;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	    st.st_size >= HEADER_BYTES + CHECKSUM_BYTES && st.st_size <= HEADER_BYTES + MAX_BODY_BYTES + CHECKSUM_BYTES) {
		*n = (size_t)st.st_size;
		bytes = malloc(*n);
		if (bytes && !read_all(fd, bytes, *n)) {
			free(bytes);
			bytes = NULL;
		}
	}
	close(fd);
	return bytes;
}

static bool unpack_entry(const uint8_t *p, size_t n, const struct key *key, struct object *out)
{
	uint32_t code = get32(p + 16), pool = get32(p + 20), body = get32(p + 28);

	if (get64(p + n - CHECKSUM_BYTES) != checksum(p, n - CHECKSUM_BYTES))
		return false;
	if (memcmp(p, cache_magic, sizeof cache_magic) || get32(p + 8) != CACHE_VERSION || get32(p + 12) != sizeof *key)
		return false;
	if (code == 0 || code > MAX_CODE_BYTES || pool > code || body != n - HEADER_BYTES - CHECKSUM_BYTES)
		return false;
	if (memcmp(p + KEY_AT, key, sizeof *key))
		return false;
	uint8_t *bytes = malloc(code);
	if (!bytes)
		return false;
	if (ZSTD_decompress(bytes, code, p + HEADER_BYTES, body) != code) {     /* an error code is never that small */
		free(bytes);
		return false;
	}
	*out = (struct object){ .code = bytes, .code_bytes = code, .pool_offset = pool, .frame_bytes = get32(p + 24), .shared_bytes = get32(p + 32),
		.vector_regs = get16(p + 36), .scalar_regs = get16(p + 38), .mask_regs = get16(p + 40), .cooperative = get16(p + 42) };
	return true;
}

bool cache_load(struct cache *c, const struct key *key, struct object *out)
{
	char name[24];
	size_t n = 0;
	bool there;

	entry_name(key, name);
	uint8_t *bytes = read_entry(c, name, &n, &there);
	bool good = bytes && unpack_entry(bytes, n, key, out);
	free(bytes);
	if (good) {
		c->hits++;
	} else {
		c->misses++;
		c->damaged += there;
	}
	return good;
}

/* --- writing */

static bool write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t r = write(fd, p, n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		p += r;
		n -= (size_t)r;
	}
	return true;
}

/* The bytes of an entry; NULL when the object is out of range or memory is. */
static uint8_t *pack_entry(const struct key *key, const struct object *o, size_t *n)
{
	if (o->code_bytes == 0 || o->code_bytes > MAX_CODE_BYTES || o->pool_offset > o->code_bytes)
		return NULL;
	size_t room = ZSTD_compressBound(o->code_bytes);
	uint8_t *p = malloc(HEADER_BYTES + room + CHECKSUM_BYTES);
	if (!p)
		return NULL;
	size_t body = ZSTD_compress(p + HEADER_BYTES, room, o->code, o->code_bytes, ZSTD_LEVEL);
	if (ZSTD_isError(body) || body > MAX_BODY_BYTES) {
		free(p);
		return NULL;
	}
	memcpy(p, cache_magic, sizeof cache_magic);
	put32(p + 8, CACHE_VERSION);
	put32(p + 12, sizeof *key);
	put32(p + 16, o->code_bytes);
	put32(p + 20, o->pool_offset);
	put32(p + 24, o->frame_bytes);
	put32(p + 28, (uint32_t)body);
	put32(p + 32, o->shared_bytes);
	put32(p + 36, o->vector_regs | (uint32_t)o->scalar_regs << 16);
	put32(p + 40, o->mask_regs | (uint32_t)o->cooperative << 16);
	put32(p + 44, 0);
	memcpy(p + KEY_AT, key, sizeof *key);
	put64(p + HEADER_BYTES + body, checksum(p, HEADER_BYTES + body));
	*n = HEADER_BYTES + body + CHECKSUM_BYTES;
	return p;
}

/* Readers see the old entry or the new one, whole. The directory is not synced: a rename that a power cut undoes is a miss. */
static bool write_entry(struct cache *c, const char *name, const uint8_t *bytes, size_t n)
{
	char temporary[96];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	/* the time tells processes apart that share a number because they live in different containers */
	snprintf(temporary, sizeof temporary, "%.16s-%ld-%llu-%09ld%s", name, (long)getpid(), (unsigned long long)c->temporaries++,
	         (long)now.tv_nsec, temporary_suffix);
	int fd = openat(c->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool good = write_all(fd, bytes, n) && fsync(fd) == 0;
	good = close(fd) == 0 && good;
	good = good && renameat(c->dir, temporary, c->dir, name) == 0;
	if (!good)
		unlinkat(c->dir, temporary, 0);
	return good;
}

void cache_store(struct cache *c, const struct key *key, const struct object *o)
{
	char name[24];
	size_t n = 0;
	uint8_t *bytes = pack_entry(key, o, &n);

	entry_name(key, name);
	if (bytes && write_entry(c, name, bytes, n))
		c->stored++;
	else
		c->store_failed++;
	free(bytes);
}
