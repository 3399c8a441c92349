#include "answers/think.h"

#include <stdlib.h>
#include <string.h>

static const char *const marks[][2] = {
	{ "<think>", "</think>" }, /* DeepSeek, Qwen, GLM, Granite, and most others */
	{ "<thinking>", "</thinking>" },
	{ "<thought>", "</thought>" }, /* EXAONE */
	{ "<reasoning>", "</reasoning>" },
	{ "<seed:think>", "</seed:think>" },                                   /* Seed */
	{ "[THINK]", "[/THINK]" },                                             /* Mistral */
	{ "<|START_THINKING|>", "<|END_THINKING|>" },                          /* Cohere */
	{ "<|begin_of_thought|>", "<|end_of_thought|>" },                      /* OpenThinker */
	{ "<|channel|>analysis<|message|>", "<|end|>" },                       /* gpt-oss */
	{ "<|channel>thought", "<channel|>" },                                 /* Gemma 4 */
	{ "\xe2\x97\x81think\xe2\x96\xb7", "\xe2\x97\x81/think\xe2\x96\xb7" }, /* Kimi */
};
enum { PAIRS = sizeof marks / sizeof *marks };
_Static_assert(2 * (int)PAIRS == THINK_MARKS, "the marks are counted");

const char *think_mark(size_t number) { return marks[number / 2][number % 2]; }

size_t think_mark_at(const char *text, size_t n)
{
	for (size_t m = 0; m < THINK_MARKS; m++) {
		size_t length = strlen(think_mark(m));
		if (length <= n && memcmp(text, think_mark(m), length) == 0)
			return length;
	}
	return 0;
}

size_t think_until_mark(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && !think_mark_at(text + i, n - i))
		i++;
	return i;
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

void think_begin(struct think *t, const char *prompt, size_t n)
{
	t->state = THINK_BEFORE;
	t->n = t->given = 0;
	while (n && is_space(prompt[n - 1]))
		n--;
	for (unsigned i = 0; i < PAIRS; i++) {
		size_t length = strlen(marks[i][0]);
		if (length <= n && memcmp(prompt + n - length, marks[i][0], length) == 0) {
			t->state = THINK_INSIDE;
			t->marks = i;
		}
	}
}

static bool ends_with(const char *text, size_t n, const char *mark)
{
	const size_t length = strlen(mark);

	return length <= n && memcmp(text + n - length, mark, length) == 0;
}

/* The end of a message of gpt-oss ends messages of other models, too. */
static bool is_taught(unsigned pair, const char *template_text)
{
	return strstr(template_text, marks[pair][0]) ||
	       (strcmp(marks[pair][1], "<|end|>") != 0 && strstr(template_text, marks[pair][1]));
}

struct think_before think_before(const char *prompt, size_t n, const char *template_text)
{
	struct think_before b = { 0 };
	struct think t = { 0 };
	bool closed = false;

	think_begin(&t, prompt, n);
	if (t.state == THINK_INSIDE)
		return (struct think_before){ .inside = true, .pair = t.marks };
	while (n && is_space(prompt[n - 1]))
		n--;
	for (unsigned i = 0; i < PAIRS && template_text; i++)
		if (is_taught(i, template_text)) {
			b.may |= 1U << i;
			closed = closed || ends_with(prompt, n, marks[i][1]);
		}
	return closed ? (struct think_before){ 0 } : b;
}

/* Whether n bytes are a mark, or could still become one. */
enum fit { NO, PERHAPS, YES };
static enum fit fits(const char *mark, const char *text, size_t n)
{
	size_t length = strlen(mark);

	return memcmp(mark, text, n < length ? n : length) != 0 ? NO : n < length ? PERHAPS : YES;
}

/* How much of the text is no answer yet; *known: whether what follows is told by it. */
static size_t read_before(struct think *t, bool last, bool *known)
{
	size_t at = 0;
	bool perhaps = false;

	while (at < t->n && is_space(t->text[at]))
		at++;
	for (unsigned i = 0; i < PAIRS; i++) {
		enum fit fit = fits(marks[i][0], t->text + at, t->n - at);
		perhaps = perhaps || fit == PERHAPS;
		if (fit == YES) {
			t->state = THINK_INSIDE;
			t->marks = i;
			*known = true;
			return at + strlen(marks[i][0]);
		}
	}
	*known = last || !perhaps;
	if (*known)
		t->state = THINK_BEHIND;
	return 0;
}

/* From `at` on: where the reasoning ends, or what of it is certain so far. */
static size_t read_inside(struct think *t, size_t at, bool last)
{
	const char *mark = marks[t->marks][1];

	for (; at < t->n; at++) {
		enum fit fit = fits(mark, t->text + at, t->n - at);
		if (fit == YES) {
			t->state = THINK_SPACE;
			return at + strlen(mark);
		}
		if (fit == PERHAPS && !last)
			return at;
	}
	return at;
}

static size_t read_behind(struct think *t, size_t at)
{
	while (at < t->n && is_space(t->text[at]))
		at++;
	if (at < t->n)
		t->state = THINK_BEHIND;
	return at;
}

static bool append(struct think *t, const char *text, size_t n)
{
	size_t held = t->n - t->given;

	if (held + n + 1 > t->room) {
		size_t room = 2 * (held + n) + 64;
		char *more = realloc(t->text, room);
		if (!more)
			return false;
		t->text = more;
		t->room = room;
	}
	memmove(t->text, t->text + t->given, held);
	if (n)
		memcpy(t->text + held, text, n);
	t->n = held + n;
	t->given = 0;
	return true;
}

bool think_take(struct think *t, const char *text, size_t n, struct think_parts *out)
{
	bool last = !text, known = true;
	size_t reasoning = 0;

	*out = (struct think_parts){ 0 };
	if (!append(t, text, last ? 0 : n))
		return false;
	if (t->state == THINK_BEFORE)
		reasoning = read_before(t, last, &known);
	if (!known)
		return true;
	if (t->state == THINK_INSIDE)
		reasoning = read_inside(t, reasoning, last);
	if (t->state == THINK_SPACE)
		reasoning = read_behind(t, reasoning);
	t->given = t->state == THINK_BEHIND ? t->n : reasoning;
	*out = (struct think_parts){ .reasoning = t->text,
		                     .n_reasoning = reasoning,
		                     .answer = t->text + reasoning,
		                     .n_answer = t->given - reasoning };
	return true;
}

void think_end(struct think *t)
{
	free(t->text);
	*t = (struct think){ 0 };
}

void think_words_take(struct think_words *w, const char *reasoning, size_t n, struct bytes *out)
{
	for (size_t i = 0, mark; i < n; i += mark ? mark : 1) {
		mark = think_mark_at(reasoning + i, n - i);
		if (mark)
			continue;
		if (is_space(reasoning[i])) {
			if (w->some)
				bytes_add(&w->spaces, reasoning + i, 1);
			continue;
		}
		bytes_add(out, w->spaces.p, w->spaces.n);
		bytes_clear(&w->spaces);
		bytes_add(out, reasoning + i, 1);
		w->some = true;
	}
}

void think_words_free(struct think_words *w) { bytes_free(&w->spaces); }
