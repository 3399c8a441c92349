/* server/talk/picture_fetch.c - see picture_fetch.h. */
#include "server/talk/picture_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "pictures/picture.h"
#include "runtime/host/system.h"

extern char **environ;

enum { POLL_MS = 50, AT_ONCE = 8, URL_MAX = 4096, HOST_MAX = 300, PICTURES_MAX = 256 };
static const double patience = 20; /* seconds for one picture */

struct fetched {
	struct fetched *next;
	char *url;
	struct bytes bytes;
	char why[200]; /* it could not be fetched; "": it was, once it is done */
	bool done;
};

/* A request and its thread hold it. The thread fills in `first`, and then the stream ends. */
struct picture_job {
	_Atomic unsigned holders;
	struct fetched *first;
	unsigned n;
	struct answer_stream *stream;
	const char *program;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER;
static unsigned running;
static bool over;

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* ---- which are allowed */

/* The host of an http or https address, in lower case, with its port where it has one; "" where it is none. */
static void host_of(const char *url, size_t n, char out[HOST_MAX])
{
	const size_t scheme = n > 8 && strncasecmp(url, "https://", 8) == 0  ? 8
	                      : n > 7 && strncasecmp(url, "http://", 7) == 0 ? 7
	                                                                     : 0;
	size_t k = 0;

	out[0] = 0;
	for (size_t i = scheme; scheme && i < n && !strchr("/?#", url[i]); i++) {
		const char c = url[i];
		/* names of users are none of a picture's business, and they would hide what the host is */
		if (k == HOST_MAX - 1 || c == '@' || c == '\\' || c <= ' ' || c == 127) {
			out[0] = 0;
			return;
		}
		out[k++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
	}
	out[k] = 0;
}

static bool is_host(const char *one, size_t n, const char *host)
{
	const char *port = strrchr(host, ':');
	const size_t whole = strlen(host), bare = port && !strchr(port, ']') ? (size_t)(port - host) : whole;

	if (n == 1 && *one == '*')
		return true;
	if (n > 2 && one[0] == '*' && one[1] == '.')
		return bare > n - 1 && strncasecmp(host + bare - (n - 1), one + 1, n - 1) == 0;
	return (n == whole || n == bare) && strncasecmp(one, host, n) == 0;
}

bool picture_fetch_is_allowed(const char *hosts, const char *url, size_t n)
{
	char host[HOST_MAX];

	host_of(url, n, host);
	for (const char *at = hosts; at && *host && *at; at += strspn(at, ", ")) {
		const size_t length = strcspn(at, ", ");
		if (length && is_host(at, length, host))
			return true;
		at += length;
	}
	return false;
}

/* ---- jobs */

static void release(struct picture_job *j)
{
	if (!j || atomic_fetch_sub(&j->holders, 1) != 1)
		return;
	for (struct fetched *f = j->first, *next; f; f = next) {
		next = f->next;
		bytes_free(&f->bytes);
		free(f->url);
		free(f);
	}
	if (j->stream)
		stream_release(j->stream);
	free(j);
}

static bool want(struct picture_fetches *p, const struct sight_options *o, const char *url, size_t n, struct refusal *r)
{
	struct picture_job *j = p->job;

	if (!j) {
		if (!(j = p->job = calloc(1, sizeof *j)))
			return no_memory(r);
		atomic_init(&j->holders, 1);
		j->program = o->fetcher;
	}
	struct fetched *f = calloc(1, sizeof *f);
	if (!f || !(f->url = strndup(url, n))) {
		free(f);
		return no_memory(r);
	}
	f->next = j->first;
	j->first = f;
	j->n++;
	p->wanted = true;
	return false;
}

bool picture_fetch_find(struct picture_fetches *f, const struct sight_options *o, const char *url, size_t n,
                        const void **bytes, size_t *n_bytes, struct refusal *r)
{
	char host[HOST_MAX];

	if (!picture_fetch_is_allowed(o->hosts, url, n) || n > URL_MAX)
		return refuse(r, 400, "messages",
		              "a message has a picture at an http address, and this server fetches none from there "
		              "(--image-hosts); send it as a data: URL");
	for (struct fetched *one = f->job ? f->job->first : NULL; one; one = one->next) {
		if (strlen(one->url) != n || memcmp(one->url, url, n) != 0)
			continue;
		if (!one->done)
			return false;
		host_of(url, n, host);
		if (one->why[0])
			return refuse(r, 400, "messages", "the picture at %.100s could not be fetched: %s", host,
			              one->why);
		*bytes = one->bytes.p;
		*n_bytes = one->bytes.n;
		return true;
	}
	if ((f->job && f->job->n >= PICTURES_MAX) || (f->job && f->job->n >= o->images))
		return refuse(r, 400, "messages", "the request has more than %zu pictures (--max-images)", o->images);
	return want(f, o, url, n, r);
}

/* ---- the program */

static bool spawn(const char *program, char *url, pid_t *child, int from[2])
{
	char print[] = "--print", quiet[] = "--quiet", kib[] = "--print-kib", limit[20], stop[] = "--";
	char *name = strdup(program), *argv[] = { name, print, quiet, kib, limit, stop, url, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, usual;
	int out[2], said[2], why = ENOMEM;

	snprintf(limit, sizeof limit, "%d", PICTURE_MAX_BYTES >> 10);
	if (!name || pipe2(out, O_CLOEXEC) != 0) {
		why = name ? errno : ENOMEM;
		free(name);
		errno = why;
		return false;
	}
	if (pipe2(said, O_CLOEXEC) != 0) {
		why = errno;
		close(out[0]);
		close(out[1]);
		free(name);
		errno = why;
		return false;
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, said[1], STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &usual);
	posix_spawnattr_setpgroup(&attributes, 0); /* it is ended with all that it starts */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	why = posix_spawnp(child, program, &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	close(out[1]);
	close(said[1]);
	from[0] = out[0];
	from[1] = said[0];
	if (why) {
		close(out[0]);
		close(said[0]);
	}
	free(name);
	errno = why;
	return why == 0;
}

static bool is_over(void)
{
	pthread_mutex_lock(&lock);
	const bool is = over;
	pthread_mutex_unlock(&lock);
	return is;
}

/* Until both pipes end, or there is no more patience. What it says is kept to its first line. */
static const char *read_all(const struct picture_job *j, struct fetched *f, const int from[2], char said[200])
{
	struct pollfd wait[2] = { { .fd = from[0], .events = POLLIN }, { .fd = from[1], .events = POLLIN } };
	const double until = system_seconds() + patience;
	size_t n_said = 0;

	said[0] = 0;
	while (wait[0].fd >= 0 || wait[1].fd >= 0) {
		static const char too_long[] = "it is too large", slow[] = "it takes too long";
		char block[1 << 14];
		if (stream_is_cancelled(j->stream) || is_over())
			return "nobody waits for it any more";
		if (system_seconds() > until)
			return slow;
		if (poll(wait, 2, POLL_MS) <= 0)
			continue;
		for (int i = 0; i < 2; i++) {
			if (wait[i].fd < 0 || !wait[i].revents)
				continue;
			const ssize_t n = read(wait[i].fd, block, sizeof block);
			if (n < 0 && (errno == EINTR || errno == EAGAIN))
				continue;
			if (n <= 0)
				wait[i].fd = -1;
			else if (i == 0)
				bytes_add(&f->bytes, block, (size_t)n);
			for (ssize_t k = 0; i == 1 && k < n && n_said < 199; k++)
				said[n_said++] = block[k];
		}
		if (f->bytes.lost || f->bytes.n > PICTURE_MAX_BYTES)
			return too_long;
	}
	said[n_said] = 0;
	said[strcspn(said, "\n")] = 0;
	return NULL;
}

static void fetch(const struct picture_job *j, struct fetched *f)
{
	pid_t child;
	int from[2], status = 0;
	char said[200];

	if (!spawn(j->program, f->url, &child, from)) {
		snprintf(f->why, sizeof f->why, "the program for that cannot be run: %s", strerror(errno));
		return;
	}
	const char *why = read_all(j, f, from, said);
	close(from[0]);
	close(from[1]);
	if (why)
		kill(-child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!why && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	const char *colon = strstr(said, ": "); /* behind the program's name */
	if (why)
		snprintf(f->why, sizeof f->why, "%s", why);
	else
		error_quote(f->why, sizeof f->why, *said ? (colon ? colon + 2 : said) : "the program failed",
		            *said ? strlen(colon ? colon + 2 : said) : 18);
}

static void *run(void *user)
{
	static const struct answer_event end = { .kind = EVENT_ENDED, .id = -1 };
	struct picture_job *j = user;

	system_thread_began();
	for (struct fetched *f = j->first; f; f = f->next) {
		if (!f->done)
			fetch(j, f);
		f->done = true;
	}
	stream_put(j->stream, &end, NULL, NULL);
	release(j);
	pthread_mutex_lock(&lock);
	running--;
	pthread_cond_broadcast(&fewer);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static bool enter(struct refusal *r)
{
	pthread_mutex_lock(&lock);
	const bool stops = over, full = running >= AT_ONCE;
	running += !stops && !full;
	pthread_mutex_unlock(&lock);
	return stops  ? refuse(r, 503, NULL, "The server is stopping.")
	       : full ? refuse(r, 429, NULL, "Too many pictures are being fetched; try again soon.")
	              : true;
}

bool picture_fetch_start(struct picture_fetches *f, struct answer_stream **stream, struct refusal *r)
{
	struct picture_job *j = f->job;

	f->wanted = false;
	if (j->stream)
		return refuse(r, 500, NULL, "The pictures of this request change while they are read.");
	if (!(j->stream = stream_open(1, SIZE_MAX, true)))
		return no_memory(r);
	if (!enter(r))
		return false;
	atomic_fetch_add(&j->holders, 1);
	const int why = system_thread_start(run, j);
	*stream = j->stream;
	if (!why)
		return true;
	release(j);
	pthread_mutex_lock(&lock);
	running--;
	pthread_cond_broadcast(&fewer);
	pthread_mutex_unlock(&lock);
	return refuse(r, 503, NULL, "There is no thread for this request: %s", strerror(why));
}

void picture_fetch_leave(struct picture_fetches *f)
{
	if (f->job && f->job->stream) {
		stream_cancel(f->job->stream);
		stream_leave(f->job->stream);
	}
	release(f->job);
	*f = (struct picture_fetches){ 0 };
}

void picture_fetch_end(void)
{
	pthread_mutex_lock(&lock);
	over = true;
	while (running)
		pthread_cond_wait(&fewer, &lock);
	pthread_mutex_unlock(&lock);
}
