/* grammar/schema/schema_parts.h - what the files that read a schema share: the reader, and how it grows the tables. */
#ifndef GRAMMAR_SCHEMA_PARTS_H
#define GRAMMAR_SCHEMA_PARTS_H

#include "grammar/schema/schema.h"

/* A schema object of the text, and where it stands. */
struct schema_location {
	const json_t *json;
	char *base;        /* the URI that references in it are relative to; shared, not owned */
	char *pointer;     /* owned; NULL until the node is asked for */
	uint32_t node;     /* SCHEMA_NONE until then */
	uint32_t document; /* of schema_reader.document[] */
};
/* What a reference can mean: the text itself is the first document, SCHEMA_DOCUMENT begins others. */
struct document_of_schema {
	bool old;       /* draft 7 and older: what stands beside a $ref is nothing */
	bool alone;     /* it does not see what is around it */
	uint32_t outer; /* the document around it, and the URI there */
	char *base;     /* shared, not owned */
};
struct schema_reader {
	struct schema *s;
	json_t *root;
	bool formats;                     /* are held */
	struct schema_location *location; /* sorted by json once the text was walked */
	size_t n_locations, location_room;
	const struct schema_location *named; /* that a reference was looked for in last */
	struct document_of_schema *document;
	size_t n_documents, document_room;
	char **base; /* owned */
	size_t n_bases, base_room;
	uint32_t *queue; /* locations whose nodes are still to be filled in */
	size_t n_queue, queue_room;
	const char *at;  /* the pointer of the schema object being read */
	const char *key; /* and its keyword */
	struct error *err;
};
/* Lists of a node that is being filled. */
struct numbers_list {
	uint32_t *p;
	size_t n, room;
};

/* Sets err to "the schema at POINTER/keyword: why"; returns false. */
bool schema_fail(struct schema_reader *r, const char *why);
bool schema_no_memory(struct schema_reader *r);
/* A new node that asks for nothing. SCHEMA_NONE: no memory. */
uint32_t schema_add_node(struct schema_reader *r);
bool schema_push(struct schema_reader *r, struct numbers_list *l, uint32_t number);
/* Appends the list to schema.list and frees it. */
bool schema_keep(struct schema_reader *r, struct numbers_list *l, struct part *kept);
uint32_t schema_add_automaton(struct schema_reader *r, struct automaton *a); /* SCHEMA_NONE: no memory, or a is NULL */
void schema_sort_members(struct schema *s, struct part p);
uint32_t schema_name(struct schema_reader *r, const char *name, size_t n);
uint32_t schema_decimal(struct schema_reader *r, const json_t *number);
uint32_t schema_keep_decimal(struct schema_reader *r, const struct decimal *d);
/* The node of a schema that stands in the text, queued if nobody asked before; or of true and false. */
bool schema_node_of(struct schema_reader *r, const json_t *json, uint32_t *node);

/* schema_location.c: finds all schema objects and their URIs; the location of one; where a reference leads. */
bool schema_find_locations(struct schema_reader *r);
struct schema_location *schema_location(const struct schema_reader *r, const json_t *json);
bool schema_resolve(struct schema_reader *r, const struct schema_location *from, const char *ref, const json_t **to);
/* schema_value.c: the node of the values that equal one of n. */
bool schema_values(struct schema_reader *r, const json_t *const *value, size_t n, uint32_t *node);
/* schema_format.c: the expression of a format; NULL: there is none. Whether it is one of the standard's. */
const char *schema_format(const char *name);
bool schema_format_known(const char *name);
/* A node that is being filled. Lists to which several keywords add are kept at the end. */
struct filling {
	uint32_t node;
	const json_t *json;
	const struct schema_location *location;
	struct numbers_list texts, all_of, names;
};
struct schema_keyword {
	const char *name;
	bool (*read)(struct schema_reader *r, struct filling *f, const json_t *value);
};
/* schema_scalars.c: keywords about numbers, strings and all values; the last one has no name. */
extern const struct schema_keyword schema_scalars[];
bool schema_count(struct schema_reader *r, const json_t *value, uint32_t *count);
bool schema_expression(struct schema_reader *r, const char *text, size_t n, bool anywhere, uint32_t *automaton);
/* schema_closed.c: closes what SCHEMA_CLOSED says. */
bool schema_close_objects(struct schema_reader *r);
/* schema_keywords.c: fills in a node. */
bool schema_fill(struct schema_reader *r, const struct schema_location *p);

#endif
