/* server/http/gate_line.c - one connection of the gate: bytes from a client to the HTTP library, and back. */
#include "server/http/gate_line.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "runtime/host/system.h"

enum { READ_BYTES = 16 << 10, KEPT = 32 << 10 };
static const double linger_seconds = 2;

bool line_open(struct line *l, int client, int inner, struct tls *tls)
{
	const int on = 1;

	l->client = client;
	l->inner = inner;
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* not so on a socket of this machine alone */
	if (tls)
		l->tls = tls_begin(tls, client);
	return !tls || l->tls;
}

static ssize_t plain_send(int fd, const char *p, size_t n)
{
	ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);

	return sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : sent;
}

/* -1: nothing more comes; 0: nothing yet. */
static ssize_t plain_receive(int fd, char *p, size_t n)
{
	ssize_t got = recv(fd, p, n, 0);

	if (got > 0)
		return got;
	return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

/* As far as it goes. False: nobody reads there any more. */
static bool send_some(struct line *l, bool to_client, struct bytes *b, bool *moved)
{
	size_t n = b->n - b->at;

	if (n == 0)
		return true;
	ssize_t sent = !to_client ? plain_send(l->inner, b->p + b->at, n)
	               : l->tls   ? tls_send(l->tls, b->p + b->at, n)
	                          : plain_send(l->client, b->p + b->at, n);
	if (sent < 0)
		return false;
	b->at += (size_t)sent;
	*moved = *moved || sent > 0;
	if (b->at < b->n)
		return true;
	if (b->capacity > KEPT)
		bytes_free(b);
	bytes_clear(b);
	return true;
}

/* ---- one turn */

static void from_client(struct line *l, bool *moved)
{
	char received[READ_BYTES];

	if (l->client_ended || l->in.at < l->in.n)
		return;
	ssize_t got = l->tls ? tls_receive(l->tls, received, sizeof received)
	                     : plain_receive(l->client, received, sizeof received);
	l->client_ended = got < 0;
	*moved = *moved || got != 0;
	if (got > 0 && !l->in_closed)
		framing_take(&l->framing, received, (size_t)got, &l->in);
}

/* The library sees the end where the client has ended; what is wrong with a connection it must not see as an end. */
static void to_library(struct line *l, bool *moved)
{
	if (!l->in_closed && !send_some(l, false, &l->in, moved))
		l->in_closed = true;
	if (l->in_closed)
		bytes_free(&l->in);
	if (l->client_ended && l->in.at == l->in.n && !l->in_closed) {
		shutdown(l->inner, SHUT_WR);
		l->in_closed = true;
	}
}

static void from_library(struct line *l, bool *moved)
{
	char received[READ_BYTES];

	if (l->inner_ended || l->out.at < l->out.n)
		return;
	ssize_t got = plain_receive(l->inner, received, sizeof received);
	l->inner_ended = got < 0;
	*moved = *moved || got != 0;
	if (got > 0)
		bytes_add(&l->out, received, (size_t)got);
}

/* False: the client has gone. */
static bool to_client(struct line *l, bool *moved)
{
	if (!send_some(l, true, &l->out, moved))
		return false;
	if (l->inner_ended && l->out.at == l->out.n && !l->out_closed) {
		if (l->tls)
			tls_end(l->tls);
		shutdown(l->client, SHUT_WR);
		l->out_closed = true;
		l->ends = system_seconds() + linger_seconds;
	}
	return true;
}

enum line_state line_move(struct line *l)
{
	bool moved = false;

	from_client(l, &moved);
	to_library(l, &moved);
	from_library(l, &moved);
	if (!to_client(l, &moved) || l->in.lost || l->out.lost || (l->out_closed && l->client_ended))
		return LINE_OVER;
	return moved ? LINE_MOVES : LINE_WAITS;
}

bool line_lingers(const struct line *l, double now) { return l->ends > 0 && now > l->ends; }

void line_end(struct line *l)
{
	shutdown(l->client, SHUT_RDWR);
	if (l->inner >= 0)
		close(l->inner);
	l->inner = -1;
	framing_free(&l->framing);
	bytes_free(&l->in);
	bytes_free(&l->out);
}

void line_close(struct line *l)
{
	line_end(l);
	tls_finish(l->tls);
	close(l->client);
}
