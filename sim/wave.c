/* sim/wave.c - one wave, instruction after instruction.
 *
 * Owns: the run loop, decoding on first arrival, and the checks that every instruction passes: registers that exist, were written and
 * have no load outstanding. Knows no instruction by name.
 */
#include <string.h>

#include "sim/wave.h"

static bool decode_here(struct sim_run *r, struct sim_wave *w, struct sim_inst *in)
{
	uint32_t at = (uint32_t)(in - r->code);
	struct sim_object *o = (struct sim_object *)r->object;
	struct sim_inst *half = &o->halves[at];
	in->index = at;
	(void)w;
	return sim_decode(r->dev, r->words + at, r->n_code - at, in, half, NULL);
}

void sim_undecodable(struct sim_wave *w, const struct sim_inst *in)
{
	struct sim_run *r = w->run;
	struct sim_inst again = { .index = in->index }, half;
	const char *why = NULL;
	sim_decode(r->dev, r->words + in->index, r->n_code - in->index, &again, &half, &why);
	sim_trap(w, "the word cannot be decoded: %s", why ? why : "");
}

static bool pending(struct sim_wave *w, unsigned reg)
{
	if (reg >= REG_VGPR) sim_trap(w, "it touches v%u while a load into it is outstanding", reg - REG_VGPR);
	else sim_trap(w, "it touches s%u while a load into it is outstanding", reg);
	return false;
}

static bool undefined(struct sim_wave *w, unsigned reg, uint32_t lanes)
{
	if (reg >= REG_VGPR) sim_trap(w, "it reads v%u, which nothing wrote in lanes 0x%08x", reg - REG_VGPR, lanes);
	else if (reg == REG_SCC) sim_trap(w, "it reads SCC, which nothing wrote");
	else sim_trap(w, "it reads s%u, which nothing wrote", reg);
	return false;
}

/* Loads of one kind return in order, so a load may overwrite the target of an earlier one of its kind. */
static bool may_overwrite(const struct sim_wave *w, const struct sim_inst *in)
{
	unsigned others = w->q[COUNT_SMEM].n;
	if (in->class == SIM_CLASS_LOAD) return others + w->q[COUNT_LDS].n == 0;
	if (in->class == SIM_CLASS_LDS) return others + w->q[COUNT_LOAD].n == 0;
	return false;
}

static inline bool check_use(struct sim_wave *w, const struct sim_use *u, uint32_t exec, bool defined)
{
	for (unsigned k = 0; k < u->n; k++) {
		unsigned reg = u->reg + k;
		if (w->n_pending && w->pend[reg]) return pending(w, reg);
		if (!defined) continue;
		if (reg >= REG_VGPR) {
			uint32_t missing = exec & ~w->vdef[reg - REG_VGPR];
			if (missing && !u->any) return undefined(w, reg, missing);
		} else if (!w->sdef[reg]) return undefined(w, reg, 0);
	}
	return true;
}

static inline bool check_inst(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t exec = w->s[REG_EXEC];
	bool defined = !w->run->opt.allow_undefined;
	for (unsigned i = 0; i < in->n_use; i++)
		if (!check_use(w, &in->use[i], exec, defined)) return false;
	for (unsigned i = 0; i < in->n_def; i++) {
		const struct sim_use *d = &in->def[i];
		for (unsigned k = 0; k < d->n; k++) {
			unsigned reg = d->reg + k;
			if (w->n_pending && w->pend[reg] && !may_overwrite(w, in)) return pending(w, reg);
			if (reg >= REG_VGPR) w->vdef[reg - REG_VGPR] |= in->id == OP_X_writelane_b32 ? 0 : exec;
			else w->sdef[reg] = 1;
		}
	}
	return true;
}

static bool prepare(struct sim_wave *w, struct sim_inst *in)
{
	struct sim_run *r = w->run;
	if (!in->fn) decode_here(r, w, in);
	r->now = in;
	if (in->vmax >= w->n_vgprs && (in->vmax || w->n_vgprs == 0)) {
		bool touches = false;
		for (unsigned i = 0; i < in->n_use; i++) touches |= in->use[i].reg >= REG_VGPR;
		for (unsigned i = 0; i < in->n_def; i++) touches |= in->def[i].reg >= REG_VGPR;
		if (touches) {
			sim_trap(w, "it touches v%u of a wave that has %u vector registers", in->vmax, w->n_vgprs);
			return false;
		}
	}
	if (!check_inst(w, in) || (in->other && !check_inst(w, in->other))) return false;
	if (!r->opt.allow_hazards) sim_hazards(w, in);
	return !r->trapped;
}

void sim_run_wave(struct sim_wave *w, unsigned budget)
{
	struct sim_run *r = w->run;
	bool random = r->opt.memory == SIM_MEMORY_RANDOM;
	w->stop = false;
	for (; budget && !w->stop; budget--) {
		if (w->pc >= r->n_code) { sim_trap(w, "it ran past the end of the code"); return; }
		struct sim_inst *in = &r->code[w->pc];
		if (!prepare(w, in)) return;
		w->pc += in->words;
		r->steps++;
		r->c.by_class[in->class]++;
		w->vector_seq += in->class >= SIM_CLASS_VALU && in->class <= SIM_CLASS_VOPD;
		in->fn(w, in);
		if (random && w->n_pending && !r->trapped) sim_land_random(w);
	}
}
