/* tests/server/crowd.c - many clients of one server at once, some of which behave badly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/crowd.h"
#include "tests/server/hostile.h"

/* WAIT: no answer takes longer, unless something hangs. */
enum { WAIT_SECONDS = 180, GAPS_MAX = 1 << 20, BITE = 300, HUGE_HEAD = 1 << 20 };

enum way { PLAIN, ROW, WRONG, HUGE, SILENT, DRIPPING, FLOOD, STUCK };

struct client {
	enum crowd_role role;
	enum way way;
	int fd; /* -1: none */
	uint64_t draws;
	const struct ask *ask;
	const struct hostile *row;
	char *out; /* to be sent */
	size_t n_out, sent;
	char *got;
	size_t n, capacity, events, looked;
	size_t leave_at; /* bytes of the answer after which it leaves */
	double begun, leave, next, last_event;
	bool busy, over; /* over: nobody sends on this connection any more */
};

struct crowd {
	const struct child *server;
	const struct ask *asks, *wrong, *huge;
	size_t n_asks, n_wrong;
	struct client *list;
	struct pollfd *polled;
	unsigned n;
	bool rests;
	double *gap;
	size_t n_gaps;
	struct crowd_numbers numbers;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t draw(struct client *c, uint64_t below)
{
	c->draws ^= c->draws << 13;
	c->draws ^= c->draws >> 7;
	c->draws ^= c->draws << 17;
	return (c->draws >> 11) % below;
}

/* ---- what is sent */

static void put(struct client *c, const void *p, size_t n)
{
	c->out = realloc(c->out, c->n_out + n + 1);
	assert_non_null(c->out);
	memcpy(c->out + c->n_out, p, n);
	c->n_out += n;
}

static void put_text(struct client *c, const char *text) { put(c, text, strlen(text)); }

static void put_ask(struct client *c, const struct ask *a)
{
	char head[300];

	c->ask = a;
	snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", a->path,
	         strlen(a->body));
	put_text(c, head);
	put_text(c, a->body);
}

static void put_huge(struct client *c)
{
	static char line[4097];

	memset(line, 'a', sizeof line - 1);
	put_text(c, "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Y: ");
	for (size_t i = 0; i < HUGE_HEAD / (sizeof line - 1); i++)
		put_text(c, line);
	put_text(c, "\r\n\r\n");
}

static void put_silent(struct client *c)
{
	static const char *const beginnings[] = {
		"GET /hea",
		"GET /health HTTP/1.1\r\nHost: lo",
		"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"prompt\":\"The",
		"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"pro",
	};

	put_text(c, beginnings[draw(c, 4)]);
}

