#include "programs/jitopt/jitopt_command.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "programs/jitopt/jitopt.h"

struct jitopt_command {
	pid_t pid;
	int to, from;
	char *sent;        /* the candidates as text */
	char got[1 << 16]; /* of its output, what is no whole line yet */
	size_t n_got;
};

static bool fail(jit_error *err, int code, const char *what, const char *why)
{
	err->code = code;
	snprintf(err->message, sizeof err->message, "the command: %s%s%s", what, *why ? ": " : "", why);
	return false;
}

struct jitopt_command *jitopt_command_open(const char *text, jit_error *err)
{
	struct jitopt_command *c = calloc(1, sizeof *c);
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };

	if (!c || pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || (c->pid = fork()) < 0) {
		fail(err, JIT_ERROR_IO, "it cannot be started", strerror(errno));
		for (int i = 0; i < 2; i++) {
			close(in[i]);
			close(out[i]);
		}
		free(c);
		return NULL;
	}
	if (c->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		signal(SIGPIPE, SIG_DFL);
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	c->to = in[1];
	c->from = out[0];
	fcntl(c->to, F_SETFL, O_NONBLOCK);
	return c;
}

void jitopt_command_close(struct jitopt_command *c)
{
	if (!c)
		return;
	close(c->to);
	close(c->from);
	if (jit_cancel_get(jitopt_cancel))
		kill(c->pid, SIGTERM);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(c->sent);
	free(c);
}

/* A line into m numbers. */
static bool read_line(const char *line, double *values, size_t m, size_t number, jit_error *err)
{
	const char *at = line;
	char quoted[80], what[200];

	for (size_t k = 0; k < m; k++) {
		char *end;
		values[k] = strtod(at, &end);
		if (end == at)
			break;
		at = end + strspn(end, " \t,");
		if (k + 1 == m && (!*at || *at == '\r'))
			return true;
	}
	snprintf(what, sizeof what, "its line for candidate %zu of a population is %s: expected %zu number%s", number,
	         error_quote(quoted, sizeof quoted, line, strlen(line)), m, m > 1 ? "s" : "");
	return fail(err, JIT_ERROR_FORMAT, what, "");
}

/* Whole lines of what it wrote become values. False: err. */
static bool take_lines(struct jitopt_command *c, double *values, size_t m, size_t count, size_t *done, jit_error *err)
{
	size_t from = 0;

	for (char *end; *done < count && (end = memchr(c->got + from, '\n', c->n_got - from)); ++*done) {
		*end = 0;
		if (!read_line(c->got + from, values + *done * m, m, *done, err))
			return false;
		from = (size_t)(end - c->got) + 1;
	}
	c->n_got -= from;
	memmove(c->got, c->got + from, c->n_got);
	if (*done == count && c->n_got)
		return fail(err, JIT_ERROR_FORMAT, "it wrote more lines than there were candidates", "");
	return c->n_got < sizeof c->got || fail(err, JIT_ERROR_FORMAT, "it wrote a line of more than 65536 bytes", "");
}

static char *candidates_as_text(const double *x, size_t count, size_t n, size_t *bytes)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, bytes);

	if (!f)
		return NULL;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < n; k++)
			fprintf(f, "%.17g%c", x[i * n + k], k + 1 < n ? ' ' : '\n');
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* Writes what it takes and reads what it gives, in whichever order it does these. */
bool jitopt_command_values(struct jitopt_command *c, const double *x, size_t count, size_t n, double *values, size_t m,
                           jit_error *err)
{
	size_t bytes = 0, sent = 0, done = 0;

	free(c->sent);
	if (!(c->sent = candidates_as_text(x, count, n, &bytes)))
		return fail(err, JIT_ERROR_MEMORY, "there is no memory for a population", "");
	while (done < count) {
		struct pollfd p[2] = { { c->from, POLLIN, 0 }, { sent < bytes ? c->to : -1, POLLOUT, 0 } };
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return fail(err, JIT_ERROR_IO, "it cannot be waited for", strerror(errno));
		if (jit_cancel_get(jitopt_cancel))
			return fail(err, JIT_ERROR_CANCELLED, "interrupted", "");
		if (p[1].revents) {
			const ssize_t wrote = write(c->to, c->sent + sent, bytes - sent);
			if (wrote < 0 && errno != EAGAIN && errno != EINTR)
				return fail(err, JIT_ERROR_IO, "it reads no candidates", strerror(errno));
			sent += wrote > 0 ? (size_t)wrote : 0;
		}
		if (!(p[0].revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		const ssize_t got = read(c->from, c->got + c->n_got, sizeof c->got - c->n_got);
		if (got == 0)
			return fail(err, JIT_ERROR_IO, "it ended before all candidates had values", "");
		if (got < 0 && errno != EINTR)
			return fail(err, JIT_ERROR_IO, "its output cannot be read", strerror(errno));
		c->n_got += got > 0 ? (size_t)got : 0;
		if (!take_lines(c, values, m, count, &done, err))
			return false;
	}
	return true;
}
