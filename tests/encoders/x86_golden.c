/* tests/encoders/x86_golden.c - writes out every row of the instruction table as assembly text, and asks llvm-mc for
 * the bytes.
 *
 * Owns: the choice of operands and their spelling. It reads from the table which operands a row takes, never which
 * bytes it makes: those come from the assembler. Each row meets every register of interest in every operand position;
 * the memory operands are all tried on the first row of each form and on tiles, and in turns on the others, as they
 * share their code.
 *
 * File format: "= OP n mode" opens the section of the op's n-th row; mode is vex or evex, what x86.evex is set to. Then
 * come lines "text;hex".
 * "= LABELS 0 vex" holds one program: label lines "name:", fill lines ".fill n", instructions, and one last line
 * ";hex".
 */
#include <string.h>

#include "encoders/x86_form.h"
#include "tests/encoders/x86_golden_lines.h"

static const char *const golden_names[X86_OP_COUNT] = {
#define X86(id, ...) #id,
#define X86_ALT(id, ...)
#include "encoders/x86.def"
#undef X86
#undef X86_ALT
};

bool golden_seen[X86_F_REL + 1][2]; /* forms whose memory operands have all been tried */

/* --- spelling */

static const char *golden_gpr(char *out, unsigned reg, unsigned bits)
{
	static const char *const low[] = { "ax", "cx", "dx", "bx", "sp", "bp", "si", "di" };

	if (reg >= 8)
		sprintf(out, "r%u%s", reg, bits == 64 ? "" : bits == 32 ? "d" : bits == 16 ? "w" : "b");
	else if (bits == 8)
		sprintf(out, reg < 4 ? "%.1sl" : "%sl", low[reg]);
	else
		sprintf(out, "%s%s", bits == 64 ? "r" : bits == 32 ? "e" : "", low[reg]);
	return out;
}

static const char *golden_register(const struct golden *g, char *out, char letter, unsigned reg)
{
	unsigned l = g->l, half = l ? l - 1 : 0;

	switch (letter) {
	case 'v':
	case 'V': sprintf(out, "%cmm%u", "xyz"[l], reg); return out;
	case 'h':
	case 'H': sprintf(out, "%cmm%u", "xyz"[half], reg); return out;
	case 'k':
	case 'K': sprintf(out, "k%u", reg); return out;
	case 't': sprintf(out, "tmm%u", reg); return out;
	case 'w':
	case 'W':
	case 'A': return golden_gpr(out, reg, g->w ? 64 : 32);
	case 'd':
	case 'D': return golden_gpr(out, reg, 32);
	case 'g':
	case 'G': return golden_gpr(out, reg, 64);
	case 'b':
	case 'B': return golden_gpr(out, reg, 8);
	case 'u':
	case 'U': return golden_gpr(out, reg, 16);
	default: sprintf(out, "xmm%u", reg); return out;
	}
}

static const char *golden_memory(const struct golden *g, char *out, char letter, const struct x86_operand *o)
{
	bool legacy = !(g->row->facts & (X86_HAS_VEX | X86_HAS_EVEX)), store = strcmp(g->row->sig, "mJ") == 0;
	const char *size =
		letter == 'W' && !legacy && g->row->op == X86_VCVTSI2SS ? "dword ptr "
		: !legacy                                               ? ""
		: store         ? (x86_f_w(g->row->facts) == X86_W_W1 ? "qword ptr " : "dword ptr ")
		: letter == 'B' ? "byte ptr "
		: letter == 'U' ? "word ptr "
		: letter == 'D' ? "dword ptr "
				: "";
	char name[16];
	char *p = out + sprintf(out, "%s[", size);
	const char *plus = "";

	if (o->label >= 0)
		p += sprintf(p, "rip"), plus = "+";
	else if (o->reg != X86_NO_BASE)
		p += sprintf(p, "%s", golden_gpr(name, o->reg, 64)), plus = "+";
	if (o->label < 0 && o->index != X86_NO_INDEX) {
		p += sprintf(p, "%s%s*%u", plus,
		             letter == 's' ? golden_register(g, name, 'v', o->index) : golden_gpr(name, o->index, 64),
		             o->scale);
		plus = "+";
	}
	if (o->disp || !*plus)
		p += sprintf(p, "%s%d", o->disp < 0 ? "" : plus, o->disp);
	p += sprintf(p, "]");
	if (o->broadcast) {
		bool wide = x86_f_tuple(g->row->facts) == X86_T_FV64, half = x86_f_tuple(g->row->facts) == X86_T_HV;
		sprintf(p, "{1to%u}", (4u << g->l) / (wide || half ? 2 : 1));
	}
	return out;
}

