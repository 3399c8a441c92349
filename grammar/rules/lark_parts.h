/* grammar/rules/lark_parts.h - what the files that read Lark's grammars share. */
#ifndef GRAMMAR_LARK_PARTS_H
#define GRAMMAR_LARK_PARTS_H

#include "grammar/regex/character_set.h"
#include "grammar/rules/lark.h"

enum lark_kind {
	LARK_END,
	LARK_LINE, /* the end of a line, unless a group is open or the next one begins with | */
	LARK_RULE, /* the name of a rule */
	LARK_TERMINAL,
	LARK_STRING,
	LARK_REGEXP,
	LARK_NUMBER,
	LARK_STATEMENT, /* % and a word */
	LARK_TO,        /* -> */
	LARK_RANGE,     /* .. */
	LARK_MARK       /* any other character, by itself */
};

/* A position in a text that is being read, at a word. */
struct lark_reading {
	const char *text;
	size_t n, at;     /* behind the word */
	unsigned groups;  /* that are open */
	bool is_terminal; /* what stands in a terminal is one text, without what is ignored */
	bool is_lazy;     /* something has a repetition of as few as possible */
	struct {
		enum lark_kind kind;
		size_t at, end;
	} word;
	const struct lark_names *names;
};

/* What a name or a value stands for: a rule, a terminal by its rule, or a template by its definition. */
struct lark_symbol {
	enum { SYMBOL_RULE, SYMBOL_TERMINAL, SYMBOL_TEMPLATE } kind;
	uint32_t number;
};
/* The parameters of a template, and what they stand for. */
struct lark_names {
	uint32_t n;
	struct lark_names_one {
		uint32_t name;
		struct lark_symbol symbol;
	} one[];
};

struct lark_body {
	const char *text;
	size_t n, at;
	uint32_t next; /* one more than another one's number: %extend; 0: there is none */
};
struct lark_definition {
	size_t at; /* of its name, in the grammar */
	bool is_terminal, is_template, is_defined, is_used, is_lazy;
	enum { LARK_NEW, LARK_UNDER_WAY, LARK_READ } stage; /* of a terminal */
	uint32_t body, rule, node;
	size_t parameters; /* behind the brace */
};
/* A template with what its parameters stand for. */
struct lark_instance {
	uint32_t definition, rule;
	struct lark_names *names;
};

struct lark {
	struct gbnf *g;
	const char *text; /* of the grammar */
	size_t n;
	struct lark_reading now;
	struct lark_definition *definition; /* by the number of their names, less one: as interner g->names has them */
	size_t n_definitions, definition_room;
	struct lark_body *body;
	size_t n_bodies, body_room;
	struct lark_instance *instance;
	size_t n_instances, instance_room, n_done;
	struct interner literals, instances; /* their texts and words; numbers as below */
	uint32_t *literal_rule;              /* [number] */
	size_t literal_room;
	struct character_set digits, letters; /* of all languages, once they were asked for */
	uint32_t ignored, n_ignored; /* bodies, as of a definition; the rule of what may stand between terminals */
	uint32_t ignore_rule;
	unsigned depth;
	struct error *err;
};

/* lark.c: at a byte of what is being read, or at one of the grammar; false. */
bool lark_wrong(struct lark *r, size_t at, const char *why);
bool lark_wrong_here(struct lark *r, const char *why);
/* The same of what is not supported. */
bool lark_lacks(struct lark *r, size_t at, const char *why);
bool lark_no_memory(struct lark *r);
/* A rule that has no name; UINT32_MAX: err. */
uint32_t lark_add_rule(struct lark *r, size_t at);
/* The definition of the name that is the present word; false: err. It is used there: it must be defined. */
bool lark_name(struct lark *r, uint32_t *definition);
void lark_use(struct lark *r, uint32_t definition, size_t at);

/* lark_words.c: goes on to the next word. False: err. */
bool lark_next(struct lark *r);
bool lark_is(const struct lark *r, char mark);
/* Begins to read a text from a byte on. False: err. */
bool lark_begin(struct lark *r, const char *text, size_t n, size_t at);

/* lark_items.c: alternatives up to the end of a line or of a group. */
bool lark_alternatives(struct lark *r, uint32_t *node);
/* All bodies of a definition, one of them. */
bool lark_bodies(struct lark *r, uint32_t body, bool is_terminal, const struct lark_names *names, uint32_t *node,
                 bool *lazy);
bool lark_read_terminal(struct lark *r, uint32_t definition);
/* lark_templates.c: the rule of the template whose brace is the present word. */
bool lark_use_template(struct lark *r, uint32_t definition, size_t at, uint32_t *rule);
bool lark_make_instances(struct lark *r);
/* What a parameter of the template stands for that is being read; NULL: the name is none. */
const struct lark_symbol *lark_symbol_of(const struct lark *r, uint32_t name);

/* lark_text.c: at a string, a range of characters or an expression: the node of what it stands for. */
bool lark_string(struct lark *r, uint32_t *node);
bool lark_range(struct lark *r, uint32_t *node);
bool lark_regexp(struct lark *r, uint32_t *node);
/* lark_regexp.c: n bytes between the slashes, and behind them n_flags letters. */
bool lark_expression(struct lark *r, size_t at, size_t n, const char *flags, size_t n_flags, uint32_t *node);
/* A set of characters, which is given back; 0 is in none. */
uint32_t lark_set(struct lark *r, struct character_set *s);
/* lark_classes.c: at [ or a backslash of an expression. */
struct lark_regex {
	struct lark *r;
	size_t at, end;
	unsigned depth;
	bool any_case, dot_all, spaced; /* flags i, s, x */
};
bool lark_class(struct lark_regex *x, uint32_t *node);
bool lark_regex_wrong(struct lark_regex *x, const char *why);
bool lark_regex_lacks(struct lark_regex *x, const char *why);
bool lark_regex_take(struct lark_regex *x, const char *what);

/* lark_lazy.c: the node as one that no longer has repetitions of as few as possible. */
bool lark_unlazy(struct lark *r, size_t at, uint32_t node, uint32_t *out);
/* lark_states.c: the node of a rule that is an expression's automaton; at: of what is too large. */
bool lark_states(struct lark *r, size_t at, uint32_t node, uint32_t *out);
/* Sets of many ranges become such rules, which they share. */
bool lark_share_sets(struct lark *r);

/* lark_common.c: a terminal of Lark's library "common": its body; NULL: there is none. */
const char *lark_common(const char *name, size_t n);

#endif
