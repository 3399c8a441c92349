/* language/own.c - whether instances, and iterations of each, write what is theirs alone.
 *
 * Owns: the proof. Two accesses to one array, of which one writes, may reach the same element only from the same
 * instance and, inside of one each, from the same iteration. Subscripts are linear forms, so two of them meet where the
 * difference is 0: its terms are taken from the largest factor down, and each must be 0 because those that follow are
 * too small to make up for it (mixed radix), or cannot be made up for at all.
 */
#include <stdlib.h>

#include "language/lower.h"

/* by * d + ..., where d is any whole number between lo and hi. must: d has to be 0. */
struct unknown {
	int64_t by;
	wide lo, hi;
	bool must;
};
struct difference {
	wide constant;
	unsigned n;
	struct unknown unknown[4 * MAX_TERMS];
};

static bool is_instance(const struct quantity *q) { return q->kind == QUANTITY_INSTANCE; }

/* Unknowns with one factor that need not be 0 are one: their sum may be any number between the sums of their ends. */
static bool joins(struct difference *d, int64_t by, wide lo, wide hi)
{
	for (unsigned i = 0; i < d->n; i++) {
		struct unknown *u = &d->unknown[i];
		if (u->must || (u->by != by && u->by != -by))
			continue;
		u->lo += u->by == by ? lo : -hi;
		u->hi += u->by == by ? hi : -lo;
		return true;
	}
	return false;
}

static void add(struct difference *d, int64_t by, wide lo, wide hi, bool must)
{
	if (lo != hi && !must && joins(d, by, lo, hi))
		return;
	if (lo != hi)
		d->unknown[d->n++] = (struct unknown){ by, lo, hi, must };
	else
		d->constant += by * lo;
}

/* Of a term: whether it has the same value in both accesses, which are iterations of one each. */
static bool is_shared(const struct quantity *q, const struct access *a, bool same_instance)
{
	return same_instance && q->each != a->each;
}

/* The difference of two forms. same_instance: the two are iterations of one each in one instance. */
static void subtract(const struct lower *l, const struct access *a, const struct access *b, bool same_instance,
                     struct difference *d)
{
	bool matched[MAX_TERMS] = { false };

	*d = (struct difference){ .constant = (wide)a->form.constant - b->form.constant };
	for (unsigned i = 0; i < a->form.n; i++) {
		const struct quantity *q = &l->quantity[a->form.term[i].quantity];
		const int64_t by = a->form.term[i].by;
		const wide span = (wide)q->hi - q->lo;
		const bool must =
			same_instance ? q->kind == QUANTITY_EACH && q->id == a->each->symbol->number : is_instance(q);
		bool found = false;
		for (unsigned k = 0; k < b->form.n && !found; k++) {
			const struct quantity *r = &l->quantity[b->form.term[k].quantity];
			if (matched[k] || b->form.term[k].by != by || r->kind != q->kind || r->id != q->id ||
			    (q->kind == QUANTITY_OTHER && r != q))
				continue;
			const wide other = (wide)r->hi - r->lo;
			found = matched[k] = true;
			if (!is_shared(q, a, same_instance))
				add(d, by, -(span > other ? span : other), span > other ? span : other, must);
		}
		if (!found)
			add(d, by, q->lo, q->hi, must);
	}
	for (unsigned k = 0; k < b->form.n; k++) {
		const struct quantity *r = &l->quantity[b->form.term[k].quantity];
		if (!matched[k])
			add(d, -b->form.term[k].by, r->lo, r->hi,
			    same_instance ? r->kind == QUANTITY_EACH && r->id == b->each->symbol->number
			                  : is_instance(r));
	}
}

static wide magnitude(int64_t by) { return by < 0 ? -(wide)by : by; }

static int by_factor(const void *x, const void *y)
{
	const wide a = magnitude(((const struct unknown *)x)->by), b = magnitude(((const struct unknown *)y)->by);

	return a > b ? -1 : a < b;
}

