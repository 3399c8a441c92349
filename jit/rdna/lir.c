/* jit/rdna/lir.c - the machine-level form of RDNA kernels: growth, what every instruction is and does, what an
 * instruction names.
 *
 * Owns: the table of facts. It is made of the encoder's table of instructions plus the exceptions listed here; never of
 * an instruction's operands. Rule for editors: an instruction whose effect goes beyond its operands, scc and vcc
 * (hidden registers, modes, the program counter) must be FIXED.
 */
#include "jit/rdna/lir.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "jit/rdna/live.h"

void rdna_lir_init(struct rdna_lir *l, enum rdna_gen gen)
{
	*l = (struct rdna_lir){ .gen = gen, .n_regs = 1 };
	l->failed = !array_grow((void **)&l->reg, &l->regs_capacity, 1, sizeof *l->reg);
	if (!l->failed)
		l->reg[0] = (struct rdna_lir_reg){ 0 };
}

void rdna_lir_free(struct rdna_lir *l)
{
	free(l->ins);
	free(l->reg);
	*l = (struct rdna_lir){ 0 };
}

bool rdna_lir_make_room(struct rdna_lir *l)
{
	l->failed = !array_grow((void **)&l->reg, &l->regs_capacity, l->n_regs + 1, sizeof *l->reg);
	return !l->failed;
}

/* In place: what is put together elsewhere by bytes and then copied by vectors has to wait for itself. And copied from
 * what is empty, for compilers make a slow loop of an assignment of so many zeros. */
static inline void set_usual(struct rdna_lir_ins *i, unsigned op)
{
	static const struct rdna_lir_ins empty;
	uint32_t row = rdna_lir_row(op);
	*i = empty;
	i->op = (uint16_t)op;
	i->memory = (uint8_t)(row >> RDNA_ROW_MEMORY_SHIFT & 3);
	i->stores = row & RDNA_IS_STORE;
}

void rdna_lir_set_usual(struct rdna_lir_ins *i, unsigned op) { set_usual(i, op); }

struct rdna_lir_ins *rdna_lir_add(struct rdna_lir *l, unsigned op)
{
	static _Thread_local struct rdna_lir_ins lost;
	if (l->failed || (l->n_ins == l->ins_capacity &&
	                  !array_grow((void **)&l->ins, &l->ins_capacity, l->n_ins + 1, sizeof *l->ins))) {
		l->failed = true;
		return &lost;
	}
	struct rdna_lir_ins *i = &l->ins[l->n_ins++];
	l->tried = false;
	set_usual(i, op);
	return i;
}

bool rdna_lir_insert(struct rdna_lir *l, size_t at, size_t n)
{
	if (l->failed || !array_grow((void **)&l->ins, &l->ins_capacity, l->n_ins + n, sizeof *l->ins)) {
		l->failed = true;
		return false;
	}
	memmove(l->ins + at + n, l->ins + at, (l->n_ins - at) * sizeof *l->ins);
	memset(l->ins + at, 0, n * sizeof *l->ins);
	l->n_ins += n;
	l->tried = false;
	return true;
}

/* --- facts */

enum {
	ENC_SOP1,
	ENC_SOP2,
	ENC_SOPC,
	ENC_SOPK,
	ENC_SOPP,
	ENC_SMEM,
	ENC_VOP1,
	ENC_VOP2,
	ENC_VOPC,
	ENC_VOP3,
	ENC_VOP3P,
	ENC_DS,
	ENC_GLOBAL,
	ENC_FLAT,
	ENC_SCRATCH,
	ENC_MUBUF,
	ENC_COUNT
};

static const struct {
	uint8_t enc;
	const char *sig;
} rows[RDNA_OP_COUNT] = {
#define RDNA(id, enc, names, sig, ...) { ENC_##enc, sig },
#define RDNA_DUAL(...)
#include "encoders/rdna.def"
#undef RDNA
#undef RDNA_DUAL
};

