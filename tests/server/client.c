/* tests/server/client.c - a server of the tests' own, and clients of it over raw sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/server/client.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared.h"

enum { ARGUMENTS = 40, READY_SECONDS = 120 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the server */

/* Reads lines until the one that has the port. */
static void wait_for_port(struct child *c)
{
	char text[4096] = "";
	size_t n = 0;
	double end = now() + READY_SECONDS;

	while (now() < end && n + 1 < sizeof text) {
		struct pollfd p = { .fd = c->said, .events = POLLIN };
		if (poll(&p, 1, 1000) <= 0)
			continue;
		ssize_t got = read(c->said, text + n, sizeof text - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
		text[n] = 0;
		const char *ready = strstr(text, "ready on http://");
		if (ready && strchr(ready, '\n')) {
			const char *colon = strrchr(ready, ':');
			c->port = atoi(colon + 1);
			return;
		}
	}
	kill(c->pid, SIGKILL);
	fail_msg("jitserve did not become ready: %s", text);
}

static struct child start(const char *model, const char *const *arguments, void (*prepare)(void))
{
	const char *argv[ARGUMENTS] = { "./jitserve", "--port", "0" };
	int n = 3, ends[2];
	struct child c = { 0 };

	if (model)
		argv[n++] = model;

	for (; arguments && *arguments; arguments++)
		argv[n++] = *arguments;
	argv[n] = NULL;
	assert_int_equal(pipe(ends), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		if (prepare)
			prepare();
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(ends[1]);
	c.said = ends[0];
	wait_for_port(&c);
	return c;
}

struct child child_start_prepared(const char *const *arguments, void (*prepare)(void))
{
	char model[1024];

	return start(source_path(model, "models/tale-q8_0.gguf"), arguments, prepare);
}

struct child child_start_without(const char *const *arguments) { return start(NULL, arguments, NULL); }

struct child child_start(const char *const *arguments) { return child_start_prepared(arguments, NULL); }

int child_wait(struct child *c)
{
	int status = 0;

	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	close(c->said);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int child_says(bool model, const char *arguments, char *said, size_t room)
{
	char command[4096], path[1024];

	snprintf(command, sizeof command, "exec timeout 60 ./jitserve %s %s 2>&1",
	         model ? source_path(path, "models/tale-q8_0.gguf") : "", arguments);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	said[fread(said, 1, room - 1, f)] = 0;
	const int status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int child_stop(struct child *c)
{
	kill(c->pid, SIGTERM);
	return child_wait(c);
}

int child_fds(const struct child *c)
{
	char path[64];
	int n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)c->pid);
	DIR *d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- a client */

int client_connect(const struct child *c, bool little)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)c->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), size = 4096, segment = 536, at_once = 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	if (little) {
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
	} else { /* a body that is sent behind its head would wait 40 ms for that to be acknowledged */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
	}
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

void client_send(int fd, const void *p, size_t n)
{
	const char *from = p;

	while (n) {
		ssize_t sent = send(fd, from, n, MSG_NOSIGNAL);
		if (sent <= 0)
			return;
		from += sent;
		n -= (size_t)sent;
	}
}

struct reading {
	char *p;
	size_t n, capacity;
	bool closed;
};

/* More bytes; false when time is up or the connection has ended. */
static bool read_more(struct reading *r, int fd, double end)
{
	while (!r->closed && now() < end) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int left = (int)((end - now()) * 1000) + 1;
		if (poll(&p, 1, left) <= 0)
			continue;
		if (r->capacity - r->n < 65537) {
			r->capacity = 2 * r->capacity + 131072;
			r->p = realloc(r->p, r->capacity);
			assert_non_null(r->p);
		}
		ssize_t got = recv(fd, r->p + r->n, 65536, 0);
		if (got <= 0) {
			r->closed = true;
			return false;
		}
		r->n += (size_t)got;
		r->p[r->n] = 0;
		return true;
	}
	return false;
}

