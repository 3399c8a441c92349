/* graph/text_lex.h - the parts of a line of a graph's text: names, numbers, types. */
#ifndef GRAPH_TEXT_LEX_H
#define GRAPH_TEXT_LEX_H

#include "graph/text.h"

enum { TEXT_NAME = 100, TEXT_LIST = 64 };

/* The line that is read: at..end. */
struct text_reader {
	struct tensor_graph *g;
	const char *file, *at, *end;
	unsigned line;
	const struct graph_size *sizes;
	size_t n_sizes;
	bool *declared; /* of each size */
	struct error *err;
};

/* Says what was found and expected. Returns false. */
bool text_fail(struct text_reader *r, const char *expected);
void text_skip(struct text_reader *r); /* blanks */
bool text_take(struct text_reader *r, char c);
/* How long the name is that comes next; 0: none does. It is not taken. */
size_t text_name_length(struct text_reader *r);
bool text_name(struct text_reader *r, char out[TEXT_NAME + 1], const char *expected);
/* What strtod() or strtoll() is to read, which is not taken; false: nothing. */
bool text_number(struct text_reader *r, char out[64]);
/* 2*n*4 */
bool text_whole(struct text_reader *r, int64_t *out);
/* [1,2*n] */
bool text_list(struct text_reader *r, int64_t out[TEXT_LIST], uint32_t *n);
/* f32[n,4] */
bool text_type(struct text_reader *r, int *type, struct shape *s);

/* A body of a loop (text_body.c): an attribute of the text, in which sizes that it declares are numbers. */
bool text_body(struct text_reader *r, struct attribute *a, const char *text, size_t n);

#endif
