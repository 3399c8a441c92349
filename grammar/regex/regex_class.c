/* grammar/regex/regex_class.c - sets of characters in regular expressions: [a-z], \d, \p{L}, and escaped characters. */
#include <stdlib.h>
#include <string.h>

#include "grammar/regex/character_set.h"
#include "grammar/machine/effort.h"
#include "grammar/regex/regex_parts.h"

static void add_shorthand(struct character_set *s, char letter)
{
	static const struct character_range digit[] = { { '0', '9' } };
	static const struct character_range word[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } };
	static const struct character_range space[] = {
		{ 9, 13 },          { ' ', ' ' },       { 0xa0, 0xa0 },     { 0x1680, 0x1680 }, { 0x2000, 0x200a },
		{ 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x3000, 0x3000 }, { 0xfeff, 0xfeff }
	};
	char kind = letter | 0x20;
	const struct character_range *r = kind == 'd' ? digit : kind == 'w' ? word : space;
	size_t n = kind == 'd' ? 1 : kind == 'w' ? sizeof word / sizeof *word : sizeof space / sizeof *space;
	struct character_set one = { 0 };

	for (size_t i = 0; i < n; i++)
		set_add(&one, r[i].low, r[i].high);
	if (letter != kind)
		set_invert(&one);
	set_add_all(s, &one);
	free(one.range);
}

/* The long names of Unicode's general categories. */
static const struct {
	const char *name, *letters;
} long_names[] = {
	{ "Letter", "L" },
	{ "Cased_Letter", "LC" },
	{ "Uppercase_Letter", "Lu" },
	{ "Lowercase_Letter", "Ll" },
	{ "Titlecase_Letter", "Lt" },
	{ "Modifier_Letter", "Lm" },
	{ "Other_Letter", "Lo" },
	{ "Mark", "M" },
	{ "Combining_Mark", "M" },
	{ "Nonspacing_Mark", "Mn" },
	{ "Spacing_Mark", "Mc" },
	{ "Enclosing_Mark", "Me" },
	{ "Number", "N" },
	{ "Decimal_Number", "Nd" },
	{ "digit", "Nd" },
	{ "Letter_Number", "Nl" },
	{ "Other_Number", "No" },
	{ "Punctuation", "P" },
	{ "punct", "P" },
	{ "Connector_Punctuation", "Pc" },
	{ "Dash_Punctuation", "Pd" },
	{ "Open_Punctuation", "Ps" },
	{ "Close_Punctuation", "Pe" },
	{ "Initial_Punctuation", "Pi" },
	{ "Final_Punctuation", "Pf" },
	{ "Other_Punctuation", "Po" },
	{ "Symbol", "S" },
	{ "Math_Symbol", "Sm" },
	{ "Currency_Symbol", "Sc" },
	{ "Modifier_Symbol", "Sk" },
	{ "Other_Symbol", "So" },
	{ "Separator", "Z" },
	{ "Space_Separator", "Zs" },
	{ "Line_Separator", "Zl" },
	{ "Paragraph_Separator", "Zp" },
	{ "Other", "C" },
	{ "Control", "Cc" },
	{ "cntrl", "Cc" },
	{ "Format", "Cf" },
	{ "Surrogate", "Cs" },
	{ "Private_Use", "Co" },
	{ "Unassigned", "Cn" },
};

/* Unicode's general categories by their short and their long names; the first letter alone is a group of them. A bit
 * for each that is meant. */
static uint32_t categories_of(const char *name, size_t n)
{
	static const char letters[][3] = { "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
		                           "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
		                           "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co" };

	for (size_t i = 0; i < sizeof long_names / sizeof *long_names; i++)
		if (strlen(long_names[i].name) == n && memcmp(long_names[i].name, name, n) == 0) {
			name = long_names[i].letters;
			n = strlen(name);
			break;
		}
	if (n == 2 && memcmp(name, "LC", n) == 0)
		return 1u << 1 | 1u << 2 | 1u << 3;
	uint32_t set = 0;
	for (unsigned c = 0; c < sizeof letters / sizeof *letters; c++)
		if (n >= 1 && n <= 2 && memcmp(letters[c], name, n) == 0)
			set |= 1u << c;
	return set;
}

/* \p{...}, behind its first letter. */
static bool add_category(struct regex *r, struct character_set *s, bool without)
{
	struct character_set one = { 0 };
	const char *name = r->text + r->at + 1, *end;

	if (!regex_take(r, "{") || !(end = memchr(name, '}', r->n - r->at)))
		return regex_fail(r, "a property of characters without braces");
	size_t n = (size_t)(end - name);
	r->at += n + 1;
	for (size_t i = n; i-- > 0;)
		if (name[i] == '=') { /* General_Category=, gc= */
			name += i + 1;
			n -= i + 1;
			break;
		}
	const uint32_t set = categories_of(name, n);
	set_add_categories(&one, set);
	if (one.n == 0 && !one.failed) {
		free(one.range);
		return regex_fail(r, "a property of characters that is not supported");
	}
	if (without)
		set_invert(&one);
	set_add_all(s, &one);
	free(one.range);
	return true;
}

