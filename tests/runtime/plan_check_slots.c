/* tests/runtime/plan_check_slots.c - which bytes the launches of a plan touch: by the signatures of their kernels
 * (kernels-templates/signature.h), which t_signature holds against kernels that run. What must lie in those bytes is
 * the other files' to say; that they do so for each slot is seen to here.
 */
#include <string.h>

#include "tests/runtime/plan_checker.h"

static enum form form_of(struct kernel_use use)
{
	const bool panel = use.layout == KERNEL_PANELS;

	if (use.layout == KERNEL_PAGES)
		return CACHED;
	if (use.layout == KERNEL_RECORDS)
		return RECORDED;
	switch ((enum kernel_type)use.type) {
	case KERNEL_INT8: return panel ? PANEL_BYTES : PLAIN_BYTES;
	case KERNEL_BLOCK: return panel ? PANEL_SCALES : PLAIN_SCALES;
	case KERNEL_HALF: return NARROWED;
	default: return panel ? PANEL_FLOATS : PLAIN_FLOATS;
	}
}

/* Slots that hold something of the model's values, or change from run to run: each must be judged. */
static bool is_judged(enum kernel_layout layout)
{
	switch (layout) {
	case KERNEL_ROWS:
	case KERNEL_PANELS:
	case KERNEL_PAGES:
	case KERNEL_RECORDS:
	case KERNEL_ROUTES:
	case KERNEL_TABLE:
	case KERNEL_STATE:
	case KERNEL_POSITION: return true;
	default: return false;
	}
}

static void learn(struct known *k, const struct key *key)
{
	memset(k, 0, sizeof *k);
	k->key = *key;
	if (key->kind == KEY_NONE || key->kind >= KEY_PROGRAM) /* which no plan has */
		return;
	for (unsigned slot = 0; slot < template_args(key); slot++) {
		const struct kernel_use use = kernel_use(key, slot);
		k->slot[slot].access = use.access;
		k->slot[slot].form = (uint8_t)form_of(use);
		k->counts |= (uint32_t)(use.access & KERNEL_VALUE && use.type == KERNEL_COUNT) << slot;
		if (!is_judged((enum kernel_layout)use.layout))
			continue;
		k->read |= (uint32_t)((use.access & (KERNEL_READ | KERNEL_VALUE)) != 0) << slot;
		k->written |= (uint32_t)((use.access & KERNEL_WRITE) != 0) << slot;
	}
}

/* What a launch's counts say: on these, on the units and on the key depends where it touches a slot. */
static uint64_t values_of(const struct checker *c)
{
	uint64_t sum = c->p->tokens;

	for (unsigned slot = 0; slot < c->op->n_args; slot++)
		if (c->known->counts >> slot & 1)
			sum = sum * 1000003 + c->op->arg[slot];
	return sum;
}

void begin_slots(struct checker *c, const struct plan_op *op, int64_t begin, int64_t end)
{
	enum { KNOWN = 64 };
	static struct known known[KNOWN];
	const struct key *key = &c->p->kernel[op->kernel].key;

	c->known = &known[op->kernel % KNOWN];
	if (memcmp(&c->known->key, key, sizeof *key) != 0)
		learn(c->known, key);
	c->op = op;
	c->begin = begin;
	c->end = end;
	c->values = values_of(c);
	c->read = c->written = 0;
}

void end_slots(struct checker *c)
{
	const uint32_t read = c->known->read & ~c->read, written = c->known->written & ~c->written;
	unsigned slot = 0;

	if (c->wrong || !(read | written))
		return;
	while (!((read | written) >> slot & 1))
		slot++;
	plan_complain(c, "nobody says what it should %s as %s", read >> slot & 1 ? "read" : "leave",
	              kernel_arg(&c->known->key, slot)->name);
}

/* ---- where */

