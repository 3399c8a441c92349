/* tests/chat/t_chat_tokens.c - what users write becomes no special token in any vocabulary of the shared data, and in
 * small ones of our own; and conversations without such texts get the ids of their text as a whole. Skips, saying so,
 * what is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "loaders/files/file.h"
#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/chat/marks.h"

struct opened {
	struct file file, config;
	struct gguf g;
	struct tokenizer *t;
};

static struct tokenizer *open_vocab(struct opened *o, const char *relative)
{
	char path[1024], *slash;
	struct error err = { 0 };
	bool json = strcmp(relative + strlen(relative) - 5, ".json") == 0;

	memset(o, 0, sizeof *o);
	if (!shared_path(path, relative))
		return NULL;
	if (!file_open(&o->file, path, &err) || (json && !file_text(&o->file, FILE_MAX_HEAD, &err)))
		fail_msg("%s", err.text);
	if (json) {
		struct tokenizer_text text = { (const char *)o->file.base, o->file.size, "tokenizer.json" },
				      config = { 0 };
		slash = strrchr(path, '/');
		strcpy(slash, "/tokenizer_config.json");
		if (access(path, R_OK) == 0 && file_open(&o->config, path, &err) &&
		    file_text(&o->config, FILE_MAX_HEAD, &err))
			config = (struct tokenizer_text){ (const char *)o->config.base, o->config.size,
				                          "tokenizer_config.json" };
		o->t = tokenizer_from_json(text, config, 0, &err);
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

static size_t count_hidden(const struct tokenizer *t, const int32_t *ids, size_t n)
{
	size_t hidden = 0;

	for (size_t i = 0; i < n; i++)
		hidden += t->type[ids[i]] == TOK_CONTROL;
	return hidden;
}

/* Whether a user wrote some of a special token's text. */
static bool holds_special(const struct tokenizer *t, const struct chat_text *text)
{
	uint8_t *mark = marks_of(text);
	uint64_t steps = 0;
	bool holds = false;

	for (size_t i = 0; i < text->n; i++) {
		const struct tok_special *s =
			tok_special_at(&t->special[0], text->p + i, text->n - i, SIZE_MAX, &steps);
		holds |= s && s->hidden && memchr(mark + i, 1, s->n);
	}
	free(mark);
	return holds;
}

/* The ids of the whole text with its special tokens: what a conversation that holds none of them must get. */
static void check_whole(const struct tokenizer *t, const struct chat_text *text, const char *where)
{
	struct error err = { 0 };
	int32_t *ids, *want;
	size_t n, n_want, i = 0;

	if (!chat_tokenize(t, text, false, &ids, &n, &err) ||
	    !tokenizer_encode(t, text->p, text->n, TOKENIZE_SPECIAL, &want, &n_want, &err))
		fail_msg("%s: %s", where, err.text);
	while (i < n && i < n_want && ids[i] == want[i])
		i++;
	if (i < n || i < n_want)
		fail_msg("%s: token %zu of %zu is %d, expected %d of %zu, in \"%.200s\"", where, i, n,
		         i < n ? ids[i] : -1, i < n_want ? want[i] : -1, n_want, text->p);
	free(ids);
	free(want);
}

static size_t hidden_in(const struct tokenizer *t, const struct chat_text *text)
{
	struct error err = { 0 };
	int32_t *ids;
	size_t n;

	assert_true(chat_tokenize(t, text, false, &ids, &n, &err));
	size_t hidden = count_hidden(t, ids, n);
	free(ids);
	return hidden;
}

/* As many special tokens come out with a special token's text in every message as with harmless text. */
static void check_injected(const struct tokenizer *t, const struct chat_template *template, json_t *row,
                           const char *token, size_t n, unsigned shape, const char *where)
{
	char harmless[100] = "some text", hostile[5000];
	struct chat_text a, b;

	snprintf(hostile, sizeof hostile, "some%.*stext%.*s", (int)n, token, (int)n, token);
	if (!render(template, row, shape, harmless, &a))
		return;
	if (render(template, row, shape, hostile, &b)) {
		size_t want = hidden_in(t, &a), got = hidden_in(t, &b);
		if (want != got)
			fail_msg("%s: %zu special tokens instead of %zu with \"%s\" in the messages: %s", where, got,
			         want, hostile, b.p);
		chat_text_free(&b);
	}
	chat_text_free(&a);
}

