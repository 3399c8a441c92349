/* language/lower_memory.c - elements of arrays: where they lie, whether they are there, and how lanes reach them. */
#include "base/array.h"
#include "language/lower_memory.h"

static unsigned bytes_of(const struct spot *at) { return jk_type_bytes(at->s->type); }

static void atomic(struct lower *l, const struct spot *at, unsigned op, uint16_t p, uint16_t i, uint16_t v,
                   int32_t disp, uint16_t m)
{
	static const uint16_t rows[][4] = { { IR_iatomic_add, IR_iatomic_add, IR_latomic_add, IR_latomic_add },
		                            { IR_iatomic_min, IR_uatomic_min, 0, 0 },
		                            { IR_iatomic_max, IR_uatomic_max, 0, 0 },
		                            { IR_iatomic_and, IR_iatomic_and, 0, 0 },
		                            { IR_iatomic_or, IR_iatomic_or, 0, 0 } };
	const unsigned which = op == OP_ADD ? 0 : op == OP_MIN ? 1 : op == OP_MAX ? 2 : op == OP_AND ? 3 : 4;
	const enum ir_op row = (enum ir_op)rows[which][at->s->type - JK_I32];

	if (!row)
		jk_lower_fail(l, at->n->at, "atomics of %s but atomic_add: not yet; use i32 or u32",
		              jk_type_name(at->s->type));
	ir_emit(l->ir, row, 0, p, i, v, disp);
	if (m)
		ir_where(l->ir, (ir_m){ m });
}

/* --- where an element lies */

/* A subscript that is not proven to be one. */
static void guard(struct lower *l, struct spot *at, unsigned k)
{
	const struct value *v = &at->sub[k];
	const uint64_t extent = at->s->size[k];
	struct value low, high, both;

	if (!extent) {
		at->ok = jk_value_bits(JK_BOOL, 0);
		return;
	}
	if (v->kind == VALUE_LINEAR && !v->varying) {
		low = jk_lower_binary(l, at->n, OP_GE, *v, jk_value_int(v->type, 0));
		high = jk_lower_binary(l, at->n, OP_LT, *v, jk_value_int(v->type, (int64_t)extent));
		both = jk_lower_binary(l, at->n, OP_BOTH, low, high);
	} else {
		/* without sign, what is below 0 is beyond the end */
		const bool small = !type_is_wide(v->type) || (v->lo >= INT32_MIN && v->hi <= INT32_MAX);
		const unsigned type = small ? JK_U32 : JK_U64;
		const struct value x =
			jk_value_vector(type, small ? jk_lower_to_int(l, v) : jk_lower_to_vector(l, v), v->varying);
		both = extent > UINT32_MAX && type == JK_U32
		               ? jk_value_bits(JK_BOOL, 1)
		               : jk_lower_binary(l, at->n, OP_LT, x, jk_value_int(type, (int64_t)extent));
	}
	at->ok = at->ok.kind == VALUE_NONE ? both : jk_lower_binary(l, at->n, OP_BOTH, at->ok, both);
}

static void find(struct lower *l, const struct node *n, struct spot *at)
{
	int64_t stride = 1;
	unsigned dims = 0;

	*at = (struct spot){ .s = n->symbol, .n = n, .linear = true };
	for (const struct node *a = n->a; a; a = a->next) {
		at->sub[dims] = jk_lower_expression(l, a);
		at->varying |= at->sub[dims].varying;
		at->linear &= at->sub[dims].kind == VALUE_LINEAR;
		dims++;
	}
	for (unsigned k = dims; k-- > 0;) {
		if (at->linear && !jk_linear_add(&at->flat, &at->sub[k].linear, stride))
			at->linear = false;
		stride *= (int64_t)at->s->size[k];
	}
	for (unsigned k = 0; k < dims; k++)
		if (at->sub[k].lo < 0 || at->sub[k].hi >= (wide)at->s->size[k])
			guard(l, at, k);
	if (at->linear)
		jk_linear_has_lanes(l, &at->flat, &at->by);
}

