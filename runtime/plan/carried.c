/* runtime/plan/carried.c - what is carried from one part of a plan to the next (cut.h).
 *
 * Owns: sets of bytes. Which bytes ops read and write, their signatures say. What a part reads before it writes it, and
 * a part before has written, is carried; so whatever a family of models hands from layer to layer is found, be it the
 * stream alone or more.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/plan/cut.h"
#include "runtime/plan/live.h"
#include "runtime/plan/order.h"

struct interval {
	uint64_t begin, end;
};

/* In order, none touching the next. */
struct set {
	struct interval *of;
	size_t n, room;
	bool failed;
};

static void insert(struct set *s, size_t at, struct interval i)
{
	if (s->n == s->room) {
		const size_t room = s->room ? 2 * s->room : 64;
		struct interval *more = realloc(s->of, room * sizeof *more);
		if (!more) {
			s->failed = true;
			return;
		}
		s->of = more;
		s->room = room;
	}
	memmove(s->of + at + 1, s->of + at, (s->n - at) * sizeof *s->of);
	s->of[at] = i;
	s->n++;
}

static void add(struct set *s, struct interval i)
{
	size_t at = 0, end;

	if (i.begin >= i.end)
		return;
	while (at < s->n && s->of[at].end < i.begin)
		at++;
	for (end = at; end < s->n && s->of[end].begin <= i.end; end++) {
		i.begin = s->of[end].begin < i.begin ? s->of[end].begin : i.begin;
		i.end = s->of[end].end > i.end ? s->of[end].end : i.end;
	}
	if (end > at) {
		s->of[at] = i;
		memmove(s->of + at + 1, s->of + end, (s->n - end) * sizeof *s->of);
		s->n -= end - at - 1;
	} else {
		insert(s, at, i);
	}
}

/* What of an interval is not in `without`. */
static void add_rest(struct set *to, struct interval i, const struct set *without)
{
	for (size_t k = 0; k < without->n && i.begin < i.end; k++) {
		const struct interval w = without->of[k];
		if (w.end <= i.begin)
			continue;
		if (w.begin >= i.end)
			break;
		add(to, (struct interval){ i.begin, w.begin });
		i.begin = w.end;
	}
	add(to, i);
}

static void add_common(struct set *to, const struct set *a, const struct set *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++) {
			const struct interval x = a->of[i], y = b->of[k];
			add(to,
			    (struct interval){ x.begin > y.begin ? x.begin : y.begin, x.end < y.end ? x.end : y.end });
		}
}

/* ---- what ops touch of the values' memory */

struct values {
	const struct plan *plan;
	struct interval all; /* of addresses */
	uint64_t choices;
};

static struct interval touched(const struct values *v, const struct plan_op *op, unsigned slot)
{
	const struct key *key = &v->plan->kernel[op->kernel].key;
	const uint64_t at = op->arg[slot];

	if (at < v->all.begin || at >= v->all.end)
		return (struct interval){ 0, 0 };
	const struct kernel_extent e = plan_touched(key, op->arg, slot, op->begin, op->end, v->choices);
	return (struct interval){ at + e.begin, at + e.end < v->all.end ? at + e.end : v->all.end };
}

static void add_ops(struct set *to, const struct values *v, size_t from, size_t end, uint32_t access,
                    const struct set *without)
{
	for (size_t i = from; i < end; i++) {
		const struct plan_op *op = &v->plan->op[i];
		for (unsigned slot = 0; slot < op->n_args; slot++)
			if (kernel_use(&v->plan->kernel[op->kernel].key, slot).access & access)
				add_rest(to, touched(v, op, slot), without);
	}
}

/* Reads before writes, stage by stage: ops of a stage do not wait for each other. */
static void add_wanted(struct set *wanted, struct set *made, const struct values *v, uint32_t from)
{
	const struct set none = { 0 };
	const struct plan *p = v->plan;

	for (size_t s = 0; s < p->n_stages; s++) {
		if (p->stage[s] < from)
			continue;
		const bool chain = p->op[p->stage[s]].fused_units != 0;
		for (uint32_t i = p->stage[s]; chain && i < p->stage[s + 1]; i++) {
			add_ops(wanted, v, i, i + 1, KERNEL_READ, made);
			add_ops(made, v, i, i + 1, KERNEL_WRITE, &none);
		}
		if (chain)
			continue;
		add_ops(wanted, v, p->stage[s], p->stage[s + 1], KERNEL_READ, made);
		add_ops(made, v, p->stage[s], p->stage[s + 1], KERNEL_WRITE, &none);
	}
}

static bool take(struct cut_carried *out, const struct set *common, struct error *err)
{
	*out = (struct cut_carried){ .range = calloc(common->n + 1, sizeof *out->range), .n = common->n };
	if (!out->range)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu ranges", common->n);
	for (size_t i = 0; i < common->n; i++) {
		const struct interval c = common->of[i];
		out->range[i] = (struct cut_range){ (uint8_t *)(uintptr_t)c.begin, c.end - c.begin };
		out->bytes += c.end - c.begin;
	}
	return true;
}

bool cut_carried(const struct plan *p, const struct plan_buffers *b, uint64_t choices, uint32_t op,
                 struct cut_carried *out, struct error *err)
{
	const uint64_t begin = (uintptr_t)b->values;
	const struct values v = { p, { begin, begin + b->layout->bytes }, choices };
	struct set written = { 0 }, made = { 0 }, wanted = { 0 }, common = { 0 };
	const struct set none = { 0 };

	add_ops(&written, &v, 0, op, KERNEL_WRITE, &none);
	add_wanted(&wanted, &made, &v, op);
	add_common(&common, &written, &wanted);
	const bool failed = written.failed || made.failed || wanted.failed || common.failed,
		   ok = failed ? error_set(err, ERROR_MEMORY, "no memory to cut a plan of %zu operations", p->n_ops)
	                       : take(out, &common, err);
	free(written.of);
	free(made.of);
	free(wanted.of);
	free(common.of);
	return ok;
}

void cut_carried_close(struct cut_carried *c)
{
	free(c->range);
	*c = (struct cut_carried){ 0 };
}
