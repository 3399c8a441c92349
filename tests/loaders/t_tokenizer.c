/* tests/loaders/t_tokenizer.c - the tokenizer on vocabularies written here: encoding, decoding, streams, splitting
 * rules, everything tokenizer.json may ask for, every refusal, and long texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/small_vocab.h"

/* ---- helpers */

static void check_ids(const struct tokenizer *t, const char *text, size_t n, unsigned flags, const int32_t *want,
                      size_t n_want)
{
	struct error err = { 0 };
	int32_t *ids;
	size_t got;

	if (!tokenizer_encode(t, text, n, flags, &ids, &got, &err))
		fail_msg("\"%s\": %s", text, err.text);
	if (got != n_want || (got && memcmp(ids, want, got * sizeof *ids))) {
		for (size_t i = 0; i < got; i++)
			print_message("%d ", ids[i]);
		fail_msg("\"%s\": %zu ids, expected %zu", text, got, n_want);
	}
	free(ids);
}

#define IDS(t, text, flags, ...) \
	check_ids(t, text, strlen(text), flags, (const int32_t[]){ __VA_ARGS__ }, \
	          sizeof(const int32_t[]){ __VA_ARGS__ } / sizeof(int32_t))

static void check_text(const struct tokenizer *t, const int32_t *ids, size_t n, bool special, const char *want)
{
	struct error err = { 0 };
	size_t got;
	char *text = tokenizer_decode(t, ids, n, special, &got, &err);

	assert_non_null(text);
	assert_string_equal(text, want);
	assert_int_equal(got, strlen(want));
	free(text);
}

#define TEXT(t, special, want, ...) \
	check_text(t, (const int32_t[]){ __VA_ARGS__ }, sizeof(const int32_t[]){ __VA_ARGS__ } / sizeof(int32_t), \
	           special, want)

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

static struct tokenizer *from_json(const char *json, const char *config, struct error *err)
{
	memset(err, 0, sizeof *err);
	return tokenizer_from_json((struct tokenizer_text){ json, strlen(json), "small.json" },
	                           (struct tokenizer_text){ config, config ? strlen(config) : 0, "small_config.json" },
	                           0, err);
}

static struct tokenizer *must_json(const char *json, const char *config)
{
	struct error err;
	struct tokenizer *t = from_json(json, config, &err);

	if (!t)
		fail_msg("%s", err.text);
	return t;
}

/* ---- byte-level */

static const char *const some_merges[] = { "l o", "\xc4\xa0 lo", "\xc4\xa0lo w", "lo w", "e r", "a a", "aa aa" };
/* ids: lo 258, " lo" 259, " low" 260, low 261, er 262, aa 263, aaaa 264 */

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

#define M "\xe2\x96\x81"
static const char *const some_pieces[] = { M "t", "he", M "the", "in", M,          "t",  "h",
	                                   "e",   "i",  "n",     M M,  "\xc3\xa9", "ab", "b" };
/* ids: ▁t 259, he 260, ▁the 261, in 262, ▁ 263, t 264, h 265, e 266, i 267, n 268, ▁▁ 269, é 270, ab 271, b 272 */