static wide floor_divide(wide a, wide b)
{
	const wide q = a / b;

	return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* Whether the difference is 0 only where all that must be is 0. */
static bool holds(struct difference *d)
{
	qsort(d->unknown, d->n, sizeof d->unknown[0], by_factor);
	for (unsigned k = 0; k < d->n; k++) {
		const struct unknown *u = &d->unknown[k];
		wide lo = d->constant, hi = d->constant; /* of the rest */
		for (unsigned i = k + 1; i < d->n; i++) {
			const struct unknown *v = &d->unknown[i];
			const wide x = v->by * v->lo, y = v->by * v->hi;
			lo += x < y ? x : y;
			hi += x < y ? y : x;
		}
		/* by * value = -rest */
		const wide by = u->by > 0 ? u->by : -(wide)u->by;
		wide first = -floor_divide(hi, by), last = floor_divide(-lo, by);
		if (u->by < 0) {
			const wide swap = first;
			first = -last;
			last = -swap;
		}
		first = first < u->lo ? u->lo : first;
		last = last > u->hi ? u->hi : last;
		if (first > last)
			return true; /* they never meet */
		if (first != last) {
			bool rest_must = u->must;
			for (unsigned i = k + 1; i < d->n; i++)
				rest_must |= d->unknown[i].must;
			return !rest_must;
		}
		if (u->must && first != 0)
			return false;
		d->constant += u->by * first;
	}
	return true;
}

/* Whether every index that tells instances, or iterations, apart is in the form: else all of them have the same
 * element. */
static bool has_all(const struct lower *l, const struct access *a, bool same_instance)
{
	for (const struct symbol *s = l->k->indices; s && !same_instance; s = s->next) {
		bool found = s->behind - s->first <= 1;
		for (unsigned k = 0; k < a->form.n; k++) {
			const struct quantity *q = &l->quantity[a->form.term[k].quantity];
			found |= is_instance(q) && q->id == s->number;
		}
		if (!found)
			return false;
	}
	if (!same_instance)
		return true;
	for (unsigned k = 0; k < a->form.n; k++) {
		const struct quantity *q = &l->quantity[a->form.term[k].quantity];
		if (q->kind == QUANTITY_EACH && q->id == a->each->symbol->number)
			return true;
	}
	return false;
}

static bool apart(const struct lower *l, const struct access *a, const struct access *b, bool same_instance)
{
	struct difference d;

	if (!a->linear || !b->linear || !has_all(l, a, same_instance) || !has_all(l, b, same_instance))
		return false;
	subtract(l, a, b, same_instance, &d);
	return holds(&d);
}

static void complain(struct lower *l, const struct access *a, const struct access *b, bool iterations)
{
	const struct access *at = a->write ? a : b, *other = at == a ? b : a;
	const char *who = iterations ? "iterations of each" : "instances";

	if (!at->linear)
		jk_message_add(l->m, at->at,
		               "it is not proven that %s write different elements of %.60s; use scatter_distinct or an "
		               "atomic",
		               who, at->array->name->text);
	else if (other->at.line == at->at.line && other->at.column == at->at.column)
		jk_message_add(l->m, at->at,
		               "several %s may write the same element of %.60s; use its index in the subscript, or "
		               "an atomic",
		               who, at->array->name->text);
	else
		jk_message_add(l->m, at->at,
		               "%s may write elements of %.60s that others %s at line %u; write to another array", who,
		               at->array->name->text, other->write ? "write" : "read", other->at.line);
}

static bool same_form(const struct lower *l, const struct access *a, const struct access *b)
{
	if (a->linear != b->linear || a->form.n != b->form.n || a->form.constant != b->form.constant ||
	    a->each != b->each || a->write != b->write || a->at.line != b->at.line || a->at.column != b->at.column)
		return false;
	for (unsigned k = 0; k < a->form.n; k++) {
		const struct quantity *q = &l->quantity[a->form.term[k].quantity],
				      *r = &l->quantity[b->form.term[k].quantity];
		if (a->form.term[k].by != b->form.term[k].by || q->kind != r->kind || q->id != r->id ||
		    q->lo != r->lo || q->hi != r->hi)
			return false;
	}
	return true;
}

static bool check_pair(struct lower *l, const struct access *a, const struct access *b)
{
	if (a->array != b->array || (!a->write && !b->write))
		return true;
	if (a->atomic || b->atomic) {
		if (a->atomic == b->atomic)
			return true;
		jk_message_add(l->m, a->atomic ? b->at : a->at,
		               "%.60s is changed by an atomic at line %u; nothing else may reach it in this "
		               "kernel",
		               a->array->name->text, (a->atomic ? a : b)->at.line);
		return false;
	}
	if (a->exempt && b->exempt)
		return true;
	/* a tile belongs to its instance */
	if (a->array->kind != SYMBOL_TILE && l->k->instances > 1 && !apart(l, a, b, false)) {
		complain(l, a, b, false);
		return false;
	}
	if (a->each && a->each == b->each && !apart(l, a, b, true)) {
		complain(l, a, b, true);
		return false;
	}
	return true;
}

bool jk_own_check(struct lower *l)
{
	enum { MAX = 400 }; /* forms that are looked at in pairs */
	uint32_t n = 0;

	for (uint32_t k = 0; k < l->n_access; k++) {
		bool known = false;
		for (uint32_t i = n; i-- > 0 && !known;)
			known = same_form(l, &l->access[i], &l->access[k]);
		if (known)
			continue;
		if (n == MAX) {
			jk_message_add(l->m, l->access[k].at,
			               "the kernel reaches what it writes in more than %d ways; split it", MAX);
			return false;
		}
		l->access[n++] = l->access[k];
	}
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i <= k; i++)
			if (!check_pair(l, &l->access[i], &l->access[k]))
				return false;
	return true;
}