/* Adds what a unit touches; of rows that data choose, all slots'. False: nothing. */
static bool add_unit(struct checker *c, unsigned slot, int64_t unit, struct kernel_extent *e, uint64_t *stride)
{
	const struct kernel_use use = kernel_unit(&c->known->key, c->op->arg, slot, unit);
	const uint64_t slots = (uint64_t)c->p->tokens * c->s->spec.experts_used;
	bool some = false;

	for (unsigned i = 0; i < KERNEL_SPANS && use.span[i].bytes; i++) {
		const struct kernel_span *s = &use.span[i];
		const uint64_t n = s->count ? s->count : use.access & KERNEL_SOME ? slots : 0;
		if (!n)
			continue;
		const uint64_t last = s->at + (n - 1) * s->stride + s->bytes;
		e->begin = s->at < e->begin ? s->at : e->begin;
		e->end = last > e->end ? last : e->end;
		*stride = s->stride;
		some = true;
	}
	return some;
}

/* Both ends touch the first and the last bytes, whichever way units are numbered; tiles past the last token touch
 * nothing. */
static void find_ends(struct checker *c, unsigned slot, struct kernel_extent *e, uint64_t *stride)
{
	enum { ENDS = 2 };
	unsigned n = 0;

	*e = (struct kernel_extent){ UINT64_MAX, 0 };
	*stride = 0;
	for (int64_t u = c->begin; u < c->end && n < ENDS; u++)
		n += add_unit(c, slot, u, e, stride);
	n = 0;
	for (int64_t u = c->end; u > c->begin && n < ENDS; u--)
		n += add_unit(c, slot, u - 1, e, stride);
}

struct range range_of(struct checker *c, unsigned slot, uint64_t stride)
{
	struct known_slot *s = &c->known->slot[slot];

	if (s->begin != c->begin || s->end != c->end || s->values != c->values) {
		find_ends(c, slot, &s->extent, &s->stride);
		s->begin = c->begin;
		s->end = c->end;
		s->values = c->values;
	}
	return (struct range){ c->op->arg[slot] + s->extent.begin,
		               s->extent.begin < s->extent.end ? s->extent.end - s->extent.begin : 0,
		               stride ? stride : s->stride };
}

static void touch_range(struct checker *c, unsigned slot, bool write, struct range range, struct content like,
                        uint64_t first)
{
	const struct known_slot *known = &c->known->slot[slot];

	plan_require(c, known->access & (write ? KERNEL_WRITE : KERNEL_READ),
	             "slot: its signature does not touch it so");
	*(write ? &c->written : &c->read) |= 1u << slot;
	like.form = known->form;
	like.stride = range.stride;
	like.origin = c->op->arg[slot] - first * range.stride;
	if (!c->wrong)
		touch(c, write, range.at, range.bytes, like);
}

void touches(struct checker *c, unsigned slot, bool write, struct content like, uint64_t first, uint64_t stride)
{
	if (!c->wrong)
		touch_range(c, slot, write, range_of(c, slot, stride), like, first);
}

void writes_between(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first)
{
	if (c->wrong)
		return;
	struct range range = range_of(c, slot, 0);
	const uint64_t before = (range.at - c->op->arg[slot]) % range.stride, bytes = before + range.bytes;

	range.at -= before;
	range.bytes = (bytes + range.stride - 1) / range.stride * range.stride;
	touch_range(c, slot, true, range, (struct content){ .value = value, .of = of }, first);
}

void reads_wide(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first, uint64_t stride)
{
	touches(c, slot, false, (struct content){ .value = value, .of = of }, first, stride);
}

void writes_wide(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first, uint64_t stride)
{
	touches(c, slot, true, (struct content){ .value = value, .of = of }, first, stride);
}

void reads(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first)
{
	reads_wide(c, slot, value, of, first, 0);
}

void writes(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first)
{
	writes_wide(c, slot, value, of, first, 0);
}

void judged(struct checker *c, unsigned slot)
{
	c->read |= 1u << slot;
	c->written |= 1u << slot;
}

void given(struct checker *c, unsigned slot, const void *expected, const char *what)
{
	plan_require(c, c->op->arg[slot] == plan_address(expected), what);
	judged(c, slot);
}
