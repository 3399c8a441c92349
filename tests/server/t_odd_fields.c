/* tests/server/t_odd_fields.c - fields that are not done are refused by their names, those that are passed over change
 * nothing, and any value of any field ends in an answer or in one sentence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/server/field_kinds.h"
#include "tests/support/sanitized.h"

static void must_be_as_without(const struct kind *k, const struct request_field *f, const char *value)
{
	char what[200];
	struct answer without = fields_ask(&fields_server, k, "", NULL, ""),
		      with = fields_ask(&fields_server, k, "", f->name, value);

	snprintf(what, sizeof what, "%s %s: %s", k->path, f->name, value);
	json_t *a = fields_told(&without, what), *b = fields_told(&with, what);
	if (!json_equal(a, b))
		COMPLAIN("%s: the answers differ", what);
	json_decref(a);
	json_decref(b);
}

static void test_not_done(void **state)
{
	static const char *const values[] = { "7", "\"x\"", "[\"x\"]", "{\"x\":1}" };
	(void)state;

	for (size_t k = 0; k < KINDS; k++)
		must_be_as_without(&kinds[k], &(struct request_field){ .name = "max_of_something" }, "0");
	for (size_t i = 0; i < n_request_fields; i++)
		for (size_t k = 0; k < KINDS; k++) {
			const struct request_field *f = &request_fields[i];
			if (!(f->kinds & kinds[k].kind) || f->meaning == FIELD_DONE)
				continue;
			for (size_t v = 0; v < 4; v++) {
				struct answer a = { 0 };
				if ((f->harmless & HARMLESS_STRING) && v == 1)
					continue;
				if (f->meaning == FIELD_REFUSED) {
					a = fields_ask(&fields_server, &kinds[k], "", f->name, values[v]);
					fields_check_refused(&a, f->name, f->name);
				} else if (strcmp(f->name, "include") != 0) { /* which is looked into */
					must_be_as_without(&kinds[k], f, values[v]);
				}
			}
			if (f->meaning == FIELD_REFUSED) {
				must_be_as_without(&kinds[k], f, "null");
				must_be_as_without(&kinds[k], f, fields_harmless(f->harmless));
			}
		}
	fields_must_be_right();
}

/* Fields of no row: passed over, but for names that say that they bind. */
static void test_unknown(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		must_be_as_without(&kinds[k], &(struct request_field){ .name = "x_nobody_knows" }, "[1,{\"a\":2}]");
		if (!(kinds[k].kind & (GENERATE | OLLAMA | OLLAMA_OPTIONS)))
			continue;
		static const char *const binding[][2] = {
			{ "guided_by_whim", "1" },     { "allowed_tokens", "[\"a\"]" },
			{ "mirostat_mode", "2" },      { "sampler_order", "[6,0]" },
			{ "grammar_string", "\"a\"" }, { "ban_eos_token", "true" },
			{ "Temperature", "0.5" },      { "topK", "3" },
			{ "mirostat-tau", "4" },
		};
		for (size_t i = 0; i < sizeof binding / sizeof *binding; i++) {
			struct answer a = fields_ask(&fields_server, &kinds[k], "", binding[i][0], binding[i][1]);
			fields_check_refused(&a, binding[i][0], kinds[k].path);
		}
		must_be_as_without(&kinds[k], &(struct request_field){ .name = "sampler_order" }, "[]");
		must_be_as_without(&kinds[k], &(struct request_field){ .name = "topK" }, "null");
	}
	fields_must_be_right();
}

