/* server/http/gate.c - between clients and the HTTP library: every byte of a client passes here first. */
#include "server/http/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/host/system.h"
#include "server/http/gate_line.h"

enum { EVENTS = 64, ITERATIONS = 32, TICK_MS = 250, PAUSE_MS = 50 };
static const double last_seconds = 1; /* for what is not sent yet when the server ends */

struct gate {
	struct gate_options o;
	pthread_t thread;
	struct gated all;           /* head of the list of those that are not over: the thread's own */
	int epoll, event, spare[2]; /* spare: a pair for the next client, so that none is taken without one */
	bool has_spare, listens;
	pthread_mutex_t door; /* held while a connection is passed on */
	bool shut;
	pthread_mutex_t lock; /* of all holders, and of n */
	long n;               /* that are open */
	atomic_bool ends;
};

/* What the library keeps as a client's address. */
struct gate_address {
	sa_family_t family; /* AF_UNSPEC */
	struct gated *c;
};

/* ---- connections */

static void wake(struct gate *g)
{
	const uint64_t one = 1;

	(void)!write(g->event, &one, sizeof one);
}

static void add(struct gate *g, struct gated *c)
{
	c->gate = g;
	c->holders = 2;
	c->before = &g->all;
	c->next = g->all.next;
	if (c->next)
		c->next->before = c;
	g->all.next = c;
	pthread_mutex_lock(&g->lock);
	g->n++;
	pthread_mutex_unlock(&g->lock);
}

/* Its socket is closed last: who still knows its number must not meet another client's. */
static void let_go(struct gated *c)
{
	struct gate *g = c->gate;

	pthread_mutex_lock(&g->lock);
	bool last = --c->holders == 0;
	pthread_mutex_unlock(&g->lock);
	if (!last)
		return;
	line_close(&c->line);
	free(c);
	pthread_mutex_lock(&g->lock);
	g->n--;
	pthread_mutex_unlock(&g->lock);
	wake(g); /* there is room for another one */
}

void gated_let_go(struct gated *c)
{
	if (c)
		let_go(c);
}

struct gated *gated_of(const struct sockaddr *address)
{
	struct gate_address a;

	if (!address)
		return NULL;
	memcpy(&a, address, sizeof a);
	return a.c;
}

void gated_take(struct gated *c)
{
	if (c)
		atomic_store(&c->taken, true);
}

int gated_client(const struct gated *c) { return c->line.client; }

/* To close them is not enough: a program that is being started has both until it runs, and events would go on to come
 * for c, which is no more. */
static void unwatch(struct gate *g, const struct gated *c)
{
	epoll_ctl(g->epoll, EPOLL_CTL_DEL, c->line.client, NULL);
	if (c->line.inner >= 0)
		epoll_ctl(g->epoll, EPOLL_CTL_DEL, c->line.inner, NULL);
}

/* Both ends are told, and it is taken from the list; buried once nothing in hand speaks of it. */
static void end(struct gate *g, struct gated *c, struct gated **ended)
{
	c->over = true;
	c->before->next = c->next;
	if (c->next)
		c->next->before = c->before;
	unwatch(g, c);
	line_end(&c->line);
	c->later = *ended;
	*ended = c;
}

static void bury(struct gated *ended)
{
	for (struct gated *c = ended, *next; c; c = next) {
		next = c->later;
		/* Where the library lacked memory to begin with it, it closed its end and never speaks of it. */
		if (c->line.inner_ended && !atomic_load(&c->taken))
			let_go(c);
		let_go(c);
	}
}

/* ---- new ones */

static bool is_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->ss_family == AF_INET6 && memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

static bool is_one_too_many(struct gate *g, const struct sockaddr_storage *address)
{
	long n = 0;

	if (g->o.per_address == 0)
		return false;
	for (const struct gated *c = g->all.next; c; c = c->next)
		n += is_same_address(&c->address, address);
	return n >= g->o.per_address;
}

