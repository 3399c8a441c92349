/* language/lower_loop.c - for and while. */
#include "language/lower.h"

static void enter(struct lower *l, const struct node *n)
{
	struct loop_state *loop = &l->loop[l->loops];

	if (l->loops == sizeof l->loop / sizeof *l->loop)
		jk_lower_fail(l, n->at, "loops nest too deep");
	*loop = (struct loop_state){ .node = n };
	if (n->varying) {
		const uint16_t active = jk_lower_full_mask(l);
		loop->live = jk_lower_variable(l, IR_TYPE_m, active ? active : jk_lower_all_lanes(l));
		l->mask = loop->live;
		l->control++;
	}
	loop->control = l->control;
	l->loops++;
}

static void leave(struct lower *l, const struct node *n, uint16_t mask)
{
	l->loops--;
	l->control -= n->varying;
	l->mask = mask;
}

static unsigned depth_of(const struct lower *l) { return (l->k->cooperates ? 1 : 2) + l->loops; }

static void body(struct lower *l, const struct node *n)
{
	const uint32_t scope = jk_lower_scope(l);
	const uint16_t mask = l->mask;

	jk_lower_statements(l, n->d);
	l->mask = mask;
	jk_lower_unscope(l, scope);
}

static uint16_t open_loop(struct lower *l, uint16_t count)
{
	const uint16_t t = ir_emit(l->ir, IR_loop, 0, count, 0, 0, 0);

	jk_lower_check(l);
	return t;
}

static void close_loop(struct lower *l)
{
	ir_emit(l->ir, IR_endloop, 0, 0, 0, 0, 0);
	jk_lower_check(l);
}

static void keep_lanes(struct lower *l, uint16_t condition)
{
	const uint16_t live = l->loop[l->loops - 1].live;

	jk_lower_assign(l, live, jk_lower_emit(l, IR_mand, live, condition, 0, 0));
	const uint16_t none = jk_lower_emit(l, IR_cnot, jk_lower_emit(l, IR_any, live, 0, 0, 0), 0, 0, 0);
	ir_emit(l->ir, IR_break, 0, none, 0, 0, 0);
	jk_lower_check(l);
}

/* Cards count iterations in 32 bits with a sign. */
static void check_iterations(struct lower *l, const struct node *n, int64_t max)
{
	if (max > INT32_MAX)
		jk_lower_fail(l, n->at, "a loop of more than 2^31 - 1 iterations: not yet");
}

/* --- while */

void jk_lower_while(struct lower *l, const struct node *n)
{
	const bool is_unsigned = type_is_unsigned(n->b->type);
	const int64_t max = is_unsigned && n->b->bits > INT64_MAX ? INT64_MAX : (int64_t)n->b->bits;
	const uint16_t mask = l->mask;
	const uint64_t iterations = l->iterations;

	if (max <= 0)
		return;
	check_iterations(l, n, max);
	enter(l, n);
	jk_lower_hoist(l, n->a, depth_of(l));
	jk_lower_hoist(l, n->d, depth_of(l));
	const uint16_t count = jk_lower_emit(l, IR_sconst, 0, 0, 0, max);
	open_loop(l, count);
	const uint32_t scope = jk_lower_scope(l);
	const struct value c = jk_lower_expression(l, n->a);
	if (n->varying) {
		keep_lanes(l, jk_lower_to_mask(l, &c));
	} else {
		const uint16_t ends = jk_lower_emit(l, IR_cnot, jk_lower_to_condition(l, &c), 0, 0, 0);
		ir_emit(l->ir, IR_break, 0, ends, 0, 0, 0);
	}
	body(l, n);
	jk_lower_unscope(l, scope);
	close_loop(l);
	leave(l, n, mask);
	l->iterations = iterations;
}

/* --- for, with ends that all lanes have */