/* base + bytes * form, where the constant becomes the displacement if it can. */
static uint16_t address(struct lower *l, uint16_t base, const struct linear *form, unsigned bytes, int32_t *disp)
{
	struct linear f = { 0 };
	const int64_t max = 1 << 30;

	*disp = 0;
	if (!jk_linear_add(&f, form, bytes))
		jk_lower_fail(l, (struct source_location){ 0 }, "an array is too large for its addresses: not yet");
	if (f.constant > -max && f.constant < max) {
		*disp = (int32_t)f.constant;
		f.constant = 0;
	}
	if (!f.n && !f.constant)
		return base;
	return jk_lower_emit(l, IR_aadd, base, jk_lower_scalar(l, &f), 0, 0);
}

/* A form without the lanes' part, whose lane 0 it is. */
static uint16_t lane_index(struct lower *l, struct spot *at)
{
	uint16_t lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0), last, by;

	if (at->by < 0) { /* from the last lane on: indices have no sign */
		last = jk_lower_emit(l, IR_iconst, 0, 0, 0, l->lanes - 1);
		lane = jk_lower_emit(l, IR_isub, last, lane, 0, 0);
		at->flat.constant += at->by * (int64_t)(l->lanes - 1);
	}
	const int64_t size = at->by < 0 ? -at->by : at->by;
	if (size * (int64_t)(l->lanes * bytes_of(at)) > INT32_MAX)
		jk_lower_fail(l, at->n->at, "lanes are %lld elements of %.60s apart: not yet", (long long)size,
		              at->s->name->text);
	by = jk_lower_emit(l, IR_iconst, 0, 0, 0, size);
	return jk_lower_emit(l, IR_imul, lane, by, 0, 0);
}

/* Which element of the array each lane asks for, from what lies at *p on. */
static uint16_t vector_index(struct lower *l, const struct spot *at, uint16_t *p, int32_t *disp)
{
	const unsigned dims = at->s->dims;
	struct linear rest = { 0 };
	bool apart = true;
	uint16_t sum = 0;
	int64_t by, stride = 1;

	if (at->s->elements * bytes_of(at) > UINT32_MAX - 4)
		jk_lower_fail(l, at->n->at, "%.60s has over 4 GiB, and lanes ask for elements far apart: not yet",
		              at->s->name->text);
	for (unsigned k = 0; k < dims; k++)
		apart &= at->sub[k].kind == VALUE_LINEAR
		                 ? !jk_linear_has_lanes(l, &at->sub[k].linear, &by) && at->ok.kind == VALUE_NONE
		                 : at->sub[k].lo >= 0;
	for (unsigned k = dims; k-- > 0; stride *= (int64_t)at->s->size[k]) {
		if (apart && at->sub[k].kind == VALUE_LINEAR) {
			apart = jk_linear_add(&rest, &at->sub[k].linear, stride);
			if (apart)
				continue;
		}
		uint16_t part = jk_lower_to_int(l, &at->sub[k]);
		if (stride != 1) {
			const uint16_t factor =
				jk_lower_emit(l, IR_iconst, 0, 0, 0, (int32_t)(uint32_t)(uint64_t)stride);
			part = jk_lower_emit(l, IR_imul, part, factor, 0, 0);
		}
		sum = sum ? jk_lower_emit(l, IR_iadd, sum, part, 0, 0) : part;
	}
	*p = address(l, *p, &rest, bytes_of(at), disp);
	return sum ? sum : jk_lower_emit(l, IR_iconst, 0, 0, 0, 0);
}

/* --- what is noted */

