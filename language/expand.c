/* language/expand.c - a kernel's tree with constants as numbers and functions in the place of their calls.
 *
 * Owns: the copy. Every symbol in it is its own, also where a function is called twice. The file's symbols remember
 * their copy meanwhile; the caller has the file's lock.
 */
#include <string.h>

#include "language/fold.h"
#include "language/kernel.h"

enum { MAX_CALL_DEPTH = 3000 /* of the calls of this file: what is nested in what */ };

struct expander {
	struct jk_kernel *k;
	struct jk_messages *m;
	struct environment e;
	unsigned depth;
	uint32_t memory_capacity;
	bool failed;
};

static struct node *copy_expression(struct expander *x, const struct node *n);
static struct node *copy_statements(struct expander *x, const struct node *n);

static void fail(struct expander *x, struct source_location at, const char *text, unsigned max)
{
	if (!x->failed)
		jk_message_add(x->m, at, text, max);
	x->failed = true;
}

static struct node *new_node(struct expander *x, const struct node *n)
{
	struct node *to = jk_arena_take(&x->k->arena, sizeof *to);

	*to = *n;
	to->a = to->b = to->c = to->d = to->e = to->next = NULL;
	to->number = x->k->n_nodes++;
	if (x->k->n_nodes > MAX_NODES)
		fail(x, n->at, "with its functions in place the kernel has more than %u operations; split it",
		     MAX_NODES);
	return to;
}

static struct symbol *new_symbol(struct expander *x, struct symbol *s)
{
	struct symbol *to = jk_arena_take(&x->k->arena, sizeof *to);

	*to = (struct symbol){
		.kind = s->kind, .type = s->type, .access = s->access, .dims = s->dims, .at = s->at, .name = s->name
	};
	to->assigned = s->assigned;
	to->number = x->k->n_symbols++;
	s->copy = to;
	return to;
}

/* A constant expression of the file. */
static bool constant(struct expander *x, const struct node *n, uint64_t *out)
{
	const struct node *where;

	if (jk_fold_tree(n, &x->e, out, &where))
		return true;
	if (where->kind == NODE_NAME && where->symbol->kind <= SYMBOL_TUNE)
		jk_message_add(x->m, where->at, "the constant %.60s has no value; give one, such as --const %.60s=1000",
		               where->symbol->name->text, where->symbol->name->text);
	else
		jk_message_add(x->m, where->at, "expected an expression of constants");
	x->failed = true;
	return false;
}

/* Of an array: extents, and how many elements it has. max: bytes. */
static void extents(struct expander *x, struct symbol *to, const struct symbol *s, uint64_t max)
{
	unsigned k = 0;

	to->elements = 1;
	for (const struct node *n = s->extent; n && k < JK_MAX_DIMS; n = n->next, k++) {
		uint64_t v;
		if (!constant(x, n, &v))
			return;
		if (!type_is_unsigned(n->type) && (int64_t)v < 0) {
			jk_message_add(x->m, n->at, "an extent of %.60s is %lld; expected 0 or more", s->name->text,
			               (long long)v);
			x->failed = true;
			return;
		}
		to->size[k] = v;
		if (v && to->elements > max / jk_type_bytes(s->type) / v) {
			jk_message_add(x->m, n->at, "%.60s has more than %llu bytes; take smaller extents",
			               s->name->text, (unsigned long long)max);
			x->failed = true;
			return;
		}
		to->elements *= v;
	}
}

/* --- expressions */

static struct node *number(struct expander *x, const struct node *n, uint64_t bits)
{
	struct node *to = new_node(x, n);

	to->kind = n->type == JK_BOOL ? NODE_BOOL : NODE_NUMBER;
	to->symbol = NULL;
	to->bits = jk_fold_form(n->type, bits);
	to->typed = true;
	return to;
}

static struct node *copy_list(struct expander *x, const struct node *n)
{
	struct node *first = NULL, **last = &first;

	for (; n && !x->failed; n = n->next) {
		*last = copy_expression(x, n);
		last = &(*last)->next;
	}
	return first;
}

static struct node *declare(struct expander *x, const struct node *at, struct symbol *s, struct node *value)
{
	struct node *n = new_node(x, at);

	n->kind = NODE_DECLARE;
	n->symbol = s;
	n->a = value;
	return n;
}

/* An array that a function reads is the caller's. */
static void pass_array(struct expander *x, const struct node *argument, struct symbol *parameter)
{
	struct symbol *array = argument->symbol->copy, wanted = *parameter;

	extents(x, &wanted, parameter, INT64_MAX);
	for (unsigned k = 0; k < parameter->dims && !x->failed; k++)
		if (wanted.size[k] != array->size[k]) {
			jk_message_add(x->m, argument->at, "extent %u of %.60s: expected %llu, found %llu (%.60s)",
			               k + 1, parameter->name->text, (unsigned long long)wanted.size[k],
			               (unsigned long long)array->size[k], array->name->text);
			x->failed = true;
		}
	parameter->copy = array;
}

