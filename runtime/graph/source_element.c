/* runtime/graph/source_element.c - single elements as expressions. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/number.h"
#include "runtime/graph/source.h"

static const struct tensor_value_info *info(const struct source *s, tensor_value v) { return &s->g->value[v]; }

/* ---- numbers */

const char *source_literal(struct source *s, int wide, union number x)
{
	uint64_t bits;

	switch (wide) {
	case JIT_TYPE_F32: return source_text(s, "bits_f32(%" PRIu32 ")", number_bits(x.f));
	case JIT_TYPE_F64: memcpy(&bits, &x.d, sizeof bits); return source_text(s, "bits_f64(%" PRIu64 ")", bits);
	case JIT_TYPE_BOOL: return x.u ? "true" : "false";
	case JIT_TYPE_I32:
		return x.i < 0 ? source_text(s, "i32(u32(%" PRIu32 "))", (uint32_t)x.u)
		               : source_text(s, "i32(%" PRId64 ")", x.i);
	case JIT_TYPE_I64:
		return x.i < 0 ? source_text(s, "i64(u64(%" PRIu64 "))", x.u) : source_text(s, "i64(%" PRId64 ")", x.i);
	default: return source_text(s, "%s(%" PRIu64 ")", tensor_type_name(wide), x.u);
	}
}

const char *source_number(struct source *s, int wide, double x)
{
	return source_literal(s, wide, tensor_convert((union number){ .d = x }, JIT_TYPE_F64, wide));
}

const char *source_pair(struct source *s, enum tensor_op op, int wide, const char *a, const char *b)
{
	const bool logic = wide == JIT_TYPE_BOOL;

	switch (op) {
	case OP_add: return source_text(s, "(%s + %s)", a, b);
	case OP_sub: return source_text(s, "(%s - %s)", a, b);
	case OP_mul: return source_text(s, "(%s * %s)", a, b);
	case OP_div: return source_text(s, "(%s / %s)", a, b);
	case OP_rem:
		return tensor_is_float(wide) ? source_remainder(s, wide, a, b) : source_text(s, "(%s %% %s)", a, b);
	case OP_max: return source_text(s, "max(%s, %s)", a, b);
	case OP_min: return source_text(s, "min(%s, %s)", a, b);
	case OP_pow: return source_text(s, "pow(%s, %s)", a, b);
	case OP_and: return source_text(s, logic ? "(%s && %s)" : "(%s & %s)", a, b);
	case OP_or: return source_text(s, logic ? "(%s || %s)" : "(%s | %s)", a, b);
	case OP_xor: return source_text(s, logic ? "(%s != %s)" : "(%s ^ %s)", a, b);
	case OP_shift_left: return source_text(s, "(%s << %s)", a, b);
	case OP_shift_right: return source_text(s, "(%s >> %s)", a, b);
	case OP_eq: return source_text(s, "(%s == %s)", a, b);
	case OP_ne: return source_text(s, "(%s != %s)", a, b);
	case OP_lt: return source_text(s, logic ? "(!%s && %s)" : "(%s < %s)", a, b);
	case OP_le: return source_text(s, logic ? "(!%s || %s)" : "(%s <= %s)", a, b);
	case OP_gt: return source_text(s, logic ? "(%s && !%s)" : "(%s > %s)", a, b);
	default: return source_text(s, logic ? "(%s || !%s)" : "(%s >= %s)", a, b);
	}
}

static const char *sign_of(struct source *s, int wide, const char *x)
{
	const char *zero = source_number(s, wide, 0), *one = source_number(s, wide, 1);

	if (!tensor_is_float(wide) && !tensor_is_signed(wide))
		return source_text(s, "select(%s != %s, %s, %s)", x, zero, one, zero);
	return source_text(s, "select(%s > %s, %s, select(%s < %s, %s, %s))", x, zero, one, x, zero,
	                   source_number(s, wide, -1), x);
}

static const char *converted(struct source *s, int from, int to, const char *x)
{
	if (from == to)
		return x;
	if (to == JIT_TYPE_BOOL)
		return source_text(s, "(%s != %s)", x, source_number(s, from, 0));
	if (from == JIT_TYPE_BOOL)
		return source_text(s, "select(%s, %s, %s)", x, source_number(s, to, 1), source_number(s, to, 0));
	return source_text(s, "%s(%s)", tensor_type_name(to), x);
}