static void note(struct lower *l, const struct spot *at, bool write, unsigned atomic_op, bool distinct)
{
	if (!l->analyse)
		return;
	struct jk_kernel *k = (struct jk_kernel *)(uintptr_t)l->k;
	struct jk_use *u = &k->use[at->n->use];
	const bool uniform = at->linear ? !at->by : !at->varying;

	k->use_of[at->n->use] = 1;
	if (!write && at->linear && at->by == 1 && at->s->kind == SYMBOL_ARRAY && !l->loops)
		jk_note_stream(k, (struct symbol *)(uintptr_t)at->s, at->flat.constant);
	if (atomic_op)
		((struct symbol *)(uintptr_t)at->s)->atomic = (uint8_t)atomic_op;
	jk_note_quads(l, at, write, atomic_op != OP_NONE || distinct);
	*u = (struct jk_use){ .line = at->n->at.line,
		              .column = at->n->at.column,
		              .array = at->s->name->text,
		              .write = write,
		              .checked = u->checked || at->ok.kind != VALUE_NONE };
	u->pattern = uniform ? JK_UNIFORM : !at->linear ? JK_GATHER : at->by == 1 ? JK_CONTIGUOUS : JK_STRIDED;
	u->stride = u->pattern == JK_STRIDED ? at->by : 0;
	if ((at->s->kind != SYMBOL_ARRAY && at->s->kind != SYMBOL_TILE) || at->s->access == JK_IN)
		return;
	size_t capacity = l->access_capacity;
	if (!array_grow((void **)&l->access, &capacity, l->n_access + 1, sizeof *l->access))
		longjmp(*l->arena.out, 1);
	l->access_capacity = (uint32_t)capacity;
	l->access[l->n_access++] = (struct access){
		.array = at->s,
		.at = at->n->at,
		.write = write,
		.exempt = distinct,
		.atomic = (uint8_t)atomic_op,
		.linear = at->linear,
		.each = l->each,
		.form = at->flat
	};
}

/* --- private arrays: an element is a vector */

static uint16_t private_address(struct lower *l, struct spot *at, int32_t *disp)
{
	const unsigned bytes = bytes_of(at) * l->lanes;
	struct linear f = at->flat;

	if (at->varying)
		jk_lower_fail(l, at->n->at,
		              "a subscript of %.60s differs between lanes, which have an array each; use uniform ones",
		              at->s->name->text);
	if (!at->linear) {
		f = (struct linear){ 0 };
		int64_t stride = 1;
		for (unsigned k = at->s->dims; k-- > 0; stride *= (int64_t)at->s->size[k]) {
			jk_lower_to_scalar(l, &at->sub[k], at->n->at);
			jk_linear_add(&f, &at->sub[k].linear, stride);
		}
	}
	if (at->ok.kind != VALUE_NONE) { /* what is not there has the place of the first one */
		const uint16_t ok = jk_lower_to_condition(l, &at->ok), flat = jk_lower_scalar(l, &f),
			       zero = jk_lower_emit(l, IR_sconst, 0, 0, 0, 0);
		const struct value v = jk_value_scalar(l, JK_I64, jk_lower_emit(l, IR_ssel, ok, flat, zero, 0), 0,
		                                       (int64_t)at->s->elements - 1);
		f = v.linear;
	}
	return address(l, l->address[at->s->number], &f, bytes, disp);
}

static struct value zero_unless(struct lower *l, const struct spot *at, struct value v)
{
	return at->ok.kind == VALUE_NONE ? v : jk_lower_choose(l, at->ok, v, jk_value_bits(v.type, 0));
}

static struct value load_private(struct lower *l, struct spot *at)
{
	int32_t disp;
	const uint16_t p = private_address(l, at, &disp);

	return zero_unless(l, at,
	                   jk_value_vector(at->s->type, jk_load_lanes(l, at->s->type, p, disp, 0, 0), at->s->varying));
}

