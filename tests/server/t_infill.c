/* tests/server/t_infill.c - text that fills a gap: its prompt, token by token, beside /completion with these tokens;
 * what is left out where it does not fit; what models without the tokens say. Vectors and scores in the forms of other
 * servers, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/completions/infill.h"
#include "tests/server/client.h"
#include "tests/support/fim_model.h"
#include "tests/support/shared.h"

static struct child server;

static int start(void **state)
{
	(void)state;
	fim_model("t_infill-rerank.gguf");
	server = child_start((const char *[]){ "t_infill-rerank.gguf", "--no-cache", "--context", "256", NULL });
	return 0;
}

static int stop(void **state)
{
	(void)state;
	const int status = child_stop(&server);

	unlink("t_infill-rerank.gguf");
	return status;
}

static json_t *ask(const char *path, const char *more, int status)
{
	char body[9000];

	snprintf(body, sizeof body, "{\"model\":\"t_infill-rerank\",\"temperature\":0,\"n_predict\":16,%.8000s}", more);
	return client_json(&server, path, body, status);
}

/* Tokens of a text behind a token, and before the next one: with commas around them. */
static void add_ids(char *to, const char *text)
{
	char body[2000];
	json_t *given = json_string(text);
	char *spelled = json_dumps(given, JSON_ENCODE_ANY);

	snprintf(body, sizeof body, "{\"content\":%s,\"parse_special\":false}", spelled);
	json_t *o = client_json(&server, "/tokenize", body, 200), *list = json_object_get(o, "tokens");
	for (size_t i = 0; i < json_array_size(list); i++)
		sprintf(to + strlen(to), "%d,", (int)json_integer_value(json_array_get(list, i)));
	json_decref(o);
	json_decref(given);
	free(spelled);
}

/* What /completion says behind tokens: those of texts, with a mark before each. */
static char *by_tokens(const char *before, const char *behind, const char *middle)
{
	char list[4000] = "0,", more[5000];

	sprintf(list + strlen(list), "%d,", FIM_PREFIX);
	add_ids(list, before);
	sprintf(list + strlen(list), "%d,", FIM_SUFFIX);
	add_ids(list, behind);
	sprintf(list + strlen(list), "%d,", FIM_MIDDLE);
	add_ids(list, middle);
	list[strlen(list) - 1] = 0;
	snprintf(more, sizeof more, "\"prompt\":[%s],\"stop_token_ids\":[%d,%d,%d]", list, FIM_PREFIX, FIM_SUFFIX,
	         FIM_MIDDLE);
	json_t *o = ask("/completion", more, 200);
	char *text = strdup(json_string_value(json_object_get(o, "content")));
	json_decref(o);
	return text;
}

static void test_prompt(void **state)
{
	static const struct {
		const char *before, *behind, *middle;
	} cases[] = {
		{ "Once upon a time", "lived in a castle.", "" },
		{ "Once upon", " lived.", " a king" },
		{ "", "The end.", "" },
		{ "The king said: ", "", "" },
		{ "f\xc3\xbcr\n\n", "\xe6\x97\xa5 <|begin_of_text|>", "" },
	};
	char more[2000];
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *expected = by_tokens(cases[i].before, cases[i].behind, cases[i].middle);
		json_t *texts[3] = { json_string(cases[i].before), json_string(cases[i].behind),
			             json_string(cases[i].middle) };
		char *spelled[3];
		for (int k = 0; k < 3; k++)
			spelled[k] = json_dumps(texts[k], JSON_ENCODE_ANY);
		snprintf(more, sizeof more, "\"input_prefix\":%s,\"input_suffix\":%s,\"prompt\":%s", spelled[0],
		         spelled[1], spelled[2]);
		json_t *o = ask("/infill", more, 200);
		assert_string_equal(json_string_value(json_object_get(o, "content")), expected);
		json_decref(o);
		if (!*cases[i].middle && *cases[i].behind) {
			snprintf(more, sizeof more, "\"prompt\":%s,\"suffix\":%s", spelled[0], spelled[1]);
			o = ask("/v1/completions", more, 200);
			const json_t *choice = json_array_get(json_object_get(o, "choices"), 0);
			assert_string_equal(json_string_value(json_object_get(choice, "text")), expected);
			json_decref(o);
			strcat(more, ",\"stream\":false");
			o = ask("/api/generate", more, 200);
			assert_string_equal(json_string_value(json_object_get(o, "response")), expected);
			assert_null(json_object_get(o, "context")); /* its tokens begin no conversation */
			json_decref(o);
		}
		for (int k = 0; k < 3; k++) {
			json_decref(texts[k]);
			free(spelled[k]);
		}
		free(expected);
	}
}