static int64_t golden_imm(const struct golden *g, char letter)
{
	static const int64_t i[] = { 3, 0, 127, 128, 255, 85 }, j[] = { 3, -128, 127, -1, 0, 5 },
			     big[] = { 128, -129, INT32_MAX, INT32_MIN, 4096, 1000000 },
			     o[] = { 0x123456789abcdef0,     INT64_MIN, 0x80000000, 0xffffffff,
		                     (int64_t)INT32_MIN - 1, INT64_MAX };

	switch (letter) {
	case 'i': return i[g->counter % 6];
	case 'j': return j[g->counter % 6];
	case 'J': return big[g->counter % 6];
	case 'o': return o[g->counter % 6];
	default: return 1;
	}
}

/* --- one line */

struct golden_line {
	struct x86_operand o[4];
	unsigned mask;
	bool zeroing;
};

/* {vex3} where a swap of the operands or the store form would save the third byte: we encode what is written. */
static const char *golden_prefix(const struct golden *g, const struct golden_line *line)
{
	static const int8_t rm_slot[] = {
		[X86_F_MR] = 0,   [X86_F_RM] = 1,  [X86_F_RMI] = 1, [X86_F_MRI] = 0, [X86_F_RVM] = 2, [X86_F_RVMI] = 2,
		[X86_F_RVMR] = 2, [X86_F_RMV] = 1, [X86_F_MVR] = 0, [X86_F_VM] = 1,  [X86_F_VMI] = 1, [X86_F_REL] = 0
	};
	uint32_t f = g->row->facts;
	const struct x86_operand *rm = &line->o[rm_slot[g->row->form]];

	if (!(f & X86_HAS_VEX) || line->mask || g->l == 2)
		return "";
	for (int i = 0; i < 4; i++)
		if ((line->o[i].cls == X86_XMM && line->o[i].reg > 15) || line->o[i].broadcast)
			return "";
	if (f & X86_EVEX_FIRST)
		return g->evex ? "" : "{vex} ";
	return rm->cls == X86_XMM && rm->reg > 7 && !strchr(g->row->sig, 's') ? "{vex3} " : "";
}

/* Vectors of all lengths are kept as X86_XMM here: the spelling follows the letter. */
static void golden_emit(struct golden *g, const struct golden_line *line)
{
	char text[256], part[64], *p = text;
	const char *sig = g->row->sig;

	p += sprintf(p, "%s%s", golden_prefix(g, line), x86_op_name(g->row->op));
	for (int i = 0; sig[i]; i++) {
		const struct x86_operand *o = &line->o[i];
		p += sprintf(p, "%s", i ? ", " : " ");
		if (o->cls == X86_IMM)
			p += sprintf(p, "%lld", (long long)golden_imm(g, sig[i]));
		else
			p += sprintf(p, "%s",
			             o->cls == X86_MEM ? golden_memory(g, part, sig[i], o)
			                               : golden_register(g, part, sig[i], o->reg));
		if (i == 0 && line->mask)
			p += sprintf(p, " {k%u}%s", line->mask, line->zeroing ? "{z}" : "");
	}
	fprintf(g->list, "%s\n", text);
	fprintf(g->assembly, "%s\n", text);
	g->counter++;
}

/* --- which operands */

static bool golden_takes_memory(char letter)
{
	return letter == 'm' || letter == 's' || letter == 'p' || strchr("VHQEXWDGBUK", letter);
}

static bool golden_is_imm(char letter) { return strchr("ijJo1", letter); }

static bool golden_is_vector(char letter) { return strchr("vVhHqQeExX", letter); }

