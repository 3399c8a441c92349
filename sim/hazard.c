/* sim/hazard.c - padding that the hardware needs and does not insert itself.
 *
 * Owns: the rules, each with its generations:
 *   gfx11, gfx12   v_cmpx, then v_permlane*16 with no vector instruction but v_nop between
 *   gfx1100..1103  a transcendental result read within 5 vector or 1 transcendental instructions, unless memory or
 *                  s_waitcnt_depctr va_vdst(0) came between
 *   gfx11, gfx12   a matrix product whose A or B overlaps the D of the one just before it
 *   gfx12          an SGPR read by vector instructions, later written, then read without s_wait_alu, unless a scalar
 *                  or vector memory instruction came between
 *   gfx10          s_denorm_mode within 3 wait states of a float atomic
 *   all            s_clause followed by an instruction of another kind
 */
#include <string.h>

#include "sim/wave.h"

static bool overlap(unsigned a, unsigned n, unsigned b, unsigned m) { return a < b + m && b < a + n; }

static bool is_vector(const struct sim_inst *in)
{
	return in->class == SIM_CLASS_VALU || in->class == SIM_CLASS_TRANS || in->class == SIM_CLASS_DOT ||
	       in->class == SIM_CLASS_WMMA || in->class == SIM_CLASS_VOPD;
}
static bool is_memory(const struct sim_inst *in)
{
	return in->class == SIM_CLASS_LDS || in->class == SIM_CLASS_LOAD || in->class == SIM_CLASS_STORE ||
	       in->class == SIM_CLASS_ATOMIC;
}

static bool reaches_memory(const struct sim_inst *in)
{
	return in->class == SIM_CLASS_SMEM || (is_memory(in) && in->class != SIM_CLASS_LDS);
}

static bool reads(const struct sim_inst *in, unsigned reg, unsigned n)
{
	for (unsigned h = 0; in && h < 2; h++, in = in->other)
		for (unsigned i = 0; i < in->n_use; i++)
			if (overlap(in->use[i].reg, in->use[i].n, reg, n))
				return true;
	return false;
}

static void check_trans(struct sim_wave *w, const struct sim_inst *in)
{
	struct sim_hazard *z = &w->hz;
	bool expired = is_memory(in) || (in->id == OP_X_wait_alu && !(in->imm >> 12 & 15));
	for (unsigned i = 0; i < 2; i++) {
		if (!z->trans[i].live)
			continue;
		if (expired || z->valu - z->trans[i].valu > 5 || z->n_trans - z->trans[i].trans > 1) {
			z->trans[i].live = false;
			continue;
		}
		if (is_vector(in) && reads(in, z->trans[i].reg, z->trans[i].n))
			sim_trap(w,
			         "it reads v%u, the result of a transcendental %llu vector instructions ago, without "
			         "s_waitcnt_depctr va_vdst(0)",
			         z->trans[i].reg - REG_VGPR, (unsigned long long)(z->valu - z->trans[i].valu));
	}
	z->active |= z->trans[0].live || z->trans[1].live;
	if (is_vector(in))
		z->valu++;
	if (in->class != SIM_CLASS_TRANS)
		return;
	unsigned slot = ++z->n_trans & 1;
	z->trans[slot].reg = in->dst;
	z->trans[slot].n = in->def[0].n;
	z->trans[slot].valu = z->valu;
	z->trans[slot].trans = z->n_trans;
	z->trans[slot].live = z->active = true;
}

static void check_matrix(struct sim_wave *w, const struct sim_inst *in)
{
	struct sim_hazard *z = &w->hz;
	if (in->class == SIM_CLASS_WMMA) {
		for (unsigned k = 0; k < 2; k++)
			if (z->wmma_n && overlap(in->src[k].reg, in->src[k].words, z->wmma_dst, z->wmma_n))
				sim_trap(w, "its %s overlaps the result of the matrix product before it without v_nop",
				         k ? "B" : "A");
		z->wmma_dst = in->dst;
		z->wmma_n = 8;
	} else if (is_vector(in))
		z->wmma_n = 0;
}

static void check_cmpx(struct sim_wave *w, const struct sim_inst *in)
{
	bool permlane = in->id == OP_X_permlane16_b32 || in->id == OP_X_permlanex16_b32;
	if (permlane && w->hz.cmpx)
		sim_trap(w, "it follows v_cmpx with no vector instruction between");
	if (!is_vector(in))
		return;
	if (in->op->types[0] == 'm' && in->sdst == REG_EXEC)
		w->hz.cmpx = true;
	else if (in->id != OP_X_nop)
		w->hz.cmpx = false;
}

