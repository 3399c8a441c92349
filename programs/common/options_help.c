/* programs/common/options_help.c - what a program says of its options: --help, --help-all, --version and the man page.
 */
#include <ctype.h>
#include <string.h>

#include "programs/common/options.h"
#include "programs/common/output.h"
#include "programs/common/version.h"

enum { LEFT = 26, NARROW = 60, CHOICES_MAX = 24 };

/* Up to the next space; of what is wider than a line, up to the last mark between names that fits. */
static int word_length(const char *text, int max)
{
	int n = (int)strcspn(text, " "), k = max;

	while (n > max && k > 0 && !strchr(";,|", text[k - 1]))
		k--;
	return n > max && k > 0 ? k : n;
}

static void wrap(FILE *out, const char *text, int indent, int columns)
{
	int at = indent;

	while (*text) {
		int n = word_length(text, columns - indent);
		if (at > indent && at + 1 + n > columns) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent && text[-1] == ' ') {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, (size_t)n, out);
		at += n;
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

/* What is explained on the left, behind two spaces, and its help beside or below it on the right. */
static void explain(FILE *out, const char *left, const char *help, int columns)
{
	int n = (int)strlen(left), indent = columns < NARROW ? 8 : LEFT;

	if (n > columns) {
		fputs("  ", out);
		wrap(out, left + 2, 4, columns);
		fprintf(out, "%*s", indent, "");
	} else if (n > indent - 2) {
		fprintf(out, "%s\n%*s", left, indent, "");
	} else {
		fprintf(out, "%s%*s", left, indent - n, "");
	}
	wrap(out, help, indent, columns);
}

/* Whether its choices are too many to stand beside its name. */
static bool has_many_choices(const struct option_row *o)
{
	return options_has_choices(o) && strlen(o->value) > CHOICES_MAX;
}

static void explain_row(FILE *out, const struct option_row *o, int columns)
{
	char left[512], help[2048];
	const char *value = o->kind == OPTION_FLAG ? "" : has_many_choices(o) ? "NAME" : o->value;
	size_t at = (size_t)snprintf(help, sizeof help, "%s", o->help);

	if (has_many_choices(o)) {
		at += (size_t)snprintf(help + at, sizeof help - at, "; one of: ");
		for (const char *c = o->value; *c && at < sizeof help - 3; c++) {
			help[at++] = *c == '|' ? ',' : *c;
			if (*c == '|')
				help[at++] = ' ';
		}
		help[at] = 0;
	}
	snprintf(left, sizeof left, "  %c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
	         o->letter ? "," : " ", o->name, *value ? " " : "", value);
	explain(out, left, help, columns);
}

static bool is_everyday(const struct option_program *p, const struct option_row *o)
{
	size_t n = strlen(o->name);

	if (!p->everyday)
		return true;
	for (const char *at = p->everyday; *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == n && memcmp(at, o->name, n) == 0)
			return true;
	return false;
}

static void list_rows(const struct option_program *p, bool all, int columns, FILE *out)
{
	char text[200];
	int left_out = 0;

	if (!all)
		fputs("\nOptions:\n", out);
	for (int i = 0; i < p->n_rows; i++) {
		const struct option_row *o = &p->row[i];
		if (o->kind == OPTION_GROUP && all)
			fprintf(out, "\n%s:\n", o->name);
		else if (o->kind != OPTION_GROUP && (all || is_everyday(p, o)))
			explain_row(out, o, columns);
		else
			left_out += o->kind != OPTION_GROUP;
	}
	if (left_out) {
		snprintf(text, sizeof text, "%s --help-all lists the other %d options, and man %s explains them.",
		         p->name, left_out, p->name);
		fputc('\n', out);
		wrap(out, text, 0, columns);
	}
}

void options_help(const struct option_program *p, bool all, int columns, FILE *out)
{
	char left[512];

	snprintf(left, sizeof left, "Usage: %s %s", p->name, p->usage);
	wrap(out, left, 0, columns);
	snprintf(left, sizeof left, "%s.", p->purpose);
	wrap(out, left, 0, columns);
	if (p->n_commands)
		fprintf(out, "\nCommands:\n");
	for (int i = 0; i < p->n_commands; i++) {
		const struct option_command *c = &p->command[i];
		snprintf(left, sizeof left, "  %s %s%s%s", p->name, c->name, *c->name && *c->operands ? " " : "",
		         c->operands);
		explain(out, left, c->help, columns);
	}
	list_rows(p, all || !p->everyday, columns, out);
}

/* ---- the man page */

/* roff: a leading dot or quote would be a request, a backslash an escape, a plain minus a hyphen; lists without spaces
 * may break. */
static void roff(FILE *out, const char *s)
{
	bool line_start = true;
	for (; *s; s++) {
		if (line_start && (*s == '.' || *s == '\''))
			fputs("\\&", out);
		if (*s == '\\')
			fputs("\\e", out);
		else if (*s == '-')
			fputs("\\-", out);
		else
			fputc(*s, out);
		if ((*s == '|' || *s == ',') && s[1] > ' ')
			fputs("\\:", out);
		line_start = *s == '\n';
	}
}

static void man_row(const struct option_row *o, FILE *out)
{
	fputs(".TP\n", out);
	if (o->letter)
		fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
	fputs("\\fB\\-\\-", out);
	roff(out, o->name);
	fputs("\\fR", out);
	if (o->kind != OPTION_FLAG) {
		fputs(" \\fI", out);
		roff(out, o->value);
		fputs("\\fR", out);
	}
	fputc('\n', out);
	roff(out, o->help);
	fputs(".\n", out);
}

static void man_names(const char *names, FILE *out)
{
	for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ') {
		int n = (int)strcspn(at, " ");
		char name[64];
		snprintf(name, sizeof name, "%.*s", n, at);
		fputs(at == names ? "\\fB\\-" : ", \\fB\\-", out);
		fputs(n > 1 && at != names ? "\\-" : "", out);
		roff(out, name);
		fputs("\\fR", out);
	}
}

