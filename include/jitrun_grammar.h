/* jitrun_grammar.h - answers that keep to a grammar: a JSON Schema, a regular expression, or rules.
 *
 * Everything here follows jitrun.h: ERRORS, and what a session is.
 */
#ifndef JITRUN_GRAMMAR_H
#define JITRUN_GRAMMAR_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

enum {
	JIT_GRAMMAR_NONE,
	JIT_GRAMMAR_JSON_SCHEMA, /* one JSON value with white space between its parts, right by a JSON Schema: drafts 4
	                            to 2020-12; "{}" is any value */
	JIT_GRAMMAR_REGEX,       /* texts of an expression as ECMA-262 writes them; it may look ahead, not behind */
	JIT_GRAMMAR_GBNF,        /* texts of a grammar of rules as llama.cpp writes them, which begin with `root` */
	JIT_GRAMMAR_CALL,        /* one call of a function in the form that a chat template teaches, from its name on: a
	                            JSON object of a schema and the form (docs/grammars.md). Control tokens that are
	                            part of the form may be chosen, too */
	JIT_GRAMMAR_LARK         /* texts of a grammar of rules as Lark writes them, which begin with `start` */
};

/* Beside JIT_GRAMMAR_JSON_SCHEMA or JIT_GRAMMAR_CALL, as kind | JIT_GRAMMAR_ADDITIONAL: an object whose schema has
 * "properties" and no "additionalProperties" may have other members, as JSON Schema says. Without, it has none, for
 * models invent some. What a schema says itself always holds. */
enum { JIT_GRAMMAR_ADDITIONAL = 0x100 };

/* From now on jit_session_next chooses only tokens with which the text since this call can become one that is right,
 * and an end token only where it is one. The samplers work on what the grammar leaves: it changes no logits
 * (jit_session_logits, jit_session_logprobs), and draft tokens change nothing. Tokens that are fed are part of the
 * text, too, and refused where it does not allow them; a rewind takes tokens back. So set it behind the prompt, and
 * anew for another answer; JIT_GRAMMAR_NONE ends it.
 *
 * text: n bytes, copied. JIT_ERROR_UNSUPPORTED: something of the grammar is not done, and the message says where it
 * stands (JSON pointer and keyword, or line and column); JIT_ERROR_ARGUMENT: it is no grammar, or no text is right.
 * Then the session is as it was. The first grammar of a model makes a table of its tokens, some ten milliseconds, which
 * all sessions share. */
int jit_session_set_grammar(jit_session *s, int kind, const char *text, size_t n, jit_error *err);

/* ANSWERS THAT REASON FIRST. Models that reason write that before the answer, and a grammar that held from the first
 * token on would leave them no room for it. Behind a prompt that jit_chat_render made:
 *
 *     jit_session_begin_grammar(s, &JIT_GRAMMAR_OPTIONS(.kind = JIT_GRAMMAR_JSON_SCHEMA, .text = schema, .n = n,
 *                                                       .behind_reasoning = 1, .prompt = chat.text,
 *                                                       .n_prompt = chat.n), &err);
 */
typedef struct jit_grammar_options {
	size_t size;
	int kind; /* as jit_session_set_grammar has it, and so are the grammar's n bytes of text */
	/* Non-zero: reasoning may stand before the grammar's part of the text, free but for end tokens, up to the mark
	 * that closes it. It has begun where the prompt ends within it, and may begin where the template has marks of
	 * reasoning and the prompt does not end with a closing one. A regular expression or rules with such a mark in
	 * them are about the whole text. 0: the grammar holds at once. */
	int behind_reasoning;
	const char *text;
	size_t n;
	const char *prompt; /* what was rendered, n_prompt bytes; NULL: there was none */
	size_t n_prompt;
	const char *tools;         /* as in jit_chat_options: it may choose the template */
	const char *template_text; /* the same; "": of a model that was told not to reason */
	const char *template_name; /* the same */
	/* What the text must have before the grammar's part, at its beginning or behind the reasoning; NULL: nothing.
	 * jit_forced_call.prompt, instead of feeding its tokens: then the answer is read without
	 * jit_answer_options.opened. Behind reasoning gpt-oss begins a message, which need not be given. */
	const char *opening;
} jit_grammar_options;
#define JIT_GRAMMAR_OPTIONS(...) JIT_STRUCT(jit_grammar_options, __VA_ARGS__)

/* As jit_session_set_grammar, with options, all of which are copied; sessions of a batch, too. The text of the grammar
 * is what stands behind the reasoning, a little white space and the opening. Beside that function's errors
 * JIT_ERROR_ARGUMENT: the model has no template of that name. */
int jit_session_begin_grammar(jit_session *s, const jit_grammar_options *options, jit_error *err);
/* Whether the text is a right one as it stands: 1, or 0; -1: there is no grammar, or memory ran out. Where nothing can
 * follow and the model has no end token, jit_session_next fails with JIT_ERROR_ARGUMENT: ask here before. */
int jit_session_grammar_complete(jit_session *s);

#ifdef __cplusplus
}
#endif

#endif
