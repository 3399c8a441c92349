/* jit/spirv/spirv.h - SPIR-V as a target: the writer of modules, the emitter that the rows of ops.def share, and the
 * interface between the files here.
 *
 * A wave is a subgroup: lane l of a vector is invocation l of it. A value of the IR is an id; a variable of the IR is a
 * variable of the function. A scalar, an address and a condition are values that are the same in all lanes. Addresses
 * are numbers of 64 bits (physical storage buffers); locals and shared bytes lie in memory of the device that the
 * launch points at, too, so there is one kind of address. Lanes that take no part in a load read a word that is there;
 * stores and atomics of theirs are branched around. Nothing is contracted: sums and products of floats say so.
 *
 * Owned by: words.c the writer: types, constants, instructions; flow.c, math.c, integer.c, wide.c and memory.c the rows
 * of ops.def; functions.c and fma64.c what takes a function of its own; pipeline.c the entry and the module.
 */
#ifndef JIT_SPIRV_SPIRV_H
#define JIT_SPIRV_SPIRV_H

#include "jit/compile_pipeline.h"
#include "jit/spirv/launch.h"
#include "jit/spirv/opcodes.h"

/* --- words.c */

enum spirv_type {
	SPIRV_VOID,
	SPIRV_BOOL,
	SPIRV_U8,
	SPIRV_U16,
	SPIRV_U32,
	SPIRV_U64,
	SPIRV_F32,
	SPIRV_F64,
	SPIRV_PAIR, /* of U32 */
	SPIRV_TRIPLE,
	SPIRV_TYPES
};

struct spirv_words {
	uint32_t *word;
	size_t n, capacity;
};

struct spirv_constant {
	uint64_t bits;
	uint32_t id;
	uint8_t type;
};

/* Functions that kernels call, which a module has where they are called. */
enum spirv_function {
	SPIRV_FMA,
	SPIRV_FMA64,
	SPIRV_DIV,
	SPIRV_SQRT,
	SPIRV_WIDEN_HALF,
	SPIRV_NARROW_HALF,
	SPIRV_FUNCTIONS
};

struct spirv_writer {
	/* in a module's order, behind what is the same in all; code: where instructions go now */
	struct spirv_words decorations, globals, functions, variables, body, *code;
	uint32_t ids; /* given out */
	uint32_t type[SPIRV_TYPES], glsl;
	uint32_t pointer[SPIRV_TYPES][2]; /* to a function's variable; to memory */
	struct spirv_constant *constant;
	size_t n_constants, constants_capacity;
	uint32_t function[SPIRV_FUNCTIONS];
	uint32_t choice[SPIRV_CHOICES];
	uint32_t instructions;
	bool atomics64; /* the module has atomics of 64 bits */
	bool no_memory;
};

