/* language/lower.h - from a bound kernel to IR: what the files of this step share.
 *
 * Owns: the state of one walk over a kernel's tree. Bounds, patterns of memory and who owns what it writes follow from
 * the same values that instructions are made of, so jk_bind() does the whole walk once, too, and keeps what it notes.
 *
 * A value is a constant, a linear form of whole quantities (indices, and what is uniform and computed from them), a
 * vector, a mask or a uniform condition. Linear forms become instructions late: in an address the lane's part is the
 * instruction's own, a constant is its displacement, and the rest is shared by all that have it.
 */
#ifndef LANGUAGE_LOWER_H
#define LANGUAGE_LOWER_H

#include "jit/ir/ir_build_memory.h"
#include "language/kernel.h"

__extension__ typedef __int128 wide;

/* A whole number that a linear form is made of: uniform, or one more in each lane. Its range is exact where it is an
 * index's: all values between the ends occur. */
enum quantity_kind { QUANTITY_INSTANCE, QUANTITY_EACH, QUANTITY_LOOP, QUANTITY_OTHER };
struct quantity {
	uint8_t kind;
	bool lanes;   /* lane l has reg + l */
	uint16_t reg; /* of type s */
	uint32_t id;  /* of an index: its symbol's number; the same index has one id wherever its loop is written */
	int64_t lo, hi;
	const struct node *each; /* in whose iterations it was computed: it may differ between them; or NULL */
};

enum { MAX_TERMS = 6 };
struct term {
	uint32_t quantity;
	int64_t by;
};
struct linear {
	int64_t constant;
	unsigned n;
	struct term term[MAX_TERMS]; /* ascending quantities */
};

enum value_kind { VALUE_NONE, VALUE_CONSTANT, VALUE_LINEAR, VALUE_VECTOR, VALUE_MASK, VALUE_CONDITION };
struct value {
	uint8_t kind, type;
	bool varying;
	uint16_t reg;
	uint64_t bits; /* of a constant: of floats, of bool, and of u64 from 2^63 on */
	struct linear linear;
	wide lo, hi; /* of integers */
};

/* What an access to an array looks like, for proofs of who owns it: own.c. */
struct access {
	const struct symbol *array;
	struct source_location at;
	bool write, exempt; /* exempt: scatter_distinct */
	uint8_t atomic;     /* its operation */
	bool linear;
	const struct node *each; /* the statement whose iterations it is in, or NULL */
	struct linear form;
};

struct cse {
	uint32_t row;
	uint16_t a, b, c, reg;
	int64_t imm;
	uint32_t next;
};
struct undo {
	enum { UNDO_CSE, UNDO_NODE, UNDO_SYMBOL } kind;
	uint32_t number; /* bucket, node or symbol */
	unsigned copy;   /* of the latter two */
};

enum { MAX_COPIES = 64, MAX_ROWS = 8, LOG_QUAD = 2, QUAD = 1 << LOG_QUAD };

struct loop_state {
	uint16_t live; /* variable: the lanes that are still in a varying loop; 0: the loop is uniform */
	unsigned control;
	const struct node *node;
};

struct lower {
	const struct jk_kernel *k;
	struct ir *ir;
	struct jk_messages *m; /* NULL in jk_build: what it would say is known to be fine */
	struct arena arena;
	bool check, failed, analyse;
	uint32_t chunk;   /* number of the vector of instances that is written */
	uint32_t *ahead;  /* by symbol: the last one that prefetched of it */
	bool quick;       /* for a CPU: more instructions that take less time */
	bool card;        /* for a card: reads that do not wait for each other are written together */
	bool keeps;       /* for a card whose own compiler hands out its registers, and spills where they are too few */
	bool quads;       /* where vectors of instances stand side by side, a lane has QUAD neighbours: lower_quads.c */
	unsigned kept;    /* ranges of so many vectors are written without a loop: lower_kept.c */
	uint64_t *steady; /* a bit for each register: read of an array that no instance writes; NULL: not noted */
	unsigned lanes, log_lanes;

	uint16_t mask;      /* lanes that are active, 0: all; or a variable */
	unsigned some;      /* the lanes from this number on are no instances, 0: all are */
	uint16_t some_mask; /* the same where the number is not known, or 0 */
	unsigned control;   /* how much control that differs between lanes is around */
	bool in_lanes;      /* values may differ between lanes: in each and so on, or where lanes are instances */
	const struct node *each;
	struct loop_state loop[64];
	unsigned loops;

