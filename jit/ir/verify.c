/* jit/ir/verify.c - whether a kernel is well formed.
 *
 * Owns: the rules that templates, passes and backends may rely on: operand types, immediates' ranges (the ones ops.def
 * states), definition before use on every path, balance of loops and ifs, where locals stand. It reads only, and
 * refuses with one sentence that names the instruction, its op and the operand. A new rule belongs here and in ops.def,
 * and gets a refusing test.
 */
#include "jit/ir/ir.h"
#include "jit/ir/lanes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct verify {
	const struct ir *ir;
	struct error *err;
	size_t at;      /* the instruction looked at */
	uint8_t *state; /* by register: its type and STATE_... */
	uint16_t *trail;
	size_t n_trail; /* registers in the order they became defined: leaving a block takes its share back */
	size_t mark[IR_MAX_DEPTH]; /* of each block that is open: n_trail where it began */
	struct ir_blocks blocks;
	uint64_t local_bytes, shared_bytes;
	bool cooperative;
};

/* Of a register: it is a variable; it is written by any instruction so far; on every path to here. Register 0, which
 * has no type, counts as defined: it stands where a row has no operand. */
enum { STATE_TYPE = 15, STATE_NO_TYPE = 15, STATE_VAR = 16, STATE_WRITTEN = 32, STATE_DEFINED = 64 };
_Static_assert((int)IR_REGISTER_TYPES < (int)STATE_NO_TYPE, "every type of registers has its number");

static __attribute__((format(printf, 2, 3))) bool verify_fail(const struct verify *v, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	return error_set(v->err, ERROR_ARGUMENT, "IR instruction %zu (%s): %s", v->at,
	                 ir_facts_of(&v->ir->ins[v->at])->name, text);
}

/* Of a type, as in the text form. */
static char letter_of(uint8_t type)
{
	return type == IR_TYPE__ ? '_' : type <= IR_REGISTER_TYPES ? ir_types[type].letter : '?';
}

/* Register 0 where the row has an operand, a register where it has none, a register of another type, or none at all. */
static bool verify_type(const struct verify *v, const char *operand, uint16_t reg, uint8_t type)
{
	const struct ir *ir = v->ir;

	if (type == IR_TYPE__)
		return reg == 0 || verify_fail(v, "operand %s is %%%u, expected none", operand, reg);
	if (reg == 0)
		return verify_fail(v, "operand %s is missing, expected a register of kind %c", operand,
		                   letter_of(type));
	if (reg >= ir->n_regs)
		return verify_fail(v, "operand %s is %%%u, expected a register below %zu", operand, reg, ir->n_regs);
	if (ir->type[reg] != type)
		return verify_fail(v, "operand %s is %%%u of kind %c, expected kind %c", operand, reg,
		                   letter_of(ir->type[reg]), letter_of(type));
	return true;
}

/* What is wrong with it, if anything is. */
static bool verify_odd_use(const struct verify *v, const char *operand, uint16_t reg, uint8_t type)
{
	if (!verify_type(v, operand, reg, type))
		return false;
	if (!(v->state[reg] & STATE_DEFINED))
		return verify_fail(v, "operand %s is %%%u, which is not defined on every path to here", operand, reg);
	return true;
}

static inline bool verify_use(const struct verify *v, const char *operand, uint16_t reg, uint8_t type)
{
	bool usual = reg < v->ir->n_regs && (v->state[reg] & (STATE_TYPE | STATE_DEFINED)) == (type | STATE_DEFINED);

	return usual || verify_odd_use(v, operand, reg, type);
}

/* Whether a variable may be written, or what is none again. */
static bool verify_odd_def(const struct verify *v, const struct ir_ins *in, uint8_t type)
{
	const uint16_t reg = in->dst;

	if (!verify_type(v, "dst", reg, type))
		return false;
	if (v->state[reg] & STATE_VAR && (in->op == IR_loop || ir_rows[type][IR_mov] == IR_NO_ROW))
		return verify_fail(v, "operand dst is the variable %%%u, expected a plain register", reg);
	if (!(v->state[reg] & STATE_VAR) && v->state[reg] & STATE_WRITTEN)
		return verify_fail(v, "operand dst is %%%u, which is written before and is no variable", reg);
	return true;
}

