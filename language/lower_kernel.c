/* language/lower_kernel.c - a kernel's frame: arguments, units of work, instances, and lanes where these are instances.
 */
#include <stdlib.h>

#include "language/lower.h"

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
	l->turns = k->instances;
	jk_lower_statements(l, k->body);
	jk_lower_faults_end(l);
	jk_lower_unscope(l, scope);
	ir_endloop(l->ir);
}

/* --- kernels whose instances are lanes, along the last index */

struct along {
	const struct symbol *s;
	uint16_t first;  /* of this unit: how far behind the index's beginning */
	uint16_t number; /* with check: the number of the row's first instance */
	bool one_unit;   /* is the whole row */
	unsigned copies; /* vectors that are written side by side, or 1: lower_copies.c */
};

/* The instances of a vector, whose first one is `behind` instances behind the quantity. */
static void set_vector(struct lower *l, const struct along *a, uint32_t quantity, int64_t behind)
{
	const struct linear f = { .constant = behind, .n = 1, .term = { { quantity, 1 } } };
	struct value v = jk_value_linear(l, a->s->type, &f);

	jk_lower_remember_symbol(l, a->s, &v);
}

/* Instances from the number `at` of the index's beginning on, and `more` times as many behind them. */
static void chunk(struct lower *l, const struct along *a, uint16_t at, unsigned more)
{
	const struct symbol *s = a->s;
	const uint16_t reg = s->first ? jk_lower_emit(l, IR_saddi, at, 0, 0, s->first) : at;
	const uint32_t q = jk_lower_quantity(l, QUANTITY_INSTANCE, s->number, reg, true, s->first,
	                                     s->behind - 1 - (int64_t)more * l->lanes);

	if (a->copies > 1 && more) {
		const uint32_t scope = jk_lower_scope(l);
		jk_copies_begin(l, more + 1);
		for (unsigned k = 0; k <= more; k++) {
			jk_copy_use(l, k);
			set_vector(l, a, q, (int64_t)k * l->lanes);
		}
		jk_copy_use(l, 0);
		l->chunk++;
		jk_lower_statements(l, l->k->body);
		jk_copies_end(l);
		jk_lower_unscope(l, scope);
		return;
	}
	for (unsigned k = 0; k <= more; k++) {
		const uint32_t scope = jk_lower_scope(l);
		set_vector(l, a, q, (int64_t)k * l->lanes);
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

/* count: whole vectors; known: how many, or -1. They begin at the number `from` of the unit's first one. */
static void whole_chunks(struct lower *l, const struct along *a, uint16_t count, int64_t known, int64_t from)
{
	const bool brief = (l->quick || l->card) && !l->check && jk_lower_weight(l->k->body) <= 40;
	const unsigned copies = a->copies > 1 ? a->copies : brief ? 4 : 1, log_copies = (unsigned)__builtin_ctz(copies);
	const unsigned passes = copies > 1 && (known < 0 || known % copies) ? 2 : 1;
	uint16_t done = 0;

	for (unsigned pass = 0; pass < passes; pass++) {
		const unsigned each = pass ? 1 : copies;
		uint16_t turns = count;
		if (each > 1)
			turns = jk_lower_emit(l, IR_sshri, count, 0, 0, log_copies);
		else if (pass)
			turns = jk_lower_emit(l, IR_sandi, count, 0, 0, copies - 1);
		const uint16_t t = ir_emit(l->ir, IR_loop, 0, turns, 0, 0, 0);
		jk_lower_check(l);
		const uint32_t scope = jk_lower_scope(l);
		uint16_t at = jk_lower_emit(l, IR_sshli, t, 0, 0, l->log_lanes + (each > 1 ? log_copies : 0));
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

static void some_chunk(struct lower *l, const struct along *a, int64_t n, uint16_t at, int64_t rows)
{
	l->turns = (uint64_t)(rows * n);
	l->some = (unsigned)n;
	chunk(l, a, at, 0);
	l->some = 0;
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
	const int64_t rest = (n - head) & (l->lanes - 1);

	if (head)
		some_chunk(l, a, head, constant(l, 0), rows);
	if (n - head >= l->lanes) {
		const int64_t known = (n - head < block ? n - head : block) >> l->log_lanes;
		const bool differs = n % block && blocks > 1;
		uint16_t count = constant(l, known);
		if (differs) {
			const uint16_t left = jk_lower_emit(l, IR_ssub, constant(l, n), a->first, 0, 0);
			count = jk_lower_emit(l, IR_smin, left, constant(l, block), 0, 0);
			count = jk_lower_emit(l, IR_sshri, count, 0, 0, l->log_lanes);
		}
		l->turns = (uint64_t)(rows * (n - head - rest));
		whole_chunks(l, a, count, differs ? -1 : known, head);
	}
	if (!rest)
		return;
	if (blocks > 1)
		jk_lower_open_if(l, jk_lower_emit(l, IR_seq, in_row, constant(l, blocks - 1), 0, 0));
	some_chunk(l, a, rest, constant(l, n - rest), rows);
	if (blocks > 1)
		jk_lower_close_if(l);
}

static void units(struct lower *l, uint16_t begin, uint16_t end)
{
	const struct jk_kernel *k = l->k;
	const uint16_t n = jk_lower_emit(l, IR_ssub, end, begin, 0, 0), t = ir_emit(l->ir, IR_loop, 0, n, 0, 0, 0);
	struct along a = { .s = k->indices, .copies = jk_copies_of(l, k->body) };

	jk_lower_check(l);
	while (a.s->next)
		a.s = a.s->next;
	const int64_t size = a.s->behind - a.s->first, blocks = (size + (int64_t)k->block - 1) / (int64_t)k->block;
	const uint32_t scope = jk_lower_scope(l);
	uint16_t row = jk_lower_emit(l, IR_sadd, begin, t, 0, 0), in_row = constant(l, 0);
	if (k->indices == a.s) {
		in_row = row;
		row = constant(l, 0);
	} else if (blocks > 1) {
		const uint16_t unit = row;
		row = jk_lower_emit(l, IR_sdivi, unit, 0, 0, blocks);
		const uint16_t whole = jk_lower_emit(l, IR_smuli, row, 0, 0, blocks);
		in_row = jk_lower_emit(l, IR_ssub, unit, whole, 0, 0);
	}
	a.one_unit = blocks <= 1;
	a.first = blocks > 1 ? jk_lower_emit(l, IR_smuli, in_row, 0, 0, (int64_t)k->block) : constant(l, 0);
	if (l->check)
		a.number = jk_lower_emit(l, IR_smul, row, constant(l, size), 0, 0);
	split(l, row, a.s);
	jk_lower_hoist(l, k->body, 2);
	l->in_lanes = true;
	chunks(l, &a, in_row);
	l->in_lanes = false;
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
			jk_message_add(l->m, (struct place){ 0 }, "no memory to build the kernel %.60s",
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
