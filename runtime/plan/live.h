/* runtime/plan/live.h - where the values of a graph lie in memory.
 *
 * Owns: the bytes of every value, at offsets into one chunk that all plans of a session share. Two values have bytes in
 * common when everything that touches the one is over before anything begins that touches the other. What is over, the
 * graph's dependences say: between sections, and between a node and one that needs what it makes, every plan has a
 * barrier, whatever its tokens, its sequences and its device. So sharing bytes never makes an op wait, and offsets are
 * the same for all plans of a graph (tests/runtime/t_live.c).
 */
#ifndef RUNTIME_PLAN_LIVE_H
#define RUNTIME_PLAN_LIVE_H

#include "runtime/plan/graph.h"
#include "runtime/plan/plan.h"

/* What a value may lie there as. Turned: laid out anew for the matrices that read it (KEY_INTERLEAVE). */
enum plan_form {
	FORM_FLOATS,
	FORM_INT8,
	FORM_SCALES, /* of int8 */
	FORM_INTERLEAVED,
	FORM_INTERLEAVED_INT8,
	FORM_INTERLEAVED_SCALES,
	PLAN_FORMS,
	/* of a choice of experts: which, their shares, where slots lie when they are sorted, and groups of those */
	CHOICE_CHOSEN = 0,
	CHOICE_SHARES,
	CHOICE_POSITIONS,
	CHOICE_GROUPS
};
#define PLAN_NOWHERE UINT64_MAX

struct plan_layout {
	uint32_t tokens; /* capacity */
	bool adapted;    /* as plan_layout_options has it, and so */
	uint32_t shown;
	uint64_t bytes;
	uint32_t n_values;
	uint64_t (*at)[PLAN_FORMS];   /* by value: offsets, or PLAN_NOWHERE */
	uint64_t (*room)[PLAN_FORMS]; /* by value: bytes of that many tokens */
	graph_ref *same;              /* by value: the first of those that are made in its place, or itself */
	graph_ref stream, normed;     /* what the last section goes on from, and the rows behind its norm */
};

struct plan_layout_options {
	uint32_t tokens;
	bool f32_activations;
	bool adapted;   /* the graph has nodes for adapters */
	uint32_t shown; /* levels of pictures' features: those behind the first are added behind layers; 0: none */
	bool apart;     /* each value has bytes of its own, which stay as they are to the end of the pass */
};

/* Of a graph's values; the layout keeps nothing of it. False: err. */
bool plan_layout_of(struct plan_layout *l, const struct graph *g, const struct plan_layout_options *o,
                    struct error *err);
/* Of a model's. w may come from weights_describe(). */
bool plan_layout_open(struct plan_layout *l, const struct model_spec *s, const struct weights *w,
                      const struct plan_layout_options *o, struct error *err);
void plan_layout_close(struct plan_layout *l);
/* Where a pass with PLAN_ALL_NORMED leaves its rows. */
const float *plan_normed(const struct plan_buffers *b);

#endif
