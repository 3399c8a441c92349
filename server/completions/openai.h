/* server/completions/openai.h - answers in the form of OpenAI's API: one object, or chunks of one as events.
 *
 * Owns: what /v1/chat/completions and /v1/completions have in common: the choices of a request, their texts, log
 * probabilities, counts and times.
 */
#ifndef SERVER_OPENAI_H
#define SERVER_OPENAI_H

#include "answers/think.h"
#include "answers/tool_calls.h"
#include "server/http/http.h"
#include "server/engine/models.h"
#include "server/engine/task.h"

struct openai_choice {
	struct bytes text, reasoning; /* of a whole answer */
	json_t *logprobs;             /* array; NULL: none so far */
	struct think think;
	struct tool_calls tools;
	struct think_words words;
	enum end_reason reason;
	int stop; /* END_STOP_TEXT: which */
	struct run_numbers numbers;
	/* of log probabilities in the older form (openai_flat.c) */
	size_t told;      /* tokens */
	size_t at;        /* bytes of the prompt's text that they are */
	size_t length;    /* characters that have begun so far */
	unsigned missing; /* bytes of the last one */
};

/* A prompt that stands before its answers. */
struct openai_echo {
	char *text; /* 0-terminated */
	size_t n;
	json_t *logprobs; /* of its tokens, as far as they are known; NULL: not wanted */
};

struct openai_reply {
	struct reply base;
	const struct served *model;
	struct task **tasks; /* held: one for each prompt, n_tasks of them */
	unsigned n_tasks;
	char id[48], name[200];
	long created;
	bool chat, usage, logprobs, parse_reasoning;
	bool verbose;          /* a whole answer also says how it was generated */
	enum tools_form tools; /* TOOLS_NONE: the request has none */
	bool in_call;          /* the prompt has opened a call */
	json_t *functions;     /* of the request, with their notes (tool_notes.h); NULL */
	json_t *warnings;      /* to be told once; NULL */
	char *prompt;          /* its end: whether it opens the model's reasoning */
	size_t n_prompt;
	json_t **prompt_logprobs; /* n_tasks: as vLLM tells them of the prompts; NULL: not wanted */
	struct openai_echo *echo; /* n_tasks; NULL: prompts do not stand before the text */
	unsigned n;
	struct openai_choice *choice;
};

extern const struct reply_kind openai_kind;

/* A reply to n tasks, which it holds; body: the request. NULL: refused. */
struct openai_reply *openai_reply_open(struct exchange *x, const struct served *m, struct task *const *tasks,
                                       unsigned n, const json_t *body, bool chat);

/* The prompt number i is to stand before its answers. text: as it was given; NULL: as tokens. False: refused. */
bool openai_echo(struct openai_reply *o, unsigned i, const json_t *text, struct refusal *r);

/* The prompts' log probabilities are told beside the answers, as vLLM does, where the tasks have them. False: refused.
 */
bool openai_prompt_logprobs(struct openai_reply *o, struct refusal *r);

/* openai_flat.c: log probabilities of tokens in the older form: lists side by side. entries: in the newer one. */
json_t *openai_flat(const struct openai_reply *o, unsigned choice, const json_t *entries);

/* What is a choice's own. */
void openai_choice_free(struct openai_choice *c);

/* openai_parts.c */
const char *openai_fingerprint(void); /* "b..." */
const char *openai_finish(const struct openai_reply *o, const struct openai_choice *c);
/* All calls of a choice. */
json_t *openai_calls(const struct openai_reply *o, unsigned choice);
/* What its last piece has told of calls: each with its number once; NULL: nothing. */
json_t *openai_call_deltas(const struct openai_reply *o, unsigned choice);
/* Whether an answer that may have one call has it: what comes behind is not told. */
static inline bool openai_has_one_call(const struct task *t, const struct tool_events *found)
{
	return t->one_call && found->n && found->call[0].whole;
}
/* Whether an answer ended although the model had more to say. */
static inline bool openai_was_cut(enum end_reason reason) { return reason == END_LENGTH || reason == END_CANCELLED; }
/* A token's entry of logprobs; id and its place in the text as completions have it, too. sampled: as llama.cpp has
 * probabilities behind samplers. */
json_t *openai_logprob(const jit_model *model, const struct answer_event *r, const jit_logprob *top, bool sampled);
/* {"ID": {"logprob", "rank", "decoded_token"}}, as vLLM has it; null of a text's first token. */
json_t *openai_ranked(const jit_model *model, const struct answer_event *r, const jit_logprob *top, uint32_t max);
/* each: choices of one prompt. */
json_t *openai_usage(const struct openai_choice *c, unsigned n, unsigned each);
json_t *openai_timings(const struct run_numbers *n);
/* Of an EVENT_PROMPT: how far the prompt is. */
json_t *openai_progress(const struct answer_event *r);

#endif
