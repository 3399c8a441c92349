/* language/lower_lanes.c - each, reductions and scans: an index that lanes share out.
 *
 * Rule: the number of lanes never shows. A reduction has 32 partial results however many lanes there are, a scan goes
 * by 32 elements; docs/kernels.md has the order.
 */
#include "language/lower_lanes.h"

uint16_t jk_constant_scalar(struct lower *l, int64_t v) { return jk_lower_emit(l, IR_sconst, 0, 0, 0, v); }

/* Lanes before the number n, which is a scalar. */
uint16_t jk_lanes_before(struct lower *l, uint16_t n)
{
	const uint16_t lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0), max = jk_lower_emit(l, IR_isplat, n, 0, 0, 0);

	return jk_lower_emit(l, IR_ilt, lane, max, 0, 0);
}

/* An index of lanes: first + at + lane, where at is a scalar, 0 for none, and a constant. */
struct value jk_index_at(struct lower *l, const struct lanes_of *w, uint16_t at, int64_t constant)
{
	/* Where there is a scalar, or no loop, vectors side by side have addresses that differ by a displacement. */
	const bool beside = (at || l->kept) && constant <= w->hi - w->lo;
	struct linear f = w->first;
	uint16_t reg;

	f.constant += beside ? 0 : constant;
	reg = jk_lower_scalar(l, &f);
	if (at)
		reg = jk_lower_emit(l, IR_sadd, reg, at, 0, 0);
	const int64_t before = beside ? constant : 0;
	const uint32_t q = jk_lower_quantity(l, w->kind, w->id, reg, true, w->lo, w->hi - before);
	const struct linear behind = { .constant = before, .n = 1, .term = { { q, 1 } } };
	return jk_value_linear(l, w->type, &behind);
}

static void run(struct lower *l, const struct lanes_of *w, uint16_t at, int64_t constant)
{
	const uint32_t scope = jk_lower_scope(l);
	const struct value index = jk_index_at(l, w, at, constant);

	w->body(l, &index, w->user);
	jk_lower_unscope(l, scope);
}

unsigned jk_log_copies(const struct lower *l, const struct node *body, int64_t iterations)
{
	return l->card && !l->check && iterations >= 8 && jk_lower_weight(body) <= 40 ? 2 : 0;
}

/* Vectors `from` to from + count - 1, several in an iteration of the loop. */
static void whole_lanes(struct lower *l, const struct lanes_of *w, int64_t from, int64_t count, unsigned log_copies)
{
	const uint16_t t = ir_emit(l->ir, IR_loop, 0, jk_constant_scalar(l, count >> log_copies), 0, 0, 0);

	jk_lower_check(l);
	const uint32_t scope = jk_lower_scope(l);
	const uint16_t at = jk_lower_emit(l, IR_sshli, t, 0, 0, l->log_lanes + log_copies);
	for (int64_t k = 0; k < INT64_C(1) << log_copies; k++)
		run(l, w, at, (from + k) << l->log_lanes);
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
}

static void known_lanes(struct lower *l, const struct lanes_of *w)
{
	const int64_t full = w->n >> l->log_lanes, rest = w->n & (l->lanes - 1);
	const unsigned log_copies = jk_log_copies(l, w->node, full);
	const int64_t left = full & ((INT64_C(1) << log_copies) - 1);
	const uint64_t iterations = l->iterations;

	l->iterations *= (uint64_t)full * l->lanes;
	if (jk_is_kept(l, w)) {
		for (int64_t k = 0; k < full; k++)
			run(l, w, 0, k << l->log_lanes);
	} else {
		if (full - left > 1)
			whole_lanes(l, w, 0, full - left, log_copies);
		if (left > 1)
			whole_lanes(l, w, full - left, left, 0);
		else if (full && (left || full == 1))
			run(l, w, 0, (full - 1) << l->log_lanes);
	}
	l->iterations = iterations;
	if (!rest)
		return;
	l->iterations *= (uint64_t)rest;
	l->some = (unsigned)rest;
	run(l, w, 0, full << l->log_lanes);
	l->some = 0;
	l->iterations = iterations;
}

