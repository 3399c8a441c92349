/* jit/ir/ir.c - the builder: appends instructions, hands out registers, holds the sticky error.
 *
 * Owns: the facts of every op (from ops.def) and the growing arrays of a kernel. It checks what one instruction shows -
 * types, loop nesting, room - and leaves what needs the whole kernel to verify.c. It never evaluates, optimises or
 * reorders. After the first error nothing is appended; keep every failure on that one path.
 */
#include "jit/ir/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct ir_type_facts ir_types[IR_TYPES] = {
#define TYPE(name, letter, lane, ints, bits, difference, condition, bytes, needs, meaning) \
	[IR_TYPE_##name] = { #name, meaning, letter, IR_TYPE_##lane, bytes, IR_NEEDS_##needs },
#include "jit/ir/types.def"
#undef TYPE
};

/* The form of an immediate; that of a constant goes by its type. */
#define IMM__(type) IR_IMM__
#define IMM_i(type) IR_IMM_i
#define IMM_d(type) IR_IMM_d
#define IMM_x(type) IR_IMM_x
#define IMM_t(type) IR_IMM_t
#define IMM_k(type) (IR_TYPE_##type == IR_TYPE_f32 || IR_TYPE_##type == IR_TYPE_t ? IR_IMM_f : IR_IMM_i)
#define FACTS(row, op, type, dst, a, b, c, imm, effects, needs, text, meaning) \
	[IR_##row] = { #row, \
		       IR_##op, \
		       IR_TYPE_##type, \
		       IR_OF_##dst(type), \
		       IR_OF_##a(type), \
		       IR_OF_##b(type), \
		       IR_OF_##c(type), \
		       IMM_##imm(type), \
		       IR_NEEDS_##needs | IR_TYPE_NEEDS_##type, \
		       effects, \
		       0, \
		       text, \
		       meaning },
