/* tests/loaders/t_tokenizer_vectors.c - the tokenizer against the published vectors in the shared data: real
 * vocabularies, the ids other implementations give, and their texts back. Skips, saying so, what is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/loaders/tokenizer_vectors.h"

#define BROWSER "data/tokenizers/browser-llm/"

/* ---- checks */

static void check_case(const struct tokenizer *t, const char *where, const json_t *text, unsigned flags,
                       const json_t *want)
{
	size_t n;
	int32_t *ids = ids_of(want, &n);

	check_ids(t, where, json_string_value(text), json_string_length(text), flags, ids, n);
	free(ids);
}

/* ---- texts and ids in two files, as the vocabularies' own project keeps them */

/* exact: the texts come back as they were, as those of WordPiece do not. */
static void run_pair(const char *stem, const char *vocab, bool exact)
{
	static const char line[] = "\n__ggml_vocab_test__\n";
	char name[1024];
	struct opened o;
	size_t n_in, n_out, cases = 0;

	snprintf(name, sizeof name, "%s%s.gguf.inp", VOCAB, stem);
	char *in = slurp(name, &n_in);
	snprintf(name, sizeof name, "%s%s.gguf.out", VOCAB, stem);
	char *out = slurp(name, &n_out), *row = out;
	const struct tokenizer *t = in && out ? open_vocab(&o, vocab) : NULL;
	for (char *text = in, *end; t && (end = strstr(text, line)); text = end + strlen(line), cases++) {
		int32_t want[2000];
		size_t n = 0;
		char *stop = strchr(row, '\n');
		assert_non_null(stop);
		for (char *next; n < 2000; row = next) {
			long id = strtol(row, &next, 10);
			if (next == row || next > stop)
				break;
			want[n++] = (int32_t)id;
		}
		row = stop + 1;
		check_ids(t, vocab, text, (size_t)(end - text), TOKENIZE_SPECIAL, want, n);
		/* characters that one rule composes do not come back as they were; the vectors' texts hold none */
		if (exact)
			check_text(t, vocab, want, n, true, text, (size_t)(end - text));
	}
	if (t) {
		assert_true(cases > 40);
		close_vocab(&o);
	}
	free(in);
	free(out);
}

static void test_pairs(void **unused)
{
	static const char *const own[] = { "deepseek-coder", "deepseek-llm", "falcon",   "gpt-2", "llama-spm", "mpt",
		                           "phi-3",          "refact",       "starcoder" };
	char name[1024];

	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		snprintf(name, sizeof name, "%s%s.gguf", VOCAB, own[i]);
		run_pair(own[i], name, true);
	}
	run_pair("bert-bge", VOCAB "bert-bge.gguf", false);
	run_pair("llama-bpe", LLAMA3, true);
	run_pair("qwen2", QWEN3, true);
	run_pair("llama-bpe", LLAMA3_JSON, true);
	run_pair("qwen2", QWEN3_JSON, true);
	run_pair("phi-3", ORT "phi3-v/tokenizer.json", true);
	run_pair("llama-spm", ORT "tiny-random-llama/tokenizer.json", true);
}

/* ---- [{name, text, ids}] */

static void test_browser(void **unused)
{
	static const struct {
		const char *cases, *vocab;
	} rows[] = {
		{ BROWSER "qwen3-0.6b.json", QWEN3 },
		{ BROWSER "qwen3-0.6b.json", QWEN3_JSON },
		{ BROWSER "llama-3.2-1b-instruct.json", LLAMA3 },
		{ BROWSER "llama-3.2-1b-instruct.json", LLAMA3_JSON },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct opened o;
		json_t *cases = load_json(rows[i].cases), *c;
		const struct tokenizer *t = cases ? open_vocab(&o, rows[i].vocab) : NULL;
		size_t k;
		if (t) {
			json_array_foreach(cases, k, c) check_case(t, rows[i].vocab, json_object_get(c, "text"),
			                                           TOKENIZE_SPECIAL, json_object_get(c, "ids"));
			close_vocab(&o);
		}
		json_decref(cases);
	}
}

/* ---- texts with the ids and both decodings */