static void open_spm(struct small *s, int prefix)
{
	struct error err;

	spm_vocab(&s->file, some_pieces, sizeof some_pieces / sizeof *some_pieces);
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

	spm_vocab(&s.file, some_pieces, sizeof some_pieces / sizeof *some_pieces);
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

/* ---- tokenizer.json */

#define CHARS "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"<u>\":4,\"" M "\":5,\"" M "a\":6,\" \":7"
#define MODEL(options) \
	"\"model\":{\"type\":\"BPE\"," options "\"vocab\":{" CHARS "},\"merges\":[\"a b\",[\"" M "\",\"a\"]]}"
#define ADDED \
	"\"added_tokens\":[{\"id\":8,\"content\":\"[X]\",\"special\":true}," \
	"{\"id\":9,\"content\":\"[L]\",\"lstrip\":true,\"rstrip\":true},{\"id\":10,\"content\":\"[W]\",\"single_" \
	"word\":true,\"normalized\":false}]"
#define UNK "\"unk_token\":\"<u>\","

static void test_json_model(void **unused)
{
	struct tokenizer *t = must_json("{" MODEL(UNK) "}", NULL);

	IDS(t, "abc", 0, 3, 2);
	IDS(t, "xxa", 0, 4, 4, 0);
	tokenizer_close(t);
	t = must_json("{" MODEL(UNK "\"fuse_unk\":true,") "}", NULL);
	IDS(t, "xxa", 0, 4, 0);
	tokenizer_close(t);
	t = must_json("{" MODEL() "}", NULL);
	IDS(t, "axb", 0, 3); /* no unknown token: dropped before merging */
	IDS(t, "xx\xff", 0);
	tokenizer_close(t);
	t = must_json("{\"model\":{\"vocab\":{\"a\":0,\"<0x62>\":1,\"b\":5},\"merges\":[],\"byte_fallback\":true}}",
	              NULL);
	IDS(t, "ab", 0, 0, 5);
	assert_int_equal(tokenizer_size(t), 6); /* ids 2 to 4 name nothing */
	TEXT(t, false, "abb", 0, 1, 3, 5);
	tokenizer_close(t);
}

#define LEVEL(options) \
	"{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{" options \
	"\"vocab\":{\"a\":0,\"b\":1,\"ab\":2," \
	"\"<u>\":3},\"merges\":[\"a b\"]}}"

/* Bytes that a byte-level vocabulary lacks: nothing of them is left, or the unknown token where the model has one. */
static void test_json_missing_bytes(void **unused)
{
	struct tokenizer *t = must_json(LEVEL(), NULL);

	IDS(t, "azb z\xc3\xa9\x01", 0, 2);
	IDS(t, "z", 0);
	tokenizer_close(t);
	t = must_json(LEVEL(UNK), NULL);
	IDS(t, "azzb", 0, 0, 3, 3, 1);
	tokenizer_close(t);
	t = must_json(LEVEL(UNK "\"fuse_unk\":true,"), NULL);
	IDS(t,
	    "azz\xc3\xa9"
	    "b",
	    0, 0, 3, 1);
	tokenizer_close(t);
}

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

static void test_json_added(void **unused)
{
	struct tokenizer *t = must_json("{" ADDED "," MODEL(UNK) "}", NULL);

	IDS(t, "a[X]b", TOKENIZE_SPECIAL, 0, 8, 1);
	IDS(t, "a[X]b", 0, 0, 4, 4, 4, 1);
	IDS(t, "a [L] b", 0, 0, 9, 1);     /* swallows the spaces around it */
	IDS(t, "a[W]b", 0, 0, 4, 4, 4, 1); /* not inside a word */
	IDS(t, "a [W] b", 0, 0, 7, 10, 7, 1);
	IDS(t, "[W]", 0, 10);
	TEXT(t, false, "a[L]", 0, 8, 9);
	TEXT(t, true, "a[X][L]", 0, 8, 9);
	tokenizer_close(t);
	/* a special token that is not asked for is text, and nothing is found inside it */
	t = must_json("{\"added_tokens\":[{\"id\":8,\"content\":\"[X]\",\"special\":true},{\"id\":9,\"content\":\"X\","
	              "\"normalized\":false}]," MODEL(UNK) "}",
	              NULL);
	IDS(t, "a[X]X", 0, 0, 4, 4, 4, 9);
	IDS(t, "a[X]X", TOKENIZE_SPECIAL, 0, 8, 9);
	tokenizer_close(t);
	t = must_json("{\"added_tokens\":[{\"id\":8,\"content\":\"xx\",\"special\":true}]," MODEL(
			      UNK "\"ignore_merges\":true,") "}",
	              NULL);
	IDS(t, "xx", 0, 4, 4);
	IDS(t, "xx", TOKENIZE_SPECIAL, 8);
	tokenizer_close(t);
	/* the configuration may add some, and names the ends */
	t = must_json(
		"{" ADDED "," MODEL(UNK) "}",
		"{\"model_max_length\":1000000000000000019884624838656,\"added_tokens_decoder\":{\"8\":{\"content\":\"["
		"X]\"},\"11\":{\"content\":\"[Y]\","
		"\"special\":true}},\"eos_token\":{\"content\":\"[Y]\"},\"bos_token\":\"[X]\",\"add_bos_token\":true}");
	IDS(t, "a[Y]", TOKENIZE_SPECIAL | TOKENIZE_BOS_EOS, 8, 0, 11);
	assert_true(tokenizer_is_eog(t, 11));
	assert_int_equal(tokenizer_bos(t), 8);
	tokenizer_close(t);
}

static void test_json_normalizers(void **unused)
{
	static const struct {
		const char *step, *in, *out;
	} rows[] = {
		{ "{\"type\":\"Lowercase\"}", "ABC\xc3\x89\xc4\xb0", "abc\xc3\xa9i\xcc\x87" },
		{ "{\"type\":\"NFC\"}", "e\xcc\x81\xff", "\xc3\xa9\xff" },
		{ "{\"type\":\"NFD\"}", "\xc3\xa9", "e\xcc\x81" },
		{ "{\"type\":\"NFKC\"}", "\xef\xac\x81\xef\xbc\xa1", "fiA" },
		{ "{\"type\":\"NFKD\"}", "\xef\xac\x81\xc3\xa9", "fie\xcc\x81" },
		{ "{\"type\":\"NFC\"}", "e\xcc\xa3\xcc\x81", "\xe1\xba\xb9\xcc\x81" },
		{ "{\"type\":\"NFD\"}", "e\xcc\x81\xcc\xa3", "e\xcc\xa3\xcc\x81" }, /* marks in canonical order */
		{ "{\"type\":\"Replace\",\"pattern\":{\"String\":\"ab\"},\"content\":\"-\"}", "abcabab", "-c--" },
		{ "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"b+|$\"},\"content\":\"!\"}", "abba", "a!a!" },
		{ "{\"type\":\"Prepend\",\"prepend\":\"_\"}", "x", "_x" },
		{ "{\"type\":\"Strip\",\"strip_right\":false}", " \xe3\x80\x80x ", "x " },
		{ "{\"type\":\"Strip\"}", " \xe3\x80\x80x\xc2\xa0 ", "x" },
		{ "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"A "
		  "\"},{\"type\":\"Lowercase\"},{\"type\":\"Replace\","
		  "\"pattern\":{\"String\":\" \"},\"content\":\"" M "\"}]}",
		  "B C", "a" M "b" M "c" },
		{ "null", "x", "x" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		struct tok_work w = { .err = &err };
		char json[2000];
		snprintf(json, sizeof json, "{\"normalizer\":%s,%s}", rows[i].step, MODEL());
		struct tokenizer *t = must_json(json, NULL);
		assert_true(tok_append(&w.text, rows[i].in, strlen(rows[i].in), &err));
		assert_true(tok_normalise(t, &w));
		assert_true(tok_append(&w.text, "", 1, &err));
		assert_string_equal(w.text.p, rows[i].out);
		tok_work_free(&w);
		tokenizer_close(t);
	}
}

static void test_json_pre_tokenizers(void **unused)
{
#define SPLIT(how) "{\"type\":\"Split\",\"pattern\":{\"String\":\"-\"},\"behavior\":\"" how "\"}"
	static const struct {
		const char *step, *in, *out;
	} rows[] = {
		{ SPLIT("Removed"), "-a--b-", "a|b" },
		{ SPLIT("Isolated"), "-a--b-", "-|a|-|-|b|-" },
		{ SPLIT("MergedWithPrevious"), "-a--b-", "-|a-|-|b-" },
		{ SPLIT("MergedWithNext"), "-a--b-", "-a|-|-b|-" },
		{ SPLIT("Contiguous"), "-a--b-", "-|a|--|b|-" },
		{ "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a-z]+\"},\"behavior\":\"Removed\",\"invert\":true}",
		  "ab1cd", "ab|cd" },
		{ "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x*\"},\"behavior\":\"Isolated\"}", "axxb", "a|xx|b" },
		{ "{\"type\":\"Digits\",\"individual_digits\":true}", "a12b", "a|1|2|b" },
		{ "{\"type\":\"Digits\"}", "a12b", "a|12|b" },
		{ "{\"type\":\"Whitespace\"}", "it's me", "it|'|s|me" },
		{ "{\"type\":\"WhitespaceSplit\"}", " it's \t me", "it's|me" },
		{ "{\"type\":\"Punctuation\"}", "a+b,c", "a|+|b|,|c" },
		{ "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"-\"}", "a-b", "a|b" },
		{ "{\"type\":\"Metaspace\",\"replacement\":\"" M "\",\"prepend_scheme\":\"always\"}", "a b",
		  M "a|" M "b" },
		{ "{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\"}", "a  b", "a|" M "|" M "b" },
		{ "{\"type\":\"Metaspace\",\"prepend_scheme\":\"first\",\"split\":false}", "a b", M "a" M "b" },
		{ "{\"type\":\"Metaspace\",\"add_prefix_space\":false,\"split\":false}", "a b", "a" M "b" },
		{ "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", "a b", " a| b" },
		{ "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"},{\"type\":\"ByteLevel\",\"add_"
		  "prefix_space\":false}]}",
		  "a 12", "a| |12" },
		{ "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s+$\"},\"behavior\":\"Isolated\"}", " a  \n  b  ",
		  " a|  |\n  b|  " },
		{ "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[[:alpha:]\\\\s]+|[]x]|[^]\\\\S]\"},\"behavior\":"
		  "\"Isolated\"}",
		  "a b1]", "a b|1|]" },
		{ "null", "a b", "a b" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		struct tok_work w = { .err = &err, .at_start = true };
		char json[2000], got[200] = "";
		snprintf(json, sizeof json, "{\"pre_tokenizer\":%s,%s}", rows[i].step, MODEL());
		struct tokenizer *t = must_json(json, NULL);
		assert_true(tok_append(&w.text, rows[i].in, strlen(rows[i].in), &err));
		assert_true(tok_pretokenize(t, &w));
		for (size_t k = 0; k < w.spans.n; k++)
			snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", k ? "|" : "",
			         (int)w.spans.p[k].n, w.text.p + w.spans.p[k].at);
		assert_string_equal(got, rows[i].out);
		tok_work_free(&w);
		tokenizer_close(t);
	}
}

#define SPECIAL(name) "{\"SpecialToken\":{\"id\":\"" name "\",\"type_id\":0}}"
#define SEQUENCE_A "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define TEMPLATE(single) \
	"\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":" \
	"\"TemplateProcessing\"," \
	"\"single\":[" single \
	"],\"special_tokens\":{\"[X]\":{\"id\":\"[X]\",\"ids\":[8],\"tokens\":[\"[X]\"]},\"[L]\":{\"ids\":[9,10]}}}]}"

static void test_json_post_processors(void **unused)
{
	struct tokenizer *t =
		must_json("{" ADDED "," TEMPLATE(SPECIAL("[X]") "," SEQUENCE_A "," SPECIAL("[L]")) "," MODEL(UNK) "}",
	                  NULL);

	IDS(t, "ab", TOKENIZE_BOS_EOS, 8, 3, 9, 10);
	IDS(t, "ab", 0, 3);
	assert_int_equal(tokenizer_bos(t), 8);
	tokenizer_close(t);
	t = must_json("{" ADDED "," TEMPLATE(SPECIAL("[X]") "," SEQUENCE_A) "," MODEL(UNK) "}",
	              "{\"bos_token\":\"[X]\",\"eos_token\":\"[L]\",\"add_bos_token\":false,\"add_eos_token\":true}");
	IDS(t, "ab", TOKENIZE_BOS_EOS, 3, 9); /* the configuration overrules */
	tokenizer_close(t);
	t = must_json(
		"{" ADDED
		",\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"[X]\",8],\"sep\":[\"[W]\",10]}," MODEL(
			UNK) "}",
		NULL);
	IDS(t, "ab", TOKENIZE_BOS_EOS, 8, 3, 10);
	tokenizer_close(t);
}

static void test_json_decoders(void **unused)
{
	struct tokenizer *t = must_json(
		"{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"" M
		"\"},\"content\":\" "
		"\"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \","
		"\"start\":1,\"stop\":0}]}," MODEL() "}",
		NULL);

	TEXT(t, false, "a a", 6, 6);
	tokenizer_close(t);
	t = must_json("{\"decoder\":{\"type\":\"Metaspace\",\"prepend_scheme\":\"never\"}," MODEL() "}", NULL);
	TEXT(t, false, " a a", 6, 6);
	tokenizer_close(t);
	t = must_json("{\"decoder\":{\"type\":\"Metaspace\"}," MODEL() "}", NULL);
	TEXT(t, false, "a a", 6, 6);
	tokenizer_close(t);
}

/* ---- refusals */

static void test_json_refusals(void **unused)
{
	static const struct {
		const char *json, *config, *says;
	} rows[] = {
		{ "", NULL, "small.json: is not valid JSON in line 1, byte 1: expected a value" },
		{ "[1,2", NULL, "small.json: is not valid JSON in line 1, byte 5: expected ',' or ']'" },
		{ "[1]", NULL, "small.json: its content is an array, expected an object" },
		{ "{\"added_tokens\":{}," MODEL() "}", NULL, "added_tokens is {}, expected an array" },
		{ "{\"model\":{\"vocab\":{\"a\":1000000000000000019884624838656},\"merges\":[]}}", NULL,
		  "small.json: an id in model.vocab is 1e30" },
		{ "{\"model\":{\"vocab\":{\"a\":NaN},\"merges\":[]}}", NULL,
		  "small.json: an id in model.vocab is NaN" },
		{ "{\"model\":{\"vocab\":{\"\\ud800\":0},\"merges\":[]}}", NULL, "half of a surrogate pair" },
		{ "{\"added_tokens\":[{\"id\":9,\"content\":\"x\\udc00\"}]," MODEL() "}", NULL,
		  "content is a string with half a surrogate pair" },
		{ "{" MODEL("\"dropout\":Infinity,") "}", NULL, "model.dropout is Infinity" },
		{ "{\"a\":1}", NULL, "model is absent" },
		{ "{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", NULL, "model.type is \"Unigram\"" },
		{ "{\"model\":{\"vocab\":[]}}", NULL, "model.vocab is []" },
		{ "{\"model\":{\"vocab\":{},\"merges\":[]}}", NULL, "model.vocab is empty" },
		{ "{\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", NULL, "is -1" },
		{ "{\"model\":{\"vocab\":{\"a\":1.5},\"merges\":[]}}", NULL, "is 1.5" },
		{ "{\"model\":{\"vocab\":{\"a\":4294967296},\"merges\":[]}}", NULL, "is 4294967296" },
		{ "{\"model\":{\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", NULL, "the id 0 twice" },
		{ "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", NULL, "\"b\", which is no token" },
		{ "{\"model\":{\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]}}", NULL, "makes a token" },
		{ "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", NULL, "an entry of model.merges is \"a\"" },
		{ "{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", NULL, "an entry of model.merges" },
		{ "{\"model\":{\"vocab\":{\"a\":0}}}", NULL, "model.merges is absent" },
		{ "{" MODEL("\"dropout\":0.1,") "}", NULL, "model.dropout is 0.1" },
		{ "{" MODEL("\"continuing_subword_prefix\":\"##\",") "}", NULL, "continuing_subword_prefix is \"##\"" },
		{ "{" MODEL("\"end_of_word_suffix\":\"</w>\",") "}", NULL, "end_of_word_suffix is \"</w>\"" },
		{ "{" MODEL("\"unk_token\":\"none\",") "}", NULL, "model.unk_token is \"none\"" },
		{ "{" MODEL("\"byte_fallback\":1,") "}", NULL, "byte_fallback is 1" },
		{ "{\"normalizer\":{\"type\":\"Precompiled\"}," MODEL() "}", NULL,
		  "normalizer.type is \"Precompiled\"" },
		{ "{\"normalizer\":7," MODEL() "}", NULL, "normalizer.type" },
		{ "{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}," MODEL() "}", NULL,
		  "pre_tokenizer.type is \"BertPreTokenizer\"" },
		{ "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"}}," MODEL() "}", NULL,
		  "does not compile" },
		{ "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"}}," MODEL() "}", NULL,
		  "intersection" },
		{ "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[b]]\"}}," MODEL() "}", NULL,
		  "a set inside a set" },
		{ "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)\\\\1\"}}," MODEL() "}", NULL,
		  "a reference back to a group" },
		{ "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a{1,30000}b\"}}," MODEL() "}", NULL,
		  "more than 1000 repetitions" },
		{ "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"\"}}," MODEL() "}", NULL,
		  "pre_tokenizer.pattern" },
		{ "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"Odd\"}"
		  "," MODEL() "}",
		  NULL, "is \"Odd\"" },
		{ "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"ab\"}," MODEL() "}", NULL,
		  "pre_tokenizer.replacement is \"ab\"" },
		{ "{\"post_processor\":{\"type\":\"Odd\"}," MODEL() "}", NULL, "post_processor.type is \"Odd\"" },
		{ "{" TEMPLATE(SPECIAL("[N]") "," SEQUENCE_A) "," MODEL() "}", NULL, "post_processor.single" },
		{ "{" TEMPLATE(SPECIAL("[X]") "," SEQUENCE_A) "," MODEL() "}", NULL, "token id is 8" },
		{ "{" TEMPLATE() "," MODEL() "}", NULL, "one Sequence A" },
		{ "{\"decoder\":{\"type\":\"WordPiece\"}," MODEL() "}", NULL, "decoder.type is \"WordPiece\"" },
		{ "{\"decoder\":{\"type\":\"ByteLevel\"}," MODEL() "}", NULL, "decoder.type is \"ByteLevel\"" },
		{ "{\"decoder\":{\"type\":\"Strip\",\"content\":\" \",\"start\":2,\"stop\":0}," MODEL() "}", NULL,
		  "one space off" },
		{ "{\"added_tokens\":[{\"id\":99999999,\"content\":\"x\"}]," MODEL() "}", NULL, "is 99999999" },
		{ "{\"added_tokens\":[{\"id\":9,\"content\":\"\"}]," MODEL() "}", NULL, "content is \"\"" },
		{ "{" MODEL() "}", "{\"add_bos_token\":true,\"bos_token\":\"none\"}",
		  "small_config.json: bos_token is \"none\"" },
		{ "{" MODEL() "}", "{\"added_tokens_decoder\":{\"x\":{}}}",
		  "small_config.json: added_tokens_decoder has the key \"x\"" },
		{ "{" MODEL() "}", "nonsense", "small_config.json: is not valid JSON in line 1, byte 1" },
		{ "{" MODEL() "}", "[]", "small_config.json: its content is an array" },
		{ "{" MODEL() "}", "{\"add_bos_token\":-Infinity}", "small_config.json: add_bos_token is -Infinity" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err;
		assert_null(from_json(rows[i].json, rows[i].config, &err));
		assert_true(err.code != ERROR_NONE);
		if (!strstr(err.text, rows[i].says))
			fail_msg("row %zu says: %s", i, err.text);
	}
	struct error err = { 0 };
	static const char small[] = "{" MODEL() "}";
	assert_null(tokenizer_from_json((struct tokenizer_text){ small, strlen(small), "small.json" },
	                                (struct tokenizer_text){ 0 }, 7, &err));
	assert_non_null(strstr(err.text, "has 7"));
}

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
	vocab_text(&s.file, "model", "bert");
	refuse_gguf(&s, 0, "\"bert\"");
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
		{ "add_sep_token", 1, true },
		{ "add_sep_token", 0, false },
		{ "normalizer.lowercase", 1, true },
		{ "normalizer.lowercase", 0, false },
		{ "escape_whitespaces", 1, true },
		{ "treat_whitespace_as_suffix", 1, true },
		{ "treat_whitespace_as_suffix", 0, false },
		{ "precompiled_charsmap", -1, true },
		{ "fim_pre_token_id", -2, false },
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

