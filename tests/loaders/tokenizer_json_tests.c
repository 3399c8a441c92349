/* tests/loaders/tokenizer_json_tests.c - everything that tokenizer.json may ask for, and every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/small_vocab.h"
#include "tests/loaders/tokenizer_check.h"

/* ---- tokenizer.json */

#define ADDED \
	"\"added_tokens\":[{\"id\":8,\"content\":\"[X]\",\"special\":true}," \
	"{\"id\":9,\"content\":\"[L]\",\"lstrip\":true,\"rstrip\":true},{\"id\":10,\"content\":\"[W]\",\"single_" \
	"word\":true,\"normalized\":false}]"

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

/* What ends a message of other models ends one of several in an answer of gpt-oss. */
static void test_json_ends(void **unused)
{
#define RETURN ",{\"id\":9,\"content\":\"<|return|>\",\"special\":true}"
#define CALL ",{\"id\":10,\"content\":\"<|call|>\",\"special\":true}"
	static const char *const others[] = { "", RETURN, RETURN CALL };
	char text[1000];

	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof text,
		         "{\"added_tokens\":[{\"id\":8,\"content\":\"<|end|>\",\"special\":true}%s],%s}", others[i],
		         MODEL(UNK));
		struct tokenizer *t = must_json(text, NULL);
		assert_int_equal(tokenizer_is_eog(t, 8), i < 2);
		assert_int_equal(tokenizer_is_eog(t, 9), i > 0);
		tokenizer_close(t);
	}
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

static const struct {
	const char *json, *config, *says;
} refusals[] = {
	{ "", NULL, "small.json: is not valid JSON in line 1, byte 1: expected a value" },
	{ "[1,2", NULL, "small.json: is not valid JSON in line 1, byte 5: expected ',' or ']'" },
	{ "[1]", NULL, "small.json: its content is an array, expected an object" },
	{ "{\"added_tokens\":{}," MODEL() "}", NULL, "added_tokens is {}, expected an array" },
	{ "{\"model\":{\"vocab\":{\"a\":1000000000000000019884624838656},\"merges\":[]}}", NULL,
	  "small.json: an id in model.vocab is 1e30" },
	{ "{\"model\":{\"vocab\":{\"a\":NaN},\"merges\":[]}}", NULL, "small.json: an id in model.vocab is NaN" },
	{ "{\"model\":{\"vocab\":{\"\\ud800\":0},\"merges\":[]}}", NULL, "half of a surrogate pair" },
	{ "{\"added_tokens\":[{\"id\":9,\"content\":\"x\\udc00\"}]," MODEL() "}", NULL,
	  "content is a string with half a surrogate pair" },
	{ "{" MODEL("\"dropout\":Infinity,") "}", NULL, "model.dropout is Infinity" },
	{ "{\"a\":1}", NULL, "model is absent" },
	{ "{\"model\":{\"type\":\"Odd\",\"vocab\":[]}}", NULL, "model.type is \"Odd\"" },
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
	{ "{\"normalizer\":{\"type\":\"Odd\"}," MODEL() "}", NULL, "normalizer.type is \"Odd\"" },
	{ "{\"normalizer\":{\"type\":\"Precompiled\"}," MODEL() "}", NULL, "normalizer.precompiled_charsmap" },
	{ "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAA\"}," MODEL() "}", NULL,
	  "has 3 bytes" },
	{ "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A!\"}," MODEL() "}", NULL, "base64" },
	{ "{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAP////\"}," MODEL() "}", NULL,
	  "has 7 bytes" },
	{ "{\"normalizer\":7," MODEL() "}", NULL, "normalizer.type" },
	{ "{\"pre_tokenizer\":{\"type\":\"Odd\"}," MODEL() "}", NULL, "pre_tokenizer.type is \"Odd\"" },
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
	{ "{\"decoder\":{\"type\":\"Odd\"}," MODEL() "}", NULL, "decoder.type is \"Odd\"" },
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

static void test_json_refusals(void **unused)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct error err;
		assert_null(from_json(refusals[i].json, refusals[i].config, &err));
		assert_true(err.code != ERROR_NONE);
		if (!strstr(err.text, refusals[i].says))
			fail_msg("row %zu says: %s", i, err.text);
	}
	struct error err = { 0 };
	static const char small[] = "{" MODEL() "}";
	assert_null(tokenizer_from_json((struct tokenizer_text){ small, strlen(small), "small.json" },
	                                (struct tokenizer_text){ 0 }, 7, &err));
	assert_non_null(strstr(err.text, "has 7"));
}

int tokenizer_json_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json_model),           cmocka_unit_test(test_json_missing_bytes),
		cmocka_unit_test(test_json_added),           cmocka_unit_test(test_json_ends),
		cmocka_unit_test(test_json_normalizers),     cmocka_unit_test(test_json_pre_tokenizers),
		cmocka_unit_test(test_json_post_processors), cmocka_unit_test(test_json_decoders),
		cmocka_unit_test(test_json_refusals),
	};

	return cmocka_run_group_tests_name("tokenizer_json_tests", tests, NULL, NULL);
}
