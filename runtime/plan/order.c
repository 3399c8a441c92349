/* runtime/plan/order.c - barriers and stages from the accesses that kernels' signatures say (order.h).
 *
 * An access is a range of bytes in a space: the device's memory at large, the pages or the states of one sequence. Two
 * ops of a stage may run at the same time, so none may touch what another one writes. A barrier goes in front of the
 * first op that does, and no earlier: the ops before it have had as much company as they can.
 */
#include "runtime/plan/order.h"

#include <assert.h>

/* Where bytes are counted from. Parameters are never written, so that no space is needed for them. */
enum space { SPACE_MEMORY, SPACE_OF_SEQUENCES };

struct access {
	uint64_t begin, end;
	uint32_t space;
	bool write;
};

/* Of an op at the most, and of a stage: when there are more, a barrier is set early. */
enum { OF_OP = PLAN_ARGS_MAX, OF_STAGE = 256 };

struct order {
	struct plan *p;
	uint64_t choices;
	size_t changing;              /* the first changing slot of the ops to come */
	struct access open[OF_STAGE]; /* of the ops since the last barrier */
	unsigned n;
};

static const struct plan_changing *changing_of(const struct order *o, const struct plan_op *op, const uint64_t *slot,
                                               bool pages)
{
	const struct plan *p = o->p;

	for (size_t i = o->changing; i < p->n_changing && p->changing[i].slot < op->arg + PLAN_ARGS_MAX; i++) {
		const struct plan_changing *c = &p->changing[i];
		if (pages ? c->what == PLAN_PAGES || c->what == PLAN_WINDOW_PAGES : c->slot == slot)
			return c;
	}
	return NULL;
}

/* Adds what one unit touches; choices: of how many columns data may choose. */
static void add_unit(struct kernel_extent *e, const struct key *key, const uint64_t *arg, unsigned slot, int64_t unit,
                     uint64_t choices)
{
	const struct kernel_use use = kernel_unit(key, arg, slot, unit);

	for (unsigned i = 0; i < KERNEL_SPANS && use.span[i].bytes; i++) {
		const struct kernel_span *s = &use.span[i];
		const uint64_t n = s->count ? s->count : use.access & KERNEL_SOME ? choices : 0;
		const uint64_t end = n ? s->at + (n - 1) * s->stride + s->bytes : 0;
		if (!n)
			continue;
		e->begin = s->at < e->begin ? s->at : e->begin;
		e->end = end > e->end ? end : e->end;
	}
}

/* Units lie in the order of what they touch, so that the first and the last one touch its ends. Tiles of attention may
 * be numbered from the last one, and one more may be asked for than there is: of them the first and the last two are
 * looked at. Records, of which there are as many as the context has chunks, are told apart by where the first chunk's
 * lie. (tests/runtime/plan_check.h looks at all units.) */
struct kernel_extent plan_touched(const struct key *key, const uint64_t *arg, unsigned slot, int64_t begin, int64_t end,
                                  uint64_t choices)
{
	const int64_t ends = key->kind == KEY_ATTENTION && key->tile_n > 1 ? 2 * (int64_t)key->kv_heads : 1;
	struct kernel_extent e = { UINT64_MAX, 0 };

	for (int64_t u = begin; u < end; u++) {
		if (u == begin + ends && u < end - ends)
			u = end - ends;
		add_unit(&e, key, arg, slot, u, choices);
	}
	return e.begin < e.end ? e : (struct kernel_extent){ 0, 0 };
}

