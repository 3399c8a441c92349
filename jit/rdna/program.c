/* jit/rdna/program.c - the driver, and functions linked behind it into one code object.
 *
 * Owns: the driver's instructions, the barrier over all workgroups, the layout of a program. Never looks into a
 * function. The rule: whatever the driver keeps over a call stands below RDNA_ABI_FREE_SGPR, where functions do not
 * write.
 *
 * gfx12 holds scalar registers that vector instructions have read in a cache that a scalar write does not reach by
 * itself. A function may have read any register from RDNA_ABI_WAVE on (and its neighbour) so: what the driver writes
 * there it settles before it reads it.
 */
#include "jit/rdna/program.h"

#include "encoders/amdgpu_object.h"
#include "encoders/rdna.h"
#include "jit/rdna/lir.h"

/* The driver's registers. Kept over calls: */
enum {
	RECORD = 0,    /* address of this command's record */
	LEFT = 2,      /* commands to come in bits 0..23, this command's flags from FLAGS_AT on */
	ARRIVED = 3,   /* what the counter shows once all are at the last barrier begun */
	SYNC = 4,      /* address of struct rdna_program_sync */
	WORKGROUP = 6, /* this workgroup's number in the low half, their count in the high one */
	/* m0: polls at a barrier; 0 once this workgroup has given up. Functions do not use it. */
	/* Free outside calls; loaded ones first. A record is struct rdna_command. */
	FUNCTION = 16,
	ARG = 18,
	BEGIN = 20,
	PER = 22,
	REST = 23,
	FLAGS = 24, /* and FIRST */
	FIRST = 25,
	TEMP = 26, /* and 27 */
	POLLS = 28,
	DRIVER_SGPRS = 29,
	DRIVER_VGPRS = 6
};
enum {
	FLAGS_AT = 24,
	LINE = 128 /* of instruction cache */,
	PREFETCH_LINES = 32,
	WORKGROUP_ITEMS = RDNA_PROGRAM_WAVES * 32
};

_Static_assert(sizeof(struct rdna_command) == 40 && offsetof(struct rdna_command, flags) == 32,
               "a record is loaded as 8 words and 2");
_Static_assert(sizeof(struct rdna_program_args) == 40 && offsetof(struct rdna_program_args, arrivals) == 32,
               "the arguments are loaded as 8 words and 1");
_Static_assert(offsetof(struct rdna_program_sync, left) == 4 && offsetof(struct rdna_program_sync, missing) == 12,
               "the counter and the word of who gave up are polled as 2 words, what it leaves stored as 2");

/* ---- instructions in threes */

static void s2(struct rdna *r, enum rdna_op op, unsigned d, struct rdna_operand a, struct rdna_operand b)
{
	rdna_put2(r, op, rdna_s(d), a, b);
}
static void compare(struct rdna *r, enum rdna_op op, struct rdna_operand a, struct rdna_operand b)
{
	rdna_put(r, &(struct rdna_ins){ .op = op, .s = { a, b } });
}
static void load(struct rdna *r, enum rdna_op op, unsigned d, unsigned n, unsigned base, int32_t offset)
{
	rdna_put(r,
	         &(struct rdna_ins){ .op = op, .d = { rdna_sn(d, n) }, .s = { rdna_sn(base, 2) }, .offset = offset });
}

/* Scalar results in registers that vector instructions may have read can be read from here on. */
static void wait_scalar_write(struct rdna *r)
{
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_ALU, RDNA_DEPCTR_SA_SDST(0));
}

static void wait_scalar(struct rdna *r)
{
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_KMCNT, 0);
	else
		rdna_put_imm(r, RDNA_S_WAITCNT, rdna_waitcnt(r->gen, -1, -1, 0));
}

static void wait_lds(struct rdna *r)
{
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_DSCNT, 0);
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

static void workgroup_barrier(struct rdna *r)
{
	if (r->gen == RDNA_GFX12) {
		rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_BARRIER_SIGNAL, .s = { rdna_imm(-1) } });
		rdna_put_imm(r, RDNA_S_BARRIER_WAIT, 0xffff);
	} else {
		rdna_put0(r, RDNA_S_BARRIER);
	}
}

/* ---- the parts of the driver */