static const uint16_t usual[ENC_COUNT] = {
	[ENC_SOP1] = RDNA_IS_SALU,
	[ENC_SOP2] = RDNA_IS_SALU | RDNA_WRITES_SCC,
	[ENC_SOPC] = RDNA_IS_SALU | RDNA_WRITES_SCC,
	[ENC_SOPK] = RDNA_IS_SALU,
	[ENC_SOPP] = RDNA_IS_FIXED,
	[ENC_SMEM] = RDNA_IS_SMEM,
	[ENC_VOP1] = RDNA_IS_VALU,
	[ENC_VOP2] = RDNA_IS_VALU,
	[ENC_VOPC] = RDNA_IS_VALU,
	[ENC_VOP3] = RDNA_IS_VALU,
	[ENC_VOP3P] = RDNA_IS_VALU,
	[ENC_DS] = RDNA_IS_LDS,
	[ENC_GLOBAL] = RDNA_IS_VMEM,
	[ENC_FLAT] = RDNA_IS_VMEM | RDNA_IS_LDS,
	[ENC_SCRATCH] = RDNA_IS_VMEM,
	[ENC_MUBUF] = RDNA_IS_VMEM | RDNA_IS_FIXED,
};

/* Two-source scalar instructions that leave scc alone. */
static bool keeps_scc(unsigned op)
{
	switch (op) {
	case RDNA_S_CSELECT_B32:
	case RDNA_S_CSELECT_B64:
	case RDNA_S_BFM_B32:
	case RDNA_S_BFM_B64:
	case RDNA_S_MUL_I32:
	case RDNA_S_MUL_HI_U32:
	case RDNA_S_MUL_HI_I32:
	case RDNA_S_PACK_LL_B32_B16:
	case RDNA_S_PACK_LH_B32_B16:
	case RDNA_S_PACK_HH_B32_B16:
	case RDNA_S_PACK_HL_B32_B16:
	case RDNA_S_ADD_NC_U64:
	case RDNA_S_SUB_NC_U64:
	case RDNA_S_MUL_U64:
	case RDNA_S_ADD_F32:
	case RDNA_S_SUB_F32:
	case RDNA_S_MIN_NUM_F32:
	case RDNA_S_MAX_NUM_F32:
	case RDNA_S_MUL_F32:
	case RDNA_S_FMAC_F32:
	case RDNA_S_CVT_PK_RTZ_F16_F32:
	case RDNA_S_MINIMUM_F32:
	case RDNA_S_MAXIMUM_F32:
	case RDNA_S_ADD_F16:
	case RDNA_S_SUB_F16:
	case RDNA_S_MUL_F16:
	case RDNA_S_FMAC_F16:
	case RDNA_S_FMAAK_F32:
	case RDNA_S_FMAMK_F32: return true;
	default: return false;
	}
}

