/* tests/encoders/rdna_golden_text.c - spells an RDNA instruction the way the target's assembler wants it.
 *
 * Owns: mnemonics' suffixes, operands, modifiers as text. Reads from the table which operands a row takes, never bytes.
 */
#include "tests/encoders/rdna_golden.h"

#include <stdarg.h>

#include "encoders/rdna_form.h"

struct text {
	char *p, *end;
	bool comma;
};

static void say(struct text *t, const char *format, ...)
{
	va_list a;

	va_start(a, format);
	int n = vsnprintf(t->p, (size_t)(t->end - t->p), format, a);
	va_end(a);
	t->p += n < t->end - t->p ? n : t->end - t->p - 1;
}

static void separate(struct text *t)
{
	say(t, "%s", t->comma ? ", " : " ");
	t->comma = true;
}

static void say_register(struct text *t, const struct rdna_operand *o)
{
	static const char *const special[2][8] = {
		{ "vcc_lo", "vcc_hi", "null", "m0", "exec_lo", "exec_hi", "src_scc" },
		{ "vcc", "", "null", "", "exec", "" }
	};
	unsigned reg = o->reg, n = o->n;
	int which = reg == RDNA_VCC_LO    ? 0
	            : reg == RDNA_VCC_HI  ? 1
	            : reg == RDNA_NULL    ? 2
	            : reg == RDNA_M0      ? 3
	            : reg == RDNA_EXEC_LO ? 4
	            : reg == RDNA_EXEC_HI ? 5
	            : reg == RDNA_SCC     ? 6
	                                  : -1;
	const char *name = reg >= RDNA_V0 ? "v" : reg >= RDNA_TTMP0 ? "ttmp" : "s";
	unsigned first = reg >= RDNA_V0 ? reg - RDNA_V0 : reg >= RDNA_TTMP0 ? reg - RDNA_TTMP0 : reg;

	if (which >= 0)
		say(t, "%s", special[n > 1][which]);
	else if (n == 1)
		say(t, "%s%u", name, first);
	else
		say(t, "%s[%u:%u]", name, first, first + n - 1);
}

static void say_operand(struct text *t, const struct rdna_match *m, char letter, const struct rdna_operand *o,
                        int branch)
{
	bool packed = m->row->enc == RDNA_E_VOP3P && !(m->row->facts & RDNA_F_MIX);
	int32_t v = (int32_t)o->value;

	separate(t);
	if (o->kind == RDNA_LABEL) {
		say(t, "%d", branch);
	} else if (o->kind != RDNA_REG) {
		if (strchr("bfuk", letter) && (v > 64 || v < -16))
			say(t, "0x%x", v & 0xffff);
		else if (letter == 'i' || (v >= -16 && v <= 64))
			say(t, "%d", v);
		else
			say(t, "0x%x", (uint32_t)v);
	} else {
		if (!packed && (o->mods & RDNA_NEG))
			say(t, "-");
		if (!packed && (o->mods & RDNA_ABS))
			say(t, "|");
		say_register(t, o);
		if (!packed && (o->mods & RDNA_ABS))
			say(t, "|");
	}
}

/* "name:[a,b,c]" of one modifier over the sources, with the destination behind them when it may have it. */
static void say_list(struct text *t, const struct rdna_match *m, const char *name, unsigned mod, bool dst,
                     unsigned usual)
{
	const struct rdna_ins *ins = m->ins;
	unsigned bits = 0;

	for (unsigned i = 0; i < m->n_src; i++)
		bits |= (ins->s[i].mods & mod ? 1u : 0u) << i;
	if (dst && (ins->d[0].mods & mod))
		bits |= 1u << m->n_src;
	bits ^= usual ? (1u << m->n_src) - 1 : 0;
	if (bits == (usual ? (1u << m->n_src) - 1 : 0))
		return;
	say(t, " %s:[", name);
	for (unsigned i = 0; i < m->n_src + (unsigned)dst; i++)
		say(t, "%s%u", i ? "," : "", bits >> i & 1);
	say(t, "]");
}