static bool has_break(const struct node *list)
{
	for (; list; list = list->next)
		if (list->kind == NODE_BREAK || (list->kind == NODE_IF && (has_break(list->b) || has_break(list->c))) ||
		    (list->kind == NODE_COMPOUND && has_break(list->a)))
			return true;
	return false;
}

bool jk_lower_for_is_plain(const struct node *n) { return !n->varying && !has_break(n->d); }

struct range {
	struct value lo, hi;
	int64_t step, max; /* max: of iterations */
	bool known;        /* max is how many there are */
	uint16_t count;
};

/* An index that is lo + step * (form). */
static void set_index(struct lower *l, const struct node *n, const struct range *r, const struct linear *iteration)
{
	struct linear f = r->lo.linear;
	struct value v;

	if (jk_linear_add(&f, iteration, r->step)) {
		v = jk_value_linear(l, n->symbol->type, &f);
	} else {
		struct linear offset = { 0 };
		jk_linear_add(&offset, iteration, r->step);
		const uint16_t a = jk_lower_scalar(l, &r->lo.linear), b = jk_lower_scalar(l, &offset);
		v = jk_value_scalar(l, n->symbol->type, jk_lower_emit(l, IR_sadd, a, b, 0, 0), (int64_t)r->lo.lo,
		                    (int64_t)r->hi.hi);
	}
	/* however the ends came about, the index lies between them */
	if (v.lo < r->lo.lo)
		v.lo = r->lo.lo;
	if (v.hi > r->hi.hi - 1)
		v.hi = r->hi.hi - 1;
	jk_lower_remember_symbol(l, n->symbol, &v);
}

static void find_range(struct lower *l, const struct node *n, struct range *r)
{
	r->lo = jk_lower_expression(l, n->a);
	r->hi = jk_lower_expression(l, n->b);
	r->step = n->c ? (int64_t)n->c->bits : 1;
	if (r->lo.kind != VALUE_LINEAR)
		jk_lower_to_scalar(l, &r->lo, n->at);
	if (r->hi.kind != VALUE_LINEAR)
		jk_lower_to_scalar(l, &r->hi, n->at);
	if (r->lo.kind != VALUE_LINEAR || r->hi.kind != VALUE_LINEAR || r->step <= 0)
		jk_lower_fail(l, n->at, "the ends of this range are over 2^63: not yet");
	const wide span = r->hi.hi - r->lo.lo, iterations = span <= 0 ? 0 : (span + r->step - 1) / r->step;
	r->max = iterations > INT64_MAX ? INT64_MAX : (int64_t)iterations;
	r->known = !r->lo.linear.n && !r->hi.linear.n;
	if (r->known) {
		check_iterations(l, n, r->max);
		r->count = jk_lower_emit(l, IR_sconst, 0, 0, 0, r->max);
		return;
	}
	struct linear f = r->hi.linear;
	if (!jk_linear_add(&f, &r->lo.linear, -1))
		jk_lower_fail(l, n->at, "the ends of this range have too many terms: not yet; keep them in variables");
	f.constant += r->step - 1;
	r->count = jk_lower_scalar(l, &f);
	if (r->step == 1)
		return;
	if (span >= (wide)1 << 31 || r->step >= INT64_C(1) << 31)
		jk_lower_fail(l, n->at, "a loop with a step has at most 2^31 - 1 iterations: not yet");
	r->count = jk_lower_emit(l, IR_smax, r->count, jk_lower_emit(l, IR_sconst, 0, 0, 0, 0), 0, 0);
	r->count = jk_lower_emit(l, IR_sdivi, r->count, 0, 0, r->step);
}

struct iteration {
	const struct node *n;
	const struct range *r;
	struct linear number;
};

static void set_iteration(struct lower *l, unsigned copy, void *user)
{
	const struct iteration *t = user;

	(void)copy;
	set_index(l, t->n, t->r, &t->number);
}

