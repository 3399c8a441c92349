/* sim/exec_special.c - vector instructions that look across lanes: readlane, permlane, swap, matrix products.
 *
 * Owns: the matrix layouts. gfx11: A and B hold, in lane l and in lane l + 16 alike, row (column) l mod 16 with k
 * ascending through the registers; D holds row 2r + l / 16, column l mod 16 in register r. gfx12: lanes 0..15 hold the
 * lower half of k and lanes 16..31 the upper; D holds row r + 8 (l / 16). Float products are summed in ascending k in
 * double and rounded once to f32: an assumption, the hardware's order is not public. Only wave32 exists.
 */
#include <string.h>

#include "sim/lanes.h"
#include "sim/wave.h"

static bool defined_lane(struct sim_wave *w, unsigned reg, unsigned lane)
{
	if (w->run->opt.allow_undefined || (w->vdef[reg - REG_VGPR] >> lane & 1))
		return true;
	sim_trap(w, "it reads lane %u of v%u, which nothing wrote", lane, reg - REG_VGPR);
	return false;
}

static uint32_t lane_value(struct sim_wave *w, const struct sim_src *s, unsigned lane)
{
	if (s->kind != SRC_VGPR)
		return sim_scalar(w, s);
	return sim_vgpr(w, s->reg)[lane];
}

void exec_readfirstlane(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t exec = w->s[REG_EXEC];
	unsigned lane = exec ? (unsigned)__builtin_ctz(exec) : 0;
	if (in->src[0].kind == SRC_VGPR && !defined_lane(w, in->src[0].reg, lane))
		return;
	sim_set_sgpr(w, in->dst, lane_value(w, &in->src[0], lane));
}

void exec_readlane(struct sim_wave *w, const struct sim_inst *in)
{
	unsigned lane = sim_scalar(w, &in->src[1]) & 31;
	if (in->src[0].kind == SRC_VGPR && !defined_lane(w, in->src[0].reg, lane))
		return;
	sim_set_sgpr(w, in->dst, lane_value(w, &in->src[0], lane));
}

void exec_writelane(struct sim_wave *w, const struct sim_inst *in)
{
	unsigned lane = sim_scalar(w, &in->src[1]) & 31;
	sim_vgpr(w, in->dst)[lane] = sim_scalar(w, &in->src[0]);
	w->vdef[in->dst - REG_VGPR] |= 1u << lane;
}

void exec_permlane16(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t exec = w->s[REG_EXEC], lo = sim_scalar(w, &in->src[1]), hi = sim_scalar(w, &in->src[2]), out[LANES],
		 mask = exec;
	const uint32_t *v = sim_vgpr(w, in->src[0].reg);
	unsigned flip = in->id == OP_X_permlanex16_b32 ? 16 : 0;
	for (unsigned l = 0; l < LANES; l++) {
		unsigned i = l & 15, from = ((l & 16) ^ flip) | ((i < 8 ? lo >> 4 * i : hi >> 4 * (i - 8)) & 15);
		out[l] = 0;
		if (!(exec >> l & 1))
			continue;
		if (!in->fetch_inactive && !(exec >> from & 1)) {
			if (!in->bound_ctrl)
				mask &= ~(1u << l);
			continue;
		}
		if (!defined_lane(w, in->src[0].reg, from))
			return;
		out[l] = v[from];
	}
	sim_write_masked(sim_vgpr(w, in->dst), out, mask);
}

/* Exchanges the halves of a wave of 64; a wave of 32 has none. */
void exec_permlane64(struct sim_wave *w, const struct sim_inst *in)
{
	sim_write_masked(sim_vgpr(w, in->dst), sim_vgpr(w, in->src[0].reg), w->s[REG_EXEC]);
}

void exec_swap(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t *x = sim_vgpr(w, in->dst), *y = sim_vgpr(w, in->src[0].reg), t[LANES], exec = w->s[REG_EXEC];
	if (exec & ~w->vdef[in->src[0].reg - REG_VGPR])
		return;
	memcpy(t, x, sizeof t);
	sim_write_masked(x, y, exec);
	sim_write_masked(y, t, exec);
}

void exec_nothing(struct sim_wave *w, const struct sim_inst *in) {}

