/* server/engine/stream.c - what the batcher has for one request, on its way to the thread that answers the client. */
#include "server/engine/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "runtime/host/system.h"

/* What an event costs at least once it is text for a client; the limit counts that, so that it means about as many
 * bytes as the client did not read. */
enum { MIN_COST = 256 };

struct answer_stream {
	pthread_mutex_t lock;
	unsigned references, running; /* running: choices that have not ended */
	struct bytes waiting;         /* events, one behind the other */
	struct bytes taken;           /* the reader's copy of one */
	size_t unread, max_unread;
	bool whole, dropped, wakes;
	atomic_bool cancelled;
	double last_put;
	void (*wake)(void *user); /* NULL: nobody sleeps */
	void *user;
};

struct answer_stream *stream_open(unsigned choices, size_t max_unread, bool whole)
{
	struct answer_stream *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	if (pthread_mutex_init(&s->lock, NULL)) {
		free(s);
		return NULL;
	}
	s->references = 1;
	s->running = choices;
	s->max_unread = max_unread;
	s->whole = whole;
	s->last_put = system_seconds();
	return s;
}

void stream_hold(struct answer_stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->references++;
	pthread_mutex_unlock(&s->lock);
}

void stream_release(struct answer_stream *s)
{
	pthread_mutex_lock(&s->lock);
	unsigned left = --s->references;
	pthread_mutex_unlock(&s->lock);
	if (left)
		return;
	pthread_mutex_destroy(&s->lock);
	bytes_free(&s->waiting);
	bytes_free(&s->taken);
	free(s);
}

static bool has_something(const struct answer_stream *s)
{
	return s->running == 0 || s->dropped || (s->wakes && atomic_load(&s->cancelled)) ||
	       (!s->whole && s->waiting.at < s->waiting.n);
}

static void wake_reader(struct answer_stream *s)
{
	void (*wake)(void *) = s->wake;

	s->wake = NULL;
	if (wake)
		wake(s->user);
}

static size_t cost_of(const struct answer_event *r) { return MIN_COST + r->n_text + r->n_top * (size_t)MIN_COST / 4; }

static void append(struct answer_stream *s, const struct answer_event *r, const jit_logprob *top, const char *text)
{
	/* A reader that is always a little behind must not let what it has taken pile up. */
	if (s->waiting.at > s->waiting.n / 2) {
		s->waiting.n -= s->waiting.at;
		memmove(s->waiting.p, s->waiting.p + s->waiting.at, s->waiting.n);
		s->waiting.at = 0;
	}
	bytes_add(&s->waiting, r, sizeof *r);
	bytes_add(&s->waiting, top, r->n_top * sizeof *top);
	bytes_add(&s->waiting, text, r->n_text);
	s->unread += cost_of(r);
	s->dropped = s->dropped || s->waiting.lost || s->unread > s->max_unread;
	if (s->dropped)
		atomic_store(&s->cancelled, true);
}

bool stream_put(struct answer_stream *s, const struct answer_event *r, const jit_logprob *top, const char *text)
{
	pthread_mutex_lock(&s->lock);
	bool wanted = !atomic_load(&s->cancelled);
	if (wanted)
		append(s, r, top, text);
	if (r->kind == EVENT_ENDED || r->kind == EVENT_FAILED)
		s->running--;
	s->last_put = system_seconds();
	if (has_something(s))
		wake_reader(s);
	pthread_mutex_unlock(&s->lock);
	return wanted;
}

bool stream_is_cancelled(const struct answer_stream *s) { return atomic_load(&s->cancelled); }

void stream_wakes_when_cancelled(struct answer_stream *s) { s->wakes = true; }

void stream_cancel(struct answer_stream *s)
{
	atomic_store(&s->cancelled, true);
	if (!s->wakes)
		return;
	pthread_mutex_lock(&s->lock);
	wake_reader(s);
	pthread_mutex_unlock(&s->lock);
}

void stream_drop(struct answer_stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->dropped = true;
	atomic_store(&s->cancelled, true);
	wake_reader(s);
	pthread_mutex_unlock(&s->lock);
}

void stream_keep_alive(struct answer_stream *s, double now, double seconds)
{
	const struct answer_event idle = { .kind = EVENT_IDLE };

	pthread_mutex_lock(&s->lock);
	bool due = !s->whole && s->running && now - s->last_put >= seconds && s->waiting.at == s->waiting.n;
	pthread_mutex_unlock(&s->lock);
	if (due)
		stream_put(s, &idle, NULL, NULL);
}

bool stream_take(struct answer_stream *s, struct answer_event *r, const jit_logprob **top, const char **text)
{
	pthread_mutex_lock(&s->lock);
	bool there = s->waiting.at < s->waiting.n && !s->dropped && has_something(s);
	bytes_clear(&s->taken);
	if (there) {
		const char *from = s->waiting.p + s->waiting.at;
		memcpy(r, from, sizeof *r);
		size_t n = r->n_top * sizeof **top + r->n_text;
		bytes_add(&s->taken, from + sizeof *r, n);
		s->waiting.at += sizeof *r + n;
		s->unread -= cost_of(r);
		there = !s->taken.lost;
		s->dropped = s->dropped || !there;
	}
	pthread_mutex_unlock(&s->lock);
	*top = (const jit_logprob *)(const void *)s->taken.p;
	*text = there && r->n_text ? s->taken.p + r->n_top * sizeof **top : "";
	return there;
}

bool stream_is_over(struct answer_stream *s)
{
	pthread_mutex_lock(&s->lock);
	bool over = s->running == 0 && s->waiting.at == s->waiting.n;
	pthread_mutex_unlock(&s->lock);
	return over;
}

bool stream_is_dropped(struct answer_stream *s)
{
	pthread_mutex_lock(&s->lock);
	bool dropped = s->dropped;
	pthread_mutex_unlock(&s->lock);
	return dropped;
}

double stream_over_for(struct answer_stream *s, double now)
{
	pthread_mutex_lock(&s->lock);
	double seconds = s->running ? 0 : now - s->last_put;
	pthread_mutex_unlock(&s->lock);
	return seconds;
}

bool stream_wait(struct answer_stream *s, void (*sleep)(void *user), void (*wake)(void *user), void *user)
{
	pthread_mutex_lock(&s->lock);
	bool sleeps = !has_something(s);
	if (sleeps) {
		sleep(user);
		s->wake = wake;
		s->user = user;
	}
	pthread_mutex_unlock(&s->lock);
	return sleeps;
}

void stream_leave(struct answer_stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->wake = NULL;
	atomic_store(&s->cancelled, true);
	pthread_mutex_unlock(&s->lock);
}