/* ---- hostile tokenizers: the steps of a text are counted, so that no clock is asked */

#define SPLIT_LITERAL \
	"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":" \
	"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"},\"behavior\":\"Isolated\"}"
#define CUT(regex) \
	"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"Isolated\"}"
#define GROW "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}"
#define GROW_ANY "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"|a\"},\"content\":\"aaaaaaaaaaaaaaaa\"}"
#define PREFIX_AND_CUT \
	"{\"type\":\"ByteLevel\",\"use_regex\":false},{\"type\":\"Split\",\"pattern\":{\"Regex\":\".\"},\"behavior\":" \
	"\"Isolated\"}"

/* Encodes n bytes of the unit and counts; the bound of steps is the one every text has. */
static bool count_steps(const struct tokenizer *t, const char *unit, size_t n, uint64_t *steps, struct error *err)
{
	char *text = malloc(n + strlen(unit));
	struct tok_work w = { .most_steps = TOK_STEPS_MORE + (uint64_t)TOK_STEPS_A_BYTE * n, .err = err };

	assert_non_null(text);
	memset(err, 0, sizeof *err);
	for (size_t i = 0; i < n; i += strlen(unit))
		memcpy(text + i, unit, strlen(unit));
	bool ok = tok_encode_text(t, &w, text, n);
	*steps = w.steps;
	assert_true(w.steps <= (ok ? 1 : 2) * w.most_steps); /* the last piece of work may go beyond */
	tok_work_free(&w);
	free(text);
	return ok;
}

