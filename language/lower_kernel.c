/* language/lower_kernel.c - a kernel's frame: arguments, units of work, instances, and lanes where these are instances.
 */
#include <stdlib.h>

#include "language/lower_lanes.h"

static uint16_t constant(struct lower *l, int64_t v) { return jk_lower_emit(l, IR_sconst, 0, 0, 0, v); }

/* --- arguments */

static uint16_t signed_word(struct lower *l, uint16_t word)
{
	const uint16_t high = jk_lower_emit(l, IR_sshli, word, 0, 0, 32);

	return jk_lower_emit(l, IR_sshri, high, 0, 0, 32);
}

static void scalar_argument(struct lower *l, const struct symbol *s, ir_a arg, int32_t disp)
{
	const bool is_wide = type_is_wide(s->type);
	uint16_t r = is_wide ? ir_sload64(l->ir, arg, disp).r : ir_sload32(l->ir, arg, disp).r;
	struct value v;

	switch (s->type) {
	case JK_F32:
		v = jk_value_vector(
			JK_F32, jk_lower_emit(l, IR_fbits, jk_lower_emit(l, IR_isplat, r, 0, 0, 0), 0, 0, 0), false);
		break;
	case JK_F64:
		v = jk_value_vector(
			JK_F64, jk_lower_emit(l, IR_dbits, jk_lower_emit(l, IR_lsplat, r, 0, 0, 0), 0, 0, 0), false);
		break;
	case JK_U64: v = jk_value_vector(JK_U64, jk_lower_emit(l, IR_lsplat, r, 0, 0, 0), false); break;
	case JK_BOOL:
		r = jk_lower_emit(l, IR_seq, r, constant(l, 0), 0, 0);
		v = (struct value){
			.kind = VALUE_CONDITION, .type = JK_BOOL, .reg = jk_lower_emit(l, IR_cnot, r, 0, 0, 0)
		};
		break;
	case JK_I32: v = jk_value_scalar(l, JK_I32, signed_word(l, r), INT32_MIN, INT32_MAX); break;
	case JK_U32: v = jk_value_scalar(l, JK_U32, r, 0, UINT32_MAX); break;
	default: v = jk_value_scalar(l, JK_I64, r, INT64_MIN, INT64_MAX); break;
	}
	jk_lower_remember_symbol(l, s, &v);
}

static void arguments(struct lower *l)
{
	const ir_a arg = ir_arg(l->ir);
	int32_t disp = 0;

	for (const struct symbol *s = l->k->parameters; s; s = s->next, disp += 8) {
		if (s->dims)
			l->address[s->number] = ir_aload(l->ir, arg, disp).r;
		else
			scalar_argument(l, s, arg, disp);
	}
	if (l->check)
		l->fault_address = ir_aload(l->ir, arg, disp).r;
	for (uint32_t k = 0; k < l->k->n_memory; k++) {
		const struct symbol *s = l->k->memory[k];
		const uint64_t bytes = s->elements * jk_type_bytes(s->type);
		const uint64_t size = s->kind == SYMBOL_TILE ? (bytes + 255) & ~UINT64_C(255) : bytes * l->lanes;
		if (size > IR_MAX_LOCAL_BYTES)
			jk_lower_fail(l, s->at,
			              "%.60s takes %llu bytes; at most 1048576 are expected, of an array for each of "
			              "32 lanes",
			              s->name->text, (unsigned long long)size);
		l->address[s->number] = ir_local(l->ir, size ? (int64_t)size : 64).r;
	}
	if (l->k->wants_bounce)
		l->bounce = ir_local(l->ir, 64).r;
	jk_lower_check(l);
}

/* --- indices */