/* The same bits in another type, by way of the integer without a sign. */
static const char *same_bits(struct source *s, int from, int to, const char *x)
{
	const bool is_long = tensor_type_bytes(to) == 8;
	const char *unsigned_type = is_long ? "u64" : "u32";

	if (tensor_is_float(from))
		x = source_text(s, is_long ? "bits_u64(%s)" : "bits_u32(%s)", x);
	else if (tensor_is_signed(from))
		x = source_text(s, "%s(%s)", unsigned_type, x);
	if (tensor_is_float(to))
		return source_text(s, is_long ? "bits_f64(%s)" : "bits_f32(%s)", x);
	return tensor_is_signed(to) ? source_text(s, "%s(%s)", tensor_type_name(to), x) : x;
}

const char *source_apply(struct source *s, const struct tensor_node *n, const char *const x[])
{
	const int from = info(s, n->operand[0])->type, wide = tensor_wide_type(from),
		  to = tensor_wide_type(info(s, n->first)->type);
	const char *one = tensor_is_float(wide) ? source_number(s, wide, 1) : "";

	switch (n->op) {
	case OP_neg:
		return tensor_is_float(wide) ? source_text(s, "(-%s)", x[0])
		                             : source_text(s, "(%s - %s)", source_number(s, wide, 0), x[0]);
	case OP_abs: return tensor_is_float(wide) || tensor_is_signed(wide) ? source_text(s, "abs(%s)", x[0]) : x[0];
	case OP_sign: return sign_of(s, wide, x[0]);
	case OP_rsqrt: return source_text(s, "(%s / sqrt(%s))", one, x[0]);
	case OP_logistic: return source_text(s, "(%s / (%s + exp(-%s)))", one, one, x[0]);
	case OP_not: return source_text(s, wide == JIT_TYPE_BOOL ? "(!%s)" : "(~%s)", x[0]);
	case OP_exp:
	case OP_log:
	case OP_sqrt:
	case OP_sin:
	case OP_cos:
	case OP_tanh:
	case OP_erf:
	case OP_floor:
	case OP_ceil:
	case OP_round:
	case OP_trunc: return source_text(s, "%s(%s)", tensor_ops[n->op].name, x[0]);
	case OP_fma: return source_text(s, "fma(%s, %s, %s)", x[0], x[1], x[2]);
	case OP_fake_quantise:
		return source_text(s, "(min(max(round(%s / %s), %s), %s) * %s)", x[0], x[1], x[2], x[3], x[1]);
	case OP_select: return source_text(s, "select(%s, %s, %s)", x[0], x[1], x[2]);
	case OP_convert: return converted(s, wide, to, x[0]);
	case OP_bitcast: return same_bits(s, from, info(s, n->first)->type, x[0]);
	default: return source_pair(s, n->op, wide, x[0], x[1]);
	}
}

/* ---- elements that move */

static const int64_t *list(const struct tensor_node *n, enum tensor_attribute name)
{
	const struct attribute *a = tensor_node_attribute(n, name);

	return a ? a->whole : NULL;
}

static const char *plus(struct source *s, const char *x, int64_t n)
{
	if (n == 0)
		return x;
	return source_text(s, n > 0 ? "(%s + %" PRId64 ")" : "(%s - %" PRId64 ")", x, n > 0 ? n : -n);
}

/* Where the operand's element is that a node's element at `at` is. */
static struct position moved(struct source *s, const struct tensor_node *n, const struct position *at)
{
	const struct shape *from = &info(s, n->operand[0])->shape;
	const int64_t *axes = list(n, ATTRIBUTE_axes), *start = list(n, ATTRIBUTE_start),
		      *strides = list(n, ATTRIBUTE_strides);
	const struct attribute *reversed = tensor_node_attribute(n, ATTRIBUTE_axes);
	struct position to = { .has_dims = true };

	for (unsigned d = 0; d < from->rank; d++)
		switch (n->op) {
		case OP_broadcast: to.dim[d] = from->dim[d] == 1 ? "0" : at->dim[axes[d]]; break;
		case OP_transpose: to.dim[axes[d]] = at->dim[d]; break;
		case OP_slice:
			to.dim[d] = strides && strides[d] != 1
			                    ? source_text(s, "(%s * %" PRId64 ")", at->dim[d], strides[d])
			                    : at->dim[d];
			to.dim[d] = plus(s, to.dim[d], start[d]);
			break;
		default:
			to.dim[d] = at->dim[d];
			for (uint32_t k = 0; k < reversed->n; k++)
				if (reversed->whole[k] == (int64_t)d)
					to.dim[d] = source_text(s, "(%" PRIu64 " - %s)", from->dim[d] - 1, at->dim[d]);
			break;
		}
	return to;
}

