/* grammar/rules/lark_classes.c - sets of characters and escapes in Python's regular expressions. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

#define CATEGORY(c) (1u << UTF8PROC_CATEGORY_##c)

static char peek(const struct lark_regex *x) { return x->at < x->end ? x->r->now.text[x->at] : 0; }

/* \d \w \s of all languages, and with a capital letter all others. */
static void add_kind(struct lark *r, struct character_set *s, char letter)
{
	static const struct character_range spaces[] = {
		{ 9, 13 },          { 28, 32 },         { 0x85, 0x85 },     { 0xa0, 0xa0 },     { 0x1680, 0x1680 },
		{ 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x3000, 0x3000 }
	};
	const uint32_t letters = CATEGORY(LU) | CATEGORY(LL) | CATEGORY(LT) | CATEGORY(LM) | CATEGORY(LO),
		       numbers = CATEGORY(ND) | CATEGORY(NL) | CATEGORY(NO);
	const char kind = letter | 0x20;
	struct character_set one = { 0 };

	if (kind == 'd') {
		if (!r->digits.n)
			set_add_categories(&r->digits, CATEGORY(ND));
		set_add_all(&one, &r->digits);
	} else if (kind == 'w') {
		if (!r->letters.n)
			set_add_categories(&r->letters, letters | numbers);
		set_add_all(&one, &r->letters);
	}
	for (size_t i = 0; kind == 's' && i < sizeof spaces / sizeof *spaces; i++)
		set_add(&one, spaces[i].low, spaces[i].high);
	if (kind == 'w')
		set_add(&one, '_', '_');
	if (letter != kind)
		set_invert(&one);
	set_add_all(s, &one);
	free(one.range);
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static bool hexadecimal(struct lark_regex *x, unsigned n, uint32_t *code)
{
	for (*code = 0; n; n--, x->at++) {
		const int v = digit_of(peek(x));
		if (!peek(x) || v < 0)
			return lark_regex_wrong(x, "an escape with too few hexadecimal digits");
		*code = *code << 4 | (uint32_t)v;
	}
	return *code <= CODE_POINT_MAX || lark_regex_wrong(x, "an escape that is no character of Unicode");
}

/* Behind a backslash: one character, or a set of them, which is added. */
static bool escape(struct lark_regex *x, struct character_set *s, bool inside, bool *one, uint32_t *code)
{
	static const char named[] = "nrtfva", stands_for[] = "\n\r\t\f\v\a";
	const char c = peek(x);
	const char *name = c ? strchr(named, c) : NULL;

	*one = true;
	if (!c)
		return lark_regex_wrong(x, "a backslash at the end");
	if (strchr("dDwWsS", c)) {
		x->at++;
		*one = false;
		add_kind(x->r, s, c);
		return true;
	}
	if (name || (inside && c == 'b')) {
		x->at++;
		*code = name ? (uint32_t)(uint8_t)stands_for[name - named] : '\b';
		return true;
	}
	if (c == 'x' || c == 'u' || c == 'U') {
		x->at++;
		return hexadecimal(x, c == 'x' ? 2 : c == 'u' ? 4 : 8, code);
	}
	if (strchr("bBAZ", c))
		return lark_regex_lacks(x, "\\b, \\B, \\A or \\Z, which is not supported");
	if (c == '0')
		return lark_regex_lacks(x, "\\0, which is not supported: no answer has the character 0");
	if (c >= '1' && c <= '9')
		return lark_regex_lacks(x, "a reference to a group or an octal escape, which is not supported");
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
		return lark_regex_lacks(x, "an escape that is not supported");
	const unsigned n = text_char(x->r->now.text + x->at, x->end - x->at, code);
	x->at += n;
	return n ? true : lark_regex_wrong(x, "a byte that is not UTF-8");
}

static bool member(struct lark_regex *x, struct character_set *s, bool *one, uint32_t *code)
{
	if (lark_regex_take(x, "\\"))
		return escape(x, s, true, one, code);
	const unsigned n = text_char(x->r->now.text + x->at, x->end - x->at, code);
	*one = true;
	x->at += n;
	return n ? true : lark_regex_wrong(x, "a byte that is not UTF-8");
}

/* Behind the bracket; one that closes it stands for itself as the first. */
static bool brackets(struct lark_regex *x, struct character_set *s)
{
	const bool without = lark_regex_take(x, "^");
	uint32_t low, high;
	bool one, other;

	for (bool first = true; first || !lark_regex_take(x, "]"); first = false) {
		if (!peek(x))
			return lark_regex_wrong(x, "a set of characters without end");
		const size_t at = x->at;
		if (!effort_take(2) || !member(x, s, &one, &low))
			return x->r->err->code == ERROR_NONE && lark_no_memory(x->r);
		high = low;
		if (x->end - x->at >= 2 && peek(x) == '-' && x->r->now.text[x->at + 1] != ']') {
			x->at++;
			if (!member(x, s, &other, &high))
				return false;
			if (!one || !other || high < low)
				return lark_wrong(x->r, at,
				                  "a range of characters that is none, or in the wrong order");
		}
		if (one)
			set_add(s, low, high);
	}
	if (x->any_case)
		set_add_cases(s);
	if (without)
		set_invert(s);
	return true;
}

bool lark_class(struct lark_regex *x, uint32_t *node)
{
	struct character_set s = { 0 };
	uint32_t code = 0;
	bool one = false;
	bool ok = lark_regex_take(x, "[") ? brackets(x, &s)
	                                  : lark_regex_take(x, "\\") && escape(x, &s, false, &one, &code);

	if (ok && one) {
		set_add(&s, code, code);
		if (x->any_case)
			set_add_cases(&s);
	}
	if (ok)
		*node = lark_set(x->r, &s);
	else
		free(s.range);
	return ok;
}
