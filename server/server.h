/* server/server.h - a running server: what its parts share.
 *
 * Threads: the main one opens models and waits for the end; some of the HTTP library's read requests and write answers;
 * one watches connections; one for each model owns its batch and sessions (batcher.h). Requests go to the batcher
 * through a queue, tokens come back through a stream each (stream.h).
 *
 *   listen.c      the socket                    gate.c, gate_line.c, tls.c   bytes from clients and to them
 *   framing.c, guards.c        what is let in   authority.c, origin.c, keys.c   and who
 *   http.c        requests and answers          watch.c                      clients that leave
 *   routes.c      which handler answers what    reply.c, stream.c            from tokens to bytes
 *   models.c      what is served                loader.c                     which models are in memory
 *   status.c      health, lists                 router.c, loader_events.c    models by request, and who hears of it
 *   fetch.c       models that come              model_events.c               those who listen
 *   not_done.c    routes of other servers
 *   fields.c      a request's JSON              task.c, task_grammar.c       what is to be generated
 *   batcher.c, fairness.c  passes for all requests    choice.c                     one sequence, from prompt to end
 *   conversation.c, prompts.c  prompts          generate.c                   from a request to the batcher
 *   replay.c      answers made again            native*.c, texts.c, props.c  what clients of llama.cpp ask for
 *   slots.c       places of answers             slot_actions.c               their tokens in files
 *   bits.c        answers computed again
 *   text_file.c   files of text                       embeddings.c                 vectors of texts
 *   metrics.c     numbers for Prometheus        notify.c                     systemd is told
 *   infill.c      text that fills a gap         old_functions.c              functions before tools
 *   task_limits.c what else bounds tokens     request_id.c                 names of requests
 *   ollama*.c                                   what clients of ollama ask for
 *   anthropic.c, anthropic_request.c            conversations as Anthropic's API has them
 *   response_store.c, responses_stored.c        responses that are kept
 *   response_tools.c                            tools that are no plain functions
 *   responses.c, responses_request.c            conversations as OpenAI's responses
 *   openai.c, openai_parts.c                    answers as OpenAI's API has them
 *   chat_completions.c, completions.c           and what asks for them
 *   tool_calls.c, tool_choice.c                 calls in what a model says
 *   page.c, chat.html                           a page for people
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "server/keys.h"
#include "server/listen.h"
#include "server/origin.h"
#include "server/response_store.h"
#include "server/slot_files.h"
#include "server/tls.h"
#include "server/watch.h"

struct MHD_Daemon;
struct gate;

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
	atomic_bool starts;               /* the HTTP library */
	char complaint[200];              /* its first one while it starts */
	struct response_store *responses; /* NULL: none is kept */
	struct models *models;
	atomic_int state;                 /* of enum server_state */
	_Atomic uint64_t loaded, to_load; /* bytes of the model that is being opened */
	atomic_int requests;              /* being answered */
	atomic_bool was_large;            /* one that took much memory is over */
};

/* Opens the socket and answers from now on; models are loading. s has its options, keys and rules. False: err. */
bool server_open(struct server *s, struct error *err);
void server_close(struct server *s);

#endif