/* What scalar instructions do beside their operands. */
static const uint32_t scalar_extras[RDNA_OP_COUNT] = {
	[RDNA_S_ADD_CO_CI_U32] = RDNA_READS_SCC,
	[RDNA_S_SUB_CO_CI_U32] = RDNA_READS_SCC,
	[RDNA_S_CSELECT_B32] = RDNA_READS_SCC,
	[RDNA_S_CSELECT_B64] = RDNA_READS_SCC,
	[RDNA_S_CMOV_B32] = RDNA_READS_SCC,
	[RDNA_S_CMOV_B64] = RDNA_READS_SCC,
	[RDNA_S_CMOVK_I32] = RDNA_READS_SCC,
	[RDNA_S_CBRANCH_SCC0] = RDNA_READS_SCC,
	[RDNA_S_CBRANCH_SCC1] = RDNA_READS_SCC,
	[RDNA_S_NOT_B32] = RDNA_WRITES_SCC,
	[RDNA_S_NOT_B64] = RDNA_WRITES_SCC,
	[RDNA_S_BCNT0_I32_B32] = RDNA_WRITES_SCC,
	[RDNA_S_BCNT1_I32_B32] = RDNA_WRITES_SCC,
	[RDNA_S_BCNT0_I32_B64] = RDNA_WRITES_SCC,
	[RDNA_S_BCNT1_I32_B64] = RDNA_WRITES_SCC,
	[RDNA_S_ABS_I32] = RDNA_WRITES_SCC,
	[RDNA_S_WQM_B32] = RDNA_WRITES_SCC,
	[RDNA_S_QUADMASK_B32] = RDNA_WRITES_SCC,
	[RDNA_S_ADDK_CO_I32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_EQ_I32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_LG_I32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_GT_I32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_GE_I32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_LT_I32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_LE_I32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_EQ_U32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_LG_U32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_GT_U32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_GE_U32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_LT_U32] = RDNA_WRITES_SCC,
	[RDNA_S_CMPK_LE_U32] = RDNA_WRITES_SCC,
	[RDNA_S_AND_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_OR_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_XOR_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_NAND_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_NOR_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_XNOR_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_AND_NOT0_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_AND_NOT1_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_OR_NOT0_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_OR_NOT1_SAVEEXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_AND_NOT0_WREXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_AND_NOT1_WREXEC_B32] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_BARRIER_SIGNAL_ISFIRST] = RDNA_WRITES_SCC | RDNA_IS_FIXED,
	[RDNA_S_CBRANCH_VCCZ] = RDNA_READS_VCC,
	[RDNA_S_CBRANCH_VCCNZ] = RDNA_READS_VCC,
	[RDNA_S_MOVRELS_B32] = RDNA_IS_FIXED,
	[RDNA_S_MOVRELD_B32] = RDNA_IS_FIXED,
	[RDNA_S_GETPC_B64] = RDNA_IS_FIXED,
	[RDNA_S_SETPC_B64] = RDNA_IS_FIXED,
	[RDNA_S_SWAPPC_B64] = RDNA_IS_FIXED,
	[RDNA_S_CALL_B64] = RDNA_IS_FIXED,
	[RDNA_S_SENDMSG_RTN_B32] = RDNA_IS_FIXED,
	[RDNA_S_SENDMSG_RTN_B64] = RDNA_IS_FIXED,
	[RDNA_S_SLEEP_VAR] = RDNA_IS_FIXED,
	[RDNA_S_BARRIER_SIGNAL] = RDNA_IS_FIXED,
	[RDNA_S_BARRIER_INIT] = RDNA_IS_FIXED,
	[RDNA_S_BARRIER_JOIN] = RDNA_IS_FIXED,
	[RDNA_S_GET_BARRIER_STATE] = RDNA_IS_FIXED,
	[RDNA_S_GETREG_B32] = RDNA_IS_FIXED,
	[RDNA_S_SETREG_B32] = RDNA_IS_FIXED,
	[RDNA_S_SETREG_IMM32_B32] = RDNA_IS_FIXED,
	[RDNA_S_WAITCNT_VSCNT] = RDNA_IS_FIXED,
	[RDNA_S_WAITCNT_VMCNT] = RDNA_IS_FIXED,
	[RDNA_S_WAITCNT_EXPCNT] = RDNA_IS_FIXED,
	[RDNA_S_WAITCNT_LGKMCNT] = RDNA_IS_FIXED,
	[RDNA_S_VERSION] = RDNA_IS_FIXED,
	[RDNA_S_DCACHE_INV] = RDNA_IS_FIXED,
	[RDNA_S_GL1_INV] = RDNA_IS_FIXED,
	[RDNA_S_MEMTIME] = RDNA_IS_FIXED,
	[RDNA_S_MEMREALTIME] = RDNA_IS_FIXED,
};

