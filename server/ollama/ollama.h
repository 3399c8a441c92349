/* server/ollama/ollama.h - ollama's API: conversations and texts as lines of JSON, and what there is of models.
 *
 *   ollama.c          answers of /api/chat and /api/generate
 *   ollama_request.c  their requests, converted to the form that the rest of the server reads
 *   ollama_room.c     what becomes of texts for which the context is too small
 *   ollama_embed.c    /api/embed and /api/embeddings
 *   ollama_models.c   which models there are; ollama_show.c, ollama_facts.c what the files of one say
 *   ollama_make.c     models that are made of others, copied and deleted
 *   ollama_pull.c     a program that fetches models
 *   ollama_time.c     times and durations as Go writes them
 */
#ifndef SERVER_OLLAMA_H
#define SERVER_OLLAMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/talk/conversation.h"
#include "server/http/http.h"
#include "server/engine/models.h"
#include "server/ollama/ollama_time.h"
#include "server/request/request_fields.h"

/* What a request says beside what its body says in the form of chat completions. */
struct ollama_request {
	json_t *body;               /* held */
	char name[200];             /* of the model, as the client wrote it */
	const struct served *model; /* held by the exchange */
	bool raw;                   /* the prompt has no template */
	bool thinks;                /* the model shall reason, as the request says */
	bool fills;                 /* there is a text behind the prompt, and the answer stands between them */
	bool leaves;                /* there is nothing to answer, and the model was told to leave */
	bool loads;                 /* there is nothing to answer: the model is to be loaded, or unloaded */
	int64_t context;            /* tokens of prompt and answer, as its options say; 0: they do not */
	int64_t room;               /* the same of all it says, and of the model */
	bool truncates, shifts;     /* a prompt that is too long is cut; an answer goes on where the context is full */
	int64_t num_keep;           /* tokens at the beginning that stay then; -1: the whole prompt */
	bool has_keep;              /* how long the model stays is said: */
	double keep;                /* seconds; below 0: for good */
};

/* The body of a request of that kind, but for its prompt. False: refused, or its model is not in memory (http.h). To be
 * freed either way. */
bool ollama_read(struct ollama_request *q, struct exchange *x, enum request_kind kind);
void ollama_request_free(struct ollama_request *q);
/* The prompt: of the messages, or of what /api/generate has instead. False: refused. */
bool ollama_prompt(struct conversation *c, struct ollama_request *q, int64_t now, struct refusal *r);
/* ollama_room.c: what it says of that, once its model is known; "num_keep" of its options. False: refused. */
bool ollama_read_room(struct ollama_request *q, struct refusal *r);
bool ollama_read_keep(struct ollama_request *q, json_t *options, struct refusal *r);
/* ollama_images.c: content is taken over. */
void ollama_add_message(json_t *messages, const char *role, json_t *content);
/* Pictures become parts of a message's content. False: refused. */
bool ollama_put_images(json_t *message, const json_t *images, struct refusal *r);
/* A prompt that is too long loses tokens; a task's answer is told how to go on. */
void ollama_cut(const struct ollama_request *q, struct conversation *c);
void ollama_set_room(const struct ollama_request *q, struct task *t);
/* The model of that name, as exchange_model() has it; NULL: refused in ollama's words, or not in memory. */
const struct served *ollama_model(struct exchange *x, const json_t *body);

/* ollama_make.c: the model that a request names in a field, or in the other one; it must be there by that name. NULL:
 * refused. */
struct served *ollama_named(struct exchange *x, const json_t *body, const char *field, const char *other);
/* A model's name as lists have it: with a tag. */
void ollama_name(char out[208], const struct served *m);

#endif