static bool hex(struct regex *r, unsigned n, uint32_t *code)
{
	*code = 0;
	for (unsigned i = 0; i < n; i++, r->at++) {
		char c = r->at < r->n ? r->text[r->at] : 0;
		unsigned v = c >= '0' && c <= '9'                     ? (unsigned)(c - '0')
		             : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (unsigned)((c | 0x20) - 'a' + 10)
		                                                      : 16;
		if (v == 16)
			return regex_fail(r, "an escape with too few digits");
		*code = 16 * *code + v;
	}
	return true;
}

/* \u{1f600}, \u0041, and two halves of a pair that stand for one character. */
static bool unicode(struct regex *r, uint32_t *code)
{
	uint32_t low;
	size_t from;

	if (regex_take(r, "{")) {
		size_t n = 0;
		while (r->at + n < r->n && r->text[r->at + n] != '}')
			n++;
		return n >= 1 && n <= 6 && hex(r, (unsigned)n, code) && regex_take(r, "}") && *code <= CODE_POINT_MAX
		               ? true
		               : regex_fail(r, "an escape that is no character");
	}
	if (!hex(r, 4, code))
		return false;
	from = r->at;
	if (*code >= 0xd800 && *code < 0xdc00 && regex_take(r, "\\u") && r->n - r->at >= 4 && hex(r, 4, &low) &&
	    low >= 0xdc00 && low < 0xe000)
		*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
	else
		r->at = from;
	return r->err->code == ERROR_NONE;
}

/* Behind a backslash: one character (*code), or a set of them, which is added. */
static bool escape(struct regex *r, struct character_set *s, bool *one, uint32_t *code)
{
	static const char named[] = "tnvfr", stands_for[] = "\t\n\v\f\r";
	char c = r->at < r->n ? r->text[r->at] : 0;
	const char *at = c ? strchr(named, c) : NULL;

	*one = true;
	if (r->at == r->n)
		return regex_fail(r, "a backslash at the end");
	if (strchr("dDwWsS", c) && c) {
		r->at++;
		*one = false;
		add_shorthand(s, c);
		return true;
	}
	if (c == 'p' || c == 'P') {
		r->at++;
		*one = false;
		return add_category(r, s, c == 'P');
	}
	if (c >= '1' && c <= '9')
		return regex_fail(r, "a reference to a group, which no automaton can follow,");
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z' && !at && !strchr("xuc", c))
		return regex_fail(r, "an escape that is not supported");
	if (at || c == '0') {
		r->at++;
		*code = at ? (uint32_t)stands_for[at - named] : 0;
		return true;
	}
	if (c == 'c' && r->n - r->at >= 2) {
		*code = r->text[r->at + 1] & 0x1f;
		r->at += 2;
		return true;
	}
	if (c == 'x' || c == 'u') {
		r->at++;
		return c == 'x' ? hex(r, 2, code) : unicode(r, code);
	}
	*code = regex_character(r);
	return true;
}

static bool member(struct regex *r, struct character_set *s, bool *one, uint32_t *code)
{
	*one = true;
	if (regex_take(r, "\\")) {
		if (regex_take(r, "b")) { /* inside brackets it is the backspace */
			*code = '\b';
			return true;
		}
		return escape(r, s, one, code);
	}
	*code = regex_character(r);
	return true;
}

/* Behind the "[". */
static bool brackets(struct regex *r, struct character_set *s)
{
	bool without = regex_take(r, "^"), one, other;
	uint32_t low, high;

	while (!regex_take(r, "]")) {
		if (r->at == r->n)
			return regex_fail(r, "a set of characters without end");
		if (!member(r, s, &one, &low))
			return false;
		if (one && r->n - r->at >= 2 && r->text[r->at] == '-' && r->text[r->at + 1] != ']') {
			r->at++;
			if (!member(r, s, &other, &high))
				return false;
			if (!other) { /* [a-\d]: the dash is one */
				set_add(s, '-', '-');
				high = low;
			}
			if (high < low)
				return regex_fail(r, "a range of characters in the wrong order");
			set_add(s, low, high);
		} else if (one) {
			set_add(s, low, low);
		}
	}
	if (without)
		set_invert(s);
	return true;
}

bool regex_class(struct regex *r, uint32_t *node)
{
	struct character_set s = { 0 };
	bool one = false, ok;
	uint32_t code = 0;

	if (regex_take(r, "["))
		ok = brackets(r, &s);
	else
		ok = regex_take(r, "\\") && escape(r, &s, &one, &code);
	if (ok && one)
		set_add(&s, code, code);
	if (ok)
		*node = expression_set(r->x, s.range, s.n);
	r->x->failed |= s.failed;
	free(s.range);
	return ok;
}
