/* jit/store/tune.c - the results and their file. */
#include "jit/store/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/memfile.h"
#include "jit/store/record.h"
#include "jit/store/safefile.h"
#include "jit/target.h"

/*   jitrun schedules 2
 *   processor AMD EPYC 9575F 64-Core Processor
 *   codegen 0123456789abcdef
 *   matmul.q4_0.aq8_0.1024x1024.c1.b1.s2.avx512vnni 1.083 56
 *   ...
 * Results of another code generator are another kernel's, those of another form mean something else: both go with the
 * next writing. */
enum { FILE_MAX = 1 << 20, LINE_LENGTH_MAX = KEY_TEXT_MAX + 64 };
static const char first_line[] = "jitrun schedules 2\n";

struct tune {
	pthread_mutex_t lock;
	struct entry {
		struct tune_result result;
		uint64_t hash;
	} * entry;
	size_t n, capacity; /* hash: of the key without its schedule */
	bool unsaved;
	char *dir, name[32], processor[64];
};

static struct key plain(const struct key *key)
{
	struct key k = *key;
	k.schedule = 0;
	return k;
}

static struct tune_result *find(struct tune *t, const struct key *key)
{
	struct key wanted = plain(key);
	uint64_t hash = key_hash(&wanted);

	for (size_t i = 0; i < t->n; i++) {
		if (t->entry[i].hash != hash)
			continue;
		struct key k = plain(&t->entry[i].result.key);
		if (key_equal(&k, &wanted))
			return &t->entry[i].result;
	}
	return NULL;
}

static bool put(struct tune *t, const struct tune_result *r)
{
	struct tune_result *old = find(t, &r->key);

	if (old) {
		*old = *r;
		return true;
	}
	if (!array_grow((void **)&t->entry, &t->capacity, t->n + 1, sizeof *t->entry))
		return false;
	struct key key = plain(&r->key);
	t->entry[t->n++] = (struct entry){ *r, key_hash(&key) };
	return true;
}

/* ---- the file */

/* False: no memory. */
static bool read_line(struct tune *t, char *line)
{
	struct tune_result r = { 0 };
	char *at = strchr(line, ' '), *end;

	if (!at)
		return true;
	*at++ = 0;
	r.gain = strtod(at, &end);
	long samples = strtol(end, &at, 10);
	if (end == at || *at || !(r.gain >= 1 && r.gain < 100) || samples < 1 || samples > 1 << 30 ||
	    !key_parse(&r.key, line))
		return true;
	r.samples = (uint32_t)samples;
	return find(t, &r.key) || put(t, &r);
}

static bool read_head(const struct tune *t, char **at, uint64_t codegen)
{
	char head[192];
	size_t n = (size_t)snprintf(head, sizeof head, "%sprocessor %s\ncodegen %016" PRIx64 "\n", first_line,
	                            t->processor, codegen);

	if (strncmp(*at, head, n) != 0)
		return false;
	*at += n;
	return true;
}

static enum record_answer read_text(struct tune *t, char *text)
{
	bool good = true;
	char *line;

	if (!read_head(t, &text, key_codegen_x86))
		return RECORD_DAMAGED;
	while (good && (line = strsep(&text, "\n")))
		good = read_line(t, line);
	errno = ENOMEM;
	return good ? RECORD_FOUND : RECORD_FAILED;
}

static enum record_answer read_open_file(struct tune *t, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return RECORD_FAILED;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > FILE_MAX ||
	    !safefile_trusted(&st, "the file of schedules", t->name, NULL))
		return RECORD_DAMAGED;
	char *text = malloc((size_t)st.st_size + 1);
	bool whole = text && safefile_read(fd, text, (size_t)st.st_size, 0);
	enum record_answer answer = text && !whole && !errno ? RECORD_DAMAGED : RECORD_FAILED;
	if (whole) {
		text[st.st_size] = 0;
		answer = read_text(t, text);
	}
	int why = errno;
	free(text);
	errno = why;
	return answer;
}

/* Adds what the file has and t has not. DAMAGED: nothing in it is of use, here or to anybody. FAILED: what is in it is
 * not known; errno. */
static enum record_answer read_file(struct tune *t, int dir)
{
	int fd = openat(dir, t->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return errno == ENOENT                    ? RECORD_ABSENT
		       : errno == ELOOP || errno == ENXIO ? RECORD_DAMAGED
		                                          : RECORD_FAILED;
	enum record_answer answer = read_open_file(t, fd);
	int why = errno;
	close(fd);
	errno = why;
	return answer;
}

static int open_dir(const struct tune *t) { return t->dir ? open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1; }

struct tune *tune_open(const char *dir, struct error *err)
{
	struct tune *t = calloc(1, sizeof *t);
	uint64_t hash = 0xcbf29ce484222325u;

