/* programs/common/options_completion.c - completion in bash, zsh and fish, from the option table.
 *
 * bash breaks words at = and :, and takes an answer for the last piece alone; file names it completes itself, because
 * only it knows how they were quoted. The other two know words and quotes.
 */
#include <string.h>

#include "programs/common/options.h"

/* First the whole word and the option before it, from the line itself. */
static const char bash_head[] =
	"	local line=${COMP_LINE:0:COMP_POINT} word= before= c= quote= i reply option value= lead=\n"
	"	for ((i = 0; i < ${#line}; i++)); do\n"
	"		c=${line:i:1}\n"
	"		if [[ $c == '\\' && $quote != \"'\" ]]; then\n"
	"			((i++))\n"
	"			word+=${line:i:1}\n"
	"		elif [[ -n $quote ]]; then\n"
	"			if [[ $c == \"$quote\" ]]; then quote=; else word+=$c; fi\n"
	"		elif [[ $c == [\\'\\\"] ]]; then\n"
	"			quote=$c\n"
	"		elif [[ $c == [$' \\t'] ]]; then\n"
	"			[[ -n $word ]] && before=$word\n"
	"			word=\n"
	"		else\n"
	"			word+=$c\n"
	"		fi\n"
	"	done\n"
	"	option=$before value=$word\n"
	"	if [[ $word == --*=* ]]; then\n"
	"		option=${word%%=*} value=${word#*=} lead=$option=\n"
	"	fi\n"
	"	COMPREPLY=()\n"
	"	reply=\n"
	"	case $option in\n";

/* Then its answer. Nothing in COMPREPLY means file names, which readline completes. */
static const char bash_choose[] =
	"	if [[ -z $reply && $word == -* && -z $lead ]]; then\n"
	"		reply='%s'\n"
	"	fi\n"
	"	[[ -z $reply ]] && return\n"
	"	[[ $reply == none ]] && compopt +o default 2>/dev/null && return\n"
	"	local cut=${word%%\"${word##*[:=]}\"}\n"
	"	[[ $COMP_WORDBREAKS == *:* ]] || [[ $cut != *: ]] || cut=\n"
	"	[[ $COMP_WORDBREAKS == *=* ]] || [[ $cut != *= ]] || cut=\n"
	"	local whole\n"
	"	for whole in $(compgen -W \"$reply\" -- \"$value\"); do\n"
	"		whole=$lead$whole\n"
	"		COMPREPLY+=(\"${whole#\"$cut\"}\")\n"
	"	done\n"
	"	compopt +o default 2>/dev/null\n"
	"}\n";

static void print_choices(const char *value, const char *escape_colon, FILE *out)
{
	for (const char *c = value; *c; c++)
		if (*c == '|')
			fputc(' ', out);
		else if (*c == ':')
			fputs(escape_colon, out);
		else
			fputc(*c, out);
}

static void bash_row(const struct option_row *o, FILE *out)
{
	if (o->kind == OPTION_GROUP || o->kind == OPTION_FLAG)
		return;
	fprintf(out, "\t--%s", o->name);
	if (o->letter)
		fprintf(out, "|-%c", o->letter);
	if (options_has_choices(o)) {
		fputs(") reply='", out);
		print_choices(o->value, ":", out);
		fputs("' ;;\n", out);
	} else {
		fputs(o->kind == OPTION_FILE ? ") return ;;\n" : ") reply=none ;;\n", out);
	}
}

static void bash(const struct option_program *p, FILE *out)
{
	char names[8192];
	size_t at = 0;

	fprintf(out, "# bash completion for %s; made from its option table\n_%s()\n{\n%s", p->name, p->name, bash_head);
	for (int i = 0; i < p->n_rows; i++)
		bash_row(&p->row[i], out);
	fputs("\t*) [[ -n $lead ]] && reply=none ;;\n\tesac\n", out);
	names[0] = 0;
	for (int i = 0; i < p->n_rows; i++)
		if (p->row[i].kind != OPTION_GROUP && at < sizeof names - 80)
			at += (size_t)snprintf(names + at, sizeof names - at, "%s--%s", at ? " " : "", p->row[i].name);
	if (p->n_commands) {
		fputs("\tif ((COMP_CWORD == 1)) && [[ $word != -* ]]; then\n\t\tmapfile -t COMPREPLY < <(compgen -W '",
		      out);
		for (int i = 0; i < p->n_commands; i++)
			fprintf(out, *p->command[i].name ? "%s " : "%s", p->command[i].name);
		fputs("' -- \"$word\"\n\t\t\tcompgen -f -- \"$word\")\n\t\tcompopt -o filenames 2>/dev/null\n"
		      "\t\t[[ -n $word && ${#COMPREPLY[@]} -gt 0 && -z $(compgen -W '",
		      out);
		for (int i = 0; i < p->n_commands; i++)
			fprintf(out, *p->command[i].name ? "%s " : "%s", p->command[i].name);
		fputs("' -- \"$word\") ]] && COMPREPLY=()\n\t\treturn\n\tfi\n", out);
	}
	fprintf(out, bash_choose, names);
	fprintf(out, "complete -o bashdefault -o default -F _%s %s\n", p->name, p->name);
}

