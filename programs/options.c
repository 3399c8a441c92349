#include "programs/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static bool complain(const struct option_program *p, const char *format, const char *a, const char *b)
{
	char text[512], quoted[1024];

	snprintf(text, sizeof text, format, a, b);
	fprintf(stderr, "%s: %s\nTry '%s --help'.\n", p->name, error_quote(quoted, sizeof quoted, text, strlen(text)),
	        p->name);
	return false;
}

static const struct option_row *find_long(const struct option_program *p, const char *name, size_t n)
{
	for (int i = 0; i < p->n_rows; i++)
		if (p->row[i].kind != OPTION_GROUP && strlen(p->row[i].name) == n &&
		    memcmp(p->row[i].name, name, n) == 0)
			return &p->row[i];
	return NULL;
}

static const struct option_row *find_letter(const struct option_program *p, char c)
{
	for (int i = 0; i < p->n_rows; i++)
		if (p->row[i].kind != OPTION_GROUP && p->row[i].letter == c)
			return &p->row[i];
	return NULL;
}

/* Edit distance, for "did you mean"; names are short. */
static int distance(const char *a, const char *b)
{
	int prev[64], m = (int)strlen(b);
	if (m > 60)
		return 99;
	for (int j = 0; j <= m; j++)
		prev[j] = j;
	for (int i = 1; a[i - 1]; i++) {
		int diagonal = prev[0];
		prev[0] = i;
		for (int j = 1; j <= m; j++) {
			int cost = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = prev[j];
			if (prev[j] + 1 < cost)
				cost = prev[j] + 1;
			if (prev[j - 1] + 1 < cost)
				cost = prev[j - 1] + 1;
			prev[j] = cost;
		}
	}
	return prev[m];
}

static bool unknown(const struct option_program *p, const char *text, const char *name)
{
	const char *best = NULL;
	int least = 3;
	for (int i = 0; i < p->n_rows; i++) {
		int d = p->row[i].kind == OPTION_GROUP || strlen(name) > 60 ? 99 : distance(name, p->row[i].name);
		if (d < least) {
			least = d;
			best = p->row[i].name;
		}
	}
	return best ? complain(p, "unknown option %s; did you mean --%s?", text, best)
	            : complain(p, "unknown option %s", text, "");
}

static bool is_choice(const char *choices, const char *v)
{
	size_t n = strlen(v);
	for (const char *c = choices; n && *c; c += strcspn(c, "|"), c += *c == '|')
		if (strcspn(c, "|") == n && memcmp(c, v, n) == 0)
			return true;
	return false;
}

static bool store_number(const struct option_program *p, const struct option_row *o, const char *v)
{
	char *end, range[128];
	double d;

	errno = 0;
	long n = o->kind == OPTION_INT ? strtol(v, &end, 10) : 0;
	d = o->kind == OPTION_INT ? (double)n : strtod(v, &end);
	if (end == v || *end || errno || !(d >= o->low && d <= o->high)) {
		snprintf(range, sizeof range, "--%s: \"%.40s\" is not a%s between %.10g and %.10g", o->name, v,
		         o->kind == OPTION_INT ? " whole number" : " number", o->low, o->high);
		return complain(p, "%s%s", range, "");
	}
	if (o->kind == OPTION_INT)
		*(long *)o->target = n;
	else
		*(double *)o->target = d;
	return true;
}

static bool has_choices(const struct option_row *o)
{
	return o->kind == OPTION_CHOICE || o->kind == OPTION_OPEN_CHOICE ||
	       (o->kind == OPTION_LIST && strchr(o->value, '|'));
}

static bool store_in_list(const struct option_program *p, const struct option_row *o, const char *v)
{
	struct option_list *l = o->target;

	if (l->n == OPTION_LIST_MOST)
		return complain(p, "--%s is given too often: \"%s\" is one too many", o->name, v);
	l->value[l->n++] = v;
	return true;
}

static bool store(const struct option_program *p, const struct option_row *o, const char *v)
{
	if (has_choices(o) && o->kind != OPTION_OPEN_CHOICE && !is_choice(o->value, v)) {
		char text[400];
		snprintf(text, sizeof text, "--%s: \"%.40s\" is not one of %s", o->name, v, o->value);
		return complain(p, "%s%s", text, "");
	}
	switch (o->kind) {
	case OPTION_FLAG: *(bool *)o->target = true; return true;
	case OPTION_LIST: return store_in_list(p, o, v);
	case OPTION_INT:
	case OPTION_FLOAT: return store_number(p, o, v);
	default: *(const char **)o->target = v; return true;
	}
}

bool options_parse(struct option_program *p, int argc, char **argv)
{
	bool only_operands = false;

	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *value = NULL;
		const struct option_row *o;
		if (only_operands || a[0] != '-' || a[1] == 0) {
			if (p->n_operands == p->max_operands)
				return complain(p, "\"%s\" is one argument too many", a, "");
			p->operand[p->n_operands++] = a;
			continue;
		}
		if (strcmp(a, "--") == 0) {
			only_operands = true;
			continue;
		}
		if (a[1] == '-') {
			size_t n = strcspn(a + 2, "=");
			o = find_long(p, a + 2, n);
			if (!o)
				return unknown(p, a, a + 2);
			if (a[2 + n] == '=')
				value = a + 3 + n;
			if (value && o->kind == OPTION_FLAG)
				return complain(p, "--%s takes no value", o->name, "");
		} else {
			o = find_letter(p, a[1]);
			if (!o)
				return unknown(p, a, a + 1);
			if (a[2] && o->kind == OPTION_FLAG)
				return complain(p, "-%.1s takes no value, and short options are given one by one",
				                a + 1, "");
			value = a[2] ? a + 2 : NULL;
		}
		if (o->kind != OPTION_FLAG && !value) {
			if (i + 1 >= argc)
				return complain(p, "%s needs a value: %s", a, o->value);
			value = argv[++i];
		}
		if (!store(p, o, value))
			return false;
	}
	return true;
}

