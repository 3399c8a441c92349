/* sim/exec_valu.c - vector arithmetic: operands in, a lane kernel, results out.
 *
 * Owns: operand modifiers, SDWA and DPP, the MODE register's effect on floats, output modifiers, the write under EXEC.
 * What a lane computes stands in valu.def.
 */
#include <fenv.h>
#include <string.h>

#include "sim/lanes.h"
#include "sim/wave.h"

void sim_write_masked(uint32_t *dst, const uint32_t *src, uint32_t mask)
{
	if (mask == ~0u) {
		memcpy(dst, src, LANES * 4);
		return;
	}
	for (unsigned l = 0; l < LANES; l++) {
		uint32_t m = 0u - (mask >> l & 1);
		dst[l] = (src[l] & m) | (dst[l] & ~m);
	}
}

static void splat(uint32_t *out, uint32_t v)
{
	for (unsigned l = 0; l < LANES; l++)
		out[l] = v;
}

static uint32_t modify(const struct sim_src *s, uint32_t v)
{
	uint32_t sign = s->type == 'h' || s->type == 'H' ? 0x8000u : 0x80000000u;
	if (s->type == 'X') {
		uint32_t h = s->mods & MOD_LO_HI ? v >> 16 : v & 0xffffu;
		v = f_bits(h_f(h));
		if (s->mods & MOD_ABS)
			v &= 0x7fffffffu;
		return s->mods & MOD_NEG ? v ^ 0x80000000u : v;
	}
	if (s->type == 'P' || s->type == 'Q') {
		uint32_t lo = s->mods & MOD_LO_HI ? v >> 16 : v & 0xffffu,
			 hi = s->mods & MOD_HI_HI ? v >> 16 : v & 0xffffu;
		if (s->mods & MOD_NEG)
			lo ^= 0x8000u;
		if (s->mods & MOD_NEG_HI)
			hi ^= 0x8000u;
		return lo | hi << 16;
	}
	if (s->sdwa) {
		unsigned sel = s->sdwa - 1u;
		bool sext = s->mods & MOD_SEXT;
		if (sel < 4)
			v = sext ? (uint32_t)sx8(v >> 8 * sel) : v >> 8 * sel & 0xff;
		else
			v = sext ? (uint32_t)sx16(v >> 16 * (sel - 4)) : v >> 16 * (sel - 4) & 0xffff;
	} else if (s->mods & MOD_LO_HI)
		v >>= 16;
	if (s->mods & MOD_ABS)
		v &= ~sign;
	if (s->mods & MOD_NEG)
		v ^= sign;
	return v;
}

/* The operand's words, 32 lanes each. tmp has room for two words and is used unless the register can be read in
 * place. */
const uint32_t *sim_fetch(struct sim_wave *w, const struct sim_src *s, uint32_t *tmp)
{
	const uint32_t *p = tmp;
	bool packed = s->type == 'P' || s->type == 'Q', plain = !s->mods && !s->sdwa && s->type != 'X';
	if (s->kind == SRC_NONE)
		return tmp;
	if (s->kind == SRC_VGPR) {
		p = sim_vgpr(w, s->reg);
		if (plain && !packed)
			return p;
	} else if (s->type == 'M') {
		uint32_t m = sim_scalar(w, s);
		for (unsigned l = 0; l < LANES; l++)
			tmp[l] = 0u - (m >> l & 1);
		return tmp;
	} else {
		uint64_t v = s->words == 2 ? sim_scalar64(w, s) : sim_scalar(w, s);
		splat(tmp, (uint32_t)v);
		if (s->words == 2)
			splat(tmp + LANES, (uint32_t)(v >> 32));
		if (plain && !packed)
			return tmp;
	}
	if (s->words == 2) {
		if (p != tmp)
			memcpy(tmp, p, 2 * LANES * 4);
		for (unsigned l = 0; l < LANES; l++) {
			if (s->mods & MOD_ABS)
				tmp[LANES + l] &= 0x7fffffffu;
			if (s->mods & MOD_NEG)
				tmp[LANES + l] ^= 0x80000000u;
		}
		return tmp;
	}
	for (unsigned l = 0; l < LANES; l++)
		tmp[l] = modify(s, p[l]);
	return tmp;
}

/* --- DPP */