/* What is wrong within a field is told by its whole name. */
#define SHOT "{\"name\":\"f\",\"parameters\":\"text\"}"
static const struct {
	unsigned kind;
	const char *name, *with, *value, *begins, *param;
} nested[] = {
	{ TALK, "thinking", "", "{\"type\":{}}", "thinking.type is an object", "thinking.type" },
	{ CHAT | TEXT | NATIVE, "format", "", "\"xml\"", "format is \"xml\", expected", "format" },
	{ CHAT | TEXT | NATIVE, "bad_words", "", "[\"\"]", "bad_words[0] is an empty text", "bad_words" },
	{ CHAT, "function_call", "\"functions\":[{\"name\":\"f\"}]", "\"any\"", "function_call is \"any\", expected",
	  "function_call" },
	{ CHAT | MESSAGES, "thinking", "", "{\"type\":\"enabled\",\"budget_tokens\":\"a\"}",
	  "thinking.budget_tokens is a string", "thinking.budget_tokens" },
	{ CHAT | RESPONSES, "reasoning", "", "{\"effort\":[]}", "reasoning.effort is an array", "reasoning.effort" },
	{ CHAT | RESPONSES, "reasoning", "", "{\"max_tokens\":-1}", "reasoning.max_tokens is -1",
	  "reasoning.max_tokens" },
	{ MESSAGES, "output_config", "", "{\"effort\":7}", "output_config.effort is", "output_config.effort" },
	{ MESSAGES, "output_config", "", "{\"format\":{\"type\":7}}", "output_config.format.type is",
	  "output_config.format.type" },
	{ RESPONSES, "text", "", "{\"format\":{\"type\":7}}", "text.format.type is", "text.format.type" },
	{ RESPONSES, "text", "", "{\"format\":{\"type\":\"none\"}}", "text.format is of type none", "text.format" },
	{ MESSAGES, "tool_choice", "", "{\"type\":\"auto\",\"disable_parallel_tool_use\":7}",
	  "tool_choice.disable_parallel_tool_use is", "tool_choice.disable_parallel_tool_use" },
	{ MESSAGES, "tools", "", "[{\"type\":\"computer_20250124\",\"name\":\"computer\",\"display_width_px\":\"a\"}]",
	  "tools[0].display_width_px is", "tools[0].display_width_px" },
	{ CHAT | TEXT, "stream_options", "", "{\"include_usage\":7}", "stream_options.include_usage is",
	  "stream_options.include_usage" },
	{ CHAT | TEXT | NATIVE, "response_format", "", "{\"type\":[]}", "response_format.type is",
	  "response_format.type" },
	{ CHAT | TEXT | NATIVE, "response_format", "", "{\"type\":\"json_schema\",\"json_schema\":7}",
	  "response_format.json_schema is", "response_format.json_schema" },
	{ CHAT | TEXT | NATIVE, "response_format", "", "{\"type\":\"json_schema\",\"json_schema\":{\"strict\":7}}",
	  "response_format.json_schema.strict is", "response_format.json_schema.strict" },
	{ CHAT | TEXT | NATIVE, "structured_outputs", "", "{\"disable_fallback\":7}",
	  "structured_outputs.disable_fallback is", "structured_outputs.disable_fallback" },
	{ RESPONSES, "tools", "", "[{\"type\":\"custom\",\"name\":\"a\",\"format\":7}]", "tools[0].format is",
	  "tools" },
	{ RESPONSES, "tools", "", "[{\"type\":\"namespace\",\"name\":\"a\",\"tools\":7}]", "tools[0].tools is",
	  "tools" },
	{ CHAT, "tool_choice",
	  "\"grammar\":\"root ::= \\\"a\\\"\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
	  "\"required\"", "grammar gives the answer a form, and tool_choice requires a call", "tool_choice" },
	{ RESPONSES, "tool_choice",
	  "\"text\":{\"format\":{\"type\":\"json_object\"}},\"tools\":[{\"type\":\"function\",\"name\":\"f\"}]",
	  "\"required\"", "text.format gives the answer a form, and tool_choice requires a call", "tool_choice" },
	{ CHAT, "messages", "",
	  "[{\"role\":\"user\",\"content\":\"\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[7]}]",
	  "messages[1].tool_calls[0] is an integer", "messages" },
	{ OLLAMA_CHAT, "messages", "",
	  "[{\"role\":\"user\",\"content\":\"\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":7}]",
	  "messages[1].tool_calls is", "" },
	{ CHAT, "tools", "\"tool_choice\":\"required\"", "[{\"type\":\"function\",\"function\":" SHOT "}]",
	  "tools[0].function.parameters is a string", "tools[0].function.parameters" },
	{ CHAT, "functions", "\"function_call\":{\"name\":\"f\"}", "[{\"name\":\"g\"}," SHOT "]",
	  "functions[1].parameters is a string", "functions[1].parameters" },
};

