/* tests/loaders/t_tokenizer.c - the tokenizer on vocabularies written here: encoding, decoding, streams, splitting
 * rules and long texts. */
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
#include "tests/loaders/small_vocab.h"
#include "tests/loaders/tokenizer_check.h"

/* ---- helpers */

/* decode(encode(text)) */
static void check_round_trip(const struct tokenizer *t, const char *text, size_t n, const char *want, size_t n_want)
{
	struct error err = { 0 };
	int32_t *ids;
	size_t count, back;

	if (!tokenizer_encode(t, text, n, 0, &ids, &count, &err))
		fail_msg("%s", err.text);
	char *out = tokenizer_decode(t, ids, count, true, &back, &err);
	assert_non_null(out);
	assert_int_equal(back, n_want);
	assert_memory_equal(out, want, n_want);
	free(out);
	free(ids);
}

/* ---- byte-level */

static void open_byte_level(struct small *s, const char *pre)
{
	struct error err;

	byte_level_vocab(&s->file, pre, some_merges, sizeof some_merges / sizeof *some_merges);
	if (!small_open(s, 0, &err))
		fail_msg("%s", err.text);
}

static void test_byte_level(void **unused)
{
	struct small s;

	open_byte_level(&s, "gpt-2");
	IDS(s.t, "lower", 0, 261, 262);
	IDS(s.t, "lower lower", 0, 261, 262, 260, 262);
	IDS(s.t, "aaaaaaa", 0, 264, 263, 'a'); /* the leftmost of equal pairs first */
	IDS(s.t, "\xc3\xa9", 0, 0xc3, 0xa9);
	IDS(s.t,
	    "a\xff"
	    "b",
	    0, 'a', 0xff, 'b');                     /* a byte that is no character */
	IDS(s.t, "lo\xe2\x82", 0, 258, 0xe2, 0x82); /* a cut character */
	check_ids(s.t, "", 0, 0, NULL, 0);
	check_ids(s.t, "a\0b", 3, 0, (int32_t[]){ 'a', 0, 'b' }, 3);
	TEXT(s.t, false, "lower low", 261, 262, 260);
	TEXT(s.t, false, "\xef\xbf\xbd!", 0xff, '!');
	assert_int_equal(tokenizer_size(s.t), 265);
	assert_int_equal(tokenizer_find(s.t, "lower", 5), -1);
	assert_int_equal(tokenizer_find(s.t, "low", 3), 261);
	small_close(&s);
}

static void test_whole_words(void **unused)
{
	static const char *const merges[] = { "a b", "b c", "a bc" };
	struct small s;
	struct error err;

	/* merging makes "ab" first and never reaches the token "abc"; the rule that a word which is a token stays whole
	 * does */
	byte_level_vocab(&s.file, "gpt-2", merges, 3);
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "abc abc", 0, 258, 'c', ' ', 258, 'c');
	small_close(&s);
	byte_level_vocab(&s.file, "llama-bpe", merges, 3);
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "abc abc", 0, 260, ' ', 258, 'c');
	small_close(&s);
}

static void test_specials(void **unused)
{
	struct small s;

	open_byte_level(&s, "llama-bpe");
	IDS(s.t, "<|a|>x", TOKENIZE_SPECIAL, 256, 'x');
	IDS(s.t, "<|a|>x", 0, '<', '|', 'a', '|', '>', 'x'); /* asked as plain text */
	IDS(s.t, "<|b|>x", 0, 257, 'x');                     /* a user-defined token is always one token */
	IDS(s.t, "<|a<|a|>", TOKENIZE_SPECIAL, '<', '|', 'a', 256);
	IDS(s.t, "x", TOKENIZE_BOS_EOS, 256, 'x'); /* this rule begins every text with BOS */
	check_ids(s.t, "", 0, TOKENIZE_BOS_EOS, (int32_t[]){ 256 }, 1);
	TEXT(s.t, false, "x<|b|>", 256, 'x', 257);
	TEXT(s.t, true, "<|a|>x<|b|>", 256, 'x', 257);
	TEXT(s.t, false, "x", -1, 'x', 1 << 20); /* ids outside the vocabulary add nothing */
	assert_int_equal(tokenizer_bos(s.t), 256);
	assert_true(tokenizer_is_eog(s.t, 256));
	assert_false(tokenizer_is_eog(s.t, 'x'));
	struct error err = { 0 };
	assert_true(tokenizer_add_eog(s.t, 257, &err));
	assert_true(tokenizer_is_eog(s.t, 257));
	assert_false(tokenizer_add_eog(s.t, 265, &err));
	assert_non_null(strstr(err.text, "265"));
	small_close(&s);
}

