/* chat/chat.h - conversations become the text, and the token ids, that a model was trained on.
 *
 * Owns: chat templates. Model files carry them as programs in a template language (Jinja), which is run here by an
 * interpreter of our own: the part of the language that published templates use, with Python's meaning of values.
 * Models of ollama carry them in the language of Go's package text/template, which has an interpreter, too.
 * A template is parsed once and may then be rendered from any thread.
 *
 * Every byte of a rendered text says where it came from. What came from the conversation is the user's; what the
 * template and the model's own special tokens wrote is not. chat_tokenize() makes special tokens from the latter alone,
 * so that nothing anybody writes into a message can end a turn or begin another.
 *
 * Never: reads or writes files, asks for the time, runs longer than CHAT_MAX_STEPS, keeps anything of a call.
 */
#ifndef CHAT_CHAT_H
#define CHAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"

/* Bytes of a template: the largest published ones have 20 000. */
enum { CHAT_MAX_TEMPLATE = 1 << 20 };
/* Bytes of one variable's JSON text: a million tokens of text are a quarter of it. */
enum { CHAT_MAX_JSON = 1 << 24 };
/* Bytes of a rendered text: a template writes a conversation once, and some of it twice. */
enum { CHAT_MAX_TEXT = 1 << 26 };
/* Bytes a call may use: four times the largest text, which is kept with its marks. Nothing is given back before the
 * end. */
enum { CHAT_MAX_MEMORY = 1 << 28 };
/* Expressions evaluated, and bytes copied by sixty-four: published templates take below 200 for a message. Some two
 * seconds. */
enum { CHAT_MAX_STEPS = 1 << 25 };
/* How deep expressions and blocks may be nested in a template, and calls of macros while it runs: Python allows about
 * as much. */
enum { CHAT_MAX_NESTING = 100, CHAT_MAX_DEPTH = 1500 };

struct chat_template;
struct tokenizer; /* loaders/tokenizer/tokenizer.h */

/* Parses n bytes. label names the template in messages and is copied. NULL with err set: one sentence with the line and
 * what was expected. */
struct chat_template *chat_template_parse(const char *text, size_t n, const char *label, struct error *err);
void chat_template_free(struct chat_template *t);

/* Whether n bytes are a template in Go's language, and else in Jinja's: by the first action that only one has. */
bool chat_template_is_go(const char *text, size_t n);
/* What a template in Go's language looks at; all false for one in Jinja. */
struct chat_facts {
	bool go;
	bool messages; /* else it is run once for each turn */
	bool tools, suffix;
	bool think;  /* whether the model shall reason */
	bool thinks; /* it writes the reasoning of earlier answers between two marks */
};
struct chat_facts chat_template_facts(const struct chat_template *t);

/* Whose text a variable holds. */
enum chat_source {
	CHAT_MODEL,   /* the model's or the library's: special tokens. Not marked */
	CHAT_USER,    /* anybody's: tools, documents, dates, a request's variables. All of it is marked */
	CHAT_MESSAGES /* as CHAT_USER, but for roles that have a name of their own ("user", ...): templates write
	               * special tokens with them, as in "<|" + role + "|>" */
};

/* A variable of the template. One in Go's language finds what ollama gives it, which is made of these: messages, tools,
 * enable_thinking or thinking, reasoning_effort, add_generation_prompt; or, where there are no messages, prompt and
 * suffix, the texts before and behind a gap. Others are not looked at. json is the text of any JSON value, or NULL for
 * an undefined one. Python's meaning: a member that comes twice counts last, in its first place; integers have 64 bits
 * here, larger ones are refused. */
struct chat_variable {
	const char *name;
	const char *json;
	size_t n;
	enum chat_source source;
};

struct chat_span {
	size_t begin, end;
	bool user;
}; /* bytes [begin, end) of a text */

struct chat_text {
	char *p; /* n bytes and a 0 */
	size_t n;
	struct chat_span *span; /* one after the other, without gaps; neighbours differ */
	size_t n_spans;
};

struct chat_request {
	const struct chat_variable *variable;
	size_t n_variables;
	const struct tm *now; /* for strftime_now(); NULL: the template has no such function */
	/* Templates may do what Jinja's immutable sandbox refuses and other engines for them allow: append() and pop()
	 * on lists that they made, and a stream as JSON. */
	bool lenient;
};

/* Runs the template. False with err set when it cannot be run, and when it refuses the conversation by its own
 * raise_exception(): then *refused is true (it may be NULL), and the sentence holds the template's own words. */
bool chat_render(const struct chat_template *t, const struct chat_request *request, struct chat_text *out,
                 bool *refused, struct error *err);
void chat_text_free(struct chat_text *text);

/* The token ids of a rendered text. Special tokens are found in what is not the user's, all else is tokenized as one
 * text. begin: put before it what the tokenizer puts before any text (BOS), unless the template wrote it. Nothing is
 * put behind, for the model is to go on. *ids is malloc'ed. */
bool chat_tokenize(const struct tokenizer *t, const struct chat_text *text, bool begin, int32_t **ids, size_t *n_ids,
                   struct error *err);

#endif