static void store_private(struct lower *l, struct spot *at, const struct value *v)
{
	const uint32_t scope = jk_lower_scope(l);
	const bool guarded = at->ok.kind != VALUE_NONE;
	uint16_t x = jk_lower_to_vector(l, v);
	int32_t disp;

	if (guarded)
		jk_lower_open_if(l, jk_lower_to_condition(l, &at->ok));
	const uint16_t p = private_address(l, at, &disp);
	if (l->control > at->s->control && l->mask) {
		const struct value old =
			jk_value_vector(at->s->type, jk_load_lanes(l, at->s->type, p, disp, 0, 0), true);
		const struct value mask = { .kind = VALUE_MASK, .type = JK_BOOL, .varying = true, .reg = l->mask };
		const struct value given = jk_value_vector(at->s->type, x, true);
		const struct value both = jk_lower_choose(l, mask, given, old);
		x = both.reg;
	}
	jk_store_lanes(l, at->s->type, p, x, disp, 0, 0);
	jk_lower_check(l);
	if (guarded) {
		jk_lower_close_if(l);
		jk_lower_unscope(l, scope);
	}
}

/* --- loads */

/* One element for all lanes. */
static struct value load_uniform(struct lower *l, struct spot *at)
{
	const unsigned type = at->s->type, value = jk_type_widened(type);
	const bool scalars = at->s->kind == SYMBOL_ARRAY && at->s->access == JK_IN;
	struct linear f = at->flat;
	int32_t disp;

	if (at->ok.kind != VALUE_NONE) {
		const uint16_t ok = jk_lower_to_condition(l, &at->ok), flat = jk_lower_scalar(l, &f),
			       zero = jk_lower_emit(l, IR_sconst, 0, 0, 0, 0);
		f = jk_value_scalar(l, JK_I64, jk_lower_emit(l, IR_ssel, ok, flat, zero, 0), 0,
		                    (int64_t)at->s->elements - 1)
		            .linear;
	}
	const uint16_t p = address(l, l->address[at->s->number], &f, bytes_of(at), &disp);
	struct value v;
	if (scalars && (type == JK_I32 || type == JK_U32)) {
		uint16_t r = ir_emit(l->ir, IR_sload32, 0, p, 0, 0, disp);
		if (type == JK_I32)
			r = jk_lower_emit(l, IR_sshri, jk_lower_emit(l, IR_sshli, r, 0, 0, 32), 0, 0, 32);
		v = jk_value_scalar(l, type, r, type == JK_I32 ? INT32_MIN : 0,
		                    type == JK_I32 ? INT32_MAX : UINT32_MAX);
	} else if (scalars && type == JK_I64) {
		v = jk_value_scalar(l, type, ir_emit(l->ir, IR_sload64, 0, p, 0, 0, disp), INT64_MIN, INT64_MAX);
	} else if ((scalars || at->s->kind == SYMBOL_TILE) && type <= JK_F16) {
		static const uint16_t rows[] = { 0,         IR_fbcast, IR_dbcast, IR_ibcast,
			                         IR_ibcast, IR_lbcast, IR_lbcast, IR_fbcast_h };
		v = jk_value_vector(value, ir_emit(l->ir, (enum ir_op)rows[type], 0, p, 0, 0, disp), false);
	} else {
		const uint16_t first = jk_lower_emit(l, IR_iconst, 0, 0, 0, 0);
		v = jk_value_vector(value, jk_gather(l, at, p, first, disp, 0), false);
	}
	jk_lower_check(l);
	return zero_unless(l, at, v);
}

static void range_of_element(struct value *v, unsigned element)
{
	switch (element) {
	case JK_I8:
		v->lo = INT8_MIN;
		v->hi = INT8_MAX;
		break;
	case JK_U8: v->hi = UINT8_MAX; break;
	case JK_I16:
		v->lo = INT16_MIN;
		v->hi = INT16_MAX;
		break;
	case JK_U16: v->hi = UINT16_MAX; break;
	default: break;
	}
}

