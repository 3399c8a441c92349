/* runtime/graph/source.h - the text of a group's kernel, in the kernel language (language/jk.h).
 *
 * Owns: how elements of a group's result are written as expressions of elements of stored values. Arrays are declared
 * flat, as [elements]; a position is a sum of indices with constant factors wherever that is possible, so that bounds
 * are proven and accesses are contiguous.
 */
#ifndef RUNTIME_GRAPH_SOURCE_H
#define RUNTIME_GRAPH_SOURCE_H

#include "base/bytes.h"
#include "runtime/graph/partition.h"

enum { SOURCE_ARRAYS_MAX = 28, PREPARED_MAX = 2, SOURCE_ROWS_MAX = 44 };

/* An operand of a product in another order of its elements, made by a kernel of its own. */
struct prepared {
	tensor_value from;
	uint64_t elements;
	char *text; /* the kernel: its parameters are the operand, and then this array */
};

/* What the kernel of a row has computed of it. */
struct source_row {
	tensor_value v;
	const char *name;
};

struct source {
	const struct tensor_graph *g;
	const struct partition *p;
	unsigned lanes;                         /* of a CPU's vectors; 0: a card */
	bool keeps_rows;                        /* its registers hold a row that a kernel reads more than once */
	struct bytes text;                      /* the kernel, 0 behind its end */
	struct prepared prepared[PREPARED_MAX]; /* parameters behind read[], p0 and p1 */
	unsigned n_prepared;
	const char *kernel, *constants;       /* of a user's text, of which read[] are all parameters; NULL: of none */
	bool is_users, is_whole;              /* is_whole: it promises to write every element */
	unsigned remainders;                  /* functions that the text begins with: 1 of f32, 2 of f64 */
	const char *access;                   /* of the result: "out", or "inout" */
	const char *out;                      /* the result's dimensions as a text; NULL: it is flat */
	const struct tensor_node *end;        /* of the group: whose elements are stored */
	tensor_value product;                 /* that the group begins with, 0: none */
	const char *sum;                      /* its element that is being finished, as a text */
	tensor_value read[SOURCE_ARRAYS_MAX]; /* values in memory, in the order of the kernel's parameters */
	uint64_t behind[SOURCE_ARRAYS_MAX];   /* elements that are read behind them, and do not count */
	bool pairs[SOURCE_ARRAYS_MAX];        /* two elements of 32 bits are read as one u64 */
	unsigned reads, names;                /* names: of locals, which are counted */
	struct bytes head, body;
	struct source_row row[SOURCE_ROWS_MAX];
	unsigned rows;
	bool inlines; /* statements may not be written now: all is one expression */
	bool lost;    /* there was no memory, or there are too many arrays */
	char **kept;  /* texts */
	size_t n_kept, kept_room;
	struct seen {
		tensor_value v;
		const char *at, *name;
	} * seen; /* elements that locals of this block have */
	size_t n_seen, seen_room;
};

/* Writes the kernel of a group into s->text. Its parameters are s->read[], s->prepared[], and then the result. lanes:
 * of a CPU's vectors, 0 of other devices; keeps_rows: as above. False: err. */
bool source_write(struct source *s, const struct tensor_graph *g, const struct partition *p, const struct group *group,
                  unsigned lanes, bool keeps_rows, struct error *err);
void source_free(struct source *s);

/* ---- for the files of this room */

/* A position: in a flat array, or in each dimension, as texts. Either may be missing (NULL), then it is made of the
 * other. Texts live as long as the memory of `keep`. */
struct position {
	const char *flat;
	const char *dim[TENSOR_MAX_RANK];
	bool has_dims;
};

/* Writes a statement, unless s->inlines; a local of that type for an expression, which it returns the name of. */
void source_line(struct source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *source_local(struct source *s, const char *type, const char *x);
/* What locals of this block have is not known outside of it. */
void source_forget(struct source *s);
/* A text that lives until the source is freed. NULL: s->lost. */
const char *source_text(struct source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The position in each dimension, and in the flat array, of a value of that shape. */
void position_dims(struct source *s, const struct shape *shape, struct position *at);
const char *position_flat(struct source *s, const struct shape *shape, struct position *at);
/* The type that a value's elements are computed in, and that of its array: "f32", "u8". */
const char *source_type(int type);
/* A number of a wide type. */
const char *source_literal(struct source *s, int wide, union number x);
const char *source_number(struct source *s, int wide, double x);
/* The name of a stored value's array; it becomes a parameter. */
const char *source_array(struct source *s, tensor_value v);
/* The same for a kernel that reads so many elements behind the array, whatever they are. NULL: it may not. */
const char *source_array_behind(struct source *s, tensor_value v, uint64_t elements);
/* The same of two elements of 32 bits each, whose array has them as u64. */
const char *source_array_pairs(struct source *s, tensor_value v);
/* An element of a value: an expression without side effects. */
const char *source_element(struct source *s, tensor_value v, struct position at);
/* The same of what the node computes, wherever it is kept. */
const char *source_computed(struct source *s, const struct tensor_node *n, struct position at);
/* The same of the element with that number, a text. */
const char *source_element_at(struct source *s, tensor_value v, const char *flat);
/* The greatest divisor of n that is at most `most`. */
uint64_t source_divisor(uint64_t n, uint64_t max);
/* Results that an instance of a plain loop has side by side: they share what it reads of the other operand. */
enum { SOURCE_ROWS = 8 };
/* What is stored of the group's last node, where the sum of its product is `sum`. */
const char *source_finished(struct source *s, const char *sum, struct position at);
/* Elements at indices that are elements themselves; out of range is 0. */
const char *source_taken(struct source *s, const struct tensor_node *n, const struct position *at);
const char *source_gathered(struct source *s, const struct tensor_node *n, const struct position *at);
/* x - trunc(x / y) * y, of floats. */
const char *source_remainder(struct source *s, int wide, const char *x, const char *y);
/* The functions that a text needs for it. */
void source_put_remainders(struct source *s);
/* An element of packed weights, whose number in the result is `flat`; of formats that partition_knows_weights(). */
const char *source_weight(struct source *s, const struct tensor_node *n, const char *flat);
/* One number of each operand gives one: the operation applied to texts. */
const char *source_apply(struct source *s, const struct tensor_node *n, const char *const x[]);
/* a op b, for add, mul, min, max, and, or, on a wide type. */
const char *source_pair(struct source *s, enum tensor_op op, int wide, const char *a, const char *b);
/* What op leaves unchanged. */
const char *source_neutral(struct source *s, enum tensor_op op, int wide);
/* What is stored into an array of that type. */
const char *source_stored(struct source *s, int type, const char *x);

void source_elements(struct source *s, const struct tensor_node *n);
void source_rows(struct source *s, const struct tensor_node *n, uint64_t columns);
/* n: the product of values. */
void source_attention(struct source *s, const struct tensor_node *n, const struct group *group);
void source_reduce(struct source *s, const struct tensor_node *n);
void source_arg(struct source *s, const struct tensor_node *n);
void source_scan(struct source *s, const struct tensor_node *n);
void source_scatter(struct source *s, const struct tensor_node *n);
void source_dot(struct source *s, const struct tensor_node *n);
void source_conv(struct source *s, const struct tensor_node *n);
void source_window(struct source *s, const struct tensor_node *n);

#endif
