/* programs/jitrun/line_history.c - the lines of earlier sessions. See line_history.h.
 *
 * A line is added to the end of the file as soon as it was sent, so that sessions which run side by side, and one that
 * is killed, lose none; a lock keeps the lines of several apart. A file that has grown too long is written anew when it
 * is opened. Its form is libedit's own.
 */
#include "programs/jitrun/line_history.h"

#ifdef HAVE_LIBEDIT

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	LINES_MAX = 1000,
	LINE_LENGTH_MAX = 1 << 16 /* characters: a longer message is not kept */,
	WAIT_MAX = 1000 /* ms */
};

static char *path; /* NULL: no line is written */
static bool paused;

static char *default_path(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *out = NULL;
	int n = state && *state == '/' ? asprintf(&out, "%s/jitrun/history", state)
	        : home && *home == '/' ? asprintf(&out, "%s/.local/state/jitrun/history", home)
	                               : -1;

	return n < 0 ? NULL : out;
}

/* The directories above a file, for the user alone where they are made. */
static bool make_directories(char *file)
{
	for (char *slash = strchr(file + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		bool ok = mkdir(file, 0700) == 0 || errno == EEXIST || access(file, X_OK) == 0;
		*slash = '/';
		if (!ok)
			return false;
	}
	return true;
}

/* A file that is there must be a regular one in libedit's form: any other is not ours to write to. */
static bool read_file(HistoryW *h, int *n)
{
	HistEventW ev;
	struct stat st;

	*n = 0;
	if (stat(path, &st) != 0)
		return errno == ENOENT;
	if (!S_ISREG(st.st_mode))
		return false;
	if (st.st_size == 0)
		return true;
	*n = history_w(h, &ev, H_LOAD, path);
	return *n >= 0;
}

static bool save(HistoryW *h, FILE *f)
{
	HistEventW ev;
	bool ok = f && fseek(f, 0, SEEK_END) == 0 && history_w(h, &ev, H_SAVE_FP, f) >= 0;

	return f && fclose(f) == 0 && ok;
}

/* The file, for this program alone until it is closed. One that does not end its writing is not waited for long. */
static int open_alone(void)
{
	struct stat mine, now;

	for (int ms = 0;; ms += 10) {
		int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		bool late = ms >= WAIT_MAX,
		     alone = fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK);
		if (fd < 0 || late)
			return fd;
		/* or another program has written it anew meanwhile */
		if (alone && fstat(fd, &mine) == 0 && stat(path, &now) == 0 && mine.st_ino == now.st_ino)
			return fd;
		close(fd);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
}

/* Of what is there now, as others may have added lines. */
static void write_anew(void)
{
	HistoryW *h = history_winit();
	HistEventW ev;
	char *name = NULL;
	int alone = open_alone(), n = 0;
	int fd = !h || alone < 0 || asprintf(&name, "%s-XXXXXX", path) < 0 ? -1 : mkstemp(name); /* 0600 */

	if (h)
		history_w(h, &ev, H_SETSIZE, LINES_MAX);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	bool read = f && read_file(h, &n) && n > LINES_MAX, ok = f && save(h, f) && read && rename(name, path) == 0;
	if (fd >= 0 && !ok)
		unlink(name);
	free(name);
	if (alone >= 0)
		close(alone);
	if (h)
		history_wend(h);
}

HistoryW *line_history_open(bool keep)
{
	HistoryW *h = history_winit();
	const char *named = getenv("JITRUN_HISTORY");
	HistEventW ev;
	int n;

	if (!h)
		return NULL;
	history_w(h, &ev, H_SETSIZE, LINES_MAX);
	history_w(h, &ev, H_SETUNIQUE, 1); /* not the same line twice running */
	path = !keep ? NULL : !named ? default_path() : *named ? strdup(named) : NULL;
	if (path && (!make_directories(path) || !read_file(h, &n))) {
		free(path);
		path = NULL;
	}
	if (path && n > LINES_MAX)
		write_anew();
	return h;
}

/* Of a program that was killed while it wrote. */
static bool end_line(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char last = '\n';

	return end <= 0 || pread(fd, &last, 1, end - 1) != 1 || last == '\n' || write(fd, "\n", 1) == 1;
}

static void append(const wchar_t *line)
{
	HistoryW *one = history_winit(); /* so that libedit writes this line alone */
	HistEventW ev;
	int fd = one ? open_alone() : -1;

	if (fd >= 0 && end_line(fd) && fchmod(fd, 0600) == 0 && history_w(one, &ev, H_SETSIZE, 1) >= 0 &&
	    history_w(one, &ev, H_ENTER, line) >= 0) {
		FILE *f = fdopen(fd, "a");
		save(one, f);
		fd = f ? -1 : fd;
	}
	if (fd >= 0)
		close(fd);
	if (one)
		history_wend(one);
}

void line_history_add(HistoryW *h, const wchar_t *line)
{
	HistEventW ev;

	if (!h || wcslen(line) > LINE_LENGTH_MAX)
		return;
	bool again = history_w(h, &ev, H_FIRST) >= 0 && wcscmp(ev.str, line) == 0;
	if (!again && history_w(h, &ev, H_ENTER, line) >= 0 && path && !paused)
		append(line);
}

bool line_history_keep(bool on)
{
	paused = !on;
	return on && path;
}

void line_history_close(HistoryW *h)
{
	if (h)
		history_wend(h);
	free(path);
	path = NULL;
}

#endif
