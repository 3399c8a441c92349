/* grammar/rules/lark_text.c - strings, ranges of characters and regular expressions of a Lark grammar, as terminals. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "grammar/machine/effort.h"
#include "grammar/rules/lark_parts.h"

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static bool hexadecimal(struct lark *r, size_t *at, size_t end, unsigned digits, uint32_t *code)
{
	const size_t from = *at;

	for (*code = 0; digits; digits--, (*at)++) {
		const int v = *at < end ? digit_of(r->now.text[*at]) : -1;
		if (v < 0)
			return lark_wrong(r, from, "an escape with too few hexadecimal digits");
		*code = *code << 4 | (uint32_t)v;
	}
	if (*code > CODE_POINT_MAX || (*code >= 0xd800 && *code <= 0xdfff))
		return lark_wrong(r, from, "an escape that is no character of Unicode");
	return *code != 0 || lark_lacks(r, from, "the character 0, which no answer can have");
}

/* One character of a string. A backslash stands for itself where no escape of Lark's follows. */
static bool character(struct lark *r, size_t *at, size_t end, uint32_t *code)
{
	static const char named[] = "nrtf\"\\", stands_for[] = "\n\r\t\f\"\\";
	const char *text = r->now.text;
	const char c = text[*at] == '\\' && *at + 1 < end ? text[*at + 1] : 0;
	const char *name = c ? strchr(named, c) : NULL;

	if (name) {
		*code = (uint32_t)(uint8_t)stands_for[name - named];
		*at += 2;
		return true;
	}
	if (c == 'x' || c == 'u' || c == 'U') {
		*at += 2;
		return hexadecimal(r, at, end, c == 'x' ? 2 : c == 'u' ? 4 : 8, code);
	}
	const unsigned n = text_char(text + *at, end - *at, code);
	*at += n;
	return n ? true : lark_wrong(r, *at, "a byte that is not UTF-8");
}

uint32_t lark_set(struct lark *r, struct character_set *s)
{
	set_sort(s);
	if (s->n && s->range[0].low == 0)
		s->range[0].low = 1; /* which leaves none where it was alone */
	const bool none = s->n == 1 && s->range[0].low > s->range[0].high;
	const uint32_t node = expression_set(&r->g->x, s->range, none ? 0 : s->n);
	r->g->x.failed |= s->failed;
	free(s->range);
	*s = (struct character_set){ 0 };
	return node;
}

/* The bounds of the present word between its quotes. */
static void inside(const struct lark *r, size_t *from, size_t *end, bool *any_case)
{
	*end = r->now.word.end;
	*any_case = r->now.text[*end - 1] == 'i';
	*end -= 1 + *any_case;
	*from = r->now.word.at + 1;
}

bool lark_string(struct lark *r, uint32_t *node)
{
	size_t at, end, n = 0, room = 0;
	bool any_case, ok = true;
	uint32_t *part = NULL;

	inside(r, &at, &end, &any_case);
	if (at == end)
		return lark_wrong_here(r, "a string that is empty");
	while (ok && at < end) {
		struct character_set one = { 0 };
		void *all = part;
		uint32_t code;
		ok = character(r, &at, end, &code);
		if (ok && !effort_array(&all, &room, n + 1, sizeof *part))
			ok = lark_no_memory(r);
		if (!ok)
			break;
		part = all;
		set_add(&one, code, code);
		if (any_case)
			set_add_cases(&one);
		part[n++] = lark_set(r, &one);
	}
	for (size_t i = n; ok && i-- > 0;)
		*node = i + 1 == n ? part[i] : expression_join(&r->g->x, part[i], *node);
	free(part);
	return ok && lark_next(r);
}

static bool bound(struct lark *r, uint32_t *code)
{
	size_t at, end;
	bool any_case;

	if (r->now.word.kind != LARK_STRING)
		return lark_wrong_here(r, "expected a string of one character");
	inside(r, &at, &end, &any_case);
	if (at == end || !character(r, &at, end, code) || at != end || any_case)
		return r->err->code == ERROR_NONE && lark_wrong_here(r, "expected a string of one character");
	return lark_next(r);
}

bool lark_range(struct lark *r, uint32_t *node)
{
	const size_t at = r->now.word.at;
	struct character_set s = { 0 };
	uint32_t low, high;

	if (!bound(r, &low) || !lark_next(r) || !bound(r, &high))
		return false;
	if (high < low)
		return lark_wrong(r, at, "a range of characters in the wrong order");
	set_add(&s, low, high);
	*node = lark_set(r, &s);
	return true;
}

bool lark_regexp(struct lark *r, uint32_t *node)
{
	const char *text = r->now.text;
	size_t from = r->now.word.at + 1, end = r->now.word.end;

	while (text[end - 1] != '/')
		end--;
	const size_t n = end - 1 - from, n_flags = r->now.word.end - end;
	if (memchr(text + from, '\n', n) && !memchr(text + end, 'x', n_flags))
		return lark_wrong_here(r, "an expression of several lines, which needs the flag x");
	return lark_expression(r, from, n, text + end, n_flags, node) && lark_next(r);
}
