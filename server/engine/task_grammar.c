/* server/engine/task_grammar.c - the form that an answer must have, as requests ask for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "include/jitrun_grammar.h"
#include "runtime/session/session.h"
#include "server/request/fields.h"
#include "server/engine/task.h"

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

bool task_set_grammar(struct task *t, int kind, const char *text, const char *field, struct refusal *r)
{
	free(t->grammar_text);
	t->grammar = kind;
	t->grammar_field = field;
	t->grammar_text = text ? strdup(text) : NULL;
	return t->grammar_text || no_memory(r);
}

int task_grammar_kind(const struct task *t)
{
	const bool schema = t->grammar == JIT_GRAMMAR_JSON_SCHEMA || t->grammar == JIT_GRAMMAR_CALL;

	return schema && t->additional ? t->grammar | JIT_GRAMMAR_ADDITIONAL : t->grammar;
}

static bool set_schema(struct task *t, json_t *schema, const char *field, struct refusal *r)
{
	char *text = json_write(json_incref(schema));
	bool ok = task_set_grammar(t, JIT_GRAMMAR_JSON_SCHEMA, text, field, r);

	free(text);
	return ok;
}

/* Behind "#": "/anyOf/K/properties/NAME", or the same of an array's items. Which function, and where the rest begins.
 */
static const char *into_function(const char *pointer, unsigned long *k)
{
	static const char items[] = "/items", any[] = "/anyOf/", properties[] = "/properties/";
	char *end;

	if (strncmp(pointer, items, strlen(items)) == 0)
		pointer += strlen(items);
	if (strncmp(pointer, any, strlen(any)) != 0)
		return NULL;
	*k = strtoul(pointer + strlen(any), &end, 10);
	if (strncmp(end, properties, strlen(properties)) != 0) /* of all that it takes */
		return end + strcspn(end, ":");
	end += strlen(properties);
	return end + strcspn(end, "/:");
}

void task_blame_grammar(const struct task *t, const char *message, char param[80], char why[512])
{
	const char *at = t->grammar_paths && !t->grammar_named ? strchr(message, '#') : NULL;
	unsigned long k = 0;
	const char *rest = at ? into_function(at + 1, &k) : NULL;

	snprintf(param, 80, "%s", t->grammar_field);
	snprintf(why, 512, "%s", message);
	const char *path = json_string_value(json_array_get(t->grammar_paths, k));
	if (!path || (!t->grammar_named && !rest))
		return;
	snprintf(param, 80, "%s", path);
	if (rest)
		snprintf(why, 512, "%.*s#%s", (int)(at - message), message, rest);
}

static bool is_schema(const json_t *v, const char *name, struct refusal *r)
{
	return json_is_object(v) || json_is_boolean(v) ||
	       refuse(r, 400, name, "%s is no JSON Schema: neither an object nor true or false", name);
}

/* ---- values by their kind: field is the request's */

static bool take_schema(struct task *t, json_t *v, const char *field, struct refusal *r)
{
	return is_schema(v, field, r) && set_schema(t, v, field, r);
}

/* A schema, or its text. */
static bool take_schema_text(struct task *t, json_t *v, const char *field, struct refusal *r)
{
	struct error e = { 0 };
	const size_t n = json_string_length(v);

	if (!json_is_string(v))
		return take_schema(t, v, field, r);
	json_t *schema = json_read_digits(json_string_value(v), n, n, field, &e);
	if (!schema)
		return refuse(r, e.code == ERROR_MEMORY ? 503 : 400, field, "%s", e.text);
	bool ok = fields_are_whole(schema, field, r) && take_schema(t, schema, field, r);
	json_decref(schema);
	return ok;
}

static bool take_text(struct task *t, const json_t *v, int kind, const char *field, struct refusal *r)
{
	const char *text = json_string_value(v);

	if (!text || strlen(text) != json_string_length(v))
		return refuse(r, 400, field, "%s is %s, expected a text without NUL", field,
		              text ? "a text with a NUL" : json_kind(v));
	return task_set_grammar(t, kind, text, field, r);
}

static bool take_regex(struct task *t, json_t *v, const char *field, struct refusal *r)
{
	return take_text(t, v, JIT_GRAMMAR_REGEX, field, r);
}

static bool take_rules(struct task *t, json_t *v, const char *field, struct refusal *r)
{
	return take_text(t, v, JIT_GRAMMAR_GBNF, field, r);
}

/* A text as a rule's. */
static void add_literal(struct bytes *rules, const json_t *text)
{
	const char *p = json_string_value(text);

	bytes_text(rules, "\"");
	for (size_t i = 0; i < json_string_length(text); i++)
		if ((unsigned char)p[i] < 0x20 || p[i] == '"' || p[i] == '\\' || p[i] == 0x7f)
			bytes_print(rules, "\\x%02X", (unsigned char)p[i]);
		else
			bytes_add(rules, p + i, 1);
	bytes_text(rules, "\"");
}

