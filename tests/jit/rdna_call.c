/* tests/jit/rdna_call.c - see rdna_call.h. */
#include "tests/jit/rdna_call.h"

#include <stdlib.h>
#include <string.h>


const char *const rdna_call_targets[RDNA_GEN_COUNT] = { "gfx1030", "gfx1100", "gfx1151", "gfx1201" };

enum { FUNCTION = 4, LOADED = 16, WAVE = 22 };
struct arguments {
	uint64_t arg;
	int64_t begin, end;
};

static void load(struct rdna *r, unsigned d, int32_t offset)
{
	rdna_put(r, &(struct rdna_ins){
			    .op = RDNA_S_LOAD_B64, .d = { rdna_sn(d, 2) }, .s = { rdna_sn(0, 2) }, .offset = offset });
}

/* As bad as it may get on gfx12: vector instructions have read every scalar register that they may read. */
static void read_all(struct rdna *r)
{
	for (unsigned k = RDNA_ABI_FREE_SGPR; k <= RDNA_VCC_LO; k += 2)
		rdna_put1(r, RDNA_S_MOV_B32, rdna_s(k), rdna_imm(0));
	for (unsigned k = RDNA_ABI_WAVE; k < RDNA_ABI_RETURN + 2; k++)
		rdna_put1(r, RDNA_S_MOV_B32, rdna_s(k), rdna_imm(0));
	for (unsigned k = RDNA_ABI_WAVE; k <= RDNA_VCC_LO; k += k < RDNA_ABI_FREE_SGPR ? 1 : 2)
		if (k < RDNA_ABI_APART || k == RDNA_VCC_LO)
			rdna_put1(r, RDNA_V_MOV_B32, rdna_v(1), rdna_s(k));
	rdna_put_imm(r, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
}

/* Work-item ids of the first dimension lie in the low bits of v0 everywhere. */
static void caller(struct rdna *r, unsigned vgprs)
{
	int here = rdna_label(r), function = rdna_label(r);
	if (r->gen == RDNA_GFX12)
		read_all(r);
	rdna_put1(r, RDNA_V_READFIRSTLANE_B32, rdna_s(WAVE), rdna_v(0));
	load(r, LOADED, 0);
	load(r, LOADED + 2, 8);
	load(r, LOADED + 4, 16);
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_KMCNT, 0);
	else
		rdna_put_imm(r, RDNA_S_WAITCNT, rdna_waitcnt(r->gen, -1, -1, 0));
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_GETPC_B64, .d = { rdna_sn(FUNCTION, 2) } });
	rdna_bind(r, here);
	rdna_put2(r, RDNA_S_ADD_CO_U32, rdna_s(FUNCTION), rdna_s(FUNCTION), rdna_distance(function, here));
	rdna_put2(r, RDNA_S_ADD_CO_CI_U32, rdna_s(FUNCTION + 1), rdna_s(FUNCTION + 1), rdna_imm(0));
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
	rdna_put2(r, RDNA_S_BFE_U32, rdna_s(RDNA_ABI_WAVE), rdna_s(WAVE), rdna_imm(5 | 5 << 16));
	for (unsigned k = 0; k < 6; k += 2)
		rdna_put1(r, RDNA_S_MOV_B64, rdna_sn(RDNA_ABI_ARG + k, 2), rdna_sn(LOADED + k, 2));
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
	rdna_put1(r, RDNA_S_SWAPPC_B64, rdna_sn(RDNA_ABI_RETURN, 2), rdna_sn(FUNCTION, 2));
	for (unsigned k = 0; k < vgprs; k++) /* no load is under way */
		rdna_put1(r, RDNA_V_MOV_B32, rdna_v(k), rdna_imm(0));
	for (unsigned k = RDNA_ABI_FREE_SGPR; k < RDNA_ABI_SGPRS; k++)
		rdna_put1(r, RDNA_S_MOV_B32, rdna_s(k), rdna_imm(0));
	rdna_put0(r, RDNA_S_ENDPGM);
	rdna_align(r, 64);
	rdna_bind(r, function);
}

bool rdna_call_object(const struct rdna_call *c, struct amdgpu_object *out, struct error *err)
{
	struct rdna r;
	rdna_init(&r, c->gen);
	caller(&r, c->object->vector_regs);
	rdna_bytes(&r, c->object->code, c->object->code_bytes);
	bool ok = rdna_finish(&r) || error_set(err, ERROR_ARGUMENT, "the caller cannot be encoded: %s", r.error);
	const struct amdgpu_arg args[] = { { "arg", 0, 8, AMDGPU_ARG_VALUE },
		                           { "begin", 8, 8, AMDGPU_ARG_VALUE },
		                           { "end", 16, 8, AMDGPU_ARG_VALUE } };
	unsigned waves = c->waves ? c->waves : 1;
	const struct amdgpu_kernel k = {
		.name = "call",
		.code = r.code,
		.code_size = r.size,
		.vgprs = c->object->vector_regs > 2 ? c->object->vector_regs : 2,
		.sgprs = 106,
		.lds_bytes = ((c->object->shared_bytes + 63) & ~63u) + waves * c->object->frame_bytes,
		.kernarg_bytes = sizeof(struct arguments),
		.args = args,
		.n_args = 3,
		.workgroup = { (uint16_t)(32 * waves), 1, 1 },
		.workitem_ids = 1,
		.float_mode = AMDGPU_FLOAT_KEEP_DENORMALS,
	};
	ok = ok && amdgpu_object_make(out, rdna_call_targets[c->gen], &k, 1, err);
	rdna_free(&r);
	return ok;
}

static bool map_all(struct sim_device *dev, const struct rdna_call *c, struct error *err)
{
	bool ok = !c->n_args || sim_map(dev, (void *)(uintptr_t)c->arg, c->n_args * 8, "arguments", false, err);
	for (unsigned k = 0; k < 4; k++)
		if (ok && c->memory[k].base)
			ok = sim_map(dev, c->memory[k].base, c->memory[k].size, "memory", c->memory[k].writable, err);
	return ok;
}

bool rdna_call(const struct rdna_call *c, const struct sim_options *o, struct error *err)
{
	struct amdgpu_object bytes = { 0 };
	struct sim_object *object = NULL;
	const struct arguments args = { (uint64_t)(uintptr_t)c->arg, c->begin, c->end };
	const uint32_t groups[3] = { 1, 1, 1 }, size[3] = { 32 * (c->waves ? c->waves : 1), 1, 1 };
	struct sim_device *dev = sim_open(rdna_call_targets[c->gen], err);
	bool ok = dev && rdna_call_object(c, &bytes, err) && map_all(dev, c, err);
	if (ok)
		object = sim_load(dev, bytes.bytes, bytes.size, err);
	ok = object && sim_dispatch(dev, sim_find(object, "call"), &args, sizeof args, groups, size, o, err);
	sim_unload(object);
	sim_close(dev);
	amdgpu_object_free(&bytes);
	return ok;
}