static void man_foreign(const struct option_program *p, FILE *out)
{
	fputs(".SH NAMES OF OTHER PROGRAMS\n"
	      "Names that llama.cpp, ollama and others use are understood, with one dash or two. "
	      "Those that change nothing here are named in a note, "
	      "and those that jitrun cannot do are refused with what to do instead.\n",
	      out);
	for (int i = 0; i < p->n_foreign; i++) {
		const struct option_foreign *f = &p->foreign[i];
		if (f->kind != OPTION_SAME || !options_find(p, f->row, strlen(f->row)))
			continue;
		fputs(".TP\n", out);
		man_names(f->names, out);
		fputs("\nthe same as \\fB\\-\\-", out);
		roff(out, f->row);
		fputs("\\fR.\n", out);
	}
}

static void man_section(const char *name, const char *text, FILE *out)
{
	if (text)
		fprintf(out, ".SH %s\n%s\n", name, text);
}

static void man_head(const struct option_program *p, const char *version, FILE *out)
{
	char upper[64];
	size_t n = 0;

	for (; p->name[n] && n + 1 < sizeof upper; n++)
		upper[n] = (char)toupper((unsigned char)p->name[n]);
	upper[n] = 0;
	fprintf(out, ".TH %s 1 \"%s\" \"jitrun %s\" \"User Commands\"\n.ad l\n.SH NAME\n%s \\- ", upper, version_day,
	        version, p->name);
	roff(out, p->purpose);
	fprintf(out, "\n.SH SYNOPSIS\n.B %s\n", p->name);
	roff(out, p->usage);
	fputs("\n.SH DESCRIPTION\n", out);
	roff(out, p->description);
}

void options_man(const struct option_program *p, const char *version, FILE *out)
{
	man_head(p, version, out);
	fputs(p->n_commands ? "\n.SH COMMANDS\n" : "\n", out);
	for (int i = 0; i < p->n_commands; i++) {
		const struct option_command *c = &p->command[i];
		fprintf(out, ".TP\n\\fB%s%s%s\\fR \\fI", p->name, *c->name ? " " : "", c->name);
		roff(out, c->operands);
		fputs("\\fR\n", out);
		roff(out, c->help);
		fputs(".\n", out);
	}
	fputs(".SH OPTIONS\n", out);
	for (int i = 0; i < p->n_rows; i++) {
		if (p->row[i].kind == OPTION_GROUP)
			fprintf(out, ".SS %s\n", p->row[i].name);
		else
			man_row(&p->row[i], out);
	}
	if (p->n_foreign)
		man_foreign(p, out);
	man_section("EXIT STATUS", p->exit_status, out);
	man_section("ENVIRONMENT", p->environment, out);
	man_section("FILES", p->files, out);
	if (p->examples) {
		fputs(".SH EXAMPLES\n.nf\n", out);
		roff(out, p->examples);
		fputs("\n.fi\n", out);
	}
	man_section("SEE ALSO", p->see_also, out);
}

/* ---- what is asked of every program */

bool options_about(const struct option_program *p, const struct option_about *about, const char *version, int *status)
{
	if (about->version)
		version_print(p->name, version, stdout);
	else if (about->help || about->help_all)
		options_help(p, about->help_all, output_columns(stdout), stdout);
	else if (about->man)
		options_man(p, version, stdout);
	else if (about->completion)
		options_completion(p, about->completion, stdout);
	else
		return false;
	*status = 0;
	return true;
}