static void test_nested(void **state)
{
	(void)state;

	for (size_t i = 0; i < sizeof nested / sizeof *nested; i++)
		for (size_t k = 0; k < KINDS; k++) {
			if (!(kinds[k].kind & nested[i].kind))
				continue;
			struct answer a =
				fields_ask(&fields_server, &kinds[k], nested[i].with, nested[i].name, nested[i].value);
			json_t *o = json_loads(a.body, 0, NULL), *e = json_object_get(o, "error");
			const char *text = json_is_string(e) ? json_string_value(e)
			                                     : json_string_value(json_object_get(e, "message"));
			const char *param = json_string_value(json_object_get(e, "param"));
			if (a.status != 400 || !text ||
			    strncmp(text, nested[i].begins, strlen(nested[i].begins)) != 0 ||
			    (param && strcmp(param, nested[i].param) != 0))
				COMPLAIN("%s %s: %s: status %d, %.300s", kinds[k].path, nested[i].name, nested[i].value,
				         a.status, a.body);
			json_decref(o);
			answer_free(&a);
		}
	fields_must_be_right();
}

/* ---- any value of any field */

static const char *const odd[] = {
	"null",
	"true",
	"false",
	"0",
	"-0.0",
	"1",
	"-1",
	"7",
	"3.5",
	"-3",
	"1e308",
	"-1e308",
	"1e999",
	"NaN",
	"-Infinity",
	"9007199254740993",
	"9223372036854775807",
	"-9223372036854775809",
	"123456789012345678901234567890",
	"\"\"",
	"\"a\"",
	"\"none\"",
	"\"auto\"",
	"\"\\u0000\"",
	"\"\\ud83d\\ude00\"",
	"\"root ::= root\"",
	"\"(((((\"",
	"[]",
	"[[]]",
	"[null]",
	"[1,2,3]",
	"[\"a\",7]",
	"[{}]",
	"[[1,-1e300]]",
	"{}",
	"{\"a\":{}}",
	"{\"\":\"\"}",
	"{\"type\":\"json_schema\"}",
	"{\"type\":{}}",
	"{\"type\":\"enabled\"}",
	"{\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
	"[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":7}}]",
	"[{\"type\":\"function\",\"name\":\"\"}]",
	"[{\"role\":\"user\"}]",
	"[{\"role\":7,\"content\":{}}]",
	"{\"json\":{\"$ref\":\"#\"}}",
	"{\"format\":{\"type\":\"json_schema\",\"schema\":{\"$ref\":\"#/x\"}}}",
	"{\"include_usage\":7}",
	"{\"effort\":[]}",
	"[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]"
};
enum { ODD = sizeof odd / sizeof *odd };

/* Of all names that any endpoint knows. */
static bool is_first_of_name(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(request_fields[k].name, request_fields[i].name) == 0)
			return false;
	return true;
}

