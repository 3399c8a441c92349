/* graph/text_body.c - bodies of loops in texts: graphs in quotes, which may use the sizes of the text around them. */
#include <stdlib.h>
#include <string.h>

#include "graph/text.h"
#include "graph/text_lex.h"
#include "graph/users.h"

/* Those of the reader's sizes that the body declares. */
static size_t find_sizes(const struct text_reader *r, const char *text, size_t n, struct graph_size *out)
{
	const char *name[TEXT_LIST];
	size_t length[TEXT_LIST], found = graph_text_sizes(text, n, name, length, TEXT_LIST), sizes = 0;

	for (size_t k = 0; k < r->n_sizes; k++)
		for (size_t i = 0; i < found; i++)
			if (r->declared[k] && strlen(r->sizes[k].name) == length[i] &&
			    memcmp(r->sizes[k].name, name[i], length[i]) == 0) {
				out[sizes++] = r->sizes[k];
				break;
			}
	return found ? sizes : 0;
}

/* The body with numbers for sizes. */
static bool write_exact(const struct tensor_graph *g, struct attribute *a, struct error *err)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	bool ok = f != NULL;

	if (f) {
		graph_text_write(g, f, 0);
		ok = fclose(f) == 0 && text;
	}
	ok = ok ? attribute_make_text(a, a->name, text, bytes, err)
	        : error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	free(text);
	return ok;
}

bool text_body(struct text_reader *r, struct attribute *a, const char *text, size_t n)
{
	struct graph_size *sizes = calloc(r->n_sizes + 1, sizeof *sizes);
	const char *first;
	size_t length;
	struct tensor_graph g;
	bool ok = sizes || error_set(r->err, ERROR_MEMORY, "there is no memory for a graph");

	if (ok && graph_text_sizes(text, n, &first, &length, 1) == 0) {
		ok = attribute_make_text(a, a->name, text, n, r->err);
	} else if (ok && graph_text_read(&g, "body", text, n, sizes, find_sizes(r, text, n, sizes), r->err)) {
		ok = write_exact(&g, a, r->err);
		tensor_graph_free(&g);
	} else {
		ok = false;
	}
	free(sizes);
	return ok;
}
