/* server/http/listen.c - the socket that clients connect to. */
#include "server/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FD_OF_SYSTEMD = 3, BACKLOG = 512 };

static bool is_loopback(const struct sockaddr *a)
{
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;

	if (a->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_UNIX || (a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr));
}

static struct addrinfo *resolve(const char *host, long port, struct error *err)
{
	const struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	struct addrinfo *found = NULL;
	char service[16];

	snprintf(service, sizeof service, "%ld", port);
	int status = getaddrinfo(host, service, &want, &found);
	if (status)
		error_set(err, ERROR_ARGUMENT, "--host is %s, which is no address of this machine: %s", host,
		          gai_strerror(status));
	return status ? NULL : found;
}

static bool describe(struct listener *l, struct error *err)
{
	struct sockaddr_storage a = { 0 };
	socklen_t n = sizeof a;
	char host[64] = "", port[16] = "";

	if (getsockname(l->fd, (struct sockaddr *)&a, &n))
		return error_set(err, ERROR_IO, "the socket has no address: %s", strerror(errno));
	l->loopback = is_loopback((struct sockaddr *)&a);
	if (a.ss_family == AF_UNIX) {
		snprintf(l->address, sizeof l->address, "a socket of this machine");
		return true;
	}
	if (getnameinfo((struct sockaddr *)&a, n, host, sizeof host, port, sizeof port,
	                NI_NUMERICHOST | NI_NUMERICSERV))
		return error_set(err, ERROR_IO, "the socket has an address that is not of the internet");
	snprintf(l->address, sizeof l->address, a.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return true;
}

/* What systemd hands over begins with descriptor 3, for the process that $LISTEN_PID names. */
static bool is_socket_activated(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");

	return pid && n && atol(pid) == (long)getpid() && atol(n) >= 1;
}

static int bind_one(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

bool listen_open(struct listener *l, const char *host, long port, struct error *err)
{
	l->fd = FIRST_FD_OF_SYSTEMD;
	if (is_socket_activated()) {
		/* It comes open for programs that this one starts, too, which would keep the port. */
		fcntl(l->fd, F_SETFD, FD_CLOEXEC);
		return describe(l, err);
	}
	struct addrinfo *found = resolve(host, port, err);
	if (!found)
		return false;
	l->fd = -1;
	for (struct addrinfo *a = found; a && l->fd < 0; a = a->ai_next)
		l->fd = bind_one(a);
	if (l->fd < 0)
		error_set(err, ERROR_IO, "%s port %ld cannot be listened on: %s", host, port, strerror(errno));
	freeaddrinfo(found);
	return l->fd >= 0 && describe(l, err);
}
