/* language/lower_scan.c - scans. */
#include "language/lower_lanes.h"

/* --- scans: 32 elements at a time. In these, lane by lane in pairs, fours and so on, each upper half gets the sum of
 * the lower half before it; the sum of all goes to the next ones. */

struct scan {
	const struct node *n;
	unsigned op, type, vectors;
	uint16_t carry, base; /* variables: of the elements of this part before, and of the parts before */
	struct lanes_of w;
};

static struct value exchanged(struct lower *l, unsigned type, struct value v, unsigned distance)
{
	const bool is_wide = type_is_wide(type), is_float = type_is_float(type);
	uint16_t x = v.reg;

	if (!is_float)
		x = jk_lower_emit(l, is_wide ? IR_dbits : IR_fbits, x, 0, 0, 0);
	x = jk_lower_emit(l, is_wide ? IR_dxor : IR_fxor, x, 0, 0, distance);
	if (!is_float)
		x = jk_lower_emit(l, is_wide ? IR_lbits : IR_ibits, x, 0, 0, 0);
	return jk_value_vector(type, x, true);
}

/* Whether a and b give what b and a do. Not the least and greatest of floats, where one is NaN or both are 0. */
static bool commutes(const struct scan *s) { return s->op == OP_ADD || !type_is_float(s->type); }

/* The lower half of each pair, and the upper half. upper: lanes whose own is that one. */
static struct value both_halves(struct lower *l, const struct scan *s, struct value upper, struct value own,
                                struct value other)
{
	if (commutes(s))
		return jk_combined(l, s->n, s->op, own, other);
	return jk_combined(l, s->n, s->op, jk_lower_choose(l, upper, other, own),
	                   jk_lower_choose(l, upper, own, other));
}

/* Of one vector: what comes before each lane's element in the vector (from the identity on) and the sum of all. */
static void scan_vector(struct lower *l, const struct scan *s, struct value x, struct value *before,
                        struct value *total)
{
	const struct value none = jk_beginning(l, s->op, s->type);
	const uint16_t lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0), zero = jk_lower_emit(l, IR_iconst, 0, 0, 0, 0);
	struct value sum = x, exclusive = jk_value_vector(s->type, jk_lower_to_vector(l, &none), true);

	for (unsigned d = 1; d < l->lanes; d *= 2) {
		const struct value other = exchanged(l, s->type, sum, d);
		const uint16_t bit = jk_lower_emit(l, IR_iand, lane, jk_lower_emit(l, IR_iconst, 0, 0, 0, d), 0, 0);
		const struct value upper = { .kind = VALUE_MASK,
			                     .type = JK_BOOL,
			                     .varying = true,
			                     .reg = jk_lower_emit(l, IR_ine, bit, zero, 0, 0) };
		const struct value more = jk_combined(l, s->n, s->op, other, exclusive);
		exclusive = jk_lower_choose(l, upper, more, exclusive);
		sum = both_halves(l, s, upper, sum, other);
	}
	*before = exclusive;
	*total = sum;
}

/* A row of 32 elements; some: how many there are, or n, a scalar. */
static void scan_row(struct lower *l, struct scan *s, uint16_t at, int64_t constant, unsigned known, uint16_t n)
{
	struct value x[MAX_VECTORS], before[MAX_VECTORS], total[MAX_VECTORS], index[MAX_VECTORS], all;
	const struct value none = jk_beginning(l, s->op, s->type);
	uint16_t mask[MAX_VECTORS] = { 0 };
	const uint32_t scope = jk_lower_scope(l);

	for (unsigned q = 0; q < s->vectors; q++) {
		index[q] = jk_index_at(l, &s->w, at, constant + q * l->lanes);
		if (known < PARTIALS) {
			const uint16_t count = n ? n : jk_constant_scalar(l, known);
			mask[q] = jk_lanes_before(l, jk_lower_emit(l, IR_saddi, count, 0, 0, -(int64_t)(q * l->lanes)));
		}
		l->some_mask = mask[q];
		const uint32_t inner = jk_lower_scope(l);
		jk_lower_remember_symbol(l, s->n->symbol, &index[q]);
		x[q] = jk_lower_expression(l, s->n->d);
		x[q] = jk_value_vector(s->type, jk_lower_to_vector(l, &x[q]), true);
		if (mask[q]) {
			const struct value there = {
				.kind = VALUE_MASK, .type = JK_BOOL, .varying = true, .reg = mask[q]
			};
			x[q] = jk_lower_choose(l, there, x[q], none);
		}
		jk_lower_unscope(l, inner);
		l->some_mask = 0;
		scan_vector(l, s, x[q], &before[q], &total[q]);
	}
	/* vectors as lanes above: 0 and 1, 2 and 3, then these two pairs */
	for (unsigned d = 1; d < s->vectors; d *= 2)
		for (unsigned q = 0; q < s->vectors; q++)
			if (!(q & d)) {
				before[q + d] = jk_combined(l, s->n, s->op, total[q], before[q + d]);
				total[q] = total[q + d] = jk_combined(l, s->n, s->op, total[q], total[q + d]);
			}
	const struct value carry = jk_value_vector(s->type, jk_lower_copy(l, s->carry), false),
			   base = jk_value_vector(s->type, jk_lower_copy(l, s->base), false);
	/* of integers the order cannot show, so what all lanes have is added once */
	const bool any_order = !type_is_float(s->type);
	const struct value all_before = any_order ? jk_combined(l, s->n, s->op, base, carry) : carry;
	for (unsigned q = 0; q < s->vectors; q++) {
		struct value r = jk_combined(l, s->n, s->op, all_before, before[q]);
		if (!s->n->flag)
			r = jk_combined(l, s->n, s->op, r, x[q]);
		if (!any_order)
			r = jk_combined(l, s->n, s->op, base, r);
		r = jk_value_vector(s->type, jk_lower_to_vector(l, &r), true);
		const uint32_t inner = jk_lower_scope(l);
		jk_lower_remember_symbol(l, s->n->symbol, &index[q]);
		l->some_mask = mask[q];
		jk_lower_store(l, s->n->c, r, OP_NONE, false);
		l->some_mask = 0;
		jk_lower_unscope(l, inner);
	}
	all = jk_combined(l, s->n, s->op, carry, total[0]);
	jk_lower_assign(l, s->carry, jk_lower_to_vector(l, &all));
	jk_lower_unscope(l, scope);
}