/* A step that grows faster than its text is stopped by the budget; what is honest takes twice the steps for twice the
 * text. */
static void check_growth(const char *name, const struct tokenizer *t, const char *unit, bool hostile)
{
	struct error err;
	uint64_t small = 0, large = 0;
	size_t n = test_quick() ? 8192 : 65536;

	if (!hostile) {
		if (!count_steps(t, unit, n, &small, &err) || !count_steps(t, unit, 2 * n, &large, &err))
			fail_msg("%s: %s", name, err.text);
		if (large > 2 * small + 1000)
			fail_msg("%s: %llu steps, %llu for twice the text", name, (unsigned long long)small,
			         (unsigned long long)large);
		return;
	}
	if (!count_steps(t, unit, 30, &small, &err))
		fail_msg("%s: a short text: %s", name, err.text);
	if (count_steps(t, unit, n, &large, &err))
		fail_msg("%s: done in %llu steps", name, (unsigned long long)large);
	if (!strstr(err.text, "steps for this text") && !strstr(err.text, "gave up"))
		fail_msg("%s says: %s", name, err.text);
}

static void test_hostile_steps(void **unused)
{
	static const struct {
		const char *json, *unit;
		bool hostile;
	} rows[] = {
		{ "{" CUT("a(?=a*b)") "," MODEL(UNK) "}", "a", true },
		{ "{" CUT("(?=[^b]*+b)a") "," MODEL(UNK) "}", "a", true },
		{ "{" CUT("c(?<!d)|(?:a|b)*?c") "," MODEL(UNK) "}", "ab", true },
		{ "{" CUT("(?i)q(?=.*z)|a") "," MODEL(UNK) "}", "q", true },
		{ "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a(?=a*b)\"},\"content\":\"\"}," MODEL(
			  UNK) "}",
		  "a", true },
		{ "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" GROW "," GROW "," GROW
		  "]}," MODEL(UNK) "}",
		  "a", true },
		{ "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[" GROW_ANY "," GROW_ANY "," GROW_ANY
		  "]}," MODEL(UNK) "}",
		  "a", true },
		{ "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" PREFIX_AND_CUT "," PREFIX_AND_CUT
		  "," PREFIX_AND_CUT "," PREFIX_AND_CUT "," PREFIX_AND_CUT "," PREFIX_AND_CUT "," PREFIX_AND_CUT
		  "]}," MODEL(UNK) "}",
		  "a", false },
		{ "{" CUT("[a-z]+|[^a-z]") "," MODEL(UNK) "}", "a b", false },
		{ "{" CUT("\\\\s*x|\\\\s+(?!\\\\S)|\\\\S+") "," MODEL(UNK) "}", "a   ", false },
		{ "{" SPLIT_LITERAL "," MODEL(UNK) "}", "a", false },
		{ "{" MODEL(UNK) "}", "ab", false },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct tokenizer *t = must_json(rows[i].json, NULL);
		check_growth(rows[i].json, t, rows[i].unit, rows[i].hostile);
		tokenizer_close(t);
	}
}

