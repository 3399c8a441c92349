/* server/http/http.c - requests and answers over HTTP/1.1, by libmicrohttpd. */
#include "server/http/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/json_write.h"
#include "runtime/host/system.h"
#include "server/http/gate.h"
#include "server/http/guards.h"
#include "server/http/server.h"
#include "server/http/waiting.h"

/* Memory of a connection: a head, in which each "%" has become "%25", and its fields. */
enum { THREADS = 4, MEMORY_BYTES = 128 << 10, LARGE = 1 << 20 };

/* ---- reading */

const char *exchange_header(const struct exchange *x, const char *name)
{
	return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

const char *exchange_argument(const struct exchange *x, const char *name)
{
	return MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);
}

/* "400 why": what the gate thinks of a head or a body, in the place of a field. */
static bool passes_guards(struct exchange *x, enum MHD_ValueKind kind)
{
	const char *said = MHD_lookup_connection_value(x->connection, kind, GUARD_REFUSAL);

	return !said || refuse(&x->refusal, atoi(said), NULL, "%s", said + strcspn(said, " ") + 1);
}

/* A key that is known is the client; without keys its connection is. */
static bool has_key(struct exchange *x)
{
	const struct server *s = x->server;
	const char *key = keys_bearer(exchange_header(x, "Authorization"));

	if (!key)
		key = exchange_header(x, "X-Api-Key");
	x->client.line = (uint64_t)(uintptr_t)x->connection;
	if (!s->keys || !(x->route->needs & ROUTE_KEY))
		return true;
	x->client.key = key ? keys_number(s->keys, key, strlen(key)) : 0;
	if (x->client.key)
		return true;
	return refuse(&x->refusal, 401, NULL, "Invalid API Key");
}

static bool has_model(struct exchange *x)
{
	int state = atomic_load(&x->server->state);

	if (!(x->route->needs & ROUTE_MODEL) || state == SERVER_READY)
		return true;
	return refuse(&x->refusal, 503, NULL, state == SERVER_LOADING ? "Loading model" : "The server is stopping.");
}

static enum MHD_Result check_coding(void *user, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct exchange *x = user;
	(void)kind;

	if (strcasecmp(name, "Content-Encoding") == 0 && value && *value && strcasecmp(value, "identity") != 0)
		refuse(&x->refusal, 415, NULL, "The body is encoded as \"%.100s\"; expected none: send it as it is.",
		       value);
	return x->refusal.status ? MHD_NO : MHD_YES;
}

/* Nothing here unpacks bodies. */
static bool is_plain(struct exchange *x)
{
	MHD_get_connection_values(x->connection, MHD_HEADER_KIND, check_coding, x);
	return x->refusal.status == 0;
}

static bool fits(struct exchange *x)
{
	const char *length = exchange_header(x, "Content-Length");

	return !length || strtoll(length, NULL, 10) <= x->server->o.body_bytes ||
	       refuse(&x->refusal, 413, NULL, "The body has %s bytes, expected at most %ld.", length,
	              x->server->o.body_bytes);
}

/* Before anything of the body is read. */
static bool is_welcome(struct exchange *x, const char *method, const char *path)
{
	const struct origin_rules *o = &x->server->origin;

	if (!passes_guards(x, MHD_HEADER_KIND))
		return false;
	const char *host = exchange_header(x, "Host"), *page = exchange_header(x, "Origin");
	if (!origin_takes_host(o, host, &x->refusal) ||
	    !origin_takes_host(o, exchange_header(x, GUARD_HOST), &x->refusal))
		return false;
	/* What the answer lacks is what tells the browser that the page may not ask. */
	if (strcmp(method, "OPTIONS") == 0 && page && o->n_pages)
		return true;
	return origin_takes_page(o, host, page, &x->refusal) && route_find(x, method, path) && has_key(x) &&
	       has_model(x) && is_plain(x) && fits(x);
}

static void read_body(struct exchange *x, const char *p, size_t n)
{
	if (x->body.n + n > (size_t)x->server->o.body_bytes) {
		x->body_too_long = true;
		refuse(&x->refusal, 413, NULL, "The body has more than %ld bytes.", x->server->o.body_bytes);
	} else {
		bytes_add(&x->body, p, n);
		if (x->body.lost)
			refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	}
}

