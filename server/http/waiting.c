/* server/http/waiting.c - see waiting.h. */
#include "server/http/waiting.h"

#include "runtime/host/system.h"
#include "server/http/server.h"

/* False: it sleeps. */
static bool is_awake(struct exchange *x, struct stream *stream, const struct sleeper *s)
{
	struct record ignored;
	const jit_logprob *top;
	const char *text;

	while (stream_take(stream, &ignored, &top, &text))
		;
	return !stream_wait(stream, s->sleep, s->wake, x);
}

static enum waiting go_on_loading(struct exchange *x, const struct sleeper *s)
{
	if (!is_awake(x, x->lease.stream, s))
		return WAITING_SLEEPS;
	x->loading = system_seconds() - x->loading;
	switch (lease_settle(&x->lease)) {
	case LEASE_HELD: return WAITING_OVER;
	case LEASE_GONE: return WAITING_GONE;
	default: x->refusal = x->lease.refusal; return WAITING_REFUSED;
	}
}

static enum waiting go_on_fetching(struct exchange *x, const struct sleeper *s)
{
	if (!is_awake(x, x->fetching, s))
		return WAITING_SLEEPS;
	const bool gone = stream_is_cancelled(x->fetching);
	x->fetching = NULL;
	return gone ? WAITING_GONE : WAITING_OVER;
}

enum waiting waiting_begin(struct exchange *x, const struct sleeper *s)
{
	if (x->lease.state == LEASE_WANTED) {
		if (!lease_await(&x->lease, &x->refusal))
			return WAITING_REFUSED;
		x->loading = system_seconds();
		watch_running(x->server->watch, s->watched, x->lease.stream);
		return go_on_loading(x, s);
	}
	if (!x->shown.wanted || x->refusal.status)
		return WAITING_REFUSED;
	if (!picture_fetch_start(&x->shown, &x->fetching, &x->refusal)) {
		x->fetching = NULL;
		return WAITING_REFUSED;
	}
	watch_running(x->server->watch, s->watched, x->fetching);
	return go_on_fetching(x, s);
}

enum waiting waiting_go_on(struct exchange *x, const struct sleeper *s)
{
	return x->fetching ? go_on_fetching(x, s) : go_on_loading(x, s);
}
