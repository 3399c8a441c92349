/* server/control/fetch.c - models that a program fetches: its process, the thread that reads its lines, and who hears
 * of them.
 *
 * The process ends when it is done, when its client has gone or asks for that, or when the server stops. One that was
 * asked to end and does not is killed, with all that it has started.
 */
#include "server/control/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "runtime/host/system.h"
#include "server/control/followers.h"
#include "server/engine/model_events.h"
#include "server/engine/models.h"
#include "server/http/server.h"

extern char **environ;

enum { POLL_MS = 100, LINE_LENGTH_MAX = 1 << 16, AT_ONCE = 4, FILES_MAX = 64 };
static const double patience = 3; /* seconds that a program has when it has said its last word, or was asked to end */

/* What the thread has. */
struct fetch {
	const struct server *server;
	bool goes_on;               /* also if nobody follows it */
	struct followers followers; /* `lock` guards them */
	char *name;
	pid_t child; /* and the group of all that it starts */
	int from;
	struct bytes line;
	bool settled;   /* the program said how it ended */
	int signalled;  /* the last signal that the program was sent; 0: none */
	double ends;    /* when it is sent the next one; 0: it may go on */
	double told_at; /* when listeners were told last how far it is */
	atomic_bool unwanted;
	json_t *progress; /* of each file: how many bytes are done, and of how many; `lock` guards it */
	struct fetch *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER; /* `running` is less */
static struct fetch *first;                             /* those that run */
static unsigned running;
static bool over;

/* ---- which run */

/* Under the lock: the one of that name that was not asked to end. NULL: none. */
static struct fetch *find(const char *name)
{
	struct fetch *f = first;