/* What the op does with a slot. False: nothing that an order could matter to. */
static bool access_of(const struct order *o, const struct plan_op *op, unsigned slot, struct access *a)
{
	const struct key *key = &o->p->kernel[op->kernel].key;
	const struct kernel_use use = kernel_use(key, slot);
	const struct plan_changing *of = NULL;
	uint64_t base = op->arg[slot];

	if (!(use.access & KERNEL_UPDATE))
		return false;
	switch ((enum kernel_layout)use.layout) {
	case KERNEL_VECTOR:
	case KERNEL_PACKED:
	case KERNEL_STACK:
	case KERNEL_PICKED:
	case KERNEL_TABLE: assert(!(use.access & KERNEL_WRITE)); return false;
	case KERNEL_PAGES: of = changing_of(o, op, NULL, true); break;
	case KERNEL_STATE:
		of = changing_of(o, op, &op->arg[slot], false);
		base = of ? of->offset : base;
		break;
	default: break;
	}
	const struct kernel_extent e = plan_touched(key, op->arg, slot, op->begin, op->end, o->choices);
	*a = (struct access){ base + e.begin, base + e.end, SPACE_MEMORY, use.access & KERNEL_WRITE };
	if (of)
		a->space = SPACE_OF_SEQUENCES + of->sequence * (PLAN_STATE_BEHIND + 1) + (uint32_t)of->what;
	return e.begin < e.end;
}

static bool collide(const struct access *a, const struct access *b)
{
	return (a->write || b->write) && a->space == b->space && a->begin < b->end && b->begin < a->end;
}

/* Whether the op must wait for one that the open stage has. */
static bool must_wait(const struct order *o, const struct access *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < o->n; j++)
			if (collide(&a[i], &o->open[j]))
				return true;
	return o->n + n > OF_STAGE;
}

/* Whether the op must begin a stage whatever it touches: of a section, or where a chain begins or ends, or where units
 * are of other costs than those before. */
static bool stands_apart(const struct plan *p, size_t i, size_t section)
{
	const struct plan_op *op = &p->op[i], *before = op - 1;

	return p->section[section] == i || op->uneven != before->uneven || !op->fused_units != !before->fused_units;
}

static void set_barriers(struct order *o)
{
	struct plan *p = o->p;

	for (size_t i = 0, section = 1; i < p->n_ops; i++) {
		struct plan_op *op = &p->op[i];
		struct access a[OF_OP];
		unsigned n = 0;

		for (unsigned slot = 0; slot < op->n_args; slot++)
			n += access_of(o, op, slot, &a[n]);
		while (o->changing < p->n_changing && p->changing[o->changing].slot < op->arg + PLAN_ARGS_MAX)
			o->changing++;
		op->barrier = i + 1 == p->n_ops;
		if (i && (stands_apart(p, i, section) || must_wait(o, a, n))) {
			p->op[i - 1].barrier = true;
			o->n = 0;
		}
		while (section < p->n_sections && p->section[section] <= i)
			section++;
		for (unsigned j = 0; j < n; j++)
			o->open[o->n++] = a[j];
	}
}

/* A chain's steps wait for no others, so that barriers inside it end no stage. */
static void cut_stages(struct plan *p)
{
	p->stage[0] = 0;
	p->n_stages = 0;
	for (size_t i = 0; i < p->n_ops; i++) {
		const struct plan_op *op = &p->op[i];
		const bool last = i + 1 == p->n_ops, chained = !last && op->fused_units && op[1].fused_units;
		if (last || (op->barrier && !chained))
			p->stage[++p->n_stages] = (uint32_t)(i + 1);
	}
}

void plan_order(struct plan *p, uint64_t choices)
{
	struct order o = { .p = p, .choices = choices };

	set_barriers(&o);
	cut_stages(p);
}

bool plan_written_since(const struct plan *p, size_t first, uint64_t begin, uint64_t end, uint64_t choices)
{
	for (size_t i = first; i < p->n_ops; i++) {
		const struct plan_op *op = &p->op[i];
		const struct key *key = &p->kernel[op->kernel].key;
		for (unsigned slot = 0; slot < op->n_args; slot++) {
			const struct kernel_use use = kernel_use(key, slot);
			if (!(use.access & KERNEL_WRITE) || use.layout == KERNEL_PAGES || use.layout == KERNEL_STATE)
				continue;
			const struct kernel_extent e = plan_touched(key, op->arg, slot, op->begin, op->end, choices);
			if (op->arg[slot] + e.begin < end && begin < op->arg[slot] + e.end)
				return true;
		}
	}
	return false;
}