#define FACTS_OF(x, row, type) FACTS_WITH(row, type, IR_EACH_BARE x)
#define FACTS_WITH(row, type, ...) FACTS_APART(row, type, __VA_ARGS__)
#define FACTS_APART(row, type, op, ...) FACTS(row, op, type, __VA_ARGS__)
#define BIT(x, row, type) | 1u << IR_TYPE_##type
const struct ir_facts ir_facts[IR_ROWS] = {
#define OP(name, dst, a, b, c, imm, effects, needs, expression, meaning) \
	FACTS(name, name, _, dst, a, b, c, imm, effects, needs, #expression, meaning)
#define OPS(name, dst, a, b, c, imm, effects, needs, expression, meaning, ...) \
	[IR_##name] = { #name,       IR_##name, IR_TYPE__, 0, 0, 0, 0, 0, 0, effects, 0 IR_EACH(BIT, , __VA_ARGS__), \
		        #expression, meaning }, \
	IR_EACH(FACTS_OF, (name, dst, a, b, c, imm, effects, needs, #expression, meaning), __VA_ARGS__)
#include "jit/ir/ops.def"
#undef OP
#undef OPS
};

#define ROW_OF(op, row, type) [IR_TYPE_##type][IR_##op] = IR_##row,
const uint16_t ir_rows[IR_TYPES][IR_OPS] = {
#define OP(name, ...) ROW_OF(name, name, _)
#define OPS(name, dst, a, b, c, imm, effects, needs, expression, meaning, ...) IR_EACH(ROW_OF, name, __VA_ARGS__)
#include "jit/ir/ops.def"
#undef OP
#undef OPS
};

/* What the kernel as a whole must know of: struct ir, and the builder's own checks. */
enum { IR_SHAPES = IR_BRANCHES | IR_FRAMES | IR_GROUPS };

void ir_init(struct ir *ir, unsigned lanes)
{
	memset(ir, 0, sizeof *ir);
	ir->lanes = lanes;
	ir->waves = 1;
	ir->n_regs = 1; /* register 0: none */
	if (lanes != 8 && lanes != 16 && lanes != 32)
		ir->error = "the number of lanes is not 8, 16 or 32";
}

void ir_free(struct ir *ir)
{
	free(ir->ins);
	free(ir->type);
	free(ir->is_var);
	memset(ir, 0, sizeof *ir);
}

static uint16_t ir_fail(struct ir *ir, const char *text)
{
	if (!ir->error)
		ir->error = text;
	return 0;
}

static uint16_t ir_no_memory(struct ir *ir, const char *text)
{
	ir->no_memory = ir->no_memory || !ir->error;
	return ir_fail(ir, text);
}

static bool ir_grow_regs(struct ir *ir)
{
	const size_t capacity =
		ir->regs_capacity ? ir->regs_capacity * 2 : 1024; /* comes to IR_MAX_REGS, and no further */
	uint8_t *type = realloc(ir->type, capacity * sizeof *type);
	bool *is_var;

	if (!type)
		return false;
	ir->type = type;
	is_var = realloc(ir->is_var, capacity * sizeof *is_var);
	if (!is_var)
		return false;
	ir->is_var = is_var;
	if (!ir->regs_capacity) {
		type[0] = IR_TYPE__;
		is_var[0] = false;
	}
	ir->regs_capacity = capacity;
	return true;
}

static inline uint16_t ir_new_reg(struct ir *ir, uint8_t type, bool is_var)
{
	if (ir->n_regs >= IR_MAX_REGS)
		return ir_fail(ir, "the kernel needs more than 65535 registers");
	if (ir->n_regs >= ir->regs_capacity && !ir_grow_regs(ir))
		return ir_no_memory(ir, "out of memory for the registers of a kernel");
	ir->type[ir->n_regs] = type;
	ir->is_var[ir->n_regs] = is_var;
	return (uint16_t)ir->n_regs++;
}

uint16_t ir_new_var(struct ir *ir, enum ir_type type)
{
	if (ir->error)
		return 0;
	if (ir_rows[type][IR_mov] == IR_NO_ROW)
		return ir_fail(ir, "a variable is asked for that is no F, I, M, S, C, A, T, D or L");
	return ir_new_reg(ir, (uint8_t)type, true);
}

/* Register 0 has no type, and is alone in that. */
static inline bool ir_has_type(const struct ir *ir, uint16_t reg, uint8_t type)
{
	return reg ? reg < ir->n_regs && ir->type[reg] == type : type == IR_TYPE__;
}

static enum ir_misplaced open_block(struct ir_blocks *b, enum ir_block kind)
{
	if (kind == IR_IN_LOOP && b->loops == IR_MAX_LOOP_DEPTH)
		return IR_LOOPS_TOO_DEEP;
	if (b->depth == IR_MAX_DEPTH)
		return IR_TOO_DEEP;
	b->kind[b->depth++] = (uint8_t)kind;
	b->loops += kind == IR_IN_LOOP;
	return IR_PLACED;
}

enum ir_misplaced ir_blocks_step(struct ir_blocks *b, unsigned op)
{
	uint8_t *inner = b->depth ? &b->kind[b->depth - 1] : NULL;

	switch (op) {
	case IR_loop: return open_block(b, IR_IN_LOOP);
	case IR_if: return open_block(b, IR_IN_IF);
	case IR_endloop:
		if (!b->loops || *inner != IR_IN_LOOP)
			return b->loops ? IR_IF_OPEN : IR_NO_LOOP;
		b->depth--;
		b->loops--;
		return IR_PLACED;
	case IR_else:
		if (!inner || *inner != IR_IN_IF)
			return IR_NO_IF;
		*inner = IR_IN_ELSE;
		return IR_PLACED;
	case IR_endif:
		if (!inner || *inner == IR_IN_LOOP)
			return IR_NO_IF;
		b->depth--;
		return IR_PLACED;
	case IR_break: return b->loops ? IR_PLACED : IR_NO_LOOP;
	case IR_local:
	case IR_shared: return b->depth ? IR_IN_BLOCK : IR_PLACED;
	default: return IR_PLACED;
	}
}

/* What an op does to the kernel's shape. False: not here. */
static bool ir_shape(struct ir *ir, enum ir_op op, int64_t imm)
{
	static const char *const misplaced[IR_MISPLACED_COUNT] = {
		[IR_LOOPS_TOO_DEEP] = "loops nest deeper than 16",
		[IR_TOO_DEEP] = "loops and ifs nest deeper than 32",
		[IR_NO_LOOP] = "an endloop closes no loop, or a break leaves none",
		[IR_IF_OPEN] = "an endloop stands inside an if",
		[IR_NO_IF] = "an else or endif belongs to no if",
		[IR_IN_BLOCK] = "a local or shared bytes stand inside a loop or an if",
	};
	enum ir_misplaced why = ir_blocks_step(&ir->blocks, op);

	ir->cooperative |= ir_does(op, IR_GROUPS);
	if (why != IR_PLACED)
		return ir_fail(ir, misplaced[why]);
	if (op == IR_local) {
		if (imm <= 0 || imm > (int64_t)(IR_MAX_LOCAL_BYTES - ir->local_bytes))
			return ir_fail(ir, "a local is empty or the locals exceed 1 MiB");
		ir->local_bytes += ir_local_size(imm);
	} else if (op == IR_shared) {
		if (imm <= 0 || imm > (int64_t)(IR_MAX_SHARED_BYTES - ir->shared_bytes))
			return ir_fail(ir, "shared bytes are none or exceed 224 KiB");
		ir->shared_bytes += ir_local_size(imm);
	}
	return true;
}

static bool ir_grow(struct ir *ir)
{
	const size_t capacity = ir->capacity ? ir->capacity * 2 : 1024;
	struct ir_ins *ins = realloc(ir->ins, capacity * sizeof *ins);

	if (!ins)
		return ir_no_memory(ir, "out of memory for the instructions of a kernel");
	ir->ins = ins;
	ir->capacity = capacity;
	return true;
}

static inline uint16_t ir_append(struct ir *ir, const struct ir_facts *facts, uint16_t dst, uint16_t a, uint16_t b,
                                 uint16_t c, int64_t imm)
{
	struct ir_ins *i = &ir->ins[ir->n_ins++];

	i->op = facts->op;
	i->type = facts->type;
	i->dst = dst;
	i->a = a;
	i->b = b;
	i->c = c;
	i->mask = 0;
	i->imm = imm;
	return dst;
}

/* Looks at everything. */
static __attribute__((noinline)) uint16_t ir_emit_odd(struct ir *ir, const struct ir_facts *facts, uint16_t dst,
                                                      uint16_t a, uint16_t b, uint16_t c, int64_t imm)
{
	if (ir->error)
		return 0;
	if (!ir_has_type(ir, a, facts->a) || !ir_has_type(ir, b, facts->b) || !ir_has_type(ir, c, facts->c))
		return ir_fail(ir, "an operand is of another type than its instruction takes");
	if (dst && (!ir_has_type(ir, dst, facts->dst) || !ir->is_var[dst] || facts->op == IR_loop))
		return ir_fail(ir, "a result is written to a register that is no variable of its type");
	if (ir->n_ins == ir->capacity && !ir_grow(ir))
		return 0;
	if (!dst && facts->dst != IR_TYPE__ && !(dst = ir_new_reg(ir, facts->dst, false)))
		return 0;
	if (!ir_shape(ir, facts->op, imm))
		return 0;
	return ir_append(ir, facts, dst, a, b, c, imm);
}

/* Most write a fresh register, and there is room for it and for them. */
uint16_t ir_emit(struct ir *ir, enum ir_op row, uint16_t dst, uint16_t a, uint16_t b, uint16_t c, int64_t imm)
{
	const struct ir_facts *facts = &ir_facts[row];
	const size_t n = ir->n_regs;
	const uint8_t *type = ir->type;

	assert(ir_is_row(row));
	if (dst || facts->effects & IR_SHAPES || facts->dst == IR_TYPE__ || ir->error || ir->n_ins >= ir->capacity ||
	    n >= ir->regs_capacity || a >= n || b >= n || c >= n || type[a] != facts->a || type[b] != facts->b ||
	    type[c] != facts->c)
		return ir_emit_odd(ir, facts, dst, a, b, c, imm);
	ir->type[n] = facts->dst;
	ir->is_var[n] = false;
	ir->n_regs++;
	return ir_append(ir, facts, (uint16_t)n, a, b, c, imm);
}

void ir_where(struct ir *ir, ir_m mask)
{
	struct ir_ins *last = ir->n_ins ? &ir->ins[ir->n_ins - 1] : NULL;

	if (ir->error)
		return;
	if (!ir_has_type(ir, mask.r, IR_TYPE_m) || !last || last->mask || !ir_does(last->op, IR_MASKABLE))
		ir_fail(ir, "a mask restricts an instruction that takes none, or is none");
	else
		last->mask = mask.r;
}

void ir_set(struct ir *ir, uint16_t var, uint16_t value)
{
	struct ir_ins *last;

	if (ir->error)
		return;
	if (!var || var >= ir->n_regs || !ir->is_var[var]) {
		ir_fail(ir, "a register is set that is no variable");
		return;
	}
	if (!ir_has_type(ir, value, ir->type[var])) {
		ir_fail(ir, "a variable is set to a value of another type");
		return;
	}
	last = ir->n_ins ? &ir->ins[ir->n_ins - 1] : NULL;
	/* a loop's index is written by the loop itself, every time round: it stays where it is */
	if (last && last->dst == value && !ir->is_var[value] && last->op != IR_loop)
		last->dst = var;
	else
		ir_emit(ir, ir_rows[ir->type[var]][IR_mov], var, value, 0, 0, 0);
}
