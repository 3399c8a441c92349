/* jit/ptx/ptx.h - what the parts of the PTX backend share: the writer of text, and what a look at the IR found.
 *
 * A kernel becomes the text of one module with one entry, or a function in that of a program (program.h). Registers are
 * virtual: the driver's compiler allocates and schedules. A vector of the IR is a register of 32 bits in each of a
 * warp's lanes, a mask a predicate, a scalar or an address a register of 64 bits that has the same value in all lanes.
 * A condition is a predicate that is the same in all lanes. A block is a group of waves. No branch diverges: lanes that
 * take no part are predicated.
 *
 * Owned by: text.c the writer and its table; scan.c what is known before a line is written; math.c, memory.c and
 * matrix.c the rows of ops.def; await.c those that await; early.c what comes before other launches have ended;
 * pipeline.c the entry, loops and ifs, and the order of it all; program.c functions, and the entry that calls them.
 */
#ifndef JIT_PTX_PTX_H
#define JIT_PTX_PTX_H

#include "jit/compile_pipeline.h"

enum ptx_op {
#define PTX(id, ...) PTX_##id,
#include "jit/ptx/ptx.def"
#undef PTX
	PTX_OP_COUNT
};

/* --- text.c */

enum ptx_class { PTX_B32, PTX_B64, PTX_PRED, PTX_B16, PTX_CLASSES };
enum ptx_kind { PTX_REGISTER, PTX_CONSTANT, PTX_NAME, PTX_LABEL, PTX_MEMORY, PTX_TUPLE };
struct ptx_operand {
	uint8_t kind, class; /* class: of registers; an address has PTX_B64 */
	uint8_t n;           /* of a tuple */
	uint32_t reg[4];
	int64_t value; /* constant, displacement, number of a label */
	const char *name;
};

struct ptx_buffer {
	char *text;
	size_t n, capacity;
};

struct ptx_writer {
	struct ptx_buffer entry, body; /* entry: what is made once, in front of the body */
	struct ptx_buffer *to;
	uint32_t registers[PTX_CLASSES]; /* numbers given out */
	uint32_t labels, instructions;
	unsigned capability;      /* 80, 90 */
	struct ptx_operand guard; /* of the next instruction; kind PTX_CONSTANT: none */
	bool no_memory;
	const char *wrong; /* what the table does not have */
};

void ptx_init(struct ptx_writer *w, unsigned capability);
void ptx_free(struct ptx_writer *w);
void ptx_put(struct ptx_writer *w, enum ptx_op op, const struct ptx_operand *operand, unsigned n);
#define PTX_PUT(w, op, ...) \
	ptx_put(w, PTX_##op, (const struct ptx_operand[]){ __VA_ARGS__ }, \
	        sizeof((const struct ptx_operand[]){ __VA_ARGS__ }) / sizeof(struct ptx_operand))
#define PTX_PUT0(w, op) ptx_put(w, PTX_##op, NULL, 0)
#define PTX_PUT_OP(w, op, ...) \
	ptx_put(w, op, (const struct ptx_operand[]){ __VA_ARGS__ }, \
	        sizeof((const struct ptx_operand[]){ __VA_ARGS__ }) / sizeof(struct ptx_operand))
