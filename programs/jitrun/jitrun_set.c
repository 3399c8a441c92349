/* programs/jitrun/jitrun_set.c - /set in a conversation: how the next answers are made and shown. See jitrun_chat.h. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "programs/jitrun/jitrun_chat.h"
#include "programs/jitrun/line_editor.h"
#include "programs/common/output.h"
#include "include/jitrun_grammar.h"
#include "include/jitrun_options.h"

enum { NAME_LENGTH_MAX = 64 };

/* Texts that options point to for as long as the program runs. */
static char *samplers_kept, *stop_kept;

static char *replace(char **kept, const char *text)
{
	char *copy = strdup(text);

	if (!copy) {
		jitrun_fail(&(jit_error){ .message = "no memory for the setting", .code = JIT_ERROR_MEMORY });
		return NULL;
	}
	free(*kept);
	return *kept = copy;
}

bool chat_switch(const char *word, bool *out)
{
	static const char *const words[] = { "off", "on", "false", "true", "no", "yes", "0", "1" };

	*out = true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasecmp(word, words[i]) == 0)
			return *out = i % 2, true;
	return !*word;
}

const char *chat_near(char out[100], const char *before, const char *typed, size_t n_typed, const char *const *names,
                      size_t n)
{
	unsigned best = 0;

	*out = 0;
	for (size_t i = 0; i < n; i++) {
		int length = (int)strcspn(names[i], " ");
		unsigned d = options_distance(typed, n_typed, names[i], (size_t)length);
		if (d && (!best || d < best)) {
			best = d;
			snprintf(out, 100, " (did you mean %s%.*s?)", before, length, names[i]);
		}
	}
	return out;
}

/* Of a word behind a setting that begins with "no". */
static const char *opposite(const char *word)
{
	bool on;

	return !chat_switch(word, &on) ? word : on ? "off" : "on";
}

static void say_switch(const char *what, bool on) { fprintf(stderr, "%s: %s.\n", what, on ? "on" : "off"); }

/* False: an error that says what is expected was printed. */
static bool take_switch(const char *what, const char *word, bool *out)
{
	char quoted[80];

	if (chat_switch(word, out))
		return true;
	fprintf(stderr, "%s is on or off, not \"%s\".\n", what, error_quote(quoted, sizeof quoted, word, strlen(word)));
	return false;
}

/* ---- how answers are shown and kept */

static void set_wrap(struct chat *c, const char *word)
{
	bool on;

	if (!take_switch("wrap", word, &on))
		return;
	c->run->wrap.uncut = !on;
	say_switch("Lines are cut between words", on);
}
static void set_no_wrap(struct chat *c, const char *word) { set_wrap(c, opposite(word)); }

static void set_history(struct chat *c, const char *word)
{
	bool on;

	(void)c;
	if (!take_switch("history", word, &on))
		return;
	if (on && opt.no_history)
		fprintf(stderr, "The history stays off: jitrun was begun with --no-history.\n");
	else if (!line_editor_keep(on) && on)
		fprintf(stderr, "The history stays off: there is no file for it, or no terminal.\n");
	else
		say_switch("What is typed is kept for later sessions", on);
}
static void set_no_history(struct chat *c, const char *word) { set_history(c, opposite(word)); }

static void set_stats(struct chat *c, const char *word)
{
	if (take_switch("verbose", word, &c->stats))
		say_switch("Statistics behind each answer", c->stats);
}
static void set_quiet(struct chat *c, const char *word)
{
	bool quiet;

	if (!take_switch("quiet", word, &quiet))
		return;
	c->stats = !quiet;
	say_switch("Statistics behind each answer", c->stats);
}

/* ---- what the model is told */

static void set_system(struct chat *c, const char *text)
{
	if (chat_set_system(c, text))
		fprintf(stderr, *text ? "The system message is set; the conversation goes on.\n"
		                      : "There is no system message any more; the conversation goes on.\n");
}

