/* language/parse.c - a file: constants, functions and kernels. */
#include "language/parse.h"

#include <stdlib.h>
#include <string.h>

/* --- tokens */

struct source_location jk_location_of(const struct token *t) { return (struct source_location){ t->line, t->column }; }
bool jk_is_mark(const struct parser *p, unsigned mark) { return p->at->kind == TOKEN_MARK && p->at->mark == mark; }

bool jk_is_word(const struct parser *p, const char *word)
{
	return p->at->kind == TOKEN_NAME && strcmp(p->at->name->text, word) == 0;
}

bool jk_take_mark(struct parser *p, unsigned mark)
{
	const bool there = jk_is_mark(p, mark);

	p->at += there;
	return there;
}

void jk_expected(struct parser *p, const char *what)
{
	const struct token *t = p->at;
	char found[60] = "the end of the file";

	if (p->lost)
		return;
	p->lost = true;
	if (t->kind != TOKEN_END)
		snprintf(found, sizeof found, "'%.*s'", t->length > 40 ? 40 : (int)t->length, p->f->text + t->start);
	jk_message_add(p->m, jk_location_of(t), "expected %s, found %s", what, found);
}

bool jk_expect_mark(struct parser *p, unsigned mark, const char *where)
{
	char what[100];

	if (p->lost)
		return false;
	if (jk_take_mark(p, mark))
		return true;
	snprintf(what, sizeof what, "%s %s", jk_mark_text(mark), where);
	jk_expected(p, what);
	return false;
}

bool jk_enter(struct parser *p)
{
	if (p->depth++ < MAX_NESTING)
		return true;
	if (!p->lost)
		jk_message_add(p->m, jk_location_of(p->at),
		               "brackets and blocks nest deeper than %d; split the expression or use a function",
		               MAX_NESTING);
	p->lost = true;
	return false;
}

void jk_leave(struct parser *p) { p->depth--; }

bool jk_is_type(const struct parser *p) { return p->at->kind >= TOKEN_bool && p->at->kind <= TOKEN_u16; }
unsigned jk_take_type(struct parser *p) { return (unsigned)(p->at++->kind - TOKEN_bool); }

/* --- nodes */

struct node *jk_node_new(struct parser *p, unsigned kind, struct source_location at)
{
	struct node *n = jk_arena_take(p->arena, sizeof *n);

	n->kind = (uint8_t)kind;
	n->at = at;
	n->height = 1;
	n->type = TYPE_WRONG;
	return n;
}

struct node *jk_node_wrong(struct parser *p) { return jk_node_new(p, NODE_WRONG, jk_location_of(p->at)); }

void jk_node_measure(struct parser *p, struct node *n)
{
	const struct node *const part[] = { n->a, n->b, n->c };
	unsigned height = 0;

	for (unsigned k = 0; k < 3; k++)
		for (const struct node *x = part[k]; x; x = x->next)
			height = x->height > height ? x->height : height;
	if (height >= MAX_HEIGHT) {
		jk_message_add(p->m, n->at, "this expression has over %d operations, one inside the other; split it",
		               MAX_HEIGHT);
		*n = (struct node){ .kind = NODE_WRONG, .type = TYPE_WRONG, .at = n->at };
	}
	n->height = (uint16_t)(n->kind == NODE_WRONG ? 1 : height + 1);
}

/* --- constants */

static void append(struct symbol **list, struct symbol *s)
{
	while (*list)
		list = &(*list)->next;
	*list = s;
}

/* Lists of a file are kept with their last one: a file may have 100 000 constants. */
struct lists {
	struct symbol *constant, *function, *kernel;
};

static void add(struct symbol **first, struct symbol **last, struct symbol *s)
{
	*(*last ? &(*last)->next : first) = s;
	*last = s;
}

