/* kernels-templates/signature.h - what every kind of kernel reads and writes, as data.
 *
 * Owns: the answer to "which bytes does a launch touch?" for each argument slot: how it is accessed, the type and
 * layout of what lies there, and the bytes of each work unit. The rows are kinds/signature.def;
 * docs/kernel-templates.md is made from them. Builders know none of this: rows decide no byte of code.
 * tests/kernels/t_signature.c runs kernels of every kind and holds each load and store against the rows.
 */
#ifndef KERNELS_TEMPLATES_SIGNATURE_H
#define KERNELS_TEMPLATES_SIGNATURE_H

#include "kernels-templates/templates.h"

/* How a launch uses an argument slot: bits. 0: it does not look at it. */
enum kernel_access {
	KERNEL_VALUE = 1, /* what the slot holds is the operand itself */
	KERNEL_READ = 2,  /* at the address that the slot holds */
	KERNEL_WRITE = 4,
	KERNEL_UPDATE = KERNEL_READ | KERNEL_WRITE, /* reads what is there, then writes it */
	KERNEL_SOME = 8,      /* which of the bytes is decided by data, or by the first position */
	KERNEL_DATAFLOW = 16, /* with KEY_AWAITED: awaited word by word, or given (jit/ir/ops.def) */
};

/* Of what lies at the address, or of the value. */
enum kernel_type {
	KERNEL_F32,
	KERNEL_HALF, /* F16 or BF16, as key.activation says */
	KERNEL_I32,
	KERNEL_INT8,
	KERNEL_BLOCK,   /* struct activation_block */
	KERNEL_GROUP,   /* struct route_group */
	KERNEL_ADDRESS, /* of 64 bits */
	KERNEL_WEIGHT,  /* packed weights of key.weight */
	KERNEL_CACHED,  /* keys or values of key.kv */
	KERNEL_COUNT,   /* a value: a whole number */
	KERNEL_TYPES
};

/* How it lies there. */
enum kernel_layout {
	KERNEL_SCALAR,   /* a number of the model; no row of it */
	KERNEL_COLUMNS,  /* value: the columns of the launch */
	KERNEL_TILES,    /* value: its tiles */
	KERNEL_POSITION, /* value: the position of its first column */
	KERNEL_VECTOR,   /* parameters, the same for all columns */
	KERNEL_ROWS,     /* activations, column by column */
	KERNEL_PANELS,   /* activations, as KEY_INTERLEAVE lays them */
	KERNEL_PACKED,   /* blocks of 32 rows of a matrix */
	KERNEL_STACK,    /* matrices one behind the other, of which data choose */
	KERNEL_PICKED,   /* rows of one matrix, which data choose */
	KERNEL_TABLE,    /* of addresses, by number of the page */
	KERNEL_PAGES,    /* in each page of the table that many bytes behind its address: one head after the other */
	KERNEL_RECORDS,  /* what attention leaves of each chunk */
	KERNEL_STATE,    /* of fixed size, carried from pass to pass */
	KERNEL_ROUTES,   /* [token][ROUTE_MAX], or groups of slots */
	KERNEL_LAYOUTS
};

/* `count` times `bytes` bytes, `stride` apart; the first lies `at` bytes behind the slot's address. count 0: as many as
 * data say, each at a multiple of `stride`. Of KERNEL_ROWS the stride is the bytes from a column to the next, also
 * where count is 1; 0: the key does not say how wide columns are. */
struct kernel_span {
	uint64_t at, bytes, count, stride;
};

/* One slot of a launch, for one of its units. Unused spans have no bytes. */
enum { KERNEL_SPANS = 3 };
struct kernel_use {
	uint32_t access;
	uint8_t type, layout;
	struct kernel_span span[KERNEL_SPANS];
};

/* A row of the table. k: the launch's key; arg: its slots, of which values are read; NULL: no spans are wanted; u: the
 * unit. */
struct kernel_arg {
	const char *name, *meaning;
	struct kernel_use (*use)(const struct key *k, const uint64_t *arg, uint64_t u);
};

/* That of slot `slot`, below template_args(key). */
const struct kernel_arg *kernel_arg(const struct key *key, unsigned slot);

/* How a launch with such a key uses the slot, whatever its values are. */
struct kernel_use kernel_use(const struct key *key, unsigned slot);
/* The same with the bytes that unit `unit` touches. */
struct kernel_use kernel_unit(const struct key *key, const uint64_t *arg, unsigned slot, int64_t unit);

/* From the first byte to behind the last one that units [begin, end) touch, counted from the slot's address; of what
 * data choose, those of the first choice. Empty where the slot holds no address. */
struct kernel_extent {
	uint64_t begin, end;
};
struct kernel_extent kernel_extent(const struct key *key, const uint64_t *arg, unsigned slot, int64_t begin,
                                   int64_t end);

/* The slot of that layout; template_args(key) where there is none. */
unsigned kernel_slot(const struct key *key, enum kernel_layout layout);
/* The columns that a launch works on: what it has in KERNEL_COLUMNS, else those of its pass. */
uint64_t kernel_columns(const struct key *key, const uint64_t *arg, uint64_t pass);

/* Bytes of an element; 0 where the key decides. */
unsigned kernel_type_bytes(enum kernel_type type);

#endif
