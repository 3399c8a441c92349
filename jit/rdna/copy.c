#include "jit/rdna/copy.h"

#include "encoders/amdgpu_object.h"
#include "encoders/rdna.h"

enum { TO = 4, FROM = 6, N = 8, STRIDE = 9, FIRST = 10, SGPRS = 11 }; /* behind the arguments' address */
enum { ITEM = 0, OFFSET = 1, DATA = 4, VGPRS = 8 };

static void wait_scalar(struct rdna *r)
{
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_KMCNT, 0);
	else
		rdna_put_imm(r, RDNA_S_WAITCNT, rdna_waitcnt(r->gen, -1, -1, 0));
}

static void wait_load(struct rdna *r)
{
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_LOADCNT, 0);
	else
		rdna_put_imm(r, RDNA_S_WAITCNT, rdna_waitcnt(r->gen, 0, -1, -1));
}

static void load_args(struct rdna *r, enum rdna_op op, unsigned d, unsigned n, int32_t offset)
{
	rdna_put(r, &(struct rdna_ins){ .op = op, .d = { rdna_sn(d, n) }, .s = { rdna_sn(0, 2) }, .offset = offset });
}

/* Each item takes every stride-th vector, until none is left. id: where the workgroup's number is. */
static void write_copy(struct rdna *r, struct rdna_operand id, bool vectors)
{
	int again = rdna_label(r), end = rdna_label(r);
	unsigned n = vectors ? 4 : 1;

	load_args(r, RDNA_S_LOAD_B128, TO, 4, 0);
	load_args(r, RDNA_S_LOAD_B64, N, 2, offsetof(struct rdna_copy_args, n));
	rdna_put2(r, RDNA_S_LSHL_B32, rdna_s(FIRST), id, rdna_imm(8));
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(ITEM), rdna_s(FIRST), rdna_v(ITEM));
	wait_scalar(r);
	rdna_bind(r, again);
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_V_CMPX_GT_U32, .s = { rdna_s(N), rdna_v(ITEM) } });
	rdna_put_branch(r, RDNA_S_CBRANCH_EXECZ, end);
	rdna_put2(r, RDNA_V_LSHLREV_B32, rdna_v(OFFSET), rdna_imm(vectors ? 4 : 0), rdna_v(ITEM));
	rdna_put(r, &(struct rdna_ins){ .op = vectors ? RDNA_GLOBAL_LOAD_B128 : RDNA_GLOBAL_LOAD_U8,
	                                .d = { rdna_vn(DATA, n) },
	                                .s = { rdna_v(OFFSET) },
	                                .saddr = rdna_sn(FROM, 2) });
	rdna_put2(r, RDNA_V_ADD_NC_U32, rdna_v(ITEM), rdna_s(STRIDE), rdna_v(ITEM));
	wait_load(r);
	rdna_put(r, &(struct rdna_ins){ .op = vectors ? RDNA_GLOBAL_STORE_B128 : RDNA_GLOBAL_STORE_B8,
	                                .s = { rdna_v(OFFSET), rdna_vn(DATA, n) },
	                                .saddr = rdna_sn(TO, 2) });
	rdna_put_branch(r, RDNA_S_BRANCH, again);
	rdna_bind(r, end);
	rdna_put0(r, RDNA_S_ENDPGM);
}

static struct amdgpu_kernel describe(const char *name)
{
	static const struct amdgpu_arg args[] = {
		{ "to", offsetof(struct rdna_copy_args, to), 8, AMDGPU_ARG_BUFFER },
		{ "from", offsetof(struct rdna_copy_args, from), 8, AMDGPU_ARG_BUFFER },
		{ "n", offsetof(struct rdna_copy_args, n), 4, AMDGPU_ARG_VALUE },
		{ "stride", offsetof(struct rdna_copy_args, stride), 4, AMDGPU_ARG_VALUE },
	};

	return (struct amdgpu_kernel){
		.name = name,
		.vgprs = VGPRS,
		.sgprs = SGPRS,
		.kernarg_bytes = sizeof(struct rdna_copy_args),
		.args = args,
		.n_args = sizeof args / sizeof args[0],
		.workgroup = { RDNA_COPY_ITEMS, 1, 1 },
		.workgroup_id = { true },
		.workitem_ids = 1,
		.float_mode = AMDGPU_FLOAT_KEEP_DENORMALS,
		.ieee = true,
		.dx10_clamp = true,
		.forward_progress = true
	};
}

bool rdna_copy_make(uint8_t **bytes, size_t *size, const struct target *target, struct error *err)
{
	struct amdgpu_kernel k[2] = { describe(RDNA_COPY_VECTORS), describe(RDNA_COPY_BYTES) };
	struct amdgpu_object made = { 0 };
	struct rdna r[2];
	bool ok = true;

	for (unsigned i = 0; i < 2; i++) {
		rdna_init(&r[i], rdna_gen_of(target->name));
		write_copy(&r[i],
		           r[i].gen == RDNA_GFX12 ? rdna_reg(RDNA_TTMP0 + 9, 1)
		                                  : rdna_s(amdgpu_first_free_sgpr(target->name, &k[i])),
		           i == 0);
		if (!rdna_finish(&r[i]))
			ok = error_set(err, ERROR_MEMORY, "a kernel that copies cannot be written: %s", r[i].error);
		k[i].code = r[i].code;
		k[i].code_size = r[i].size;
	}
	ok = ok && amdgpu_object_make(&made, target->name, k, 2, err);
	rdna_free(&r[0]);
	rdna_free(&r[1]);
	*bytes = made.bytes;
	*size = made.size;
	return ok;
}
