/* tests/server/t_ollama_make.c - models that clients make of others and copy: that they answer as the model they are
 * made of does when it is told the same, and what lies on the disk.
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
#include "tests/server/made_models.h"

/* ---- what one answers */

static void test_answers(void **state)
{
	(void)state;
	make("mario", MARIO);
	check_same("mario", HI, "", SYSTEM "," BEGINS "," HI, AS_MARIO);
	check_same("mario:latest", HI, "\"options\":{\"num_predict\":5}", SYSTEM "," BEGINS "," HI,
	           "\"options\":{\"temperature\":0,\"num_predict\":5,\"stop\":[\"king\",\"sea\"]}");
	/* Of a model that was made: what is said takes the place of what is kept. */
	make("me/luigi:small", "\"from\":\"mario\",\"system\":\"You are Luigi.\",\"parameters\":{\"stop\":[\"ship\"],"
	                       "\"Temperature\":\"0.5\",\"seed\":7}");
	check_same("me/luigi:small", HI, "", "{\"role\":\"system\",\"content\":\"You are Luigi.\"}," BEGINS "," HI,
	           "\"options\":{\"temperature\":0.5,\"seed\":7,\"num_predict\":12,\"stop\":[\"ship\"]}");
	/* OpenAI's clients have it, too. */
	json_t *o = client_json(&server, "/v1/chat/completions", "{\"model\":\"me/luigi:small\",\"messages\":[" HI "]}",
	                        200),
	       *list = client_json(&server, "/v1/models", NULL, 200);
	assert_int_equal(json_array_size(at(list, "data")), 3);
	json_decref(o);
	json_decref(list);
	must_delete("mario", 200);
	must_delete("me/luigi:small", 200);
}

static void test_template(void **state)
{
	static const char jinja[] = "{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}then";
	char more[400];
	(void)state;

	snprintf(more, sizeof more, "\"from\":\"tale\",\"template\":\"%s\"", jinja);
	make("shaped", more);
	json_t *o = ask(&server, "/apply-template", "\"model\":\"shaped\",\"messages\":[" HI "]", "");
	assert_string_equal(text_at(o, "prompt"), "[user] Hi. then");
	json_decref(o);
	o = show("shaped");
	assert_string_equal(text_at(o, "template"), jinja);
	json_decref(o);
	/* In Go's language, as ollama has them. */
	make("shaped",
	     "\"from\":\"tale\",\"template\":\"{{ range .Messages }}<{{ .Role }}> {{ .Content }} {{ end }}then\"");
	o = ask(&server, "/apply-template", "\"model\":\"shaped\",\"messages\":[" HI "]", "");
	assert_string_equal(text_at(o, "prompt"), "<user> Hi. then");
	json_decref(o);
	must_delete("shaped", 200);
}

/* ---- what is told of it */

static void test_told(void **state)
{
	static const char *const lines[] = {
		"FROM tale\n",
		"SYSTEM \"\"\"You are \"Mario\".\nBe short.\"\"\"\n",
		"PARAMETER stop \"king\"\n",
		"PARAMETER temperature 0\n",
		"MESSAGE assistant \"Me.\"\n",
		"LICENSE \"or else\"\n"
	};
	(void)state;

	make("mario", MARIO);
	json_t *o = show("mario"), *tags = client_json(&server, "/api/tags", NULL, 200);
	assert_string_equal(text_at(o, "system"), "You are \"Mario\".\nBe short.");
	assert_string_equal(text_at(o, "license"), "MIT\nor else");
	assert_string_equal(text_at(o, "parameters"),
	                    "temperature 0\nnum_predict 12\nstop \"king\"\nstop \"sea\"\nnum_ctx 300");
	assert_string_equal(text_at(o, "details.parent_model"), "tale");
	assert_string_equal(text_at(o, "messages.1.content"), "Me.");
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (!strstr(text_at(o, "modelfile"), lines[i]))
			fail_msg("%s has no %s", text_at(o, "modelfile"), lines[i]);
	assert_null(strstr(text_at(o, "modelfile"), ".gguf"));
	assert_int_equal(json_array_size(at(tags, "models")), 2);
	assert_string_equal(text_at(tags, "models.1.name"), "mario:latest");
	assert_string_equal(text_at(tags, "models.1.details.parent_model"), "tale");
	assert_string_not_equal(text_at(tags, "models.0.digest"), text_at(tags, "models.1.digest"));
	json_decref(o);
	json_decref(tags);
	must_delete("mario", 200);
}

static void test_lines(void **state)
{
	json_t *lines = ask_lines(&server, "/api/create", "{\"name\":\"lined\",\"from\":\"tale:latest\"}");
	const size_t n = json_array_size(lines);
	(void)state;

	assert_true(n > 1);
	for (size_t i = 0; i < n; i++)
		assert_true(strlen(text_at(json_array_get(lines, i), "status")) > 0);
	assert_string_equal(text_at(json_array_get(lines, n - 1), "status"), "success");
	json_decref(lines);
	check_same("lined", HI, "\"seed\":3,\"max_tokens\":9", HI, "\"seed\":3,\"max_tokens\":9");
	must_delete("lined", 200);
}

