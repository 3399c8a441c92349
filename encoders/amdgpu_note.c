/* encoders/amdgpu_note.c - the metadata of a code object, in MessagePack.
 *
 * Keys of a map stand in alphabetical order, as the tools write them.
 */
#include <string.h>

#include "encoders/amdgpu_parts.h"

static void pack_joined(struct buffer *b, const char *s, const char *suffix)
{
	size_t n = strlen(s) + strlen(suffix);

	if (n < 32)
		amdgpu_put_le(b, 0xa0 | n, 1);
	else if (n < 256)
		amdgpu_put_be(b, 0xd900 | n, 2);
	else
		amdgpu_put_be(b, 0xda0000 | n, 3);
	amdgpu_put(b, s, strlen(s));
	amdgpu_put(b, suffix, strlen(suffix));
}

static void pack_string(struct buffer *b, const char *s) { pack_joined(b, s, ""); }

static void pack_uint(struct buffer *b, uint64_t v)
{
	if (v < 128)
		amdgpu_put_be(b, v, 1);
	else if (v < 256)
		amdgpu_put_be(b, 0xcc00 | v, 2);
	else if (v < 65536)
		amdgpu_put_be(b, 0xcd0000 | v, 3);
	else
		amdgpu_put_be(b, (uint64_t)0xce << 32 | v, 5);
}

static void pack_array(struct buffer *b, size_t n)
{
	if (n < 16)
		amdgpu_put_be(b, 0x90 | n, 1);
	else if (n < 65536)
		amdgpu_put_be(b, 0xdc0000 | n, 3);
	else
		amdgpu_put_be(b, (uint64_t)0xdd << 32 | n, 5);
}

static void pack_map(struct buffer *b, unsigned n)
{
	if (n < 16)
		amdgpu_put_be(b, 0x80 | n, 1);
	else
		amdgpu_put_be(b, 0xde0000 | n, 3);
}

static void pack_entry(struct buffer *b, const char *key, uint64_t v)
{
	pack_string(b, key);
	pack_uint(b, v);
}

static void pack_arg(struct buffer *b, const struct amdgpu_arg *a)
{
	bool buffer = a->kind == AMDGPU_ARG_BUFFER;

	pack_map(b, 3 + (unsigned)buffer + (a->name != NULL));
	if (buffer) {
		pack_string(b, ".address_space");
		pack_string(b, "global");
	}
	if (a->name) {
		pack_string(b, ".name");
		pack_string(b, a->name);
	}
	pack_entry(b, ".offset", a->offset);
	pack_entry(b, ".size", a->size);
	pack_string(b, ".value_kind");
	pack_string(b, buffer ? "global_buffer" : "by_value");
}

static void pack_bool(struct buffer *b, const char *key, bool v)
{
	pack_string(b, key);
	amdgpu_put_le(b, v ? 0xc3 : 0xc2, 1);
}

static void pack_kernel(struct buffer *b, const struct amdgpu_kernel *k)
{
	pack_map(b, 16);
	pack_string(b, ".args");
	pack_array(b, k->n_args);
	for (uint32_t i = 0; i < k->n_args; i++)
		pack_arg(b, &k->args[i]);
	pack_entry(b, ".group_segment_fixed_size", k->lds_bytes);
	pack_entry(b, ".kernarg_segment_align", 8);
	pack_entry(b, ".kernarg_segment_size", k->kernarg_bytes);
	pack_entry(b, ".max_flat_workgroup_size", (uint64_t)k->workgroup[0] * k->workgroup[1] * k->workgroup[2]);
	pack_string(b, ".name");
	pack_string(b, k->name);
	pack_entry(b, ".private_segment_fixed_size", k->scratch_bytes);
	pack_string(b, ".reqd_workgroup_size");
	pack_array(b, 3);
	for (int i = 0; i < 3; i++)
		pack_uint(b, k->workgroup[i]);
	pack_entry(b, ".sgpr_count", k->sgprs);
	pack_entry(b, ".sgpr_spill_count", 0);
	pack_string(b, ".symbol");
	pack_joined(b, k->name, ".kd");
	pack_bool(b, ".uses_dynamic_stack", false);
	pack_entry(b, ".vgpr_count", k->vgprs);
	pack_entry(b, ".vgpr_spill_count", 0);
	pack_entry(b, ".wavefront_size", 32);
	pack_entry(b, ".workgroup_processor_mode", k->wgp_mode);
}

void amdgpu_put_note(struct buffer *b, const char *target, const struct amdgpu_kernel *k, size_t n)
{
	static const char prefix[] = "amdgcn-amd-amdhsa--";
	char name[32];
	size_t at = b->size;

	amdgpu_put_le(b, 7, 4);
	amdgpu_put_le(b, 0, 4);
	amdgpu_put_le(b, 32, 4); /* NT_AMDGPU_METADATA */
	amdgpu_put(b, "AMDGPU\0", 8);
	pack_map(b, 3);
	pack_string(b, "amdhsa.kernels");
	pack_array(b, n);
	for (size_t i = 0; i < n; i++)
		pack_kernel(b, &k[i]);
	pack_string(b, "amdhsa.target");
	memcpy(name, prefix, sizeof prefix - 1);
	memcpy(name + sizeof prefix - 1, target, strlen(target) + 1);
	pack_string(b, name);
	pack_string(b, "amdhsa.version");
	pack_array(b, 2);
	pack_uint(b, 1);
	pack_uint(b, 2);
	amdgpu_patch_le(b, at + 4, b->size - at - 20, 4);
	amdgpu_align(b, 4);
}