static unsigned vector_extra(unsigned op)
{
	switch (op) {
	case RDNA_V_EXP_F32:
	case RDNA_V_LOG_F32:
	case RDNA_V_RCP_F32:
	case RDNA_V_RCP_IFLAG_F32:
	case RDNA_V_RSQ_F32:
	case RDNA_V_SQRT_F32:
	case RDNA_V_SIN_F32:
	case RDNA_V_COS_F32:
	case RDNA_V_RCP_F64:
	case RDNA_V_RSQ_F64:
	case RDNA_V_RCP_F16:
	case RDNA_V_SQRT_F16:
	case RDNA_V_RSQ_F16:
	case RDNA_V_LOG_F16:
	case RDNA_V_EXP_F16:
	case RDNA_V_SIN_F16:
	case RDNA_V_COS_F16: return RDNA_IS_TRANS;
	case RDNA_V_DIV_FMAS_F32:
	case RDNA_V_DIV_FMAS_F64: return RDNA_READS_VCC;
	case RDNA_V_NOP:
	case RDNA_V_PIPEFLUSH:
	case RDNA_V_MOVRELD_B32:
	case RDNA_V_MOVRELS_B32:
	case RDNA_V_MOVRELSD_B32:
	case RDNA_V_SWAP_B32:
	case RDNA_V_SWAPREL_B32: return RDNA_IS_FIXED;
	default: break;
	}
	if (rows[op].enc == ENC_VOPC && rows[op].sig[0] == '=') /* v_cmpx: it writes exec */
		return RDNA_IS_FIXED;
	const char *w = rows[op].enc == ENC_VOP3P ? strchr(rows[op].sig, 'W') : NULL;
	return w ? RDNA_IS_WMMA : 0;
}

/* Memory instructions with data among their sources write, except lanes that only trade places. */
static unsigned memory_extra(unsigned op)
{
	const char *address = strchr(rows[op].sig, '@');
	switch (op) {
	case RDNA_DS_BPERMUTE_B32:
	case RDNA_DS_PERMUTE_B32: return 0;
	case RDNA_DS_STORE_ADDTID_B32:
	case RDNA_DS_LOAD_ADDTID_B32:
	case RDNA_DS_CONSUME:
	case RDNA_DS_APPEND:
	case RDNA_DS_NOP:
	case RDNA_GLOBAL_INV:
	case RDNA_GLOBAL_WB:
	case RDNA_GLOBAL_WBINV: return RDNA_IS_FIXED;
	default: return address && address[1] ? RDNA_IS_STORE : 0;
	}
}

static unsigned find_facts(unsigned op)
{
	unsigned enc = rows[op].enc, facts = usual[enc];
	if (enc == ENC_SOP2 && keeps_scc(op))
		facts &= ~(unsigned)RDNA_WRITES_SCC;
	if (enc <= ENC_SMEM)
		return facts | scalar_extras[op];
	return facts | (enc <= ENC_VOP3P ? vector_extra(op) : memory_extra(op));
}

