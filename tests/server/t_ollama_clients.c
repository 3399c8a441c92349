/* tests/server/t_ollama_clients.c - requests as programs send them that were written for ollama, in their order: each
 * is answered as the program reads it.
 *
 * The bodies have what these programs put into them: fields that are null or empty, options that mean nothing here,
 * messages without names of calls, base URLs with a slash too many.
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

#include "tests/server/said_lines.h"

static const char template[] =
	"{% for t in tools %}{{ t | tojson }}{% endfor %}{% if enable_thinking %}<think>{% endif %}"
	"{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}{{ c.function.name }}"
	"{{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}assistant: ";
static char template_path[64];
static struct child server;

static int start(void **state)
{
	(void)state;
	snprintf(template_path, sizeof template_path, "t_ollama_clients.%d.jinja", (int)getpid());
	FILE *f = fopen(template_path, "w");
	if (!f || fputs(template, f) < 0 || fclose(f))
		return 1;
	server = child_start((const char *[]){ "--no-cache", "--alias", "tale", "--template", template_path, NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	unlink(template_path);
	return child_stop(&server);
}

#define TOOL(name) \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"description\":\"Does it.\",\"parameters\":{" \
	"\"type\":\"object\",\"required\":[\"name\"],\"properties\":{\"name\":{\"type\":\"string\"," \
	"\"description\":\"which\"}}}}}"

enum form { WHOLE, LINES, EVENTS };
struct step {
	const char *path, *body; /* NULL: GET */
	enum form form;
	const char *has; /* of an answer: what the program looks for, as at() has it */
};

/* Copilot in VS Code: a version that is new enough, models that can call tools, and then OpenAI's API. */
static const struct step vscode[] = {
	{ "/api/version", NULL, WHOLE, "version" },
	{ "/api/tags", NULL, WHOLE, "models.0.model" },
	{ "/api/show", "{\"model\":\"tale:latest\"}", WHOLE, "capabilities.0" },
	{ "/v1/chat/completions",
	  "{\"model\":\"tale:latest\",\"messages\":[{\"role\":\"system\",\"content\":\"You are an expert.\"},"
	  "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Rename it.\"}]}],\"tools\":[" TOOL(
		  "read_file") "," TOOL("edit") "],\"tool_choice\":\"auto\",\"temperature\":0.1,\"top_p\":1,\"max_"
	                                        "tokens\":12,\"n\":1,"
	                                        "\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
	  EVENTS, NULL },
	{ NULL, NULL, WHOLE, NULL },
};

/* Home Assistant: results of calls have no names, and models stay for good. */
static const struct step home_assistant[] = {
	{ "/api/tags", NULL, WHOLE, "models.0.model" },
	{ "/api/chat",
	  "{\"model\":\"tale:latest\",\"messages\":[{\"role\":\"system\",\"content\":\"You are a voice assistant.\"},"
	  "{\"role\":\"user\",\"content\":\"Turn on the lamp.\"}],\"tools\":[" TOOL("HassTurnOn") "," TOOL(
		  "HassTurnOff") "],\"stream\":true,\"options\":{\"num_ctx\":8192,\"num_predict\":12},\"keep_alive\":"
	                         "\"-1s\",\"think\":false}",
	  LINES, "message.role" },
	{ "/api/chat",
	  "{\"model\":\"tale:latest\",\"messages\":[{\"role\":\"user\",\"content\":\"Turn on both lamps.\"},"
	  "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"HassTurnOn\","
	  "\"arguments\":{"
	  "\"name\":\"lamp\"}}},{\"function\":{\"name\":\"HassTurnOn\",\"arguments\":{\"name\":\"light\"}}}]},"
	  "{\"role\":\"tool\",\"content\":\"{\\\"success\\\":true}\"},{\"role\":\"tool\",\"content\":\"{}\"}],"
	  "\"tools\":[" TOOL("HassTurnOn") "],\"stream\":true,\"options\":{\"num_ctx\":8192,\"num_predict\":12},"
	                                   "\"keep_alive\":\"-1s\",\"think\":false}",
	  LINES, "message.role" },
	{ NULL, NULL, WHOLE, NULL },
};