static struct node *copy_call(struct expander *x, const struct node *n)
{
	struct node *to = new_node(x, n), *first = NULL, **last = &first;
	struct node *value[JK_MAX_PARAMETERS];
	const struct symbol *fn = n->symbol;
	unsigned k = 0;

	for (const struct node *a = n->a; a && !x->failed; a = a->next, k++)
		value[k] = a->symbol && a->symbol->kind == SYMBOL_ARRAY && a->kind == NODE_NAME
		                   ? NULL
		                   : copy_expression(x, a);
	k = 0;
	for (struct symbol *s = fn->parameters; s && !x->failed; s = s->next, k++) {
		const struct node *a = n->a;
		for (unsigned skip = k; skip; skip--)
			a = a->next;
		if (s->dims) {
			pass_array(x, a, s);
		} else {
			*last = declare(x, a, new_symbol(x, s), value[k]);
			(*last)->symbol->init = s->assigned ? NULL : value[k];
			last = &(*last)->next;
		}
	}
	to->kind = NODE_INLINED;
	to->symbol = NULL;
	*last = copy_statements(x, fn->body);
	to->a = first;
	if (!x->failed)
		to->b = copy_expression(x, fn->value);
	return to;
}

/* Numbers among themselves. */
static struct node *folded(struct expander *x, struct node *n)
{
	const struct node *where;
	uint64_t bits;

	for (const struct node *a = n->a; a; a = a->next)
		if (a->kind != NODE_NUMBER && a->kind != NODE_BOOL)
			return n;
	if ((n->b && n->b->kind != NODE_NUMBER && n->b->kind != NODE_BOOL) || n->c)
		return n;
	return jk_fold_tree(n, &x->e, &bits, &where) ? number(x, n, bits) : n;
}

static struct node *copy_expression(struct expander *x, const struct node *n)
{
	struct node *to;

	if (x->depth > MAX_CALL_DEPTH)
		fail(x, n->at, "functions and expressions nest deeper than %u; split the kernel", MAX_CALL_DEPTH);
	if (x->failed)
		return new_node(x, n);
	x->depth++;
	switch (n->kind) {
	case NODE_CALL: to = copy_call(x, n); break;
	case NODE_NAME:
		if (n->symbol->kind <= SYMBOL_TUNE) {
			uint64_t v = 0;
			constant(x, n, &v);
			to = number(x, n, v);
		} else {
			to = new_node(x, n);
			to->symbol = n->symbol->copy;
		}
		break;
	default:
		to = new_node(x, n);
		if (n->kind == NODE_NUMBER || n->kind == NODE_BOOL)
			to->bits = jk_fold_form(n->type, n->bits);
		if (n->kind == NODE_ELEMENT)
			to->symbol = n->symbol->copy;
		if (n->kind == NODE_REDUCE)
			to->symbol = new_symbol(x, n->symbol);
		to->a = copy_list(x, n->a);
		if (n->b)
			to->b = copy_expression(x, n->b);
		if (n->c)
			to->c = copy_expression(x, n->c);
		if (n->kind == NODE_UNARY || n->kind == NODE_BINARY || n->kind == NODE_CAST || n->kind == NODE_BUILTIN)
			to = folded(x, to);
	}
	x->depth--;
	return to;
}

/* --- statements */

static void remember(struct expander *x, struct symbol *s)
{
	struct jk_kernel *k = x->k;

	if (k->n_memory == x->memory_capacity) {
		struct symbol **more = jk_arena_take(&k->arena, (x->memory_capacity * 2 + 16) * sizeof *more);
		if (k->n_memory)
			memcpy(more, k->memory, k->n_memory * sizeof *more);
		k->memory = more;
		x->memory_capacity = x->memory_capacity * 2 + 16;
	}
	k->memory[k->n_memory++] = s;
}

static void copy_declare(struct expander *x, const struct node *n, struct node *to)
{
	if (n->a)
		to->a = copy_expression(x, n->a);
	to->symbol = new_symbol(x, n->symbol);
	if (n->a) {
		to->symbol->init = n->symbol->assigned ? NULL : to->a;
		return;
	}
	extents(x, to->symbol, n->symbol, 1 << 20);
	remember(x, to->symbol);
}

static struct node *copy_constant(struct expander *x, const struct node *n)
{
	uint64_t v = 0;

	constant(x, n, &v);
	return number(x, n, v);
}

static struct node *copy_statement(struct expander *x, const struct node *n)
{
	struct node *to = new_node(x, n);

