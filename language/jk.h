/* language/jk.h - the kernel language: a text becomes kernels with constants bound, and these become IR.
 *
 * Owns: what a user of the room sees: messages, constants, parameters, and what is known of a kernel before it runs.
 * docs/kernels.md is the reference of the language. Nothing here prints unless it is handed a stream, and nothing
 * exits; all text is hostile until it has been checked.
 */
#ifndef LANGUAGE_JK_H
#define LANGUAGE_JK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct ir;
struct target;

/* Values have one of the first seven types; those behind them are of elements of arrays alone: a load widens them to
 * f32, i32 (I8, I16) or u32 (U8, U16). */
enum jk_type { JK_BOOL, JK_F32, JK_F64, JK_I32, JK_U32, JK_I64, JK_U64, JK_F16, JK_BF16, JK_I8, JK_U8, JK_I16, JK_U16 };
enum jk_access { JK_SCALAR, JK_IN, JK_OUT, JK_INOUT };
enum { JK_MAX_DIMS = 4, JK_MAX_MESSAGES = 20, JK_MAX_PARAMETERS = 32, JK_ID_BYTES = 32 };

const char *jk_type_name(enum jk_type type); /* "f32" */
unsigned jk_type_bytes(enum jk_type type);   /* of an element in memory; of bool 1 */

struct jk_message {
	unsigned line, column; /* from 1; line 0: of the whole file */
	char text[400];        /* one sentence: what was expected and found, and a suggestion */
};
struct jk_messages {
	size_t n;
	struct jk_message message[JK_MAX_MESSAGES];
};
/* "name:line:column: text", the line of the text and a caret, for every message. Works with whatever text it was. */
void jk_print_messages(const char *name, const char *text, size_t bytes, const struct jk_messages *messages, FILE *out);

/* Parses and checks what does not depend on constants. name: for messages; the text is copied. NULL: messages has at
 * least one. A file that is returned has none. */
struct jk_file *jk_parse(const char *name, const char *text, size_t bytes, struct jk_messages *messages);
void jk_file_close(struct jk_file *f); /* f may be NULL */
const char *jk_file_name(const struct jk_file *f);
const char *jk_file_text(const struct jk_file *f, size_t *bytes);

size_t jk_kernels(const struct jk_file *f);
const char *jk_kernel_name(const struct jk_file *f, size_t i);

/* Constants of the file, in its order. number is the value of an f32 or f64, integer that of the others, where it
 * depends on no constant without a value. tuned: `tune`, whose choices are listed. */
struct jk_constant {
	const char *name;
	enum jk_type type;
	bool has_value, tuned;
	double number;
	int64_t integer;
	const int64_t *choice;
	size_t choices;
};
size_t jk_constants(const struct jk_file *f);
const struct jk_constant *jk_constant(const struct jk_file *f, size_t i);

struct jk_value {
	const char *name;
	const char *text; /* as typed: "n", "1000000" */
};

/* A kernel with all constants bound: shapes are known, all checks done. kernel NULL: the only one of the file. NULL:
 * messages. f is counted: it may be closed before the kernel is. */
struct jk_kernel *jk_bind(struct jk_file *f, const char *kernel, const struct jk_value *value, size_t n,
                          struct jk_messages *messages);
void jk_kernel_close(struct jk_kernel *k); /* k may be NULL */

struct jk_parameter {
	const char *name;
	enum jk_type type;
	enum jk_access access;
	unsigned dims;
	uint64_t extent[JK_MAX_DIMS], elements, bytes;
};
size_t jk_parameters(const struct jk_kernel *k);
const struct jk_parameter *jk_parameter(const struct jk_kernel *k, size_t i);

/* Work units of a launch; may be 0. Any split of 0..units over calls, threads and cards gives the same results. */
uint64_t jk_units(const struct jk_kernel *k);
/* Of what jk_build() makes for a target; jk_units() is of jk_build_lanes(). */
uint64_t jk_units_on(const struct jk_kernel *k, const struct target *t);

/* What decides the IR: a SHA-256 of the file's tokens, the kernel's name, constants and check. Equal ids: equal IR for
 * a target. The pointer is valid until the kernel is closed. */
const uint8_t *jk_id(const struct jk_kernel *k, bool check);

/* Writes the kernel into ir, which is not yet initialised and is to be freed by the caller only on success. arg[i] of
 * parameter i: an array's address; a scalar's bits, those of 32 bits in the lower half; a bool is 0 or 1. check: one
 * argument more, the address of 4 zeroed uint64_t that receive the lowest instance's first access out of bounds. Units
 * of such a launch are run by one thread. */
bool jk_build(struct ir *ir, const struct jk_kernel *k, const struct target *t, bool check, struct error *err);
/* The same for a number of lanes, and as it was written: nothing is joined, moved or computed otherwise. For the
 * interpreter and tests. waves: of a group, 1 for CPUs. */
bool jk_build_lanes(struct ir *ir, const struct jk_kernel *k, unsigned lanes, unsigned waves, bool check,
                    struct error *err);

/* fault[0]: the number of the instance + 1, 0 for none. fault[1]: the access, 1 + its number of jk_use. fault[2]: the
 * subscript that is out of range, as a signed number. fault[3]: which subscript, 0 the first. Writes one sentence;
 * false: there is no fault. */
bool jk_fault_text(const struct jk_kernel *k, const uint64_t fault[4], char *out, size_t cap);

/* How lanes, or instances, find an array's elements. stride: of JK_STRIDED, in elements. checked: not proven in range,
 * so that each access is compared with the extents. */
enum jk_pattern { JK_UNIFORM, JK_CONTIGUOUS, JK_STRIDED, JK_GATHER };
struct jk_use {
	unsigned line, column;
	const char *array;
	bool write, checked;
	enum jk_pattern pattern;
	int64_t stride;
};
size_t jk_uses(const struct jk_kernel *k);
const struct jk_use *jk_use(const struct jk_kernel *k, size_t i);

/* Where values with a name are kept. */
struct jk_local {
	unsigned line, column;
	const char *name;
	bool uniform;
	const char *where; /* "register", "frame" or "constant" */
};
size_t jk_locals(const struct jk_kernel *k);
const struct jk_local *jk_local(const struct jk_kernel *k, size_t i);

/* Bytes that an ideal launch reads and writes, each array once, and arithmetic operations of its instances, where a
 * loop that ends early counts as one iteration. */
uint64_t jk_bytes_read(const struct jk_kernel *k), jk_bytes_written(const struct jk_kernel *k);
uint64_t jk_operations(const struct jk_kernel *k);

#endif