static void remember_index(struct lower *l, const struct symbol *s, uint16_t number)
{
	const uint16_t reg = s->first ? jk_lower_emit(l, IR_saddi, number, 0, 0, s->first) : number;
	const uint32_t q = jk_lower_quantity(l, QUANTITY_INSTANCE, s->number, reg, false, s->first, s->behind - 1);
	struct value v = jk_value_of_quantity(l, s->type, q);

	if (s->behind - s->first == 1)
		v = jk_value_int(s->type, s->first);
	jk_lower_remember_symbol(l, s, &v);
}

/* The indices before the one that is given (NULL: all), from a number that counts through them; the last one runs
 * fastest. */
static void split(struct lower *l, uint16_t number, const struct symbol *behind)
{
	const struct symbol *index[JK_MAX_DIMS];
	unsigned n = 0;

	for (const struct symbol *s = l->k->indices; s != behind; s = s->next)
		index[n++] = s;
	while (n-- > 0) {
		const int64_t size = index[n]->behind - index[n]->first;
		uint16_t rest = number;
		if (n && size > 1) {
			const uint16_t quotient = jk_lower_emit(l, IR_sdivi, number, 0, 0, size);
			const uint16_t whole = jk_lower_emit(l, IR_smuli, quotient, 0, 0, size);
			rest = jk_lower_emit(l, IR_ssub, number, whole, 0, 0);
			number = quotient;
		} else if (size <= 1) {
			rest = constant(l, 0);
		}
		remember_index(l, index[n], rest);
	}
}

/* --- kernels whose instances are uniform */

static void instances(struct lower *l, uint16_t begin, uint16_t end)
{
	const struct jk_kernel *k = l->k;
	uint16_t first = begin, behind = end;

	if (k->block > 1) {
		first = jk_lower_emit(l, IR_smuli, begin, 0, 0, (int64_t)k->block);
		behind = jk_lower_emit(l, IR_smuli, end, 0, 0, (int64_t)k->block);
		behind = jk_lower_emit(l, IR_smin, behind, constant(l, (int64_t)k->instances), 0, 0);
	}
	const uint16_t n = jk_lower_emit(l, IR_ssub, behind, first, 0, 0), t = ir_emit(l->ir, IR_loop, 0, n, 0, 0, 0);
	jk_lower_check(l);
	const uint32_t scope = jk_lower_scope(l);
	l->instance = jk_lower_emit(l, IR_sadd, first, t, 0, 0);
	split(l, l->instance, NULL);
	l->kept = jk_kept_of(l);
	l->iterations = k->instances;
	jk_lower_statements(l, k->body);
	jk_lower_faults_end(l);
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
}

/* --- kernels whose instances are lanes, along the last index */

struct along {
	const struct symbol *s;
	uint16_t first;         /* of this unit: how far behind the index's beginning */
	uint16_t number;        /* with check: the number of the row's first instance */
	bool one_unit;          /* is the whole row */
	unsigned rows, vectors; /* that are written side by side, 1 or more: lower_copies.c */
};

struct beside {
	const struct symbol *s;
	uint32_t quantity;
	int64_t by; /* from one to the next */
	bool quads; /* a lane has QUAD neighbours, and the quantity is the number of its quad behind the index's
	               beginning */
};

/* The index of a copy's row, or of its vector. */
static void set_beside(struct lower *l, const struct beside *b, int64_t n)
{
	const int64_t apart = b->quads ? b->s->first + n / QUAD * QUAD * b->by + n % QUAD : n * b->by;
	const struct linear f = { .constant = apart, .n = 1, .term = { { b->quantity, b->quads ? QUAD : 1 } } };
	struct value v = jk_value_linear(l, b->s->type, &f);

	jk_lower_remember_symbol(l, b->s, &v);
}

static void set_vector(struct lower *l, unsigned copy, void *user) { set_beside(l, user, copy % l->stride); }

