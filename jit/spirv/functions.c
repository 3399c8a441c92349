/* jit/spirv/functions.c - what takes a function of its own: sums of products rounded once, division, roots, halves.
 *
 * A function first asks the choice that the pipeline made (launch.h), which drivers decide when they compile; then it
 * does the instruction itself, or what gives the same bits without it.
 */
#include "jit/spirv/spirv.h"

#define U32(op, ...) SPIRV_VALUE(w, SPIRV_U32, op, __VA_ARGS__)
#define U64(op, ...) SPIRV_VALUE(w, SPIRV_U64, op, __VA_ARGS__)
#define F32(op, ...) SPIRV_VALUE(w, SPIRV_F32, op, __VA_ARGS__)
#define F64(op, ...) SPIRV_VALUE(w, SPIRV_F64, op, __VA_ARGS__)
#define BOOL(op, ...) SPIRV_VALUE(w, SPIRV_BOOL, op, __VA_ARGS__)

/* The product of two floats is exact in double precision. Its sum with c is rounded to an odd last bit where it is not
 * exact, so that rounding it again, to a float, rounds as if it had been done once. error: what the sum lacks, which is
 * exact, too (TwoSum). */
static uint32_t fma_by_doubles(struct spirv_writer *w, const uint32_t *p)
{
	const uint32_t a = F64(FConvert, p[0]), b = F64(FConvert, p[1]), c = F64(FConvert, p[2]),
		       product = F64(FMul, a, b), sum = F64(FAdd, product, c), of_c = F64(FSub, sum, product),
		       of_product = F64(FSub, sum, of_c),
		       error = F64(FAdd, F64(FSub, product, of_product), F64(FSub, c, of_c)),
		       zero = spirv_constant(w, SPIRV_F64, 0), inexact = BOOL(FOrdNotEqual, error, zero),
		       bits = U64(Bitcast, sum), last = U64(BitwiseAnd, bits, spirv_u64(w, 1)),
		       even = BOOL(IEqual, last, spirv_u64(w, 0)), moves = BOOL(LogicalAnd, inexact, even),
		       more = BOOL(FOrdGreaterThan, error, zero), positive = BOOL(FOrdGreaterThan, sum, zero),
		       inwards = BOOL(LogicalNotEqual, more, positive),
		       by = U64(Select, inwards, spirv_u64(w, UINT64_MAX), spirv_u64(w, 1)),
		       odd = U64(Select, moves, U64(IAdd, bits, by), bits);

	return F32(FConvert, F64(Bitcast, odd));
}

/* A quotient, or a root, of floats that was rounded to a double rounds to a float as if it had not been: a double has
 * more than twice a float's bits and two. */
static uint32_t div_by_doubles(struct spirv_writer *w, const uint32_t *p)
{
	return F32(FConvert, F64(FDiv, F64(FConvert, p[0]), F64(FConvert, p[1])));
}

static uint32_t sqrt_by_doubles(struct spirv_writer *w, const uint32_t *p)
{
	return F32(FConvert, SPIRV_GLSL(w, SPIRV_F64, Sqrt, F64(FConvert, p[0])));
}

static uint32_t fma_itself(struct spirv_writer *w, const uint32_t *p)
{
	return SPIRV_GLSL(w, SPIRV_F32, Fma, p[0], p[1], p[2]);
}

static uint32_t fma64_itself(struct spirv_writer *w, const uint32_t *p)
{
	return SPIRV_GLSL(w, SPIRV_F64, Fma, p[0], p[1], p[2]);
}

static uint32_t div_itself(struct spirv_writer *w, const uint32_t *p) { return F32(FDiv, p[0], p[1]); }
static uint32_t sqrt_itself(struct spirv_writer *w, const uint32_t *p) { return SPIRV_GLSL(w, SPIRV_F32, Sqrt, p[0]); }

/* As lanes.h does it: no driver's way with denormals shows. */
static uint32_t widen_half(struct spirv_writer *w, const uint32_t *p)
{
	const uint32_t magnitude = U32(BitwiseAnd, p[0], spirv_u32(w, 0x7fff)),
		       sign = U32(ShiftLeftLogical, U32(BitwiseAnd, p[0], spirv_u32(w, 0x8000)), spirv_u32(w, 16)),
		       moved = U32(ShiftLeftLogical, magnitude, spirv_u32(w, 13)),
		       normal = U32(IAdd, moved, spirv_u32(w, 112u << 23)),
		       nan = BOOL(UGreaterThan, magnitude, spirv_u32(w, 0x7c00)),
		       quiet = U32(Select, nan, spirv_u32(w, 0x400000), spirv_u32(w, 0)),
		       special = U32(BitwiseOr, U32(IAdd, moved, spirv_u32(w, 224u << 23)), quiet),
		       above = F32(Bitcast, U32(IAdd, moved, spirv_u32(w, 113u << 23))),
		       denormal = U32(Bitcast, F32(FSub, above, spirv_constant(w, SPIRV_F32, 113u << 23))),
		       is_special = BOOL(UGreaterThanEqual, magnitude, spirv_u32(w, 0x7c00)),
		       is_normal = BOOL(UGreaterThanEqual, magnitude, spirv_u32(w, 0x0400)),
		       bits = U32(Select, is_special, special, U32(Select, is_normal, normal, denormal));

	return F32(Bitcast, U32(BitwiseOr, bits, sign));
}

