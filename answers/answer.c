/* answers/answer.c - what a model says, as it comes: texts, reasoning, and calls of tools. */
#include "answers/answer.h"

#include <stdlib.h>

#include "base/array.h"

static void tell(struct answer *a, enum answer_kind kind, size_t call, const char *p, size_t n)
{
	const struct answer_event event = { kind, call, a->told.n, n };

	bytes_add(&a->told, p, n);
	if (!a->told.lost && array_grow((void **)&a->event, &a->capacity, a->n + 1, sizeof *a->event))
		a->event[a->n++] = event;
	else
		a->lost = true;
}

void answer_begin(struct answer *a, const char *prompt, size_t n, enum tools_form form, const char *opened,
                  const char *functions)
{
	a->keeps_reasoning = a->keeps_reasoning || opened;
	think_begin(&a->think, prompt, n);
	tool_calls_begin(&a->tools, form, opened, functions);
}

/* What the reader of calls has told since the last feed. */
static void tell_calls(struct answer *a)
{
	struct tool_events *found = &a->tools.found;

	a->lost = a->lost || a->tools.lost;
	if (a->one_call)
		tool_events_keep_one(found);
	for (size_t i = 0; i < found->n_events && !a->lost; i++) {
		const struct tool_event *e = &found->event[i];
		switch (e->kind) {
		case TOOL_TEXT: tell(a, ANSWER_TEXT, 0, found->text.p + e->from, e->n); break;
		case TOOL_BEGINS: tell(a, ANSWER_CALL, e->call, NULL, 0); break;
		case TOOL_DELTA:
			tell(a, ANSWER_ARGUMENTS, e->call, found->call[e->call].arguments.p + e->from, e->n);
			break;
		case TOOL_ENDS: tell(a, ANSWER_CALL_END, e->call, NULL, 0); break;
		}
	}
}

/* text NULL: the end, which gives what was held back of the reasoning. */
static void take(struct answer *a, const char *text, size_t n)
{
	struct think_parts parts = { .answer = text, .n_answer = n };
	struct bytes reasoning = { 0 };

	if (a->lost)
		return;
	if (!a->keeps_reasoning && !think_take(&a->think, text, n, &parts))
		a->lost = true;
	think_words_take(&a->words, parts.reasoning, parts.n_reasoning, &reasoning);
	a->lost = a->lost || reasoning.lost || a->words.spaces.lost;
	if (reasoning.n)
		tell(a, ANSWER_REASONING, 0, reasoning.p, reasoning.n);
	bytes_free(&reasoning);
	if (parts.n_answer && !a->lost) {
		tool_calls_take(&a->tools, parts.answer, parts.n_answer);
		tell_calls(a);
	}
}

void answer_take(struct answer *a, const char *text, size_t n) { take(a, n ? text : "", n); }

void answer_end(struct answer *a, bool cut)
{
	take(a, NULL, 0);
	if (a->lost)
		return;
	tool_calls_end(&a->tools, cut);
	tell_calls(a);
}

void answer_clear(struct answer *a)
{
	a->n = 0;
	bytes_clear(&a->told);
}

void answer_free(struct answer *a)
{
	think_end(&a->think);
	think_words_free(&a->words);
	tool_calls_free(&a->tools);
	free(a->event);
	bytes_free(&a->told);
	*a = (struct answer){ 0 };
}