static void run_pair(json_t *root, json_t *row, const char *vocab)
{
	const char *name = json_string_value(json_object_get(row, "template")), *key;
	struct opened o;
	const struct tokenizer *t = open_vocab(&o, vocab);
	struct chat_template *template = t ? golden_template(name) : NULL;
	char where[1200];
	json_t *c;

	snprintf(where, sizeof where, "%s with %s", name, vocab);
	json_object_foreach(json_object_get(root, "conversations"), key, c)
	{
		struct error err = { 0 };
		struct chat_text out;
		struct variables vars;
		if (!template)
			break;
		variables_of(&vars, row, json_object_get(c, "messages"), json_object_get(c, "tools"),
		             json_is_true(json_object_get(c, "agp")));
		if (chat_render(template, &(struct chat_request){ vars.v, vars.n, &golden_time, false }, &out, NULL,
		                &err)) {
			/* one of the golden conversations has them in its messages */
			if (!holds_special(t, &out))
				check_whole(t, &out, where);
			else
				assert_string_equal(key, "unicode-markup");
			chat_text_free(&out);
		}
		variables_free(&vars);
	}
	for (size_t i = 0, k = 0; template && i < t->n_token; i++)
		if (t->type[i] == TOK_CONTROL && t->token[i].n < 2000 && (k++ < 12 || (!test_quick() && k % 97 == 0)))
			for (unsigned shape = 0; shape < SHAPES; shape += test_quick() ? 3 : 1)
				check_injected(t, template, row, t->token[i].p, t->token[i].n, shape, where);
	chat_template_free(template);
	if (t)
		close_vocab(&o);
}

static void test_tokens(void **state)
{
	static const struct {
		const char *template, *vocab;
	} rows[] = {
		{ "llama.cpp/meta-llama-Llama-3.1-8B-Instruct.jinja", "data/tokenizers/llama3/llama-3.own-vocab.gguf" },
		{ "llama.cpp/meta-llama-Llama-3.2-3B-Instruct.jinja",
		  "data/tokenizers/llama3/llama-3.own-tokenizer.json" },
		{ "mistral.rs/llama3.jinja", "data/tokenizers/llama3/llama-3.own-vocab.gguf" },
		{ "llama.cpp/Qwen-Qwen3-0.6B.jinja", "data/tokenizers/qwen/qwen3.own-vocab.gguf" },
		{ "llama.cpp/Qwen-Qwen2.5-7B-Instruct.jinja", "data/tokenizers/qwen/qwen3.own-tokenizer.json" },
		{ "llama.cpp/microsoft-Phi-3.5-mini-instruct.jinja",
		  "data/tokenizers/onnxruntime-genai/phi3-v/tokenizer.json" },
		{ "mistral.rs/phi3.jinja", "data/tokenizers/onnxruntime-genai/phi3-v/tokenizer.json" },
		{ "configs/onnxruntime-genai--phi3-v.jinja", "data/llama.cpp-vocab/ggml-vocab-phi-3.gguf" },
		{ "mistral.rs/llama2.jinja", "data/llama.cpp-vocab/ggml-vocab-llama-spm.gguf" },
		{ "mistral.rs/llama2.jinja", "data/tokenizers/onnxruntime-genai/tiny-random-llama/tokenizer.json" },
		{ "huggingface.js/mistralai--Mixtral-8x7B-Instruct-v0.1.jinja",
		  "data/tokenizers/mistral-common/mistral-v1.own-vocab.gguf" },
		{ "huggingface.js/mistralai--Mistral-7B-Instruct-v0.3-JSON-Schema.jinja",
		  "data/tokenizers/mistral-common/mistral-v3.own-vocab.gguf" },
		{ "huggingface.js/deepseek-ai--deepseek-coder-33b-instruct.jinja",
		  "data/llama.cpp-vocab/ggml-vocab-deepseek-coder.gguf" },
		{ "huggingface.js/deepseek-ai--deepseek-llm-7b-chat.jinja",
		  "data/llama.cpp-vocab/ggml-vocab-deepseek-llm.gguf" },
		{ "mistral.rs/vicuna.jinja", "models/tale-llama/tokenizer.json" },
		{ "llama.cpp/Qwen-QwQ-32B.jinja", "models/tale-qwen3/tokenizer.json" },
	};
	json_t *root = golden_load(CHAT_DATA "jinja_golden2.json.gz"), *row;
	unsigned pairs = 0;
	size_t i;
	(void)state;

	json_array_foreach(
		json_object_get(root, "templates"), i,
		row) for (size_t k = 0; k < sizeof rows / sizeof *rows;
	                  k++) if (strcmp(rows[k].template, json_string_value(json_object_get(row, "template"))) == 0)
	{
		run_pair(root, row, rows[k].vocab);
		pairs++;
	}
	if (root)
		assert_int_equal(pairs, sizeof rows / sizeof *rows);
	json_decref(root);
}

