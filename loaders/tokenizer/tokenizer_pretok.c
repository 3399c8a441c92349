/* loaders/tokenizer/tokenizer_pretok.c - a text is cut into words before merging.
 *
 * Owns: the published splitting rules by name (one table row each), their regular expressions, and how
 * matches become pieces. Expressions are compiled once when the tokenizer opens. Rules known to be
 * quadratic as published are written here in an equivalent linear form. Never: matches over bytes that
 * are no characters (such a byte is a piece of its own), backtracks without a bound.
 */
#include "loaders/tokenizer/tokenizer_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the rules */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define QWEN2 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define QWEN35 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define TEKKEN \
	"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*|\\p{N}|" \
	" ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define GPT4O \
	"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER \
	"*" CONTRACTIONS "?|" \
	"\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define HAN_AND_HANGUL "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define DEEPSEEK_LETTERS \
	"A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{" \
	"2af}" \
	"\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}" \
	"\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}" \
	"\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}" \
	"\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}" \
	"\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{" \
	"1fbe}" \
	"\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}" \
	"\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{" \
	"2124}" \
	"\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{" \
	"214e}" \
	"\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{" \
	"a66d}" \
	"\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}" \
	"\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}" \
	"\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}" \
	"\\x{1e900}-\\x{1e943}"
#define DEEPSEEK_SIGNS "!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}"
#define DEEPSEEK_V3 \
	"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|" \
	" ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
/* \s+$ as published tries every end of every run of spaces. A run that fails from its first space fails
 * from the others, so only a first space, or where the last match ended, needs to be tried. */
#define TRAILING_SPACES "\\s+$"
#define TRAILING_SPACES_LINEAR "(?:(?<!\\s)|\\G)\\s+$"
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"

const char tok_gpt2_pattern[] = GPT2;

/* Rules apply one after the other, each to the pieces the one before has left; matches and what lies
 * between them are both pieces. The texts between '|' are the names a file may use. */
static const struct rule {
	const char *names;
	bool whole_words, adds_bos, composes; /* composes: the text is normalised to NFC first */
	const char *pattern[7];
} rules[] = {
	{ "llama-bpe|llama3|llama-v3|falcon3|falcon-h1|pixtral|midm-2.0|lfm2", true, true, false, { LLAMA3 } },
	{ "dbrx|smaug-bpe|chatglm-bpe|glm4", false, false, false, { LLAMA3 } },
	{ "qwen2", false, false, true, { QWEN2 } },
	{ "deepseek-r1-qwen|stablelm2|megrez|hunyuan", false, false, false, { QWEN2 } },
	{ "qwen35", false, false, true, { QWEN35 } },
	{ "tekken", true, true, false, { TEKKEN } },
	{ "gpt-4o|llama4", false, false, false, { GPT4O } },
	{ "gpt-2|phi-2|mpt|olmo|jais|roberta-bpe|gigachat|trillion", false, false, false, { GPT2 } },
	{ "starcoder|refact|command-r|smollm|codeshell|exaone|minerva-7b", false, false, false, { "\\p{N}", GPT2 } },
	{ "falcon", false, false, false, { "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]" } },
	{ "deepseek-llm",
	  false,
	  false,
	  false,
	  { "[\\r\\n]", "\\s?[" DEEPSEEK_LETTERS "]+", "\\s?[" DEEPSEEK_SIGNS "]+", TRAILING_SPACES_LINEAR,
	    HAN_AND_HANGUL, "\\p{N}+" } },
	{ "deepseek-coder",
	  false,
	  false,
	  false,
	  { "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN_AND_HANGUL, "\\p{N}" } },
	{ "deepseek-v3",
	  false,
	  false,
	  false,
	  { "\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+", DEEPSEEK_V3 } },
	{ "bloom|poro-chat|gpt3-finnish", false, false, false, { BLOOM } },
	{ "viking", false, false, false, { BLOOM, "\\p{N}" } },
	{ "gemma4", false, true, false, { "[^\\n]+|[\\n]+" } },
	{ "default", false, false, false, { "[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]" } },
};

/* The expressions of the table take few steps a character whatever the text; the test of long texts shows it. */
static bool is_published(const char *pattern, size_t n)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		for (unsigned k = 0; rules[i].pattern[k]; k++)
			if (strlen(rules[i].pattern[k]) == n && !memcmp(rules[i].pattern[k], pattern, n))
				return true;
	return false;
}

static bool among(const char *names, const char *name, size_t n)
{
	for (const char *p = names;;) {
		size_t len = strcspn(p, "|");
		if (len == n && !memcmp(p, name, n))
			return true;
		if (!p[len])
			return false;
		p += len + 1;
	}
}

bool tok_pre_by_name(struct tokenizer *t, const char *name, size_t n, const char *where, bool *adds_bos,
                     struct error *err)
{
	char quoted[80];

	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const struct rule *r = &rules[i];
		if (!among(r->names, name, n))
			continue;
		for (unsigned k = 0; r->pattern[k]; k++) {
			struct tok_pre_step *s = &t->pre[t->n_pre];
			s->kind = TOK_PRE_SPLIT;
			s->behaviour = TOK_SPLIT_ISOLATED;
			s->re = tok_regex(r->pattern[k], strlen(r->pattern[k]), "the table of pre-tokenizers", err);
			if (!s->re)
				return false;
			t->n_pre++;
		}
		if (r->composes)
			t->norm[t->n_norm++].kind = TOK_NORM_NFC;
		t->whole_words = r->whole_words;
		*adds_bos = r->adds_bos;
		return true;
	}
	return error_set(err, ERROR_UNSUPPORTED,
	                 "%s: tokenizer.ggml.pre is \"%s\", a pre-tokenizer this program does not know", where,
	                 error_quote(quoted, sizeof quoted, name, n));
}

