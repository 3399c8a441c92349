/* bench/serve_process.c - servers that bench/serve starts, asks and ends. */
#include "bench/serve_process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/serve_clients.h"

enum { ARGUMENTS = 64, NUMBER = 24, READY_SECONDS = 300 };

/* One that nobody listens on now. */
static int free_port(struct error *err)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
	          getsockname(fd, (struct sockaddr *)&a, &n) == 0;
	if (!ok)
		error_set(err, ERROR_IO, "no port is free: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return ok ? ntohs(a.sin_port) : 0;
}

static void become(const struct serve_command *c, int port, char *more)
{
	char number[4][NUMBER];
	const char *argv[ARGUMENTS] = { c->program };
	int n = 1, null = open("/dev/null", O_RDWR);

	snprintf(number[0], NUMBER, "%d", port);
	snprintf(number[1], NUMBER, "%ld", c->parallel);
	snprintf(number[2], NUMBER, "%ld", c->threads);
	snprintf(number[3], NUMBER, "%ld", c->llama ? c->context * c->parallel : c->context);
	if (c->llama)
		argv[n++] = "--model";
	argv[n++] = c->model;
	argv[n++] = "--port";
	argv[n++] = number[0];
	argv[n++] = "--parallel";
	argv[n++] = number[1];
	argv[n++] = c->llama ? "--ctx-size" : "--context";
	argv[n++] = number[3];
	if (c->threads) {
		argv[n++] = "--threads";
		argv[n++] = number[2];
	}
	for (char *at = more ? strtok(more, " ") : NULL; at && n < ARGUMENTS - 1; at = strtok(NULL, " "))
		argv[n++] = at;
	argv[n] = NULL;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static bool wait_until_ready(struct serve_process *p, const struct serve_command *c, struct error *err)
{
	const struct timespec moment = { .tv_nsec = 50000000 };

	for (int i = 0; i < READY_SECONDS * 20; i++) {
		int status;
		if (waitpid(p->pid, &status, WNOHANG) == p->pid) {
			p->pid = 0;
			return error_set(err, ERROR_IO, "%s ended with status %d before it was ready", c->program,
			                 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
		}
		if (serve_is_ready(p->port))
			return true;
		nanosleep(&moment, NULL);
	}
	serve_process_stop(p);
	return error_set(err, ERROR_IO, "%s was not ready after %d s", c->program, READY_SECONDS);
}

bool serve_process_start(struct serve_process *p, const struct serve_command *c, struct error *err)
{
	char *more = c->arguments ? strdup(c->arguments) : NULL;

	*p = (struct serve_process){ .port = free_port(err) };
	if (p->port == 0 || (c->arguments && !more)) {
		free(more);
		return error_set(err, ERROR_MEMORY, "no memory to start %s", c->program);
	}
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0)
		become(c, p->port, more);
	free(more);
	if (p->pid < 0)
		return error_set(err, ERROR_IO, "%s cannot be started: %s", c->program, strerror(errno));
	return wait_until_ready(p, c, err);
}

void serve_process_stop(struct serve_process *p)
{
	if (p->pid <= 0)
		return;
	kill(p->pid, SIGTERM);
	waitpid(p->pid, NULL, 0);
	p->pid = 0;
}