/* One of several texts. */
static bool take_choice(struct task *t, json_t *v, const char *field, struct refusal *r)
{
	struct bytes rules = { 0 };
	json_t *one;
	size_t i;

	if (!json_is_array(v) || json_array_size(v) == 0)
		return refuse(r, 400, field, "%s is %s, expected an array of texts", field,
		              json_is_array(v) ? "empty" : json_kind(v));
	bytes_text(&rules, "root ::= ");
	json_array_foreach(v, i, one)
	{
		if (!json_is_string(one))
			refuse(r, 400, field, "%s[%zu] is %s, expected a text", field, i, json_kind(one));
		bytes_text(&rules, i ? " | " : "");
		add_literal(&rules, one);
	}
	bytes_add(&rules, "", 1);
	bool ok = r->status == 0 && (!rules.lost || no_memory(r)) &&
	          task_set_grammar(t, JIT_GRAMMAR_GBNF, rules.p, field, r);
	bytes_free(&rules);
	return ok;
}

static bool take_any_object(struct task *t, const char *field, struct refusal *r)
{
	return task_set_grammar(t, JIT_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\"}", field, r);
}

/* ollama's: "json", or a schema. */
static bool take_ollama(struct task *t, json_t *v, const char *field, struct refusal *r)
{
	const char *word = json_string_value(v);

	if (word && !*word)
		return true;
	if (word && strcmp(word, "json") == 0)
		return take_any_object(t, field, r);
	if (word)
		return refuse(r, 400, field, "%s is \"%.80s\", expected \"json\" or a JSON Schema", field, word);
	return json_is_object(v)
	               ? set_schema(t, v, field, r)
	               : refuse(r, 400, field, "%s is %s, expected \"json\" or a JSON Schema", field, json_kind(v));
}

/* ---- formats: objects that say their kind */

/* {"type": ..., and what belongs to it}; chat completions' have it in json_schema. */
static bool take_format(struct task *t, json_t *format, const char *field, struct refusal *r)
{
	const char *type = NULL;
	json_t *schema;
	bool strict = false;

	if (!json_is_object(format))
		return refuse(r, 400, field, "%s is %s, expected an object", field, json_kind(format));
	if (!field_text(format, "type", &type, r))
		return refuse_within(r, field);
	if (!type)
		return refuse(r, 400, field, "%s has no type", field);
	if (strcmp(type, "text") == 0)
		return true;
	if (strcmp(type, "json_object") == 0) {
		schema = field_value(format, field_value(format, "schema") ? "schema" : "value");
		return schema ? take_schema(t, schema, field, r) : take_any_object(t, field, r);
	}
	if (strcmp(type, "json_schema") == 0) {
		json_t *outer = field_object(format, "json_schema", r);
		schema = field_value(outer ? outer : format, "schema");
		if (r->status || !field_flag(outer ? outer : format, "strict", &strict, r)) {
			if (outer)
				refuse_within(r, "json_schema");
			return refuse_within(r, field);
		}
		t->additional |= strict; /* it holds as it stands */
		return schema ? take_schema(t, schema, field, r)
		              : refuse(r, 400, field, "%s has no json_schema with a schema", field);
	}
	if (strcmp(type, "regex") == 0) {
		json_t *pattern = field_value(format, "pattern");
		return pattern ? take_regex(t, pattern, field, r) : refuse(r, 400, field, "%s has no pattern", field);
	}
	return refuse(r, 400, field, "%s is of type %.60s, expected text, json_object, json_schema or regex", field,
	              type);
}

static bool take_config(struct task *t, json_t *config, const char *field, struct refusal *r)
{
	if (!json_is_object(config))
		return refuse(r, 400, field, "%s is %s, expected an object", field, json_kind(config));
	json_t *format = field_value(config, "format");
	return !format || take_format(t, format, "output_config.format", r);
}

static bool take_structured(struct task *t, json_t *v, const char *field, struct refusal *r);

static const struct source {
	const char *name;
	bool (*take)(struct task *t, json_t *v, const char *field, struct refusal *r);
} sources[] = {
	{ "json_schema", take_schema },   { "response_format", take_format },
	{ "output_format", take_format }, { "output_config", take_config },
	{ "format", take_ollama },        { "guided_json", take_schema_text },
	{ "guided_choice", take_choice }, { "guided_regex", take_regex },
	{ "guided_grammar", take_rules }, { "structured_outputs", take_structured },
	{ "regex", take_regex },          { "ebnf", take_rules },
};
static const struct source within[] = {
	{ "json", take_schema_text },
	{ "choice", take_choice },
	{ "regex", take_regex },
	{ "grammar", take_rules },
};