static void say_modifiers(struct text *t, const struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;
	bool packed = m->row->enc == RDNA_E_VOP3P, mix = m->row->facts & RDNA_F_MIX;

	say_list(t, m, "op_sel", RDNA_HIGH, !packed && (!strstr(m->row->names, "permlane") && m->n_src > 1), 0);
	if (packed)
		say_list(t, m, "op_sel_hi", RDNA_FLIP, false, !mix);
	if (packed && !mix) {
		say_list(t, m, "neg_lo", RDNA_NEG, false, 0);
		say_list(t, m, "neg_hi", RDNA_ABS, false, 0);
	}
	if (ins->clamp)
		say(t, " clamp");
	if (ins->omod)
		say(t, " %s", ins->omod == 1 ? "mul:2" : ins->omod == 2 ? "mul:4" : "div:2");
}

static void say_dpp(struct text *t, const struct rdna_dpp *d)
{
	unsigned c = d->ctrl, n = c & 15;

	if (d->kind == RDNA_DPP8) {
		say(t, " dpp8:[");
		for (unsigned i = 0; i < 8; i++)
			say(t, "%s%u", i ? "," : "", d->lanes >> 3 * i & 7);
		say(t, "]%s", d->fetch_inactive ? " fi:1" : "");
		return;
	}
	if (c <= 0xff)
		say(t, " quad_perm:[%u,%u,%u,%u]", c & 3, c >> 2 & 3, c >> 4 & 3, c >> 6 & 3);
	else if (c == RDNA_ROW_MIRROR || c == RDNA_ROW_HALF_MIRROR)
		say(t, " row_%smirror", n ? "half_" : "");
	else
		say(t, " row_%s:%u",
		    c < 0x110   ? "shl"
		    : c < 0x120 ? "shr"
		    : c < 0x130 ? "ror"
		    : c < 0x160 ? "share"
		                : "xmask",
		    n);
	say(t, " row_mask:0x%x bank_mask:0x%x%s%s", d->row_mask, d->bank_mask, d->bound_zero ? " bound_ctrl:1" : "",
	    d->fetch_inactive ? " fi:1" : "");
}