/* The vectors' decodings were tidied afterwards: no space before punctuation and some contractions. */
static size_t tidy(char *text, size_t n)
{
	static const char *const gone[] = { " .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're" };
	static const char *const kept[] = { ".", "?", "!", ",", "'", "n't", "'m", "'s", "'ve", "'re" };

	for (size_t k = 0; k < sizeof gone / sizeof *gone; k++) {
		size_t a = strlen(gone[k]), b = strlen(kept[k]), to = 0;
		for (size_t i = 0; i < n;) {
			if (n - i >= a && !memcmp(text + i, gone[k], a)) {
				memcpy(text + to, kept[k], b);
				to += b;
				i += a;
			} else {
				text[to++] = text[i++];
			}
		}
		n = to;
	}
	return n;
}

static void check_tidied(const struct tokenizer *t, const char *where, const json_t *array, bool special,
                         const json_t *want)
{
	struct error err = { 0 };
	size_t n, got;
	int32_t *ids = ids_of(array, &n);
	char *text = tokenizer_decode(t, ids, n, special, &got, &err);

	assert_non_null(text);
	if (got != json_string_length(want) || memcmp(text, json_string_value(want), got))
		got = tidy(text, got);
	if (got != json_string_length(want) || memcmp(text, json_string_value(want), got))
		fail_msg("%s: \"%.60s\" expected \"%.60s\"", where, text, json_string_value(want));
	free(text);
	free(ids);
}

static void test_swift(void **unused)
{
	static const struct {
		const char *key, *encoded, *vocab;
	} rows[] = {
		{ "pcuenq/Llama-3.2-1B-Instruct-tokenizer", SWIFT "llama_3.2_encoded.json", LLAMA3 },
		{ "pcuenq/Llama-3.2-1B-Instruct-tokenizer", SWIFT "llama_3.2_encoded.json", LLAMA3_JSON },
		{ "coreml-projects/Llama-2-7b-chat-coreml", SWIFT "llama_encoded.json", VOCAB "llama-spm.gguf" },
		{ "coreml-projects/Llama-2-7b-chat-coreml", SWIFT "llama_encoded.json",
		  ORT "tiny-random-llama/tokenizer.json" },
		{ "distilgpt2", SWIFT "gpt2_encoded_tokens.json", VOCAB "gpt-2.gguf" },
		{ "tiiuae/falcon-7b", SWIFT "falcon_encoded.json", VOCAB "falcon.gguf" },
	};
	json_t *all = load_json(SWIFT "tokenizer_tests.json"), *c;

	for (size_t i = 0; all && i < sizeof rows / sizeof *rows; i++) {
		struct opened o;
		json_t *long_one = load_json(rows[i].encoded);
		const struct tokenizer *t = long_one ? open_vocab(&o, rows[i].vocab) : NULL;
		size_t k;
		if (t) {
			const json_t *cases = json_object_get(all, rows[i].key);
			assert_true(json_array_size(cases) >= 18);
			json_array_foreach(cases, k, c)
			{
				const json_t *ids = json_object_get(json_object_get(c, "encoded"), "input_ids");
				check_case(t, rows[i].vocab, json_object_get(c, "input"),
				           TOKENIZE_SPECIAL | TOKENIZE_BOS_EOS, ids);
				check_tidied(t, rows[i].vocab, ids, true, json_object_get(c, "decoded_with_special"));
				check_tidied(t, rows[i].vocab, ids, false,
				             json_object_get(c, "decoded_without_special"));
			}
			check_case(t, rows[i].vocab, json_object_get(long_one, "text"),
			           TOKENIZE_SPECIAL | TOKENIZE_BOS_EOS, json_object_get(long_one, "token_ids"));
			check_tidied(t, rows[i].vocab, json_object_get(long_one, "token_ids"), true,
			             json_object_get(long_one, "decoded_text"));
			close_vocab(&o);
		}
		json_decref(long_one);
	}
	json_decref(all);
}

/* ---- single cases from other projects' tests */

