/* grammar/rules/lark.c - the definitions and statements of a Lark grammar. */
#include "grammar/rules/lark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/rules/gbnf_parts.h"
#include "grammar/rules/lark_parts.h"

enum { NAME_LENGTH_MAX = 256 };
/* What a definition that is there already becomes. */
enum how { DEFINE, OVERRIDE, EXTEND };

bool lark_wrong(struct lark *r, size_t at, const char *why)
{
	return gbnf_fail(r->err, ERROR_ARGUMENT, r->text, at < r->n ? at : r->n, why);
}
bool lark_wrong_here(struct lark *r, const char *why) { return lark_wrong(r, r->now.word.at, why); }
bool lark_lacks(struct lark *r, size_t at, const char *why)
{
	return gbnf_fail(r->err, ERROR_UNSUPPORTED, r->text, at < r->n ? at : r->n, why);
}
bool lark_no_memory(struct lark *r) { return error_set(r->err, ERROR_MEMORY, "no memory for a grammar"); }

uint32_t lark_add_rule(struct lark *r, size_t at)
{
	void *all = r->g->rule;

	if (r->g->n_rules >= GBNF_RULES_MAX) {
		lark_lacks(r, at, "more than 8192 rules with those of templates, which is not supported");
		return UINT32_MAX;
	}
	if (!effort_array(&all, &r->g->room, r->g->n_rules + 1, sizeof *r->g->rule)) {
		lark_no_memory(r);
		return UINT32_MAX;
	}
	r->g->rule = all;
	r->g->rule[r->g->n_rules] = (struct gbnf_rule){ .at = at, .is_defined = true };
	return (uint32_t)r->g->n_rules++;
}

/* ---- names */

/* The number of a name's definition, which is made where there is none. */
static bool number_of(struct lark *r, const char *name, size_t n, size_t at, uint32_t *number)
{
	uint32_t word[NAME_LENGTH_MAX / 4 + 1] = { 0 };
	void *all = r->definition;
	int made;

	if (n > NAME_LENGTH_MAX)
		return lark_lacks(r, at, "a name of more than 256 bytes, which is not supported");
	word[0] = (uint32_t)n;
	memcpy(word + 1, name, n);
	const uint32_t one = interner_add(&r->g->names, word, 1 + (n + 3) / 4, &made);
	if (!one || !effort_array(&all, &r->definition_room, r->n_definitions + 1, sizeof *r->definition))
		return lark_no_memory(r);
	r->definition = all;
	*number = one - 1;
	if (!made)
		return true;
	const uint32_t rule = lark_add_rule(r, at);
	const char first = name[name[0] == '_'];
	r->definition[r->n_definitions++] =
		(struct lark_definition){ .at = at, .rule = rule, .is_terminal = first >= 'A' && first <= 'Z' };
	return rule != UINT32_MAX;
}

bool lark_name(struct lark *r, uint32_t *number)
{
	const size_t at = r->now.word.at, n = r->now.word.end - at;

	return number_of(r, r->now.text + at, n, at, number);
}

void lark_use(struct lark *r, uint32_t number, size_t at)
{
	struct lark_definition *d = &r->definition[number];

	if (!d->is_used && !d->is_defined)
		d->at = at;
	d->is_used = true;
}

/* ---- definitions */

static uint32_t add_body(struct lark *r, const char *text, size_t n, size_t at, uint32_t next)
{
	void *all = r->body;

	if (!effort_array(&all, &r->body_room, r->n_bodies + 1, sizeof *r->body)) {
		lark_no_memory(r);
		return 0;
	}
	r->body = all;
	r->body[r->n_bodies++] = (struct lark_body){ text, n, at, next };
	return (uint32_t)r->n_bodies;
}

static bool define(struct lark *r, uint32_t number, size_t at, enum how how, const struct lark_body *b)
{
	struct lark_definition *d = &r->definition[number];

	if (how == DEFINE ? d->is_defined : !d->is_defined)
		return lark_wrong(r, at,
		                  d->is_defined ? "this name was defined before" : "there is no such name so far");
	const uint32_t body = add_body(r, b->text, b->n, b->at, how == EXTEND ? d->body : 0);
	d->body = body;
	d->is_defined = true;
	d->at = at;
	r->g->rule[d->rule].at = at;
	return body != 0;
}

/* Up to the end of its line. */
static bool skip_body(struct lark *r)
{
	while (r->now.word.kind != LARK_LINE && r->now.word.kind != LARK_END)
		if (!lark_next(r))
			return false;
	return true;
}

