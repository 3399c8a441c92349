/* chat/go_template.h - what the files of the interpreter of Go's template language share: tokens, nodes, values.
 *
 *   go_template.c          which language a template is in, and what it looks at
 *   go_template_lex.c      template text -> texts and tokens of actions;  go_template_literal.c: strings and numbers
 *   go_template_parse.c    control structures;  go_template_pipeline.c: what stands in an action
 *   go_template_value.c    types, truth, JSON values -> values
 *   go_template_data.c     messages and tools in the types that ollama hands to templates
 *   go_template_run.c      statements;  go_template_eval.c: pipelines, fields, calls
 *   go_template_call.c     functions;  go_template_compare.c, go_template_escape.c: some of them
 *   go_template_print.c    values as texts;  go_template_printf.c: with verbs;  go_template_json.c: as JSON
 *   go_template_turns.c    a conversation through a template, as ollama drives it
 *
 * Memory, texts with marks, steps and sticky errors are those of jinja.h. The types of values are kept, for Go's
 * templates print, compare and refuse by type.
 */
#ifndef CHAT_GO_TEMPLATE_H
#define CHAT_GO_TEMPLATE_H

#include "chat/jinja.h"

/* How deep actions and parentheses may be nested in each other in a template. */
enum { GO_MAX_NESTING = 200 };

/* ---- tokens (go_template_lex.c) */

enum go_token_type {
	GO_TOKEN_END, /* of the action */
	GO_TOKEN_WORD,
	GO_TOKEN_FIELD,    /* p: behind the dot */
	GO_TOKEN_VARIABLE, /* p: with the dollar sign */
	GO_TOKEN_DOT,
	GO_TOKEN_STRING, /* with its quotes */
	GO_TOKEN_CHARACTER,
	GO_TOKEN_NUMBER,
	GO_TOKEN_OPEN,
	GO_TOKEN_CLOSE,
	GO_TOKEN_PIPE,
	GO_TOKEN_ASSIGN,
	GO_TOKEN_DECLARE,
	GO_TOKEN_OTHER
};

struct go_token {
	enum go_token_type type;
	bool space; /* there is white space before it */
	uint32_t line;
	const char *p;
	size_t n;
};

struct go_lexer {
	const char *p;
	size_t n, at;
	uint32_t line;
	struct go_token *token; /* of the action that was read last; malloc'ed */
	size_t n_tokens, capacity;
	struct text text; /* that was read last */
	uint32_t text_line;
	const char *label;
	struct error *err;
	bool failed;
};

enum go_item { GO_ITEM_END, GO_ITEM_TEXT, GO_ITEM_ACTION };