/* As an editor sends it, with what only its own server knows. */
static void test_editor(void **state)
{
	static const char body[] =
		"\"id_slot\":0,\"input_prefix\":\"int main(void)\\n{\\n\",\"input_suffix\":\"\\n}\\n\",\"input_extra\":"
		"[{\"text\":\"int f(void);\",\"time\":1.5,\"filename\":\"f.h\"}],\"prompt\":\"\\treturn\",\"stop\":[],"
		"\"n_indent\":8,\"top_k\":40,\"top_p\":0.9,\"samplers\":[\"top_k\",\"top_p\",\"infill\"],\"stream\":"
		"false,\"cache_prompt\":true,\"t_max_prompt_ms\":500,\"t_max_predict_ms\":1000,\"response_fields\":["
		"\"content\",\"timings/prompt_n\",\"truncated\"]";
	(void)state;

	json_t *o = ask("/infill", body, 200);
	assert_true(json_is_string(json_object_get(o, "content")));
	assert_true(json_integer_value(json_object_get(o, "timings/prompt_n")) > 10);
	json_decref(o);
	/* The request by which editors fill the cache beforehand. */
	o = ask("/infill",
	        "\"n_predict\":0,\"input_prefix\":\"\",\"input_suffix\":\"\",\"prompt\":\"\",\"input_extra\":[]", 200);
	json_decref(o);
}

static size_t prompt_of(const char *more)
{
	json_t *o = ask("/infill", more, 200);
	const size_t n = (size_t)json_integer_value(json_object_get(o, "tokens_evaluated"));

	json_decref(o);
	return n;
}

static unsigned times(const char *text, const char *word)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, word)); at++)
		n++;
	return n;
}

/* What is too long loses other files first, and then what is farthest from the gap. */
static void test_long(void **state)
{
	char many[3000] = "", more[8000];
	(void)state;

	for (int i = 0; i < 300; i++)
		strcat(many, "king ");
	const size_t small = prompt_of("\"input_prefix\":\"a\",\"input_suffix\":\"b\"");
	assert_in_range(small, 5, 6);
	snprintf(more, sizeof more, "\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"input_extra\":[{\"text\":\"%s\"}]",
	         many);
	assert_in_range(prompt_of(more), 200, 240);
	snprintf(more, sizeof more, "\"input_prefix\":\"%s\",\"input_suffix\":\"%s\"", many, many);
	assert_in_range(prompt_of(more), 200, 240);
	snprintf(more, sizeof more, "\"input_prefix\":\"%s\",\"input_suffix\":\"b\"", many);
	assert_in_range(prompt_of(more), 200, 240);
	snprintf(more, sizeof more, "\"input_prefix\":\"a\",\"input_suffix\":\"%s\"", many);
	assert_in_range(prompt_of(more), 40, 240);
	/* The end of what is before the gap and the beginning of what is behind it are what counts. */
	snprintf(more, sizeof more, "\"input_prefix\":\"%s The old king said\",\"input_suffix\":\" to her. %s\"", many,
	         many);
	json_t *a = ask("/infill", more, 200);
	snprintf(more, sizeof more, "\"input_prefix\":\"x %s The old king said\",\"input_suffix\":\" to her. %s x\"",
	         many, many);
	json_t *b = ask("/infill", more, 200);
	assert_true(json_equal(json_object_get(a, "content"), json_object_get(b, "content")));
	json_decref(a);
	json_decref(b);
	/* Three parts of what is before the gap, and one of what is behind it. */
	strcpy(many, "");
	for (int i = 0; i < 300; i++)
		strcat(many, "tale ");
	char *kings = strdup(many);
	for (char *at = kings; (at = strstr(at, "tale")); at++)
		memcpy(at, "king", 4);
	snprintf(more, sizeof more, "\"input_prefix\":\"%s\",\"input_suffix\":\"%s\"", kings, many);
	a = ask("/infill", more, 200);
	const char *prompt = json_string_value(json_object_get(a, "prompt"));
	assert_non_null(prompt);
	const unsigned before = times(prompt, "king"), behind = times(prompt, "tale");
	if (behind < 20 || before < 2 * behind || before > 4 * behind)
		fail_msg("%u words before the gap, %u behind it", before, behind);
	json_decref(a);
	free(kings);
}

