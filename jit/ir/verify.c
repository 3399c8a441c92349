/* jit/ir/verify.c - whether a kernel is well formed.
 *
 * Owns: the rules that templates, passes and backends may rely on: operand kinds, immediates' ranges (the ones ops.def
 * states), definition before use on every path, loop balance, where locals stand. It reads only, and refuses with one
 * sentence that names the instruction, its op and the operand. A new rule belongs here and in ops.def, and gets a
 * refusing test.
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
	uint8_t *state; /* by register: its kind and STATE_... */
	uint16_t *trail;
	size_t n_trail; /* registers in the order they became defined: leaving a loop takes its share back */
	size_t mark[IR_MAX_LOOP_DEPTH];
	unsigned depth;
	uint64_t local_bytes, shared_bytes;
	bool cooperative;
};

/* Of a register: it is a variable; it is written by any instruction so far; on every path to here. Register 0, of kind
 * none, counts as defined: it stands where a row has no operand. */
enum { STATE_KIND = 15, STATE_NO_KIND = 15, STATE_VAR = 16, STATE_WRITTEN = 32, STATE_DEFINED = 64 };

static const char kind_letters[] = IR_KIND_LETTERS;

static __attribute__((format(printf, 2, 3))) bool verify_fail(const struct verify *v, const char *format, ...)
{
	char text[256];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	return error_set(v->err, ERROR_ARGUMENT, "IR instruction %zu (%s): %s", v->at,
	                 ir_facts[v->ir->ins[v->at].op].name, text);
}

/* Register 0 where the row has an operand, a register where it has none, a register of another kind, or none at all. */
static bool verify_kind(const struct verify *v, const char *operand, uint16_t reg, uint8_t kind)
{
	const struct ir *ir = v->ir;

	if (kind == IR_KIND__)
		return reg == 0 || verify_fail(v, "operand %s is %%%u, expected none", operand, reg);
	if (reg == 0)
		return verify_fail(v, "operand %s is missing, expected a register of kind %c", operand,
		                   kind_letters[kind]);
	if (reg >= ir->n_regs)
		return verify_fail(v, "operand %s is %%%u, expected a register below %zu", operand, reg, ir->n_regs);
	if (ir->kind[reg] != kind)
		return verify_fail(v, "operand %s is %%%u of kind %c, expected kind %c", operand, reg,
		                   ir->kind[reg] < sizeof kind_letters - 1 ? kind_letters[ir->kind[reg]] : '?',
		                   kind_letters[kind]);
	return true;
}

/* What is wrong with it, if anything is. */
static bool verify_odd_use(const struct verify *v, const char *operand, uint16_t reg, uint8_t kind)
{
	if (!verify_kind(v, operand, reg, kind))
		return false;
	if (!(v->state[reg] & STATE_DEFINED))
		return verify_fail(v, "operand %s is %%%u, which is not defined on every path to here", operand, reg);
	return true;
}

static inline bool verify_use(const struct verify *v, const char *operand, uint16_t reg, uint8_t kind)
{
	bool usual = reg < v->ir->n_regs && (v->state[reg] & (STATE_KIND | STATE_DEFINED)) == (kind | STATE_DEFINED);

	return usual || verify_odd_use(v, operand, reg, kind);
}

/* Whether a variable may be written, or what is none again. */
static bool verify_odd_def(const struct verify *v, const struct ir_ins *in, uint8_t kind)
{
	const uint16_t reg = in->dst;

	if (!verify_kind(v, "dst", reg, kind))
		return false;
	if (v->state[reg] & STATE_VAR && (in->op == IR_loop || kind == IR_KIND_M || kind == IR_KIND_O))
		return verify_fail(v, "operand dst is the variable %%%u, expected a plain register", reg);
	if (!(v->state[reg] & STATE_VAR) && v->state[reg] & STATE_WRITTEN)
		return verify_fail(v, "operand dst is %%%u, which is written before and is no variable", reg);
	return true;
}

