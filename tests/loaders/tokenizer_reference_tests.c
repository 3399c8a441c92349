/* tests/loaders/tokenizer_reference_tests.c - two readers of one vocabulary, and a plain merging that both must equal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/files/gguf.h"
#include "loaders/files/file.h"
#include "loaders/tokenizer/tokenizer_internal.h"
#include "tests/support/shared.h"
#include "tests/loaders/tokenizer_vectors.h"

/* ---- two readers, one vocabulary: the same ids for real text; and every text comes back */

static void compare_readers(const char *gguf, const char *json, const char *text_file)
{
	struct opened a, b;
	struct error err = { 0 };
	size_t n, n_ids;
	int32_t *ids;
	char *text = slurp(text_file, &n);
	const struct tokenizer *t = text ? open_vocab(&a, gguf) : NULL;

	if (t) {
		assert_true(tokenizer_encode(t, text, n, TOKENIZE_BOS_EOS, &ids, &n_ids, &err));
		check_text(t, gguf, ids, n_ids, false, text, n);
		const struct tokenizer *u = open_vocab(&b, json);
		if (u) {
			check_ids(u, json, text, n, TOKENIZE_BOS_EOS, ids, n_ids);
			check_text(u, json, ids, n_ids, false, text, n);
			close_vocab(&b);
		}
		free(ids);
		close_vocab(&a);
	}
	free(text);
}

static void test_readers_agree(void **unused)
{
	static const char *const texts[] = { "models/tale-llama/heldout.txt", "data/prompts/code_edit.json",
		                             "data/prompts/text.json" };

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		compare_readers(LLAMA3, LLAMA3_JSON, texts[i]);
		compare_readers(QWEN3, QWEN3_JSON, texts[i]);
		compare_readers(VOCAB "llama-spm.gguf", ORT "tiny-random-llama/tokenizer.json", texts[i]);
		compare_readers(VOCAB "gpt-2.gguf", VOCAB "gpt-2.gguf", texts[i]);
		compare_readers(VOCAB "gpt-neox.gguf", VOCAB "gpt-neox.gguf", texts[i]);
		compare_readers(VOCAB "baichuan.gguf", VOCAB "baichuan.gguf", texts[i]);
		compare_readers("models/tale-llama/tale-llama-q4_0.gguf", "models/tale-llama/tokenizer.json", texts[i]);
	}
}

/* ---- a plain reference: merging by searching the word again and again, on texts instead of ids. The words are
 * ours. */

struct rank {
	const char *p;
	size_t n;
	uint32_t rank;
}; /* a merge's line */

static int rank_order(const void *x, const void *y)
{
	const struct rank *a = x, *b = y;
	int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n);

	return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

static struct rank *read_ranks(const struct opened *o, size_t *n)
{
	struct gguf_str *line;
	uint64_t count;
	bool found;

	assert_true(gguf_strings(&o->g, "tokenizer.ggml.merges", &line, &count, &found, NULL) && found);
	struct rank *r = malloc(count * sizeof *r);
	assert_non_null(r);
	for (uint64_t i = 0; i < count; i++)
		r[i] = (struct rank){ line[i].p, line[i].n, (uint32_t)i };
	qsort(r, count, sizeof *r, rank_order);
	free(line);
	*n = count;
	return r;
}

static uint32_t rank_of(const struct rank *ranks, size_t n, const char *a, const char *b)
{
	char line[400];
	struct rank key = { line, (size_t)snprintf(line, sizeof line, "%s %s", a, b), 0 };
	const struct rank *r = key.n < sizeof line ? bsearch(&key, ranks, n, sizeof key, rank_order) : NULL;

	return r ? r->rank : UINT32_MAX;
}

enum { REFERENCE_BYTES = 80 };

