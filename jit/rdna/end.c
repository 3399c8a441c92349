/* jit/rdna/end.c - see end.h. */
#include "jit/rdna/end.h"

#include "encoders/amdgpu_object.h"
#include "encoders/rdna.h"

enum { LANES = 32, VGPRS = 8, SGPRS = 16 };

bool rdna_end_make(uint8_t **bytes, size_t *size, const char *target, struct error *err)
{
	struct amdgpu_kernel k = {
		.name = RDNA_END_KERNEL,
		.vgprs = VGPRS,
		.sgprs = SGPRS,
		.workgroup = { LANES, 1, 1 },
		.workgroup_id = { true },
		.workitem_ids = 1,
		.float_mode = AMDGPU_FLOAT_KEEP_DENORMALS,
		.ieee = true,
		.dx10_clamp = true,
		.forward_progress = true
	};
	struct amdgpu_object made = { 0 };
	struct rdna r;

	rdna_init(&r, rdna_gen_of(target));
	rdna_put0(&r, RDNA_S_ENDPGM);
	bool ok = rdna_finish(&r) || error_set(err, ERROR_MEMORY, "a program that ends cannot be written: %s", r.error);
	k.code = r.code;
	k.code_size = r.size;
	ok = ok && amdgpu_object_make(&made, target, &k, 1, err);
	rdna_free(&r);
	*bytes = made.bytes;
	*size = made.size;
	return ok;
}
