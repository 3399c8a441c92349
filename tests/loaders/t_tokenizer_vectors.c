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
#include <jansson.h>

#include "loaders/gguf.h"
#include "loaders/file.h"
#include "loaders/tokenizer_internal.h"
#include "tests/support/shared.h"

#define VOCAB "data/llama.cpp-vocab/ggml-vocab-"
#define LLAMA3 "data/tokenizers/llama3/llama-3.own-vocab.gguf"
#define LLAMA3_JSON "data/tokenizers/llama3/llama-3.own-tokenizer.json"
#define QWEN3 "data/tokenizers/qwen/qwen3.own-vocab.gguf"
#define QWEN3_JSON "data/tokenizers/qwen/qwen3.own-tokenizer.json"
#define ORT "data/tokenizers/onnxruntime-genai/"
#define SWIFT "data/tokenizers/swift-transformers/"
#define BROWSER "data/tokenizers/browser-llm/"
#define MISTRAL "data/tokenizers/mistral-common/"

/* ---- files */

struct opened {
	struct file file, config;
	struct gguf g;
	struct tokenizer *t;
};

static bool is_json(const char *path) { return strlen(path) > 5 && !strcmp(path + strlen(path) - 5, ".json"); }

static bool open_text(struct file *f, const char *path, struct error *err)
{
	return file_open(f, path, err) && file_text(f, FILE_MAX_HEAD, err);
}

static bool open_config(struct opened *o, const char *path)
{
	char config[1100];
	struct error err = { 0 };
	const char *slash = strrchr(path, '/');

	snprintf(config, sizeof config, "%.*s/tokenizer_config.json", (int)(slash - path), path);
	return open_text(&o->config, config, &err);
}

/* NULL when the file is not there. */
static struct tokenizer *open_vocab(struct opened *o, const char *relative)
{
	char path[1024];
	struct error err = { 0 };

	memset(o, 0, sizeof *o);
	if (!shared_path(path, relative))
		return NULL;
	if (is_json(path) ? !open_text(&o->file, path, &err) : !file_open(&o->file, path, &err))
		fail_msg("%s", err.text);
	if (is_json(path)) {
		open_config(o, path); /* absent: its base is NULL */
		o->t = tokenizer_from_json((struct tokenizer_text){ (const char *)o->file.base, o->file.size, path },
		                           (struct tokenizer_text){ (const char *)o->config.base, o->config.size,
		                                                    "tokenizer_config.json" },
		                           0, &err);
	} else if (gguf_open(&o->g, &o->file, false, &err)) {
		o->t = tokenizer_from_gguf(&o->g, 0, &err);
	}
	if (!o->t)
		fail_msg("%s", err.text);
	return o->t;
}

static void close_vocab(struct opened *o)
{
	tokenizer_close(o->t);
	if (o->g.kv)
		gguf_free(&o->g);
	file_close(&o->config);
	file_close(&o->file);
}

/* A whole file, 0-terminated; NULL when it is not there. */
static char *slurp(const char *relative, size_t *n)
{
	char path[1024];
	struct file m;
	struct error err = { 0 };

	if (!shared_path(path, relative) || !open_text(&m, path, &err))
		return NULL;
	char *text = malloc(m.size + 1);
	assert_non_null(text);
	memcpy(text, m.base, m.size);
	text[m.size] = 0;
	*n = m.size;
	file_close(&m);
	return text;
}

static json_t *load_json(const char *relative)
{
	size_t n;
	char *text = slurp(relative, &n);
	json_t *root = text ? json_loadb(text, n, JSON_ALLOW_NUL, NULL) : NULL;

	if (text)
		assert_non_null(root);
	free(text);
	return root;
}

/* ---- checks */

static void check_ids(const struct tokenizer *t, const char *where, const char *text, size_t n, unsigned flags,
                      const int32_t *want, size_t n_want)
{
	struct error err = { 0 };
	int32_t *ids;
	size_t got, i = 0;

	if (!tokenizer_encode(t, text, n, flags, &ids, &got, &err))
		fail_msg("%s: %s", where, err.text);
	while (i < got && i < n_want && ids[i] == want[i])
		i++;
	if (i < got || i < n_want)
		fail_msg("%s: \"%.60s\": token %zu of %zu is %d, expected %d (%zu tokens)", where, text, i, got,
		         i < got ? ids[i] : -1, i < n_want ? want[i] : -1, n_want);
	free(ids);
}

