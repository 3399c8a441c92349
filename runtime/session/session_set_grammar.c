/* runtime/session/session_set_grammar.c - grammars as callers set them: which part of an answer they are about.
 *
 * Owns: what of a prompt, of a chat template and of the grammar says where that part begins (session_lead.h).
 */
#include <stdlib.h>
#include <string.h>

#include "answers/think.h"
#include "answers/tool_forms.h"
#include "base/bytes.h"
#include "grammar/machine/effort.h"
#include "grammar/machine/machine.h"
#include "runtime/session/chat.h"
#include "include/jitrun_grammar.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "runtime/session/session_state.h"
#include "runtime/model/sized.h"

static bool is_kind(int kind)
{
	const int plain = kind & ~JIT_GRAMMAR_ADDITIONAL;

	if (kind != plain)
		return plain == JIT_GRAMMAR_JSON_SCHEMA || plain == JIT_GRAMMAR_CALL;
	return kind >= JIT_GRAMMAR_NONE && kind <= JIT_GRAMMAR_LARK;
}

static bool check(const jit_grammar_options *o, struct error *err)
{
	if (!is_kind(o->kind))
		return error_set(err, ERROR_ARGUMENT,
		                 "kind: %d is not one of enum JIT_GRAMMAR_NONE to JIT_GRAMMAR_LARK, with "
		                 "JIT_GRAMMAR_ADDITIONAL beside JIT_GRAMMAR_JSON_SCHEMA or JIT_GRAMMAR_CALL alone",
		                 o->kind);
	return o->kind == JIT_GRAMMAR_NONE || o->text ||
	       error_set(err, ERROR_ARGUMENT, "text is NULL, expected a grammar");
}

/* Rules and expressions that have marks of reasoning are about the whole answer. */
static bool is_about_all(const jit_grammar_options *o)
{
	return (o->kind == JIT_GRAMMAR_REGEX || o->kind == JIT_GRAMMAR_GBNF || o->kind == JIT_GRAMMAR_LARK) &&
	       think_until_mark(o->text, o->n) < o->n;
}

struct opening {
	int32_t *ids;
	size_t n;
};

static bool tokens_of(const jit_session *s, const char *before, const char *text, struct opening *out,
                      struct error *err)
{
	struct bytes whole = { 0 };

	bytes_text(&whole, before);
	bytes_text(&whole, text);
	bytes_add(&whole, "", 1);
	const bool ok = whole.lost ? error_set(err, ERROR_MEMORY, "no memory for a grammar")
	                           : whole.n == 1 || model_go_on(s->model, whole.p, true, &out->ids, &out->n, err);
	bytes_free(&whole);
	return ok;
}

/* The model's reasoning, and what opens the grammar's part: behind it, messages of gpt-oss begin anew. */
static bool find_lead(const jit_session *s, const jit_grammar_options *o, struct session_lead *lead,
                      struct opening *first, struct opening *behind, struct error *err)
{
	const jit_chat_options by = {
		.template_text = o->template_text, .template_name = o->template_name, .tools = o->tools
	};
	const char *opening = o->opening ? o->opening : "", *again = "", *text = NULL;
	struct think_before before = { 0 };
	size_t n;

	if (o->behind_reasoning && !is_about_all(o)) {
		if (!chat_find_text(&s->model->file, &by, &text, &n, err))
			return false;
		before = think_before(o->prompt ? o->prompt : "", o->prompt ? o->n_prompt : 0, text);
	}
	const bool reasons = before.inside || before.may;
	if (reasons && text && tools_form_of(text) == TOOLS_HARMONY)
		again = tools_rows[TOOLS_HARMONY].mark[4];
	const char *then = *again && !*opening ? tools_rows[TOOLS_HARMONY].taught : opening;
	if (!tokens_of(s, "", opening, first, err) || (reasons && !tokens_of(s, again, then, behind, err)))
		return false;
	*lead = (struct session_lead){
		.inside = before.inside,
		.pair = before.pair,
		.may = before.may,
		.first = first->ids,
		.n_first = first->n,
		.behind = behind->ids,
		.n_behind = behind->n
	};
	return true;
}

/* The session keeps what it had where something fails. */
static bool set(jit_session *s, const jit_grammar_options *o, struct error *err)
{
	struct session_grammar *before = s->grammar, *g = NULL;
	struct opening first = { 0 }, behind = { 0 };
	uint64_t steps = SESSION_GRAMMAR_STEPS;
	struct session_lead lead;

	_Static_assert((int)SESSION_GRAMMAR_STEPS == (int)EFFORT_TO_OPEN, "what one grammar may take to be opened");
	if (!check(o, err))
		return false;
	bool ok = o->kind == JIT_GRAMMAR_NONE;
	if (!ok && find_lead(s, o, &lead, &first, &behind, err) &&
	    (g = session_grammar_open(s->model, o->kind, o->text, o->n, &steps, err))) {
		s->grammar = g;
		ok = session_grammar_lead(s, &lead, err);
		s->grammar = before;
	}
	free(first.ids);
	free(behind.ids);
	if (ok)
		session_grammar_give(s, g);
	else
		session_grammar_close(g);
	return ok;
}

bool session_grammar_reads(int kind, const char *text, size_t n, uint64_t *steps, struct error *err)
{
	struct effort own = { 0 };

	effort_give(&own, *steps);
	struct effort *before = effort_begin(&own);
	struct machine *m = kind == JIT_GRAMMAR_LARK          ? machine_of_lark(text, n, err)
	                    : kind == JIT_GRAMMAR_JSON_SCHEMA ? machine_to_write_schema(text, n, WRITE_ADDITIONAL, err)
	                                                      : machine_of_regex(text, n, err);
	effort_end(before);
	*steps = own.left;
	machine_close(m);
	return effort_check(&own, err) && m;
}

int jit_session_set_grammar(jit_session *s, int kind, const char *text, size_t n, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(s, &e))
		set(s, &(jit_grammar_options){ .kind = kind, .text = text, .n = n }, &e);
	return model_report(err, &e);
}

int jit_session_begin_grammar(jit_session *s, const jit_grammar_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_grammar_options o;

	if (NEEDED(s, &e) && NEEDED(options, &e) && SIZED_READ(jit_grammar_options, &o, options, &e))
		set(s, &o, &e);
	return model_report(err, &e);
}
