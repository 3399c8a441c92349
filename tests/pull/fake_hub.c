#include "tests/pull/fake_hub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pull/digest.h"

enum { REQUEST_MAX = 1 << 14 };

struct fake_hub hub;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct visit {
	int fd;
	bool other;
};

void fake_hub_etag(const struct fake_file *f, char out[65])
{
	struct digest d;
	char sixty_four[65], forty[41];

	memset(sixty_four, '0', 64);
	memset(forty, '0', 40);
	sixty_four[64] = forty[40] = 0;
	digest_begin(&d, f->lfs ? sixty_four : forty, f->n);
	digest_add(&d, f->bytes, f->n);
	digest_end(&d, out);
	if (hub.wrong_hash)
		out[0] = out[0] == 'a' ? 'b' : 'a';
}

static void send_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = send(fd, bytes, n, MSG_NOSIGNAL);
		if (done <= 0)
			return;
		bytes += done;
		n -= (size_t)done;
	}
}

static void send_slowly(int fd, const char *bytes, size_t n)
{
	size_t step = hub.slow_ms ? 1024 : n;

	for (size_t at = 0; at < n; at += step) {
		if (hub.slow_ms)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000L * hub.slow_ms }, NULL);
		send_all(fd, bytes + at, n - at < step ? n - at : step);
	}
}

static void answer(int fd, const char *status, const char *fields, const char *body)
{
	char head[3000];

	snprintf(head, sizeof head, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n", status,
	         strlen(body), fields);
	send_all(fd, head, strlen(head));
	send_all(fd, body, strlen(body));
}

static void value_of(const char *head, const char *name, char *out, size_t size)
{
	char line[60];
	const char *at = head;

	out[0] = 0;
	snprintf(line, sizeof line, "\r\n%s: ", name);
	if ((at = strcasestr(head, line)))
		snprintf(out, size, "%.*s", (int)strcspn(at + strlen(line), "\r"), at + strlen(line));
}

static struct fake_seen note(const char *head, bool other)
{
	struct fake_seen s = { .by_other = other };
	char bearer[200];

	sscanf(head, "%7s %599s", s.method, s.target);
	value_of(head, "Authorization", bearer, sizeof bearer);
	snprintf(s.bearer, sizeof s.bearer, "%.99s", strncmp(bearer, "Bearer ", 7) == 0 ? bearer + 7 : bearer);
	value_of(head, "Range", s.range, sizeof s.range);
	value_of(head, "If-Range", s.if_range, sizeof s.if_range);
	pthread_mutex_lock(&lock);
	if (hub.n_seen < HUB_SEEN)
		hub.seen[hub.n_seen++] = s;
	pthread_mutex_unlock(&lock);
	return s;
}

static void send_listing(int fd)
{
	static char body[1 << 16];
	char etag[65];
	size_t n = (size_t)snprintf(body, sizeof body, "{\"id\":\"o/n\",\"sha\":\"%s\",\"siblings\":[", FAKE_COMMIT);

	pthread_mutex_lock(&lock);
	for (int i = 0; i < hub.n_files; i++) {
		const struct fake_file *f = &hub.file[i];
		fake_hub_etag(f, etag);
		n += (size_t)snprintf(body + n, sizeof body - n, "%s{\"rfilename\":\"%s\"", i ? "," : "", f->path);
		if (!hub.bare && f->lfs)
			n += (size_t)snprintf(body + n, sizeof body - n,
			                      ",\"size\":%zu,\"lfs\":{\"sha256\":\"%s\",\"size\":%zu}", f->n, etag,
			                      f->n);
		else if (!hub.bare)
			n += (size_t)snprintf(body + n, sizeof body - n, ",\"size\":%zu,\"blobId\":\"%s\"", f->n, etag);
		n += (size_t)snprintf(body + n, sizeof body - n, "}");
	}
	snprintf(body + n, sizeof body - n, "]}");
	answer(fd, "200 OK", "Content-Type: application/json\r\n", hub.listing ? hub.listing : body);
	pthread_mutex_unlock(&lock);
}

/* The bytes, or the part that was asked for, and whatever is to be wrong with them. */
static void send_bytes(int fd, const struct fake_file *f, const struct fake_seen *s)
{
	char head[800], etag[65];
	size_t from = 0, n;
	bool cut = false;

	fake_hub_etag(f, etag);
	if (*s->range && !hub.no_ranges)
		from = (size_t)strtoul(s->range + strlen("bytes="), NULL, 10);
	if (from > f->n || (from && from == f->n)) {
		answer(fd, "416 Range Not Satisfiable", "", "");
		return;
	}
	n = f->n - from;
	int k = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n",
	                 from ? "206 Partial Content" : "200 OK", n + (hub.wrong_length ? 7 : 0));
	if (hub.too_long)
		k = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nConnection: close\r\n");
	if (from)
		k += snprintf(head + k, sizeof head - (size_t)k, "Content-Range: bytes %zu-%zu/%zu\r\n",
		              from + hub.other_range, f->n - 1, f->n);
	snprintf(head + k, sizeof head - (size_t)k, "ETag: \"%s\"\r\n%s\r\n", f->lfs ? "strong" : etag,
	         hub.other_etag ? "X-Linked-ETag: \"ffffffffffffffffffffffffffffffffffffffff\"\r\n" : "");
	send_all(fd, head, strlen(head));
	if (strcmp(s->method, "HEAD") == 0)
		return;
	pthread_mutex_lock(&lock);
	if (hub.cut_times && n > hub.cut) {
		cut = true;
		hub.cut_times -= hub.cut_times > 0;
	}
	pthread_mutex_unlock(&lock);
	send_slowly(fd, f->bytes + from, cut ? hub.cut : n);
	while (hub.too_long && send(fd, head, sizeof head, MSG_NOSIGNAL) > 0)
		;
}

