/* jitrun_answers.h - what a model says, read: texts, reasoning, and calls of tools.
 *
 * Everything here follows jitrun.h: ERRORS, STRUCTS AND VERSIONS, and what a session is.
 */
#ifndef JITRUN_ANSWERS_H
#define JITRUN_ANSWERS_H

#include "jitrun.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* ---- reading */

/* READING ANSWERS. Model families write reasoning and calls of tools each in a form of their own, which their chat
 * template teaches (docs/serving.md lists them). A jit_answer reads one answer while it is generated, and tells of it
 * in events that are the same for every family:
 *
 *     jit_answer *a = jit_answer_open(m, &JIT_ANSWER_OPTIONS(.tools = tools, .prompt = chat.text, .n_prompt = chat.n),
 *                                     &err);
 *     while (jit_session_next(s, &id, &err) == JIT_OK && !jit_model_is_end(m, id)) {
 *             text = jit_session_text(s, id, &n, &err);
 *             jit_answer_feed(a, text, n, &err);
 *             mark = jit_answer_mark(a, id, &n);
 *             jit_answer_feed(a, mark, n, &err);
 *             jit_answer_event e = JIT_ANSWER_EVENT();
 *             while (jit_answer_next(a, &e, &err) == JIT_OK && e.kind != JIT_ANSWER_NOTHING)
 *                     ...
 *     }
 *     text = jit_session_text(s, -1, &n, &err);
 *     jit_answer_feed(a, text, n, &err);
 *     jit_answer_finish(a, 0, &err);
 *     ... and the events once more
 *
 * How the bytes are cut into feeds changes no text and no argument, only how many events tell of them. What may become
 * a mark is held back until that is known; what turns out to be no call is text as it was. A call is told once its
 * function's name is known and its arguments have begun. A jit_answer belongs to one thread at a time. */
typedef struct jit_answer jit_answer;

typedef struct jit_answer_options {
	size_t size;
	/* What the model may call, as jit_chat_options.tools: a JSON array of {"type": "function", "function": {"name":
	 * ..., "parameters": SCHEMA}}. Calls of other functions are text. NULL, or an empty array: answers have no
	 * calls. */
	const char *tools;
	const char *prompt; /* what was rendered, n_prompt bytes: it may end within the reasoning; NULL: it does not */
	size_t n_prompt;
	const char *template_text; /* as in jit_chat_options */
	const char *template_name; /* the same */
	const char *opened;        /* jit_forced_call.opened, when a call was forced; NULL: none was */
	const char *id;            /* ids of calls are this, "_" and their number from 0; NULL: "call" */
	int one_call;              /* non-zero: of what follows the first call, nothing is told */
	int keep_reasoning;        /* non-zero: reasoning is text, with its marks */
	int cut;                   /* jit_chat_parse alone: as jit_answer_finish has it */
	int reserved;              /* 0 */
} jit_answer_options;
#define JIT_ANSWER_OPTIONS(...) JIT_STRUCT(jit_answer_options, __VA_ARGS__)

/* m may be NULL where template_text is given: then no token is a mark. Without a template calls are read in the form
 * <tool_call>{"name": ..., "arguments": {...}}</tool_call>. The model must stay open; all else is copied. options NULL:
 * all defaults. NULL: err. */
jit_answer *jit_answer_open(const jit_model *m, const jit_answer_options *options, jit_error *err);
void jit_answer_close(jit_answer *a);

/* The next n bytes of the answer. Events that jit_answer_next did not give yet stay. Behind jit_answer_finish:
 * JIT_ERROR_ARGUMENT. JIT_ERROR_MEMORY: the answer cannot be read any further. */
int jit_answer_feed(jit_answer *a, const char *text, size_t n, jit_error *err);
/* What a token that has no text of its own stands for in calls, n bytes; most have nothing. Lives as long as a. To be
 * fed behind the token's text. NULL: a or n is. */
const char *jit_answer_mark(const jit_answer *a, int32_t id, size_t *n);
/* Nothing more comes: gives what was held back. cut: non-zero when the model had more to say, as at a limit of tokens;
 * a call that was not closed is then not whole. */
int jit_answer_finish(jit_answer *a, int cut, jit_error *err);