static void parse_const(struct parser *p, struct lists *lists)
{
	struct symbol *s;

	p->at++;
	if (!jk_is_type(p)) {
		jk_expected(p, "the type of a constant, such as i64");
		return;
	}
	const unsigned type = jk_take_type(p);
	s = jk_declare_later(p, SYMBOL_CONST, type, "the name of a constant");
	if (!s)
		return;
	if (!type_is_value(type)) {
		jk_message_add(p->m, s->at, "%s is a type of elements of arrays alone; a constant is %s",
		               jk_type_text(type), jk_type_text(jk_type_widened(type)));
		s->type = TYPE_WRONG;
	}
	if (jk_take_mark(p, MARK_SET)) {
		s->value = jk_parse_expression(p);
		jk_type_expect(p->m, s->value, s->type, "value of a constant");
	}
	jk_declare_now(p, s);
	jk_expect_mark(p, MARK_SEMICOLON, "behind a constant");
	s->number = (uint32_t)p->f->n_constants++;
	add(&p->f->constants, &lists->constant, s);
}

static void parse_tune(struct parser *p, struct lists *lists)
{
	struct node **last;
	struct symbol *s;

	p->at++;
	s = jk_declare_later(p, SYMBOL_TUNE, JK_I64, "the name of a constant that is tuned");
	if (!s)
		return;
	if (p->at->kind != TOKEN_in) {
		jk_expected(p, "in behind the name of a constant that is tuned");
		return;
	}
	p->at++;
	if (!jk_expect_mark(p, MARK_OPEN_BRACE, "before the values to try"))
		return;
	last = &s->value;
	do {
		if (p->at->kind != TOKEN_WHOLE) {
			jk_expected(p, "a whole number, one of the values to try");
			return;
		}
		*last = jk_parse_expression(p);
		jk_type_expect(p->m, *last, JK_I64, "value to try");
		last = &(*last)->next;
	} while (jk_take_mark(p, MARK_COMMA));
	jk_expect_mark(p, MARK_CLOSE_BRACE, "behind the values to try");
	jk_expect_mark(p, MARK_SEMICOLON, "behind the values to try");
	jk_declare_now(p, s);
	s->number = (uint32_t)p->f->n_constants++;
	add(&p->f->constants, &lists->constant, s);
}

/* --- functions and kernels */

static void check_parameter(struct parser *p, const struct symbol *of, struct symbol *s)
{
	const char *of_what = of->kind == SYMBOL_FN ? "a function" : "a kernel";

	if (s->access == JK_SCALAR && s->dims)
		jk_message_add(p->m, s->at, "expected in, out or inout before the array %.60s of %s", s->name->text,
		               of_what);
	else if (s->access != JK_SCALAR && !s->dims)
		jk_message_add(p->m, s->at, "expected the extents of the array %.60s, such as %.60s[n]", s->name->text,
		               s->name->text);
	else if (of->kind == SYMBOL_FN && s->access > JK_IN)
		jk_message_add(p->m, s->at, "a function can read arrays and not write them; write in before %.60s",
		               s->name->text);
	else if (s->access == JK_SCALAR && !type_is_value(s->type))
		jk_message_add(p->m, s->at, "%s is a type of elements of arrays alone; a scalar is %s",
		               jk_type_text(s->type), jk_type_text(jk_type_widened(s->type)));
	else if (s->dims && s->type == JK_BOOL)
		jk_message_add(p->m, s->at, "arrays have no elements of bool; write u8");
}

static void parse_parameter(struct parser *p, struct symbol *of)
{
	struct symbol *s;
	unsigned access = JK_SCALAR;

	if (p->at->kind == TOKEN_in || p->at->kind == TOKEN_out || p->at->kind == TOKEN_inout)
		access = (unsigned)(p->at++->kind - TOKEN_in) + JK_IN;
	if (!jk_is_type(p)) {
		jk_expected(p, "the type of a parameter, such as f32");
		return;
	}
	const unsigned type = jk_take_type(p);
	s = jk_declare(p,
	               access                  ? SYMBOL_ARRAY
	               : of->kind == SYMBOL_FN ? SYMBOL_LOCAL
	                                       : SYMBOL_SCALAR,
	               type, "the name of a parameter");
	if (!s)
		return;
	s->access = (uint8_t)access;
	s->extent = jk_parse_extents(p, s);
	check_parameter(p, of, s);
	append(&of->parameters, s);
	s->number = of->number++;
	if (of->number > JK_MAX_PARAMETERS) {
		jk_message_add(p->m, s->at, "%.60s has more than %d parameters; split it", of->name->text,
		               JK_MAX_PARAMETERS);
		p->lost = true;
	}
}

