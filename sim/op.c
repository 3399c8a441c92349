/* sim/op.c - the table of instructions, put together from the .def files, and the lookup tables of a generation.
 *
 * Owns: sim_ops and how opcode numbers of the formats map to it. Decodes nothing itself.
 */
#include <string.h>

#include "sim/wave.h"

#define NAME_VOP1 "v_"
#define NAME_VOP2 "v_"
#define NAME_VOP3 "v_"
#define NAME_VOP3P "v_"
#define NAME_SOP1 "s_"
#define NAME_SOP2 "s_"
#define NAME_SOPC "s_"
#define NAME_SOPK "s_"
#define NAME_SOPP "s_"
#define CH(t) #t[0]

const struct sim_op sim_ops[OP_COUNT] = {
#define VALU(fmt, name, g10, g11, g12, flags, D, A, B, C, expr) \
	[OP_V_##name] = { NAME_##fmt #name, \
		          FMT_##fmt, \
		          { CH(D), CH(A), CH(B), CH(C) }, \
		          #flags, \
		          { g10, g11, g12 }, \
		          SIM_CLASS_VALU, \
		          0, \
		          0, \
		          0, \
		          exec_valu },
#include "sim/valu.def"
#define VCMP(name, g10, g11, on12, A, B, ...) \
	[OP_CMP_##name] = { "v_cmp_" #name, \
		            FMT_VOPC, \
		            { 'm', CH(A), CH(B), '_' }, \
		            "0", \
		            { g10, g11, on12 ? g11 : -1 }, \
		            SIM_CLASS_VALU, \
		            0, \
		            0, \
		            0, \
		            exec_cmp }, \
	[OP_CMPX_##name] = { "v_cmpx_" #name, \
		             FMT_VOPC, \
		             { 'm', CH(A), CH(B), '_' }, \
		             "0", \
		             { (g10) + 0x10, (g11) + 0x80, on12 ? (g11) + 0x80 : -1 }, \
		             SIM_CLASS_VALU, \
		             0, \
		             0, \
		             0, \
		             exec_cmp },
#include "sim/vcmp.def"
#define SALU(fmt, name, g10, g11, g12, D, A, B, scc, expr) \
	[OP_S_##name] = { NAME_##fmt #name, \
		          FMT_##fmt, \
		          { CH(D), CH(A), CH(B), '_' }, \
		          #scc, \
		          { g10, g11, g12 }, \
		          SIM_CLASS_SALU, \
		          0, \
		          0, \
		          0, \
		          exec_s_##name },
#include "sim/salu.def"
#define SPEC(fmt, name, g10, g11, g12, D, A, B, C, class, fn) \
	[OP_X_##name] = { NAME_##fmt #name, \
		          FMT_##fmt, \
		          { CH(D), CH(A), CH(B), CH(C) }, \
		          "0", \
		          { g10, g11, g12 }, \
		          SIM_CLASS_##class, \
		          0, \
		          0, \
		          0, \
		          fn },
#include "sim/special.def"
#define EXEC_SMEM exec_smem
#define EXEC_MUBUF exec_cache
#define EXEC_GLOBAL exec_cache
#define EXEC_FLAT exec_flat
#define EXEC_DS exec_lds
#define MEM(fmt, name, g10, g11, g12, kind, size, words, flags, class) \
	[OP_M_##name] = { #name, \
		          FMT_##fmt, \
		          { '_', '_', '_', '_' }, \
		          flags, \
		          { g10, g11, g12 }, \
		          SIM_CLASS_##class, \
		          MK_##kind, \
		          size, \
		          words, \
		          EXEC_##fmt },
#include "sim/mem.def"
};

const struct sim_also sim_also[] = {
#define VALU(...)
#define ALSO(fmt, name, g10, g11, g12) { OP_V_##name, FMT_##fmt, { g10, g11, g12 } },
#include "sim/valu.def"
};
const unsigned sim_n_also = sizeof sim_also / sizeof sim_also[0];

const char *const sim_class_names[SIM_CLASS_COUNT] = {
	"salu", "branch", "wait", "barrier", "smem",  "valu",   "trans", "dot",
	"wmma", "vopd",   "lds",  "load",    "store", "atomic", "other"
};

static void enter(struct sim_device *dev, unsigned format, int code, unsigned id)
{
	if (code < 0)
		return;
	dev->table[format][code] = (uint16_t)id;
	if (format == FMT_VOPC)
		dev->table[FMT_VOP3][code] = (uint16_t)id;
	if (format == FMT_VOP2)
		dev->table[FMT_VOP3][code + 0x100] = (uint16_t)id;
	if (format == FMT_VOP1)
		dev->table[FMT_VOP3][code + 0x180] = (uint16_t)id;
}

void sim_tables(struct sim_device *dev)
{
	static const struct {
		uint8_t code;
		uint16_t op;
		bool y_only;
	} duals[] = {
		{ 0, OP_V_fmac_f32, 0 },         { 1, OP_V_fmaak_f32, 0 },        { 2, OP_V_fmamk_f32, 0 },
		{ 3, OP_V_mul_f32, 0 },          { 4, OP_V_add_f32, 0 },          { 5, OP_V_sub_f32, 0 },
		{ 6, OP_V_subrev_f32, 0 },       { 7, OP_V_mul_dx9_zero_f32, 0 }, { 8, OP_V_mov_b32, 0 },
		{ 9, OP_V_cndmask_b32, 0 },      { 10, OP_V_max_num_f32, 0 },     { 11, OP_V_min_num_f32, 0 },
		{ 12, OP_V_dot2acc_f32_f16, 0 }, { 16, OP_V_add_nc_u32, 1 },      { 17, OP_V_lshlrev_b32, 1 },
		{ 18, OP_V_and_b32, 1 },
	};
	memset(dev->table, 0, sizeof dev->table);
	for (unsigned id = 1; id < OP_COUNT; id++)
		enter(dev, sim_ops[id].format, sim_ops[id].code[dev->gen], id);
	for (unsigned i = 0; i < sim_n_also; i++)
		enter(dev, sim_also[i].format, sim_also[i].code[dev->gen], sim_also[i].op);
	memset(dev->vopd, 0, sizeof dev->vopd);
	for (unsigned i = 0; i < sizeof duals / sizeof duals[0]; i++) {
		if (dev->gen == 0 || (dev->gen == 2 && duals[i].op == OP_V_dot2acc_f32_f16))
			continue;
		if (!duals[i].y_only)
			dev->vopd[0][duals[i].code] = duals[i].op;
		dev->vopd[1][duals[i].code] = duals[i].op;
	}
}