static inline bool verify_def(struct verify *v, const struct ir_ins *in, uint8_t kind)
{
	const uint16_t reg = in->dst;
	bool usual = reg < v->ir->n_regs && (v->state[reg] & (STATE_KIND | STATE_VAR | STATE_WRITTEN)) == kind;

	if (!usual && !verify_odd_def(v, in, kind))
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

static bool verify_integer(const struct verify *v, const struct ir_ins *in)
{
	switch (in->op) {
	case IR_iconst: return verify_range(v, INT32_MIN, UINT32_MAX);
	case IR_ishl:
	case IR_ishr:
	case IR_isar:
	case IR_irotl: return verify_range(v, 0, 31);
	case IR_ilut16: return verify_range(v, 0, LANES_TABLES - 1);
	case IR_sshli:
	case IR_sshri: return verify_range(v, 0, 63);
	case IR_smuli:
	case IR_aaddi: return verify_range(v, INT32_MIN, INT32_MAX);
	case IR_sandi: return verify_range(v, 0, INT32_MAX);
	case IR_sdivi: return verify_range(v, 1, INT32_MAX);
	case IR_local: return verify_range(v, 1, (int64_t)(IR_MAX_LOCAL_BYTES - v->local_bytes));
	case IR_shared: return verify_range(v, 1, (int64_t)(IR_MAX_SHARED_BYTES - v->shared_bytes));
	case IR_copied: return verify_range(v, 0, IR_MAX_COPIES);
	case IR_copy:
		return in->imm % 16 ? verify_fail(v, "immediate is %" PRId64 ", expected a multiple of 16", in->imm)
		                    : verify_range(v, 16, IR_MAX_LOCAL_BYTES);
	case IR_copy_at:
		return in->imm == 4 || in->imm == 8 || in->imm == 16 ||
		       verify_fail(v, "immediate is %" PRId64 ", expected 4, 8 or 16", in->imm);
	case IR_fhalf: return verify_range(v, 0, 1);
	case IR_fxor:
		if (in->imm <= 0 || in->imm >= v->ir->lanes || (in->imm & (in->imm - 1)))
			return verify_fail(v, "immediate is %" PRId64 ", expected a power of two below %u", in->imm,
			                   v->ir->lanes);
		return true;
	default: /* sconst, saddi: any */ return true;
	}
}

/* Matrices in memory. */
static bool verify_matrix(const struct verify *v, const struct ir_ins *in)
{
	unsigned step = ir_t_step(in->imm), stride = ir_x_stride(in->imm), element = in->op == IR_tload_h ? 2 : 4;

	if (in->op == IR_ostore && (stride < IR_PIECE_BYTES ||
	                            (stride < (step + 1) * IR_PIECE_BYTES && step * IR_PIECE_BYTES < IR_TILE * stride)))
		return verify_fail(v, "step is %u and stride is %u, which makes pieces overlap", step, stride);
	if (in->op == IR_oload_turned)
		return (step <= 6 && step % 2 == 0 && stride == IR_ROW_BYTES) ||
		       verify_fail(v, "step is %u and stride is %u, expected 0, 2, 4 or 6 and %d", step, stride,
		                   IR_ROW_BYTES);
	if (in->op == IR_oload || in->op == IR_oload_top || in->op == IR_ostore)
		return (step && stride % IR_PIECE_BYTES == 0) ||
		       verify_fail(v,
		                   "step is %u and stride is %u, expected a step of 1 or more and a stride that is a "
		                   "multiple of %d",
		                   step, stride, IR_PIECE_BYTES);
	if (step % element || stride % element)
		return verify_fail(v, "step is %u and stride is %u, expected multiples of %u", step, stride, element);
	if ((in->op == IR_tstore || in->op == IR_tstore_top) &&
	    (!step || !stride || (stride < IR_TILE * step && step < IR_TILE * stride)))
		return verify_fail(v, "step is %u and stride is %u, which makes elements overlap", step, stride);
	return true;
}

static inline bool verify_immediate(const struct verify *v, const struct ir_ins *in, uint8_t imm)
{
	unsigned element;

	if (imm == IR_IMM__)
		return !in->imm || verify_range(v, 0, 0);
	switch (imm) {
	case IR_IMM_f: return verify_range(v, 0, UINT32_MAX);
	case IR_IMM_d: return verify_range(v, INT32_MIN, INT32_MAX);
	case IR_IMM_i: return verify_integer(v, in);
	case IR_IMM_t: return verify_matrix(v, in);
	default: break;
	}
	if (in->op == IR_idots && (ir_x_lanes(in->imm, 0) < 1 || ir_x_lanes(in->imm, 0) > IR_TILE))
		return verify_fail(v, "row count is %u, expected 1 to %d", ir_x_lanes(in->imm, 0), IR_TILE);
	if (in->op != IR_idots && ir_x_lanes(in->imm, v->ir->lanes) > v->ir->lanes)
		return verify_fail(v, "lane count is %u, expected at most %u", ir_x_lanes(in->imm, v->ir->lanes),
		                   v->ir->lanes);
	if (in->op == IR_iload_s && (ir_x_stride(in->imm) == 0 || ir_x_stride(in->imm) % 4 ||
	                             ir_x_lanes(in->imm, v->ir->lanes) != v->ir->lanes))
		return verify_fail(v, "stride is %u for %u lanes, expected a multiple of 4 for all lanes",
		                   ir_x_stride(in->imm), ir_x_lanes(in->imm, v->ir->lanes));
	if (in->op == IR_fawait && (ir_x_stride(in->imm) == 0 || ir_x_stride(in->imm) % 4 ||
	                            (ir_x_stride(in->imm) > 4 && ir_x_lanes(in->imm, v->ir->lanes) != v->ir->lanes)))
		return verify_fail(v, "stride is %u for %u lanes, expected 4, or a multiple of it for all lanes",
		                   ir_x_stride(in->imm), ir_x_lanes(in->imm, v->ir->lanes));
	element = in->op == IR_fstore_s || in->op == IR_iload_s || in->op == IR_fawait ? 4
	          : in->op == IR_fstore_hs                                             ? 2
	                                                                               : 0;
	if (!element && ir_x_stride(in->imm))
		return verify_fail(v, "stride is %u, expected none", ir_x_stride(in->imm));
	if (ir_x_stride(in->imm) < element)
		return verify_fail(v, "stride is %u, expected at least %u", ir_x_stride(in->imm), element);
	return true;
}

/* Loops and locals. Called before dst is defined, so that a loop's index belongs to its body. */
static bool verify_shape(struct verify *v, const struct ir_ins *in)
{
	v->cooperative |= ir_does(in->op, IR_GROUPS);
	switch (in->op) {
	case IR_loop:
		if (v->depth == IR_MAX_LOOP_DEPTH)
			return verify_fail(v, "loops nest deeper than %d", IR_MAX_LOOP_DEPTH);
		v->mark[v->depth++] = v->n_trail;
		return true;
	case IR_endloop:
		if (!v->depth)
			return verify_fail(v, "no loop is open");
		/* the body may run zero times: what it alone defined is undefined again */
		for (v->depth--; v->n_trail > v->mark[v->depth];)
			v->state[v->trail[--v->n_trail]] &= (uint8_t)~STATE_DEFINED;
		return true;
	case IR_local:
		if (v->depth)
			return verify_fail(v, "a local stands inside a loop, expected outside");
		v->local_bytes += ir_local_size(in->imm);
		return true;
	case IR_shared:
		if (v->depth)
			return verify_fail(v, "shared bytes stand inside a loop, expected outside");
		v->shared_bytes += ir_local_size(in->imm);
		return true;
	default: return true;
	}
}

static bool verify_instruction(struct verify *v, const struct ir_ins *in)
{
	const struct ir_facts *facts;

	if (in->op >= IR_OP_COUNT)
		return error_set(v->err, ERROR_ARGUMENT, "IR instruction %zu: op is %u, expected below %u", v->at,
		                 in->op, (unsigned)IR_OP_COUNT);
	facts = &ir_facts[in->op];
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
	if (v->depth)
		return error_set(v->err, ERROR_ARGUMENT,
		                 "IR of %zu instructions: %u loops are open at its end, expected none", ir->n_ins,
		                 v->depth);
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
		v.state[r] = (uint8_t)((ir->kind[r] - 1u < IR_KIND_O ? ir->kind[r] : STATE_NO_KIND) |
		                       (ir->is_var[r] ? STATE_VAR : 0));
	ok = verify_all(&v);
	free(v.trail);
	return ok;
}