static bool watch_fd(struct gate *g, int fd, struct gated *c)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c };

	return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static bool make_spare(struct gate *g)
{
	/* What the library says beyond what the client reads is little, so that it is known who does not read. */
	const int little = 16 << 10;

	if (g->has_spare)
		return true;
	g->has_spare = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, g->spare) == 0;
	if (g->has_spare)
		setsockopt(g->spare[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
	return g->has_spare;
}

/* Nothing of it is there but its sockets. */
static void discard(struct gated *c)
{
	line_close(&c->line);
	free(c);
}

/* Its other end goes to the library, unless the gate is shut. */
static bool hand_over(struct gate *g, struct gated *c, int fd, bool *doomed)
{
	const struct gate_address address = { .family = AF_UNSPEC, .c = c };

	pthread_mutex_lock(&g->door);
	bool shut = g->shut;
	bool ok = !shut &&
	          g->o.serve(g->o.user, fd, (const struct sockaddr *)(const void *)&address, sizeof address, doomed);
	pthread_mutex_unlock(&g->door);
	if (shut)
		close(fd);
	return ok;
}

static void take_in(struct gate *g, int fd, const struct sockaddr_storage *address)
{
	struct gated *c = calloc(1, sizeof *c), *ended = NULL;
	int ends[2] = { g->spare[0], g->spare[1] };

	if (!c || is_one_too_many(g, address)) {
		close(fd);
		free(c);
		return;
	}
	g->has_spare = false;
	c->address = *address;
	if (!line_open(&c->line, fd, ends[0], g->o.tls) || !watch_fd(g, fd, c) || !watch_fd(g, ends[0], c)) {
		close(ends[1]);
		unwatch(g, c);
		discard(c);
		return;
	}
	add(g, c);
	bool doomed = false, served = hand_over(g, c, ends[1], &doomed);
	if (!served || doomed)
		end(g, c, &ended);
	if (!served)
		let_go(c); /* the library's */
	bury(ended);
}

static void listen_again(struct gate *g, bool on)
{
	struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.ptr = g };

	if (g->listens != on && epoll_ctl(g->epoll, EPOLL_CTL_MOD, g->o.listener, &e) == 0)
		g->listens = on;
}

/* As many as there is room for; others wait in the system's queue. */
static void take_clients(struct gate *g)
{
	for (int i = 0; i < EVENTS; i++) {
		struct sockaddr_storage address = { 0 };
		socklen_t n = sizeof address;
		pthread_mutex_lock(&g->lock);
		bool room = g->n < g->o.connections;
		pthread_mutex_unlock(&g->lock);
		if (!room || !make_spare(g)) {
			listen_again(g, false);
			return;
		}
		int fd = accept4(g->o.listener, (struct sockaddr *)&address, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED)
				listen_again(g, false); /* there are no descriptors: until the next look */
			return;
		}
		take_in(g, fd, &address);
	}
}

/* ---- the thread */

/* Bytes go on in both directions, but nobody keeps the others waiting. */
static void carry(struct gate *g, struct gated *c, struct gated **ended, bool *more)
{
	enum line_state state = LINE_MOVES;

	for (int i = 0; i < ITERATIONS && state == LINE_MOVES && !c->over; i++)
		state = line_move(&c->line);
	c->moves = state == LINE_MOVES;
	*more = *more || c->moves;
	if (state == LINE_OVER)
		end(g, c, ended);
}

/* Those that have more to do, and those that only wait for a client that does not go. */
static void check_all(struct gate *g, bool tick, struct gated **ended, bool *more)
{
	double now = tick ? system_seconds() : 0;

	for (struct gated *c = g->all.next, *next; c; c = next) {
		next = c->next;
		if (tick && line_lingers(&c->line, now))
			end(g, c, ended);
		else if (c->moves)
			carry(g, c, ended, more);
	}
}

/* Once the library has closed all: whether it said something that was not sent. */
static bool has_unsent(const struct gate *g)
{
	const struct gated *c = g->all.next;

	while (c && c->line.out_closed)
		c = c->next;
	return c != NULL;
}

