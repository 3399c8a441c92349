/* sim/exec_flow.c - program flow: branches, waits, barriers, the MODE register, messages.
 *
 * Owns: the counter fields of every generation's wait instructions. When accesses complete is decided by memory.c.
 */
#include "sim/wave.h"

void exec_endpgm(struct sim_wave *w, const struct sim_inst *in) { sim_wave_end(w); }

static void jump(struct sim_wave *w, const struct sim_inst *in)
{
	w->pc = (uint32_t)((int64_t)in->index + 1 + (int16_t)in->imm);
}

void exec_branch(struct sim_wave *w, const struct sim_inst *in) { jump(w, in); }

void exec_cbranch(struct sim_wave *w, const struct sim_inst *in)
{
	bool take = false;
	switch (in->id) {
	case OP_X_cbranch_scc0: take = !w->s[REG_SCC]; break;
	case OP_X_cbranch_scc1: take = w->s[REG_SCC]; break;
	case OP_X_cbranch_vccz: take = w->s[REG_VCC] == 0; break;
	case OP_X_cbranch_vccnz: take = w->s[REG_VCC] != 0; break;
	case OP_X_cbranch_execz: take = w->s[REG_EXEC] == 0; break;
	case OP_X_cbranch_execnz: take = w->s[REG_EXEC] != 0; break;
	}
	if (take)
		jump(w, in);
}

static uint64_t address_of(struct sim_wave *w, uint32_t index) { return (uint64_t)(uintptr_t)(w->run->words + index); }

static void go_to(struct sim_wave *w, uint64_t address)
{
	uint64_t base = address_of(w, 0);
	if (address < base || address - base >= (uint64_t)w->run->n_code * 4 || (address & 3)) {
		sim_trap(w, "it jumps to 0x%llx, outside the code object", (unsigned long long)address);
		return;
	}
	w->pc = (uint32_t)((address - base) / 4);
}

void exec_getpc(struct sim_wave *w, const struct sim_inst *in)
{
	uint64_t a = address_of(w, in->index + 1);
	sim_set_sgpr(w, in->dst, (uint32_t)a);
	sim_set_sgpr(w, in->dst + 1u, (uint32_t)(a >> 32));
}
void exec_setpc(struct sim_wave *w, const struct sim_inst *in) { go_to(w, sim_scalar64(w, &in->src[0])); }
void exec_swappc(struct sim_wave *w, const struct sim_inst *in)
{
	uint64_t to = sim_scalar64(w, &in->src[0]);
	exec_getpc(w, in);
	go_to(w, to);
}

/* Nothing to be seen of it, but where it reaches: the code, and the 4 KiB that a device keeps behind it. */
void exec_prefetch_inst(struct sim_wave *w, const struct sim_inst *in)
{
	uint64_t at = sim_scalar64(w, &in->src[0]) + (uint64_t)(int64_t)in->imm + sim_scalar(w, &in->src[1]),
		 base = address_of(w, 0), size = (uint64_t)w->run->n_code * 4;
	if (at < base || at - base >= size || at - base + in->dst * 128u > size + 4096)
		sim_trap(w, "it prefetches %u lines of instructions at 0x%llx, outside the code object", in->dst,
		         (unsigned long long)at);
}

/* --- waits */

void exec_waitcnt(struct sim_wave *w, const struct sim_inst *in)
{
	unsigned v = (unsigned)in->imm, vm, lgkm;
	if (w->run->dev->gen == 0) {
		vm = (v & 15) | (v >> 14 & 3) << 4;
		lgkm = v >> 8 & 63;
	} else {
		vm = v >> 10 & 63;
		lgkm = v >> 4 & 63;
	}
	if (!w->n_pending) {
		w->run->c.waits_empty++;
		return;
	}
	if (vm < 63)
		sim_wait(w, COUNT_LOAD, vm);
	if (lgkm < 63)
		sim_wait_lgkm(w, lgkm);
}
void exec_wait_vscnt(struct sim_wave *w, const struct sim_inst *in)
{
	sim_wait(w, COUNT_STORE, (unsigned)in->imm & 63);
}
void exec_wait_vmcnt(struct sim_wave *w, const struct sim_inst *in) { sim_wait(w, COUNT_LOAD, (unsigned)in->imm & 63); }
void exec_wait_lgkmcnt(struct sim_wave *w, const struct sim_inst *in) { sim_wait_lgkm(w, (unsigned)in->imm & 63); }

void exec_wait12(struct sim_wave *w, const struct sim_inst *in)
{
	unsigned v = (unsigned)in->imm & 63, hi = (unsigned)in->imm >> 8 & 63;
	switch (in->id) {
	case OP_X_wait_loadcnt: sim_wait(w, COUNT_LOAD, v); break;
	case OP_X_wait_storecnt: sim_wait(w, COUNT_STORE, v); break;
	case OP_X_wait_dscnt: sim_wait(w, COUNT_LDS, v); break;
	case OP_X_wait_kmcnt: sim_wait(w, COUNT_SMEM, v); break;
	case OP_X_wait_loadcnt_dscnt:
		sim_wait(w, COUNT_LOAD, hi);
		sim_wait(w, COUNT_LDS, v);
		break;
	case OP_X_wait_storecnt_dscnt:
		sim_wait(w, COUNT_STORE, hi);
		sim_wait(w, COUNT_LDS, v);
		break;
	}
}