/* ---- zsh */

/* What stands in single quotes and brackets: brackets and colons escaped, quotes doubled up. */
static void zsh_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", out);
		else if (strchr("[]:\\", *text))
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void zsh_row(const struct option_row *o, FILE *out)
{
	const char *equals = o->kind == OPTION_FLAG ? "" : "=";

	if (o->kind == OPTION_GROUP)
		return;
	for (int letter = 0; letter < 1 + (o->letter != 0); letter++) {
		fputs("\t\t'", out);
		if (o->kind == OPTION_LIST)
			fputc('*', out);
		else if (o->letter)
			fprintf(out, "(-%c --%s)", o->letter, o->name);
		if (letter)
			fprintf(out, "-%c%s[", o->letter, *equals ? "+" : "");
		else
			fprintf(out, "--%s%s[", o->name, equals);
		zsh_text(o->help, out);
		fputc(']', out);
		if (o->kind == OPTION_FILE) {
			fputs(":file:_files", out);
		} else if (options_has_choices(o)) {
			fputs(":value:(", out);
			print_choices(o->value, "\\:", out);
			fputc(')', out);
		} else if (o->kind != OPTION_FLAG) {
			fputc(':', out);
			zsh_text(o->value, out);
			fputs(": ", out);
		}
		fputs("' \\\n", out);
	}
}

static void zsh(const struct option_program *p, FILE *out)
{
	fprintf(out, "#compdef %s\n# zsh completion for %s; made from its option table\n", p->name, p->name);
	if (p->n_commands) {
		fprintf(out, "_%s_first()\n{\n\tlocal -a commands=(\n", p->name);
		for (int i = 0; i < p->n_commands; i++) {
			if (!*p->command[i].name)
				continue;
			fprintf(out, "\t\t'%s:", p->command[i].name);
			zsh_text(p->command[i].help, out);
			fputs("'\n", out);
		}
		fprintf(out,
		        "\t)\n\t_alternative 'files:file:_files' \"commands:command:{_describe command commands}\"\n"
		        "}\n");
	}
	fprintf(out, "_%s()\n{\n\t_arguments -s -S \\\n", p->name);
	for (int i = 0; i < p->n_rows; i++)
		zsh_row(&p->row[i], out);
	if (p->n_commands)
		fprintf(out, "\t\t'1: :_%s_first' \\\n", p->name);
	fputs("\t\t'*:file:_files'\n}\n", out);
	fprintf(out, "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n\t_%s \"$@\"\nelse\n\tcompdef _%s %s\nfi\n",
	        p->name, p->name, p->name);
}

/* ---- fish */

static void fish_text(const char *text, FILE *out)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (strchr("'\\", *text))
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

static void fish_row(const struct option_program *p, const struct option_row *o, FILE *out)
{
	if (o->kind == OPTION_GROUP)
		return;
	fprintf(out, "complete -c %s -l %s", p->name, o->name);
	if (o->letter)
		fprintf(out, " -s %c", o->letter);
	fputs(o->kind == OPTION_FLAG ? "" : o->kind == OPTION_FILE ? " -r -F" : " -x", out);
	if (options_has_choices(o)) {
		fputs(" -a '", out);
		print_choices(o->value, ":", out);
		fputc('\'', out);
	}
	fputs(" -d ", out);
	fish_text(o->help, out);
	fputc('\n', out);
}

static void fish(const struct option_program *p, FILE *out)
{
	fprintf(out, "# fish completion for %s; made from its option table\n", p->name);
	for (int i = 0; i < p->n_commands; i++) {
		if (!*p->command[i].name)
			continue;
		fprintf(out, "complete -c %s -n '__fish_is_nth_token 1' -a %s -d ", p->name, p->command[i].name);
		fish_text(p->command[i].help, out);
		fputc('\n', out);
	}
	for (int i = 0; i < p->n_rows; i++)
		fish_row(p, &p->row[i], out);
}

void options_completion(const struct option_program *p, const char *shell, FILE *out)
{
	if (strcmp(shell, "zsh") == 0)
		zsh(p, out);
	else if (strcmp(shell, "fish") == 0)
		fish(p, out);
	else
		bash(p, out);
}