/* ---- expressions */

enum { MAX_EXPRESSION = 65536, MAX_REPEAT = 1000 };

/* White space as Unicode has it. The library's \s also counts U+180E, which stopped being a space in Unicode 6.3. */
#define SPACE_SET "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

/* Copies an expression with \s and \S written out (a \S inside a set stays) to `to`, which has room. Constructs that
 * the dialect of tokenizer.json has and that would silently mean something else here are named in *foreign. */
static size_t translate(const char *p, size_t n, char *to, const char **foreign)
{
	char *start = to;
	bool in_set = false;

	for (size_t i = 0; i < n; i++) {
		char next = i + 1 < n ? p[i + 1] : 0;
		if (p[i] == '\\' && i + 1 < n) {
			i++;
			if (next == 'h' || next == 'H')
				*foreign = "\\h (a hexadecimal digit there)";
			if (next == 's' || (next == 'S' && !in_set)) {
				to = stpcpy(to, in_set        ? SPACE_SET
				                : next == 's' ? "[" SPACE_SET "]"
				                              : "[^" SPACE_SET "]");
			} else {
				*to++ = '\\';
				*to++ = next;
			}
			continue;
		}
		if (in_set && p[i] == '[' && next == ':') { /* [:name:] */
			do
				*to++ = p[i++];
			while (i < n && p[i] != ']');
			if (i == n)
				break;
		} else if (in_set && p[i] == '[') {
			*foreign = "a set inside a set";
		} else if (in_set && p[i] == '&' && next == '&') {
			*foreign = "an intersection of sets (&&)";
		} else if (!in_set && p[i] == '{') {
			/* it would run that far at every character, and only its end is counted */
			unsigned long count = 0;
			for (size_t k = i + 1; k < n && strchr("0123456789, ", p[k]) && p[k] && count <= MAX_REPEAT;
			     k++)
				count = p[k] >= '0' && p[k] <= '9' ? 10 * count + (unsigned long)(p[k] - '0') : 0;
			if (count > MAX_REPEAT)
				*foreign = "more than 1000 repetitions";
		} else if (in_set && p[i] == ']') {
			in_set = false;
		} else if (!in_set && p[i] == '[') {
			in_set = true;
			/* a ] that comes first is a member */
			if (next == '^')
				*to++ = p[i++];
			if (i + 1 < n && p[i + 1] == ']')
				*to++ = p[i++];
		}
		*to++ = p[i];
	}
	return (size_t)(to - start);
}