/* An added token that every position of the text begins and none ends. */
static void test_hostile_added_token(void **unused)
{
	enum { LONG = 4000 };
	char *json = malloc(LONG + 1000);

	assert_non_null(json);
	strcpy(json, "{\"added_tokens\":[{\"id\":8,\"content\":\"");
	size_t n = strlen(json);
	memset(json + n, 'a', LONG);
	strcpy(json + n + LONG, "b\",\"normalized\":false}]," MODEL(UNK) "}");
	struct tokenizer *t = must_json(json, NULL);
	check_growth("a long added token", t, "a", true);
	tokenizer_close(t);
	free(json);
}

/* Tokens of every length: each merge reads the text of both halves. */
static void test_hostile_scores(void **unused)
{
	enum { LENGTHS = 1500 };
	const char *piece[LENGTHS];
	struct small s;
	struct error err;
	char *all = malloc(LENGTHS * (LENGTHS + 1));

	assert_non_null(all);
	for (size_t i = 0; i < LENGTHS; i++) {
		char *p = all + i * (LENGTHS + 1);
		memset(p, 'a', i + 1);
		p[i + 1] = 0;
		piece[i] = p;
	}
	spm_vocab(&s.file, piece, LENGTHS);
	assert_true(small_open(&s, 0, &err));
	check_growth("tokens of every length", s.t, "a", false);
	small_close(&s);
	free(all);
}

