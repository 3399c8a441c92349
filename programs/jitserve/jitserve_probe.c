/* programs/jitserve/jitserve_probe.c - jitserve --probe: asks the server at --host and --port whether it is ready. For
 * images, which have no other program that asks over HTTP. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "programs/jitserve/jitserve.h"

enum { PROBE_SECONDS = 5 };

/* A server that listens everywhere listens here as well. */
static const char *where(void)
{
	if (strcmp(serve.host, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(serve.host, "::") == 0 ? "::1" : serve.host;
}

static int connected(const char *host, const char *port, const char **why)
{
	const struct addrinfo want = { .ai_socktype = SOCK_STREAM };
	const struct timeval max = { .tv_sec = PROBE_SECONDS };
	struct addrinfo *list = NULL;
	int fd = -1;
	const int found = getaddrinfo(host, port, &want, &list);

	*why = found ? gai_strerror(found) : "no address";
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &max, sizeof max) != 0 ||
		                setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &max, sizeof max) != 0 ||
		                connect(fd, a->ai_addr, a->ai_addrlen) != 0)) {
			*why = strerror(errno);
			close(fd);
			fd = -1;
		}
	}
	if (list)
		freeaddrinfo(list);
	return fd;
}

/* The first line of the answer, without its end; false: none came. */
static bool status_line(int fd, const char *host, const char *port, char line[64])
{
	char request[512];
	const bool bare6 = strchr(host, ':') != NULL;
	const int n = snprintf(request, sizeof request,
	                       "GET /readyz HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n\r\n", bare6 ? "[" : "",
	                       host, bare6 ? "]" : "", port);
	size_t have = 0;

	if (n < 0 || (size_t)n >= sizeof request || send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
		return false;
	while (have < 63) {
		const ssize_t got = recv(fd, line + have, 63 - have, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		have += (size_t)got;
		if (memchr(line, '\n', have))
			break;
	}
	line[have] = 0;
	line[strcspn(line, "\r\n")] = 0;
	return have != 0;
}

int serve_probe(void)
{
	char port[16], line[64];
	const char *why;

	if (serve.port == 0)
		return serve_usage("--probe needs the server's --port, not 0");
	if (serve.tls_cert)
		return serve_usage("--probe asks over HTTP, and a server with --tls-cert speaks HTTPS alone");
	snprintf(port, sizeof port, "%ld", serve.port);
	const int fd = connected(where(), port, &why);
	if (fd < 0) {
		fprintf(stderr, "jitserve: no server answers at %s, port %s: %s.\n", where(), port, why);
		return SERVE_FAILED;
	}
	const bool answered = status_line(fd, where(), port, line);
	close(fd);
	if (answered && strncmp(line, "HTTP/1.1 200", 12) == 0)
		return SERVE_DONE;
	fprintf(stderr, "jitserve: the server at %s, port %s, is not ready: %s.\n", where(), port,
	        answered ? line : "it does not answer /readyz");
	return SERVE_FAILED;
}