/* `shown` is the expression as the file has it. */
static pcre2_code *compile(const char *pattern, size_t n, uint32_t options, const char *where, const char *shown,
                           size_t n_shown, struct error *err)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	char text[120], why[120] = "no memory";
	int code = PCRE2_ERROR_HEAP_FAILED;
	PCRE2_SIZE at = 0;
	pcre2_code *re = NULL;

	if (context) {
		pcre2_set_newline(context, PCRE2_NEWLINE_LF);
		pcre2_set_parens_nest_limit(context, 100);
		re = pcre2_compile((PCRE2_SPTR)pattern, n, options | PCRE2_UTF, &code, &at, context);
		if (!re)
			pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
	}
	pcre2_compile_context_free(context);
	if (!re)
		error_set(err, code == PCRE2_ERROR_HEAP_FAILED ? ERROR_MEMORY : ERROR_UNSUPPORTED,
		          "%s: the expression \"%s\" does not compile: %s", where,
		          error_quote(text, sizeof text, shown, n_shown), why);
	return re;
}

pcre2_code *tok_regex(const char *pattern, size_t n, const char *where, struct error *err)
{
	char text[120];
	const char *foreign = n > MAX_EXPRESSION ? "more than 65536 bytes" : NULL, *shown = pattern;
	size_t n_shown = n;
	pcre2_code *re = NULL;

	if (n == strlen(TRAILING_SPACES) && !memcmp(pattern, TRAILING_SPACES, n)) {
		pattern = TRAILING_SPACES_LINEAR;
		n = strlen(pattern);
	}
	/* other expressions are counted, for which the shortcuts to a first match are left out */
	uint32_t counted = is_published(shown, n_shown) ? 0 : PCRE2_AUTO_CALLOUT | PCRE2_NO_START_OPTIMIZE,
		 references = 0;
	char *spelt = foreign ? NULL : malloc(n * sizeof SPACE_SET + 1);
	if (!spelt && !foreign)
		error_set(err, ERROR_MEMORY, "%s: no memory for an expression of %zu bytes", where, n);
	if (spelt)
		n = translate(pattern, n, spelt, &foreign);
	if (foreign)
		error_set(err, ERROR_UNSUPPORTED, "%s: the expression \"%s\" uses %s, which is not supported", where,
		          error_quote(text, sizeof text, shown, n_shown), foreign);
	else if (spelt) /* $ ends a line in that dialect */
		re = compile(spelt, n, PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_MULTILINE | counted, where, shown,
		             n_shown, err);
	free(spelt);
	if (re && (pcre2_pattern_info(re, PCRE2_INFO_BACKREFMAX, &references) || references)) {
		error_set(err, ERROR_UNSUPPORTED,
		          "%s: the expression \"%s\" uses a reference back to a group, which is not supported", where,
		          error_quote(text, sizeof text, shown, n_shown));
		pcre2_code_free(re);
		re = NULL;
	}
	return re;
}

/* Called before each item of an expression that is not of the table. Between two calls it did one step, or ran over
 * characters. */
static int count_steps(pcre2_callout_block *at, void *data)
{
	struct tok_work *w = data;
	size_t moved = at->current_position > w->position ? at->current_position - w->position : 0;

	w->position = at->current_position;
	return tok_spend(w, w->weight * (1 + moved)) ? 0 : PCRE2_ERROR_CALLOUT;
}

