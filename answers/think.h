/* answers/think.h - which part of an answer is the model's reasoning, as the text arrives.
 *
 * Owns: the marks that model families put around it ("<think>" and "</think>" and others). Reasoning stands at the
 * beginning of an answer, behind white space at most, or the prompt ends with the mark that opens it. A mark elsewhere
 * is text. The marks belong to the reasoning, and white space behind the last one does.
 */
#ifndef ANSWERS_THINK_H
#define ANSWERS_THINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum think_state { THINK_BEFORE, THINK_INSIDE, THINK_SPACE, THINK_BEHIND };

struct think {
	enum think_state state;
	unsigned marks; /* inside: which pair */
	char *text;     /* what was given out last, and behind it what is held back */
	size_t n, given, room;
};

/* Pieces of text, one behind the other; either may be empty. They hold until the next call. */
struct think_parts {
	const char *reasoning, *answer;
	size_t n_reasoning, n_answer;
};

/* Before an answer: t is all zero, or of an answer before. Of the prompt its end counts. */
void think_begin(struct think *t, const char *prompt, size_t n);
/* The next n bytes. What may become a mark is held back; NULL is the end, and gives all that is left. False: no memory.
 */
bool think_take(struct think *t, const char *text, size_t n, struct think_parts *out);
void think_end(struct think *t);

/* The marks, by number from 0, the opening one of a pair before the closing one. */
enum { THINK_MARKS = 22 };
const char *think_mark(size_t number);
/* Bytes of the mark with which text begins, 0: none; bytes before the first mark in it. */
size_t think_mark_at(const char *text, size_t n);
size_t think_until_mark(const char *text, size_t n);

/* What may stand before an answer behind a prompt. */
struct think_before {
	bool inside;   /* the prompt's end has opened reasoning */
	unsigned pair; /* by mark 2 * pair */
	uint32_t may;  /* else: bits of pairs whose first mark may begin the answer */
};
/* The prompt is n bytes that a chat template wrote, and its end counts; template_text: that template, whose models may
 * reason by the marks it has; NULL: reasoning is not begun by the answer. A prompt that ends with a closing mark has
 * had its reasoning. */
struct think_before think_before(const char *prompt, size_t n, const char *template_text);

/* Reasoning without its marks, and without the space around it: a zeroed struct is before its beginning. */
struct think_words {
	struct bytes spaces; /* held back, as those at its end are not told */
	bool some;           /* some of it was not space */
};
/* The next n bytes of it; what is told of them is appended to out. */
void think_words_take(struct think_words *w, const char *reasoning, size_t n, struct bytes *out);
void think_words_free(struct think_words *w);

#endif