static inline bool verify_def(struct verify *v, const struct ir_ins *in, uint8_t type)
{
	const uint16_t reg = in->dst;
	bool usual = reg < v->ir->n_regs && (v->state[reg] & (STATE_TYPE | STATE_VAR | STATE_WRITTEN)) == type;

	if (!usual && !verify_odd_def(v, in, type))
		return false;
	if (!reg)
		return true;
	if (!(v->state[reg] & STATE_DEFINED))
		v->trail[v->n_trail++] = reg;
	v->state[reg] |= STATE_WRITTEN | STATE_DEFINED;
	return true;
}

static bool verify_range(const struct verify *v, int64_t low, int64_t high)
{
	const int64_t imm = v->ir->ins[v->at].imm;

	return (imm >= low && imm <= high) ||
	       verify_fail(v, "immediate is %" PRId64 ", expected %" PRId64 "..%" PRId64, imm, low, high);
}

/* Bits of a lane, or of a uniform scalar. */
static int64_t bits_of(uint8_t type) { return 8 * ir_types[type].bytes; }

static bool verify_integer(const struct verify *v, const struct ir_ins *in)
{
	switch (in->op) {
	case IR_const: /* s: any */ return bits_of(in->type) > 32 || verify_range(v, INT32_MIN, UINT32_MAX);
	case IR_shl:
	case IR_shr:
	case IR_sar:
	case IR_rotl: return verify_range(v, 0, bits_of(in->type) - 1);
	case IR_lookup: return verify_range(v, 0, LANES_TABLES - 1);
	case IR_addi: /* s: any */ return in->type == IR_TYPE_s || verify_range(v, INT32_MIN, INT32_MAX);
	case IR_muli: return verify_range(v, INT32_MIN, INT32_MAX);
	case IR_andi: return verify_range(v, 0, INT32_MAX);
	case IR_divi: return verify_range(v, 1, INT32_MAX);
	case IR_local: return verify_range(v, 1, (int64_t)(IR_MAX_LOCAL_BYTES - v->local_bytes));
	case IR_shared: return verify_range(v, 1, (int64_t)(IR_MAX_SHARED_BYTES - v->shared_bytes));
	case IR_copied: return verify_range(v, 0, IR_MAX_COPIES);
	case IR_copy:
		return in->imm % 16 ? verify_fail(v, "immediate is %" PRId64 ", expected a multiple of 16", in->imm)
		                    : verify_range(v, 16, IR_MAX_LOCAL_BYTES);
	case IR_copy_at:
		return in->imm == 4 || in->imm == 8 || in->imm == 16 ||
		       verify_fail(v, "immediate is %" PRId64 ", expected 4, 8 or 16", in->imm);
	case IR_half: return verify_range(v, 0, 1);
	case IR_exchange:
		if (in->imm <= 0 || in->imm >= v->ir->lanes || (in->imm & (in->imm - 1)))
			return verify_fail(v, "immediate is %" PRId64 ", expected a power of two below %u", in->imm,
			                   v->ir->lanes);
		return true;
	default: return true;
	}
}

/* Matrices in memory. */
static bool verify_matrix(const struct verify *v, const struct ir_ins *in)
{
	unsigned step = ir_t_step(in->imm), stride = ir_x_stride(in->imm),
		 element = in->type == IR_TYPE__ ? 4 : ir_types[in->type].bytes;

	if (in->op == IR_ostore &&
	    (stride < IR_VECTOR_BYTES ||
	     (stride < (step + 1) * IR_VECTOR_BYTES && step * IR_VECTOR_BYTES < IR_TILE * stride)))
		return verify_fail(v, "step is %u and stride is %u, which makes vectors overlap", step, stride);
	if (in->op == IR_oload_swizzled)
		return (step <= 6 && step % 2 == 0 && stride == IR_ROW_BYTES) ||
		       verify_fail(v, "step is %u and stride is %u, expected 0, 2, 4 or 6 and %d", step, stride,
		                   IR_ROW_BYTES);
	if (in->op == IR_oload || in->op == IR_oload_top || in->op == IR_ostore)
		return (step && stride % IR_VECTOR_BYTES == 0) ||
		       verify_fail(v,
		                   "step is %u and stride is %u, expected a step of 1 or more and a stride that is a "
		                   "multiple of %d",
		                   step, stride, IR_VECTOR_BYTES);
	if (step % element || stride % element)
		return verify_fail(v, "step is %u and stride is %u, expected multiples of %u", step, stride, element);
	if ((in->op == IR_tstore || in->op == IR_tstore_top) &&
	    (!step || !stride || (stride < IR_TILE * step && step < IR_TILE * stride)))
		return verify_fail(v, "step is %u and stride is %u, which makes elements overlap", step, stride);
	return true;
}