/* The one of n words that this is; NULL: none. */
static const char *one_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(word, words[i]) == 0)
			return words[i];
	return NULL;
}

/* Templates call the switch by either name. */
static void switch_reasoning(struct chat *c, bool on, const char *effort)
{
	const char *text = chat_template_of(c);
	json_t *v = json_pack("{s:b, s:b}", "enable_thinking", on, "thinking", on);

	if (!v || (effort && json_object_set_new(v, "reasoning_effort", json_string(effort)) != 0)) {
		json_decref(v);
		jitrun_fail(&(jit_error){ .message = "no memory for the setting", .code = JIT_ERROR_MEMORY });
		return;
	}
	json_decref(c->variables);
	c->variables = v;
	fprintf(stderr, "Reasoning: %s.\n", effort ? effort : on ? "on" : "off");
	if (text && !strstr(text, effort ? "reasoning_effort" : "thinking"))
		fprintf(stderr, "The chat template of this model has no switch for it%s.\n",
		        on || effort ? "" : "; what it begins is ended at once");
}

static void set_think(struct chat *c, const char *word)
{
	static const char *const shown[] = { "show", "dim", "hide" }, *const effort[] = { "low", "medium", "high" };
	char quoted[80];
	bool on;

	const char *how = one_of(word, shown, 3), *much = one_of(word, effort, 3);
	if (how) {
		opt.think = how;
		fprintf(stderr, "Reasoning is %s.\n",
		        how == shown[0]   ? "shown"
		        : how == shown[1] ? "shown, and dimmed"
		                          : "hidden");
	} else if (much) {
		switch_reasoning(c, true, much);
	} else if (chat_switch(word, &on)) {
		switch_reasoning(c, on, NULL);
	} else {
		fprintf(stderr, "think is on, off, low, medium, high, show, dim or hide, not \"%s\".\n",
		        error_quote(quoted, sizeof quoted, word, strlen(word)));
	}
}
static void set_no_think(struct chat *c, const char *word) { set_think(c, opposite(word)); }

static void set_format(struct chat *c, const char *word)
{
	const bool json = strcasecmp(word, "json") == 0;
	jit_error err = { 0 };

	if (!json && strcasecmp(word, "none") != 0) {
		fprintf(stderr, "format is json or none; --json-schema-file FILE gives a schema when jitrun begins.\n");
		return;
	}
	opt.json_schema_file = opt.regex = opt.gbnf = opt.gbnf_file = NULL;
	if (jit_session_set_grammar(c->run->session, JIT_GRAMMAR_NONE, NULL, 0, &err) != JIT_OK) {
		jitrun_fail(&err);
		return;
	}
	opt.additional = json; /* of members nothing was said */
	opt.json_schema = json ? "{\"type\":\"object\"}" : NULL;
	fprintf(stderr, json ? "Answers are JSON objects.\n" : "Answers are free text.\n");
}
static void set_no_format(struct chat *c, const char *word) { (void)word, set_format(c, "none"); }

/* ---- parameters */

static const struct {
	const char *type, *name, *kind, *alias;
} parameters[] = {
#define OPTION(type, field, kind, alias, words) { #type, #field, #kind, alias },
#include "runtime/model/option_rows.def"
#undef OPTION
	{ "jitrun", "stop", "", NULL },
	{ "jitrun", "n_predict", "", "num_predict" },
	{ "jitrun", "context", "", "num_ctx" },
};
enum { PARAMETERS = sizeof parameters / sizeof *parameters };

/* Lists, and how long they are, belong to the command line. */
static bool is_parameter(size_t i)
{
	return strcmp(parameters[i].type, "jitrun") == 0 ||
	       (strcmp(parameters[i].type, "jit_sampling") == 0 && strcmp(parameters[i].kind, "ADDRESS") != 0 &&
	        strncmp(parameters[i].name, "n_", 2) != 0);
}