void exec_wait_idle(struct sim_wave *w, const struct sim_inst *in)
{
	for (unsigned k = 0; k < COUNT_KINDS; k++)
		sim_wait(w, k, 0);
}

/* --- barriers */

void exec_barrier(struct sim_wave *w, const struct sim_inst *in)
{
	sim_barrier_signal(w);
	if (!w->run->trapped)
		sim_barrier_wait(w);
}

void exec_barrier_signal(struct sim_wave *w, const struct sim_inst *in)
{
	int32_t id = (int32_t)sim_scalar(w, &in->src[0]);
	if (id != -1) {
		sim_trap(w, "it signals barrier %d, and only the workgroup's (-1) is modelled", id);
		return;
	}
	if (in->id == OP_X_barrier_signal_isfirst) {
		w->s[REG_SCC] = w->group->n_barrier == 0;
		w->sdef[REG_SCC] = 1;
	}
	sim_barrier_signal(w);
}

void exec_barrier_wait(struct sim_wave *w, const struct sim_inst *in)
{
	if ((int16_t)in->imm != -1) {
		sim_trap(w, "it waits for barrier %d, and only the workgroup's (-1) is modelled", (int16_t)in->imm);
		return;
	}
	sim_barrier_wait(w);
}

/* --- mode and messages */

void exec_round_mode(struct sim_wave *w, const struct sim_inst *in)
{
	w->mode = (w->mode & ~15u) | ((unsigned)in->imm & 15);
	sim_mode_changed(w);
}
void exec_denorm_mode(struct sim_wave *w, const struct sim_inst *in)
{
	w->mode = (w->mode & ~0xf0u) | ((unsigned)in->imm & 15) << 4;
	sim_mode_changed(w);
}

enum { HWREG_MODE = 1, HWREG_CYCLES = 29 };

void exec_getreg(struct sim_wave *w, const struct sim_inst *in)
{
	unsigned id = in->imm & 63, off = in->imm >> 6 & 31, n = (in->imm >> 11 & 31) + 1;
	uint32_t v;
	if (id == HWREG_MODE)
		v = w->mode;
	else if (id == HWREG_CYCLES)
		v = (uint32_t)w->run->steps & 0xfffff;
	else {
		sim_trap(w, "it reads hardware register %u, which is not modelled", id);
		return;
	}
	sim_set_sgpr(w, in->dst, v >> off & (0xffffffffu >> (32 - n)));
}

static void set_hwreg(struct sim_wave *w, const struct sim_inst *in, uint32_t v)
{
	unsigned id = in->imm & 63, off = in->imm >> 6 & 31, n = (in->imm >> 11 & 31) + 1;
	uint32_t mask = (0xffffffffu >> (32 - n)) << off;
	if (id != HWREG_MODE) {
		sim_trap(w, "it writes hardware register %u, which is not modelled", id);
		return;
	}
	w->mode = (w->mode & ~mask) | (v << off & mask);
	sim_mode_changed(w);
}
void exec_setreg(struct sim_wave *w, const struct sim_inst *in) { set_hwreg(w, in, sim_scalar(w, &in->src[0])); }
void exec_setreg_imm(struct sim_wave *w, const struct sim_inst *in) { set_hwreg(w, in, in->src[0].lo); }

void exec_sleep(struct sim_wave *w, const struct sim_inst *in) { w->stop = true; }

/* MSG_DEALLOC_VGPRS (3): no vector register may be touched afterwards. gfx11 wants s_nop just before. */
void exec_sendmsg(struct sim_wave *w, const struct sim_inst *in)
{
	if ((in->imm & 0xff) != 3 || w->run->dev->gen == 0) {
		sim_trap(w, "it sends message %d, which is not modelled", in->imm & 0xff);
		return;
	}
	bool padded = in->index && w->run->words[in->index - 1] >> 16 == 0xbf80;
	if (w->run->dev->gen == 1 && !padded && !w->run->opt.allow_hazards) {
		sim_trap(w, "it gives back the vector registers without s_nop before it");
		return;
	}
	if (w->scratch_stride) {
		sim_trap(w, "it gives back the vector registers of a kernel with scratch");
		return;
	}
	if (w->q[COUNT_LOAD].n) {
		sim_trap(w, "it gives back the vector registers while loads into them are outstanding");
		return;
	}
	sim_retire_all(w);
	w->n_vgprs = 0;
}

void exec_s_trap(struct sim_wave *w, const struct sim_inst *in)
{
	sim_trap(w, "the program trapped itself with s_trap %d", in->imm);
}
void exec_code_end(struct sim_wave *w, const struct sim_inst *in) { sim_trap(w, "it ran past the end of the kernel"); }
void exec_unmodelled(struct sim_wave *w, const struct sim_inst *in) { sim_trap(w, "%s is not modelled", in->op->name); }