	while (f && (atomic_load(&f->unwanted) || !fetch_is_same(f->name, name)))
		f = f->next;
	return f;
}

/* It is one of those that run, or its client follows the one that fetches this model already; what the program says is
 * told to all of them. False: refused. */
static bool enter(struct fetch *f, struct answer_stream *stream, bool lines, bool *follows, struct refusal *r)
{
	bool ok = true;

	pthread_mutex_lock(&lock);
	struct fetch *same = find(f->name);
	*follows = same && stream;
	if (*follows)
		ok = followers_add(&same->followers, stream, lines) ||
		     refuse(r, 503, NULL, "There is no memory for this request.");
	else if (same)
		ok = refuse(r, 400, "model", "The model %.200s is being fetched already.", f->name);
	else if (over)
		ok = refuse(r, 503, NULL, "The server is stopping.");
	else if (running >= AT_ONCE)
		ok = refuse(r, 429, NULL, "%d models are being fetched already", AT_ONCE);
	if (ok && !*follows) {
		f->next = first;
		first = f;
		running++;
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

/* It is over, so that a client that hears of that may ask for it again at once. */
static void unlist(struct fetch *f)
{
	struct fetch **at = &first;

	pthread_mutex_lock(&lock);
	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	pthread_mutex_unlock(&lock);
}

static void give_back(struct fetch *f)
{
	followers_free(&f->followers);
	json_decref(f->progress);
	bytes_free(&f->line);
	free(f->name);
	free(f);
}

/* Nothing of it is there any more. */
static void leave(struct fetch *f)
{
	unlist(f);
	give_back(f);
	pthread_mutex_lock(&lock);
	running--;
	pthread_cond_broadcast(&fewer);
	pthread_mutex_unlock(&lock);
}

/* ---- the thread */

/* Its end, which is told once. From then on others may ask for the model again. */
static void end(struct fetch *f, const char *error)
{
	const struct answer_event r = {
		.kind = error ? EVENT_FAILED : EVENT_ENDED,
		.id = -1,
		.status = error ? 502 : 0,
		.n_text = error ? (uint32_t)strlen(error) : 0,
	};

	if (f->settled)
		return;
	f->settled = true;
	unlist(f);
	if (error)
		model_events_tell_data(f->name, "download_failed", json_pack("{s:s}", "message", error));
	else
		model_events_tell(f->name, "download_finished");
	pthread_mutex_lock(&lock);
	followers_end(&f->followers, &r, error);
	pthread_mutex_unlock(&lock);
}

/* Once nobody wants it, nobody can follow it any more. */
static bool is_unwanted(struct fetch *f)
{
	pthread_mutex_lock(&lock);
	if (!followers_remain(&f->followers) && !f->goes_on)
		atomic_store(&f->unwanted, true);
	pthread_mutex_unlock(&lock);
	return atomic_load(&f->unwanted);
}

/* What a line is about: a file, or a step. */
static const char *subject(const json_t *line)
{
	const char *file = json_string_value(json_object_get(line, "file")),
		   *digest = json_string_value(json_object_get(line, "digest"));

	return file ? file : digest;
}

/* How far a file is: for lists at once, for listeners not for each line. */
static void take_progress(struct fetch *f, const json_t *line)
{
	enum { OFTEN_MS = 100 };
	const json_t *total = json_object_get(line, "total"), *done = json_object_get(line, "completed");
	const char *file = subject(line);
	const double now = system_seconds();
	json_t *told = NULL;

	if (!file || !json_is_integer(total) || !json_is_integer(done))
		return;
	const json_int_t n = json_integer_value(done), all = json_integer_value(total);
	const bool tells = model_events_heard() && (n >= all || now - f->told_at >= OFTEN_MS / 1e3);
	pthread_mutex_lock(&lock);
	if (json_object_get(f->progress, file) || json_object_size(f->progress) < FILES_MAX)
		json_object_set_new(f->progress, file, json_pack("{s:I, s:I}", "done", n, "total", all));
	if (tells)
		told = json_pack("{s:o}", "progress", json_copied(f->progress, true));
	pthread_mutex_unlock(&lock);
	if (!tells)
		return;
	f->told_at = now;
	model_events_tell_data(f->name, "download_progress", told);
}

/* It is found by its name before its client hears that it is there. */
static void take_success(struct fetch *f, const json_t *line)
{
	struct models *all = f->server->models;

	if (all->fetched)
		all->fetched(all, f->name, json_string_value(json_object_get(line, "path")));
	end(f, NULL);
}

static void put_error(struct fetch *f, const char *why)
{
	char text[sizeof((struct refusal *)0)->message];

	snprintf(text, sizeof text, "%s", why);
	refusal_hide_paths(text, NULL);
	end(f, text);
}

/* A line is an object as ollama sends them; where the files lie here is none of a client's business. */
static void take_line(struct fetch *f)
{
	json_t *o = f->line.lost ? NULL : json_read(f->line.p, f->line.n, f->line.n, "a line", NULL);
	const char *error = json_string_value(json_object_get(o, "error")),
		   *status = json_string_value(json_object_get(o, "status"));

	bytes_clear(&f->line);
	if (f->settled) {
		/* What it says behind its end counts no more. */
	} else if (error) {
		put_error(f, error);
	} else if (status && strcmp(status, "success") == 0) {
		take_success(f, o);
	} else if (status) {
		json_object_del(o, "path");
		take_progress(f, o);
		char *text = json_spell(o, JSON_COMPACT);
		pthread_mutex_lock(&lock);
		followers_tell(&f->followers, subject(o) ? subject(o) : status, text ? text : "{}");
		pthread_mutex_unlock(&lock);
		free(text);
	}
	json_decref(o);
}

static void take_bytes(struct fetch *f, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n')
			take_line(f);
		else if (f->line.n < LINE_LENGTH_MAX)
			bytes_add(&f->line, p + i, 1);
	}
}

/* False: it says nothing more. */
static bool read_some(struct fetch *f)
{
	char received[4096];
	const ssize_t n = read(f->from, received, sizeof received);

	if (n > 0)
		take_bytes(f, received, (size_t)n);
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Its number stays its own until waitpid(). */
static bool has_exited(const struct fetch *f)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)f->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == f->child;
}

/* One that nobody wants is asked to end at once, one that has said its last word a little later; then it is killed. */
static void see_to_its_end(struct fetch *f)
{
	const bool stops = atomic_load(&f->server->state) == SERVER_STOPPING;
	const bool ends = stops || (!f->settled && is_unwanted(f)); /* a client may leave once it is told the end */
	const double now = system_seconds();

	if (ends)
		put_error(f, stops ? "The server is stopping." : "It was asked to stop.");
	if (!f->signalled && ends)
		f->ends = now;
	else if (f->settled && f->ends == 0)
		f->ends = now + patience;
	if (f->ends == 0 || now < f->ends)
		return;
	f->signalled = f->signalled ? SIGKILL : SIGTERM;
	kill(-f->child, f->signalled);
	f->ends = now + patience;
}

/* What a program said before it ended is there when it has ended. What it has left may go on for ever. */
static void read_rest(struct fetch *f, struct pollfd *from)
{
	enum { READS = 64 }; /* more than a pipe holds */

	for (int i = 0; i < READS && from->fd >= 0 && poll(from, 1, 0) > 0; i++)
		if (!read_some(f))
			from->fd = -1;
}

/* Until the program has ended and all that it said is read. What a killed one has left may hold the pipe for ever, and
 * a program may go on without its output. */
static void see_it_through(struct fetch *f)
{
	struct pollfd wait = { .fd = f->from, .events = POLLIN };

	for (;;) {
		const int ready = poll(&wait, 1, POLL_MS);
		see_to_its_end(f);
		if (ready > 0 && !read_some(f))
			wait.fd = -1;
		if ((ready == 0 || wait.fd < 0 || f->signalled == SIGKILL) && has_exited(f)) {
			read_rest(f, &wait); /* it may have said more since poll() */
			return;
		}
	}
}

static void *run(void *user)
{
	struct fetch *f = user;
	char why[80];
	int status = 0;

	system_thread_began();
	model_events_tell_data(f->name, "model_status", json_pack("{s:s}", "status", "downloading"));
	see_it_through(f);
	close(f->from);
	while (waitpid(f->child, &status, 0) < 0 && errno == EINTR)
		;
	snprintf(why, sizeof why, "The program that fetches models ended with status %d.",
	         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	put_error(f, why);
	leave(f);
	return NULL;
}

/* ---- the request */

/* A group of its own, which can be ended as a whole, and signals as programs expect them. */
static void set_attributes(posix_spawnattr_t *a)
{
	sigset_t none, usual;

	posix_spawnattr_init(a);
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	posix_spawnattr_setsigmask(a, &none);
	posix_spawnattr_setsigdefault(a, &usual);
	posix_spawnattr_setpgroup(a, 0);
	posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* Its standard output goes to *from; what it has to say to people goes where the server's does. False: errno. */
static bool start_program(struct fetch *f, const char *program, const char *name)
{
	char json[] = "--json", stop[] = "--", *copies[2] = { strdup(program), strdup(name) };
	char *argv[] = { copies[0], json, stop, copies[1], NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int ends[2], why = ENOMEM;

	if (copies[0] && copies[1] && pipe2(ends, O_CLOEXEC) != 0) {
		why = errno;
	} else if (copies[0] && copies[1]) {
		posix_spawn_file_actions_init(&files);
		posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
		set_attributes(&attributes);
		why = posix_spawnp(&f->child, program, &files, &attributes, argv, environ);
		posix_spawnattr_destroy(&attributes);
		posix_spawn_file_actions_destroy(&files);
		close(ends[1]);
		f->from = ends[0];
		if (why)
			close(ends[0]);
	}
	free(copies[0]);
	free(copies[1]);
	errno = why;
	return why == 0;
}

/* The thread takes over f. */
static bool start(struct exchange *x, struct fetch *f, const char *name)
{
	if (!start_program(f, x->server->o.pull_with, name))
		return refuse(&x->refusal, 503, NULL, "The program that fetches models cannot be run: %s",
		              strerror(errno));
	const int why = system_thread_start(run, f);
	if (why == 0)
		return true;
	kill(-f->child, SIGKILL);
	close(f->from);
	while (waitpid(f->child, NULL, 0) < 0 && errno == EINTR)
		;
	return refuse(&x->refusal, 503, NULL, "There is no thread for this request: %s", strerror(why));
}

static struct fetch *new_fetch(const struct server *server, const char *name, struct answer_stream *stream, bool lines)
{
	struct fetch *f = calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->server = server;
	f->name = strdup(name);
	f->progress = json_object();
	f->goes_on = !stream;
	if (f->name && f->progress && (!stream || followers_add(&f->followers, stream, lines)))
		return f;
	give_back(f);
	return NULL;
}

bool fetch_start(struct exchange *x, const char *name, struct answer_stream *stream, bool lines)
{
	struct fetch *f = new_fetch(x->server, name, stream, lines);
	bool follows;

	if (!f)
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	if (!enter(f, stream, lines, &follows, &x->refusal) || follows) {
		give_back(f);
		return follows && x->refusal.status == 0;
	}
	if (start(x, f, name))
		return true;
	/* Others may follow it by now. */
	end(f, x->refusal.message);
	leave(f);
	return false;
}

bool fetch_allowed(struct exchange *x, const char *name)
{
	if (!x->server->o.pull_with)
		return refuse(&x->refusal, 403, NULL, "This server fetches no models: --pull-with jitpull lets it.");
	return fetch_is_of_hub(name) ||
	       refuse(&x->refusal, 400, "model", "model is \"%.200s\", expected hf.co/OWNER/NAME[:QUANT]", name);
}

bool fetch_cancel(const char *name)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct fetch *f = first; f; f = f->next)
		if (fetch_is_same(f->name, name)) {
			atomic_store(&f->unwanted, true);
			found = true;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

void fetch_end(void)
{
	pthread_mutex_lock(&lock);
	over = true;
	while (running)
		pthread_cond_wait(&fewer, &lock);
	pthread_mutex_unlock(&lock);
}

void fetch_list(json_t *list)
{
	pthread_mutex_lock(&lock);
	for (const struct fetch *f = first; f; f = f->next) {
		json_t *o = json_object(), *status = json_object();
		json_put(o, "id", json_text(f->name, strlen(f->name)));
		json_put(o, "object", json_string("model"));
		json_put(o, "owned_by", json_string("jitrun"));
		json_put(status, "value", json_string("downloading"));
		json_put(status, "progress", json_copied(f->progress, true));
		json_put(o, "status", status);
		json_add(list, o);
	}
	pthread_mutex_unlock(&lock);
}