static void try_odd(const struct kind *k, const char *name, const char *value)
{
	struct answer a = fields_ask(&fields_server, k, "", name, value);
	const bool events = a.head && (strstr(a.head, "text/event-stream") || strstr(a.head, "x-ndjson"));
	json_t *o = a.body && !events ? json_loads(a.body, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;

	/* 404: of a model that is not there. */
	if ((a.status != 200 && a.status != 400 && a.status != 404) || (!o && !events))
		COMPLAIN("%s %s: %s: status %d, %.400s", k->path, name, value, a.status, a.body ? a.body : "nothing");
	if (events && strstr(a.body, "\"code\":500"))
		COMPLAIN("%s %s: %s: %.400s", k->path, name, value, a.body);
	json_decref(o);
	answer_free(&a);
}

static void test_odd_values(void **state)
{
	const size_t stride = test_full() ? 1 : test_quick() ? (SANITIZED ? 101 : 61) : 13;
	size_t count = 0;
	(void)state;

	for (size_t i = 0; i < n_request_fields; i++)
		for (size_t k = 0; is_first_of_name(i) && k < KINDS; k++)
			for (size_t v = 0; v < ODD; v++)
				if (count++ % stride == 0)
					try_odd(&kinds[k], request_fields[i].name, odd[v]);
	fields_must_be_right();
}

/* ---- what is told of them */

/* A value that nobody gave is told as the one that is used, and not as the 0 that stands for it. */
static void test_told(void **state)
{
	static const struct {
		const char *name;
		double usual;
	} rows[] = { { "repeat_last_n", 64 },     { "repeat_penalty", 1 },      { "typical_p", 1 },
		     { "dynatemp_exponent", 1 },  { "xtc_threshold", 0.1 },     { "dry_base", 1.75 },
		     { "dry_allowed_length", 2 }, { "dry_penalty_last_n", 64 }, { "mirostat_tau", 5 },
		     { "mirostat_eta", 0.1 },     { "adaptive_target", -1 },    { "adaptive_decay", 0.9 } };
	json_t *props = client_json(&fields_server, "/props", NULL, 200);
	struct answer a = fields_ask(&fields_server, &kinds[2], "", "verbose", "true"),
		      b = fields_ask(&fields_server, &kinds[2], "\"adaptive_decay\":0.5,\"top_p\":0", "adaptive_target",
	                             "0.25");
	json_t *native = json_loads(a.body, 0, NULL), *given = json_loads(b.body, 0, NULL);
	const json_t *told_by[] = { json_object_get(json_object_get(props, "default_generation_settings"), "params"),
		                    json_object_get(native, "generation_settings") };
	const json_t *own = json_object_get(given, "generation_settings");
	(void)state;

	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			assert_float_equal(json_number_value(json_object_get(told_by[k], rows[i].name)), rows[i].usual,
			                   1e-6);
		assert_int_equal(json_array_size(json_object_get(told_by[k], "samplers")), 9);
		assert_int_equal(json_array_size(json_object_get(told_by[k], "dry_sequence_breakers")), 4);
	}
	assert_float_equal(json_number_value(json_object_get(own, "adaptive_target")), 0.25, 1e-6);
	assert_float_equal(json_number_value(json_object_get(own, "adaptive_decay")), 0.5, 1e-6);
	assert_true(json_number_value(json_object_get(own, "top_p")) < 1e-6);
	json_decref(props);
	json_decref(native);
	json_decref(given);
	answer_free(&a);
	answer_free(&b);
}

/* ---- whose fault it is, and of which field */

#define PROMPT "\"prompt\":\"A\",\"max_tokens\":4"
#define FIVE(text) text text text text text

static const char part[] =
	",{\"properties\":{\"a\":{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"multipleOf\":3}]}}}";

/* A stop text that is too long, a bias of each token, and a schema of many others. */
static void make_long(char *long_text, char *all, char *many)
{
	char *at = many;

	at += sprintf(at, "{\"prompt\":\"A\",\"n_predict\":3,\"json_schema\":{\"allOf\":[{\"type\":\"object\"}");
	for (int i = 0; i < 200; i++)
		at += sprintf(at, "%s", part);
	sprintf(at, "],\"patternProperties\":{\"^x\":{\"type\":\"null\"}},\"minProperties\":1,\"maxProperties\":3}}");
	at = all + sprintf(all, "{" PROMPT ",\"logit_bias\":{");
	for (int i = 0; i < 4096; i++)
		at += sprintf(at, "%s\"%d\":false", i ? "," : "", i);
	strcpy(at, "}}");
	at = long_text;
	at += sprintf(at,
	              "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"stop_sequences\":[\"");
	memset(at, 'a', 5000);
	strcpy(at + 5000, "\"]}");
}