void jk_lower_lanes(struct lower *l, const struct lanes_of *w)
{
	if (w->known) {
		if (w->n > 0)
			known_lanes(l, w);
		return;
	}
	const uint16_t n = jk_lower_emit(l, IR_smax, w->count, jk_constant_scalar(l, 0), 0, 0);
	const uint16_t full = jk_lower_emit(l, IR_sshri, n, 0, 0, l->log_lanes);
	const uint16_t t = ir_emit(l->ir, IR_loop, 0, full, 0, 0, 0);
	uint32_t scope;

	jk_lower_check(l);
	scope = jk_lower_scope(l);
	run(l, w, jk_lower_emit(l, IR_sshli, t, 0, 0, l->log_lanes), 0);
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
	const uint16_t done = jk_lower_emit(l, IR_sshli, full, 0, 0, l->log_lanes),
		       rest = jk_lower_emit(l, IR_ssub, n, done, 0, 0);
	jk_lower_open_if(l, jk_lower_emit(l, IR_slt, jk_constant_scalar(l, 0), rest, 0, 0));
	scope = jk_lower_scope(l);
	l->some_mask = jk_lanes_before(l, rest);
	run(l, w, done, 0);
	l->some_mask = 0;
	jk_lower_unscope(l, scope);
	jk_lower_close_if(l);
}

void jk_lower_range(struct lower *l, const struct node *n, struct lanes_of *to)
{
	struct value lo = jk_lower_expression(l, n->a), hi = jk_lower_expression(l, n->b);

	if (lo.kind != VALUE_LINEAR)
		jk_lower_to_scalar(l, &lo, n->at);
	if (hi.kind != VALUE_LINEAR)
		jk_lower_to_scalar(l, &hi, n->at);
	struct linear f = hi.linear;
	if (lo.kind != VALUE_LINEAR || hi.kind != VALUE_LINEAR || !jk_linear_add(&f, &lo.linear, -1))
		jk_lower_fail(l, n->at, "the ends of this range are over 2^63, or have too many terms: not yet");
	*to = (struct lanes_of){
		.kind = QUANTITY_EACH, .id = n->symbol->number, .type = n->symbol->type, .first = lo.linear
	};
	to->known = !f.n;
	to->n = to->known ? f.constant : 0;
	to->count = to->known ? 0 : jk_lower_scalar(l, &f);
	to->lo = (int64_t)lo.lo;
	to->hi = hi.hi - 1 < lo.lo ? (int64_t)lo.lo : (int64_t)(hi.hi - 1);
}

unsigned jk_enter_lanes(struct lower *l, const struct node *n)
{
	if (l->loops == sizeof l->loop / sizeof *l->loop)
		jk_lower_fail(l, n->at, "loops nest too deep");
	l->loop[l->loops++] = (struct loop_state){ .node = n };
	l->in_lanes = true;
	l->each = n;
	return (l->k->cooperates ? 1 : 2) + l->loops;
}

void jk_leave_lanes(struct lower *l)
{
	l->loops--;
	l->in_lanes = false;
	l->each = NULL;
}

/* --- each */

static void each_iteration(struct lower *l, const struct value *index, void *user)
{
	const struct node *n = user;

	jk_lower_remember_symbol(l, n->symbol, index);
	jk_lower_statements(l, n->d);
	jk_lower_faults_end(l);
}

void jk_lower_each(struct lower *l, const struct node *n)
{
	struct lanes_of w;

	jk_lower_range(l, n, &w);
	w.body = each_iteration;
	w.user = (void *)(uintptr_t)n;
	w.node = n->d;
	jk_lower_faults_end(l);
	jk_lower_hoist(l, n->d, jk_enter_lanes(l, n));
	jk_lower_lanes(l, &w);
	jk_leave_lanes(l);
}

/* --- reductions: element i of the range is part of partial result i mod 32 */

struct partials {
	const struct node *n;
	unsigned op, type;
	unsigned vectors;
	uint16_t v[MAX_VECTORS]; /* variables */
	struct lanes_of w;
};

/* What changes no result: before the first element. */
struct value jk_identity(unsigned op, unsigned type)
{
	wide lo, hi;

	if (type == JK_BOOL)
		return jk_value_bits(JK_BOOL, op == OP_ALL);
	if (op == OP_ADD)
		return jk_value_bits(type, 0);
	if (type == JK_F32)
		return jk_value_bits(type, op == OP_MIN ? 0x7f800000 : 0xff800000);
	if (type == JK_F64)
		return jk_value_bits(type, op == OP_MIN ? UINT64_C(0x7ff0000000000000) : UINT64_C(0xfff0000000000000));
	jk_type_range(type, &lo, &hi);
	return jk_value_bits(type, (uint64_t)(op == OP_MIN ? hi : lo));
}