static const char *padded(struct source *s, const struct tensor_node *n, const struct position *at)
{
	const struct shape *from = &info(s, n->operand[0])->shape;
	const int64_t *low = list(n, ATTRIBUTE_low), *high = list(n, ATTRIBUTE_high),
		      *interior = list(n, ATTRIBUTE_interior);
	struct position to = { .has_dims = true };
	const char *inside = NULL;

	for (unsigned d = 0; d < from->rank; d++) {
		const int64_t step = 1 + (interior ? interior[d] : 0);
		to.dim[d] = low[d] || step > 1 ? source_local(s, "i32", plus(s, at->dim[d], -low[d])) : at->dim[d];
		if (low[d] <= 0 && high[d] <= 0 && step == 1)
			continue;
		const char *p = to.dim[d];
		if (step > 1)
			to.dim[d] = source_local(s, "i32", source_text(s, "%s / %" PRId64, p, step));
		const char *here = source_text(s, "%s >= 0 && %s < %" PRIu64, p, to.dim[d], from->dim[d]);
		if (step > 1)
			here = source_text(s, "%s && %s %% %" PRId64 " == 0", here, p, step);
		inside = inside ? source_text(s, "%s && %s", inside, here) : here;
	}
	const char *x = source_element(s, n->operand[0], to);
	if (!inside)
		return x;
	return source_text(s, "select(%s, %s, %s)", inside, x,
	                   source_element(s, n->operand[1], (struct position){ .flat = "0" }));
}

/* The element of operand k, whose first one has the index `first` along the axis. */
static const char *joined_element(struct source *s, const struct tensor_node *n, const struct position *at, uint32_t k,
                                  uint64_t first)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	struct position to = *at;

	to.flat = NULL;
	to.dim[axis] = plus(s, at->dim[axis], -(int64_t)first);
	return source_element(s, n->operand[k], to);
}

/* In an expression both are computed, where statements may be written only the one that is selected. */
static const char *joined(struct source *s, const struct tensor_node *n, const struct position *at)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	const int wide = tensor_wide_type(info(s, n->first)->type);
	uint64_t first[TENSOR_MAX_OPERANDS + 1] = { 0 };

	for (uint32_t k = 0; k < n->operands; k++)
		first[k + 1] = first[k] + info(s, n->operand[k])->shape.dim[axis];
	if (s->inlines || n->operands == 1) {
		const char *x = joined_element(s, n, at, n->operands - 1, first[n->operands - 1]);
		for (uint32_t k = n->operands - 1; k-- > 0;)
			x = source_text(s, "select(%s < %" PRIu64 ", %s, %s)", at->dim[axis], first[k + 1],
			                joined_element(s, n, at, k, first[k]), x);
		return x;
	}
	const char *name = source_text(s, "c%u", s->names++);
	source_line(s, "%s %s = %s;", tensor_type_name(wide), name,
	            wide == JIT_TYPE_BOOL ? "false" : source_number(s, wide, 0));
	const size_t seen = s->n_seen;
	for (uint32_t k = 0; k < n->operands; k++) {
		if (k + 1 < n->operands)
			source_line(s, "if (%s < %" PRIu64 ") {", at->dim[axis], first[k + 1]);
		source_line(s, "%s = %s;", name, joined_element(s, n, at, k, first[k]));
		s->n_seen = seen;
		if (k + 1 < n->operands)
			source_line(s, "} else {");
	}
	for (uint32_t k = 1; k < n->operands; k++)
		source_line(s, "}");
	return name;
}

static const char *counted(struct source *s, const struct tensor_node *n, const struct position *at)
{
	const unsigned axis = (unsigned)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);

	return source_text(s, "%s(%s)", tensor_type_name(tensor_wide_type(info(s, n->first)->type)), at->dim[axis]);
}

