/* language/lower_quads.c - vectors of instances of which a card's lane has four neighbours, so that it loads and stores
 * 16 bytes at once.
 *
 * Four vectors that stand side by side have 128 instances. Which lane has which of them cannot show. Where every access
 * of lanes is to neighbouring words that lie at multiples of 16 bytes for every fourth instance, lane l takes instances
 * 4l to 4l + 3: what four instructions would load or store, 128 bytes each, one does. jit/ptx/scan.c joins them.
 */
#include "language/lower_memory.h"

enum { MAX_WEIGHT = 600 };

/* Words of quads: nothing but the lanes' own part may be odd. */
static bool fits_quads(const struct lower *l, const struct spot *at)
{
	if (at->s->kind == SYMBOL_PRIVATE || (at->linear ? !at->by : !at->varying))
		return true;
	if (!at->linear || at->by != 1 || jk_type_bytes(at->s->type) != 4 || at->ok.kind != VALUE_NONE)
		return false;
	for (unsigned k = 0; k < at->flat.n; k++) {
		const struct term *t = &at->flat.term[k];
		if (!l->quantity[t->quantity].lanes && t->by % QUAD)
			return false;
	}
	return true;
}

void jk_note_quads(struct lower *l, const struct spot *at, bool write, bool special)
{
	struct jk_kernel *k = (struct jk_kernel *)(uintptr_t)l->k;
	struct symbol *s = (struct symbol *)(uintptr_t)at->s;

	k->apart |= special || !fits_quads(l, at) || (write && (l->mask || (at->linear && !at->by)));
	if (s->kind != SYMBOL_ARRAY)
		return;
	s->rewritten |= special || l->loops || (!write && s->written == l->chunk + 1);
	if (write)
		s->written = l->chunk + 1;
}

/* Roughly how many operations a body without loops has; over MAX_WEIGHT where it has some. */
static unsigned straight_weight(const struct node *n)
{
	unsigned sum = 0;

	for (; n && sum <= MAX_WEIGHT; n = n->next) {
		if (n->kind == NODE_FOR || n->kind == NODE_WHILE)
			return MAX_WEIGHT + 1;
		sum += (n->kind == NODE_BUILTIN ? 9u : 1u) + straight_weight(n->a) + straight_weight(n->b) +
		       straight_weight(n->c) + straight_weight(n->d);
	}
	return sum;
}

bool jk_has_quads(const struct lower *l, unsigned vectors)
{
	const struct jk_kernel *k = l->k;
	const struct symbol *s = k->indices;

	if (!l->keeps || l->check || k->cooperates || k->apart || !s)
		return false;
	while (s->next)
		s = s->next;
	return s->first % QUAD == 0 &&
	       (k->block % (QUAD * l->lanes) == 0 || k->block >= (uint64_t)(s->behind - s->first)) &&
	       (vectors % QUAD == 0 || straight_weight(k->body) <= MAX_WEIGHT);
}

uint32_t jk_instances_at(struct lower *l, const struct symbol *s, uint16_t at, unsigned more, bool quads)
{
	if (quads) {
		const int64_t n = s->behind - s->first - (int64_t)(more + 1 - QUAD) * l->lanes;
		return jk_lower_quantity(l, QUANTITY_INSTANCE, s->number,
		                         jk_lower_emit(l, IR_sshri, at, 0, 0, LOG_QUAD), true, 0, n / QUAD - 1);
	}
	const uint16_t reg = s->first ? jk_lower_emit(l, IR_saddi, at, 0, 0, s->first) : at;
	return jk_lower_quantity(l, QUANTITY_INSTANCE, s->number, reg, true, s->first,
	                         s->behind - 1 - (int64_t)more * l->lanes);
}

void jk_store_quad(struct lower *l, unsigned type, uint16_t p, uint16_t x, int32_t disp)
{
	const uint16_t mask = l->some ? jk_lower_full_mask(l) : 0;

	x = jk_lower_copy(l, type == JK_F32 ? x : jk_lower_emit(l, IR_fbits, x, 0, 0, 0));
	ir_emit(l->ir, IR_fstore_s, 0, p, x, 0, ir_x(disp, 0, 4 * QUAD));
	if (mask)
		ir_where(l->ir, (ir_m){ mask });
}
