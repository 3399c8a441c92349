/* answers/tool_grammar.h - answers that must be a call of a tool: the grammar that leaves nothing else.
 *
 * Owns: how calls are written in each form, as a grammar over the functions' own schemas, and what stands in the prompt
 * before them.
 */
#ifndef ANSWERS_TOOL_GRAMMAR_H
#define ANSWERS_TOOL_GRAMMAR_H

#include <jansson.h>
#include <stdbool.h>

#include "answers/tool_forms.h"
#include "base/error.h"
#include "grammar/schema/schema.h"

/* The functions of a request's tools, as tool_calls_begin wants them: an array of objects with "name" and, where there
 * are any, "parameters". Tools without a function that has a name are left out. NULL: no memory. */
json_t *tool_grammar_functions(const json_t *tools);

/* In the schema of a text: a grammar in Lark's form. */
#define TOOLS_LARK SCHEMA_LARK

struct tool_grammar {
	char *text;   /* JSON text: a schema, or with in_form what grammar/call/call.h reads */
	bool in_form; /* a call in the form, from its function's name on; else JSON alone */
	bool named;   /* the prompt names the function, and its arguments alone are left */
	bool strict;  /* a function is `strict`: JIT_GRAMMAR_ADDITIONAL, for its schema holds as it stands */
	char *prompt; /* what is put behind the prompt: the marks that open a call, and `opened` */
	char *opened; /* what of that stands behind the opening mark: for tool_calls_begin */
};

/* Calls of these functions, at least one; one: no more than one call. False: err, which is ERROR_ARGUMENT where the
 * form cannot write such a call. */
bool tool_grammar_make(struct tool_grammar *g, const json_t *functions, enum tools_form form, bool one,
                       struct error *err);
void tool_grammar_free(struct tool_grammar *g);

/* The grammar of such a call as an object, behind its opening mark and what stands before the name. NULL: err. */
json_t *tool_grammar_object(const json_t *functions, enum tools_form form, bool one, struct error *err);
/* tool_held.c: the grammar of a text that may have calls (call_free.h): JSON text, malloc'ed. watched: of functions,
 * those whose calls are looked for where no mark opens calls. NULL: err, which is ERROR_ARGUMENT where the form cannot
 * write such calls. */
char *tool_grammar_held(const json_t *functions, const json_t *watched, enum tools_form form, bool one,
                        struct error *err);

/* How a call is written in a form, as call.h has it, but for the schema; and what stands before its function's name,
 * behind the opening mark. */
json_t *tool_grammar_form(enum tools_form form);
const char *tool_grammar_before_name(enum tools_form form);

#endif