/* ---- answering */

void exchange_reads_no_models(struct exchange *x)
{
	if (x->reads_models)
		readers_leave(&x->server->models->readers, x->epoch);
	x->reads_models = false;
}

static struct watched *watched(const struct exchange *x)
{
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return i ? i->socket_context : NULL;
}

static enum MHD_Result send_response(struct exchange *x, unsigned status, struct MHD_Response *r)
{
	enum MHD_Result result = r ? MHD_queue_response(x->connection, status, r) : MHD_NO;

	if (r)
		MHD_destroy_response(r);
	return result;
}

static enum MHD_Result send_refusal(struct exchange *x)
{
	char *text = http_refusal_text(x);
	struct MHD_Response *r =
		text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;

	if (!r) {
		free(text);
		return MHD_NO;
	}
	x->header[0] = 0;
	http_add_fields(x, r, "application/json; charset=utf-8");
	/* What else comes on this connection is not to be trusted, or is the rest of a body that nobody reads. */
	if (!x->begun)
		MHD_add_response_header(r, "Connection", "close");
	if (x->refusal.status == 401)
		MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
	if (x->refusal.status == 429 || x->refusal.status == 503)
		MHD_add_response_header(r, "Retry-After", "1");
	if (x->refusal.status == 405)
		MHD_add_response_header(r, "Allow", x->allow);
	if (x->refusal.status == 415)
		MHD_add_response_header(r, "Accept-Encoding", "identity");
	return send_response(x, x->anthropic ? refusal_status_anthropic(&x->refusal) : (unsigned)x->refusal.status, r);
}

static enum MHD_Result send_whole(struct exchange *x, struct bytes *b)
{
	struct MHD_Response *r;

	if (b->lost) {
		refuse(&x->refusal, 503, NULL, "There is no memory for this answer.");
		return send_refusal(x);
	}
	if (x->still) {
		r = MHD_create_response_from_buffer(x->n_still, (void *)(uintptr_t)x->still, MHD_RESPMEM_PERSISTENT);
	} else {
		r = MHD_create_response_from_buffer(b->n, b->p, MHD_RESPMEM_MUST_FREE);
		if (r)
			*b = (struct bytes){ 0 };
	}
	if (r)
		http_add_fields(x, r, x->type);
	return send_response(x, 200, r);
}

static enum MHD_Result send_preflight(struct exchange *x)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);

	if (!r)
		return MHD_NO;
	http_add_fields(x, r, NULL);
	if (!origin_allowed(&x->server->origin, exchange_header(x, "Origin")))
		return send_response(x, MHD_HTTP_OK, r);
	MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
	MHD_add_response_header(r, "Access-Control-Allow-Headers",
	                        origin_allowed_fields(exchange_header(x, "Access-Control-Request-Headers")));
	MHD_add_response_header(r, "Access-Control-Max-Age", "86400");
	return send_response(x, MHD_HTTP_OK, r);
}

/* ---- answers that the batcher makes */

static void put_to_sleep(void *user) { MHD_suspend_connection(((struct exchange *)user)->connection); }

static void wake_up(void *user) { MHD_resume_connection(((struct exchange *)user)->connection); }

/* Called by the library when the client takes more. */
static ssize_t more_events(void *user, uint64_t position, char *out, size_t max)
{
	struct exchange *x = user;
	struct reply *r = x->reply;
	(void)position;

	if (r->out.at == r->out.n) {
		bytes_clear(&r->out);
		if (!r->ended && !reply_advance(r, &x->refusal)) {
			r->ended = true;
			r->kind->fail(r, &x->refusal);
		}
	}
	if (r->out.lost || stream_is_cancelled(r->stream)) {
		/* libmicrohttpd frees a connection that was suspended at its thread's next turn, which comes by then.
		 */
		MHD_set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, 1U);
		return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	size_t n = r->out.n - r->out.at;
	if (n == 0 && r->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0)
		return stream_wait(r->stream, put_to_sleep, wake_up, x) ? 0 : more_events(user, position, out, max);
	n = n < max ? n : max;
	memcpy(out, r->out.p + r->out.at, n);
	r->out.at += n;
	return (ssize_t)n;
}

