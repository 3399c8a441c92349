/* tests/server/field_kinds.c - for the tests of fields: requests, servers and answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/field_kinds.h"
#include "tests/support/fim_model.h"

static const char template[] =
	"{% if tools %}Say <tool_call>{\"name\": ..., \"arguments\": ...}</tool_call> for one of {{ tools | tojson }}"
	"{% endif %}{% if enable_thinking is defined %}It thinks: {{ enable_thinking }}.{% endif %}"
	"{% if reasoning_effort is defined %}Effort {{ reasoning_effort }}.{% endif %}{{ extra }}"
	"{% for d in documents %}{{ d.text }}{% endfor %}"
	"{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
	"{% if add_generation_prompt %}assistant: {% endif %}";
static char template_path[64], slots_path[64];
struct child fields_server, fields_two;
static struct child fields_filling;
static char filling_path[64];
unsigned fields_wrong;

const struct kind kinds[KINDS] = {
	{ CHAT, "chat", "/v1/chat/completions", "\"messages\":[" FIELDS_USER "],\"max_tokens\":12,\"seed\":5" },
	{ TEXT, "completions", "/v1/completions", "\"prompt\":\"A tale\",\"max_tokens\":12,\"seed\":5" },
	{ NATIVE, "completion", "/completion", "\"prompt\":\"A tale\",\"max_tokens\":12,\"seed\":5" },
	{ MESSAGES, "messages", "/v1/messages", "\"messages\":[" FIELDS_USER "],\"max_tokens\":12,\"seed\":5" },
	{ RESPONSES, "responses", "/v1/responses",
	  "\"input\":\"A tale of a king.\",\"max_output_tokens\":12,\"seed\":5" },
	{ EMBED, "embeddings", "/v1/embeddings", "\"input\":\"A tale\"" },
	{ RANK, "rerank", "/v1/rerank", "\"query\":\"What is the sea?\",\"documents\":[\"a\"]" },
	{ TOKENIZE, "tokenize", "/tokenize", "\"content\":\"A tale\"" },
	{ DETOKENIZE, "detokenize", "/detokenize", "\"tokens\":[40,41]" },
	{ SCORE, "score", "/v1/score", "\"text_1\":\"What is the sea?\",\"text_2\":\"a\"" },
	{ INFILL, "infill", "/infill",
	  "\"input_prefix\":\"A tale\",\"input_suffix\":\" of a king\",\"max_tokens\":12,\"seed\":5" },
	{ SLOT, "slots", "/slots/0?action=save", "\"filename\":\"t_fields_base.bin\"" },
	{ OLLAMA_CHAT, "api/chat", "/api/chat",
	  "\"messages\":[" FIELDS_USER "],\"max_tokens\":12,\"seed\":5,\"stream\":false" },
	{ OLLAMA_TEXT, "api/generate", "/api/generate",
	  "\"prompt\":\"A tale\",\"max_tokens\":12,\"seed\":5,\"stream\":false" },
	{ OLLAMA_EMBED, "api/embed", "/api/embed", "\"input\":\"A tale\"" },
	{ OLLAMA_OPTIONS, "ollama's options", "/api/generate", "\"num_predict\":12,\"seed\":5" },
};

int fields_start(void **state)
{
	static const char *arguments[] = { "--no-cache",  "--alias",     "tale-rerank", "--template",
		                           template_path, "--slot-save", slots_path,    "--parallel",
		                           "4",           "--context",   "512",         NULL };
	char other[1024];
	(void)state;

	snprintf(template_path, sizeof template_path, "t_fields.%d.jinja", (int)getpid());
	snprintf(slots_path, sizeof slots_path, "t_fields.%d.slots", (int)getpid());
	FILE *f = fopen(template_path, "w");
	if (mkdir(slots_path, 0700))
		return 1;
	if (!f || fputs(template, f) < 0 || fclose(f))
		return 1;
	fields_server = child_start(arguments);
	fields_two =
		child_start((const char *[]){ source_path(other, "models/tale-q8_0.gguf"), "--alias", "one-rerank",
	                                      "--alias", "two-rerank", "--no-cache", "--slot-save", slots_path, NULL });
	snprintf(filling_path, sizeof filling_path, "t_fields.%d.gguf", (int)getpid());
	fim_model(filling_path);
	fields_filling = child_start(
		(const char *[]){ filling_path, "--no-cache", "--parallel", "4", "--context", "512", NULL });
	return 0;
}

int fields_stop(void **state)
{
	(void)state;
	const int status = child_stop(&fields_server) | child_stop(&fields_two) | child_stop(&fields_filling);
	char command[100];

	unlink(template_path);
	unlink(filling_path);
	snprintf(command, sizeof command, "rm -rf '%s'", slots_path); /* odd values are file names, too */
	return system(command) ? 1 : status;
}

