/* server/api/prompt_tasks.h - the way of a request from its body to its tasks, once for all endpoints that read
 * prompts.
 *
 * Owns: who frees what on that way. A body is read, its model is found and held, its prompts are read, tasks take their
 * tokens over, and what is left is freed, however far that went.
 */
#ifndef SERVER_PROMPT_TASKS_H
#define SERVER_PROMPT_TASKS_H

#include "server/http/http.h"
#include "server/engine/models.h"
#include "server/api/prompts.h"
#include "server/request/request_fields.h"
#include "server/engine/task.h"

/* What an endpoint does with a body and the model that it names. False: refused. */
typedef bool (*request_fn)(struct exchange *x, json_t *body, const struct served *m);
/* Reads the body as one of that kind and runs it. */
bool request_run(struct exchange *x, enum request_kind kind, request_fn run);

/* The same with the prompts, whose tokens it may take. */
typedef bool (*prompts_fn)(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p);
/* Reads them from a field. max: of them, 0: PROMPTS_MAX. */
bool prompts_run(struct exchange *x, const json_t *body, const struct served *m, const char *field, size_t max,
                 prompts_fn run);

/* What an endpoint reads beside what all tasks have. */
typedef bool (*task_fn)(struct task *t, const json_t *body, const struct served *m, struct refusal *r);
/* A task for each prompt, which takes its tokens over. They have the first one's seed, and their choices are numbered
 * through, which *choices is the number of. False: refused; tasks that are there are the caller's all the same. */
bool prompt_tasks(struct task **tasks, unsigned *choices, const json_t *body, const struct served *m, struct prompts *p,
                  task_fn read, struct refusal *r);
/* Whether the model makes vectors of texts. False: refused. */
bool model_embeds(const struct served *m, struct refusal *r);
/* Whether it gives one vector of a text; else the sentence that it gives one of each token. */
bool model_pools(const struct served *m, struct refusal *r);
/* One task for all of them, which embeds each. NULL: refused. */
struct task *prompt_texts(const struct served *m, struct prompts *p, struct refusal *r);

#endif