static uint32_t narrow_half(struct spirv_writer *w, const uint32_t *p)
{
	const uint32_t bits = U32(Bitcast, p[0]), magnitude = U32(BitwiseAnd, bits, spirv_u32(w, 0x7fffffff)),
		       sign = U32(BitwiseAnd, U32(ShiftRightLogical, bits, spirv_u32(w, 16)), spirv_u32(w, 0x8000)),
		       kept = U32(ShiftRightLogical, magnitude, spirv_u32(w, 13)),
		       odd = U32(BitwiseAnd, kept, spirv_u32(w, 1)),
		       rounded = U32(IAdd, U32(IAdd, magnitude, spirv_u32(w, 0xfff)), odd),
		       normal = U32(ShiftRightLogical, U32(ISub, rounded, spirv_u32(w, 112u << 23)), spirv_u32(w, 13)),
		       half = F32(FAdd, F32(Bitcast, magnitude), spirv_constant(w, SPIRV_F32, 0x3f000000)),
		       denormal = U32(ISub, U32(Bitcast, half), spirv_u32(w, 0x3f000000)),
		       nan = U32(BitwiseOr, U32(BitwiseAnd, kept, spirv_u32(w, 0x3ff)), spirv_u32(w, 0x7e00)),
		       is_normal = BOOL(UGreaterThanEqual, magnitude, spirv_u32(w, 0x38800000)),
		       is_large = BOOL(UGreaterThanEqual, magnitude, spirv_u32(w, 0x47800000)),
		       is_nan = BOOL(UGreaterThan, magnitude, spirv_u32(w, 0x7f800000)),
		       finite = U32(Select, is_normal, normal, denormal),
		       number = U32(Select, is_large, spirv_u32(w, 0x7c00), finite);

	return U32(BitwiseOr, U32(Select, is_nan, nan, number), sign);
}

static const struct function {
	uint8_t result, operand, operands, choice;
	uint32_t (*itself)(struct spirv_writer *w, const uint32_t *p); /* where the choice holds */
	uint32_t (*otherwise)(struct spirv_writer *w, const uint32_t *p);
} functions[SPIRV_FUNCTIONS] = {
	[SPIRV_FMA] = { SPIRV_F32, SPIRV_F32, 3, SPIRV_FUSED, fma_itself, fma_by_doubles },
	[SPIRV_FMA64] = { SPIRV_F64, SPIRV_F64, 3, SPIRV_FUSED64, fma64_itself, spirv_fma_by_integers },
	[SPIRV_DIV] = { SPIRV_F32, SPIRV_F32, 2, SPIRV_DIVIDES, div_itself, div_by_doubles },
	[SPIRV_SQRT] = { SPIRV_F32, SPIRV_F32, 1, SPIRV_HAS_ROOT, sqrt_itself, sqrt_by_doubles },
	[SPIRV_WIDEN_HALF] = { SPIRV_F32, SPIRV_U32, 1, 0, NULL, widen_half },
	[SPIRV_NARROW_HALF] = { SPIRV_U32, SPIRV_F32, 1, 0, NULL, narrow_half },
};

enum { OPERANDS_MAX = 3 };

static uint32_t type_of(struct spirv_writer *w, const struct function *f)
{
	const uint32_t operand = spirv_type(w, (enum spirv_type)f->operand);
	uint32_t word[2 + OPERANDS_MAX] = { 0, spirv_type(w, (enum spirv_type)f->result) };

	word[0] = spirv_id(w);
	for (unsigned k = 0; k < f->operands; k++)
		word[2 + k] = operand;
	spirv_put_words(w, &w->globals, SPV_TypeFunction, word, 2u + f->operands);
	return word[0];
}

static void begin_block(struct spirv_writer *w, uint32_t label) { SPIRV_PUT(w, w->code, Label, label); }

static void write_body(struct spirv_writer *w, const struct function *f, const uint32_t *p)
{
	if (f->itself) {
		const uint32_t itself = spirv_id(w), otherwise = spirv_id(w),
			       holds = spirv_choice(w, (enum spirv_choice)f->choice);
		SPIRV_PUT(w, w->code, SelectionMerge, otherwise, 0);
		SPIRV_PUT(w, w->code, BranchConditional, holds, itself, otherwise);
		begin_block(w, itself);
		SPIRV_PUT(w, w->code, ReturnValue, f->itself(w, p));
		begin_block(w, otherwise);
	}
	SPIRV_PUT(w, w->code, ReturnValue, f->otherwise(w, p));
}

static void define(struct spirv_writer *w, enum spirv_function number)
{
	const struct function *f = &functions[number];
	struct spirv_words *const code = w->code;
	const uint32_t type = type_of(w, f), result = spirv_type(w, (enum spirv_type)f->result);
	uint32_t p[OPERANDS_MAX] = { 0 };

	/* written apart: whatever is declared on the way goes elsewhere */
	w->function[number] = spirv_id(w);
	w->code = &w->functions;
	SPIRV_PUT(w, w->code, Function, result, w->function[number], 0, type);
	for (unsigned k = 0; k < f->operands; k++)
		p[k] = spirv_make_value(w, (enum spirv_type)f->operand, SPV_FunctionParameter, NULL, 0);
	begin_block(w, spirv_id(w));
	write_body(w, f, p);
	spirv_put_words(w, w->code, SPV_FunctionEnd, NULL, 0);
	w->code = code;
}

uint32_t spirv_call(struct spirv_writer *w, enum spirv_function f, const uint32_t *operand, size_t n)
{
	uint32_t word[1 + OPERANDS_MAX];

	if (!w->function[f])
		define(w, f);
	word[0] = w->function[f];
	for (size_t k = 0; k < n; k++)
		word[1 + k] = operand[k];
	return spirv_make_value(w, (enum spirv_type)functions[f].result, SPV_FunctionCall, word, n + 1);
}
