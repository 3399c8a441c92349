/* sim/exec_atomic.c - what an atomic makes of the old value. Pure. */
#include "sim/lanes.h"
#include "sim/wave.h"

static uint64_t atomic32(const struct sim_inst *in, uint32_t old, uint32_t data)
{
	switch (in->id) {
	case OP_M_atomic_swap_b32:
	case OP_M_ds_storexchg_rtn_b32: return data;
	case OP_M_atomic_add_u32:
	case OP_M_ds_add_u32:
	case OP_M_ds_add_rtn_u32: return old + data;
	case OP_M_atomic_sub_u32:
	case OP_M_ds_sub_u32:
	case OP_M_ds_sub_rtn_u32: return old - data;
	case OP_M_atomic_min_i32:
	case OP_M_ds_min_i32:
	case OP_M_ds_min_rtn_i32: return (uint32_t)imin((int32_t)old, (int32_t)data);
	case OP_M_atomic_max_i32:
	case OP_M_ds_max_i32:
	case OP_M_ds_max_rtn_i32: return (uint32_t)imax((int32_t)old, (int32_t)data);
	case OP_M_atomic_min_u32:
	case OP_M_ds_min_u32:
	case OP_M_ds_min_rtn_u32: return umin(old, data);
	case OP_M_atomic_max_u32:
	case OP_M_ds_max_u32:
	case OP_M_ds_max_rtn_u32: return umax(old, data);
	case OP_M_atomic_and_b32:
	case OP_M_ds_and_b32:
	case OP_M_ds_and_rtn_b32: return old & data;
	case OP_M_atomic_or_b32:
	case OP_M_ds_or_b32:
	case OP_M_ds_or_rtn_b32: return old | data;
	case OP_M_atomic_xor_b32:
	case OP_M_ds_xor_b32:
	case OP_M_ds_xor_rtn_b32: return old ^ data;
	case OP_M_atomic_inc_u32:
	case OP_M_ds_inc_u32:
	case OP_M_ds_inc_rtn_u32: return old >= data ? 0 : old + 1;
	case OP_M_atomic_dec_u32:
	case OP_M_ds_dec_u32:
	case OP_M_ds_dec_rtn_u32: return old == 0 || old > data ? data : old - 1;
	case OP_M_atomic_min_num_f32:
	case OP_M_ds_min_num_f32:
	case OP_M_ds_min_num_rtn_f32: return f_bits(min_num(bits_f(old), bits_f(data)));
	case OP_M_atomic_max_num_f32:
	case OP_M_ds_max_num_f32:
	case OP_M_ds_max_num_rtn_f32: return f_bits(max_num(bits_f(old), bits_f(data)));
	default: return f_bits(bits_f(old) + bits_f(data)); /* the add_f32 */
	}
}

static uint64_t atomic64(const struct sim_inst *in, uint64_t old, uint64_t data)
{
	switch (in->id) {
	case OP_M_atomic_swap_b64: return data;
	case OP_M_atomic_sub_u64: return old - data;
	case OP_M_atomic_min_i64: return (int64_t)old < (int64_t)data ? old : data;
	case OP_M_atomic_max_i64: return (int64_t)old > (int64_t)data ? old : data;
	case OP_M_atomic_min_u64: return old < data ? old : data;
	case OP_M_atomic_max_u64: return old > data ? old : data;
	case OP_M_atomic_and_b64: return old & data;
	case OP_M_atomic_or_b64: return old | data;
	case OP_M_atomic_xor_b64: return old ^ data;
	case OP_M_atomic_inc_u64: return old >= data ? 0 : old + 1;
	case OP_M_atomic_dec_u64: return old == 0 || old > data ? data : old - 1;
	default: return old + data; /* the add_u64 */
	}
}

/* data: the new value of a compare-and-swap; compare: what the old one must equal. */
uint64_t sim_atomic(const struct sim_inst *in, uint64_t old, uint64_t data, uint64_t compare, bool *write)
{
	switch (in->id) {
	case OP_M_atomic_cmpswap_b32:
	case OP_M_atomic_cmpswap_b64:
	case OP_M_ds_cmpstore_b32:
	case OP_M_ds_cmpstore_rtn_b32: *write = old == compare; return data;
	}
	return in->op->size == 8 ? atomic64(in, old, data) : atomic32(in, (uint32_t)old, (uint32_t)data);
}
