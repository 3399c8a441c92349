/* tests/loaders/tokenizer_gguf_tests.c - a vocabulary in the metadata of a GGUF file: kinds of tokens, keys, refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/shared.h"
#include "tests/loaders/small_vocab.h"
#include "tests/loaders/tokenizer_check.h"

/* ---- tokenizer.json */

/* In a GGUF file user-defined tokens are found in any text, control tokens only when asked for; those not asked for
 * hide nothing. */
static void test_gguf_control_and_user(void **unused)
{
	static const char *const tokens[] = { "[", "X", "]", "a", "[X]", "[UNK]" };
	static const unsigned types[] = { 1, 4, 1, 1, 3, 2 };
	struct small s;
	struct error err;

	vocab_start(&s.file);
	vocab_text(&s.file, "model", "gpt2");
	vocab_array(&s.file, "tokens", GGUF_STRING, 6);
	for (unsigned i = 0; i < 6; i++)
		put_text(&s.file, tokens[i], strlen(tokens[i]));
	vocab_array(&s.file, "token_type", GGUF_I32, 6);
	for (unsigned i = 0; i < 6; i++)
		put_u32(&s.file, types[i]);
	vocab_array(&s.file, "merges", GGUF_STRING, 0);
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "a[X]X", 0, 3, 0, 1, 2, 1);
	IDS(s.t, "a[X]X", TOKENIZE_SPECIAL, 3, 4, 1);
	IDS(s.t, "[UNK]", 0, 0, 2);
	IDS(s.t, "[UNK]", TOKENIZE_SPECIAL, 5);
	small_close(&s);
	/* neither does a control token come out of a word that spells it where whole words are looked up */
	byte_level_vocab(&s.file, "llama-bpe", (const char *const[]){ "a b" }, 1);
	memcpy(memmem(s.file.p, s.file.n, "<|a|>", 5), "xxxxx", 5);
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "xxxxx", 0, 'x', 'x', 'x', 'x', 'x');
	IDS(s.t, "xxxxx", TOKENIZE_SPECIAL, 256);
	small_close(&s);
}

/* In a GGUF file the unknown token of a byte-level model is never used, and what is dropped still keeps its neighbours
 * apart. */
static void test_gguf_missing_bytes(void **unused)
{
	struct small s;
	struct error err;

	vocab_start(&s.file);
	vocab_text(&s.file, "model", "gpt2");
	vocab_array(&s.file, "tokens", GGUF_STRING, 4);
	for (unsigned i = 0; i < 4; i++)
		put_text(&s.file, (const char *const[]){ "<u>", "a", "b", "ab" }[i], i == 0 ? 3 : i == 3 ? 2 : 1);
	vocab_array(&s.file, "merges", GGUF_STRING, 1);
	put_text(&s.file, "a b", 3);
	vocab_u32(&s.file, "unknown_token_id", 0);
	vocab_bool(&s.file, "add_bos_token", 0);
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "ab", 0, 3);
	IDS(s.t, "azb", 0, 1, 2);
	IDS(s.t, "z\xff\x01", 0);
	small_close(&s);
}

/* ---- text with marked spaces, merged by ranks */

static const char *const marked[] = {
	"<pad>",
	"<bos>",
	"<turn|>",
	"\xe2\x96\x81",
	"a",
	"b",
	"ab",
	("\xe2\x96\x81"
	 "ab"),
	"\n",
	"\n\n",
	"\n\n\n",
	"c",
	"abc",
	"\xe2\x96\x81\xe2\x96\x81"
};
enum { MARKED = sizeof marked / sizeof *marked };