/* What the launch's hardware is told; the rest follows from the functions. */
static const struct amdgpu_kernel driver_kernel = {
	.name = RDNA_PROGRAM_KERNEL,
	.kernarg_bytes = sizeof(struct rdna_program_args),
	.workgroup = { WORKGROUP_ITEMS, 1, 1 },
	.workgroup_id = { true },
	.workitem_ids = 1,
	.float_mode = AMDGPU_FLOAT_KEEP_DENORMALS,
	.ieee = true,
	.dx10_clamp = true,
	.forward_progress = true
};

/* The arguments into the registers that stay. */
static void start(struct rdna *r, const struct target *target, int end)
{
	const struct rdna_operand id =
		r->gen == RDNA_GFX12 ? rdna_reg(RDNA_TTMP0 + 9, 1)
				     : rdna_s(amdgpu_first_free_sgpr(target->name, &driver_kernel));

	load(r, RDNA_S_LOAD_B256, 16, 8, 0, 0); /* struct rdna_program_args in s16..s23, s24 */
	load(r, RDNA_S_LOAD_B32, 24, 1, 0, offsetof(struct rdna_program_args, arrivals));
	rdna_put1(r, RDNA_V_READFIRSTLANE_B32, rdna_s(RDNA_ABI_WAVE), rdna_v(0));
	s2(r, RDNA_S_LSHR_B32, RDNA_ABI_WAVE, rdna_s(RDNA_ABI_WAVE), rdna_imm(5));
	wait_scalar(r);
	s2(r, RDNA_S_PACK_LL_B32_B16, WORKGROUP, id, rdna_s(22));
	s2(r, RDNA_S_SUB_CO_U32, LEFT, rdna_s(19), rdna_s(18));
	compare(r, RDNA_S_CMP_LE_U32, rdna_s(19), rdna_s(18));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, end);
	rdna_put1(r, RDNA_S_MOV_B32, rdna_s(ARRIVED), rdna_s(24));
	rdna_put1(r, RDNA_S_MOV_B64, rdna_sn(SYNC, 2), rdna_sn(20, 2));
	rdna_put2(r, RDNA_S_MAX_U32, rdna_reg(RDNA_M0, 1), rdna_s(23), rdna_imm(1));
	s2(r, RDNA_S_MUL_I32, TEMP, rdna_s(18), rdna_imm(sizeof(struct rdna_command)));
	s2(r, RDNA_S_MUL_HI_U32, TEMP + 1, rdna_s(18), rdna_imm(sizeof(struct rdna_command)));
	s2(r, RDNA_S_ADD_CO_U32, RECORD, rdna_s(16), rdna_s(TEMP));
	s2(r, RDNA_S_ADD_CO_CI_U32, RECORD + 1, rdna_s(17), rdna_s(TEMP + 1));
}

static void load_record(struct rdna *r)
{
	load(r, RDNA_S_LOAD_B256, FUNCTION, 8, RECORD, 0);
	load(r, RDNA_S_LOAD_B64, FLAGS, 2, RECORD, offsetof(struct rdna_command, flags));
}

/* One command fewer to come, and this one's flags where they outlive the call. */
static void take_record(struct rdna *r)
{
	wait_scalar(r);
	s2(r, RDNA_S_LSHL_B32, TEMP, rdna_s(FLAGS), rdna_imm(FLAGS_AT));
	s2(r, RDNA_S_SUB_CO_U32, LEFT, rdna_s(LEFT), rdna_imm(1));
	wait_scalar_write(r);
	s2(r, RDNA_S_OR_B32, LEFT, rdna_s(LEFT), rdna_s(TEMP));
}