/* Element k of the row or column that lane i of 16 holds. bits: 16, 8 or 4 each. */
static uint32_t matrix_element(struct sim_wave *w, unsigned reg, unsigned i, unsigned k, unsigned bits, bool split)
{
	unsigned half = split ? k >> 3 : 0, kk = split ? k & 7 : k, per = 32 / bits;
	uint32_t v = sim_vgpr(w, reg + kk / per)[i + 16 * half];
	return v >> (kk % per) * bits & (0xffffffffu >> (32 - bits));
}

static bool halves_agree(struct sim_wave *w, const struct sim_src *s)
{
	for (unsigned r = 0; r < s->words; r++) {
		const uint32_t *v = sim_vgpr(w, s->reg + r);
		if (memcmp(v, v + 16, 64)) {
			sim_trap(w, "lanes 16..31 of the matrix operand in v%u do not repeat lanes 0..15",
			         s->reg + r - REG_VGPR);
			return false;
		}
	}
	return true;
}

static int64_t small_int(uint32_t v, unsigned bits, bool sign)
{
	return sign && v >> (bits - 1) ? (int64_t)v - (1 << bits) : (int64_t)v;
}

/* The rows of A, or columns of B. Elements of all types are exact in double. */
static void matrix_load(struct sim_wave *w, const struct sim_inst *in, unsigned operand, double out[16][16])
{
	bool bf = in->id == OP_X_wmma_f32_16x16x16_bf16, is_float = bf || in->id == OP_X_wmma_f32_16x16x16_f16,
	     split = w->run->dev->gen == 2;
	unsigned bits = is_float ? 16 : in->id == OP_X_wmma_i32_16x16x16_iu8 ? 8 : 4;
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < 16; k++) {
			uint32_t v = matrix_element(w, in->src[operand].reg, i, k, bits, split);
			out[i][k] = bf         ? (double)bf_f(v)
			            : is_float ? (double)h_f(v)
			                       : (double)small_int(v, bits, in->par >> operand & 1);
		}
}

static uint32_t float_cell(const struct sim_inst *in, const double a[16], const double b[16], uint32_t c)
{
	double sum = bits_f(in->src[2].mods & MOD_NEG ? c ^ 0x80000000u : c);
	for (unsigned k = 0; k < 16; k++)
		sum += a[k] * b[k];
	return f_bits((float)sum);
}

static uint32_t int_cell(const struct sim_inst *in, const double a[16], const double b[16], uint32_t c)
{
	double sum = (int32_t)c; /* far below 2^53 */
	for (unsigned k = 0; k < 16; k++)
		sum += a[k] * b[k];
	return in->clamp ? (uint32_t)sat_i64((int64_t)sum) : (uint32_t)(int64_t)sum;
}

void exec_wmma(struct sim_wave *w, const struct sim_inst *in)
{
	bool split = w->run->dev->gen == 2,
	     is_float = in->id == OP_X_wmma_f32_16x16x16_f16 || in->id == OP_X_wmma_f32_16x16x16_bf16;
	double a[16][16], b[16][16];
	uint32_t d[8][LANES];
	if (w->s[REG_EXEC] != ~0u) {
		sim_trap(w, "EXEC is 0x%08x where a matrix product needs all lanes", w->s[REG_EXEC]);
		return;
	}
	if (!split && (!halves_agree(w, &in->src[0]) || !halves_agree(w, &in->src[1])))
		return;
	matrix_load(w, in, 0, a);
	matrix_load(w, in, 1, b);
	for (unsigned r = 0; r < 8; r++)
		for (unsigned l = 0; l < LANES; l++) {
			unsigned m = split ? r + 8 * (l / 16) : 2 * r + l / 16;
			uint32_t c = in->src[2].kind == SRC_VGPR ? sim_vgpr(w, in->src[2].reg + r)[l] : in->src[2].lo;
			d[r][l] = is_float ? float_cell(in, a[m], b[l & 15], c) : int_cell(in, a[m], b[l & 15], c);
		}
	for (unsigned r = 0; r < 8; r++)
		memcpy(sim_vgpr(w, in->dst + r), d[r], sizeof d[r]);
}