static bool priority(struct lark *r)
{
	if (!lark_is(r, '.'))
		return true;
	if (!lark_next(r) || ((lark_is(r, '-') || lark_is(r, '+')) && !lark_next(r)))
		return false;
	return r->now.word.kind == LARK_NUMBER ? lark_next(r) : lark_wrong_here(r, "expected a priority, a number");
}

/* {a, b}: where they stand is kept. */
static bool parameters(struct lark *r, uint32_t number)
{
	if (!lark_is(r, '{'))
		return true;
	if (r->definition[number].is_terminal)
		return lark_wrong_here(r, "a terminal is no template");
	r->definition[number].is_template = true;
	r->definition[number].parameters = r->now.at;
	do {
		if (!lark_next(r))
			return false;
		if (r->now.word.kind != LARK_RULE)
			return lark_wrong_here(r, "expected the name of a parameter, of small letters");
		if (!lark_next(r))
			return false;
	} while (lark_is(r, ','));
	return lark_is(r, '}') ? lark_next(r) : lark_wrong_here(r, "expected } or another parameter");
}

static bool is_name(const struct lark *r) { return r->now.word.kind == LARK_RULE || r->now.word.kind == LARK_TERMINAL; }

/* At its name, or what stands before that. */
static bool definition(struct lark *r, enum how how)
{
	uint32_t number;

	while (lark_is(r, '?') || lark_is(r, '!'))
		if (!lark_next(r))
			return false;
	const size_t at = r->now.word.at;
	if (!is_name(r))
		return lark_wrong_here(r, "expected a rule, a terminal or a statement");
	if (!lark_name(r, &number) || !lark_next(r))
		return false;
	if (how == OVERRIDE)
		r->definition[number].is_template = false;
	if (!parameters(r, number) || !priority(r))
		return false;
	if (!lark_is(r, ':'))
		return lark_wrong_here(r, "expected : behind the name of a rule or a terminal");
	const struct lark_body b = { r->now.text, r->now.n, r->now.at, 0 };
	return lark_next(r) && skip_body(r) && define(r, number, at, how, &b);
}

/* ---- statements */

static bool import_one(struct lark *r, size_t at, size_t n, size_t as, size_t n_as)
{
	const char *body = lark_common(r->text + at, n);
	char why[320];
	uint32_t number;

	if (!body) {
		snprintf(why, sizeof why, "%%import of %.*s: common has no such terminal", (int)(n < 200 ? n : 200),
		         r->text + at);
		return lark_lacks(r, at, why);
	}
	return number_of(r, r->text + as, n_as, as, &number) &&
	       (r->definition[number].is_terminal || lark_wrong(r, as, "a terminal's name has large letters")) &&
	       define(r, number, as, DEFINE, &(struct lark_body){ body, strlen(body), 0, 0 });
}

static bool import_list(struct lark *r)
{
	do {
		if (!lark_next(r))
			return false;
		const size_t at = r->now.word.at, n = r->now.word.end - at;
		if (!is_name(r))
			return lark_wrong_here(r, "expected a name");
		if (!import_one(r, at, n, at, n) || !lark_next(r))
			return false;
	} while (lark_is(r, ','));
	return lark_is(r, ')') ? lark_next(r) : lark_wrong_here(r, "expected ) or another name");
}

static bool import(struct lark *r)
{
	static const char library[] = "common";
	const size_t from = r->now.word.at, n_library = r->now.word.end - from;

	if (!is_name(r) || n_library != strlen(library) || memcmp(r->text + from, library, n_library) != 0)
		return lark_lacks(r, from, "%import of another grammar than common, which is not supported");
	if (!lark_next(r))
		return false;
	if (lark_is(r, '('))
		return import_list(r);
	if (!lark_is(r, '.') || !lark_next(r) || !is_name(r))
		return lark_wrong_here(r, "expected . and a name, or names in ( and )");
	size_t at = r->now.word.at, n = r->now.word.end - at, as = at, n_as = n;
	if (!lark_next(r))
		return false;
	if (r->now.word.kind == LARK_TO) {
		if (!lark_next(r))
			return false;
		as = r->now.word.at;
		n_as = r->now.word.end - as;
		if (!is_name(r))
			return lark_wrong_here(r, "expected a name");
		if (!lark_next(r))
			return false;
	}
	return import_one(r, at, n, as, n_as);
}

static bool ignore(struct lark *r)
{
	r->ignored = add_body(r, r->text, r->n, r->now.word.at, r->ignored);
	r->n_ignored++;
	return r->ignored && skip_body(r);
}