/* ---- SentencePiece style */

static const char *const some_parts[] = { M "t", "he", M "the", "in", M,          "t",  "h",
	                                  "e",   "i",  "n",     M M,  "\xc3\xa9", "ab", "b" };
/* ids: ▁t 259, he 260, ▁the 261, in 262, ▁ 263, t 264, h 265, e 266, i 267, n 268, ▁▁ 269, é 270, ab 271, b 272 */

static void open_spm(struct small *s, int prefix)
{
	struct error err;

	spm_vocab(&s->file, some_parts, sizeof some_parts / sizeof *some_parts);
	vocab_bool(&s->file, "add_space_prefix", prefix);
	if (!small_open(s, 0, &err))
		fail_msg("%s", err.text);
}

static void test_scores(void **unused)
{
	struct small s;

	open_spm(&s, 1);
	IDS(s.t, "the", 0, 261);
	IDS(s.t, "the the", TOKENIZE_BOS_EOS, 1, 261, 261);
	IDS(s.t, "in  the", 0, 263, 262, 263, 261); /* "▁t" beats "▁▁", and then "▁the" */
	IDS(s.t, "  n", 0, 269, 263, 268);
	IDS(s.t, "\xc3\xa9", 0, 263, 270);
	IDS(s.t, "\xc3\xa8", 0, 263, 3 + 0xc3, 3 + 0xa8); /* not in the vocabulary: its bytes */
	IDS(s.t, "\n", 0, 263, 3 + 10);
	IDS(s.t, "a\xff", 0, 263, 3 + 'a', 3 + 0xff);
	IDS(s.t, "ab", 0, 263, 271); /* "a" is no token, but part of one */
	IDS(s.t, "<s>", TOKENIZE_SPECIAL, 1);
	IDS(s.t, "<s>the", TOKENIZE_SPECIAL, 1, 261);
	IDS(s.t, "<s>", 0, 263, 3 + '<', 3 + 's', 3 + '>');
	IDS(s.t, "<0x0A>", 0, 263, 3 + '<', 3 + '0', 3 + 'x', 3 + '0', 3 + 'A', 3 + '>');
	check_ids(s.t, "", 0, 0, NULL, 0);
	TEXT(s.t, false, "the the", 1, 261, 261);
	TEXT(s.t, true, "<s> the the", 1, 261, 261);
	TEXT(s.t, false, " the", 263, 261); /* one space is dropped, not two */
	TEXT(s.t, false, "the\xc3\xa8", 261, 3 + 0xc3, 3 + 0xa8);
	assert_true(tokenizer_is_eog(s.t, 2));
	assert_int_equal(tokenizer_bos(s.t), 1);
	small_close(&s);

	open_spm(&s, 0);
	IDS(s.t, "the", 0, 264, 260);
	IDS(s.t, " the", 0, 261);
	TEXT(s.t, false, " the", 261);
	small_close(&s);
}

static void test_collapsed_spaces(void **unused)
{
	struct small s;
	struct error err;

	spm_vocab(&s.file, some_parts, sizeof some_parts / sizeof *some_parts);
	vocab_bool(&s.file, "remove_extra_whitespaces", 1);
	vocab_bool(&s.file, "add_bos_token", 0);
	vocab_bool(&s.file, "add_eos_token", 1);
	assert_true(small_open(&s, 0, &err));
	IDS(s.t, "  the   the ", TOKENIZE_BOS_EOS, 261, 261, 2);
	small_close(&s);
}

/* ---- pieces and streams */

static void test_pieces(void **unused)
{
	struct small s;
	char scratch[256];
	size_t n;

	open_spm(&s, 1);
	const char *p = tokenizer_piece(s.t, 261, true, false, scratch, &n);
	assert_int_equal(n, 3);
	assert_memory_equal(p, "the", 3);
	p = tokenizer_piece(s.t, 261, false, false, scratch, &n);
	assert_int_equal(n, 4);
	assert_memory_equal(p, " the", 4);
	tokenizer_piece(s.t, 1, false, false, scratch, &n);
	assert_int_equal(n, 0);
	p = tokenizer_piece(s.t, 1, false, true, scratch, &n);
	assert_int_equal(n, 3);
	p = tokenizer_piece(s.t, 3 + 0xc3, false, false, scratch, &n);
	assert_int_equal(n, 1);
	assert_int_equal((unsigned char)p[0], 0xc3);
	small_close(&s);
}

