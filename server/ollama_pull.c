/* server/ollama_pull.c - /api/pull: a program fetches a model, and what it says goes to the client.
 *
 * Owns: the program's process, and the thread that reads its lines. Nothing here uses the network. The process ends
 * with its request: when it is done, when the client has gone, or when the server stops.
 */
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

#include "runtime/host/system.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "loaders/json_read.h"
#include "loaders/json_write.h"
#include "server/ollama.h"
#include "server/server.h"

extern char **environ;

enum { LOOK_MS = 100, LINE_MOST = 1 << 16, AT_ONCE = 4 };

static atomic_int running;

/* What the thread has. */
struct fetch {
	const struct server *server;
	struct stream *stream; /* held */
	pid_t child;
	int from;
	struct bytes line;
	bool settled; /* the program said how it ended */
};

/* ---- the thread */

static void put(struct fetch *f, enum record_kind kind, const char *text)
{
	const struct record r = {
		.kind = kind, .id = -1, .status = kind == RECORD_FAILED ? 502 : 0, .n_text = (uint32_t)strlen(text)
	};

	if (f->settled)
		return;
	f->settled = kind != RECORD_TOKEN;
	stream_put(f->stream, &r, NULL, text);
}

static void put_error(struct fetch *f, const char *why)
{
	char text[sizeof((struct refusal *)0)->message];

	snprintf(text, sizeof text, "%s", why);
	refusal_hide_paths(text, NULL);
	put(f, RECORD_FAILED, text);
}

/* A line is an object as ollama sends them; where the files lie here is none of a client's business. */
static void take_line(struct fetch *f)
{
	json_t *o = f->line.lost ? NULL : json_read(f->line.p, f->line.n, f->line.n, "a line", NULL);
	const char *error = json_string_value(json_object_get(o, "error")),
		   *status = json_string_value(json_object_get(o, "status"));

	bytes_clear(&f->line);
	if (error) {
		put_error(f, error);
	} else if (status && strcmp(status, "success") == 0) {
		put(f, RECORD_ENDED, "");
	} else if (status) {
		json_object_del(o, "path");
		char *text = json_spell(o, JSON_COMPACT);
		put(f, RECORD_TOKEN, text ? text : "{}");
		free(text);
	}
	json_decref(o);
}

static void take_bytes(struct fetch *f, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n')
			take_line(f);
		else if (f->line.n < LINE_MOST)
			bytes_add(&f->line, p + i, 1);
	}
}

/* Until the program has said all. */
static void read_lines(struct fetch *f)
{
	struct pollfd wait = { .fd = f->from, .events = POLLIN };
	char piece[4096];
	bool asked = false;

	for (;;) {
		const int ready = poll(&wait, 1, LOOK_MS);
		const bool stops = atomic_load(&f->server->state) == SERVER_STOPPING;
		if ((stops || stream_is_cancelled(f->stream)) && !asked) {
			put_error(f, "The server is stopping.");
			kill(f->child, SIGTERM);
			asked = true;
		}
		if (ready == 0 || (ready < 0 && errno == EINTR))
			continue;
		const ssize_t n = ready < 0 ? -1 : read(f->from, piece, sizeof piece);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		take_bytes(f, piece, (size_t)n);
	}
}

