/* grammar/rules/lark_templates.c - rules with parameters: each use with other values is a rule of its own. */
#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

enum { PARAMETERS_MAX = 32, LITERAL_MAX = 4096 };

const struct lark_symbol *lark_symbol_of(const struct lark *r, uint32_t name)
{
	for (uint32_t i = 0; r->now.names && i < r->now.names->n; i++)
		if (r->now.names->one[i].name == name)
			return &r->now.names->one[i].symbol;
	return NULL;
}

/* ---- values */

/* A string or an expression, which is the same terminal wherever it stands. */
static bool literal(struct lark *r, struct lark_symbol *out)
{
	const size_t at = r->now.word.at;
	const char *text = r->now.text + at;
	const bool is_terminal = r->now.is_terminal, is_lazy = r->now.is_lazy;
	uint32_t word[LITERAL_MAX / 4 + 2] = { 0 }, node;
	void *all = r->literal_rule;
	const struct lark_reading before = r->now;
	int made;

	bool range = r->now.word.kind == LARK_STRING;
	if (range && !lark_next(r))
		return false;
	range = range && r->now.word.kind == LARK_RANGE;
	r->now = before;
	r->now.is_terminal = true;
	r->now.is_lazy = false;
	bool ok = range                             ? lark_range(r, &node)
	          : r->now.word.kind == LARK_STRING ? lark_string(r, &node)
	                                            : lark_regexp(r, &node);
	if (ok && r->now.is_lazy)
		ok = lark_unlazy(r, at, node, &node);
	r->now.is_terminal = is_terminal;
	r->now.is_lazy = is_lazy;
	if (!ok)
		return false;
	const size_t n = r->now.word.at - at;
	if (n > LITERAL_MAX)
		return lark_lacks(r, at, "a value of more than 4096 bytes for a template, which is not supported");
	word[0] = (uint32_t)n;
	memcpy(word + 1, text, n);
	const uint32_t number = interner_add(&r->literals, word, 1 + (n + 3) / 4, &made);
	if (!number || !effort_array(&all, &r->literal_room, (size_t)number + 1, sizeof *r->literal_rule))
		return lark_no_memory(r);
	r->literal_rule = all;
	if (made) {
		const uint32_t rule = lark_add_rule(r, at);
		if (rule == UINT32_MAX)
			return false;
		r->literal_rule[number] = rule;
		r->g->rule[rule].node = node;
	}
	*out = (struct lark_symbol){ SYMBOL_TERMINAL, r->literal_rule[number] };
	return true;
}

static bool named(struct lark *r, struct lark_symbol *out)
{
	const size_t at = r->now.word.at;
	uint32_t number, rule;

	if (!lark_name(r, &number) || !lark_next(r))
		return false;
	const struct lark_symbol *symbol = lark_symbol_of(r, number);
	if (!symbol)
		lark_use(r, number, at);
	const struct lark_definition *d = &r->definition[number];
	*out = symbol ? *symbol
	              : (struct lark_symbol){ d->is_terminal   ? SYMBOL_TERMINAL
		                              : d->is_template ? SYMBOL_TEMPLATE
		                                               : SYMBOL_RULE,
		                              d->is_template ? number : d->rule };
	if (!lark_is(r, '{'))
		return true;
	if (out->kind != SYMBOL_TEMPLATE)
		return lark_wrong(r, at, "this rule is no template");
	if (!lark_use_template(r, out->number, at, &rule))
		return false;
	*out = (struct lark_symbol){ SYMBOL_RULE, rule };
	return true;
}

static bool value(struct lark *r, struct lark_symbol *out)
{
	switch (r->now.word.kind) {
	case LARK_RULE:
	case LARK_TERMINAL: return named(r, out);
	case LARK_STRING:
	case LARK_REGEXP: return literal(r, out);
	default: return lark_wrong_here(r, "expected a value for a template: a name, a string or an expression");
	}
}

/* ---- uses */

