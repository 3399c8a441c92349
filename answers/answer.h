/* answers/answer.h - what a model says, as it comes: texts, reasoning, and calls of tools.
 *
 * Owns: the order in which reasoning is taken out of an answer, and calls out of the rest, and what each feed tells.
 */
#ifndef ANSWERS_ANSWER_H
#define ANSWERS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "answers/think.h"
#include "answers/tool_calls.h"
#include "base/bytes.h"

enum answer_kind { ANSWER_TEXT, ANSWER_REASONING, ANSWER_CALL, ANSWER_ARGUMENTS, ANSWER_CALL_END };

struct answer_event {
	enum answer_kind kind;
	size_t call;    /* its number; of calls */
	size_t from, n; /* bytes of answer.told; TEXT, REASONING, ARGUMENTS */
};

/* A zeroed struct is before answer_begin. */
struct answer {
	struct think think;
	struct think_words words;
	struct tool_calls tools;
	bool keeps_reasoning; /* it stays a part of the text, marks and all */
	bool one_call;        /* what comes behind the first call is not told */
	struct answer_event *event;
	size_t n, capacity;
	struct bytes told; /* what the events speak of */
	bool lost;         /* memory ran out */
};

/* prompt: n bytes, of which the end counts (think.h); the others as tool_calls_begin has them. An answer in an opened
 * call has no reasoning. */
void answer_begin(struct answer *a, const char *prompt, size_t n, enum tools_form form, const char *opened,
                  const char *functions);
/* The next text: its events go behind those that are there. */
void answer_take(struct answer *a, const char *text, size_t n);
/* The end, in the same way; cut: the model had more to say. */
void answer_end(struct answer *a, bool cut);
/* The events were told. */
void answer_clear(struct answer *a);
void answer_free(struct answer *a);

#endif