/* ---- copies */

static void test_copies(void **state)
{
	(void)state;
	make("mario", MARIO);
	struct answer a = client_ask(&server, "/api/copy", NULL, "{\"source\":\"mario\",\"destination\":\"wario\"}");
	assert_int_equal(a.status, 200);
	assert_int_equal(a.n_body, 0);
	answer_free(&a);
	must_delete("mario", 200);
	must_delete("mario", 404);
	check_same("wario", HI, "", SYSTEM "," BEGINS "," HI, AS_MARIO);
	a = client_ask(&server, "/api/copy", NULL, "{\"source\":\"tale\",\"destination\":\"tale:again\"}");
	assert_int_equal(a.status, 200);
	answer_free(&a);
	check_same("tale:again", HI, "\"seed\":3,\"max_tokens\":9", HI, "\"seed\":3,\"max_tokens\":9");
	must_delete("wario", 200);
	must_delete("tale:again", 200);
	assert_int_equal(files(), 0);
}

/* Made again, it is another: also for who asks while it is in memory. */
static void test_replaced(void **state)
{
	char more[200];
	(void)state;

	for (int i = 0; i < 5; i++) {
		snprintf(more, sizeof more, "\"from\":\"%s\",\"system\":\"Number %d.\"", i ? "same" : "tale", i);
		make("same", more);
		snprintf(more, sizeof more, "{\"role\":\"system\",\"content\":\"Number %d.\"}," HI, i);
		check_same("same", HI, "\"seed\":3,\"max_tokens\":6", more, "\"seed\":3,\"max_tokens\":6");
	}
	assert_int_equal(files(), 1);
	must_delete("same", 200);
}

/* ---- on the disk */

static void write_in(const char *name, const char *text)
{
	char path[200];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *f = fopen(path, "w");
	assert_true(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* What was made is there after a start, and jitrun runs it; what cannot be served is told and left alone. */
static void test_start(void **state)
{
	char command[400], said[300] = "", text[1200], model[1024];
	(void)state;

	make("mario", MARIO);
	make("me/luigi:small", "\"from\":\"mario\",\"system\":\"You are Luigi.\"");
	write_in(".unfinished-abcdef", "{");
	write_in("broken:1.preset", "{\"model\":");
	write_in("lost:1.preset", "{\"model\":\"/nonesuch.gguf\"}");
	write_in("hot:1.preset", "{\"model\":\"/nonesuch.gguf\",\"temperature\":\"hot\"}");
	write_in("other.txt", "no preset");
	snprintf(text, sizeof text, "FROM %s\nSYSTEM By hand.\n", source_path(model, "models/tale-q8_0.gguf"));
	write_in("hand:1.preset", text);
	assert_int_equal(child_stop(&server), 0);
	server = begin();
	check_same("mario", HI, "", SYSTEM "," BEGINS "," HI, AS_MARIO);
	check_same("me/luigi:small", HI, "", "{\"role\":\"system\",\"content\":\"You are Luigi.\"}," BEGINS "," HI,
	           AS_MARIO);
	check_same("hand:1", HI, "\"seed\":3,\"max_tokens\":6", "{\"role\":\"system\",\"content\":\"By hand.\"}," HI,
	           "\"seed\":3,\"max_tokens\":6");
	json_t *list = client_json(&server, "/v1/models", NULL, 200);
	assert_int_equal(json_array_size(at(list, "data")), 4);
	json_decref(list);
	assert_int_equal(files(), 7);
	snprintf(command, sizeof command,
	         "./jitrun '%s/mario:latest.preset' --no-cache --no-chat -n 3 --prompt 'Once upon' 2>&1", folder);
	FILE *p = popen(command, "r");
	assert_non_null(p);
	assert_true(fread(said, 1, sizeof said - 1, p) > 0);
	assert_int_equal(pclose(p), 0);
	must_delete("hand:1", 200);
	must_delete("mario", 200);
	must_delete("me/luigi:small", 200);
	snprintf(command, sizeof command, "rm %s/*", folder);
	assert_int_equal(system(command), 0);
}

/* A folder that cannot be written: nothing is made, and what was there stays. */
static void test_no_room(void **state)
{
	(void)state;
	make("mario", MARIO);
	char moved[100];
	snprintf(moved, sizeof moved, "%s.moved", folder);
	assert_int_equal(rename(folder, moved), 0);
	json_t *o = client_json(&server, "/api/create", "{\"model\":\"mario\",\"from\":\"tale\"}", 503);
	assert_non_null(strstr(text_at(o, "error"), "--presets-dir"));
	json_decref(o);
	assert_int_equal(rename(moved, folder), 0);
	assert_int_equal(files(), 1);
	check_same("mario", HI, "", SYSTEM "," BEGINS "," HI, AS_MARIO);
	must_delete("mario", 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_template), cmocka_unit_test(test_told),
		cmocka_unit_test(test_lines),   cmocka_unit_test(test_copies),   cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_start),   cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