static enum x86_class golden_class(char letter)
{
	return golden_is_imm(letter)                             ? X86_IMM
	       : letter == 'm' || letter == 's' || letter == 'p' ? X86_MEM
	       : letter == 'k' || letter == 'K'                  ? X86_KREG
	       : letter == 't'                                   ? X86_TMM
	       : golden_is_vector(letter)                        ? X86_XMM
	                                                         : X86_GPR32;
}

/* Every operand a register of its own; in EVEX sections the first and the third vector lie above 15. */
static struct golden_line golden_default(const struct golden *g)
{
	struct golden_line line = { .mask = 0 };
	static const uint8_t low[] = { 1, 2, 3, 6 }, high[] = { 17, 2, 19, 22 };

	for (int i = 0; g->row->sig[i]; i++) {
		char letter = g->row->sig[i];
		line.o[i] = (struct x86_operand){
			.cls = (uint8_t)golden_class(letter), .index = X86_NO_INDEX, .scale = 1, .label = -1
		};
		line.o[i].reg = g->evex && golden_is_vector(letter) ? high[i] : low[i];
		if (letter == 'A')
			line.o[i].reg = 0;
		if (letter == 's')
			line.o[i].index = g->evex ? 20 : 6;
		if (letter == 'p')
			line.o[i].index = 7;
	}
	if (strchr(g->row->sig, 's') && g->evex)
		line.mask = 1;
	return line;
}

static const unsigned golden_registers[] = { 0, 4, 5, 7, 8, 12, 13, 15, 16, 31 };

static void golden_sweep_registers(struct golden *g)
{
	for (int i = 0; g->row->sig[i]; i++) {
		char letter = g->row->sig[i];
		if (golden_class(letter) == X86_MEM || letter == 'A')
			continue;
		for (unsigned r = 0; r < 10; r++) {
			struct golden_line line = golden_default(g);
			unsigned reg = golden_registers[r];
			if (golden_is_imm(letter) && r >= 6)
				break;
			if (reg > (golden_class(letter) == X86_KREG || letter == 't' ? 7u
			           : golden_is_vector(letter) && g->evex             ? 31u
			                                                             : 15u))
				continue;
			line.o[i].reg = (uint8_t)reg;
			golden_emit(g, &line);
		}
	}
}

static void golden_all_registers(struct golden *g, unsigned reg)
{
	struct golden_line line = golden_default(g);

	for (int i = 0; g->row->sig[i]; i++)
		if (golden_class(g->row->sig[i]) != X86_MEM && g->row->sig[i] != 'A' && g->row->sig[i] != 's')
			line.o[i].reg = (uint8_t)(golden_class(g->row->sig[i]) == X86_KREG ? reg & 7
			                          : g->row->sig[i] == 't'                  ? (reg + (unsigned)i) & 7
			                          : golden_is_vector(g->row->sig[i])       ? reg + (unsigned)i
			                                                                   : reg & 15);
	golden_emit(g, &line);
}

enum { NO = 0xff };
static const struct {
	uint8_t base, index, scale;
	bool rip;
	int32_t disp;
} golden_memories[] = {
	{ 0, NO, 1, 0, 0 },          { 4, NO, 1, 0, 0 },     { 5, NO, 1, 0, 0 },    { 12, NO, 1, 0, 0 },
	{ 13, NO, 1, 0, 0 },         { 7, NO, 1, 0, 0 },     { 8, NO, 1, 0, 0 },    { 15, NO, 1, 0, 0 },
	{ 0, NO, 1, 0, 1 },          { 1, NO, 1, 0, -1 },    { 4, NO, 1, 0, 127 },  { 5, NO, 1, 0, 128 },
	{ 12, NO, 1, 0, -128 },      { 13, NO, 1, 0, -129 }, { 8, NO, 1, 0, 4096 }, { 0, NO, 1, 0, INT32_MAX },
	{ 15, NO, 1, 0, INT32_MIN }, { 0, 1, 1, 0, 0 },      { 5, 6, 2, 0, 0 },     { 13, 14, 4, 0, 8 },
	{ 4, 5, 8, 0, 0 },           { 12, 12, 1, 0, 128 },  { 0, 15, 8, 0, -129 }, { 8, 0, 2, 0, 64 },
	{ NO, 1, 4, 0, 16 },         { NO, 9, 8, 0, -256 },  { 13, 13, 1, 0, 0 },   { 9, 13, 2, 0, 1 },
	{ 0, NO, 1, 1, 0 },          { 0, NO, 1, 1, 64 },    { 0, NO, 1, 1, -8 }
};
enum { GOLDEN_MEMORIES = sizeof golden_memories / sizeof golden_memories[0] };

