/* runtime/graph/source_conv.h - what a convolution in tiles is made of, for the two files that write one. */
#ifndef RUNTIME_GRAPH_SOURCE_CONV_H
#define RUNTIME_GRAPH_SOURCE_CONV_H

#include "runtime/graph/source_tile.h"

enum { CONV_DIMS = 2 };

struct space {
	uint64_t stride, low, dilation, input; /* low: with a sign */
	uint64_t in, window, out;
	uint64_t cut;              /* elements of a phase */
	uint64_t phase_step, step; /* elements to the next phase, and to the next element of a phase */
	uint64_t phases, max;      /* that taps meet; of a tap: the furthest element */
};

struct conv {
	const struct tensor_node *n;
	unsigned dims;
	struct space of[CONV_DIMS];
	uint64_t batches, groups, channels, each, taps; /* channels and results of a group */
	uint64_t channel;                               /* elements of a channel of the copy */
	bool by_rows;                                   /* vectors of a tile are of neighbouring rows */
	bool by_lines;                                  /* and the copy has channels between its lines */
	bool by_channels;                               /* they are channels of the result */
};

/* Where the input lies: elements from a line to the next, from a part of a line to the next, from a channel to the
 * next, and of a batch. */
struct conv_input {
	const char *array;
	uint64_t line, part, channel, batch;
};

struct conv conv_of(const struct tensor_graph *g, const struct tensor_node *n);

/* ---- source_channels.c */

/* Whether tiles whose lanes are channels are less work than that, in the units of tile_choose() for each element of the
 * depth; then *t becomes such a tile. */
bool channels_like(const struct tensor_graph *g, const struct conv *c, struct tile *t, uint64_t cost);
/* The input, or a copy that has what lies beside it, and channels between its lines, or between parts of them for so
 * many results each. So many elements behind it are read and do not count. */
struct conv_input conv_find_input(struct source *s, const struct conv *c, uint64_t each, uint64_t behind);
void source_conv_channels(struct source *s, struct conv *c, struct tile *t);

/* ---- source_depthwise.c */

/* Whether each channel has sums of its own, in a shape that a tile of its lines computes. */
bool depthwise_takes(const struct tensor_graph *g, const struct conv *c, unsigned lanes);
void source_conv_depthwise(struct source *s, const struct conv *c);

#endif