/* The published rules stay far below the budget, whatever the text. */
static void test_published_steps(void **unused)
{
	static const char *const units[] = { "a", " ", "\n", "ab ", "\xe4\xb8\xad", "\t \n", "'", "1", "A" };
	struct tokenizer *t = must_json("{" CUT("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}+|"
	                                        "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]++[\\\\r\\\\n]*|"
	                                        "\\\\s*[\\\\r\\\\n]|\\\\s+(?!\\\\S)|\\\\s+") "," MODEL(UNK) "}",
	                                NULL);
	struct error err;
	uint64_t steps;

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t n = 6000 * strlen(units[i]);
		if (!count_steps(t, units[i], n, &steps, &err) || steps > 64 * n)
			fail_msg("\"%s\": %llu steps for %zu bytes %s", units[i], (unsigned long long)steps, n,
			         err.text);
	}
	tokenizer_close(t);
}

static void test_runaway_expression(void **unused)
{
	struct error err = { 0 };
	struct tokenizer *t = must_json("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+$\"},"
	                                "\"behavior\":\"Isolated\"}," MODEL(UNK) "}",
	                                NULL);
	char text[60];
	int32_t *ids;
	size_t n;

	memset(text, 'a', sizeof text);
	text[sizeof text - 1] = 'b';
	assert_false(tokenizer_encode(t, text, sizeof text, 0, &ids, &n, &err));
	assert_non_null(strstr(err.text, "gave up"));
	tokenizer_close(t);
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
		cmocka_unit_test(test_json_model),
		cmocka_unit_test(test_json_missing_bytes),
		cmocka_unit_test(test_gguf_missing_bytes),
		cmocka_unit_test(test_gguf_keys),
		cmocka_unit_test(test_gguf_control_and_user),
		cmocka_unit_test(test_hostile_steps),
		cmocka_unit_test(test_hostile_added_token),
		cmocka_unit_test(test_hostile_scores),
		cmocka_unit_test(test_published_steps),
		cmocka_unit_test(test_json_added),
		cmocka_unit_test(test_json_normalizers),
		cmocka_unit_test(test_json_pre_tokenizers),
		cmocka_unit_test(test_json_post_processors),
		cmocka_unit_test(test_json_decoders),
		cmocka_unit_test(test_json_refusals),
		cmocka_unit_test(test_gguf_refusals),
		cmocka_unit_test(test_gguf_idle_merges),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_long_marks),
		cmocka_unit_test(test_runaway_expression),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