struct value jk_combined(struct lower *l, const struct node *n, unsigned op, struct value a, struct value b)
{
	return jk_lower_binary(l, n, op == OP_ANY ? OP_OR : op == OP_ALL ? OP_AND : op, a, b);
}

static uint16_t as_vector(struct lower *l, const struct value *v)
{
	return v->type == JK_BOOL ? jk_lower_to_mask(l, v) : jk_lower_to_vector(l, v);
}

/* One vector of elements, from number at + constant of the range on. */
static void take(struct lower *l, struct partials *p, unsigned q, uint16_t at, int64_t constant)
{
	const uint32_t scope = jk_lower_scope(l);
	const struct value index = jk_index_at(l, &p->w, at, constant);
	const struct value old = jk_value_vector(p->type, p->v[q], true);
	struct value x, sum;

	jk_lower_remember_symbol(l, p->n->symbol, &index);
	x = jk_lower_expression(l, p->n->c);
	sum = jk_combined(l, p->n, p->op, old, x);
	if (l->some || l->some_mask) { /* min and max of a NaN and what changes no number would be that */
		const struct value there = {
			.kind = VALUE_MASK, .type = JK_BOOL, .varying = true, .reg = jk_lower_full_mask(l)
		};
		sum = jk_lower_choose(l, there, sum, old);
	}
	jk_lower_assign(l, p->v[q], as_vector(l, &sum));
	jk_lower_unscope(l, scope);
}

/* NVIDIA's compiler makes one minimum of a comparison with infinity and a choice, where it sees the infinity: the same
 * number, but a NaN would lose its bits. So it is not shown: no unit's number has a sign. */
struct value jk_beginning(struct lower *l, unsigned op, unsigned type)
{
	const struct value none = jk_identity(op, type);
	const bool is_wide = type_is_wide(type);

	if (!l->keeps || op == OP_ADD || !type_is_float(type))
		return none;
	const uint16_t begin = ir_begin(l->ir).r, zero = jk_lower_emit(l, IR_sshri, begin, 0, 0, 63);
	const struct value bits = jk_value_bits(is_wide ? JK_U64 : JK_U32, none.bits);
	const uint16_t shown = jk_lower_emit(l, is_wide ? IR_lsplat : IR_isplat, zero, 0, 0, 0);
	const uint16_t hidden = jk_lower_emit(l, is_wide ? IR_lor : IR_ior, jk_lower_to_vector(l, &bits), shown, 0, 0);
	return jk_value_vector(type, jk_lower_emit(l, is_wide ? IR_dbits : IR_fbits, hidden, 0, 0, 0), false);
}

static void begin_partials(struct lower *l, struct partials *p)
{
	const struct value none = jk_beginning(l, p->op, p->type);
	const uint16_t first = as_vector(l, &none);

	p->vectors = PARTIALS / l->lanes;
	for (unsigned q = 0; q < p->vectors; q++) {
		if (p->v[q])
			jk_lower_assign(l, p->v[q], first);
		else
			p->v[q] = jk_lower_variable(l, jk_lower_lane_type(p->type), first);
	}
}

/* `iterations` times 1 << log_copies rows of 32. at: a scalar, or 0. */
static void take_rows(struct lower *l, struct partials *p, uint16_t at, int64_t constant, uint16_t iterations,
                      unsigned log_copies)
{
	uint16_t t = ir_emit(l->ir, IR_loop, 0, iterations, 0, 0, 0);

	jk_lower_check(l);
	const uint32_t scope = jk_lower_scope(l);
	t = jk_lower_emit(l, IR_sshli, t, 0, 0, 5 + log_copies);
	t = at ? jk_lower_emit(l, IR_sadd, t, at, 0, 0) : t;
	for (unsigned k = 0; k < 1U << log_copies; k++)
		for (unsigned q = 0; q < p->vectors; q++)
			take(l, p, q, t, constant + k * PARTIALS + q * l->lanes);
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
}