void spirv_free(struct spirv_writer *w);
static inline uint32_t spirv_id(struct spirv_writer *w) { return ++w->ids; }
/* An instruction of n words behind its first. */
void spirv_put_words(struct spirv_writer *w, struct spirv_words *to, enum spv_op op, const uint32_t *word, size_t n);
#define SPIRV_PUT(w, to, op, ...) \
	spirv_put_words(w, to, SPV_##op, (const uint32_t[]){ __VA_ARGS__ }, \
	                sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
/* One that gives a value of the type: its id. */
uint32_t spirv_make_value(struct spirv_writer *w, enum spirv_type type, enum spv_op op, const uint32_t *operand,
                          size_t n);
#define SPIRV_VALUE(w, type, op, ...) \
	spirv_make_value(w, type, SPV_##op, (const uint32_t[]){ __VA_ARGS__ }, \
	                 sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
/* An instruction of GLSL.std.450. */
uint32_t spirv_glsl(struct spirv_writer *w, enum spirv_type type, enum spv_glsl op, const uint32_t *operand, size_t n);
#define SPIRV_GLSL(w, type, op, ...) \
	spirv_glsl(w, type, GLSL_##op, (const uint32_t[]){ __VA_ARGS__ }, \
	           sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
uint32_t spirv_type(struct spirv_writer *w, enum spirv_type type);
uint32_t spirv_pointer(struct spirv_writer *w, enum spirv_type to, bool memory);
/* The bits of a constant: of a bool 0 or 1. */
uint32_t spirv_constant(struct spirv_writer *w, enum spirv_type type, uint64_t bits);
static inline uint32_t spirv_u32(struct spirv_writer *w, uint32_t v) { return spirv_constant(w, SPIRV_U32, v); }
static inline uint32_t spirv_u64(struct spirv_writer *w, uint64_t v) { return spirv_constant(w, SPIRV_U64, v); }
/* A bool that the device sets when it makes a pipeline of the module (launch.h). */
uint32_t spirv_choice(struct spirv_writer *w, enum spirv_choice choice);

/* --- functions.c: a call. */
uint32_t spirv_call(struct spirv_writer *w, enum spirv_function f, const uint32_t *operand, size_t n);
#define SPIRV_CALL(w, f, ...) \
	spirv_call(w, SPIRV_##f, (const uint32_t[]){ __VA_ARGS__ }, \
	           sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

/* --- fma64.c: what SPIRV_FMA64 does where the driver's own instruction rounds twice. */
uint32_t spirv_fma_by_integers(struct spirv_writer *w, const uint32_t *p);

/* --- the emitter */

struct spirv_emitter {
	const struct ir *ir;
	struct spirv_writer w;
	uint32_t *value; /* by register: its id, or that of its variable */
	bool *in_frame;  /* by register: an address of locals or shared bytes */
	uint32_t lane, lane64, wave, group, arg, begin, end, shared, locals, cut;
	uint32_t iterations;                /* a variable: of all loops so far; 0: the kernel has none */
	uint32_t local_bytes, shared_bytes; /* of those that were met so far */
	struct {
		uint32_t head, next, end, index, count;
		size_t begin;    /* its instruction */
		unsigned copies; /* of its body that are still to be written */
	} loop[IR_MAX_LOOP_DEPTH];
	unsigned depth;
	struct {
		uint32_t other, end;
		bool has_other;
	} branch[IR_MAX_DEPTH];
	unsigned branches;
	/* Since the lanes last met: something was stored; was loaded from locals or shared bytes. */
	bool stored, loaded;
	bool stores, loads_frame; /* the kernel does, anywhere */
};

enum spirv_type spirv_type_of(const struct spirv_emitter *e, uint16_t r);
/* The value of a register here; gives one its value. */
uint32_t spirv_get(struct spirv_emitter *e, uint16_t r);
void spirv_set(struct spirv_emitter *e, uint16_t r, uint32_t value);
/* False: not a row of this file. */
bool spirv_math(struct spirv_emitter *e, const struct ir_ins *i);
bool spirv_integer(struct spirv_emitter *e, const struct ir_ins *i);
bool spirv_wide(struct spirv_emitter *e, const struct ir_ins *i);
bool spirv_memory(struct spirv_emitter *e, const struct ir_ins *i);
/* *k: the instruction's number, which becomes that of the innermost loop where its body is written once more. */
bool spirv_flow(struct spirv_emitter *e, const struct ir_ins *i, size_t *k);
/* A variable of the function. */
uint32_t spirv_variable(struct spirv_emitter *e, enum spirv_type type);
/* Finds which registers are addresses of the frame. False: no memory. */
bool spirv_find_frame(struct spirv_emitter *e);
/* What was stored and loaded on other ways is not known here. */
void spirv_forget(struct spirv_emitter *e);
/* All lanes of that scope (SPV_SCOPE_...) wait for each other, and see what the others have stored. */
void spirv_barrier(struct spirv_emitter *e, uint32_t lanes);

#endif
