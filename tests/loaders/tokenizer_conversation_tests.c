/* tests/loaders/tokenizer_conversation_tests.c - conversations with special tokens, as another project encodes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/tokenizer_vectors.h"

#define MISTRAL "data/tokenizers/mistral-common/"

/* ---- conversations: the text shows "▁" for a space and <0x0A> for a new line,
 * and a space after each special token */

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

int tokenizer_conversation_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conversations),
	};

	return cmocka_run_group_tests_name("tokenizer_conversation_tests", tests, NULL, NULL);
}