void ptx_label(struct ptx_writer *w, uint32_t label);
void ptx_format(struct ptx_writer *w, struct ptx_buffer *to, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline struct ptx_operand ptx_register(enum ptx_class class, uint32_t number)
{
	return (struct ptx_operand){ .kind = PTX_REGISTER, .class = (uint8_t) class, .reg = { number } };
}
static inline struct ptx_operand ptx_new(struct ptx_writer *w, enum ptx_class class)
{
	return ptx_register(class, w->registers[class]++);
}
static inline struct ptx_operand ptx_imm(int64_t value)
{
	return (struct ptx_operand){ .kind = PTX_CONSTANT, .value = value };
}
static inline struct ptx_operand ptx_name(const char *name)
{
	return (struct ptx_operand){ .kind = PTX_NAME, .name = name };
}
static inline struct ptx_operand ptx_to(uint32_t label)
{
	return (struct ptx_operand){ .kind = PTX_LABEL, .value = label };
}
static inline struct ptx_operand ptx_at(struct ptx_operand base, int64_t displacement)
{
	base.kind = PTX_MEMORY;
	base.value = displacement;
	return base;
}

/* --- scan.c */

struct ptx_register {
	uint32_t def;    /* the instruction that writes it first */
	uint32_t uses;   /* by what lives */
	uint32_t number; /* in its class */
	uint16_t root;   /* of an address: what it is a displacement from; itself */
	int64_t disp;    /* from there */
	bool shared;     /* an address in shared memory */
	bool whole;      /* an address that is used as a value, too: with its displacement */
	uint8_t align;   /* of scalars and addresses: a power of two they are a multiple of, as its exponent */
	bool biased;     /* a tile of sums that is held with PTX_BIAS added */
	bool first;      /* an operand that is a first factor */
};
struct ptx_scan {
	bool shared_arg; /* the argument slots are in shared memory */
	struct ptx_register *reg;
	uint32_t numbers[PTX_CLASSES]; /* given out */
	bool *dead;                    /* by instruction */
	uint32_t *leader; /* by instruction: which load or store does it, too, plus 1; 0: none but itself */
	bool matrices;    /* all factors of products come from shared memory, and nothing else becomes of them */
	uint8_t *words; /* by instruction: how many loads, or stores, of neighbouring words it does, itself among them;
	                 * 0: no other */
};
enum { PTX_ARG_ALIGN = 4 /* pointers in the arguments are multiples of 16 */ };
bool ptx_scan(struct ptx_scan *s, const struct ir *ir, bool join, bool shared_arg, struct error *err);
void ptx_scan_free(struct ptx_scan *s);
/* A product of tiles. */
static inline bool ptx_multiplies(const struct ir_ins *i)
{
	return ir_facts_of(i)->dst == IR_TYPE_t && ir_facts_of(i)->a == IR_TYPE_o;
}
/* The loads that the one at k does, in the order of their words. */
void ptx_members(const struct ptx_scan *s, const struct ir *ir, size_t k, size_t at[4]);
/* The stores that the one at k does, which is the last of them. */
void ptx_stored_members(const struct ptx_scan *s, const struct ir *ir, size_t k, size_t at[4]);
/* What an address is a displacement from, where the displacement may be folded. */
uint16_t ptx_root(const struct ptx_scan *s, uint16_t address, int64_t *disp);

/* --- the emitter */

/* A tile: the registers of its elements (matrix.c); an operand: four of them. */
enum { PTX_TILE_WORDS = 8 };
struct ptx_tile {
	uint32_t reg[PTX_TILE_WORDS];
	uint8_t shape; /* bits PTX_BY_ROW, PTX_BY_COLUMN: what its elements differ by */
	bool known;
};
enum { PTX_BY_ROW = 1, PTX_BY_COLUMN = 2, PTX_FULL = 3 };
/* As a float 1.5 * 2^23, so that a whole number below 2^22 that is added to these bits is in the fraction. */
enum { PTX_BIAS = 0x4b400000 };

/* What lanes add to an address: as many bytes a lane, or what an imm t says of a tile's element, a strip's eight
 * bytes, or rows of matrices. */
#define PTX_LANES_TILE (UINT64_C(1) << 32)
#define PTX_LANES_STRIP (UINT64_C(2) << 32)
/* Rows of 16 bytes of the four matrices that one load gives: vectors 0 of strips 0 to 15, then vectors 1; or both
 * vectors of strips 0 to 7, then of the others. */
#define PTX_LANES_FIRST (UINT64_C(3) << 32)
#define PTX_LANES_SECOND (UINT64_C(4) << 32)
/* The same three of strips whose vectors are swizzled (ops.def, oload_swizzled). */
#define PTX_LANES_STRIP_SWIZZLED (UINT64_C(5) << 32)
#define PTX_LANES_FIRST_SWIZZLED (UINT64_C(6) << 32)
#define PTX_LANES_SECOND_SWIZZLED (UINT64_C(7) << 32)

/* Vectors 0 of strips 0 to 7, twice, then vectors 1. */
#define PTX_LANES_TOP (UINT64_C(8) << 32)

enum { PTX_MEMO = 64 };

/* Words that were asked for and not yet looked at (await.c). */
struct ptx_awaited {
	struct ptx_operand from;
	uint16_t dst[4];
	uint8_t words, lanes;
	uint8_t depth; /* of loops */
	uint8_t seen;  /* the depth of the loop whose iteration has looked; 0: none */
};
struct ptx_emitter {
	const struct ir *ir;
	struct ptx_writer w;
	struct ptx_scan scan;
	size_t at; /* the instruction */
	struct ptx_operand lane, wave, arg, begin, end, shared, locals;
	struct {
		struct ptx_operand end, index, count, head;
		bool stored[2], loaded; /* before it */
	} loop[IR_MAX_LOOP_DEPTH];
	unsigned depth;
	struct {
		struct ptx_operand end; /* where it goes on that runs no part, or not the first one */
		bool stored[2], loaded; /* on the other way: at the if; behind its first part */
	} branch[IR_MAX_DEPTH];
	unsigned branches;     /* ifs that are open */
	struct ptx_tile *tile; /* by register of the IR */
	/* Made at the entry: what lanes add, predicates for the first lanes. */
	struct {
		uint64_t by;
		struct ptx_operand o;
	} lanes[PTX_MEMO], first[PTX_MEMO];
	unsigned n_lanes, n_first;
	struct ptx_operand once; /* ... the policy of what is read once */
	unsigned cards;
	/* Sums of an address and lanes, in this straight run. */
	struct {
		uint16_t root;
		uint64_t by;
		struct ptx_operand o;
	} sums[PTX_MEMO];
	unsigned n_sums;
	/* Argument slots, loaded at the entry. */
	struct {
		int64_t disp;
		enum ptx_op load;
		struct ptx_operand o;
	} slot[PTX_MEMO];
	unsigned n_slots;
	struct ptx_awaited awaited[PTX_MEMO]; /* the depths ascend */
	unsigned n_awaited;
	size_t awaited_to;             /* the instruction up to which all are asked for */
	struct ptx_operand waits_last; /* the predicate, where launches overlap */
	/* Since the lanes last met: something was stored in global, in shared memory; loaded from shared memory. */
	bool stored[2], loaded;
};

static inline struct ptx_operand ptx_reg(const struct ptx_emitter *e, uint16_t r)
{
	static const uint8_t class[] = {
		[IR_TYPE_f32] = PTX_B32, [IR_TYPE_i32] = PTX_B32, [IR_TYPE_m] = PTX_PRED,  [IR_TYPE_s] = PTX_B64,
		[IR_TYPE_c] = PTX_PRED,  [IR_TYPE_a] = PTX_B64,   [IR_TYPE_f64] = PTX_B64, [IR_TYPE_i64] = PTX_B64
	};
	return ptx_register(class[e->ir->type[r]], e -> scan.reg[r].number);
}
/* False: not a row of this file. */
bool ptx_math(struct ptx_emitter *e, const struct ir_ins *i);
bool ptx_wide(struct ptx_emitter *e, const struct ir_ins *i);
bool ptx_scalar(struct ptx_emitter *e, const struct ir_ins *i);
bool ptx_memory(struct ptx_emitter *e, const struct ir_ins *i);
bool ptx_matrix(struct ptx_emitter *e, const struct ir_ins *i);
/* await.c: a row that awaits (false: it is none); in front of instruction i, what it uses of what was asked for. */
bool ptx_await(struct ptx_emitter *e, const struct ir_ins *i);
void ptx_await_before(struct ptx_emitter *e, const struct ir_ins *i);
/* Whether a lane is one of the first n. */
struct ptx_operand ptx_first_lanes(struct ptx_emitter *e, unsigned n);
/* Where a lane's bytes lie; by: PTX_LANES_..., 0: the same for all. */
struct ptx_operand ptx_address(struct ptx_emitter *e, uint16_t a, int64_t disp, uint64_t by);
/* A store to global memory: to this card's, and to that of the others (PTX_CARD_SHIFT). The guard is for all. */
void ptx_store(struct ptx_writer *w, unsigned cards, enum ptx_op store, struct ptx_operand to, struct ptx_operand data);
/* In front of a load: the lanes meet if something was stored since they last did. */
void ptx_meet(struct ptx_emitter *e, bool shared);
/* In front of a store: the same if something was loaded. */
void ptx_meet_readers(struct ptx_emitter *e, bool shared);
/* early.c: what is done before the launches in front of this one have ended: the argument slots are loaded, the first
 * weights are asked for, where the target can. Then, what is in an argument slot, if i is a load of it: else NULL. */
void ptx_load_slots(struct ptx_emitter *e);
/* Goes on at a label where an argument's array does not lie at a multiple of 16 bytes. False: nothing is joined, so
 * that none need. */
bool ptx_leave_unaligned(struct ptx_emitter *e, struct ptx_operand *label);
void ptx_ask_ahead(struct ptx_emitter *e);
const struct ptx_operand *ptx_slot(const struct ptx_emitter *e, const struct ir_ins *i);
/* copy.c; false: not a row of it. */
bool ptx_copy_row(struct ptx_emitter *e, const struct ir_ins *i);
/* What was remembered of a straight run is no more. */
void ptx_new_run(struct ptx_emitter *e);

/* pipeline.c. NULL: err; join: loads of neighbouring words. What is taken from an emitter must be closed. */
struct ptx_emitter *ptx_open(const struct ir *ir, const struct target *t, bool join, bool shared_arg,
                             struct error *err);
void ptx_close(struct ptx_emitter *e);
/* What %tid.x and the like are. */
struct ptx_operand ptx_special(struct ptx_writer *w, const char *name);
/* Moves e->begin on to share `number` and sets e->end (struct ptx_launch). Returns a predicate: it has no units. */
struct ptx_operand ptx_share(struct ptx_emitter *e, struct ptx_operand number, struct ptx_operand per,
                             struct ptx_operand rest);
/* e->shared and e->locals, where the kernel has any: so far behind where the block's shared memory begins. */
void ptx_memory_at(struct ptx_emitter *e, uint32_t offset);
/* The kernel's instructions, behind what is in w->body. */
bool ptx_rows(struct ptx_emitter *e, struct error *err);
/* A module's first lines; a body with its registers, in braces, which returns at its end. */
void ptx_begin_module(struct ptx_writer *w, struct ptx_buffer *to, bool memory);
void ptx_put_body(struct ptx_writer *w, struct ptx_buffer *to);
/* Whether the writer met nothing that it cannot write; the object takes the text. */
bool ptx_written(const struct ptx_writer *w, struct error *err);
void ptx_take_text(struct object *out, const struct ptx_buffer *text);
/* 80, 90: of its name. */
unsigned ptx_capability(const struct target *t);

/* Several cards that run a kernel together (struct target, cards) have all that kernels store to at the same offset of
 * their memory, at addresses that differ in these bits alone, by the number of the card. So each reads its own memory
 * only, and has what any of them has stored. Displacements of 32 bits must not reach beyond a card's addresses. */
enum { PTX_CARD_SHIFT = 39 };

/* The entry, and what is handed to it. A launch has blocks of WAVES * 32 threads; where a kernel has parts, these
 * are the first dimension of its grid, and shares the second one: blocks with the same share live at the same time.
 * The third one counts ops that differ in their arguments alone. */
#define PTX_ENTRY "jitrun"
struct ptx_launch {
	uint64_t arg;       /* address of the argument slots, of the first op */
	int64_t begin;      /* share i begins at begin + i * per + min(i, rest), and has one more unit when i < rest */
	uint32_t per, rest; /* shares are of blocks where the object is cooperative, else of waves: wave w of block b
	                       has share w * blocks + b */
	uint32_t order;     /* enum ptx_order; of no account where launches do not overlap */
	uint32_t next;      /* bytes from an op's argument slots to those of the next op */
};
/* WAIT_FIRST: what launches in front of it stored is read, so they are waited for first; else last: who then sees this
 * one's end sees theirs. NEXT_LATER: the next one does not wait first, so it must not begin before this one may. */
enum ptx_order { PTX_WAIT_FIRST = 1, PTX_NEXT_LATER = 2 };
/* Bytes of shared memory that a block needs. */
/* Waves of a block: a user's kernel has fewer, as a multiprocessor's registers then are divided more finely among
 * blocks; but not one that has shared or local bytes, which are what bounds the blocks. */
enum { PTX_USER_WAVES = 4 };
static inline unsigned ptx_block_waves(bool user, uint32_t bytes, unsigned waves)
{
	return user && !bytes && waves > PTX_USER_WAVES ? PTX_USER_WAVES : waves;
}
/* occupancy.c: how many blocks a multiprocessor is to have at once. */
unsigned ptx_blocks_at_once(const struct ir *ir);
static inline uint32_t ptx_shared_bytes(const struct object *o, unsigned waves)
{
	return ((o->shared_bytes + 63) & ~63u) + waves * o->frame_bytes;
}

#endif
