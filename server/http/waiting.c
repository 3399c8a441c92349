/* server/http/waiting.c - see waiting.h. */
#include "server/http/waiting.h"

#include <stddef.h>

#include "base/json_write.h"
#include "grammar/machine/effort.h"
#include "runtime/host/system.h"
#include "runtime/session/session.h"
#include "server/http/server.h"

/* False: it sleeps. */
static bool is_awake(struct exchange *x, struct answer_stream *stream, const struct sleeper *s)
{
	struct answer_event ignored;
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

/* ---- handlers */

/* Steps that the grammars of a request may take in each lane (grammar/machine/effort.h): 60 ms, and a second. */
static const uint64_t lane_steps[LANES] = { [LANE_QUICK] = 6000000, [LANE_LONG] = 100000000 };
enum { LARGE_BODY = 256 << 10 /* is read in the lane for what takes long */ };

static bool is_stopping(const struct exchange *x) { return atomic_load(&x->server->state) == SERVER_STOPPING; }

static bool is_unwanted(void *user)
{
	const struct exchange *x = user;

	return stream_is_cancelled(x->working) || is_stopping(x);
}

/* What was cut short in the quick lane counts for nothing. */
static void handle(struct lane_work *w)
{
	struct exchange *x = (struct exchange *)(void *)((char *)w - offsetof(struct exchange, work));
	struct effort_bound bound = { .left = lane_steps[x->lane], .stop = is_unwanted, .user = x };
	const struct answer_event over = { .kind = EVENT_ENDED };
	struct answer_stream *working = x->working;

	stream_hold(working);
	json_lacks(); /* what others lacked is theirs */
	effort_bind(&bound);
	x->handled = !is_unwanted(x) && x->route->handle(x);
	x->takes_long = bound.hit && x->lane == LANE_QUICK && !x->reply;
	effort_unbind();
	stream_put(working, &over, NULL, NULL);
	stream_release(working);
}

static enum waiting go_on_handling(struct exchange *x, const struct sleeper *s)
{
	if (!is_awake(x, x->working, s))
		return WAITING_SLEEPS;
	const bool gone = stream_is_cancelled(x->working);
	stream_release(x->working);
	x->working = NULL;
	if (gone)
		return WAITING_GONE;
	if (is_stopping(x) && !x->handled) {
		x->refusal = (struct refusal){ 0 };
		refuse(&x->refusal, 503, NULL, "The server is stopping.");
		return WAITING_REFUSED;
	}
	if (!x->takes_long)
		return WAITING_HANDLED;
	x->refusal = (struct refusal){ 0 };
	bytes_clear(&x->answer);
	x->takes_long = x->answered = false;
	x->lane = LANE_LONG;
	return waiting_hand_over(x, s);
}

enum waiting waiting_hand_over(struct exchange *x, const struct sleeper *s)
{
	if (!(x->working = stream_open(1, SIZE_MAX, true))) {
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
		return WAITING_REFUSED;
	}
	if (x->body.n > LARGE_BODY)
		x->lane = LANE_LONG;
	x->work = (struct lane_work){ .run = handle, .key = x->client.key };
	watch_running(x->server->watch, s->watched, x->working);
	stream_wait(x->working, s->sleep, s->wake, x);
	lanes_put(x->server->lanes, x->lane, &x->work);
	return WAITING_SLEEPS;
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
	if (x->working)
		return go_on_handling(x, s);
	return x->fetching ? go_on_fetching(x, s) : go_on_loading(x, s);
}

void waiting_leave(struct exchange *x)
{
	if (x->working)
		stream_release(x->working);
	x->working = NULL;
	picture_fetch_leave(&x->shown);
}
