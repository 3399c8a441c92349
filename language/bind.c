/* language/bind.c - a kernel of a file with constants bound, and what is known of it. */
#include <stdlib.h>
#include <string.h>

#include "jit/target.h"
#include "language/fold.h"
#include "language/lower.h"
#include "language/tidy.h"

/* --- values of constants */

static const struct symbol *find_constant(const struct jk_file *f, const char *name)
{
	for (const struct symbol *s = f->constants; s; s = s->next)
		if (strcmp(s->name->text, name) == 0)
			return s;
	return NULL;
}

static bool is_choice(const struct jk_constant *c, int64_t v)
{
	for (size_t k = 0; k < c->choices; k++)
		if (c->choice[k] == v)
			return true;
	return false;
}

/* A number as somebody typed it. */
static bool typed_value(const char *text, unsigned type, uint64_t *bits)
{
	const bool negative = *text == '-';
	const char *digits = text + negative;
	const size_t n = strlen(digits);
	struct jk_messages none = { 0 };
	struct tokens t = { 0 };
	struct arena arena = { 0 };
	volatile bool ok = false;
	jmp_buf out;

	if (type == JK_BOOL) {
		*bits = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
		return *bits || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
	}
	arena.out = &out;
	if (n < 500 && setjmp(out) == 0 && jk_lex_text(&t, &arena, digits, n, &none) && !none.n && t.n == 2 &&
	    (t.token[0].kind == TOKEN_WHOLE || (t.token[0].kind == TOKEN_REAL && type_is_float(type))) &&
	    !t.token[0].start && t.token[0].length == n && (!negative || !type_is_unsigned(type)))
		ok = jk_number_value(digits, (uint32_t)n, type, negative, bits);
	jk_lex_free(&t);
	jk_arena_free(&arena);
	if (ok && negative)
		*bits = jk_fold_unary(OP_NEG, type, jk_fold_form(type, *bits));
	if (ok)
		*bits = jk_fold_form(type, *bits);
	return ok;
}

static bool give(struct jk_kernel *k, const struct jk_value *v, struct jk_messages *m)
{
	const struct symbol *s = find_constant(k->f, v->name);
	uint64_t bits = 0;

	if (!s) {
		jk_message_add(m, (struct source_location){ 0 }, "there is no constant %.60s in this file%s%.60s",
		               v->name, k->f->constants ? "; the first one is " : "",
		               k->f->constants ? k->f->constants->name->text : "");
		return false;
	}
	if (!typed_value(v->text, s->type, &bits)) {
		jk_message_add(m, (struct source_location){ 0 },
		               "constant %.60s: expected a number of type %s, found '%.60s'", v->name,
		               jk_type_text(s->type), v->text);
		return false;
	}
	if (s->kind == SYMBOL_TUNE && !is_choice(&k->f->constant[s->number], (int64_t)bits)) {
		jk_message_add(m, (struct source_location){ 0 },
		               "constant %.60s: %.60s is none of the values that its tune lists", v->name, v->text);
		return false;
	}
	k->constant[s->number] = bits;
	k->known[s->number] = true;
	return true;
}

static bool constants(struct jk_kernel *k, const struct jk_value *value, size_t n, struct jk_messages *m)
{
	const struct node *where;

	k->constant = jk_arena_take(&k->arena, (k->f->n_constants + 1) * sizeof *k->constant);
	k->known = jk_arena_take(&k->arena, (k->f->n_constants + 1) * sizeof *k->known);
	for (size_t i = 0; i < n; i++)
		if (!give(k, &value[i], m))
			return false;
	const struct environment e = { k->constant, k->known };
	for (const struct symbol *s = k->f->constants; s; s = s->next) {
		if (k->known[s->number])
			continue;
		if (s->kind == SYMBOL_TUNE) {
			k->constant[s->number] = (uint64_t)k->f->constant[s->number].choice[0];
			k->known[s->number] = true;
		} else if (s->value) {
			k->known[s->number] = jk_fold_tree(s->value, &e, &k->constant[s->number], &where);
		}
	}
	return true;
}

