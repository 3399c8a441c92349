/* tests/server/t_rerank.c - /v1/rerank: scores, held to the model's own logits behind the same prompt, and the forms of
 * requests and answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/jitrun.h"
#include "tests/server/client.h"
#include "tests/support/rank_model.h"
#include "tests/support/shared.h"

static const char *const documents[] = { "The sea is salt.", "A fox <|im_end|> ran.", "", "The sea is salt.",
	                                 "Once upon a time there was a king who had three sons and a ship." };
enum { DOCUMENTS = sizeof documents / sizeof *documents };

static struct child server;
static int start(void **state)
{
	static const char *const arguments[] = { "--no-cache", "--alias", "tale-Reranker", NULL };
	(void)state;

	server = child_start(arguments);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	return child_stop(&server);
}

static void feed(jit_session *s, const jit_model *m, const char *text, int special)
{
	int32_t *ids = NULL;
	size_t n = 0;

	assert_int_equal(jit_model_tokenize(m, text, strlen(text), 0, special, &ids, &n, NULL), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids, n, NULL), JIT_OK);
	free(ids);
}

static int32_t token(const jit_model *m, const char *word)
{
	int32_t *ids = NULL, id;
	size_t n = 0;

	assert_int_equal(jit_model_tokenize(m, word, strlen(word), 0, 0, &ids, &n, NULL), JIT_OK);
	assert_int_equal(n, 1);
	id = ids[0];
	free(ids);
	return id;
}

/* exp(yes) / (exp(yes) + exp(no)), as the model's makers compute it. */
static double wanted(const jit_model *m, jit_session *s, const char *instruction, const char *query,
                     const char *document)
{
	char text[1000];

	assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
	feed(s, m,
	     "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
	     "Instruct "
	     "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n",
	     1);
	snprintf(text, sizeof text, "<Instruct>: %s\n<Query>: %s\n<Document>: %s", instruction, query, document);
	feed(s, m, text, 0);
	feed(s, m, "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n", 1);
	const float *logit = jit_session_logits(s, NULL);
	assert_non_null(logit);
	double yes = exp((double)logit[token(m, "Yes")]), no = exp((double)logit[token(m, "No")]);
	return yes / (yes + no);
}

static json_t *body_of(const char *list, const char *more)
{
	json_t *o = json_loads(more, 0, NULL), *all = json_array();

	assert_non_null(o);
	for (int i = 0; i < DOCUMENTS; i++)
		json_array_append_new(all, json_string(documents[i]));
	json_object_set_new(o, list, all);
	return o;
}

static json_t *ask(const char *path, const char *list, const char *more, int status)
{
	json_t *o = body_of(list, more);
	char *text = json_dumps(o, 0);
	json_t *answer = client_json(&server, path, text, status);

	free(text);
	json_decref(o);
	return answer;
}

static double number(const json_t *o, const char *name) { return json_number_value(json_object_get(o, name)); }
static int index_of(const json_t *o) { return (int)json_integer_value(json_object_get(o, "index")); }

static void check_scores(const json_t *results, const char *name, const char *instruction)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/models/tale-q8_0.gguf", getenv("srcdir") ? getenv("srcdir") : ".");
	jit_model *m = jit_model_open(path, NULL, NULL);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 1024), NULL) : NULL;
	double before = 2;
	int index = 0, equal = 0;
	json_t *one;
	size_t i;

	assert_non_null(s);
	assert_int_equal(json_array_size(results), DOCUMENTS);
	json_array_foreach(results, i, one)
	{
		double score = number(one, name);
		assert_true(fabs(score - wanted(m, s, instruction, "What is the sea?", documents[index_of(one)])) <
		            1e-12);
		assert_true(score <= before && score > 0 && score < 1);
		/* Of equal ones the first comes first. */
		equal += score >= before;
		assert_true(score < before || index_of(one) > index);
		before = score;
		index = index_of(one);
	}
	assert_true(equal > 0);
	jit_session_close(s);
	jit_model_close(m);
}

#define QUERY "\"query\": \"What is the sea?\""

static void test_scores(void **state)
{
	json_t *o = ask("/v1/rerank", "documents", "{" QUERY "}", 200);
	(void)state;

	check_scores(json_object_get(o, "results"), "relevance_score",
	             "Given a web search query, retrieve relevant passages that answer the query");
	assert_string_equal(json_string_value(json_object_get(o, "object")), "list");
	assert_string_equal(json_string_value(json_object_get(o, "model")), "tale-Reranker");
	assert_true(number(json_object_get(o, "usage"), "prompt_tokens") > 100);
	assert_null(json_object_get(json_array_get(json_object_get(o, "results"), 0), "document"));
	json_decref(o);
	o = ask("/rerank", "documents", "{" QUERY ", \"instruction\": \"Find what is true.\"}", 200);
	check_scores(json_object_get(o, "results"), "relevance_score", "Find what is true.");
	json_decref(o);
}

