/* programs/jitk/jitk_example.h - the examples that jitk has in it: their texts, their inputs, and how many launches. */
#ifndef PROGRAMS_JITK_EXAMPLE_H
#define PROGRAMS_JITK_EXAMPLE_H

#include "programs/jitk/jitk.h"

/* What an array or scalar has where --in does not say it. Word i is the number behind state i of splitmix64. */
enum example_input {
	EXAMPLE_NUMBER,     /* `offset`, everywhere */
	EXAMPLE_WORDS,      /* u32: the upper 32 bits of word i */
	EXAMPLE_UPPER,      /* f32: 24 bits of those as a fraction, times `scale`, and `offset` */
	EXAMPLE_LOWER,      /* the same of the lower 32 bits of word 1000000 + i */
	EXAMPLE_PERMUTATION /* i32: that of Perlin's noise, again and again */
};
struct example_values {
	const char *name;
	enum example_input input;
	double scale, offset;
};

enum { EXAMPLE_CONSTANTS = 3, EXAMPLE_VALUES = 6 };
struct example {
	const char *name, *line;                  /* line: what it computes */
	const char *kernel;                       /* NULL: the only one of the file */
	const char *constants[EXAMPLE_CONSTANTS]; /* "n=1000", where --const does not say it */
	struct example_values values[EXAMPLE_VALUES];
	/* For arrays that are none of those; false: err. *done: it was one. */
	bool (*fill)(struct jitk_array *a, bool *done, struct error *err);
	/* Of more than one launch: the arrays that change places after each (third: NULL where two do), and how many
	 * launches there are. now becomes third, third next, and next now. */
	const char *now, *next, *third;
	long steps;
	long (*count_steps)(const struct jitk_arrays *a); /* NULL: `steps`, or what --steps says */
	bool (*before_step)(jit_launch *l, long step, jit_error *err);
	void (*print)(const struct jitk_arrays *a, long steps); /* NULL: the arrays as run prints them */
};
extern const struct example example_list[];
extern const size_t example_count;

/* The text, as the build puts it into the program. */
struct example_text {
	const char *name;
	const unsigned char *text;
	size_t bytes;
};
extern const struct example_text example_texts[];

/* jitk_example_fill.c */
bool example_fill(const struct example *x, struct jitk_array *a, bool *done, struct error *err);
bool example_fill_stencil(struct jitk_array *a, bool *done, struct error *err);
/* jitk_snn.c */
bool example_fill_snn(struct jitk_array *a, bool *done, struct error *err);
void example_print_snn(const struct jitk_arrays *a, long steps);

#endif