/* Feeds bytes one token each; what comes out is written with '.' after each step that gave nothing. */
static void check_stream(const struct tokenizer *t, const char *bytes, size_t n, const char *want)
{
	struct utf8_stream s = { 0 };
	char *out = NULL, got[200] = "", end[8];
	size_t cap = 0, at = 0, made;

	for (size_t i = 0; i < n; i++) {
		made = tokenizer_stream(t, &s, (unsigned char)bytes[i], false, &out, &cap);
		assert_true(made != (size_t)-1);
		memcpy(got + at, made ? out : ".", made ? made : 1);
		at += made ? made : 1;
	}
	made = tokenizer_stream_end(&s, end);
	memcpy(got + at, end, made);
	at += made;
	got[at] = 0;
	free(out);
	assert_string_equal(got, want);
}

#define BAD "\xef\xbf\xbd"

static void test_streams(void **unused)
{
	struct small s;

	open_byte_level(&s, "gpt-2");
	check_stream(s.t, "a\xc3\xa9z", 4, "a.\xc3\xa9z");
	check_stream(s.t, "\xf0\x9f\xa6\x99", 4, "...\xf0\x9f\xa6\x99");
	check_stream(s.t, "\xe2\x82", 2, ".." BAD);
	check_stream(s.t,
	             "\xe2\x82"
	             "a",
	             3, ".." BAD "a");
	check_stream(s.t, "\xff\xfe", 2, BAD BAD);
	check_stream(s.t, "\xc0\xaf", 2, BAD BAD);             /* overlong */
	check_stream(s.t, "\xed\xa0\x80", 3, "." BAD BAD BAD); /* a surrogate: three bytes, none of a character */
	check_stream(s.t, "\xf4\x90\x80\x80", 4, "." BAD BAD BAD BAD);
	check_stream(s.t, "\xe2\xe2\x82\xac", 4, "." BAD ".\xe2\x82\xac");
	small_close(&s);
}

static void test_long_tokens(void **unused)
{
	static const char *const merges[] = { "\xc4\xa0 \xc4\xa0" };
	struct small s;
	struct error err;
	char big[1200];
	size_t n;

	/* 600 spaces spelt with two bytes each, and a user-defined token of 1000 */
	byte_level_vocab(&s.file, "gpt-2", merges, 1);
	free(s.file.p);
	vocab_start(&s.file);
	vocab_text(&s.file, "model", "gpt2");
	vocab_array(&s.file, "tokens", GGUF_STRING, 2);
	for (int i = 0; i < 600; i++)
		memcpy(big + 2 * i, "\xc4\xa0", 2);
	put_text(&s.file, big, 1200);
	memset(big, 'x', 1000);
	put_text(&s.file, big, 1000);
	vocab_array(&s.file, "token_type", GGUF_I32, 2);
	put_u32(&s.file, 1);
	put_u32(&s.file, 4);
	vocab_array(&s.file, "merges", GGUF_STRING, 0);
	if (!small_open(&s, 0, &err))
		fail_msg("%s", err.text);
	char scratch[256];
	const char *p = tokenizer_piece(s.t, 0, false, false, scratch, &n);
	assert_int_equal(n, 600);
	assert_int_equal(p[599], ' ');
	check_ids(s.t, big, 1000, 0, (int32_t[]){ 1 }, 1);
	check_round_trip(s.t, big, 1000, big, 1000);
	small_close(&s);
}

/* ---- splitting rules */

/* The words a rule makes, '|' between. */
static void check_words(const char *rule, const char *text, const char *want)
{
	struct error err = { 0 };
	struct tokenizer t = { 0 };
	struct tok_work w = { .err = &err };
	char got[400] = "";
	bool bos;

	if (!tok_pre_by_name(&t, rule, strlen(rule), "rule", &bos, &err) ||
	    !tok_append(&w.text, text, strlen(text), &err) || !tok_pretokenize(&t, &w))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < w.spans.n; i++)
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", i ? "|" : "", (int)w.spans.p[i].n,
		         w.text.p + w.spans.p[i].at);
	assert_string_equal(got, want);
	for (unsigned i = 0; i < t.n_pre; i++)
		pcre2_code_free(t.pre[i].re);
	tok_work_free(&w);
}

