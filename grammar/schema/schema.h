/* grammar/schema/schema.h - JSON Schema (2020-12, and draft 4 to 2019-09 where they differ), read into a table of
 * nodes.
 *
 * Owns: what the keywords mean. A node holds what one schema object asks of a value by itself. It also lists other
 * nodes, which are applied to the same value, to its members, or to its items. Nodes are numbers; 0 is the schema
 * `true`.
 *
 * A keyword that is known and not done is refused with its JSON pointer; one that the standard does not have is a
 * comment, as the standard says. "format" is held where it can be: an unknown format asks for nothing.
 */
#ifndef GRAMMAR_SCHEMA_H
#define GRAMMAR_SCHEMA_H

#include <jansson.h>

#include "grammar/regex/automaton.h"
#include "grammar/schema/decimal.h"
#include "grammar/schema/interner.h"

/* Kinds of values. */
enum {
	JSON_IS_NULL = 1,
	JSON_IS_FALSE = 2,
	JSON_IS_TRUE = 4,
	JSON_IS_NUMBER = 8,
	JSON_IS_STRING = 16,
	JSON_IS_ARRAY = 32,
	JSON_IS_OBJECT = 64,
	JSON_IS_ANY = 127
};
enum { SCHEMA_TRUE = 0, SCHEMA_FALSE = 1, SCHEMA_NONE = UINT32_MAX /* the keyword is not there */ };
enum { COUNT_ANY = UINT32_MAX };

/* A keyword of our own, for a schema that is put into another one: with the value "own" it is a document of its own, in
 * which references, ids and anchors mean what they meant before, and which does not see what is around it; with
 * "first" references that lead nowhere in it are looked up around it. No map of properties has a text as its member, so
 * that a property of this name is none. */
#define SCHEMA_DOCUMENT "x-jitrun-document"

/* Strings are texts of a grammar as Lark writes them (lark.h). */
#define SCHEMA_LARK "x-lark"

/* A part of one of the arrays below. */
struct part {
	uint32_t at, n;
};
struct bounds {
	uint32_t min, max;
};

struct schema_node {
	uint8_t kinds; /* of values that are right */
	bool whole;    /* numbers must be */
	/* Strings: bounds of characters; of list[]: automata, all of which must accept. */
	struct bounds length;
	struct part texts;
	/* Numbers: decimals, SCHEMA_NONE where there is no such keyword; if numbers.n, one of those in list[]. */
	uint32_t minimum, maximum, multiple_of;
	bool more_than_minimum, less_than_maximum;
	struct part numbers;
	struct part unlike; /* of list[]: decimals that it must not be */
	/* Objects. */
	struct part properties; /* of member[], sorted by name */
	bool names_members;     /* by "properties", and it does not say whether there are others */
	bool closes;            /* then there are none but those that schemas beside it name (schema_closed.c) */
	bool counts_letter;     /* one_of are not the closed ones */
	bool applied_first;     /* in the text, schemas that are applied to the same value stand before "properties" */
	struct part patterns;   /* of pattern[] */
	uint32_t other;         /* for members that neither names: a node, SCHEMA_NONE: anything */
	uint32_t names;         /* for the names themselves */
	struct bounds members;
	struct part required;  /* of list[]: names */
	struct part dependent; /* of dependency[] */
	/* Arrays. */
	struct part first_items; /* of list[] */
	uint32_t items, contains;
	struct bounds length_of_array, n_contained;
	bool unique; /* items must differ */
	/* The same value. */
	struct part all_of, any_of, one_of; /* of list[] */
	uint32_t not_this, condition, then_this, else_this;
};

struct schema_member {
	uint32_t name; /* of name[] */
	uint32_t node;
	uint32_t nth; /* the member that the text has at this position, within the part */
};
struct schema_pattern {
	uint32_t automaton, node;
};
/* Where an object has the member `name`, it must have `needs` (a name), or be as `node` says; the other is
 * SCHEMA_NONE. */
struct schema_dependency {
	uint32_t name, needs, node;
};

struct schema {
	struct schema_node *node;
	uint32_t *list; /* nodes, automata and decimals, by number */
	struct schema_member *member;
	struct schema_pattern *pattern;
	struct schema_dependency *dependency;
	char **name;           /* in UTF-8; all different */
	struct interner names; /* their bytes, by number and one more */
	size_t *name_bytes;
	struct decimal *decimal;
	struct automaton **automaton;
	size_t n_nodes, n_list, n_members, n_patterns, n_dependencies, n_names, n_decimals, n_automata;
	size_t node_room, list_room, member_room, pattern_room, dependency_room, name_room, name_bytes_room,
		decimal_room, automaton_room;
	uint32_t root;
	bool compact; /* who writes is to use no white space: "x-guidance": {"whitespace_flexible": false} */
};

/* What a node asks of the member with that name by "properties"; SCHEMA_NONE: nothing. */
uint32_t schema_property(const struct schema *s, const struct schema_node *n, uint32_t name);
/* From the JSON text of a schema, which has n bytes; NULL with err, which names the location by a JSON pointer. */
enum {
	SCHEMA_FORMATS = 1, /* strings must have their "format", which the standard leaves open */
	SCHEMA_CLOSED = 2   /* objects with "properties" have no other members where they do not say */
};
struct schema *schema_open(const char *text, size_t n, unsigned flags, struct error *err);
void schema_close(struct schema *s);

#endif
