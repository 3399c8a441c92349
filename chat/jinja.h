/* chat/jinja.h - what the files of the template interpreter share: tokens, nodes, texts, values, and a running
 * template.
 *
 *   jinja_memory.c   blocks of memory that are given back all at once
 *   jinja_lex.c      template text -> tokens
 *   jinja_parse.c    tokens -> tree;  jinja_statement.c, jinja_expression.c, jinja_primary.c: its parts
 *   jinja_text.c     texts with marks, characters
 *   jinja_value.c    what values are: truth, equality, order, dictionaries;  jinja_print.c: their texts
 *   jinja_json.c     JSON -> values, values -> JSON
 *   jinja_eval.c     expressions;  jinja_operators.c, jinja_access.c, jinja_call.c: their parts
 *   jinja_run.c      statements and loops
 *   jinja_method.c, jinja_string.c, jinja_string_method.c, jinja_filter.c, jinja_sequence.c, jinja_test.c: what values
 * can do
 *
 * Errors while a template runs are sticky: the first one is kept in the caller's struct error, `failed` is set, and
 * what still runs does nothing. Memory belongs to the template or to the call, and is given back as a whole.
 */
#ifndef CHAT_JINJA_H
#define CHAT_JINJA_H

#include "chat/chat.h"

/* ---- memory (jinja_memory.c) */

struct memory_block;
struct memory {
	struct memory_block *last;
	size_t total, max;
};

/* NULL: there is none, or the most is reached (*limit is set then, it may be NULL). */
void *memory_take(struct memory *m, size_t n, bool *limit);
/* Makes what was taken last, n bytes at p, longer where it lies; false: it does not fit there. */
bool memory_extend(struct memory *m, const void *p, size_t n, size_t more);
void memory_free(struct memory *m);

/* ---- texts: UTF-8 bytes that say where they came from (jinja_text.c) */

struct text {
	const char *p;
	const uint8_t *mark; /* a byte for each of p's: 1 is the user's. NULL: all are as `user` says */
	size_t n;
	bool user;
	bool safe; /* Python's Markup: what is joined to it is escaped */
};

/* For who has just made a text that nobody else has seen. */
static inline struct text *text_change(const struct text *t) { return (struct text *)(uintptr_t)t; }

/* ---- tokens (jinja_lex.c) */

enum token_type {
	TOKEN_END,
	TOKEN_DATA,
	TOKEN_PRINT,
	TOKEN_PRINT_END,
	TOKEN_BLOCK,
	TOKEN_BLOCK_END,
	TOKEN_NAME,
	TOKEN_STRING,
	TOKEN_INTEGER,
	TOKEN_FLOAT,
	TOKEN_OPERATOR
};

#define OPERATOR2(a, b) ((a) << 8 | (b)) /* an operator of two characters; others are their character */

struct token {
	enum token_type type;
	int op;
	uint32_t line;
	const char *p; /* data, name, string (unescaped) */
	size_t n;
	int64_t integer;
	double real;
};

struct lexer {
	const char *p; /* the template with plain line ends */
	size_t n, at;
	uint32_t line;
	enum { LEX_DATA, LEX_PRINT, LEX_BLOCK, LEX_RAW } state;
	bool begun; /* a tag has begun, which is the next token */
	char open[CHAT_MAX_NESTING + 1];
	unsigned n_open;
	struct memory *memory;
	const char *label;
	struct error *err;
	bool failed;
};