	struct quantity *quantity;
	uint32_t n_quantities, quantities_capacity;
	struct value **memo;   /* by node */
	struct value **symbol; /* by symbol: what it is worth, or the variable that it is */
	/* Vectors of instances whose statements are written one after another, each with a memo and symbols of its own:
	 * lower_copies.c */
	unsigned rows;                 /* of a unit */
	unsigned registers;            /* for vectors; 0: nothing is written side by side */
	unsigned copies, copy, stride; /* stride: from a row's first copy to the next row's */
	uint8_t written[MAX_COPIES];   /* the numbers of those that are written, `copies` of them */
	struct value **memo_of[MAX_COPIES], **symbol_of[MAX_COPIES];
	uint16_t *address; /* by symbol: of arrays, private arrays and tiles */
	uint16_t *counted; /* by symbol: of an array whose copy is at `address`, or 0 */
	uint32_t bucket[4096];
	struct cse *cse;
	uint32_t n_cse, cse_capacity;
	struct undo *undo;
	uint32_t n_undo, undo_capacity;

	struct access *access;
	uint32_t n_access, access_capacity;
	uint32_t if_scope[IR_MAX_DEPTH + 1];
	unsigned ifs;
	uint16_t bounce; /* local bytes for a vector that becomes a scalar */
	bool wants_bounce;
	uint16_t fault, fault_access, fault_index, fault_which; /* with check: variables of the chunk's lanes */
	uint16_t fault_address;
	uint16_t instance;   /* with check: the number of the first lane's instance */
	uint64_t iterations; /* of loops around, for counts of operations */
	uint64_t operations;
};