static const struct step open_webui[] = {
	{ "//api/version", NULL, WHOLE, "version" },
	{ "/api/tags", NULL, WHOLE, "models.0.details.parameter_size" },
	{ "/api/ps", NULL, WHOLE, "models.0.expires_at" },
	{ "/api/show", "{\"name\":\"tale:latest\"}", WHOLE, "model_info" },
	{ "/api/chat",
	  "{\"model\":\"tale:latest\",\"messages\":[{\"role\":\"user\",\"content\":\"Tell me a tale.\"}],\"options\":{"
	  "\"temperature\":0.7,\"top_k\":40,\"top_p\":0.9,\"min_p\":0.0,\"repeat_penalty\":1.1,\"repeat_last_n\":64,"
	  "\"num_ctx\":2048,\"num_batch\":512,\"num_keep\":24,\"num_predict\":12,\"num_thread\":2,\"num_gpu\":0,"
	  "\"use_mmap\":true,\"use_mlock\":false,\"tfs_z\":1,\"mirostat\":0,\"mirostat_eta\":0.1,\"mirostat_tau\":5.0,"
	  "\"seed\":0,\"stop\":[\"<|im_end|>\"]},\"stream\":true,\"keep_alive\":\"5m\"}",
	  LINES, "message.content" },
	{ "/api/chat",
	  "{\"model\":\"tale:latest\",\"messages\":[{\"role\":\"user\",\"content\":\"A title in 3 words.\"}],"
	  "\"stream\":false,\"options\":{\"num_predict\":12}}",
	  WHOLE, "message.content" },
	{ "/api/embed", "{\"model\":\"tale:latest\",\"input\":[\"a\",\"b\"],\"truncate\":true}", WHOLE,
	  "embeddings.1" },
	{ NULL, NULL, WHOLE, NULL },
};

/* ChatOllama and OllamaEmbeddings leave nothing out. */
static const struct step langchain[] = {
	{ "/api/chat",
	  "{\"model\":\"tale\",\"messages\":[{\"role\":\"system\",\"content\":\"Be "
	  "kind.\",\"images\":[]},{\"role\":\"user\","
	  "\"content\":\"Hello\",\"images\":[]}],\"tools\":[],\"stream\":true,\"format\":\"\",\"think\":null,"
	  "\"options\":{"
	  "\"mirostat\":null,\"mirostat_eta\":null,\"mirostat_tau\":null,\"num_ctx\":null,\"num_gpu\":null,"
	  "\"num_thread\":null,\"num_predict\":12,\"repeat_last_n\":null,\"repeat_penalty\":null,\"temperature\":0,"
	  "\"seed\":null,\"stop\":null,\"tfs_z\":null,\"top_k\":null,\"top_p\":null},\"keep_alive\":null}",
	  LINES, "message.content" },
	{ "/api/chat",
	  "{\"model\":\"tale\",\"messages\":[{\"role\":\"user\",\"content\":\"Add.\",\"images\":[]},{\"role\":"
	  "\"assistant\","
	  "\"content\":\"\",\"images\":[],\"tool_calls\":[{\"type\":\"function\",\"id\":\"7c1\",\"function\":{\"name\":"
	  "\"add\",\"arguments\":{\"name\":\"a\"}}}]},{\"role\":\"tool\",\"content\":\"5\",\"images\":[],\"tool_call_"
	  "id\":"
	  "\"7c1\"}],\"tools\":[" TOOL("add") "],\"stream\":true,\"format\":null,\"options\":{\"num_predict\":12},"
	                                      "\"keep_alive\":300}",
	  LINES, "message.content" },
	{ "/api/chat",
	  "{\"model\":\"tale\",\"messages\":[{\"role\":\"user\",\"content\":\"A "
	  "person.\",\"images\":[]}],\"stream\":true,"
	  "\"format\":{\"title\":\"Person\",\"type\":\"object\",\"properties\":{\"tall\":{\"title\":\"Tall\",\"type\":"
	  "\"boolean\"}},\"required\":[\"tall\"]},\"options\":{\"num_predict\":60,\"temperature\":0}}",
	  LINES, "message.content" },
	{ "/api/embed",
	  "{\"model\":\"tale\",\"input\":[\"a "
	  "text\"],\"truncate\":true,\"options\":{\"temperature\":null,\"num_ctx\":null,"
	  "\"num_gpu\":null,\"top_k\":null,\"seed\":null},\"keep_alive\":null}",
	  WHOLE, "embeddings.0" },
	{ NULL, NULL, WHOLE, NULL },
};

