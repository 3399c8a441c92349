/* tests/loaders/tokenizer_roles_tests.c - which token has which task: by the keys of a GGUF file, by the fields of
 * tokenizer_config.json, and by the well-known texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/loaders/small_vocab.h"
#include "tests/loaders/tokenizer_check.h"

static int32_t role(const struct tokenizer *t, const char *name)
{
	for (size_t i = 0; tokenizer_role_name(i); i++)
		if (strcmp(tokenizer_role_name(i), name) == 0)
			return tokenizer_role(t, (enum tok_role)i);
	fail_msg("there is no role %s", name);
	return -1;
}

static void by_keys(void **state)
{
	static const char *const keys[][2] = {
		{ "eot", "eot" },
		{ "eom", "eom" },
		{ "pad", "padding" },
		{ "unk", "unknown" },
		{ "sep", "seperator" },
		{ "sep", "separator" },
		{ "mask", "mask" },
		{ "cls", "cls" },
		{ "fim_prefix", "fim_pre" },
		{ "fim_suffix", "fim_suf" },
		{ "fim_middle", "fim_mid" },
		{ "fim_prefix", "prefix" },
		{ "fim_suffix", "suffix" },
		{ "fim_middle", "middle" },
		{ "fim_pad", "fim_pad" },
		{ "fim_repo", "fim_rep" },
		{ "fim_sep", "fim_sep" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		for (int wrong = 0; wrong < 2; wrong++) {
			struct small s;
			struct error err;
			char key[64];
			const bool read_strictly = i < 2 || i == 3; /* these decide tokens */
			if (wrong && read_strictly)
				continue;
			byte_level_vocab(&s.file, "gpt-2", some_merges, 1);
			snprintf(key, sizeof key, "%s_token_id", keys[i][1]);
			vocab_u32(&s.file, key, wrong ? 1000000 : 77);
			if (!small_open(&s, 0, &err))
				fail_msg("%s: %s", key, err.text);
			for (size_t k = 0; tokenizer_role_name(k); k++) {
				const char *name = tokenizer_role_name(k);
				const bool begins = strcmp(name, "bos") == 0 || strcmp(name, "eos") == 0;
				const int32_t want = begins ? 256 : !wrong && strcmp(name, keys[i][0]) == 0 ? 77 : -1;
				if (role(s.t, name) != want)
					fail_msg("%s: %s is %d", key, name, role(s.t, name));
			}
			small_close(&s);
		}
}

/* A vocabulary with one more token of this text and kind. */
static struct tokenizer *with_token(const char *text, bool special, bool normal)
{
	char json[2000];

	if (normal)
		snprintf(json, sizeof json,
		         "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"%s\":8},\"merges\":[]}}", text);
	else
		snprintf(json, sizeof json,
		         "{\"added_tokens\":[{\"id\":8,\"content\":\"%s\",\"special\":%s}]," MODEL("") "}", text,
		         special ? "true" : "false");
	return must_json(json, NULL);
}

static void by_texts(void **state)
{
	static const struct {
		const char *role, *text;
		bool normal; /* it may be a normal token, too */
	} rows[] = {
		{ "fim_prefix", "<|fim_prefix|>", true },
		{ "fim_suffix", "<|fim_suffix|>", true },
		{ "fim_middle", "<|fim_middle|>", true },
		{ "fim_prefix", "<fim_prefix>", true },
		{ "fim_suffix", "<fim-suffix>", true },
		{ "fim_middle", "<fim_middle>", true },
		{ "fim_prefix", "<\357\275\234fim" M "begin\357\275\234>", true },
		{ "fim_suffix", "<\357\275\234fim" M "hole\357\275\234>", true },
		{ "fim_middle", "<\357\275\234fim" M "end\357\275\234>", true },
		{ "fim_prefix", M "<PRE>", true },
		{ "fim_suffix", M "<SUF>", true },
		{ "fim_middle", M "<MID>", true },
		{ "fim_prefix", "<PRE>", false }, /* text of web pages */
		{ "fim_suffix", "<SUF>", false },
		{ "fim_middle", "<|code_middle|>", true },
		{ "fim_pad", "<PAD>", false },
		{ "fim_repo", "<|repo_name|>", true },
		{ "fim_repo", "<REPO>", false },
		{ "fim_sep", "<|file_sep|>", true },
		{ "eot", "<|im_end|>", false },
		{ "eot", "<end_of_turn>", false },
		{ "eom", "<|eom_id|>", false },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int kind = 0; kind < 3; kind++) {
			struct tokenizer *t = with_token(rows[i].text, kind == 0, kind == 2);
			const char *text;
			size_t n;
			if (role(t, rows[i].role) != (kind < 2 || rows[i].normal ? 8 : -1))
				fail_msg("%s %d: %s is %d", rows[i].text, kind, rows[i].role, role(t, rows[i].role));
			assert_int_equal(tokenizer_type(t, 8, &text, &n), kind == 0   ? TOK_CONTROL
			                                                  : kind == 1 ? TOK_USER
			                                                              : TOK_NORMAL);
			assert_int_equal(n, strlen(rows[i].text));
			assert_memory_equal(text, rows[i].text, n);
			assert_int_equal(tokenizer_type(t, 7, &text, &n), kind == 2 ? TOK_UNUSED : TOK_NORMAL);
			assert_int_equal(tokenizer_type(t, 9, &text, &n), TOK_UNUSED);
			assert_null(text);
			assert_int_equal(tokenizer_type(t, -1, &text, &n), TOK_UNUSED);
			tokenizer_close(t);
		}
}

/* What the configuration says comes before texts, and what is no token is none. */
static void by_fields(void **state)
{
	struct tokenizer *t = must_json(
		"{\"added_tokens\":[{\"id\":8,\"content\":\"<|fim_prefix|>\",\"special\":true}]," MODEL(UNK) "}",
		"{\"pad_token\":\"ab\",\"mask_token\":{\"content\":\"c\"},\"cls_token\":\"no such\",\"sep_token\":null,"
		"\"prefix_token\":\"b\",\"eos_token\":\"a\"}");
	(void)state;

	assert_int_equal(role(t, "pad"), 3);
	assert_int_equal(role(t, "mask"), 2);
	assert_int_equal(role(t, "cls"), -1);
	assert_int_equal(role(t, "sep"), -1);
	assert_int_equal(role(t, "fim_prefix"), 1);
	assert_int_equal(role(t, "fim_suffix"), -1);
	assert_int_equal(role(t, "eos"), 0);
	assert_int_equal(role(t, "bos"), -1);
	assert_int_equal(role(t, "unk"), 4);
	tokenizer_close(t);
}

int tokenizer_roles_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(by_keys), cmocka_unit_test(by_texts),
		                            cmocka_unit_test(by_fields) };

	return cmocka_run_group_tests_name("tokenizer_roles_tests", tests, NULL, NULL);
}