enum {
	JIT_ANSWER_NOTHING,   /* there is no event so far */
	JIT_ANSWER_TEXT,      /* text, n bytes, as they were fed */
	JIT_ANSWER_REASONING, /* the same of the reasoning, without its marks and the space around it */
	JIT_ANSWER_CALL,      /* a call begins: id and name */
	JIT_ANSWER_ARGUMENTS, /* text, n bytes: more of its arguments. Together they are the JSON text of an object, in
	                         UTF-8, whose characters are whole in each event */
	JIT_ANSWER_CALL_END   /* nothing more comes of it */
};
typedef struct jit_answer_event {
	size_t size;
	int kind;
	int call;         /* CALL, ARGUMENTS, CALL_END: the call's number from 0 */
	const char *text; /* n bytes, until the next feed */
	size_t n;
	const char *id, *name; /* of a call's events; they live as long as the jit_answer */
	int whole;             /* CALL_END: the arguments are complete; 0: they are cut off, or no JSON */
	int reserved;
} jit_answer_event;
#define JIT_ANSWER_EVENT() JIT_STRUCT(jit_answer_event, )
/* The next event that it did not give yet, in the order of the text. */
int jit_answer_next(jit_answer *a, jit_answer_event *out, jit_error *err);

/* A whole answer of n bytes, as a message of OpenAI's API, which can be put behind the others of its conversation:
 * {"role": "assistant", "content": TEXT}, with "reasoning_content" where there is some, and with "tool_calls": an array
 * of {"id", "type": "function", "function": {"name", "arguments": JSON text}}. Bytes that are no UTF-8 become U+FFFD.
 * m, options: as jit_answer_open has them, which may be NULL as there. malloc'ed and 0-terminated: free() it.
 * NULL: err. */
char *jit_chat_parse(const jit_model *m, const char *text, size_t n, const jit_answer_options *options, jit_error *err);

/* FORCED CALLS. An answer must be a call (tool_choice of OpenAI's API) when the prompt opens one and a grammar leaves
 * nothing else:
 *
 *     jit_forced_call f = JIT_FORCED_CALL();
 *     jit_call_force(m, &JIT_FORCED_OPTIONS(.tools = tools), &f, &err);
 *     jit_session_feed(s, f.ids, f.n_ids, &err);                               behind the prompt's
 *     jit_session_set_grammar(s, f.kind, f.grammar, f.n_grammar, &err);
 *     ... jit_answer_open(m, &JIT_ANSWER_OPTIONS(.tools = tools, .opened = f.opened), &err) reads it
 *     jit_forced_call_free(&f);
 *
 * With .prompt in the options a model that reasons may do so before: see jit_forced_call.behind_reasoning.
 */
typedef struct jit_forced_options {
	size_t size;
	const char *tools;         /* as in jit_answer_options, one function at least */
	const char *function;      /* the name of the one to call; NULL: any of them */
	const char *template_text; /* as in jit_chat_options */
	const char *template_name; /* the same */
	int one_call;              /* non-zero: one call at most, where the form has several; so with `function` */
	int reserved;              /* 0 */
	const char *prompt;        /* what was rendered, n_prompt bytes: reasoning may come first; NULL: none does */
	size_t n_prompt;
} jit_forced_options;
#define JIT_FORCED_OPTIONS(...) JIT_STRUCT(jit_forced_options, __VA_ARGS__)

typedef struct jit_forced_call {
	size_t size;
	int kind; /* for jit_session_set_grammar: JIT_GRAMMAR_JSON_SCHEMA or JIT_GRAMMAR_CALL, and where a function is
	             `strict` JIT_GRAMMAR_ADDITIONAL */
	/* Non-zero: the answer may reason before it calls (jit_grammar_options). Then nothing is fed, and the grammar
	 * begins with the prompt below as its opening; the answer is read without jit_answer_options.opened. */
	int behind_reasoning;
	char *grammar; /* as kind: n_grammar bytes and a 0 */
	size_t n_grammar;
	char *prompt; /* what opens the call, n_prompt bytes and a 0 */
	size_t n_prompt;
	int32_t *ids; /* its tokens, which may be none */
	size_t n_ids;
	char *opened; /* for jit_answer_options */
} jit_forced_call;
#define JIT_FORCED_CALL() JIT_STRUCT(jit_forced_call, )

/* JIT_ERROR_ARGUMENT: there is no such function, or the form cannot write its name or those of its parameters. What a
 * schema asks for and is not done, jit_session_set_grammar says. */
int jit_call_force(const jit_model *m, const jit_forced_options *options, jit_forced_call *out, jit_error *err);
/* Gives back what is in out, which may be NULL. */
void jit_forced_call_free(jit_forced_call *out);

#ifdef __cplusplus
}
#endif

#endif