/* Behind them a token for each byte. */
static void marked_vocab(struct vocab_file *f, const char *model)
{
	static const char *const merges[] = { "a b", "\xe2\x96\x81 ab", "\n \n", "\xe2\x96\x81 \xe2\x96\x81" };
	char text[8];

	vocab_start(f);
	vocab_text(f, "model", model);
	vocab_array(f, "tokens", GGUF_STRING, MARKED + 256);
	for (unsigned i = 0; i < MARKED; i++)
		put_text(f, marked[i], strlen(marked[i]));
	for (unsigned i = 0; i < 256; i++)
		put_text(f, text, (size_t)snprintf(text, sizeof text, "<0x%02X>", i));
	vocab_array(f, "token_type", GGUF_I32, MARKED + 256);
	for (unsigned i = 0; i < MARKED + 256; i++)
		put_u32(f, i < 3 ? 3 : i < MARKED ? 1 : 6);
	vocab_array(f, "merges", GGUF_STRING, 4);
	for (unsigned i = 0; i < 4; i++)
		put_text(f, merges[i], strlen(merges[i]));
	vocab_u32(f, "bos_token_id", 1);
	vocab_u32(f, "eos_token_id", 2);
}

static void test_gguf_marked_spaces(void **unused)
{
	struct small s;
	struct error err;

	marked_vocab(&s.file, "gemma4");
	vocab_bool(&s.file, "add_space_prefix", 0);
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "ab ab", TOKENIZE_BOS_EOS, 1, 6, 7);
	IDS(s.t, "ab ab", 0, 6, 7);
	/* spaces merge with each other last */
	IDS(s.t, "a  ab", 0, 4, 3, 7);
	IDS(s.t, "   ", 0, 13, 3);
	/* a word that is a token is merged all the same, and "abc" is no merge's result */
	IDS(s.t, "abc", 0, 6, 11);
	/* but a run of newlines is looked for as a whole; a longer one is merged */
	IDS(s.t, "a\n\n\nb", 0, 4, 10, 5);
	IDS(s.t, "\n", 0, 8);
	IDS(s.t, "\n\n\n\n", 0, 9, 9);
	IDS(s.t, "\n\n\n\n\n", 0, 9, 9, 8);
	/* what has no token is bytes */
	IDS(s.t, "\xc3\xa9", 0, MARKED + 0xc3, MARKED + 0xa9);
	IDS(s.t, "<turn|>", TOKENIZE_SPECIAL, 2);
	small_close(&s);
	/* without the key, a text begins as it is, too */
	marked_vocab(&s.file, "gemma4");
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "ab", 0, 6);
	small_close(&s);
}

/* ---- refusals */

static void refuse_gguf(struct small *s, uint64_t n_vocab, const char *says)
{
	struct error err;

	assert_false(small_open(s, n_vocab, &err));
	if (!strstr(err.text, says))
		fail_msg("says: %s", err.text);
	small_close(s);
}

static void test_gguf_refusals(void **unused)
{
	struct small s;

	vocab_start(&s.file);
	refuse_gguf(&s, 0, "tokenizer.ggml.model");
	vocab_start(&s.file);
	vocab_text(&s.file, "model", "rwkv");
	refuse_gguf(&s, 0, "\"rwkv\"");
	vocab_start(&s.file);
	vocab_text(&s.file, "model", "llama");
	refuse_gguf(&s, 0, "tokenizer.ggml.tokens");
	byte_level_vocab(&s.file, "gpt-2", some_merges, 1);
	refuse_gguf(&s, 258, "259 entries, more than the model's vocabulary of 258");
	vocab_start(&s.file);
	vocab_text(&s.file, "model", "gpt2");
	vocab_array(&s.file, "tokens", GGUF_STRING, 1);
	put_text(&s.file, "a", 1);
	vocab_array(&s.file, "merges", GGUF_STRING, 0);
	vocab_bool(&s.file, "add_bos_token", 1);
	refuse_gguf(&s, 0, "tokenizer.ggml.bos_token_id is missing");
	vocab_start(&s.file);
	vocab_text(&s.file, "model", "gpt2");
	vocab_array(&s.file, "tokens", GGUF_STRING, 0);
	refuse_gguf(&s, 0, "tokenizer.ggml.tokens is empty");
	byte_level_vocab(&s.file, "gpt-2", some_merges, 1);
	vocab_u32(&s.file, "eot_token_id", 259);
	refuse_gguf(&s, 0, "tokenizer.ggml.eot_token_id is 259");
	for (int kind = 0; kind < 5; kind++) {
		vocab_start(&s.file);
		vocab_text(&s.file, "model", kind == 4 ? "gpt2" : "llama");
		vocab_array(&s.file, "tokens", GGUF_STRING, 2);
		put_text(&s.file, "a", 1);
		put_text(&s.file, "b", 1);
		vocab_array(&s.file, "token_type", GGUF_I32, kind == 0 ? 1 : 2);
		put_u32(&s.file, kind == 1 ? 7 : 1);
		if (kind != 0)
			put_u32(&s.file, 1);
		if (kind == 3) {
			vocab_array(&s.file, "scores", GGUF_F32, 2);
			put_u32(&s.file, 0);
			put_u32(&s.file, 0x7fc00000);
		}
		static const char *const says[] = { "has 1 entries for 2 tokens", "token 0 is 7",
			                            "tokenizer.ggml.scores is missing", "token 1 is not a number",
			                            "tokenizer.ggml.merges is missing" };
		refuse_gguf(&s, 0, says[kind]);
	}
}

