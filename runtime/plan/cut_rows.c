/* runtime/plan/cut_rows.c - see cut_rows.h.
 *
 * The ops are gone through once, in their order. For each rank there is a set of the bytes that it has as they should
 * be: all at first, for what no op writes is the host's or a pad of zeros. An op that some ranks compute a part of
 * takes the other parts out of their sets.
 */
#include "runtime/plan/cut_rows.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/plan/cut_bits.h"
#include "runtime/plan/cut_units.h"

enum { EACH = 4 /* bytes that a bit stands for */ };

struct cutting {
	const struct plan *plan;
	const struct cut_shares *shares;
	const struct cut_space *space;
	size_t n_spaces;
	uint64_t first_bit[CUT_SPACES_MAX], words;
	uint64_t *have; /* [rank][words] */
	uint64_t *missing;
	bool others_miss;             /* another rank than 0 */
	struct cut_units_list *units; /* of an op, by rank */
	struct cut_units_of_plan about;
	struct cut_rows *out;
	size_t op_room, stage_room, exchange_room;
	bool failed;
};

static uint64_t *have(const struct cutting *c, unsigned rank) { return c->have + rank * c->words; }

/* ---- the bytes that units touch */

/* What is done with each range; false ends it. */
typedef bool (*visit_fn)(struct cutting *c, unsigned rank, uint64_t bit, uint64_t n);

static bool visit(struct cutting *c, unsigned rank, uint64_t base, const struct kernel_span *s, size_t space,
                  visit_fn fn)
{
	const uint64_t end = c->space[space].begin + c->space[space].bytes;

	for (uint64_t i = 0; i < s->count; i++) {
		const uint64_t at = base + s->at + i * s->stride, last = at + s->bytes < end ? at + s->bytes : end;
		if (at >= last)
			break;
		const uint64_t from = (at - c->space[space].begin) / EACH,
			       to = (last - c->space[space].begin + EACH - 1) / EACH;
		if (!fn(c, rank, c->first_bit[space] + from, to - from))
			return false;
	}
	return true;
}

static bool joins(const struct kernel_span *a, const struct kernel_span *b)
{
	return b->at == a->at + a->bytes && b->count == a->count &&
	       (a->count == 1 || (b->stride == a->stride && a->bytes + b->bytes <= a->stride));
}

static bool same(const struct kernel_span *a, const struct kernel_span *b)
{
	return a->at == b->at && a->bytes == b->bytes && a->count == b->count &&
	       (a->count == 1 || a->stride == b->stride);
}

/* Neighbouring units touch neighbouring bytes, or the same ones: these are visited together. */
static bool visit_slot(struct cutting *c, unsigned rank, const struct plan_op *op, unsigned slot, size_t space,
                       struct cut_run r, visit_fn fn)
{
	const struct key *key = &c->plan->kernel[op->kernel].key;
	struct kernel_span open[KERNEL_SPANS] = { { 0, 0, 0, 0 } };

	for (int64_t u = r.begin; u < r.end; u++) {
		const struct kernel_use use = kernel_unit(key, op->arg, slot, u);
		for (unsigned i = 0; i < KERNEL_SPANS && use.span[i].bytes; i++) {
			struct kernel_span s = use.span[i];
			s.count = s.count ? s.count : use.access & KERNEL_SOME ? c->about.choices : 0;
			if (!s.count || (open[i].bytes && same(&open[i], &s)))
				continue;
			if (open[i].bytes && joins(&open[i], &s)) {
				open[i].bytes += s.bytes;
				continue;
			}
			if (open[i].bytes && !visit(c, rank, op->arg[slot], &open[i], space, fn))
				return false;
			open[i] = s;
		}
	}
	for (unsigned i = 0; i < KERNEL_SPANS; i++)
		if (open[i].bytes && !visit(c, rank, op->arg[slot], &open[i], space, fn))
			return false;
	return true;
}

/* Of those slots that are used so and point into the memory that is looked at. */
static bool visit_op(struct cutting *c, unsigned rank, const struct plan_op *op, uint32_t access, struct cut_run r,
                     visit_fn fn)
{
	const struct key *key = &c->plan->kernel[op->kernel].key;

	for (unsigned slot = 0; slot < op->n_args; slot++) {
		const struct kernel_use use = kernel_use(key, slot);
		if (!(use.access & access) || use.layout == KERNEL_PAGES || use.layout == KERNEL_STATE)
			continue;
		for (size_t i = 0; i < c->n_spaces; i++)
			if (op->arg[slot] - c->space[i].begin < c->space[i].bytes &&
			    !visit_slot(c, rank, op, slot, i, r, fn))
				return false;
	}
	return true;
}

