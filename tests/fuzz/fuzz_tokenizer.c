/* tests/fuzz/fuzz_tokenizer.c - arbitrary bytes against the tokenizer.
 *
 * The first byte chooses: a tokenizer.json (what opens must encode and decode without harm), the metadata of a
 * GGUF file, or a text for one of three small vocabularies, whose characters must come back as they were.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/loaders/small_vocab.h"

static struct small vocab[3];

static void prepare(void)
{
	static const char *const merges[] = {
		"l o", "\xc4\xa0 lo", "lo w", "e r", "a a", "aa aa", "1 2", "\xc3\x83 \xc2\xa9", "\xc4\xa0 \xc4\xa0"
	};
	static const char *const pieces[] = {
		"\xe2\x96\x81t",
		"he",
		"\xe2\x96\x81the",
		"in",
		"\xe2\x96\x81",
		"t",
		"h",
		"e",
		"\xe2\x96\x81\xe2\x96\x81",
		"\xc3\xa9",
		"ab",
		"b",
		"aa",
		"aaaa",
		"a"
	};
	static const char *const rule[] = { "llama-bpe", "deepseek-llm" };
	struct error err;

	for (int i = 0; i < 2; i++) {
		byte_level_vocab(&vocab[i].file, rule[i], merges, sizeof merges / sizeof *merges);
		if (!small_open(&vocab[i], 0, &err))
			abort();
	}
	spm_vocab(&vocab[2].file, pieces, sizeof pieces / sizeof *pieces);
	if (!small_open(&vocab[2], 0, &err))
		abort();
}

/* The length of the valid character at p, or 0: written apart from the tokenizer's own. */
static size_t character(const unsigned char *p, size_t n)
{
	unsigned long c;
	size_t need = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc0 ? 2 : 0;

	if (need == 0 || need > n || p[0] > 0xf7)
		return 0;
	c = need == 1 ? p[0] : p[0] & (0xffu >> (need + 1));
	for (size_t i = 1; i < need; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		c = c << 6 | (p[i] & 63u);
	}
	static const unsigned long min[] = { 0, 0, 0x80, 0x800, 0x10000 };
	return c >= min[need] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? need : 0;
}

/* How many bytes at p are the beginning of some character (none of them is one yet): they become one U+FFFD. */
static size_t damage(const unsigned char *p, size_t n)
{
	static const unsigned char tail[] = { 0x80, 0x90, 0xa0, 0xbf };

	for (size_t len = n < 3 ? n : 3; len > 1; len--) {
		for (unsigned way = 0; way < 64; way++) {
			unsigned char whole[6];
			memcpy(whole, p, len);
			for (size_t i = 0; i < 3; i++)
				whole[len + i] = tail[way >> (2 * i) & 3];
			if (character(whole, 4) > len)
				return len;
		}
	}
	return 1;
}

/* The text comes back, with U+FFFD for what is no character, and a space for the mark that stands for one. */
static void compare(const char *text, size_t n, const char *out, size_t n_out, int marks)
{
	size_t k = 0;

	for (size_t i = 0; i < n;) {
		const unsigned char *p = (const unsigned char *)text + i;
		size_t len = character(p, n - i), take = len ? len : damage(p, n - i);
		const char *want = len ? text + i : "\xef\xbf\xbd";
		size_t n_want = len ? len : 3;
		if (marks && len == 3 && !memcmp(p, "\xe2\x96\x81", 3)) {
			want = " ";
			n_want = 1;
		}
		if (k + n_want > n_out || memcmp(out + k, want, n_want))
			abort();
		k += n_want;
		i += take;
	}
	if (k != n_out)
		abort();
}

static void round_trip(const struct tokenizer *t, const char *text, size_t n, unsigned flags, int exact)
{
	struct error err = { 0 };
	struct utf8_stream s = { 0 };
	int32_t *ids;
	size_t n_ids, back, cap = 0, at = 0;
	char *one = NULL, end[8];

	if (!tokenizer_encode(t, text, n, flags, &ids, &n_ids, &err)) {
		if (err.code == ERROR_NONE || exact)
			abort();
		return;
	}
	char *all = tokenizer_decode(t, ids, n_ids, true, &back, &err);
	if (!all || all[back])
		abort();
	/* the stream gives the same bytes, whole characters at a time */
	for (size_t i = 0; i < n_ids; i++) {
		size_t made = tokenizer_stream(t, &s, ids[i], true, &one, &cap);
		if (made == (size_t)-1 || at + made > back || (made && memcmp(all + at, one, made)))
			abort();
		for (size_t k = 0; k < made;) {
			size_t len = character((unsigned char *)one + k, made - k);
			if (!len)
				abort();
			k += len;
		}
		at += made;
	}
	size_t last = tokenizer_stream_end(&s, end);
	if (at + last != back || memcmp(all + at, end, last))
		abort();
	if (exact)
		compare(text, n, all, back, t == vocab[2].t);
	free(one);
	free(all);
	free(ids);
}

static void probe(struct tokenizer *t)
{
	static const char text[] = "ab  the lower\xff \xe4\xb8\xad<|a|>[X] 12345\n\n e\xcc\x81!";
	char scratch[256];
	size_t n;

	round_trip(t, text, sizeof text - 1, TOKENIZE_BOS_EOS | TOKENIZE_SPECIAL, 0);
	round_trip(t, text, sizeof text - 1, 0, 0);
	for (int32_t id = -1; id < 20; id++) {
		const char *p = tokenizer_piece(t, id, id & 1, id & 2, scratch, &n);
		if (n && tokenizer_find(t, p, n) >= (int32_t)tokenizer_size(t))
			abort();
	}
}

static void as_json(const char *p, size_t n)
{
	struct error err = { 0 };
	const char *zero = memchr(p, 0, n);
	size_t first = zero ? (size_t)(zero - p) : n;
	struct tokenizer *t = tokenizer_from_json(
		(struct tokenizer_text){ p, first, "fuzz.json" },
		(struct tokenizer_text){ zero ? zero + 1 : NULL, zero ? n - first - 1 : 0, "fuzz_config.json" }, 0,
		&err);

	if (!t && (err.code == ERROR_NONE || !err.text[0]))
		abort();
	if (t)
		probe(t);
	tokenizer_close(t);
}

static void as_gguf(const char *p, size_t n)
{
	struct error err = { 0 };
	struct gguf g = { 0 };
	struct tokenizer *t;

	if (!gguf_parse(&g, (const uint8_t *)p, n, "fuzz.gguf", true, &err))
		return;
	t = tokenizer_from_gguf(&g, 0, &err);
	if (!t && err.code == ERROR_NONE)
		abort();
	if (t)
		probe(t);
	tokenizer_close(t);
	gguf_free(&g);
}

void fuzz_tokenizer(const uint8_t *data, size_t n)
{
	if (!vocab[0].t)
		prepare();
	if (n == 0)
		return;
	const char *p = (const char *)data + 1;
	switch (data[0]) {
	case '{': as_json((const char *)data, n); break;
	case 'G': as_gguf((const char *)data, n); break;
	case 's':
	case 't':
	case 'u': round_trip(vocab[data[0] - 's'].t, p, n - 1, TOKENIZE_SPECIAL | TOKENIZE_BOS_EOS, 0); break;
	default: round_trip(vocab[data[0] % 3].t, p, n - 1, 0, 1); break;
	}
}