const char *answer_field(const struct answer *a, const char *name)
{
	static _Thread_local char value[1024];
	size_t n = strlen(name);

	for (const char *line = a->head; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		line += n + 1;
		line += strspn(line, " ");
		snprintf(value, sizeof value, "%.*s", (int)strcspn(line, "\r\n"), line);
		return value;
	}
	return NULL;
}

/* Puts the chunks together that begin at `from`; false: the last one is not there yet. */
static bool join_chunks(const char *p, size_t n_all, size_t from, struct answer *a)
{
	a->body = calloc(1, n_all + 1);
	assert_non_null(a->body);
	for (;;) {
		const char *line = p + from, *end = strstr(line, "\r\n");
		if (!end)
			return false;
		size_t n = strtoul(line, NULL, 16);
		from = (size_t)(end + 2 - p);
		if (n > n_all || from + n + 2 > n_all)
			return false;
		memcpy(a->body + a->n_body, p + from, n);
		a->n_body += n;
		a->body[a->n_body] = 0;
		from += n + 2;
		if (n == 0)
			return true;
	}
}

static bool has_body(const char *p, size_t n_all, size_t from, bool closed, struct answer *a)
{
	const char *length = answer_field(a, "Content-Length");

	if (a->status == 204)
		length = "0";
	if (!length && answer_field(a, "Transfer-Encoding"))
		return join_chunks(p, n_all, from, a);
	size_t n = length ? strtoul(length, NULL, 10) : n_all - from;
	if (length ? n_all - from < n : !closed)
		return false;
	a->body = malloc(n + 1);
	assert_non_null(a->body);
	memcpy(a->body, p + from, n);
	a->body[n] = 0;
	a->n_body = n;
	return true;
}

bool answer_parse(struct answer *a, const char *p, size_t n, bool closed)
{
	const char *end = n ? strstr(p, "\r\n\r\n") : NULL;

	*a = (struct answer){ .closed = closed };
	if (end) {
		a->head = strndup(p, (size_t)(end + 4 - p));
		assert_int_equal(sscanf(a->head, "HTTP/1.1 %d", &a->status), 1);
		if (has_body(p, n, (size_t)(end + 4 - p), closed, a))
			return true;
	}
	if (!closed)
		answer_free(a);
	else if (!a->body)
		a->body = strdup("");
	return closed;
}

struct answer client_read(int fd, double seconds)
{
	struct answer a;
	struct reading r = { 0 };
	double begin = now();
	bool whole;

	while (!(whole = answer_parse(&a, r.p, r.n, r.closed)) && (read_more(&r, fd, begin + seconds) || r.closed))
		;
	if (!whole)
		answer_parse(&a, r.p, r.n, true);
	a.closed = r.closed;
	a.seconds = now() - begin;
	free(r.p);
	return a;
}

void answer_free(struct answer *a)
{
	free(a->head);
	free(a->body);
	*a = (struct answer){ 0 };
}

struct answer client_ask(const struct child *c, const char *path, const char *fields, const char *body)
{
	size_t n = (body ? strlen(body) : 0) + strlen(path) + (fields ? strlen(fields) : 0) + 300;
	char *text = malloc(n);
	int fd = client_connect(c, false);

	assert_non_null(text);
	if (body)
		snprintf(text, n,
		         "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%s"
		         "Content-Length: %zu\r\n\r\n%s",
		         path, fields ? fields : "", strlen(body), body);
	else
		snprintf(text, n, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, fields ? fields : "");
	client_send(fd, text, strlen(text));
	free(text);
	struct answer a = client_read(fd, SANITIZED ? 600 : 120); /* ThreadSanitizer takes ten times as long */
	close(fd);
	return a;
}

json_t *client_json(const struct child *c, const char *path, const char *body, int status)
{
	struct answer a = client_ask(c, path, NULL, body);
	json_t *o = json_loads(a.body, JSON_DECODE_ANY, NULL);

	if (a.status != status || !o)
		fail_msg("%s: status %d, expected %d and JSON: %.2000s", path, a.status, status, a.body);
	answer_free(&a);
	return o;
}
