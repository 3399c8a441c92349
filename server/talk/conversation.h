/* server/talk/conversation.h - the messages of a request become a prompt.
 *
 * Owns: the forms that clients give messages, converted to the one that chat templates know; answers that are begun by
 * the client and go on; what stands for a template where a model has none; which messages are left out where a request
 * allows that.
 */
#ifndef SERVER_CONVERSATION_H
#define SERVER_CONVERSATION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/think.h"
#include "server/engine/models.h"
#include "server/request/refusal.h"
#include "server/engine/task.h"
#include "server/talk/pictures.h"

struct conversation {
	int32_t *ids;
	size_t n_ids;
	char *text; /* the prompt, as the template wrote it; an answer that was begun is behind it */
	size_t n_text;
	struct jit_prompt shown;         /* where pictures' features stand among ids; without tokens of its own */
	struct pictures pictures;        /* of the request */
	struct think_before before;      /* the reasoning that an answer may have, for its grammar begins behind it */
	struct picture_fetches *fetches; /* given: the request's; NULL: its pictures are named by no addresses */
	size_t room; /* given: tokens for which old messages are left out, but the system's and the last; 0: for none */
};

/* The fields messages, tools, tool_choice, chat_template_kwargs, reasoning_effort, add_generation_prompt and
 * continue_final_message. now: seconds since 1970, for templates that write the date. False: refused; or, without a
 * refusal, pictures are to be fetched first. */
bool conversation_read(struct conversation *c, const json_t *body, const struct served *m, int64_t now,
                       struct refusal *r);
/* Its tokens, and the reasoning that may follow, are the task's. */
void conversation_give(struct conversation *c, struct task *t);
void conversation_free(struct conversation *c);

#endif