static bool is_same_end(const struct value *a, const struct value *b)
{
	bool same = a->kind == VALUE_LINEAR && b->kind == VALUE_LINEAR && a->linear.n == b->linear.n &&
	            a->linear.constant == b->linear.constant;

	for (unsigned k = 0; same && k < a->linear.n; k++)
		same = a->linear.term[k].quantity == b->linear.term[k].quantity &&
		       a->linear.term[k].by == b->linear.term[k].by;
	return same;
}

struct ends {
	const struct node *n;
	bool known, same;
	struct value lo, hi; /* of the first copy */
};

static void compare_ends(struct lower *l, unsigned copy, void *user)
{
	struct ends *e = user;
	const struct value lo = jk_lower_expression(l, e->n->a), hi = jk_lower_expression(l, e->n->b);

	(void)copy;
	if (e->known)
		e->same = e->same && is_same_end(&lo, &e->lo) && is_same_end(&hi, &e->hi);
	else
		*e = (struct ends){ e->n, true, true, lo, hi };
}

bool jk_lower_for_is_shared(struct lower *l, const struct node *n)
{
	struct ends e = { .n = n };

	if (!jk_lower_for_is_plain(n))
		return false;
	jk_copies_each(l, compare_ends, &e);
	return e.same;
}

/* n iterations of the body with the iteration's number begin + k. */
static void copies(struct lower *l, const struct node *n, const struct range *r, const struct linear *begin,
                   int64_t n_copies)
{
	for (int64_t k = 0; k < n_copies; k++) {
		const uint32_t scope = jk_lower_scope(l);
		struct iteration iteration = { n, r, *begin };
		iteration.number.constant += k;
		jk_copies_each(l, set_iteration, &iteration);
		body(l, n);
		jk_lower_unscope(l, scope);
	}
}

/* iterations: of the loop that is written; each has so many of the kernel's, from the number first on. */
static void iterations_of(struct lower *l, const struct node *n, const struct range *r, uint16_t count, int64_t max,
                          int64_t each, int64_t first)
{
	const uint16_t t = open_loop(l, count);
	const uint32_t scope = jk_lower_scope(l);
	const uint32_t q = jk_lower_quantity(l, QUANTITY_LOOP, n->symbol->number, t, false, 0, max > 0 ? max - 1 : 0);
	const struct linear begin = { .constant = first, .n = 1, .term = { { q, each } } };

	copies(l, n, r, &begin, each);
	jk_lower_unscope(l, scope);
	close_loop(l);
}

static void uniform_for(struct lower *l, const struct node *n)
{
	const uint64_t iterations = l->iterations;
	/* on a card, what several iterations read is on its way at once */
	const int64_t unrolled =
		n->e                         ? (int64_t)n->e->bits
		: !l->card || l->copies == 1 ? 1
		: l->copies == MAX_COPIES    ? 8
					     : 4;
	const struct linear zero = { 0 };
	struct range r;

	find_range(l, n, &r);
	if (!r.max)
		return;
	l->iterations *= r.known && r.max < 1 << 30 ? (uint64_t)r.max : 1;
	if (r.known && unrolled >= r.max && r.max <= 4096 && !has_break(n->d)) {
		l->iterations = iterations;
		copies(l, n, &r, &zero, r.max);
	} else if (r.known && unrolled > 1 && unrolled <= 64 && !has_break(n->d)) {
		const int64_t main = r.max / unrolled;
		l->iterations /= (uint64_t)unrolled;
		iterations_of(l, n, &r, jk_lower_emit(l, IR_sconst, 0, 0, 0, main), main, unrolled, 0);
		l->iterations = iterations;
		struct linear begin = { .constant = main * unrolled };
		if (r.max % unrolled == 1)
			copies(l, n, &r, &begin, 1);
		else if (r.max % unrolled)
			iterations_of(l, n, &r, jk_lower_emit(l, IR_sconst, 0, 0, 0, r.max % unrolled),
			              r.max % unrolled, 1, main * unrolled);
	} else {
		iterations_of(l, n, &r, r.count, r.max, 1, 0);
	}
	l->iterations = iterations;
}

