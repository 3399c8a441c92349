/* tests/loaders/tokenizer_check.h - what the tests of the tokenizer share: small vocabularies, opened, and checks of
 * what they make of a text. */
#ifndef TESTS_LOADERS_TOKENIZER_CHECK_H
#define TESTS_LOADERS_TOKENIZER_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "loaders/tokenizer/tokenizer_internal.h"

#define IDS(t, text, flags, ...) \
	check_ids(t, text, strlen(text), flags, (const int32_t[]){ __VA_ARGS__ }, \
	          sizeof(const int32_t[]){ __VA_ARGS__ } / sizeof(int32_t))

#define TEXT(t, special, want, ...) \
	check_text(t, (const int32_t[]){ __VA_ARGS__ }, sizeof(const int32_t[]){ __VA_ARGS__ } / sizeof(int32_t), \
	           special, want)

static const char *const some_merges[] = { "l o", "\xc4\xa0 lo", "\xc4\xa0lo w", "lo w", "e r", "a a", "aa aa" };
/* ids: lo 258, " lo" 259, " low" 260, low 261, er 262, aa 263, aaaa 264 */

#define M "\xe2\x96\x81"

#define CHARS "\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"<u>\":4,\"" M "\":5,\"" M "a\":6,\" \":7"
#define MODEL(options) \
	"\"model\":{\"type\":\"BPE\"," options "\"vocab\":{" CHARS "},\"merges\":[\"a b\",[\"" M "\",\"a\"]]}"

#define UNK "\"unk_token\":\"<u>\","

void check_ids(const struct tokenizer *t, const char *text, size_t n, unsigned flags, const int32_t *want,
               size_t n_want);
void check_text(const struct tokenizer *t, const int32_t *ids, size_t n, bool special, const char *want);
struct tokenizer *from_json(const char *json, const char *config, struct error *err);
struct tokenizer *must_json(const char *json, const char *config);

/* The tests of the other files of the program: the number that failed. */
int tokenizer_json_tests(void);
int tokenizer_gguf_tests(void);
int tokenizer_pieces_tests(void);
int tokenizer_queue_tests(void);
int tokenizer_stretch_tests(void);
int tokenizer_steps_tests(void);
int tokenizer_roles_tests(void);

#endif