static void parse_parameters(struct parser *p, struct symbol *of)
{
	if (!jk_expect_mark(p, MARK_OPEN, "before parameters"))
		return;
	if (jk_take_mark(p, MARK_CLOSE))
		return;
	do
		parse_parameter(p, of);
	while (!p->lost && jk_take_mark(p, MARK_COMMA));
	jk_expect_mark(p, MARK_CLOSE, "behind parameters");
}

static void parse_return(struct parser *p, struct symbol *s)
{
	char what[120];

	if (p->at->kind != TOKEN_return) {
		if (!p->lost)
			jk_expected(p, "return and a value at the end of a function");
		return;
	}
	p->at++;
	snprintf(what, sizeof what, "value of %.60s", s->name->text);
	s->value = jk_parse_expression(p);
	jk_type_expect(p->m, s->value, s->type, what);
	jk_expect_mark(p, MARK_SEMICOLON, "behind return");
}

static void parse_function(struct parser *p, struct lists *lists)
{
	const uint32_t first = (uint32_t)(p->at++ - p->f->tokens.token);
	struct scope scope;
	struct symbol *s;

	if (!jk_is_type(p)) {
		jk_expected(p, "the type that the function returns, such as f32");
		return;
	}
	const unsigned type = jk_take_type(p);
	if (!(s = jk_declare_later(p, SYMBOL_FN, type, "the name of a function")))
		return;
	if (!type_is_value(type))
		jk_message_add(p->m, s->at, "%s is a type of elements of arrays alone; a function returns %s",
		               jk_type_text(type), jk_type_text(jk_type_widened(type)));
	jk_scope_open(p, &scope);
	parse_parameters(p, s);
	if (!p->lost && jk_expect_mark(p, MARK_OPEN_BRACE, "before the body of a function")) {
		s->body = jk_parse_statements(p);
		parse_return(p, s);
		if (!p->lost)
			jk_expect_mark(p, MARK_CLOSE_BRACE, "behind return, which is the last statement of a function");
	}
	jk_scope_close(p);
	s->first_token = first;
	s->last_token = (uint32_t)(p->at - p->f->tokens.token);
	jk_declare_now(p, s); /* not before: a function cannot call itself */
	add(&p->f->functions, &lists->function, s);
}

static void parse_indices(struct parser *p, struct symbol *s)
{
	struct symbol **last = &s->indices;

	if (p->at->kind != TOKEN_over) {
		jk_expected(p, "over behind the parameters of a kernel, such as over (i in n)");
		return;
	}
	p->at++;
	if (!jk_expect_mark(p, MARK_OPEN, "before the indices of a kernel"))
		return;
	do {
		struct symbol *i = jk_declare_later(p, SYMBOL_INDEX, JK_I32, "the name of an index");
		if (!i)
			return;
		if (p->at->kind != TOKEN_in) {
			jk_expected(p, "in behind the name of an index");
			return;
		}
		p->at++;
		i->type = (uint8_t)jk_parse_range(p, &i->lo, &i->hi, true);
		jk_declare_now(p, i);
		*last = i;
		last = &i->next;
		if (s->dims++ == JK_MAX_DIMS)
			jk_message_add(p->m, i->at, "a kernel has at most %d indices", JK_MAX_DIMS);
	} while (jk_take_mark(p, MARK_COMMA));
	jk_expect_mark(p, MARK_CLOSE, "behind the indices of a kernel");
	if (jk_is_word(p, "block")) {
		p->at++;
		if (!jk_expect_mark(p, MARK_OPEN, "behind block"))
			return;
		p->tuning = true;
		s->block = jk_parse_expression(p);
		p->tuning = false;
		if (s->block->type == TYPE_WHOLE)
			jk_type_give(p->m, s->block, JK_I64, "block");
		else if (!type_is_int(s->block->type) && s->block->type != TYPE_WRONG)
			jk_message_add(p->m, s->block->at, "block: expected an integer, found %s",
			               jk_type_text(s->block->type));
		jk_expect_mark(p, MARK_CLOSE, "behind the value of block");
	}
}