/* Whole rows of 32, then what is left. at: a scalar, or 0; n: elements from there on, fewer than 2^63. */
static void take_known(struct lower *l, struct partials *p, uint16_t at, int64_t constant, int64_t n)
{
	const int64_t rows = n / PARTIALS, rest = n % PARTIALS;

	if (rows > 0) {
		const uint64_t iterations = l->iterations;
		const unsigned log_copies = jk_log_copies(l, p->n->c, rows);
		const int64_t left = rows & ((INT64_C(1) << log_copies) - 1), main = rows - left;
		l->iterations *= (uint64_t)rows * l->lanes;
		if (jk_is_kept(l, &p->w)) {
			for (int64_t k = 0; k < rows * p->vectors; k++)
				take(l, p, (unsigned)(k % p->vectors), at, constant + k * l->lanes);
		} else {
			if (main)
				take_rows(l, p, at, constant, jk_constant_scalar(l, main >> log_copies), log_copies);
			if (left)
				take_rows(l, p, at, constant + main * PARTIALS, jk_constant_scalar(l, left), 0);
		}
		l->iterations = iterations;
	}
	for (unsigned q = 0; q < p->vectors && q * l->lanes < rest; q++) {
		const int64_t more = rest - q * l->lanes;
		l->some = more < l->lanes ? (unsigned)more : 0;
		take(l, p, q, at, constant + rows * PARTIALS + q * l->lanes);
		l->some = 0;
	}
}

static void take_counted(struct lower *l, struct partials *p, uint16_t at, uint16_t n)
{
	const uint16_t rows = jk_lower_emit(l, IR_sshri, n, 0, 0, 5);
	const unsigned log_copies = jk_log_copies(l, p->n->c, p->w.known ? p->w.n / PARTIALS : PART / PARTIALS);
	uint16_t from = at;

	if (log_copies) {
		const uint16_t iterations = jk_lower_emit(l, IR_sshri, rows, 0, 0, log_copies);
		take_rows(l, p, at, 0, iterations, log_copies);
		from = jk_lower_emit(l, IR_sadd, at, jk_lower_emit(l, IR_sshli, iterations, 0, 0, 5 + log_copies), 0,
		                     0);
	}
	take_rows(l, p, from, 0, log_copies ? jk_lower_emit(l, IR_sandi, rows, 0, 0, (1 << log_copies) - 1) : rows, 0);
	const uint16_t done = jk_lower_emit(l, IR_sshli, rows, 0, 0, 5),
		       rest = jk_lower_emit(l, IR_ssub, n, done, 0, 0);
	const uint16_t behind = jk_lower_emit(l, IR_sadd, at, done, 0, 0);
	for (unsigned q = 0; q < p->vectors; q++) {
		const uint16_t more = jk_lower_emit(l, IR_saddi, rest, 0, 0, -(int64_t)(q * l->lanes));
		jk_lower_open_if(l, jk_lower_emit(l, IR_slt, jk_constant_scalar(l, 0), more, 0, 0));
		const uint32_t inner = jk_lower_scope(l);
		l->some_mask = jk_lanes_before(l, more);
		take(l, p, q, behind, q * l->lanes);
		l->some_mask = 0;
		jk_lower_unscope(l, inner);
		jk_lower_close_if(l);
	}
}

/* Lane l of the result has that of lanes l and l ^ distance, the lower lane's first: all lanes agree in the end. */
static struct value folded(struct lower *l, const struct partials *p, struct value v, unsigned distance)
{
	const bool is_wide = type_is_wide(p->type), is_float = type_is_float(p->type);
	uint16_t x = v.reg;

	if (!is_float)
		x = jk_lower_emit(l, is_wide ? IR_dbits : IR_fbits, x, 0, 0, 0);
	x = jk_lower_emit(l, is_wide ? IR_dxor : IR_fxor, x, 0, 0, distance);
	if (!is_float)
		x = jk_lower_emit(l, is_wide ? IR_lbits : IR_ibits, x, 0, 0, 0);
	const struct value other = jk_value_vector(p->type, x, true);
	if (p->op == OP_ADD || !is_float)
		return jk_combined(l, p->n, p->op, v, other);
	const uint16_t lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0),
		       bit = jk_lower_emit(l, IR_iconst, 0, 0, 0, distance),
		       zero = jk_lower_emit(l, IR_iconst, 0, 0, 0, 0);
	const struct value upper = {
		.kind = VALUE_MASK,
		.type = JK_BOOL,
		.varying = true,
		.reg = jk_lower_emit(l, IR_ine, jk_lower_emit(l, IR_iand, lane, bit, 0, 0), zero, 0, 0)
	};
	const struct value first = jk_lower_choose(l, upper, other, v), second = jk_lower_choose(l, upper, v, other);
	return jk_combined(l, p->n, p->op, first, second);
}

static struct value end_partials(struct lower *l, struct partials *p)
{
	struct value v[MAX_VECTORS];