static const struct fake_file *find(const char *target)
{
	const struct fake_file *found = NULL;
	size_t n = strlen(target), longest = 0;

	for (int i = 0; i < hub.n_files; i++) {
		size_t m = strlen(hub.file[i].path);
		if (n > m && m > longest && strcmp(target + n - m, hub.file[i].path) == 0 && target[n - m - 1] == '/') {
			found = &hub.file[i];
			longest = m;
		}
	}
	return found;
}

static void send_file(int fd, const struct fake_seen *s, bool other)
{
	const struct fake_file *f = find(s->target);
	char fields[800], etag[65];

	if (!f) {
		answer(fd, "404 Not Found", "X-Error-Code: EntryNotFound\r\n", "");
	} else if (other || !f->lfs) {
		send_bytes(fd, f, s);
	} else {
		fake_hub_etag(f, etag);
		if (hub.other_etag)
			etag[1] = etag[1] == 'a' ? 'b' : 'a';
		snprintf(fields, sizeof fields,
		         "Location: http://127.0.0.1:%d/%s/%s\r\nX-Linked-Size: %zu\r\n%s%s%sX-Repo-Commit: %s\r\n",
		         hub.loop ? hub.port : hub.other, hub.loop ? "o/n/resolve/main" : "bytes", f->path, f->n,
		         hub.no_etag ? "" : "X-Linked-ETag: \"", hub.no_etag ? "" : etag, hub.no_etag ? "" : "\"\r\n",
		         FAKE_COMMIT);
		answer(fd, "302 Found", fields, "");
	}
}

static void send_without_end(int fd, bool head)
{
	char block[1 << 14];

	memset(block, 'x', sizeof block);
	block[sizeof block - 2] = '\r';
	block[sizeof block - 1] = '\n';
	const char *first = head ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[\"";
	send_all(fd, first, strlen(first));
	memcpy(block, "X-F: ", 5);
	while (send(fd, block, sizeof block, MSG_NOSIGNAL) > 0)
		;
}

static bool refuses(int fd, const struct fake_seen *s, bool other)
{
	char fields[300] = "", status[40];
	bool refused = false;

	pthread_mutex_lock(&lock);
	if (hub.status_times > 0 && other == hub.status_of_bytes) {
		hub.status_times--;
		refused = true;
		snprintf(status, sizeof status, "%d X", hub.status);
	} else if (hub.need && !other && strcmp(s->bearer, hub.need) != 0) {
		refused = true;
		snprintf(status, sizeof status, "401 Unauthorized");
	}
	if (hub.error_code)
		snprintf(fields, sizeof fields, "X-Error-Code: %s\r\n", hub.error_code);
	if (hub.retry_after)
		snprintf(fields + strlen(fields), 100, "Retry-After: %s\r\n", hub.retry_after);
	pthread_mutex_unlock(&lock);
	if (refused)
		answer(fd, status, fields, "{\"error\":\"no\"}");
	return refused;
}

static void *serve(void *arg)
{
	struct visit v = *(struct visit *)arg;
	char head[REQUEST_MAX] = "";
	size_t n = 0;

	free(arg);
	while (n + 1 < sizeof head && !strstr(head, "\r\n\r\n")) {
		ssize_t got = recv(v.fd, head + n, sizeof head - 1 - n, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
		head[n] = 0;
	}
	if (n) {
		struct fake_seen s = note(head, v.other);
		if (strstr(s.target, "/api/models?"))
			answer(v.fd, "200 OK", "",
			       "[{\"id\":\"near/one\"},{\"id\":\"../x\"},{\"modelId\":\"near/two\"}]");
		else if (refuses(v.fd, &s, v.other))
			;
		else if (strstr(s.target, "/api/models/") && (hub.endless_list || hub.endless_head))
			send_without_end(v.fd, hub.endless_head);
		else if (strstr(s.target, "/api/models/"))
			send_listing(v.fd);
		else
			send_file(v.fd, &s, v.other);
	}
	shutdown(v.fd, SHUT_RDWR);
	close(v.fd);
	return NULL;
}

static void *listen_on(void *arg)
{
	struct visit *all = arg;

	for (;;) {
		struct visit *v = malloc(sizeof *v);
		pthread_t thread;
		int fd = accept(all->fd, NULL, NULL);
		if (fd < 0 || !v)
			abort();
		*v = (struct visit){ fd, all->other };
		if (pthread_create(&thread, NULL, serve, v) == 0)
			pthread_detach(thread);
	}
	return NULL;
}

static int start(struct visit *v)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	pthread_t thread;

	v->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(v->fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(v->fd, 64) != 0 ||
	    getsockname(v->fd, (struct sockaddr *)&a, &n) != 0 || pthread_create(&thread, NULL, listen_on, v) != 0)
		abort();
	pthread_detach(thread);
	return ntohs(a.sin_port);
}

void fake_hub_start(void)
{
	static struct visit first = { .other = false }, second = { .other = true };

	hub.port = start(&first);
	hub.other = start(&second);
}

void fake_hub_set(const struct fake_file *file, int n)
{
	int port = hub.port, other = hub.other;

	pthread_mutex_lock(&lock);
	memset(&hub, 0, sizeof hub);
	hub.port = port;
	hub.other = other;
	memcpy(hub.file, file, (size_t)n * sizeof *file);
	hub.n_files = n;
	pthread_mutex_unlock(&lock);
}

int fake_hub_count(const char *method, const char *text)
{
	int count = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < hub.n_seen; i++)
		count += strcmp(hub.seen[i].method, method) == 0 && strstr(hub.seen[i].target, text) != NULL;
	pthread_mutex_unlock(&lock);
	return count;
}