/* A key that would change the tokens is refused by its name, unless it asks for nothing. */
static void test_gguf_keys(void **unused)
{
	static const struct {
		const char *key;
		int value;
		bool refused;
	} rows[] = {
		{ "add_sep_token", 1, false },
		{ "add_sep_token", 0, false },
		{ "normalizer.lowercase", 1, true },
		{ "normalizer.lowercase", 0, false },
		{ "escape_whitespaces", 1, true },
		{ "treat_whitespace_as_suffix", 1, true },
		{ "treat_whitespace_as_suffix", 0, false },
		{ "precompiled_charsmap", -1, true },
		{ "fim_pre_token_id", -2, false },
		{ "added_tokens", -1, false }, /* keys of the format's description that change nothing */
		{ "token_type_count", -2, false },
		{ "something_new", 1, true },
	};
	char says[100];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct small s;
		struct error err;
		byte_level_vocab(&s.file, "gpt-2", some_merges, 1);
		if (rows[i].value >= 0) {
			vocab_bool(&s.file, rows[i].key, rows[i].value);
		} else if (rows[i].value == -1) {
			vocab_array(&s.file, rows[i].key, GGUF_U8, 1);
			put(&s.file, "", 1);
		} else {
			vocab_u32(&s.file, rows[i].key, 3);
		}
		snprintf(says, sizeof says, "small.gguf: the key tokenizer.ggml.%s is set", rows[i].key);
		if (small_open(&s, 0, &err) == rows[i].refused || (rows[i].refused && !strstr(err.text, says)))
			fail_msg("%s = %d: %s", rows[i].key, rows[i].value, err.text);
		small_close(&s);
	}
}

/* Merges that name no token never apply; the others keep their order. */
static void test_gguf_idle_merges(void **unused)
{
	static const char *const merges[] = { "l o", "lo zz", "lo w" };
	static const char text[] = "low lozz";
	struct small s;
	struct error err;
	int32_t *ids;
	size_t n;

	byte_level_vocab(&s.file, "gpt-2", merges, 3);
	assert_true(small_open(&s, 0, &err));
	assert_true(tokenizer_encode(s.t, text, strlen(text), 0, &ids, &n, &err));
	assert_int_equal(n, 5); /* low, space, lo, z, z */
	assert_int_equal(ids[0], 260);
	assert_int_equal(ids[2], 258);
	free(ids);
	small_close(&s);
}

int tokenizer_gguf_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gguf_missing_bytes), cmocka_unit_test(test_gguf_marked_spaces),
		cmocka_unit_test(test_gguf_keys),          cmocka_unit_test(test_gguf_control_and_user),
		cmocka_unit_test(test_gguf_refusals),      cmocka_unit_test(test_gguf_idle_merges),
	};

	return cmocka_run_group_tests_name("tokenizer_gguf_tests", tests, NULL, NULL);
}