/* Lanes by a form: side by side, or apart by a constant. */
static uint16_t load_linear(struct lower *l, struct spot *at, uint16_t mask)
{
	const unsigned type = at->s->type, n = mask ? 0 : l->some;
	const bool strided = at->by > 1 && at->by < (1 << 21) && (type == JK_F32 || type == JK_I32 || type == JK_U32);
	const uint16_t index = at->by != 1 && !strided ? lane_index(l, at) : 0;
	int32_t disp;
	const uint16_t p = address(l, l->address[at->s->number], &at->flat, bytes_of(at), &disp);
	uint16_t r;

	if (at->by == 1) {
		if (!mask)
			jk_fetch_ahead(l, at, p, disp);
		return jk_load_lanes(l, type, p, disp, n, mask);
	}
	/* Both have all lanes, or a mask. */
	if (!mask && l->some) {
		const uint16_t old = l->mask;
		l->mask = 0;
		mask = jk_lower_full_mask(l);
		l->mask = old;
	}
	if (!strided)
		return jk_gather(l, at, p, index, disp, mask);
	r = ir_emit(l->ir, IR_iload_s, 0, p, 0, 0, ir_x(disp, 0, (unsigned)at->by * 4));
	if (mask)
		ir_where(l->ir, (ir_m){ mask });
	return type == JK_F32 ? jk_lower_emit(l, IR_fbits, r, 0, 0, 0) : r;
}

/* What was read since the instruction `from` is the same wherever it is read. */
static void note_steady(const struct lower *l, size_t from)
{
	for (size_t k = from; l->steady && k < l->ir->n_ins; k++) {
		const struct ir_ins *i = &l->ir->ins[k];
		if (i->dst && !l->ir->is_var[i->dst] && ir_does(i->op, IR_READS))
			l->steady[i->dst / 64] |= UINT64_C(1) << i->dst % 64;
	}
}

static struct value load_at(struct lower *l, const struct node *element, struct spot *spot);

struct value jk_lower_load(struct lower *l, const struct node *element)
{
	struct spot at;

	find(l, element, &at);
	note(l, &at, false, OP_NONE, false);
	jk_note_fault(l, &at);
	const size_t from = l->ir->n_ins;
	const struct value v = load_at(l, element, &at);
	if (at.s->kind == SYMBOL_ARRAY && (at.s->access == JK_IN || (l->quads && !at.s->rewritten)))
		note_steady(l, from);
	return v;
}

static struct value load_at(struct lower *l, const struct node *element, struct spot *spot)
{
	struct spot at = *spot;
	uint16_t reg;

	if (at.ok.kind == VALUE_CONSTANT && !at.ok.bits)
		return jk_value_bits(element->type, 0);
	if (at.s->kind == SYMBOL_PRIVATE)
		return load_private(l, &at);
	if (at.linear && !at.varying)
		return load_uniform(l, &at);
	uint16_t mask = at.ok.kind != VALUE_NONE && at.ok.kind != VALUE_CONSTANT ? jk_lower_to_mask(l, &at.ok) : 0;
	if (at.linear && at.by) {
		/* what a form says holds for every lane that is an instance */
		if (mask || l->some_mask) {
			const uint16_t old = l->mask;
			l->mask = 0;
			mask = jk_lower_and(l, mask, jk_lower_full_mask(l));
			l->mask = old;
		}
		reg = load_linear(l, &at, mask);
	} else {
		uint16_t p = l->address[at.s->number];
		int32_t disp;
		const uint16_t index = vector_index(l, &at, &p, &disp);
		if (at.varying)
			mask = jk_lower_and(l, jk_lower_full_mask(l), mask);
		reg = jk_gather(l, &at, p, index, disp, mask);
	}
	jk_lower_check(l);
	struct value v = jk_value_vector(element->type, reg, at.varying);
	if (type_is_int(v.type))
		range_of_element(&v, at.s->type);
	return v;
}

/* --- stores */

