/* tests/encoders/rdna_golden_file.c - the golden file of the RDNA encoder: the cases, as an assembler encodes them. */
#include "tests/encoders/rdna_golden.h"

#include "tests/encoders/rdna_assembler.h"
#include "tests/encoders/rdna_golden_vary.h"

struct sheet {
	struct rdna_sheet *lines;
	enum rdna_gen gen;
	bool absent;
};

static void sheet_line(void *ctx, const struct rdna_case *c)
{
	struct sheet *s = ctx;
	char text[400];

	if (c->gen != s->gen || c->absent != s->absent)
		return;
	rdna_golden_text(c, text);
	rdna_sheet_add(s->lines, text);
}

static void sheet_fill(struct sheet *s)
{
	rdna_sheet_clear(s->lines);
	rdna_golden_each(sheet_line, s);
}

struct merge {
	FILE *out;
	const struct rdna_sheet *lines;
	unsigned at;
	enum rdna_gen gen;
};

static void merge_line(void *ctx, const struct rdna_case *c)
{
	struct merge *m = ctx;
	char text[400];

	if (c->gen != m->gen)
		return;
	rdna_golden_text(c, text);
	fprintf(m->out, "%s;%s;%s\n", rdna_golden_target[c->gen], text, c->absent ? "-" : m->lines->hex[m->at++]);
}

/* Newer assemblers take gfx10's signed dot products for gfx11's mixed ones. */
static bool other_spelling(const char *text)
{
	return strncmp(text, "v_dot4_i32_i8 ", 14) == 0 || strncmp(text, "v_dot8_i32_i4 ", 14) == 0;
}

/* Every line refused, or every line taken; why names the first that is not. */
static bool sheet_judge(const struct rdna_sheet *s, const char *target, bool absent, char *why, unsigned cap)
{
	for (unsigned i = 0; i < s->n; i++)
		if ((strcmp(s->hex[i], "-") == 0) != absent && !(absent && other_spelling(s->text[i])))
			return snprintf(why, cap, "%s %s %s", target,
			                absent ? "takes, though the table calls it absent," : "refuses", s->text[i]),
			       false;
	return true;
}

/* Every target of the generation must give the bytes of the one that stands for it. */
static bool judge_targets(const char *assembler, const struct rdna_sheet *s, enum rdna_gen gen, char *why, unsigned cap)
{
	static const char *const more[RDNA_GEN_COUNT][6] = {
		{ "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036" },
		{ "gfx1101", "gfx1102", "gfx1103" },
		{ "gfx1151" },
		{ "gfx1201" }
	};
	struct rdna_sheet other = { 0 };
	bool ok = true;

	for (unsigned i = 0; i < s->n; i++)
		rdna_sheet_add(&other, s->text[i]);
	for (unsigned i = 0; ok && i < 6 && more[gen][i]; i++) {
		ok = rdna_sheet_assemble(&other, assembler, more[gen][i], why, cap);
		for (unsigned k = 0; ok && k < s->n; k++)
			if (strcmp(s->hex[k], other.hex[k]) != 0) {
				snprintf(why, cap, "%s and %s disagree about %s", rdna_golden_target[gen], more[gen][i],
				         s->text[k]);
				ok = false;
			}
	}
	rdna_sheet_clear(&other);
	return ok;
}

static bool write_generation(FILE *out, const char *assembler, enum rdna_gen gen, char *why, unsigned cap)
{
	struct rdna_sheet lines = { 0 };
	struct sheet s = { .lines = &lines, .gen = gen, .absent = true };
	const char *target = rdna_golden_target[gen];
	bool ok = true;

	sheet_fill(&s);
	ok = rdna_sheet_assemble(&lines, assembler, target, why, cap) && sheet_judge(&lines, target, true, why, cap);
	if (ok) {
		s.absent = false;
		sheet_fill(&s);
		ok = rdna_sheet_assemble(&lines, assembler, target, why, cap) &&
		     sheet_judge(&lines, target, false, why, cap) && judge_targets(assembler, &lines, gen, why, cap);
	}
	if (ok)
		rdna_golden_each(merge_line, &(struct merge){ out, &lines, 0, gen });
	rdna_sheet_clear(&lines);
	return ok;
}

bool rdna_golden_write(FILE *out, const char *assembler, char *why, unsigned cap)
{
	for (int gen = 0; gen < RDNA_GEN_COUNT; gen++)
		if (!write_generation(out, assembler, (enum rdna_gen)gen, why, cap))
			return false;
	return true;
}