	for (unsigned q = 0; q < p->vectors; q++)
		v[q] = jk_value_vector(p->type, jk_lower_copy(l, p->v[q]), true);
	for (unsigned half = p->vectors / 2; half; half /= 2)
		for (unsigned q = 0; q < half; q++)
			v[q] = jk_combined(l, p->n, p->op, v[q], v[q + half]);
	if (p->type == JK_BOOL) {
		const uint16_t r = jk_lower_emit(l, p->op == OP_ANY ? IR_any : IR_all, v[0].reg, 0, 0, 0);
		return (struct value){ .kind = VALUE_CONDITION, .type = JK_BOOL, .reg = r };
	}
	for (unsigned d = l->lanes / 2; d; d /= 2)
		v[0] = folded(l, p, v[0], d);
	v[0].varying = false;
	return v[0];
}

/* The range in parts of 1024, whose results are added in order. */
static struct value parts(struct lower *l, struct partials *p)
{
	const struct value none = jk_beginning(l, p->op, p->type);
	const uint16_t total = jk_lower_variable(l, jk_lower_lane_type(p->type), as_vector(l, &none));
	const struct value so_far = jk_value_vector(p->type, total, false);
	struct value sum;
	uint16_t count = p->w.known ? jk_constant_scalar(l, p->w.n)
	                            : jk_lower_emit(l, IR_smax, p->w.count, jk_constant_scalar(l, 0), 0, 0);
	const uint16_t n_parts =
		jk_lower_emit(l, IR_sshri, jk_lower_emit(l, IR_saddi, count, 0, 0, PART - 1), 0, 0, 10);

	for (unsigned q = 0; q < PARTIALS / l->lanes; q++)
		p->v[q] = ir_new_var(l->ir, jk_lower_lane_type(p->type));
	const uint16_t t = ir_emit(l->ir, IR_loop, 0, n_parts, 0, 0, 0);
	jk_lower_check(l);
	const uint32_t scope = jk_lower_scope(l);
	const uint16_t at = jk_lower_emit(l, IR_sshli, t, 0, 0, 10), left = jk_lower_emit(l, IR_ssub, count, at, 0, 0);
	begin_partials(l, p);
	if (p->w.known)
		l->iterations *= (uint64_t)(p->w.n < 1 ? 1 : p->w.n) / l->lanes;
	take_counted(l, p, at, jk_lower_emit(l, IR_smin, left, jk_constant_scalar(l, PART), 0, 0));
	const struct value part = end_partials(l, p);
	sum = jk_combined(l, p->n, p->op, so_far, part);
	jk_lower_assign(l, total, jk_lower_to_vector(l, &sum));
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
	return jk_value_vector(p->type, jk_lower_copy(l, total), false);
}

/* The same where each part is written by itself. */
static struct value kept_parts(struct lower *l, struct partials *p)
{
	struct value total = jk_beginning(l, p->op, p->type);

	for (int64_t at = 0; at < p->w.n; at += PART) {
		begin_partials(l, p);
		take_known(l, p, 0, at, p->w.n - at < PART ? p->w.n - at : PART);
		const struct value part = end_partials(l, p);
		total = jk_combined(l, p->n, p->op, total, part);
	}
	return jk_value_vector(p->type, jk_lower_to_vector(l, &total), false);
}

struct value jk_lower_reduction(struct lower *l, const struct node *n)
{
	struct partials p = { .n = n, .op = n->op, .type = n->type };
	const uint64_t iterations = l->iterations;
	struct value r;

	jk_lower_range(l, n, &p.w);
	jk_lower_hoist(l, n->c, jk_enter_lanes(l, n));
	const bool short_one = p.w.known && p.w.n <= PART;
	jk_lower_faults_end(l);
	if (short_one || p.op == OP_ANY || p.op == OP_ALL || (p.w.known && type_is_int(p.type))) {
		begin_partials(l, &p);
		if (p.w.known)
			take_known(l, &p, 0, 0, p.w.n < 0 ? 0 : p.w.n);
		else
			take_counted(l, &p, jk_constant_scalar(l, 0),
			             jk_lower_emit(l, IR_smax, p.w.count, jk_constant_scalar(l, 0), 0, 0));
		r = end_partials(l, &p);
	} else if (jk_is_kept(l, &p.w)) {
		r = kept_parts(l, &p);
	} else {
		r = parts(l, &p);
	}
	jk_lower_faults_end(l);
	jk_leave_lanes(l);
	l->iterations = iterations;
	return r;
}
