/* language/lower_lanes.h - what reductions and scans share. */
#ifndef LANGUAGE_LOWER_LANES_H
#define LANGUAGE_LOWER_LANES_H

#include "language/lower.h"

/* Partial results of a reduction and elements of a row of a scan; elements of a part; vectors that the former are. */
enum { PARTIALS = 32, PART = 1024, MAX_VECTORS = PARTIALS / 8 };

uint16_t jk_constant_scalar(struct lower *l, int64_t v);
/* Lanes before the number n, which is a scalar. */
uint16_t jk_lanes_before(struct lower *l, uint16_t n);
/* An index of lanes: first + at + constant + lane, where at is a scalar, 0 for none. */
struct value jk_index_at(struct lower *l, const struct lanes_of *w, uint16_t at, int64_t constant);
/* Around what is done in lanes; the first one returns the depth of its loop (infer.c). */
unsigned jk_enter_lanes(struct lower *l, const struct node *n);
void jk_leave_lanes(struct lower *l);
/* How many times a loop's iteration is written, as a power of two: where its reads need not wait for each other. */
unsigned jk_log_copies(const struct lower *l, const struct node *body, int64_t iterations);
/* How many vectors a range may have that the kernel's instances keep; whether this one is kept. */
unsigned jk_kept_of(const struct lower *l);
bool jk_is_kept(const struct lower *l, const struct lanes_of *w);
/* What changes no result. */
struct value jk_identity(unsigned op, unsigned type);
/* The same, before the first element; of floats' min and max a value that a card's compiler does not know. */
struct value jk_beginning(struct lower *l, unsigned op, unsigned type);
struct value jk_combined(struct lower *l, const struct node *n, unsigned op, struct value a, struct value b);

#endif