/* In the form that names have here: small letters, no hyphens before them, and _ for those in them. */
static void as_name(char out[NAME_LENGTH_MAX], const char *word, size_t n)
{
	size_t to = 0;

	for (size_t i = strspn(word, "-"); i < n && to + 1 < NAME_LENGTH_MAX; i++)
		out[to++] = word[i] == '-' ? '_' : (char)tolower((unsigned char)word[i]);
	out[to] = 0;
}

static bool is_alias(const char *alias, const char *name)
{
	char own[NAME_LENGTH_MAX];

	if (alias)
		as_name(own, alias, strlen(alias));
	return alias && strcmp(own, name) == 0;
}

static const char *find_parameter(const char *name)
{
	for (size_t i = 0; i < PARAMETERS; i++)
		if (is_parameter(i) && (strcmp(parameters[i].name, name) == 0 || is_alias(parameters[i].alias, name)))
			return parameters[i].name;
	return NULL;
}

static bool set_predict(const char *value)
{
	char *end;

	errno = 0;
	long n = strtol(value, &end, 10);
	if (end == value || *end || errno || n < -1 || n > INT_MAX) {
		fprintf(stderr, "n_predict is a number of tokens, or -1 for as many as the answer takes.\n");
		return false;
	}
	opt.n = n;
	return true;
}

static bool set_stop(const char *value)
{
	if (!replace(&stop_kept, value))
		return false;
	opt.stop.value[0] = stop_kept;
	opt.stop.n = *value != 0;
	return true;
}

static bool set_sampling(struct chat *c, const char *name, const char *value)
{
	jit_sampling p = sampling_args_make(&opt.sampling);
	jit_error err = { 0 };
	char *kept = NULL, random[24];

	if (strcmp(name, "samplers") == 0) /* what is there is used until the new one was taken */
		value = kept = strdup(value);
	const bool seed = strcmp(name, "seed") == 0;
	if (seed && strcmp(value, "-1") == 0) {
		snprintf(random, sizeof random, "%ld", sampling_args_seed());
		value = random;
	}
	bool ok = value && jit_sampling_set(&p, name, value, &err) == JIT_OK;
	if (seed && (!ok || p.seed > LONG_MAX)) {
		snprintf(err.message, sizeof err.message, "seed: \"%.40s\" is not an integer in -1..%ld", value,
		         LONG_MAX);
		ok = false;
	}
	ok = ok && jit_session_set_sampling(c->run->session, &p, &err) == JIT_OK;
	if (ok)
		sampling_args_take(&opt.sampling, &p);
	else if (value)
		jitrun_fail(&err);
	if (ok && kept) {
		free(samplers_kept);
		samplers_kept = kept;
	} else {
		free(kept);
	}
	return ok;
}

/* What a person puts around a text with blanks is no part of it. */
static void without_quotes(char *value)
{
	size_t n = strlen(value);

	if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
		memmove(value, value + 1, n - 2);
		value[n - 2] = 0;
	}
}

/* typed: what the parameter was called. */
static void set_parameter(struct chat *c, const char *name, const char *typed, const char *text)
{
	char *value = strdup(text), quoted[200];

	if (!value)
		return;
	without_quotes(value);
	if (strcmp(name, "context") == 0) {
		fprintf(stderr, "The context has %d tokens; --context gives another size when jitrun begins.\n",
		        c->run->context);
	} else if (!*value && strcmp(name, "stop") != 0) {
		fprintf(stderr, "Which value? /set parameter %s VALUE\n", typed);
	} else if (strcmp(name, "stop") == 0        ? set_stop(value)
	           : strcmp(name, "n_predict") == 0 ? set_predict(value)
	                                            : set_sampling(c, name, value)) {
		if (strcmp(name, "seed") == 0)
			fprintf(stderr, "seed is %ld.\n", opt.sampling.seed);
		else
			fprintf(stderr, "%s is %s.\n", typed,
			        *value ? error_quote(quoted, sizeof quoted, value, strlen(value)) : "not set");
	}
	free(value);
}