/* begin and end of this wave's share. Shares go round the workgroups first: few units find many compute units. */
static void share(struct rdna *r, int nothing)
{
	const unsigned i = TEMP, t = TEMP + 1, begin = RDNA_ABI_BEGIN, end = RDNA_ABI_END;

	s2(r, RDNA_S_LSHR_B32, t, rdna_s(WORKGROUP), rdna_imm(16));
	s2(r, RDNA_S_AND_B32, i, rdna_s(WORKGROUP), rdna_imm(0xffff));
	wait_scalar_write(r);
	s2(r, RDNA_S_SUB_CO_U32, i, rdna_s(i), rdna_s(FIRST)); /* from the workgroup that has share 0 on, round */
	wait_scalar_write(r);
	s2(r, RDNA_S_CSELECT_B32, begin, rdna_s(t), rdna_imm(0));
	wait_scalar_write(r);
	s2(r, RDNA_S_ADD_CO_U32, i, rdna_s(i), rdna_s(begin));
	wait_scalar_write(r);
	s2(r, RDNA_S_MUL_I32, t, rdna_s(t), rdna_s(RDNA_ABI_WAVE));
	compare(r, RDNA_S_BITCMP1_B32, rdna_s(FLAGS), rdna_imm(1)); /* RDNA_COMMAND_COOPERATIVE */
	wait_scalar_write(r);
	s2(r, RDNA_S_CSELECT_B32, t, rdna_imm(0), rdna_s(t));
	wait_scalar_write(r);
	s2(r, RDNA_S_ADD_CO_U32, i, rdna_s(i), rdna_s(t));
	wait_scalar_write(r);
	s2(r, RDNA_S_MUL_I32, begin, rdna_s(i), rdna_s(PER));
	s2(r, RDNA_S_MUL_HI_U32, begin + 1, rdna_s(i), rdna_s(PER));
	s2(r, RDNA_S_MIN_U32, t, rdna_s(i), rdna_s(REST));
	wait_scalar_write(r);
	s2(r, RDNA_S_ADD_CO_U32, begin, rdna_s(begin), rdna_s(t));
	wait_scalar_write(r); /* its neighbour too */
	s2(r, RDNA_S_ADD_CO_CI_U32, begin + 1, rdna_s(begin + 1), rdna_imm(0));
	wait_scalar_write(r);
	s2(r, RDNA_S_ADD_CO_U32, begin, rdna_s(begin), rdna_s(BEGIN));
	wait_scalar_write(r);
	s2(r, RDNA_S_ADD_CO_CI_U32, begin + 1, rdna_s(begin + 1), rdna_s(BEGIN + 1));
	compare(r, RDNA_S_CMP_LT_U32, rdna_s(i), rdna_s(REST));
	s2(r, RDNA_S_ADD_CO_CI_U32, t, rdna_s(PER), rdna_imm(0)); /* one more in the first of them */
	wait_scalar_write(r);
	compare(r, RDNA_S_CMP_EQ_U32, rdna_s(t), rdna_imm(0));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, nothing);
	s2(r, RDNA_S_ADD_CO_U32, end, rdna_s(begin), rdna_s(t));
	s2(r, RDNA_S_ADD_CO_CI_U32, end + 1, rdna_s(begin + 1), rdna_imm(0));
}

/* Where the function of the record begins, in RDNA_ABI_RETURN. */
static void find_function(struct rdna *r, int entry)
{
	int here = rdna_label(r);

	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_GETPC_B64, .d = { rdna_sn(RDNA_ABI_RETURN, 2) } });
	rdna_bind(r, here);
	s2(r, RDNA_S_ADD_CO_U32, RDNA_ABI_RETURN, rdna_s(RDNA_ABI_RETURN),
	   rdna_distance(entry, here)); /* a negative one */
	s2(r, RDNA_S_ADD_CO_CI_U32, RDNA_ABI_RETURN + 1, rdna_s(RDNA_ABI_RETURN + 1), rdna_imm(-1));
	s2(r, RDNA_S_ADD_CO_U32, RDNA_ABI_RETURN, rdna_s(RDNA_ABI_RETURN), rdna_s(FUNCTION));
	s2(r, RDNA_S_ADD_CO_CI_U32, RDNA_ABI_RETURN + 1, rdna_s(RDNA_ABI_RETURN + 1), rdna_s(FUNCTION + 1));
}

static void call(struct rdna *r, int entry)
{
	rdna_put1(r, RDNA_S_MOV_B64, rdna_sn(RDNA_ABI_ARG, 2), rdna_sn(ARG, 2));
	find_function(r, entry);
	wait_scalar_write(r);
	rdna_put1(r, RDNA_S_SWAPPC_B64, rdna_sn(RDNA_ABI_RETURN, 2), rdna_sn(RDNA_ABI_RETURN, 2));
}

/* What this wave stored is where every workgroup finds it: stores go through to L2. */
static void release(struct rdna *r)
{
	if (r->gen == RDNA_GFX12)
		rdna_put_imm(r, RDNA_S_WAIT_STORECNT, 0);
	else
		rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_WAITCNT_VSCNT,
		                                .s = { rdna_reg(RDNA_NULL, 1), rdna_imm(0) } });
}