int tok_match(const pcre2_code *re, const char *text, size_t size, size_t from, size_t *at, size_t *n,
              struct tok_work *w)
{
	char why[120] = "";

	if (!w->match) {
		w->match = pcre2_match_data_create(1, NULL);
		w->limits = pcre2_match_context_create(NULL);
		if (!w->match || !w->limits)
			goto no_memory;
		pcre2_set_callout(w->limits, count_steps, w);
	}
	size_t bytes = 0;
	pcre2_pattern_info(re, PCRE2_INFO_SIZE, &bytes);
	w->weight = 1 + bytes / 4096;
	w->position = from;
	/* the published rules try at most a few times per character of a run; a rule that asks for more is ill */
	pcre2_set_match_limit(w->limits, size < (1u << 26) ? 100000 + 32 * (uint32_t)size : UINT32_MAX);
	pcre2_set_heap_limit(w->limits, 256 << 10);
	int rc = pcre2_match(re, (PCRE2_SPTR)text, size, from, PCRE2_NO_UTF_CHECK, w->match, w->limits);
	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	if (rc < 0) {
		pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
		error_set(w->err, ERROR_ARGUMENT, "the tokenizer's expression gave up on a text of %zu bytes: %s", size,
		          why);
		return -1;
	}
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(w->match);
	*at = v[0];
	*n = v[1] > v[0] ? v[1] - v[0] : 0;
	return 1;
no_memory:
	error_set(w->err, ERROR_MEMORY, "no memory for matching expressions");
	return -1;
}

/* ---- pieces */

/* Receives pieces in order (matches and gaps alternate as they come) and writes what the behaviour makes of them. */
struct joiner {
	const struct tok_pre_step *step;
	struct tok_spans *out;
	struct error *err;
	bool last_match, any, held;
	size_t held_at, held_n;
};

static bool join_next(struct joiner *j, size_t at, size_t n, bool match)
{
	if (match) {
		bool ok = !j->held || tok_span_add(j->out, j->held_at, j->held_n, false, j->err);
		j->held = true;
		j->held_at = at;
		j->held_n = n;
		return ok;
	}
	if (j->held) {
		j->held = false;
		return tok_span_add(j->out, j->held_at, j->held_n + n, false, j->err);
	}
	return tok_span_add(j->out, at, n, false, j->err);
}

static bool join(struct joiner *j, size_t at, size_t n, bool match)
{
	bool extend = false;

	if (n == 0)
		return true;
	match ^= j->step->invert;
	switch (j->step->behaviour) {
	case TOK_SPLIT_REMOVED: return match || tok_span_add(j->out, at, n, false, j->err);
	case TOK_SPLIT_MERGED_NEXT: return join_next(j, at, n, match);
	case TOK_SPLIT_MERGED_PREVIOUS: extend = j->any && match && !j->last_match; break;
	case TOK_SPLIT_CONTIGUOUS: extend = j->any && match == j->last_match; break;
	default: break;
	}
	j->last_match = match;
	j->any = true;
	if (extend) {
		j->out->p[j->out->n - 1].n += (uint32_t)n;
		return true;
	}
	return tok_span_add(j->out, at, n, false, j->err);
}

/* As tok_match, for a step that may look for a plain text instead. */
static int find_cut(const struct tok_pre_step *s, const char *text, size_t size, size_t from, size_t *at, size_t *n,
                    struct tok_work *w)
{
	if (s->re)
		return tok_match(s->re, text, size, from, at, n, w);
	const char *hit = memmem(text + from, size - from, s->text, s->n_text);
	*at = hit ? (size_t)(hit - text) : size;
	*n = s->n_text;
	return hit != NULL;
}

