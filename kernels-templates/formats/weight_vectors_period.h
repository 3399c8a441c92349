/* kernels-templates/formats/weight_vectors_period.h - what the files that read lane-contiguous weights share: a period
 * on its way. */
#ifndef KERNELS_WEIGHT_VECTORS_PERIOD_H
#define KERNELS_WEIGHT_VECTORS_PERIOD_H

#include "kernels-templates/formats/weight_vectors.h"

enum { VECTOR = 16, LANES = 32 };

/* A period on its way. */
struct period {
	struct weight_reader *r;
	unsigned units, step;          /* step: units of one */
	uint32_t bytes;                /* of the stream */
	bool walks[WEIGHT_MAX_ARRAYS]; /* each step takes whole vectors of this array and loads them itself, from
	                                  `from`, unless all are to be loaded at once */
	ir_a from[WEIGHT_MAX_ARRAYS];
	ir_i stream[VECTORS_PERIOD_UNITS * 32]; /* words loaded at the period's start, by number; r 0: none */
	struct weight_vectors vectors;
	bool one_head; /* spans begin with heads, so that a period has one */
	ir_i head[2];  /* the word of halves of the first unit's head, and of the last unit's */
	ir_s in_head;  /* the first unit's number in its head; in use unless one_head */
};

/* --- weight_vectors_pack.c */

uint32_t weight_vectors_array_bytes(const struct weight_array *a);
/* The first array of the stream: not one that heads keep. */
unsigned weight_vectors_first_array(const struct weight_format *f);

/* --- weight_vectors_load.c */

/* A head's numbers of six bits as bytes: eight of A, eight of B. */
void weight_vectors_numbers(struct ir *b, const ir_i word[4], ir_i out[4]);
/* before: units of the period before this step's, where there are several; u: the unit in the step. */
ir_i weight_vectors_unit_head(const struct period *p, ir_s before, unsigned u);
/* The bytes of the stream before array i, for each unit. */
uint32_t weight_vectors_unit_stream(const struct weight_format *f, unsigned i);
/* Whether steps take whole vectors of array i in a period of so many units, so that they may load them themselves. */
bool weight_vectors_steps_walk(const struct period *p, unsigned i, unsigned units);
/* first: number of the period's first unit in the row, in use when there are heads. */
void weight_vectors_begin_period(struct period *p, ir_s first);
/* The same for a period of which the kernel knows only when it runs whether it is whole or the last one, of `rest`;
 * units: how many it has. */
void weight_vectors_begin_either(struct period *p, ir_s is_whole, unsigned rest, ir_s units, ir_s first);
void weight_vectors_begin_step(struct period *p);
void weight_vectors_end_step(struct period *p);

#endif
