/* server/http/watch.c - connections, looked at from beside. */
#include "server/http/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/host/system.h"

enum { TICK_MS = 500, EVENTS = 64 };

struct watched {
	struct watched *before, *next;
	uint64_t number; /* what epoll knows it by: never used twice */
	int fd;
	double since;                  /* reading since then; 0: not reading */
	struct answer_stream *running; /* NULL: none */
};

struct watch {
	pthread_mutex_t lock;
	pthread_t thread;
	struct watched all; /* head of the list */
	uint64_t numbers;
	double arrive, alive;
	void (*each)(void *user);
	void *user;
	int epoll;
	atomic_bool ends;
};

static void client_left(struct watch *w, uint64_t number)
{
	for (struct watched *c = w->all.next; c; c = c->next)
		if (c->number == number && c->running)
			stream_cancel(c->running);
}

/* So that nobody holds a model by reading its answer drop by drop. */
static bool reads_too_slowly(const struct watch *w, const struct watched *c, double now)
{
	return c->running && stream_over_for(c->running, now) > w->arrive;
}

static void tick(struct watch *w, double now)
{
	for (struct watched *c = w->all.next; c; c = c->next) {
		if ((c->since > 0 && now - c->since > w->arrive) || reads_too_slowly(w, c, now)) {
			shutdown(c->fd, SHUT_RDWR);
			c->since = 0;
		}
		if (c->running)
			stream_keep_alive(c->running, now, w->alive);
	}
}

static void *run(void *user)
{
	struct watch *w = user;
	struct epoll_event event[EVENTS];
	double last = system_seconds();

	system_thread_began();
	while (!atomic_load(&w->ends)) {
		int n = epoll_wait(w->epoll, event, EVENTS, TICK_MS);
		double now = system_seconds();
		pthread_mutex_lock(&w->lock);
		for (int i = 0; i < n; i++)
			client_left(w, event[i].data.u64);
		if (now - last >= TICK_MS / 1000.0) {
			tick(w, now);
			last = now;
		}
		pthread_mutex_unlock(&w->lock);
		if (last == now && w->each)
			w->each(w->user);
	}
	return NULL;
}

struct watch *watch_open(double arrive, double alive, void (*each)(void *user), void *user, struct error *err)
{
	struct watch *w = calloc(1, sizeof *w);

	if (!w) {
		error_set(err, ERROR_MEMORY, "no memory to watch connections");
		return NULL;
	}
	w->arrive = arrive;
	w->alive = alive;
	w->each = each;
	w->user = user;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	int why = w->epoll < 0 ? errno : pthread_mutex_init(&w->lock, NULL);
	if (why == 0)
		why = pthread_create(&w->thread, NULL, run, w);
	if (why == 0)
		return w;
	error_set(err, ERROR_IO, "connections cannot be watched: %s", strerror(why));
	if (w->epoll >= 0)
		close(w->epoll);
	free(w);
	return NULL;
}

void watch_close(struct watch *w)
{
	if (!w)
		return;
	atomic_store(&w->ends, true);
	pthread_join(w->thread, NULL);
	pthread_mutex_destroy(&w->lock);
	close(w->epoll);
	free(w);
}

struct watched *watch_begin(struct watch *w, int fd)
{
	struct watched *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	pthread_mutex_lock(&w->lock);
	c->fd = fd;
	c->number = ++w->numbers;
	c->since = system_seconds();
	c->before = &w->all;
	c->next = w->all.next;
	if (c->next)
		c->next->before = c;
	w->all.next = c;
	pthread_mutex_unlock(&w->lock);
	return c;
}

/* Closing a socket takes it from the epoll, too; but the library may have handed a copy on. */
static void forget(struct watch *w, struct watched *c)
{
	if (!c->running)
		return;
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	stream_release(c->running);
	c->running = NULL;
}

void watch_end(struct watch *w, struct watched *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&w->lock);
	forget(w, c);
	c->before->next = c->next;
	if (c->next)
		c->next->before = c->before;
	pthread_mutex_unlock(&w->lock);
	free(c);
}

void watch_reading(struct watch *w, struct watched *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&w->lock);
	forget(w, c);
	c->since = system_seconds();
	pthread_mutex_unlock(&w->lock);
}

void watch_running(struct watch *w, struct watched *c, struct answer_stream *running)
{
	struct epoll_event e = { .events = EPOLLRDHUP | EPOLLET };

	if (!c)
		return;
	pthread_mutex_lock(&w->lock);
	forget(w, c);
	c->since = 0;
	if (running) {
		stream_hold(running);
		c->running = running;
		e.data.u64 = c->number;
		if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, c->fd, &e))
			stream_cancel(running);
	}
	pthread_mutex_unlock(&w->lock);
}