/* Each mark of a gap ends an answer, whichever the model says. */
static void test_marks_end(void **state)
{
	static const int marks[] = { FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE };
	char more[300];
	(void)state;

	for (int i = 0; i < 3; i++) {
		snprintf(more, sizeof more, "\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"logit_bias\":[[%d,100]]",
		         marks[i]);
		json_t *o = ask("/infill", more, 200);
		assert_string_equal(json_string_value(json_object_get(o, "content")), "");
		assert_in_range(json_integer_value(json_object_get(o, "tokens_predicted")), 0, 1);
		json_decref(o);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *path, *more, *param, *says;
	} cases[] = {
		{ "/infill", "\"model\":\"tale-q8_0\",\"input_prefix\":\"a\",\"input_suffix\":\"b\"", "model",
		  "cannot fill in text" },
		{ "/infill", "\"model\":\"tale-q8_0\"", "model", "cannot fill in text" },
		{ "/v1/completions", "\"model\":\"tale-q8_0\",\"prompt\":\"a\",\"suffix\":\"b\"", "suffix",
		  "cannot fill in text" },
		{ "/infill", "\"input_suffix\":\"b\"", "input_prefix", "is missing" },
		{ "/infill", "\"input_prefix\":\"b\"", "input_suffix", "is missing" },
		{ "/infill", "\"input_prefix\":7,\"input_suffix\":\"b\"", "input_prefix", "expected a string" },
		{ "/infill", "\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"prompt\":[1]", "prompt",
		  "expected a string" },
		{ "/infill", "\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"input_extra\":{}", "input_extra",
		  "expected an array" },
		{ "/infill", "\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"input_extra\":[7]", "input_extra",
		  "input_extra[0]" },
		{ "/infill", "\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"input_extra\":[{\"filename\":\"a\"}]",
		  "input_extra", "no text" },
		{ "/infill",
		  "\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"input_extra\":[{\"text\":\"a\",\"filename\":7}]",
		  "input_extra", "filename is" },
		{ "/v1/completions", "\"prompt\":\"a\",\"suffix\":\"b\",\"echo\":true", "echo", "cannot both" },
		{ "/v1/completions", "\"prompt\":\"a\",\"suffix\":7", "suffix", "expected a string" },
		{ "/v1/score", "\"text_1\":[],\"text_2\":\"a\"", "text_1", "is empty" },
		{ "/v1/score", "\"text_1\":[\"a\",\"b\"],\"text_2\":\"a\"", "text_1", "as many" },
		{ "/v1/score", "\"text_1\":\"a\",\"text_2\":[7]", "text_2", "text_2[0]" },
		{ "/embedding", "\"content\":\"a\",\"input\":\"b\"", "content", "cannot both" },
		{ "/embedding", "\"content\":\"a\",\"encoding_format\":\"base64\"", "encoding_format", "base64" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		json_t *o = ask(cases[i].path, cases[i].more, 400), *e = json_object_get(o, "error");
		if (strcmp(json_string_value(json_object_get(e, "param")), cases[i].param) != 0 ||
		    !strstr(json_string_value(json_object_get(e, "message")), cases[i].says))
			fail_msg("%s %s: %s", cases[i].path, cases[i].more,
			         json_string_value(json_object_get(e, "message")));
		json_decref(o);
	}
}

static void test_other_forms(void **state)
{
	static const char *const paths[] = { "/embedding", "/embeddings", "//embedding//", "/v1/embeddings/" };
	(void)state;

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		json_t *o = client_json(&server, paths[i], "{\"model\":\"tale-q8_0\",\"content\":[\"a\",\"The king\"]}",
		                        200);
		json_t *n =
			client_json(&server, paths[i], "{\"model\":\"tale-q8_0\",\"input\":[\"a\",\"The king\"]}", 200);
		assert_int_equal(json_array_size(o), 2);
		for (size_t k = 0; k < 2; k++) {
			const json_t *one = json_array_get(o, k), *same = json_array_get(json_object_get(n, "data"), k);
			assert_int_equal(json_integer_value(json_object_get(one, "index")), k);
			assert_true(json_equal(json_array_get(json_object_get(one, "embedding"), 0),
			                       json_object_get(same, "embedding")));
		}
		json_decref(o);
		json_decref(n);
	}
	json_t *scores = client_json(&server, "/v1/score",
	                             "{\"model\":\"t_infill-rerank\",\"text_1\":\"Who is it?\",\"text_2\":[\"a\",\"The "
	                             "king\",\"sea\"]}",
	                             200),
	       *pairs = client_json(&server, "/score/",
	                            "{\"model\":\"t_infill-rerank\",\"text_1\":[\"Who is it?\",\"Who is it?\"],"
	                            "\"text_2\":[\"sea\",\"a\"]}",
	                            200),
	       *ranks =
		       client_json(&server, "/v1/rerank",
	                           "{\"model\":\"t_infill-rerank\",\"query\":\"Who is it?\",\"documents\":[\"a\",\"The "
	                           "king\",\"sea\"]}",
	                           200);
	const json_t *data = json_object_get(scores, "data"), *list = json_object_get(ranks, "results");
	for (size_t i = 0; i < 3; i++) {
		const json_t *one = json_array_get(list, i);
		const size_t at = (size_t)json_integer_value(json_object_get(one, "index"));
		assert_true(json_equal(json_object_get(one, "relevance_score"),
		                       json_object_get(json_array_get(data, at), "score")));
	}
	assert_true(json_equal(json_object_get(json_array_get(json_object_get(pairs, "data"), 0), "score"),
	                       json_object_get(json_array_get(data, 2), "score")));
	json_decref(scores);
	json_decref(pairs);
	json_decref(ranks);
}