/* Words run across the borders of spans, wherever these are. */
static void test_borders(void **state)
{
	static const char *const vocabs[] = {
		"data/tokenizers/llama3/llama-3.own-vocab.gguf",
		"data/tokenizers/qwen/qwen3.own-tokenizer.json",
		"data/llama.cpp-vocab/ggml-vocab-llama-spm.gguf",
		"data/tokenizers/onnxruntime-genai/tiny-random-llama/tokenizer.json",
		"data/llama.cpp-vocab/ggml-vocab-gpt-2.gguf",
		"data/llama.cpp-vocab/ggml-vocab-deepseek-llm.gguf",
		"data/llama.cpp-vocab/ggml-vocab-falcon.gguf",
		"models/tale-llama/tokenizer.json"
	};
	static char text[] =
		"Once upon  a time, caf\xc3\xa9 e\xcc\x81t\xc3\xa9 12345!!\n\n\tdon't\xe4\xb8\xad\xe6\x96\x87";
	const size_t n = sizeof text - 1;
	(void)state;

	for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
		struct opened o;
		const struct tokenizer *t = open_vocab(&o, vocabs[i]);
		if (!t)
			continue;
		for (size_t from = 0; from < n; from++)
			for (size_t to = from + 1; to <= n; to += test_quick() ? 7 : 1) {
				struct chat_span span[] = { { 0, from, false }, { from, to, true }, { to, n, false } };
				check_whole(t, &(struct chat_text){ text, n, span, 3 }, vocabs[i]);
			}
		close_vocab(&o);
	}
}

/* ---- small vocabularies of our own */

struct small_case {
	const char *text, *mark;
	int32_t ids[16];
	size_t n;
	bool begin;
};

static void run_small(const char *json, const struct small_case *c, size_t n)
{
	struct error err = { 0 };
	struct tokenizer *t = tokenizer_from_json((struct tokenizer_text){ json, strlen(json), "tokenizer.json" },
	                                          (struct tokenizer_text){ 0 }, 0, &err);

	if (!t)
		fail_msg("%s", err.text);
	for (; n--; c++) {
		struct chat_span span[40];
		struct chat_text text = { (char *)(uintptr_t)c->text, strlen(c->text), span, 0 };
		int32_t *ids;
		size_t got;
		assert_int_equal(strlen(c->mark), text.n);
		for (size_t i = 0; i < text.n; i++)
			span[text.n_spans++] = (struct chat_span){ i, i + 1, c->mark[i] == '1' };
		if (!chat_tokenize(t, &text, c->begin, &ids, &got, &err))
			fail_msg("%s", err.text);
		if (got != c->n || memcmp(ids, c->ids, got * sizeof *ids))
			fail_msg("%s, %s: %zu ids, the first is %d, expected %zu", c->text, c->mark, got,
			         got ? ids[0] : -1, c->n);
		free(ids);
	}
	tokenizer_close(t);
}

