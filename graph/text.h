/* graph/text.h - graphs as text: what people read and write, and what dumps are.
 *
 * A statement a line, # begins a comment:
 *
 *     graph perceptron
 *     size n
 *     input x f32[n,4]
 *     input w f32[4,2]
 *     h = dot x w left=[1] right=[0]
 *     half = constant f32[] 0.5
 *     b = broadcast half shape=[n,2] axes=[]
 *     y = mul h b
 *     output y
 *
 * A name stands for the value that its last line gave it. Sizes are numbers that the reader is given; where a dimension
 * or a number of an attribute is expected, products of sizes and numbers may stand: 2*n*4.
 */
#ifndef GRAPH_TEXT_H
#define GRAPH_TEXT_H

#include <stdio.h>

#include "graph/graph.h"

struct graph_size {
	const char *name;
	uint64_t value;
};

/* Reads a graph into g, which is initialised here and to be freed by the caller if this is true. file: for messages,
 * which name the line. sizes: must have all that the text declares, and no others. Text is hostile. */
bool graph_text_read(struct tensor_graph *g, const char *file, const char *text, size_t bytes,
                     const struct graph_size *sizes, size_t n_sizes, struct error *err);
/* Adds the statements of a text to a graph that is there. All sizes are declared, and it need not have outputs. False:
 * err, and the graph is as it was. */
bool graph_text_add(struct tensor_graph *g, const char *file, const char *text, size_t bytes,
                    const struct graph_size *sizes, size_t n_sizes, struct error *err);
/* Names of sizes that the text declares, at most `most`; returns how many. They point into the text, and end at
 * length[i]. */
size_t graph_text_sizes(const char *text, size_t bytes, const char *name[], size_t length[], size_t max);

/* Adds a node whose operation and attributes stand in a text: "reduce_sum axes=[1]". 0: err. */
tensor_value graph_text_node(struct tensor_graph *g, const char *text, const tensor_value *operand, size_t n,
                             const struct graph_size *sizes, size_t n_sizes, struct error *err);

/* constants_max: elements of a constant that are written; of one with more stands "..." behind them, and the text
 * cannot be read back. 0: all are written. */
void graph_text_write(const struct tensor_graph *g, FILE *out, uint64_t constants_max);
/* A number as the text has it. */
void graph_text_number(char out[40], int type, union number x);

#endif