/* ---- families: the order of the texts, and whether there is a token for the middle */

/* Tokens of a text, as add_ids(), of another server's model. */
static void add_ids_of(struct child *of, const char *model, char *to, const char *text)
{
	char body[400];

	snprintf(body, sizeof body, "{\"model\":\"%s\",\"content\":\"%s\"}", model, text);
	json_t *o = client_json(of, "/tokenize", body, 200), *list = json_object_get(o, "tokens");
	for (size_t i = 0; i < json_array_size(list); i++)
		sprintf(to + strlen(to), "%d,", (int)json_integer_value(json_array_get(list, i)));
	json_decref(o);
}

#define ASK "{\"model\":\"%s\",\"temperature\":0,\"n_predict\":12,"

/* order: of 'p', 's' and 'm', each a token and, but for the last, its text. */
static void check_order(struct child *of, const char *model, const char *order)
{
	char list[400] = "0,", body[900];

	for (const char *o = order; *o; o++) {
		sprintf(list + strlen(list), "%d,", *o == 'p' ? FIM_PREFIX : *o == 's' ? FIM_SUFFIX : FIM_MIDDLE);
		if (*o != 'm')
			add_ids_of(of, model, list, *o == 'p' ? "Once upon a time" : "lived in a castle.");
	}
	list[strlen(list) - 1] = 0;
	snprintf(body, sizeof body, ASK "\"prompt\":[%s],\"stop_token_ids\":[%d,%d,%d]}", model, list, FIM_PREFIX,
	         FIM_SUFFIX, FIM_MIDDLE);
	json_t *expected = client_json(of, "/completion", body, 200);
	snprintf(body, sizeof body,
	         ASK "\"input_prefix\":\"Once upon a time\",\"input_suffix\":\"lived in a castle.\"}", model);
	json_t *found = client_json(of, "/infill", body, 200);
	assert_string_equal(json_string_value(json_object_get(found, "content")),
	                    json_string_value(json_object_get(expected, "content")));
	assert_int_equal(json_integer_value(json_object_get(found, "tokens_evaluated")),
	                 json_integer_value(json_object_get(expected, "tokens_evaluated")));
	json_decref(found);
	snprintf(body, sizeof body, ASK "\"prompt\":\"Once upon a time\",\"suffix\":\"lived in a castle.\"}", model);
	found = client_json(of, "/v1/completions", body, 200);
	const json_t *choice = json_array_get(json_object_get(found, "choices"), 0);
	assert_string_equal(json_string_value(json_object_get(choice, "text")),
	                    json_string_value(json_object_get(expected, "content")));
	json_decref(found);
	json_decref(expected);
}