static void golden_set_memory(struct golden *g, struct golden_line *line, int at, unsigned n)
{
	struct x86_operand *o = &line->o[at];
	static const uint8_t vsib_low[] = { 5, 4, 7, 0, 8, 12, 15 }, vsib_high[] = { 20, 16, 31, 4, 8, 0, 15 };

	o->cls = X86_MEM;
	o->reg = golden_memories[n].base;
	o->index = golden_memories[n].index;
	o->scale = golden_memories[n].scale;
	o->disp = golden_memories[n].disp;
	o->label = golden_memories[n].rip ? 0 : -1;
	if (g->row->sig[at] == 's') {
		o->label = -1;
		o->index = g->evex ? vsib_high[n % 7] : vsib_low[n % 7];
	}
	if (g->row->sig[at] == 'p') {
		o->label = -1;
		o->index = o->index == NO ? vsib_low[n % 7] == 4 ? 1 : vsib_low[n % 7] : o->index;
	}
}

static void golden_sweep_memory(struct golden *g, int at, unsigned count)
{
	for (unsigned n = 0; n < count; n++) {
		struct golden_line line = golden_default(g);
		golden_set_memory(g, &line, at, count == GOLDEN_MEMORIES ? n : (g->index * 8 + n) % GOLDEN_MEMORIES);
		golden_emit(g, &line);
		g->counter++;
	}
}

/* The edges of the scaled disp8, in the units of the row; with a broadcast these are elements. */
static void golden_sweep_disp8(struct golden *g, int at, bool broadcast)
{
	static const int32_t steps[] = { 1, -1, 127, 128, -128, -129 };
	unsigned vector = 16u << g->l, unit = 1;
	enum x86_tuple t = x86_f_tuple(g->row->facts);

	switch (t) {
	case X86_T_FV:
	case X86_T_FV64:
	case X86_T_FVM: unit = vector; break;
	case X86_T_HV:
	case X86_T_HVM: unit = vector / 2; break;
	case X86_T_QVM: unit = vector / 4; break;
	case X86_T_OVM: unit = vector / 8; break;
	default: unit = 1u << (t - X86_T_N1); break;
	}
	if (broadcast)
		unit = t == X86_T_FV64 ? 8 : 4;
	for (unsigned n = 0; n < 7; n++) {
		struct golden_line line = golden_default(g);
		golden_set_memory(g, &line, at, n);
		line.o[at].broadcast = broadcast;
		line.o[at].disp = n < 6 ? steps[n] * (int32_t)unit : (int32_t)unit / 2;
		golden_emit(g, &line);
	}
}

static void golden_masks(struct golden *g, int memory_at)
{
	struct golden_line line = golden_default(g);
	bool to_vector = golden_is_vector(g->row->sig[0]), gather = strchr(g->row->sig, 's');

	if (g->row->facts & X86_NO_MASK)
		return;
	line.mask = 7;
	golden_emit(g, &line);
	if (to_vector && !gather && line.o[0].cls != X86_MEM) {
		line.mask = 2;
		line.zeroing = true;
		golden_emit(g, &line);
		line.o[0].reg = 0;
		golden_emit(g, &line);
		line.zeroing = false;
	}
	if (memory_at >= 0) {
		line.mask = 5;
		golden_set_memory(g, &line, memory_at, 19);
		golden_emit(g, &line);
		line.zeroing = to_vector && !gather && line.o[0].cls != X86_MEM;
		golden_emit(g, &line);
	}
}

