#include "tests/faults/ask.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INHERITED = 3, SECONDS = 25, SECONDS_OF_FULL = 500, MAX = 1 << 16 };

/* A connection of its own for each request, as a server may end one at any time. The bytes of its answer. */
static size_t fetch(const struct sockaddr_in *at, const char *request, char *answer)
{
	const char *body = strchr(request, '\n') + 1;
	char text[2000];
	size_t n = 0;
	ssize_t more;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	snprintf(text, sizeof text,
	         "POST %.*s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
	         (int)(body - 1 - request), request, strlen(body), body);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 &&
	    send(fd, text, strlen(text), MSG_NOSIGNAL) > 0)
		while (n < MAX && (more = recv(fd, answer + n, MAX - n, 0)) > 0)
			n += (size_t)more;
	close(fd);
	answer[n] = 0;
	return n;
}

static void tell(int out, const char *text, size_t n)
{
	if (write(out, text, n) != (ssize_t)n || write(out, "\n", 1) != 1)
		_exit(1);
}

static void judge(int out, const char *answer)
{
	static const char field[] = "\r\nX-Jitrun-Replay: ", refused[] = ASK_REFUSED;
	const char *body = strstr(answer, "\r\n\r\n"), *replay = strstr(answer, field);
	bool whole = strncmp(answer, "HTTP/1.1 200 ", 13) == 0;

	if (whole && body && replay && replay < body)
		tell(out, replay + sizeof field - 1, strcspn(replay + sizeof field - 1, "\r"));
	if (!*answer || (body && !whole && strstr(body, "\"error\":{") && strstr(body, "\"message\":\"")))
		tell(out, refused, sizeof refused - 1);
	else
		tell(out, body ? body + 4 : answer, strlen(body ? body + 4 : answer));
}

static void be_client(const struct ask *a, const struct sockaddr_in *at, pid_t server, int out)
{
	static char answer[MAX + 1];
	const char *full = getenv("JITRUN_TEST_FULL");

	alarm(full && *full && *full != '0' ? SECONDS_OF_FULL : SECONDS);
	for (int i = 0; i < ASK_MAX && a->request[i]; i++) {
		while (fetch(at, a->request[i], answer) && strstr(answer, "Loading model"))
			usleep(20000);
		judge(out, answer);
	}
	if (getppid() == server)
		kill(server, SIGTERM);
	_exit(0);
}

bool ask_begin(const struct ask *a, int out)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	pid_t server = getpid();
	char text[20];

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, n) || listen(fd, 8) ||
	    getsockname(fd, (struct sockaddr *)&at, &n))
		return false;
	pid_t client = fork();
	if (client == 0) {
		close(fd); /* a server that has ended is nowhere */
		be_client(a, &at, server, out);
	}
	snprintf(text, sizeof text, "%d", (int)server);
	setenv("LISTEN_PID", text, 1);
	setenv("LISTEN_FDS", "1", 1);
	return client > 0 && (fd == INHERITED || dup2(fd, INHERITED) == INHERITED) &&
	       (fd == INHERITED || close(fd) == 0);
}
