/* server/engine/task.h - what the batcher is asked to generate.
 *
 * Owns: a prompt's tokens, how tokens are chosen, and where an answer ends; shared by the choices of one request, and
 * given back by the last of them.
 */
#ifndef SERVER_TASK_H
#define SERVER_TASK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/think.h"
#include "include/jitrun.h"
#include "server/engine/models.h"
#include "server/request/refusal.h"
#include "server/engine/slot_files.h"
#include "server/engine/stream.h"
#include "server/engine/fairness.h"
#include "vision/prompt.h"

enum { TASK_MAX_CHOICES = 128, TASK_MAX_STOPS = 256, SLOTS_MAX = 1024 };

/* What a task wants of a slot (slots.h), instead of an answer. */
enum slot_action { SLOT_NO_ACTION, SLOT_SAVE, SLOT_RESTORE, SLOT_ERASE };

struct task_text {
	int32_t *ids; /* n tokens */
	size_t n;
	int32_t *types; /* of each, for models that encode; NULL: 0 */
};

struct task {
	unsigned references;
	struct used_adapters adapters; /* that its answers have */
	struct client client;          /* who asks */
	struct answer_stream *stream;
	int32_t *ids; /* the prompt, n_ids tokens */
	size_t n_ids;
	struct jit_prompt shown; /* where pictures stand among ids; none: no images */
	struct sight *sight;     /* that counts so many pixels for it; NULL: none does */
	uint64_t pixels;
	struct task_text
		*texts; /* instead, n_texts of them, which are embedded one after the other; NULL: the prompt */
	size_t n_texts;
	int64_t max;     /* tokens to generate; -1: as many as find room */
	int64_t context; /* positions of its text; 0: as many as a session has */
	bool shifts;     /* where they are full, half of the tokens behind the first `keeps` go */
	size_t keeps;
	jit_sampling sampling; /* its seed is that of choice 0; those of the others follow */
	jit_logit_bias *bias;
	size_t n_bias, bias_capacity;
	bool biased; /* by logit_bias */
	char *samplers;
	char *breakers[TASK_MAX_STOPS], *stop[TASK_MAX_STOPS];
	size_t n_breakers, n_stop, kept_stops; /* kept_stops: of the latter, the first, which are kept with the model */
	int32_t *ends;                         /* tokens that end an answer beside the model's own, n_ends of them */
	size_t n_ends;
	struct session_limits *limits; /* what else bounds its choices (task_limits.c); NULL: nothing */
	int64_t min;                   /* tokens that an answer has at least */
	bool keeps_stop;               /* the text that ends an answer stands at its end */
	int64_t budget;                /* tokens of reasoning; -1: as many as it takes */
	char *budget_message;          /* that then stands at its end; NULL */
	json_t *limits_told;           /* what was asked of this, for who asks for the answer again; NULL: nothing */
	int grammar;                   /* JIT_GRAMMAR_NONE and so on */
	bool additional;               /* with JIT_GRAMMAR_ADDITIONAL */
	char *grammar_text;
	const char *grammar_field; /* of the request, which it is made of */
	bool holds_calls;          /* it is about the calls of the answer alone (held_calls.h) */
	json_t *warnings;          /* sentences about what of the request is not done; NULL: nobody wants them */
	bool grammar_named;        /* made of one function's parameters, not of a choice of functions */
	json_t *grammar_paths; /* of the functions that it is made of, in the request (tool_notes.h); NULL: of none */
	struct session_grammar **grammars;  /* one for each choice, until that takes it; NULL: they are not made yet */
	struct think_before before;         /* reasoning that the grammar begins behind */
	struct task_text begins, continues; /* tokens that open its part: of the answer, and behind reasoning */
	int logprobs;                       /* -1: none; how many of the likeliest tokens */
	bool sampled;                       /* ... behind the samplers */
	int prompt_top;                     /* of the prompt's tokens; -1: only what `scores` asks for */
	bool scores; /* those of the prompt's tokens, too: its first choice tells them before it begins */
	bool scored; /* and has; the batcher's thread alone looks at it */
	bool ignore_end;
	const struct served *marks; /* whose marks of calls become text; NULL: of none */
	char *opened;               /* the prompt opens a call, and this stands behind the mark; NULL: it does not */
	char *functions;            /* that it may call (tool_calls.h); NULL: not known */
	bool old_functions;         /* the request has functions instead of tools, and so has its answer */
	bool one_call;              /* an answer has one call at most */
	bool progress;              /* the reader wants to know how far its prompt is */
	bool timings;               /* and what it has cost so far, with each token */
	bool embeds;                /* nothing is generated: the prompt's embedding, as a token's text of floats */
	int pooling;
	bool ranks; /* and of that a score, as the bytes of a double: the classifier's with JIT_POOL_RANK, else the
	               probability of the first of two tokens behind it */
	int32_t answer[2]; /* they are */
	int slot;          /* the place that its first choice asks for; -1: any */
	enum slot_action action;
	struct slot_limits files; /* of those that are saved */
	char *file;               /* to save to, or restore from */
	unsigned choices, first;  /* first: the number of its first choice in the stream */
};

/* As the server generates where a request says nothing. NULL: no memory. */
struct task *task_open(const struct served *m);
void task_hold(struct task *t);
void task_release(struct task *t);

/* The fields of a request that say how to generate, by the names that OpenAI's API and llama.cpp's server give them.
 * context: positions of a session. False: refused. */
bool task_read(struct task *t, const json_t *body, const jit_model *model, int context, struct refusal *r);
/* An answer that keeps to a grammar: text is copied; field: of the request, not copied. False: refused. */
bool task_set_grammar(struct task *t, int kind, const char *text, const char *field, struct refusal *r);
/* As jit_session_set_grammar() has it. */
int task_grammar_kind(const struct task *t);
/* Of which field a sentence about the grammar is, and the sentence by what the client wrote: a pointer into the schema
 * that is made of tools becomes one into the function's parameters. */
void task_blame_grammar(const struct task *t, const char *message, char param[80], char why[512]);
/* task_limits.c: which fields of the request, of which the first is param, leave no token that may follow. False: it
 * has none of that kind. */
bool task_blame_dead_end(const struct task *t, char param[80], char why[512]);
/* How many texts it has, and one of them. */
size_t task_texts(const struct task *t);
struct task_text task_text(const struct task *t, size_t i);
/* Room for n texts. False: no memory. */
bool task_set_texts(struct task *t, size_t n);
/* Whether the request says that this token ends its answers. */
bool task_ends_at(const struct task *t, int32_t id);
/* Makes the grammars of all choices, as far as their first tokens, so that the thread that computes for all does not.
 * *steps: what that may take (grammar/machine/effort.h), and what was left of it. False: refused. */
bool task_make_grammars(struct task *t, jit_model *model, uint64_t *steps, struct refusal *r);
/* The end tokens can no longer be chosen. */
bool task_ban_ends(struct task *t, const jit_model *model, struct refusal *r);
/* task_limits.c: tokens that may be chosen or not, how long an answer is at least, and how long its reasoning at most.
 * False: refused. */
bool task_read_limits(struct task *t, const json_t *body, const jit_model *model, struct refusal *r);
/* prompt_logprobs: of the prompt's tokens, and of so many of the likeliest in their places. False: refused. */
bool task_read_prompt_top(struct task *t, const json_t *body, struct refusal *r);
/* task_grammar.c: response_format, json_schema, grammar, and what other servers call so. */
bool task_read_grammar(struct task *t, const json_t *body, struct refusal *r);

#endif