/* --- for, with ends of each lane */

/* Moves on; which lanes have an iteration more: those with more than a step left. Sums that would wrap are not looked
 * at.
 */
static uint16_t next_iteration(struct lower *l, const struct node *n, uint16_t k, const struct value *to)
{
	const unsigned type = n->symbol->type, plain = type == JK_I32 ? JK_U32 : type == JK_I64 ? JK_U64 : type;
	const struct value step = jk_value_int(type, n->c ? (int64_t)n->c->bits : 1);
	struct value rest = jk_lower_binary(l, n, OP_SUB, *to, jk_value_vector(type, k, true));

	rest = jk_value_vector(plain, jk_lower_to_vector(l, &rest), true);
	struct value v = jk_lower_binary(l, n, OP_GT, rest, jk_value_int(plain, step.linear.constant));
	const uint16_t more = jk_lower_to_mask(l, &v);
	v = jk_lower_binary(l, n, OP_ADD, jk_value_vector(type, k, true), step);
	jk_lower_assign(l, k, jk_lower_to_vector(l, &v));
	return more;
}

static bool goes_twice(const struct lower *l, const struct node *n) { return l->keeps && !l->check; }

static void varying_for(struct lower *l, const struct node *n)
{
	const unsigned type = n->symbol->type;
	struct value lo = jk_lower_expression(l, n->a), hi = jk_lower_expression(l, n->b);
	const uint16_t k = jk_lower_variable(l, jk_lower_lane_type(type), jk_lower_to_vector(l, &lo));
	const uint16_t end = jk_lower_copy(l, jk_lower_to_vector(l, &hi));
	struct value index = jk_value_vector(type, k, true), to = jk_value_vector(type, end, true);
	const wide span = hi.hi - lo.lo;

	if (span <= 0)
		return;
	/* what the ends may be says little of what they are: more iterations than cards count are not refused, but cut
	 */
	const int64_t max = span > INT32_MAX ? INT32_MAX : (int64_t)span;
	index.lo = lo.lo;
	index.hi = hi.hi - 1;
	/* lanes with an iteration to come */
	const struct value first = jk_lower_binary(l, n, OP_LT, jk_value_vector(type, k, true), to);
	const uint16_t live = l->loop[l->loops - 1].live;
	jk_lower_assign(l, live, jk_lower_emit(l, IR_mand, live, jk_lower_to_mask(l, &first), 0, 0));
	jk_lower_open_if(l, jk_lower_emit(l, IR_any, live, 0, 0, 0));
	open_loop(l, jk_lower_emit(l, IR_sconst, 0, 0, 0, max));
	const uint32_t scope = jk_lower_scope(l);
	jk_lower_remember_symbol(l, n->symbol, &index);
	if (goes_twice(l, n)) { /* what both iterations read is on its way at once */
		body(l, n);
		jk_lower_assign(l, live, jk_lower_emit(l, IR_mand, live, next_iteration(l, n, k, &to), 0, 0));
	}
	body(l, n);
	const uint16_t more = next_iteration(l, n, k, &to);
	keep_lanes(l, more);
	jk_lower_unscope(l, scope);
	close_loop(l);
	jk_lower_close_if(l);
}

static void hoist_body(struct lower *l, unsigned copy, void *user)
{
	const struct node *n = user;

	(void)copy;
	jk_lower_hoist(l, n->d, depth_of(l));
}

void jk_lower_for(struct lower *l, const struct node *n)
{
	const uint16_t mask = l->mask;

	if (n->varying && (n->a->varying || n->b->varying)) {
		enter(l, n);
		jk_lower_hoist(l, n->d, depth_of(l));
		varying_for(l, n);
	} else {
		enter(l, n);
		jk_copies_each(l, hoist_body, (void *)(uintptr_t)n);
		uniform_for(l, n);
	}
	leave(l, n, mask);
}
