/* tests/encoders/rdna_golden.c - which RDNA instructions are tried.
 *
 * Owns: the choice of operands. Every row meets, operand by operand, a few values of each class in every generation;
 * the first row of each encoding and operand list meets all of them, as the rows behind it share its code (in gfx11.5
 * only where gfx11 lacks the row, as nothing else differs).
 */
#include "tests/encoders/rdna_golden.h"

#include "encoders/rdna_form.h"
#include "tests/encoders/rdna_golden_vary.h"

const char *const rdna_golden_target[RDNA_GEN_COUNT] = { "gfx1030", "gfx1100", "gfx1150", "gfx1200" };

/* --- rows */

/* Would this value break a rule that needs the other operands (constant bus, literals beside K, matrix overlap)? */
static bool clashes(const struct each *e)
{
	struct rdna_match m = {
		.row = e->m.row, .ins = &e->c.x, .gen = e->c.gen, .op = e->m.op, .opcode = e->m.opcode, .branch = -1
	};
	const char *why = rdna_check(&m);

	/* versions of the assembler disagree about the upper vector registers here */
	if (strstr(m.row->names, "v_cvt_pk_f32_") && e->c.x.s[0].reg >= RDNA_V0 + 128)
		return true;
	return why &&
	       (strstr(why, "special register") || strstr(why, "constant bus") || strstr(why, "only one literal") ||
	        strstr(why, "overlap") || strstr(why, "only the short") || strstr(why, "source 1 must"));
}

static void vary_operand(struct each *e, bool source, unsigned i, char letter)
{
	struct rdna_operand o[40], *slot = source ? &e->c.x.s[i] : &e->c.x.d[i];
	unsigned n = rdna_candidates(e, source, letter, o), small = n < 3 ? n : 3;

	for (unsigned k = 0; k < n; k++) {
		bool chosen = e->full;
		for (unsigned j = 0; j < small && !chosen; j++)
			chosen = k == (e->counter + j * (n / small)) % n;
		if (!chosen)
			continue;
		rdna_base(e);
		*slot = o[k];
		if (e->m.row->sig[0] == '?' && e->c.x.s[1].kind)
			e->c.x.d[0] = source ? e->c.x.d[0] : o[k];
		if (!clashes(e))
			rdna_tell(e);
	}
	e->counter++;
	rdna_base(e);
}

static void vary_row(struct each *e)
{
	rdna_base(e);
	if (e->c.branches) {
		static const int distance[] = { 0, 1, -1, 32767, -32768 };
		for (unsigned i = 0; i < 5; i++) {
			e->c.branch = distance[i];
			rdna_tell(e);
		}
	} else {
		rdna_tell(e);
	}
	for (unsigned i = 0; i < e->m.n_dst; i++)
		vary_operand(e, false, i, e->m.dst[i]);
	for (unsigned i = 0; i < e->m.n_src; i++)
		if (!strchr("@#L", e->m.src[i]))
			vary_operand(e, true, i, e->m.src[i]);
	rdna_base(e);
	rdna_vary_memory(e);
	rdna_base(e);
	if (rdna_is_vector(e->m.row->enc))
		rdna_vary_modifiers(e);
}

static bool first_of_kind(enum rdna_op op, enum rdna_gen gen)
{
	for (int i = (int)op - 1; i >= 0; i--)
		if (rdna_has((enum rdna_op)i, gen) && rdna_rows[i].enc == rdna_rows[op].enc &&
		    strcmp(rdna_rows[i].sig, rdna_rows[op].sig) == 0)
			return false;
	return true;
}

/* --- dual instructions */

struct rdna_ins rdna_half(enum rdna_op op, unsigned d, struct rdna_operand a, unsigned b)
{
	struct rdna_ins x = { .op = op, .d = { rdna_v(d) }, .s = { a } };
	struct rdna_match m = { .row = &rdna_rows[op], .gen = RDNA_GFX11 };

	rdna_letters(&m);
	for (unsigned i = 1; i < m.n_src; i++)
		x.s[i] = m.src[i] == 'K' ? rdna_imm(0x12345678) : m.src[i] == 'c' ? rdna_s(RDNA_VCC_LO) : rdna_v(b);
	return x;
}

static void vary_dual(struct each *e, enum rdna_op x, enum rdna_op y)
{
	const struct rdna_operand o[] = { rdna_v(0),       rdna_v(255),         rdna_s(7),        rdna_s(105),
		                          rdna_imm(0),     rdna_imm(-16),       rdna_float(2.0f), rdna_imm(0x12345678),
		                          rdna_s(RDNA_M0), rdna_s(RDNA_VCC_LO), rdna_s(RDNA_NULL) };
	unsigned n = sizeof o / sizeof o[0];

	for (unsigned i = 0; i < 3; i++) {
		unsigned k = e->counter++;
		e->c.x = rdna_half(x, 8 + k % 2, o[k % n], 3 + k % 4);
		e->c.y = rdna_half(y, 253 + (k + e->c.x.d[0].reg) % 2 * 0 + (e->c.x.d[0].reg % 2 ? 1 : 0),
		                   i == 1 ? o[k / 2 % n] : rdna_v(5 + k % 3 * 4), 252 + (k + 2) % 4);
		struct rdna r;
		rdna_init(&r, e->c.gen);
		rdna_put_dual(&r, &e->c.x, &e->c.y);
		if (!r.error)
			rdna_tell(e);
		rdna_free(&r);
	}
}

static void each_dual(struct each *e)
{
	bool second;

	e->c.dual = true;
	for (int x = 0; x < RDNA_OP_COUNT; x++) {
		if (rdna_dual_opcode((enum rdna_op)x, e->c.gen, &second) < 0 || second)
			continue;
		for (int y = 0; y < RDNA_OP_COUNT; y++)
			if (rdna_dual_opcode((enum rdna_op)y, e->c.gen, NULL) >= 0)
				vary_dual(e, (enum rdna_op)x, (enum rdna_op)y);
	}
	e->c.dual = false;
}

/* What the generation lacks, spelled as a generation that has it would. */
static void each_absent(struct each *e, enum rdna_op op)
{
	enum rdna_gen gen = e->c.gen;

	e->c.absent = true;
	for (e->m.gen = 0; !rdna_has(op, e->m.gen); e->m.gen++)
		;
	rdna_letters(&e->m);
	rdna_base(e);
	e->c.gen = gen;
	rdna_tell(e);
	e->c.absent = false;
}

void rdna_golden_each(void (*f)(void *ctx, const struct rdna_case *c), void *ctx)
{
	struct each e = { .f = f, .ctx = ctx };

	for (int gen = 0; gen < RDNA_GEN_COUNT; gen++) {
		for (int op = 0; op < RDNA_OP_COUNT; op++) {
			const struct rdna_row *row = &rdna_rows[op];
			e.c.gen = (enum rdna_gen)gen;
			e.m = (struct rdna_match){ .row = row,
				                   .gen = e.c.gen,
				                   .op = (enum rdna_op)op,
				                   .opcode = row->opcode[gen == RDNA_GFX10_3 ? 0
				                                         : gen == RDNA_GFX12 ? 2
				                                                             : 1] };
			if (!rdna_has((enum rdna_op)op, e.c.gen)) {
				each_absent(&e, (enum rdna_op)op);
				continue;
			}
			rdna_letters(&e.m);
			e.full = first_of_kind((enum rdna_op)op, e.c.gen) &&
			         !(gen == RDNA_GFX11_5 && rdna_has((enum rdna_op)op, RDNA_GFX11));
			vary_row(&e);
		}
		each_dual(&e);
	}
}