static void sgpr_fields(struct sim_wave *w, unsigned imm)
{
	struct sim_hazard *z = &w->hz;
	bool salu = !(imm & 1), valu = !(imm >> 9 & 7), vcc = !(imm >> 1 & 1);
	for (unsigned p = 0; p < 64; p++)
		if ((z->sgpr_late[p] == 1 && salu) || (z->sgpr_late[p] == 2 && (p == REG_VCC / 2 ? vcc : valu)))
			z->sgpr_late[p] = 0;
}

/* Pairs of scalar registers that vector instructions read are held in a cache that a later write does not reach by
 * itself. Scalar reads of what vector instructions wrote, and whatever SMEM writes, are safe. */
static void check_sgprs(struct sim_wave *w, const struct sim_inst *in)
{
	struct sim_hazard *z = &w->hz;
	bool vector = is_vector(in), scalar = in->class == SIM_CLASS_SALU;
	if (reaches_memory(in)) {
		memset(z->sgpr_late, 0, sizeof z->sgpr_late);
		return;
	}
	if (in->id == OP_X_wait_alu) {
		sgpr_fields(w, (unsigned)in->imm);
		return;
	}
	if (!vector && !scalar)
		return;
	for (unsigned i = 0; i < in->n_use; i++)
		for (unsigned r = in->use[i].reg; r < in->use[i].reg + in->use[i].n && r < 124u; r++) {
			uint8_t late = z->sgpr_late[r / 2];
			if (late && (vector || (scalar && late == 1)))
				sim_trap(w,
				         "it reads s%u, whose pair %s wrote since a vector instruction read it, "
				         "without s_wait_alu",
				         r, late == 1 ? "SALU" : "VALU");
			if (vector)
				z->sgpr_read[r / 2] = 1;
		}
	for (unsigned i = 0; i < in->n_def; i++)
		for (unsigned r = in->def[i].reg; r < in->def[i].reg + in->def[i].n && r < 124u; r++)
			z->sgpr_late[r / 2] = !z->sgpr_read[r / 2] ? 0 : vector ? 2 : 1;
}

static void check_denorm(struct sim_wave *w, const struct sim_inst *in)
{
	uint8_t *left = &w->hz.float_atomic;
	if (*left && in->id == OP_X_denorm_mode)
		sim_trap(w, "it changes the denormal mode within 3 wait states of a float atomic");
	if (in->class == SIM_CLASS_ATOMIC && in->op->flags[0] == 'f') {
		*left = 3;
		return;
	}
	if (!*left)
		return;
	unsigned states = in->id == OP_X_s_nop ? ((unsigned)in->imm & 15) + 1 : 1;
	*left = (uint8_t)(*left > states ? *left - states : 0);
	if (is_vector(in) || is_memory(in) || in->class == SIM_CLASS_WAIT)
		*left = 0;
}

static void check_clause(struct sim_wave *w, const struct sim_inst *in)
{
	struct sim_hazard *z = &w->hz;
	if (in->id == OP_X_clause) {
		if (z->clause_left)
			sim_trap(w, "it opens a clause inside a clause");
		z->clause_left = (uint16_t)(((unsigned)in->imm & 63) + 1);
		z->clause_class = SIM_CLASS_COUNT;
		if (z->clause_left < 2 || (w->run->dev->gen && z->clause_left > 32))
			sim_trap(w, "its clause has %u instructions", z->clause_left);
		return;
	}
	if (!z->clause_left)
		return;
	if (z->clause_class == SIM_CLASS_COUNT)
		z->clause_class = in->class;
	if (in->class != z->clause_class)
		sim_trap(w, "a %s instruction stands in a clause of %s instructions", sim_class_names[in->class],
		         sim_class_names[z->clause_class]);
	z->clause_left--;
}

static void check_new(struct sim_wave *w, const struct sim_inst *in)
{
	const struct sim_device *dev = w->run->dev;
	check_cmpx(w, in);
	check_matrix(w, in);
	if (dev->gen == 1 && dev->sub == 0)
		check_trans(w, in);
	if (dev->gen == 2)
		check_sgprs(w, in);
}

/* Called for instructions whose hazard flag is set, and for all while a rule is armed. */
void sim_hazards(struct sim_wave *w, const struct sim_inst *in)
{
	const struct sim_device *dev = w->run->dev;
	w->hz.active = false;
	if (w->hz.clause_left || in->id == OP_X_clause)
		check_clause(w, in);
	if (dev->gen == 0)
		check_denorm(w, in);
	else
		check_new(w, in);
	w->hz.active |= w->hz.clause_left || w->hz.cmpx || w->hz.float_atomic || w->hz.wmma_n;
}