/* --- lower_value.c */
_Noreturn void jk_lower_fail(struct lower *l, struct source_location at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void jk_lower_check(struct lower *l); /* leaves when the IR has an error */
uint16_t jk_lower_emit(struct lower *l, enum ir_op row, uint16_t a, uint16_t b, uint16_t c, int64_t imm);
void jk_lower_note_undo(struct lower *l, unsigned kind, uint32_t number);
uint32_t jk_lower_scope(const struct lower *l);
void jk_lower_unscope(struct lower *l, uint32_t scope);
void jk_lower_open_if(struct lower *l, uint16_t condition);
void jk_lower_close_if(struct lower *l);
uint16_t jk_lower_copy(struct lower *l, uint16_t reg); /* of a variable's value now; else the register itself */
uint16_t jk_lower_variable(struct lower *l, enum ir_type type, uint16_t first);
void jk_lower_assign(struct lower *l, uint16_t variable, uint16_t value);

uint32_t jk_lower_quantity(struct lower *l, enum quantity_kind kind, uint32_t id, uint16_t reg, bool lanes, int64_t lo,
                           int64_t hi);
bool jk_linear_add(struct linear *to, const struct linear *b,
                   int64_t by); /* to += by * b; false: it has too many terms */
void jk_linear_range(const struct lower *l, const struct linear *f, wide *lo, wide *hi);
bool jk_linear_has_lanes(const struct lower *l, const struct linear *f, int64_t *by);

void jk_type_range(unsigned type, wide *lo, wide *hi);
enum ir_type jk_lower_lane_type(unsigned type);
struct value jk_value_int(unsigned type, int64_t v);
struct value jk_value_bits(unsigned type, uint64_t bits);
struct value jk_value_vector(unsigned type, uint16_t reg, bool varying);
struct value jk_value_linear(const struct lower *l, unsigned type, const struct linear *f);
struct value jk_value_scalar(struct lower *l, unsigned type, uint16_t reg, int64_t lo, int64_t hi); /* uniform */
struct value jk_value_of_quantity(struct lower *l, unsigned type, uint32_t quantity);
bool jk_value_is_constant(const struct value *v, int64_t *out);    /* of integers */
uint16_t jk_lower_scalar(struct lower *l, const struct linear *f); /* without lanes */
uint16_t jk_lower_to_scalar(struct lower *l, struct value *v, struct source_location at);
uint16_t jk_lower_to_vector(struct lower *l, const struct value *v);
uint16_t jk_lower_to_int(struct lower *l, const struct value *v); /* the low 32 bits as lanes */
uint16_t jk_lower_to_mask(struct lower *l, const struct value *v);
uint16_t jk_lower_to_condition(struct lower *l, const struct value *v);
uint16_t jk_lower_all_lanes(struct lower *l);                   /* a mask */
uint16_t jk_lower_and(struct lower *l, uint16_t a, uint16_t b); /* of masks; 0 is all lanes */
uint16_t jk_lower_full_mask(struct lower *l);                   /* active lanes that are instances; 0: all */

/* --- lower_arithmetic.c, lower_function.c */
struct value jk_lower_binary(struct lower *l, const struct node *n, unsigned op, struct value a, struct value b);
struct value jk_lower_unary(struct lower *l, const struct node *n, struct value a);
struct value jk_lower_cast(struct lower *l, const struct node *n, unsigned type, struct value a);
struct value jk_lower_choose(struct lower *l, struct value c, struct value a, struct value b);
struct value jk_lower_builtin(struct lower *l, const struct node *n, struct value *operand);

/* --- lower_rows.c: x, lanes of f32 or f64 that become elements of a type, with one NaN in place of all. Machines
 * compute NaNs with different bits, and no memory may show that. */
uint16_t jk_lower_one_nan(struct lower *l, unsigned element, uint16_t x);

/* --- lower_memory.c */
struct value jk_lower_load(struct lower *l, const struct node *element);
/* op: of an atomic, OP_NONE: a store; distinct: scatter_distinct */
void jk_lower_store(struct lower *l, const struct node *element, struct value v, unsigned atomic, bool distinct);
void jk_lower_faults_begin(struct lower *l);
void jk_lower_faults_end(struct lower *l); /* writes what there is, and forgets it */

/* --- lower_expression.c */
struct value jk_lower_expression(struct lower *l, const struct node *n);
struct value jk_lower_symbol(struct lower *l, const struct symbol *s);
void jk_lower_remember_symbol(struct lower *l, const struct symbol *s, const struct value *v);
/* Computes what the body of a loop has that is known outside of it. */
void jk_lower_hoist(struct lower *l, const struct node *list, unsigned depth);

/* --- lower_quads.c: whether a lane takes QUAD neighbours where vectors of instances stand side by side. vectors: that
 * jk_copies_of() wants. */
bool jk_has_quads(const struct lower *l, unsigned vectors);
/* A quantity: in lane l the number of an instance from `at` of the index's beginning on, where `more` vectors stand
 * behind that one; or of QUAD instances, counted from the index's beginning. */
uint32_t jk_instances_at(struct lower *l, const struct symbol *index, uint16_t at, unsigned more, bool quads);

/* --- lower_copies.c */
/* How many rows, and vectors of each, are worth writing side by side. */
void jk_copies_of(const struct lower *l, unsigned *rows, unsigned *vectors);
bool jk_copies_alloc(struct lower *l);
void jk_copies_free(struct lower *l);
/* The first copy of each row, MAX_COPIES / MAX_ROWS after the one before, begins with what is known so far. */
void jk_copies_rows(struct lower *l, unsigned rows);
/* Writes so many vectors of each row from here on, which begin with what their row knows; copy 0 is in use. */
void jk_copies_begin(struct lower *l, unsigned rows, unsigned vectors);
void jk_copies_end(struct lower *l);
void jk_copy_use(struct lower *l, unsigned copy);
/* Does something for each copy that is written, and leaves the first in use. */
void jk_copies_each(struct lower *l, void (*what)(struct lower *l, unsigned copy, void *user), void *user);
void jk_copies_statement(struct lower *l, const struct node *n);

/* --- lower_statement.c, lower_loop.c, lower_lanes.c */
void jk_lower_statements(struct lower *l, const struct node *list);
void jk_lower_statement(struct lower *l, const struct node *n);
/* Whether all lanes have the same iterations, to the end. */
bool jk_lower_for_is_plain(const struct node *n);
/* Whether one loop does for all copies: it is plain, and has the same iterations for each. */
bool jk_lower_for_is_shared(struct lower *l, const struct node *n);
void jk_lower_for(struct lower *l, const struct node *n);
void jk_lower_while(struct lower *l, const struct node *n);
void jk_lower_each(struct lower *l, const struct node *n);
struct value jk_lower_reduction(struct lower *l, const struct node *n);
void jk_lower_scan(struct lower *l, const struct node *n);

/* Runs a body for first..first + count - 1, W at a time in lanes, the last ones fewer. count: by n where it is known,
 * else a scalar. */
struct lanes_of {
	enum quantity_kind kind;
	uint32_t id;
	unsigned type;
	struct linear first;
	bool known;
	int64_t n;
	uint16_t count;
	int64_t lo, hi; /* what the index can be */
	void (*body)(struct lower *l, const struct value *index, void *user);
	void *user;
	const struct node *node; /* what body() writes */
};
/* Roughly how many operations a list of statements has; over 1000 where it has loops, or conditions. */
unsigned jk_lower_weight(const struct node *list);
void jk_lower_lanes(struct lower *l, const struct lanes_of *what);
/* The ends of a range. Sets all but kind, body and user. */
void jk_lower_range(struct lower *l, const struct node *n, struct lanes_of *to);

/* --- lower_kernel.c: the whole kernel into ir, which is initialised. False: l->m or err has a message. */
bool jk_lower_kernel(struct lower *l, struct error *err);

/* --- lower_counts.c: around the whole body */
void jk_lower_counts_begin(struct lower *l);
void jk_lower_counts_end(struct lower *l);

/* --- own.c: whether instances and iterations write what is theirs. False: a message. */
bool jk_own_check(struct lower *l);

#endif