static int dpp_lane(const struct sim_inst *in, unsigned l)
{
	unsigned c = in->dpp_select, row = l & 16, i = l & 15, n = c & 15;
	if (in->dpp == DPP_8)
		return (int)((l & 24) | (c >> 3 * (l & 7) & 7));
	if (c <= 0xff)
		return (int)((l & 28) | (c >> 2 * (l & 3) & 3));
	switch (c >> 4) {
	case 0x10: return i + n < 16 ? (int)(l + n) : -1;
	case 0x11: return i >= n ? (int)(l - n) : -1;
	case 0x12: return (int)(row | ((i - n) & 15));
	case 0x14: return (int)(c == 0x140 ? row | (15 - i) : (l & 24) | (7 - (l & 7)));
	case 0x15: return (int)(row | n);
	default: return (int)(row | (i ^ n));
	}
}

/* The first source through the permutation. Lanes that must not be written leave *mask. */
static const uint32_t *fetch_dpp(struct sim_wave *w, const struct sim_inst *in, uint32_t *tmp, uint32_t *mask)
{
	const struct sim_src *s = &in->src[0];
	const uint32_t *v = sim_vgpr(w, s->reg);
	const uint32_t def = w->vdef[s->reg - REG_VGPR], exec = w->s[REG_EXEC];
	uint32_t keep = *mask;
	for (unsigned l = 0; l < LANES; l++) {
		uint32_t bit = 1u << l;
		tmp[l] = 0;
		if (!(in->row_mask >> (l >> 4) & 1) || !(in->bank_mask >> (l >> 2 & 3) & 1)) {
			keep &= ~bit;
			continue;
		}
		int from = dpp_lane(in, l);
		bool valid = from >= 0 && (in->fetch_inactive || (exec >> from & 1));
		if (!valid) {
			if (!in->bound_ctrl)
				keep &= ~bit;
			continue;
		}
		if ((*mask & bit) && !(def >> from & 1) && !w->run->opt.allow_undefined) {
			sim_trap(w, "it reads lane %d of v%u, which nothing wrote", from, s->reg - REG_VGPR);
			return NULL;
		}
		tmp[l] = modify(s, v[from]);
	}
	*mask = keep;
	return tmp;
}

/* --- MODE */

void sim_mode_changed(struct sim_wave *w) { w->slow_float = (w->mode & 0xff) != 0xf0; }

static void flush_words(char type, uint32_t *v, uint32_t keep32, uint32_t keep16)
{
	for (unsigned l = 0; l < LANES; l++) {
		if (type == 'f' && !keep32 && !(v[l] & 0x7f800000u))
			v[l] &= 0x80000000u;
		if ((type == 'h' || type == 'e') && !keep16 && !(v[l] & 0x7c00u))
			v[l] &= 0xffff8000u;
		if (type == 'd' && !keep16 && !(v[l + LANES] & 0x7ff00000u)) {
			v[l] = 0;
			v[l + LANES] &= 0x80000000u;
		}
		if (type == 'P' && !keep16) {
			if (!(v[l] & 0x7c00u))
				v[l] &= 0xffff8000u;
			if (!(v[l] & 0x7c000000u))
				v[l] &= 0x8000ffffu;
		}
	}
}

/* The kernel under another rounding mode or with denormals flushed. */
static bool run_slow_float(struct sim_wave *w, const struct sim_inst *in, uint32_t *d, const uint32_t *src[3],
                           uint32_t tmp[3][2 * LANES])
{
	static const int rounding[4] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	char t = in->dtype;
	bool half = t == 'h' || t == 'e' || t == 'P', wide_result = t == 'd' || t == 'K';
	uint32_t in32 = w->mode >> 4 & 1, out32 = w->mode >> 5 & 1, in16 = w->mode >> 6 & 1, out16 = w->mode >> 7 & 1;
	unsigned round = half || wide_result ? w->mode >> 2 & 3 : w->mode & 3;
	if (half && round) {
		sim_trap(w, "rounding mode %u for f16 is not modelled", round);
		return false;
	}
	for (unsigned k = 0; k < 3; k++) {
		const struct sim_src *s = &in->src[k];
		if (s->kind == SRC_NONE || s->type == 'M')
			continue;
		if (src[k] != tmp[k]) {
			memcpy(tmp[k], src[k], s->words * LANES * 4u);
			src[k] = tmp[k];
		}
		flush_words(in->op->types[k + 1], tmp[k], in32, in16);
	}
	fesetround(rounding[round]);
	in->lane(d, src[0], src[1], src[2], in->par);
	fesetround(FE_TONEAREST);
	flush_words(t, d, out32, out16);
	return true;
}

/* --- results */

/* Of 53 binary digits as many as 24 are promised: the others are anything, but for what is no normal number. */
static void blur(uint32_t *low, uint32_t high, uint32_t h)
{
	const uint32_t exponent = high >> 20 & 0x7ff;

	if (exponent && exponent != 0x7ff)
		*low ^= h & 0x1fffffff;
}

