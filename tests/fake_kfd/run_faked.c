/* tests/fake_kfd/run_faked.c - see run_faked.h. Output goes through files in a temporary folder. */
#include "tests/fake_kfd/run_faked.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char library[4096], trace_text[1 << 18];

bool faked_there(void)
{
	if (!*library && !realpath("tests/fake_kfd/.libs/fake_kfd.so", library))
		*library = 0;
	if (!*library)
		printf("# skipped: tests/fake_kfd/.libs/fake_kfd.so is not there\n");
	return *library != 0;
}

static void redirect(const char *folder, const char *name, int to)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd < 0 || dup2(fd, to) < 0)
		_exit(126);
	close(fd);
}

static void variable(const char *name, const char *folder, const char *file)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, file);
	setenv(name, path, 1);
}

static void become(const struct faked *f, const char *const *argv, const char *folder)
{
	const char *asan = getenv("ASAN_OPTIONS");
	char options[1024];

	redirect(folder, "out", 1);
	redirect(folder, "err", 2);
	/* The library is there before a sanitizer's, which does not like that; what it interposes is not theirs. */
	snprintf(options, sizeof options, "%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "");
	setenv("ASAN_OPTIONS", options, 1);
	setenv("FAKE_KFD", f->cards, 1);
	setenv("FAKE_KFD_INJECT", f->inject ? f->inject : "", 1);
	variable("FAKE_KFD_LOG", folder, "log");
	if (f->dir)
		setenv("FAKE_KFD_DIR", f->dir, 1);
	else
		variable("FAKE_KFD_DIR", folder, "root");
	if (f->traced)
		variable("FAKE_KFD_TRACE", folder, "trace");
	setenv("LD_PRELOAD", library, 1);
	execv(argv[0], (char **)(uintptr_t)argv);
	_exit(126);
}

bool faked_start(const struct faked *f, const char *const *argv, struct faked_process *p)
{
	const char *tmp = getenv("TMPDIR");

	if (!faked_there())
		return false;
	snprintf(p->folder, sizeof p->folder, "%s/faked.XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	if (!mkdtemp(p->folder))
		return false;
	fflush(NULL);
	p->pid = fork();
	if (!p->pid)
		become(f, argv, p->folder);
	return p->pid > 0;
}

static void read_file(const char *folder, const char *name, char *to, size_t room)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(to, 1, room - 1, f) : 0;
	to[n] = 0;
	if (f)
		fclose(f);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
	(void)s;
	(void)type;
	(void)f;
	return remove(path);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void faked_end(struct faked *f, struct faked_process *p)
{
	double start = now(), limit = f->limit_ms ? f->limit_ms / 1000.0 : 60;
	int status = 0;

	while (waitpid(p->pid, &status, WNOHANG) == 0) {
		if (now() - start > limit)
			kill(p->pid, SIGKILL);
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	}
	f->seconds = now() - start;
	f->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	f->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	read_file(p->folder, "out", f->out, sizeof f->out);
	read_file(p->folder, "err", f->err, sizeof f->err);
	read_file(p->folder, "log", f->log, sizeof f->log);
	if (f->traced) {
		read_file(p->folder, "trace", trace_text, sizeof trace_text);
		f->trace = trace_text;
	}
	nftw(p->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

bool faked_run(struct faked *f, const char *const *argv)
{
	struct faked_process p;

	if (!faked_start(f, argv, &p))
		return false;
	faked_end(f, &p);
	return true;
}