/* Displacement, lanes and stride. */
static bool verify_access(const struct verify *v, const struct ir_ins *in)
{
	const unsigned all = v->ir->lanes, lanes = ir_x_lanes(in->imm, all), stride = ir_x_stride(in->imm),
		       element = ir_types[in->type].bytes;

	if (in->op == IR_idots && (ir_x_lanes(in->imm, 0) < 1 || ir_x_lanes(in->imm, 0) > IR_TILE))
		return verify_fail(v, "row count is %u, expected 1 to %d", ir_x_lanes(in->imm, 0), IR_TILE);
	if (in->op != IR_idots && lanes > all)
		return verify_fail(v, "lane count is %u, expected at most %u", lanes, all);
	if (in->op == IR_load_strided && (stride == 0 || stride % 4 || lanes != all))
		return verify_fail(v, "stride is %u for %u lanes, expected a multiple of 4 for all lanes", stride,
		                   lanes);
	if (in->op == IR_await && (stride == 0 || stride % 4 || (stride > 4 && lanes != all)))
		return verify_fail(v, "stride is %u for %u lanes, expected 4, or a multiple of it for all lanes",
		                   stride, lanes);
	if (in->op == IR_load_strided || in->op == IR_await)
		return true;
	if (in->op == IR_store_strided)
		return stride >= element || verify_fail(v, "stride is %u, expected at least %u", stride, element);
	return !stride || verify_fail(v, "stride is %u, expected none", stride);
}

static inline bool verify_immediate(const struct verify *v, const struct ir_ins *in, uint8_t imm)
{
	switch (imm) {
	case IR_IMM__: return !in->imm || verify_range(v, 0, 0);
	case IR_IMM_f: return verify_range(v, 0, UINT32_MAX);
	case IR_IMM_d: return verify_range(v, INT32_MIN, INT32_MAX);
	case IR_IMM_i: return verify_integer(v, in);
	case IR_IMM_t: return verify_matrix(v, in);
	default: return verify_access(v, in);
	}
}

static bool verify_misplaced(const struct verify *v, const struct ir_ins *in, enum ir_misplaced why)
{
	const char *what = in->op == IR_local ? "a local stands" : "shared bytes stand";

	switch (why) {
	case IR_LOOPS_TOO_DEEP: return verify_fail(v, "loops nest deeper than %d", IR_MAX_LOOP_DEPTH);
	case IR_TOO_DEEP: return verify_fail(v, "loops and ifs nest deeper than %d", IR_MAX_DEPTH);
	case IR_NO_LOOP: return verify_fail(v, "no loop is open");
	case IR_IF_OPEN: return verify_fail(v, "an if is open, expected its endif first");
	case IR_NO_IF: return verify_fail(v, "no if is open that it can belong to");
	default:
		return verify_fail(v, "%s inside %s, expected outside", what,
		                   v->blocks.kind[v->blocks.depth - 1] == IR_IN_LOOP ? "a loop" : "an if");
	}
}

/* What was defined since then may not have been. */
static void verify_undo(struct verify *v, size_t mark)
{
	while (v->n_trail > mark)
		v->state[v->trail[--v->n_trail]] &= (uint8_t)~STATE_DEFINED;
}

/* Loops, ifs and locals. Called before dst is defined, so that a loop's index belongs to its body. */
static bool verify_shape(struct verify *v, const struct ir_ins *in)
{
	const unsigned depth = v->blocks.depth;
	const enum ir_misplaced why = ir_blocks_step(&v->blocks, in->op);

	v->cooperative |= ir_does(in->op, IR_GROUPS);
	if (why != IR_PLACED)
		return verify_misplaced(v, in, why);
	if (v->blocks.depth > depth)
		v->mark[depth] = v->n_trail;
	else if (in->op == IR_endloop || in->op == IR_else || in->op == IR_endif)
		verify_undo(v, v->mark[depth - 1]);
	else if (in->op == IR_local)
		v->local_bytes += ir_local_size(in->imm);
	else if (in->op == IR_shared)
		v->shared_bytes += ir_local_size(in->imm);
	return true;
}