static void check_text(const struct tokenizer *t, const char *where, const int32_t *ids, size_t n, bool special,
                       const char *want, size_t n_want)
{
	struct error err = { 0 };
	size_t got;
	char *text = tokenizer_decode(t, ids, n, special, &got, &err);

	assert_non_null(text);
	if (got != n_want || memcmp(text, want, got))
		fail_msg("%s: \"%.60s\" expected \"%.60s\"", where, text, want);
	free(text);
}

static int32_t *ids_of(const json_t *array, size_t *n)
{
	*n = json_array_size(array);
	int32_t *ids = malloc((*n + 1) * sizeof *ids);
	assert_non_null(ids);
	for (size_t i = 0; i < *n; i++)
		ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
	return ids;
}

static void check_case(const struct tokenizer *t, const char *where, const json_t *text, unsigned flags,
                       const json_t *want)
{
	size_t n;
	int32_t *ids = ids_of(want, &n);

	check_ids(t, where, json_string_value(text), json_string_length(text), flags, ids, n);
	free(ids);
}

/* ---- texts and ids in two files, as the vocabularies' own project keeps them */

static void run_pair(const char *stem, const char *vocab)
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
		run_pair(own[i], name);
	}
	run_pair("llama-bpe", LLAMA3);
	run_pair("qwen2", QWEN3);
	run_pair("llama-bpe", LLAMA3_JSON);
	run_pair("qwen2", QWEN3_JSON);
	run_pair("phi-3", ORT "phi3-v/tokenizer.json");
	run_pair("llama-spm", ORT "tiny-random-llama/tokenizer.json");
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

/* ---- conversations: the text shows "▁" for a space and <0x0A> for a new line, and a space after each special token */

/* The length of the special token at p, or 0. */
static size_t special_here(const char *p, int version)
{
	static const char *const names[] = {
		"<s>",
		"</s>",
		"[INST]",
		"[/INST]",
		"[AVAILABLE_TOOLS]",
		"[/AVAILABLE_TOOLS]",
		"[TOOL_CALLS]",
		"[TOOL_RESULTS]",
		"[/TOOL_RESULTS]"
	};

	for (size_t i = 0; i < (version == 1 ? 2 : sizeof names / sizeof *names); i++)
		if (!strncmp(p, names[i], strlen(names[i])))
			return strlen(names[i]);
	return 0;
}

static size_t plain_text(const char *p, char *out, int version, bool keep_space)
{
	size_t n = 0;

	while (*p) {
		size_t special = special_here(p, version);
		if (special) {
			memcpy(out + n, p, special);
			n += special;
			p += special;
			if (!keep_space)
				p += *p == ' ' ? 1 : !strncmp(p, "\xe2\x96\x81", 3) ? 3 : 0;
		} else if (!strncmp(p, "\xe2\x96\x81", 3)) {
			out[n++] = ' ';
			p += 3;
		} else if (!strncmp(p, "<0x0A>", 6)) {
			out[n++] = '\n';
			p += 6;
		} else {
			out[n++] = *p++;
		}
	}
	return n;
}

static void run_conversation(const char *sample, int version)
{
	char name[300];
	struct opened o;
	size_t n_text, n_ids;

	snprintf(name, sizeof name, MISTRAL "samples/%s/text_v%d.txt", sample, version);
	char *shown = slurp(name, &n_text);
	snprintf(name, sizeof name, MISTRAL "samples/%s/tokens_v%d.json", sample, version);
	json_t *tokens = load_json(name);
	snprintf(name, sizeof name, MISTRAL "mistral-v%d.own-vocab.gguf", version);
	const struct tokenizer *t = shown && tokens ? open_vocab(&o, name) : NULL;
	if (t) {
		int32_t *ids = ids_of(json_is_array(tokens) ? tokens : json_object_get(tokens, "tokens"), &n_ids);
		char *text = malloc(n_text + 1);
		assert_non_null(text);
		size_t n = plain_text(shown, text, version, false);
		text[n] = 0;
		check_ids(t, name, text, n, TOKENIZE_SPECIAL, ids, n_ids);
		n = plain_text(shown, text, version, true);
		text[n] = 0;
		check_text(t, name, ids, n_ids, true, text, n);
		free(text);
		free(ids);
		close_vocab(&o);
	}
	json_decref(tokens);
	free(shown);
}