static const struct step continue_dev[] = {
	{ "/api/tags", NULL, WHOLE, "models.0.name" },
	{ "/api/show", "{\"name\":\"tale\"}", WHOLE, "template" },
	{ "/api/chat",
	  "{\"model\":\"tale\",\"messages\":[{\"role\":\"user\",\"content\":\"Explain it.\"}],\"options\":{"
	  "\"temperature\":0.5,\"top_p\":0.9,\"num_predict\":12,\"num_ctx\":4096,\"stop\":[\"</s>\"],\"num_thread\":4,"
	  "\"use_mmap\":true},\"keep_alive\":1800,\"stream\":true}",
	  LINES, "message.content" },
	{ "/api/generate",
	  "{\"model\":\"tale\",\"prompt\":\"def f(x):\",\"raw\":true,\"suffix\":\"\",\"images\":[],\"options\":{"
	  "\"temperature\":0.01,\"num_predict\":12,\"stop\":[\"\\n\\n\",\"```\"],\"num_ctx\":4096},\"keep_alive\":1800,"
	  "\"stream\":true}",
	  LINES, "response" },
	{ NULL, NULL, WHOLE, NULL },
};

/* aider and others by litellm, in both of its forms. */
static const struct step litellm[] = {
	{ "/api/show", "{\"name\":\"tale\"}", WHOLE, "model_info" },
	{ "/api/chat",
	  "{\"model\":\"tale\",\"messages\":[{\"role\":\"system\",\"content\":\"Act as an "
	  "expert.\"},{\"role\":\"user\","
	  "\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Ok.\"},{\"role\":\"user\",\"content\":\"Change "
	  "it.\"}],"
	  "\"options\":{\"temperature\":0,\"num_ctx\":8704,\"num_predict\":12},\"stream\":true}",
	  LINES, "message.content" },
	{ "/api/generate",
	  "{\"model\":\"tale\",\"prompt\":\"### User:\\nHi\\n\\n\",\"options\":{\"num_predict\":12},\"stream\":false,"
	  "\"images\":[]}",
	  WHOLE, "response" },
	{ NULL, NULL, WHOLE, NULL },
};

static const struct step zed[] = {
	{ "/api/tags", NULL, WHOLE, "models.0.details.family" },
	{ "/api/show", "{\"model\":\"tale:latest\"}", WHOLE, "capabilities" },
	{ "/api/chat",
	  "{\"model\":\"tale:latest\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\",\"images\":null},{\"role\":"
	  "\"assistant\",\"content\":\"Hm\",\"tool_calls\":null,\"images\":null,\"thinking\":null},{\"role\":\"user\","
	  "\"content\":\"Go on\"}],\"stream\":true,\"keep_alive\":-1,\"options\":{\"num_ctx\":2048,\"num_predict\":12,"
	  "\"stop\":[],\"temperature\":1.0,\"top_p\":null},\"think\":true,\"tools\":[]}",
	  LINES, "message.role" },
	{ NULL, NULL, WHOLE, NULL },
};

static void check_lines(const struct step *s)
{
	json_t *lines = ask_lines(&server, s->path, s->body);
	const json_t *line;
	size_t i, n = json_array_size(lines);

	assert_true(n > 1);
	json_array_foreach(lines, i, line)
	{
		if (!at(line, s->has) || at(line, "error"))
			fail_msg("%s: line %zu has no %s", s->path, i, s->has);
		assert_int_equal(json_is_true(at(line, "done")), i == n - 1);
	}
	assert_true(number_at(json_array_get(lines, n - 1), "eval_count") > 0);
	json_decref(lines);
}

static void replay(const struct step *s)
{
	for (; s->path; s++) {
		if (s->form == LINES) {
			check_lines(s);
			continue;
		}
		struct answer a = client_ask(&server, s->path, NULL, s->body);
		json_t *o = s->form == WHOLE ? json_loads(a.body ? a.body : "", 0, NULL) : NULL;
		if (a.status != 200 || (s->has && !at(o, s->has)) ||
		    (s->form == EVENTS && !strstr(a.body, "data: [DONE]")))
			fail_msg("%s %s: status %d, %.600s", s->path, s->body ? s->body : "", a.status, a.body);
		json_decref(o);
		answer_free(&a);
	}
}

static void test_vscode(void **state)
{
	json_t *show = client_json(&server, "/api/show", "{\"model\":\"tale:latest\"}", 200);
	bool tools = false;
	size_t i;
	const json_t *one;
	(void)state;

	json_array_foreach(at(show, "capabilities"), i, one) tools =
		tools || strcmp(json_string_value(one), "tools") == 0;
	assert_true(tools);
	json_decref(show);
	replay(vscode);
}

static void test_programs(void **state)
{
	(void)state;
	replay(home_assistant);
	replay(open_webui);
	replay(langchain);
	replay(continue_dev);
	replay(litellm);
	replay(zed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vscode),
		cmocka_unit_test(test_programs),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
