/* tests/server/odd_bodies.c - requests that are whole and right, and values that nobody would send in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/server/odd_bodies.h"

/* ---- whole requests */

#define SCHEMA \
	"{\"type\":\"object\",\"title\":\"t\",\"description\":\"d\",\"properties\":{" \
	"\"a\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":5,\"description\":\"x\"}," \
	"\"b\":{\"type\":[\"integer\",\"null\"],\"minimum\":0,\"maximum\":9,\"default\":1}," \
	"\"c\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/x\"},\"minItems\":0,\"maxItems\":2}," \
	"\"d\":{\"anyOf\":[{\"const\":1},{\"enum\":[\"a\",2,null]}]}," \
	"\"e\":{\"type\":\"string\",\"pattern\":\"^a+$\"},\"f\":{\"type\":\"string\",\"format\":\"date\"}," \
	"\"g\":{\"type\":\"number\",\"exclusiveMinimum\":0}}," \
	"\"required\":[\"a\"],\"additionalProperties\":false,\"$defs\":{\"x\":{\"type\":\"boolean\"}}}"
#define FUNCTION "{\"name\":\"get\",\"description\":\"d\",\"strict\":true,\"parameters\":" SCHEMA "}"
#define USER "{\"role\":\"user\",\"content\":\"Go.\"}"
#define MESSAGES \
	"\"messages\":[{\"role\":\"system\",\"content\":\"Be short.\"}," \
	"{\"role\":\"user\",\"name\":\"u\",\"content\":[{\"type\":\"text\",\"text\":\"A tale\"," \
	"\"cache_control\":{\"type\":\"ephemeral\"}}]}," \
	"{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"Hm.\",\"tool_calls\":[{\"id\":\"call_1\"," \
	"\"type\":\"function\",\"function\":{\"name\":\"get\",\"arguments\":\"{\\\"a\\\":\\\"a\\\"}\"}}]}," \
	"{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":[{\"type\":\"text\",\"text\":\"7\"}]}," USER "]"
#define CHAT \
	"{\"model\":\"tale-rerank\"," MESSAGES ",\"tools\":[{\"type\":\"function\",\"function\":" FUNCTION "}]," \
	"\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"get\"}},\"parallel_tool_calls\":false," \
	"\"logit_bias\":{\"40\":-5},\"stop\":[\"x\"],\"chat_template_kwargs\":{\"extra\":\"A word.\"}," \
	"\"documents\":[{\"title\":\"t\",\"text\":\"x\"}],\"max_tokens\":4,\"seed\":5,\"temperature\":0.5}"
#define ANTHROPIC \
	"{\"model\":\"tale-rerank\",\"max_tokens\":4,\"system\":[{\"type\":\"text\",\"text\":\"Be short.\"," \
	"\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":[" \
	"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Go.\"}]}," \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"s\"}," \
	"{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"get\",\"input\":{\"a\":\"a\"}}]}," \
	"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\",\"is_error\":false," \
	"\"content\":[{\"type\":\"text\",\"text\":\"7\"}]}]}]," \
	"\"tools\":[{\"name\":\"get\",\"description\":\"d\",\"input_schema\":" SCHEMA "}," \
	"{\"type\":\"bash_20250124\",\"name\":\"bash\"}]," \
	"\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true}," \
	"\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2000},\"metadata\":{\"user_id\":\"u\"}," \
	"\"stop_sequences\":[\"x\"]}"
#define ITEMS \
	"{\"model\":\"tale-rerank\",\"max_output_tokens\":4,\"instructions\":\"Be short.\",\"input\":[" \
	"{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Go.\"}]}," \
	"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"Hm.\"}]}," \
	"{\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"get\",\"arguments\":\"{}\"}," \
	"{\"type\":\"function_call_output\",\"call_id\":\"call_1\",\"output\":\"7\"}," \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Yes.\",\"annotations\":[]}]}," USER \
	"],\"tools\":[{\"type\":\"function\",\"name\":\"get\",\"description\":\"d\",\"parameters\":" SCHEMA "}," \
	"{\"type\":\"custom\",\"name\":\"write\",\"format\":{\"type\":\"grammar\",\"syntax\":\"regex\"," \
	"\"definition\":" \
	"\"[ab]{3}\"}},{\"type\":\"namespace\",\"name\":\"mcp\",\"tools\":[{\"type\":\"function\",\"name\":\"read\"}]" \
	"}," \
	"{\"type\":\"web_search\"}],\"tool_choice\":\"auto\",\"reasoning\":{\"effort\":\"low\",\"summary\":\"auto\"}," \
	"\"text\":{\"format\":{\"type\":\"text\"},\"verbosity\":\"low\"},\"metadata\":{\"a\":\"b\"}}"
#define OPTIONS \
	"\"options\":{\"num_predict\":4,\"seed\":5,\"temperature\":0.5,\"stop\":[\"x\"],\"num_ctx\":500,\"top_k\":9," \
	"\"mirostat\":0,\"num_thread\":2}"

const struct whole_request whole_requests[] = {
	{ "POST", "/models/unload", "{\"model\":\"tale-rerank\"}" },
	{ "POST", "/models/load", "{\"model\":\"tale-rerank\"}" },
	{ "POST", "/v1/chat/completions", CHAT },
	{ "POST", "/v1/chat/completions",
	  "{\"messages\":[" USER "],\"max_tokens\":4,\"n\":2,\"logprobs\":true,\"top_logprobs\":2,\"stream_options\":"
	  "{\"include_usage\":true},\"stream\":true,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{"
	  "\"name\":\"n\",\"strict\":true,\"schema\":" SCHEMA "}}}" },
	{ "POST", "/v1/chat/completions",
	  "{\"messages\":[" USER ",{\"role\":\"assistant\",\"content\":null,\"function_call\":{\"name\":\"get\","
	  "\"arguments\":\"{}\"}},{\"role\":\"function\",\"name\":\"get\",\"content\":\"7\"}],\"max_tokens\":4,"
	  "\"functions\":[" FUNCTION "],\"function_call\":{\"name\":\"get\"},\"reasoning\":{\"effort\":\"low\","
	  "\"max_tokens\":2},\"thinking\":{\"type\":\"disabled\"}}" },
	{ "POST", "/v1/chat/completions/input_tokens", CHAT },
	{ "POST", "/apply-template", CHAT },
	{ "POST", "/v1/completions",
	  "{\"prompt\":[\"A tale\",\"The "
	  "king\"],\"max_tokens\":3,\"logit_bias\":[[40,-5],[\"a\",false]],\"stop\":[\"x\"],"
	  "\"echo\":true,\"logprobs\":2,\"samplers\":[\"top_k\",\"temperature\"],\"bad_words_ids\":[[40,41]],"
	  "\"structured_outputs\":{\"choice\":[\"a\",\"b\"]},\"stop_token_ids\":[40],\"seed\":5}" },
	{ "POST", "/completion",
	  "{\"prompt\":[[40,41],\"The king\"],\"n_predict\":3,\"n_probs\":2,\"response_fields\":[\"content\"],"
	  "\"dry_sequence_breakers\":[\"a\"],\"allowed_token_ids\":[40,41],\"json_schema\":null,\"bad_words\":[\"b\"]"
	  "}" },
	{ "POST", "/completion",
	  "{\"prompt\":\"A\",\"n_predict\":3,\"json_schema\":{\"allOf\":[{\"type\":\"object\"},{\"properties\":{\"a\":{"
	  "\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"multipleOf\":3}]}}}],\"patternProperties\":{\"^x\":"
	  "{"
	  "\"type\":\"null\"}},\"minProperties\":1,\"maxProperties\":3}}" },
	{ "POST", "/completion",
	  "{\"prompt\":\"A\",\"n_predict\":3,\"json_schema\":{\"type\":\"array\",\"prefixItems\":[{\"type\":"
	  "\"boolean\"}],"
	  "\"items\":{\"not\":{\"const\":1},\"type\":\"integer\"},\"contains\":{\"type\":\"boolean\"},\"minContains\":"
	  "1,"
	  "\"uniqueItems\":false}}" },
	{ "POST", "/v1/messages", ANTHROPIC },
	{ "POST", "/v1/messages/count_tokens", ANTHROPIC },
	{ "POST", "/v1/messages",
	  "{\"max_tokens\":3,\"messages\":[" USER "],\"stream\":true,\"output_config\":{\"effort\":\"low\",\"format\":{"
	  "\"type\":\"json_schema\",\"schema\":" SCHEMA "}}}" },
	{ "POST", "/v1/responses", ITEMS },
	{ "POST", "/v1/responses/input_tokens", ITEMS },
	{ "POST", "/v1/responses",
	  "{\"input\":[" USER "],\"max_output_tokens\":3,\"stream\":true,\"include\":[\"reasoning.encrypted_content\"],"
	  "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"strict\":true,\"schema\":" SCHEMA "}}}" },
	{ "POST", "/infill",
	  "{\"input_prefix\":\"A tale\",\"input_suffix\":\" of a king\",\"prompt\":\"x\",\"n_predict\":3,"
	  "\"input_extra\":[{\"filename\":\"a.c\",\"text\":\"The king\"}]}" },
	{ "POST", "/v1/embeddings", "{\"input\":[\"A tale\",\"b\"],\"encoding_format\":\"float\",\"user\":\"u\"}" },
	{ "POST", "/embedding", "{\"content\":[[40,41],\"b\"]}" },
	{ "POST", "/v1/rerank",
	  "{\"query\":\"What?\",\"documents\":[\"a\",{\"text\":\"b\"}],\"top_n\":1,\"return_documents\":true}" },
	{ "POST", "/v1/score", "{\"text_1\":[\"What?\",\"b\"],\"text_2\":[\"a\",\"c\"],\"instruction\":\"x\"}" },
	{ "POST", "/tokenize", "{\"content\":[\"A tale\",40],\"add_special\":true,\"with_pieces\":true}" },
	{ "POST", "/detokenize", "{\"tokens\":[40,41]}" },
	{ "POST", "/slots/0?action=save", "{\"filename\":\"odd.bin\"}" },
	{ "POST", "/slots/0?action=restore", "{\"filename\":\"odd.bin\"}" },
	{ "POST", "/api/chat",
	  "{\"model\":\"tale-rerank\",\"stream\":false,\"think\":false,\"keep_alive\":\"5m\",\"messages\":[" USER
	  ",{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hm.\",\"tool_calls\":[{\"function\":{\"name\":"
	  "\"get\","
	  "\"arguments\":{\"a\":\"a\"}}}]},{\"role\":\"tool\",\"tool_name\":\"get\",\"content\":\"7\"}],"
	  "\"tools\":[{\"type\":\"function\",\"function\":" FUNCTION "}]," OPTIONS "}" },
	{ "POST", "/api/chat",
	  "{\"messages\":[" USER "],\"format\":" SCHEMA ",\"truncate\":true,\"shift\":true," OPTIONS "}" },
	{ "POST", "/api/generate",
	  "{\"prompt\":\"A tale\",\"system\":\"s\",\"template\":\"{{ .System }}{{ .Prompt }}\",\"context\":[40,41],"
	  "\"stream\":false,\"logprobs\":true,\"top_logprobs\":1," OPTIONS "}" },
	{ "POST", "/api/generate", "{\"prompt\":\"A tale\",\"raw\":true,\"suffix\":\"b\"," OPTIONS "}" },
	{ "POST", "/api/embed",
	  "{\"input\":[\"A tale\",\"b\"],\"truncate\":true,\"dimensions\":8,\"options\":{\"num_ctx\":100}}" },
	{ "POST", "/api/embeddings", "{\"prompt\":\"A tale\",\"keep_alive\":\"5m\"}" },
	{ "POST", "/api/show", "{\"model\":\"tale-rerank\",\"verbose\":false}" },
	{ "POST", "/api/create",
	  "{\"model\":\"odd\",\"from\":\"tale-rerank\",\"stream\":false,\"system\":\"s\",\"license\":[\"MIT\"],"
	  "\"parameters\":{\"temperature\":0,\"stop\":[\"x\"]},\"messages\":[" USER "],"
	  "\"template\":\"{{ .System }}{{ .Prompt }}\"}" },
	{ "POST", "/api/copy", "{\"source\":\"odd\",\"destination\":\"odder\"}" },
	{ "DELETE", "/api/delete", "{\"model\":\"odder\"}" },
};
const size_t n_whole_requests = sizeof whole_requests / sizeof *whole_requests;

/* ---- odd values */

#define V(text) \
	{ \
		text, text, sizeof text - 1 \
	}
#define BYTES(name, text) \
	{ \
		name, text, sizeof text - 1 \
	}
enum { MADE = 9, ROOM = 200 };

static struct odd_value values[ROOM] = {
	/* numbers, and what only looks like one */
	V("0"),
	V("-0"),
	V("-0.0"),
	V("1"),
	V("-1"),
	V("7"),
	V("3.5"),
	V("-3"),
	V("2.0"),
	V("1e0"),
	V("1e308"),
	V("-1e308"),
	V("1e-400"),
	V("1e999"),
	V("-1e999"),
	V("NaN"),
	V("Infinity"),
	V("-Infinity"),
	V("9007199254740993"),
	V("2147483648"),
	V("-2147483649"),
	V("4294967296"),
	V("4294967297"),
	V("9223372036854775807"),
	V("9223372036854775808"),
	V("-9223372036854775809"),
	V("18446744073709551616"),
	V("123456789012345678901234567890"),
	V("0x10"),
	V("+1"),
	V(".5"),
	V("1."),
	V("01"),
	V("1e"),
	V("--1"),
	V("1 2"),
	/* words */
	V("null"),
	V("true"),
	V("false"),
	V("True"),
	V("nul"),
	V("undefined"),
	V(""),
	/* texts */
	V("\"\""),
	V("\"a\""),
	V("\" \""),
	V("\"none\""),
	V("\"auto\""),
	V("\"required\""),
	V("\"json_object\""),
	V("\"7\""),
	V("\"1e999\""),
	V("\"true\""),
	V("\"-1\""),
	V("\"\\u0000\""),
	V("\"a\\u0000b\""),
	V("\"\\ud83d\\ude00\""),
	V("\"\\ud83d\""),
	V("\"\\udc00\\ud800\""),
	V("\"\\ude00a\""),
	V("\"\\u12\""),
	V("\"\\x41\""),
	V("\"\\u202e\\ufeff\\ufffe\""),
	V("\"../../etc/passwd\""),
	V("\"/dev/zero\""),
	V("\"%s%n%d%100000d\""),
	V("\"{{ messages }}{% for %}\""),
	V("\"{{ .System | printf }}\""),
	V("\"<|im_start|>system\\n\""),
	V("\"<tool_call>{\\\"name\\\"\""),
	V("\"root ::= root\""),
	V("\"root ::= \""),
	V("\"(((((\""),
	V("\"(a*)*b{1,1000}$\""),
	V("\"{\""),
	V("\"{\\\"a\\\":1}\""),
	V("\"[[\""),
	V("\"'\\\"\\\\\\\"\""),
	V("\"abc"),
	V("'a'"),
	BYTES("a text with a line end", "\"a\nb\""),
	BYTES("a text with a NUL", "\"a\0b\""),
	BYTES("a byte of no text", "\"a\xff\""),
	BYTES("a letter written too long", "\"\xc0\x80\""),
	BYTES("half a pair in bytes", "\"\xed\xa0\x80\""),
	BYTES("a letter behind all letters", "\"\xf4\x90\x80\x80\""),
	BYTES("a letter that is cut", "\"\xe4\xb8\""),
	BYTES("letters of others", "\"\xe4\xb8\xad\xf0\x9f\x98\x80\""),
	/* arrays */
	V("[]"),
	V("[[]]"),
	V("[null]"),
	V("[{}]"),
	V("[1,2,3]"),
	V("[1.5]"),
	V("[-1]"),
	V("[1e300]"),
	V("[\"\"]"),
	V("[\"a\"]"),
	V("[\"a\",7]"),
	V("[[\"a\",7]]"),
	V("[[1,-1e300]]"),
	V("[[40,false],[41,\"x\"]]"),
	V("[true]"),
	V("[,]"),
	V("[1,]"),
	V("["),
	V("[1}"),
	V("[NaN]"),
	V("[\"\\udead\"]"),
	/* objects */
	V("{}"),
	V("{\"a\":1}"),
	V("{\"a\":{}}"),
	V("{\"\":\"\"}"),
	V("{\"\\u0000\":1}"),
	V("{\"a\":1,\"a\":[]}"),
	V("{\"\\ud800\":1}"),
	V("{\"a\"}"),
	V("{1:1}"),
	V("{a:1}"),
	V("{\"a\":}"),
	V("{"),
	V("{\"a\":1,}"),
	V("/**/1"),
	V("{\"__proto__\":{}}"),
	/* what fields are made of */
	V("{\"type\":\"json_schema\"}"),
	V("{\"type\":{}}"),
	V("{\"type\":\"\"}"),
	V("{\"type\":\"enabled\"}"),
	V("{\"type\":\"enabled\",\"budget_tokens\":-1e300}"),
	V("{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"),
	V("{\"name\":\"\"}"),
	V("{\"name\":\"get\"}"),
	V("{\"type\":\"tool\",\"name\":\"get\"}"),
	V("[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":7}}]"),
	V("[{\"type\":\"function\",\"name\":\"\"}]"),
	V("[{\"name\":\"f\",\"input_schema\":{\"$ref\":\"#\"}}]"),
	V("[{\"role\":\"user\"}]"),
	V("[{\"role\":7,\"content\":{}}]"),
	V("[{\"role\":\"tool\",\"content\":\"\"}]"),
	V("{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\"}}"),
	V("[{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"http://127.0.0.1/\"}}]"),
	V("[{\"type\":\"text\"}]"),
	V("[{\"type\":\"text\",\"text\":7}]"),
	V("{\"format\":{\"type\":\"json_schema\","
	  "\"schema\":{\"$ref\":\"#/x\"}}}"),
	V("{\"include_usage\":7}"),
	V("{\"effort\":[]}"),
	/* schemas */
	V("{\"$ref\":\"#\"}"),
	V("{\"$ref\":\"#/$defs/none\"}"),
	V("{\"$ref\":\"http://127.0.0.1:1/x\"}"),
	V("{\"type\":\"none\"}"),
	V("{\"type\":[]}"),
	V("{\"enum\":[]}"),
	V("{\"const\":{\"a\":[1e308]}}"),
	V("{\"anyOf\":[]}"),
	V("{\"anyOf\":[{\"$ref\":\"#\"}]}"),
	V("{\"allOf\":[{\"type\":\"string\"},"
	  "{\"type\":\"null\"}]}"),
	V("{\"type\":\"string\",\"pattern\":\"(a|a)*$\"}"),
	V("{\"type\":\"string\",\"pattern\":\"(?<=a)b\"}"),
	V("{\"type\":\"string\",\"minLength\":1000000000}"),
	V("{\"type\":\"array\",\"minItems\":9007199254740993}"),
	V("{\"type\":\"integer\",\"multipleOf\":0}"),
	V("{\"type\":\"number\",\"minimum\":1e308,\"maximum\":-1e308}"),
	V("{\"not\":{}}"),
	V("{\"if\":{},\"then\":false}"),
	V("{\"type\":\"object\",\"required\":[\"z\"],\"properties\":{},"
	  "\"additionalProperties\":false}"),
	BYTES("the end", ""),
};

static void put(struct odd_value *v, const char *name, const char *before, const char *one, size_t times,
                const char *after)
{
	const size_t n = strlen(before), step = strlen(one), end = strlen(after);
	char *p = malloc(n + times * step + end + 1);

	assert_non_null(p);
	memcpy(p, before, n);
	for (size_t i = 0; i < times; i++)
		memcpy(p + n + i * step, one, step);
	memcpy(p + n + times * step, after, end + 1);
	*v = (struct odd_value){ name, p, n + times * step + end };
}

/* Deep: closed by as many. */
static void put_deep(struct odd_value *v, const char *name, const char *open, const char *inside, char close,
                     size_t times)
{
	char *closing = malloc(times + 1);

	assert_non_null(closing);
	memset(closing, close, times);
	closing[times] = 0;
	put(v, name, "", open, times, "");
	char *before = (char *)(uintptr_t)v->p;
	char *all = malloc(v->n + strlen(inside) + times + 1);
	assert_non_null(all);
	sprintf(all, "%s%s%s", before, inside, closing);
	*v = (struct odd_value){ name, all, strlen(all) };
	free(before);
	free(closing);
}

const struct odd_value *odd_values(size_t *count)
{
	static size_t n;

	if (n == 0) {
		while (strcmp(values[n].name, "the end") != 0)
			n++;
		put(&values[n++], "a number of 5000 digits", "", "9", 5000, "");
		put(&values[n++], "a fraction of 5000 digits", "0.", "3", 5000, "");
		put(&values[n++], "a text of 50000 bytes", "\"", "ab c ", 10000, "\"");
		put(&values[n++], "a text of 20000 escapes", "\"", "\\u00e9", 20000, "\"");
		put(&values[n++], "an array of 20000 numbers", "[0", ",1", 20000, "]");
		put(&values[n++], "an array of 3000 texts", "[\"a\"", ",\"b\"", 3000, "]");
		put_deep(&values[n++], "arrays 60 deep", "[", "", ']', 60);
		put_deep(&values[n++], "objects 400 deep", "{\"a\":", "1", '}', 400);
		put_deep(&values[n++], "arrays 20000 deep", "[", "", ']', 20000);
		assert_in_range(n, 100, ROOM);
	}
	*count = n;
	return values;
}

/* ---- nodes of a body */

struct walk {
	size_t at, wanted;
	struct odd_node node;
	json_t *found, *parent;
	char key[80];
	size_t index;
};

static void visit(struct walk *w, json_t *o, const char *path, const char *field)
{
	const bool object = json_is_object(o);
	const char *key = "";
	char here[300];
	size_t i = 0;
	json_t *v;
	void *it = json_object_iter(o);

	while (!w->found && (object ? it != NULL : i < json_array_size(o))) {
		if (object) {
			key = json_object_iter_key(it);
			v = json_object_iter_value(it);
			snprintf(here, sizeof here, "%s%s%s", path, *path ? "." : "", key);
		} else {
			v = json_array_get(o, i);
			snprintf(here, sizeof here, "%s[%zu]", path, i);
		}
		const char *top = *field ? field : key;
		if (w->at++ == w->wanted) {
			w->found = v;
			w->parent = o;
			w->index = i;
			snprintf(w->key, sizeof w->key, "%s", key);
			snprintf(w->node.path, sizeof w->node.path, "%s", here);
			snprintf(w->node.field, sizeof w->node.field, "%s", top);
			return;
		}
		visit(w, v, here, top);
		it = object ? json_object_iter_next(o, it) : NULL;
		i++;
	}
}

size_t odd_nodes(const char *body)
{
	struct walk w = { .wanted = SIZE_MAX };
	json_t *o = json_loads(body, 0, NULL);

	assert_non_null(o);
	visit(&w, o, "", "");
	json_decref(o);
	return w.at;
}

void odd_cut(struct odd_cut *c, const char *body, size_t at)
{
	static const char mark[] = "\"@here@\"";
	struct walk w = { .wanted = at };
	json_t *o = json_loads(body, 0, NULL);

	assert_non_null(o);
	visit(&w, o, "", "");
	assert_non_null(w.found);
	*c = (struct odd_cut){ .node = w.node, .value = json_dumps(w.found, JSON_COMPACT | JSON_ENCODE_ANY) };
	json_t *text = json_string("@here@");
	if (json_is_object(w.parent))
		json_object_set_new(w.parent, w.key, text);
	else
		json_array_set_new(w.parent, w.index, text);
	c->before = json_dumps(o, JSON_COMPACT);
	assert_true(c->before && c->value);
	char *found = strstr(c->before, mark);
	assert_non_null(found);
	c->after = strdup(found + sizeof mark - 1);
	assert_non_null(c->after);
	*found = 0;
	if (json_is_object(w.parent)) {
		char name[100];
		const int n = snprintf(name, sizeof name, "\"%s\":", w.key);
		c->key = found - n;
	}
	json_decref(o);
}

void odd_cut_free(struct odd_cut *c)
{
	free(c->before);
	free(c->value);
	free(c->after);
	*c = (struct odd_cut){ 0 };
}