static bool split_piece(const struct tok_pre_step *s, struct tok_work *w, struct tok_span piece)
{
	struct joiner j = { .step = s, .out = &w->next, .err = w->err };
	const char *text = w->text.p + piece.at;
	size_t done = 0, from = 0;

	while (from < piece.n) {
		size_t at, n;
		int got = find_cut(s, text, piece.n, from, &at, &n, w);
		if (got < 0)
			return false;
		if (got == 0)
			break;
		if (n == 0) {
			if (at >= piece.n)
				break;
			from = at + (size_t)tok_char(text + at, piece.n - at);
			continue;
		}
		if (!join(&j, piece.at + done, at - done, false) || !join(&j, piece.at + at, n, true))
			return false;
		done = from = at + n;
	}
	if (!join(&j, piece.at + done, piece.n - done, false))
		return false;
	return !j.held || tok_span_add(j.out, j.held_at, j.held_n, false, j.err);
}

/* Writes one piece anew, with the mark before it and, when asked, the mark for every space. */
static bool prefix_piece(const struct tok_pre_step *s, struct tok_work *w, struct tok_span piece)
{
	const char *p = w->text.p + piece.at, *end = p + piece.n;
	size_t at = w->other.n;
	bool has = (s->replace && *p == ' ') || (piece.n >= s->n_mark && !memcmp(p, s->mark, s->n_mark));
	bool wanted = s->scheme == TOK_PREFIX_ALWAYS || (s->scheme == TOK_PREFIX_FIRST && w->at_start && piece.at == 0);

	if (!tok_spend(w, piece.n + s->n_mark))
		return false;
	if (piece.bad)
		return tok_append(&w->other, p, piece.n, w->err) && tok_span_add(&w->next, at, piece.n, true, w->err);
	if (wanted && !has && !tok_append(&w->other, s->mark, s->n_mark, w->err))
		return false;
	while (s->replace && p < end) {
		const char *space = memchr(p, ' ', (size_t)(end - p));
		const char *stop = space ? space : end;
		if (!tok_append(&w->other, p, (size_t)(stop - p), w->err) ||
		    (space && !tok_append(&w->other, s->mark, s->n_mark, w->err)))
			return false;
		p = space ? space + 1 : end;
	}
	return tok_append(&w->other, p, (size_t)(end - p), w->err) &&
	       tok_span_add(&w->next, at, w->other.n - at, false, w->err);
}

/* Runs of characters, and bytes that are none, one by one. */
static bool first_spans(struct tok_work *w)
{
	size_t i = 0;

	w->spans.n = 0;
	while (i < w->text.n) {
		size_t end = i;
		int len;
		while (end < w->text.n && (len = tok_char(w->text.p + end, w->text.n - end)) > 0)
			end += (size_t)len;
		if (end > i && !tok_span_add(&w->spans, i, end - i, false, w->err))
			return false;
		if (end < w->text.n && !tok_span_add(&w->spans, end++, 1, true, w->err))
			return false;
		i = end;
	}
	return true;
}

bool tok_pretokenize(const struct tokenizer *t, struct tok_work *w)
{
	if (!first_spans(w))
		return false;
	for (unsigned i = 0; i < t->n_pre; i++) {
		const struct tok_pre_step *s = &t->pre[i];
		w->next.n = w->other.n = 0;
		for (size_t k = 0; k < w->spans.n; k++) {
			struct tok_span piece = w->spans.p[k];
			bool ok = s->kind == TOK_PRE_PREFIX ? prefix_piece(s, w, piece)
			          : piece.bad               ? tok_span_add(&w->next, piece.at, piece.n, true, w->err)
			                                    : split_piece(s, w, piece);
			if (!ok)
				return false;
		}
		struct tok_spans spans = w->spans;
		w->spans = w->next;
		w->next = spans;
		if (s->kind == TOK_PRE_PREFIX) {
			struct tok_buf text = w->text;
			w->text = w->other;
			w->other = text;
		}
		if (w->text.n > INT32_MAX)
			return error_set(w->err, ERROR_ARGUMENT, "the text grows to %zu bytes, at most %d are expected",
			                 w->text.n, INT32_MAX);
	}
	return true;
}