/* --- what decides the IR */

enum { LANGUAGE_VERSION = 7 }; /* goes up when the same text becomes other IR */

static void identify(struct jk_kernel *k)
{
	const struct tokens *t = &k->f->tokens;
	size_t bytes = 0;
	char *text = jk_arena_take(&k->arena, k->f->bytes + t->n + 1);

	for (size_t i = 0; i < t->n; i++) {
		memcpy(text + bytes, k->f->text + t->token[i].start, t->token[i].length);
		bytes += t->token[i].length;
		text[bytes++] = '\n';
	}
	for (unsigned check = 0; check < 2; check++) {
		const uint64_t more[] = { LANGUAGE_VERSION, check, k->f->n_constants };
		const void *const part[] = { text, k->source->name->text, k->constant, k->known, more };
		const size_t n[] = { bytes, k->source->name->length + 1, k->f->n_constants * sizeof *k->constant,
			             k->f->n_constants * sizeof *k->known, sizeof more };
		jk_sha256(part, n, sizeof n / sizeof *n, k->id[check]);
	}
}

/* --- what is known without running it */

uint64_t jk_units_by(const struct jk_kernel *k, uint64_t rows)
{
	const struct symbol *last = k->indices;

	while (last->next)
		last = last->next;
	const uint64_t n = (uint64_t)(last->behind - last->first);
	uint64_t groups = n ? k->instances / n : 0;
	if (rows > 1) {
		const struct symbol *const row = jk_row_index(k);
		const uint64_t size = (uint64_t)(row->behind - row->first);
		groups = groups / size * ((size + rows - 1) / rows);
	}
	return groups * ((n + k->block - 1) / k->block);
}

static void count_units(struct jk_kernel *k)
{
	if (k->cooperates) {
		k->block = k->block ? k->block : 1;
		k->units = (k->instances + k->block - 1) / k->block;
		return;
	}
	k->rows = jk_rows_of(k);
	if (!k->block)
		k->block = k->rows > 1 ? 128 : 256;
	k->units = jk_units_by(k, k->rows);
}

static void count_bytes(struct jk_kernel *k)
{
	for (size_t p = 0; p < k->n_parameters; p++) {
		bool reads = false, writes = false;
		for (size_t i = 0; i < k->n_uses; i++)
			if (strcmp(k->use[i].array, k->parameter[p].name) == 0) {
				reads |= !k->use[i].write;
				writes |= k->use[i].write;
			}
		k->bytes_read += reads && k->parameter[p].dims ? k->parameter[p].bytes : 0;
		k->bytes_written += writes && k->parameter[p].dims ? k->parameter[p].bytes : 0;
	}
}

static void compact_uses(struct jk_kernel *k)
{
	for (uint32_t i = 0; i < k->f->n_elements; i++)
		if (k->use_of[i]) {
			k->use[k->n_uses] = k->use[i];
			k->use_of[i] = (uint32_t)++k->n_uses;
		}
}

/* The whole walk, once, for what it says of the kernel. */
static bool analyse(struct jk_kernel *k, struct jk_messages *m)
{
	struct lower *l = calloc(1, sizeof *l);
	struct error err = { 0 };
	struct ir ir;
	bool ok;

	if (!l) {
		jk_message_add(m, (struct source_location){ 0 }, "no memory to bind a kernel");
		return false;
	}
	ir_init(&ir, 32);
	*l = (struct lower){ .k = k, .ir = &ir, .m = m, .analyse = true, .rows = (unsigned)k->rows };
	ok = jk_lower_kernel(l, &err) && jk_own_check(l);
	k->wants_bounce = l->wants_bounce;
	k->operations = l->operations;
	free(l->access);
	free(l->quantity);
	jk_arena_free(&l->arena);
	free(l);
	ir_free(&ir);
	return ok;
}