#define ADDED(id, text, special, normalized) \
	"{\"id\":" #id ",\"content\":\"" text \
	"\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":" normalized \
	",\"special\":" special "}"
#define MODEL \
	"\"model\":{\"type\":\"BPE\",\"vocab\":{\"<\":0,\"s\":1,\">\":2,\"x\":3,\"\\u00e9\":4,\"\\u2581\":5,\"a\":6," \
	"\"!\":7},\"merges\":[]}"
#define TEMPLATE \
	"\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_" \
	"id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[]," \
	"\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[8],\"tokens\":[\"<s>\"]}}}"

/* Special tokens in the raw text: <s> is one, <s>x another, <x> one that users may write too. */
static void test_raw_specials(void **state)
{
	static const char json[] = "{\"added_tokens\":[" ADDED(8, "<s>", "true", "false") "," ADDED(
		9, "<s>x", "true", "false") "," ADDED(10, "<x>", "false", "false") "]," TEMPLATE "," MODEL "}";
	static const struct small_case cases[] = {
		{ "a<s>a", "00000", { 6, 8, 6 }, 3, false },
		{ "a<s>a", "11111", { 6, 0, 1, 2, 6 }, 5, false },
		{ "a<s>a", "00010", { 6, 0, 1, 2, 6 }, 5, false },
		{ "a<s>a", "01000", { 6, 0, 1, 2, 6 }, 5, false },
		{ "a<s>a", "10001", { 6, 8, 6 }, 3, false },
		{ "<s>x", "0000", { 9 }, 1, false },
		{ "<s>x", "0001", { 8, 3 }, 2, false },
		{ "<s>x", "1000", { 0, 1, 2, 3 }, 4, false },
		{ "a<x>", "1111", { 6, 10 }, 2, false },
		{ "a<x>", "0010", { 6, 10 }, 2, false },
		{ "<s>a", "0000", { 8, 6 }, 2, true },          /* the template wrote it */
		{ "<s>a", "1111", { 8, 0, 1, 2, 6 }, 5, true }, /* a user wrote it */
		{ "a", "0", { 8, 6 }, 2, true },
		{ "a", "0", { 6 }, 1, false },
		{ "", "", { 8 }, 1, true },
		{ "<s>", "000", { 8 }, 1, true },
	};
	(void)state;

	run_small(json, cases, sizeof cases / sizeof *cases);
}

/* Special tokens in the normalised text, which marks have to follow: characters composed, lowered, prepended, replaced,
 * stripped. */
static void test_normalised_specials(void **state)
{
	static const char json[] =
		"{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Strip\",\"strip_left\":true,"
		"\"strip_right\":true},{\"type\":\"NFC\"},{\"type\":\"Lowercase\"},"
		"{\"type\":\"Replace\",\"pattern\":{\"String\":\" "
		"\"},\"content\":\"\\u2581\"},"
		"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"!+\"},\"content\":\"!\"}]},"
		"\"added_tokens\":[" ADDED(8, "<s>", "true", "true") "]," MODEL "}";
	static const struct small_case cases[] = {
		{ "a<S>a", "00000", { 6, 8, 6 }, 3, false },
		{ "a<S>a", "01110", { 6, 0, 1, 2, 6 }, 5, false },
		{ "a<S>a", "00010", { 6, 0, 1, 2, 6 }, 5, false },
		{ "  E\xcc\x81 !!!<s>e\xcc\x81<s> ", "1111111110001111111", { 4, 5, 7, 8, 4, 0, 1, 2 }, 8, false },
		{ "  E\xcc\x81 !!!<s>e\xcc\x81<s> ", "1111111111111110000", { 4, 5, 7, 0, 1, 2, 4, 8 }, 8, false },
		{ "<s>\xc3\x89<s>", "00011000", { 8, 4, 8 }, 3, false },
		{ "<s>\xff<s>", "0001000", { 8, 8 }, 2, false },
	};
	(void)state;

	run_small(json, cases, sizeof cases / sizeof *cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_raw_specials),
		cmocka_unit_test(test_normalised_specials),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_borders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