static void say_cache(struct text *t, const struct rdna_match *m)
{
	static const char *const scopes[] = { "CU", "SE", "DEV", "SYS" };
	static const char *const hints[] = { "RT", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT", "BYPASS" };
	static const char *const stores[] = { "RT", "NT", "HT", "RT_WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB" };
	static const char *const atomics[] = { "RT", "RETURN", "NT", "NT_RETURN", "CASCADE_RT", "", "CASCADE_NT", "" };
	const struct rdna_ins *ins = m->ins;
	bool atomic = m->row->sig[0] == '?', returns = atomic && ins->d[0].kind;
	unsigned th = ins->th | returns;

	if (m->gen == RDNA_GFX12) {
		if (th && atomic)
			say(t, " th:TH_ATOMIC_%s", atomics[th & 7]);
		else if (th == RDNA_TH_LU && ins->scope == RDNA_SCOPE_SYS)
			say(t, " th:TH_%s_BYPASS", m->n_dst ? "LOAD" : "STORE");
		else if (th)
			say(t, " th:TH_%s_%s", m->n_dst ? "LOAD" : "STORE", m->n_dst ? hints[th & 7] : stores[th & 7]);
		if (ins->scope)
			say(t, " scope:SCOPE_%s", scopes[ins->scope & 3]);
		return;
	}
	say(t, "%s%s%s", ins->cache & RDNA_GLC || returns ? " glc" : "", ins->cache & RDNA_SLC ? " slc" : "",
	    ins->cache & RDNA_DLC ? " dlc" : "");
}

static void say_scalar_memory(struct text *t, const struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;

	separate(t);
	say_register(t, &ins->s[0]);
	if (m->n_src > 1) {
		say(t, ", %d, ", ins->offset);
		if (ins->saddr.kind)
			say_register(t, &ins->saddr);
		else
			say(t, "null");
		say(t, ", %u", ins->s[1].value);
	} else if (ins->saddr.kind) {
		say(t, ", ");
		say_register(t, &ins->saddr);
		if (ins->offset)
			say(t, " offset:%d", ins->offset);
	} else {
		say(t, ", %d", ins->offset);
	}
}

static void say_flat_address(struct text *t, const struct rdna_ins *ins)
{
	separate(t);
	if (ins->s[0].kind)
		say_register(t, &ins->s[0]);
	else
		say(t, "off");
}

static void say_flat_rest(struct text *t, const struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;

	if (m->row->enc != RDNA_E_FLAT && m->n_src) {
		separate(t);
		if (ins->saddr.kind)
			say_register(t, &ins->saddr);
		else
			say(t, "off");
	}
	if (ins->offset)
		say(t, " offset:%d", ins->offset);
	say_cache(t, m);
}

static void say_ds_offsets(struct text *t, const struct rdna_match *m)
{
	const struct rdna_ins *ins = m->ins;

	if (m->row->facts & RDNA_F_TWO)
		say(t, " offset0:%d offset1:%d", ins->offset, ins->offset1);
	else if (ins->offset)
		say(t, " offset:%d", ins->offset);
}

static void say_instruction(struct text *t, const struct rdna_case *c, const struct rdna_ins *ins, const char *prefix)
{
	struct rdna_match m = { .row = &rdna_rows[ins->op], .ins = ins, .gen = c->gen, .op = ins->op };
	enum rdna_enc e = m.row->enc;
	const char *name = rdna_op_name(ins->op, c->gen);

	rdna_letters(&m);
	t->comma = false;
	say(t, "%s%s%s%s", prefix, *prefix ? name + 2 : name, ins->e64 ? "_e64" : "",
	    ins->e64 && ins->dpp.kind ? "_dpp" : "");
	for (unsigned i = 0; i < m.n_dst; i++)
		if (ins->d[i].kind)
			say_operand(t, &m, m.dst[i], &ins->d[i], 0);
	for (unsigned i = 0; i < m.n_src; i++) {
		if (m.src[i] != '@' && m.src[i] != '#') {
			if (e != RDNA_E_SMEM)
				say_operand(t, &m, m.src[i], &ins->s[i], c->branch);
		} else if (e == RDNA_E_SMEM) {
			say_scalar_memory(t, &m);
		} else {
			say_flat_address(t, ins);
		}
	}
	if (*prefix)
		return;
	if (rdna_is_flat(e))
		say_flat_rest(t, &m);
	else if (e == RDNA_E_SMEM)
		say_cache(t, &m);
	else if (e == RDNA_E_DS)
		say_ds_offsets(t, &m);
	else if (rdna_is_vector(e))
		say_modifiers(t, &m);
	if (ins->dpp.kind)
		say_dpp(t, &ins->dpp);
}

/* The halves of a dual instruction leave out v_cndmask's mask, which is always vcc. */
static void drop_mask(struct text *t, const struct rdna_ins *ins)
{
	if (ins->op != RDNA_V_CNDMASK_B32)
		return;
	t->p -= strlen(", vcc_lo");
	*t->p = 0;
}

void rdna_golden_text(const struct rdna_case *c, char out[400])
{
	struct text t = { out, out + 400, false };

	*out = 0;
	say_instruction(&t, c, &c->x, c->dual ? "v_dual_" : "");
	if (!c->dual)
		return;
	drop_mask(&t, &c->x);
	say(&t, " :: ");
	say_instruction(&t, c, &c->y, "v_dual_");
	drop_mask(&t, &c->y);
}