/* A word of Philox: the dimensions of the key but its last are in front. */
static const char *random_word(struct source *s, const struct tensor_node *n, const struct position *at)
{
	const struct shape *out = &info(s, n->first)->shape;
	const unsigned sets = info(s, n->operand[0])->shape.rank - 1;
	struct shape own = { .rank = out->rank - sets };
	struct position in = { .has_dims = true }, key = { .has_dims = true };
	const char *k[4], *word[4];

	memcpy(own.dim, out->dim + sets, own.rank * sizeof *own.dim);
	memcpy(in.dim, at->dim + sets, own.rank * sizeof *in.dim);
	memcpy(key.dim, at->dim, sets * sizeof *key.dim);
	for (unsigned i = 0; i < 4; i++) {
		key.dim[sets] = source_text(s, "%u", i);
		k[i] = source_element(s, n->operand[0], key);
	}
	const char *i = source_local(s, "i32", position_flat(s, &own, &in));
	for (unsigned w = 0; w < 4; w++)
		word[w] =
			source_text(s, "philox(u32(%s / 4), u32(0), %s, %s, %s, %s, %u)", i, k[2], k[3], k[0], k[1], w);
	return source_text(s, "select(%s %% 4 < 2, select(%s %% 4 == 0, %s, %s), select(%s %% 4 == 2, %s, %s))", i, i,
	                   word[0], word[1], i, word[2], word[3]);
}

/* Dimensions from a up to b that both shapes have the same elements in, from *a and *b on; false: there are no more. */
static bool next_run(const struct shape *x, const struct shape *y, unsigned *a, unsigned *b)
{
	uint64_t m = 1, n = 1;

	if (*a == x->rank && *b == y->rank)
		return false;
	do {
		if (*a < x->rank && (m <= n || *b == y->rank))
			m *= x->dim[(*a)++];
		else
			n *= y->dim[(*b)++];
	} while (m != n);
	return true;
}

/* Dimensions that are cut, or joined, are so alone. */
static struct position reshaped(struct source *s, const struct tensor_node *n, struct position at)
{
	const struct shape *to = &info(s, n->first)->shape, *from = &info(s, n->operand[0])->shape;
	struct position of = { .has_dims = true };
	unsigned a = 0, b = 0;

	if (!at.has_dims || !shape_elements(to))
		return (struct position){ .flat = position_flat(s, to, &at) };
	for (unsigned i = 0, k = 0; next_run(to, from, &a, &b); i = a, k = b) {
		struct shape left = { .rank = a - i }, right = { .rank = b - k };
		struct position run = { .has_dims = true }, cut = { 0 };
		memcpy(left.dim, to->dim + i, left.rank * sizeof *left.dim);
		memcpy(right.dim, from->dim + k, right.rank * sizeof *right.dim);
		memcpy(run.dim, at.dim + i, left.rank * sizeof *run.dim);
		cut.flat = position_flat(s, &left, &run);
		position_dims(s, &right, &cut);
		memcpy(of.dim + k, cut.dim, right.rank * sizeof *cut.dim);
	}
	return of;
}

/* ---- an element */

const char *source_computed(struct source *s, const struct tensor_node *n, struct position at)
{
	const char *x[4];

	if (tensor_op_is_elementwise(n->op)) {
		for (uint32_t k = 0; k < n->operands; k++)
			x[k] = source_element(s, n->operand[k], at);
		return source_apply(s, n, x);
	}
	if (n->op == OP_reshape)
		return source_element(s, n->operand[0], reshaped(s, n, at));
	if (n->op == OP_dequantise)
		return source_weight(s, n, position_flat(s, &info(s, n->first)->shape, &at));
	position_dims(s, &info(s, n->first)->shape, &at);
	switch (n->op) {
	case OP_iota: return counted(s, n, &at);
	case OP_random_bits: return random_word(s, n, &at);
	case OP_pad: return padded(s, n, &at);
	case OP_concatenate: return joined(s, n, &at);
	case OP_take:
	case OP_take_along: return source_taken(s, n, &at);
	case OP_gather_nd: return source_gathered(s, n, &at);
	default: return source_element(s, n->operand[0], moved(s, n, &at));
	}
}

static const char *loaded(struct source *s, tensor_value v, const char *flat)
{
	return source_text(s, info(s, v)->type == JIT_TYPE_BOOL ? "(%s[%s] != 0)" : "%s[%s]", source_array(s, v), flat);
}