/* Lane 0's access to struct rdna_program_sync, where every workgroup finds what the others wrote. */
static void sync_access(struct rdna *r, enum rdna_op op, struct rdna_operand d, struct rdna_operand data,
                        int32_t offset)
{
	const bool load = op == RDNA_GLOBAL_LOAD_B64;
	struct rdna_ins i = { .op = op, .d = { d }, .s = { rdna_v(0), data }, .saddr = rdna_sn(SYNC, 2) };

	i.offset = offset;
	if (r->gen == RDNA_GFX12)
		i.scope = RDNA_SCOPE_DEV;
	else if (load)
		i.cache = r->gen == RDNA_GFX10_3 ? RDNA_GLC | RDNA_DLC : RDNA_GLC;
	rdna_put(r, &i);
}

/* Nothing is read from a cache that was filled before. One wave does it for its workgroup, which has one compute unit's
 * caches (no workgroup runs in WGP mode). Kernels read activations by scalar loads too, and the scalar cache is filled
 * from GL1: it is invalidated last, when GL1 surely has been. Loads return in order, so one behind the invalidations
 * says so even if they are not counted themselves. */
static void acquire(struct rdna *r)
{
	const struct rdna_operand none = { 0 };

	if (r->gen == RDNA_GFX12) {
		rdna_put(r, &(struct rdna_ins){ .op = RDNA_GLOBAL_INV, .scope = RDNA_SCOPE_DEV });
	} else {
		rdna_put0(r, RDNA_BUFFER_GL1_INV);
		rdna_put0(r, RDNA_BUFFER_GL0_INV);
		sync_access(r, RDNA_GLOBAL_LOAD_B64, rdna_vn(2, 2), none, 0);
	}
	wait_load(r);
	rdna_put0(r, RDNA_S_DCACHE_INV);
	wait_scalar(r);
}

/* The first workgroup that gives up says where; TEMP: how many have come, less those that were to come. */
static void give_up(struct rdna *r)
{
	const struct rdna_operand none = { 0 };
	int second = rdna_label(r);

	s2(r, RDNA_S_SUB_CO_U32, TEMP, rdna_imm(0), rdna_s(TEMP));
	s2(r, RDNA_S_AND_B32, POLLS, rdna_s(WORKGROUP), rdna_imm(0xffff));
	rdna_put1(r, RDNA_S_MOV_B32, rdna_s(TEMP + 1), rdna_s(LEFT)); /* no vector instruction reads the driver's own */
	wait_scalar_write(r);
	rdna_put1(r, RDNA_V_MOV_B32, rdna_v(1), rdna_s(TEMP + 1)); /* cmpswap: the new value, the old one */
	rdna_put1(r, RDNA_V_MOV_B32, rdna_v(2), rdna_imm(0));
	rdna_put1(r, RDNA_V_MOV_B32, rdna_v(4), rdna_s(POLLS));
	rdna_put1(r, RDNA_V_MOV_B32, rdna_v(5), rdna_s(TEMP));
	sync_access(r, RDNA_GLOBAL_ATOMIC_CMPSWAP_B32, rdna_v(3), rdna_vn(1, 2),
	            offsetof(struct rdna_program_sync, left));
	wait_load(r);
	rdna_put1(r, RDNA_V_READFIRSTLANE_B32, rdna_s(TEMP), rdna_v(3));
	compare(r, RDNA_S_CMP_LG_U32, rdna_s(TEMP), rdna_imm(0));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, second);
	sync_access(r, RDNA_GLOBAL_STORE_B64, none, rdna_vn(4, 2), offsetof(struct rdna_program_sync, workgroup));
	rdna_bind(r, second);
}

/* The first wave of a workgroup says that all of it is here, waits until every workgroup has said so, and lets its own
 * see what they stored. */
