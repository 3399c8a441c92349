/* server/server.c - a running server, from its socket to its end. */
#include "server/http/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include "server/http/http.h"
#include "server/responses/response_store.h"

/* As many descriptors as connections may need, if the system lets this process have them: shells usually leave it at
 * 1024. Where there are fewer, clients wait until others have gone. */
static void allow_descriptors(long connections)
{
	enum { OF_EACH = 3, BESIDE = 64 };
	const rlim_t wanted = (rlim_t)connections * OF_EACH + BESIDE;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= wanted)
		return;
	l.rlim_cur = l.rlim_max < wanted ? l.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &l);
}

/* What large requests took is not needed again soon, and allocators keep it. */
static void give_back_memory(void *user)
{
	struct server *s = user;

	if (s->o.give_back && atomic_exchange(&s->was_large, false))
		s->o.give_back();
}

bool server_open(struct server *s, struct error *err)
{
	atomic_store(&s->state, SERVER_LOADING);
	allow_descriptors(s->o.connections);
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
	if (s->o.responses > 0)
		s->responses = response_store_open((size_t)s->o.responses, (size_t)s->o.responses_mib << 20,
		                                   (double)s->o.responses_seconds);
	s->watch = watch_open((double)s->o.read_seconds, (double)s->o.alive_seconds, give_back_memory, s, err);
	if (s->watch && http_start(s, err))
		return true;
	watch_close(s->watch);
	lanes_close(s->lanes);
	response_store_close(s->responses);
	close(s->listener.fd);
	return false;
}

void server_close(struct server *s)
{
	http_stop(s);
	watch_close(s->watch);
	response_store_close(s->responses);
	s->responses = NULL;
	keys_free(s->keys);
	tls_free(&s->tls);
	s->watch = NULL;
	s->keys = NULL;
}