static enum MHD_Result send_events(struct exchange *x)
{
	struct MHD_Response *r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 << 10, more_events, x, NULL);

	if (!r)
		return MHD_NO;
	http_add_fields(x, r, x->reply->events_type ? x->reply->events_type : "text/event-stream; charset=utf-8");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	MHD_add_response_header(r, "X-Accel-Buffering", "no");
	return send_response(x, 200, r);
}

/* Nothing was sent yet: while it can still become a refusal, it is held back. */
static enum MHD_Result continue_reply(struct exchange *x)
{
	struct reply *r = x->reply;

	if (stream_wait(r->stream, put_to_sleep, wake_up, x))
		return MHD_YES;
	if (!reply_advance(r, &x->refusal))
		return send_refusal(x);
	if (stream_is_cancelled(r->stream) && !stream_is_dropped(r->stream))
		return MHD_NO;
	if (r->events)
		return send_events(x);
	/* Of a whole answer nothing is unread by the client: what was lost found no memory. */
	if (!r->ended || stream_is_dropped(r->stream)) {
		refuse(&x->refusal, 503, NULL, "There is no memory for this answer.");
		return send_refusal(x);
	}
	x->type = "application/json; charset=utf-8";
	return send_whole(x, &r->out);
}

static enum MHD_Result begin(struct exchange *x);
static enum MHD_Result answer(struct exchange *x);

/* Where it cannot be read yet, its handler is called again later. */
static enum MHD_Result wait_or_refuse(struct exchange *x,
                                      enum waiting (*how)(struct exchange *, const struct sleeper *))
{
	const struct sleeper s = { put_to_sleep, wake_up, watched(x) };

	switch (how(x, &s)) {
	case WAITING_SLEEPS: return MHD_YES;
	case WAITING_OVER: return begin(x);
	case WAITING_HANDLED: return answer(x);
	case WAITING_GONE: return MHD_NO;
	case WAITING_REFUSED: break;
	}
	return send_refusal(x);
}

static enum MHD_Result begin(struct exchange *x)
{
	if (!x->is_whole)
		atomic_fetch_add(&x->server->running, 1);
	x->is_whole = true;
	x->begun = true;
	x->now = (int64_t)time(NULL);
	if (x->body_too_long)
		x->begun = false;
	if (x->refusal.status)
		return send_refusal(x);
	if (!x->route)
		return send_preflight(x);
	if (!passes_guards(x, MHD_FOOTER_KIND)) {
		x->begun = false;
		return send_refusal(x);
	}
	/* What has a body may take long. */
	if (x->body.n)
		return wait_or_refuse(x, waiting_hand_over);
	json_lacks(); /* what others lacked is theirs */
	x->handled = x->route->handle(x);
	return answer(x);
}

/* The handler has returned. */
static enum MHD_Result answer(struct exchange *x)
{
	if (!x->handled)
		return wait_or_refuse(x, waiting_begin);
	if (!x->reply)
		return send_whole(x, &x->answer);
	watch_running(x->server->watch, watched(x), x->reply->stream);
	return continue_reply(x);
}

/* ---- what the library calls */

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *n_data, void **own)
{
	struct server *s = user;
	struct exchange *x = *own;
	(void)version;

	if (!x) {
		x = calloc(1, sizeof *x);
		if (!x)
			return MHD_NO;
		*own = x;
		x->server = s;
		x->connection = c;
		route_name(x, path);
		atomic_fetch_add(&s->requests, 1);
		x->epoch = readers_enter(&s->models->readers);
		x->reads_models = true;
		return is_welcome(x, method, path) ? MHD_YES : send_refusal(x);
	}
	if (*n_data) {
		/* One that goes on and on ends with its connection. */
		if (x->body_too_long)
			return MHD_NO;
		read_body(x, data, *n_data);
		*n_data = 0;
		return MHD_YES;
	}
	if (x->begun && (x->working || !x->reply))
		return wait_or_refuse(x, waiting_go_on);
	return x->begun ? continue_reply(x) : begin(x);
}