	if (!t || (dir && !(t->dir = strdup(dir)))) {
		free(t);
		error_set(err, ERROR_MEMORY, "no memory for the results of tuning");
		return NULL;
	}
	pthread_mutex_init(&t->lock, NULL);
	target_cpu_name(t->processor, sizeof t->processor);
	for (const char *p = t->processor; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3u;
	snprintf(t->name, sizeof t->name, "tuned-%016" PRIx64 ".txt", hash);
	int fd = open_dir(t);
	if (fd >= 0) {
		read_file(t, fd);
		close(fd);
	}
	return t;
}

void tune_close(struct tune *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t->entry);
	free(t->dir);
	free(t);
}

static int by_text(const void *a, const void *b)
{
	char x[KEY_TEXT_MAX], y[KEY_TEXT_MAX];
	return strcmp(key_text(&((const struct entry *)a)->result.key, x, sizeof x),
	              key_text(&((const struct entry *)b)->result.key, y, sizeof y));
}

static void sort(struct tune *t)
{
	if (t->n)
		qsort(t->entry, t->n, sizeof *t->entry, by_text);
}

static char *file_text(struct tune *t, size_t *n)
{
	char key[KEY_TEXT_MAX];
	struct memfile f;

	if (!memfile_open(&f))
		return NULL;
	fprintf(f.out, "%sprocessor %s\ncodegen %016" PRIx64 "\n", first_line, t->processor, key_codegen_x86);
	sort(t);
	for (size_t i = 0; i < t->n; i++)
		fprintf(f.out, "%s %.3f %u\n", key_text(&t->entry[i].result.key, key, sizeof key),
		        t->entry[i].result.gain, t->entry[i].result.samples);
	return memfile_take(&f, n);
}

/* Others add their results between this one's reading and writing, unless they wait. Who was stopped meanwhile is not
 * waited for. */
static void hold(int dir)
{
	enum { TRIES = 200, MILLISECOND = 1000000 };

	for (int i = 0; i < TRIES && flock(dir, LOCK_EX | LOCK_NB) && (errno == EWOULDBLOCK || errno == EINTR); i++)
		nanosleep(&(struct timespec){ 0, 5 * MILLISECOND }, NULL);
}

/* False: errno. */
static bool merge_and_write(struct tune *t, int dir)
{
	size_t n = 0;

	hold(dir);
	if (read_file(t, dir) == RECORD_FAILED)
		return false; /* and what was kept stays */
	char *text = file_text(t, &n);
	errno = text ? EFBIG : ENOMEM;
	bool ok = text && n <= FILE_MAX &&
	          safefile_replace(dir, t->name, 0600, &(struct safefile_part){ text, n }, 1) == SAFEFILE_DONE;
	int why = errno;
	free(text);
	errno = why;
	return ok;
}

bool tune_save(struct tune *t, struct error *err)
{
	bool ok = true;

	pthread_mutex_lock(&t->lock);
	if (t->unsaved && t->dir) {
		int fd = open_dir(t);
		ok = fd >= 0 && merge_and_write(t, fd);
		if (!ok)
			error_set(err, ERROR_IO, "%s/%s: the results of tuning could not be written: %s", t->dir,
			          t->name, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	t->unsaved = false; /* what cannot be written now is not tried again */
	pthread_mutex_unlock(&t->lock);
	return ok;
}

/* ---- asking */

bool tune_any(struct tune *t)
{
	pthread_mutex_lock(&t->lock);
	bool any = t->n != 0;
	pthread_mutex_unlock(&t->lock);
	return any;
}

bool tune_known(struct tune *t, const struct key *key)
{
	struct tune_result ignored;

	return tune_find(t, key, &ignored);
}

bool tune_find(struct tune *t, const struct key *key, struct tune_result *out)
{
	pthread_mutex_lock(&t->lock);
	const struct tune_result *r = find(t, key);
	if (r)
		*out = *r;
	pthread_mutex_unlock(&t->lock);
	return r != NULL;
}

void tune_set(struct tune *t, const struct tune_result *r)
{
	pthread_mutex_lock(&t->lock);
	t->unsaved |= put(t, r);
	pthread_mutex_unlock(&t->lock);
}

void tune_each(struct tune *t, void (*visit)(const struct tune_result *, void *), void *user)
{
	pthread_mutex_lock(&t->lock);
	sort(t);
	for (size_t i = 0; i < t->n; i++)
		visit(&t->entry[i].result, user);
	pthread_mutex_unlock(&t->lock);
}