/* What stands twice counts the last time. */
struct answer fields_ask(const struct child *c, const struct kind *k, const char *with, const char *name,
                         const char *value)
{
	const bool options = k->kind == OLLAMA_OPTIONS;
	const char *around = options ? "\"prompt\":\"A tale\",\"stream\":false,\"options\":{" : "";
	const char *behind = options ? "}" : "";
	const size_t room = strlen(k->base) + strlen(with) + strlen(value) + strlen(around) + 200;
	char *body = malloc(room);

	assert_non_null(body);
	const bool fills = k->kind == INFILL || ((k->kind & (TEXT | OLLAMA_TEXT)) &&
	                                         (strstr(with, "\"suffix\"") || (name && strcmp(name, "suffix") == 0)));
	char model[100];
	snprintf(model, sizeof model, "\"model\":\"%.*s\",", (int)strcspn(filling_path, "g") - 1, filling_path);
	if (fills)
		around = model;
	snprintf(body, room, name ? "{%s%s%s%s,\"%s\":%s%s}" : "{%s%s%s%s%s%s%s}", around, k->base, *with ? "," : "",
	         with, name ? name : "", value, behind);
	for (char *at = body; k->kind != RESPONSES && (at = strstr(at, "max_output_tokens"));)
		memcpy(at, "x_no", 4); /* others have no field of that name */
	struct answer a = client_ask(fills ? &fields_filling : c, k->path, NULL, body);
	free(body);
	return a;
}

void fields_must_be_right(void)
{
	const unsigned n = fields_wrong;

	fields_wrong = 0;
	assert_int_equal(n, 0);
}

/* Names, times and counts that differ from one request to the next are taken out. */
static json_t *essence(json_t *o)
{
	static const char *const names[] = {
		"id",
		"created",
		"created_at",
		"timings",
		"usage",
		"tokens_cached",
		"id_slot",
		"generation_settings",
		"prompt",
		"instructions",
		"max_output_tokens",
		"metadata",
		"reasoning",
		"text_config",
		"tool_choice",
		"tools",
		"item_id",
		"call_id",
		"completed_at",
		"progress",
		"total_duration",
		"load_duration",
		"prompt_eval_duration",
		"eval_duration"
	};
	const char *name;
	json_t *one;
	void *next;
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		json_object_del(o, names[i]);
	if (json_is_object(json_object_get(o, "text"))) /* of responses: what was asked for */
		json_object_del(o, "text");
	json_object_foreach_safe(o, next, name, one) essence(one);
	json_array_foreach(o, i, one) essence(one);
	return o;
}

json_t *fields_told(struct answer *a, const char *what)
{
	json_t *o = a->status == 200 ? json_loads(a->body, JSON_DECODE_ANY, NULL) : NULL;

	if (!o)
		COMPLAIN("%s: status %d, %.600s", what, a->status, a->body ? a->body : "");
	answer_free(a);
	return essence(o);
}

/* A refusal names its field, or begins its sentence with it. */
void fields_check_refused(struct answer *a, const char *name, const char *what)
{
	json_t *o = a->body ? json_loads(a->body, 0, NULL) : NULL, *e = json_object_get(o, "error");
	const char *text = json_string_value(e); /* of ollama's API, which has no field for the name */
	const char *message = text ? text : json_string_value(json_object_get(e, "message"));
	const char *param = text ? strstr(text, name) : json_string_value(json_object_get(e, "param"));

	if ((a->status != 400 && a->status != 404) || !message || !param || strncmp(param, name, strlen(name)) != 0)
		COMPLAIN("%s: status %d, %.600s", what, a->status, a->body ? a->body : "");
	json_decref(o);
	answer_free(a);
}

const char *fields_harmless(unsigned harmless)
{
	return harmless & HARMLESS_FALSE    ? "false"
	       : harmless & HARMLESS_TRUE   ? "true"
	       : harmless & HARMLESS_ZERO   ? "0"
	       : harmless & HARMLESS_ONE    ? "1.0"
	       : harmless & HARMLESS_TWO    ? "2"
	       : harmless & HARMLESS_MINUS  ? "-1"
	       : harmless & HARMLESS_EMPTY  ? "[]"
	       : harmless & HARMLESS_WORD   ? "\"none\""
	       : harmless & HARMLESS_TEXTS  ? "[\"text\"]"
	       : harmless & HARMLESS_STRING ? "\"a text\""
	                                    : "null";
}