static void put_flood(struct client *c)
{
	for (int i = 0; i < 100; i++)
		put_text(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
	c->leave = c->begun + 0.3;
}

static void put_hostile(struct crowd *all, struct client *c)
{
	static const enum way ways[] = { ROW, ROW, ROW, ROW, WRONG, WRONG, WRONG, HUGE, SILENT, DRIPPING, FLOOD };
	size_t n_rows = 0;

	c->way = ways[draw(c, sizeof ways / sizeof *ways)];
	switch (c->way) {
	case WRONG: put_ask(c, &all->wrong[draw(c, all->n_wrong)]); return;
	case HUGE: put_huge(c); return;
	case SILENT: put_silent(c); return;
	case DRIPPING: put_text(c, "GET /health HTTP/1.1\r\nX-Y: "); return;
	case FLOOD: put_flood(c); return;
	default:
		while (hostile_requests[n_rows].name)
			n_rows++;
		c->row = &hostile_requests[draw(c, n_rows)];
		put(c, c->row->text, c->row->n);
	}
}

static void begin(struct crowd *all, struct client *c)
{
	bool stuck = c->role == CROWD_SLOW && draw(c, 4) == 0;

	if (c->fd < 0)
		c->fd = client_connect(all->server, c->role == CROWD_SLOW);
	c->begun = c->last_event = now();
	c->n_out = c->sent = c->n = c->events = c->looked = 0;
	c->leave = c->next = 0;
	c->leave_at = SIZE_MAX;
	c->busy = true;
	c->over = false;
	c->row = NULL;
	c->way = stuck ? STUCK : PLAIN;
	if (c->role == CROWD_HOSTILE)
		put_hostile(all, c);
	else
		put_ask(c, stuck ? all->huge : &all->asks[draw(c, all->n_asks)]);
	if (c->role == CROWD_LEAVING && draw(c, 2))
		c->leave = c->begun + (double)draw(c, 200) / 1000;
	else if (c->role == CROWD_LEAVING)
		c->leave_at = draw(c, 6000);
	all->numbers.begun[c->role]++;
}

/* ---- how one ends */

static void hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void end(struct crowd *all, struct client *c, bool keep)
{
	if (!keep)
		hang_up(c);
	c->busy = false;
	all->numbers.ended[c->role]++;
}

/* As a process that was killed leaves: what is unread makes the system reset the connection. */
static void leave(struct crowd *all, struct client *c)
{
	const struct linger reset = { .l_onoff = 1 };

	if (draw(c, 3) == 0)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	else if (draw(c, 2))
		shutdown(c->fd, SHUT_WR);
	end(all, c, false);
}

static void check_said(const struct client *c, const struct answer *a)
{
	char *said = said_in(a);

	if (!said)
		fail_msg("%s %s: broken off after %zu bytes: %s", c->ask->path, c->ask->body, c->n, a->body);
	if (strcmp(said, c->ask->alone) != 0)
		fail_msg("%s %s: said\n%s\nand alone\n%s", c->ask->path, c->ask->body, said, c->ask->alone);
	free(said);
}

static void check_status(const struct client *c, const struct answer *a, int status, int or_status, const char *what)
{
	if (a->status != status && a->status != or_status)
		fail_msg("%.100s: status %d, expected %d: %.500s", what, a->status, status, a->body);
	(void)c;
}

/* An answer is whole, or the server has closed the connection. */
static void judge(struct crowd *all, struct client *c, const struct answer *a)
{
	switch (c->way) {
	case PLAIN:
	case WRONG:
		check_status(c, a, c->ask->status ? c->ask->status : 200, -1, c->ask->body);
		if (c->ask->alone)
			check_said(c, a);
		break;
	case STUCK:
		assert_int_equal(a->status, 200);
		all->numbers.dropped += !strstr(a->body, "[DONE]");
		break;
	case ROW: check_status(c, a, c->row->status, c->row->or_status, c->row->name); break;
	case HUGE:
		/* A system that saw more bytes come than it gave to the server may cut off the answer. */
		check_status(c, a, 431, 0, "a head of 1 MiB");
		break;
	default: assert_true(a->closed && a->status != 200);
	}
}

static void finish(struct crowd *all, struct client *c, const struct answer *a)
{
	bool keep = c->role == CROWD_HONEST && !a->closed && draw(c, 4);

	judge(all, c, a);
	end(all, c, keep);
}

/* ---- sending and reading */

static void send_more(struct client *c, double t)
{
	if (c->way == DRIPPING && c->sent == c->n_out && t >= c->next) {
		put_text(c, "a");
		c->next = t + 0.1;
	}
	while (c->sent < c->n_out && !c->over) {
		ssize_t n = send(c->fd, c->out + c->sent, c->n_out - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n <= 0) {
			c->over = !(n < 0 && (errno == EAGAIN || errno == EINTR));
			return;
		}
		c->sent += (size_t)n;
	}
}

static void count_events(struct crowd *all, struct client *c, double t)
{
	const char *at = c->got + c->looked, *last = NULL;

	while ((at = strstr(at, "data: {"))) {
		last = ++at;
		c->events++;
	}
	if (!last)
		return;
	c->looked = (size_t)(last - c->got);
	if (c->role == CROWD_HONEST && c->last_event > c->begun && all->n_gaps < GAPS_MAX)
		all->gap[all->n_gaps++] = t - c->last_event;
	c->last_event = t;
}

static void read_some(struct crowd *all, struct client *c, double t)
{
	size_t max = c->role == CROWD_SLOW && c->way != STUCK ? BITE : 65536;
	struct answer a;

	if (c->capacity < c->n + max + 1) {
		c->capacity = 2 * c->capacity + max + 1;
		c->got = realloc(c->got, c->capacity);
		assert_non_null(c->got);
	}
	ssize_t n = recv(c->fd, c->got + c->n, max, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->n += n > 0 ? (size_t)n : 0;
	c->got[c->n] = 0;
	c->next = c->role == CROWD_SLOW ? t + 0.02 : c->next;
	count_events(all, c, t);
	if (c->n >= c->leave_at) {
		leave(all, c);
	} else if (c->way != FLOOD && answer_parse(&a, c->got, c->n, n <= 0)) {
		/* one that leaves has its answer sooner than it wanted to go */
		if (c->role == CROWD_LEAVING)
			end(all, c, false);
		else
			finish(all, c, &a);
		answer_free(&a);
	}
}

/* Not read: floods, slow clients but now and then, and stuck ones until the server should have dropped them. */
static bool wants_to_read(const struct client *c, double t)
{
	if (c->way == STUCK)
		return t > c->begun + 2;
	return c->way != FLOOD && (c->role != CROWD_SLOW || t >= c->next);
}

static void step_client(struct crowd *all, struct client *c, short events, double t)
{
	if (!c->busy) {
		if (all->rests)
			hang_up(c);
		else
			begin(all, c);
		return;
	}
	send_more(c, t);
	bool endless = c->way == SILENT || c->way == DRIPPING || c->way == STUCK;
	if ((c->leave > 0 && t >= c->leave) || (all->rests && endless))
		leave(all, c);
	else if (events & (POLLIN | POLLHUP | POLLERR))
		read_some(all, c, t);
	if (c->busy && t - c->begun > WAIT_SECONDS)
		fail_msg("%.300s: not ended after %d s, with %zu bytes", c->out, WAIT_SECONDS, c->n);
}

/* One look at all of them. False: none is busy. */
static bool step(struct crowd *all)
{
	double t = now();
	bool busy = false;

	for (unsigned i = 0; i < all->n; i++) {
		struct client *c = &all->list[i];
		bool reads = c->busy && wants_to_read(c, t);
		all->polled[i] = (struct pollfd){ .fd = reads ? c->fd : -1, .events = POLLIN };
		busy = busy || c->busy;
	}
	poll(all->polled, all->n, 10);
	t = now();
	for (unsigned i = 0; i < all->n; i++)
		step_client(all, &all->list[i], all->polled[i].revents, t);
	return busy;
}

/* ---- all of them */

static size_t length_of(const struct ask *list)
{
	size_t n = 0;

	while (list[n].path)
		n++;
	return n;
}

struct crowd *crowd_open(const struct child *server, unsigned clients, const struct ask *asks, const struct ask *wrong,
                         const struct ask *huge)
{
	struct crowd *all = calloc(1, sizeof *all);

	assert_non_null(all);
	*all = (struct crowd){ .server = server, .asks = asks, .wrong = wrong, .huge = huge, .n = clients };
	all->n_asks = length_of(asks);
	all->n_wrong = length_of(wrong);
	all->list = calloc(clients, sizeof *all->list);
	all->polled = calloc(clients, sizeof *all->polled);
	all->gap = calloc(GAPS_MAX, sizeof *all->gap);
	assert_true(all->list && all->polled && all->gap);
	for (unsigned i = 0; i < clients; i++) {
		all->list[i].fd = -1;
		all->list[i].draws = 0x9e3779b97f4a7c15 * (i + 1);
		all->list[i].role = i % 10 < 3 ? (enum crowd_role)(CROWD_LEAVING + i % 10) : CROWD_HONEST;
	}
	return all;
}

void crowd_run(struct crowd *c, double seconds)
{
	double until = now() + seconds;

	c->rests = false;
	while (now() < until)
		step(c);
}

void crowd_rest(struct crowd *c)
{
	c->rests = true;
	while (step(c))
		;
	step(c);
}

void crowd_abandon(struct crowd *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		struct client *one = &c->list[i];
		char bytes[65536];
		double until = now() + 10;
		ssize_t n = 1;
		while (one->fd >= 0 && n > 0 && now() < until) {
			struct pollfd p = { .fd = one->fd, .events = POLLIN };
			n = poll(&p, 1, 1000) > 0 ? recv(one->fd, bytes, sizeof bytes, MSG_DONTWAIT) : 1;
		}
		assert_true(one->fd < 0 || n <= 0);
		hang_up(one);
		one->busy = false;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void crowd_get_numbers(struct crowd *c, struct crowd_numbers *out)
{
	size_t n = c->n_gaps;

	*out = c->numbers;
	out->gaps = n;
	if (n == 0)
		return;
	qsort(c->gap, n, sizeof *c->gap, compare);
	out->gap50 = c->gap[n / 2];
	out->gap99 = c->gap[n * 99 / 100];
	out->gap_max = c->gap[n - 1];
}

void crowd_close(struct crowd *c)
{
	for (unsigned i = 0; i < c->n; i++) {
		hang_up(&c->list[i]);
		free(c->list[i].out);
		free(c->list[i].got);
	}
	free(c->list);
	free(c->polled);
	free(c->gap);
	free(c);
}