/* A part of 1024 begins where a row's number is a multiple of 32. */
static void begin_part(struct lower *l, const struct scan *s, uint16_t row)
{
	const struct value none = jk_beginning(l, s->op, s->type);
	const uint16_t in_part = jk_lower_emit(l, IR_sandi, row, 0, 0, PART / PARTIALS - 1);

	jk_lower_open_if(l, jk_lower_emit(l, IR_seq, in_part, jk_constant_scalar(l, 0), 0, 0));
	const struct value base = jk_value_vector(s->type, s->base, false),
			   carry = jk_value_vector(s->type, s->carry, false);
	const struct value sum = jk_combined(l, s->n, s->op, base, carry);
	jk_lower_assign(l, s->base, jk_lower_to_vector(l, &sum));
	jk_lower_assign(l, s->carry, jk_lower_to_vector(l, &none));
	jk_lower_close_if(l);
}

/* `iterations` times 1 << log_copies rows, from the row number `from` on: a multiple of that, or 0 for the first. */
static void scan_rows(struct lower *l, struct scan *s, uint16_t from, uint16_t iterations, unsigned log_copies)
{
	const uint16_t t = ir_emit(l->ir, IR_loop, 0, iterations, 0, 0, 0);

	jk_lower_check(l);
	const uint32_t scope = jk_lower_scope(l);
	uint16_t row = jk_lower_emit(l, IR_sshli, t, 0, 0, log_copies);
	row = from ? jk_lower_emit(l, IR_sadd, from, row, 0, 0) : row;
	begin_part(l, s, row);
	const uint16_t at = jk_lower_emit(l, IR_sshli, row, 0, 0, 5);
	for (unsigned k = 0; k < 1U << log_copies; k++)
		scan_row(l, s, at, k * PARTIALS, PARTIALS, 0);
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
}

void jk_lower_scan(struct lower *l, const struct node *n)
{
	struct scan s = { .n = n, .op = n->op, .type = n->d->type, .vectors = PARTIALS / l->lanes };
	const struct value none = jk_beginning(l, s.op, s.type);
	const uint64_t iterations = l->iterations;

	jk_lower_range(l, n, &s.w);
	jk_lower_hoist(l, n->d, jk_enter_lanes(l, n));
	jk_lower_faults_end(l);
	s.carry = jk_lower_variable(l, jk_lower_lane_type(s.type), jk_lower_to_vector(l, &none));
	s.base = jk_lower_variable(l, jk_lower_lane_type(s.type), jk_lower_to_vector(l, &none));
	const uint16_t count = s.w.known ? jk_constant_scalar(l, s.w.n < 0 ? 0 : s.w.n)
	                                 : jk_lower_emit(l, IR_smax, s.w.count, jk_constant_scalar(l, 0), 0, 0);
	const uint16_t rows = jk_lower_emit(l, IR_sshri, count, 0, 0, 5);
	if (s.w.known && s.w.n > 0)
		l->iterations *= (uint64_t)s.w.n;
	const unsigned log_copies = jk_log_copies(l, n->d, s.w.known ? s.w.n / PARTIALS : PART / PARTIALS);
	uint16_t whole = 0;
	if (log_copies) {
		whole = jk_lower_emit(l, IR_sshri, rows, 0, 0, log_copies);
		scan_rows(l, &s, 0, whole, log_copies);
		whole = jk_lower_emit(l, IR_sshli, whole, 0, 0, log_copies);
	}
	scan_rows(l, &s, whole, whole ? jk_lower_emit(l, IR_ssub, rows, whole, 0, 0) : rows, 0);
	const uint16_t done = jk_lower_emit(l, IR_sshli, rows, 0, 0, 5),
		       rest = jk_lower_emit(l, IR_ssub, count, done, 0, 0);
	jk_lower_open_if(l, jk_lower_emit(l, IR_slt, jk_constant_scalar(l, 0), rest, 0, 0));
	const uint32_t scope = jk_lower_scope(l);
	begin_part(l, &s, rows);
	scan_row(l, &s, done, 0, 0, rest);
	jk_lower_unscope(l, scope);
	jk_lower_close_if(l);
	jk_lower_faults_end(l);
	jk_leave_lanes(l);
	l->iterations = iterations;
}