static void test_single_cases(void **unused)
{
	static const struct {
		const char *vocab, *text;
		unsigned flags;
		int32_t ids[24];
		unsigned n;
	} rows[] = {
		{ VOCAB "llama-spm.gguf",
		  "\xe0\xb8\xaa\xe0\xb8\xa7\xe0\xb8\xb1\xe0\xb8\xaa",
		  3,
		  { 1, 29871, 30547, 30492, 30510, 30547 },
		  6 },
		{ VOCAB "llama-spm.gguf", "Who are you?", 3, { 1, 11644, 526, 366, 29973 }, 5 },
		{ ORT "phi3-v/tokenizer.json", " Hi", 3, { 1, 29871, 6324 }, 3 },
		{ QWEN3_JSON, "Who are you?", 3, { 15191, 525, 498, 30 }, 4 },
		{ LLAMA3,
		  "This is a test sentence.<|end_of_text|>",
		  3,
		  { 128000, 2028, 374, 264, 1296, 11914, 13, 128001 },
		  8 },
		{ LLAMA3,
		  "<|start_header_id|>user<|end_header_id|>\n\nThis is a test sentence.<|eot_id|>",
		  2,
		  { 128006, 882, 128007, 271, 2028, 374, 264, 1296, 11914, 13, 128009 },
		  11 },
		{ LLAMA3,
		  "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nThis",
		  2,
		  { 128000, 128006, 9125, 128007, 271, 2028 },
		  6 },
		{ LLAMA3, "hello <|end_of_text|>", 2, { 15339, 220, 128001 }, 3 },
		{ LLAMA3,
		  "<|begin_of_text|>A<|end_of_text|>B<|begin_of_text|>!<|end_of_text|>",
		  2,
		  { 128000, 32, 128001, 33, 128000, 0, 128001 },
		  7 },
		{ LLAMA3, "0000", 2, { 931, 15 }, 2 },
		{ LLAMA3, "00000000000000000", 2, { 931, 931, 931, 931, 931, 410 }, 6 },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct opened o;
		const struct tokenizer *t = open_vocab(&o, rows[i].vocab);
		if (!t)
			continue;
		check_ids(t, rows[i].vocab, rows[i].text, strlen(rows[i].text), rows[i].flags, rows[i].ids, rows[i].n);
		close_vocab(&o);
	}
}

/* ---- our own small models */

static void test_models(void **unused)
{
	static const struct {
		const char *expected, *vocab;
	} rows[] = {
		{ "models/tale-llama/expected.json", "models/tale-llama/tale-llama-q4_0.gguf" },
		{ "models/tale-llama/expected.json", "models/tale-llama/tokenizer.json" },
		{ "models/tale-qwen3/expected.json", "models/tale-qwen3/tale-qwen3-q4_0.gguf" },
		{ "models/tale-qwen3/expected.json", "models/tale-qwen3/tokenizer.json" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct opened o;
		json_t *root = load_json(rows[i].expected), *run;
		const struct tokenizer *t = root ? open_vocab(&o, rows[i].vocab) : NULL;
		size_t k;
		if (t) {
			json_array_foreach(json_object_get(root, "runs"), k, run)
			{
				check_case(t, rows[i].vocab, json_object_get(run, "text"),
				           TOKENIZE_SPECIAL | TOKENIZE_BOS_EOS, json_object_get(run, "prompt"));
				const json_t *decoded = json_object_get(run, "decoded");
				if (decoded)
					check_tidied(t, rows[i].vocab, json_object_get(run, "greedy"), true, decoded);
			}
			close_vocab(&o);
		}
		json_decref(root);
	}
}

static void test_stories(void **unused)
{
	static const char *const vocabs[] = { "data/stories260K/stories260K.gguf",
		                              "data/stories260K/stories260K.own-f32.gguf",
		                              "data/stories260K/hf/tokenizer.json" };
	json_t *golden = load_json("data/stories260K/golden_greedy_numpy.json");

	for (size_t i = 0; golden && i < sizeof vocabs / sizeof *vocabs; i++) {
		struct opened o;
		const struct tokenizer *t = open_vocab(&o, vocabs[i]);
		if (!t)
			continue;
		const json_t *text = json_object_get(golden, "text");
		check_case(t, vocabs[i], json_object_get(golden, "prompt"), TOKENIZE_BOS_EOS,
		           json_object_get(golden, "prompt_ids"));
		json_t *all = json_deep_copy(json_object_get(golden, "prompt_ids"));
		json_array_extend(all, json_object_get(golden, "greedy_ids"));
		size_t n;
		int32_t *ids = ids_of(all, &n);
		/* the golden text keeps the space before the first word */
		check_text(t, vocabs[i], ids, n, false, json_string_value(text) + 1, json_string_length(text) - 1);
		free(ids);
		json_decref(all);
		close_vocab(&o);
	}
	json_decref(golden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),        cmocka_unit_test(test_browser), cmocka_unit_test(test_swift),
		cmocka_unit_test(test_single_cases), cmocka_unit_test(test_models),  cmocka_unit_test(test_stories),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += tokenizer_reference_tests();
	failed += tokenizer_conversation_tests();
	return failed;
}