static void *run(void *user)
{
	struct fetch *f = user;
	char why[80];
	int status = 0;

	system_thread_began();
	read_lines(f);
	close(f->from);
	while (waitpid(f->child, &status, 0) < 0 && errno == EINTR)
		;
	snprintf(why, sizeof why, "The program that fetches models ended with status %d.",
	         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	put_error(f, why);
	stream_release(f->stream);
	bytes_free(&f->line);
	free(f);
	atomic_fetch_sub(&running, 1);
	return NULL;
}

/* ---- the reply */

static void send_line(struct reply *r, const char *text, size_t n)
{
	if (!r->events)
		return;
	bytes_add(&r->out, text, n);
	bytes_text(&r->out, "\n");
}

static void take(struct reply *r, const struct record *record, const jit_logprob *top, const char *text)
{
	(void)top;
	if (record->kind == RECORD_TOKEN)
		send_line(r, text, record->n_text);
}

static void end(struct reply *r)
{
	static const char success[] = "{\"status\":\"success\"}";

	bytes_text(&r->out, success);
	if (r->events)
		bytes_text(&r->out, "\n");
}

static void fail(struct reply *r, const struct refusal *why)
{
	bytes_take(&r->out, refusal_json_ollama(why));
	bytes_text(&r->out, "\n");
}

/* The last thing that was said would be no more true: there is a status that says nothing. */
static void stay_alive(struct reply *r)
{
	static const char waits[] = "{\"status\":\"waiting\"}";

	send_line(r, waits, sizeof waits - 1);
}

static void close_reply(struct reply *r) { free(r); }

static const struct reply_kind pull_kind = { take, end, fail, close_reply };

/* ---- the request */

/* Its standard output goes to *from; what it has to say to people goes where the server's does. False: errno. */
static bool start_program(struct fetch *f, const char *program, const char *name)
{
	char json[] = "--json", stop[] = "--", *copies[2] = { strdup(program), strdup(name) };
	char *argv[] = { copies[0], json, stop, copies[1], NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int ends[2], why = ENOMEM;

	if (copies[0] && copies[1] && pipe2(ends, O_CLOEXEC) == 0) {
		posix_spawn_file_actions_init(&files);
		posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
		posix_spawnattr_init(&attributes);
		sigemptyset(&none);
		posix_spawnattr_setsigmask(&attributes, &none);
		posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
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

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* The thread takes over f. */
static bool start(struct exchange *x, struct fetch *f, const char *name)
{
	pthread_attr_t detached;
	pthread_t thread;

	if (!start_program(f, x->server->o.pull_with, name))
		return refuse(&x->refusal, 503, NULL, "The program that fetches models cannot be run: %s",
		              strerror(errno));
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	const int why = pthread_create(&thread, &detached, run, f);
	pthread_attr_destroy(&detached);
	if (why == 0)
		return true;
	kill(f->child, SIGTERM);
	close(f->from);
	waitpid(f->child, NULL, 0);
	return refuse(&x->refusal, 503, NULL, "There is no thread for this request: %s", strerror(why));
}

static bool begin(struct exchange *x, const char *name, bool events)
{
	struct reply *r = calloc(1, sizeof *r);
	struct fetch *f = calloc(1, sizeof *f);
	bool ok = r && f && (r->stream = stream_open(1, (size_t)x->server->o.unread_bytes, !events));

	if (!ok) {
		free(r);
		free(f);
		return no_memory(&x->refusal);
	}
	r->kind = &pull_kind;
	r->events = events;
	r->events_type = "application/x-ndjson";
	r->idle = stay_alive;
	f->server = x->server;
	f->stream = r->stream;
	stream_hold(f->stream);
	if (atomic_fetch_add(&running, 1) >= AT_ONCE)
		ok = refuse(&x->refusal, 429, NULL, "%d models are being fetched already", AT_ONCE);
	if (ok && start(x, f, name)) {
		x->reply = r;
		return true;
	}
	atomic_fetch_sub(&running, 1);
	stream_release(f->stream);
	free(f);
	reply_close(r);
	return false;
}

/* OWNER/NAME, also behind hf.co: names of ollama's own registry have no owner. */
static bool is_of_hub(const char *name)
{
	const char *slash = strchr(name, '/');

	return slash && slash > name && slash[1] && name[0] != '-';
}

bool answer_ollama_pull(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);
	struct refusal *r = &x->refusal;
	const char *name = NULL;
	bool stream = true, insecure = false, ok = false;

	if (body && field_text(body, "model", &name, r) && (name || field_text(body, "name", &name, r)) &&
	    field_flag(body, "stream", &stream, r) && field_flag(body, "insecure", &insecure, r)) {
		if (!name)
			refuse(r, 400, "model", "model is missing, expected hf.co/OWNER/NAME[:QUANT]");
		else if (!x->server->o.pull_with)
			refuse(r, 403, NULL, "This server fetches no models: --pull-with jitpull lets it.");
		else if (insecure)
			refuse(r, 400, "insecure", "insecure is not supported: models come over HTTPS alone");
		else if (!is_of_hub(name))
			refuse(r, 400, "model", "model is \"%.200s\", expected hf.co/OWNER/NAME[:QUANT]", name);
		else
			ok = begin(x, name, stream);
	}
	json_decref(body);
	return ok;
}