static void meet(struct rdna *r)
{
	const struct rdna_operand none = { 0 }, m0 = rdna_reg(RDNA_M0, 1);
	int again = rdna_label(r), met = rdna_label(r), given_up = rdna_label(r);

	rdna_put1(r, RDNA_S_MOV_B32, rdna_reg(RDNA_EXEC_LO, 1), rdna_imm(1));
	rdna_put1(r, RDNA_V_MOV_B32, rdna_v(0), rdna_imm(0));
	rdna_put1(r, RDNA_V_MOV_B32, rdna_v(1), rdna_imm(1));
	rdna_put1(r, RDNA_S_MOV_B32, rdna_s(POLLS), m0);
	sync_access(r, RDNA_GLOBAL_ATOMIC_ADD_U32, none, rdna_v(1), 0);
	rdna_bind(r, again);
	sync_access(r, RDNA_GLOBAL_LOAD_B64, rdna_vn(2, 2), none, 0);
	wait_load(r);
	rdna_put1(r, RDNA_V_READFIRSTLANE_B32, rdna_s(TEMP), rdna_v(2));
	rdna_put1(r, RDNA_V_READFIRSTLANE_B32, rdna_s(TEMP + 1), rdna_v(3));
	s2(r, RDNA_S_SUB_CO_U32, TEMP, rdna_s(TEMP), rdna_s(ARRIVED));
	wait_scalar_write(r);
	compare(r, RDNA_S_CMP_GE_I32, rdna_s(TEMP), rdna_imm(0));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, met);
	compare(r, RDNA_S_CMP_LG_U32, rdna_s(TEMP + 1), rdna_imm(0));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, given_up);
	s2(r, RDNA_S_SUB_CO_U32, POLLS, rdna_s(POLLS), rdna_imm(1));
	wait_scalar_write(r);
	compare(r, RDNA_S_CMP_EQ_U32, rdna_s(POLLS), rdna_imm(0));
	rdna_put_imm(r, RDNA_S_SLEEP, 1);
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC0, again);
	give_up(r);
	rdna_bind(r, given_up);
	rdna_put1(r, RDNA_S_MOV_B32, m0, rdna_imm(0));
	rdna_bind(r, met);
	acquire(r);
	rdna_put1(r, RDNA_S_MOV_B32, rdna_reg(RDNA_EXEC_LO, 1), rdna_imm(-1));
}

/* gfx12 can be told to fetch instructions: the second wave asks for the next function's first 4 KiB while the others
 * are waited for. A device that loads programs keeps as much memory of its own behind them. */
static void prefetch_function(struct rdna *r, int entry, int other)
{
	compare(r, RDNA_S_CMP_LG_U32, rdna_s(RDNA_ABI_WAVE), rdna_imm(1));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, other);
	wait_scalar(r);
	find_function(r, entry);
	wait_scalar_write(r);
	rdna_put(r, &(struct rdna_ins){ .op = RDNA_S_PREFETCH_INST,
	                                .s = { rdna_sn(RDNA_ABI_RETURN, 2), rdna_imm(PREFETCH_LINES - 1) } });
}

static void grid_barrier(struct rdna *r, int entry)
{
	int other = rdna_label(r), first = rdna_label(r);

	wait_lds(r);
	load_record(r); /* arrives while the others are waited for */
	release(r);
	workgroup_barrier(r);
	s2(r, RDNA_S_LSHR_B32, TEMP, rdna_s(WORKGROUP), rdna_imm(16));
	wait_scalar_write(r);
	s2(r, RDNA_S_ADD_CO_U32, ARRIVED, rdna_s(ARRIVED), rdna_s(TEMP));
	compare(r, RDNA_S_CMP_LG_U32, rdna_s(RDNA_ABI_WAVE), rdna_imm(0));
	if (r->gen == RDNA_GFX12) {
		rdna_put_branch(r, RDNA_S_CBRANCH_SCC0, first);
		prefetch_function(r, entry, other);
		rdna_put_branch(r, RDNA_S_BRANCH, other);
		rdna_bind(r, first);
	} else {
		rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, other);
	}
	compare(r, RDNA_S_CMP_EQ_U32, rdna_reg(RDNA_M0, 1), rdna_imm(0));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, other); /* it has given up */
	meet(r);
	rdna_bind(r, other);
	workgroup_barrier(r);
}

/* Its entry is its first byte. */
static void write_driver(struct rdna *r, const struct target *target)
{
	int entry = rdna_label(r), command = rdna_label(r), next = rdna_label(r), everyone = rdna_label(r),
	    workgroup = rdna_label(r), end = rdna_label(r);

	rdna_bind(r, entry);
	start(r, target, end);
	load_record(r);
	rdna_bind(r, command);
	take_record(r);
	share(r, next);
	call(r, entry);
	rdna_bind(r, next);
	s2(r, RDNA_S_ADD_CO_U32, RECORD, rdna_s(RECORD), rdna_imm(sizeof(struct rdna_command)));
	s2(r, RDNA_S_ADD_CO_CI_U32, RECORD + 1, rdna_s(RECORD + 1), rdna_imm(0));
	s2(r, RDNA_S_LSHR_B32, TEMP, rdna_s(LEFT), rdna_imm(FLAGS_AT));
	s2(r, RDNA_S_AND_B32, LEFT, rdna_s(LEFT), rdna_imm(RDNA_PROGRAM_MAX_COMMANDS));
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC0, end); /* what follows the launch waits for all of it */
	wait_scalar_write(r);
	compare(r, RDNA_S_BITCMP1_B32, rdna_s(TEMP), rdna_imm(0)); /* RDNA_COMMAND_BARRIER */
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, everyone);
	compare(r, RDNA_S_BITCMP1_B32, rdna_s(TEMP), rdna_imm(2)); /* RDNA_COMMAND_WORKGROUP_BARRIER */
	rdna_put_branch(r, RDNA_S_CBRANCH_SCC1, workgroup);
	load_record(r);
	rdna_put_branch(r, RDNA_S_BRANCH, command);
	rdna_bind(r, workgroup);
	wait_lds(r);
	load_record(r);
	workgroup_barrier(r);
	rdna_put_branch(r, RDNA_S_BRANCH, command);
	rdna_bind(r, everyone);
	grid_barrier(r, entry);
	rdna_put_branch(r, RDNA_S_BRANCH, command);
	rdna_bind(r, end);
	rdna_put0(r, RDNA_S_ENDPGM);
}