static void drain_event(struct gate *g)
{
	uint64_t ignored;

	(void)!read(g->event, &ignored, sizeof ignored);
}

static void handle(struct gate *g, const struct epoll_event *e, struct gated **ended, bool *more)
{
	if (e->data.ptr == g)
		take_clients(g);
	else if (e->data.ptr == &g->event)
		drain_event(g);
	else if (!((struct gated *)e->data.ptr)->over)
		carry(g, e->data.ptr, ended, more);
}

static void iterate(struct gate *g, double *last, bool *more)
{
	struct epoll_event event[EVENTS];
	struct gated *ended = NULL;
	int n = epoll_wait(g->epoll, event, EVENTS, *more ? 0 : g->listens ? TICK_MS : PAUSE_MS);
	bool had_more = *more, tick = system_seconds() - *last >= TICK_MS / 1000.0;

	*more = false;
	for (int i = 0; i < n; i++)
		handle(g, &event[i], &ended, more);
	if (tick || had_more)
		check_all(g, tick, &ended, more);
	if (tick)
		*last = system_seconds();
	bury(ended);
	listen_again(g, true);
}

static void *run(void *user)
{
	struct gate *g = user;
	double last = system_seconds();
	bool more = false;

	system_thread_began();
	while (!atomic_load(&g->ends))
		iterate(g, &last, &more);
	const double until = system_seconds() + last_seconds;
	while (has_unsent(g) && system_seconds() < until)
		iterate(g, &last, &more);
	return NULL;
}

/* ---- opening and closing */

static bool open_epoll(struct gate *g)
{
	struct epoll_event door = { .events = EPOLLIN, .data.ptr = g };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &g->event };

	fcntl(g->o.listener, F_SETFL, fcntl(g->o.listener, F_GETFL) | O_NONBLOCK);
	g->epoll = epoll_create1(EPOLL_CLOEXEC);
	g->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	g->listens = true;
	return g->epoll >= 0 && g->event >= 0 && epoll_ctl(g->epoll, EPOLL_CTL_ADD, g->o.listener, &door) == 0 &&
	       epoll_ctl(g->epoll, EPOLL_CTL_ADD, g->event, &event) == 0;
}

static void free_gate(struct gate *g)
{
	if (g->epoll >= 0)
		close(g->epoll);
	if (g->event >= 0)
		close(g->event);
	if (g->has_spare) {
		close(g->spare[0]);
		close(g->spare[1]);
	}
	free(g);
}

static int begin_thread(struct gate *g)
{
	int why = pthread_mutex_init(&g->lock, NULL);

	if (why)
		return why;
	why = pthread_mutex_init(&g->door, NULL);
	if (why == 0) {
		why = pthread_create(&g->thread, NULL, run, g);
		if (why == 0)
			return 0;
		pthread_mutex_destroy(&g->door);
	}
	pthread_mutex_destroy(&g->lock);
	return why;
}

struct gate *gate_open(const struct gate_options *o, struct error *err)
{
	struct gate *g = calloc(1, sizeof *g);

	if (!g) {
		error_set(err, ERROR_MEMORY, "no memory for connections");
		return NULL;
	}
	g->o = *o;
	g->epoll = g->event = -1;
	int why = open_epoll(g) ? begin_thread(g) : errno;
	if (why == 0)
		return g;
	error_set(err, ERROR_IO, "connections cannot be taken: %s", strerror(why));
	free_gate(g);
	return NULL;
}

void gate_shut(struct gate *g)
{
	pthread_mutex_lock(&g->door);
	g->shut = true;
	pthread_mutex_unlock(&g->door);
}

void gate_close(struct gate *g)
{
	struct gated *ended = NULL;

	atomic_store(&g->ends, true);
	wake(g);
	pthread_join(g->thread, NULL);
	while (g->all.next)
		end(g, g->all.next, &ended);
	bury(ended);
	pthread_mutex_destroy(&g->door);
	pthread_mutex_destroy(&g->lock);
	free_gate(g);
}