/* Sets what one of the members asks for; *by, NULL until now: the name of the one that did. */
static bool take_members(struct task *t, const json_t *o, const struct source *list, size_t n, const char **by,
                         const char *field, struct refusal *r)
{
	for (size_t i = 0; i < n; i++) {
		json_t *v = field_value(o, list[i].name);
		const char *before = t->grammar_field;
		if (!v)
			continue;
		t->grammar_field = NULL;
		if (!list[i].take(t, v, field ? field : list[i].name, r))
			return false;
		if (!t->grammar_field) { /* it asks for nothing */
			t->grammar_field = before;
			continue;
		}
		if (*by)
			return refuse(r, 400, field ? field : list[i].name, "%s and %s cannot both be given", *by,
			              list[i].name);
		*by = list[i].name;
	}
	return true;
}

/* vLLM's: exactly one of its members. */
static bool take_structured(struct task *t, json_t *v, const char *field, struct refusal *r)
{
	static const char *const others[] = { "disable_fallback", "disable_additional_properties",
		                              "disable_any_whitespace", "json_object" };
	bool flag[4] = { false };
	const char *by = NULL, *name;
	json_t *one;

	if (!json_is_object(v))
		return refuse(r, 400, field, "%s is %s, expected an object", field, json_kind(v));
	for (size_t i = 0; i < 4; i++)
		if (!field_flag(v, others[i], &flag[i], r))
			return refuse_within(r, field);
	if (flag[2])
		return refuse(r, 400, field, "%s has %s, which is not supported", field, others[2]);
	if (field_value(v, others[1]))
		t->additional = !flag[1];
	json_object_foreach(v, name, one)
	{
		bool known = false;
		for (size_t i = 0; i < 4; i++)
			known = known || strcmp(name, others[i]) == 0 || strcmp(name, within[i].name) == 0;
		if (!known && field_value(v, name))
			return refuse(r, 400, field, "%s has %.60s, which is not supported", field, name);
	}
	if (!take_members(t, v, within, sizeof within / sizeof *within, &by, field, r))
		return false;
	if (by && flag[3])
		return refuse(r, 400, field, "%s and json_object cannot both be given", by);
	return !flag[3] || take_any_object(t, field, r);
}

/* Rules and expressions that have its marks are about the whole answer. */
static bool describes_reasoning(const struct task *t)
{
	if (t->grammar != JIT_GRAMMAR_GBNF && t->grammar != JIT_GRAMMAR_REGEX)
		return false;
	const size_t n = strlen(t->grammar_text);
	return think_until_mark(t->grammar_text, n) < n;
}

bool task_read_grammar(struct task *t, const json_t *body, struct refusal *r)
{
	const char *grammar = NULL, *by = NULL;

	if (!field_text(body, "grammar", &grammar, r) || !field_flag(body, "additional_properties", &t->additional, r))
		return false;
	if (grammar && *grammar) {
		by = "grammar";
		if (!task_set_grammar(t, JIT_GRAMMAR_GBNF, grammar, by, r))
			return false;
	}
	if (!take_members(t, body, sources, sizeof sources / sizeof *sources, &by, NULL, r))
		return false;
	if (describes_reasoning(t))
		t->before = (struct think_before){ 0 };
	return true;
}

/* The answer need not have calls: they are not held. */
static bool let_go(struct task *t, const char *param, const char *why)
{
	if (t->warnings)
		json_add(t->warnings,
		         json_sprintf("calls are not held to the form of their tools: %s: %s", param, why));
	for (unsigned i = 0; i < t->choices; i++)
		session_grammar_close(t->grammars[i]);
	free(t->grammars);
	t->grammars = NULL;
	t->grammar = JIT_GRAMMAR_NONE;
	t->holds_calls = false;
	return true;
}

bool task_make_grammars(struct task *t, jit_model *model, uint64_t *steps, struct refusal *r)
{
	struct error err = { 0 };
	char param[80], why[512];

	if (t->grammar == JIT_GRAMMAR_NONE || t->embeds || t->action || t->grammars)
		return true;
	if (!(t->grammars = calloc(t->choices + 1, sizeof *t->grammars)))
		return refuse(r, 503, NULL, "There is no memory for this request.");
	for (unsigned i = 0; i < t->choices; i++) {
		t->grammars[i] = session_grammar_open(model, task_grammar_kind(t), t->grammar_text,
		                                      strlen(t->grammar_text), steps, &err);
		if (t->grammars[i])
			continue;
		if (err.code == ERROR_MEMORY)
			return refuse(r, 503, NULL, "%s", err.text);
		task_blame_grammar(t, err.text, param, why);
		if (t->holds_calls)
			return let_go(t, param, why);
		return refuse(r, 400, param, "%s", why);
	}
	return true;
}