/* The next text or action; comments are passed over. */
enum go_item go_lex(struct go_lexer *l);
/* The error is kept. Returns false. */
bool go_lex_fail(struct go_lexer *l, uint32_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool go_lex_no_memory(struct go_lexer *l);

/* ---- nodes */

enum go_node_type {
	/* statements */
	GO_NODE_TEXT,
	GO_NODE_ACTION,
	GO_NODE_IF,
	GO_NODE_RANGE,
	GO_NODE_WITH,
	GO_NODE_TEMPLATE,
	GO_NODE_BREAK,
	GO_NODE_CONTINUE,
	/* their parts */
	GO_NODE_PIPE,
	GO_NODE_COMMAND,
	/* operands; a pipe in parentheses is one, too */
	GO_NODE_FIELD,
	GO_NODE_VARIABLE,
	GO_NODE_CHAIN,
	GO_NODE_FUNCTION,
	GO_NODE_DOT,
	GO_NODE_NIL,
	GO_NODE_BOOL,
	GO_NODE_NUMBER,
	GO_NODE_STRING
};

struct go_name {
	struct text text;
	struct go_name *next;
};

/* A node's parts:
 *   action, if, range, with, template: pipe; if, range, with: first: body, other: else; template: text, its name
 *   pipe: first: commands; declared: variables      command: first: operands
 *   field: name: .A.B      variable: text: with the dollar sign, name: fields behind it      chain: first: of, name
 *   function: number, in its table      string: text      bool, number: value; number: text as it is written */
struct go_node {
	uint8_t type; /* enum go_node_type */
	bool gone;    /* it stands behind .Response, and is not run where a prompt ends there */
	bool assigns; /* a pipe: to variables that there are */
	uint32_t line;
	unsigned number;
	struct go_node *pipe, *first, *other, *declared, *next;
	struct go_name *name;
	struct text text;
	struct {
		bool is_int, is_float, truth;
		int64_t integer;
		double real;
	} constant;
};

struct go_defined {
	struct text name;
	struct go_node *body;
	struct go_defined *next;
};

struct go_template {
	struct go_node *body;
	struct go_defined *defined;
	struct chat_facts facts;
	bool ends_with_response; /* nothing in it writes .Response: it stands at the end */
};

struct go_parser {
	struct go_lexer lex;
	struct memory *memory;
	struct go_template *t;
	size_t now;                           /* the token that is looked at */
	struct text *variable;                /* those that are known here; malloc'ed */
	size_t n_variables, capacity, hidden; /* hidden: those before it belong to another template */
	unsigned nesting, loops;
	enum { GO_STOP_NONE, GO_STOP_END, GO_STOP_ELSE, GO_STOP_TEXT } stop;
};

/* Parses it, and finds what it looks at. False: err. */
bool go_open(struct chat_template *t, const char *text, size_t n, struct error *err);
/* False: err. */
bool go_parse(struct chat_template *t, const char *text, size_t n, struct error *err);
struct go_node *go_parse_list(struct go_parser *p);
/* A pipeline up to this token, which is passed. context: names it in messages. */
struct go_node *go_parse_pipe(struct go_parser *p, enum go_token_type end, const char *context);
struct go_node *go_node_new(struct go_parser *p, enum go_node_type type, uint32_t line);
/* With the token that was met; returns NULL. */
struct go_node *go_parse_fail(struct go_parser *p, const char *expected);
bool go_parse_know(struct go_parser *p, const struct go_token *variable);
static inline const struct go_token *go_token(const struct go_parser *p) { return &p->lex.token[p->now]; }
static inline bool go_token_is(const struct go_token *t, const char *word)
{
	return t->type == GO_TOKEN_WORD && text_is(&(struct text){ .p = t->p, .n = t->n }, word);
}
/* The text of a string or a character in quotes, and the value of a number. False: failed. */
bool go_unquote(struct go_parser *p, const struct go_token *t, struct text *out);
bool go_number(struct go_parser *p, const struct go_token *t, struct go_node *out);

/* ---- values (go_template_value.c) */

enum go_kind {
	GO_NONE, /* no value: what a missing member becomes behind a pipeline */
	GO_NIL,  /* an interface that holds nothing */
	GO_BOOL,
	GO_INT,
	GO_BYTE,
	GO_FLOAT,
	GO_STRING,
	GO_LIST,
	GO_MAP,
	GO_STRUCT,
	GO_POINTER, /* to a struct */
	GO_ORDERED  /* a pointer to a map that keeps its members in their order */
};

struct go_value;
struct go_list {
	struct go_value *item;
	size_t n;
};
struct go_pair;
struct go_map {
	struct go_pair *pair; /* sorted by key, but for GO_ORDERED */
	size_t n;
};

struct go_field {
	const char *name, *json;
	const struct go_type *type;
	bool omit; /* from JSON where it is empty */
};

struct go_type {
	const char *name;
	enum go_kind kind;
	const struct go_type *element; /* of lists and maps; what a pointer points to */
	const struct go_field *field;  /* of structs */
	size_t n_fields;
	enum { GO_SAYS_NOTHING, GO_SAYS_JSON, GO_SAYS_TYPES } says; /* what its method String() gives */
};

struct go_value {
	uint8_t kind; /* enum go_kind */
	bool user;    /* not for strings: what is printed of it is the user's */
	bool nil;     /* a list, map or ordered map that was never made */
	bool walks;   /* an ordered map as a sequence: it can be gone through, and nothing else */
	const struct go_type *type;
	union {
		bool truth;
		int64_t integer; /* of a byte, too */
		double real;
		const struct text *text;
		const struct go_list *list;
		const struct go_map *map;
		const struct go_value *field; /* of a struct and of a pointer to one */
	};
};

struct go_pair {
	const struct text *key;
	struct go_value value;
};

extern const struct go_type go_any, go_bool, go_int, go_byte, go_float, go_string, go_list_any, go_list_string,
	go_map_any, go_arguments, go_calls, go_tools, go_tool, go_function, go_parameters, go_properties, go_property,
	go_list_property, go_types, go_ordered, go_message, go_message_pointer, go_messages, go_call, go_call_function,
	go_list_image;

struct go_value go_of_bool(bool b);
struct go_value go_of_int(int64_t i);
struct go_value go_of_text(const struct text *t);
/* The value that a variable of this type has when nothing was put into it. */
struct go_value go_zero(struct run *r, const struct go_type *type);
/* What JSON becomes in an interface{}. */
struct go_value go_from_json(struct run *r, struct value v);
/* A map of any values, in the order of its keys. */
struct go_value go_map_of(struct run *r, const struct go_type *type, struct go_pair *pair, size_t n);
const struct go_value *go_member(const struct go_value *map, const struct text *key);
/* What an interface holds: nothing is GO_NONE. */
static inline struct go_value go_held(struct go_value v)
{
	if (v.kind == GO_NIL)
		v.kind = GO_NONE;
	return v;
}
bool go_truth(struct go_value v);
bool go_is_nil(struct go_value v); /* what compares as nil */
const char *go_type_name(struct go_value v);

/* ---- a running template */

struct go_variable {
	const struct text *name;
	struct go_value value;
};

struct go_run {
	struct run *r;
	const struct go_template *t;
	struct go_variable *variable; /* those that can be seen are from `hidden` on */
	size_t n, capacity, hidden;
	bool cut; /* at .Response */
};

struct go_value go_fail(struct go_run *g, const struct go_node *n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void go_walk(struct go_run *g, const struct go_node *first, struct go_value dot);
bool go_push(struct go_run *g, const struct text *name, struct go_value v);
bool go_enter(struct go_run *g, const struct go_node *n);
void go_leave(struct go_run *g);
struct go_value go_pipe(struct go_run *g, const struct go_node *pipe, struct go_value dot);
/* A call of a function of the table, its arguments evaluated; and and or evaluate theirs one by one. */
struct go_value go_call_number(struct go_run *g, const struct go_node *n, unsigned number, const struct go_node *args,
                               struct go_value dot, const struct go_value *last);
unsigned go_find_function(const char *name, size_t n); /* NO_NUMBER: none */
/* An operand as an argument: of a string, of a value of Go's reflection (nil is GO_NONE), or of an interface. */
enum go_wants { GO_WANTS_VALUE, GO_WANTS_ANY, GO_WANTS_STRING };
struct go_value go_argument(struct go_run *g, const struct go_node *n, struct go_value dot, enum go_wants wants);

/* Of a method of the value's type; false: it has none of that name. */
bool go_method(struct go_run *g, const struct go_node *n, struct go_value of, const struct text *name,
               struct go_value *out);
struct go_value go_compare(struct go_run *g, const struct go_node *n, const char *how, const struct go_value *v,
                           size_t count);
void go_escape(struct build *b, const char *how, const struct text *t);

/* ---- texts */

struct go_format {
	bool minus, plus, sharp, space, zero;
	bool names;           /* of fields, before their values: what + asks of %v */
	int width, precision; /* -1: none is given */
	char verb;
};

void go_print(struct build *b, struct go_value v); /* %v */
void go_print_as(struct go_run *g, const struct go_node *n, struct build *b, struct go_value v,
                 const struct go_format *f);
void go_print_all(struct build *b, const struct go_value *v, size_t n, bool lines);
void go_printf(struct go_run *g, const struct go_node *n, struct build *b, const struct text *format,
               const struct go_value *v, size_t count);
void go_json(struct build *b, struct go_value v);
const struct text *go_json_text(struct run *r, struct go_value v);
void go_json_string(struct build *b, const struct text *t, bool user);
/* The shortest digits that read as x again, as strconv's 'e' or 'g' and JSON write them. */
void go_float_text(double x, char how, char out[48]);
void go_typescript(struct build *b, struct go_value v);

/* ---- conversations */

/* An array of ollama's tools, and of its messages, of the JSON of chat completions. Failed: which member is what. */
struct go_value go_read_tools(struct run *r, struct value tools);
struct go_value go_read_messages(struct run *r, struct value messages);
/* All of it into the run's output. */
void go_render(struct run *r, const struct go_template *t, const struct chat_request *request);

#endif