static bool statement(struct lark *r)
{
	static const char *const names[] = { "%ignore", "%import", "%override", "%extend" };
	const size_t at = r->now.word.at, n = r->now.word.end - at;
	char why[120];
	size_t i = 0;

	while (i < 4 && (strlen(names[i]) != n || memcmp(names[i], r->text + at, n) != 0))
		i++;
	if (i == 4) {
		snprintf(why, sizeof why, "%.*s, which is not supported", (int)(n < 80 ? n : 80), r->text + at);
		return lark_lacks(r, at, why);
	}
	if (!lark_next(r))
		return false;
	return i == 0 ? ignore(r) : i == 1 ? import(r) : i == 2 ? definition(r, OVERRIDE) : definition(r, EXTEND);
}

static bool find_definitions(struct lark *r)
{
	if (!lark_begin(r, r->text, r->n, 0))
		return false;
	for (bool ok; r->now.word.kind != LARK_END;) {
		ok = r->now.word.kind == LARK_LINE ||
		     (r->now.word.kind == LARK_STATEMENT ? statement(r) : definition(r, DEFINE));
		if (!ok)
			return false;
		if (r->now.word.kind != LARK_LINE && r->now.word.kind != LARK_END)
			return lark_wrong_here(r, "expected the end of the line");
		r->now.groups = 0;
		if (r->now.word.kind == LARK_LINE && !lark_next(r))
			return false;
	}
	return true;
}

/* ---- all of it */

static bool read_ignored(struct lark *r)
{
	uint32_t node;
	bool lazy;

	if (!r->n_ignored)
		return true;
	r->ignore_rule = lark_add_rule(r, 0);
	if (r->ignore_rule == UINT32_MAX || !lark_bodies(r, r->ignored, true, NULL, &node, &lazy) ||
	    (lazy && !lark_unlazy(r, r->body[r->ignored - 1].at, node, &node)))
		return false;
	r->g->rule[r->ignore_rule].node = expression_repeat(&r->g->x, node, 0, REPEAT_ANY);
	return true;
}

static bool read_definitions(struct lark *r)
{
	uint32_t node;
	bool lazy;

	for (uint32_t i = 0; i < r->n_definitions; i++) { /* names that are used come behind */
		const struct lark_definition d = r->definition[i];
		if (!d.is_defined && d.is_used)
			return lark_wrong(r, d.at, "this name is used but not defined");
		if (!d.is_defined || d.is_template)
			continue;
		if (d.is_terminal) {
			if (!lark_read_terminal(r, i))
				return false;
			continue;
		}
		if (!lark_bodies(r, d.body, false, NULL, &node, &lazy))
			return false;
		r->g->rule[d.rule].node = node;
	}
	return lark_make_instances(r);
}

/* The texts begin with what is ignored. */
static bool find_root(struct lark *r)
{
	static const char start[] = "start";
	uint32_t number;

	const size_t known = r->n_definitions;
	if (!number_of(r, start, strlen(start), r->n, &number))
		return false;
	if (number >= known || !r->definition[number].is_defined)
		return lark_wrong(r, r->n, "there is no rule named start, with which a text begins");
	if (r->definition[number].is_template)
		return lark_wrong(r, r->definition[number].at, "the rule start is a template");
	uint32_t node = expression_rule(&r->g->x, r->definition[number].rule);
	if (r->n_ignored)
		node = expression_join(&r->g->x, expression_rule(&r->g->x, r->ignore_rule), node);
	r->g->root = lark_add_rule(r, r->definition[number].at);
	if (r->g->root == UINT32_MAX)
		return false;
	r->g->rule[r->g->root].node = node;
	return true;
}

bool lark_read(struct gbnf *g, const char *text, size_t n, struct error *err)
{
	struct lark r = { .g = g, .text = text, .n = n, .err = err };
	bool ok = find_definitions(&r) && read_ignored(&r) && read_definitions(&r) && find_root(&r) &&
	          lark_share_sets(&r);

	free(r.definition);
	free(r.body);
	for (size_t i = 0; i < r.n_instances; i++)
		free(r.instance[i].names);
	free(r.instance);
	free(r.literal_rule);
	free(r.digits.range);
	free(r.letters.range);
	interner_clear(&r.literals);
	interner_clear(&r.instances);
	/* The first error holds. */
	if (g->x.failed)
		ok = error_set(err, ERROR_UNSUPPORTED, "the grammar is too large, or there is no memory");
	return ok;
}