static void test_conversations(void **unused)
{
	static const char *const samples[] = {
		"get_weather_full", "get_weather_no_history", "get_weather_no_system_prompt",
		"no_tools",         "parallel_calls",         "several_calls"
	};
	char path[1024], name[1200];

	if (!shared_path(path, MISTRAL "samples"))
		return;
	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
		for (int version = 1; version <= 3; version++) {
			snprintf(name, sizeof name, "%s/%s/text_v%d.txt", path, samples[i], version);
			if (access(name, R_OK) == 0)
				run_conversation(samples[i], version);
		}
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

/* ---- two readers, one vocabulary: the same ids for real text; and every text comes back */

static void compare_readers(const char *gguf, const char *json, const char *text_file)
{
	struct opened a, b;
	struct error err = { 0 };
	size_t n, n_ids;
	int32_t *ids;
	char *text = slurp(text_file, &n);
	const struct tokenizer *t = text ? open_vocab(&a, gguf) : NULL;

	if (t) {
		assert_true(tokenizer_encode(t, text, n, TOKENIZE_BOS_EOS, &ids, &n_ids, &err));
		check_text(t, gguf, ids, n_ids, false, text, n);
		const struct tokenizer *u = open_vocab(&b, json);
		if (u) {
			check_ids(u, json, text, n, TOKENIZE_BOS_EOS, ids, n_ids);
			check_text(u, json, ids, n_ids, false, text, n);
			close_vocab(&b);
		}
		free(ids);
		close_vocab(&a);
	}
	free(text);
}

static void test_readers_agree(void **unused)
{
	static const char *const texts[] = { "models/tale-llama/heldout.txt", "data/prompts/code_edit.json",
		                             "data/prompts/text.json" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		compare_readers(LLAMA3, LLAMA3_JSON, texts[i]);
		compare_readers(QWEN3, QWEN3_JSON, texts[i]);
		compare_readers(VOCAB "llama-spm.gguf", ORT "tiny-random-llama/tokenizer.json", texts[i]);
		compare_readers(VOCAB "gpt-2.gguf", VOCAB "gpt-2.gguf", texts[i]);
		compare_readers(VOCAB "gpt-neox.gguf", VOCAB "gpt-neox.gguf", texts[i]);
		compare_readers(VOCAB "baichuan.gguf", VOCAB "baichuan.gguf", texts[i]);
		compare_readers("models/tale-llama/tale-llama-q4_0.gguf", "models/tale-llama/tokenizer.json", texts[i]);
	}
}

/* ---- a plain reference: merging by searching the word again and again, on texts instead of ids. The words are
 * ours. */

struct rank {
	const char *p;
	size_t n;
	uint32_t rank;
}; /* a merge's line */

static int rank_order(const void *x, const void *y)
{
	const struct rank *a = x, *b = y;
	int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

static struct rank *read_ranks(const struct opened *o, size_t *n)
{
	struct gguf_str *line;
	uint64_t count;
	bool found;

	assert_true(gguf_strings(&o->g, "tokenizer.ggml.merges", &line, &count, &found, NULL) && found);
	struct rank *r = malloc(count * sizeof *r);
	assert_non_null(r);
	for (uint64_t i = 0; i < count; i++)
		r[i] = (struct rank){ line[i].p, line[i].n, (uint32_t)i };
	qsort(r, count, sizeof *r, rank_order);
	free(line);
	*n = count;
	return r;
}

static uint32_t rank_of(const struct rank *ranks, size_t n, const char *a, const char *b)
{
	char line[400];
	struct rank key = { line, (size_t)snprintf(line, sizeof line, "%s %s", a, b), 0 };
	const struct rank *r = key.n < sizeof line ? bsearch(&key, ranks, n, sizeof key, rank_order) : NULL;

	return r ? r->rank : UINT32_MAX;
}

enum { REFERENCE_BYTES = 80 };

/* A word of at most REFERENCE_BYTES bytes; what is no token in the end adds nothing. */
static size_t reference_word(const struct tokenizer *t, const struct rank *ranks, size_t n_ranks, const char *p,
                             size_t n, int32_t *ids)
{
	static char symbol[REFERENCE_BYTES][2 * REFERENCE_BYTES + 1];
	size_t made = 0, count = n;

	for (size_t i = 0; i < n; i++)
		symbol[i][tokenizer_spell_byte((unsigned char)p[i], symbol[i])] = 0;
	for (;;) {
		size_t best = 0;
		uint32_t least = UINT32_MAX;
		for (size_t i = 0; i + 1 < count; i++) {
			uint32_t rank = rank_of(ranks, n_ranks, symbol[i], symbol[i + 1]);
			if (rank < least) {
				least = rank;
				best = i;
			}
		}
		if (least == UINT32_MAX)
			break;
		memmove(symbol[best] + strlen(symbol[best]), symbol[best + 1], strlen(symbol[best + 1]) + 1);
		memmove(symbol[best + 1], symbol[best + 2], (count - best - 2) * sizeof *symbol);
		count--;
	}
	for (size_t i = 0; i < count; i++)
		if (tokenizer_find(t, symbol[i], strlen(symbol[i])) >= 0)
			ids[made++] = tokenizer_find(t, symbol[i], strlen(symbol[i]));
	return made;
}

static void check_reference(const struct tokenizer *t, const char *vocab, const struct rank *ranks, size_t n_ranks,
                            const char *text, size_t n)
{
	struct error err = { 0 };
	struct tok_work w = { .err = &err };
	int32_t want[REFERENCE_BYTES];
	size_t made = 0;

	assert_true(tok_append(&w.text, text, n, &err) && tok_pretokenize(t, &w));
	for (size_t i = 0; i < w.spans.n; i++)
		made += reference_word(t, ranks, n_ranks, w.text.p + w.spans.p[i].at, w.spans.p[i].n, want + made);
	tok_work_free(&w);
	check_ids(t, vocab, text, n, 0, want, made);
}

static uint32_t next_random(uint32_t *seed) { return (*seed = *seed * 1664525 + 1013904223) >> 8; }

/* Text k of the sweep: single bytes, characters between letters, control characters among punctuation, and any
 * characters. */
static size_t sweep_text(unsigned k, char *out)
{
	uint32_t seed = k * 2654435761u;
	size_t n = 0;

	if (k < 256) {
		out[0] = (char)k;
		return 1;
	}
	if (k < 1010) {
		out[n++] = 'a';
		n += tok_encode((k - 256) * 3, out + n);
		out[n++] = 'b';
		return n;
	}
	while (n < 40) {
		unsigned c = next_random(&seed), kind = c % 4;
		c = next_random(&seed);
		c = kind == 0   ? c % 32
		    : kind == 1 ? 32 + c % 95
		    : kind == 2 ? c % 0x800
		    : k < 1500  ? 32 + c % 95
		                : c % 0x110000;
		if (c < 0xd800 || c > 0xdfff)
			n += tok_encode(c, out + n);
	}
	return n;
}

static void test_missing_bytes(void **unused)
{
	static const char *const vocabs[] = { "starcoder", "falcon", "gpt-neox", "refact" };
	char name[200], text[REFERENCE_BYTES];

	for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
		struct opened o;
		size_t n_ranks;
		snprintf(name, sizeof name, VOCAB "%s.gguf", vocabs[i]);
		const struct tokenizer *t = open_vocab(&o, name);
		if (!t)
			continue;
		struct rank *ranks = read_ranks(&o, &n_ranks);
		for (unsigned k = 0; k < 2010; k += test_quick() ? 1 + k % 11 : 1)
			check_reference(t, name, ranks, n_ranks, text, sweep_text(k, text));
		free(ranks);
		close_vocab(&o);
	}
}

/* A WordPiece vocabulary is refused by its name, and so is a merge list whose halves are not in the vocabulary. */
static void test_refused_files(void **unused)
{
	static const struct {
		const char *file, *says;
	} rows[] = { { VOCAB "bert-bge.gguf", "\"bert\"" }, { SWIFT "tokenizer.json", "\"off\"" } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char path[1024];
		struct file m;
		struct gguf g = { 0 };
		struct error err = { 0 };
		if (!shared_path(path, rows[i].file))
			continue;
		assert_true(is_json(path) ? open_text(&m, path, &err) : file_open(&m, path, &err));
		if (is_json(path)) {
			assert_null(tokenizer_from_json((struct tokenizer_text){ (const char *)m.base, m.size, path },
			                                (struct tokenizer_text){ 0 }, 0, &err));
		} else {
			assert_true(gguf_open(&g, &m, true, &err));
			assert_null(tokenizer_from_gguf(&g, 0, &err));
			gguf_free(&g);
		}
		assert_non_null(strstr(err.text, rows[i].says));
		file_close(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),         cmocka_unit_test(test_browser),
		cmocka_unit_test(test_swift),         cmocka_unit_test(test_conversations),
		cmocka_unit_test(test_single_cases),  cmocka_unit_test(test_models),
		cmocka_unit_test(test_stories),       cmocka_unit_test(test_readers_agree),
		cmocka_unit_test(test_missing_bytes), cmocka_unit_test(test_refused_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