/* ---- linking */

uint32_t rdna_program_lds(const struct object *o)
{
	return (o->frame_bytes ? (o->shared_bytes + 63) & ~63u : o->shared_bytes) + RDNA_PROGRAM_WAVES * o->frame_bytes;
}

static uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }

static bool describe(struct amdgpu_object *out, const struct rdna *r, size_t driver, const struct target *target,
                     const struct object *const f[], size_t n, struct error *err)
{
	static const struct amdgpu_arg args[] = {
		{ "commands", offsetof(struct rdna_program_args, commands), 8, AMDGPU_ARG_BUFFER },
		{ "first", offsetof(struct rdna_program_args, first), 4, AMDGPU_ARG_VALUE },
		{ "end", offsetof(struct rdna_program_args, end), 4, AMDGPU_ARG_VALUE },
		{ "sync", offsetof(struct rdna_program_args, sync), 8, AMDGPU_ARG_BUFFER },
		{ "workgroups", offsetof(struct rdna_program_args, workgroups), 4, AMDGPU_ARG_VALUE },
		{ "polls", offsetof(struct rdna_program_args, polls), 4, AMDGPU_ARG_VALUE },
		{ "arrivals", offsetof(struct rdna_program_args, arrivals), 4, AMDGPU_ARG_VALUE },
		{ "reserved", offsetof(struct rdna_program_args, reserved), 4, AMDGPU_ARG_VALUE },
	};
	uint32_t lds = 0, vgprs = DRIVER_VGPRS, sgprs = DRIVER_SGPRS;

	for (size_t i = 0; i < n; i++) {
		lds = max(lds, rdna_program_lds(f[i]));
		vgprs = max(vgprs, f[i]->vector_regs);
		sgprs = max(sgprs, f[i]->scalar_regs);
	}
	struct amdgpu_kernel k = driver_kernel;
	k.code = r->code;
	k.code_size = r->size;
	k.vgprs = (uint16_t)vgprs;
	k.sgprs = (uint16_t)sgprs;
	k.lds_bytes = lds;
	k.prefetch_lines = r->gen == RDNA_GFX10_3 ? 0 : (uint8_t)((driver + LINE - 1) / LINE);
	k.args = args;
	k.n_args = sizeof args / sizeof args[0];
	return amdgpu_object_make(out, target->name, &k, 1, err);
}

bool rdna_program_make(uint8_t **bytes, size_t *size, const struct target *target,
                       const struct object *const functions[], size_t n, uint64_t offset[], struct error *err)
{
	struct amdgpu_object made = { 0 };
	struct rdna r;

	*bytes = NULL;
	*size = 0;
	if (target->backend != &backend_rdna)
		return error_set(err, ERROR_UNSUPPORTED, "target %s takes no program of functions: RDNA targets do",
		                 target->name);
	rdna_init(&r, rdna_gen_of(target->name));
	write_driver(&r, target);
	size_t driver = r.size;
	for (size_t i = 0; i < n; i++) {
		rdna_align(&r, LINE);
		offset[i] = r.size;
		rdna_bytes(&r, functions[i]->code, functions[i]->code_bytes);
	}
	bool ok = rdna_finish(&r);
	ok = ok ? describe(&made, &r, driver, target, functions, n, err)
	        : error_set(err, ERROR_MEMORY, "a program of %zu functions cannot be written: %s", n, r.error);
	rdna_free(&r);
	*bytes = made.bytes;
	*size = made.size;
	return ok;
}
