/* tests/fuzz/fuzz_chat.c - arbitrary bytes as a chat template and its variables; and what is rendered, as a
 * conversation for a tokenizer.
 *
 * The bytes are a template and, behind a NUL, the JSON text of its messages; where there is none, some messages of our
 * own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "chat/chat.h"
#include "tests/fuzz/fuzz.h"
#include "tests/loaders/small_vocab.h"

static const char messages[] =
	"[{\"role\": \"system\", \"content\": \" Be <|a|> brief.\"}, {\"role\": \"user\", "
	"\"content\": [{\"type\": \"text\", \"text\": \"ab \\u00e9\"}]}, "
	"{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\": "
	"{\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": 2.5, \"c\": [true, null]}}}]}]";
static const char tools[] = "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"<|b|>\", "
			    "\"parameters\": {\"type\": \"object\", \"properties\": {}}}}]";

/* One after the other, of whole characters, and no two of a kind side by side. */
static void check_spans(const struct chat_text *t)
{
	size_t at = 0;

	for (size_t i = 0; i < t->n_spans; i++) {
		if (t->span[i].begin != at || t->span[i].end <= at || t->span[i].end > t->n ||
		    (i && t->span[i].user == t->span[i - 1].user))
			abort();
		while (at < t->span[i].end) {
			uint32_t c;
			unsigned n = text_char(t->p + at, t->n - at, &c);
			if (n == 0 || n > t->span[i].end - at)
				abort();
			at += n;
		}
	}
	if (at != t->n || t->p[t->n])
		abort();
}

/* Any vocabulary takes it, and gives it back. */
static void check_tokens(const struct chat_text *t)
{
	static const char *const merges[] = { "l o", "e r", "a a" };
	static struct small v;
	struct error err = { 0 };
	int32_t *ids;
	size_t n, back;

	if (!v.t) {
		byte_level_vocab(&v.file, "llama-bpe", merges, sizeof merges / sizeof *merges);
		if (!small_open(&v, 0, &err))
			abort();
	}
	if (!chat_tokenize(v.t, t, true, &ids, &n, &err))
		abort();
	char *text = tokenizer_decode(v.t, ids, n, true, &back, &err);
	if (!text || back < t->n || memcmp(text + back - t->n, t->p, t->n) != 0)
		abort();
	free(text);
	free(ids);
}

void fuzz_chat(const uint8_t *p, size_t n)
{
	const uint8_t *zero = n ? memchr(p, 0, n) : NULL;
	size_t n_template = zero ? (size_t)(zero - p) : n, n_json = zero ? n - n_template - 1 : sizeof messages - 1;
	const struct chat_variable variables[] = {
		{ "messages", zero ? (const char *)zero + 1 : messages, n_json, CHAT_MESSAGES },
		{ "tools", tools, sizeof tools - 1, CHAT_USER },
		{ "bos_token", "\"<s>\"", 5, CHAT_MODEL },
		{ "add_generation_prompt", "true", 4, CHAT_MODEL }
	};
	static const struct tm now = { .tm_year = 126, .tm_mday = 2, .tm_wday = 5 };
	const struct chat_request request = { variables, sizeof variables / sizeof *variables, &now, true };
	struct error err = { 0 };
	struct chat_text out;
	bool refused;

	struct chat_template *t = chat_template_parse((const char *)p, n_template, "fuzz", &err);
	if (!t && (!err.code || !err.text[0]))
		abort();
	if (t && chat_render(t, &request, &out, &refused, &err)) {
		if (refused)
			abort();
		check_spans(&out);
		if (out.n < 4096)
			check_tokens(&out);
		chat_text_free(&out);
	} else if (!err.code || !err.text[0]) {
		abort();
	}
	chat_template_free(t);
}
