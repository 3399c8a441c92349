/* bench/serve_clients.c - clients that ask a server, so many at a time, and what they waited for. */
#include "bench/serve_clients.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 16 << 20, RECEIVED = 65536, WAIT_SECONDS = 600 };

struct series {
	double *p;
	size_t n, capacity;
};

struct client {
	pthread_t thread;
	const struct serve_work *w;
	uint64_t number; /* of its next prompt */
	struct series first, next;
	uint64_t tokens;
	char *answer; /* as far as it came, and a 0 */
	size_t n;
	struct error err;
	bool failed;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool add(struct series *s, double value)
{
	if (s->n == s->capacity) {
		size_t capacity = 2 * s->capacity + 256;
		double *p = realloc(s->p, capacity * sizeof *p);
		if (!p)
			return false;
		s->p = p;
		s->capacity = capacity;
	}
	s->p[s->n++] = value;
	return true;
}

/* ---- one request */

static int connect_to(int port)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
	};
	const struct timeval wait = { .tv_sec = WAIT_SECONDS };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		p += sent;
		n -= (size_t)sent;
	}
	return true;
}

bool serve_is_ready(int port)
{
	static const char ask[] = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	char answer[16] = "";
	int fd = connect_to(port);
	bool ok = fd >= 0 && send_all(fd, ask, sizeof ask - 1) && recv(fd, answer, 12, MSG_WAITALL) == 12 &&
	          strcmp(answer, "HTTP/1.1 200") == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Words in an order that no other prompt has. */
static char *make_prompt(uint64_t number, long words)
{
	static const char *const word[] = { "the",  "king", "went",  "to",   "a",     "river", "and", "saw",
		                            "many", "old",  "ships", "with", "sails", "of",    "red", "cloth" };
	size_t n = (size_t)words * 8 + 64, at;
	uint64_t seed = (number + 1) * 0x9e3779b97f4a7c15ull;
	char *text = malloc(n);

	if (!text)
		return NULL;
	at = (size_t)snprintf(text, n, "%llu", (unsigned long long)number);
	for (long i = 1; i < words; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		at += (size_t)snprintf(text + at, n - at, " %s", word[seed >> 60]);
	}
	return text;
}

static bool ask(const struct client *c, int fd)
{
	char *prompt = make_prompt(c->number, c->w->words);
	size_t n = (prompt ? strlen(prompt) : 0) + 600;
	char *text = malloc(n), *body = malloc(n);
	bool ok = prompt && text && body;

	if (ok) {
		int length = snprintf(body, n,
		                      "{\"prompt\":\"%s\",\"max_tokens\":%ld,\"temperature\":0,\"ignore_eos\":true,"
		                      "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		                      prompt, c->w->tokens);
		snprintf(text, n,
		         "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		         "Connection: close\r\nContent-Length: %d\r\n\r\n%s",
		         length, body);
		ok = send_all(fd, text, strlen(text));
	}
	free(prompt);
	free(text);
	free(body);
	return ok;
}

/* When something of an answer came: text, or whatever there was where tokens have none. */
struct arrivals {
	double first, last;
	long events; /* with text */
};

/* Several events that come at once share the time since those before. */
static bool note(struct client *c, struct arrivals *a, long events, double sent, double t)
{
	bool ok = true;

	if (a->events == 0)
		ok = add(&c->first, t - sent);
	for (long i = 0; ok && a->events > 0 && i < events; i++)
		ok = add(&c->next, (t - a->last) / (double)events);
	a->first = a->events ? a->first : t;
	a->last = t;
	a->events += events;
	return ok;
}

/* Reads to the end. */
static bool read_answer(struct client *c, int fd, double sent, struct arrivals *a)
{
	double began = 0;
	size_t scanned = 0;

	for (c->n = 0; c->n + RECEIVED < ANSWER_MAX;) {
		ssize_t got = recv(fd, c->answer + c->n, RECEIVED, 0);
		double t = now();
		if (got < 0)
			return false;
		if (got == 0 && a->events == 0) { /* no text at all */
			a->first = began > 0 ? began : t;
			return add(&c->first, a->first - sent);
		}
		if (got == 0)
			return true;
		c->n += (size_t)got;
		c->answer[c->n] = 0;
		long events = 0;
		for (const char *at = c->answer + scanned; (at = strstr(at, "\"text\":"));) {
			scanned = (size_t)(++at - c->answer);
			events += strncmp(at + 6, "\"\"", 2) != 0;
		}
		if (began <= 0 && strstr(c->answer, "data: "))
			began = t;
		if (events && !note(c, a, events, sent, t))
			return false;
		a->last = a->events ? a->last : t;
	}
	return false;
}

/* Where events are not tokens, because some have no text or several come together, all of an answer's tokens have
 * taken the same. gaps: where the answer's begin. */
static bool spread(struct client *c, const struct arrivals *a, size_t gaps, long tokens)
{
	bool ok = true;

	if (a->events == tokens)
		return true;
	c->next.n = gaps;
	for (long i = 1; ok && i < tokens; i++)
		ok = add(&c->next, (a->last - a->first) / (double)(tokens - 1));
	return ok;
}

static bool fail(struct client *c, const char *what)
{
	c->failed = true;
	return error_set(&c->err, ERROR_IO, "%s: %.300s", what, c->n ? c->answer : "nothing was answered");
}

static bool request(struct client *c)
{
	int fd = connect_to(c->w->port);
	double sent = now();
	static const char field[] = "\"completion_tokens\":";

	c->n = 0;
	if (fd < 0)
		return fail(c, "the server cannot be connected to");
	struct arrivals a = { 0 };
	const size_t gaps = c->next.n;
	bool ok = ask(c, fd) && read_answer(c, fd, sent, &a);
	close(fd);
	if (!ok || strncmp(c->answer, "HTTP/1.1 200", 12) != 0)
		return fail(c, "a request was not answered");
	const char *usage = strstr(c->answer, field);
	if (!usage || atol(usage + sizeof field - 1) != c->w->tokens)
		return fail(c, "an answer has another length than was asked for");
	if (!spread(c, &a, gaps, c->w->tokens))
		return fail(c, "no memory for the times of an answer");
	c->tokens += (uint64_t)c->w->tokens;
	return true;
}

static void *run(void *user)
{
	struct client *c = user;

	for (long i = 0; i < c->w->requests && request(c); i++)
		c->number++;
	return NULL;
}

/* ---- all of them */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* All clients' together: the median, and what one of a hundred exceeds. */
static bool percentiles(const struct client *c, long n, size_t offset, double *p50, double *p99)
{
	struct series all = { 0 };
	bool ok = true;

	for (long i = 0; i < n; i++) {
		const struct series *s = (const void *)((const char *)&c[i] + offset);
		for (size_t k = 0; ok && k < s->n; k++)
			ok = add(&all, s->p[k]);
	}
	if (all.n) {
		qsort(all.p, all.n, sizeof *all.p, by_size);
		*p50 = all.p[all.n / 2];
		*p99 = all.p[all.n * 99 / 100];
	}
	free(all.p);
	return ok;
}

static bool run_all(struct client *list, const struct serve_work *w, struct error *err)
{
	long begun = 0;
	bool ok = true;

	for (; begun < w->concurrency; begun++) {
		struct client *c = &list[begun];
		c->w = w;
		c->number = w->first + (uint64_t)(begun * w->requests);
		c->answer = malloc(ANSWER_MAX);
		if (!c->answer || pthread_create(&c->thread, NULL, run, c)) {
			ok = error_set(err, ERROR_MEMORY, "no memory for %ld clients", w->concurrency);
			break;
		}
	}
	for (long i = 0; i < begun; i++) {
		pthread_join(list[i].thread, NULL);
		if (ok && list[i].failed)
			ok = error_set(err, list[i].err.code, "%s", list[i].err.text);
	}
	return ok;
}

bool serve_measure(const struct serve_work *w, struct serve_times *out, struct error *err)
{
	struct client *list = calloc((size_t)w->concurrency, sizeof *list);
	double began = now();

	*out = (struct serve_times){ 0 };
	if (!list)
		return error_set(err, ERROR_MEMORY, "no memory for %ld clients", w->concurrency);
	bool ok = run_all(list, w, err);
	out->seconds = now() - began;
	for (long i = 0; i < w->concurrency; i++)
		out->tokens += list[i].tokens;
	out->rate = (double)out->tokens / out->seconds;
	ok = ok && ((percentiles(list, w->concurrency, offsetof(struct client, first), &out->first50, &out->first99) &&
	             percentiles(list, w->concurrency, offsetof(struct client, next), &out->next50, &out->next99)) ||
	            error_set(err, ERROR_MEMORY, "no memory for the times of %ld clients", w->concurrency));
	for (long i = 0; i < w->concurrency; i++) {
		free(list[i].first.p);
		free(list[i].next.p);
		free(list[i].answer);
	}
	free(list);
	return ok;
}