const char *source_element(struct source *s, tensor_value v, struct position at)
{
	const int wide = tensor_wide_type(info(s, v)->type);

	if (v == s->product && s->sum)
		return s->sum;
	for (unsigned i = 0; i < s->rows; i++)
		if (s->row[i].v == v)
			return s->row[i].name;
	if (partition_is_literal(s->g, v))
		return source_literal(s, wide, tensor_get(tensor_node_of(s->g, v)->constant, 0));
	/* Nothing comes from there, as all of a pad of nothing is beside it; positions in it would be below 0. */
	if (shape_elements(&info(s, v)->shape) == 0)
		return wide == JIT_TYPE_BOOL ? "false" : source_number(s, wide, 0);
	/* Where a dimension has one element, it is this one, and what is beside it is not read. Positions that
	 * differ there alone have the same flat one, and share what was computed at the first. */
	for (unsigned d = 0; at.has_dims && d < info(s, v)->shape.rank; d++)
		if (info(s, v)->shape.dim[d] == 1)
			at.dim[d] = "0";
	const char *flat = position_flat(s, &info(s, v)->shape, &at);
	for (size_t i = 0; i < s->n_seen; i++)
		if (s->seen[i].v == v && strcmp(s->seen[i].at, flat) == 0)
			return s->seen[i].name;
	const char *x =
		s->p->home[v] == HOME_INLINE ? source_computed(s, tensor_node_of(s->g, v), at) : loaded(s, v, flat);
	const char *name = source_local(s, tensor_type_name(wide), x);
	if (!s->inlines && array_grow((void **)&s->seen, &s->seen_room, s->n_seen + 1, sizeof *s->seen))
		s->seen[s->n_seen++] = (struct seen){ v, flat, name };
	return name;
}

const char *source_finished(struct source *s, const char *sum, struct position at)
{
	const int type = info(s, s->end->first)->type;

	if (s->end->first == s->product)
		return sum;
	s->sum = sum;
	const char *x = source_stored(s, type, source_computed(s, s->end, at));
	s->sum = NULL;
	source_forget(s);
	return x;
}

/* ---- kernels of elements alone */

/* Whether the elements of v need the positions in each dimension. */
static bool needs_dims(const struct source *s, const struct tensor_node *n)
{
	if (!tensor_op_is_elementwise(n->op) && n->op != OP_reshape && n->op != OP_dequantise)
		return true;
	for (uint32_t k = 0; k < n->operands; k++)
		if (s->p->home[n->operand[k]] == HOME_INLINE && needs_dims(s, tensor_node_of(s->g, n->operand[k])))
			return true;
	return false;
}

/* The indices of a kernel over all elements of a shape. Lanes lie along the last index, so it has several elements
 * where the last dimension is small. */
static void over_dims(struct source *s, const struct shape *shape, struct position *at)
{
	enum { INDICES = 4, LANES = 32 };
	unsigned first[INDICES + 1] = { 0 }, n = 0, last = shape->rank;

	while (last > 0 && shape_part(shape, last, shape->rank) < LANES)
		last--;
	for (unsigned d = 0; d < last && n < INDICES - 1; d++)
		if (shape->dim[d] != 1)
			first[n++] = d;
	/* Index i has the dimensions from first[i] to first[i + 1] - 1. */
	first[n++] = last;
	first[0] = 0;
	first[n] = shape->rank;
	at->has_dims = true;
	at->flat = "";
	for (unsigned i = 0; i < n; i++) {
		struct shape part = { .rank = first[i + 1] - first[i] };
		memcpy(part.dim, shape->dim + first[i], part.rank * sizeof *part.dim);
		struct position in = { .flat = source_text(s, "i%u", i) };
		at->flat = source_text(s, "%s%si%u * %" PRIu64, at->flat, i ? " + " : "(", i,
		                       shape_part(shape, first[i + 1], shape->rank));
		bytes_print(&s->head, "%si%u in %" PRIu64, i ? ", " : "", i, shape_elements(&part));
		position_dims(s, &part, &in);
		for (unsigned d = 0; d < part.rank; d++)
			at->dim[first[i] + d] = in.dim[d];
	}
	at->flat = source_text(s, "%s)", at->flat);
}

void source_elements(struct source *s, const struct tensor_node *n)
{
	const struct tensor_value_info *out = info(s, n->first);
	struct position at = { .flat = "i" };

	if (needs_dims(s, n)) {
		over_dims(s, &out->shape, &at);
	} else {
		bytes_print(&s->head, "i in %" PRIu64, shape_elements(&out->shape));
	}
	const char *x = source_stored(s, out->type, source_computed(s, n, at));
	source_line(s, "o[%s] = %s;", at.flat, x);
}