/* Instances from the number `at` of the index's beginning on, and `more` times as many behind them. */
static void chunk(struct lower *l, const struct along *a, uint16_t at, unsigned more)
{
	const struct symbol *s = a->s;
	const bool quads = l->quads && more % QUAD == QUAD - 1;
	struct beside b = { s, jk_instances_at(l, s, at, more, quads), l->lanes, quads };


	if (a->rows > 1 || (a->vectors > 1 && more)) {
		const uint32_t scope = jk_lower_scope(l);
		jk_copies_begin(l, a->rows, more + 1);
		jk_copies_each(l, set_vector, &b);
		l->chunk++;
		jk_lower_statements(l, l->k->body);
		jk_copies_end(l);
		jk_lower_unscope(l, scope);
		return;
	}
	for (unsigned k = 0; k <= more; k++) {
		const uint32_t scope = jk_lower_scope(l);
		set_beside(l, &b, k);
		if (l->check)
			l->instance = jk_lower_emit(l, IR_sadd, a->number, at, 0, 0);
		l->chunk++;
		jk_lower_statements(l, l->k->body);
		jk_lower_faults_end(l);
		jk_lower_unscope(l, scope);
	}
}

unsigned jk_lower_weight(const struct node *n)
{
	enum { LONG = 1000 };
	unsigned sum = 0;

	for (; n && sum < LONG; n = n->next) {
		if (n->kind == NODE_FOR || n->kind == NODE_WHILE || n->kind == NODE_EACH || n->kind == NODE_SCAN ||
		    n->kind == NODE_IF || n->kind == NODE_REDUCE || n->kind == NODE_ATOMIC)
			return LONG;
		sum += n->kind == NODE_BUILTIN ? 9u : 1u;
		sum += n->a ? jk_lower_weight(n->a) : 0;
		sum += n->b ? jk_lower_weight(n->b) : 0;
		sum += n->c ? jk_lower_weight(n->c) : 0;
		sum += n->d ? jk_lower_weight(n->d) : 0;
	}
	return sum;
}

/* count: whole vectors, known of them or -1 (of quads, by fours), from number `from` of the unit on. */
static void whole_chunks(struct lower *l, const struct along *a, uint16_t count, int64_t known, int64_t from)
{
	const bool brief = (l->quick || l->card) && !l->check && jk_lower_weight(l->k->body) <= 40;
	unsigned copies = a->vectors > 1 ? a->vectors : brief || l->quads ? 4 : 1;
	while (known >= 0 && copies > known && copies > 1)
		copies /= 2;
	const unsigned log_copies = (unsigned)__builtin_ctz(copies);
	const unsigned passes = copies > (l->quads ? QUAD : 1) && (known < 0 || known % copies) ? 2 : 1;
	uint16_t done = 0;

	for (unsigned pass = 0; pass < passes; pass++) {
		const unsigned each = !pass ? copies : l->quads ? QUAD : 1, log_each = (unsigned)__builtin_ctz(each);
		uint16_t iterations = count;
		if (pass)
			iterations = jk_lower_emit(l, IR_sandi, count, 0, 0, copies - 1);
		if (each > 1)
			iterations = jk_lower_emit(l, IR_sshri, iterations, 0, 0, log_each);
		const uint16_t t = ir_emit(l->ir, IR_loop, 0, iterations, 0, 0, 0);
		jk_lower_check(l);
		const uint32_t scope = jk_lower_scope(l);
		uint16_t at = jk_lower_emit(l, IR_sshli, t, 0, 0, l->log_lanes + log_each);
		at = done ? jk_lower_emit(l, IR_sadd, done, at, 0, 0) : at;
		at = from ? jk_lower_emit(l, IR_saddi, at, 0, 0, from) : at;
		at = a->one_unit ? at : jk_lower_emit(l, IR_sadd, a->first, at, 0, 0);
		chunk(l, a, at, each - 1);
		jk_lower_unscope(l, scope);
		ir_endloop(l->ir);
		if (pass + 1 < passes)
			done = jk_lower_emit(l, IR_sshli, jk_lower_emit(l, IR_sshri, count, 0, 0, log_copies), 0, 0,
			                     l->log_lanes + log_copies);
	}
}