static void test_blamed(void **state)
{
	char *long_text = calloc(1, 6000), *all = calloc(1, 80000), *many = calloc(1, 200 * sizeof part + 500);
	const struct {
		const char *path, *body, *param, *words;
	} rows[] = {
		/* no token is left, at once or later */
		{ "/v1/completions", "{" PROMPT ",\"allowed_token_ids\":[40],\"logit_bias\":{\"40\":false}}",
		  "logit_bias", "logit_bias and allowed_token_ids leave no token" },
		{ "/v1/completions",
		  "{" PROMPT ",\"allowed_token_ids\":[40],\"bad_words_ids\":[[40]],\"ignore_eos\":true}", "ignore_eos",
		  "ignore_eos, allowed_token_ids and bad_words_ids leave no token" },
		{ "/v1/completions",
		  "{" PROMPT ",\"structured_outputs\":{\"choice\":[\"{(\"]},\"logit_bias\":[[\"(\",false]]}",
		  "structured_outputs", "structured_outputs and logit_bias leave no token" },
		{ "/v1/completions",
		  "{" PROMPT ",\"n\":2,\"guided_choice\":[\"{(\"],\"logit_bias\":[[\"(\",false]],\"stream\":false}",
		  "guided_choice", "guided_choice and logit_bias leave no token" },
		{ "/completion",
		  "{\"prompt\":\"A\",\"n_predict\":4,\"grammar\":\"root ::= "
		  "\\\"(\\\"\",\"logit_bias\":[[\"(\",false]]}",
		  "grammar", "grammar and logit_bias leave no token" },
		{ "/v1/completions", all, "logit_bias", "logit_bias leaves no token" },
		{ "/v1/responses",
		  "{\"input\":\"a\",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"x\",\"schema\":{"
		  "\"const\":true}}},"
		  "\"allowed_token_ids\":[40]}",
		  "text.format", "none of the tokens that the request allows can follow" },
		/* too many states are no lack of memory */
		{ "/completion", many, "json_schema", "too many states" },
		/* the client's own names */
		{ "/v1/chat/completions",
		  "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"function_call\":{\"name\":\"f\"},"
		  "\"functions\":[{"
		  "\"name\":\"f\",\"parameters\":{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}}]}",
		  "functions[0].parameters", "no value satisfies the schema: see #" },
		{ "/v1/messages", long_text, "stop_sequences", "stop_sequences has a text of 5000 bytes" },
		{ "/embedding", "{}", "content", "content is missing" },
		{ "/v1/embeddings", "{}", "input", "input is missing" },
		{ "/v1/embeddings", "{\"content\":[]}", "content", "content is empty" },
		{ "/completion", "{\"prompt\":\"A\",\"dry_sequence_breakers\":[\"" FIVE(FIVE("abc")) "\"]}",
		  "dry_sequence_breakers", "a text of 75 bytes, expected at most 64" },
	};
	(void)state;

	make_long(long_text, all, many);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		json_t *o = client_json(&fields_server, rows[i].path, rows[i].body, 400),
		       *e = json_object_get(o, "error");
		const char *message = json_string_value(json_object_get(e, "message"));
		const char *param = json_string_value(json_object_get(e, "param"));
		if (!message || !strstr(message, rows[i].words) || !param || strcmp(param, rows[i].param) != 0)
			COMPLAIN("%s %.200s: %s, %s", rows[i].path, rows[i].body, param ? param : "no param", message);
		json_decref(o);
	}
	free(many);
	free(all);
	free(long_text);
	fields_must_be_right();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_done),   cmocka_unit_test(test_unknown), cmocka_unit_test(test_nested),
		cmocka_unit_test(test_odd_values), cmocka_unit_test(test_told),    cmocka_unit_test(test_blamed),
	};

	return cmocka_run_group_tests(tests, fields_start, fields_stop);
}