/* One row with one choice of widths: everything when full, else a few lines. */
static void golden_variant(struct golden *g, bool full)
{
	struct golden_line line = golden_default(g);
	enum x86_tuple t = x86_f_tuple(g->row->facts);
	bool evex_memory = g->evex && (g->row->facts & X86_HAS_EVEX),
	     all = full && (!golden_seen[g->row->form][g->evex] || strchr(g->row->sig, 'p'));
	int memory_at = -1;

	for (int i = 0; g->row->sig[i]; i++)
		if (golden_takes_memory(g->row->sig[i]))
			memory_at = i;
	if (full && g->row->sig[0])
		golden_sweep_registers(g);
	else
		golden_emit(g, &line);
	if (!strchr(g->row->sig, 'A') && g->row->sig[0]) {
		golden_all_registers(g, 11);
		if (g->evex && (g->row->facts & X86_HAS_EVEX))
			golden_all_registers(g, 27);
	}
	if (memory_at >= 0) {
		golden_sweep_memory(g, memory_at, all ? GOLDEN_MEMORIES : full ? 8 : 2);
		golden_seen[g->row->form][g->evex] |= all;
	}
	if (memory_at >= 0 && evex_memory) {
		golden_sweep_disp8(g, memory_at, false);
		if (t == X86_T_FV || t == X86_T_FV64 || t == X86_T_HV)
			golden_sweep_disp8(g, memory_at, true);
	}
	if (evex_memory)
		golden_masks(g, memory_at);
}

static void golden_row(struct golden *g)
{
	enum x86_l l = x86_f_l(g->row->facts);
	bool lengths = l == X86_L_LV || l == X86_L_LY || l == X86_L_LZ, widths = strpbrk(g->row->sig, "wWA") != NULL;
	unsigned first = l == X86_L_LY ? 1 : l == X86_L_LZ ? 2 : 0, last = !lengths ? first : g->evex ? 2 : 1;
	unsigned variants = last - first + 1, alternative = 0;

	while (alternative < g->index && g->row[-(int)alternative - 1].op == g->row->op)
		alternative++;
	fprintf(g->list, "= %s %u %s\n", golden_names[g->row->op], alternative, g->evex ? "evex" : "vex");
	for (g->l = first; g->l <= last; g->l++)
		for (g->w = 0; g->w <= widths; g->w++)
			golden_variant(g, g->l - first == g->index % variants);
}

void golden_all_rows(struct golden *g)
{
	for (g->index = 0; g->index < x86_row_count; g->index++) {
		g->row = &x86_rows[g->index];
		if (g->row->form == X86_F_REL)
			continue;
		bool mask_register = strpbrk(g->row->sig, "kK"), vector = g->row->facts & X86_HAS_VEX;
		g->evex = false;
		if (!mask_register && (vector || !(g->row->facts & X86_HAS_EVEX)))
			golden_row(g);
		g->evex = true;
		if (mask_register || (g->row->facts & X86_HAS_EVEX))
			golden_row(g);
	}
}

void golden_labels(FILE *out)
{
	static const char *const near_pool[] = {
		"lea rcx, [rip+%s]",
		"mov [rip+%s], r9",
		"vmovups ymm9, [rip+%s]",
		"vpshufd ymm1, [rip+%s], 27",
		"vcmpps ymm1, ymm2, [rip+%s], 1",
		"vblendvps ymm1, ymm2, [rip+%s], ymm3",
		"imul ecx, [rip+%s], 100000",
		"vfmadd231ps ymm1, ymm8, [rip+%s]",
		"mov dword ptr [rip+%s], 5",
		"vpinsrd xmm1, xmm2, [rip+%s], 2"
	};
	unsigned n = 0;

	fprintf(out, "start:\nlea rax, [rip+start]\n");
	for (unsigned r = 0; r < x86_row_count; r++) {
		if (x86_rows[r].form != X86_F_REL)
			continue;
		fprintf(out, "%s end\nback%u:\n.fill 130\n", x86_op_name(x86_rows[r].op), n);
		fprintf(out, "%s back%u\n", x86_op_name(x86_rows[r].op), n);
		n++;
	}
	for (unsigned i = 0; i < sizeof near_pool / sizeof near_pool[0]; i++) {
		fprintf(out, near_pool[i], "start");
		fprintf(out, "\n");
		fprintf(out, near_pool[i], "end");
		fprintf(out, "\n");
	}
	fprintf(out, ".fill 130\nend:\n");
}