static void some_chunk(struct lower *l, const struct along *a, int64_t n, uint16_t at, int64_t rows, unsigned more)
{
	l->iterations = (uint64_t)(rows * n);
	l->some = (unsigned)n;
	chunk(l, a, at, more);
	l->some = 0;
}

/* The last ones of a row: fewer than a vector has, or where lanes have quads, than four. */
static void rest_chunks(struct lower *l, const struct along *a, int64_t n, int64_t rest, int64_t rows)
{
	const int64_t lanes = l->quads ? rest / QUAD : 0, single = rest - lanes * QUAD;
	if (lanes)
		some_chunk(l, a, lanes, constant(l, n - rest), rows, QUAD - 1);
	if (single)
		some_chunk(l, a, single, constant(l, n - single), rows, 0);
}

/* Of rows that begin between two vectors' places, as those of fields with a border do, so many come first, so that
 * vectors lie within lines of the cache. */
static int64_t head_of(const struct lower *l, const struct along *a, int64_t n)
{
	const int64_t past = a->s->first & (l->lanes - 1);

	return l->quick && !l->check && a->one_unit && past && n >= 4 * l->lanes ? l->lanes - past : 0;
}

static void chunks(struct lower *l, const struct along *a, uint16_t in_row)
{
	const struct jk_kernel *k = l->k;
	const int64_t n = a->s->behind - a->s->first, block = (int64_t)k->block, blocks = (n + block - 1) / block;
	const int64_t rows = n ? (int64_t)k->instances / n : 0, head = head_of(l, a, n);
	const unsigned log_some = l->quads ? LOG_QUAD : 0, log_chunk = l->log_lanes + log_some;
	const int64_t rest = (n - head) & ((INT64_C(1) << log_chunk) - 1);

	if (head)
		some_chunk(l, a, head, constant(l, 0), rows, 0);
	if (n - head >= INT64_C(1) << log_chunk) {
		const int64_t known = (n - head < block ? n - head : block) >> log_chunk << log_some;
		const bool differs = n % block && blocks > 1;
		uint16_t count = constant(l, known);
		if (differs) {
			const uint16_t left = jk_lower_emit(l, IR_ssub, constant(l, n), a->first, 0, 0);
			count = jk_lower_emit(l, IR_smin, left, constant(l, block), 0, 0);
			count = jk_lower_emit(l, IR_sshri, count, 0, 0, log_chunk);
			count = log_some ? jk_lower_emit(l, IR_sshli, count, 0, 0, log_some) : count;
		}
		l->iterations = (uint64_t)(rows * (n - head - rest));
		whole_chunks(l, a, count, differs ? -1 : known, head);
	}
	if (!rest)
		return;
	if (blocks > 1)
		jk_lower_open_if(l, jk_lower_emit(l, IR_seq, in_row, constant(l, blocks - 1), 0, 0));
	rest_chunks(l, a, n, rest, rows);
	if (blocks > 1)
		jk_lower_close_if(l);
}

/* The instances of a row, whose indices before the last are known. */
static void one_row(struct lower *l, const struct along *a, uint16_t row, uint16_t in_row)
{
	struct along r = *a;

	r.rows = 1;
	if (l->check)
		r.number = jk_lower_emit(l, IR_smul, row, constant(l, a->s->behind - a->s->first), 0, 0);
	jk_lower_hoist(l, l->k->body, 2);
	l->in_lanes = true;
	chunks(l, &r, in_row);
	l->in_lanes = false;
}

/* --- of several rows */

struct rows {
	const struct symbol *index; /* that tells them apart */
	uint16_t before, first;     /* how many rows have other indices before it; its first number, from 0 on */
};