static bool is_there(struct cutting *c, unsigned rank, uint64_t bit, uint64_t n)
{
	return cut_bits_all(have(c, rank), bit, n);
}

static bool add_missing(struct cutting *c, unsigned rank, uint64_t bit, uint64_t n)
{
	c->others_miss |= cut_bits_add_missing(c->missing, have(c, rank), bit, n) && rank != 0;
	return true;
}

static bool lose(struct cutting *c, unsigned rank, uint64_t bit, uint64_t n)
{
	(void)rank;
	for (unsigned r = 0; r < c->shares->ranks; r++)
		cut_bits_clear(have(c, r), bit, n);
	return true;
}

static bool get(struct cutting *c, unsigned rank, uint64_t bit, uint64_t n)
{
	cut_bits_set(have(c, rank), bit, n);
	return true;
}

/* ---- what is written of the part */

static bool make_room(struct cutting *c, void *list, size_t n, size_t *room, size_t each)
{
	void *old, *more;

	memcpy(&old, list, sizeof old);
	if (n < *room)
		return true;
	const size_t larger = *room ? 2 * *room : 256;
	if (!(more = realloc(old, larger * each))) {
		c->failed = true;
		return false;
	}
	memcpy(list, &more, sizeof more);
	*room = larger;
	return true;
}

/* The ops from the last stage on are one more. */
static void end_stage(struct cutting *c)
{
	struct plan *p = &c->out->part;

	if (p->n_ops == (p->n_stages ? p->stage[p->n_stages] : 0) ||
	    !make_room(c, &p->stage, p->n_stages + 2, &c->stage_room, sizeof *p->stage))
		return;
	p->stage[0] = 0;
	p->stage[++p->n_stages] = (uint32_t)p->n_ops;
}

static void put_ops(struct cutting *c, const struct plan_op *op)
{
	const struct cut_units_list *own = &c->units[c->shares->own];
	struct plan *p = &c->out->part;

	for (size_t i = 0; i < own->n && make_room(c, &p->op, p->n_ops, &c->op_room, sizeof *p->op); i++) {
		struct plan_op *to = &p->op[p->n_ops++];
		*to = *op;
		to->begin = own->run[i].begin;
		to->end = own->run[i].end;
		to->fused_units = 0;
		to->barrier = false;
	}
}

/* The first rank that has a byte gives it. */
static unsigned giver(const struct cutting *c, uint64_t bit)
{
	unsigned r = 0;

	while (r + 1 < c->shares->ranks && !(have(c, r)[bit / 64] >> bit % 64 & 1))
		r++;
	return r;
}

static uint64_t address_of(const struct cutting *c, uint64_t bit, uint64_t *left)
{
	size_t i = c->n_spaces - 1;

	while (bit < c->first_bit[i])
		i--;
	*left = (c->space[i].bytes + EACH - 1) / EACH - (bit - c->first_bit[i]);
	return c->space[i].begin + (bit - c->first_bit[i]) * EACH;
}

/* Counts the ranges of missing bytes by who gives them, and with `to` writes them down. */
static void list_missing(const struct cutting *c, struct cut_exchange *x, size_t next[CUT_RANKS_MAX],
                         struct cut_range *to)
{
	for (uint64_t bit = 0, end, left; bit < c->words * 64; bit = end) {
		end = bit + 1;
		if (!c->missing[bit / 64]) {
			end = bit - bit % 64 + 64;
			continue;
		}
		if (!(c->missing[bit / 64] >> bit % 64 & 1))
			continue;
		const unsigned r = giver(c, bit);
		const uint64_t at = address_of(c, bit, &left);
		while (end - bit < left && c->missing[end / 64] >> end % 64 & 1 && giver(c, end) == r)
			end++;
		if (to)
			to[next[r]] = (struct cut_range){ (uint8_t *)(uintptr_t)at, (end - bit) * EACH };
		else
			x->bytes[r] += (end - bit) * EACH;
		next[r]++;
	}
}