static bool verify_instruction(struct verify *v, const struct ir_ins *in)
{
	const struct ir_facts *facts;

	if (in->op == IR_NO_ROW || in->op >= IR_OPS)
		return error_set(v->err, ERROR_ARGUMENT, "IR instruction %zu: op is %u, expected 1 to %u", v->at,
		                 in->op, (unsigned)IR_OPS - 1);
	if (in->type >= IR_TYPES || ir_row(in) == IR_NO_ROW)
		return error_set(v->err, ERROR_ARGUMENT, "IR instruction %zu (%s): there is none of type %u (%s)",
		                 v->at, ir_facts[in->op].name, in->type,
		                 in->type && in->type < IR_TYPES ? ir_types[in->type].name : "none");
	facts = ir_facts_of(in);
	if (in->mask && !(facts->effects & IR_MASKABLE))
		return verify_fail(v, "mask is %%%u, expected none", in->mask);
	if (in->mask && !verify_use(v, "mask", in->mask, IR_TYPE_m))
		return false;
	return verify_use(v, "a", in->a, facts->a) && verify_use(v, "b", in->b, facts->b) &&
	       verify_use(v, "c", in->c, facts->c) && verify_immediate(v, in, facts->imm) && verify_shape(v, in) &&
	       verify_def(v, in, facts->dst);
}

static bool verify_all(struct verify *v)
{
	const struct ir *ir = v->ir;

	for (v->at = 0; v->at < ir->n_ins; v->at++)
		if (!verify_instruction(v, &ir->ins[v->at]))
			return false;
	if (v->blocks.depth)
		return error_set(v->err, ERROR_ARGUMENT,
		                 "IR of %zu instructions: %u %s are open at its end, expected none", ir->n_ins,
		                 v->blocks.depth, v->blocks.depth == v->blocks.loops ? "loops" : "loops and ifs");
	if (v->local_bytes != ir->local_bytes)
		return error_set(v->err, ERROR_ARGUMENT,
		                 "IR of %zu instructions: local_bytes is %u, its locals take %" PRIu64, ir->n_ins,
		                 ir->local_bytes, v->local_bytes);
	if (v->shared_bytes != ir->shared_bytes)
		return error_set(v->err, ERROR_ARGUMENT,
		                 "IR of %zu instructions: shared_bytes is %u, its shared rows take %" PRIu64, ir->n_ins,
		                 ir->shared_bytes, v->shared_bytes);
	if (v->cooperative != ir->cooperative)
		return error_set(v->err, ERROR_ARGUMENT,
		                 "IR of %zu instructions: cooperative is %d, its rows make it %d", ir->n_ins,
		                 ir->cooperative, v->cooperative);
	return true;
}

bool ir_verify(const struct ir *ir, struct error *err)
{
	struct verify v = { .ir = ir, .err = err };
	bool ok;

	if (ir->error)
		return error_set(err, ir->no_memory ? ERROR_MEMORY : ERROR_ARGUMENT,
		                 "IR of %zu instructions: the builder refused: %s", ir->n_ins, ir->error);
	if (ir->lanes != 8 && ir->lanes != 16 && ir->lanes != 32)
		return error_set(err, ERROR_ARGUMENT, "IR of %zu instructions: lanes is %u, expected 8, 16 or 32",
		                 ir->n_ins, ir->lanes);
	if (ir->waves < 1 || ir->waves > IR_MAX_WAVES)
		return error_set(err, ERROR_ARGUMENT, "IR of %zu instructions: waves is %u, expected 1 to %d",
		                 ir->n_ins, ir->waves, IR_MAX_WAVES);
	if (ir->n_regs > IR_MAX_REGS)
		return error_set(err, ERROR_ARGUMENT,
		                 "IR of %zu instructions: it has %zu registers, expected at most %d", ir->n_ins,
		                 ir->n_regs, IR_MAX_REGS);
	v.trail = malloc((ir->n_regs + 1) * (sizeof *v.trail + sizeof *v.state));
	if (!v.trail)
		return error_set(err, ERROR_MEMORY, "no memory to verify an IR of %zu registers", ir->n_regs);
	v.state = (uint8_t *)(v.trail + ir->n_regs + 1);
	v.state[0] = STATE_DEFINED;
	for (size_t r = 1; r < ir->n_regs; r++)
		v.state[r] = (uint8_t)((ir->type[r] - 1u < IR_REGISTER_TYPES ? ir->type[r] : STATE_NO_TYPE) |
		                       (ir->is_var[r] ? STATE_VAR : 0));
	ok = verify_all(&v);
	free(v.trail);
	return ok;
}