static bool bind(struct jk_kernel *k, const struct jk_value *value, size_t n, struct jk_messages *m)
{
	bool ok;

	if (!constants(k, value, n, m))
		return false;
	k->use = jk_arena_take(&k->arena, (k->f->n_elements + 1) * sizeof *k->use);
	k->use_of = jk_arena_take(&k->arena, (k->f->n_elements + 1) * sizeof *k->use_of);
	k->cooperates = k->source->cooperates;
	ok = jk_expand(k, m);
	if (!ok)
		return false;
	k->locals_capacity = k->n_symbols;
	k->local = jk_arena_take(&k->arena, (k->n_symbols + 1) * sizeof *k->local);
	count_units(k);
	if (k->units >= UINT64_C(1) << 31 || k->instances >= UINT64_C(1) << 40) {
		jk_message_add(m, k->source->at,
		               "the kernel has %llu units of work; at most 2147483647 are expected: not yet",
		               (unsigned long long)k->units);
		return false;
	}
	if (!jk_infer(k, m) || !jk_sync_check(k, m) || !analyse(k, m))
		return false;
	compact_uses(k);
	count_bytes(k);
	identify(k);
	return true;
}

static const struct symbol *find_kernel(const struct jk_file *f, const char *name, struct jk_messages *m)
{
	for (const struct symbol *s = f->kernels; s; s = s->next)
		if (name ? strcmp(s->name->text, name) == 0 : f->n_kernels == 1)
			return s;
	if (name)
		jk_message_add(m, (struct source_location){ 0 },
		               "there is no kernel %.60s in this file; the first one is %.60s", name,
		               f->kernels->name->text);
	else
		jk_message_add(m, (struct source_location){ 0 },
		               "the file has %zu kernels; say which one, such as %.60s", f->n_kernels,
		               f->kernels->name->text);
	return NULL;
}

struct jk_kernel *jk_bind(struct jk_file *f, const char *kernel, const struct jk_value *value, size_t n,
                          struct jk_messages *messages)
{
	const struct symbol *source;
	struct jk_kernel *volatile k;
	jmp_buf out;
	volatile bool ok = false;

	messages->n = 0;
	if (!(source = find_kernel(f, kernel, messages)))
		return NULL;
	if (!(k = calloc(1, sizeof *k))) {
		jk_message_add(messages, (struct source_location){ 0 }, "no memory to bind a kernel");
		return NULL;
	}
	k->f = f;
	k->source = source;
	pthread_mutex_lock(&f->lock);
	f->holders++;
	k->arena.out = &out;
	if (setjmp(out))
		jk_message_add(messages, (struct source_location){ 0 }, "no memory to bind a kernel");
	else
		ok = bind(k, value, n, messages);
	k->arena.out = NULL;
	pthread_mutex_unlock(&f->lock);
	if (ok)
		return k;
	jk_kernel_close(k);
	return NULL;
}

void jk_kernel_close(struct jk_kernel *k)
{
	if (!k)
		return;
	jk_arena_free(&k->arena);
	jk_file_close(k->f);
	free(k);
}

size_t jk_parameters(const struct jk_kernel *k) { return k->n_parameters; }
const struct jk_parameter *jk_parameter(const struct jk_kernel *k, size_t i)
{
	return i < k->n_parameters ? &k->parameter[i] : NULL;
}
uint64_t jk_units(const struct jk_kernel *k) { return k->units; }
uint64_t jk_units_on(const struct jk_kernel *k, const struct target *t)
{
	return k->cooperates ? k->units : jk_units_by(k, jk_rows_on(k, t));
}
const uint8_t *jk_id(const struct jk_kernel *k, bool check) { return k->id[check]; }
size_t jk_uses(const struct jk_kernel *k) { return k->n_uses; }
const struct jk_use *jk_use(const struct jk_kernel *k, size_t i) { return i < k->n_uses ? &k->use[i] : NULL; }
size_t jk_locals(const struct jk_kernel *k) { return k->n_locals; }
const struct jk_local *jk_local(const struct jk_kernel *k, size_t i) { return i < k->n_locals ? &k->local[i] : NULL; }
uint64_t jk_bytes_read(const struct jk_kernel *k) { return k->bytes_read; }
uint64_t jk_bytes_written(const struct jk_kernel *k) { return k->bytes_written; }
uint64_t jk_operations(const struct jk_kernel *k) { return k->operations; }