static void put_exchange(struct cutting *c)
{
	const unsigned ranks = c->shares->ranks;
	size_t next[CUT_RANKS_MAX] = { 0 };
	struct cut_rows *out = c->out;
	uint64_t all = 0;

	end_stage(c);
	if (!make_room(c, &out->exchange, out->n_exchanges, &c->exchange_room, sizeof *out->exchange))
		return;
	struct cut_exchange *x = &out->exchange[out->n_exchanges];
	*x = (struct cut_exchange){ .stage = (uint32_t)out->part.n_stages, .to_first = !c->others_miss };
	list_missing(c, x, next, NULL);
	for (unsigned r = 0; r < ranks; r++) {
		x->of[r + 1] = x->of[r] + next[r];
		next[r] = x->of[r];
		all += x->bytes[r];
	}
	if (!(x->range = malloc((x->of[ranks] + 1) * sizeof *x->range))) {
		c->failed = true;
		return;
	}
	out->n_exchanges++;
	out->largest = all > out->largest ? all : out->largest;
	list_missing(c, x, next, x->range);
	for (unsigned r = 0; r < (x->to_first ? 1 : ranks); r++)
		for (uint64_t i = 0; i < c->words; i++)
			have(c, r)[i] |= c->missing[i];
}

/* What any rank misses for its units is exchanged: what they read, or also what they write. */
static void exchange_for(struct cutting *c, const struct plan_op *op, uint32_t access)
{
	bool any = false;

	memset(c->missing, 0, c->words * sizeof *c->missing);
	c->others_miss = false;
	for (unsigned r = 0; r < c->shares->ranks; r++)
		for (size_t i = 0; i < c->units[r].n; i++)
			visit_op(c, r, op, access, c->units[r].run[i], add_missing);
	for (uint64_t i = 0; i < c->words && !any; i++)
		any = c->missing[i] != 0;
	if (any)
		put_exchange(c);
}

/* ---- ops */

static void all_units(struct cutting *c, const struct plan_op *op)
{
	for (unsigned r = 0; r < c->shares->ranks; r++) {
		c->units[r].n = 0;
		cut_units_add(&c->units[r], op->begin, op->end);
	}
}

/* The units of which each rank has what they read; whether that is all of them, together. */
static bool units_of_what_is_there(struct cutting *c, const struct plan_op *op)
{
	const int64_t n = op->end - op->begin;
	uint8_t *done = calloc((size_t)n + 1, 1);
	bool all = done != NULL;

	for (unsigned r = 0; done && r < c->shares->ranks; r++) {
		struct cut_units_list *l = &c->units[r];
		l->n = 0;
		if (visit_op(c, r, op, KERNEL_READ, (struct cut_run){ op->begin, op->end }, is_there)) {
			cut_units_add(l, op->begin, op->end);
			memset(done, 1, (size_t)n);
			continue;
		}
		for (int64_t u = op->begin; u < op->end; u++)
			if (visit_op(c, r, op, KERNEL_READ, (struct cut_run){ u, u + 1 }, is_there)) {
				cut_units_add(l, u, u + 1);
				done[u - op->begin] = 1;
			}
	}
	for (int64_t u = 0; all && u < n; u++)
		all = done[u];
	c->failed |= !done;
	free(done);
	return all;
}

static void take_written(struct cutting *c, const struct plan_op *op)
{
	const unsigned ranks = c->shares->ranks;

	for (unsigned r = 0; r < ranks; r++)
		for (size_t i = 0; i < c->units[r].n; i++)
			visit_op(c, r, op, KERNEL_WRITE, c->units[r].run[i], lose);
	for (unsigned r = 0; r < ranks; r++)
		for (size_t i = 0; i < c->units[r].n; i++)
			visit_op(c, r, op, KERNEL_WRITE, c->units[r].run[i], get);
}

/* Whether it puts logits of some columns in the place of what is there: those whose adapters have an output matrix. */
static bool replaces_some(const struct cutting *c, const struct plan_op *op)
{
	if (c->plan->kernel[op->kernel].key.kind != KEY_ADAPT_DOWN)
		return false;
	for (size_t i = 0; i < c->n_spaces; i++)
		if (c->space[i].for_first && op->arg[ADAPT_DOWN_OUT] - c->space[i].begin < c->space[i].bytes)
			return true;
	return false;
}