static void parse_kernel(struct parser *p, struct lists *lists)
{
	const uint32_t first = (uint32_t)(p->at++ - p->f->tokens.token);
	struct scope scope, body;
	struct symbol *s = jk_declare(p, SYMBOL_KERNEL, TYPE_WRONG, "the name of a kernel");

	if (!s)
		return;
	jk_scope_open(p, &scope);
	p->kernel = s;
	parse_parameters(p, s);
	if (!p->lost)
		parse_indices(p, s);
	if (!p->lost && jk_expect_mark(p, MARK_OPEN_BRACE, "before the body of a kernel")) {
		jk_scope_open(p, &body);
		s->body = jk_parse_statements(p);
		jk_scope_close(p);
		if (p->at->kind == TOKEN_return)
			jk_expected(p, "} or a statement of a kernel, which returns nothing");
		if (!p->lost)
			jk_expect_mark(p, MARK_CLOSE_BRACE, "behind the body of a kernel");
	}
	jk_scope_close(p);
	p->kernel = NULL;
	s->first_token = first;
	s->last_token = (uint32_t)(p->at - p->f->tokens.token);
	p->f->n_kernels++;
	add(&p->f->kernels, &lists->kernel, s);
}

/* Goes on at the next word that begins something at the outermost level. */
static void skip_to_declaration(struct parser *p, const struct token *begin)
{
	if (p->at == begin && p->at->kind != TOKEN_END)
		p->at++;
	while (p->at->kind != TOKEN_END && p->at->kind != TOKEN_fn && p->at->kind != TOKEN_kernel &&
	       p->at->kind != TOKEN_const && p->at->kind != TOKEN_tune)
		p->at++;
	p->lost = false;
	p->depth = p->loops = p->lanes = 0;
}

static void parse_file(struct parser *p)
{
	struct lists lists = { 0 };
	struct scope scope;

	jk_scope_open(p, &scope);
	while (p->at->kind != TOKEN_END && p->m->n < JK_MAX_MESSAGES) {
		const struct token *begin = p->at;
		switch (p->at->kind) {
		case TOKEN_const: parse_const(p, &lists); break;
		case TOKEN_tune: parse_tune(p, &lists); break;
		case TOKEN_fn: parse_function(p, &lists); break;
		case TOKEN_kernel: parse_kernel(p, &lists); break;
		default: jk_expected(p, "const, tune, fn or kernel"); break;
		}
		if (p->lost)
			skip_to_declaration(p, begin);
	}
	jk_scope_close(p);
	if (!p->f->n_kernels && !p->m->n)
		jk_message_add(p->m, (struct source_location){ 0 }, "expected a kernel; this file has none");
}

static bool parse_all(struct jk_file *f, struct jk_messages *m)
{
	struct parser p = { .f = f, .arena = &f->arena, .m = m };
	jmp_buf out;

	f->arena.out = &out;
	if (setjmp(out) || !jk_lex_text(&f->tokens, &f->arena, f->text, f->bytes, m)) {
		m->n = 0;
		jk_message_add(m, (struct source_location){ 0 }, "no memory to read a file of %zu bytes", f->bytes);
		return false;
	}
	p.at = f->tokens.token;
	parse_file(&p);
	f->arena.out = NULL;
	return !m->n;
}

struct jk_file *jk_parse(const char *name, const char *text, size_t bytes, struct jk_messages *messages)
{
	struct jk_file *f;

	messages->n = 0;
	if (bytes > MAX_FILE_BYTES) {
		jk_message_add(messages, (struct source_location){ 0 },
		               "the file has %zu bytes; at most %d are expected", bytes, MAX_FILE_BYTES);
		return NULL;
	}
	f = calloc(1, sizeof *f);
	if (f) {
		f->holders = 1;
		pthread_mutex_init(&f->lock, NULL);
		f->name = strdup(name);
		f->text = malloc(bytes + 1);
		f->bytes = bytes;
	}
	if (!f || !f->name || !f->text) {
		jk_message_add(messages, (struct source_location){ 0 }, "no memory to read a file of %zu bytes", bytes);
		jk_file_close(f);
		return NULL;
	}
	memcpy(f->text, text, bytes);
	f->text[bytes] = 0;
	if (!parse_all(f, messages) || !jk_file_constants(f, messages)) {
		jk_file_close(f);
		return NULL;
	}
	return f;
}
