/* server/http/http.h - requests and answers over HTTP/1.1, by libmicrohttpd.
 *
 * Owns: the library's daemon and threads, the order of the checks before a request is read, its body, and how an answer
 * or a stream of events gets to the client. What a request means is its handler's affair.
 */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "server/engine/loader.h"
#include "server/request/refusal.h"
#include "server/http/lanes.h"
#include "server/http/reply.h"
#include "server/http/request_id.h"
#include "server/talk/picture_fetch.h"
#include "server/engine/fairness.h"

struct server;
struct MHD_Connection;
struct MHD_Response;

/* One request, from its head to the end of its answer. */
struct exchange {
	struct server *server;
	struct MHD_Connection *connection;
	const struct route *route;
	struct client client;
	char rest[208]; /* of a path behind that of a ROUTE_BELOW */
	char allow[64]; /* methods that the path is answered with, as far as they were looked at */
	struct bytes body;
	bool body_too_long;
	struct refusal refusal;
	char id[REQUEST_ID]; /* of the request, "req_..." */
	bool anthropic;      /* a client of Anthropic's API asks, who reads refusals in its form */
	bool ollama;         /* the same of ollama's */
	double arrived;      /* when its head was there, as system_seconds() has it */
	double loading;      /* seconds that its model was waited for */
	/* what a handler gives */
	const char *type;    /* of a whole answer */
	struct bytes answer; /* the whole answer */
	const void *still;   /* n_still bytes that live as long as the program: the whole answer instead */
	size_t n_still;
	bool answered;
	struct reply *reply;   /* or an answer that the batcher makes */
	char header[600];      /* X-Jitrun-Replay; empty: none */
	char policy[320];      /* Content-Security-Policy, of a page; empty: it is none */
	int64_t now;           /* seconds since 1970, as templates see it */
	bool begun;            /* the handler was called */
	bool is_whole;         /* all of it is there */
	struct lane_work work; /* for the thread that runs it */
	enum lane lane;        /* in which that is */
	struct answer_stream
		*working;   /* cancelled when the client leaves, ended by the handler; NULL: it is not at work */
	bool handled;       /* what it returned */
	bool takes_long;    /* it gave up, and is to be called again in the lane for that */
	struct lease lease; /* of the model that is asked for */
	struct picture_fetches shown;   /* pictures that it names by addresses */
	struct answer_stream *fetching; /* ends when these are there; NULL: nothing is waited for */
	struct used_adapters adapters;  /* of that model, that its answers have */
	bool reads_models;              /* it is one of the readers of the list of models */
	unsigned epoch;                 /* in which it came as such */
};

enum route_needs {
	ROUTE_OPEN,
	ROUTE_KEY = 1,
	ROUTE_MODEL = 2,
	ROUTE_BELOW = 4, /* paths that begin with this one and go on */
	ROUTE_EXACT = 8, /* no slash too many: proxies are told to keep such paths from clients */
	ROUTE_V1 = 16    /* the same at "/v1" and this path */
};

struct route {
	const char *method, *path;
	unsigned needs; /* of enum route_needs: a key where there are keys, a model that is loaded, ... */
	/* Fills in the answer, or begins a reply. False: refusal. */
	bool (*handle)(struct exchange *x);
};
/* routes.c. The route of a request whose path is as the client sent it, and what is behind a path of ROUTE_BELOW.
 * False: refused.
 */
bool route_find(struct exchange *x, const char *method, const char *path);

/* What is known of a request by its head: its own name, and whose clients ask. */
void route_name(struct exchange *x, const char *path);
/* The value of a header field or of an argument behind "?", NULL: it is not there. */
const char *exchange_header(const struct exchange *x, const char *name);
const char *exchange_argument(const struct exchange *x, const char *name);
/* The model that the request means, which it holds to its end; name NULL: it does not say. NULL: refused, or not in
 * memory: then the handler returns false, and is called again when it is. To be asked before anything is begun. */
const struct served *exchange_model(struct exchange *x, const char *name);
/* The same of a body's "model", and the adapters that this or its "lora" chooses. */
const struct served *exchange_model_of(struct exchange *x, const json_t *body);
/* What is left of its answer may take for ever, and needs no model's entry: those that were taken away may become
 * others'. */
void exchange_reads_no_models(struct exchange *x);
/* A whole answer; text is taken over, NULL is a lack of memory. True: answered. */
bool exchange_json(struct exchange *x, char *text);
bool exchange_text(struct exchange *x, const char *type, char *text);

/* http_fields.c: the fields of an answer's head, type NULL: that of no body. */
void http_add_fields(const struct exchange *x, struct MHD_Response *r, const char *type);
/* The refusal as the client's API has it, malloc'ed. NULL: no memory. */
char *http_refusal_text(const struct exchange *x);

/* The daemon on s->listener. False: err. */
bool http_start(struct server *s, struct error *err);
/* Ends all connections; what the batcher makes for them must have been cancelled. */
void http_stop(struct server *s);

#endif