static void test_rules(void **unused)
{
	static const char text[] = "I'll  pay 12345$!\n\n Now\xff ok ";

	check_words("gpt-2", text, "I|'ll| | pay| 12345|$!|\n\n| Now|\xff| ok| ");
	check_words("llama-bpe", text, "I|'ll| | pay| |123|45|$!\n\n| Now|\xff| ok| ");
	check_words("qwen2", text, "I|'ll| | pay| |1|2|3|4|5|$!\n\n| Now|\xff| ok| ");
	check_words("starcoder", text, "I|'ll| | pay| |1|2|3|4|5|$!|\n\n| Now|\xff| ok| ");
	check_words("falcon", text, "I|'|ll| | pay| |123|45|$!|\n\n| Now|\xff| ok| ");
	check_words("default", text, "I|'|ll| | pay| |123|45|$!|\n\n| Now|\xff| ok| ");
	check_words("deepseek-coder", text, "I|'|ll| | pay| |1|2|3|4|5|$|!|\n|\n| Now|\xff| ok| ");
	check_words("deepseek-llm", text, "I|'|ll| | pay| |12345|$!|\n|\n| Now|\xff| ok| ");
	check_words("tekken", "iPhone HTTPServer 12/\n", "i|Phone| HTTPServer| |1|2|/\n");
	check_words("gpt-4o", "It's HE'S 1234", "It's| HE'S| |123|4");
	check_words("deepseek-v3",
	            "a\xe4\xb8\xad\xe6\x96\x87"
	            "12345!x\n",
	            "a|\xe4\xb8\xad\xe6\x96\x87|123|45|!x|\n");
	check_words("qwen35", "ne\xcc\x81 x", "ne\xcc\x81| x");
	check_words("bloom", "a b,c", "a| b|,|c");
	check_words("llama-bpe", "\t\n \r\n x", "\t\n \r\n| x");
	check_words("llama-bpe", "don'T", "don|'T");
	check_words("llama-bpe", "a\xe1\xa0\x8e b\xe3\x80\x80 c",
	            "a|\xe1\xa0\x8e| b|\xe3\x80\x80| c"); /* U+180E is no space, U+3000 is one */
}

static void test_unknown_rule(void **unused)
{
	struct small s;
	struct error err;

	byte_level_vocab(&s.file, "no-such-rule", some_merges, 1);
	assert_false(small_open(&s, 0, &err));
	assert_int_equal(err.code, ERROR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "no-such-rule"));
	small_close(&s);
}

/* ---- long texts: a quadratic step would take hours here */

static void test_long_texts(void **unused)
{
	static const char *const unit[] = { "a",     " ", "\n", "<", "ab ", "\xe4\xb8\xad", "\xcc\x81\xcc\x96",
		                            "\t \n", "'", "1",  "A", "\xff" };
	size_t size = 1 << 20;
	char *text = malloc(size);
	struct small level, spm, trailing;
	struct error err;

	assert_non_null(text);
	open_byte_level(&level, "llama-bpe");
	open_spm(&spm, 1);
	byte_level_vocab(&trailing.file, "deepseek-llm", some_merges, 2);
	assert_true(small_open(&trailing, 0, &err));
	for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
		size_t n = strlen(unit[i]), at = 0;
		for (; at + n + 1 <= size; at += n)
			memcpy(text + at, unit[i], n);
		text[at++] = 'x'; /* what follows decides about a run of spaces */
		if (unit[i][0] == '\xff') {
			int32_t *ids;
			size_t count;
			assert_true(tokenizer_encode(level.t, text, at, 0, &ids, &count, &err));
			assert_int_equal(count, at);
			free(ids);
			continue;
		}
		check_round_trip(level.t, text, at, text, at);
		check_round_trip(trailing.t, text, at, text, at);
		check_round_trip(spm.t, text, at, text, at);
	}
	small_close(&level);
	small_close(&spm);
	small_close(&trailing);
	free(text);
}

/* Combining marks in the worst order: sorting them one by one would be quadratic. */
static void test_long_marks(void **unused)
{
	struct error err = { 0 };
	struct tok_work w = { .err = &err };
	struct tokenizer t = { .n_norm = 1 };
	size_t pairs = 1 << 17;

	t.norm[0].kind = TOK_NORM_NFD;
	for (size_t i = 0; i < pairs; i++)
		assert_true(tok_append(&w.text, "\xcc\x81\xcc\x96", 4, &err));
	assert_true(tok_normalise(&t, &w));
	assert_int_equal(w.text.n, 4 * pairs);
	assert_memory_equal(w.text.p, "\xcc\x96\xcc\x96", 4);
	assert_memory_equal(w.text.p + 4 * pairs - 4, "\xcc\x81\xcc\x81", 4);
	free(w.text.p);
	free(w.other.p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_byte_level),
		cmocka_unit_test(test_whole_words),
		cmocka_unit_test(test_specials),
		cmocka_unit_test(test_scores),
		cmocka_unit_test(test_collapsed_spaces),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_long_tokens),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_unknown_rule),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_long_marks),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += tokenizer_json_tests();
	failed += tokenizer_gguf_tests();
	failed += tokenizer_pieces_tests();
	failed += tokenizer_queue_tests();
	failed += tokenizer_stretch_tests();
	failed += tokenizer_steps_tests();
	failed += tokenizer_roles_tests();
	return failed;
}
