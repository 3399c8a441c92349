/* vision/parts.h - what the files of a tower share. */
#ifndef VISION_PARTS_H
#define VISION_PARTS_H

#include "graph/graph.h"
#include "runtime/graph/executable.h"
#include "vision/tower.h"

/* A tensor on the device. */
struct tower_weight {
	uint16_t slot;
	uint32_t layer; /* or the number of a merger */
	bool bias;
	enum dtype type;
	struct shape shape; /* of its elements */
	jit_buffer *buffer;
};

enum { TOWER_PARTS = 256 }; /* the most that attention is made in */

/* What is copied for each picture: the first inputs of a graph. */
enum tower_input {
	INPUT_PATCHES,
	INPUT_POSITIONS,
	INPUT_COSINE,
	INPUT_SINE,
	INPUT_WINDOW, /* of each position in a window its row, 0 where the window ends before */
	INPUT_BACK,   /* of each row its position in a window */
	INPUT_INSIDE, /* of each position whether it has a row; no input where all do */
	TOWER_INPUTS
};

/* How a picture's patches lie in windows, of which those at the edges may be smaller. */
struct windows {
	uint32_t side, across, n, each; /* n windows, with `each` positions */
};
struct windows windows_of(const struct tower_spec *s, uint32_t height, uint32_t width);

struct tower_graph {
	struct tensor_graph g;
	bool has[TOWER_INPUTS]; /* they come first, in this order */
	uint32_t copied;
	uint32_t *weight; /* of each input behind those: its number among the tower's */
	size_t weights, weight_room;
};

/* The executable of pictures of so many patches; with windows, of these sides. */
struct tower_pass {
	uint32_t height, width;
	uint64_t used; /* when, by the tower's count */
	struct tower_graph graph;
	struct executable *x;
};
enum { TOWER_PASSES = 4 };

struct tower {
	struct tower_spec spec;
	struct model files;
	jit_compute *compute;
	const char *prefix[2]; /* of the encoder's and of the projector's tensors */
	size_t prefix_length[2];
	struct tower_weight *weight;
	size_t weights, weight_room;
	float *positions; /* the table of positions, row by row; NULL: no table */
	struct tower_pass pass[TOWER_PASSES];
	uint64_t count;
};

/* weights.c: finds out what tensors' names begin with. */
bool tower_find_prefixes(struct tower *t, struct error *err);
/* The number of a tensor, which is read at the first call. dims: the shape that it must have, 0 for a dimension that
 * the file decides. -1: err. */
int64_t tower_weight_of(struct tower *t, enum tower_slot slot, uint32_t layer, bool bias, const struct shape *s,
                        struct error *err);
/* With TOWER_CLIPPED, between what a matrix's operand and its result are cut: minimum and maximum of each; those that
 * the file leaves out are infinite. */
bool tower_bounds(struct tower *t, enum tower_slot slot, uint32_t layer, double bounds[4], struct error *err);
/* All of a tensor as floats; NULL: err. */
float *tower_read_floats(struct tower *t, enum tower_slot slot, uint64_t n, struct error *err);
/* Behind the first graph: that no tensor of the tower is left over. */
bool tower_check_left_over(const struct tower *t, struct error *err);
void tower_free_weights(struct tower *t);

/* arrange.c: whether a tensor's bytes lie otherwise in the file than they are computed with; those of frame `frame`,
 * which begin at `in`, become part of out. */
bool arrange_due(const struct tower_spec *s, enum tower_slot slot);
void arrange(const struct tower_spec *s, enum tower_slot slot, uint32_t frame, const uint8_t *in, uint64_t bytes,
             uint8_t *out);

/* draw.c. False: err; tower_graph_free() is due in any case. */
bool tower_draw(struct tower_graph *to, struct tower *t, uint32_t height, uint32_t width, struct error *err);
void tower_graph_free(struct tower_graph *g);

/* prepare.c. height, width: of the picture in patches. Patches stand block by block: those that become one token are
 * neighbours. Every function fills what the picture's inputs have. */
void prepare_patches(const struct tower_spec *s, const struct tower_pixels *p, const float *tile, uint32_t height,
                     uint32_t width, float *out);
void prepare_positions(const struct tower_spec *s, const float *table, uint32_t height, uint32_t width, float *out);
void prepare_rotation(const struct tower_spec *s, uint32_t height, uint32_t width, float *cosine, float *sine);
/* inside may be NULL. */
void prepare_windows(const struct tower_spec *s, uint32_t height, uint32_t width, int32_t *row, int32_t *back,
                     int32_t *inside);

#endif
