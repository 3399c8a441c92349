/* server/task_grammar.c - the form that an answer must have, as requests ask for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/jitrun_grammar.h"
#include "server/fields.h"
#include "server/json_write.h"
#include "server/task.h"

bool task_set_grammar(struct task *t, int kind, const char *text, const char *field, struct refusal *r)
{
	free(t->grammar_text);
	t->grammar = kind;
	t->grammar_field = field;
	t->grammar_text = text ? strdup(text) : NULL;
	return t->grammar_text || refuse(r, 503, NULL, "There is no memory for this request.");
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
	if (strncmp(end, properties, strlen(properties)) != 0)
		return NULL;
	end += strlen(properties);
	return end + strcspn(end, "/:");
}

void task_blame_grammar(const struct task *t, const char *message, char param[80], char why[512])
{
	const char *at = t->grammar_tools && !t->grammar_named ? strchr(message, '#') : NULL;
	unsigned long k = 0;
	const char *rest = at ? into_function(at + 1, &k) : NULL;

	snprintf(param, 80, "%s", t->grammar_field);
	snprintf(why, 512, "%s", message);
	if (!t->grammar_tools || (!t->grammar_named && !rest) || k >= t->n_grammar_tools)
		return;
	snprintf(param, 80, "%s[%u].function.parameters", t->grammar_field, t->grammar_tools[k]);
	if (rest)
		snprintf(why, 512, "%.*s#%s", (int)(at - message), message, rest);
}

static bool is_schema(const json_t *v, const char *name, struct refusal *r)
{
	return json_is_object(v) || json_is_boolean(v) ||
	       refuse(r, 400, name, "%s is no JSON Schema: neither an object nor true or false", name);
}

static bool read_format(struct task *t, json_t *format, struct refusal *r)
{
	const char *type = NULL;

	if (!field_text(format, "type", &type, r))
		return false;
	if (!type)
		return refuse(r, 400, "response_format", "response_format has no type");
	if (strcmp(type, "text") == 0)
		return true;
	if (strcmp(type, "json_object") == 0) {
		json_t *schema = field_value(format, "schema");
		if (schema)
			return is_schema(schema, "response_format", r) && set_schema(t, schema, "response_format", r);
		return task_set_grammar(t, JIT_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\"}", "response_format", r);
	}
	if (strcmp(type, "json_schema") == 0) {
		json_t *outer = field_object(format, "json_schema", r);
		json_t *schema = field_value(outer ? outer : format, "schema");
		if (r->status)
			return false;
		if (!schema)
			return refuse(r, 400, "response_format", "response_format has no json_schema with a schema");
		return is_schema(schema, "response_format", r) && set_schema(t, schema, "response_format", r);
	}
	if (strcmp(type, "regex") == 0) {
		const char *pattern = NULL;
		if (!field_text(format, "pattern", &pattern, r))
			return false;
		return pattern ? task_set_grammar(t, JIT_GRAMMAR_REGEX, pattern, "response_format", r)
		               : refuse(r, 400, "response_format", "response_format has no pattern");
	}
	return refuse(r, 400, "response_format",
	              "response_format is of type %s, expected text, json_object, json_schema or regex", type);
}

bool task_read_grammar(struct task *t, const json_t *body, struct refusal *r)
{
	json_t *format = field_object(body, "response_format", r), *schema = field_value(body, "json_schema");
	const char *grammar = NULL;

	if (r->status || !field_text(body, "grammar", &grammar, r))
		return false;
	if (grammar && *grammar) {
		if (schema || format)
			return refuse(r, 400, "grammar", "grammar and a JSON Schema cannot both be given");
		return task_set_grammar(t, JIT_GRAMMAR_GBNF, grammar, "grammar", r);
	}
	if (schema && !(is_schema(schema, "json_schema", r) && set_schema(t, schema, "json_schema", r)))
		return false;
	return !format || read_format(t, format, r);
}
