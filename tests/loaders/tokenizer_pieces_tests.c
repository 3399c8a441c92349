/* tests/loaders/tokenizer_pieces_tests.c - WordPiece and Unigram, and two texts as one: the ids that HF's tokenizers
 * give for these files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/small_vocab.h"
#include "tests/loaders/tokenizer_check.h"

#define SPECIAL(id, text) "{\"id\":" #id ",\"content\":\"" text "\",\"special\":true,\"normalized\":false}"

#define WORDS(normalizer) \
	"{\"added_tokens\":[" SPECIAL(0, "[UNK]") "," SPECIAL(1, "[CLS]") "," SPECIAL( \
		2, "[SEP]") "]," \
			    "\"normalizer\":{\"type\":\"BertNormalizer\"" normalizer \
			    "},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}," \
			    "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],\"cls\":[\"[CLS]" \
			    "\",1]}," \
			    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"},\"model\":{\"type\":" \
			    "\"WordPiece\",\"unk_token\":" \
			    "\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":8,\"vocab\":" \
			    "{\"[UNK]\":0," \
			    "\"[CLS]\":1,\"[SEP]\":2,\"un\":3,\"##able\":4,\"##a\":5,\"##ble\":6,\"a\":7,\"b\":8," \
			    "\"e\":9,\",\":10," \
			    "\"\xe6\x97\xa5\":11,\"##b\":12,\"cafe\":13}}}"

static void check_pair(const struct tokenizer *t, const char *first, const char *second, const int32_t *ids,
                       const int32_t *types, size_t n)
{
	const char *text[2] = { first, second };
	const size_t n_text[2] = { strlen(first), strlen(second) };
	struct error err = { 0 };
	int32_t *got, *got_types;
	size_t n_got;

	assert_true(tokenizer_encode_pair(t, text, n_text, 0, &got, &got_types, &n_got, &err));
	assert_int_equal(n_got, n);
	assert_memory_equal(got, ids, n * sizeof *ids);
	assert_memory_equal(got_types, types, n * sizeof *types);
	free(got);
	free(got_types);
}

#define BOTH (TOKENIZE_BOS_EOS | TOKENIZE_SPECIAL)

/* Spaces before marks and the ends of contractions, as the library tokenizers writes them: token by token. */
static void test_cleanup(void **unused)
{
#define CLEANED(cleanup) \
	"{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##" \
	"\"" cleanup "},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"do\":1," \
	"\"n't\":2,\".\":3," \
	"\"?!\":4,\"'s\":5,\"'\":6,\"it\":7,\"##.\":8,\"#\":9,\"n'\":10,\"...\":11,\"'re\":12,\";\":13}}}"
	struct tokenizer *t = must_json(CLEANED(",\"cleanup\":true"), NULL);
	struct error err = { 0 };
	static const char odd[] = CLEANED(",\"cleanup\":1");
	(void)unused;

	TEXT(t, false, "don't it's.", 1, 2, 7, 5, 3);
	TEXT(t, false, "it ' it?! #.", 7, 6, 7, 4, 9, 8);
	TEXT(t, false, ". n' it... do're ;", 3, 10, 7, 11, 1, 12, 13);
	tokenizer_close(t);
	t = must_json(CLEANED(",\"cleanup\":false"), NULL);
	TEXT(t, false, "do n't it 's .", 1, 2, 7, 5, 3);
	tokenizer_close(t);
	assert_null(tokenizer_from_json((struct tokenizer_text){ odd, sizeof odd - 1, "tokenizer.json" },
	                                (struct tokenizer_text){ 0 }, 0, &err));
	assert_non_null(strstr(err.text, "decoder.cleanup is 1, "));
}