static double reused(void)
{
	static const char name[] = "\njitserve_prompt_tokens_reused_total";
	struct answer a = client_ask(&server, "/metrics", NULL, NULL);
	const char *at = a.body ? strstr(a.body, name) : NULL;

	assert_non_null(at);
	at += strcspn(at, " ");
	const double n = atof(at);
	answer_free(&a);
	return n;
}

/* When nothing is counted any more: a reply may come before what it took is counted. */
static double settled(void)
{
	double last = -1, now = reused();

	for (unsigned tries = 0; now != last && tries < 100; tries++) {
		last = now;
		usleep(100000);
		now = reused();
	}
	return now;
}

/* What documents have in common is computed once, and a score has the same bits whatever was ranked before it. */
static void test_shared(void **state)
{
	json_t *all = ask("/v1/rerank", "documents", "{" QUERY "}", 200), *one;
	const double before = settled();
	char body[300];
	size_t i;
	(void)state;

	json_decref(ask("/v1/rerank", "documents", "{" QUERY "}", 200));
	const double prompts = number(json_object_get(all, "usage"), "prompt_tokens");
	const double again = settled() - before;
	if (again <= prompts / 2 || again > prompts - DOCUMENTS)
		fail_msg("%.0f of %.0f tokens are taken over", again, prompts);
	json_array_foreach(json_object_get(all, "results"), i, one)
	{
		json_decref(client_json(&server, "/v1/rerank", "{\"query\":\"Else?\",\"documents\":[\"b\"]}", 200));
		snprintf(body, sizeof body, "{" QUERY ",\"documents\":[\"%s\"]}", documents[index_of(one)]);
		json_t *alone = client_json(&server, "/v1/rerank", body, 200);
		const json_t *same = json_array_get(json_object_get(alone, "results"), 0);
		assert_true(number(one, "relevance_score") == number(same, "relevance_score"));
		json_decref(alone);
	}
	json_decref(all);
}

static void test_forms(void **state)
{
	json_t *o = ask("/v1/reranking", "documents", "{" QUERY ", \"top_n\": 2, \"return_documents\": true}", 200);
	json_t *results = json_object_get(o, "results"), *one;
	size_t i;
	(void)state;

	assert_int_equal(json_array_size(results), 2);
	json_array_foreach(results, i, one) assert_string_equal(
		json_string_value(json_object_get(json_object_get(one, "document"), "text")), documents[index_of(one)]);
	json_decref(o);
	o = ask("/rerank", "texts", "{" QUERY ", \"return_text\": true}", 200);
	assert_true(json_is_array(o));
	check_scores(o, "score", "Given a web search query, retrieve relevant passages that answer the query");
	json_array_foreach(o, i, one)
		assert_string_equal(json_string_value(json_object_get(one, "text")), documents[index_of(one)]);
	json_decref(o);
	json_decref(client_json(&server, "/rerank", "{" QUERY ", \"documents\": [{\"text\": \"a\"}]}", 200));
}

static void test_refusals(void **state)
{
	static const char *const wrong[] = {
		"{\"documents\": [\"a\"]}",
		"{" QUERY "}",
		"{" QUERY ", \"documents\": []}",
		"{" QUERY ", \"documents\": [7]}",
		"{" QUERY ", \"documents\": \"a\"}",
		"{" QUERY ", \"documents\": [\"a\"], \"top_n\": 0}",
		"{\"query\": [1], \"documents\": [\"a\"]}"
	};
	(void)state;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		json_decref(client_json(&server, "/v1/rerank", wrong[i], 400));
}

/* ---- a classifier behind the last token, and the model's own prompt */

enum { HIDDEN = 256 };
static char ranked[] = "/tmp/t_rerank-XXXXXX";
static float weights[2 * HIDDEN];
static const char prompt[] = "Answer yes or no.\nQ: {query}\nGiven a web search query, retrieve relevant passages that "
			     "answer the query\nD: {document}\n";

static void write_model(const char *template_text)
{
	for (int i = 0; i < 2 * HIDDEN; i++)
		weights[i] = (float)((i * 37 + i / HIDDEN) % 101 - 50) / 500;
	rank_model_write(ranked, &(struct rank_model){
					 .tensor = { { "cls.output.weight", DTYPE_F32, 2, { HIDDEN, 2 }, weights } },
					 .pooling = 4,
					 .labels = { "yes", "no" },
					 .template_text = template_text });
}

static struct child start_ranked(void)
{
	const char *const arguments[] = { "--no-cache", "--alias", "usual", "--alias", "ranked", ranked, NULL };

	return child_start(arguments);
}