/* --- IR */

static bool build(struct ir *ir, const struct jk_kernel *k, unsigned lanes, unsigned waves, struct lower *l,
                  struct error *err)
{
	bool ok;

	ir_init(ir, lanes);
	ir->waves = waves;
	ir->beside = true;
	l->k = k;
	l->rows = l->rows ? l->rows : (unsigned)k->rows;
	l->ir = ir;
	ok = jk_lower_kernel(l, err);
	free(l->quantity);
	jk_arena_free(&l->arena);
	if (!ok)
		ir_free(ir);
	return ok;
}

static struct lower *lower_new(const struct jk_kernel *k, struct error *err)
{
	struct lower *l = calloc(1, sizeof *l);

	if (!l)
		error_set(err, ERROR_MEMORY, "no memory to build the kernel %.60s", k->source->name->text);
	return l;
}

bool jk_build_lanes(struct ir *ir, const struct jk_kernel *k, unsigned lanes, unsigned waves, bool check,
                    struct error *err)
{
	struct lower *l = lower_new(k, err);

	if (!l)
		return false;
	l->check = check;
	const bool ok = build(ir, k, lanes, waves, l, err);
	free(l);
	return ok;
}

/* Cards keep more in registers, and their own compilers move what they like. */
static bool tidied(struct ir *ir, const struct jk_kernel *k, const struct target *t, const struct lower *l,
                   struct error *err)
{
	const struct jk_tidy_rules rules = {
		.steady = l->steady,
		.loops = t->backend->host_runs,
		.late_stores = !t->backend->host_runs,
		.early_reads = l->keeps,
		.vectors = t->vector_regs / 4 * 3,
		.scalars = 6,
	};

	if (jk_tidy(ir, &rules))
		return true;
	ir_free(ir);
	return error_set(err, ERROR_MEMORY, "no memory to build the kernel %.60s", k->source->name->text);
}

bool jk_build(struct ir *ir, const struct jk_kernel *k, const struct target *t, bool check, struct error *err)
{
	struct lower *l = lower_new(k, err);

	if (!l)
		return false;
	l->check = check;
	l->quick = t->backend->host_runs;
	l->card = !l->quick;
	l->keeps = l->card && !t->vector_file;
	l->registers = t->vector_regs;
	l->rows = k->cooperates ? 0 : (unsigned)jk_rows_on(k, t);
	l->steady = calloc(IR_MAX_REGS / 64, sizeof *l->steady);
	bool ok =
		l->steady || error_set(err, ERROR_MEMORY, "no memory to build the kernel %.60s", k->source->name->text);
	ok = ok && build(ir, k, t->lanes, t->waves ? t->waves : 1, l, err) && tidied(ir, k, t, l, err);
	free(l->steady);
	free(l);
	return ok;
}

bool jk_fault_text(const struct jk_kernel *k, const uint64_t fault[4], char *out, size_t cap)
{
	const struct jk_use *u = fault[0] && fault[1] ? jk_use(k, (size_t)fault[1] - 1) : NULL;
	uint64_t extent = 0;

	if (!u || fault[3] >= JK_MAX_DIMS)
		return false;
	for (const struct symbol *s = k->parameters; s; s = s->next)
		if (strcmp(s->name->text, u->array) == 0)
			extent = s->size[fault[3]];
	for (uint32_t i = 0; i < k->n_memory; i++)
		if (strcmp(k->memory[i]->name->text, u->array) == 0)
			extent = k->memory[i]->size[fault[3]];
	snprintf(out, cap, "%s:%u:%u: subscript %u of %s is %lld, and its extent is %llu, in instance %llu", k->f->name,
	         u->line, u->column, (unsigned)fault[3] + 1, u->array, (long long)fault[2], (unsigned long long)extent,
	         (unsigned long long)fault[0] - 1);
	return true;
}