static void rows_in_order(struct lower *l, const struct along *a, const struct rows *r, uint16_t count, uint16_t in_row)
{
	const uint16_t t = ir_emit(l->ir, IR_loop, 0, count, 0, 0, 0);

	jk_lower_check(l);
	const uint32_t scope = jk_lower_scope(l);
	const uint16_t number = jk_lower_emit(l, IR_sadd, r->first, t, 0, 0);
	remember_index(l, r->index, number);
	one_row(l, a, jk_lower_emit(l, IR_sadd, r->before, number, 0, 0), in_row);
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
}

static void set_row(struct lower *l, unsigned copy, void *user)
{
	set_beside(l, user, copy / l->stride);
	jk_lower_hoist(l, l->k->body, 2);
}

static void rows_beside(struct lower *l, const struct along *a, const struct rows *r, uint16_t in_row)
{
	const struct symbol *s = r->index;
	const uint16_t reg = s->first ? jk_lower_emit(l, IR_saddi, r->first, 0, 0, s->first) : r->first;
	const uint32_t q =
		jk_lower_quantity(l, QUANTITY_INSTANCE, s->number, reg, false, s->first, s->behind - a->rows);
	struct beside b = { .s = s, .quantity = q, .by = 1 };
	const uint32_t scope = jk_lower_scope(l);

	jk_copies_rows(l, a->rows);
	jk_copies_begin(l, a->rows, 1);
	jk_copies_each(l, set_row, &b);
	jk_copies_end(l);
	l->in_lanes = true;
	chunks(l, a, in_row);
	l->in_lanes = false;
	jk_lower_unscope(l, scope);
}

/* group: of rows. The last one of an index may be smaller. */
static void rows_of_unit(struct lower *l, const struct along *a, uint16_t group, uint16_t in_row)
{
	const int64_t each = (int64_t)l->rows;
	struct rows r = { .index = jk_row_index(l->k), .before = constant(l, 0), .first = group };
	const int64_t size = r.index->behind - r.index->first, groups = (size + each - 1) / each;

	if (r.index != l->k->indices) {
		const uint16_t outer = jk_lower_emit(l, IR_sdivi, group, 0, 0, groups);
		r.first = jk_lower_emit(l, IR_ssub, group, jk_lower_emit(l, IR_smuli, outer, 0, 0, groups), 0, 0);
		r.before = jk_lower_emit(l, IR_smul, outer, constant(l, size), 0, 0);
		split(l, outer, r.index);
	}
	r.first = jk_lower_emit(l, IR_smuli, r.first, 0, 0, each);
	const uint16_t left = jk_lower_emit(l, IR_ssub, constant(l, size), r.first, 0, 0);
	if (a->rows == 1) {
		rows_in_order(l, a, &r, jk_lower_emit(l, IR_smin, left, constant(l, each), 0, 0), in_row);
		return;
	}
	if (size % each == 0) {
		rows_beside(l, a, &r, in_row);
		return;
	}
	const uint16_t fewer = jk_lower_emit(l, IR_slt, left, constant(l, each), 0, 0);
	jk_lower_open_if(l, jk_lower_emit(l, IR_cnot, fewer, 0, 0, 0));
	rows_beside(l, a, &r, in_row);
	jk_lower_close_if(l);
	jk_lower_open_if(l, fewer);
	rows_in_order(l, a, &r, left, in_row);
	jk_lower_close_if(l);
}