bool lex_next(struct lexer *l, struct token *out);
bool lex_fail(struct lexer *l, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "end of template", "'%}'", "the name 'x'", for messages. */
const char *lex_describe(const struct token *t, char out[80]);

/* ---- values */

enum kind {
	KIND_ABSENT,
	KIND_UNDEFINED,
	KIND_NONE,
	KIND_BOOL,
	KIND_INT,
	KIND_FLOAT,
	KIND_TEXT,
	KIND_LIST,
	KIND_TUPLE,
	KIND_RANGE,
	KIND_VIEW,
	KIND_STREAM,
	KIND_DICT,
	KIND_NAMESPACE,
	KIND_MACRO,
	KIND_FUNCTION,
	KIND_METHOD,
	KIND_LOOP
};

/* Why a value is undefined (value.detail). */
enum undefined {
	UNDEFINED_NAME,
	UNDEFINED_ATTRIBUTE,
	UNDEFINED_ELEMENT,
	UNDEFINED_UNSAFE,
	UNDEFINED_PARAMETER,
	UNDEFINED_OTHER
};

struct value {
	uint8_t kind;   /* enum kind */
	bool user;      /* not for texts: what is printed of it is the user's */
	uint8_t detail; /* undefined: why; view: 'i', 'k' or 'v'; function: which */
	uint8_t of;     /* undefined: the kind that was asked */
	union {
		bool truth;
		int64_t integer;
		double real;
		const struct text *text; /* undefined: the name asked for, or a sentence */
		struct list *list;
		struct dict *dict;
		struct macro *macro;
		struct method *method;
		struct loop *loop;
	};
};

/* Lists, tuples, ranges (all their numbers), views of dictionaries, and streams: Python's generators, which can be gone
 * through once. */
struct list {
	struct value *item;
	size_t n, at; /* at: of a stream, what was taken */
	int64_t start, stop, step;
};

struct pair {
	struct value key, value;
};
struct dict {
	struct pair *pair;
	size_t n, capacity;
	uint32_t *order; /* pairs sorted by key, when there are many */
};

struct method {
	struct value self;
	unsigned number;
};

/* ---- nodes */

enum node_type {
	/* statements */
	NODE_DATA,
	NODE_PRINT,
	NODE_IF,
	NODE_FOR,
	NODE_SET,
	NODE_SET_BLOCK,
	NODE_MACRO,
	NODE_CALL_BLOCK,
	NODE_FILTER_BLOCK,
	NODE_WITH,
	NODE_SCOPE,
	NODE_BREAK,
	NODE_CONTINUE,
	/* expressions */
	NODE_CONSTANT,
	NODE_NAME,
	NODE_ATTRIBUTE,
	NODE_ITEM,
	NODE_SLICE,
	NODE_CALL,
	NODE_FILTER,
	NODE_TEST,
	NODE_NOT,
	NODE_NEGATE,
	NODE_PLUS,
	NODE_BINARY,
	NODE_CONCAT,
	NODE_COMPARE,
	NODE_AND,
	NODE_OR,
	NODE_CHOICE,
	NODE_LIST,
	NODE_TUPLE,
	NODE_DICT,
	/* parts of them */
	NODE_ARGUMENT,
	NODE_KEYWORD,
	NODE_SPREAD,
	NODE_SPREAD_KEYWORDS,
	NODE_OPERAND,
	NODE_PAIR,
	NODE_PARAMETER,
	NODE_BRANCH,
	NODE_NAMESPACE_MEMBER
};

/* A node's parts lie in a, b, c and a chain of nodes (first, next):
 *   if: branches (a: test or NULL, first: body)      for: a target, b sequence, c condition; first: body, other: else
 *   set: a target, b value      block set: a target, b filters around NULL; first: body      filter block: b, first
 *   macro, call block: parameters in other (b: default), first: body; a: the call      with: targets and values in
 * other (a, b) slice: a of; first..: three, NULL for none is NODE_CONSTANT none      call, filter, test: a of, first:
 * arguments compare: a, then operands (op, a)      choice: a test, b then, c else or NULL      dict: pairs (a, b) */
struct node {
	uint8_t type; /* enum node_type */
	uint16_t depth;
	uint32_t line;
	int op;
	unsigned number; /* of a filter or a test, in its table */
	struct node *a, *b, *c, *first, *other, *next;
	struct text name;
	struct value constant;
};

enum { NO_NUMBER = ~0u };
enum { MACRO_VARARGS = 1, MACRO_KWARGS = 2 }; /* op of a macro: what its body asks for */

struct parser {
	struct lexer lex;
	struct memory *memory;
	struct token now, then;
	unsigned nesting, loops;
	bool failed;
};

struct node *parse_expression(struct parser *p);
/* Some expressions with commas between: one, or a tuple. */
struct node *parse_tuple(struct parser *p, bool conditions, const char *end);
struct node *parse_filters(struct parser *p, struct node *of, bool first_is_here);
struct node *parse_unary(struct parser *p, bool filters);
/* Statements up to a tag that begins with one of these names, which is then the token that is there; NULL: to the end.
 */
struct node *parse_body(struct parser *p, const char *const *ends);

struct node *parse_node(struct parser *p, enum node_type type, uint32_t line);
struct node *parse_fail(struct parser *p, const char *expected);
void parse_advance(struct parser *p);
bool parse_is_name(const struct parser *p, const char *name);
bool parse_is_op(const struct parser *p, int op);
bool parse_take_name(struct parser *p, const char *name);
bool parse_take_op(struct parser *p, int op);
bool parse_expect_op(struct parser *p, int op);
bool parse_expect_name(struct parser *p, const char *name);
bool parse_expect(struct parser *p, enum token_type type);
bool parse_enter(struct parser *p);
/* Keeps a node's depth above its parts'. */
struct node *parse_deepen(struct parser *p, struct node *n, const struct node *part);
struct node *parse_pair(struct parser *p, enum node_type type, uint32_t line, struct node *a, struct node *b);
/* Appends a part to a node's chain. */
bool parse_add(struct parser *p, struct node *n, struct node ***tail, struct node *part);

struct go_template;
struct chat_template {
	struct memory memory;
	struct node *body;
	struct go_template *go; /* it is in Go's language; NULL: in Jinja's */
	char *label;
};

/* ---- a running template */

struct binding {
	const char *name;
	size_t n;
	struct value value;
	struct binding *next;
};
struct scope {
	struct scope *parent;
	struct binding *first;
};

struct macro {
	const struct node *node;
	struct scope *scope;
};

/* A text being written. */
struct build {
	struct run *r;
	char *p;
	uint8_t *mark;
	size_t n, capacity;
	bool user;
};

struct run {
	struct memory memory;
	const char *label;
	struct error *err;
	bool failed, refused;
	bool lenient; /* chat_request.lenient */
	uint64_t steps;
	unsigned depth;
	uint32_t line;
	struct scope *scope;
	struct build *out;
	const struct tm *now;
	enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;
};

/* Sets the error, with the line that runs. Returns an absent value. */
struct value run_fail(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *run_take(struct run *r, size_t n); /* NULL: failed */
/* False once the template failed or used up its steps. */
bool run_step(struct run *r, size_t steps);
static inline bool run_bytes(struct run *r, size_t n) { return run_step(r, 1 + n / 64); }

/* ---- texts (jinja_text.c) */

void build_bytes(struct build *b, const char *p, size_t n, bool user);
void build_string(struct build *b, const char *s, bool user);
void build_text(struct build *b, const struct text *t);
void build_part(struct build *b, const struct text *t, size_t from, size_t n);
void build_character(struct build *b, uint32_t c, bool user);
const struct text *build_done(struct build *b);
/* All of it, where it lies. */
const struct text *text_literal(struct run *r, const char *s);
const struct text *text_copy(struct run *r, const struct text *t);
const struct text *text_part(struct run *r, const struct text *t, size_t from, size_t n);
bool text_is(const struct text *t, const char *s);
bool text_same(const struct text *a, const struct text *b);
int text_order(const struct text *a, const struct text *b);
size_t text_characters(struct run *r, const struct text *t);
/* The byte where character i begins; t->n when there are not so many. */
size_t text_offset(const struct text *t, size_t i);
/* The character at a byte, which must be the beginning of one, and its bytes. */
unsigned text_at(const struct text *t, size_t at, uint32_t *c);
size_t text_before(const struct text *t, size_t at); /* where the character before a byte begins */
size_t text_find(const struct text *t, const struct text *what, size_t from, size_t to); /* SIZE_MAX: not there */
size_t text_find_last(struct run *r, const struct text *t, const struct text *what, size_t to);
bool text_user_at(const struct text *t, size_t at);
bool character_is_space(uint32_t c);
bool character_is_line_end(uint32_t c);
bool character_prints(uint32_t c);
/* Upper, lower and title case of a character, where it may be several. */
void build_upper(struct build *b, uint32_t c, bool user);
void build_lower(struct build *b, uint32_t c, bool user);
void build_title(struct build *b, uint32_t c, bool user);
void build_escaped(struct build *b, const struct text *t); /* for HTML, as Markup does */

/* ---- values (jinja_value.c) */

static inline struct value value_of(enum kind k) { return (struct value){ .kind = (uint8_t)k }; }
static inline struct value value_none(void) { return value_of(KIND_NONE); }
static inline struct value value_bool(bool b) { return (struct value){ .kind = KIND_BOOL, .truth = b }; }
static inline struct value value_int(int64_t i) { return (struct value){ .kind = KIND_INT, .integer = i }; }
static inline struct value value_float(double f) { return (struct value){ .kind = KIND_FLOAT, .real = f }; }
static inline struct value value_text(const struct text *t)
{
	return t ? (struct value){ .kind = KIND_TEXT, .text = t } : value_of(KIND_ABSENT);
}
static inline bool is_sequence(struct value v) { return v.kind >= KIND_LIST && v.kind <= KIND_STREAM; }
static inline bool is_number(struct value v) { return v.kind >= KIND_BOOL && v.kind <= KIND_FLOAT; }
static inline int64_t integer_of(struct value v) { return v.kind == KIND_BOOL ? v.truth : v.integer; }
static inline double real_of(struct value v) { return v.kind == KIND_FLOAT ? v.real : (double)integer_of(v); }

struct value value_undefined(enum undefined why, const struct text *name, enum kind of);
struct value value_list(struct run *r, enum kind k, size_t n); /* items absent; absent when failed */
const char *value_type(struct value v);                        /* Python's name of its type */
bool value_truth(struct value v);
bool value_equal(struct run *r, struct value a, struct value b);
/* Below, equal or above 0; fails for values without an order, naming the operator. */
int value_compare(struct run *r, struct value a, struct value b, const char *op);
bool value_contains(struct run *r, struct value in, struct value v);
bool value_same(struct value a, struct value b); /* Python's "is" */
bool value_hashable(struct run *r, struct value v);
struct value fail_undefined(struct run *r, struct value v);

struct value dict_new(struct run *r, size_t capacity);
/* Appends without looking whether it is there; dict_finish() puts that in order. */
bool dict_append(struct run *r, struct dict *d, struct value key, struct value v);
bool dict_finish(struct run *r, struct dict *d);
struct pair *dict_find(struct run *r, const struct dict *d, struct value key);
struct pair *dict_find_name(struct run *r, const struct dict *d, const struct text *name);

struct value value_two(struct run *r, struct value a, struct value b); /* a tuple */
struct value dict_pairs(struct run *r, struct value v, enum kind k);   /* tuples in a list or stream */

/* Every way through a value: the list of its items; NULL when failed. A stream gives what is left, and is used up. */
struct list *iterate(struct run *r, struct value v);

/* ---- their texts (jinja_print.c) */

const struct text *to_text(struct run *r, struct value v); /* str(); never NULL, empty when failed */
void build_str(struct build *b, struct value v);
void build_repr(struct build *b, struct value v);
void print_float(double x, char out[40]);

/* ---- JSON (jinja_json.c) */

struct value json_value(struct run *r, const struct chat_variable *v);
void build_json(struct build *b, struct value v, bool ascii, bool sorted, const struct text *indent,
                const struct text *comma, const struct text *colon, unsigned depth);

/* ---- expressions (jinja_eval.c and its parts) */

struct arguments {
	struct value *v;
	size_t n;
	struct pair *keyword; /* keys are texts */
	size_t n_keywords;
};

struct value eval(struct run *r, const struct node *n);
struct value operate(struct run *r, int op, struct value a, struct value b);
struct value get_attribute(struct run *r, struct value of, const struct text *name);
struct value get_item(struct run *r, struct value of, struct value key);
struct value get_slice(struct run *r, struct value of, struct value from, struct value to, struct value step);
/* a.b.0 as filters take it; many: commas between make a list. */
struct value get_path(struct run *r, struct value of, struct value path);
bool slice_bounds(struct run *r, size_t n, struct value from, struct value to, struct value step, int64_t *at,
                  int64_t *end, int64_t *by);

bool eval_arguments(struct run *r, const struct node *first, struct arguments *out);
struct value call(struct run *r, struct value f, const struct arguments *args);
struct value call_macro(struct run *r, const struct macro *m, const struct arguments *args, struct value caller);
/* Puts arguments where the names say, absent where none is given. names: n of them; the first `required` must be there.
 */
bool bind_arguments(struct run *r, const char *what, const struct arguments *args, const char *const *names, size_t n,
                    size_t required, struct value *out);
bool want_int(struct run *r, const char *what, struct value v, int64_t *out); /* absent leaves *out alone */
bool want_text(struct run *r, const char *what, struct value v, const struct text **out);

struct value global_function(const char *name, size_t n); /* absent: none of that name */
struct value call_function(struct run *r, unsigned number, const struct arguments *args);

/* ---- statements (jinja_run.c) */

struct loop;
void run_statements(struct run *r, const struct node *first);
struct scope *scope_enter(struct run *r, struct scope *parent);
bool scope_set(struct run *r, const char *name, size_t n, struct value v);
struct value loop_attribute(struct run *r, struct loop *loop, const struct text *name);
struct value loop_call(struct run *r, struct loop *loop, const struct text *name, const struct arguments *args);
struct value render_body(struct run *r, const struct node *first); /* as a text */
bool add_keyword(struct run *r, struct arguments *args, const struct text *name, struct value v);

/* ---- methods, filters, tests */

struct value find_method(struct run *r, struct value self, const struct text *name); /* absent: none */
struct value call_method(struct run *r, const struct method *m, const struct arguments *args);
typedef struct value method_fn(struct run *r, struct value self, const struct arguments *args);
/* Of texts (jinja_string.c): split in all its ways, stripping, counting. */
struct value string_split(struct run *r, const struct text *t, const struct text *by, int64_t max, bool from_right);
struct value string_lines(struct run *r, const struct text *t, bool keep);
const struct text *string_strip(struct run *r, const struct text *t, const struct text *chars, bool left, bool right);
const struct text *string_replace(struct run *r, const struct text *t, const struct text *from, const struct text *to,
                                  int64_t max);
const struct text *string_case(struct run *r, const struct text *t, char how);
const struct text *string_join(struct run *r, const struct text *by, struct list *items, bool any);
struct value string_percent(struct run *r, const struct text *t, struct value args);
struct value string_method(struct run *r, unsigned which, const struct text *t, const struct arguments *args);

typedef struct value filter_fn(struct run *r, struct value v, const struct arguments *args);
struct filter {
	const char *name;
	filter_fn *apply;
};
unsigned find_filter(const char *name, size_t n); /* NO_NUMBER: none */
struct value apply_filter(struct run *r, unsigned number, struct value v, const struct arguments *args);
extern const struct filter number_filter[], sequence_filter[], order_filter[]; /* each ends with a NULL */
bool no_arguments(struct run *r, const char *name, const struct arguments *args);
unsigned find_test(const char *name, size_t n);
bool apply_test(struct run *r, unsigned number, struct value v, const struct arguments *args);

#endif
