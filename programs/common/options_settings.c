/* programs/common/options_settings.c - options that do not stand on the command line: those of a file, a line each, and
 * those of the environment. What was given where it counts for more is not touched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loaders/files/file.h"
#include "programs/common/options.h"

enum { SETTINGS_MAX = 1 << 20, NAME_BYTES = 100, WHERE_BYTES = 300 };

extern char **environ;

/* Whether a row was given by what counts for more. */
static bool *copy_given(const struct option_program *p)
{
	bool *before = malloc((size_t)p->n_rows * sizeof *before);

	if (before)
		memcpy(before, p->given, (size_t)p->n_rows * sizeof *before);
	else
		options_complain(p, "no memory for the options");
	return before;
}

static bool is_listed(const char *names, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = names; at && *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == n && memcmp(at, name, n) == 0)
			return true;
	return false;
}

/* on: what a text says of a flag. */
static bool read_flag(const char *text, bool *on)
{
	*on = options_is_choice("1|true|on|yes|TRUE|ON|YES|True|enabled", text);
	return *on || options_is_choice("0|false|off|no|FALSE|OFF|NO|False|disabled", text);
}

static bool set(const struct option_program *p, const struct option_row *o, const char *value, bool inverse, bool split)
{
	bool on;

	if (o->kind == OPTION_LIST && split)
		return options_store_all(p, o, value);
	if (o->kind != OPTION_FLAG)
		return options_store(p, o, value);
	if (!read_flag(value, &on))
		return options_complain(p, "\"%.40s\" is neither true nor false", value);
	return on == inverse || options_store(p, o, "");
}

/* ---- the environment */

/* "JITRUN_API_KEY_FILE" for "api-key-file". */
static void name_variable(char out[NAME_BYTES], const char *prefix, const char *name)
{
	size_t n = (size_t)snprintf(out, NAME_BYTES, "%s%s", prefix, name);

	for (size_t i = strlen(prefix); i < n && i < NAME_BYTES; i++)
		out[i] = out[i] == '-' ? '_' : out[i] >= 'a' && out[i] <= 'z' ? (char)(out[i] - 32) : out[i];
}

static bool take_variable(struct option_program *p, const char *name, const struct option_row *o, bool inverse)
{
	const char *value = getenv(name);
	char where[WHERE_BYTES];

	snprintf(where, sizeof where, "%s: ", name);
	p->where = where;
	bool ok = set(p, o, value, inverse, true);
	p->where = NULL;
	return ok;
}

/* An empty variable is none. */
static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static bool from_environment(struct option_program *p, const struct option_settings *s, const bool *before)
{
	char name[NAME_BYTES];
	bool ok = true;

	for (int i = 0; ok && i < p->n_rows; i++) {
		const struct option_row *o = &p->row[i];
		if (o->kind == OPTION_GROUP || before[i] || is_listed(s->never, o->name))
			continue;
		name_variable(name, s->prefix, o->name);
		if (is_set(name))
			ok = take_variable(p, name, o, false);
	}
	bool *own = ok ? copy_given(p) : NULL;
	for (int i = 0; own && ok && i < s->n_variables; i++) {
		const struct option_variable *v = &s->variable[i];
		const struct option_row *o = options_find(p, v->row, strlen(v->row));
		if (o && is_set(v->name) && !own[o - p->row])
			ok = take_variable(p, v->name, o, v->inverse);
	}
	ok = ok && own;
	free(own);
	return ok;
}

/* ---- the file */

/* Without blanks at both ends, and without a pair of quotation marks around it. */
static char *trim(char *text, char *end, bool quotes)
{
	while (end > text && strchr(" \t\r", end[-1]))
		end--;
	*end = 0;
	text += strspn(text, " \t");
	size_t n = strlen(text);
	if (quotes && n >= 2 && strchr("\"'", *text) && text[n - 1] == *text) {
		text[n - 1] = 0;
		text++;
	}
	return text;
}

/* The row that a key names, in our words or those of other programs. */
static const struct option_row *find_row(const struct option_program *p, const char *key)
{
	const struct option_row *o = options_find(p, key, strlen(key));
	const struct option_foreign *f = o ? NULL : options_foreign(p, key, strlen(key));

	return f && f->row ? options_find(p, f->row, strlen(f->row)) : o;
}

static bool take_line(struct option_program *p, const struct option_settings *s, char *line, char *end,
                      const bool *before)
{
	char *text = trim(line, end, false), *equals = strchr(text, '=');
	char *value = equals ? trim(equals + 1, equals + 1 + strlen(equals + 1), true) : NULL;

	if (!*text || *text == '#' || *text == ';')
		return true;
	char *key = equals ? trim(text, equals, false) : text;
	if (*key == '[')
		return options_complain(p, "%.40s: there are no sections", key);
	const struct option_row *o = find_row(p, key);
	if (!o)
		return options_complain(p, "there is no option \"%.60s\"", key);
	if (is_listed(s->never, o->name))
		return options_complain(p, "%s stands on the command line alone", o->name);
	if (!value && o->kind != OPTION_FLAG)
		return options_complain(p, "%s needs a value: %s = %s", o->name, o->name, o->value);
	return before[o - p->row] || set(p, o, value ? value : "true", false, false);
}

static bool take_lines(struct option_program *p, const struct option_settings *s, const char *label, char *text,
                       const bool *before)
{
	char where[WHERE_BYTES];
	bool ok = true;
	int line = 1;

	for (char *end; ok && *text; text = end + 1, line++) {
		end = text + strcspn(text, "\n");
		bool last = !*end;
		*end = 0;
		snprintf(where, sizeof where, "%.200s:%d: ", label, line);
		p->where = where;
		ok = take_line(p, s, text, end, before);
		p->where = NULL;
		if (last)
			break;
	}
	return ok;
}

static bool from_file(struct option_program *p, const struct option_settings *s, const bool *before)
{
	struct file file = { 0 };
	struct error err = { 0 };
	bool ok = file_open(&file, s->file, &err) && file_text(&file, SETTINGS_MAX, &err);

	if (!ok)
		options_complain(p, "--config: %s", err.text);
	else if (memchr(file.base, 0, file.size))
		ok = options_complain(p, "--config: %s is no text", file.label);
	else if (!(p->settings = strndup((const char *)file.base, file.size)))
		ok = options_complain(p, "no memory for %s", file.label);
	ok = ok && take_lines(p, s, file.label, p->settings, before);
	file_close(&file);
	return ok;
}

bool options_settings(struct option_program *p, const struct option_settings *s)
{
	bool *before = copy_given(p), ok = before && from_environment(p, s, before);

	free(before);
	before = ok && s->file ? copy_given(p) : NULL;
	if (ok && s->file)
		ok = before && from_file(p, s, before);
	free(before);
	return ok;
}
