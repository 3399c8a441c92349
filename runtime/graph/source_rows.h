/* runtime/graph/source_rows.h - the text that computes a row, for kernels of rows and of attention. */
#ifndef RUNTIME_GRAPH_SOURCE_ROWS_H
#define RUNTIME_GRAPH_SOURCE_ROWS_H

#include "runtime/graph/partition_rows.h"
#include "runtime/graph/source.h"

/* Declares the tiles of a row. */
void source_row_tiles(struct source *s, const struct row_trace *t);
/* Computes the row whose number is `i`. Its last node's element number `j` goes to `to`. */
void source_row(struct source *s, const struct row_trace *t, const char *to);

#endif
