/* language/lower_memory.h - what the files about elements of arrays share. */
#ifndef LANGUAGE_LOWER_MEMORY_H
#define LANGUAGE_LOWER_MEMORY_H

#include "language/lower.h"

/* An element of an array, for the lanes that ask. */
struct spot {
	const struct symbol *s;
	const struct node *n;
	bool linear, varying; /* one form for all subscripts; lanes may ask for different elements */
	struct linear flat;
	int64_t by; /* elements from a lane to the next one, of a form */
	struct value sub[JK_MAX_DIMS];
	struct value ok; /* whether it is there; VALUE_NONE: proven */
};

/* --- lower_rows.c: by the type of elements. n: lanes from the first on, 0 for all; m: a mask, 0 for all. */
uint16_t jk_load_lanes(struct lower *l, unsigned type, uint16_t p, int32_t disp, unsigned n, uint16_t m);
void jk_store_lanes(struct lower *l, unsigned type, uint16_t p, uint16_t v, int32_t disp, unsigned n, uint16_t m);
uint16_t jk_gather(struct lower *l, const struct spot *at, uint16_t p, uint16_t i, int32_t disp, uint16_t m);
void jk_scatter(struct lower *l, unsigned type, uint16_t p, uint16_t i, uint16_t v, int32_t disp, uint16_t m);

/* --- lower_ahead.c. Binding notes which elements lanes read side by side, behind where the indices say. p + disp:
 * where the element lies. */
void jk_note_stream(struct jk_kernel *k, struct symbol *s, int64_t constant);
void jk_fetch_ahead(struct lower *l, const struct spot *at, uint16_t p, int32_t disp);

/* --- lower_quads.c. Binding notes what an access says about quads, and about reads of what is written. */
void jk_note_quads(struct lower *l, const struct spot *at, bool write, bool special);
/* One of the four words that a lane has at p + disp, 16 bytes behind those of the lane before. */
void jk_store_quad(struct lower *l, unsigned type, uint16_t p, uint16_t x, int32_t disp);

/* --- lower_fault.c */
void jk_note_fault(struct lower *l, const struct spot *at);

#endif