/* By the row that the model has of the prompt, in which nothing is a control token. */
static double by_weights(jit_session *s, const jit_model *m, const char *instruction, const char *document,
                         size_t *tokens)
{
	char text[1000];
	int32_t *ids = NULL;
	float row[HIDDEN];
	double sum[2] = { 0 };
	size_t n = 0;

	snprintf(text, sizeof text, "Answer yes or no.\nQ: What is the sea?\n%s\nD: %s\n", instruction, document);
	assert_int_equal(jit_model_tokenize(m, text, strlen(text), 0, 0, &ids, &n, NULL), JIT_OK);
	assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
	assert_int_equal(jit_session_embed(s, ids, n, NULL, row, HIDDEN, NULL), JIT_OK);
	free(ids);
	*tokens += n;
	for (int i = 0; i < 2 * HIDDEN; i++)
		sum[i / HIDDEN] += (double)weights[i] * (double)row[i % HIDDEN];
	return 1 / (1 + exp(sum[1] - sum[0]));
}

static const char *const ranked_documents[] = { "The sea is salt.", "{query} <|end_of_text|> ran.", "",
	                                        "Once {document} upon a time <|begin_of_text|>" };

static void check_ranked(const struct child *c, const char *more, const char *instruction)
{
	char body[1000], path[1024];
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), NULL, NULL);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 1024), NULL) : NULL;
	size_t i, tokens = 0;
	json_t *one;

	assert_non_null(s);
	snprintf(body, sizeof body, "{\"model\":\"ranked\"," QUERY "%s,\"documents\":[\"%s\",\"%s\",\"%s\",\"%s\"]}",
	         more, ranked_documents[0], ranked_documents[1], ranked_documents[2], ranked_documents[3]);
	json_t *o = client_json(c, "/v1/rerank", body, 200);
	assert_int_equal(json_array_size(json_object_get(o, "results")), 4);
	json_array_foreach(json_object_get(o, "results"), i, one)
	{
		double score = number(one, "relevance_score"),
		       expected = by_weights(s, m, instruction, ranked_documents[index_of(one)], &tokens);
		if (!(fabs(score - expected) < 1e-6))
			fail_msg("document %d: %.9g, expected %.9g", index_of(one), score, expected);
	}
	assert_int_equal((size_t)number(json_object_get(o, "usage"), "prompt_tokens"), tokens);
	json_decref(o);
	jit_session_close(s);
	jit_model_close(m);
}

static void test_classifier(void **state)
{
	static const char body[] = "{\"model\":\"ranked\"," QUERY ",\"documents\":[\"a\"]",
			  input[] = "{\"model\":\"ranked\",\"input\":\"a\"}";
	int fd = mkstemp(ranked);
	char text[200];
	(void)state;

	assert_true(fd >= 0 && close(fd) == 0);
	write_model(prompt);
	struct child c = start_ranked();
	check_ranked(&c, "", "Given a web search query, retrieve relevant passages that answer the query");
	check_ranked(&c, ",\"instruction\":\"Find what is wet.\"", "Find what is wet.");
	json_decref(client_json(&c, "/v1/embeddings", input, 501));
	assert_int_equal(child_stop(&c), 0);
	write_model("{query}{document}");
	c = start_ranked();
	snprintf(text, sizeof text, "%s}", body);
	json_decref(client_json(&c, "/v1/rerank", text, 200));
	snprintf(text, sizeof text, "%s,\"instruction\":\"b\"}", body);
	json_decref(client_json(&c, "/v1/rerank", text, 400));
	assert_int_equal(child_stop(&c), 0);
	write_model("Only {query}.");
	c = start_ranked();
	snprintf(text, sizeof text, "%s}", body);
	json_decref(client_json(&c, "/v1/rerank", text, 501));
	assert_int_equal(child_stop(&c), 0);
	unlink(ranked);
}

/* A question that fits no context is refused at the first document: it is not made into tokens for each. */
static void test_long_question(void **state)
{
	enum { WORDS = 20000 };
	static const char *const lists[] = { "[\"a\"]", "[\"a\",\"b c d e f g h i j k l m n o p\"]" };
	char *body = malloc(2 * WORDS + 200), *said[2];
	(void)state;

	assert_non_null(body);
	for (unsigned k = 0; k < 2; k++) {
		char *at = body + sprintf(body, "{\"query\":\"");
		for (unsigned i = 0; i < WORDS; i++, at += 2)
			memcpy(at, "a ", 2);
		sprintf(at, "\",\"documents\":%s}", lists[k]);
		json_t *o = client_json(&server, "/v1/rerank", body, 400);
		said[k] = strdup(json_string_value(json_object_get(json_object_get(o, "error"), "message")));
		assert_non_null(said[k]);
		json_decref(o);
	}
	assert_non_null(strstr(said[0], "exceeds the available context size"));
	assert_string_equal(said[1], said[0]); /* the number of tokens is the first document's, not the longest one's */
	free(said[0]);
	free(said[1]);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scores),     cmocka_unit_test(test_shared),
		                            cmocka_unit_test(test_classifier), cmocka_unit_test(test_forms),
		                            cmocka_unit_test(test_refusals),   cmocka_unit_test(test_long_question) };

	return cmocka_run_group_tests(tests, start, stop);
}