/* Of an instance that has no lanes: one element. */
static void store_one(struct lower *l, struct spot *at, uint16_t x)
{
	const uint32_t scope = jk_lower_scope(l);
	const bool guarded = at->ok.kind != VALUE_NONE;
	int32_t disp;

	if (guarded)
		jk_lower_open_if(l, jk_lower_to_condition(l, &at->ok));
	if (at->linear) {
		const uint16_t p = address(l, l->address[at->s->number], &at->flat, bytes_of(at), &disp);
		jk_store_lanes(l, at->s->type, p, x, disp, 1, 0);
	} else {
		const uint16_t one = jk_lower_emit(l, IR_iconst, 0, 0, 0, 1),
			       lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0);
		const uint16_t first = jk_lower_emit(l, IR_ilt, lane, one, 0, 0);
		uint16_t p = l->address[at->s->number];
		const uint16_t index = vector_index(l, at, &p, &disp);
		jk_scatter(l, at->s->type, p, index, x, disp, first);
	}
	jk_lower_check(l);
	if (guarded) {
		jk_lower_close_if(l);
		jk_lower_unscope(l, scope);
	}
}

static void store_linear(struct lower *l, struct spot *at, uint16_t x, uint16_t mask)
{
	const unsigned type = at->s->type;
	int32_t disp;

	if (at->by == 1) {
		const uint16_t p = address(l, l->address[at->s->number], &at->flat, bytes_of(at), &disp);
		jk_store_lanes(l, type, p, x, disp, mask ? 0 : l->some, mask);
		return;
	}
	if (l->quads && at->by == QUAD && !mask) {
		const uint16_t p = address(l, l->address[at->s->number], &at->flat, bytes_of(at), &disp);
		jk_store_quad(l, type, p, x, disp);
		return;
	}
	const uint16_t index = lane_index(l, at);
	const uint16_t p = address(l, l->address[at->s->number], &at->flat, bytes_of(at), &disp);
	jk_scatter(l, type, p, index, x, disp, mask ? mask : jk_lower_full_mask(l));
}

void jk_lower_store(struct lower *l, const struct node *element, struct value v, unsigned atomic_op, bool distinct)
{
	struct spot at;
	uint16_t mask = 0, p;
	int32_t disp;

	find(l, element, &at);
	note(l, &at, true, atomic_op, distinct);
	jk_note_fault(l, &at);
	if (at.ok.kind == VALUE_CONSTANT && !at.ok.bits)
		return;
	if (at.s->kind == SYMBOL_PRIVATE) {
		store_private(l, &at, &v);
		return;
	}
	uint16_t x = jk_lower_to_vector(l, &v);
	if (at.s->kind == SYMBOL_ARRAY && type_is_float(v.type))
		x = jk_lower_one_nan(l, at.s->type, x);
	if (!l->in_lanes && !atomic_op) {
		store_one(l, &at, x);
		return;
	}
	if (at.ok.kind != VALUE_NONE && at.ok.kind != VALUE_CONSTANT)
		mask = jk_lower_to_mask(l, &at.ok);
	if (mask || l->mask || l->some_mask || atomic_op || !at.linear)
		mask = jk_lower_and(l, jk_lower_full_mask(l), mask);
	/* An instance's atomic, and what is written where all lanes would: by one lane. */
	if (!l->in_lanes || (at.linear && !at.by && !atomic_op)) {
		const uint16_t one = jk_lower_emit(l, IR_iconst, 0, 0, 0, 1),
			       lane = jk_lower_emit(l, IR_ilane, 0, 0, 0, 0);
		mask = jk_lower_and(l, mask, jk_lower_emit(l, IR_ilt, lane, one, 0, 0));
	}
	if (at.linear && !atomic_op && at.by) {
		store_linear(l, &at, x, mask);
	} else {
		p = l->address[at.s->number];
		const uint16_t index = vector_index(l, &at, &p, &disp);
		if (atomic_op)
			atomic(l, &at, atomic_op, p, index, x, disp, mask);
		else
			jk_scatter(l, at.s->type, p, index, x, disp, mask);
	}
	jk_lower_check(l);
}