/* A word of at most REFERENCE_BYTES bytes; what is no token in the end adds nothing. */
static size_t reference_word(const struct tokenizer *t, const struct rank *ranks, size_t n_ranks, const char *p,
                             size_t n, int32_t *ids)
{
	static char symbol[REFERENCE_BYTES][2 * REFERENCE_BYTES + 1];
	size_t made = 0, count = n;

	for (size_t i = 0; i < n; i++)
		symbol[i][tokenizer_spell_byte((unsigned char)p[i], symbol[i])] = 0;
	for (;;) {
		size_t best = 0;
		uint32_t min = UINT32_MAX;
		for (size_t i = 0; i + 1 < count; i++) {
			uint32_t rank = rank_of(ranks, n_ranks, symbol[i], symbol[i + 1]);
			if (rank < min) {
				min = rank;
				best = i;
			}
		}
		if (min == UINT32_MAX)
			break;
		memmove(symbol[best] + strlen(symbol[best]), symbol[best + 1], strlen(symbol[best + 1]) + 1);
		memmove(symbol[best + 1], symbol[best + 2], (count - best - 2) * sizeof *symbol);
		count--;
	}
	for (size_t i = 0; i < count; i++)
		if (tokenizer_find(t, symbol[i], strlen(symbol[i])) >= 0)
			ids[made++] = tokenizer_find(t, symbol[i], strlen(symbol[i]));
	return made;
}

static void check_reference(const struct tokenizer *t, const char *vocab, const struct rank *ranks, size_t n_ranks,
                            const char *text, size_t n)
{
	struct error err = { 0 };
	struct tok_work w = { .err = &err };
	int32_t want[REFERENCE_BYTES];
	size_t made = 0;

	assert_true(tok_append(&w.text, text, n, &err) && tok_pretokenize(t, &w));
	for (size_t i = 0; i < w.spans.n; i++)
		made += reference_word(t, ranks, n_ranks, w.text.p + w.spans.p[i].at, w.spans.p[i].n, want + made);
	tok_work_free(&w);
	check_ids(t, vocab, text, n, 0, want, made);
}

static uint32_t next_random(uint32_t *seed) { return (*seed = *seed * 1664525 + 1013904223) >> 8; }

/* Text k of the sweep: single bytes, characters between letters, control characters among punctuation, and any
 * characters. */
static size_t sweep_text(unsigned k, char *out)
{
	uint32_t seed = k * 2654435761u;
	size_t n = 0;

	if (k < 256) {
		out[0] = (char)k;
		return 1;
	}
	if (k < 1010) {
		out[n++] = 'a';
		n += tok_encode((k - 256) * 3, out + n);
		out[n++] = 'b';
		return n;
	}
	while (n < 40) {
		unsigned c = next_random(&seed), kind = c % 4;
		c = next_random(&seed);
		c = kind == 0   ? c % 32
		    : kind == 1 ? 32 + c % 95
		    : kind == 2 ? c % 0x800
		    : k < 1500  ? 32 + c % 95
		                : c % 0x110000;
		if (c < 0xd800 || c > 0xdfff)
			n += tok_encode(c, out + n);
	}
	return n;
}

static void test_missing_bytes(void **unused)
{
	static const char *const vocabs[] = { "starcoder", "falcon", "gpt-neox", "refact" };
	char name[200], text[REFERENCE_BYTES];

	for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
		struct opened o;
		size_t n_ranks;
		snprintf(name, sizeof name, VOCAB "%s.gguf", vocabs[i]);
		const struct tokenizer *t = open_vocab(&o, name);
		if (!t)
			continue;
		struct rank *ranks = read_ranks(&o, &n_ranks);
		for (unsigned k = 0; k < 2010; k += test_quick() ? 1 + k % 11 : 1)
			check_reference(t, name, ranks, n_ranks, text, sweep_text(k, text));
		free(ranks);
		close_vocab(&o);
	}
}

/* An option that is not known is refused by its value. */
static void test_refused_file(void **unused)
{
	char path[1024];
	struct file m;
	struct error err = { 0 };

	if (!shared_path(path, SWIFT "tokenizer.json"))
		return;
	assert_true(open_text(&m, path, &err));
	assert_null(tokenizer_from_json((struct tokenizer_text){ (const char *)m.base, m.size, path },
	                                (struct tokenizer_text){ 0 }, 0, &err));
	assert_non_null(strstr(err.text, "\"off\""));
	file_close(&m);
}

int tokenizer_reference_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers_agree),
		cmocka_unit_test(test_missing_bytes),
		cmocka_unit_test(test_refused_file),
	};

	return cmocka_run_group_tests_name("tokenizer_reference_tests", tests, NULL, NULL);
}
