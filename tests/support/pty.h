/* tests/support/pty.h - a program on a pseudo-terminal of its own, with keys typed and what it shows read back. */
#ifndef TESTS_PTY_H
#define TESTS_PTY_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { PTY_MAX = 1 << 20, PTY_PATIENCE = 60000 /* ms */ };

struct pty {
	pid_t pid;
	int fd;
	char *text;
	size_t n;
};

/* Of so many columns. argv[0] is looked for along $PATH. False: there are no pseudo-terminals. */
static inline bool pty_start(struct pty *t, int columns, char *const *argv)
{
	*t = (struct pty){ .fd = posix_openpt(O_RDWR | O_NOCTTY), .text = calloc(1, PTY_MAX + 1) };
	if (t->fd < 0 || !t->text || grantpt(t->fd) || unlockpt(t->fd))
		return false;
	t->pid = fork();
	if (t->pid == 0) {
		const struct winsize size = { .ws_row = 24, .ws_col = (unsigned short)columns };
		setsid(); /* what is opened next becomes its terminal, which turns Ctrl-C into a signal */
		int s = open(ptsname(t->fd), O_RDWR);
		ioctl(s, TIOCSWINSZ, &size);
		for (int i = 0; i < 3; i++)
			dup2(s, i);
		close(t->fd);
		if (!getenv("XDG_STATE_HOME"))
			setenv("JITRUN_HISTORY", "", 0); /* what tests type is not for their user */
		execvp(argv[0], argv);
		_exit(99);
	}
	return t->pid > 0;
}

/* Reads until the text holds `what` behind `from`, or the other side is gone. Returns where it ends; 0: it never came.
 */
static inline size_t pty_wait_for(struct pty *t, size_t from, const char *what)
{
	for (;;) {
		char *at = strstr(t->text + from, what);
		struct pollfd p = { .fd = t->fd, .events = POLLIN };
		ssize_t got;
		if (at)
			return (size_t)(at - t->text) + strlen(what);
		if (t->n == PTY_MAX || poll(&p, 1, PTY_PATIENCE) <= 0 ||
		    (got = read(t->fd, t->text + t->n, PTY_MAX - t->n)) <= 0)
			return 0;
		for (ssize_t i = 0; i < got; i++) /* a text of C, so that strstr sees all of it */
			t->text[t->n + (size_t)i] = t->text[t->n + (size_t)i] ? t->text[t->n + (size_t)i] : ' ';
		t->n += (size_t)got;
	}
}

static inline size_t pty_must_see(struct pty *t, size_t from, const char *what)
{
	size_t at = pty_wait_for(t, from, what);

	if (!at)
		fail_msg("\"%s\" did not come; the last was: %s", what, t->text + (t->n > 300 ? t->n - 300 : 0));
	return at;
}

static inline void pty_type(const struct pty *t, const char *keys)
{
	assert_true(write(t->fd, keys, strlen(keys)) == (ssize_t)strlen(keys) || errno == EIO); /* it has ended */
}

/* Until the program sleeps: it has written all that there is room for, and waits for somebody to read it. */
static inline void pty_fill(const struct pty *t)
{
	enum { STEP = 100, STILL = 5 };
	char path[64], state = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)t->pid);
	for (int ms = 0, still = 0; ms < PTY_PATIENCE && still < STILL; ms += STEP) {
		FILE *f = fopen(path, "r");
		assert_non_null(f);
		assert_int_equal(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
		still = state == 'S' ? still + 1 : 0;
		usleep(STEP * 1000);
	}
}

/* Its status. A program that does not end is killed: the test fails instead of waiting for ever. */
static inline int pty_end(struct pty *t)
{
	int status;

	pty_wait_for(t, t->n, "\x01"); /* never: reads what is left */
	pid_t ended = 0;
	for (int ms = 0; ms < PTY_PATIENCE && (ended = waitpid(t->pid, &status, WNOHANG)) == 0; ms += 10)
		usleep(10000);
	if (ended != t->pid) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, &status, 0);
		fail_msg("the program did not end; its last text: %s", t->text + (t->n > 300 ? t->n - 300 : 0));
	}
	close(t->fd);
	free(t->text);
	return status;
}

#endif