/* The names of the parameters, which were looked at when the template was defined. */
static bool bind(struct lark *r, uint32_t definition, const struct lark_symbol *symbol, uint32_t n,
                 struct lark_names **out, size_t at)
{
	const struct lark_reading before = r->now;
	struct lark_names *names = effort_calloc(1, sizeof *names + n * sizeof *names->one);
	bool ok = names != NULL || lark_no_memory(r);

	ok = ok && lark_begin(r, r->text, r->n, r->definition[definition].parameters);
	while (ok && r->now.word.kind == LARK_RULE) {
		uint32_t name;
		if (names->n == n)
			break;
		ok = lark_name(r, &name) && lark_next(r) && (!lark_is(r, ',') || lark_next(r));
		if (ok)
			names->one[names->n] = (struct lark_names_one){ name, symbol[names->n] };
		names->n += ok;
	}
	if (ok && (names->n != n || r->now.word.kind == LARK_RULE))
		ok = lark_wrong(r, at, "a template with another number of values than it has parameters");
	r->now = before;
	if (!ok)
		free(names);
	*out = ok ? names : NULL;
	return ok;
}

/* The rule of a template with these values. */
static bool instance_of(struct lark *r, uint32_t definition, const struct lark_symbol *symbol, uint32_t n, size_t at,
                        uint32_t *rule)
{
	uint32_t word[1 + 2 * PARAMETERS_MAX] = { definition };
	void *all = r->instance;
	int made;

	for (uint32_t i = 0; i < n; i++) {
		word[1 + 2 * i] = symbol[i].kind;
		word[2 + 2 * i] = symbol[i].number;
	}
	const uint32_t number = interner_add(&r->instances, word, 1 + 2 * n, &made);
	if (!number || !effort_array(&all, &r->instance_room, r->n_instances + 1, sizeof *r->instance))
		return lark_no_memory(r);
	r->instance = all;
	if (!made) {
		*rule = r->instance[number - 1].rule;
		return true;
	}
	r->instance[r->n_instances++] = (struct lark_instance){ .definition = definition };
	if ((*rule = lark_add_rule(r, at)) == UINT32_MAX)
		return false;
	r->instance[number - 1].rule = *rule;
	struct lark_names *names;
	if (!bind(r, definition, symbol, n, &names, at))
		return false;
	r->instance[number - 1].names = names;
	return true;
}

bool lark_use_template(struct lark *r, uint32_t definition, size_t at, uint32_t *rule)
{
	enum { DEPTH_MAX = 60 };
	struct lark_symbol symbol[PARAMETERS_MAX];
	uint32_t n = 0;

	if (++r->depth > DEPTH_MAX)
		return lark_lacks(r, at, "templates inside too many templates, which is not supported");
	do {
		if (n == PARAMETERS_MAX)
			return lark_lacks(r, at, "a template with more than 32 values, which is not supported");
		if (!lark_next(r) || !value(r, &symbol[n]))
			return false;
		n++;
	} while (lark_is(r, ','));
	r->depth--;
	if (!lark_is(r, '}'))
		return lark_wrong_here(r, "expected } or another value of a template");
	return lark_next(r) && instance_of(r, definition, symbol, n, at, rule);
}

bool lark_make_instances(struct lark *r)
{
	uint32_t node;
	bool lazy;

	for (; r->n_done < r->n_instances; r->n_done++) {
		const struct lark_instance one = r->instance[r->n_done];
		if (!r->definition[one.definition].is_defined)
			return lark_wrong(r, r->definition[one.definition].at, "this name is used but not defined");
		if (!lark_bodies(r, r->definition[one.definition].body, false, one.names, &node, &lazy))
			return false;
		r->g->rule[one.rule].node = node;
	}
	/* What those use. */
	for (uint32_t i = 0; i < r->n_definitions; i++)
		if (r->definition[i].is_used && !r->definition[i].is_defined)
			return lark_wrong(r, r->definition[i].at, "this name is used but not defined");
	return true;
}