static void units(struct lower *l, uint16_t begin, uint16_t end)
{
	const struct jk_kernel *k = l->k;
	const uint16_t n = jk_lower_emit(l, IR_ssub, end, begin, 0, 0), t = ir_emit(l->ir, IR_loop, 0, n, 0, 0, 0);
	struct along a = { .s = k->indices };

	jk_lower_check(l);
	jk_copies_of(l, &a.rows, &a.vectors);
	l->quads = jk_has_quads(l, a.vectors);
	while (a.s->next)
		a.s = a.s->next;
	const int64_t size = a.s->behind - a.s->first, blocks = (size + (int64_t)k->block - 1) / (int64_t)k->block;
	const uint32_t scope = jk_lower_scope(l);
	const uint16_t unit = jk_lower_emit(l, IR_sadd, begin, t, 0, 0);
	uint16_t row = unit, in_row = constant(l, 0);
	if (k->indices == a.s) {
		in_row = unit;
		row = constant(l, 0);
	} else if (blocks > 1 && l->rows > 1) { /* rows go by first: what their loops read of the block is at hand */
		const int64_t groups = (int64_t)jk_units_by(k, l->rows) / blocks;
		in_row = jk_lower_emit(l, IR_sdivi, unit, 0, 0, groups);
		row = jk_lower_emit(l, IR_ssub, unit, jk_lower_emit(l, IR_smuli, in_row, 0, 0, groups), 0, 0);
	} else if (blocks > 1) {
		row = jk_lower_emit(l, IR_sdivi, unit, 0, 0, blocks);
		in_row = jk_lower_emit(l, IR_ssub, unit, jk_lower_emit(l, IR_smuli, row, 0, 0, blocks), 0, 0);
	}
	a.one_unit = blocks <= 1;
	a.first = blocks > 1 ? jk_lower_emit(l, IR_smuli, in_row, 0, 0, (int64_t)k->block) : constant(l, 0);
	if (l->rows > 1) {
		rows_of_unit(l, &a, row, in_row);
	} else {
		split(l, row, a.s);
		one_row(l, &a, row, in_row);
	}
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
}

static void whole(struct lower *l)
{
	arguments(l);
	jk_lower_faults_begin(l);
	const uint16_t begin = ir_begin(l->ir).r, end = ir_end(l->ir).r;
	jk_lower_check(l);
	if (!l->k->instances)
		return;
	jk_lower_counts_begin(l);
	jk_lower_hoist(l, l->k->body, 1);
	if (l->k->cooperates)
		instances(l, begin, end);
	else
		units(l, begin, end);
	jk_lower_counts_end(l);
	jk_lower_check(l);
}

static bool finish(struct lower *l, int why, struct error *err)
{
	const struct jk_kernel *k = l->k;

	if (why == 1) {
		if (l->m)
			jk_message_add(l->m, (struct source_location){ 0 }, "no memory to build the kernel %.60s",
			               k->source->name->text);
		return error_set(err, ERROR_MEMORY, "no memory to build the kernel %.60s", k->source->name->text);
	}
	if (why == 3) {
		if (l->m)
			jk_message_add(l->m, k->source->at, "the kernel is too large: %s", l->ir->error);
		return error_set(err, ERROR_UNSUPPORTED, "the kernel %.60s is too large: %s", k->source->name->text,
		                 l->ir->error);
	}
	return why == 0 || error_set(err, ERROR_UNSUPPORTED, "the kernel %.60s cannot be built", k->source->name->text);
}

bool jk_lower_kernel(struct lower *l, struct error *err)
{
	const struct jk_kernel *k = l->k;
	volatile int why = 0;
	jmp_buf out;

	l->lanes = l->ir->lanes;
	l->log_lanes = (unsigned)__builtin_ctz(l->lanes);
	l->arena.out = &out;
	const bool room = jk_copies_alloc(l);
	l->address = calloc(k->n_symbols + 1, sizeof *l->address);
	l->counted = calloc(k->n_symbols + 1, sizeof *l->counted);
	l->ahead = calloc(k->n_symbols + 1, sizeof *l->ahead);
	if (!room || !l->address || !l->counted || !l->ahead)
		why = 1;
	else if ((why = setjmp(out)) == 0)
		whole(l);
	jk_copies_free(l);
	free(l->address);
	free(l->counted);
	free(l->ahead);
	free(l->cse);
	free(l->undo);
	l->arena.out = NULL;
	return finish(l, why, err);
}