static void test_families(void **state)
{
	static const struct {
		const char *file, *model, *basename, *order;
	} rows[] = { { "t_infill-c.gguf", "t_infill-c", "Codestral-22B", "sp" },
		     { "t_infill-m.gguf", "t_infill-m", "mellum-4b", "spm" },
		     { "t_infill-g.gguf", "t_infill-g", "CodeGeeX4", "spm" },
		     { "t_infill-q.gguf", "t_infill-q", "Qwen2.5-Coder", "psm" } };
	(void)state;

	for (size_t i = 0; i < 4; i++)
		fim_model_of(rows[i].file, rows[i].basename);
	struct child all = child_start((const char *[]){
		rows[0].file, rows[1].file, rows[2].file, rows[3].file, "--no-cache", "--context", "256", NULL });
	for (size_t i = 0; i < 4; i++)
		check_order(&all, rows[i].model, rows[i].order);
	assert_int_equal(child_stop(&all), 0);
	all = child_start(
		(const char *[]){ rows[0].file, rows[3].file, "--no-cache", "--context", "256", "--spm-infill", NULL });
	check_order(&all, rows[0].model, "sp");
	check_order(&all, rows[3].model, "spm");
	assert_int_equal(child_stop(&all), 0);
	for (size_t i = 0; i < 4; i++)
		unlink(rows[i].file);
}

/* By the text of a token, or by a name: every family's. */
static void test_orders(void **state)
{
	static const struct {
		const char *token, *name;
		enum infill_order order;
	} rows[] = {
		{ "\342\226\201<PRE>", "CodeLlama 7B", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<fim_prefix>", "starcoder2-3b", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<fim-prefix>", "santacoder", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<fim_prefix>", "Granite 8B Code", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<\357\275\234fim\342\226\201begin\357\275\234>", "deepseek-coder", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<|fim_prefix|>", "Qwen2.5 Coder", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<|fim_prefix|>", "codegemma-2b", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<|code_prefix|>", "GLM-4.5-Air", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<|prefix|>", "Falcon-H1-Tiny-Coder", INFILL_PREFIX_SUFFIX_MIDDLE },
		{ "<|code_prefix|>", "codegeex4-all-9b", INFILL_SUFFIX_PREFIX_MIDDLE },
		{ "<[fim-prefix]>", "Seed-Coder-8B-Base", INFILL_SUFFIX_PREFIX_MIDDLE },
		{ "<[fim-prefix]>", "", INFILL_SUFFIX_PREFIX_MIDDLE },
		{ "<fim_prefix>", "Mellum-4b-base", INFILL_SUFFIX_PREFIX_MIDDLE },
		{ "[PREFIX]", "", INFILL_SUFFIX_PREFIX },
		{ "<unk>", "Codestral 22B", INFILL_SUFFIX_PREFIX },
		{ "", "", INFILL_PREFIX_SUFFIX_MIDDLE },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (infill_order_of(rows[i].token, strlen(rows[i].token), rows[i].name) != rows[i].order)
			fail_msg("%s of %s", rows[i].token, rows[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prompt),    cmocka_unit_test(test_editor),  cmocka_unit_test(test_long),
		cmocka_unit_test(test_marks_end), cmocka_unit_test(test_refused), cmocka_unit_test(test_other_forms),
		cmocka_unit_test(test_families),  cmocka_unit_test(test_orders),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