static void wrap(FILE *out, const char *text, int indent, int width)
{
	int at = indent;
	while (*text) {
		int n = (int)strcspn(text, " ");
		if (at > indent && at + 1 + n > width) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', out);
			at++;
		}
		fwrite(text, 1, (size_t)n, out);
		at += n;
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

/* What is explained on the left, its help beside or below it on the right. */
static void explain(FILE *out, const char *left, const char *help)
{
	int n = fprintf(out, "%s", left);

	if (n > 28)
		fprintf(out, "\n%*s", 30, "");
	else
		fprintf(out, "%*s", 30 - n, "");
	wrap(out, help, 30, 100);
}

void options_help(const struct option_program *p, FILE *out)
{
	char left[512];

	fprintf(out, "Usage: %s %s\n%s.\n", p->name, p->usage, p->purpose);
	if (p->n_commands)
		fprintf(out, "\nCommands:\n");
	for (int i = 0; i < p->n_commands; i++) {
		const struct option_command *c = &p->command[i];
		snprintf(left, sizeof left, "  %s %s%s%s", p->name, c->name, *c->name && *c->operands ? " " : "",
		         c->operands);
		explain(out, left, c->help);
	}
	for (int i = 0; i < p->n_rows; i++) {
		const struct option_row *o = &p->row[i];
		if (o->kind == OPTION_GROUP) {
			fprintf(out, "\n%s:\n", o->name);
			continue;
		}
		snprintf(left, sizeof left, "  %c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
		         o->letter ? "," : " ", o->name, o->kind == OPTION_FLAG ? "" : " ",
		         o->kind == OPTION_FLAG ? "" : o->value);
		explain(out, left, o->help);
	}
}

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

void options_man(const struct option_program *p, FILE *out)
{
	char upper[64];
	size_t n = 0;
	for (; p->name[n] && n + 1 < sizeof upper; n++)
		upper[n] = (char)toupper((unsigned char)p->name[n]);
	upper[n] = 0;
	fprintf(out, ".TH %s 1\n.ad l\n.SH NAME\n%s \\- ", upper, p->name);
	roff(out, p->purpose);
	fprintf(out, "\n.SH SYNOPSIS\n.B %s\n", p->name);
	roff(out, p->usage);
	fputs("\n.SH DESCRIPTION\n", out);
	roff(out, p->description);
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
		const struct option_row *o = &p->row[i];
		if (o->kind == OPTION_GROUP) {
			fprintf(out, ".SS %s\n", o->name);
			continue;
		}
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
	if (p->examples) {
		fputs(".SH EXAMPLES\n.nf\n", out);
		roff(out, p->examples);
		fputs("\n.fi\n", out);
	}
}

void options_completion(const struct option_program *p, FILE *out)
{
	fprintf(out,
	        "# bash completion for %s; made from its option table\n_%s()\n{\n\tlocal "
	        "cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\"\n\tcase \"$prev\" in\n",
	        p->name, p->name);
	for (int i = 0; i < p->n_rows; i++) {
		const struct option_row *o = &p->row[i];
		if (o->kind == OPTION_GROUP || o->kind == OPTION_FLAG)
			continue;
		fprintf(out, "\t--%s", o->name);
		if (o->letter)
			fprintf(out, "|-%c", o->letter);
		if (has_choices(o)) {
			fputs(") COMPREPLY=($(compgen -W \"", out);
			for (const char *c = o->value; *c; c++)
				fputc(*c == '|' ? ' ' : *c, out);
			fputs("\" -- \"$cur\")); return;;\n", out);
		} else if (o->kind == OPTION_FILE) {
			fputs(") COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n", out);
		} else {
			fputs(") COMPREPLY=(); return;;\n", out);
		}
	}
	fputs("\tesac\n\tif [[ \"$cur\" == -* ]]; then\n\t\tCOMPREPLY=($(compgen -W \"", out);
	for (int i = 0; i < p->n_rows; i++)
		if (p->row[i].kind != OPTION_GROUP)
			fprintf(out, "--%s ", p->row[i].name);
	fprintf(out, "\" -- \"$cur\"))\n\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n\tfi\n");
	if (p->n_commands) {
		fputs("\t((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W \"", out);
		for (int i = 0; i < p->n_commands; i++)
			fprintf(out, *p->command[i].name ? "%s " : "%s", p->command[i].name);
		fputs("\" -- \"$cur\"))\n", out);
	}
	fprintf(out, "}\ncomplete -o filenames -F _%s %s\n", p->name, p->name);
}

bool options_about(const struct option_program *p, const struct option_about *about, const char *version, int *status)
{
	if (about->version)
		printf("%s %s\n", p->name, version);
	else if (about->help)
		options_help(p, stdout);
	else if (about->man)
		options_man(p, stdout);
	else if (about->completion)
		options_completion(p, stdout);
	else
		return false;
	*status = 0;
	return true;
}
