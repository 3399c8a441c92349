/* programs/line_history.c - the lines of earlier sessions. See line_history.h.
 *
 * A line is added to the end of the file as soon as it was sent, so that sessions which run side by side, and one that
 * is killed, lose none. A file that has grown too long is written anew when it is opened. Its form is libedit's own.
 */
#include "programs/line_history.h"

#ifdef HAVE_LIBEDIT

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES_MOST = 1000, LINE_MOST = 1 << 16 /* characters: a longer message is not kept */ };

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

static void write_anew(HistoryW *h)
{
	char *name = NULL;
	int fd = asprintf(&name, "%s-XXXXXX", path) < 0 ? -1 : mkstemp(name); /* 0600 */

	if (fd >= 0 && !(save(h, fdopen(fd, "w")) && rename(name, path) == 0))
		unlink(name);
	free(name);
}

HistoryW *line_history_open(bool keep)
{
	HistoryW *h = history_winit();
	const char *named = getenv("JITRUN_HISTORY");
	HistEventW ev;
	int n;

	if (!h)
		return NULL;
	history_w(h, &ev, H_SETSIZE, LINES_MOST);
	history_w(h, &ev, H_SETUNIQUE, 1); /* not the same line twice running */
	path = !keep ? NULL : !named ? default_path() : *named ? strdup(named) : NULL;
	if (path && (!make_directories(path) || !read_file(h, &n))) {
		free(path);
		path = NULL;
	}
	if (path && n > LINES_MOST)
		write_anew(h);
	return h;
}

static void append(const wchar_t *line)
{
	HistoryW *one = history_winit(); /* so that libedit writes this line alone */
	HistEventW ev;
	int fd = one ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd >= 0 && fchmod(fd, 0600) == 0 && history_w(one, &ev, H_SETSIZE, 1) >= 0 &&
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

	if (!h || wcslen(line) > LINE_MOST)
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
