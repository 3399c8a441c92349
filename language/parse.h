/* language/parse.h - what the files of the parser share.
 *
 * Owns: the parser's state: where it stands, what names mean there, and whether it is looking for a place to go on
 * behind a mistake. A function that finds a mistake adds a message and returns a NODE_WRONG, never NULL where a node is
 * expected, so that nobody looks twice.
 */
#ifndef LANGUAGE_PARSE_H
#define LANGUAGE_PARSE_H

#include "language/tree.h"

struct scope {
	struct scope *outer;
	struct symbol *first;
	uint32_t level;
};

struct parser {
	struct jk_file *f;
	struct arena *arena;
	struct jk_messages *m;
	const struct token *at;
	struct scope *scope;
	struct symbol *kernel; /* that is being read, or NULL */
	unsigned depth;        /* of brackets and blocks */
	unsigned loops, lanes; /* that are open: loops since the innermost each; bodies of each, reductions and scans */
	bool tuning;           /* in block or unroll, where constants that are tuned may stand */
	bool lost;             /* a mistake in the grammar: go on behind the next ; or } */
};

/* --- parse.c */
struct source_location jk_location_of(const struct token *t);
bool jk_is_mark(const struct parser *p, unsigned mark);
bool jk_is_word(const struct parser *p, const char *word); /* a name that has a meaning in this place alone */
bool jk_take_mark(struct parser *p, unsigned mark);        /* takes it if it is there */
bool jk_expect_mark(struct parser *p, unsigned mark, const char *where);
void jk_expected(struct parser *p, const char *what);
struct node *jk_node_new(struct parser *p, unsigned kind, struct source_location at);
struct node *jk_node_wrong(struct parser *p);
void jk_node_measure(struct parser *p, struct node *n); /* its height, from its parts */
void jk_scope_open(struct parser *p, struct scope *s);
void jk_scope_close(struct parser *p);
/* The name that stands here, with a meaning from now on. NULL: there is none. */
struct symbol *jk_declare(struct parser *p, unsigned kind, unsigned type, const char *what);
struct symbol *jk_declare_later(struct parser *p, unsigned kind, unsigned type, const char *what);
void jk_declare_now(struct parser *p, struct symbol *s);
/* What a name means; NULL: a message. */
struct symbol *jk_look_up(struct parser *p);
bool jk_enter(struct parser *p); /* one bracket or block deeper; false: too deep */
void jk_leave(struct parser *p);
bool jk_is_type(const struct parser *p);
unsigned jk_take_type(struct parser *p);

/* --- parse_expression.c */
struct node *jk_parse_expression(struct parser *p);
/* lo .. hi, or hi alone where from_zero: *lo is NULL then. Returns the type that both have. */
unsigned jk_parse_range(struct parser *p, struct node **lo, struct node **hi, bool from_zero);
struct node *jk_parse_element(struct parser *p, struct symbol *s, struct source_location at);
/* A list of [e] behind the name of an array. */
struct node *jk_parse_extents(struct parser *p, struct symbol *s);
int jk_reduction_at(const struct parser *p); /* enum operation of the word, below 0 if it is none */

/* --- parse_statement.c */
struct node *jk_parse_statements(struct parser *p); /* up to }, which it leaves */
struct node *jk_parse_block(struct parser *p);      /* { ... }, with a scope of its own */
void jk_skip_statement(struct parser *p);
struct node *jk_parse_target(struct parser *p); /* a variable or an element that is written */
/* ( and an index and in; NULL: a mistake. */
struct symbol *jk_parse_loop_index(struct parser *p, const char *word);
void jk_parse_loop_body(struct parser *p, struct node *n);

/* --- parse_lanes.c */
struct node *jk_parse_tile(struct parser *p);
struct node *jk_parse_each(struct parser *p);
struct node *jk_parse_scan(struct parser *p);
struct node *jk_parse_sync(struct parser *p);
struct node *jk_parse_scatter(struct parser *p); /* NULL: none begins here */

#endif