static void test_word_piece(void **unused)
{
	struct tokenizer *t = must_json(WORDS(), NULL);

	IDS(t, "Unable, CAF\xc3\x89", BOTH, 1, 3, 4, 10, 13, 2);
	IDS(t, "unab un", BOTH, 1, 3, 5, 12, 3, 2);
	IDS(t, "abababab ababababa", BOTH, 1, 7, 12, 5, 12, 5, 12, 5, 12, 0, 2); /* 9 characters are unknown */
	IDS(t, "x a", BOTH, 1, 0, 7, 2);
	IDS(t,
	    "a\xe6\x97\xa5"
	    "b\xcc\x81 e",
	    BOTH, 1, 7, 11, 8, 9, 2);
	IDS(t,
	    "b\x01"
	    "a\t\xc2\xa0"
	    "ba[SEP]",
	    BOTH, 1, 8, 5, 8, 5, 2, 2);
	IDS(t, "", BOTH, 1, 2);
	IDS(t, "[SEP]", TOKENIZE_BOS_EOS, 1, 0, 0, 0, 2);
	check_pair(t, "a, b", "unable", (const int32_t[]){ 1, 7, 10, 8, 2, 3, 4, 2 },
	           (const int32_t[]){ 0, 0, 0, 0, 0, 1, 1, 1 }, 8);
	check_pair(t, "", "", (const int32_t[]){ 1, 2, 2 }, (const int32_t[]){ 0, 0, 1 }, 3);
	TEXT(t, false, "unable a", 1, 3, 4, 7, 2);
	TEXT(t, false, "a, b", 7, 10, 8);
	tokenizer_close(t);
	t = must_json(WORDS(",\"lowercase\":false,\"handle_chinese_chars\":false"), NULL);
	IDS(t, "Un un", 0, 0, 3);
	IDS(t, "a\xe6\x97\xa5", 0, 0);
	IDS(t, "caf\xc3\xa9", 0, 0); /* accents go as letters do */
	tokenizer_close(t);
}

#define PIECES(model) \
	"{\"added_tokens\":[" SPECIAL(0, "<s>") "," SPECIAL(1, "</s>") "," SPECIAL( \
		2, "<unk>") "]," \
			    "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"" M \
			    "\",\"prepend_scheme\":\"always\"}," \
			    "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</" \
			    "s>\",1],\"cls\":[\"<s>\",0]}," \
			    "\"model\":{\"type\":\"Unigram\",\"unk_id\":2,\"vocab\":[[\"<s>\",0],[\"</" \
			    "s>\",0],[\"<unk>\",0]," model "]}}"

static void test_unigram(void **unused)
{
	struct tokenizer *t = must_json(PIECES("[\"" M "\",-2.5],[\"a\",-3],[\"b\",-3.5],[\"ab\",-4],[\"" M "a\",-4.5],"
	                                       "[\"abc\",-20],[\"c\",-3.25],[\"" M "ab\",-9]"),
	                                NULL);

	IDS(t, "abc", BOTH, 0, 3, 6, 9, 1);
	IDS(t, "a  b", BOTH, 0, 7, 3, 3, 5, 1);
	IDS(t, "xyz ab", BOTH, 0, 3, 2, 3, 6, 1); /* unknown characters next to each other are one */
	IDS(t, " abcc", BOTH, 0, 3, 6, 9, 9, 1);
	check_pair(t, "a", "bc", (const int32_t[]){ 0, 7, 1, 1, 3, 5, 9, 1 },
	           (const int32_t[]){ 0, 0, 0, 0, 0, 0, 0, 0 }, 8);
	tokenizer_close(t);
}

static void test_refusals(void **unused)
{
	static const struct {
		const char *json, *says;
	} rows[] = {
		{ PIECES("[\"a\",\"b\"]"), "a token and its score" },
		{ PIECES("[\"a\",1e400]"), "" },
		{ "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", "unk_token" },
		{ "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"b\",\"vocab\":{\"a\":0}}}",
		  "unk_token is \"b\"" },
		{ "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"max_input_chars_per_word\":0,\"vocab\":"
		  "{\"a\":0}}}",
		  "max_input_chars_per_word is 0" },
		{ "{\"model\":{\"type\":\"Unigram\",\"unk_id\":5,\"vocab\":[[\"a\",0]]}}", "unk_id is 5" },
		{ WORDS(",\"lowercase\":3"), "lowercase is 3" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err;
		assert_null(from_json(rows[i].json, NULL, &err));
		if (!strstr(err.text, rows[i].says))
			fail_msg("row %zu says: %s", i, err.text);
	}
}

/* A tokenizer without a template for pairs says so. */
static void test_no_pair(void **unused)
{
	struct tokenizer *t = must_json("{" MODEL() "}", NULL);
	struct error err = { 0 };
	const char *text[2] = { "a", "b" };
	int32_t *ids, *types;
	size_t n;

	assert_false(tokenizer_encode_pair(t, text, (const size_t[]){ 1, 1 }, 0, &ids, &types, &n, &err));
	assert_non_null(strstr(err.text, "do not say how two texts become one"));
	tokenizer_close(t);
}

int tokenizer_pieces_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_word_piece), cmocka_unit_test(test_cleanup), cmocka_unit_test(test_unigram),
		cmocka_unit_test(test_refusals),   cmocka_unit_test(test_no_pair),
	};

	return cmocka_run_group_tests_name("tokenizer_pieces_tests", tests, NULL, NULL);
}
