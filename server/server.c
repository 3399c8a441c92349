/* server/server.c - a running server, from its socket to its end. */
#include "server/server.h"

#include <unistd.h>

#include "server/http.h"

bool server_open(struct server *s, struct error *err)
{
	atomic_store(&s->state, SERVER_LOADING);
	if (!listen_open(&s->listener, s->o.host, s->o.port, err))
		return false;
	if (!s->listener.loopback && !s->keys && !s->o.insecure) {
		close(s->listener.fd);
		return error_set(err, ERROR_ARGUMENT,
		                 "%s can be reached from other machines; give --api-key-file, or --insecure to let "
		                 "anybody ask",
		                 s->listener.address);
	}
	s->origin.loopback = s->listener.loopback;
	s->origin.bound = s->o.host;
	s->watch = watch_open((double)s->o.read_seconds, (double)s->o.alive_seconds, err);
	if (s->watch && http_start(s, err))
		return true;
	watch_close(s->watch);
	close(s->listener.fd);
	return false;
}

void server_close(struct server *s)
{
	http_stop(s);
	watch_close(s->watch);
	keys_free(s->keys);
	tls_free(&s->tls);
	s->watch = NULL;
	s->keys = NULL;
}