static void perturb(struct sim_wave *w, const struct sim_inst *in, uint32_t *d, const uint32_t *a)
{
	for (unsigned l = 0; l < LANES; l++) {
		uint32_t h = (a[l] ^ w->run->opt.perturb * 0x9e3779b9u ^ in->id * 0x85ebca6bu) * 0xc2b2ae35u;
		int step = (int)((h >> 16) % 3u) - 1;
		uint32_t mag = in->dtype == 'f' ? d[l] & 0x7fffffffu : d[l] & 0x7fffu;
		uint32_t low = in->dtype == 'f' ? 0x00800001u : 0x0401u,
			 high = in->dtype == 'f' ? 0x7f7ffffeu : 0x7bfeu;
		if (in->dtype == 'd')
			blur(&d[l], d[LANES + l], h);
		else if (mag >= low && mag <= high)
			d[l] += (uint32_t)step;
	}
}

#ifdef __SIZEOF_FLOAT128__
typedef __float128 exact;
#else
typedef long double exact;
#endif

/* Scaled lanes round once, after the scaling. */
static uint64_t fmas_scaled_d(uint64_t a, uint64_t b, uint64_t c)
{
	exact r = (exact)bits_d(a) * bits_d(b) + bits_d(c),
	      scale = (c >> 52 & 0x7ff) > 1023 ? (exact)0x1p128 : (exact)0x1p-128;
	return d_bits((double)(r * scale));
}

static void div_fmas_scale(struct sim_wave *w, const struct sim_inst *in, uint32_t *d, const uint32_t *src[3])
{
	uint32_t vcc = w->s[REG_VCC] & w->s[REG_EXEC];
	for (unsigned l = 0; l < LANES; l++) {
		if (!(vcc >> l & 1))
			continue;
		if (in->id == OP_V_div_fmas_f32) {
			double r = fma_odd(bits_f(src[0][l]), bits_f(src[1][l]), bits_f(src[2][l]));
			d[l] = f_bits((float)ldexp(r, (src[2][l] >> 23 & 0xff) > 127 ? 64 : -64));
		} else {
			uint64_t x[3];
			for (unsigned k = 0; k < 3; k++)
				x[k] = (uint64_t)src[k][l + LANES] << 32 | src[k][l];
			uint64_t u = fmas_scaled_d(x[0], x[1], x[2]);
			d[l] = (uint32_t)u;
			d[l + LANES] = (uint32_t)(u >> 32);
		}
	}
}

static float out_f(const struct sim_inst *in, float v)
{
	static const float factor[4] = { 1, 2, 4, 0.5f };
	v *= factor[in->omod];
	return !in->clamp ? v : !(v > 0) ? 0.0f : v > 1 ? 1.0f : v;
}

static void output_modifiers(const struct sim_inst *in, uint32_t *d)
{
	for (unsigned l = 0; l < LANES; l++) {
		switch (in->dtype) {
		case 'f': d[l] = f_bits(out_f(in, bits_f(d[l]))); break;
		case 'h':
		case 'e': d[l] = f_h(out_f(in, h_f(d[l] & 0xffff))); break;
		case 'P': d[l] = pk(f_h(out_f(in, h_f(d[l] & 0xffff))), f_h(out_f(in, h_f(d[l] >> 16)))); break;
		case 'd': {
			double v = bits_d((uint64_t)d[l + LANES] << 32 | d[l]) *
			           (in->omod == 3 ? 0.5
			            : in->omod    ? 2.0 * in->omod
			                          : 1.0);
			uint64_t u = d_bits(!in->clamp ? v : !(v > 0) ? 0.0 : v > 1 ? 1.0 : v);
			d[l] = (uint32_t)u;
			d[l + LANES] = (uint32_t)(u >> 32);
			break;
		}
		}
	}
}

/* SDWA's destination field: a byte or half, the rest zero, sign or kept. */
static void write_sdwa(const struct sim_inst *in, uint32_t *dst, const uint32_t *d, uint32_t mask)
{
	unsigned sel = in->dst_sel, shift = sel < 4 ? 8 * sel : sel < 6 ? 16 * (sel - 4) : 0;
	uint32_t field = sel < 4 ? 0xffu : sel < 6 ? 0xffffu : ~0u;
	for (unsigned l = 0; l < LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		uint32_t v = (d[l] & field) << shift, rest = 0;
		if (in->dst_unused == 2)
			rest = dst[l] & ~(field << shift);
		if (in->dst_unused == 1 && (d[l] & ((field >> 1) + 1)))
			rest = ~0u << shift << 1 & ~(field << shift) & ~((1u << shift) - 1);
		dst[l] = v | rest;
	}
}

