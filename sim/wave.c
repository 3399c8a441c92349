/* sim/wave.c - one wave, instruction after instruction.
 *
 * Owns: the run loop, decoding on first arrival, and the checks that every instruction passes: registers that exist,
 * were written and have no load outstanding. Knows no instruction by name.
 */
#include <string.h>

#include "sim/wave.h"

static bool decode_here(struct sim_run *r, struct sim_inst *in)
{
	uint32_t at = (uint32_t)(in - r->code);
	struct sim_object *o = r->object;
	struct sim_inst *half = &o->halves[at];
	in->index = at;
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
	if (reg >= REG_VGPR)
		sim_trap(w, "it touches v%u while a load into it is outstanding", reg - REG_VGPR);
	else
		sim_trap(w, "it touches s%u while a load into it is outstanding", reg);
	return false;
}

static bool undefined(struct sim_wave *w, unsigned reg, uint32_t lanes)
{
	if (reg >= REG_VGPR)
		sim_trap(w, "it reads v%u, which nothing wrote in lanes 0x%08x", reg - REG_VGPR, lanes);
	else if (reg == REG_SCC)
		sim_trap(w, "it reads SCC, which nothing wrote");
	else
		sim_trap(w, "it reads s%u, which nothing wrote", reg);
	return false;
}

/* Loads of one kind return in order, so a load may overwrite the target of an earlier one of its kind. */
static bool may_overwrite(const struct sim_wave *w, const struct sim_inst *in)
{
	unsigned others = w->q[COUNT_SMEM].n;
	if (in->class == SIM_CLASS_LOAD)
		return others + w->q[COUNT_LDS].n == 0;
	if (in->class == SIM_CLASS_LDS)
		return others + w->q[COUNT_LOAD].n == 0;
	return false;
}

/* No register that the instruction names may have a load outstanding, but for what may_overwrite() allows. */
static bool check_pending(struct sim_wave *w, const struct sim_inst *in)
{
	for (unsigned i = 0; i < in->n_use; i++)
		for (unsigned k = 0; k < in->use[i].n; k++)
			if (w->pend[in->use[i].reg + k])
				return pending(w, in->use[i].reg + k);
	for (unsigned i = 0; i < in->n_def; i++)
		for (unsigned k = 0; k < in->def[i].n; k++)
			if (w->pend[in->def[i].reg + k] && !may_overwrite(w, in))
				return pending(w, in->def[i].reg + k);
	return true;
}

static bool find_undefined(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t exec = w->s[REG_EXEC];
	for (unsigned i = 0; i < in->n_vuse; i++)
		if (exec & ~w->vdef[in->vuse[i]])
			return undefined(w, REG_VGPR + in->vuse[i], exec & ~w->vdef[in->vuse[i]]);
	for (unsigned i = 0; i < in->n_suse; i++)
		if (!w->sdef[in->suse[i]])
			return undefined(w, in->suse[i], 0);
	return true;
}

static inline bool check_undefined(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t missing = 0, exec = w->s[REG_EXEC], bad = 0;
	for (unsigned i = 0; i < in->n_vuse; i++)
		missing |= ~w->vdef[in->vuse[i]];
	for (unsigned i = 0; i < in->n_suse; i++)
		bad |= !w->sdef[in->suse[i]];
	return !((missing & exec) | bad) || find_undefined(w, in);
}

static inline void mark_defined(struct sim_wave *w, const struct sim_inst *in)
{
	uint32_t exec = in->id == OP_X_writelane_b32 ? 0 : w->s[REG_EXEC];
	for (unsigned i = 0; i < in->n_def; i++) {
		const struct sim_use *d = &in->def[i];
		if (d->reg >= REG_VGPR)
			for (unsigned k = 0; k < d->n; k++)
				w->vdef[d->reg - REG_VGPR + k] |= exec;
		else
			for (unsigned k = 0; k < d->n; k++)
				w->sdef[d->reg + k] = 1;
	}
}

static bool too_high(struct sim_wave *w, const struct sim_inst *in)
{
	bool touches = false;
	for (unsigned i = 0; i < in->n_use; i++)
		touches |= in->use[i].reg >= REG_VGPR;
	for (unsigned i = 0; i < in->n_def; i++)
		touches |= in->def[i].reg >= REG_VGPR;
	if (touches)
		sim_trap(w, "it touches v%u of a wave that has %u vector registers", in->vmax, w->n_vgprs);
	return touches;
}

static inline bool prepare(struct sim_wave *w, struct sim_inst *in)
{
	struct sim_run *r = w->run;
	if (!in->fn)
		decode_here(r, in);
	r->now = in;
	if (in->vmax >= w->n_vgprs && too_high(w, in))
		return false;
	if (w->n_pending && (!check_pending(w, in) || (in->other && !check_pending(w, in->other))))
		return false;
	if (!r->opt.allow_undefined && !check_undefined(w, in))
		return false;
	mark_defined(w, in);
	if (in->other)
		mark_defined(w, in->other);
	if ((in->hazard | w->hz.active) && !r->opt.allow_hazards)
		sim_hazards(w, in);
	return !r->trapped;
}

void sim_run_wave(struct sim_wave *w, unsigned budget)
{
	struct sim_run *r = w->run;
	bool random = r->opt.memory == SIM_MEMORY_RANDOM;
	w->stop = false;
	for (; budget && !w->stop; budget--) {
		if (w->pc >= r->n_code) {
			sim_trap(w, "it ran past the end of the code");
			return;
		}
		struct sim_inst *in = &r->code[w->pc];
		if (!prepare(w, in))
			return;
		w->pc += in->words;
		r->steps++;
		r->c.by_class[in->class]++;
		w->vector_seq += in->class >= SIM_CLASS_VALU && in->class <= SIM_CLASS_VOPD;
		in->fn(w, in);
		if (random && w->n_pending && !r->trapped)
			sim_retire_random(w);
	}
}