static void on_completed(void *user, struct MHD_Connection *c, void **own, enum MHD_RequestTerminationCode how)
{
	struct server *s = user;
	struct exchange *x = *own;
	(void)c;
	(void)how;

	if (!x)
		return;
	watch_reading(s->watch, watched(x));
	reply_close(x->reply);
	used_adapters_drop(&x->adapters);
	lease_end(&x->lease);
	waiting_leave(x);
	exchange_reads_no_models(x);
	if (x->body.capacity >= LARGE)
		atomic_store(&s->was_large, true);
	bytes_free(&x->body);
	bytes_free(&x->answer);
	if (x->is_whole)
		atomic_fetch_sub(&s->running, 1);
	free(x);
	*own = NULL;
	atomic_fetch_sub(&s->requests, 1);
}

static void on_connection(void *user, struct MHD_Connection *c, void **own, enum MHD_ConnectionNotificationCode what)
{
	static _Thread_local bool known;
	struct server *s = user;
	const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	struct gated *client = gated_of(i ? i->client_addr : NULL);

	/* The library's threads are new to the allocator, too. */
	if (!known)
		system_thread_began();
	known = true;
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		watch_end(s->watch, *own);
		*own = NULL;
		gated_let_go(client);
	} else {
		gated_take(client);
		*own = client ? watch_begin(s->watch, gated_client(client)) : NULL;
	}
}

static _Thread_local bool complained;

/* Where the library cannot tell whether a socket blocks, it says so, and may wait for bytes that are there. */
static bool serve(void *user, int fd, const struct sockaddr *address, socklen_t n, bool *doomed)
{
	struct server *s = user;

	complained = false;
	bool ok = MHD_add_connection(s->daemon, fd, address, n) == MHD_YES;
	*doomed = complained;
	return ok;
}

/* What the library says of why it does not start. */
static void on_complaint(void *user, const char *format, va_list args)
{
	struct server *s = user;

	complained = true;
	if (atomic_load(&s->starts) && !s->complaint[0])
		vsnprintf(s->complaint, sizeof s->complaint, format, args);
}

bool http_start(struct server *s, struct error *err)
{
	const unsigned flags =
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | MHD_USE_NO_LISTEN_SOCKET;
	const struct gate_options o = { .listener = s->listener.fd,
		                        .connections = s->o.connections,
		                        .per_address = s->o.per_address,
		                        .tls = s->tls.key ? &s->tls : NULL,
		                        .serve = serve,
		                        .user = s };

	if (s->tls.key && !tls_open(&s->tls, s->listener.address, err))
		return false;
	if (!s->lanes && !(s->lanes = lanes_open(err)))
		return false;
	atomic_store(&s->starts, true);
	/* How many there may be, and for how long, is the gate's and the watch's affair. */
	s->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_complaint, s,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->o.read_seconds,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->o.connections * 2 + THREADS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES, MHD_OPTION_THREAD_POOL_SIZE,
		(unsigned)THREADS, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, s, MHD_OPTION_END);
	atomic_store(&s->starts, false);
	s->complaint[strcspn(s->complaint, "\n")] = 0;
	if (!s->daemon)
		return error_set(err, ERROR_IO, "the HTTP library cannot serve %s: %s", s->listener.address,
		                 s->complaint[0] ? s->complaint : strerror(errno));
	s->gate = gate_open(&o, err);
	if (!s->gate) {
		MHD_stop_daemon(s->daemon);
		s->daemon = NULL;
	}
	return s->gate != NULL;
}

void http_stop(struct server *s)
{
	if (!s->daemon)
		return;
	gate_shut(s->gate);
	lanes_finish(s->lanes);
	MHD_stop_daemon(s->daemon);
	gate_close(s->gate);
	close(s->listener.fd);
	lanes_close(s->lanes);
	s->lanes = NULL;
	s->daemon = NULL;
	s->gate = NULL;
}
