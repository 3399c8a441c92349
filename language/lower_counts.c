/* language/lower_counts.c - small arrays that atomic additions alone reach, such as a histogram: a call of the kernel
 * adds to its own copy in the frame, and the copy to the array when it ends.
 *
 * An atomic addition to memory that others may reach takes a CPU some 20 cycles, one to the frame 1 or 2. On a card,
 * lanes of all multiprocessors would queue for a few elements. Sums of integers come out alike in every order, so
 * nothing shows.
 */
#include "language/lower.h"

/* A card's frame is its multiprocessor's own memory, which all waves there share. */
enum { MAX_BYTES = 16 << 10, CARD_BYTES = 2 << 10, MANY = 64 /* instances for each element */ };

static bool has_copy(const struct lower *l, const struct symbol *s)
{
	const uint64_t elements = s->elements;

	return (l->quick || l->card) && !l->check && s->dims && (s->atomic == OP_ADD || s->atomic == OP_OR) &&
	       (s->type == JK_I32 || s->type == JK_U32) && elements &&
	       elements * 4 <= (l->card ? CARD_BYTES : MAX_BYTES) && l->k->instances / MANY >= elements;
}

static uint32_t open_loop(struct lower *l, const struct symbol *s, uint16_t *iteration)
{
	const int64_t vectors = ((int64_t)s->elements + l->lanes - 1) >> l->log_lanes;
	const uint16_t n = jk_lower_emit(l, IR_sconst, 0, 0, 0, vectors);

	*iteration = ir_emit(l->ir, IR_loop, 0, n, 0, 0, 0);
	jk_lower_check(l);
	return jk_lower_scope(l);
}

static void close_loop(struct lower *l, uint32_t scope)
{
	jk_lower_unscope(l, scope);
	ir_emit(l->ir, IR_endloop, 0, 0, 0, 0, 0);
	jk_lower_check(l);
}

static uint16_t vector_at(struct lower *l, uint16_t base, uint16_t iteration)
{
	return jk_lower_emit(l, IR_aadd, base, jk_lower_emit(l, IR_sshli, iteration, 0, 0, l->log_lanes + 2), 0, 0);
}

void jk_lower_counts_begin(struct lower *l)
{
	for (const struct symbol *s = l->k->parameters; s; s = s->next) {
		uint16_t iteration;
		if (!has_copy(l, s))
			continue;
		l->counted[s->number] = l->address[s->number];
		l->address[s->number] = ir_local(l->ir, (int64_t)(s->elements * 4 + 4 * l->lanes)).r;
		jk_lower_check(l);
		const uint32_t scope = open_loop(l, s, &iteration);
		const uint16_t zero = jk_lower_emit(l, IR_fconst, 0, 0, 0, 0),
			       at = vector_at(l, l->address[s->number], iteration);
		ir_emit(l->ir, IR_fstore, 0, at, zero, 0, ir_x(0, 0, 0));
		close_loop(l, scope);
	}
}

/* Elements behind the last one are 0 and take no part. */
void jk_lower_counts_end(struct lower *l)
{
	for (const struct symbol *s = l->k->parameters; s; s = s->next) {
		uint16_t iteration;
		if (!l->counted[s->number])
			continue;
		const uint32_t scope = open_loop(l, s, &iteration);
		const uint16_t at = vector_at(l, l->address[s->number], iteration);
		const uint16_t v = ir_emit(l->ir, IR_iload, 0, at, 0, 0, ir_x(0, 0, 0));
		const uint16_t first = jk_lower_emit(l, IR_sshli, iteration, 0, 0, l->log_lanes);
		const uint16_t index = jk_lower_emit(l, IR_iadd, jk_lower_emit(l, IR_isplat, first, 0, 0, 0),
		                                     jk_lower_emit(l, IR_ilane, 0, 0, 0, 0), 0, 0);
		const uint16_t some = jk_lower_emit(l, IR_ine, v, jk_lower_emit(l, IR_iconst, 0, 0, 0, 0), 0, 0);
		ir_emit(l->ir, s->atomic == OP_ADD ? IR_iatomic_add : IR_iatomic_or, 0, l->counted[s->number], index, v,
		        0);
		ir_where(l->ir, (ir_m){ some });
		close_loop(l, scope);
	}
}