static bool accumulates(unsigned op)
{
	switch (op) {
	case RDNA_V_FMAC_F32:
	case RDNA_V_FMAC_F16:
	case RDNA_V_FMAC_DX9_ZERO_F32:
	case RDNA_V_DOT2ACC_F32_F16:
	case RDNA_V_DOT4C_I32_I8:
	case RDNA_V_WRITELANE_B32:
	case RDNA_V_FMA_MIXHI_F16:
	case RDNA_V_CVT_SR_FP8_F32:
	case RDNA_V_CVT_SR_BF8_F32:
	case RDNA_S_FMAC_F32:
	case RDNA_S_FMAC_F16:
	case RDNA_S_CMOV_B32:
	case RDNA_S_CMOV_B64:
	case RDNA_S_CMOVK_I32:
	case RDNA_S_BITSET0_B32:
	case RDNA_S_BITSET1_B32:
	case RDNA_S_ADDK_CO_I32:
	case RDNA_S_MULK_I32:
	case RDNA_DS_LOAD_U8_D16:
	case RDNA_DS_LOAD_U8_D16_HI:
	case RDNA_DS_LOAD_I8_D16:
	case RDNA_DS_LOAD_I8_D16_HI:
	case RDNA_DS_LOAD_U16_D16:
	case RDNA_DS_LOAD_U16_D16_HI:
	case RDNA_GLOBAL_LOAD_D16_U8:
	case RDNA_GLOBAL_LOAD_D16_HI_U8:
	case RDNA_GLOBAL_LOAD_D16_I8:
	case RDNA_GLOBAL_LOAD_D16_HI_I8:
	case RDNA_GLOBAL_LOAD_D16_B16:
	case RDNA_GLOBAL_LOAD_D16_HI_B16:
	case RDNA_FLAT_LOAD_D16_U8:
	case RDNA_FLAT_LOAD_D16_HI_U8:
	case RDNA_FLAT_LOAD_D16_I8:
	case RDNA_FLAT_LOAD_D16_HI_I8:
	case RDNA_FLAT_LOAD_D16_B16:
	case RDNA_FLAT_LOAD_D16_HI_B16:
	case RDNA_SCRATCH_LOAD_D16_U8:
	case RDNA_SCRATCH_LOAD_D16_HI_U8:
	case RDNA_SCRATCH_LOAD_D16_I8:
	case RDNA_SCRATCH_LOAD_D16_HI_I8:
	case RDNA_SCRATCH_LOAD_D16_B16:
	case RDNA_SCRATCH_LOAD_D16_HI_B16: return true;
	default: return false;
	}
}

static unsigned usual_memory(unsigned op, unsigned facts)
{
	if (op == RDNA_DS_SWIZZLE_B32 || op == RDNA_DS_BPERMUTE_B32 || op == RDNA_DS_PERMUTE_B32 ||
	    facts & RDNA_IS_FIXED)
		return RDNA_MEM_NONE;
	return facts & RDNA_IS_LDS                     ? RDNA_MEM_LDS
	       : facts & (RDNA_IS_SMEM | RDNA_IS_VMEM) ? RDNA_MEM_GLOBAL
	                                               : RDNA_MEM_NONE;
}

_Atomic uint32_t rdna_lir_rows[RDNA_LIR_OPS];

uint32_t rdna_lir_make_row(unsigned op)
{
	bool pseudo = op >= RDNA_OP_COUNT;
	unsigned facts = pseudo ? RDNA_IS_FIXED | (op == RDNA_LIR_DUAL ? 0 : RDNA_WRITES_SCC) : find_facts(op);
	uint32_t row = RDNA_ROW_KNOWN | facts | usual_memory(op, facts) << RDNA_ROW_MEMORY_SHIFT;
	if (!pseudo && accumulates(op))
		row |= RDNA_ROW_READS_DST;
	if (facts & RDNA_IS_VALU)
		row |= RDNA_ROW_EARLY_CLOBBER;
	atomic_store_explicit(&rdna_lir_rows[op], row, memory_order_relaxed);
	return row;
}

const char *rdna_lir_letters(unsigned op, enum rdna_gen gen)
{
	const char *sig = rows[op].sig, *slash = strchr(sig, '/');
	return slash && gen == RDNA_GFX12 ? slash + 1 : sig;
}

unsigned rdna_lir_address_form(unsigned op)
{
	switch (rows[op].enc) {
	case ENC_SMEM: return RDNA_ADDRESS_SCALAR;
	case ENC_DS: return RDNA_ADDRESS_LDS;
	case ENC_GLOBAL: return RDNA_ADDRESS_GLOBAL;
	case ENC_FLAT: return RDNA_ADDRESS_FLAT;
	case ENC_SCRATCH: return RDNA_ADDRESS_SCRATCH;
	default: return RDNA_ADDRESS_NONE;
	}
}

bool rdna_lir_dpp_reads_dst(const struct rdna_dpp *p)
{
	bool shifts = p->ctrl >= RDNA_ROW_SHL(1) && p->ctrl <= RDNA_ROW_SHR(15);
	return p->kind == RDNA_DPP16 && (p->row_mask != 15 || p->bank_mask != 15 || (shifts && !p->bound_zero));
}
