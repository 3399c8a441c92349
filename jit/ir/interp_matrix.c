/* jit/ir/interp_matrix.c - the interpreter's rows of matrices: their definition, as interp.c is that of the others. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wpass-failed" /* a build without optimisation vectorises nothing, rightly */
#elif defined(__SANITIZE_ADDRESS__)              /* with its checks, O3 takes minutes of this file */
#pragma GCC optimize("fp-contract=off")
#else
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include <assert.h>
#include <string.h>

#include "jit/ir/interp_program.h"
#include "jit/ir/lanes.h"

/* --- matrices: tiles lie in the frame row by row, operands strip by strip */

static size_t rows_in_memory(const struct interp_ins *in)
{
	return in->row == IR_tstore_top || in->row == IR_tload_top || in->row == IR_oload_top ? IR_TILE / 2 : IR_TILE;
}

static void load_tile(uint32_t *d, const char *at, const struct interp_ins *in)
{
	const size_t rows = rows_in_memory(in);

	for (size_t r = 0; r < IR_TILE; r++)
		for (size_t c = 0; c < IR_TILE; c++) {
			const char *from = at + r % rows * in->stride + c * in->lanes;
			d[r * IR_TILE + c] =
				in->row == IR_tload_h ? f32_bits(f16_f32(interp_get16(from))) : interp_get32(from);
		}
}

static void store_tile(char *at, const uint32_t *v, const struct interp_ins *in)
{
	const size_t rows = rows_in_memory(in);

	for (size_t r = 0; r < rows; r++)
		for (size_t c = 0; c < IR_TILE; c++)
			interp_put32(at + r * in->stride + c * in->lanes, v[r * IR_TILE + c]);
}

static void load_operand(char *d, const char *at, const struct interp_ins *in)
{
	const size_t rows = rows_in_memory(in);

	for (size_t r = 0; r < IR_TILE; r++, d += IR_STRIP_BYTES) {
		const char *from = at + r % rows * in->stride;
		memcpy(d, from, IR_VECTOR_BYTES);
		memcpy(d + IR_VECTOR_BYTES, from + (size_t)in->lanes * IR_VECTOR_BYTES, IR_VECTOR_BYTES);
	}
}

static void load_swizzled(char *d, const char *at, const struct interp_ins *in)
{
	for (size_t r = 0; r < IR_TILE; r++, at += IR_ROW_BYTES)
		for (size_t p = in->lanes; p < in->lanes + 2u; p++, d += IR_VECTOR_BYTES)
			memcpy(d, at + (p ^ (r & 7)) * IR_VECTOR_BYTES, IR_VECTOR_BYTES);
}

static void store_operand(char *at, const char *v, const struct interp_ins *in)
{
	for (size_t r = 0; r < IR_TILE; r++, v += IR_STRIP_BYTES) {
		memcpy(at + r * in->stride, v, IR_VECTOR_BYTES);
		memcpy(at + r * in->stride + (size_t)in->lanes * IR_VECTOR_BYTES, v + IR_VECTOR_BYTES, IR_VECTOR_BYTES);
	}
}

static uint32_t dot_strips_i8(const char *a, const char *b, uint32_t c)
{
	for (unsigned k = 0; k < IR_STRIP_BYTES; k++)
		c += (uint32_t)((int8_t)a[k] * (int8_t)b[k]);
	return c;
}

/* An element of a strip, whose type the row names. */
static double strip_element(const char *s, unsigned k, unsigned row)
{
	uint16_t h = interp_get16(s + 2 * k);
	return (double)(row == IR_tdot_f16 ? f16_f32(h) : bits_f32((uint32_t)h << 16));
}

static uint32_t dot_strips_float(const char *a, const char *b, uint32_t c, unsigned row)
{
	double sum = (double)bits_f32(c);

	for (unsigned k = 0; k < IR_STRIP_BYTES / 2; k++)
		sum += strip_element(a, k, row) * strip_element(b, k, row);
	return f32_bits((float)sum);
}

/* d may be c. */
static void dot_tile(uint32_t *d, const char *a, const char *b, const uint32_t *c, unsigned row)
{
	for (unsigned r = 0; r < IR_TILE; r++)
		for (unsigned n = 0; n < IR_TILE; n++) {
			const char *x = a + r * IR_STRIP_BYTES, *y = b + n * IR_STRIP_BYTES;
			uint32_t from = c[r * IR_TILE + n];
			d[r * IR_TILE + n] =
				row == IR_tdot_i8 ? dot_strips_i8(x, y, from) : dot_strips_float(x, y, from, row);
		}
}

/* Sums to `at`, which no factor overlaps. */
static void dot_rows(char *at, const int8_t *x, const int8_t *w, unsigned rows)
{
	for (unsigned r = 0; r < rows; r++)
		for (unsigned l = 0; l < IR_DOTS_ROW / 4; l++) {
			int32_t sum = 0;
			for (unsigned i = 0; i < IR_DOTS_STRIP; i++)
				sum += x[r * IR_DOTS_STRIP + i] * w[i / 4 * IR_DOTS_ROW + l * 4 + i % 4];
			interp_put32(at + r * IR_DOTS_ROW + l * 4, (uint32_t)sum);
		}
}

void interp_matrix_row(const struct interp_ins *in, char *frame)
{
	switch ((enum ir_op)in->row) {
	case IR_tload:
	case IR_tload_top:
	case IR_tload_h: load_tile(INTERP_REG(in->dst), INTERP_ADDRESS(in->a), in); break;
	case IR_tstore:
	case IR_tstore_top: store_tile(INTERP_ADDRESS(in->a), INTERP_REG(in->b), in); break;
	case IR_oload:
	case IR_oload_top: load_operand(INTERP_REG(in->dst), INTERP_ADDRESS(in->a), in); break;
	case IR_oload_swizzled: load_swizzled(INTERP_REG(in->dst), INTERP_ADDRESS(in->a), in); break;
	case IR_ostore: store_operand(INTERP_ADDRESS(in->a), INTERP_REG(in->b), in); break;
	case IR_tdot_i8:
	case IR_tdot_f16:
	case IR_tdot_bf16:
		dot_tile(INTERP_REG(in->dst), INTERP_REG(in->a), INTERP_REG(in->b), INTERP_REG(in->c), in->row);
		break;
	case IR_idots: dot_rows(INTERP_ADDRESS(in->a), INTERP_POINTER(in->b), INTERP_POINTER(in->c), in->lanes); break;
	default: assert(false && "a row of ops.def");
	}
}
