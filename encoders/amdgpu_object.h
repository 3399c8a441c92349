/* encoders/amdgpu_object.h - kernels for AMD cards as one ELF code object (AMDHSA, code object version 5).
 *
 * Owns: the object's bytes: ELF headers, dynamic symbols, kernel descriptors, the metadata note, the padding that
 * instruction prefetch may read. Knows nothing of what the code does and never looks into it. Two equal requests give
 * equal bytes: no time, no path, no padding left to chance.
 *
 * A kernel starts with: the dispatch packet's address in two scalar registers if asked for, then the kernel arguments'
 * address in two (if there are any), then on gfx10 with scratch the flat-scratch base in two; gfx10 and gfx11 put the
 * workgroup ids asked for right behind them (amdgpu_first_free_sgpr; gfx1100 and gfx1102 leave a gap, so that ids and
 * what is before them are 16 registers); gfx12 has x in ttmp9, y in ttmp7[15:0], z in
 * ttmp7[31:16]. Work-item ids: v0..v2 on gfx10, 10 bits each in v0 from gfx11 on.
 */
#ifndef ENCODERS_AMDGPU_OBJECT_H
#define ENCODERS_AMDGPU_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum amdgpu_arg_kind { AMDGPU_ARG_VALUE, AMDGPU_ARG_BUFFER }; /* a buffer: 8 bytes, an address in global memory */

struct amdgpu_arg {
	const char *name; /* for who reads the object; may be NULL */
	uint32_t offset, size;
	enum amdgpu_arg_kind kind;
};

/* float_mode: rounding of f32 [1:0], of f16 and f64 [3:2] (0: to nearest even); denormals of f32 [5:4], of f16 and f64
 * [7:6] */
enum { AMDGPU_FLOAT_KEEP_DENORMALS = 0xf0, AMDGPU_FLOAT_FLUSH_F32 = 0xc0 };

struct amdgpu_kernel {
	const char *name;
	const void *code; /* ends in s_endpgm */
	size_t code_size;
	uint16_t vgprs; /* used: highest number + 1, at least 1 */
	uint16_t sgprs; /* used, with vcc; for who reads the object, as the hardware gives every wave all of them */
	uint32_t lds_bytes;
	uint32_t scratch_bytes; /* of one work-item */
	uint32_t kernarg_bytes;
	const struct amdgpu_arg *args;
	uint32_t n_args;
	uint16_t workgroup[3]; /* the only size it may be launched with */
	bool workgroup_id[3];  /* x, y, z wanted; ignored on gfx12, which always has them */
	uint8_t workitem_ids;  /* 1, 2 or 3: x, xy, xyz */
	bool dispatch_ptr;
	uint8_t float_mode;
	bool ieee, dx10_clamp;  /* gfx10 and gfx11: signalling NaNs quieted; clamp makes NaN 0. Ignored on gfx12 */
	bool fp16_overflow;     /* f16 results clamp to the largest finite value */
	bool wgp_mode;          /* the workgroup may spread over both compute units of a pair */
	bool forward_progress;  /* oldest wave first */
	uint8_t prefetch_lines; /* gfx11 and later: lines of 128 bytes to fetch at the start: at most 63, 3 behind the
	                           code */
};

struct amdgpu_object {
	uint8_t *bytes;
	size_t size;
};

/* Fills *out (freed with amdgpu_object_free); false and a sentence when a kernel cannot be described on that target. */
bool amdgpu_object_make(struct amdgpu_object *out, const char *target, const struct amdgpu_kernel *kernels, size_t n,
                        struct error *e);
void amdgpu_object_free(struct amdgpu_object *o);

/* The first scalar register behind the user registers that the fields above ask for: of the workgroup ids, if any. */
unsigned amdgpu_first_free_sgpr(const char *target, const struct amdgpu_kernel *k);

/* The ELF machine flags of a target ("gfx1100"), or 0 when it is not known. */
uint32_t amdgpu_elf_flags(const char *target);

enum { AMDGPU_DESCRIPTOR_SIZE = 64, AMDGPU_KERNEL_ALIGN = 256 };

#endif
