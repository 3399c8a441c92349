/* language/tree.h - what the parser makes of a text: symbols and a tree with names resolved and types known.
 *
 * Owns: the memory of a tree (an arena that is freed whole) and its nodes. Constants have no values here; a kernel that
 * is bound has them. Memory that runs out ends the whole call (longjmp), so that nobody looks at pointers.
 */
#ifndef LANGUAGE_TREE_H
#define LANGUAGE_TREE_H

#include <setjmp.h>

#include "language/jk.h"
#include "language/lex.h"

/* --- memory */

struct arena {
	struct arena_chunk *chunk;
	size_t left;
	jmp_buf *out; /* where to go when memory runs out, with 1 */
};
void *jk_arena_take(struct arena *a, size_t bytes); /* zeroed */
void jk_arena_free(struct arena *a);

/* --- messages */

/* Where something stands in the text. */
struct source_location {
	uint32_t line, column;
};
void jk_message_add(struct jk_messages *m, struct source_location at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- types */

/* Behind the types of jk.h: what a literal has before its context says, and what is no longer looked at because a
 * message has been written about it. */
enum { TYPE_WHOLE = JK_U16 + 1, TYPE_REAL, TYPE_WRONG };

static inline bool type_is_float(unsigned t) { return t == JK_F32 || t == JK_F64; }
static inline bool type_is_int(unsigned t) { return t >= JK_I32 && t <= JK_U64; }
static inline bool type_is_unsigned(unsigned t) { return t == JK_U32 || t == JK_U64; }
static inline bool type_is_wide(unsigned t) { return t == JK_F64 || t == JK_I64 || t == JK_U64; }
static inline bool type_is_value(unsigned t) { return t <= JK_U64; }
/* What a load of such an element gives. */
unsigned jk_type_widened(unsigned element);

/* --- symbols */

enum symbol_kind {
	SYMBOL_CONST,
	SYMBOL_TUNE,
	SYMBOL_FN,
	SYMBOL_KERNEL,
	SYMBOL_SCALAR, /* of a kernel */
	SYMBOL_ARRAY,  /* of a kernel or a function */
	SYMBOL_INDEX,  /* of over, for, each, reductions and scans: not assigned */
	SYMBOL_LOCAL,
	SYMBOL_PRIVATE, /* an array of each lane, or of the instance */
	SYMBOL_TILE
};

struct symbol {
	uint8_t kind, type, access, dims;
	bool assigned; /* after its declaration */
	struct source_location at;
	struct name *name;
	struct symbol *next;       /* of the same list: constants, functions, kernels, parameters, indices */
	struct symbol *shadows;    /* the name's meaning outside of this scope */
	struct symbol *scope_next; /* of the same scope */
	struct node *extent;       /* of an array: a list of dims expressions */
	struct node *value;        /* of a constant; of tune the list of choices; of a function what it returns */
	struct node *lo, *hi;      /* of an index of over; lo NULL: 0 */
	struct node *body;         /* of a function or kernel: a list of statements */
	struct node *block;        /* of a kernel, or NULL */
	struct symbol *parameters, *indices;
	uint32_t number;      /* in its list */
	uint32_t level;       /* of its scope */
	uint32_t first_token; /* of a function or kernel, and one behind its last */
	uint32_t last_token;
	bool cooperates; /* of a kernel: its indices are uniform, and lanes are used inside */

	/* Of the file's tree, while expand.c has its lock: what it is in the kernel that is bound. */
	struct symbol *copy;
	/* Of a bound kernel: number counts its symbols. */
	uint64_t size[JK_MAX_DIMS], elements;
	int64_t first, behind;   /* of an index of over */
	const struct node *init; /* the only value, of a variable that is never assigned */
	struct node *read_loop;  /* the loop around its declaration's level that has all its reads; infer.c */
	bool read_twice;         /* reads stand in several such loops */
	bool varying;            /* may differ between lanes */
	uint8_t control, lanes;  /* how much control that differs between lanes, and how many each, are around it */
	uint8_t loops;           /* how many loops are around it */
	uint8_t depth;           /* the loop in whose body its value is known first: infer.c */
	uint8_t atomic;          /* of a parameter: the operation that alone reaches it, or 0 */
	bool rewritten;          /* of a parameter: an instance may read what it has written */
	uint32_t written;        /* of a parameter: the last chunk that wrote it */
	bool streams;            /* of a parameter: lanes read it side by side, from `min` to `max` elements behind */
	int64_t min, max;        /* where the indices say */
};

/* --- nodes */

enum node_kind {
	NODE_NUMBER,
	NODE_BOOL,
	NODE_NAME,
	NODE_ELEMENT, /* symbol[a, a->next ...] */
	NODE_UNARY,
	NODE_BINARY,
	NODE_SELECT, /* a ? b : c */
	NODE_CAST,
	NODE_CALL,    /* symbol(a, a->next ...); an array among arguments is a NODE_NAME */
	NODE_BUILTIN, /* op: enum builtin */
	NODE_REDUCE,  /* op (symbol in a..b: c) */
	NODE_INLINED, /* statements a, then the value b */
	NODE_WRONG,
	NODE_DECLARE, /* symbol = a; a NULL: an array */
	NODE_ASSIGN,  /* a op= b; op 0: a = b */
	NODE_IF,      /* a, then b, else c; both lists */
	NODE_FOR,     /* symbol in a..b step c, body d, unroll e; c and e may be NULL */
	NODE_WHILE,   /* a, at most b, body d */
	NODE_BREAK,
	NODE_EACH,    /* symbol in a..b, body d */
	NODE_SCAN,    /* op, exclusive when flag (symbol in a..b) c = d */
	NODE_SCATTER, /* a, b */
	NODE_ATOMIC,  /* op, a, b */
	NODE_SYNC,
	NODE_COMPOUND /* a list */
};

/* Of unary and binary nodes, and of assignments. */
enum operation {
	OP_NONE,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_REM,
	OP_AND,
	OP_OR,
	OP_XOR,
	OP_SHL,
	OP_SHR,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_EQ,
	OP_NE,
	OP_BOTH,   /* && */
	OP_EITHER, /* || */
	OP_NEG,
	OP_NOT,  /* ! */
	OP_FLIP, /* ~ */
	OP_MIN,  /* of reductions, scans and atomics, which have OP_ADD, OP_AND and OP_OR, too */
	OP_MAX,
	OP_ANY,
	OP_ALL
};

enum builtin {
#define BUILTIN(name, ...) BUILTIN_##name,
#include "language/builtins.def"
#undef BUILTIN
	BUILTINS
};

struct node {
	uint8_t kind, op, type, flag;
	uint16_t height; /* of the tree below */
	uint32_t use;    /* of an element: its number in the file */
	uint32_t number; /* of an expression of a bound kernel */
	uint8_t depth;   /* the loop in whose body its value is known first, DEPTH_NEVER: it may change anywhere */
	bool varying;    /* may differ between lanes; of a loop: its iterations do */
	bool breaks;     /* of a statement: a break of a varying loop is inside, which is not that of a loop inside */
	struct source_location at;
	struct node *a, *b, *c, *d, *e, *next;
	struct symbol *symbol;
	union {
		const char *text; /* of a number whose type is not yet known */
		uint64_t bits;    /* then */
	};
	uint32_t length; /* of text */
	bool typed;
};

enum {
	MAX_NESTING = 64,
	MAX_HEIGHT = 1000, /* of an expression: what walks over trees calls itself */
	MAX_FILE_BYTES = 1 << 20,
	MAX_NODES = 100000, /* of a kernel with its functions in place */
	DEPTH_NEVER = 255
};

struct jk_file {
	struct arena arena;
	char *name, *text;
	size_t bytes;
	struct tokens tokens;
	struct symbol *constants, *functions, *kernels;
	size_t n_constants, n_kernels;
	uint32_t n_elements;
	struct jk_constant *constant;
	unsigned holders;
	pthread_mutex_t lock; /* of holders */
};

/* --- types.c: how an expression gets its type */

const char *jk_type_text(unsigned type);
/* Gives an expression of literals the type of its context, or says why it cannot have it. False: a message. */
bool jk_type_give(struct jk_messages *m, struct node *n, unsigned type, const char *what);
/* Checks that an expression has the type, or gives it. what: "the value of s", for the message. */
bool jk_type_expect(struct jk_messages *m, struct node *n, unsigned type, const char *what);
void jk_type_unary(struct jk_messages *m, struct node *n);
void jk_type_binary(struct jk_messages *m, struct node *n);
void jk_type_select(struct jk_messages *m, struct node *n);
void jk_type_cast(struct jk_messages *m, struct node *n);
void jk_type_builtin(struct jk_messages *m, struct node *n);
int jk_builtin_find(const char *text, size_t length); /* below 0: there is none */
const char *jk_builtin_name(unsigned b);
unsigned jk_builtin_operands(unsigned b);
const char *jk_operation_text(unsigned op);
/* A number's value once its type is known. False: it does not fit. */
bool jk_number_value(const char *text, uint32_t length, unsigned type, bool negative, uint64_t *bits);

/* --- file.c: what a file says of itself */
bool jk_file_constants(struct jk_file *f, struct jk_messages *m);

#endif
