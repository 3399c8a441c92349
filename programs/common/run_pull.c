#include "programs/common/run_pull.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

enum { PATH_BYTES = 1 << 14, FAILED = 1, INTERRUPTED = 130 };

/* Beside the program that asks, where all of them are installed; else wherever the shell finds it. */
static void become(char **argv)
{
	char beside[PATH_BYTES];
	ssize_t n = readlink("/proc/self/exe", beside, sizeof beside - sizeof "jitpull");

	if (n > 0) {
		beside[n] = 0;
		char *slash = strrchr(beside, '/');
		strcpy(slash ? slash + 1 : beside, "jitpull");
		execv(beside, argv);
	}
	execvp("jitpull", argv);
}

int run_pull(const char *program, char **argv)
{
	char name[] = "jitpull";

	argv[0] = name;
	fflush(NULL);
	become(argv);
	fprintf(stderr,
	        "%s: models are fetched by jitpull, which cannot be run: %s.\nInstall it (it is built where libcurl is "
	        "there), or download a GGUF file and give its path.\n",
	        program, strerror(errno));
	return FAILED;
}

/* The line that it prints; NULL: it is longer than a path. */
static char *read_path(int from)
{
	char line[PATH_BYTES];
	size_t n = 0;

	for (ssize_t got = 1; n < sizeof line && got;) {
		got = read(from, line + n, sizeof line - n);
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	return n > 1 && n < sizeof line && line[n - 1] == '\n' ? strndup(line, n - 1) : NULL;
}

static void in_child(const char *program, const char *name, const char *file, bool quiet, int to)
{
	char *argv[8], or_cached[] = "--or-cached", as_file[] = "--file", as_quiet[] = "--quiet", end[] = "--";
	char *copy = strdup(name), *copy_file = file ? strdup(file) : NULL;
	int n = 1;

	argv[n++] = or_cached;
	if (copy_file) {
		argv[n++] = as_file;
		argv[n++] = copy_file;
	}
	if (quiet)
		argv[n++] = as_quiet;
	argv[n++] = end;
	argv[n++] = copy;
	argv[n] = NULL;
	if (dup2(to, STDOUT_FILENO) >= 0 && copy && (copy_file || !file))
		run_pull(program, argv);
	_exit(FAILED);
}

int run_pull_for(const char *program, const char *name, const char *file, bool quiet, char **path)
{
	int ends[2], status = 0;
	pid_t child = -1;

	*path = NULL;
	fflush(NULL);
	if (pipe(ends) == 0) {
		child = fork();
		if (child == 0)
			in_child(program, name, file, quiet, ends[1]);
		int why = errno;
		close(ends[1]);
		if (child > 0)
			*path = read_path(ends[0]);
		close(ends[0]);
		errno = why;
	}
	if (child < 0) {
		fprintf(stderr, "%s: jitpull cannot be run: %s.\n", program, strerror(errno));
		return FAILED;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && *path)
		return 0;
	free(*path);
	*path = NULL;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status)
	       : WIFSIGNALED(status) && WTERMSIG(status) == SIGINT
	               ? INTERRUPTED
	               : FAILED;
}