static bool cut_op(struct cutting *c, const struct plan_op *op, struct error *err)
{
	if (replaces_some(c, op)) {
		for (unsigned r = 0; r < c->shares->ranks; r++)
			c->units[r].n = 0;
		cut_units_add(&c->units[0], op->begin, op->end);
		exchange_for(c, op, KERNEL_UPDATE);
		put_ops(c, op);
		take_written(c, op);
		return true;
	}
	switch (cut_units_by(&c->about, op, c->units)) {
	case CUT_UNITS_GIVEN: break;
	case CUT_UNITS_ALL: all_units(c, op); break;
	case CUT_UNITS_BY_INPUT:
		if (!units_of_what_is_there(c, op))
			all_units(c, op);
		break;
	case CUT_UNITS_NONE: {
		char text[192];
		return error_set(err, ERROR_UNSUPPORTED, "split rows: the kernel %s cannot be cut by rows",
		                 key_text(&c->plan->kernel[op->kernel].key, text, sizeof text));
	}
	}
	exchange_for(c, op, KERNEL_READ);
	put_ops(c, op);
	take_written(c, op);
	return true;
}

/* What rank 0 reads of the result. */
static void give_result(struct cutting *c)
{
	bool any = false;

	memset(c->missing, 0, c->words * sizeof *c->missing);
	c->others_miss = false;
	for (size_t i = 0; i < c->n_spaces; i++)
		if (c->space[i].for_first)
			add_missing(c, 0, c->first_bit[i], c->space[i].bytes / EACH);
	if (c->plan->n_ops) {
		const struct plan_op *last = &c->plan->op[c->plan->n_ops - 1];
		visit_op(c, 0, last, KERNEL_WRITE, (struct cut_run){ last->begin, last->end }, add_missing);
	}
	for (uint64_t i = 0; i < c->words && !any; i++)
		any = c->missing[i] != 0;
	if (any)
		put_exchange(c);
}

/* A chain's ops become stages of their own. */
static bool cut_ops(struct cutting *c, struct error *err)
{
	const struct plan *p = c->plan;

	for (size_t s = 0; s < p->n_stages; s++) {
		for (uint32_t i = p->stage[s]; i < p->stage[s + 1] && !c->failed; i++) {
			if (!cut_op(c, &p->op[i], err))
				return false;
			if (p->op[i].fused_units)
				end_stage(c);
		}
		end_stage(c);
	}
	if (p->logits != PLAN_NO_LOGITS)
		give_result(c);
	return true;
}

static bool open_sets(struct cutting *c)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < c->n_spaces; i++) { /* each begins a word */
		c->first_bit[i] = bits;
		bits += (c->space[i].bytes / EACH + 64) / 64 * 64;
	}
	c->words = bits / 64;
	c->have = malloc(c->shares->ranks * c->words * sizeof *c->have);
	c->missing = malloc((c->words + 1) * sizeof *c->missing);
	c->units = calloc(c->shares->ranks, sizeof *c->units);
	c->out = calloc(1, sizeof *c->out);
	if (!c->have || !c->missing || !c->units || !c->out)
		return false;
	memset(c->have, 0xff, c->shares->ranks * c->words * sizeof *c->have);
	for (size_t i = 0; i < c->n_spaces; i++)
		if (c->space[i].of_first)
			for (unsigned r = 1; r < c->shares->ranks; r++)
				cut_bits_clear(have(c, r), c->first_bit[i], (c->space[i].bytes + EACH - 1) / EACH);
	c->out->part = *c->plan;
	c->out->part.op = NULL;
	c->out->part.stage = NULL;
	c->out->part.n_ops = c->out->part.n_stages = 0;
	return true;
}

struct cut_rows *cut_rows_open(const struct plan *p, const struct model_spec *s, struct weights *w,
                               const struct cut_shares *shares, const struct cut_space *space, size_t n_spaces,
                               uint64_t choices, struct error *err)
{
	struct cutting c = { .plan = p, .shares = shares, .space = space, .n_spaces = n_spaces };
	bool ok = open_sets(&c) && cut_units_open(&c.about, p, s, w, shares, choices);

	c.failed = !ok;
	ok = ok && cut_ops(&c, err);
	for (unsigned r = 0; c.units && r < shares->ranks; r++) {
		c.failed |= c.units[r].failed;
		free(c.units[r].run);
	}
	free(c.units);
	free(c.have);
	free(c.missing);
	cut_units_close(&c.about);
	if (c.failed)
		error_set(err, ERROR_MEMORY, "no memory to cut a plan of %zu operations", p->n_ops);
	if (ok && !c.failed)
		return c.out;
	cut_rows_close(c.out);
	return NULL;
}

void cut_rows_close(struct cut_rows *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_exchanges; i++)
		free(c->exchange[i].range);
	free(c->exchange);
	free(c->part.op);
	free(c->part.stage);
	free(c);
}