static void write_result(struct sim_wave *w, const struct sim_inst *in, const uint32_t *d, uint32_t mask)
{
	uint32_t *dst = sim_vgpr(w, in->dst);
	switch (in->dtype) {
	case 'h':
	case 'e':
	case 'w':
	case 's':
		if (in->dpp == SDWA)
			break;
		for (unsigned l = 0; l < LANES; l++) {
			if (!(mask >> l & 1))
				continue;
			dst[l] = in->dst_hi ? (dst[l] & 0xffffu) | d[l] << 16
			                    : (dst[l] & 0xffff0000u) | (d[l] & 0xffffu);
		}
		return;
	case 'd':
	case 'U':
	case 'I':
		sim_write_masked(dst, d, mask);
		sim_write_masked(dst + LANES, d + LANES, mask);
		return;
	case 'k':
		sim_set_sgpr(w, in->sdst, w->run->dev->kit->pack(d + LANES) & mask);
		sim_write_masked(dst, d, mask);
		return;
	case 'K':
		sim_set_sgpr(w, in->sdst, w->run->dev->kit->pack(d + 2 * LANES) & mask);
		sim_write_masked(dst, d, mask);
		sim_write_masked(dst + LANES, d + LANES, mask);
		return;
	}
	if (in->dpp == SDWA)
		write_sdwa(in, dst, d, mask);
	else
		sim_write_masked(dst, d, mask);
}

/* Sources, kernel and output modifiers into d. false: trapped. */
static bool compute(struct sim_wave *w, const struct sim_inst *in, uint32_t *d, uint32_t *mask)
{
	uint32_t tmp[3][2 * LANES] __attribute__((aligned(32)));
	const uint32_t *src[3];
	for (unsigned k = 0; k < 3; k++)
		src[k] = sim_fetch(w, &in->src[k], tmp[k]);
	if (in->dpp == DPP_8 || in->dpp == DPP_16) {
		src[0] = fetch_dpp(w, in, tmp[0], mask);
		if (!src[0])
			return false;
	}
	if (!w->slow_float)
		in->lane(d, src[0], src[1], src[2], in->par);
	else if (!run_slow_float(w, in, d, src, tmp))
		return false;
	if (in->class == SIM_CLASS_TRANS && w->run->opt.perturb)
		perturb(w, in, d, src[0]);
	if (in->id == OP_V_div_fmas_f32 || in->id == OP_V_div_fmas_f64)
		div_fmas_scale(w, in, d, src);
	if ((in->clamp || in->omod) && in->dtype != 'i' && in->dtype != 'u')
		output_modifiers(in, d);
	return true;
}

void exec_valu(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t d[3 * LANES] __attribute__((aligned(32)));
	uint32_t mask = w->s[REG_EXEC];
	if (compute(w, in, d, &mask))
		write_result(w, in, d, mask);
}

static inline const uint32_t *plain(struct sim_wave *w, const struct sim_src *s, uint32_t *tmp)
{
	if (s->kind == SRC_VGPR)
		return sim_vgpr(w, s->reg);
	if (s->kind == SRC_SGPR && s->type != 'M' && s->words == 1) {
		splat(tmp, w->s[s->reg]);
		return tmp;
	}
	if (s->kind == SRC_CONST && s->words == 1) {
		splat(tmp, s->lo);
		return tmp;
	}
	return s->kind == SRC_NONE ? tmp : sim_fetch(w, s, tmp);
}

void exec_valu_plain(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t d[LANES] __attribute__((aligned(32))), tmp[3][2 * LANES] __attribute__((aligned(32)));
	if (w->slow_float) {
		exec_valu(w, in);
		return;
	}
	const uint32_t *a = plain(w, &in->src[0], tmp[0]), *b = plain(w, &in->src[1], tmp[1]),
		       *c = plain(w, &in->src[2], tmp[2]);
	in->lane(d, a, b, c, in->par);
	sim_write_masked(sim_vgpr(w, in->dst), d, w->s[REG_EXEC]);
}

void exec_cmp(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t d[LANES] __attribute__((aligned(32)));
	uint32_t mask = w->s[REG_EXEC];
	if (!compute(w, in, d, &mask))
		return;
	sim_set_sgpr(w, in->sdst, w->run->dev->kit->pack(d) & mask);
}

void exec_vopd(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t x[LANES] __attribute__((aligned(32))), y[LANES] __attribute__((aligned(32)));
	uint32_t mask = w->s[REG_EXEC];
	if (!compute(w, in, x, &mask) || !compute(w, in->other, y, &mask))
		return;
	write_result(w, in, x, mask);
	write_result(w, in->other, y, mask);
}
