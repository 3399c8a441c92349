/* server/http/server.h - a running server: what its parts share.
 *
 * Threads: the main one opens models and waits for the end; some of the HTTP library's read requests and write answers;
 * some begin the answers (lanes.h); one watches connections; one for each model owns its batch and sessions
 * (batcher.h). Requests go to the batcher through a queue, tokens come back through a stream each (stream.h).
 *
 * The way of a request: http/ reads it and asks who sent it, routes.c finds its handler, an API's room
 * (completions/, anthropic/, responses/, ollama/) reads its fields by request/ and its messages by talk/, api/ hands
 * tasks to engine/, and records come back through a stream from which the API's room writes the answer. control/
 * answers what needs no model's thread.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "server/http/keys.h"
#include "server/http/listen.h"
#include "server/http/origin.h"
#include "server/engine/slot_files.h"
#include "server/http/tls.h"
#include "server/http/watch.h"

struct MHD_Daemon;
struct response_store;
struct gate;
struct lanes;

struct server_options {
	const char *host;
	long port;
	long connections, per_address; /* most that are open at once */
	long answers;                  /* most that one request may ask for */
	long read_seconds;             /* in which a request must arrive whole */
	long alive_seconds;            /* of silence before a sign of life */
	long body_bytes, unread_bytes; /* most of a request; most that a client may leave unread */
	bool insecure, no_page;
	void (*give_back)(void); /* memory that was freed, to the system; NULL: that is the allocator's affair */
	struct slot_limits slot_limits;
	const char *slot_folder; /* for what clients save; NULL: none */
	const char *lora_folder; /* of adapters that clients may load; NULL: none */
	const char *pull_with;   /* the program that fetches models for them; NULL: none does */
	long responses, responses_mib, responses_seconds; /* that are kept: most of them, of memory, and how long */
};

enum server_state { SERVER_LOADING, SERVER_READY, SERVER_STOPPING };

struct server {
	struct server_options o;
	struct listener listener;
	struct tls tls;
	struct keys *keys; /* NULL: anybody may ask */
	struct origin_rules origin;
	struct watch *watch;
	struct MHD_Daemon *daemon;
	struct gate *gate;
	struct lanes *lanes;
	atomic_bool starts;               /* the HTTP library */
	char complaint[200];              /* its first one while it starts */
	struct response_store *responses; /* NULL: none is kept */
	struct models *models;
	atomic_int state;                 /* of enum server_state */
	_Atomic uint64_t loaded, to_load; /* bytes of the model that is being opened */
	atomic_int requests;              /* that came, until they are answered */
	atomic_int running;               /* of them, those of which all has arrived */
	atomic_bool was_large;            /* one that took much memory is over */
};

/* Opens the socket and answers from now on; models are loading. s has its options, keys and rules. False: err. */
bool server_open(struct server *s, struct error *err);
void server_close(struct server *s);

#endif
