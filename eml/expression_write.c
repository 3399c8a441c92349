/* eml/expression_write.c - expressions as text, C and LaTeX. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eml/expression.h"

/* How tightly a part holds together: what it may stand beside without parentheses. */
enum { SUM = 1, PRODUCT, SIGNED, POWER, ATOM };

struct writer {
	const struct expression *e;
	const char *const *names;
	enum expression_form form;
	FILE *out;
};

static unsigned holds(const struct node *n, enum expression_form form)
{
	switch (n->op) {
	case OP_NUMBER: return n->number < 0 || signbit(n->number) ? SIGNED : ATOM;
	case OP_NEG: return SIGNED;
	case OP_ADD:
	case OP_SUB: return SUM;
	case OP_MUL: return PRODUCT;
	case OP_DIV: return form == EXPRESSION_LATEX ? ATOM : PRODUCT;
	case OP_POW: return form == EXPRESSION_C ? ATOM : POWER;
	case OP_EXP: return form == EXPRESSION_LATEX ? POWER : ATOM;
	default: return ATOM;
	}
}

/* The shortest digits that are read as this number again. */
static void write_number(const struct writer *w, double v)
{
	char text[40], *exponent;

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	if (w->form == EXPRESSION_C && strspn(text, "-0123456789") == strlen(text))
		strcat(text, ".0");
	if (w->form == EXPRESSION_LATEX && (exponent = strchr(text, 'e')) != NULL) {
		fprintf(w->out, "%.*s \\cdot 10^{%d}", (int)(exponent - text), text, atoi(exponent + 1));
		return;
	}
	fputs(text, w->out);
}

static void write_name(const struct writer *w, uint32_t variable)
{
	const char *name = w->names[variable];

	if (w->form != EXPRESSION_LATEX || !name[1]) {
		fputs(name, w->out);
		return;
	}
	fputs("\\mathrm{", w->out);
	for (; *name; name++)
		fprintf(w->out, *name == '_' ? "\\%c" : "%c", *name);
	fputc('}', w->out);
}

static void write_part(const struct writer *w, uint32_t at, unsigned tight);

static void write_in(const struct writer *w, const char *before, uint32_t at, const char *after)
{
	fputs(before, w->out);
	write_part(w, at, 0);
	fputs(after, w->out);
}

static void write_power(const struct writer *w, const struct node *n)
{
	if (w->form == EXPRESSION_C) {
		write_in(w, "pow(", n->a, ", ");
		write_in(w, "", n->b, ")");
		return;
	}
	write_part(w, n->a, ATOM);
	if (w->form == EXPRESSION_LATEX) {
		write_in(w, "^{", n->b, "}");
		return;
	}
	fputc('^', w->out);
	write_part(w, n->b, SIGNED);
}

static void write_function(const struct writer *w, const struct node *n)
{
	const char *name = operation_form[n->op].text;
	const bool latex = w->form == EXPRESSION_LATEX;

	if (latex && n->op == OP_EXP) {
		write_in(w, "e^{", n->a, "}");
	} else if (latex && n->op == OP_SQRT) {
		write_in(w, "\\sqrt{", n->a, "}");
	} else if (n->op == OP_EML && w->form == EXPRESSION_C) {
		write_in(w, "(exp(", n->a, ")");
		write_in(w, " - log(", n->b, "))");
	} else if (n->op == OP_EML) {
		write_in(w, latex ? "\\operatorname{eml}\\left(" : "eml(", n->a, ", ");
		write_in(w, "", n->b, latex ? "\\right)" : ")");
	} else {
		if (latex && (n->op == OP_ASIN || n->op == OP_ACOS || n->op == OP_ATAN))
			fprintf(w->out, "\\arc%s", name + 1);
		else
			fprintf(w->out, "%s%s", latex ? "\\" : "",
			        w->form == EXPRESSION_C && n->op == OP_LN ? "log" : name);
		write_in(w, latex ? "\\left(" : "(", n->a, latex ? "\\right)" : ")");
	}
}

static void write_constant(const struct writer *w, enum operation op)
{
	static const char *const text[3][3] = {
		{ "pi", "e", "i" }, { "3.141592653589793", "2.718281828459045", "I" }, { "\\pi", "e", "i" }
	};

	fputs(text[w->form][op - OP_PI], w->out);
}

static void write_operator(const struct writer *w, const struct node *n, unsigned own)
{
	const bool latex = w->form == EXPRESSION_LATEX, tight = n->op == OP_MUL || n->op == OP_DIV;

	if (latex && n->op == OP_DIV) {
		write_in(w, "\\frac{", n->a, "}");
		write_in(w, "{", n->b, "}");
		return;
	}
	write_part(w, n->a, own);
	fprintf(w->out, latex && n->op == OP_MUL ? " \\cdot " : tight ? "%s" : " %s ", operation_form[n->op].text);
	write_part(w, n->b, own + 1);
}

static void write_part(const struct writer *w, uint32_t at, unsigned tight)
{
	const struct node *n = &w->e->node[at];
	const unsigned own = holds(n, w->form);
	const bool latex = w->form == EXPRESSION_LATEX, parentheses = own < tight;

	if (parentheses)
		fputs(latex ? "\\left(" : "(", w->out);
	switch (n->op) {
	case OP_NUMBER: write_number(w, n->number); break;
	case OP_VARIABLE: write_name(w, n->a); break;
	case OP_PI:
	case OP_E:
	case OP_I: write_constant(w, n->op); break;
	case OP_NEG:
		fputc('-', w->out);
		write_part(w, n->a, SIGNED);
		break;
	case OP_ADD:
	case OP_SUB:
	case OP_MUL:
	case OP_DIV: write_operator(w, n, own); break;
	case OP_POW: write_power(w, n); break;
	default: write_function(w, n); break;
	}
	if (parentheses)
		fputs(latex ? "\\right)" : ")", w->out);
}

void expression_write(const struct expression *e, const char *const *names, enum expression_form form, FILE *out)
{
	write_part(&(struct writer){ e, names, form, out }, expression_root(e), 0);
}