	switch (n->kind) {
	case NODE_DECLARE: copy_declare(x, n, to); return to;
	case NODE_IF:
		to->a = copy_expression(x, n->a);
		to->b = copy_statements(x, n->b);
		to->c = copy_statements(x, n->c);
		return to;
	case NODE_COMPOUND: to->a = copy_statements(x, n->a); return to;
	case NODE_BREAK:
	case NODE_SYNC: return to;
	case NODE_WHILE:
		to->a = copy_expression(x, n->a);
		to->b = copy_constant(x, n->b);
		to->d = copy_statements(x, n->d);
		return to;
	default: break;
	}
	if (n->a)
		to->a = copy_expression(x, n->a);
	if (n->b)
		to->b = copy_expression(x, n->b);
	if (n->kind == NODE_FOR || n->kind == NODE_EACH || n->kind == NODE_SCAN)
		to->symbol = new_symbol(x, n->symbol);
	if (n->c)
		to->c = n->kind == NODE_FOR ? copy_constant(x, n->c) : copy_expression(x, n->c);
	if (n->e)
		to->e = copy_constant(x, n->e);
	if (n->d)
		to->d = n->kind == NODE_SCAN ? copy_expression(x, n->d) : copy_statements(x, n->d);
	if (n->kind == NODE_FOR && n->c && !x->failed &&
	    (type_is_unsigned(to->c->type) ? !to->c->bits : (int64_t)to->c->bits <= 0)) {
		jk_message_add(x->m, n->c->at, "step of a loop: expected 1 or more, found %lld",
		               (long long)to->c->bits);
		x->failed = true;
	}
	return to;
}

static struct node *copy_statements(struct expander *x, const struct node *n)
{
	struct node *first = NULL, **last = &first;

	for (; n && !x->failed; n = n->next) {
		*last = copy_statement(x, n);
		last = &(*last)->next;
	}
	return first;
}

/* --- the kernel */

static void copy_parameters(struct expander *x)
{
	struct symbol **last = &x->k->parameters;

	for (struct symbol *s = x->k->source->parameters; s && !x->failed; s = s->next) {
		struct symbol *to = new_symbol(x, s);
		struct jk_parameter *p = &x->k->parameter[x->k->n_parameters++];
		if (s->dims)
			extents(x, to, s, INT64_MAX / 4);
		*last = to;
		last = &to->next;
		*p = (struct jk_parameter){
			.name = s->name->text, .type = s->type, .access = s->access, .dims = s->dims
		};
		memcpy(p->extent, to->size, sizeof p->extent);
		p->elements = s->dims ? to->elements : 1;
		p->bytes = p->elements * jk_type_bytes(s->type);
	}
}

static void copy_indices(struct expander *x)
{
	struct symbol **last = &x->k->indices;

	x->k->instances = 1;
	for (struct symbol *s = x->k->source->indices; s && !x->failed; s = s->next) {
		struct symbol *to = new_symbol(x, s);
		uint64_t lo = 0, hi = 0;
		if ((s->lo && !constant(x, s->lo, &lo)) || !constant(x, s->hi, &hi))
			return;
		if ((type_is_unsigned(s->type) && hi > INT64_MAX) || (int64_t)hi > (int64_t)1 << 60 ||
		    (int64_t)lo < -((int64_t)1 << 60)) {
			jk_message_add(x->m, s->hi->at, "index %.60s: its range is too large", s->name->text);
			x->failed = true;
			return;
		}
		to->first = (int64_t)lo;
		to->behind = (int64_t)hi > (int64_t)lo ? (int64_t)hi : (int64_t)lo;
		*last = to;
		last = &to->next;
		x->k->n_indices++;
		const uint64_t n = (uint64_t)(to->behind - to->first);
		if (n && x->k->instances > (UINT64_C(1) << 60) / n) {
			jk_message_add(x->m, s->at, "the kernel has more than 2^60 instances");
			x->failed = true;
			return;
		}
		x->k->instances *= n;
	}
}

bool jk_expand(struct jk_kernel *k, struct jk_messages *m)
{
	struct expander x = { .k = k, .m = m, .e = { k->constant, k->known } };

	k->n_nodes = 1;
	copy_parameters(&x);
	if (!x.failed)
		copy_indices(&x);
	if (!x.failed && k->source->block && constant(&x, k->source->block, &k->block) &&
	    (!k->block || k->block > 1 << 20 || (!k->source->cooperates && k->block % 32))) {
		jk_message_add(m, k->source->block->at, "block is %lld; expected %s up to 1048576", (long long)k->block,
		               k->source->cooperates ? "1" : "a multiple of 32");
		x.failed = true;
	}
	if (!x.failed)
		k->body = copy_statements(&x, k->source->body);
	return !x.failed;
}