/* ---- the command */

static void set_any_parameter(struct chat *c, const char *rest);

static const struct setting {
	const char *name;
	void (*set)(struct chat *c, const char *rest);
} settings[] = {
	{ "parameter", set_any_parameter }, { "system", set_system },      { "think", set_think },
	{ "nothink", set_no_think },        { "wrap", set_wrap },          { "nowrap", set_no_wrap },
	{ "wordwrap", set_wrap },           { "nowordwrap", set_no_wrap }, { "history", set_history },
	{ "nohistory", set_no_history },    { "format", set_format },      { "noformat", set_no_format },
	{ "verbose", set_stats },           { "quiet", set_quiet },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void say_unknown(const char *word, size_t n, bool parameter)
{
	const char *names[2 * PARAMETERS + SETTINGS];
	char near[100], quoted[80];
	size_t k = 0;

	for (size_t i = 0; i < PARAMETERS; i++) {
		if (!is_parameter(i))
			continue;
		names[k++] = parameters[i].name;
		if (parameters[i].alias)
			names[k++] = parameters[i].alias;
	}
	for (size_t i = 0; i < SETTINGS && !parameter; i++)
		names[k++] = settings[i].name;
	fprintf(stderr, "There is no %s \"%s\"%s. /set lists them.\n", parameter ? "parameter" : "setting",
	        error_quote(quoted, sizeof quoted, word, n), chat_near(near, "", word, n, names, k));
}

/* NAME VALUE, or NAME=VALUE. False: there is no such parameter. */
static bool try_parameter(struct chat *c, const char *rest, size_t n)
{
	char name[NAME_LENGTH_MAX];

	as_name(name, rest, n);
	const char *found = find_parameter(name), *value = rest + n + strspn(rest + n, " \t");
	value += *value == '=';
	if (found)
		set_parameter(c, found, name, value + strspn(value, " \t"));
	return found;
}

static void set_any_parameter(struct chat *c, const char *rest)
{
	const size_t n = strcspn(rest, " \t=");

	if (!*rest)
		fprintf(stderr, "Which one? /set parameter NAME VALUE\n");
	else if (!try_parameter(c, rest, n))
		say_unknown(rest, n, true);
}

static void list(void)
{
	fputs("/set NAME VALUE       how tokens are chosen; NAME is one of:\n", stderr);
	char names[1200] = "";
	size_t at = 0;
	for (size_t i = 0; i < PARAMETERS && at < sizeof names; i++)
		if (is_parameter(i) && strcmp(parameters[i].name, "context") != 0)
			at += (size_t)snprintf(names + at, sizeof names - at, " %s", parameters[i].name);
	output_lines(stderr, 4, "   %s", names);
	fputs("/set system TEXT      the system message; the conversation goes on\n"
	      "/set think on|off     whether the model reasons; or how much: low, medium, high\n"
	      "/set think show|dim|hide   how reasoning is shown\n"
	      "/set wrap on|off      whether lines are cut between words\n"
	      "/set history on|off   whether what is typed is kept for later sessions\n"
	      "/set format json|none whether answers are JSON objects\n"
	      "/set verbose on|off   statistics behind each answer\n",
	      stderr);
}

void chat_command_set(struct chat *c, const char *rest)
{
	const size_t n = strcspn(rest, " \t\n=");

	if (!*rest) {
		list();
		return;
	}
	for (size_t i = 0; i < SETTINGS; i++)
		if (strlen(settings[i].name) == n && strncmp(rest, settings[i].name, n) == 0 && rest[n] != '=') {
			const char *value = rest + n + strspn(rest + n, " \t");
			char *plain = settings[i].set == set_system ? strdup(value) : NULL;
			if (plain)
				without_quotes(plain);
			settings[i].set(c, plain ? plain : value);
			free(plain);
			return;
		}
	if (!try_parameter(c, rest, n))
		say_unknown(rest, n, false);
}
